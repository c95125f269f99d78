# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run playbooks as an operator does, with the callback `screen`, and read their log and run artifacts."""

from __future__ import annotations

import codecs
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from dataclasses import dataclass
from pathlib import Path

from tests.system.demo import screen
from tests.system.testbed.layout import ROOT
from tools import recording

END_GRACE_S = 10
_STAMP = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3}) p=\d+ u=\S* n=\S+ [^|\n]*\| ?", re.MULTILINE)
_TITLE = re.compile(r"(PLAY|TASK|PLAY RECAP) (?:\[(.*?)\] )?\*+")


@dataclass(frozen=True)
class Run:
    """One run of a playbook: command, exit code, duration; `output`: what the callback `default` writes to the log;
    `tasks`: seconds of each task."""

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
    """Run `argv` in the checkout with the callback `screen` on this terminal and Ansible's log in `log`. End it at
    `limit_s` (exit code 124)."""
    begun, began_at = time.monotonic(), time.time()
    log.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "ANSIBLE_STDOUT_CALLBACK": "quorumshift.kafka.screen",
        "ANSIBLE_LOG_PATH": str(log),
    }
    ours, theirs = pty.openpty()
    events, decoder = [(0.0, f"$ {name}\r\n")], codecs.getincrementaldecoder("utf-8")("replace")
    if sys.stdout.isatty():
        termios.tcsetwinsize(theirs, termios.tcgetwinsize(sys.stdout))
    else:
        environment |= {"ANSIBLE_NOCOLOR": "1", "TERM": "dumb"}  # plain lines
    process = subprocess.Popen(
        argv, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
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
            sys.stdout.buffer.write(part)
            sys.stdout.buffer.flush()
            events.append((round(time.monotonic() - begun, 2), decoder.decode(part)))
        if code is None:
            code = process.wait()
    finally:
        _end(process)
        os.close(ours)
    seconds = time.monotonic() - begun
    columns = termios.tcgetwinsize(sys.stdout)[1] if sys.stdout.isatty() else 100
    recording.write_cast(recording.Recording(name, columns, events), log.with_suffix(".cast"))
    written = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return Run(name, argv, code, round(seconds, 1), _STAMP.sub("", written), _tasks(written, began_at, seconds))


def _tasks(log: str, began_at: float, end: float) -> list[dict]:
    """Return [{play, task, at, seconds}] of Ansible's log: a task lasts from its title to the next title."""
    tasks: list[dict] = []
    play_name = ""
    for stamp in _STAMP.finditer(log):
        title = _TITLE.match(log, stamp.end())
        if not title:
            continue
        moment = time.mktime(time.strptime(stamp[1], "%Y-%m-%d %H:%M:%S")) + int(stamp[2]) / 1000
        at = max(0.0, moment - began_at)
        if tasks:
            tasks[-1].setdefault("seconds", round(at - tasks[-1]["at"], 2))
        if title[1] == "PLAY":
            play_name = title[2]
        elif title[1] == "TASK":
            tasks.append({"play": play_name, "task": title[2], "at": round(at, 2)})
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
