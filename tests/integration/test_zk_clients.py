# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""zk_clients_info on a real ensemble: each client that is planted is found and named, and what is not known is said.

The servers have an address each, 127.0.0.1 to 127.0.0.3, and so have the clients, 127.0.1.x. Server 2 allows no word
but srvr, server 3 has a secure port as well: the connections there are known to its AdminServer alone.
"""

from __future__ import annotations

import contextlib
import os
import socket

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import ZkSecurity
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import zk_wire
from kazoo.client import KazooClient
from kazoo.handlers import utils
from kazoo.handlers.threading import SequentialThreadingHandler

from tests import modules
from tests.integration import servers
from tests.integration.certificates import Authority
from tests.system.testbed import jars

pytestmark = pytest.mark.real
HOSTS = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
CHROOT = "/kafka"
NODES = {
    "b9": {"role": "broker", "host_address": "127.0.1.2"},
    "c1": {"role": "controller", "host_address": "127.0.1.3"},
    "c2": {"role": "controller", "host_address": "no-such-host.invalid"},
}


class From(SequentialThreadingHandler):
    """A handler of kazoo that connects from one address."""

    def __init__(self, address):
        super().__init__()
        self.address = address

    def create_connection(self, *args, **options):
        return utils.create_tcp_connection(Bound(self.address), *args, **options)


class Bound:
    """What kazoo takes of the module `socket`, with sockets that are bound to an address."""

    def __init__(self, address):
        self.address = address

    def socket(self, family):
        sock = socket.socket(family)
        sock.bind((self.address, 0))
        return sock

    def create_connection(self, address, timeout):
        return socket.create_connection(address, timeout, (self.address, 0))

    def __getattr__(self, name):
        return getattr(socket, name)


class Ensemble:
    """Three servers; `connect` names them all."""

    def __init__(self, running, admin_port, tls):
        self.running, self.admin_port, self.tls = running, admin_port, tls
        self.connect = ",".join(str(server.address) for server in running)

    def ask(self, **options):
        """Return the module's result."""
        given = {"zookeeper_connect": self.connect + CHROOT, "admin_port": self.admin_port, "nodes": NODES}
        return modules.run("zk_clients_info", **{**given, **options})


@contextlib.contextmanager
def client(address, server, chroot="", **options):
    """Run a client of one server, from an address."""
    running = KazooClient(hosts=f"{server}{chroot}", handler=From(address), timeout=20, **options)
    running.start(timeout=20)
    try:
        yield running
    finally:
        running.stop()
        running.close()


def member(server):
    """Wait until a server serves, and return it."""
    servers.wait_for(lambda: mode(server) in ("leader", "follower"), 60, f"{server.name} serves")
    return server


def mode(server):
    with contextlib.suppress(zk_wire.WireError):
        answer = zk_wire.four_letter(server.address, "srvr")
        return next((line[6:] for line in answer.splitlines() if line.startswith("Mode: ")), "")
    return ""


def with_admin_server(server, ready):
    """Start a server again, with the classes of its AdminServer."""
    for jar in sorted(jars.resolve_admin_server().glob("*.jar")):
        server.add_classes(jar)
    server.start(ready)
    return server


@pytest.fixture(scope="module")
def ensemble():
    with servers.workdir("zk_clients") as home, contextlib.ExitStack() as stack:
        authority = Authority(home / "tls")
        ports = {host: (servers.free_port(host), servers.free_port(host)) for host in HOSTS}
        admin_port = servers.free_port("0.0.0.0")
        common = {f"server.{1 + at}": f"{host}:{ports[host][0]}:{ports[host][1]}" for at, host in enumerate(HOSTS)}
        common.update({"maxSessionTimeout": "120000", "admin.serverPort": str(admin_port)})
        secure = authority.zookeeper_keys(authority.issue("server", "IP:127.0.0.3"), servers.free_port(HOSTS[2]))
        secure["secureClientPortAddress"] = HOSTS[2]
        own = (
            {},
            {"4lw.commands.whitelist": "srvr", "admin.enableServer": "true", "admin.serverAddress": HOSTS[1]},
            {**secure, "admin.enableServer": "true", "admin.serverAddress": HOSTS[2]},
        )
        running = []
        for at, (host, settings) in enumerate(zip(HOSTS, own)):
            given = {**common, **settings, "myid": str(1 + at)}
            server = stack.enter_context(servers.zookeeper(home, f"z{1 + at}", given, host=host, ready=lambda: True))
            running.append(server)
        for server in running[1:]:
            with_admin_server(server, lambda: True)
        for server in running:
            member(server)
        files = authority.issue("client")
        tls = {"cafile": authority.cafile, "certfile": files.certfile, "keyfile": files.keyfile}
        with client("127.0.1.1", running[0].address) as first:
            first.ensure_path(f"{CHROOT}/brokers/ids")
            first.create(f"{CHROOT}/cluster/id", b'{"version":"1","id":"Qs7KfZk2TIK1n0nQ5Qm3Tw"}', makepath=True)
        yield Ensemble(running, admin_port, tls)


@pytest.fixture
def planted(ensemble):
    """Run the clients of every kind, and yield them by name."""
    one, two, three = (server.address for server in ensemble.running)
    with contextlib.ExitStack() as stack:

        def use(*given, **options):
            return stack.enter_context(client(*given, **options))

        # A broker in ZooKeeper mode is known by its znode, whatever address it has
        broker = use("127.0.1.1", one, CHROOT)
        broker.create("/brokers/ids/7", b"{}", ephemeral=True)
        use("127.0.1.2", one).exists("/")  # another process on a broker's host
        use("127.0.1.3", three).exists("/")  # on a controller's
        solr = use("127.0.1.4", one)
        solr.create("/solr/live_nodes/s1", b"", ephemeral=True, makepath=True)
        use("127.0.1.5", one)  # has only connected
        watcher = use("127.0.1.6", one, CHROOT)
        watcher.get("/cluster/id", watch=lambda event: None)
        consumer = use("127.0.1.7", one, CHROOT)
        consumer.create("/consumers/old/ids/a", b"", ephemeral=True, makepath=True)
        use("127.0.1.8", two).exists("/")  # known to an AdminServer alone
        secured = ensemble.running[2].tls_address
        options = ZkSecurity.from_options({"use_tls": True, **ensemble.tls}).kazoo()
        use("127.0.1.9", secured, **options).exists("/")  # cons does not list it
        raw = stack.enter_context(socket.create_connection(tuple(one), source_address=("127.0.1.10", 0)))
        assert raw
        use("127.0.0.2", one).exists("/")  # on the host of another server
        left = zk_wire.ZkConnection(f"{one}", timeout=40)
        left.get("/")
        left._wire.close()  # its session goes on for 40 s
        yield {"left": left.session & (1 << 64) - 1}
    with client("127.0.1.1", one) as cleaner:
        cleaner.delete("/solr", recursive=True)


def found(result):
    """Return {address: (kind, name, last operation)} of a result."""
    assert "clients" in result, result
    return {entry["address"]: (entry["kind"], entry["name"]) for entry in result["clients"]}


def test_each_planted_client_is_found_and_named(ensemble, planted):
    result = ensemble.ask()
    assert found(result) == {
        "127.0.1.1": ("broker", "broker 7"),
        "127.0.1.2": ("broker", "b9"),
        "127.0.1.3": ("controller", "c1"),
        "127.0.1.4": ("unknown", ""),
        "127.0.1.5": ("unknown", ""),
        "127.0.1.6": ("unknown", ""),
        "127.0.1.7": ("unknown", ""),
        "127.0.1.8": ("unknown", ""),
        "127.0.1.9": ("unknown", ""),
        "127.0.1.10": ("unknown", ""),
        "127.0.0.2": ("zookeeper", f"host of {ensemble.running[1].address}"),
        "": ("unknown", ""),
    }
    by_address = {entry["address"]: entry for entry in result["clients"]}
    assert by_address["127.0.1.4"]["paths"] == ["/solr/live_nodes/s1"]
    assert by_address["127.0.1.7"]["paths"] == [f"{CHROOT}/consumers/old/ids/a"]
    assert by_address["127.0.1.10"]["session"] == ""
    assert by_address[""]["session"] == f"0x{planted['left']:x}"
    assert by_address["127.0.1.8"]["server"] == str(ensemble.running[1].address)
    assert {name: answer["source"] for name, answer in result["servers"].items()} == {
        str(ensemble.running[0].address): "cons",
        str(ensemble.running[1].address): "AdminServer",
        str(ensemble.running[2].address): "AdminServer",
    }
    assert [(other["path"], other["znodes"]) for other in result["others"]] == [("/solr", 3)]
    # Nothing else keeps the ensemble: each finding is a client, or the other application's part of the tree
    assert len(result["findings"]) == len(found(result)) + 1
    assert len(result["lines"]) == len(found(result))


def test_clients_keep_the_ensemble_from_being_unused(ensemble, planted):
    result = ensemble.ask(state="unused", interval_s=0, accept_paths=["/solr"])
    assert result["failed"]
    for address in found(result):
        assert address in result["msg"]
    assert "/solr is not of this cluster" not in result["msg"]


def unused(ensemble, **options):
    """Return the result of `unused` over both readings, as its action plugin asks for it."""
    carry = {}
    while True:
        result = ensemble.ask(state="unused", carry=carry, **options)
        if result.get("done", True):
            return result
        carry = result["carry"]


@pytest.fixture
def quiet(ensemble):
    """Wait until no session of an earlier test is left."""
    servers.wait_for(lambda: not ensemble.ask()["clients"], 150, "no session is left")


def test_an_unused_ensemble(ensemble, quiet):
    result = unused(ensemble, interval_s=1, cluster_id=servers.CLUSTER_ID)
    assert (result["findings"], result["clients"], result["others"]) == ([], [], [])


def test_a_client_between_the_readings_moves_the_zxid(ensemble, quiet):
    first = ensemble.ask(state="unused", interval_s=30)
    assert first["done"] is False
    with client("127.0.1.1", ensemble.running[1].address):
        pass
    carry = {**first["carry"], "began": 0}
    result = ensemble.ask(state="unused", interval_s=30, carry=carry)
    assert result["failed"] and "zxid went from" in result["msg"]
    assert result["clients"] == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"admin_port": 0}, "is not in the server's 4lw.commands.whitelist"),
        ({"cluster_id": "AAAAAAAAAAAAAAAAAAAAAA"}, "of the ensemble is Qs7KfZk2TIK1n0nQ5Qm3Tw"),
        ({"zookeeper_connect": "{0},{1}/kafka"}, "server 3 of the ensemble was not asked"),
        ({"zookeeper_connect": "{0},{1},{2},127.0.0.4:1/kafka"}, "the clients of 127.0.0.4:1 are not known"),
        ({"zookeeper_connect": "{0},{1},{2}/other"}, "/kafka is not of this cluster"),
    ],
)
def test_what_is_not_known_keeps_the_ensemble(ensemble, quiet, options, said):
    addresses = [server.address for server in ensemble.running]
    options = {name: value.format(*addresses) if isinstance(value, str) else value for name, value in options.items()}
    result = ensemble.ask(state="unused", interval_s=0, **options)
    assert result["failed"] and said in result["msg"]


def test_an_admin_server_of_another_server_proves_nothing(ensemble, quiet):
    """Two servers of one host: the AdminServer is of the one that has its port."""
    second = ensemble.running[1].address
    other = HostPort(second.host, servers.free_port(second.host))
    result = ensemble.ask(state="unused", zookeeper_connect=f"{ensemble.connect},{other}{CHROOT}", interval_s=0)
    assert result["failed"] and f"the clients of {other} are not known" in result["msg"]


@pytest.mark.parametrize(
    ("words", "said"), [("srvr,cons,mntr", "1 sessions"), ("srvr,cons", "sessions of the ensemble are not known")]
)
def test_a_leader_that_only_counts_its_sessions(words, said):
    settings = {"4lw.commands.whitelist": words, "maxSessionTimeout": "60000"}
    with servers.workdir("zk_counted") as home, servers.zookeeper(home, settings=settings) as server:

        def ask():
            given = {"zookeeper_connect": server.connect, "admin_port": 0, "interval_s": 0, "timeout": 2}
            return modules.run("zk_clients_info", state="unused", **given)

        assert bool(ask().get("failed")) == ("mntr" not in words)
        left = zk_wire.ZkConnection(server.connect, timeout=30)
        left.get("/")
        left._wire.close()  # its session goes on for 30 s
        result = ask()
        assert result["failed"] and said in result["msg"]


def test_a_server_that_does_not_answer_and_one_that_is_stopped(ensemble, quiet):
    """Last, since it stops servers."""
    first, second, third = ensemble.running
    third.kill()
    names = [str(server.address) for server in ensemble.running]
    servers.wait_for(lambda: mode(first) in ("leader", "follower"), 60, "the others serve")
    assert f"the clients of {names[2]} are not known" in unused(ensemble, interval_s=0)["msg"]
    assert unused(ensemble, interval_s=0, stopped={names[2]: 3})["findings"] == []
    second.kill()
    servers.wait_for(lambda: not mode(first), 60, "the last one has no quorum")
    # One without a quorum serves nothing, but that is known only where the others are proved to be stopped
    assert f"{names[0]} does not serve" in unused(ensemble, interval_s=0, stopped={names[2]: 3})["msg"] or (
        f"the clients of {names[1]} are not known" in unused(ensemble, interval_s=0, stopped={names[2]: 3})["msg"]
    )
    assert unused(ensemble, interval_s=0, stopped={names[1]: 2, names[2]: 3})["findings"] == []
    os.kill(first.pid, 0)
