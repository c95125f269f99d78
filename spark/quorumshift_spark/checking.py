# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides about the unequal keys of a gate: compares, excuses and re-checks them, and sorts the outcomes. Pure, but for
the readings that it requests.

metadata_parity calls it with what Spark found unequal; tests/unit/spark/model calls it with random histories.
"""

from __future__ import annotations

import collections
import time
from typing import Callable, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

from quorumshift_spark import excuses, recheck, rules
from quorumshift_spark.compare import DIFFER, LEFT_ONLY, MATCH, RIGHT_ONLY, SKIPPED, Outcome, Side
from quorumshift_spark.excuses import Evidence
from quorumshift_spark.recheck import Fence, Reread, Round
from quorumshift_spark.views import Key, Problem


class Checked(NamedTuple):
    """The unequal keys after the re-checks: {key: {view: side}} at the `first` and `last` reading, {key: {comparison:
    outcome}}, and `undecided`: {(key, comparison): why}. `rounds`, `problems`: of the re-checks."""

    first: Dict[Key, Dict[str, Side]]
    last: Dict[Key, Dict[str, Side]]
    outcomes: Dict[Key, Dict[rules.Comparison, Outcome]]
    undecided: Dict[Tuple[Key, rules.Comparison], str]
    rounds: List[Round]
    problems: Dict[str, List[Problem]]


class Entry(NamedTuple):
    """An outcome that is not a plain match. `why`: for the operator, "" for a difference."""

    key: Key
    comparison: rules.Comparison
    outcome: Outcome
    why: str


class Sorted(NamedTuple):
    """`differing`, `undecided`: close the gate; `changed`: excused, each with its record."""

    differing: List[Entry]
    undecided: List[Entry]
    changed: List[Entry]


def check(
    keys: Mapping[Key, Mapping[str, Side]],
    comparisons: Sequence[rules.Comparison],
    reread: Mapping[str, Reread],
    evidence: Evidence,
    advance: Callable[[], Fence],
    rounds: int,
    pause_s: float,
    between: Mapping[Key, Sequence[Side]],
    sleep: Callable[[float], None] = time.sleep,
) -> Checked:
    """Compare these keys as first read, and re-check those that differ. Arguments: see recheck.recheck."""
    first = {key: recheck.outcomes_of(key, sides, comparisons, evidence) for key, sides in keys.items()}
    todo = {
        key: keys[key] for key, outcomes in first.items() if any(outcome.differences for outcome in outcomes.values())
    }
    found = recheck.recheck(todo, comparisons, reread, evidence, advance, rounds, pause_s, between, sleep)
    for key in todo:
        for comparison, outcome in found.outcomes.get(key, {}).items():
            if outcome.outcome in (MATCH, None):
                replaced = excuses.overwritten(comparison, key, keys[key], found.sides[key], evidence)
                found.outcomes[key][comparison] = replaced or outcome
    given = {key: dict(views) for key, views in keys.items()}
    return Checked(
        given,
        {**{key: dict(views) for key, views in keys.items()}, **found.sides},
        {**first, **found.outcomes},
        found.undecided,
        found.rounds,
        found.problems,
    )


def count_removals(checked: Checked, evidence: Evidence) -> None:
    """Replace the outcomes of what disappeared where fewer znodes were deleted than disappeared."""
    unexplained = excuses.unexplained_removals(checked.outcomes, checked.last, evidence.baselines)
    for key, outcomes in unexplained.items():
        checked.outcomes[key] = {**checked.outcomes[key], **outcomes}


def in_order(checked: Checked) -> Sorted:
    """Return the outcomes that are no plain match, in the order of the keys."""
    found = Sorted([], [], [])
    for key in sorted(checked.outcomes):
        for comparison, outcome in checked.outcomes[key].items():
            why = checked.undecided.get((key, comparison))
            if outcome.outcome == MATCH:
                if outcome.explained and comparison.relation == rules.SINCE:
                    found.changed.append(Entry(key, comparison, outcome, outcome.explained))
            elif why or outcome.outcome == SKIPPED:
                found.undecided.append(Entry(key, comparison, outcome, why or outcome.explained or ""))
            elif outcome.differences:
                found.differing.append(Entry(key, comparison, outcome, ""))
    found.changed.sort(key=lambda entry: entry.why != excuses.ACCEPTED)  # what no record shows is listed first
    return found


def since_baseline(found: Sorted) -> Dict[str, int]:
    """Return how many entities changed since the baseline, and how many of the baseline's were removed, and how many of
    both only the operator accepted."""
    changed = {entry.key for entry in found.changed if entry.outcome.changes}
    removed = {
        entry.key
        for entry in found.changed
        for change in entry.outcome.changes
        if change.field is None and change.sides[entry.comparison.right] is None
    }
    accepted = {entry.key for entry in found.changed if entry.why == excuses.ACCEPTED}
    return {"changed": len(changed - removed), "removed": len(removed), "accepted": len(accepted)}


def excused(checked: Checked) -> Dict[str, int]:
    """Return how many comparisons match although their sides are not equal, by the excuse; most first. Of views that
    have different sources."""
    found: Dict[str, int] = collections.Counter(
        outcome.excuse or excuses.ONE_SIDE.name
        for key, outcomes in checked.outcomes.items()
        for comparison, outcome in outcomes.items()
        if outcome.outcome == MATCH and outcome.explained is not None and key[0] not in comparison.same_source
    )
    return dict(sorted(found.items(), key=lambda entry: (-entry[1], entry[0])))


def is_different(outcomes: Iterable[Outcome]) -> bool:
    """Return whether one of the outcomes is a difference."""
    return any(outcome.outcome in (DIFFER, LEFT_ONLY, RIGHT_ONLY) for outcome in outcomes)
