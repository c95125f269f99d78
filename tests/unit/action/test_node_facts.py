# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reading is timed by the control node's clock; connectivity is asked from the facts of all hosts."""

from __future__ import annotations

import time

import pytest

BROKER = {
    "node_id": 1,
    "file": {
        "mode": "zk",
        "properties": {"zookeeper.connect": "z1:2181/kafka", "listeners": "PLAINTEXT://b1:9092", "broker.id": "1"},
    },
    "log_dirs": [{"path": "/data", "exists": True}, {"path": "/gone", "exists": False}],
    "service": {"active": True},
}
CONTROLLER = {"node_id": 101, "file": {"mode": None, "properties": {}}, "log_dirs": [], "service": {"active": False}}
READ = {"ansible_facts": {"quorumshift_paths": {"failed": [], "tried": {"controller": 1}}}}


@pytest.fixture
def cluster(harness):
    harness.facts("b1", quorumshift_node=BROKER)
    harness.facts("b2", quorumshift_node={**BROKER, "node_id": 2})
    harness.facts("c1", quorumshift_node=CONTROLLER)
    harness.variables.update(quorumshift_controller_listener="CONTROLLER", quorumshift_controller_protocol="PLAINTEXT")
    harness.variables.update(quorumshift_controller_log_dir="/meta", quorumshift_controller_super_users=[])
    harness.hostvars["c1"]["quorumshift_node_id"] = 101
    return harness


def test_the_reading_is_timed(harness):
    before = time.time()
    result = harness.run("node_facts", {}, {"ansible_facts": {"quorumshift_node": {}}}, host="b1")
    asked, arrived = result["ansible_facts"]["quorumshift_node"]["asked"]
    assert before <= asked <= arrived <= time.time() and harness.asked[0]["role"] == "broker"


@pytest.mark.parametrize("tolerated", [True, False])
def test_what_cannot_be_read_is_a_fact_in_the_first_reading_alone(harness, tolerated):
    failed = {"failed": True, "msg": "/etc/kafka: Permission denied."}
    result = harness.run("node_facts", {"failure_is_fact": tolerated}, failed, host="b1")
    assert result.get("failed", False) is not tolerated and ("unread" in result) is tolerated
    assert not tolerated or "    b1: /etc/kafka: Permission denied." in harness.printed


def test_a_part_of_a_run_is_refused_in_the_first_reading_too(harness):
    harness.cliargs({"subset": "b1"})
    result = harness.run("node_facts", {"failure_is_fact": True}, {}, host="b1")
    assert result["failed"] and "--limit b1 excludes hosts" in result["msg"]


def test_another_subset_is_read_as_it_is_asked(harness):
    result = harness.run("node_facts", {"gather_subset": ["replicas"]}, {"replicas": {}}, host="b1")
    assert result == {"replicas": {}} and harness.asked[0]["service"] == "kafka"


def test_a_broker_connects_to_zookeeper_and_controllers(cluster):
    cluster.run("node_facts", {"gather_subset": ["connectivity"]}, READ, host="b1")
    asked = cluster.asked[0]
    assert {(target["kind"], target["address"]) for target in asked["targets"]} == {
        ("zookeeper", "z1:2181"),
        ("controller", "c1:9093"),
    }
    assert asked["log_dirs"] == ["/data"] and "listen" not in asked


def test_a_controller_that_is_down_tries_its_own_port(cluster):
    cluster.run("node_facts", {"gather_subset": ["connectivity"]}, READ, host="c1")
    asked = cluster.asked[0]
    assert asked["listen"] == "c1:9093" and {target["kind"] for target in asked["targets"]} == {"zookeeper", "broker"}
    assert "login" not in asked  # plaintext without SASL has no login


def test_nothing_is_asked_once_a_broker_left_plain_mode(cluster):
    cluster.facts("b2", quorumshift_node={**BROKER, "file": {"mode": "zk_migration", "properties": {}}})
    result = cluster.run("node_facts", {"gather_subset": ["connectivity"]}, READ, host="b1")
    assert result["skipped"] and cluster.asked == []


def test_required_connectivity_that_fails_ends_the_run(cluster):
    failed = {"kind": "controller", "to": "c1", "address": "c1:9093", "reason": "refused", "error": "refused"}
    read = {"ansible_facts": {"quorumshift_paths": {"failed": [failed], "tried": {"controller": 1}}}}
    args = {"gather_subset": ["connectivity"], "connectivity_required": True}
    result = cluster.run("node_facts", args, read, host="b1")
    assert result["failed"] and result["msg"].startswith("This run has restarted no broker.") and "c1" in result["msg"]
