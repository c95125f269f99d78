# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares what each node has of its own with what was known of it: few values, compared on the driver. Pure.

Settings are compared with those of the same node at the baseline, and the ids of the directories that a broker
registered in the log with those in meta.properties on its host.
"""

from __future__ import annotations

import collections
from typing import Dict, Iterable, List, Mapping, NamedTuple, Sequence

from quorumshift_spark import rules
from quorumshift_spark.compare import DIFFER, MATCH, OUTCOMES, Difference
from quorumshift_spark.normal_form import canonical

Settings = Dict[str, Dict[str, str]]
"""{view: {key of a setting: its value as canonical JSON}}."""


class Compared(NamedTuple):
    """Comparisons as result.json lists them, and their differences."""

    comparisons: List[Dict[str, object]]
    differences: List[Difference]


def compared(before: Settings, now: Settings, registered: Mapping[int, str], on_hosts: Mapping[int, str]) -> Compared:
    """Compare the settings that a node has now and had at the baseline, and the directories that are known twice.

    :arg registered: {broker: ids of its directories in the log, as canonical JSON}; `on_hosts`: those on its host.
    """
    settings = [
        _sides("setting", key, "value", rules.SINCE, {f"{rules.BASELINE}:{view}": had[key], view: now[view][key]})
        for view, had in sorted(before.items())
        for key in sorted(had.keys() & now.get(view, {}).keys())
    ]
    directories = [
        _sides(
            "broker", canonical([one]), "log_dirs", rules.SERVED, {rules.LOG: registered[one], f"host of {one}": ids}
        )
        for one, ids in sorted(on_hosts.items())
        if one in registered
    ]
    comparisons = [
        *_counted(settings, "setting", rules.BASELINE, "nodes", rules.SINCE, "what each node's file says"),
        *_counted(directories, "broker", rules.LOG, "hosts", rules.SERVED, "ids of directories, in meta.properties"),
    ]
    return Compared(comparisons, [one for one in (*settings, *directories) if _differs(one)])


def _sides(kind: str, key: str, field: str, relation: str, sides: Dict[str, str | None]) -> Difference:
    rule = rules.rule(kind, field)
    return Difference(kind, key, field, sides, relation, f"{rules.EQUAL}; {rule.why}", rule.do)


def _differs(one: Difference) -> bool:
    return len(set(one.sides.values())) > 1


def _counted(
    all_sides: Sequence[Difference], kind: str, left: str, right: str, relation: str, note: str
) -> Iterable[Dict[str, object]]:
    if all_sides:
        found = collections.Counter(DIFFER if _differs(one) else MATCH for one in all_sides)
        counts = {"read": len(all_sides), **{name: found[name] for name in OUTCOMES}, "explained": 0}
        shown = {"left": left, "right": right, "relation": relation, "note": note}
        yield {**shown, "same_source": [], "counts": {kind: counts}}
