# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Idempotent acks=all producers: long-lived ones and ones that live seconds."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from witness.ledger import position
from witness.workload.context import Client, Context

TICK_S = 0.04
BURST = 4


class Keys:
    """One producer instance's keys: the next message's stream, key and sequence, in bursts that share a partition."""

    def __init__(self, context: Context, kind: str, topic: str, count: int, first_key: int = 0) -> None:
        indexes = context.indexes(topic)
        self.topic = topic
        self.instance = context.next_instance()
        self.keys = [first_key + n for n in range(count)]
        # neighbours share a partition, and every partition has its turn when there are at least as many keys
        burst = min(BURST, max(1, count // len(indexes)))
        self.numbers = [(n // burst) % len(indexes) for n in range(count)]
        self.indexes = [indexes[number] for number in self.numbers]
        self.first = context.ledger.new_streams(kind, self.instance, self.keys, self.indexes)
        self._sequence = [0] * count
        self._turn = 0

    def next(self) -> tuple[int, int]:
        """Which key's turn it is, and its sequence number."""
        turn = self._turn
        self._turn = (turn + 1) % len(self.keys)
        self._sequence[turn] += 1
        return turn, self._sequence[turn]


class Sender:
    """An idempotent producer and its keys."""

    def __init__(self, context: Context, where: str, keys: Keys, **settings: Any) -> None:
        self.context = context
        self.where = where
        self.keys = keys
        self.unconfirmed = 0
        self.producer = Producer(
            context.client(
                where,
                enable_idempotence=True,
                linger_ms=context.config.linger_ms,
                message_timeout_ms=int(context.config.delivery_timeout_s * 1000),
                **settings,
            )
        )

    def send(self) -> int:
        """Hand one message to the client; returns its ledger id. BufferError when the client's queue is full."""
        keys = self.keys
        turn, sequence = keys.next()
        ledger_id, at = self.context.ledger.sent(keys.first + turn)
        self.unconfirmed += 1
        self._produce(ledger_id, turn, sequence, at)
        return ledger_id

    def _produce(self, ledger_id: int, turn: int, sequence: int, at: int) -> None:
        keys = self.keys
        key = keys.keys[turn]
        try:
            self.producer.produce(
                keys.topic,
                self.context.message(ledger_id, keys.instance, key, sequence, at),
                b"key-%06d" % key,
                keys.numbers[turn],
                partial(self._delivered, ledger_id, keys.indexes[turn]),
            )
        except BufferError:
            self.unconfirmed -= 1
            raise

    def _delivered(self, ledger_id: int, index: int, error: KafkaError | None, message: Message) -> None:
        self.unconfirmed -= 1
        if error is None:
            self.confirmed(ledger_id, position(index, message.offset()))
        else:
            self.failed(ledger_id, error)

    def confirmed(self, ledger_id: int, packed_position: int) -> None:
        self.context.ledger.acked(ledger_id, packed_position)

    def failed(self, ledger_id: int, error: KafkaError) -> None:
        self.context.ledger.error(self.where, error.name(), f"delivery failed: {error.str()}")

    def flush(self) -> None:
        """Wait for every delivery report; bounded, because each message has its own timeout."""
        deadline = time.monotonic() + self.context.config.delivery_timeout_s + 10
        while self.unconfirmed and time.monotonic() < deadline:
            self.producer.poll(0.1)
        if self.unconfirmed:
            self.context.ledger.error(self.where, "NO_REPORT", f"{self.unconfirmed} messages without delivery report")

    def paced(self, rate: float, until: float | None = None) -> None:
        """Send `rate` messages a second until `until` (monotonic) or the run stops."""
        start, sent = time.monotonic(), 0
        while not self.context.stopping.is_set():
            now = time.monotonic()
            if until is not None and now >= until:
                break
            due = int((now - start) * rate) - sent
            if due > rate:
                # the process itself was held up: go on from here instead of catching up in one burst
                start, sent, due = now, 0, 0
            try:
                for _ in range(due):
                    self.send()
                    sent += 1
            except BufferError:
                self.context.ledger.note(self.where, "QUEUE_FULL", "the client's queue is full: sending pauses")
                start, sent = time.monotonic(), 0
                self.producer.poll(0.2)
            rest = TICK_S - (time.monotonic() - now)
            while rest > 0:
                self.producer.poll(rest)
                rest = TICK_S - (time.monotonic() - now)


class LongLived(Client):
    """One producer through the whole run."""

    def __init__(
        self, context: Context, name: str, kind: str, topic: str, count: int, rate: float, first_key: int
    ) -> None:
        super().__init__(context, name)
        self.rate = rate
        self.sender = Sender(context, name, Keys(context, kind, topic, count, first_key))

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
        count = len(self.context.indexes(self.topic))
        while not self.context.stopping.is_set():
            sender = Sender(self.context, self.where, Keys(self.context, "short", self.topic, count, self.first_key))
            sender.paced(self.rate, time.monotonic() + self.context.config.short_lived_s)
            sender.flush()


def send_fences(context: Context, topic: str, key: int) -> dict[int, int]:
    """The last message of each partition: whoever received it has received all that went before.

    Returns {partition index: ledger id}; those that the cluster did not acknowledge are errors in the ledger.
    """
    keys = Keys(context, "fence", topic, len(context.indexes(topic)), key)
    sender = Sender(context, f"fence {topic}", keys)
    fences = {index: sender.send() for index in keys.indexes}
    sender.flush()
    return fences
