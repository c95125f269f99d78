# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Archive all that a ZooKeeper server needs to serve its tree again, and prove that by reading it back.

Standard library only. An archive has the newest complete snapshot, the transaction log after it, the configuration and
`myid`. It is read back whole: snapshot and log have checksums of their own (FileSnap, FileTxnLog). The server may run.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from typing import Any, Dict, List, Mapping, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.files import archives
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import zk_files, zk_log, znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import own_zk_server

DIRECTORY = "zookeeper_archive"
_NAMES = re.compile(r"(snapshot|log)\.[0-9a-f]+|myid|config|dynamic_config")
_CREATE_SESSION, _ERROR = -10, -1  # ZooDefs.OpCode
_OF_SESSIONS = (_CREATE_SESSION, zk_log.CLOSE_SESSION, _ERROR)


class ArchiveError(Exception):
    """An archive does not have what it must; the text says what, and what to do."""


class Archive(NamedTuple):
    """An archive. `zxid`: of its last transaction; `znodes`: how many it has; `cluster_id`: in its /cluster/id below
    the chroot, None without."""

    path: str
    sha256: str
    zxid: int
    znodes: int
    cluster_id: str | None


def take(values: Mapping[str, str], config_file: str, parent: str, chroot: str) -> Archive:
    """Archive a server's files in a directory below `parent`, which is named by the archive's zxid, and read it back.

    `values`: of its zoo.cfg. Raises OSError, ZooKeeperFileError, SnapshotError, ArchiveError.
    """
    snapshots, logs = own_zk_server.directories(values)
    snapshot = zk_files.newest_snapshot(snapshots)
    with contextlib.ExitStack() as stack:

        def opened(path: str, name: str, is_log: bool = False) -> archives.Piece:
            file = stack.enter_context(open(path, "rb"))
            size = os.fstat(file.fileno()).st_size
            return archives.Piece(name, file, 0, zk_log.end_of_data(file, size) if is_log else size)

        pieces: List[Any] = [opened(snapshot.path, os.path.basename(snapshot.path))]
        found = zk_log.files_of(logs, zk_log.LOGS)
        first = max((index for index, (at, _name) in enumerate(found) if at <= snapshot.zxid), default=0)
        pieces += [opened(os.path.join(logs, name), name, True) for _at, name in found[first:]]
        for path, name in _settings(values, config_file):
            pieces.append(opened(path, name))
        last = zk_files.last_zxid(snapshots, logs)
        path, sha256 = archives.create(pieces, os.path.join(parent, DIRECTORY, f"{last:x}"), f"{last:x}.tar.gz")
    return read_back(path, sha256, chroot)


def read_back(path: str, sha256: str, chroot: str) -> Archive:
    """Return what an archive has, read whole. Raises OSError, ZooKeeperFileError, SnapshotError, ArchiveError."""
    with tempfile.TemporaryDirectory(prefix="read-", dir=os.path.dirname(path)) as scratch:  # made 0700
        archives.unpack(path, sha256, os.path.join(scratch, "files"), _NAMES)
        files = os.path.join(scratch, "files")
        zxid, nodes = zk_files.read_tree(files, files)
        wanted, count, cluster_id = chroot + znodes.CLUSTER_ID, 0, None
        for znode, node in nodes:
            count += 1
            if znode == wanted:
                cluster_id = _cluster_id(node.data, path)
    return Archive(path, sha256, zxid, count, cluster_id)


def is_current(values: Mapping[str, str], zxid: int) -> bool:
    """Return whether a server's data are those of an archive that ends at a zxid: only sessions have begun or ended
    since. False also where the files do not show it. Raises OSError."""
    snapshots, logs = own_zk_server.directories(values)
    try:
        return all(found.kind in _OF_SESSIONS for found in zk_log.transactions(logs, zxid, snapshots))
    except zk_log.ZooKeeperFileError:
        return False


def _settings(values: Mapping[str, str], config_file: str) -> List[tuple]:
    found = [(config_file, "config"), (os.path.join(values.get("dataDir", ""), "myid"), "myid")]
    if values.get("dynamicConfigFile"):
        found.append((values["dynamicConfigFile"], "dynamic_config"))
    return [(path, name) for path, name in found if os.path.isfile(path)]


def _cluster_id(data: bytes | None, path: str) -> str:
    try:
        return str(znodes.cluster_id(data))
    except znodes.ZnodeError as error:
        raise ArchiveError(f"{path}: {error} (QS-ZKSTOP-006)") from None


def facts(archive: Archive) -> Dict[str, Any]:
    """Return an archive as the record of its host has it."""
    return dict(archive._asdict())
