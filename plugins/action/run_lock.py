# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""claim: the run's claim as migration_state judged it, written host by host; closed where the run ends."""

from __future__ import annotations

import time

from ansible_collections.quorumshift.kafka.plugins.plugin_utils import identity
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Takes or closes. Task option of this action, with state closed: `stopped_at`, the task at which the run failed;
    then this task fails too, so that the playbook does."""

    def refused(self) -> str | None:
        """A claim is closed however the run went."""
        return None if self._task.args.get("state") == "closed" else super().refused()

    def act(self, args: dict) -> dict:
        stopped_at, reason = args.pop("stopped_at", None), args.pop("reason", "")
        args.setdefault("run", self.session.get("run"))
        args.setdefault("cluster_id", self.session.get("cluster_id"))
        args.setdefault("state_dir", self.variable("quorumshift_state_dir"))
        if args["state"] == "taken":
            return self.in_slices({**args, **self._mine()})
        if stopped_at:
            self.ended(reason, stopped_at)
        result = {} if not self.session.get("run_lock") else self.module({**args, "how": stopped_at or "ok"})
        if stopped_at:
            result.update(failed=True, msg=f'The run ends at "{stopped_at}", for the reason told there.')
        return result

    def _mine(self) -> dict:
        """Return the claim for this host, and on the arbiter what must still stand there."""
        host, detected = self.vars["inventory_hostname"], self.session["run_lock"]
        mine = {
            **identity.me(),
            "number": detected["number"],
            "run": self.session["run"],
            "direction": detected["direction"],
            "target": detected["target"],
            "excluded": detected["excluded"],
            "since": time.time(),
            "closed": False,
        }
        stood = ((self.facts_of(host).get("quorumshift_node") or {}).get("run_locks") or {}).get(
            self.session["cluster_id"]
        )
        return {"run_lock": mine, **({"seen": stood or {}} if host == detected["hosts"][0] else {})}
