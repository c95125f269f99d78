# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The input of the checks and their findings."""

from __future__ import annotations

import traceback
from types import MappingProxyType
from typing import Any, Callable, Iterable, Mapping, NamedTuple, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import Finding
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import (
    ClusterFacts,
    MetadataLog,
    NodeFacts,
    ZooKeeperFacts,
)


class Facts(NamedTuple):
    """The input of the checks.

    `cluster`: cluster.cluster.collect; `metadata`: zk_metadata.normalise of ZooKeeper, None if it could not be read
    (`metadata_error`: why); `running`: {broker host: running config, or {"error", "denied" (whether the
    tool lacks the right)}}; `controller_config`,
    `controller_super_users`, `stop_timeout_s`: the variables quorumshift_*; `controller_listener`,
    `controller_protocol`: name and security protocol of the controller listener; `controller_principal`: the
    controllers' principal on brokers; `min_isr`: {topic: int}; `rights`: cluster.topics.read_rights, None if no broker
    answers; `client_principal`, `tool_principal`: this tool's principal on brokers and controllers, None if unknown;
    `lasting`: requests.find_lasting; `ensemble`: zk_servers.collect; `notifications`: zookeeper.count_notifications;
    `logins`: {quorumshift_client, quorumshift_controller_client: (security protocol, SASL mechanism or None)};
    `zookeeper_rights`: zk_rights.collect, {error} if it failed, None if ZooKeeper was not read; `bootstrap`: the
    bootstrap servers, for commands; `spark`: spark_host.spark_host.collect with {host, master, heap_mib}, or {host}
    with `unreachable` or `error`, {} without the verification; `zookeeper_files`: {host of the group zookeeper:
    {snapshot, zxid} of its newest snapshot, or {msg}}, None without the verification; `accept_not_compared`: tokens of
    core.gates.not_compared.
    """

    cluster: ClusterFacts
    metadata: Mapping | None
    running: Mapping[str, Mapping[str, Any]]
    controller_config: Mapping[str, str]
    controller_protocol: str
    controller_principal: str
    controller_super_users: Iterable[str]
    min_isr: Mapping[str, int]
    metadata_error: str = ""
    stop_timeout_s: float = 0
    rights: Mapping | None = None
    client_principal: str | None = None
    tool_principal: str | None = None
    lasting: Mapping[str, Sequence[str]] = MappingProxyType({})
    ensemble: Mapping[str, Mapping] = MappingProxyType({})
    controller_listener: str = "CONTROLLER"
    notifications: Mapping[str, int] = MappingProxyType({})
    logins: Mapping[str, tuple[str, str | None]] = MappingProxyType({})
    zookeeper_rights: Mapping | None = None
    bootstrap: str = "BOOTSTRAP"
    spark: Mapping[str, Any] = MappingProxyType({})
    zookeeper_files: Mapping[str, Mapping[str, Any]] | None = None
    accept_not_compared: Sequence[str] = ()

    @property
    def brokers(self) -> dict[str, NodeFacts]:
        """The nodes of the group kafka_broker."""
        return {host: node for host, node in self.cluster["nodes"].items() if node["role"] == "broker"}

    @property
    def controllers(self) -> dict[str, NodeFacts]:
        """The nodes of the group kafka_controller."""
        return phase.controllers(self.cluster)

    @property
    def dead(self) -> dict[int, str | None]:
        """{broker id: host} of brokers that neither ZooKeeper nor the quorum lists; {} without ZooKeeper."""
        if not self.zookeeper.get("reached"):
            return {}
        alive = {int(broker) for broker in self.zookeeper.get("broker_ids") or {}}
        alive |= {int(broker) for log in logs_of(self) for broker in log.get("brokers") or {}}
        return {
            node["node_id"]: host
            for host, node in sorted(self.brokers.items())
            if node.get("node_id") is not None and node["node_id"] not in alive
        }

    @property
    def zookeeper(self) -> ZooKeeperFacts:
        """What ZooKeeper reports."""
        return self.cluster["zookeeper"]


def logs_of(facts: Facts) -> list[MetadataLog]:
    """Return the metadata logs of the controllers that have a usable one."""
    return phase.metadata_logs(facts.controllers.values())


def values_of(node: NodeFacts) -> Mapping[str, str]:
    """Return the properties in a node's file, {} if it could not be read."""
    return (node.get("file") or {}).get("properties") or {}


def partitions_of(node: NodeFacts) -> int:
    """Return how many replicas a node's log directories hold."""
    return sum(directory.get("partitions") or 0 for directory in node.get("log_dirs") or [])


def group_by_value(values: Mapping[str, Any]) -> dict[Sequence[str], Any]:
    """Return {hosts: value} of {host: value}: one entry for all hosts with the same value."""
    hosts: dict[Any, list[str]] = {}
    for host, value in sorted(values.items()):
        hosts.setdefault(value, []).append(host)
    return {tuple(names): value for value, names in hosts.items()}


def run_check(find: Callable[..., Iterable[Finding]], *facts: Any, artifacts: str) -> list[Finding]:
    """Return what a check finds, or that it failed: the other checks run even if one fails on unexpected facts.

    `artifacts`: what to report it with, of the run directory.
    """
    try:
        return list(find(*facts))
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{frame.name}, line {frame.lineno}"
        return [Finding(f"the check failed: {type(error).__name__} {error} ({where})", f"report it with {artifacts}")]
