# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read record batches of format v2 (magic 2) in a KRaft log segment or checkpoint.

Sources: KIP-98 and org.apache.kafka.common.record.{DefaultRecordBatch,DefaultRecord} (layout),
org.apache.kafka.raft.KafkaRaftClient.MAX_BATCH_SIZE_BYTES (the largest batch a quorum writes).
"""

from __future__ import annotations

import struct
from typing import AbstractSet, Iterator, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.records.crc32c import crc32c

# baseOffset, batchLength, partitionLeaderEpoch, magic, crc, attributes, lastOffsetDelta, baseTimestamp, maxTimestamp,
# producerId, producerEpoch, baseSequence, recordsCount
_HEADER = struct.Struct(">qiibIhiqqqhii")
_BEFORE_LENGTH = 12  # baseOffset and batchLength are not counted in batchLength
_CHECKED_FROM = 21  # the checksum covers attributes and all that follows
_MAX_BATCH_SIZE = 8 * 1024 * 1024

_COMPRESSION_MASK = 0x07
_CONTROL_FLAG = 0x20
_CODECS = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}


class LogError(Exception):
    """A metadata log cannot be read. `path` and `position` (byte offset in the file) name the place."""

    def __init__(self, reason: str, path: str | None = None, position: int | None = None):
        where = (path or "") + ("" if position is None else f" at byte {position}")
        super().__init__(f"{where}: {reason}" if where else reason)
        self.reason, self.path, self.position = reason, path, position


class CorruptBatch(LogError):
    """A complete batch has a wrong checksum, length, magic or records."""


class CompressedBatch(LogError):
    """A batch is compressed; Kafka never writes one to the metadata log."""


class Batch(NamedTuple):
    """One batch. `records`: its bytes after the header; timestamps in ms; `position`: its byte offset in the file;
    `last_offset` is inclusive."""

    base_offset: int
    last_offset: int
    epoch: int
    is_control: bool
    base_timestamp: int
    max_timestamp: int
    count: int  # type: ignore[assignment]
    position: int
    size: int
    records: bytes


def read_batches(
    file, path: str, start_offset: int = 0, check_crc: bool = True, start: int = 0, end: int | None = None
) -> Iterator[Batch]:
    """Yield the batches of an open binary `file`, without those that end before `start_offset`.

    `start` and `end`: byte positions; only the batches that begin between them are read, the first one at `start`.
    An incomplete last batch is not yet written and ends the iteration, as in Kafka (FileLogInputStream). Raises
    CorruptBatch, CompressedBatch with `path` and byte position.
    """
    file.seek(start)
    position = start
    while end is None or position < end:
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return
        (base, length, epoch, magic, crc, attributes, last_delta, base_time, max_time, _pid, _pepoch, _seq, count) = (
            _HEADER.unpack(header)
        )
        size = length + _BEFORE_LENGTH
        _check_header(size, magic, attributes, path, position)
        if base + last_delta < start_offset:
            file.seek(size - _HEADER.size, 1)
        else:
            records = file.read(size - _HEADER.size)
            if len(records) < size - _HEADER.size:
                _check_unfinished(records, count, size, path, position)
                return
            if check_crc and crc32c(records, crc32c(header[_CHECKED_FROM:])) != crc:
                raise CorruptBatch(f"the batch at offset {base} has a wrong checksum", path, position)
            is_control = bool(attributes & _CONTROL_FLAG)
            yield Batch(base, base + last_delta, epoch, is_control, base_time, max_time, count, position, size, records)
        position += size


def _check_header(size, magic, attributes, path, position):
    if not _HEADER.size <= size <= _MAX_BATCH_SIZE:
        raise CorruptBatch(
            f"batch of {size} bytes, a quorum writes {_HEADER.size} to {_MAX_BATCH_SIZE}", path, position
        )
    if magic != 2:
        raise CorruptBatch(f"a batch has magic {magic}, expected 2", path, position)
    codec = attributes & _COMPRESSION_MASK
    if codec:
        raise CompressedBatch(
            f"batch compressed with {_CODECS.get(codec, codec)}, Kafka writes metadata uncompressed", path, position
        )


def _check_unfinished(records, count, size, path, position):
    """Raise CorruptBatch if an incomplete batch contains all its records: then its length is wrong."""
    at = 0
    for _record in range(count):
        try:
            length, body = read_varint(records, at)
        except IndexError:
            return
        at = body + length
        if length < 0 or at > len(records):
            return
    raise CorruptBatch(f"a batch's length of {size} bytes is wrong: all {count} records end before", path, position)


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return a zigzag varint (ByteUtils.readVarint/readVarlong) and the position after it."""
    raw = shift = 0
    while True:
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), position
        shift += 7


def records_of(
    batch: Batch, path: str, skipped: AbstractSet[bytes] = frozenset()
) -> Iterator[tuple[int, int, bytes | None, int, int]]:
    """Yield (offset, timestamp (ms), key, start and end of the value in `batch.records`) of each record.

    `skipped`: first three bytes of the values to leave out. Headers are skipped; a null value starts and ends at the
    same position. Raises CorruptBatch.
    """
    data, at = batch.records, 0
    try:
        for _record in range(batch.count):
            # Varints of one and two bytes are read here: a call costs as much as the rest. An odd one is negative.
            length = data[at]
            if not length & 0x81:
                length, at = length >> 1, at + 1
            elif length & 1 or data[at + 1] & 0x80:
                length, at = read_varint(data, at)
            else:
                length, at = (length & 0x7F | data[at + 1] << 7) >> 1, at + 2
            end = at + length
            timestamp_delta, at = (0, at + 2) if data[at + 1] == 0 else read_varint(data, at + 1)
            offset_delta = data[at]
            if not offset_delta & 0x81:
                offset_delta, at = offset_delta >> 1, at + 1
            elif offset_delta & 1 or data[at + 1] & 0x80:
                offset_delta, at = read_varint(data, at)
            else:
                offset_delta, at = (offset_delta & 0x7F | data[at + 1] << 7) >> 1, at + 2
            key = None
            key_length = data[at]
            at += 1
            if key_length != 1:
                key_length, at = read_varint(data, at - 1)
                if key_length >= 0:
                    key = data[at : at + key_length]
                    at += key_length
            value_length = data[at]
            if not value_length & 0x81:
                value_length, at = value_length >> 1, at + 1
            elif value_length & 1 or data[at + 1] & 0x80:
                value_length, at = read_varint(data, at)
            else:
                value_length, at = (value_length & 0x7F | data[at + 1] << 7) >> 1, at + 2
            value_end = at + (value_length if value_length > 0 else 0)
            if value_end >= end:
                raise CorruptBatch("a value is longer than its record", path, batch.position)
            if data[at : at + 3] not in skipped:
                yield batch.base_offset + offset_delta, batch.base_timestamp + timestamp_delta, key, at, value_end
            at = end
    except IndexError:
        raise CorruptBatch("a record is longer than its batch", path, batch.position) from None
    if at != len(data):
        raise CorruptBatch(f"{batch.count} records do not fill the batch", path, batch.position)
