# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The schemas of Kafka 3.9's metadata log: every record type with all its versions, as data.

Facts of Kafka's schemas at 3.9: metadata/src/main/resources/common/metadata/*.json (record types) and
clients/src/main/resources/common/message/{LeaderChangeMessage,Snapshot*Record,KRaftVersionRecord,VotersRecord}.json
(control records). All are flexible (KIP-482) from version 0 on. Two facts hold for every field of every schema: an
added field is never removed (`since`), and a nullable or tagged field is so in all its versions.

Types are those of Kafka's generator: bool, int8, int16, uint16, int32, int64, float64, string, bytes, uuid, `struct`
(with `fields`), and `[]` before one of them for an array.
"""

from __future__ import annotations

from typing import Any, NamedTuple

_TYPE_DEFAULT = object()
ZERO_UUID = "A" * 22


class Field(NamedTuple):
    """A field with its name in Kafka's JSON form (camelCase). `default` is its value if it is absent."""

    name: str
    type: str
    since: int = 0
    tag: int | None = None
    nullable: bool = False
    default: Any = _TYPE_DEFAULT
    fields: tuple[Field, ...] = ()


class Schema(NamedTuple):
    """A record type: `name` as in MetadataRecordType or ControlRecordType, versions 0 to `latest`."""

    name: str
    latest: int
    fields: tuple[Field, ...]


def default_of(field: Field):
    """Return the value of an absent field: its own default, or its type's. A list is new each time."""
    if field.default is not _TYPE_DEFAULT:
        return field.default
    if field.type.startswith("[]"):
        return []
    return {"bool": False, "string": "", "bytes": b"", "uuid": ZERO_UUID, "float64": 0.0}.get(field.type, 0)


def _optional_ids(name: str, tag: int, since: int = 0) -> Field:
    return Field(name, "[]int32", since, tag, nullable=True, default=None)


_FEATURES = Field(
    "features",
    "[]struct",
    fields=(Field("name", "string"), Field("minSupportedVersion", "int16"), Field("maxSupportedVersion", "int16")),
)
_ENDPOINTS = Field(
    "endPoints",
    "[]struct",
    fields=(
        Field("name", "string"),
        Field("host", "string"),
        Field("port", "uint16"),
        Field("securityProtocol", "int16"),
    ),
)
_BROKER_STATE = (Field("id", "int32"), Field("epoch", "int64"))

RECORDS = {
    0: Schema(
        "REGISTER_BROKER_RECORD",
        3,
        (
            Field("brokerId", "int32"),
            Field("isMigratingZkBroker", "bool", since=2),
            Field("incarnationId", "uuid"),
            Field("brokerEpoch", "int64"),
            _ENDPOINTS,
            _FEATURES,
            Field("rack", "string", nullable=True),
            Field("fenced", "bool", default=True),
            Field("inControlledShutdown", "bool", since=1),
            Field("logDirs", "[]uuid", since=3, tag=0),
        ),
    ),
    1: Schema("UNREGISTER_BROKER_RECORD", 0, (Field("brokerId", "int32"), Field("brokerEpoch", "int64"))),
    2: Schema("TOPIC_RECORD", 0, (Field("name", "string"), Field("topicId", "uuid"))),
    3: Schema(
        "PARTITION_RECORD",
        2,
        (
            Field("partitionId", "int32", default=-1),
            Field("topicId", "uuid"),
            Field("replicas", "[]int32"),
            Field("isr", "[]int32"),
            Field("removingReplicas", "[]int32"),
            Field("addingReplicas", "[]int32"),
            Field("leader", "int32", default=-1),
            Field("leaderRecoveryState", "int8", tag=0),
            Field("leaderEpoch", "int32", default=-1),
            Field("partitionEpoch", "int32", default=-1),
            Field("directories", "[]uuid", since=1),
            _optional_ids("eligibleLeaderReplicas", tag=1, since=2),
            _optional_ids("lastKnownElr", tag=2, since=2),
        ),
    ),
    4: Schema(
        "CONFIG_RECORD",
        0,
        (
            Field("resourceType", "int8"),
            Field("resourceName", "string"),
            Field("name", "string"),
            Field("value", "string", nullable=True),
        ),
    ),
    5: Schema(
        "PARTITION_CHANGE_RECORD",
        2,
        (
            Field("partitionId", "int32", default=-1),
            Field("topicId", "uuid"),
            _optional_ids("isr", tag=0),
            Field("leader", "int32", tag=1, default=-2),
            _optional_ids("replicas", tag=2),
            _optional_ids("removingReplicas", tag=3),
            _optional_ids("addingReplicas", tag=4),
            Field("leaderRecoveryState", "int8", tag=5, default=-1),
            Field("directories", "[]uuid", since=1, tag=8, nullable=True, default=None),
            _optional_ids("eligibleLeaderReplicas", tag=6, since=2),
            _optional_ids("lastKnownElr", tag=7, since=2),
        ),
    ),
    7: Schema("FENCE_BROKER_RECORD", 0, _BROKER_STATE),
    8: Schema("UNFENCE_BROKER_RECORD", 0, _BROKER_STATE),
    9: Schema("REMOVE_TOPIC_RECORD", 0, (Field("topicId", "uuid"),)),
    10: Schema(
        "DELEGATION_TOKEN_RECORD",
        0,
        (
            Field("owner", "string"),
            Field("requester", "string"),
            Field("renewers", "[]string"),
            Field("issueTimestamp", "int64"),
            Field("maxTimestamp", "int64"),
            Field("expirationTimestamp", "int64"),
            Field("tokenId", "string"),
        ),
    ),
    11: Schema(
        "USER_SCRAM_CREDENTIAL_RECORD",
        0,
        (
            Field("name", "string"),
            Field("mechanism", "int8"),
            Field("salt", "bytes"),
            Field("storedKey", "bytes"),
            Field("serverKey", "bytes"),
            Field("iterations", "int32"),
        ),
    ),
    12: Schema("FEATURE_LEVEL_RECORD", 0, (Field("name", "string"), Field("featureLevel", "int16"))),
    14: Schema(
        "CLIENT_QUOTA_RECORD",
        0,
        (
            Field(
                "entity",
                "[]struct",
                fields=(Field("entityType", "string"), Field("entityName", "string", nullable=True)),
            ),
            Field("key", "string"),
            Field("value", "float64"),
            Field("remove", "bool"),
        ),
    ),
    15: Schema(
        "PRODUCER_IDS_RECORD",
        0,
        (
            Field("brokerId", "int32"),
            Field("brokerEpoch", "int64", default=-1),
            Field("nextProducerId", "int64"),
        ),
    ),
    17: Schema(
        "BROKER_REGISTRATION_CHANGE_RECORD",
        2,
        (
            Field("brokerId", "int32"),
            Field("brokerEpoch", "int64"),
            Field("fenced", "int8", tag=0),
            Field("inControlledShutdown", "int8", since=1, tag=1),
            Field("logDirs", "[]uuid", since=2, tag=2),
        ),
    ),
    18: Schema(
        "ACCESS_CONTROL_ENTRY_RECORD",
        0,
        (
            Field("id", "uuid"),
            Field("resourceType", "int8"),
            Field("resourceName", "string"),
            Field("patternType", "int8"),
            Field("principal", "string"),
            Field("host", "string"),
            Field("operation", "int8"),
            Field("permissionType", "int8"),
        ),
    ),
    19: Schema("REMOVE_ACCESS_CONTROL_ENTRY_RECORD", 0, (Field("id", "uuid"),)),
    20: Schema("NO_OP_RECORD", 0, ()),
    21: Schema("ZK_MIGRATION_STATE_RECORD", 0, (Field("zkMigrationState", "int8"),)),
    22: Schema("REMOVE_USER_SCRAM_CREDENTIAL_RECORD", 0, (Field("name", "string"), Field("mechanism", "int8"))),
    23: Schema("BEGIN_TRANSACTION_RECORD", 0, (Field("name", "string", tag=0, nullable=True, default=None),)),
    24: Schema("END_TRANSACTION_RECORD", 0, ()),
    25: Schema("ABORT_TRANSACTION_RECORD", 0, (Field("reason", "string", tag=0, nullable=True, default=None),)),
    26: Schema("REMOVE_DELEGATION_TOKEN_RECORD", 0, (Field("tokenId", "string"),)),
    27: Schema(
        "REGISTER_CONTROLLER_RECORD",
        0,
        (
            Field("controllerId", "int32"),
            Field("incarnationId", "uuid"),
            Field("zkMigrationReady", "bool"),
            _ENDPOINTS,
            _FEATURES,
        ),
    ),
    29: Schema("UNREGISTER_CONTROLLER_RECORD", 0, (Field("controllerId", "int32"),)),
}
"""Metadata record types by api key: those of Kafka 3.9, and what a later Kafka writes of brokers and controllers."""

LATER = {0: 4, 17: 3}
"""The highest version in Kafka 4.4 of types with more versions there, whose new fields are tagged, so skipped."""

API_KEYS = {schema.name: api_key for api_key, schema in RECORDS.items()}
"""Api keys by the name of the record type."""

_VOTERS_OF_CHANGE = (Field("voterId", "int32"), Field("voterDirectoryId", "uuid", since=1))

CONTROL_RECORDS = {
    2: Schema(
        "LEADER_CHANGE",
        1,
        (
            Field("version", "int16"),
            Field("leaderId", "int32"),
            Field("voters", "[]struct", fields=_VOTERS_OF_CHANGE),
            Field("grantingVoters", "[]struct", fields=_VOTERS_OF_CHANGE),
        ),
    ),
    3: Schema("SNAPSHOT_HEADER", 0, (Field("version", "int16"), Field("lastContainedLogTimestamp", "int64"))),
    4: Schema("SNAPSHOT_FOOTER", 0, (Field("version", "int16"),)),
    5: Schema("KRAFT_VERSION", 0, (Field("version", "int16"), Field("kRaftVersion", "int16"))),
    6: Schema(
        "KRAFT_VOTERS",
        0,
        (
            Field("version", "int16"),
            Field(
                "voters",
                "[]struct",
                fields=(
                    Field("voterId", "int32"),
                    Field("voterDirectoryId", "uuid"),
                    Field(
                        "endpoints",
                        "[]struct",
                        fields=(Field("name", "string"), Field("host", "string"), Field("port", "uint16")),
                    ),
                    Field(
                        "kRaftVersionFeature",
                        "struct",
                        fields=(Field("minSupportedVersion", "int16"), Field("maxSupportedVersion", "int16")),
                    ),
                ),
            ),
        ),
    ),
}
"""Control record types by the type in their key; the version is the first field of the value."""
