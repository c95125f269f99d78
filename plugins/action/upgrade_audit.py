# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""upgrade_audit: run the checks of an upgrade on the probe host; keep the findings and the clients."""

from __future__ import annotations

import json

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.audit import audit
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import audit_screen
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction

KEPT = ("findings", "checks", "targets", "clients")


class ActionModule(QuorumshiftAction):
    """Runs the checks and shows what they found."""

    def act(self, args):
        args["to"] = str(args.get("to") or "")
        show = self.own.get("show", False)
        args["facts"] = {host: self._read(host) for host in self.nodes()}
        unread = {host: read["why"] for host, read in args["facts"].items() if "why" in read}
        if unread and self.session.get("run_lock"):
            return self._end(unread)
        result = super().act(args)
        kept = {key: value for key, value in result.items() if key in KEPT}
        if not kept:
            return result
        self.artifacts().save("upgrade_audit.json", json.dumps(kept, indent=1))
        for line in audit_screen.render(kept, whole=show):
            self.say(line)
        if result.get("failed"):
            # Without the findings, which Ansible would print a second time
            blocks = {
                finding["id"]: finding["title"]
                for finding in kept["findings"]
                if finding["severity"] == "blocks" and not finding["waived"]
            }
            blocking = [f"{title} ({name})" for name, title in sorted(blocks.items())]
            accept = [check.id for check in audit.CHECKS if check.acceptable and check.id in blocks]
            how = f". Those of {', '.join(accept)} can be accepted in upgrade_accept" if accept else ""
            return {
                "failed": True,
                "changed": False,
                "msg": f"The audit has findings that stop the upgrade: {', '.join(blocking)}{how}. Nothing was "
                "changed. (QS-AUDIT-001)",
            }
        if show:  # the playbook upgrade_audit ends here
            self.artifacts().note("event", "ended", result="ok")
        return result

    def _end(self, unread):
        """Return the failure of a run that changes something: it ends where a host was not read."""
        for host, why in unread.items():
            self.note_failure(self._task.name, why, host=host)
        hosts = "; ".join(f"{host}: {why}" for host, why in unread.items())
        return {"failed": True, "changed": False, "msg": f"Not read: {hosts}. Nothing was changed. (QS-AUDIT-001)"}

    def _read(self, host):
        """Return what upgrade_read returned of a host in this run, or why there is nothing."""
        read = self.vars["hostvars"][host].get("upgrade_facts") or {}
        if read.get("facts"):
            return read["facts"]
        return {"why": str(read.get("unread") or read.get("msg") or "the host was not read")}
