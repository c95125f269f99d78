# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Encode structs of Kafka's flexible encoding (KIP-482) as Kafka does, and random partitions to encode."""

from __future__ import annotations

import base64
import struct

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.kafka_primitives import (
    compact_array,
    compact_string,
    unsigned_varint,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata_schemas import (
    API_KEYS,
    RECORDS,
    default_of,
)

_NUMBERS = {"int8": ">b", "int16": ">h", "int32": ">i", "int64": ">q", "uint16": ">H", "bool": ">?"}


def structure(fields, version, values):
    """Return a struct; fields without a value in `values` have Kafka's default, tagged ones are then left out."""
    plain, tagged = [], []
    for field in fields:
        if field.since > version:
            continue
        value = values.get(field.name, default_of(field))
        if field.tag is None:
            plain.append(_value(field, version, value))
        elif value != default_of(field):
            tagged.append((field.tag, _value(field, version, value)))
    tags = [unsigned_varint(tag) + unsigned_varint(len(data)) + data for tag, data in sorted(tagged)]
    return b"".join(plain) + unsigned_varint(len(tags)) + b"".join(tags)


def _value(field, version, value):
    kind = field.type
    if value is None:
        return b"\0"
    if kind.startswith("[]"):
        element = field._replace(type=kind[2:])
        return compact_array(_value(element, version, item) for item in value)
    if kind == "struct":
        return structure(field.fields, version, value)
    if kind == "uuid":
        return base64.urlsafe_b64decode(value + "==")
    return compact_string(value) if kind == "string" else struct.pack(_NUMBERS[kind], value)


def record(record_type, version=0, /, **values):
    """Return the value of a metadata record."""
    key = API_KEYS[record_type]
    return bytes((1, key, version)) + structure(RECORDS[key].fields, version, values)


def uuid(random):
    """Return a uuid as Kafka's text."""
    return base64.urlsafe_b64encode(random.randbytes(16))[:22].decode()


def ids(random, longest=4):
    """Return broker ids; rarely more of them than the fast decoders take."""
    length = random.randint(120, 140) if random.random() < 0.02 else random.randint(0, longest)
    return [random.choice((random.randint(0, 40), random.randint(-(1 << 31), (1 << 31) - 1))) for _id in range(length)]


def partition(random):
    """Return a partition record of any version, as partitions are or with the fields that are rarely set."""
    values = {
        "partitionId": random.randint(0, 70000),
        "topicId": uuid(random),
        "replicas": ids(random),
        "isr": ids(random),
        "leader": random.randint(-1, 40),
        "leaderEpoch": random.randint(0, 1 << 30),
        "partitionEpoch": random.randint(0, 1 << 30),
        "directories": [uuid(random) for _replica in range(random.randint(0, 3))],
    }
    rare = {
        "removingReplicas": ids(random),
        "addingReplicas": ids(random),
        "leaderRecoveryState": 1,
        "eligibleLeaderReplicas": ids(random),
        "lastKnownElr": ids(random),
    }
    values.update({name: value for name, value in rare.items() if random.random() < 0.2})
    return record("PARTITION_RECORD", random.randint(0, 2), **values)


def change(random):
    """Return a partition change record of any version with some of its fields."""
    values = {
        "isr": ids(random),
        "leader": random.randint(-1, 40),
        "replicas": ids(random),
        "removingReplicas": ids(random),
        "addingReplicas": ids(random),
        "leaderRecoveryState": random.randint(0, 1),
        "directories": [uuid(random)],
        "eligibleLeaderReplicas": ids(random),
        "lastKnownElr": ids(random),
    }
    some = {name: value for name, value in values.items() if random.random() < 0.3}
    place = {"partitionId": random.randint(0, 70000), "topicId": uuid(random)}
    return record("PARTITION_CHANGE_RECORD", random.randint(0, 2), **place, **some)
