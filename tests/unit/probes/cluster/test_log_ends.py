# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which replicas reach their leader's earlier log end. Real brokers: tests/integration/test_stuck_leaders.py."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.restart.stuck_leaders import HeldOut
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import log_ends
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster.cluster import Connections
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import Unreachable

NODES = {f"b{number}": {"role": "broker", "node_id": number, "address": f"b{number}:9092"} for number in (1, 2, 5)}
HELD = [HeldOut("orders", 0, 2, (1,), (2,)), HeldOut("orders", 1, 2, (1, 5), (2,)), HeldOut("other", 0, 5, (1,), (5,))]


@pytest.fixture
def ends(monkeypatch):
    """{broker: [its answers in order, the last one repeated]}; with an empty list the broker does not answer."""
    answers_of = {}

    def read(address, _client, partitions, _timeout):
        answers = answers_of[int(address.host[1:])]
        if not answers:
            raise Unreachable(address, "refused", "connection refused")
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return {partition: answer[partition] for partition in partitions if partition in answer}

    monkeypatch.setattr(log_ends, "read", read)
    return answers_of


def names(bound_s=0.5):
    connections = Connections((), None, None, None, None, 5)
    return [partition.name for partition in log_ends.find_caught_up(HELD, NODES, connections, bound_s)]


def test_replicas_that_reach_the_leaders_earlier_end_have_caught_up(ends):
    ends[2] = [{("orders", 0): 10, ("orders", 1): 20}]
    ends[5] = [{("orders", 1): 20, ("other", 0): 5}]
    ends[1] = [
        {("orders", 0): 9, ("orders", 1): 20, ("other", 0): 6},
        {("orders", 0): 10, ("orders", 1): 20, ("other", 0): 6},
    ]
    assert names() == ["orders-0", "orders-1", "other-0"]


def test_every_out_of_sync_replica_must_reach_the_end(ends):
    ends[2] = [{("orders", 0): 10, ("orders", 1): 20}]
    ends[5] = [{("orders", 1): 19, ("other", 0): 5}]
    ends[1] = [{("orders", 0): 10, ("orders", 1): 20, ("other", 0): 4}]
    assert names() == ["orders-0"]


def test_partition_without_an_answer_is_left_out(ends):
    ends[2] = [{("orders", 0): 10}]
    ends[5] = [{("other", 0): 5}]
    ends[1] = [{("other", 0): 5}]
    assert names() == ["other-0"]


def test_broker_that_does_not_answer_proves_nothing(ends):
    ends[2] = [{("orders", 0): 10, ("orders", 1): 20}]
    ends[5] = []
    ends[1] = [{("orders", 0): 10, ("orders", 1): 20, ("other", 0): 5}]
    assert names() == []
