# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A ZooKeeper server that runs on a host of the inventory: where it keeps its data, and what room is left there.

Runs on managed hosts: standard library only. Reads; never changes anything.
"""

from __future__ import annotations

import glob
import os

from ..formats import properties
from .node import space

_MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


def gather() -> list[dict]:
    """Return [{config, error, dirs: [{path, free_bytes, read_only, snapshot_bytes}]}] of the servers on this host.

    `snapshot_bytes`: the newest snapshot's size, 0 where none is kept (FileTxnSnapLog: `version-2` below dataDir and
    dataLogDir). A server of which only its ports are on the command line has no `config` (ServerConfig.parse).
    """
    return [_server(pid, config) for pid, config in _running()]


def _running() -> list[tuple[str, str]]:
    """Return (pid, its configuration file) of each server."""
    found = []
    for path in glob.iglob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, encoding="utf-8", errors="replace") as stream:
                arguments = stream.read().split("\0")[:-1]
        except OSError:
            continue  # it has ended meanwhile
        if _MAIN in arguments[:-1]:
            found.append((path.split("/")[2], arguments[arguments.index(_MAIN) + 1]))
    return sorted(found)


def _server(pid: str, config: str) -> dict:
    try:
        path = config if os.path.isabs(config) else os.path.join(os.readlink(f"/proc/{pid}/cwd"), config)
        with open(path, encoding="latin-1") as stream:
            values = properties.parse(stream.read())
    except (OSError, properties.PropertiesError) as error:
        return {"config": config, "error": str(error), "dirs": []}
    named = (values.get("dataDir"), values.get("dataLogDir"))
    dirs = [_directory(one.strip()) for one in dict.fromkeys(named) if one]
    return {"config": path, "error": None, "dirs": [one for one in dirs if one]}


def _directory(path: str) -> dict | None:
    reported = space(path)
    sizes = []
    for snapshot in glob.glob(os.path.join(glob.escape(path), "version-2", "snapshot.*")):
        try:
            kept = os.stat(snapshot)
        except OSError:
            continue  # purged meanwhile
        sizes.append((kept.st_mtime, kept.st_size))
    return {**reported, "path": path, "snapshot_bytes": max(sizes, default=(0, 0))[1]} if reported else None
