# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TCP and TLS connections with a deadline, for probes that implement a server's protocol themselves."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from typing import Any, List

from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort


class WireError(Exception):
    """A probe got no answer. `address` is the server's HostPort; str() names it."""

    def __init__(self, address: HostPort | None, message: str) -> None:
        super().__init__(f"{address}: {message}" if address else message)
        self.address = address
        self.message = message


class Unreachable(WireError):
    """The connection failed. `reason`: `dns`, `refused`, `timeout`, `closed` (by the server) or `network`."""

    def __init__(self, address: HostPort | None, reason: str, message: str) -> None:
        super().__init__(address, message)
        self.reason = reason


class TlsError(WireError):
    """The TLS handshake failed, or one side did not accept the other's certificate."""


class AuthenticationFailed(WireError):
    """The server rejected the credentials, or does not offer the SASL mechanism."""


class ProtocolError(WireError):
    """The server's answer violates the protocol."""


class Deadline:
    """A time on the monotonic clock that all steps of one call share."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def remaining(self) -> float:
        """Return the seconds left, never negative."""
        return max(0.0, self._end - time.monotonic())


class Wire:
    """One TCP or TLS connection, each call of which ends by the deadline. A context manager; close() is idempotent.

    Raises Unreachable and TlsError. If a name has several addresses, each is tried with its share of the time.
    """

    def __init__(self, address: HostPort, deadline: Deadline, context: ssl.SSLContext | None = None) -> None:
        self.address = address
        self.deadline = deadline
        self._waiting_for = "a TCP connection"
        self._socket = self._connect(_resolve(address, deadline))
        if context is not None:
            try:
                self._socket = self._wrap(context)
            except BaseException:
                self.close()
                raise

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    @property
    def local(self) -> tuple[str, int]:
        """The IP address and port of this end."""
        return self._socket.getsockname()[:2]

    def close(self) -> None:
        """Close the connection without waiting for the server."""
        with contextlib.suppress(OSError):
            self._socket.close()

    def send(self, data: bytes, waiting_for: str) -> None:
        """Send all of `data`; `waiting_for` names the expected answer in a timeout's message."""
        self._waiting_for = waiting_for
        with self._errors_named():
            self._socket.settimeout(self._time_left())
            # The server may have sent a TLS alert with the reason before it closed: receive() reports it.
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                self._socket.sendall(data)

    def receive(self, size: int) -> bytes:
        """Return exactly `size` bytes. Raises Unreachable with reason `closed` if the server closes earlier."""
        chunks: List[bytes] = []
        while size:
            chunk = self.receive_some(min(size, 1 << 16))
            if not chunk:
                raise Unreachable(
                    self.address,
                    "closed",
                    f"the server closed the connection instead of sending {self._waiting_for} (QS-CONNECT-003)",
                )
            chunks.append(chunk)
            size -= len(chunk)
        return b"".join(chunks)

    def receive_some(self, size: int) -> bytes:
        """Return up to `size` bytes, empty at the end of the stream."""
        with self._errors_named():
            self._socket.settimeout(self._time_left())
            return self._socket.recv(size)

    def _connect(self, candidates: List[Any]) -> socket.socket:
        failure: Unreachable | None = None
        for position, (family, kind, protocol, _name, where) in enumerate(candidates):
            sock = socket.socket(family, kind, protocol)
            try:
                sock.settimeout(max(self._time_left() / (len(candidates) - position), 0.001))
                sock.connect(where)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return sock
            except OSError as error:
                sock.close()
                failure = self._unreachable(error)
        raise failure or Unreachable(self.address, "dns", "the name has no address")

    def _wrap(self, context: ssl.SSLContext) -> ssl.SSLSocket:
        self._waiting_for = "a TLS handshake"
        with self._errors_named():
            self._socket.settimeout(self._time_left())
            return context.wrap_socket(self._socket, server_hostname=self.address.host)

    def _time_left(self) -> float:
        left = self.deadline.remaining()
        if not left:
            raise self._timeout()
        return left

    def _timeout(self) -> Unreachable:
        message = f"timed out after {self.deadline.seconds:g} s waiting for {self._waiting_for} (QS-CONNECT-003)"
        return Unreachable(self.address, "timeout", message)

    def _unreachable(self, error: OSError) -> Unreachable:
        if isinstance(error, socket.timeout):
            return self._timeout()
        if isinstance(error, ConnectionRefusedError):
            return Unreachable(self.address, "refused", "connection refused: nothing listens there (QS-CONNECT-003)")
        if isinstance(error, (ConnectionResetError, BrokenPipeError)):
            message = f"the server reset the connection instead of sending {self._waiting_for} (QS-CONNECT-003)"
            return Unreachable(self.address, "closed", message)
        return Unreachable(self.address, "network", error.strerror or str(error))

    @contextlib.contextmanager
    def _errors_named(self) -> Any:
        try:
            yield
        except ssl.SSLError as error:
            if isinstance(error, socket.timeout) or "timed out" in str(error):
                raise self._timeout() from error
            raise TlsError(self.address, explain_tls(error)) from error
        except OSError as error:
            raise self._unreachable(error) from error


_TLS_MEANINGS = (
    ("CERTIFICATE_REQUIRED", "the server requires a client certificate and none was sent (certfile, keyfile)"),
    ("CERTIFICATE_VERIFY_FAILED", "the server's certificate is not valid: {verify}"),
    ("ALERT_BAD_CERTIFICATE", "the server did not accept the client certificate, or requires one and none was sent"),
    ("ALERT_UNKNOWN_CA", "the server does not trust the CA of the client certificate"),
    ("ALERT_CERTIFICATE_UNKNOWN", "the server did not accept the client certificate"),
    ("ALERT_CERTIFICATE_EXPIRED", "the client certificate has expired"),
    ("ALERT_HANDSHAKE_FAILURE", "no common cipher, or the server requires a client certificate and none was sent"),
    ("ALERT_PROTOCOL_VERSION", "no common TLS version"),
    ("UNSUPPORTED_PROTOCOL", "no common TLS version"),
    ("WRONG_VERSION_NUMBER", "the listener does not use TLS"),
    ("RECORD_LAYER_FAILURE", "the listener does not use TLS"),
    ("UNEXPECTED_EOF", "the server ended the TLS handshake without a reason: it may not use TLS"),
)


def explain_tls(error: ssl.SSLError) -> str:
    """Return what an SSLError means to an operator, followed by OpenSSL's own term."""
    shown = getattr(error, "reason", None) or str(error)
    reason = shown.upper().replace(" ", "_")
    if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        reason = "UNEXPECTED_EOF"
    for token, meaning in _TLS_MEANINGS:
        if token in reason:
            verify = getattr(error, "verify_message", "") or "it cannot be verified"
            return f"{meaning.format(verify=verify)} [{shown}]"
    return f"TLS failed [{shown}]"


def _resolve(address: HostPort, deadline: Deadline) -> List[Any]:
    found: List[Any] = []
    failure: List[OSError] = []

    def look_up(flags: int = 0) -> None:
        try:
            found.extend(socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=flags))
        except OSError as error:
            failure.append(error)
        except UnicodeError:
            failure.append(OSError("not a host name"))

    look_up(socket.AI_NUMERICHOST)
    if found:
        return found
    failure.clear()
    # getaddrinfo has no timeout, so a resolver that does not answer is left in its thread.
    worker = threading.Thread(target=look_up, daemon=True)
    worker.start()
    worker.join(deadline.remaining())
    if worker.is_alive():
        raise Unreachable(address, "dns", f"the name was not resolved within {deadline.seconds:g} s (QS-CONNECT-003)")
    if failure:
        raise Unreachable(
            address, "dns", f"the name cannot be resolved: {failure[0].strerror or failure[0]} (QS-CONNECT-003)"
        )
    return list(found)
