# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A terminal on which a block of lines is redrawn below all that is printed."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from typing import Any, Callable, Mapping, Sequence, TextIO

TICK_S = 0.5
# Ansible runs in a pseudo-terminal there, and every line is kept: AWX, ansible-runner, ansible-navigator
_RUNNERS = ("AWX_ISOLATED_DATA_DIR", "RUNNER_OMIT_EVENTS", "JOB_ID", "AWX_JOB_ID", "CI")


def can_draw(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Return whether a stream is a terminal that a person looks at."""
    if any(environment.get(name) for name in _RUNNERS) or environment.get("TERM", "") in ("", "dumb"):
        return False
    try:
        return os.isatty(stream.fileno())
    except (OSError, ValueError):
        return False


class _Above:
    """Takes the place of a stream: what is written appears above the block."""

    def __init__(self, stream: TextIO, block: LiveBlock) -> None:
        self._stream, self._block, self._pid = stream, block, os.getpid()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text, and the block again."""
        if os.getpid() != self._pid:
            return self._stream.write(text)
        self._block.write(self._stream, text)
        return len(text)


class LiveBlock:
    """Draws what `render(columns)` returns twice a second, until it is closed.

    It writes to the file descriptor: Ansible's display holds a lock while it writes to a stream, which a worker that is
    forked at that moment must not find taken.
    """

    def __init__(self, render: Callable[[int], Sequence[str]]) -> None:
        self._render, self._lock, self._stopped = render, threading.Lock(), threading.Event()
        self._drawn: list[str] = []
        self.failure = ""  # why nothing is drawn any more
        self._in_line = False  # the cursor is behind a prompt
        self._out, self._error = sys.stdout, sys.stderr
        self._out.flush()
        self._error.flush()
        self._fd = self._out.fileno()
        sys.stdout = _Above(self._out, self)  # type: ignore[assignment]
        if os.isatty(self._error.fileno()):
            sys.stderr = _Above(self._error, self)  # type: ignore[assignment]
        self._thread = threading.Thread(target=self._tick, daemon=True)
        self._thread.start()

    def write(self, stream: TextIO, text: str) -> None:
        """Write a text to a stream, above the block."""
        with self._lock:
            before, self._in_line = self._erased(), not text.endswith("\n") if text else self._in_line
            after = "" if self._in_line else self._drawing()
            _write(self._fd, before.encode())
            _write(stream.fileno(), text.encode(stream.encoding or "utf-8", stream.errors or "replace"))
            _write(self._fd, after.encode())

    def close(self) -> None:
        """Remove the block, and give the streams back."""
        self._stopped.set()
        with self._lock, contextlib.suppress(OSError):
            _write(self._fd, self._erased().encode())
            self._in_line = True
        sys.stdout, sys.stderr = self._out, self._error

    def _tick(self) -> None:
        while not self._stopped.wait(TICK_S):
            with self._lock:
                if self._stopped.is_set() or self._in_line:
                    continue
                try:
                    shown = self._drawn
                    before = self._erased()
                    after = self._drawing()
                    if shown != self._drawn:
                        _write(self._fd, f"{before}{after}".encode())
                except OSError:  # the terminal was closed
                    return

    def _erased(self) -> str:
        """Return what removes the block, from the end of its last line."""
        columns = os.get_terminal_size(self._fd).columns or 80  # narrower than at the drawing, it has wrapped the lines
        rows = sum(-(-max(1, len(line)) // columns) for line in self._drawn)
        up = f"\x1b[{rows - 1}A" if rows > 1 else ""
        erased = f"\r{up}\x1b[J" if self._drawn else ""
        self._drawn = []
        return erased

    def _drawing(self) -> str:
        """Return the block as it is now. In the last column a terminal may wrap."""
        size = os.get_terminal_size(self._fd)
        try:
            lines = [] if self.failure else self._render(max(10, (size.columns or 80) - 1))
        except Exception as error:  # what goes wrong here is no reason to stop a run
            lines, self.failure = [], f"{type(error).__name__}: {error}"
        self._drawn = list(lines[: max(1, (size.lines or 24) - 1)])
        return "\n".join(self._drawn)


def _write(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]
