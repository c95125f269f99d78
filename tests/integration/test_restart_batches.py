# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Batches of a rolling restart on real servers: brokers of one batch stop together, and acks=all goes on."""

from __future__ import annotations

import contextlib
import os
from types import SimpleNamespace

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.admin.cluster_admin import ClusterAdmin
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.restart import plain_restart, restart_plan
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import admin_requests
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import cluster, topics
from ansible_collections.quorumshift.kafka.plugins.modules import rolling_restart
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.integration import admin_bed, servers

pytestmark = pytest.mark.real

RACKS = {1: "a", 2: "a", 3: "b", 4: "b"}
SERVICE = {"manager": "systemd", "name": "kafka", "active": True, "active_state": "active"}
SPREAD = [[1, 3], [2, 4], [1, 4], [2, 3]]  # each partition in both racks


@contextlib.contextmanager
def racks_of_two():
    """Yield (brokers by id, nodes, Connections) of two racks with two brokers each."""
    with servers.workdir("batches") as home, servers.zookeeper(home) as ensemble, contextlib.ExitStack() as stack:
        connect = f"{ensemble.connect}/kafka"
        brokers = {
            n: stack.enter_context(servers.zk_broker(home, n, connect, {"broker.rack": rack}))
            for n, rack in RACKS.items()
        }
        nodes = {
            f"b{n}": {"role": "broker", "reached": True, "node_id": n, "address": str(broker.address)}
            for n, broker in brokers.items()
        }
        connections = servers.connections([broker.address for broker in brokers.values()], connect)
        admin = AdminClient({"bootstrap.servers": bootstrap(connections)})
        servers.wait_for(lambda: servers.knows_controller(admin, len(RACKS)), 60, "all brokers to know the controller")
        config = {"min.insync.replicas": "1"}
        wanted = [
            NewTopic("spread", replica_assignment=SPREAD, num_partitions=4, config=config),
            NewTopic("one_rack", replica_assignment=[[3, 4]], num_partitions=1, config=config),
            NewTopic("single", replica_assignment=[[2]], num_partitions=1, config=config),
        ]
        servers.create_topics(admin, wanted)
        yield brokers, nodes, connections


def bootstrap(connections):
    return ",".join(str(server) for server in connections.bootstrap)


def read(nodes, connections):
    """Return (facts, Cluster) as rolling_restart reads them."""
    facts = cluster.collect({host: dict(node) for host, node in nodes.items()}, connections)
    if not facts["topics"]["reached"]:
        return facts, None
    names = facts["topics"]["partitions"]
    least = topics.read_min_isr(connections.bootstrap, connections.client, names, connections.timeout)
    return facts, restart_plan.cluster_from_facts(facts, least)


def is_healthy(nodes, connections):
    _facts, found = read(nodes, connections)
    every = [partition for numbers in (found.partitions if found else {}).values() for partition in numbers.values()]
    return len(every) == 6 and found.alive == set(RACKS) and all(len(p["isr"]) == len(p["replicas"]) for p in every)


def produced(connections, partitions):
    """Write a record with acks=all to each partition of `spread`, and return the errors."""
    producer, errors = Producer({"bootstrap.servers": bootstrap(connections), "acks": "all"}), []
    for number in partitions:
        producer.produce(
            "spread",
            b"x",
            partition=number,
            on_delivery=lambda error, _message: errors.append(error) if error else None,
        )
    assert producer.flush(60) == 0
    return errors


def test_a_rack_restarts_together_and_what_shares_a_partition_restarts_apart():
    with racks_of_two() as (brokers, nodes, connections):
        servers.wait_for(lambda: is_healthy(nodes, connections), 60, "all replicas in sync")
        facts, found = read(nodes, connections)
        plan = restart_plan.plan_hosts(facts, "broker", found._replace(controller=None), None, 4, 0)
        assert plan.batches == [["b1", "b2"], ["b3"], ["b4"]]
        assert "one_rack-0 is also on broker 4" in plan.reasons["b3"]
        assert plan.unavoidable == {"single-0": "replication factor 1: offline while its broker restarts"}
        assert restart_plan.find_unsafe(found, [1, 2]).keys() == {"single-0"}
        assert restart_plan.find_unsafe(found, [3, 4]).keys() == {"one_rack-0"}

        for number in (1, 2):
            brokers[number].stop()
        servers.wait_for(lambda: (read(nodes, connections)[1] or found).alive == {3, 4}, 60, "both to be seen dead")
        assert produced(connections, range(4)) == []

        # The other rack has the last replicas now: evaluated again, its stop is not safe
        facts, now = read(nodes, connections)
        assert {f"spread-{number}" for number in range(4)} <= restart_plan.find_unsafe(now, [3, 4]).keys()
        again = restart_plan.plan_hosts(facts, "broker", now._replace(controller=None), None, 4, 0)
        assert again.batches == [["b1", "b2"], ["b3"], ["b4"]]
        assert again.reasons["b1"] == again.reasons["b2"] == "down: started first"
        assert "has no in-sync replica to spare now" in again.reasons["b3"]


def admission(nodes, connections, *batch, accept=(), plan=None, **more):
    """Return the module's first answer: the token, or `progress` with what keeps the batch up, or what it `watched`."""
    given = {
        host: {
            **{**node, "service": SERVICE},
            "file": {"mode": "zk", "properties": {"advertised.listeners": f"PLAINTEXT://{node['address']}"}},
        }
        for host, node in nodes.items()
    }
    return admin_bed.run(
        "rolling_restart",
        **{"kind": "restart_broker", "batch": list(batch), "run": "r", "nodes": given},
        **{"bootstrap_servers": bootstrap(connections).split(","), "zookeeper_connect": str(connections.zookeeper)},
        **{"accept": list(accept), "timeout_s": 60, "plan": plan or {}},
        **{"state": "admitted", "stable_s": 0, **more},
    )


def test_a_batch_of_a_rack_is_admitted_by_one_token_unless_it_shares_a_partition_or_replicas_are_moved():
    with racks_of_two() as (_brokers, nodes, connections):
        servers.wait_for(lambda: is_healthy(nodes, connections), 60, "all replicas in sync")
        assert "single-0" in admission(nodes, connections, "b1", "b2")["progress"]  # not accepted
        word = plain_restart.token(["single-0"])
        admitted = admission(nodes, connections, "b1", "b2", accept=[word])
        assert admitted["done"] and admitted["gate_token"]["hosts"] == {"b1": "broker-1", "b2": "broker-2"}, admitted
        # The time counts from a reading before the admission, if every condition holds in it
        after = {"accept": [word], "state": "watched", "stable_s": 60}  # the restart of one batch, before the next one
        plan = {"batches": [["b3", "b4"], ["b1", "b2"]]}
        begun = admission(nodes, connections, "b3", "b4", plan=plan, **after)["carry"]
        assert begun["since"] and not begun["trouble"], begun
        served = admission(nodes, connections, "b1", "b2", accept=[word], stable_s=60, carry={**begun, "since": 1})
        assert served["done"] and served["waited_s"] < 60, served
        closed = admission(nodes, connections, "b1", "b2", plan={"batches": plan["batches"][::-1]}, **after)["carry"]
        assert closed["since"] is None and "one_rack-0" in closed["trouble"], closed
        # What an operator has raised since the plan was made counts
        admin = ClusterAdmin(connections.bootstrap, connections.client, 5, None)
        least, spread = {"min_isr": {"spread": 1, "one_rack": 1, "single": 1}}, (admin_requests.TOPIC, "spread")
        assert admin.alter_configs({spread: {"min.insync.replicas": "2"}}) == {}
        raised = admission(nodes, connections, "b1", "b2", accept=[word], plan=least)
        assert "spread-" in raised["progress"] and "gate_token" not in raised, raised
        assert admin.alter_configs({spread: {"min.insync.replicas": None}}) == {}

        refused = admission(nodes, connections, "b3", "b4", accept=[word])
        assert "the batch cannot stop at once: one_rack-0" in refused["progress"] and "gate_token" not in refused

        producer = Producer({"bootstrap.servers": bootstrap(connections)})
        for _number in range(200):  # more than one fetch of a follower, which no throttle divides
            producer.produce("single", os.urandom(100_000), partition=0)
        assert producer.flush(60) == 0
        admin = ClusterAdmin(connections.bootstrap, connections.client, 5, None)
        slow = {
            (admin_requests.TOPIC, "single"): {"leader.replication.throttled.replicas": "*"},
            (admin_requests.BROKER, "2"): {"leader.replication.throttled.rate": "1000"},
        }
        assert admin.alter_configs(slow) == {}
        assert admin.reassign({("single", 0): [4]}) == {("single", 0): None}
        assert admin.in_flight()
        # The replica that is added is out of sync, which keeps the batch up as well
        moving = admission(nodes, connections, "b1", accept=[word])
        assert admin.in_flight() and not moving["done"] and "gate_token" not in moving, moving
        found = rolling_restart.check_reassignments(
            SimpleNamespace(connections=connections, params={"cluster_id": None})
        )
        assert found[0].startswith("1 partitions are being reassigned: single-0")
        assert admin.reassign({("single", 0): None}) == {("single", 0): None}
        servers.wait_for(lambda: not admin.in_flight(), 60, "the reassignment to be cancelled")
        assert admission(nodes, connections, "b1", accept=[word])["done"]
