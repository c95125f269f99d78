# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service's state from systemd and /proc, as printed by this host or the testbed (systemd 252)."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import service
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import installation, node

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
def test_properties_file_of_a_unit(arguments, file):
    assert service._properties_file(EXEC_START.format(SCRIPT, arguments)) == file


def state_of(monkeypatch, **shown):
    text = "\n".join(f"{key}={value}" for key, value in shown.items())
    monkeypatch.setattr(service, "runs_systemd", lambda: True)
    monkeypatch.setattr(service, "_run", lambda command: subprocess.CompletedProcess(command, 0, text, ""))
    return service.read_state("kafka")


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
def test_starting_service_is_active_and_ended_one_is_not(monkeypatch, state, sub_state, active):
    assert state_of(monkeypatch, LoadState="loaded", ActiveState=state, SubState=sub_state)["active"] == active


def test_state_of_a_unit(monkeypatch):
    state = state_of(
        monkeypatch,
        LoadState="loaded",
        ActiveState="active",
        UnitFileState="disabled",
        ExecStart=EXEC_START.format(SCRIPT, "/etc/kafka/x.properties"),
    )
    assert state["starts_with"] == "/etc/kafka/x.properties"
    assert state["unit_file_state"] == "disabled" and not state["masked"] and state["exists"]


@pytest.fixture
def kafka(tmp_path):
    """A function that starts a process with Kafka's command line, ended afterwards."""
    started = []

    def start(*arguments, shell=False):
        command = [sys.executable, "-c", "import time; time.sleep(60)", *arguments]
        if shell:
            command = ["sh", "-c", '"$@" & wait', "sh", *command]
        process = subprocess.Popen(command, cwd=tmp_path, start_new_session=True)
        started.append(process)
        deadline = time.monotonic() + 10
        while arguments and arguments[-1] not in node.find_process(process.pid)[1] and time.monotonic() < deadline:
            time.sleep(0.02)
        return process.pid

    yield start
    for process in started:
        os.killpg(process.pid, 9)
        process.wait()


def test_properties_file_of_a_running_broker(kafka, tmp_path):
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


def test_broker_that_runs_below_a_shell_is_found(kafka, tmp_path):
    pid = kafka("/libs/kafka_2.13-3.9.2.jar", "kafka.Kafka", "/etc/x.properties", shell=True)
    assert node._runs_with(pid, "/etc/x.properties") == {"path": "/etc/x.properties", "same": True, "overrides": []}
    assert installation.running_version(*node.find_process(pid)) == "3.9.2"


def test_linked_properties_file_of_a_unit_is_the_same_file(tmp_path):
    path, link = tmp_path / "a", tmp_path / "b"
    link.symlink_to(path)
    assert node._starts_with(str(link), str(path)) == {"path": str(link), "same": True}
    assert node._starts_with("/etc/other", str(path)) == {"path": "/etc/other", "same": False}
    assert node._starts_with(None, str(path)) is None


@pytest.mark.parametrize("arguments", [(), ("kafka.Kafka",), ("org.example.Main", "x.properties")])
def test_other_process_is_not_a_broker(kafka, arguments):
    assert node._runs_with(kafka(*arguments), "x.properties") is None
    assert node._runs_with(0, "x.properties") is None


def test_space_of_a_missing_directory_is_that_of_its_parent(tmp_path):
    space = node.read_space(str(tmp_path / "not" / "yet"))
    assert space["path"] == str(tmp_path) and space["free_bytes"] > 0 and space["read_only"] is False
    assert node.read_space("") is None


def test_environment_of_a_service_is_that_of_its_process(monkeypatch):
    monkeypatch.setattr(service, "read_state", lambda _name: {"main_pid": os.getpid()})
    with open(f"/proc/{os.getpid()}/environ", "rb") as stream:
        expected = stream.read().count(b"\0")
    assert len(service.read_environment("kafka")) == expected > 0


def test_environment_of_a_unit_that_is_down_is_that_of_its_files(monkeypatch, tmp_path):
    file = tmp_path / "kafka.env"
    file.write_text("# no=comment\nPW='a b'\n\nHEAP=1g\n")
    shown = f'EnvironmentFiles={file} (ignore_errors=yes)\nEnvironment=HEAP=2g "OPTS=-x y"\n'
    monkeypatch.setattr(service, "read_state", lambda _name: {"main_pid": 0})
    monkeypatch.setattr(service, "runs_systemd", lambda: True)
    monkeypatch.setattr(service, "_run", lambda command: subprocess.CompletedProcess(command, 0, shown, ""))
    assert service.read_environment("kafka") == {"HEAP": "1g", "OPTS": "-x y", "PW": "a b"}
    file.unlink()
    assert service.read_environment("kafka") == {"HEAP": "2g", "OPTS": "-x y"}
    shown = shown.replace("=yes", "=no")
    assert service.read_environment("kafka") is None


def test_the_last_file_of_environment_overrides_the_others(monkeypatch, tmp_path):
    """As the unit names them, whatever their paths are."""
    for name, text in (("z.env", "PW=old one\nA=it's\n"), ("a.env", "PW=new one\n")):
        (tmp_path / name).write_text(text)
    shown = "".join(f"EnvironmentFiles={tmp_path / name} (ignore_errors=no)\n" for name in ("z.env", "a.env"))
    monkeypatch.setattr(service, "read_state", lambda _name: {"main_pid": 0})
    monkeypatch.setattr(service, "runs_systemd", lambda: True)
    monkeypatch.setattr(service, "_run", lambda command: subprocess.CompletedProcess(command, 0, shown, ""))
    assert service.read_environment("kafka") == {"PW": "new one", "A": "it's"}
