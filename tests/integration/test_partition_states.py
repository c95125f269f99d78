# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Partition states that a real ZooKeeper lacks are made, and nothing else is."""

from __future__ import annotations

import json
import threading

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils import partition_states, zk_writing
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import znodes
from kazoo.client import KazooClient
from kazoo.security import make_acl

from tests.integration import servers

pytestmark = pytest.mark.real

ANYBODY = make_acl("world", "anyone", all=True)
READ_ALONE = make_acl("world", "anyone", read=True, admin=True)


@pytest.fixture
def client(monkeypatch):
    """A client of a ZooKeeper with two topics: `whole` has its states, `late` only its znode."""
    monkeypatch.setattr(partition_states, "MIGRATION_WRITES_BOUND_S", 0.5)
    with servers.workdir("partition_states") as home, servers.zookeeper(home) as ensemble:
        client = KazooClient(hosts=ensemble.connect)
        client.start(timeout=10)
        client.create(znodes.CONTROLLER_EPOCH, b"7")
        client.create(znodes.MIGRATION, b"{}")
        for name in ("whole", "late"):
            value = {"version": 3, "topic_id": None, "partitions": {"0": [5, 1], "1": [1, 5]}}
            client.create(znodes.topic_path(name), json.dumps(value).encode(), makepath=True)
        for partition in (0, 1):
            client.create(znodes.partition_state_path("whole", partition), b"its own", makepath=True)
        try:
            yield client
        finally:
            client.stop()
            client.close()


def test_what_is_missing_is_made_as_the_copy_took_it(client):
    client.set_acls(znodes.topic_path("late"), [ANYBODY])
    assert partition_states.complete(client, 10, dry=True) == ["late-0", "late-1"]
    assert client.get_children(znodes.topic_path("late")) == []
    assert partition_states.complete(client, 10) == ["late-0", "late-1"]
    path = znodes.partition_state_path("late", 1)
    state = znodes.partition_state(client.get(path)[0], path)
    assert (state["leader"], state["isr"], state["leader_epoch"], state["controller_epoch"]) == (1, [1, 5], 0, 7)
    assert client.get_acls(path)[0] == [ANYBODY]
    assert client.get(znodes.partition_state_path("whole", 0))[0] == b"its own"
    assert partition_states.complete(client, 10) == []


def test_what_the_controllers_make_meanwhile_is_theirs(client, monkeypatch):
    """They make a topic's znode first: what is there after a few of their writes was never missing."""
    monkeypatch.setattr(partition_states, "MIGRATION_WRITES_BOUND_S", 30)

    def write():
        for partition in (0, 1):
            client.create(znodes.partition_state_path("late", partition), b"theirs", makepath=True)
        for _beat in range(partition_states.MIGRATION_WRITES):
            client.set(znodes.MIGRATION, b"{}")

    writer = threading.Timer(0.3, write)
    writer.start()
    assert partition_states.complete(client, 10) == []
    writer.join()
    assert client.get(znodes.partition_state_path("late", 0))[0] == b"theirs"


def test_a_topic_that_may_not_be_written(client):
    client.set_acls(znodes.topic_path("late"), [READ_ALONE])
    with pytest.raises(zk_writing.WriteError, match="is missing and was not created: its ACL does not allow"):
        partition_states.complete(client, 10)
