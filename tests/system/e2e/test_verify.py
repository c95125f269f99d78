# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Spark job metadata_parity in dual-write: it passes on a healthy cluster and finds planted differences."""

from __future__ import annotations

import json
import re

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster.cluster import read_quorum
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewTopic

from tests.system.e2e.comparing import assert_nothing_left, verify
from tests.system.testbed import faults
from tests.system.testbed.waiting import wait_for

TOPIC = "eu.orders"
OF_TOPIC = f"/brokers/topics/{TOPIC}"
STATE = f"{OF_TOPIC}/partitions/3/state"


@pytest.fixture(scope="module")
def dual_write(fresh):
    ran = fresh.play()
    assert ran.code == 0, ran.text
    return fresh


def test_a_healthy_cluster_passes(dual_write):
    ran, result = verify(dual_write)
    assert ran.code == 0 and result["verdict"] == "pass", (ran.text, result["reasons"])
    assert all(ran.recap(host).get("changed", 0) == 0 for host in dual_write.brokers), ran.text
    kinds = {kind for kind, counts in result["counts"].items() if counts["match"]}
    assert {"topic", "partition", "config", "quota", "scram", "acl", "delegation_token", "producer_ids"} <= kinds, kinds
    assert all(counts["skipped"] == 0 for counts in result["counts"].values())
    assert re.search(r"\d+ comparisons of 10 views agree(; [^(]*)? \(\d+ s\)", ran.text), ran.text
    assert_nothing_left(dual_write)


def test_a_broker_with_stale_metadata_fails(dual_write):
    """A broker that lost the controllers serves the last metadata that it read."""
    host = dual_write.brokers[-1]
    stale, admin = dual_write.node_id(host), dual_write.admin()

    def created():
        future = admin.create_topics([NewTopic("created.meanwhile", 3, 2)], request_timeout=8)["created.meanwhile"]
        try:
            future.result(20)
        except KafkaException as error:  # the request may reach the broker that cannot forward it
            return error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
        return True

    with faults.dropped(dual_write, [host], "OUTPUT -p tcp --dport 9093"):
        wait_for(created, 120, "the topic to be created")
        ran, result = verify(dual_write)
    dual_write.wait_in_sync()
    admin.delete_topics(["created.meanwhile"])["created.meanwhile"].result(60)
    assert ran.code != 0 and result["verdict"] in ("differ", "incomplete"), (ran.text, result["reasons"])
    assert f"broker {stale}" in "; ".join(result["reasons"]), result["reasons"]
    assert_nothing_left(dual_write)
    ran, result = verify(dual_write)
    assert result["verdict"] == "pass", result["reasons"]


def plant_differences(client):
    """Change ZooKeeper without the controller; return {name: (kind, key)} of the differences."""

    def change(path, **keys):
        client.set(path, json.dumps({**json.loads(client.get(path)[0]), **keys}).encode())

    topic = json.loads(client.get(OF_TOPIC)[0])
    state = json.loads(client.get(STATE)[0])
    moved = dict(topic["partitions"], **{"0": topic["partitions"]["0"][::-1]})
    change(OF_TOPIC, partitions=moved)
    change(STATE, leader_epoch=state["leader_epoch"] + 7, isr=[*state["isr"], 99])
    other = f"{OF_TOPIC.rpartition('.')[0]}.payments"
    change(other, topic_id="AAAAAAAAAAAAAAAAAAAAAQ")
    client.delete("/brokers/topics/eu.clicks", recursive=True)
    client.create(
        "/brokers/topics/only.in.zookeeper",
        json.dumps({"version": 3, "partitions": {}, "topic_id": "AAAAAAAAAAAAAAAAAAAAAg"}).encode(),
    )
    change("/config/topics/media.thumbnails", config={"max.message.bytes": "5242881", "compression.type": "lz4"})
    change("/latest_producer_id_block", block_end="999999")
    acls = client.get_children("/kafka-acl/Topic")
    client.delete(f"/kafka-acl/Topic/{acls[0]}")
    prefixed = client.get_children("/kafka-acl-extended/prefixed/Topic")
    client.delete(f"/kafka-acl-extended/prefixed/Topic/{prefixed[0]}")
    tokens = client.get_children("/delegation_token/tokens")
    client.delete(f"/delegation_token/tokens/{tokens[0]}")
    client.set("/config/brokers/<default>", json.dumps({"version": 1, "config": {}}).encode())
    users = json.loads(client.get("/config/users/app1")[0])["config"]
    users.pop("SCRAM-SHA-256", None) or users.pop("SCRAM-SHA-512")
    change("/config/users/app1", config=users)
    return {
        "a config value": ("config", '["topic","media.thumbnails","max.message.bytes"]'),
        "producer ids": ("producer_ids", "[]"),
        "a token": ("delegation_token", json.dumps([tokens[0]])),
        "replicas": ("partition", f'["{TOPIC}",0]'),
        "leader_epoch": ("partition", f'["{TOPIC}",3]'),
        "isr": ("partition", f'["{TOPIC}",3]'),
        "id": ("topic", '["eu.payments"]'),
        "a topic missing": ("topic", '["eu.clicks"]'),
        "a topic too many": ("topic", '["only.in.zookeeper"]'),
    }


def test_planted_differences_are_found_with_both_sides(dual_write):
    with dual_write.zookeeper() as client:
        wanted = plant_differences(client)
    ran, result = verify(dual_write)
    assert ran.code != 0 and result["verdict"] == "differ", (ran.text, result["reasons"])
    found = {(difference["kind"], difference["key"]) for difference in result["differences"]}
    assert set(wanted.values()) <= found, set(wanted.values()) - found
    assert {"acl", "scram"} <= {kind for kind, _key in found}
    assert {"LITERAL", "PREFIXED"} <= {json.loads(key)[1] for kind, key in found if kind == "acl"}
    assert any(json.loads(key)[:2] == ["broker", None] for kind, key in found if kind == "config")
    for difference in result["differences"]:
        assert len(difference["sides"]) == 2 and difference["do"], difference
    assert "stays closed: differ: " in ran.text and "/report.html" in ran.text, ran.text
    assert_nothing_left(dual_write)


def caught_up(described):
    """Return whether every voter has caught up with the quorum's leader."""
    return described["reached"] and not gates.find_trailing(described, [], 2)


def test_a_lagging_voter_closes_the_gate(dual_write):
    """Its log stands still short of the high watermark, so it is not compared with the leader's."""
    nodes = {host: {"address": f"{dual_write.addresses[host]}:9093"} for host in dual_write.controllers}
    described = read_quorum(nodes, dual_write.connections())
    lagging = next(voter["id"] for voter in described["voters"] if voter["id"] != described["leader_id"])
    host = next(host for host in dual_write.controllers if dual_write.node_id(host) == lagging)
    others = [dual_write.addresses[other] for other in dual_write.controllers if other != host]
    rules = [f"{chain} {address}" for address in others for chain in ("INPUT -s", "OUTPUT -d")]
    with faults.dropped(dual_write, [host], *rules):
        ran = dual_write.play(extra={"quorumshift_gate_timeout_s": 20})
    wait_for(lambda: caught_up(read_quorum(nodes, dual_write.connections())), 60, "every voter to catch up")
    assert ran.code != 0, ran.text
    assert re.search(rf"the log of controller {lagging} was not compared with the leader's: .* short of", ran.text), (
        ran.text
    )
