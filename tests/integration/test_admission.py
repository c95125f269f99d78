# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A broker that runs and does not answer, on real servers: it is stopped only if the cluster is healthy without it."""

from __future__ import annotations

import contextlib
import os
import signal

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import admission, invariants
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import cluster
from confluent_kafka.admin import AdminClient, NewTopic

from tests.integration import servers

pytestmark = pytest.mark.real

TOPIC = "orders"
IDS = (1, 2, 3)
UNDER_REPLICATED = "1 partition under-replicated: orders-0 (QS-GATE-005)"


@contextlib.contextmanager
def three_brokers():
    """Yield (brokers by id, Connections). The topic has its two replicas on brokers 1 and 2."""
    with servers.workdir("admission") as home, servers.zookeeper(home) as ensemble, contextlib.ExitStack() as stack:
        connect = f"{ensemble.connect}/kafka"
        brokers = {n: stack.enter_context(servers.zk_broker(home, n, connect)) for n in IDS}
        admin = AdminClient({"bootstrap.servers": ",".join(str(broker.address) for broker in brokers.values())})
        servers.wait_for(lambda: servers.knows_controller(admin, 3), 60, "all brokers to know the controller")
        servers.create_topics(admin, [NewTopic(TOPIC, 1, replica_assignment=[[2, 1]])])
        yield brokers, servers.connections([brokers[3].address], connect, 2)


@contextlib.contextmanager
def suspended(broker):
    """The broker's process runs and does nothing."""
    servers.suspend(broker.pid)
    try:
        yield
    finally:
        os.kill(broker.pid, signal.SIGCONT)


def reading(brokers, connections, down, restart):
    """Return the reading for a broker's restart. `down`: brokers whose hosts say that they are stopped."""
    nodes = {
        f"b{number}": {
            "role": "broker",
            "reached": True,
            "node_id": number,
            "address": str(broker.address),
            "service": {"manager": "service", "name": "kafka", "active": number not in down},
        }
        for number, broker in brokers.items()
    }
    facts = cluster.collect(nodes, connections)
    node = admission.restart_from_facts(facts, f"b{restart}")
    return invariants.Reading(facts, phase.ZK, {TOPIC: 1}, facts["quorum"], node=node)


def refused(seen):
    return admission.check_others_respond(seen.facts["nodes"], seen.node) + invariants.find_broken(seen, but=("I1",))


def expires(brokers, connections, number):
    def gone():
        alive = cluster.collect({}, connections)["topics"]
        return alive["reached"] and str(number) not in alive["brokers"]

    servers.wait_for(gone, 60, f"broker {number} to leave the metadata")


def test_a_broker_that_does_not_answer_keeps_the_last_replica_in_sync():
    with three_brokers() as (brokers, connections):

        def read(restart, down=()):
            return reading(brokers, connections, down, restart)

        servers.wait_for(lambda: refused(read(2)) == [], 60, "a healthy cluster")
        with suspended(brokers[2]):
            seen = read(2)
            assert seen.node.unresponsive and refused(seen) == []  # broker 1 is in sync, and leads once this one stops
            expires(brokers, connections, 2)
            assert refused(read(2)) == []  # out of sync by now: its stop takes nothing
        servers.wait_for(lambda: refused(read(2)) == [], 60, "both replicas in sync")

        brokers[1].stop()
        servers.wait_for(lambda: UNDER_REPLICATED in refused(read(3, [1])), 60, "one in sync")
        with suspended(brokers[2]):
            for gone in (False, True):
                if gone:
                    expires(brokers, connections, 2)
                reasons = refused(read(2, [1]))
                assert any(text.startswith("b1 does not answer: ") for text in reasons), reasons
                assert {UNDER_REPLICATED, "1 partition offline: orders-0 (QS-GATE-005)"} & set(reasons)
            start = read(1, [1])
            assert start.node.only_start and invariants.find_broken(start) == []
