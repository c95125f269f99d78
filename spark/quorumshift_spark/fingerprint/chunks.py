# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the chunks of a partition with those of the baseline. Pure."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence

from quorumshift_spark.fingerprint import retention
from quorumshift_spark.fingerprint.findings import Findings
from quorumshift_spark.fingerprint.plan import Chunk, PartitionState

KIND = "chunk"


def compare_state(was: PartitionState, now: PartitionState | None, kind: str, number: int) -> Findings | None:
    """Return the findings for a partition whose content cannot be compared; None if it can.

    :arg kind: of the partition's entries in the baseline; `number`: how many there are.
    """
    findings = Findings()
    key = [was.topic, was.partition]
    if now is None:
        findings.count(kind, "left_only", number)
        findings.differ("log", key, "topic", {"id": was.topic_id}, None, "topic_missing")
    elif was.topic_id != now.topic_id:
        findings.count(kind, "differ", number)
        findings.differ("log", key, "topic", {"id": was.topic_id}, {"id": now.topic_id}, "topic_recreated")
    elif now.compacted and not was.compacted:
        why = (
            f"{was.topic}-{was.partition}: cleanup.policy changed to compact after the baseline, which counted every "
            "record. Make a new baseline while the old records are known to be complete"
        )
        findings.skip(kind, key, why, number)
    else:
        return None
    return findings


def compare_ends(was: PartitionState, now: PartitionState) -> Findings:
    """Return a difference if the log ends before the baseline's end."""
    findings = Findings()
    if now.end < was.end:
        findings.differ("log", [was.topic, was.partition], "end", was.end, now.end, "truncated")
    return findings


def compare(
    was: PartitionState,
    baseline: Sequence[Chunk],
    now: PartitionState,
    current: Sequence[Chunk],
    now_ms: int,
    purged_topics: Sequence[str] = (),
) -> Findings:
    """Compare the content of a partition that is not compacted.

    :arg now: with `log_start` read after the chunks: a chunk that retention may have cut during the scan counts as
        removed.
    :arg current: chunks below the baseline's end, read now with the baseline's chunk size.
    :arg now_ms: when `now` was read, epoch milliseconds.
    """
    findings = compare_ends(was, now)
    removed = [chunk for chunk in baseline if chunk.begin < now.log_start]
    explained = "within the log" if not removed else retention.explains(now, removed, now_ms, purged_topics)
    if explained is None:
        findings.differ(
            "log",
            [was.topic, was.partition],
            "log_start",
            was.log_start,
            {"log_start": now.log_start, **_policy(now)},
            "log_start_moved",
        )
    read: Dict[int, Chunk] = {chunk.begin: chunk for chunk in current}
    for chunk in baseline:
        if chunk.end <= now.log_start:
            _removed(findings, "below the log start", explained)
        elif chunk.end > now.end:
            findings.count(KIND, "left_only")  # reported once, as truncated
        elif chunk.begin < now.log_start:
            _compare_cut(chunk, now, current, explained, findings)
        else:
            _compare_complete(chunk, read.get(chunk.begin), findings)
    return findings


def _compare_complete(was: Chunk, now: Chunk | None, findings: Findings) -> None:
    if now is not None and was.content == now.content and was.end == now.end:
        findings.count(KIND, "match")
        return
    findings.count(KIND, "differ")
    counted = 0 if now is None else now.count
    if counted < was.count:
        rule = "records_lost"
    else:
        rule = "records_added" if counted > was.count else "records_changed"
    _differ(was, now, rule, findings)


def _compare_cut(
    was: Chunk, now: PartitionState, current: Sequence[Chunk], why: str | None, findings: Findings
) -> None:
    """Compare a chunk without its removed beginning: not its sum, but its count and offsets bound the rest."""
    rest = [chunk for chunk in current if chunk.begin >= now.log_start and chunk.end <= was.end]
    rest = [chunk for chunk in rest if chunk.begin < was.end]
    if not rest or rest[0].begin != now.log_start or rest[-1].end != was.end:
        # the log start moved during the scan, or the rest was read as part of a larger chunk
        _removed(findings, "cut by the log start, the rest not compared", why)
        return
    count, least = sum(chunk.count for chunk in rest), was.count - (now.log_start - was.begin)
    newest = max((chunk.max_offset for chunk in rest if chunk.max_offset is not None), default=None)
    expected = was.max_offset if was.max_offset is not None and was.max_offset >= now.log_start else None
    if least <= count <= was.count and newest == expected:
        _removed(findings, "cut by the log start, the rest counted", why)
        return
    findings.count(KIND, "differ")
    _differ(was, rest[0], "records_lost" if count < least or newest != expected else "records_added", findings)


def _removed(findings: Findings, what: str, why: str | None) -> None:
    if why:
        findings.explain(KIND, f"{what} ({why})")
    else:
        findings.count(KIND, "left_only")  # reported once, as log_start_moved


def _differ(was: Chunk, now: Chunk | None, rule: str, findings: Findings) -> None:
    key: List[Any] = [was.topic, was.partition, was.begin, was.end]
    findings.differ(KIND, key, "records", was.content, None if now is None else now.content, rule)


def _policy(now: PartitionState) -> Dict[str, Any]:
    policies = [name for name, on in (("compact", now.compacted), ("delete", now.deletes)) if on]
    return {
        "cleanup.policy": ",".join(policies),
        "retention.ms": now.retention_ms,
        "retention.bytes": now.retention_bytes,
    }
