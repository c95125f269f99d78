# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the fingerprints of two runs: partitions, keys and groups. Pure."""

from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Sequence

import pyarrow as pa

from quorumshift_spark.fingerprint import chunks, groups, keys
from quorumshift_spark.fingerprint.findings import Findings
from quorumshift_spark.fingerprint.groups import Group
from quorumshift_spark.fingerprint.plan import Chunk, PartitionState, TopicPartition, by_partition

LOG = "log"
"""The kind for a partition: its existence, its topic id, its first and last offset."""
NEW, FIRST = "new since the baseline", "no baseline yet: this run creates it"


class Fingerprint(NamedTuple):
    """The fingerprint of one run, the baseline of the next one.

    `taken_ms`: when reading began, epoch ms. `chunk_offsets`: the size of chunks. `isolation`: how partitions that are
    not compacted were read. `chunks`: the content of partitions that are not compacted; `keys` (a table of
    keys.SCHEMA): of compacted ones.
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
    """Compare a fingerprint with the baseline.

    :arg was: the baseline; None for the first run, where everything is new.
    :arg now: its chunks are cut at the ends of the baseline's partitions (plan.ranges).
    :arg log_ends: high watermarks of all partitions of the cluster, read after the groups.
    """
    findings, new = Findings(), NEW if was else FIRST
    old_chunks: Mapping[TopicPartition, List[Chunk]] = by_partition(was.chunks) if was else {}
    old_keys = keys.by_partition(was.keys) if was else {}
    new_chunks, new_keys = by_partition(now.chunks), keys.by_partition(now.keys)
    elapsed_ms = now.taken_ms - was.taken_ms if was else 0
    old_partitions: Mapping[TopicPartition, PartitionState] = was.partitions if was else {}
    for tp, before in sorted(old_partitions.items()):
        after = now.partitions.get(tp)
        kind = keys.KIND if before.compacted else chunks.KIND
        number = len(old_keys[tp].key) if tp in old_keys else len(old_chunks.get(tp, ()))
        partition_findings = chunks.compare_state(before, after, kind, number)
        if partition_findings is None and before.compacted:
            partition_findings = keys.compare(
                before,
                old_keys.get(tp),
                after,
                new_keys.get(tp),
                now.taken_ms,
                elapsed_ms,
                tuple(purged_topics),
            )
        elif partition_findings is None:
            partition_findings = chunks.compare(
                before, old_chunks.get(tp, ()), after, new_chunks.get(tp, ()), now.taken_ms, purged_topics
            )
        findings.add(partition_findings)
        differs = any(difference.kind == LOG for difference in partition_findings.differences)
        findings.count(LOG, "left_only" if after is None else "differ" if differs else "match")
    new_partitions = [tp for tp in now.partitions if tp not in old_partitions]
    findings.explain(LOG, new, len(new_partitions))
    for tp, parts in new_chunks.items():
        before = old_partitions.get(tp)
        added = sum(1 for chunk in parts if before is None or before.compacted or chunk.begin >= before.end)
        findings.explain(chunks.KIND, new, added)
    for tp, newest in new_keys.items():
        if tp not in old_partitions:
            findings.explain(keys.KIND, new, len(newest.key))
    findings.add(groups.compare(was.groups if was else {}, now.groups, log_ends, elapsed_ms, offsets_retention_ms))
    return findings


def verdict(findings: Findings) -> str:
    """Return `differ`, `incomplete` if something could not be compared, else `pass`."""
    if findings.differences:
        return "differ"
    return "incomplete" if findings.skipped else "pass"


def states(partitions: Sequence[PartitionState]) -> Dict[TopicPartition, PartitionState]:
    """Return the states by topic and partition."""
    return {state.tp: state for state in partitions}


def sizes(of: Fingerprint) -> Dict[str, int]:
    """Return how many entries a fingerprint has, by kind."""
    offsets = sum(len(group.offsets) for group in of.groups.values())
    return {LOG: len(of.partitions), chunks.KIND: len(of.chunks), keys.KIND: of.keys.num_rows, groups.KIND: offsets}
