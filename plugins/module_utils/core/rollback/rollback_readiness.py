# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a migration could be rolled back now, checked before a rollback is needed. Pure, over collected facts
(probes.cluster.cluster.collect). What blocks every step (an unreached host, a node that is down) is in phase.detect.

Sources: MetaPropertiesEnsemble and KAFKA-20762 for `meta.properties`; KRaftMigrationDriver, which writes the
quorum's committed changes to ZooKeeper.
"""

from __future__ import annotations

import shlex
from typing import NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rollback import rollback
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import advice
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import ClusterFacts

MIB = 1024 * 1024
LOG_DIR_BYTES = 100 * MIB
"""Free space below which a restart may fail: a starting broker writes checkpoints and rolls segments."""
LAG = 120
"""Offsets that ZooKeeper may be behind: one minute, since controllers append a NoOp record twice a second."""


class RollbackReadiness(NamedTuple):
    """`targets`: possible targets of a rollback (rollback.TARGETS); `obstacles`: what would stop it on its way, as
    sentences without the last full stop."""

    targets: tuple[str, ...]
    obstacles: tuple[str, ...]


def detect(facts: ClusterFacts, detected: phase.PhaseResult) -> RollbackReadiness:
    """Return the readiness for a rollback from this phase."""
    targets = [
        target
        for target in (rollback.HYBRID, rollback.ZK)
        if detected.phase != phase.ZK
        and not (rollback.explain_impossible(facts, detected, target) or rollback.is_idle(facts, detected, target))
    ]
    if not targets:
        return RollbackReadiness((), ())
    return RollbackReadiness(
        tuple(targets), (*_zookeeper(facts, detected), *_disks(facts), *rollback.check_version_1(facts))
    )


def _zookeeper(facts: ClusterFacts, detected: phase.PhaseResult) -> list[str]:
    """Return why a rollback to ZooKeeper would lose changes of the metadata."""
    zookeeper = facts["zookeeper"]
    if not zookeeper.get("reached"):
        return [f"ZooKeeper could not be read: {zookeeper.get('error')} (QS-PHASE-001)"]
    behind = measure_behind(facts, detected)
    if behind is None or behind <= LAG:
        return []
    seen = f"ZooKeeper is {behind} offsets behind the quorum, so a rollback would lose these changes (QS-ROLLBACK-003)"
    return [advice.sentences(seen, suggest_writes(facts))]


def measure_behind(facts: ClusterFacts, detected: phase.PhaseResult) -> int | None:
    """Return how many offsets ZooKeeper is behind the quorum; None where controllers do not write to it, or it is not
    known."""
    quorum, migration = facts.get("quorum") or {}, facts["zookeeper"].get("migration") or {}
    mirrored = migration.get("kraft_metadata_offset")
    if detected.phase not in (phase.HYBRID, phase.DUAL_WRITE) or mirrored is None or not quorum.get("reached"):
        return None
    return max(0, quorum["high_watermark"] - 1 - mirrored)


def suggest_writes(facts: ClusterFacts) -> str:
    """Return what to do where ZooKeeper stays behind the quorum. In Kafka 3.9.2 an active controller that loses the
    answer to a write keeps the old version of `/migration`, and each later write fails."""
    leader = (facts.get("quorum") or {}).get("leader_id")
    nodes = sorted(phase.controllers(facts).items())
    led = [(host, node.get("service") or {}) for host, node in nodes if node.get("node_id") == leader]
    name = "".join(f", {host}," for host, _service in led)
    command = "".join(f": systemctl restart {shlex.quote(service['name'])}" for _host, service in led if service)
    return (
        f"read in the log of the active controller{name} why it does not write to ZooKeeper. If it reports BadVersion "
        f"for /migration, restart that controller{command}"
    )


def _disks(facts: ClusterFacts) -> list[str]:
    """Return why a broker may fail to start when a rollback restarts it."""
    reasons = []
    for host, node in sorted(facts["nodes"].items()):
        for log_dir in node.get("log_dirs") or [] if node["role"] == "broker" else []:
            free = log_dir.get("free_bytes")
            if free is not None and free < LOG_DIR_BYTES:
                reasons.append(
                    f"{host}: {log_dir['path']} has {free // MIB} MiB free, and a rollback restarts the broker. Free "
                    "space there (QS-ROLLBACK-003)"
                )
    return reasons
