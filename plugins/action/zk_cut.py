# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""zk_cut: one step of the cut on a destination host, journalled.

The orders within the window are given by a few lines of shell, not by the module: its transfer and Python's start would
take the most of a short session timeout.
"""

from __future__ import annotations

import json
import shlex

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import ensemble_cut
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction

# The order of each state, and the states in which the worker has carried it out
ORDERS = {
    "cut": ("cut", (ensemble_cut.CUT,)),
    "promoted": ("promote", (ensemble_cut.PROMOTING, ensemble_cut.PROMOTED)),
    "open": ("all", (ensemble_cut.PROMOTED,)),
    "rehearsed": ("heal", (ensemble_cut.HEALED,)),
}


class ActionModule(QuorumshiftAction):
    """Does one step; the module's documentation lists them."""

    def act(self, args):
        if args["state"] not in ORDERS or self._task.check_mode:
            return super().act(args)
        result = self._ordered({"id": "", **self.fill(args)})
        if not result.get("failed"):
            self.done(args, result)
        return result

    def advice_if_unreachable(self):
        if self._task.args.get("state") not in ("read", "located"):
            return ""
        dead = ",".join([*self.dead_destination_hosts(), self.host])
        return f"Fix that and run again. If it is dead and the others are a majority: -e zk_migrate_dead_hosts={dead}"

    def _ordered(self, args):
        """Write the order, wait until the worker has carried it out, and return its record."""
        name, good = ORDERS[args["state"]]
        order = {"id": args["id"], "name": name}
        if name == "heal":
            order["reason"] = "the rehearsal ends"
        if name == "promote":
            order.update(zxids=args["zxids"], first=args["first"], first_s=float(args.get("first_s") or 0))
        seconds = float(args.get("timeout_s") or 10)
        state_dir = args.get("state_dir") or host_state.OPTIONS["state_dir"]["default"]
        ends = (*good, ensemble_cut.HEALED, ensemble_cut.SUSPENDED)
        script = ensemble_cut.order_script(state_dir, json.dumps(order), ends, seconds)
        done = self._low_level_execute_command(f"/bin/sh -c {shlex.quote(script)}")
        state, _newline, record = done["stdout"].strip().partition("\n")
        try:
            cut = {**json.loads(record), "state": state.strip()}
        except ValueError:
            return {
                "failed": True,
                "msg": f"{self.host} gave no answer: {done['stderr'] or done['stdout']} (QS-ZKMOVE-014)",
                "cut": {},
            }
        if cut["id"] == args["id"] and cut["state"] in good:
            return {"changed": True, "cut": cut}
        # The worker leaves a reason, heal.sh none
        unknown = "its timer undid the cut" if cut["state"] == ensemble_cut.HEALED else "no reason is known"
        why = cut.get("reason") or cut.get("waits") or f"{unknown}. See journalctl -u {ensemble_cut.UNIT}"
        text = f"{self.host} is in state {cut['state']} after {seconds:.0f} s, not {good[0]}: {why}"
        return {"failed": True, "msg": f"{text}.", "cut": cut}

    def done(self, args, result):
        cut = result.get("cut") or {}
        if args["state"] not in ("read", "located") and result.get("changed"):
            self.artifacts().note("event", f"zk_cut {args['state']}", host=self.host, cut=cut)
        if cut.get("reason") and args["state"] in ("healed", "open"):
            self.say(f"{self.host}: {cut['reason']}")
        if cut.get("brokers_lost") and args["state"] == "open":
            self.say(f"{self.host} does not reach brokers any more: {', '.join(cut['brokers_lost'])}")
