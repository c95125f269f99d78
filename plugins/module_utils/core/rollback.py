# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a migration is taken back: whether it may be, what is handed back to ZooKeeper, what is left of it. Pure, over
collected facts (probes.cluster.collect gives their shape).

Sources: Kafka 3.9's documentation, "Reverting to ZooKeeper mode during the Migration"; KAFKA-20488 for the controller
epoch; KafkaZkClient and PartitionStateMachine, which compare it with that of each partition's state.
"""

from __future__ import annotations

from typing import Iterable, Mapping, NamedTuple

from ..formats import znodes
from . import advice, phase, restoring, run_lock, transitions, zk_controller

ZK, HYBRID = transitions.TO_ZK, transitions.TO_HYBRID
TARGETS = (ZK, HYBRID)


class ZkControllerRestore(NamedTuple):
    """What ZooKeeper is still to be told: the `controller_epoch` to set first (None: it is high enough), whether
    `/controller` is to be deleted, KRaft's or that of a broker that can write nothing, and whether `/migration` is."""

    controller_epoch: int | None
    controller: bool
    migration: bool


def refused(facts: Mapping, detected: phase.PhaseResult, target: str) -> str | None:
    """Return why the migration is not taken back to `target`, None where it may be or where nothing is to be done."""
    return no_way(facts, detected, target) or ((". ".join(version_1(facts)) or None) if target == ZK else None)


def no_way(facts: Mapping, detected: phase.PhaseResult, target: str) -> str | None:
    """Return why no way leads back to `target` from this phase, None where one does or where nothing is to be done."""
    if target not in TARGETS:
        return f"quorumshift_rollback_to is {target!r}: it takes {' or '.join(TARGETS)}"
    state = phase.longest_log(phase.controllers(facts)).get("zk_migration_state")
    if detected.phase == phase.KRAFT_NATIVE or state == "POST_MIGRATION":
        why = "was born in KRaft mode" if detected.phase == phase.KRAFT_NATIVE else "has ended its migration"
        return f"The phase is {detected.phase}: a cluster that {why} has no way back to ZooKeeper"
    if detected.phase == phase.UNKNOWN and not facts["zookeeper"].get("reached"):
        return (
            f"ZooKeeper could not be read: {facts['zookeeper'].get('error')}. There is no way back but to it: get its "
            "quorum back first. Meanwhile the brokers serve on under the controllers that they have"
        )
    if detected.phase == phase.UNKNOWN:
        return ". ".join(advice.sentences(block.text, block.do) for block in detected.blocks)
    if phase.restoring(facts):
        return "A restore is under way: finish it first, with playbooks/restore_zookeeper.yml"
    if detected.phase == phase.REVERTING:
        return _masked(facts, target)
    if target == HYBRID and detected.phase not in (phase.HYBRID, phase.DUAL_WRITE, phase.FINALIZING):
        return f"The phase is {detected.phase}: there is no broker to take back to migration mode"
    return None


def _masked(facts: Mapping, target: str) -> str | None:
    """Return why controllers that are masked are not those of a rollback, or of one to this target."""
    if target == HYBRID:
        return "The controllers are masked: what has begun is the way back to ZooKeeper, quorumshift_rollback_to=zk"
    by = stopped_by_forward(facts)
    if by:
        return (
            f"The controllers are masked, and not by a rollback: {run_lock.who(by)} stopped them because the copy had "
            "damaged ZooKeeper. See what it has cost, which changes nothing: playbooks/restore_zookeeper.yml"
        )
    return None


def stopped_by_forward(facts: Mapping) -> Mapping | None:
    """Return the newest claim where it is that of a migration: masked controllers are then that run's, which stopped
    them because of what their copy did. None otherwise."""
    newest = run_lock.newest_in(facts["nodes"], phase.cluster_id(facts))
    return newest if newest and newest["direction"] == run_lock.FORWARD else None


def under_way(facts: Mapping, detected: phase.PhaseResult) -> str | None:
    """Return how far back the newest run was to go, where it did not end well and is not there yet. None otherwise; so
    too where it was stopped before anything was restarted: then nothing has begun."""
    target = _cut_off(facts).get("target")
    if not target:
        return None
    restarts = [
        transitions.TRANSITIONS.get((node.get("node_restart") or {}).get("kind")) for node in facts["nodes"].values()
    ]
    begun = any(transition and transition.rollback for transition in restarts)
    return target if begun and not (no_way(facts, detected, target) or idle(facts, detected, target)) else None


def unproved(facts: Mapping, detected: phase.PhaseResult, run: str | None = None) -> bool:
    """Say whether a rollback to plain ZooKeeper mode, another run than this one, was cut off when it had nothing left
    to take back, and before its last gate: nobody has seen then that the cluster is as it was."""
    newest = _cut_off(facts)
    return newest.get("target") == ZK and newest["run"] != run and idle(facts, detected, ZK)


def _cut_off(facts: Mapping) -> Mapping:
    """Return the newest claim where it is that of a rollback that did not end well, {} otherwise."""
    newest = run_lock.newest_in(facts["nodes"], phase.cluster_id(facts)) or {}
    return {} if newest.get("direction") != run_lock.BACK or run_lock.ended_well(newest) else newest


def idle(facts: Mapping, detected: phase.PhaseResult, target: str) -> bool:
    """Say whether there is nothing to take back."""
    if target == HYBRID:
        return detected.phase == phase.HYBRID and not in_mode(facts, "kraft")
    return detected.phase == phase.ZK and not traces(facts)


def in_mode(facts: Mapping, mode: str) -> list[str]:
    """Return the brokers that run or will start in a mode."""
    nodes = facts["nodes"].items()
    return sorted(
        host for host, node in nodes if node["role"] == "broker" and mode in (node.get("running"), node.get("next"))
    )


def version_1(facts: Mapping) -> list[str]:
    """Return why brokers would not start in plain ZooKeeper mode, as sentences without the last full stop: a log
    directory that was formatted during the migration, which that mode refuses (MetaPropertiesEnsemble, KAFKA-20762)."""
    messages = []
    for host, node in sorted(facts["nodes"].items()):
        directories = node.get("log_dirs") or [] if node["role"] == "broker" else []
        paths = [one["path"] for one in directories if (one.get("meta") or {}).get("version") == "1"]
        if paths:
            messages.append(
                f"meta.properties of {host} is of version 1 in {', '.join(paths)}, on which no broker starts in plain "
                "ZooKeeper mode. Stop the broker, write version=0 in place of version=1 and "
                f"broker.id={node.get('node_id')} in place of node.id there, and start it"
            )
    return messages


def traces(facts: Mapping) -> list[str]:
    """Return why a cluster in plain ZooKeeper mode is not without a trace of a migration, as sentences."""
    messages = []
    zookeeper = facts["zookeeper"]
    if (zookeeper.get("migration") or {}).get("exists"):
        messages.append("/migration exists")
    controller = zookeeper.get("controller") or {}
    if controller.get("exists") and not controller.get("ephemeral"):
        messages.append("/controller is KRaft's")
    fenced = zk_controller.fenced_sentence(zookeeper)
    messages += [fenced] if fenced else []
    for host, node in sorted(facts["nodes"].items()):
        if node["role"] == "controller":
            left = [one["path"] for one in node.get("log_dirs") or [] if one.get("meta")]
            messages += [f"{host} holds a log of this quorum in {path}" for path in left]
            if (node.get("service") or {}).get("masked"):
                messages.append(f"{(node.get('service') or {}).get('name')} of {host} is masked")
        elif node.get("next") not in (None, "zk"):
            messages.append(f"{host} will start in mode {node['next']}")
    return messages


def to_do(detected: phase.PhaseResult, through: str) -> list[str]:
    """Return why a rollback is not through this one of its steps (phase.judge), as sentences."""
    names = [one["step"] for one in detected.steps]
    asked = detected.steps[: names.index(through) + 1] if names else []
    return [f"not yet: {one['step']}" for one in asked if not one["done"]]


def not_gone_back(facts: Mapping, detected: phase.PhaseResult) -> list[str]:
    """Return why the brokers are not back in plain ZooKeeper mode, or, in phase zk, what is left of a migration."""
    return traces(facts) if detected.phase == phase.ZK else to_do(detected, phase.RevertStep.BROKERS_PLAIN)


def not_at_rest(facts: Mapping) -> list[str]:
    """Return why ZooKeeper cannot be handed back now, as sentences: a controller runs or may start."""
    messages = restoring.not_at_rest({"nodes": phase.controllers(facts)})
    if not facts["zookeeper"].get("reached"):
        messages.append(f"ZooKeeper could not be read: {facts['zookeeper'].get('error')}")
    return messages


def undrained(facts: Mapping) -> str | None:
    """Return why ZooKeeper lacks a committed change of the metadata, None when it has all of them.

    Committed is what a majority of the voters has on disk. `/migration` tells up to which offset the controllers have
    written to ZooKeeper; NoOps and control records above that change nothing. A migration that was not copied yet left
    ZooKeeper as it was.
    """
    controller = facts["zookeeper"].get("controller") or {}
    if not controller.get("exists") or controller.get("ephemeral"):
        return None  # handed back before, or never taken
    migration = facts["zookeeper"].get("migration") or {}
    mirrored = migration.get("kraft_metadata_offset")
    if mirrored is not None and mirrored <= 0:
        return None
    logs = [node.get("metadata_log") or {} for node in phase.controllers(facts).values()]
    if any(log.get("error") for log in logs) or not logs:
        return "a controller's metadata log could not be read: whether ZooKeeper has all of it cannot be told"
    ends = sorted((log.get("log_end_offset") or 0 for log in logs), reverse=True)
    # of a controller that is gone nobody knows what it has: it counts as one that has all
    excluded = sum(node["role"] == "controller" for node in (facts.get("excluded") or {}).values())
    committed = ends[max(0, (len(logs) + excluded) // 2 - excluded)]
    changes = [log["last_change_offset"] for log in logs if log.get("last_change_offset") is not None]
    changed = max((offset for offset in changes if offset < committed), default=-1)
    if mirrored is None:
        return "/migration does not exist: up to where the controllers wrote to ZooKeeper cannot be told"
    if changed <= mirrored:
        return None
    return (
        f"the quorum has changes up to offset {changed}, ZooKeeper only those up to {mirrored}: the controllers were "
        "stopped too early. Start them again, so that they write the rest (the runbook says how), then roll back anew"
    )


def restore_zk_controller(
    znodes_seen: Mapping, highest: int | None, raft_epochs: Iterable[int | None]
) -> ZkControllerRestore:
    """Return what is to be done in ZooKeeper; `znodes_seen`: by probes.zookeeper.migration_znodes; `highest`: highest
    controller epoch in the partitions' states; `raft_epochs`: of the quorum's logs.

    A controller elected by ZooKeeper takes /controller_epoch plus one, and cannot elect a leader for a partition whose
    state carries a higher one, which KRaft writes there from its own epoch. One that was elected and can write is left
    alone: whoever writes the epoch now fences it off. Another one is elected in its place where it cannot.
    """
    controller, migration = znodes_seen["controller"], bool(znodes_seen["migration"]["exists"])
    now = znodes_seen["controller_epoch"]["value"] or 0
    in_office = zk_controller.elected(controller)
    if in_office and not zk_controller.fenced(znodes_seen) and now >= (highest or 0):
        return ZkControllerRestore(None, False, migration)
    above = restoring.epoch_above([highest, *raft_epochs])
    return ZkControllerRestore(above if now < above else None, in_office or _kraft_owned(controller), migration)


def _kraft_owned(controller: Mapping) -> bool:
    return bool(controller["exists"] and not controller["ephemeral"])


NO_CONTROLLER = "Until then the brokers serve clients and have no controller"


def versions_behind(topics: Mapping, partition_epochs: Mapping[str, Mapping]) -> dict[str, int]:
    """Return {path of a partition's state: the version that it has to get}.

    To ZooKeeper's controller the version of a state's znode is the partition epoch, and a broker passes over what it is
    told of a partition with a lower one than it knows (Partition.makeLeader, makeFollower). Brokers that ran under
    KRaft's controllers know theirs, which count every change, where several were often one write to ZooKeeper. Such a
    leader would keep every restarted replica out of sync. `topics`: of judgements.zk_metadata.normalise;
    `partition_epochs`: formats.metadata_epochs.
    """
    behind = {}
    for name, topic in topics["topics"].items():
        known = partition_epochs.get(name)
        if not known or known["topic_id"] != topic["topic_id"]:
            continue
        for number, one in topic["partitions"].items():
            if one["version"] is not None and one["version"] < known["epochs"].get(number, 0):
                behind[znodes.partition_state_path(name, number)] = known["epochs"][number]
    return behind
