# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ZooKeeper handed back to two real brokers after KRaft's marks were set in it: a controller is elected, and elects."""

from __future__ import annotations

import contextlib
import json

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils import zk_controller_restore
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import rollback, zk_controller
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import zookeeper
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
    """Yields (two brokers, admin client, ZooKeeper client), with a topic whose state carries KRaft's epoch; `restarts`
    of the follower before that make two changes of it each."""
    with servers.workdir(name) as home, servers.zookeeper(home) as ensemble:
        connect = f"{ensemble.connect}/prod/kafka"
        whole = {"offsets.topic.replication.factor": "2"}
        with servers.zk_broker(home, 1, connect, whole) as one, servers.zk_broker(home, 2, connect, whole) as two:
            admin = AdminClient({"bootstrap.servers": f"{one.address},{two.address}"})
            servers.wait_for(lambda: servers.settled(admin, 2), 60, "both brokers to know the controller")
            admin.create_topics([NewTopic(TOPIC, 1, 2)])[TOPIC].result(60)
            servers.wait_for(lambda: servers.in_sync(admin, TOPIC, 2), 60, "both replicas in sync")
            client = KazooClient(hosts=connect)
            client.start(timeout=10)
            brokers = {1: one, 2: two}
            try:
                for _restart in range(restarts):
                    restarted(brokers[3 - leader(client)])
                    servers.wait_for(lambda: isr(client) == {1, 2}, 60, "both replicas in sync")
                take(client)
                yield brokers, admin, client
            finally:
                client.stop()
                client.close()


def take(client):
    """What KRaft's controllers leave when they are stopped."""
    client.create(znodes.MIGRATION, json.dumps({"version": 0, "kraft_metadata_offset": 500}).encode())
    owner = json.dumps({"version": 2, "brokerid": 3001, "timestamp": "1", "kraftControllerEpoch": EPOCH}).encode()
    transaction = client.transaction()
    transaction.delete(znodes.CONTROLLER)
    transaction.create(znodes.CONTROLLER, owner)
    assert all(done is True or isinstance(done, str) for done in transaction.commit())
    state = json.loads(client.get(STATE)[0])
    client.set(STATE, json.dumps({**state, "controller_epoch": EPOCH}).encode())


def has_a_state(client, topic):
    return client.exists(znodes.partition_state_path(topic, 0)) is not None


def made(client, admin, topic):
    """A topic is made, by whoever is the controller: right after an election brokers and clients know another one."""

    def stands():
        with contextlib.suppress(KafkaException):
            admin.list_topics(timeout=10)  # the client asks whom it took for the controller until it looks again
            # the broker answers when the topic has leaders, which it may never get
            admin.create_topics([NewTopic(topic, 1, 2)], request_timeout=10)[topic].result(20)
        return client.exists(znodes.topic_path(topic))

    servers.wait_for(stands, 60, f"{topic} to be made")


def led_from_its_making(client, admin, topic):
    made(client, admin, topic)
    servers.wait_for(lambda: has_a_state(client, topic), 60, f"a state of {topic}")


def restarted(broker):
    broker.stop()
    broker.start()


def isr(client):
    return set(json.loads(client.get(STATE)[0])["isr"])


def leader(client):
    return json.loads(client.get(STATE)[0])["leader"]


def test_a_controller_is_elected_that_can_elect():
    with under_kraft("restore_zk_controller") as (brokers, _admin, client):
        before = int(client.get(znodes.CONTROLLER_EPOCH)[0])
        assert before < EPOCH
        dry = zk_controller_restore.restore_zk_controller(client, [EPOCH - 1, None], {}, 10, 30, dry=True)
        assert (
            dry["changed"] and client.exists(znodes.MIGRATION) and int(client.get(znodes.CONTROLLER_EPOCH)[0]) == before
        )

        reported = zk_controller_restore.restore_zk_controller(client, [EPOCH - 1, None], {}, 10, 30)
        assert reported["controller_epoch"] == EPOCH + 1 and reported["deleted"] == [
            znodes.CONTROLLER,
            znodes.MIGRATION,
        ]
        assert reported["elected"] in brokers and client.get(znodes.CONTROLLER)[1].ephemeralOwner
        assert int(client.get(znodes.CONTROLLER_EPOCH)[0]) == EPOCH + 2
        again = zk_controller_restore.restore_zk_controller(client, [EPOCH - 1, None], {}, 10, 30)
        assert not again["changed"] and again["deleted"] == []

        led = leader(client)
        brokers[led].stop()
        servers.wait_for(lambda: leader(client) == 3 - led, 60, "the other replica to lead")
        assert json.loads(client.get(STATE)[0])["controller_epoch"] > EPOCH


def test_why_the_epoch_is_raised(monkeypatch):
    """KAFKA-20488: below the state's epoch the controller is elected, and elects no leader."""
    low = rollback.restore_zk_controller
    monkeypatch.setattr(rollback, "restore_zk_controller", lambda *args: low(*args)._replace(controller_epoch=None))
    with under_kraft("restore_low") as (brokers, _admin, client):
        elected = zk_controller_restore.restore_zk_controller(client, [EPOCH], {}, 10, 30)["elected"]
        led = leader(client)
        brokers[led].stop()
        other = brokers[3 - led]
        refused = "the LeaderAndIsr path was already written by another controller"
        servers.wait_for(lambda: other.printed(refused) or brokers[elected].printed(refused), 60, refused)
        assert leader(client) == led


def test_a_controller_that_was_elected_goes_on_working_when_it_is_handed_back_once_more():
    """Its own states carry its epoch by then."""
    with under_kraft("restore_again") as (_brokers, admin, client):
        first = zk_controller_restore.restore_zk_controller(client, [EPOCH], {}, 10, 30)
        led_from_its_making(client, admin, "made.since")
        again = zk_controller_restore.restore_zk_controller(client, [EPOCH], {}, 10, 30)
        assert not again["changed"] and again["elected"] == first["elected"]
        led_from_its_making(client, admin, "made.then")


def test_a_controller_that_can_write_nothing_is_replaced():
    with under_kraft("restore_fenced") as (_brokers, admin, client):
        zk_controller_restore.restore_zk_controller(client, [EPOCH], {}, 10, 30)
        led_from_its_making(client, admin, "made.since")
        client.set(znodes.CONTROLLER_EPOCH, str(EPOCH + 9).encode())
        assert zk_controller.fenced(zookeeper.migration_znodes(client))
        made(client, admin, "orphan")
        with pytest.raises(TimeoutError):
            servers.wait_for(lambda: has_a_state(client, "orphan"), 10, "a state of the new topic")
        reported = zk_controller_restore.restore_zk_controller(client, [EPOCH], {}, 10, 30)
        assert reported["deleted"] == [znodes.CONTROLLER]
        assert not zk_controller.fenced(zookeeper.migration_znodes(client))
        servers.wait_for(lambda: has_a_state(client, "orphan"), 60, "a state of the new topic")


@pytest.mark.parametrize("raised", [True, False])
def test_why_versions_are_raised(raised):
    """A leader passes over what ZooKeeper's controller tells it with a version below the partition epoch that it knows,
    and keeps a replica that was restarted out of sync for good. Under KRaft it comes to know such epochs since several
    changes are one write to ZooKeeper; here the state is made anew, so that its version begins at 0."""
    with under_kraft("restore_versions", restarts=2) as (brokers, _admin, client):
        led = leader(client)
        data, stat = client.get(STATE)
        known = stat.version - 1  # the last write was not a controller's
        client.delete(STATE)
        client.create(STATE, data)
        topic_id = znodes.topic(client.get(znodes.topic_path(TOPIC))[0], TOPIC)["topic_id"]
        epochs = {TOPIC: {"topic_id": topic_id, "epochs": {"0": known}}} if raised else {}
        reported = zk_controller_restore.restore_zk_controller(client, [EPOCH], epochs, 10, 30)
        assert reported["raised"] == int(raised) and client.exists(STATE).version == (known if raised else 0)
        restarted(brokers[3 - led])
        if raised:
            servers.wait_for(lambda: isr(client) == {1, 2}, 60, "both replicas in sync")
        else:
            with pytest.raises(TimeoutError):
                servers.wait_for(lambda: isr(client) == {1, 2}, 10, "both replicas in sync")


def test_what_keeps_it_from_being_handed_back_is_told():
    with under_kraft("restore_refused") as (brokers, _admin, client):
        client.set_acls(znodes.CONTROLLER_EPOCH, [make_acl("world", "anyone", read=True, admin=True)])
        with pytest.raises(
            zk_controller_restore.ZkControllerError,
            match=r"^/controller_epoch was not set: its ACL does not allow .* have no controller$",
        ):
            zk_controller_restore.restore_zk_controller(client, [], {}, 10, 30)
        assert not client.get(znodes.CONTROLLER)[1].ephemeralOwner and client.exists(znodes.MIGRATION)
        client.set_acls(znodes.CONTROLLER_EPOCH, [make_acl("world", "anyone", all=True)])
        for broker in brokers.values():
            broker.stop()
        servers.wait_for(lambda: not client.get_children(znodes.BROKER_IDS), 60, "nobody to be registered")
        with pytest.raises(
            zk_controller_restore.ZkControllerError,
            match="Last seen: /controller holds no id, /brokers/ids holds no broker",
        ):
            zk_controller_restore.restore_zk_controller(client, [], {}, 10, 1)
        assert client.exists(znodes.MIGRATION)
