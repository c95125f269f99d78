# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rehearsal's znodes on real servers: brokers with empty log directories serve the cluster's metadata, without its
secrets. The cluster itself is as it was, and no other ensemble is written to.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import stat

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rehearsal import tree
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import rehearsal_id
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write import backup_file, importing, taking
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write.zk_writing import WriteError
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kazoo.client import KazooClient

from tests.integration import servers

pytestmark = pytest.mark.real
AUTHORIZED = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
    "password.encoder.secret": "of-the-cluster",
}
PASSWORD = "hunter2-of-the-cluster"
LISTENER_PASSWORD = "listener.name.external.ssl.keystore.password"
ACL = AclBinding(
    *(ResourceType.TOPIC, "ord", ResourcePatternType.PREFIXED, "User:app", "*"),
    *(AclOperation.READ, AclPermissionType.ALLOW),
)
CHROOT = "/prod/kafka"
PARTITIONS = 12


@contextlib.contextmanager
def client(connect):
    logging.getLogger("kazoo").setLevel(logging.ERROR)
    running = KazooClient(hosts=connect, timeout=10)
    running.start(timeout=60)
    try:
        yield running
    finally:
        running.stop()
        running.close()


@pytest.fixture(scope="module")
def home():
    with servers.workdir("rehearsal") as directory:
        yield directory


@pytest.fixture(scope="module")
def source(home):
    """A cluster of one broker with id 7, seeded; its ZooKeeper stays when the broker has stopped."""
    with servers.zookeeper(home, "source") as zookeeper:
        connect = zookeeper.connect + CHROOT
        with servers.zk_broker(home, 7, connect, AUTHORIZED) as broker:
            admin = servers.admin_client(broker.address)
            servers.create_topics(admin, [NewTopic("orders", PARTITIONS, 1), NewTopic("ordinals", 1, 1)])
            alter = ConfigEntry("retention.ms", "12345", incremental_operation=AlterConfigOpType.SET)
            resources = [ConfigResource(ConfigResource.Type.TOPIC, "orders", incremental_configs=[alter])]
            secret = ConfigEntry(LISTENER_PASSWORD, PASSWORD, incremental_operation=AlterConfigOpType.SET)
            threads = ConfigEntry("log.cleaner.threads", "2", incremental_operation=AlterConfigOpType.SET)
            resources.append(ConfigResource(ConfigResource.Type.BROKER, "7", incremental_configs=[secret, threads]))
            for future in admin.incremental_alter_configs(resources).values():
                future.result(30)
            admin.create_acls([ACL])[ACL].result(30)
            credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192)
            upsertion = UserScramCredentialUpsertion("app", credential, PASSWORD.encode())
            admin.alter_user_scram_credentials([upsertion])["app"].result(30)
            yield zookeeper, connect


@pytest.fixture(scope="module")
def rehearsed(home, source):
    """The file of the rehearsal, its plan and what was left out."""
    _zookeeper, connect = source
    private = home / "private"
    private.mkdir(mode=0o700)
    with client(connect) as reader:
        taking.take(reader, str(private / "backup.gz"), connect, "test")
    backup = backup_file.Backup(str(private / "backup.gz")).check()
    found = tree.survey(backup.znodes())
    plan = tree.plan(found, 3)
    made = tree.Rehearsal(found, plan.brokers, rehearsal_id.new(os.urandom), os.urandom)
    counts = importing.save(made.nodes(backup.znodes()), str(private / "rehearsal.gz"), made.cluster_id)
    assert stat.S_IMODE((private / "rehearsal.gz").stat().st_mode) == 0o600
    return backup_file.Backup(str(private / "rehearsal.gz")).check(), found, plan, made, counts


def znodes_of(connect):
    with client(connect) as reader:
        found, todo = {}, ["/"]
        while todo:
            path = todo.pop()
            data, stats = reader.get(path)
            found[path] = (data, stats.mzxid, stats.version)
            todo += [f"{path.rstrip('/')}/{name}" for name in reader.get_children(path) if name != "zookeeper"]
        return found


def test_the_file_has_no_secret(rehearsed):
    made = rehearsed[0]
    data = b"\n".join(node.data or b"" for node in made.znodes())
    assert PASSWORD.encode() not in data and b"password" not in data
    assert any(LISTENER_PASSWORD in name for name in rehearsed[3].left)
    assert rehearsed[1].brokers == [7] and rehearsed[2].brokers == [7]


def test_a_broker_without_a_log_serves_the_metadata(home, source, rehearsed):
    made, _found, plan, rehearsal, counts = rehearsed
    before = znodes_of(source[1])
    with servers.zookeeper(home, "own") as zookeeper:
        with client(zookeeper.connect) as root:
            importing.create_root(root, rehearsal.cluster_id, 30)
        connect = zookeeper.connect + importing.CHROOT
        with client(connect) as own:
            written = importing.write(own, made.znodes(), rehearsal.cluster_id, 30)
            assert written["znodes"] >= counts["znodes"] - 1
            # An import that was interrupted is repeated
            importing.write(own, made.znodes(), rehearsal.cluster_id, 30)
        own_secrets = {**AUTHORIZED, "password.encoder.secret": "of-the-rehearsal"}
        # With this home it has another directory than the cluster's broker of the same id
        elsewhere = home / "rehearsal"
        elsewhere.mkdir()
        with servers.zk_broker(elsewhere, 7, connect, own_secrets) as broker, client(connect) as own:
            importing.wait_registered(own, plan.brokers, 30, 60)
            assert json.loads(own.get("/controller")[0])["brokerid"] == 2147483647  # held: no election yet
            assert importing.release(own, rehearsal.cluster_id, 30) is True
            assert importing.release(own, rehearsal.cluster_id, 30) is False
            admin = servers.admin_client(broker.address)
            servers.wait_for(lambda: servers.in_sync(admin, "orders", 1), 60, "orders in sync")
            served = servers.wait_for(lambda: servers.metadata(admin), 60, "the metadata")
            assert served.cluster_id == rehearsal.cluster_id
            assert len(served.topics["orders"].partitions) == PARTITIONS
            configs = ConfigResource(ConfigResource.Type.TOPIC, "orders")
            assert admin.describe_configs([configs])[configs].result(30)["retention.ms"].value == "12345"
            of_broker = ConfigResource(ConfigResource.Type.BROKER, "7")
            described = admin.describe_configs([of_broker])[of_broker].result(30)
            assert described["log.cleaner.threads"].value == "2" and LISTENER_PASSWORD not in described
            anything = AclBindingFilter(
                *(ResourceType.ANY, None, ResourcePatternType.ANY, None, None),
                *(AclOperation.ANY, AclPermissionType.ANY),
            )
            assert admin.describe_acls(anything).result(30) == [ACL]
            (info,) = admin.describe_user_scram_credentials(["app"])["app"].result(30).scram_credential_infos
            assert info.iterations == 8192
            on_disk = (broker.home / "data" / "orders-3" / "partition.metadata").read_text()
            assert json.loads(before["/brokers/topics/orders"][0])["topic_id"] in on_disk
    assert znodes_of(source[1]) == before


def test_the_clusters_own_ensemble_is_never_written_to(source, rehearsed):
    zookeeper, connect = source
    before = znodes_of(connect)
    refused = pytest.raises(WriteError, match=r"has znodes that no rehearsal made, such as /prod: .*QS-REHEARSE-003")
    with client(zookeeper.connect) as root, refused:
        importing.create_root(root, rehearsed[3].cluster_id, 30)
    with client(connect) as own, pytest.raises(WriteError):
        importing.write(own, rehearsed[0].znodes(), rehearsed[3].cluster_id, 30)
    with client(connect) as own:
        assert importing.release(own, rehearsed[3].cluster_id, 30) is False
    assert znodes_of(connect) == before


def test_another_rehearsals_ensemble_is_not_written_to(home, rehearsed):
    with servers.zookeeper(home, "another") as zookeeper, client(zookeeper.connect) as root:
        importing.create_root(root, rehearsal_id.new(os.urandom), 30)
        with pytest.raises(WriteError, match=r"is of another rehearsal, .*QS-REHEARSE-003"):
            importing.create_root(root, rehearsed[3].cluster_id, 30)
