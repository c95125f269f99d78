# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The address at which a host asks its own ZooKeeper server."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.ensemble import observer_join
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort


@pytest.mark.parametrize(
    ("host", "asked"),
    [
        *((host, "127.0.0.1") for host in ("", "0.0.0.0", "::", "[::]", "0:0:0:0:0:0:0:0")),
        ("[fd00::1]", "fd00::1"),
        ("10.0.0.1", "10.0.0.1"),
        ("z1.example.org", "z1.example.org"),
    ],
)
def test_a_server_is_asked_on_an_address_of_its_client_port(host, asked):
    values = {"clientPort": "2181", "clientPortAddress": host}
    assert observer_join._client_address(values, "zoo.cfg") == (HostPort(asked, 2181), False)
