# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the newest committed record of each key in stored batches. Pure.

The cleaner of a compacted topic rewrites batches, not records: a record keeps its offset and timestamp, and its bytes
from the length of its key to its end (key, value, headers). Layouts: org.apache.kafka.common.record.DefaultRecord
(magic 2) and LegacyRecord (magic 0 and 1).
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from typing import Dict, Iterable, Iterator, List, Tuple

import numpy as np
import pyarrow as pa
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.records.crc32c import crc32c

Newest = Dict[bytes, Tuple[int, int, int, bool]]
"""{key: (offset, timestamp in ms, 64-bit hash of key, value and headers, whether it is a tombstone)}."""
Aborted = Tuple[int, int]
"""The producer id and first offset of an aborted transaction."""

SCHEMA = pa.schema(
    [
        ("key_hash", pa.int64()),
        ("offset", pa.int64()),
        ("content", pa.int64()),
        ("tombstone", pa.bool_()),
        ("timestamp", pa.int64()),
    ]
)
"""The newest record of each key: 64-bit hashes of the key and of the record's content; `timestamp` in epoch ms."""

_CODEC, _APPEND_TIME, _TRANSACTIONAL, _CONTROL = 0x07, 0x08, 0x10, 0x20
_ABORT = b"\x00\x00\x00\x00"  # version and type of a control record
_XERIAL = b"\x82SNAPPY\x00"
_OLD_HEAD = struct.Struct(">qiIbb")


class Transactions:
    """Which batches of one answer to Fetch belong to aborted transactions, as Kafka's consumer decides
    (org.apache.kafka.clients.consumer.internals.CompletedFetch)."""

    def __init__(self, aborted: Iterable[Aborted]) -> None:
        self._pending = sorted(aborted, key=lambda transaction: -transaction[1])
        self._open: set = set()

    def committed(self, flags: int, producer_id: int, last: int, records: memoryview, count: int) -> bool:
        """Return whether a batch with this last offset has records for consumers. Each batch must be given, in order.

        :arg records: the batch's `count` stored records.
        """
        while self._pending and self._pending[-1][1] <= last:
            self._open.add(self._pending.pop()[0])
        if flags & _CONTROL:
            marker: Newest = {}
            add(marker, bytes(records), count, 0, 0, None, 0)
            if _ABORT in marker:
                self._open.discard(producer_id)
            return False
        return not (flags & _TRANSACTIONAL and producer_id in self._open)


def add_batch(
    newest: Newest, flags: int, records: memoryview, count: int, base: int, times: Tuple[int, int], begin: int
):
    """Add the records of a batch of magic 2 whose offsets are at least `begin`. Raises ValueError, IndexError.

    :arg times: the batch's base timestamp and newest timestamp.
    """
    append_time = times[1] if flags & _APPEND_TIME else None
    add(newest, _uncompressed(flags & _CODEC, records), count, base, times[0], append_time, begin)


def add(newest: Newest, data: bytes, count: int, base: int, first_ms: int, append_ms: int | None, begin: int) -> None:
    """Add uncompressed records. The loops over the bytes of varints are inline: this runs for each record."""
    at, sum32, sum32c = 0, zlib.crc32, crc32c
    for _number in range(count):
        size = data[at]
        at += 1
        if size > 127:
            size, at = _varint(data, at, size)
        stop = at + (size >> 1)
        delta = data[at + 1]  # after the attributes
        at += 2
        if delta > 127:
            delta, at = _varint(data, at, delta)
        number = data[at]
        at += 1
        if number > 127:
            number, at = _varint(data, at, number)
        offset = base + (number >> 1)
        length = data[at]
        if length != 1 and offset >= begin:  # 1: no key; the cleaner deletes such records
            start = at
            at += 1
            if length > 127:
                length, at = _varint(data, at, length)
            end = at + (length >> 1)
            tail = data[start:stop]
            newest[data[at:end]] = (
                offset,
                first_ms + ((delta >> 1) ^ -(delta & 1)) if append_ms is None else append_ms,
                sum32(tail) << 32 | sum32c(tail),
                data[end] == 1,
            )
        at = stop
    if at > len(data):
        raise ValueError(f"{count} records end at byte {at} of {len(data)}")


def _varint(data: bytes, at: int, value: int) -> Tuple[int, int]:
    """Return the unsigned varint whose first byte is `value`, and the position after it."""
    value, shift = value & 127, 7
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def add_old(newest: Newest, message: memoryview, begin: int) -> None:
    """Add a message of magic 0 or 1, or the messages that it holds compressed. Raises ValueError, struct.error."""
    ((offset, flags, time, key, value, tail),) = _messages(bytes(message))
    if not flags & _CODEC:
        inner, shift = [(offset, flags, time, key, value, tail)], 0
    else:
        inner = list(_messages(_uncompressed(flags & _CODEC, memoryview(value))))
        # Offsets in a message of magic 1 are relative; its own offset is that of the last one
        shift = offset - inner[-1][0] if message[16] else 0
    for number, _flags, own, name, content, rest in inner:
        if name is not None and number + shift >= begin:
            newest[name] = (
                number + shift,
                time if flags & _APPEND_TIME else own,
                zlib.crc32(rest) << 32 | crc32c(rest),
                content is None,
            )


def _messages(data: bytes) -> Iterator[Tuple[int, int, int, bytes | None, bytes | None, bytes]]:
    """Yield (offset, attributes, timestamp, key, value, bytes from the length of the key on) of old messages."""
    at = 0
    while at < len(data):
        offset, size, _crc, magic, flags = _OLD_HEAD.unpack_from(data, at)
        stop, at = at + 12 + size, at + _OLD_HEAD.size
        time = -1
        if magic:
            (time,) = struct.unpack_from(">q", data, at)
            at += 8
        parts: List[bytes | None] = []
        place = at
        for _part in ("key", "value"):
            (length,) = struct.unpack_from(">i", data, place)
            place += 4
            parts.append(None if length < 0 else data[place : place + length])
            place += max(length, 0)
        yield offset, flags, time, parts[0], parts[1], data[at:stop]
        at = stop


def _uncompressed(codec: int, data: memoryview) -> bytes:
    """Return data that a Kafka client compressed. Raises ValueError."""
    try:
        if codec == 0:
            return bytes(data)
        if codec == 1:
            return zlib.decompress(data, 31)
        if codec == 2:
            return b"".join(map(_snappy, _snappy_blocks(bytes(data))))
        if codec in (3, 4):
            with pa.input_stream(pa.py_buffer(data), compression="lz4" if codec == 3 else "zstd") as stream:
                return stream.read()
    except (zlib.error, OSError, pa.ArrowException, IndexError, struct.error) as error:
        raise ValueError(f"cannot be uncompressed (codec {codec}): {error}") from error
    raise ValueError(f"has the unknown codec {codec}")


def _snappy_blocks(data: bytes) -> Iterator[bytes]:
    """Yield the blocks of snappy-java's stream (a header of 16 bytes, then blocks with their lengths), or the data."""
    if not data.startswith(_XERIAL):
        yield data
        return
    at = 16
    while at < len(data):
        (size,) = struct.unpack_from(">i", data, at)
        yield data[at + 4 : at + 4 + size]
        at += 4 + size


def _snappy(block: bytes) -> bytes:
    size, _at = _varint(block, 1, block[0]) if block[0] > 127 else (block[0], 1)
    return pa.decompress(block, decompressed_size=size, codec="snappy", asbytes=True) if size else b""


def rows(newest: Newest) -> pa.RecordBatch:
    """Return the newest records as rows of SCHEMA."""
    names = b"".join(hashlib.blake2b(key, digest_size=8).digest() for key in newest)
    offsets, times, contents, tombstones = zip(*newest.values()) if newest else ((), (), (), ())
    columns = [
        np.frombuffer(names, ">i8").astype("i8"),
        np.array(offsets, "i8"),
        np.array(contents, "u8").view("i8"),
        np.array(tombstones, "?"),
        np.array(times, "i8"),
    ]
    return pa.record_batch([pa.array(column) for column in columns], schema=SCHEMA)


def key_hash(key: bytes) -> int:
    """Return a key's hash as in SCHEMA."""
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big", signed=True)
