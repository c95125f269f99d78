# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""partition_reassignment and partition_reassignment_info against real servers in both modes."""

from __future__ import annotations

import json
import subprocess

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import cluster_admin
from ansible_collections.quorumshift.kafka.plugins.module_utils.security import Security
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from tests.integration import admin_bed, servers

pytestmark = pytest.mark.real

RATE = "leader.replication.throttled.rate"


def fill(broker, topic: str, partitions: dict, megabytes: int = 0) -> None:
    """Create a topic with these replicas, {number: replicas}, and this much data in each partition."""
    admin = AdminClient({"bootstrap.servers": str(broker.address)})
    new = NewTopic(topic, len(partitions), replica_assignment=[partitions[number] for number in sorted(partitions)])
    admin.create_topics([new])[topic].result(60)
    replicas = len(partitions[0])
    servers.wait_for(lambda: servers.in_sync(admin, topic, replicas), 60, f"{topic} in sync")
    producer = Producer({"bootstrap.servers": str(broker.address), "compression.type": "none"})
    for number in partitions:
        for _one in range(megabytes * 10):
            producer.produce(topic, b"x" * 100_000, partition=number)
    assert producer.flush(120) == 0


class Bed:
    """The modules, with the options that all calls share."""

    def __init__(self, home, brokers, **more) -> None:
        self.options = {"bootstrap_servers": [str(broker.address) for broker in brokers], **more}
        self.options["state_dir"] = str(home / "state")
        self.record = home / "state" / servers.CLUSTER_ID / "throttles.json"

    def info(self, **options) -> dict:
        return admin_bed.run("partition_reassignment_info", **self.options, **options)

    def move(self, check: bool = False, **options) -> dict:
        return admin_bed.run("partition_reassignment", check, **self.options, **options)

    def admin(self) -> cluster_admin.ClusterAdmin:
        host, port = self.options["bootstrap_servers"][0].split(":")
        return cluster_admin.ClusterAdmin([HostPort(host, int(port))], Security(), 10, None)


def one(topic: str, *replicas: int) -> list:
    return [{"topic": topic, "partition": 0, "replicas": list(replicas)}]


def test_reassignments_in_kraft_mode():
    with admin_bed.kraft("reassign", 3) as (home, _controller, brokers):
        bed = Bed(home, brokers)
        fill(brokers[0], "orders", {0: [1, 2], 1: [2, 1]}, 4)
        fill(brokers[0], "big", {0: [1, 2]}, 12)
        assert bed.info()["reassignments"] == [] and bed.info()["throttles"] == []

        # check mode shows it and moves nothing; then it moves, and is idempotent
        wanted = one("orders", 3, 1)
        checked = bed.move(check=True, partitions=wanted)
        assert checked["changed"] and checked["diff"] == {
            "before": "orders-0: R [1, 2]\n",
            "after": "orders-0: R [3, 1], adding [3], removing [2]\n",
        }
        assert bed.admin().partitions["orders", 0]["replicas"] == [1, 2]
        moved = bed.move(partitions=wanted, cluster_id=bed.info()["cluster_id"])
        assert moved["changed"] and moved["done"] and moved["results"][0]["error"] is None, moved
        assert bed.admin().partitions["orders", 0]["replicas"] == [3, 1]
        assert bed.move(partitions=wanted)["changed"] is False

        # refusals, in words
        assert "is of cluster" in bed.move(partitions=wanted, cluster_id="AAAAAAAAAAAAAAAAAAAAAA")["msg"]
        assert "broker 9, not alive" in bed.move(partitions=one("orders", 9, 1))["msg"]
        assert "does not exist" in bed.move(partitions=one("nothing", 1))["msg"]

        # a throttled move: what someone else set stays, and what was ours is removed; in flight, others are refused
        bed.admin().alter_configs({(4, "1"): {RATE: "7777777"}})
        begun = bed.move(partitions=one("big", 3, 2), throttle_bytes_s=100_000, wait=False)
        assert begun["changed"] and begun["done"] is False and begun["progress"]["bytes_left"] > 0, begun
        found = bed.info()
        assert found["reassignments"] == [
            {"topic": "big", "partition": 0, "replicas": [3, 2, 1], "adding": [3], "removing": [1]}
        ]
        rates = {(each["resource"], each["key"]): each["value"] for each in found["throttles"]}
        assert rates["broker 1", RATE] == "100000" and rates["topic big", "follower.replication.throttled.replicas"]
        assert "in flight already (big-0)" in bed.move(partitions=one("orders", 1, 2))["msg"]
        assert bed.move(partitions=one("orders", 1, 2), additional=True)["done"]
        assert bed.record.exists(), "big still needs its throttle"
        # it stands still for longer than the bound: fails and leaves no throttle
        halted = bed.move(partitions=one("big", 3, 2), stall_timeout_s=0)
        assert halted["failed"] and "The throttles were removed" in halted["msg"], halted
        assert [(each["resource"], each["value"]) for each in bed.info()["throttles"]] == [("broker 1", "7777777")]
        assert bed.move(partitions=one("big", 3, 2))["done"] and not bed.record.exists()

        # a killed run leaves its throttle and its record; the next one finds and removes both
        command = admin_bed.command(
            "partition_reassignment", **bed.options, partitions=one("big", 1, 2), throttle_bytes_s=100_000
        )
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=admin_bed.ENVIRONMENT
        ) as run:
            servers.wait_for(lambda: bed.admin().in_flight(), 60, "the reassignment of the run that is killed")
            run.kill()
        assert bed.info()["recorded_throttles"]
        checked = bed.move(check=True, state="cancelled")
        assert checked["diff"] == {
            "before": "big-0: R [1, 2, 3], adding [1], removing [3]\n",
            "after": "big-0: R [2, 3]\n",
        }, checked
        cancelled = bed.move(state="cancelled")
        assert cancelled["changed"] and cancelled["done"], cancelled
        assert bed.move(state="cancelled")["changed"] is False
        found = bed.info()
        assert found["reassignments"] == [] and not bed.record.exists()
        assert [(each["resource"], each["value"]) for each in found["throttles"]] == [("broker 1", "7777777")]
        print("after the cancellation:", bed.admin().partitions["big", 0])

        # plans: drain a broker, and give it its share again
        plan = bed.info(drain=3, topics=["orders", "big"])
        path = home / "plan.json"
        path.write_text(json.dumps(plan["plan"]))
        assert bed.move(src=str(path))["done"]
        assert all(3 not in each["replicas"] for each in bed.admin().partitions.values())
        plan = bed.info(add="least_loaded", topics=["orders", "big"])
        assert plan["broker"] == 3 and plan["plan"]["partitions"]
        assert bed.move(partitions=plan["plan"]["partitions"])["done"]


def test_reassignments_in_zookeeper_mode():
    with admin_bed.zookeeper("zk-reassign", 2) as (home, connect, brokers):
        bed = Bed(home, brokers, zookeeper_connect=connect)
        fill(brokers[0], "orders", {0: [1]}, 8)
        begun = bed.move(partitions=one("orders", 2), throttle_bytes_s=100_000, wait=False)
        assert begun["changed"] and not begun["done"], begun
        assert bed.info()["reassignments"][0]["adding"] == [2] and bed.info()["legacy"] is None
        assert bed.move(state="cancelled")["done"] and bed.info()["throttles"] == []
        brokers[1].stop()
        client = KazooClient(hosts=connect)
        client.start(timeout=10)
        try:
            # a broker that is not alive: the controller keeps the znode
            asked = {"version": 1, "partitions": one("orders", 1, 2)}
            client.create("/admin/reassign_partitions", json.dumps(asked).encode())
            found = bed.info()
            print("legacy:", found["legacy"], found["reassignments"])
            brokers[1].start()
            admin_bed.ready(brokers)
            assert bed.move(partitions=one("orders", 2), additional=True)["done"]
            print("legacy after:", bed.info()["legacy"], bed.admin().partitions["orders", 0])
        finally:
            client.stop()
            client.close()
