# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module zk_backup against a real ZooKeeper: take a backup of Kafka's subtree and verify it."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import pathlib
import random
import stat
import subprocess
import sys
import threading
import time

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write import backup_file, taking
from kazoo.client import KazooClient
from kazoo.security import OPEN_ACL_UNSAFE, make_digest_acl

from tests.integration import servers

pytestmark = pytest.mark.real

MODULE = pathlib.Path(__file__).resolve().parents[2] / "plugins" / "modules" / "zk_backup.py"
CLUSTER_ID = "Qs7KfZk2TIK1n0nQ5Qm3Tw"


@pytest.fixture(scope="module")
def home():
    with servers.workdir("zk_backup") as path:
        yield path


@pytest.fixture(scope="module")
def zk(home):
    with servers.zookeeper(home) as server:
        yield server


@pytest.fixture
def kafka(zk, tmp_path):
    """A client with a fresh chroot and a small cluster's znodes."""
    chroot = f"/{tmp_path.name}/kafka"
    root = KazooClient(hosts=zk.connect)
    root.start(timeout=10)
    root.ensure_path(chroot)
    client = KazooClient(hosts=zk.connect + chroot)
    client.start(timeout=10)
    client.connect_string = zk.connect + chroot
    client.create("/cluster/id", json.dumps({"version": "1", "id": CLUSTER_ID}).encode(), makepath=True)
    client.create("/controller_epoch", b"7")
    client.create("/controller", b'{"brokerid":1}', ephemeral=True)
    for topic in ("orders", "a.b"):
        client.create(f"/brokers/topics/{topic}", b'{"partitions":{"0":[1]}}', makepath=True)
        client.create(f"/brokers/topics/{topic}/partitions/0/state", b'{"leader":1}', makepath=True)
    client.create(
        "/config/users/bob", b'{"version":1,"config":{"SCRAM-SHA-256":"stored_key=SECRETKEY"}}', makepath=True
    )
    client.create("/latest_producer_id_block", None)
    client.create("/empty", b"")
    client.create("/binary", bytes(range(256)))
    client.create("/unicode", "grün \u2028 \x00".encode())
    yield client
    for each in (client, root):
        each.stop()
        each.close()


def run(client_or_connect, path, check=False, **options):
    """Run the module as Ansible does, in a process that reads its arguments as JSON; return its result."""
    connect = getattr(client_or_connect, "connect_string", client_or_connect)
    arguments = {"zookeeper_connect": connect, "path": str(path), "connect_timeout": 4, **options}
    arguments["_ansible_check_mode"] = check
    build = MODULE.parents[2] / ".build"
    done = subprocess.run(
        [sys.executable, str(MODULE)],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": str(build)},
    )
    assert "SECRETKEY" not in done.stdout + done.stderr
    return json.loads(done.stdout)


def backup_path(tmp_path):
    return tmp_path / "backups" / "zk.jsonl.gz"


def test_a_backup_is_taken_and_verified(kafka, tmp_path):
    path = backup_path(tmp_path)
    checked = run(kafka, path, check=True)
    assert checked["changed"] and not path.parent.exists()
    taken = run(kafka, path)
    assert taken["changed"] is True, taken
    assert {name: taken[name] for name in ("znodes", "ephemerals", "data_bytes", "cluster_id")} == {
        name: checked[name] for name in ("znodes", "ephemerals", "data_bytes", "cluster_id")
    }
    assert (taken["ephemerals"], taken["rounds"], taken["vanished"]) == (1, 1, 0)
    assert taken["moving"] == {"by_kind": {}, "paths": []}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert os.listdir(path.parent) == [path.name]
    assert taken["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    verified = run(kafka, path, state="verified", sha256=taken["sha256"])
    assert (verified["changed"], verified.get("failed")) == (False, None), verified
    assert verified["equal"] == taken["znodes"] - 1
    assert verified["changed_since"] == {"changed": {}, "added": {}, "removed": {}}
    again = run(kafka, path)
    assert again["changed"] is False and again["sha256"] == taken["sha256"]


def test_the_file_has_data_stats_and_acls(kafka, tmp_path):
    acl = [make_digest_acl("kafka", "pw", all=True), *OPEN_ACL_UNSAFE]
    kafka.create("/with_acl", b"x", acl=acl)
    kafka.set("/with_acl", b"y")
    path = backup_path(tmp_path)
    assert run(kafka, path)["changed"]
    backup = backup_file.Backup(str(path)).check()
    nodes = {node.path: node for node in backup.znodes()}
    for name, node in nodes.items():
        data, live = kafka.get(name)
        assert (node.data, node.stat) == (data, live), name
    assert nodes["/binary"].data == bytes(range(256))
    assert nodes["/latest_producer_id_block"].data is None and nodes["/empty"].data == b""
    assert nodes["/with_acl"].stat.version == 1
    assert [(entry["scheme"], entry["perms"]) for entry in nodes["/with_acl"].acl] == [("digest", 31), ("world", 31)]
    assert nodes["/with_acl"].acl[0]["id"] == acl[0].id.id
    assert [node.path for node in backup.ancestors()] == ["/", "/" + kafka.chroot.split("/")[1]]
    assert backup.header["chroot"] == kafka.chroot
    assert next(iter(nodes)) == "/"


def test_later_changes_are_counted(kafka, tmp_path):
    path = backup_path(tmp_path)
    znodes = run(kafka, path)["znodes"]
    kafka.set("/brokers/topics/orders/partitions/0/state", b'{"leader":2}')
    kafka.create("/brokers/topics/new/partitions", makepath=True)
    kafka.delete("/brokers/topics/a.b", recursive=True)
    kafka.set_acls("/config/users/bob", [make_digest_acl("kafka", "pw", all=True), *OPEN_ACL_UNSAFE])
    result = run(kafka, path, state="verified")
    assert result.get("failed") is None, result
    assert result["changed_since"] == {
        "changed": {"directory": 1, "partition_state": 1, "user_config": 1},
        "added": {"topic": 1},
        "removed": {"partition": 2, "partition_state": 1, "topic": 1},
    }
    assert result["equal"] == znodes - 1 - 3 - 4


def test_a_rebuilt_ensemble_is_refused(kafka, zk, home, tmp_path):
    """It has the same data, but other versions and zxids."""
    path = backup_path(tmp_path)
    run(kafka, path)
    with servers.zookeeper(home, "other") as other, zookeeper.connect(other.connect) as client:
        for number in range(3000):
            client.create_async(f"/pad{number}")
        for node in backup_file.Backup(str(path)).check().znodes():
            if not node.stat.ephemeralOwner:
                client.ensure_path("/k" + node.path)
                client.set("/k" + node.path, node.data)
        result = run(other.connect + "/k", path, state="verified")
    assert result["failed"] and "rebuilt" in result["msg"], result


def test_an_older_ensemble_is_refused(kafka, home, tmp_path):
    path = backup_path(tmp_path)
    for _unused in range(200):
        kafka.set("/empty", b"")
    run(kafka, path)
    with servers.zookeeper(home, "older") as older, zookeeper.connect(older.connect) as client:
        client.create("/cluster/id", json.dumps({"version": "1", "id": CLUSTER_ID}).encode(), makepath=True)
        result = run(older.connect, path, state="verified")
    assert result["failed"] and "another ensemble" in result["msg"]


def test_a_backup_of_another_cluster_is_refused(kafka, tmp_path):
    path = backup_path(tmp_path)
    run(kafka, path)
    kafka.set("/cluster/id", b'{"version":"1","id":"AnotherClusterAltogethe"}')
    for state in ("verified", "taken"):
        result = run(kafka, path, state=state)
        assert result["failed"] and "is a backup of cluster " + CLUSTER_ID in result["msg"]


def test_a_path_without_kafka_is_refused(zk, kafka, tmp_path):
    result = run(zk.connect, backup_path(tmp_path))
    assert result["failed"] and "/cluster/id does not exist" in result["msg"]
    assert os.listdir(backup_path(tmp_path).parent) == []


def test_torn_and_flipped_files_are_refused(kafka, tmp_path):
    path = backup_path(tmp_path)
    run(kafka, path)
    content = path.read_bytes()
    rng = random.Random(1)
    # bytes 4 to 9 are gzip's time, flags and system
    size = len(content)
    for position in [10, 11, size - 1, size - 5] + [rng.randrange(10, size) for _unused in range(60)]:
        flipped = bytes([content[position] ^ 1 << rng.randrange(8)])
        path.write_bytes(content[:position] + flipped + content[position + 1 :])
        try:
            backup_file.Backup(str(path)).check()
        except backup_file.BackupBroken:
            continue
        # a bit that means nothing, such as those that fill the last byte of deflate
        assert gzip.decompress(path.read_bytes()) == gzip.decompress(content), position
    for length in [0, 1, 9, 20, size // 2, size - 1]:
        path.write_bytes(content[:length])
        with pytest.raises(backup_file.BackupBroken):
            backup_file.Backup(str(path)).check()
    path.write_bytes(content[:-20])
    for state in ("taken", "verified"):
        result = run(kafka, path, state=state)
        assert result["failed"] and "torn" in result["msg"], result
    path.write_bytes(content)
    result = run(kafka, path, state="verified", sha256="0" * 64)
    assert result["failed"] and "another file" in result["msg"]


def test_an_edited_file_is_refused(kafka, tmp_path):
    path = backup_path(tmp_path)
    run(kafka, path)
    text = gzip.decompress(path.read_bytes())
    for edited in (
        text.replace(b'"leader\\":1', b'"leader\\":2', 1),
        text[: text.rindex(b'{"end"')],
        text + b"{}\n",
        text.replace(b'"quorumshift_zk_backup":1', b'"quorumshift_zk_backup":9'),
    ):
        assert edited != text
        path.write_bytes(gzip.compress(edited))
        with pytest.raises(backup_file.BackupBroken):
            backup_file.Backup(str(path)).check()


def test_an_edited_file_with_a_valid_digest_differs(kafka, tmp_path):
    """Only the comparison with ZooKeeper finds such an edit."""
    path = backup_path(tmp_path)
    run(kafka, path)
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    body = [line.replace(b'"leader\\":1', b'"leader\\":9') for line in lines[:-1]]
    end = json.loads(lines[-1])
    end["end"]["sha256"] = hashlib.sha256(b"".join(body)).hexdigest()
    path.write_bytes(gzip.compress(b"".join([*body, json.dumps(end).encode() + b"\n"])))
    result = run(kafka, path, state="verified")
    assert result["failed"] and result["differ_count"] == 2
    assert result["differ"][0]["what"] == "has other data, though no transaction has changed it"


def test_a_directory_that_others_can_read_is_refused(kafka, tmp_path):
    path = backup_path(tmp_path)
    path.parent.mkdir(mode=0o755)
    os.chmod(path.parent, 0o755)
    result = run(kafka, path)
    assert result["failed"] and "must have 0700" in result["msg"]
    assert os.listdir(path.parent) == []


def test_masked_acls_are_refused(kafka, tmp_path):
    """Without ADMIN on a znode, ZooKeeper returns ACLs with masked hashes."""
    owner = make_digest_acl("kafka", "pw", all=True)
    reader = make_digest_acl("reader", "pw", read=True)
    kafka.create("/guarded", b"x", acl=[owner, reader])
    result = run(kafka, backup_path(tmp_path))
    assert result["failed"] and "denies this user to read" in result["msg"]
    result = run(kafka, backup_path(tmp_path), zookeeper_client={"auth": "reader:pw"})
    assert result["failed"] and "masks the ACL" in result["msg"] and "/guarded" in result["msg"]
    result = run(kafka, backup_path(tmp_path), zookeeper_client={"auth": "kafka:pw"})
    assert result["changed"], result
    (node,) = [node for node in backup_file.Backup(str(backup_path(tmp_path))).znodes() if node.path == "/guarded"]
    assert [entry["id"] for entry in node.acl] == [owner.id.id, reader.id.id]


def test_the_file_has_the_state_of_one_transaction(kafka, tmp_path):
    """A writer changes all topics in each transaction while the tree is read: in the file all topics must agree."""
    topics = [f"/brokers/topics/t{number:03}" for number in range(100)]
    for topic in topics:
        kafka.create(topic, b"0")
    stop = threading.Event()

    def write():
        count = 0
        writer = KazooClient(hosts=kafka.connect_string)
        writer.start()
        # it ends before the rounds of the backup, so that the last round finds no change
        while not stop.is_set() and count < 60:
            count += 1
            change = writer.transaction()
            for topic in topics:
                change.set_data(topic, str(count).encode())
            change.create(f"/brokers/topics/new{count:03}", b"new")
            if count > 10:
                change.delete(f"/brokers/topics/new{count - 10:03}")
            change.commit()
            time.sleep(0.02)
        writer.stop()
        writer.close()

    thread = threading.Thread(target=write)
    thread.start()
    taken = take_backup(kafka, backup_path(tmp_path), window=3, max_rate=300, rounds=20)
    stop.set()
    thread.join()
    backup = backup_file.Backup(str(backup_path(tmp_path))).check()
    nodes = {node.path: node for node in backup.znodes()}
    assert taken["moving"]["paths"] == []
    (count,) = {int(nodes[topic].data) for topic in topics}
    assert count > 0
    news = [f"/brokers/topics/new{n:03}" for n in range(max(count - 9, 1), count + 1)]
    assert sorted(name for name in nodes if "/new" in name) == news
    paths = list(nodes)
    at = {name: position for position, name in enumerate(paths)}
    assert all(at[name.rpartition("/")[0] or "/"] < at[name] for name in paths if name != "/")
    result = run(kafka, backup_path(tmp_path), state="verified")
    assert result.get("failed") is None
    # the file lacks the end of a writer that paused for a whole round
    assert (result["changed_since"] == {"changed": {}, "added": {}, "removed": {}}) == (count == 60)


def test_znodes_that_change_in_every_round_are_reported(kafka, tmp_path, monkeypatch):
    moved = taking._find_moved

    def write_before_each_round(reader, nodes):
        for path in ("/brokers/topics/orders", "/latest_producer_id_block"):
            kafka.set(path, b"{}")
        return moved(reader, nodes)

    monkeypatch.setattr(taking, "_find_moved", write_before_each_round)
    taken = take_backup(kafka, backup_path(tmp_path), rounds=3)
    assert taken["rounds"] == 3
    assert taken["moving"] == {
        "by_kind": {"producer_id_block": 1, "topic": 1},
        "paths": ["/brokers/topics/orders", "/latest_producer_id_block"],
    }
    assert run(kafka, backup_path(tmp_path), state="verified").get("failed") is None


def test_a_lost_connection_leaves_no_file(home, tmp_path):
    path = backup_path(tmp_path)
    with servers.zookeeper(home, "brief") as brief, zookeeper.connect(brief.connect, timeout=4) as client:
        client.create("/cluster/id", json.dumps({"version": "1", "id": CLUSTER_ID}).encode(), makepath=True)
        for number in range(100):
            client.create(f"/n{number}")
        threading.Timer(0.5, brief.kill).start()
        with pytest.raises(zookeeper.ZooKeeperError):
            taking.take(client, str(path), brief.connect, "test", window=1, max_rate=50, timeout=3)
    assert os.listdir(path.parent) == []


def test_large_znodes_and_directories_are_backed_up(kafka, tmp_path):
    kafka.create("/big", os.urandom(1000 * 1000))
    kafka.create("/many")
    for start in range(0, 3000, 500):
        results = [kafka.create_async(f"/many/{'n' * 40}{number:06}") for number in range(start, start + 500)]
        for result in results:
            result.get(timeout=30)
    taken = run(kafka, backup_path(tmp_path))
    assert taken["znodes"] > 3000 and taken["data_bytes"] > 1000000
    assert run(kafka, backup_path(tmp_path), state="verified").get("failed") is None


def take_backup(kafka, path, **options):
    with zookeeper.connect(kafka.connect_string) as client:
        return taking.take(client, str(path), kafka.connect_string, "test", **options)
