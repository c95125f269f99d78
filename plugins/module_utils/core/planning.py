# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run has ahead of it: its steps from the phase in which the cluster is, in order, and what is restarted when.
Pure, over collected facts (probes.cluster.collect gives their shape).
"""

from __future__ import annotations

from typing import Iterable, Mapping, NamedTuple, Sequence

from . import gates, phase, restart, rollback, run_lock

GATE, ROLL, START, ONLY = "gate", "roll", "start", "step"
"""Kinds of steps: a gate; nodes restarted one after the other; nodes started together; anything else."""

ADMITTED = "admitted"  # the journal's event of a batch that may be stopped


class Step(NamedTuple):
    """`name`: of the gate or of the turn; `text`: for people; `batches`: hosts in order; `reasons`: why one stands
    where it stands; `back`: how far back a rollback goes from here on (None: there is no way back)."""

    kind: str
    name: str
    text: str
    batches: list[list[str]]
    reasons: dict[str, str]
    back: str | None


class _Stage(NamedTuple):
    """A step, and the phases in which it is still ahead."""

    kind: str
    name: str
    text: str
    ahead: tuple[str, ...]
    back: str | None = rollback.ZK


_FROM = phase.FORWARD.index
_UP_TO = {name: phase.FORWARD[: _FROM(name) + 1] for name in phase.FORWARD}
_FORWARD = (
    _Stage(ONLY, "backup", "back up ZooKeeper's tree on two hosts, and read it back", _UP_TO[phase.CONTROLLERS_READY]),
    _Stage(GATE, "before_controllers", "", _UP_TO[phase.CONTROLLERS_STARTING]),
    _Stage(START, "controller", "bring up the controllers", _UP_TO[phase.CONTROLLERS_STARTING]),
    _Stage(GATE, "before_trigger", "", _UP_TO[phase.BROKERS_JOINING]),
    _Stage(ROLL, "zk_migration", "restart brokers in migration mode", _UP_TO[phase.BROKERS_JOINING]),
    _Stage(ONLY, "copy", "the copy: begun by the last of them, counted against ZooKeeper", _UP_TO[phase.COPYING]),
    _Stage(GATE, "after_copy", "", _UP_TO[phase.HYBRID]),
    _Stage(ROLL, "kraft", "restart brokers in KRaft mode", _UP_TO[phase.HYBRID]),
    _Stage(GATE, "after_kraft", "", _UP_TO[phase.HYBRID]),
    _Stage(ONLY, "soak", "the run ends here and prints the word; soak", _UP_TO[phase.DUAL_WRITE]),
    _Stage(GATE, "before_finalize", "", _UP_TO[phase.FINALIZING]),
    _Stage(ROLL, "controller_final", "restart controllers without the migration flag", _UP_TO[phase.FINALIZING], None),
    _Stage(GATE, "after_finalize", "", _UP_TO[phase.FINALIZING], None),
)
_KRAFT_LEFT = (phase.HYBRID, phase.DUAL_WRITE, phase.FINALIZING)
_BEGUN = (*_UP_TO[phase.FINALIZING][1:],)
_BACK = (
    _Stage(GATE, "before_revert", "", _KRAFT_LEFT),
    _Stage(ROLL, "controller_migration", "restart controllers with the migration flag", (phase.FINALIZING,)),
    _Stage(ROLL, "hybrid", "restart brokers back in migration mode", _KRAFT_LEFT),
)
_BACK_TO_ZK = (
    *_BACK,
    _Stage(GATE, "before_revert", "", _BEGUN),
    _Stage(ONLY, "stop", "stop the controllers and keep them down, the quorum's leader last", _BEGUN),
    _Stage(ONLY, "restore_zk_controller", "have ZooKeeper's own controller elected", (*_BEGUN, phase.REVERTING)),
    _Stage(ROLL, "zk", "restart brokers in plain ZooKeeper mode", (*_BEGUN, phase.REVERTING)),
    _Stage(ONLY, "wipe", "leave nothing of the migration on the controllers", (*_BEGUN, phase.REVERTING)),
    _Stage(GATE, "after_revert", "", (*_BEGUN, phase.REVERTING)),
)


def steps(
    facts: Mapping, detected: phase.PhaseResult, min_isr: Mapping[str, int], canary: str | None, target: str = ""
) -> list[Step]:
    """Return what is ahead, on the way forward or, with `target` (reverting.TARGETS), on the way back; a roll in which
    nobody is left to be restarted is no step."""
    way = {"": _FORWARD, rollback.HYBRID: _BACK}.get(target, _BACK_TO_ZK)
    messages = []
    for stage in way:
        if detected.phase not in stage.ahead:
            continue
        text = gates.GATES[stage.name].moment if stage.kind == GATE else stage.text
        plan = _order(facts, stage, min_isr, canary)
        if stage.kind in (ROLL, START) and not plan.batches:
            continue
        messages.append(Step(stage.kind, stage.name, text, plan.batches, plan.reasons, stage.back))
    return _without_idle_gates(messages, detected)


def _without_idle_gates(reported: list[Step], detected: phase.PhaseResult) -> list[Step]:
    """A way back from where no broker runs in KRaft mode has one gate less."""
    rolls = {step.name for step in reported if step.kind == ROLL}
    first = next((step for step in reported if step.kind == GATE), None)
    twice = first is not None and [step.name for step in reported].count(first.name) > 1
    if twice and first.name == "before_revert" and "hybrid" not in rolls:
        return [step for step in reported if step is not first]
    return reported


def _order(facts: Mapping, stage: _Stage, min_isr: Mapping[str, int], canary: str | None) -> restart.Plan:
    nodes, mode = facts["nodes"], gates.MODE_OF_RESTART.get(stage.name, stage.name)
    if stage.kind == START:
        running = [host for host, node in sorted(phase.controllers(facts).items()) if not node.get("running")]
        return restart.Plan([running] if running else [], [], {}, {})
    if stage.kind != ROLL:
        return restart.Plan([], [], {}, {})
    if stage.name.startswith("controller_"):
        return restart.plan_controllers(nodes, mode, (facts.get("quorum") or {}).get("leader_id"))
    topics = {"partitions": (facts.get("topics") or {}).get("partitions") or {}, "min_isr": min_isr}
    controller = ((facts.get("zookeeper") or {}).get("controller") or {}).get("broker_id")
    if stage.name in ("kraft", "hybrid"):
        controller = None  # it is one of KRaft's by then
    return restart.plan(nodes, mode, canary, controller, topics)


def direction(target: str) -> str:
    """Return the direction of the run that is planned (judgements.claim)."""
    return run_lock.BACK if target else run_lock.FORWARD


def each_s(events: Iterable[Mapping]) -> dict[str, float]:
    """Return {turn: seconds} that a node's restart of that kind took on this cluster on average, its admission
    included; "" is the average of all. Empty where none is known. `events`: of the runs' journals."""
    took: dict[str, list[float]] = {}
    waited: dict[str, list[float]] = {}
    for one in events:
        if one["kind"] == "restart" and one.get("outcome") == "done":
            took.setdefault(one["name"], []).append(_restart_s(one))
        elif one["name"] == ADMITTED and one.get("waited_s") is not None:
            waited.setdefault(one["mode"], []).append(one["waited_s"])
    reported = {
        node_restart: _mean(seconds) + _mean(waited.get(node_restart, ())) for node_restart, seconds in took.items()
    }
    if reported:
        reported[""] = sum(reported[node_restart] * len(took[node_restart]) for node_restart in took) / sum(
            map(len, took.values())
        )
    return reported


def _restart_s(event: Mapping) -> float:
    """Return how long a turn took: as it was watched, or by its host's clock where it was begun before that."""
    return max(event.get("restart_s") or 0.0, (event.get("end") or 0.0) - (event.get("t") or 0.0))


def _mean(seconds: Sequence[float]) -> float:
    return sum(seconds) / len(seconds) if seconds else 0.0


def step_s(step: Step, each: Mapping[str, float]) -> float | None:
    """Return how long a step's restarts take, one batch after the other; None where nothing is known of one."""
    one = each.get(step.name, each.get(""))
    return None if one is None else len(step.batches) * one


def restarts(reported: Iterable[Step]) -> list[Step]:
    """Return the steps in which nodes are started or restarted."""
    return [step for step in reported if step.kind in (ROLL, START)]


def estimate_s(reported: Iterable[Step], each: Mapping[str, float]) -> float | None:
    """Return how long all restarts of `told` take; None where nothing is known of one."""
    return sum(step_s(step, each) for step in restarts(reported)) if each else None


class Took(NamedTuple):
    """What became of a step: batches and seconds as planned (None: no figure was known), and as they were."""

    name: str
    text: str
    planned: int
    planned_s: float | None
    batches: int
    took_s: float


def took(plan: Mapping, events: Iterable[Mapping], run: str) -> list[Took]:
    """Return what a run's restarts took, beside what its plan (plan.json of its evidence) had for them.

    Turns that an earlier run began are none of the plan's. Controllers are brought up together, so the longest of their
    turns counts; in a roll one follows the other.
    """
    node_restarts: dict[str, list[float]] = {}
    waited: dict[str, float] = {}
    for one in events:
        if one["kind"] == "restart" and str(one.get("node_restart")).startswith(f"{run}/{one['name']}/"):
            node_restarts.setdefault(one["name"], []).append(_restart_s(one))
        elif one["name"] == ADMITTED:
            waited[one["mode"]] = waited.get(one["mode"], 0.0) + (one.get("waited_s") or 0.0)
    messages = []
    for step in (Step(**step) for step in plan["steps"]):
        seconds = node_restarts.get(step.name)
        if seconds and step.kind in (ROLL, START):
            together = step.kind == START
            spent = max(seconds) if together else sum(seconds) + waited.get(step.name, 0.0)
            batches = 1 if together else len(seconds)
            messages.append(Took(step.name, step.text, len(step.batches), step_s(step, plan["each_s"]), batches, spent))
    return messages


def order(plan: Mapping, node_restart: str) -> list[str] | None:
    """Return in which order a plan has the hosts of a turn, None where it has no such step."""
    of_restart = [step for step in plan["steps"] if step["name"] == node_restart]
    return [host for batch in of_restart[0]["batches"] for host in batch] if of_restart else None


def otherwise(planned: Sequence[str], plan: Mapping) -> list[str]:
    """Return where a roll (restart.Plan as a mapping) does otherwise than it was planned, as sentences with the
    reason."""
    now = [host for batch in plan["batches"] for host in batch]
    if now == list(planned):
        return []
    messages = [f"{host} runs so already" for host in planned if host in plan["done"]]
    messages += [
        f"{host} is no broker or controller of this run" for host in planned if host not in (*now, *plan["done"])
    ]
    new = [host for host in now if host not in planned]
    messages += [f"{host} is to be restarted as well" for host in new]
    left, right = [host for host in planned if host in now], [host for host in now if host in planned]
    moved = [host for host, other in zip(right, left) if host != other]
    messages += [f"{host} {plan['reasons'][host]}" for host in moved if host in plan["reasons"]]
    if moved and not any(host in plan["reasons"] for host in moved):
        messages.append("what had its place for a reason has it no more")
    return messages
