# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a module of the collection as Ansible does, in a process of its own, and clusters in both modes for it."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any, Iterator, List

from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from confluent_kafka.admin import AdminClient

from tests import modules
from tests.integration import servers

ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{modules.ROOT / '.build'}:{modules.ROOT}"}
_START = (
    "import json, sys; from ansible.module_utils import basic; "
    "from tools.module_args import patch_module_args; import importlib; "
    "name, given = sys.argv[1], json.loads(sys.argv[2]); "
    "module = importlib.import_module('ansible_collections.quorumshift.kafka.plugins.modules.' + name)\n"
    "with patch_module_args(given): module.main()"
)


def command(name: str, check: bool = False, **options: Any) -> List[str]:
    """Return the command that runs a module with these options, in check mode or not, always with its difference."""
    given = {**options, "_ansible_check_mode": check, "_ansible_diff": True}
    return [sys.executable, "-c", _START, name, json.dumps(given)]


def run(name: str, check: bool = False, **options: Any) -> dict:
    """Return the result of a module."""
    importlib.invalidate_caches()
    words = command(name, check, **options)
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False, env=ENVIRONMENT)
    assert done.stdout, done.stderr
    return modules.recorded(name, json.loads(done.stdout))


@contextlib.contextmanager
def locked_by(run_id: str, cluster_id: str) -> Iterator[str]:
    """Yield a state directory in which a run holds the open lock of the cluster."""
    with tempfile.TemporaryDirectory() as root:
        lock = {"number": 1, "run": run_id, "direction": "restart", "target": None, "user": "ops", "host": "control-1"}
        node = {"state_dir": root, "cluster_id": cluster_id, "role": "broker", "node_id": 1}
        directory = pathlib.Path(host_state.make_node_directory(node))
        (directory / host_state.RUN_LOCK).write_text(json.dumps({**lock, "since": 1_790_000_000, "closed": False}))
        yield root


@contextlib.contextmanager
def kraft(name: str, brokers: int = 1, settings: dict | None = None) -> Iterator[tuple]:
    """Run one controller (3000) and brokers 1, 2, ... on racks r1 and r2 in turn; yield (home, controller, brokers)."""
    with servers.workdir(name) as home, contextlib.ExitStack() as stack:
        address = HostPort("127.0.0.1", servers.free_port())
        voters = f"3000@{address}"
        controller = stack.enter_context(servers.kraft_controller(home, 3000, address, voters, settings))
        started = [
            stack.enter_context(servers.kraft_broker(home, number, voters, {"broker.rack": f"r{1 + number % 2}"}))
            for number in range(1, brokers + 1)
        ]
        ready(started)
        yield home, controller, started


@contextlib.contextmanager
def zookeeper(name: str, brokers: int = 1) -> Iterator[tuple]:
    """Run ZooKeeper and brokers 1, 2, ... on it; yield (home, connect string, brokers)."""
    with servers.workdir(name) as home, servers.zookeeper(home) as ensemble, contextlib.ExitStack() as stack:
        connect = f"{ensemble.connect}/kafka"
        started = [
            stack.enter_context(servers.zk_broker(home, number, connect, {"broker.rack": f"r{1 + number % 2}"}))
            for number in range(1, brokers + 1)
        ]
        ready(started)
        yield home, connect, started


def ready(brokers: list) -> None:
    """Wait until each broker knows all of them and the controller."""
    for broker in brokers:
        admin = AdminClient({"bootstrap.servers": str(broker.address)})
        servers.wait_for(
            lambda admin=admin: servers.knows_controller(admin, len(brokers)), 60, f"{broker.name} knows all"
        )
