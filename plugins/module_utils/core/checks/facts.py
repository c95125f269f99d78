# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the checks look at, and what they find."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Iterable, Mapping, NamedTuple, Sequence

from .. import phase


class Finding(NamedTuple):
    """One thing that a check found. `warns`: it is less grave than its check's severity says."""

    seen: str
    do: str
    warns: bool = False


class Facts(NamedTuple):
    """What the checks look at. `cluster`: probes.cluster.collect; `metadata`: judgements.zk_metadata.normalise of
    ZooKeeper, None when it could not be read; `running`: each broker host's running configuration ({"error"} when it
    could not be asked); `controller_config`: the operator's quorumshift_controller_config;
    `controller_listener`, `controller_protocol`: name and security protocol of the controller listener;
    `controller_principal`: what a controller is to the brokers;
    `controller_super_users`: the principals of quorumshift_controller_super_users;
    `min_isr`: {topic: int}; `metadata_error`: why `metadata` is None;
    `stop_timeout_s`: quorumshift_stop_timeout_s; `rights`: probes.topics.rights, None when no broker answers;
    `client_principal`, `tool_principal`: whom brokers and controllers see when this tool dials, None when only they
    know; `lasting`: of hazards.requests.under_way, what every look has shown; `ensemble`: what each server of
    ZooKeeper answers, probes.zk_servers.look; `notifications`: probes.zookeeper.notifications."""

    cluster: Mapping
    metadata: Mapping | None
    running: Mapping[str, Mapping[str, str]]
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

    @property
    def brokers(self) -> dict[str, Mapping]:
        """The nodes of the group kafka_broker."""
        return {host: node for host, node in self.cluster["nodes"].items() if node["role"] == "broker"}

    @property
    def controllers(self) -> dict[str, Mapping]:
        """The nodes of the group kafka_controller."""
        return phase.controllers(self.cluster)

    @property
    def dead(self) -> dict[int, str | None]:
        """The brokers that should be alive and are not, {broker id: host}; none can be told without ZooKeeper."""
        if not self.zookeeper.get("reached"):
            return {}
        alive = {int(one) for one in self.zookeeper.get("broker_ids") or {}}
        alive |= {int(one) for log in logs_of(self) for one in log.get("brokers") or {}}
        return {
            node["node_id"]: host
            for host, node in sorted(self.brokers.items())
            if node.get("node_id") is not None and node["node_id"] not in alive
        }

    @property
    def zookeeper(self) -> Mapping:
        """What ZooKeeper testifies."""
        return self.cluster["zookeeper"]


def logs_of(facts: Facts) -> list[Mapping]:
    return [node["metadata_log"] for node in facts.controllers.values() if phase.usable_log(node)]


def values_of(node: Mapping) -> Mapping[str, str]:
    return (node.get("file") or {}).get("properties") or {}


def partitions_of(node: Mapping) -> int:
    """Return how many replicas a node's log directories hold."""
    return sum(directory.get("partitions") or 0 for directory in node.get("log_dirs") or [])


def by_text(reported: Mapping[str, Any]) -> dict[Sequence[str], Any]:
    """Return {hosts: what is told of them}: one entry for all hosts of which the same is told."""
    hosts: dict[Any, list[str]] = {}
    for host, one in sorted(reported.items()):
        hosts.setdefault(one, []).append(host)
    return {tuple(names): one for one, names in hosts.items()}
