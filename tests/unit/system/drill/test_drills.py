# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drills: injection points, evaluation, and a scenario on a testbed whose runs are given."""

from __future__ import annotations

import contextlib
import json
import re

import jsonschema
import pytest

from tests.system.drill import __main__ as drill_main
from tests.system.drill import drills, faults, scenario, trials
from tests.system.drill.trials import AFTER_RERUN, FAILED, FINISHED, STOPPED, Drill, Trial
from tests.system.testbed.layout import ROOT
from tests.system.testbed.running import Ran

EVERY = [drill for stages in drills.SCENARIOS.values() for stage in stages for drill in stage.drills]


def nothing(_injection):
    return contextlib.nullcontext()


def made(expected=AFTER_RERUN, at="", kills_run=False, message="message", fault=nothing, name="fault"):
    return Drill(name, "hybrid", fault, message, expected, at, kills_run)


def tried(drill, *output, run=1, stopped=False):
    return Trial(drill, run, 100.0, "run-001.log", stopped, list(output))


def test_each_drill_is_unique_and_expects_a_message():
    assert len({(drill.name, drill.phase) for drill in EVERY}) == len(EVERY) >= 20
    for drill in EVERY:
        assert drill.expected in (AFTER_RERUN, STOPPED) and not re.search(drill.message, "")
        assert re.compile(drill.at).search("") is None or not drill.at
        assert not drill.kills_run or (drill.at and drill.expected == AFTER_RERUN)


def test_every_task_that_a_drill_waits_for_exists():
    tasks = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "roles").glob("*/tasks/*.yml"))
    names = re.findall(r"- name: \"?(.+?)\"?\n", tasks)
    known = [re.compile(re.sub(r"\\{\\{.*?\\}\\}", r"\\w+", re.escape(name))) for name in names]
    for drill in EVERY:
        for name in re.findall(r"([A-Z][\w' ]+)\\\]", drill.at + drill.message):
            assert any(task.fullmatch(name) for task in known), f"{drill.name}: no task is named {name}"


def test_the_control_process_is_killed_in_every_role():
    killed = {drill.name.partition(": ")[2] for drill in EVERY if drill.fault is faults.none}
    roles = {"prepare", "controllers", "broker_roll zk_migration", "broker_roll kraft", "finalize", "rollback"}
    assert killed == roles


@pytest.mark.parametrize(
    ("text", "last", "host"),
    [
        ("    b1 stops\n", 0, None),
        ("Plan restarts of kind kraft] ***\n    b1 stops\n", 0, "b1"),
        ("Plan restarts of kind kraft] ***\n    b1 stops\n", 50, None),
        ("Plan restarts of kind kraft] ***\n    b1 stops\n    b2 stops\n", 50, "b2"),
    ],
)
def test_fault_is_injected_at_the_last_match_and_once(text, last, host):
    point = trials.injection_point(made(at=drills.KRAFT_ROLL + drills.STOPS), text, last)
    assert (point and point.group(1)) == host


@pytest.mark.parametrize(
    ("expected", "run", "stopped", "continued", "output", "result"),
    [
        (AFTER_RERUN, 1, False, 1, "message", FINISHED),
        (AFTER_RERUN, 1, True, 2, "message", AFTER_RERUN),
        (AFTER_RERUN, 1, True, None, "message", FAILED),
        (AFTER_RERUN, 1, True, 2, "other", FAILED),
        (STOPPED, 1, True, 2, "message", STOPPED),
        (STOPPED, 1, False, 1, "message", FAILED),
        (STOPPED, 1, True, None, "message", FAILED),
    ],
)
def test_result_of_a_trial(expected, run, stopped, continued, output, result):
    row = trials.evaluate(tried(made(expected), output, run=run, stopped=stopped), continued, 107.25)
    assert row["result"] == result and bool(row["problems"]) == (result == FAILED) and row["seconds"] == 7.2


def test_fault_that_could_not_be_injected_fails_the_trial():
    trial = tried(made(), "message")
    trial.problems.append("the fault could not be injected: no leader")
    assert trials.evaluate(trial, 2, 101.0)["result"] == FAILED


class FakeTestbed:
    """A testbed whose runs are given as (exit code, lines); a run that a drill kills ends at that line."""

    def __init__(self, *runs):
        self.runs, self.played = list(runs), []

    def play(self, name, extra=None, kill_when=None):
        code, lines = self.runs.pop(0)
        self.played.append((name, extra))
        text = ""
        for line in lines:
            text += f"{line}\n"
            if kill_when and kill_when(f"{line}\n"):
                return Ran(-9, text, 1.0)
        return Ran(code, text, 1.0)


ARRIVED = (0, ["Cluster abc: dual_write", "  next: -e quorumshift_finalize_token=abc:123456"])


def run_stage(tmp_path, runs, *given, **more):
    driver = scenario.Scenario(FakeTestbed(*runs), tmp_path)
    arrived = driver.run(scenario.Stage("migrate", "dual_write", given, **more))
    return driver, arrived, [row["result"] for row in driver.rows]


def test_run_after_a_killed_run_continues(tmp_path):
    first, second = made(at="here", kills_run=True), made(at="there", kills_run=True, name="another")
    runs = [(0, ["here", "never"]), (0, ["message", "there", "never"]), (0, ["message", *ARRIVED[1]])]
    driver, arrived, results = run_stage(tmp_path, runs, first, second)
    assert arrived and results == [AFTER_RERUN, AFTER_RERUN] and not driver.problems
    assert "never" not in (tmp_path / "run-001.log").read_text()


def test_run_that_survives_a_fault_gets_the_next_one(tmp_path):
    removed = []

    @contextlib.contextmanager
    def fault(_injection):
        yield
        removed.append(True)

    _driver, arrived, results = run_stage(
        tmp_path,
        [(0, ["here", "message", "there", "message", *ARRIVED[1]])],
        made(at="here", fault=fault),
        made(at="there"),
    )
    assert arrived and results == [FINISHED, FINISHED] and removed == [True]


def test_fault_before_a_run_stops_it_and_the_next_run_continues(tmp_path):
    _driver, arrived, results = run_stage(tmp_path, [(2, ["message"]), ARRIVED], made(STOPPED))
    assert arrived and results == [STOPPED]


def test_missing_message_or_injection_point_fails_only_its_drill(tmp_path):
    runs = [(0, ["nothing", *ARRIVED[1]]), (2, ["message"]), ARRIVED]
    _driver, arrived, results = run_stage(tmp_path, runs, made(at="here"), made(at="there"), made(STOPPED))
    assert arrived and results == [FAILED, FAILED, STOPPED]


def test_runs_that_keep_failing_fail_the_drill_and_the_stage(tmp_path):
    runs = [(0, ["here"]), *[(2, ["message"])] * scenario.TRIES]
    driver, arrived, results = run_stage(tmp_path, runs, made(at="here", kills_run=True))
    assert not arrived and results == [FAILED] and "ended in phase None, not dual_write" in driver.problems[0]


def test_failed_injection_is_a_problem_of_its_drill(tmp_path):
    def fault(_injection):
        raise RuntimeError("no leader")

    driver, arrived, results = run_stage(tmp_path, [ARRIVED], made(STOPPED, fault=fault))
    assert arrived and results == [FAILED] and "no leader" in driver.rows[0]["problems"][0]


def test_stage_gets_the_token_that_was_printed_last(tmp_path):
    driver, _arrived, _results = run_stage(tmp_path, [ARRIVED])
    driver.testbed.runs = [(0, ["Cluster abc: finalized"])]
    assert driver.run(scenario.Stage("migrate", "finalized", (), token=True))
    assert driver.testbed.played[-1][1]["quorumshift_finalize_token"] == "abc:123456"
    driver.testbed.runs = [(0, ["PLAY RECAP ****", "b1 : ok=3 changed=1 unreachable=0 failed=0"])]
    driver.one_more_run(scenario.Stage("migrate", "finalized", ()))
    assert "reported 1 changes" in driver.problems[0]


def test_summary_fits_its_schema_and_fails_with_any_problem(tmp_path):
    schema = json.loads(drill_main.SCHEMA.read_text())
    row = {**trials.evaluate(tried(made(), "message"), 2, 101.0), "clients": "pass"}
    clients = {"verdict": "pass", "acked": 1, "lost": 0, "duplicated": 0, "reordered": 0}
    part = {"name": "forward", "problems": [], "runs": 3, "wall_s": 1.0, "clients": clients, "drills": [row]}
    good = drill_main.summarize([part])
    jsonschema.validate(good, schema)
    assert good["result"] == "passed"
    bad = drill_main.summarize(
        [{**part, "drills": [{**trials.never_injected(made(at="x"), "run-001.log"), "clients": "pass"}]}]
    )
    jsonschema.validate(bad, schema)
    assert bad["result"] == "failed" and "hybrid" in bad["problems"][0]
    assert drill_main.summarize([{**part, "problems": ["no"]}])["result"] == "failed"
    assert drill_main.summarize([])["result"] == "failed"
