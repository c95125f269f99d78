# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The established TCP connections of this host, from /proc/net/tcp and tcp6, with the process of each.

Source: proc(5). Addresses there are words in the machine's byte order. Standard library only; read-only.
"""

from __future__ import annotations

import glob
import os
import re
import socket
import struct
from typing import Dict, Iterable, Iterator, List, NamedTuple, Set, Tuple

_ESTABLISHED, _LISTEN = "01", "0A"
_SOCKET = re.compile(r"socket:\[(\d+)\]")
_MAPPED = "::ffff:"
Address = Tuple[str, int]


class Connection(NamedTuple):
    """An established connection. `uid`: of the user that made it; `pids`: of the processes that have it open, as far as
    they can be read: a container's root may not read those of other users."""

    remote: Address
    uid: int
    pids: Tuple[int, ...]

    def may_be_of(self, pid: int) -> bool:
        """Return whether a process has it open, or may have: its user made it, and no process of it is known."""
        try:
            return pid in self.pids or (not self.pids and os.stat(f"/proc/{pid}").st_uid == self.uid)
        except OSError:  # the process has ended
            return False


def find_connections(addresses: Iterable[Address]) -> List[Connection]:
    """Return this host's connections to any of these (IP address, port)."""
    wanted = set(addresses)
    found = [connection for connection in _list_established() if connection[0] in wanted]
    owners = _owners({inode for _remote, _uid, inode in found})
    return [Connection(remote, uid, tuple(sorted(owners.get(inode, ())))) for remote, uid, inode in found]


def find_connected(ports: Iterable[int]) -> Set[str]:
    """Return the IP addresses with an established connection to one of these ports of this host."""
    wanted = set(ports)
    return {remote[0] for local, remote in _list_ends(_ESTABLISHED) if local[1] in wanted}


def count_peers(ports: Iterable[int]) -> Dict[int, Dict[str, int]]:
    """Return {port of this host: {IP address: its established connections}} of these ports, those with connections."""
    wanted = set(ports)
    found: Dict[int, Dict[str, int]] = {}
    for local, remote in _list_ends(_ESTABLISHED):
        if local[1] in wanted:
            peers = found.setdefault(local[1], {})
            peers[remote[0]] = peers.get(remote[0], 0) + 1
    return found


def is_listening(ports: Iterable[int]) -> bool:
    """Return whether a process of this host listens on one of these ports."""
    wanted = set(ports)
    return any(local[1] in wanted for local, _remote in _list_ends(_LISTEN))


def resolve(host: str, port: int) -> List[Address]:
    """Return the (IP address, port) of a host in both families. Raises OSError."""
    answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys((str(answer[4][0]), port) for answer in answers))


def _list_established() -> Iterator[Tuple[Address, int, str]]:
    for fields, family in _list_rows(_ESTABLISHED):
        yield _address(fields[2], family), int(fields[7]), fields[9]


def _list_ends(state: str) -> Iterator[Tuple[Address, Address]]:
    """Yield (local, remote) of the connections in a state."""
    for fields, family in _list_rows(state):
        yield _address(fields[1], family), _address(fields[2], family)


def _list_rows(state: str) -> Iterator[Tuple[List[str], int]]:
    for path, family in (("/proc/net/tcp", socket.AF_INET), ("/proc/net/tcp6", socket.AF_INET6)):
        try:
            with open(path, encoding="ascii") as lines:
                next(lines, None)
                for line in lines:
                    fields = line.split()
                    if fields[3] == state:
                        yield fields, family
        except FileNotFoundError:  # a kernel without IPv6
            continue


def _address(text: str, family: int) -> Address:
    words, port = text.split(":")
    raw = b"".join(struct.pack("=I", int(words[at : at + 8], 16)) for at in range(0, len(words), 8))
    address = socket.inet_ntop(family, raw)
    return (address[len(_MAPPED) :] if address.startswith(_MAPPED) and "." in address else address), int(port, 16)


def _owners(inodes: Set[str]) -> Dict[str, Set[int]]:
    owners: Dict[str, Set[int]] = {}
    for path in glob.iglob("/proc/[0-9]*/fd/*") if inodes else ():
        try:
            match = _SOCKET.match(os.readlink(path))
        except OSError:  # the process ended, or the file was closed
            continue
        if match and match[1] in inodes:
            owners.setdefault(match[1], set()).add(int(path.split("/")[2]))
    return owners
