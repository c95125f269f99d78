# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client changes metadata around the initial copy: the comparison explains it, and the run goes on."""

from __future__ import annotations

from confluent_kafka.admin import NewTopic

from tools.e2e.testbed import meanwhile, wait_for

COUNTED = "Save the count of the metadata"
TOPIC, PARTITIONS = "short-lived", 2


def test_a_topic_that_exists_only_during_the_copy_is_explained(fresh):
    """It is created after the count before the copy, and deleted before the count after it."""
    admin, created = fresh.admin(), []

    def create_after_the_first_count(line):
        if COUNTED in line and not created:
            admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result(30)
            created.append(TOPIC)
        return False

    def delete_after_the_copy(over):
        wait_for(lambda: over.is_set() or _copied(fresh), 600, "the initial copy")
        if not over.is_set():
            admin.delete_topics([TOPIC])[TOPIC].result(30)

    with meanwhile(delete_after_the_copy):
        ran = fresh.play(
            extra={"quorumshift_soak": "0s", "quorumshift_verify": False}, kill_when=create_after_the_first_count
        )
    assert created and ran.code == 0 and ": dual_write" in ran.text, ran.text
    assert "1 REMOVE_TOPIC_RECORD followed the copy" in ran.text, ran.text
    assert f"PARTITION_RECORD: {PARTITIONS + 658} copied, 658 in ZooKeeper before and after" in ran.text, ran.text


def _copied(testbed):
    with testbed.zookeeper() as client:
        return client.exists("/migration") and b'"kraft_metadata_offset":-1' not in client.get("/migration")[0]
