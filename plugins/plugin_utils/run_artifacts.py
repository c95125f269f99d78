# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The artifacts of a run on the control node: `<artifacts_dir>/<cluster id>/<run>/`.

`journal.jsonl` holds one JSON object a line, {t: epoch seconds, kind: phase|gate|restart|event, name, host?, end?}. The
verification clients read marks in the same shape. All other artifacts are separate files. None contains secrets, but
they describe a cluster: only their owner can read them, whatever the umask.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import re
import time
from typing import Any, Iterator

from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.masking import mask_all

JOURNAL = "journal.jsonl"
PAGE = "index.html"  # the report, which report.write makes
STATUS = "status.json"  # of the cluster, by plugin_utils/status.schema.json
UNFINISHED = ".new"  # what a file's name ends with until it is complete
_NAME = re.compile(r"[A-Za-z0-9_-]+")


class RunArtifacts:
    """Writes and reads the artifacts of one run. Each task makes its own, so it holds no state but the directory.

    Without `journals`, as in check mode, events are not written: a run that changed nothing has done nothing."""

    def __init__(self, root: str, cluster_id: str, run: str, journals: bool = True):
        for name in (cluster_id, run):
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} cannot be the name of a directory of run artifacts (QS-PHASE-005)")
        self.cluster = os.path.join(os.path.expanduser(root), cluster_id)
        self.directory = os.path.join(self.cluster, run)
        self.page = os.path.join(self.directory, PAGE)
        self.journal = os.path.join(self.directory, JOURNAL)
        self._journals = journals

    @staticmethod
    @contextlib.contextmanager
    def _writing(path: str) -> Iterator[None]:
        """Add the path to an error that names no file, for instance that of a full disk."""
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror, error.filename or path) from None

    def _private(self, path: str) -> None:
        """Create the directory `path` of this run, and make it and those above it up to the cluster's private."""
        os.makedirs(os.path.dirname(self.cluster), mode=0o700, exist_ok=True)
        below = os.path.relpath(path, os.path.dirname(self.cluster)).split(os.sep)
        for count in range(1, len(below) + 1):
            directory = os.path.join(os.path.dirname(self.cluster), *below[:count])
            os.makedirs(directory, mode=0o700, exist_ok=True)
            if os.stat(directory).st_mode & 0o077:  # of an earlier version
                os.chmod(directory, 0o700)

    def note(self, kind: str, name: str, t: float | None = None, **more: Any) -> None:
        """Append an event to the journal, with a single write, so that events of parallel tasks do not mix."""
        if not self._journals:
            return
        self._private(self.directory)
        event = {"t": round(t or time.time(), 3), "kind": kind, "name": name, **mask_all(more)}
        line = f"{json.dumps(event, default=str)}\n".encode()
        with self._writing(self.journal):
            handle = os.open(self.journal, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                size = os.fstat(handle).st_size
                if size and os.pread(handle, 1, size - 1) != b"\n":  # a full disk left an incomplete line
                    line = b"\n" + line
                if os.write(handle, line) < len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            finally:
                os.close(handle)

    def save(self, name: str, content: str) -> str:
        """Write an artifact (its name may contain directories), with secrets masked, and return its path."""
        if name.endswith(".json"):
            content = json.dumps(mask_all(json.loads(content)), indent=1)
        path = os.path.join(self.directory, name)
        if os.path.isabs(name) or ".." in name.split("/"):  # it may hold a host's name of the inventory
            raise OSError(errno.EINVAL, "is outside of the run's directory (QS-PHASE-005)", path)
        self._private(os.path.dirname(path))
        with self._writing(path), open(path + UNFINISHED, "w", encoding="utf-8", opener=private) as stream:
            stream.write(content)
        os.replace(path + UNFINISHED, path)
        return path

    def create_cluster(self) -> str:
        """Create the cluster's directory, if it is not there, and return its path."""
        self._private(self.cluster)
        return self.cluster

    def save_status(self, content: str) -> str:
        """Write the cluster's newest status, which belongs to no run, and return its path."""
        self._private(self.cluster)
        path = os.path.join(self.cluster, STATUS)
        with self._writing(path), open(path + UNFINISHED, "w", encoding="utf-8", opener=private) as stream:
            stream.write(json.dumps(mask_all(json.loads(content)), indent=1))
        os.replace(path + UNFINISHED, path)
        return path

    def read(self, name: str) -> str | None:
        """Return an artifact's text, None when it does not exist."""
        path = os.path.join(self.directory, name)
        if not os.path.exists(path):
            return None
        with open(path, encoding="utf-8") as stream:
            return stream.read()

    def new_directory(self, name: str) -> str:
        """Create a directory for artifacts and return its path: NAME, or NAME-2, NAME-3, ... when that exists."""
        path = os.path.join(self.directory, name)
        for number in itertools.count(2):
            if not os.path.exists(path):
                break
            path = os.path.join(self.directory, f"{name}-{number}")
        self._private(path)
        return path

    def events(self) -> list[dict]:
        """Return the run's events in the journal's order."""
        return list(_read(self.journal))

    def runs(self) -> list[str]:
        """Return the names of all runs on this cluster that have artifacts here."""
        return sorted(os.listdir(self.cluster)) if os.path.isdir(self.cluster) else []

    def all_events(self) -> list[dict]:
        """Return the events of all these runs, by time."""
        paths = (os.path.join(self.cluster, run, JOURNAL) for run in self.runs())
        return sorted((event for path in paths for event in _read(path)), key=lambda event: event["t"])


def private(path: str, flags: int) -> int:
    """Open a file that only its owner may read, as the `opener` of `open`."""
    handle = os.open(path, flags, 0o600)
    os.fchmod(handle, 0o600)
    return handle


def _read(path: str) -> Iterator[dict]:
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8") as stream:
        for line in stream:
            try:
                yield json.loads(line)
            except ValueError:
                continue  # a killed run or a full disk may leave an incomplete line
