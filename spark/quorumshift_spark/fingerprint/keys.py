# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the newest record of every key of a compacted partition with the baseline. Pure.

Compaction keeps the newest record of a key. It drops a tombstone delete.retention.ms after its first cleaning
(KIP-534). So below the baseline's end only two changes are legitimate: a later record supersedes a key, and a deleted
key disappears.

A key that disappeared after the baseline needed a tombstone above the baseline's end. The tombstone still exists, or it
was cleaned and left an offset without a record. So no more keys can disappear than there are such offsets, and none
before delete.retention.ms has passed. Superseded records and transaction markers leave such offsets too: they refute a
deletion but never prove one.
"""

from __future__ import annotations

from typing import Dict, NamedTuple, Tuple

import numpy as np
import pyarrow as pa

from quorumshift_spark.fingerprint import retention
from quorumshift_spark.fingerprint.chunks import compare_log
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
"""The newest record of each key: 64-bit hashes of the key and of the complete record; `timestamp` in epoch ms."""

SHOWN = 200
"""Differences listed for one rule and partition; the last one holds the number of all others."""


class Newest(NamedTuple):
    """The newest records of one partition as arrays, sorted by `key`."""

    key: np.ndarray
    offset: np.ndarray
    hash: np.ndarray
    tombstone: np.ndarray
    timestamp: np.ndarray


_EMPTY = Newest(*(np.empty(0, kind) for kind in ("i8", "i8", "i8", "?", "i8")))


def by_partition(table: pa.Table) -> Dict[TopicPartition, Newest]:
    """Return the rows of a table of SCHEMA by partition."""
    topics = table.column("topic").combine_chunks().dictionary_encode()
    if isinstance(topics, pa.ChunkedArray):
        topics = topics.combine_chunks()
    names, codes = topics.dictionary.to_pylist(), topics.indices.to_numpy(zero_copy_only=False)
    columns = [table.column(name).to_numpy() for name in ("partition", *SCHEMA.names[2:])]
    order = np.lexsort((columns[1], columns[0], codes))
    codes, columns = codes[order], [column[order] for column in columns]
    starts = np.flatnonzero((np.diff(codes) != 0) | (np.diff(columns[0]) != 0)) + 1
    grouped: Dict[TopicPartition, Newest] = {}
    for part in np.split(np.arange(len(codes)), starts) if len(codes) else ():
        grouped[(names[codes[part[0]]], int(columns[0][part[0]]))] = Newest(*(column[part] for column in columns[1:]))
    return grouped


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
    :arg elapsed_ms: since the baseline was read: while it is shorter than delete.retention.ms, a tombstone written
        after the baseline still exists.
    """
    old, new = baseline or _EMPTY, current or _EMPTY
    findings = compare_log(was, now)
    at = np.searchsorted(new.key, old.key)
    present = np.zeros(len(old.key), dtype=bool)
    inside = at < len(new.key)
    present[inside] = new.key[at[inside]] == old.key[inside]
    at = np.where(present, at, 0)
    offset = np.where(present, new.offset[at], -1) if len(new.key) else np.full(len(old.key), -1)
    content = np.where(present, new.hash[at], 0) if len(new.key) else np.zeros(len(old.key), dtype="i8")

    same = present & (offset == old.offset)
    changed = same & (content != old.hash)
    later = present & (offset >= was.end)
    regressed = present & (offset < old.offset)
    rewritten = present & (offset > old.offset) & (offset < was.end)
    findings.count(KIND, "match", int((same & ~changed).sum()))
    findings.explain(KIND, "superseded by a later record", int(later.sum()))
    _differ("key_changed", changed, was, old, offset, content, findings)
    _differ("key_regressed", regressed, was, old, offset, content, findings)
    _differ("key_appeared", rewritten, was, old, offset, content, findings)

    missing = ~present
    below = missing & (old.offset < now.log_start) & now.deletes
    if below.any():
        removed = [_as_chunk(was, old, number) for number in np.flatnonzero(below)]
        reason = retention.explains(was, now, removed, None, now_ms, purged_topics)
        if reason and reason.certain:
            findings.explain(KIND, f"below the log start ({reason.text})", int(below.sum()))
        elif reason:
            findings.skip(KIND, [*was.tp], retention.undecided(was, now, reason), int(below.sum()))
        missing = missing & ~below if reason else missing
    tombstones = missing & old.tombstone
    findings.explain(KIND, "tombstone removed by the cleaner", int(tombstones.sum()))
    _vanished(was, now, old, missing & ~tombstones, int((new.offset >= was.end).sum()), elapsed_ms, findings)

    known = np.isin(new.key, old.key, assume_unique=True)
    appeared = ~known & (new.offset < was.end) & (new.offset >= was.log_start)
    findings.explain(KIND, "new since the baseline", int((~known & ~appeared).sum()))
    for number in np.flatnonzero(appeared)[:SHOWN]:
        side = {"offset": int(new.offset[number]), "hash": _hex(new.hash[number])}
        findings.differ(KIND, _key(was, new.key[number]), "newest", None, side, "key_appeared")
    findings.count(KIND, "right_only", int(appeared.sum()))
    return findings


def _vanished(was, now, old, missing, kept, elapsed_ms, findings):
    """Distinguish deleted keys from lost ones. `kept`: records above the baseline's end."""
    number, room = int(missing.sum()), max(0, now.end - was.end - kept)
    if not number:
        return
    where, retained = f"{was.topic}-{was.partition}", (was.delete_retention_ms, now.delete_retention_ms)
    if number > room or elapsed_ms < min(retained):
        _differ("key_vanished", missing, was, old, None, None, findings, "left_only")
        return
    why = (
        f"{where}: {number} of {len(old.key)} keys disappeared and have no tombstone. It can have been cleaned: "
        f"delete.retention.ms was {retained[0]} and is {retained[1]}, and {room} offsets above the baseline's end "
        f"{was.end} are not the newest of a key. But superseded records and transaction markers are among them. If "
        "clients delete keys of this topic, exclude it (quorumshift_fingerprint_exclude) and run the gate again"
    )
    findings.skip(KIND, [*was.tp], why, number)


def _differ(rule, chosen, was, old, offset, content, findings, outcome="differ"):
    numbers = np.flatnonzero(chosen)
    findings.count(KIND, outcome, len(numbers))
    for number in numbers[:SHOWN]:
        before = {"offset": int(old.offset[number]), "hash": _hex(old.hash[number])}
        after = None if offset is None else {"offset": int(offset[number]), "hash": _hex(content[number])}
        findings.differ(KIND, _key(was, old.key[number]), "newest", before, after, rule)
    if len(numbers) > SHOWN:
        findings.differ(KIND, [was.topic, was.partition], "newest", {"further keys": len(numbers) - SHOWN}, None, rule)


def _key(was: PartitionState, key: np.int64) -> list:
    return [was.topic, was.partition, _hex(key)]


def _hex(value: np.int64) -> str:
    return f"{int(value) & 0xFFFFFFFFFFFFFFFF:016x}"


def _as_chunk(was: PartitionState, old: Newest, number: int) -> Chunk:
    """Return a record as a chunk, for retention.explains."""
    offset, timestamp = int(old.offset[number]), int(old.timestamp[number])
    return Chunk(
        was.topic, was.partition, offset, offset + 1, 1, 1, 0, 1, offset, offset, timestamp, timestamp, 0, 0, ""
    )
