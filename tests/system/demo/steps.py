# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps, phases and the floor, from the recorder's events and the runs' journals; pure.

docs/summaries.md defines the figures. All times come from the recorder; the journals only give the kind of a restart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable

BROKER_KINDS = ("zk_migration", "kraft")
GATE_BEFORE = {"zk_migration": "before_trigger", "kraft": "after_copy", "controller_final": "before_finalize"}
UNRECORDED = "unrecorded"  # a restart that no journal contains
_UP = ("server started", "registered in the quorum", "unfenced")
_DOWN = ("stopping", "stopped", "exited", "started")


@dataclass
class Step:
    """One restart of a process. Times in epoch seconds, None if not seen.

    `stopping`: systemd begins to stop it; `stopped`: the process has ended; `started`: the next process runs; `up`:
    started and registered; `in_sync`: up, and in the ISR of each of its partitions. `since`: from when this step was
    possible; `overtaken`: the stop of the next broker began before this one was in sync.
    """

    host: str
    kind: str
    stopping: float | None
    stopped: float | None
    started: float
    up: float
    in_sync: float
    since: float | None = None
    first: bool = False
    overtaken: bool = False

    @property
    def stop_s(self) -> float | None:
        return self.stopped - self.stopping if self.stopping and self.stopped else None

    @property
    def start_s(self) -> float:
        return self.up - self.started

    @property
    def isr_s(self) -> float:
        return self.in_sync - self.up

    def own_s(self) -> float:
        """Return the seconds of the restart itself."""
        return (self.stop_s or 0.0) + self.start_s + self.isr_s

    def tool_s(self, stable_s: float) -> float | None:
        """Return the tool's overhead: from `since` to the stop without the stable time, and between the processes."""
        if self.since is None or self.stopping is None or self.stopped is None:
            return None
        return self.stopping - self.since - stable_s + self.started - self.stopped

    def row(self, stable_s: float) -> dict[str, Any]:
        """Return the step as in the summary, rounded to milliseconds."""
        tool_s = self.tool_s(stable_s)
        seconds = {"stop_s": self.stop_s, "start_s": self.start_s, "isr_s": self.isr_s, "tool_s": tool_s}
        if self.kind not in BROKER_KINDS:
            seconds["isr_s"] = None
        return {
            "host": self.host,
            "kind": self.kind,
            "first": self.first,
            "overtaken": self.overtaken,
            "at": round(self.stopping or self.started, 3),
            **{key: None if value is None else round(value, 3) for key, value in seconds.items()},
        }


def find(events: Iterable[dict], journal: Iterable[dict]) -> list[Step]:
    """Return the steps in order of time. `events`: the recorder's; `journal`: those of the runs' journals."""
    events = sorted(events, key=lambda event: event["t"])
    journal = sorted(journal, key=lambda event: event["t"])
    polls = [event for event in events if event["kind"] == "isr"]
    ids: dict[str, int] = {}
    for poll in polls:
        ids.update(poll.get("hosts") or {})
    steps = []
    for host in sorted({event["host"] for event in events if "host" in event}):
        own = [event for event in events if event.get("host") == host]
        for index, event in enumerate(own):
            if event["kind"] != "started":
                continue
            before, after = own[:index], own[index + 1 :]
            end = next((later["t"] for later in after if later["kind"] in _DOWN), None)
            stopping, stopped = _stop_times(before)
            up = _up(event["t"], after, end)
            kind = _kind(journal, host, event["t"])
            step = Step(host, kind, stopping, stopped, event["t"], up, in_sync=up)
            if host in ids:
                stops = [other["t"] for other in events if other["kind"] == "stopping" and other["host"] in ids]
                end = next((t for t in stops if t > event["t"]), None)
                step.in_sync, step.overtaken = _in_sync(polls, ids[host], stopped or event["t"], up, end)
            steps.append(step)
    steps.sort(key=lambda step: step.started)
    _set_since(steps, journal)
    return steps


def _stop_times(before: list[dict]) -> tuple[float | None, float | None]:
    """Return the last stop before a start: (stopping, stopped); a killed process has no `stopping`."""
    stopping = stopped = None
    for event in before:
        if event["kind"] == "started":
            stopping = stopped = None
        elif event["kind"] == "stopping":
            stopping = event["t"]
        elif event["kind"] in ("stopped", "exited"):
            stopped = event["t"] if stopped is None or event["kind"] == "stopped" else stopped
    return stopping, stopped


def _up(started: float, after: list[dict], end: float | None) -> float:
    first: dict[str, float] = {}
    for event in after:
        if end is not None and event["t"] >= end:
            break
        if event["kind"] == "milestone" and event["name"] in _UP:
            first.setdefault(event["name"], event["t"])
    return max(first.values(), default=started)


def _in_sync(polls: list[dict], broker: int, stopped: float, up: float, end: float | None) -> tuple[float, bool]:
    """Return when the broker was back in every ISR, and whether the next broker's stop came before that.

    That is the first poll with the broker in every ISR after the last poll without it, up to the next broker's stop.
    Failed polls are skipped.
    """
    in_sync, missing = up, False
    for poll in polls:
        if poll["t"] < stopped or poll.get("error"):
            continue
        if end is not None and poll["t"] >= end:
            break
        if broker not in poll["brokers"] or poll["out"].get(str(broker)):
            missing = True
        elif missing:
            in_sync, missing = max(up, poll["t"]), False
    return (end, True) if missing and end is not None else (in_sync, False)


def _kind(journal: list[dict], host: str, started: float) -> str:
    for event in journal:
        of_host = event["kind"] == "restart" and event.get("host") == host
        if of_host and event["t"] - 1 <= started <= event.get("end", event["t"]) + 1:
            return event["name"]
    return UNRECORDED


def _set_since(steps: list[Step], journal: list[dict]) -> None:
    for kind, gate in GATE_BEFORE.items():
        roll = [step for step in steps if step.kind == kind]
        if not roll:
            continue
        passed = [e["t"] for e in journal if e["kind"] == "gate" and e["name"] == gate and e.get("result") == "pass"]
        roll[0].first = True
        roll[0].since = max((t for t in passed if t <= roll[0].started), default=None)
        for before, step in zip(roll, roll[1:]):
            step.since = before.in_sync


def phases(events: Iterable[dict], steps: list[Step], begun: float) -> list[tuple[float, str]]:
    """Return (epoch seconds, phase) for the beginning of each phase, as the recorder saw it."""
    marks = [(begun, "zk")]
    driver = sorted(
        (event["t"], event["text"]) for event in events if event["kind"] == "milestone" and event["name"] == "driver"
    )

    def of(kind: str) -> list[Step]:
        return [step for step in steps if step.kind == kind]

    if of("controller"):
        marks.append((min(step.started for step in of("controller")), "controllers_starting"))
        marks.append((max(step.up for step in of("controller")), "controllers_ready"))
    if of("zk_migration"):
        marks.append((of("zk_migration")[0].stopping, "brokers_joining"))
    marks += [(t, "copying") for t, text in driver if "to ZK_MIGRATION" in text][:1]
    marks += [(t, "hybrid") for t, text in driver if "from ZK_MIGRATION" in text][:1]
    if len(of("kraft")) and len(of("kraft")) == len(of("zk_migration")):
        marks.append((of("kraft")[-1].up, "dual_write"))
    if of("controller_final"):
        marks.append((of("controller_final")[0].stopping, "finalizing"))
        if len(of("controller_final")) == len(of("controller")):
            marks.append((of("controller_final")[-1].up, "finalized"))
    return sorted((t, name) for t, name in marks if t is not None)


def copy_s(events: Iterable[dict]) -> tuple[float, float] | None:
    """Return when the initial copy began and when dual-write began, in epoch seconds."""
    driver = [event for event in events if event["kind"] == "milestone" and event["name"] == "driver"]
    begun = [event["t"] for event in driver if "to BECOME_CONTROLLER" in event["text"]]
    done = [event["t"] for event in driver if "to DUAL_WRITE" in event["text"]]
    return (min(begun), min(done)) if begun and done else None


def floor_s(events: list[dict], steps: list[Step]) -> float:
    """Return the seconds that the steps alone need, one after the other (docs/summaries.md)."""
    controllers = [step for step in steps if step.kind == "controller"]
    joining = [step for step in steps if step.kind == "zk_migration"]
    total = max((step.start_s for step in controllers), default=0.0)
    total += sum(step.own_s() for step in steps if step.kind in (*BROKER_KINDS, "controller_final"))
    initial_copy = copy_s(events)
    if initial_copy and joining:
        total += max(0.0, initial_copy[1] - max(initial_copy[0], joining[-1].in_sync))
    return total
