# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the status of each server of a ZooKeeper ensemble (the four letter word `srvr`, class FourLetterCommands)."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Iterable

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import zk_sessions
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import ZkSecurity
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort, ZkConnect
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import zk_wire
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import ProtocolError, WireError

_VERSION = re.compile(r"Zookeeper version: (\d+)\.(\d+)\.(\d+)")
_LATENCY = re.compile(r"^Latency min/avg/max: [\d.]+/([\d.]+)/(\d+)", re.MULTILINE)
_ZXID = re.compile(r"^Zxid: 0x([0-9a-f]+)", re.MULTILINE)
_MODE = re.compile(r"^Mode: (\w+)", re.MULTILINE)


def collect(servers: Iterable[HostPort], context: Any, timeout: float) -> dict[str, dict]:
    """Return {"host:port": {version ([int, int, int] or None), mode, latency_ms ([average, maximum] since its start, or
    None), zxid (the last that it processed), error}} of all servers, read in parallel.

    `context`: an SSLContext, or None for plain ports; `timeout` in seconds for each. A server that forbids the word
    runs, and all its values are None.
    """
    targets = list(servers)
    with ThreadPoolExecutor(max_workers=min(16, len(targets) or 1)) as pool:
        statuses = pool.map(lambda server: _status(server, context, timeout), targets)
        return dict(zip(map(str, targets), statuses))


def collect_creators(servers: Iterable[HostPort], security: ZkSecurity | None, timeout: float) -> dict[str, int | None]:
    """Return {"host:port": the server's id, None where it gives no session}: it is in each session's id that the server
    makes."""
    targets = list(servers)

    def creator(server: HostPort) -> int | None:
        try:
            with zk_wire.ZkConnection(ZkConnect((server,), ""), security, timeout) as client:
                return zk_sessions.creator_id(client.session)
        except WireError:
            return None

    with ThreadPoolExecutor(max_workers=min(16, len(targets) or 1)) as pool:
        return dict(zip(map(str, targets), pool.map(creator, targets)))


def parse_mode(answer: str) -> tuple[str | None, int | None]:
    """Return mode and last zxid of a server in its answer to `srvr`, None for what is missing."""
    mode, zxid = _MODE.search(answer), _ZXID.search(answer)
    return mode[1] if mode else None, int(zxid[1], 16) if zxid else None


def _status(server: HostPort, context: Any, timeout: float) -> dict:
    status: dict = {"version": None, "mode": None, "latency_ms": None, "zxid": None, "error": None}
    try:
        answer = zk_wire.four_letter(server, "srvr", timeout, context)
    except ProtocolError:
        return status
    except WireError as error:
        return {**status, "error": str(error)}
    version, latency = _VERSION.search(answer), _LATENCY.search(answer)
    mode, zxid = parse_mode(answer)
    return {
        **status,
        "version": [int(number) for number in version.groups()] if version else None,
        "mode": mode,
        "zxid": zxid,
        "latency_ms": [float(number) for number in latency.groups()] if latency else None,
    }
