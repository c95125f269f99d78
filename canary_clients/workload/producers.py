# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Idempotent acks=all producers, long-lived and short-lived."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from canary_clients.ledger import position
from canary_clients.workload.context import NEW_CLIENT, PROPAGATION, PROPAGATION_MS, Client, Context

TICK_S = 0.04
# Messages are sent in bursts to one partition, so that a burst shares a request. A partition has at most two bursts in
# flight: enough for a retry to put the order at risk. A producer has at most four: librdkafka allows five requests in
# flight to a broker and spins on the sixth while the broker is slow, and after a roll one broker may lead everything.
# Bursts older than HELD_S are not counted, so that a broker that is down does not stop the partitions of other brokers.
# A partition that waited catches up in longer bursts.
BURST = 8
LONGEST_BURST = 64
IN_FLIGHT = 4
HELD_S = 2.0
CATCH_UP_S = 300
SHORT_KEYS_EACH = 4
MAX_BLOCK_S = 60  # Java's max.block.ms
SILENT_S = 5.0  # without a delivery report although messages are in flight
# An idempotent librdkafka producer can stop sending to a partition for good after a broker called its topic unknown.
# The partition is proved to work when it acknowledges another producer's message so long after this one's first
# unreported message: longer than librdkafka waits for an answer (socket.timeout.ms, 30 s), below delivery_timeout_s.
# A producer may be alone on its topic, so after HELD_BACK_S another one, a probe, sends one message.
HELD_BACK_S = 60.0
PROBE_KEYS = 900_200_000  # no other writer's keys
OTHERS_AFTER_S = 45.0
REPLACED_AT_MOST = 2  # producers of one client; what is held back after that fails as an application error
PURGED = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)
UNKNOWN = (KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)


class Keys:
    """The keys of one producer instance, grouped by partition."""

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
        self.again = partial(Keys, context, kind, topic, per_partition, first_key, numbers)
        self.instance = context.next_instance()
        self.per_partition = per_partition
        self.slots = list(range(len(indexes))) if numbers is None else numbers
        self.numbers = [number for number in self.slots for dummy in range(per_partition)]
        self.keys = [first_key + number * per_partition + n for number in self.slots for n in range(per_partition)]
        self.indexes = [indexes[number] for number in self.numbers]
        self.first = context.ledger.new_streams(kind, self.instance, self.keys, self.indexes)
        self._sequence = [0] * len(self.keys)
        self._next_key = 0
        self._next_key_in_slot = [0] * len(self.slots)

    def next(self) -> tuple[int, int]:
        """Return the index of the next key, over all partitions, and its sequence number."""
        key_index = self._next_key
        self._next_key = (key_index + 1) % len(self.keys)
        return self._numbered(key_index)

    def next_of(self, slot: int) -> tuple[int, int]:
        """Return the index of the next key, within one partition, and its sequence number."""
        within = self._next_key_in_slot[slot]
        self._next_key_in_slot[slot] = (within + 1) % self.per_partition
        return self._numbered(slot * self.per_partition + within)

    def _numbered(self, key_index: int) -> tuple[int, int]:
        self._sequence[key_index] += 1
        return key_index, self._sequence[key_index]


class Sender:
    """An idempotent producer and its keys."""

    def __init__(self, context: Context, where: str, keys: Keys, **settings: Any) -> None:
        self.context = context
        self.where = where
        self.keys = keys
        self.unconfirmed = 0
        self._reported_at = time.monotonic()  # the last delivery report, or the first message after an idle time
        self.unconfirmed_of: dict[int, int] = dict.fromkeys(keys.indexes, 0)
        # of each partition: its last acknowledgement, or the first message after an idle time
        self._silent_since: dict[int, float] = dict.fromkeys(keys.indexes, 0.0)
        self.probes: dict[int, Sender] = {}
        config = context.client(
            where,
            enable_idempotence=True,
            linger_ms=context.config.linger_ms,
            message_timeout_ms=int(context.config.delivery_timeout_s * 1000),
            **settings,
        )
        # a topic that stays unknown for librdkafka's default is missing: an application would see that
        waits = int(config[PROPAGATION]) >= PROPAGATION_MS
        self._indeterminate = {KafkaError._DESTROY, *PURGED, *(() if waits else UNKNOWN)}
        self.producer = Producer(config)

    def send(self, slot: int | None = None) -> int:
        """Hand one message to the client; return its ledger id. Raise BufferError if the client's queue is full."""
        keys = self.keys
        key_index, sequence = keys.next() if slot is None else keys.next_of(slot)
        ledger_id, at = self.context.ledger.sent(keys.first + key_index)
        if not self.unconfirmed:
            self._reported_at = time.monotonic()
        self.unconfirmed += 1
        index = keys.indexes[key_index]
        if not self.unconfirmed_of[index]:
            self._silent_since[index] = time.monotonic()
        self.unconfirmed_of[index] += 1
        self._produce(ledger_id, key_index, sequence, at)
        return ledger_id

    def _produce(self, ledger_id: int, key_index: int, sequence: int, at: int) -> None:
        keys = self.keys
        key = keys.keys[key_index]
        deadline = time.monotonic() + MAX_BLOCK_S
        try:
            while not self._handed_over(
                keys.topic,
                self.context.message(ledger_id, keys.instance, key, sequence, at),
                b"key-%06d" % key,
                keys.numbers[key_index],
                partial(self._delivered, ledger_id, keys.indexes[key_index]),
                last=time.monotonic() > deadline,
            ):
                self._refresh(keys.topic)
        except (BufferError, KafkaException):
            self.unconfirmed -= 1
            self.unconfirmed_of[keys.indexes[key_index]] -= 1
            raise

    def _refresh(self, topic: str) -> None:
        """Refresh the topic's metadata: librdkafka alone would wait minutes, the Java client retries every 100 ms."""
        self.producer.poll(0.1)
        with contextlib.suppress(KafkaException):
            self.producer.list_topics(topic, timeout=2)

    def _handed_over(self, *message: Any, last: bool) -> bool:
        """Hand a message to the client; return False if the topic is unknown and `last` is not set.

        The caller waits for the topic, as Java's send() does: a broker that has just started does not know its topics
        before the controller has sent them.
        """
        try:
            self.producer.produce(*message)
            return True
        except KafkaException as e:
            if last or e.args[0].code() not in UNKNOWN:
                raise
            self.context.ledger.note(self.where, e.args[0].name(), f"sending waits: {e.args[0].str()}")
            return False

    def refresh_when_silent(self) -> None:
        """Refresh the metadata if reports stop: librdkafka may have got a response without the topic's partitions."""
        if self.unconfirmed and time.monotonic() - self._reported_at > SILENT_S:
            self._refresh(self.keys.topic)
            self._reported_at = time.monotonic()

    def _delivered(self, ledger_id: int, index: int, error: KafkaError | None, message: Message) -> None:
        self._reported_at = time.monotonic()
        self.unconfirmed -= 1
        self.unconfirmed_of[index] -= 1
        if error is None:
            self._silent_since[index] = self._reported_at
            self.context.acknowledged(index, self.keys.instance)
            self.confirmed(ledger_id, position(index, message.offset()))
        else:
            self.failed(ledger_id, error)

    def confirmed(self, ledger_id: int, packed_position: int) -> None:
        self.context.ledger.acked(ledger_id, packed_position)

    def failed(self, ledger_id: int, error: KafkaError) -> None:
        # A broker that has just started lists no other broker, and librdkafka drops the requests in flight to brokers
        # that are not listed (the Java producer does not). It lists no topic either, and librdkafka fails what waits
        # for one after PACE's second (30 s by default; the Java producer waits). These messages are indeterminate. A
        # partition that does not come back is an error of the next message, after MAX_BLOCK_S.
        severity = "note" if error.code() in self._indeterminate else "error"
        self.context.ledger.error(self.where, error.name(), f"delivery failed: {error.str()}", severity)

    def held_back(self) -> int | None:
        """Return the index of a partition to which the client sends nothing although it works; None: none. Asks silent
        partitions with a probe."""
        silent = self.silent()
        for index in silent:
            if index not in self.probes:
                keys = Keys(self.context, "probe", self.keys.topic, 1, PROBE_KEYS, [self.number_of(index)])
                self.probes[index] = Sender(self.context, f"{self.where} probe", keys, **NEW_CLIENT)
                self.probes[index].send()
        for probe in self.probes.values():
            probe.producer.poll(0)
        for index, since in silent.items():
            if self.context.acknowledged_others(index, self.keys.instance) - since > OTHERS_AFTER_S:
                return index
        return None

    def silent(self) -> dict[int, float]:
        """Return {partition index: since when (monotonic)} of those that acknowledged nothing for HELD_BACK_S."""
        now = time.monotonic()
        return {
            index: since
            for index, since in self._silent_since.items()
            if self.unconfirmed_of[index] and now - since > HELD_BACK_S
        }

    def number_of(self, index: int) -> int:
        """Return the number of a partition within its topic."""
        return self.keys.numbers[self.keys.indexes.index(index)]

    def name_of(self, index: int) -> str:
        """Return a partition's name, as `topic[number]`."""
        return f"{self.keys.topic}[{self.number_of(index)}]"

    def give_up(self, index: int) -> None:
        """Drop the messages that are not acknowledged, and note why. They are indeterminate, as after a restart."""
        self.context.ledger.note(
            self.where,
            "HELD_BACK",
            f"librdkafka sent nothing to {self.name_of(index)} for {HELD_BACK_S:g} s, while the partition "
            "acknowledged another producer's messages: the producer was replaced",
        )
        self.producer.purge(in_queue=True, in_flight=True, blocking=False)
        deadline = time.monotonic() + SILENT_S
        while self.unconfirmed and time.monotonic() < deadline:
            self.producer.poll(0.1)
        self.end_probes()

    def end_probes(self) -> None:
        """Wait for the delivery reports of the probes."""
        for probe in self.probes.values():
            probe.flush(watched=False)
        self.probes.clear()

    def flush(self, watched: bool = True) -> int | None:
        """Wait for all delivery reports, up to delivery_timeout_s + 10 s.

        `watched`: return early with the index of a partition whose messages the client holds back.
        """
        deadline = time.monotonic() + self.context.config.delivery_timeout_s + 10
        while self.unconfirmed and time.monotonic() < deadline:
            self.producer.poll(0.1)
            self.refresh_when_silent()
            held_back = self.held_back() if watched else None
            if held_back is not None:
                return held_back
        if self.unconfirmed:
            self.context.ledger.error(self.where, "NO_REPORT", f"{self.unconfirmed} messages without delivery report")
        self.end_probes()
        return None

    def end(self) -> None:
        """Wait for all delivery reports; give up what the client holds back."""
        held_back = self.flush()
        if held_back is not None:
            self.give_up(held_back)

    def paced(self, rate: float, until: float | None = None, watched: bool = False) -> int | None:
        """Send `rate` messages per second until `until` (monotonic) or until the run stops.

        `watched`: return early with the index of a partition whose messages the client holds back.
        """
        slots = [
            _Slot(number, self.keys.indexes[number * self.keys.per_partition]) for number in range(len(self.keys.slots))
        ]
        each = rate / len(slots)
        burst = min(BURST, self.keys.per_partition)
        start = time.monotonic()
        # spread the bursts of the partitions over time
        for slot in slots:
            slot.sent = -round(burst * (1 - (slot.number + 1) / len(slots)))
        while not self.context.stopping.is_set():
            now = time.monotonic()
            if until is not None and now >= until:
                break
            try:
                # the slot that is furthest behind first, so that none starves under the limit
                for slot in sorted(slots, key=lambda slot: slot.sent):
                    if sum(self._in_flight(other, now) for other in slots) >= IN_FLIGHT:
                        break
                    self._burst(slot, now, int((now - start) * each), burst, round(each * CATCH_UP_S))
            except BufferError:
                self.context.ledger.note(self.where, "QUEUE_FULL", "the client's queue is full: sending pauses")
            self.refresh_when_silent()
            held_back = self.held_back() if watched else None
            if held_back is not None:
                return held_back
            rest = TICK_S - (time.monotonic() - now)
            while rest > 0:
                self.producer.poll(rest)
                rest = TICK_S - (time.monotonic() - now)
        return None

    def _in_flight(self, slot: _Slot, now: float) -> int:
        """Return how many bursts of a partition are in flight: 0, 1 or 2; bursts older than HELD_S do not count."""
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
    """One partition of a producer and its progress."""

    number: int
    index: int
    sent: int = 0
    last_burst: int = 0
    sent_at: float = 0.0


class LongLived(Client):
    """One producer through the whole run; another one in its place if librdkafka holds messages back."""

    def __init__(self, context: Context, name: str, keys: Keys, rate: float) -> None:
        super().__init__(context, name)
        self.rate = rate
        self.sender = Sender(context, name, keys)

    def work(self) -> None:
        for replaced in range(REPLACED_AT_MOST + 1):
            held_back = self.sender.paced(self.rate, watched=replaced < REPLACED_AT_MOST)
            if held_back is None:
                break
            self.sender.give_up(held_back)
            self.sender = Sender(self.context, self.where, self.sender.keys.again())
        self.sender.end()


class ShortLived(Client):
    """One producer after another, each with its own producer id (InitProducerId)."""

    def __init__(self, context: Context, name: str, topic: str, rate: float, first_key: int) -> None:
        super().__init__(context, name)
        self.topic = topic
        self.rate = rate
        self.first_key = first_key

    def work(self) -> None:
        while not self.context.stopping.is_set():
            keys = Keys(self.context, "short", self.topic, SHORT_KEYS_EACH, self.first_key)
            sender = Sender(self.context, self.where, keys, **NEW_CLIENT)
            sender.paced(self.rate, time.monotonic() + self.context.config.short_lived_s)
            sender.end()


def send_fences(context: Context, topic: str, key: int) -> dict[int, int]:
    """Send the closing message of each partition; a group that has received it has received everything before it.

    Return {partition index: ledger id}. Messages that are not acknowledged are errors in the ledger.
    """
    keys = Keys(context, "fence", topic, 1, key)
    fences: dict[int, int] = {}
    for replaced in range(REPLACED_AT_MOST + 1):
        sender = Sender(context, f"fence {topic}", keys, **NEW_CLIENT)
        fences = {index: sender.send() for index in keys.indexes}
        held_back = sender.flush(watched=replaced < REPLACED_AT_MOST)
        if held_back is None:
            break
        sender.give_up(held_back)
        keys = keys.again()
    return fences
