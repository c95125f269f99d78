# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Idempotent acks=all producers: long-lived ones and ones that live seconds."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from canary_clients.ledger import position
from canary_clients.workload.context import Client, Context

TICK_S = 0.04
# Messages go out in bursts that share a partition and so a request. A partition has at most two bursts under way,
# enough for a retry to put order at risk; a producer has at most four, because librdkafka, which may have five requests
# under way to a broker, spins on the sixth while the broker is slow, and after a roll all leaders may be on one broker.
# Bursts that a broker has held for a while are not counted, so that one that is down does not silence the partitions of
# the others. A partition that waited catches up in longer bursts.
BURST = 8
LONGEST_BURST = 64
UNDER_WAY = 4
HELD_S = 2.0
CATCH_UP_S = 300
SHORT_KEYS_EACH = 4
MAX_BLOCK_S = 60  # Java's max.block.ms
SILENT_S = 5.0  # without any report, though messages are under way
UNKNOWN = (KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)


class Keys:
    """One producer instance's keys, each in one partition, in an order in which neighbours share a partition."""

    def __init__(
        self,
        context: Context,
        kind: str,
        topic: str,
        per_partition: int,
        first_key: int = 0,
        numbers: list[int] | None = None,
    ) -> None:
        indexes = context.indexes(topic)
        self.topic = topic
        self.instance = context.next_instance()
        self.per_partition = per_partition
        self.slots = list(range(len(indexes))) if numbers is None else numbers
        self.numbers = [number for number in self.slots for dummy in range(per_partition)]
        self.keys = [first_key + number * per_partition + n for number in self.slots for n in range(per_partition)]
        self.indexes = [indexes[number] for number in self.numbers]
        self.first = context.ledger.new_streams(kind, self.instance, self.keys, self.indexes)
        self._sequence = [0] * len(self.keys)
        self._node_restart = 0
        self._restart_of = [0] * len(self.slots)

    def next(self) -> tuple[int, int]:
        """Which key's turn it is, over all partitions, and its sequence number."""
        node_restart = self._node_restart
        self._node_restart = (node_restart + 1) % len(self.keys)
        return self._numbered(node_restart)

    def next_of(self, slot: int) -> tuple[int, int]:
        """Which key's turn it is within one partition, and its sequence number."""
        node_restart = self._restart_of[slot]
        self._restart_of[slot] = (node_restart + 1) % self.per_partition
        return self._numbered(slot * self.per_partition + node_restart)

    def _numbered(self, node_restart: int) -> tuple[int, int]:
        self._sequence[node_restart] += 1
        return node_restart, self._sequence[node_restart]


class Sender:
    """An idempotent producer and its keys."""

    def __init__(self, context: Context, where: str, keys: Keys, **settings: Any) -> None:
        self.context = context
        self.where = where
        self.keys = keys
        self.unconfirmed = 0
        self._heard_at = time.monotonic()  # of a message, by its report; of none while none is under way
        self.unconfirmed_of: dict[int, int] = dict.fromkeys(keys.indexes, 0)
        self.producer = Producer(
            context.client(
                where,
                enable_idempotence=True,
                linger_ms=context.config.linger_ms,
                message_timeout_ms=int(context.config.delivery_timeout_s * 1000),
                **settings,
            )
        )

    def send(self, slot: int | None = None) -> int:
        """Hand one message to the client; returns its ledger id. BufferError when the client's queue is full."""
        keys = self.keys
        node_restart, sequence = keys.next() if slot is None else keys.next_of(slot)
        ledger_id, at = self.context.ledger.sent(keys.first + node_restart)
        if not self.unconfirmed:
            self._heard_at = time.monotonic()
        self.unconfirmed += 1
        self.unconfirmed_of[keys.indexes[node_restart]] += 1
        self._produce(ledger_id, node_restart, sequence, at)
        return ledger_id

    def _produce(self, ledger_id: int, node_restart: int, sequence: int, at: int) -> None:
        keys = self.keys
        key = keys.keys[node_restart]
        deadline = time.monotonic() + MAX_BLOCK_S
        try:
            while not self._handed_over(
                keys.topic,
                self.context.message(ledger_id, keys.instance, key, sequence, at),
                b"key-%06d" % key,
                keys.numbers[node_restart],
                partial(self._delivered, ledger_id, keys.indexes[node_restart]),
                last=time.monotonic() > deadline,
            ):
                self._ask_again(keys.topic)
        except (BufferError, KafkaException):
            self.unconfirmed -= 1
            self.unconfirmed_of[keys.indexes[node_restart]] -= 1
            raise

    def _ask_again(self, topic: str) -> None:
        """Let the client hear of its topic anew: by itself librdkafka would after minutes, Java's asks every 100 ms."""
        self.producer.poll(0.1)
        with contextlib.suppress(KafkaException):
            self.producer.list_topics(topic, timeout=2)

    def _handed_over(self, *message: Any, last: bool) -> bool:
        """Whether the client took the message. A topic that it takes for unknown is waited for, as Java's send() does:
        a broker that has just started does not know it before the controller has told it."""
        try:
            self.producer.produce(*message)
            return True
        except KafkaException as e:
            if last or e.args[0].code() not in UNKNOWN:
                raise
            self.context.ledger.note(self.where, e.args[0].name(), f"sending waits: {e.args[0].str()}")
            return False

    def _ask_when_silent(self) -> None:
        """A topic that one answer left without partitions takes the messages under way with it, until librdkafka hears
        of the topic anew."""
        if self.unconfirmed and time.monotonic() - self._heard_at > SILENT_S:
            self._ask_again(self.keys.topic)
            self._heard_at = time.monotonic()

    def _delivered(self, ledger_id: int, index: int, error: KafkaError | None, message: Message) -> None:
        self._heard_at = time.monotonic()
        self.unconfirmed -= 1
        self.unconfirmed_of[index] -= 1
        if error is None:
            self.confirmed(ledger_id, position(index, message.offset()))
        else:
            self.failed(ledger_id, error)

    def confirmed(self, ledger_id: int, packed_position: int) -> None:
        self.context.ledger.acked(ledger_id, packed_position)

    def failed(self, ledger_id: int, error: KafkaError) -> None:
        # A broker that has just started lists no other one, and librdkafka ends what is under way to whoever is not
        # listed; Java's producer goes on with it. Whether these messages arrive is not known: they are indeterminate.
        severity = "note" if error.code() == KafkaError._DESTROY else "error"
        self.context.ledger.error(self.where, error.name(), f"delivery failed: {error.str()}", severity)

    def flush(self) -> None:
        """Wait for every delivery report; bounded, because each message has its own timeout."""
        deadline = time.monotonic() + self.context.config.delivery_timeout_s + 10
        while self.unconfirmed and time.monotonic() < deadline:
            self.producer.poll(0.1)
        if self.unconfirmed:
            self.context.ledger.error(self.where, "NO_REPORT", f"{self.unconfirmed} messages without delivery report")

    def paced(self, rate: float, until: float | None = None) -> None:
        """Send `rate` messages a second until `until` (monotonic) or the run stops."""
        slots = [
            _Slot(number, self.keys.indexes[number * self.keys.per_partition]) for number in range(len(self.keys.slots))
        ]
        each = rate / len(slots)
        burst = min(BURST, self.keys.per_partition)
        start = time.monotonic()
        # so that the partitions take turns
        for slot in slots:
            slot.sent = -round(burst * (1 - (slot.number + 1) / len(slots)))
        while not self.context.stopping.is_set():
            now = time.monotonic()
            if until is not None and now >= until:
                break
            try:
                # The one that is furthest behind first: none starves when only a few may be under way
                for slot in sorted(slots, key=lambda slot: slot.sent):
                    if sum(self._under_way(other, now) for other in slots) >= UNDER_WAY:
                        break
                    self._burst(slot, now, int((now - start) * each), burst, round(each * CATCH_UP_S))
            except BufferError:
                self.context.ledger.note(self.where, "QUEUE_FULL", "the client's queue is full: sending pauses")
            self._ask_when_silent()
            rest = TICK_S - (time.monotonic() - now)
            while rest > 0:
                self.producer.poll(rest)
                rest = TICK_S - (time.monotonic() - now)

    def _under_way(self, slot: _Slot, now: float) -> int:
        """How many of a partition's bursts are on their way: 0, 1 or 2; none that the broker has held for long."""
        unconfirmed = self.unconfirmed_of[slot.index]
        if not unconfirmed or now - slot.sent_at > HELD_S:
            return 0
        return 2 if unconfirmed > slot.last_burst else 1

    def _burst(self, slot: _Slot, now: float, target: int, burst: int, catch_up: int) -> None:
        due = target - slot.sent
        if due < burst or self.unconfirmed_of[slot.index] > slot.last_burst:
            return
        if due > catch_up:
            slot.sent = target - catch_up
        slot.last_burst = min(due - due % burst, LONGEST_BURST)
        slot.sent_at = now
        for dummy in range(slot.last_burst):
            self.send(slot.number)
            slot.sent += 1


@dataclass
class _Slot:
    """One partition of a producer and how far it has come."""

    number: int
    index: int
    sent: int = 0
    last_burst: int = 0
    sent_at: float = 0.0


class LongLived(Client):
    """One producer through the whole run."""

    def __init__(self, context: Context, name: str, keys: Keys, rate: float) -> None:
        super().__init__(context, name)
        self.rate = rate
        self.sender = Sender(context, name, keys)

    def work(self) -> None:
        self.sender.paced(self.rate)
        self.sender.flush()


class ShortLived(Client):
    """One producer after another: each asks for a producer id of its own (InitProducerId)."""

    def __init__(self, context: Context, name: str, topic: str, rate: float, first_key: int) -> None:
        super().__init__(context, name)
        self.topic = topic
        self.rate = rate
        self.first_key = first_key

    def work(self) -> None:
        while not self.context.stopping.is_set():
            sender = Sender(
                self.context, self.where, Keys(self.context, "short", self.topic, SHORT_KEYS_EACH, self.first_key)
            )
            sender.paced(self.rate, time.monotonic() + self.context.config.short_lived_s)
            sender.flush()


def send_fences(context: Context, topic: str, key: int) -> dict[int, int]:
    """The last message of each partition: whoever received it has received all that went before.

    Returns {partition index: ledger id}; those that the cluster did not acknowledge are errors in the ledger.
    """
    keys = Keys(context, "fence", topic, 1, key)
    sender = Sender(context, f"fence {topic}", keys)
    fences = {index: sender.send() for index in keys.indexes}
    sender.flush()
    return fences
