# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a batch of nodes may be stopped: in plain restarts, and in those of a migration for several brokers. Pure, over
collected facts.

Before a stop the whole cluster is healthy, the batch's own nodes included, and no reassignment is in flight. The stop
of the batch at once then leaves every partition its min.insync.replicas (core.restart_plan.unsafe).
"""

from __future__ import annotations

from typing import Iterable, NamedTuple, Sequence

from ..facts import ClusterFacts, NodeFacts
from . import admission, advice, gates, invariants, node_mode, phase, plain_restart, restart, restart_plan, transitions


class Verdict(NamedTuple):
    """`troubles`: why the batch may not be stopped now, as sentences; `lasting`: those that no wait removes;
    `only_start`: whether the batch is down and is only started."""

    troubles: list[str]
    lasting: list[str]
    only_start: bool


def evaluate(
    reading: invariants.Reading, detected: phase.PhaseResult, kind: str, batch: Sequence[str], accept: Iterable[str]
) -> Verdict:
    """Return whether a batch of hosts may be stopped, or only started.

    `reading`: without a node; before plain restarts strict (`accepted` is None). `accept`: before plain restarts, the
    tokens of what is degraded and may stay so, and of partitions that cannot keep min.insync.replicas.
    """
    facts, row, accept = reading.facts, transitions.KINDS[kind], list(accept)
    nodes, role, plain = facts["nodes"], row.role, row.is_plain
    restarts = [admission.of(facts, host) for host in batch]
    only_start = bool(restarts) and all(one.only_start for one in restarts)
    excused = {block for one in restarts for block in admission.excused_blocks(one, role)}
    troubles = gates.closed_by(row.gate, detected, [], excused)
    if plain:
        troubles += [reason for host in batch for reason in _other_mode(host, nodes[host], row.before)]
    alone = [reading._replace(node=one) for one in restarts] or [reading]
    for one in alone:
        troubles += invariants.broken(one, but=("I4",))
    lasting = [] if only_start else [reason for one in alone for reason in invariants.lasting(one)]
    if row.joins and len(batch) > 1:
        lasting += _triggers_at_once(facts, batch)
    if only_start:
        return Verdict(list(dict.fromkeys(troubles)), lasting, True)
    if len(batch) > 1:
        troubles += [
            f"{one.host} does not answer, and the other hosts of its batch do. Run again: it is planned apart"
            for one in restarts
            if not one.answers
        ]
    stopped = () if detected.phase != phase.ZK and not row.without_quorum else phase.controllers(facts)
    waiting = {host: node for host, node in nodes.items() if host not in stopped}
    troubles += [
        f"{host} does not answer: {node.get('running_error')}"
        for host, node in sorted(waiting.items())
        if not node.get("running") and host not in batch
    ]
    # Without a migration there is no quorum yet: nothing of controllers was restarted, and the brokers' health counts
    if role == transitions.CONTROLLER and (batch or detected.phase != phase.ZK):
        troubles += restart.controller_troubles(nodes, reading.quorum, batch)
        troubles += invariants.health(reading)
        return Verdict(list(dict.fromkeys(troubles)), lasting, False)
    asked = reading._replace(accepted=accept) if plain else reading
    if len(restarts) == 1 and restarts[0].unresponsive:
        asked = asked._replace(node=restarts[0])
    unhealthy = invariants.health(asked)
    troubles += unhealthy
    if (facts["zookeeper"].get("reassign_partitions") or {}).get("exists"):
        troubles.append("/admin/reassign_partitions exists: a reassignment has not ended. Wait until it is gone")
    if facts["topics"].get("reached") and not unhealthy:
        troubles += _falling(reading, batch, accept if plain else None)
    return Verdict(list(dict.fromkeys(troubles)), lasting, False)


def _other_mode(host: str, node: NodeFacts, allowed: Iterable[str]) -> list[str]:
    """Return why a host is not in a mode that it may keep."""
    file = node.get("next")
    if file in allowed and node.get("running") in (None, file):
        return []
    return [
        f"{host} runs in mode {node.get('running')}, its file has mode {file}: a plain restart needs both in "
        f"{' or '.join(allowed)}"
    ]


def _triggers_at_once(facts: ClusterFacts, batch: Sequence[str]) -> list[str]:
    """Return why several brokers may not make the last restarts in migration mode at once: these start the copy. A
    broker of the batch that does not come up would go back to plain ZooKeeper mode while another one starts it."""
    others = [one for host, one in facts["nodes"].items() if one["role"] == transitions.BROKER and host not in batch]
    if not all(one.get("running") == node_mode.ZK_MIGRATION for one in others):
        return []
    return [
        f"{' and '.join(batch)} are the last brokers to restart in migration mode, and that starts the initial copy: "
        "the last one restarts alone. Run again: it is planned so"
    ]


def _falling(reading: invariants.Reading, batch: Sequence[str], accept: Iterable[str] | None) -> list[str]:
    """Return why partitions fall below min.insync.replicas if the whole batch stops now. `accept`: as for `evaluate`;
    None where no token is needed for partitions that cannot keep it."""
    partitions, ids = reading.facts["topics"]["partitions"], phase.ids(reading.facts["nodes"][host] for host in batch)
    if len(ids) < len(batch):
        return ["the node id of a host of this batch is unknown: its properties file could not be read"]
    cluster = restart_plan.of_facts(reading.facts, reading.min_isr)
    unavoidable = restart.unavoidable(partitions, reading.min_isr)
    why = plain_restart.unaccepted(partitions, reading.min_isr, ids, accept) if accept is not None else ""
    falling = restart_plan.unsafe(cluster, ids, unavoidable)
    shown = [f"{name} ({reason})" for name, reason in falling.items()]
    return [*([why] if why else []), *([f"the batch cannot stop at once: {advice.shown(shown)}"] if shown else [])]
