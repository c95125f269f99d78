# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what the recorder saw and the journals tell to steps, phases and the floor; pure.

docs/summaries.md defines the figures. The recorder's events carry the times; the journals only name what a restart
was for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable

BROKER_KINDS = ("zk_migration", "kraft")
GATE_BEFORE = {"zk_migration": "before_trigger", "kraft": "after_copy", "controller_final": "before_finalize"}
UNTOLD = "untold"  # a restart of which no journal tells
_UP = ("server started", "registered in the quorum", "unfenced")
_DOWN = ("stopping", "stopped", "exited", "started")


@dataclass
class Step:
    """One process that went and came back. Epoch seconds; None where nothing was seen of it.

    `signal`: told to stop; `gone`: process gone; `begun`: the next process there; `up`: started and registered;
    `well`: up, and in the ISR of every partition that it replicates. `since`: from when this step was possible;
    `overtaken`: the next broker was told to stop before this one was well.
    """

    host: str
    kind: str
    signal: float | None
    gone: float | None
    begun: float
    up: float
    well: float
    since: float | None = None
    first: bool = False
    overtaken: bool = False

    @property
    def stop_s(self) -> float | None:
        return self.gone - self.signal if self.signal and self.gone else None

    @property
    def start_s(self) -> float:
        return self.up - self.begun

    @property
    def isr_s(self) -> float:
        return self.well - self.up

    def own_s(self) -> float:
        """What the restart needs by itself."""
        return (self.stop_s or 0.0) + self.start_s + self.isr_s

    def tool_s(self, stable_s: float) -> float | None:
        """What the tool added: from `since` to the signal without the stable time, and from process to process."""
        if self.since is None or self.signal is None or self.gone is None:
            return None
        return self.signal - self.since - stable_s + self.begun - self.gone

    def reported(self, stable_s: float) -> dict[str, Any]:
        """As in the summary, rounded to milliseconds."""
        tool_s = self.tool_s(stable_s)
        shown = {"stop_s": self.stop_s, "start_s": self.start_s, "isr_s": self.isr_s, "tool_s": tool_s}
        if self.kind not in BROKER_KINDS:
            shown["isr_s"] = None
        return {
            "host": self.host,
            "kind": self.kind,
            "first": self.first,
            "overtaken": self.overtaken,
            "at": round(self.signal or self.begun, 3),
            **{key: None if value is None else round(value, 3) for key, value in shown.items()},
        }


def find(events: Iterable[dict], journal: Iterable[dict]) -> list[Step]:
    """The steps in order of time. `events`: the recorder's; `journal`: those of the runs' journals."""
    events = sorted(events, key=lambda event: event["t"])
    journal = sorted(journal, key=lambda event: event["t"])
    polls = [event for event in events if event["kind"] == "isr"]
    ids: dict[str, int] = {}
    for poll in polls:
        ids.update(poll.get("hosts") or {})
    found = []
    for host in sorted({event["host"] for event in events if "host" in event}):
        own = [event for event in events if event.get("host") == host]
        for index, event in enumerate(own):
            if event["kind"] != "started":
                continue
            before, after = own[:index], own[index + 1 :]
            end = next((one["t"] for one in after if one["kind"] in _DOWN), None)
            signal, gone = _stopped(before)
            up = _up(event["t"], after, end)
            kind = _kind(journal, host, event["t"])
            step = Step(host, kind, signal, gone, event["t"], up, well=up)
            if host in ids:
                stops = [one["t"] for one in events if one["kind"] == "stopping" and one["host"] in ids]
                end = next((t for t in stops if t > event["t"]), None)
                step.well, step.overtaken = _well(polls, ids[host], gone or event["t"], up, end)
            found.append(step)
    found.sort(key=lambda step: step.begun)
    _since(found, journal)
    return found


def _stopped(before: list[dict]) -> tuple[float | None, float | None]:
    """The last stop before a start: (told to stop, process gone); killed processes were not told."""
    signal = gone = None
    for event in before:
        if event["kind"] == "started":
            signal = gone = None
        elif event["kind"] == "stopping":
            signal = event["t"]
        elif event["kind"] in ("stopped", "exited"):
            gone = event["t"] if gone is None or event["kind"] == "stopped" else gone
    return signal, gone


def _up(begun: float, after: list[dict], end: float | None) -> float:
    first: dict[str, float] = {}
    for event in after:
        if end is not None and event["t"] >= end:
            break
        if event["kind"] == "milestone" and event["name"] in _UP:
            first.setdefault(event["name"], event["t"])
    return max(first.values(), default=begun)


def _well(polls: list[dict], broker: int, gone: float, up: float, end: float | None) -> tuple[float, bool]:
    """When the broker was back in every ISR: the first poll that found it there after the last one that did not, up to
    the next broker's stop; and whether that stop came first. A poll that failed tells nothing."""
    well, short = up, False
    for poll in polls:
        if poll["t"] < gone or poll.get("error"):
            continue
        if end is not None and poll["t"] >= end:
            break
        if broker not in poll["brokers"] or poll["out"].get(str(broker)):
            short = True
        elif short:
            well, short = max(up, poll["t"]), False
    return (end, True) if short and end is not None else (well, False)


def _kind(journal: list[dict], host: str, begun: float) -> str:
    for event in journal:
        mine = event["kind"] == "restart" and event.get("host") == host
        if mine and event["t"] - 1 <= begun <= event.get("end", event["t"]) + 1:
            return event["name"]
    return UNTOLD


def _since(steps: list[Step], journal: list[dict]) -> None:
    for kind, gate in GATE_BEFORE.items():
        roll = [step for step in steps if step.kind == kind]
        if not roll:
            continue
        passed = [e["t"] for e in journal if e["kind"] == "gate" and e["name"] == gate and e.get("result") == "pass"]
        roll[0].first = True
        roll[0].since = max((t for t in passed if t <= roll[0].begun), default=None)
        for before, step in zip(roll, roll[1:]):
            step.since = before.well


def phases(events: Iterable[dict], steps: list[Step], begun: float) -> list[tuple[float, str]]:
    """(epoch seconds, phase) from when each phase of the design was so, as the recorder saw it."""
    found = [(begun, "zk")]
    driver = sorted(
        (event["t"], event["text"]) for event in events if event["kind"] == "milestone" and event["name"] == "driver"
    )

    def of(kind: str) -> list[Step]:
        return [step for step in steps if step.kind == kind]

    if of("controller"):
        found.append((min(step.begun for step in of("controller")), "controllers_starting"))
        found.append((max(step.up for step in of("controller")), "controllers_ready"))
    if of("zk_migration"):
        found.append((of("zk_migration")[0].signal, "brokers_joining"))
    found += [(t, "copying") for t, text in driver if "to ZK_MIGRATION" in text][:1]
    found += [(t, "hybrid") for t, text in driver if "from ZK_MIGRATION" in text][:1]
    if len(of("kraft")) and len(of("kraft")) == len(of("zk_migration")):
        found.append((of("kraft")[-1].up, "dual_write"))
    if of("controller_final"):
        found.append((of("controller_final")[0].signal, "finalizing"))
        if len(of("controller_final")) == len(of("controller")):
            found.append((of("controller_final")[-1].up, "finalized"))
    return sorted((t, name) for t, name in found if t is not None)


def copy_s(events: Iterable[dict]) -> tuple[float, float] | None:
    """When the copy began and when controllers wrote to both sides: (epoch seconds, epoch seconds)."""
    driver = [event for event in events if event["kind"] == "milestone" and event["name"] == "driver"]
    begun = [event["t"] for event in driver if "to BECOME_CONTROLLER" in event["text"]]
    done = [event["t"] for event in driver if "to DUAL_WRITE" in event["text"]]
    return (min(begun), min(done)) if begun and done else None


def floor_s(events: list[dict], steps: list[Step]) -> float:
    """The seconds that the steps need by themselves, one after the other (docs/summaries.md)."""
    controllers = [step for step in steps if step.kind == "controller"]
    joining = [step for step in steps if step.kind == "zk_migration"]
    total = max((step.start_s for step in controllers), default=0.0)
    total += sum(step.own_s() for step in steps if step.kind in (*BROKER_KINDS, "controller_final"))
    initial_copy = copy_s(events)
    if initial_copy and joining:
        total += max(0.0, initial_copy[1] - max(initial_copy[0], joining[-1].well))
    return total
