# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is ahead in each phase, over facts of real clusters in it."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import (
    gates,
    phase,
    planning,
    planning_screen,
    transitions,
)

from tests.unit.core import recorded

WAY = [
    *("backup", "before_controllers", "controller", "before_trigger", "zk_migration", "copy", "after_copy", "kraft"),
    *("after_kraft", "soak", "before_finalize", "controller_final", "after_finalize"),
]


def ahead(name, target="", canary=None):
    facts = recorded.facts(name)
    return planning.steps(facts, phase.detect(facts), {}, canary, target)


@pytest.mark.parametrize(
    ("name", "first"),
    [("zk", "backup"), ("controllers_ready", "backup"), ("hybrid", "after_copy"), ("dual_write", "soak")],
)
def test_what_is_ahead_in_a_phase(name, first):
    messages = [step.name for step in ahead(name)]
    way = [one for one in WAY if name != "controllers_ready" or one not in ("before_controllers", "controller")]
    assert messages == way[way.index(first) :]


def test_nothing_is_ahead_of_who_arrived():
    assert ahead("finalized") == []
    lines = planning_screen.lines("x", "finalized", "", [], {}, {})
    assert lines == ["Plan for cluster x: nothing is ahead, from finalized to finalized"]


def test_each_gate_and_each_roll_is_one_of_the_tools():
    for name in ("zk", "dual_write"):
        for target in ("", "hybrid", "zk"):
            for step in ahead(name, target):
                assert step.kind != planning.GATE or step.name in gates.GATES
                assert step.kind not in (planning.ROLL, planning.START) or step.name in transitions.TRANSITIONS


def test_who_is_restarted_when_and_why():
    (roll,) = [step for step in ahead("zk", canary="b3") if step.name == "zk_migration"]
    assert roll.batches[0] == ["b3"] and roll.reasons["b3"] == "canary: chosen" and len(roll.batches) == 3


def test_the_way_back():
    assert [step.name for step in ahead("dual_write", "hybrid")] == ["before_revert", "hybrid"]
    assert [step.name for step in ahead("dual_write", "zk")] == [
        *("before_revert", "hybrid", "before_revert", "stop", "restore_zk_controller", "zk", "wipe", "after_revert")
    ]
    assert [step.name for step in ahead("controllers_ready", "zk")] == [
        *("before_revert", "stop", "restore_zk_controller", "wipe", "after_revert")
    ]
    assert ahead("zk", "zk") == []


def test_up_to_where_there_is_a_way_back():
    reported = ahead("dual_write")
    lines = planning_screen.lines("x", "dual_write", "", reported, {}, {})
    assert lines[-2] == "  way back: up to step 2; none once a controller runs without the flag"
    assert [step.back is None for step in reported] == [False, False, True, True]


def restarted(name, restart_s, run="r1", **more):
    reported = {
        "kind": "restart",
        "name": name,
        "restart_s": restart_s,
        "outcome": "done",
        "node_restart": f"{run}/{name}/b1",
    }
    return {**reported, **more}


def admitted(node_restart, waited_s):
    return {"kind": "event", "name": "admitted", "mode": node_restart, "hosts": ["b1"], "waited_s": waited_s}


def test_how_long_it_takes_is_told_from_this_clusters_own_figures():
    events = [
        *(restarted("zk_migration", 20), restarted("zk_migration", 30), restarted("controller", 13)),
        *(admitted("zk_migration", 5), restarted("zk_migration", 400, outcome="reverted")),
        {"kind": "gate", "name": "after_copy"},
    ]
    each = planning.each_s(events)
    assert each == {"zk_migration": 30, "controller": 13, "": (30 + 30 + 13) / 3}
    assert planning.each_s(events[3:]) == {}
    reported = ahead("zk")
    (joining,) = [step for step in reported if step.name == "zk_migration"]
    assert planning.step_s(joining, each) == 90 and planning.step_s(joining, {}) is None
    assert planning.estimate_s(reported, {"": 30.0}) == 10 * 30 and planning.estimate_s(reported, {}) is None
    assert (
        "5 min 0 s for 10 restarts, at 30 s each" in planning_screen.lines("x", "zk", "", reported, {}, {"": 30.0})[-1]
    )
    assert "is known once the first was done" in planning_screen.lines("x", "zk", "", reported, {}, {})[-1]
    assert planning_screen.line(reported, {"": 30.0}).startswith(
        "13 steps ahead; 5 min 0 s for 10 restarts, at 30 s each"
    )


def test_a_way_without_a_restart_is_told_without_a_time():
    reported = ahead("controllers_ready", "zk")
    assert reported and not planning.restarts(reported)
    lines = planning_screen.lines("x", "controllers_ready", "zk", reported, {}, {"": 30.0})
    assert not any("time:" in line for line in lines)
    assert planning_screen.line(reported, {"": 30.0}) == f"{len(reported)} steps ahead"


def kept(name="zk", each=(), target=""):
    """A plan as a run keeps it."""
    return {"steps": [step._asdict() for step in ahead(name, target)], "each_s": dict(each)}


def test_what_it_took_stands_beside_what_was_planned():
    events = [
        *(restarted("controller", 13), restarted("controller", 5, t=100.0, end=115.0)),
        *(admitted("zk_migration", 5), restarted("zk_migration", 20)),
        *(admitted("zk_migration", 7), restarted("zk_migration", 25)),
        restarted("zk_migration", 99, node_restart="r1/repair/b3"),  # an earlier run's turn, finished
        restarted("kraft", 50, run="r0"),
    ]
    reported = planning.took(kept(each={"": 10.0, "zk_migration": 20.0}), events, "r1")
    assert [one[:1] + one[2:] for one in reported] == [("controller", 1, 10, 1, 15), ("zk_migration", 3, 60, 2, 57)]
    assert planning_screen.took_lines(reported, 301) == [
        "  bring up the controllers: planned 10 s, took 15 s",
        "  restart brokers in migration mode: planned 1 min 0 s for 3 of them, took 57 s for 2",
        "  the run in all, gates and what else it waited for included: 5 min 1 s",
    ]
    (first, _second) = planning.took(kept(), events, "r1")
    assert planning_screen.took_lines([first], 1)[0] == "  bring up the controllers: no figure was known, took 15 s"
    assert planning.took(kept(), [], "r1") == []


def roll(*hosts, done=(), **reasons):
    return {"batches": [[host] for host in hosts], "done": list(done), "reasons": reasons}


@pytest.mark.parametrize(
    ("now", "reported"),
    [
        (roll("b1", "b2", "b3", b1="canary: as planned"), []),
        (roll("b2", "b3", done=["b1"]), ["b1 runs so already"]),
        (roll("b3", "b1", "b2", b3="down: restarted first"), ["b3 down: restarted first"]),
        (roll("b1", "b3", "b2", b2="controller: last"), ["b2 controller: last"]),
        (roll("b2", "b1", "b3"), ["what had its place for a reason has it no more"]),
        (roll("b1", "b2", "b3", "b4"), ["b4 is to be restarted as well"]),
        (roll("b1", "b2"), ["b3 is no broker or controller of this run"]),
    ],
)
def test_where_a_roll_does_otherwise_than_planned(now, reported):
    assert planning.otherwise(["b1", "b2", "b3"], now) == reported


def test_the_order_of_a_turn():
    plan = kept("hybrid")
    assert sorted(planning.order(plan, "kraft")) == ["b1", "b2", "b3"] and planning.order(plan, "zk_migration") is None


def test_no_broker_is_the_controller_in_the_roll_to_kraft():
    (first, second) = [step for step in ahead("zk") if step.name in ("zk_migration", "kraft")]
    assert any("controller" in reason for reason in first.reasons.values())
    assert not any("controller" in reason for reason in second.reasons.values())


def test_secrets_are_not_shown():
    lines = planning_screen.file_lines(
        {"a": "1", "broker.id": "1", "ssl.key.password": "old", "excluded": "x", "same": "1"},
        {
            "a": "2",
            "broker.id": None,
            "ssl.key.password": "new",
            "excluded": None,
            "same": "1",
            "made": "y",
            "never": None,
        },
        lambda key: "password" in key,
    )
    assert lines == [
        *(
            "- a=1",
            "+ a=2",
            "- broker.id=(its own)",
            "- excluded=x",
            "+ made=y",
            "- ssl.key.password=(secret)",
            "+ ssl.key.password=(secret)",
        ),
    ]


def test_what_changes_stands_below_its_step():
    reported = ahead("hybrid")
    lines = planning_screen.lines(
        "x", "hybrid", "", reported, {"kraft": {("b1", "b2"): ["+ process.roles=broker"]}}, {}
    )
    at = next(number for number, line in enumerate(lines) if "restart brokers in KRaft mode: " in line)
    assert lines[at + 1 : at + 3] == ["        file of b1, b2:", "          + process.roles=broker"]
