# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare a backup with the live tree, and distinguish a change since the backup from a loss by the zxids."""

from __future__ import annotations

from collections import Counter

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import same_cluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write import live_tree
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write.backup_file import Backup, BackupForeign


def verify(client, path, cluster_id=None, window=500, max_rate=None, timeout=30.0):
    """Read the file back and compare it with the live tree.

    A persistent znode that has not changed since the backup (by its zxids and ACL version) must be equal in data,
    ACL, versions and zxids. A missing or new znode must have been deleted or created after the backup, by the zxids.

    :returns: ``{"path", "sha256", "file_bytes", "cluster_id", "taken_at", "zxid", "znodes", "ephemerals",
        "data_bytes", "equal", "changed_since": {"changed", "added", "removed"} each ``{kind: count}`` (a new subtree
        counts once), "differ": [{"path", "what"}] (the first 100), "differ_count"}``.
    :raises BackupBroken: see :meth:`Backup.check`.
    :raises BackupForeign: the live cluster is another one, or is older than the backup.
    """
    backup = Backup(path).check()
    reader = zookeeper.Reader(client, window, max_rate, timeout)
    require_same_cluster(backup, reader, cluster_id)
    comparison = _Comparison(reader, backup.trailer["zxid"])
    for node, live in live_tree.pair_with_answers(backup.znodes(), reader.read_many):
        comparison.compare(node, live)
    comparison.compare_new(backup.znodes)
    return {
        **backup.facts(),
        "equal": comparison.equal,
        "changed_since": {name: dict(sorted(kinds.items())) for name, kinds in comparison.since.items()},
        "differ": comparison.differ[: live_tree.NAMED_PATHS],
        "differ_count": len(comparison.differ),
    }


def require_cluster(backup, reader, cluster_id=None):
    """Raise BackupForeign unless a checked backup and the live cluster are one, that of the run (None: outside of a
    run)."""
    live_id = live_tree.read_cluster_id(reader)
    if live_id != backup.header["cluster_id"]:
        raise BackupForeign(
            f"{backup.path} is a backup of cluster {backup.header['cluster_id']}, but the live cluster is "
            f"{live_id} (QS-BACKUP-002)"
        )
    require_run(live_id, reader, cluster_id)


def require_run(live_id, reader, cluster_id):
    """Raise BackupForeign unless the live cluster is that of the run (None: outside of a run)."""
    refused = same_cluster.check_zookeeper(live_id, cluster_id or live_id, zookeeper.servers_of(reader.client))
    if refused:
        raise BackupForeign(refused)


def require_same_cluster(backup, reader, cluster_id=None):
    """Raise BackupForeign unless `require_cluster` holds and a checked backup is not newer than the live cluster."""
    require_cluster(backup, reader, cluster_id)
    live_zxid, zxid = reader.zxid(), backup.trailer["zxid"]
    if live_zxid < zxid:
        raise BackupForeign(
            f"{backup.path} was taken at zxid {zxid:#x}, but ZooKeeper is at {live_zxid:#x}: it is another ensemble, "
            "or was restored from an older state (QS-BACKUP-002)"
        )


# Kafka never recreates these. If they are new, all zxids are of another ensemble and prove nothing.
_NEVER_RECREATED = ("/", znodes.CLUSTER_ID)


class _Comparison:
    def __init__(self, reader, horizon):
        self.reader = reader
        self.horizon = horizon
        self.equal = 0
        self.since = {"changed": Counter(), "added": Counter(), "removed": Counter()}
        self.differ = []
        self._parents = {}

    def compare(self, node, live):
        if node.stat.ephemeralOwner:
            return
        if live is None:
            if self._removed_since(node.path):
                self._count("removed", node.path)
            else:
                self._differs(node.path, "is missing, though no parent has changed since the backup")
            return
        if live.stat.czxid != node.stat.czxid:
            if node.path in _NEVER_RECREATED:
                self._differs(node.path, "was recreated: ZooKeeper was rebuilt or restored after the backup")
            elif live.stat.czxid > self.horizon:
                self._count("changed", node.path)
                self._parents[node.path] = set()
            else:
                self._differs(node.path, "was created by another transaction, before the backup")
            return
        changed = False
        for stamp, versions, what in (("mzxid", "version", "data"), ("pzxid", "cversion", "children")):
            if getattr(live.stat, stamp) > max(self.horizon, getattr(node.stat, stamp)):
                changed = True
                if stamp == "pzxid":
                    self._parents[node.path] = set()
            elif any(getattr(live.stat, name) != getattr(node.stat, name) for name in (stamp, versions)):
                self._differs(node.path, f"has other {what} versions, though no transaction has changed it")
                return
        if live.stat.mzxid == node.stat.mzxid and live.data != node.data:
            self._differs(node.path, "has other data, though no transaction has changed it")
        elif live.stat.aversion > node.stat.aversion:
            # setACL leaves no zxid, so an ACL that was set again counts as changed since the backup.
            self._count("changed", node.path)
        elif live.stat.aversion < node.stat.aversion or live.acl != node.acl:
            self._differs(node.path, "has another ACL, though none was set since the backup")
        elif changed:
            self._count("changed", node.path)
        else:
            self.equal += 1

    def compare_new(self, nodes):
        """Check that live children of changed parents that the backup lacks are newer than it."""
        paths = live_tree.find_new_children(self.reader, nodes, self._parents)
        for path, stat in self.reader.stat_many(paths):
            if stat is None or stat.ephemeralOwner:
                continue
            if stat.czxid > self.horizon:
                self._count("added", path)
            else:
                self._differs(path, "is older than the backup, which lacks it")

    def _removed_since(self, path):
        while path != "/":
            path = path.rpartition("/")[0] or "/"
            stat = self.reader.stat(path)
            if stat is not None:
                return stat.pzxid > self.horizon
        return False

    def _count(self, what, path):
        self.since[what][znodes.kind(path)] += 1

    def _differs(self, path, what):
        self.differ.append({"path": path, "what": what})
