# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hazards: partitions and their replicas."""

from __future__ import annotations

from typing import Iterable, Mapping

from .. import phase, restart, zk_metadata
from ..advice import shown
from .facts import Facts, Finding

FRESH_S = 60  # a topic that was made so shortly before the hosts were read, or after, may have had another id then


def partitions(facts: Facts) -> Iterable[Finding]:
    """No partition is offline, under-replicated or under min ISR beyond what a dead broker, told of by the check
    `broker_ids`, takes with it."""
    dead = set(facts.dead)
    found = _mended(facts.cluster.get("topics") or {}, dead)
    do = "wait for the replicas to catch up, or mend the brokers that hold them"
    if not found.get("reached"):
        do = "mend quorumshift_bootstrap_servers and quorumshift_client, or the way from the probe host to the brokers"
    expected = [one for one in phase.broker_ids(facts.cluster) if one not in dead]
    for trouble in restart.troubles(found, facts.min_isr, expected, _excused(facts)):
        yield Finding(trouble, do)


def lost_with(facts: Facts, broker: int) -> list[str]:
    """Return why partitions with a replica on a dead broker are not well, as sentences."""
    found = facts.cluster.get("topics") or {}
    if not found.get("reached"):
        return []
    held = {
        topic: {number: one for number, one in numbers.items() if broker in one["replicas"]}
        for topic, numbers in found["partitions"].items()
    }
    return restart.troubles({**found, "partitions": held}, facts.min_isr, (), _excused(facts))


def _excused(facts: Facts) -> dict[str, str]:
    return restart.unavoidable((facts.cluster.get("topics") or {}).get("partitions") or {}, facts.min_isr)


def _mended(topics: Mapping, dead: set) -> Mapping:
    """Return the topics as they would be with the dead brokers back."""
    if not topics.get("reached") or not dead:
        return topics

    def mended(one: Mapping) -> dict:
        back = [replica for replica in one["replicas"] if replica in dead]
        isr = [*one["isr"], *(replica for replica in back if replica not in one["isr"])]
        return {**one, "isr": isr, "leader": isr[0] if one["leader"] < 0 and back else one["leader"]}

    reported = {
        topic: {number: mended(one) for number, one in numbers.items()}
        for topic, numbers in topics["partitions"].items()
    }
    return {**topics, "partitions": reported}


def reassignments(facts: Facts) -> Iterable[Finding]:
    """No reassignment is in flight."""
    if facts.metadata is None:
        return
    for name in zk_metadata.reassignments(facts.metadata):
        yield Finding(f"{name} is being reassigned", "wait for it, or cancel it: kafka-reassign-partitions.sh --cancel")
    if (facts.zookeeper.get("reassign_partitions") or {}).get("exists"):
        yield Finding(
            "/admin/reassign_partitions exists: a reassignment that the controller has not taken up would be lost",
            "wait for it to be taken up, or cancel it",
        )


def dead_replicas(facts: Facts) -> Iterable[Finding]:
    """Every replica's broker is alive: KRaft waits for every broker in any replica list, for ever."""
    if facts.metadata is None:
        return  # the check `zookeeper` says so
    for broker, names in zk_metadata.unregistered_replicas(facts.metadata).items():
        if int(broker) in facts.dead:
            continue
        yield Finding(
            f"broker {broker} holds replicas and is not there: {shown(names)}",
            "start the broker, or reassign its replicas: the copy to KRaft would wait for it for ever",
        )


def partition_metadata(facts: Facts) -> Iterable[Finding]:
    """Each directory of a partition is of the topic id that ZooKeeper has, and the broker is to hold it: others are put
    aside as -stray, and over one without an id a broker in migration mode fails (LogManager.findStrayReplicas)."""
    if facts.metadata is None:
        return  # the check `zookeeper` says so
    for host, node in sorted(facts.brokers.items()):
        reported = (node.get("paths") or {}).get("replicas")
        if reported:
            yield from _directories(host, reported, _Assigned(facts.metadata["topics"], node))
        left = [name for directory in node.get("log_dirs") or [] for name in directory.get("stray") or []]
        if left:
            yield Finding(
                f"{host} has directories that a broker put aside earlier: {shown(left)}",
                "see whether anybody misses what is in them, then move them away: after the roll a new one is to be "
                "seen",
                warns=True,
            )


class _Assigned:
    """What ZooKeeper says of the partitions that were found on a host."""

    def __init__(self, topics: Mapping, node: Mapping):
        self.topics, self.broker = topics, node.get("node_id")
        self.fresh_ms = ((node.get("time") or 0) - FRESH_S) * 1000

    def fresh(self, topic: str) -> bool:
        """Say whether a topic may have been made, or made anew, while the hosts were read."""
        return (self.topics.get(topic, {}).get("created_ms") or 0) > self.fresh_ms

    def kind(self, topic: str, partition: int, topic_id: str) -> str:
        """Return `right`, `wrong` (of another id) or `stray` (not the broker's); what cannot be known yet is right."""
        known = self.topics.get(topic)
        if known is None:
            return "stray"
        if known["topic_id"] is None or self.fresh(topic):
            return "right"  # the check `unreadable` tells of a topic without an id
        if self.broker not in known["partitions"].get(str(partition), {}).get("replicas", ()):
            return "stray"
        return "right" if known["topic_id"] == topic_id else "wrong"


def _directories(host: str, reported: Mapping, assigned: _Assigned) -> Iterable[Finding]:
    found = [(topic, number, one) for topic, (one, numbers) in reported["topics"].items() for number in numbers]
    found += [(one["topic"], one["partition"], one["id"]) for one in reported["others"] if one["id"]]
    names: dict[str, list[str]] = {"right": [], "wrong": [], "stray": []}
    for topic, number, one in sorted(found):
        names[assigned.kind(topic, number, one)].append(f"{topic}-{number}")
    errors = [one["error"] for one in reported["others"] if one["error"]]
    silent = [one for one in reported["others"] if not (one["id"] or one["error"] or assigned.fresh(one["topic"]))]
    without = [one["path"] for one in silent]
    again = "restart the broker in plain ZooKeeper mode, which writes that file for each partition that it is to hold"
    if errors:
        yield Finding(
            f"{host}: {shown(errors, 2)}",
            f"at its next start the broker takes the whole log directory for failed. Remove the file and {again}",
        )
    if without:
        yield Finding(
            f"{host} has directories without partition.metadata: {shown(without)}",
            f"{again}, and move any other directory out of there. Over one that is left the broker fails to follow "
            "KRaft's controllers in migration mode, and in KRaft mode it puts it aside as -stray",
        )
    if names["wrong"]:
        yield Finding(
            f"{host} holds partitions under another topic id than ZooKeeper's: {shown(names['wrong'])}",
            "see that each is in sync on another broker, stop this one, move the directories away and start it: it "
            "copies them anew. In migration or KRaft mode it puts them aside as -stray, and begins empty where it is "
            "the only one",
        )
    if reported["twice"]:
        yield Finding(
            f"{host} has partitions in two log directories: {shown(reported['twice'])}",
            "stop the broker, and move away the one of each that is older: with both it does not start again",
        )
    if names["stray"]:
        yield Finding(
            f"{host} has directories of partitions that ZooKeeper does not place there: {shown(names['stray'])}",
            "unless they were deleted or moved in these minutes, see what they are and move them away: in migration or "
            "KRaft mode the broker renames them to -stray",
            warns=True,
        )
