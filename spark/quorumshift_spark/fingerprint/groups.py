# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks that committed offsets of consumer groups never decrease. Pure."""

from __future__ import annotations

from typing import Dict, Mapping, NamedTuple

from quorumshift_spark.compare import MATCH
from quorumshift_spark.fingerprint.findings import Findings
from quorumshift_spark.fingerprint.plan import TopicPartition

KIND = "group_offset"

_INACTIVE = ("EMPTY", "DEAD")


class Group(NamedTuple):
    """A consumer group: its state in Kafka, upper case; its committed offsets: {(topic, partition): offset}."""

    state: str
    offsets: Mapping[TopicPartition, int]


def compare(
    was: Mapping[str, Group],
    now: Mapping[str, Group],
    log_ends: Mapping[TopicPartition, int],
    elapsed_ms: int,
    retention_ms: int,
) -> Findings:
    """Compare the groups' offsets with the baseline.

    :arg log_ends: high watermarks, read after the groups; a partition that is missing was deleted.
    :arg retention_ms: the brokers' offsets.retention.minutes, after which Kafka deletes offsets of a group without
        members, or of a topic that it no longer reads (KIP-211).
    """
    findings = Findings()
    for name, group in sorted(was.items()):
        current = now[name].offsets if name in now else {}
        may_expire = group.state in _INACTIVE or elapsed_ms >= retention_ms
        for tp, offset in sorted(group.offsets.items()):
            if tp not in current:
                _missing(name, tp, offset, tp in log_ends, may_expire, findings)
            elif current[tp] < offset:
                findings.count(KIND, "differ")
                findings.differ(KIND, [name, *tp], "offset", offset, current[tp], "group_regressed")
            else:
                _within(name, tp, current[tp], log_ends, None, findings)
    for name, group in sorted(now.items()):
        known: Mapping[TopicPartition, int] = was[name].offsets if name in was else {}
        for tp, offset in sorted(group.offsets.items()):
            if tp not in known:
                _within(name, tp, offset, log_ends, "first commit since the baseline", findings)
    return findings


def _missing(name, tp, offset, topic_exists, may_expire, findings):
    if not topic_exists:
        findings.explain(KIND, "the topic was deleted")
    elif may_expire:
        findings.explain(KIND, "may have expired (offsets.retention.minutes) or been deleted")
    else:
        findings.count(KIND, "left_only")
        findings.differ(KIND, [name, *tp], "offset", offset, None, "group_offset_missing")


def _within(name, tp, offset, log_ends, why, findings):
    """Check that a committed offset is within the log; otherwise records that the group had read are lost."""
    if tp in log_ends and offset > log_ends[tp]:
        findings.count(KIND, "differ")
        sides = {"committed": offset}, {"committed": offset, "log end": log_ends[tp]}
        findings.differ(KIND, [name, *tp], "offset", *sides, "group_beyond_end")
    elif why:
        findings.explain(KIND, why)
    else:
        findings.count(KIND, MATCH)


def by_name(rows: Mapping[str, Dict[TopicPartition, int]], states: Mapping[str, str]) -> Dict[str, Group]:
    """Return the groups, from the results of two requests."""
    return {name: Group(states.get(name, "UNKNOWN").upper(), offsets) for name, offsets in rows.items()}
