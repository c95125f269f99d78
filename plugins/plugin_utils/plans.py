# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a run: what each restart changes in its host's file is added; it is shown, and kept as a run artifact."""

from __future__ import annotations

import json
from typing import Any, Mapping

from ansible.errors import AnsibleError
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import transitions
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import planning, planning_screen
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.seal import is_secret
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import file_changes
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import PLAN, QuorumshiftAction, display

LISTED = 5
# A plan comes before the preflight, which reports what an inventory or a broker's file lacks
UNKNOWN = "not known yet: the inventory or the brokers' files lack what it is made of, and the preflight says what"


def show(action: QuorumshiftAction, plan: Mapping[str, Any], phase: str, target: str, screen: bool) -> None:
    """Show a plan ({steps, unavoidable} of migration_state), as a screen or in a line, and keep it."""
    steps = [planning.Step(**step) for step in plan["steps"]]
    changes = {step.name: _changes(action, step) for step in steps if step.batches}
    times = restart_times(action)
    if screen:
        lines = planning_screen.lines(action.session["cluster_id"], phase, target, steps, changes, times)
        lost = list(plan["unavoidable"].items()) if any(step.kind == planning.ROLL for step in steps) else []
        lines += [f"  cannot stay available: {name} ({why})" for name, why in lost[:LISTED]]
        lines += [f"  and {len(lost) - LISTED} more, all in {PLAN} of the run artifacts"] * (len(lost) > LISTED)
        for line in lines:
            display.display(line)
    else:
        action.say(f"plan: {planning_screen.line(steps, times)} ({PLAN} of the run artifacts)")
    if action._task.check_mode:
        return
    kept = {
        "phase": phase,
        **plan,
        "target": target or "finalized",
        "changes": {
            name: [{"hosts": list(hosts), "lines": text} for hosts, text in by_hosts.items()]
            for name, by_hosts in changes.items()
        },
        "each_s": times.each,
        "node_s": times.nodes,
        "restarts_s": times.of_steps(steps),
    }
    action.artifacts().save(PLAN, json.dumps(kept, indent=1))


def restart_times(action: QuorumshiftAction) -> planning.Times:
    """Return how long restarts take on this cluster."""
    last_starts = {host: action.facts_of(host).get("quorumshift_last_start") for host in action.nodes()}
    stable_s = float(action.variable("quorumshift_stable_s") or 0)
    return planning.times(action.artifacts().all_events(), last_starts, stable_s)


def _changes(action: QuorumshiftAction, step: planning.Step) -> dict[tuple[str, ...], list[str]]:
    """Return {hosts: lines} of what a restart changes in its hosts' files, together where it is the same."""
    by_text: dict[tuple[str, ...], list[str]] = {}
    for host in sorted(host for batch in step.batches for host in batch):
        try:
            lines = _lines(action, step.name, host)
        except (AnsibleError, LookupError, TypeError, ValueError):
            lines = [UNKNOWN]
        by_text.setdefault(tuple(lines), []).append(host)
    return {tuple(hosts): list(text) for text, hosts in by_text.items()}


def _lines(action: QuorumshiftAction, kind: str, host: str) -> list[str]:
    if transitions.KINDS[kind].is_rollback:
        return ["as it was before, from the file kept on the host"]
    file = (action.facts_of(host).get("quorumshift_node") or {}).get("file") or {}
    before = dict(file.get("properties") or {})
    for earlier in transitions.earlier_kinds(kind):
        if file.get("mode") != earlier.after:
            before = _apply(before, file_changes.restart_options(action, earlier.name, host, before))
    changes = file_changes.restart_options(action, kind, host, before)
    if "content" in changes:
        return [f"new file: {len(changes['content'])} keys, derived from the brokers' files"]
    return planning_screen.file_lines(before, changes["changes"], is_secret)


def _apply(before: dict, changes: dict) -> dict:
    if "content" in changes:
        return changes["content"]
    after = {**before, **changes["changes"]}
    return {key: value for key, value in after.items() if value is not None}
