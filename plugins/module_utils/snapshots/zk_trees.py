# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Archive a ZooKeeper server's snapshot and the log after it, from which its tree follows at an exact zxid.

Standard library only. A server writes a snapshot while it goes on, so that has a part of what followed. `newest` asks
the running server how far that can be; the log must then reach at least that zxid.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from typing import Dict, Mapping, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble.leftovers import FILES
from ansible_collections.quorumshift.kafka.plugins.module_utils.files import archives
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import zk_files, zk_log
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import own_zk_server

DIRECTORY = "zk_tree_snapshot"
_COUNTER = 0xFFFFFFFF
_POLL_S = 0.1


class Taken(NamedTuple):
    """An archive. `snapshot`: the zxid of its snapshot; `zxid`: the one that its log reaches."""

    path: str
    sha256: str
    snapshot: int
    zxid: int


def read_newest(values: Mapping[str, str]) -> Dict[str, int]:
    """Return {snapshot: zxid of the newest complete snapshot, zxid: what the server has processed since}.

    No transaction after that zxid is in the snapshot. `values`: of zoo.cfg. Raises OSError, KeyError,
    ZooKeeperFileError, SnapshotError.
    """
    snapshots, logs = own_zk_server.directories(values)
    snapshot = zk_files.newest_snapshot(snapshots)
    answer = own_zk_server.ask(values, "srvr", 5.0)
    found = re.search(r"^Zxid: 0x([0-9a-f]+)$", answer, re.MULTILINE)
    if not found:
        raise archives.SnapshotError(
            f"the ZooKeeper server of this host does not show its zxid in srvr: {answer.strip() or 'no answer'!r}. "
            "Start it, allow srvr in 4lw.commands.whitelist, and run again (QS-ZKMOVE-012)"
        )
    zxid = int(found[1], 16)
    # Right after an election the zxid is that of the new epoch, and of no transaction (Leader.lead)
    return {"snapshot": snapshot.zxid, "zxid": zxid if zxid & _COUNTER else zk_files.last_zxid(snapshots, logs)}


def take(
    values: Mapping[str, str],
    target: str,
    zxid: int,
    known: Mapping[int, int],
    timeout: float,
    log_from: int | None = None,
) -> Taken:
    """Archive the newest snapshot without a transaction after `zxid`, and the log after it, into the directory
    `target`; where that is removed meanwhile, nothing is archived. Waits until the log reaches `zxid`, up to `timeout`
    seconds; a shorter one is archived as well.

    :arg known: {snapshot: zxid} as `newest` returned.
    :arg log_from: a zxid to which the log goes back where the server has it, None for the snapshot's.

    Raises OSError, ZooKeeperFileError, SnapshotError.
    """
    with archives.place(target) as own:
        return _take(values, own, zxid, known, timeout, log_from)


def _take(values, own, zxid, known, timeout, log_from) -> Taken:
    snapshots, logs = own_zk_server.directories(values)
    end = time.monotonic() + timeout
    while zk_files.last_zxid(snapshots, logs) < zxid and time.monotonic() < end:
        time.sleep(_POLL_S)
    snapshot = zk_files.snapshot_up_to(snapshots, zxid, known)
    with contextlib.ExitStack() as stack:

        def opened(directory: str, name: str, whole: bool = True) -> archives.Piece:
            file = stack.enter_context(open(os.path.join(directory, name), "rb"))
            size = os.fstat(file.fileno()).st_size
            return archives.Piece(name, file, 0, size if whole else zk_log.end_of_data(file, size))

        pieces = [opened(snapshots, os.path.basename(snapshot.path))]
        # Of later ones the names alone: they show whether the server received a snapshot in place of transactions
        later = [name for at, name in zk_files.files_of(snapshots, zk_log.SNAPSHOTS) if at > snapshot.zxid]
        pieces += [opened(snapshots, name)._replace(end=0) for name in later if FILES.fullmatch(name)]
        found = zk_log.files_of(logs, zk_log.LOGS)
        begin = snapshot.zxid if log_from is None else min(snapshot.zxid, log_from)
        first = max((index for index, (at, _name) in enumerate(found) if at <= begin), default=0)
        pieces += [opened(logs, name, False) for _at, name in found[first:]]
        path, sha256 = archives.fill(pieces, own, f"{snapshot.zxid:x}.tar.gz")
    return Taken(path, sha256, snapshot.zxid, zxid)
