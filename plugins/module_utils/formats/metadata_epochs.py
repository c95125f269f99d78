# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compute the partition epoch of each partition from the metadata log (PartitionRegistration.partitionEpoch)."""

from __future__ import annotations

from typing import Any, Dict, Iterable

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata_log import Record

TYPES = ("TOPIC_RECORD", "REMOVE_TOPIC_RECORD", "PARTITION_RECORD", "PARTITION_CHANGE_RECORD")


def partition_epochs(records: Iterable[Record]) -> Dict[str, Dict[str, Any]]:
    """Return {topic: {"topic_id", "epochs": {partition: partition epoch}}} after these records.

    Every change adds one (PartitionRegistration.merge).
    """
    topics: Dict[str, Dict[str, Any]] = {}
    for record in records:
        fields = record.fields
        if record.type == "TOPIC_RECORD":
            topics[fields["topicId"]] = {"name": fields["name"], "epochs": {}}
        elif record.type == "REMOVE_TOPIC_RECORD":
            topics.pop(fields["topicId"], None)
        elif record.type == "PARTITION_RECORD":
            topics[fields["topicId"]]["epochs"][str(fields["partitionId"])] = fields["partitionEpoch"]
        else:
            topics[fields["topicId"]]["epochs"][str(fields["partitionId"])] += 1
    return {topic["name"]: {"topic_id": topic_id, "epochs": topic["epochs"]} for topic_id, topic in topics.items()}
