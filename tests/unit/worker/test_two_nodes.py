# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A broker and a controller of one cluster on one host, with the same id: whatever the order of their restarts' steps,
the files of each are as if it were alone there.

Every interleaving is run: of a restart that ends well, one whose worker is killed at a step and that is finished then,
and one whose node does not come up. The files are real; the services are simulated.
"""

from __future__ import annotations

import itertools
import json
import os
import pathlib
import threading
import time

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import metadata_summary
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state, run_lock_file, service
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import own_node
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker import (
    restart_record,
    restart_steps,
    restart_worker,
)

FLAG = "zookeeper.metadata.migration.enable"
BROKER = f"broker.id=2\nzookeeper.connect=z:2181\n{FLAG}=true\n"
CONTROLLER = f"node.id=2\nprocess.roles=controller\n{FLAG}=true\n"
TO_KRAFT = {**dict.fromkeys(properties.parse(BROKER.encode())), "node.id": "2", "process.roles": "broker"}
KINDS = {"broker": ("kraft", BROKER, TO_KRAFT), "controller": ("controller_final", CONTROLLER, {FLAG: None})}
LOCK = {"number": 1, "run": "r", "direction": "forward", "user": "ops", "host": "h", "since": 1.0, "closed": False}
PAUSES = ("stop", "write the file")  # steps at which the other node may go on
ENDS = {
    "broker": ("well", "killed at stop", "killed at write the file", "broken"),
    "controller": ("well", "killed at stop", "killed at write the file"),
}


class Killed(BaseException):
    """The worker was killed."""


class Node(threading.Thread):
    """A node with a run on it. It goes on with `advance` alone, to its next pause."""

    def __init__(self, root: pathlib.Path, role: str, end: str) -> None:
        super().__init__(name=f"{role} {root}")
        kind, text, self.changes = KINDS[role]
        self.home, self.end, self.state_dir = root / role, end, root / "state"
        (self.home / "data" / "__cluster_metadata-0").mkdir(parents=True)
        (self.home / "data" / "meta.properties").write_text("version=1\ncluster.id=cluster\nnode.id=2\n")
        self.file = self.home / "node.properties"
        self.file.write_text(f"{text}log.dirs={self.home}/data\n")
        self.active, self.kills, self.error, self.has_ended = True, 1, None, False
        self.spec = {
            **{"id": f"r/{kind}/{role}", "kind": kind, "mode": kind, "run": "r", "role": role, "node_id": 2},
            **{"cluster_id": "cluster", "state_dir": str(self.state_dir), "service": role, "owner": None},
            **{"config_file": str(self.file), "log_file": str(self.home / "log"), "format": None, "registered": []},
            **{"stop_timeout_s": 1, "start_timeout_s": 1, "run_key": "k"},
        }
        self._go, self._paused = threading.Semaphore(0), threading.Semaphore(0)

    def mode(self) -> str:
        return kraft_config.mode_at_next_start(properties.parse(self.file.read_bytes()))

    def run(self) -> None:
        self._go.acquire()
        try:
            self.work()
        except BaseException as error:  # shown by the test
            self.error = error
        self.has_ended = True
        self._paused.release()

    def work(self) -> None:
        """Do what a run does on the node, and the next task where a worker was killed."""
        directory = host_state.make_node_directory(self.spec)
        run_lock_file.take(directory, LOCK, {})
        try:
            restart_worker.begin({**self.spec, "changes": self.changes})
        except Killed:
            self.pause()
            assert restart_worker.watch(self.spec, self.spec["id"], 99, 0)["outcome"] == "died"
            restart_worker.finish({**self.spec, "id": "r/repair", "changes": {}})
        self.pause()
        assert run_lock_file.close(directory, "r", "ok")

    def step(self, name: str) -> None:
        """Be killed at a step, or let the other node go on."""
        if self.end == f"killed at {name}" and self.kills:
            self.kills = 0
            raise Killed
        if name in PAUSES:
            self.pause()

    def pause(self) -> None:
        self._paused.release()
        self._go.acquire()

    def advance(self) -> None:
        self._go.release()
        self._paused.acquire()

    def files(self) -> dict[str, bytes]:
        """Return what the node has on its host, without the name of the test's directory."""
        root = str(self.home.parent).encode()
        own = self.state_dir / "cluster" / f"{self.spec['role']}-2"
        found = [self.file, *(path for path in sorted(own.rglob("*")) if path.is_file())]
        return {str(path.relative_to(self.home.parent)): path.read_bytes().replace(root, b"ROOT") for path in found}


@pytest.fixture
def nodes(monkeypatch):
    """Return a function that makes a started node; services and clock are simulated for all of them."""
    by_service: dict[tuple[str, str], Node] = {}

    def current(unit: str) -> Node:
        return by_service[unit, threading.current_thread().name.partition(" ")[2]]

    def state(unit):
        active = current(unit).active
        shown = {"manager": "systemd", "active_state": "active" if active else "failed", "sub_state": ""}
        return {**shown, "active": active, "started_at": 1.0, "main_pid": 0, "result": "exit-code", "invocation": "1"}

    def begin(action, unit):
        node = current(unit)
        node.active = action == "start" and not (node.end == "broken" and node.mode() == "kraft")

    def await_up(spec, record, *_given):
        record.step("register")
        if not current(spec["service"]).active:
            raise restart_steps.RestartError("ended while it started (QS-RESTART-012)")

    def step(record, name, recorded=restart_record.Record.step):
        recorded(record, name)
        current(record.values["service"]).step(name)

    def detach(record, work, spec):
        record.step("begun")
        work(spec, record, record.directory)
        return record.values

    monkeypatch.setattr(time, "time", lambda: 1000.0)
    monkeypatch.setattr(os, "fsync", lambda _handle: None)
    monkeypatch.setattr(service, "read_state", state)
    monkeypatch.setattr(service, "begin", begin)
    monkeypatch.setattr(own_node, "read_running_mode", lambda _values, _file, unit: current(unit).mode())
    monkeypatch.setattr(own_node, "read_registration", lambda *_given: {})
    log = {"zk_migration_state": "MIGRATION", "log_end_offset": 7}
    monkeypatch.setattr(metadata_summary, "summarise", lambda _path: log)
    monkeypatch.setattr(restart_steps, "await_up", await_up)
    monkeypatch.setattr(restart_steps, "_await_session_end", lambda *_given: None)
    monkeypatch.setattr(restart_record.Record, "step", step)
    monkeypatch.setattr(restart_worker, "_detach", detach)

    def make(root, role, end):
        node = by_service[role, str(root)] = Node(root, role, end)
        node.start()
        return node

    return make


def run_alone(node):
    """Run a node's work to its end; return the number of its parts and its files."""
    parts = 0
    while not node.has_ended:
        node.advance()
        parts += 1
    node.join()
    assert node.error is None
    return parts, node.files()


def interleavings(first: int, second: int):
    """Yield every order of so many parts of two nodes, as the indices of the nodes."""
    for places in itertools.combinations(range(first + second), first):
        yield [0 if place in places else 1 for place in range(first + second)]


@pytest.mark.parametrize("ends", list(itertools.product(*ENDS.values())), ids="-".join)
def test_each_node_is_as_if_it_were_alone(tmp_path, nodes, ends):
    found = [run_alone(nodes(tmp_path / "alone" / role, role, end)) for role, end in zip(ENDS, ends)]
    outcomes = [
        json.loads(files[f"state/cluster/{role}-2/restart.json"])["outcome"] for role, (_n, files) in zip(ENDS, found)
    ]
    assert outcomes == ["reverted" if end == "broken" else "done" for end in ends]
    parts, expected = [count for count, _files in found], [files for _count, files in found]
    for number, order in enumerate(interleavings(*parts)):
        root = tmp_path / str(number)
        both = [nodes(root, role, end) for role, end in zip(ENDS, ends)]
        for index in order:
            both[index].advance()
        for node in both:
            node.join()
        assert [node.error for node in both] == [None, None], order
        assert [node.files() for node in both] == expected, order
        assert sorted(os.listdir(root / "state" / "cluster")) == ["broker-2", "controller-2"]
