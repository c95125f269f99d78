# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read ZooKeeper with the standard library only: a few znodes in a short session, and the four letter words.

For restarts of brokers, whose hosts have no ZooKeeper library. The protocol is that of zookeeper.jute (3.8):
length-prefixed requests in a session, answered in order. This client never writes and sends no heartbeats, so a
connection lasts for its `timeout` only.
"""

from __future__ import annotations

import contextlib
import struct
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import ZkSecurity
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import (
    HostPort,
    ZkConnect,
    parse_zookeeper_connect,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import (
    AuthenticationFailed,
    Deadline,
    ProtocolError,
    TlsError,
    Unreachable,
    Wire,
    WireError,
)

__all__ = [
    "AuthenticationFailed",
    "ConnectionLoss",
    "NoAuth",
    "NoNode",
    "NotServing",
    "ProtocolError",
    "Stat",
    "TlsError",
    "Unreachable",
    "WireError",
    "ZkConnection",
    "ZkError",
    "four_letter",
    "four_letter_from",
    "read_znodes",
]

_EXISTS, _GET_DATA, _SYNC, _GET_CHILDREN, _CLOSE, _AUTH = 3, 4, 9, 12, -11, 100
_AUTH_XID = -4
_NO_NODE, _NO_AUTH, _AUTH_FAILED = -101, -102, -115
_NOT_SERVING = "not currently serving requests"
_LARGEST_ANSWER = 64 << 20
_STAT = struct.Struct(">qqqqiiiqiiq")

ERROR_NAMES = {
    -4: "CONNECTIONLOSS",
    -5: "MARSHALLINGERROR",
    -6: "UNIMPLEMENTED",
    -8: "BADARGUMENTS",
    -101: "NONODE",
    -102: "NOAUTH",
    -112: "SESSIONEXPIRED",
    -115: "AUTHFAILED",
    -118: "SESSIONMOVED",
    -124: "SESSIONCLOSEDREQUIRESASLAUTH",
}
"""Names of the error codes of reads (class org.apache.zookeeper.KeeperException.Code)."""


class ZkError(WireError):
    """An answer has an error code: `code`, its `name` in KeeperException, `path` with the chroot."""

    def __init__(self, address: HostPort | None, code: int, path: str) -> None:
        name = ERROR_NAMES.get(code, f"error {code}")
        super().__init__(address, f"{path}: {name}")
        self.code = code
        self.name = name
        self.path = path


class NoNode(ZkError):
    """The znode does not exist, or the chroot does not."""


class NoAuth(ZkError):
    """The znode's ACL does not allow this connection to read it."""


class ConnectionLoss(WireError):
    """No server opened a session, or the session was lost. `failures` holds the WireError of each server tried."""

    def __init__(self, address: HostPort | None, message: str, failures: Iterable[WireError] = ()) -> None:
        super().__init__(address, message)
        self.failures = tuple(failures)


class NotServing(WireError):
    """The server runs but serves no requests, because it is not part of a quorum."""

    def __init__(self, address: HostPort) -> None:
        super().__init__(address, "ZooKeeper runs but does not serve requests: it has no quorum (QS-CONNECT-005)")


class Stat(NamedTuple):
    """A znode's Stat (zookeeper.jute); times are ms since 1970, `ephemeral_owner` is 0 for a persistent znode."""

    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    data_length: int
    num_children: int
    pzxid: int


class ZkConnection:
    """A context manager of a session with the first server that opens one; all calls end within `timeout` seconds.

    `connect` is a connect string or its ZkConnect; paths are below its chroot. Servers are tried in order, each with
    its share of the time. Raises ConnectionLoss, AuthenticationFailed, ProtocolError; SecurityError, AddressError.
    """

    def __init__(self, connect: str | ZkConnect, security: ZkSecurity | None = None, timeout: float = 5.0) -> None:
        parsed = parse_zookeeper_connect(connect) if isinstance(connect, str) else connect
        self.chroot = parsed.chroot
        self.security = security or ZkSecurity()
        self.security.require_own_client()
        self._deadline = Deadline(timeout)
        self._xid, self.session = 0, 0
        self._wire = self._first_serving(parsed.servers)
        self.address = self._wire.address
        try:
            self._authenticate()
        except BaseException:
            self._wire.close()
            raise

    def __enter__(self) -> ZkConnection:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the session on the server, so that it need not expire, and close the connection."""
        with contextlib.suppress(WireError):
            self._wire.deadline = Deadline(min(1.0, self._deadline.remaining()))
            self._ask(_CLOSE, b"", "/")
        self._wire.close()

    def get(self, path: str) -> Tuple[bytes, Stat]:
        """Return a znode's data (empty also for null data) and Stat. Raises NoNode, NoAuth, ConnectionLoss."""
        answer = self._ask_path(_GET_DATA, path)
        with self._readable():
            data, rest = _buffer(answer)
            return data, _stat(rest)

    def exists(self, path: str) -> Stat | None:
        """Return a znode's Stat, or None. Raises NoAuth, ConnectionLoss."""
        try:
            answer = self._ask_path(_EXISTS, path)
        except NoNode:
            return None
        with self._readable():
            return _stat(answer)

    def children(self, path: str) -> List[str]:
        """Return the sorted names of a znode's children. Raises NoNode, NoAuth, ConnectionLoss."""
        answer = self._ask_path(_GET_CHILDREN, path)
        with self._readable():
            return sorted(_strings(answer))

    def sync(self) -> None:
        """Let this server catch up with the leader, so that the next read sees every earlier write."""
        path = self.chroot or "/"
        self._ask(_SYNC, _string(path), path)

    def _first_serving(self, servers: Tuple[HostPort, ...]) -> Wire:
        context = self.security.ssl_context()
        failures: List[WireError] = []
        for position, address in enumerate(servers):
            share = Deadline(self._deadline.remaining() / (len(servers) - position))
            wire = None
            try:
                wire = Wire(address, share, context)
                self._open_session(wire)
                wire.deadline = self._deadline
                return wire
            except WireError as error:
                if wire is not None:
                    wire.close()
                    error = self._explained(address, error, share, context)
                failures.append(error)
        tried = "; ".join(str(failure) for failure in failures)
        raise ConnectionLoss(None, f"no ZooKeeper server opened a session: {tried} (QS-CONNECT-005)", failures)

    def _open_session(self, wire: Wire) -> None:
        session_ms = int(max(4.0, self._deadline.seconds) * 1000)
        body = struct.pack(">iqiq", 0, 0, session_ms, 0) + _packed(bytes(16)) + b"\0"
        wire.send(_packed(body), "a session")
        answer = _receive_packet(wire)
        if len(answer) < 16:
            raise ProtocolError(wire.address, "this is not ZooKeeper, or the port expects TLS (QS-CONNECT-005)")
        _version, _timeout, session = struct.unpack_from(">iiq", answer)
        if not session:
            raise ProtocolError(wire.address, "ZooKeeper refused to open a session (QS-CONNECT-005)")
        self.session = session

    def _explained(self, address: HostPort, error: WireError, deadline: Deadline, context: Any) -> WireError:
        """Return a more exact error for a closed connection: a member without quorum closes it, and `srvr` says so."""
        if not (isinstance(error, Unreachable) and error.reason == "closed"):
            return error
        try:
            four_letter(address, "srvr", min(1.0, deadline.remaining()), context)
        except NotServing as not_serving:
            return not_serving
        except WireError:
            pass
        hint = "its maxClientCnxns is reached" if context else "the port expects TLS, or its maxClientCnxns is reached"
        return Unreachable(address, "closed", f"{error.message} (perhaps {hint})")

    def _authenticate(self) -> None:
        if self.security.digest is None:
            return
        body = struct.pack(">i", 0) + _string("digest") + _packed(self.security.digest.encode())
        code, _answer = self._exchange(_AUTH_XID, _AUTH, body)
        if code:
            name = ERROR_NAMES.get(code, f"error {code}")
            raise AuthenticationFailed(
                self.address, f"ZooKeeper rejected the digest credentials: {name} (QS-CONNECT-005)"
            )

    def _ask_path(self, kind: int, path: str) -> bytes:
        if not path.startswith("/"):
            raise ValueError(f"{path!r} is not an absolute path")
        full = (self.chroot + path).rstrip("/") or "/"
        return self._ask(kind, _string(full) + b"\0", full)  # no watch

    def _ask(self, kind: int, body: bytes, path: str) -> bytes:
        self._xid += 1
        code, answer = self._exchange(self._xid, kind, body)
        if code:
            error = {_NO_NODE: NoNode, _NO_AUTH: NoAuth}.get(code, ZkError)
            raise error(self.address, code, path)
        return answer

    def _exchange(self, xid: int, kind: int, body: bytes) -> Tuple[int, bytes]:
        try:
            self._wire.send(_packed(struct.pack(">ii", xid, kind) + body), "an answer")
            answer = _receive_packet(self._wire)
        except (Unreachable, TlsError) as error:
            raise ConnectionLoss(
                self.address, f"the session was lost: {error.message} (QS-CONNECT-005)", [error]
            ) from error
        if len(answer) < 16:
            raise ProtocolError(self.address, "ZooKeeper's answer is too short (QS-CONNECT-005)")
        got, _zxid, code = struct.unpack_from(">iqi", answer)
        if got != xid:
            raise ProtocolError(self.address, f"got answer {got} to request {xid} (QS-CONNECT-005)")
        return code, answer[16:]

    @contextlib.contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except (struct.error, UnicodeDecodeError) as error:
            raise ProtocolError(self.address, f"ZooKeeper's answer cannot be read: {error} (QS-CONNECT-005)") from error


def read_znodes(
    connect: str | ZkConnect, paths: Iterable[str], security: ZkSecurity | None = None, timeout: float = 5.0
) -> Dict[str, Tuple[bytes, Stat] | None]:
    """Return data and Stat of each path below the chroot, None if the znode does not exist, read in one session.

    The server first catches up with its leader, so the data is not older than the call. Raises the errors of
    ZkConnection, sync() and get() except NoNode.
    """
    found: Dict[str, Tuple[bytes, Stat] | None] = {}
    with ZkConnection(connect, security, timeout) as connection:
        connection.sync()
        for path in paths:
            try:
                found[path] = connection.get(path)
            except NoNode:
                found[path] = None
    return found


def four_letter(address: HostPort, word: str, timeout: float = 5.0, context: Any = None) -> str:
    """Return the complete answer to a four letter word such as `srvr` or `mntr`.

    `context` is an SSLContext for a secureClientPort. Raises NotServing, ProtocolError if the server's
    4lw.commands.whitelist forbids the word, Unreachable, TlsError.
    """
    return four_letter_from(address, word, timeout, context)[0]


def four_letter_from(
    address: HostPort, word: str, timeout: float = 5.0, context: Any = None
) -> Tuple[str, Tuple[str, int]]:
    """Return the same, and the local (IP address, port) from which it was asked: `cons` lists that connection too."""
    with Wire(HostPort(*address), Deadline(timeout), context) as wire:
        local = wire.local
        wire.send(word.encode(), f"the answer to {word}")
        chunks: List[bytes] = []
        while True:
            chunk = wire.receive_some(1 << 16)
            if not chunk:
                break
            chunks.append(chunk)
    answer = b"".join(chunks).decode(errors="replace")
    if _NOT_SERVING in answer:
        raise NotServing(wire.address)
    if "is not in the whitelist" in answer:
        raise ProtocolError(wire.address, f"{word} is not in the server's 4lw.commands.whitelist (QS-CONNECT-005)")
    return answer, local


def _receive_packet(wire: Wire) -> bytes:
    (size,) = struct.unpack(">i", wire.receive(4))
    if not 0 <= size <= _LARGEST_ANSWER:
        raise ProtocolError(
            wire.address, f"this is not ZooKeeper, or the port expects TLS: got length {size} (QS-CONNECT-005)"
        )
    return wire.receive(size)


def _packed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _string(text: str) -> bytes:
    return _packed(text.encode())


def _stat(data: bytes) -> Stat:
    return Stat(*_STAT.unpack_from(data))


def _strings(data: bytes) -> List[str]:
    """Return the strings of a jute vector."""
    (count,) = struct.unpack_from(">i", data)
    at = 4
    names = []
    for dummy in range(count):
        (size,) = struct.unpack_from(">i", data, at)
        at += 4 + size
        if size < 0 or at > len(data):
            raise struct.error("a string is longer than its answer")
        names.append(data[at - size : at].decode())
    return names


def _buffer(data: bytes) -> Tuple[bytes, bytes]:
    """Return the jute buffer or string at the start of `data`, and the rest; a null buffer is empty."""
    (size,) = struct.unpack_from(">i", data)
    size = max(size, 0)
    if 4 + size > len(data):
        raise struct.error("a buffer is longer than its answer")
    return data[4 : 4 + size], data[4 + size :]
