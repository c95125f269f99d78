# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rows of the suite of planted divergences, and its results in build/planted/results.json.

A row is evaluated by result.json alone: verdict, reasons, differences, undecided, problems of a view. `tools.planted`
writes docs/planted-divergences.md from the results.
"""

from __future__ import annotations

import json
import re
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Sequence, Tuple

from tests.integration import servers

RESULTS = servers.BUILD.parent / "build" / "planted" / "results.json"
FOUND, MISSED = "found", "missed"

Result = Dict[str, Any]


def text(key: Sequence[Any]) -> str:
    """Return a key as result.json shows it."""
    return json.dumps(list(key), separators=(",", ":"), ensure_ascii=False)


class Expected(NamedTuple):
    """What the comparison must say. `words`: for the table; `find`: {result: (found, rule)}, None where it is missing;
    `keys`: (kind, key) that it accounts for."""

    words: str
    find: Callable[[Result], Tuple[str, str] | None]
    keys: Tuple[Tuple[str, str], ...] = ()


class Row(NamedTuple):
    """One planted divergence.

    `planted`: in words. `expected`: see Expected. `plant`: plants it; its argument depends on the group.
    `also`: (kind, key) that differ as a consequence.
    """

    planted: str
    expected: Expected
    plant: Callable[[Any], Any] = lambda _where: None
    also: Tuple[Tuple[str, str], ...] = ()


def shown(kind: str, key: Sequence[Any]) -> str:
    """Return a key for the table, where nothing differs from run to run."""
    return "of a token" if kind in ("delegation_token", "token_hmac") and len(key[0]) == 22 else text(key)


def keys(kind: str, *parts: Sequence[Any]) -> Tuple[Tuple[str, str], ...]:
    """Return (kind, key) of each."""
    return tuple((kind, text(key)) for key in parts)


def differs(
    kind: str, key: Sequence[Any], field: str | None = None, relation: str = "zookeeper_log", view: str = ""
) -> Expected:
    """Expect a difference. `field`: None where one side lacks the entity; `view`: one of its sides."""
    what = f"differ: {kind} {shown(kind, key)}{f' {field}' if field else ''}, {_RELATIONS[relation]}"

    def find(result: Result) -> Tuple[str, str] | None:
        for difference in result["differences"]:
            if (difference["kind"], difference["key"], difference["field"], difference["relation"]) == (
                kind,
                text(key),
                field,
                relation,
            ) and (not view or view in difference["sides"]):
                sides = sorted(difference["sides"], key=lambda name: difference["sides"][name] is not None)
                found = f"differ, {sides[0]} lacks it" if difference["sides"][sides[0]] is None else "differ"
                return found, _rule(difference["relation"], kind, field, difference["rule"])
        return None

    return Expected(what, find, keys(kind, key))


def changed(kind: str, left: Sequence[Any], right: Sequence[Any], relation: str = "zookeeper_log") -> Expected:
    """Expect two differences: an entity that is its own key (an ACL) has another content on each side."""
    first, other = differs(kind, left, None, relation), differs(kind, right, None, relation)

    def find(result: Result) -> Tuple[str, str] | None:
        found = [each.find(result) for each in (first, other)]
        return ("differ, each side lacks the other's", found[0][1]) if all(found) else None

    return Expected(
        f"differ: {kind} {text(left)} and {text(right)}, {_RELATIONS[relation]}", find, first.keys + other.keys
    )


def closed(kind: str, key: Sequence[Any], relation: str = "since") -> Expected:
    """Expect a difference or `incomplete` for this key: it is not excused."""

    def find(result: Result) -> Tuple[str, str] | None:
        for difference in result["differences"]:
            if (difference["kind"], difference["key"], difference["relation"]) == (kind, text(key), relation):
                return "differ", _rule(relation, kind, difference["field"], difference["rule"])
        for open_row in result["undecided"]:
            if (open_row["kind"], open_row["key"], _relation(open_row)) == (kind, text(key), relation):
                return "incomplete", _short(open_row["why"])
        return None

    return Expected(f"differ or incomplete: {kind} {shown(kind, key)}, {_RELATIONS[relation]}", find, keys(kind, key))


def undecided(kind: str, key: Sequence[Any], why: str) -> Expected:
    """Expect that a key cannot be decided, for a reason that `why` matches."""

    def find(result: Result) -> Tuple[str, str] | None:
        for open_row in result["undecided"]:
            if (open_row["kind"], open_row["key"]) == (kind, text(key)) and re.search(why, open_row["why"]):
                return "incomplete", _short(open_row["why"])
        return None

    return Expected(f"incomplete: {kind} {shown(kind, key)}", find, keys(kind, key))


def problem(view: str, where: str) -> Expected:
    """Expect a view to name a place that it cannot read."""

    def find(result: Result) -> Tuple[str, str] | None:
        for known_problem in (result["views"].get(view) or {}).get("problems", ()):
            if known_problem["where"] == where and result["verdict"] != "pass":
                return f"{view} names it", _short(known_problem["reason"])
        return None

    return Expected(f"not passed: {view} names {where}", find)


def said(verdict: str, reason: str, words: str = "") -> Expected:
    """Expect a verdict and a reason that matches. `verdict`: alternatives with `|`."""

    def find(result: Result) -> Tuple[str, str] | None:
        if not re.fullmatch(verdict, result["verdict"]):
            return None
        for why in result["reasons"]:
            if re.search(reason, why):
                return result["verdict"], _short(why)
        return None

    return Expected(words or verdict.replace("|", " or "), find)


_RELATIONS = {
    "zookeeper_log": "ZooKeeper and log",
    "served": "served by a broker",
    "logs": "two logs",
    "since": "baseline",
}


def _relation(comparison):
    if comparison["left"].startswith("baseline"):
        return "since"
    if comparison["right"].startswith("metadata_log"):
        return "zookeeper_log" if comparison["left"] == "zookeeper" else "logs"
    return "served"


def _rule(relation, kind, field, rule):
    return f"{kind} {field or '(exists)'}, {_RELATIONS[relation]}: {rule.partition(';')[0]}"


def _short(reason):
    """Return the reason without what differs from run to run."""
    reason = re.sub(r"\S*/(\.build|tmp)/\S*/", "", reason)
    reason = re.sub(r"127\.0\.0\.1:\d+", "HOST:PORT", reason)
    reason = re.sub(r"\b[0-9a-f]{64}\b", "...", reason)
    reason = re.sub(r"\b\d{2,}\b", "N", reason)
    return reason if len(reason) <= 140 else reason[:137] + "..."


# --- results ----------------------------------------------------------------------------------------


def evaluate(
    group: str, gate: str, rows: Iterable[Row], result: Result, keep: bool = False, strict: bool = True
) -> List[str]:
    """Record the rows of a run. Return a line for each row that was missed and each difference that no row planted.

    `keep`: keep the rows that the group has, instead of replacing them. `strict`: nothing else may be found.
    """
    recorded, wrong, accounted = [], [], set()
    for row in rows:
        found = row.expected.find(result)
        accounted |= {*row.expected.keys, *row.also}
        status = FOUND if found else MISSED
        what, rule = found or ("nothing", "")
        line = {"group": group, "gate": gate, "planted": row.planted, "expected": row.expected.words}
        recorded.append({**line, "found": what, "rule": rule, "status": status})
        if status == MISSED:
            wrong.append(f"missed: {row.planted}: expected {row.expected.words}")
    for outcome in [*result.get("differences", ()), *result.get("undecided", ())] if strict else ():
        if not accounted & {(outcome["kind"], outcome["key"]), (outcome["kind"], "*")}:
            wrong.append(f"not planted: {outcome.get('text') or outcome['why']} {outcome['kind']} {outcome['key']}")
    names = [line["planted"] for line in recorded]
    assert len(set(names)) == len(names), f"{group}: two rows of one name"
    _record("rows", lambda old: [*(line for line in old or () if keep or line["group"] != group), *recorded])
    return wrong


def record_changes(run: str, given: Dict[str, Any]) -> None:
    """Record the comparisons of a run under changes so far, in place of what it recorded before."""
    _record(
        "changes", lambda old: [*(old_run for old_run in old or () if old_run.get("run") != run), {"run": run, **given}]
    )


def _record(name, update):
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results[name] = update(results.get(name))
    RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
