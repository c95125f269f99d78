# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the topic ids of the partitions in a running broker's log directories. Standard library only.

It reads one small file a partition. The result grows with the topics, plus one number a partition.
"""

from __future__ import annotations

import os
import time
from collections import Counter

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.records import replica_log
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node.node import METADATA_LOG

WRITTEN_S = 10.0  # a new partition's directory exists before its partition.metadata, longest on a busy broker
_PAUSE_S = 0.1


def collect(log_dirs: list[str]) -> dict:
    """Return {topics: {topic: [topic id, sorted partitions]}, others: [{path, topic, partition, id, error}], twice:
    [topic-partition]}, JSON-able. `others`: directories whose id differs from that of most directories of the topic,
    `id` None if there is none, `error` if it could not be read; `twice`: partitions in more than one log directory.

    A log directory that cannot be listed is left out: node.collect reports it.
    """
    found = {}
    for log_dir in log_dirs:
        for name in _names(log_dir):
            partition = replica_log.partition_of(name)
            if partition and name != METADATA_LOG:
                path = os.path.join(log_dir, name)
                found[path] = (*partition, *_topic_id(path))
    until = time.monotonic() + WRITTEN_S
    without_id = [path for path, (*_partition, topic_id, _error) in found.items() if topic_id is None]
    while without_id and time.monotonic() < until:
        time.sleep(_PAUSE_S)
        for path in without_id:
            found[path] = (*found[path][:2], *_topic_id(path))
        without_id = [path for path in without_id if found[path][2] is None and os.path.isdir(path)]
    return _compact({path: entry for path, entry in found.items() if entry[2] or os.path.isdir(path)})


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
    most = {topic: max(counts, key=lambda each: (counts[each], each or "")) for topic, counts in ids.items()}
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
