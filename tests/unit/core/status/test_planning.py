# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan from each phase, over recorded facts."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase, transitions
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import planning, planning_screen

from tests.unit.core import recorded

STEPS = [
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
def test_steps_ahead_in_a_phase(name, first):
    names = [step.name for step in ahead(name)]
    expected = [
        step for step in STEPS if name != "controllers_ready" or step not in ("before_controllers", "controller")
    ]
    assert names == expected[expected.index(first) :]


def test_a_finalized_cluster_has_no_step_ahead():
    assert ahead("finalized") == []
    lines = planning_screen.lines("x", "finalized", "", [], {}, {})
    assert lines == ["Plan for cluster x: nothing to do, from finalized to finalized"]


def test_each_step_is_a_known_gate_or_restart():
    for name in ("zk", "dual_write"):
        for target in ("", "hybrid", "zk"):
            for step in ahead(name, target):
                assert step.kind != planning.GATE or step.name in gates.GATES
                assert step.kind not in (planning.ROLL, planning.START) or step.name in transitions.KINDS


def test_a_roll_has_the_order_of_its_hosts_and_reasons():
    (roll,) = [step for step in ahead("zk", canary="b3") if step.name == "zk_migration"]
    assert roll.batches[0] == ["b3"] and roll.reasons["b3"] == "canary: chosen" and len(roll.batches) == 3


def test_steps_of_a_rollback():
    assert [step.name for step in ahead("dual_write", "hybrid")] == ["before_revert", "hybrid"]
    assert [step.name for step in ahead("dual_write", "zk")] == [
        *("before_revert", "hybrid", "before_revert", "stop", "restore_zk_controller", "zk", "wipe", "after_revert")
    ]
    assert [step.name for step in ahead("controllers_ready", "zk")] == [
        *("before_revert", "stop", "restore_zk_controller", "wipe", "after_revert")
    ]
    assert ahead("zk", "zk") == []


def test_the_plan_shows_up_to_which_step_a_rollback_is_possible():
    steps = ahead("dual_write")
    lines = planning_screen.lines("x", "dual_write", "", steps, {}, {})
    assert (
        lines[-2] == "  rollback: possible up to step 2; impossible once a controller runs without the migration flag"
    )
    assert [step.back is None for step in steps] == [False, False, True, True]


def restarted(name, restart_s, run="r1", **more):
    event = {
        "kind": "restart",
        "name": name,
        "restart_s": restart_s,
        "outcome": "done",
        "node_restart": f"{run}/{name}/b1",
    }
    return {**event, **more}


def admitted(kind, waited_s):
    return {"kind": "event", "name": "admitted", "restart_kind": kind, "hosts": ["b1"], "waited_s": waited_s}


def test_the_time_is_estimated_from_this_clusters_journals():
    events = [
        *(restarted("zk_migration", 20), restarted("zk_migration", 30), restarted("controller", 13)),
        *(admitted("zk_migration", 5), restarted("zk_migration", 400, outcome="reverted")),
        {"kind": "gate", "name": "after_copy"},
    ]
    each = planning.average_s(events)
    assert each == {"zk_migration": 30, "controller": 13, "": (30 + 30 + 13) / 3}
    assert planning.average_s(events[3:]) == {}
    steps = ahead("zk")
    (joining,) = [step for step in steps if step.name == "zk_migration"]
    assert planning.step_s(joining, each) == 90 and planning.step_s(joining, {}) is None
    assert planning.estimate_s(steps, {"": 30.0}) == 10 * 30 and planning.estimate_s(steps, {}) is None
    assert "5 min 0 s for 10 restarts, at 30 s each" in planning_screen.lines("x", "zk", "", steps, {}, {"": 30.0})[-1]
    assert "their time is unknown until the first one" in planning_screen.lines("x", "zk", "", steps, {}, {})[-1]
    assert planning_screen.line(steps, {"": 30.0}).startswith("13 steps ahead; 5 min 0 s for 10 restarts, at 30 s each")


def test_a_plan_without_a_restart_shows_no_time():
    steps = ahead("controllers_ready", "zk")
    assert steps and not planning.restarts(steps)
    lines = planning_screen.lines("x", "controllers_ready", "zk", steps, {}, {"": 30.0})
    assert not any("time:" in line for line in lines)
    assert planning_screen.line(steps, {"": 30.0}) == f"{len(steps)} steps ahead"


def kept(name="zk", each=(), target=""):
    """Return a plan as a run keeps it."""
    return {"steps": [step._asdict() for step in ahead(name, target)], "each_s": dict(each)}


def test_planned_and_real_time_of_the_restarts():
    events = [
        *(restarted("controller", 13), restarted("controller", 5, t=100.0, end=115.0)),
        *(admitted("zk_migration", 5), restarted("zk_migration", 20)),
        *(admitted("zk_migration", 7), restarted("zk_migration", 25)),
        restarted("zk_migration", 99, node_restart="r1/repair/b3"),  # a restart that an earlier run began
        restarted("kraft", 50, run="r0"),
    ]
    took = planning.measure_took(kept(each={"": 10.0, "zk_migration": 20.0}), events, "r1")
    assert [step[:1] + step[2:] for step in took] == [("controller", 1, 10, 1, 15), ("zk_migration", 3, 60, 2, 57)]
    assert planning_screen.took_lines(took, 301) == [
        "  bring up the controllers: planned 10 s, took 15 s",
        "  restart brokers in migration mode: planned 1 min 0 s for 3 restarts, took 57 s for 2",
        "  whole run, with gates and waits: 5 min 1 s",
    ]
    (first, _second) = planning.measure_took(kept(), events, "r1")
    assert planning_screen.took_lines([first], 1)[0] == "  bring up the controllers: no estimate, took 15 s"
    assert planning.measure_took(kept(), [], "r1") == []


def roll(*hosts, done=(), **reasons):
    return {"batches": [[host] for host in hosts], "done": list(done), "reasons": reasons}


@pytest.mark.parametrize(
    ("now", "reasons"),
    [
        (roll("b1", "b2", "b3", b1="canary: as planned"), []),
        (roll("b2", "b3", done=["b1"]), ["b1 already runs in this mode"]),
        (roll("b3", "b1", "b2", b3="down: restarted first"), ["b3 down: restarted first"]),
        (roll("b1", "b3", "b2", b2="controller: last"), ["b2 controller: last"]),
        (roll("b2", "b1", "b3"), ["a reason for the planned order no longer holds"]),
        (roll("b1", "b2", "b3", "b4"), ["b4 must be restarted as well"]),
        (roll("b1", "b2"), ["b3 is not a broker or controller of this run"]),
    ],
)
def test_deviations_from_the_planned_order(now, reasons):
    assert planning.find_deviations(["b1", "b2", "b3"], now) == reasons


def test_order_of_the_hosts_in_a_plan():
    plan = kept("hybrid")
    assert sorted(planning.order(plan, "kraft")) == ["b1", "b2", "b3"] and planning.order(plan, "zk_migration") is None


def test_no_broker_is_the_controller_in_the_restarts_in_kraft_mode():
    (first, second) = [step for step in ahead("zk") if step.name in ("zk_migration", "kraft")]
    assert any("controller" in reason for reason in first.reasons.values())
    assert not any("controller" in reason for reason in second.reasons.values())


def test_file_lines_hide_secrets_and_own_ids():
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


def test_file_changes_are_shown_below_their_step():
    steps = ahead("hybrid")
    lines = planning_screen.lines("x", "hybrid", "", steps, {"kraft": {("b1", "b2"): ["+ process.roles=broker"]}}, {})
    at = next(number for number, line in enumerate(lines) if "restart brokers in KRaft mode: " in line)
    assert lines[at + 1 : at + 3] == ["        file of b1, b2:", "          + process.roles=broker"]
