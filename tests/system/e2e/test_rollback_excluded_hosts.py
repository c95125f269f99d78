# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rollback that excludes a lost broker and a lost controller; they return as the last screen says."""

from __future__ import annotations

import re

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import topics
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient

from tests.system.e2e.rollbacks import back, changed, files, no_trace, phase
from tests.system.testbed import faults
from tests.system.testbed.inventory import TestbedInventory
from tests.system.testbed.waiting import wait_for

FAST = {"quorumshift_verify": False, "quorumshift_soak": "0s"}
LOST = ("b3", "c3")


@pytest.fixture(scope="module")
def lost(fresh):
    """Dual-write without the hosts of a broker and a controller: (the plain mode's files, the hosts)."""
    plain = files(fresh)
    ran = fresh.play(extra=FAST)
    assert ran.code == 0 and phase(ran) == "dual_write", ran.text
    for host, service in zip(LOST, ("kafka", "kafka-controller")):
        kill = f"systemctl kill --signal=KILL {service}; systemctl stop {service}; systemctl reset-failed {service}"
        fresh.run(host, f"{kill}; true")
    hosts = [faults.Unreachable(host) for host in LOST]
    for host in hosts:
        host.begin()
    yield plain, hosts
    for host in hosts:
        host.end()


def test_a_rollback_with_lost_hosts_is_refused(fresh, lost):
    ran = back(fresh, "zk", **FAST)
    assert ran.code != 0 and "A run must lock every broker and controller, and 2 cannot be locked" in ran.text, ran.text


def test_a_serving_host_cannot_be_excluded(fresh, lost):
    ran = back(fresh, "zk", quorumshift_exclude_hosts="b3,c3,b1", **FAST)
    assert ran.code != 0 and "b1 answers in mode kraft. Stop it, or do not exclude it. Nothing was changed." in ran.text


def test_a_migration_cannot_exclude_hosts(fresh, lost):
    ran = fresh.play(extra={**FAST, "quorumshift_exclude_hosts": "b3,c3"})
    assert ran.code != 0 and "only a rollback may exclude hosts. Nothing was changed." in ran.text, ran.text


def test_a_last_in_sync_replica_keeps_the_gate_closed(fresh, lost):
    """Topics with two replicas lost one; a reassignment gives them another, as the runbook says."""
    connections = fresh.connections()

    def read():
        return topics.read(connections.bootstrap, connections.client, 5)

    def broker_is_dead():
        metadata = read()
        return metadata["reached"] and len(metadata["brokers"]) == len(fresh.brokers) - 1

    wait_for(broker_is_dead, 60, "the cluster to mark the broker as dead")
    ran = back(fresh, "zk", quorumshift_exclude_hosts="b3,c3", **FAST)
    assert ran.code != 0 and "partitions have their last in-sync replica on broker 1: " in ran.text, ran.text
    left = [fresh.node_id(host) for host in ("b1", "b2")]
    short = {
        TopicPartition(name, int(number)): left
        for name, partitions in read()["partitions"].items()
        for number, partition in partitions.items()
        if len(partition["replicas"]) == 2 and len(partition["isr"]) == 1
    }
    admin = KafkaAdminClient(**TestbedInventory().kafka_python())
    try:
        assert not any(admin.alter_partition_reassignments(short).values())
    finally:
        admin.close()

    def in_sync():
        partitions = read().get("partitions") or {}
        return all(sorted(partitions[tp.topic][str(tp.partition)]["isr"]) == sorted(left) for tp in short)

    wait_for(in_sync, 120, "the new replicas to be in sync")


def test_a_rollback_excludes_lost_hosts(fresh, lost):
    plain, hosts = lost
    ran = back(fresh, "zk", quorumshift_exclude_hosts="b3,c3", **FAST)
    assert ran.code == 0 and phase(ran) == "zk", ran.text
    no_trace(fresh)
    excluded = re.findall(r"! (b3|c3) was excluded: (.*)", ran.text)
    assert [host for host, _instruction in excluded] == ["b3", "c3"], ran.text
    for host in hosts:
        host.end()
    # follow the screen's instructions
    ((file, saved),) = re.findall(r"replace (\S+) by (\S+), if that file exists", excluded[0][1])
    fresh.run("b3", f"cat {saved} > {file} && systemctl start kafka")
    ((log_dir, file),) = re.findall(r"empty (\S+) and remove (\S+):", excluded[1][1])
    fresh.run("c3", f"rm -rf {log_dir}/* {file}")
    fresh.wait_in_sync()
    assert files(fresh) == plain
    again = back(fresh, "zk", **FAST)
    assert again.code == 0 and phase(again) == "zk" and changed(again, fresh) == [], again.text


def test_the_next_migration_includes_them(fresh, lost):
    ran = fresh.play(extra=FAST)
    assert ran.code == 0 and phase(ran) == "dual_write", ran.text
