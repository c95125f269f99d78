# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The columns of a metadata log against the generic decoder: the same records, or the same error at the same place."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import tarfile
from pathlib import Path

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import metadata_log
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.records.record_batch import (
    CorruptBatch,
    LogError,
)
from quorumshift_spark.columns import log as columns

from tests.unit.formats import metadata_batches as made
from tests.unit.spark.columns import encoding

DATA = Path(__file__).parents[2] / "formats" / "data"
PARTITION, CHANGE = "PARTITION_RECORD", "PARTITION_CHANGE_RECORD"
HEADER, CHECKED_FROM = 61, 21


def row(record):
    """Return a record of the generic decoder as a row of the columns."""
    fields, is_change = record.fields, record.type == CHANGE
    found = {column: fields.get(name) for column, name in columns.COLUMNS.items()}
    for column in columns.SORTED:
        found[column] = None if found[column] is None else sorted(found[column])
    if is_change:
        found["leader"] = None if fields["leader"] == -2 else fields["leader"]
        found["recovery_state"] = None if fields["leaderRecoveryState"] == -1 else fields["leaderRecoveryState"]
    return {**found, "is_change": is_change, "offset": record.offset}


def generic(directory, end_offset=None):
    """Return rows of the generic decoder."""
    return [row(record) for record in metadata_log.read_records(directory, end_offset, {PARTITION, CHANGE})]


def by_columns(directory, end_offset=None, tasks=1):
    """Return rows of the columns, as so many tasks read them."""
    rows = []
    with metadata_log.open_log(directory, end_offset) as log:
        parts = columns.parts(log, metadata_log.scan_log(log, end_offset, counts=False))
    for number in range(tasks):
        for part in parts:
            for batch in columns.read_part(part, columns.Share(number, tasks)):
                assert batch.schema == columns.PARTITION_RECORDS
                batch.validate(full=True)
                rows += batch.to_pylist()
    return rows


def outcome(read, directory, end_offset=None):
    """Return what a reader found, in one order, or its error with file, byte, offset and record type."""
    try:
        rows = read(directory, end_offset)
    except LogError as error:
        return type(error), re.sub(r"( version \d: ).*", r"\1", str(error))
    return sorted(map(repr, rows))


def assert_same(directory, end_offset=None):
    assert outcome(by_columns, directory, end_offset) == outcome(generic, directory, end_offset)


@pytest.fixture
def write(tmp_path):
    """write({file name: [batch, ...]}) creates a metadata log directory and returns its path."""

    def lay_out(files):
        for name in os.listdir(tmp_path):
            (tmp_path / name).unlink()
        for name, batches in files.items():
            (tmp_path / name).write_bytes(b"".join(batches))
        return str(tmp_path)

    return lay_out


SEGMENT, CHECKPOINT = f"{0:020d}.log", f"{40:020d}-{1:010d}.checkpoint"


def values(rng, count):
    """Return record values as in a log: mostly partitions, with transactions."""
    found, is_open = [], False
    for _value in range(count):
        made_values = [
            encoding.partition(rng),
            encoding.change(rng),
            encoding.record("TOPIC_RECORD", name="t" * rng.randint(1, 200), topicId=encoding.uuid(rng)),
            made.config(2, "a", "retention.ms", str(rng.randint(0, 99))),
            made.NO_OP,
        ]
        (value,) = rng.choices(made_values, [10, 6, 2, 1, 1])
        if rng.random() < 0.02:
            value, is_open = (rng.choice((made.END, made.ABORT)), False) if is_open else (made.BEGIN, True)
        found.append(value)
    return found


def batches(rng, found, base=0):
    """Return the batches of these values."""
    made_batches = []
    while found:
        size = rng.choice((1, 5, 200))
        made_batches.append(made.batch(base, found[:size], timestamp=rng.randint(0, 1 << 40)))
        base, found = base + len(found[:size]), found[size:]
    return made_batches


@pytest.mark.parametrize("seed", range(12))
def test_generated_logs(write, seed, monkeypatch):
    rng = random.Random(seed)
    monkeypatch.setattr(columns, "_CHUNK", rng.choice((100, 5000, 4 << 20)))
    found = values(rng, 600)
    directory = write({SEGMENT: batches(rng, found)})
    for end_offset in (None, rng.randint(0, 600)):
        assert_same(directory, end_offset)


@pytest.mark.parametrize("seed", range(4))
def test_generated_checkpoints_and_the_segments_after_them(write, seed):
    rng = random.Random(seed)
    copied = [value for value in values(rng, 40) if value not in (made.BEGIN, made.END, made.ABORT)]
    snapshot = [made.batch(0, [made.SNAPSHOT_HEADER]), *batches(rng, copied, 1)]
    snapshot.append(made.batch(1 + len(copied), [made.SNAPSHOT_FOOTER]))
    directory = write({CHECKPOINT: snapshot, SEGMENT: batches(rng, values(rng, 80))})
    assert_same(directory)
    rows = by_columns(directory)
    assert {item["offset"] for item in rows if item["offset"] < 40} == {39}


@pytest.mark.parametrize("seed", range(300))
def test_changed_bytes(write, seed):
    """One byte of the records is changed, under a correct checksum: same records, or the same error."""
    rng = random.Random(seed)
    found = [value for value in values(rng, 12) if value not in (made.BEGIN, made.END, made.ABORT)]
    batch = bytearray(made.batch(0, found))
    at = rng.randrange(HEADER, len(batch))
    batch[at] = rng.choice((0, 1, 2, 0x7F, 0x80, 0xFF, batch[at] ^ (1 << rng.randrange(8))))
    batch[17:21] = made.crc32c(bytes(batch[CHECKED_FROM:])).to_bytes(4, "big")
    after = made.batch(len(found), [encoding.partition(rng)])
    files = {SEGMENT: [bytes(batch), after]}
    if seed % 2:
        files = {CHECKPOINT: [made.batch(0, [made.SNAPSHOT_HEADER]), bytes(batch), after], SEGMENT: []}
        files[CHECKPOINT].append(made.batch(99, [made.SNAPSHOT_FOOTER]))
    assert_same(write(files))


@pytest.mark.parametrize("seed", range(20))
def test_truncated_and_corrupted_files(write, seed):
    rng = random.Random(seed)
    log = b"".join(batches(rng, values(rng, 60)))
    assert_same(write({SEGMENT: [log[: rng.randrange(len(log))]]}))
    changed = bytearray(log)
    changed[rng.randrange(len(log))] ^= 1 << rng.randrange(8)
    assert_same(write({SEGMENT: [bytes(changed)]}))


def test_a_record_with_what_kafka_does_not_write_today(write):
    """Keys, headers, times and long varints in a record, between usual ones."""
    rng = random.Random(1)
    value = encoding.partition(rng)
    usual = made._record(0, None, value)[-len(value) - 1 : -1]
    assert usual == value
    bodies = [
        b"\0" + time + delta + key + size + value + headers
        for time, delta, key, size, headers in [
            (b"\0", b"\0", b"\1", made._varint(len(value)), b"\0"),
            (b"\x04", b"\x02", b"\1", made._varint(len(value)), b"\0"),
            (b"\0", b"\x84\x80\0", b"\1", made._varint(len(value)), b"\0"),
            (b"\0", b"\x06", b"\x04kk", made._varint(len(value)), b"\0"),
            (b"\0", b"\x08", b"\1", made._varint(len(value)), b"\x02\x02h\x02v"),
        ]
    ]
    body = b"".join(made._varint(len(record)) + record for record in bodies)
    batch = bytearray(made.batch(0, [made.NO_OP] * len(bodies)))
    batch[HEADER:] = body
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    batch[17:21] = made.crc32c(bytes(batch[CHECKED_FROM:])).to_bytes(4, "big")
    directory = write({SEGMENT: [bytes(batch)]})
    assert_same(directory)
    assert [item["offset"] for item in by_columns(directory)] == [0, 1, 2, 3, 4]


def kafkas_records():
    """Return the partition records that Kafka itself wrote, with all of its ways to fill them."""
    lines = gzip.decompress((DATA / "metadata_records.jsonl.gz").read_bytes()).splitlines()
    cases = [json.loads(line) for line in lines]
    return [bytes.fromhex(case["bytes"]) for case in cases if case["type"] in (PARTITION, CHANGE)]


def test_records_that_kafka_wrote(write):
    records = kafkas_records()
    assert len(records) >= 24
    for position, record in enumerate(records):
        assert_same(write({SEGMENT: [made.batch(0, [record])]}))
        assert_same(write({SEGMENT: [made.batch(0, [*records[:position], *records])]}))


def test_the_common_form_is_decoded_by_columns(write, monkeypatch):
    """What Kafka writes, all versions and tagged fields included, does not need the generic decoder."""

    def refused(*_arguments):
        raise AssertionError("decoded slowly")

    monkeypatch.setattr(columns, "_read_slowly", refused)
    rng = random.Random(5)
    monkeypatch.setattr(encoding, "ids", lambda rng: [3, 1, 2][: rng.randint(0, 3)])
    rows = by_columns(write({SEGMENT: batches(rng, values(rng, 2000))}))
    assert sum(item["is_change"] for item in rows) > 300


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    home = tmp_path_factory.mktemp("recorded")
    with tarfile.open(DATA / "metadata_log.tar.xz") as tar:
        tar.extractall(home)
    return home / "__cluster_metadata-0"


def test_the_log_of_a_real_migration(recorded, tmp_path):
    files = metadata_log.list_files(str(recorded))
    assert_same(str(recorded))
    for segment in files.segments:  # its history before the checkpoint as a log
        (tmp_path / os.path.basename(segment.path)).symlink_to(segment.path)
    with metadata_log.open_log(str(tmp_path), all_segments=True) as log:
        extent = metadata_log.scan_log(log)
        parts = columns.parts(log, extent)
        expected = [row(item) for item in metadata_log.log_records(log, extent, {PARTITION, CHANGE})]
    rows = [item for part in parts for batch in columns.read_part(part) for item in batch.to_pylist()]
    assert sorted(map(repr, rows)) == sorted(map(repr, expected))


@pytest.mark.parametrize("seed", range(6))
def test_each_topic_is_of_one_task(write, seed):
    """Also where batches go through the generic decoder."""
    rng = random.Random(seed)
    directory = write({SEGMENT: batches(rng, values(rng, 300))})
    for tasks in (2, 7):
        assert sorted(map(repr, by_columns(directory, tasks=tasks))) == sorted(map(repr, by_columns(directory)))


def test_a_log_without_records_has_no_parts(write):
    directory = write({SEGMENT: []})
    assert by_columns(directory) == []


def test_a_batch_with_a_wrong_checksum_is_an_error_of_its_part(write):
    rng = random.Random(4)
    found = batches(rng, [encoding.partition(rng) for _value in range(30)])
    directory = write({SEGMENT: found})
    with metadata_log.open_log(directory) as log:
        parts = columns.parts(log, metadata_log.scan_log(log))
    data = bytearray(Path(directory, SEGMENT).read_bytes())
    data[-3] ^= 1
    Path(directory, SEGMENT).write_bytes(data)
    with pytest.raises(CorruptBatch, match="wrong checksum") as raised:
        list(columns.read_part(parts[-1]))
    assert raised.value.path == parts[-1].path and parts[-1].start <= raised.value.position < parts[-1].end


def test_a_file_that_has_become_shorter_is_an_error(write):
    """An incomplete last batch ends a log; at the end of a part it would be lost silently."""
    rng = random.Random(7)
    directory = write({SEGMENT: batches(rng, [encoding.partition(rng) for _value in range(30)])})
    with metadata_log.open_log(directory) as log:
        parts = columns.parts(log, metadata_log.scan_log(log))
    os.truncate(parts[-1].path, parts[-1].end - 1)
    with pytest.raises(LogError, match=f"they ended at byte {parts[-1].end} before") as raised:
        list(columns.read_part(parts[-1]))
    assert raised.value.path == parts[-1].path


def test_a_marker_that_the_scan_did_not_find_is_an_error(write):
    """Kafka writes the api key in one byte; a longer varint of it would be read as a marker all the same."""
    longer = b"\x01\x97\x00" + made.BEGIN[2:]
    directory = write({SEGMENT: [made.batch(0, [longer, encoding.partition(random.Random(6))])]})
    with pytest.raises(metadata_log.BrokenTransaction, match="that the scan of the log did not find, record 0"):
        by_columns(directory)
