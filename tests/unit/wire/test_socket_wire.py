# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connections end by their deadline, and errors name the reason."""

from __future__ import annotations

import socket
import ssl
import time

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import socket_wire
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import (
    Deadline,
    Unreachable,
    Wire,
    explain_tls,
)


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield HostPort(*server.getsockname())


def reason(address, seconds=2.0):
    with pytest.raises(Unreachable) as caught:
        Wire(address, Deadline(seconds))
    assert caught.value.address == address and str(caught.value).startswith(f"{address}: ")
    return caught.value.reason


def test_refused_connection():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = HostPort(*server.getsockname())
    assert reason(address) == "refused"


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 64 + ".example", "bad..name"])
def test_unknown_name(host):
    assert reason(HostPort(host, 1)) == "dns"


def test_resolver_that_does_not_answer(monkeypatch):
    real = socket.getaddrinfo

    def slow(host, port, *rest, flags=0, **more):
        if not flags & socket.AI_NUMERICHOST:
            time.sleep(4)
        return real(host, port, *rest, flags=flags, **more)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    start = time.monotonic()
    assert reason(HostPort("localhost", 1), 0.2) == "dns"
    assert time.monotonic() - start < 3


def test_next_address_of_a_name_is_tried(monkeypatch):
    def two(host, port, *_rest, flags=0, **_more):
        if flags & socket.AI_NUMERICHOST:
            raise socket.gaierror("not numeric")
        dead = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 1))
        return [dead, (socket.AF_INET, socket.SOCK_STREAM, 6, "", server.getsockname())]

    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(socket, "getaddrinfo", two)
        with Wire(HostPort("both", 1), Deadline(2)) as wire:
            wire.send(b"hello", "an answer")
            with server.accept()[0] as accepted:
                assert accepted.recv(5) == b"hello"


def test_all_steps_share_the_deadline(listener):
    with Wire(listener, Deadline(1)) as wire:
        time.sleep(1.1)
        with pytest.raises(Unreachable, match="timed out after 1 s waiting for hello"):
            wire.send(b"x", "hello")


def test_tls_handshake_with_a_silent_server(listener):
    context = ssl.create_default_context()
    start = time.monotonic()
    with pytest.raises(Unreachable, match="timed out after 1 s waiting for a TLS handshake") as caught:
        Wire(listener, Deadline(1), context)
    assert caught.value.reason == "timeout" and time.monotonic() - start < 3


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "requires a client certificate"),
        ("TLSV1_ALERT_UNKNOWN_CA", "does not trust the CA"),
        ("SSLV3_ALERT_HANDSHAKE_FAILURE", "no common cipher"),
        ("WRONG_VERSION_NUMBER", "does not use TLS"),
        ("SOMETHING_NEW", "TLS failed [SOMETHING_NEW]"),
    ],
)
def test_alerts_are_explained(reason, message):
    error = ssl.SSLError(1, reason)
    error.reason = reason
    assert message in explain_tls(error)
    assert reason in explain_tls(error)


def test_closed_handshake_is_explained():
    assert "it may not use TLS" in socket_wire.explain_tls(ssl.SSLZeroReturnError(6, "closed (EOF)"))
