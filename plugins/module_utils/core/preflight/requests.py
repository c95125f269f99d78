# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of requests that ZooKeeper's controller completes within moments on a healthy cluster.

Clients send them all the time, so a request that is seen once is no finding. `find_under_way` returns the requests of
one read; the checks report the requests that every read has shown while the module waited (Facts.lasting).
"""

from __future__ import annotations

from typing import Iterable, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight.check_facts import Facts
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import Finding, format_names

CHECKS = DELETIONS, ELECTIONS, STATES = "deletions", "elections", "partition_states"


def find_under_way(facts: Facts) -> dict[str, list[str]]:
    """Return {check id: sorted topics or partitions} of the requests that are not completed."""
    if facts.metadata is None:
        return {}
    pending = set(facts.metadata["delete_topics"])
    election = facts.zookeeper.get("preferred_replica_election") or {}
    return {
        DELETIONS: sorted(pending),
        ELECTIONS: sorted(f"{asked['topic']}-{asked['partition']}" for asked in election.get("partitions") or ()),
        STATES: sorted(
            f"{name}-{number}"
            for name, topic in facts.metadata["topics"].items()
            if name not in pending
            for number, partition in topic["partitions"].items()
            if partition["leader"] is None
        ),
    }


def find_lasting(facts: Facts, before: Mapping[str, Iterable[str]] | None) -> dict[str, list[str]]:
    """Return `find_under_way`, limited to what the earlier reads (`before`, None at the first read) have shown too."""
    now = find_under_way(facts)
    if before is None:
        return now
    return {check: [name for name in names if name in set(before.get(check, ()))] for check, names in now.items()}


def deletions(facts: Facts) -> Iterable[Finding]:
    """Yield the pending topic deletions: the initial copy leaves these topics out, their files stay as -stray."""
    for names in _lasting(facts, DELETIONS):
        yield Finding(
            f"the deletion of {format_names(names)} does not complete",
            "start the broker that is down and holds a replica. The initial copy leaves the topic out, and its "
            "directories stay on the disks, renamed to -stray",
        )


def elections(facts: Facts) -> Iterable[Finding]:
    """Yield the pending elections of preferred leaders: the initial copy leaves them out."""
    for names in _lasting(facts, ELECTIONS):
        yield Finding(
            f"/admin/preferred_replica_election requests elections of {format_names(names)}, but no controller starts "
            "them",
            "check the controller's log, or delete the znode and request the elections again: kafka-leader-election.sh",
        )


def partition_states(facts: Facts) -> Iterable[Finding]:
    """Yield the partitions without a state: KRaft's controllers drop changes that contain one."""
    for names in _lasting(facts, STATES):
        yield Finding(
            f"ZooKeeper has no partition state of {format_names(names)}: no leader was ever elected",
            "start a broker of the replica list, or delete the topic",
        )


def _lasting(facts: Facts, check: str) -> list[list[str]]:
    names = facts.lasting.get(check)
    return [list(names)] if names else []
