# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watch a node from its own host while it starts: its listener, its replica of the metadata log, its log file.

Runs on managed hosts: standard library only; needs no credentials.
"""

from __future__ import annotations

import os
import re
import shlex
from typing import Any, Mapping

from .. import masking, safe_files
from ..addresses import HostPort, parse_listeners
from ..core import kraft_config, node_mode
from ..formats import metadata_summary
from ..security import Security, Tls
from . import kafka_wire, node, own_log, service
from .socket_wire import TlsError, WireError

_PREFERRED = ("PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL", "SSL")
_LOG_LINES = 12
_TIME = re.compile(r"\[\d{4}-\d\d-\d\d [\d:,.]+\] ")
_EVENT = re.compile(r"^(?=\[\d{4}-\d\d-\d\d )", re.MULTILINE)
_ERRORS = (" ERROR ", " FATAL ", "Exception")


def running_mode(values: Mapping[str, str], config_file: str, service_name: str) -> str | None:
    """Return the mode in which the node's own listener answers, None if it does not answer.

    A listener that requires a client certificate does not answer this client. Then return the mode of the file, if the
    service was started after the file was written; the caller checks the registration in that mode too.
    """
    address, protocol = _own_listener(values)
    security = Security()
    if protocol in ("SSL", "SASL_SSL"):
        # A local listener, to which no secret is sent: its certificate need not be verified.
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
    """Return this node's registration in its own replica of the metadata log, {} if there is none.

    Controllers, and brokers in migration or KRaft mode, hold the log, so this needs no connection.
    """
    directory = node.metadata_dir(dict(values))
    if not directory or not os.path.isdir(directory):
        return {}
    try:
        summary = metadata_summary.summarise(directory)
    except (OSError, ValueError):
        return {}  # the log changes while the node starts; the caller polls
    nodes: dict[str, Any] = summary["controllers" if mode.startswith("controller") else "brokers"]
    return nodes.get(str(node_id)) or {}


def may_have_registered(values: Mapping[str, str], since: float) -> bool:
    """Return whether a broker that was started at `since` (epoch s) in migration mode may have registered.

    It recreates its replica of the metadata log before it begins to register (KafkaServer.startup, 3.9).
    """
    directory = node.metadata_dir(dict(values))
    # A file system uses the time of the last tick, up to 10 ms behind.
    return os.path.isdir(directory) and os.path.getmtime(directory) >= since - 0.1


def log_excerpt(path: str, start: int, service_name: str, values: Mapping[str, str]) -> str:
    """Return the last errors, or the last lines, of the node's own log from byte `start` on, with secrets masked.

    `values`: the node's properties, whose secrets the log may repeat.
    """
    try:
        # A log that is shorter than before was rotated.
        with os.fdopen(safe_files.open_regular(path), "r", encoding="utf-8", errors="replace") as stream:
            stream.seek(start if os.fstat(stream.fileno()).st_size >= start else 0)
            text = stream.read()
    except OSError as error:
        return f"Its log could not be read: {error}"
    if not text.strip():
        return f"{path} has no line of this start: see `journalctl -u {shlex.quote(service_name)}`"
    errors = any(map(_is_error, text.split("\n")))
    secrets = masking.known(values)
    once: dict[str, str] = {}  # several loggers repeat the causes of one exception
    for event in reversed(_EVENT.split(text)):
        if len(once) >= _LOG_LINES:
            break
        lines = event.split("\n")
        if errors and not any(map(_is_error, lines)):
            continue
        # Masked as a whole, because a secret may continue over several lines
        for line in reversed(masking.mask(event, secrets).split("\n")):
            if line.strip() and (_is_error(line) or not errors):
                once.setdefault(without_times(line.rstrip()), line.rstrip())
    return "\n".join([f"{path} says:", *reversed(list(once.values())[:_LOG_LINES])])


def _is_error(line: str) -> bool:
    return any(mark in line for mark in _ERRORS) and own_log.NOISE not in line


def without_times(text: str) -> str:
    """Return a log's text without timestamps, for comparison."""
    return _TIME.sub("", text)


def _own_listener(values: Mapping[str, str]) -> tuple[HostPort, str]:
    listeners = parse_listeners(values.get("listeners") or "PLAINTEXT://:9092")
    protocols = kraft_config.protocol_map(values)
    # On listeners with SASL Kafka answers ApiVersions before the login and requires no client certificate.
    listener = min(listeners, key=lambda each: _PREFERRED.index(protocols.get(each.name, each.name)))
    host = listener.host if listener.host not in ("", "0.0.0.0", "::") else "localhost"
    return HostPort(host, listener.port), protocols.get(listener.name, listener.name)
