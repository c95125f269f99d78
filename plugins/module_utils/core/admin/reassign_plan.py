# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans of reassignments: drains, a broker's share, another replication factor. Each copies what it must alone. Pure.

A replica goes to the rack with the fewest replicas of its partition, and there to the broker with the least load that
has room. Load counts replicas and, where their sizes are known, bytes. No plan puts a replica on a cordoned broker.
"""

from __future__ import annotations

import fnmatch
import heapq
from typing import Any, Collection, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Set, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin.reassignment import (
    Partition,
    ReassignmentError,
    format_brokers,
    format_partition,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import format_names
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.sizes import format_bytes

Moves = Dict[Partition, List[int]]
"""The wanted replicas of each partition that a plan moves."""
_LITTLE = 0.1  # of a broker's disks: less free is a warning
_WRITTEN = 0.001  # of a disk: what may be written to it between a broker's readings of two directories


class Directory(NamedTuple):
    """Bytes of the file system of a log directory, usable and in all, and of the replicas in the directory."""

    free: int
    total: int
    replicas: int


class Space(NamedTuple):
    """Bytes of a broker's file systems, usable and in all, and the usable ones of each where they are several."""

    free: int
    total: int
    each: Tuple[int, ...] = ()

    @property
    def largest(self) -> int:
        """The largest replica that fits: a replica is in one directory."""
        return max(self.each, default=self.free)


def find_space(directories: Iterable[Directory]) -> Space | None:
    """Return the space of a broker's directories, None without any.

    Brokers do not name file systems. Directories with the same total and about the same usable bytes count as one,
    unless they hold more bytes together than are used.
    """
    systems: List[Directory] = []
    for directory in sorted(directories, key=lambda each: each.free):
        for place, system in enumerate(systems):
            held = system.replicas + directory.replicas
            alike = directory.total == system.total and directory.free - system.free <= directory.total * _WRITTEN
            if alike and held <= system.total - system.free:
                systems[place] = system._replace(replicas=held)
                break
        else:
            systems.append(directory)
    if not systems:
        return None
    free, total = (sum(getattr(system, name) for system in systems) for name in ("free", "total"))
    return Space(free, total, tuple(system.free for system in systems))


class Cluster(NamedTuple):
    """What a plan is made from. `racks`: {live broker: rack}; `sizes`: bytes of a replica, none where unknown;
    `space`: of each broker that says it; `in_sync`: of each partition, none where unknown."""

    assignments: Mapping[Partition, Sequence[int]]
    racks: Mapping[int, str | None]
    cordoned: Collection[int] = ()
    sizes: Mapping[Partition, int] = {}
    space: Mapping[int, Space] = {}
    in_sync: Mapping[Partition, Sequence[int]] = {}


class _Load:
    """The load of each live broker, as a share of the whole cluster's replicas and bytes, and the room that is left."""

    def __init__(self, cluster: Cluster) -> None:
        self._sizes = cluster.sizes
        replicas = sum(map(len, cluster.assignments.values()))
        size = sum(len(listed) * cluster.sizes.get(each, 0) for each, listed in cluster.assignments.items())
        self._replica, self._byte = 1 / max(1, replicas), 1 / size if size else 0.0
        self.of: Dict[int, float] = dict.fromkeys(cluster.racks, 0.0)
        self.room: Dict[int, int] = {broker: space.free for broker, space in cluster.space.items()}
        self._largest = {broker: space.largest for broker, space in cluster.space.items()}
        for partition, listed in cluster.assignments.items():
            weight = self._weigh(partition)
            for broker in listed:
                if broker in self.of:
                    self.of[broker] += weight

    def _weigh(self, partition: Partition) -> float:
        return self._replica + self._byte * self._sizes.get(partition, 0)

    def fits(self, broker: int, partition: Partition) -> bool:
        """Return whether a broker has room for a replica; yes where it does not say."""
        size = self._sizes.get(partition, 0)
        return broker not in self.room or size <= min(self.room[broker], self._largest[broker])

    def put(self, broker: int, partition: Partition) -> None:
        """Count a replica that a broker gets."""
        self.of[broker] += self._weigh(partition)
        if broker in self.room:
            self.room[broker] -= self._sizes.get(partition, 0)

    def drop(self, broker: int, partition: Partition) -> None:
        """Count a replica that a broker loses. Its room is free only at the end of the move."""
        if broker in self.of:
            self.of[broker] -= self._weigh(partition)


class _Targets:
    """Brokers that may get replicas: a heap for each rack, the least loaded first. An entry whose load is older than
    its broker's is replaced when it is seen, so that a choice takes the logarithm of the brokers."""

    def __init__(self, cluster: Cluster, load: _Load, leaving: Collection[int] = ()) -> None:
        self._racks, self._load = cluster.racks, load
        self.brokers = sorted(
            broker for broker in cluster.racks if broker not in leaving and broker not in cluster.cordoned
        )
        self._heaps: Dict[str | None, List[Tuple[float, int]]] = {}
        for broker in self.brokers:
            self._heaps.setdefault(cluster.racks[broker], []).append((load.of[broker], broker))
        for heap in self._heaps.values():
            heapq.heapify(heap)

    def choose(self, partition: Partition, taken: Set[int], others: Iterable[int]) -> int | None:
        """Return the broker that gets a replica, and count it; None if none may. `taken`: brokers that have one now or
        get one; `others`: those whose racks count."""
        used: Dict[str | None, int] = {}
        for broker in others:
            rack = self._racks.get(broker)
            if rack is not None:
                used[rack] = used.get(rack, 0) + 1
        best: Tuple[int, float, int] | None = None
        for rack, heap in self._heaps.items():
            number = used.get(rack, 0)
            if best is not None and number > best[0]:
                continue
            found = self._first(heap, partition, taken)
            if found is not None and (best is None or (number, *found) < best):
                best = (number, *found)
        if best is None:
            return None
        self._load.put(best[2], partition)
        return best[2]

    def _first(self, heap: List[Tuple[float, int]], partition: Partition, taken: Set[int]) -> Tuple[float, int] | None:
        aside, found = [], None
        while heap and found is None:
            load, broker = heap[0]
            if load != self._load.of[broker]:
                heapq.heapreplace(heap, (self._load.of[broker], broker))
            elif broker in taken or not self._load.fits(broker, partition):
                aside.append(heapq.heappop(heap))
            else:
                found = heap[0]
        for entry in aside:
            heapq.heappush(heap, entry)
        return found


def parse_broker_id(text: str) -> int:
    """Return the id that a text is. Raises ReassignmentError."""
    try:
        return int(text)
    except ValueError:
        raise ReassignmentError(f"{text!r} is no broker id. Give a number, or 'least_loaded' (QS-ADMIN-005)") from None


def select_topics(wanted: Sequence[str], assignments: Mapping[Partition, Sequence[int]]) -> Dict[Partition, List[int]]:
    """Return the assignments of these topics, of all without any. A name may have `*` and `?`. Raises ReassignmentError
    where one matches no topic."""
    if not wanted:
        return {partition: list(replicas) for partition, replicas in assignments.items()}
    topics = {topic for topic, _number in assignments}
    chosen: Set[str] = set()
    for name in wanted:
        found = {name} & topics or {topic for topic in topics if fnmatch.fnmatchcase(topic, name)}
        if not found:
            raise ReassignmentError(
                f"no topic matches {name!r}, or the principal may not describe it. Correct the name: reassign_topics "
                "of the playbook, topics of the module (QS-ADMIN-005)"
            )
        chosen |= found
    return {partition: list(replicas) for partition, replicas in assignments.items() if partition[0] in chosen}


def find_leaving(brokers: Collection[int], racks: Collection[str], cluster: Cluster) -> Set[int]:
    """Return the brokers that a drain of these brokers and of all live brokers of these racks empties. Raises
    ReassignmentError where one is unknown."""
    known = {broker for replicas in cluster.assignments.values() for broker in replicas} | set(cluster.racks)
    unknown = sorted(set(brokers) - known)
    if unknown:
        raise ReassignmentError(
            f"{format_brokers(unknown)} is not alive and has no replicas. Live brokers are {sorted(cluster.racks)}. "
            "Correct the id (QS-ADMIN-005)"
        )
    named = {rack for rack in cluster.racks.values() if rack is not None}
    odd = sorted(set(racks) - named)
    if odd:
        raise ReassignmentError(
            f"no live broker is in rack {odd[0]!r}. Racks are {sorted(named)}. Correct the name (QS-ADMIN-005)"
        )
    return name_leaving(brokers, racks, cluster.racks)


def name_leaving(brokers: Collection[int], racks: Collection[str], alive: Mapping[int, str | None]) -> Set[int]:
    """Return these brokers and all live brokers of these racks."""
    return set(brokers) | {broker for broker, rack in alive.items() if rack in racks}


def drain(leaving: Collection[int], cluster: Cluster, selected: Mapping[Partition, Sequence[int]]) -> Moves:
    """Return the replicas of each of the `selected` partitions that leaves these brokers; only those replicas move.
    Raises ReassignmentError."""
    load, gone = _Load(cluster), set(leaving)
    targets = _Targets(cluster, load, gone)
    moved: Moves = {}
    for partition, replicas in sorted(selected.items()):
        if gone.isdisjoint(replicas):
            continue
        after = list(replicas)
        for place, broker in enumerate(replicas):
            if broker not in gone:
                continue
            others = [other for other in after if other not in gone]
            chosen = targets.choose(partition, {*replicas, *after}, others)
            if chosen is None:
                raise _no_target(partition, replicas, cluster, load, targets, f"without {format_brokers(sorted(gone))}")
            load.drop(broker, partition)
            after[place] = chosen
        moved[partition] = after
    return moved


def add(broker: int | None, cluster: Cluster, selected: Mapping[Partition, Sequence[int]]) -> Tuple[int, Moves]:
    """Return the broker that gets replicas until it has its share, and the partitions that move. One replica of each.

    Replicas come from the brokers with the most, the smallest of them first, and no partition is on fewer racks
    afterwards. None chooses the broker with the fewest replicas in the least-loaded rack. Raises ReassignmentError.
    """
    racks, load = cluster.racks, _Load(cluster)
    if not racks:
        raise ReassignmentError(
            "no broker is alive, so none can be added. Start a broker, then run again (QS-ADMIN-005)"
        )
    if broker is None:
        of_rack = rack_load(selected, racks)
        may = [candidate for candidate in racks if candidate not in cluster.cordoned]
        if not may:
            raise ReassignmentError("every live broker is cordoned. Take one out of cordon (QS-ADMIN-005)")
        count = _count(selected, racks)
        broker = min(may, key=lambda candidate: (of_rack[str(racks[candidate])], count[candidate], candidate))
    if broker not in racks:
        raise ReassignmentError(
            f"broker {broker} is not alive. Live brokers are {sorted(racks)}. Start it, then run again (QS-ADMIN-005)"
        )
    if broker in cluster.cordoned:
        raise ReassignmentError(
            f"broker {broker} is cordoned, and should get replicas. Take it out of cordon: reassign_cordon of the "
            "playbook (QS-ADMIN-005)"
        )
    count = _count(selected, racks)
    share = sum(count.values()) // len(racks)
    givers: Dict[int, List[Partition]] = {}  # the smallest last
    for partition in sorted(selected, key=lambda each: (cluster.sizes.get(each, 0), each), reverse=True):
        if broker not in selected[partition]:
            for replica in selected[partition]:
                givers.setdefault(replica, []).append(partition)
    heap = [(-count[giver], giver) for giver in givers if giver in count]
    heapq.heapify(heap)
    moved: Moves = {}
    while heap and count[broker] < share:
        negative, giver = heapq.heappop(heap)
        if -negative <= share:
            break
        listed = givers[giver]
        while listed:
            partition = listed.pop()
            if partition in moved or not _may_give(selected[partition], giver, broker, racks):
                continue
            if load.fits(broker, partition):
                moved[partition] = [broker if replica == giver else replica for replica in selected[partition]]
                load.put(broker, partition)
                count[broker] += 1
                heapq.heappush(heap, (negative + 1, giver))
                break
    return broker, moved


def change_replicas(factor: int, cluster: Cluster, selected: Mapping[Partition, Sequence[int]]) -> Moves:
    """Return the replicas of each of the `selected` partitions that has not `factor` of them: more at its end, or
    without those that are dead, cordoned, out of sync or share a rack. The preferred leader stays if it serves. Raises
    ReassignmentError."""
    if factor < 1:
        raise ReassignmentError(f"replication_factor is {factor}. Give a number above 0 (QS-ADMIN-005)")
    load = _Load(cluster)
    targets = _Targets(cluster, load)
    moved: Moves = {}
    for partition, replicas in sorted(selected.items()):
        after = list(replicas)
        while len(after) < factor:
            chosen = targets.choose(partition, set(after), after)
            if chosen is None:
                raise _no_target(partition, after, cluster, load, targets, f"for {factor} replicas")
            after.append(chosen)
        while len(after) > factor:
            victim = max(after, key=lambda broker: _unwanted(broker, partition, after, cluster, load))
            after.remove(victim)
            load.drop(victim, partition)
        if after != list(replicas):
            moved[partition] = after
    return moved


def _unwanted(broker: int, partition: Partition, replicas: Sequence[int], cluster: Cluster, load: _Load) -> tuple:
    """Return a key that is the greater, the sooner a replica goes."""
    rack = cluster.racks.get(broker)
    in_sync = cluster.in_sync.get(partition)
    beside = sum(1 for other in replicas if rack is not None and cluster.racks.get(other) == rack)
    return (
        broker not in cluster.racks,
        in_sync is not None and broker not in in_sync,
        broker in cluster.cordoned,
        broker != replicas[0],
        beside,
        load.of.get(broker, 0.0),
        broker,
    )


def _no_target(
    partition: Partition, replicas: Sequence[int], cluster: Cluster, load: _Load, targets: _Targets, why: str
) -> ReassignmentError:
    name, size = format_partition(partition), cluster.sizes.get(partition, 0)
    full = [broker for broker in targets.brokers if broker not in replicas and not load.fits(broker, partition)]
    kept_out = f", {format_brokers(sorted(cluster.cordoned))} being cordoned" if cluster.cordoned else ""
    if full:
        rooms = format_names(
            [
                f"broker {broker}: {format_bytes(max(0, load.room[broker]))}{_each(cluster.space[broker])}"
                for broker in full
            ]
        )
        return ReassignmentError(
            f"{name} has {format_bytes(size)}, and no broker that may get it has that much free in one directory, "
            f"beside what it gets before ({rooms}{kept_out}). Free space, add a broker, or move fewer topics "
            "(QS-ADMIN-005)"
        )
    return ReassignmentError(
        f"{name} has {len(replicas)} replicas, and {why} the cluster has {len(targets.brokers)} live brokers that may "
        f"get replicas{kept_out}. Add a broker, or lower the replicas first (QS-ADMIN-005)"
    )


def _each(space: Space) -> str:
    """Return the usable bytes of each file system in words, '' for one."""
    return f" ({' + '.join(map(format_bytes, space.each))} free before)" if len(space.each) > 1 else ""


# --- what a plan cannot see -------------------------------------------------------------------------------


def require_seen(
    denied: Mapping[int, Collection[Partition]], of: Collection[int] | None, topics: Sequence[str], grant: str
) -> None:
    """Raise ReassignmentError where a plan of these topics leaves out replicas whose topics the principal may not
    describe. `denied`: such replicas by broker; `of`: the brokers that count, None for all; `grant`: what to do."""
    for broker, held in sorted(denied.items()):
        listed = [format_partition(each) for each in sorted(held) if _is_meant(each[0], topics)]
        if listed and (of is None or broker in of):
            raise ReassignmentError(
                f"broker {broker} has replicas of topics that the principal may not describe, so no plan can move "
                f"them: {format_names(listed)}. Nothing was changed. {grant} (QS-ADMIN-016)"
            )


def _is_meant(topic: str, wanted: Sequence[str]) -> bool:
    return not wanted or any(topic == name or fnmatch.fnmatchcase(topic, name) for name in wanted)


def warn_of_leaving(
    leaving: Collection[int], strays: Mapping[int, Collection[Partition]], unread: Mapping[int, str]
) -> List[str]:
    """Return what the plan of a drain does not know of the brokers that it empties, in words. `unread`: why a broker
    does not say which replicas it has, or not all."""
    found = [
        f"it is not known whether broker {broker} has replicas of topics that the principal may not describe: "
        f"{unread[broker]}"
        for broker in sorted(leaving)
        if broker in unread
    ]
    return found + [
        f"broker {broker} has directories of partitions that do not exist: "
        f"{format_names(list(map(format_partition, sorted(strays[broker]))))}. Their topics are being deleted, or the "
        "directories are strays. No plan moves them"
        for broker in sorted(leaving)
        if strays.get(broker)
    ]


# --- what a plan costs -------------------------------------------------------------------------------------


def summarize(moves: Mapping[Partition, Sequence[int]], cluster: Cluster) -> Dict[str, Any]:
    """Return what a plan copies: {partitions, replicas, bytes, brokers: [{broker, replicas, bytes, free}], warnings}.

    `bytes` is None where no size is known, `free` where the broker does not say it.
    """
    known = bool(cluster.sizes)
    incoming: Dict[int, List[int]] = {}
    for partition, replicas in moves.items():
        before = set(cluster.assignments.get(partition, ()))
        for broker in replicas:
            if broker not in before:
                of = incoming.setdefault(broker, [0, 0])
                of[0] += 1
                of[1] += cluster.sizes.get(partition, 0)
    rows, warnings = [], []
    for broker, (count, size) in sorted(incoming.items()):
        space = cluster.space.get(broker)
        rows.append(
            {
                "broker": broker,
                "replicas": count,
                "bytes": size if known else None,
                "free": space.free if space else None,
            }
        )
        if space and space.free - size < _LITTLE * space.total:
            left = f"{format_bytes(max(0, space.free - size))} of {format_bytes(space.total)}"
            warnings.append(f"broker {broker} would have {left} free")
    return {
        "partitions": len(moves),
        "replicas": sum(count for count, _size in incoming.values()),
        "bytes": sum(size for _replicas, size in incoming.values()) if known else None,
        "brokers": rows,
        "warnings": warnings,
    }


def require_space(moves: Mapping[Partition, Sequence[int]], cluster: Cluster) -> None:
    """Raise ReassignmentError where a broker says that what it gets does not fit."""
    for row in summarize(moves, cluster)["brokers"]:
        if row["free"] is not None and row["bytes"] is not None and row["bytes"] > row["free"]:
            raise ReassignmentError(
                f"broker {row['broker']} would get {format_bytes(row['bytes'])} in {row['replicas']} replicas, and has "
                f"{format_bytes(row['free'])} free{_each(cluster.space[row['broker']])}. Free space, or choose other "
                "brokers. Nothing was changed (QS-ADMIN-005)"
            )
    for partition, replicas in sorted(moves.items()):
        size = cluster.sizes.get(partition, 0)
        for broker in set(replicas) - set(cluster.assignments.get(partition, ())):
            space = cluster.space.get(broker)
            if space and size > space.largest:
                raise ReassignmentError(
                    f"{format_partition(partition)} has {format_bytes(size)}, and no directory of broker {broker} has "
                    f"that much free: {format_bytes(space.free)}{_each(space)}. Free space, or choose another broker. "
                    "Nothing was changed (QS-ADMIN-005)"
                )


def rack_load(assignments: Mapping[Partition, Sequence[int]], racks: Mapping[int, str | None]) -> Dict[str, float]:
    """Return the replicas a broker, on average, of each rack; brokers without a rack form the rack 'None'."""
    load = _count(assignments, racks)
    found: Dict[str, List[int]] = {}
    for broker, rack in racks.items():
        found.setdefault(str(rack), []).append(load[broker])
    return {rack: sum(loads) / len(loads) for rack, loads in sorted(found.items())}


def _may_give(replicas, giver, taker, racks):
    after = [taker if replica == giver else replica for replica in replicas]
    return _count_racks(after, racks) >= _count_racks(replicas, racks)


def _count_racks(replicas, racks):
    return len({racks.get(replica) or f"broker {replica}" for replica in replicas})


def _count(assignments, racks):
    load = dict.fromkeys(racks, 0)
    for replicas in assignments.values():
        for replica in replicas:
            if replica in load:
                load[replica] += 1
    return load
