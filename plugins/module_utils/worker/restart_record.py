# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a node's newest restart, `restart.json` in its directory (host.host_state)."""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state

PROGRESS_S = 2.0
_SHOWN = ("id", "kind", "mode", "run", "service", "config_file")


class RestartError(RuntimeError):
    """A restart cannot begin or continue; the text is for the operator."""


def read(directory: str) -> dict:
    """Return the record of the node's newest restart, {} if there is none."""
    return host_state.read_json(os.path.join(directory, host_state.RESTART)) or {}


def read_left(directory: str) -> dict:
    """Return what the node had before its newest restart, {} once that restart has ended well."""
    record = read(directory)
    return (record.get("earlier") or {}) if record.get("outcome") in (None, "failed") else {}


def last_step(record: Mapping[str, Any]) -> str:
    """Return the name of the last step that a restart took."""
    return record["steps"][-1]["name"] if record.get("steps") else "none"


def describe_work(directory: str) -> str:
    """Return which restart holds the node and its step, as a clause."""
    record = read(directory)
    return f"restart {record.get('id')} is running on this host, at step {last_step(record)}"


class Record:
    """The record while the restart runs. Each step replaces the file by rename, so that a reader sees complete JSON.

    `forgiving`: ignore write errors. Set for reverting, because a full disk may be why the node did not come up.
    """

    _progress_at = 0.0

    def __init__(self, directory: str, spec: Mapping[str, Any], before: str, after: str):
        self.directory = directory
        self.values: dict = {key: spec[key] for key in _SHOWN}
        self.values.update({"steps": [], "outcome": None, "message": "", "changed": True, "times": {}, "earlier": {}})
        self.values["diff"] = {"before": before, "after": after}
        self.forgiving = False

    @classmethod
    def existing(cls, directory: str) -> Record:
        """Return the record that the module has begun, for the worker in a process of its own."""
        record = cls.__new__(cls)
        record.directory, record.values, record.forgiving = directory, read(directory), False
        return record

    def step(self, name: str) -> None:
        """Record a step that is about to be taken."""
        self.values["progress"] = ""
        self.values["steps"].append({"name": name, "at": time.time()})
        self._save()

    def has(self, earlier: Mapping[str, Any]) -> None:
        """Record what the node has before its restart changes it (auto_revert.Earlier), for a later worker where this
        one is lost."""
        self.values["earlier"] = dict(earlier)
        self._save()

    def note(self, **times: float) -> None:
        """Record moments (epoch seconds) and durations (seconds)."""
        self.values["times"].update({key: round(value, 3) for key, value in times.items()})
        self._save()

    def progress(self, text: str) -> None:
        """Record how far the node has loaded its partitions, at most every PROGRESS_S."""
        self.values["progress"] = text
        if time.monotonic() - self._progress_at >= PROGRESS_S:
            self._progress_at = time.monotonic()
            with contextlib.suppress(OSError):  # only shown
                self._save()

    def end(self, outcome: str, message: str = "") -> None:
        """Record the outcome, also in the node's journal: the next restart replaces `restart.json`."""
        self.values.update({"outcome": outcome, "message": message, "ended_at": time.time()})
        self._save()
        event = {key: self.values[key] for key in ("id", "kind", "mode", "outcome", "message")}
        with contextlib.suppress(OSError):  # the outcome is in restart.json already
            host_state.note(self.directory, "node_restart", self.values["run"], **event)

    def _save(self) -> None:
        with contextlib.suppress(*([OSError] if self.forgiving else [])):
            host_state.write_json(os.path.join(self.directory, host_state.RESTART), self.values)
