# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The archive of a real server: it is read back whole, another server serves its tree, and it shows changed data."""

from __future__ import annotations

import json
import pathlib
import shutil
import tarfile

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.files import archives
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import own_zk_server
from ansible_collections.quorumshift.kafka.plugins.module_utils.snapshots import zk_archive
from kazoo.client import KazooClient

from tests.integration import servers

pytestmark = pytest.mark.real
CHROOT = "/kafka"


@pytest.fixture(scope="module")
def server():
    with servers.workdir("zk_archive") as home, servers.zookeeper(home) as running:
        running.workdir = home
        with client(running) as first:
            identity = json.dumps({"version": "1", "id": servers.CLUSTER_ID}).encode()
            first.create(f"{CHROOT}/cluster/id", identity, makepath=True)
            first.create("/solr/a", b"\0\1\2", makepath=True)
            first.create("/of_a_session", b"", ephemeral=True)
        yield running


class client:
    """A client while it is entered."""

    def __init__(self, server):
        self.running = KazooClient(hosts=server.connect, timeout=10)

    def __enter__(self):
        self.running.start(timeout=60)
        return self.running

    def __exit__(self, *_exception):
        self.running.stop()
        self.running.close()


def values(server):
    return own_zk_server.read_values(str(server.home / "zoo.cfg"))


def take(server, parent):
    return zk_archive.take(values(server), str(server.home / "zoo.cfg"), str(parent), CHROOT)


def tree(server):
    """Return {path: (data, czxid, mzxid, version)} of all that is not ZooKeeper's own."""
    found = {}
    with client(server) as reader:
        todo = ["/"]
        while todo:
            path = todo.pop()
            data, stat = reader.get(path)
            found[path] = (data, stat.czxid, stat.mzxid, stat.version)
            names = [name for name in reader.get_children(path) if (path, name) != ("/", "zookeeper")]
            todo += [f"{path.rstrip('/')}/{name}" for name in names]
    return found


def test_another_server_serves_the_tree_of_an_archive(server, tmp_path):
    archive = take(server, tmp_path)
    assert archive.cluster_id == servers.CLUSTER_ID and archive.znodes >= 6
    path = pathlib.Path(archive.path)
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    assert [entry.name for entry in path.parent.iterdir()] == [path.name], "nothing of the reading is left"
    assert zk_archive.read_back(archive.path, archive.sha256, CHROOT) == archive
    with servers.zookeeper(server.workdir, "restored") as restored:
        restored.stop()
        data = restored.home / "data" / "version-2"
        shutil.rmtree(data)
        data.mkdir()
        with tarfile.open(path) as tar:
            for member in tar.getmembers():
                if member.name.startswith(("snapshot.", "log.")):
                    (data / member.name).write_bytes(tar.extractfile(member).read())
        restored.start(lambda: b"Mode: " in servers._four_letters(restored.address))
        assert tree(restored) == tree(server)


def test_sessions_leave_an_archive_current_and_writes_do_not(server, tmp_path):
    archive = take(server, tmp_path)
    assert zk_archive.is_current(values(server), archive.zxid)
    with client(server) as reader:
        assert reader.exists("/solr")
    assert zk_archive.is_current(values(server), archive.zxid), "a session has begun and ended"
    with client(server) as writer:
        writer.set("/solr/a", b"new")
    assert not zk_archive.is_current(values(server), archive.zxid)
    newer = take(server, tmp_path)
    assert newer.zxid > archive.zxid and newer.sha256 != archive.sha256
    assert pathlib.Path(archive.path).exists(), "an earlier archive stays"
    assert zk_archive.is_current(values(server), newer.zxid)


def test_an_archive_that_is_damaged_is_not_read(server, tmp_path):
    archive = take(server, tmp_path)
    path = pathlib.Path(archive.path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(archives.SnapshotError, match="expected"):
        zk_archive.read_back(archive.path, archive.sha256, CHROOT)


def test_a_log_that_is_not_whole_gives_no_archive(server, tmp_path):
    """The files of a server are copied, and one bit of its log changes: the archive is not read back."""
    copy = tmp_path / "copy"
    shutil.copytree(server.home / "data", copy)
    log = max((copy / "version-2").glob("log.*"), key=lambda file: file.stat().st_size)
    content = bytearray(log.read_bytes())
    content[200] ^= 1
    log.write_bytes(content)
    own = {**values(server), "dataDir": str(copy)}
    with pytest.raises(Exception, match=r"log\."):
        zk_archive.take(own, str(server.home / "zoo.cfg"), str(tmp_path), CHROOT)


def test_data_of_another_cluster(server, tmp_path):
    archive = zk_archive.take(values(server), str(server.home / "zoo.cfg"), str(tmp_path), "/other")
    assert archive.cluster_id is None
