# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A directory that driver and executors share: a path, or a URI of a file system that Hadoop knows."""

from __future__ import annotations

import os
import re
import time
from typing import Any, Dict

from pyspark.sql import SparkSession

_FILE = "file://"


class Storage:
    """The directory at a path or URI. `uri`: as Spark takes it; `path`: of a directory of this host, a mount of NFS for
    instance, else None."""

    def __init__(self, spark: SparkSession, place: str) -> None:
        self.uri = (place if "://" in place else f"{_FILE}{os.path.abspath(place)}").rstrip("/")
        self.path = self.uri[len(_FILE) :] if self.uri.startswith(_FILE) else None
        self._spark = spark

    def list(self, name: str = "") -> Dict[str, int]:
        """Return the files and directories of a directory in it, {name: bytes}; none if there is no such directory."""
        return {status.getPath().getName(): status.getLen() for status in self._statuses(name)}

    def make(self, name: str) -> None:
        """Create a directory."""
        self._file_system.mkdirs(self._path(name))

    def mark(self, name: str) -> None:
        """Create an empty file."""
        self._file_system.create(self._path(name)).close()

    def remove(self, name: str) -> None:
        """Remove a file or directory, if it is there."""
        self._file_system.delete(self._path(name), True)

    def remove_old(self, names: str, seconds: float) -> None:
        """Remove what has a name that this regular expression matches, and was not written to for so long."""
        for status in self._statuses(""):
            name = status.getPath().getName()
            if re.fullmatch(names, name) and status.getModificationTime() / 1000 < time.time() - seconds:
                self.remove(name)

    def _statuses(self, name: str) -> Any:
        path = self._path(name)
        return self._file_system.listStatus(path) if self._file_system.exists(path) else ()

    def _path(self, name: str) -> Any:
        return self._spark._jvm.org.apache.hadoop.fs.Path(f"{self.uri}/{name}".rstrip("/"))

    @property
    def _file_system(self) -> Any:
        return self._path("").getFileSystem(self._spark._jsc.hadoopConfiguration())
