# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which brokers answer clients too late for the next stop, and which plan's batch is the one before."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import client_latency
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.restart import batches

SLOW = "b1 takes {} s to answer a client, {} s before the restarts. Awaited: at most {} s (QS-GATE-014)"


@pytest.mark.parametrize(
    ("before", "now", "factor", "said"),
    [
        ({"b1": 0.001}, {"b1": 0.1}, 2, []),
        ({"b1": 0.001}, {"b1": 0.11}, 2, [SLOW.format("0.11", "0.00", "0.10")]),
        ({"b1": 0.4}, {"b1": 0.8}, 2, []),
        ({"b1": 0.4}, {"b1": 0.81}, 2, [SLOW.format("0.81", "0.40", "0.80")]),
        ({"b1": 0.4}, {"b1": 0.81}, 3, []),
        ({"b1": 0.4}, {"b1": None}, 3, ["b1 gives clients no answer in time (QS-GATE-014)"]),
        # b1 was down, or gave no answer, when the restarts were planned
        ({"b2": 0.3, "b3": 0.2}, {"b1": 0.6}, 2, []),
        ({"b1": None, "b2": 0.3}, {"b1": 0.61}, 2, [SLOW.format("0.61", "0.30", "0.60")]),
        ({"b1": None, "b2": 0.3}, {"b1": None, "b2": 0.3}, 2, []),
        ({"b2": 0.3}, {"b1": None, "b2": 0.3}, 2, ["b1 gives clients no answer in time (QS-GATE-014)"]),
        ({}, {"b1": 0.2}, 2, [SLOW.format("0.20", "0.00", "0.10")]),
        ({"b1": 0.001, "b2": 0.001}, {"b2": 0.001}, 2, []),  # whether b1 runs is another condition's question
    ],
)
def test_a_broker_is_held_against_its_own_time_before(before, now, factor, said):
    assert client_latency.explain_slow(before, now, factor) == said


def test_the_batch_before_is_the_plans():
    plan = [["b1"], ["b2", "b3"], ["b4"]]
    assert [batches.find_previous(plan, batch) for batch in plan] == [[], ["b1"], ["b2", "b3"]]
    assert batches.find_previous(plan, ["b3"]) == ["b1"]  # whose token expired, without that of b2
    assert batches.find_previous(plan, []) == ["b4"]
    assert batches.find_previous([], []) == [] == batches.find_previous(plan, ["c1"])
