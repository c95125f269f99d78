# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The testbed `ensembles` as the drills use it: playbooks, the state of a cut on each host, clients, other tenants."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Iterator

from kazoo.client import KazooClient

from tests.system.testbed.inventory import TestbedInventory
from tests.system.testbed.layout import INVENTORY, ROOT

STATE = "/var/lib/quorumshift/zk_cut"
DESTINATION, SOURCE, BROKERS = ("z1", "z2", "z3"), ("s1", "s2", "s3"), ("b1", "b2", "b3")
GRACE_S = 15.0  # clients need this long to connect again
AT_ONCE = 500  # znodes that one transaction creates
FEW_OPTIONS = ("quorumshift_stable_s=3",)


class Bed:
    """The running testbed. `directory`: for logs."""

    def __init__(self, directory: Path, accept: str = "") -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.inventory = TestbedInventory()
        self.source = self.inventory.vars["zk_migrate_source_connect"]
        self.destination = self.inventory.vars["zk_migrate_destination_connect"]
        self.accept = accept
        self.disturbed: list[tuple[float, float]] = []

    @contextlib.contextmanager
    def disturbing(self) -> Iterator[None]:
        """Note that a drill disturbs the source itself, up to GRACE_S after the block: tenants notice that."""
        began = time.time()
        try:
            yield
        finally:
            self.disturbed.append((began, time.time() + GRACE_S))

    def playbook(self, name: str, log: str, *options: str) -> subprocess.Popen:
        """Begin a playbook in a process group of its own; its output goes to LOG.log."""
        given = [*FEW_OPTIONS, *([f"quorumshift_accept_degraded={self.accept}"] if self.accept else []), *options]
        argv = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", str(INVENTORY), f"playbooks/{name}.yml"]
        argv += [part for argument in given for part in ("-e", argument)]
        with (self.directory / f"{log}.log").open("w") as output:
            return subprocess.Popen(
                argv, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )

    def cut_alone(self, log: str, *options: str) -> subprocess.Popen:
        """Begin the gate and the cut of zk_migrate.yml without the steps before them."""
        connects = (
            f"zk_migrate_connect={self.destination}",
            f"zk_migrate_other_connect={self.source}",
            f"quorumshift_zookeeper_connect={self.destination}",
        )
        cuts = {"zk_migrate_cuts": True, "quorumshift_verify": False}  # the whole move compares the trees
        given = json.dumps({**cuts, "zk_migrate_server_ids": list(self.ids())})
        return self.playbook("../tests/system/zk_move/cut", log, given, *connects, *options)

    def ids(self) -> list[int]:
        return [int(number) for number in self.inventory.vars["zk_migrate_destination_servers"]]

    def log(self, name: str) -> str:
        return (self.directory / f"{name}.log").read_text(encoding="utf-8")

    def run(self, host: str, *command: str) -> str:
        """Return the output of a command on a host, '' if it fails."""
        try:
            return self.inventory.run(host, *command, timeout_s=60)
        except (subprocess.SubprocessError, OSError):
            return ""

    def state(self, host: str) -> str:
        return self.run(host, f"cat {STATE}/state 2>/dev/null")

    def states(self) -> dict[str, str]:
        return {host: self.state(host) for host in DESTINATION}

    def record(self, host: str) -> dict[str, Any]:
        return json.loads(self.run(host, f"cat {STATE}/cut.json") or "{}")

    def rules(self, host: str) -> int:
        return int(self.run(host, "{ iptables -S; ip6tables -S; } | grep -c quorumshift-; true") or 0)

    def mode(self, host: str) -> str:
        """Return the mode in which a host's server serves clients from here; '' if it serves none."""
        try:
            with socket.create_connection((self.inventory.hosts[host], 2181), 2) as sock:
                sock.sendall(b"srvr")
                text = b""
                while part := sock.recv(65536):
                    text += part
        except OSError:
            return ""
        return next((line[6:] for line in text.decode().splitlines() if line.startswith("Mode: ")), "")

    def modes(self) -> dict[str, str]:
        return {host: self.mode(host) for host in DESTINATION}

    @contextlib.contextmanager
    def zookeeper(self, connect: str) -> Iterator[KazooClient]:
        client = KazooClient(hosts=connect, timeout=10)
        client.start(timeout=60)
        try:
            yield client
        finally:
            client.stop()
            client.close()

    def load(self, znodes: int) -> None:
        """Create this many znodes of another application on the source, below /other/data."""
        with self.zookeeper(self.source.partition("/")[0]) as client:
            client.ensure_path("/other/data")
            pending: list[Any] = []
            for first in range(0, znodes, AT_ONCE):
                change = client.transaction()
                change.create(parent := f"/other/data/{first}")
                for number in range(1, min(AT_ONCE, znodes - first)):
                    change.create(f"{parent}/{number}", b"x" * 100)
                pending.append(change.commit_async())
                while len(pending) > 20:
                    pending.pop(0).get(60)
            for commit in pending:
                commit.get(60)

    def cluster_id(self, connect: str) -> str:
        with self.zookeeper(connect) as client:
            return json.loads(client.get("/cluster/id")[0])["id"]

    def sessions(self, connect: str) -> dict[str, int]:
        """Return {path: session} of Kafka's ephemeral znodes: brokers and controller."""
        with self.zookeeper(connect) as client:
            paths = ["/controller", *(f"/brokers/ids/{broker_id}" for broker_id in client.get_children("/brokers/ids"))]
            return {path: stat.ephemeralOwner for path in paths if (stat := client.exists(path))}


def kill(process: subprocess.Popen) -> None:
    """Kill a playbook with all its processes."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
