# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts of a cluster of Kafka 3.9.2 in KRaft mode in which an audit finds nothing. Tests change one of them."""

from __future__ import annotations

import copy
from typing import Any

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.audit.audit_facts import Facts

DAY_S = 86400.0


def situation(**changes: Any) -> Facts:
    """Return the facts with other fields; of `dynamic`, with these configs beside those of the brokers."""
    nodes = {
        **{f"b{number}": _node("broker", number, {"log.segment.bytes": "1073741824"}) for number in (1, 2, 3)},
        "c1": _node("controller", 101, {"process.roles": "controller"}),
    }
    features = {
        "mode": "kraft",
        "finalized": {"metadata.version": 21},
        "nodes": {},
        "static_voters": True,
    }
    return Facts(
        nodes,
        {**{f"b{number}": broker_read() for number in (1, 2, 3)}, "c1": node_read("controller")},
        False,
        features,
        {},
        {**{str(number): {} for number in (1, 2, 3)}, **changes.pop("dynamic", {})},
        {},
        "b1:9092",
        DAY_S,
    )._replace(**changes)


def node_read(role: str, **process: Any) -> dict[str, Any]:
    """Return what upgrade_read returns of a node, with other fields of its process."""
    running = {"pid": 7, "java": "17.0.15", "version": "3.9.2", "options": {}, **process}
    log4j = {"path": "/etc/kafka/log4j2.yaml", "version": 2, "appenders": [], "why": ""}
    return {"role": role, "process": running, "log4j": log4j, "mirror_makers": [], "formatted_by_newer": False}


def broker_read(**more: Any) -> dict[str, Any]:
    """Return what upgrade_read returns of a broker that counts requests for two days, with other facts."""
    read = {
        **node_read("broker"),
        "formats": {"read": 2, "partitions": 2, "old": {}, "named": [], "why": ""},
        "addresses": {"9092": {"10.0.0.9": 2}},
        "requests": {"files": [], "first": None, "last": None, "clients": [], "cut": False, "why": ""},
        "metrics": {"deprecated": [], "clients": [], "uptime_s": 2 * DAY_S},
    }
    return {**read, **more}


def with_file(facts: Facts, host: str, **properties: str) -> Facts:
    """Return the facts with other properties of a host; names are written with __ for a dot."""
    nodes = copy.deepcopy(dict(facts.nodes))
    nodes[host]["file"]["properties"].update({name.replace("__", "."): value for name, value in properties.items()})
    return facts._replace(nodes=nodes)


def with_host(facts: Facts, host: str, read: dict[str, Any]) -> Facts:
    """Return the facts with what was read of a host."""
    return facts._replace(hosts={**facts.hosts, host: read})


def _node(role: str, number: int, properties: dict[str, str]) -> dict[str, Any]:
    file = {"path": "/etc/kafka/server.properties", "exists": True, "error": None, "properties": properties}
    log = {"log_end_offset": 9, "brokers": {}, "controllers": {}}
    return {
        "role": role,
        "node_id": number,
        "version": "3.9.2",
        "service": {"active": True},
        "file": file,
        "metadata_log": log if role == "controller" else None,
    }
