# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans which offsets are read, and cuts them into chunks. Pure.

A chunk covers the offsets [n * size, (n + 1) * size) of a partition; the first one begins at the log's start, the last
one ends at the partition's end. A later run reads the same chunks again. Offsets above the baseline's end are separate
chunks, so that one scan serves both the comparison and the next baseline.
"""

from __future__ import annotations

from typing import Dict, Iterable, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

TopicPartition = Tuple[str, int]

READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"


class PartitionState(NamedTuple):
    """A partition in Kafka. `log_start`: its first offset; `end`: the offset after the last that is read.

    `end` is the high watermark, or the last stable offset where only committed records are read. `compacted` and
    `deletes`: from cleanup.policy; `retention_ms`, `retention_bytes` (-1: none), `delete_retention_ms`: topic configs.
    """

    topic: str
    partition: int
    topic_id: str
    log_start: int
    end: int
    compacted: bool
    deletes: bool
    retention_ms: int
    retention_bytes: int
    delete_retention_ms: int

    @property
    def tp(self) -> TopicPartition:
        return self.topic, self.partition


class Range(NamedTuple):
    """Offsets [begin, end) of a partition to read."""

    topic: str
    partition: int
    begin: int
    end: int


class Chunk(NamedTuple):
    """The records at the offsets [begin, end) of a partition.

    `count` records with offsets and timestamps (ms) from min to max, None without a record. `hash_sum`: the exact sum
    of the records' unsigned 64-bit hashes, without modulus.
    """

    topic: str
    partition: int
    begin: int
    end: int
    count: int
    min_offset: int | None
    max_offset: int | None
    min_timestamp: int | None
    max_timestamp: int | None
    hash_sum: int

    @property
    def content(self) -> Dict[str, int | None]:
        """Return the values by which two chunks are compared."""
        return {
            "count": self.count,
            "min_offset": self.min_offset,
            "max_offset": self.max_offset,
            "hash_sum": self.hash_sum,
        }


class Sums(NamedTuple):
    """One row of the scan: the records of a range that fall into chunk number `index`."""

    topic: str
    partition: int
    index: int
    count: int
    min_offset: int
    max_offset: int
    min_timestamp: int
    max_timestamp: int
    hash_sum: int


class UnplannedRecords(Exception):
    """The scan returned records that were not requested: its result cannot be trusted."""


def ranges(now: PartitionState, was: PartitionState | None) -> Tuple[Range | None, Range | None]:
    """Return what to read of a partition below the baseline's end and above it; None for an empty range.

    Offsets below the baseline's log start are not read, even if the current leader still has them.
    """
    begin = max(now.log_start, was.log_start if was else 0)
    cut = min(max(was.end, begin), now.end) if was else begin
    old = Range(now.topic, now.partition, begin, cut)
    new = Range(now.topic, now.partition, max(begin, cut), now.end)
    return (old if old.begin < old.end else None), (new if new.begin < new.end else None)


def bounds(wanted: Range, size: int) -> Iterator[Tuple[int, int]]:
    """Yield the begin and end of each chunk of a range, in order."""
    begin = wanted.begin
    while begin < wanted.end:
        end = min((begin // size + 1) * size, wanted.end)
        yield begin, end
        begin = end


def chunks(wanted: Iterable[Range], size: int, rows: Iterable[Sums]) -> List[Chunk]:
    """Return every chunk of the ranges, also without records. Raises UnplannedRecords for a row of no planned chunk."""
    left: Dict[Tuple[str, int, int], Sums] = {}
    for row in rows:
        key = (row.topic, row.partition, row.index)
        if key in left:
            raise UnplannedRecords(f"{row.topic}-{row.partition}: chunk {row.index} was returned twice")
        left[key] = row
    planned = []
    for to_read in wanted:
        topic, partition = to_read.topic, to_read.partition
        for begin, end in bounds(to_read, size):
            row = left.pop((topic, partition, begin // size), None)
            if row is None:
                planned.append(Chunk(topic, partition, begin, end, 0, None, None, None, None, 0))
                continue
            if not begin <= row.min_offset <= row.max_offset < end:
                raise UnplannedRecords(
                    f"{topic}-{partition}: offsets {row.min_offset} to {row.max_offset} were returned for the chunk "
                    f"from {begin} to {end}"
                )
            planned.append(Chunk(topic, partition, begin, end, *row[3:]))
    if left:
        topic, partition, index = next(iter(left))
        raise UnplannedRecords(f"{topic}-{partition}: records of chunk {index} were not requested ({len(left)} chunks)")
    return planned


def merge(parts: Iterable[Chunk], size: int) -> List[Chunk]:
    """Return the chunks of the next baseline: joins the two parts of a chunk that the baseline's end has cut."""
    merged: List[Chunk] = []
    for part in sorted(parts):
        last = merged[-1] if merged else None
        if last and last[:2] == part[:2] and last.end == part.begin and last.begin // size == part.begin // size:
            merged[-1] = Chunk(
                *last[:3],
                part.end,
                last.count + part.count,
                _min((last.min_offset, part.min_offset)),
                _max((last.max_offset, part.max_offset)),
                _min((last.min_timestamp, part.min_timestamp)),
                _max((last.max_timestamp, part.max_timestamp)),
                last.hash_sum + part.hash_sum,
            )
        else:
            merged.append(part)
    return merged


def by_partition(all_chunks: Iterable[Chunk]) -> Mapping[TopicPartition, List[Chunk]]:
    """Return the chunks of each partition, in the order of offsets."""
    grouped: Dict[TopicPartition, List[Chunk]] = {}
    for chunk in sorted(all_chunks):
        grouped.setdefault(chunk[:2], []).append(chunk)
    return grouped


def _min(values: Sequence[int | None]) -> int | None:
    return min((value for value in values if value is not None), default=None)


def _max(values: Sequence[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
