# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of connections between hosts and of the controllers' ports.

Before the controllers run, nothing listens on their ports, and a reachable host refuses the connection. Most firewalls
drop it, or answer "no route". So a refusal is no finding here. The tool connects again once the controllers are up,
before it restarts a broker (node_facts, `connectivity_required`).
"""

from __future__ import annotations

from typing import Iterable, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight.check_facts import (
    Facts,
    group_by_value,
    values_of,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight.zookeeper import is_loopback
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import Finding, format_names
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import NodeFacts
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import config_values
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import (
    AddressError,
    parse_zookeeper_connect,
)

_WHAT = {
    "zookeeper": "ZooKeeper at",
    "controller": "the controllers' port of",
    "broker": "the inter-broker listener of",
}
_DO = {
    "zookeeper": "open ZooKeeper's port for these hosts: brokers and controllers use it until the migration is "
    "finalized",
    "controller": "open the controllers' port for these hosts, or correct quorumshift_controller_host and "
    "quorumshift_controller_port: brokers and controllers fetch the metadata there",
    "broker": "open the brokers' inter-broker port for these hosts: controllers send LeaderAndIsr and UpdateMetadata "
    "there",
}


def targets(host: str, nodes: Mapping[str, NodeFacts], connect: str | None = None) -> list[dict]:
    """Return the addresses that a host must reach: [{kind, to, address}] (`nodes`: probes.cluster.cluster.collect).

    `connect`: the connect string that a controller will have, by default the brokers'.
    """
    own = nodes[host]
    brokers = {name: node for name, node in sorted(nodes.items()) if node["role"] == "broker" and values_of(node)}
    readers = [own] if own["role"] == "broker" else list(brokers.values())
    connect = connect or next((config_values.get(values_of(node), "zookeeper.connect") for node in readers), "")
    try:
        servers = parse_zookeeper_connect(connect).servers if connect else ()
    except AddressError:
        servers = ()  # the check `zookeeper` names it, or the broker does not start with it
    addresses = [{"kind": "zookeeper", "to": str(server), "address": str(server)} for server in servers]
    for name, node in sorted(nodes.items()):
        if node["role"] == "controller" and name != host:
            addresses.append({"kind": "controller", "to": name, "address": node["address"]})
    if own["role"] == "controller":
        for name, node in brokers.items():
            address = kraft_config.inter_broker_address(values_of(node), node["host_address"])
            if address:
                addresses.append({"kind": "broker", "to": name, "address": address})
    return addresses


def is_not_begun(nodes: Mapping[str, Mapping]) -> bool:
    """Return whether every broker that was read still starts in plain ZooKeeper mode."""
    modes = [(node.get("file") or {}).get("mode") for node in nodes.values() if node["role"] == "broker"]
    return all(mode in ("zk", None) for mode in modes)


def reachability(facts: Facts) -> Iterable[Finding]:
    """Yield the connections that the migration needs and that failed."""
    dead = set(facts.dead.values())  # reported by the check `broker_ids`
    failed, tried = {}, {}
    for host, node in facts.cluster["nodes"].items():
        connections = node.get("paths") or {}
        tried[host] = connections.get("tried") or {}
        failed[host] = [
            target
            for target in connections.get("failed") or []
            if target["to"] not in dead
            and not (target["reason"] == "refused" and _is_not_started(facts, target))
            # a loopback address on a controller: the check `zookeeper` reports it
            and not (target["kind"] == "zookeeper" and node["role"] == "controller" and is_loopback(target["address"]))
        ]
    yield from find_unanswered(failed, tried)
    for host, node in sorted(facts.cluster["nodes"].items()):
        reason, broker = node.get("running_reason"), node["role"] == "broker"
        in_use = ((node.get("paths") or {}).get("listen") or {}).get("error")  # see `controller_ports`
        if not reason or host in dead or (not broker and (reason == "refused" or in_use)):
            continue
        client = "quorumshift_client" if broker else "quorumshift_controller_client"
        yield Finding(
            f"the probe host cannot query {host}: {node['running_error']}",
            f"open the port for the probe host, correct {client}, or set another quorumshift_probe_host",
        )


def _is_not_started(facts: Facts, target: Mapping) -> bool:
    """Return whether the target is a controller that does not run yet."""
    node = facts.cluster["nodes"].get(target["to"]) or {}
    return target["kind"] == "controller" and not (node.get("service") or {}).get("active")


def own_zookeeper(facts: Facts) -> Iterable[Finding]:
    """Yield the brokers on whose hosts a restart cannot read ZooKeeper with the broker's own settings.

    A restart reads it before it reverts a file, and waits there for the broker's registration in ZooKeeper mode: in a
    rollback it would fail.
    """
    errors = {}
    for host, node in facts.brokers.items():
        found = node.get("paths") or {}
        failed = [target for target in found.get("failed") or [] if target["kind"] == "zookeeper"]
        # Where no server is reached, the check `reachability` reports it.
        if found.get("own_zookeeper") and not (failed and len(failed) == (found.get("tried") or {}).get("zookeeper")):
            errors[host] = found["own_zookeeper"]
    for hosts, error in group_by_value(errors).items():
        yield Finding(
            f"a restart on {format_names(hosts)} cannot read ZooKeeper with the broker's settings: {error}",
            _STORE if "QS-CONNECT-007" in error else _READABLE,
        )


_STORE = (
    "correct the store or its password in zookeeper.ssl.* of the broker. A store of another kind is written anew: "
    "keytool -importkeystore -srckeystore STORE -destkeystore NEW -deststoretype PKCS12"
)
_READABLE = (
    "correct zookeeper.connect and zookeeper.ssl.* of the broker, or the ACLs: /controller, /migration and "
    "/brokers/ids must be readable without a login"
)


def find_unanswered(failed: Mapping[str, list[Mapping]], tried: Mapping[str, Mapping[str, int]]) -> Iterable[Finding]:
    """Yield the failed connections, grouped; `failed` and `tried` ({kind: count}) by host as node_facts returns them.

    A host that reaches some servers of the ZooKeeper ensemble gets a warning.
    """
    for kind, what in _WHAT.items():
        failures = {}
        for host, all_failed in failed.items():
            targets = [target for target in all_failed if target["kind"] == kind]
            if targets:
                failures[host] = (
                    kind == "zookeeper" and len(targets) < tried[host].get(kind, 0),
                    tuple(_name_target(target) for target in targets),
                    tuple(sorted({target["error"] for target in targets})),
                    all(target["reason"] == "refused" for target in targets),
                )
        for hosts, (some, names, errors, refused) in group_by_value(failures).items():
            yield Finding(
                f"{format_names(hosts)} cannot connect to {what} {format_names(names)}: {'; '.join(errors)}",
                f"start the server there or read its log. If it runs, {_DO[kind]}" if refused else _DO[kind],
                warns=some,
            )


def _name_target(target: Mapping) -> str:
    return target["to"] if target["to"] == target["address"] else f"{target['to']} ({target['address']})"


def controller_ports(facts: Facts) -> Iterable[Finding]:
    """Yield the controllers that cannot listen on their own address."""
    several = len({node.get("host_address") for node in facts.cluster["nodes"].values()}) > 1
    for host, node in sorted(facts.controllers.items()):
        listen = (node.get("paths") or {}).get("listen")
        if not listen:
            continue
        where = f"{listen['address']} on {host}"
        if listen["error"] == "taken":
            yield Finding(
                f"{where} is in use by {listen['holder'] or 'a process that the tool cannot see'}",
                "stop this process, or set quorumshift_controller_port to a free port",
            )
        elif listen["error"] == "foreign":
            yield Finding(
                f"{where} resolves to {listen['resolved']}, which is not an address of that host",
                "set quorumshift_controller_host to an address of the host",
            )
        elif listen["error"]:
            yield Finding(
                f"{where} cannot be bound: {listen['error']}",
                "correct quorumshift_controller_host and quorumshift_controller_port",
            )
        elif listen["loopback"] and several:
            yield Finding(
                f"{where} resolves to the loopback address {listen['resolved']}, which other hosts cannot reach",
                f"correct /etc/hosts of {host}, or set quorumshift_controller_host to an address",
            )
