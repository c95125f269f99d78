# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ZooKeeper handed back from KRaft's controllers, which are down, to one that its brokers elect.

Each znode is changed only as it was when it was judged, and in an order that can be broken off anywhere: what is done
is seen by the next run. Sources: KafkaZkClient.registerControllerAndIncrementControllerEpoch, KAFKA-20488,
Partition.makeLeader and makeFollower.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from typing import Any, Iterable, Mapping

from .core import rollback, zk_controller, zk_metadata
from .formats import znodes
from .probes import zookeeper
from .zk_writing import WriteError, writing

try:
    from kazoo import exceptions as kazoo_exceptions
except ImportError:
    kazoo_exceptions = None  # zookeeper.connect says so

POLL_S = 0.05


class ZkControllerError(RuntimeError):
    """Why ZooKeeper was not handed back, or not to the end; the text is for the operator."""


def restore_zk_controller(
    client: Any,
    raft_epochs: Iterable[int | None],
    partition_epochs: Mapping[str, Mapping],
    timeout: float,
    bound_s: float,
    dry: bool = False,
) -> dict:
    """Hand ZooKeeper back; return {changed, controller_epoch (set before the election, None: it was high enough),
    raised: number of states whose version was raised, deleted: [paths], elected: broker id (None when `dry`)}.

    `client`: a kazoo client in the cluster's chroot; `raft_epochs`: of the quorum's logs; `partition_epochs`:
    metadata_image.Image; `timeout` bounds each request and `bound_s` the election, in seconds. Raises HandBackError,
    zookeeper.ZooKeeperError.
    """
    reader = zookeeper.Reader(client, timeout=timeout)
    topics = zk_metadata.normalise(zookeeper.partition_znodes(reader))
    seen = zookeeper.migration_znodes(client, timeout)
    wanted = rollback.restore_zk_controller(seen, zk_metadata.max_controller_epoch(topics), raft_epochs)
    behind = {} if zk_controller.elected(seen["controller"]) else rollback.versions_behind(topics, partition_epochs)
    reported = {"changed": any(wanted) or bool(behind), "controller_epoch": wanted.controller_epoch}
    reported.update(raised=len(behind), deleted=[], elected=None, diff=_diff(seen, wanted, behind))
    if dry:
        return reported
    try:
        _raise_versions(reader, behind)
        if wanted.controller_epoch is not None:
            with writing(f"{znodes.CONTROLLER_EPOCH} was not set"):
                data = str(wanted.controller_epoch).encode()
                version = seen["controller_epoch"]["version"]
                client.set_async(znodes.CONTROLLER_EPOCH, data, version=version).get(timeout=timeout)
        if wanted.controller:
            reported["deleted"] += _deleted(client, znodes.CONTROLLER, timeout, seen["controller"]["czxid"])
    except WriteError as error:
        raise ZkControllerError(f"{error}. {rollback.NO_CONTROLLER}") from error
    reported["elected"] = _elected(client, timeout, bound_s)
    try:
        if wanted.migration:
            reported["deleted"] += _deleted(client, znodes.MIGRATION, timeout)
    except WriteError as error:
        raise ZkControllerError(f"broker {reported['elected']} is the controller, and yet {error}") from error
    return reported


def _diff(seen: Mapping, wanted: rollback.ZkControllerRestore, behind: Mapping[str, int]) -> dict:
    """Return what changes, as Ansible shows a diff."""
    before, after = [], []
    if wanted.controller_epoch is not None:
        before.append(f"{znodes.CONTROLLER_EPOCH}: {seen['controller_epoch']['value']}")
        after.append(f"{znodes.CONTROLLER_EPOCH}: {wanted.controller_epoch}")
    if wanted.controller:
        before.append(f"{znodes.CONTROLLER}: of {seen['controller']['broker_id']}")
    if wanted.migration:
        before.append(f"{znodes.MIGRATION}: offset {seen['migration'].get('kraft_metadata_offset')}")
    before += [f"{path}: a version below {version}" for path, version in sorted(behind.items())]
    after += [f"{path}: version {version}" for path, version in sorted(behind.items())]
    texts = ("".join(f"{line}\n" for line in lines) for lines in (before, after))
    return {"before_header": "ZooKeeper", "after_header": "ZooKeeper", **dict(zip(("before", "after"), texts))}


def _raise_versions(reader: zookeeper.Reader, behind: Mapping[str, int]) -> None:
    """Write each state as it is until its version is the one given: a write adds one."""
    pending: deque = deque()
    for state in reader.get_many(sorted(behind)):
        for version in range(state.stat.version, behind[state.path]):
            pending.append((state.path, reader.client.set_async(state.path, state.data, version=version)))
            if len(pending) >= reader.window:
                _confirm(reader, *pending.popleft())
    while pending:
        _confirm(reader, *pending.popleft())


def _confirm(reader: zookeeper.Reader, path: str, request: Any) -> None:
    with writing(f"{path} was not written"):
        request.get(timeout=reader.timeout)


def _deleted(client: Any, path: str, timeout: float, made: int | None = None) -> list[str]:
    """Delete a znode as it is now; return its path, or nothing where it is gone already, or, with `made`, where it is
    not the one any more that this transaction made."""
    stat = zookeeper.Reader(client, timeout=timeout).stat(path)
    if stat is None or made not in (None, stat.czxid):
        return []
    with writing(f"{path} was not deleted"), contextlib.suppress(kazoo_exceptions.NoNodeError):
        client.delete_async(path, version=stat.version).get(timeout=timeout)
    return [path]


def _elected(client: Any, timeout: float, bound_s: float) -> int:
    """Return the id of the broker that is the controller, once one is."""
    began = time.monotonic()
    while True:
        seen = zookeeper.migration_znodes(client, timeout)
        controller = seen["controller"]
        if zk_controller.elected(controller):
            return controller["broker_id"]
        if time.monotonic() - began > bound_s:
            owner = controller["broker_id"] if controller["exists"] else "nobody"
            alive = ", ".join(sorted(seen["broker_ids"])) or "nobody"
            raise ZkControllerError(
                f"waited {bound_s:.0f} s for a broker to become controller. Seen last: /controller holds {owner}, "
                f"/brokers/ids holds {alive}. Run again; if it stays, restart one broker as it is"
            )
        time.sleep(POLL_S)
