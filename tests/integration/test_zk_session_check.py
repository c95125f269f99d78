# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a broker's host finds through the servers that the broker is to use next: its own cluster, or no restart."""

from __future__ import annotations

import json

import pytest
from kazoo.client import KazooClient

from tests.integration import admin_bed

pytestmark = pytest.mark.real


def test_a_wrong_chroot_is_refused():
    with admin_bed.zookeeper("session-check") as (_home, connect, (broker,)):
        server = connect.partition("/")[0]

        def check(state, chroot, other="127.0.0.1:1"):
            given = {"node_id": 1, "config_file": str(broker.home / "server.properties"), "service": "no-service"}
            at = {"zookeeper_connect": f"{server}{chroot}", "other_connect": other}
            return admin_bed.run("zk_session_check", state=state, **at, **given)

        right = check("reachable", "/kafka")
        assert not right.get("failed") and right["moved"] and right["session"] != "0x0", right

        # A chroot that does not exist, one without a cluster, and one of another cluster
        client = KazooClient(hosts=server)
        client.start(timeout=10)
        try:
            client.create("/empty")
            client.create("/other/cluster/id", json.dumps({"version": "1", "id": "x" * 22}).encode(), makepath=True)
        finally:
            client.stop()
            client.close()
        for chroot, said in (("/nowhere", "/nowhere"), ("/empty", "/cluster/id"), ("/other", "x" * 22)):
            wrong = check("reachable", chroot)
            assert wrong["failed"] and said in wrong["msg"] and "Nothing was changed" in wrong["msg"], wrong

        # It uses these servers with another chroot than the one that is wanted; then servers that it must not use
        moved = check("moved", "/other")
        assert moved["failed"] and "/kafka" in moved["msg"], moved
