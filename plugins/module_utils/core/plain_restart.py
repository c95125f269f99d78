# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a batch of nodes may restart in the mode in which they run, outside of a migration. Pure, over collected facts.

Before a stop the whole cluster is healthy, the batch's own nodes included, and no reassignment is in flight. The stop
of the batch at once then leaves every partition its min.insync.replicas (core.restart_plan.unsafe).
"""

from __future__ import annotations

from typing import Collection, Iterable, Mapping, NamedTuple, Sequence

from ..facts import ClusterFacts, NodeFacts, Partitions
from . import admission, advice, gates, invariants, phase, restart, restart_plan, transitions

UNAVOIDABLE = "unavoidable"


class Verdict(NamedTuple):
    """`troubles`: why the batch may not be stopped now, as sentences; `lasting`: those that no wait removes;
    `only_start`: whether the batch is down and is only started."""

    troubles: list[str]
    lasting: list[str]
    only_start: bool


def refused(facts: ClusterFacts, detected: phase.PhaseResult) -> str | None:
    """Return why no node of this cluster may make a plain restart, None when one may."""
    restore = phase.restoring(facts)
    if restore or detected.phase in (phase.UNKNOWN, phase.REVERTING):
        reasons = [advice.sentences(block.text, block.do) for block in detected.blocks]
        return f"The phase is {detected.phase}: {'. '.join(reasons) or 'see quorumshift.kafka.status'}"
    if detected.phase in gates.PLAIN_PHASES:
        return None
    return (
        f"The phase is {detected.phase}: a migration is under way. A plain restart needs one of "
        f"{', '.join(gates.PLAIN_PHASES)}. Finish the migration with quorumshift.kafka.migrate, or take it back with "
        "quorumshift.kafka.rollback"
    )


def unaccepted(
    partitions: Partitions, min_isr: Mapping[str, int], nodes: Collection[int], accept: Iterable[str]
) -> str:
    """Return that partitions of these nodes cannot keep min.insync.replicas, and how to accept it. '' if there are none
    or they are accepted. One token accepts all such partitions of the cluster, so that it is the same for each batch.
    """
    found = restart.unavoidable(partitions, min_isr)
    affected = [
        f"{topic}-{number}"
        for topic, numbers in partitions.items()
        for number, one in numbers.items()
        if f"{topic}-{number}" in found and set(nodes).intersection(one["replicas"])
    ]
    if not affected or token(found) in accept:
        return ""
    return (
        f"no order of restarts keeps {len(affected)} partitions at min.insync.replicas: "
        f"{advice.shown(sorted(affected))}. {restart.acceptable({UNAVOIDABLE: found})}"
    )


def token(unavoidable: Iterable[str]) -> str:
    """Return the token that accepts the restart of brokers with these partitions."""
    return restart.token({UNAVOIDABLE: unavoidable})


def evaluate(
    reading: invariants.Reading, detected: phase.PhaseResult, kind: str, batch: Sequence[str], accept: Iterable[str]
) -> Verdict:
    """Return whether a batch of hosts may be stopped, or only started.

    `reading`: strict (`accepted` is None) and without a node; `accept`: tokens of what is degraded and may stay so, and
    of partitions that cannot keep min.insync.replicas.
    """
    facts, role, accept = reading.facts, transitions.of(kind).role, list(accept)
    nodes = facts["nodes"]
    restarts = [admission.of(facts, host) for host in batch]
    only_start = bool(restarts) and all(one.only_start for one in restarts)
    excused = {block for one in restarts for block in admission.excused_blocks(one, role)}
    troubles = gates.closed_by(gates.RESTART, detected, [], excused)
    troubles += [reason for host in batch for reason in _other_mode(host, nodes[host], kind)]
    alone = [reading._replace(node=one) for one in restarts] or [reading]
    for one in alone:
        troubles += invariants.broken(one, but=("I4",))
    lasting = [] if only_start else [reason for one in alone for reason in invariants.lasting(one)]
    if only_start:
        return Verdict(list(dict.fromkeys(troubles)), lasting, True)
    if len(batch) > 1:
        troubles += [
            f"{one.host} does not answer, and the other hosts of its batch do. Run again: it is planned apart"
            for one in restarts
            if not one.answers
        ]
    out = () if detected.phase == phase.ZK else phase.controllers(facts)
    waiting = {host: node for host, node in nodes.items() if node["role"] == transitions.BROKER or host in out}
    troubles += [
        f"{host} does not answer: {node.get('running_error')}"
        for host, node in sorted(waiting.items())
        if not node.get("running") and host not in batch
    ]
    if role == transitions.CONTROLLER:
        troubles += restart.controller_troubles(nodes, reading.quorum, batch)
        troubles += invariants.health(reading)
        return Verdict(list(dict.fromkeys(troubles)), lasting, False)
    if len(restarts) == 1 and restarts[0].unresponsive:
        troubles += invariants.health(reading._replace(node=restarts[0], accepted=accept))
    else:
        troubles += invariants.health(reading._replace(accepted=accept))
    if (facts["zookeeper"].get("reassign_partitions") or {}).get("exists"):
        troubles.append("/admin/reassign_partitions exists: a reassignment has not ended. Wait until it is gone")
    if reading.facts["topics"].get("reached"):
        troubles += _falling(reading, batch, accept)
    return Verdict(list(dict.fromkeys(troubles)), lasting, False)


def _other_mode(host: str, node: NodeFacts, kind: str) -> list[str]:
    """Return why a host is not in a mode that it may keep."""
    allowed, file = transitions.KEPT_MODES[kind], node.get("next")
    if file in allowed and node.get("running") in (None, file):
        return []
    return [
        f"{host} runs in mode {node.get('running')}, its file has mode {file}: a plain restart needs both in "
        f"{' or '.join(allowed)}"
    ]


def _falling(reading: invariants.Reading, batch: Sequence[str], accept: Iterable[str]) -> list[str]:
    """Return why partitions fall below min.insync.replicas if the whole batch stops now."""
    partitions, ids = reading.facts["topics"]["partitions"], phase.ids(reading.facts["nodes"][host] for host in batch)
    if len(ids) < len(batch):
        return ["the node id of a host of this batch is unknown: its properties file could not be read"]
    cluster = restart_plan.of_facts(reading.facts, reading.min_isr)
    unavoidable = restart.unavoidable(partitions, reading.min_isr)
    why = unaccepted(partitions, reading.min_isr, ids, accept)
    falling = restart_plan.unsafe(cluster, ids, unavoidable)
    shown = [f"{name} ({reason})" for name, reason in falling.items()]
    return [*([why] if why else []), *([f"the batch cannot stop at once: {advice.shown(shown)}"] if shown else [])]
