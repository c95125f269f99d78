# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a restore writes into ZooKeeper after a migration emptied it (KAFKA-17146), from a backup, from what ZooKeeper
still holds, and from the brokers' own disks. Pure.

Nothing that ZooKeeper holds is taken away: what is missing is made again, what is there keeps its own values and gets
those that it lacks. A restore therefore brings back what somebody deleted after the backup; it is told.

Where a partition's data is, no backup knows: leaders and in-sync replicas move on. So they are read from the disks of
the brokers, which are all stopped. An acknowledged record is on every replica that was in sync, and each later leader
came from among those: the replica whose last record has the highest leader epoch, and of these the one that reaches
furthest, holds all that was acknowledged (KIP-101, KIP-279). Those that reach as far are in sync, the others catch up.

Epochs only rise. A leader epoch below one that a log has seen would make replicas cut off records
(LeaderEpochFileCache), and a controller epoch below that of a partition's state keeps the controller from electing
(KAFKA-20488; PartitionStateMachine).
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Iterable, Mapping, NamedTuple, Sequence

from ..formats import znodes
from . import phase

_LEFT_OUT = frozenset(
    [
        "controller",
        "controller_epoch",
        "migration",
        "broker",
        "delete_topic",
        "notification",
        "reassign_partitions",
        "preferred_replica_election",
        "partition_state",
    ]
)
_CONFIGS = frozenset(["topic_config", "broker_config", "client_config", "user_config", "ip_config"])


class Write(NamedTuple):
    """`data` to be written at `path`: a new znode with `acl` (entries as formats.znodes.Znode has them), or, where
    `acl` is None, one that exists. `kind` as formats.znodes.kind tells."""

    path: str
    data: bytes | None
    acl: Sequence[Mapping] | None
    kind: str


class Replica(NamedTuple):
    """One broker's log of a partition, as formats.replica_log.ReplicaLog tells."""

    broker: int
    topic_id: str | None
    last_epoch: int
    end_offset: int
    newest_epoch: int


def restored(saved: znodes.Znode, live: znodes.Znode | None) -> Write | None:
    """Return what is written at the path of a saved znode, None for nothing. Partition states are `state`'s.

    Raises znodes.ZnodeError where a value cannot be read.
    """
    kind = znodes.kind(saved.path)
    if kind in _LEFT_OUT or saved.stat.ephemeralOwner:
        return None
    if live is None:
        return Write(saved.path, saved.data, saved.acl, kind)
    if kind in _CONFIGS:
        data = _merged(saved, live, "config")
    elif kind == "topic":
        data = _with_partitions(saved, live)
    elif kind == "acl":
        data = _with_entries(saved, live)
    else:
        data = None
    return None if data is None else Write(saved.path, data, None, kind)


def state(
    path: str,
    assigned: Sequence[int],
    topic_id: str | None,
    saved: znodes.Znode | None,
    live: znodes.Znode | None,
    replicas: Iterable[Replica],
    controller_epoch: int,
) -> Write:
    """Return the partition state that is written at `path`, for a partition whose replicas are `assigned`.

    `saved`, `live`: its state in the backup and now; `replicas`: what the brokers' disks hold of it; those of another
    topic of the same name do not count. Raises znodes.ZnodeError.
    """
    before = [znodes.partition_state(node.data, node.path) for node in (live, saved) if node is not None]
    logs = {one.broker: one for one in replicas if one.broker in assigned and one.topic_id in (topic_id, None)}
    epochs = [reported["leader_epoch"] for reported in before] + [one.newest_epoch for one in logs.values()]
    leader, isr = -1, before[0]["isr"] if before else list(assigned)
    if logs:
        furthest = max((one.last_epoch, one.end_offset) for one in logs.values())
        isr = [one for one in assigned if one in logs and (logs[one].last_epoch, logs[one].end_offset) == furthest]
        leader = isr[0]
    value = {
        "controller_epoch": controller_epoch,
        "leader": leader,
        "version": 1,
        "leader_epoch": max([*epochs, -1]) + 1,
        "isr": isr,
    }
    acl = None if live is not None else (saved.acl if saved is not None else None)
    return Write(path, _json(value), acl, "partition_state")


def refused(facts: Mapping) -> str | None:
    """Return why ZooKeeper is not to be restored at all, None where it may be."""
    state = phase.longest_log(phase.controllers(facts)).get("zk_migration_state")
    if state == "POST_MIGRATION":
        return "the migration is finalized: no broker uses ZooKeeper any more"
    modes = {host: node.get("running") or node.get("next") for host, node in facts["nodes"].items()}
    kraft = sorted(host for host, mode in modes.items() if facts["nodes"][host]["role"] == "broker" and mode == "kraft")
    if kraft:
        return f"{', '.join(kraft)} run or will start in KRaft mode: what they hold is not what the backup holds"
    return None


def needed(detected: phase.PhaseResult, lacking: int) -> bool:
    """Say whether there is anything to do, `lacking` being the number of znodes to be made or completed: a restore that
    was cut off goes on, one that is done changes nothing."""
    if detected.phase == phase.REVERTING:
        *steps, _controllers_wiped = detected.steps  # which is for whoever has found the cause
        return lacking > 0 or not all(one["done"] for one in steps)
    return lacking > 0


def not_at_rest(facts: Mapping) -> list[str]:
    """Return why nothing may be restored now, as sentences: every process that would write meanwhile is stopped, and
    the controllers stay so (facts: see probes.cluster.collect)."""
    messages = []
    for host, node in sorted(facts["nodes"].items()):
        service = node.get("service") or {}
        if not node.get("reached"):
            messages.append(f"{host} was not reached: {node.get('error')}")
        elif service.get("active") or node.get("running"):
            messages.append(f"{service.get('name')} of {host} runs")
        elif node["role"] == "controller" and not service.get("masked"):
            messages.append(f"{service.get('name')} of {host} is not masked")
    return messages


def strangers(facts: Mapping) -> str | None:
    """Return why the inventory lacks somebody who has a part in a restore, None where it does not: a broker that would
    go on meanwhile, and of whose disks nothing would be known."""
    known = {str(one) for one in phase.broker_ids(facts)}
    others = sorted(set(facts["zookeeper"].get("broker_ids") or {}) - known, key=lambda one: (len(one), one))
    if not others:
        return None
    return (
        f"broker {', '.join(others)} is registered in ZooKeeper and is not in the inventory: a restore stops every "
        "broker and reads its disks. Put it into the group kafka_broker"
    )


def unread(assignments: Iterable[Iterable[int]], known: Iterable[int]) -> dict[int, int]:
    """Return {broker: partitions} of the brokers that have replicas and are not among the `known`, whose disks are
    read."""
    away = Counter(one for replicas in assignments for one in replicas)
    return {broker: count for broker, count in sorted(away.items()) if broker not in set(known)}


def registered(facts: Mapping) -> list[str]:
    """Return which brokers ZooKeeper takes for alive, as a sentence: a session outlives a broker that was killed."""
    alive = sorted(facts["zookeeper"].get("broker_ids") or {})
    return [f"brokers are registered in ZooKeeper: {', '.join(alive)}"] if alive else []


def from_disks(topic_id: str | None, known: Mapping[str, list[int]], logs: Mapping[int, Sequence[Replica]]) -> dict:
    """Return {partition: replicas} of a topic with those that only disks know, made after the backup.

    `topic_id`, `known`: of the topic as it is to stand in ZooKeeper (None and {} for one that disks alone know);
    `logs`: what the brokers' disks hold of a topic of this name. Disks that hold several topics of one name, as after
    one was deleted under a broker that was down, tell nothing of a new one.
    """
    ids = {topic_id} if topic_id else {one.topic_id for reported in logs.values() for one in reported}
    if len(ids) != 1 or None in ids:
        return dict(known)
    found = {
        str(partition): sorted(one.broker for one in reported if one.topic_id in ids)
        for partition, reported in sorted(logs.items())
        if str(partition) not in known
    }
    return {**known, **{partition: brokers for partition, brokers in found.items() if brokers}}


def epoch_above(reported: Iterable[int | None]) -> int:
    """Return the controller epoch that is written into states and into /controller_epoch: above every one told, so that
    the controller that is elected next, which takes one more, is above all of them."""
    return max((one for one in reported if one is not None), default=0) + 1


def _merged(saved: znodes.Znode, live: znodes.Znode, field: str) -> bytes | None:
    """Return the live object with the saved keys that it lacks, None where it lacks none."""
    old, now = _object(saved), _object(live)
    lacking = {key: value for key, value in old.get(field, {}).items() if key not in now.get(field, {})}
    return _json({**old, **now, field: {**now.get(field, {}), **lacking}}) if lacking else None


def _with_partitions(saved: znodes.Znode, live: znodes.Znode) -> bytes | None:
    """Return the live topic with the saved partitions that it lacks; a topic made anew since keeps its own."""
    if znodes.topic(saved.data, saved.path)["topic_id"] != znodes.topic(live.data, live.path)["topic_id"]:
        return None
    return _merged(saved, live, "partitions")


def _with_entries(saved: znodes.Znode, live: znodes.Znode) -> bytes | None:
    old, now = znodes.acls(saved.data, saved.path), znodes.acls(live.data, live.path)
    if all(entry in now for entry in old):
        return None
    value = _object(live) if live.data else {"version": 1}
    mine = value.get("acls", [])
    return _json({**value, "acls": [*mine, *(one for one in _object(saved)["acls"] if one not in mine)]})


def _object(node: znodes.Znode) -> dict:
    """Return a znode's JSON object; what has no data holds nothing."""
    if not node.data:
        return {}
    try:
        value = json.loads(node.data)
    except ValueError:
        raise znodes.ZnodeError(node.path, "is not JSON") from None
    if not isinstance(value, dict):
        raise znodes.ZnodeError(node.path, "is no object")
    return value


def _json(value: Mapping) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
