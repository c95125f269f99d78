# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Create, alter, remove and read metadata through the brokers: one class per kind.

A change that fails raises Refused. `read` returns {name: value} of the objects with the prefix, with values as `make`
and `alter` return them. `of_zookeeper` returns the same from the form of zk_metadata.normalise.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Callable

import kafka.errors
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafka.admin import KafkaAdminClient
from kafka.protocol.admin import AlterClientQuotasRequest, DescribeClientQuotasRequest

from canary_clients.workload.admin import RETRIABLE

PREFIX = "churn."
TIMEOUT_S = 10


class Refused(Exception):
    """A change that failed or got no response.

    `repeat`: the error is retriable; `before`: the error means that an earlier attempt without response took effect.
    """

    def __init__(self, text: str, repeat: bool, before: bool = False) -> None:
        super().__init__(text)
        self.repeat = repeat
        self.before = before


def _wait(future: Future, before: int | None = None, also: int | None = None) -> Any:
    """Return the result. `before`: the error of a repetition after a success; `also`: another retriable error."""
    try:
        return future.result(timeout=TIMEOUT_S + 5)
    except KafkaException as error:
        code = error.args[0].code()
        repeat = error.args[0].retriable() or code in RETRIABLE or code == also
        raise Refused(f"{error.args[0].name()}: {error.args[0].str()}", repeat, code == before) from None
    except TimeoutError:
        raise Refused(f"no answer within {TIMEOUT_S + 5} s", True) from None


class Topics:
    name = "topic"

    def __init__(self, client: AdminClient) -> None:
        self.client = client

    def make(self, name: str, number: int) -> int:
        _wait(
            self.client.create_topics([NewTopic(name, 1, 3)], request_timeout=TIMEOUT_S)[name],
            before=KafkaError.TOPIC_ALREADY_EXISTS,
        )
        return 1

    def alter(self, name: str, number: int) -> int:
        more = self.client.create_partitions([NewPartitions(name, 2)], request_timeout=TIMEOUT_S)[name]
        # a broker may not know the new topic yet
        _wait(more, before=KafkaError.INVALID_PARTITIONS, also=KafkaError.UNKNOWN_TOPIC_OR_PART)
        return 2

    def remove(self, name: str) -> None:
        _wait(
            self.client.delete_topics([name], request_timeout=TIMEOUT_S)[name], before=KafkaError.UNKNOWN_TOPIC_OR_PART
        )

    def read(self) -> dict[str, int]:
        topics = self.client.list_topics(timeout=TIMEOUT_S).topics.values()
        return {t.topic: len(t.partitions) for t in topics if t.topic.startswith(PREFIX) and not t.error}

    @staticmethod
    def of_zookeeper(tree: dict) -> dict[str, int]:
        return {
            name: len(topic["partitions"])
            for name, topic in tree["topics"].items()
            if name.startswith(PREFIX) and name not in tree["delete_topics"]
        }


class TopicConfigs:
    """The config retention.ms of the topics: set, changed and removed."""

    name = "config"
    KEY = "retention.ms"

    def __init__(self, client: AdminClient) -> None:
        self.client = client

    def make(self, name: str, number: int) -> str:
        return self._set(name, str(3_600_000 + number))

    def alter(self, name: str, number: int) -> str:
        return self._set(name, str(7_200_000 + number))

    def remove(self, name: str) -> None:
        self._change(name, ConfigEntry(self.KEY, None, incremental_operation=AlterConfigOpType.DELETE))

    def _set(self, name: str, value: str) -> str:
        self._change(name, ConfigEntry(self.KEY, value, incremental_operation=AlterConfigOpType.SET))
        return value

    def _change(self, name: str, entry: ConfigEntry) -> None:
        resource = ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=[entry])
        answer = self.client.incremental_alter_configs([resource], request_timeout=TIMEOUT_S)[resource]
        _wait(answer, also=KafkaError.UNKNOWN_TOPIC_OR_PART)

    def read(self) -> dict[str, str]:
        names = Topics(self.client).read()
        resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in names]
        values = {}
        described = self.client.describe_configs(resources, request_timeout=TIMEOUT_S) if resources else {}
        for resource, future in described.items():
            entry = _wait(future)[self.KEY]
            if not entry.is_default:
                values[resource.name] = entry.value
        return values

    @staticmethod
    def of_zookeeper(tree: dict) -> dict[str, str]:
        return {
            name: values[TopicConfigs.KEY]
            for name, values in tree["configs"]["topic"].items()
            if name.startswith(PREFIX) and TopicConfigs.KEY in values
        }


class Acls:
    """ACLs. An ACL cannot be altered: `alter` adds a second operation."""

    name = "acl"

    def __init__(self, client: AdminClient) -> None:
        self.client = client

    def make(self, name: str, number: int) -> list[str]:
        self._add(name, AclOperation.READ)
        return ["READ"]

    def alter(self, name: str, number: int) -> list[str]:
        self._add(name, AclOperation.WRITE)
        return ["READ", "WRITE"]

    def remove(self, name: str) -> None:
        wanted = self._filter(name, ResourcePatternType.LITERAL)
        _wait(self.client.delete_acls([wanted], request_timeout=TIMEOUT_S)[wanted])

    def _add(self, name: str, operation: AclOperation) -> None:
        pattern, allow = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
        acl = AclBinding(ResourceType.TOPIC, name, pattern, "User:churn", "*", operation, allow)
        _wait(self.client.create_acls([acl], request_timeout=TIMEOUT_S)[acl])

    @staticmethod
    def _filter(name: str | None, pattern: ResourcePatternType) -> AclBindingFilter:
        return AclBindingFilter(
            ResourceType.TOPIC, name, pattern, "User:churn", None, AclOperation.ANY, AclPermissionType.ANY
        )

    def read(self) -> dict[str, list[str]]:
        answer = self.client.describe_acls(self._filter(None, ResourcePatternType.ANY), request_timeout=TIMEOUT_S)
        return _operations((acl.name, acl.operation.name) for acl in _wait(answer))

    @staticmethod
    def of_zookeeper(tree: dict) -> dict[str, list[str]]:
        ours = (acl for acl in tree["acls"] if acl["principal"] == "User:churn")
        return _operations((acl["resource_name"], acl["operation"].upper()) for acl in ours)


def _operations(pairs: Any) -> dict[str, list[str]]:
    operations: dict[str, list[str]] = {}
    for name, operation in pairs:
        operations[name] = sorted([*operations.get(name, []), operation])
    return operations


class ScramUsers:
    name = "scram"

    def __init__(self, client: AdminClient) -> None:
        self.client = client

    def make(self, name: str, number: int) -> int:
        return self._upsert(name, 4096)

    def alter(self, name: str, number: int) -> int:
        return self._upsert(name, 8192)

    def remove(self, name: str) -> None:
        # not found: an attempt without response removed it
        self._change(
            name, UserScramCredentialDeletion(name, ScramMechanism.SCRAM_SHA_256), KafkaError.RESOURCE_NOT_FOUND
        )

    def _upsert(self, name: str, iterations: int) -> int:
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, iterations)
        self._change(name, UserScramCredentialUpsertion(name, info, b"this user never logs in"))
        return iterations

    def _change(self, name: str, change: Any, before: int | None = None) -> None:
        answers = self.client.alter_user_scram_credentials([change], request_timeout=TIMEOUT_S)
        _wait(answers[name], before=before)

    def read(self) -> dict[str, int]:
        users = _wait(self.client.describe_user_scram_credentials(request_timeout=TIMEOUT_S))
        return {
            user: credentials.scram_credential_infos[0].iterations
            for user, credentials in users.items()
            if user.startswith(PREFIX)
        }

    @staticmethod
    def of_zookeeper(tree: dict) -> dict[str, int]:
        return {
            user: credentials["SCRAM-SHA-256"]["iterations"]
            for user, credentials in tree["scram"].items()
            if user.startswith(PREFIX)
        }


class Quotas:
    """Quotas, with kafka-python's protocol classes: confluent-kafka has no call for quotas."""

    name = "quota"
    KEY = "producer_byte_rate"

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = {**settings, "request_timeout_ms": TIMEOUT_S * 1000, "client_id": "churn-quotas"}
        self._client: KafkaAdminClient | None = None

    def make(self, name: str, number: int) -> float:
        return self._set(name, 1_000_000.0 + number)

    def alter(self, name: str, number: int) -> float:
        return self._set(name, 2_000_000.0 + number)

    def remove(self, name: str) -> None:
        self._alter(name, (self.KEY, 0.0, True))

    def _set(self, name: str, value: float) -> float:
        self._alter(name, (self.KEY, value, False))
        return value

    def _alter(self, name: str, operation: tuple) -> None:
        request = AlterClientQuotasRequest(entries=[([("user", name)], [operation])], validate_only=False)
        for entry in self._send(request).entries:
            self._check(entry.error_code, entry.error_message)

    def read(self) -> dict[str, float]:
        any_name = 2  # DescribeClientQuotasRequest: 0 exact, 1 default, 2 any specified name
        answer = self._send(DescribeClientQuotasRequest(components=[("user", any_name, None)], strict=True))
        self._check(answer.error_code, answer.error_message)
        return {
            entry.entity[0].entity_name: value.value
            for entry in answer.entries or []
            for value in entry.values
            if (entry.entity[0].entity_name or "").startswith(PREFIX) and value.key == self.KEY
        }

    @staticmethod
    def of_zookeeper(tree: dict) -> dict[str, float]:
        return {
            quota["entity"]["user"]: quota["quotas"][Quotas.KEY]
            for quota in tree["quotas"]
            if list(quota["entity"]) == ["user"] and (quota["entity"]["user"] or "").startswith(PREFIX)
        }

    def _send(self, request: Any) -> Any:
        try:
            if self._client is None:
                self._client = KafkaAdminClient(**self._settings)
            manager = self._client._manager
            return manager.run(manager.send, request)
        except (kafka.errors.KafkaError, OSError, TimeoutError) as error:
            self._drop()
            raise Refused(f"{type(error).__name__}: {error}", True) from None

    def _check(self, code: int, text: str | None) -> None:
        if code:
            error = kafka.errors.for_code(code)
            raise Refused(f"{error.__name__}: {text}", bool(error.retriable) or code in RETRIABLE)

    def _drop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            try:
                client.close()
            except Exception:  # the client is already broken
                return


def kinds(librdkafka: dict[str, Any], kafka_python: dict[str, Any]) -> list[Any]:
    """Return one object of each kind, in the order of creation; they share one client of each library."""
    client = AdminClient({**librdkafka, "client.id": "churn"})
    return [Topics(client), TopicConfigs(client), Acls(client), Quotas(kafka_python), ScramUsers(client)]


KINDS: dict[str, Callable] = {kind.name: kind for kind in (Topics, TopicConfigs, Acls, Quotas, ScramUsers)}
