# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a migration could be taken back now, told before anybody needs it. Pure, over collected facts
(probes.cluster.collect gives their shape). What blocks every step (a host that was not reached, a broker that is down,
controllers that are down) phase.judge tells.

Sources: MetaPropertiesEnsemble and KAFKA-20762 for `meta.properties`; KRaftMigrationDriver, which writes to ZooKeeper
what the quorum has committed.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple

from . import advice, phase, rollback

MIB = 1024 * 1024
LOG_DIR_BYTES = 100 * MIB
"""Free space below which a broker's restart is at risk: it writes checkpoints and rolls segments as it starts."""
LAG = 120
"""Offsets that ZooKeeper may be behind: controllers append a record without content twice a second, so a minute's."""


class RollbackReadiness(NamedTuple):
    """`targets`: how far back a rollback could go from here (reverting.TARGETS); `hurts`: what would keep it from
    getting there, as sentences without the last full stop."""

    targets: tuple[str, ...]
    hurts: tuple[str, ...]


def detect(facts: Mapping, detected: phase.PhaseResult) -> RollbackReadiness:
    """Judge it from what is seen now."""
    targets = [
        target
        for target in (rollback.HYBRID, rollback.ZK)
        if detected.phase != phase.ZK
        and not (rollback.no_way(facts, detected, target) or rollback.idle(facts, detected, target))
    ]
    if not targets:
        return RollbackReadiness((), ())
    return RollbackReadiness(tuple(targets), (*_zookeeper(facts, detected), *_disks(facts), *rollback.version_1(facts)))


def _zookeeper(facts: Mapping, detected: phase.PhaseResult) -> list[str]:
    """Return why ZooKeeper could not take over as it stands."""
    seen = facts["zookeeper"]
    if not seen.get("reached"):
        return [f"ZooKeeper could not be read: {seen.get('error')}"]
    mirrored = (seen.get("migration") or {}).get("kraft_metadata_offset")
    quorum = facts.get("quorum") or {}
    if detected.phase not in (phase.HYBRID, phase.DUAL_WRITE) or mirrored is None or not quorum.get("reached"):
        return []
    behind = quorum["high_watermark"] - 1 - mirrored
    if behind <= LAG:
        return []
    seen = f"ZooKeeper is {behind} offsets behind the quorum, and what it lacks would be missing"
    return [advice.sentences(seen, to_be_written(facts))]


def to_be_written(facts: Mapping) -> str:
    """Return what to do where ZooKeeper stays behind the quorum. An active controller of Kafka 3.9.2 whose write's
    answer got lost goes on with the old version of `/migration` for ever."""
    leader = (facts.get("quorum") or {}).get("leader_id")
    nodes = sorted(phase.controllers(facts).items())
    host, node = next(((host, node) for host, node in nodes if node.get("node_id") == leader), ("", {}))
    named = f", {host}," if host else ""
    typed = f": systemctl restart {node['service']['name']}" if node.get("service") else ""
    return (
        f"look at the log of the active controller{named} why it does not write to ZooKeeper; where it says BadVersion "
        f"for /migration, restart that controller{typed}"
    )


def _disks(facts: Mapping) -> list[str]:
    """Return why a broker may not come up when a rollback restarts it."""
    messages = []
    for host, node in sorted(facts["nodes"].items()):
        for one in node.get("log_dirs") or [] if node["role"] == "broker" else []:
            free = one.get("free_bytes")
            if free is not None and free < LOG_DIR_BYTES:
                messages.append(
                    f"{host}: {one['path']} has {free // MIB} MiB free, and a rollback restarts the broker. Make room "
                    "there"
                )
    return messages
