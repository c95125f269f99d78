# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a cluster's own runs will take, by what they took in a rehearsal. Pure.

A run's time has two parts. Restarts go on one batch after the other, so their time grows with the number of nodes: each
takes what it took in the rehearsal. The rest (readings, backup, comparisons, the initial copy, waits) is once for a
run. It depends on the metadata, which the rehearsal has whole, and is taken as it is.
"""

from __future__ import annotations

import math
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import transitions
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import planning


class Part(NamedTuple):
    """The restarts of a kind in a run: how many batches, of how many nodes in all, and the seconds of all."""

    kind: str
    batches: int
    nodes: int
    took_s: float

    @property
    def each_s(self) -> float:
        """Return the seconds of one batch."""
        return self.took_s / self.batches

    @property
    def is_together(self) -> bool:
        """Return whether all nodes were in one batch, as controllers are that start for the first time."""
        return self.batches == 1 and self.nodes > 1


class Measured(NamedTuple):
    """A run of a rehearsal, or of the cluster: its name, its seconds from the command to its end, and its restarts."""

    name: str
    seconds: float
    parts: Sequence[Part]

    @property
    def fixed_s(self) -> float:
        """Return the seconds beside the restarts."""
        return max(0.0, self.seconds - sum(part.took_s for part in self.parts))


class Nodes(NamedTuple):
    """How many brokers and controllers a cluster has, and how many brokers restart at once."""

    brokers: int
    controllers: int
    at_once: int = 1


class Line(NamedTuple):
    """A kind of restart in an estimate."""

    kind: str
    batches: int
    each_s: float


class Estimate(NamedTuple):
    """How long a run of the cluster takes: `seconds` in all, `fixed_s` beside restarts, `lines`; `least_s`, `most_s`:
    of the rehearsal's runs of this name, if there were several."""

    name: str
    seconds: float
    fixed_s: float
    lines: Sequence[Line]
    least_s: float
    most_s: float


def measure(name: str, seconds: float, events: Iterable[Mapping[str, Any]], run: str) -> Measured:
    """Return what a run took. `events`: of its journal."""
    found: Dict[str, List[planning.Batch]] = {}
    for batch in planning.batches(events):
        if batch.run == run:
            found.setdefault(batch.kind, []).append(batch)
    parts = [
        Part(kind, len(batches), sum(batch.nodes for batch in batches), sum(batch.took_s for batch in batches))
        for kind, batches in found.items()
    ]
    return Measured(name, seconds, parts)


def estimate(runs: Sequence[Measured], nodes: Nodes) -> List[Estimate]:
    """Return an estimate for each name of a run: the mean of the rehearsal's runs of that name."""
    found = []
    for name in dict.fromkeys(run.name for run in runs):
        scaled = [_scale(run, nodes) for run in runs if run.name == name]
        fixed_s = sum(each.fixed_s for each in scaled) / len(scaled)
        lines = _mean([each.lines for each in scaled])
        totals = [each.seconds for each in scaled]
        found.append(Estimate(name, sum(totals) / len(totals), fixed_s, lines, min(totals), max(totals)))
    return found


def _scale(run: Measured, nodes: Nodes) -> Estimate:
    lines = [Line(part.kind, _batches(part, nodes), part.each_s) for part in run.parts]
    seconds = run.fixed_s + sum(line.batches * line.each_s for line in lines)
    return Estimate(run.name, seconds, run.fixed_s, lines, seconds, seconds)


def _batches(part: Part, nodes: Nodes) -> int:
    if part.is_together:
        return 1
    kind = transitions.KINDS.get(part.kind)
    if kind is None:
        return part.batches
    return math.ceil(nodes.brokers / max(1, nodes.at_once)) if kind.role == "broker" else nodes.controllers


def _mean(several: Sequence[Sequence[Line]]) -> List[Line]:
    by_kind: Dict[str, List[Line]] = {}
    for lines in several:
        for line in lines:
            by_kind.setdefault(line.kind, []).append(line)
    return [
        Line(kind, found[0].batches, sum(line.each_s for line in found) / len(found)) for kind, found in by_kind.items()
    ]


_NAMES = {  # a run's name, by the kinds of restarts that make it one
    "forward": ("zk_migration", "kraft"),
    "back": ("hybrid", "zk"),
    "finalize": ("controller_final",),
}


def name_of(run: Measured, nodes: Nodes) -> str | None:
    """Return which of a rehearsal's runs a run of the cluster is: one with all of its restarts. None for another one,
    and for one that went on from where an earlier one had stopped."""
    restarted = {part.kind: part.nodes for part in run.parts}
    for name, kinds in _NAMES.items():
        wanted = nodes.controllers if name == "finalize" else nodes.brokers
        if all(restarted.get(kind) == wanted for kind in kinds):
            return name
    return None


class Comparison(NamedTuple):
    """A run of the cluster beside its estimate; `off`: how far the estimate is off, as a part of the real time."""

    name: str
    estimated_s: float
    took_s: float
    off: float


def compare(estimates: Iterable[Estimate], real: Iterable[Measured]) -> List[Comparison]:
    """Return each run of the cluster that has an estimate."""
    by_name = {each.name: each for each in estimates}
    return [
        Comparison(run.name, by_name[run.name].seconds, run.seconds, by_name[run.name].seconds / run.seconds - 1)
        for run in real
        if run.name in by_name and run.seconds > 0
    ]
