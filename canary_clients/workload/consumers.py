# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Consumer groups with committed offsets; some members restart as part of the traffic."""

from __future__ import annotations

import threading
import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from canary_clients.ledger import MESSAGE_IDENTITY, RECEIVED, position
from canary_clients.workload.context import Client, Context

BATCH = 1000
POLL_S = 0.05
REJOIN_PAUSE_S = 1.0

# errors that the Java consumer handles inside poll(), unseen by the application
TRANSIENT = {
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
    KafkaError._TIMED_OUT,
    KafkaError._WAIT_COORD,
    KafkaError._MAX_POLL_EXCEEDED,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.NOT_COORDINATOR,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NETWORK_EXCEPTION,
    # from a broker that has just started, until the controller has sent it the metadata
    KafkaError.UNKNOWN_TOPIC_OR_PART,
}


def group_id(context: Context, group: str) -> str:
    return f"{context.config.topic_prefix}.{group}.{context.run_id:016x}"


class Group:
    """A consumer group: the state that its members share."""

    def __init__(self, context: Context, name: str, topics: list[str], isolation: str) -> None:
        self.context = context
        self.name = name
        self.id = group_id(context, name)
        self.topics = topics
        self.isolation = isolation
        self.indexes = {index for topic in topics for index in context.indexes(topic)}
        self.quiet = set(self.indexes)
        self.committed: dict[tuple[str, int], int] = {}
        self.foreign = 0
        self._late: set[int] = set()
        self._lock = threading.Lock()

    def settings(self, where: str) -> dict[str, Any]:
        return self.context.client(
            where,
            group_id=self.id,
            isolation_level=self.isolation,
            enable_auto_commit=False,
            enable_auto_offset_store=False,
            # the offsets were committed before the first message, so a reset means that one was lost
            auto_offset_reset="error",
            fetch_wait_max_ms=100,
            fetch_min_bytes=2048,
            fetch_error_backoff_ms=100,
            # A broker that has just started in a ZooKeeper mode may answer that no topic exists. librdkafka then
            # drops the partitions and asks again after this time, by default 5 minutes.
            topic_metadata_refresh_interval_ms=5000,
        )

    def commit_start(self, offsets: dict[tuple[str, int], int]) -> None:
        """Commit the run's first offsets, before any member joins. Raise KafkaException."""
        consumer = Consumer(self.settings(f"group {self.name}"))
        try:
            own = {(topic, number): offset for (topic, number), offset in offsets.items() if topic in self.topics}
            consumer.commit(offsets=[TopicPartition(t, n, o) for (t, n), o in own.items()], asynchronous=False)
            self.committed.update(own)
        finally:
            consumer.close()

    def take(self, messages: list[Message], next_offsets: dict[tuple[str, int], int]) -> None:
        """Enter a batch in the ledger and put the offsets to commit into `next_offsets`."""
        now = self.context.clock.ms()
        partitions = self.context.partitions
        rows = bytearray()
        late = self._late if self.context.stopping.is_set() else None
        for message in messages:
            partition = (message.topic(), message.partition())
            offset = message.offset()
            value = message.value()
            next_offsets[partition] = offset + 1
            run_id, ledger_id = MESSAGE_IDENTITY.unpack_from(value) if value and len(value) >= 12 else (None, 0)
            if run_id != self.context.run_id:
                self.foreign += 1
                continue
            index = partitions[partition]
            rows += RECEIVED.pack(ledger_id, now, position(index, offset))
            if self.quiet:
                self.quiet.discard(index)
            if late is not None:
                late.add(ledger_id)
        self.context.ledger.received(self.name, bytes(rows))

    def awaits(self, ledger_ids: set[int]) -> int:
        """Return how many of these messages, sent after the stop request, have not arrived yet."""
        return len(ledger_ids - self._late)

    def on_committed(self, where: str, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        if error is None:
            with self._lock:
                for p in partitions:
                    if p.error is None and p.offset >= 0:
                        self.committed[p.topic, p.partition] = p.offset
        elif error.code() != KafkaError._NO_OFFSET:
            severity = "note" if error.code() in TRANSIENT or error.retriable() else "error"
            self.context.ledger.error(where, error.name(), f"offset commit: {error.str()}", severity)

    def check_committed(self, where: str, current: list[TopicPartition]) -> None:
        """Enter an error for each committed offset that is lower than the group's last commit."""
        with self._lock:
            for p in current:
                known = self.committed.get((p.topic, p.partition))
                if p.error is None and known is not None and p.offset < known:
                    now_at = p.offset if p.offset >= 0 else "nothing"
                    self.context.ledger.error(
                        where,
                        "COMMITTED_OFFSET_WENT_BACK",
                        f"group {self.id}, {p.topic}[{p.partition}]: committed {known}, the cluster has {now_at}",
                    )


class Member(Client):
    """A member of a group; with `restart_every` (seconds) it leaves and rejoins as a new member."""

    def __init__(self, group: Group, name: str, restart_every: float | None = None) -> None:
        super().__init__(group.context, name)
        self.group = group
        self.restart_every = restart_every
        self.done = threading.Event()
        self.restarts = 0
        self._next_offsets: dict[tuple[str, int], int] = {}

    def work(self) -> None:
        while not self.done.is_set():
            self._live(time.monotonic() + self.restart_every if self.restart_every else None)
            if not self.done.is_set():
                self.restarts += 1
                self.done.wait(REJOIN_PAUSE_S)

    def _live(self, until: float | None) -> None:
        group = self.group
        consumer = Consumer({**group.settings(self.where), "on_commit": self._on_commit})
        try:
            consumer.subscribe(
                group.topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
            )
            commit_at = time.monotonic() + self.context.config.commit_interval_s
            is_usable = True
            # no member restarts during the drain, which would have to wait for a rebalance
            while (
                is_usable
                and not self.done.is_set()
                and (until is None or self.context.stopping.is_set() or time.monotonic() < until)
            ):
                messages = consumer.consume(BATCH, POLL_S)
                good = [message for message in messages if message.error() is None]
                if len(good) < len(messages):
                    for message in messages:
                        if message.error() is not None and self._on_message_error(message):
                            is_usable = False
                if good:
                    group.take(good, self._next_offsets)
                if time.monotonic() >= commit_at:
                    self._commit(consumer, asynchronous=True)
                    commit_at = time.monotonic() + self.context.config.commit_interval_s
            self._commit(consumer, asynchronous=False)
        finally:
            consumer.close()

    def _commit(self, consumer: Consumer, asynchronous: bool) -> None:
        offsets = [TopicPartition(topic, number, offset) for (topic, number), offset in self._next_offsets.items()]
        self._next_offsets.clear()
        if not offsets:
            return
        try:
            committed = consumer.commit(offsets=offsets, asynchronous=asynchronous)
            if not asynchronous:
                self.group.on_committed(self.where, None, committed)
        except KafkaException as e:
            self.group.on_committed(self.where, e.args[0], [])

    def _on_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        self.group.on_committed(self.where, error, partitions)

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if not partitions:
            return
        try:
            self.group.check_committed(self.where, consumer.committed(partitions, timeout=10))
        except KafkaException as e:
            self.context.ledger.note(self.where, e.args[0].name(), f"reading committed offsets: {e.args[0].str()}")

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._commit(consumer, asynchronous=False)

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._next_offsets.clear()
        self.context.ledger.note(self.where, "ASSIGNMENT_LOST", "the group rebalanced without this member")

    def _on_message_error(self, message: Message) -> bool:
        """Enter an error in the ledger; return whether the member needs a new consumer.

        librdkafka stops reading a partition whose truncation it reports, and rejects a seek. The audit shows whether
        the log was truncated, since librdkafka reports some truncations that did not happen. It asks a new leader where
        the epoch of its position ended (KIP-320). A fetch and a second metadata update may move the position before the
        answer arrives. librdkafka compares the answer with the new position (rd_kafka_toppar_leader_update,
        rd_kafka_toppar_handle_OffsetForLeaderEpoch); the Java consumer drops such an answer.
        """
        error = message.error()
        where = f"{message.topic()}[{message.partition()}]" if message.topic() else ""
        if self.context.config.audit and reports_truncation(error):
            self.context.ledger.note(self.where, "LOG_TRUNCATION", f"{where}: the audit decides: {error.str()}")
            return True
        severity = "note" if error.code() in TRANSIENT or error.retriable() else "error"
        self.context.ledger.error(self.where, error.name(), error.str() + (f" at {where}" if where else ""), severity)
        return False


def reports_truncation(error: KafkaError) -> bool:
    """Return whether librdkafka reports a truncated log.

    With auto.offset.reset=error the code is the same for each cause. The text names the cause (rd_kafka_offset_reset).
    """
    return error.code() == KafkaError._AUTO_OFFSET_RESET and KafkaError(KafkaError._LOG_TRUNCATION).str() in error.str()
