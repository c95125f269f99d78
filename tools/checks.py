# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the checks of one make target, one after the other, and say how they went.

Usage: ``python -m tools.checks TARGET`` (a key of ``TARGETS``). Every step runs, also after a failure; each has a time
limit. At the end stand a table of steps with their seconds, what a step that failed said of it, and a line ``N passed,
N failed, N skipped``; in ``build/TARGET`` then are ``summary.json`` (tools/summary.schema.json) and what each step
printed. Exit code 0: every step passed, or was skipped for the reason shown; 1: a step failed or ran into its limit;
130: interrupted.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.metadata
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import BinaryIO
from xml.etree import ElementTree

import jsonschema

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
PYTHON = str(BIN / "python")
SKIPPED = 77  # a step's exit code for "cannot run here", as in automake; its last line of output says why
END_GRACE_S = 10  # for each of the signals that end a step
SAID_PARAGRAPHS, SAID_LINES, SAID_LENGTH = 3, 8, 500
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_TELLING = re.compile(r"^(fatal: |FAILED |E  |ERROR: |FATAL: |\[ERROR\]: (?!Task)|kills: failed|  ! |Traceback)")
_FATAL = re.compile(r"^(fatal: \[[^]]*\]: \w+!) => (\{.*\})$")
# Whose versions decide a result
PACKAGES = ("ansible-core", "ansible-lint", "molecule", "pytest", "ruff", "kazoo", "kafka-python", "confluent-kafka")


@dataclass(frozen=True)
class Step:
    """One command of a part. ``counts_tests``: the command writes JUnit XML to the file that $CHECKS_JUNIT names."""

    name: str
    argv: tuple[str, ...]
    limit_s: int
    counts_tests: bool = False
    env: dict[str, str] = field(default_factory=dict)


def tool(name: str, *arguments: str) -> tuple[str, ...]:
    return (str(BIN / name), *arguments)


def script(name: str, *arguments: str) -> tuple[str, ...]:
    return (PYTHON, "-m", f"tools.{name}", *arguments)


def scenario(name: str, limit_s: int) -> Step:
    """A molecule scenario."""
    # molecule's own place for a scenario is in the home directory, one for all checkouts of the same name
    place = {"MOLECULE_EPHEMERAL_DIRECTORY": str(ROOT / ".build" / "molecule" / name)}
    return Step(f"scenario {name}", tool("molecule", "test", "--scenario-name", name), limit_s, env=place)


# Away from the user's home: caches and temporary files of Ansible stay in the checkout.
ANSIBLE_ENV = {"ANSIBLE_HOME": str(ROOT / ".build" / "ansible")}


def testbed_tests(*patterns: str) -> list[str]:
    """The files of tests/e2e that fit, as paths from the checkout's root."""
    found = (path for pattern in patterns for path in (ROOT / "tests" / "e2e").glob(f"test_{pattern}.py"))
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


# A part each, so that none takes longer than 75 minutes
FAULT_TESTS = testbed_tests("run_locks", "interrupted", "lost_worker", "one_controller", "reverted", "unreachable")
BACK_TESTS = testbed_tests("damaging_copy", "restore", "rollback*")
VERIFY_TESTS = testbed_tests("verify*")
OTHER_TESTS = [path for path in testbed_tests("*") if path not in (*FAULT_TESTS, *BACK_TESTS, *VERIFY_TESTS)]
SECURE_BACK_TESTS = [
    *testbed_tests("restore"),
    "tests/e2e/test_rollback.py::test_from_dual_write_to_zookeeper_without_a_trace",
]


TESTBED = "extensions/molecule/testbed/testbed.py"
TESTBED_DOWN = Step("bed down", (PYTHON, TESTBED, "down"), 120)


def on_the_testbed(tests: list[str], limit_s: int, variant: str = "default") -> tuple[Step, ...]:
    """Tests on the bed, which is up for them alone."""
    env, of = {"TESTBED_VARIANT": variant}, "" if variant == "default" else f", {variant}"
    return (
        Step(f"bed up{of}", (PYTHON, TESTBED, "up"), 1200, env=env),
        Step(f"pytest{of}", (PYTHON, "-m", "pytest", "-q", *tests), limit_s, counts_tests=True, env=env),
        Step(f"bed down{of}", (PYTHON, TESTBED, "down"), 120, env=env),
    )


def crash_tests(name: str, limit_s: int, *options: str) -> tuple[Step, ...]:
    """One migration, killed again and again."""
    return (Step(name, (PYTHON, "-m", "tools.crash_tests", *options), limit_s), TESTBED_DOWN)


PARTS: dict[str, tuple[Step, ...]] = {
    "lint": (
        Step("ruff check", tool("ruff", "check", "."), 120),
        Step("ruff format", tool("ruff", "format", "--check", "."), 120),
        Step("shellcheck", script("shell_files", "shellcheck"), 120),
        Step("yamllint", tool("yamllint", "--strict", "."), 120),
        Step("ansible-lint", tool("ansible-lint", "--offline", "--profile", "production"), 600, env=ANSIBLE_ENV),
        Step("ansible-test sanity", script("sanity"), 1200),
    ),
    "unit": (
        Step("pytest", (PYTHON, "-m", "pytest", "-q", "-n", "auto", "tests/unit"), 600, counts_tests=True),
        Step("oldest target Python", script("oldest_target"), 600, counts_tests=True),
    ),
    "integration": (
        Step("jars", (PYTHON, TESTBED, "jars"), 900),
        Step("pytest", (PYTHON, "-m", "pytest", "-q", "tests/integration"), 1800, counts_tests=True),
    ),
    "spark": (
        Step("jars", (PYTHON, TESTBED, "jars"), 900),
        Step("pytest", (PYTHON, "-m", "pytest", "-q", "tests/spark"), 3600, counts_tests=True),
    ),
    "build": (Step("tarball elsewhere", script("built_collection"), 300, env=ANSIBLE_ENV),),
    "molecule": (scenario("default", 2400),),
    "molecule-secure": (scenario("secure", 2400),),
    "crash-tests": crash_tests("a migration killed 13 times", 1500, "--points=3", "--moments=10"),
    "crash-tests-all": crash_tests("a migration killed everywhere", 4500),
    "crash-tests-rollback": crash_tests("a way back killed everywhere", 4500, "--back"),
    "drill": (Step("migrations broken on purpose", (PYTHON, "-m", "tools.drill"), 4500), TESTBED_DOWN),
    "test-fresh": (Step("new Debian host", script("fresh_host"), 2400),),
    "test-e2e": (
        Step("failover", script("demo", "--failover"), 1800),
        *on_the_testbed(OTHER_TESTS, 2700),
    ),
    "test-verify": on_the_testbed(VERIFY_TESTS, 4200),
    "test-faults": on_the_testbed(FAULT_TESTS, 4500),
    "test-rollback": (*on_the_testbed(BACK_TESTS, 4500), *on_the_testbed(SECURE_BACK_TESTS, 2400, "secure")),
}
LONG = (
    *("molecule-secure", "test-fresh", "test-e2e", "test-verify", "test-faults", "test-rollback"),
    *("crash-tests-all", "crash-tests-rollback", "drill", "spark"),
)
TARGETS: dict[str, tuple[str, ...]] = {
    **{part: (part,) for part in PARTS},
    "test": ("lint", "unit", "integration", "build", "molecule", "crash-tests"),
    "test-full": LONG,
}


@dataclass(frozen=True)
class Outcome:
    """How a step ended. ``result``: passed, failed, skipped or timeout. ``tests``: passed, failed, skipped."""

    part: str
    step: str
    result: str
    seconds: float
    exit_code: int | None
    tests: dict[str, int] | None

    def counts(self) -> dict[str, int]:
        """The step as numbers of checks: its tests where it counts them, else itself; a broken run is a failure."""
        counted = dict(self.tests or {"passed": 0, "failed": 0, "skipped": 0})
        if self.result in ("failed", "timeout"):
            counted["failed"] = max(counted["failed"], 1)
        elif self.tests is None:
            counted[self.result] += 1
        return counted


def adopt_orphans() -> None:
    """Make orphans of the steps our children, so that they can be waited for where process 1 is no init."""
    set_child_subreaper = 36  # PR_SET_CHILD_SUBREAPER of linux/prctl.h
    ctypes.CDLL(None, use_errno=True).prctl(set_child_subreaper, 1, 0, 0, 0)


def group_lives(process: subprocess.Popen) -> bool:
    process.poll()
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-process.pid, os.WNOHANG)[0]:
            pass  # the dead that nobody waits for would count as living
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    return True


def end_group(process: subprocess.Popen) -> bool:
    """End what is left of a step, which leads a process group of its own; was anything left?"""
    left = group_lives(process)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        until = time.monotonic() + END_GRACE_S
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        while group_lives(process) and time.monotonic() < until:
            time.sleep(0.05)
    return left


def read_junit(path: Path) -> dict[str, int] | None:
    """The sums of a JUnit XML file, or None when the run ended before it was written."""
    if not path.exists():
        return None
    suites = ElementTree.parse(path).getroot().iter("testsuite")
    sums = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for suite in suites:
        for key in sums:
            sums[key] += int(suite.get(key, 0))
    failed = sums["failures"] + sums["errors"]
    return {"passed": sums["tests"] - failed - sums["skipped"], "failed": failed, "skipped": sums["skipped"]}


def log_of(directory: Path, part: str, step: str) -> Path:
    """Where what a step prints is kept."""
    return directory / f"{part}-{step.replace(' ', '-')}.log"


def run(part: str, step: Step, directory: Path) -> Outcome:
    """Run one step with its output to ours; see ``Outcome``."""
    junit = directory / f"{part}-{step.name.replace(' ', '-')}.xml"
    junit.unlink(missing_ok=True)
    argv = list(step.argv)
    if step.counts_tests and "pytest" in argv:
        argv.append(f"--junitxml={junit}")
    temporary = ROOT / ".build" / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    env = {
        **os.environ,
        **step.env,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "PYTEST_DEBUG_TEMPROOT": str(temporary),
        "CHECKS_JUNIT": str(junit),
    }
    adopt_orphans()
    begun = time.monotonic()
    process = subprocess.Popen(
        argv,
        cwd=ROOT,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    reader = threading.Thread(target=_pass_on, args=(process.stdout, log_of(directory, part, step.name)))
    reader.start()
    code: int | None = None
    result = "timeout"
    try:
        code = process.wait(step.limit_s)
        result = {0: "passed", SKIPPED: "skipped"}.get(code, "failed")
    except subprocess.TimeoutExpired:
        print(f"{part} / {step.name}: not done after its limit of {step.limit_s} s", flush=True)
    finally:
        if end_group(process):
            print(f"{part} / {step.name}: ended processes that it left running", flush=True)
        reader.join(END_GRACE_S)  # it ends with the last process that has the pipe
    tests = read_junit(junit) if step.counts_tests else None
    return Outcome(part, step.name, result, round(time.monotonic() - begun, 1), code, tests)


def _pass_on(source: BinaryIO, log: Path) -> None:
    """What a step prints, to our output and to a file."""
    with source, log.open("wb") as kept:
        while got := os.read(source.fileno(), 65536):
            kept.write(got)
            sys.stdout.buffer.write(got)
            sys.stdout.buffer.flush()


def said(log: Path) -> str:
    """What a step that failed said of it, in one line: its last paragraphs that tell of a failure, else its end."""
    text = _COLOUR.sub("", log.read_text(encoding="utf-8", errors="replace"))
    lines = [_short(line.strip(" \t\r│")) for line in text.splitlines()]
    telling = [paragraph for paragraph in _paragraphs(lines) if paragraph]
    shown = telling[-SAID_PARAGRAPHS:] or [" ".join([line for line in lines if line][-SAID_LINES:])]
    return " / ".join(one if len(one) <= SAID_LENGTH else f"{one[:SAID_LENGTH]} ..." for one in shown)


def _short(line: str) -> str:
    """A task's failure as Ansible prints it, with what tells of it alone: its message and the end of its output."""
    fatal = _FATAL.match(line)
    try:
        reported = json.loads(fatal[2]) if fatal else None
    except ValueError:
        reported = None
    if not isinstance(reported, dict):
        return line
    output = str(reported.get("stderr") or reported.get("stdout") or "").strip()
    return (
        f"{fatal[1]} {reported.get('msg', '')}: ...{' '.join(output.split())[-SAID_LENGTH // 2 :]}" if output else line
    )


def _paragraphs(lines: list[str]) -> Iterator[str]:
    """Of each paragraph what stands in it from a telling line on."""
    messages: list[str] = []
    for line in [*lines, ""]:
        if line and (messages or _TELLING.search(line)):
            messages.append(line)
        elif not line:
            yield " ".join(messages)
            messages = []


def steps_of(target: str) -> Iterator[tuple[str, Step]]:
    for part in TARGETS[target]:
        for step in PARTS[part]:
            yield part, step


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout.strip()


def summary(target: str, outcomes: list[Outcome], begun: datetime, wall_s: float) -> dict:
    """The machine's account of a run, as in tools/summary.schema.json."""
    counts = {key: sum(outcome.counts()[key] for outcome in outcomes) for key in ("passed", "failed", "skipped")}
    return {
        "schema": 1,
        "target": target,
        "result": "failed" if counts["failed"] else "passed",
        **counts,
        "begun": begun.isoformat(timespec="seconds"),
        "wall_s": wall_s,
        "commit": git("rev-parse", "HEAD") or None,
        "dirty": bool(git("status", "--porcelain")),
        "steps": [
            {
                "part": outcome.part,
                "step": outcome.step,
                "result": outcome.result,
                "seconds": outcome.seconds,
                "exit_code": outcome.exit_code,
                "tests": outcome.tests,
            }
            for outcome in outcomes
        ],
        "versions": {
            "python": ".".join(map(str, sys.version_info[:3])),
            **{name: importlib.metadata.version(name) for name in PACKAGES},
        },
        **_drills(target, begun),
    }


def _drills(target: str, begun: datetime) -> dict[str, list[dict]]:
    """The rows that `make drill` printed, {} where none were made since `begun`."""
    path = ROOT / "build" / target / "run" / "summary.json"
    if target != "drill" or not path.exists() or path.stat().st_mtime < begun.timestamp():
        return {}
    return {"drills": json.loads(path.read_text(encoding="utf-8"))["drills"]}


def table(outcomes: list[Outcome]) -> str:
    rows = [("part", "step", "result", "passed", "failed", "skipped", "seconds")]
    for outcome in outcomes:
        numbers = (str(outcome.counts()[key]) for key in ("passed", "failed", "skipped"))
        rows.append((outcome.part, outcome.step, outcome.result, *numbers, f"{outcome.seconds:.1f}"))
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) if i < 3 else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0] not in TARGETS:
        print(f"usage: python -m tools.checks {'|'.join(TARGETS)}", file=sys.stderr)
        return 2
    target = arguments[0]
    directory = ROOT / "build" / target
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "summary.json").unlink(missing_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    begun, clock = datetime.now(timezone.utc), time.monotonic()
    outcomes: list[Outcome] = []
    try:
        for part, step in steps_of(target):
            print(f"\n=== {part}: {step.name} (limit {step.limit_s} s)", flush=True)
            outcomes.append(run(part, step, directory))
            print(f"--- {part}: {step.name} {outcomes[-1].result} in {outcomes[-1].seconds:.1f} s", flush=True)
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    report = summary(target, outcomes, begun, round(time.monotonic() - clock, 1))
    schema = json.loads((ROOT / "tools" / "summary.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(report, schema)
    (directory / "summary.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(f"\n{table(outcomes)}\n")
    for outcome in outcomes:
        if outcome.result in ("failed", "timeout"):
            log = log_of(directory, outcome.part, outcome.step)
            print(f"{outcome.part} / {outcome.step} ({log.relative_to(ROOT)}): {said(log)}\n")
    print(f"make {target}: {report['result']}; build/{target}/summary.json")
    print(f"{report['passed']} passed, {report['failed']} failed, {report['skipped']} skipped in {report['wall_s']} s")
    return 1 if report["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
