# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""run_lock: take the run lock that migration_state decided on, host by host; close it where the run ends."""

from __future__ import annotations

import time

from ansible_collections.quorumshift.kafka.plugins.plugin_utils import identity
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import RUN, QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Takes or closes the lock."""

    FILLS = (*RUN, "state_dir", "config_file", "log_dir")
    OWN = ("stopped_at", "reason")

    def refused(self):
        """The lock is closed however the run went."""
        return None if self._task.args.get("state") == "closed" else super().refused()

    def act(self, args):
        args = self.filled(args)
        if args["state"] == "taken":
            return self.in_slices({**args, **self._lock()})
        stopped_at = self.own.get("stopped_at")
        if stopped_at:
            self.ended(self.own.get("reason", ""), stopped_at)
        result = {} if not self.session.get("run_lock") else self.module({**args, "how": stopped_at or "ok"})
        if stopped_at:
            result.update(failed=True, msg=f'The run ended at "{stopped_at}". The reason is above.{self._next_step()}')
        return result

    def _next_step(self) -> str:
        """Return who shows the next step: of a migration and its rollback, the playbook status."""
        of_migration = (self.session.get("run_lock") or {}).get("direction") in ("forward", "back")
        return " Run quorumshift.kafka.status: it shows the phase and the command to type next." if of_migration else ""

    def _lock(self) -> dict:
        """Return the lock for this host, and for the arbiter the one that must still be there."""
        decided = self.session["run_lock"]
        lock = {
            **identity.me(),
            "number": decided["number"],
            "run": self.session["run"],
            "direction": decided["direction"],
            "target": decided["target"],
            "excluded": decided["excluded"],
            "since": time.time(),
            "closed": False,
        }
        node = self.facts_of(self.host).get("quorumshift_node") or {}
        seen = (node.get("run_locks") or {}).get(self.session["cluster_id"]) or {}
        return {"run_lock": lock, **({"seen": seen} if self.host == decided["hosts"][0] else {})}
