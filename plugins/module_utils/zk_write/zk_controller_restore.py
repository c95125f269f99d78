# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Restore ZooKeeper's controller: take ZooKeeper from KRaft's controllers, which are down, so that brokers elect one.

Each znode is changed only if it still has the version that was read. The order allows an interruption anywhere, because
the next run sees what is done. Sources: KafkaZkClient.registerControllerAndIncrementControllerEpoch, KAFKA-20488,
Partition.makeLeader and makeFollower.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from typing import Any, Iterable, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import zk_controller, zk_metadata
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rollback import rollback
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write.zk_writing import WriteError, Writer, writing

try:
    from kazoo import exceptions as kazoo_exceptions
except ImportError:
    kazoo_exceptions = None  # zookeeper.connect reports it

POLL_S = 0.05


class ZkControllerError(RuntimeError):
    """ZooKeeper's controller was not restored, or not completely; the text is for the operator."""


def restore_zk_controller(
    client: Any,
    cluster_id: str,
    raft_epochs: Iterable[int | None],
    partition_epochs: Mapping[str, Mapping],
    timeout: float,
    bound_s: float,
    dry: bool = False,
) -> dict:
    """Restore ZooKeeper's controller; return {changed, controller_epoch (set before the election, None if it was high
    enough), raised: number of states whose version was raised, deleted: [paths], elected: broker id (None if `dry`)}.

    `client`: a kazoo client in the chroot of the cluster with this id; `raft_epochs`: of the quorum's logs;
    `partition_epochs`: metadata_image.Image; `timeout` bounds each request and `bound_s` the election, in seconds.
    Raises ZkControllerError, zookeeper.ZooKeeperError.
    """
    reader = zookeeper.Reader(client, timeout=timeout)
    try:
        writer = Writer(client, cluster_id, timeout)
    except WriteError as error:
        raise ZkControllerError(f"{error}. {zk_controller.NO_CONTROLLER}") from error
    topics = zk_metadata.normalise(zookeeper.read_partition_znodes(reader))
    seen = zookeeper.read_migration_znodes(client, timeout)
    wanted = rollback.restore_zk_controller(seen, zk_metadata.max_controller_epoch(topics), raft_epochs)
    behind = (
        {} if zk_controller.is_elected(seen["controller"]) else rollback.find_versions_behind(topics, partition_epochs)
    )
    result: dict = {"changed": any(wanted) or bool(behind), "controller_epoch": wanted.controller_epoch}
    result.update(raised=len(behind), deleted=[], elected=None, diff=_diff(seen, wanted, behind))
    if dry:
        return result
    try:
        _raise_versions(reader, writer, behind)
        if wanted.controller_epoch is not None:
            with writing(f"{znodes.CONTROLLER_EPOCH} was not set"):
                data = str(wanted.controller_epoch).encode()
                version = seen["controller_epoch"]["version"]
                writer.set(znodes.CONTROLLER_EPOCH, data, version).get(timeout=timeout)
        if wanted.controller:
            result["deleted"] += _delete(reader, writer, znodes.CONTROLLER, seen["controller"]["czxid"])
    except WriteError as error:
        raise ZkControllerError(f"{error}. {zk_controller.NO_CONTROLLER}") from error
    result["elected"] = _await_elected(client, timeout, bound_s)
    try:
        if wanted.migration:
            result["deleted"] += _delete(reader, writer, znodes.MIGRATION)
    except WriteError as error:
        raise ZkControllerError(
            f"broker {result['elected']} is the controller, but {error} (QS-ROLLBACK-004)"
        ) from error
    return result


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


def _raise_versions(reader: zookeeper.Reader, writer: Writer, behind: Mapping[str, int]) -> None:
    """Rewrite each state unchanged until it has the given version: each write adds one."""
    pending: deque = deque()
    for state in reader.get_many(sorted(behind)):
        for version in range(state.stat.version, behind[state.path]):
            pending.append((state.path, writer.set(state.path, state.data, version)))
            if len(pending) >= reader.window:
                _confirm(reader, *pending.popleft())
    while pending:
        _confirm(reader, *pending.popleft())


def _confirm(reader: zookeeper.Reader, path: str, request: Any) -> None:
    with writing(f"{path} was not written"):
        request.get(timeout=reader.timeout)


def _delete(reader: zookeeper.Reader, writer: Writer, path: str, czxid: int | None = None) -> list[str]:
    """Delete a znode and return [its path]; [] if it does not exist or has another `czxid` than the given one."""
    stat = reader.stat(path)
    if stat is None or czxid not in (None, stat.czxid):
        return []
    with writing(f"{path} was not deleted"), contextlib.suppress(kazoo_exceptions.NoNodeError):
        writer.delete(path, stat.version).get(timeout=reader.timeout)
    return [path]


def _await_elected(client: Any, timeout: float, bound_s: float) -> int:
    """Wait until a broker is the controller and return its id. Raises ZkControllerError after `bound_s`."""
    began = time.monotonic()
    while True:
        seen = zookeeper.read_migration_znodes(client, timeout)
        controller = seen["controller"]
        if zk_controller.is_elected(controller):
            return controller["broker_id"]
        if time.monotonic() - began > bound_s:
            owner = controller["broker_id"] if controller["exists"] else "no id"
            alive = ", ".join(sorted(seen["broker_ids"])) or "no broker"
            raise ZkControllerError(
                f"waited {bound_s:.0f} s for a broker to become controller. Last seen: /controller holds {owner}, "
                f"/brokers/ids holds {alive}. Run again. If it persists, restart one broker without "
                "changes (QS-ROLLBACK-006)"
            )
        time.sleep(POLL_S)
