# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""partition_reassignment and partition_reassignment_info against real servers in both modes."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.admin import cluster_admin
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
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
    servers.create_topics(admin, [new])
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


def single_move(topic: str, *replicas: int) -> list:
    return [{"topic": topic, "partition": 0, "replicas": list(replicas)}]


def test_reassignments_in_kraft_mode():
    with admin_bed.kraft("reassign", 3) as (home, _controller, brokers):
        bed = Bed(home, brokers)
        fill(brokers[0], "orders", {0: [1, 2], 1: [2, 1]}, 1)
        fill(brokers[0], "big", {0: [1, 2]}, 24)
        assert bed.info()["reassignments"] == [] and bed.info()["throttles"] == []

        # check mode shows it and moves nothing; then it moves, and is idempotent
        wanted = single_move("orders", 3, 1)
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
        assert "broker 9, not alive" in bed.move(partitions=single_move("orders", 9, 1))["msg"]
        assert "does not exist" in bed.move(partitions=single_move("nothing", 1))["msg"]

        # a throttle that another host set is refused; restored, it is what remains; in flight, others are refused
        bed.admin().alter_configs({(4, "1"): {RATE: "7777777"}})
        refused = bed.move(partitions=single_move("big", 3, 2), throttle_bytes_s=100_000)
        assert refused["failed"] and f"broker 1: {RATE}=7777777" in refused["msg"], refused
        assert f"--delete-config {RATE} --entity-type brokers --entity-name 1" in refused["msg"]
        assert bed.move(partitions=single_move("big", 3, 2))["failed"], "it would move under that rate"
        restored = {"foreign_throttles": "restored"}
        begun = bed.move(partitions=single_move("big", 3, 2), throttle_bytes_s=100_000, wait=False, **restored)
        assert begun["changed"] and begun["done"] is False and begun["progress"]["bytes_left"] > 0, begun
        found = bed.info()
        assert found["reassignments"] == [
            {"topic": "big", "partition": 0, "replicas": [3, 2, 1], "adding": [3], "removing": [1]}
        ]
        rates = {(each["resource"], each["key"]): each["value"] for each in found["throttles"]}
        assert rates["broker 1", RATE] == "100000" and rates["topic big", "follower.replication.throttled.replicas"]
        assert "in flight already (big-0)" in bed.move(partitions=single_move("orders", 1, 2))["msg"]
        assert bed.move(partitions=single_move("orders", 1, 2), additional=True)["done"], "it has no rate"
        assert bed.record.exists(), "big still needs its throttle"
        # it stands still for longer than the bound: fails, and what is in flight goes on under its throttle
        assert found["throttles_set_by"]["user"] and found["throttles_set_by"]["host"], found
        halted = bed.move(partitions=single_move("big", 3, 2), stall_timeout_s=0)
        assert halted["failed"] and "The throttles are preserved, since partitions move under them" in halted["msg"]
        assert "--delete-config follower.replication.throttled.rate" in halted["msg"] and bed.record.exists()
        rates = {(each["resource"], each["key"]): each["value"] for each in bed.info()["throttles"]}
        assert rates["broker 1", RATE] == "100000", rates
        # run again without a rate, it keeps the one of the record; another one changes it in flight
        kept = bed.move(check=True, partitions=single_move("big", 3, 2))
        assert kept["throttle_bytes_s"] == 100_000, kept
        faster = bed.move(partitions=single_move("big", 3, 2), throttle_bytes_s=50_000_000, **restored)
        assert faster["done"] and not bed.record.exists(), faster
        assert [(each["resource"], each["value"]) for each in bed.info()["throttles"]] == [("broker 1", "7777777")]

        # a killed run leaves its throttle and its record; the next one finds and removes both
        command = admin_bed.command(
            "partition_reassignment",
            **bed.options,
            partitions=single_move("big", 1, 2),
            throttle_bytes_s=100_000,
            **restored,
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

        bed.admin().alter_configs({(4, "1"): {RATE: None}})

        # plans: drain a broker, and give it its share again
        plan = bed.info(drain=3, topics=["orders", "big"])
        path = home / "plan.json"
        path.write_text(json.dumps(plan["plan"]))
        assert bed.move(src=str(path))["done"]
        assert all(3 not in each["replicas"] for each in bed.admin().partitions.values())
        plan = bed.info(add="least_loaded", topics=["orders", "big"])
        assert plan["broker"] == 3 and plan["plan"]["partitions"]
        assert bed.move(partitions=plan["plan"]["partitions"])["done"]


def slices(bed, carry=None, **options):
    """Wait in slices, each a process of its own, as the action plugin does; return the last result and their number."""
    carry, count = carry or {}, 0
    while True:
        found = bed.move(state="awaited", wait_s=5, carry=carry, **options)
        count += 1
        if found.get("failed") or found["done"]:
            return found, count
        carry = found["carry"]


def set_at(bed):
    return [f"{each['resource']}: {each['key']}={each['value']}" for each in bed.info()["throttles"]]


def test_what_happens_to_a_move_from_outside():
    with admin_bed.kraft("reassign-outside", 4) as (home, _controller, brokers):
        bed, client = Bed(home, brokers), AdminClient({"bootstrap.servers": str(brokers[0].address)})
        fill(brokers[0], "orders", {0: [1, 2], 1: [2, 1]}, 1)
        for topic in ("gone", "big"):
            fill(brokers[0], topic, {0: [1, 2]}, 6)
        fill(brokers[0], "on_4", {0: [4, 1], 1: [1, 4]}, 2)
        fill(brokers[0], "only_4", {0: [4]}, 1)
        slow = {"throttle_bytes_s": 50_000, "wait": False}

        # fewer replicas need the token of this change, also outside of diff mode
        refused = bed.move(partitions=single_move("orders", 1))
        assert refused["failed"] and "orders-0 from 2 to 1" in refused["msg"], refused
        token = re.search(r"give the token (\w{6})", refused["msg"])[1]
        assert bed.move(partitions=single_move("orders", 2), shrink=token)["done"], "the token is of the numbers"
        assert bed.move(partitions=single_move("orders", 1, 2))["done"]

        # a partition that does not exist is an error, one that is not in flight a warning
        mistyped = bed.move(state="cancelled", partitions=[{"topic": "ordres", "partition": 0}])
        assert mistyped["failed"] and "ordres-0 does not exist" in mistyped["msg"], mistyped
        idle = bed.move(state="cancelled", partitions=[{"topic": "orders", "partition": 1}])
        assert not idle["changed"] and "orders-1" in str(idle["warnings"]), idle

        # two moves from two hosts: the second one sees the rate of the first, and none is left at the end
        other = Bed(home, brokers)
        other.options["state_dir"] = str(home / "state-of-another-host")
        assert not bed.move(partitions=single_move("gone", 1, 3), **slow)["done"]
        second = {"partitions": single_move("big", 1, 3), "throttle_bytes_s": 60_000, "wait": False, "additional": True}
        refused = other.move(**second)
        assert refused["failed"] and "50000" in refused["msg"] and "gone-0" not in str(refused["results"]), refused
        refused = other.move(**second, foreign_throttles="restored")
        assert refused["failed"] and "(gone-0)" in refused["msg"] and "Wait for its end" in refused["msg"], refused
        assert other.move(**second, foreign_throttles="removed")["changed"]
        first = bed.move(state="cancelled", partitions=single_move("gone"))
        assert first["done"] and all("60000" in text for text in first["throttles_left"]), first
        assert other.move(state="cancelled")["done"]
        assert set_at(bed) == [] and not bed.record.exists()

        # a topic that is deleted during the move: the rest goes on, and no throttle is left
        both = [*single_move("gone", 1, 3), *single_move("big", 1, 3)]
        assert not bed.move(partitions=both, **slow)["done"]
        client.delete_topics(["gone"])["gone"].result(60)
        servers.wait_for(lambda: ("gone", 0) not in bed.admin().partitions, 60, "the topic to be gone")
        assert "gone-0 does not exist" in bed.move(partitions=both, throttle_bytes_s=50_000)["msg"]
        assert set_at(bed), "big is still in flight"
        faster = bed.move(partitions=both, throttle_bytes_s=50_000_000, missing="skipped", wait_s=1)
        assert faster["gone"] == ["gone-0"], faster
        ended, _count = slices(bed, partitions=both, missing="skipped")
        assert ended["done"] and ended["gone"] == ["gone-0"], ended
        assert set_at(bed) == [] and not bed.record.exists()
        assert bed.move(partitions=both, missing="skipped")["changed"] is False

        # a topic that is deleted between two slices of a wait is no error, although missing ones are refused
        fill(brokers[0], "gone2", {0: [1, 2]}, 6)
        begun = bed.move(partitions=single_move("gone2", 1, 3), **slow)
        client.delete_topics(["gone2"])["gone2"].result(60)
        ended, _count = slices(bed, begun["carry"], partitions=single_move("gone2", 1, 3))
        assert ended["done"] and ended["changed"] and ended["gone"] == ["gone2-0"] and set_at(bed) == [], ended

        # a move that is cancelled elsewhere ends the wait over slices, with what was seen last
        assert not bed.move(partitions=single_move("big", 1, 2), **slow)["done"]
        bed.admin().reassign({("big", 0): None})
        ended, count = slices(bed, partitions=single_move("big", 1, 2))
        assert ended["failed"] and "ended elsewhere: big-0" in ended["msg"] and count > 1, (count, ended)
        assert set_at(bed) == []
        # so does one that stands still
        assert not bed.move(partitions=single_move("big", 1, 2), throttle_bytes_s=1, wait=False)["done"]
        ended, count = slices(bed, partitions=single_move("big", 1, 2), stall_timeout_s=16)
        assert ended["failed"] and "no bytes were copied" in ended["msg"] and count > 1, (count, ended)
        assert "big-0 adds [2]" in ended["msg"] and set_at(bed) != [], "it moves on, slowly"
        assert bed.move(state="cancelled")["done"] and set_at(bed) == []

        # a broker that is dead is drained with a throttle; what it has alone cannot be
        brokers[3].kill()
        servers.wait_for(lambda: 4 not in bed.admin().brokers, 60, "broker 4 to be dead")
        plan = bed.info(drain=4, topics=["on_4"])["plan"]["partitions"]
        assert bed.move(partitions=plan, throttle_bytes_s=10_000_000)["done"]
        assert not any(4 in bed.admin().partitions["on_4", number]["replicas"] for number in (0, 1))
        assert set_at(bed) == [] and not bed.record.exists()
        refused = bed.move(partitions=single_move("only_4", 1), throttle_bytes_s=10_000_000)
        assert refused["failed"] and "only_4-0 has no live replica" in refused["msg"], refused

        # a throttle of the brokers' default, or of a topic alone, is named too
        for resource, key in (((4, ""), RATE), ((2, "orders"), "follower.replication.throttled.replicas")):
            value = "*" if resource[0] == 2 else "1000"
            assert bed.admin().alter_configs({resource: {key: value}}) == {}
            servers.wait_for(lambda key=key: any(key in text for text in set_at(bed)), 60, f"{key} to be served")
            refused = bed.move(partitions=single_move("orders", 2, 1))
            assert refused["failed"] and f"{key}={value}" in refused["msg"], refused
            warnings = bed.move(state="cancelled")["warnings"]
            assert "no partition is in flight, and 1 throttles" in str(warnings), warnings
            if resource[0] == 4:
                assert bed.admin().alter_configs({resource: {key: None}}) == {}
                servers.wait_for(lambda: not set_at(bed), 60, "the default to be gone")
        assert (
            bed.move(partitions=single_move("orders", 2, 1), foreign_throttles="removed")["done"] and set_at(bed) == []
        )


def test_plans_of_several_brokers_and_of_a_rack():
    with admin_bed.kraft("reassign-plans", 4) as (home, _controller, brokers):
        bed = Bed(home, brokers)
        fill(brokers[0], "orders", {0: [1, 2], 1: [3, 4], 2: [4, 1]}, 1)

        def used():
            return {broker for each in bed.admin().partitions.values() for broker in each["replicas"]}

        # Racks are r2 for brokers 1 and 3, r1 for 2 and 4: each partition keeps both of them
        plan = bed.info(drain=[3, 4])
        assert plan["copies"]["replicas"] == 3 and plan["copies"]["bytes"] > 2 << 20, plan["copies"]
        assert bed.move(document=plan["plan"])["done"] and used() == {1, 2}
        assert bed.move(document=bed.info(add="3")["plan"])["done"] and 3 in used()
        # The whole rack leaves, and with it the second rack of each partition
        assert bed.move(document=bed.info(drain_racks=["r1"])["plan"])["done"] and used() == {1, 3}
        assert "no live broker is in rack 'r9'" in bed.info(drain_racks=["r9"])["msg"]


def test_reassignments_in_zookeeper_mode():
    with admin_bed.zookeeper("zk-reassign", 2) as (home, connect, brokers):
        bed = Bed(home, brokers, zookeeper_connect=connect)
        fill(brokers[0], "orders", {0: [1]}, 8)
        begun = bed.move(partitions=single_move("orders", 2), throttle_bytes_s=100_000, wait=False)
        assert begun["changed"] and not begun["done"], begun
        assert bed.info()["reassignments"][0]["adding"] == [2] and bed.info()["legacy"] is None
        assert bed.move(state="cancelled")["done"] and bed.info()["throttles"] == []
        brokers[1].stop()
        client = KazooClient(hosts=connect)
        client.start(timeout=10)
        try:
            # a broker that is not alive: the controller keeps the znode
            asked = {"version": 1, "partitions": single_move("orders", 1, 2)}
            client.create("/admin/reassign_partitions", json.dumps(asked).encode())
            found = bed.info()
            print("legacy:", found["legacy"], found["reassignments"])
            brokers[1].start()
            admin_bed.ready(brokers)
            moved = bed.move(partitions=single_move("orders", 2, 1), additional=True)
            assert moved.get("done"), moved
            print("legacy after:", bed.info()["legacy"], bed.admin().partitions["orders", 0])
        finally:
            client.stop()
            client.close()
