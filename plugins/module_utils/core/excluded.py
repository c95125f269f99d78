# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts without which a migration is taken back: whether they may be left out, and the facts as they are without them.
Pure, over collected facts (probes.cluster.collect gives their shape).

A broker that is down serves nobody, and its log waits for its return. What has to be kept is what the others have: the
partitions' in-sync replicas. A controller that is down may have voted for what no other but one has on disk.
"""

from __future__ import annotations

from typing import Iterable, Mapping

from . import phase, rollback, run_lock


def without(facts: Mapping, excluded: Mapping[str, Mapping]) -> dict:
    """Return facts, collected without the nodes `gone` {host: {role, node_id, running}}, as they are without these.

    Replicas on brokers of which there is no host any more do not count, nor do partitions that lived there alone.
    `topics` gets `single`: the partitions that have one replica now and have more in truth.
    """
    reported = {**facts, "excluded": dict(excluded)}
    voters = {node["node_id"] for node in excluded.values() if node["role"] == "controller"}
    quorum = facts.get("quorum") or {}
    if voters and quorum.get("voters"):
        reported["quorum"] = {**quorum, "voters": [one for one in quorum["voters"] if one["id"] not in voters]}
    topics = facts.get("topics") or {}
    if topics.get("reached") and any(node["role"] == "broker" for node in excluded.values()):
        reported["topics"] = _topics(topics, set(phase.broker_ids(facts)))
    return reported


def _topics(topics: Mapping, left: set[int]) -> dict:
    partitions: dict[str, dict] = {}
    single = []
    for topic, numbers in topics["partitions"].items():
        for number, one in numbers.items():
            isr = [broker for broker in one["isr"] if broker in left]
            replicas = [broker for broker in one["replicas"] if broker in left]
            if one["leader"] < 0 and not isr:
                continue
            if len(replicas) == 1 < len(one["replicas"]):
                single.append(f"{topic}-{number}")
            partitions.setdefault(topic, {})[number] = {**one, "isr": isr, "replicas": replicas}
    return {**topics, "partitions": partitions, "single": single}


def refused(facts: Mapping, detected: phase.PhaseResult, direction: str) -> str | None:
    """Return why hosts may not be left out, None when they may. `facts`: of `without`."""
    excluded = facts.get("excluded") or {}
    if not excluded:
        return None
    why = _why(facts, excluded, detected, direction)
    return f"quorumshift_exclude_hosts names {', '.join(sorted(excluded))}: {why}" if why else None


def _why(facts: Mapping, excluded: Mapping[str, Mapping], detected: phase.PhaseResult, direction: str) -> str | None:
    """Return why, without whom it concerns."""
    if direction != run_lock.BACK:
        return "a migration is taken back without hosts that are gone, everything else needs them all"
    unknown = sorted(host for host, node in excluded.items() if not node["role"])
    if unknown:
        return f"{', '.join(unknown)} is in neither of the groups kafka_broker and kafka_controller"
    serving = sorted(host for host, node in excluded.items() if node.get("running"))
    if serving:
        return f"{', '.join(serving)} answers as {excluded[serving[0]]['running']}. Leave it in, or stop it first"
    if detected.phase != phase.REVERTING and any(node["role"] == "broker" for node in excluded.values()):
        # with the controllers stopped nobody takes a dead broker out of what the others serve
        known = {int(one) for one in (facts.get("topics") or {}).get("brokers") or {}}
        known |= {int(one) for one in facts["zookeeper"].get("broker_ids") or {}}
        alive = sorted(known - set(phase.broker_ids(facts)))
        if alive:
            numbers = ", ".join(map(str, alive))
            return f"broker {numbers}, of no other host, is alive to the cluster. Wait until it has noticed"
    left = {node["role"] for node in facts["nodes"].values()}
    if "broker" not in left:
        return "no broker is left"
    if "controller" not in left:
        return "no controller is left, and without one nobody knows what the quorum has committed"
    return None


def returning(excluded: Iterable[tuple[str, str]], target: str, state: str) -> list[str]:
    """Return what is to be done on hosts before they serve again, as sentences. `gone`: (host, role); `state`: the
    cluster's directory on them."""
    messages = []
    for host, role in sorted(excluded):
        if role == "controller":
            do = "empty its log directory and take its properties file away before it starts: it has this quorum's log"
        elif target == rollback.HYBRID:
            do = "it may start as its file says, and the next run takes it along"
        else:
            do = (
                "before it starts, put the properties file of before the migration back, which is "
                f"{state}/configs/server.properties.before-zk_migration there, where there is one"
            )
        messages.append(f"{host} was left out: {do}")
    return messages
