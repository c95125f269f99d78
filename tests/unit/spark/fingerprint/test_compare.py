# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The comparison of data fingerprints on a model of a log: it finds each injected fault and raises no false alarm.

The model stores records as Kafka does, in batches of one record, which the job's own reader reads.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import random
import sqlite3
import struct
import zlib
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import pyarrow as pa
import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.records.crc32c import crc32c
from quorumshift_spark.compare import OUTCOMES
from quorumshift_spark.fingerprint import batches, cluster, compare, coordinators, fetch, keys, plan
from quorumshift_spark.fingerprint import records as fingerprint_records
from quorumshift_spark.fingerprint.compare import Context, Data, Fingerprint
from quorumshift_spark.fingerprint.coordinators import Coordinators, Group, Newest, Transaction
from quorumshift_spark.fingerprint.findings import RULES, Findings
from quorumshift_spark.fingerprint.plan import Chunk, PartitionState, Place, Range, Sample

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
    epoch: int = 3

    @property
    def stored(self) -> bytes:
        return batch([self], epoch=self.epoch)


def varint(number: int) -> bytes:
    value, out = (number << 1) ^ (number >> 63), b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def batch(
    of: List[Record], epoch: int = 3, flags: int = 0, producer: int = -1, pack: Callable[[bytes], bytes] = bytes
) -> bytes:
    """Return a batch of magic 2 (org.apache.kafka.common.record.DefaultRecordBatch). `pack` compresses the records."""
    first, last, body = of[0], of[-1], b""
    for record in of:
        headers = b"".join(sized(name.encode()) + sized(value) for name, value in record.headers)
        times = varint(record.timestamp - first.timestamp) + varint(record.offset - first.offset)
        rest = times + sized(record.key) + sized(record.value) + varint(len(record.headers)) + headers
        body += sized(b"\0" + rest)
    times = first.timestamp, max(record.timestamp for record in of)
    checked = struct.pack(">hiqqqhii", flags, last.offset - first.offset, *times, producer, 0, 0, len(of)) + pack(body)
    rest = struct.pack(">ibI", epoch, 2, crc32c(checked)) + checked
    return struct.pack(">qi", first.offset, len(rest)) + rest


def records(count: int = 35, first: int = 0) -> List[Record]:
    return [
        Record(offset, START + offset * 1000, b"k%d" % (offset % 7), b"v%d" % offset, (("h", b"%d" % offset),))
        for offset in range(first, first + count)
    ]


def state(end: int, **changes: Any) -> PartitionState:
    plain = PartitionState("orders", 0, "id-1", 3, 0, end, False, True, 168 * HOUR, -1, 24 * HOUR)
    return plain._replace(**changes)


NO_COORDINATORS = Coordinators({}, {}, {})
ROWS: Dict[str, Tuple[List[Chunk], List[Dict[str, Any]]]] = {}
"""In place of files: the chunks and the records of keys of each fingerprint."""


def read(
    log: List[Record], now: PartitionState, was: Fingerprint | None = None, taken: int = NOW, size: int = SIZE
) -> Fingerprint:
    """Return the fingerprint of this log; `was`: the baseline, whose chunks are read again."""
    before = was.partitions.get(now.tp) if was else None
    known = [place[:2] for place in was.chunks[now.tp] if place.keyed == now.compacted] if was else []
    readers = [scan(log, part) for part in plan.ranges(now, before, known, size, keyed=now.compacted)]
    newest = [row for reader in readers for of_chunk in reader.keys for row in of_chunk.to_pylist()]
    return of_chunks(now, [chunk for reader in readers for chunk in reader.chunks], newest, taken)


def of_chunks(now: PartitionState, chunks: List[Chunk], newest: Any = (), taken: int = NOW, **more: Any) -> Fingerprint:
    """Return a fingerprint that has these chunks."""
    data = Data(f"rows {len(ROWS)}", {})
    ROWS[data.directory] = chunks, [*newest]
    places = [Place(chunk.begin, chunk.end, chunk.keys is not None, 0) for chunk in chunks]
    of = Fingerprint("c", taken, {now.topic: now.topic_id}, {now.tp: now}, {now.tp: places}, data, NO_COORDINATORS)
    return of._replace(**more)


def compared(was: Fingerprint | None, now: Fingerprint, sizes: Any = None, **more: Any) -> Findings:
    """Return the findings, with what executors would sum up."""
    context = Context(**more)
    sides = [ROWS[of.data.directory] if of else ([], []) for of in (was, now)]
    both = compare.both(was, now, context, sizes or {})
    contents = {tp: of.content(*(chunks for chunks, _newest in sides)) for tp, of in both.items()}
    tallies = {tp: tallied(of, *(newest for _chunks, newest in sides)) for tp, of in both.items()}
    return compare.compare(was, now, context._replace(contents=contents, tallies=tallies))


def tallied(of: compare.Both, *sides: List[Dict[str, Any]]) -> Dict[str, keys.Tally]:
    """Return the tallies of a partition's keys; SQLite evaluates their classes."""
    names = [name for name in fingerprint_records.SCHEMA.names if name != "key_hash"]
    then, here = ({row["key_hash"]: row for row in sorted(rows, key=lambda row: row["offset"])} for rows in sides)
    states = (
        (of.was.log_start, of.was.end) if of.was else (0, 0),
        (of.now.log_start, of.now.deletes) if of.now else (None, None),
    )
    columns = ["key_hash", *(f"was_{name}" for name in names), *names, "was_start", "was_end", "log_start", "deletes"]
    rows = [
        (key, *(side.get(key, {}).get(name) for side in (then, here) for name in names), *states[0], *states[1])
        for key in sorted({*then, *here})
    ]
    found: Dict[str, keys.Tally] = {}
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.execute(f"CREATE TABLE keys ({', '.join(columns)})")
        database.executemany(f"INSERT INTO keys VALUES ({', '.join('?' * len(columns))})", rows)
        shown = "was_timestamp, key_hash, was_offset, was_content, offset, content"
        for name, time, key, *example in database.execute(f"SELECT {keys.WHICH}, {shown} FROM keys"):
            tally = found.get(name, keys.Tally())
            newest = max(tally.newest_ms, -1 if time is None else time)
            filled = [-1 if value is None and not at % 2 else value or 0 for at, value in enumerate(example)]
            listed = [*tally.examples, (key, *filled)][: keys.SHOWN]
            found[name] = keys.Tally(tally.number + 1, tally.now + (filled[2] >= 0), newest, listed)
    return found


def scan(log: List[Record], wanted: Range) -> batches.Reader:
    """Read a range in answers of at most 300 bytes, each of which may end within a batch."""
    reader = batches.Reader(wanted)
    while not reader.done:
        rest = b"".join(record.stored for record in log if record.offset >= reader.next)
        before = reader.next
        reader.add(memoryview(rest[:300]))
        if reader.next == before and not reader.done:
            # the log has no batch up to the end of the range, which Kafka answers with none; as if one followed
            reader.add(memoryview(Record(wanted.end, 0, None, None).stored))
    return reader


def found(before: List[Record], after: List[Record], was: PartitionState, now: PartitionState, **more: Any) -> Findings:
    purged, read_ms = more.pop("purged_topics", ()), more.pop("read_ms", 0)
    baseline = read(before, was, taken=NOW - HOUR)
    current = read(after, now, baseline, **more)
    findings = compared(baseline, current, purged_topics=purged, read_ms=read_ms)
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
    findings = compared(None, read(records(), state(35)))
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
        ({"epoch": 2}, "records_changed"),
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
    was, now = state(35, **policy), state(40, log_start=start, **policy)
    assert rules(found(records(), log, was, now)) == ["log_start_moved"]
    assert rules(found(records(), log, was, now, purged_topics=["ord*"])) == []


def hourly(count: int, first: int = 0) -> List[Record]:
    """Return records of which each is an hour newer than the one before."""
    return [record._replace(timestamp=NOW - (1000 - record.offset) * HOUR) for record in records(count, first)]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (497, "pass"),  # all that was removed is old enough
        (400, "pass"),
        (501, "incomplete"),  # the next known timestamp above this start is too new
        (511, "incomplete"),
        (520, "differ"),
        (900, "differ"),
    ],
)
def test_the_newest_timestamp_of_what_was_removed_decides(start: int, expected: str) -> None:
    """Of one large chunk whose beginning is old, records vanish that retention would have kept."""
    policy = {"retention_ms": 490 * HOUR}
    was, now = state(1000, **policy), state(1000, log_start=start, **policy)
    baseline = read(hourly(1000), was, taken=NOW, size=1000)
    current = read(hourly(1000 - start, start), now, baseline)
    (chunk,) = ROWS[baseline.data.directory][0]
    assert len(chunk.times) <= plan.TIMES
    findings = compared(baseline, current, read_ms=NOW)
    assert compare.verdict(findings) == expected, (findings.explained, findings.skipped)


def test_records_without_timestamps_are_not_known_to_have_expired() -> None:
    """Kafka takes the time of the segment's file, which no broker shows."""
    policy = {"retention_ms": HOUR}
    was, now = state(35, **policy), state(40, log_start=15, **policy)
    untimed = [record._replace(timestamp=-1) if record.offset == 4 else record for record in records()]
    findings = found(untimed, records(25, 15), was, now)
    assert compare.verdict(findings) == "incomplete" and "without a timestamp" in findings.skipped[0][2]


def test_retention_and_the_cleaner_work_while_records_are_read() -> None:
    was, now = (state(end, retention_ms=3 * HOUR) for end in (35, 40))
    log, moved = records(25, 15), now._replace(log_start=15)
    assert rules(found(records(), log, was, moved)) == ["log_start_moved"]
    assert rules(found(records(), log, was, moved, read_ms=NOW + HOUR)) == []
    short = {"delete_retention_ms": 2 * HOUR}
    left = [record for record in records() if record.key != b"k3"] + [Record(40, NOW, b"k1", b"v")]
    was, now = (compacted(end, **short) for end in (35, 41))
    assert rules(found(records(), left, was, now)) == ["key_vanished"]
    assert compare.verdict(found(records(), left, was, now, read_ms=NOW + HOUR)) == "incomplete"


@pytest.mark.parametrize(
    ("was", "now", "listed"),
    [
        ({"retention_ms": 24 * HOUR}, {"retention_ms": HOUR}, "retention.ms was 86400000 and is 3600000"),
        ({"retention_ms": -1}, {"retention_ms": -1, "retention_bytes": 1}, "retention.bytes was -1 and is 1"),
        ({"deletes": False, "retention_ms": HOUR}, {"retention_ms": HOUR}, "cleanup.policy was  and is delete"),
    ],
)
def test_retention_that_was_lowered_is_no_explanation(was: Any, now: Any, listed: str) -> None:
    findings = found(records(), records(25, 15), state(35, **was), state(40, log_start=15, **now))
    assert compare.verdict(findings) == "incomplete"
    assert listed in findings.skipped[0][2]
    assert "quorumshift_fingerprint_exclude" in findings.skipped[0][2]
    assert findings.counts["chunk"]["skipped"] == 2


def test_retention_that_was_raised_is_an_explanation_by_the_baseline() -> None:
    was, now = state(35, retention_ms=HOUR), state(40, log_start=15, retention_ms=-1)
    assert compare.verdict(found(records(), records(25, 15), was, now)) == "pass"


def test_retention_by_size_leaves_that_size() -> None:
    log, policy = records(25, 15), {"retention_ms": -1}
    size = sum(len(record.stored) for record in log)
    for limit, expected in ((size, []), (size + 1, ["log_start_moved"])):
        was, now = (state(end, retention_bytes=limit, **policy) for end in (35, 40))
        assert rules(found(records(), log, was, now._replace(log_start=15))) == expected


def test_loss_in_a_chunk_cut_by_retention_is_found() -> None:
    was, now = state(35, retention_ms=HOUR), state(35, log_start=14, retention_ms=HOUR)
    for lost, rule in ((19, ["records_lost"]), (16, ["records_lost"])):
        log = [record for record in records(21, 14) if record.offset != lost]
        assert rules(found(records(), log, was, now)) == rule


def test_chunk_is_compared_from_the_log_start_of_the_baseline() -> None:
    was, now = state(35, log_start=14), state(40, log_start=14)
    assert compare.verdict(found(records(21, 14), records(26, 14), was, now)) == "pass"
    assert rules(found(records(21, 14), with_record(records(26, 14), 15, value=b"x"), was, now)) == ["records_changed"]


def test_leader_with_an_older_log_start_passes() -> None:
    findings = found(records(21, 14), records(38, 2), state(35, log_start=14), state(40, log_start=2))
    assert compare.verdict(findings) == "pass"


def test_deleted_or_recreated_topic_is_found() -> None:
    baseline = read(records(), state(35))
    deleted = read([], state(0))._replace(partitions={})
    assert rules(compared(baseline, deleted)) == ["topic_missing"]
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
        baseline = read(records(count), was, size=size)
        complete = records(count + more)
        again = chance.randint(1, 20)
        assert compare.verdict(compared(baseline, read(complete, now, baseline, size=again))) == "pass"
        victim = chance.randrange(count)
        if chance.random() < 0.5:
            broken = [record for record in complete if record.offset != victim]
        else:
            broken = with_record(complete, victim, timestamp=1)
        findings = compared(baseline, read(broken, now, baseline, size=again))
        assert len(findings.differences) == 1


def test_gap_or_an_older_leader_epoch_above_the_baseline_is_found() -> None:
    log = records(50)
    assert rules(found(records(), log, state(35), state(50))) == []
    for lost in (35, 40, 49):
        broken = [record for record in log if record.offset != lost]
        assert rules(found(records(), broken, state(35), state(50))) == ["offset_gap"]
    assert rules(found(records(), with_record(log, 40, epoch=2), state(35), state(50))) == ["epoch_regressed"]
    assert rules(found(records(), log, state(35), state(50, leader_epoch=2))) == ["epoch_regressed"]


def test_partition_that_could_not_be_read_is_incomplete() -> None:
    baseline = read(records(), state(35))
    current = read(records(), state(35), baseline)
    current = of_chunks(state(35), ROWS[current.data.directory][0][:2])
    for unread in ({}, {("orders", 0): "b1:9092: connection refused"}):
        findings = compared(baseline, current, unread=unread)
        assert compare.verdict(findings) == "incomplete"
        assert "orders-0 could not be read to its end" in findings.skipped[0][2]
        assert findings.counts["chunk"]["skipped"] == 2
    first = compared(None, current, unread={("orders", 0): "b1:9092: connection refused"})
    assert compare.verdict(first) == "incomplete"


# --- coverage ------------------------------------------------------------------------------------------------------


def coverage(
    gate: str, was: Fingerprint | None, topics: Dict[str, str], *patterns: str, exclude: Any = (), hidden: Any = ()
) -> List[str]:
    read_now = cluster.chosen(topics, patterns, exclude)
    findings = compare.coverage(gate, was, topics, read_now, patterns, exclude, hidden)
    assert compare.verdict(findings) == ("incomplete" if findings.skipped else "pass")
    return [why for _kind, _key, why in findings.skipped]


def test_last_gate_without_a_baseline_is_incomplete() -> None:
    assert coverage("before_controllers", None, {"orders": "id-1"}, "*") == []
    (why,) = coverage("after_finalize", None, {"orders": "id-1"}, "*")
    assert "no baseline" in why
    assert "-e '{\"quorumshift_fingerprint_topics\": []}'" in why
    assert coverage("after_finalize", read(records(), state(35)), {"orders": "id-1"}, "*") == []


def test_pattern_that_matches_nothing_is_incomplete() -> None:
    topics = {"orders": "id-1", "__consumer_offsets": "id-2"}
    assert coverage("before_controllers", None, topics, "ord*", "orders") == []
    (why,) = coverage("before_controllers", None, topics, "ord*", "paymnets")
    assert "'paymnets'" in why
    assert len(coverage("before_controllers", None, topics, "__*")) == 1
    # a topic of the baseline that was deleted is another rule's
    assert coverage("after_finalize", read(records(), state(35)), {}, "ord*") == []


def test_topic_that_the_baseline_did_not_read_is_incomplete() -> None:
    baseline = read(records(), state(35))._replace(topics={"orders": "id-1", "payments": "id-2"})
    now = {"orders": "id-1", "payments": "id-2", "new": "id-3"}
    (why,) = coverage("after_finalize", baseline, now, "*")
    assert "topic payments existed at the baseline" in why
    assert coverage("after_finalize", baseline, {**now, "payments": "id-4"}, "*") == []  # created anew since


def test_topic_of_the_baseline_that_is_not_read_now_is_named() -> None:
    baseline, topics = read(records(), state(35)), {"orders": "id-1", "payments": "id-2"}
    (why,) = coverage("after_finalize", baseline, topics, "pay*")
    assert "topic orders was read at the baseline" in why
    assert compare.part(baseline, ["pay*"], []).partitions == {}
    # the operator says so: listed, but no longer undecided
    assert coverage("after_finalize", baseline, topics, "*", exclude=["ord*"]) == []
    findings = compare.coverage("after_finalize", baseline, topics, [], ["*"], ["ord*"])
    assert findings.excused == [("log", '["orders"]', "topic orders was read at the baseline and is excluded now")]


def test_topic_without_describe_is_named() -> None:
    (why,) = coverage("before_controllers", None, {"orders": "id-1"}, "ord*", hidden=["secret"])
    assert "topic secret exists" in why
    assert "--operation Read --topic 'secret'" in why
    assert coverage("before_controllers", None, {"orders": "id-1"}, "ord*", exclude=["sec*"], hidden=["secret"]) == []


# --- stored batches ------------------------------------------------------------------------------------------------


def test_parts_of_a_range_read_the_same_chunks() -> None:
    log = [record for record in records(100) if record.offset % 10 not in (0, 7)]  # gaps at the bounds too
    whole = Range("orders", 0, "id", (3, 10, 20, 35, 60, 100))
    expected = scan(log, whole).chunks
    assert [(chunk.begin, chunk.end) for chunk in expected] == [(3, 10), (10, 20), (20, 35), (35, 60), (60, 100)]
    for offsets in (1, 10, 30, 1000):
        parts = plan.split(whole, offsets)
        assert [chunk for part in parts for chunk in scan(log, part).chunks] == expected
    reader = batches.Reader(whole)
    reader.add(memoryview(b"".join(record.stored for record in log[:20])))
    assert reader.chunks + scan(log, reader.rest).chunks == expected


def batch_of(first: int, last: int) -> bytes:
    """Return a batch that spans several offsets."""
    return batch(records(last - first + 1, first))


def test_batch_across_a_bound_belongs_to_the_chunk_of_its_first_offset() -> None:
    stored = batch_of(0, 7), batch_of(8, 12), batch_of(13, 19)
    wanted = Range("orders", 0, "id", (5, 10, 20))
    whole = batches.Reader(wanted)
    whole.add(memoryview(b"".join(stored)))  # the log start cuts the first batch
    assert [(chunk.batches, chunk.records, chunk.covered) for chunk in whole.chunks] == [(2, 13, 13), (1, 7, 7)]
    second = batches.Reader(wanted._replace(bounds=(10, 20), cut=False))
    second.add(memoryview(stored[1] + stored[2]))
    assert second.chunks == whole.chunks[1:]


@pytest.mark.parametrize("position", [17, 40, 66])
def test_damaged_batch_is_not_read(position: int) -> None:
    data = bytearray(batch_of(0, 7) + batch_of(8, 12))
    data[position] ^= 1
    with pytest.raises(batches.CorruptBatch, match="orders-0: the stored batch at offset 0 has a wrong checksum"):
        batches.Reader(Range("orders", 0, "id", (0, 20))).add(memoryview(bytes(data)))


def test_batches_out_of_order_are_not_read() -> None:
    with pytest.raises(batches.CorruptBatch, match="at offset 4 comes after offset 7"):
        batches.Reader(Range("orders", 0, "id", (0, 20))).add(memoryview(batch_of(0, 7) + batch_of(4, 12)))


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_old_formats_are_compared(magic: int) -> None:
    def message(offset: int, value: bytes) -> bytes:
        time = struct.pack(">q", START) if magic else b""
        checked = struct.pack(">bb", magic, 0) + time + struct.pack(">ii", -1, len(value)) + value
        return struct.pack(">qiI", offset, len(checked) + 4, zlib.crc32(checked)) + checked

    def chunks(*values: bytes) -> List[Chunk]:
        reader = batches.Reader(Range("orders", 0, "id", (0, len(values))))
        reader.add(memoryview(b"".join(message(offset, value) for offset, value in enumerate(values))))
        return reader.chunks

    (left,), (other,) = chunks(b"a", b""), chunks(b"b", b"")
    assert (left.records, left.min_offset, left.max_offset, left.max_epoch) == (2, 0, 1, None)
    assert left.max_timestamp == (START if magic else None)
    assert left.hash != other.hash
    broken = message(0, b"abc").replace(b"abc", b"abd")
    with pytest.raises(batches.CorruptBatch):
        batches.Reader(Range("orders", 0, "id", (0, 1))).add(memoryview(broken))


# --- the newest records of keys ------------------------------------------------------------------------------------


def keys_of(*stored: bytes, bounds: Tuple[int, ...] = (0, 100), aborted: Any = ()) -> Dict[int, Dict[str, Any]]:
    """Return the records of keys in these batches, by offset; a last batch ends the range."""
    reader = batches.Reader(Range("orders", 0, "id", bounds, keyed=True))
    reader.add(memoryview(b"".join([*stored, batch([Record(bounds[-1], 0, None, b"")])])), aborted)
    assert [chunk.keys for chunk in reader.chunks] == [newest.num_rows for newest in reader.keys]
    rows = [row for newest in reader.keys for row in newest.to_pylist()]
    return {row["offset"]: row for row in rows}


def xerial(data: bytes) -> bytes:
    """Return data as snappy-java's stream writes it, in two blocks."""
    blocks = [pa.compress(part, "snappy", asbytes=True) for part in (data[:40], data[40:])]
    return (
        b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + b"".join(struct.pack(">i", len(block)) + block for block in blocks)
    )


@pytest.mark.parametrize(
    ("codec", "pack"),
    [
        (0, bytes),
        (1, gzip.compress),
        (2, lambda data: pa.compress(data, "snappy", asbytes=True)),
        (2, xerial),
        (3, lambda data: pa.compress(data, "lz4", asbytes=True)),
        (4, lambda data: pa.compress(data, "zstd", asbytes=True)),
    ],
    ids=["none", "gzip", "snappy", "snappy-java", "lz4", "zstd"],
)
def test_records_of_each_codec_are_the_same(codec: int, pack: Callable[[bytes], bytes]) -> None:
    log = [*records(300), Record(300, START, b"k1", None), Record(301, START, None, b"no key")]
    found_rows = keys_of(batch(log, flags=codec, pack=pack), bounds=(0, 302))
    assert found_rows == keys_of(*(record.stored for record in log), bounds=(0, 302))
    assert sorted(found_rows) == [293, 294, 296, 297, 298, 299, 300]  # 300 is the tombstone of 295
    assert [offset for offset, row in found_rows.items() if row["tombstone"]] == [300]


def test_a_batch_that_the_cleaner_rewrote_has_the_same_records() -> None:
    log = records(7)
    cleaned = [record for record in log if record.offset in (2, 6)]
    whole = keys_of(batch(log))
    assert keys_of(batch(cleaned)) == {offset: whole[offset] for offset in (2, 6)}
    changed = keys_of(batch([log[2]._replace(headers=()), log[6]._replace(value=b"")]))
    assert all(changed[offset]["content"] != whole[offset]["content"] for offset in (2, 6))
    # broker's time: the records' own times do not count
    (late,) = keys_of(batch([Record(1, START, b"k", b"v"), Record(2, START + 5, b"k", b"v")], flags=8)).values()
    assert late["timestamp"] == START + 5


def test_records_of_aborted_transactions_do_not_count() -> None:
    def marker(offset: int, producer: int, kind: int) -> bytes:
        return batch([Record(offset, 0, struct.pack(">hh", 0, kind), b"\0" * 6)], flags=0x30, producer=producer)

    def written(offset: int, producer: int, key: bytes) -> bytes:
        return batch([Record(offset, 0, key, b"v")], flags=0x10, producer=producer)

    log = [
        written(0, 7, b"a"),
        written(1, 8, b"b"),
        marker(2, 7, 0),
        written(3, 7, b"c"),
        marker(4, 8, 1),
        marker(5, 7, 1),
    ]
    assert sorted(keys_of(*log, aborted=[(7, 0)])) == [1, 3]
    assert sorted(keys_of(*log, aborted=[(7, 0), (8, 1)])) == [3]
    assert sorted(keys_of(*log)) == [0, 1, 3]


def test_records_below_the_first_bound_are_left_out() -> None:
    assert sorted(keys_of(batch(records(7)), batch(records(7, 7)), bounds=(5, 14))) == [7, 8, 9, 10, 11, 12, 13]
    assert sorted(keys_of(batch([Record(3, 0, b"a", b""), Record(6, 0, b"b", b"")]), bounds=(5, 14))) == [6]


@pytest.mark.parametrize("magic", [0, 1])
def test_keys_of_old_formats(magic: int) -> None:
    def message(offset: int, key: bytes | None, value: bytes, flags: int = 0) -> bytes:
        name = struct.pack(">i", -1) if key is None else struct.pack(">i", len(key)) + key
        time = struct.pack(">q", START + offset) if magic else b""
        checked = struct.pack(">bb", magic, flags) + time + name + struct.pack(">i", len(value)) + value
        return struct.pack(">qiI", offset, len(checked) + 4, zlib.crc32(checked)) + checked

    plain = [message(offset, b"k%d" % offset, b"v") for offset in (4, 5, 6)]
    inner = [message(offset - (4 if magic else 0), b"k%d" % offset, b"v") for offset in (4, 5, 6)]
    packed = message(6, None, gzip.compress(b"".join(inner)), flags=1)
    rows, of_packed = keys_of(*plain), keys_of(packed)
    assert sorted(rows) == sorted(of_packed) == [4, 5, 6]
    assert [rows[offset]["key_hash"] for offset in rows] == [of_packed[offset]["key_hash"] for offset in rows]
    assert [rows[offset]["content"] for offset in rows] == [of_packed[offset]["content"] for offset in rows]


def test_a_batch_that_cannot_be_uncompressed_is_not_read() -> None:
    for broken in (batch(records(3), flags=1), batch(records(3), flags=4), batch(records(3), flags=6)):
        with pytest.raises(batches.CorruptBatch, match="orders-0: the stored batch at offset 0 "):
            keys_of(broken)


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


def test_cleaned_tombstone_cannot_be_proven() -> None:
    log = [record for record in records() if record.key != b"k3"]
    short = {"delete_retention_ms": HOUR // 2}
    was, later = compacted(35, **short), Record(40, NOW, b"k1", b"v")
    # One of the offsets 35 to 39 can have been its tombstone, or all are superseded records or transaction markers
    findings = found(records(), [*log, later], was, compacted(41, **short))
    assert compare.verdict(findings) == "incomplete"
    assert findings.counts["key"]["skipped"] == 1
    assert findings.skipped[0][2].startswith("orders-0: 1 of 7 keys disappeared and have no tombstone")
    assert "5 offsets above the baseline's end 35 have no record" in findings.skipped[0][2]
    assert "quorumshift_fingerprint_purged" in findings.skipped[0][2]
    # the operator says that clients delete keys: excused, if there is room for as many tombstones, and listed
    findings = found(records(), [*log, later], was, compacted(41, **short), purged_topics=["ord*"])
    assert compare.verdict(findings) == "pass"
    assert findings.excused[0][2].startswith("orders-0: 1 of 7 keys disappeared")
    # each offset that was written since still has a record, so none was its tombstone
    superseded = [Record(offset, NOW, b"k1", b"v") for offset in range(35, 41)]
    for purged in ([], ["ord*"]):
        after = found(records(), log + superseded, was, compacted(41, **short), purged_topics=purged)
        assert rules(after) == ["key_vanished"]
    # no offset was written since that could have been its tombstone
    assert rules(found(records(), log, was, compacted(35, **short))) == ["key_vanished"]
    full = [Record(offset, NOW, b"k1", b"v") for offset in (35,)]
    assert rules(found(records(), log + full, was, compacted(36, **short))) == ["key_vanished"]
    # only the config of now lets the tombstone go
    findings = found(records(), [*log, later], compacted(35), compacted(41, **short))
    assert compare.verdict(findings) == "incomplete"
    assert "delete.retention.ms was 86400000 and is 1800000" in findings.skipped[0][2]


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
    log = [record for record in records() if record.offset >= 31]
    was, now = (state(35, log_start=start, retention_ms=HOUR, **both) for start in (0, 31))
    assert compare.verdict(found(records(), log, was, now)) == "pass"
    assert set(
        rules(found(records(), log, was._replace(retention_ms=24 * HOUR), now._replace(retention_ms=24 * HOUR)))
    ) == {"key_vanished"}
    assert compare.verdict(found(records(), log, was._replace(retention_ms=24 * HOUR), now)) == "incomplete"
    # the cleaner makes a log smaller, also below the size that retention left
    for limit, verdict in ((1, "pass"), (10_000, "incomplete")):
        by_size = {"retention_ms": -1, "retention_bytes": limit}
        assert compare.verdict(found(records(), log, was._replace(**by_size), now._replace(**by_size))) == verdict


def test_truncated_compacted_log_is_found() -> None:
    findings = found(records(), records(33), compacted(35), compacted(33))
    assert "truncated" in rules(findings)


def test_many_differences_are_listed_in_part_and_counted_completely() -> None:
    log = [Record(offset, START, b"k%d" % offset, b"v") for offset in range(500)]
    findings = found(log, [], compacted(500), compacted(500))
    assert findings.counts["key"]["left_only"] == 500
    assert len(findings.differences) == keys.SHOWN + 1
    assert json.loads(findings.differences[-1].sides["baseline"]) == {"further keys": 500 - keys.SHOWN}


# --- consumer groups and transactions ------------------------------------------------------------------------------

RETENTIONS = {coordinators.OFFSETS_RETENTION: 7 * 24 * HOUR, coordinators.IDS_RETENTION: 7 * 24 * HOUR}
TP = ("orders", 0)
INTERNAL = {
    (topic, number): state(100)._replace(topic=topic, partition=number, compacted=True)
    for topic in coordinators.INTERNAL[:2]
    for number in range(50)
}


def kept(groups: Dict[str, Group] | None = None, **transactions: Transaction) -> Coordinators:
    return Coordinators(groups or {}, transactions, RETENTIONS)


def coordinated(
    was: Coordinators,
    now: Coordinators,
    ends: Any = None,
    read_ms: int = NOW,
    tombstones: Any = (),
    written: Any = (),
    used: int = NOW - HOUR,
    left: int = 0,
    recreated: Any = (),
) -> Findings:
    """Compare coordinators. `tombstones`: names of groups or transactional ids whose newest record is one; `written`:
    of those whose newest record is none; all others have no record. At the baseline each had one of `used`, and each
    group one of `left`, the time when its last member left."""
    ends = {TP: 100} if ends is None else ends
    gone = coordinators.missing(was, now, {topic for topic, _number in ends}, INTERNAL)
    newest: Dict[bytes, List[Newest]] = {}
    for entry in gone:
        newest[entry.records[-1]] = [(False, 7, used, False)]
        if entry.key[0] in (*tombstones, *written):
            newest[entry.records[-1]].append((True, 123, NOW, entry.key[0] in tombstones))
        for record in entry.of_group if left else ():
            newest[record] = [(False, 8, left, False)]
    known = {tp: entry.end for tp, entry in INTERNAL.items()}
    findings = coordinators.compare(was, now, ends, read_ms, gone, newest, recreated, known)
    assert all(counted["read"] == sum(counted[name] for name in OUTCOMES) for counted in findings.counts.values())
    return findings


def groups(was: Dict[str, Group], now: Dict[str, Group], **more: Any) -> Findings:
    return coordinated(kept(was), kept(now), **more)


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


def test_an_offset_that_a_client_reset_has_a_record_above_the_baseline() -> None:
    was, now = {"g": Group("EMPTY", {TP: 50})}, {"g": Group("EMPTY", {TP: 10})}
    findings = groups(was, now, written=["g"])
    assert compare.verdict(findings) == "pass" and "committed since the baseline" in findings.excused[0][2]
    # A coordinator that lost the newest records has an older one, or none
    assert rules(groups(was, now)) == ["group_regressed"]
    assert rules(groups(was, now, tombstones=["g"])) == ["group_regressed"]


def test_offsets_of_a_topic_that_was_created_again_begin_anew() -> None:
    was = {"g": Group("EMPTY", {TP: 50})}
    for now in ({"g": Group("EMPTY", {TP: 10})}, {}, {"g": Group("EMPTY", {TP: 70})}):
        findings = coordinated(kept(was), kept(now), recreated={"orders"}, ends={TP: 100})
        listed = [why for _kind, _key, why in findings.excused if "created again" in why]
        assert len(listed) == 1 and not findings.differences


@pytest.mark.parametrize("state_then", ["STABLE", "EMPTY"])
@pytest.mark.parametrize("now", [{}, {"g": Group("STABLE", {})}], ids=["group", "offset"])
def test_missing_offset_needs_evidence(state_then: str, now: Dict[str, Group]) -> None:
    was = {"g": Group(state_then, {TP: 50})}
    lost = groups(was, now)
    assert compare.verdict(lost) == "incomplete"
    assert "group g in orders-0: offset 50, now none, and __consumer_offsets-3 has no tombstone" in lost.skipped[0][2]
    assert "--group 'g' --topic orders:0 --reset-offsets --to-offset 50 --execute" in lost.skipped[0][2]
    for evidence in ({"tombstones": ["g"]}, {"ends": {}}):
        findings = groups(was, now, **evidence)
        assert compare.verdict(findings) == "pass", evidence
        assert findings.excused[0][2].startswith("offset 50, now none: ")


@pytest.mark.parametrize(
    ("then", "now", "verdict"),
    [
        ("EMPTY", {}, "pass"),
        ("EMPTY", {"g": Group("EMPTY", {})}, "pass"),
        ("EMPTY", {"g": Group("STABLE", {})}, "incomplete"),
        ("STABLE", {}, "incomplete"),
        ("PREPARING_REBALANCING", {"g": Group("EMPTY", {})}, "incomplete"),
        ("UNKNOWN", {}, "incomplete"),
    ],
)
def test_only_the_offset_of_a_group_without_members_can_have_expired(then: str, now: Any, verdict: str) -> None:
    was, week = {"g": Group(then, {TP: 50})}, 7 * 24 * HOUR
    assert compare.verdict(groups(was, now, used=NOW - week)) == verdict
    # its coordinator would have loaded this record
    lost = groups(was, now, used=NOW - week, written=["g"])
    assert compare.verdict(lost) == "incomplete"
    assert "its newest record in __consumer_offsets-3 is no tombstone" in lost.skipped[0][2]


def test_what_cannot_have_expired_is_not_excused() -> None:
    """An offset that was committed less than the retention ago, also if its tombstone can have been cleaned since."""
    was, week = {"g": Group("EMPTY", {TP: 50})}, 7 * 24 * HOUR
    lost = groups(was, {}, used=NOW - week + 1)
    assert compare.verdict(lost) == "incomplete"
    assert "It was last used 20" in lost.skipped[0][2] and "offsets.retention.minutes is 168 h" in lost.skipped[0][2]
    # the offset is old, but its group had members until a moment ago
    assert compare.verdict(groups(was, {}, used=NOW - week, left=NOW - week + 1)) == "incomplete"
    assert compare.verdict(groups(was, {}, used=NOW - 2 * week, left=NOW - week)) == "pass"
    # the baseline has no record of it
    gone = coordinators.missing(kept(was), kept(), ["orders"], INTERNAL)
    assert compare.verdict(coordinators.compare(kept(was), kept(), {TP: 100}, NOW + week, gone, {})) == "incomplete"


def test_the_longer_retention_decides() -> None:
    was = kept({"g": Group("EMPTY", {TP: 50})}, t=Transaction(7, 3))
    raised = dict.fromkeys(RETENTIONS, 30 * 24 * HOUR)
    after = coordinated(was, Coordinators({}, {}, raised), used=NOW - 8 * 24 * HOUR)
    assert [key for _kind, key, _why in after.skipped] == ['["g","orders",0]', '["t"]']
    assert "transactional.id.expiration.ms is 720 h" in after.skipped[1][2]


def test_offset_beyond_the_log_is_found() -> None:
    was = {"g": Group("STABLE", {TP: 50})}
    assert rules(groups(was, {"g": Group("STABLE", {TP: 101})})) == ["group_beyond_end"]
    assert rules(groups({}, {"g": Group("STABLE", {TP: 101})})) == ["group_beyond_end"]


@pytest.mark.parametrize(
    ("after", "expected"),
    [((7, 3), []), ((7, 4), []), ((9, 0), []), ((7, 2), ["producer_regressed"]), ((6, 9), ["producer_regressed"])],
)
def test_producer_id_and_epoch_never_decrease(after: Tuple[int, int], expected: List[str]) -> None:
    assert rules(coordinated(kept(t=Transaction(7, 3)), kept(t=Transaction(*after)))) == expected


def test_missing_transactional_id_needs_evidence() -> None:
    was = kept(t=Transaction(7, 3))
    lost = coordinated(was, kept())
    assert compare.verdict(lost) == "incomplete"
    assert "transactional id t" in lost.skipped[0][2]
    assert compare.verdict(coordinated(was, kept(), tombstones=["t"])) == "pass"
    # Only its expiration explains that it has no tombstone
    assert compare.verdict(coordinated(was, kept(), used=NOW - 6 * 24 * HOUR)) == "incomplete"
    assert compare.verdict(coordinated(was, kept(), used=NOW - 8 * 24 * HOUR)) == "pass"
    assert compare.verdict(coordinated(was, kept(), used=NOW - 8 * 24 * HOUR, written=["t"])) == "incomplete"


def test_truncated_internal_topic_is_found() -> None:
    place, before = next(iter(INTERNAL.items()))
    baseline = read([], before)
    assert rules(compared(baseline, read([], before._replace(end=99)))) == ["truncated"]
    assert rules(compared(baseline, read([], before._replace(topic_id="x")))) == ["topic_recreated"]
    assert place in baseline.partitions


def test_patterns_choose_topics_but_never_internal_ones() -> None:
    names = ("orders-eu", "orders-us", "payments", "__consumer_offsets")
    assert cluster.chosen(names, ["*"], []) == ["orders-eu", "orders-us", "payments"]
    assert cluster.chosen(names, ["orders-*", "__*"], ["*-us"]) == ["orders-eu"]


def test_a_sample_is_the_same_in_both_runs_and_never_the_whole() -> None:
    for sample in (Sample(last=25), Sample(percent=20, seed=7)):
        was, now = state(1000), state(1500)
        first = plan.ranges(was, None, (), SIZE, sample)
        baseline = [chunk for part in first for chunk in scan(records(1000), part).chunks]
        assert 0 < len(baseline) < 60
        again = plan.ranges(now, was, [(chunk.begin, chunk.end) for chunk in baseline], SIZE, sample)
        bounds = [pair for part in again for pair in zip(part.bounds, part.bounds[1:])]
        assert [pair for pair in bounds if pair[1] <= 1000] == [(chunk.begin, chunk.end) for chunk in baseline]
        assert any(pair[0] >= 1000 for pair in bounds)
        current = [chunk for part in again for chunk in scan(records(1500), part).chunks]
        then, here = (
            of_chunks(of, chunks, samples={"orders": sample}) for of, chunks in ((was, baseline), (now, current))
        )
        findings = compared(then, here, {was.tp: 1})
        assert compare.verdict(findings) == "pass"
        assert "log" not in findings.counts and findings.counts["log_of_a_sample"]["match"] == 1
        contents = {was.tp: compare.Both(None, was, ()).content([], baseline)}
        assert 0 < compare.shares(then, contents)["orders"] < 0.6
        broken = [chunk._replace(hash="") if chunk.begin == baseline[0].begin else chunk for chunk in current]
        assert rules(compared(then, of_chunks(now, broken, samples={"orders": sample}))) == ["records_changed"]
    assert plan.ranges(was, None, (), SIZE, Sample(percent=20, seed=8)) != first
    # a small partition has at least one chunk
    assert len(plan.ranges(state(35), None, (), SIZE, Sample(percent=0.001))) == 1
    assert plan.ranges(state(1000), None, (), SIZE, Sample(last=25)) == [
        Range("orders", 0, "id-1", (970, 980, 990, 1000), cut=False)
    ]


def test_a_chunk_whose_predecessor_retention_removed_does_not_gain_the_batch_that_its_bound_cuts():
    """The baseline counted that batch in the chunk before: with it, this chunk would differ on a healthy cluster."""
    whole = Range("orders", 0, "id-1", (0, 10, 20, 30))
    assert fetch._from(whole, 5) == Range("orders", 0, "id-1", (10, 20, 30), cut=False)
    assert fetch._from(whole, 0) == whole
    assert fetch._from(whole, 25) is None

    baseline = [(0, 10), (10, 20), (20, 30)]
    wanted = plan.ranges(state(30, log_start=10), state(30), baseline, SIZE)
    assert wanted == [Range("orders", 0, "id-1", (10, 20, 30), cut=False)]
    wanted = plan.ranges(state(30), state(30), baseline, SIZE)
    assert wanted == [Range("orders", 0, "id-1", (0, 10, 20, 30), cut=True)]


def test_a_baseline_whose_log_start_moved_during_its_scan_can_be_compared():
    """Its first chunk begins above its log start: the batch that this bound cuts belongs to no chunk."""
    baseline = [(10, 20), (20, 30)]
    wanted = plan.ranges(state(30, log_start=5), state(30, log_start=5), baseline, SIZE)
    assert wanted == [Range("orders", 0, "id-1", (10, 20, 30), cut=False)]
