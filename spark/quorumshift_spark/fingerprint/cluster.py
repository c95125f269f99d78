# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads topics, offsets, consumer groups and transactions from Kafka.

Metadata and transactions by the collection's own client: confluent-kafka returns no leader epochs and no transactions.
"""

from __future__ import annotations

import fnmatch
import itertools
import time
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import (
    admin_requests,
    apis,
    broker_requests,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests.apis import Answer, Request
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import topics as topic_probe
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort, parse_host_port
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import oauth_token
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.kafka_wire import KafkaConnection
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import WireError
from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
)
from confluent_kafka import (
    TopicPartition as ClientTopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType

from quorumshift_spark.fingerprint.coordinators import (
    INTERNAL,
    OFFSETS_TOPIC,
    TRANSACTIONS_TOPIC,
    Group,
    Transaction,
    by_name,
)
from quorumshift_spark.fingerprint.fetch import Leader
from quorumshift_spark.fingerprint.plan import PartitionState, TopicPartition

_GROUPS_AT_ONCE = 50
_RETENTIONS = {  # config of brokers: (unit in ms, Kafka's default)
    "offsets.retention.minutes": (60_000, 10_080),
    "transactional.id.expiration.ms": (1, 604_800_000),
}
_TRANSACTIONAL_ID_NOT_FOUND = 105
_TRANSIENT = (14, 15, 16)  # COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR
_LARGEST = 1 << 30


class ClusterError(Exception):
    """A request failed. The message names the request and Kafka's error. `code`: Kafka's error code, or None."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class Topic(NamedTuple):
    """A topic's id, and the leader of each partition; None without one."""

    id: str
    leaders: Dict[int, Leader | None]


class Metadata(NamedTuple):
    """What a broker's metadata says: the cluster's id, the brokers' addresses, and all topics that are readable."""

    cluster_id: str
    brokers: Dict[int, HostPort]
    topics: Dict[str, Topic]

    def leaders(self) -> Dict[TopicPartition, Leader]:
        """Return the leaders of all partitions that have one."""
        return {
            (name, number): leader
            for name, topic in self.topics.items()
            for number, leader in topic.leaders.items()
            if leader
        }


class Cluster:
    """A cluster behind its bootstrap servers. `seconds`: the bound of each request."""

    def __init__(self, bootstrap_servers: str, security: Security, seconds: float = 60) -> None:
        self._servers, self._security, self._seconds = bootstrap_servers, security, seconds
        login = oauth_token.librdkafka(security, seconds)
        self._settings = {"bootstrap.servers": bootstrap_servers, "log_level": 0, **login}
        self._admin = AdminClient(self._settings)
        self._replicas: Dict[HostPort, Dict[TopicPartition, int]] = {}

    def metadata(self) -> Metadata:
        """Return the metadata of the first bootstrap server that answers. Raises ClusterError."""
        errors = []
        for server in self._servers.split(","):
            try:
                address = parse_host_port(server)
                with KafkaConnection(address, self._security, self._seconds) as connection:
                    answer = self._ask(connection, broker_requests.metadata(None))
                head, topics = broker_requests.read_metadata(answer)
                return _metadata(head, topics)
            except (WireError, ValueError) as error:
                errors.append(str(error))
        raise ClusterError("; ".join(errors))

    def hidden(self, found: Metadata) -> List[str]:
        """Return the topics that exist, but that metadata leaves out: the principal has no DESCRIBE on them.

        Raises ClusterError, also if the principal lacks DESCRIBE on the cluster, without which brokers leave out topics
        and groups silently, or READ on a coordinators' topic, whose tombstones show what was deleted.
        """
        self._replicas = {address: self._stored(address) for address in found.brokers.values()}
        stored = {topic for replicas in self._replicas.values() for topic, _number in replicas}
        coordinators = stored & {OFFSETS_TOPIC, TRANSACTIONS_TOPIC}
        addresses = [parse_host_port(server) for server in self._servers.split(",")]
        names = sorted({*(stored - set(found.topics)), *coordinators})
        rights = topic_probe.read_rights(addresses, self._security, names, self._seconds)
        if "error" in rights:
            raise ClusterError(f"{self._servers}: the principal's permissions: {rights['error']} (QS-VERIFY-003)")
        for topic in sorted(coordinators):
            if "READ" not in rights["topics"].get(topic, ["READ"]):
                why = "only its tombstones show whether a committed offset or a transactional id was deleted or lost"
                raise self._denied("Read", topic, f"--topic {topic}", why)
        return sorted(name for name, allowed in rights["topics"].items() if not allowed)

    def size(self, tp: TopicPartition, leader: Leader | None) -> int:
        """Return the bytes of a partition's log at its leader, as of `hidden`; 0 if it was not there."""
        return self._replicas.get(leader.address, {}).get(tp, 0) if leader else 0

    def _stored(self, address: HostPort) -> Dict[TopicPartition, int]:
        """Return the replicas that a broker has, with their sizes in bytes. Raises ClusterError."""
        try:
            with KafkaConnection(address, self._security, self._seconds) as connection:
                listed = broker_requests.read_log_dirs(self._ask(connection, admin_requests.log_dirs(None)))
        except (WireError, ValueError) as error:
            raise ClusterError(f"{address}: the list of replicas: {error} (QS-VERIFY-003)") from error
        if listed["errorCode"] == KafkaError.CLUSTER_AUTHORIZATION_FAILED:
            why = "without it, brokers leave out topics and groups that are then not compared"
            raise self._denied("Describe", "the cluster", "--cluster", why)
        _check(listed["errorCode"], f"{address}: the list of replicas")
        return {
            (topic["name"], partition["partitionIndex"]): partition["partitionSize"]
            for log_dir in listed["results"]
            for topic in log_dir["topics"]
            for partition in topic["partitions"]
        }

    def states(self, found: Metadata, chosen: Iterable[str]) -> List[PartitionState]:
        """Return the state of each partition of the topics. Raises ClusterError.

        Compacted partitions end at the last stable offset: a record of an open transaction may yet be aborted, so it
        is not the newest of its key.
        """
        configs = self._configs(ResourceType.TOPIC, list(chosen))
        tps = [(topic, number) for topic in configs for number in found.topics[topic].leaders]
        starts = self.log_starts(tps)
        stable = self._offsets(
            [tp for tp in tps if "compact" in configs[tp[0]]["cleanup.policy"]],
            OffsetSpec.latest(),
            IsolationLevel.READ_COMMITTED,
        )
        ends = {**self.high_watermarks(tps), **stable}
        states = []
        for topic, number in tps:
            config, leader = configs[topic], found.topics[topic].leaders[number]
            policies = config["cleanup.policy"].split(",")
            states.append(
                PartitionState(
                    topic,
                    number,
                    found.topics[topic].id,
                    leader.epoch if leader else -1,
                    starts[topic, number],
                    ends[topic, number],
                    "compact" in policies,
                    "delete" in policies,
                    int(config["retention.ms"]),
                    int(config["retention.bytes"]),
                    int(config["delete.retention.ms"]),
                )
            )
        return states

    def log_starts(self, tps: Iterable[TopicPartition]) -> Dict[TopicPartition, int]:
        """Return the first offset of each partition. Raises ClusterError."""
        return self._offsets(tps, OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED)

    def high_watermarks(self, tps: Iterable[TopicPartition]) -> Dict[TopicPartition, int]:
        """Return the offset after the last that consumers can read. Raises ClusterError."""
        return self._offsets(tps, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED)

    def groups(self) -> Dict[str, Group]:
        """Return every consumer group with its committed offsets. Raises ClusterError."""
        listed = self._result("the list of groups", self._admin.list_consumer_groups(request_timeout=self._seconds))
        if listed.errors:
            raise self._error("the list of groups", listed.errors[0])
        states = {group.group_id: group.state.name for group in listed.valid}
        offsets: Dict[str, Dict[TopicPartition, int]] = {}
        names = iter(sorted(states))
        while batch := list(itertools.islice(names, _GROUPS_AT_ONCE)):
            futures = {
                name: self._admin.list_consumer_group_offsets(
                    [ConsumerGroupTopicPartitions(name)], request_timeout=self._seconds
                )[name]
                for name in batch
            }
            for name, future in futures.items():
                committed = self._result(f"offsets of group {name}", future).topic_partitions
                for tp in committed:
                    if tp.error:
                        raise self._error(f"offset of group {name} in {tp.topic}-{tp.partition}", tp.error)
                offsets[name] = {(tp.topic, tp.partition): tp.offset for tp in committed if tp.offset >= 0}
        return by_name(offsets, states)

    def transactions(self, found: Metadata) -> Dict[str, Transaction]:
        """Return every transactional id, from the brokers that coordinate them. Raises ClusterError.

        A coordinator that is loading its transactions is asked again.
        """
        end = time.monotonic() + self._seconds
        while True:
            try:
                parts = [self._transactions_of(address) for address in found.brokers.values()]
                return {name: transaction for part in parts for name, transaction in part.items()}
            except ClusterError as error:
                if error.code not in _TRANSIENT or time.monotonic() > end:
                    raise
            time.sleep(0.5)

    def _transactions_of(self, address: HostPort) -> Dict[str, Transaction]:
        found: Dict[str, Transaction] = {}
        try:
            with KafkaConnection(address, self._security, self._seconds) as connection:
                listed = self._ask(connection, apis.LIST_TRANSACTIONS.request()).fields()
                _check(listed["errorCode"], f"{address}: the list of transactions")
                names = [state["transactionalId"] for state in listed["transactionStates"]]
                for first in range(0, len(names), 1000):
                    request = apis.DESCRIBE_TRANSACTIONS.request(transactionalIds=names[first : first + 1000])
                    for state in self._ask(connection, request).fields()["transactionStates"]:
                        if state["errorCode"] == _TRANSACTIONAL_ID_NOT_FOUND:  # expired since
                            continue
                        _check(state["errorCode"], f"{address}: transactional id {state['transactionalId']}")
                        found[state["transactionalId"]] = Transaction(state["producerId"], state["producerEpoch"])
        except (WireError, ValueError) as error:
            raise ClusterError(f"{address}: the list of transactions: {error} (QS-VERIFY-003)") from error
        return found

    def _ask(self, connection: KafkaConnection, request: Request) -> Answer:
        return connection.request(request, self._seconds, _LARGEST)

    def retentions(self, found: Metadata) -> Dict[str, int]:
        """Return the shortest value of the brokers, in ms, of offsets.retention.minutes and
        transactional.id.expiration.ms. Raises ClusterError."""
        configs = [self._configs(ResourceType.BROKER, [str(broker)])[str(broker)] for broker in found.brokers]
        return {
            name: min(int(config.get(name) or default) for config in configs) * unit
            for name, (unit, default) in _RETENTIONS.items()
        }

    def _configs(self, kind: ResourceType, names: List[str]) -> Dict[str, Dict[str, str]]:
        """Return the configs of each name, with one request (for brokers, Kafka takes one name a request)."""
        if not names:
            return {}
        futures = self._admin.describe_configs(
            [ConfigResource(kind, name) for name in names], request_timeout=self._seconds
        )
        return {
            resource.name: {
                entry.name: entry.value for entry in self._result(f"configs of {resource.name}", future).values()
            }
            for resource, future in futures.items()
        }

    def _offsets(self, tps, spec: OffsetSpec, isolation: IsolationLevel) -> Dict[TopicPartition, int]:
        specs = {ClientTopicPartition(*tp): spec for tp in tps}
        if not specs:
            return {}
        futures = self._admin.list_offsets(specs, isolation_level=isolation, request_timeout=self._seconds)
        try:
            return {
                (tp.topic, tp.partition): self._result(f"offsets of {tp.topic}-{tp.partition}", future).offset
                for tp, future in futures.items()
            }
        except ClusterError:
            # librdkafka sends the leaders' epochs that it has known for minutes; a new client asks for them
            self._admin = AdminClient(self._settings)
            raise

    def _result(self, what: str, future: Any) -> Any:
        try:
            return future.result(timeout=self._seconds + 5)
        except KafkaException as error:
            raise self._error(what, error.args[0]) from error
        except FutureTimeout as error:
            raise ClusterError(
                f"{self._servers}: {what}: no answer within {self._seconds:g} s (QS-VERIFY-003)"
            ) from error

    def _denied(self, operation: str, what: str, resource: str, why: str) -> ClusterError:
        """Return the error for a permission that the principal lacks, with the remedy."""
        return ClusterError(
            f"{self._servers}: the principal of quorumshift_client has no {operation} on {what}: {why}. Allow it and "
            f"run the playbook again: kafka-acls.sh --bootstrap-server {self._servers} --add --allow-principal User:… "
            f"--operation {operation} {resource}"
        )

    def _error(self, what: str, error: KafkaError) -> ClusterError:
        return ClusterError(f"{self._servers}: {what}: {error.str()}", error.code())


def _metadata(head: Mapping[str, Any], topics: Iterable[Mapping[str, Any]]) -> Metadata:
    brokers = {broker["nodeId"]: HostPort(broker["host"], broker["port"]) for broker in head["brokers"]}
    found = {}
    for topic in topics:
        _check(topic["errorCode"], f"topic {topic['name']}")
        leaders = {}
        for partition in sorted(topic["partitions"], key=lambda partition: partition["partitionIndex"]):
            address = brokers.get(partition["leaderId"])
            leaders[partition["partitionIndex"]] = Leader(address, partition["leaderEpoch"]) if address else None
        found[topic["name"]] = Topic(topic["topicId"], leaders)
    return Metadata(head["clusterId"] or "", brokers, found)


def _check(code: int, what: str) -> None:
    if code:
        raise ClusterError(f"{what}: {KafkaError(code).str()}", code)


def chosen(names: Iterable[str], topics: Sequence[str], exclude: Sequence[str]) -> List[str]:
    """Return the topics, sorted, that a shell pattern of `topics` matches and none of `exclude`.

    Internal topics are left out: their offsets and transactions are compared separately.
    """
    return sorted(
        name
        for name in names
        if name not in INTERNAL
        and any(fnmatch.fnmatchcase(name, pattern) for pattern in topics)
        and not any(fnmatch.fnmatchcase(name, pattern) for pattern in exclude)
    )


def now_ms() -> int:
    """Return the time of this host, epoch milliseconds."""
    return int(time.time() * 1000)
