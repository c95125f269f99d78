# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Restarts are paused and resumed from outside of the container in which a run is at work, on real servers.

The run has a mount and a PID namespace of its own, as in an execution environment: it sees neither the hosts' files nor
their processes. Modules reach the hosts by a socket, in place of SSH.
"""

from __future__ import annotations

import contextlib
import json
import os
import socketserver
import subprocess
import sys
import threading
import time

import pytest

from tests.integration import admin_bed, servers
from tests.integration.service_manager import ManagedRuns, Manager
from tests.integration.test_reassign_playbook import events
from tests.playbook import start_play

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root"),
]
TOKEN_S = 60  # as long as a gate token counts
# The Python of a host, as Ansible starts it in the container: what runs is on the other side of the socket
CLIENT = """#!{python}
import json, os, socket, sys
given = sys.stdin.read() if not sys.stdin.isatty() else ""
with socket.socket(socket.AF_UNIX) as agent:
    agent.connect({address!r})
    agent.sendall(json.dumps([sys.argv[1:], given, os.getcwd()]).encode())
    agent.shutdown(socket.SHUT_WR)
    with agent.makefile() as stream:
        code, output, errors = json.loads(stream.read())
sys.stdout.write(output)
sys.stderr.write(errors)
sys.exit(code)
"""


class Agent(socketserver.ThreadingUnixStreamServer):
    """The hosts: runs Python in their mount namespace for each connection."""

    daemon_threads = True

    def __init__(self, address, hosts_pid, path):
        self.enter = ["nsenter", f"--mount=/proc/{hosts_pid}/ns/mnt", sys.executable]
        self.environment = {**os.environ, "PATH": path}
        super().__init__(address, _Request)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Request(socketserver.StreamRequestHandler):
    def handle(self):
        words, given, directory = json.loads(self.rfile.read())
        done = subprocess.run(
            [*self.server.enter, *words],
            input=given,
            cwd=directory,
            env=self.server.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        self.wfile.write(json.dumps([done.returncode, done.stdout, done.stderr]).encode())


class Contained(ManagedRuns):
    """Runs playbooks in a container of their own, over hosts in a namespace that is the hosts'."""

    def __init__(self, home, controllers, brokers, manager, hosts_pid):
        super().__init__(home, controllers, brokers, manager, "restart")
        address = str(home / "agent")
        self.agent = Agent(address, hosts_pid, f"{manager.bin}:{os.environ['PATH']}")
        enter = manager.bin / "python-on-the-host"
        enter.write_text(CLIENT.format(python=sys.executable, address=address))
        enter.chmod(0o755)
        every = self.groups["all"]["vars"]
        every["ansible_pipelining"] = True
        every["quorumshift_verify"] = False
        del every["ansible_python_interpreter"]
        for group in ("kafka_broker", "kafka_controller"):
            for own in self.groups["all"]["children"][group]["hosts"].values():
                own["ansible_python_interpreter"] = str(enter)
        self.nodes = home / "nodes"
        self.write()

    def begin(self, *options, **more):
        hidden = f"mount -t tmpfs none {self.nodes} && mount -t tmpfs none /run && mkdir -p /run/lock"
        apart = ("--pid", "--fork", "--mount-proc", "--kill-child")
        return start_play([*self.command(more), *options], hidden, unshare=apart)

    def play(self, playbook, **more):
        """Run another playbook, in another container; return (exit code, output)."""
        own, self.playbook = self.playbook, playbook
        try:
            return self.run(**more)
        finally:
            self.playbook = own

    def journal(self, name):
        """Return the newest run's events of a name."""
        if not self.artifacts.exists():
            return []
        return [event for event in events(self.newest()) if event["name"] == name]


@pytest.fixture
def runs():
    with admin_bed.kraft("pause", 2) as (home, controller, brokers), contextlib.ExitStack() as stack:
        (home / "nodes").mkdir()
        manager = stack.enter_context(Manager(home, [controller, *brokers]))
        hold = "mount -t tmpfs none /run && mkdir -p /run/systemd/system /run/lock && echo ready && exec sleep infinity"
        hosts = subprocess.Popen(["unshare", "--mount", "sh", "-c", hold], stdout=subprocess.PIPE, text=True)
        stack.callback(lambda: (hosts.kill(), hosts.wait()))
        assert hosts.stdout.readline() == "ready\n"
        own = Contained(home, [controller], brokers, manager, hosts.pid)
        stack.callback(own.agent.shutdown)
        yield own


def stops(runs):
    return [unit for action, unit, _at in runs.manager.calls if action == "stop"]


def test_paused_before_the_first_stop_and_in_the_middle_of_a_run(runs):
    code, said = runs.play("pause", restart_pause_reason="alert")
    assert code == 0 and (runs.nodes / "pause").read_text() == "alert\n", said
    run = runs.begin()
    servers.wait_for(lambda: runs.journal("paused") or run.poll() is not None, 300, "the run to be paused")
    (paused,) = runs.journal("paused")
    assert paused["why"] == "alert" and paused["path"] == str(runs.nodes / "pause")

    # Another container shows it, and its run is refused: the paused one holds the lock
    code, said = runs.play("status")
    assert code == 0 and "restarts are paused on" in said and "(alert)" in said and "quorumshift.kafka.resume" in said
    # Longer than a gate token counts: the run asks for another one afterwards
    servers.wait_for(lambda: time.time() > paused["t"] + TOKEN_S + 5, 300, "the token to expire")
    assert stops(runs) == [] and run.poll() is None
    assert {lock["closed"] for lock in runs.locks().values()} == {False}

    code, said = runs.play("resume")
    assert code == 0 and not (runs.nodes / "pause").exists(), said
    servers.wait_for(lambda: stops(runs), 300, "the first stop")
    # In the middle, by hand on the host: the node that is down comes up again, and no other one is stopped
    (runs.nodes / "pause").touch()
    first = list(stops(runs))
    servers.wait_for(lambda: len(runs.journal("paused")) == 2 or run.poll() is not None, 300, "the second pause")
    assert len(runs.journal("paused")) == 2 and stops(runs) == first and len(first) == 1
    assert [event["outcome"] for event in runs.journal("restart_broker")] == ["done"]
    (runs.nodes / "pause").unlink()
    text = run.communicate(timeout=600)[0]
    assert run.returncode == 0, text
    assert sorted(stops(runs)) == ["broker-1", "broker-2", "controller-3000"], "each once"
    assert [round(event["waited_s"]) >= TOKEN_S for event in runs.journal("resumed")] == [True, False]
    assert {lock["closed"] for lock in runs.locks().values()} == {True}


def test_a_pause_beyond_its_bound_ends_the_run_before_a_node_is_touched(runs):
    (runs.nodes / "pause").write_text("alert\n")
    code, said = runs.run(restart_pause_timeout_s=1)
    assert code == 2 and "QS-RESTART-019" in said and "restart_pause_timeout_s, 1 s" in said, said
    assert stops(runs) == [] and {lock["closed"] for lock in runs.locks().values()} == {True}
    (runs.nodes / "pause").unlink()
    code, said = runs.run()
    assert code == 0 and len(stops(runs)) == 3, said
