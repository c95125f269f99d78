# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A managed host's state of one cluster in `<state_dir>/<cluster id>/`: its lock, its files, its journal.

Standard library only. Files are replaced by rename, so that a reader sees complete JSON. Only the journal is appended
to, one line with one write.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from typing import Any, Iterator, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import same_cluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.files import safe_files

LOCK = "lock"
RUN_LOCK = "run_lock.json"
RESTART = "restart.json"
COPY = "copy.json"
JOURNAL = "journal.jsonl"
DIGEST_KEY = "digest_key.json"

OPTIONS = {"state_dir": {"type": "path", "default": "/var/lib/quorumshift"}}
"""Argument spec of the state directory; the doc fragment quorumshift.kafka.host_record documents it."""

HELD_OPTIONS = {
    **OPTIONS,
    "run": {"type": "str", "required": True},
    "cluster_id": {"type": "str", "required": True},
}
"""Argument spec of modules that lock a host for a run; quorumshift.kafka.host_record and its part `run` document it."""


class Held(RuntimeError):
    """The host's lock is held: a restart runs."""


def path_of(root: str, cluster_id: str) -> str:
    """Return the path of the host's directory of one cluster. Raises ValueError for what is no cluster id."""
    if not same_cluster.is_cluster_id(cluster_id):
        raise ValueError(f"{cluster_id!r} is no cluster id of Kafka (QS-PHASE-005)")
    return os.path.join(root, cluster_id)


def make_directory(root: str, cluster_id: str) -> str:
    """Return the host's directory of one cluster; create it with mode 0700 if it is missing. Errors as of `path_of`."""
    path = path_of(root, cluster_id)
    os.makedirs(path, mode=0o700, exist_ok=True)
    return path


@contextlib.contextmanager
def lock(path: str) -> Iterator[int]:
    """Hold the lock of a host's directory and yield its file descriptor. Raises Held."""
    handle = os.open(os.path.join(path, LOCK), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Held(path) from None
        yield handle
    finally:
        os.close(handle)


def is_held(path: str) -> bool:
    """Return whether a worker holds the lock of a directory."""
    try:
        with lock(path):
            return False
    except Held:
        return True


def read_json(path: str) -> Any:
    """Return a JSON file's content, None if it is missing, {"error": ...} if it is not JSON."""
    if not path:
        return None
    try:
        return json.loads(safe_files.read(path).decode("utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        return {"error": f"{path}: {error}"}


def write_json(path: str, value: Mapping[str, Any]) -> None:
    """Replace a file (mode 0600) and flush it to disk."""
    safe_files.replace(path, json.dumps(value).encode(), 0o600)


def note(path: str, name: str, run: str, **more: Any) -> None:
    """Append an event to the journal of a host's directory: {t: epoch seconds, name, run, ...}.

    After an incomplete last line, left by a crash, the event begins on a new line.
    """
    line = json.dumps({"t": round(time.time(), 3), "name": name, "run": run, **more}) + "\n"
    handle = os.open(os.path.join(path, JOURNAL), os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        size = os.fstat(handle).st_size
        torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        os.write(handle, (b"\n" if torn else b"") + line.encode())
        os.fsync(handle)
    finally:
        os.close(handle)


def read_journal(path: str, newest: int) -> dict:
    """Return {events: the `newest` events of a host's journal, oldest first, torn: number of lines that cannot be read,
    cut: whether older events were left out}."""
    events: list[dict] = []
    torn = 0
    try:
        lines = safe_files.read(os.path.join(path, JOURNAL)).decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        lines = []
    for line in lines:
        try:
            event = json.loads(line)
            events.append({"t": event["t"], "name": event["name"], "run": event["run"], **event})
        except (ValueError, TypeError, KeyError):
            torn += 1
    return {"events": events[-newest:], "torn": torn, "cut": len(events) > newest}
