# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check which addresses a host reaches by TCP, and whether it can bind its controller's port.

Runs on managed hosts: standard library only. It sends nothing on a connection and listens on no port.
"""

from __future__ import annotations

import errno
import glob
import ipaddress
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Iterable, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import parse_host_port
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import Deadline, Unreachable, Wire

_AT_ONCE = 64
_LISTEN = "0A"  # TCP_LISTEN in /proc/net/tcp


def check_connectivity(targets: Iterable[Mapping[str, str]], timeout: float) -> list[dict]:
    """Connect to each target {kind, to, address} within `timeout` seconds; return the unreachable ones with `reason`
    (socket_wire.Unreachable's) and `error` added."""
    targets = list(targets)
    with ThreadPoolExecutor(max_workers=min(_AT_ONCE, len(targets)) or 1) as pool:
        outcomes = list(pool.map(lambda target: _connect(target["address"], timeout), targets))
    return [
        {**target, "reason": outcome.reason, "error": outcome.message}
        for target, outcome in zip(targets, outcomes)
        if outcome
    ]


def find_answering(addresses: Iterable[str], timeout: float) -> list[str]:
    """Return the addresses that accept a connection within `timeout` seconds."""
    targets = [{"address": address} for address in addresses]
    silent = {target["address"] for target in check_connectivity(targets, timeout)}
    return [target["address"] for target in targets if target["address"] not in silent]


def _connect(address: str, timeout: float) -> Unreachable | None:
    try:
        Wire(parse_host_port(address), Deadline(timeout)).close()
    except Unreachable as error:
        return error
    return None


def check_port(address: str) -> dict:
    """Bind `host:port` of this host as Kafka does, release it, and return {address, resolved, loopback, error, holder}.

    `error`: None if it is free, else `taken`, `foreign` (not an address of this host) or the system's message;
    `holder`: the process that listens there, if this user may see it.
    """
    host, number = parse_host_port(address)
    result: dict = {"address": address, "resolved": None, "loopback": False, "error": None, "holder": None}
    try:
        candidates = socket.getaddrinfo(host, number, type=socket.SOCK_STREAM)
        # Java prefers IPv4 (java.net.preferIPv6Addresses)
        family, kind, protocol, _name, where = min(candidates, key=lambda candidate: candidate[0] != socket.AF_INET)
        result["resolved"] = str(where[0])
        result["loopback"] = ipaddress.ip_address(str(where[0]).partition("%")[0]).is_loopback
        with socket.socket(family, kind, protocol) as listener:
            # As Java's server sockets on Linux do, so that closing connections do not block the port.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(where)
    except OSError as error:
        result["error"] = {errno.EADDRINUSE: "taken", errno.EADDRNOTAVAIL: "foreign"}.get(
            error.errno, error.strerror or str(error)
        )
    if result["error"] == "taken":
        result["holder"] = _holder(number)
    return result


def _holder(number: int) -> str | None:
    """Return `name (pid N)` of a process that listens on a port, None if it is not visible."""
    sockets = {f"socket:[{inode}]" for table in ("tcp", "tcp6") for inode in _listening(f"/proc/net/{table}", number)}
    for path in glob.iglob("/proc/[0-9]*/fd/*"):
        try:
            if os.readlink(path) in sockets:
                pid = path.split("/")[2]
                with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as stream:
                    return f"{stream.read().strip()} (pid {pid})"
        except OSError:
            continue  # the process ended meanwhile, or belongs to another user
    return None


def _listening(table: str, number: int) -> list[str]:
    """Return the inodes of the sockets that listen on a port, from /proc/net/tcp or tcp6 (proc(5))."""
    try:
        with open(table, encoding="ascii") as stream:
            rows = [line.split() for line in stream][1:]
    except OSError:
        return []
    return [row[9] for row in rows if row[3] == _LISTEN and int(row[1].rpartition(":")[2], 16) == number]
