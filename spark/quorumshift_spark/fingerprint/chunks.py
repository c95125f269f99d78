# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares a partition's chunks of offsets with those of the baseline. Pure."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence

from quorumshift_spark.fingerprint import retention
from quorumshift_spark.fingerprint.findings import Findings
from quorumshift_spark.fingerprint.plan import Chunk, PartitionState

KIND = "chunk"


def compare_state(was: PartitionState, now: PartitionState | None, kind: str, number: int) -> Findings | None:
    """What can be said of a partition without its content: None where the content must be compared.

    `number` of things of `kind` that the baseline has of it.
    """
    found = Findings()
    place = [was.topic, was.partition]
    if now is None:
        found.count(kind, "left_only", number)
        found.differ("log", place, "topic", {"id": was.topic_id}, None, "topic_missing")
    elif was.topic_id != now.topic_id:
        found.count(kind, "differ", number)
        found.differ("log", place, "topic", {"id": was.topic_id}, {"id": now.topic_id}, "topic_recreated")
    elif now.compacted and not was.compacted:
        why = (
            f"{was.topic}-{was.partition}: cleanup.policy became compact after the baseline, which counted every "
            "record; make a new baseline for it while the old records are known to be whole"
        )
        found.skip(kind, place, why, number)
    else:
        return None
    return found


def compare_ends(was: PartitionState, now: PartitionState) -> Findings:
    """Whether the log still reaches to where the baseline ended."""
    found = Findings()
    if now.end < was.end:
        found.differ("log", [was.topic, was.partition], "end", was.end, now.end, "truncated")
    return found


def compare(
    was: PartitionState,
    baseline: Sequence[Chunk],
    now: PartitionState,
    current: Sequence[Chunk],
    now_ms: int,
    purged_topics: Sequence[str] = (),
) -> Findings:
    """Compare the content of a partition that is not compacted.

    :arg current: chunks below the baseline's end, as read now with the baseline's size; `now.log_start` as it was
        after that reading (a chunk from which retention may have taken while it was read counts as removed).
    :arg now_ms: when `now` was read, epoch milliseconds.
    """
    found = compare_ends(was, now)
    removed = [chunk for chunk in baseline if chunk.begin < now.log_start]
    explained = "within the log" if not removed else retention.explains(now, removed, now_ms, purged_topics)
    if explained is None:
        found.differ(
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
            _removed(found, "below the log start", explained)
        elif chunk.end > now.end:
            found.count(KIND, "left_only")  # told once, as truncated
        elif chunk.begin < now.log_start:
            _compare_cut(chunk, now, current, explained, found)
        else:
            _compare_whole(chunk, read.get(chunk.begin), found)
    return found


def _compare_whole(was: Chunk, now: Chunk | None, found: Findings) -> None:
    if now is not None and was.content == now.content and was.end == now.end:
        found.count(KIND, "match")
        return
    found.count(KIND, "differ")
    counted = 0 if now is None else now.count
    if counted < was.count:
        rule = "records_lost"
    else:
        rule = "records_added" if counted > was.count else "records_changed"
    _differ(was, now, rule, found)


def _compare_cut(was: Chunk, now: PartitionState, current: Sequence[Chunk], why: str | None, found: Findings) -> None:
    """A chunk from which the log start took a part: the baseline's sum does not tell that part's content, but its
    numbers bound what the rest must hold."""
    rest = [chunk for chunk in current if chunk.begin >= now.log_start and chunk.end <= was.end]
    rest = [chunk for chunk in rest if chunk.begin < was.end]
    if not rest or rest[0].begin != now.log_start or rest[-1].end != was.end:
        # the start moved while the chunk was read, or the rest was read as part of a larger chunk
        _removed(found, "cut by the log start, its rest unread", why)
        return
    count, least = sum(chunk.count for chunk in rest), was.count - (now.log_start - was.begin)
    newest = max((chunk.max_offset for chunk in rest if chunk.max_offset is not None), default=None)
    expected = was.max_offset if was.max_offset is not None and was.max_offset >= now.log_start else None
    if least <= count <= was.count and newest == expected:
        _removed(found, "cut by the log start, its rest counted", why)
        return
    found.count(KIND, "differ")
    _differ(was, rest[0], "records_lost" if count < least or newest != expected else "records_added", found)


def _removed(found: Findings, what: str, why: str | None) -> None:
    if why:
        found.explain(KIND, f"{what} ({why})")
    else:
        found.count(KIND, "left_only")  # told once, as log_start_moved


def _differ(was: Chunk, now: Chunk | None, rule: str, found: Findings) -> None:
    key: List[Any] = [was.topic, was.partition, was.begin, was.end]
    found.differ(KIND, key, "records", was.content, None if now is None else now.content, rule)


def _policy(now: PartitionState) -> Dict[str, Any]:
    policies = [name for name, on in (("compact", now.compacted), ("delete", now.deletes)) if on]
    return {
        "cleanup.policy": ",".join(policies),
        "retention.ms": now.retention_ms,
        "retention.bytes": now.retention_bytes,
    }
