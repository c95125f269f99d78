# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares what each node has of its own with what was known of it: few values, compared on the driver. Pure.

Settings are compared between nodes, and with those of the same node at the baseline; the ids of the directories that a
broker registered in the log with those in meta.properties on its host.
"""

from __future__ import annotations

import collections
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

from quorumshift_spark import normal_form as form
from quorumshift_spark import rules
from quorumshift_spark.compare import DIFFER, MATCH, OUTCOMES, Difference
from quorumshift_spark.normal_form import canonical

Settings = Dict[str, Dict[str, str]]
"""{view: {key of a setting: its value as canonical JSON}}."""


class Compared(NamedTuple):
    """Comparisons as result.json lists them, and their differences."""

    comparisons: List[Dict[str, object]]
    differences: List[Difference]


_BY_ROLE = ("super.users",)  # controllers have more of them


def with_files(settings: Settings, views: Mapping[str, Any]) -> Settings:
    """Return the settings with those of the nodes' files. `views`: of job.json."""
    found = {view: dict(values) for view, values in settings.items()}
    for role in (rules.BROKER, rules.CONTROLLER):
        for entry in views.get(f"{role}s") or ():
            for name, value in (entry.get("file") or {}).items():
                entity = form.setting(name, value)
                found.setdefault(f"{role}:{entry['id']}", {})[entity.key] = entity.fields["value"]
    return found


def compared(before: Settings, now: Settings, registered: Mapping[int, str], on_hosts: Mapping[int, str]) -> Compared:
    """Compare the settings of nodes, with each other and with the baseline, and the directories that are known twice.

    :arg registered: {broker: ids of its directories in the log, as canonical JSON}; `on_hosts`: those on its host.
    """
    between = [difference for group in _groups(now) for difference in _with_first(*group, now)]
    since = [
        _sides("setting", key, "value", rules.SINCE, {f"{rules.BASELINE}:{view}": had[key], view: now[view][key]})
        for view, had in sorted(before.items())
        for key in sorted(had.keys() & now.get(view, {}).keys())
    ]
    directories = [
        _sides(
            "broker",
            canonical([broker]),
            "log_dirs",
            rules.SERVED,
            {rules.LOG: registered[broker], f"host of {broker}": ids},
        )
        for broker, ids in sorted(on_hosts.items())
        if broker in registered
    ]
    comparisons = [
        *_counted(between, "setting", "nodes", "nodes", rules.SERVED, "what each node's file says"),
        *_counted(since, "setting", rules.BASELINE, "nodes", rules.SINCE, "what each node's file says"),
        *_counted(directories, "broker", rules.LOG, "hosts", rules.SERVED, "ids of directories, in meta.properties"),
    ]
    return Compared(
        comparisons, [difference for difference in (*between, *since, *directories) if _differs(difference)]
    )


def _groups(now: Settings) -> Iterable[Tuple[str, List[str]]]:
    """Yield each setting with the nodes that must have the same value. A release of Kafka that lacks a setting does not
    serve it: such a node is in no group, and the others are compared all the same."""
    for key in sorted({key for values in now.values() for key in values}):
        having = sorted(view for view in now if key in now[view])
        by_role = form.key_of(key)[0] in _BY_ROLE
        for role in (rules.BROKER, rules.CONTROLLER) if by_role else ("",):
            yield key, [view for view in having if view.startswith(role)]


def _with_first(key: str, views: Sequence[str], now: Settings) -> Iterable[Difference]:
    """Yield the comparison of each node with one that has the value of most of them, a controller if there is one."""
    if len(views) > 1:
        common = collections.Counter(now[view][key] for view in views).most_common(1)[0][0]
        same = [view for view in views if now[view][key] == common]
        first = min(same, key=lambda view: (not view.startswith(rules.CONTROLLER), view))
        for view in views:
            if view != first:
                sides = {first: common, view: now[view][key]}
                yield _sides("setting", key, "value", rules.SERVED, sides)


def _sides(kind: str, key: str, field: str, relation: str, sides: Dict[str, str | None]) -> Difference:
    rule = rules.rule(kind, field)
    return Difference(kind, key, field, sides, relation, f"{rules.EQUAL}; {rule.why}", rule.do)


def _differs(difference: Difference) -> bool:
    return len(set(difference.sides.values())) > 1


def _counted(
    all_sides: Sequence[Difference], kind: str, left: str, right: str, relation: str, note: str
) -> Iterable[Dict[str, object]]:
    if all_sides:
        found = collections.Counter(DIFFER if _differs(difference) else MATCH for difference in all_sides)
        counts = {"read": len(all_sides), **{name: found[name] for name in OUTCOMES}, "explained": 0}
        shown = {"left": left, "right": right, "relation": relation, "note": note}
        yield {**shown, "same_source": [], "counts": {kind: counts}}
