# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reassignments (KIP-455): wanted replicas against actual ones, throttles, progress, and plans that move little. Pure.

A reassignment in flight has R, adding and removing replicas; R minus the removing ones is where it leads.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

Partition = Tuple[str, int]
"""A topic and the number of its partition."""

LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LEADER_REPLICAS, FOLLOWER_REPLICAS = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)
THROTTLES = (LEADER_RATE, FOLLOWER_RATE, LEADER_REPLICAS, FOLLOWER_REPLICAS)
TOPIC, BROKER = 2, 4  # ConfigResource.Type

DONE, START, UNDER_WAY, OTHER_WAY = "done", "start", "under way", "other way"


class ReassignmentError(ValueError):
    """An assignment cannot be understood or a plan cannot be made; the text says what to do."""


class Step(NamedTuple):
    """What is to be done for one partition.

    `state`: DONE, START, UNDER_WAY (in flight to the wanted replicas) or OTHER_WAY (in flight elsewhere). `replicas`: R
    now. `adding` and `removing`: what remains to be done.
    """

    partition: Partition
    state: str
    replicas: Tuple[int, ...]
    wanted: Tuple[int, ...]
    adding: Tuple[int, ...]
    removing: Tuple[int, ...]


def named(partition: Partition) -> str:
    """Return a partition as people write it."""
    return f"{partition[0]}-{partition[1]}"


def parsed(content: object) -> Dict[Partition, Tuple[int, ...]]:
    """Return {partition: replicas} of a reassignment as kafka-reassign-partitions writes it; raise ReassignmentError.

    `content`: {"version": 1, "partitions": [{topic, partition, replicas, log_dirs}]}. An entry without replicas, which
    names a partition to cancel, has no replicas.
    """
    listed = content.get("partitions") if isinstance(content, Mapping) else None
    if not isinstance(listed, list):
        raise ReassignmentError("a reassignment is {version: 1, partitions: [{topic, partition, replicas}]}")
    if content.get("version", 1) != 1:  # type: ignore[attr-defined]
        raise ReassignmentError(f"version {content['version']!r} of reassignments is unknown, use 1")  # type: ignore
    found: Dict[Partition, Tuple[int, ...]] = {}
    for one in listed:
        try:
            key = str(one["topic"]), int(one["partition"])
            replicas = tuple(int(replica) for replica in one.get("replicas") or ())
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ReassignmentError(f"{one!r} needs a topic, a partition and replicas, which are numbers") from None
        if key in found:
            raise ReassignmentError(f"{named(key)} is given twice. Keep one of its entries")
        if len(set(replicas)) != len(replicas):
            raise ReassignmentError(f"{named(key)} names a broker twice: {list(replicas)}")
        if any(directory != "any" for directory in one.get("log_dirs") or ()):
            raise ReassignmentError(
                f"{named(key)} names log directories, and moves between directories are not supported. Use 'any'"
            )
        found[key] = replicas
    return found


def written(assignments: Mapping[Partition, Sequence[int]]) -> Dict[str, Any]:
    """Return a reassignment as kafka-reassign-partitions reads it."""
    return {
        "version": 1,
        "partitions": [
            {"topic": topic, "partition": number, "replicas": list(assignments[topic, number])}
            for topic, number in sorted(assignments)
        ],
    }


def steps(
    wanted: Mapping[Partition, Sequence[int]],
    actual: Mapping[Partition, Sequence[int]],
    in_flight: Mapping[Partition, Mapping[str, Sequence[int]]],
) -> List[Step]:
    """Return what is to be done for each wanted partition. `actual`: R now, adding replicas included."""
    found = []
    for partition, target in sorted(wanted.items()):
        now, moving = tuple(actual[partition]), in_flight.get(partition)
        end = tuple(target)
        if moving:
            leads_to = tuple(one for one in moving["replicas"] if one not in moving["removing"])
            state = UNDER_WAY if leads_to == end else OTHER_WAY
            has = [one for one in moving["replicas"] if one not in moving["adding"]]
        else:
            state, has = (DONE if now == end else START), list(now)
        adding = tuple(one for one in end if one not in has)
        found.append(Step(partition, state, now, end, adding, tuple(one for one in now if one not in end)))
    return found


def refusal(
    found: Sequence[Step],
    in_flight: Iterable[Partition],
    brokers: Iterable[int],
    additional: bool,
    legacy: str | None,
) -> str | None:
    """Return why these steps may not be started, None when they may. `legacy`: what /admin/reassign_partitions has."""
    begun = [one for one in found if one.state in (START, OTHER_WAY)]
    if not begun:
        return None
    alive = set(brokers)
    for one in begun:
        if not one.wanted:
            return f"{named(one.partition)} has no replicas in this reassignment. Give its wanted replicas"
        dead = [broker for broker in one.adding if broker not in alive]
        if dead:
            return (
                f"{named(one.partition)} would move to {_brokers(dead)}, not alive in this cluster. Live brokers are "
                f"{sorted(alive)}. Start it, or choose another"
            )
    wanted = {one.partition for one in found if one.state == UNDER_WAY}
    other = sorted(set(in_flight) - wanted)
    if other and not additional:
        return (
            f"{len(other)} partitions are in flight already ({_few(map(named, other))}). Wait until they are done, set "
            "additional: true to start more, or cancel them with state: cancelled"
        )
    if legacy and not additional:
        return (
            f"/admin/reassign_partitions exists in ZooKeeper: {legacy}. Its controller moves those partitions too, and "
            "what this task asks overrides them. Wait until it is gone, or set additional: true"
        )
    return None


def shown(found: Sequence[Step]) -> Dict[str, str]:
    """Return R, adding and removing of the partitions that change, as Ansible shows a difference."""
    before, after = [], []
    for one in found:
        if one.state in (START, OTHER_WAY):
            before.append(f"{named(one.partition)}: R {list(one.replicas)}\n")
            after.append(
                f"{named(one.partition)}: R {list(one.wanted)}, adding {list(one.adding)}, "
                f"removing {list(one.removing)}\n"
            )
    return {"before": "".join(before), "after": "".join(after)}


def shown_cancelled(ended: Mapping[Partition, Mapping[str, Sequence[int]]]) -> Dict[str, str]:
    """Return R, adding and removing of reassignments that are cancelled, as Ansible shows a difference."""
    before, after = [], []
    for partition, moving in sorted(ended.items()):
        replicas, adding, removing = (list(moving[key]) for key in ("replicas", "adding", "removing"))
        before.append(f"{named(partition)}: R {replicas}, adding {adding}, removing {removing}\n")
        after.append(f"{named(partition)}: R {[one for one in replicas if one not in adding]}\n")
    return {"before": "".join(before), "after": "".join(after)}


def broker_id(text: str) -> int:
    """Return the id that a text is. Raises ReassignmentError."""
    try:
        return int(text)
    except ValueError:
        raise ReassignmentError(f"{text!r} is no broker id. Give a number, or 'least_loaded'") from None


# --- throttles ---------------------------------------------------------------------------------------------


def throttles(
    found: Sequence[Step], rate: int, current: Mapping[Tuple[int, str], Mapping[str, str]]
) -> Dict[Tuple[int, str], Dict[str, str]]:
    """Return {(resource type, name): {key: value}} that throttles these steps, added to the `current` values.

    As kafka-reassign-partitions does: replicas that a partition has are throttled as leaders, the adding ones as
    followers, and the rate is set at each of these brokers. A topic whose value is `*` keeps it.
    """
    leaders: Dict[str, set] = {}
    followers: Dict[str, set] = {}
    brokers: set = set()
    for one in found:
        if one.state == DONE or not one.adding:
            continue
        topic, number = one.partition
        has = [broker for broker in one.replicas if broker not in one.adding]
        leaders.setdefault(topic, set()).update(f"{number}:{broker}" for broker in has)
        followers.setdefault(topic, set()).update(f"{number}:{broker}" for broker in one.adding)
        brokers.update(has, one.adding)
    changes: Dict[Tuple[int, str], Dict[str, str]] = {}
    for key, members in ((LEADER_REPLICAS, leaders), (FOLLOWER_REPLICAS, followers)):
        for topic, listed in members.items():
            former = current.get((TOPIC, topic), {}).get(key, "")
            if former != "*":
                every = {text for text in former.split(",") if text} | listed
                changes.setdefault((TOPIC, topic), {})[key] = ",".join(sorted(every))
    for broker in sorted(brokers):
        changes[BROKER, str(broker)] = {LEADER_RATE: str(rate), FOLLOWER_RATE: str(rate)}
    return changes


def remembered(
    record: Sequence[Mapping[str, Any]],
    changes: Mapping[Tuple[int, str], Mapping[str, str]],
    current: Mapping[Tuple[int, str], Mapping[str, str]],
) -> List[Dict[str, Any]]:
    """Return the record of throttles with these `changes` in it: [{type, name, key, ours, former}].

    `former` is what was there before our first value (None: nothing). `ours` lists all values that we set or are
    about to set, since an interruption may come before or after any of them.
    """
    kept = {(one["type"], one["name"], one["key"]): dict(one) for one in record}
    for (kind, name), values in changes.items():
        for key, value in values.items():
            now = current.get((kind, name), {}).get(key)
            one = kept.get((kind, name, key))
            if one is None or now not in one["ours"]:
                one = {"type": kind, "name": name, "key": key, "ours": [], "former": now}
            kept[kind, name, key] = {**one, "ours": sorted({*one["ours"], value})}
    return [kept[key] for key in sorted(kept)]


def restored(
    record: Sequence[Mapping[str, Any]], current: Mapping[Tuple[int, str], Mapping[str, str]]
) -> Tuple[Dict[Tuple[int, str], Dict[str, str | None]], List[str]]:
    """Return the changes that remove our throttles, and what is left because someone else has changed it since."""
    changes: Dict[Tuple[int, str], Dict[str, str | None]] = {}
    left = []
    for one in record:
        resource = one["type"], one["name"]
        now = current.get(resource, {}).get(one["key"])
        if now == one["former"]:
            continue
        if now in one["ours"]:
            changes.setdefault(resource, {})[one["key"]] = one["former"]
        elif now is not None:
            kind = "topic" if one["type"] == TOPIC else "broker"
            left.append(f"{kind} {one['name']}: {one['key']}={now}")
    return changes, left


# --- plans -------------------------------------------------------------------------------------------------


def drain(
    broker: int, assignments: Mapping[Partition, Sequence[int]], racks: Mapping[int, str | None]
) -> Dict[Partition, List[int]]:
    """Return the replicas of each partition that leaves `broker`; only that replica moves. Raises ReassignmentError.

    It goes to a rack that the partition's other replicas are not on, if there is one, and there to the broker with the
    fewest replicas. `racks`: {live broker: rack}.
    """
    load = _load(assignments, racks)
    moved = {}
    for partition, replicas in sorted(assignments.items()):
        if broker not in replicas:
            continue
        others = [one for one in replicas if one != broker]
        choices = [one for one in racks if one != broker and one not in replicas]
        if not choices:
            raise ReassignmentError(
                f"{named(partition)} has {len(replicas)} replicas, and without broker {broker} the cluster has "
                f"{len(racks) - (broker in racks)} live brokers. Add a broker, or lower the replicas first"
            )
        used = [racks.get(one) for one in others]
        chosen = min(choices, key=lambda one: (used.count(racks[one]) if racks[one] else 0, load[one], one))
        load[chosen] += 1
        moved[partition] = [chosen if one == broker else one for one in replicas]
    return moved


def add(
    broker: int | None, assignments: Mapping[Partition, Sequence[int]], racks: Mapping[int, str | None]
) -> Tuple[int, Dict[Partition, List[int]]]:
    """Return the broker that gets replicas until it has its share, and the partitions that move. One replica of each.

    Replicas come from the brokers with the most, and no partition is on fewer racks afterwards. None chooses the broker
    with the fewest replicas in the least-loaded rack. Raises ReassignmentError.
    """
    if broker is None:
        if not racks:
            raise ReassignmentError("no broker is alive, so none can be added. Start a broker, then run again")
        load = _load(assignments, racks)
        of_rack = rack_load(assignments, racks)
        broker = min(racks, key=lambda one: (of_rack[str(racks[one])], load[one], one))
    if broker not in racks:
        raise ReassignmentError(
            f"broker {broker} is not alive. Live brokers are {sorted(racks)}. Start it, then run again"
        )
    load = _load(assignments, racks)
    share = sum(load.values()) // len(racks)
    moved: Dict[Partition, List[int]] = {}
    of_broker: Dict[int, List[Partition]] = {}
    for partition, replicas in sorted(assignments.items()):
        if broker not in replicas:
            for one in replicas:
                of_broker.setdefault(one, []).append(partition)
    while load[broker] < share:
        for giver in sorted(racks, key=lambda one: (-load[one], one)):
            found = next(
                (one for one in of_broker.get(giver, []) if _may_give(assignments[one], giver, broker, racks)), None
            )
            if load[giver] > share and giver != broker and found is not None:
                break
        else:
            break
        moved[found] = [broker if one == giver else one for one in assignments[found]]
        load[giver] -= 1
        load[broker] += 1
        for one in assignments[found]:
            of_broker[one].remove(found)
    return broker, moved


def rack_load(assignments: Mapping[Partition, Sequence[int]], racks: Mapping[int, str | None]) -> Dict[str, float]:
    """Return the replicas a broker, on average, of each rack; brokers without a rack form the rack 'None'."""
    load = _load(assignments, racks)
    found: Dict[str, List[int]] = {}
    for broker, rack in racks.items():
        found.setdefault(str(rack), []).append(load[broker])
    return {rack: sum(one) / len(one) for rack, one in sorted(found.items())}


def _may_give(replicas, giver, taker, racks):
    after = [taker if one == giver else one for one in replicas]
    return _spread(after, racks) >= _spread(replicas, racks)


def _spread(replicas, racks):
    return len({racks.get(one) or f"broker {one}" for one in replicas})


def _load(assignments, racks):
    load = dict.fromkeys(racks, 0)
    for replicas in assignments.values():
        for one in replicas:
            if one in load:
                load[one] += 1
    return load


def _brokers(ids: Sequence[int]) -> str:
    return ("broker " if len(ids) == 1 else "brokers ") + ", ".join(map(str, ids))


def _few(texts: Iterable[str]) -> str:
    listed = list(texts)
    return ", ".join(listed[:5]) + (f" and {len(listed) - 5} more" if len(listed) > 5 else "")
