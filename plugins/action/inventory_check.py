# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""inventory_check: check groups and variables on the control node, before any host is reached."""

from __future__ import annotations

from typing import Any, Iterator

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import variables
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import run_lock
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import process_identity, variable_specs
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import GROUPS, QuorumshiftAction, display

LOST = "_raw_params"  # under which Ansible keeps what is no NAME=VALUE of -e


class ActionModule(QuorumshiftAction):
    """Checks the inventory; the module's documentation says what."""

    def act(self, args):
        groups = self.vars["groups"]
        asked = ("groups", "variables", "exactly_one_of", "taken")
        needs = variables.Needs(*(args.get(option) or () for option in asked))
        nodes = [
            host for group in (*GROUPS.values(), variables.ZOOKEEPER, *needs.groups) for host in groups.get(group, [])
        ]
        hosts = dict.fromkeys([variables.CONTROL_NODE, *nodes])
        found_of = {host: dict(self._variables(host)) for host in hosts}
        typed = process_identity.find_typed()
        lost = typed.pop(LOST, "")
        of_cp_ansible = {name for host in hosts if host in self.vars["hostvars"] for name in self._of_cp_ansible(host)}
        given = variables.Given(found_of, groups, {*typed}, bool(self.session), lost, of_cp_ansible)
        found = variables.find_problems(
            given,
            variable_specs.specs(),
            variable_specs.cluster_wide(),
            variable_specs.known(),
            variable_specs.internal(),
            variable_specs.convert,
            forward=args.get("direction") == run_lock.FORWARD,
            needs=needs,
        )
        ending = ("fails", "stops") if args.get("fails", True) else ("stops",)
        ends = [problem.text for problem in found if problem.severity in ending]
        for problem in found:
            if problem.text not in ends:
                display.warning(f"{problem.text} (QS-RUN-009)")
        if ends:
            mistakes = "\n".join(ends)
            return {"failed": True, "msg": f"{mistakes}\nNothing was changed. (QS-RUN-009)"}
        result = {"changed": False, "problems": [problem.text for problem in found]}
        # Playbooks and roles read the session as a fact. A cache of facts has that of an earlier run until this begins
        return result if self.session else {**result, "ansible_facts": {"quorumshift_session": {}}}

    def _of_cp_ansible(self, host: str) -> list[str]:
        own = self.vars["hostvars"][host]
        return [name for name in variables.OF_CP_ANSIBLE if name in own]

    def _variables(self, host: str) -> Iterator[tuple[str, Any]]:
        if host not in self.vars["hostvars"]:
            return
        own = self.vars["hostvars"][host]
        facts = own.get("ansible_facts") or {}  # a cache of facts keeps those of earlier runs
        for name in own:
            if variables.is_own(name) and name not in facts:
                try:
                    yield name, own[name]
                except Exception as error:  # whatever a template of the operator raises
                    yield name, variables.Unreadable(str(error))
