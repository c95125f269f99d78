# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drill and how it is judged. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Callable, NamedTuple

FINISHED = "finished by itself"
AFTER_RERUN = "finished after a re-run"
STOPPED = "stopped with a true message, and the way on was tried"
FAILED = "failed"
SAID_LENGTH = 160


class Drill(NamedTuple):
    """A fault, where it strikes, and what is to come of it.

    `fault`: a context manager over what the bed is at that moment (stretch.Scene): broken inside, mended behind.
    `said`: a regular expression, `.` for line ends too, over what is said from the strike until the drill is settled;
    where the run has to stop, over what that run says. `at`: one over all that a run has said; it strikes as soon as
    that has an end behind the last strike. Without it, it strikes before a run. `ends`: AFTER_RERUN, which FINISHED
    fulfils as well, or STOPPED. `kills`: the run gets SIGKILL, which is the fault.
    """

    name: str
    phase: str
    fault: Callable[[Any], Any]
    said: str
    ends: str
    at: str = ""
    crash_tests: bool = False


@dataclass
class Trial:
    """A drill that struck. `run`: the number of the run; `stopped`: that run ended by itself with an error; `problems`:
    what is wrong already, as sentences."""

    drill: Drill
    run: int
    began: float
    log: str
    stopped: bool = False
    heard: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def said(self) -> str | None:
        """The part of what was heard that had to be said, None where it was not."""
        found = re.search(self.drill.said, "".join(self.heard), re.DOTALL)
        return " ".join(found.group(0).split())[:SAID_LENGTH] if found else None


def fits(drill: Drill, text: str, behind: int) -> re.Match | None:
    """Where the drill strikes in what a run has said, None where not yet; `behind`: where the last one struck."""
    found = re.match(f".*(?:{drill.at})", text, re.DOTALL)  # the last place that fits
    return found if found and found.end() > behind else None


def detect(trial: Trial, went_on: int | None, ended: float) -> dict[str, Any]:
    """A row of the summary, without the witness. `went_on`: the number of the run that got on from there, None where
    none did; `ended`: when that was seen, in epoch seconds."""
    drill, problems = trial.drill, list(trial.problems)
    if went_on is None:
        problems.append("no run went on from there")
    if trial.said is None:
        problems.append(f"nobody said {drill.said}")
    if drill.ends == STOPPED and not trial.stopped:
        problems.append("the run did not stop")
    if problems:
        how = FAILED
    elif drill.ends == STOPPED:
        how = STOPPED
    else:
        how = FINISHED if went_on == trial.run else AFTER_RERUN
    return {
        **{"name": drill.name, "phase": drill.phase, "ended": how, "expected": drill.ends, "said": trial.said},
        **{"seconds": round(ended - trial.began, 1), "log": trial.log, "problems": problems},
    }


def never_struck(drill: Drill, log: str) -> dict[str, Any]:
    """The row of a drill for which no run came to where it strikes."""
    return {
        **{"name": drill.name, "phase": drill.phase, "ended": FAILED, "expected": drill.ends, "said": None},
        **{"seconds": 0.0, "log": log, "problems": [f"no run came to where it strikes: {drill.at}"]},
    }
