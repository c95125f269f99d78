# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Taking a backup of the live tree, until nothing in the file is older than one transaction."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import stat as stat_module
import time
from collections import Counter

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_backup import backup_file, live_tree
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_backup.backup_file import Backup, BackupError


def ancestors_of(chroot):
    """The paths above a chroot: ``["/", "/a"]`` for ``/a/b``, none for no chroot."""
    names = chroot.strip("/").split("/") if chroot.strip("/") else []
    return ["/" + "/".join(names[:depth]) for depth in range(len(names))]


def survey(client, window=500, max_rate=None, timeout=30.0):
    """What :func:`take` would write, without a file: ``{"cluster_id", "znodes", "ephemerals", "data_bytes"}``."""
    reader = zookeeper.Reader(client, window, max_rate, timeout)
    counts = backup_file.Counts()
    result = {"cluster_id": live_tree.cluster_id(reader)}
    for node in reader.tree():
        _refuse_masked(node, client.chroot)
        counts.add(node)
    result.update(counts.totals())
    return result


def take(client, path, servers, tool, ancestors=(), window=500, max_rate=None, rounds=5, timeout=30.0):
    """Writes the subtree below the client's chroot into ``path``, a new file.

    :arg servers: connect string as it is to stand in the header; ``tool`` names what took the backup.
    :arg ancestors: Znodes above the chroot, read over a connection without chroot (:func:`ancestors_of`).
    :arg rounds: how often the tree is checked again for what moved meanwhile. The checks end early with one that
        saw nothing move but what moves by itself (:data:`znodes.VOLATILE_KINDS` and ephemerals).
    :returns: ``{"path", "sha256" (of the file), "file_bytes", "cluster_id", "zxid", "znodes", "ephemerals",
        "data_bytes", "moving": {"by_kind", "paths"}, "rounds", "vanished"}``.
    :raises BackupError: the file exists, its directory is open to others, ACLs are masked.
    :raises zookeeper.ZooKeeperError: the tree cannot be read; nothing is left behind then.
    """
    directory = _private_directory(path)
    if os.path.lexists(path):
        raise BackupError(f"{path} exists and is not overwritten")
    reader = zookeeper.Reader(client, window, max_rate, timeout)
    header = {
        "quorumshift_zk_backup": backup_file.FORMAT,
        "cluster_id": live_tree.cluster_id(reader),
        "chroot": client.chroot or "/",
        "servers": servers,
        "taken_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "tool": tool,
        "zxid_start": reader.zxid(),
    }
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
        settled = 0
        while settled < rounds:
            settled += 1
            if moving:
                horizon = reader.zxid()
            moved, acl_set = _moved(reader, lambda: _laid_over(walk, overlay))
            for node in moved.values():
                if node is not None:
                    _refuse_masked(node, client.chroot)
            moving = sorted(acl_set.union(_later(reader, moved, horizon)))
            overlay.update(moved)
            if all(_moves_by_itself(name, overlay[name]) for name in moving):
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
            for node in _laid_over(walk, overlay):
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
    return {**backup.facts(), "moving": trailer["moving"], "rounds": settled, "vanished": reader.vanished}


def _refuse_masked(node, chroot):
    # FinalRequestProcessor (getACL) replaces the hash of a digest identity by 'x' for whoever lacks ADMIN on the znode
    for entry in node.acl:
        if entry["scheme"] == "digest" and entry["id"].endswith(":x"):
            raise BackupError(
                f"ZooKeeper masks the ACL of {chroot}{node.path}: this identity has no ADMIN permission there, and a "
                "backup without the real ACL could not be restored; use the brokers' ZooKeeper identity"
            )


def _laid_over(walk, overlay):
    """The znodes of the walk with the later states of ``overlay`` in their places, new ones at the end."""
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


def _moved(reader, nodes):
    """What is no longer as ``nodes()`` (an iterator each time) has it: ``{path: Znode or None}``, and the set of paths
    whose ACL was set (of that no zxid tells the time)."""
    moved = {}
    changed, acl_set, parents = [], set(), {}
    for node, stat in live_tree.beside(nodes(), reader.stat_many):
        if stat is None:
            moved[node.path] = None
        elif _stamps(stat) != _stamps(node.stat):
            changed.append(node.path)
            if stat.aversion != node.stat.aversion:
                acl_set.add(node.path)
            if (stat.czxid, stat.pzxid, stat.cversion) != (node.stat.czxid, node.stat.pzxid, node.stat.cversion):
                parents[node.path] = set()
    moved.update(reader.read_many(changed))
    for root in live_tree.new_children(reader, nodes, parents):
        for node in reader.tree(root):
            moved[node.path] = node
    return moved, acl_set


def _later(reader, moved, horizon):
    """The paths among ``moved`` whose state at ``horizon`` is not the one that was read now."""
    later = []
    for path, node in moved.items():
        if node is None:
            # A deletion leaves its zxid on the parent
            stat = reader.stat(path.rpartition("/")[0] or "/")
            if stat is None or stat.pzxid > horizon:
                later.append(path)
        elif max(node.stat.czxid, node.stat.mzxid, node.stat.pzxid) > horizon:
            later.append(path)
    return later


def _moves_by_itself(path, node):
    if node is not None and node.stat.ephemeralOwner:
        return True
    # Parents of ephemerals and notifications move with them
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
    mode = stat_module.S_IMODE(os.stat(directory).st_mode)
    if mode & 0o077:
        raise BackupError(
            f"{directory} has mode {mode:04o}: a backup holds SCRAM credentials, so its directory must be 0700"
        )
    return directory


@contextlib.contextmanager
def _scratch(path):
    """A new file of mode 0600 that is gone at the end unless it was moved away."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        yield path
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


class _Packed:
    """Writes a gzip file and has it on disk at its end."""

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
    # link, not rename: it fails where another run has put its file in the meantime
    try:
        os.link(part, path)
    except FileExistsError:
        raise BackupError(f"{path} exists and is not overwritten") from None
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
