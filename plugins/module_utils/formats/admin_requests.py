# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Encode the requests that move partitions and update features, and the layouts of their answers. No I/O.

Layouts are those of Kafka's message definitions (clients/src/main/resources/common/message/*.json, 3.9): KIP-455 for
reassignments, KIP-460 for elections, KIP-584 with KIP-778 for features, KIP-339 for configs, KIP-827 for log
directories. Answers are decoded by broker_requests.read.
"""

from __future__ import annotations

import struct
from typing import Iterable, Mapping, Sequence, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.broker_requests import Request
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.kafka_primitives import (
    NO_TAGS,
    compact_array,
    compact_string,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata_schemas import Field

_THROTTLE = Field("throttleTimeMs", "int32")
_ERROR = (Field("errorCode", "int16"), Field("errorMessage", "string", nullable=True))
_NULL = b"\0"

Partition = Tuple[str, int]
"""A topic and the number of its partition."""


def _topics(name: str, partition: Tuple[Field, ...]) -> Field:
    """Return an array of topics by name, each with its partitions."""
    return Field(name, "[]struct", fields=(Field("name", "string"), Field("partitions", "[]struct", fields=partition)))


_ALTERED = (Field("partitionIndex", "int32"), *_ERROR)
ALTER_REASSIGNMENTS = Request(
    "AlterPartitionReassignments",
    45,
    0,
    (_THROTTLE, *_ERROR, _topics("responses", _ALTERED)),
)

_IN_FLIGHT = (
    Field("partitionIndex", "int32"),
    Field("replicas", "[]int32"),
    Field("addingReplicas", "[]int32"),
    Field("removingReplicas", "[]int32"),
)
LIST_REASSIGNMENTS = Request(
    "ListPartitionReassignments",
    46,
    0,
    (_THROTTLE, *_ERROR, _topics("topics", _IN_FLIGHT)),
)

_ELECTED = Field(
    "replicaElectionResults",
    "[]struct",
    fields=(
        Field("topic", "string"),
        Field("partitionResult", "[]struct", fields=(Field("partitionId", "int32"), *_ERROR)),
    ),
)
ELECT_LEADERS = Request("ElectLeaders", 43, 2, (_THROTTLE, Field("errorCode", "int16"), _ELECTED))
_PREFERRED = 0  # o.a.k.common.ElectionType

UPDATE_FEATURES = Request(
    "UpdateFeatures",
    57,
    1,
    (_THROTTLE, *_ERROR, Field("results", "[]struct", fields=(Field("feature", "string"), *_ERROR))),
)
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
"""FeatureUpdate.UpgradeType."""

_ALTERED_RESOURCE = (*_ERROR, Field("resourceType", "int8"), Field("resourceName", "string"))
INCREMENTAL_ALTER_CONFIGS = Request(
    "IncrementalAlterConfigs", 44, 1, (_THROTTLE, Field("responses", "[]struct", fields=_ALTERED_RESOURCE))
)
TOPIC, BROKER = 2, 4
"""ConfigResource.Type."""
_SET, _DELETE = 0, 1

_REPLICA = (
    Field("partitionIndex", "int32"),
    Field("partitionSize", "int64"),
    Field("offsetLag", "int64"),
    Field("isFutureKey", "bool"),
)
_LOG_DIR = (
    Field("errorCode", "int16"),
    Field("logDir", "string"),
    _topics("topics", _REPLICA),
    Field("totalBytes", "int64"),
    Field("usableBytes", "int64"),
)
DESCRIBE_LOG_DIRS = Request(
    "DescribeLogDirs", 35, 4, (_THROTTLE, Field("errorCode", "int16"), Field("results", "[]struct", fields=_LOG_DIR))
)


def alter_reassignments(targets: Mapping[Partition, Sequence[int] | None], timeout_ms: int) -> bytes:
    """Return a request that moves each partition to its replicas, or cancels its reassignment (None)."""

    def encoded(partition: Partition) -> bytes:
        replicas = targets[partition]
        listed = _NULL if replicas is None else compact_array(struct.pack(">i", one) for one in replicas)
        return struct.pack(">i", partition[1]) + listed + NO_TAGS

    return struct.pack(">i", timeout_ms) + _by_topic(targets, encoded) + NO_TAGS


def list_reassignments(timeout_ms: int) -> bytes:
    """Return a request for all reassignments in flight."""
    return struct.pack(">i", timeout_ms) + _NULL + NO_TAGS


def elect_preferred(partitions: Iterable[Partition], timeout_ms: int) -> bytes:
    """Return a request that elects the preferred leader of each partition."""
    return struct.pack(">b", _PREFERRED) + _numbers(partitions) + struct.pack(">i", timeout_ms) + NO_TAGS


def update_features(updates: Mapping[str, Tuple[int, int]], validate_only: bool, timeout_ms: int) -> bytes:
    """Return a request that sets each feature to its (level, upgrade type); level 0 deletes it."""
    listed = compact_array(
        compact_string(name) + struct.pack(">hb", level, kind) + NO_TAGS
        for name, (level, kind) in sorted(updates.items())
    )
    return struct.pack(">i", timeout_ms) + listed + struct.pack(">?", validate_only) + NO_TAGS


def alter_configs(changes: Mapping[Tuple[int, str], Mapping[str, str | None]]) -> bytes:
    """Return a request that sets keys of each (resource type, name), or deletes a key (None)."""
    resources = compact_array(
        struct.pack(">b", kind)
        + compact_string(name)
        + compact_array(
            compact_string(key)
            + struct.pack(">b", _DELETE if value is None else _SET)
            + (_NULL if value is None else compact_string(value))
            + NO_TAGS
            for key, value in sorted(values.items())
        )
        + NO_TAGS
        for (kind, name), values in sorted(changes.items())
    )
    return resources + struct.pack(">?", False) + NO_TAGS


def log_dirs(partitions: Iterable[Partition] | None) -> bytes:
    """Return a request for the broker's own replicas of these partitions, None for all that it has."""
    return (_NULL if partitions is None else _numbers(partitions)) + NO_TAGS


def _numbers(partitions: Iterable[Partition]) -> bytes:
    """Return topics, each with the numbers of its partitions."""
    return _by_topic(partitions, lambda partition: struct.pack(">i", partition[1]))


def _by_topic(partitions, encoded):
    topics: dict = {}
    for partition in sorted(partitions):
        topics.setdefault(partition[0], []).append(encoded(partition))
    return compact_array(compact_string(topic) + compact_array(listed) + NO_TAGS for topic, listed in topics.items())
