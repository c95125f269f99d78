# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the newest record of every key of a compacted partition with the baseline's. Pure.

Compaction keeps the newest record of a key; it drops a tombstone once delete.retention.ms have passed since it was
first cleaned (KIP-534). So a key may be superseded by a later record and a deleted key may vanish, but nothing else
may happen below the baseline's end.
"""

from __future__ import annotations

from typing import Dict, Mapping, NamedTuple, Tuple

import numpy as np
import pyarrow as pa

from quorumshift_spark.fingerprint import retention
from quorumshift_spark.fingerprint.chunks import compare_ends
from quorumshift_spark.fingerprint.findings import Findings
from quorumshift_spark.fingerprint.plan import Chunk, PartitionState, TopicPartition

KIND = "key"

SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("key_hash", pa.int64()),
        ("offset", pa.int64()),
        ("hash", pa.int64()),
        ("tombstone", pa.bool_()),
        ("timestamp", pa.int64()),
    ]
)
"""The newest record of each key: 64-bit hashes of the key and of the whole record; `timestamp` in epoch ms."""

SHOWN = 200
"""Differences of one rule and partition that are told one by one; the rest is counted in the last of them."""


class Newest(NamedTuple):
    """The newest records of one partition as arrays, sorted by `key`."""

    key: np.ndarray
    offset: np.ndarray
    hash: np.ndarray
    tombstone: np.ndarray
    timestamp: np.ndarray


_NOTHING = Newest(*(np.empty(0, kind) for kind in ("i8", "i8", "i8", "?", "i8")))


def by_partition(table: pa.Table) -> Dict[TopicPartition, Newest]:
    """The rows of a table of SCHEMA by partition."""
    topics = table.column("topic").combine_chunks().dictionary_encode()
    if isinstance(topics, pa.ChunkedArray):
        topics = topics.combine_chunks()
    names, codes = topics.dictionary.to_pylist(), topics.indices.to_numpy(zero_copy_only=False)
    columns = [table.column(name).to_numpy() for name in ("partition", *SCHEMA.names[2:])]
    order = np.lexsort((columns[1], columns[0], codes))
    codes, columns = codes[order], [column[order] for column in columns]
    where = np.flatnonzero((np.diff(codes) != 0) | (np.diff(columns[0]) != 0)) + 1
    found: Dict[TopicPartition, Newest] = {}
    for part in np.split(np.arange(len(codes)), where) if len(codes) else ():
        found[(names[codes[part[0]]], int(columns[0][part[0]]))] = Newest(*(column[part] for column in columns[1:]))
    return found


def compare(
    was: PartitionState,
    baseline: Newest | None,
    now: PartitionState,
    current: Newest | None,
    now_ms: int,
    elapsed_ms: int,
    purged_topics: Tuple[str, ...] = (),
) -> Findings:
    """Compare a compacted partition.

    :arg current: newest committed records from the log start to the end of now.
    :arg elapsed_ms: since the baseline was read: a tombstone written after it is still there while this is shorter
        than delete.retention.ms.
    """
    old, new = baseline or _NOTHING, current or _NOTHING
    found = compare_ends(was, now)
    at = np.searchsorted(new.key, old.key)
    there = np.zeros(len(old.key), dtype=bool)
    inside = at < len(new.key)
    there[inside] = new.key[at[inside]] == old.key[inside]
    at = np.where(there, at, 0)
    offset = np.where(there, new.offset[at], -1) if len(new.key) else np.full(len(old.key), -1)
    content = np.where(there, new.hash[at], 0) if len(new.key) else np.zeros(len(old.key), dtype="i8")

    same = there & (offset == old.offset)
    changed = same & (content != old.hash)
    later = there & (offset >= was.end)
    back = there & (offset < old.offset)
    rewritten = there & (offset > old.offset) & (offset < was.end)
    found.count(KIND, "match", int((same & ~changed).sum()))
    found.explain(KIND, "superseded by a later record", int(later.sum()))
    _differ("key_changed", changed, was, old, offset, content, found)
    _differ("key_went_back", back, was, old, offset, content, found)
    _differ("key_appeared", rewritten, was, old, offset, content, found)

    gone = ~there
    below = gone & (old.offset < now.log_start) & now.deletes
    if below.any():
        removed = [_as_chunk(was, old, number) for number in np.flatnonzero(below)]
        why = retention.explains(now, removed, now_ms, purged_topics)
        if why:
            found.explain(KIND, f"below the log start ({why})", int(below.sum()))
            gone = gone & ~below
    tombstones = gone & old.tombstone
    found.explain(KIND, "tombstone cleaned", int(tombstones.sum()))
    gone = gone & ~tombstones
    if elapsed_ms >= min(was.delete_retention_ms, now.delete_retention_ms):
        found.explain(KIND, "gone; a tombstone may have come and gone meanwhile", int(gone.sum()))
    else:
        _differ("key_vanished", gone, was, old, None, None, found, "left_only")

    known = np.isin(new.key, old.key, assume_unique=True)
    appeared = ~known & (new.offset < was.end) & (new.offset >= was.log_start)
    found.explain(KIND, "new since the baseline", int((~known & ~appeared).sum()))
    for number in np.flatnonzero(appeared)[:SHOWN]:
        side = {"offset": int(new.offset[number]), "hash": _hex(new.hash[number])}
        found.differ(KIND, _key(was, new.key[number]), "newest", None, side, "key_appeared")
    found.count(KIND, "right_only", int(appeared.sum()))
    return found


def _differ(rule, chosen, was, old, offset, content, found, outcome="differ"):
    numbers = np.flatnonzero(chosen)
    found.count(KIND, outcome, len(numbers))
    for number in numbers[:SHOWN]:
        before = {"offset": int(old.offset[number]), "hash": _hex(old.hash[number])}
        after = None if offset is None else {"offset": int(offset[number]), "hash": _hex(content[number])}
        found.differ(KIND, _key(was, old.key[number]), "newest", before, after, rule)
    if len(numbers) > SHOWN:
        found.differ(KIND, [was.topic, was.partition], "newest", {"further keys": len(numbers) - SHOWN}, None, rule)


def _key(was: PartitionState, key: np.int64) -> list:
    return [was.topic, was.partition, _hex(key)]


def _hex(value: np.int64) -> str:
    return f"{int(value) & 0xFFFFFFFFFFFFFFFF:016x}"


def _as_chunk(was: PartitionState, old: Newest, number: int) -> Chunk:
    """A record as a chunk of its own, for the question whether retention took it."""
    offset, timestamp = int(old.offset[number]), int(old.timestamp[number])
    return Chunk(was.topic, was.partition, offset, offset + 1, 1, offset, offset, timestamp, timestamp, 0)


def newest_of(rows: Mapping[int, Tuple[int, int, bool, int]]) -> Newest:
    """Arrays from {key hash: (offset, record hash, tombstone, timestamp)}."""
    if not rows:
        return _NOTHING
    keys = sorted(rows)
    columns = zip(*(rows[key] for key in keys))
    kinds = ("i8", "i8", "?", "i8")
    return Newest(np.array(keys, "i8"), *(np.array(column, kind) for column, kind in zip(columns, kinds)))
