# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read Kafka's KRaft metadata log from a node's disk: newest checkpoint, the segments after it, transactions.

`directory` is always `<metadata.log.dir or the first of log.dirs>/__cluster_metadata-0`. The log may be live: all files
are opened before the first byte is read, so that Kafka may rename and unlink them meanwhile.

Sources: org.apache.kafka.snapshot.Snapshots (checkpoint names), kafka.raft.KafkaMetadataLog (which files belong
together), org.apache.kafka.raft.QuorumStateData (quorum-state), KIP-868 and
org.apache.kafka.controller.OffsetControlManager (transactions).
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import re
import sys
import time
from typing import AbstractSet, Any, BinaryIO, Iterator, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.files.archives import Piece
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.messages import messages
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_records import (
    MalformedRecord,
    UnknownRecord,
    decode_body,
    decode_control,
    peek,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_schemas import (
    API_KEYS,
    RECORDS,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.records.record_batch import (
    Batch,
    CorruptBatch,
    LogError,
    read_batches,
    records_of,
)

_SEGMENT = re.compile(r"(\d{20})\.log")
_CHECKPOINT = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_BUFFER = 1 << 20
_BEGIN = API_KEYS["BEGIN_TRANSACTION_RECORD"]
_END = API_KEYS["END_TRANSACTION_RECORD"]
_ABORT = API_KEYS["ABORT_TRANSACTION_RECORD"]
COMMITTED, ABORTED, OPEN = "committed", "aborted", "open"
_OUTCOMES = {_END: COMMITTED, _ABORT: ABORTED}
_NO_OP = API_KEYS["NO_OP_RECORD"]
MARKERS = frozenset((_BEGIN, _END, _ABORT))
_NAMING = frozenset((_BEGIN,))  # a scan decodes only these bodies, for the transaction's name
_FRAME_SIZE = 3  # frame version, api key and version, one byte each: peek
_MARKER_FRAME = re.compile(b"\x01[%b]\0" % bytes(sorted(MARKERS)))
_NONE: frozenset = frozenset()


class LogMissing(LogError):
    """The directory of the metadata log does not exist."""


class LogGap(LogError):
    """Offsets are missing between the checkpoint and the segments, or between segments."""


class LogMoving(LogError):
    """Kafka repeatedly removed files before they could be opened."""


class BrokenTransaction(LogError):
    """Transaction markers are in an order that Kafka rejects."""


class Checkpoint(NamedTuple):
    """A snapshot of all records below `offset`; the last of them has `epoch`."""

    offset: int
    epoch: int
    path: str


class Segment(NamedTuple):
    base_offset: int
    path: str


class LogFiles(NamedTuple):
    """The files of a directory, oldest first, without those that Kafka is writing (.part) or deleting (.deleted)."""

    checkpoints: tuple[Checkpoint, ...]
    segments: tuple[Segment, ...]


class OpenLog(NamedTuple):
    """The open files of a log. `start_offset` is the first offset to read from the segments."""

    files: LogFiles
    checkpoint: Checkpoint | None
    checkpoint_file: BinaryIO | None
    segments: tuple[tuple[Segment, BinaryIO], ...]
    start_offset: int


class Transaction(NamedTuple):
    """A metadata transaction. `end_offset` is that of its end or abort record, None while open.

    `outcome` is one of COMMITTED, ABORTED, OPEN. `records` counts the records between the markers by type name. A
    controller continues to write NoOps and registrations inside the transaction of a ZooKeeper migration
    (QuorumController, RUNS_IN_PREMIGRATION); they are counted too and share its outcome. `later` counts the records
    after it, up to the next transaction. `begin_ms`, `end_ms`: the times of both markers by the controller's clock.
    """

    name: str | None
    begin_offset: int
    end_offset: int | None
    outcome: str
    records: dict[str, int]
    later: dict[str, int]
    begin_ms: int | None = None
    end_ms: int | None = None


class Extent(NamedTuple):
    """The result of a scan: end of the log (exclusive), epoch and time (ms) of its last record, offset of the last
    record in the segments that is neither control record nor NoOp (None without any), transactions."""

    end_offset: int
    last_epoch: int
    last_timestamp: int | None
    last_change: int | None
    transactions: list[Transaction]


class Cut(NamedTuple):
    """A metadata log cut at `end_offset` (exclusive), the end of a batch; `last_epoch` is that of the last record.

    `is_short`: the log ends before the requested offset.
    """

    pieces: tuple[Piece, ...]
    end_offset: int
    last_epoch: int
    is_short: bool


class Record(NamedTuple):
    """A metadata record. In a checkpoint, all records have `offset` and `epoch` of the checkpoint's last record."""

    offset: int
    epoch: int
    timestamp: int
    type: str
    version: int
    fields: dict[str, Any]
    from_checkpoint: bool


class FileRecord(NamedTuple):
    """A record of one file, including control records and transaction markers; see read_file."""

    offset: int
    epoch: int
    timestamp: int
    type: str
    version: int
    fields: dict[str, Any]
    is_control: bool


class Unread:
    """What a reader of the log meets and cannot decode, because Kafka 3.9 does not have it.

    :ivar found: {("record", api key, version), ("control", type, version) or ("field", record type, path of the struct,
        tag): [how many, offset of the first]}
    """

    def __init__(self) -> None:
        self.found: dict[tuple, list[int]] = {}

    def note_record(self, api_key: int, version: int, offset: int) -> None:
        """Note a record of an unknown type."""
        self._note(("record", api_key, version), offset)

    def note_control(self, batch: Batch, path: str, offset: int | None = None) -> None:
        """Note the records of unknown types in a control batch. `offset`: instead of their own."""
        for at, _time, key, start, end in records_of(batch, path):
            try:
                decode_control(key, batch.records[start:end])
            except UnknownRecord:
                kind, version = (int.from_bytes(part, "big") for part in (key[2:4], batch.records[start : start + 2]))
                self._note(("control", kind, version), at if offset is None else offset)
            except MalformedRecord as error:
                raise MalformedRecord(f"offset {at}: {error.reason}", path, batch.position) from error

    def note_fields(self, api_key: int, fields: dict[str, Any], offset: int) -> None:
        """Note the unknown tagged fields of a record that was decoded with their tags."""
        for path, tag in messages.unknown_tags(fields):
            self._note(("field", RECORDS[api_key].name, path, tag), offset)

    def _note(self, what: tuple, offset: int) -> None:
        entry = self.found.setdefault(what, [0, offset])
        entry[0] += 1
        entry[1] = min(entry[1], offset)


def read_quorum_state(directory: str) -> dict[str, Any] | None:
    """Return the content of `quorum-state`, None if there is none (before the first election)."""
    path = os.path.join(directory, "quorum-state")
    try:
        with open(path, encoding="utf-8") as file:
            state = json.load(file)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise LogError(f"not JSON ({error})", path) from error
    return state


def list_files(directory: str) -> LogFiles:
    """Return the checkpoints and segments of a metadata log directory. Raises LogMissing."""
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        hint = "no such directory: a node creates it at its first start in KRaft or migration mode"
        raise LogMissing(hint, directory) from None
    checkpoints, segments = [], []
    for name in sorted(names):
        path = os.path.join(directory, name)
        segment, checkpoint = _SEGMENT.fullmatch(name), _CHECKPOINT.fullmatch(name)
        if segment:
            segments.append(Segment(int(segment.group(1)), path))
        elif checkpoint:
            checkpoints.append(Checkpoint(int(checkpoint.group(1)), int(checkpoint.group(2)), path))
    return LogFiles(tuple(checkpoints), tuple(segments))


@contextlib.contextmanager
def open_log(
    directory: str,
    end_offset: int | None = None,
    all_segments: bool = False,
    since: int | None = None,
    tries: int = 5,
    pause: float = 0.2,
) -> Iterator[OpenLog]:
    """Open the newest complete checkpoint that ends at or below `end_offset`, and the segments after it.

    With `all_segments`, open all segments and no checkpoint: for the history before the checkpoint, not for the state.
    With `since`, open the newest checkpoint that ends at or below that offset, or else the oldest state there is: what
    a newer checkpoint sums up comes as records. Kafka keeps the segments after its oldest checkpoint
    (KafkaMetadataLog.cleanSnapshots).
    If Kafka removes a file between listing and opening, the directory is listed again, `tries` times in all, `pause`
    seconds apart; then LogMoving is raised. Raises LogMissing, LogGap, CorruptBatch.
    """
    with contextlib.ExitStack() as stack:
        yield _open_in_time(directory, end_offset, all_segments, since, tries, pause, stack)


def _open_in_time(directory, end_offset, all_segments, since, tries, pause, stack):
    for left in reversed(range(tries)):
        try:
            return _open_log(list_files(directory), end_offset, all_segments, since, stack)
        except (FileNotFoundError, LogGap) as error:
            stack.close()
            if not left and isinstance(error, FileNotFoundError):
                raise LogMoving(f"removed between listing and opening, {tries} times", error.filename) from error
            if not left:
                raise
        time.sleep(pause)


def _open_log(files, end_offset, all_segments, since, stack):
    checkpoint, checkpoint_file = (None, None) if all_segments else _open_checkpoint(files, end_offset, since, stack)
    start_offset = checkpoint.offset if checkpoint else 0
    if all_segments and files.segments:
        start_offset = files.segments[0].base_offset
    segments = _segments_from(files.segments, start_offset)
    opened = tuple((segment, stack.enter_context(_open(segment.path))) for segment in segments)
    return OpenLog(files, checkpoint, checkpoint_file, opened, start_offset)


def _open(path):
    return open(path, "rb", _BUFFER)


def _open_checkpoint(files, end_offset, since, stack):
    usable = [
        checkpoint
        for checkpoint in reversed(files.checkpoints)
        if end_offset is None or checkpoint.offset <= end_offset
    ]
    if since is not None:
        oldest = files.segments[0].base_offset if files.segments else 0
        followed = [checkpoint for checkpoint in usable if checkpoint.offset >= oldest]
        older = [checkpoint for checkpoint in followed if checkpoint.offset <= since]
        usable = (
            older
            if not oldest
            else [*older, *reversed([checkpoint for checkpoint in followed if checkpoint.offset > since])]
        )
    for checkpoint in usable:
        file = stack.enter_context(_open(checkpoint.path))
        if _is_complete(file, checkpoint.path):
            return checkpoint, file
    return None, None


def _is_complete(file, path):
    """Return whether the last batch contains the snapshot's footer."""
    last = collections.deque(read_batches(file, path, check_crc=False), maxlen=1)
    return any(record[2] == "SNAPSHOT_FOOTER" for batch in last for record in _control_records(batch, path))


def _segments_from(segments, start_offset):
    """Return the segment that contains `start_offset`, and all after it."""
    first = sum(segment.base_offset <= start_offset for segment in segments) - 1
    if segments and first < 0:
        what = f"the oldest segment begins after offset {start_offset}, which no checkpoint and no segment contains"
        raise LogGap(what, segments[0].path)
    return segments[first:]


def scan_log(
    log: OpenLog, end_offset: int | None = None, check_crc: bool = True, counts: bool = True, later: bool = False
) -> Extent:
    """Scan the segments once and return their extent and every transaction. Bodies of records are not decoded.

    Without `counts`, batches that contain no transaction marker are not searched, which is ten times faster: the
    transactions have no numbers of records, `last_change` is None, and UnknownRecord is not raised in these batches.

    With `later`, records that only a later Kafka knows are no error.

    An election closes no transaction: the new active controller writes an abort record (ActivationRecordsGenerator), so
    a transaction is open until its marker. Raises BrokenTransaction, UnknownRecord, MalformedRecord, CorruptBatch,
    CompressedBatch, LogGap.
    """
    high = sys.maxsize if end_offset is None else end_offset
    end = log.start_offset
    epoch, timestamp = (log.checkpoint.epoch, checkpoint_timestamp(log)) if log.checkpoint else (0, None)
    transactions: list[Transaction] = []
    inside = changed = None
    outside: dict[int, int] = {}
    for batch, path in segment_batches(log, high, check_crc):
        end, epoch, timestamp = min(batch.last_offset + 1, high), batch.epoch, batch.max_timestamp
        if batch.is_control or not (counts or _MARKER_FRAME.search(batch.records)):
            continue
        records = decode_batch(batch, path, log.start_offset, high, _NAMING, later=later)
        for offset, time_ms, api_key, _version, fields in records:
            changed = changed if api_key == _NO_OP else offset
            if api_key in MARKERS:
                _follow(transactions, outside)
                inside, outside = _step(log, transactions, inside, api_key, (offset, time_ms), fields, path), {}
            else:
                numbers = outside if inside is None else inside
                numbers[api_key] = numbers.get(api_key, 0) + 1
    if inside is not None:
        _close(transactions, inside, None, OPEN)
    _follow(transactions, outside)
    if not counts:
        transactions = [transaction._replace(records={}, later={}) for transaction in transactions]
        changed = None
    return Extent(end, epoch, timestamp, changed, transactions)


def _step(log, transactions, inside, api_key, at, fields, path):
    """Process a marker `at` its (offset, time) and return the counts of the transaction that is open after it, None if
    none is."""
    offset, time_ms = at
    if api_key == _BEGIN:
        if inside is not None:
            outer = transactions[-1].begin_offset
            raise BrokenTransaction(f"begin at offset {offset} inside the transaction of offset {outer}", path)
        transactions.append(Transaction(fields["name"], offset, None, OPEN, {}, {}, time_ms))
        return {}
    if inside is not None:
        _close(transactions, inside, offset, _OUTCOMES[api_key], time_ms)
    elif log.checkpoint or not log.start_offset:  # else the oldest segment begins inside a transaction
        raise BrokenTransaction(f"{RECORDS[api_key].name} at offset {offset} without a begin", path)
    return None


def _close(transactions, counts, offset, outcome, time_ms=None):
    closed = {"end_offset": offset, "outcome": outcome, "records": _name_counts(counts), "end_ms": time_ms}
    transactions[-1] = transactions[-1]._replace(**closed)


def _follow(transactions, counts):
    """Note the records that follow the last transaction, if there is one."""
    if transactions:
        transactions[-1] = transactions[-1]._replace(later=_name_counts(counts))


def _name_counts(counts):
    names = {key: RECORDS[key].name if key in RECORDS else f"record type {key}" for key in sorted(counts)}
    return {name: counts[key] for key, name in names.items()}


def cut_log(log: OpenLog, end_offset: int | None = None) -> Cut:
    """Return the checkpoint, and the bytes of all complete batches of the segments from its end up to `end_offset`.

    A batch that contains `end_offset` is left out, as in Kafka's reads below the high watermark (UnifiedLog.read,
    LogSegment.read). Checksums and records are not checked. A piece is named after its first offset, like Kafka's
    segments. Raises CorruptBatch, CompressedBatch, LogGap.
    """
    high = sys.maxsize if end_offset is None else end_offset
    end, epoch = log.start_offset, log.checkpoint.epoch if log.checkpoint else 0
    reached = end
    spans: dict[str, tuple] = {}
    for batch, path in segment_batches(log, high, check_crc=False):
        reached = batch.last_offset + 1
        if reached > high:
            break
        end, epoch = reached, batch.epoch
        base_offset, start, _end = spans.get(path, (batch.base_offset, batch.position, None))
        spans[path] = base_offset, start, batch.position + batch.size
    pieces = []
    if log.checkpoint:
        size = os.fstat(log.checkpoint_file.fileno()).st_size
        pieces.append(Piece(os.path.basename(log.checkpoint.path), log.checkpoint_file, 0, size))
    for segment, file in log.segments:
        if segment.path in spans:
            base_offset, start, stop = spans[segment.path]
            pieces.append(Piece(f"{base_offset:020d}.log", file, start, stop))
    return Cut(tuple(pieces), end, epoch, end_offset is not None and reached < end_offset)


def log_records(
    log: OpenLog,
    extent: Extent,
    types=None,
    check_crc: bool = True,
    later: bool = False,
    unread: Unread | None = None,
) -> Iterator[Record]:
    """Yield the records of the checkpoint and of the segments up to the end of `extent`, as a controller applies them.

    Transaction markers and records of aborted or open transactions are left out. `types`: names of the record types to
    decode and yield (None: all); `later`: see scan_log, which checks the segments' checksums. Raises as it does.
    `unread`: notes records of unknown types, which are left out and no error then, and unknown fields of `types`.
    """
    wanted = None if types is None else frozenset(API_KEYS[name] for name in types)
    skipped = _NONE if wanted is None else _frames_without(wanted)
    if log.checkpoint:
        yield from _checkpoint_records(log, wanted, skipped, check_crc, later, unread)
    dropped = [transaction for transaction in extent.transactions if transaction.outcome != COMMITTED]
    for batch, path in segment_batches(log, extent.end_offset, check_crc=False):
        if batch.is_control:
            if unread is not None:
                unread.note_control(batch, path)
            continue
        records = decode_batch(
            batch, path, log.start_offset, extent.end_offset, wanted, skipped, later, unread is not None
        )
        for offset, timestamp, api_key, version, fields in records:
            if dropped and _is_inside(offset, dropped):
                continue
            _note(unread, api_key, version, fields, offset)
            if fields is not None and api_key not in MARKERS:
                yield Record(offset, batch.epoch, timestamp, RECORDS[api_key].name, version, fields, False)


def _note(unread: Unread | None, api_key: int, version: int, fields: dict[str, Any] | None, offset: int) -> None:
    if unread is not None and api_key not in RECORDS:
        unread.note_record(api_key, version, offset)
    elif unread is not None and fields is not None:
        unread.note_fields(api_key, fields, offset)


def _frames_without(wanted):
    """Return the frames of the known record types that are not `wanted`. Markers of transactions are not skipped."""
    others = RECORDS.keys() - wanted - MARKERS
    return frozenset(bytes((1, key, version)) for key in others for version in range(RECORDS[key].latest + 1))


def _checkpoint_records(log, wanted, skipped, check_crc, later, unread):
    offset, epoch, path = log.checkpoint.offset - 1, log.checkpoint.epoch, log.checkpoint.path
    timestamp = checkpoint_timestamp(log)
    for batch in read_batches(log.checkpoint_file, path, check_crc=check_crc):
        if batch.is_control:
            if unread is not None:
                unread.note_control(batch, path, offset)
            continue
        records = decode_batch(batch, path, 0, sys.maxsize, wanted, skipped, later, unread is not None)
        for at, _time, api_key, version, fields in records:
            if api_key in MARKERS:
                raise BrokenTransaction(f"{RECORDS[api_key].name} in a checkpoint, record {at}", path, batch.position)
            _note(unread, api_key, version, fields, offset)
            if fields is not None:
                yield Record(offset, epoch, timestamp, RECORDS[api_key].name, version, fields, True)


def checkpoint_timestamp(log: OpenLog) -> int:
    """Return the time (ms) of the last record in the checkpoint; its batches have the time at which it was written."""
    path = log.checkpoint.path
    for batch in read_batches(log.checkpoint_file, path, check_crc=False):
        for _offset, _time, name, _version, fields in _control_records(batch, path):
            if name == "SNAPSHOT_HEADER":
                return fields["lastContainedLogTimestamp"]
        break
    raise LogError("checkpoint without a SNAPSHOT_HEADER at its start", path, 0)


def _is_inside(offset, transactions):
    return any(t.begin_offset <= offset and (t.end_offset is None or offset < t.end_offset) for t in transactions)


def read_records(directory: str, end_offset: int | None = None, types=None, check_crc: bool = True) -> Iterator[Record]:
    """Yield the records of the metadata log in `directory` below `end_offset` (exclusive; None: all), see log_records.

    Pass the high watermark as `end_offset` if it is known: records above it may still be truncated. Raises as open_log
    and scan_log do.
    """
    with open_log(directory, end_offset) as log:
        yield from log_records(log, scan_log(log, end_offset, check_crc), types, check_crc)


def read_file(path: str, check_crc: bool = True) -> Iterator[FileRecord]:
    """Yield every record of one segment or checkpoint, including control records and transaction markers.

    In a checkpoint, offsets count its records from 0. Raises as scan_log does.
    """
    with _open(path) as file:
        for batch in read_batches(file, path, check_crc=check_crc):
            if batch.is_control:
                for offset, timestamp, name, version, fields in _control_records(batch, path):
                    yield FileRecord(offset, batch.epoch, timestamp, name, version, fields, True)
                continue
            for offset, timestamp, api_key, version, fields in decode_batch(batch, path, 0, sys.maxsize, None):
                yield FileRecord(offset, batch.epoch, timestamp, RECORDS[api_key].name, version, fields, False)


def segment_batches(log: OpenLog, end_offset: int, check_crc: bool) -> Iterator[tuple[Batch, str]]:
    """Yield the batches of the segments from log.start_offset to `end_offset`, and check that none is missing.

    Batches at or above `end_offset` are not read. The checksum does not cover base offset and epoch, so their order is
    checked here.
    """
    expected, epoch = log.start_offset, log.checkpoint.epoch if log.checkpoint else 0
    for segment, file in log.segments:
        batches = read_batches(file, segment.path, log.start_offset, check_crc)
        while expected < end_offset:
            batch = next(batches, None)
            if batch is None:
                break
            if not batch.base_offset <= expected <= batch.last_offset:
                raise LogGap(f"offset {batch.base_offset}, expected {expected}", segment.path, batch.position)
            if batch.epoch < epoch:
                raise CorruptBatch(f"epoch {batch.epoch} follows epoch {epoch}", segment.path, batch.position)
            yield batch, segment.path
            expected, epoch = batch.last_offset + 1, batch.epoch


def decode_batch(
    batch: Batch,
    path: str,
    low: int,
    high: int,
    wanted: AbstractSet[int] | None,
    skipped: AbstractSet[bytes] = _NONE,
    later: bool = False,
    any_type: bool = False,
) -> Iterator[tuple[int, int, int, int, dict[str, Any] | None]]:
    """Yield (offset, timestamp, api key, version, fields) of records in [low, high); fields None if not `wanted`.

    `skipped`: see records_of; `later`: whether records of a later Kafka are no error where they are not `wanted`.
    `any_type`: records of unknown types come without fields, and fields have their unknown tags (messages.decode_part).
    Raises UnknownRecord, MalformedRecord, CorruptBatch with the batch's place.
    """
    offset, data = batch.base_offset, batch.records
    try:
        for offset, timestamp, _key, start, end in records_of(batch, path, skipped):
            if low <= offset < high:
                if end - start < _FRAME_SIZE:
                    raise MalformedRecord("the value ends inside the frame")
                api_key, version, body = peek(data, start, wanted if later else None, any_type)
                fields = None
                if (wanted is None or api_key in wanted) and (not any_type or api_key in RECORDS):
                    fields = decode_body(api_key, version, data, body, end, any_type)
                yield offset, timestamp, api_key, version, fields
    except (UnknownRecord, MalformedRecord) as error:
        raise type(error)(f"offset {offset}: {error.reason}", path, batch.position) from error


def _control_records(batch, path):
    """Yield (offset, timestamp, name, version, fields) of the records of a control batch, nothing for other batches."""
    if not batch.is_control:
        return
    for offset, timestamp, key, start, end in records_of(batch, path):
        try:
            yield (offset, timestamp, *decode_control(key, batch.records[start:end]))
        except (UnknownRecord, MalformedRecord) as error:
            raise type(error)(f"offset {offset}: {error.reason}", path, batch.position) from error
