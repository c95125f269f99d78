# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tree in ZooKeeper's files is the one that the server answers, whatever changed it."""

from __future__ import annotations

import collections
import os
import random
import shutil
import threading

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import kafka_writes
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import zk_files as files
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import zk_log, znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper
from kazoo.client import KazooClient
from kazoo.exceptions import RolledBackError
from kazoo.security import make_digest_acl

from tests.integration import servers

pytestmark = pytest.mark.real
ROOT = "/prod/kafka"


def change(client, rng, names):
    """Make one change of each sort."""
    name = f"{ROOT}/n{rng.randrange(names)}"
    what = rng.randrange(7)
    try:
        if what == 0:
            client.ensure_path(f"{name}/a/b")
        elif what == 1:
            client.delete(name, recursive=True)
        elif what == 2:
            client.set(name, os.urandom(rng.randrange(40)))
        elif what == 3:
            client.set_acls(name, [make_digest_acl("u", "p", all=True), *client.get_acls("/")[0]])
        elif what == 4:
            with client.transaction() as multi:
                multi.create(f"{name}-m", b"m")
                multi.set_data(ROOT, b"x")
                multi.delete(f"{name}-m")
        elif what == 5:
            client.create(f"{name}-e", b"e", ephemeral=True)
        else:
            client.create(f"{name}/s-", b"", sequence=True, makepath=True)
    except Exception as error:  # a multi or a create that fails is written as well
        assert type(error).__module__.startswith("kazoo"), error


def by_files(directory, under):
    """Return (zxid, {path: (data, Stat)}) of the files below a path."""
    zxid, nodes = files.read_tree(directory, directory, under)
    found = dict(nodes)
    children = collections.Counter(path.rpartition("/")[0] or "/" for path in found if path != "/")
    return zxid, {path: (node.data, files.stat_of(node, children[path])) for path, node in found.items()}


def by_server(client, under):
    found = {}
    for node in zookeeper.read_tree(client, under):
        found[node.path[len(under) :] or "/"] = (node.data, znodes.Stat(*node.stat))
    return found


@pytest.fixture(scope="module")
def home():
    with servers.workdir("zookeeper_files") as path:
        yield path


# As ZooKeeper 3.5 writes the log: without the paths of a session that ends, and without digests
OLD = ("-Dzookeeper.closeSessionTxn.enabled=false", "-Dzookeeper.digest.enabled=false")


@pytest.fixture(scope="module", params=[(), OLD[:1], OLD[1:], OLD], ids=["new", "no_paths", "no_digests", "old"])
def recorded(home, request):
    """Return a copy of the files of a server, taken while it ran, and what it answered."""
    rng = random.Random(1)
    settings = {"snapCount": "150", "preAllocSize": "64"}
    name = f"zookeeper-{request.param_index}"
    copied = home / name / "copied"
    with servers.zookeeper(home, name, settings, request.param) as server, zookeeper.connect(server.connect) as client:
        client.ensure_path(ROOT)
        client.create("/other", b"of another tenant", ephemeral=True)
        other = KazooClient(server.connect)
        other.start()
        for number in range(500):
            change(other if number % 3 else client, rng, 40)
        # The last operation fails, so that the server applies none; it logs those before it with their own types
        failing = client.transaction()
        failing.create(f"{ROOT}/never", b"")
        failing.set_data(ROOT, b"never")
        failing.delete(f"{ROOT}/missing")
        assert isinstance(failing.commit()[0], RolledBackError)
        other.create(f"{ROOT}/gone", b"", ephemeral=True)
        other.stop()
        client.create(f"{ROOT}/last", b"last")
        expected = by_server(client, ROOT)
        shutil.copytree(server.home / "data" / "version-2", copied)
        return copied, expected, client.last_zxid


def test_tree_is_the_one_that_the_server_answers(recorded):
    directory, expected, last = recorded
    assert len([name for name in os.listdir(directory) if name.startswith("snapshot.")]) > 1
    zxid, found = by_files(str(directory), ROOT)
    assert zxid >= last
    assert set(found) == set(expected)
    assert {path: other_entry for path, other_entry in found.items() if other_entry != expected[path]} == {}
    assert "/gone" not in found and "/last" in found


def test_any_snapshot_leads_to_the_same_tree(recorded, tmp_path):
    directory, expected, _last = recorded
    names = sorted(name for name in os.listdir(directory) if name.startswith("snapshot."))
    for name in names:
        of_one = tmp_path / name
        of_one.mkdir()
        shutil.copy(directory / name, of_one)
        _zxid, nodes = files.read_tree(str(of_one), str(directory), ROOT)
        found = {path: node.data for path, node in nodes}
        assert found == {path: data for path, (data, _stat) in expected.items()}, name


def test_no_changed_byte_of_a_snapshot_is_read(recorded, tmp_path):
    directory, _expected, _last = recorded
    snapshot = files.newest_snapshot(str(directory))
    data = (directory / os.path.basename(snapshot.path)).read_bytes()
    rng = random.Random(2)
    path = tmp_path / os.path.basename(snapshot.path)
    for _case in range(60):
        at = rng.randrange(len(data))
        path.write_bytes(data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :])
        with pytest.raises(files.ZooKeeperFileError, match=path.name):
            list(files.read_snapshot(str(path)))
    for _case in range(20):
        path.write_bytes(data[: rng.randrange(len(data))])
        with pytest.raises(files.ZooKeeperFileError):
            list(files.read_snapshot(str(path)))


def test_no_changed_byte_of_a_log_is_read(recorded, tmp_path):
    """A part of the last transaction is what the server had not written yet; anything else is an error."""
    directory, _expected, _last = recorded
    logs = sorted((name for name in os.listdir(directory) if name.startswith("log.")), key=lambda n: int(n[4:], 16))
    data = (directory / logs[-1]).read_bytes().rstrip(b"\0")
    whole, before = files.read_changes([files.Span(str(directory))], 0, {}), int(logs[-1][4:], 16) - 1
    path = tmp_path / logs[-1]
    rng = random.Random(3)
    for case in range(200):
        at = rng.randrange(16, len(data))
        changed = data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
        path.write_bytes(changed + bytes(case % 2 * 5000))
        with pytest.raises(files.ZooKeeperFileError, match=path.name):
            files.read_changes([files.Span(str(tmp_path))], before, {})
    for padding in (b"", bytes(1000)):
        for missing in (1, 3, 30):
            path.write_bytes(data[: len(data) - missing] + padding)
            assert files.read_changes([files.Span(str(tmp_path))], before, {})[0] == whole[0] - 1


def test_missing_transactions_are_an_error(recorded, tmp_path):
    directory, _expected, _last = recorded
    names = sorted((name for name in os.listdir(directory) if name.startswith("log.")), key=lambda n: int(n[4:], 16))
    for name in names:
        shutil.copy(directory / name, tmp_path)
    assert files.read_changes([files.Span(str(tmp_path))], 0, {})[1]
    (tmp_path / names[1]).unlink()
    with pytest.raises(files.ZooKeeperFileError, match=f"{names[2]} at byte 16: transactions .* are missing"):
        files.read_changes([files.Span(str(tmp_path))], 0, {})


def test_a_node_that_does_not_exist_is_not_there(recorded):
    directory, _expected, _last = recorded
    assert by_files(str(directory), "/missing")[1] == {}
    with pytest.raises(files.ZooKeeperFileError, match="no snapshot"):
        files.newest_snapshot(str(directory.parent))


def of_server(client):
    """Return {path: (data, Stat without sizes, ACL)} below ROOT as the server answers."""
    found = {}
    for node in zookeeper.read_tree(client, ROOT):
        acl = tuple((entry.perms, entry.id.scheme, entry.id.id) for entry in client.get_acls(node.path)[0])
        found[node.path[len(ROOT) :] or "/"] = (node.data, znodes.Stat(*node.stat), acl)
    return found


def at_zxid(directory, snapshot, zxid):
    """Return the same of the files at a zxid, from one of the snapshots on."""
    reached, _changes, nodes = files.replay(snapshot, [files.Span(directory, zxid)], ROOT)
    assert reached == zxid
    found = dict(nodes)
    children = collections.Counter(path.rpartition("/")[0] or "/" for path in found if path != "/")
    return {path: (node.data, files.stat_of(node, children[path]), node.acl) for path, node in found.items()}


def test_tree_at_a_zxid_is_what_the_server_answered_then(home):
    """Snapshots are taken while clients write, so they contain a part of what followed. Between the writes the server
    is asked; later its files are replayed to each of these zxids."""
    rng, asked = random.Random(5), {}
    settings = {"snapCount": "300", "preAllocSize": "64"}
    with servers.zookeeper(home, "at_zxid", settings) as server, zookeeper.connect(server.connect) as client:
        directory = str(server.home / "data" / "version-2")
        client.ensure_path(ROOT)
        others = [KazooClient(server.connect) for _client in range(3)]
        for other in others:
            other.start()
        for number in range(4000):  # so that writing a snapshot takes a while
            client.create_async(f"{ROOT}/still{number}", os.urandom(300))
        for asking in range(6):
            threads = [
                threading.Thread(target=lambda other=other: [change(other, rng, 300) for _number in range(250)])
                for other in others
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            others[asking % 3].stop()
            others[asking % 3] = KazooClient(server.connect)
            others[asking % 3].start()
            tree = of_server(client)
            client.sync("/")
            asked[client.last_zxid] = tree
            assert of_server(client) == tree
        newest = max(zxid for zxid, _name in files.files_of(directory, zk_log.SNAPSHOTS))
        servers.wait_for(lambda: files.newest_snapshot(directory).zxid >= newest, 60, "the snapshot is complete")
        for other in others:
            other.stop()
    # The end of a session can begin a further snapshot, which the server's end cuts off
    snapshots = [(zxid, name) for zxid, name in files.files_of(directory, zk_log.SNAPSHOTS) if zxid <= newest]
    fuzzy = [
        snapshot
        for snapshot, name in snapshots
        if any(
            max(node.stat[0], node.stat[1], node.stat[8]) > snapshot
            for _path, node in files.read_snapshot(f"{directory}/{name}")
        )
    ]
    used = set()
    for zxid, tree in asked.items():
        # Also from each older one: it has no transaction after the next began
        usable = files.snapshot_up_to(directory, zxid, {newest: max(asked)})
        for snapshot, name in snapshots:
            if snapshot <= usable.zxid:
                found = at_zxid(directory, files.Snapshot(snapshot, f"{directory}/{name}"), zxid)
                paths = [path for path in {*found, *tree} if found.get(path) != tree.get(path)]
                assert not paths, {path: (found.get(path), tree.get(path)) for path in paths}
                used.add(snapshot)
    assert len(used & {*fuzzy}) > 2, (used, fuzzy)
    with pytest.raises(files.ZooKeeperFileError, match="none is known to be without transactions after"):
        files.snapshot_up_to(directory, 1, {})
    with pytest.raises(zk_log.SpanTooShort, match="short of 0xffffffff"):
        files.replay(files.newest_snapshot(directory), [files.Span(directory, 0xFFFFFFFF)])


def test_kafkas_writes_are_found_in_the_log(home):
    """Each of Kafka's writes, none of another tenant's; what the Stats show, and that they show no change of an ACL."""
    writes: list[int] = []
    with servers.zookeeper(home, "writes", {"preAllocSize": "64"}) as server:
        with zookeeper.connect(server.connect) as client:
            client.ensure_path(f"{ROOT}/topics")
            client.create("/other", b"")
            begin = client.last_zxid
            session = KazooClient(server.connect)
            session.start()

            def write(make):
                before = client.last_zxid
                client.set("/other", b"of another tenant")
                make()
                client.get("/other")
                assert client.last_zxid > before + 1
                writes.append(client.last_zxid)

            def multi():
                with client.transaction() as parts:
                    parts.set_data("/other", b"x")
                    parts.create(f"{ROOT}/topics/of_multi", b"")

            write(lambda: client.create(f"{ROOT}/topics/a", b""))
            write(lambda: client.set(ROOT, b"data"))
            write(multi)
            write(lambda: session.create(f"{ROOT}/id", b"", ephemeral=True))
            write(session.stop)
            write(lambda: client.delete(f"{ROOT}/topics/a"))
            stats = [(node.path, znodes.Stat(*node.stat)) for node in zookeeper.read_tree(client, ROOT)]
            assert kafka_writes.find_newest(stats) == (writes[-1], f"{ROOT}/topics")
            write(lambda: client.set_acls(ROOT, [make_digest_acl("u", "p", all=True), *client.get_acls("/")[0]]))
            stats = [(node.path, znodes.Stat(*node.stat)) for node in zookeeper.read_tree(client, ROOT)]
            assert kafka_writes.find_newest(stats)[0] == writes[-2]
            last = client.last_zxid
        directory = str(server.home / "data" / "version-2")
        servers.wait_for(lambda: files.last_zxid(directory, directory) > last, 60, "the end of the session is logged")
        found = list(kafka_writes.writes(zk_log.transactions(directory, begin, directory), ROOT))
    assert [found_write.zxid for found_write in found] == writes
    assert [found_write.ends_session for found_write in found] == [False, False, False, False, True, False, False]
    assert {change for found_write in found for of in found_write.paths.values() for change in of} >= {
        "acl",
        "data",
        "delete",
    }
