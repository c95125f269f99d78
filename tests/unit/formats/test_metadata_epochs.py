# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Partition epochs from metadata records."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import metadata_epochs
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata_log import Record


def record(kind, **fields):
    return Record(1, 1, 0, kind, 0, fields, False)


def test_every_change_adds_one():
    records = [
        record("TOPIC_RECORD", topicId="a", name="orders"),
        record("PARTITION_RECORD", topicId="a", partitionId=0, partitionEpoch=7),
        record("PARTITION_RECORD", topicId="a", partitionId=1, partitionEpoch=0),
        record("PARTITION_CHANGE_RECORD", topicId="a", partitionId=0, isr=[1]),
        record("PARTITION_CHANGE_RECORD", topicId="a", partitionId=0, isr=[1, 2], leader=2),
    ]
    assert metadata_epochs.partition_epochs(records) == {"orders": {"topic_id": "a", "epochs": {"0": 9, "1": 0}}}


def test_recreated_topic_begins_with_its_own_epoch():
    records = [
        record("TOPIC_RECORD", topicId="a", name="orders"),
        record("PARTITION_RECORD", topicId="a", partitionId=0, partitionEpoch=7),
        record("REMOVE_TOPIC_RECORD", topicId="a"),
        record("TOPIC_RECORD", topicId="b", name="orders"),
        record("PARTITION_RECORD", topicId="b", partitionId=0, partitionEpoch=0),
    ]
    assert metadata_epochs.partition_epochs(records) == {"orders": {"topic_id": "b", "epochs": {"0": 0}}}
