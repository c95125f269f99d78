# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rolling upgrade of Kafka's binaries: which nodes need it, in which order, and why one may not begin. Pure.

Source: Kafka's documentation, "Upgrading". An upgrade has two steps. The binaries can be taken back as long as the
second step was not made, which raises inter.broker.protocol.version in ZooKeeper mode, and metadata.version in KRaft
mode. core.releases.levels has what finalized levels allow.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import kafka_homes
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration.kraft_config import PROTOCOL
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration.transitions import BROKER
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import (
    feature_changes,
    features,
    kafka_releases,
    levels,
    releases,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import format_names
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import NodeFacts

BROKERS, CONTROLLERS = "upgrade_broker", "upgrade_controller"
LAST_WITH_ZOOKEEPER, FIRST_WITHOUT = releases.WANTED, releases.FIRST_WITHOUT_ZOOKEEPER
WAY_FROM_ZOOKEEPER = (
    f"Upgrade to {releases.format_release(LAST_WITH_ZOOKEEPER)}, migrate with quorumshift.kafka.migrate, and upgrade "
    "then"
)

# What to set in place of a key that a release does not know any more; nothing replaces the others
_REPLACED_BY = {
    "delegation.token.master.key": "delegation.token.secret.key",
    "log.message.timestamp.difference.max.ms": "log.message.timestamp.before.max.ms and "
    "log.message.timestamp.after.max.ms",
    "unstable.metadata.versions.enable": "unstable.feature.versions.enable",
}


class Host(NamedTuple):
    """One node of an upgrade. `version`: that runs, or is installed where none runs; `protocol`: of its properties
    file, "" if not set; `home`: what the module kafka_home read there, {} if it did not."""

    role: str
    version: str | None
    runs: bool
    protocol: str
    home: Mapping[str, Any]


class Binaries(NamedTuple):
    """The first step. `order`: kinds of restarts, one after the other; `ready`: hosts that run the target; `switched`:
    hosts without a running node, whose link alone is switched; `lowers`: whether the target is older; `protocol`: the
    inter.broker.protocol.version that brokers without one keep, "" in KRaft mode; `removed`: {host: {key: what to set
    instead}}."""

    order: List[str]
    ready: List[str]
    switched: List[str]
    lowers: bool
    protocol: str
    removed: Dict[str, Dict[str, str]]


def hosts_from_facts(nodes: Mapping[str, NodeFacts], homes: Mapping[str, Mapping[str, Any]]) -> Dict[str, Host]:
    """Return the hosts of an upgrade."""
    return {
        host: Host(
            node["role"],
            node.get("version"),
            bool((node.get("service") or {}).get("active")),
            ((node.get("file") or {}).get("properties") or {}).get(PROTOCOL, ""),
            homes.get(host) or {},
        )
        for host, node in nodes.items()
    }


def plan_binaries(
    hosts: Mapping[str, Host], target: str, in_zookeeper_mode: bool, removed_keys: Mapping[str, Mapping[str, str]]
) -> Binaries:
    """Return the first step; call it once `refusals` returns none. `removed_keys`: of `find_removed_keys`."""
    found = _find_restarted(hosts, in_zookeeper_mode)
    ready = [host for host, node in sorted(found.items()) if node.runs and node.version == target]
    idle = {host: node for host, node in hosts.items() if host not in found}
    switched = [host for host, node in sorted(idle.items()) if node.home["home"]["is_link"] and node.version != target]
    lowers = is_lowered(found, target)
    order = [BROKERS] if in_zookeeper_mode else [BROKERS, CONTROLLERS] if lowers else [CONTROLLERS, BROKERS]
    kept = ""
    if in_zookeeper_mode:
        kept = releases.format_release(min(_protocols(hosts).values()))
    return Binaries(order, ready, switched, lowers, kept, {host: dict(keys) for host, keys in removed_keys.items()})


def explain_left(hosts: Mapping[str, Host], target: str, in_zookeeper_mode: bool) -> List[str]:
    """Return why an upgrade or downgrade is not done, one sentence a host; [] when every node runs the target and every
    other host has it."""
    found = _find_restarted(hosts, in_zookeeper_mode)
    reasons = []
    for host, node in sorted(hosts.items()):
        if host in found and not node.runs:
            reasons.append(
                f"{host} does not run, so it is unknown whether Kafka {target} starts there (QS-RESTART-004)"
            )
        elif node.version != target and (host in found or node.home["home"]["is_link"]):
            reasons.append(f"{host} has Kafka {node.version or 'of an unknown version'}, not {target} (QS-RESTART-004)")
    return reasons


def find_removed_keys(files: Mapping[str, Mapping[str, str]], target: str) -> Dict[str, Dict[str, str]]:
    """Return the keys of properties files that the target does not know, {host: {key: what to set instead, or ''}}.

    `files`: {host: properties}.
    """
    found = {}
    for host, values in sorted(files.items()):
        keys = sorted(releases.find_unknown_keys(target, values))
        if keys:
            found[host] = {key: _find_replacement(key, target) for key in keys}
    return found


def _find_replacement(key: str, target: str) -> str:
    """Return what to set in place of a key, '' if the target does not know that either."""
    more = _REPLACED_BY.get(key, "")
    return "" if releases.find_unknown_keys(target, more.split(" and ")) else more


def refusals(
    hosts: Mapping[str, Host],
    target: str,
    in_zookeeper_mode: bool,
    finalized: Mapping[str, int],
    announced: levels.Announced | None = None,
) -> List[str]:
    """Return why the binaries may not be changed to the target, as sentences.

    `finalized`: levels of the features; `announced`: of levels.find_announced.
    """
    release = releases.parse_release(target)
    if release is None:
        return [
            f"Kafka {target} is {releases.describe_kind(target)}. Set upgrade_to to the version in the name of its "
            "jar (QS-RESTART-004)"
        ]
    without_zookeeper = explain_zookeeper(target, in_zookeeper_mode)
    if without_zookeeper:
        return [f"{without_zookeeper}. {WAY_FROM_ZOOKEEPER} (QS-RESTART-004)"]
    found = _find_restarted(hosts, in_zookeeper_mode)
    reasons = [
        (
            f"the Kafka version of {host} could not be read. Set quorumshift_kafka_home to the directory that has "
            "libs/ (QS-RESTART-004)"
        )
        for host, node in sorted(found.items())
        if node.version is None
    ]
    for host, node in sorted(hosts.items()):
        reasons += kafka_homes.refusals(host, node.version, node.home, target, must=host in found)
        reasons += _check_java(host, node, release) if host in found or node.home.get("home", {}).get("is_link") else []
    versions = sorted({node.version for node in found.values() if node.version and node.version != target})
    if len(versions) > 1:
        mixed = ", ".join(f"{host} {node.version}" for host, node in sorted(found.items()))
        reasons.append(
            f"versions are mixed: {mixed}. An upgrade to {target} begins from one version. Finish the earlier upgrade "
            "first, or take it back: run this playbook with its version and directory (QS-RESTART-004)"
        )
    if in_zookeeper_mode:
        return reasons + _check_protocol(found, target, release)
    running = {releases.parse_release(version) for version in versions} - {None}
    return reasons + levels.refusals(target, running, finalized, announced)


def find_due_protocols(hosts: Mapping[str, Host], target: str) -> Dict[str, str]:
    """Return the brokers whose inter.broker.protocol.version is not the target's, {host: value}."""
    release = releases.parse_release(target) or (0, 0)
    found = _protocols(hosts)
    return {host: releases.format_release(value) for host, value in sorted(found.items()) if value < release}


def find_not_upgraded(hosts: Mapping[str, Host], target: str, in_zookeeper_mode: bool) -> List[str]:
    """Return the nodes that do not run the target."""
    found = _find_restarted(hosts, in_zookeeper_mode)
    return [host for host, node in sorted(found.items()) if not node.runs or node.version != target]


def token(cluster_id: str, target: str) -> str:
    """Return what confirms the second step, after which the binaries cannot be taken back."""
    return f"{cluster_id}:{releases.format_release(releases.parse_release(target) or ())}"


def level_of_target(target: str, highest_common: int) -> int:
    """Return the metadata.version of a release; of one that the tool does not know, the highest that all nodes
    support."""
    return min(highest_level(target, {}), highest_common) or highest_common


def levels_of_target(
    target: str,
    finalized: Mapping[str, int],
    supported: Mapping[str, Mapping[str, features.Range]],
    static_voters: bool,
) -> Dict[str, int]:
    """Return the levels that finish an upgrade, {feature: level} of those that rise: metadata.version, and of a release
    that the tool knows every other feature as in a new cluster. `supported`: {node: {feature: Range}}."""
    release = releases.parse_release(target) or (0, 0)
    known = release in kafka_releases.RELEASES
    wanted = feature_changes.levels_up_to(releases.format_release(release), finalized, static_voters) if known else {}
    found = {name: min(level, features.highest_common(name, supported)) for name, level in wanted.items()}
    found[features.METADATA_VERSION] = level_of_target(
        target, features.highest_common(features.METADATA_VERSION, supported)
    )
    return {name: level for name, level in sorted(found.items()) if level > finalized.get(name, 0)}


def highest_level(target: str, announced: levels.Announced) -> int:
    """Return the highest metadata.version of a release, 0 if it is not known."""
    known = levels.ranges(releases.parse_release(target) or (0, 0), announced) or {}
    return known[features.METADATA_VERSION].highest if features.METADATA_VERSION in known else 0


def _find_restarted(hosts: Mapping[str, Host], in_zookeeper_mode: bool) -> Dict[str, Host]:
    """Return the nodes that are restarted: in ZooKeeper mode, controllers need not run yet."""
    return {host: node for host, node in hosts.items() if node.role == BROKER or not in_zookeeper_mode or node.runs}


def _protocols(hosts: Mapping[str, Host]) -> Dict[str, Tuple[int, ...]]:
    """Return the inter.broker.protocol.version of each broker: of its file, or its release's."""
    found = {}
    for host, node in hosts.items():
        if node.role == BROKER:
            found[host] = (
                releases.parse_protocol(node.protocol) if node.protocol else releases.parse_release(node.version or "")
            )
    return {host: value or (0, 0) for host, value in found.items()}


def is_lowered(found: Mapping[str, Host], target: str) -> bool:
    others = {releases.parse_release(node.version or "") for node in found.values() if node.version != target}
    release = releases.parse_release(target) or (0, 0)
    return any(other is not None and other > release for other in others)


def explain_zookeeper(target: str, in_zookeeper_mode: bool) -> str:
    """Return that the target has no ZooKeeper and the cluster is in ZooKeeper mode; '' otherwise."""
    release = releases.parse_release(target)
    if release is None or not in_zookeeper_mode or release < FIRST_WITHOUT:
        return ""
    return f"Kafka {target} has no ZooKeeper, and this cluster is in ZooKeeper mode"


def explain_java(java: int | None, release: Tuple[int, int]) -> str:
    """Return that a release needs a newer Java than a node runs, as the end of a sentence; '' otherwise, and where
    either is not known."""
    needed = releases.required_java(release)
    if java is None or needed is None or java >= needed:
        return ""
    return f"and Kafka {releases.format_release(release)} needs Java {needed}"


def _check_java(host: str, node: Host, release: Tuple[int, int]) -> List[str]:
    java = node.home.get("java")
    why = explain_java(java, release)
    return [f"{host} runs Java {java}, {why}. Install it for the service"] if why else []


def _check_protocol(found: Mapping[str, Host], target: str, release: Tuple[int, int]) -> List[str]:
    protocols = _protocols(found)
    values = sorted(set(protocols.values()) - {release})
    if len(values) > 1:
        each = ", ".join(f"{host} {releases.format_release(value)}" for host, value in sorted(protocols.items()))
        return [f"{PROTOCOL} differs: {each}. Set one value in every broker's file, and restart them one by one"]
    above = {host: value for host, value in sorted(protocols.items()) if value > release}
    if not above:
        return []
    value = releases.format_release(max(above.values()))
    return [
        f"{PROTOCOL} is {value} on {format_names(list(above))}, and Kafka {target} is older: brokers that used {value} "
        f"cannot go back. Choose a release from {value} on"
    ]
