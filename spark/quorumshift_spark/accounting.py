# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every entity that was read is accounted for, once in each comparison that concerns it. Pure.

For each comparison and kind: read = match + differ + left_only + right_only + skipped, where read counts the keys that
one side or both have; and on each side, what the view gave is what these keys say it has.
"""

from __future__ import annotations

import collections
from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple

from quorumshift_spark import rules
from quorumshift_spark.compare import MATCH, OUTCOMES, SKIPPED, Outcome, Side
from quorumshift_spark.parity import Group
from quorumshift_spark.rules import Comparison
from quorumshift_spark.views import Absent, Key

Counts = Dict[str, int]
"""read, one count for each of OUTCOMES, and `explained`: how many of `match` are no match of values (changed since the
baseline, or may stand on one side alone)."""


class Account(NamedTuple):
    """`counts`: {comparison: {kind: Counts}}. `wrong`: contradictions, each of which makes the result incomplete."""

    counts: Dict[Comparison, Dict[str, Counts]]
    wrong: List[str]


def account(
    bundles: Sequence[Group],
    equal: Mapping[Tuple[int, str], int],
    beyond: Mapping[Tuple[int, str], int],
    outcomes: Mapping[Key, Mapping[Comparison, Outcome]],
    first: Mapping[Key, Mapping[str, Side]],
    last: Mapping[Key, Mapping[str, Side]],
    read: Mapping[str, Mapping[str, int]],
) -> Account:
    """The account of a job.

    :arg equal: {(bundle, kind): keys} that are equal in all comparisons of a bundle.
    :arg beyond: {(bundle, kind): keys} unequal and not looked at, since there were too many: skipped.
    :arg outcomes: what came of the other keys; `first` and `last`: what the views said of them at the first reading and
        when they were settled.
    :arg read: {view: {kind: entities}} of the first reading.
    """
    counts: Dict[Comparison, Dict[str, Counts]] = {}
    wrong: List[str] = []
    sides: Dict[Tuple[Comparison, str], List[int]] = collections.defaultdict(lambda: [0, 0])
    for number, bundle in enumerate(bundles):
        for comparison in bundle.members:
            counts[comparison] = {kind: dict.fromkeys(("read", *OUTCOMES, "explained"), 0) for kind in bundle.kinds}
            for kind in bundle.kinds:
                same, skipped = equal.get((number, kind), 0), beyond.get((number, kind), 0)
                _add(counts[comparison][kind], MATCH, same)
                _add(counts[comparison][kind], SKIPPED, skipped)
                sides[(comparison, kind)] = [same, same]
    for key, results in outcomes.items():
        for comparison, outcome in results.items():
            seen = first if comparison.relation == rules.LOGS else last
            for side, view in enumerate((comparison.left, comparison.right)):
                sides[(comparison, key[0])][side] += _is_there(seen[key], view)
            if outcome.outcome is not None:
                _add(counts[comparison][key[0]], outcome.outcome, 1)
                counts[comparison][key[0]]["explained"] += outcome.outcome == MATCH and outcome.explained is not None
    if not any(beyond.values()):
        for (comparison, kind), found in sides.items():
            for side, view in enumerate((comparison.left, comparison.right)):
                given = read.get(view, {}).get(kind, 0)
                if comparison.relation != rules.LOGS:
                    given += sum(
                        _is_there(last[key], view) - _is_there(first[key], view) for key in last if key[0] == kind
                    )
                if found[side] != given:
                    wrong.append(
                        f"{comparison.left} and {comparison.right}: {found[side]} {kind} of {view} are accounted for, "
                        f"{given} were read"
                    )
    return Account(counts, wrong)


def by_kind(counts: Mapping[Comparison, Mapping[str, Counts]]) -> Dict[str, Counts]:
    """The counts of all comparisons, added up by kind."""
    total: Dict[str, Counts] = {}
    for kinds in counts.values():
        for kind, found in kinds.items():
            into = total.setdefault(kind, dict.fromkeys(found, 0))
            for name, count in found.items():
                into[name] += count
    return total


def moved(first: Mapping[Key, Mapping[str, Side]], last: Mapping[Key, Mapping[str, Side]], view: str) -> int:
    """How many entities of a view changed, came or went between the first reading and the last."""
    return sum(_text(first[key].get(view)) != _text(last[key].get(view)) for key in last)


def _add(counts, outcome, count):
    counts["read"] += count
    counts[outcome] += count


def _is_there(views, name):
    return not isinstance(views.get(name, Absent({})), Absent)


def _text(side):
    return None if side is None or isinstance(side, Absent) else side.fields
