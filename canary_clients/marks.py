# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Marks: the phases, restarts and events of a run, as JSON lines from the migration's journal or from an operator.

  {"t": 1763732000.123, "kind": "phase", "name": "hybrid"}
  {"t": 1763732010.5, "end": 1763732019.0, "kind": "restart", "name": "hybrid roll", "host": "kafka1"}
  {"t": 1763732030.0, "kind": "event", "name": "/controller became KRaft's"}

`t` and `end` are seconds since the epoch. A phase lasts to its `end`, else to the next phase, else to the end of the
run. Times outside every phase count as UNMARKED.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from canary_clients.errors import ClientsError

KINDS = ("phase", "restart", "event")
UNMARKED = "(no phase)"
SLOT_MS = 100
# rows may be out of the order of time by this much
MARGIN_MS = 10_000


@dataclass(frozen=True)
class Mark:
    t: float
    kind: str
    name: str
    host: str | None = None
    end: float | None = None


@dataclass(frozen=True)
class Span:
    """A phase in milliseconds since the run's start."""

    name: str
    start: int
    end: int


def read(path: Path) -> list[Mark]:
    """Return the marks of a file in order of time. Raise ClientsError with file and line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise ClientsError(f"{path}: the file of marks does not exist") from None
    marks = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            marks.append(_parse(line, f"{path}:{number}"))
    return sorted(marks, key=lambda mark: mark.t)


def _parse(line: str, where: str) -> Mark:
    try:
        data: dict[str, Any] = json.loads(line)
        mark = Mark(
            t=float(data["t"]),
            kind=data["kind"],
            name=str(data["name"]),
            host=data.get("host"),
            end=None if data.get("end") is None else float(data["end"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise ClientsError(f"{where}: not a mark ({type(e).__name__}: {e}); needed: t, kind, name") from None
    if mark.kind not in KINDS:
        raise ClientsError(f"{where}: kind {mark.kind!r} is not one of {', '.join(KINDS)}")
    return mark


def append(path: Path, kind: str, name: str, host: str | None = None, seconds: float | None = None) -> Mark:
    """Append a mark of now; with `seconds`, it began that long ago and ends now."""
    now = time.time()
    mark = Mark(now - seconds if seconds else now, kind, name, host, now if seconds else None)
    data = {"t": mark.t, "kind": kind, "name": name, "host": host, "end": mark.end}
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps({key: value for key, value in data.items() if value is not None}) + "\n")
    return mark


class Phases:
    """Looks up the phase of a time, exact to SLOT_MS."""

    def __init__(self, marks: list[Mark], t0: float, end_ms: int) -> None:
        self.spans = spans(marks, t0, end_ms)
        self.names = [UNMARKED]
        # the verdict looks up millions of times
        self.by_slot = [0] * ((end_ms + MARGIN_MS) // SLOT_MS + 2)
        for span in self.spans:
            if span.name not in self.names:
                self.names.append(span.name)
            first, last = span.start // SLOT_MS, min(span.end // SLOT_MS + 1, len(self.by_slot))
            self.by_slot[first:last] = [self.names.index(span.name)] * (last - first)

    def index(self, ms: int) -> int:
        return self.by_slot[min(max(ms, 0) // SLOT_MS, len(self.by_slot) - 1)]

    def name(self, ms: int) -> str:
        return self.names[self.index(ms)]


def spans(marks: list[Mark], t0: float, end_ms: int) -> list[Span]:
    """Return the phases, cut to the run."""
    phases = [mark for mark in marks if mark.kind == "phase"]
    result = []
    for mark, following in zip(phases, [*phases[1:], None]):
        start = to_ms(mark.t, t0)
        end = end_ms if following is None else to_ms(following.t, t0)
        if mark.end is not None:
            end = min(end, to_ms(mark.end, t0))
        start, end = max(start, 0), min(end, end_ms)
        if end > start:
            result.append(Span(mark.name, start, end))
    return result


def steps_between(marks: list[Mark], start: float, end: float) -> str:
    """Return the restarts and events of a time (seconds since the epoch), else the last one before it, "" if none."""
    steps = [mark for mark in marks if mark.kind != "phase"]
    within = [mark for mark in steps if mark.t <= end and max(mark.t, mark.end or 0.0) >= start]
    if within:
        return "; ".join(map(_label, within))
    before = [mark for mark in steps if mark.t < start]
    return f"after {_label(before[-1])}" if before else ""


def _label(mark: Mark) -> str:
    return " ".join(filter(None, ("restart" if mark.kind == "restart" else "", mark.name, mark.host)))


def to_ms(t: float, t0: float) -> int:
    return int((t - t0) * 1000) + 1
