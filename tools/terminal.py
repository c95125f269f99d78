# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A terminal as an operator sees it: what a program wrote to a pseudo-terminal, as lines of text."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence

_PARTS = re.compile(r"\x1b\[(\d*)([A-Za-z])|\x1b\[[\d;]*m|([\r\n])|([^\x1b\r\n]+)|(\x1b)")
_INCOMPLETE = re.compile(r"\x1b(\[[\d;]*)?$")


class Terminal:
    """The lines of a terminal with `columns`, those scrolled out of sight too. It wraps, moves up and clears."""

    def __init__(self, columns: int) -> None:
        self.columns, self.lines, self.row, self.column = columns, [""], 0, 0
        self.unknown: list[str] = []
        self.written = ""
        self._rest = ""

    def feed(self, text: str) -> None:
        """Take what a program wrote. A sequence may come in two pieces."""
        self.written += text
        text = self._rest + text
        cut = _INCOMPLETE.search(text)
        self._rest, text = (cut.group(), text[: cut.start()]) if cut else ("", text)
        for match in _PARTS.finditer(text):
            number, command, control, plain, _escape = match.groups()
            if command == "A":
                self.row = max(0, self.row - int(number or 1))
            elif command == "J" and not number:
                self.lines = [*self.lines[: self.row], self.lines[self.row][: self.column]]
            elif command == "K" and not number:
                self.lines[self.row] = self.lines[self.row][: self.column]
            elif control == "\r":
                self.column = 0
            elif control == "\n":
                self._down()
            elif plain:
                for character in plain:
                    self._put(character)
            elif not match.group().endswith("m"):
                self.unknown.append(match.group())

    def _down(self) -> None:
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append("")

    def _put(self, character: str) -> None:
        if self.column == self.columns:
            self.column = 0
            self._down()
        line = self.lines[self.row].ljust(self.column)
        self.lines[self.row] = line[: self.column] + character + line[self.column + 1 :]
        self.column += 1

    @property
    def text(self) -> str:
        """Return what can be read now."""
        return "\n".join(line.rstrip() for line in self.lines)


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    columns: int = 80,
    limit_s: float = 300,
    seen: Callable[[Terminal, int], None] = lambda _terminal, _pid: None,
    cwd: str | None = None,
) -> tuple[int, Terminal, str]:
    """Run a command in a pseudo-terminal; return its exit code, the terminal, and all that was written. `seen` is
    called after each piece of it."""
    control, own = pty.openpty()
    fcntl.ioctl(own, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def lead() -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        command, stdin=own, stdout=own, stderr=own, env=dict(environment), preexec_fn=lead, close_fds=True, cwd=cwd
    )
    os.close(own)
    terminal, written, deadline = Terminal(columns), "", time.monotonic() + limit_s
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while time.monotonic() < deadline:
        if not select.select([control], [], [], 1.0)[0]:
            continue
        try:
            data = os.read(control, 65536)
        except OSError:  # the last process has closed it
            break
        if not data:
            break
        text = decoder.decode(data)
        written += text
        terminal.feed(text)
        seen(terminal, process.pid)
    else:
        process.kill()
    os.close(control)
    return process.wait(), terminal, written
