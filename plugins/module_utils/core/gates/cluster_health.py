# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of a rolling restart, and the health that the next restart requires.

Pure functions over `partitions` {topic: {partition: {leader, replicas, isr}}} as probes.cluster.topics reads them, and
`min_isr` {topic: int}. The rule is Kafka's own: a broker rejects acks=all while fewer than min.insync.replicas are in
sync (NotEnoughReplicas), and a partition without an in-sync leader is offline.
"""

from __future__ import annotations

import hashlib
import json
from typing import Iterable, Iterator, Mapping, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import advice
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import (
    NodeFacts,
    Partition,
    Partitions,
    Quorum,
    Topics,
)

OFFLINE, BEHIND, UNDER, TRAILING = "offline", "behind", "under_min_isr", "trailing"
"""What may be degraded: partitions without a leader, without all replicas in sync, with fewer than min.insync.replicas
in sync; followers of the metadata log that have not caught up."""

_DOWN = "down: restarted first"


class Plan(NamedTuple):
    """`batches`: hosts in the order in which they are restarted, each inner list at once; `done`: hosts that need no
    restart; `reasons`: why a host has its place; `unavoidable`: partitions that any restart of a replica makes
    unavailable to acks=all producers, as {topic-partition: sentence}."""

    batches: list[list[str]]
    done: list[str]
    reasons: dict[str, str]
    unavoidable: dict[str, str]


def is_done(node: NodeFacts, mode: str) -> bool:
    """Return whether a node needs no restart: it runs in `mode`, and its file has that mode."""
    return node.get("running") == mode and node.get("next") == mode


def plan_controllers(nodes: Mapping[str, NodeFacts], mode: str, leader_id: int | None) -> Plan:
    """Return the plan that restarts the controllers in `mode`: those that are down first, the quorum's leader last."""
    controllers = {host: node for host, node in nodes.items() if node["role"] == "controller"}
    done = sorted(host for host, node in controllers.items() if is_done(node, mode))
    todo = sorted(
        (host for host in controllers if host not in done),
        key=lambda host: (bool(controllers[host].get("running")), leads(controllers[host], leader_id), host),
    )
    reasons = {host: "leader: last" for host in todo if leads(controllers[host], leader_id)}
    reasons.update({host: _DOWN for host in todo if not controllers[host].get("running")})
    return Plan([[host] for host in todo], done, reasons, {})


def choose_before_leader(nodes: Mapping[str, NodeFacts], mode: str, leader_id: int | None, host: str) -> str:
    """Return the controller to restart now in the place of `host`: another one that is still to be restarted in `mode`,
    while `host` leads the quorum. The leader may have moved since the plan was made. Otherwise `host` itself."""
    controllers = {name: node for name, node in nodes.items() if node["role"] == "controller"}
    left = [controller for batch in plan_controllers(controllers, mode, leader_id).batches for controller in batch]
    return left[0] if host in left and leads(controllers[host], leader_id) else host


def leads(node: NodeFacts, leader_id: int | None) -> bool:
    """Return whether a node leads the quorum."""
    return leader_id is not None and str(node.get("node_id")) == str(leader_id)


def controller_troubles(nodes: Mapping[str, NodeFacts], quorum: Quorum, batch: Iterable[str]) -> list[str]:
    """Return why no controller of `batch` may be stopped now: another one is down, or a voter lags."""
    reasons = [
        f"{host} does not answer: {node.get('running_error')} (QS-GATE-005)"
        for host, node in sorted(nodes.items())
        if node["role"] == "controller" and not node.get("running") and host not in set(batch)
    ]
    if not quorum.get("reached"):
        return [*reasons, f"the quorum has no leader: {quorum.get('error')} (QS-GATE-008)"]
    stopping = {node.get("node_id") for host, node in nodes.items() if host in set(batch)}
    for voter in quorum["voters"]:
        behind = quorum["high_watermark"] - voter["log_end_offset"]
        if behind > 0 and voter["id"] not in stopping:
            reasons.append(f"voter {voter['id']} is {behind} offsets behind the high watermark (QS-GATE-011)")
    return reasons


def count_leaderships(partitions: Partitions) -> dict[int | None, int]:
    """Return how many partitions each broker leads, {broker id: count}."""
    led: dict[int | None, int] = {}
    for _name, partition in _name_partitions(partitions):
        led[partition["leader"]] = led.get(partition["leader"], 0) + 1
    return led


def find_unavoidable(partitions: Partitions, min_isr: Mapping[str, int]) -> dict[str, str]:
    """Return the partitions that no order of restarts keeps available, {topic-partition: sentence}."""
    return {
        name: unavoidable_sentence(len(partition["replicas"]), least)
        for name, partition in _name_partitions(partitions)
        for least in (min_isr.get(_topic(name), 1),)
        if len(partition["replicas"]) - 1 < least
    }


def unavoidable_sentence(replicas: int, least: int) -> str:
    """Return what the restart of a replica does to a partition that has none to spare. `least`: min.insync.replicas."""
    if replicas == 1:
        return "replication factor 1: offline while its broker restarts"
    return f"{replicas} replicas, min.insync.replicas {least}: rejects acks=all while a replica restarts"


def troubles(
    topics: Topics,
    min_isr: Mapping[str, int],
    expected: Iterable[int],
    excused: Iterable[str] = (),
    stop: int | None = None,
    accepted: Iterable[str] | None = None,
) -> list[str]:
    """Return why no broker may be stopped now, as sentences; nothing when the cluster is healthy.

    `expected`: the broker ids that must be alive. `excused`: unavoidable partitions, which still need all their
    replicas in sync. `stop`: a broker; partitions that its stop takes below min.insync.replicas count as well.
    `accepted`: tokens of what may stay degraded (None: nothing may). One token accepts all partitions that are degraded
    now. The stop of a last in-sync replica cannot be accepted.
    """
    if not topics.get("reached"):
        return [topics.get("error") or "the brokers' metadata could not be read (QS-GATE-005)"]
    reasons = [
        f"broker {broker_id} is not in the cluster's metadata (QS-GATE-005)"
        for broker_id in expected
        if str(broker_id) not in topics["brokers"]
    ]
    degraded = _find_degraded(topics["partitions"], min_isr, set(excused))
    if accepted is None or (any(degraded.values()) and token(degraded) not in accepted):
        reasons += _sentence(degraded[OFFLINE], "partition offline", "partitions offline")
        reasons += _sentence(degraded[BEHIND], "partition under-replicated", "partitions under-replicated")
        reasons += _sentence(degraded[UNDER], "partition under min ISR", "partitions under min ISR")
        reasons += [explain_acceptance(degraded)] if accepted is not None else []
    if stop is not None and (accepted is not None or not (degraded[OFFLINE] or degraded[BEHIND])):
        reasons += find_last_in_sync(topics, stop)
        known = {name for names in degraded.values() for name in names}.union(excused)
        falling = [
            name
            for name, partition in _name_partitions(topics["partitions"])
            if name not in known
            and stop in partition["replicas"]
            and sum(replica != stop for replica in partition["isr"]) < min_isr.get(_topic(name), 1)
        ]
        reasons += _sentence(
            falling,
            f"partition falls under min ISR if broker {stop} stops",
            f"partitions fall under min ISR if broker {stop} stops",
        )
    return reasons + (_explain_difference(topics.get("differ") or {}) if reasons else [])


def _find_degraded(partitions: Partitions, min_isr: Mapping[str, int], excused: set[str]) -> dict[str, list[str]]:
    """Return the degraded partitions, by kind."""
    degraded: dict[str, list[str]] = {OFFLINE: [], BEHIND: [], UNDER: []}
    for name, partition in _name_partitions(partitions):
        if partition["leader"] < 0:
            degraded[OFFLINE].append(name)
        elif len(partition["isr"]) < len(partition["replicas"]):
            degraded[BEHIND].append(name)
        if name not in excused and len(partition["isr"]) < min_isr.get(_topic(name), 1):
            degraded[UNDER].append(name)
    return degraded


def explain_acceptance(degraded: Mapping[str, Iterable[str]]) -> str:
    """Return the sentence that says how to accept what is degraded."""
    return f"to accept this state, add -e quorumshift_accept_degraded={token(degraded)} to the command (QS-GATE-005)"


def token(degraded: Mapping[str, Iterable[str]]) -> str:
    """Return the token that accepts what is degraded ({kind: names}). Any change of it changes the token."""
    text = json.dumps({kind: sorted(names) for kind, names in degraded.items()}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:6]


def find_last_in_sync(topics: Topics, stop: int | None = None) -> list[str]:
    """Return why a broker must stay up, one sentence a broker (`stop`, or any): it has the last in-sync replica of
    partitions. Partitions of one replica do not count: they are unavoidable."""
    last: dict[int, list[str]] = {}
    single = set(topics.get("single") or ())
    for name, partition in _name_partitions(topics.get("partitions") or {}):
        if len(partition["isr"]) == 1 and (len(partition["replicas"]) > 1 or name in single):
            last.setdefault(partition["isr"][0], []).append(name)
    return [
        line
        for broker, names in sorted(last.items())
        if stop in (None, broker)
        for line in _sentence(
            names,
            f"partition has its last in-sync replica on broker {broker}",
            f"partitions have their last in-sync replica on broker {broker}",
        )
    ]


def _explain_difference(differ: Mapping) -> list[str]:
    """Return why brokers cannot all be right about the in-sync replicas."""
    names = differ.get("partitions") or []
    if not names:
        return []
    return [
        f"{' and '.join(differ['hosts'])} run in different modes and report different in-sync replicas for "
        f"{len(names)} of these partitions. If this lasts, one of them missed a change (QS-GATE-005)"
    ]


def _name_partitions(partitions: Partitions) -> Iterator[tuple[str, Partition]]:
    for topic, numbers in partitions.items():
        for number, partition in numbers.items():
            yield f"{topic}-{number}", partition


def _topic(name: str) -> str:
    return name.rpartition("-")[0]


def _sentence(names: list[str], singular: str, plural: str) -> list[str]:
    if not names:
        return []
    return [
        f"{len(names)} {singular if len(names) == 1 else plural}: {advice.format_names(sorted(names))} (QS-GATE-005)"
    ]
