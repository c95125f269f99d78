# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which server of a connect string a host has, and whether something listens there, with real sockets on loopback."""

from __future__ import annotations

import socket

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.host import tcp_connections
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import own_zk_process
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield sock


def read(tmp_path, lines, servers=(), myid="2"):
    """Return what is read of a host with this zoo.cfg."""
    (tmp_path / "myid").write_text(f"{myid}\n")
    path = tmp_path / "zoo.cfg"
    path.write_text("".join(f"{line}\n" for line in [f"dataDir={tmp_path}", *lines]))
    return own_zk_process.read(str(path), "no-such-service", servers)


def test_a_server_that_listens_and_one_that_does_not(tmp_path, listener):
    port = listener.getsockname()[1]
    servers = [HostPort("127.0.0.1", port + 1), HostPort("127.0.0.1", port)]
    found = read(tmp_path, [f"clientPort={port}"], servers)
    assert (found["server"], found["is_listening"], found["answers"]) == (f"127.0.0.1:{port}", True, True)
    listener.close()
    found = read(tmp_path, [f"clientPort={port}"], servers)
    assert (found["server"], found["is_listening"], found["answers"]) == (f"127.0.0.1:{port}", False, False)
    assert (found["is_running"], found["connected"], found["error"]) == (False, [], None)


def test_a_connection_to_the_client_port_is_seen(tmp_path, listener):
    port = listener.getsockname()[1]
    with socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.9", 0)):
        assert read(tmp_path, [f"clientPort={port}"])["connected"] == ["127.0.0.9"]
        assert tcp_connections.find_connected([port + 1]) == set()


@pytest.mark.parametrize(
    ("lines", "ports"),
    [
        (["clientPort=2181"], [2181]),
        (["clientPort=2181", "secureClientPort=2182"], [2181, 2182]),
        (["server.2=z2:2888:3888:participant;0.0.0.0:2191"], [2191]),
        (["server.2=z2:2888:3888;[::]:2191", "secureClientPort=2182"], [2182, 2191]),
        (["server.1=z1:2888:3888;2191"], []),  # another server's line
        ([], []),
    ],
)
def test_client_ports(tmp_path, lines, ports):
    found = read(tmp_path, lines)
    assert found["ports"] == ports and bool(found["error"]) == (not ports)


def test_a_dynamic_configuration_has_the_members(tmp_path):
    (tmp_path / "dynamic").write_text("server.1=z1:2888:3888;2181\nserver.2=z2:2889:3889:observer;2181\n")
    found = read(tmp_path, [f"dynamicConfigFile={tmp_path / 'dynamic'}"])
    assert (found["myid"], found["members"], found["voters"], found["ports"]) == (2, [1, 2], [1], [2181])
    assert found["quorum_ports"] == [2889, 3889]


def test_a_standalone_server_has_no_id(tmp_path):
    found = read(tmp_path, ["clientPort=2181"], myid="none")
    assert (found["myid"], found["members"], found["quorum_ports"]) == (None, [], [])


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
def test_another_hosts_server_is_not_this_ones(tmp_path, host):
    found = read(tmp_path, ["clientPort=2181"], [HostPort(host, 2181)])
    assert (found["server"], found["answers"]) == (None, None)
