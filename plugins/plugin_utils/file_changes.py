# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The changes of a restart to its host's properties file, from the host's facts and the operator's variables."""

from __future__ import annotations

from typing import Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core import kraft_config, releases, transitions, upgrade
from ansible_collections.quorumshift.kafka.plugins.module_utils.seal import seal_properties
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import (
    GROUPS,
    QuorumshiftAction,
    controller_address,
)


def of_restart(action: QuorumshiftAction, kind: str, host: str, values: Mapping[str, str] | None = None) -> dict:
    """Return {node_id, changes} or {node_id, content, format_command} for this host's properties file.

    `values`: the properties before the restart, by default the host's present ones.
    """
    node = action.facts_of(host).get("quorumshift_node") or {}
    if values is None:
        values = (node.get("file") or {}).get("properties") or {}
    if kind == "zk_migration":
        listener = action.variable("quorumshift_controller_listener")
        protocol = action.variable("quorumshift_controller_protocol")
        extra = _own_settings(action, "quorumshift_broker_config", host)
        changes = kraft_config.to_migration_mode(values, node["node_id"], _voters(action), listener, protocol, extra)
        return {"node_id": node["node_id"], "changes": changes}
    if kind == "zk_connect":
        connect = action.variable("zk_migrate_connect")
        return {"node_id": int(action.nodes()[host]["node_id"]), "changes": {"zookeeper.connect": connect}}
    if kind in transitions.RESTARTS:
        return {"node_id": int(action.nodes()[host]["node_id"]), **_of_upgrade(action, kind, host, values)}
    if kind == "hybrid":  # the host reverts the keys from the file that it kept before the restart in KRaft mode
        return {"node_id": node["node_id"], "changes": {}}
    if kind == "zk":
        keys = kraft_config.own_keys_of_migration_mode(action.variable("quorumshift_broker_config", host) or {})
        return {"node_id": node["node_id"], "changes": dict.fromkeys(keys)}
    if kind == "kraft":
        return {"node_id": node["node_id"], "changes": kraft_config.to_kraft_mode(values, node["node_id"])}
    node_id = int(action.variable("quorumshift_node_id", host))
    if kind == "controller_migration":
        return {"node_id": node_id, "changes": {}}
    if kind == "controller_final":
        return {"node_id": node_id, "changes": kraft_config.to_final_controller(values)}
    content = of_controller(action, host)
    storage = f"{action.variable('quorumshift_kafka_home', host)}/bin/kafka-storage.sh"
    config_file = action.variable("quorumshift_controller_config_file", host)
    # With "=", because a cluster id may begin with a dash
    command = [storage, "format", f"--cluster-id={action.session.get('cluster_id')}", "--config", config_file]
    return {"node_id": node_id, "content": content, "format_command": command}


def _of_upgrade(action: QuorumshiftAction, kind: str, host: str, values: Mapping[str, str]) -> dict:
    """Return {release, changes} of a restart in an upgrade, {} of another plain restart.

    A new release would use its own inter.broker.protocol.version where the file names none: the earlier one is written
    into the file first.
    """
    if kind not in transitions.CHANGED_KEYS:
        return {}
    version = str(action.variable("upgrade_to"))
    if kind == "protocol_broker":
        return {"changes": {upgrade.PROTOCOL: releases.written(releases.release(version) or ())}}
    planned = action.vars["hostvars"]["localhost"]["upgrade_planned"]
    home = str(action.variable("quorumshift_kafka_home", host))
    to = action.variable("upgrade_home", host) or home
    pinned = planned["protocol"] if kind == upgrade.BROKERS and upgrade.PROTOCOL not in values else ""
    return {
        "release": {"home": home, "to": str(to), "version": version},
        **({"changes": {upgrade.PROTOCOL: pinned}} if pinned else {}),
    }


def of_controller(action: QuorumshiftAction, host: str) -> dict[str, str]:
    """Return the complete properties of this host's controller in migration mode, secrets sealed."""
    return kraft_config.controller_properties(
        _broker_properties(action),
        action.variable("quorumshift_node_id", host),
        controller_address(action, host),
        _voters(action),
        action.variable("quorumshift_controller_log_dir", host),
        action.variable("quorumshift_controller_listener"),
        action.variable("quorumshift_controller_protocol"),
        action.variable("quorumshift_controller_super_users"),
        _own_settings(action, "quorumshift_controller_config", host),
    )


def _own_settings(action: QuorumshiftAction, variable: str, host: str) -> dict[str, str]:
    """Return the operator's own settings for a host, secrets sealed like those from the brokers."""
    given = action.variable(variable, host) or {}
    return seal_properties(action.run_key(), {key: str(value) for key, value in given.items()})


def _voters(action: QuorumshiftAction) -> str:
    hosts = action.vars["groups"][GROUPS["controller"]]
    return ",".join(f"{action.variable('quorumshift_node_id', one)}@{controller_address(action, one)}" for one in hosts)


def _broker_properties(action: QuorumshiftAction) -> dict:
    """Return the properties of the first reachable broker; preflight has checked that all brokers agree."""
    for host in action.vars["groups"][GROUPS["broker"]]:
        node = action.facts_of(host).get("quorumshift_node") or {}
        if node.get("file", {}).get("properties"):
            return node["file"]["properties"]
    return {}
