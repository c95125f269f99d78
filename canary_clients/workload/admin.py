# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A loop of admin changes, as operators and applications make them during a migration.

Each change is repeated while its error is retriable (the controller moves, a response is lost). Its outcome and
duration go into the ledger. Some topics are kept; at the end the cluster must hold exactly these. Quotas are left out,
since the client library has no call for them.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Callable

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from canary_clients.ledger import TEXT_LIMIT
from canary_clients.workload.context import Client, Context

CREATE_TOPIC = "create topic"
CALL_TIMEOUT_S = 15
PAUSE_S = 0.25
READ_BACK_S = 60

RETRIABLE = {
    KafkaError._TRANSPORT,
    # librdkafka drops a broker that has left the metadata, and the requests in flight to it
    KafkaError._DESTROY_BROKER,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError._WAIT_COORD,
    KafkaError.NOT_CONTROLLER,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.THROTTLING_QUOTA_EXCEEDED,
    # during a restart fewer brokers are alive than the topic needs
    KafkaError.INVALID_REPLICATION_FACTOR,
    # UNKNOWN_SERVER_ERROR: a controller that has just started responds with it, until it has loaded the ACLs, to every
    # principal that is no super user (StandardAuthorizerData.authorize: AuthorizerNotReadyException has no error code).
    # A broker may still send to that controller (NodeToControllerRequestThread keeps the address until a request
    # fails). The request changed nothing. If the error lasts, the change fails all the same.
    KafkaError.UNKNOWN,
}
# Errors without a response: the request may still take effect, even after its repetition. A broker that forwards it to
# an unreachable controller holds it for request.timeout.ms, then sends it on (NodeToControllerRequestThread).
UNANSWERED = {
    KafkaError._TRANSPORT,
    KafkaError._DESTROY_BROKER,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NETWORK_EXCEPTION,
}
DENIED = {
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.SECURITY_DISABLED,
}


@dataclass
class Kept:
    """A topic that must exist at the end, with its config, ACL and SCRAM user."""

    topic: str
    retention_ms: str
    acl: AclBinding | None = None
    user: str | None = None


@dataclass
class Readback:
    """How the cluster differs from what was kept."""

    expected: int = 0
    missing: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    differ: list[str] = field(default_factory=list)
    # topics created again after their deletion, by an earlier request that had got no response
    late: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not (self.missing or self.unexpected or self.differ)


class AdminLoop(Client):
    def __init__(self, context: Context, name: str = "admin") -> None:
        super().__init__(context, name)
        self.settings = context.config.admin
        self.client = AdminClient(context.client(name))
        self.prefix = f"{context.config.topic_prefix}.admin.{context.run_id:016x}."
        self.kept: list[Kept] = []
        self.skipped: dict[str, str] = {}
        self.finished = threading.Event()
        # objects whose operation failed: their state is unknown, so they are not compared
        self._unsure: set[str] = set()
        self._done_once: set[str] = set()
        self._unanswered: set[tuple[str, str]] = set()  # operation, subject
        # Topics whose creation got no response at first. If such a topic comes back after its deletion under another
        # id, the first request created it; under its old id, it did not.
        self._ids: dict[str, str] = {}
        self._number = 0

    def work(self) -> None:
        while not self.context.stopping.is_set():
            began = time.monotonic()
            self._number += 1
            self._cycle()
            self.context.stopping.wait(max(0.0, self.settings.interval_s - (time.monotonic() - began)))
        self.finished.set()

    def _cycle(self) -> None:
        item = Kept(f"{self.prefix}{self._number}", str(3_600_000 + self._number))
        if not self._create_topic(item.topic):
            return
        if not self._alter_config(item.topic, item.retention_ms):
            self._unsure.add(item.topic)
        if (CREATE_TOPIC, item.topic) in self._unanswered:
            self._ids.update(self._topic_ids([item.topic]))
        if self.settings.acls:
            item.acl = self._create_acl(item.topic)
        if self.settings.scram_users:
            item.user = self._upsert_user()
        self.kept.append(item)
        if self._number % self.settings.keep_every != 0:
            self._remove(item)
        elif len(self.kept) > self.settings.keep_at_most:
            self._remove(self.kept[0])

    def _remove(self, item: Kept) -> None:
        self.kept.remove(item)
        if item.acl is not None:
            self._delete_acl(item.topic)
        if item.user is not None:
            self._delete_user(item.user)
        self._delete_topic(item.topic)

    def _create_topic(self, topic: str) -> bool:
        new = NewTopic(topic, 2, self.context.config.replication_factor)

        def create() -> Future:
            return self.client.create_topics([new], request_timeout=CALL_TIMEOUT_S)[topic]

        # no other client uses the name: if it exists, this request created it, repeated by librdkafka itself
        return self._do(CREATE_TOPIC, topic, create, done=KafkaError.TOPIC_ALREADY_EXISTS)

    def _delete_topic(self, topic: str) -> bool:
        def delete() -> Future:
            return self.client.delete_topics([topic], request_timeout=CALL_TIMEOUT_S)[topic]

        # a repetition may find the topic deleted
        return self._do("delete topic", topic, delete, done_before=KafkaError.UNKNOWN_TOPIC_OR_PART)

    def _alter_config(self, topic: str, retention_ms: str) -> bool:
        entry = ConfigEntry("retention.ms", retention_ms, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])

        def alter() -> Future:
            return self.client.incremental_alter_configs([resource], request_timeout=CALL_TIMEOUT_S)[resource]

        # a broker may not know the new topic yet
        return self._do("alter config", topic, alter, also_retriable=KafkaError.UNKNOWN_TOPIC_OR_PART)

    def _topic_ids(self, topics: list[str]) -> dict[str, str]:
        """Return the ids of the topics that have one."""
        if not topics:
            return {}
        described = self.client.describe_topics(TopicCollection(topics), request_timeout=CALL_TIMEOUT_S)
        ids = {}
        for topic, future in described.items():
            try:
                topic_id = future.result(timeout=CALL_TIMEOUT_S + 5).topic_id
                # zero: no id, or none yet
                if topic_id.get_most_significant_bits() or topic_id.get_least_significant_bits():
                    ids[topic] = str(topic_id)
            except Exception as e:  # without an id, a topic that comes back counts as unexpected
                self.context.ledger.note(self.where, "describe topic", f"{type(e).__name__}: {e}")
        return ids

    def _create_acl(self, topic: str) -> AclBinding | None:
        acl = AclBinding(
            ResourceType.TOPIC,
            topic,
            ResourcePatternType.LITERAL,
            f"User:{self.context.config.topic_prefix}-{self._number}",
            "*",
            AclOperation.READ,
            AclPermissionType.ALLOW,
        )

        def create() -> Future:
            return self.client.create_acls([acl], request_timeout=CALL_TIMEOUT_S)[acl]

        return acl if self._do("create acl", topic, create) else None

    def _acl_filter(self, topic: str | None) -> AclBindingFilter:
        pattern = ResourcePatternType.ANY if topic is None else ResourcePatternType.LITERAL
        return AclBindingFilter(ResourceType.TOPIC, topic, pattern, None, None, AclOperation.ANY, AclPermissionType.ANY)

    def _delete_acl(self, topic: str) -> bool:
        wanted = self._acl_filter(topic)

        def delete() -> Future:
            return self.client.delete_acls([wanted], request_timeout=CALL_TIMEOUT_S)[wanted]

        return self._do("delete acl", topic, delete)

    def _upsert_user(self) -> str | None:
        user = f"{self.prefix}{self._number}"
        change = UserScramCredentialUpsertion(
            user, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), b"this user never logs in"
        )

        def upsert() -> Future:
            return self.client.alter_user_scram_credentials([change], request_timeout=CALL_TIMEOUT_S)[user]

        return user if self._do("upsert scram user", user, upsert) else None

    def _delete_user(self, user: str) -> bool:
        change = UserScramCredentialDeletion(user, ScramMechanism.SCRAM_SHA_256)

        def delete() -> Future:
            return self.client.alter_user_scram_credentials([change], request_timeout=CALL_TIMEOUT_S)[user]

        return self._do("delete scram user", user, delete)

    def _do(
        self,
        operation: str,
        subject: str,
        call: Callable[[], Future],
        done: int | None = None,
        done_before: int | None = None,
        also_retriable: int | None = None,
    ) -> bool:
        """Make one change, repeat it while its error is retriable, return whether it succeeded.

        `done`: an error that means success; `done_before`: an error that means success of a repetition.
        """
        if operation in self.skipped:
            return False
        began, start = time.monotonic(), self.context.clock.ms()
        deadline = began + self.settings.operation_timeout_s
        retries = 0
        outcome, error, code = "ok", None, None
        while True:
            try:
                call().result(timeout=CALL_TIMEOUT_S + 5)
                break
            except KafkaException as e:
                code, error = e.args[0].code(), error_text(e.args[0])
            except Exception as e:
                code, error = KafkaError._TIMED_OUT, f"{type(e).__name__}: {e}"
            if code is not None and (code == done or (retries and code == done_before)):
                break
            # denied from the start: the operator's choice; denied after a success: a lost ACL
            if code in DENIED and operation not in self._done_once:
                self.skipped[operation] = error
                outcome = "skipped"
                break
            if (code not in RETRIABLE and code != also_retriable) or time.monotonic() > deadline:
                outcome = "failed"
                self.context.ledger.error(self.where, operation, f"{error} (after {retries} retries)")
                self._unsure.add(subject)
                break
            if code in UNANSWERED:
                self._unanswered.add((operation, subject))
            retries += 1
            time.sleep(PAUSE_S)
        self.context.ledger.admin(
            {
                "t": start,
                "operation": operation,
                "subject": subject,
                "outcome": outcome,
                "retries": retries,
                "ms": round((time.monotonic() - began) * 1000),
                **({"error": error} if error else {}),
            }
        )
        if outcome == "ok":
            self._done_once.add(operation)
        return outcome == "ok"

    def read_back(self) -> dict[str, Any]:
        """Compare the cluster with what was kept, until they agree or READ_BACK_S have passed."""
        deadline = time.monotonic() + READ_BACK_S
        while True:
            try:
                readback = self._compare()
                if readback.clean or time.monotonic() > deadline:
                    return {**vars(readback), "error": None}
                error = None
            except KafkaException as e:
                error = str(e.args[0])
            except Exception as e:
                error = f"{type(e).__name__}: {e}"
            if error is not None and time.monotonic() > deadline:
                return {**vars(Readback()), "error": error}
            time.sleep(0.5)

    def _compare(self) -> Readback:
        kept = {item.topic: item for item in self.kept if item.topic not in self._unsure}
        result = Readback(expected=len(kept))
        there = {t for t in self.client.list_topics(timeout=CALL_TIMEOUT_S).topics if t.startswith(self.prefix)}
        result.missing += [f"topic {t}" for t in sorted(set(kept) - there)]
        others = sorted(there - set(kept) - self._unsure)
        again = self._topic_ids([t for t in others if t in self._ids])
        late = [t for t in others if t in again and again[t] != self._ids[t]]
        result.late += [f"topic {t}" for t in late]
        result.unexpected += [f"topic {t}" for t in others if t not in late]
        resources = [ConfigResource(ConfigResource.Type.TOPIC, t) for t in kept if t in there]
        if resources:
            for resource, future in self.client.describe_configs(resources, request_timeout=CALL_TIMEOUT_S).items():
                value = future.result(timeout=CALL_TIMEOUT_S + 5)["retention.ms"].value
                if value != kept[resource.name].retention_ms:
                    result.differ.append(
                        f"topic {resource.name}: retention.ms {value}, set to {kept[resource.name].retention_ms}"
                    )
        if self.settings.acls and "create acl" not in self.skipped:
            self._compare_acls(kept, result)
        if self.settings.scram_users and "upsert scram user" not in self.skipped:
            self._compare_users(kept, result)
        return result

    def _compare_acls(self, kept: dict[str, Kept], result: Readback) -> None:
        answer = self.client.describe_acls(self._acl_filter(None), request_timeout=CALL_TIMEOUT_S)
        there = {acl for acl in answer.result(timeout=CALL_TIMEOUT_S + 5) if acl.name.startswith(self.prefix)}
        wanted = {item.acl for item in kept.values() if item.acl is not None}
        result.missing += sorted(f"acl {_acl_text(acl)}" for acl in wanted - there)
        result.unexpected += sorted(f"acl {_acl_text(acl)}" for acl in there - wanted if acl.name not in self._unsure)

    def _compare_users(self, kept: dict[str, Kept], result: Readback) -> None:
        described = self.client.describe_user_scram_credentials(request_timeout=CALL_TIMEOUT_S)
        there = {user for user in described.result(timeout=CALL_TIMEOUT_S + 5) if user.startswith(self.prefix)}
        wanted = {item.user for item in kept.values() if item.user is not None}
        result.missing += [f"scram user {user}" for user in sorted(wanted - there)]
        result.unexpected += [f"scram user {user}" for user in sorted(there - wanted - self._unsure)]

    def clean_up(self) -> None:
        """Remove what was kept; a failure is an error in the ledger."""
        for item in list(self.kept):
            self._remove(item)


def _acl_text(acl: AclBinding) -> str:
    return f"{acl.principal} {acl.permission_type.name} {acl.operation.name} on topic {acl.name}"


def error_text(error: KafkaError) -> str:
    """Return an error as one line.

    Only the name, if Kafka's text is a dump of the denied request (AuthHelper.authorizeClusterOperation).
    """
    text = error.str()
    return error.name() if text.startswith("Request Request(") else f"{error.name()}: {text}"[:TEXT_LIMIT]
