# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Items of znodes, beyond what tests of the preflight's and the comparison's metadata cover."""

from __future__ import annotations

import json

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znode_items, znodes

TOPIC = {"version": 3, "topic_id": "id", "partitions": {"0": [1], "1": [1]}}
STATE = {"leader": 1, "leader_epoch": 0, "controller_epoch": 1, "isr": [1]}


def node(path, value, **stat):
    return znodes.Znode(path, json.dumps(value).encode(), None, znodes.Stat(*([0] * 11))._replace(**stat))


def read(*nodes):
    reader = znode_items.Reader()
    found = [item for node in nodes for item in reader.items(node)]
    return [*found, *reader.rest()], [problem.reason for problem in reader.problems]


def test_a_partition_has_the_later_zxid_of_topic_and_state():
    state = node("/brokers/topics/t/partitions/0/state", STATE, mzxid=9, version=3)
    (topic, first, second), problems = read(node("/brokers/topics/t", TOPIC, mzxid=4, czxid=2), state)
    assert (topic.kind, topic.key, topic.zxid, problems) == ("topic", ("t",), 2, [])
    assert (first.key, first.zxid, first.value["version"], first.value["leader"]) == (("t", 0), 9, 3, 1)
    assert (second.key, second.zxid, second.value["leader"], second.value["version"]) == (("t", 1), 4, None, None)


def test_a_state_of_no_partition_is_skipped_and_a_malformed_one_is_a_problem():
    stray = node("/brokers/topics/t/partitions/7/state", {})
    items, problems = read(node("/brokers/topics/t", TOPIC), stray)
    assert [item.key for item in items] == [("t",), ("t", 0), ("t", 1)] and problems == []
    malformed = node("/brokers/topics/t/partitions/0/state", {"leader": 1})
    items, problems = read(node("/brokers/topics/t", TOPIC), malformed)
    assert len(items) == 3 and problems == ["'leader_epoch' is missing"]


def test_scram_credentials_of_any_single_entity_are_read_as_the_initial_copy_reads_them():
    text = "salt=YQ==,stored_key=YQ==,server_key=YQ==,iterations=4096"
    for path in ("/config/users/u", "/config/clients/u"):
        ((item,), problems) = read(node(path, {"config": {"SCRAM-SHA-256": text}}))
        assert (item.kind, item.key, problems) == ("scram", ("u", "SCRAM-SHA-256"), [])
    items, (problem,) = read(node("/config/users/u", {"config": {"SCRAM-SHA-256": text.replace("YQ==", "!")}}))
    assert items == [] and problem == "SCRAM-SHA-256 is not a SCRAM credential"


def test_what_only_python_takes_for_a_number_is_a_problem():
    items, (problem,) = read(node("/config/ips/<default>", {"config": {"connection_creation_rate": "5_0.5"}}))
    assert items == [] and "is not a number: the initial copy aborts" in problem
    quoted = node("/brokers/topics/t/partitions/0/state", {**STATE, "leader": "1"})
    _items, problems = read(node("/brokers/topics/t", TOPIC), quoted)
    assert problems == ["'leader' is not a whole number"]


def test_a_quota_that_is_not_finite_is_an_item_as_for_kafka():
    for text in ("Infinity", "-Infinity", "NaN", " NaN ", "1e999"):
        ((item,), problems) = read(node("/config/ips/<default>", {"config": {"connection_creation_rate": text}}))
        assert item.key == ((("ip", None),), "connection_creation_rate") and problems == []
    for text in ("inf", "nan", "infinity", "INFINITY"):  # which only Python takes
        items, (problem,) = read(node("/config/ips/<default>", {"config": {"connection_creation_rate": text}}))
        assert items == [] and "is not a number: the initial copy aborts" in problem
