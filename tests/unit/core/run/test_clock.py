# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Times of one clock by another, by a model of two clocks."""

from __future__ import annotations

import itertools

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.restart import restart_plan
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import clock

PLANNED_AT = 1000  # every other time is relative to it, by the control node's clock


def read(started, ahead, asked, read_at, arrived):
    """Return the reading of a node. Its process started at `started` by the control node's clock, and its host's clock
    is `ahead` of that."""
    return {
        "running": {"node_id": 1},
        "service": {"started_at": started + ahead},
        "time": read_at + ahead,
        "asked": [asked, arrived],
    }


def readings():
    """Yield (when the process started, how long its reading took, the reading), all by the control node's clock."""
    for started, ahead, wait, answer in itertools.product(
        (-3600, -40, -3, -1, 0, 1, 3, 40, 3600), (-7200, -31, -2, 0, 2, 31, 7200), (0, 1, 5), (0, 1, 5)
    ):
        asked = PLANNED_AT + 4000
        yield started, wait + answer, read(PLANNED_AT + started, ahead, asked, asked + wait, asked + wait + answer)


def test_a_node_counts_as_restarted_only_if_it_was_and_always_if_its_reading_can_tell():
    seen = set()
    for started, took, node in readings():
        restarted = restart_plan.was_restarted_since(node, PLANNED_AT)
        assert not restarted or started >= 0, node
        assert restarted or started < took, node
        seen.add(restarted)
    assert seen == {True, False}


def test_without_a_reading_of_its_clock_no_node_counts_as_restarted():
    for _started, _took, node in readings():
        del node["asked"]
        assert not restart_plan.was_restarted_since(node, PLANNED_AT)


def test_what_was_read_before_the_plan_started_before_the_time_that_is_printed():
    """So a node that a run has read, and has not restarted, never counts as restarted in the run that goes on."""
    for _started, _took, node in readings():
        others = {"b1": node, "b2": {**node, "asked": [asked + 0.5 for asked in node["asked"]]}}
        printed = clock.last_reading(others)
        if printed is not None:
            assert not restart_plan.was_restarted_since(node, printed)


def test_one_host_that_is_off_says_nothing_about_the_control_node():
    nodes = {f"b{number}": read(0, ahead, 100, 100, 100) for number, ahead in enumerate((40, 50, 60))}
    assert clock.control_behind_s(nodes) == 40
    assert clock.last_reading(nodes) is None
    assert clock.control_behind_s({"b0": nodes["b0"]}) == 0
    assert clock.control_behind_s({**nodes, "b3": read(0, -40, 100, 100, 100)}) == 0
    assert clock.control_behind_s({**nodes, "b3": read(0, 0, 100, 100, 100)}) == 0
