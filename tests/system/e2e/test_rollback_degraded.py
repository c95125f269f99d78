# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rollback of a degraded cluster, in which a replica lags forever; and none while ZooKeeper is down."""

from __future__ import annotations

import os
import re

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import topics
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from tests.system.e2e.rollbacks import back, changed, files, no_trace, phase
from tests.system.testbed.waiting import wait_for

FAST = {"quorumshift_verify": False, "quorumshift_soak": "0s"}
SLOW, TOPIC = "b3", "lagging"
RESTART = "systemctl restart kafka-controller.service"


def under_replicated(testbed):
    """Return the number of under-replicated partitions, None while it cannot be read."""
    connections = testbed.connections()
    read = topics.read(connections.bootstrap, connections.client, 5)
    partitions = [partition for topic in read.get("partitions", {}).values() for partition in topic.values()]
    alive = read["reached"] and len(read["brokers"]) == len(testbed.brokers)
    return sum(len(partition["isr"]) < len(partition["replicas"]) for partition in partitions) if alive else None


@pytest.fixture(scope="module")
def degraded(fresh):
    """Dual-write with a replica that never catches up: its broker fetches a byte a second. The plain mode's files."""
    plain = files(fresh)
    ran = fresh.play(extra=FAST)
    assert ran.code == 0 and phase(ran) == "dual_write", ran.text
    admin, slow_id = fresh.admin(), fresh.node_id(SLOW)
    broker_ids = sorted(map(int, admin.list_topics(timeout=20).brokers), key=lambda broker_id: broker_id == slow_id)
    throttled = {"follower.replication.throttled.replicas": "*", "min.insync.replicas": "1"}
    topic = NewTopic(TOPIC, 1, replica_assignment=[broker_ids], config=throttled)
    admin.create_topics([topic])[TOPIC].result(30)
    throttle = ConfigEntry("follower.replication.throttled.rate", "1", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.BROKER, str(slow_id), incremental_configs=[throttle])
    admin.incremental_alter_configs([resource])[resource].result(30)
    fresh.run(SLOW, "systemctl stop kafka")
    producer = fresh.producer()
    for number in range(1000):  # a starting broker fetches for a moment without the throttle
        producer.produce(TOPIC, os.urandom(100_000), key=str(number).encode())
        producer.poll(0)
    assert producer.flush(60) == 0
    fresh.run(SLOW, "systemctl start kafka")
    seen = []

    def lags():
        seen.append(under_replicated(fresh))
        return seen[-5:] == [1] * 5

    try:
        wait_for(lags, 120, "all replicas but one to be in sync")
    except TimeoutError:
        pytest.fail(f"under-replicated partitions by poll: {seen}")
    return plain


def test_no_rollback_while_zookeeper_is_down(fresh, degraded):
    fresh.on_each(["b1", "b2"], "systemctl stop zookeeper")
    try:
        ran = back(fresh, "zk", **FAST)
    finally:
        fresh.on_each(["b1", "b2"], "systemctl start zookeeper")
    assert ran.code != 0 and "A rollback needs ZooKeeper: repair its quorum first" in ran.text, ran.text
    assert changed(ran, fresh) == [], ran.text


def test_a_controller_that_stops_writing_to_zookeeper_is_reported(fresh, degraded):
    """Kafka 3.9: after a lost response of ZooKeeper the active controller has an old version of /migration and stops
    writing. The test before this one nearly always causes that."""

    def writing_status():
        text = fresh.play("status", extra=FAST).text
        lag = int(re.search(r"ZooKeeper: written up to offset \d+, lag (\d+)", text).group(1))
        return text if "offsets behind the quorum" in text or lag <= 2 else None

    text = wait_for(writing_status, 180, "writes to ZooKeeper, or a status that reports their lack")
    if "offsets behind the quorum" in text:
        assert "If it reports BadVersion for /migration, restart that controller" in text, text
        leader = re.search(r"quorum: leader (\d+),", text).group(1)
        host = next(host for host in fresh.controllers if fresh.node_id(host) == int(leader))
        assert "BadVersion for /migration" in fresh.run(host, "grep BadVersion /var/log/kafka/controller.log | tail -1")
        assert f"restart that controller: {RESTART}" in text, text
        closed = back(fresh, "zk", quorumshift_gate_timeout_s=20, **FAST)
        (token,) = set(re.findall(r"quorumshift_accept_degraded=(\w{6})", closed.text))
        closed = back(fresh, "zk", quorumshift_accept_degraded=token, quorumshift_gate_timeout_s=20, **FAST)
        assert closed.code != 0 and changed(closed, fresh) == [], closed.text
        message = r"waited \d+ s for gate before_revert .* Last seen: /migration is at offset .* Read in the log of "
        assert re.search(rf"{message}the active controller, {host}, why .*: {RESTART}\.", closed.text), closed.text
        fresh.run(host, RESTART)
        again = wait_for(writing_status, 60, "the next controller to write to ZooKeeper")
        assert "offsets behind the quorum" not in again, again


def test_under_replicated_partitions_close_the_gate(fresh, degraded):
    ran = back(fresh, "zk", quorumshift_accept_degraded="000000", **FAST)
    assert ran.code != 0 and re.search(r"partitions? under-replicated: .*; to accept this state", ran.text), ran.text
    assert changed(ran, fresh) == [], ran.text


def test_the_token_of_the_degraded_state_opens_the_gate(fresh, degraded):
    closed = back(fresh, "zk", quorumshift_gate_timeout_s=20, **FAST)
    (token,) = set(re.findall(r"quorumshift_accept_degraded=(\w{6})", closed.text))
    ran = back(fresh, "zk", quorumshift_accept_degraded=token, **FAST)
    assert ran.code == 0 and phase(ran) == "zk", ran.text
    assert files(fresh) == degraded
    no_trace(fresh)
    assert under_replicated(fresh) == 1
    again = back(fresh, "zk", **FAST)
    assert again.code == 0 and changed(again, fresh) == [], again.text
