# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of a throttle, by enumeration: no throttle outlives its last partition, wherever a process is killed.

The cluster is a model: rates, lists and partitions in flight. A process is killed before or after each of its changes
of the cluster and of its record. Other hosts move meanwhile. At the end each host runs once more.
"""

from __future__ import annotations

import contextlib

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.admin import reassigner
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import reassignment
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin.reassignment import (
    BROKER,
    LEADER_RATE,
    REPLICAS,
    TOPIC,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state

CLUSTER = "Qs7KfZk2TIK1n0nQ5Qm3Tw"
RATE_A, RATE_B = 1000, 2000
T0, U0 = ("t", 0), ("u", 0)
CHANGES = 13  # more than a run makes


class Killed(BaseException):
    """The process is gone."""


class Cluster:
    """Brokers 1 to 3, and two topics of one partition. `kill_at`: the number of the change at which its caller dies."""

    cluster_id = CLUSTER

    def __init__(self):
        self.brokers = {1: None, 2: None, 3: None}
        self.partitions = {T0: None, U0: None}
        self.values = {}
        self.flying = set()
        self.kill_at = None
        self.changes = 0

    def change(self):
        self.changes += 1
        if self.kill_at is not None and self.changes > self.kill_at:
            raise Killed

    def refresh(self):
        pass

    def in_flight(self):
        return dict.fromkeys(self.flying)

    def configs(self, resources, keys):
        return {
            resource: {key: self.values[(*resource, key)] for key in keys if (*resource, key) in self.values}
            for resource in resources
        }

    def alter_configs(self, changes):
        for (kind, name), values in changes.items():
            self.change()
            if kind == TOPIC and name not in {topic for topic, _number in self.partitions}:
                continue
            for key, value in values.items():
                self.values.pop((kind, name, key), None)
                if value is not None:
                    self.values[kind, name, key] = value
        return {}

    def delete(self, topic):
        for partition in [partition for partition in self.partitions if partition[0] == topic]:
            del self.partitions[partition]
            self.flying.discard(partition)
        self.values = {resource: value for resource, value in self.values.items() if resource[:2] != (TOPIC, topic)}


@pytest.fixture
def cluster(monkeypatch):
    model = Cluster()
    written = host_state.write_json

    def write(path, value):
        model.change()
        written(path, value)
        model.change()

    monkeypatch.setattr(host_state, "write_json", write)
    return model


def move(cluster, state_dir, partition, rate, mode="refused", kill_at=None):
    """Begin a move from a host as the module does; return whether it began."""
    cluster.kill_at, cluster.changes = kill_at, 0
    (step,) = reassignment.steps({partition: [3, 1]}, {partition: [1, 2]}, {})
    throttles = reassigner.Throttles(cluster, state_dir)
    unknown = cluster.flying - set(throttles.partitions)
    if reassigner.foreign_refusal(throttles.foreign([step]), mode, unknown, "b1:9092"):
        return False
    with contextlib.suppress(Killed):
        if throttles.left_over(cluster.flying):
            throttles.finish()
        with throttles.exclusive():
            throttles.throttle([step], rate, mode)
            cluster.change()
            cluster.flying.add(partition)
        cluster.change()
    cluster.kill_at = None
    return partition in cluster.flying


def end(cluster, state_dir, kill_at=None):
    """Run once more, as each run begins: remove what no partition needs. Return what is left, in words."""
    cluster.kill_at, cluster.changes = kill_at, 0
    left = None
    with contextlib.suppress(Killed):
        throttles = reassigner.Throttles(cluster, state_dir)
        if throttles.left_over(cluster.flying):
            left = throttles.finish()
    cluster.kill_at = None
    return left


@pytest.mark.parametrize("second", range(CHANGES))
@pytest.mark.parametrize("first", range(CHANGES))
def test_a_run_that_is_killed_twice_leaves_nothing_after_the_third(cluster, tmp_path, first, second):
    move(cluster, str(tmp_path), T0, RATE_A, kill_at=first)
    if cluster.flying:
        assert reassignment.find_throttled_topics(
            cluster.configs([(BROKER, "1"), (TOPIC, "t")], reassignment.THROTTLES)
        ) == ["t"]
        assert end(cluster, str(tmp_path)) is None, "it stays while its partition is in flight"
    cluster.flying.clear()
    end(cluster, str(tmp_path), kill_at=second)
    end(cluster, str(tmp_path))
    assert cluster.values == {} and not (tmp_path / CLUSTER / reassigner.RECORD).exists()


@pytest.mark.parametrize("order", ["AB", "BA"])
@pytest.mark.parametrize("mode", ["refused", "removed"])
@pytest.mark.parametrize("partition", [T0, U0])
@pytest.mark.parametrize("killed", range(CHANGES))
def test_two_hosts_leave_nothing_in_either_order(cluster, tmp_path, killed, partition, mode, order):
    """Host A is killed anywhere; host B takes its throttles over, or is refused while they are set."""
    homes = {"A": str(tmp_path / "a"), "B": str(tmp_path / "b")}
    move(cluster, homes["A"], T0, RATE_A, kill_at=killed)
    began = move(cluster, homes["B"], partition, RATE_B, mode)
    rates = {value for (_kind, _name, key), value in cluster.values.items() if key == LEADER_RATE}
    assert len(rates) <= 1, "one rate has one owner"
    assert began or mode == "refused"
    for host in order:
        cluster.flying.clear()
        end(cluster, homes[host])
    assert cluster.values == {}


@pytest.mark.parametrize("killed", range(CHANGES))
def test_a_topic_that_is_deleted_leaves_no_throttle(cluster, tmp_path, killed):
    move(cluster, str(tmp_path), T0, RATE_A)
    move(cluster, str(tmp_path), U0, RATE_A)
    cluster.delete("t")
    assert end(cluster, str(tmp_path)) is None, "u is in flight"
    cluster.delete("u")
    end(cluster, str(tmp_path), kill_at=killed)
    end(cluster, str(tmp_path))
    assert cluster.values == {}


def test_a_run_makes_fewer_changes_than_are_tried(cluster, tmp_path):
    assert move(cluster, str(tmp_path), T0, RATE_A) and cluster.changes < CHANGES
    cluster.flying.clear()
    end(cluster, str(tmp_path))
    assert 0 < cluster.changes < CHANGES


def test_a_broker_that_dies_is_named_and_freed_once_it_is_back(cluster, tmp_path):
    move(cluster, str(tmp_path), T0, RATE_A)
    address = cluster.brokers.pop(2)
    cluster.flying.clear()
    left = end(cluster, str(tmp_path))
    assert left and all("broker 2 is not alive" in text for text in left)
    assert {throttle[1] for throttle in cluster.values} == {"2"}
    assert end(cluster, str(tmp_path)) is None, "nothing to do while it is dead"
    cluster.brokers[2] = address
    assert end(cluster, str(tmp_path)) == [] and cluster.values == {}


@pytest.mark.parametrize("killed", range(CHANGES))
def test_a_standing_rate_is_restored_and_only_then(cluster, tmp_path, killed):
    standing = {(BROKER, "1", LEADER_RATE): "77", (TOPIC, "t", REPLICAS[0]): "*"}
    cluster.values.update(standing)
    assert not move(cluster, str(tmp_path), T0, RATE_A)
    assert cluster.values == standing, "a refusal changes nothing"
    move(cluster, str(tmp_path), T0, RATE_A, "restored", kill_at=killed)
    cluster.flying.clear()
    end(cluster, str(tmp_path))
    assert cluster.values == standing


def test_a_worker_of_a_dead_run_does_not_take_the_throttle_from_the_run_that_goes_on(cluster, tmp_path):
    """A worker of Ansible outlives its control process, and may see a stall first."""
    assert move(cluster, str(tmp_path), T0, RATE_A)
    of_worker = reassigner.Throttles(cluster, str(tmp_path))
    since = of_worker.owner["at"]
    resumed = reassigner.Throttles(cluster, str(tmp_path))
    with resumed.exclusive():
        resumed.own([T0])
    before = dict(cluster.values)
    assert of_worker.give_up(since) is None and cluster.values == before
    assert resumed.give_up(resumed.owner["at"]) is None and cluster.values == before, "something moves under it"
    cluster.flying.clear()
    assert resumed.give_up(resumed.owner["at"]) == [] and cluster.values == {}


def test_throttles_that_another_host_sets_at_the_last_moment_are_seen(cluster, tmp_path):
    (step,) = reassignment.steps({U0: [3, 1]}, {U0: [1, 2]}, {})
    late = reassigner.Throttles(cluster, str(tmp_path / "b"))
    assert late.foreign([step]) == []
    assert move(cluster, str(tmp_path / "a"), T0, RATE_A)
    before = dict(cluster.values)
    with late.exclusive(), pytest.raises(reassignment.ReassignmentError, match="another host has just set throttles"):
        late.throttle([step], RATE_B, "refused")
    assert cluster.values == before and late.values == []


def test_a_rate_of_a_move_that_another_host_made_is_not_restored_after_it(cluster, tmp_path):
    assert move(cluster, str(tmp_path / "a"), T0, RATE_A)
    before = dict(cluster.values)
    assert not move(cluster, str(tmp_path / "b"), U0, RATE_B, "restored") and cluster.values == before
