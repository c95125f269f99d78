# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the nodes of a batch may be stopped. Pure, over collected facts; the module rolling_restart asks it again and
again until the answer has been yes for long enough.

The algorithm, for each reading of the cluster:
 1. Choose the nodes (`find_hosts_to_restart`): those of the batch. A controller that leads the quorum gives way to
    another one that is still to be restarted. One that was restarted meanwhile needs nothing.
 2. The gate of the kind of restart is open: the phase is one of its phases, and no block but that of the node itself
    closes it. A rollback is at its step. In a plain restart each node runs in a mode of its kind, with that file.
 3. The conditions of the whole cluster hold (core.gates.invariants). Those that no wait fixes end the run.
 4. A node that is down, as its own host says, is only started: nothing more is required, and its token permits no stop.
 5. No other node is down. Controllers: no voter lags, no partition is degraded.
 6. Brokers: every partition has all replicas in sync, and keeps min.insync.replicas without the batch. One broker of a
    migration is evaluated by its own stop (restart.troubles). A batch, and each plain restart, is evaluated as a whole
    (restart_plan.find_unsafe), while no reassignment is in flight.
 7. If degraded partitions alone are against it, in a rollback to ZooKeeper, their leader may be stuck: the module asks
    the brokers (core.restart.stuck_leaders), and restarts that leader first.
"""

from __future__ import annotations

from typing import Iterable, NamedTuple, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import (
    admission,
    cluster_health,
    gates,
    invariants,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import (
    node_mode,
    phase,
    transitions,
    zk_controller,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.restart import plain_restart, restart_plan
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rollback import rollback
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import advice
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import ClusterFacts, NodeFacts


class Verdict(NamedTuple):
    """`troubles`: why the batch may not be stopped now, as sentences; `lasting`: those that no wait removes;
    `only_start`: whether the batch is down and is only started; `unresponsive`: which others do not answer then;
    `may_be_stuck`: whether degraded partitions alone are against it, in a rollback to ZooKeeper; `do`: what helps a
    node that runs and does not answer."""

    troubles: list[str]
    lasting: list[str]
    only_start: bool
    unresponsive: Sequence[str] = ()
    may_be_stuck: bool = False
    do: str = ""


def refusal(kind: transitions.Kind, batch: Sequence[str]) -> str | None:
    """Return why a batch can never be admitted: it is empty, or would stop several controllers of a migration."""
    if kind.is_plain:
        return None if batch else "the batch is empty (QS-RESTART-003)"
    several_brokers = kind.role == transitions.BROKER and len(batch) > 1
    return None if several_brokers else admission.check_single_host(batch)


def is_together(kind: transitions.Kind, batch: Sequence[str]) -> bool:
    """Return whether the batch is evaluated as a whole (step 6)."""
    return kind.is_plain or len(batch) > 1


def find_hosts_to_restart(facts: ClusterFacts, kind: transitions.Kind, batch: Sequence[str]) -> list[str]:
    """Return the hosts to restart now for a batch of the plan; none if it needs no restart any more, or is empty."""
    if kind.is_plain or kind.role != transitions.CONTROLLER or not batch:
        return list(batch)
    nodes, (host,) = facts["nodes"], batch
    if cluster_health.is_done(nodes[host], kind.after):
        return []
    return [cluster_health.choose_before_leader(nodes, kind.after, facts["quorum"].get("leader_id"), host)]


def find_next(batches: Sequence[Sequence[str]], batch: Sequence[str]) -> list[str]:
    """Return the batch of the plan that follows `batch`, or the part of one that is given; [] after the last one."""
    following = [list(later) for earlier, later in zip(batches, batches[1:]) if set(batch) & set(earlier)]
    return following[-1] if following else []


def find_previous(batches: Sequence[Sequence[str]], batch: Sequence[str]) -> list[str]:
    """Return the batch of the plan before `batch`, or the last one without a batch; [] before the first one."""
    earlier = [list(each) for each, later in zip(batches, batches[1:]) if set(batch) & set(later)]
    return earlier[-1] if earlier else list(batches[-1]) if batches and not batch else []


def find_controllers_to_read(facts: ClusterFacts, detected: phase.PhaseResult) -> list[str]:
    """Return the hosts whose own reading an admission needs beside those of its batch: the quorum's leader, which has
    the longest log. What the other voters' hosts said before stays; that they run, and their lag, is asked over the
    network. All controllers where no leader is known, none before a quorum exists."""
    controllers, leader = phase.controllers(facts), facts["quorum"].get("leader_id")
    leading = [host for host, node in controllers.items() if cluster_health.leads(node, leader)]
    return leading or ([] if detected.phase == phase.ZK else sorted(controllers))


def forget_unread_logs(facts: ClusterFacts, read: Iterable[str]) -> None:
    """Take out the metadata logs of controllers that were not read for this admission: an old one is no evidence, least
    of all where the leader's cannot be read."""
    for host, node in phase.controllers(facts).items():
        if host not in read:
            node["metadata_log"] = None


def is_only_start(facts: ClusterFacts, batch: Sequence[str]) -> bool:
    """Return whether every node of the batch is down, as its own host says."""
    return bool(batch) and all(admission.restart_from_facts(facts, host).only_start for host in batch)


def evaluate(
    reading: invariants.Reading,
    detected: phase.PhaseResult,
    kind: transitions.Kind,
    batch: Sequence[str],
    accept: Iterable[str],
) -> Verdict:
    """Return whether a batch of hosts (`find_hosts_to_restart`) may be stopped, or only started; without a batch,
    whether the restarts have settled.

    `reading`: without a node; before plain restarts strict (`accepted` is None). `accept`: before plain restarts, the
    tokens of what is degraded and may stay so, and of partitions that cannot keep min.insync.replicas.
    """
    facts, accept = reading.facts, list(accept)
    nodes, together = facts["nodes"], is_together(kind, batch)
    restarts = [admission.restart_from_facts(facts, host) for host in batch]
    troubles = _check_step(reading, detected, kind, restarts)
    alone = [reading._replace(node=restart) for restart in restarts] or [reading]
    for restart_reading in alone:
        troubles += invariants.find_broken(restart_reading, but=("I4",))
    starts = is_only_start(facts, batch)
    settles_plain = kind.is_plain and not batch  # the next run's batch ends at what lasts
    lasting: list[str] = []
    if not starts and not settles_plain:
        lasting = [reason for restart_reading in alone for reason in invariants.find_lasting(restart_reading)]
        lasting += gates.find_lasting(detected)
    if kind.joins and len(batch) > 1:
        lasting += _check_triggers(facts, batch)
    stopped = phase.controllers(facts) if kind.without_quorum or detected.phase == phase.ZK else {}
    unresponsive = admission.check_others_respond(nodes, None, [*stopped, *batch])
    if starts:
        return Verdict(_deduplicate(troubles), lasting, True, tuple(unresponsive))
    if len(batch) > 1:
        troubles += [
            (
                f"{restart.host} does not answer, and the other hosts of its batch do. Run again: it is planned "
                "apart (QS-RESTART-003)"
            )
            for restart in restarts
            if not restart.answers
        ]
    if together or kind.role == transitions.BROKER:
        troubles += unresponsive
    # Without a migration there is no quorum yet: nothing of controllers was restarted, and the brokers' health counts
    in_zookeeper_mode = kind.is_plain and not batch and detected.phase == phase.ZK
    of_controllers = kind.role == transitions.CONTROLLER and not in_zookeeper_mode
    if of_controllers:
        troubles += cluster_health.controller_troubles(nodes, reading.quorum, batch)
    unhealthy = invariants.health(reading if of_controllers else _health_reading(reading, kind, restarts, accept))
    answer = bool(restarts) and all(restart.answers for restart in restarts)
    may_be_stuck = kind.without_quorum and answer and bool(unhealthy) and not troubles
    troubles += unhealthy
    if together and not of_controllers:
        if (facts["zookeeper"].get("reassign_partitions") or {}).get("exists"):
            troubles.append(
                "/admin/reassign_partitions exists: a reassignment has not ended. Wait until it is "
                "gone (QS-RESTART-003)"
            )
            may_be_stuck = False
        if facts["topics"].get("reached") and not unhealthy:
            troubles += _find_falling(reading, batch, accept if kind.is_plain else None)
    do = ""
    if not together and restarts and restarts[0].unresponsive and troubles:
        do = admission.remedy(restarts[0], nodes[batch[0]])
    return Verdict(_deduplicate(troubles), lasting, False, may_be_stuck=may_be_stuck, do=do)


def _deduplicate(troubles: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(troubles))


def _check_step(
    reading: invariants.Reading,
    detected: phase.PhaseResult,
    kind: transitions.Kind,
    restarts: Sequence[admission.Restart],
) -> list[str]:
    """Return why it is not the time for these restarts, or why they have not settled, whatever the health."""
    facts = reading.facts
    if restarts or kind.is_plain:
        excused = {block for restart in restarts for block in admission.find_excused_blocks(restart, kind.role)}
        reasons = gates.explain_closed(kind.gate, detected, [], excused)
    elif detected.phase in kind.settled:
        reasons = []
    else:
        reasons = [f"the phase is {detected.phase} (QS-RESTART-007)", *(block.text for block in detected.blocks)]
    if kind.is_plain:
        return reasons + [
            why for restart in restarts for why in _check_mode(restart.host, facts["nodes"][restart.host], kind.before)
        ]
    return reasons + (_check_rollback(facts, detected, kind, bool(restarts)) if kind.is_rollback else [])


def _check_rollback(
    facts: ClusterFacts, detected: phase.PhaseResult, kind: transitions.Kind, admitting: bool
) -> list[str]:
    """Return why a rollback's restarts do not go on, or have not settled, whatever the health."""
    steps, refused_now = phase.RevertStep, rollback.refusal(facts, detected, kind.back)
    reasons = [refused_now] if refused_now else []
    if kind.without_quorum:
        reasons += rollback.check_steps_done(detected, steps.MIGRATION_GONE if admitting else steps.BROKERS_PLAIN)
        fenced = zk_controller.explain_fenced(facts["zookeeper"])
        reasons += [fenced] if fenced else []
    elif kind.role == transitions.BROKER and not admitting:
        reasons += [
            f"{host} runs or will start in KRaft mode (QS-GATE-003)"
            for host in rollback.find_brokers_in_mode(facts, kind.left)
        ]
    return reasons


def _health_reading(
    reading: invariants.Reading,
    kind: transitions.Kind,
    restarts: Sequence[admission.Restart],
    accept: Sequence[str],
) -> invariants.Reading:
    """Return the reading of the brokers' health: with the node where its stop is evaluated by itself, or where it runs
    without an answer."""
    if kind.is_plain:
        reading = reading._replace(accepted=accept)
    if len(restarts) == 1 and (not kind.is_plain or restarts[0].unresponsive):
        return reading._replace(node=restarts[0])
    return reading


def _check_mode(host: str, node: NodeFacts, allowed: Iterable[str]) -> list[str]:
    """Return why a host is not in a mode that it may keep."""
    file = node.get("next")
    if file in allowed and node.get("running") in (None, file):
        return []
    return [
        f"{host} runs in mode {node.get('running')}, its file has mode {file}: a plain restart needs both in "
        f"{' or '.join(allowed)} (QS-RESTART-003)"
    ]


def _check_triggers(facts: ClusterFacts, batch: Sequence[str]) -> list[str]:
    """Return why several brokers may not make the last restarts in migration mode at once: these start the copy. A
    broker of the batch that does not come up would go back to plain ZooKeeper mode while another one starts it."""
    others = [node for host, node in facts["nodes"].items() if node["role"] == transitions.BROKER and host not in batch]
    if not all(node.get("running") == node_mode.ZK_MIGRATION for node in others):
        return []
    return [
        f"{' and '.join(batch)} are the last brokers to restart in migration mode, and that starts the initial copy: "
        "the last one restarts alone. Run again: it is planned so (QS-RESTART-002)"
    ]


def _find_falling(reading: invariants.Reading, batch: Sequence[str], accept: Iterable[str] | None) -> list[str]:
    """Return why partitions fall below min.insync.replicas if the whole batch stops now. `accept`: as for `evaluate`;
    None where no token is needed for partitions that cannot keep it."""
    partitions, ids = reading.facts["topics"]["partitions"], phase.ids(reading.facts["nodes"][host] for host in batch)
    if len(ids) < len(batch):
        return [
            "the node id of a host of this batch is unknown: its properties file could not be read (QS-RESTART-003)"
        ]
    cluster = restart_plan.cluster_from_facts(reading.facts, reading.min_isr)
    unavoidable = cluster_health.find_unavoidable(partitions, reading.min_isr)
    why = plain_restart.check_accepted(partitions, reading.min_isr, ids, accept) if accept is not None else ""
    falling = restart_plan.find_unsafe(cluster, ids, unavoidable)
    shown = [f"{name} ({reason})" for name, reason in falling.items()]
    return [
        *([why] if why else []),
        *([f"the batch cannot stop at once: {advice.format_names(shown)} (QS-RESTART-003)"] if shown else []),
    ]
