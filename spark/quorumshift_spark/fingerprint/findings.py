# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was found: differences, and how many things were compared with which outcome. Pure."""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, List, Mapping, NamedTuple, Tuple

from quorumshift_spark.compare import MATCH, OUTCOMES, Difference
from quorumshift_spark.normal_form import canonical
from quorumshift_spark.rules import BASELINE, SINCE

CLUSTER = "cluster"
"""The view that is compared with the baseline; the baseline is the left side."""


class Findings:
    """Counts and differences of one comparison.

    `counts`: {kind: accounting.Counts}: read is the sum of the outcomes, `explained` a part of match: what is gone, new
    or newer for a reason that Kafka gives. `explained`: {(kind, reason): number}. `skipped`: (kind, key, why) of what
    could not be compared.
    """

    def __init__(self) -> None:
        self.counts: Dict[str, Dict[str, int]] = {}
        self.explained: Counter = Counter()
        self.differences: List[Difference] = []
        self.skipped: List[Tuple[str, str, str]] = []

    def count(self, kind: str, outcome: str, number: int = 1) -> None:
        """Count `number` things of a kind."""
        of_kind = self.counts.setdefault(kind, dict.fromkeys(("read", *OUTCOMES, "explained"), 0))
        of_kind["read"] += number
        of_kind[outcome] += number

    def explain(self, kind: str, why: str, number: int = 1) -> None:
        """Count `number` things that are not what they were, for a reason that is none to alarm."""
        self.count(kind, MATCH, number)
        self.counts[kind]["explained"] += number
        if number:
            self.explained[kind, why] += number

    def skip(self, kind: str, key: List[Any], why: str, number: int = 1) -> None:
        """Count `number` things that cannot be compared, and say why."""
        self.count(kind, "skipped", number)
        self.skipped.append((kind, canonical(key), why))

    def differ(self, kind: str, key: List[Any], field: str, baseline: Any, cluster: Any, rule: str) -> None:
        """Note a difference by the name of its rule in RULES; counts nothing. None: the side does not have it."""
        sides = {BASELINE: _side(baseline), CLUSTER: _side(cluster)}
        says, do = RULES[rule]
        self.differences.append(Difference(kind, canonical(key), field, sides, SINCE, says, do))

    def add(self, other: Findings) -> None:
        """Take over what another comparison found."""
        for kind, counted in other.counts.items():
            mine = self.counts.setdefault(kind, dict.fromkeys(counted, 0))
            for outcome, number in counted.items():
                mine[outcome] += number
        self.explained.update(other.explained)
        self.differences += other.differences
        self.skipped += other.skipped


def _side(value: Any) -> str | None:
    return None if value is None else canonical(value)


_REPLICAS = (
    "Compare the replicas of this partition (kafka-dump-log.sh --deep-iteration on each of its brokers) before any of "
    "them is restarted: a follower may still have the records."
)


class Rule(NamedTuple):
    """A rule of the comparison as the operator reads it, and what to do where it is broken."""

    says: str
    do: str


RULES: Mapping[str, Rule] = {
    "topic_missing": Rule(
        "a topic of the baseline is still there",
        "Find out who deleted the topic (the controller's log names the request); if that was meant, take "
        "it out of the chosen topics and run the gate again.",
    ),
    "topic_recreated": Rule(
        "a topic keeps its id: it was not deleted and made again",
        "The topic was deleted and made again: its records of before are gone. If that was meant, make "
        "a new baseline for it.",
    ),
    "truncated": Rule(
        "a log still reaches to where the baseline ended",
        "The log ends before the offset that consumers could read at the baseline: an unclean leader election "
        "or a lost disk. " + _REPLICAS,
    ),
    "records_lost": Rule(
        "a chunk below the baseline's end has lost no record",
        "Records are missing in the middle of the log. " + _REPLICAS,
    ),
    "records_added": Rule(
        "a chunk below the baseline's end has gained no record",
        "Records stand where the baseline had none. " + _REPLICAS,
    ),
    "records_changed": Rule(
        "the records of a chunk are what they were: offset, timestamp, key, value, headers",
        "A key, value, header, timestamp or the order of records changed. " + _REPLICAS,
    ),
    "log_start_moved": Rule(
        "a log's beginning moves by retention only",
        "The log's beginning moved and retention does not explain it. If an application or "
        "kafka-delete-records.sh deletes records here, add the topic to purged_topics; else see the broker's log for "
        "'Incremented log start offset' with its reason. " + _REPLICAS,
    ),
    "key_vanished": Rule(
        "a key of a compacted topic goes by a tombstone only",
        "A key of a compacted topic has no record any more, and no tombstone can explain it. " + _REPLICAS,
    ),
    "key_went_back": Rule(
        "the newest record of a key is never an older one than it was",
        "An older value is again the newest of its key: the newest record was lost. " + _REPLICAS,
    ),
    "key_changed": Rule(
        "the newest record of a key is what it was: offset, timestamp, key, value, headers",
        "The newest record of a key has another content at the same offset. " + _REPLICAS,
    ),
    "key_appeared": Rule(
        "no record of a key appears below the baseline's end",
        "A record stands below the baseline's end that was not there. " + _REPLICAS,
    ),
    "group_regressed": Rule(
        "a committed offset never goes back",
        "The group will read records again. If nobody reset it (kafka-consumer-groups.sh "
        "--reset-offsets), compare __consumer_offsets on its brokers.",
    ),
    "group_offset_missing": Rule(
        "a committed offset of a group with members does not vanish",
        "The group begins anew by its auto.offset.reset. If nobody deleted the group or its "
        "offsets, compare __consumer_offsets on its brokers.",
    ),
    "group_beyond_end": Rule(
        "a committed offset lies within the log",
        "The group has committed an offset that the log does not reach: records that it had read are "
        "gone. " + _REPLICAS,
    ),
}
