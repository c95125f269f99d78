# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd and /proc tell of a service, as this host or the bed (systemd 252) printed it."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import node, service

EXEC_START = (
    "{{ path={0} ; argv[]={0} {1} ; ignore_errors=no ; start_time=[Sat 2026-11-21 17:14:40 UTC] ; "
    "stop_time=[n/a] ; pid=39 ; code=(null) ; status=0/0 }}"
)
SCRIPT = "/opt/kafka/bin/kafka-server-start.sh"


@pytest.mark.parametrize(
    ("arguments", "file"),
    [
        ("/etc/kafka/server.properties", "/etc/kafka/server.properties"),
        ("-daemon /etc/kafka/server.properties --override broker.id=4", "/etc/kafka/server.properties"),
        ("-Dlog4j.configuration=file:/etc/kafka/log4j.properties /etc/kafka/log4j.properties", None),
        ("${CONF_DIR}/server.properties", None),
        ("config/server.properties", None),
        ("", None),
    ],
)
def test_the_file_that_a_unit_names(arguments, file):
    assert service._properties_file(EXEC_START.format(SCRIPT, arguments)) == file


def shown(monkeypatch, **tokens):
    text = "\n".join(f"{key}={value}" for key, value in tokens.items())
    monkeypatch.setattr(service, "_systemd", lambda: True)
    monkeypatch.setattr(service, "_run", lambda command: subprocess.CompletedProcess(command, 0, text, ""))
    return service.state("kafka")


@pytest.mark.parametrize(
    ("state", "sub_state", "active"),
    [
        ("active", "running", True),
        ("deactivating", "stop-sigterm", True),
        ("activating", "start-pre", True),
        ("activating", "start", True),
        ("activating", "auto-restart", False),
        ("inactive", "dead", False),
        ("failed", "failed", False),
    ],
)
def test_a_service_that_starts_is_active_and_one_that_ended_is_not(monkeypatch, state, sub_state, active):
    assert shown(monkeypatch, LoadState="loaded", ActiveState=state, SubState=sub_state)["active"] == active


def test_what_systemd_says_of_a_unit(monkeypatch):
    reported = shown(
        monkeypatch,
        LoadState="loaded",
        ActiveState="active",
        UnitFileState="disabled",
        ExecStart=EXEC_START.format(SCRIPT, "/etc/kafka/x.properties"),
    )
    assert reported["starts_with"] == "/etc/kafka/x.properties"
    assert reported["unit_file_state"] == "disabled" and not reported["masked"] and reported["exists"]


@pytest.fixture
def kafka(tmp_path):
    """A function that starts a process which looks like Kafka from outside, ended afterwards."""
    started = []

    def start(*arguments, shell=False):
        command = [sys.executable, "-c", "import time; time.sleep(60)", *arguments]
        if shell:
            command = ["sh", "-c", '"$@" & wait', "sh", *command]
        process = subprocess.Popen(command, cwd=tmp_path, start_new_session=True)
        started.append(process)
        deadline = time.monotonic() + 10
        while arguments and arguments[-1] not in node.process(process.pid)[1] and time.monotonic() < deadline:
            time.sleep(0.02)
        return process.pid

    yield start
    for process in started:
        os.killpg(process.pid, 9)
        process.wait()


def test_the_file_that_a_broker_runs_with(kafka, tmp_path):
    path = tmp_path / "server.properties"
    path.touch()
    (tmp_path / "link.properties").symlink_to(path)
    pid = kafka("kafka.Kafka", "link.properties", "--override", "broker.id=4", "--override", "ssl.key.password=secret")
    assert node._runs_with(pid, str(path)) == {
        "path": str(tmp_path / "link.properties"),
        "same": True,
        "overrides": ["broker.id", "ssl.key.password"],
    }
    assert not node._runs_with(pid, "/etc/kafka/server.properties")["same"]


def test_a_broker_behind_a_shell(kafka, tmp_path):
    pid = kafka("/libs/kafka_2.13-3.9.2.jar", "kafka.Kafka", "/etc/x.properties", shell=True)
    assert node._runs_with(pid, "/etc/x.properties") == {"path": "/etc/x.properties", "same": True, "overrides": []}
    assert node._running_version(pid) == "3.9.2"


def test_the_file_that_a_unit_names_may_be_a_link(tmp_path):
    path, link = tmp_path / "a", tmp_path / "b"
    link.symlink_to(path)
    assert node._starts_with(str(link), str(path)) == {"path": str(link), "same": True}
    assert node._starts_with("/etc/other", str(path)) == {"path": "/etc/other", "same": False}
    assert node._starts_with(None, str(path)) is None


@pytest.mark.parametrize("arguments", [(), ("kafka.Kafka",), ("org.example.Main", "x.properties")])
def test_what_is_no_broker(kafka, arguments):
    assert node._runs_with(kafka(*arguments), "x.properties") is None
    assert node._runs_with(0, "x.properties") is None


def test_room_where_a_directory_will_be_made(tmp_path):
    reported = node.space(str(tmp_path / "not" / "yet"))
    assert reported["path"] == str(tmp_path) and reported["free_bytes"] > 0 and reported["read_only"] is False
    assert node.space("") is None
