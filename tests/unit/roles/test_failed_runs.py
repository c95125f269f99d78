# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on a simulated cluster that fail otherwise than by a module call: simulated_runs.py has how."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tools.checkout import ROOT


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """Return what each run of each case printed, and how it ended."""
    home = tmp_path_factory.mktemp("runs")
    command = [sys.executable, "-m", "tests.unit.roles.simulated_runs", str(home)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_broker_that_reverted_is_removed_from_the_quorum_by_the_run_that_failed(cases):
    """Its failure has ended the run: a task between that is no clean-up would be refused, and keep it registered."""
    run, status = cases["reverted"]
    assert run["code"] != 0 and "it is up in mode zk again" in run["output"], run["output"]
    assert "removed from the quorum: the registration of broker [2]" in run["output"]
    assert run["registered"] == ["1", "4"]
    assert {lock["how"] for lock in run["locks"]} == {"Wait until the node is up"}
    assert status["code"] == 0 and 'ended at "Wait until the node is up"' in status["output"]


def test_a_run_that_could_not_journal_the_begin_of_a_step_has_not_ended_well(cases):
    run, status = cases["full_disk"]
    assert run["code"] != 0 and "No space left on device" in run["output"], run["output"]
    assert {(lock["closed"], lock["how"]) for lock in run["locks"]} == {(True, "Begin the step")}
    assert 'ended at "Begin the step"' in status["output"] and "run restart again" in status["output"]


def test_a_restart_of_controllers_that_do_not_run_is_no_success(cases):
    (run,) = cases["no_controllers"]
    assert run["code"] != 0 and "restart_roles is controller, and the phase is zk" in run["output"], run["output"]


def test_a_move_begins_beside_the_session_of_an_earlier_run_in_a_fact_cache(cases):
    assert [run["code"] for run in cases["fact_cache"]] == [0, 0], cases["fact_cache"][-1]["output"]
