# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read ZooKeeper's tree from a data directory: the newest snapshot, and the transaction log after it.

A snapshot is taken while the server goes on, so it may contain a part of what the log then repeats. As when a server
starts, each transaction after the snapshot's zxid is applied to what is there.

Sources (ZooKeeper 3.5 to 3.9): org.apache.zookeeper.server.persistence.{FileSnap,FileTxnLog,FileTxnSnapLog},
server.util.SerializeUtils, server.{DataTree,DataNode}, txn.* and org.apache.jute.BinaryOutputArchive.
"""

from __future__ import annotations

import mmap
import os
import re
import struct
import zlib
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import znodes

_SNAPSHOT = re.compile(r"snapshot\.([0-9a-f]+)")
_COMPRESSED = re.compile(r"snapshot\.[0-9a-f]+\.(gz|snappy)")
_LOG = re.compile(r"log\.([0-9a-f]+)")
_SNAPSHOT_MAGIC, _LOG_MAGIC, _VERSION = b"ZKSN", b"ZKLG", 2
_HEADER = struct.Struct(">4siq")  # magic, version, dbid
_SEAL = struct.Struct(">qi1s")  # Adler32 of all before it, and the path "/"
_INT, _LONG = struct.Struct(">i"), struct.Struct(">q")
_SESSION_SIZE = 12
# acl, and StatPersisted: czxid, mzxid, ctime, mtime, version, cversion, aversion, ephemeralOwner, pzxid
_NODE = struct.Struct(">qqqqqiiiqq")
_ENTRY = struct.Struct(">qi")  # Adler32 and size of a transaction
_TXN = struct.Struct(">qiqqi")  # clientId, cxid, zxid, time, type
_END_OF_RECORD = b"B"
_DIGEST_SIZE, _DIGEST_VERSION = 12, b"\0\0\0\2"  # two paths need more bytes
_EPOCH_SHIFT, _COUNTER = 32, 0xFFFFFFFF  # of a zxid: each election begins with the next epoch and counter 1

# org.apache.zookeeper.ZooDefs.OpCode
_ERROR, _CREATE, _DELETE, _SET_DATA, _SET_ACL, _CHECK, _MULTI = -1, 1, 2, 5, 7, 13, 14
_CREATE_2, _CREATE_CONTAINER, _DELETE_CONTAINER, _CREATE_TTL = 15, 19, 20, 21
_CREATES = (_CREATE, _CREATE_2, _CREATE_CONTAINER, _CREATE_TTL)
_CLOSE_SESSION = -11
_CONTAINER, _TTL = -(1 << 63), -(1 << 56)  # EphemeralType: the owner of a container, and the bits of a TTL's


class ZooKeeperFileError(Exception):
    """A file of ZooKeeper cannot be read. `path` and `position` (a byte offset) name the place."""

    def __init__(self, reason: str, path: str, position: int | None = None):
        super().__init__(f"{path}{'' if position is None else f' at byte {position}'}: {reason}")
        self.reason, self.path, self.position = reason, path, position


class EphemeralsNeeded(Exception):
    """A session ended and the log does not list its znodes, as before 3.6 (CloseSessionTxn)."""


class Node(NamedTuple):
    """A znode in a snapshot. `stat`: czxid, mzxid, ctime, mtime, version, cversion as stored (the number of created
    children), aversion, ephemeralOwner, pzxid."""

    data: bytes | None
    stat: Tuple[int, ...]


class Snapshot(NamedTuple):
    """A snapshot's file and the zxid from which the log must be applied."""

    zxid: int
    path: str


class _Change(NamedTuple):
    """What a transaction does to one path. `what`: create, delete, data, acl, child or child_gone."""

    what: str
    zxid: int
    time: int
    data: bytes | None = None
    number: int = 0  # the new version of data or ACL, or the parent's cversion
    owner: int = 0  # of a created znode


Changes = Dict[str, List[_Change]]


def newest_snapshot(directory: str) -> Snapshot:
    """Return the newest complete snapshot in a `version-2` directory. Raises ZooKeeperFileError."""
    names = os.listdir(directory)
    compressed = sorted(name for name in names if _COMPRESSED.fullmatch(name))
    if compressed:
        raise ZooKeeperFileError(
            "the snapshot is compressed (zookeeper.snapshot.compression.method), which this release does not read",
            os.path.join(directory, compressed[-1]),
        )
    found = sorted(
        ((int(name.partition(".")[2], 16), name) for name in names if _SNAPSHOT.fullmatch(name)), reverse=True
    )
    for zxid, name in found:
        path = os.path.join(directory, name)
        if _is_complete(path):
            return Snapshot(zxid, path)
    raise ZooKeeperFileError(f"{len(found)} snapshots, none of them complete" if found else "no snapshot", directory)


def _is_complete(path):
    """Return whether a snapshot ends with its seal, as SnapStream.isValidSnapshot; a torn one is skipped."""
    size = os.path.getsize(path)
    if size < _HEADER.size + _SEAL.size:
        return False
    with open(path, "rb") as file:
        file.seek(size - 5)
        return file.read() == b"\0\0\0\1/"


def read_tree(snapshots: str, logs: str, under: str = "") -> Tuple[int, Iterator[Tuple[str, Node]]]:
    """Return the zxid of the last transaction, and (path below the chroot `under`, Node) for each znode there.

    Parents come before their children, except for what the log created. Raises ZooKeeperFileError, the iterator too.
    """
    snapshot = newest_snapshot(snapshots)
    try:
        zxid, changes = read_changes(logs, snapshot.zxid)
    except EphemeralsNeeded:
        owners = {path: node.stat[7] for path, node in read_snapshot(snapshot.path) if node.stat[7]}
        zxid, changes = read_changes(logs, snapshot.zxid, owners)
    return zxid, _tree(snapshot, changes, under)


def _tree(snapshot: Snapshot, changes: Changes, under: str) -> Iterator[Tuple[str, Node]]:
    left = {path: of for path, of in changes.items() if path == under or path.startswith(f"{under}/")}
    for path, node in read_snapshot(snapshot.path, under):
        of = left.pop(path, None) if left else None
        current = node if of is None else _applied(node, of)
        if current is not None:
            yield path[len(under) :] or "/", current
    for path, of in left.items():
        created = _applied(None, of)
        if created is not None:
            yield path[len(under) :] or "/", created


def read_snapshot(path: str, under: str = "") -> Iterator[Tuple[str, Node]]:
    """Yield (absolute path, Node) for each znode of a snapshot at and below `under`. Raises ZooKeeperFileError."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        _check_snapshot(data, path)
        prefix, at = under.encode(), _HEADER.size
        end = len(data) - _SEAL.size
        root = f"{under}/".encode()
        try:
            at = _skip_sessions_and_acls(data)
            while True:
                size = _INT.unpack_from(data, at)[0]
                start = at + 4
                at = start + size
                name = data[start:at]
                if name == b"/":
                    return
                length = _INT.unpack_from(data, at)[0]
                at += 4
                body = at
                at += max(length, 0)
                if at > end:
                    raise ZooKeeperFileError("a znode is longer than the file", path, start)
                if name == prefix or name.startswith(root):
                    content = None if length < 0 else data[body:at]
                    yield name.decode(), Node(content, _NODE.unpack_from(data, at)[1:])
                at += _NODE.size
        except (struct.error, UnicodeDecodeError) as error:
            raise ZooKeeperFileError(f"not what ZooKeeper writes: {error}", path, at) from None


def _check_snapshot(data, path):
    if len(data) < _HEADER.size + _SEAL.size:
        raise ZooKeeperFileError(f"{len(data)} bytes are no snapshot", path)
    magic, version, _dbid = _HEADER.unpack_from(data, 0)
    if magic != _SNAPSHOT_MAGIC or version != _VERSION:
        raise ZooKeeperFileError(f"magic {magic!r} and version {version}, expected {_SNAPSHOT_MAGIC!r} and 2", path, 0)
    end = len(data) - _SEAL.size
    checksum, size, slash = _SEAL.unpack_from(data, end)
    if (size, slash) != (1, b"/"):
        raise ZooKeeperFileError("the snapshot is not complete: it has no seal", path, end)
    with memoryview(data) as view:
        actual = zlib.adler32(view[:end])
    if actual != checksum:
        raise ZooKeeperFileError(f"the checksum is {actual:#x}, the snapshot says {checksum:#x}", path, end)


def _skip_sessions_and_acls(data) -> int:
    at = _HEADER.size
    at += 4 + _INT.unpack_from(data, at)[0] * _SESSION_SIZE
    (lists,) = _INT.unpack_from(data, at)
    at += 4
    for _list in range(lists):
        (entries,) = _INT.unpack_from(data, at + 8)
        at += 12
        for _entry in range(entries):
            at += 4
            for _text in range(2):
                at += 4 + _INT.unpack_from(data, at)[0]
    return at


# --- transactions --------------------------------------------------------------------------------------


def read_changes(directory: str, after: int, owners: Dict[str, int] | None = None) -> Tuple[int, Changes]:
    """Return the last zxid of the logs in a `version-2` directory, at least `after`, and {path: changes in order} of
    the transactions after a zxid. `owners`: {path: session} of the ephemeral znodes at that zxid, see EphemeralsNeeded.
    Raises ZooKeeperFileError, EphemeralsNeeded."""
    files = sorted((int(name.partition(".")[2], 16), name) for name in os.listdir(directory) if _LOG.fullmatch(name))
    first = max((index for index, (zxid, _name) in enumerate(files) if zxid <= after), default=0)
    changes: Changes = {}
    last = after
    for index, (_zxid, name) in enumerate(files[first:], first):
        for zxid, time, kind, session, body in _transactions(os.path.join(directory, name), index == len(files) - 1):
            if zxid <= last:
                continue
            if zxid != last + 1 and (zxid >> _EPOCH_SHIFT == last >> _EPOCH_SHIFT or zxid & _COUNTER != 1):
                raise ZooKeeperFileError(
                    f"transactions between 0x{last:x} and 0x{zxid:x} are missing: give all logs since the snapshot",
                    *body.place,
                )
            last = zxid
            _collect(changes, zxid, time, kind, session, body, owners)
    return last, changes


def _transactions(path: str, is_last: bool) -> Iterator[Tuple[int, int, int, int, _Reader]]:
    with open(path, "rb") as file:
        data = file.read()
    if len(data) < _HEADER.size and is_last:
        return  # a server that ended right after it began the file
    magic, version, _dbid = _HEADER.unpack_from(data, 0) if len(data) >= _HEADER.size else (b"", 0, 0)
    if magic != _LOG_MAGIC or version != _VERSION:
        raise ZooKeeperFileError(f"magic {magic!r} and version {version}, expected {_LOG_MAGIC!r} and 2", path, 0)
    at = _HEADER.size
    while at + _ENTRY.size <= len(data):
        checksum, size = _ENTRY.unpack_from(data, at)
        start, end = at + _ENTRY.size, at + _ENTRY.size + size
        if not size and not data[start:].strip(b"\0"):
            return  # preallocated
        if size <= 0 or data[end : end + 1] != _END_OF_RECORD:
            if is_last and size > 0 and _is_torn(data, start, end, checksum):
                return  # the server ended while it wrote it, and never acknowledged it
            raise ZooKeeperFileError(f"a transaction of {size} bytes has no end", path, at)
        if zlib.adler32(data[start:end]) != checksum:
            raise ZooKeeperFileError("a transaction has a wrong checksum", path, at)
        session, _cxid, zxid, time, kind = _TXN.unpack_from(data, start)
        yield zxid, time, kind, session, _Reader(data[start + _TXN.size : end], path, at)
        at = end + 1


def _is_torn(data: bytes, start: int, end: int, checksum: int) -> bool:
    """Return whether the file's last transaction was written in part: nothing follows it, and it is not a complete one
    with another size."""
    if data[end:].strip(b"\0"):
        return False
    actual, at = 1, start
    while True:
        stop = data.find(_END_OF_RECORD, at)
        if stop < 0:
            return True
        actual = zlib.adler32(data[at:stop], actual)
        if actual == checksum and stop > start:
            return False
        actual, at = zlib.adler32(_END_OF_RECORD, actual), stop + 1


class _Reader:
    """Reads jute's types from the body of a transaction."""

    def __init__(self, data: bytes, path: str, position: int) -> None:
        self._data, self._at = data, 0
        self.place = path, position

    def _unpack(self, layout):
        try:
            (value,) = layout.unpack_from(self._data, self._at)
        except struct.error:
            raise ZooKeeperFileError("a transaction ends too early", *self.place) from None
        self._at += layout.size
        return value

    def int32(self) -> int:
        return self._unpack(_INT)

    def int64(self) -> int:
        return self._unpack(_LONG)

    def flag(self) -> bool:
        self._at += 1
        return self._data[self._at - 1 : self._at] == b"\1"

    def buffer(self) -> bytes | None:
        size = self.int32()
        if size < 0:
            return None
        self._at += size
        if self._at > len(self._data):
            raise ZooKeeperFileError("a transaction ends too early", *self.place)
        return self._data[self._at - size : self._at]

    def text(self) -> str:
        return (self.buffer() or b"").decode()

    def acl(self) -> None:
        for _entry in range(self.int32()):
            self.int32(), self.text(), self.text()

    def inner(self, body: bytes) -> _Reader:
        return _Reader(body, *self.place)

    def has_only_a_digest(self) -> bool:
        """Return whether nothing is left but a TxnDigest (version, digest), which ZooKeeper adds since 3.6."""
        left = self._data[self._at :]
        return not left or (len(left) == _DIGEST_SIZE and left[:4] == _DIGEST_VERSION)

    def unknown(self, kind: int) -> ZooKeeperFileError:
        return ZooKeeperFileError(f"transaction type {kind} is unknown", *self.place)


def _collect(
    changes: Changes, zxid: int, time: int, kind: int, session: int, body: _Reader, owners: Dict[str, int] | None
) -> None:
    def note(path: str, what: str, **values: Any) -> None:
        changes.setdefault("" if path == "/" else path, []).append(_Change(what, zxid, time, **values))

    def note_gone(path: str) -> None:
        note(path, "delete")
        note(path.rpartition("/")[0], "child_gone")
        if owners is not None:
            owners.pop(path, None)

    if kind in _CREATES:
        path, data = body.text(), body.buffer()
        body.acl()
        owner = _CONTAINER if kind == _CREATE_CONTAINER else 0
        if kind in (_CREATE, _CREATE_2) and body.flag():
            owner = session
        cversion = body.int32()
        if kind == _CREATE_TTL:
            owner = _TTL | body.int64()
        note(path, "create", data=data, owner=owner)
        if owners is not None and owner:
            owners.setdefault(path, owner)
        note(path.rpartition("/")[0], "child", number=cversion)
    elif kind in (_DELETE, _DELETE_CONTAINER):
        note_gone(body.text())
    elif kind == _SET_DATA:
        note(body.text(), "data", data=body.buffer(), number=body.int32())
    elif kind == _SET_ACL:
        path = body.text()
        body.acl()
        note(path, "acl", number=body.int32())
    elif kind == _MULTI:
        parts = [(body.int32(), body.buffer()) for _part in range(body.int32())]
        # Of a multi that failed, the operations before the error keep their type (PrepRequestProcessor, DataTree)
        for part, inner in () if any(part == _ERROR for part, _inner in parts) else parts:
            _collect(changes, zxid, time, part, session, body.inner(inner or b""), owners)
    elif kind == _CLOSE_SESSION:
        if not body.has_only_a_digest():
            for _path in range(body.int32()):
                note_gone(body.text())
        elif owners is None:
            raise EphemeralsNeeded
        else:
            for path in [path for path, owner in owners.items() if owner == session]:
                note_gone(path)
    elif kind not in _WITHOUT_CHANGE:
        raise body.unknown(kind)


# createSession; reconfig sets /zookeeper/config, which is not Kafka's
_WITHOUT_CHANGE = (_ERROR, _CHECK, -10, 16)


def _applied(node: Node | None, changes: List[_Change]) -> Node | None:
    """Return a znode after these changes, None if it does not exist then."""
    for change in changes:
        if change.what == "create":
            if node is None:  # else the snapshot has it already
                node = Node(change.data, _created(change))
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
    owner = 0 if owner == _CONTAINER or (owner & _TTL) == _TTL else owner
    return znodes.Stat(
        czxid, mzxid, ctime, mtime, version, 2 * cversion - children, aversion, owner, length, children, pzxid
    )
