# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whom a host reaches by TCP, and whether it can listen where its controller is to.

Runs on managed hosts: standard library only. Nothing is said on a connection, and no port is listened on.
"""

from __future__ import annotations

import errno
import glob
import ipaddress
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Iterable, Mapping

from ..addresses import parse_host_port
from .socket_wire import Deadline, Unreachable, Wire

_AT_ONCE = 64
_LISTEN = "0A"  # TCP_LISTEN in /proc/net/tcp


def dial(targets: Iterable[Mapping[str, str]], timeout: float) -> list[dict]:
    """Connect to each target {kind, to, address} within `timeout` seconds; return those that did not answer, with
    `reason` (socket_wire.Unreachable's) and `error` added."""
    targets = list(targets)
    with ThreadPoolExecutor(max_workers=min(_AT_ONCE, len(targets)) or 1) as pool:
        outcomes = list(pool.map(lambda target: _connect(target["address"], timeout), targets))
    return [
        {**target, "reason": outcome.reason, "error": outcome.message}
        for target, outcome in zip(targets, outcomes)
        if outcome
    ]


def _connect(address: str, timeout: float) -> Unreachable | None:
    try:
        Wire(parse_host_port(address), Deadline(timeout)).close()
    except Unreachable as error:
        return error
    return None


def port(address: str) -> dict:
    """Return {address, resolved, loopback, error, holder} of `host:port` on this host, bound as Kafka binds it and let
    go at once. `error`: None when it is free, else `taken`, `foreign` (no address of this host) or what the system
    says; `holder`: who listens there, as far as this user may see."""
    host, number = parse_host_port(address)
    reported: dict = {"address": address, "resolved": None, "loopback": False, "error": None, "holder": None}
    try:
        found = socket.getaddrinfo(host, number, type=socket.SOCK_STREAM)
        # Java prefers IPv4 (java.net.preferIPv6Addresses)
        family, kind, protocol, _name, where = min(found, key=lambda one: one[0] != socket.AF_INET)
        reported["resolved"] = where[0]
        reported["loopback"] = ipaddress.ip_address(where[0].partition("%")[0]).is_loopback
        with socket.socket(family, kind, protocol) as listener:
            # As Java's server sockets on Linux: connections that are just ending do not count as listeners.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(where)
    except OSError as error:
        reported["error"] = {errno.EADDRINUSE: "taken", errno.EADDRNOTAVAIL: "foreign"}.get(
            error.errno, error.strerror or str(error)
        )
    if reported["error"] == "taken":
        reported["holder"] = _holder(number)
    return reported


def _holder(number: int) -> str | None:
    """Return `name (pid N)` of a process that listens on a port, None when it cannot be seen."""
    sockets = {f"socket:[{inode}]" for table in ("tcp", "tcp6") for inode in _listening(f"/proc/net/{table}", number)}
    for path in glob.iglob("/proc/[0-9]*/fd/*"):
        try:
            if os.readlink(path) in sockets:
                pid = path.split("/")[2]
                with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as stream:
                    return f"{stream.read().strip()} (pid {pid})"
        except OSError:
            continue  # gone meanwhile, or another user's
    return None


def _listening(table: str, number: int) -> list[str]:
    """Return the inodes of the sockets that listen on a port, by /proc/net/tcp or tcp6 (proc(5))."""
    try:
        with open(table, encoding="ascii") as stream:
            rows = [line.split() for line in stream][1:]
    except OSError:
        return []
    return [row[9] for row in rows if row[3] == _LISTEN and int(row[1].rpartition(":")[2], 16) == number]
