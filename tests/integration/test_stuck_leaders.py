# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A broker that loses its AlterPartition thread when KRaft's controllers stop: how the cluster shows it, how it differs
from a working leader, and that its restart fixes it."""

from __future__ import annotations

import contextlib
import json
import pathlib
import types

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import cluster_health
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import zk_controller
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.restart import stuck_leaders
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import (
    metadata_image,
    metadata_log,
    metadata_summary,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.probe_module import ProbeModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import cluster, log_ends, topics
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write import zk_controller_restore
from ansible_collections.quorumshift.kafka.plugins.modules import rolling_restart
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic
from kazoo.client import KazooClient

from tests.integration import servers

pytestmark = pytest.mark.real

TOPIC = "orders"
STATE = znodes.partition_state_path(TOPIC, 0)
ENDED = "alter-partition-channel-manager]: Error due to"
TAKEN = pathlib.Path(__file__).with_name("TakenMetrics.java")


def state(client):
    return json.loads(client.get(STATE)[0])


def in_sync(client):
    return set(state(client)["isr"]) == {1, 2}


def restart_broker(broker, changes):
    broker.stop()
    broker.configure(changes)
    broker.start()


def produce(bootstrap, count):
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for number in range(count):
        producer.produce(TOPIC, str(number).encode())
    assert producer.flush(60) == 0


@contextlib.contextmanager
def restored_zk_controller():
    """Yield (brokers, ZooKeeper client, Connections, settings of plain mode) after ZooKeeper's controller is restored.

    The brokers are in migration mode, and the leader's AlterPartition thread has ended.
    """
    with servers.workdir("stuck_leader") as home, servers.zookeeper(home) as ensemble:
        connect = f"{ensemble.connect}/kafka"
        taken = home / "taken"
        settings = {"metric.reporters": "TakenMetrics", "taken.metrics.when": str(taken)}
        classes = servers.compile_java(TAKEN, home)
        with contextlib.ExitStack() as stack:
            offsets = {"offsets.topic.replication.factor": "2"}
            brokers = {n: stack.enter_context(servers.zk_broker(home, n, connect, offsets)) for n in (1, 2)}
            bootstrap = ",".join(str(broker.address) for broker in brokers.values())
            admin = AdminClient({"bootstrap.servers": bootstrap})
            servers.wait_for(lambda: servers.knows_controller(admin, 2), 60, "both brokers to know the controller")
            servers.create_topics(admin, [NewTopic(TOPIC, 1, 2)])
            client = KazooClient(hosts=connect)
            client.start(timeout=10)
            stack.callback(client.close)
            stack.callback(client.stop)
            servers.wait_for(lambda: client.exists(STATE) and in_sync(client), 60, "both replicas in sync")
            with servers.migrating_controllers(home, connect) as quorum:
                for broker in brokers.values():
                    broker.add_classes(classes)
                    restart_broker(broker, {**quorum.to_migration, **settings})
                    servers.wait_for(lambda: in_sync(client), 60, "both replicas in sync")
                servers.wait_for(lambda: offset(client) > 0, 60, "the initial copy")
                # at the next request at the latest, brokers replace their clients of ZooKeeper's controller by KRaft's
                leader = state(client)["leader"]
                restart_broker(brokers[3 - leader], {})
                servers.wait_for(lambda: in_sync(client) and state(client)["leader"] == leader, 60, "the same leader")
                taken.touch()
                for controller in quorum.controllers:
                    controller.stop()
            directory = f"{quorum.controllers[0].properties['log.dirs']}/__cluster_metadata-0"
            records = metadata_log.read_records(directory, types=metadata_image.TOPIC_TYPES)
            epochs = metadata_image.Image.from_records(records).partition_epochs()
            last_epoch = metadata_summary.summarise(directory)["last_epoch"]
            cluster_id = znodes.cluster_id(client.get(znodes.CLUSTER_ID)[0])
            zk_controller_restore.restore_zk_controller(client, cluster_id, [last_epoch], epochs, 10, 60)
            plain = dict.fromkeys(quorum.to_migration)
            plain["zookeeper.connect"] = connect
            connections = servers.connections([broker.address for broker in brokers.values()], connect)
            yield brokers, client, connections, plain


def offset(client):
    return json.loads(client.get(znodes.MIGRATION)[0])["kraft_metadata_offset"]


def end(address, connections):
    return log_ends.read(address, connections.client, [(TOPIC, 0)], 5).get((TOPIC, 0))


def admission(connections):
    """Return rolling_restart's decision on gathered facts; it remembers earlier facts, as the module's wait does."""
    module = types.SimpleNamespace(connections=connections, same={})
    module.seen_for = types.MethodType(ProbeModule.seen_for, module)

    def admits(facts):
        def health(topics, stop):
            return cluster_health.troubles(topics, {TOPIC: 1}, [1, 2], (), stop, [])

        return rolling_restart.choose_stuck_leader(module, facts, {TOPIC: 1}, health, health(facts["topics"], None))

    return admits


def set_unclean_election(connections, value):
    admin = topics.admin(connections.bootstrap, connections.client, 10)
    entry = ConfigEntry(topics.UNCLEAN, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, TOPIC, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(30)


def test_a_stuck_leader_is_detected_and_its_restart_fixes_it(monkeypatch):
    monkeypatch.setattr(stuck_leaders, "PROVED_S", 5.0)
    with restored_zk_controller() as (brokers, client, connections, plain):
        leader_id = state(client)["leader"]
        leader, follower = brokers[leader_id], brokers[3 - leader_id]
        servers.wait_for(lambda: leader.printed(ENDED), 60, f"{leader.name} to lose its thread")
        bootstrap = str(leader.address)
        produce(bootstrap, 10)
        nodes = {
            broker.name: {"role": "broker", "node_id": broker_id, "address": str(broker.address)}
            for broker_id, broker in brokers.items()
        }

        def held_out():
            facts = cluster.collect(nodes, connections)
            assert facts["topics"]["reached"], facts["topics"]
            assert zk_controller.is_elected(facts["zookeeper"]["controller"])
            assert not zk_controller.is_fenced(facts["zookeeper"])
            return facts, stuck_leaders.find_held_out(facts["nodes"], facts["topics"])

        assert held_out()[1] == []
        restart_broker(follower, plain)
        produce(bootstrap, 10)
        facts, replicas = servers.wait_for(lambda: r if (r := held_out())[1] else None, 30, "the replica out of sync")
        orders = next(replica for replica in replicas if replica.topic == TOPIC)
        assert orders == stuck_leaders.HeldOut(TOPIC, 0, leader_id, (3 - leader_id,), (leader_id,))
        for broker in (leader, follower):
            servers.wait_for(lambda address=broker.address: end(address, connections) == 20, 30, f"{broker.name}'s end")
        for _gather in range(10):  # the replica stays out of sync though it has every record
            produce(bootstrap, 1)
            facts, replicas = held_out()
            assert orders in log_ends.find_caught_up(replicas, facts["nodes"], connections)

        admits = admission(connections)
        reasons, first = admits(held_out()[0])
        assert (
            first is None
            and "1 partition under-replicated: orders-0 (QS-GATE-005)" in reasons
            and "lasts 5 s" in reasons[-1]
        )
        set_unclean_election(connections, "true")
        servers.wait_for(lambda: "unclean.leader.election.enable=false" in admits(held_out()[0])[0][-1], 30, "a reason")
        set_unclean_election(connections, "false")
        reasons, first = servers.wait_for(lambda: a if (a := admits(held_out()[0]))[1] else None, 30, "the admission")
        assert reasons == [] and (first["host"], first["alone"]) == (leader.name, ["orders-0"])

        restart_broker(leader, plain)
        servers.wait_for(lambda: in_sync(client), 60, "both replicas in sync")
        assert held_out()[1] == [] and end(leader.address, connections) == 30
