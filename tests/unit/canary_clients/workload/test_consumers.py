# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a member does with errors of its consumer. The texts are librdkafka's, from a run on a cluster."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from canary_clients.workload.consumers import Member

TRUNCATION = (
    "Partition log truncation detected at offset 2288 (leader epoch 1): broker end offset is 2280 (offset leader epoch "
    "0). Reset to INVALID.: Local: Partition log truncation detected (broker 33)"
)
OUT_OF_RANGE = "fetch failed due to requested offset not available: Broker: Offset out of range (broker 1)"


class Ledger:
    def __init__(self) -> None:
        self.entered: list[tuple[str, str, str]] = []

    def error(self, where: str, code: str, text: str, severity: str = "error") -> None:
        self.entered.append((severity, code, text))

    def note(self, where: str, code: str, text: str) -> None:
        self.error(where, code, text, "note")


class Consumer:
    """A consumer at `position` (-1001: nothing received yet) whose group has committed 2200."""

    def __init__(self, position: int, problem: KafkaError | None = None) -> None:
        self._position, self._problem = position, problem
        self.sought: list[tuple[str, int, int]] = []

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        return [TopicPartition(p.topic, p.partition, self._position) for p in partitions]

    def committed(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        return [TopicPartition(p.topic, p.partition, 2200) for p in partitions]

    def seek(self, partition: TopicPartition) -> None:
        if self._problem:
            raise KafkaException(self._problem)
        self.sought.append((partition.topic, partition.partition, partition.offset))


def after(consumer: Consumer, text: str, audit: bool = True) -> list[tuple[str, str, str]]:
    """Return what the ledger has after an error of a lost position with this text."""
    ledger = Ledger()
    context: Any = SimpleNamespace(config=SimpleNamespace(audit=audit), ledger=ledger)
    member = Member(SimpleNamespace(context=context), "consumer-stays")  # type: ignore[arg-type]
    error = KafkaError(KafkaError._AUTO_OFFSET_RESET, text)
    member._on_message_error(consumer, Message(topic="canary.keyed", partition=6, error=error))  # type: ignore[arg-type]
    return ledger.entered


def test_a_reported_truncation_is_left_to_the_audit():
    consumer = Consumer(2288)
    ((severity, code, text),) = after(consumer, TRUNCATION)
    assert (severity, code) == ("note", "LOG_TRUNCATION")
    assert text.startswith("canary.keyed[6]: the audit decides: Partition log truncation detected at offset 2288")
    assert consumer.sought == [("canary.keyed", 6, 2288)]


def test_before_the_first_message_the_position_is_the_committed_offset():
    consumer = Consumer(-1001)
    after(consumer, TRUNCATION)
    assert consumer.sought == [("canary.keyed", 6, 2200)]


def test_a_partition_that_was_taken_away_is_not_resumed():
    ((severity, _code, text),) = after(Consumer(2288, KafkaError(KafkaError._STATE)), TRUNCATION)
    assert severity == "note" and text.startswith("not resumed (Local: Erroneous state): canary.keyed[6]")


def test_without_the_audit_a_reported_truncation_is_an_error():
    consumer = Consumer(2288)
    ((severity, code, _text),) = after(consumer, TRUNCATION, audit=False)
    assert (severity, code, consumer.sought) == ("error", "_AUTO_OFFSET_RESET", [])


def test_any_other_lost_position_is_an_error():
    consumer = Consumer(2288)
    ((severity, code, text),) = after(consumer, OUT_OF_RANGE)
    assert (severity, code, consumer.sought) == ("error", "_AUTO_OFFSET_RESET", [])
    assert text.endswith("at canary.keyed[6]")
