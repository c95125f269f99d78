# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rollback of a migration: whether it may begin, what restores ZooKeeper's controller, and what is left of the
migration. Pure, over collected facts (probes.cluster.cluster.collect).

Sources: Kafka 3.9's documentation, "Reverting to ZooKeeper mode during the Migration"; KAFKA-20488 for the controller
epoch; KafkaZkClient and PartitionStateMachine, which compare it with that of each partition's state.
"""

from __future__ import annotations

from typing import Iterable, Mapping, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase, transitions, zk_controller
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rollback import restore_plan
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import run_lock
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import advice
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import ClusterFacts, RunLock
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes

ZK, HYBRID = transitions.TO_ZK, transitions.TO_HYBRID
TARGETS = (ZK, HYBRID)


class ZkControllerRestore(NamedTuple):
    """What to change in ZooKeeper: `controller_epoch`: the value to set first (None: it is high enough);
    `controller`, `migration`: whether to delete `/controller` and `/migration`."""

    controller_epoch: int | None
    controller: bool
    migration: bool


def refusal(facts: ClusterFacts, detected: phase.PhaseResult, target: str) -> str | None:
    """Return why a rollback to `target` may not begin; None when it may, or when there is nothing to do."""
    return explain_impossible(facts, detected, target) or (
        (". ".join(check_version_1(facts)) or None) if target == ZK else None
    )


def explain_impossible(facts: ClusterFacts, detected: phase.PhaseResult, target: str) -> str | None:
    """Return why this phase has no rollback to `target`; None when it has one, or when there is nothing to do."""
    if target not in TARGETS:
        return f"quorumshift_rollback_to is {target!r}. Set it to {' or '.join(TARGETS)} (QS-ROLLBACK-001)"
    state = phase.longest_log(phase.controllers(facts)).get("zk_migration_state")
    if detected.phase == phase.KRAFT_NATIVE or state == "POST_MIGRATION":
        why = (
            "was created in KRaft mode (QS-ROLLBACK-001)"
            if detected.phase == phase.KRAFT_NATIVE
            else "has ended its migration (QS-ROLLBACK-001)"
        )
        return (
            f"The phase is {detected.phase}. A cluster that {why} cannot be rolled back to ZooKeeper (QS-ROLLBACK-001)"
        )
    if detected.phase == phase.UNKNOWN and not facts["zookeeper"].get("reached"):
        brokers = [node for node in facts["nodes"].values() if node["role"] == "broker"]
        answer = sum(1 for node in brokers if node.get("running"))
        return (
            f"ZooKeeper could not be read: {facts['zookeeper'].get('error')}. A rollback needs ZooKeeper: repair its "
            f"quorum first. {answer} of {len(brokers)} brokers answer (QS-ROLLBACK-001)"
        )
    if detected.phase == phase.UNKNOWN:
        return ". ".join(advice.sentences(block.text, block.do) for block in detected.blocks)
    if phase.find_restoring(facts):
        return "A restore is not finished. Finish it first: run quorumshift.kafka.restore_zookeeper (QS-ROLLBACK-001)"
    if detected.phase == phase.REVERTING:
        return _check_masked(facts, target)
    if target == HYBRID and detected.phase not in (phase.HYBRID, phase.DUAL_WRITE, phase.FINALIZING):
        return f"The phase is {detected.phase}: no broker can be rolled back to migration mode (QS-ROLLBACK-001)"
    return None


def _check_masked(facts: ClusterFacts, target: str) -> str | None:
    """Return why the masked controllers are not those of a rollback to this target; None when they are."""
    if target == HYBRID:
        return (
            "The controllers are masked: a rollback to ZooKeeper has begun. Continue with "
            "quorumshift_rollback_to=zk (QS-ROLLBACK-001)"
        )
    migration = find_migration_lock(facts)
    if migration:
        return (
            f"The controllers are masked, but not by a rollback: {run_lock.holder(migration)} stopped them because the "
            "initial copy damaged ZooKeeper. To see the damage, run quorumshift.kafka.restore_zookeeper. It changes "
            "nothing without its token (QS-ROLLBACK-001)"
        )
    return None


def find_migration_lock(facts: ClusterFacts) -> RunLock | None:
    """Return the newest run lock if it is that of a migration, None otherwise. That run masked the controllers because
    the initial copy damaged ZooKeeper."""
    newest = run_lock.find_newest(facts["nodes"], phase.cluster_id(facts))
    return newest if newest and newest["direction"] == run_lock.FORWARD else None


def find_unfinished_target(facts: ClusterFacts, detected: phase.PhaseResult) -> str | None:
    """Return the target of an unfinished rollback that has restarted at least one node. None otherwise."""
    target = _find_unfinished(facts).get("target")
    if not target:
        return None
    restarts = [transitions.KINDS.get((node.get("node_restart") or {}).get("kind")) for node in facts["nodes"].values()]
    begun = any(kind and kind.is_rollback for kind in restarts)
    return (
        target
        if begun and not (explain_impossible(facts, detected, target) or is_idle(facts, detected, target))
        else None
    )


def is_unproved(facts: ClusterFacts, detected: phase.PhaseResult, run: str | None = None) -> bool:
    """Return whether another run's rollback to plain ZooKeeper mode was interrupted with only its last gate left: no
    run has verified the cluster since."""
    newest = _find_unfinished(facts)
    return newest.get("target") == ZK and newest["run"] != run and is_idle(facts, detected, ZK)


def _find_unfinished(facts: ClusterFacts) -> Mapping:
    """Return the newest run lock if it is that of a rollback that failed or was interrupted, {} otherwise."""
    newest = run_lock.find_newest(facts["nodes"], phase.cluster_id(facts)) or {}
    return {} if newest.get("direction") != run_lock.BACK or run_lock.has_ended_well(newest) else newest


def is_idle(facts: ClusterFacts, detected: phase.PhaseResult, target: str) -> bool:
    """Return whether there is nothing to roll back."""
    if target == HYBRID:
        return detected.phase == phase.HYBRID and not find_brokers_in_mode(facts, "kraft")
    return detected.phase == phase.ZK and not find_traces(facts)


def find_brokers_in_mode(facts: ClusterFacts, mode: str) -> list[str]:
    """Return the brokers that run or will start in a mode."""
    nodes = facts["nodes"].items()
    return sorted(
        host for host, node in nodes if node["role"] == "broker" and mode in (node.get("running"), node.get("next"))
    )


def check_version_1(facts: ClusterFacts) -> list[str]:
    """Return why brokers would not start in plain ZooKeeper mode, as sentences without the last full stop: that mode
    rejects a log directory that was formatted during the migration (MetaPropertiesEnsemble, KAFKA-20762)."""
    reasons = []
    for host, node in sorted(facts["nodes"].items()):
        directories = node.get("log_dirs") or [] if node["role"] == "broker" else []
        paths = [log_dir["path"] for log_dir in directories if (log_dir.get("meta") or {}).get("version") == "1"]
        if paths:
            reasons.append(
                f"meta.properties of {host} has version=1 in {', '.join(paths)}, so the broker cannot start in plain "
                "ZooKeeper mode. Stop the broker, replace version=1 by version=0 and the line node.id by "
                f"broker.id={node.get('node_id')} there, and start it (QS-ROLLBACK-001)"
            )
    return reasons


def find_traces(facts: ClusterFacts) -> list[str]:
    """Return why a cluster in plain ZooKeeper mode still has traces of a migration, as sentences."""
    reasons = []
    zookeeper = facts["zookeeper"]
    if (zookeeper.get("migration") or {}).get("exists"):
        reasons.append("/migration exists (QS-GATE-004)")
    controller = zookeeper.get("controller") or {}
    if controller.get("exists") and not controller.get("ephemeral"):
        reasons.append("/controller is KRaft's (QS-GATE-004)")
    fenced = zk_controller.explain_fenced(zookeeper)
    reasons += [fenced] if fenced else []
    for host, node in sorted(facts["nodes"].items()):
        if node["role"] == "controller":
            formatted = [log_dir["path"] for log_dir in node.get("log_dirs") or [] if log_dir.get("meta")]
            reasons += [f"{host} has a formatted log directory: {path} (QS-GATE-004)" for path in formatted]
            if (node.get("service") or {}).get("masked"):
                reasons.append(f"{(node.get('service') or {}).get('name')} of {host} is masked (QS-GATE-004)")
        elif node.get("next") not in (None, "zk"):
            reasons.append(f"{host} will start in mode {node['next']} (QS-GATE-004)")
    return reasons


def check_steps_done(detected: phase.PhaseResult, through: str) -> list[str]:
    """Return why a rollback is not done up to the step `through` (phase.detect), as sentences."""
    names = [step["step"] for step in detected.steps]
    wanted = detected.steps[: names.index(through) + 1] if names else []
    return [f"rollback step not done: {step['step']} (QS-GATE-004)" for step in wanted if not step["done"]]


def check_reverted(facts: ClusterFacts, detected: phase.PhaseResult) -> list[str]:
    """Return why the rollback to plain ZooKeeper mode is not complete."""
    return (
        find_traces(facts) if detected.phase == phase.ZK else check_steps_done(detected, phase.RevertStep.BROKERS_PLAIN)
    )


def check_at_rest(facts: ClusterFacts) -> list[str]:
    """Return why ZooKeeper's controller cannot be restored now, as sentences: a KRaft controller runs or may start."""
    reasons = restore_plan.check_at_rest({"nodes": phase.controllers(facts)})
    if not facts["zookeeper"].get("reached"):
        reasons.append(f"ZooKeeper could not be read: {facts['zookeeper'].get('error')} (QS-PHASE-001)")
    return reasons


def check_drained(facts: ClusterFacts) -> str | None:
    """Return why ZooKeeper may lack a committed change of the metadata; None when it has all of them.

    A change is committed if a majority of the voters has it on disk. `/migration` has the offset up to which the
    controllers wrote to ZooKeeper; NoOps and control records after it change nothing. Before the initial copy the
    controllers have changed nothing in ZooKeeper.
    """
    controller = facts["zookeeper"].get("controller") or {}
    if not controller.get("exists") or controller.get("ephemeral"):
        return None  # restored before, or never KRaft's
    migration = facts["zookeeper"].get("migration") or {}
    mirrored = migration.get("kraft_metadata_offset")
    if mirrored is not None and mirrored <= 0:
        return None
    logs = [node.get("metadata_log") or {} for node in phase.controllers(facts).values()]
    if any(log.get("error") for log in logs) or not logs:
        return (
            "a controller's metadata log could not be read, so it is unknown whether ZooKeeper has all "
            "changes (QS-ROLLBACK-004)"
        )
    ends = sorted((log.get("log_end_offset") or 0 for log in logs), reverse=True)
    # the log of an excluded controller is unknown: it counts as one that has all changes
    excluded = sum(node["role"] == "controller" for node in (facts.get("excluded") or {}).values())
    committed = ends[max(0, (len(logs) + excluded) // 2 - excluded)]
    changes = [log["last_change_offset"] for log in logs if log.get("last_change_offset") is not None]
    changed = max((offset for offset in changes if offset < committed), default=-1)
    if mirrored is None:
        return (
            "/migration does not exist, so it is unknown which changes the controllers wrote to "
            "ZooKeeper (QS-ROLLBACK-004)"
        )
    if changed <= mirrored:
        return None
    return (
        f"the quorum has changes up to offset {changed}, ZooKeeper only up to {mirrored}: the controllers were stopped "
        "too early. Start them as the runbook says, wait until they have written the rest, and roll back "
        "again (QS-ROLLBACK-004)"
    )


def restore_zk_controller(
    znodes_seen: Mapping, highest: int | None, raft_epochs: Iterable[int | None]
) -> ZkControllerRestore:
    """Return what to change in ZooKeeper; `znodes_seen`: by zookeeper.zookeeper.read_migration_znodes; `highest`: the
    highest controller epoch in the partitions' states; `raft_epochs`: of the quorum's logs.

    ZooKeeper's controller takes /controller_epoch plus one. It elects no leader for a partition whose state has a
    higher epoch, as KRaft writes it. An elected controller that can write is left alone, since writing the epoch would
    fence it. One that cannot write is replaced by another election.
    """
    controller, migration = znodes_seen["controller"], bool(znodes_seen["migration"]["exists"])
    now = znodes_seen["controller_epoch"]["value"] or 0
    elected = zk_controller.is_elected(controller)
    if elected and not zk_controller.is_fenced(znodes_seen) and now >= (highest or 0):
        return ZkControllerRestore(None, False, migration)
    above = restore_plan.choose_epoch([highest, *raft_epochs])
    return ZkControllerRestore(above if now < above else None, elected or _is_kraft_owned(controller), migration)


def _is_kraft_owned(controller: Mapping) -> bool:
    return bool(controller["exists"] and not controller["ephemeral"])


def find_versions_behind(topics: Mapping, partition_epochs: Mapping[str, Mapping]) -> dict[str, int]:
    """Return {path of a partition's state: the version that it needs}.

    ZooKeeper's controller takes the version of a state's znode as the partition epoch. A broker ignores requests with a
    lower epoch than the one that it knows (Partition.makeLeader, makeFollower). KRaft's epochs are higher: KRaft counts
    every change, and often writes several of them to ZooKeeper at once. A leader that ignores its controller keeps each
    restarted replica out of sync. `topics`: of zk_metadata.normalise; `partition_epochs`: metadata_image.Image.
    """
    behind = {}
    for name, topic in topics["topics"].items():
        known = partition_epochs.get(name)
        if not known or known["topic_id"] != topic["topic_id"]:
            continue
        for number, partition in topic["partitions"].items():
            if partition["version"] is not None and partition["version"] < known["epochs"].get(number, 0):
                behind[znodes.partition_state_path(name, number)] = known["epochs"][number]
    return behind
