# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node seen from its own host while it starts: its listener, its replica of the metadata log, its log file.

Runs on managed hosts: standard library only, no credentials needed.
"""

from __future__ import annotations

import os
import re
from typing import Mapping

from ..addresses import HostPort, parse_listeners
from ..core import kraft_config, node_mode
from ..formats import metadata_summary
from ..security import Security, Tls
from . import kafka_wire, node, service
from .socket_wire import TlsError, WireError

_ASKABLE = ("PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL", "SSL")
_LOG_LINES = 12
_TIME = re.compile(r"\[\d{4}-\d\d-\d\d [\d:,.]+\] ")
_TELLING = (" ERROR ", " FATAL ", "Exception")
_NOISE = "(state.change.logger)"  # what any start says as ERROR of partitions whose leader is elsewhere or down


def running_mode(values: Mapping[str, str], config_file: str, service_name: str) -> str | None:
    """Return the mode that the node's own listener shows, None when it does not answer.

    A listener that wants a client certificate shows nothing to us. Then the mode is that of the file, if the service
    was started after the file was written; that it is registered in that mode is asked for beside this.
    """
    address, protocol = _own_listener(values)
    security = Security()
    if protocol in ("SSL", "SASL_SSL"):
        # The node's own listener on its own host, and nothing secret is said: who answers need not be proven.
        security = Security(protocol="SSL", tls=Tls(verify=False, check_hostname=False))
    try:
        answer = kafka_wire.api_versions(address, security, timeout=2)
    except TlsError:
        started = service.state(service_name).get("started_at") or 0
        return kraft_config.mode_at_next_start(values) if started > os.path.getmtime(config_file) else None
    except WireError:
        return None
    return node_mode.node_mode(answer.api_keys, answer.zk_migration_ready)


def registration(values: Mapping[str, str], node_id: int, mode: str) -> dict:
    """Return this node's registration as its own replica of the metadata log holds it ({} when there is none).

    Controllers, and brokers in migration and in KRaft mode, hold the log, so this needs no connection.
    """
    directory = node.metadata_dir(dict(values))
    if not directory or not os.path.isdir(directory):
        return {}
    try:
        summary = metadata_summary.summarise(directory)
    except (OSError, ValueError):
        return {}  # the log moves while the node starts; the caller polls
    nodes = summary["controllers" if mode.startswith("controller") else "brokers"]
    return nodes.get(str(node_id)) or {}


def may_have_registered(values: Mapping[str, str], since: float) -> bool:
    """Say whether a broker that was started at `since` (epoch s) in migration mode got as far as its registration.

    It makes its replica of the metadata log anew before it begins to register (KafkaServer.startup, 3.9).
    """
    directory = node.metadata_dir(dict(values))
    # A file system's clock is that of the last tick, up to 10 ms behind.
    return os.path.isdir(directory) and os.path.getmtime(directory) >= since - 0.1


def log_excerpt(path: str, start: int, service_name: str) -> str:
    """Return what the node's own log says since byte `start`: its last errors, or its last lines."""
    try:
        # A log that is shorter than it was has been rotated.
        start = start if os.path.getsize(path) >= start else 0
        with open(path, encoding="utf-8", errors="replace") as stream:
            stream.seek(start)
            lines = [line.rstrip() for line in stream if line.strip()]
    except OSError as error:
        return f"Its log could not be read: {error}"
    if not lines:
        return f"{path} says nothing of this start; look at `journalctl -u {service_name}`"
    telling = [line for line in lines if any(token in line for token in _TELLING) and _NOISE not in line]
    once: dict[str, str] = {}  # an exception's causes stand there anew for each that logs them
    for line in reversed(telling or lines):
        once.setdefault(without_times(line), line)
    return "\n".join([f"{path} says:", *reversed(list(once.values())[:_LOG_LINES])])


def without_times(text: str) -> str:
    """Return what a log says without when it said it, to be compared."""
    return _TIME.sub("", text)


def _own_listener(values: Mapping[str, str]) -> tuple[HostPort, str]:
    listeners = parse_listeners(values.get("listeners") or "PLAINTEXT://:9092")
    protocols = kraft_config.protocol_map(values)
    # A plain one first, then one with SASL: Kafka answers ApiVersions before login there, and wants no certificate.
    listener = min(listeners, key=lambda one: _ASKABLE.index(protocols.get(one.name, one.name)))
    host = listener.host if listener.host not in ("", "0.0.0.0", "::") else "localhost"
    return HostPort(host, listener.port), protocols.get(listener.name, listener.name)
