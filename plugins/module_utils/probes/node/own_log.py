# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read errors from a node's own log, or from the journal of its service.

Runs on managed hosts: standard library only; read-only.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import shlex
import stat
import time
from typing import Iterable, Mapping, Match, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import LastStart, Service
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
_STAMP = re.compile(rb"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})\]")
_MOMENT = re.compile(
    _STAMP.pattern
    + rb".* \[(?:Kafka|Broker|Controller|KafkaRaft)Server (?:id|nodeId)=\d+\] (?:Kafka Server )?"
    + rb"(started|shutting down|shut down completed) \(kafka\.server\.\w+\)"
)
_FILES, _MOST_BYTES, _APART_S = 4, 64 << 20, 300.0  # a start is at the begin of what was written since
_END_BYTES = 8 << 20
# KafkaServer in ZooKeeper mode, and BrokerServer and KafkaServer under KRaft's controllers, in 3.9.2
_FAILED_SHUTDOWN = (
    "Proceeding to do an unclean shutdown as all the controlled shutdown attempts failed",
    "Timed out waiting for the controller to approve controlled shutdown",
    "Got unexpected exception waiting for controlled shutdown future",
)
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


def read_end(log_file: str, lines: int) -> bytes:
    """Return the last lines of a log. Where it was rolled lately they begin in the files that it was rolled to: Kafka's
    default appender does that every hour. Raises OSError if the log itself cannot be read."""
    found = _last_lines(log_file, lines)
    for path in reversed(_since(log_file, 0.0, newest=True)):
        if path == log_file or len(found) >= lines:
            continue
        with contextlib.suppress(OSError):
            found = _last_lines(path, lines - len(found)) + found
    return b"".join(found)


def _last_lines(path: str, lines: int) -> list[bytes]:
    with os.fdopen(safe_files.open_regular(path), "rb") as stream:
        start = max(0, os.fstat(stream.fileno()).st_size - _END_BYTES)
        stream.seek(start)
        found = stream.read(_END_BYTES).splitlines(keepends=True)
    return found[1 if start else 0 :][-lines:] if lines else []


def read_last_start(log_file: str, started_at: float | None) -> LastStart | None:
    """Return how long the node's last start took, and the stop before it, by its own log; None if the log does not say.

    `started_at` (epoch s): the begin of its process. Kafka logs `started`, `shutting down` and `shut down completed`
    (KafkaServer, KafkaRaftServer, BrokerServer, ControllerServer). Its default appender rolls hourly, so the lines may
    be in an earlier file beside the log. A log whose times are not this host's, as with another time zone, says
    nothing.
    """
    if not log_file or not started_at:
        return None
    began, stop_s = None, None  # of the stop
    for path in _since(log_file, started_at):
        for moment, what in _moments(path):
            if moment < started_at:
                if what == "shutting down":
                    began = moment if began is None else began
                elif what == "shut down completed" and began is not None:
                    stop_s = moment - began
                else:
                    began, stop_s = None, None  # an earlier process started
            elif what == "started":
                return {"start_s": round(moment - started_at, 1), "stop_s": stop_s and round(stop_s, 1)}
            elif what == "shutting down":
                return None  # it did not come up
    return None


def _since(log_file: str, moment: float, newest: bool = False) -> list[str]:
    """Return those of a log and the files that it was rolled to that were written after a moment, the oldest first. Of
    many, the oldest or the `newest` count."""
    written = {}
    for path in glob.glob(f"{glob.escape(log_file)}*"):
        with contextlib.suppress(OSError):
            status = os.stat(path)
            if stat.S_ISREG(status.st_mode) and status.st_mtime >= moment and not path.endswith((".gz", ".zip")):
                written[path] = status.st_mtime
    found = sorted(written, key=lambda path: written[path])
    return found[-_FILES:] if newest else found[:_FILES]


def _moments(path: str) -> list[tuple[float, str]]:
    """Return (epoch s, what) of each start and stop in a log; none where the log cannot be read, or where its newest
    line and the file are not of the same time."""
    found, newest = [], None
    try:
        with os.fdopen(safe_files.open_regular(path), "rb") as stream:
            written_at = os.fstat(stream.fileno()).st_mtime
            for line in stream.read(_MOST_BYTES).splitlines():
                newest = line if line[:3] == b"[20" else newest
                match = _MOMENT.match(line)
                if match:
                    found.append((_epoch(match), match[3].decode()))
            is_whole = not stream.read(1)
        stamp = _STAMP.match(newest) if newest else None
        if is_whole and stamp and abs(_epoch(stamp) - written_at) > _APART_S:
            return []
    except (OSError, ValueError, OverflowError):
        return []
    return found


def _epoch(match: Match[bytes]) -> float:
    return time.mktime(time.strptime(match[1].decode(), "%Y-%m-%d %H:%M:%S")) + int(match[2]) / 1000


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


def find_failed_shutdown(path: str, start: int) -> str | None:
    """Return what a broker says of its controlled shutdown in its log from byte `start` on, where that failed: then its
    leaders had not moved when it stopped. None where it says nothing of that kind, or cannot be read."""
    with contextlib.suppress(OSError), os.fdopen(safe_files.open_regular(path), "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        stream.seek(max(start if size >= start else 0, size - _END_BYTES))
        text = stream.read(_END_BYTES).decode(errors="replace")
        return next((words for words in _FAILED_SHUTDOWN if words in text), None)
    return None


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
