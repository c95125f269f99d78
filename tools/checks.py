# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the checks of one make target and print a summary: ``python -m tools.checks TARGET`` (a key of ``TARGETS``).

Every step runs, also after a failure; each has a limit of the time without output. At the end come a table of the
steps, the messages of failed steps, and a line ``N passed, N failed, N skipped``. ``build/TARGET`` contains
``summary.json`` (tools/summary.schema.json) and the output of each step. Exit code 0: every step passed or was skipped
for the reason shown; 1: a step failed or exceeded its limit; 130: interrupted.
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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timezone
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO
from xml.etree import ElementTree

import jsonschema

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
PYTHON = str(BIN / "python")
PYTEST = (PYTHON, "-m", "pytest", "-q")
COLLECTIONS = {"PYTHONPATH": str(ROOT / ".build")}
STANDALONE = "tests/spark/test_standalone.py"
SKIPPED = 77  # a step's exit code for "cannot run here", as in automake; the last line of its output says why
END_GRACE_S = 10  # for each of the signals that end a step
SHOWN_PARAGRAPHS, SHOWN_LINES, SHOWN_LENGTH = 3, 8, 500
_running: list[subprocess.Popen] = []
_printing = threading.Lock()
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_FAILURE = re.compile(r"^(fatal: |FAILED |E  |ERROR: |FATAL: |\[ERROR\]: (?!Task)|crash-tests: failed|  ! |Traceback)")
_FATAL = re.compile(r"^(fatal: \[[^]]*\]: \w+!) => (\{.*\})$")
# packages whose versions decide a result
PACKAGES = ("ansible-core", "ansible-lint", "molecule", "pytest", "ruff", "kazoo", "kafka-python", "confluent-kafka")


@dataclass(frozen=True)
class Step:
    """One command of a part. ``counts_tests``: the command writes JUnit XML to the file that $CHECKS_JUNIT names.
    ``beside``: it may run at the same time as the steps before and after it of which that holds too."""

    name: str
    argv: tuple[str, ...]
    limit_s: int
    counts_tests: bool = False
    env: dict[str, str] = field(default_factory=dict)
    beside: bool = False


def tool(name: str, *arguments: str) -> tuple[str, ...]:
    return (str(BIN / name), *arguments)


def script(name: str, *arguments: str) -> tuple[str, ...]:
    return (PYTHON, "-m", f"tools.{name}", *arguments)


def system_test(name: str, *arguments: str) -> tuple[str, ...]:
    return (PYTHON, "-m", f"tests.system.{name}", *arguments)


def scenario(name: str, limit_s: int) -> Step:
    """Return the step of a molecule scenario."""
    # molecule's default directory is in the home directory and shared by all checkouts of the same name
    env = {"MOLECULE_EPHEMERAL_DIRECTORY": str(ROOT / ".build" / "molecule" / name)}
    return Step(f"scenario {name}", tool("molecule", "test", "--scenario-name", name), limit_s, env=env)


# keeps caches and temporary files of Ansible in the checkout, out of the user's home. Not .build/ansible: mypy would
# take that for the package.
ANSIBLE_ENV = {"ANSIBLE_HOME": str(ROOT / ".build" / "ansible_home")}


# the link through which Ansible finds the checkout (tools/setup)
COLLECTION = ".build/ansible_collections/quorumshift/kafka"
ANSIBLE_LINT = ("--offline", "--profile", "production")
DOCS_LINT = ("lint-collection-docs", "--plugin-docs", "--skip-rstcheck", "--validate-collection-refs", "all")
DOCS_ENV = {**ANSIBLE_ENV, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".build")}


def testbed_tests(*patterns: str) -> list[str]:
    """Return the files of tests/system/e2e that match, as paths from the checkout's root."""
    paths = (path for pattern in patterns for path in (ROOT / "tests" / "system" / "e2e").glob(f"test_{pattern}.py"))
    return sorted(path.relative_to(ROOT).as_posix() for path in paths)


# in parts of at most 75 minutes
FAULT_TESTS = testbed_tests("run_lock", "interrupted", "lost_worker", "one_controller", "auto_revert", "unreachable")
ROLLBACK_TESTS = testbed_tests("damaging_initial_copy", "restore", "rollback*")
VERIFY_TESTS = testbed_tests("verify*")
LAYOUT_TESTS = testbed_tests("other_layout")
CP_ANSIBLE_TESTS = testbed_tests("cp_ansible")
SECURED_TESTS = testbed_tests("secured_ways")
SECRETS_TESTS = testbed_tests("no_secrets")
LOGIN_TESTS = testbed_tests("login_ends")
RACK_TESTS = testbed_tests("restart_racks")
_NAMED_TESTS = (
    *(*FAULT_TESTS, *ROLLBACK_TESTS, *VERIFY_TESTS, *LAYOUT_TESTS, *CP_ANSIBLE_TESTS, *LOGIN_TESTS, *RACK_TESTS),
    *SECURED_TESTS,
)
OTHER_TESTS = [path for path in testbed_tests("*") if path not in _NAMED_TESTS]
SECURE_ROLLBACK_TESTS = [
    *testbed_tests("restore"),
    "tests/system/e2e/test_rollback.py::test_from_dual_write_to_zookeeper_without_a_trace",
]


# Real servers too, each long for one playbook, one module or one rare case. Unit tests and the failure proof's sample
# cover the rules of these in `make test`; what real servers answer is seen by `make integration-long` alone.
LONG_INTEGRATION = [
    f"tests/integration/test_{name}.py"
    for name in (
        *("awx_jobs", "canary_clients", "canary_producers", "client_latency", "dead_destination_host"),
        *("decommission_playbook", "feature_changes", "features_playbook", "kafka_features", "old_layout_runs"),
        *("old_metadata_version", "old_release", "partition_reassignment", "pause", "quorum_playbook"),
        *(
            "reassign_at_scale",
            "reassign_playbook",
            "slow_start",
            "stuck_leaders",
            "support_bundle",
            "upgrade",
            "upgrade_audit",
        ),
        *("zk_clients", "zk_controller_restore", "zk_source_mark", "zk_source_versions"),
    )
]
# Unit tests compute all the time, so a worker more than there are cores only imports and collects all tests once more
UNIT_WORKERS = str(min(4, max(2, len(os.sched_getaffinity(0)))))
INTEGRATION = (*PYTEST, "-n", "3", "--dist", "loadfile", "--no-loadscope-reorder")

TESTBED = (PYTHON, "-m", "tests.system.testbed")
TESTBED_DOWN = Step("testbed down", (*TESTBED, "down"), 120)


def on_the_testbed(tests: list[str], limit_s: int, variant: str = "default") -> tuple[Step, ...]:
    """Return the steps of tests on a testbed that is up only for them."""
    env, suffix = {"TESTBED_VARIANT": variant}, "" if variant == "default" else f", {variant}"
    return (
        Step(f"testbed up{suffix}", (*TESTBED, "up"), 1200, env=env),
        Step(f"pytest{suffix}", (*PYTEST, *tests), limit_s, counts_tests=True, env=env),
        Step(f"testbed down{suffix}", (*TESTBED, "down"), 120, env=env),
    )


def crash_tests(name: str, limit_s: int, *options: str, variant: str = "default") -> tuple[Step, ...]:
    """Return the steps of a migration or rollback that is killed repeatedly."""
    env = {"TESTBED_VARIANT": variant}
    return (
        Step(name, system_test("crash", *options), limit_s, env=env),
        Step("testbed down", (*TESTBED, "down"), 120, env=env),
    )


# Of steps that print nothing until their end, which a loaded machine delays
SILENT_S = 3600


def _beside(name: str, argv: tuple[str, ...], limit_s: int, **options: Any) -> Step:
    """Return a step that needs no testbed, and whose bounds are for what stands still."""
    return Step(name, argv, limit_s, beside=True, **options)


PARTS: dict[str, tuple[Step, ...]] = {
    # the longest first: the steps of lint, unit, build and failure-sample share the cores
    "lint": (
        _beside("ansible-test sanity", script("sanity", "--quick"), SILENT_S),
        _beside("ansible-lint", tool("ansible-lint", *ANSIBLE_LINT), SILENT_S, env=ANSIBLE_ENV),
        _beside("plugin docs", tool("antsibull-docs", *DOCS_LINT, COLLECTION), SILENT_S, env=DOCS_ENV),
        _beside("types", tool("mypy"), SILENT_S),
        _beside("imports", tool("lint-imports", "--no-cache"), SILENT_S, env=COLLECTIONS),
        _beside("licences", tool("reuse", "lint", "--lines"), SILENT_S),
        _beside("prose", script("prose"), SILENT_S),
        _beside("yamllint", tool("yamllint", "--strict", "."), SILENT_S),
        _beside("changelog", tool("antsibull-changelog", "lint"), SILENT_S),
        _beside("shellcheck", script("shell_files", "shellcheck"), SILENT_S),
        _beside("ruff check", tool("ruff", "check", "."), SILENT_S),
        _beside("ruff format", tool("ruff", "format", "--check", "."), SILENT_S),
    ),
    "docs": (Step("site", script("site"), 1800),),
    "sanity": (Step("ansible-test sanity", script("sanity"), 2400),),
    "unit": (
        # loadfile: what a file's tests share is made once
        _beside("pytest", (*PYTEST, "-n", UNIT_WORKERS, "--dist", "loadfile", "tests/unit"), 2400, counts_tests=True),
        _beside("oldest target Python", script("oldest_target"), 1800, counts_tests=True),
    ),
    "integration": (
        Step("jars", (*TESTBED, "jars"), 900),
        Step("archive of classes", (PYTHON, "-m", "tests.integration.class_archive"), 300, env=COLLECTIONS),
        # the tests wait more than they compute; a file's tests share servers
        Step(
            "pytest",
            (*INTEGRATION, "tests/integration", *(f"--ignore={path}" for path in LONG_INTEGRATION)),
            2400,
            counts_tests=True,
        ),
    ),
    "integration-long": (
        Step("jars", (*TESTBED, "jars"), 900),
        Step("archive of classes", (PYTHON, "-m", "tests.integration.class_archive"), 300, env=COLLECTIONS),
        Step("pytest", (*INTEGRATION, *LONG_INTEGRATION), 2400, counts_tests=True),
    ),
    "test-files": (
        Step("jars", (*TESTBED, "jars"), 900),
        Step(
            "pytest",
            (*PYTEST, "tests/integration/test_files_against_java.py"),
            3600,
            counts_tests=True,
            env={"QUORUMSHIFT_GENERATED_FILES": "20000"},
        ),
    ),
    "test-releases": (
        Step("jars", (*TESTBED, "jars"), 900),
        Step("table of releases", script("kafka_releases", "--check"), 2400),
        Step(
            "pytest",
            (*PYTEST, "tests/integration/test_kafka_releases.py"),
            2400,
            counts_tests=True,
            env={"QUORUMSHIFT_ALL_RELEASES": "1"},
        ),
        Step(
            "messages",
            (*PYTEST, "tests/integration/test_messages_against_kafka.py"),
            2400,
            counts_tests=True,
            env={"QUORUMSHIFT_ALL_RELEASES": "1", "QUORUMSHIFT_GENERATED_MESSAGES": "200"},
        ),
    ),
    "spark": (
        Step("jars", (*TESTBED, "jars"), 900),
        Step("pytest", (*PYTEST, "tests/spark", f"--ignore={STANDALONE}"), 3600, counts_tests=True),
    ),
    "spark-standalone": (
        Step("jars", (*TESTBED, "jars"), 900),
        Step("pytest", (*PYTEST, STANDALONE), 2400, counts_tests=True),
    ),
    "model": (
        Step(
            "10,000 histories",
            (PYTHON, "-m", "tests.unit.spark.model"),
            3600,
            env={"PYTHONPATH": f"{ROOT / 'spark'}:{ROOT / '.build'}"},
        ),
    ),
    "build": (_beside("installed tarball", script("built_collection"), 900, env=ANSIBLE_ENV),),
    "molecule": (scenario("default", 2400),),
    "molecule-secure": (scenario("secure", 2400),),
    "crash-tests": crash_tests("migration killed 5 times", 1200, "--points=2", "--moments=3"),
    "crash-tests-all": crash_tests("migration killed at every record", 4500),
    "crash-tests-rollback": crash_tests("rollback killed at every record", 4500, "--rollback"),
    "crash-tests-sudo": (
        *on_the_testbed(LOGIN_TESTS, 1200, "sudo"),
        *crash_tests("migration killed 9 times, sudo", 1500, "--points=3", "--moments=6", variant="sudo"),
    ),
    "failure-proof": (Step("every failure", script("failure_proof"), 28800),),
    # beside: Python and network; each release has a virtual environment
    "cores": (Step("each ansible-core", script("cores"), SILENT_S),),
    "cores-quick": (_beside("oldest and newest ansible-core", script("cores", "--quick"), SILENT_S),),
    "failure-sample": (_beside("a sample of failures", script("failure_proof", "--sample"), 1200),),
    "drill": (Step("migrations with injected faults", system_test("drill"), 4500), TESTBED_DOWN),
    "journey": (
        Step("journey", system_test("journey"), 7200, env={"TESTBED_VARIANT": "journey"}),
        Step("testbed down, journey", (*TESTBED, "down"), 120, env={"TESTBED_VARIANT": "journey"}),
    ),
    "stalls": (Step("clients' waits in ten migrations", system_test("demo.stalls"), 1800), TESTBED_DOWN),
    "simulate": (
        Step("100,000 moves with faults", (PYTHON, "-m", "tools.cut_simulation"), 3600),
        Step(
            "each safeguard removed",
            (PYTHON, "-m", "tools.cut_simulation", "--safeguards", "--schedules", "50000"),
            1800,
        ),
    ),
    "zk-to-zk": (
        Step("testbed reset, ensembles", (*TESTBED, "reset"), 1200, env={"TESTBED_VARIANT": "ensembles"}),
        Step("moves with drills", system_test("zk_move"), 4500, env={"TESTBED_VARIANT": "ensembles"}),
        Step("testbed reset again", (*TESTBED, "reset"), 1200, env={"TESTBED_VARIANT": "ensembles"}),
        Step(
            "a host dies in the cut",
            system_test("zk_move", "--no-drills", "--dead-host"),
            2700,
            env={"TESTBED_VARIANT": "ensembles"},
        ),
        Step("testbed down, ensembles", (*TESTBED, "down"), 120, env={"TESTBED_VARIANT": "ensembles"}),
    ),
    "test-fresh": (Step("new Debian host", script("fresh_host"), 2400),),
    "test-e2e": (
        Step("failover", system_test("demo", "--failover"), 1800),
        *on_the_testbed(OTHER_TESTS, 2700),
    ),
    "test-verify": on_the_testbed(VERIFY_TESTS, 4200),
    "test-faults": on_the_testbed(FAULT_TESTS, 4500),
    "test-rollback": (*on_the_testbed(ROLLBACK_TESTS, 4500), *on_the_testbed(SECURE_ROLLBACK_TESTS, 2400, "secure")),
    "test-layout": (
        *on_the_testbed(LAYOUT_TESTS, 3600, "other"),
        *on_the_testbed(LAYOUT_TESTS, 3600, "beside"),
        *on_the_testbed(CP_ANSIBLE_TESTS, 2700, "confluent"),
    ),
    "test-security": (
        # those with the same image one after the other
        *on_the_testbed([*SECURED_TESTS, *SECRETS_TESTS], 3600, "sasl"),
        *on_the_testbed([*SECURED_TESTS, *SECRETS_TESTS], 3600, "secure"),
        *on_the_testbed([*SECURED_TESTS, *SECRETS_TESTS], 3600, "oauth"),
        *on_the_testbed([*SECURED_TESTS, *SECRETS_TESTS], 3600, "gssapi"),
    ),
    "test-restarts": on_the_testbed(RACK_TESTS, 7200, "racks"),
}
LONG = (
    *("molecule-secure", "test-fresh", "test-e2e", "test-verify", "test-faults", "test-rollback", "test-layout"),
    *(
        "test-security",
        "test-restarts",
        "crash-tests",
        "crash-tests-all",
        "crash-tests-rollback",
        "crash-tests-sudo",
        "drill",
    ),
    *(
        "docs",
        "sanity",
        "integration-long",
        "simulate",
        "model",
        "zk-to-zk",
        "test-files",
        "test-releases",
        "cores-quick",
        "cores",
        "spark",
        "spark-standalone",
    ),
)
TARGETS: dict[str, tuple[str, ...]] = {
    **{part: (part,) for part in PARTS},
    "test": ("lint", "unit", "build", "failure-sample", "integration", "molecule"),
    "test-full": LONG,
}


@dataclass(frozen=True)
class Outcome:
    """The result of a step. ``result``: passed, failed, skipped or timeout. ``tests``: passed, failed, skipped."""

    part: str
    step: str
    result: str
    seconds: float
    exit_code: int | None
    tests: dict[str, int] | None

    def counts(self) -> dict[str, int]:
        """Return the numbers of passed, failed and skipped tests, or the step itself if it counts none."""
        counted = dict(self.tests or {"passed": 0, "failed": 0, "skipped": 0})
        if self.result in ("failed", "timeout"):
            counted["failed"] = max(counted["failed"], 1)
        elif self.tests is None:
            counted[self.result] += 1
        return counted


def adopt_orphans() -> None:
    """Adopt the orphans of the steps, so that they are reaped also where process 1 is no init."""
    set_child_subreaper = 36  # PR_SET_CHILD_SUBREAPER of linux/prctl.h
    ctypes.CDLL(None, use_errno=True).prctl(set_child_subreaper, 1, 0, 0, 0)


def group_lives(process: subprocess.Popen) -> bool:
    process.poll()
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-process.pid, os.WNOHANG)[0]:
            pass  # reap zombies, which would count as alive
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    return True


def end_group(process: subprocess.Popen) -> bool:
    """End the processes that are left of a step's process group; return whether there were any."""
    left = group_lives(process)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        until = time.monotonic() + END_GRACE_S
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        while group_lives(process) and time.monotonic() < until:
            time.sleep(0.05)
    return left


def read_junit(path: Path) -> dict[str, int] | None:
    """Return the sums of a JUnit XML file, None if the run ended before it was written."""
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
    """Return the path of a step's log."""
    return directory / f"{part}-{step.replace(' ', '-')}.log"


def run(part: str, step: Step, directory: Path) -> Outcome:
    """Run one step, with its output to its log and to ours. Of one that runs beside others it is ours only at its end,
    if it fails."""
    begins = f"\n=== {part}: {step.name} (limit {step.limit_s} s without output)"
    shown = not step.beside
    if shown:
        print(begins, flush=True)
    log = log_of(directory, part, step.name)
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
    _running.append(process)
    seen = Seen()
    reader = threading.Thread(target=_copy_output, args=(process.stdout, log, shown, seen))
    reader.start()
    code: int | None = None
    result, remark = "timeout", ""
    try:
        while code is None and time.monotonic() < seen.at + step.limit_s:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(max(0.1, seen.at + step.limit_s - time.monotonic()))
        if code is None:
            remark = f"{part} / {step.name}: no output for its limit of {step.limit_s} s\n"
        else:
            result = {0: "passed", SKIPPED: "skipped"}.get(code, "failed")
    finally:
        if end_group(process):
            remark += f"{part} / {step.name}: ended processes that it left running\n"
        _running.remove(process)
        reader.join(END_GRACE_S)  # ends with the last process that holds the pipe
    tests = read_junit(junit) if step.counts_tests else None
    outcome = Outcome(part, step.name, result, round(time.monotonic() - begun, 1), code, tests)
    ends = f"{remark}--- {part}: {step.name} {outcome.result} in {outcome.seconds:.1f} s\n"
    with _printing:
        if not shown and outcome.result in ("failed", "timeout"):
            print(begins, flush=True)
            sys.stdout.buffer.write(log.read_bytes())
        sys.stdout.buffer.write(ends.encode())
        sys.stdout.buffer.flush()
    return outcome


class Seen:
    """When a step last printed something, by the monotonic clock, in seconds. A slow machine is no failure."""

    def __init__(self) -> None:
        self.at = time.monotonic()


def _copy_output(source: BinaryIO, log: Path, shown: bool, seen: Seen) -> None:
    """Copy a step's output to its log, and to ours where it is shown; note when it came."""
    with source, log.open("wb") as file:
        while data := os.read(source.fileno(), 65536):
            seen.at = time.monotonic()
            file.write(data)
            if shown:
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()


def run_all(steps: list[tuple[str, Step]], directory: Path) -> list[Outcome]:
    """Run the steps in order; those that may run beside each other, on as many cores as there are, at least two."""
    outcomes: list[Outcome] = []
    for beside, together in groupby(steps, key=lambda entry: entry[1].beside):
        with ThreadPoolExecutor(max(2, len(os.sched_getaffinity(0))) if beside else 1) as pool:
            started = [pool.submit(run, part, step, directory) for part, step in together]
            try:
                outcomes += [future.result() for future in started]
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                for process in list(_running):
                    end_group(process)
                raise
    return outcomes


def failure_text(log: Path) -> str:
    """Return a failed step's messages as one line: the last paragraphs with a failure, else the end of its log."""
    text = _COLOUR.sub("", log.read_text(encoding="utf-8", errors="replace"))
    lines = [_short(line.strip(" \t\r│")) for line in text.splitlines()]
    failures = [paragraph for paragraph in _paragraphs(lines) if paragraph]
    shown = failures[-SHOWN_PARAGRAPHS:] or [" ".join([line for line in lines if line][-SHOWN_LINES:])]
    return " / ".join(text if len(text) <= SHOWN_LENGTH else f"{text[:SHOWN_LENGTH]} ..." for text in shown)


def _short(line: str) -> str:
    """Shorten a failed task's line of Ansible's output to its message and the end of the task's output."""
    fatal = _FATAL.match(line)
    try:
        result = json.loads(fatal[2]) if fatal else None
    except ValueError:
        result = None
    if not isinstance(result, dict):
        return line
    output = " ".join(str(result.get("stderr") or result.get("stdout") or "").split())
    return f"{fatal[1]} {result.get('msg', '')}: ...{output[-SHOWN_LENGTH // 2 :]}" if output else line


def _paragraphs(lines: list[str]) -> Iterator[str]:
    """Yield each paragraph from its first line with a failure on."""
    failure: list[str] = []
    for line in [*lines, ""]:
        if line and (failure or _FAILURE.search(line)):
            failure.append(line)
        elif not line:
            yield " ".join(failure)
            failure = []


def steps_of(target: str) -> Iterator[tuple[str, Step]]:
    for part in TARGETS[target]:
        for step in PARTS[part]:
            yield part, step


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout.strip()


def summary(target: str, outcomes: list[Outcome], begun: datetime, wall_s: float) -> dict:
    """Return the summary of a run, as in tools/summary.schema.json."""
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
    """Return the rows of `make drill`, {} if none were written since `begun`."""
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
        outcomes += run_all(list(steps_of(target)), directory)
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
            print(f"{outcome.part} / {outcome.step} ({log.relative_to(ROOT)}): {failure_text(log)}\n")
    print(f"make {target}: {report['result']}, see build/{target}/summary.json")
    print(f"{report['passed']} passed, {report['failed']} failed, {report['skipped']} skipped in {report['wall_s']} s")
    return 1 if report["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
