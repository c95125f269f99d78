# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares everything that two runs read: the one place where partitions, keys and groups come together. Pure."""

from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Sequence

import pyarrow as pa

from quorumshift_spark.fingerprint import chunks, groups, keys
from quorumshift_spark.fingerprint.findings import Findings
from quorumshift_spark.fingerprint.groups import Group
from quorumshift_spark.fingerprint.plan import Chunk, PartitionState, TopicPartition, by_partition

LOG = "log"
"""The kind of what is said of a partition as a whole: that it exists, its id, where it begins and ends."""
NEW, FIRST = "new since the baseline", "no baseline: this run makes the first"


class Fingerprint(NamedTuple):
    """What one run read, and the next one compares with.

    `taken_ms`: when its reading began, epoch ms. `chunk_offsets`: the size of chunks. `isolation`: how partitions that
    are not compacted were read. `chunks`, `keys` (a table of keys.SCHEMA): the content of partitions that are not, and
    that are, compacted.
    """

    cluster_id: str
    taken_ms: int
    chunk_offsets: int
    isolation: str
    partitions: Mapping[TopicPartition, PartitionState]
    chunks: Sequence[Chunk]
    keys: pa.Table
    groups: Mapping[str, Group]


def compare(
    was: Fingerprint | None,
    now: Fingerprint,
    log_ends: Mapping[TopicPartition, int],
    offsets_retention_ms: int,
    purged_topics: Sequence[str] = (),
) -> Findings:
    """Compare a fingerprint with the baseline's.

    :arg was: None for the first run, where everything is new.
    :arg now: its chunks cut at the ends of the baseline's partitions (plan.ranges).
    :arg log_ends: high watermarks of every partition of the cluster, read after the groups.
    """
    found, new = Findings(), NEW if was else FIRST
    old_chunks: Mapping[TopicPartition, List[Chunk]] = by_partition(was.chunks) if was else {}
    old_keys = keys.by_partition(was.keys) if was else {}
    new_chunks, new_keys = by_partition(now.chunks), keys.by_partition(now.keys)
    elapsed_ms = now.taken_ms - was.taken_ms if was else 0
    old_partitions: Mapping[TopicPartition, PartitionState] = was.partitions if was else {}
    for place, before in sorted(old_partitions.items()):
        after = now.partitions.get(place)
        kind = keys.KIND if before.compacted else chunks.KIND
        number = len(old_keys[place].key) if place in old_keys else len(old_chunks.get(place, ()))
        reported = chunks.compare_state(before, after, kind, number)
        if reported is None and before.compacted:
            reported = keys.compare(
                before,
                old_keys.get(place),
                after,
                new_keys.get(place),
                now.taken_ms,
                elapsed_ms,
                tuple(purged_topics),
            )
        elif reported is None:
            reported = chunks.compare(
                before, old_chunks.get(place, ()), after, new_chunks.get(place, ()), now.taken_ms, purged_topics
            )
        found.add(reported)
        differs = any(one.kind == LOG for one in reported.differences)
        found.count(LOG, "left_only" if after is None else "differ" if differs else "match")
    fresh_logs = [place for place in now.partitions if place not in old_partitions]
    found.explain(LOG, new, len(fresh_logs))
    for place, parts in new_chunks.items():
        before = old_partitions.get(place)
        fresh = sum(1 for chunk in parts if before is None or before.compacted or chunk.begin >= before.end)
        found.explain(chunks.KIND, new, fresh)
    for place, newest in new_keys.items():
        if place not in old_partitions:
            found.explain(keys.KIND, new, len(newest.key))
    found.add(groups.compare(was.groups if was else {}, now.groups, log_ends, elapsed_ms, offsets_retention_ms))
    return found


def verdict(found: Findings) -> str:
    """`differ`, `incomplete` where something could not be compared, else `pass`."""
    if found.differences:
        return "differ"
    return "incomplete" if found.skipped else "pass"


def states(partitions: Sequence[PartitionState]) -> Dict[TopicPartition, PartitionState]:
    """Partitions by their place."""
    return {one.place: one for one in partitions}


def sizes(one: Fingerprint) -> Dict[str, int]:
    """How much a fingerprint holds, by kind."""
    offsets = sum(len(group.offsets) for group in one.groups.values())
    return {LOG: len(one.partitions), chunks.KIND: len(one.chunks), keys.KIND: one.keys.num_rows, groups.KIND: offsets}
