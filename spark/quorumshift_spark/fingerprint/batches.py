# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sums up stored record batches by chunk; decompresses only those of compacted partitions. Pure.

A broker stores a batch once, with its offset and leader epoch; followers copy its bytes, and Fetch returns them (from
version 4 on without conversion). Only the cleaner of compacted topics rewrites batches. The hash covers the headers of
the batches, with offset, leader epoch, producer id and epoch, sequence, timestamps, number of records, and the CRC-32C
of all that follows: keys, values, headers, control records. This checksum is computed from the stored bytes, so that
bytes that do not match it are found, and other records have another one.

Layouts: org.apache.kafka.common.record.DefaultRecordBatch (magic 2) and LegacyRecord (magic 0 and 1, of topics filled
before Kafka 0.11 or with an old message.format.version).
"""

from __future__ import annotations

import hashlib
import itertools
import struct
import zlib
from typing import Iterable, Iterator, List, Tuple

import pyarrow as pa
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.records.crc32c import crc32c

from quorumshift_spark.fingerprint import records
from quorumshift_spark.fingerprint.plan import TIMES, Chunk, Range

_LENGTH = struct.Struct(">i")
_LENGTH_AT, _BEFORE_LENGTH, _MAGIC_AT = 8, 12, 16
# baseOffset, batchLength, partitionLeaderEpoch, magic, crc, attributes, lastOffsetDelta, baseTimestamp, maxTimestamp,
# producerId, producerEpoch, baseSequence, recordsCount
_HEADER, _CHECKED_FROM = struct.Struct(">qiibIhiqqqhii"), 21
# offset, size, crc, magic, attributes, and from magic 1 on the timestamp
_OLD_HEADER, _OLD_CHECKED_FROM = struct.Struct(">qiIbbq"), 16


def _times(begin: int, end: int, lasts: Iterable[int], newest: Iterable[int]) -> Tuple[Tuple[int, int], ...]:
    """Return `times` of a chunk: the newest timestamp up to each of TIMES places."""
    step, found, latest = max(1, -(-(end - begin) // TIMES)), [], 0
    due = begin
    for last, time in zip(lasts, newest):
        latest = -1 if latest < 0 or time < 0 else max(latest, time)
        if last + 1 >= due:
            found.append((last + 1, latest))
            due = last + 1 + step
    return tuple(found)


class CorruptBatch(Exception):
    """A stored batch does not match its checksum or its place in the log. The message names the partition."""


class Reader:
    """Reads the chunks of one range from the batches of consecutive answers.

    `next`: the offset to request next; `chunks`: those read completely and not taken yet; `keys`: of each of them, if
    the range is keyed (records.rows); `done`: whether these were all.
    """

    def __init__(self, wanted: Range) -> None:
        self.wanted = wanted
        self.next = wanted.begin
        self.chunks: List[Chunk] = []
        self.keys: List[pa.RecordBatch] = []
        self._complete = 0
        self._begin_chunk()

    def add(self, data: memoryview, aborted: Iterable[records.Aborted] = ()) -> None:
        """Add an answer's bytes. The last batch may be incomplete. Raises CorruptBatch.

        :arg aborted: the transactions that the broker says were aborted, of a keyed range.
        """
        at = 0
        transactions = records.Transactions(aborted)
        size, following, begin = len(data), self.next, self.wanted.begin
        while at + _MAGIC_AT < size:
            stop = at + _BEFORE_LENGTH + _LENGTH.unpack_from(data, at + _LENGTH_AT)[0]
            if stop > size:
                break
            if data[at + _MAGIC_AT] == 2 and stop - at >= _HEADER.size:
                base, _size, epoch, magic, crc, flags, delta, first, newest, producer, _epoch, _sequence, count = (
                    _HEADER.unpack_from(data, at)
                )
                last = base + delta
                if crc32c(data[at + _CHECKED_FROM : stop]) != crc or last < base:
                    raise self._corrupt(base, "has a wrong checksum")
            else:
                # A compressed batch of an old format has several records; its offset is that of the last one
                base = last = self._check_old(data, at, stop)
                magic, epoch, count = data[at + _MAGIC_AT], None, 1
                first = newest = _OLD_HEADER.unpack_from(data, at)[-1] if magic else -1
            if base < following:
                if following > begin:
                    raise self._corrupt(base, f"comes after offset {following - 1}")
                if last < begin or not self.wanted.cut:
                    following, at = max(following, last + 1), stop
                    continue
            while base >= self._end:
                self._end_chunk()
                if self.done:
                    return
            self._rows.append((base, last, first, newest, epoch, count, stop - at))
            if self.wanted.keyed:
                try:
                    if magic != 2:
                        records.add_old(self._newest, data[at:stop], begin)
                    elif count:
                        body = data[at + _HEADER.size : stop]
                        if transactions.committed(flags, producer, last, body, count):
                            records.add_batch(self._newest, flags, body, count, base, (first, newest), begin)
                except (ValueError, IndexError, struct.error) as error:
                    raise self._corrupt(base, str(error)) from error
            else:
                self._hash.update(data[at : at + _HEADER.size if magic == 2 else stop])
            following, at = last + 1, stop
        self.next = following
        while not self.done and following >= self._end:
            self._end_chunk()

    @property
    def partition(self) -> Tuple[str, int]:
        """Return the topic id and the partition."""
        return self.wanted.topic_id, self.wanted.partition

    def take(self) -> Iterator[Tuple[Chunk, pa.RecordBatch | None]]:
        """Yield the chunks that were completed since the last call, with their keys if the range is keyed."""
        taken = [*itertools.zip_longest(self.chunks, self.keys)]
        self.chunks, self.keys = [], []
        return iter(taken)

    @property
    def done(self) -> bool:
        return self._complete == len(self.wanted.bounds) - 1

    @property
    def rest(self) -> Range:
        """Return the range of the chunks that are not complete."""
        first = self._complete
        return self.wanted._replace(bounds=self.wanted.bounds[first:], cut=self.wanted.cut and not first)

    def _begin_chunk(self) -> None:
        self._end = self.wanted.bounds[self._complete + 1] if not self.done else 0
        self._hash = hashlib.blake2b(digest_size=16)
        self._rows: list = []
        self._newest: records.Newest = {}

    def _end_chunk(self) -> None:
        bounds, number = self.wanted.bounds, self._complete
        bases, lasts, firsts, newest, epochs, counts, sizes = zip(*self._rows) if self._rows else ((),) * 7
        is_timed = all(time >= 0 for time in newest)
        known = [epoch for epoch in epochs if epoch is not None]
        if self.wanted.keyed:
            self.keys.append(records.rows(self._newest))
        self.chunks.append(
            Chunk(
                self.wanted.topic,
                self.wanted.partition,
                bounds[number],
                bounds[number + 1],
                len(bases),
                sum(counts),
                sum(sizes),
                sum(lasts) - sum(bases) + len(bases),
                min(bases, default=None),
                max(lasts, default=None),
                min((time for time in firsts if time >= 0), default=None),
                max(newest, default=None) if is_timed else None,
                min(known, default=None),
                max(known, default=None),
                "" if self.wanted.keyed else self._hash.hexdigest(),
                len(self._newest) if self.wanted.keyed else None,
                times=_times(bounds[number], bounds[number + 1], lasts, newest),
            )
        )
        self._complete += 1
        self._begin_chunk()

    def _check_old(self, data: memoryview, at: int, stop: int) -> int:
        """Return the offset of a message of magic 0 or 1. Raises CorruptBatch."""
        if stop - at < _OLD_HEADER.size:
            raise self._corrupt(self.next, f"has a length of {stop - at} bytes")
        offset, _size, crc, magic, _flags, _time = _OLD_HEADER.unpack_from(data, at)
        if magic not in (0, 1) or zlib.crc32(data[at + _OLD_CHECKED_FROM : stop]) != crc:
            raise self._corrupt(offset, f"has magic {magic} or a wrong checksum")
        return offset

    def _corrupt(self, offset: int, what: str) -> CorruptBatch:
        name = f"{self.wanted.topic}-{self.wanted.partition}"
        return CorruptBatch(f"{name}: the stored batch at offset {offset} {what}")
