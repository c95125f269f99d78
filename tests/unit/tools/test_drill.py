# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How drills are chosen, struck and judged, and how a stretch drives on through them; the bed itself is a recording."""

from __future__ import annotations

import contextlib
import json
import re

import jsonschema
import pytest

from tools.drill import __main__ as whole
from tools.drill import drills, stretch, trials
from tools.drill.trials import AFTER_RERUN, FAILED, FINISHED, STOPPED, Drill, Trial
from tools.e2e.testbed import Ran

EVERY = [(name, leg, drill) for name, legs in drills.STRETCHES.items() for leg in legs for drill in leg.drills]


def nothing(_scene):
    return contextlib.nullcontext()


def made(ends=AFTER_RERUN, at="", crash_tests=False, said="told", fault=nothing, name="fault"):
    return Drill(name, "hybrid", fault, said, ends, at, crash_tests)


def tried(drill, *heard, run=1, stopped=False):
    return Trial(drill, run, 100.0, "run-001.log", stopped, list(heard))


def test_each_drill_can_be_told_from_the_others_and_asks_for_something():
    assert len({(drill.name, drill.phase) for _name, _leg, drill in EVERY}) == len(EVERY) >= 20
    for _name, _leg, drill in EVERY:
        assert drill.ends in (AFTER_RERUN, STOPPED) and not re.search(drill.said, "")
        assert re.compile(drill.at).search("") is None or not drill.at
        assert not drill.crash_tests or (drill.at and drill.ends == AFTER_RERUN)


def test_every_role_of_the_control_process_is_killed():
    killed = {drill.name.partition(": ")[2] for _name, _leg, drill in EVERY if drill.crash_tests}
    roles = {"prepare", "controllers", "broker_roll zk_migration", "broker_roll kraft", "finalize", "rollback"}
    assert killed == roles


@pytest.mark.parametrize(
    ("text", "behind", "host"),
    [
        ("    b1 stops\n", 0, None),
        ("Plan the roll to kraft] ***\n    b1 stops\n", 0, "b1"),
        ("Plan the roll to kraft] ***\n    b1 stops\n", 45, None),
        ("Plan the roll to kraft] ***\n    b1 stops\n    b2 stops\n", 45, "b2"),
    ],
)
def test_it_strikes_at_the_last_place_that_fits_and_once_there(text, behind, host):
    found = trials.fits(made(at=drills.KRAFT_ROLL + drills.STOPS), text, behind)
    assert (found and found.group(1)) == host


@pytest.mark.parametrize(
    ("ends", "run", "stopped", "went_on", "heard", "ended"),
    [
        (AFTER_RERUN, 1, False, 1, "told", FINISHED),
        (AFTER_RERUN, 1, True, 2, "told", AFTER_RERUN),
        (AFTER_RERUN, 1, True, None, "told", FAILED),
        (AFTER_RERUN, 1, True, 2, "untrue", FAILED),
        (STOPPED, 1, True, 2, "told", STOPPED),
        (STOPPED, 1, False, 1, "told", FAILED),
        (STOPPED, 1, True, None, "told", FAILED),
    ],
)
def test_how_it_ended(ends, run, stopped, went_on, heard, ended):
    row = trials.detect(tried(made(ends), heard, run=run, stopped=stopped), went_on, 107.25)
    assert row["ended"] == ended and bool(row["problems"]) == (ended == FAILED) and row["seconds"] == 7.2


def test_a_fault_that_was_not_brought_about_is_no_drill():
    trial = tried(made(), "told")
    trial.problems.append("it could not be brought about: no leader")
    assert trials.detect(trial, 2, 101.0)["ended"] == FAILED


class Recording:
    """A bed whose runs are given: (exit code, lines); a run that a drill kills ends there."""

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


def driven(tmp_path, runs, *given, **more):
    driver = stretch.Stretch(Recording(*runs), tmp_path)
    arrived = driver.leg(stretch.Leg("migrate", "dual_write", given, **more))
    return driver, arrived, [row["ended"] for row in driver.rows]


def test_a_run_that_is_killed_is_gone_on_from(tmp_path):
    first, second = made(at="here", crash_tests=True), made(at="there", crash_tests=True, name="another")
    runs = [(0, ["here", "never"]), (0, ["told", "there", "never"]), (0, ["told", *ARRIVED[1]])]
    driver, arrived, ended = driven(tmp_path, runs, first, second)
    assert arrived and ended == [AFTER_RERUN, AFTER_RERUN] and not driver.problems
    assert "never" not in (tmp_path / "run-001.log").read_text()


def test_a_run_that_lives_through_it_goes_on_to_the_next(tmp_path):
    mended = []

    @contextlib.contextmanager
    def fault(_scene):
        yield
        mended.append(True)

    _driver, arrived, ended = driven(
        tmp_path, [(0, ["here", "told", "there", "told", *ARRIVED[1]])], made(at="here", fault=fault), made(at="there")
    )
    assert arrived and ended == [FINISHED, FINISHED] and mended == [True]


def test_a_drill_before_a_run_is_met_by_it_mended_and_gone_on_from(tmp_path):
    _driver, arrived, ended = driven(tmp_path, [(2, ["told"]), ARRIVED], made(STOPPED))
    assert arrived and ended == [STOPPED]


def test_what_is_not_said_or_not_reached_fails_and_ends_no_other_drill(tmp_path):
    runs = [(0, ["nothing", *ARRIVED[1]]), (2, ["told"]), ARRIVED]
    _driver, arrived, ended = driven(tmp_path, runs, made(at="here"), made(at="there"), made(STOPPED))
    assert arrived and ended == [FAILED, FAILED, STOPPED]


def test_runs_that_do_not_get_on_fail_the_drill_and_the_way(tmp_path):
    runs = [(0, ["here"]), *[(2, ["told"])] * stretch.TRIES]
    driver, arrived, ended = driven(tmp_path, runs, made(at="here", crash_tests=True))
    assert not arrived and ended == [FAILED] and "ended in phase None, not dual_write" in driver.problems[0]


def test_a_fault_that_fails_is_told_and_ends_no_other_drill(tmp_path):
    def fault(_scene):
        raise RuntimeError("no leader")

    driver, arrived, ended = driven(tmp_path, [ARRIVED], made(STOPPED, fault=fault))
    assert arrived and ended == [FAILED] and "no leader" in driver.rows[0]["problems"][0]


def test_the_word_is_the_one_that_was_printed_last(tmp_path):
    driver, _arrived, _ended = driven(tmp_path, [ARRIVED])
    driver.testbed.runs = [(0, ["Cluster abc: finalized"])]
    assert driver.leg(stretch.Leg("migrate", "finalized", (), token=True))
    assert driver.testbed.played[-1][1]["quorumshift_finalize_token"] == "abc:123456"
    driver.testbed.runs = [(0, ["PLAY RECAP ****", "b1 : ok=3 changed=1 unreachable=0 failed=0"])]
    driver.nothing_left(stretch.Leg("migrate", "finalized", ()))
    assert "changed 1" in driver.problems[0]


def test_the_summary_fits_its_schema_and_fails_with_any_of_its_parts(tmp_path):
    schema = json.loads(whole.SCHEMA.read_text())
    row = {**trials.detect(tried(made(), "told"), 2, 101.0), "witness": "pass"}
    canary_clients = {"verdict": "pass", "acked": 1, "lost": 0, "duplicated": 0, "reordered": 0}
    part = {"name": "forward", "problems": [], "runs": 3, "wall_s": 1.0, "witness": canary_clients, "drills": [row]}
    good = whole.summarize([part])
    jsonschema.validate(good, schema)
    assert good["result"] == "passed"
    bad = whole.summarize(
        [{**part, "drills": [{**trials.never_struck(made(at="x"), "run-001.log"), "witness": "pass"}]}]
    )
    jsonschema.validate(bad, schema)
    assert bad["result"] == "failed" and "hybrid" in bad["problems"][0]
    assert whole.summarize([{**part, "problems": ["no"]}])["result"] == "failed"
    assert whole.summarize([])["result"] == "failed"
