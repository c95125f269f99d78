# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A quorum of five real controllers survives two failures, and is reported to have no leader after the third."""

from __future__ import annotations

import contextlib

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import cluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from confluent_kafka.admin import AdminClient, NewTopic

from tests.integration import admin_bed, servers

pytestmark = pytest.mark.real


def test_two_of_five_controllers_fail_and_then_a_third_one():
    with servers.workdir("five") as home, contextlib.ExitStack() as stack:
        addresses = [HostPort("127.0.0.1", servers.free_port()) for dummy in range(5)]
        voters = ",".join(f"{101 + place}@{address}" for place, address in enumerate(addresses))
        controllers = stack.enter_context(servers.kraft_controllers(home, addresses))
        broker = stack.enter_context(servers.kraft_broker(home, 1, voters))
        admin_bed.ready([broker])
        nodes = {f"c{server.node_id}": {"role": "controller", "address": str(server.address)} for server in controllers}
        connections = servers.connections([broker.address], "127.0.0.1:1", 5)

        def quorum():
            return cluster.read_quorum(nodes, connections)

        first = quorum()
        assert first["reached"] and sorted(voter["id"] for voter in first["voters"]) == [101, 102, 103, 104, 105]
        leader = first["leader_id"]
        for fails in (leader, next(server.node_id for server in controllers if server.node_id != leader)):
            controllers[fails - 101].kill()
        left = {server.node_id for server in controllers if server.node_id not in (leader, fails)}
        new = servers.wait_for(lambda: (found := quorum())["reached"] and found, 60, "another leader")
        assert new["leader_id"] in left and new["leader_epoch"] > first["leader_epoch"]
        servers.create_topics(AdminClient({"bootstrap.servers": str(broker.address)}), [NewTopic("after-two", 1, 1)])

        # Without a majority no controller may say that it leads, and the error names each of them
        controllers[new["leader_id"] - 101].kill()
        gone = servers.wait_for(lambda: not (found := quorum())["reached"] and found, 60, "no leader")
        assert all(str(address) in gone["error"] for address in addresses), gone
