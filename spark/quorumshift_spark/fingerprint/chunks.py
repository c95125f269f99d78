# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the chunks of a partition that is not compacted with those of the baseline. Pure."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

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


def compare_log(was: PartitionState, now: PartitionState) -> Findings:
    """Return differences if the log ends before the baseline's end, or if its leader epoch decreased."""
    findings, key = Findings(), [was.topic, was.partition]
    if now.end < was.end:
        findings.differ("log", key, "end", was.end, now.end, "truncated")
    if now.leader_epoch < was.leader_epoch:
        findings.differ("log", key, "leader_epoch", was.leader_epoch, now.leader_epoch, "epoch_regressed")
    return findings


def compare(
    was: PartitionState,
    baseline: Sequence[Chunk],
    now: PartitionState,
    current: Sequence[Chunk],
    now_ms: int,
    purged_topics: Sequence[str] = (),
    unread: str | None = None,
    size: int | None = None,
    sampled: bool = False,
) -> Findings:
    """Compare the content of a partition that is not compacted.

    :arg now: with `log_start` read after the chunks: a chunk that retention may have cut during the scan counts as
        removed.
    :arg current: chunks that were read now, those of the baseline with the same bounds.
    :arg now_ms: when `now` was read, epoch milliseconds.
    :arg unread: why the partition could not be read to its end.
    :arg size: of the log in bytes, if only a sample of it was read.
    :arg sampled: whether only a sample of what is above the baseline's end was read.
    """
    findings, key = compare_log(was, now), [was.topic, was.partition]
    removed = [chunk for chunk in baseline if chunk.begin < now.log_start]
    kept = sum(chunk.bytes for chunk in current if chunk.end > now.log_start) if size is None else size
    reason = retention.explains(was, now, removed, kept, now_ms, purged_topics) if removed else None
    if removed and reason is None:
        sides = {"log_start": was.log_start, **was.policy}, {"log_start": now.log_start, "bytes": kept, **now.policy}
        findings.differ("log", key, "log_start", *sides, "log_start_moved")
    elif reason and not reason.certain:
        findings.skip(KIND, key, retention.undecided(was, now, reason), 0)
    read: Dict[Tuple[int, int], Chunk] = {(chunk.begin, chunk.end): chunk for chunk in current}
    for chunk in baseline:
        if chunk.end <= now.log_start:
            _removed(findings, "below the log start", reason)
        elif chunk.end > now.end:
            findings.count(KIND, "left_only")  # reported once, as truncated
        elif chunk.begin < now.log_start:
            _compare_cut(chunk, now, current, reason, findings)
        elif (chunk.begin, chunk.end) in read:
            _compare_complete(chunk, read[chunk.begin, chunk.end], findings)
        else:
            findings.count(KIND, "skipped")
            unread = unread or f"its chunk from offset {chunk.begin} is missing"
    if unread:
        findings.skip(KIND, key, f"{was.topic}-{was.partition} could not be read to its end: {unread}", 0)
    added = [chunk for chunk in current if chunk.begin >= was.end]
    findings.explain(KIND, "new since the baseline", len(added))
    if not unread:
        _check_epochs(was, baseline, added, findings)
    if not unread and not sampled:
        _check_added(was, now, [chunk for chunk in added if chunk.begin >= now.log_start], findings)
    return findings


def _check_epochs(was: PartitionState, baseline: Sequence[Chunk], added: Sequence[Chunk], findings: Findings) -> None:
    """Check that no batch above the baseline's end has a leader epoch older than those below."""
    epochs = [chunk.max_epoch for chunk in baseline if chunk.max_epoch is not None]
    for chunk in added if epochs else ():
        if chunk.min_epoch is not None and chunk.min_epoch < max(epochs):
            key = [was.topic, was.partition]
            findings.differ("log", key, "leader_epoch", max(epochs), chunk.min_epoch, "epoch_regressed")
            return


def _check_added(was: PartitionState, now: PartitionState, added: Sequence[Chunk], findings: Findings) -> None:
    """Check that the offsets of the batches above the baseline's end have no gap."""
    key, filled = [was.topic, was.partition], [chunk for chunk in added if chunk.batches]
    if any(chunk.min_epoch is None for chunk in filled):
        return  # the first offset of a compressed batch of an old format is not known
    first, last = filled[0].min_offset if filled else None, filled[-1].max_offset if filled else None
    begins = first is None or added[0].begin > was.end or first <= was.end
    if added and not (begins and last == now.end - 1 and sum(chunk.covered for chunk in filled) == last - first + 1):
        seen = {"offsets": sum(chunk.covered for chunk in filled), "first": first, "last": last}
        findings.differ("log", key, "offsets", was.end, {**seen, "end": now.end}, "offset_gap")


def _compare_complete(was: Chunk, now: Chunk, findings: Findings) -> None:
    if was.content == now.content:
        findings.count(KIND, "match")
        return
    findings.count(KIND, "differ")
    if now.records < was.records:
        rule = "records_lost"
    else:
        rule = "records_added" if now.records > was.records else "records_changed"
    _differ(was, now, rule, findings)


def _compare_cut(
    was: Chunk, now: PartitionState, current: Sequence[Chunk], why: retention.Reason | None, findings: Findings
) -> None:
    """Compare a chunk without its removed beginning: not its hash, but its count and offsets bound the rest."""
    rest = next((chunk for chunk in current if chunk.begin == now.log_start and chunk.end == was.end), None)
    if rest is None:  # the log start moved during the scan
        _removed(findings, "cut by the log start, the rest not compared", why)
        return
    least = was.records - (now.log_start - was.begin)
    expected = was.max_offset if was.max_offset is not None and was.max_offset >= now.log_start else None
    if least <= rest.records <= was.records and rest.max_offset == expected:
        _removed(findings, "cut by the log start, the rest counted", why)
        return
    findings.count(KIND, "differ")
    lost = rest.records < least or rest.max_offset != expected
    _differ(was, rest, "records_lost" if lost else "records_added", findings)


def _removed(findings: Findings, what: str, why: retention.Reason | None) -> None:
    if why and why.certain:
        findings.explain(KIND, f"{what} ({why.text})")
    else:
        findings.count(KIND, "skipped" if why else "left_only")  # reported once for the partition


def _differ(was: Chunk, now: Chunk, rule: str, findings: Findings) -> None:
    key: List[Any] = [was.topic, was.partition, was.begin, was.end]
    findings.differ(KIND, key, "records", was.content, now.content, rule)
