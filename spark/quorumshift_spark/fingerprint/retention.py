# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides whether Kafka's retention explains a log start that moved. Pure.

Kafka deletes segments from the beginning of a log: those whose newest timestamp is older than retention.ms, and further
ones as long as retention.bytes remain without them (kafka.log.UnifiedLog.deleteOldSegments). DeleteRecords moves the
start to any offset that a client requests.

The baseline's configs decide: a retention that was lowered since deletes records that the baseline's would have kept.
That can be intended or not, so it is no explanation but leaves the comparison undecided.
"""

from __future__ import annotations

import fnmatch
from typing import NamedTuple, Sequence

from quorumshift_spark.fingerprint.plan import Chunk, PartitionState

_SLACK_MS = 60_000  # clock skew between brokers and this host


class Reason(NamedTuple):
    """Why a log start moved. `certain`: whether this is an explanation; otherwise the comparison is undecided."""

    text: str
    certain: bool = True


def explains(
    was: PartitionState,
    now: PartitionState,
    removed: Sequence[Chunk],
    kept_bytes: int,
    now_ms: int,
    purged_topics: Sequence[str] = (),
) -> Reason | None:
    """Return the reason why the log start moved past these chunks of the baseline; None if there is none.

    :arg kept_bytes: of the log that is left.
    """
    if purged(now.topic, purged_topics):
        return Reason("quorumshift_fingerprint_purged")
    by_baseline = _by(was, now.log_start, removed, kept_bytes, now_ms)
    if by_baseline and by_baseline.certain:
        return by_baseline
    by_now = _by(now, now.log_start, removed, kept_bytes, now_ms)
    if by_now and now.policy != was.policy:
        changed = [f"{name} was {was.policy[name]} and is {now.policy[name]}" for name in was.policy]
        changed = [text for text, name in zip(changed, was.policy) if was.policy[name] != now.policy[name]]
        return Reason(f"only the configs that were changed since the baseline explain it: {', '.join(changed)}", False)
    return by_baseline or by_now


def purged(topic: str, patterns: Sequence[str]) -> bool:
    """Return whether the operator says that clients delete records of a topic."""
    return any(fnmatch.fnmatchcase(topic, pattern) for pattern in patterns)


def _by(
    policy: PartitionState, log_start: int, removed: Sequence[Chunk], kept_bytes: int, now_ms: int
) -> Reason | None:
    """Return the reason that these configs give.

    Kafka deletes a segment once its newest timestamp is too old: the newest timestamp of all that was removed decides.
    """
    if not policy.deletes:
        return None
    limit = now_ms - policy.retention_ms + _SLACK_MS
    expired = {_expired(chunk, log_start, limit) for chunk in removed} if policy.retention_ms >= 0 else {False}
    if expired <= {True}:
        return Reason(f"retention.ms {policy.retention_ms}")
    if 0 <= policy.retention_bytes <= kept_bytes:
        return Reason(f"retention.bytes {policy.retention_bytes}")
    if False not in expired:
        return Reason(_UNKNOWN_TIMES.format(policy.retention_ms), False)
    if policy.retention_bytes >= 0 and policy.compacted:
        return Reason("retention.bytes may explain it, but the cleaner has made the log smaller since", False)
    return None


_UNKNOWN_TIMES = (
    "retention.ms {} may explain it, but of the records right below the new log start, or of some without a timestamp, "
    "the baseline does not show whether they were old enough"
)


def _expired(chunk: Chunk, log_start: int, limit: int) -> bool | None:
    """Return whether all that was removed of a chunk is too old to be kept; None if the baseline does not show it."""
    if not chunk.batches:
        return True
    known = [*chunk.times, (chunk.end, -1 if chunk.max_timestamp is None else chunk.max_timestamp)]
    least = max((point for point in known if point[0] <= log_start), default=None)  # of what was removed at least
    most = min((point for point in known if point[0] >= log_start), default=known[-1])  # and at most
    if most[1] >= 0 and most[1] <= limit:
        return True
    if least is not None and least[1] > limit:
        return False
    return None


def undecided(was: PartitionState, now: PartitionState, reason: Reason) -> str:
    """Return what is undecided about a log start that moved, and what to do."""
    return (
        f"{was.topic}-{was.partition}: the log start moved from {was.log_start} to {now.log_start}; {reason.text}. If "
        "this deletion was intended, exclude the topic (quorumshift_fingerprint_exclude) and run the playbook again"
    )
