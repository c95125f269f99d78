# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The begin of a run, or another detection of its phase: run lock, journal, refusals, plan."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import lost_logs, phase, transitions
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rollback import rollback
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import history, run_lock, run_outcome
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import directions
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import (
    job_stats,
    phase_reading,
    plans,
    restart_journal,
)
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


def begin(action: QuorumshiftAction) -> dict[str, Any]:
    """Return the result of migration_state with what the run is to do, or why it may not begin.

    `action`: has taken the options direction, plan and record."""
    direction, shown = action.own.get("direction", ""), action.own.get("plan", "none")
    if direction in run_lock.PLAIN:
        shown = "none"
    wanted = _wanted(action, direction)
    known = wanted.target in ("", *rollback.TARGETS)
    plan_to = {"plan_to": wanted.target} if shown != "none" and known else {}
    result, reading = phase_reading.read(action, plan_to, direction)
    if reading is None:
        return result
    begins = not action.session
    session = phase_reading.name_run(action, result)
    result["ansible_stats"] = job_stats.of_state(result, session["run"])
    refused = _select_to_format(action, result, reading, session, begins)
    if refused:
        return {"failed": True, "msg": f"{refused}. Nothing was changed."}
    # A change of features finishes no restart, and neither does a run that only shows
    finishes = bool(result["unfinished"]) and direction != run_lock.FEATURES and not wanted.only_shows
    result["idle"] = directions.is_idle(wanted, reading.facts, reading.detected) and not finishes
    result["to_prove"] = reading.unproved and direction == run_lock.BACK and wanted.target == rollback.ZK
    locked = _decide_lock(action, reading, session, wanted, result["idle"] and not result["to_prove"])
    # In check mode nothing is done, so only what is due now can be shown: nothing while a node is still to be started
    due_alone = action._task.check_mode
    nodes = reading.facts["nodes"]
    to_start = [host for host in result["unfinished"] if not nodes[host].get("running")] if due_alone else []
    result["ahead"] = (
        transitions.step_names_ahead(result["phase"], wanted.target, due_alone=due_alone)
        if known and not to_start
        else []
    )
    records = boolean(action.own.get("record", True)) and not action._task.check_mode
    if records:
        phase_reading.journal(action, reading.facts, result["phase"], begins)
        restart_journal.note_missed(action.artifacts(), reading.facts["nodes"])
        if wanted.only_shows:
            phase_reading.journal_end(action)
    action.say(f"cluster {result['cluster_id']}, phase {result['phase']}; next: {result['next']['text']}")
    if to_start and finishes and begins:
        how = {host: "formatted and started" if host in result["to_format"] else "started" for host in to_start}
        starts = ", ".join(f"{host} is {done}" for host, done in how.items())
        action.say(f"check mode: first {starts}. What follows is shown once that is done")
    if begins:
        events = action.artifacts().all_events()
        for doubt in history.find_contradictions(reading.facts["nodes"], result["cluster_id"], events):
            action.say(f"journal: {doubt}")
        if records:
            action.say(f"report: {action._artifacts().page}")
    cluster_id = session["cluster_id"]
    why = directions.refusal(wanted, reading.facts, reading.detected, result, cluster_id, locked)
    if why:
        return _refused(result, why)
    return _plan(action, result, wanted.target, shown)


def _refused(result: dict[str, Any], why: str) -> dict[str, Any]:
    return {"failed": True, "msg": f"{why}. Nothing was changed.", "stats": result["ansible_stats"]}


def _wanted(action: QuorumshiftAction, direction: str) -> directions.Wanted:
    """Return what the run is to do, by its direction and the operator's variables."""
    goes_back = direction in ("", run_lock.BACK)
    return directions.Wanted(
        direction,
        (action.variable("quorumshift_rollback_to") or "") if goes_back else "",
        finalizes=bool(action.variable("quorumshift_finalize_token")),
        removes_backups=boolean(action.variable("quorumshift_remove_backups") or False),
        restores=bool(action.variable("quorumshift_restore_token")),
        reassigns=boolean(action.variable("reassign_apply") or False),
        cancels=boolean(action.variable("reassign_cancel") or False),
        updates=boolean(action.variable("features_apply") or False),
        changes_quorum=boolean(action.variable("quorum_apply") or False),
    )


def _select_to_format(
    action: QuorumshiftAction,
    result: dict[str, Any],
    reading: phase_reading.Reading,
    session: dict[str, Any],
    begins: bool,
) -> str | None:
    """Add the controllers whose disk is lost, as the operator's token says, to those that the run starts. Return why
    the token is not accepted, None where it is or where none is given. It is checked at the begin of the run."""
    down = any(block.id == lost_logs.BLOCK for block in reading.detected.blocks)
    hosts = lost_logs.find_formattable(reading.facts) if down else []
    given = action.variable("quorumshift_format_token") or ""
    if begins:
        wanted = lost_logs.make_token(reading.facts["nodes"], hosts, result["cluster_id"] or "") if hosts else ""
        # Where nothing is down, the same command is repeated after the controller is up
        if given and down and given != wanted:
            what = f"the controllers that lost their log are {', '.join(hosts)}" if hosts else "none may be formatted"
            return (
                f"quorumshift_format_token is {given!r}, which is not the token of now: {what}. The playbook "
                "quorumshift.kafka.status prints it (QS-PHASE-011)"
            )
        session["to_format"] = hosts if given else []
    result["to_format"] = [host for host in hosts if host in session.get("to_format", [])]
    result["unfinished"] = sorted({*result["unfinished"], *result["to_format"]})
    return None


def _decide_lock(
    action: QuorumshiftAction,
    reading: phase_reading.Reading,
    session: dict[str, Any],
    wanted: directions.Wanted,
    idle: bool,
) -> str | None:
    """Return why the run may not lock the cluster, None when it may. A run that will change something finds in its
    session what it has to lock."""
    # In plain ZooKeeper mode no direction can be reversed: a rollback that was killed then was at its end.
    reversible = wanted.direction if session["phase"] != phase.ZK else ""
    me = {"run": session["run"], "direction": reversible, "alive": reading.alive}
    force_unlock = action.variable("quorumshift_force_unlock") or ""
    verdict = run_lock.detect(reading.facts["nodes"], session["cluster_id"] or "", me, force_unlock)
    if wanted.direction and not action._task.check_mode and not idle and "run_lock" not in session:
        session["run_lock"] = {
            "number": verdict.number,
            "hosts": verdict.hosts,
            "direction": wanted.direction,
            "target": wanted.target if wanted.direction == run_lock.BACK else None,
            "excluded": sorted(action.excluded()),
        }
        if verdict.over:
            action.say(f"takes over the run lock of run {verdict.over}")
    return verdict.refused


def _plan(action: QuorumshiftAction, result: dict[str, Any], target: str, shown: str) -> dict[str, Any]:
    """Show the plan where it was asked for. A run that has to change something goes on without a plan: the step
    that cannot be planned reports the cause. A run that only shows the plan fails."""
    alone = shown == "alone"
    if alone and result["phase"] == phase.UNKNOWN:
        return _refused(result, result["reasons"])
    if shown == "none" or not (alone or action._task.check_mode or not result["idle"]):
        return result
    plan, error = result.pop("plan", None), result.pop("plan_error", None)
    shows = alone or action._task.check_mode
    if error or plan is None:
        if shows:
            return _refused(result, error or "There is no plan")
        action.say(f"no plan: {error}")
        return result
    plans.show(action, plan, result["phase"], target, shows)
    if alone and not action._task.check_mode:
        action.artifacts().note("event", run_outcome.ENDED, result=run_outcome.OK)
    return {**result, "plan": plan}
