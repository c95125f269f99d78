# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A broker that loses its thread for AlterPartition when KRaft's controllers go: what the cluster shows of it, that it
is told from a leader that works, and that its restart mends it."""

from __future__ import annotations

import contextlib
import json
import pathlib
import types

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils import zk_controller_restore
from ansible_collections.quorumshift.kafka.plugins.module_utils.addresses import parse_zookeeper_connect
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import restart, stuck_leaders, zk_controller
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import (
    metadata_image,
    metadata_log,
    metadata_summary,
    znodes,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.probe_module import ProbeModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import cluster, log_ends, topics
from ansible_collections.quorumshift.kafka.plugins.module_utils.security import Security, ZkSecurity
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


def whole(client):
    return set(state(client)["isr"]) == {1, 2}


def restarted(broker, changes):
    broker.stop()
    broker.configure(changes)
    broker.start()


def produced(bootstrap, count):
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for number in range(count):
        producer.produce(TOPIC, str(number).encode())
    assert producer.flush(60) == 0


@contextlib.contextmanager
def beyond_kraft():
    """Yields (brokers, ZooKeeper client, Connections, changes to plain mode) when KRaft's controllers are gone and
    ZooKeeper's is elected. The brokers are in migration mode, and the one that leads lost its thread meanwhile."""
    with servers.workdir("stuck_leader") as home, servers.zookeeper(home) as ensemble:
        connect = f"{ensemble.connect}/kafka"
        taken = home / "taken"
        settings = {"metric.reporters": "TakenMetrics", "taken.metrics.when": str(taken)}
        classes = servers.compiled(TAKEN, home)
        with contextlib.ExitStack() as stack:
            whole_offsets = {"offsets.topic.replication.factor": "2"}
            brokers = {one: stack.enter_context(servers.zk_broker(home, one, connect, whole_offsets)) for one in (1, 2)}
            bootstrap = ",".join(str(broker.address) for broker in brokers.values())
            admin = AdminClient({"bootstrap.servers": bootstrap})
            servers.wait_for(lambda: servers.settled(admin, 2), 60, "both brokers to know the controller")
            admin.create_topics([NewTopic(TOPIC, 1, 2)])[TOPIC].result(60)
            client = KazooClient(hosts=connect)
            client.start(timeout=10)
            stack.callback(client.close)
            stack.callback(client.stop)
            servers.wait_for(lambda: client.exists(STATE) and whole(client), 60, "both replicas in sync")
            with servers.migrating_controllers(home, connect) as quorum:
                for broker in brokers.values():
                    broker.add_classes(classes)
                    restarted(broker, {**quorum.to_migration, **settings})
                    servers.wait_for(lambda: whole(client), 60, "both replicas in sync")
                servers.wait_for(lambda: mirrored(client) > 0, 60, "the copy")
                # its clients for a controller of ZooKeeper are made anew for KRaft's, at the next request at the latest
                led = state(client)["leader"]
                restarted(brokers[3 - led], {})
                servers.wait_for(lambda: whole(client) and state(client)["leader"] == led, 60, "both replicas in sync")
                taken.touch()
                for controller in quorum.controllers:
                    controller.stop()
            directory = f"{quorum.controllers[0].properties['log.dirs']}/__cluster_metadata-0"
            records = metadata_log.read_records(directory, types=metadata_image.TOPIC_TYPES)
            epochs = metadata_image.Image.of(records).partition_epochs()
            last = metadata_summary.summarise(directory)["last_epoch"]
            zk_controller_restore.restore_zk_controller(client, [last], epochs, 10, 60)
            plain = dict.fromkeys(quorum.to_migration)
            plain["zookeeper.connect"] = connect
            tool = cluster.Connections(
                tuple(broker.address for broker in brokers.values()),
                Security.from_options(None, "client"),
                Security.from_options(None, "controller_client"),
                parse_zookeeper_connect(connect),
                ZkSecurity.from_options(None, "zookeeper_client"),
                5,
            )
            yield brokers, client, tool, plain


def mirrored(client):
    return json.loads(client.get(znodes.MIGRATION)[0])["kraft_metadata_offset"]


def end(address, tool):
    return log_ends.read(address, tool.client, [(TOPIC, 0)], 5).get((TOPIC, 0))


def admission(tool):
    """rolling_restart's judgement of a look's facts, with the memory that a wait of its has."""
    module = types.SimpleNamespace(connections=tool, same={})
    module.lasted = types.MethodType(ProbeModule.lasted, module)

    def admits(facts):
        def health(topics, stop):
            return restart.troubles(topics, {TOPIC: 1}, [1, 2], (), stop, [])

        return rolling_restart.leader_first(module, facts, {TOPIC: 1}, health, health(facts["topics"], None))

    return admits


def unclean(tool, value):
    admin = topics.admin(tool.bootstrap, tool.client, 10)
    entry = ConfigEntry(topics.UNCLEAN, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, TOPIC, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(30)


def test_a_leader_that_takes_no_replica_back_is_told_and_its_restart_mends_it(monkeypatch):
    monkeypatch.setattr(stuck_leaders, "PROVED_S", 5.0)
    with beyond_kraft() as (brokers, client, tool, plain):
        led = state(client)["leader"]
        leader, follower = brokers[led], brokers[3 - led]
        servers.wait_for(lambda: leader.printed(ENDED), 60, f"{leader.name} to lose its thread")
        bootstrap = str(leader.address)
        produced(bootstrap, 10)
        nodes = {
            broker.name: {"role": "broker", "node_id": one, "address": str(broker.address)}
            for one, broker in brokers.items()
        }

        def held():
            facts = cluster.collect(nodes, tool)
            assert facts["topics"]["reached"], facts["topics"]
            assert zk_controller.elected(facts["zookeeper"]["controller"])
            assert not zk_controller.fenced(facts["zookeeper"])
            return facts, stuck_leaders.held_out(facts["nodes"], facts["topics"])

        assert held()[1] == []
        restarted(follower, plain)
        produced(bootstrap, 10)
        facts, found = servers.wait_for(lambda: seen if (seen := held())[1] else None, 30, "the replica out of sync")
        orders = next(one for one in found if one.topic == TOPIC)
        assert orders == stuck_leaders.HeldOut(TOPIC, 0, led, (3 - led,), (led,))
        for broker in (leader, follower):
            servers.wait_for(lambda address=broker.address: end(address, tool) == 20, 30, f"{broker.name} to have all")
        for _gather in range(10):  # it never comes back, though it has everything, also of what is written now
            produced(bootstrap, 1)
            facts, found = held()
            assert orders in log_ends.caught_up(found, facts["nodes"], tool)

        admits = admission(tool)
        why, first = admits(held()[0])
        assert first is None and "1 partition under-replicated: orders-0" in why and "lasts 5 s" in why[-1]
        unclean(tool, "true")
        servers.wait_for(lambda: "unclean.leader.election.enable=false" in admits(held()[0])[0][-1], 30, "a refusal")
        unclean(tool, "false")
        why, first = servers.wait_for(
            lambda: reported if (reported := admits(held()[0]))[1] else None, 30, "the admission"
        )
        assert why == [] and (first["host"], first["alone"]) == (leader.name, ["orders-0"])

        restarted(leader, plain)
        servers.wait_for(lambda: whole(client), 60, "both replicas in sync")
        assert held()[1] == [] and end(leader.address, tool) == 30
