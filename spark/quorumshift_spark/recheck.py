# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Differences on a live cluster, read again in bounded rounds until each is settled, proven, or given up as incomplete.

A live cluster moves while it is read, so that two views read one after the other may differ without anything being
wrong. Each round reads the keys that still differ, and those only, from every view that is compared. A difference is
proven when no change in flight can explain it:

- ZooKeeper and the log: the fence is /migration, whose offset says which records ZooKeeper has. The log was cut at or
  after the offset that /migration showed at zxid F, and ZooKeeper was read after /migration had passed the cut. What
  ZooKeeper last changed at or before F is then in the log as well, and nothing later has touched it: it must be equal.
  What changed after F may have changed after the cut, and needs another cut of the log: if the log says the same in
  STABLE cuts in a row, what ZooKeeper showed between them is wrong.
- two logs cut at the same offset: at once, and they are not read again.
- ZooKeeper and a broker: both sides the same in STABLE readings in a row, with a pause between them.
- the log and a broker: the broker's side the same in STABLE readings in a row, and the log's side known to be current:
  cut again before each of them, or equal to ZooKeeper's and not changed there since F.
- the baseline: at once, since what changed after it is no difference (compare).

What cannot be decided when the rounds are over is `unsettled`, with the reason: the result is incomplete.
"""

from __future__ import annotations

import concurrent.futures
import time
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

from quorumshift_spark import rules
from quorumshift_spark.compare import DIFFER, LEFT_ONLY, MATCH, RIGHT_ONLY, Outcome, Side, compare
from quorumshift_spark.rules import Comparison
from quorumshift_spark.views import Absent, Key, Problem, Statement, family

STABLE = 2
_AT_ONCE = 16  # views that are read again at the same time: there is one of each broker
_UNEQUAL = (DIFFER, LEFT_ONLY, RIGHT_ONLY)


class Fence(NamedTuple):
    """Where the round stands. `zxid`: F of the module's docstring, None where there is none. `cut_again`: whether the
    log was cut again in this round. `said`: what went wrong with the fence, for the reason of what is not settled."""

    zxid: int | None
    cut_again: bool
    said: str = ""


class Round(NamedTuple):
    """One round for the report: how many keys were read again, and how many of them it settled or proved."""

    number: int
    keys: int
    settled: int
    proven: int
    seconds: float
    fence: Dict[str, Any]


class Settled(NamedTuple):
    """`sides`: {key: {view: side}} as last read, for every key that was given. `outcomes`: {key: {comparison: outcome}}
    of those. `unsettled`: {(key, comparison): why}. `problems`: of the views that were read again."""

    sides: Dict[Key, Dict[str, Side]]
    outcomes: Dict[Key, Dict[Comparison, Outcome]]
    unsettled: Dict[Tuple[Key, Comparison], str]
    rounds: List[Round]
    problems: Dict[str, List[Problem]]


Reread = Callable[[Iterable[Key]], Tuple[Dict[Key, Side], Statement]]


def outcomes_of(
    key: Key, sides: Mapping[str, Side], comparisons: Sequence[Comparison], baselines: Mapping[str, Mapping[str, int]]
) -> Dict[Comparison, Outcome]:
    """Every comparison that concerns a key. `baselines`: {baseline view: its state}."""
    kind, text = key
    nowhere = Absent({})
    return {
        comparison: compare(
            comparison,
            kind,
            text,
            sides.get(comparison.left, nowhere),
            sides.get(comparison.right, nowhere),
            baselines.get(comparison.left),
        )
        for comparison in comparisons
        if kind in comparison.kinds
    }


def settle(
    sides: Mapping[Key, Mapping[str, Side]],
    comparisons: Sequence[Comparison],
    reread: Mapping[str, Reread],
    baselines: Mapping[str, Mapping[str, int]],
    advance: Callable[[], Fence],
    rounds: int,
    pause_s: float,
    sleep: Callable[[float], None] = time.sleep,
) -> Settled:
    """Settle the keys of `sides`, which differ somewhere.

    :arg reread: {view name: View.reread} of the views that can be read again; baselines cannot and need not.
    :arg advance: takes the fence of a round: asks for another cut of the log where that is possible, and returns once
        ZooKeeper has passed the cut.
    Raises what `reread` and `advance` raise.
    """
    last: Dict[Key, Dict[str, Side]] = {key: dict(views) for key, views in sides.items()}
    result = Settled(last, {}, {}, [], {})
    same: Dict[Tuple[Key, Comparison], int] = {}
    fresh: Dict[Tuple[Key, Comparison], int] = {}
    todo = set(last)
    for number in range(1, rounds + 1):
        if not todo:
            break
        if number > 1:
            sleep(pause_s)
        started = time.monotonic()
        fence = advance()
        before = {key: dict(last[key]) for key in todo}
        _read_again(todo, comparisons, reread, last, result.problems)
        keys, proven = len(todo), 0
        for key in sorted(todo):
            outcomes = {
                **outcomes_of(key, last[key], [c for c in comparisons if c.relation != rules.LOGS], baselines),
                **outcomes_of(key, sides[key], [c for c in comparisons if c.relation == rules.LOGS], baselines),
            }
            result.outcomes[key] = outcomes
            open_ones = {}
            for comparison, outcome in outcomes.items():
                place = (key, comparison)
                if outcome.outcome not in _UNEQUAL:
                    same.pop(place, None)
                    fresh.pop(place, None)
                    continue
                right = _same(before[key].get(comparison.right), last[key].get(comparison.right))
                left = _same(before[key].get(comparison.left), last[key].get(comparison.left))
                log = right if comparison.relation == rules.ZOOKEEPER_LOG else left
                same[place] = same.get(place, 0) + 1 if left and right else 1
                fresh[place] = fresh.get(place, 0) + 1 if log and fence.cut_again else int(fence.cut_again)
                why = _why_open(comparison, last[key], outcomes, fence, same[place], fresh[place])
                if why:
                    open_ones[place] = why
            result.unsettled.update(open_ones)
            for comparison in outcomes:
                if (key, comparison) not in open_ones:
                    result.unsettled.pop((key, comparison), None)
            if not open_ones:
                todo.discard(key)
                proven += any(outcome.outcome in _UNEQUAL for outcome in outcomes.values())
        reported = {"zxid": fence.zxid, "log_cut_again": fence.cut_again, "said": fence.said}
        seconds = round(time.monotonic() - started, 3)
        result.rounds.append(Round(number, keys, keys - len(todo) - proven, proven, seconds, reported))
    return result


def _read_again(todo, comparisons, reread, last, problems):
    wanted = {}
    for name in reread:
        kinds = {kind for c in comparisons if name in (c.left, c.right) for kind in c.kinds}
        keys = {key for key in todo if key[0] in kinds}
        if keys:
            wanted[name] = keys
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        readings = {name: pool.submit(reread[name], keys) for name, keys in wanted.items()}
    for name, reading in readings.items():
        found, statement = reading.result()
        problems[name] = statement.problems
        for key in wanted[name]:
            last[key][name] = found[key]


def _same(one, other):
    if isinstance(one, Absent) or isinstance(other, Absent) or one is None or other is None:
        return isinstance(one, (Absent, type(None))) and isinstance(other, (Absent, type(None)))
    return one.fields == other.fields and one.at == other.at


def _why_open(comparison, sides, outcomes, fence, same, fresh):
    """Why a change in flight may still explain this difference; None where none can."""
    if comparison.relation in (rules.SINCE, rules.LOGS):
        return None
    if comparison.relation == rules.ZOOKEEPER_LOG:
        proven = fresh >= STABLE or _is_before(sides.get(comparison.left), fence)
        return None if proven else _later(comparison, fence)
    if same < STABLE:
        return f"{comparison.right}: seen in {same} of {STABLE} readings in a row"
    if family(comparison.left) == rules.ZOOKEEPER or fresh >= STABLE:
        return None
    agreed = any(
        c.relation == rules.ZOOKEEPER_LOG and c.right == comparison.left and outcome.outcome in (MATCH, None)
        for c, outcome in outcomes.items()
    )
    if agreed and _is_before(sides.get(rules.ZOOKEEPER), fence):
        return None
    return _later(comparison, fence)


def _is_before(side, fence):
    if fence.zxid is None or side is None:
        return False
    return side.at.get("zxid", fence.zxid + 1) <= fence.zxid


def _later(comparison, fence):
    said = f" ({fence.said})" if fence.said else ""
    return (
        f"{comparison.left} and {comparison.right}: may have changed after the log was cut{said}: take the log again, "
        "or hold back changes of metadata while the gate runs"
    )
