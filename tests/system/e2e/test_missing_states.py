# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A topic without partition states in ZooKeeper at the initial copy, as one that is created at that moment.

Kafka drops every change that involves such a partition, together with the changes of all other partitions.
"""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from confluent_kafka.admin import NewTopic

from tests.system.e2e.rollbacks import phase
from tests.system.testbed.waiting import wait_for

TOPIC = "created.too.late"


def test_missing_partition_states_are_created(fresh):
    starts, admin = [], fresh.admin()

    def created_without_states(line):
        """Create the topic while the last broker starts, on the other two: no leader epoch changes before the copy."""
        starts.extend(host for host in fresh.brokers if line.strip() == f"{host} starts")
        if len(starts) == len(fresh.brokers):
            replicas = [fresh.node_id(host) for host in starts[:-1]]
            starts.append("all")
            admin.create_topics([NewTopic(TOPIC, 2, replica_assignment=[replicas, replicas])])[TOPIC].result(30)
            with fresh.zookeeper() as client:
                states = [znodes.partition_state_path(TOPIC, partition) for partition in (0, 1)]
                wait_for(lambda: all(map(client.exists, states)), 20, "the partition states")
                client.delete(f"{znodes.topic_path(TOPIC)}/partitions", recursive=True)
        return False

    ran = fresh.play(kill_when=created_without_states, timeout=900)
    assert ran.code == 0 and phase(ran) == "dual_write", ran.text
    assert f"created in ZooKeeper: the state of {TOPIC}-0" in ran.text, ran.text
    fresh.wait_in_sync()
    with fresh.zookeeper() as client:
        for name in client.get_children(znodes.TOPICS):
            topic = znodes.topic(client.get(znodes.topic_path(name))[0], name)
            for partition, assigned in topic["partitions"].items():
                path = znodes.partition_state_path(name, partition)
                state = znodes.partition_state(client.get(path)[0], path)
                assert sorted(state["isr"]) == sorted(assigned["replicas"]), (path, state)
