# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""For how long each client believes a broker that has just started, which knows no topic."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import KafkaError

from canary_clients.config import Config
from canary_clients.ledger import Clock, LedgerWriter
from canary_clients.workload import producers
from canary_clients.workload.consumers import Group
from canary_clients.workload.context import Context

KEY = "topic.metadata.propagation.max.ms"


@pytest.fixture
def context(tmp_path) -> Context:
    ledger = LedgerWriter(tmp_path, Clock(), [])
    yield Context(Config("localhost:1"), ledger.clock, ledger, 1, {("canary.keyed", 0): 1})
    ledger.close()


@pytest.fixture
def created(monkeypatch) -> list[dict[str, Any]]:
    """The settings of each producer that is created; none sends."""
    settings: list[dict[str, Any]] = []

    class Recorded(producers.Producer):
        def __init__(self, config: dict[str, Any]) -> None:
            settings.append(config)
            super().__init__(config)

    monkeypatch.setattr(producers, "Producer", Recorded)
    return settings


def test_a_client_that_lives_long_believes_it_for_a_second(context, created):
    producers.LongLived(context, "long", producers.Keys(context, "long", "canary.keyed", 1), 1.0)
    assert created[0][KEY] == 1000
    assert Group(context, "steady", ["canary.keyed"], "read_committed").settings("consumer")[KEY] == 1000


def test_a_new_client_waits_for_its_topic_as_long_as_librdkafka_does(context, created, monkeypatch):
    def stop(*_: Any) -> None:
        context.stopping.set()

    monkeypatch.setattr(producers.Sender, "paced", stop)
    producers.ShortLived(context, "short", "canary.keyed", 1.0, 0).work()
    assert created[0][KEY] == 30000


@pytest.mark.parametrize("code", producers.UNKNOWN)
@pytest.mark.parametrize(
    ("settings", "of_operator", "severity"),
    [({}, None, "note"), (producers.NEW_CLIENT, None, "error"), ({}, "30000", "error"), ({}, 5, "note")],
)
def test_a_topic_that_stays_unknown_for_less_than_the_default_is_no_error_of_an_application(
    context, created, tmp_path, settings, of_operator, severity, code
):
    if of_operator is not None:
        context.config.librdkafka[KEY] = of_operator
    keys = producers.Keys(context, "long", "canary.keyed", 1)
    producers.Sender(context, "producer-1", keys, **settings).failed(0, KafkaError(code))
    context.ledger.flush()
    (entry,) = [json.loads(line) for line in (tmp_path / "errors.jsonl").read_text().splitlines()]
    assert entry["severity"] == severity


def test_the_operators_setting_of_librdkafka_wins_for_clients_that_live_long(context):
    context.config.librdkafka[KEY] = 5
    assert context.client("long")[KEY] == 5
