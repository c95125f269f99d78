# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random histories of the model's cluster, with gates. Each seed is one history.

The history knows the truth. A gate must not pass on what was diverged before its last readings, and must not say
`differ` of what is equal. `incomplete` is allowed, and counted; on an equal cluster, what it says to do must open
the gate.
"""

from __future__ import annotations

import contextlib
import random
import types
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Set, Tuple
from unittest import mock

from quorumshift_spark import excuses, recheck, rules
from quorumshift_spark.normal_form import Entity
from quorumshift_spark.views import Key

from tests.unit.spark.model import gate as gates
from tests.unit.spark.model.cluster import CHANGES, KRAFT, Cluster

Event = Tuple[Any, ...]
"""("change", change), or a method of Cluster with its arguments; ("gate", name, [events between two readings, ...])."""


class Failed(NamedTuple):
    """What a gate said and must not. `number`: of its event."""

    number: int
    gate: str
    said: str
    diverged: List[str]
    why: List[str]

    def text(self) -> str:
        """Return it for a person."""
        return f"event {self.number}, gate {self.gate}: {self.said}; diverged: {self.diverged}; {self.why[:3]}"


class Outcome(NamedTuple):
    """`verdicts`: {(gate, whether something was diverged, verdict): number}; `incomplete`: {(reason by REASONS, what
    the operator could do about it): number}; `excused`: {name of the excuse: number of gates}."""

    failed: List[Failed]
    verdicts: Dict[Tuple[str, bool, str], int]
    incomplete: Dict[Tuple[str, str], int]
    excused: Dict[str, int]


REASONS = {
    "the copy may have lost it": "changed before the copy, and nothing shows it any more",
    "does not have the records of the initial copy": "Kafka deleted the records of the copy",
    "Kafka has deleted the records below": "Kafka deleted records since the baseline",
    "no baseline of the metadata log": "no earlier gate passed with the log",
    "readings in a row": "changed in each round",
    "after the snapshot of the log": "changed after each snapshot of the log",
    "committed records were lost": "the log lost what the baseline had",
    "serves metadata up to": "a broker does not follow the log",
    "no record of its removal is left": "no record of a removal is left",
    "had another value at the first reading": "ZooKeeper was overwritten without a record",
}
"""Why a gate did not decide: a part of what it said, and what it means."""


def _change(random_: random.Random) -> Event:
    name, *values = random_.choice(CHANGES)
    return ("change", (name, *(random_.choice(choices) for choices in values)))


def _busy(random_: random.Random) -> List[List[Event]]:
    """Return what happens between the readings of a gate."""
    kind = random_.random()
    if kind < 0.4:
        return []
    if kind < 0.6:  # a client that changes the same all the time
        these = [_change(random_) for dummy in range(random_.randint(1, 3))]
        return [[random_.choice(these), *_lag(random_)] for dummy in range(60)]
    return [[_change(random_) for dummy in range(random_.choice((0, 0, 1, 2)))] + _lag(random_) for dummy in range(12)]


def _lag(random_: random.Random) -> List[Event]:
    return [("mirror", random_.randint(0, 3)), ("follow", random_.randint(0, 3))]


_FAULTS = (
    ("write_to_zookeeper", True),
    ("write_to_zookeeper", False),
    ("reject",),
    ("stick",),
    ("truncate",),
)


def _fault(random_: random.Random) -> Event:
    name, *more = random_.choice(_FAULTS)
    if name == "stick":
        return (name, random_.choice((1, 2)))
    if name == "truncate":
        return (name, random_.randint(1, 4))
    return (name, random_.randint(0, 20), *more)


def history(seed: int) -> List[Event]:
    """Return the events of a seed."""
    random_ = random.Random(seed)
    faulty = random_.random() < 0.6
    events: List[Event] = [("keep_files",)] if seed % 2 else []

    def changes(most: int) -> None:
        events.extend(_change(random_) for dummy in range(random_.randint(0, most)))

    def between(most: int) -> None:
        """Changes, elections, checkpoints and faults between two gates."""
        for dummy in range(random_.randint(0, most)):
            kind = random_.random()
            if kind < 0.1:
                events.append(("fail_over",))
            elif kind < 0.16:
                events.append(("take_checkpoint", random_.random() < 0.5))
            elif kind < 0.26 and faulty:
                events.append(_fault(random_))
            elif kind < 0.36:
                events.append(("mirror", random_.randint(1, 5)))
            else:
                events.append(_change(random_))

    def gate(*names: str) -> None:
        if random_.random() < 0.9:
            events.append(("follow", 10**6))
            if random_.random() < 0.7:
                events.append(("mirror", 10**6))
            events.append(("gate", random_.choice(names), _busy(random_)))

    for topic in ("a", "b"):
        events.append(("change", ("create", topic)))
    for dummy in range(random_.randint(3, 14)):
        events.append(_change(random_))
    gate("before_controllers", "before_trigger")
    changes(5)
    if faulty and random_.random() < 0.4:
        events.append(("sicken", random_.choice(("loses", "alters")), random_.randint(0, 30)))
    events.append(("copy",))
    between(5)
    gate("after_copy")
    between(5)
    gate("before_kraft")
    events.append(("to_kraft",))
    between(6)
    gate("after_kraft")
    between(5)
    gate("before_finalize")
    between(4)
    gate("after_finalize")
    return events


def play(events: List[Event]) -> Outcome:
    """Play a history, and say where a gate said what it must not."""
    with mock.patch.object(recheck, "concurrent", _Serial):
        return _play(events)


class _Serial:
    """Readings of a round one after the other, so that a seed is one history; in place of concurrent.futures."""

    class futures:
        @staticmethod
        @contextlib.contextmanager
        def ThreadPoolExecutor(_at_once):
            yield _Serial

    @staticmethod
    def submit(function, *arguments):
        found = function(*arguments)
        return types.SimpleNamespace(result=lambda: found)


def _play(events: List[Event]) -> Outcome:
    cluster, baseline = Cluster(), None
    outcome = Outcome([], {}, {}, {})
    for number, event in enumerate(events):
        if event[0] != "gate":
            _happen(cluster, event)
            continue
        name, script = event[1], iter(event[2])
        if (cluster.mode == KRAFT) != (name not in ("before_controllers", "before_trigger")):
            continue  # while a history is shortened

        def tick(script: Iterator[List[Event]] = script) -> None:
            for step in next(script, [("mirror", 10**6), ("follow", 10**6)]):
                _happen(cluster, step)

        diverged, faults, unequal = cluster.diverged(), list(cluster.faults), gates.unequal(cluster)
        found = gates.run(cluster, name, baseline, tick)
        latest = cluster.diverged()
        # What was repaired meanwhile, and a later fault of the same entity, which no reading shows, are two things
        wrong = [text for text in latest if text in diverged and not text.startswith(ZOOKEEPER)]
        if unequal or found.stayed:
            keys = ((unequal - found.agreed) | found.stayed) & gates.unequal(cluster)
            wrong += sorted(f"{ZOOKEEPER}: {key}" for key in keys)
        is_equal = (
            not diverged
            and not latest
            and not faults
            and not cluster.faults
            and cluster.lost is None
            and not cluster.scarred
        )
        if found.verdict == gates.PASS:
            if wrong and not _hidden(cluster, wrong, name, baseline):
                outcome.failed.append(Failed(number, name, "pass", wrong, [fault.what for fault in cluster.faults]))
            elif "the log" in wrong:
                cluster.accept()  # what nothing showed before the new baseline, nothing shows after it
            elif "the log" not in latest:
                cluster.lost = None  # the new baseline lacks nothing of it
            baseline = found.baseline
        elif found.verdict == gates.DIFFER and is_equal:
            outcome.failed.append(Failed(number, name, "differ", [], found.why))
        counted = (name, not is_equal, found.verdict)
        outcome.verdicts[counted] = outcome.verdicts.get(counted, 0) + 1
        if found.verdict == gates.INCOMPLETE:
            reason = next(name for text, name in REASONS.items() if text in found.why[0])
            if is_equal:
                baseline, then = _again(cluster, name, baseline)
                if then == NEVER:
                    outcome.failed.append(Failed(number, name, NEVER, [], found.why))
            else:
                then = WITH_FAULT
            outcome.incomplete[reason, then] = outcome.incomplete.get((reason, then), 0) + 1
        for excuse in found.excused:
            outcome.excused[excuse] = outcome.excused.get(excuse, 0) + 1
    return outcome


AGAIN, NEW_BASELINE, NO_BASELINE, NEVER = (
    "the gate passed when it was run again",
    "it passed with a new baseline",
    "nothing to compare with after finalization",
    "it never passed",
)
WITH_FAULT = "with a fault"
ZOOKEEPER = "ZooKeeper"


def _again(cluster: Cluster, gate: str, baseline: gates.Baseline | None) -> Tuple[gates.Baseline | None, str]:
    """Do what an operator does about a gate that could not decide: run it again while nothing changes, then with a new
    baseline. Return the baseline that it leaves, and how it ended."""
    for given, then in ((baseline, AGAIN), (None, NEW_BASELINE)):
        _happen(cluster, ("mirror", 10**6))
        _happen(cluster, ("follow", 10**6))
        found = gates.run(cluster, gate, given, lambda: None)
        if found.verdict == gates.PASS:
            return found.baseline, then
        if found.verdict == gates.DIFFER:
            return given, NEVER
    return baseline, NO_BASELINE if gate == "after_finalize" else NEVER


def _hidden(cluster: Cluster, diverged: List[str], gate: str, baseline: gates.Baseline | None) -> bool:
    """Return whether nothing that the gate reads can show what is diverged."""
    if gate == "after_finalize":
        diverged = [text for text in diverged if not text.startswith(ZOOKEEPER)]
    if diverged != ["the log"]:
        return not diverged
    # All views agree. Only the baseline shows what it was, or a log that lost what the baseline has
    known = baseline.rows.get(rules.LOG, baseline.rows.get(rules.ZOOKEEPER)) if baseline else None
    if known is None:
        return True
    end = baseline.states.get(rules.LOG, {}).get("offset", 0) if baseline else 0
    if cluster.lost is not None and cluster.lost >= end:
        return True
    truth, now = (gates.of_state(state) for state in (cluster.truth, cluster.of_log))
    wrong = [key for key in {*truth, *now} if gates.plain(truth, key) != gates.plain(now, key)]
    later = _changed_after_copy(cluster)
    return all(
        gates.plain(known, key) == gates.plain(now, key) or _looks_legal(now, known, key, later) for key in wrong
    )


def _looks_legal(now: Mapping[Key, Entity], known: Mapping[Key, Entity], key: Key, later: Set[Key]) -> bool:
    """Return whether clients could have changed what the baseline knows to what is there now, by records after the
    copy: what the copy lost was created between the baseline and the copy, and again after it."""
    if key not in now or key not in later:
        return False
    if key[0] == "producer_ids" and key in known:
        return int(now[key].fields["next"]) > excuses.next_id(known[key])
    return key not in known


def _changed_after_copy(cluster: Cluster) -> Set[Key]:
    """Return the entities that a later entry than the copy, the first one of the log, changed."""
    found: Set[Key] = set()
    states = [gates.of_state(entry.after) for entry in cluster.log]
    for was, now in zip(states, states[1:]):
        found |= {key for key in {*was, *now} if gates.plain(was, key) != gates.plain(now, key)}
    return found


def _happen(cluster: Cluster, event: Event) -> None:
    getattr(cluster, event[0])(*event[1:])


def shortened(events: List[Event]) -> List[Event]:
    """Return a shorter history that fails in the same way."""
    said = {failure.said for failure in play(events).failed}

    def fails(candidate: List[Event]) -> bool:
        try:
            return any(failure.said in said for failure in play(candidate).failed)
        except Exception:  # a history that makes no sense any more
            return False

    size = max(1, len(events) // 2)
    while True:
        at, shorter = 0, False
        while at < len(events):
            candidate = events[:at] + events[at + size :]
            if fails(candidate):
                events, shorter = candidate, True
            else:
                at += size
        for number, event in enumerate(events):
            if event[0] == "gate" and event[2]:
                for script in ([], event[2][: len(event[2]) // 2], event[2][:-1]):
                    candidate = [*events[:number], (*event[:2], script), *events[number + 1 :]]
                    if fails(candidate):
                        events, shorter = candidate, True
                        break
        if size == 1 and not shorter:
            return events
        size = max(1, size // 2)
