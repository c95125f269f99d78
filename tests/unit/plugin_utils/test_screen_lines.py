# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the callback `screen` draws: the place in a roll, the time left, and lines that fit."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils import message_ids
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import planning
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import screen_lines

PLAN = {"kind": "kraft", "batches": [["b1"], ["b2", "b3"], ["b4"]], "done": ["b9"], "reasons": {}, "unavoidable": {}}


def step(*hosts, t=100.0):
    return {"kind": "event", "name": "step begun", "step": "roll", "hosts": list(hosts), "t": t}


def restart(host, kind="kraft", outcome="done"):
    more = {"outcome": outcome, "node_restart": f"r1/{kind}/{host}"}
    return {"kind": "restart", "name": kind, "host": host, **more, "t": 50, "end": 60}


def ended(*hosts, took=60.0, t=100.0):
    return {**step(*hosts, t=t + took), "name": "step ended"}


def found(events, run_plan=None, plan=PLAN, nodes=()):
    times = planning.times(events)._replace(nodes=dict(nodes))
    return screen_lines.restarts(plan, events, run_plan, times)


def view(events, **more):
    return screen_lines.View("Restart brokers in KRaft mode", 100.0, "hybrid", found(events), **more)


def test_before_the_first_batch_nothing_is_restarted_and_the_time_is_unknown():
    seen = found([])
    assert (seen.done, seen.total, seen.now) == (1, 5, [])
    assert screen_lines.count(seen) == "broker 2 of 5"
    assert screen_lines.left(seen, 100) == "time left unknown until the first restart"


def test_a_batch_of_two_has_two_numbers_until_one_of_them_is_up():
    begun = [step("b1"), restart("b1"), step("b2", "b3")]
    assert screen_lines.count(found(begun)) == "brokers 3-4 of 5"
    assert screen_lines.count(found([*begun, restart("b3")])) == "broker 4 of 5"
    assert found([*begun, restart("b3")]).now == ["b2"]


def test_a_node_that_needed_no_restart_is_behind_once_the_next_batch_begins():
    assert screen_lines.count(found([step("b1"), step("b2", "b3")])) == "brokers 3-4 of 5"


def test_other_steps_other_kinds_and_failed_restarts_do_not_count():
    events = [step("b1", "b2", "b3", "b4"), step("localhost"), restart("b1", kind="zk_migration")]
    assert found(events).now == []
    assert found([*events, step("b1"), restart("b1", outcome="reverted")]).now == ["b1"]


def test_all_done():
    events = [step("b1"), restart("b1"), step("b2", "b3"), restart("b2"), restart("b3"), step("b4"), restart("b4")]
    seen = found(events)
    assert screen_lines.count(seen) == "5 of 5 brokers done" and screen_lines.left(seen, 0) == "no restart left"


def test_the_time_left_is_that_of_the_plan_and_runs_down_within_a_batch():
    events = [step("b1"), restart("b1"), ended("b1"), step("b2", "b3", t=1000.0)]
    seen = found(events)
    assert seen.left_s == 120.0 and seen.batch_s == 60.0
    assert screen_lines.left(seen, 1000.0) == "about 2 min of restarts left"
    assert screen_lines.left(seen, 1040.0) == "about 1 min 20 s of restarts left"
    # a batch that takes longer than the others does not use up the time of the next one
    assert screen_lines.left(seen, 9999.0) == "about 1 min of restarts left"


def test_between_two_batches_the_time_left_is_that_of_those_ahead():
    # b1 was restarted 50 s after its batch began; the next one has not begun
    events = [step("b9"), restart("b9"), ended("b9"), step("b1", t=1000.0), restart("b1")]
    seen = found(events)
    assert seen.now == [] and seen.left_s == 120.0
    assert screen_lines.left(seen, 1050.0) == "about 2 min of restarts left"


def test_before_the_first_restart_the_time_left_is_that_of_the_last_starts():
    seen = found([], nodes={"b1": 20.0, "b2": 30.0, "b3": 60.0, "b4": 40.0})
    assert seen.left_s == 20.0 + 60.0 + 40.0 and screen_lines.left(seen, 0.0) == "about 2 min of restarts left"


def test_a_clock_that_went_back_adds_no_time():
    seen = found([step("b1"), restart("b1"), ended("b1"), step("b2", "b3", t=1000.0)])
    assert screen_lines.left(seen, 0.0) == screen_lines.left(seen, 1000.0)


def test_later_rolls_count_up_to_the_soak():
    def planned(name, kind="roll", batches=(["c1"], ["c2"])):
        return {"kind": kind, "name": name, "text": "", "batches": list(batches), "reasons": {}, "back": None}

    rolls = [planned("zk_migration"), planned("kraft"), planned("later")]
    stop = planned("before_finalize", planning.GATE, ())
    events = [step("b1"), restart("b1"), ended("b1"), step("b4")]
    assert found(events, {"steps": rolls}).left_s == 60.0 * 3
    assert found(events, {"steps": [*rolls[:2], stop, rolls[2]]}).left_s == 60.0
    assert found(events, {"steps": [planned("zk_migration")]}).left_s == 60.0


def test_a_plan_without_restarts_or_of_an_unknown_kind_is_nothing():
    assert found([], plan={**PLAN, "batches": []}) is None
    assert found([], plan={**PLAN, "kind": "of another version"}) is None


EVENTS = [step("b1"), restart("b1"), ended("b1"), step("b2", "b3")]
WAITS = {"b2": "b2 starts", "b3": "waits for the moment when b3 may be stopped: healthy for 5 s of 10 s (5 s)"}


def test_the_block_at_80_columns():
    assert screen_lines.block(view(EVENTS, waits=WAITS, task="Wait until the node is up"), 161.0, 79) == [
        "phase hybrid: Restart brokers in KRaft mode                                1:01",
        "brokers 3-4 of 5 [###########------------------] about 1 min of restarts left",
        "  b2 starts",
        "  waits for the moment when b3 may be stopped: healthy for 5 s of 10 s (5 s)",
    ]


def test_the_block_at_40_columns():
    assert screen_lines.block(view(EVENTS, waits=WAITS), 161.0, 39) == [
        "Restart brokers in KRaft mode      1:01",
        "brokers 3-4 of 5  about 1 min left",
        "  b2 starts",
        "  waits for the moment when b3 may b...",
    ]


@pytest.mark.parametrize("width", [10, 17, 25, 39, 50, 79, 200])
@pytest.mark.parametrize("now", [100.0, 161.0, 99999.0])
def test_no_line_is_wider_than_the_terminal(width, now):
    waits = {"b2": "b2 " + "x" * 300, "b3": "\u65e5\u672c" * 60, "b4": "a\nb\x1b[2J", "b5": "one more"}
    lines = screen_lines.block(view(EVENTS, waits=waits), now, width)
    assert all(sum(map(screen_lines._columns, line)) <= width for line in lines)
    assert len(lines) == 2 + screen_lines.WAITS
    assert not any("\x1b" in line or "\n" in line for line in lines)


def test_without_a_wait_the_task_is_shown_and_without_both_nothing():
    assert screen_lines.block(view([], task="Read every node"), 100.0, 60)[-1] == "  Read every node"
    assert len(screen_lines.block(screen_lines.View("x", 0.0), 0.0, 60)) == 1


def test_the_plain_line_names_the_nodes():
    assert screen_lines.plain(found(EVENTS), 100.0) == "brokers 3-4 of 5 (b2, b3); about 2 min of restarts left"


def test_a_journal_without_a_phase():
    assert screen_lines.phase_of([]) == ""
    assert screen_lines.phase_of([{"kind": "phase", "name": "zk"}, step("b1")]) == "zk"


def failed(reason, task="Wait until the node is up", host="b2"):
    return f'The run ended at "{task}" on {host}: {reason}'


WHY = "kafka did not come up: it ended while it started.\nIts log has no line of this start"


def test_a_failure_is_shown_below_its_task():
    text = screen_lines.failure("Wait until the node is up on b2", f"{WHY} (QS-RESTART-012)", [])
    assert text.splitlines() == [
        "FAILED: Wait until the node is up on b2",
        "    kafka did not come up: it ended while it started.",
        "    Its log has no line of this start (QS-RESTART-012)",
    ]


@pytest.mark.parametrize("stop", ["", "."])
@pytest.mark.parametrize("ids", ["", " (QS-RESTART-012)", " (QS-RESTART-012 QS-RESTART-014)"])
def test_the_end_of_a_run_does_not_repeat_what_is_above(stop, ids):
    end = message_ids.move_to_end(f"{failed(WHY + ids)}. Run the status (QS-RUN-004)")
    shown = screen_lines.failure("", end, ["another failure", f"{WHY}{stop}{ids}"])
    names = " ".join([*message_ids.find_ids(ids), "QS-RUN-004"])
    assert shown == f'The run ended at "Wait until the node is up" on b2 (above). Run the status ({names})'


@pytest.mark.parametrize("above", [[], [""], ["kafka did not come up"], ["b2 was lost"], [WHY.replace("log", "file")]])
def test_the_end_of_a_run_says_what_is_not_above(above):
    assert WHY in screen_lines.failure("", f"{failed(WHY)}. Run the status (QS-RUN-004)", above)
