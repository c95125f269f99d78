# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Trees of a real ensemble and its observers: equal while clients write, and each planted difference is found."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import struct
import subprocess
import threading
import zlib
from types import SimpleNamespace

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import zk_files
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.security import make_digest_acl
from quorumshift_spark import ensemble_parity
from quorumshift_spark.views import trees

from tests import modules
from tests.integration import servers
from tests.spark import parity

pytestmark = pytest.mark.real
CHROOT = "/prod/kafka"
SECRET = b'{"version":1,"config":{"SCRAM-SHA-256":"salt=c2VjcmV0IHNhbHQ="}}'
MEMBERS, OBSERVERS = (11, 12, 13), (44, 45)


class Run(parity.Run):
    main = staticmethod(ensemble_parity.main)


@pytest.fixture(scope="module")
def spark():
    with parity.local_spark() as session:
        yield session


def line(ports, role="participant"):
    return f"127.0.0.1:{ports[0]}:{ports[1]}:{role}"


@pytest.fixture(scope="module")
def world(spark):
    """An ensemble of three with two observers that it does not list, and clients that write all the time."""
    ports = {number: (servers.free_port(), servers.free_port()) for number in (*MEMBERS, *OBSERVERS)}
    small = {"snapCount": "400", "preAllocSize": "64"}
    with servers.workdir("ensemble_parity") as home, contextlib.ExitStack() as stack:
        members = {f"server.{number}": line(ports[number]) for number in MEMBERS}
        made = SimpleNamespace(home=home, ports=ports, servers={}, taken=0)
        for number in MEMBERS:
            settings = {**members, **small, "myid": str(number)}
            server = servers.zookeeper(home, f"s{number}", settings, ready=lambda: True)
            made.servers[f"s{number}"] = stack.enter_context(server)
        for number in OBSERVERS:
            own = {f"server.{number}": line(ports[number], "observer"), "peerType": "observer"}
            settings = {**members, **own, **small, "myid": str(number)}
            made.servers[f"z{number}"] = stack.enter_context(servers.zookeeper(home, f"z{number}", settings))
        made.source = ",".join(made.servers[f"s{number}"].connect for number in MEMBERS)
        with zookeeper.connect(made.source) as client:
            fill(client)
            yield made


def fill(client):
    """Write what Kafka writes, and what other applications do."""
    for path in ("/brokers/topics", "/brokers/ids", "/config/users", "/config/topics", "/kafka-acl"):
        client.ensure_path(f"{CHROOT}{path}")
    for number in range(1200):
        client.create_async(f"{CHROOT}/brokers/topics/t{number}", b'{"partitions":{"0":[1]}}')
    client.create(f"{CHROOT}/config/users/alice", SECRET, acl=[make_digest_acl("kafka", "of kafka", all=True)])
    client.create(f"{CHROOT}/brokers/ids/1", b"{}", ephemeral=True)
    client.set(f"{CHROOT}/brokers/topics/t0", b"changed")
    client.ensure_path("/prod/other/app")
    client.create("/prod/other/app/lock", b"12345", ephemeral=True)
    client.create("/solr", b"1234567890")


def change(client, number):
    """Make a few changes of Kafka's, and one of another application."""
    path = f"{CHROOT}/brokers/topics/m{number % 50}"
    if client.exists(path):
        client.set(path, os.urandom(20))
        client.set_acls(path, [make_digest_acl("u", str(number), all=True), *client.get_acls("/")[0]])
        if number % 3 == 0:
            client.delete(path, recursive=True)
    else:
        client.create(path, b"new")
        client.create(f"{path}/partitions", b"", ephemeral=number % 2 == 0)
    client.set("/solr", os.urandom(10))


@contextlib.contextmanager
def writing(connects):
    """Write through each of these servers, with sessions that end now and then."""
    stop, failed = threading.Event(), []

    def write(connect, number):
        client = None
        try:
            while not stop.is_set():
                if client is None or number % 20 == 0:
                    if client:
                        client.stop()
                    client = KazooClient(connect)
                    client.start()
                with contextlib.suppress(KazooException):  # another writer was faster
                    change(client, number)
                number += 1
            client.stop()
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(connect, 7 * at)) for at, connect in enumerate(connects)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failed


def module(world, name, **options):
    given = {"cluster_id": servers.CLUSTER_ID, "state_dir": str(world.home / f"state-{name}")}
    done = modules.run("zk_tree_snapshot", config_file=str(world.servers[name].home / "zoo.cfg"), **given, **options)
    assert not done.get("failed") and "stderr" not in done, done
    return done


def archives(world, names, cut=None, known=()):
    """Archive the files of these servers as the role does; return (zxid, views.servers)."""
    live = [name for name in names if not (cut and name.startswith("s"))]
    seen = {name: module(world, name, state="read") for name in live}
    zxid, taken = max(state["zxid"] for state in seen.values()), []
    for name in names:
        of_source = cut is not None and name.startswith("s")
        options = {"zxid": cut, "known": list(known)} if of_source else {"zxid": zxid, "known": [seen[name]]}
        if cut is not None and not of_source:
            options["log_from"] = cut
        done = module(world, name, **options)
        assert os.stat(done["path"]).st_mode & 0o777 == 0o600
        side = "source" if name.startswith("s") else "destination"
        processed = {str(done["snapshot"]): done["zxid"]}
        taken.append(
            {"name": name, "side": side, "processed": processed, "archive": done["path"], "sha256": done["sha256"]}
        )
    return zxid, taken, seen


def run(world, given, **more):
    views = {"servers": given, "chroot": CHROOT, **more}
    return Run(world.home, "before_cut", views, cluster_id=servers.CLUSTER_ID).go()


def without_secrets(job):
    for path in pathlib.Path(job.output).iterdir():
        assert b"secret salt" not in path.read_bytes() and b"c2VjcmV0" not in path.read_bytes(), path


def test_equal_while_clients_write(world):
    connects = [world.servers[name].connect for name in ("s11", "s13", "z44")]
    with writing(connects):
        before = zk_files.newest_snapshot(directory_of(world, "z44")).zxid
        servers.wait_for(lambda: zk_files.newest_snapshot(directory_of(world, "z44")).zxid > before, 120, "a snapshot")
        for _time in range(2):
            zxid, given, _seen = archives(world, ("s12", "z44", "z45"))
            done = run(world, given, zxid=zxid)
            assert done.verdict == "pass", done.story()
            counts = done.result["counts"]["znode"]
            assert counts["match"] == counts["read"] > 2400, counts
            assert {leftover["path"] for leftover in done.result["leftovers"]} == {"/prod/other", "/solr"}
    assert (done.output / "report.html").exists() and "/prod/other" in (done.output / "report.html").read_text()
    assert done.result["leftovers"][0] == {"path": "/prod/other", "znodes": 3, "bytes": 5, "ephemerals": 1}
    assert done.result["views"]["source:s12"]["state"]["zxid"] == hex(zxid)
    assert not (done.directory / "unpacked").exists()


def directory_of(world, name):
    return str(world.servers[name].home / "data" / "version-2")


# --- planted differences ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def still(world):
    """The archives of a source server and two observers at one zxid, and the whole tree of z44."""
    with zookeeper.connect(world.source) as client:
        client.set(f"{CHROOT}/brokers/topics/t1", b"last")
    zxid, given, _seen = archives(world, ("s12", "z44", "z45"))
    files = trees.Files("z44", "", "", {int(key): at for key, at in given[1]["processed"].items()}, given[1]["archive"])
    tree = trees.Tree("z44", files._replace(sha256=given[1]["sha256"]), ())
    tree = tree._replace(spans=((tree.base, zxid),))
    with tree.replayed("") as (_changes, nodes):
        return SimpleNamespace(zxid=zxid, given=given, nodes=dict(nodes))


def snapshot_of(nodes, zxid, directory):
    """Write a snapshot with these znodes at this zxid, as FileSnap and DataTree.serialize do."""
    acls = sorted({node.acl for node in nodes.values()})

    def text(value):
        return struct.pack(">i", len(value)) + value

    parts = [struct.pack(">4siq", b"ZKSN", 2, -1), struct.pack(">ii", 0, len(acls))]
    for number, acl in enumerate(acls, 1):
        parts.append(struct.pack(">qi", number, len(acl)))
        parts += [struct.pack(">i", perms) + text(scheme.encode()) + text(name.encode()) for perms, scheme, name in acl]
    for path, node in sorted(nodes.items()):
        data = struct.pack(">i", -1) if node.data is None else text(node.data)
        parts += [text(b"" if path == "/" else path.encode()), data]
        parts.append(struct.pack(">qqqqqiiiqq", acls.index(node.acl) + 1, *node.stat))
    body = b"".join([*parts, text(b"/")])
    where = pathlib.Path(directory) / "version-2"
    where.mkdir(parents=True)
    (where / f"snapshot.{zxid:x}").write_bytes(body + struct.pack(">q", zlib.adler32(body)) + text(b"/"))


def planted(still, directory, change):
    """Return views.servers with z44's files replaced by its tree after a change."""
    nodes = dict(still.nodes)
    change(nodes)
    snapshot_of(nodes, still.zxid, directory)
    here = {"data_dir": str(directory), "processed": {str(still.zxid): still.zxid}}
    return [still.given[0], {"name": "z44", "side": "destination", **here}, still.given[2]]


def stat(name, value):
    at = trees.STAT.index(name)
    return lambda node: node._replace(stat=(*node.stat[:at], value, *node.stat[at + 1 :]))


TOPIC = "/brokers/topics/t7"
PLANTED = {
    "nothing": (TOPIC, None, lambda node: node),
    "data": (TOPIC, "data", lambda node: node._replace(data=b"other")),
    "secret": ("/config/users/alice", "data", lambda node: node._replace(data=SECRET.replace(b"=", b"-"))),
    "acl": ("/kafka-acl", "acl", lambda node: node._replace(acl=((1, "world", "anyone"),))),
    "version": (TOPIC, "version", stat("version", 5)),
    "cversion": ("/brokers/topics", "cversion", stat("cversion", 3)),
    "aversion": (TOPIC, "aversion", stat("aversion", 1)),
    "czxid": (TOPIC, "czxid", stat("czxid", 77)),
    "mzxid": (TOPIC, "mzxid", stat("mzxid", 77)),
    "pzxid": ("/brokers/topics", "pzxid", stat("pzxid", 77)),
    "ctime": (TOPIC, "ctime", stat("ctime", 1)),
    "mtime": ("/", "mtime", stat("mtime", 1)),
    "owner": ("/brokers/ids/1", "ephemeralOwner", stat("ephemeralOwner", 99)),
    "missing": (TOPIC, None, lambda node: None),
}


@pytest.mark.parametrize("what", PLANTED)
def test_each_planted_difference_is_found_and_nothing_else(world, still, tmp_path, what):
    path, field, changed = PLANTED[what]

    def plant(nodes):
        place = CHROOT + path.rstrip("/")
        node = changed(nodes.pop(place))
        if node is not None:
            nodes[place] = node

    done = run(world, planted(still, tmp_path, plant), zxid=still.zxid)
    if what == "nothing":
        assert done.verdict == "pass", done.story()
        return
    assert done.verdict == "differ", done.story()
    assert [(difference["key"], difference["field"]) for difference in done.result["differences"]] == [
        (f'["{path}"]', field)
    ], done.story()
    assert set(done.result["differences"][0]["sides"]) == {"source:s12", "destination:z44"}
    assert f"znode {path}" in done.result["reasons"][0] and "do not cut" in done.result["reasons"][0]
    without_secrets(done)


def test_an_extra_znode_is_found(world, still, tmp_path):
    def plant(nodes):
        nodes[f"{CHROOT}/extra"] = nodes[f"{CHROOT}{TOPIC}"]
        nodes["/not/kafkas"] = nodes[f"{CHROOT}{TOPIC}"]

    done = run(world, planted(still, tmp_path, plant), zxid=still.zxid)
    assert [(difference["key"], difference["field"]) for difference in done.result["differences"]] == [
        ('["/extra"]', None)
    ], done.story()
    assert done.result["counts"]["znode"]["right_only"] == 1


# --- what cannot be compared -----------------------------------------------------------------------------


def test_files_that_do_not_reach_the_zxid_are_incomplete(world, still):
    done = run(world, still.given, zxid=still.zxid + 100_000)
    assert done.verdict == "incomplete" and "destination:z45" in str(done.result["reasons"]), done.story()
    assert f"short of {still.zxid + 100_000:#x}" in done.result["reasons"][0]


def test_no_source_is_incomplete_unless_accepted(world, still):
    done = run(world, still.given[1:], zxid=still.zxid)
    assert done.verdict == "incomplete" and "zk_migrate_without_source" in done.result["reasons"][0], done.story()
    done = run(world, still.given[1:], zxid=still.zxid, without_source=True)
    assert done.verdict == "pass", done.story()


def test_snapshot_that_may_have_later_transactions_is_incomplete(world, still):
    given = [{**side, "processed": {}} for side in still.given]
    done = run(world, given, zxid=still.zxid)
    assert done.verdict == "incomplete" and "none is known to be without transactions" in done.result["reasons"][0]


def test_damaged_archive_is_an_error(world, still):
    given = [{**still.given[0], "sha256": "0" * 64}, *still.given[1:]]
    done = run(world, given, zxid=still.zxid)
    assert done.verdict == "error" and "has SHA-256" in done.result["reasons"][0], done.story()


# --- the role ----------------------------------------------------------------------------------------------


def by_the_role(world, name, gate, of_source=("s12",), of_hosts=None, begins=True, **variables):
    """Run the role's comparison as the playbook does; return the process and the directory of its result."""
    here = world.home / name
    here.mkdir()
    hosts: dict = {
        host: {
            "ansible_connection": "local",
            "zk_migrate_config_file": str(world.servers[host].home / "zoo.cfg"),
            "quorumshift_state_dir": str(here / f"state-{host}"),
            **(of_hosts or {}).get(host, {}),
        }
        for host in (*of_source, "z44", "z45")
    }
    for host in of_source:
        hosts[host]["zk_migrate_source"] = {"stat": {"exists": True}}
    brokers = {"b1": {"ansible_connection": "local", "quorumshift_state_dir": str(here / "state-b1")}}
    groups = {
        "zookeeper_source": {"hosts": {host: hosts[host] for host in of_source}},
        "zookeeper_destination": {"hosts": {host: hosts[host] for host in ("z44", "z45")}},
        "kafka_broker": {"hosts": brokers},
    }
    session = {"cluster_id": servers.CLUSTER_ID, "run": f"run-{name}", "phase": "zk"}
    facts = [({"quorumshift_session": session}, "localhost"), ({"quorumshift_node": {"digest_keys": {}}}, "b1")]
    tasks = [
        {"begun": {"facts": values}, "delegate_to": host, "delegate_facts": True} for values, host in facts if begins
    ]
    parity.write_begun(here)
    role = {"name": "quorumshift.kafka.zk_migrate", "tasks_from": "compare"}
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "vars": {
            "quorumshift_state": {"phase": "zk"},
            "quorumshift_artifacts_dir": str(here / "artifacts"),
            "quorumshift_bootstrap_servers": ["127.0.0.1:1"],
            "quorumshift_zookeeper_connect": f"{world.servers['z44'].connect}{CHROOT}",
            "quorumshift_spark_master": "local[1]",
            "zk_migrate_gate": gate,
            **variables,
        },
        "tasks": [*tasks, {"ansible.builtin.include_role": role}],
    }
    (here / "inventory.json").write_text(json.dumps({"all": {"children": groups}}))
    (here / "play.json").write_text(json.dumps([play]))
    env = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(parity.ROOT / ".build"),
        "ANSIBLE_PYTHON_INTERPRETER": str(parity.ROOT / ".venv/bin/python"),
        "PATH": f"{parity.ROOT / '.venv/bin'}{os.pathsep}{os.environ['PATH']}",
    }
    command = ["ansible-playbook", "-i", str(here / "inventory.json"), str(here / "play.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, env=env, check=False)
    assert not list(here.glob("state-*/*/zk_tree_snapshot")), "archives are left on servers"
    found = list((here / "artifacts").rglob("result.json"))
    return done, found[0].parent if found else None


def test_the_role_opens_the_gate_while_clients_write(world):
    with writing([world.servers["s11"].connect]):
        done, output = by_the_role(world, "role-pass", "before_cut")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "comparisons of 3 servers agree" in done.stdout
    found = json.loads((output / "result.json").read_text())
    assert found["verdict"] == "pass" and found["gate"] == "before_cut" and "run-role-pass" in str(output)
    without_secrets(SimpleNamespace(output=output))


def test_the_role_needs_a_run(world):
    done, _output = by_the_role(world, "role-alone", "before_cut", begins=False)
    assert done.returncode and "tasks_from: detect_phase" in done.stdout, done.stdout
    assert "QS-RUN-018" in done.stdout and "missing required" not in done.stdout, done.stdout


def test_the_role_keeps_the_gate_closed_without_a_source(world):
    done, _output = by_the_role(world, "role-closed", "before_cut", of_source=())
    assert done.returncode and "gate before_cut stays closed: incomplete" in done.stdout, done.stdout
    assert "zk_migrate_without_source=true" in done.stdout


# --- after the promotion; the last test, since it ends the observers ----------------------------------------


def test_after_the_promotion(world, tmp_path):
    _zxid, _given, seen = archives(world, ("s12", "z44", "z45"))
    observers = [world.servers[f"z{number}"] for number in OBSERVERS]
    for observer in observers:
        observer.stop()
    ends = {observer.name: zk_files.last_zxid(*[directory_of(world, observer.name)] * 2) for observer in observers}
    cut = max(ends.values())
    with writing([world.servers["s13"].connect]):  # on the source after the cut: of no concern
        own = "".join(f"server.{number}={line(world.ports[number])}\n" for number in OBSERVERS)
        for observer in observers:
            config = observer.home / "zoo.cfg"
            kept = [text for text in config.read_text().splitlines() if not text.startswith(("server.", "peerType"))]
            config.write_text("\n".join(kept) + "\n" + own)
        for observer in observers:
            observer.start(lambda: True)
        connect = ",".join(observer.connect for observer in observers)
        with zookeeper.connect(connect, 60) as client:
            topics = f"{CHROOT}/brokers/topics"
            client.create(f"{topics}/since", b"", ephemeral=True)
            client.set(f"{topics}/t3", b"since")
            client.set_acls(f"{topics}/t4", [make_digest_acl("u", "p", all=True), *client.get_acls("/")[0]])
            client.delete(f"{topics}/t5")
            client.set("/solr", b"of the destination")
            zxid, given, _seen = archives(world, ("s12", "z44", "z45"), cut, [seen["s12"]])
    done = run(world, given, zxid=zxid, cut=cut)
    assert done.verdict == "pass", done.story()
    state = done.result["views"]["source:s12"]["state"]
    # the parent, and what the observers' own sessions left: each has a transaction
    assert state["cut"] == hex(cut) and 5 <= state["changed_since"] < 60, state
    assert done.result["counts"]["znode"]["explained"] >= 6
    assert {leftover["path"] for leftover in done.result["leftovers"]} == {"/prod/other", "/solr"}

    files = trees.Files("z", "", "", {int(at): to for at, to in given[1]["processed"].items()}, given[1]["archive"])
    files = files._replace(sha256=given[1]["sha256"])
    with trees.Tree("z", files, ((files, zxid),)).replayed("") as (_changes, nodes):
        still = SimpleNamespace(zxid=zxid, given=given, nodes=dict(nodes))

    def plant(nodes):
        nodes[f"{CHROOT}/brokers/topics/t9"] = nodes[f"{CHROOT}/brokers/topics/t9"]._replace(data=b"changed silently")
        nodes.pop(f"{CHROOT}/brokers/topics/t8")  # without a transaction

    known = [{"host": "s12", **{key: seen["s12"][key] for key in ("snapshot", "zxid")}}]
    cuts = {"z44": {"zk_migrate_host": {"cut": {"last": cut}}}, "z45": {"zk_migrate_host": {"cut": {"last": 1}}}}
    of_role, _output = by_the_role(world, "role-after", "after_cut", of_hosts=cuts, zk_migrate_known=known)
    assert of_role.returncode == 0, of_role.stdout + of_role.stderr
    assert "Other applications left" in of_role.stdout and "/prod/other, /solr" in of_role.stdout

    # A server that joined after the cut has a snapshot of then, and no log that goes back
    joined = planted(still, tmp_path / "joined", lambda _nodes: None)[1]
    done = run(world, [given[0], joined, given[1]], zxid=zxid, cut=cut)
    assert done.verdict == "pass", done.story()
    done = run(world, [given[0], joined], zxid=zxid, cut=cut)
    assert done.verdict == "incomplete" and "log goes back to the cut" in done.result["reasons"][0], done.story()

    of_z45 = [given[0], given[2], planted(still, tmp_path, plant)[1]]
    done = run(world, of_z45, zxid=zxid, cut=cut)
    assert done.verdict == "differ", done.story()
    found = [(difference["key"], difference["field"]) for difference in done.result["differences"]]
    assert found == [('["/brokers/topics/t8"]', None), ('["/brokers/topics/t9"]', "data")], done.story()

    # A later run: the destination has taken snapshots since, and its log of then is no longer the newest
    with zookeeper.connect(connect, 60) as client:
        for number in range(1500):
            client.set(f"{CHROOT}/brokers/topics/t{number % 3 + 10}", str(number).encode())
    assert zk_files.newest_snapshot(directory_of(world, "z44")).zxid > zxid
    later, given, _seen = archives(world, ("s12", "z44", "z45"), cut, [seen["s12"]])
    done = run(world, given, zxid=later, cut=cut)
    assert done.verdict == "pass", done.story()

    leftovers_are_removed(world, connect)


def leftovers_are_removed(world, connect):
    """Only on the destination, only where no session lives, and once."""

    def leftovers(connect, state="absent", refuses=False, **options):
        given = {"destination_servers": {"44": "", "45": ""}, "bootstrap_servers": ["127.0.0.1:1"], "timeout": 30}
        done = modules.run("zk_leftovers", state=state, zookeeper_connect=f"{connect}{CHROOT}", **given, **options)
        assert bool(done.get("failed")) == refuses and "stderr" not in done, done
        return done

    refused = leftovers(world.source, refuses=True)
    assert "Promote the destination first" in refused["msg"], refused
    with zookeeper.connect(connect, 60) as client:
        client.create("/prod/other/mine", b"", ephemeral=True)
        refused = leftovers(connect, refuses=True)
        assert "/prod/other/mine of session 0x" in refused["msg"], refused
        client.delete("/prod/other/mine")
        servers.wait_for(lambda: client.exists("/prod/other/app/lock") is None, 60, "the other tenant's session ended")
        planned = leftovers(connect, _ansible_check_mode=True, _ansible_diff=True)
        assert planned["changed"] and {leftover["path"] for leftover in planned["leftovers"]} == {
            "/prod/other",
            "/solr",
        }, planned
        assert client.exists("/solr") is not None and leftovers(connect, "listed")["leftovers"] == planned["leftovers"]
        done = leftovers(connect, _ansible_diff=True)
        assert done["changed"] and done["diff"] == planned["diff"] and "/solr (1 znodes, " in done["diff"]["before"], (
            done
        )
        assert client.get_children("/") == ["prod", "zookeeper"] and client.get_children("/prod") == ["kafka"]
        assert client.exists(f"{CHROOT}/brokers/topics/t3") is not None
    again = leftovers(connect)
    assert again["leftovers"] == [] and not again["changed"], again
    with zookeeper.connect(world.source) as client:
        assert client.exists("/solr") is not None and client.exists("/prod/other/app") is not None
