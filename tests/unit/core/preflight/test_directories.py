# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""preflight: replicas and log directories on the brokers' disks."""

from __future__ import annotations

import pytest

from tests.unit.core.preflight_facts import collected, found, node, the_one

OTHER_ID = "AAAAAAAAAAAAAAAAAAAAAA"


def holding(host="b1"):
    """Return facts in which each broker holds the partitions assigned to it, and the replicas of one host."""
    facts = collected()
    for name in facts.brokers:
        held = {}
        for topic, known in facts.metadata["topics"].items():
            mine = [
                int(index)
                for index, assigned in known["partitions"].items()
                if node(facts, name)["node_id"] in assigned["replicas"]
            ]
            if mine:
                held[topic] = [known["topic_id"], sorted(mine)]
        node(facts, name)["paths"] = {
            "tried": {},
            "failed": [],
            "listen": None,
            "replicas": {"topics": held, "others": [], "twice": []},
        }
    return facts, node(facts, host)["paths"]["replicas"]


def test_no_finding_for_assigned_partitions():
    facts, held = holding()
    assert len(held["topics"]) > 10 and found(facts, "partition_metadata") == []
    assert found(facts._replace(metadata=None), "partition_metadata") == []


def severity_of(facts, check):
    (finding,) = found(facts, check)
    return finding["severity"]


def test_finding_for_a_directory_with_another_topic_id():
    facts, held = holding()
    topic = sorted(held["topics"])[0]
    first = held["topics"][topic][1].pop(0)
    held["others"] = [{"path": "/data/x", "topic": topic, "partition": first, "id": OTHER_ID, "error": None}]
    assert (
        the_one(facts, "partition_metadata")
        == f"b1 has partitions with another topic id than ZooKeeper's: {topic}-{first}"
    )
    assert severity_of(facts, "partition_metadata") == "blocks"


def test_finding_for_a_topic_with_another_id_in_all_directories():
    facts, held = holding()
    topic = sorted(held["topics"])[0]
    held["topics"][topic][0] = OTHER_ID
    assert the_one(facts, "partition_metadata").startswith(
        f"b1 has partitions with another topic id than ZooKeeper's: {topic}-"
    )


@pytest.mark.parametrize(("later_s", "expected"), [(-3600, 1), (-59, 0), (5, 0)])
def test_no_finding_for_a_topic_created_again_just_now(later_s, expected):
    facts, held = holding()
    topic = sorted(held["topics"])[0]
    held["topics"][topic][0] = OTHER_ID
    facts.metadata["topics"][topic]["created_ms"] = (node(facts, "b1")["time"] + later_s) * 1000
    assert len(found(facts, "partition_metadata")) == expected


def test_no_finding_for_a_topic_without_an_id_in_zookeeper():
    facts, held = holding()
    topic = sorted(held["topics"])[0]
    facts.metadata["topics"][topic]["topic_id"] = None
    assert found(facts, "partition_metadata") == []


def test_finding_for_directories_without_a_topic_id():
    facts, held = holding()
    held["others"] = [{"path": "/data/old-0", "topic": "old", "partition": 0, "id": None, "error": None}]
    assert the_one(facts, "partition_metadata") == "b1 has directories without partition.metadata: /data/old-0"
    assert severity_of(facts, "partition_metadata") == "blocks"
    topic = sorted(facts.metadata["topics"])[0]
    held["others"][0].update(path=f"/data/{topic}-9", topic=topic, partition=9)
    assert len(found(facts, "partition_metadata")) == 1
    facts.metadata["topics"][topic]["created_ms"] = node(facts, "b1")["time"] * 1000
    assert found(facts, "partition_metadata") == []


def test_finding_for_an_unreadable_partition_metadata():
    facts, held = holding()
    error = "/data/t-0/partition.metadata does not hold a topic id as Kafka writes it"
    held["others"] = [{"path": "/data/t-0", "topic": "t", "partition": 0, "id": None, "error": error}]
    assert (
        the_one(facts, "partition_metadata") == f"b1: {error}" and severity_of(facts, "partition_metadata") == "blocks"
    )


def test_warning_for_partitions_of_another_broker():
    facts, held = holding()
    held["topics"]["deleted.topic"] = [OTHER_ID, [0, 3]]
    topic, known = next(
        (name, assigned_topic)
        for name, assigned_topic in sorted(facts.metadata["topics"].items())
        if any(1 not in part["replicas"] for part in assigned_topic["partitions"].values())
    )
    number = next(int(index) for index, part in known["partitions"].items() if 1 not in part["replicas"])
    held["topics"].setdefault(topic, [known["topic_id"], []])[1].append(number)
    seen = the_one(facts, "partition_metadata")
    assert seen.startswith("b1 has directories of partitions that ZooKeeper does not assign to it: ")
    assert set(seen.partition(": ")[2].split(", ")) == {"deleted.topic-0", "deleted.topic-3", f"{topic}-{number}"}
    assert severity_of(facts, "partition_metadata") == "warns"


def test_finding_for_a_partition_in_two_log_directories():
    facts, held = holding("b3")
    held["twice"] = ["orders-0"]
    assert the_one(facts, "partition_metadata") == "b3 has partitions in two log directories: orders-0"


def test_warning_for_old_stray_directories():
    facts, _reported = holding()
    node(facts, "b2")["log_dirs"][0]["stray"] = ["t-0.0d2f-stray"]
    assert the_one(facts, "partition_metadata") == "b2 has old -stray directories: t-0.0d2f-stray"
    assert severity_of(facts, "partition_metadata") == "warns"


# Log directories -----------------------------------------------------------------------------------------------------


def test_finding_for_an_offline_log_directory():
    facts = collected()
    log_dir = node(facts, "b2")["log_dirs"][1]
    log_dir["in_use"] = False
    facts.running["b2"]["log.dirs"] = f"/elsewhere, {log_dir['path']}"
    assert the_one(facts, "log_directories") == f"b2: the broker has taken its log directory {log_dir['path']} offline"
    assert severity_of(facts, "log_directories") == "blocks"
    facts.running["b2"]["log.dirs"] = "/elsewhere"  # the directory was added since the start
    assert found(facts, "log_directories") == []
    log_dir["in_use"] = None
    assert found(facts, "log_directories") == []


def test_finding_for_meta_properties_of_another_broker():
    facts = collected()
    log_dir = node(facts, "b3")["log_dirs"][0]
    log_dir["meta"]["broker.id"] = "7"
    assert (
        the_one(facts, "log_directories")
        == f"b3: {log_dir['path']}/meta.properties has broker id 7, but the broker's id is 5"
    )
