# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy in front of one real broker or controller, which loses what a test wants to be lost on its way.

with proxy(server.address) as between:
    between.on_update = lambda validates: FORWARD if validates else LOSE_ANSWER
    ... clients connect to between.address ...
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from typing import Callable, Iterator, List

from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort

FORWARD, LOSE_REQUEST, LOSE_ANSWER = "forward", "lose the request", "lose the answer"
_UPDATE_FEATURES = 57


class Proxy:
    """`on_update`: returns for an UpdateFeatures request what becomes of it; it gets whether the request validates
    only. `seen`: what became of each of them, in their order."""

    def __init__(self, target: HostPort, port: int) -> None:
        self.on_update: Callable[[bool], str] = lambda _validates: FORWARD
        self.seen: List[str] = []
        self._target = target
        self._listener = socket.create_server((target.host, port))
        self.address = HostPort(target.host, self._listener.getsockname()[1])
        self._sockets = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Close all connections."""
        for sock in self._sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _address = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        """Carry requests to the server and answers back, one after the other, as the collection's client sends them."""
        with contextlib.suppress(OSError, EOFError), client, socket.create_connection(self._target) as server:
            self._sockets += [client, server]
            while True:
                request = _frame(client)
                fate = FORWARD
                if struct.unpack(">h", request[4:6])[0] == _UPDATE_FEATURES:
                    # validateOnly is the last field, before the count of tagged fields
                    fate = self.on_update(bool(request[-2]))
                    self.seen.append(fate)
                if fate == LOSE_REQUEST:
                    return
                server.sendall(request)
                answer = _frame(server)
                if fate == LOSE_ANSWER:
                    return
                client.sendall(answer)


@contextlib.contextmanager
def proxy(target: HostPort, port: int = 0) -> Iterator[Proxy]:
    """Run a proxy in front of a server, at a port of this host."""
    between = Proxy(target, port)
    try:
        yield between
    finally:
        between.close()


def _frame(sock: socket.socket) -> bytes:
    """Return one request or answer with its size. Raises EOFError at the end of the stream."""
    head = _exactly(sock, 4)
    return head + _exactly(sock, struct.unpack(">i", head)[0])


def _exactly(sock: socket.socket, size: int) -> bytes:
    chunks = b""
    while len(chunks) < size:
        chunk = sock.recv(size - len(chunks))
        if not chunk:
            raise EOFError
        chunks += chunk
    return chunks
