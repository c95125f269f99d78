# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The input of the checks of an audit, and what they share. Pure."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, NamedTuple, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight.check_facts import group_by_value
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import releases
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import format_names
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import NodeFacts

BROKER, CONTROLLER = "broker", "controller"


class Facts(NamedTuple):
    """The input of the checks.

    `nodes`: cluster.cluster.collect; `hosts`: {host: what the module upgrade_read returned, {} if it did not};
    `in_zookeeper_mode`: None if no broker said; `features`: admin.features.collect, None if `features_error` says why;
    `topics`: {topic: {setting: value}} of settings that the releases treat differently, None or not all of them
    if `topics_error` says why; `dynamic`: {id as text of each broker that was read, or '' for all: such settings},
    `unread_brokers`: {id: why}; `loggers`: {host: level of kafka.request.logger}; `bootstrap`: for commands;
    `window_s`: for how long clients must have been counted.
    """

    nodes: Mapping[str, NodeFacts]
    hosts: Mapping[str, Mapping[str, Any]]
    in_zookeeper_mode: bool | None
    features: Mapping[str, Any] | None
    topics: Mapping[str, Mapping[str, str]] | None
    dynamic: Mapping[str, Mapping[str, str]]
    loggers: Mapping[str, str | None]
    bootstrap: str
    window_s: float = 0.0
    features_error: str = ""
    topics_error: str = ""
    unread_brokers: Mapping[str, str] = {}

    @property
    def brokers(self) -> dict[str, NodeFacts]:
        """The nodes of the group kafka_broker."""
        return {host: node for host, node in self.nodes.items() if node["role"] == BROKER}

    @property
    def controllers(self) -> dict[str, NodeFacts]:
        """The nodes of the group kafka_controller."""
        return {host: node for host, node in self.nodes.items() if node["role"] == CONTROLLER}


def values_of(node: NodeFacts) -> dict[str, str]:
    """Return the properties in a node's file, those of config providers with their values; {} if it was not read."""
    file = node.get("file") or {}
    return {**(file.get("properties") or {}), **(file.get("resolved") or {})}


def process_of(facts: Facts, host: str) -> Mapping[str, Any]:
    """Return the process of a host's node, {} where none runs or it was not read."""
    return (facts.hosts.get(host) or {}).get("process") or {}


def version_of(facts: Facts, host: str) -> str:
    """Return the version of Kafka that a node runs, or has installed while it is down; '' if it is not known."""
    return process_of(facts, host).get("version") or facts.nodes[host].get("version") or ""


def oldest_running(facts: Facts) -> str:
    """Return the oldest version of Kafka of any node; '' if none is known."""
    known = {version: releases.parse_release(version) for version in (version_of(facts, host) for host in facts.nodes)}
    found = [(release, version) for version, release in known.items() if release]
    return min(found)[1] if found else ""


def grouped(values: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """Return (names of the hosts, value), one for all hosts with the same value; values are hashable."""
    return [(format_names(list(hosts)), value) for hosts, value in group_by_value(values).items()]


def config_command(facts: Facts, kind: str, name: str, action: str) -> str:
    """Return the command that changes the configs of an entity. `kind`: topics, brokers or broker-loggers; `name`: ''
    for the default; `action`: as `--delete-config KEY`."""
    entity = f"--entity-name {name}" if name else "--entity-default"
    return f"bin/kafka-configs.sh --bootstrap-server {facts.bootstrap} --alter --entity-type {kind} {entity} {action}"


def names(values: Sequence[str], most: int = 5) -> str:
    """Return names as a list (format_names)."""
    return format_names(list(values), most)
