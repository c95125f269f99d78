# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read ZooKeeper's transaction logs, from any transaction on, and what each transaction changes.

A log is a chain of entries that can only be read forward. To read its last transactions in milliseconds, the reader
looks for the start of an entry near the end of the file, see `_start_before`, and reads forward from there.

Sources (ZooKeeper 3.5 to 3.9): org.apache.zookeeper.server.persistence.{FileTxnLog,FilePadding,Util},
server.util.SerializeUtils, server.DataTree, txn.* and org.apache.jute.Binary{Input,Output}Archive.
"""

from __future__ import annotations

import os
import re
import struct
import zlib
from typing import Any, BinaryIO, Dict, Iterator, List, NamedTuple, Sequence, Tuple

HEADER = struct.Struct(">4siq")  # magic, version, dbid: of a log and of a snapshot
VERSION = 2
CONTAINER, TTL = -(1 << 63), -(1 << 56)  # EphemeralType: the owner of a container, and the bits of a TTL's
LONGEST = 8 << 20
"""The longest transaction, in bytes. ZooKeeper reads none that is longer than jute.maxbuffer and
zookeeper.jute.maxbuffer.extrasize (BinaryInputArchive.checkLength), 2 MiB by default. Give twice a larger
jute.maxbuffer than 4 MiB."""

SNAPSHOTS = re.compile(r"snapshot\.([0-9a-f]+)(?:\.gz|\.snappy)?")
LOGS = re.compile(r"log\.([0-9a-f]+)")

_MAGIC = b"ZKLG"
_INT, _LONG = struct.Struct(">i"), struct.Struct(">q")
_ENTRY = struct.Struct(">qi")  # Adler32 and size of a transaction
_TXN = struct.Struct(">qiqqi")  # clientId, cxid, zxid, time, type
_END_OF_RECORD = b"B"
_DIGEST_SIZE, _DIGEST_VERSION = 12, b"\0\0\0\2"  # two paths need more bytes
_EPOCH_SHIFT, _COUNTER = 32, 0xFFFFFFFF  # of a zxid: each election begins with the next epoch and counter 1
_BLOCK = 1 << 16
_NEAR_END = 1 << 16  # bytes from the end at which the search for an entry begins
_SLACK = 1 << 20  # bytes within which an entry is looked for
_ATTEMPTS = 8
# The end of an entry, and the checksum of the next, whose upper half is always 0
_HEAD = b"B\0\0\0\0"
_LONG_HEAD = re.compile(_HEAD + rb"(?=[\0-\xff]{4}(?:\0[^\0]|[\1-\x7f]))")  # of an entry of 64 KiB or more

# org.apache.zookeeper.ZooDefs.OpCode
_ERROR, _CREATE, _DELETE, _SET_DATA, _SET_ACL, _CHECK, _MULTI = -1, 1, 2, 5, 7, 13, 14
_CREATE_2, _CREATE_CONTAINER, _DELETE_CONTAINER, _CREATE_TTL = 15, 19, 20, 21
_CREATES = (_CREATE, _CREATE_2, _CREATE_CONTAINER, _CREATE_TTL)
CLOSE_SESSION = -11


class ZooKeeperFileError(Exception):
    """A file of ZooKeeper cannot be read. `path` and `position` (a byte offset) name the place."""

    def __init__(self, reason: str, path: str, position: int | None = None):
        super().__init__(f"{path}{'' if position is None else f' at byte {position}'}: {reason}")
        self.reason, self.path, self.position = reason, path, position


class EphemeralsNeeded(Exception):
    """A session ended and the log does not list its znodes, as before 3.6 (CloseSessionTxn)."""


Acl = Tuple[Tuple[int, str, str], ...]
"""An ACL list: (perms, scheme, id) of each entry."""


class Change(NamedTuple):
    """What a transaction does to one path. `what`: create, delete, data, acl, child or child_gone."""

    what: str
    zxid: int
    time: int
    data: bytes | None = None
    number: int = 0  # the new version of data or ACL, or the parent's cversion
    owner: int = 0  # of a created znode
    acl: Acl | None = None


Changes = Dict[str, List[Change]]


class Transaction(NamedTuple):
    """A transaction of a log. `time`: milliseconds since 1970 by the leader's clock; `kind`: ZooDefs.OpCode."""

    zxid: int
    time: int
    kind: int
    session: int
    body: bytes
    place: Tuple[str, int]  # file and offset

    def collect(self, changes: Changes, owners: Dict[str, int] | None = None) -> None:
        """Add this transaction to {path: changes in order}. `owners`: {path: session} of the ephemeral znodes before
        it, which this keeps current. Raises ZooKeeperFileError, EphemeralsNeeded."""
        body = _Reader(self.body, *self.place)
        _collect(changes, self.zxid, self.time, self.kind, self.session, body, owners)


class Span(NamedTuple):
    """A part of the logs in a `version-2` directory: to the zxid `upto`, None to the end. `snapshots`: see
    transactions."""

    logs: str
    upto: int | None = None
    snapshots: str | None = None


class SpanTooShort(ZooKeeperFileError):
    """The logs end before a Span does."""


def read_changes(spans: Sequence[Span], after: int, owners: Dict[str, int] | None = None) -> Tuple[int, Changes]:
    """Return the last zxid of the spans, at least `after`, and {path: changes in order} of their transactions after a
    zxid. Each span begins where the one before it ends. `owners`: {path: session} of the ephemeral znodes at `after`,
    see EphemeralsNeeded. Raises ZooKeeperFileError (SpanTooShort), EphemeralsNeeded."""
    changes: Changes = {}
    last = after
    for span in spans:
        for transaction in transactions(span.logs, last, span.snapshots):
            if span.upto is not None and transaction.zxid > span.upto:
                break
            last = transaction.zxid
            transaction.collect(changes, owners)
        if span.upto is not None and last < span.upto:
            raise SpanTooShort(f"the log ends at zxid 0x{last:x}, short of 0x{span.upto:x}", span.logs)
    return last, changes


def transactions(logs: str, after: int, snapshots: str | None = None, longest: int = LONGEST) -> Iterator[Transaction]:
    """Yield all transactions after a zxid, in order, of the logs in a `version-2` directory.

    Only the end of the log that contains `after` is read. The counters of zxids show whether transactions are missing,
    except at the end of an epoch: a server that received a snapshot from its leader has not logged what led to it.
    The names of `snapshots`, the other `version-2` directory or the same, show that. `longest`: see LONGEST.
    Raises ZooKeeperFileError.
    """
    # first, because the server goes on
    taken = [zxid for zxid, _name in files_of(snapshots, SNAPSHOTS)] if snapshots else []
    files = files_of(logs, LOGS)
    first = max((index for index, (zxid, _name) in enumerate(files) if zxid <= after), default=0)
    last = after
    for index, (begins, name) in enumerate(files[first:], first):
        path = os.path.join(logs, name)
        with open(path, "rb") as file:
            for entry in _entries(file, path, after if begins <= after else None, index == len(files) - 1, longest):
                if entry.zxid <= last:
                    continue
                same_epoch = entry.zxid >> _EPOCH_SHIFT == last >> _EPOCH_SHIFT
                if entry.zxid != last + 1 and (same_epoch or entry.zxid & _COUNTER != 1):
                    raise ZooKeeperFileError(
                        f"transactions between 0x{last:x} and 0x{entry.zxid:x} are missing: give all logs since the "
                        "snapshot",
                        *entry.place,
                    )
                _require_logged(logs, taken, last, entry.zxid)
                last = entry.zxid
                yield entry
    _require_logged(logs, taken, last, None)


def _require_logged(logs: str, taken: List[int], last: int, following: int | None) -> None:
    """Raise ZooKeeperFileError if a snapshot was taken between two transactions that follow each other in the log."""
    for zxid in taken:
        if last < zxid and (following is None or zxid < following):
            raise ZooKeeperFileError(
                f"transactions between 0x{last:x} and 0x{zxid:x} are missing: this server received them as a snapshot. "
                "Read the log of another server",
                logs,
            )


def last_transaction(logs: str, longest: int = LONGEST) -> Transaction | None:
    """Return the last transaction of the logs in a `version-2` directory, None if there is none.

    Only the end of the newest log is read. A transaction that the server has written in part is not counted. Raises
    ZooKeeperFileError.
    """
    files = files_of(logs, LOGS)
    for index, (_zxid, name) in reversed(list(enumerate(files))):
        path = os.path.join(logs, name)
        with open(path, "rb") as file:
            # every zxid is lower than this one, so that the search ends near the file's end
            read = list(_entries(file, path, _COUNTER << _EPOCH_SHIFT, index == len(files) - 1, longest))
        if read:
            return read[-1]
    return None


def files_of(directory: str, names: re.Pattern[str]) -> List[Tuple[int, str]]:
    """Return (zxid, name) of the files in a directory, sorted by zxid."""
    found = ((names.fullmatch(name), name) for name in os.listdir(directory))
    return sorted((int(match[1], 16), name) for match, name in found if match)


# --- entries -------------------------------------------------------------------------------------------


def _entries(file: BinaryIO, path: str, after: int | None, is_last: bool, longest: int) -> Iterator[Transaction]:
    """Yield the transactions of a log from one at or before the zxid `after` on, or all: an earlier one first, or that
    at the file's start."""
    size = os.fstat(file.fileno()).st_size
    end = end_of_data(file, size)
    header = file.read(HEADER.size) if file.seek(0) == 0 else b""
    if len(header) < HEADER.size and is_last:
        return  # a server that ended right after it began the file
    magic, version, _dbid = HEADER.unpack(header) if len(header) == HEADER.size else (b"", 0, 0)
    if magic != _MAGIC or version != VERSION:
        raise ZooKeeperFileError(f"magic {magic!r} and version {version}, expected {_MAGIC!r} and 2", path, 0)
    begin = HEADER.size if after is None else _start_at(file, after, end, longest)
    # zeros, as allocated in advance: a header that is complete with them is one
    data = _read(file, begin, end) + bytes(_ENTRY.size)
    at = 0
    while at + _ENTRY.size <= len(data):
        checksum, size = _ENTRY.unpack_from(data, at)
        start, stop = at + _ENTRY.size, at + _ENTRY.size + size
        if not size and not data[start:].strip(b"\0"):
            return  # preallocated
        if size <= 0 or data[stop : stop + 1] != _END_OF_RECORD:
            if size > 0 and _is_torn(data, start, stop, checksum):
                return  # the server ended while it wrote it, and never acknowledged it
            raise ZooKeeperFileError(f"a transaction of {size} bytes has no end", path, begin + at)
        if zlib.adler32(data[start:stop]) != checksum:
            raise ZooKeeperFileError("a transaction has a wrong checksum", path, begin + at)
        if size < _TXN.size:
            raise ZooKeeperFileError(f"a transaction of {size} bytes has no header", path, begin + at)
        session, _cxid, zxid, time, kind = _TXN.unpack_from(data, start)
        yield Transaction(zxid, time, kind, session, data[start + _TXN.size : stop], (path, begin + at))
        at = stop + 1


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


def _read(file: BinaryIO, begin: int, end: int) -> bytes:
    file.seek(begin)
    return file.read(max(end - begin, 0))


def end_of_data(file: BinaryIO, size: int) -> int:
    """Return the offset after the last byte that is not zero. ZooKeeper allocates its log in advance, as a hole."""
    parts, at = [], 0
    try:
        while at < size:
            start = os.lseek(file.fileno(), at, os.SEEK_DATA)
            at = min(os.lseek(file.fileno(), start, os.SEEK_HOLE), size)
            parts.append((start, at))
    except OSError:  # no data after `at`
        pass
    for start, stop in reversed(parts):
        while start < stop:
            begin = max(start, stop - _BLOCK)
            block = _read(file, begin, stop)
            if block != bytes(len(block)):
                return begin + len(block.rstrip(b"\0"))
            stop = begin
    return 0


def _start_at(file: BinaryIO, after: int, end: int, longest: int) -> int:
    """Return the start of an entry with the zxid `after` or an earlier one, near it; that of the first if there is
    none."""
    distance = _NEAR_END
    while end - distance > HEADER.size:
        start = _start_before(file, end - distance, end, longest)
        if start == HEADER.size or _zxid_of(file, start) <= after:
            return start
        distance *= 16
    return HEADER.size


def _zxid_of(file: BinaryIO, start: int) -> int:
    body = start + _ENTRY.size
    return _TXN.unpack(_read(file, body, body + _TXN.size))[2]


def _start_before(file: BinaryIO, at: int, end: int, longest: int) -> int:
    """Return the start of an entry at or before byte `at` of a log whose data end at `end`.

    What looks like an entry may be a part of another's data, which a client has chosen, its checksum included. So a
    start counts only if nothing before it looks like an entry that reaches beyond it: every byte of a log is of an
    entry of at most `longest` bytes, so the entry around a false start would be found. If there is none nearby, that of
    the first entry is returned.
    """
    for dummy in range(_ATTEMPTS):
        if at <= HEADER.size:
            break
        lowest = max(HEADER.size, at - _SLACK)
        begin = max(HEADER.size, lowest - longest - _ENTRY.size) - 1
        data = _read(file, begin, min(end, at + _ENTRY.size + longest + 1))
        window = _Window(data, begin, end, longest)
        while at >= lowest:
            start = window.entry_before(at, lowest)
            if start is None:
                at = lowest - 1
                break
            around = window.reaching_beyond(start)
            if around is None:
                return start
            at = around
    return HEADER.size


class _Window:
    """A part of a log. Positions are offsets in the file."""

    def __init__(self, data: bytes, begin: int, end: int, longest: int) -> None:
        self._data, self._begin, self._end, self._longest = data, begin, end, longest
        self._long = [match.start() + 1 for match in _LONG_HEAD.finditer(data)]

    def entry_before(self, at: int, lowest: int) -> int | None:
        """Return the last position from `lowest` to `at` that looks like the start of a complete entry."""
        limit = at - self._begin + len(_HEAD) - 1
        while True:
            found = self._data.rfind(_HEAD, 0, limit) + 1
            if found + self._begin < lowest or not found:
                return None
            checksum, size = self._head(found)
            body = found + _ENTRY.size
            ends = self._data[body + size : body + size + 1] == _END_OF_RECORD
            if _TXN.size <= size <= self._longest and ends and zlib.adler32(self._data[body : body + size]) == checksum:
                return found + self._begin
            limit = found + len(_HEAD) - 2

    def reaching_beyond(self, start: int) -> int | None:
        """Return the first position before `start` that looks like the start of an entry that ends after it, complete
        or written in part; its checksum may be wrong."""
        relative = start - self._begin
        near = max(relative - _BLOCK - _ENTRY.size, 0)
        heads = [at for at in self._long if at <= near]
        if self._begin == HEADER.size - 1:
            heads.insert(0, 1)  # the first entry follows the header
        at = self._data.find(_HEAD, near, relative + len(_HEAD) - 2)
        while at >= 0:
            heads.append(at + 1)
            at = self._data.find(_HEAD, at + 1, relative + len(_HEAD) - 2)
        for head in heads:
            _checksum, size = self._head(head)
            stop = head + _ENTRY.size + size
            torn_or_ends = stop + self._begin >= self._end or self._data[stop : stop + 1] == _END_OF_RECORD
            if 0 < size <= self._longest and head < relative <= stop and torn_or_ends:
                return head + self._begin
        return None

    def _head(self, at: int) -> Tuple[int, int]:
        return _ENTRY.unpack_from(self._data, at) if at + _ENTRY.size <= len(self._data) else (0, 0)


# --- transactions --------------------------------------------------------------------------------------


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
        try:
            return (self.buffer() or b"").decode()
        except UnicodeDecodeError:
            raise ZooKeeperFileError("a transaction has a text that is not UTF-8", *self.place) from None

    def acl(self) -> Acl:
        return tuple((self.int32(), self.text(), self.text()) for _entry in range(self.int32()))

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
        changes.setdefault("" if path == "/" else path, []).append(Change(what, zxid, time, **values))

    def note_gone(path: str) -> None:
        note(path, "delete")
        note(path.rpartition("/")[0], "child_gone")
        if owners is not None:
            owners.pop(path, None)

    if kind in _CREATES:
        path, data, acl = body.text(), body.buffer(), body.acl()
        owner = CONTAINER if kind == _CREATE_CONTAINER else 0
        if kind in (_CREATE, _CREATE_2) and body.flag():
            owner = session
        cversion = body.int32()
        if kind == _CREATE_TTL:
            owner = TTL | body.int64()
        note(path, "create", data=data, owner=owner, acl=acl)
        if owners is not None and owner:
            owners.setdefault(path, owner)
        note(path.rpartition("/")[0], "child", number=cversion)
    elif kind in (_DELETE, _DELETE_CONTAINER):
        note_gone(body.text())
    elif kind == _SET_DATA:
        note(body.text(), "data", data=body.buffer(), number=body.int32())
    elif kind == _SET_ACL:
        path, acl = body.text(), body.acl()
        note(path, "acl", acl=acl, number=body.int32())
    elif kind == _MULTI:
        parts = [(body.int32(), body.buffer()) for _part in range(body.int32())]
        # Of a multi that failed, the operations before the error keep their type (PrepRequestProcessor, DataTree)
        for part, inner in () if any(part == _ERROR for part, _inner in parts) else parts:
            _collect(changes, zxid, time, part, session, body.inner(inner or b""), owners)
    elif kind == CLOSE_SESSION:
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
