# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drill and the evaluation of its result. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Callable, NamedTuple

FINISHED = "finished without a re-run"
AFTER_RERUN = "finished after a re-run"
STOPPED = "stopped with the expected message, then continued"
FAILED = "failed"
MESSAGE_LENGTH = 160


class Drill(NamedTuple):
    """A fault, the point of its injection, and the expected result.

    `fault`: a function from scenario.Injection to a context manager, which injects the fault and removes it at exit.
    `message`: a regular expression (`.` matches line ends) that the output from the injection to the end of the trial
    must match; for STOPPED, the output of the run that stops. `at`: a regular expression for the output of a run; the
    fault is injected when it matches beyond the last injection. Without it, the fault is injected before a run.
    `expected`: AFTER_RERUN, which includes FINISHED, or STOPPED. `kills_run`: SIGKILL for the run is the fault.
    """

    name: str
    phase: str
    fault: Callable[[Any], Any]
    message: str
    expected: str
    at: str = ""
    kills_run: bool = False


@dataclass
class Trial:
    """A drill whose fault was injected.

    `run`: the number of the run; `stopped`: that run failed by itself; `output`: the lines since the injection;
    `problems`: what is wrong so far, as sentences.
    """

    drill: Drill
    run: int
    began: float
    log: str
    stopped: bool = False
    output: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def message(self) -> str | None:
        """The expected message as the output has it, None if it is missing."""
        match = re.search(self.drill.message, "".join(self.output), re.DOTALL)
        return " ".join(match.group(0).split())[:MESSAGE_LENGTH] if match else None


def injection_point(drill: Drill, text: str, last: int) -> re.Match | None:
    """Return the match of `at` in a run's output beyond `last`, the point of the last injection, or None."""
    match = re.match(f".*(?:{drill.at})", text, re.DOTALL)  # greedy: the last match
    return match if match and match.end() > last else None


def evaluate(trial: Trial, continued: int | None, ended: float) -> dict[str, Any]:
    """Return the trial's row of the summary, without `clients`.

    `continued`: the number of the run that continued, None if none did; `ended`: the time of that, in epoch seconds.
    """
    drill, problems = trial.drill, list(trial.problems)
    if continued is None:
        problems.append("no run continued after it")
    if trial.message is None:
        problems.append(f"the output does not match {drill.message}")
    if drill.expected == STOPPED and not trial.stopped:
        problems.append("the run did not stop")
    if problems:
        result = FAILED
    elif drill.expected == STOPPED:
        result = STOPPED
    else:
        result = FINISHED if continued == trial.run else AFTER_RERUN
    return _row(drill, result, trial.message, round(ended - trial.began, 1), trial.log, problems)


def never_injected(drill: Drill, log: str) -> dict[str, Any]:
    """Return the row of a drill whose injection point no run reached."""
    return _row(drill, FAILED, None, 0.0, log, [f"no run reached the injection point {drill.at}"])


def _row(
    drill: Drill, result: str, message: str | None, seconds: float, log: str, problems: list[str]
) -> dict[str, Any]:
    return {
        **{"name": drill.name, "phase": drill.phase, "result": result, "expected": drill.expected, "message": message},
        **{"seconds": seconds, "log": log, "problems": problems},
    }
