# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run playbooks as an operator does, pass their terminal output through, and read their run artifacts."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

from tests.system.demo import screen
from tests.system.testbed.layout import ROOT

END_GRACE_S = 10
_TITLE = re.compile(rb"^(?:\x1b\[[0-9;]*m)?(PLAY|TASK|PLAY RECAP) (?:\[(.*?)\] )?\*+", re.MULTILINE)


@dataclass(frozen=True)
class Run:
    """One run of a playbook: command, exit code, duration, output; `tasks`: seconds of each task."""

    name: str
    argv: list[str]
    exit_code: int
    seconds: float
    output: str
    tasks: list[dict]

    @property
    def changed(self) -> int:
        return sum(host.changed for host in screen.recap(self.output).values())


def play(name: str, argv: list[str], log: Path, limit_s: float) -> Run:
    """Run `argv` in the checkout with its output to this terminal and to `log`. End it at `limit_s` (exit code 124)."""
    begun = time.monotonic()
    # a pty keeps Ansible's colours and live lines
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    if not sys.stdout.isatty():
        environment["ANSIBLE_NOCOLOR"] = "1"
    process = subprocess.Popen(
        argv, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    kept = bytearray()
    arrived: list[tuple[int, float]] = []  # bytes so far, seconds since the start
    code: int | None = None
    try:
        while True:
            left = limit_s - (time.monotonic() - begun)
            if left <= 0:
                code = 124
                break
            if not select.select([ours], [], [], min(left, 1.0))[0]:
                continue
            try:
                part = os.read(ours, 65536)
            except OSError:  # EIO: the other side is closed
                break
            if not part:
                break
            arrived.append((len(kept), time.monotonic() - begun))
            kept += part
            sys.stdout.buffer.write(part)
            sys.stdout.buffer.flush()
        if code is None:
            code = process.wait()
    finally:
        _end(process)
        os.close(ours)
        log.write_bytes(bytes(kept))
    seconds = time.monotonic() - begun
    output = kept.decode("utf-8", "replace").replace("\r\n", "\n")
    return Run(name, argv, code, round(seconds, 1), output, _tasks(bytes(kept), arrived, seconds))


def _tasks(kept: bytes, arrived: list[tuple[int, float]], end: float) -> list[dict]:
    """Return [{play, task, at, seconds}]: a task lasts from its title in the output to the next title."""
    tasks: list[dict] = []
    play_name = ""
    for title in _TITLE.finditer(kept):
        at = arrived[bisect_right(arrived, (title.start(), end)) - 1][1]
        if tasks:
            tasks[-1].setdefault("seconds", round(at - tasks[-1]["at"], 2))
        if title[1] == b"PLAY":
            play_name = title[2].decode()
        elif title[1] == b"TASK":
            tasks.append({"play": play_name, "task": title[2].decode(), "at": round(at, 2)})
    if tasks:
        tasks[-1].setdefault("seconds", round(end - tasks[-1]["at"], 2))
    return tasks


def _end(process: subprocess.Popen) -> None:
    """End a run that is still going: SIGINT as Ctrl-C does, then SIGTERM, then SIGKILL."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        os.killpg(process.pid, number)
        try:
            process.wait(END_GRACE_S)
        except subprocess.TimeoutExpired:
            continue


@dataclass(frozen=True)
class RecordedRun:
    """A run's artifacts: its directory and its journal's events."""

    directory: Path
    journal: list[dict]


def runs_since(root: Path, begun: float) -> list[RecordedRun]:
    """Return every run whose journal begins after `begun` (epoch seconds), oldest first."""
    runs = []
    for path in root.glob("*/*/journal.jsonl"):
        lines = path.read_text(encoding="utf-8").splitlines()
        events = sorted((json.loads(line) for line in lines), key=lambda event: event["t"])
        if events and events[0]["t"] >= begun:
            runs.append(RecordedRun(path.parent, events))
    return sorted(runs, key=lambda run: run.journal[0]["t"])
