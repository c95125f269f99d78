# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts of the verification clients in this process, against a real broker: each planted damage is detected."""

from __future__ import annotations

import pathlib
import time
from concurrent.futures import Future
from typing import Any, Dict, List

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from canary_clients import config, ledger, verdict
from canary_clients.ledger import MESSAGE, MESSAGE_IDENTITY
from canary_clients.run import Run
from canary_clients.workload import admin, consumers, producers
from canary_clients.workload.producers import Sender
from tests.integration.canary_broker import NO_DAMAGE, broker, counted, flows, home, recorded, settings, until

__all__ = ["broker", "home", "settings"]

pytestmark = pytest.mark.real


class Planted:
    """A live run in this process, to which a test adds damage."""

    def __init__(self, settings: Dict[str, Any], directory: pathlib.Path) -> None:
        self.settings = settings
        self.directory = directory
        self.run = Run(config.parse(settings), directory)

    def finish(self) -> Dict[str, Any]:
        flows(self.directory)
        self.run.stop()
        return verdict.evaluate(ledger.read(self.directory), [])

    def copy(self, role: str, offset: int) -> None:
        """Write the message of an offset once more, as a retry of a non-idempotent producer does."""
        topic = self.run.context.topic(role)
        source = TopicPartition(topic, 0, self.run.first_offsets[topic, 0] + offset)
        reader = Consumer({"bootstrap.servers": self.settings["bootstrap_servers"], "group.id": f"{topic}.reader"})
        reader.assign([source])
        message = reader.poll(20)
        reader.close()
        assert MESSAGE_IDENTITY.unpack_from(message.value())[0] == self.run.context.run_id
        writer = Producer({"bootstrap.servers": self.settings["bootstrap_servers"], "enable.idempotence": False})
        writer.produce(topic, message.value(), message.key(), 0)
        assert writer.flush(20) == 0


class UnknownTopicProducer(Producer):
    """Raises for an unknown topic until `unknown_until`, as against a broker that has just started."""

    unknown_until = 0.0

    def produce(self, *message: Any, **more: Any) -> None:
        if time.monotonic() < UnknownTopicProducer.unknown_until:
            raise KafkaException(KafkaError(KafkaError._UNKNOWN_TOPIC))
        super().produce(*message, **more)


def test_producer_waits_for_a_topic_that_a_broker_does_not_know_yet(settings, tmp_path, monkeypatch):
    """Java's send() waits for it; librdkafka rejects the message at once."""
    monkeypatch.setattr(producers, "Producer", UnknownTopicProducer)
    planted = Planted(settings, tmp_path / "run")
    planted.run.start()
    flows(planted.directory)
    UnknownTopicProducer.unknown_until = time.monotonic() + 1
    result = planted.finish()
    assert result["verdict"] == "pass", result["reasons"]
    assert counted(result) == NO_DAMAGE and result["by_phase"]["(no phase)"]["max_producer_stall_ms"] > 500
    UnknownTopicProducer.unknown_until = 0.0


def test_creation_that_librdkafka_repeats_succeeds(settings, tmp_path, monkeypatch):
    """librdkafka repeats a request without a response; the second response says that the topic exists."""
    created = AdminClient.create_topics

    def twice(client: AdminClient, topics: list, **more: Any) -> Dict[str, Any]:
        for future in created(client, topics, **more).values():
            future.result(20)
        return created(client, topics, **more)

    planted = Planted(settings, tmp_path / "run")
    planted.run.start()
    monkeypatch.setattr(AdminClient, "create_topics", twice)
    until(lambda: recorded(planted.directory)["admin"]["operations"].get("create topic", {}).get("ok", 0) > 3)
    result = planted.finish()
    repeated = [line for line in ledger.read(tmp_path / "run").admin if "TOPIC_ALREADY_EXISTS" in line.get("error", "")]
    assert repeated and {line["outcome"] for line in repeated} == {"ok"}
    assert result["verdict"] == "pass", result["reasons"]
    assert result["admin"]["final"]["expected"] > 0


@pytest.mark.parametrize(
    ("unanswered", "same_id", "passes"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_topic_that_comes_back_is_late_or_unexpected(settings, tmp_path, monkeypatch, unanswered, same_id, passes):
    """A repeated creation can take effect after the topic's deletion: late. A topic whose creation was not repeated, or
    that comes back under its old id, is unexpected."""
    create, delete = AdminClient.create_topics, AdminClient.delete_topics
    lost: Dict[str, NewTopic] = {}
    came_back: List[str] = []

    def first_answer_lost(client: AdminClient, topics: list, **more: Any) -> Dict[str, Any]:
        (new,) = topics
        if lost:
            return create(client, topics, **more)
        lost[new.topic] = new
        if not unanswered:
            return create(client, topics, **more)
        answer: Future = Future()
        answer.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer")))
        return {new.topic: answer}

    def then_created_again(client: AdminClient, topics: list, **more: Any) -> Dict[str, Any]:
        deleted = delete(client, topics, **more)
        for topic in set(topics) & set(lost):
            deleted[topic].result(20)
            create(client, [lost[topic]])[topic].result(20)
            came_back.append(topic)
        return deleted

    planted = Planted({**settings, "admin": {"interval_s": 1, "acls": False, "keep_every": 99}}, tmp_path / "run")
    planted.run.start()
    monkeypatch.setattr(admin, "READ_BACK_S", 3)
    monkeypatch.setattr(AdminClient, "create_topics", first_answer_lost)
    monkeypatch.setattr(AdminClient, "delete_topics", then_created_again)
    if same_id:
        monkeypatch.setattr(
            admin.AdminLoop, "_topic_ids", lambda _loop, topics: dict.fromkeys(topics, "the deleted topic's id")
        )
    until(lambda: came_back)
    result = planted.finish()
    topic = min(lost)
    assert result["admin"]["final"]["late" if passes else "unexpected"] == [f"topic {topic}"], result["admin"]["final"]
    assert result["verdict"] == ("pass" if passes else "fail"), result["reasons"]


def test_message_sent_twice_is_duplicated(settings, tmp_path):
    planted = Planted(settings, tmp_path / "run")
    planted.run.start()
    planted.copy("keyed", 3)
    planted.copy("keyed", 5)
    result = planted.finish()
    assert counted(result) == {**NO_DAMAGE, "duplicated": 2}
    assert result["verdict"] == "fail"


def test_swapped_messages_of_a_key_are_reordered(settings, tmp_path, monkeypatch):
    planted = Planted(settings, tmp_path / "run")
    held: Dict[str, Any] = {}
    produce = Sender._produce

    def swapping(sender: Sender, ledger_id: int, key_index: int, sequence: int, at: int) -> None:
        if sender.where != "producer-1" or sequence < 3 or held.get("done"):
            produce(sender, ledger_id, key_index, sequence, at)
        elif "first" not in held:
            held["first"] = (ledger_id, key_index, sequence, at)
        elif key_index == held["first"][1]:
            produce(sender, ledger_id, key_index, sequence, at)
            produce(sender, *held["first"])
            held["done"] = True
        else:
            produce(sender, ledger_id, key_index, sequence, at)

    monkeypatch.setattr(Sender, "_produce", swapping)
    planted.run.start()
    until(lambda: held.get("done"))
    result = planted.finish()
    assert held["done"]
    assert counted(result) == {**NO_DAMAGE, "reordered": 1}
    assert result["examples"]["reordered"][0]["ledger_id"] > held["first"][0]


def test_message_that_a_consumer_skips_is_lost(settings, tmp_path, monkeypatch):
    planted = Planted(settings, tmp_path / "run")
    skipped = []
    take = consumers.Group.take

    def skipping(group: consumers.Group, messages: list, next_offsets: dict) -> None:
        # not on the compacted topic, where the cleaner may delete a message before it is read
        keyed = [message for message in messages if message.topic().endswith(".keyed")]
        if group.name == "steady" and keyed and not skipped and not group.quiet:
            messages.remove(keyed[0])
            skipped.append(MESSAGE.unpack_from(keyed[0].value())[1])
        take(group, messages, next_offsets)

    monkeypatch.setattr(consumers.Group, "take", skipping)
    planted.run.start()
    until(lambda: skipped)
    result = planted.finish()
    assert counted(result) == {**NO_DAMAGE, "lost": 1}
    assert result["examples"]["lost"][0]["ledger_id"] == skipped[0]
    assert result["examples"]["lost"][0]["groups"] == ["steady"]


def test_visible_aborted_messages_are_detected(settings, tmp_path, monkeypatch):
    """A read_uncommitted group simulates a cluster that delivers aborted messages."""
    planted = Planted(settings, tmp_path / "run")
    group_settings = consumers.Group.settings

    def uncommitted(group: consumers.Group, where: str) -> Dict[str, Any]:
        return {**group_settings(group, where), "isolation.level": "read_uncommitted"}

    monkeypatch.setattr(consumers.Group, "settings", uncommitted)
    planted.run.start()
    until(lambda: recorded(planted.directory)["aborted"] > 10)
    result = planted.finish()
    assert counted(result) == {**NO_DAMAGE, "aborted_visible": result["aborted"]}
    assert result["aborted"] > 10


def test_old_value_over_a_newer_one_of_a_compacted_key_is_detected(settings, tmp_path, monkeypatch):
    planted = Planted(settings, tmp_path / "run")
    send_fences = planted.run._send_fences

    def after_an_old_value() -> Dict[int, int]:
        planted.copy("compact", 0)
        return send_fences()

    monkeypatch.setattr(planted.run, "_send_fences", after_an_old_value)
    planted.run.start()
    flows(planted.directory, 1500)  # the first key of the compacted topic has newer values by then
    result = planted.finish()
    assert counted(result) == {**NO_DAMAGE, "lost": 1, "duplicated": 1}
    assert result["examples"]["lost"][0]["topic"].endswith(".compact")
