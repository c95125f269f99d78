# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read ZooKeeper's tree from a data directory: the newest snapshot, and the transaction log after it.

A snapshot is taken while the server goes on, so it may contain a part of what the log then repeats. As when a server
starts, each transaction after the snapshot's zxid is applied to what is there.

Sources (ZooKeeper 3.5 to 3.9): org.apache.zookeeper.server.persistence.{FileSnap,FileTxnSnapLog},
server.util.SerializeUtils, server.{DataTree,DataNode} and org.apache.jute.BinaryOutputArchive.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from typing import Callable, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple, Union

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper.zk_log import (
    CONTAINER,
    HEADER,
    LONGEST,
    SNAPSHOTS,
    TTL,
    VERSION,
    Acl,
    Change,
    Changes,
    EphemeralsNeeded,
    Span,
    ZooKeeperFileError,
    files_of,
    last_transaction,
    read_changes,
)

_COMPRESSED = (".gz", ".snappy")
_MAGIC = b"ZKSN"
_SEAL = struct.Struct(">qi1s")  # Adler32 of all before it, and the path "/"
_INT = struct.Struct(">i")
_SESSION_SIZE = 12
_ACL_LIST = struct.Struct(">qi")  # number, entries
# acl, and StatPersisted: czxid, mzxid, ctime, mtime, version, cversion, aversion, ephemeralOwner, pzxid
_NODE = struct.Struct(">qqqqqiiiqq")


_OPEN_INDEX = -1  # ReferenceCountedACLCache.OPEN_UNSAFE_ACL_ID
OPEN_ACL: Acl = ((31, "world", "anyone"),)
"""ZooDefs.Ids.OPEN_ACL_UNSAFE."""


class Node(NamedTuple):
    """A znode in a snapshot. `stat`: czxid, mzxid, ctime, mtime, version, cversion as stored (the number of created
    children), aversion, ephemeralOwner, pzxid. `acl`: None where it was set while the snapshot was written, after the
    snapshot's table of ACLs: the log then has it."""

    data: bytes | None
    stat: Tuple[int, ...]
    acl: Acl | None


class Snapshot(NamedTuple):
    """A snapshot's file and the zxid from which the log must be applied."""

    zxid: int
    path: str


def newest_snapshot(directory: str) -> Snapshot:
    """Return the newest complete snapshot in a `version-2` directory. Raises ZooKeeperFileError."""
    found = files_of(directory, SNAPSHOTS)
    for _zxid, name in reversed(found):
        _require_plain(directory, name)
    for zxid, name in reversed(found):
        path = os.path.join(directory, name)
        if _is_complete(path):
            return Snapshot(zxid, path)
    raise ZooKeeperFileError(f"{len(found)} snapshots, none of them complete" if found else "no snapshot", directory)


def snapshot_up_to(directory: str, at: int, processed: Mapping[int, int]) -> Snapshot:
    """Return the newest complete snapshot of a `version-2` directory without an effect of a transaction after `at`.

    A snapshot contains no effect of a transaction that the server processed once it was complete. `processed`: {zxid of
    a snapshot: zxid that the server had processed then}. Without that it is the zxid of the next complete snapshot: a
    server writes one at a time (SyncRequestProcessor.snapThreadMutex). Raises ZooKeeperFileError.
    """
    bound, found = None, files_of(directory, SNAPSHOTS)
    for zxid, name in reversed(found):
        path = os.path.join(directory, name)
        if not (_is_complete(path) or name.endswith(_COMPRESSED)):
            continue
        bound = processed.get(zxid, bound)
        if bound is not None and bound <= at:
            _require_plain(directory, name)
            return Snapshot(zxid, path)
        bound = zxid
    raise ZooKeeperFileError(
        f"{len(found)} snapshots, and none is known to be without transactions after zxid 0x{at:x}", directory
    )


def last_zxid(snapshots: str, logs: str, longest: int = LONGEST) -> int:
    """Return the zxid to which a server's files lead, 0 if there is none, from the `version-2` directories.

    That is the zxid of its last transaction or of a newer snapshot, which the server has received from its leader.
    `longest`: see LONGEST. Raises ZooKeeperFileError.
    """
    found = files_of(snapshots, SNAPSHOTS)
    last = last_transaction(logs, longest)
    logged = last.zxid if last else 0
    for zxid, name in reversed(found):
        if zxid <= logged:
            break
        _require_plain(snapshots, name)
        if _is_complete(os.path.join(snapshots, name)):
            return zxid
    return logged


def _require_plain(directory, name):
    if name.endswith(_COMPRESSED):
        raise ZooKeeperFileError(
            "the snapshot is compressed (zookeeper.snapshot.compression.method), which this release does not read",
            os.path.join(directory, name),
        )


def _is_complete(path):
    """Return whether a snapshot ends with its seal, as SnapStream.isValidSnapshot; a torn one is skipped."""
    size = os.path.getsize(path)
    if size < HEADER.size + _SEAL.size:
        return False
    with open(path, "rb") as file:
        file.seek(size - 5)
        return file.read() == b"\0\0\0\1/"


Wanted = Callable[[bytes], Union[bool, None]]
"""Whether a reader wants a znode, by its absolute path; None if it wants none of those below it either."""


def read_tree(
    snapshots: str, logs: str, under: str = "", wanted: Wanted | None = None
) -> Tuple[int, Iterator[Tuple[str, Node]]]:
    """Return the zxid of the last transaction, and (path below the chroot `under`, Node) for each wanted znode there.

    Parents come before their children, except for what the log created. Raises ZooKeeperFileError, the iterator too.
    """
    zxid, _changes, nodes = replay(newest_snapshot(snapshots), [Span(logs)], under, wanted)
    return zxid, nodes


def replay(
    snapshot: Snapshot, spans: Sequence[Span], under: str = "", wanted: Wanted | None = None
) -> Tuple[int, Changes, Iterator[Tuple[str, Node]]]:
    """Return the zxid of the last transaction of the spans, their changes, and (path below the chroot `under`, Node)
    for each wanted znode there. Raises ZooKeeperFileError, the iterator too.

    The tree is the one at that zxid if the snapshot has no effect of a later transaction, see snapshot_up_to. What it
    has of earlier ones is applied once more, with the same result: versions are absolute in the log, and pzxid and
    cversion never fall (DataTree.createNode, deleteNode). One thing is lost as in ZooKeeper itself: before 3.6 the end
    of a session does not list its znodes, so the pzxid of their parents is not that of the server where the session
    ended while the snapshot was written.
    """
    try:
        zxid, changes = read_changes(spans, snapshot.zxid)
    except EphemeralsNeeded:
        owners = {path: node.stat[7] for path, node in read_snapshot(snapshot.path) if node.stat[7]}
        zxid, changes = read_changes(spans, snapshot.zxid, owners)
    return zxid, changes, _tree(snapshot, changes, under, wanted)


def ephemerals(snapshots: str, logs: str, under: str) -> Tuple[int, Dict[str, int]]:
    """Return the zxid of the last transaction, and {absolute path: session} of the ephemeral znodes at and below
    `under` then. Raises ZooKeeperFileError."""
    snapshot = newest_snapshot(snapshots)
    owners = {path: node.stat[7] for path, node in read_snapshot(snapshot.path, under) if node.stat[7]}
    zxid, _changes = read_changes([Span(logs, None, snapshots)], snapshot.zxid, owners)
    return zxid, {
        path: owner
        for path, owner in owners.items()
        if owner != CONTAINER and (owner & TTL) != TTL and (path == under or path.startswith(f"{under}/"))
    }


def _tree(snapshot: Snapshot, changes: Changes, under: str, wanted: Wanted | None) -> Iterator[Tuple[str, Node]]:
    left = {
        path: of
        for path, of in changes.items()
        if (path == under or path.startswith(f"{under}/")) and (wanted is None or wanted(path.encode()))
    }
    for path, node in read_snapshot(snapshot.path, under, wanted):
        of = left.pop(path, None) if left else None
        current = node if of is None else _applied(node, of)
        if current is not None:
            yield path[len(under) :] or "/", current
    for path, of in left.items():
        created = _applied(None, of)
        if created is not None:
            yield path[len(under) :] or "/", created


def read_snapshot(path: str, under: str = "", wanted: Wanted | None = None) -> Iterator[Tuple[str, Node]]:
    """Yield (absolute path, Node) for each wanted znode of a snapshot at and below `under`. Raises
    ZooKeeperFileError."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        _check_snapshot(data, path)
        prefix, at = under.encode(), HEADER.size
        end = len(data) - _SEAL.size
        root, apart = f"{under}/".encode(), b"\0"  # a znode's descendants follow it (DataTree.serializeNode)
        try:
            at, acls = _sessions_and_acls(data)
            int_at, after_data = _INT.unpack_from, _NODE.size  # a million znodes a second
            while True:
                start = at + 4
                at = start + int_at(data, at)[0]
                name = data[start:at]
                if name == b"/":
                    return
                length = int_at(data, at)[0]
                body = at + 4
                at = body + length if length > 0 else body
                if at > end:
                    raise ZooKeeperFileError("a znode is longer than the file", path, start)
                if not name.startswith(apart) and (name.startswith(root) or name == prefix):
                    wants = wanted is None or wanted(name)
                    if wants:
                        content = None if length < 0 else data[body:at]
                        acl, *stat = _NODE.unpack_from(data, at)
                        yield name.decode(), Node(content, tuple(stat), acls.get(acl))
                    elif wants is None:
                        apart = name + b"/"
                at += after_data
        except (struct.error, UnicodeDecodeError) as error:
            raise ZooKeeperFileError(f"not what ZooKeeper writes: {error}", path, at) from None


def _check_snapshot(data, path):
    if len(data) < HEADER.size + _SEAL.size:
        raise ZooKeeperFileError(f"{len(data)} bytes are no snapshot", path)
    magic, version, _dbid = HEADER.unpack_from(data, 0)
    if magic != _MAGIC or version != VERSION:
        raise ZooKeeperFileError(f"magic {magic!r} and version {version}, expected {_MAGIC!r} and 2", path, 0)
    end = len(data) - _SEAL.size
    checksum, size, slash = _SEAL.unpack_from(data, end)
    if (size, slash) != (1, b"/"):
        raise ZooKeeperFileError("the snapshot is not complete: it has no seal", path, end)
    with memoryview(data) as view:
        actual = zlib.adler32(view[:end])
    if actual != checksum:
        raise ZooKeeperFileError(f"the checksum is {actual:#x}, the snapshot says {checksum:#x}", path, end)


def _sessions_and_acls(data) -> Tuple[int, Dict[int, Acl]]:
    """Return where the znodes begin, and the ACLs by the numbers that znodes have (ReferenceCountedACLCache)."""
    acls = {_OPEN_INDEX: OPEN_ACL}
    at = HEADER.size
    at += 4 + _INT.unpack_from(data, at)[0] * _SESSION_SIZE
    (lists,) = _INT.unpack_from(data, at)
    at += 4
    for _list in range(lists):
        number, entries = _ACL_LIST.unpack_from(data, at)
        at += _ACL_LIST.size
        acl = []
        for _entry in range(entries):
            texts = []
            (perms,) = _INT.unpack_from(data, at)
            at += 4
            for _text in range(2):
                start = at + 4
                at = start + _INT.unpack_from(data, at)[0]
                texts.append(data[start:at].decode())
            acl.append((perms, *texts))
        acls[number] = tuple(acl)
    return at, acls


def _applied(node: Node | None, changes: List[Change]) -> Node | None:
    """Return a znode after these changes, None if it does not exist then."""
    for change in changes:
        if change.what == "create":
            if node is not None:  # the snapshot has it already, maybe with an ACL that is not in its table
                node = node._replace(acl=node.acl or change.acl)
            else:
                node = Node(change.data, _created(change), change.acl)
        elif change.what == "delete":
            node = None
        elif node is not None:
            node = _changed(node, change)
    return node


def _created(change):
    return (change.zxid, change.zxid, change.time, change.time, 0, 0, 0, change.owner, change.zxid)


def _changed(node, change):
    czxid, mzxid, ctime, mtime, version, cversion, aversion, owner, pzxid = node.stat
    if change.what == "data":
        node = node._replace(data=change.data)
        mzxid, mtime, version = change.zxid, change.time, change.number
    elif change.what == "acl":
        node = node._replace(acl=change.acl)
        aversion = change.number
    elif change.what == "child_gone":
        pzxid = max(pzxid, change.zxid)
    elif change.number > cversion or change.number < 0:
        cversion, pzxid = (cversion + 1 if change.number < 0 else change.number), change.zxid
    return node._replace(stat=(czxid, mzxid, ctime, mtime, version, cversion, aversion, owner, pzxid))


def stat_of(node: Node, children: int) -> znodes.Stat:
    """Return a znode's Stat as a server answers it: `children` is their number (DataNode.copyStat)."""
    czxid, mzxid, ctime, mtime, version, cversion, aversion, owner, pzxid = node.stat
    length = len(node.data or b"")
    owner = 0 if owner == CONTAINER or (owner & TTL) == TTL else owner
    return znodes.Stat(
        czxid, mzxid, ctime, mtime, version, 2 * cversion - children, aversion, owner, length, children, pzxid
    )
