# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading ZooKeeper: the metadata that Kafka's tools wrote, and what a KRaft controller copies of it.

With QUORUMSHIFT_RECORD set, the broker's tree is saved as the unit tests' fixture.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import socket
import threading
import time

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import zk_metadata
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write import taking
from kazoo.security import make_digest_acl

from tests.integration import seeded, servers

pytestmark = pytest.mark.real

FIXTURE = pathlib.Path(__file__).resolve().parents[1] / "unit" / "fixtures" / "kafka_3.9.2_znodes.jsonl.gz"


@pytest.fixture(scope="module")
def home():
    with servers.workdir("zookeeper_probe") as path:
        yield path


@pytest.fixture(scope="module")
def zk(home):
    with servers.zookeeper(home) as server:
        yield server


@pytest.fixture(scope="module")
def broker(home, zk):
    with seeded.broker(home, zk, seeded.SETTINGS) as server:
        if os.environ.get("QUORUMSHIFT_RECORD"):
            FIXTURE.parent.mkdir(parents=True, exist_ok=True)
            FIXTURE.unlink(missing_ok=True)
            directory = home / "fixture"
            directory.mkdir(mode=0o700)
            with zookeeper.connect(zk.connect + seeded.CHROOT) as client:
                taking.take(client, str(directory / "b.gz"), "localhost:2181" + seeded.CHROOT, "fixture")
            shutil.copyfile(directory / "b.gz", FIXTURE)
        yield server


@pytest.fixture
def client(zk, broker):
    with zookeeper.connect(zk.connect + seeded.CHROOT) as connected:
        yield connected


def test_znodes_of_a_zookeeper_controller_are_read(client, broker):
    read = zookeeper.read_migration_znodes(client)
    controller = read["controller"]
    assert (controller["exists"], controller["broker_id"], controller["ephemeral"]) == (True, 1, True)
    assert (controller["kraft_controller_epoch"], controller["malformed"]) == (-1, None)
    assert controller["czxid"] > 0
    # an election writes both znodes in one transaction
    epoch = {"exists": True, "value": 1, "version": 1, "mzxid": controller["czxid"], "malformed": None}
    assert read["controller_epoch"] == epoch
    assert read["migration"]["exists"] is False
    assert read["migration"]["kraft_metadata_offset"] is None and read["migration"]["malformed"] is None
    (registration,) = read["broker_ids"].values()
    assert list(read["broker_ids"]) == ["1"]
    assert registration["rack"] == "rack-1"
    assert registration["endpoints"]["SASL"] == {
        "host": "127.0.0.1",
        "port": broker.listeners["SASL"].port,
        "security_protocol": "SASL_PLAINTEXT",
    }
    assert registration["ephemeral_owner"].startswith("0x1")
    assert read["cluster_id"] == {"exists": True, "value": servers.CLUSTER_ID, "malformed": None}
    assert read["delete_topics"] == []
    assert read["reassign_partitions"] == {"exists": False, "malformed": None, "partitions": None}


def test_malformed_znodes_are_reported(client):
    client.create(znodes.MIGRATION, None)
    client.create(znodes.REASSIGN_PARTITIONS, b'{"version":1,"partitions":[{"topic":"t"}]}')
    try:
        read = zookeeper.read_migration_znodes(client)
        assert "null data" in read["migration"]["malformed"]
        assert read["migration"]["exists"] and read["migration"]["version"] == 0
        assert read["reassign_partitions"]["malformed"] == "'partition' is missing"
    finally:
        client.delete(znodes.MIGRATION)
        client.delete(znodes.REASSIGN_PARTITIONS)


def test_metadata_agrees_with_what_the_tools_wrote(client):
    metadata = zookeeper.read_metadata(client)
    assert metadata["problems"] == []
    assert {"orders", "a.b_c", "plain"} <= set(metadata["topics"])
    orders = metadata["topics"]["orders"]
    assert len(orders["topic_id"]) == 22
    assert sorted(orders["partitions"]) == ["0", "1", "2", "3"]
    first = orders["partitions"]["0"]
    assert (first["replicas"], first["isr"], first["leader"], first["leader_epoch"]) == ([1], [1], 1, 0)
    assert metadata["configs"]["topic"]["orders"] == {"retention.ms": "9000", "cleanup.policy": "compact"}
    broker = metadata["configs"]["broker"]
    assert broker[""] == {"message.max.bytes": "2000000"}
    assert broker["1"]["log.cleaner.threads"] == "2"
    assert broker["1"]["listener.name.external.ssl.key.password"] is None
    quotas = {tuple(sorted(quota["entity"].items())): quota["quotas"] for quota in metadata["quotas"]}
    assert quotas == {
        (("user", "al ice@x*~"),): {"producer_byte_rate": 1024.0, "consumer_byte_rate": 2048.0},
        (("user", None),): {"request_percentage": 50.5},
        (("client-id", "app/1"),): {"producer_byte_rate": 10.0},
        (("client-id", None),): {"consumer_byte_rate": 11.0},
        (("client-id", None), ("user", "al ice@x*~")): {"producer_byte_rate": 7.0},
        (("ip", "127.0.0.9"),): {"connection_creation_rate": 5.0},
        (("ip", None),): {"connection_creation_rate": 6.0},
    }
    assert {name: credential["iterations"] for name, credential in metadata["scram"]["bob"].items()} == {
        "SCRAM-SHA-256": 4096,
        "SCRAM-SHA-512": 8192,
    }
    assert len(metadata["acls"]) == 5
    assert {
        "resource_type": "GROUP",
        "resource_name": "g-",
        "pattern_type": "PREFIXED",
        "principal": "User:CN=eve,O=x",
        "host": "10.0.0.1",
        "operation": "ALL",
        "permission": "DENY",
    } in metadata["acls"]
    token = next(iter(metadata["delegation_tokens"].values()))
    assert (token["owner"], token["renewers"]) == ("User:admin", ["User:bob x"])
    assert metadata["producer_ids"] == {"broker_id": 1, "first_producer_id": 0, "next_producer_id": 1000}
    assert "topsecret" not in repr(metadata) and "stored_key" not in repr(metadata)
    # a walk of the complete tree gives the same
    assert zk_metadata.normalise(zookeeper.read_tree(client)) == metadata


def test_the_tree_has_each_znode_once_after_its_parent(client):
    nodes = list(zookeeper.read_tree(client, window=7))
    paths = [node.path for node in nodes]
    assert len(set(paths)) == len(paths)
    at = {path: position for position, path in enumerate(paths)}
    assert all(at[path.rpartition("/")[0] or "/"] < at[path] for path in paths if path != "/")
    assert at["/brokers/ids/1"] and at["/config/users/al%20ice%40x%2A%7E/clients/<default>"]
    assert {node.path for node in nodes if node.stat.ephemeralOwner} == {"/controller", "/brokers/ids/1"}
    assert all(node.acl == [{"perms": 31, "scheme": "world", "id": "anyone"}] for node in nodes)
    assert {znodes.kind(path) for path in paths} >= {"topic", "partition_state", "user_config", "acl", "notification"}
    assert [path for path in paths if znodes.kind(path) == "other"] == []


def test_znodes_deleted_during_the_walk_are_counted(client):
    client.ensure_path("/vanishing")
    for number in range(300):
        client.create(f"/vanishing/{number:03}")
    reader = zookeeper.Reader(client, window=10)
    walk = reader.tree("/vanishing")
    assert next(walk).path == "/vanishing"
    for number in range(200, 300):
        client.delete(f"/vanishing/{number:03}")
    rest = [node.path for node in walk]
    assert len(rest) == 200 and reader.vanished == 100
    client.delete("/vanishing", recursive=True)


def test_the_read_rate_is_limited(client):
    began = time.monotonic()
    count = len(list(zookeeper.Reader(client, max_rate=100).tree("/brokers")))
    assert time.monotonic() - began >= (count - 11) / 100


def test_unreachable_servers_are_reported():
    port = servers.free_port()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        with pytest.raises(zookeeper.ZooKeeperUnreachable) as error, zookeeper.connect(
            f"127.0.0.1:{port},127.0.0.1:{silent.getsockname()[1]}/x", timeout=1.5
        ):
            pass
    assert time.monotonic() - began < 8
    assert f"127.0.0.1:{port} cannot be reached (Connection refused)" in str(error.value)
    assert "does not answer" in str(error.value)


def test_a_server_without_quorum_is_reported(home):
    ports = [servers.free_port() for _unused in range(4)]
    settings = {
        "myid": "1",
        "server.1": f"127.0.0.1:{ports[0]}:{ports[1]}",
        "server.2": f"127.0.0.1:{ports[2]}:{ports[3]}",
    }

    def answers():
        port = re.search(r"clientPort=(\d+)", (home / "lonely" / "zoo.cfg").read_text()).group(1)
        try:
            with socket.create_connection(("127.0.0.1", int(port)), timeout=1) as connection:
                connection.sendall(b"srvr")
                return b"not currently serving" in connection.recv(4096)
        except OSError:
            return False

    with servers.zookeeper(home, "lonely", settings, ready=answers) as lonely, pytest.raises(
        zookeeper.ZooKeeperUnreachable, match="runs but does not serve: its ensemble has no quorum"
    ), zookeeper.connect(lonely.connect, timeout=1.5):
        pass


def test_a_missing_chroot_is_reported(zk):
    with pytest.raises(zookeeper.ZooKeeperMissing, match="/no/such does not exist"), zookeeper.connect(
        zk.connect + "/no/such"
    ):
        pass


def test_an_unreadable_znode_is_reported(zk, client):
    acl = make_digest_acl("kafka", "secret", all=True)
    with zookeeper.connect(zk.connect, auth_data=[("digest", "kafka:secret")]) as owner:
        owner.create("/closed", b"x", acl=[acl])
        owner.create("/closed/below", b"x", acl=[acl])
        with zookeeper.connect(zk.connect) as anonymous, pytest.raises(zookeeper.ZooKeeperDenied, match="read /closed"):
            list(zookeeper.read_tree(anonymous, "/closed"))
        assert len(list(zookeeper.read_tree(owner, "/closed"))) == 2
        owner.delete("/closed", recursive=True)


def test_a_lost_connection_raises(home):
    with servers.zookeeper(home, "brief") as brief, zookeeper.connect(brief.connect, timeout=4) as connected:
        for number in range(50):
            connected.create(f"/n{number}")
        walk = zookeeper.Reader(connected, window=1, max_rate=50, timeout=3).tree()
        next(walk)
        threading.Timer(0.2, brief.kill).start()
        with pytest.raises(zookeeper.ZooKeeperError):
            list(walk)


def test_the_controller_copies_the_expected_records(home, zk, broker):
    """The log of KRaft's controller has the expected counts. The last test, since it migrates the broker."""
    with zookeeper.connect(zk.connect + seeded.CHROOT) as client:
        # a pending deletion is not copied; nor is the topic if the broker deletes it at its start
        broker.stop()
        client.ensure_path("/admin/delete_topics/plain")
        with seeded.migration(home, zk, broker) as migrating:
            servers.wait_for(lambda: zookeeper.read_migration_znodes(client)["migration"]["exists"], 30, "/migration")
            assert zookeeper.read_migration_znodes(client)["migration"]["kraft_metadata_offset"] == -1
            expected = zk_metadata.expected_records(zookeeper.read_metadata(client))
            migrating.join()
            servers.wait_for(
                lambda: (zookeeper.read_migration_znodes(client)["migration"]["kraft_metadata_offset"] or -1) > 0,
                60,
                "the initial copy",
            )
            manifest = re.search(r"The record types were \{(.*?)\}", migrating.controller.log.read_text()).group(1)
            initial_copy = dict(pair.split("=") for pair in manifest.split(", "))
            assert {name: int(count) for name, count in initial_copy.items()} == expected
            assert all(expected.values()), "a kind of record is missing"
            read = zookeeper.read_migration_znodes(client)
            assert read["controller"]["broker_id"] == 3000
            assert read["controller"]["ephemeral"] is False
            assert read["controller"]["kraft_controller_epoch"] >= 1
            assert read["migration"]["kraft_controller_id"] == 3000
            assert read["migration"]["malformed"] is None
