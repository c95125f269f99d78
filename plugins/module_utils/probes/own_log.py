# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the newest error from a node's own log, or from the journal of its service.

Runs on managed hosts: standard library only; read-only.
"""

from __future__ import annotations

import os
import re
from typing import Iterable, Mapping, Sequence

from ..facts import Service
from ..seal import MASK, is_secret
from . import service

NOISE = "(state.change.logger)"  # logs ERROR at any start, for partitions whose leader is elsewhere or down
_ERROR = re.compile(r"\b(ERROR|FATAL)\b")
_CAUSE = re.compile(r"(?:Caused by: )?(?:[\w$]+\.)+[\w$]+(?:Exception|Error)\b.*")
_NAMED = re.compile(r"((?:password|secret|token)\w*\s*[=:]\s*)\S+", re.IGNORECASE)
_TAIL_BYTES, _LONGEST = 1 << 16, 500


def last_error(log_file: str, state: Service, secrets: Iterable[str] = ()) -> str | None:
    """Return the newest error with its exception on one line, without `secrets`; None if there is none.

    If the service does not run and has written nothing to the log since its start, return the journal's last error or
    last line: then Java, or the script before it, ended early.
    """
    lines, written_at = _tail(log_file)
    if state["active"] or written_at >= (state.get("started_at") or 0.1):
        found = newest(lines)
    else:
        lines = service.journal(state["name"])
        found = newest(lines) or (lines[-1] if lines else None)
    return _without(secrets, found)[:_LONGEST] if found else None


def newest(lines: Sequence[str]) -> str | None:
    """Return the last line of level ERROR or FATAL, with its exception and the deepest cause."""
    at = next((i for i in reversed(range(len(lines))) if _ERROR.search(lines[i]) and NOISE not in lines[i]), None)
    if at is None:
        return None
    thrown = []
    for line in lines[at + 1 :]:
        if line.startswith("["):  # the next entry of the log
            break
        thrown += [line.strip()] if _CAUSE.match(line.strip()) else []
    return " ".join(dict.fromkeys([lines[at].strip(), *thrown[:1], *thrown[-1:]]))


def secrets_of(properties: Mapping[str, str]) -> list[str]:
    """Return the secrets in a properties file that a log could repeat, with the passwords in its JAAS settings."""
    values = [value for key, value in properties.items() if is_secret(key) and value]
    return values + [inner for value in values for inner in re.findall(r'"([^"]+)"', value)]


def _without(secrets: Iterable[str], text: str) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return _NAMED.sub(rf"\1{MASK}", text)


def _tail(path: str) -> tuple[list[str], float]:
    """Return the end of a log as lines, and when it was written; ([], 0) if it cannot be read."""
    try:
        with open(path, "rb") as stream:
            status = os.fstat(stream.fileno())
            stream.seek(max(0, status.st_size - _TAIL_BYTES))
            lines = stream.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return [], 0
    return [line for line in lines if line.strip()], status.st_mtime
