# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose replicas stand in a broker's log directories, while it runs. Standard library only.

One small file is read of each partition; what is told grows with topics, a number a partition aside.
"""

from __future__ import annotations

import os
import time
from collections import Counter

from ..formats import replica_log
from .node import METADATA_LOG

WRITTEN_S = 10.0  # a new partition has its directory a moment before its partition.metadata, longer on a busy broker
_PAUSE_S = 0.1


def gather(log_dirs: list[str]) -> dict:
    """Return {topics: {topic: [topic id, sorted partitions]}, others: [{path, topic, partition, id, error}], twice:
    [topic-partition]}, JSON-able. `others`: directories that do not have the id which most of their topic's have,
    `id` None where they have none, `error` where it could not be read; `twice`: in more than one log directory.

    A log directory that cannot be listed is left out: node.facts tells of it.
    """
    found = {}
    for log_dir in log_dirs:
        for name in _names(log_dir):
            partition = replica_log.partition_of(name)
            if partition and name != METADATA_LOG:
                path = os.path.join(log_dir, name)
                found[path] = (*partition, *_topic_id(path))
    until = time.monotonic() + WRITTEN_S
    silent = [path for path, (*_partition, topic_id, _error) in found.items() if topic_id is None]
    while silent and time.monotonic() < until:
        time.sleep(_PAUSE_S)
        for path in silent:
            found[path] = (*found[path][:2], *_topic_id(path))
        silent = [path for path in silent if found[path][2] is None and os.path.isdir(path)]
    return _compact({path: one for path, one in found.items() if one[2] or os.path.isdir(path)})


def _names(log_dir: str) -> list[str]:
    try:
        return sorted(os.listdir(log_dir))
    except OSError:
        return []


def _topic_id(path: str) -> tuple[str | None, str | None]:
    """Return (topic id, error)."""
    try:
        return replica_log.topic_id(path), None
    except (OSError, replica_log.ReplicaLogError) as error:
        return None, str(error)


def _compact(found: dict) -> dict:
    ids: dict[str, Counter] = {}
    for topic, _partition, topic_id, _error in found.values():
        ids.setdefault(topic, Counter())[topic_id] += topic_id is not None
    most = {topic: max(counts, key=lambda one: (counts[one], one or "")) for topic, counts in ids.items()}
    topics: dict[str, list] = {}
    others = []
    for path, (topic, partition, topic_id, error) in sorted(found.items()):
        if topic_id and topic_id == most[topic]:
            topics.setdefault(topic, [topic_id, []])[1].append(partition)
        else:
            others.append({"path": path, "topic": topic, "partition": partition, "id": topic_id, "error": error})
    several = Counter((topic, partition) for topic, partition, _topic_id, _error in found.values())
    return {
        "topics": {topic: [topic_id, sorted(numbers)] for topic, (topic_id, numbers) in topics.items()},
        "others": others,
        "twice": sorted(f"{topic}-{partition}" for (topic, partition), count in several.items() if count > 1),
    }
