# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kraft_preflight: check the hosts' facts, from the probe host; keep the findings."""

from __future__ import annotations

import json

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import preflight_screen
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import advice
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.seal import seal_properties
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction

KEPT = ("findings", "checks")


class ActionModule(QuorumshiftAction):
    """Runs the checks and keeps what they found."""

    def act(self, args):
        show = self.own.get("show", False)
        # -vvv prints arguments. Sealed as the hosts seal theirs, secrets can still be compared.
        given = args.get("controller_config") or {}
        args["controller_config"] = seal_properties(self.run_key(), {key: str(value) for key, value in given.items()})
        args["nodes"] = {
            host: {**node, "paths": self.facts_of(host).get("quorumshift_paths")} for host, node in self.nodes().items()
        }
        result = super().act(args)
        kept = {key: value for key, value in result.items() if key in KEPT}
        if kept:
            self.artifacts().save("preflight.json", json.dumps(kept, indent=1))
        if kept and show:
            for line in preflight_screen.table(result["findings"], result["checks"]):
                self.say(line)
        if result.get("failed"):
            if not kept:
                return result
            blocks = {
                finding["id"]: finding["title"] for finding in kept["findings"] if finding["severity"] == "blocks"
            }
            blocking = [f"{title} ({name})" for name, title in sorted(blocks.items())]
            if not show:
                return {"failed": True, "changed": False, "msg": result["msg"]}
            # Without the findings, which Ansible would print a second time
            return {
                "failed": True,
                "changed": False,
                "msg": f"These checks block the migration: {', '.join(blocking)}. Nothing was changed. (QS-CHECK-001)",
            }
        if show:  # the playbook preflight ends here
            self.artifacts().note("event", "ended", result="ok")
        else:
            self._say(result["findings"], len(result["checks"]))
        return result

    def _say(self, findings: list[dict], checks: int) -> None:
        left = [finding for finding in findings if not finding["waived"]]
        for finding in left:
            self.say(f"{finding['severity']}: {advice.sentences(finding['seen'], finding['do'])}")
        waived = len(findings) - len(left)
        found = f"{len(left) or 'no'} {'finding' if len(left) == 1 else 'findings'}"
        self.say(f"{checks} checks, {found}{f', {waived} waived' if waived else ''}")
