# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Committed offsets of consumer groups never go back. Pure."""

from __future__ import annotations

from typing import Dict, Mapping, NamedTuple

from quorumshift_spark.compare import MATCH
from quorumshift_spark.fingerprint.findings import Findings
from quorumshift_spark.fingerprint.plan import TopicPartition

KIND = "group_offset"

_INACTIVE = ("EMPTY", "DEAD")


class Group(NamedTuple):
    """A consumer group: its state (Kafka's word, upper case); what it has committed: {(topic, partition): offset}."""

    state: str
    offsets: Mapping[TopicPartition, int]


def compare(
    was: Mapping[str, Group],
    now: Mapping[str, Group],
    log_ends: Mapping[TopicPartition, int],
    elapsed_ms: int,
    retention_ms: int,
) -> Findings:
    """Compare the groups' offsets with the baseline's.

    :arg log_ends: high watermarks, read after the groups; a partition that is missing here exists no more.
    :arg retention_ms: the brokers' offsets.retention.minutes: offsets of a group without members, or of a topic that
        it does not read any more, are dropped after that long (KIP-211).
    """
    found = Findings()
    for name, group in sorted(was.items()):
        current = now[name].offsets if name in now else {}
        may_expire = group.state in _INACTIVE or elapsed_ms >= retention_ms
        for place, offset in sorted(group.offsets.items()):
            if place not in current:
                _missing(name, place, offset, place in log_ends, may_expire, found)
            elif current[place] < offset:
                found.count(KIND, "differ")
                found.differ(KIND, [name, *place], "offset", offset, current[place], "group_regressed")
            else:
                _within(name, place, current[place], log_ends, None, found)
    for name, group in sorted(now.items()):
        known: Mapping[TopicPartition, int] = was[name].offsets if name in was else {}
        for place, offset in sorted(group.offsets.items()):
            if place not in known:
                _within(name, place, offset, log_ends, "first commit since the baseline", found)
    return found


def _missing(name, place, offset, topic_exists, may_expire, found):
    if not topic_exists:
        found.explain(KIND, "the topic exists no more")
    elif may_expire:
        found.explain(KIND, "may have expired (offsets.retention.minutes) or been deleted")
    else:
        found.count(KIND, "left_only")
        found.differ(KIND, [name, *place], "offset", offset, None, "group_offset_missing")


def _within(name, place, offset, log_ends, why, found):
    """A committed offset lies within the log, or the records that the group had read are gone."""
    if place in log_ends and offset > log_ends[place]:
        found.count(KIND, "differ")
        sides = {"committed": offset}, {"committed": offset, "log end": log_ends[place]}
        found.differ(KIND, [name, *place], "offset", *sides, "group_beyond_end")
    elif why:
        found.explain(KIND, why)
    else:
        found.count(KIND, MATCH)


def by_name(rows: Mapping[str, Dict[TopicPartition, int]], states: Mapping[str, str]) -> Dict[str, Group]:
    """Groups from what was asked in two requests."""
    return {name: Group(states.get(name, "UNKNOWN").upper(), offsets) for name, offsets in rows.items()}
