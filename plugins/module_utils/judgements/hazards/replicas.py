# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hazards: partitions and their replicas."""

from __future__ import annotations

from typing import Iterable, Mapping

from .. import phase, restart, zk_metadata
from .facts import Facts, Found


def partitions(facts: Facts) -> Iterable[Found]:
    """No partition is offline, under-replicated or under min ISR beyond what a dead broker, told of by the check
    `broker_ids`, takes with it."""
    dead = set(facts.dead)
    found = _mended(facts.cluster.get("topics") or {}, dead)
    do = "wait for the replicas to catch up, or mend the brokers that hold them"
    if not found.get("reached"):
        do = "mend quorumshift_bootstrap_servers and quorumshift_client, or the way from the probe host to the brokers"
    expected = [one for one in phase.broker_ids(facts.cluster) if one not in dead]
    for trouble in restart.troubles(found, facts.min_isr, expected, _excused(facts)):
        yield Found(trouble, do)


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

    told = {
        topic: {number: mended(one) for number, one in numbers.items()}
        for topic, numbers in topics["partitions"].items()
    }
    return {**topics, "partitions": told}


def reassignments(facts: Facts) -> Iterable[Found]:
    """No reassignment is in flight."""
    if facts.metadata is None:
        return
    for name in zk_metadata.reassignments(facts.metadata):
        yield Found(f"{name} is being reassigned", "wait for it, or cancel it: kafka-reassign-partitions.sh --cancel")
    if (facts.zookeeper.get("reassign_partitions") or {}).get("exists"):
        yield Found(
            "/admin/reassign_partitions exists: a reassignment that the controller has not taken up would be lost",
            "wait for it to be taken up, or cancel it",
        )


def dead_replicas(facts: Facts) -> Iterable[Found]:
    """Every replica's broker is alive: KRaft waits for every broker in any replica list, for ever."""
    if facts.metadata is None:
        return  # the check `zookeeper` says so
    for broker, names in zk_metadata.unregistered_replicas(facts.metadata).items():
        if int(broker) in facts.dead:
            continue
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        yield Found(
            f"broker {broker} holds replicas and is not there: {shown}",
            "start the broker, or reassign its replicas: the copy to KRaft would wait for it for ever",
        )
