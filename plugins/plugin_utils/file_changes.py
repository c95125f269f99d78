# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The changes of a restart on its host, by its kind's edit: from the host's facts and the operator's variables."""

from __future__ import annotations

from typing import Any, Mapping

from ansible.errors import AnsibleActionFail
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import edits, transitions
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.seal import seal_properties
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import (
    GROUPS,
    QuorumshiftAction,
    controller_address,
)


def restart_options(action: QuorumshiftAction, kind: str, host: str, values: Mapping[str, str] | None = None) -> dict:
    """Return {node_id, ...} with the options of node_restart that the kind's edit returns for this host.

    `values`: the properties before the restart, by default the host's present ones.
    """
    row = transitions.KINDS[kind]
    edited = EditedHost(action, row, host, values)
    return {"node_id": edited.node_id, **row.edit(edited)}


def format_options(action: QuorumshiftAction, host: str) -> dict:
    """Return {node_id, ...} with the options of node_restart that format this host's controller, which lost its log."""
    edited = EditedHost(action, transitions.KINDS["controller"], host)
    return {"node_id": edited.node_id, **edits.formatted_controller(edited)}


def controller_properties(action: QuorumshiftAction, host: str) -> dict[str, str]:
    """Return the complete properties of this host's controller in migration mode, secrets sealed."""
    return edits.controller_properties(EditedHost(action, transitions.KINDS["controller"], host))


class EditedHost:
    """A host as an edit takes it (core.migration.edits.Host)."""

    def __init__(
        self, action: QuorumshiftAction, kind: transitions.Kind, host: str, values: Mapping[str, str] | None = None
    ):
        self._action, self._kind, self._host = action, kind, host
        self._node: Mapping[str, Any] = action.facts_of(host).get("quorumshift_node") or {}
        self.values = (self._node.get("file") or {}).get("properties") or {} if values is None else values

    @property
    def node_id(self) -> int:
        if self._kind.is_plain:
            return int(self._action.nodes()[self._host]["node_id"])
        if self._kind.role == transitions.CONTROLLER:
            return int(self.variable("quorumshift_node_id"))
        return self._node["node_id"]

    @property
    def cluster_id(self) -> str:
        return self._action.session.get("cluster_id")

    def variable(self, name: str) -> Any:
        return self._action.variable(name, self._host)

    def common(self, name: str) -> Any:
        return self._action.variable(name)

    def settings(self, name: str) -> dict[str, str]:
        given = self.variable(name) or {}
        return seal_properties(self._action.run_key(), {key: str(value) for key, value in given.items()})

    def voters(self) -> str:
        action = self._action
        hosts = action.vars["groups"][GROUPS["controller"]]
        return ",".join(
            f"{action.variable('quorumshift_node_id', controller)}@{controller_address(action, controller)}"
            for controller in hosts
        )

    def address(self) -> str:
        return controller_address(self._action, self._host)

    def broker_properties(self) -> Mapping[str, str]:
        """Return those of the first reachable broker; preflight has checked that all brokers agree."""
        for host in self._action.vars["groups"][GROUPS["broker"]]:
            node = self._action.facts_of(host).get("quorumshift_node") or {}
            if node.get("file", {}).get("properties"):
                return node["file"]["properties"]
        return {}

    def peer(self) -> Mapping[str, str]:
        for host in self._action.vars["groups"][GROUPS["controller"]]:
            node = self._action.facts_of(host).get("quorumshift_node") or {}
            values = (node.get("file") or {}).get("properties")
            if values and host != self._host:
                return values
        raise AnsibleActionFail(
            f"{self._host} has no properties file, and no other controller has one either. Restore the file "
            "(QS-RESTART-016)"
        )

    def kept_protocol(self) -> str:
        return self._action.vars["hostvars"]["localhost"]["upgrade_planned"]["protocol"]
