# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A way on the bed, driven on through drill after drill: each run goes on from where the last one ended."""

from __future__ import annotations

import contextlib
import re
import time
from pathlib import Path
from typing import Any, Callable, Mapping, NamedTuple, Sequence

from tools.demo import screen
from tools.drill import trials
from tools.drill.trials import Drill, Trial
from tools.e2e.testbed import Ran, Testbed

SETTINGS = {
    "quorumshift_soak": "0s",
    "quorumshift_probe_timeout": 15,
    "quorumshift_gate_timeout_s": 40,
    "quorumshift_roll_timeout_s": 60,
    # as in the operators' guide, sooner: else ssh waits for ever on a connection whose other end is gone
    "ansible_ssh_args": "-C -o ServerAliveInterval=2 -o ServerAliveCountMax=3",
}
BROKEN = {"quorumshift_gate_timeout_s": 10}  # where the gate is not to open
TRIES = 3  # runs on end that may fail over nothing before what is open counts as failed


class Leg(NamedTuple):
    """A part of a way: its playbook, the phase in which it ends, the drills on it in their order.

    `extra`: variables that its runs take besides; `word`: they take the word that the screen printed last, too."""

    playbook: str
    ends: str
    drills: Sequence[Drill]
    extra: Mapping[str, object] = {}
    token: bool = False


class Scene(NamedTuple):
    """What a fault is given: the bed, what the run has said so far, the host that the drill's `at` names; in `heard` it
    leaves what else was said."""

    testbed: Testbed
    text: str
    host: str | None
    heard: list[str]


class Stretch:
    """Legs, one after the other; `rows`: the summary's, `problems`: of the way itself."""

    def __init__(self, testbed: Testbed, directory: Path) -> None:
        self.testbed, self.directory, self.runs = testbed, directory, 0
        self.rows: list[dict[str, Any]] = []
        self.problems: list[str] = []
        self._open: list[Trial] = []  # struck, and no run got on from there yet
        self._broken: tuple[Trial, contextlib.ExitStack] | None = None
        self._stumbled = 0  # runs on end that failed over nothing
        self._token: str | None = None
        self._phase: str | None = None

    def leg(self, leg: Leg) -> bool:
        """Drive one leg to its end; False where it was not reached."""
        left = list(leg.drills)
        while left:
            if left[0].at:
                self._go_on(leg, left)
                continue
            # In plain ZooKeeper mode a run between two refusals would go on its way, and away from the second.
            if self._open and left[0].phase != "zk":
                self._to_the_end(leg)
            self._meet(leg, left.pop(0))
        if self._open or self._phase != leg.ends:
            self._to_the_end(leg)
        if self._phase != leg.ends:
            self.problems.append(f"{leg.playbook} ended in phase {self._phase}, not {leg.ends}: see {self._log}")
        return self._phase == leg.ends

    def nothing_left(self, leg: Leg) -> None:
        """One more run changes nothing."""
        ran = self._play(leg, lambda _line: False)
        changed = sum(host.changed for host in screen.recap(ran.text).values())
        if ran.code or changed:
            self.problems.append(f"one more run ended with {ran.code} and changed {changed}: see {self._log}")

    @property
    def _log(self) -> str:
        return f"run-{self.runs:03}.log"

    def _to_the_end(self, leg: Leg) -> None:
        for _try in range(TRIES):
            if self._go_on(leg, []).code == 0:
                return
        self._settle(None)

    def _meet(self, leg: Leg, drill: Drill) -> None:
        """A drill that strikes before a run, which meets it."""
        number = self.runs + 1
        trial = Trial(drill, number, time.time(), f"run-{number:03}.log")
        if not self._strike(trial, Scene(self.testbed, "", None, trial.heard)):
            self._mend()
            self._open.remove(trial)  # no run: over nothing broken it would go on its way
            self._tell(trials.detect(trial, None, time.time()))
            return
        hasty = BROKEN if drill.ends == trials.STOPPED else {}
        ran = self._play(leg, lambda line: bool(trial.heard.append(line)), hasty)
        trial.stopped = ran.code > 0
        self._mend()
        if ran.code == 0:
            self._settle(self.runs)

    def _go_on(self, leg: Leg, left: list[Drill]) -> Ran:
        """One run; drills that strike in it are taken from `left`."""
        said: list[str] = []
        struck: list[Trial] = []
        behind = 0

        def watch(line: str) -> bool:
            nonlocal behind
            said.append(line)
            for trial in self._open:
                if not (trial.stopped and trial.drill.ends == trials.STOPPED):
                    trial.heard.append(line)
            if not left or not left[0].at:
                return False
            text = "".join(said)
            found = trials.fits(left[0], text, behind)
            if not found:
                return False
            behind = len(text)
            self._mend()
            self._settle(self.runs)
            drill = left.pop(0)
            trial = Trial(drill, self.runs, time.time(), self._log)
            struck.append(trial)
            host = found.group(found.lastindex) if found.lastindex else None
            self._strike(trial, Scene(self.testbed, text, host, trial.heard))
            return drill.crash_tests

        ran = self._play(leg, watch)
        if ran.code > 0 and struck:
            struck[-1].stopped = True
        self._mend()
        if ran.code == 0:
            self._settle(self.runs)
        self._stumbled = 0 if struck or ran.code == 0 else self._stumbled + 1
        stuck_leaders = self._stumbled >= TRIES
        if stuck_leaders:
            self._settle(None)
        if stuck_leaders and left and left[0].at:
            self._tell(trials.never_struck(left.pop(0), self._log))
            self._stumbled = 0
        while ran.code == 0 and self._phase == leg.ends and left and left[0].at:  # the way is over
            self._tell(trials.never_struck(left.pop(0), self._log))
        return ran

    def _strike(self, trial: Trial, scene: Scene) -> bool:
        """Break it; False where it could not be brought about, which is the trial's problem."""
        stack = contextlib.ExitStack()
        self._open.append(trial)
        self._broken = (trial, stack)
        try:
            stack.enter_context(trial.drill.fault(scene))
        except Exception as error:
            trial.problems.append(f"it could not be brought about: {error!r}")
        return not trial.problems

    def _mend(self) -> None:
        """What is broken, if anything is; that it cannot be mended is the trial's problem."""
        if self._broken:
            trial, stack = self._broken
            self._broken = None
            try:
                stack.close()
            except Exception as error:
                trial.problems.append(f"it could not be mended: {error!r}")

    def _play(self, leg: Leg, watch: Callable[[str], bool], extra: Mapping[str, object] | None = None) -> Ran:
        self.runs += 1
        token = {"quorumshift_finalize_token": self._token} if leg.token else {}
        given = {**SETTINGS, **leg.extra, **token, **(extra or {})}
        with (self.directory / self._log).open("w", encoding="utf-8", buffering=1) as log:
            ran = self.testbed.play(
                leg.playbook, extra=given, kill_when=lambda line: bool(log.write(line)) and watch(line)
            )
        shown = screen.read(ran.text)
        if ran.code == 0 and shown:
            self._phase = shown.phase
        tokens = re.findall(r"quorumshift_finalize_token=(\w\S+)", ran.text)
        self._token = tokens[-1] if tokens else self._token
        return ran

    def _settle(self, went_on: int | None) -> None:
        """Judge what is open; `went_on`: the run that got on from there, None where none does."""
        for trial in self._open:
            self._tell(trials.detect(trial, went_on, time.time()))
        self._open = []

    def _tell(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        print(f"{len(self.rows):3}  {row['seconds']:6.1f} s  {row['phase']:<18} {row['name']}", flush=True)
        print(f"{'':31}said: {row['said'] or '-'}\n{'':31}{row['ended']} ({row['log']})", flush=True)
        for problem in row["problems"]:
            print(f"{'':29}! {problem}", flush=True)
