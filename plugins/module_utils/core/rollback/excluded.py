# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts that a rollback, a reassignment, a change of features or of the quorum excludes: whether it may, and the facts
without them. Pure, over collected facts (probes.cluster.cluster.collect).

A broker that is down serves no client, and its log stays on its disk. The rollback must keep the in-sync replicas of
the other brokers. A controller that is down may have voted for changes that only one other controller has on disk.
"""

from __future__ import annotations

import posixpath
from typing import Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rollback import rollback
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import run_lock
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import ClusterFacts, Topics


def drop_excluded(facts: ClusterFacts, excluded: Mapping[str, Mapping]) -> dict:
    """Return facts, collected without the nodes `excluded` {host: {role, node_id, running}}, of the other nodes alone.

    Replicas on brokers without a host do not count, nor do partitions that have no other replica. `topics` gets
    `single`: the partitions of which only one replica is left.
    """
    rest = {**facts, "excluded": dict(excluded)}
    voters = {node["node_id"] for node in excluded.values() if node["role"] == "controller"}
    quorum = facts.get("quorum") or {}
    if voters and quorum.get("voters"):
        rest["quorum"] = {**quorum, "voters": [voter for voter in quorum["voters"] if voter["id"] not in voters]}
    topics = facts.get("topics") or {}
    if topics.get("reached") and any(node["role"] == "broker" for node in excluded.values()):
        rest["topics"] = _topics(topics, set(phase.broker_ids(facts)))
    return rest


def _topics(topics: Topics, ids: set[int]) -> dict:
    partitions: dict[str, dict] = {}
    single = []
    for topic, numbers in topics["partitions"].items():
        for number, partition in numbers.items():
            isr = [broker for broker in partition["isr"] if broker in ids]
            replicas = [broker for broker in partition["replicas"] if broker in ids]
            if partition["leader"] < 0 and not isr:
                continue
            if len(replicas) == 1 < len(partition["replicas"]):
                single.append(f"{topic}-{number}")
            partitions.setdefault(topic, {})[number] = {**partition, "isr": isr, "replicas": replicas}
    return {**topics, "partitions": partitions, "single": single}


def refusal(facts: ClusterFacts, detected: phase.PhaseResult, direction: str) -> str | None:
    """Return why hosts may not be excluded, None when they may. `facts`: of `drop_excluded`."""
    excluded = facts.get("excluded") or {}
    if not excluded:
        return None
    why = _explain_refusal(facts, excluded, detected, direction)
    return f"quorumshift_exclude_hosts names {', '.join(sorted(excluded))}: {why} (QS-ROLLBACK-002)" if why else None


def _explain_refusal(
    facts: ClusterFacts, excluded: Mapping[str, Mapping], detected: phase.PhaseResult, direction: str
) -> str | None:
    """Return why, without the hosts' names."""
    if direction not in (run_lock.BACK, run_lock.REASSIGN, run_lock.FEATURES, run_lock.QUORUM):
        return (
            "only a rollback, a reassignment, a change of features or of the quorum may exclude hosts (QS-ROLLBACK-002)"
        )
    unknown = sorted(host for host, node in excluded.items() if not node["role"])
    if unknown:
        return f"{', '.join(unknown)} is in neither of the groups kafka_broker and kafka_controller (QS-ROLLBACK-002)"
    serving = sorted(host for host, node in excluded.items() if node.get("running"))
    if serving:
        return (
            f"{', '.join(serving)} answers in mode {excluded[serving[0]]['running']}. Stop it, or do not exclude "
            "it (QS-ROLLBACK-002)"
        )
    if detected.phase != phase.REVERTING and any(node["role"] == "broker" for node in excluded.values()):
        # once the controllers are stopped, no node removes a dead broker from the metadata
        known = {int(broker_id) for broker_id in (facts.get("topics") or {}).get("brokers") or {}}
        known |= {int(broker_id) for broker_id in facts["zookeeper"].get("broker_ids") or {}}
        alive = sorted(known - set(phase.broker_ids(facts)))
        if alive:
            numbers = ", ".join(map(str, alive))
            return (
                f"broker {numbers} is still registered, and no other host has this id. Wait until its session "
                "ends (QS-ROLLBACK-002)"
            )
    left = {node["role"] for node in facts["nodes"].values()}
    if "broker" not in left:
        return "no broker is left (QS-ROLLBACK-002)"
    if "controller" not in left and direction == run_lock.BACK:
        return "no controller is left, so it is unknown what the quorum has committed (QS-ROLLBACK-002)"
    return None


def explain_return(excluded: Mapping[str, Mapping[str, str]], target: str) -> list[str]:
    """Return what to do on excluded hosts before they start again, as sentences. `excluded`: {host: {role, config_file,
    state: the node's directory on it, log_dir of a controller}}."""
    advice = []
    for host, node in sorted(excluded.items()):
        file = node["config_file"]
        if node["role"] == "controller":
            do = f"before it starts, empty {node['log_dir']} and remove {file}: it has the old quorum's log"
        elif target == rollback.HYBRID:
            do = "start it in the mode of its file, and the next run includes it"
        else:
            saved = f"{node['state']}/configs/{posixpath.basename(file)}.before-zk_migration"
            do = f"before it starts, replace {file} by {saved}, if that file exists"
        advice.append(f"{host} was excluded: {do}")
    return advice
