# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an operator sees of a rolling restart with the callback `screen`.

The real playbook, roles and actions run on a simulated cluster of four brokers and three controllers.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools import terminal
from tools.checkout import ROOT

VARIABLES = {"quorumshift_verify": False, "restart_concurrency": 2, "restart_roles": ["broker"]}
UP = re.compile(r"^    (b\d) is up \(", re.MULTILINE)
DRAWN = re.compile(r"^phase zk: Restart the brokers +\d+:\d\d\n(brokers? \d\S* of 4 .*)\n  (.+)$", re.MULTILINE)


@pytest.fixture
def given(tmp_path):
    """Return the command and the environment of a run."""
    environment = {name: value for name, value in os.environ.items() if name not in ("CI", "JOB_ID")}
    environment |= {"ANSIBLE_STDOUT_CALLBACK": "quorumshift.kafka.screen", "TERM": "xterm"}

    def prepare(playbook, variables, name="run"):
        words = [str(tmp_path / name), playbook, json.dumps(variables)]
        return [sys.executable, "-m", "tests.unit.callback.simulated", *words], environment

    return prepare


def events(directory):
    (journal,) = Path(directory).glob("artifacts/*/*/journal.jsonl")
    return [json.loads(line) for line in journal.read_text().splitlines()]


def test_a_rolling_restart_on_a_terminal(given, tmp_path):
    seen = []
    code, shown, _written = terminal.run(
        *given("restart", VARIABLES), columns=100, seen=lambda now, _pid: seen.append(now.text), cwd=str(ROOT)
    )
    assert code == 0, shown.text
    restarted = [event["host"] for event in events(tmp_path / "run") if event["kind"] == "restart"]
    assert sorted(UP.findall(shown.text)) == sorted(restarted) == ["b1", "b2", "b3", "b4"]
    assert not re.search(r"b\d stops", shown.text) and "answers, waits" not in shown.text and "TASK" not in shown.text
    assert f"report: {tmp_path}" in shown.text.replace("\n", "")
    assert not re.search(r"^phase .*\d:\d\d$", shown.text, re.MULTILINE), "a block was left behind"
    drawn = [found for text in seen for found in DRAWN.findall(text)]
    places = list(dict.fromkeys(line.partition(" [")[0] for line, _wait in drawn))
    assert places[0] == "broker 1 of 4" and "4 of 4" in places[-1]
    assert any(re.match(r"b\d (stops|starts|answers, waits for its registration)$", wait) for _line, wait in drawn)
    assert any(re.search(r"about \d+ s of restarts left", line) for line, _wait in drawn)
    assert len(shown.text.splitlines()) < 40


def test_a_rolling_restart_without_a_terminal(given, tmp_path):
    command, environment = given("restart", VARIABLES)
    ran = subprocess.run(
        command, env=environment, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    text = ran.stdout
    assert ran.returncode == 0 and "\x1b" not in text and "\r" not in text
    places = re.findall(r"^    (brokers? \S+ of 4 \([b\d, ]+\)); ", text, re.MULTILINE)
    begun = [event for event in events(tmp_path / "run") if event["name"] == "admitted"]
    numbers = ["broker 1 of 4", "brokers 2-3 of 4", "broker 4 of 4"]
    assert places == [
        f"{number} ({', '.join(admitted['hosts'])})" for number, admitted in zip(numbers, begun, strict=True)
    ]
    assert len(re.findall(r"^    b\d stops$", text, re.MULTILINE)) == 4


def test_a_failure_is_whole_and_shown_once(given, tmp_path):
    log = tmp_path / "log"
    command, environment = given("rollback", {})
    code, shown, _written = terminal.run(
        command, {**environment, "ANSIBLE_LOG_PATH": str(log)}, columns=1000, cwd=str(ROOT)
    )
    assert code == 2
    why = "quorumshift_rollback_to is not set. Set it in the inventory's group all, or with -e."
    assert shown.text.count(why) == 1 and "FAILED: " in shown.text
    assert "(QS-RUN-009)" in shown.text and "failures: localhost" in shown.text
    assert "fatal: " not in shown.text and "[ERROR]" not in shown.text
    assert "fatal: [localhost]: FAILED! => " in log.read_text() and why in log.read_text()
