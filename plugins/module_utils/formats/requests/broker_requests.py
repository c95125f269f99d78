# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the requests for a broker's metadata and read their answers. No I/O.

kafka-python has no DescribeDelegationToken, and it holds a complete answer as objects (1 kB a partition), while this
module reads Metadata topic by topic.

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

from typing import Any, Dict, Iterable, Iterator, List, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.messages import messages
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import apis
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests.apis import (
    Answer,
    MalformedAnswer,
    Request,
)

# Maximum size in bytes of an answer with all topics: about 50 bytes a partition. It cannot be requested in parts
# without the topics' names.
LARGEST_METADATA = 1 << 30

# As the replica id: the broker returns the end of its own log, leader or not (ListOffsetsRequest, KafkaApis).
_DEBUGGING_REPLICA, _CONSUMER, _LATEST = -2, -1, -1
_ANY = 1  # in each of DescribeAcls' enums: ResourceType, PatternType, AclOperation, AclPermissionType
_CLUSTER, _LITERAL = 4, 3
_CLUSTER_AUTHORIZATION_FAILED = 31

# --- the requests ------------------------------------------------------------------------------


def metadata(topics: Iterable[str] | None) -> Request:
    """Return a request for all topics (None) or the named ones; it creates no topic."""
    listed = None if topics is None else [{"name": name} for name in topics]
    return apis.METADATA.request(topics=listed, allowAutoTopicCreation=False)


def configs(resources: Iterable[Tuple[int, str]], synonyms: bool, keys: Iterable[str] | None = None) -> Request:
    """Return a request for configs of each (resource type, name): all or `keys`, optionally with their synonyms."""
    wanted = None if keys is None else list(keys)
    listed = [{"resourceType": kind, "resourceName": name, "configurationKeys": wanted} for kind, name in resources]
    return apis.DESCRIBE_CONFIGS.request(resources=listed, includeSynonyms=synonyms)


def client_quotas() -> Request:
    """Return a request for the quotas of all entities."""
    return apis.DESCRIBE_CLIENT_QUOTAS.request()


def scram() -> Request:
    """Return a request for the SCRAM credentials of all users."""
    return apis.DESCRIBE_SCRAM.request(users=None)


def acls(resource_type: int = _ANY, name: str | None = None, pattern: int = _ANY) -> Request:
    """Return a request for the ACLs of a resource, or for all."""
    return apis.DESCRIBE_ACLS.request(
        resourceTypeFilter=resource_type,
        resourceNameFilter=name,
        patternTypeFilter=pattern,
        principalFilter=None,
        hostFilter=None,
        operation=_ANY,
        permissionType=_ANY,
    )


def cluster_acls() -> Request:
    """Return a request for the ACLs of the cluster itself: a small answer, which shows whether a broker has any."""
    return acls(_CLUSTER, "kafka-cluster", _LITERAL)


def client_metrics() -> Request:
    """Return a request for the names of the subscriptions of client metrics."""
    return apis.LIST_CLIENT_METRICS.request()


def delegation_tokens() -> Request:
    """Return a request for the delegation tokens of all owners."""
    return apis.DESCRIBE_TOKENS.request(owners=None)


def no_delegation_tokens() -> Request:
    """Return a request for the delegation tokens of no owner: it shows whether a broker has any."""
    return apis.DESCRIBE_TOKENS.request(owners=[])


def ends_of_replicas(partitions: Iterable[Tuple[str, int]]) -> Request:
    """Return a request for the end offsets of the broker's own logs of these (topic, partition)."""
    return _ends(_DEBUGGING_REPLICA, partitions)


def ends_of_leaders(partitions: Iterable[Tuple[str, int]]) -> Request:
    """Return a request for the end offsets of these (topic, partition), as a consumer asks the leader of each."""
    return _ends(_CONSUMER, partitions)


def _ends(replica_id: int, partitions: Iterable[Tuple[str, int]]) -> Request:
    listed = group_by_topic((topic, {"partitionIndex": number, "timestamp": _LATEST}) for topic, number in partitions)
    return apis.LIST_OFFSETS.request(replicaId=replica_id, topics=listed)


def group_by_topic(partitions: Iterable[Tuple[str, Any]], name: str = "name") -> List[Dict[str, Any]]:
    """Return topics, each with its partitions; `name` is the field of the topic's name."""
    topics: Dict[str, list] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return [{name: topic, "partitions": listed} for topic, listed in topics.items()]


# --- answers ---------------------------------------------------------------------------------------------


class ConfigsReader:
    """Reads the answers of one broker to DescribeConfigs.

    A broker lists all configs of each topic in one order, and most have the same bytes as those of an earlier topic.
    An encoded config shows where it ends, so that equal bytes are an equal config: it is decoded once.
    """

    _KEPT = 8  # values of the config at one place of the list

    def __init__(self) -> None:
        answer = "DescribeConfigsResponse", apis.DESCRIBE_CONFIGS.newest
        self._read_head = messages.head_reader(*answer, "results")
        self._read_resource = messages.head_reader(*answer, "results", "configs")
        self._read_config = messages.reader(*answer, "results", "configs")
        self._known: Dict[int, List[Tuple[bytes, Dict[str, Any]]]] = {}

    def read(self, answer: Answer) -> List[Dict[str, Any]]:
        """Return `results`; they share configs. Raises MalformedAnswer."""
        if answer.version != apis.DESCRIBE_CONFIGS.newest:
            return answer.fields()["results"]
        data = answer.data
        try:
            _head, at = self._read_head(data, 0)
            count, at = messages.read_length(data, at)
            results = []
            for _result in range(count):
                result, at = self._read_resource(data, at)
                result["configs"], at = self._configs(data, at)
                at = _skip_tags(data, at)
                results.append(result)
            at = _skip_tags(data, at)
        except messages.UNFIT as error:
            raise MalformedAnswer(answer, error) from error
        _check_end(answer, at)
        return results

    def _configs(self, answer: bytes, at: int) -> Tuple[List[Dict[str, Any]], int]:
        count, at = messages.read_length(answer, at)
        configs = []
        for number in range(count):
            known = self._known.setdefault(number, [])
            found = next((prefix for prefix in known if answer.startswith(prefix[0], at)), None)
            if found is None:
                config, end = self._read_config(answer, at)
                found = (answer[at:end], config)
                known.insert(0, found)
                del known[self._KEPT :]
            at += len(found[0])
            configs.append(found[1])
        return configs, at


def _skip_tags(answer: bytes, at: int) -> int:
    tags, at = messages.read_unsigned_varint(answer, at)
    if tags:
        raise ValueError(f"{tags} tagged fields, expected none")
    return at


class MetadataAnswer:
    """Metadata's answer, read topic by topic. Raises MalformedAnswer.

    :ivar head: the fields before `topics`
    :ivar topics_left: how many topics are still to be read
    :ivar position: of the next topic in the answer
    """

    def __init__(self, answer: Answer) -> None:
        self.answer, self.data = answer, answer.data
        self._read_topic = messages.reader(answer.message, answer.version, "topics")
        self._read_tail = messages.tail_reader(answer.message, answer.version, "topics")
        self.head: Dict[str, Any] = {}
        try:
            self.head, position = messages.head_reader(answer.message, answer.version, "topics")(self.data, 0)
            self.topics_left, self.position = messages.read_length(self.data, position)
        except messages.UNFIT as error:
            raise MalformedAnswer(answer, error) from error

    def read_topic(self) -> Dict[str, Any]:
        """Return the next topic."""
        try:
            topic, self.position = self._read_topic(self.data, self.position)
        except messages.UNFIT as error:
            raise MalformedAnswer(self.answer, error) from error
        self.topics_left -= 1
        return topic

    def check_end(self) -> None:
        """Check that nothing but the fields of this version follows the topics."""
        try:
            _fields, position = self._read_tail(self.data, self.position)
        except messages.UNFIT as error:
            raise MalformedAnswer(self.answer, error) from error
        _check_end(self.answer, position)


def read_metadata(answer: Answer) -> Tuple[Dict[str, Any], Iterator[Dict[str, Any]]]:
    """Return the fields of Metadata's answer before `topics`, and an iterator of the topics. Both raise
    MalformedAnswer."""
    metadata_answer = MetadataAnswer(answer)
    return metadata_answer.head, _topics(metadata_answer)


def _topics(answer):
    while answer.topics_left > 0:
        yield answer.read_topic()
    answer.check_end()


def read_log_dirs(answer: Answer) -> Dict[str, Any]:
    """Return the fields of an answer to DescribeLogDirs. Before version 3 a broker lists no directory where the
    principal may not describe them: the error is then what 3 has (KafkaApis.handleDescribeLogDirsRequest)."""
    fields = answer.fields()
    if answer.version < 3 and not fields["results"]:
        fields["errorCode"] = _CLUSTER_AUTHORIZATION_FAILED
    return fields


def _check_end(answer: Answer, end: int) -> None:
    if end != len(answer.data):
        raise MalformedAnswer(answer, f"{len(answer.data)} bytes, {end} of them read")
