# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""rolling_restart: check that the batch is one of the plan's, then ask the probe host."""

from __future__ import annotations

import json

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import admission
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import transitions
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.restart import stuck_leaders
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import planning
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import plans
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction

LISTED = 5


class ActionModule(QuorumshiftAction):
    """Plans, admits, settles; keeps plan and admissions as run artifacts."""

    def act(self, args):
        state, kind = args["state"], args.get("kind")
        if state == "batches":
            result = self.module(self.fill(args))
            for role in ("brokers", "controllers"):
                if role in result:
                    self._show({**result[role], "kind": f"restart of {role}"}, f"{role}.unavoidable of the result")
            return result
        if state == "admitted":
            refused = self._not_planned(args)
            if refused:
                return {"failed": True, "msg": f"{refused}. Nothing was changed."}
        if state == "watched":
            return self.module(self.fill(args))
        plan = self.planned() if state == "planned" else None
        order = planning.order(plan, kind) if plan else None
        if order:
            args.setdefault("planned", order)
        result = self.run_in_slices(self.fill(args))
        if result.get("failed"):
            return result
        if state == "planned":
            result["node_s"] = plans.restart_times(self).nodes
        if state == "planned" and transitions.KINDS[kind].is_plain:
            self._show(result["plan"], f"plan-{kind}.json of the run artifacts")
            needed = result.pop("unaccepted", "")
            if needed:
                return {"failed": True, "msg": f"{needed}. Nothing was changed."}
            if not self._task.check_mode:
                self.artifacts().save(f"plan-{kind}.json", json.dumps(result["plan"], indent=1))
            if result["plan"]["batches"] and "since" in result and not transitions.KINDS[kind].changes_host:
                self.say(f"if the run stops, go on with -e restart_since={result['since']}")
            return result
        if state == "planned":
            self.artifacts().save(f"plan-{kind}.json", json.dumps(result["plan"], indent=1))
            self._show(result["plan"], f"plan-{kind}.json of the run artifacts")
            self._compare(order, result["plan"])
        if state == "admitted" and result.get("needed", True):
            self._admitted(args, result, kind)
        if state == "settled":
            self.artifacts().note("phase", result["phase"])
        return result

    def _admitted(self, args: dict, result: dict, kind: str) -> None:
        """Show and journal which node may be restarted now."""
        first = result.get("first") or {}
        waits = first.get("waits")  # a controller that leads; otherwise the batch waits for a stuck leader
        if first and not waits:
            self._first(stuck_leaders.Stuck(**first), kind)
            if first["host"] not in args["batch"]:
                return
        hosts = [first["host"]] if first else list(args["batch"])
        host = hosts[0]
        if waits:
            self.say(f"{waits} leads the quorum now and is restarted after the others: {host} is restarted before it")
        if result.get("only_start"):
            self._started(", ".join(hosts), result.get("unresponsive") or [])
        artifacts = self._artifacts()  # the restart that follows renews the report
        artifacts.note("phase", result["phase"])
        artifacts.note("event", planning.ADMITTED, restart_kind=kind, hosts=hosts, waited_s=result["waited_s"])

    def _first(self, leader: stuck_leaders.Stuck, kind: str) -> None:
        """Show and journal which leader is restarted first, and why."""
        each = planning.times(self.artifacts().all_events()).each
        for line in stuck_leaders.announcement(leader, each.get(kind, each.get(""))):
            self.say(line)
        self.artifacts().note("event", "restarted first", restart_kind=kind, **leader._asdict())

    def _started(self, host: str, unresponsive: list[str]) -> None:
        """Show that the node is down and is only started, and which others do not answer either."""
        self.say(f"{host} is down, as its host says: it is started, and nothing is stopped")
        for text in unresponsive:
            self.say(text)

    def _show(self, plan: dict, where: str) -> None:
        """Show the order, and some of the partitions that cannot stay available. `where`: what has all of them."""
        order = [
            " + ".join(f"{host} ({plan['reasons'][host]})" if host in plan["reasons"] else host for host in batch)
            for batch in plan["batches"]
        ]
        self.say(f"{plan['kind']}: {', then '.join(order) or 'nothing to restart'}")
        if plan["done"] and plan["batches"]:
            self.say(f"{plan['kind']} already: {', '.join(plan['done'])}")
        lost = list(plan["unavoidable"].items()) if plan["batches"] else []
        for name, why in lost[:LISTED]:
            self.say(f"cannot stay available: {name} ({why})")
        if len(lost) > LISTED:
            self.say(f"and {len(lost) - LISTED} more, all in {where}")

    def _compare(self, order: list[str] | None, plan: dict) -> None:
        """Show and journal where the roll differs from the plan that this run made at its beginning."""
        why = planning.find_deviations(order, plan) if order else []
        if why:
            self.say(f"differs from the plan ({', then '.join(order)}): {'; '.join(why)}")
            self.artifacts().note("event", "otherwise than planned", restart_kind=plan["kind"], planned=order, why=why)

    def _not_planned(self, args: dict) -> str | None:
        """Return why this batch is not the plan's next: --limit silently changes the batches, and a host that
        became unreachable does not stop the batch after it."""
        together = transitions.KINDS[args["kind"]].role == transitions.BROKER
        refused = None if together else admission.check_single_host(args["batch"])
        if refused:
            return f"{refused}. Run without --limit (QS-RESTART-001)"
        missing = sorted(set(self.vars["ansible_play_hosts_all"]) - set(self.vars["ansible_play_hosts"]))
        if missing:
            return (
                f"{', '.join(missing)} failed or became unreachable in an earlier batch: no further node is "
                "stopped (QS-RESTART-001)"
            )
        # Where gate tokens expired on some hosts of a batch, these alone are admitted again
        rest = [batch for batch in args["plan"]["batches"] if together and set(args["batch"]) <= set(batch)]
        if args["batch"] not in args["plan"]["batches"] and not rest:
            planned = " | ".join(", ".join(batch) for batch in args["plan"]["batches"])
            return (
                f"this batch is {', '.join(args['batch'])}, the plan is {planned}. Run without --limit (QS-RESTART-001)"
            )
        return None
