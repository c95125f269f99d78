# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Another application that uses the source: it must notice nothing of the move.

It holds ephemeral znodes in sessions of its own, writes and reads all the time, and notes each lost connection, failed
request and slow answer: `python -m tests.system.zk_move.tenant CONNECT FILE`. It ends at SIGTERM and writes FILE.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
import time
from pathlib import Path

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

ROOT, SESSIONS, PAUSE_S = "/other/app", 3, 0.05


class Tenant:
    """Sessions of another application."""

    def __init__(self, servers: str) -> None:
        self.stopping = threading.Event()
        self.lock = threading.Lock()
        self.writes, self.longest_s, self.problems = 0, 0.0, []
        self.servers = servers
        self.owners: dict[str, int] = {}

    def run_one(self, number: int) -> None:
        """Work in one session until the tenant stops."""
        client = KazooClient(hosts=self.servers, timeout=10)
        client.add_listener(lambda state: self._changed(number, state))
        client.start(timeout=60)
        try:
            path = f"{ROOT}/instance-{number}"
            client.ensure_path(ROOT)
            client.create(path, b"", ephemeral=True)
            self.owners[path] = client.exists(path).ephemeralOwner
            while not self.stopping.wait(PAUSE_S):
                began = time.monotonic()
                try:
                    client.set(path, str(self.writes).encode())
                    if client.exists(path).ephemeralOwner != self.owners[path]:
                        self.problem(f"{path} has another owner")
                except (KazooException, KazooTimeoutError) as error:
                    self.problem(f"session {number}: {type(error).__name__}: {error}")
                with self.lock:
                    self.writes += 1
                    self.longest_s = max(self.longest_s, time.monotonic() - began)
        finally:
            self.stopping.set()
            client.stop()
            client.close()

    def _changed(self, number: int, state: str) -> None:
        if state != KazooState.CONNECTED and not self.stopping.is_set():
            self.problem(f"session {number}: {state}")

    def problem(self, text: str) -> None:
        with self.lock:
            self.problems.append({"at": time.time(), "what": text})

    def result(self) -> dict:
        """Return what it noticed."""
        return {"writes": self.writes, "longest_s": round(self.longest_s, 3), "problems": self.problems}


def main() -> int:
    """Run until SIGTERM."""
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    servers, result = sys.argv[1:3]
    tenant = Tenant(servers.partition("/")[0])
    signal.signal(signal.SIGTERM, lambda _signal, _frame: tenant.stopping.set())
    threads = [threading.Thread(target=tenant.run_one, args=(number,)) for number in range(SESSIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    Path(result).write_text(json.dumps(tenant.result(), indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
