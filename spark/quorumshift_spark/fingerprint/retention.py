# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides whether Kafka's retention explains a log start that moved. Pure.

Kafka deletes segments from the beginning of a log: those whose newest timestamp is older than retention.ms, and more
until the log is smaller than retention.bytes (kafka.log.UnifiedLog.deleteOldSegments). DeleteRecords moves the start to
any offset that a client requests.
"""

from __future__ import annotations

import fnmatch
from typing import Iterable, Sequence

from quorumshift_spark.fingerprint.plan import Chunk, PartitionState

_SLACK_MS = 60_000  # clock skew between brokers and this host


def explains(
    now: PartitionState, removed: Iterable[Chunk], now_ms: int, purged_topics: Sequence[str] = ()
) -> str | None:
    """Return why the log start moved past these chunks of the baseline: `retention.ms`, `retention.bytes` or
    `purged_topics`; None for no such reason.

    The timestamps of the records decide, as in Kafka; for a partly removed chunk, the oldest one. The former size of
    the log is unknown, so a set retention.bytes always counts as the reason.
    """
    if any(fnmatch.fnmatchcase(now.topic, pattern) for pattern in purged_topics):
        return "purged_topics"
    if not now.deletes:
        return None
    if now.retention_bytes >= 0:
        return "retention.bytes"
    if now.retention_ms < 0:
        return None
    limit = now_ms - now.retention_ms + _SLACK_MS
    for chunk in removed:
        removed_completely = chunk.end <= now.log_start
        newest = chunk.max_timestamp if removed_completely else chunk.min_timestamp
        if newest is not None and newest > limit:
            return None
    return "retention.ms"
