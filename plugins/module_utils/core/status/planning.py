# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a run: its steps from the cluster's phase, in order, and the order of the restarts. Pure, over collected
facts (probes.cluster.cluster.collect).
"""

from __future__ import annotations

from typing import Iterable, Mapping, NamedTuple, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import cluster_health, gates
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase, transitions
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration.transitions import GATE, ROLL, START
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.restart import restart_plan
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import run_lock, run_outcome
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import ClusterFacts, LastStart

ADMITTED = "admitted"  # the journal's event of a batch that may be stopped


class Step(NamedTuple):
    """A step that is ahead: a row of transitions.steps with `batches`: hosts in order; `reasons`: why a host has its
    place; `back`: target of a rollback once the step is done (None: none is possible)."""

    kind: str
    name: str
    text: str
    batches: list[list[str]]
    reasons: dict[str, str]
    back: str | None


def steps(
    facts: ClusterFacts,
    detected: phase.PhaseResult,
    min_isr: Mapping[str, int],
    canary: str | None,
    target: str = "",
    concurrency: int = 1,
) -> list[Step]:
    """Return the steps ahead of a migration or, with `target`, of a rollback. A roll without a restart is no step.
    `canary`, `concurrency`: as for core.restart.restart_plan."""
    ahead = []
    for step in transitions.steps(target):
        if not step.ahead(detected.phase):
            continue
        plan = _order(facts, step, min_isr, canary, concurrency)
        if step.kind in (ROLL, START) and not plan.batches:
            continue
        text = gates.GATES[step.name].moment if step.kind == GATE else step.text
        ahead.append(Step(step.kind, step.name, text, plan.batches, plan.reasons, step.back))
    return _drop_repeated_gate(ahead)


def _drop_repeated_gate(ahead: list[Step]) -> list[Step]:
    """Return the steps without the first of two gates `before_revert` that no roll `hybrid` separates."""
    gate_names = [step.name for step in ahead if step.kind == GATE]
    rolls = {step.name for step in ahead if step.kind == ROLL}
    if gate_names[:2] == ["before_revert"] * 2 and "hybrid" not in rolls:
        first = next(step for step in ahead if step.kind == GATE)
        return [step for step in ahead if step is not first]
    return ahead


def _order(
    facts: ClusterFacts, step: transitions.Step, min_isr: Mapping[str, int], canary: str | None, concurrency: int
) -> cluster_health.Plan:
    if step.kind == START:
        down = [host for host, node in sorted(phase.controllers(facts).items()) if not node.get("running")]
        return cluster_health.Plan([down] if down else [], [], {}, {})
    if step.kind != ROLL:
        return cluster_health.Plan([], [], {}, {})
    wish = restart_plan.Wish(canary, concurrency)
    return restart_plan.plan_kind(facts, transitions.KINDS[step.name], min_isr, wish)


def direction(target: str) -> str:
    """Return the direction of the run that is planned (core.run.run_lock)."""
    return run_lock.BACK if target else run_lock.FORWARD


class Batch(NamedTuple):
    """Nodes that a run restarted at once: the kind of restart, its run, and the seconds of the whole step, which has
    the readings, the admission and Ansible's own work too; `nodes`: how many they are."""

    kind: str
    run: str
    took_s: float
    nodes: int = 1


def batches(events: Iterable[Mapping]) -> list[Batch]:
    """Return the batches that journals have with begin and end, without repairs and restarts that failed."""
    found: list[Batch] = []
    begun: Mapping | None = None
    done: list[Mapping] = []
    for event in events:
        if event["name"] == run_outcome.STEP_BEGUN:
            begun, done = event, []
        elif event["kind"] == "restart":
            done.append(event)
        elif event["name"] == run_outcome.STEP_ENDED and begun and begun["hosts"] == event["hosts"]:
            kinds = {(restart["name"], _run(restart)) for restart in done}
            if len(kinds) == 1 and all(restart.get("outcome") == "done" for restart in done):
                found.append(Batch(*kinds.pop(), max(0.0, event["t"] - begun["t"]), len(done)))
            begun = None
    return [batch for batch in found if batch.run]


def _run(restart: Mapping) -> str:
    """Return the run that began a restart, "" for a repair of what an earlier run left."""
    run, _slash, rest = str(restart.get("node_restart")).partition("/")
    return run if rest.startswith(f"{restart['name']}/") else ""


class Times(NamedTuple):
    """How long restarts take, by what is known of this cluster. `each`: {kind: seconds of a batch} by its journals, ""
    for the mean of all; `nodes`: {host: seconds} by the nodes' logs of their last stop and start."""

    each: Mapping[str, float]
    nodes: Mapping[str, float]

    def of_step(self, step: Step) -> float | None:
        """Return how many seconds a step's restarts take, one batch after the other; None if unknown."""
        # other kinds of restarts, such as the first start of controllers, say less than the nodes' own logs
        batch_s = self.each.get(step.name, None if self.nodes else self.each.get(""))
        if batch_s is not None:
            return len(step.batches) * batch_s
        if not self.nodes:
            return None
        # a node whose log does not say, such as a controller that never ran, is taken for one of the others
        mean = _mean(list(self.nodes.values()))
        return sum(max(self.nodes.get(host, mean) for host in batch) for batch in step.batches)

    def of_steps(self, ahead: Iterable[Step]) -> float | None:
        """Return how many seconds all restarts take; None if unknown."""
        seconds = [self.of_step(step) for step in restarts(ahead)]
        return None if None in seconds else sum(seconds)


BETWEEN_S = 3.0
"""What a batch costs beside stop, start and the time that the cluster has to be healthy: readings, modules' starts."""


def times(
    events: Iterable[Mapping], last_starts: Mapping[str, LastStart | None] | None = None, stable_s: float = 0.0
) -> Times:
    """Return how long restarts take. `events`: of the runs' journals; `last_starts`: by host; `stable_s`: how long the
    cluster has to be healthy before each batch."""
    took: dict[str, list[float]] = {}
    for batch in batches(events):
        took.setdefault(batch.kind, []).append(batch.took_s)
    each = {kind: _mean(seconds) for kind, seconds in took.items()}
    if each:
        each[""] = _mean([seconds for of_kind in took.values() for seconds in of_kind])
    by_log = {
        host: start["start_s"] + (start["stop_s"] or 0.0) + stable_s + BETWEEN_S
        for host, start in (last_starts or {}).items()
        if start
    }
    return Times(each, by_log)


def _mean(seconds: Sequence[float]) -> float:
    return sum(seconds) / len(seconds) if seconds else 0.0


def restarts(ahead: Iterable[Step]) -> list[Step]:
    """Return the steps in which nodes are started or restarted."""
    return [step for step in ahead if step.kind in (ROLL, START)]


class Took(NamedTuple):
    """A step's batches and seconds, as planned (None: unknown) and as they were."""

    name: str
    text: str
    planned: int
    planned_s: float | None
    batches: int
    took_s: float


def measure_took(plan: Mapping, events: Iterable[Mapping], run: str) -> list[Took]:
    """Return what a run's restarts took, and what its plan (plan.json of the run artifacts) had for them."""
    took: dict[str, list[float]] = {}
    for batch in batches(events):
        if batch.run == run:
            took.setdefault(batch.kind, []).append(batch.took_s)
    planned = Times(plan["each_s"], plan["node_s"])
    return [
        Took(step.name, step.text, len(step.batches), planned.of_step(step), len(took[step.name]), sum(took[step.name]))
        for step in (Step(**step) for step in plan["steps"])
        if step.name in took and step.kind in (ROLL, START)
    ]


def order(plan: Mapping, kind: str) -> list[str] | None:
    """Return the order of the hosts in a plan's restarts of this kind, None without such a step."""
    step = next((step for step in plan["steps"] if step["name"] == kind), None)
    return [host for batch in step["batches"] for host in batch] if step else None


def find_deviations(planned: Sequence[str], plan: Mapping) -> list[str]:
    """Return where a roll (restart.Plan as a mapping) deviates from the planned order, as sentences with the reason."""
    now = [host for batch in plan["batches"] for host in batch]
    if now == list(planned):
        return []
    reasons = [f"{host} already runs in this mode" for host in planned if host in plan["done"]]
    reasons += [
        f"{host} is not a broker or controller of this run" for host in planned if host not in (*now, *plan["done"])
    ]
    new = [host for host in now if host not in planned]
    reasons += [f"{host} must be restarted as well" for host in new]
    left, right = [host for host in planned if host in now], [host for host in now if host in planned]
    moved = [host for host, other in zip(right, left) if host != other]
    reasons += [f"{host} {plan['reasons'][host]}" for host in moved if host in plan["reasons"]]
    if moved and not any(host in plan["reasons"] for host in moved):
        reasons.append("a reason for the planned order no longer holds")
    return reasons
