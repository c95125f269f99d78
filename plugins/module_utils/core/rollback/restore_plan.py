# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a restore writes into ZooKeeper after a migration emptied it (KAFKA-17146): from a backup, ZooKeeper and the
brokers' disks. Pure.

A restore deletes nothing in ZooKeeper. It makes missing znodes, and adds missing values to existing ones. So it also
brings back what was deleted after the backup. The playbook shows this, users and permissions by name, and its token
confirms exactly these.

Leaders and in-sync replicas have changed since the backup. They are read from the disks of the stopped brokers. An
acknowledged record is on every replica that was in sync, and each later leader was one of these. So the replica with
the highest leader epoch in its last record, and of these the one with the highest end offset, has all acknowledged
records (KIP-101, KIP-279). Replicas that reach as far are in sync, the others catch up.

Epochs only rise. With a lower leader epoch than a log has seen, replicas would truncate records
(LeaderEpochFileCache). With a lower controller epoch than a partition's state has, the controller elects no leader
(KAFKA-20488; PartitionStateMachine).
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Iterable, Mapping, NamedTuple, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import confirmation
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import ClusterFacts
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes

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
_ROOTS = frozenset(
    ["admin", "brokers", "cluster", "config", "delegation_token", "kafka-acl", "kafka-acl-extended", "feature"]
)
_CONFIGS = frozenset(["topic_config", "broker_config", "client_config", "user_config", "ip_config"])


class Write(NamedTuple):
    """`data` to write at `path`: a new znode with `acl` (entries of znodes.Znode), or an existing one if `acl` is
    None, only if it still has `version` (-1: any). `kind`: of formats.zookeeper.znodes.kind."""

    path: str
    data: bytes | None
    acl: Sequence[Mapping] | None
    kind: str
    version: int = -1


class Replica(NamedTuple):
    """One broker's log of a partition, of formats.records.replica_log.ReplicaLog."""

    broker: int
    topic_id: str | None
    last_epoch: int
    end_offset: int
    newest_epoch: int


def plan_write(saved: znodes.Znode, live: znodes.Znode | None) -> Write | None:
    """Return the write at the path of a saved znode, None for none. `plan_state` returns those of partition states.

    Raises znodes.ZnodeError where a value cannot be read.
    """
    kind = znodes.kind(saved.path)
    if kind in _LEFT_OUT or saved.stat.ephemeralOwner:
        return None
    if live is None:
        return Write(saved.path, saved.data, saved.acl, kind)
    if kind in _CONFIGS:
        data = _merge(saved, live, "config")
    elif kind == "topic":
        data = _merge_partitions(saved, live)
    elif kind == "acl":
        data = _merge_entries(saved, live)
    else:
        data = None
    return None if data is None else Write(saved.path, data, None, kind, live.stat.version)


def find_revived(saved: znodes.Znode, live: znodes.Znode | None) -> list[str]:
    """Return the credentials and permissions of a saved znode that ZooKeeper lacks now, by name. Raises ZnodeError."""
    kind = znodes.kind(saved.path)
    if kind == "user_config":
        now = _object(live).get("config", {}) if live else {}
        lacking = set(_object(saved).get("config", {})).intersection(znodes.SCRAM_MECHANISMS) - set(now)
        user = znodes.desanitize(saved.path.rpartition("/")[2])
        return [f"{mechanism} credential of user {user}" for mechanism in sorted(lacking)]
    if kind == "acl":
        entries = znodes.acls(live.data, live.path) if live else []
        resource = " ".join(saved.path.strip("/").split("/", 3 if "extended" in saved.path else 2)[1:])
        return [
            f"{acl['permission']} {acl['operation']} on {resource} for {acl['principal']} from host {acl['host']}"
            for acl in znodes.acls(saved.data, saved.path)
            if acl not in entries
        ]
    if kind == "delegation_token" and live is None:
        token = znodes.delegation_token(saved.data, saved.path)
        return [f"delegation token {token['token_id']} of {token['owner']}"] if token else []
    return []


def token(cluster_id: str, sha256: str, grants: Sequence[str]) -> str:
    """Return the confirmation token of a restore: of this backup (its SHA-256), with these credentials and permissions
    brought back. Any change of them changes the token."""
    return confirmation.make_token(cluster_id, sha256, sorted(grants))


def confirms(given: str, cluster_id: str, sha256: str, grants: Sequence[str], accepted: Sequence[str]) -> bool:
    """Return whether the token given confirms a restore. `accepted`: what was listed when that token was printed: an
    interrupted restore has brought back some of it and goes on with the same token."""
    if given == token(cluster_id, sha256, grants):
        return True
    return set(grants) <= set(accepted) and given == token(cluster_id, sha256, accepted)


def is_metadata(path: str) -> bool:
    """Return whether a znode at this path is metadata of Kafka that no stopped cluster creates."""
    kind = znodes.kind(path)
    if kind == "other":
        return path.split("/")[1] in _ROOTS
    return kind not in znodes.VOLATILE_KINDS and kind not in ("directory", "old_consumer")


def plan_state(
    path: str,
    assigned: Sequence[int],
    topic_id: str | None,
    saved: znodes.Znode | None,
    live: znodes.Znode | None,
    replicas: Iterable[Replica],
    controller_epoch: int,
) -> Write:
    """Return the write of a partition's state at `path`; `assigned`: the ids of its replicas.

    `saved`, `live`: its state in the backup and now; `replicas`: its logs on the brokers' disks; those of another topic
    with the same name do not count. Raises znodes.ZnodeError.
    """
    before = [znodes.partition_state(node.data, node.path) for node in (live, saved) if node is not None]
    logs = {
        replica.broker: replica
        for replica in replicas
        if replica.broker in assigned and replica.topic_id in (topic_id, None)
    }
    epochs = [state["leader_epoch"] for state in before] + [log.newest_epoch for log in logs.values()]
    leader, isr = -1, before[0]["isr"] if before else list(assigned)
    if logs:
        furthest = max((log.last_epoch, log.end_offset) for log in logs.values())
        isr = [
            broker_id
            for broker_id in assigned
            if broker_id in logs and (logs[broker_id].last_epoch, logs[broker_id].end_offset) == furthest
        ]
        leader = isr[0]
    value = {
        "controller_epoch": controller_epoch,
        "leader": leader,
        "version": 1,
        "leader_epoch": max([*epochs, -1]) + 1,
        "isr": isr,
    }
    acl = None if live is not None else (saved.acl if saved is not None else None)
    return Write(path, _json(value), acl, "partition_state", -1 if live is None else live.stat.version)


def refusal(facts: ClusterFacts) -> str | None:
    """Return why ZooKeeper must not be restored, None when it may be."""
    state = phase.longest_log(phase.controllers(facts)).get("zk_migration_state")
    if state == "POST_MIGRATION":
        return "the migration is finalized: no broker uses ZooKeeper (QS-COPY-004)"
    modes = {host: node.get("running") or node.get("next") for host, node in facts["nodes"].items()}
    kraft = sorted(host for host, mode in modes.items() if facts["nodes"][host]["role"] == "broker" and mode == "kraft")
    if kraft:
        return (
            f"{', '.join(kraft)} run or will start in KRaft mode, so the backup does not match their data (QS-COPY-004)"
        )
    return None


def is_needed(facts: ClusterFacts, detected: phase.PhaseResult, lacking: int) -> bool:
    """Return whether there is anything to restore; `lacking`: how many znodes to make or complete. An interrupted
    restore continues, a complete one changes nothing."""
    brokers = [node for node in facts["nodes"].values() if node["role"] == "broker"]
    if any((node.get("service") or {}).get("masked") for node in brokers):
        return True
    if detected.phase == phase.REVERTING:
        *steps, _controllers_wiped = detected.steps  # the operator wipes the controllers once the cause is found
        return lacking > 0 or not all(step["done"] for step in steps)
    return lacking > 0


def check_at_rest(facts: ClusterFacts) -> list[str]:
    """Return why nothing may be restored now, as sentences: a process that would write meanwhile runs, or may start
    (facts: see probes.cluster.cluster.collect)."""
    reasons = []
    for host, node in sorted(facts["nodes"].items()):
        service = node.get("service") or {}
        if not node.get("reached"):
            reasons.append(f"{host} was not reached: {node.get('error')} (QS-PHASE-006)")
        elif service.get("active") or node.get("running"):
            reasons.append(f"{service.get('name')} of {host} runs (QS-COPY-004)")
        elif not service.get("masked"):
            reasons.append(f"{service.get('name')} of {host} is not masked (QS-COPY-004)")
    return reasons


def check_brokers_listed(facts: ClusterFacts) -> str | None:
    """Return why a live broker must be added to the inventory, None when all are in it: a restore stops every broker
    and reads its disks."""
    known = {str(broker_id) for broker_id in phase.broker_ids(facts)}
    others = sorted(
        set(facts["zookeeper"].get("broker_ids") or {}) - known, key=lambda broker_id: (len(broker_id), broker_id)
    )
    if not others:
        return None
    return (
        f"broker {', '.join(others)} is registered in ZooKeeper and is not in the inventory. A restore must stop every "
        "broker and read its disks: add it to the group kafka_broker (QS-COPY-004)"
    )


def count_unread(assignments: Iterable[Iterable[int]], known: Iterable[int]) -> dict[int, int]:
    """Return {broker: number of its replicas} of the brokers whose disks are not read; `known`: those that are read."""
    counts = Counter(broker_id for replicas in assignments for broker_id in replicas)
    return {broker: count for broker, count in sorted(counts.items()) if broker not in set(known)}


def describe_registered(facts: ClusterFacts) -> list[str]:
    """Return which brokers are registered in ZooKeeper, as a sentence: the session of a killed broker outlives it."""
    alive = sorted(facts["zookeeper"].get("broker_ids") or {})
    return [f"brokers are registered in ZooKeeper: {', '.join(alive)}"] if alive else []


def partitions_from_disks(
    topic_id: str | None, known: Mapping[str, list[int]], logs: Mapping[int, Sequence[Replica]]
) -> dict:
    """Return {partition: replicas} of a topic, with the partitions made after the backup, which only the disks have.

    `topic_id`, `known`: of the topic in ZooKeeper (None and {} for a topic that only the disks have); `logs`: the logs
    on the brokers' disks of a topic of this name. If the disks have several topics of one name, for example a deleted
    one on a broker that was down, a topic that ZooKeeper lacks is not restored from them.
    """
    ids = {topic_id} if topic_id else {replica.topic_id for replicas in logs.values() for replica in replicas}
    if len(ids) != 1 or None in ids:
        return dict(known)
    made_later = {
        str(partition): sorted(replica.broker for replica in replicas if replica.topic_id in ids)
        for partition, replicas in sorted(logs.items())
        if str(partition) not in known
    }
    return {**known, **{partition: brokers for partition, brokers in made_later.items() if brokers}}


def choose_epoch(epochs: Iterable[int | None]) -> int:
    """Return the controller epoch to write into states and /controller_epoch: above all `epochs`. The next controller
    takes one more."""
    return max((epoch for epoch in epochs if epoch is not None), default=0) + 1


def _merge(saved: znodes.Znode, live: znodes.Znode, field: str) -> bytes | None:
    """Return the live object with the saved keys that it lacks, None if it lacks none."""
    old, now = _object(saved), _object(live)
    lacking = {key: value for key, value in old.get(field, {}).items() if key not in now.get(field, {})}
    return _json({**old, **now, field: {**now.get(field, {}), **lacking}}) if lacking else None


def _merge_partitions(saved: znodes.Znode, live: znodes.Znode) -> bytes | None:
    """Return the live topic with the saved partitions that it lacks, None if it lacks none or has another topic id."""
    if znodes.topic(saved.data, saved.path)["topic_id"] != znodes.topic(live.data, live.path)["topic_id"]:
        return None
    return _merge(saved, live, "partitions")


def _merge_entries(saved: znodes.Znode, live: znodes.Znode) -> bytes | None:
    old, now = znodes.acls(saved.data, saved.path), znodes.acls(live.data, live.path)
    if all(entry in now for entry in old):
        return None
    value: dict[str, Any] = _object(live) if live.data else {"version": 1}
    mine = value.get("acls", [])
    return _json({**value, "acls": [*mine, *(acl for acl in _object(saved)["acls"] if acl not in mine)]})


def _object(node: znodes.Znode) -> dict[str, Any]:
    """Return a znode's JSON object, {} without data."""
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
