# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kafka's metadata from znodes: a tree written by Kafka 3.9.2 and its tools, and faults."""

from __future__ import annotations

import json
import pathlib

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import zk_metadata
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write import backup_file

RECORDED = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "kafka_3.9.2_znodes.jsonl.gz"
STAT = znodes.Stat(*([0] * 11))


def tree(**values):
    """Return znodes of ``{path: JSON-able, bytes or None}``."""
    return [
        znodes.Znode(
            path, value if value is None or isinstance(value, bytes) else json.dumps(value).encode(), None, STAT
        )
        for path, value in values.items()
    ]


def topic(partitions, topic_id="id", **more):
    return {"version": 3, "topic_id": topic_id, "partitions": partitions, **more}


def state(leader, isr, controller_epoch=1):
    return {"leader": leader, "isr": isr, "leader_epoch": 0, "controller_epoch": controller_epoch}


@pytest.fixture(scope="module")
def recorded():
    return list(backup_file.Backup(str(RECORDED)).check().znodes())


def test_normal_form_of_a_recorded_tree(recorded):
    seen = zk_metadata.normalise(recorded)
    assert seen["problems"] == []
    assert seen["broker_ids"] == [1]
    assert zk_metadata.expected_records(seen) == {
        "TOPIC_RECORD": 3,
        "PARTITION_RECORD": 7,
        "CONFIG_RECORD": 3 + 2 + 1,
        "CLIENT_QUOTA_RECORD": 8,
        "USER_SCRAM_CREDENTIAL_RECORD": 2,
        "ACCESS_CONTROL_ENTRY_RECORD": 5,
        "DELEGATION_TOKEN_RECORD": 1,
        "PRODUCER_IDS_RECORD": 1,
    }
    assert zk_metadata.find_unregistered_replicas(seen) == zk_metadata.reassignments(seen) == {}
    assert zk_metadata.max_controller_epoch(seen) == 1
    assert json.loads(json.dumps(seen)) == seen


def test_every_recorded_znode_is_of_a_known_kind(recorded):
    assert [node.path for node in recorded if znodes.kind(node.path) == "other"] == []


def test_secrets_are_withheld(recorded):
    seen = zk_metadata.normalise(recorded)
    assert seen["scram"]["bob"]["SCRAM-SHA-256"] == {"iterations": 4096}
    secrets = next(node for node in recorded if node.path == "/config/users/bob").data.decode()
    stored = secrets.split("stored_key=")[1].split(",")[0]
    assert stored in secrets and stored not in json.dumps(seen)
    assert seen["configs"]["broker"]["1"]["listener.name.external.ssl.key.password"] is None


def test_pending_deletions_are_not_copied():
    seen = zk_metadata.normalise(
        tree(
            **{
                "/brokers/topics/keep": topic({"0": [1], "1": [1]}),
                "/brokers/topics/deleted": topic({"0": [9]}),
                "/config/topics/keep": {"config": {"a": "1", "b": "2"}},
                "/config/topics/deleted": {"config": {"a": "1"}},
                "/config/topics/orphan": {"config": {"a": "1"}},
                "/admin/delete_topics/deleted": None,
                "/brokers/ids/1": b"",
            }
        )
    )
    counts = zk_metadata.expected_records(seen)
    assert (counts["TOPIC_RECORD"], counts["PARTITION_RECORD"], counts["CONFIG_RECORD"]) == (1, 2, 2)
    assert zk_metadata.find_unregistered_replicas(seen) == {}


def test_a_partition_without_a_state_makes_a_record():
    seen = zk_metadata.normalise(tree(**{"/brokers/topics/t": topic({"0": [1]})}))
    assert seen["topics"]["t"]["partitions"]["0"]["leader"] is None
    assert zk_metadata.expected_records(seen)["PARTITION_RECORD"] == 1


def test_partition_queries():
    seen = zk_metadata.normalise(
        tree(
            **{
                "/brokers/ids/1": b"",
                "/brokers/ids/2": b"",
                "/brokers/topics/t": topic({"0": [1, 2], "1": [1, 2, 3], "10": [2, 1]}, adding_replicas={"1": [3]}),
                "/brokers/topics/t/partitions/0/state": state(1, [1]),
                "/brokers/topics/t/partitions/1/state": state(1, [1, 2], controller_epoch=9),
                "/brokers/topics/t/partitions/10/state": state(-1, [2, 1]),
            }
        )
    )
    assert zk_metadata.reassignments(seen) == {"t-1": {"adding": [3], "removing": []}}
    assert zk_metadata.find_unregistered_replicas(seen) == {"3": ["t-1"]}
    assert zk_metadata.max_controller_epoch(seen) == 9


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("/brokers/topics/t", {"version": 2, "partitions": {}}, "no topic_id"),
        ("/brokers/topics/t", b"{", "not JSON"),
        ("/config/users/u", {"config": {"producer_byte_rate": "fast"}}, "not a number"),
        ("/config/users/u", {"config": {"SCRAM-SHA-256": "x"}}, "not a SCRAM credential"),
        ("/config/users/u/clients/c", {"config": {"SCRAM-SHA-256": "x"}}, "not a number"),
        ("/config/topics/t", b"{}", "'config' is missing"),
        ("/kafka-acl/Planet/x", {"version": 1, "acls": [{}]}, "'principal' is missing"),
        ("/delegation_token/tokens/x", {"version": 9}, "version 9"),
        ("/latest_producer_id_block", b"", "no data"),
        ("/brokers/ids/x", None, "not a broker id"),
    ],
)
def test_a_znode_on_which_the_initial_copy_fails_is_a_problem(path, value, reason):
    (problem,) = zk_metadata.normalise(tree(**{path: value}))["problems"]
    assert problem["path"] == path and reason in problem["reason"]


def test_acls_that_kafka_does_not_load_are_problems_and_not_counted():
    entry = {"principal": "User:a", "host": "*", "operation": "Read", "permissionType": "Allow"}
    value = {"version": 1, "acls": [entry, entry]}
    seen = zk_metadata.normalise(
        tree(
            **{
                "/kafka-acl/Group/a": None,
                "/kafka-acl/Group/a/b": value,
                "/kafka-acl/Planet/x": value,
                "/kafka-acl-extended/prefixed/Topic/p": value,
                "/kafka-acl-extended/other/Topic/p": value,
            }
        )
    )
    assert zk_metadata.expected_records(seen)["ACCESS_CONTROL_ENTRY_RECORD"] == 1
    assert seen["acls"][0]["pattern_type"] == "PREFIXED"
    assert [problem["path"] for problem in seen["problems"]] == ["/kafka-acl/Group/a/b", "/kafka-acl/Planet/x"]


def test_producer_ids_without_a_block_make_no_record():
    seen = zk_metadata.normalise(tree(**{"/latest_producer_id_block": None}))
    assert seen["problems"] == []
    assert zk_metadata.expected_records(seen)["PRODUCER_IDS_RECORD"] == 0
