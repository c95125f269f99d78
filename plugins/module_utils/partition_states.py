# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Partition states that ZooKeeper lacks while KRaft's controllers write to it.

A topic that was created, or grew, in the moment of the take-over has its znode and no states below it. The copy takes
it as it is (ZkTopicMigrationClient, "Could not find partition state in ZK"), and each later write to such a state
fails. KRaftMigrationDriver then drops the whole change, whatever else it held, though it logs "Will retry": neither
ZooKeeper nor the brokers in migration mode hear of it. A broker's restart is one change, of all its partitions. Seen on
3.9.2.
"""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

from .formats import znodes
from .probes import zookeeper
from .zk_writing import writing

try:
    from kazoo import exceptions as kazoo_exceptions
except ImportError:
    kazoo_exceptions = None  # zookeeper.connect says so

BEATS = 4
"""After how many writes to /migration a state that is missing still counts: controllers, too, make a topic's znode
before its states. They write there twice a second."""
BEATS_BOUND_S = 10.0
_POLL_S = 0.1


def complete(client: Any, timeout: float, dry: bool = False) -> list[str]:
    """Create the states that ZooKeeper lacks, as the copy took them; return their partitions as "topic-number".

    `client`: a kazoo client in the cluster's chroot; `timeout` in seconds bounds each answer; `dry` creates nothing.
    Raises WriteError, zookeeper.ZooKeeperError, znodes.ZnodeError.
    """
    reader = zookeeper.Reader(client, timeout=timeout)
    first = _missing(reader)
    if not first:
        return []
    _beats(reader)
    lasting = {path: one for path, one in _missing(reader).items() if path in first}
    epoch = max((znodes.controller_epoch(node.data) for node in reader.get_many([znodes.CONTROLLER_EPOCH])), default=0)
    return [
        f"{topic}-{partition}"
        for path, (topic, partition, replicas) in sorted(lasting.items())
        if dry or _created(reader, path, topic, replicas, epoch)
    ]


def _missing(reader: zookeeper.Reader) -> dict[str, tuple[str, str, list[int]]]:
    """Return {path of the state: (topic, partition, replicas)} of the partitions that have none."""
    assigned = {}
    for node in reader.get_many(zookeeper.below(reader, [znodes.TOPICS])):
        name = node.path[len(znodes.TOPICS) + 1 :]
        for partition, reported in znodes.topic(node.data, node.path)["partitions"].items():
            assigned[znodes.partition_state_path(name, partition)] = (name, partition, reported["replicas"])
    return {path: assigned[path] for path, stat in reader.stat_many(list(assigned)) if stat is None}


def _beats(reader: zookeeper.Reader) -> None:
    """Wait until the controllers have written to /migration a few times, or for as long as is enough without: those
    that cannot write a full image for want of a state do not write there."""
    began, first = time.monotonic(), reader.stat(znodes.MIGRATION)
    while first is not None and time.monotonic() - began < BEATS_BOUND_S:
        seen = reader.stat(znodes.MIGRATION)
        if seen is None or seen.version - first.version >= BEATS:
            return
        time.sleep(_POLL_S)


def _created(reader: zookeeper.Reader, path: str, topic: str, replicas: list[int], epoch: int) -> bool:
    """Create a state and the znodes above it, below a topic that is still there. Says whether it was created."""
    data = {"controller_epoch": epoch, "leader": replicas[0], "version": 1, "leader_epoch": 0, "isr": replicas}
    client, timeout = reader.client, reader.timeout
    with writing(f"{path} is missing and was not created"):
        try:
            acl = client.get_acls_async(znodes.topic_path(topic)).get(timeout=timeout)[0]
            parent, _slash, _name = path.rpartition("/")
            for above in (parent.rpartition("/")[0], parent):
                with contextlib.suppress(kazoo_exceptions.NodeExistsError):
                    client.create_async(above, b"", acl=acl).get(timeout=timeout)
            client.create_async(path, json.dumps(data).encode(), acl=acl).get(timeout=timeout)
        except (kazoo_exceptions.NoNodeError, kazoo_exceptions.NodeExistsError):
            return False  # deleted, or made, meanwhile
    return True
