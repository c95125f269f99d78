# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is ahead in each phase, over facts of real clusters in it."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.judgements import (
    gates,
    phase,
    planning,
    planning_screen,
)

from tests.unit.judgements import recorded

WAY = [
    *("backup", "before_controllers", "controller", "before_trigger", "zk_migration", "copy", "after_copy", "kraft"),
    *("after_kraft", "soak", "before_finalize", "controller_final", "after_finalize"),
]


def ahead(name, target="", canary=None):
    facts = recorded.facts(name)
    return planning.steps(facts, phase.judge(facts), {}, canary, target)


@pytest.mark.parametrize(
    ("name", "first"),
    [("zk", "backup"), ("controllers_ready", "backup"), ("hybrid", "after_copy"), ("dual_write", "soak")],
)
def test_what_is_ahead_in_a_phase(name, first):
    told = [step.name for step in ahead(name)]
    way = [one for one in WAY if name != "controllers_ready" or one not in ("before_controllers", "controller")]
    assert told == way[way.index(first) :]


def test_nothing_is_ahead_of_who_arrived():
    assert ahead("finalized") == []
    lines = planning_screen.lines("x", "finalized", "", [], {}, None)
    assert lines == ["Plan for cluster x: nothing is ahead, from finalized to finalized"]


def test_each_gate_and_each_roll_is_one_of_the_tools():
    for name in ("zk", "dual_write"):
        for target in ("", "hybrid", "zk"):
            for step in ahead(name, target):
                assert step.kind != planning.GATE or step.name in gates.GATES
                assert step.kind not in (planning.ROLL, planning.START) or step.name in gates.GATE_OF_TURN


def test_who_is_restarted_when_and_why():
    (roll,) = [step for step in ahead("zk", canary="b3") if step.name == "zk_migration"]
    assert roll.batches[0] == ["b3"] and roll.reasons["b3"] == "canary: chosen" and len(roll.batches) == 3


def test_the_way_back():
    assert [step.name for step in ahead("dual_write", "hybrid")] == ["before_revert", "hybrid"]
    assert [step.name for step in ahead("dual_write", "zk")] == [
        *("before_revert", "hybrid", "before_revert", "stop", "hand_back", "zk", "wipe", "after_revert")
    ]
    assert [step.name for step in ahead("controllers_ready", "zk")] == [
        *("before_revert", "stop", "hand_back", "wipe", "after_revert")
    ]
    assert ahead("zk", "zk") == []


def test_up_to_where_there_is_a_way_back():
    told = ahead("dual_write")
    lines = planning_screen.lines("x", "dual_write", "", told, {}, None)
    assert lines[-2] == "  way back: up to step 2; none once a controller runs without the flag"
    assert [step.back is None for step in told] == [False, False, True, True]


def test_how_long_it_takes_is_told_from_this_clusters_own_figures():
    events = [
        {"kind": "restart", "name": "zk_migration", "turn_s": 20},
        {"kind": "restart", "name": "zk_migration", "turn_s": 30},
        {"kind": "event", "name": "admitted", "waited_s": 5},
        {"kind": "gate", "name": "after_copy"},
    ]
    assert planning.restart_s(events) == 30 and planning.restart_s(events[2:]) is None
    told = ahead("zk")
    batches = 3 + 3 + 3 + 1
    assert planning.estimate_s(told, 30) == batches * 30 and planning.estimate_s(told, None) is None
    assert f"5 min for {batches} restarts, at 30 s each" in planning_screen.lines("x", "zk", "", told, {}, 30)[-1]
    assert "is known once the first was done" in planning_screen.lines("x", "zk", "", told, {}, None)[-1]


def test_secrets_are_not_shown():
    lines = planning_screen.file_lines(
        {"a": "1", "broker.id": "1", "ssl.key.password": "old", "gone": "x", "same": "1"},
        {"a": "2", "broker.id": None, "ssl.key.password": "new", "gone": None, "same": "1", "made": "y", "never": None},
        lambda key: "password" in key,
    )
    assert lines == [
        *(
            "- a=1",
            "+ a=2",
            "- broker.id=(its own)",
            "- gone=x",
            "+ made=y",
            "- ssl.key.password=(secret)",
            "+ ssl.key.password=(secret)",
        ),
    ]


def test_what_changes_stands_below_its_step():
    told = ahead("hybrid")
    lines = planning_screen.lines("x", "hybrid", "", told, {"kraft": {("b1", "b2"): ["+ process.roles=broker"]}}, None)
    at = next(number for number, line in enumerate(lines) if "restart brokers in KRaft mode: " in line)
    assert lines[at + 1 : at + 3] == ["        file of b1, b2:", "          + process.roles=broker"]
