# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""handover: keep what configuration management has to write from now on. Runs on the control node alone."""

from __future__ import annotations

import contextlib
import json
from typing import Any, Iterable

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import cp_ansible, handover
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.seal import PREFIX, is_secret
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction

_FILE = "handover.json"  # of the run artifacts


class ActionModule(QuorumshiftAction):
    """Writes handover.json of the run artifacts and shows it."""

    def act(self, _args):
        found = handover.describe(
            self.session["cluster_id"],
            self.nodes(),
            self.variable("quorumshift_broker_config") or {},
            lambda key, value: is_secret(key) or PREFIX in value,
        )
        nodes = self.nodes()
        shown = []
        if cp_ansible.is_managed(nodes.values()):
            ids = {host: node.get("node_id") for host, node in nodes.items() if node["role"] == "controller"}
            own = {cp_ansible.BROKERS: found["brokers"], cp_ansible.CONTROLLERS: found["controllers"]}
            found["cp_ansible"] = cp_ansible.variables(
                found, ids, {name: self._set_by_the_inventory(name, hosts) for name, hosts in own.items()}
            )
            shown = cp_ansible.lines(found["cp_ansible"])
        where = f"{_FILE} of the run artifacts"
        if not self._task.check_mode:
            where = self.artifacts().save(_FILE, json.dumps(found, indent=1))
        for line in [*handover.lines(found, where), *shown]:
            self.say(line)
        return {"changed": False, "handover": found}

    def _set_by_the_inventory(self, name: str, hosts: Iterable[str]) -> dict[str, Any]:
        """Return the settings that a variable of cp-ansible has on any of the hosts. One that cannot be templated here,
        for lack of its filters, has none."""
        found: dict[str, Any] = {}
        for host in hosts:
            with contextlib.suppress(Exception):
                value = self.variable(name, host)
                found.update(value if isinstance(value, dict) else {})
        return found
