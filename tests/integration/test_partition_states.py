# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Missing partition states in a real ZooKeeper are created, and nothing else is changed."""

from __future__ import annotations

import json
import threading

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write import partition_states, zk_writing
from kazoo.client import KazooClient
from kazoo.security import make_acl

from tests.integration import servers

pytestmark = pytest.mark.real

EVERYONE = make_acl("world", "anyone", all=True)
READ_ONLY = make_acl("world", "anyone", read=True, admin=True)


@pytest.fixture
def client(monkeypatch):
    """A client of a ZooKeeper with two topics: `complete` has its states, `late` only its znode."""
    monkeypatch.setattr(partition_states, "MIGRATION_WRITES_BOUND_S", 0.5)
    with servers.workdir("partition_states") as home, servers.zookeeper(home) as ensemble:
        client = KazooClient(hosts=ensemble.connect)
        client.start(timeout=10)
        client.create(znodes.CONTROLLER_EPOCH, b"7")
        client.create(znodes.CLUSTER_ID, b'{"version":"1","id":"c"}', makepath=True)
        client.create(znodes.MIGRATION, b"{}")
        for name in ("complete", "late"):
            value = {"version": 3, "topic_id": None, "partitions": {"0": [5, 1], "1": [1, 5]}}
            client.create(znodes.topic_path(name), json.dumps(value).encode(), makepath=True)
        for partition in (0, 1):
            client.create(znodes.partition_state_path("complete", partition), b"its own", makepath=True)
        try:
            yield client
        finally:
            client.stop()
            client.close()


def test_missing_states_are_created_as_in_the_initial_copy(client):
    client.set_acls(znodes.topic_path("late"), [EVERYONE])
    assert partition_states.complete(client, "c", 10, dry=True) == ["late-0", "late-1"]
    assert client.get_children(znodes.topic_path("late")) == []
    assert partition_states.complete(client, "c", 10) == ["late-0", "late-1"]
    path = znodes.partition_state_path("late", 1)
    state = znodes.partition_state(client.get(path)[0], path)
    assert (state["leader"], state["isr"], state["leader_epoch"], state["controller_epoch"]) == (1, [1, 5], 0, 7)
    assert client.get_acls(path)[0] == [EVERYONE]
    assert client.get(znodes.partition_state_path("complete", 0))[0] == b"its own"
    assert partition_states.complete(client, "c", 10) == []


def test_states_that_the_controllers_create_meanwhile_are_kept(client, monkeypatch):
    """Controllers create a topic's znode first, and its states a few writes later."""
    monkeypatch.setattr(partition_states, "MIGRATION_WRITES_BOUND_S", 30)

    def write():
        for partition in (0, 1):
            client.create(znodes.partition_state_path("late", partition), b"theirs", makepath=True)
        for _beat in range(partition_states.MIGRATION_WRITES):
            client.set(znodes.MIGRATION, b"{}")

    writer = threading.Timer(0.3, write)
    writer.start()
    assert partition_states.complete(client, "c", 10) == []
    writer.join()
    assert client.get(znodes.partition_state_path("late", 0))[0] == b"theirs"


def test_a_read_only_topic_is_reported(client):
    client.set_acls(znodes.topic_path("late"), [READ_ONLY])
    with pytest.raises(zk_writing.WriteError, match="is missing and was not created: its ACL does not allow"):
        partition_states.complete(client, "c", 10)
