# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans which offsets are read, and cuts them into chunks. Pure.

A partition is read from its log start to its end, in chunks of a number of offsets. The chunks of the baseline are read
again with the same bounds; chunks above the baseline's end are new. So one reading serves both the comparison and the
next baseline.
"""

from __future__ import annotations

from typing import Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

TopicPartition = Tuple[str, int]


class PartitionState(NamedTuple):
    """A partition in Kafka. `log_start`: its first offset; `end`: the offset after the last that is read.

    `end` is the high watermark; for a compacted topic the last stable offset, since only committed records are read.
    `compacted` and `deletes`: from cleanup.policy; `retention_ms`, `retention_bytes` (-1: none), `delete_retention_ms`:
    topic configs.
    """

    topic: str
    partition: int
    topic_id: str
    leader_epoch: int
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

    @property
    def policy(self) -> Dict[str, object]:
        """Return the configs that delete records."""
        policies = [name for name, on in (("compact", self.compacted), ("delete", self.deletes)) if on]
        return {
            "cleanup.policy": ",".join(policies),
            "retention.ms": self.retention_ms,
            "retention.bytes": self.retention_bytes,
            "delete.retention.ms": self.delete_retention_ms,
        }


class Range(NamedTuple):
    """Chunks of a partition to read, one after the other: chunk i has the offsets [bounds[i], bounds[i + 1]).

    A stored batch belongs to the chunk of its first offset. `cut`: the batch that the first bound cuts, if any, belongs
    to the first chunk; otherwise it belongs to the chunk before, of another range.
    """

    topic: str
    partition: int
    topic_id: str
    bounds: Tuple[int, ...]
    cut: bool = True

    @property
    def begin(self) -> int:
        return self.bounds[0]

    @property
    def end(self) -> int:
        return self.bounds[-1]


class Chunk(NamedTuple):
    """The stored batches whose first offsets are in [begin, end) of a partition.

    `records`: by the headers of the batches, control records included; `bytes`: as stored; `covered`: offsets that the
    batches span. First and last offset, timestamps (ms) and leader epochs from min to max are None without a batch.
    `hash`: of all stored bytes in order.
    """

    topic: str
    partition: int
    begin: int
    end: int
    batches: int
    records: int
    bytes: int
    covered: int
    min_offset: int | None
    max_offset: int | None
    min_timestamp: int | None
    max_timestamp: int | None
    min_epoch: int | None
    max_epoch: int | None
    hash: str

    @property
    def content(self) -> Dict[str, int | str | None]:
        """Return the values by which two chunks are compared."""
        return {name: getattr(self, name) for name in ("batches", "records", "min_offset", "max_offset", "hash")}


def ranges(now: PartitionState, was: PartitionState | None, baseline: Sequence[Chunk], size: int) -> Range | None:
    """Return what to read of a partition: the baseline's chunks, then new ones; None for an empty log.

    :arg baseline: chunks of the baseline in the order of offsets.
    :arg size: of new chunks, in offsets; their bounds are multiples of it.

    Offsets below the baseline's log start are not read, even if the current leader still has them.
    """
    begin = max(now.log_start, was.log_start if was else 0)
    # A baseline whose log start moved during its scan has no chunk that begins there
    both = {bound for chunk in baseline for bound in (chunk.begin, chunk.end)}
    bounds = [begin, *sorted(bound for bound in both if begin < bound < now.end)]
    known = max(begin, was.end if was else 0)
    bounds += range((known // size + 1) * size, now.end, size)
    # In the baseline, the batch that a later bound cuts belongs to the chunk before
    cut = was is None or begin == was.log_start or begin not in both
    return Range(*now.tp, now.topic_id, (*bounds, now.end), cut) if begin < now.end else None


def split(whole: Range, offsets: int) -> List[Range]:
    """Return a range in parts of at least `offsets` offsets (the last one may be smaller), cut between chunks."""
    parts, first = [], 0
    for index, bound in enumerate(whole.bounds):
        if bound - whole.bounds[first] >= offsets or index == len(whole.bounds) - 1:
            parts.append(whole._replace(bounds=whole.bounds[first : index + 1], cut=whole.cut and first == 0))
            first = index
    return [part for part in parts if len(part.bounds) > 1]


def by_partition(all_chunks: Iterable[Chunk]) -> Mapping[TopicPartition, List[Chunk]]:
    """Return the chunks of each partition, in the order of offsets."""
    grouped: Dict[TopicPartition, List[Chunk]] = {}
    for chunk in sorted(all_chunks, key=lambda chunk: chunk[:3]):
        grouped.setdefault(chunk[:2], []).append(chunk)
    return grouped
