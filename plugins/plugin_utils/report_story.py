# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run's story from its artifacts: phases, gates, restarts, outcome. Pure; artifacts of a killed run never fail it.

Times are seconds since the epoch. Phases and gates have the control node's time, restarts their host's. If clocks
contradict the journal's order, the order counts and `warnings` says so.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Iterable, Mapping, NamedTuple, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates as gate_rules
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import run_outcome

JOURNAL = "journal.jsonl"
PAGE = "index.html"
DONE, STOPPED, READ_ONLY, OPEN = "done", "stopped", "read-only", "open"
# Events of the run itself: begun {user, from, playbook}, ended {result: ok}; failures are of run_outcome
BEGUN, ENDED, ADMITTED = "begun", run_outcome.ENDED, "admitted"
# What the run writes for itself, which no reader of a report needs
_MARKS = (run_outcome.STEP_BEGUN, run_outcome.STEP_ENDED, run_outcome.RESTART_BEGUN)

# Events of reassignments, {name: what became of their partitions}
_MOVES = {"reassigned": "moved", "reassignments_cancelled": "no longer moved"}

# A restart is journalled moments after its end: smaller contradictions of times and order are no clock error
_SLACK_S = 3
_LATEST = 4_102_444_800  # the year 2100; a greater number is no time


class Recorded(NamedTuple):
    """A run's artifacts. `events`: the journal's objects in its order; `unreadable`: number of other lines; `files`:
    {path: text} of the files that the report shows; `paths`: every file; `followed`: whether a later run exists."""

    cluster_id: str
    run: str
    events: Sequence[Mapping]
    unreadable: int = 0
    files: Mapping[str, str] = {}
    paths: Sequence[str] = ()
    followed: bool = False


class Span(NamedTuple):
    """A phase: detected from `start` to `seen`; at `end` another phase was detected."""

    name: str
    start: float
    seen: float
    end: float


class Gate(NamedTuple):
    """A gate's result. `seconds`: how long it took; `reason`: why it stayed closed; `reports`: {Spark job: path of its
    report, "" for none}, None if the gate needed no job."""

    name: str
    at: float
    passed: bool
    phase: str
    seconds: float | None
    digest: str
    reason: str
    moment: str
    reports: Mapping[str, str] | None


class Restart(NamedTuple):
    """A node's restart. `stages`: [(stop|start|register|failed, from, to)].

    Durations in seconds, None if unknown: `stop_s`; `start_s` from the start until the node answers; `register_s` from
    the start until it is registered; `restart_s`, the total seen from the control node; `own_s`, the rest of the total,
    which the tool takes; `admission_s`, the wait before the stop.
    """

    host: str
    kind: str
    start: float
    end: float
    outcome: str
    reason: str
    stages: list[tuple[str, float, float]]
    stop_s: float | None
    start_s: float | None
    register_s: float | None
    restart_s: float | None
    own_s: float | None
    admission_s: float | None

    @property
    def failed(self) -> bool:
        """Return whether the restart did not succeed."""
        return self.outcome != "done"


class Note(NamedTuple):
    """Any other event of the journal."""

    name: str
    at: float
    details: Mapping[str, str]


class Story(NamedTuple):
    """A run. `outcome`: done, stopped, read-only (it changed nothing) or open (no recorded end); `sentence`: a summary;
    `reasons`: why it stopped; `warnings`: contradictions and losses in the artifacts."""

    run: str
    start: float | None
    end: float | None
    phases: list[Span]
    gates: list[Gate]
    restarts: list[Restart]
    events: list[Note]
    outcome: str
    sentence: str
    reasons: list[str]
    warnings: list[str]
    by: str

    @property
    def seconds(self) -> float:
        """Return the run's duration, from its first event to its last."""
        return (self.end or 0) - (self.start or 0)

    @property
    def phase(self) -> str:
        """Return the last detected phase."""
        return self.phases[-1].name if self.phases else "unknown"


def parse(text: str) -> tuple[list[dict], int]:
    """Return a journal's events and the number of other lines (a killed run may leave an incomplete last line)."""
    events, unreadable = [], 0
    for line in text.splitlines():
        if not line.strip():
            continue
        try:
            event = json.loads(line)
        except ValueError:
            event = None
        if isinstance(event, dict) and _time(event.get("t")) is not None and isinstance(event.get("kind"), str):
            events.append(event)
        else:
            unreadable += 1
    return events, unreadable


def story_of(recorded: Recorded) -> Story:
    """Return a run's story."""
    events, warnings = _place(event for event in recorded.events if event.get("name") not in _MARKS)
    if recorded.unreadable:
        warnings.append(f"{_count(recorded.unreadable, 'line')} of the journal could not be read")
    start = min((event["_start"] for event in events), default=None)
    end = max((event["_end"] for event in events), default=None)
    gates, restarts = _gates(events, recorded.paths), _restarts(events)
    notes = [
        Note(str(event.get("name")), event["_start"], _details(event))
        for event in events
        if event["kind"] not in ("phase", "gate", "restart")
        and event.get("name") not in (BEGUN, ENDED, ADMITTED, run_outcome.FAILED)
    ]
    phases = _phases(events, end)
    outcome, sentence, reasons = _verdict(recorded, events, phases, gates, restarts, (end or 0) - (start or 0))
    return Story(
        recorded.run, start, end, phases, gates, restarts, notes, outcome, sentence, reasons, warnings, _by(events)
    )


def load(files: Mapping[str, str], path: str) -> Any:
    """Return a JSON file's content; None when it is missing or malformed."""
    try:
        return json.loads(files[path])
    except (KeyError, ValueError):
        return None


def mapping(value: Any) -> Mapping:
    """Return the value if it is a mapping, else an empty one: another version may have written the file."""
    return value if isinstance(value, Mapping) else {}


def items(value: Any) -> list:
    """Return the value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def last_facts(paths: Iterable[str]) -> str | None:
    """Return the path of the newest facts."""
    found = [(int(match.group(1)), path) for path in paths if (match := re.fullmatch(r"facts-(\d+)-.*\.json", path))]
    return max(found)[1] if found else None


def duration(seconds: float) -> str:
    """Return a duration for people: `48 s`, `3 min 31 s`, `24 h 5 min`, `3 d 2 h`."""
    whole = int(seconds + 0.5)
    for unit, size, lower, below in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= size:
            rest = whole % size // below
            return f"{whole // size} {unit} {rest} {lower}" if rest else f"{whole // size} {unit}"
    return f"{whole} s"


# Times --------------------------------------------------------------------------------------------------------------


def _time(value: Any) -> float | None:
    number = _number(value)
    return number if number is not None and 0 < number < _LATEST else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)


def _place(events: Iterable[Mapping]) -> tuple[list[dict], list[str]]:
    """Return the events with `_start` and `_end` on one monotonic clock, and a warning for each clock error."""
    placed, warnings, shift, last = [], [], 0.0, None
    for event in events:
        start = _time(event["t"]) or 0.0
        end = max(start, _time(event.get("end")) or start)
        moved = 0.0
        if event["kind"] != "restart":
            if last is not None and start + shift < last - _SLACK_S:
                back = last - start - shift
                warnings.append(f"the control node's clock went back {duration(back)} before {_playbook_of(event)}")
                shift += back
            moved = shift
            last = max(last or 0.0, start + shift)
        placed.append({**event, "_start": start + moved, "_end": end + moved, "_moved": moved})
    off: dict[str, float] = {}
    for number, event in enumerate(placed):
        if event["kind"] == "restart":
            moved, host = _move_between(event, placed[:number], placed[number + 1 :]), str(event.get("host"))
            off[host] = max(moved, off.get(host, 0.0), key=abs)
    for host, by in off.items():
        if by:
            way = "ahead of" if by < 0 else "behind"
            warnings.append(f"the clock of {host} is {way} the control node's by {duration(abs(by))} or more")
    return placed, warnings


def _move_between(event: dict, before: list[dict], after: list[dict]) -> float:
    """Move a restart, with its host's times, between its neighbours in the journal; return by how many seconds."""
    earliest = next((earlier["_start"] for earlier in reversed(before) if earlier["kind"] != "restart"), None)
    latest = next((later["_start"] for later in after if later["kind"] != "restart"), None)
    off = 0.0
    if latest is not None and event["_end"] > latest + _SLACK_S:
        off = latest - event["_end"]
    elif earliest is not None and event["_end"] < earliest - _SLACK_S:
        off = earliest - event["_start"]
    for key in ("_start", "_end", "_moved"):
        event[key] += off
    return off


def _playbook_of(event: Mapping) -> str:
    return f"{event['kind']} {event.get('name')}"


# What happened ------------------------------------------------------------------------------------------------------


def _phases(events: list[dict], end: float | None) -> list[Span]:
    spans: list[Span] = []
    for event in events:
        if event["kind"] != "phase":
            continue
        name, at = str(event.get("name")), event["_start"]
        if spans and spans[-1].name == name:
            spans[-1] = spans[-1]._replace(seen=at)
            continue
        if spans:
            spans[-1] = spans[-1]._replace(end=at)
        spans.append(Span(name, at, at, at))
    if spans:
        spans[-1] = spans[-1]._replace(end=max(end or 0, spans[-1].seen), seen=max(end or 0, spans[-1].seen))
    return spans


def _gates(events: list[dict], paths: Sequence[str]) -> list[Gate]:
    gates, phase = [], ""
    for event in events:
        if event["kind"] == "phase":
            phase = str(event.get("name"))
        if event["kind"] == "gate":
            name = str(event.get("name"))
            rule = gate_rules.GATES.get(name)
            gates.append(
                Gate(
                    name,
                    event["_start"],
                    event.get("result") == "pass",
                    str(event.get("phase") or phase),
                    _number(event.get("seconds")),
                    str(event.get("digest") or ""),
                    str(event.get("reason") or ""),
                    rule.moment if rule else "",
                    _reports(event, paths),
                )
            )
    return gates


def _reports(event: Mapping, paths: Sequence[str]) -> dict[str, str] | None:
    """Return the reports of a gate's Spark jobs, only those that are artifacts of this run."""
    if event.get("verified") == "off":
        return None
    reports = dict.fromkeys(mapping(event.get("verified")), "") | dict(mapping(event.get("reports")))
    return {str(job): path if path in paths else "" for job, path in reports.items()}


def _restarts(events: list[dict]) -> list[Restart]:
    restarts, admitted = [], {}
    for event in events:
        if event["kind"] == "event" and event.get("name") == ADMITTED:
            admitted.update({str(host): _number(event.get("waited_s")) for host in items(event.get("hosts"))})
        if event["kind"] != "restart":
            continue
        times, host = mapping(event.get("times")), str(event.get("host"))
        stop_s, start_s, register_s = (_number(times.get(key)) for key in ("stop_s", "start_s", "register_s"))
        restart_s, outcome = _number(event.get("restart_s")), str(event.get("outcome") or "unknown")
        up_s = register_s if register_s is not None else start_s
        own_s = None
        if outcome == "done" and restart_s is not None and up_s is not None:
            own_s = max(0.0, restart_s - (stop_s or 0.0) - up_s)
        restarts.append(
            Restart(
                host,
                str(event.get("name")),
                event["_start"],
                event["_end"],
                outcome,
                str(event.get("reason") or event.get("message") or ""),
                _stages(event, times, outcome != "done"),
                stop_s,
                start_s,
                register_s,
                restart_s,
                own_s,
                admitted.pop(host, None),
            )
        )
    return restarts


def _stages(event: dict, times: Mapping, failed: bool) -> list[tuple[str, float, float]]:
    stages, at = [], event["_start"]
    for name, key in (("stop", "stopped_at"), ("start", "answered_at"), ("register", "registered_at")):
        until = _time(times.get(key))
        if until is not None and at <= until + event["_moved"] <= event["_end"] + _SLACK_S:
            stages.append((name, at, until + event["_moved"]))
            at = until + event["_moved"]
    if failed:
        stages.append(("failed", at, max(at, event["_end"])))
    return stages or [("start", event["_start"], event["_end"])]


def _details(event: Mapping) -> dict[str, str]:
    """Return an event's other values as text, without empty ones."""
    details = {key: value for key, value in event.items() if key not in ("t", "kind", "name") and key[0] != "_"}
    return dict(_format_detail(key, value) for key, value in details.items() if value is not None and value != [])


def _format_detail(key: str, value: object) -> tuple[str, str]:
    if key.endswith("_s") and isinstance(value, (int, float)):
        key, value = key[: -len("_s")], f"{value:.1f} s"
    return key.replace("_", " "), ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _by(events: list[dict]) -> str:
    begun = next((event for event in events if event.get("name") == BEGUN and event["kind"] == "event"), {})
    user, host = begun.get("user"), begun.get("from")
    return f"{user}@{host}" if user and host else str(user or host or "")


# How it ended -------------------------------------------------------------------------------------------------------


def _verdict(recorded, events, phases, gates, restarts, seconds) -> tuple[str, str, list[str]]:
    if not events:
        return OPEN, "The journal has no events.", []
    names = list(dict.fromkeys(span.name for span in phases)) or ["an unknown phase"]
    span = f"From {names[0]} to {names[-1]}" if len(names) > 1 else f"In {names[0]}"
    moved = _moved(events)
    did, took = _did(gates, restarts, moved), duration(seconds)
    after = f" after {took}" if seconds >= 1 else ""
    stopped, reasons = _failures(recorded, gates, restarts)
    ended = next((event for event in reversed(events) if event["kind"] == "event" and event.get("name") == ENDED), None)
    failed = run_outcome.failures(events)
    if failed and not stopped:
        stopped, reasons = ["the run failed"], [failed[0].sentence]
    if stopped:
        return STOPPED, f"Stopped{after}: {'; '.join(stopped)}. {span}, {did}.", reasons
    if ended or (not run_outcome.find_unended(recorded.events) and _looks_finished(recorded, events)):
        if not gates and not restarts and not moved:
            return READ_ONLY, "The run changed nothing.", []
        return DONE, f"{span} in {took}: {did}.", []
    why = f"The last recorded event is {_last(events)}."
    if recorded.followed:
        why += " The run was killed, or it failed without a record."
        return OPEN, f"The run has no recorded end{after}. {span}, {did}.", [why]
    why += " The run continues, was killed, or failed without a record."
    return OPEN, f"No end is recorded yet{after}. {span}, {did}.", [why]


def _last(events: list[dict]) -> str:
    """Return the name of the last event other than a phase."""
    last = next((event for event in reversed(events) if event["kind"] != "phase"), events[-1])
    if last["kind"] == "restart":
        return f"the restart of {last.get('host')} ({last.get('name')}), {last.get('outcome')}"
    if last.get("name") == ADMITTED:
        return f"the admission of {', '.join(map(str, items(last.get('hosts'))))}"
    return _playbook_of(last)


def _looks_finished(recorded: Recorded, events: list[dict]) -> bool:
    """Return whether a run without an `ended` event is finished: it detected the phase a second time, at its end, or it
    has no artifacts but facts."""
    facts = [path for path in recorded.paths if re.fullmatch(r"facts-\d+-.*\.json", path)]
    if all(event["kind"] == "phase" for event in events):
        return set(recorded.paths) <= {*facts, JOURNAL, PAGE}
    return events[-1]["kind"] == "phase" and len(facts) > 1


def _failures(recorded: Recorded, gates: list[Gate], restarts: list[Restart]) -> tuple[list[str], list[str]]:
    failures, reasons = [], []
    found = items(mapping(load(recorded.files, "preflight.json")).get("findings"))
    blocking = [mapping(finding) for finding in found if mapping(finding).get("severity") == "blocks"]
    if blocking and not restarts and not any(gate.passed for gate in gates):
        failures.append(f"preflight has {_count(len(blocking), 'blocking finding')}")
        reasons += [f"{finding.get('seen')}. To do: {finding.get('do')}." for finding in blocking]
    last = {gate.name: gate for gate in gates}
    closed = [gate for gate in last.values() if not gate.passed]
    failures += [f"gate {gate.name} stayed closed" for gate in closed]
    reasons += [gate.reason for gate in closed if gate.reason]
    ended = {(restart.host, restart.kind): restart for restart in restarts}
    failed = [restart for restart in ended.values() if restart.failed]
    for kind in dict.fromkeys(restart.kind for restart in failed):
        hosts = [restart.host for restart in failed if restart.kind == kind]
        failures.append(f"the restart of {', '.join(hosts)} ({kind}) failed")
    # The first line only: the table of restarts shows the log excerpt
    reasons += [f"on {restart.host}: {restart.reason.splitlines()[0]}" for restart in failed if restart.reason]
    compared = mapping(load(recorded.files, "copy-compared.json"))
    wrong = [str(difference) for difference in items(compared.get("damage")) + items(compared.get("differences"))]
    if wrong:
        failures.append("the initial copy damaged ZooKeeper" if compared.get("damage") else "the initial copy differs")
        reasons += wrong
    return failures, reasons


def _moved(events: list[dict]) -> list[str]:
    """Return what a run did to partitions, by its newest event of each kind."""
    named = ((str(event.get("name")), event.get("partitions")) for event in events)
    newest = {name: number for name, number in named if name in _MOVES and isinstance(number, int)}
    return [f"{_count(number, 'partition')} {_MOVES[name]}" for name, number in newest.items()]


def _did(gates: list[Gate], restarts: list[Restart], moved: list[str]) -> str:
    done = [restart for restart in restarts if not restart.failed]
    passed = sum(1 for gate in gates if gate.passed)
    parts = (
        [f"{_count(len(done), 'restart')} of {_count(len({restart.host for restart in done}), 'host')}"] if done else []
    )
    parts += [f"{_count(passed, 'gate')} passed"] if passed else []
    parts += moved
    return ", ".join(parts if done else [*parts, "nothing restarted"])


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
