# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A producer that holds its messages back is replaced only where the partition is proved to work."""

from __future__ import annotations

import dataclasses
import json
import threading
import time

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from canary_clients.config import Config
from canary_clients.ledger import ACKED, Clock, LedgerWriter
from canary_clients.workload import producers, transactions
from canary_clients.workload.context import Context
from tests.integration import canary_broker, servers

broker, home = canary_broker.broker, canary_broker.home  # fixtures
FOREVER_MS = 100_000  # less than delivery_timeout_s


@pytest.fixture
def context(broker, tmp_path, monkeypatch):
    monkeypatch.setattr(producers, "HELD_BACK_S", 2.0)
    monkeypatch.setattr(producers, "OTHERS_AFTER_S", 1.0)
    topic = f"held-back-{time.time_ns()}"
    admin = AdminClient({"bootstrap.servers": str(broker.address)})
    servers.create_topics(admin, [NewTopic(topic, 1, 1)])
    ledger = LedgerWriter(tmp_path, Clock(), [])
    # librdkafka keeps what it has for as long as linger.ms says: held back, without a fault of the broker
    config = Config(str(broker.address), linger_ms=FOREVER_MS)
    yield Context(config, ledger.clock, ledger, 1, {(topic, 0): 1})
    ledger.close()


@pytest.fixture
def made(monkeypatch):
    """Return the list to which each producer is added that clients make by themselves."""
    made = []

    class Sender(producers.Sender):
        def __init__(self, *args, **settings):
            super().__init__(*args, **settings)
            made.append(self)

    monkeypatch.setattr(producers, "Sender", Sender)
    return made


def long_lived(context):
    (topic, _number) = next(iter(context.partitions))
    return producers.LongLived(context, "producer-1", producers.Keys(context, "long", topic, 8), 100.0)


def other(context):
    (topic, _number) = next(iter(context.partitions))
    return producers.Sender(context, "producer-2", producers.Keys(context, "short", topic, 8, 100))


def notes(directory):
    lines = [json.loads(line) for line in (directory / "errors.jsonl").read_text().splitlines()]
    found = [line for line in lines if line["severity"] == "note"]
    return found, [line for line in lines if line not in found]


def test_a_producer_that_holds_back_is_replaced_once_others_are_acknowledged(context, tmp_path):
    client = long_lived(context)
    first = client.sender
    context.config = dataclasses.replace(context.config, linger_ms=5)
    sending = other(context)
    done = threading.Event()

    def send():
        while not done.wait(0.1):
            sending.send()
            sending.producer.poll(0)

    thread = threading.Thread(target=send)
    thread.start()
    client.start()
    try:
        servers.wait_for(lambda: client.sender is not first, 60, "another producer in its place")
        servers.wait_for(
            lambda: client.sender.unconfirmed_of[1] == 0 and client.sender.keys._sequence[0], 60, "its messages"
        )
    finally:
        done.set()
        thread.join()
        context.stopping.set()
        client.join(60)
    context.ledger.flush()
    noted, errors = notes(tmp_path)
    assert errors == [] and not client.is_alive()
    assert {line["code"] for line in noted} >= {"HELD_BACK", "_PURGE_QUEUE"}, noted
    (replaced,) = [line for line in noted if line["code"] == "HELD_BACK"]
    assert "[0] for 2 s" in replaced["text"] and replaced["count"] == 1
    assert (tmp_path / "acked.bin").stat().st_size > 8 * ACKED.size


def test_a_producer_alone_on_its_topic_is_replaced_once_a_probe_is_acknowledged(context, tmp_path):
    client = long_lived(context)
    first = client.sender
    context.config = dataclasses.replace(context.config, linger_ms=5)
    client.start()
    try:
        servers.wait_for(lambda: client.sender is not first and client.sender.keys._sequence[0], 60, "another producer")
        servers.wait_for(lambda: client.sender.unconfirmed_of[1] == 0, 60, "its messages")
    finally:
        context.stopping.set()
        client.join(60)
    context.ledger.flush()
    noted, errors = notes(tmp_path)
    assert errors == [] and not client.is_alive() and not first.probes
    (replaced,) = [line for line in noted if line["code"] == "HELD_BACK"]
    assert "[0] for 2 s" in replaced["text"] and replaced["where"] == "producer-1"


def test_a_producer_is_kept_while_nobody_is_acknowledged(context):
    client = long_lived(context)
    first = client.sender
    client.start()
    servers.wait_for(lambda: first.unconfirmed_of[1], 60, "its first messages")
    began = time.monotonic()
    servers.wait_for(lambda: time.monotonic() - began > 3 * producers.HELD_BACK_S, 60, "three times the bound")
    kept = client.sender is first
    context.stopping.set()
    for producer in (first.probes[1].producer, first.producer):
        producer.purge()
    client.join(60)
    assert kept and not client.is_alive()


def test_a_short_lived_producer_that_holds_back_is_given_up_once_a_probe_is_acknowledged(context, made, tmp_path):
    """It has stopped sending and waits for its reports: that wait is watched as well."""
    (topic, _number) = next(iter(context.partitions))
    context.config = dataclasses.replace(context.config, short_lived_s=0.5)
    client = producers.ShortLived(context, "producer-short", topic, 100.0, 100)
    client.start()
    servers.wait_for(lambda: made and made[0].unconfirmed, 60, "its first messages")
    context.config = dataclasses.replace(context.config, linger_ms=5)
    try:
        servers.wait_for(lambda: len(made) > 2, 60, "a probe and another producer")
    finally:
        context.stopping.set()
        client.join(60)
    context.ledger.flush()
    noted, errors = notes(tmp_path)
    assert errors == [] and not client.is_alive()
    (given_up,) = [line for line in noted if line["code"] == "HELD_BACK"]
    assert "[0] for 2 s" in given_up["text"] and given_up["where"] == "producer-short"


def test_closing_messages_that_are_held_back_are_sent_by_another_producer(context, made, tmp_path):
    (topic, _number) = next(iter(context.partitions))
    fences = {}
    sending = threading.Thread(target=lambda: fences.update(producers.send_fences(context, topic, 100)))
    sending.start()
    servers.wait_for(lambda: made and made[0].unconfirmed, 60, "the first producer's message")
    context.config = dataclasses.replace(context.config, linger_ms=5)
    sending.join(60)
    context.ledger.flush()
    noted, errors = notes(tmp_path)
    assert errors == [] and "HELD_BACK" in {line["code"] for line in noted}
    acked = {row[0] for row in ACKED.iter_unpack((tmp_path / "acked.bin").read_bytes())}
    assert set(fences) == {1} and set(fences.values()) <= acked


def transactional(context):
    (topic, _number) = next(iter(context.partitions))
    return transactions.Transactional(context, "producer-txn", topic, 2, 10.0, 0)


def test_a_transactional_producer_that_holds_back_is_replaced_once_a_probe_is_acknowledged(context, tmp_path):
    client = transactional(context)
    first = client._sender = client._start()
    context.config = dataclasses.replace(context.config, linger_ms=5)
    assert not client.transaction() and client._sender is None and client.replaced == 1
    assert client.transaction() and client._sender is not first
    context.ledger.flush()
    noted, errors = notes(tmp_path)
    assert errors == []
    (replaced,) = [line for line in noted if line["code"] == "HELD_BACK"]
    assert "[0] for 2 s" in replaced["text"] and replaced["where"] == "producer-txn"
    # the first transaction is indeterminate; the probe's one message and the second transaction are acknowledged
    each = client.per_transaction
    acked = [row[0] for row in ACKED.iter_unpack((tmp_path / "acked.bin").read_bytes())]
    assert acked == [each, *range(each + 1, 2 * each + 1)]


def test_a_transactional_producer_is_kept_while_its_probe_is_not_acknowledged(context, tmp_path):
    client = transactional(context)
    sent = threading.Thread(target=client.transaction)
    sent.start()
    servers.wait_for(lambda: client._sender and client._sender.probes, 60, "a probe")
    began = time.monotonic()
    servers.wait_for(lambda: time.monotonic() - began > 3 * producers.HELD_BACK_S, 60, "three times the bound")
    kept = client._sender
    probe = kept.probes[1]
    for producer in (probe.producer, kept.producer):
        producer.purge()
    sent.join(60)
    context.ledger.flush()
    noted, errors = notes(tmp_path)
    assert kept is not None and client.replaced == 0 and not sent.is_alive()
    assert not [line for line in noted if line["code"] == "HELD_BACK"] and len(errors) <= 1, errors
