# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The phase as an action reads it: the module migration_state on the probe host, and what the control node adds.

The actions migration_state, run and status share it. Only run and status name the run and write its artifacts.
"""

from __future__ import annotations

import getpass
import json
import os
import secrets
import time
from typing import Any, Iterable, Mapping, NamedTuple

from ansible import context
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase, same_cluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rollback import rollback
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import run_lock, run_outcome
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import backups, directions, screen
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import ClusterFacts, RunLock
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import process_identity
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction

MODULE = "migration_state"


class Reading(NamedTuple):
    """What the module has read. `newest`: the newest run lock, None without any; `alive`: whether its process is at
    work, None if unknown; `unproved`: whether the last gate of an interrupted rollback is still to open."""

    facts: ClusterFacts
    detected: phase.PhaseResult
    newest: RunLock | None
    alive: bool | None
    unproved: bool


def read(
    action: QuorumshiftAction, args: Mapping[str, Any], direction: str = ""
) -> tuple[dict[str, Any], Reading | None]:
    """Return the result of migration_state for a run in this direction, and what it was made of: None where it failed.

    The first cluster id of a run counts to its end: sources that change meanwhile are of another cluster."""
    result = action.module(action.fill(args, MODULE), f"quorumshift.kafka.{MODULE}")
    if result.get("failed"):
        return result, None
    facts = result.pop("facts")
    cluster_id = action.session.get("cluster_id") or result["cluster_id"]
    if cluster_id and not same_cluster.is_cluster_id(cluster_id):
        refused = same_cluster.refusal(facts, cluster_id)
        return {"failed": True, "msg": f"{refused}. Nothing was changed."}, None
    detected = phase.detect(facts)
    result["reasons"] = directions.explain_phase(result)
    result["backups"] = backups.find_backups(facts["nodes"], result["cluster_id"])
    result["gate"] = gates.choose_gate_to_verify(result["phase"])
    result["zookeeper_zxid"] = facts["zookeeper"].get("zxid")
    newest = run_lock.find_newest(facts["nodes"], cluster_id or "")
    alive = process_identity.is_alive((newest or {}).get("process"))
    unproved = direction != run_lock.FORWARD and rollback.is_unproved(facts, detected, action.session.get("run"))
    if unproved:
        result["next"] = screen.TO_PROVE._asdict()
    finishes = None if direction or unproved else screen.next_after_failure(detected.phase, newest, alive)
    if finishes:
        result["next"] = finishes._asdict()
    again = screen.find_given_again(result["next"]["playbook"], newest, alive)
    result["next"]["given"] = process_identity.select_repeatable(again)
    return result, Reading(facts, detected, newest, alive, unproved)


def name_run(action: QuorumshiftAction, result: dict[str, Any]) -> dict[str, Any]:
    """Return the session of the run, which begins with its first reading; it becomes a fact of the result."""
    session = dict(action.session) or {"run": time.strftime("%Y%m%dT%H%M%S") + "-" + secrets.token_hex(2)}
    session.update(cluster_id=session.get("cluster_id") or result["cluster_id"], phase=result["phase"])
    result["ansible_facts"] = {"quorumshift_session": session}
    action.session = session
    session["artifacts"] = action._artifacts().directory  # for the callback `screen`, which reads the journal
    return session


def journal(action: QuorumshiftAction, facts: ClusterFacts, phase_name: str, begins: bool) -> None:
    """Journal the phase, after the begin of the run where this is it, and keep the facts."""
    artifacts = action.artifacts()
    if begins:
        playbook = (context.CLIARGS.get("args") or ("",))[0]
        where: dict[str, Any] = {"user": getpass.getuser(), "playbook": playbook, "from": os.uname().nodename}
        artifacts.note("event", run_outcome.BEGUN, **where)
    artifacts.note("phase", phase_name)
    number = sum(1 for name in os.listdir(artifacts.directory) if name.startswith("facts-"))
    artifacts.save(f"facts-{number:02d}-{phase_name}.json", json.dumps(facts, indent=1, sort_keys=True, default=str))


def journal_end(action: QuorumshiftAction, took: Iterable[Any] = ()) -> None:
    """Journal how long the steps of the run's plan took, and that it ended well. A run that holds the run lock ends
    where that is closed."""
    for step in took:
        action.artifacts().note(
            "event", "took", node_restart=step.name, planned_s=step.planned_s, took_s=round(step.took_s, 3)
        )
    if "run_lock" not in action.session:
        action.artifacts().note("event", run_outcome.ENDED, result=run_outcome.OK)
