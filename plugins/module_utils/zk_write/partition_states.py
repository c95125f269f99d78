# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Create partition states that ZooKeeper lacks while KRaft's controllers write to it.

A topic that is created, or gets partitions, while KRaft takes over has a znode without states below it. The initial
copy accepts it (ZkTopicMigrationClient, "Could not find partition state in ZK"), but every later write to such a state
fails. KRaftMigrationDriver then drops the complete change, although it logs "Will retry". So neither ZooKeeper nor the
brokers in migration mode receive it. A broker's restart is one change of all its partitions. Seen on 3.9.2.
"""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write.zk_writing import Writer, writing

try:
    from kazoo import exceptions as kazoo_exceptions
except ImportError:
    kazoo_exceptions = None  # zookeeper.connect reports it

MIGRATION_WRITES = 4
"""A state counts as missing if it is still missing after this many writes to /migration, which are two a second: the
controllers, too, create a topic's znode before its states."""
MIGRATION_WRITES_BOUND_S = 10.0
_POLL_S = 0.1


def complete(client: Any, cluster_id: str, timeout: float, dry: bool = False) -> list[str]:
    """Create the missing states with the values of the initial copy; return their partitions as "topic-number".

    `client`: a kazoo client in the chroot of the cluster with this id; `timeout` in seconds bounds each answer; `dry`
    creates nothing.
    Raises WriteError, zookeeper.ZooKeeperError, znodes.ZnodeError.
    """
    reader, writer = zookeeper.Reader(client, timeout=timeout), Writer(client, cluster_id, timeout)
    first = _missing(reader)
    if not first:
        return []
    _await_migration_writes(reader)
    lasting = {path: partition for path, partition in _missing(reader).items() if path in first}
    epoch = max((znodes.controller_epoch(node.data) for node in reader.get_many([znodes.CONTROLLER_EPOCH])), default=0)
    return [
        f"{topic}-{partition}"
        for path, (topic, partition, replicas) in sorted(lasting.items())
        if dry or _created(reader, writer, path, topic, replicas, epoch)
    ]


def _missing(reader: zookeeper.Reader) -> dict[str, tuple[str, str, list[int]]]:
    """Return {path of the state: (topic, partition, replicas)} of the partitions without a state."""
    assigned = {}
    for node in reader.get_many(zookeeper.child_paths(reader, [znodes.TOPICS])):
        name = node.path[len(znodes.TOPICS) + 1 :]
        for partition, assignment in znodes.topic(node.data, node.path)["partitions"].items():
            assigned[znodes.partition_state_path(name, partition)] = (name, partition, assignment["replicas"])
    return {path: assigned[path] for path, stat in reader.stat_many(list(assigned)) if stat is None}


def _await_migration_writes(reader: zookeeper.Reader) -> None:
    """Wait until the controllers have written to /migration MIGRATION_WRITES times, or for MIGRATION_WRITES_BOUND_S.

    Controllers that fail to write a full image, because a state is missing, do not write to /migration.
    """
    began, first = time.monotonic(), reader.stat(znodes.MIGRATION)
    while first is not None and time.monotonic() - began < MIGRATION_WRITES_BOUND_S:
        current = reader.stat(znodes.MIGRATION)
        if current is None or current.version - first.version >= MIGRATION_WRITES:
            return
        time.sleep(_POLL_S)


def _created(reader: zookeeper.Reader, writer: Writer, path: str, topic: str, replicas: list[int], epoch: int) -> bool:
    """Create a state and the znodes above it, unless the topic was deleted. Return whether it was created."""
    data = {"controller_epoch": epoch, "leader": replicas[0], "version": 1, "leader_epoch": 0, "isr": replicas}
    client, timeout = reader.client, reader.timeout
    with writing(f"{path} is missing and was not created"):
        try:
            acl = client.get_acls_async(znodes.topic_path(topic)).get(timeout=timeout)[0]
            parent, _slash, _name = path.rpartition("/")
            for directory in (parent.rpartition("/")[0], parent):
                with contextlib.suppress(kazoo_exceptions.NodeExistsError):
                    writer.create(directory, b"", acl).get(timeout=timeout)
            writer.create(path, json.dumps(data).encode(), acl).get(timeout=timeout)
        except (kazoo_exceptions.NoNodeError, kazoo_exceptions.NodeExistsError):
            return False  # the topic was deleted, or the state was created, meanwhile
    return True
