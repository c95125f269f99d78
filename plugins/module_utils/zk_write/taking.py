# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Take a backup of the live tree that is consistent with one transaction."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import stat as stat_module
import time
from collections import Counter

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write import backup_file, comparing, live_tree
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write.backup_file import Backup, BackupError


def ancestors_of(chroot):
    """Return the paths above a chroot: ``["/", "/a"]`` for ``/a/b``, none without a chroot."""
    names = chroot.strip("/").split("/") if chroot.strip("/") else []
    return ["/" + "/".join(names[:depth]) for depth in range(len(names))]


def survey(client, cluster_id=None, window=500, max_rate=None, timeout=30.0):
    """Return the size of what :func:`take` would write: ``{"cluster_id", "znodes", "ephemerals", "data_bytes"}``."""
    reader = zookeeper.Reader(client, window, max_rate, timeout)
    counts = backup_file.Counts()
    result = {"cluster_id": live_tree.read_cluster_id(reader)}
    comparing.require_run(result["cluster_id"], reader, cluster_id)
    for node in reader.tree():
        _refuse_masked(node, client.chroot)
        counts.add(node)
    result.update(counts.totals())
    return result


def take(client, path, servers, tool, ancestors=(), cluster_id=None, window=500, max_rate=None, rounds=5, timeout=30.0):
    """Write the subtree below the client's chroot into ``path``, a new file.

    :arg servers: connect string for the header; ``tool``: name of the tool that takes the backup.
    :arg ancestors: Znodes above the chroot, read over a connection without chroot (:func:`ancestors_of`).
    :arg cluster_id: of the run; None outside of a run.
    :arg rounds: maximum number of re-checks for znodes that changed meanwhile. A re-check that sees only volatile
        znodes change (:data:`znodes.VOLATILE_KINDS` and ephemerals) is the last one.
    :returns: ``{"path", "sha256" (of the file), "file_bytes", "cluster_id", "zxid", "znodes", "ephemerals",
        "data_bytes", "moving": {"by_kind", "paths"}, "rounds", "vanished"}``.
    :raises BackupError: the file exists, its directory is open to others, ACLs are masked.
    :raises zookeeper.ZooKeeperError: the tree cannot be read; no file is left behind.
    """
    directory = _private_directory(path)
    if os.path.lexists(path):
        raise BackupError(f"{path} exists already: it is not overwritten (QS-BACKUP-001)")
    reader = zookeeper.Reader(client, window, max_rate, timeout)
    header = {
        "quorumshift_zk_backup": backup_file.FORMAT,
        "cluster_id": live_tree.read_cluster_id(reader),
        "chroot": client.chroot or "/",
        "servers": servers,
        "taken_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "tool": tool,
        "zxid_start": reader.zxid(),
    }
    comparing.require_run(header["cluster_id"], reader, cluster_id)
    for node in ancestors:
        _refuse_masked(node, "")
    stem = os.path.join(directory, f".{os.path.basename(path)}.{os.getpid()}")
    with _scratch(stem + ".walk") as walk, _scratch(stem + ".part") as part:
        with _Packed(walk) as out:
            for node in reader.tree():
                _refuse_masked(node, client.chroot)
                out.write(backup_file.line(node))
        horizon = reader.zxid()
        overlay, moving = {}, []
        round_number = 0
        while round_number < rounds:
            round_number += 1
            if moving:
                horizon = reader.zxid()
            moved, acl_set = _find_moved(reader, lambda: _overlay(walk, overlay))
            for node in moved.values():
                if node is not None:
                    _refuse_masked(node, client.chroot)
            moving = sorted(acl_set.union(_find_later(reader, moved, horizon)))
            overlay.update(moved)
            if all(_is_volatile(name, overlay[name]) for name in moving):
                break
        counts = backup_file.Counts()
        digest = hashlib.sha256()
        with _Packed(part) as out:

            def put(text):
                digest.update(text)
                out.write(text)

            put(backup_file.json_line(header))
            for node in ancestors:
                put(backup_file.line(node, "ancestor"))
            for node in _overlay(walk, overlay):
                counts.add(node)
                put(backup_file.line(node))
            trailer = {
                **counts.totals(),
                "zxid": horizon,
                "zxid_end": reader.zxid(),
                "moving": {
                    "by_kind": dict(sorted(Counter(map(znodes.kind, moving)).items())),
                    "paths": moving[: live_tree.NAMED_PATHS],
                },
                "sha256": digest.hexdigest(),
            }
            out.write(backup_file.json_line({"end": trailer}))
        _publish(part, path, directory)
    backup = Backup(path)
    backup.header, backup.trailer = header, trailer
    return {**backup.facts(), "moving": trailer["moving"], "rounds": round_number, "vanished": reader.vanished}


def _refuse_masked(node, chroot):
    # FinalRequestProcessor (getACL) replaces the hash of a digest identity by 'x' for a user without ADMIN.
    for entry in node.acl:
        if entry["scheme"] == "digest" and entry["id"].endswith(":x"):
            raise BackupError(
                f"ZooKeeper masks the ACL of {chroot}{node.path}, because this user has no ADMIN permission on it. A "
                "backup without the ACL could not be restored: use the brokers' ZooKeeper credentials (QS-BACKUP-001)"
            )


def _overlay(walk, overlay):
    """Yield the znodes of the walk, replaced by the later states in ``overlay``, with new ones at the end."""
    left = dict(overlay)
    for node in Backup(walk).znodes():
        if node.path in overlay:
            node = left.pop(node.path)
        if node is not None:
            yield node
    for path in sorted(left):
        if left[path] is not None:
            yield left[path]


def _stamps(stat):
    return (
        stat.czxid,
        stat.mzxid,
        stat.pzxid,
        stat.version,
        stat.cversion,
        stat.aversion,
        stat.ephemeralOwner,
    )


def _find_moved(reader, nodes):
    """Return the znodes that differ from ``nodes()`` (a new iterator each time), ``{path: Znode or None}``, and the set
    of paths whose ACL was set (setACL leaves no zxid)."""
    moved = {}
    changed, acl_set, parents = [], set(), {}
    for node, stat in live_tree.pair_with_answers(nodes(), reader.stat_many):
        if stat is None:
            moved[node.path] = None
        elif _stamps(stat) != _stamps(node.stat):
            changed.append(node.path)
            if stat.aversion != node.stat.aversion:
                acl_set.add(node.path)
            if (stat.czxid, stat.pzxid, stat.cversion) != (node.stat.czxid, node.stat.pzxid, node.stat.cversion):
                parents[node.path] = set()
    moved.update(reader.read_many(changed))
    for root in live_tree.find_new_children(reader, nodes, parents):
        for node in reader.tree(root):
            moved[node.path] = node
    return moved, acl_set


def _find_later(reader, moved, horizon):
    """Return the paths in ``moved`` that changed after ``horizon``."""
    later = []
    for path, node in moved.items():
        if node is None:
            # A deletion sets the parent's pzxid.
            stat = reader.stat(path.rpartition("/")[0] or "/")
            if stat is None or stat.pzxid > horizon:
                later.append(path)
        elif max(node.stat.czxid, node.stat.mzxid, node.stat.pzxid) > horizon:
            later.append(path)
    return later


def _is_volatile(path, node):
    if node is not None and node.stat.ephemeralOwner:
        return True
    # Parents of ephemerals and notifications change with them.
    return znodes.kind(path) in znodes.VOLATILE_KINDS or path in (
        "/",
        znodes.BROKER_IDS,
        znodes.CONFIG_CHANGES,
        znodes.ISR_CHANGES,
        znodes.LOG_DIR_EVENTS,
        znodes.DELEGATION_TOKEN_CHANGES,
        *znodes.ACL_CHANGES,
    )


def _private_directory(path):
    directory = os.path.dirname(os.path.abspath(path))
    os.makedirs(directory, mode=0o700, exist_ok=True)
    status = os.stat(directory)
    if status.st_uid != os.geteuid():
        raise BackupError(
            f"{directory} belongs to uid {status.st_uid}, but a backup must be in a directory of its "
            "own (QS-BACKUP-001)"
        )
    mode = stat_module.S_IMODE(status.st_mode)
    if mode & 0o077:
        raise BackupError(
            f"{directory} has mode {mode:04o}, but must have 0700: a backup contains SCRAM credentials (QS-BACKUP-001)"
        )
    return directory


@contextlib.contextmanager
def _scratch(path):
    """Create a file with mode 0600 and delete it at the end."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        yield path
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


class _Packed:
    """A gzip file that is flushed to disk at its end."""

    def __init__(self, path):
        self._file = open(path, "wb")  # noqa: SIM115 - closed in __exit__
        self._gzip = gzip.GzipFile(filename="", fileobj=self._file, mode="wb", compresslevel=1, mtime=0)
        self.write = self._gzip.write

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        with self._file:
            self._gzip.close()
            self._file.flush()
            os.fsync(self._file.fileno())


def _publish(part, path, directory):
    # link fails if another run has created the file meanwhile; rename would overwrite it.
    try:
        os.link(part, path)
    except FileExistsError:
        raise BackupError(f"{path} exists already: it is not overwritten (QS-BACKUP-001)") from None
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
