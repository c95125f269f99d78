# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether Kafka's retention explains that a log begins later than it did. Pure.

Kafka deletes whole segments from the beginning, those whose newest timestamp is older than retention.ms, or while the
log stays larger than retention.bytes (kafka.log.UnifiedLog.deleteOldSegments); DeleteRecords moves the start to any
offset that a client names.
"""

from __future__ import annotations

import fnmatch
from typing import Iterable, Sequence

from quorumshift_spark.fingerprint.plan import Chunk, PartitionState

_SLACK_MS = 60_000  # clocks of brokers and of this host may differ


def explains(
    now: PartitionState, removed: Iterable[Chunk], now_ms: int, purged_topics: Sequence[str] = ()
) -> str | None:
    """Why the log's start moved past these chunks of the baseline: `retention.ms`, `retention.bytes`,
    `purged_topics`; None where nothing of these can be the reason.

    Records are old enough by their own timestamps, as Kafka judges; a chunk that was removed in part is judged by its
    oldest record. How large the log was is not known any more, so retention.bytes is taken at its word.
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
        whole = chunk.end <= now.log_start
        newest = chunk.max_timestamp if whole else chunk.min_timestamp
        if newest is not None and newest > limit:
            return None
    return "retention.ms"
