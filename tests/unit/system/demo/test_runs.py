# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs are passed through, logged, timed by task and ended at their limit."""

from __future__ import annotations

import json
import sys

from tests.system.demo import runs

PLAYBOOK = """
import time
print("\\nPLAY [Probe] ****\\n\\nTASK [role : One] ****", flush=True)
time.sleep(0.4)
print("ok: [b1]\\n\\nTASK [Two] ****", flush=True)
time.sleep(0.1)
print("ok: [b1]\\n\\nPLAY RECAP ****\\nb1 : ok=2 changed=1 unreachable=0 failed=0", flush=True)
time.sleep(0.3)
raise SystemExit(3)
"""


def test_run_has_its_exit_code_output_and_task_times(tmp_path):
    run = runs.play("it", [sys.executable, "-c", PLAYBOOK], tmp_path / "log", 30)
    assert run.exit_code == 3
    assert run.changed == 1
    assert run.output == (tmp_path / "log").read_text().replace("\r\n", "\n")
    assert [(task["play"], task["task"]) for task in run.tasks] == [("Probe", "role : One"), ("Probe", "Two")]
    first, second = (task["seconds"] for task in run.tasks)
    assert 0.3 < first < 2 and first > second


def test_run_past_its_limit_is_ended(tmp_path):
    run = runs.play(
        "it", [sys.executable, "-c", "import time; print('x', flush=True); time.sleep(60)"], tmp_path / "l", 1
    )
    assert run.exit_code == 124
    assert run.seconds < 30


def test_earlier_runs_are_skipped(tmp_path):
    for name, t in (("old", 5.0), ("first", 11.0), ("second", 12.0)):
        directory = tmp_path / "cluster" / name
        directory.mkdir(parents=True)
        (directory / "journal.jsonl").write_text(json.dumps({"t": t, "kind": "phase", "name": "zk"}) + "\n")
    assert [run.directory.name for run in runs.runs_since(tmp_path, 10.0)] == ["first", "second"]
