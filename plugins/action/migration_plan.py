# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""migration_plan: what changes in each file is added, the plan is printed and kept as evidence."""

from __future__ import annotations

import json

from ansible.errors import AnsibleError
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import planning, planning_screen, transitions
from ansible_collections.quorumshift.kafka.plugins.module_utils.seal import is_secret
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import file_changes
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import PLAN, ProbeAction, display

LISTED = 5
# A plan comes before the preflight, which tells what an inventory or a broker's file lacks
UNTOLD = "cannot be told yet: the inventory or the brokers' files lack what it is made of, and the preflight says what"


class ActionModule(ProbeAction):
    """Plans. Task option of this action: `ends`, nothing comes after it in the run. Where a run goes on with it, it is
    told in a line, and kept."""

    def ends_run(self, result):
        """A run that cannot plan goes on: whatever is in its way is told where it stands there."""
        return self.shows

    def act(self, args: dict) -> dict:
        ends = args.pop("ends", False)
        self.shows = ends or self._task.check_mode
        args.setdefault("target", self.variable("quorumshift_rollback_to") or "")
        args.setdefault("canary", self.variable("quorumshift_canary") or None)
        result = super().act(args)
        if result.get("failed"):
            if not self.shows:
                self.say(f"no plan: {result.get('msg')}")
            return result
        messages = [planning.Step(**step) for step in result["steps"]]
        changes = {step.name: self._changes(step) for step in messages if step.batches}
        each = planning.each_s(self.artifacts().all_events())
        cluster = self.session.get("cluster_id")
        lines = planning_screen.lines(cluster, result["phase"], args["target"], messages, changes, each)
        lost = list(result["unavoidable"].items()) if any(step.kind == planning.ROLL for step in messages) else []
        lines += [f"  cannot stay available: {name} ({why})" for name, why in lost[:LISTED]]
        lines += [f"  and {len(lost) - LISTED} more, all in plan.json of the evidence"] * (len(lost) > LISTED)
        if self.shows:
            for line in lines:
                display.display(line)
        else:
            self.say(f"plan: {planning_screen.line(messages, each)} ({PLAN} of the evidence)")
        kept = {
            **{key: result[key] for key in ("phase", "steps", "unavoidable")},
            "target": args["target"] or "finalized",
            "changes": {
                node_restart: [{"hosts": list(hosts), "lines": text} for hosts, text in by_hosts.items()]
                for node_restart, by_hosts in changes.items()
            },
            "each_s": each,
            "restarts_s": planning.estimate_s(messages, each),
        }
        if not self._task.check_mode:
            self.artifacts().save(PLAN, json.dumps(kept, indent=1))
            if ends:
                self.artifacts().note("event", "ended", result="ok")
        return {**result, "changed": False, "restarts_s": kept["restarts_s"]}

    def _changes(self, step: planning.Step) -> dict[tuple[str, ...], list[str]]:
        """Return {hosts: lines} of what a turn changes in its hosts' files, together where it is the same."""
        by_text: dict[tuple[str, ...], list[str]] = {}
        for host in sorted(host for batch in step.batches for host in batch):
            try:
                lines = self._lines(step.name, host)
            except (AnsibleError, LookupError, TypeError, ValueError):
                lines = [UNTOLD]
            by_text.setdefault(tuple(lines), []).append(host)
        return {tuple(hosts): list(text) for text, hosts in by_text.items()}

    def _lines(self, kind: str, host: str) -> list[str]:
        node = self.facts_of(host).get("quorumshift_node") or {}
        before = dict((node.get("file") or {}).get("properties") or {})
        mode = (node.get("file") or {}).get("mode")
        if transitions.TRANSITIONS[kind].rollback:
            return ["as it was before, from what is kept on the host"]
        for earlier in transitions.earlier(kind):
            if mode != earlier.after:
                before = _applied(before, file_changes.of_restart(self, earlier.name, host, before))
        messages = file_changes.of_restart(self, kind, host, before)
        if "content" in messages:
            return [f"written whole: {len(messages['content'])} keys, from what the brokers have"]
        return planning_screen.file_lines(before, messages["changes"], is_secret)


def _applied(before: dict, reported: dict) -> dict:
    if "content" in reported:
        return reported["content"]
    after = {**before, **reported["changes"]}
    return {key: value for key, value in after.items() if value is not None}
