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
    lines = planning_screen.lines("x", "dual_write", "", steps, {}, UNKNOWN)
    assert (
        lines[-2] == "  rollback: possible up to step 2; impossible once a controller runs without the migration flag"
    )
    assert [step.back is None for step in steps] == [False, False, True, True]


UNKNOWN, HALF_A_MINUTE = planning.Times({}, {}), planning.Times({"": 30.0}, {})


def batch(kind, took_s, *hosts, run="r1", began=100.0, **restart):
    """Return the journal's events of a batch."""
    hosts = hosts or ("b1",)
    step = {"kind": "event", "step": "roll", "hosts": list(hosts)}
    restarts = [
        {
            **{"kind": "restart", "name": kind, "host": host, "outcome": "done", "t": began},
            **{"node_restart": f"{run}/{kind}/{host}", **restart},
        }
        for host in hosts
    ]
    return [{**step, "name": "step begun", "t": began}, *restarts, {**step, "name": "step ended", "t": began + took_s}]


def test_the_time_is_estimated_from_this_clusters_journals():
    events = [
        *(*batch("zk_migration", 25), *batch("zk_migration", 35, "b2", "b3"), *batch("controller", 13)),
        *(*batch("zk_migration", 400, outcome="reverted"), *batch("zk_migration", 500, node_restart="r1/repair/b1")),
        {"kind": "gate", "name": "after_copy"},
    ]
    times = planning.times(events)
    assert times.each == {"zk_migration": 30, "controller": 13, "": (25 + 35 + 13) / 3} and not times.nodes
    assert planning.times(events[10:]) == UNKNOWN
    steps = ahead("zk")
    (joining,) = [step for step in steps if step.name == "zk_migration"]
    assert times.of_step(joining) == 90 and UNKNOWN.of_step(joining) is None
    assert HALF_A_MINUTE.of_steps(steps) == 10 * 30 and UNKNOWN.of_steps(steps) is None
    lines = planning_screen.lines("x", "zk", "", steps, {}, HALF_A_MINUTE)
    assert "5 min 0 s for 10 restarts, at 30 s each as in this cluster's journals" in lines[-1]
    assert "their time is unknown until the first one" in planning_screen.lines("x", "zk", "", steps, {}, UNKNOWN)[-1]
    line = planning_screen.line(steps, HALF_A_MINUTE)
    assert line.startswith("13 steps ahead; 5 min 0 s for 10 restarts, at 30 s each")


@pytest.mark.parametrize(
    "cut",
    [
        lambda events: events[1:],  # without its begin
        lambda events: events[:-1],  # the control process died
        lambda events: [*events[:-1], *batch("kraft", 9)[:1], events[-1]],  # another step began
        lambda events: [events[0], events[-1]],  # nothing was restarted
        lambda events: [*events[:-1], {**events[-1], "hosts": ["b2"]}],
        lambda events: [*events[:-1], batch("kraft", 9)[1], events[-1]],  # of two kinds
    ],
)
def test_what_is_no_whole_batch_has_no_time(cut):
    assert len(planning.batches(batch("zk_migration", 25))) == 1
    assert planning.batches(cut(batch("zk_migration", 25))) == []


def test_before_the_first_restart_the_time_is_that_of_the_last_starts():
    starts = {"b1": {"start_s": 20.0, "stop_s": 5.0}, "b2": {"start_s": 41.0, "stop_s": None}, "c1": None}
    times = planning.times([], starts, stable_s=10.0)
    between = planning.BETWEEN_S
    assert times == ({}, {"b1": 35.0 + between, "b2": 51.0 + between})
    steps = ahead("zk")
    (joining,) = [step for step in steps if step.name == "zk_migration"]
    one_by_one = times.of_step(joining._replace(batches=[["b1"], ["b2"]]))
    assert one_by_one == 86.0 + 2 * between
    assert times.of_step(joining._replace(batches=[["b1", "b2"]])) == 51.0 + between
    assert times.of_step(joining._replace(batches=[["b3"]])) == one_by_one / 2
    lines = planning_screen.lines("x", "zk", "", steps, {}, times)
    assert " s each by the nodes' logs of their last start" in lines[-1]
    both = planning_screen.lines("x", "zk", "", steps, {}, times._replace(each={"zk_migration": 30.0, "": 30.0}))
    assert "by this cluster's journals and the nodes' logs of their last start" in both[-1]
    known = planning.times(batch("zk_migration", 30), starts, stable_s=10.0)
    assert known.of_step(joining) == 30 * len(joining.batches), "what this cluster's journals say is nearer"
    other = planning.times(batch("controller", 4), starts, stable_s=10.0)
    assert other.of_step(joining) == times.of_step(joining), "but not what they say of another kind"
    assert planning.times(batch("controller", 4)).of_step(joining) == 4 * len(joining.batches)


def test_a_plan_without_a_restart_shows_no_time():
    steps = ahead("controllers_ready", "zk")
    assert steps and not planning.restarts(steps)
    lines = planning_screen.lines("x", "controllers_ready", "zk", steps, {}, HALF_A_MINUTE)
    assert not any("time:" in line for line in lines)
    assert planning_screen.line(steps, HALF_A_MINUTE) == f"{len(steps)} steps ahead"


def kept(name="zk", each=(), target=""):
    """Return a plan as a run keeps it."""
    return {"steps": [step._asdict() for step in ahead(name, target)], "each_s": dict(each), "node_s": {}}


def test_planned_and_real_time_of_the_restarts():
    events = [
        *batch("controller", 15, "c1", "c2"),
        *(*batch("zk_migration", 25), *batch("zk_migration", 32, "b2")),
        *batch("zk_migration", 99, "b3", node_restart="r1/repair/b3"),  # a restart that an earlier run began
        *batch("kraft", 50, run="r0"),
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
    lines = planning_screen.lines(
        "x", "hybrid", "", steps, {"kraft": {("b1", "b2"): ["+ process.roles=broker"]}}, UNKNOWN
    )
    at = next(number for number, line in enumerate(lines) if "restart brokers in KRaft mode: " in line)
    assert lines[at + 1 : at + 3] == ["        file of b1, b2:", "          + process.roles=broker"]
