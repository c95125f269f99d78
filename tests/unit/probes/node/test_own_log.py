# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""own_log: the newest error of a node, with its exception, without secrets."""

from __future__ import annotations

import os

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import advice
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import service
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import own_log

LOG = """[2026-11-25 00:00:01,000] ERROR [KafkaServer id=1] something earlier (kafka.server.KafkaServer)
[2026-11-25 00:00:02,000] ERROR Exiting Kafka due to fatal exception (kafka.Kafka$)
java.lang.IllegalArgumentException: requirement failed: broker.id must not be greater than reserved.broker.max.id
\tat scala.Predef$.require(Predef.scala:337)
Caused by: java.io.IOException: keystore password changeit was incorrect
\tat kafka.Kafka.main(Kafka.scala)
[2026-11-25 00:00:03,000] ERROR Controller 1 epoch 2 failed to change state (state.change.logger)
[2026-11-25 00:00:03,500] INFO shut down completed (kafka.server.KafkaServer)
"""
DOWN = {"manager": "systemd", "name": "kafka.service", "active": False, "main_pid": 0, "masked": False}


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "server.log"
    path.write_text(LOG)
    return str(path)


def test_newest_error_has_its_exception_and_the_deepest_cause(log):
    assert own_log.read_last_error(log, DOWN, ["changeit"]) == (
        "[2026-11-25 00:00:02,000] ERROR Exiting Kafka due to fatal exception (kafka.Kafka$) "
        "java.lang.IllegalArgumentException: requirement failed: broker.id must not be greater than "
        "reserved.broker.max.id Caused by: java.io.IOException: keystore password ******** was incorrect"
    )


def test_journal_has_the_reason_if_nothing_was_logged_since_the_start(log, monkeypatch):
    monkeypatch.setattr(service, "read_journal", lambda _name: ["kafka: java: not found"])
    os.utime(log, (1000, 1000))
    assert own_log.read_last_error(log, {**DOWN, "started_at": 2000.0}) == "kafka: java: not found"
    assert own_log.read_last_error(log + ".absent", DOWN) == "kafka: java: not found"
    assert own_log.read_last_error(log + ".absent", {**DOWN, "active": True}) is None


def test_a_finding_quotes_the_error():
    assert advice.quote_last_error({"last_error": "ERROR no disk."}) == "; the last error in its log: ERROR no disk"
    assert advice.quote_last_error({}) == ""
