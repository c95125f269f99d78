# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a run in one direction may begin, and whether it has something to change. Pure."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase, same_cluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.restart import plain_restart
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rollback import excluded, rollback
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import run_lock
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import backups
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import advice
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import ClusterFacts

NO_FORWARD = (phase.UNKNOWN, phase.REVERTING, phase.KRAFT_NATIVE)
_IDS = {phase.REVERTING: "(QS-PHASE-002)", phase.KRAFT_NATIVE: "(QS-PHASE-003)"}


class Wanted(NamedTuple):
    """What a run is to do. `direction`: of core.run.run_lock, '' for one that changes nothing; `target`: of a rollback.
    The others say what the operator asked for: to finalize, to remove the backups of ZooKeeper, to restore, to apply
    a reassignment or to cancel it, to change features, to change the quorum."""

    direction: str = ""
    target: str = ""
    finalizes: bool = False
    removes_backups: bool = False
    restores: bool = False
    reassigns: bool = False
    cancels: bool = False
    updates: bool = False
    changes_quorum: bool = False

    @property
    def only_shows(self) -> bool:
        """Return whether the run shows something that it could change as well, and changes nothing."""
        asked = {
            run_lock.FEATURES: self.updates,
            run_lock.QUORUM: self.changes_quorum,
            run_lock.REASSIGN: self.reassigns or self.cancels,
        }
        return not asked.get(self.direction, True)


def explain_phase(state: Mapping) -> str:
    """Return why nothing goes on in this phase: what blocks the next step, or the next step itself.

    `state`: the result of migration_state."""
    reasons = [advice.sentences(block["text"], block["do"]) for block in state["blocks"]]
    said = f"The phase is {state['phase']}: {'. '.join(reasons) or state['next']['text']}"
    return f"{said} {_IDS.get(state['phase'], '(QS-PHASE-001)')}"


def is_idle(wanted: Wanted, facts: ClusterFacts, detected: phase.PhaseResult) -> bool:
    """Return whether a run has nothing to change now."""
    if wanted.direction == run_lock.RESTART:
        return False
    if wanted.direction == run_lock.RESTORE:
        return not wanted.restores
    if wanted.direction in (run_lock.REASSIGN, run_lock.FEATURES, run_lock.QUORUM):
        return wanted.only_shows
    if wanted.direction == run_lock.BACK:
        return rollback.is_idle(facts, detected, wanted.target)
    waits = detected.phase == phase.DUAL_WRITE and not wanted.finalizes
    removes = wanted.removes_backups and backups.find_backups(facts["nodes"], phase.cluster_id(facts))
    return waits or (detected.phase == phase.FINALIZED and not removes)


def refusal(
    wanted: Wanted,
    facts: ClusterFacts,
    detected: phase.PhaseResult,
    state: Mapping[str, Any],
    cluster_id: str | None,
    locked: str | None,
) -> str | None:
    """Return why a run may not change anything, None when it may.

    `state`: the result of migration_state, with `reasons`; `cluster_id`: the first one of this run; `locked`: why it
    may not take the run lock, None when it may."""
    if not wanted.direction:
        return None
    other = same_cluster.refusal(facts, cluster_id, () if cluster_id else [same_cluster.HOSTS])
    if wanted.only_shows:
        return other  # shows it in each phase, also under the run lock of another run
    unreached = any(not node.get("reached", True) for node in facts["nodes"].values())
    if unreached and locked and not same_cluster.troubles(facts, cluster_id):
        refused: str | None = locked  # hosts that do not answer are why no cluster id could be read
    else:
        refused = other or excluded.refusal(facts, detected, wanted.direction) or locked
    if refused:
        leave_out = "To leave out hosts that are dead, add -e quorumshift_exclude_hosts=HOST,HOST (QS-ADMIN-003)"
        excludes = wanted.direction in (run_lock.REASSIGN, run_lock.FEATURES, run_lock.QUORUM)
        return f"{refused}. {leave_out}" if excludes and unreached else refused
    if wanted.direction == run_lock.REASSIGN:
        # In any phase a reassignment may be cancelled: migrations wait for the end of reassignments
        return None if wanted.cancels else _refuse_change(facts, detected, state, plain_restart.REASSIGNMENT)
    if wanted.direction == run_lock.FEATURES:
        return _refuse_change(facts, detected, state, plain_restart.FEATURES)
    # A restart that was left half done is finished first, whatever the phase
    finishes = bool(state["unfinished"])
    if wanted.direction == run_lock.RESTART:
        return plain_restart.refusal(facts, detected)
    if wanted.direction == run_lock.QUORUM:
        return plain_restart.refusal(facts, detected, plain_restart.QUORUM)
    if wanted.direction == run_lock.BACK and not finishes:
        return rollback.refusal(facts, detected, wanted.target)
    if wanted.direction == run_lock.FORWARD and wanted.removes_backups and backups.refusal(state["phase"]):
        return backups.refusal(state["phase"])
    stuck = state["phase"] in NO_FORWARD and not finishes
    if wanted.direction == run_lock.FORWARD and (stuck or phase.find_restoring(facts)):
        return state["reasons"]
    return None


def _refuse_change(facts: ClusterFacts, detected: phase.PhaseResult, state: Mapping[str, Any], what: str) -> str | None:
    """Return why a change that restarts no node may not begin, None when it may."""
    refused = plain_restart.refusal(facts, detected, what)
    if refused or not state["unfinished"]:
        return refused
    return (
        f"a restart is unfinished, or a controller is down: {', '.join(state['unfinished'])}. To finish it, run "
        "quorumshift.kafka.restart (QS-ADMIN-003)"
    )
