# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When nodes may restart in the mode in which they run, outside of a migration, and which partitions that makes
unavailable. Pure, over collected facts. core.restart.batches has the health before each stop.
"""

from __future__ import annotations

from typing import Collection, Iterable, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import cluster_health, gates
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import oldest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import advice
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import ClusterFacts, Partitions

UNAVOIDABLE = "unavoidable"
RESTART, REASSIGNMENT, FEATURES = "A plain restart", "A reassignment", "A change of features"
QUORUM = "A change of the quorum"


def refusal(facts: ClusterFacts, detected: phase.PhaseResult, what: str = RESTART) -> str | None:
    """Return why no node of this cluster may make a plain restart, or `what` may not begin; None when it may."""
    restore = phase.find_restoring(facts)
    if restore or detected.phase in (phase.UNKNOWN, phase.REVERTING):
        reasons = [advice.sentences(block.text, block.do) for block in detected.blocks]
        return f"The phase is {detected.phase}: {'. '.join(reasons) or 'see quorumshift.kafka.status'} (QS-PHASE-001)"
    if detected.phase in gates.PLAIN_PHASES:
        return oldest.refusal(facts["nodes"])
    return (
        f"The phase is {detected.phase}: a migration is under way. {what} needs one of "
        f"{', '.join(gates.PLAIN_PHASES)}. Finish the migration with quorumshift.kafka.migrate, or take it back with "
        "quorumshift.kafka.rollback (QS-RESTART-003)"
    )


def check_accepted(
    partitions: Partitions, min_isr: Mapping[str, int], nodes: Collection[int], accept: Iterable[str]
) -> str:
    """Return that partitions of these nodes cannot keep min.insync.replicas, and how to accept it. '' if there are none
    or they are accepted. One token accepts all such partitions of the cluster, so that it is the same for each batch.
    """
    found = cluster_health.find_unavoidable(partitions, min_isr)
    affected = [
        f"{topic}-{number}"
        for topic, numbers in partitions.items()
        for number, partition in numbers.items()
        if f"{topic}-{number}" in found and set(nodes).intersection(partition["replicas"])
    ]
    if not affected or token(found) in accept:
        return ""
    return (
        f"no order of restarts keeps {len(affected)} partitions at min.insync.replicas: "
        f"{advice.format_names(sorted(affected))}. {cluster_health.explain_acceptance({UNAVOIDABLE: found})} "
        "(QS-RESTART-003)"
    )


def token(unavoidable: Iterable[str]) -> str:
    """Return the token that accepts the restart of brokers with these partitions."""
    return cluster_health.token({UNAVOIDABLE: unavoidable})
