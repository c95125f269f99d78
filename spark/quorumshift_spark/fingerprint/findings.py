# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collects differences and the number of entries by outcome. Pure."""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, List, Mapping, NamedTuple, Tuple

from quorumshift_spark.compare import MATCH, OUTCOMES, Difference
from quorumshift_spark.normal_form import canonical
from quorumshift_spark.rules import BASELINE, SINCE

CLUSTER = "cluster"
"""The view that is compared with the baseline. The baseline is the left side."""


class Findings:
    """Counts and differences of one comparison.

    `counts`: {kind: accounting.Counts}: read is the sum of the outcomes; `explained`, a part of match, counts what is
    missing, new or newer for a reason that Kafka gives. `explained`: {(kind, reason): number}. `excused`, `skipped`:
    [(kind, key, why)] of explained entries that an operator should see, and of what could not be compared.
    """

    def __init__(self) -> None:
        self.counts: Dict[str, Dict[str, int]] = {}
        self.explained: Counter = Counter()
        self.differences: List[Difference] = []
        self.excused: List[Tuple[str, str, str]] = []
        self.skipped: List[Tuple[str, str, str]] = []

    def count(self, kind: str, outcome: str, number: int = 1) -> None:
        """Count `number` entries of a kind."""
        of_kind = self.counts.setdefault(kind, dict.fromkeys(("read", *OUTCOMES, "explained"), 0))
        of_kind["read"] += number
        of_kind[outcome] += number

    def explain(self, kind: str, why: str, number: int = 1) -> None:
        """Count `number` entries that changed for a legitimate reason."""
        self.count(kind, MATCH, number)
        self.counts[kind]["explained"] += number
        if number:
            self.explained[kind, why] += number

    def excuse(self, kind: str, key: List[Any], why: str, number: int = 1) -> None:
        """Count and list `number` entries that are gone for a legitimate reason. `why`: with the baseline's value."""
        self.explain(kind, "gone for a reason that is listed", number)
        self.excused.append((kind, canonical(key), why))

    def skip(self, kind: str, key: List[Any], why: str, number: int = 1) -> None:
        """Count `number` entries that cannot be compared, with the reason."""
        self.count(kind, "skipped", number)
        self.skipped.append((kind, canonical(key), why))

    def differ(self, kind: str, key: List[Any], field: str, baseline: Any, cluster: Any, rule: str) -> None:
        """Add a difference without counting it. `rule`: its name in RULES. A side is None where it lacks the entry."""
        sides = {BASELINE: _side(baseline), CLUSTER: _side(cluster)}
        says, do = RULES[rule]
        self.differences.append(Difference(kind, canonical(key), field, sides, SINCE, says, do))

    def add(self, other: Findings) -> None:
        """Add the findings of another comparison."""
        for kind, counted in other.counts.items():
            mine = self.counts.setdefault(kind, dict.fromkeys(counted, 0))
            for outcome, number in counted.items():
                mine[outcome] += number
        self.explained.update(other.explained)
        self.differences += other.differences
        self.excused += other.excused
        self.skipped += other.skipped


def _side(value: Any) -> str | None:
    return None if value is None else canonical(value)


_REPLICAS = (
    "Compare the replicas of this partition before you restart any of its brokers (kafka-dump-log.sh --deep-iteration "
    "on each): a follower may still have the records."
)


class Rule(NamedTuple):
    """A rule of the comparison for the operator, and what to do about a violation."""

    says: str
    do: str


RULES: Mapping[str, Rule] = {
    "topic_missing": Rule(
        "a topic of the baseline still exists",
        "Find out which client deleted the topic (the controller's log names the request). If that was intended, "
        "exclude the topic (quorumshift_fingerprint_exclude) and run the playbook again.",
    ),
    "topic_recreated": Rule(
        "a topic keeps its id: it was not deleted and recreated",
        "The topic was deleted and recreated: its old records are lost. If that was intended, make a new baseline for "
        "it.",
    ),
    "truncated": Rule(
        "a log still reaches the end that it had in the baseline",
        "The log ends before an offset that consumers could read at the baseline: an unclean leader election or a lost "
        "disk. " + _REPLICAS,
    ),
    "epoch_regressed": Rule(
        "the leader epoch of a partition never decreases",
        "Stop: followers truncate their logs to the epochs of a leader. Restart no broker of this partition before you "
        "know why (see the metadata comparison). " + _REPLICAS,
    ),
    "offset_gap": Rule(
        "a log has no gap in its offsets above the baseline's end",
        "Records that a leader had stored are missing: a log that is not compacted has no gaps. " + _REPLICAS,
    ),
    "records_lost": Rule(
        "a chunk below the baseline's end has lost no record",
        "Records are missing in the middle of the log. " + _REPLICAS,
    ),
    "records_added": Rule(
        "a chunk below the baseline's end has gained no record",
        "Records exist at offsets where the baseline had none. " + _REPLICAS,
    ),
    "records_changed": Rule(
        "the stored batches of a chunk are unchanged, with their offsets, leader epochs and checksums",
        "A key, value, header, timestamp, producer, leader epoch or the order of records changed. " + _REPLICAS,
    ),
    "log_start_moved": Rule(
        "only retention moves the start of a log",
        "The start of the log moved and retention does not explain it. If an application or kafka-delete-records.sh "
        "deletes records of this topic, add it to quorumshift_fingerprint_purged. Otherwise look for "
        "'Incremented log start offset' and its reason in the broker's log. " + _REPLICAS,
    ),
    "key_vanished": Rule(
        "only a tombstone removes a key of a compacted topic",
        "A key of a compacted topic has no record any more, and no tombstone can explain it: that would still exist "
        "(delete.retention.ms), or would have left a gap in the offsets after the baseline. " + _REPLICAS,
    ),
    "key_regressed": Rule(
        "the newest record of a key is not older than in the baseline",
        "An older record is now the newest of its key: the newest record was lost. " + _REPLICAS,
    ),
    "key_changed": Rule(
        "the newest record of a key is unchanged: offset, timestamp, key, value, headers",
        "The newest record of a key has different content at the same offset. " + _REPLICAS,
    ),
    "key_appeared": Rule(
        "no record of a key appears below the baseline's end",
        "A record below the baseline's end is not in the baseline. " + _REPLICAS,
    ),
    "group_regressed": Rule(
        "a committed offset never decreases",
        "The group will read records again. Unless an operator reset the offset (kafka-consumer-groups.sh "
        "--reset-offsets), compare the replicas of __consumer_offsets. After a reset, run the playbook again when the "
        "group has passed the baseline's offset.",
    ),
    "producer_regressed": Rule(
        "the producer id of a transactional id never decreases, nor does the epoch of that id",
        "A producer id was handed out twice or __transaction_state lost records: transactions may be aborted or mixed "
        "up. Compare the replicas of __transaction_state, and the producer ids of the metadata comparison.",
    ),
    "group_beyond_end": Rule(
        "a committed offset is within the log",
        "The group has committed an offset beyond the end of the log: records that it had read are lost. " + _REPLICAS,
    ),
}
