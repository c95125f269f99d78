# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Probe the complete cluster over the network from the probe host: nodes, quorum, ZooKeeper, partitions.

Probes run in parallel, each bounded by `Connections.timeout`. A failed probe is reported in its place with the reason
and does not stop the others.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Mapping, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config, node_mode
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import oldest
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import (
    ClusterFacts,
    NodeFacts,
    Quorum,
    Replica,
    Topics,
    ZooKeeperFacts,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import topics
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security, ZkSecurity
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import (
    AddressError,
    HostPort,
    ZkConnect,
    parse_host_port,
    parse_host_ports,
    parse_zookeeper_connect,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import kafka_wire
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import Unreachable, WireError


class Connections(NamedTuple):
    """How to connect to each part of the cluster. `timeout` in seconds bounds each probe."""

    bootstrap: tuple[HostPort, ...]
    client: Security
    controller_client: Security
    zookeeper: ZkConnect | None
    zookeeper_client: ZkSecurity
    timeout: float

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Connections:
        """Build from a module's parameters (argument_specs.CONNECTION). Raises AddressError, SecurityError."""
        connect = options.get("zookeeper_connect")
        return cls(
            parse_host_ports(options["bootstrap_servers"]),
            Security.from_options(options.get("client"), "client"),
            Security.from_options(options.get("controller_client"), "controller_client"),
            parse_zookeeper_connect(connect) if connect else None,
            ZkSecurity.from_options(options.get("zookeeper_client"), "zookeeper_client"),
            float(options.get("timeout") or 5),
        )


def collect(nodes: Mapping[str, NodeFacts], connections: Connections, partitions: bool = True) -> ClusterFacts:
    """Return the facts that the functions in core/ evaluate; `topics` unless `partitions` is False.

    `nodes`: {host: node.node.collect with `reached` and `address` added; for an unreachable host: role, reached False,
    error, address}.
    """
    controllers = {host: node for host, node in nodes.items() if node["role"] == "controller"}
    jobs: dict[str, Callable[[], Any]] = {
        "zookeeper": lambda: _zookeeper(connections),
        "quorum": lambda: read_quorum(controllers, connections),
    }
    if partitions:
        jobs["topics"] = lambda: topics.read(connections.bootstrap, connections.client, connections.timeout)
    with ThreadPoolExecutor(max_workers=min(32, len(nodes) + len(jobs))) as pool:
        probed = {host: pool.submit(_node, node, connections) for host, node in nodes.items()}
        running = {name: pool.submit(job) for name, job in jobs.items()}
        facts: ClusterFacts = {
            "time": time.time(),
            "nodes": {host: future.result() for host, future in probed.items()},
            "zookeeper": running["zookeeper"].result(),
            "quorum": running["quorum"].result(),
        }
        if partitions:
            facts["topics"] = running["topics"].result()
    if partitions and facts["topics"]["reached"]:
        facts["topics"] = _merge_view_of_each_mode(facts["topics"], facts["nodes"], connections)
    return facts


def collect_modes(nodes: Mapping[str, NodeFacts], connections: Connections) -> dict[str, str | None]:
    """Return the mode in which each node runs, None if it does not answer."""
    with ThreadPoolExecutor(max_workers=min(32, len(nodes) or 1)) as pool:
        running = pool.map(lambda node: _node(node, connections)["running"], nodes.values())
        return dict(zip(nodes, running))


def _merge_view_of_each_mode(found: Topics, nodes: Mapping[str, NodeFacts], connections: Connections) -> Topics:
    """Return the topics merged with the view of one broker of each running mode, if there are several modes.

    Brokers of each mode receive changes in another way, and `found` comes from any one of them.
    """
    of_mode = {node["running"]: host for host, node in sorted(nodes.items()) if node["role"] == "broker"}
    hosts = [host for mode, host in of_mode.items() if mode]
    if len(hosts) < 2:
        return found

    def view(host: str) -> dict:
        return topics.read_from_broker(parse_host_port(nodes[host]["address"]), connections.client, connections.timeout)

    try:
        with ThreadPoolExecutor(max_workers=len(hosts)) as pool:
            return topics.merge(found, dict(zip(hosts, pool.map(view, hosts))))
    except WireError as error:
        return {"reached": False, "error": f"the brokers' metadata could not be read: {error}"}


def read_quorum(controllers: Mapping[str, NodeFacts], connections: Connections) -> Quorum:
    """Return the quorum as its leader describes it (DescribeQuorum), or the error of each controller."""
    addresses = [parse_host_port(node["address"]) for node in controllers.values() if node.get("address")]
    if not addresses:
        return {"reached": False, "error": "the group kafka_controller is empty (QS-GATE-008)"}
    search = kafka_wire.describe_quorum_any(addresses, connections.controller_client, connections.timeout)
    if search.quorum is None:
        return {"reached": False, "error": search.explain()}
    return {
        "reached": True,
        "leader_id": search.quorum.leader_id,
        "leader_epoch": search.quorum.leader_epoch,
        "high_watermark": search.quorum.high_watermark,
        "voters": list(map(_replica, search.quorum.voters)),
        "observers": list(map(_replica, search.quorum.observers)),
    }


def _replica(replica: kafka_wire.Replica) -> Replica:
    caught_up = replica.last_caught_up_timestamp
    return {"id": replica.id, "log_end_offset": replica.log_end_offset, "caught_up_ms": caught_up}


def connect_zookeeper(connections: Connections) -> Any:
    """Return a context manager that yields a kazoo client in the cluster's chroot. Raises zookeeper.ZooKeeperError."""
    options = connections.zookeeper_client.kazoo()
    return zookeeper.connect(str(connections.zookeeper), connections.timeout, **options)


def client_address(node: NodeFacts, host_address: str, connections: Connections) -> str:
    """Return the `host:port` for probes of a broker: its listener with the client's protocol.

    Of several such listeners, prefer one on a bootstrap server's port. If the broker's file could not be read, return
    its inventory address with the first bootstrap server's port.
    """
    values = (node.get("file") or {}).get("properties") or {}
    fallback = str(HostPort(host_address, connections.bootstrap[0].port))
    try:
        listeners = kraft_config.advertised_listeners(values) if values else ()
    except AddressError:
        return fallback  # the check `listeners` reports it
    protocols = kraft_config.protocol_map(values)
    ports = {server.port for server in connections.bootstrap}
    for listener in sorted(listeners, key=lambda each: each.port not in ports):
        if protocols.get(listener.name, listener.name) == connections.client.protocol:
            return str(HostPort(listener.host or host_address, listener.port))
    return fallback


def _node(given: NodeFacts, connections: Connections) -> NodeFacts:
    node = given.copy()
    node["next"] = (node.get("file") or {}).get("mode")
    security = connections.controller_client if node["role"] == "controller" else connections.client
    try:
        answer = kafka_wire.api_versions(parse_host_port(node["address"]), security, connections.timeout)
        node["running"] = node_mode.node_mode(answer.api_keys, answer.zk_migration_ready)
        if node["role"] == "broker":
            node["lacking"] = oldest.find_lacking(answer.api_keys)
        node["metadata_version"] = (answer.finalized_features.get("metadata.version") or (None,))[-1]
        node["features"] = {
            "supported": {name: list(levels) for name, levels in sorted(answer.supported_features.items())},
            "finalized": {name: levels[1] for name, levels in sorted(answer.finalized_features.items())},
            "epoch": answer.finalized_features_epoch,
        }
    except WireError as error:
        node["running"], node["running_error"] = None, str(error)
        node["running_reason"] = error.reason if isinstance(error, Unreachable) else "answer"
    return node


def _zookeeper(connections: Connections) -> ZooKeeperFacts:
    if connections.zookeeper is None:
        return {"reached": False, "error": "quorumshift_zookeeper_connect is not set (QS-CONNECT-005)"}
    target: Any = {"connect": str(connections.zookeeper), "tls": bool(connections.zookeeper_client.tls)}
    try:
        with connect_zookeeper(connections) as client:
            return {"reached": True, **target, **zookeeper.read_migration_znodes(client, connections.timeout)}
    except zookeeper.ZooKeeperError as error:
        return {"reached": False, "error": str(error), **target}
