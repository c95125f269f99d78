# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server's files show what ZooKeeper had when KRaft took over, also of what Kafka rewrote or removed since."""

from __future__ import annotations

import contextlib
import json

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import own_zk_server
from ansible_collections.quorumshift.kafka.plugins.module_utils.snapshots import zk_trees
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kazoo.client import KazooClient
from quorumshift_spark import normal_form as form
from quorumshift_spark.excuses import Copied
from quorumshift_spark.normal_form import Digests
from quorumshift_spark.views import Absent, trees
from quorumshift_spark.views.copy_source import CopySource
from quorumshift_spark.views.zookeeper import ZooKeeperView

from tests.integration import servers

pytestmark = pytest.mark.real
CLUSTER = "Qs7KfZk2TIK1n0nQ5Qm3Tw"
DIGESTS = Digests(b"0123456789abcdef0123456789abcdef")


def created(admin, *topics):
    servers.create_topics(admin, [NewTopic(topic, 1, 1) for topic in topics])


def retained(admin, topic, milliseconds):
    entry = ConfigEntry("retention.ms", str(milliseconds), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(30)


def credential(admin, user, password):
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    admin.alter_user_scram_credentials([UserScramCredentialUpsertion(user, info, password)])[user].result(30)


def migration(client):
    return json.loads(client.get(znodes.MIGRATION)[0]) if client.exists(znodes.MIGRATION) else {}


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """Yield (a function that returns CopySource for a chroot, cluster id and a zxid of before, Copied, the view) of a
    cluster whose clients changed metadata right before and right after the copy."""
    with servers.workdir("copy_source") as home, contextlib.ExitStack() as stack:
        server = stack.enter_context(servers.zookeeper(home))
        connect = f"{server.connect}/kafka"
        broker = stack.enter_context(servers.zk_broker(home, 1, connect))
        admin = AdminClient({"bootstrap.servers": str(broker.address)})
        servers.wait_for(lambda: servers.knows_controller(admin, 1), 60, "the broker to know the controller")
        created(admin, "stays", "changes", "goes", "goes_later", "comes_back")
        for topic in ("changes", "goes"):
            retained(admin, topic, 1000)
        credential(admin, "ann", b"first")
        client = KazooClient(hosts=connect)
        client.start(timeout=10)
        stack.callback(client.close)
        stack.callback(client.stop)
        values = own_zk_server.read_values(str(home / "zookeeper" / "zoo.cfg"))
        known = zk_trees.read_newest(values)
        before = client.last_zxid
        retained(admin, "changes", 2000)
        credential(admin, "ann", b"second")
        for topic in ("goes", "comes_back"):
            admin.delete_topics([topic])[topic].result(30)
        servers.wait_for(lambda: not client.exists(znodes.topic_path("comes_back")), 60, "the topics to go")
        view = ZooKeeperView(connect, None, DIGESTS)
        keys = [
            ("topic", form.canonical([changed_topic]))
            for changed_topic in ("stays", "changes", "goes", "goes_later", "comes_back")
        ]
        keys += [
            ("config", form.canonical(["topic", changed_topic, "retention.ms"]))
            for changed_topic in ("changes", "goes")
        ]
        keys += [("scram", form.canonical(["ann", "SCRAM-SHA-512"])), ("partition", form.canonical(["goes_later", 0]))]
        live, _statement = view.reread(keys)
        with servers.migrating_controllers(home, connect) as quorum:
            broker.stop()
            broker.configure(quorum.to_migration)
            broker.start()
            servers.wait_for(lambda: migration(client).get("kraft_metadata_offset", -1) > 0, 90, "the initial copy")
            seen = migration(client)
            admin = AdminClient({"bootstrap.servers": str(broker.address)})
            servers.wait_for(lambda: servers.knows_controller(admin, 1), 60, "the broker to know the controller")
            for topic in ("stays", "changes", "goes_later"):
                servers.wait_for(
                    lambda topic=topic: servers.in_sync(admin, topic, 1), 60, f"the broker to know {topic}"
                )
            retained(admin, "changes", 3000)
            credential(admin, "ann", b"third")
            created(admin, "comes_back")
            admin.delete_topics(["goes_later"])["goes_later"].result(30)
            gone = znodes.topic_path("goes_later")
            servers.wait_for(lambda: not client.exists(gone), 60, "dual-write to remove the topic")
            servers.wait_for(lambda: client.exists(znodes.topic_path("comes_back")), 60, "dual-write to create it")
        directory = tmp_path_factory.mktemp("archive")
        taken = zk_trees.take(values, str(directory), before, {known["snapshot"]: known["zxid"]}, 10)
        cluster_id = znodes.cluster_id(client.get(znodes.CLUSTER_ID)[0])
        files = trees.Files("z1", "", "", {taken.snapshot: before}, taken.path, taken.sha256)

        def copy_source(chroot="/kafka", cluster=cluster_id, at=before, **changes):
            return CopySource(files._replace(**changes), at, "", chroot, cluster, DIGESTS, ())

        yield copy_source, Copied(1, seen["kraft_controller_epoch"]), live, client.last_zxid


def test_each_entity_is_as_it_was_right_before_the_migration(copied):
    copy_source, end, live, _zxid = copied
    found = copy_source()
    found.expect(live)
    for key, side in live.items():
        moments = found.sides(key, end)
        assert len(moments) == 2, "before the copy, and at its end"
        for moment in moments:
            assert isinstance(moment, Absent) == isinstance(side, Absent), key
            if not isinstance(side, Absent):
                assert moment.fields == side.fields, key
    assert found.why == "" and found.record.endswith(" in the log of z1")
    gone = [key for key, side in live.items() if isinstance(side, Absent)]
    assert len(gone) == 3, "two topics and a config of one"


def test_what_the_files_do_not_show_is_unknown_and_says_why(copied):
    copy_source, end, live, zxid = copied
    key = next(iter(live))
    for given, copy, why in (
        ({}, Copied(1, end.epoch + 7), f"no transaction gives /controller to KRaft's epoch {end.epoch + 7}"),
        ({"at": zxid}, end, "no transaction gives /controller"),  # an older one is of another copy's
        ({"at": 0}, end, "none is known to be without transactions after zxid 0x0"),
        ({"cluster": "AAAAAAAAQsShqPpAhOVFDg"}, end, "not AAAAAAAAQsShqPpAhOVFDg"),
        ({"chroot": "/other"}, end, "no transaction gives /controller"),
        ({"sha256": "0" * 64}, end, "SHA-256"),
        ({"archive": "/nowhere"}, end, "No such file"),
    ):
        found = copy_source(**given)
        assert found.sides(key, copy) == ()
        assert why in found.why and found.why.startswith("that of z1 does not: "), (given, found.why)
        assert found.sides(key, copy) == (), "it is not read again"


def owns(client, epoch):
    """Give /controller to KRaft's leader of an epoch, or to ZooKeeper's controller: -1."""
    if client.exists(znodes.CONTROLLER):
        client.delete(znodes.CONTROLLER)
    owner = {"version": 2, "brokerid": 101, "timestamp": "1", "kraftControllerEpoch": epoch}
    client.create(znodes.CONTROLLER, json.dumps(owner).encode())


def test_a_topic_whose_deletion_is_pending_is_none_that_the_copy_must_have(tmp_path):
    """KRaftMigrationDriver leaves it out (ZkTopicMigrationClient.iterateTopics), and deletes it in ZooKeeper."""
    with servers.workdir("copy_source_pending") as home, servers.zookeeper(home) as server:
        client = KazooClient(hosts=server.connect)
        client.start(timeout=10)
        client.create(znodes.CLUSTER_ID, json.dumps({"version": "1", "id": CLUSTER}).encode(), makepath=True)
        for topic in ("stays", "pending"):
            value = {"version": 3, "topic_id": f"{topic:A<21}A"[:22], "partitions": {"0": [1]}}
            client.create(znodes.topic_path(topic), json.dumps(value).encode(), makepath=True)
            config = json.dumps({"version": 1, "config": {"retention.ms": "1"}}).encode()
            client.create(f"{znodes.CONFIG}/topics/{topic}", config, makepath=True)
        values = own_zk_server.read_values(str(home / "zookeeper" / "zoo.cfg"))
        known, before = zk_trees.read_newest(values), client.last_zxid
        owns(client, 5)  # in a migration that was rolled back, before the deletion
        owns(client, -1)
        client.create(f"{znodes.DELETE_TOPICS}/pending", makepath=True)
        owns(client, 5)
        taken = zk_trees.take(values, str(tmp_path), before, {known["snapshot"]: known["zxid"]}, 10)
        client.stop()
        client.close()
    files = trees.Files("z1", "", "", {taken.snapshot: before}, taken.path, taken.sha256)
    found = CopySource(files, before, "", "", CLUSTER, DIGESTS, ())
    for topic in ("stays", "pending"):
        for key in (
            ("topic", form.canonical([topic])),
            ("config", form.canonical(["topic", topic, "retention.ms"])),
        ):
            (moment,) = found.sides(key, Copied(1, 5))
            assert isinstance(moment, Absent) is (topic == "pending"), (key, found.why)
