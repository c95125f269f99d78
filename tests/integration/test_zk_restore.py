# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An emptied ZooKeeper is restored for two real brokers without the loss of an acknowledged record."""

from __future__ import annotations

import json
import os

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rollback.restore_plan import Replica
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.records import replica_log
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write import restoring, taking
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write.zk_writing import WriteError
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, NewTopic
from kazoo.client import KazooClient

from tests.integration import servers

pytestmark = pytest.mark.real

EMPTIED = ("/brokers/topics", "/config/topics", "/config/users", "/config/brokers")
STATE = "/brokers/topics/orders/partitions/0/state"
CONFIG = {"retention.ms": "-1", "cleanup.policy": "compact"}


def disks(*brokers):
    """Return {partition: replicas on the brokers' disks}."""
    replicas = {}
    for broker in brokers:
        for log_dir in broker.properties["log.dirs"].split(","):
            for name in os.listdir(log_dir):
                partition = replica_log.partition_of(name)
                if partition:
                    log = replica_log.read(os.path.join(log_dir, name))
                    replicas.setdefault(partition, []).append(Replica(broker.node_id, *log))
    return replicas


def produce(brokers, topic, partitions, text, count=40):
    """Produce records with acks=all."""
    producer = Producer({"bootstrap.servers": brokers, "acks": "all", "linger.ms": 0})
    for number in range(count):
        producer.produce(topic, f"{text} {number}", str(number), partition=number % partitions)
    assert producer.flush(40) == 0


def consume(brokers, topic, partitions):
    """Return a topic's sorted (partition, value) pairs up to its end, and its end offsets."""
    reader = Consumer({"bootstrap.servers": brokers, "group.id": "reader", "auto.offset.reset": "earliest"})
    assigned = [TopicPartition(topic, number, 0) for number in range(partitions)]
    ends = [end_offset(reader, partition) for partition in assigned]
    reader.assign(assigned)
    values = []
    while sum(position.offset for position in reader.position(assigned) if position.offset > 0) < sum(ends):
        values += [(record.partition(), record.value()) for record in reader.consume(100, 1) if record.error() is None]
    reader.close()
    return sorted(values), ends


def end_offset(reader, partition):
    """Return a partition's end offset. A broker names itself in metadata before it leads."""

    def read():
        try:
            return reader.get_watermark_offsets(partition, timeout=20)[1:]
        except KafkaException as e:
            if e.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION:
                raise
            return None

    return servers.wait_for(read, 30, f"the end offset of {partition.topic}-{partition.partition}")[0]


def empty(client):
    """Leave ZooKeeper as KRaft's first reconciliation over a stale /migration does: no metadata, KRaft's znodes."""
    for path in EMPTIED:
        for name in client.get_children(path):
            client.delete(f"{path}/{name}", recursive=True)
    client.create("/migration", json.dumps({"version": 0, "kraft_metadata_offset": 500}).encode())
    client.create("/controller", json.dumps({"version": 2, "brokerid": 3001, "kraftControllerEpoch": 9}).encode())


def test_an_emptied_zookeeper_is_restored_without_loss():
    with servers.workdir("zk_restore") as home, servers.zookeeper(home) as ensemble:
        connect = f"{ensemble.connect}/prod/kafka"
        settings = {"offsets.topic.replication.factor": "2", "auto.create.topics.enable": "false"}
        with servers.zk_broker(home, 1, connect, settings) as first, servers.zk_broker(
            home, 2, connect, settings
        ) as second:
            brokers = f"{first.address},{second.address}"
            admin = AdminClient({"bootstrap.servers": brokers})
            topics = [NewTopic("orders", 3, 2, config=CONFIG), NewTopic("late", 1, 2)]
            servers.wait_for(lambda: servers.knows_controller(admin, 2), 60, "two brokers and a controller")
            servers.create_topics(admin, topics)
            threads = ConfigEntry("log.cleaner.threads", "2", incremental_operation=AlterConfigOpType.SET)
            resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[threads])
            admin.incremental_alter_configs([resource])[resource].result(60)
            servers.wait_for(lambda: servers.in_sync(admin, "orders", 2), 20, "replicas in sync")
            produce(brokers, "orders", 3, "before")
            client = KazooClient(hosts=connect)
            client.start(timeout=10)
            taking.take(client, str(home / "private" / "backup.gz"), connect, "test")

            # after the backup leaders change, one replica lags, and topics change
            second.stop()
            produce(brokers, "orders", 3, "while one replica was down")
            second.start()
            servers.wait_for(lambda: servers.in_sync(admin, "orders", 2), 30, "replicas in sync")
            first.stop()
            produce(brokers, "orders", 3, "under other leaders")
            first.start()
            servers.wait_for(lambda: servers.in_sync(admin, "orders", 2), 30, "replicas in sync")
            admin.create_partitions([NewPartitions("late", 2)])["late"].result(60)
            servers.create_topics(admin, [NewTopic("newest", 2, 2)])
            servers.wait_for(
                lambda: servers.in_sync(admin, "newest", 2) and servers.in_sync(admin, "late", 2),
                30,
                "replicas in sync",
            )
            produce(brokers, "late", 2, "after the backup")
            produce(brokers, "newest", 2, "after the backup")
            first.stop()
            produce(brokers, "orders", 3, "on one replica alone")
            written, ends = consume(brokers, "orders", 3)
            assert len(written) == 160
            states = [znodes.partition_state_path("orders", number) for number in range(3)]
            epochs = [znodes.partition_state(client.get(path)[0], path)["leader_epoch"] for path in states]
            second.stop()
            empty(client)
            assert client.get_children("/brokers/topics") == []

            cluster_id = znodes.cluster_id(client.get(znodes.CLUSTER_ID)[0])
            result = restoring.Restore(client, str(home / "private" / "backup.gz"), cluster_id).write(
                disks(first, second), [9]
            )
            assert [name for name in result["from_disks"] if name[0] != "_"] == ["late", "newest"]
            restore = restoring.Restore(client, str(home / "private" / "backup.gz"), cluster_id)
            result = restore.write(disks(first, second), [9])  # as after an interrupted restore
            assert result["from_disks"] == []
            assert restore.missing == [] and result["without_data"] == []
            assert not client.exists("/migration") and not client.exists("/controller")
            assert int(client.get("/controller_epoch")[0]) == result["controller_epoch"] > 9
            for path, epoch in zip(states, epochs):
                state = znodes.partition_state(client.get(path)[0], path)
                assert state["isr"] == [2] and state["leader"] == 2 and state["leader_epoch"] > epoch
                assert state["controller_epoch"] == result["controller_epoch"]
            first.start()
            second.start()
            servers.wait_for(lambda: servers.in_sync(admin, "orders", 2), 60, "replicas in sync")
            assert consume(brokers, "orders", 3) == (written, ends)
            produce(brokers, "orders", 3, "afterwards")
            assert len(consume(brokers, "orders", 3)[0]) == 200
            configs = ConfigResource(ConfigResource.Type.TOPIC, "orders")
            described = admin.describe_configs([configs])[configs].result(60)
            assert {key: described[key].value for key in CONFIG} == CONFIG
            assert client.exists("/config/brokers/1")
            # the backup lacks these topics' newest partitions: they come from the disks
            for topic in ("late", "newest"):
                servers.wait_for(lambda name=topic: servers.in_sync(admin, name, 2), 20, "replicas in sync")
                assert len(consume(brokers, topic, 2)[0]) == 40
            client.stop()


def test_a_restore_keeps_later_changes(tmp_path):
    """It adds what is missing, and overwrites and deletes nothing."""
    with servers.workdir("zk_restore_kept") as home, servers.zookeeper(home) as ensemble:
        client = KazooClient(hosts=ensemble.connect)
        client.start(timeout=10)
        topic = {"version": 3, "topic_id": "rEkb6zsIRuC1dqhNSBF0Nw", "partitions": {"0": [1]}}
        put(client, "/cluster/id", {"version": "1", "id": "c"})
        put(client, "/brokers/topics/orders", topic)
        put(client, "/config/topics/orders", {"version": 1, "config": {"retention.ms": "1", "segment.ms": "2"}})
        read = {"principal": "User:a", "permissionType": "Allow", "operation": "Read", "host": "*"}
        put(client, "/kafka-acl/Topic/orders", {"version": 1, "acls": [read]})
        client.create("/controller_epoch", b"3")
        client.create("/brokers/ids/1", b"{}", ephemeral=True, makepath=True)
        path = tmp_path / "private" / "backup.gz"
        taking.take(client, str(path), ensemble.connect, "test")
        two = {"0": [1], "1": [2]}
        put(client, "/brokers/topics/orders", {**topic, "partitions": two})
        put(client, "/config/topics/orders", {"version": 1, "config": {"retention.ms": "9"}})
        put(client, "/kafka-acl/Topic/orders", {"version": 1, "acls": [{**read, "principal": "User:b"}]})
        client.delete("/brokers/ids/1")

        restore = restoring.Restore(client, str(path), "c")
        assert restore.counts() == {"missing": {}, "completed": {"topic_config": 1, "acl": 1}, "partitions": 2}
        result = restore.write({}, [])
        assert result["without_data"] == ["orders-0", "orders-1"]
        tree = {node.path: node.data for node in zookeeper.read_tree(client)}
        config = {"retention.ms": "9", "segment.ms": "2"}
        assert json.loads(tree["/config/topics/orders"])["config"] == config
        assert json.loads(tree["/brokers/topics/orders"])["partitions"] == two
        principals = [entry["principal"] for entry in json.loads(tree["/kafka-acl/Topic/orders"])["acls"]]
        assert principals == ["User:b", "User:a"]
        assert "/brokers/ids/1" not in tree
        assert restoring.Restore(client, str(path), "c").missing == []
        client.stop()


@pytest.fixture
def small(tmp_path):
    """(client, path of a backup): a topic, a user and an ACL, and the user and the partition's state are lost since."""
    with servers.workdir("zk_restore_small") as home, servers.zookeeper(home) as ensemble:
        client = KazooClient(hosts=ensemble.connect)
        client.start(timeout=10)
        put(client, "/cluster/id", {"version": "1", "id": "c"})
        put(
            client,
            "/brokers/topics/orders",
            {"version": 3, "topic_id": "rEkb6zsIRuC1dqhNSBF0Nw", "partitions": {"0": [1]}},
        )
        put(client, STATE, {"controller_epoch": 3, "leader": 1, "version": 1, "leader_epoch": 0, "isr": [1]})
        put(client, "/config/users/ann", {"version": 1, "config": {"SCRAM-SHA-512": "salt=a,stored_key=b"}})
        client.create("/controller_epoch", b"3")
        path = str(tmp_path / "private" / "backup.gz")
        taking.take(client, path, ensemble.connect, "test")
        client.delete("/config/users/ann")
        client.delete(STATE)
        yield client, path
        client.stop()


def test_users_that_come_back_are_named(small):
    client, path = small
    restore = restoring.Restore(client, path, "c")
    assert restore.revived == ["SCRAM-SHA-512 credential of user ann"]
    restore.write({}, [])
    assert restoring.Restore(client, path, "c").revived == []


@pytest.mark.parametrize("ephemeral", [False, True])
def test_a_state_that_appears_meanwhile_is_not_kept(small, ephemeral):
    client, path = small
    restore = restoring.Restore(client, path, "c")
    state = json.dumps({"controller_epoch": 9, "leader": 2, "version": 1, "leader_epoch": 0, "isr": [2]}).encode()
    client.create(STATE, state, ephemeral=ephemeral)
    with pytest.raises(WriteError, match=f"{STATE} changed while ZooKeeper was restored: another process writes"):
        restore.write({}, [])
    if ephemeral:
        client.delete(STATE)
    restoring.Restore(client, path, "c").write({}, [])
    assert json.loads(client.get(STATE)[0])["controller_epoch"] > (3 if ephemeral else 9)


@pytest.mark.parametrize("path", ["/brokers/topics/orders/partitions/0/state", "/controller_epoch"])
def test_a_znode_that_changes_meanwhile_is_not_overwritten(small, path):
    client, backup = small
    restoring.Restore(client, backup, "c").write({}, [])
    restore = restoring.Restore(client, backup, "c")
    put_all = restore._put

    def changed_before(writes):
        if path in [write.path for write in writes]:
            client.set(path, b'{"x": 1}')
        put_all(writes)

    restore._put = changed_before
    with pytest.raises(WriteError, match=f"{path} changed while ZooKeeper was restored"):
        restore.write({}, [])


def test_metadata_that_the_backup_lacks_and_live_processes_are_named(small):
    client, path = small
    assert restoring.Restore(client, path, "c").later == []
    put(
        client, "/brokers/topics/newest", {"version": 3, "topic_id": "AAAAAAAAAAAAAAAAAAAAAA", "partitions": {"0": [1]}}
    )
    client.ensure_path("/isr_change_notification/isr_change_0000000001")
    client.ensure_path("/another/application")
    client.create("/config/users/bob", b"{}", ephemeral=True)
    restore = restoring.Restore(client, path, "c")
    assert restore.later == ["/brokers/topics/newest", "/config/users/bob"]
    assert restore.alive() == ["/config/users/bob"]
    client.create("/controller", b"{}", ephemeral=True)
    assert restore.alive() == ["/controller", "/config/users/bob"]


def put(client, path, value):
    client.ensure_path(path)
    client.set(path, json.dumps(value).encode())
