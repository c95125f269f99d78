# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs are passed through, logged, timed by task and ended at their limit."""

from __future__ import annotations

import json
import sys

from tests.playbook import PROGRAM
from tests.system.demo import runs

PLAYBOOK = """
- name: Probe
  hosts: localhost
  gather_facts: false
  tasks:
    - name: One
      ansible.builtin.command: sleep 0.6
    - name: Two
      ansible.builtin.fail:
        msg: Why
"""


def test_run_has_its_exit_code_output_and_task_times(tmp_path, capfdbinary):
    (tmp_path / "play.yml").write_text(PLAYBOOK)
    command = [str(PROGRAM), "-i", "localhost,", "-c", "local", str(tmp_path / "play.yml")]
    run = runs.play("it", command, tmp_path / "log", 60)
    shown = capfdbinary.readouterr().out.decode()
    assert run.exit_code == 2
    assert run.changed == 1
    assert run.output.startswith("PLAY [Probe] ***") and "\nchanged: [localhost]\n" in run.output
    assert [(task["play"], task["task"]) for task in run.tasks] == [("Probe", "One"), ("Probe", "Two")]
    first, second = (task["seconds"] for task in run.tasks)
    assert first > 0.5 and first > second
    assert "Why" in shown and "failures: localhost" in shown and "TASK [One]" not in shown and "\x1b" not in shown


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
