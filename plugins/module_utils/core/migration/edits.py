# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each kind of restart changes on its host. Pure: transitions has the kinds, kraft_config the keys.

An edit takes the host and returns those options of the module node_restart that say what is changed: `changes` {key:
new value, or None to remove the key}, or `content` (the complete file) with `format_command`, and `release`.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Mapping, Protocol

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import releases


class Host(Protocol):
    """The host of a restart. `values`: its properties before the restart; `node_id`: of its node."""

    @property
    def values(self) -> Mapping[str, str]: ...

    @property
    def node_id(self) -> int: ...

    @property
    def cluster_id(self) -> str: ...

    def variable(self, name: str) -> Any:
        """Return a variable of this host, None if it is not set."""

    def common(self, name: str) -> Any:
        """Return a variable that is the same for all hosts of the run."""

    def settings(self, name: str) -> Dict[str, str]:
        """Return a variable that holds the operator's own settings, secrets sealed."""

    def voters(self) -> str:
        """Return the value of controller.quorum.voters."""

    def address(self) -> str:
        """Return host:port of the controller on this host."""

    def broker_properties(self) -> Mapping[str, str]:
        """Return the properties on which all brokers agree."""

    def peer(self) -> Mapping[str, str]:
        """Return the properties of another controller, in whose mode it runs."""

    def kept_protocol(self) -> str:
        """Return the inter.broker.protocol.version that an upgrade keeps, '' in KRaft mode."""


Edit = Callable[[Host], Dict[str, Any]]


def change_nothing(_host: Host) -> Dict[str, Any]:
    """A plain restart changes nothing."""
    return {}


def from_kept_file(_host: Host) -> Dict[str, Any]:
    """In a rollback the host takes the keys from the file that it kept before the restart that is taken back."""
    return {"changes": {}}


def new_controller(host: Host) -> Dict[str, Any]:
    """A new controller gets a complete file, and its empty log directory is formatted."""
    return {"content": controller_properties(host), "format_command": format_command(host)}


def format_command(host: Host) -> List[str]:
    """Return the command that formats the log directory of this host's controller."""
    storage = f"{host.variable('quorumshift_kafka_home')}/bin/kafka-storage.sh"
    # With "=", because a cluster id may begin with a dash
    arguments = [f"--cluster-id={host.cluster_id}", "--config", host.variable("quorumshift_controller_config_file")]
    return [storage, "format", *arguments]


def formatted_controller(host: Host) -> Dict[str, Any]:
    """A controller that lost its log is formatted again. Where its file is lost too, it gets that of another
    controller, with what a host has for itself."""
    command = {"format_command": format_command(host)}
    if host.values:
        return command
    own = {key: value for key, value in controller_properties(host).items() if kraft_config.OF_A_HOST.fullmatch(key)}
    return {**command, "content": {**host.peer(), **own}}


def controller_properties(host: Host) -> Dict[str, str]:
    """Return the complete properties of this host's controller in migration mode, secrets sealed."""
    return kraft_config.controller_properties(
        host.broker_properties(),
        host.variable("quorumshift_node_id"),
        host.address(),
        host.voters(),
        host.variable("quorumshift_controller_log_dir"),
        host.common("quorumshift_controller_listener"),
        host.common("quorumshift_controller_protocol"),
        host.common("quorumshift_controller_super_users"),
        host.settings("quorumshift_controller_config"),
    )


def to_migration_mode(host: Host) -> Dict[str, Any]:
    """A broker in migration mode connects to the controllers."""
    changes = kraft_config.to_migration_mode(
        host.values,
        host.node_id,
        host.voters(),
        host.common("quorumshift_controller_listener"),
        host.common("quorumshift_controller_protocol"),
        host.settings("quorumshift_broker_config"),
    )
    return {"changes": changes}


def to_kraft_mode(host: Host) -> Dict[str, Any]:
    """A broker in KRaft mode has no key of ZooKeeper."""
    return {"changes": kraft_config.to_kraft_mode(host.values, host.node_id)}


def to_final_controller(host: Host) -> Dict[str, Any]:
    """A controller that leaves migration mode has no key of ZooKeeper."""
    return {"changes": kraft_config.to_final_controller(host.values)}


def out_of_migration_mode(host: Host) -> Dict[str, Any]:
    """In a rollback the host takes these keys too from the file that it kept."""
    extra = host.variable("quorumshift_broker_config") or {}
    return {"changes": dict.fromkeys(kraft_config.own_keys_of_migration_mode(extra))}


def no_keys(_kept: Mapping[str, str], _node_id: int) -> Iterable[str]:
    """Nothing beside the edit is taken back."""
    return ()


def keys_of_kraft_mode(kept: Mapping[str, str], node_id: int) -> Iterable[str]:
    """Return the keys that `to_kraft_mode` changed in a file."""
    return kraft_config.to_kraft_mode(kept, node_id)


def keys_of_final_controller(kept: Mapping[str, str], _node_id: int) -> Iterable[str]:
    """Return the keys that `to_final_controller` changed in a file."""
    return kraft_config.to_final_controller(kept)


def release(host: Host) -> Dict[str, Any]:
    """An upgrade switches the node to another release."""
    home = str(host.variable("quorumshift_kafka_home"))
    to = str(host.variable("upgrade_home") or home)
    return {"release": {"home": home, "to": to, "version": str(host.common("upgrade_to"))}}


def release_of_broker(host: Host) -> Dict[str, Any]:
    """A new release would use its own inter.broker.protocol.version where the file names none: the earlier one is
    written into the file first."""
    kept = host.kept_protocol()
    pins = kept and kraft_config.PROTOCOL not in host.values
    return {**release(host), **({"changes": {kraft_config.PROTOCOL: kept}} if pins else {})}


def protocol(host: Host) -> Dict[str, Any]:
    """Once every broker runs the new release, its inter.broker.protocol.version is used."""
    version = str(host.common("upgrade_to"))
    return {"changes": {kraft_config.PROTOCOL: releases.format_release(releases.parse_release(version) or ())}}


def zookeeper_connect(host: Host) -> Dict[str, Any]:
    """A move between ensembles changes the servers that a broker connects to."""
    return {"changes": {"zookeeper.connect": host.common("zk_migrate_connect")}}


def dynamic_quorum(host: Host) -> Dict[str, Any]:
    """A node of a dynamic quorum finds the controllers by bootstrap servers."""
    return {"changes": kraft_config.to_dynamic_quorum(host.values)}
