# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The comparison of data fingerprints on a model of a log: it finds each injected fault and raises no false alarm.

The model keeps records as Kafka does and aggregates them as the scan does, with another 64-bit hash than Spark's.
"""

from __future__ import annotations

import hashlib
import json
import random
from typing import Any, Dict, List, NamedTuple, Tuple

import pyarrow as pa
import pytest
from quorumshift_spark.compare import OUTCOMES
from quorumshift_spark.fingerprint import cluster, compare, keys, plan
from quorumshift_spark.fingerprint.compare import Fingerprint
from quorumshift_spark.fingerprint.findings import RULES, Findings
from quorumshift_spark.fingerprint.groups import Group
from quorumshift_spark.fingerprint.plan import Chunk, PartitionState, Range, Sums, UnplannedRecords

SIZE = 10
HOUR = 3_600_000
START = 1_790_000_000_000
NOW = START + 2 * HOUR


class Record(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Tuple[Tuple[str, bytes | None], ...] = ()

    @property
    def hash(self) -> int:
        return int.from_bytes(hashlib.blake2b(repr(tuple(self)).encode(), digest_size=8).digest(), "big")


def records(count: int = 35, first: int = 0) -> List[Record]:
    return [
        Record(offset, START + offset * 1000, b"k%d" % (offset % 7), b"v%d" % offset, (("h", b"%d" % offset),))
        for offset in range(first, first + count)
    ]


def state(end: int, **changes: Any) -> PartitionState:
    plain = PartitionState("orders", 0, "id-1", 0, end, False, True, 168 * HOUR, -1, 24 * HOUR)
    return plain._replace(**changes)


def signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def read(
    log: List[Record], now: PartitionState, was: PartitionState | None = None, taken: int = NOW, size: int = SIZE
) -> Fingerprint:
    """Return the fingerprint of this log."""
    chunks: List[Chunk] = []
    rows = []
    if now.compacted:
        newest = {record.key: record for record in log if now.log_start <= record.offset < now.end}
        rows = [
            {
                "topic": now.topic,
                "partition": now.partition,
                "key_hash": signed(int.from_bytes(hashlib.sha256(key).digest()[:8], "big")),
                "offset": record.offset,
                "hash": signed(record.hash),
                "tombstone": record.value is None,
                "timestamp": record.timestamp,
            }
            for key, record in newest.items()
        ]
    else:
        for wanted in plan.ranges(now, was):
            if wanted:
                chunks += plan.chunks([wanted], size, sums(log, wanted, size))
    table = pa.Table.from_pylist(rows, keys.SCHEMA)
    return Fingerprint("c", taken, size, "read_uncommitted", {now.tp: now}, chunks, table, {})


def sums(log: List[Record], wanted: Range, size: int) -> List[Sums]:
    inside = [record for record in log if wanted.begin <= record.offset < wanted.end]
    rows = []
    for index in sorted({record.offset // size for record in inside}):
        part = [record for record in inside if record.offset // size == index]
        offsets, times = [record.offset for record in part], [record.timestamp for record in part]
        total = sum(record.hash for record in part)
        key = (wanted.topic, wanted.partition, index, len(part))
        rows.append(Sums(*key, min(offsets), max(offsets), min(times), max(times), total))
    return rows


def next_baseline(fingerprint: Fingerprint) -> Fingerprint:
    return fingerprint._replace(chunks=plan.merge(fingerprint.chunks, fingerprint.chunk_offsets))


def found(before: List[Record], after: List[Record], was: PartitionState, now: PartitionState, **more: Any) -> Findings:
    purged = more.pop("purged_topics", ())
    baseline = next_baseline(read(before, was, taken=NOW - HOUR))
    findings = compare.compare(baseline, read(after, now, was, **more), {}, HOUR, purged)
    for counted in findings.counts.values():
        assert counted["read"] == sum(counted[name] for name in OUTCOMES)
        assert counted["explained"] <= counted["match"]
    return findings


def rules(findings: Findings) -> List[str]:
    by_text = {rule.says: name for name, rule in RULES.items()}
    return sorted(by_text[difference.rule] for difference in findings.differences)


def with_record(log: List[Record], at: int, **changes: Any) -> List[Record]:
    return [record._replace(**changes) if record.offset == at else record for record in log]


# --- partitions that are not compacted ----------------------------------------------------------------------------


def test_first_run_creates_the_baseline() -> None:
    findings = compare.compare(None, read(records(), state(35)), {}, HOUR)
    assert compare.verdict(findings) == "pass"
    assert findings.counts["chunk"]["explained"] == findings.counts["chunk"]["read"] == 4


@pytest.mark.parametrize("more", [0, 1, 5, 6, 40])
def test_growing_log_passes(more: int) -> None:
    findings = found(records(), records(35 + more), state(35), state(35 + more))
    assert compare.verdict(findings) == "pass"
    assert findings.counts["chunk"]["match"] - findings.counts["chunk"]["explained"] == 4


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"value": b"other"}, "records_changed"),
        ({"value": None}, "records_changed"),
        ({"key": b"other"}, "records_changed"),
        ({"key": None}, "records_changed"),
        ({"headers": (("h", b"other"),)}, "records_changed"),
        ({"headers": ()}, "records_changed"),
        ({"timestamp": START - 1}, "records_changed"),
    ],
)
@pytest.mark.parametrize("offset", [0, 9, 10, 34])
def test_changed_record_is_found_with_its_chunk(offset: int, changes: Dict[str, Any], rule: str) -> None:
    findings = found(records(), with_record(records(50), offset, **changes), state(35), state(50))
    assert rules(findings) == [rule]
    begin = offset // SIZE * SIZE
    assert json.loads(findings.differences[0].key) == ["orders", 0, begin, min(begin + SIZE, 35)]
    assert findings.counts["chunk"]["differ"] == 1


@pytest.mark.parametrize("offset", range(35))
def test_lost_record_is_found(offset: int) -> None:
    log = [record for record in records(50) if record.offset != offset]
    assert rules(found(records(), log, state(35), state(50))) == ["records_lost"]


def test_added_record_is_found() -> None:
    before = [record for record in records() if record.offset != 12]
    assert rules(found(before, records(), state(35), state(35))) == ["records_added"]


@pytest.mark.parametrize(("first", "second"), [(12, 17), (3, 25)])
def test_swapped_records_are_found(first: int, second: int) -> None:
    log = records()
    swapped = with_record(log, first, **log[second]._replace(offset=first)._asdict())
    swapped = with_record(swapped, second, **log[first]._replace(offset=second)._asdict())
    assert set(rules(found(log, swapped, state(35), state(35)))) == {"records_changed"}


def test_same_change_twice_does_not_cancel() -> None:
    same = [record._replace(offset=11, key=b"x", value=b"x") for record in records(2)]
    before = with_record(with_record(records(), 11, **same[0]._asdict()), 12, **same[0]._replace(offset=12)._asdict())
    after = with_record(with_record(before, 11, value=b"y"), 12, value=b"y")
    assert rules(found(before, after, state(35), state(35))) == ["records_changed"]


@pytest.mark.parametrize("end", [0, 5, 30, 34])
def test_truncated_log_is_reported_once(end: int) -> None:
    findings = found(records(), records(end), state(35), state(end))
    assert rules(findings) == ["truncated"]
    assert findings.counts["chunk"]["match"] == end // SIZE
    assert findings.counts["chunk"]["left_only"] == 4 - end // SIZE


def test_truncated_and_refilled_log_is_found() -> None:
    again = [record._replace(value=b"again") for record in records(30, 25)]
    assert set(rules(found(records(), records(25) + again, state(35), state(55)))) == {"records_changed"}


@pytest.mark.parametrize("start", [1, 9, 10, 15, 20, 34, 35])
def test_retention_passes(start: int) -> None:
    now = state(40, log_start=start, retention_ms=HOUR)
    findings = found(records(), records(40 - start, start), state(35, retention_ms=HOUR), now)
    assert rules(findings) == []
    assert compare.verdict(findings) == "pass"
    removed = sum(number for (_kind, why), number in findings.explained.items() if "log start" in why)
    assert removed == min(4, -(-start // SIZE))
    assert findings.counts["chunk"]["match"] - findings.counts["chunk"]["explained"] == 4 - removed
    assert all("retention.ms" in why for _kind, why in findings.explained if "log start" in why)


@pytest.mark.parametrize(
    "policy",
    [{"retention_ms": 24 * HOUR}, {"retention_ms": -1}, {"deletes": False, "retention_ms": HOUR}],
    ids=["too young", "no retention", "no delete policy"],
)
@pytest.mark.parametrize("start", [5, 10, 35])
def test_log_start_that_retention_does_not_explain_is_found(start: int, policy: Dict[str, Any]) -> None:
    log = records(40 - start, start)
    findings = found(records(), log, state(35), state(40, log_start=start, **policy))
    assert rules(findings) == ["log_start_moved"]
    findings = found(records(), log, state(35), state(40, log_start=start, **policy), purged_topics=["ord*"])
    assert rules(findings) == []


def test_loss_in_a_chunk_cut_by_retention_is_found() -> None:
    now = state(35, log_start=14, retention_ms=HOUR)
    for lost, rule in ((19, ["records_lost"]), (16, ["records_lost"])):
        log = [record for record in records(21, 14) if record.offset != lost]
        assert rules(found(records(), log, state(35), now)) == rule


def test_chunk_is_compared_from_the_log_start_of_the_baseline() -> None:
    was, now = state(35, log_start=14), state(40, log_start=14)
    assert compare.verdict(found(records(21, 14), records(26, 14), was, now)) == "pass"
    assert rules(found(records(21, 14), with_record(records(26, 14), 15, value=b"x"), was, now)) == ["records_changed"]


def test_leader_with_an_older_log_start_passes() -> None:
    findings = found(records(21, 14), records(38, 2), state(35, log_start=14), state(40, log_start=2))
    assert compare.verdict(findings) == "pass"


def test_deleted_or_recreated_topic_is_found() -> None:
    baseline = next_baseline(read(records(), state(35)))
    deleted = read([], state(0))._replace(partitions={})
    assert rules(compare.compare(baseline, deleted, {}, HOUR)) == ["topic_missing"]
    assert rules(found(records(), records(), state(35), state(35, topic_id="id-2"))) == ["topic_recreated"]


def test_policy_changed_to_compact_is_incomplete() -> None:
    findings = found(records(), records(), state(35), state(35, compacted=True))
    assert compare.verdict(findings) == "incomplete"
    assert findings.counts["chunk"]["skipped"] == 4
    assert findings.skipped[0][:2] == ("chunk", '["orders",0]')


def test_random_faults_are_found_without_false_alarms() -> None:
    chance = random.Random(5)
    for dummy in range(300):
        count, more, size = chance.randint(1, 60), chance.randint(0, 30), chance.randint(1, 20)
        was, now = state(count), state(count + more)
        baseline = next_baseline(read(records(count), was, size=size))
        complete = records(count + more)
        assert compare.verdict(compare.compare(baseline, read(complete, now, was, size=size), {}, HOUR)) == "pass"
        victim = chance.randrange(count)
        if chance.random() < 0.5:
            broken = [record for record in complete if record.offset != victim]
        else:
            broken = with_record(complete, victim, timestamp=1)
        assert len(compare.compare(baseline, read(broken, now, was, size=size), {}, HOUR).differences) == 1


# --- chunks --------------------------------------------------------------------------------------------------------


def test_joined_parts_equal_the_complete_chunk() -> None:
    was, now = state(17), state(35)
    assert next_baseline(read(records(), now, was)).chunks == read(records(), now).chunks


def test_sums_are_exact_above_64_bits() -> None:
    part = Chunk("orders", 0, 0, 5, 5, 0, 4, 1, 2, (1 << 64) - 1)
    assert plan.merge([part, part._replace(begin=5, end=10)], SIZE)[0].hash_sum == 2 * ((1 << 64) - 1)


def test_records_that_were_not_requested_are_an_error() -> None:
    wanted, row = [Range("orders", 0, 0, 10)], Sums("orders", 0, 0, 1, 3, 3, 1, 1, 7)
    with pytest.raises(UnplannedRecords, match=r"orders-0.*not requested"):
        plan.chunks(wanted, SIZE, [row, row._replace(index=1)])
    with pytest.raises(UnplannedRecords, match="offsets 3 to 12"):
        plan.chunks(wanted, SIZE, [row._replace(max_offset=12)])
    with pytest.raises(UnplannedRecords, match="twice"):
        plan.chunks(wanted, SIZE, [row, row])


# --- compacted partitions ------------------------------------------------------------------------------------------


def compacted(end: int, **changes: Any) -> PartitionState:
    return state(end, compacted=True, deletes=False, **changes)


def compact(log: List[Record], below: int) -> List[Record]:
    """Return a log after the cleaner has cleaned it up to an offset."""
    newest = {record.key: record.offset for record in log}
    return [record for record in log if record.offset >= below or newest[record.key] == record.offset]


def test_compaction_and_later_records_pass() -> None:
    log = records(60)
    findings = found(records(), compact(log, 50), compacted(35), compacted(60))
    assert compare.verdict(findings) == "pass"
    assert findings.counts["key"]["match"] == 7
    assert findings.explained["key", "superseded by a later record"] == 7
    assert found(records(), compact(records(), 30), compacted(35), compacted(35)).counts["key"]["match"] == 7


def test_key_that_disappeared_without_a_tombstone_is_found() -> None:
    log = [record for record in records() if record.key != b"k3"]
    findings = found(records(), log, compacted(35), compacted(35))
    assert rules(findings) == ["key_vanished"]
    assert findings.counts["key"]["left_only"] == 1
    tombstone = Record(35, NOW, b"k3", None)
    assert rules(found(records(), [*log, tombstone], compacted(35), compacted(36))) == []


def test_key_may_disappear_after_delete_retention() -> None:
    log = [record for record in records() if record.key != b"k3"]
    short = {"delete_retention_ms": HOUR // 2}
    findings = found(records(), log, compacted(35, **short), compacted(35, **short))
    assert rules(findings) == []
    assert findings.explained["key", "missing; a tombstone may have been written and cleaned since"] == 1


def test_tombstone_may_be_cleaned_but_the_older_value_may_not_reappear() -> None:
    before = [*records(), Record(35, START, b"k3", None)]
    cleaned = [record for record in before if record.key != b"k3"]
    assert rules(found(before, cleaned, compacted(36), compacted(36))) == []
    assert rules(found(before, records(), compacted(36), compacted(36))) == ["key_regressed"]


def test_lost_or_changed_newest_record_of_a_key_is_found() -> None:
    newest = max(record.offset for record in records() if record.key == b"k3")
    log = [record for record in records() if record.offset != newest]
    assert rules(found(records(), log, compacted(35), compacted(35))) == ["key_regressed"]
    for changes in ({"value": b"x"}, {"headers": ()}, {"timestamp": 1}):
        log = with_record(records(), newest, **changes)
        assert rules(found(records(), log, compacted(35), compacted(35))) == ["key_changed"]
    log = with_record(records(), newest, key=b"k-new")
    assert rules(found(records(), log, compacted(35), compacted(35))) == ["key_appeared", "key_regressed"]


def test_retention_of_a_compacted_topic_with_delete_policy() -> None:
    both = {"compacted": True, "deletes": True}
    was = state(35, **both)
    log = [record for record in records() if record.offset >= 31]
    now = state(35, log_start=31, retention_ms=HOUR, **both)
    assert rules(found(records(), log, was, now)) == []
    now = state(35, log_start=31, retention_ms=24 * HOUR, **both)
    assert set(rules(found(records(), log, was, now))) == {"key_vanished"}


def test_truncated_compacted_log_is_found() -> None:
    findings = found(records(), records(33), compacted(35), compacted(33))
    assert "truncated" in rules(findings)


def test_many_differences_are_listed_in_part_and_counted_completely() -> None:
    log = [Record(offset, START, b"k%d" % offset, b"v") for offset in range(500)]
    findings = found(log, [], compacted(500), compacted(500))
    assert findings.counts["key"]["left_only"] == 500
    assert len(findings.differences) == keys.SHOWN + 1
    assert json.loads(findings.differences[-1].sides["baseline"]) == {"further keys": 300}


# --- consumer groups -----------------------------------------------------------------------------------------------


def groups(was: Dict[str, Group], now: Dict[str, Group], ends: Any = None, elapsed: int = HOUR) -> Findings:
    empty = read([], state(0))._replace(partitions={}, chunks=[])
    ends = {("orders", 0): 100} if ends is None else ends
    before = empty._replace(taken_ms=NOW - elapsed, groups=was)
    return compare.compare(before, empty._replace(groups=now), ends, 7 * 24 * HOUR)


TP = ("orders", 0)


def test_unchanged_or_increased_offsets_pass() -> None:
    for offset in (50, 51, 100):
        findings = groups({"g": Group("STABLE", {TP: 50})}, {"g": Group("EMPTY", {TP: offset})})
        assert compare.verdict(findings) == "pass"
    findings = groups({}, {"g": Group("STABLE", {TP: 50})})
    assert findings.counts["group_offset"]["explained"] == 1
    assert compare.verdict(findings) == "pass"


@pytest.mark.parametrize("offset", [0, 49])
def test_decreased_offset_is_found(offset: int) -> None:
    findings = groups({"g": Group("EMPTY", {TP: 50})}, {"g": Group("EMPTY", {TP: offset})})
    assert rules(findings) == ["group_regressed"]
    assert findings.differences[0].sides == {"baseline": "50", "cluster": str(offset)}


def test_missing_offset_of_a_group_with_members_is_found_before_it_expires() -> None:
    was = {"g": Group("STABLE", {TP: 50})}
    assert rules(groups(was, {})) == ["group_offset_missing"]
    assert rules(groups(was, {"g": Group("STABLE", {})})) == ["group_offset_missing"]
    assert rules(groups(was, {}, elapsed=8 * 24 * HOUR)) == []
    assert rules(groups(was, {}, ends={})) == []
    assert rules(groups({"g": Group("EMPTY", {TP: 50})}, {})) == []


def test_offset_beyond_the_log_is_found() -> None:
    was = {"g": Group("STABLE", {TP: 50})}
    assert rules(groups(was, {"g": Group("STABLE", {TP: 101})})) == ["group_beyond_end"]
    assert rules(groups({}, {"g": Group("STABLE", {TP: 101})})) == ["group_beyond_end"]


def test_patterns_choose_topics_but_never_internal_ones() -> None:
    all_partitions = {name: [0] for name in ("orders-eu", "orders-us", "payments", "__consumer_offsets")}
    assert list(cluster.chosen(all_partitions, ["*"], [])) == ["orders-eu", "orders-us", "payments"]
    assert list(cluster.chosen(all_partitions, ["orders-*", "__*"], ["*-us"])) == ["orders-eu"]
