# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Kafka tells of topics, offsets and groups, through its admin API."""

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
    TopicPartition as Place,
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
    """Kafka did not answer, or refused; says which request, and what Kafka said. `code`: Kafka's, None without one."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class Cluster:
    """A cluster, asked by one client; every request is bounded by `seconds`."""

    def __init__(self, bootstrap_servers: str, security: Security, seconds: float = 60) -> None:
        self._servers, self._seconds = bootstrap_servers, seconds
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0, **security.librdkafka()})

    def cluster_id(self) -> str:
        """The cluster's id."""
        return self._one("cluster", self._admin.describe_cluster(request_timeout=self._seconds)).cluster_id

    def partitions_of_all(self) -> Dict[str, List[int]]:
        """Every topic with its partitions. Raises ClusterError."""
        try:
            metadata = self._admin.list_topics(timeout=self._seconds)
        except KafkaException as error:
            raise self._error("the list of topics", error.args[0]) from error
        return {name: sorted(topic.partitions) for name, topic in metadata.topics.items()}

    def states(self, chosen: Mapping[str, Sequence[int]], isolation: str) -> List[PartitionState]:
        """The state of each partition of the topics, without those that were deleted meanwhile. Raises ClusterError.

        Compacted ones end at the last stable offset: what a transaction that may yet be aborted wrote is no key's
        newest record.
        """
        ids = self._ids(list(chosen))
        configs = self._configs(ResourceType.TOPIC, list(ids))
        places = [(topic, number) for topic, numbers in chosen.items() if topic in ids for number in numbers]
        starts = self.log_starts(places)
        stable = self._offsets(places, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)
        ends = self.high_watermarks(places)
        found = []
        for topic, number in places:
            config = configs[topic]
            policies = config["cleanup.policy"].split(",")
            committed = "compact" in policies or isolation == plan.READ_COMMITTED
            found.append(
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
        return found

    def log_starts(self, places: Iterable[TopicPartition]) -> Dict[TopicPartition, int]:
        """The first offset of each partition. Raises ClusterError."""
        return self._offsets(places, OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED)

    def high_watermarks(self, places: Iterable[TopicPartition]) -> Dict[TopicPartition, int]:
        """The offset after the last that consumers can read. Raises ClusterError."""
        return self._offsets(places, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED)

    def groups(self) -> Dict[str, Group]:
        """Every consumer group with what it has committed. Raises ClusterError."""
        listed = self._one("the list of groups", self._admin.list_consumer_groups(request_timeout=self._seconds))
        if listed.errors:
            raise self._error("the list of groups", listed.errors[0])
        states = {group.group_id: group.state.name for group in listed.valid}
        offsets: Dict[str, Dict[TopicPartition, int]] = {}
        names = iter(sorted(states))
        while batch := list(itertools.islice(names, _GROUPS_AT_ONCE)):
            asked = {
                name: self._admin.list_consumer_group_offsets(
                    [ConsumerGroupTopicPartitions(name)], request_timeout=self._seconds
                )[name]
                for name in batch
            }
            for name, future in asked.items():
                places = self._one(f"offsets of group {name}", future).topic_partitions
                for place in places:
                    if place.error:
                        raise self._error(f"offset of group {name} in {place.topic}-{place.partition}", place.error)
                offsets[name] = {(place.topic, place.partition): place.offset for place in places if place.offset >= 0}
        return by_name(offsets, states)

    def offsets_retention_ms(self) -> int:
        """The shortest offsets.retention.minutes of the brokers, in ms. Raises ClusterError."""
        brokers = self._one("cluster", self._admin.describe_cluster(request_timeout=self._seconds)).nodes
        name = "offsets.retention.minutes"
        messages = [self._configs(ResourceType.BROKER, [str(one.id)])[str(one.id)].get(name) for one in brokers]
        return min(int(value or _DEFAULT_OFFSETS_RETENTION_MINUTES) for value in messages) * 60_000

    def _ids(self, topics: List[str]) -> Dict[str, str]:
        if not topics:
            return {}
        futures = self._admin.describe_topics(TopicCollection(topics), request_timeout=self._seconds)
        ids = {}
        for name, future in futures.items():
            try:
                ids[name] = str(self._one(f"topic {name}", future).topic_id)
            except ClusterError as error:
                if error.code != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise
        return ids

    def _configs(self, kind: ResourceType, names: List[str]) -> Dict[str, Dict[str, str]]:
        """The configs of each name, in one request (of brokers, Kafka tells one a request)."""
        if not names:
            return {}
        asked = self._admin.describe_configs(
            [ConfigResource(kind, name) for name in names], request_timeout=self._seconds
        )
        return {
            resource.name: {
                entry.name: entry.value for entry in self._one(f"configs of {resource.name}", future).values()
            }
            for resource, future in asked.items()
        }

    def _offsets(self, places, spec: OffsetSpec, isolation: IsolationLevel) -> Dict[TopicPartition, int]:
        asked = {Place(*place): spec for place in places}
        if not asked:
            return {}
        futures = self._admin.list_offsets(asked, isolation_level=isolation, request_timeout=self._seconds)
        return {
            (place.topic, place.partition): self._one(f"offsets of {place.topic}-{place.partition}", future).offset
            for place, future in futures.items()
        }

    def _one(self, what: str, future: Any) -> Any:
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
    """The topics that a pattern (shell style) of `topics` chooses and none of `exclude` takes out.

    Never an internal one: Spark's source assigns itself none of their partitions (ConsumerStrategy,
    retrieveAllPartitions), and what groups stored there is compared as such.
    """
    return {
        name: numbers
        for name, numbers in sorted(all_partitions.items())
        if name not in INTERNAL
        and any(fnmatch.fnmatchcase(name, one) for one in topics)
        and not any(fnmatch.fnmatchcase(name, one) for one in exclude)
    }


def now_ms() -> int:
    """This host's clock, epoch milliseconds."""
    return int(time.time() * 1000)
