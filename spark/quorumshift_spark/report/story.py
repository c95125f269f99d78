# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a result tells: verdict, what it means for the gate, what to do, differences in groups. Pure.

A result that lacks something (an old one, one of a job that ended early) is told without it, never refused.
"""

from __future__ import annotations

import datetime
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import GATES

from quorumshift_spark.report import wording

PASS, DIFFER, ERROR, INCOMPLETE = "pass", "differ", "error", "incomplete"
COUNTS = ("read", "match", "explained", "differ", "left_only", "right_only", "skipped")
SHOWN = 50
"""Differences of one group that the page shows; the file differences.parquet has them all."""

_LOOKS = {PASS: "done", DIFFER: "stopped", ERROR: "stopped", INCOMPLETE: "open"}
_AGAIN = "Then run this gate again, by the same command or alone by playbooks/verify.yml."


class Shown(NamedTuple):
    """One difference: its key for people, and for each of the group's views in their order {view, compared, lines}:
    lines None where the view does not have it."""

    key: str
    sides: List[Dict[str, Any]]


class Group(NamedTuple):
    """Differences of one kind and field that break one rule. `total`: all; `shown`: the first of them; `do`: what to
    do, each once."""

    kind: str
    field: str
    rule: str
    views: List[str]
    total: int
    shown: List[Shown]
    do: List[str]
    anchor: str


class View(NamedTuple):
    """A view: what was read, where it stood, how long it took, what went wrong, how much moved while it settled."""

    name: str
    read: int
    by_kind: Mapping[str, int]
    state: str
    seconds: Any
    error: str
    problems: List[str]
    moved: int


class Pair(NamedTuple):
    """Two views that were compared: counts by kind, and what there is to say about it."""

    left: str
    right: str
    counts: List[Tuple[str, List[int]]]
    total: List[int]
    note: str


class Step(NamedTuple):
    """Something to do, and the groups of differences that it is for: (anchor, name)."""

    text: str
    groups: List[Tuple[str, str]] = []  # noqa: RUF012


class Place(NamedTuple):
    """One entity in one comparison, and why it is told."""

    kind: str
    key: str
    views: str
    why: str


class Story(NamedTuple):
    """A result, told. `look`: done, stopped or open; `open`: whether this result lets the gate open; `sentence`: why;
    `steps`: what to do next, in order."""

    job: str
    gate: str
    moment: str
    verdict: str
    look: str
    open: bool
    sentence: str
    reasons: List[str]
    steps: List[Step]
    counts: List[Tuple[str, List[int]]]
    total: List[int]
    pairs: List[Pair]
    groups: List[Group]
    unlisted: int
    unsettled: List[Place]
    unsettled_total: int
    changed: List[Place]
    changed_total: int
    views: List[View]
    round_columns: List[str]
    rounds: List[List[str]]
    timings: List[Tuple[str, float, float]]
    facts: List[Tuple[str, str]]


def tell(result: Mapping[str, Any], differences: Iterable[Mapping[str, Any]] | None = None) -> Story:
    """Tell a result; see report.render."""
    verdict = str(result.get("verdict") or ERROR)
    views = [_view(name, reported) for name, reported in _mapping(result.get("views")).items()]
    listed = result.get("differences") or ()
    groups = _groups(listed if differences is None else differences, [one.name for one in views])
    found = sum(group.total for group in groups)
    total_found = max(found, int(result.get("differences_total") or 0))
    counts, total = _counts(result.get("counts"))
    gate = str(result.get("gate") or "")
    return Story(
        job=str(result.get("job") or "job"),
        gate=gate,
        moment=GATES[gate].moment if gate in GATES else "",
        verdict=verdict,
        look=_LOOKS.get(verdict, "stopped"),
        open=verdict == PASS,
        sentence=_sentence(verdict, total, total_found, groups, views),
        reasons=[str(reason) for reason in result.get("reasons") or ()],
        steps=_steps(verdict, gate, groups, views),
        counts=counts,
        total=total,
        pairs=[
            Pair(str(one.get("left")), str(one.get("right")), *_counts(one.get("counts")), str(one.get("note") or ""))
            for one in map(_mapping, result.get("comparisons") or ())
        ],
        groups=groups,
        unlisted=total_found - found,
        unsettled=_places(result.get("unsettled")),
        unsettled_total=int(result.get("unsettled_total") or 0),
        changed=_places(result.get("changed")),
        changed_total=int(result.get("changed_total") or 0),
        views=views,
        **_rounds(result.get("rounds") or ()),
        timings=_timings(_mapping(result.get("timings"))),
        facts=_facts(result),
    )


def _counts(by_kind: Any) -> Tuple[List[Tuple[str, List[int]]], List[int]]:
    rows = [
        (str(kind), [int(_mapping(counted).get(name) or 0) for name in COUNTS])
        for kind, counted in _mapping(by_kind).items()
    ]
    return rows, [sum(column) for column in zip(*(row for _kind, row in rows))] or [0] * len(COUNTS)


def _places(places: Any) -> List[Place]:
    return [
        Place(
            str(one.get("kind")),
            wording.key(str(one.get("kind")), str(one.get("key"))),
            f"{wording.view(str(one.get('left')))} and {wording.view(str(one.get('right')))}",
            str(one.get("why")),
        )
        for one in map(_mapping, list(places or ())[:SHOWN])
    ]


def _sentence(verdict: str, total: List[int], found: int, groups: List[Group], views: List[View]) -> str:
    read, skipped = total[0], total[-1]
    names = _joined([wording.view(one.name) for one in views])
    if verdict == PASS:
        return f"All that was compared agrees: {read:,} comparisons of {names}, none left out."
    if verdict == DIFFER:
        kinds = _joined(list(dict.fromkeys(wording.kind(group.kind) for group in groups)))
        what = f"{found:,} difference{'s' if found != 1 else ''} in {read:,} comparisons"
        return f"{what}: {kinds}." if kinds else f"{what}."
    if verdict == INCOMPLETE:
        what = f"{skipped:,} of {read:,} comparisons could not be made" if skipped else "Not all could be compared"
        return f"{what}; what was not compared may differ."
    failed = _joined([wording.view(one.name) for one in views if one.error])
    return f"The comparison did not come to its end{f': {failed} failed' if failed else ''}. Nothing is known."


def _steps(verdict: str, gate: str, groups: List[Group], views: List[View]) -> List[Step]:
    if verdict == PASS:
        return [Step("Nothing: the run goes on by itself. One that was stopped is started by the same command.")]
    if verdict == DIFFER:
        steps = [Step("Change nothing on the cluster before you have looked: the differences are still there.")]
        places: Dict[str, List[Group]] = {}
        for group in groups:
            for do in group.do:
                places.setdefault(do, []).append(group)
        steps += [Step(_sentence_of(do), [_link(group) for group in where]) for do, where in places.items()]
        if gate == "before_revert":
            how = "On the way back a difference may be accepted: type this result's digest where the run asks for it."
            return [*steps, Step(how)]
        return [*steps, Step(_AGAIN)]
    if verdict == INCOMPLETE:
        return [Step("Mend what the reasons above name; nothing has to be undone."), Step(_AGAIN)]
    failed = [wording.view(one.name) for one in views if one.error]
    why = f"Make readable what failed ({_joined(failed)}): its error stands with the views below."
    return [Step(why if failed else "See the reason above and Spark's own output beside this file."), Step(_AGAIN)]


def _link(group: Group) -> Tuple[str, str]:
    return group.anchor, f"{wording.kind(group.kind)}{' ' + group.field if group.field else ''} ({group.total:,})"


def _sentence_of(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else text + "."


def _groups(differences: Iterable[Mapping[str, Any]], order: List[str]) -> List[Group]:
    found: Dict[Tuple[str, str, str], Dict[str, Any]] = {}
    for one in differences:
        if one.get("status") not in (None, "differ"):
            continue
        place = tuple(str(one.get(name) or "") for name in ("kind", "field", "rule"))
        group = found.setdefault(place, {"total": 0, "shown": [], "do": {}, "views": {}})
        group["total"] += 1
        if one.get("do"):
            group["do"][str(one["do"])] = None
        if len(group["shown"]) < SHOWN:
            values = _sides(one)
            group["views"].update(dict.fromkeys(values))
            group["shown"].append((str(one.get("key") or ""), values))
    messages = []
    for number, ((kind, field, rule), group) in enumerate(found.items(), 1):
        views = sorted(group["views"], key=lambda name: (order.index(name) if name in order else len(order), name))
        rows = []
        for key, values in group["shown"]:
            lines = wording.sides(kind, key, {name: values[name] for name in views if name in values})
            sides = [{"view": name, "compared": name in lines, "lines": lines.get(name)} for name in views]
            rows.append(Shown(wording.key(kind, key), sides))
        messages.append(Group(kind, field, rule, views, group["total"], rows, list(group["do"]), f"group-{number}"))
    return messages


def _sides(one: Mapping[str, Any]) -> Mapping[str, Any]:
    """Both sides of a difference, as result.json or as a row of differences.parquet has them."""
    if "sides" in one:
        return _mapping(one["sides"])
    return {str(one.get("left")): one.get("left_value"), str(one.get("right")): one.get("right_value")}


def _view(name: str, value: Any) -> View:
    reported = _mapping(value)
    by_kind = {str(kind): int(number) for kind, number in _mapping(reported.get("read")).items()}
    problems = [f"{one.get('where')}: {one.get('reason')}" for one in map(_mapping, reported.get("problems") or ())]
    return View(
        str(name),
        sum(by_kind.values()),
        by_kind,
        _state(_mapping(reported.get("state"))),
        reported.get("seconds"),
        str(reported.get("error") or ""),
        problems,
        int(reported.get("moved") or 0),
    )


def _state(state: Mapping[str, Any]) -> str:
    """Where a view stood; a time in UTC."""
    reported = {name: value for name, value in state.items() if name != "time_ms" and value not in ({}, [], None)}
    at = state.get("time_ms")
    if isinstance(at, int) and 0 < at < 4_102_444_800_000:
        time = datetime.datetime.fromtimestamp(at / 1000, datetime.timezone.utc)
        reported = {"at": time.strftime("%Y-%m-%d %H:%M:%S UTC"), **reported}
    return _plain(reported)


def _rounds(rounds: Iterable[Any]) -> Dict[str, Any]:
    rows = [_mapping(one) for one in rounds]
    columns = list(dict.fromkeys(str(name) for row in rows for name, value in row.items() if value != {}))
    return {"round_columns": columns, "rounds": [[_fence_or(row.get(name)) for name in columns] for row in rows]}


def _fence_or(value: Any) -> str:
    """A fence in wording, without what it has not: `zxid 8589934721, log cut again`; any other value plainly."""
    if not isinstance(value, Mapping):
        return _plain(value)
    there = {str(name).replace("_", " "): item for name, item in value.items() if item not in (None, False, "")}
    return ", ".join(name if item is True else f"{name} {_plain(item)}" for name, item in there.items())


def _timings(timings: Mapping[str, Any]) -> List[Tuple[str, float, float]]:
    """(stage, seconds, share of the longest), as the job gave them."""
    rows = [(str(name), float(took)) for name, took in timings.items() if isinstance(took, (int, float))]
    longest = max((took for _name, took in rows), default=0) or 1
    return [(name, took, took / longest) for name, took in rows]


def _facts(result: Mapping[str, Any]) -> List[Tuple[str, str]]:
    facts = [("digest", result.get("digest")), ("nonce", result.get("nonce")), ("schema", result.get("schema"))]
    facts += [
        (name, f"{_mapping(reported).get('rows'):,} rows, sha256 {_mapping(reported).get('sha256')}")
        for name, reported in sorted(_mapping(result.get("files")).items())
        if isinstance(_mapping(reported).get("rows"), int)
    ]
    facts += sorted(_mapping(result.get("versions")).items())
    return [(str(name), _plain(value)) for name, value in facts if value is not None]


def _plain(value: Any) -> str:
    """A value in wording; numbers as they are, for they are searched for in logs."""
    if isinstance(value, Mapping):
        return ", ".join(f"{str(name).replace('_', ' ')} {_plain(item)}" for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return "; ".join(map(_plain, value))
    return "" if value is None else str(value)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _joined(names: List[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1] if names else ""
