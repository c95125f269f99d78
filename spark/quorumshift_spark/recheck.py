# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Re-checks differences on a live cluster, in bounded rounds.

A live cluster changes while it is read, so two views read one after the other may differ although nothing is wrong.
Each round reads the keys that still differ from every view compared. A difference that disappears is resolved. It is
proven when no change in flight can explain it:

- ZooKeeper and the log: the offset in /migration, the fence, shows which records ZooKeeper has. The log ends at or
  after the offset that /migration had at zxid F. ZooKeeper was read after /migration had passed the end of the log.
  Then the log also has every entity that ZooKeeper last changed at or before F: the two must be equal. An entity
  changed after F may have changed after the end of the log and needs a new snapshot of the log. If the log has the
  same value in STABLE snapshots in a row, and ZooKeeper had passed the end of each, the value that ZooKeeper had
  between them is wrong. While dual-write is behind, no difference is proven.
- two logs that end at the same offset: proven at once, they are not read again.
- ZooKeeper and a broker, and two nodes: both sides are the same in STABLE readings in a row, with a pause between them.
- the log and a broker: the broker's side is the same in STABLE readings in a row, and the log's side is current: from
  a new snapshot before each reading, or equal to ZooKeeper's side, which has not changed since F. A broker in KRaft
  mode is read once it serves the log up to the end of the snapshot, or did not reach it within a bounded time.
- the baseline: proven at once, since a later change explains a difference (quorumshift_spark.excuses).

What is added and removed between two readings looks the same in both. So a side counts as the same only if the log has
no record of it between two snapshots, and if no znode above it has lost a child.

What changes all the time is never the same in the log and elsewhere, since the log is cut before the others are read.
So a side that changes is also compared with what the log had between two snapshots: one was cut before this side was
read, the other one after it. If the last STABLE readings before the newest one were equal to such a value, and each
differed from the next one, the difference is resolved. A side that stays is not compared so: it may have lost what came
since. It is not enough that it changed once: ZooKeeper may have taken that change and rejected all later ones.

A difference that the rounds do not decide is `undecided`, with the reason: the result is incomplete.
"""

from __future__ import annotations

import concurrent.futures
import time
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

from quorumshift_spark import excuses, rules
from quorumshift_spark.compare import DIFFER, LEFT_ONLY, MATCH, RIGHT_ONLY, Outcome, Side, compare
from quorumshift_spark.excuses import Evidence
from quorumshift_spark.rules import Comparison
from quorumshift_spark.views import Absent, Key, Problem, Statement, family

STABLE = 2
_AT_ONCE = 16  # views read concurrently: there is one for each broker
_UNEQUAL = (DIFFER, LEFT_ONLY, RIGHT_ONLY)


class Fence(NamedTuple):
    """The fence of a round. `zxid`: F of the module's docstring, or None. `log_cut_again`: whether this round has a new
    snapshot of the log. `error`: why there is no fence or no new snapshot. `passed`: whether ZooKeeper has the records
    of the snapshot."""

    zxid: int | None
    log_cut_again: bool
    error: str = ""
    passed: bool = True


class Round(NamedTuple):
    """One round for the report: how many keys it read again, how many of them it resolved, and how many it proved."""

    number: int
    keys: int
    resolved: int
    proven: int
    seconds: float
    fence: Dict[str, Any]


class Rechecked(NamedTuple):
    """`sides`: {key: {view: side}} as last read, for every key given. `outcomes`: {key: {comparison: outcome}} of
    these sides. `undecided`: {(key, comparison): why}. `problems`: of the views that were read again."""

    sides: Dict[Key, Dict[str, Side]]
    outcomes: Dict[Key, Dict[Comparison, Outcome]]
    undecided: Dict[Tuple[Key, Comparison], str]
    rounds: List[Round]
    problems: Dict[str, List[Problem]]


Reread = Callable[[Iterable[Key]], Tuple[Dict[Key, Side], Statement]]


def outcomes_of(
    key: Key, sides: Mapping[str, Side], comparisons: Sequence[Comparison], evidence: Evidence
) -> Dict[Comparison, Outcome]:
    """Return the outcome of every comparison of a key."""
    kind, text = key
    absent = Absent({})
    found = {}
    for comparison in comparisons:
        if kind in comparison.kinds:
            left, right = (sides.get(name, absent) for name in (comparison.left, comparison.right))
            outcome = compare(comparison, kind, text, left, right)
            if comparison.relation == rules.SINCE:
                outcome = excuses.since(comparison, key, outcome, sides, evidence)
            found[comparison] = outcome
    return found


def recheck(
    sides: Mapping[Key, Mapping[str, Side]],
    comparisons: Sequence[Comparison],
    reread: Mapping[str, Reread],
    evidence: Evidence,
    advance: Callable[[], Fence],
    rounds: int,
    pause_s: float,
    between: Mapping[Key, Sequence[Side]],
    sleep: Callable[[float], None] = time.sleep,
) -> Rechecked:
    """Re-check the keys of `sides`, each of which differs in a comparison.

    :arg reread: {view name: View.reread} of the views that can be read again; baselines are not.
    :arg advance: returns the fence of a round: requests a new snapshot of the log where that is possible, and waits
        until ZooKeeper has passed its end.
    :arg between: what keys were in the log between the last two snapshots, without their value at the first one. The
        log's `reread` fills it in.
    Raises what `reread` and `advance` raise.
    """
    last: Dict[Key, Dict[str, Side]] = {key: dict(views) for key, views in sides.items()}
    result = Rechecked(last, {}, {}, [], {})
    same: Dict[Tuple[Key, Comparison], int] = {}
    fresh: Dict[Tuple[Key, Comparison], int] = {}
    moving: Dict[Tuple[Key, Comparison], int] = {}
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
                **outcomes_of(key, last[key], [c for c in comparisons if c.relation != rules.LOGS], evidence),
                **outcomes_of(key, sides[key], [c for c in comparisons if c.relation == rules.LOGS], evidence),
            }
            of_log = between.get(key, ()) if fence.log_cut_again else ()
            is_cut = fence.log_cut_again and fence.passed
            meanwhile = _equal_meanwhile(key, outcomes, before[key], last[key], of_log) if is_cut else {}
            for comparison in comparisons:
                compared = (key, comparison)
                moving[compared] = moving.get(compared, 0) + 1 if comparison in meanwhile else 0
                if moving[compared] >= STABLE:
                    outcomes[comparison] = meanwhile[comparison]
            result.outcomes[key] = outcomes
            undecided = {}
            for comparison, outcome in outcomes.items():
                compared = (key, comparison)
                if outcome.outcome not in _UNEQUAL:
                    same.pop(compared, None)
                    fresh.pop(compared, None)
                    continue
                left, right = (
                    _stayed(name, before[key].get(name), last[key].get(name), of_log)
                    for name in (comparison.left, comparison.right)
                )
                log = right if comparison.relation == rules.ZOOKEEPER_LOG else left
                same[compared] = same.get(compared, 0) + 1 if left and right else 1
                renewed = fence.log_cut_again and (fence.passed or comparison.relation != rules.ZOOKEEPER_LOG)
                fresh[compared] = fresh.get(compared, 0) + 1 if log and renewed else int(renewed)
                why = _undecided_because(comparison, last[key], outcomes, fence, same[compared], fresh[compared])
                if why:
                    undecided[compared] = why
            result.undecided.update(undecided)
            for comparison in outcomes:
                if (key, comparison) not in undecided:
                    result.undecided.pop((key, comparison), None)
            if not undecided:
                todo.discard(key)
                proven += any(outcome.outcome in _UNEQUAL for outcome in outcomes.values())
        shown = {"zxid": fence.zxid, "log_cut_again": fence.log_cut_again, "said": fence.error}
        seconds = round(time.monotonic() - started, 3)
        result.rounds.append(Round(number, keys, keys - len(todo) - proven, proven, seconds, shown))
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


def _equal_meanwhile(key, outcomes, before, now, of_log):
    """Return a match for each side that changed and, at the reading before, was equal to what the log had then."""
    found = {}
    for comparison, outcome in outcomes.items():
        if outcome.outcome not in _UNEQUAL or comparison.relation in (rules.SINCE, rules.LOGS):
            continue
        if rules.LOG not in (comparison.left, comparison.right):
            continue
        other = comparison.right if comparison.left == rules.LOG else comparison.left
        if _same(before.get(other), now.get(other)):
            continue
        for side in (before.get(rules.LOG, Absent({})), *of_log):
            sides = {rules.LOG: side, other: before.get(other, Absent({}))}
            if compare(comparison, *key, sides[comparison.left], sides[comparison.right]).outcome in (MATCH, None):
                found[comparison] = Outcome(MATCH, (), _MEANWHILE, excuse=excuses.MEANWHILE.name)
                break
    return found


_MEANWHILE = "it changes all the time, and was equal to what the log had between two snapshots"


def _stayed(name, before, now, of_log):
    """Return whether a side is as it was at the reading before, and was not changed and changed back meanwhile."""
    if family(name) == rules.LOG and of_log:
        return False
    if isinstance(before, Absent) and isinstance(now, Absent) and name in (rules.LOG, rules.ZOOKEEPER):
        # Where the znode is absent, a sibling that is created changes the zxid, but no number of deleted children
        return _removal(before) == _removal(now)
    return _same(before, now)


def _removal(absent):
    return {name: value for name, value in absent.at.items() if name != "zxid" or "under" not in absent.at}


def _same(left, other):
    if isinstance(left, Absent) or isinstance(other, Absent) or left is None or other is None:
        return isinstance(left, (Absent, type(None))) and isinstance(other, (Absent, type(None)))
    return left.fields == other.fields and left.at == other.at


def _undecided_because(comparison, sides, outcomes, fence, same, fresh):
    """Return why a change in flight may still explain this difference, None when the difference is proven."""
    if comparison.relation in (rules.SINCE, rules.LOGS):
        return None
    if comparison.relation == rules.ZOOKEEPER_LOG:
        proven = fresh >= STABLE or _is_before(sides.get(comparison.left), fence)
        return None if proven else _may_be_newer(comparison, fence)
    if same < STABLE:
        return f"{comparison.right}: the same in {same} of {STABLE} readings in a row (QS-VERIFY-001)"
    if family(comparison.left) != rules.LOG or fresh >= STABLE:
        return None
    agreed = any(
        c.relation == rules.ZOOKEEPER_LOG and c.right == comparison.left and outcome.outcome in (MATCH, None)
        for c, outcome in outcomes.items()
    )
    if agreed and _is_before(sides.get(rules.ZOOKEEPER), fence):
        return None
    return _may_be_newer(comparison, fence)


def _is_before(side, fence):
    if fence.zxid is None or side is None:
        return False
    return side.at.get("zxid", fence.zxid + 1) <= fence.zxid


def _may_be_newer(comparison, fence):
    error = f" ({fence.error})" if fence.error else ""
    return (
        f"{comparison.left} and {comparison.right}: may have changed after the snapshot of the log{error}. Run the "
        "gate again, with fewer metadata changes meanwhile"
    )
