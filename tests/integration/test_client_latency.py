# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What clients wait for on real brokers: one that runs a hundredth of the time is healthy in every other respect."""

from __future__ import annotations

import contextlib
import os
import signal
import threading

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import client_latency
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import cluster, latency
from confluent_kafka.admin import AdminClient, NewTopic

from tests.integration import servers

pytestmark = pytest.mark.real

SUSPENDED_S, RUNNING_S = 0.6, 0.006


@contextlib.contextmanager
def slowed(broker):
    """The broker runs for a hundredth of the time: it answers everything, late, and loses no session."""
    over = threading.Event()

    def slow():
        while not over.is_set():
            os.kill(broker.pid, signal.SIGSTOP)
            over.wait(SUSPENDED_S)
            os.kill(broker.pid, signal.SIGCONT)
            over.wait(RUNNING_S)

    thread = threading.Thread(target=slow)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_broker_that_answers_late_is_named_until_it_is_as_fast_as_before():
    with servers.workdir("latency") as home, servers.zookeeper(home) as ensemble, contextlib.ExitStack() as stack:
        connect = f"{ensemble.connect}/kafka"
        brokers = {n: stack.enter_context(servers.zk_broker(home, n, connect)) for n in (1, 2)}
        admin = AdminClient({"bootstrap.servers": str(brokers[2].address)})
        servers.wait_for(lambda: servers.knows_controller(admin, 2), 60, "both brokers to know the controller")
        # Broker 1 leads 30 partitions, broker 2 leads none
        servers.create_topics(admin, [NewTopic("orders", 1, replica_assignment=[[1, 2]])])
        servers.create_topics(admin, [NewTopic(f"t{n}", 1, replica_assignment=[[1, 2]]) for n in range(29)])
        connections = servers.connections([brokers[2].address], connect, 10)
        nodes = {
            f"b{number}": {"role": "broker", "reached": True, "node_id": number, "address": str(broker.address)}
            for number, broker in brokers.items()
        }

        def measure(**limits):
            facts = cluster.collect(nodes, connections)
            assert {host: node["running"] for host, node in facts["nodes"].items()} == {"b1": "zk", "b2": "zk"}
            return latency.measure(facts["nodes"], facts["topics"], connections, **limits)

        def explain():
            return client_latency.explain_slow(before, measure(), client_latency.FACTOR)

        servers.wait_for(lambda: len(cluster.collect(nodes, connections)["topics"]["partitions"]) == 30, 30, "topics")
        before = measure()
        assert sorted(before) == ["b1", "b2"] and all(0 < seconds < 5 for seconds in before.values()), before
        assert list(measure(most=1)) == ["b1"] and list(measure(first=["b2"], most=1)) == ["b2"]
        servers.wait_for(lambda: explain() == [], 60, "brokers that answer as before")
        with slowed(brokers[1]):
            (reason,) = explain()
            assert reason.startswith("b1 takes ") and "QS-GATE-014" in reason, reason
        servers.wait_for(lambda: explain() == [], 60, "broker 1 to answer as before")

        facts = cluster.collect(nodes, connections)
        servers.suspend(brokers[1].pid)
        try:
            hung = latency.measure(facts["nodes"], facts["topics"], connections._replace(timeout=1))
        finally:
            os.kill(brokers[1].pid, signal.SIGCONT)
        assert hung["b1"] is None and hung["b2"] is not None
        assert client_latency.explain_slow(before, hung, 100) == ["b1 gives clients no answer in time (QS-GATE-014)"]
