# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A scenario on the testbed: playbook runs with drills; each run continues where the last one ended."""

from __future__ import annotations

import contextlib
import re
import time
from pathlib import Path
from typing import Any, Callable, Mapping, NamedTuple, Sequence

from tests.system.demo import screen
from tests.system.drill import trials
from tests.system.drill.trials import Drill, Trial
from tests.system.testbed.running import Ran, Testbed

SETTINGS = {
    "quorumshift_soak": "0s",
    "quorumshift_probe_timeout": 15,
    "quorumshift_gate_timeout_s": 40,
    "quorumshift_roll_timeout_s": 60,
    "quorumshift_start_timeout_s": 60,  # without progress: shorter than a slow start
    # as in the operators' guide, but shorter: otherwise ssh hangs on a dead connection
    "ansible_ssh_args": "-C -o ServerAliveInterval=2 -o ServerAliveCountMax=3",
}
SHORT_GATE = {"quorumshift_gate_timeout_s": 10}  # where the gate must not open
TRIES = 3  # runs that may fail in a row without a new fault, before the open trials count as failed


class Stage(NamedTuple):
    """A stage of a scenario: a playbook, its last phase, and its drills in order.

    `extra`: additional variables of its runs; `token`: the runs get the confirmation token that was printed last.
    """

    playbook: str
    last_phase: str
    drills: Sequence[Drill]
    extra: Mapping[str, object] = {}
    token: bool = False


class Injection(NamedTuple):
    """The argument of a fault: the run's output so far, the host that the drill's `at` matched, the run's variables.

    The fault appends further output, for example of `status`, to `output`.
    """

    testbed: Testbed
    text: str
    host: str | None
    output: list[str]
    variables: Mapping[str, object]


class Scenario:
    """Runs the stages; `rows`: those of the summary; `problems`: those of no single drill."""

    def __init__(self, testbed: Testbed, directory: Path) -> None:
        self.testbed, self.directory, self.runs = testbed, directory, 0
        self.rows: list[dict[str, Any]] = []
        self.problems: list[str] = []
        self._open: list[Trial] = []  # injected, and no run has continued yet
        self._injected: tuple[Trial, contextlib.ExitStack] | None = None  # not removed yet
        self._failed_runs = 0  # in a row, without a new fault
        self._token: str | None = None
        self._phase: str | None = None

    def run(self, stage: Stage) -> bool:
        """Run a stage; return whether it reached its last phase."""
        left = list(stage.drills)
        while left:
            if left[0].at:
                self._continue(stage, left)
                continue
            # a run between two drills in phase zk would leave the phase
            if self._open and left[0].phase != "zk":
                self._to_last_phase(stage)
            self._before_run(stage, left.pop(0))
        if self._open or self._phase != stage.last_phase:
            self._to_last_phase(stage)
        if self._phase != stage.last_phase:
            ended = f"{stage.playbook} ended in phase {self._phase}, not {stage.last_phase}"
            self.problems.append(f"{ended}, see {self._log}")
        return self._phase == stage.last_phase

    def one_more_run(self, stage: Stage) -> None:
        """Run the playbook once more, which must change nothing."""
        ran = self._play(stage, lambda _line: False)
        changed = sum(host.changed for host in screen.recap(ran.text).values())
        if ran.code or changed:
            self.problems.append(f"one more run ended with {ran.code} and reported {changed} changes, see {self._log}")

    @property
    def _log(self) -> str:
        return f"run-{self.runs:03}.log"

    def _to_last_phase(self, stage: Stage) -> None:
        for _try in range(TRIES):
            if self._continue(stage, []).code == 0:
                return
        self._evaluate_open(None)

    def _before_run(self, stage: Stage, drill: Drill) -> None:
        """Inject a fault, run the playbook once, remove the fault."""
        number = self.runs + 1
        trial = Trial(drill, number, time.time(), f"run-{number:03}.log")
        if not self._inject(trial, Injection(self.testbed, "", None, trial.output, {**SETTINGS, **stage.extra})):
            self._remove_fault()
            self._open.remove(trial)  # a run without the fault would leave the phase
            self._report(trials.evaluate(trial, None, time.time()))
            return
        short_gate = SHORT_GATE if drill.expected == trials.STOPPED else {}
        ran = self._play(stage, lambda line: bool(trial.output.append(line)), short_gate)
        trial.stopped = ran.code > 0
        self._remove_fault()
        if ran.code == 0:
            self._evaluate_open(self.runs)

    def _continue(self, stage: Stage, left: list[Drill]) -> Ran:
        """Run the playbook once; inject the faults whose points it reaches and take their drills from `left`."""
        lines: list[str] = []
        injected: list[Trial] = []
        last = 0

        def watch(line: str) -> bool:
            nonlocal last
            lines.append(line)
            for trial in self._open:
                if not (trial.stopped and trial.drill.expected == trials.STOPPED):
                    trial.output.append(line)
            if not left or not left[0].at:
                return False
            text = "".join(lines)
            point = trials.injection_point(left[0], text, last)
            if not point:
                return False
            last = len(text)
            self._remove_fault()
            self._evaluate_open(self.runs)
            drill = left.pop(0)
            trial = Trial(drill, self.runs, time.time(), self._log)
            injected.append(trial)
            host = point.group(point.lastindex) if point.lastindex else None
            self._inject(trial, Injection(self.testbed, text, host, trial.output, {**SETTINGS, **stage.extra}))
            return drill.kills_run

        ran = self._play(stage, watch)
        if ran.code > 0 and injected:
            injected[-1].stopped = True
        self._remove_fault()
        if ran.code == 0:
            self._evaluate_open(self.runs)
        self._failed_runs = 0 if injected or ran.code == 0 else self._failed_runs + 1
        stuck = self._failed_runs >= TRIES
        if stuck:
            self._evaluate_open(None)
        if stuck and left and left[0].at:
            self._report(trials.never_injected(left.pop(0), self._log))
            self._failed_runs = 0
        while ran.code == 0 and self._phase == stage.last_phase and left and left[0].at:
            self._report(trials.never_injected(left.pop(0), self._log))
        return ran

    def _inject(self, trial: Trial, injection: Injection) -> bool:
        """Inject the trial's fault; return whether it succeeded. A failure is a problem of the trial."""
        stack = contextlib.ExitStack()
        self._open.append(trial)
        self._injected = (trial, stack)
        try:
            stack.enter_context(trial.drill.fault(injection))
        except Exception as error:
            trial.problems.append(f"the fault could not be injected: {error!r}")
        return not trial.problems

    def _remove_fault(self) -> None:
        """Remove the injected fault, if there is one. A failure is a problem of the trial."""
        if self._injected:
            trial, stack = self._injected
            self._injected = None
            try:
                stack.close()
            except Exception as error:
                trial.problems.append(f"the fault could not be removed: {error!r}")

    def _play(self, stage: Stage, watch: Callable[[str], bool], extra: Mapping[str, object] | None = None) -> Ran:
        self.runs += 1
        token = {"quorumshift_finalize_token": self._token} if stage.token else {}
        given = {**SETTINGS, **stage.extra, **token, **(extra or {})}
        with (self.directory / self._log).open("w", encoding="utf-8", buffering=1) as log:
            ran = self.testbed.play(
                stage.playbook, extra=given, kill_when=lambda line: bool(log.write(line)) and watch(line)
            )
        shown = screen.read(ran.text)
        if ran.code == 0 and shown:
            self._phase = shown.phase
        tokens = re.findall(r"quorumshift_finalize_token=(\w\S+)", ran.text)
        self._token = tokens[-1] if tokens else self._token
        return ran

    def _evaluate_open(self, continued: int | None) -> None:
        """Evaluate the open trials; `continued`: the number of the run that continued, None if none does."""
        for trial in self._open:
            self._report(trials.evaluate(trial, continued, time.time()))
        self._open = []

    def _report(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        print(f"{len(self.rows):3}  {row['seconds']:6.1f} s  {row['phase']:<18} {row['name']}", flush=True)
        print(f"{'':31}message: {row['message'] or '-'}\n{'':31}{row['result']} ({row['log']})", flush=True)
        for problem in row["problems"]:
            print(f"{'':29}! {problem}", flush=True)
