# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hazards: what the controller of ZooKeeper mode is asked to do, and does within moments on a healthy cluster.

Clients ask for it all the time, so what is seen once is no finding: `under_way` tells what one look shows, and a check
finds what every look has shown while the module waited (Facts.lasting).
"""

from __future__ import annotations

from typing import Iterable, Mapping

from ..advice import shown
from .facts import Facts, Finding

CHECKS = DELETIONS, ELECTIONS, STATES = "deletions", "elections", "partition_states"


def under_way(facts: Facts) -> dict[str, list[str]]:
    """Return {check id: sorted topics or partitions} of what is asked for and not done."""
    if facts.metadata is None:
        return {}
    pending = set(facts.metadata["delete_topics"])
    election = facts.zookeeper.get("preferred_replica_election") or {}
    return {
        DELETIONS: sorted(pending),
        ELECTIONS: sorted(f"{one['topic']}-{one['partition']}" for one in election.get("partitions") or ()),
        STATES: sorted(
            f"{name}-{number}"
            for name, topic in facts.metadata["topics"].items()
            if name not in pending
            for number, one in topic["partitions"].items()
            if one["leader"] is None
        ),
    }


def lasting(facts: Facts, before: Mapping[str, Iterable[str]] | None) -> dict[str, list[str]]:
    """Return `under_way` without what an earlier look (`before`, None: there was none) has not shown."""
    reported = under_way(facts)
    if before is None:
        return reported
    return {check: [name for name in names if name in set(before.get(check, ()))] for check, names in reported.items()}


def deletions(facts: Facts) -> Iterable[Finding]:
    """No topic waits for its deletion: the copy leaves such a topic out, and its files stay on the disks as strays."""
    for names in _lasting(facts, DELETIONS):
        yield Finding(
            f"the deletion of {shown(names)} does not end",
            "start the broker that holds a replica and is down. With the copy such a topic is gone, and its "
            "directories stay on the disks, renamed to -stray",
        )


def elections(facts: Facts) -> Iterable[Finding]:
    """No election of preferred leaders waits in ZooKeeper: it is not copied."""
    for names in _lasting(facts, ELECTIONS):
        yield Finding(
            f"/admin/preferred_replica_election asks for elections of {shown(names)}, and no controller takes it up",
            "look at the controller's log, or delete the znode and ask again: kafka-leader-election.sh",
        )


def partition_states(facts: Facts) -> Iterable[Finding]:
    """Every partition has its state: KRaft's controllers drop changes that hold one without."""
    for names in _lasting(facts, STATES):
        yield Finding(
            f"ZooKeeper has no state of {shown(names)}: no leader was ever elected",
            "start a broker that is to hold a replica, or delete the topic",
        )


def _lasting(facts: Facts, check: str) -> list[list[str]]:
    names = facts.lasting.get(check)
    return [list(names)] if names else []
