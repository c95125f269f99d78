# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook `support_bundle` against a real broker that asks for a login, while it runs and after it was killed."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tarfile

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets import redaction

from tests.integration import servers

pytestmark = pytest.mark.real

ROOT = pathlib.Path(__file__).resolve().parents[2]
PASSWORD, PLUGIN = "T0p/Secret+word", "Plug1nWord"
SETTINGS = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,LOGIN:SASL_PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.name.login.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.login.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="ops" password="{PASSWORD}" user_ops="{PASSWORD}";'
    ),
    "my.plugin.word": PLUGIN,
}


def inventory(home, broker, zookeeper):
    variables = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "quorumshift_bootstrap_servers": [str(broker.listeners["LOGIN"])],
        "quorumshift_zookeeper_connect": zookeeper.connect,
        "quorumshift_client": {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_username": "ops",
            "sasl_password": PASSWORD,
        },
        "quorumshift_artifacts_dir": str(home / "artifacts"),
        "quorumshift_state_dir": str(home / "nodes"),
    }
    node = {
        "quorumshift_broker_config_file": str(broker.home / "server.properties"),
        "quorumshift_broker_log_file": str(broker.log),
        "quorumshift_broker_service": "no-broker-service",
    }
    absent = {"quorumshift_node_id": 101, "quorumshift_controller_port": servers.free_port()}
    absent |= {
        name: str(home / "absent") for name in ("quorumshift_controller_config_file", "quorumshift_controller_log_file")
    }
    groups = {"kafka_broker": {"hosts": {"b1": node}}, "kafka_controller": {"hosts": {"c1": absent}}}
    path = home / "inventory.json"
    path.write_text(json.dumps({"all": {"vars": variables, "children": groups}}))
    return path


def made(path, **more):
    """Run the playbook; return what it printed, and the content of the bundle."""
    playbook = str(pathlib.Path(sys.executable).parent / "ansible-playbook")
    done = subprocess.run(
        [playbook, "-vvv", "-i", str(path), "-e", json.dumps(more), "playbooks/support_bundle.yml"],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_NOCOLOR": "1", "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0
    newest = max((path.parent / "artifacts").rglob("*.tar.gz"), key=os.path.getmtime)
    with tarfile.open(newest) as archive:
        return done.stdout, {member.name.partition("/")[2]: archive.extractfile(member).read() for member in archive}


def test_a_broker_that_runs_and_one_that_was_killed():
    known = redaction.Secrets([PASSWORD, PLUGIN])
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(servers.workdir("support_bundle"))
        zookeeper = stack.enter_context(servers.zookeeper(home))
        listeners = {name: f"127.0.0.1:{servers.free_port()}" for name in ("PLAINTEXT", "LOGIN")}
        broker = stack.enter_context(servers.zk_broker(home, 1, zookeeper.connect, SETTINGS, listeners))
        path = inventory(home, broker, zookeeper)
        printed, files = made(path)
        assert json.loads(files["status.json"])["phase"] == "zk" and b"online" in files["status.txt"]
        assert b"started (kafka.server.KafkaServer)" in files["hosts/b1/node.log"]
        assert b"my.plugin.word=********" in files["hosts/b1/node.properties"]
        assert "! missing: hosts/c1/node.properties" in printed and "! missing: status" not in printed
        # A log may have what a client sent, in whatever form
        with open(broker.log, "a", encoding="utf-8") as log:
            log.write(f"[2026-11-29 00:00:00,000] WARN bad login T0p%2FSecret%2Bword {PLUGIN} (x.Y)\n")
        broker.kill()
        later, files_later = made(path, support_hide_hosts=True)
        assert "! missing: status" in later or b"offline" in files_later["status.txt"]
        assert any(b"WARN bad login ******** ********" in data for data in files_later.values())
        for text in (printed, later, *(data.decode() for data in (*files.values(), *files_later.values()))):
            assert not known.find_survivor(text)
