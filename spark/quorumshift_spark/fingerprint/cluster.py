# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads topics, offsets and consumer groups through Kafka's admin API."""

from __future__ import annotations

import fnmatch
import itertools
import time
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, Dict, Iterable, List, Mapping, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.security import Security
from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
)
from confluent_kafka import (
    TopicPartition as ClientTopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType

from quorumshift_spark.fingerprint import plan
from quorumshift_spark.fingerprint.groups import Group, by_name
from quorumshift_spark.fingerprint.plan import PartitionState, TopicPartition

_GROUPS_AT_ONCE = 50
_DEFAULT_OFFSETS_RETENTION_MINUTES = "10080"


INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state")
"""Kafka's own topics (o.a.k.common.internals.Topic.INTERNAL_TOPICS)."""


class ClusterError(Exception):
    """A request failed. The message names the request and Kafka's error. `code`: Kafka's error code, or None."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class Cluster:
    """A cluster behind one admin client. `seconds`: the bound of each request."""

    def __init__(self, bootstrap_servers: str, security: Security, seconds: float = 60) -> None:
        self._servers, self._seconds = bootstrap_servers, seconds
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0, **security.librdkafka()})

    def cluster_id(self) -> str:
        """Return the cluster's id. Raises ClusterError."""
        return self._result("cluster", self._admin.describe_cluster(request_timeout=self._seconds)).cluster_id

    def partitions_of_all(self) -> Dict[str, List[int]]:
        """Return every topic with its partitions. Raises ClusterError."""
        try:
            metadata = self._admin.list_topics(timeout=self._seconds)
        except KafkaException as error:
            raise self._error("the list of topics", error.args[0]) from error
        return {name: sorted(topic.partitions) for name, topic in metadata.topics.items()}

    def states(self, chosen: Mapping[str, Sequence[int]], isolation: str) -> List[PartitionState]:
        """Return the state of each partition of the topics that still exist. Raises ClusterError.

        Compacted partitions end at the last stable offset: a record of an open transaction may yet be aborted, so it
        is not the newest of its key.
        """
        ids = self._ids(list(chosen))
        configs = self._configs(ResourceType.TOPIC, list(ids))
        tps = [(topic, number) for topic, numbers in chosen.items() if topic in ids for number in numbers]
        starts = self.log_starts(tps)
        stable = self._offsets(tps, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)
        ends = self.high_watermarks(tps)
        states = []
        for topic, number in tps:
            config = configs[topic]
            policies = config["cleanup.policy"].split(",")
            committed = "compact" in policies or isolation == plan.READ_COMMITTED
            states.append(
                PartitionState(
                    topic,
                    number,
                    ids[topic],
                    starts[topic, number],
                    (stable if committed else ends)[topic, number],
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

    def offsets_retention_ms(self) -> int:
        """Return the shortest offsets.retention.minutes of the brokers, in ms. Raises ClusterError."""
        brokers = self._result("cluster", self._admin.describe_cluster(request_timeout=self._seconds)).nodes
        name = "offsets.retention.minutes"
        ids = [str(broker.id) for broker in brokers]
        minutes = [self._configs(ResourceType.BROKER, [broker_id])[broker_id].get(name) for broker_id in ids]
        return min(int(value or _DEFAULT_OFFSETS_RETENTION_MINUTES) for value in minutes) * 60_000

    def _ids(self, topics: List[str]) -> Dict[str, str]:
        if not topics:
            return {}
        futures = self._admin.describe_topics(TopicCollection(topics), request_timeout=self._seconds)
        ids = {}
        for name, future in futures.items():
            try:
                ids[name] = str(self._result(f"topic {name}", future).topic_id)
            except ClusterError as error:
                if error.code != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise
        return ids

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
        return {
            (tp.topic, tp.partition): self._result(f"offsets of {tp.topic}-{tp.partition}", future).offset
            for tp, future in futures.items()
        }

    def _result(self, what: str, future: Any) -> Any:
        try:
            return future.result(timeout=self._seconds + 5)
        except KafkaException as error:
            raise self._error(what, error.args[0]) from error
        except FutureTimeout as error:
            raise ClusterError(f"{self._servers}: {what}: no answer within {self._seconds:g} s") from error

    def _error(self, what: str, error: KafkaError) -> ClusterError:
        return ClusterError(f"{self._servers}: {what}: {error.str()}", error.code())


def chosen(
    all_partitions: Mapping[str, List[int]], topics: Sequence[str], exclude: Sequence[str]
) -> Dict[str, List[int]]:
    """Return the topics that a shell pattern of `topics` matches and none of `exclude`.

    Internal topics are left out: Spark's source does not read them (ConsumerStrategy, retrieveAllPartitions), and
    committed offsets are compared separately.
    """
    return {
        name: numbers
        for name, numbers in sorted(all_partitions.items())
        if name not in INTERNAL
        and any(fnmatch.fnmatchcase(name, pattern) for pattern in topics)
        and not any(fnmatch.fnmatchcase(name, pattern) for pattern in exclude)
    }


def now_ms() -> int:
    """Return the time of this host, epoch milliseconds."""
    return int(time.time() * 1000)
