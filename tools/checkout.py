# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checkout's files, and locks for directories that only one run may use at a time."""

from __future__ import annotations

import fcntl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def checkout_files() -> list[str]:
    """Return the files of the next commit: tracked and new files, without deleted and ignored ones.

    Paths relative to the root, sorted.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    ).stdout.decode()
    return sorted({name for name in listed.split("\0") if name and (ROOT / name).is_file()})


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Hold the lock ``name``; wait for another run that holds it, without a time limit."""
    path = ROOT / ".build" / f"{name}.lock"
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for another run in this checkout ({path})", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
