# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks that committed offsets of groups, and producer ids and epochs of transactional ids, never decrease. Pure.

Group and transaction coordinators keep both in compacted internal topics. A coordinator that deletes an entry, on a
client's request or when it expires, writes a tombstone there. The cleaner may have removed that tombstone. Then only
the age of the entry's last record at the baseline explains its absence: Kafka has let the entry expire since.
"""

from __future__ import annotations

import struct
import time
from typing import Collection, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple, Union

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.messages import messages

from quorumshift_spark.compare import MATCH
from quorumshift_spark.fingerprint.findings import Findings
from quorumshift_spark.fingerprint.plan import PartitionState, TopicPartition

OFFSET, TRANSACTION = "group_offset", "transaction"
OFFSETS_TOPIC, TRANSACTIONS_TOPIC = "__consumer_offsets", "__transaction_state"
INTERNAL = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC, "__share_group_state")
"""Kafka's own topics (o.a.k.common.internals.Topic.INTERNAL_TOPICS)."""
OFFSETS_RETENTION, IDS_RETENTION = "offsets.retention.minutes", "transactional.id.expiration.ms"

COORDINATORS = {OFFSET: OFFSETS_TOPIC, TRANSACTION: TRANSACTIONS_TOPIC}
_INACTIVE = ("EMPTY", "DEAD")
_HOUR_MS = 3_600_000

Newest = Tuple[bool, int, int, bool]
"""The newest record of a key: whether it is the cluster's, else the baseline's; offset; timestamp (ms); tombstone."""


class Group(NamedTuple):
    """A consumer group: its state in Kafka, upper case; its committed offsets: {(topic, partition): offset}."""

    state: str
    offsets: Mapping[TopicPartition, int]


class Transaction(NamedTuple):
    """The producer that last used a transactional id."""

    producer_id: int
    producer_epoch: int


class Missing(NamedTuple):
    """An entry of the baseline that the cluster no longer has: its key in `Findings`; its keys in the internal topic
    (of all versions of the key's format), where `partition` holds them; and of an offset the keys of its group, whose
    record says when that lost its last member. `is_lower`: an offset that is there, but lower than at the baseline."""

    kind: str
    key: Tuple[Union[str, int], ...]
    partition: TopicPartition
    records: Tuple[bytes, ...]
    of_group: Tuple[bytes, ...] = ()
    is_lower: bool = False


class Coordinators(NamedTuple):
    """What the coordinators keep: groups, transactional ids, and the brokers' retentions in ms by config."""

    groups: Mapping[str, Group]
    transactions: Mapping[str, Transaction]
    retentions: Mapping[str, int]


def missing(
    was: Coordinators, now: Coordinators, topics: Iterable[str], partitions: Mapping[TopicPartition, PartitionState]
) -> List[Missing]:
    """Return the entries of the baseline that are gone, and offsets that are lower, though their topics still exist.

    :arg topics: names of those that exist with the id of the baseline.
    :arg partitions: of this cluster; they include those of the internal topics.
    """
    existing = set(topics)
    counts = {name: sum(1 for topic, _number in partitions if topic == name) for name in INTERNAL}

    def place(topic: str, name: str) -> TopicPartition:
        return topic, (_java_hash(name) & 0x7FFFFFFF) % max(1, counts[topic])

    found = []
    for name, group in sorted(was.groups.items()):
        current = now.groups[name].offsets if name in now.groups else {}
        for topic, number in sorted(group.offsets):
            is_lower = current.get((topic, number), -1) < group.offsets[topic, number]
            if topic in existing and is_lower:
                offset_key = {"group": name, "topic": topic, "partition": number}
                records = tuple(_record_key("OffsetCommitKey", version, offset_key) for version in (0, 1))
                group_key = _record_key("GroupMetadataKey", 2, {"group": name})
                of_key = Missing(OFFSET, (name, topic, number), place(OFFSETS_TOPIC, name), records, (group_key,))
                found.append(of_key._replace(is_lower=(topic, number) in current))
    for name in sorted(set(was.transactions) - set(now.transactions)):
        records = (_record_key("TransactionLogKey", 0, {"transactionalId": name}),)
        found.append(Missing(TRANSACTION, (name,), place(TRANSACTIONS_TOPIC, name), records))
    return found


def _record_key(message: str, version: int, values: Mapping[str, Union[str, int]]) -> bytes:
    """Return the key of a coordinator's record: the version and the message."""
    return struct.pack(">h", version) + messages.encode(message, version, values)


def compare(
    was: Coordinators,
    now: Coordinators,
    log_ends: Mapping[TopicPartition, int],
    read_ms: int,
    gone: Iterable[Missing] = (),
    newest: Mapping[bytes, Sequence[Newest]] | None = None,
    recreated: Collection[str] = (),
    ends: Mapping[TopicPartition, int] | None = None,
) -> Findings:
    """Compare what the coordinators keep with the baseline.

    :arg log_ends: high watermarks, read after the groups; a partition that is missing was deleted.
    :arg read_ms: when reading ended, epoch ms.
    :arg gone: what `missing` returned; `newest`: the newest records of their keys, of the baseline and of the cluster.
    :arg recreated: topics that have another id than at the baseline; `ends`: of the baseline's partitions.
    """
    findings, gone = Findings(), list(gone)
    lower = {entry.key: entry for entry in gone if entry.is_lower}
    for name, group in sorted(was.groups.items()):
        current = now.groups[name].offsets if name in now.groups else {}
        for tp, offset in sorted(group.offsets.items()):
            if tp[0] in recreated:
                why = f"offset {offset}, now {current.get(tp, 'none')}: the topic was deleted and created again"
                findings.excuse(OFFSET, [name, *tp], why)
            elif tp not in current:
                if tp not in log_ends:
                    findings.excuse(OFFSET, [name, *tp], f"offset {offset}, now none: the topic was deleted")
            elif current[tp] < offset and _is_reset(lower.get((name, *tp)), newest or {}, ends or {}):
                why = (
                    f"offset {offset}, now {current[tp]}: committed since the baseline, by the newest record of its key"
                )
                findings.excuse(OFFSET, [name, *tp], why)
                _within(name, tp, current[tp], log_ends, None, findings, counts=False)
            elif current[tp] < offset:
                findings.count(OFFSET, "differ")
                findings.differ(OFFSET, [name, *tp], "offset", offset, current[tp], "group_regressed")
            else:
                _within(name, tp, current[tp], log_ends, None, findings)
    for name, group in sorted(now.groups.items()):
        known: Mapping[TopicPartition, int] = was.groups[name].offsets if name in was.groups else {}
        for tp, offset in sorted(group.offsets.items()):
            if tp not in known:
                _within(name, tp, offset, log_ends, "first commit since the baseline", findings)
    for name, before in sorted(was.transactions.items()):
        after = now.transactions.get(name)
        if after is None:
            continue
        if after < before:  # producer id first
            findings.count(TRANSACTION, "differ")
            sides = before._asdict(), after._asdict()
            findings.differ(TRANSACTION, [name], "producer", *sides, "producer_regressed")
        else:
            findings.count(TRANSACTION, MATCH)
    findings.explain(TRANSACTION, "new since the baseline", len(set(now.transactions) - set(was.transactions)))
    for entry in gone:
        if entry.is_lower:
            continue
        _gone(entry, was, now, read_ms, newest or {}, findings)
    return findings


def _is_reset(
    entry: Missing | None, newest: Mapping[bytes, Sequence[Newest]], ends: Mapping[TopicPartition, int]
) -> bool:
    """Return whether a client committed a lower offset: its record is above the baseline's end of the internal topic.

    A coordinator that lost the newest records has an older one: below that end.
    """
    if entry is None or entry.partition not in ends:
        return False
    here = [written for record in entry.records for written in newest.get(record, ()) if written[0]]
    _current, at, _time, tombstone = max(here, default=(True, -1, -1, True))
    return not tombstone and at >= ends[entry.partition]


def _gone(entry, was, now, read_ms, newest, findings):
    """Distinguish a deleted or expired entry from a lost one."""
    place, number = entry.partition
    if entry.kind == OFFSET:
        group, after = was.groups[entry.key[0]], now.groups.get(entry.key[0])
        # The offsets of a group with members do not expire
        config, unused = (
            OFFSETS_RETENTION,
            all(group_state.state in _INACTIVE for group_state in (group, after) if group_state),
        )
        value = f"offset {group.offsets[entry.key[1:]]}, now none"
    else:
        config, unused, value = IDS_RETENTION, True, f"{was.transactions[entry.key[0]]._asdict()}, now none"
    own = [written for record in entry.records for written in newest.get(record, ())]
    here = any(current for current, *_rest in own)
    _current, at, _time, tombstone = max(own, default=(False, 0, -1, False))
    # When the entry was last written, or its group lost its last member
    used = [written for record in entry.of_group for written in newest.get(record, ())]
    last = max((when for _current, _at, when, deleted in own + used if not deleted), default=-1) if own else -1
    retention = max(was.retentions[config], now.retentions[config])
    if tombstone:
        why = f"{value}: deleted or expired, its tombstone is at offset {at} of {place}-{number}"
    elif not here and unused and 0 <= last <= read_ms - retention:
        why = f"{value}: expired, {config} ({_hours(retention)}) has passed since it was last used ({_when(last)})"
    else:
        found = f"but its newest record in {place}-{number} is" if here else f"and {place}-{number} has"
        could = f" It was last used {_when(last)}, {config} is {_hours(retention)}." if unused and last >= 0 else ""
        why = f"{_name(entry)}: {value}, {found} no tombstone{'' if here else ' of it'}.{could} {_remedy(entry, was)}"
        findings.skip(entry.kind, list(entry.key), why)
        return
    findings.excuse(entry.kind, list(entry.key), why)


def _name(entry: Missing) -> str:
    if entry.kind == TRANSACTION:
        return f"transactional id {entry.key[0]}"
    return f"group {entry.key[0]} in {entry.key[1]}-{entry.key[2]}"


def _remedy(entry: Missing, was: Coordinators) -> str:
    if entry.kind == TRANSACTION:
        return (
            "Compare the replicas of this partition. If the application is retired, start a producer with this id once"
        )
    group, topic, number = entry.key
    return (
        "Compare the replicas of this partition. If the group was deleted on purpose, restore its offset, and delete "
        f"it again after the gate: kafka-consumer-groups.sh --bootstrap-server … --group '{group}' --topic "
        f"{topic}:{number} --reset-offsets --to-offset {was.groups[group].offsets[topic, number]} --execute"
    )


def _hours(milliseconds: int) -> str:
    return f"{milliseconds / _HOUR_MS:,g} h"


def _when(milliseconds: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(milliseconds / 1000))


def _within(name, tp, offset, log_ends, why, findings, counts=True):
    """Check that a committed offset is within the log; otherwise records that the group had read are lost."""
    if tp in log_ends and offset > log_ends[tp]:
        findings.count(OFFSET, "differ")
        sides = {"committed": offset}, {"committed": offset, "log end": log_ends[tp]}
        findings.differ(OFFSET, [name, *tp], "offset", *sides, "group_beyond_end")
    elif why:
        findings.explain(OFFSET, why)
    elif counts:
        findings.count(OFFSET, MATCH)


def _java_hash(text: str) -> int:
    """Return String.hashCode, by which a coordinator's partition is found (its absolute value modulo their number)."""
    units, value = text.encode("utf-16-be", "surrogatepass"), 0
    for (unit,) in struct.iter_unpack(">H", units):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value


def by_name(rows: Mapping[str, Dict[TopicPartition, int]], states: Mapping[str, str]) -> Dict[str, Group]:
    """Return the groups, from the results of two requests."""
    return {name: Group(states.get(name, "UNKNOWN").upper(), offsets) for name, offsets in rows.items()}
