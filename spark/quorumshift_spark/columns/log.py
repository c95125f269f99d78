# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The partition records of a metadata log as Arrow columns.

    with open_log(directory, end_offset) as log:
        for part in parts(log, scan_log(log, end_offset, counts=False)):
            for batch in read_part(part): ...

The rows are those of metadata_log.log_records, but not in its order: `offset` has it. A part that cannot be read raises
the error of the generic decoder, with its file, byte and offset.
"""

from __future__ import annotations

import base64
import itertools
import sys
from typing import Any, BinaryIO, Dict, Iterator, List, NamedTuple, Tuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.messages.messages import fields_of
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_log import (
    COMMITTED,
    MARKERS,
    BrokenTransaction,
    Extent,
    OpenLog,
    Record,
    Transaction,
    Unread,
    decode_batch,
    segment_batches,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_schemas import (
    API_KEYS,
    RECORDS,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.records.record_batch import (
    Batch,
    LogError,
    read_batches,
    read_varint,
)

from quorumshift_spark.columns import sorted_lists
from quorumshift_spark.columns.structs import ARROW_TYPES, PADDING, Cursor, read_structs

_PARTITION, _CHANGE = API_KEYS["PARTITION_RECORD"], API_KEYS["PARTITION_CHANGE_RECORD"]
_LAST_BITS_OF_TOPIC = 4 + 8  # both record types begin with the partition's number and the topic's id
_NO_KEY = 1  # a length of -1 as a varint
_CHUNK = 4 << 20  # bytes that are decoded together: about 60,000 records

COLUMNS = {
    "topic_id": "topicId",
    "partition": "partitionId",
    "replicas": "replicas",
    "isr": "isr",
    "removing": "removingReplicas",
    "adding": "addingReplicas",
    "leader": "leader",
    "leader_epoch": "leaderEpoch",
    "recovery_state": "leaderRecoveryState",
    "partition_epoch": "partitionEpoch",
    "elr": "eligibleLeaderReplicas",
    "last_known_elr": "lastKnownElr",
    "directories": "directories",
}
SORTED = ("isr", "removing", "adding", "elr", "last_known_elr")
"""Lists whose order means nothing."""
_UNCHANGED = {"leader": -2, "recovery_state": -1}  # LeaderConstants.NO_LEADER_CHANGE, LeaderRecoveryState.NO_CHANGE
_TYPES = {field.name: ARROW_TYPES[field.type] for field in fields_of("PartitionRecord", RECORDS[_PARTITION].latest)}

PARTITION_RECORDS = pa.schema(
    [
        *((column, _TYPES[name]) for column, name in COLUMNS.items()),
        ("is_change", pa.bool_()),
        ("offset", pa.int64()),
    ]
)
"""A PARTITION_RECORD, or with `is_change` a PARTITION_CHANGE_RECORD, where null is unchanged.

`topic_id` is Kafka's base64 text, as TOPIC_RECORD, ZooKeeper and the answers of brokers have it: they join without a
conversion. `replicas` are in their order, and `directories` (KIP-858) in that of the replicas, without any where the
record names none; the other lists are sorted.
"""


def record(row: Dict[str, Any]) -> Record:
    """Return the record of a row, for metadata_image, which replays a few partitions."""
    fields = {name: row[column] for column, name in COLUMNS.items()}
    if not row["is_change"]:
        return Record(row["offset"], -1, -1, RECORDS[_PARTITION].name, 0, fields, False)
    fields.update({COLUMNS[column]: none for column, none in _UNCHANGED.items() if row[column] is None})
    return Record(row["offset"], -1, -1, RECORDS[_CHANGE].name, 0, fields, False)


class Part(NamedTuple):
    """Complete batches of one file: bytes [start, end). Only records with offsets in [low, high) count.

    `transactions`: those of the log. `checkpoint`: the offset of all records if the file is a checkpoint, else None.
    """

    path: str
    start: int
    end: int
    low: int
    high: int
    transactions: Tuple[Transaction, ...]
    checkpoint: int | None

    def dropped(self) -> List[Tuple[int, int]]:
        """Return first and end (exclusive) of the offsets of each transaction that is aborted or open."""
        return [
            (each.begin_offset, sys.maxsize if each.end_offset is None else each.end_offset)
            for each in self.transactions
            if each.outcome != COMMITTED
        ]


# --- the files of a log --------------------------------------------------------------------------------


def parts(log: OpenLog, extent: Extent) -> List[Part]:
    """Return the part of each file. Raises as scan_log does. It decodes the headers of batches only."""
    found: Dict[str, Part] = {}
    for batch, path in _batches(log, extent):
        if path not in found:
            found[path] = _part(log, extent, path, batch.position)
        found[path] = found[path]._replace(end=batch.position + batch.size)
    return list(found.values())


def _batches(log: OpenLog, extent: Extent) -> Iterator[Tuple[Batch, str]]:
    if log.checkpoint:
        for batch in read_batches(log.checkpoint_file, log.checkpoint.path, check_crc=False):
            yield batch, log.checkpoint.path
    yield from segment_batches(log, extent.end_offset, check_crc=False)


def _part(log: OpenLog, extent: Extent, path: str, start: int) -> Part:
    if log.checkpoint and path == log.checkpoint.path:
        return Part(path, start, start, 0, sys.maxsize, (), log.checkpoint.offset - 1)
    return Part(path, start, start, log.start_offset, extent.end_offset, tuple(extent.transactions), None)


# --- reading a part ------------------------------------------------------------------------------------


class Share(NamedTuple):
    """The topics that a task takes: those with this `number` of `of`."""

    number: int = 0
    of: int = 1

    def own(self, ids: Any) -> Any:
        """Return whether topics are its own, by the last 64 bits of their ids."""
        return ids % self.of == self.number


WHOLE = Share()


def read_part(part: Part, share: Share = WHOLE, unread: Unread | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the partition records of a part as batches of PARTITION_RECORDS. Checksums are checked. Raises as
    log_records does; with `unread`, which notes their unknown fields, records of unknown types are no error."""
    with open(part.path, "rb") as file:
        for batches in _chunks(_batches_of(part, file)):
            yield from _read_chunk(part, batches, share, unread)


def _batches_of(part: Part, file: BinaryIO) -> Iterator[Batch]:
    """Yield the batches of a part. A file that has become shorter since the split is an error, not fewer records."""
    end = part.start
    for batch in read_batches(file, part.path, part.low, True, part.start, part.end):
        yield batch
        end = batch.position + batch.size
    if end != part.end:
        raise LogError(f"the complete batches end here, they ended at byte {part.end} before", part.path, end)


def _chunks(batches: Iterator[Batch]) -> Iterator[List[Batch]]:
    """Group batches. What precedes an error is yielded before it is raised: it may contain an earlier one."""
    chunk: List[Batch] = []
    size = 0
    try:
        for batch in batches:
            if not batch.is_control:
                chunk.append(batch)
                size += batch.size
            if size >= _CHUNK:
                yield chunk
                chunk, size = [], 0
    except LogError:
        if chunk:
            yield chunk
        raise
    if chunk:
        yield chunk


def _starts(batch: Batch) -> List[int]:
    """Return where the records of a batch start, [] if their lengths do not lead to its end."""
    data, at, starts = batch.records, 0, []
    size = len(data)
    try:
        while at < size:
            starts.append(at)
            length = data[at]
            if length < 0x80:
                at += 1 + (length >> 1)
            elif data[at + 1] < 0x80:
                at += 2 + ((length & 0x7F | data[at + 1] << 7) >> 1)
            else:
                length, body = read_varint(data, at)
                at = body + max(length, 0)
    except IndexError:
        return []
    return starts if at == size and len(starts) == batch.count else []


_KNOWN = np.zeros((256, 256), bool)  # by type and version
for _key, _schema in RECORDS.items():
    _KNOWN[_key, : _schema.latest + 1] = True


class _Frames(NamedTuple):
    """The records of a chunk, an array of each: number of the batch, offset, type and version, where the
    body is in `data` (`end` is exclusive), and whether the record is not in the common form (`odd`)."""

    data: bytes
    batch: np.ndarray
    offset: np.ndarray
    key: np.ndarray
    version: np.ndarray
    start: np.ndarray
    end: np.ndarray
    odd: np.ndarray

    def last_bits_of_topic(self, rows: np.ndarray) -> np.ndarray:
        """Return the last 64 bits of the topic id of these partition records."""
        return Cursor(self.data, self.start[rows] + _LAST_BITS_OF_TOPIC).number(">u8")


def _frames(part: Part, batches: List[Batch]) -> _Frames:
    """Return the records of these batches, checked as records_of and peek do."""
    starts = [_starts(batch) for batch in batches]
    number = np.repeat(np.arange(len(batches)), [*map(len, starts)])
    shift = np.cumsum([0, *(len(batch.records) for batch in batches)])
    at = np.array([*itertools.chain.from_iterable(starts)], np.int64) + shift[number]
    base_offset = np.array([batch.base_offset for batch in batches])[number]
    cursor = Cursor(b"".join([*(batch.records for batch in batches), PADDING]), at)
    record_end = cursor.zigzag() + cursor.at
    cursor.at += 1  # attributes
    cursor.zigzag()  # timestamp
    offset = base_offset + cursor.zigzag()
    cursor.odd |= cursor.byte() != _NO_KEY
    end = cursor.zigzag() + cursor.at
    cursor.odd |= (end >= record_end) | (end < cursor.at + 3)
    frame, key, version = cursor.byte(), cursor.byte(), cursor.byte()
    unreadable = (frame != 1) | ~_KNOWN[key, version]
    if part.checkpoint is not None:
        unreadable |= np.isin(key, [*MARKERS])
    cursor.odd |= unreadable & (part.low <= offset) & (offset < part.high)
    return _Frames(cursor.data, number, offset, key, version, cursor.at, end, cursor.odd)


def _read_chunk(part: Part, batches: List[Batch], share: Share, unread: Unread | None) -> Iterator[pa.RecordBatch]:
    """Decode these batches together. A batch with a record that is odd or malformed goes through decode_batch."""
    frames = _frames(part, batches)
    counts = (part.low <= frames.offset) & (frames.offset < part.high)
    read = []
    for key in (_PARTITION, _CHANGE):
        for version in range(RECORDS[key].latest + 1):
            rows = np.flatnonzero(counts & (frames.key == key) & (frames.version == version) & ~frames.odd)
            rows = rows[share.own(frames.last_bits_of_topic(rows))]
            if len(rows):
                structs = read_structs(frames.data, frames.start[rows], fields_of(RECORDS[key].message, version))
                frames.odd[rows] = structs.odd | (structs.end != frames.end[rows])
                read.append((key, rows, structs.columns))
    # A batch without frames has records whose bounds are wrong, or no records
    without = np.flatnonzero(np.bincount(frames.batch, minlength=len(batches)) == 0)
    slow = {*frames.batch[frames.odd].tolist(), *without.tolist()}
    counts &= ~np.isin(frames.batch, [*slow])
    for first, end in part.dropped():
        counts &= (frames.offset < first) | (frames.offset >= end)
    for key, rows, columns in read:
        batch = _record_batch(part, key, columns, frames.offset[rows])
        kept = counts[rows]
        yield batch if kept.all() else batch.filter(pa.array(kept))
    for number in sorted(slow):
        yield from _read_slowly(part, batches[number], share, unread)


def _record_batch(part: Part, key: int, columns: Dict[str, pa.Array], offset: np.ndarray) -> pa.RecordBatch:
    """Return columns that have Kafka's names of fields as PARTITION_RECORDS; a field that the type lacks is null."""
    length = len(offset)
    arrays = {
        column: columns[name] if name in columns else pa.nulls(length, _TYPES[name]) for column, name in COLUMNS.items()
    }
    for column in SORTED:
        arrays[column] = sorted_lists(arrays[column])
    if key == _CHANGE:
        for column, unchanged in _UNCHANGED.items():
            arrays[column] = pc.if_else(pc.equal(arrays[column], unchanged), None, arrays[column])
    arrays["is_change"] = pa.repeat(key == _CHANGE, length)
    arrays["offset"] = pa.array(offset) if part.checkpoint is None else pa.repeat(part.checkpoint, length)
    return pa.RecordBatch.from_arrays([arrays[name] for name in PARTITION_RECORDS.names], schema=PARTITION_RECORDS)


def _read_slowly(part: Part, batch: Batch, share: Share, unread: Unread | None) -> Iterator[pa.RecordBatch]:
    """Decode a batch with the generic decoder. A marker that the scan did not find, because it is not in the form that
    Kafka writes, is an error: which records it ends or begins to drop is not known."""
    partitions: Dict[int, List[Tuple[int, Dict[str, Any]]]] = {_PARTITION: [], _CHANGE: []}
    known = {offset for each in part.transactions for offset in (each.begin_offset, each.end_offset)}
    records = decode_batch(batch, part.path, part.low, part.high, {*partitions}, any_type=unread is not None)
    for offset, _time, key, _version, fields in records:
        if key in MARKERS and (part.checkpoint is not None or offset not in known):
            where = "in a checkpoint" if part.checkpoint is not None else "that the scan of the log did not find"
            raise BrokenTransaction(f"{RECORDS[key].name} {where}, record {offset}", part.path, batch.position)
        if fields is not None and not any(first <= offset < end for first, end in part.dropped()):
            partitions[key].append((offset, fields))
            if unread is not None and share.own(_last_bits(fields["topicId"])):
                unread.note_fields(key, fields, offset if part.checkpoint is None else part.checkpoint)
    for key, of_all in partitions.items():
        records = [(offset, fields) for offset, fields in of_all if share.own(_last_bits(fields["topicId"]))]
        if not records:
            continue
        names = [field.name for field in fields_of(RECORDS[key].message, 0)]
        columns = {name: pa.array([fields[name] for _offset, fields in records], _TYPES[name]) for name in names}
        yield _record_batch(part, key, columns, np.array([offset for offset, _fields in records], np.int64))


def _last_bits(topic_id: str) -> int:
    return int.from_bytes(base64.urlsafe_b64decode(f"{topic_id}==")[8:], "big")
