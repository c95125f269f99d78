# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read errors from a node's own log, or from the journal of its service.

Runs on managed hosts: standard library only; read-only.
"""

from __future__ import annotations

import os
import re
import shlex
from typing import Iterable, Mapping, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import Service
from ansible_collections.quorumshift.kafka.plugins.module_utils.files import safe_files
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import service
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets import masking

NOISE = "(state.change.logger)"  # logs ERROR at any start, for partitions whose leader is elsewhere or down
_ERROR = re.compile(r"\b(ERROR|FATAL)\b")
_CAUSE = re.compile(r"(?:Caused by: )?(?:[\w$]+\.)+[\w$]+(?:Exception|Error)\b.*")
_TAIL_BYTES, _LONGEST = 1 << 16, 500
_EXCERPT_LINES = 12
_TIME = re.compile(r"\[\d{4}-\d\d-\d\d [\d:,.]+\] ")
_EVENT = re.compile(r"^(?=\[\d{4}-\d\d-\d\d )", re.MULTILINE)
_MARKS = (" ERROR ", " FATAL ", "Exception")  # of lines that an excerpt shows first


def read_last_error(log_file: str, state: Service, secrets: Iterable[str] = ()) -> str | None:
    """Return the newest error with its exception on one line, without `secrets`; None if there is none.

    If the service does not run and has written nothing to the log since its start, return the journal's last error or
    last line: then Java, or the script before it, ended early.
    """
    lines, written_at = _tail(log_file)
    if state["active"] or written_at >= (state.get("started_at") or 0.1):
        found = find_newest_error(lines)
    else:
        lines = service.read_journal(state["name"])
        found = find_newest_error(lines) or (lines[-1] if lines else None)
    return masking.mask(found, secrets)[:_LONGEST] if found else None


def find_newest_error(lines: Sequence[str]) -> str | None:
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


def excerpt(path: str, start: int, service_name: str, values: Mapping[str, str]) -> str:
    """Return the last errors, or the last lines, of the node's own log from byte `start` on, with secrets masked.

    `values`: the node's properties, whose secrets the log may repeat.
    """
    try:
        # A log that is shorter than before was rotated.
        with os.fdopen(safe_files.open_regular(path), "r", encoding="utf-8", errors="replace") as stream:
            stream.seek(start if os.fstat(stream.fileno()).st_size >= start else 0)
            text = stream.read()
    except OSError as error:
        return f"Its log could not be read: {error}"
    if not text.strip():
        return f"{path} has no line of this start: see `journalctl -u {shlex.quote(service_name)}`"
    errors = any(map(_is_error, text.split("\n")))
    secrets = masking.known_secrets(values)
    once: dict[str, str] = {}  # several loggers repeat the causes of one exception
    for event in reversed(_EVENT.split(text)):
        if len(once) >= _EXCERPT_LINES:
            break
        lines = event.split("\n")
        if errors and not any(map(_is_error, lines)):
            continue
        # Masked as a whole, because a secret may continue over several lines
        for line in reversed(masking.mask(event, secrets).split("\n")):
            if line.strip() and (_is_error(line) or not errors):
                once.setdefault(strip_times(line.rstrip()), line.rstrip())
    return "\n".join([f"{path} says:", *reversed(list(once.values())[:_EXCERPT_LINES])])


def _is_error(line: str) -> bool:
    return any(mark in line for mark in _MARKS) and NOISE not in line


def strip_times(text: str) -> str:
    """Return a log's text without timestamps, for comparison."""
    return _TIME.sub("", text)


def _tail(path: str) -> tuple[list[str], float]:
    """Return the end of a log as lines, and when it was written; ([], 0) if it cannot be read."""
    try:
        with os.fdopen(safe_files.open_regular(path), "rb") as stream:
            status = os.fstat(stream.fileno())
            stream.seek(max(0, status.st_size - _TAIL_BYTES))
            lines = stream.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return [], 0
    return [line for line in lines if line.strip()], status.st_mtime
