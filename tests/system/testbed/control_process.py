# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kill a control process with its workers, as a control node dies.

Since ansible-core 2.19 each worker has a session of its own, so a signal to ansible-playbook's group does not reach it.
A worker that is left would go on with its task. All of them inherit a mark in their environment.
"""

from __future__ import annotations

import contextlib
import os
import signal
import uuid
from pathlib import Path

_NAME = "QUORUMSHIFT_CONTROL_PROCESS"
_PROGRAM = b"ansible-playbook"


def mark() -> dict[str, str]:
    """Return a new mark, to be added to the environment of one ansible-playbook."""
    return {_NAME: uuid.uuid4().hex}


def pids(marked: dict[str, str]) -> list[int]:
    """Return the process ids of ansible-playbook and its workers."""
    return _pids(f"{_NAME}={marked[_NAME]}".encode())


def kill(marked: dict[str, str]) -> None:
    """Send SIGKILL to ansible-playbook and its workers, until none is left that could fork another."""
    while True:
        left = pids(marked)
        if not left:
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _pids(mark_text: bytes) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            program = (path / "cmdline").read_bytes().split(b"\0")
            marked = mark_text in (path / "environ").read_bytes().split(b"\0")
            ended = (path / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:  # it has ended
            continue
        if marked and not ended and any(part.endswith(_PROGRAM) for part in program):
            found.append(int(path.name))
    return found
