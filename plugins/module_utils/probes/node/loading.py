# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Follow how a node loads its partitions while it starts, in its own log. Runs on managed hosts: standard library only.

The messages are those of LogManager, LogLoader and UnifiedLog in Kafka 3.9. After an unclean stop a node recovers each
partition before its listener answers, which takes minutes to hours.
"""

from __future__ import annotations

import os
import re

from ansible_collections.quorumshift.kafka.plugins.module_utils.files import safe_files

_AT_ONCE = 1 << 23  # bytes
_FOUND = re.compile(r"(Recovering|Skipping recovery of) \d+ logs from (\S+)")
_LOADED = re.compile(r"Completed load of .*\((\d+)/(\d+) completed in (\S+?)\)")
# Only what belongs to loading: a node that hangs afterwards still rolls segments and retries connections.
_LOADING = re.compile(
    r"\[LogLoader partition=.*"
    r"|Recovering unflushed segment .*"
    r"|Loading producer state (?:from|till) .*"
    r"|Reloading from producer snapshot .*"
    r"|Producer state recovery took .*"
    r"|Loading logs from log dirs .*"
    r"|Loaded \d+ logs in .*"
)
_SHOWN = 160  # characters


class Loading:
    """The loading that a log shows from byte `start` on."""

    def __init__(self, path: str, start: int) -> None:
        self._count = self._detail = ""
        self._path, self._at, self._rest = path, start, b""
        self._recovers: set[str] = set()

    @property
    def text(self) -> str:
        """The newest count of loaded partitions, before the first one the newest line about loading, '' before any."""
        return self._count or self._detail

    def advanced(self) -> bool:
        """Read what is new in the log; return whether the node has loaded more since the last call: a partition, or a
        segment of a large one."""
        before = (self._count, self._detail)
        for line in self._new_lines():
            found, loaded = _FOUND.search(line), _LOADED.search(line)
            if found and found.group(1) == "Recovering":
                self._recovers.add(found.group(2))
            if loaded:
                done, total, directory = loaded.groups()
                how = "recovering" if directory in self._recovers else "loading"
                self._count = f"{how} log directory {directory}: {done} of {total} logs"
                continue
            other = found or _LOADING.search(line)
            if other:
                self._detail = other.group(0)[:_SHOWN]
        return (self._count, self._detail) != before

    def _new_lines(self) -> list[str]:
        try:
            # A log that is shorter than before was rotated.
            if os.path.getsize(self._path) < self._at:
                self._at, self._rest = 0, b""
            with os.fdopen(safe_files.open_regular(self._path), "rb") as stream:
                stream.seek(self._at)
                read = stream.read(_AT_ONCE)
        except OSError:
            return []
        self._at += len(read)
        *lines, self._rest = (self._rest + read).split(b"\n")
        return [line.decode("utf-8", "replace") for line in lines]
