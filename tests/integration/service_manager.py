# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service manager for real Kafka servers on this machine: `systemctl` and `systemd-run` as far as the collection uses
them, so that a playbook stops and starts the servers as on a host with systemd.

    with Manager(home, servers_of_the_cluster) as manager:
        runs = ManagedRuns(home, controllers, brokers, manager, "quorum")
        code, said = runs.run()

A playbook runs in a mount namespace of its own, where /run/systemd/system exists and these programs come first in PATH.
A unit is the server's name. A directory has its command, its process and when that started.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
from typing import Any, Dict, Iterable

from tests.integration import servers
from tests.integration.test_reassign_playbook import Runs
from tests.playbook import start_play

_PROGRAM = """#!{python}
import json, os, pathlib, signal, subprocess, sys, time
UNITS = pathlib.Path({units!r})
words = sys.argv[1:]

def pid_of(unit):
    try:
        pid = int((UNITS / (unit + ".pid")).read_text())
        state = pathlib.Path("/proc/%d/stat" % pid).read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return 0, 0
    return (0, 0) if state[0] in "ZX" else (pid, int(state[19]) * 1000000 // os.sysconf("SC_CLK_TCK"))

def detach(argv, log):
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True).pid

if os.path.basename(sys.argv[0]) == "systemd-run":
    unit = next(word for word in words if word.startswith("--unit=")).partition("=")[2]
    argv = words[[word.startswith("-") for word in words].index(False):]
    with open(os.devnull, "wb") as null:
        (UNITS / (unit + ".service.pid")).write_text(str(detach(argv, null)))
elif words[0] == "show" and len(words) > 1 and not words[1].startswith("-"):
    unit = words[1]
    pid, since = pid_of(unit)
    known = (UNITS / (unit + ".json")).exists()
    print("LoadState=" + ("loaded" if known else "not-found"))
    print("ActiveState=" + ("active" if pid else "inactive"))
    print("SubState=" + ("running" if pid else "dead"))
    print("MainPID=%d" % pid)
    print("InvocationID=%s" % (since or ""))
    print("Result=success")
    print("Restart=no")
    print("UnitFileState=enabled")
    print("ExecMainStartTimestampMonotonic=%d" % since)
elif words[0] == "show":
    print("Version=252")
elif words[0] == "--no-block":
    action, unit = words[1:3]
    pid = pid_of(unit)[0]
    with open(UNITS / "calls", "a") as calls:
        calls.write("%s %s %.3f\\n" % (action, unit, time.time()))
    if action == "stop" and pid:
        os.kill(pid, signal.SIGTERM)
    if action == "start" and not pid:
        own = json.loads((UNITS / (unit + ".json")).read_text())
        with open(own["log"], "ab") as log:
            (UNITS / (unit + ".pid")).write_text(str(detach(own["command"], log)))
elif words[0] == "kill":
    pid = pid_of(words[-1])[0]
    if pid:
        os.kill(pid, signal.SIGKILL)
"""


class Manager:
    """Runs servers as units. At its end it kills what it started.

    :ivar calls: [(action, unit, time in epoch seconds)] that a playbook asked for
    """

    def __init__(self, home: pathlib.Path, managed: Iterable[servers.KafkaServer]) -> None:
        self.bin, self.units = home / "bin", home / "units"
        self.managed: Dict[str, servers.KafkaServer] = {}
        for directory in (self.bin, self.units):
            directory.mkdir()
        for name in ("systemctl", "systemd-run"):
            program = self.bin / name
            program.write_text(_PROGRAM.format(python=sys.executable, units=str(self.units)))
            program.chmod(0o755)
        for server in managed:
            self.add(server)

    def add(self, server: servers.KafkaServer) -> None:
        """Make a server that runs a unit."""
        unit = f"{server.name}.service"
        own = {"command": server._command, "log": str(server.log)}
        (self.units / f"{unit}.json").write_text(json.dumps(own))
        (self.units / f"{unit}.pid").write_text(str(server.pid))
        self.managed[server.name] = server

    @property
    def calls(self) -> list:
        path = self.units / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(words[0], words[1].partition(".")[0], float(words[2])) for words in map(str.split, lines)]

    def kill(self, name: str) -> None:
        """Kill the process of a unit."""
        with contextlib.suppress(OSError, ValueError):
            os.kill(int((self.units / f"{name}.service.pid").read_text()), signal.SIGKILL)

    def __enter__(self) -> Manager:
        return self

    def __exit__(self, *_exception: object) -> None:
        for name in self.managed:
            self.kill(name)


class ManagedRuns(Runs):
    """Runs a playbook over a cluster whose servers are units."""

    def __init__(self, home: pathlib.Path, controllers: list, brokers: list, manager: Manager, playbook: str) -> None:
        self.manager = manager
        super().__init__(home, controllers[0], brokers, playbook)
        for broker in brokers:
            self.hosts[f"b{broker.node_id}"]["quorumshift_broker_service"] = broker.name
        own: Dict[str, Any] = self.groups["all"]["children"]["kafka_controller"]
        own["hosts"] = {f"c{controller.node_id}": self.controller(controller) for controller in controllers}
        self.groups["all"]["vars"]["quorumshift_stable_s"] = 1
        self.groups["all"]["vars"]["quorumshift_kafka_home"] = str(servers.kafka_libs().parent)
        self.write()

    def controller(self, server: servers.KafkaServer) -> Dict[str, Any]:
        """Return the variables of a controller's host."""
        return {
            "quorumshift_node_id": server.node_id,
            "quorumshift_controller_host": server.address.host,
            "quorumshift_controller_port": server.address.port,
            "quorumshift_controller_config_file": str(server.home / "server.properties"),
            "quorumshift_controller_log_file": str(server.log),
            "quorumshift_controller_log_dir": str(server.home / "data"),
            "quorumshift_controller_service": server.name,
            "quorumshift_state_dir": str(self.home / "nodes"),
        }

    def add_controller(self, server: servers.KafkaServer) -> None:
        """Add a controller's host to the inventory."""
        hosts = self.groups["all"]["children"]["kafka_controller"]["hosts"]
        hosts[f"c{server.node_id}"] = self.controller(server)
        self.write()

    def remove_controller(self, node_id: int) -> None:
        """Take a controller's host out of the inventory."""
        del self.groups["all"]["children"]["kafka_controller"]["hosts"][f"c{node_id}"]
        self.write()

    def begin(self, *options: str, **more: Any) -> subprocess.Popen:
        mounts = "mount -t tmpfs none /run && mkdir -p /run/systemd/system /run/lock"
        return start_play([*self.command(more), *options], mounts, str(self.manager.bin))
