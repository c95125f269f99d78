# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A write that a real ZooKeeper rejects or does not answer ends in time with a message."""

from __future__ import annotations

import os
import signal

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write.zk_writing import WriteError, writing
from kazoo.security import make_acl

from tests.integration import servers

pytestmark = pytest.mark.real


@pytest.fixture
def ensemble():
    with servers.workdir("zk_writing") as home, servers.zookeeper(home) as ensemble:
        yield ensemble


def test_each_failed_write_is_reported(ensemble):
    with zookeeper.connect(ensemble.connect, 10) as client:

        def write():
            with writing("/one was not set"):
                client.set_async("/one", b"new", version=0).get(timeout=1)

        client.create("/one", b"old", acl=[make_acl("world", "anyone", read=True, admin=True)])
        with pytest.raises(WriteError, match=r"^/one was not set: its ACL does not allow"):
            write()
        client.set_acls("/one", [make_acl("world", "anyone", all=True)])
        client.set("/one", b"concurrent")
        with pytest.raises(WriteError, match=r"^/one was not set: BadVersionError\. Run again \(QS-GATE-006\)$"):
            write()
        servers.suspend(ensemble.pid)
        try:
            with pytest.raises(WriteError, match=r"^/one was not set: ZooKeeper did not answer in time"):
                write()
        finally:
            os.kill(ensemble.pid, signal.SIGCONT)
