# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the ZooKeeper servers on a host of the inventory, with their data directories and free space.

Runs on managed hosts: standard library only; read-only.
"""

from __future__ import annotations

import glob
import os

from .. import safe_files
from ..formats import properties
from .node import space

_MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


def gather() -> list[dict]:
    """Return [{config, error, dirs: [{path, free_bytes, read_only, snapshot_bytes}]}] of the servers on this host.

    `snapshot_bytes`: the newest snapshot's size, 0 if there is none (FileTxnSnapLog: `version-2` below dataDir and
    dataLogDir). For a server with only its port and directory on the command line (ServerConfig.parse), `error` is set.
    """
    return [_server(pid, config) for pid, config in _running()]


def _running() -> list[tuple[str, str]]:
    """Return (pid, configuration file) of each server."""
    servers = []
    for path in glob.iglob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, encoding="utf-8", errors="replace") as stream:
                arguments = stream.read().split("\0")[:-1]
        except OSError:
            continue  # the process has ended meanwhile
        if _MAIN in arguments[:-1]:
            servers.append((path.split("/")[2], arguments[arguments.index(_MAIN) + 1]))
    return sorted(servers)


def _server(pid: str, config: str) -> dict:
    try:
        path = config if os.path.isabs(config) else os.path.join(os.readlink(f"/proc/{pid}/cwd"), config)
        values = properties.parse(safe_files.read(path).decode("latin-1"))
    except (OSError, properties.PropertiesError) as error:
        return {"config": config, "error": str(error), "dirs": []}
    paths = (values.get("dataDir"), values.get("dataLogDir"))
    dirs = [_directory(each.strip()) for each in dict.fromkeys(paths) if each]
    return {"config": path, "error": None, "dirs": [directory for directory in dirs if directory]}


def _directory(path: str) -> dict | None:
    file_system = space(path)
    sizes = []
    for snapshot in glob.glob(os.path.join(glob.escape(path), "version-2", "snapshot.*")):
        try:
            status = os.stat(snapshot)
        except OSError:
            continue  # purged meanwhile
        sizes.append((status.st_mtime, status.st_size))
    return {**file_system, "path": path, "snapshot_bytes": max(sizes, default=(0, 0))[1]} if file_system else None
