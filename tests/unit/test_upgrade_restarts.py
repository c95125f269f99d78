# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Restarts of an upgrade with real links, real processes and a real worker: what a node goes back to, also after its
worker was killed at any step, and what the operator's hook sees and does.

A release is a directory whose start script runs a process that keeps the release's jar open, as a JVM does. A broken
release's process ends at once.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import kafka_homes
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import transitions
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state, service
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import installation, own_node
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import own_zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker import (
    auto_revert,
    home_link,
    restart_record,
    restart_worker,
)

OLD, NEW = "3.7.2", "3.9.2"
PLAIN = "broker.id=2\nzookeeper.connect=z:2181\n"
PINNED = {"inter.broker.protocol.version": "3.7"}
BOUND_S = 30

# What a release's start script runs: kafka.Kafka is how node.find_process knows a Kafka
_NODE = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_given: sys.exit(0))
held = open(sys.argv[1])
open(sys.argv[3] + ".up", "w").close()
while True:
    time.sleep(0.05)
"""


class Node:
    """A host's service: systemd's commands on a real process, which is started through the link."""

    def __init__(self, directory: pathlib.Path, link: bool = True):
        self.directory, self.home = directory, directory / "kafka"
        self.file, self.log = directory / "server.properties", directory / "server.log"
        self.loops = False
        self.pids, self.up = directory / "pid", pathlib.Path(f"{directory / 'server.properties'}.up")
        (directory / "data").mkdir()
        (directory / "data" / "meta.properties").write_text("version=0\ncluster.id=cluster\nbroker.id=2\n")
        self.file.write_text(f"{PLAIN}log.dirs={directory}/data\n")
        if link:
            for version in (OLD, NEW):
                self.install(directory / f"kafka-{version}", version)
            self.home.symlink_to(f"kafka-{OLD}")
        else:
            self.install(self.home, OLD)
        self.state_dir = directory / "state"
        lock = os.path.join(host_state.make_node_directory(self.spec()), host_state.RUN_LOCK)
        host_state.write_json(lock, {"number": 1, "run": "r", "closed": False})

    def install(self, home, version, broken=False):
        """Put a release in a directory, in place of the one that is there."""
        for name in ("libs", "bin"):
            (home / name).mkdir(parents=True, exist_ok=True)
        for jar in (home / "libs").glob("*.jar"):
            jar.unlink()
        jar = home / "libs" / f"kafka_2.13-{version}.jar"
        jar.write_text(version)
        script = home / "bin" / "kafka-server-start.sh"
        node = home / "bin" / "node.py"
        node.write_text("raise SystemExit(1)" if broken else _NODE)
        jars = f"{self.home}/libs/{jar.name}"
        script.write_text(f"#!/bin/sh\nexec {sys.executable} {self.home}/bin/node.py {jars} kafka.Kafka {self.file}\n")
        script.chmod(0o755)

    def breaks(self, version):
        (self.directory / f"kafka-{version}" / "bin" / "node.py").write_text("raise SystemExit(1)")

    @property
    def pid(self):
        return int(self.pids.read_text()) if self.pids.exists() else 0

    @property
    def active(self):
        try:
            return pathlib.Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    def state(self, _name):
        shown, loops = "active" if self.active else "failed", not self.active and self.loops
        shown = "activating" if loops else shown
        state = {
            "manager": "systemd",
            "sub_state": "auto-restart" if loops else "",
            "result": "exit-code",
            "started_at": time.time(),
        }
        pid = self.pid if self.active else 0
        return {**state, "active": self.active, "active_state": shown, "main_pid": pid, "invocation": str(self.pid)}

    def begin(self, action, _name):
        if action == "stop":
            self.loops = False
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)
            return
        self.up.unlink(missing_ok=True)
        with open(self.log, "a", encoding="utf-8") as log:
            log.write(f"INFO starts {os.path.realpath(self.home)}\n")
        # The new process has init for parent, so that it leaves no zombie
        start = f"setsid {self.home}/bin/kafka-server-start.sh </dev/null >/dev/null 2>&1 & echo $! > {self.pids}"
        subprocess.run(["sh", "-c", start], check=True)

    def mode(self, *_given):
        return "zk" if self.active and self.up.exists() else None

    def start(self):
        self.begin("start", "kafka")
        until(lambda: self.mode() == "zk")

    def target(self):
        return os.path.basename(os.readlink(self.home))

    def version(self):
        return home_link.read_running_version("kafka")

    @property
    def record(self):
        return restart_record.read(str(self.state_dir / "cluster" / "broker-2"))

    def spec(self, **more):
        given = {
            "id": f"r/{time.monotonic()}",
            "run": "r",
            "role": "broker",
            "node_id": 2,
            "cluster_id": "cluster",
            "kind": "upgrade_broker",
        }
        given.update(
            state_dir=str(self.state_dir), service="kafka", config_file=str(self.file), owner=None, format=None
        )
        given.update(
            log_file=str(self.log), stop_timeout_s=BOUND_S, start_timeout_s=BOUND_S, registered=[], run_key="k"
        )
        given.update(mode="zk", changes=PINNED, host="b2", hook=None, hook_timeout_s=BOUND_S)
        return {**given, **more}

    def release(self, version=NEW, to=None):
        return {"home": str(self.home), "to": str(to or self.directory / f"kafka-{version}"), "version": version}

    def upgrade(self, version=NEW, **more):
        """Upgrade the node by a worker of its own; return its record."""
        restart_worker.begin(self.spec(**{"release": self.release(version), **more}))
        return self.ended()

    def finish(self, **more):
        restart_worker.finish(self.spec(changes={}, release=None, **more))
        return self.ended()

    def ended(self):
        """Wait until the worker has ended or is gone; return the record."""
        until(lambda: not host_state.is_held(str(self.state_dir / "cluster" / "broker-2")))
        return self.record

    def steps(self):
        return [step["name"] for step in self.record["steps"]]


def until(condition):
    ends = time.monotonic() + BOUND_S
    while not condition():
        assert time.monotonic() < ends, "not in time"
        time.sleep(0.02)


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A function that returns a host whose broker runs the old release."""
    nodes = []

    def make(link=True):
        node = Node(tmp_path, link)
        nodes.append(node)
        monkeypatch.setattr(service, "read_state", node.state)
        monkeypatch.setattr(service, "begin", node.begin)
        monkeypatch.setattr(service, "runs_systemd", lambda: False)
        monkeypatch.setattr(service, "is_running", lambda _unit: False)
        monkeypatch.setattr(own_node, "read_running_mode", node.mode)
        monkeypatch.setattr(own_node, "read_registration", lambda *_given: {})
        monkeypatch.setattr(
            own_zookeeper, "collect", lambda _values, timeout=10: {"brokers": ["2"] if node.mode() else []}
        )
        node.start()
        assert node.version() == OLD
        return node

    yield make
    for node in nodes:
        if node.active:
            os.kill(node.pid, signal.SIGKILL)
            until(lambda node=node: not node.active)


@pytest.fixture
def killed(monkeypatch):
    """A function that has the next worker killed once it has recorded a step, before it takes it, or after it."""

    def kill(step, taken=False):
        recorded, real = restart_record.Record.step, {}

        def dies(record, name):
            if real.get("next"):
                os.kill(os.getpid(), signal.SIGKILL)
            recorded(record, name)
            if name == step:
                real["next"] = True
                if not taken:
                    os.kill(os.getpid(), signal.SIGKILL)

        monkeypatch.setattr(restart_record.Record, "step", dies)
        return lambda: monkeypatch.setattr(restart_record.Record, "step", recorded)

    return kill


# Item by item: what the node goes back to -----------------------------------------------------------------------------


def test_a_release_that_starts_is_run(made):
    node = made()
    record = node.upgrade()
    assert record["outcome"] == "done" and node.version() == NEW and node.target() == f"kafka-{NEW}"
    assert record["earlier"]["target"] == f"kafka-{OLD}" and record["earlier"]["from_version"] == OLD


STEPS = ["keep the old file", "stop", "write the file", "switch the release", "start"]


@pytest.mark.parametrize("taken", [False, True])
@pytest.mark.parametrize("step", STEPS)
def test_the_repair_of_a_lost_worker_brings_the_node_up_whatever_the_new_release_does(made, killed, step, taken):
    node = made()
    before = node.file.read_text()
    node.breaks(NEW)
    lives = killed(step, taken)
    record = node.upgrade()
    assert record["outcome"] is None and record["steps"][-1]["name"] == step
    lives()
    until(lambda: node.active or not node.mode())
    record = node.finish()
    assert record["outcome"] in ("done", "reverted"), record
    assert node.mode() == "zk" and node.version() == OLD and node.target() == f"kafka-{OLD}"
    if record["outcome"] == "reverted":
        assert node.file.read_text() == before
        assert f"kafka did not come up with Kafka {NEW}" in record["message"]
        assert f"It is up again with kafka-{OLD}" in record["message"]
    now, was = properties.parse(node.file.read_bytes()), properties.parse(before.encode())
    assert set(now.items()) <= {*was.items(), *PINNED.items()}


def test_a_repair_whose_worker_is_lost_too_still_knows_what_the_node_had(made, killed):
    node = made()
    node.breaks(NEW)
    lives = killed("switch the release", taken=True)
    node.upgrade()
    lives()
    lives = killed("start")
    assert node.finish()["outcome"] is None
    lives()
    assert node.finish()["outcome"] == "reverted" and node.version() == OLD


def test_a_new_upgrade_after_a_lost_worker_still_knows_what_the_node_had(made, killed):
    node = made()
    node.breaks(NEW)
    lives = killed("switch the release", taken=True)
    node.upgrade()
    lives()
    assert node.target() == f"kafka-{NEW}" and not node.active
    record = node.upgrade(only_start=True)
    assert record["outcome"] == "reverted" and node.version() == OLD and node.target() == f"kafka-{OLD}"


def test_a_repair_takes_nothing_back_that_was_corrected_since(made, killed):
    node = made()
    lives = killed("start")
    node.upgrade()
    lives()
    corrected = node.file.read_text() + "num.io.threads=9\n"
    node.file.write_text(corrected)
    node.breaks(NEW)
    record = node.finish()
    assert record["outcome"] == "reverted" and node.version() == OLD and node.file.read_text() == corrected


def test_a_repair_gives_no_earlier_release_back_once_the_cluster_uses_a_newer_version(made, killed):
    node = made()
    lives = killed("start")
    node.upgrade()
    lives()
    node.file.write_text(node.file.read_text().replace("protocol.version=3.7", "protocol.version=3.9"))
    node.breaks(NEW)
    record = node.finish()
    assert record["outcome"] == "failed" and node.target() == f"kafka-{NEW}"
    assert (
        "inter.broker.protocol.version was 3.7 before and is 3.9 now, so no earlier release may run"
        in record["message"]
    )


def test_a_repair_gives_no_earlier_release_back_once_metadata_version_was_raised(made, killed, monkeypatch):
    levels = {"metadata.version": 21}
    monkeypatch.setattr(own_node, "read_own_log", lambda _values: {"features": dict(levels)})
    node = made()
    lives = killed("start")
    assert node.upgrade()["earlier"]["levels"]["metadata.version"] == 21
    lives()
    levels["metadata.version"] = 27
    node.breaks(NEW)
    record = node.finish()
    assert record["outcome"] == "failed" and node.target() == f"kafka-{NEW}"
    assert "metadata.version was 21 before and is 27 now" in record["message"]


def test_a_link_that_was_switched_ahead_goes_back_to_what_the_process_runs(made):
    node = made()
    node.breaks(NEW)
    home_link.switch(str(node.home), str(node.directory / f"kafka-{NEW}"))
    found = home_link.read(str(node.home), str(node.directory / f"kafka-{NEW}"), "kafka", str(node.file))
    assert found["running"] == {"path": str(node.directory / f"kafka-{OLD}"), "version": OLD, "exists": True}
    assert kafka_homes.refusals("b2", OLD, found, NEW, must=True) == []
    assert kafka_homes.find_switched_ahead({"b2": found})["b2"]["runs"].endswith(OLD)
    record = node.upgrade()
    assert record["outcome"] == "reverted" and node.version() == OLD, record["message"]
    assert node.target() == f"kafka-{OLD}"


def test_a_node_whose_release_is_gone_is_not_stopped(made):
    node = made()
    home_link.switch(str(node.home), str(node.directory / f"kafka-{NEW}"))
    (node.directory / f"kafka-{OLD}").rename(node.directory / "elsewhere")
    os.unlink(node.directory / "elsewhere" / "libs" / f"kafka_2.13-{OLD}.jar")
    found = home_link.read(str(node.home), str(node.directory / f"kafka-{NEW}"), "kafka")
    assert "which is gone: it could not go back" in kafka_homes.refusals("b2", OLD, found, NEW, must=True)[0]
    record = node.upgrade()
    assert record["outcome"] == "failed" and node.active and "which is gone" in record["message"]
    assert "stop" not in node.steps()


def test_a_release_that_disappeared_since_the_plan_stops_no_node(made):
    node = made()
    os.unlink(node.directory / f"kafka-{NEW}" / "libs" / f"kafka_2.13-{NEW}.jar")
    record = node.upgrade()
    assert record["outcome"] == "failed" and node.active and node.version() == OLD
    assert f"does not have Kafka {NEW} with its start script" in record["message"]


def test_a_node_that_runs_the_release_while_its_link_leads_elsewhere_is_named(made):
    node = made()
    home_link.switch(str(node.home), str(node.directory / f"kafka-{NEW}"))
    found = home_link.read(str(node.home), str(node.directory / f"kafka-{OLD}"), "kafka")
    (reason,) = kafka_homes.refusals("b2", OLD, found, OLD, must=True)
    assert f"b2 runs Kafka {OLD}, and {node.home} leads to" in reason and "ln -sfn" in reason


def test_the_repair_ends_the_loop_in_which_systemd_starts_a_broken_release(made, killed):
    node = made()
    node.breaks(NEW)
    lives = killed("start")
    node.upgrade()
    lives()
    node.begin("start", "kafka")  # at boot
    node.loops = True
    until(lambda: not node.active)
    assert node.state("kafka")["active_state"] == "activating"
    record = node.finish()
    assert record["outcome"] == "reverted" and node.version() == OLD, record


@pytest.mark.parametrize("kind", ["protocol_broker", "zk_connect", "dynamic_broker"])
def test_the_repair_of_a_lost_restart_with_another_file_gives_the_earlier_one_back(made, killed, kind):
    node = made()
    before = node.file.read_text()
    (node.directory / f"kafka-{OLD}" / "bin" / "node.py").write_text(
        "import sys\nif 'z9' in open(sys.argv[3]).read() or 'protocol' in open(sys.argv[3]).read(): sys.exit(1)\n"
        + _NODE
    )
    changes = {
        "protocol_broker": {"inter.broker.protocol.version": "3.9"},
        "zk_connect": {"zookeeper.connect": "z9:2181"},
        "dynamic_broker": {"controller.quorum.voters": None, "controller.quorum.bootstrap.servers": "z9:9093"},
    }[kind]
    lives = killed("start")
    restart_worker.begin(node.spec(kind=kind, changes=changes, release=None))
    assert node.ended()["outcome"] is None
    lives()
    record = node.finish()
    assert record["outcome"] == "reverted" and node.file.read_text() == before and node.mode() == "zk"


@pytest.mark.parametrize("kept", [True, False])
def test_the_repair_takes_the_kept_file_from_the_nodes_own_directory(made, killed, kept):
    """The record of an earlier version names a file in the directory of the host, from which an operator moved it."""
    node = made()
    before = node.file.read_text()
    script = "import sys\nif 'z9' in open(sys.argv[3]).read(): sys.exit(1)\n"
    (node.directory / f"kafka-{OLD}" / "bin" / "node.py").write_text(script + _NODE)
    lives = killed("start")
    restart_worker.begin(node.spec(kind="zk_connect", changes={"zookeeper.connect": "z9:2181"}, release=None))
    record = node.ended()
    lives()
    directory = node.state_dir / "cluster" / "broker-2"
    file = pathlib.Path(record["earlier"]["file"])
    assert file.parent == directory / "configs"
    earlier = {**record["earlier"], "file": str(node.state_dir / "cluster" / "configs" / file.name)}
    host_state.write_json(str(directory / "restart.json"), {**record, "earlier": earlier})
    if not kept:
        file.unlink()
    changed, record = node.file.read_text(), node.finish()
    assert record["outcome"] == ("reverted" if kept else "failed"), record
    assert node.file.read_text() == (before if kept else changed)
    assert kept or f"its earlier properties file {file} is missing" in record["message"]


def test_a_restart_of_a_migration_never_reverts_to_what_an_upgrade_had(made, killed):
    """Its own rules say whether the earlier mode is safe."""
    node = made()
    lives = killed("start")
    node.upgrade()
    lives()
    directory = str(node.state_dir / "cluster" / "broker-2")
    assert auto_revert.find_left({**node.spec(kind="restart_broker")}, directory).home == str(node.home)
    for kind in [kind_row.name for kind_row in transitions.KINDS.values() if not kind_row.is_plain]:
        assert auto_revert.find_left(node.spec(kind=kind), directory) == auto_revert.Earlier()


# The hook -------------------------------------------------------------------------------------------------------------

_HOOK = """#!{python}
import json, os, pathlib, sys
given = {{name: value for name, value in os.environ.items() if name.startswith("QUORUMSHIFT_")}}
with open("{calls}", "a") as stream:
    print(json.dumps([sys.argv[1], given]), file=stream)
{does}
"""


def hook(node, does="", name="hook"):
    """Write a hook, which notes its calls; return its path."""
    path = node.directory / name
    path.write_text(_HOOK.format(python=sys.executable, calls=node.directory / "calls", does=does))
    path.chmod(0o755)
    return str(path)


def calls(node):
    lines = (node.directory / "calls").read_text().splitlines() if (node.directory / "calls").exists() else []
    return [json.loads(line) for line in lines]


def packaged(node, broken=False):
    """Return a hook that installs the release it is asked for in the directory of the one that is there."""
    source = node.directory / "packages"
    for version in (OLD, NEW):
        node.install(source / version, version, broken and version == NEW)
    return hook(
        node,
        f"""import shutil
if sys.argv[1] == "stopped" and given["QUORUMSHIFT_VERSION"]:
    shutil.rmtree("{node.home}")
    shutil.copytree("{source}/" + given["QUORUMSHIFT_VERSION"], "{node.home}")""",
    )


def in_place(node, **more):
    return node.upgrade(release=node.release(to=node.home), **more)


def test_a_hook_sees_the_three_moments_of_an_upgrade_and_installs_the_release(made):
    node = made(link=False)
    record = in_place(node, hook=packaged(node))
    assert record["outcome"] == "done" and node.version() == NEW and not node.home.is_symlink()
    assert [moment for moment, _given in calls(node)] == ["before-stop", "stopped", "up"]
    given = calls(node)[1][1]
    assert given["QUORUMSHIFT_VERSION"] == NEW and given["QUORUMSHIFT_REVERTS"] == ""
    assert given["QUORUMSHIFT_HOST"] == "b2" and given["QUORUMSHIFT_KIND"] == "upgrade_broker"
    assert node.steps() == [
        *("begun", "keep the old file", "hook before-stop", "stop", "write the file", "hook stopped", "start"),
        *("register", "hook up"),
    ]


def test_a_hook_is_asked_for_the_earlier_release_where_the_new_one_does_not_start(made):
    node = made(link=False)
    record = in_place(node, hook=packaged(node, broken=True))
    assert record["outcome"] == "reverted" and node.version() == OLD, record
    assert [(moment, given["QUORUMSHIFT_VERSION"], given["QUORUMSHIFT_REVERTS"]) for moment, given in calls(node)] == [
        *(("before-stop", "", ""), ("stopped", NEW, ""), ("stopped", OLD, "1"), ("up", "", "1"))
    ]
    assert f"It is up again with Kafka {OLD}" in record["message"]


@pytest.mark.parametrize("step", ["hook stopped", "start"])
def test_the_repair_of_a_lost_worker_asks_the_hook_again(made, killed, step):
    node = made(link=False)
    command = packaged(node, broken=True)
    lives = killed(step, taken=step == "hook stopped")
    assert in_place(node, hook=command)["outcome"] is None
    lives()
    record = node.finish(hook=command)
    assert record["outcome"] == "reverted" and node.version() == OLD and node.mode() == "zk", record


def test_the_repair_of_a_restart_that_stopped_nothing_installs_nothing(made):
    node = made(link=False)
    assert in_place(node, hook=hook(node, "sys.exit(sys.argv[1] == 'before-stop')"))["outcome"] == "failed"
    os.kill(node.pid, signal.SIGKILL)
    until(lambda: not node.active)
    record = node.finish(hook=packaged(node))
    assert record["outcome"] == "done" and node.version() == OLD
    assert [given["QUORUMSHIFT_VERSION"] for moment, given in calls(node) if moment == "stopped"] == [""]


def test_a_hook_that_installs_nothing_is_found_out(made):
    node = made(link=False)
    record = in_place(node, hook=hook(node))
    assert record["outcome"] == "reverted" and node.version() == OLD
    assert f"the hook left Kafka {OLD} in {node.home}, instead of {NEW}" in record["message"]


def test_a_hook_that_fails_before_the_stop_keeps_the_node_up(made):
    node = made()
    pid = node.pid
    record = node.upgrade(hook=hook(node, "print('no window'); sys.exit(3)"))
    assert record["outcome"] == "failed" and node.pid == pid and node.active and node.target() == f"kafka-{OLD}"
    assert "failed at the moment before-stop: exit code 3. It said: no window" in record["message"]


def test_a_hook_that_fails_between_stop_and_start_of_an_upgrade_reverts_it(made):
    node = made()
    record = node.upgrade(hook=hook(node, "sys.exit(sys.argv[1] == 'stopped' and not given['QUORUMSHIFT_REVERTS'])"))
    assert record["outcome"] == "reverted" and node.version() == OLD and node.target() == f"kafka-{OLD}"


def test_a_hook_that_always_fails_leaves_no_node_down(made):
    node = made()
    record = node.upgrade(hook=hook(node, "sys.exit(sys.argv[1] != 'before-stop')"))
    assert record["outcome"] == "reverted" and node.mode() == "zk" and node.version() == OLD, record
    assert record["message"].count("failed at the moment stopped") == 2
    assert f"call it on this host: {node.directory}/hook up" in record["message"]


def test_a_hook_that_fails_between_stop_and_start_of_a_plain_restart_leaves_no_node_down(made):
    node = made()
    pid = node.pid
    given = {"kind": "restart_broker", "changes": None, "release": None}
    restart_worker.begin(node.spec(**given, hook=hook(node, "sys.exit(sys.argv[1] == 'stopped')")))
    record = node.ended()
    assert record["outcome"] == "failed" and node.mode() == "zk" and node.pid != pid
    assert "was started all the same and is up" in record["message"]
    assert [moment for moment, _given in calls(node)] == ["before-stop", "stopped", "up"]


def test_a_hook_that_fails_once_the_node_is_up_is_no_success(made):
    node = made()
    record = node.upgrade(hook=hook(node, "sys.exit(sys.argv[1] == 'up')"))
    assert record["outcome"] == "failed" and node.version() == NEW and node.mode() == "zk"
    assert "kafka is up, and its hook failed" in record["message"]


def test_a_hook_that_hangs_is_killed_with_what_it_started(made):
    node = made()
    child = node.directory / "child"
    does = "import subprocess, time; sleeps = subprocess.Popen(['sleep', '600']); "
    does += f"open('{child}', 'w').write(str(sleeps.pid)); time.sleep(600)"
    record = node.upgrade(hook=hook(node, does), hook_timeout_s=2)
    assert record["outcome"] == "failed" and "it was killed after 2 s" in record["message"] and node.active
    until(lambda: not pathlib.Path(f"/proc/{child.read_text()}/exe").exists())


def test_a_hook_that_starts_the_service_or_changes_the_file_is_found_out(made):
    node = made()
    does = f"if sys.argv[1] == 'stopped' and not given['QUORUMSHIFT_REVERTS']: open('{node.file}', 'a').write('x=1\\n')"
    record = node.upgrade(hook=hook(node, does))
    assert record["outcome"] == "reverted" and f"the hook changed {node.file}" in record["message"]
    assert "x=1" not in node.file.read_text() and node.version() == OLD


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="needs dpkg")
@pytest.mark.parametrize("broken", [False, True])
def test_a_package_is_upgraded_by_a_hook_and_downgraded_where_it_does_not_start(made, monkeypatch, broken):
    node = made(link=False)
    dpkg = Dpkg(node)
    for version in (OLD, NEW):
        dpkg.build(version, broken and version == NEW)
    dpkg.install(OLD)
    monkeypatch.setenv("PATH", f"{dpkg.shims}{os.pathsep}{os.environ['PATH']}")
    found = home_link.read(str(node.home), str(node.home), "kafka", hook="/bin/true")
    assert found["home"]["package"] == "confluent-kafka", found
    assert kafka_homes.refusals("b2", OLD, found, NEW, must=True) == []
    (reason,) = kafka_homes.refusals("b2", OLD, {**found, "hook": None}, NEW, must=True)
    assert f"Kafka in {node.home} of b2 is of the package confluent-kafka" in reason and "mv" not in reason
    does = f"""import subprocess
if sys.argv[1] == "stopped" and given["QUORUMSHIFT_VERSION"]:
    subprocess.run({dpkg.command!r} + ["{dpkg.root}/" + given["QUORUMSHIFT_VERSION"] + ".deb"], check=True)"""
    record = in_place(node, hook=hook(node, does))
    assert record["outcome"] == ("reverted" if broken else "done"), record
    assert node.version() == dpkg.version() == (OLD if broken else NEW) and node.mode() == "zk"


class Dpkg:
    """dpkg with a database of its own, and a package whose files are below a node's directory."""

    def __init__(self, node):
        self.node, self.root = node, node.directory / "dpkg"
        self.admin, self.shims = self.root / "admin", self.root / "bin"
        for name in ("info", "updates", "triggers"):
            (self.admin / name).mkdir(parents=True)
        for name in ("status", "available"):
            (self.admin / name).touch()
        self.shims.mkdir()
        query = self.shims / "dpkg-query"
        query.write_text(f'#!/bin/sh\nexec {shutil.which("dpkg-query")} --admindir={self.admin} "$@"\n')
        query.chmod(0o755)
        self.command = ["dpkg", f"--admindir={self.admin}", "--log=/dev/null", "--force-not-root", "--force-bad-path"]
        self.command += ["--force-architecture", "-i"]

    def build(self, version, broken):
        tree = self.root / version
        self.node.install(pathlib.Path(f"{tree}{self.node.home}"), version, broken)
        (tree / "DEBIAN").mkdir()
        fields = {
            "Package": "confluent-kafka",
            "Version": f"{version}-1",
            "Architecture": "all",
            "Maintainer": "a <a@b>",
        }
        lines = [*(f"{key}: {value}" for key, value in fields.items()), "Description: a test"]
        (tree / "DEBIAN" / "control").write_text("\n".join(lines) + "\n")
        subprocess.run(
            ["dpkg-deb", "--build", str(tree), f"{self.root}/{version}.deb"], check=True, capture_output=True
        )

    def install(self, version):
        subprocess.run([*self.command, f"{self.root}/{version}.deb"], check=True, capture_output=True)

    def version(self):
        words = ["dpkg-query", f"--admindir={self.admin}", "-W", "-f", "${Version}", "confluent-kafka"]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.rsplit("-1", 1)[0]


# What an installation is ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/", "/usr", "/usr/share", "/usr/local", "/usr/local/share", "/opt", "/var/lib", "/home", "/root", "/proc"]
)
def test_a_directory_of_the_system_is_known(path):
    assert installation.is_shared(path)


@pytest.mark.parametrize("path", ["/opt/kafka", "/usr/local/kafka", "/srv/kafka", "/opt/kafka/current"])
def test_a_directory_of_kafka_alone_is_no_directory_of_the_system(path):
    assert not installation.is_shared(path)
