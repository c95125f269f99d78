# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prepares a result for the report: verdict, effect on the gate, what to do, differences in groups. Pure.

Missing parts of a result (of an older release, of a job that ended early) are left out.
"""

from __future__ import annotations

import datetime
import json
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates.gates import GATES

from quorumshift_spark.report import wording

PASS, DIFFER, ERROR, INCOMPLETE = "pass", "differ", "error", "incomplete"
COUNTS = ("read", "match", "explained", "differ", "left_only", "right_only", "skipped")
SHOWN = 50
"""Entities that the page lists in one group; differences.csv and differences.parquet hold all."""
OPEN = 10
"""Of these, how many are seen before a click: on a phone a hundred of them hide the next group."""
REASONS = 3
"""Reasons that are seen before a click."""
ALONE = 3
"""Brokers that the page names one by one; more of them that say the same are one line or column."""
NAMED = 8
"""Brokers that differ, of many, which a bar names."""
BROKERS = "brokers"

_TABLES = ("differences.csv", "differences.parquet")
_STYLES = {PASS: "done", DIFFER: "stopped", ERROR: "stopped", INCOMPLETE: "open"}
_AGAIN = "Then run the same command again. To repeat only this comparison, run playbooks/verify.yml."


class Side(NamedTuple):
    """A value of a difference. `who`: the brokers that have it, "" for the column's view; `lines`: None where these do
    not have it."""

    who: str
    lines: List[wording.Line] | None


class Row(NamedTuple):
    """The differences of one entity. `key`: for the operator; `cells`: the sides in each column, none where it
    was not compared."""

    key: str
    cells: List[List[Side]]


class Group(NamedTuple):
    """Differences of one kind, field and rule. `columns`: views, BROKERS for many; `total`: their number; `listed`: how
    many of them the rows `shown` are; `do`: what to do, without repetition."""

    kind: str
    field: str
    rule: str
    columns: List[str]
    total: int
    listed: int
    shown: List[Row]
    do: List[str]
    anchor: str


class View(NamedTuple):
    """A view, or many brokers: entities read, position, seconds (of the slowest), errors, and how many entities changed
    while the job ran."""

    name: str
    read: int
    by_kind: Mapping[str, int]
    state: str
    seconds: Any
    error: str
    problems: List[str]
    moved: int


class Pair(NamedTuple):
    """Two views that were compared, or one with many brokers: counts by kind, and a note."""

    left: str
    right: str
    counts: List[Tuple[str, List[int]]]
    total: List[int]
    note: str


class Bar(NamedTuple):
    """A line of the picture: what was compared with what, and how many comparisons agree, are excused, are undecided,
    differ. `where`: on which of many brokers something differs, "" where all of the line are one pair."""

    left: str
    right: str
    agree: int
    excused: int
    undecided: int
    differ: int
    where: str


class Picture(NamedTuple):
    """The sums of the bars. `records`: (what excuses, how many) where the result has it; `moved`: entities that
    changed while the job ran."""

    bars: List[Bar]
    read: int
    agree: int
    excused: int
    undecided: int
    differ: int
    records: List[Tuple[str, int]]
    moved: int


class Step(NamedTuple):
    """A step for the operator. `groups`: (anchor, name) of the groups of differences that it is for."""

    text: str
    groups: List[Tuple[str, str]] = []  # noqa: RUF012


class Entry(NamedTuple):
    """One entity in one comparison, and why it is listed. `values`: for each field, that of both sides."""

    kind: str
    key: str
    views: str
    why: str
    values: List[str]


class Story(NamedTuple):
    """The content of the page. `style`: done, stopped or open; `open`: whether this result lets the gate open;
    `sentence` and `picture`: why; `steps`: what to do next, in order; `tables`: files beside the page with all rows."""

    job: str
    gate: str
    moment: str
    verdict: str
    style: str
    open: bool
    sentence: str
    picture: Picture
    reasons: List[str]
    reasons_opened: int
    steps: List[Step]
    counts: List[Tuple[str, List[int]]]
    total: List[int]
    pairs: List[Pair]
    groups: List[Group]
    opened: int
    tables: List[str]
    unlisted: int
    undecided: List[Entry]
    undecided_total: int
    changed: List[Entry]
    changed_total: int
    leftovers: List[Tuple[str, int, int, int]]
    not_compared: List[Tuple[str, int, str, bool]]
    views: List[View]
    round_columns: List[str]
    rounds: List[List[str]]
    timings: List[Tuple[str, float, float]]
    facts: List[Tuple[str, str]]


def build(result: Mapping[str, Any], differences: Iterable[Mapping[str, Any]] | None = None) -> Story:
    """Return the content of the page; see report.render."""
    verdict = str(result.get("verdict") or ERROR)
    views = [_view(name, entry) for name, entry in _mapping(result.get("views")).items()]
    listed = result.get("differences") or ()
    groups = _groups(listed if differences is None else differences, [view.name for view in views])
    grouped = sum(group.total for group in groups)
    all_differences = max(grouped, int(result.get("differences_total") or 0))
    counts, total = _counts(result.get("counts"))
    gate = str(result.get("gate") or "")
    picture = _picture(result, views, total)
    return Story(
        job=str(result.get("job") or "job"),
        gate=gate,
        moment=GATES[gate].moment if gate in GATES else "",
        verdict=verdict,
        style=_STYLES.get(verdict, "stopped"),
        open=verdict == PASS,
        sentence=_sentence(verdict, picture, groups, views),
        picture=picture,
        reasons=[str(reason) for reason in result.get("reasons") or ()],
        reasons_opened=REASONS,
        steps=_steps(verdict, gate, groups, views),
        counts=counts,
        total=total,
        pairs=_pairs(result.get("comparisons") or ()),
        groups=groups,
        opened=OPEN,
        tables=[name for name in _TABLES if name in _mapping(result.get("files"))],
        unlisted=all_differences - grouped,
        undecided=_entries(result.get("undecided")),
        undecided_total=int(result.get("undecided_total") or 0),
        changed=_entries(result.get("changed")),
        changed_total=int(result.get("changed_total") or 0),
        leftovers=_leftovers(result.get("leftovers")),
        not_compared=_not_compared(result.get("not_compared")),
        views=_fewer(views),
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


def _pairs(comparisons: Iterable[Any]) -> List[Pair]:
    """Return the pairs; many brokers that a view was compared with are one, unless their differences are others."""
    alike: Dict[Any, List[Pair]] = {}
    for number, comparison in enumerate(map(_mapping, comparisons)):
        pair = Pair(
            str(comparison.get("left")),
            str(comparison.get("right")),
            *_counts(comparison.get("counts")),
            _note(comparison),
        )
        clean = not sum(pair.total[3:])
        same: Any = number  # not to be summed up
        if wording.broker_id(pair.right) is not None:
            same = (pair.left, pair.note, None if clean else json.dumps(pair.counts))
        alike.setdefault(same, []).append(pair)
    pairs = []
    for same_pairs in alike.values():
        if len(same_pairs) <= ALONE:
            pairs += same_pairs
            continue
        by_kind: Dict[str, List[int]] = {}
        for pair in same_pairs:
            for kind, row in pair.counts:
                by_kind[kind] = [a + b for a, b in zip(by_kind.get(kind, [0] * len(row)), row)]
        total = [sum(column) for column in zip(*(pair.total for pair in same_pairs))]
        first = same_pairs[0]
        pairs.append(Pair(first.left, _named(pair.right for pair in same_pairs), [*by_kind.items()], total, first.note))
    return pairs


def _fewer(views: List[View]) -> List[View]:
    """Return the views; many brokers that were read without a problem are one."""
    many = [view for view in views if wording.broker_id(view.name) is not None and not (view.error or view.problems)]
    if len(many) <= ALONE:
        return views
    by_kind: Dict[str, int] = {}
    for view in many:
        for kind, number in view.by_kind.items():
            by_kind[kind] = by_kind.get(kind, 0) + number
    seconds = max((view.seconds for view in many if view.seconds is not None), default=None)
    read, moved = sum(view.read for view in many), sum(view.moved for view in many)
    summary = View(_named(view.name for view in many), read, by_kind, f"{len(many):,} brokers", seconds, "", [], moved)
    others = [view for view in views if view not in many]
    return [*others, summary]


def _named(names: Iterable[str]) -> str:
    """Return the text for views that are all brokers."""
    return wording.brokers(number for number in map(wording.broker_id, names) if number is not None)


def _note(pair: Mapping[str, Any]) -> str:
    note, same = str(pair.get("note") or ""), [wording.kind(str(kind)) for kind in pair.get("same_source") or ()]
    if not same:
        return note
    return f"{note} Not counted as agreement, since both sides read them from ZooKeeper: {_joined(same)}.".strip()


def _entries(entries: Any) -> List[Entry]:
    return [
        Entry(
            str(entry.get("kind")),
            wording.key(str(entry.get("kind")), str(entry.get("key"))),
            f"{wording.view(str(entry.get('left')))} and {wording.view(str(entry.get('right')))}",
            str(entry.get("why")),
            [_sides(difference) for difference in map(_mapping, entry.get("differences") or ())],
        )
        for entry in map(_mapping, list(entries or ())[:SHOWN])
    ]


def _not_compared(entries: Any) -> List[Tuple[str, int, str, bool]]:
    """Return (name, how many, where the first is, whether it is accepted) of what no comparison sees."""
    found = [_mapping(entry) for entry in entries or ()]
    return [
        (str(entry.get("name")), entry.get("count") or 0, str(entry.get("first") or ""), bool(entry.get("accepted")))
        for entry in sorted(found, key=lambda entry: bool(entry.get("accepted")))
    ]


def _leftovers(entries: Any) -> List[Tuple[str, int, int, int]]:
    """Return (path, znodes, bytes, ephemerals) of what the destination has outside of Kafka's subtree."""
    numbers = ("znodes", "bytes", "ephemerals")
    return [
        (str(entry.get("path")), *(int(entry.get(name) or 0) for name in numbers))  # type: ignore[misc]
        for entry in map(_mapping, list(entries or ()))
    ]


def _sides(difference: Mapping[str, Any]) -> str:
    sides = ["absent" if value is None else str(value) for value in _mapping(difference.get("sides")).values()]
    return f"{difference.get('field') or 'exists'}: {' → '.join(sides)}"


def _picture(result: Mapping[str, Any], views: List[View], total: List[int]) -> Picture:
    """Return the picture: a bar for each view that was compared with one other view, or with many of one kind."""
    of_bars: Dict[Tuple[str, str], List[Tuple[str, List[int]]]] = {}
    for comparison in map(_mapping, result.get("comparisons") or ()):
        counts = _mapping(comparison.get("counts"))
        same = comparison.get("same_source") or ()
        counted = _counts({kind: of for kind, of in counts.items() if kind not in same})[1]
        left, right = str(comparison.get("left")), str(comparison.get("right"))
        of_bars.setdefault((left, right.partition(":")[0]), []).append((right, counted))
    bars = [_bar(left, members) for (left, _family), members in of_bars.items()]
    sums = [sum(column) for column in zip(*(row[2:6] for row in bars))] or list(_parts(total))
    records = [(str(name), int(number)) for name, number in _mapping(result.get("excused")).items()]
    return Picture(bars, sum(sums), *sums, records, sum(view.moved for view in views))


def _bar(left: str, members: List[Tuple[str, List[int]]]) -> Bar:
    """Return the bar of a view that was compared with these others, [(view, counts)]."""
    parts = [sum(column) for column in zip(*(_parts(counts) for _right, counts in members))]
    wrong = [right for right, counts in members if sum(counts[3:])]
    ids = [wording.broker_id(right) for right, _counts in members]
    if len(members) > ALONE and None not in ids:
        where = "" if not wrong else _named(wrong) if len(wrong) <= NAMED else f"{len(wrong):,} of them"
        return Bar(wording.view(left), f"{len(members):,} brokers", *parts, where)
    where = _joined(list(map(wording.view, wrong))) if wrong and len(members) > 1 else ""
    return Bar(wording.view(left), wording.views(right for right, _counts in members), *parts, where)


def _parts(counts: List[int]) -> Tuple[int, int, int, int]:
    """Return how many of COUNTS agree, are excused, are undecided, differ."""
    _read, match, explained, differ, left_only, right_only, skipped = counts
    return match - explained, explained, skipped, differ + left_only + right_only


def _sentence(verdict: str, picture: Picture, groups: List[Group], views: List[View]) -> str:
    """Return what was compared with what, and what came of it."""
    if verdict == ERROR or verdict not in _STYLES:
        failed = _joined([wording.view(view.name) for view in views if view.error])
        return f"The comparison failed{f': {failed} could not be read' if failed else ''}. There is no result."
    names = wording.views(view.name for view in views if not view.error)
    of = f"{picture.read:,} comparisons of {names}" if names else f"{picture.read:,} comparisons"
    rest = [f"{picture.agree:,} agree"]
    if picture.excused:
        rest.append(f"{picture.excused:,} {_are(picture.excused)} excused")
    if verdict == DIFFER:
        kinds = _joined(list(dict.fromkeys(wording.kind(group.kind) for group in groups)))
        if picture.undecided:
            rest.append(f"{picture.undecided:,} {_are(picture.undecided)} undecided")
        differ = picture.differ or sum(group.total for group in groups)
        what = f"{differ:,} of {of} {'differs' if differ == 1 else 'differ'}"
        return f"{what}{f': {kinds}' if kinds else ''}. {_capital(_joined(rest))}."
    if verdict == INCOMPLETE:
        undecided = f"{picture.undecided:,} of {of} {_are(picture.undecided)} undecided"
        what = undecided if picture.undecided else f"Not all was compared; in {of} nothing differs"
        return f"{what}. {_capital(_joined(rest))}. What was not decided may differ."
    return f"Nothing differs in {of}, and nothing is undecided. {_capital(_joined(rest))}."


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _steps(verdict: str, gate: str, groups: List[Group], views: List[View]) -> List[Step]:
    if verdict == PASS:
        return [Step("Nothing: the run continues by itself. If it was stopped, start the same command again.")]
    if verdict == DIFFER:
        steps = [Step("Do not change the cluster before you have examined the differences below: they still exist.")]
        groups_of: Dict[str, List[Group]] = {}
        for group in groups:
            for do in group.do:
                groups_of.setdefault(do, []).append(group)
        steps += [Step(_as_sentence(do), list(map(_link, groups_of[do]))) for do in groups_of]
        if gate == "before_revert":
            how = "To roll back in spite of the differences, run the rollback with -e quorumshift_verify=false."
            return [*steps, Step(how)]
        return [*steps, Step(_AGAIN)]
    if verdict == INCOMPLETE:
        return [Step("Fix the problems in the reasons above. Nothing has to be undone."), Step(_AGAIN)]
    failed = [wording.view(view.name) for view in views if view.error]
    why = f"Fix what prevents reading {_joined(failed)}: the errors are in the section Views."
    return [Step(why if failed else "See the reason above and Spark's log, spark.log in this directory."), Step(_AGAIN)]


def _link(group: Group) -> Tuple[str, str]:
    return group.anchor, f"{wording.kind(group.kind)}{' ' + group.field if group.field else ''} ({group.total:,})"


def _as_sentence(text: str) -> str:
    text = _capital(text)
    return text if text.endswith((".", "!", "?")) else text + "."


def _groups(differences: Iterable[Mapping[str, Any]], order: List[str]) -> List[Group]:
    by_rule: Dict[Tuple[str, str, str], Dict[str, Any]] = {}
    for difference in differences:
        if difference.get("status") not in (None, "differ"):
            continue
        kind_field_rule = tuple(str(difference.get(name) or "") for name in ("kind", "field", "rule"))
        group = by_rule.setdefault(kind_field_rule, {"total": 0, "listed": 0, "shown": {}, "do": {}})
        group["total"] += 1
        if difference.get("do"):
            group["do"][str(difference["do"])] = None
        key = str(difference.get("key") or "")
        if key in group["shown"] or len(group["shown"]) < SHOWN:
            group["shown"].setdefault(key, {}).update(_values(difference))
            group["listed"] += 1
    groups = []
    for number, ((kind, field, rule), group) in enumerate(by_rule.items(), 1):
        columns = _columns({view for values in group["shown"].values() for view in values}, order)
        rows = [
            Row(wording.key(kind, key), [_cell_sides(column, wording.sides(kind, key, values)) for column in columns])
            for key, values in group["shown"].items()
        ]
        do, anchor = list(group["do"]), f"group-{number}"
        groups.append(Group(kind, field, rule, columns, group["total"], group["listed"], rows, do, anchor))
    return groups


def _columns(views: Iterable[str], order: List[str]) -> List[str]:
    """Return the columns of a group in order; brokers are one if there are many."""
    columns = sorted(views, key=lambda name: (order.index(name) if name in order else len(order), name))
    if sum(wording.broker_id(name) is not None for name in columns) <= ALONE:
        return columns
    return [*(name for name in columns if wording.broker_id(name) is None), BROKERS]


def _cell_sides(column: str, lines: Mapping[str, List[wording.Line] | None]) -> List[Side]:
    """Return the sides of a column. `lines`: wording.sides of an entity."""
    if column != BROKERS:
        return [Side("", lines[column])] if column in lines else []
    alike: Dict[str, List[str]] = {}
    for name, shown in lines.items():
        if wording.broker_id(name) is not None:
            alike.setdefault(json.dumps(shown), []).append(name)
    return [Side(_named(names), lines[names[0]]) for names in alike.values()]


def _values(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return both sides of a difference of result.json or of a row of differences.parquet."""
    if "sides" in row:
        return _mapping(row["sides"])
    return {str(row.get("left")): row.get("left_value"), str(row.get("right")): row.get("right_value")}


def _view(name: str, value: Any) -> View:
    entry = _mapping(value)
    by_kind = {str(kind): int(number) for kind, number in _mapping(entry.get("read")).items()}
    problems = [f"{item.get('where')}: {item.get('reason')}" for item in map(_mapping, entry.get("problems") or ())]
    return View(
        str(name),
        sum(by_kind.values()),
        by_kind,
        _state(_mapping(entry.get("state"))),
        entry.get("seconds"),
        str(entry.get("error") or ""),
        problems,
        int(entry.get("moved") or 0),
    )


def _state(state: Mapping[str, Any]) -> str:
    """Return the position of a view; a time in UTC."""
    shown = {name: value for name, value in state.items() if name != "time_ms" and value not in ({}, [], None)}
    at = state.get("time_ms")
    if isinstance(at, int) and 0 < at < 4_102_444_800_000:
        time = datetime.datetime.fromtimestamp(at / 1000, datetime.timezone.utc)
        shown = {"at": time.strftime("%Y-%m-%d %H:%M:%S UTC"), **shown}
    return _plain(shown)


def _rounds(rounds: Iterable[Any]) -> Dict[str, Any]:
    rows = list(map(_mapping, rounds))
    columns = list(dict.fromkeys(str(name) for row in rows for name, value in row.items() if value != {}))
    return {"round_columns": columns, "rounds": [[_cell(row.get(name)) for name in columns] for row in rows]}


def _cell(value: Any) -> str:
    """Return a value of a round; of a fence only what is set: `zxid 8589934721, new log snapshot`."""
    if not isinstance(value, Mapping):
        return _plain(value)
    names = {"log_cut_again": "new log snapshot", "said": ""}
    shown = {names.get(name, str(name)): item for name, item in value.items() if item not in (None, False, "")}
    return ", ".join(name if item is True else f"{name} {_plain(item)}".strip() for name, item in shown.items())


def _timings(timings: Mapping[str, Any]) -> List[Tuple[str, float, float]]:
    """Return (stage, seconds, share of the longest) in the job's order."""
    rows = [(str(name), float(took)) for name, took in timings.items() if isinstance(took, (int, float))]
    longest = max((took for _name, took in rows), default=0) or 1
    return [(name, took, took / longest) for name, took in rows]


def _facts(result: Mapping[str, Any]) -> List[Tuple[str, str]]:
    facts = [("digest", result.get("digest")), ("nonce", result.get("nonce")), ("schema", result.get("schema"))]
    facts += [
        (name, f"{_mapping(file).get('rows'):,} rows, sha256 {_mapping(file).get('sha256')}")
        for name, file in sorted(_mapping(result.get("files")).items())
        if isinstance(_mapping(file).get("rows"), int)
    ]
    facts += sorted(_mapping(result.get("versions")).items())
    return [(str(name), _plain(value)) for name, value in facts if value is not None]


def _plain(value: Any) -> str:
    """Return a value as text; numbers without separators, since operators search logs for them."""
    if isinstance(value, Mapping):
        return ", ".join(f"{str(name).replace('_', ' ')} {_plain(item)}" for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return "; ".join(map(_plain, value))
    return "" if value is None else str(value)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _joined(names: List[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1] if names else ""
