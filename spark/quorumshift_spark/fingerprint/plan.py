# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans which offsets are read, and cuts them into chunks. Pure.

A partition is read from its log start to its end, or a sample of it, in chunks of a number of offsets. The chunks of
the baseline are read again with the same bounds; chunks above the baseline's end are new. So one reading serves both
the comparison and the next baseline.
"""

from __future__ import annotations

import hashlib
from typing import Dict, Iterable, List, NamedTuple, Sequence, Tuple

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


class Sample(NamedTuple):
    """Which new chunks of a partition are read: those of its `last` records, or `percent` of them, chosen by `seed`."""

    last: int | None = None
    percent: float | None = None
    seed: int = 0

    def __str__(self) -> str:
        return f"the last {self.last:,} records" if self.last else f"{self.percent:g} % of the chunks, seed {self.seed}"


class Range(NamedTuple):
    """Chunks of a partition to read, one after the other: chunk i has the offsets [bounds[i], bounds[i + 1]).

    A stored batch belongs to the chunk of its first offset. `cut`: the batch that the first bound cuts, if any, belongs
    to the first chunk; otherwise it belongs to the chunk before, of another range. `keyed`: for a compacted partition,
    of which the newest records of the keys are compared, not the batches.
    """

    topic: str
    partition: int
    topic_id: str
    bounds: Tuple[int, ...]
    cut: bool = True
    keyed: bool = False

    @property
    def tp(self) -> TopicPartition:
        return self.topic, self.partition

    @property
    def begin(self) -> int:
        return self.bounds[0]

    @property
    def end(self) -> int:
        return self.bounds[-1]


class Place(NamedTuple):
    """A chunk that was read: its bounds, whether it is keyed, and the number of its rows (data.SCHEMA)."""

    begin: int
    end: int
    keyed: bool
    number: int


TIMES = 64
"""How many newest timestamps a chunk has inside: the offset at which retention cut it is seldom known better."""


class Chunk(NamedTuple):
    """The stored batches whose first offsets are in [begin, end) of a partition.

    `records`: by the headers of the batches, control records included; `bytes`: as stored; `covered`: offsets that the
    batches span. First and last offset, timestamps (ms) and leader epochs from min to max are None without a batch;
    `max_timestamp` also if a batch has no timestamp. `times`: pairs of an offset, at most TIMES of them in order, and
    the newest timestamp of all batches from `begin` up to it (exclusive); -1 once a batch has none.
    `hash`: of the headers of the batches in order, which include checksums of their records. In a compacted partition
    it is "", and `keys` is how many keys have a committed record in the chunk (records.SCHEMA).
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
    keys: int | None = None
    times: Tuple[Tuple[int, int], ...] = ()

    @property
    def content(self) -> Dict[str, int | str | None]:
        """Return the values by which two chunks are compared."""
        return {name: getattr(self, name) for name in ("batches", "records", "min_offset", "max_offset", "hash")}


def ranges(
    now: PartitionState,
    was: PartitionState | None,
    baseline: Sequence[Tuple[int, int]],
    size: int,
    sample: Sample | None = None,
    keyed: bool = False,
) -> List[Range]:
    """Return what to read of a partition: the baseline's chunks, then new ones.

    :arg baseline: bounds of the baseline's chunks in the order of offsets.
    :arg size: of new chunks, in offsets; their bounds are multiples of it.
    :arg sample: of the new chunks; None for all of them. The baseline's are read in any case.

    Offsets below the baseline's log start are not read, even if the current leader still has them.
    """
    begin = max(now.log_start, was.log_start if was else 0)
    known = max(begin, was.end if was else 0)
    grid = [known, *range((known // size + 1) * size, now.end, size), now.end]
    new = [pair for pair in zip(grid, grid[1:]) if pair[0] < pair[1]]
    old = [(max(first, begin), min(end, now.end)) for first, end in baseline]
    chosen = [pair for pair in old if pair[0] < pair[1]] + (_sampled(new, now, sample) if sample else new)
    # In the baseline, the batch that a later bound cuts belongs to the chunk before
    inside = was is not None and begin != was.log_start and any(begin in bounds for bounds in baseline)
    return _joined(Range(*now.tp, now.topic_id, (begin,), not inside, keyed), chosen)


def _sampled(chunks: Sequence[Tuple[int, int]], now: PartitionState, sample: Sample) -> List[Tuple[int, int]]:
    """Return the chunks of a sample; at least one, if there is one."""
    if sample.last:
        return [pair for pair in chunks if pair[1] > now.end - sample.last]

    def place(pair: Tuple[int, int]) -> float:
        name = f"{sample.seed} {now.topic_id} {now.partition} {pair[0]}".encode()
        return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "big") / 2**64

    return [pair for pair in chunks if place(pair) * 100 < (sample.percent or 0)] or sorted(chunks, key=place)[:1]


def _joined(whole: Range, chunks: Iterable[Tuple[int, int]]) -> List[Range]:
    """Return chunks [begin, end) as ranges. `whole`: the range that would begin with the partition's first chunk."""
    found: List[Range] = []
    for begin, end in chunks:
        if found and found[-1].end == begin:
            found[-1] = found[-1]._replace(bounds=(*found[-1].bounds, end))
        else:
            found.append(whole._replace(bounds=(begin, end), cut=whole.cut and begin == whole.begin))
    return found


def without(whole: Range, finished: Iterable[Tuple[int, int]]) -> List[Range]:
    """Return a range without its finished chunks [begin, end)."""
    known = set(finished)
    return _joined(whole, [pair for pair in zip(whole.bounds, whole.bounds[1:]) if pair not in known])


def split(whole: Range, offsets: int) -> List[Range]:
    """Return a range in parts of at least `offsets` offsets (the last one may be smaller), cut between chunks."""
    parts, first = [], 0
    for index, bound in enumerate(whole.bounds):
        if bound - whole.bounds[first] >= offsets or index == len(whole.bounds) - 1:
            parts.append(whole._replace(bounds=whole.bounds[first : index + 1], cut=whole.cut and first == 0))
            first = index
    return [part for part in parts if len(part.bounds) > 1]


def chunks_in(parts: Iterable[Range]) -> int:
    """Return how many chunks these ranges have."""
    return sum(len(part.bounds) - 1 for part in parts)
