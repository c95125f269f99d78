# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""own_log: the newest error of a node, with its exception, without secrets."""

from __future__ import annotations

import os
import time

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


# The last start -------------------------------------------------------------------------------------------------------

STARTED_AT = 1795952700.5  # the newest process
ZK_START = "[KafkaServer id=1] started (kafka.server.KafkaServer)"
KRAFT_START = "[KafkaRaftServer nodeId=1] Kafka Server started (kafka.server.KafkaRaftServer)"
STOP = [
    (-14.0, "[KafkaServer id=1] shutting down (kafka.server.KafkaServer)"),
    (-12.5, "[ReplicaFetcherManager on broker 1] shutting down (kafka.server.ReplicaFetcherManager)"),
    (-10.0, "[KafkaServer id=1] shut down completed (kafka.server.KafkaServer)"),
]
EARLIER = [(-900.0, "[KafkaServer id=1] shutting down (kafka.server.KafkaServer)"), (-800.0, ZK_START)]
START = [
    (
        3.5,
        "[BrokerServer id=1] Waiting for all of the SocketServer Acceptors to be started (kafka.server.BrokerServer)",
    ),
    (4.0, KRAFT_START),
]


def write_log(path, lines, zone=0.0):
    """Write lines as (seconds after STARTED_AT, text); `zone`: seconds that the JVM's time is ahead of the host's."""
    text = ""
    for after, line in lines:
        moment = STARTED_AT + after + zone
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))
        text += f"[{stamp},{int(moment % 1 * 1000):03}] INFO {line}\n\tat a line without a time\n"
    path.write_text(text)
    newest = STARTED_AT + lines[-1][0]
    os.utime(path, (newest, newest))


def last_start(directory):
    return own_log.read_last_start(str(directory / "server.log"), STARTED_AT)


def test_the_last_start_and_the_stop_before_it(tmp_path):
    write_log(tmp_path / "server.log", [*EARLIER, *STOP, *START, (5000.0, "[GroupCoordinator 1]: loads (kafka)")])
    assert last_start(tmp_path) == {"start_s": 4.0, "stop_s": 4.0}
    write_log(tmp_path / "server.log", [*EARLIER, (30.0, ZK_START)])
    assert last_start(tmp_path) == {"start_s": 30.0, "stop_s": None}, "its end before was no controlled shutdown"


def test_the_last_start_is_in_the_files_of_its_hour(tmp_path):
    write_log(tmp_path / "server.log.2026-11-29-09", [(-7200.0, ZK_START)])  # not written since
    write_log(tmp_path / "server.log.2026-11-29-10", [*STOP, (3.5, "[ReplicaManager] loads (kafka.server)")])
    write_log(tmp_path / "server.log.2026-11-29-11", [(4.0, KRAFT_START)])
    write_log(tmp_path / "server.log", [(9000.0, "[GroupCoordinator 1]: loads (kafka.coordinator)")])
    (tmp_path / "server.log.d").mkdir()
    assert last_start(tmp_path) == {"start_s": 4.0, "stop_s": 4.0}


@pytest.mark.parametrize(
    ("lines", "zone"),
    [
        ([*STOP], 0),  # it starts now
        ([*STOP, (3.0, STOP[0][1]), (9.0, ZK_START)], 0),  # it was stopped while it started
        ([*STOP, *START], 3600),
        ([*STOP, *START], -7200),
    ],
)
def test_a_log_that_does_not_say_it(tmp_path, lines, zone):
    write_log(tmp_path / "server.log", lines, zone)
    assert last_start(tmp_path) is None


def test_no_log_no_process_no_right(tmp_path):
    assert last_start(tmp_path) is None
    write_log(tmp_path / "server.log", [*STOP, *START])
    assert own_log.read_last_start("", STARTED_AT) is None
    assert own_log.read_last_start(str(tmp_path / "server.log"), None) is None
    os.mkfifo(tmp_path / "other.log")
    assert own_log.read_last_start(str(tmp_path / "other.log"), STARTED_AT) is None
