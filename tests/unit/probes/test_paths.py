# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real sockets on the loopback: who answers, who does not, who holds a port."""

from __future__ import annotations

import os
import socket

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import paths


@pytest.fixture(params=["127.0.0.1", "::1"])
def listening(request):
    """The `host:port` of a listener, by IPv4 and by IPv6."""
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    try:
        listener = socket.create_server((request.param, 0), family=family)
    except OSError:
        pytest.skip(f"this host has no {request.param}")
    with listener:
        host = f"[{request.param}]" if ":" in request.param else request.param
        yield f"{host}:{listener.getsockname()[1]}"


def free(address):
    """The address, with a port on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


def test_who_answers_is_not_told(listening):
    assert paths.dial([{"kind": "broker", "to": "b1", "address": listening}], 2) == []
    assert paths.dial([], 2) == []


def test_who_does_not_answer_is_told_with_the_reason(listening):
    targets = [
        {"kind": "broker", "to": "b1", "address": listening},
        {"kind": "controller", "to": "c1", "address": free(listening)},
        {"kind": "zookeeper", "to": "z1", "address": "no-such-host.invalid:2181"},
    ]
    reported = {one["to"]: (one["kind"], one["reason"]) for one in paths.dial(targets, 5)}
    assert reported == {"c1": ("controller", "refused"), "z1": ("zookeeper", "dns")}


def test_a_port_that_is_free():
    address = free(None)
    reported = paths.port(address)
    assert reported == {"address": address, "resolved": "127.0.0.1", "loopback": True, "error": None, "holder": None}
    assert paths.port(address)["error"] is None, "it was let go"


def test_a_port_that_is_taken_and_by_whom(listening):
    reported = paths.port(listening)
    assert reported["error"] == "taken"
    assert reported["holder"].endswith(f"(pid {os.getpid()})")


def test_an_address_of_another_host():
    assert paths.port("192.0.2.1:9093")["error"] == "foreign"


def test_a_name_that_nobody_knows():
    reported = paths.port("no-such-host.invalid:9093")
    assert reported["error"] and reported["error"] not in ("taken", "foreign") and reported["resolved"] is None
