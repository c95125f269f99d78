# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verification clients as an operator runs them, against a real broker: restarts, kills, lost data."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import Any, Dict, Iterator
from xml.etree import ElementTree

import pytest
from confluent_kafka.admin import AdminClient

from canary_clients import verdict
from tests.integration.canary_broker import NO_DAMAGE, broker, counted, flows, home, recorded, runs, settings, until
from tests.integration.servers import free_port

__all__ = ["broker", "home", "settings"]

pytestmark = pytest.mark.real

ROOT = pathlib.Path(__file__).resolve().parents[2]


def canary_clients(*arguments: Any) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "canary_clients", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


@contextlib.contextmanager
def started(settings: Dict[str, Any], directory: pathlib.Path) -> Iterator[int]:
    """Start detached clients and yield their pid; kill them at the end."""
    file = directory.parent / f"{directory.name}.json"
    file.write_text(json.dumps(settings))
    done = canary_clients("run", "--config", file, "--dir", directory, "--daemon")
    assert done.returncode == 0, done.stderr
    pid = int((directory / "lock").read_text())
    try:
        yield pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def has_worked(result: Dict[str, Any]) -> bool:
    """Return whether each client of a run has done what it is there for: one with transactions, one for the admin."""
    return result["aborted"] > 0 and result["admin"]["operations"].get("create topic", {}).get("ok", 0) > 3


def has_noted(result: Dict[str, Any], code: str) -> bool:
    return code in {note["code"] for note in result["notes"]}


def test_broker_restarts_lose_nothing(broker, settings, tmp_path):
    run = tmp_path / "run"
    with started(settings, run):
        assert canary_clients("mark", "--dir", run, "--kind", "phase", "--name", "before").returncode == 0
        flows(run, 1000)
        assert canary_clients("verdict", "--dir", run).returncode == verdict.EXIT_CODES["incomplete"]
        assert canary_clients("mark", "--dir", run, "--kind", "phase", "--name", "roll").returncode == 0
        began = time.time()
        broker.stop()
        broker.start()
        took = time.time() - began
        canary_clients(
            "mark", "--dir", run, "--kind", "restart", "--name", "roll", "--host", "kafka1", "--seconds", took
        )
        flows(run, 1000)
        broker.kill()
        broker.start()
        flows(run, 1000)
        until(lambda: has_worked(recorded(run)), lambda: recorded(run))
        done = canary_clients("stop", "--dir", run, "--json", tmp_path / "result.json")
    result = json.loads((tmp_path / "result.json").read_text())
    assert done.returncode == 0, done.stdout + done.stderr
    assert counted(result) == NO_DAMAGE
    assert result["verdict"] == "pass"
    assert result["acked"] == result["received"] > 3000
    assert result["run"]["audit"]["messages"] == result["acked"]
    assert has_worked(result)
    assert 500 < result["by_phase"]["roll"]["max_producer_stall_ms"] < 120_000
    assert result["admin"]["final"]["expected"] > 0

    assert canary_clients("picture", "--dir", run, "--out", tmp_path / "run.svg").returncode == 0
    text = " ".join(ElementTree.parse(tmp_path / "run.svg").getroot().itertext())
    for label in ("PASS", "before", "roll", "kafka1", "0 lost", "producer stalls"):
        assert label in text


def test_killed_clients_give_an_incomplete_verdict(broker, settings, tmp_path):
    run = tmp_path / "run"
    with started(settings, run) as pid:
        flows(run, 600)
        assert canary_clients("run", "--config", tmp_path / "run.json", "--dir", run).returncode == 2
        os.kill(pid, signal.SIGKILL)
        until(lambda: not runs(pid))
        done = canary_clients("stop", "--dir", run, "--json", tmp_path / "result.json")
    result = json.loads((tmp_path / "result.json").read_text())
    assert done.returncode == verdict.EXIT_CODES["incomplete"], done.stdout
    assert "cut short" in result["reasons"][0]
    assert counted(result) == NO_DAMAGE
    assert result["acked"] > 500
    again = canary_clients("run", "--config", tmp_path / "run.json", "--dir", run, "--daemon")
    assert again.returncode == 2 and "contains the ledger of an earlier run" in again.stderr


def test_unreachable_cluster_is_named_at_once(tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"bootstrap_servers": f"127.0.0.1:{free_port()}", "start_timeout_s": 3}))
    for more in ((), ("--daemon",)):
        done = canary_clients("run", "--config", file, "--dir", tmp_path / "run", *more)
        assert done.returncode == 2
        assert "127.0.0.1" in done.stderr
        assert "Traceback" not in done.stderr


def test_truncated_log_is_detected(broker, settings, tmp_path):
    """Acknowledged and received messages are truncated while the broker is down."""
    run = tmp_path / "run"
    keyed = f"{settings['topic_prefix']}.keyed"
    with started({**settings, "delivery_timeout_s": 20, "drain_timeout_s": 10}, run):
        flows(run, 600)
        broker.kill()
        log = pathlib.Path(broker.properties["log.dirs"].split(",")[0]) / f"{keyed}-0" / "00000000000000000000.log"
        os.truncate(log, log.stat().st_size // 2)
        broker.start()
        until(lambda: has_noted(recorded(run), "LOG_TRUNCATION"), lambda: recorded(run))
        done = canary_clients("stop", "--dir", run, "--json", tmp_path / "result.json")
    result = json.loads((tmp_path / "result.json").read_text())
    assert done.returncode == verdict.EXIT_CODES["fail"], done.stdout + done.stderr
    assert result["lost"] > 10
    assert {(e["topic"], e["partition"]) for e in result["examples"]["lost"]} == {(keyed, 0)}
    # what librdkafka takes for a truncation is not trusted alone, see Member._on_message_error
    assert has_noted(result, "LOG_TRUNCATION")


def test_deleted_topic_is_detected(broker, settings, tmp_path):
    """Clients wait for an unknown topic; the verdict still counts its messages as lost."""
    run = tmp_path / "run"
    keyed = f"{settings['topic_prefix']}.keyed"
    with started({**settings, "delivery_timeout_s": 20, "drain_timeout_s": 10}, run):
        flows(run)
        admin = AdminClient({"bootstrap.servers": settings["bootstrap_servers"]})
        admin.delete_topics([keyed])[keyed].result(20)
        flows(run)
        done = canary_clients("stop", "--dir", run, "--json", tmp_path / "result.json")
    result = json.loads((tmp_path / "result.json").read_text())
    assert done.returncode == verdict.EXIT_CODES["fail"], done.stdout + done.stderr
    assert result["lost"] > 0
    assert {e["topic"] for e in result["examples"]["lost"]} == {keyed}
