# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connectivity and port checks with real sockets on the loopback interface."""

from __future__ import annotations

import os
import socket

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.host import paths


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


def free():
    """Return an address on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


def test_reachable_targets_are_not_listed(listening):
    assert paths.check_connectivity([{"kind": "broker", "to": "b1", "address": listening}], 2) == []
    assert paths.check_connectivity([], 2) == []


def test_unreachable_targets_are_listed_with_the_reason(listening):
    targets = [
        {"kind": "broker", "to": "b1", "address": listening},
        {"kind": "controller", "to": "c1", "address": free()},
        {"kind": "zookeeper", "to": "z1", "address": "no-such-host.invalid:2181"},
    ]
    unreachable = {target["to"]: (target["kind"], target["reason"]) for target in paths.check_connectivity(targets, 5)}
    assert unreachable == {"c1": ("controller", "refused"), "z1": ("zookeeper", "dns")}


def test_free_port_is_released_after_the_check():
    address = free()
    result = paths.check_port(address)
    assert result == {"address": address, "resolved": "127.0.0.1", "loopback": True, "error": None, "holder": None}
    assert paths.check_port(address)["error"] is None


def test_taken_port_is_reported_with_its_process(listening):
    result = paths.check_port(listening)
    assert result["error"] == "taken"
    assert result["holder"].endswith(f"(pid {os.getpid()})")


def test_address_of_another_host_is_foreign():
    assert paths.check_port("192.0.2.1:9093")["error"] == "foreign"


def test_unknown_name_is_reported_with_the_systems_message():
    result = paths.check_port("no-such-host.invalid:9093")
    assert result["error"] and result["error"] not in ("taken", "foreign") and result["resolved"] is None
