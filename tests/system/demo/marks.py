# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Marks for the verification clients (canary_clients/marks.py), from the recorder's events and the runs' journals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Iterable

from tests.system.demo.steps import Step


def make(phases: Iterable[tuple[float, str]], steps: Iterable[Step], journal: Iterable[dict]) -> list[dict]:
    """Return phases and restarts as the recorder saw them, and gates from the journals."""
    marks = [{"t": t, "kind": "phase", "name": name} for t, name in phases]
    marks += [
        {
            "t": step.stopping or step.started,
            "end": step.in_sync,
            "kind": "restart",
            "name": step.kind,
            "host": step.host,
        }
        for step in steps
    ]
    marks += [
        {"t": event["t"], "kind": "event", "name": f"gate {event['name']}: {event.get('result')}"}
        for event in journal
        if event["kind"] == "gate"
    ]
    return sorted(marks, key=lambda mark: mark["t"])


def write(path: Path, marks: Iterable[dict]) -> None:
    path.write_text("".join(json.dumps(mark) + "\n" for mark in marks), encoding="utf-8")
