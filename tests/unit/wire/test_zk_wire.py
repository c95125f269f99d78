# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ZooKeeper reader reports errors and invalid answers."""

from __future__ import annotations

import socket
import struct
import threading

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import AddressError, HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import zk_wire

SESSION = struct.pack(">iiiq", 37, 0, 4000, 0x1000000000000) + struct.pack(">i", 16) + bytes(16) + b"\0"
STAT = struct.pack(">qqqqiiiqiiq", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)


def answer(xid: int, code: int = 0, body: bytes = b"") -> bytes:
    return struct.pack(">iiqi", 16 + len(body), xid, 99, code) + body


@pytest.fixture
def server():
    """Start a server on loopback that answers each request of one connection with the next of the given bytes."""
    threads, listeners = [], []

    def start(*sends):
        listener = socket.create_server(("127.0.0.1", 0))

        def serve():
            connection, _where = listener.accept()
            with connection:
                connection.settimeout(5)
                for piece in sends:
                    if not connection.recv(1 << 16):
                        return
                    connection.sendall(piece)

        thread = threading.Thread(target=serve)
        thread.start()
        threads.append(thread)
        listeners.append(listener)
        return str(HostPort(*listener.getsockname()))

    yield start
    for thread in threads:
        thread.join(5)
    for listener in listeners:
        listener.close()


def test_get_returns_data_and_stat(server):
    connect = server(SESSION, answer(1, 0, struct.pack(">i", 2) + b"hi" + STAT), answer(2))
    with zk_wire.ZkConnection(connect) as connection:
        assert connection.get("/x") == (b"hi", zk_wire.Stat(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11))


@pytest.mark.parametrize(
    ("sent", "error", "message"),
    [
        (answer(1, -101), zk_wire.NoNode, "/a/b/x: NONODE"),
        (answer(1, -102), zk_wire.NoAuth, "/a/b/x: NOAUTH"),
        (answer(1, -112), zk_wire.ZkError, "/a/b/x: SESSIONEXPIRED"),
        (answer(1, -999), zk_wire.ZkError, "/a/b/x: error -999"),
        (answer(5), zk_wire.ProtocolError, "answer 5 to request 1"),
        (answer(1, 0, struct.pack(">i", 50) + b"short"), zk_wire.ProtocolError, "cannot be read"),
        (answer(1, 0, struct.pack(">i", 0) + STAT[:-1]), zk_wire.ProtocolError, "cannot be read"),
        (struct.pack(">i", 3) + b"abc", zk_wire.ProtocolError, "too short"),
        (b"HTTP", zk_wire.ProtocolError, "this is not ZooKeeper"),
        (b"", zk_wire.ConnectionLoss, "the session was lost: the server closed the connection"),
    ],
)
def test_invalid_answer_to_get(server, sent, error, message):
    with zk_wire.ZkConnection(server(SESSION, sent) + "/a/b") as connection, pytest.raises(error, match=message):
        connection.get("/x")


def test_children_that_are_longer_than_the_answer(server):
    body = struct.pack(">ii", 2, 1) + b"a" + struct.pack(">i", 9) + b"b"
    connection = zk_wire.ZkConnection(server(SESSION, answer(1, 0, body)))
    with connection, pytest.raises(zk_wire.ProtocolError, match="longer than its answer"):
        connection.children("/")


def test_refused_session(server):
    refused = struct.pack(">iiiq", 37, 0, 0, 0) + struct.pack(">i", 16) + bytes(16) + b"\0"
    with pytest.raises(zk_wire.ConnectionLoss, match="refused to open a session"):
        zk_wire.ZkConnection(server(refused))


def test_relative_path_and_invalid_connect_string_are_rejected(server):
    with zk_wire.ZkConnection(server(SESSION)) as connection, pytest.raises(ValueError, match="not an absolute path"):
        connection.get("x")
    with pytest.raises(AddressError):
        zk_wire.ZkConnection("zk1/a,zk2/a")
