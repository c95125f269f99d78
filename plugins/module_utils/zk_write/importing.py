# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write a rehearsal's znodes into its own, new ensemble, and allow the election of its controller once all brokers run.

The ensemble must be the rehearsal's: nothing is in it beside ZooKeeper's own znodes and the rehearsal's chroot. No
ensemble that serves anything else is ever written to, whatever its addresses are.
"""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
import os
import time
from collections import deque
from typing import Any, Callable, Dict, Iterable, List, Sequence, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rehearsal import tree
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write import backup_file
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write.zk_writing import WriteError, Writer, writing

try:
    from kazoo import exceptions as kazoo_exceptions
    from kazoo.security import OPEN_ACL_UNSAFE
except ImportError:  # probes.zookeeper.zookeeper.connect reports it
    kazoo_exceptions = OPEN_ACL_UNSAFE = None

CHROOT = "/quorumshift-rehearsal"
WINDOW = 500
_POLL_S = 0.2
_OWN = ("zookeeper",)
_HOLD = json.dumps({"version": 2, "brokerid": 2147483647, "timestamp": "0", "kraftControllerEpoch": -1}).encode()
"""Until this is deleted no broker is elected (KafkaController.elect). The first broker to start would find its peers
dead, and make itself the leader of all its partitions."""


def save(nodes: Iterable[znodes.Znode], path: str, cluster_id: str) -> Dict[str, int]:
    """Write the znodes of a rehearsal into a new file in the format of a backup (backup_file), for its owner alone.
    Return {znodes, data_bytes}. Raises OSError, znodes.ZnodeError; then there is no file."""
    counts, digest = backup_file.Counts(), hashlib.sha256()
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        try:
            with gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=1, mtime=0) as out:
                header = {"quorumshift_zk_backup": backup_file.FORMAT, "cluster_id": cluster_id, "taken_at": None}
                for line in itertools.chain([backup_file.json_line(header)], map(_counted(counts), nodes)):
                    digest.update(line)
                    out.write(line)
                end = {**counts.totals(), "zxid": 0, "sha256": digest.hexdigest()}
                out.write(backup_file.json_line({"end": end}))
        except BaseException:
            os.unlink(path)
            raise
    return {"znodes": counts.znodes, "data_bytes": counts.data_bytes}


def _counted(counts: backup_file.Counts) -> Callable[[znodes.Znode], bytes]:
    def line(node: znodes.Znode) -> bytes:
        counts.add(node)
        return backup_file.line(node)

    return line


def require_own(client: Any, cluster_id: str, timeout: float) -> bool:
    """Raise WriteError unless the ensemble of a client without chroot is this rehearsal's, or is new. Return whether it
    has the rehearsal's cluster id already. Raises zookeeper.ZooKeeperError."""
    reader = zookeeper.Reader(client, timeout=timeout)
    ((_root, names),) = reader.children_many(["/"])
    others = sorted(set(names or ()) - {*_OWN, CHROOT[1:]})
    servers = zookeeper.servers_of(client)
    if others:
        raise WriteError(
            f"the ensemble at {servers} has znodes that no rehearsal made, such as /{others[0]}: it is not the "
            "rehearsal's own. Nothing was written. Correct rehearse_zookeeper_port, so that no other ZooKeeper listens "
            "there (QS-REHEARSE-003)"
        )
    found = [*reader.get_many([CHROOT + znodes.CLUSTER_ID])]
    if not found:
        return False
    stored = znodes.cluster_id(found[0].data)
    if stored != cluster_id:
        raise WriteError(
            f"the ensemble at {servers} is of another rehearsal, {stored}, and not of {cluster_id}. Nothing was "
            "written. Remove that one first: -e rehearse_remove=true (QS-REHEARSE-003)"
        )
    return True


def create_root(client: Any, cluster_id: str, timeout: float) -> None:
    """Create the chroot and the cluster id, as the first znodes, with a client without chroot. Raises WriteError."""
    if require_own(client, cluster_id, timeout):
        return
    value = json.dumps({"version": "1", "id": cluster_id}).encode()
    for path, data in ((CHROOT, b""), (f"{CHROOT}/cluster", b""), (CHROOT + znodes.CLUSTER_ID, value)):
        with writing(f"{path} was not created"):
            try:
                client.create_async(path, data, acl=OPEN_ACL_UNSAFE).get(timeout=timeout)
            except kazoo_exceptions.NodeExistsError:
                if data and not require_own(client, cluster_id, timeout):
                    raise


def write(client: Any, nodes: Iterable[znodes.Znode], cluster_id: str, timeout: float) -> Dict[str, int]:
    """Create the znodes of a rehearsal (core.rehearsal.tree) below the client's chroot, and hold the election back.
    Return {znodes, data_bytes}. What exists stays: so an interrupted import can be repeated. Raises WriteError,
    zookeeper.ZooKeeperError, znodes.ZnodeError."""
    writer = Writer(client, cluster_id, timeout)
    by_level: Dict[int, List[znodes.Znode]] = {}
    for node in nodes:
        if node.path != "/":
            by_level.setdefault(node.path.count("/"), []).append(node)
    by_level.setdefault(1, []).append(znodes.Znode(znodes.CONTROLLER, _HOLD, tree.OPEN_ACL, tree.NEW))
    written = data_bytes = 0
    for level in sorted(by_level):
        pending: deque = deque()
        for node in by_level[level]:
            pending.append((node, writer.create(node.path, node.data, OPEN_ACL_UNSAFE)))
            written, data_bytes = written + 1, data_bytes + len(node.data or b"")
            if len(pending) >= WINDOW:
                first, request = pending.popleft()
                _confirm(first, request, timeout)
        for node, request in pending:
            _confirm(node, request, timeout)
    return {"znodes": written, "data_bytes": data_bytes}


def _confirm(node: znodes.Znode, request: Any, timeout: float) -> None:
    with writing(f"{node.path} was not written"):
        try:
            request.get(timeout=timeout)
        except kazoo_exceptions.NodeExistsError:
            return


def wait_registered(client: Any, brokers: Sequence[int], timeout: float, wait_s: float) -> float:
    """Wait until these brokers and no others are registered; return the seconds. Raises WriteError."""
    wanted = sorted(map(str, brokers))

    def registered() -> Tuple[bool, str]:
        seen = sorted(client.get_children_async(znodes.BROKER_IDS).get(timeout=timeout))
        return seen == wanted, f"brokers {', '.join(seen) or 'none'}, expected {', '.join(wanted)}"

    return _wait(registered, "the brokers of the rehearsal to register", wait_s)


def release(client: Any, cluster_id: str, timeout: float) -> bool:
    """Allow the election of a controller; return whether it was held back. Raises WriteError."""
    reader = zookeeper.Reader(client, timeout=timeout)
    held = [node for node in reader.get_many([znodes.CONTROLLER]) if node.data == _HOLD]
    if held:
        with writing("the election of the rehearsal's controller was not released"):
            Writer(client, cluster_id, timeout).delete(znodes.CONTROLLER).get(timeout=timeout)
    return bool(held)


def _wait(condition: Callable[[], Tuple[bool, str]], what: str, wait_s: float) -> float:
    began, seen = time.monotonic(), "no answer"
    while True:
        try:
            done, seen = condition()
        except kazoo_exceptions.KazooException as error:
            done, seen = False, type(error).__name__
        took = time.monotonic() - began
        if done:
            return took
        if took >= wait_s:
            raise WriteError(
                f"waited {took:.0f} s for {what}. Last seen: {seen}. Read logs/broker.log below rehearse_dir on the "
                "hosts of the rehearsal (QS-REHEARSE-004)"
            )
        time.sleep(_POLL_S)
