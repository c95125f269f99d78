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
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import run_lock
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import ClusterFacts

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


def average_s(events: Iterable[Mapping]) -> dict[str, float]:
    """Return {kind: seconds} that a restart of that kind took on this cluster on average, with its admission; "" is
    the average of all. Empty where none is known. `events`: of the runs' journals."""
    took: dict[str, list[float]] = {}
    waited: dict[str, list[float]] = {}
    for event in events:
        if event["kind"] == "restart" and event.get("outcome") == "done":
            took.setdefault(event["name"], []).append(_restart_s(event))
        elif event["name"] == ADMITTED and event.get("waited_s") is not None:
            waited.setdefault(event["restart_kind"], []).append(event["waited_s"])
    each = {kind: _mean(seconds) + _mean(waited.get(kind, ())) for kind, seconds in took.items()}
    if each:
        each[""] = sum(each[kind] * len(took[kind]) for kind in took) / sum(map(len, took.values()))
    return each


def _restart_s(event: Mapping) -> float:
    """Return how long a restart took: as the run watched it, or by its host's clock if that is longer."""
    return max(event.get("restart_s") or 0.0, (event.get("end") or 0.0) - (event.get("t") or 0.0))


def _mean(seconds: Sequence[float]) -> float:
    return sum(seconds) / len(seconds) if seconds else 0.0


def step_s(step: Step, each: Mapping[str, float]) -> float | None:
    """Return how many seconds a step's restarts take, one batch after the other; None if unknown."""
    batch_s = each.get(step.name, each.get(""))
    return None if batch_s is None else len(step.batches) * batch_s


def restarts(ahead: Iterable[Step]) -> list[Step]:
    """Return the steps in which nodes are started or restarted."""
    return [step for step in ahead if step.kind in (ROLL, START)]


def estimate_s(ahead: Iterable[Step], each: Mapping[str, float]) -> float | None:
    """Return how many seconds all restarts take; None if unknown."""
    return sum(step_s(step, each) for step in restarts(ahead)) if each else None


class Took(NamedTuple):
    """A step's batches and seconds, as planned (None: unknown) and as they were."""

    name: str
    text: str
    planned: int
    planned_s: float | None
    batches: int
    took_s: float


def measure_took(plan: Mapping, events: Iterable[Mapping], run: str) -> list[Took]:
    """Return what a run's restarts took, and what its plan (plan.json of the run artifacts) had for them.

    Restarts that an earlier run began are not part of the plan. Nodes that restart at once are one batch, of which the
    longest restart counts; batches follow each other.
    """
    batches: dict[str, list[float]] = {}  # the longest restart of each
    waited: dict[str, float] = {}
    admitted = None  # the kind of a batch of which no restart has ended yet
    for event in events:
        if event["kind"] == "restart" and str(event.get("node_restart")).startswith(f"{run}/{event['name']}/"):
            longest, seconds = batches.setdefault(event["name"], []), _restart_s(event)
            if longest and admitted != event["name"]:
                seconds = max(longest.pop(), seconds)
            longest.append(seconds)
            admitted = None
        elif event["name"] == ADMITTED:
            admitted = event["restart_kind"]
            waited[admitted] = waited.get(admitted, 0.0) + (event.get("waited_s") or 0.0)
    return [
        Took(
            *(step.name, step.text, len(step.batches), step_s(step, plan["each_s"]), len(batches[step.name])),
            sum(batches[step.name]) + waited.get(step.name, 0.0),
        )
        for step in (Step(**step) for step in plan["steps"])
        if step.name in batches and step.kind in (ROLL, START)
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
