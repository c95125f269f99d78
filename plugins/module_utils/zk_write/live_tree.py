# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads of the live tree that taking, comparing and restoring a backup share."""

from __future__ import annotations

from collections import deque

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write.backup_file import BackupError

NAMED_PATHS = 100


def read_cluster_id(reader):
    """Return the id of the Kafka cluster below the reader's chroot. Raises BackupError if there is none."""
    for node in reader.get_many([znodes.CLUSTER_ID]):
        try:
            return znodes.cluster_id(node.data)
        except znodes.ZnodeError as error:
            raise BackupError(
                f"ZooKeeper's {error}: no Kafka cluster is at this chroot. Check the chroot (QS-BACKUP-001)"
            ) from None
    raise BackupError(
        f"{reader.client.chroot or ''}{znodes.CLUSTER_ID} does not exist: no Kafka cluster is at this chroot. Check "
        "the chroot (QS-BACKUP-001)"
    )


def find_new_children(reader, nodes, parents):
    """Return the paths of live children of ``parents`` (path: empty set) that are not in ``nodes()``."""
    if not parents:
        return []
    for node in nodes():
        parent, name = node.path.rsplit("/", 1)
        if name and (parent or "/") in parents:
            parents[parent or "/"].add(name)
    return [
        ("" if parent == "/" else parent) + "/" + name
        for parent, names in reader.children_many(sorted(parents))
        for name in names or ()
        if name not in parents[parent]
    ]


def pair_with_answers(nodes, ask_many):
    """Yield (node, answer) for each node; ``ask_many(paths)`` yields (path, answer) in order."""
    pending = deque()

    def paths():
        for node in nodes:
            pending.append(node)
            yield node.path

    for _path, answer in ask_many(paths()):
        yield pending.popleft(), answer
