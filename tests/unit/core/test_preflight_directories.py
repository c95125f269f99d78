# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hazards on the disks: whose replicas stand there, and what the broker makes of its directories."""

from __future__ import annotations

import pytest

from tests.unit.core.preflight_facts import collected, found, node, the_one

OTHER_ID = "AAAAAAAAAAAAAAAAAAAAAA"


def holding(host="b1"):
    """Facts, with each broker holding what ZooKeeper assigns to it, and what one host told, to change something in."""
    facts = collected()
    for name in facts.brokers:
        reported = {}
        for topic, known in facts.metadata["topics"].items():
            mine = [
                int(one)
                for one, assigned in known["partitions"].items()
                if node(facts, name)["node_id"] in assigned["replicas"]
            ]
            if mine:
                reported[topic] = [known["topic_id"], sorted(mine)]
        node(facts, name)["paths"] = {
            "dialled": {},
            "failed": [],
            "listen": None,
            "replicas": {"topics": reported, "others": [], "twice": []},
        }
    return facts, node(facts, host)["paths"]["replicas"]


def test_what_zookeeper_assigns():
    facts, reported = holding()
    assert len(reported["topics"]) > 10 and found(facts, "partition_metadata") == []
    assert found(facts._replace(metadata=None), "partition_metadata") == []


def severity_of(facts, check):
    (one,) = found(facts, check)
    return one["severity"]


def test_a_directory_of_another_topic_id():
    facts, reported = holding()
    topic = sorted(reported["topics"])[0]
    first = reported["topics"][topic][1].pop(0)
    reported["others"] = [{"path": "/data/x", "topic": topic, "partition": first, "id": OTHER_ID, "error": None}]
    assert (
        the_one(facts, "partition_metadata")
        == f"b1 has partitions with another topic id than ZooKeeper's: {topic}-{first}"
    )
    assert severity_of(facts, "partition_metadata") == "blocks"


def test_a_topic_that_is_of_another_id_altogether():
    facts, reported = holding()
    topic = sorted(reported["topics"])[0]
    reported["topics"][topic][0] = OTHER_ID
    assert the_one(facts, "partition_metadata").startswith(
        f"b1 has partitions with another topic id than ZooKeeper's: {topic}-"
    )


@pytest.mark.parametrize(("later_s", "expected"), [(-3600, 1), (-59, 0), (5, 0)])
def test_a_topic_that_was_made_again_meanwhile(later_s, expected):
    facts, reported = holding()
    topic = sorted(reported["topics"])[0]
    reported["topics"][topic][0] = OTHER_ID
    facts.metadata["topics"][topic]["created_ms"] = (node(facts, "b1")["time"] + later_s) * 1000
    assert len(found(facts, "partition_metadata")) == expected


def test_a_topic_without_an_id_is_told_elsewhere():
    facts, reported = holding()
    topic = sorted(reported["topics"])[0]
    facts.metadata["topics"][topic]["topic_id"] = None
    assert found(facts, "partition_metadata") == []


def test_directories_without_an_id():
    facts, reported = holding()
    reported["others"] = [{"path": "/data/gone-0", "topic": "excluded", "partition": 0, "id": None, "error": None}]
    assert the_one(facts, "partition_metadata") == "b1 has directories without partition.metadata: /data/gone-0"
    assert severity_of(facts, "partition_metadata") == "blocks"
    topic = sorted(facts.metadata["topics"])[0]
    reported["others"][0].update(path=f"/data/{topic}-9", topic=topic, partition=9)
    assert len(found(facts, "partition_metadata")) == 1
    facts.metadata["topics"][topic]["created_ms"] = node(facts, "b1")["time"] * 1000
    assert found(facts, "partition_metadata") == []


def test_a_file_that_cannot_be_read():
    facts, reported = holding()
    error = "/data/t-0/partition.metadata does not hold a topic id as Kafka writes it"
    reported["others"] = [{"path": "/data/t-0", "topic": "t", "partition": 0, "id": None, "error": error}]
    assert (
        the_one(facts, "partition_metadata") == f"b1: {error}" and severity_of(facts, "partition_metadata") == "blocks"
    )


def test_partitions_that_are_not_the_brokers():
    facts, reported = holding()
    reported["topics"]["nobody.knows"] = [OTHER_ID, [0, 3]]
    topic, known = next(
        (name, one)
        for name, one in sorted(facts.metadata["topics"].items())
        if any(1 not in part["replicas"] for part in one["partitions"].values())
    )
    number = next(int(one) for one, part in known["partitions"].items() if 1 not in part["replicas"])
    reported["topics"].setdefault(topic, [known["topic_id"], []])[1].append(number)
    seen = the_one(facts, "partition_metadata")
    assert seen.startswith("b1 has directories of partitions that ZooKeeper does not assign to it: ")
    assert set(seen.partition(": ")[2].split(", ")) == {"nobody.knows-0", "nobody.knows-3", f"{topic}-{number}"}
    assert severity_of(facts, "partition_metadata") == "warns"


def test_a_partition_in_two_log_directories():
    facts, reported = holding("b3")
    reported["twice"] = ["orders-0"]
    assert the_one(facts, "partition_metadata") == "b3 has partitions in two log directories: orders-0"


def test_what_was_put_aside_earlier():
    facts, _reported = holding()
    node(facts, "b2")["log_dirs"][0]["stray"] = ["t-0.0d2f-stray"]
    assert the_one(facts, "partition_metadata") == "b2 has old -stray directories: t-0.0d2f-stray"
    assert severity_of(facts, "partition_metadata") == "warns"


# Log directories -----------------------------------------------------------------------------------------------------


def test_a_log_directory_that_the_broker_has_given_up():
    facts = collected()
    one = node(facts, "b2")["log_dirs"][1]
    one["in_use"] = False
    facts.running["b2"]["log.dirs"] = f"/elsewhere, {one['path']}"
    assert the_one(facts, "log_directories") == f"b2: the broker has taken its log directory {one['path']} offline"
    assert severity_of(facts, "log_directories") == "blocks"
    facts.running["b2"]["log.dirs"] = "/elsewhere"  # it was added since the start
    assert found(facts, "log_directories") == []
    one["in_use"] = None
    assert found(facts, "log_directories") == []


def test_meta_properties_of_another_broker():
    facts = collected()
    one = node(facts, "b3")["log_dirs"][0]
    one["meta"]["broker.id"] = "7"
    assert the_one(facts, "log_directories") == f"b3: {one['path']}/meta.properties has broker id 7, but the broker's id is 5"
