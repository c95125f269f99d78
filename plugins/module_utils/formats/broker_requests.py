# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Encode the requests for a broker's metadata and decode their answers. No I/O.

Each request has one version, the newest of Kafka 3.9, which every broker from 3.3 on offers (3.4 is the oldest that can
migrate), but for ListClientMetricsResources. Its layout is a table of fields as in Kafka's message definitions
(clients/src/main/resources/common/message/*.json), decoded by the reader of metadata records: both are KIP-482's
flexible encoding. kafka-python has no DescribeDelegationToken, and it holds a complete answer as objects (1 kB a
partition), while this module reads Metadata topic by topic.

The broker answers each of them itself and never forwards it to the controller (KafkaApis.handle, 3.9: no
maybeForwardToController). The source of an answer depends on the broker's mode:

=============================  =============================================  ======================================
request                        broker in ZooKeeper mode, hybrid included      broker in KRaft mode
=============================  =============================================  ======================================
Metadata                       its cache, filled by the controller's          its image of the metadata log
                               UpdateMetadata (ZkMetadataCache)               (KRaftMetadataCache)
DescribeConfigs of a topic     ZooKeeper, read now (ZkConfigRepository)       its image
DescribeConfigs of itself and  what it applied of ZooKeeper's change          what it applied of the log
of the default of brokers      notifications (DynamicBrokerConfig)            (DynamicConfigPublisher)
DescribeClientQuotas           ZooKeeper, read now (ZkAdminManager)           its image
ListClientMetricsResources     not offered                                    its image
DescribeUserScramCredentials   ZooKeeper, read now (ZkAdminManager)           its image
DescribeAcls                   its authorizer's cache, filled by ZooKeeper's  its authorizer's copy of the log
                               change notifications (AclAuthorizer)           (StandardAuthorizer)
DescribeDelegationToken        its token cache, filled by ZooKeeper's change  its token cache, filled from the log
                               notifications                                  (DelegationTokenPublisher)
ApiVersions                    /feature of ZooKeeper                          its image, with the image's offset
ListOffsets                    its own logs                                   its own logs
=============================  =============================================  ======================================

Two answers silently leave out what the principal may not describe: Metadata of all topics, and DescribeDelegationToken.
The principal must be a super user, or have DESCRIBE on all topics and tokens.
"""

from __future__ import annotations

import struct
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.kafka_primitives import (
    NO_TAGS,
    compact_array,
    compact_string,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata_records import (
    field_reader,
    read_length,
    read_unsigned_varint,
    struct_reader,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata_schemas import Field


class Request(NamedTuple):
    """A request; `fields` are those of its answer."""

    name: str
    api_key: int
    version: int
    fields: Tuple[Field, ...]


class MalformedAnswer(ValueError):
    """An answer's bytes do not match its layout."""

    def __init__(self, request: Request, reason: object) -> None:
        super().__init__(f"the answer to {request.name} v{request.version} cannot be read: {reason}")


_THROTTLE = Field("throttleTimeMs", "int32")
_ERROR = (Field("errorCode", "int16"), Field("errorMessage", "string", nullable=True))
PARTITION_FIELDS = (
    Field("errorCode", "int16"),
    Field("partitionIndex", "int32"),
    Field("leaderId", "int32"),
    Field("leaderEpoch", "int32"),
    Field("replicaNodes", "[]int32"),
    Field("isrNodes", "[]int32"),
    Field("offlineReplicas", "[]int32"),
)
TOPIC_FIELDS = (
    Field("errorCode", "int16"),
    Field("name", "string", nullable=True),
    Field("topicId", "uuid"),
    Field("isInternal", "bool"),
    Field("partitions", "[]struct", fields=PARTITION_FIELDS),
    Field("topicAuthorizedOperations", "int32"),
)
_BROKER = (
    Field("nodeId", "int32"),
    Field("host", "string"),
    Field("port", "int32"),
    Field("rack", "string", nullable=True),
)
METADATA = Request(
    "Metadata",
    3,
    12,
    (
        _THROTTLE,
        Field("brokers", "[]struct", fields=_BROKER),
        Field("clusterId", "string", nullable=True),
        Field("controllerId", "int32"),
        Field("topics", "[]struct", fields=TOPIC_FIELDS),
    ),
)

# Maximum size in bytes of an answer with all topics: about 50 bytes a partition. It cannot be requested in parts
# without the topics' names.
LARGEST_METADATA = 1 << 30

_SYNONYM = (Field("name", "string"), Field("value", "string", nullable=True), Field("source", "int8"))
_CONFIG = (
    Field("name", "string"),
    Field("value", "string", nullable=True),
    Field("readOnly", "bool"),
    Field("configSource", "int8"),
    Field("isSensitive", "bool"),
    Field("synonyms", "[]struct", fields=_SYNONYM),
    Field("configType", "int8"),
    Field("documentation", "string", nullable=True),
)
_CONFIGS_OF_RESOURCE = (
    *_ERROR,
    Field("resourceType", "int8"),
    Field("resourceName", "string"),
    Field("configs", "[]struct", fields=_CONFIG),
)
DESCRIBE_CONFIGS = Request(
    "DescribeConfigs", 32, 4, (_THROTTLE, Field("results", "[]struct", fields=_CONFIGS_OF_RESOURCE))
)

_QUOTA = (
    Field(
        "entity",
        "[]struct",
        fields=(Field("entityType", "string"), Field("entityName", "string", nullable=True)),
    ),
    Field("values", "[]struct", fields=(Field("key", "string"), Field("value", "float64"))),
)
DESCRIBE_CLIENT_QUOTAS = Request(
    "DescribeClientQuotas", 48, 1, (_THROTTLE, *_ERROR, Field("entries", "[]struct", nullable=True, fields=_QUOTA))
)

_CREDENTIALS_OF_USER = (
    Field("user", "string"),
    *_ERROR,
    Field("credentialInfos", "[]struct", fields=(Field("mechanism", "int8"), Field("iterations", "int32"))),
)
DESCRIBE_SCRAM = Request(
    "DescribeUserScramCredentials",
    50,
    0,
    (_THROTTLE, *_ERROR, Field("results", "[]struct", fields=_CREDENTIALS_OF_USER)),
)

_ACL = (
    Field("principal", "string"),
    Field("host", "string"),
    Field("operation", "int8"),
    Field("permissionType", "int8"),
)
_ACLS_OF_RESOURCE = (
    Field("resourceType", "int8"),
    Field("resourceName", "string"),
    Field("patternType", "int8"),
    Field("acls", "[]struct", fields=_ACL),
)
DESCRIBE_ACLS = Request(
    "DescribeAcls", 29, 3, (_THROTTLE, *_ERROR, Field("resources", "[]struct", fields=_ACLS_OF_RESOURCE))
)

_PRINCIPAL = (Field("principalType", "string"), Field("principalName", "string"))
_TOKEN = (
    *_PRINCIPAL,
    Field("tokenRequesterPrincipalType", "string"),
    Field("tokenRequesterPrincipalName", "string"),
    Field("issueTimestamp", "int64"),
    Field("expiryTimestamp", "int64"),
    Field("maxTimestamp", "int64"),
    Field("tokenId", "string"),
    Field("hmac", "bytes"),
    Field("renewers", "[]struct", fields=_PRINCIPAL),
)
DESCRIBE_TOKENS = Request(
    "DescribeDelegationToken",
    41,
    3,
    (Field("errorCode", "int16"), Field("tokens", "[]struct", fields=_TOKEN), _THROTTLE),
)

_END = (
    Field("partitionIndex", "int32"),
    Field("errorCode", "int16"),
    Field("timestamp", "int64"),
    Field("offset", "int64"),
    Field("leaderEpoch", "int32"),
)
# Kafka 3.7 and later, in KRaft mode (KIP-1000)
LIST_CLIENT_METRICS = Request(
    "ListClientMetricsResources",
    74,
    0,
    (
        _THROTTLE,
        Field("errorCode", "int16"),
        Field("clientMetricsResources", "[]struct", fields=(Field("name", "string"),)),
    ),
)
LIST_OFFSETS = Request(
    "ListOffsets",
    2,
    7,
    (
        _THROTTLE,
        Field("topics", "[]struct", fields=(Field("name", "string"), Field("partitions", "[]struct", fields=_END))),
    ),
)
# As the replica id: the broker returns the end of its own log, leader or not (ListOffsetsRequest, KafkaApis).
_DEBUGGING_REPLICA, _LATEST, _NO_EPOCH = -2, -1, -1

# --- bodies of the requests ------------------------------------------------------------------------------

_ANY = b"\1"  # in each of DescribeAcls' enums: ResourceType, PatternType, AclOperation, AclPermissionType
_CLUSTER, _LITERAL = b"\4", b"\3"
_NULL = b"\0"
_FALSE, _TRUE = b"\0", b"\1"
_NO_UUID = bytes(16)


def metadata(topics: Iterable[str] | None) -> bytes:
    """Return a request for all topics (None) or the named ones; it creates no topic."""
    listed = _NULL if topics is None else compact_array(_NO_UUID + compact_string(name) + NO_TAGS for name in topics)
    return listed + _FALSE + _FALSE + NO_TAGS


def configs(resources: Iterable[Tuple[int, str]], synonyms: bool, keys: Iterable[str] | None = None) -> bytes:
    """Return a request for configs of each (resource type, name): all or `keys`, optionally with their synonyms."""
    wanted = _NULL if keys is None else compact_array(map(compact_string, keys))
    listed = compact_array(
        struct.pack(">b", kind) + compact_string(name) + wanted + NO_TAGS for kind, name in resources
    )
    return listed + (_TRUE if synonyms else _FALSE) + _FALSE + NO_TAGS


def client_quotas() -> bytes:
    """Return a request for the quotas of all entities."""
    return compact_array(()) + _FALSE + NO_TAGS


def scram() -> bytes:
    """Return a request for the SCRAM credentials of all users."""
    return _NULL + NO_TAGS


def acls() -> bytes:
    """Return a request for all ACLs."""
    return _ANY + _NULL + _ANY + _NULL + _NULL + _ANY + _ANY + NO_TAGS


def cluster_acls() -> bytes:
    """Return a request for the ACLs of the cluster itself: a small answer, which shows whether a broker has any."""
    return _CLUSTER + compact_string("kafka-cluster") + _LITERAL + _NULL + _NULL + _ANY + _ANY + NO_TAGS


def client_metrics() -> bytes:
    """Return a request for the names of the subscriptions of client metrics."""
    return NO_TAGS


def delegation_tokens() -> bytes:
    """Return a request for the delegation tokens of all owners."""
    return _NULL + NO_TAGS


def no_delegation_tokens() -> bytes:
    """Return a request for the delegation tokens of no owner: it shows whether a broker has any."""
    return compact_array(()) + NO_TAGS


def ends_of_replicas(partitions: Iterable[Tuple[str, int]]) -> bytes:
    """Return a request for the end offsets of the broker's own logs of these (topic, partition)."""
    numbers: Dict[str, list] = {}
    for topic, number in partitions:
        numbers.setdefault(topic, []).append(number)
    listed = compact_array(
        compact_string(topic)
        + compact_array(struct.pack(">iiq", number, _NO_EPOCH, _LATEST) + NO_TAGS for number in wanted)
        + NO_TAGS
        for topic, wanted in numbers.items()
    )
    return struct.pack(">ib", _DEBUGGING_REPLICA, 0) + listed + NO_TAGS


# --- answers ---------------------------------------------------------------------------------------------

_READERS: Dict[Request, Any] = {}
_UNFIT = (IndexError, ValueError, struct.error)


def read(request: Request, answer: bytes) -> Dict[str, Any]:
    """Return the fields of an answer. Raises MalformedAnswer."""
    if request not in _READERS:
        _READERS[request] = struct_reader(request.fields, request.version)
    try:
        fields, end = _READERS[request](answer, 0)
    except _UNFIT as error:
        raise MalformedAnswer(request, error) from error
    _check_end(request, answer, end)
    return fields


class ConfigsReader:
    """Reads the answers of one broker to DescribeConfigs.

    A broker lists all configs of each topic in one order, and most have the same bytes as those of an earlier topic.
    An encoded config shows where it ends, so that equal bytes are an equal config: it is decoded once.
    """

    _KEPT = 8  # values of the config at one place of the list

    def __init__(self) -> None:
        self._known: Dict[int, List[Tuple[bytes, Dict[str, Any]]]] = {}

    def read(self, answer: bytes) -> List[Dict[str, Any]]:
        """Return `results`; they share configs. Raises MalformedAnswer."""
        try:
            _throttle, at = _read_throttle(answer, 0)
            count, at = read_length(answer, at)
            results = []
            for _result in range(count):
                result, at = _read_resource(answer, at)
                result["configs"], at = self._configs(answer, at)
                at = _without_tags(answer, at)
                results.append(result)
            at = _without_tags(answer, at)
        except _UNFIT as error:
            raise MalformedAnswer(DESCRIBE_CONFIGS, error) from error
        _check_end(DESCRIBE_CONFIGS, answer, at)
        return results

    def _configs(self, answer: bytes, at: int) -> Tuple[List[Dict[str, Any]], int]:
        count, at = read_length(answer, at)
        configs = []
        for number in range(count):
            known = self._known.setdefault(number, [])
            found = next((one for one in known if answer.startswith(one[0], at)), None)
            if found is None:
                config, end = _read_config(answer, at)
                found = (answer[at:end], config)
                known.insert(0, found)
                del known[self._KEPT :]
            at += len(found[0])
            configs.append(found[1])
        return configs, at


_read_throttle = field_reader(_THROTTLE, DESCRIBE_CONFIGS.version)
_read_config = struct_reader(_CONFIG, DESCRIBE_CONFIGS.version)
_resource_fields = [(field.name, field_reader(field, DESCRIBE_CONFIGS.version)) for field in _CONFIGS_OF_RESOURCE[:-1]]


def _read_resource(answer: bytes, at: int) -> Tuple[Dict[str, Any], int]:
    """Return the fields of a resource before its configs."""
    result = {}
    for name, read_field in _resource_fields:
        result[name], at = read_field(answer, at)
    return result, at


def _without_tags(answer: bytes, at: int) -> int:
    tags, at = read_unsigned_varint(answer, at)
    if tags:
        raise ValueError(f"{tags} tagged fields, expected none")
    return at


class MetadataAnswer:
    """Metadata's answer, read topic by topic. Raises MalformedAnswer.

    :ivar head: the fields except `topics`
    :ivar topics_left: how many topics are still to be read
    :ivar position: of the next topic in the answer
    """

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.head: Dict[str, Any] = {}
        position = 0
        try:
            for field in METADATA.fields[:-1]:
                self.head[field.name], position = field_reader(field, METADATA.version)(answer, position)
            self.topics_left, self.position = read_length(answer, position)
        except _UNFIT as error:
            raise MalformedAnswer(METADATA, error) from error

    def read_topic(self) -> Dict[str, Any]:
        """Return the next topic."""
        try:
            topic, self.position = _read_topic(self.answer, self.position)
        except _UNFIT as error:
            raise MalformedAnswer(METADATA, error) from error
        self.topics_left -= 1
        return topic

    def check_end(self) -> None:
        """Check that nothing follows the topics."""
        try:
            tags, position = read_unsigned_varint(self.answer, self.position)
        except _UNFIT as error:
            raise MalformedAnswer(METADATA, error) from error
        if tags:
            raise MalformedAnswer(METADATA, f"{tags} tagged fields, expected none")
        _check_end(METADATA, self.answer, position)


_read_topic = struct_reader(TOPIC_FIELDS, METADATA.version)


def read_metadata(answer: bytes) -> Tuple[Dict[str, Any], Iterator[Dict[str, Any]]]:
    """Return the fields of Metadata's answer except `topics`, and an iterator of the topics. Both raise
    MalformedAnswer."""
    metadata_answer = MetadataAnswer(answer)
    return metadata_answer.head, _topics(metadata_answer)


def _topics(answer):
    while answer.topics_left > 0:
        yield answer.read_topic()
    answer.check_end()


def _check_end(request: Request, answer: bytes, end: int) -> None:
    if end != len(answer):
        raise MalformedAnswer(request, f"{len(answer)} bytes, {end} of them read")
