# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which replicas have what their leader had. What brokers answer: tests/integration/test_handback.py."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.stuck_leaders import HeldOut
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import log_ends
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import Connections
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.socket_wire import Unreachable

NODES = {f"b{one}": {"role": "broker", "node_id": one, "address": f"b{one}:9092"} for one in (1, 2, 5)}
HELD = [HeldOut("orders", 0, 2, (1,), (2,)), HeldOut("orders", 1, 2, (1, 5), (2,)), HeldOut("other", 0, 5, (1,), (5,))]


@pytest.fixture
def ends(monkeypatch):
    """{broker: [what it answers, one after the other; the last for good]}; an empty list: it does not answer."""
    reported = {}

    def read(address, _client, partitions, _timeout):
        answers = reported[int(address.host[1:])]
        if not answers:
            raise Unreachable(address, "refused", "connection refused")
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return {one: answer[one] for one in partitions if one in answer}

    monkeypatch.setattr(log_ends, "read", read)
    return reported


def names(bound_s=0.5):
    connections = Connections((), None, None, None, None, 5)
    return [one.name for one in log_ends.caught_up(HELD, NODES, connections, bound_s)]


def test_what_the_leader_had_counts(ends):
    ends[2] = [{("orders", 0): 10, ("orders", 1): 20}]
    ends[5] = [{("orders", 1): 20, ("other", 0): 5}]
    ends[1] = [
        {("orders", 0): 9, ("orders", 1): 20, ("other", 0): 6},
        {("orders", 0): 10, ("orders", 1): 20, ("other", 0): 6},
    ]
    assert names() == ["orders-0", "orders-1", "other-0"]


def test_each_replica_that_is_out_has_to_reach_it(ends):
    ends[2] = [{("orders", 0): 10, ("orders", 1): 20}]
    ends[5] = [{("orders", 1): 19, ("other", 0): 5}]
    ends[1] = [{("orders", 0): 10, ("orders", 1): 20, ("other", 0): 4}]
    assert names() == ["orders-0"]


def test_a_partition_of_which_somebody_cannot_tell(ends):
    ends[2] = [{("orders", 0): 10}]
    ends[5] = [{("other", 0): 5}]
    ends[1] = [{("other", 0): 5}]
    assert names() == ["other-0"]


def test_who_does_not_answer_proves_nothing(ends):
    ends[2] = [{("orders", 0): 10, ("orders", 1): 20}]
    ends[5] = []
    ends[1] = [{("orders", 0): 10, ("orders", 1): 20, ("other", 0): 5}]
    assert names() == []
