# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who uses an ensemble, and what keeps it from being proved unused: every combination of answers."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import zk_clients
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble.zk_clients import (
    BROKER,
    CONTROLLER,
    TOOL,
    UNKNOWN,
    ZOOKEEPER,
    Client,
    Connection,
    Known,
    Reading,
    Server,
    Sessions,
    Subtree,
)

# As ZooKeeper 3.8.4 printed them
CONS = """ /127.0.0.1:34298[0](queued=0,recved=1,sent=0)
 /127.0.0.1:34290[1](queued=0,recved=8,sent=8,sid=0x100000972a00000,lop=GETD,est=1795949867251,to=10000,lcxid=0x7,\
lzxid=0x5,lresp=619383,llat=1,minlat=0,avglat=1,maxlat=6)
 /127.0.0.1:34296[1](queued=0,recved=0,sent=0)

"""
DUMP = """SessionTracker dump:
Session Sets (2)/(2):
1 expire at Sun Nov 29 10:57:57 UTC 2026:
\t0x100000972a00000
1 expire at Sun Nov 29 10:57:58 UTC 2026:
\t0xff00000972a00001
ephemeral nodes dump:
Sessions with Ephemerals (1):
0x100000972a00000:
\t/a/e
\t/a/f
Connections dump:
Connections Sets (1)/(3):
3 expire at Sun Nov 29 10:57:57 UTC 2026:
\tip: /127.0.0.1:34290 sessionId: 0x100000972a00000
\tip: /127.0.0.1:34308 sessionId: 0x0
"""
OWN, OTHER = 0x100000000000001, 0x100000000000002
KNOWN = Known({"10.0.0.1": ["b1", "b2"]}, {"10.0.0.2": ["c1"]}, (OWN,))
SERVERS = ("z1:2181", "z2:2181", "z3:2181")


def reading(sessions=None, error="", **changes):
    """Return a reading of three servers without a client; `changes`: of the server z1."""
    servers = {name: Server("follower", 9, "cons", (), addresses=(f"10.0.1.{at}",)) for at, name in enumerate(SERVERS)}
    servers["z3:2181"] = servers["z3:2181"]._replace(mode="leader")
    servers["z1:2181"] = servers["z1:2181"]._replace(**changes)
    return Reading(servers, Sessions(sessions or {}, error))


def classified(connection, paths=(), chroot="/kafka"):
    """Return (kind, name) of one connection to z1, whose session owns paths."""
    sessions = {connection.session: paths} if connection.session else {}
    found = reading(sessions, connections=(connection,))
    (client,) = zk_clients.name_servers(found.servers, zk_clients.find_clients(found, KNOWN, chroot))
    return client.kind, client.name


# --- Reading answers ---------------------------------------------------------------------------------------------


def test_connections_in_cons():
    connections, unreadable = zk_clients.parse_cons(CONS)
    assert unreadable == 0
    assert connections[1] == Connection("127.0.0.1", 34290, 0x100000972A00000, 10000, "GETD", 8, 8, 1795949867.251)
    assert [connection.session for connection in connections] == [0, 0x100000972A00000, 0]


@pytest.mark.parametrize(
    ("line", "address"),
    [
        (" /[0:0:0:0:0:0:0:1]:34298[1](queued=0,recved=1,sent=1)", "::1"),
        (" /0:0:0:0:0:0:0:1:34298[1](queued=0,recved=1,sent=1)", "::1"),
        (" /[fe80:0:0:0:1:2:3:4%eth0]:34298[1](queued=0,recved=1,sent=1)", "fe80::1:2:3:4"),
        (" /[0:0:0:0:0:ffff:a00:1]:34298[1](queued=0,recved=1,sent=1)", "10.0.0.1"),
        (" b1.example.com/10.0.0.1:34298[5](queued=0,recved=1,sent=1)", "10.0.0.1"),
    ],
)
def test_addresses_in_cons(line, address):
    ((connection,), unreadable) = zk_clients.parse_cons(line)
    assert (connection.address, connection.port, unreadable) == (address, 34298, 0)


@pytest.mark.parametrize(
    "line",
    [
        " null[0](queued=0,recved=1,sent=0)",  # closed while it was listed
        " /10.0.0.1:34298[1](queued=0,recved=x,sent=0)",
        " /10.0.0.1:34298[1](queued=0,recved=1,sent=0,sid=0xzz)",
        "anything else",
    ],
)
def test_a_line_that_cannot_be_read_is_no_client_that_is_missing(line):
    assert zk_clients.parse_cons(f"{line}\n{CONS}")[1] == 1


def test_connections_of_an_admin_server():
    entry = {"remote_socket_address": "127.0.0.1:54400", "session_id": 72057638070910976, "session_timeout": 10000}
    unsigned = {"remote_socket_address": "/[0:0:0:0:0:0:0:1]:1", "session_id": -1, "last_operation": None}
    answer = {"connections": [entry, {"session_id": 1}], "secure_connections": [unsigned]}
    connections, unreadable = zk_clients.parse_connections(answer)
    assert [(found.address, found.port, found.session) for found in connections] == [
        ("127.0.0.1", 54400, 72057638070910976),
        ("::1", 1, (1 << 64) - 1),
    ]
    assert unreadable == 1
    with pytest.raises(KeyError):
        zk_clients.parse_connections({"command": "connections"})


def test_sessions_in_dump():
    wanted = {0x100000972A00000: ["/a/e", "/a/f"], 0xFF00000972A00001: []}
    assert zk_clients.parse_dump(DUMP) == wanted
    assert zk_clients.parse_dump("This ZooKeeper instance is not the leader") is None
    admin = {
        "expiry_time_to_session_ids": {"1": [0x100000972A00000], "2": [0xFF00000972A00001 - (1 << 64)]},
        "session_id_to_ephemeral_paths": {str(0x100000972A00000): ["/a/f", "/a/e"]},
    }
    assert zk_clients.parse_admin_dump(admin) == wanted


def test_connections_in_srvr():
    assert zk_clients.parse_count("Received: 13\nConnections: 3\nOutstanding: 0\n") == 3
    assert zk_clients.parse_count("Received: 13\n") is None


@pytest.mark.parametrize(("port", "left"), [(34298, [34290, 34296]), (1, [34290, 34296]), (34290, [34290, 34296])])
def test_the_question_itself_is_no_client(port, left):
    """By its port, or behind a translation of addresses by its one request. A session is never dropped."""
    assert [found.port for found in zk_clients.drop_own(zk_clients.parse_cons(CONS)[0], port)] == left


# --- Whose client it is ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "session", "paths", "wanted"),
    [
        ("10.0.0.9", OWN, (), (TOOL, "")),
        ("10.0.0.9", OTHER, ("/kafka/brokers/ids/7",), (BROKER, "broker 7")),
        ("10.0.0.9", OTHER, ("/kafka2/brokers/ids/7",), (UNKNOWN, "")),  # another cluster's broker
        ("10.0.0.9", OTHER, ("/kafka/brokers/ids/7/x",), (UNKNOWN, "")),
        ("10.0.0.1", OTHER, (), (BROKER, "b1, b2")),
        ("10.0.0.1", 0, (), (BROKER, "b1, b2")),
        ("10.0.0.2", OTHER, (), (CONTROLLER, "c1")),
        ("10.0.1.0", OTHER, (), (ZOOKEEPER, "host of z1:2181")),
        ("127.0.0.1", OTHER, (), (ZOOKEEPER, "host of z1:2181")),
        ("10.0.1.1", OTHER, (), (ZOOKEEPER, "host of z2:2181")),
        ("10.0.0.9", OTHER, (), (UNKNOWN, "")),
        ("10.0.0.9", 0, (), (UNKNOWN, "")),
    ],
)
def test_kinds_of_clients(address, session, paths, wanted):
    assert classified(Connection(address, 1, session), paths) == wanted


def test_a_broker_below_the_root():
    assert classified(Connection("10.0.0.9", 1, OTHER), ("/brokers/ids/7",), "") == (BROKER, "broker 7")


def test_a_session_without_a_connection_is_a_client():
    found = zk_clients.find_clients(reading({OTHER: ("/solr/a",), OWN: ()}), KNOWN, "/kafka")
    assert [(client.kind, client.session, client.address) for client in found] == [
        (TOOL, OWN, ""),
        (UNKNOWN, OTHER, ""),
    ]


# --- What is not known -------------------------------------------------------------------------------------------


KINDS_OF_ANSWERS = {
    "known": {},
    "no answer": {"connections": None, "error": "connection refused"},
    "lists less": {"unlisted": 1},
    "unreadable": {"unreadable": 1},
    "does not serve": {"connections": None, "serves": False},
    "stopped": {"connections": None, "is_stopped": True},
}


def test_every_combination_of_answers():
    """Only answers that are complete, and servers that are proved to be stopped, keep nothing."""
    for kinds in itertools.product(KINDS_OF_ANSWERS, repeat=3):
        base = reading()
        servers = {name: base.servers[name]._replace(**KINDS_OF_ANSWERS[kind]) for name, kind in zip(SERVERS, kinds)}
        creators = dict(zip(SERVERS, (1, 2, 3)))
        stopped = kinds.count("stopped")
        down = {name: creators[name] for name, kind in zip(SERVERS, kinds) if kind == "stopped"}
        lost = zk_clients.has_lost_quorum(down, [1, 2, 3], 3)
        found = list(zk_clients.check_known(Reading(servers, Sessions({})), [1, 2, 3], creators, lost))
        fine = ["known", "stopped", *(["does not serve"] if stopped >= 2 else [])]
        closing = [kind for kind in kinds if kind not in fine]
        assert len(found) == len(closing), kinds


@pytest.mark.parametrize(
    ("stopped", "voters", "servers", "lost"),
    [
        ({}, [1, 2, 3], 3, False),
        ({"a": 1}, [1, 2, 3], 3, False),
        ({"a": 1, "b": 2}, [1, 2, 3], 3, True),
        ({"a": 4, "b": 5, "c": 6}, [1, 2, 3], 6, False),  # observers
        ({"a": 1}, [1, 2], 2, True),
        ({"a": 1, "b": 2}, [1, 2, 3, 4], 4, True),
        ({"a": 1}, [], 3, False),
        ({"a": 1, "b": 2}, [], 3, True),
        ({"a": 0}, [], 1, True),  # a standalone server
        ({}, [], 1, False),
    ],
)
def test_when_the_others_cannot_serve_any_more(stopped, voters, servers, lost):
    assert zk_clients.has_lost_quorum(stopped, voters, servers) == lost


@pytest.mark.parametrize(
    ("members", "creators", "said"),
    [
        ([1, 2, 3], {"z1:2181": 1, "z2:2181": 2, "z3:2181": 3}, None),
        ([1, 2, 3, 4], {"z1:2181": 1, "z2:2181": 2, "z3:2181": 3}, "server 4 of the ensemble was not asked"),
        ([1, 2, 3], {"z1:2181": 1, "z2:2181": 2, "z3:2181": None}, "the id of z3:2181 is unknown"),
        ([1, 2, 3], {"z1:2181": 1, "z2:2181": 2, "z3:2181": 2}, "server 3 of the ensemble was not asked"),
        ([], {"z1:2181": 1, "z2:2181": 2, "z3:2181": None}, None),  # a standalone server's configuration
    ],
)
def test_servers_that_were_not_asked(members, creators, said):
    found = [finding.seen for finding in zk_clients.check_known(reading(), members, creators)]
    assert (said is None and not found) or (said and said in found[0])


@pytest.mark.parametrize(("number", "closes"), [(None, False), (0, False), (1, False), (2, True)])
def test_sessions_that_are_only_counted(number, closes):
    connections = (Connection("10.0.0.9", 1, OTHER), Connection("10.0.0.9", 2, OTHER), Connection("10.0.0.9", 3))
    found = reading(connections=connections)._replace(sessions=Sessions({}, number=number))
    assert bool(list(zk_clients.check_known(found, [], {}))) == closes


def test_sessions_in_mntr():
    assert zk_clients.parse_sessions("zk_watch_count\t1\nzk_global_sessions\t12\nzk_local_sessions\t0\n") == 12
    assert zk_clients.parse_sessions("zk_version\t3.5.9\n") is None


def test_a_zxid_that_no_server_says():
    """Without it a client between two readings leaves no trace. One server's is enough."""
    found = reading()
    silent = {name: server._replace(zxid=None) for name, server in found.servers.items()}
    (finding,) = zk_clients.check_known(found._replace(servers=silent), [], {})
    assert "no server says its last zxid" in finding.seen
    assert not list(zk_clients.check_known(reading(zxid=None), [], {}))


def test_sessions_that_are_not_known():
    (found,) = zk_clients.check_known(reading(error="no server says that it leads"), [], {})
    assert "no server says that it leads" in found.seen


# --- Whether it is unused ----------------------------------------------------------------------------------------


def client(kind, address="10.0.0.9", session=OTHER):
    return Client(kind, "", address, 1, "z1:2181", session, 1000, "PING", 1, 1, None, ())


@pytest.mark.parametrize("kind", zk_clients.KINDS)
@pytest.mark.parametrize("at", [(0,), (1,), (0, 1), ()])
def test_each_kind_in_each_reading(kind, at):
    """One reading with a client is enough, also of a broker: no kind but this tool's is let pass."""
    readings = [[client(kind)] if number in at else [] for number in (0, 1)]
    found = list(zk_clients.check_unused(readings, [5, 5], [], []))
    assert len(found) == (1 if at and kind != TOOL else 0)


@pytest.mark.parametrize(
    ("zxids", "closes"),
    [
        ([5, 5], False),
        ([5, 6], True),
        ([5, None], False),
        ([None, None], False),
        ([5], False),
        ([1 << 32, 2 << 32], True),
    ],
)
def test_the_zxid_between_the_readings(zxids, closes):
    assert bool(list(zk_clients.check_unused([[], []], zxids, [], []))) == closes


@pytest.mark.parametrize(
    ("accepted", "left"),
    [([], ["/a", "/b"]), (["/a"], ["/b"]), (["a", "/b/"], []), (["/c"], ["/a", "/b"]), (["/"], ["/a", "/b"])],
)
def test_other_applications_close_unless_they_are_named(accepted, left):
    others = [Subtree("/a", 3), Subtree("/b", 0)]
    found = list(zk_clients.check_unused([[], []], [5, 5], others, accepted))
    assert [finding.seen.split()[0] for finding in found] == left


@pytest.mark.parametrize(
    ("paths", "chroot", "others"),
    [
        (["/kafka", "/zookeeper", "/solr"], "/kafka", ["/solr"]),
        (["/kafka/brokers", "/kafka/solr", "/kafka/migration"], "/kafka", ["/kafka/solr"]),
        (["/prod", "/prod/kafka", "/prod/other", "/zookeeper"], "/prod/kafka", ["/prod/other"]),
        (["/brokers", "/admin", "/zookeeper", "/solr", "/kafka2"], "", ["/kafka2", "/solr"]),
        (["/kafka/zookeeper"], "/kafka", ["/kafka/zookeeper"]),
        (["/kafka2", "/kafk"], "/kafka", ["/kafk", "/kafka2"]),
        (["/kafka-acl", "/kafka-manager"], "", ["/kafka-manager"]),
    ],
)
def test_parts_of_the_tree_that_are_not_kafkas(paths, chroot, others):
    assert zk_clients.find_others(paths, chroot) == others


def test_lines_for_the_operator():
    clients = [
        client(UNKNOWN)._replace(paths=("/solr/a",)),
        client(UNKNOWN, session=3),
        client(BROKER, "10.0.0.1")._replace(name="b1"),
        client(TOOL, "10.0.0.5"),
        client(UNKNOWN, "", 4)._replace(server=""),
    ]
    assert zk_clients.table(clients) == [
        "a client from 10.0.0.1 (broker, b1): session 0x100000000000002, at z1:2181, last operation PING",
        "a client without a connection now (unknown): session 0x4, last operation PING",
        "a client from 10.0.0.9 (unknown): sessions 0x100000000000002, 0x3, at z1:2181, last operation PING, "
        "owns /solr/a",
    ]


def test_a_token_is_of_cluster_archives_and_paths():
    own = zk_clients.token("c", {"z1:2181": "aa", "z2:2181": "bb"}, ["/solr"])
    assert own == zk_clients.token("c", {"z2:2181": "bb", "z1:2181": "aa"}, ["solr/", "/solr"])
    others = {
        zk_clients.token("d", {"z1:2181": "aa", "z2:2181": "bb"}, ["/solr"]),
        zk_clients.token("c", {"z1:2181": "aa", "z2:2181": "cc"}, ["/solr"]),
        zk_clients.token("c", {"z1:2181": "aa"}, ["/solr"]),
        zk_clients.token("c", {"z1:2181": "aa", "z2:2181": "bb"}, []),
        zk_clients.token("c", {"z1:2181": "bb", "z2:2181": "aa"}, ["/solr"]),
    }
    assert own not in others and len(others) == 5
