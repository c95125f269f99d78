# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner of the checks detects and reports failures of steps."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import sys
import threading
import time

import pytest

from tools import checks
from tools.checkout import ROOT


def step(code: str, limit_s: float = 30, counts_tests: bool = False) -> checks.Step:
    return checks.Step("step", (sys.executable, "-c", code), limit_s, counts_tests)


@pytest.mark.parametrize("target", ["test", "test-full"])
def test_make_help_names_what_a_target_runs(target):
    (help_of,) = re.findall(rf"^{target}: setup ## the \w+ checks: (.*)$", (ROOT / "Makefile").read_text(), re.M)
    assert tuple(help_of.split(", ")) == checks.TARGETS[target]


@pytest.mark.parametrize(
    ("code", "result"), [("", "passed"), ("exit(1)", "failed"), ("exit(77)", "skipped"), ("1/0", "failed")]
)
def test_exit_code_decides_the_result_of_a_step(tmp_path, code, result):
    outcome = checks.run("part", step(code), tmp_path)
    assert outcome.result == result
    assert outcome.counts() == {"passed": 0, "failed": 0, "skipped": 0, result: 1}


def test_step_beyond_its_limit_is_ended_with_its_children(tmp_path):
    pid_file = tmp_path / "pid"
    code = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open({str(pid_file)!r}, "w").write(str(child.pid))
time.sleep(60)
"""
    begun = time.monotonic()
    outcome = checks.run("part", step(code, limit_s=2), tmp_path)
    assert (outcome.result, outcome.exit_code, outcome.counts()["failed"]) == ("timeout", None, 1)
    assert time.monotonic() - begun < 20
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


def test_a_slow_step_that_prints_is_not_ended(tmp_path):
    code = "import time\nfor _ in range(12): print('.', flush=True); time.sleep(0.25)"
    assert checks.run("part", step(code, limit_s=2), tmp_path).result == "passed"


def test_processes_left_by_a_step_are_ended_and_reported(tmp_path, capfd):
    pid_file = tmp_path / "pid"
    code = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open({str(pid_file)!r}, "w").write(str(child.pid))
"""
    assert checks.run("part", step(code), tmp_path).result == "passed"
    assert "ended processes that it left running" in capfd.readouterr().out
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


def test_the_long_integration_tests_are_in_one_of_two_targets():
    assert all((checks.ROOT / path).is_file() for path in checks.LONG_INTEGRATION)
    short, long = (checks.PARTS[part][-1].argv for part in ("integration", "integration-long"))
    assert {f"--ignore={path}" for path in checks.LONG_INTEGRATION} <= set(short)
    assert set(checks.LONG_INTEGRATION) <= set(long) and "integration-long" in checks.LONG


def waits_for(own, other) -> checks.Step:
    """A step that ends once the other one has begun."""
    code = f"""
import pathlib, time
pathlib.Path({str(own)!r}).touch()
while not pathlib.Path({str(other)!r}).exists():
    time.sleep(0.01)
print("first line of {own.name}", flush=True)
print("last line of {own.name}")
"""
    return dataclasses.replace(step(code), name=own.name, beside=True)


def test_steps_that_may_run_beside_each_other_do_so_and_print_what_failed(tmp_path, capfd):
    logs = [str(tmp_path / f"part-{name}.log") for name in "ab"]
    ended = f"print('alone'); exit(not all('last' in open(log).read() for log in {logs!r}))"
    alone = dataclasses.replace(step(ended), name="alone")
    failing = dataclasses.replace(step("print('why'); exit(1)"), name="failing", beside=True)
    steps = [waits_for(tmp_path / "a", tmp_path / "b"), waits_for(tmp_path / "b", tmp_path / "a"), failing, alone]
    outcomes = checks.run_all([("part", each) for each in steps], tmp_path)
    assert [(outcome.step, outcome.result) for outcome in outcomes] == [
        ("a", "passed"),
        ("b", "passed"),
        ("failing", "failed"),
        ("alone", "passed"),  # it began when the others had ended
    ]
    printed = capfd.readouterr().out
    for name in "ab":
        assert f"--- part: {name} passed" in printed and f"first line of {name}" not in printed
    assert (
        "=== part: failing (limit 30 s without output)\nwhy\n--- part: failing failed" in printed
        and "alone\n" in printed
    )


def test_an_interruption_ends_every_running_step(tmp_path):
    pid_files = [tmp_path / name for name in "ab"]
    steps = [
        dataclasses.replace(
            step(f"import os, time; open({str(path)!r}, 'w').write(str(os.getpid())); time.sleep(60)"),
            name=path.name,
            beside=True,
        )
        for path in pid_files
    ]

    def interrupt():
        while not all(path.exists() and path.read_text() for path in pid_files):
            time.sleep(0.01)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)

    # not SIGINT, which a parallel worker of pytest ignores
    earlier = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    threading.Thread(target=interrupt).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            checks.run_all([("part", each) for each in [*steps, *steps]], tmp_path)
    finally:
        signal.signal(signal.SIGUSR1, earlier)
    for path in pid_files:
        with pytest.raises(ProcessLookupError):
            os.kill(int(path.read_text()), 0)


def junit(cases: str) -> str:
    return f"import os; open(os.environ['CHECKS_JUNIT'], 'w').write('''<testsuites>{cases}</testsuites>''');"


SUITE = '<testsuite tests="7" failures="1" errors="1" skipped="2"/>'


def test_tests_of_a_step_are_counted(tmp_path):
    outcome = checks.run("part", step(junit(SUITE) + "exit(1)", counts_tests=True), tmp_path)
    assert outcome.counts() == {"passed": 3, "failed": 2, "skipped": 2}


def test_passed_tests_do_not_hide_a_failed_run(tmp_path):
    good = '<testsuite tests="7" failures="0" errors="0" skipped="0"/>'
    outcome = checks.run("part", step(junit(good) + "exit(3)", counts_tests=True), tmp_path)
    assert outcome.counts() == {"passed": 7, "failed": 1, "skipped": 0}


def test_counts_of_an_earlier_run_are_ignored(tmp_path):
    counting = step(junit(SUITE), counts_tests=True)
    checks.run("part", counting, tmp_path)
    outcome = checks.run("part", step("exit(4)", counts_tests=True), tmp_path)
    assert outcome.tests is None
    assert outcome.counts() == {"passed": 0, "failed": 1, "skipped": 0}


@pytest.mark.parametrize(
    ("code", "exit_code", "result"),
    [("", 0, "passed"), ("print('well\\nFAILED one\\n\\x1b[2m│\\x1b[0m two'); exit(1)", 1, "failed")],
)
def test_target_has_the_result_of_its_steps_and_shows_their_failures(
    tmp_path, monkeypatch, capfd, code, exit_code, result
):
    schema = tmp_path / "tools" / "summary.schema.json"
    schema.parent.mkdir()
    schema.write_bytes((checks.ROOT / "tools" / "summary.schema.json").read_bytes())
    monkeypatch.setattr(checks, "ROOT", tmp_path)
    monkeypatch.setattr(checks, "PARTS", {"first": (step(code),), "second": (step(""),)})
    monkeypatch.setattr(checks, "TARGETS", {"both": ("first", "second")})
    monkeypatch.setattr(checks.signal, "signal", lambda *_arguments: None)
    assert checks.main(["both"]) == exit_code
    written = json.loads((tmp_path / "build" / "both" / "summary.json").read_text())
    assert (written["result"], [s["part"] for s in written["steps"]]) == (result, ["first", "second"])
    printed = capfd.readouterr().out
    assert ("first / step (build/both/first-step.log): FAILED one two" in printed) is (result == "failed")
    last = printed.strip().splitlines()[-1]
    assert last.startswith(f"{2 - exit_code} passed, {exit_code} failed, 0 skipped in ")


def test_summary_of_the_drill_target_contains_its_drills_only(tmp_path, monkeypatch):
    schema = tmp_path / "tools" / "summary.schema.json"
    schema.parent.mkdir()
    schema.write_bytes((checks.ROOT / "tools" / "summary.schema.json").read_bytes())
    rows = tmp_path / "build" / "drill" / "run" / "summary.json"
    rows.parent.mkdir(parents=True)
    rows.write_text('{"drills": [{"name": "of an earlier run"}]}')
    os.utime(rows, (0, 0))
    monkeypatch.setattr(checks, "ROOT", tmp_path)
    monkeypatch.setattr(checks.signal, "signal", lambda *_arguments: None)

    def drills(code):
        monkeypatch.setattr(checks, "PARTS", {"drill": (step(code),)})
        assert checks.main(["drill"]) == 0
        return json.loads((tmp_path / "build" / "drill" / "summary.json").read_text()).get("drills")

    assert drills("") is None
    assert drills(f'open({str(rows)!r}, \'w\').write(\'{{"drills": [{{"name": "one"}}]}}\')') == [{"name": "one"}]


def test_failed_task_shows_the_end_of_its_output(tmp_path):
    log = tmp_path / "step.log"
    result = {
        "cmd": ["testbed.py"] * 200,
        "msg": "non-zero return code",
        "stderr": "a line\n" * 100 + "no space left",
    }
    log.write_text(f"TASK [Up] ***\nfatal: [localhost]: FAILED! => {json.dumps(result)}\n\nPLAY RECAP ***\n")
    assert checks.failure_text(log).startswith("fatal: [localhost]: FAILED! non-zero return code: ...")
    assert checks.failure_text(log).endswith("no space left")


def test_failed_task_without_output_is_shown_as_printed(tmp_path):
    log = tmp_path / "step.log"
    log.write_text('fatal: [b1]: FAILED! => {"changed": false, "msg": "the gate is closed"}\n')
    assert checks.failure_text(log) == 'fatal: [b1]: FAILED! => {"changed": false, "msg": "the gate is closed"}'
