# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""migration_state: detect the phase, name the run at its first call, print status or plan where asked to."""

from __future__ import annotations

import getpass
import json
import os
import re
import secrets
import shlex
import time

from ansible import context
from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates, invariants
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase, same_cluster, transitions
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import inventory
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.restart import plain_restart
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rollback import excluded, rollback
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import history, run_lock, run_outcome
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import (
    backups,
    planning,
    planning_screen,
    screen,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import advice
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import baseline, plans, process_identity
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import PROBE, QuorumshiftAction, display

# Options of ansible-playbook that the printed command repeats, by the name that Ansible gives them
REPEATED = {"inventory": "-i", "vault_ids": "--vault-id", "vault_password_files": "--vault-password-file"}
STATUS_VERSION = 1  # of status.schema.json
NO_FORWARD = (phase.UNKNOWN, phase.REVERTING, phase.KRAFT_NATIVE)
_IDS = {phase.REVERTING: "(QS-PHASE-002)", phase.KRAFT_NATIVE: "(QS-PHASE-003)"}


class ActionModule(QuorumshiftAction):
    """Detects the phase; the module's documentation lists what the options of this action do."""

    FILLS = (*PROBE, "soak", "canary", "concurrency")
    OWN = ("show", "history", "record", "direction", "announce", "gate", "plan")

    def act(self, args):
        direction, shows = self.own.get("direction", ""), self.own.get("show", False)
        target = (self.variable("quorumshift_rollback_to") or "") if direction in ("", run_lock.BACK) else ""
        asked = self.own.get("plan", "none") if direction not in (run_lock.RESTART, run_lock.REASSIGN) else "none"
        known = target in ("", *rollback.TARGETS)
        result = self.module(self.fill({**args, **({"plan_to": target} if asked != "none" and known else {})}))
        if result.get("failed"):
            return result
        facts = result.pop("facts")
        detected = phase.detect(facts)
        first = not self.session
        session = dict(self.session) or {"run": time.strftime("%Y%m%dT%H%M%S") + "-" + secrets.token_hex(2)}
        # The first answer of a run counts to its end: sources that change meanwhile are of another cluster
        session.update(cluster_id=session.get("cluster_id") or result["cluster_id"], phase=result["phase"])
        if session["cluster_id"] and not same_cluster.is_cluster_id(session["cluster_id"]):
            refused = same_cluster.refusal(facts, session["cluster_id"])
            return {"failed": True, "msg": f"{refused}. Nothing was changed."}
        result["reasons"] = self._reasons(result)
        result["backups"] = backups.find_backups(facts["nodes"], result["cluster_id"])
        result["idle"] = self._idle(direction, facts, detected, target) and not result["unfinished"]
        unproved = direction != run_lock.FORWARD and rollback.is_unproved(facts, detected, session["run"])
        if unproved:
            result["next"] = screen.TO_PROVE._asdict()
        newest, alive = self._newest(facts["nodes"], session)
        finishes = None if direction or unproved else screen.next_after_failure(detected.phase, newest, alive)
        if finishes:
            result["next"] = finishes._asdict()
        again = screen.find_given_again(result["next"]["playbook"], newest, alive)
        result["next"]["given"] = process_identity.select_repeatable(again)
        result["to_prove"] = unproved and direction == run_lock.BACK and target == rollback.ZK
        verdict = self._run_lock(facts["nodes"], session, direction, result["idle"] and not result["to_prove"])
        result["ansible_facts"] = {"quorumshift_session": session}
        self.session = session
        # In check mode nothing is done, so only what is due now can be shown
        ahead = transitions.step_names_ahead(result["phase"], target, due_alone=self._task.check_mode) if known else []
        result["ahead"] = ahead
        self._gate(result, self.own.get("gate") or gates.choose_gate_to_verify(result["phase"]))
        result["zookeeper_zxid"] = facts["zookeeper"].get("zxid")
        plan = self.planned() if shows else None
        took = planning.measure_took(plan, self.artifacts().events(), session["run"]) if plan else []
        if self.own.get("record", True) and not self._task.check_mode:
            only_plans = direction == run_lock.REASSIGN and result["idle"]
            self._record(facts, result["phase"], first, last=shows or only_plans, took=took)
        events = self.artifacts().all_events()
        doubts = history.find_contradictions(facts["nodes"], result["cluster_id"], events) if first else []
        if shows:
            self._show(result, facts, target, verdict.newest, doubts, took, passed_gates(events))
            self._save_status(result)
        elif self.own.get("announce", True):
            self.say(f"cluster {result['cluster_id']}, phase {result['phase']}; next: {result['next']['text']}")
            for doubt in doubts:
                self.say(f"journal: {doubt}")
            if first and self.own.get("record", True) and not self._task.check_mode:
                self.say(f"report: {self._artifacts().page}")
        why = self._refused(direction, facts, detected, result, verdict.refused, target)
        if (
            shows
            and not direction
            and boolean(self.variable("quorumshift_fail_on_blocks") or False)
            and result["blocks"]
        ):
            why = result["reasons"]
        if why:
            return {"failed": True, "msg": f"{why}. Nothing was changed."}
        return self._plan(result, target, asked)

    def _gate(self, result, name):
        """Add the gate that was asked for, and what is compared before it opens."""
        gate = gates.GATES.get(name)
        result["gate"] = name
        result["views"] = [*gate.needs, *gate.takes] if gate else []
        result["compares_records"] = name in gates.DATA_GATES
        result["baseline"] = baseline.position(self.artifacts().cluster)

    def _refused(self, direction, facts, detected, result, locked, target):
        """Return why a run of this direction may not change anything, None when it may."""
        if not direction:
            return None
        cluster_id = self.session["cluster_id"]
        other = same_cluster.refusal(facts, cluster_id, () if cluster_id else [same_cluster.HOSTS])
        unreached = any(not node.get("reached", True) for node in facts["nodes"].values())
        if unreached and locked and not same_cluster.troubles(facts, cluster_id):
            refused = locked  # hosts that do not answer are why no cluster id could be read
        else:
            refused = other or excluded.refusal(facts, detected, direction) or locked
        if refused:
            leave_out = "To leave out hosts that are dead, add -e quorumshift_exclude_hosts=HOST,HOST (QS-ADMIN-003)"
            return f"{refused}. {leave_out}" if direction == run_lock.REASSIGN and unreached else refused
        if direction == run_lock.REASSIGN:
            return self._reassignment_refused(facts, detected, result)
        # A restart that was left half done is finished first, whatever the phase
        finishes = bool(result["unfinished"])
        if direction == run_lock.RESTART:
            return plain_restart.refusal(facts, detected)
        if direction == run_lock.BACK and not finishes:
            return rollback.refusal(facts, detected, target)
        if direction == run_lock.FORWARD and self._removes_backups() and backups.refusal(result["phase"]):
            return backups.refusal(result["phase"])
        stuck = result["phase"] in NO_FORWARD and not finishes
        if direction == run_lock.FORWARD and (stuck or phase.find_restoring(facts)):
            return result["reasons"]
        return None

    @staticmethod
    def _reasons(result):
        """Return why nothing goes on in this phase: what blocks the next step, or the next step itself."""
        reasons = [advice.sentences(block["text"], block["do"]) for block in result["blocks"]]
        said = f"The phase is {result['phase']}: {'. '.join(reasons) or result['next']['text']}"
        return f"{said} {_IDS.get(result['phase'], '(QS-PHASE-001)')}"

    def _reassignment_refused(self, facts, detected, result):
        """Return why no reassignment may begin, None when it may. A cancellation may in any phase: migrations wait for
        the end of reassignments."""
        if boolean(self.variable("reassign_cancel") or False):
            return None
        refused = plain_restart.refusal(facts, detected, plain_restart.REASSIGNMENT)
        if refused or not result["unfinished"]:
            return refused
        return (
            f"a restart is unfinished, or a controller is down: {', '.join(result['unfinished'])}. To finish it, run "
            "quorumshift.kafka.restart (QS-ADMIN-003)"
        )

    def _plan(self, result, target, asked):
        """Show the plan where it was asked for. A run that has to change something goes on without a plan: the step
        that cannot be planned reports the cause. A run that only shows the plan fails."""
        alone = asked == "alone"
        if alone and result["phase"] == phase.UNKNOWN:
            return {"failed": True, "msg": f"{result['reasons']}. Nothing was changed."}
        if asked == "none" or not (alone or self._task.check_mode or not result["idle"]):
            return result
        plan, error = result.pop("plan", None), result.pop("plan_error", None)
        shows = alone or self._task.check_mode
        if error or plan is None:
            if shows:
                return {"failed": True, "msg": f"{error or 'There is no plan'}. Nothing was changed."}
            self.say(f"no plan: {error}")
            return result
        plans.show(self, plan, result["phase"], target, shows)
        if alone and not self._task.check_mode:
            self.artifacts().note("event", "ended", result="ok")
        return {**result, "plan": plan}

    def _idle(self, direction, facts, detected, target):
        """Return whether a run of this direction has nothing to change now."""
        if direction == run_lock.RESTART:
            return False
        if direction == run_lock.RESTORE:
            return not self.variable("quorumshift_restore_token")
        if direction == run_lock.REASSIGN:
            return not any(boolean(self.variable(name) or False) for name in ("reassign_apply", "reassign_cancel"))
        if direction == run_lock.BACK:
            return rollback.is_idle(facts, detected, target)
        waits = detected.phase == phase.DUAL_WRITE and not self.variable("quorumshift_finalize_token")
        removes = self._removes_backups() and backups.find_backups(facts["nodes"], phase.cluster_id(facts))
        return waits or (detected.phase == phase.FINALIZED and not removes)

    def _removes_backups(self):
        return boolean(self.variable("quorumshift_remove_backups") or False)

    def _run_lock(self, nodes, session, direction, idle):
        """Decide on the run lock; a run that will change something finds in its session what it has to lock."""
        cluster_id, force_unlock = session["cluster_id"] or "", self.variable("quorumshift_force_unlock") or ""
        _newest, alive = self._newest(nodes, session)
        # In plain ZooKeeper mode no direction can be reversed: a rollback that was killed then was at its end.
        reversible = direction if session["phase"] != phase.ZK else ""
        me = {"run": session["run"], "direction": reversible, "alive": alive}
        verdict = run_lock.detect(nodes, cluster_id, me, force_unlock)
        changes = direction and not self._task.check_mode and not idle
        if changes and "run_lock" not in session:
            session["run_lock"] = {
                "number": verdict.number,
                "hosts": verdict.hosts,
                "direction": direction,
                "target": self.variable("quorumshift_rollback_to") if direction == run_lock.BACK else None,
                "excluded": sorted(self.excluded()),
            }
            if verdict.over:
                self.say(f"takes over the run lock of run {verdict.over}")
        return verdict

    @staticmethod
    def _newest(nodes, session):
        """Return the newest run lock, and whether its run is at work (None if unknown)."""
        newest = run_lock.find_newest(nodes, session["cluster_id"] or "")
        return newest, process_identity.is_alive((newest or {}).get("process"))

    def _show(self, result, facts, target, newest, doubts, took, passed):
        """Print the screen of `status`, with what became of the run's plan before it."""
        other = run_lock.status_line(newest) if newest and newest["run"] != self.session["run"] else None
        before = planning_screen.took_lines(took, time.time() - self.artifacts().events()[0]["t"]) if took else []
        command = self.command(result["next"], result["token"])
        lines = before + screen.render(result, passed, command, other, doubts)
        lines += [
            f"  ! {text}." for text in excluded.explain_return(self._excluded_paths(result["cluster_id"]), target)
        ]
        lines += [f"  ! {text}." for text in self._missing(facts)]
        # Any restart, planned or not, would lock clients out
        lines += [f"  ! {text}." for text in invariants.find_lost_credentials(facts, result["phase"])]
        if result["phase"] == phase.FINALIZED and not (self._removes_backups() and not self._task.check_mode):
            reminders = backups.reminders(facts["nodes"], result["cluster_id"], facts["time"])
            lines += [f"  ! {text}." for text in reminders]
        if self.own.get("history", False):
            lines += history.lines(history.runs(facts["nodes"], result["cluster_id"]))
        for line in lines:
            display.display(line)

    @staticmethod
    def _missing(facts):
        """Return what hosts lack that were read: properties files, services, log directories."""
        read = {host: node for host, node in facts["nodes"].items() if node.get("reached")}
        found = [finding for host, node in read.items() for finding in inventory.missing(host, node)]
        for host, node in read.items():
            found += inventory.missing_directories(host, node) if node["role"] == "broker" else []
        return [advice.sentences(finding.seen, finding.do) for finding in found]

    def _save_status(self, result):
        """Keep what the screen shows as JSON (status.schema.json), for monitoring and job templates."""
        kept = {key: result[key] for key in ("cluster_id", "phase", "nodes", "quorum", "blocks", "reasons", "next")}
        status = {"version": STATUS_VERSION, "at": round(time.time(), 3), "run": self.session["run"], **kept}
        status["next"] = {key: status["next"][key] for key in ("text", "playbook", "target")}
        status["rollback"] = result["rollback_readiness"]
        path = self._artifacts().save_status(json.dumps(status, default=str))
        display.display(f"  as JSON: {path}")
        if self.own.get("record", True) and not self._task.check_mode:
            display.display(f"  report:  {self._artifacts().page}")

    def _excluded_paths(self, cluster_id):
        """Return where each excluded node has its files, by its own variables (excluded.explain_return)."""
        roles = {host: node["role"] for host, node in self.excluded().items() if node["role"]}
        return {
            host: {
                "role": role,
                "config_file": self.node_option("config_file", host, role),
                "log_dir": self.node_option("log_dir", host, role),
                "state": os.path.join(self.node_option("state_dir", host, role), cluster_id or ""),
            }
            for host, role in roles.items()
        }

    def command(self, following, token):
        """Return what the operator types next, as they typed this: the same inventory, from the same directory."""
        if not following["playbook"]:
            return None
        variables = dict(following["given"])
        if following["token"]:
            variables["quorumshift_finalize_token"] = token or "TOKEN"
        if following["playbook"] == "rollback":
            variables["quorumshift_rollback_to"] = following["target"]
        given = [part for name, value in variables.items() for part in ("-e", _assigned(name, value))]
        if os.environ.get("JOB_ID") or os.environ.get("AWX_JOB_ID"):
            named = ", ".join(given[1::2])
            extra = f" with the extra variable{'s' if len(variables) > 1 else ''} {named}" if given else ""
            return f"launch the job template of the playbook {following['playbook']}{extra}"
        typed = (context.CLIARGS.get("args") or ("",))[0]
        playbook = re.sub(r"[a-z_]+(\.ya?ml)?$", lambda match: following["playbook"] + (match.group(1) or ""), typed)
        repeated = [
            part
            for option, flag in REPEATED.items()
            for value in context.CLIARGS.get(option) or ()
            for part in (flag, shortest(value))
        ]
        files = [
            part for value in context.CLIARGS.get("extra_vars") or () if value.startswith("@") for part in ("-e", value)
        ]
        return shlex.join(["ansible-playbook", *repeated, playbook, *files, *given])

    def _record(self, facts, phase_name, first, last, took):
        """Journal the phase, and the run's begin and end with what became of its plan; keep the facts."""
        artifacts = self.artifacts()
        if first:
            playbook = (context.CLIARGS.get("args") or ("",))[0]
            artifacts.note(
                "event", run_outcome.BEGUN, user=getpass.getuser(), playbook=playbook, **{"from": os.uname().nodename}
            )
        artifacts.note("phase", phase_name)
        number = sum(1 for name in os.listdir(artifacts.directory) if name.startswith("facts-"))
        artifacts.save(
            f"facts-{number:02d}-{phase_name}.json", json.dumps(facts, indent=1, sort_keys=True, default=str)
        )
        for step in took:
            artifacts.note(
                "event", "took", node_restart=step.name, planned_s=step.planned_s, took_s=round(step.took_s, 3)
            )
        if last and "run_lock" not in self.session:  # else the run ends where its lock is closed
            artifacts.note("event", "ended", result="ok")


def _assigned(name, value):
    """Return a variable as -e takes it. Ansible splits NAME=VALUE at blanks, as a shell does."""
    return f"{name}={shlex.quote(value)}"


def shortest(path):
    """Return a path as it is shortest from here."""
    return min(path, os.path.relpath(path), key=len) if os.path.exists(path) else path


def passed_gates(events):
    """Return the names of the gates passed so far on this cluster, oldest first."""
    return [event["name"] for event in events if event["kind"] == "gate" and event.get("result") == "pass"]
