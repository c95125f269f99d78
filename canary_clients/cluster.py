# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Admin calls around a run: create the topics, read their offsets, delete the groups afterwards."""

from __future__ import annotations

import time
from typing import Any, Callable

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec

from canary_clients.config import Config
from canary_clients.errors import ClientsError
from canary_clients.workload.context import COMPACT, KEYED, LOG, TXN

CALL_TIMEOUT_S = 15


class Cluster:
    """Admin calls that wait; every wait ends at `deadline` (monotonic) with a ClientsError."""

    def __init__(self, config: Config, settings: dict[str, Any], deadline: float) -> None:
        self.config = config
        self.deadline = deadline
        self.last_error = ""
        self.refused = ""
        self.settings = {**settings, "error_cb": self._on_error, "logger": LOG}
        self.admin = AdminClient(self.settings)

    def _on_error(self, error: KafkaError) -> None:
        self.last_error = error.str()
        if error.code() == KafkaError._AUTHENTICATION:
            self.refused = error.str()

    def _until(self, what: str, attempt: Callable[[], Any]) -> Any:
        """Return the first result of `attempt` that is not None. Raise ClientsError at the deadline."""
        seen = ""
        began = time.monotonic()
        while True:
            try:
                result = attempt()
                if result is not None:
                    return result
            except KafkaException as e:
                seen = f"{e.args[0].name()}: {e.args[0].str()}"
            except TimeoutError:
                seen = f"no answer within {CALL_TIMEOUT_S + 5} s"
            self.admin.poll(0.2)
            if self.refused:
                raise ClientsError(f"{what}: authentication failed: {self.refused}")
            if time.monotonic() > self.deadline:
                raise ClientsError(
                    f"{what}: no success after {time.monotonic() - began:.0f} s "
                    f"(bootstrap_servers {self.config.bootstrap_servers}; "
                    f"last: {'; '.join(filter(None, (seen, self.last_error))) or 'no answer'})"
                )

    def ensure_topics(self, prefix: str) -> dict[tuple[str, int], int]:
        """Create missing topics; return {(topic, partition number): partition index}, indexes from 1."""
        wanted = {f"{prefix}.{role}": spec for role, spec in self._topics().items()}
        there = self._until("listing the topics", lambda: self.admin.list_topics(timeout=5).topics)
        missing = [topic for topic in wanted if topic not in there]
        if missing:
            self._create([NewTopic(topic, **wanted[topic]) for topic in missing])
        topics = self._until("waiting for a leader of every partition", lambda: self._led(wanted))
        policies = self._until("reading the configs of the canary topics", lambda: self._policies(list(wanted)))
        for topic, policy in policies.items():
            expected = wanted[topic]["config"].get("cleanup.policy", "delete")
            # the verdict relies on the policy, also of topics that existed before
            if policy != expected:
                raise ClientsError(
                    f"topic {topic} has cleanup.policy={policy}, the clients need {expected}: "
                    "alter it, or choose another topic_prefix"
                )
        partitions = [(topic, number) for topic in wanted for number in sorted(topics[topic].partitions)]
        return {partition: index for index, partition in enumerate(partitions, 1)}

    def _topics(self) -> dict[str, dict[str, Any]]:
        config = self.config
        common = {
            "min.insync.replicas": str(config.min_insync_replicas),
            "retention.ms": str(round(config.retention_hours * 3_600_000)),
            **{key: str(value) for key, value in config.topic_configs.items()},
        }
        # small segments roll soon, so the cleaner has work during the migration
        compact = {**common, "cleanup.policy": "compact", "segment.ms": "60000", "min.cleanable.dirty.ratio": "0.1"}
        replicas = {"replication_factor": config.replication_factor}
        return {
            KEYED: {"num_partitions": config.partitions, **replicas, "config": common},
            TXN: {"num_partitions": config.transactional_partitions, **replicas, "config": common},
            COMPACT: {"num_partitions": config.compacted_partitions, **replicas, "config": compact},
        }

    def _create(self, topics: list[NewTopic]) -> None:
        for topic, future in self.admin.create_topics(topics, request_timeout=CALL_TIMEOUT_S).items():
            try:
                future.result(timeout=CALL_TIMEOUT_S + 5)
            except KafkaException as e:
                error = e.args[0]
                if error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
                    continue
                raise ClientsError(
                    f"topic {topic} does not exist and could not be created ({error.str()}). Grant Create on topics "
                    f"with the prefix {self.config.topic_prefix!r}, fix replication_factor, or create it by hand"
                ) from None

    def _led(self, wanted: dict[str, Any]) -> dict[str, Any] | None:
        topics = self.admin.list_topics(timeout=5).topics
        self.last_error = ""
        for topic in wanted:
            if topic not in topics or not topics[topic].partitions:
                self.last_error = f"topic {topic} is not in the metadata"
                return None
            for number, partition in topics[topic].partitions.items():
                if partition.leader < 0:
                    self.last_error = f"{topic}[{number}] has no leader"
                    return None
        return topics

    def _policies(self, topics: list[str]) -> dict[str, str]:
        resources = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in topics]
        answers = self.admin.describe_configs(resources, request_timeout=CALL_TIMEOUT_S)
        return {r.name: f.result(timeout=CALL_TIMEOUT_S + 5)["cleanup.policy"].value for r, f in answers.items()}

    def offsets(self, partitions: list[tuple[str, int]], latest: bool) -> dict[tuple[str, int], int]:
        """Return the first or the next offset of each partition."""
        spec = OffsetSpec.latest() if latest else OffsetSpec.earliest()

        def read() -> dict[tuple[str, int], int]:
            request = {TopicPartition(topic, number): spec for topic, number in partitions}
            # A new client for each attempt: librdkafka 2.16.0 keeps the first leader epoch that it saw, and gets
            # FENCED_LEADER_EPOCH without end after a leader's restart.
            admin = AdminClient(self.settings)
            answers = admin.list_offsets(request, request_timeout=CALL_TIMEOUT_S)
            return {(p.topic, p.partition): f.result(timeout=CALL_TIMEOUT_S + 5).offset for p, f in answers.items()}

        return self._until("reading the offsets of the canary topics", read)

    def delete_groups(self, ids: list[str]) -> list[str]:
        """Delete the groups; return those that could not be deleted, with the reason."""
        left = []
        for group, future in self.admin.delete_consumer_groups(ids, request_timeout=CALL_TIMEOUT_S).items():
            try:
                future.result(timeout=CALL_TIMEOUT_S + 5)
            except Exception as e:
                left.append(f"{group}: {e}")
        return left
