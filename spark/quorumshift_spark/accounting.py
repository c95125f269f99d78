# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks that every entity read is counted once in each comparison of its kind. Pure.

For each comparison and kind: read = match + differ + left_only + right_only + skipped, where read counts the keys that
one side or both have. The entities counted on each side must equal those that its view returned.
"""

from __future__ import annotations

import collections
from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple

from quorumshift_spark import rules
from quorumshift_spark.compare import MATCH, OUTCOMES, SKIPPED, Outcome, Side
from quorumshift_spark.parity import Bundle
from quorumshift_spark.rules import Comparison
from quorumshift_spark.views import Absent, Key

Counts = Dict[str, int]
"""read, one count for each of OUTCOMES, and `explained`: how many of `match` have unequal values for a known reason
(changed since the baseline, or allowed on one side only)."""


class Account(NamedTuple):
    """`counts`: {comparison: {kind: Counts}}. `wrong`: contradictions; each makes the result incomplete."""

    counts: Dict[Comparison, Dict[str, Counts]]
    wrong: List[str]


def account(
    bundles: Sequence[Bundle],
    equal: Mapping[Tuple[int, str], int],
    beyond: Mapping[Tuple[int, str], int],
    outcomes: Mapping[Key, Mapping[Comparison, Outcome]],
    first: Mapping[Key, Mapping[str, Side]],
    last: Mapping[Key, Mapping[str, Side]],
    read: Mapping[str, Mapping[str, int]],
) -> Account:
    """Return the account of a job.

    :arg equal: {(bundle, kind): number of keys} equal in all comparisons of a bundle.
    :arg beyond: {(bundle, kind): number of keys} unequal and beyond the limit: skipped.
    :arg outcomes: of the other keys; `first` and `last`: their sides at the first reading and after re-checks.
    :arg read: {view: {kind: number of entities}} of the first reading.
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
            views = first if comparison.relation == rules.LOGS else last
            for side, view in enumerate((comparison.left, comparison.right)):
                sides[(comparison, key[0])][side] += _has(views[key], view)
            if outcome.outcome is not None:
                _add(counts[comparison][key[0]], outcome.outcome, 1)
                counts[comparison][key[0]]["explained"] += outcome.outcome == MATCH and outcome.explained is not None
    if not any(beyond.values()):
        for (comparison, kind), counted in sides.items():
            for side, view in enumerate((comparison.left, comparison.right)):
                expected = read.get(view, {}).get(kind, 0)
                if comparison.relation != rules.LOGS:
                    expected += sum(_has(last[key], view) - _has(first[key], view) for key in last if key[0] == kind)
                if counted[side] != expected:
                    wrong.append(
                        f"{comparison.left} and {comparison.right}: {counted[side]} {kind} entities of {view} were "
                        f"counted, {expected} were read"
                    )
    return Account(counts, wrong)


def by_kind(counts: Mapping[Comparison, Mapping[str, Counts]]) -> Dict[str, Counts]:
    """Return the counts by kind, summed over the comparisons of views that have different sources."""
    total: Dict[str, Counts] = {}
    for comparison, kinds in counts.items():
        for kind, kind_counts in kinds.items():
            if kind in comparison.same_source:
                continue
            into = total.setdefault(kind, dict.fromkeys(kind_counts, 0))
            for name, count in kind_counts.items():
                into[name] += count
    return total


def moved(first: Mapping[Key, Mapping[str, Side]], last: Mapping[Key, Mapping[str, Side]], view: str) -> int:
    """Return how many entities of a view changed, appeared or disappeared between the first and the last reading."""
    return sum(_text(first[key].get(view)) != _text(last[key].get(view)) for key in last)


def _add(counts, outcome, count):
    counts["read"] += count
    counts[outcome] += count


def _has(views, name):
    return not isinstance(views.get(name, Absent({})), Absent)


def _text(side):
    return None if side is None or isinstance(side, Absent) else side.fields
