# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The waits of actions, for the callback `screen`: the one with a terminal creates the file, the actions append to it.

Actions run in processes of their own, of which a callback sees the results alone. The file is in the temporary
directory of this Ansible process, which only its user can read.
"""

from __future__ import annotations

import contextlib
import io
import json
import os

from ansible import constants


def path() -> str:
    """Return where the file is while a screen draws."""
    return os.path.join(constants.DEFAULT_LOCAL_TMP, "quorumshift-waits")


def note(host: str, text: str) -> bool:
    """Append what the task of a host waits for, and return whether a screen shows it."""
    line = f"{json.dumps([host, text])}\n".encode()
    try:
        handle = os.open(path(), os.O_WRONLY | os.O_APPEND)
    except OSError:
        return False
    try:
        return os.write(handle, line) == len(line)
    except OSError:
        return False
    finally:
        os.close(handle)


class Feed:
    """Reads what was appended since the last time."""

    def __init__(self) -> None:
        self._path = path()
        self._stream = io.FileIO(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600))
        self._rest = b""

    def read(self) -> list[tuple[str, str]]:
        """Return the new waits as (host, text). A line that is being written is left for the next time."""
        lines = (self._rest + (self._stream.read() or b"")).split(b"\n")
        self._rest, found = lines.pop(), []
        for line in lines:
            with contextlib.suppress(ValueError, TypeError):  # of a full disk
                host, text = json.loads(line)
                found.append((str(host), str(text)))
        return found

    def close(self) -> None:
        """Let the actions print their waits again."""
        with contextlib.suppress(OSError):
            os.unlink(self._path)
        self._stream.close()
