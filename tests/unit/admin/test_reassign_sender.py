# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reassignments whose answer is lost: read anew, sent again, and a later owner of the move stops this one."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.admin import own_cluster, reassign_sender, reassigner
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import reassignment
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin.reassign_queue import Queue
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.kafka_wire import KafkaError
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import Unreachable

ADDRESS = HostPort("b1", 9092)
T = [("t", number) for number in range(6)]
LOST = Unreachable(ADDRESS, "closed", "the server closed the connection")


class Cluster:
    """Brokers 1 to 3 with topic t of six partitions. `losses`: how often an answer is lost after `made` of the targets
    were made; `silent`: whether it gives no more answer after that."""

    cluster_id = "Qs7KfZk2TIK1n0nQ5Qm3Tw"

    def __init__(self, losses=0, made=0, silent=False, error=None):
        self.brokers = {1: None, 2: None, 3: None}
        self.partitions = {partition: {"replicas": [1, 2]} for partition in T}
        self.moving, self.asked = {}, []
        self.losses, self.made, self.silent, self.error = losses, made, silent, error

    def refresh(self):
        if self.silent and self.asked:
            raise LOST

    def in_flight(self):
        return dict(self.moving)

    def reassign(self, targets):
        self.asked.append(dict(targets))
        if self.error:
            raise self.error
        lost = self.losses > 0
        self.losses -= 1
        for partition, target in list(targets.items())[: self.made if lost else None]:
            if target is None:
                self.moving.pop(partition, None)
            else:
                self.moving[partition] = {"replicas": [3, 1, 2], "adding": [3], "removing": [2]}
        if lost:
            raise LOST
        return dict.fromkeys(targets)


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(reassign_sender, "_POLL_S", 0)


@pytest.mark.parametrize("made", range(len(T) + 1))
@pytest.mark.parametrize("losses", [1, 2])
def test_what_began_is_not_sent_again_and_the_rest_is(made, losses):
    cluster = Cluster(losses, made)
    assert reassign_sender.send(cluster, dict.fromkeys(T, (3, 1))) == dict.fromkeys(T)
    assert set(cluster.moving) == set(T)
    assert set(cluster.asked[1] if made < len(T) else ()) == set(T[made:])


def test_a_cancellation_whose_answer_is_lost_is_read_anew():
    cluster = Cluster(1, 1)
    cluster.moving = {partition: {"replicas": [3, 1, 2], "adding": [3], "removing": [2]} for partition in T[:2]}
    assert reassign_sender.send(cluster, dict.fromkeys(T[:2])) == dict.fromkeys(T[:2])
    assert cluster.moving == {} and list(cluster.asked[1]) == [T[1]]


def test_no_answer_says_that_they_may_have_begun():
    cluster = Cluster(1, 3, silent=True)
    with pytest.raises(reassign_sender.MayHaveBegun, match=r"6 reassignments .* may have begun \(t-0,"):
        reassign_sender.send(cluster, dict.fromkeys(T, (3, 1)), again_s=0)


def test_a_refusal_is_not_sent_again():
    cluster = Cluster(error=KafkaError(ADDRESS, 31, "AlterPartitionReassignments"))
    with pytest.raises(KafkaError, match="CLUSTER_AUTHORIZATION_FAILED"):
        reassign_sender.send(cluster, dict.fromkeys(T, (3, 1)))
    assert len(cluster.asked) == 1


def test_what_another_clusters_broker_did_not_get_has_not_begun():
    cluster = Cluster(error=own_cluster.ForeignServer(ADDRESS, "this broker is of cluster x"))
    with pytest.raises(own_cluster.ForeignServer):
        reassign_sender.send(cluster, dict.fromkeys(T, (3, 1)))
    assert len(cluster.asked) == 1


def sender_of(cluster, tmp_path, limit):
    throttles = reassigner.Throttles(cluster, str(tmp_path))
    steps = reassignment.steps(dict.fromkeys(T, (3, 1)), {partition: [1, 2] for partition in T}, cluster.in_flight())
    with throttles.exclusive():
        throttles.own(T)
    since = throttles.owner["at"]
    return reassign_sender.Sender(cluster, throttles, Queue(steps, limit, 0, {}), steps, since, False)


def test_a_worker_of_a_dead_run_sends_no_more_once_another_run_has_taken_over(tmp_path):
    cluster = Cluster()
    worker = sender_of(cluster, tmp_path, 2)
    assert worker.sent({}).queued == 4 and len(cluster.moving) == 2
    reassigner_of_another_run = reassigner.Throttles(cluster, str(tmp_path), "later")
    with reassigner_of_another_run.exclusive():
        reassigner_of_another_run.own([])
    cluster.moving.clear()
    with pytest.raises(reassigner.Superseded, match="run later goes on with this move"):
        worker.sent({})
    assert cluster.moving == {}


def test_a_worker_of_a_dead_run_sends_no_more_once_the_move_was_cancelled(tmp_path):
    cluster = Cluster()
    worker = sender_of(cluster, tmp_path, 2)
    worker.sent({})
    cluster.moving.clear()
    assert reassigner.Throttles(cluster, str(tmp_path)).finish() == []
    with pytest.raises(reassigner.Superseded):
        worker.sent({})
    assert not list(tmp_path.glob("*/throttles.json"))
