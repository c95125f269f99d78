# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ZooKeeper's controller restored for two real brokers, in a ZooKeeper with KRaft's znodes and epochs."""

from __future__ import annotations

import contextlib
import json

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import zk_controller
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rollback import rollback
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write import zk_controller_restore
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient
from kazoo.security import make_acl

from tests.integration import servers

pytestmark = pytest.mark.real

TOPIC, EPOCH = "orders", 42
STATE = znodes.partition_state_path(TOPIC, 0)


@contextlib.contextmanager
def under_kraft(name, restarts=0):
    """Yield (two brokers, admin client, ZooKeeper client), with a topic whose state has KRaft's epoch.

    Each of the follower's `restarts` before that changes the state twice.
    """
    with servers.workdir(name) as home, servers.zookeeper(home) as ensemble:
        connect = f"{ensemble.connect}/prod/kafka"
        settings = {"offsets.topic.replication.factor": "2"}
        with servers.zk_broker(home, 1, connect, settings) as first, servers.zk_broker(
            home, 2, connect, settings
        ) as second:
            admin = AdminClient({"bootstrap.servers": f"{first.address},{second.address}"})
            servers.wait_for(lambda: servers.knows_controller(admin, 2), 60, "both brokers to know the controller")
            servers.create_topics(admin, [NewTopic(TOPIC, 1, 2)])
            servers.wait_for(lambda: servers.in_sync(admin, TOPIC, 2), 60, "both replicas in sync")
            client = KazooClient(hosts=connect)
            client.start(timeout=10)
            brokers = {1: first, 2: second}
            try:
                for _restart in range(restarts):
                    restart_broker(brokers[3 - leader(client)])
                    servers.wait_for(lambda: isr(client) == {1, 2}, 60, "both replicas in sync")
                write_kraft_znodes(client)
                yield brokers, admin, client
            finally:
                client.stop()
                client.close()


def write_kraft_znodes(client):
    """Write what KRaft's controllers leave in ZooKeeper when they stop."""
    client.create(znodes.MIGRATION, json.dumps({"version": 0, "kraft_metadata_offset": 500}).encode())
    owner = json.dumps({"version": 2, "brokerid": 3001, "timestamp": "1", "kraftControllerEpoch": EPOCH}).encode()
    transaction = client.transaction()
    transaction.delete(znodes.CONTROLLER)
    transaction.create(znodes.CONTROLLER, owner)
    assert all(result is True or isinstance(result, str) for result in transaction.commit())
    state = json.loads(client.get(STATE)[0])
    client.set(STATE, json.dumps({**state, "controller_epoch": EPOCH}).encode())


def cluster_id(client):
    return znodes.cluster_id(client.get(znodes.CLUSTER_ID)[0])


def has_state(client, topic):
    return client.exists(znodes.partition_state_path(topic, 0)) is not None


def create_topic(client, admin, topic):
    """Create a topic, and retry: right after an election brokers and clients may know the old controller."""

    def created():
        with contextlib.suppress(KafkaException):
            servers.metadata(admin)  # refreshes the client's controller
            # the broker responds once the topic has leaders, which may never happen
            admin.create_topics([NewTopic(topic, 1, 2)], request_timeout=10)[topic].result(20)
        return client.exists(znodes.topic_path(topic))

    servers.wait_for(created, 60, f"the creation of {topic}")


def create_led_topic(client, admin, topic):
    create_topic(client, admin, topic)
    servers.wait_for(lambda: has_state(client, topic), 60, f"a state of {topic}")


def restart_broker(broker):
    broker.stop()
    broker.start()


def isr(client):
    return set(json.loads(client.get(STATE)[0])["isr"])


def leader(client):
    return json.loads(client.get(STATE)[0])["leader"]


def test_the_restored_controller_elects_leaders():
    with under_kraft("restore_zk_controller") as (brokers, _admin, client):
        before = int(client.get(znodes.CONTROLLER_EPOCH)[0])
        assert before < EPOCH
        dry = zk_controller_restore.restore_zk_controller(
            client, cluster_id(client), [EPOCH - 1, None], {}, 10, 30, dry=True
        )
        assert dry["changed"] and client.exists(znodes.MIGRATION)
        assert int(client.get(znodes.CONTROLLER_EPOCH)[0]) == before

        result = zk_controller_restore.restore_zk_controller(client, cluster_id(client), [EPOCH - 1, None], {}, 10, 30)
        assert result["controller_epoch"] == EPOCH + 1
        assert result["deleted"] == [znodes.CONTROLLER, znodes.MIGRATION]
        assert result["elected"] in brokers and client.get(znodes.CONTROLLER)[1].ephemeralOwner
        assert int(client.get(znodes.CONTROLLER_EPOCH)[0]) == EPOCH + 2
        again = zk_controller_restore.restore_zk_controller(client, cluster_id(client), [EPOCH - 1, None], {}, 10, 30)
        assert not again["changed"] and again["deleted"] == []

        leader_id = leader(client)
        brokers[leader_id].stop()
        servers.wait_for(lambda: leader(client) == 3 - leader_id, 60, "the other replica to lead")
        assert json.loads(client.get(STATE)[0])["controller_epoch"] > EPOCH


def test_without_a_raised_epoch_no_leader_is_elected(monkeypatch):
    """KAFKA-20488: a controller with an epoch below the state's epoch elects no leader."""
    plan = rollback.restore_zk_controller
    monkeypatch.setattr(rollback, "restore_zk_controller", lambda *args: plan(*args)._replace(controller_epoch=None))
    with under_kraft("restore_low") as (brokers, _admin, client):
        elected = zk_controller_restore.restore_zk_controller(client, cluster_id(client), [EPOCH], {}, 10, 30)[
            "elected"
        ]
        leader_id = leader(client)
        brokers[leader_id].stop()
        other = brokers[3 - leader_id]
        error = "the LeaderAndIsr path was already written by another controller"
        servers.wait_for(lambda: other.printed(error) or brokers[elected].printed(error), 60, error)
        assert leader(client) == leader_id


def test_a_second_restore_keeps_the_working_controller():
    """Partition states have the new controller's epoch by then."""
    with under_kraft("restore_again") as (_brokers, admin, client):
        first = zk_controller_restore.restore_zk_controller(client, cluster_id(client), [EPOCH], {}, 10, 30)
        create_led_topic(client, admin, "created.since")
        again = zk_controller_restore.restore_zk_controller(client, cluster_id(client), [EPOCH], {}, 10, 30)
        assert not again["changed"] and again["elected"] == first["elected"]
        create_led_topic(client, admin, "created.then")


def test_a_fenced_controller_is_replaced():
    with under_kraft("restore_fenced") as (_brokers, admin, client):
        zk_controller_restore.restore_zk_controller(client, cluster_id(client), [EPOCH], {}, 10, 30)
        create_led_topic(client, admin, "created.since")
        client.set(znodes.CONTROLLER_EPOCH, str(EPOCH + 9).encode())
        assert zk_controller.is_fenced(zookeeper.read_migration_znodes(client))
        create_topic(client, admin, "orphan")
        with pytest.raises(TimeoutError):
            servers.wait_for(lambda: has_state(client, "orphan"), 10, "a state of the new topic")
        result = zk_controller_restore.restore_zk_controller(client, cluster_id(client), [EPOCH], {}, 10, 30)
        assert result["deleted"] == [znodes.CONTROLLER]
        assert not zk_controller.is_fenced(zookeeper.read_migration_znodes(client))
        servers.wait_for(lambda: has_state(client, "orphan"), 60, "a state of the new topic")


@pytest.mark.parametrize("raised", [True, False])
def test_only_raised_versions_let_a_replica_into_the_isr(raised):
    """A leader ignores requests of ZooKeeper's controller with a version below the partition epoch that it knows, and
    keeps a restarted replica out of sync. KRaft writes several changes to ZooKeeper at once, so its partition epochs
    are higher; here the state is created again, so that its version begins at 0."""
    with under_kraft("restore_versions", restarts=2) as (brokers, _admin, client):
        leader_id = leader(client)
        data, stat = client.get(STATE)
        known = stat.version - 1  # the last write was the test's
        client.delete(STATE)
        client.create(STATE, data)
        topic_id = znodes.topic(client.get(znodes.topic_path(TOPIC))[0], TOPIC)["topic_id"]
        epochs = {TOPIC: {"topic_id": topic_id, "epochs": {"0": known}}} if raised else {}
        result = zk_controller_restore.restore_zk_controller(client, cluster_id(client), [EPOCH], epochs, 10, 30)
        assert result["raised"] == int(raised) and client.exists(STATE).version == (known if raised else 0)
        restart_broker(brokers[3 - leader_id])
        if raised:
            servers.wait_for(lambda: isr(client) == {1, 2}, 60, "both replicas in sync")
        else:
            with pytest.raises(TimeoutError):
                servers.wait_for(lambda: isr(client) == {1, 2}, 10, "both replicas in sync")


def test_a_failed_restore_is_reported():
    with under_kraft("restore_refused") as (brokers, _admin, client):
        client.set_acls(znodes.CONTROLLER_EPOCH, [make_acl("world", "anyone", read=True, admin=True)])
        with pytest.raises(
            zk_controller_restore.ZkControllerError,
            match=r"^/controller_epoch was not set: its ACL does not allow .* without a controller$",
        ):
            zk_controller_restore.restore_zk_controller(client, cluster_id(client), [], {}, 10, 30)
        assert not client.get(znodes.CONTROLLER)[1].ephemeralOwner and client.exists(znodes.MIGRATION)
        client.set_acls(znodes.CONTROLLER_EPOCH, [make_acl("world", "anyone", all=True)])
        for broker in brokers.values():
            broker.stop()
        servers.wait_for(lambda: not client.get_children(znodes.BROKER_IDS), 60, "the end of all registrations")
        with pytest.raises(
            zk_controller_restore.ZkControllerError,
            match="Last seen: /controller holds no id, /brokers/ids holds no broker",
        ):
            zk_controller_restore.restore_zk_controller(client, cluster_id(client), [], {}, 10, 1)
        assert client.exists(znodes.MIGRATION)
