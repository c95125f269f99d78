# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes that observe a migration, each in its own session: verification clients, recorder, metadata changes."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.system.demo import churn, ledger
from tests.system.testbed.inventory import TestbedInventory
from tests.system.testbed.layout import ROOT

FOLLOW_TIMEOUT_S = 30
END_TIMEOUT_S = {"recorder": 30, "churn": churn.LIMIT_S + 30}


class ObserverError(Exception):
    """An observer did not start or end; the text is for the operator."""


class Observers:
    """The observers of one migration; they write to `directory`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.clients = directory / "clients"
        self.events = directory / "recorder.jsonl"
        self.changes = directory / "changes.jsonl"
        self._checks = directory / "checks.jsonl"
        self._begun = directory / "begun.json"

    def begin(self, changes: bool = True) -> None:
        """Start in an empty directory; return when messages flow and every host is followed. Raise ObserverError.

        Without `changes`, only the verification clients' admin loop changes metadata.
        """
        self.stop_all()
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        testbed = TestbedInventory()
        config = self.directory / "settings.json"
        config.touch(mode=0o600)
        config.write_text(json.dumps(testbed.clients_config()), encoding="utf-8")
        arguments = ["run", "--config", str(config), "--dir", str(self.clients), "--daemon"]
        done = subprocess.run(
            [sys.executable, "-m", "canary_clients", *arguments], cwd=ROOT, stdin=subprocess.DEVNULL, check=False
        )
        config.unlink()
        if done.returncode != 0:
            raise ObserverError("the verification clients did not start: see their message above")
        self._spawn("recorder", str(self.events))
        self._wait_followed(len(testbed.hosts))
        if changes:
            self._spawn("churn", str(self.changes), str(self.events))
        self._begun.write_text(json.dumps({"t": time.time()}) + "\n", encoding="utf-8")

    @property
    def begun(self) -> float:
        """The time from which all observers ran, in epoch seconds."""
        return json.loads(self._begun.read_text(encoding="utf-8"))["t"]

    def recorded(self) -> list[dict]:
        """Return the recorder's events in order of time, [] if there are none."""
        if not self.events.exists():
            return []
        events = [json.loads(line) for line in self.events.read_text(encoding="utf-8").splitlines()]
        return sorted(events, key=lambda event: event["t"])

    def registered_since(self, host: str, t: float) -> bool:
        """Return whether the recorder saw the host register in the quorum after a time (epoch seconds)."""
        return any(
            event["t"] > t and event.get("host") == host and event.get("name") == "registered in the quorum"
            for event in self.recorded()
        )

    def compare(self, *sides: str, resume: bool) -> list[str]:
        """Complete and pause the changes, compare `sides` (brokers, ZooKeeper) with them, return the differences."""
        self._end("churn", signal.SIGUSR1)
        checks = [churn.check(TestbedInventory(), self.changes, side) for side in sides]
        with self._checks.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(check) + "\n" for check in checks)
        if resume:
            self._spawn("churn", str(self.changes), str(self.events))
        return [text for check in checks for text in check["differences"]]

    @property
    def checks(self) -> list[dict]:
        """The results of `compare` so far (churn.check)."""
        return ledger.read(self._checks)

    def end_recorder(self) -> None:
        self._end("recorder")

    def stop_all(self) -> None:
        """Stop what an earlier run left running; discard the clients' verdict."""
        if (self.clients / "lock").exists():
            subprocess.run(
                [sys.executable, "-m", "canary_clients", "stop", "--dir", str(self.clients)],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                check=False,
            )
        self._end("churn")
        self.end_recorder()

    def _spawn(self, name: str, *arguments: str) -> None:
        log = (self.directory / f"{name}.log").open("a")
        process = subprocess.Popen(
            [sys.executable, "-m", f"tests.system.demo.{name}", *arguments],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        log.close()
        (self.directory / f"{name}.pid").write_text(f"{process.pid}\n", encoding="ascii")

    def _wait_followed(self, hosts: int) -> None:
        deadline = time.monotonic() + FOLLOW_TIMEOUT_S
        while True:
            events = self.recorded()
            followed = {event["host"] for event in events if event["kind"] == "following"}
            polled = any(event["kind"] == "isr" and "error" not in event for event in events)
            if len(followed) == hosts and polled:
                return
            if time.monotonic() > deadline:
                seen = (
                    f"it follows {', '.join(sorted(followed)) or 'no host'}{'' if polled else ' and has no metadata'}"
                )
                raise ObserverError(
                    f"the recorder is not ready after {FOLLOW_TIMEOUT_S} s: {seen}. See {self.directory}/recorder.log"
                )
            time.sleep(0.1)

    def _end(self, name: str, with_signal: signal.Signals = signal.SIGTERM) -> None:
        pid_file = self.directory / f"{name}.pid"
        if not pid_file.exists():
            return
        pid = int(pid_file.read_text(encoding="ascii"))
        pid_file.unlink()
        if not _is_ours(pid, f"tests.system.demo.{name}"):
            return
        os.kill(pid, with_signal)
        deadline = time.monotonic() + END_TIMEOUT_S[name]
        while _is_ours(pid, f"tests.system.demo.{name}"):
            if time.monotonic() > deadline:
                raise ObserverError(f"the {name} (pid {pid}) did not end within {END_TIMEOUT_S[name]} s")
            time.sleep(0.05)


def _is_ours(pid: int, module: str) -> bool:
    """Return whether the pid is still the process that was started, and no zombie."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    try:
        if module.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
            return False
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
