# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of partitions and their replicas."""

from __future__ import annotations

from typing import Iterable, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import reassignment
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import cluster_health
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase, zk_metadata
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight.check_facts import Facts
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import Finding, format_names
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import Partition, Topics

FRESH_S = 60  # a topic created within this time before its hosts were read may have had another id then


def partitions(facts: Facts) -> Iterable[Finding]:
    """Yield offline, under-replicated and under-min-ISR partitions, except for the replicas of dead brokers, which the
    check `broker_ids` reports."""
    dead = set(facts.dead)
    topics = _count_dead_in_sync(facts.cluster.get("topics") or {}, dead)
    do = "wait for the replicas to catch up, or fix the brokers that hold them"
    if not topics.get("reached"):
        do = "fix quorumshift_bootstrap_servers, quorumshift_client, or the probe host's connection to the brokers"
    expected = [broker for broker in phase.broker_ids(facts.cluster) if broker not in dead]
    for trouble in cluster_health.troubles(topics, facts.min_isr, expected, _excused(facts)):
        yield Finding(trouble, do)


def find_lost_with(facts: Facts, broker: int) -> list[str]:
    """Return the problems of partitions with a replica on a dead broker, as sentences."""
    topics = facts.cluster.get("topics") or {}
    if not topics.get("reached"):
        return []
    held = {
        topic: {number: partition for number, partition in partitions.items() if broker in partition["replicas"]}
        for topic, partitions in topics["partitions"].items()
    }
    return cluster_health.troubles({**topics, "partitions": held}, facts.min_isr, (), _excused(facts))


def _excused(facts: Facts) -> dict[str, str]:
    return cluster_health.find_unavoidable((facts.cluster.get("topics") or {}).get("partitions") or {}, facts.min_isr)


def _count_dead_in_sync(topics: Topics, dead: set) -> Topics:
    """Return the topics as if the replicas of dead brokers were in sync."""
    if not topics.get("reached") or not dead:
        return topics

    def in_sync(partition: Partition) -> Partition:
        back = [replica for replica in partition["replicas"] if replica in dead]
        isr = [*partition["isr"], *(replica for replica in back if replica not in partition["isr"])]
        leader = isr[0] if partition["leader"] < 0 and back else partition["leader"]
        return {**partition, "isr": isr, "leader": leader}

    changed = {
        topic: {number: in_sync(partition) for number, partition in partitions.items()}
        for topic, partitions in topics["partitions"].items()
    }
    return {**topics, "partitions": changed}


def reassignments(facts: Facts) -> Iterable[Finding]:
    """Yield the reassignments in flight."""
    if facts.metadata is None:
        return
    for name in zk_metadata.reassignments(facts.metadata):
        yield Finding(
            f"{name} is being reassigned",
            "wait until it completes, or cancel it: kafka-reassign-partitions.sh --cancel",
        )
    if (facts.zookeeper.get("reassign_partitions") or {}).get("exists"):
        yield Finding(
            "/admin/reassign_partitions exists: the initial copy would lose a reassignment that has not started",
            "wait until the controller starts it, or cancel it",
        )


def throttles(facts: Facts) -> Iterable[Finding]:
    """Yield the replication throttles: those that slow replicas down block, half a throttle warns."""
    if facts.metadata is None:
        return  # the check `zookeeper` reports it
    kinds = {"topic": reassignment.TOPIC, "broker": reassignment.BROKER}
    configs = {
        (kinds[kind], name): {key: value for key, value in values.items() if value is not None}
        for kind, entities in facts.metadata["configs"].items()
        for name, values in entities.items()
    }
    found = reassignment.report_left_throttles(configs, facts.bootstrap)
    if found:
        seen, do, slow = found
        yield Finding(f"replication is throttled: {seen}", do, warns=not slow)


def dead_replicas(facts: Facts) -> Iterable[Finding]:
    """Yield the brokers that hold replicas and are not registered: the initial copy waits for them forever."""
    if facts.metadata is None:
        return  # the check `zookeeper` reports it
    for broker, names in zk_metadata.find_unregistered_replicas(facts.metadata).items():
        if int(broker) in facts.dead:
            continue
        yield Finding(
            f"broker {broker} holds replicas but is not registered in ZooKeeper: {format_names(names)}",
            "start the broker, or reassign its replicas: the initial copy waits for it forever",
        )


def partition_metadata(facts: Facts) -> Iterable[Finding]:
    """Yield the partition directories that the broker would rename to -stray, or fail on, in migration mode: without a
    topic id, with another one than ZooKeeper's, or of another broker (LogManager.findStrayReplicas)."""
    if facts.metadata is None:
        return  # the check `zookeeper` reports it
    for host, node in sorted(facts.brokers.items()):
        held = (node.get("paths") or {}).get("replicas")
        if held:
            yield from _directories(host, held, _Assigned(facts.metadata["topics"], node))
        left = [name for directory in node.get("log_dirs") or [] for name in directory.get("stray") or []]
        if left:
            yield Finding(
                f"{host} has old -stray directories: {format_names(left)}",
                "check whether you need their content, then move them away: new ones must be visible after the "
                "rolling restart",
                warns=True,
            )


class _Assigned:
    """Compares the partitions of a host with their assignment in ZooKeeper."""

    def __init__(self, topics: Mapping, node: Mapping):
        self.topics, self.broker = topics, node.get("node_id")
        self.fresh_ms = ((node.get("time") or 0) - FRESH_S) * 1000

    def fresh(self, topic: str) -> bool:
        """Return whether a topic may have been created, or created again, while the hosts were read."""
        return (self.topics.get(topic, {}).get("created_ms") or 0) > self.fresh_ms

    def kind(self, topic: str, partition: int, topic_id: str) -> str:
        """Return `wrong` (another topic id), `stray` (not assigned to the broker) or `right`, also if unknown yet."""
        known = self.topics.get(topic)
        if known is None:
            return "stray"
        if known["topic_id"] is None or self.fresh(topic):
            return "right"  # the check `unreadable` reports a topic without an id
        if self.broker not in known["partitions"].get(str(partition), {}).get("replicas", ()):
            return "stray"
        return "right" if known["topic_id"] == topic_id else "wrong"


def _directories(host: str, held: Mapping, assigned: _Assigned) -> Iterable[Finding]:
    partitions = [(topic, number, uuid) for topic, (uuid, numbers) in held["topics"].items() for number in numbers]
    partitions += [(other["topic"], other["partition"], other["id"]) for other in held["others"] if other["id"]]
    names: dict[str, list[str]] = {"right": [], "wrong": [], "stray": []}
    for topic, number, uuid in sorted(partitions):
        names[assigned.kind(topic, number, uuid)].append(f"{topic}-{number}")
    errors = [other["error"] for other in held["others"] if other["error"]]
    without = [
        other["path"]
        for other in held["others"]
        if not (other["id"] or other["error"] or assigned.fresh(other["topic"]))
    ]
    rewrite = "restart the broker in plain ZooKeeper mode, which writes the file for each partition assigned to it"
    if errors:
        yield Finding(
            f"{host}: {format_names(errors, 2)}",
            f"remove the file and {rewrite}. Otherwise the broker marks the log directory as failed at its next start",
        )
    if without:
        yield Finding(
            f"{host} has directories without partition.metadata: {format_names(without)}",
            f"{rewrite}. Move away each directory that still has no file: in migration mode the broker fails on it, in "
            "KRaft mode it renames it to -stray",
        )
    if names["wrong"]:
        yield Finding(
            f"{host} has partitions with another topic id than ZooKeeper's: {format_names(names['wrong'])}",
            "check that each partition is in sync on another broker, stop this broker, move the directories away and "
            "start it: it replicates them again. In migration or KRaft mode it renames them to -stray, and a partition "
            "without another replica starts empty",
        )
    if held["twice"]:
        yield Finding(
            f"{host} has partitions in two log directories: {format_names(held['twice'])}",
            "stop the broker and move away the older directory of each: with both the broker does not start again",
        )
    if names["stray"]:
        yield Finding(
            f"{host} has directories of partitions that ZooKeeper does not assign to it: "
            f"{format_names(names['stray'])}",
            "check what they are and move them away, unless the partitions were deleted or moved just now: in "
            "migration or KRaft mode the broker renames them to -stray",
            warns=True,
        )
