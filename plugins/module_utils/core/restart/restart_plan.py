# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes may restart together: batches in which every partition keeps its min.insync.replicas. Pure.

The rule: of a partition's in-sync replicas, a batch may stop as many as there are beyond min.insync.replicas. A replica
that is offline, catching up or about to be removed by a reassignment is not in sync, so it is lost already. The rule
bounds batches of several nodes. A node alone waits for its admission, which requires more (core.gates.invariants).

The quorum's controllers are planned by the same rule: the metadata log is one partition whose replicas are the voters
and whose min.insync.replicas is the majority (`cluster_from_quorum`).
"""

from __future__ import annotations

from typing import Iterable, Iterator, Mapping, NamedTuple, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import cluster_health
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import node_mode, phase, transitions
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import clock
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import format_names
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import (
    ClusterFacts,
    NodeFacts,
    Partition,
    Partitions,
    Quorum,
)

METADATA_LOG = "__cluster_metadata"
CONTROLLER_LAST = "controller: last, so that it moves once"
_SMALLEST = 1  # a topic's min.insync.replicas where none is known, as in Kafka


class Cluster(NamedTuple):
    """What batches are planned from. Nodes are ids.

    `alive`: those that are registered and unfenced; `racks`: {id: rack}, without nodes that have none; `controller`:
    the node that moves leadership of the cluster when it stops, None if unknown; `removing`: {topic-partition: replicas
    that a reassignment removes}.
    """

    partitions: Partitions
    min_isr: Mapping[str, int]
    alive: frozenset[int]
    racks: Mapping[int, str] = {}
    controller: int | None = None
    removing: Mapping[str, Iterable[int]] = {}


class Batches(NamedTuple):
    """`batches`: ids in the order in which they restart, each inner list together; `done`: ids that need no restart;
    `reasons`: {id: why it has its place or is alone}; `unavoidable`: partitions that no order keeps at min ISR, as
    {topic-partition: sentence}."""

    batches: list[list[int]]
    done: list[int]
    reasons: dict[int, str]
    unavoidable: dict[str, str]


class _Limits(NamedTuple):
    """What bounds batches, by node. `bit`: its place in masks; `never`: mask of those that never join it; `counted`:
    [(mask, how many of it a batch may stop)] for more than one; `waiting`: a partition that has no replica to spare
    now, of a node that therefore goes alone."""

    bit: dict[int, int]
    never: dict[int, int]
    counted: dict[int, list[tuple[int, int]]]
    waiting: dict[int, str]


def plan(
    cluster: Cluster,
    to_restart: Iterable[int],
    done: Iterable[int] = (),
    canary: int | None = None,
    concurrency: int = 1,
) -> Batches:
    """Return the batches that restart the nodes `to_restart` but those that are `done`.

    Nodes that are down come first, then the canary alone, then rack by rack, last the controller alone. No batch has
    more than `concurrency` nodes. The same cluster gives the same plan. Raises ValueError for a canary that is not
    to be restarted, and for a concurrency below 1.
    """
    if concurrency < 1:
        raise ValueError(f"a batch has at least one node, the concurrency is {concurrency} (QS-RESTART-002)")
    finished = sorted(set(done))
    todo = sorted(set(to_restart).difference(finished))
    if canary is not None and canary not in todo and canary not in finished:
        raise ValueError(
            f"the canary {canary} is none of the nodes to restart: {format_names([str(node) for node in todo])} "
            "(QS-RESTART-002)"
        )
    unavoidable = _find_unavoidable(cluster)
    down = [node for node in todo if node not in cluster.alive]
    batches = [down[start : start + concurrency] for start in range(0, len(down), concurrency)]
    reasons = dict.fromkeys(down, "down: started first")
    up = [node for node in todo if node in cluster.alive]
    if canary in up:
        up.remove(canary)
        batches.append([canary])
        reasons[canary] = "canary: first and alone"
    last = [cluster.controller] if cluster.controller in up else []
    up = [node for node in up if node not in last]
    if concurrency == 1:
        batches += [[node] for rack in _sort_by_rack(up, cluster.racks) for node in rack]
    else:
        limits = _limits(cluster, up, unavoidable)
        apart: dict[int, list[int]] = {}
        for rack in _sort_by_rack(up, cluster.racks):
            batches += _pack(rack, limits, concurrency, apart)
        alone = [batch[0] for batch in batches if len(batch) == 1 and batch[0] not in reasons]
        reasons.update(_explain_alone(cluster, alone, limits.waiting, apart))
    if last:
        batches.append(last)
        reasons[last[0]] = CONTROLLER_LAST
    return Batches(batches, finished, reasons, unavoidable)


def find_unsafe(cluster: Cluster, batch: Iterable[int], accepted: Iterable[str] = ()) -> dict[str, str]:
    """Return the partitions that fall below min.insync.replicas if the whole batch stops now, {topic-partition:
    sentence}. A partition whose in-sync replicas are all elsewhere is not among them: the batch takes nothing from it.

    `accepted`: unavoidable partitions that may fall below. Such a partition may lose one in-sync replica, and the last
    one only if it has no other replica.
    """
    stopping, may_fall, found = set(batch), set(accepted), {}
    for name, partition, least in _name_partitions(cluster):
        in_sync = _in_sync(cluster, name, partition)
        left = [replica for replica in in_sync if replica not in stopping]
        if name in may_fall and len(in_sync) - len(left) == 1 and (left or len(partition["replicas"]) == 1):
            continue
        if len(left) < len(in_sync) and len(left) < least:
            found[name] = (
                f"{len(left)} of {len(partition['replicas'])} replicas in sync left, min.insync.replicas {least}"
            )
    return found


def cluster_from_quorum(quorum: Quorum, lag_records: int = 0) -> Cluster:
    """Return the quorum's controllers as a cluster: a voter is in sync if it lacks at most `lag_records` records below
    the high watermark, and its min.insync.replicas is the majority. Raises ValueError if no leader describes it."""
    if not quorum.get("reached"):
        raise ValueError(f"the quorum has no leader: {quorum.get('error')} (QS-GATE-008)")
    voters = sorted(voter["id"] for voter in quorum["voters"])
    in_sync = [
        voter["id"] for voter in quorum["voters"] if quorum["high_watermark"] - voter["log_end_offset"] <= lag_records
    ]
    log: dict[str, Partition] = {"0": {"leader": quorum["leader_id"], "replicas": voters, "isr": sorted(in_sync)}}
    majority = len(voters) // 2 + 1
    # A voter that lags is alive: whether it answers is for the admission.
    return Cluster({METADATA_LOG: log}, {METADATA_LOG: majority}, frozenset(voters), controller=quorum["leader_id"])


# The rule -------------------------------------------------------------------------------------------------------------


def _name_partitions(cluster: Cluster) -> Iterator[tuple[str, Partition, int]]:
    """Yield each partition with its name and min.insync.replicas, in an order that brokers' answers do not decide."""
    for topic, numbers in sorted(cluster.partitions.items()):
        least = cluster.min_isr.get(topic, _SMALLEST)
        for number in sorted(numbers):
            yield f"{topic}-{number}", numbers[number], least


def _in_sync(cluster: Cluster, name: str, partition: Partition) -> list[int]:
    leaving = cluster.removing.get(name, ()) if cluster.removing else ()
    return [replica for replica in partition["isr"] if replica in cluster.alive and replica not in leaving]


def _find_unavoidable(cluster: Cluster) -> dict[str, str]:
    """Return the partitions that have no replica to spare even if all are in sync, once reassignments have ended."""
    found = {}
    for name, partition, least in _name_partitions(cluster):
        count = len(partition["replicas"])
        if cluster.removing:
            count = len(set(partition["replicas"]).difference(cluster.removing.get(name, ())))
        if count - 1 < least:
            found[name] = cluster_health.unavoidable_sentence(count, least)
    return found


def _sort_by_rack(nodes: Iterable[int], racks: Mapping[int, str]) -> list[list[int]]:
    """Return the nodes rack by rack, in order of the racks' names; those without a rack come first."""
    grouped: dict[str, list[int]] = {}
    for node in nodes:
        grouped.setdefault(racks.get(node, ""), []).append(node)
    return [grouped[rack] for rack in sorted(grouped)]


def _limits(cluster: Cluster, nodes: Sequence[int], unavoidable: Mapping[str, str]) -> _Limits:
    """Return what bounds the batches of these nodes, each of which is in one rack."""
    alive, removing, racks = cluster.alive, cluster.removing, cluster.racks
    bit = {node: 1 << place for place, node in enumerate(nodes)}
    of_rack: dict[str, int] = {}
    for node in nodes:
        of_rack[racks.get(node, "")] = of_rack.get(racks.get(node, ""), 0) | bit[node]
    together = list(of_rack.values())
    most: dict[int, int] = {}  # many partitions have the same replicas
    waiting: dict[int, str] = {}
    for name, partition, least in _name_partitions(cluster):
        leaving = removing.get(name, ()) if removing else ()
        count = mask = 0
        for replica in partition["isr"]:
            if replica in alive and replica not in leaving:
                count += 1
                mask |= bit.get(replica, 0)
        spare = count - least
        if spare < 1:
            if name not in unavoidable:
                for replica in _in_sync(cluster, name, partition):
                    waiting.setdefault(replica, name)
            spare = 1  # of an unavoidable partition, no two at once
        if mask & (mask - 1) and spare < most.get(mask, count):
            most[mask] = spare
    never = dict.fromkeys(nodes, 0)
    counted: dict[int, list[tuple[int, int]]] = {node: [] for node in nodes}
    by_bit = {node_bit: node for node, node_bit in bit.items()}
    for mask, spare in most.items():
        for rack in together if len(together) > 1 else (mask,):
            shared = mask & rack
            if not shared & (shared - 1):
                continue  # one of this rack's nodes, or none
            members, rest = [], shared
            while rest:
                members.append(by_bit[rest & -rest])
                rest &= rest - 1
            for node in members if spare < len(members) else ():
                if spare == 1:
                    never[node] |= shared
                else:
                    counted[node].append((shared, spare))
    return _Limits(bit, never, counted, waiting)


def _pack(nodes: list[int], limits: _Limits, concurrency: int, apart: dict[int, list[int]]) -> Iterator[list[int]]:
    """Yield the batches of one rack: each takes the next node, and every later one that the rule lets join.

    Notes in `apart`, by node, the nodes that it could not join. A node is added once, so the work is linear in the
    replicas.
    """
    left = nodes
    while left:
        batch: list[int] = []
        closed = 0  # mask of the nodes that may not join any more
        stopped: dict[tuple[int, int], int] = {}
        for node in left:
            if len(batch) == concurrency or (batch and batch[0] in limits.waiting):
                break
            if closed & limits.bit[node]:
                apart[node] = list(batch)
                continue
            if batch and node in limits.waiting:
                continue
            batch.append(node)
            closed |= limits.never[node]
            for limit in limits.counted[node]:
                stopped[limit] = stopped.get(limit, 0) + 1
                if stopped[limit] == limit[1]:
                    closed |= limit[0]
        left = [node for node in left if node not in batch]
        if len(batch) == 1 and left and apart.get(left[0]) == batch:
            apart[batch[0]] = left[:1]
        yield batch


def _explain_alone(
    cluster: Cluster, alone: Iterable[int], waiting: Mapping[int, str], apart: Mapping[int, list[int]]
) -> dict[int, str]:
    """Return why each of these nodes is a batch of its own."""
    reasons, unexplained = {}, {}
    for node in alone:
        if node in waiting:
            reasons[node] = f"alone: {waiting[node]} has no in-sync replica to spare now (QS-RESTART-002)"
        elif node in apart:
            unexplained[node] = set(apart[node])
        else:
            reasons[node] = f"alone: no other node{_describe_rack(cluster, node)} is left to join it (QS-RESTART-002)"
    for name, partition, least in _name_partitions(cluster):
        if not unexplained:
            break
        for node in [replica for replica in partition["isr"] if replica in unexplained]:
            in_sync = _in_sync(cluster, name, partition)
            others = [replica for replica in in_sync if replica in unexplained[node]]
            if len(others) >= max(1, len(in_sync) - least):
                reasons[node] = (
                    f"alone: {name} is also on broker {format_names([str(other) for other in sorted(others)])}, and "
                    f"may lose {max(0, len(in_sync) - least)} of {len(in_sync)} in-sync replicas (min.insync.replicas "
                    f"{least}) (QS-RESTART-002)"
                )
                del unexplained[node]
    return reasons


def _describe_rack(cluster: Cluster, node: int) -> str:
    return f" of rack {cluster.racks[node]}" if node in cluster.racks else ""


# Collected facts ------------------------------------------------------------------------------------------------------


def cluster_from_facts(facts: ClusterFacts, min_isr: Mapping[str, int]) -> Cluster:
    """Return the brokers as a cluster. One that does not answer, or is not in the brokers' metadata, is not alive.
    Reassignments are not among the facts: their replicas count while they are in sync. Raises ValueError if the
    brokers' metadata could not be read."""
    topics, zookeeper = facts["topics"], facts["zookeeper"]
    if not topics.get("reached"):
        raise ValueError(topics.get("error") or "the brokers' metadata could not be read (QS-GATE-005)")
    silent = {node.get("node_id") for node in _nodes_of_role(facts, "broker").values() if not node.get("running")}
    alive = frozenset(int(broker_id) for broker_id in topics["brokers"]) - silent
    controller = (zookeeper.get("controller") or {}).get("broker_id")
    return Cluster(topics["partitions"], min_isr, alive, _racks(facts), controller)


def _racks(facts: ClusterFacts) -> dict[int, str]:
    registered = {**((facts.get("zookeeper") or {}).get("broker_ids") or {}), **phase.registrations(facts)}
    return {int(broker_id): found["rack"] for broker_id, found in registered.items() if (found or {}).get("rack")}


class Wish(NamedTuple):
    """What is asked of a plan. `canary`: the host to restart first; `concurrency`: the largest batch of brokers;
    `since`, `ready`: as for `plan_hosts`; `planned`: as for `plan_migration`."""

    canary: str | None = None
    concurrency: int = 1
    since: float = 0
    ready: Sequence[str] = ()
    planned: Sequence[str] = ()


def plan_kind(
    facts: ClusterFacts, kind: transitions.Kind, min_isr: Mapping[str, int], wish: Wish
) -> cluster_health.Plan:
    """Return the plan of the restarts of a kind: of the controllers one by one, the quorum's leader last; of the
    brokers in batches. Raises ValueError where the facts are not enough, as `plan_hosts` and `plan`."""
    if kind.role == transitions.CONTROLLER:
        if not kind.is_plain:
            return cluster_health.plan_controllers(
                facts["nodes"], kind.after, (facts.get("quorum") or {}).get("leader_id")
            )
        if not phase.controllers(facts):
            return cluster_health.Plan([], [], {}, {})
        found = plan_hosts(facts, kind.role, cluster_from_quorum(facts["quorum"]), None, 1, wish.since, wish.ready)
        return found._replace(unavoidable={})  # the quorum's majority is the admission's
    if not kind.is_plain:
        controller = ((facts.get("zookeeper") or {}).get("controller") or {}).get("broker_id")
        if node_mode.KRAFT in (kind.left, kind.after):
            controller = None  # by then no broker is the active controller
        return plan_migration(facts, kind.name, min_isr, wish.canary, wish.concurrency, wish.planned, controller)
    cluster = cluster_from_facts(facts, min_isr)
    first = wish.canary or (None if wish.ready else choose_canary(facts, cluster, wish.since))
    return plan_hosts(facts, kind.role, cluster, first, wish.concurrency, wish.since, wish.ready)


def plan_hosts(
    facts: ClusterFacts,
    role: str,
    cluster: Cluster,
    canary: str | None,
    concurrency: int,
    since: float,
    ready: Iterable[str] = (),
) -> cluster_health.Plan:
    """Return the plan of the hosts of a role.

    Those that answer and whose process started after `since` (see was_restarted_since) are done, and so are the hosts
    in `ready`. Raises ValueError as `plan`, and for a host whose id is unknown.
    """
    nodes = _nodes_of_role(facts, role)
    behind = clock.control_behind_s(facts["nodes"])
    if since and abs(behind) >= clock.APART_S:
        raise ValueError(
            f"restart_since is a time of the control node's clock, and {clock.describe_control(behind)}. Synchronise "
            "it with chrony or ntpd, or run without restart_since, which restarts every node (QS-RESTART-003)"
        )
    unknown = sorted(host for host, node in nodes.items() if node.get("node_id") is None)
    if unknown:
        raise ValueError(
            f"the node id of {format_names(unknown)} is unknown: its properties file could not be read (QS-RESTART-002)"
        )
    if canary is not None and canary not in nodes:
        raise ValueError(f"the canary is {canary}, which is not in the group kafka_{role} (QS-RESTART-002)")
    kept = set(ready)
    done = [host for host, node in nodes.items() if host in kept or was_restarted_since(node, since)]
    return _plan_by_host(
        {host: int(node["node_id"]) for host, node in nodes.items()}, cluster, done, canary, concurrency
    )


def plan_migration(
    facts: ClusterFacts,
    kind: str,
    min_isr: Mapping[str, int],
    chosen: str | None = None,
    concurrency: int = 1,
    planned: Sequence[str] = (),
    controller: int | None = None,
) -> cluster_health.Plan:
    """Return the plan of the brokers' restarts of one kind. Those that run in its mode, with that file, are done.

    `chosen`: the canary's host. Otherwise it is the first of `planned`, the order of the run's plan, or the broker that
    leads the fewest partitions; there is none once brokers are done, or while one is down. `controller`: the broker
    that is ZooKeeper's controller by then. The last broker in migration mode starts the initial copy, so it is alone
    (core.restart.batches). Raises ValueError as `plan`.
    """
    nodes, mode = _nodes_of_role(facts, "broker"), transitions.KINDS[kind].after
    # A host that could not be read may have no id: it is down, so any number that no broker has will do.
    ids = {
        host: node_id if isinstance(node_id, int) else -place
        for place, (host, node_id) in enumerate(_ids(nodes), start=1)
    }
    alive = frozenset(ids[host] for host, node in nodes.items() if node.get("running"))
    partitions = (facts.get("topics") or {}).get("partitions") or {}
    cluster = Cluster(partitions, min_isr, alive, _racks(facts), controller)
    done = [host for host, node in nodes.items() if cluster_health.is_done(node, mode)]
    first, why = None, ""
    if chosen in nodes:
        first, why = chosen, "chosen"
    elif len(alive) == len(nodes) and not done:
        first, why = _choose_canary(ids, cluster)
        if planned and ids.get(planned[0]) not in (None, controller):
            first, why = planned[0], "as planned"
    found = _plan_by_host(ids, cluster, done, first, concurrency)
    if found.reasons.get(str(first), "").startswith("canary"):
        found.reasons[str(first)] = f"canary: {why}"
    last = found.batches[-1] if found.batches else []
    if transitions.KINDS[kind].joins and len(last) > 1:
        found.batches[-1:] = [last[:-1], last[-1:]]
        found.reasons[last[-1]] = "alone: the last restart in migration mode starts the initial copy"
    return found


def _plan_by_host(
    ids: Mapping[str, int], cluster: Cluster, done: Iterable[str], canary: str | None, concurrency: int
) -> cluster_health.Plan:
    """Return `plan` by host."""
    hosts = {number: host for host, number in ids.items()}
    first = ids[canary] if canary is not None else None
    found = plan(cluster, hosts, [ids[host] for host in done], first, concurrency)
    batches = [[hosts[node_id] for node_id in batch] for batch in found.batches]
    reasons = {hosts[node_id]: why for node_id, why in found.reasons.items()}
    return cluster_health.Plan(batches, sorted(hosts[node_id] for node_id in found.done), reasons, found.unavoidable)


def _ids(nodes: Mapping[str, NodeFacts]) -> list[tuple[str, int | None]]:
    return [(host, node.get("node_id")) for host, node in sorted(nodes.items())]


def choose_canary(facts: ClusterFacts, cluster: Cluster, since: float) -> str | None:
    """Return the host of the canary where none is chosen: the broker that leads the fewest partitions, but not the
    controller. None where nodes are restarted already, or where there is no other broker."""
    nodes = _nodes_of_role(facts, "broker")
    if any(was_restarted_since(node, since) for node in nodes.values()):
        return None
    return _choose_canary({host: int(node_id) for host, node_id in _ids(nodes) if node_id is not None}, cluster)[0]


def _choose_canary(ids: Mapping[str, int], cluster: Cluster) -> tuple[str | None, str]:
    """Return the broker's host that leads the fewest partitions, but not the controller, and why it is the canary."""
    led = cluster_health.count_leaderships(cluster.partitions)
    candidates = [host for host, node_id in ids.items() if node_id in cluster.alive and node_id != cluster.controller]
    host = min(candidates, key=lambda name: (led.get(ids[name], 0), name), default=None)
    return host, f"leads fewest partitions ({led.get(ids[host], 0)})" if host is not None else ""


def was_restarted_since(node: NodeFacts, since: float) -> bool:
    """Return whether a node answers and its process surely started at `since` or later, in seconds since 1970 by the
    control node's clock (0: none did). Of a process that ended, the host still knows when it started."""
    started = (node.get("service") or {}).get("started_at")
    known = clock.by_host_clock(node, since)
    return bool(since and node.get("running") and started and known is not None and started >= known)


def _nodes_of_role(facts: ClusterFacts, role: str) -> dict[str, NodeFacts]:
    return {host: node for host, node in facts["nodes"].items() if node["role"] == role}
