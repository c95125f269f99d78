# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""run: begin a run and decide on its run lock; take the lock host by host, see that it is still held, close it."""

from __future__ import annotations

import time

from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.quorumshift.kafka.plugins.module_utils import message_ids
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import run_outcome
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.masking import mask
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import process_identity, run_begin
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Begins a run on the probe host; takes, checks or closes its lock on a broker or controller."""

    def refusal(self):
        """The lock is closed however the run went."""
        return None if self._task.args.get("state") == "closed" else super().refusal()

    def act(self, args):
        if args["state"] == "begun":
            return self._begin()
        if args["state"] == "refused":
            return {"failed": True, "msg": args["reason"]}
        args = self.fill(args)
        if args["state"] == "locked":
            return self.run_in_slices({**args, **self._lock()})
        if args["state"] == "held":
            return self.run_in_slices(args)
        return self._close(args)

    def _begin(self) -> dict:
        """Begin the run. With `deferred`, a refusal after the phase was read is no failure of this task: of one that
        fails, Ansible keeps no stats. The next task fails with `refused`."""
        result = run_begin.begin(self)
        stats = result.pop("stats", None)
        if not result.get("failed") or stats is None or not boolean(self.own.get("deferred", False)):
            return result
        self.note_failure(self._task.name, result["msg"])
        refused = message_ids.move_to_end(mask(result["msg"]), message_ids.NO_ID)
        return {"changed": False, "refused": refused, "ansible_stats": stats}

    def _lock(self) -> dict:
        """Return the lock for this host, and for the arbiter the one that must still be there."""
        decided = self.session["run_lock"]
        lock = {
            **process_identity.own_identity(),
            "number": decided["number"],
            "run": self.session["run"],
            "direction": decided["direction"],
            "target": decided["target"],
            "excluded": decided["excluded"],
            "since": time.time(),
            "playbook": process_identity.playbook_name(),
            "given": process_identity.find_given(),
            "closed": False,
        }
        node = self.facts_of(self.host).get("quorumshift_node") or {}
        seen = (node.get("run_locks") or {}).get(self.session["cluster_id"]) or {}
        return {"run_lock": lock, **({"seen": seen} if self.host == decided["hosts"][0] else {})}

    def _close(self, args):
        """Close the lock of this host with how the run ended; on the arbiter, journal a good end. A rescue gives `how`:
        the failure that led there may be that the journal cannot be written."""
        events = self.journal()
        failure = run_outcome.outcome(events)
        how = failure.task if failure else args.get("how") or run_outcome.OK
        result = self.module({**args, "how": how, "advice": run_outcome.advice(events) if failure else ""})
        if result.get("failed"):
            return result
        arbiter = (self.session.get("run_lock") or {}).get("hosts", [self.host])[0]
        if how == run_outcome.OK and self.host == arbiter:
            self.artifacts().note("event", run_outcome.ENDED, result=run_outcome.OK)
        return result
