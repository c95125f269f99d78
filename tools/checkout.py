# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checkout's files, and its directories that one run at a time may use."""

from __future__ import annotations

import fcntl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def checkout_files() -> list[str]:
    """The files as a commit would have them, tracked and new ones without what git ignores.

    Paths relative to the root, sorted; a tracked file that was deleted is not among them.
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
    """Wait for another run in this checkout that holds ``name``, saying so; the caller's step limit bounds it."""
    path = ROOT / ".build" / f"{name}.lock"
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for another run in this checkout ({path})", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
