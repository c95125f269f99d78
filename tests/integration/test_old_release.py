# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A broker of Kafka 2.8.2, older than the oldest release that is supported: every run is refused at its beginning."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import time

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import kafka_wire

from tests.integration import admin_bed, servers

pytestmark = pytest.mark.real

ROOT = pathlib.Path(__file__).resolve().parents[2]
RELEASE = "2.8.2"
BOUND = "Kafka 3.1 is the oldest release that can be restarted, upgraded or reassigned here"
LACKS = "does not offer Metadata 12 (it offers 0 to 11)"


def inventory(home, broker, connect):
    """Write the inventory of the broker, whose host is this one; return its file."""
    host = {
        "quorumshift_broker_config_file": str(broker.home / "server.properties"),
        "quorumshift_broker_log_file": str(broker.log),
        "quorumshift_broker_service": "no-broker-service",
        "quorumshift_state_dir": str(home / "nodes"),
    }
    shared = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "quorumshift_bootstrap_servers": [str(broker.address)],
        "quorumshift_zookeeper_connect": connect,
        "quorumshift_artifacts_dir": str(home / "artifacts"),
        "quorumshift_state_dir": str(home / "state"),
    }
    path = home / "inventory.json"
    path.write_text(json.dumps({"all": {"vars": shared, "children": {"kafka_broker": {"hosts": {"b1": host}}}}}))
    return path


def play(path, name, **more):
    """Return the exit code and output of a playbook."""
    words = [str(pathlib.Path(sys.executable).parent / "ansible-playbook"), "-i", str(path), "-e", json.dumps(more)]
    done = subprocess.run(
        [*words, f"playbooks/{name}.yml"],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_NOCOLOR": "1", "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    print(f"--- {name}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.returncode, " ".join(done.stdout.split())


def test_an_older_release_is_refused_at_the_beginning(monkeypatch):
    monkeypatch.setenv("QUORUMSHIFT_KAFKA_LIBS", str(servers.libs_of(RELEASE)))
    with servers.workdir("old-release") as home, servers.zookeeper(home) as ensemble:
        connect = f"{ensemble.connect}/kafka"
        older = {"inter.broker.protocol.version": None}
        with servers.zk_broker(home, 1, connect, older) as broker:
            assert kafka_wire.api_versions(broker.address).api_keys[3] == (0, 11)
            path = inventory(home, broker, connect)
            started = broker.pid
            upgrade = {"upgrade_to": "3.9.2", "upgrade_home": str(servers.BUILD / "kafka")}
            for name, more in (
                ("restart", {}),
                ("upgrade", upgrade),
                ("reassign", {"reassign_drain": 1, "reassign_apply": True}),
            ):
                began = time.monotonic()
                code, text = play(path, name, **more)
                assert code == 2 and BOUND in text and LACKS in text and "QS-RUN-017" in text, name
                assert time.monotonic() - began < 120, "it is no wait that ends"
            assert not list(home.glob("nodes/*/*/run_lock.json")), "no lock is taken"
            assert broker.pid == started and broker.is_started()

            given = {"bootstrap_servers": [str(broker.address)]}
            said = admin_bed.run("partition_reassignment_info", **given)
            assert said["failed"] and BOUND in said["msg"] and LACKS in said["msg"], said
            # what only shows goes on
            code, text = play(path, "status")
            assert code == 0 and "[zk]" in text and f"reassignments: not read: {broker.address}: {BOUND}" in text
