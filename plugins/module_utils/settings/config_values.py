# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The values of settings as Kafka and ZooKeeper take them, and Kafka's defaults. Pure.

Source: ConfigDef.parseType, CoreUtils.parseCsvList, KafkaConfig of Kafka 3.9; QuorumPeerConfig.parseProperties. They
trim as String.trim does, which takes other characters for blanks than Python does.
"""

from __future__ import annotations

import re
from typing import Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import harmless_configs
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import (
    AddressError,
    parse_zookeeper_connect,
)

DEFAULTS: Mapping[str, str] = {
    "broker.id.generation.enable": "true",
    "inter.broker.listener.name": "",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
    "listeners": "PLAINTEXT://:9092",
    "log.dir": "/tmp/kafka-logs",
    "node.id": "-1",
    "reserved.broker.max.id": "1000",
    "sasl.enabled.mechanisms": "GSSAPI",
    "sasl.mechanism.inter.broker.protocol": "GSSAPI",
    "security.inter.broker.protocol": "PLAINTEXT",
    "zookeeper.max.in.flight.requests": "10",
    "zookeeper.metadata.migration.enable": "false",
    "zookeeper.session.timeout.ms": "18000",
    "zookeeper.set.acl": "false",
    "zookeeper.ssl.client.enable": "false",
    "zookeeper.ssl.endpoint.identification.algorithm": "HTTPS",
}
"""Kafka's defaults of the settings that this tool evaluates. A setting that is not here has no default."""

_BLANKS = "".join(map(chr, range(0x21)))
_COMMA = re.compile(r"[ \t\n\x0b\f\r]*,[ \t\n\x0b\f\r]*")
_LISTENER = re.compile(r"listener\.name\.[^.]+\.")
_MECHANISM = re.compile(r"(gssapi|plain|scram-sha-256|scram-sha-512|oauthbearer)\.(?=sasl\.)")
# Settings of type STRING that are lists (CoreUtils.parseCsvList, parseCsvMap)
_CSV = {
    "advertised.listeners",
    "controller.listener.names",
    "early.start.listeners",
    "listener.security.protocol.map",
    "listeners",
    "log.dirs",
    "max.connections.per.ip.overrides",
}


def trim(text: str) -> str:
    """Return text without blanks at its ends (java.lang.String.trim)."""
    return text.strip(_BLANKS)


def get(properties: Mapping[str, str], key: str) -> str:
    """Return a setting's value, or its default; '' if it has neither."""
    value = properties.get(key)
    return DEFAULTS.get(key, "") if value is None else trim(str(value))


def is_true(properties: Mapping[str, str], key: str) -> bool:
    """Return whether a boolean setting is on."""
    return get(properties, key).lower() == "true"


def number(properties: Mapping[str, str], key: str) -> int:
    """Return a setting that is a number; its default if its value is none, with which Kafka does not start."""
    text = get(properties, key)
    return int(text if re.fullmatch(r"[+-]?[0-9]+", text) else DEFAULTS[key])


def list_items(properties: Mapping[str, str], key: str) -> list[str]:
    """Return the items of a setting that is a list, without empty ones."""
    return split_items(get(properties, key))


def split_items(text: str) -> list[str]:
    """Return the items of a list, without empty ones."""
    return [item for item in _COMMA.split(trim(text)) if item]


def plain_name(key: str) -> str:
    """Return the name that Kafka defines, of a key with the prefix of a listener, of a mechanism, or of both."""
    return _MECHANISM.sub("", _LISTENER.sub("", key, 1), 1)


def comparable_value(key: str, value: str) -> str:
    """Return a value without what makes no difference to Kafka. Equal results are equal settings.

    The servers of a connect string and the entries of a map have no order. A value that cannot be read is only trimmed.
    """
    name, text = plain_name(key), trim(value)
    kind = harmless_configs.TYPES.get(name, "")
    if name == "zookeeper.connect":
        return _connect(text)
    if name == "super.users":
        return ";".join(sorted(set(principals(text))))
    if name == "allow.everyone.if.no.acl.found" or kind == "BOOLEAN":
        return text.lower() if text.lower() in ("true", "false") else text
    if name in _CSV:
        return ",".join(split_items(text))
    if kind == "LIST":
        return ",".join(_COMMA.split(text))
    if kind in ("SHORT", "INT", "LONG"):
        return str(int(text)) if re.fullmatch("[+-]?[0-9]+", text) else text
    if kind == "DOUBLE":
        return str(float(text)) if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text) else text
    if name == "inter.broker.listener.name":
        return text.upper()  # ListenerName.normalised
    return text


def principals(text: str) -> list[str]:
    """Return the principals in `super.users`, separated by semicolons (AclAuthorizer, StandardAuthorizer)."""
    return [principal for principal in map(trim, text.split(";")) if principal]


def log_dirs(properties: Mapping[str, str]) -> list[str]:
    """Return the log directories of a node, [] without properties (KafkaConfig.logDirs)."""
    if not properties:
        return []
    return (
        split_items(get(properties, "log.dir"))
        if properties.get("log.dirs") is None
        else list_items(properties, "log.dirs")
    )


def metadata_log_dir(properties: Mapping[str, str]) -> str:
    """Return the log directory with the metadata log, '' without properties (KafkaConfig.metadataLogDir)."""
    return get(properties, "metadata.log.dir") or next(iter(log_dirs(properties)), "")


def parse_zoo_cfg(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the content of a zoo.cfg, names and values trimmed as ZooKeeper does."""
    return {trim(key): trim(value) for key, value in properties.items()}


def _connect(text: str) -> str:
    try:
        connect = parse_zookeeper_connect(text)
    except AddressError:
        return text
    return ",".join(sorted(map(str, connect.servers))) + connect.chroot
