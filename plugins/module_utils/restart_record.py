# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host tells of the turn at work on it, in `restart.json` of its state directory."""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any, Mapping

from . import host_state

_SHOWN = ("id", "kind", "mode", "run", "service", "config_file")


class RestartError(RuntimeError):
    """A turn that cannot begin or go on; the text is for the operator."""


def read(directory: str) -> dict:
    """Return the record of the host's newest turn, {} when there is none."""
    return host_state.read_json(os.path.join(directory, host_state.RESTART)) or {}


def last_step(reported: Mapping[str, Any]) -> str:
    """Return the name of the step that a turn took last."""
    return reported["steps"][-1]["name"] if reported.get("steps") else "none"


def at_work(directory: str) -> str:
    """Return what the turn that holds the host is doing, as a clause."""
    reported = read(directory)
    return f"turn {reported.get('id')} is at work on this host, at step {last_step(reported)}"


class Record:
    """The turn as the host tells it: written whole at each step, by rename, so that a reader never sees half of it.

    `forgiving`: a record that cannot be written stops nothing any more. For putting back: a full disk, which may be
    why a node did not come up, must not keep it from coming up again.
    """

    def __init__(self, directory: str, spec: Mapping[str, Any], before: str, after: str):
        self.directory = directory
        self.reported: dict = {key: spec[key] for key in _SHOWN}
        self.reported.update({"steps": [], "outcome": None, "message": "", "changed": True, "times": {}})
        self.reported["diff"] = {"before": before, "after": after}
        self.forgiving = False

    def step(self, name: str) -> None:
        """Tell a step that is about to be taken."""
        self.reported["steps"].append({"name": name, "at": time.time()})
        self._save()

    def note(self, **times: float) -> None:
        """Tell moments (epoch seconds) and durations (seconds)."""
        self.reported["times"].update({key: round(value, 3) for key, value in times.items()})
        self._save()

    def end(self, outcome: str, message: str = "") -> None:
        """Tell how the turn ended, in the host's journal as well: `restart.json` is the next turn's one day."""
        self.reported.update({"outcome": outcome, "message": message, "ended_at": time.time()})
        self._save()
        reported = {key: self.reported[key] for key in ("id", "kind", "mode", "outcome", "message")}
        with contextlib.suppress(OSError):  # a turn that has ended stays ended, told twice or once
            host_state.note(self.directory, "node_restart", self.reported["run"], **reported)

    def _save(self) -> None:
        with contextlib.suppress(*([OSError] if self.forgiving else [])):
            host_state.write_json(os.path.join(self.directory, host_state.RESTART), self.reported)
