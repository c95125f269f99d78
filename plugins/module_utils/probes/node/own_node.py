# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watch a node from its own host while it starts: its listener, its replica of the metadata log, its log file.

Runs on managed hosts: standard library only; needs no credentials.
"""

from __future__ import annotations

import os
from typing import Any, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config, node_mode
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import MetadataLog
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import metadata_summary
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.records.record_batch import LogError
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import service
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import node
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security, Tls
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort, is_wildcard
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import kafka_wire
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import TlsError, WireError

_PREFERRED = ("PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL", "SSL")


def read_running_mode(values: Mapping[str, str], config_file: str, service_name: str) -> str | None:
    """Return the mode in which the node's own listener answers, None if it does not answer.

    A listener that requires a client certificate does not answer this client. Then return the mode of the file, if the
    service was started after the file was written; the caller checks the registration in that mode too.
    """
    try:
        answer = _answer(values)
    except TlsError:
        started = service.read_state(service_name).get("started_at") or 0
        return kraft_config.mode_at_next_start(values) if started > os.path.getmtime(config_file) else None
    except WireError:
        return None
    return node_mode.node_mode(answer.api_keys, answer.zk_migration_ready)


def read_registration(values: Mapping[str, str], node_id: int, mode: str) -> dict:
    """Return this node's registration in its own replica of the metadata log, {} if there is none.

    Controllers, and brokers in migration or KRaft mode, hold the log, so this needs no connection.
    """
    summary = read_own_log(values)
    if not summary:
        return {}
    nodes: dict[str, Any] = summary["controllers" if mode.startswith("controller") else "brokers"]
    return nodes.get(str(node_id)) or {}


def read_own_log(values: Mapping[str, str]) -> MetadataLog | None:
    """Return the summary of this node's own replica of the metadata log, None if there is none, or while it cannot be
    read: it changes while the node starts, and the caller polls."""
    directory = node.metadata_dir(dict(values))
    if not directory or not os.path.isdir(directory):
        return None
    try:
        return metadata_summary.summarise(directory)
    except (OSError, ValueError, LogError):
        return None


def read_log_end(values: Mapping[str, str], mode: str) -> int | None:
    """Return where a controller's own metadata log ends; None for a broker, and where it cannot be read."""
    log = read_own_log(values) if mode.startswith("controller") else None
    return log["log_end_offset"] if log else None


def controllers_register(log: MetadataLog | None) -> bool:
    """Return whether controllers register in the quorum of this metadata log: from metadata.version 3.7-IV0 on. A log
    without a metadata.version has not been read yet, or is of a quorum that is formatted now."""
    level = (log or {}).get("metadata_version")
    return level is None or level >= kafka_wire.CONTROLLERS_REGISTER


def is_following(values: Mapping[str, str], log: MetadataLog, ended: int | None) -> bool:
    """Return whether a controller that was started takes part in the quorum.

    Its ApiVersions name the finalized features once it has loaded the metadata up to the high watermark, which it has
    from a leader's answer to its fetch, or from its own leadership. Or its log has grown past `ended`, where it ended
    before: a leader writes a record each half second. Controllers of old releases name no features, and those that
    require a client certificate do not answer.
    """
    return (ended is not None and log["log_end_offset"] > ended) or names_features(values)


def names_features(values: Mapping[str, str]) -> bool:
    """Return whether the node's own listener names finalized features, which it has from the metadata log."""
    try:
        return _answer(values).finalized_features_epoch >= 0
    except WireError:
        return False


def _answer(values: Mapping[str, str]) -> kafka_wire.ApiVersions:
    """Return what the node's own listener answers. Raises WireError."""
    address, protocol = _own_listener(values)
    security = Security()
    if protocol in ("SSL", "SASL_SSL"):
        # A local listener, to which no secret is sent: its certificate need not be verified.
        security = Security(protocol="SSL", tls=Tls(verify=False, check_hostname=False))
    return kafka_wire.api_versions(address, security, timeout=2)


def may_have_registered(values: Mapping[str, str], since: float) -> bool:
    """Return whether a broker that was started at `since` (epoch s) in migration mode may have registered.

    It recreates its replica of the metadata log before it begins to register (KafkaServer.startup, 3.9).
    """
    directory = node.metadata_dir(dict(values))
    # A file system uses the time of the last tick, up to 10 ms behind.
    return os.path.isdir(directory) and os.path.getmtime(directory) >= since - 0.1


def _own_listener(values: Mapping[str, str]) -> tuple[HostPort, str]:
    listeners = kraft_config.listeners(values)
    protocols = kraft_config.protocol_map(values)
    # On listeners with SASL Kafka answers ApiVersions before the login and requires no client certificate.
    listener = min(listeners, key=lambda each: _PREFERRED.index(protocols.get(each.name, each.name)))
    host = "localhost" if is_wildcard(listener.host) else listener.host
    return HostPort(host, listener.port), protocols.get(listener.name, listener.name)
