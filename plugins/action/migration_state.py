# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""migration_state: judges the phase, names the run at its first call, prints the screen where asked to."""

from __future__ import annotations

import getpass
import json
import os
import re
import secrets
import shlex
import time

from ansible import context
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import (
    advice,
    excluded,
    gates,
    history,
    phase,
    planning,
    planning_screen,
    rollback,
    run_lock,
    screen,
)
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import identity
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import ProbeAction, display

# What the printed command takes over from the one that was typed, by the name that Ansible gives it.
REPEATED = {"inventory": "-i", "vault_ids": "--vault-id", "vault_password_files": "--vault-password-file"}
NO_WAY_ON = (phase.UNKNOWN, phase.REVERTING, phase.KRAFT_NATIVE)


class ActionModule(ProbeAction):
    """Judges. Task options of this action: `show` prints one screen, `history` every run below it, `record` keeps the
    facts as evidence, `tell` says the phase in a line, `gate` is the one whose views are asked for. `direction`
    is that of a run which is to change something: `forward` fails in the midst of a restore, and in a phase from which
    no migration goes on, unless a turn that was left half done has to be finished first; `back` fails where there is
    no way back; `restore` changes nothing without its word."""

    def act(self, args: dict) -> dict:
        show, record, direction = args.pop("show", False), args.pop("record", True), args.pop("direction", "")
        past, tell, gate = args.pop("history", False), args.pop("tell", True), args.pop("gate", "")
        args.setdefault("soak", self.variable("quorumshift_soak") or "24h")
        result = self.module(self.filled(args))
        if result.get("failed"):
            return result
        facts = result.pop("facts")
        first = not self.session
        session = dict(self.session) or {"run": time.strftime("%Y%m%dT%H%M%S") + "-" + secrets.token_hex(2)}
        session.update(cluster_id=result["cluster_id"], phase=result["phase"])
        target = self.variable("quorumshift_rollback_to") or ""
        detected = phase.detect(facts)
        result["idle"] = self._idle(direction, facts, detected, target) and not result["unfinished"]
        unproved = direction != run_lock.FORWARD and rollback.unproved(facts, detected, session["run"])
        if unproved:
            result["next"] = screen.TO_PROVE._asdict()
        result["to_prove"] = unproved and direction == run_lock.BACK and target == rollback.ZK
        verdict = self._run_lock(facts["nodes"], session, direction, result["idle"] and not result["to_prove"])
        result["ansible_facts"] = {"quorumshift_session": session}
        self.session = session
        record = record and not self._task.check_mode
        plan = self.planned() if show else None
        took = planning.took(plan, self.artifacts().events(), session["run"]) if plan else []
        if record:
            self._record(facts, result["phase"], first, last=show, took=took)
        events = self.artifacts().all_events()
        passes = passed_gates(events)
        doubts = history.contradictions(facts["nodes"], result["cluster_id"], events) if first else []
        result["gate"] = gate or gates.by_hand(result["phase"])
        compared = gates.GATES.get(result["gate"])
        result["views"] = [*compared.needs, *compared.takes] if compared else []
        result["compares_records"] = result["gate"] in gates.DATA_GATES
        if tell and not show:
            self.say(f"cluster {result['cluster_id']}, phase {result['phase']}; next: {result['next']['text']}")
            for doubt in doubts:
                self.say(f"journal: {doubt}")
        if show:
            newest = verdict.newest or {}
            reported = run_lock.story(newest) if newest and newest["run"] != session["run"] else None
            before = planning_screen.took_lines(took, time.time() - self.artifacts().events()[0]["t"]) if took else []
            lines = before + screen.render(
                result, passes, self.command(result["next"], result["token"]), reported, doubts
            )
            where = os.path.join(self.variable("quorumshift_state_dir") or "", result["cluster_id"] or "")
            roles = [(host, node["role"]) for host, node in self.excluded().items()]
            lines += [f"  ! {text}." for text in excluded.returning(roles, target, where)]
            for line in lines + (history.lines(history.runs(facts["nodes"], result["cluster_id"])) if past else []):
                display.display(line)
        left_out = excluded.refused(facts, detected, direction) if direction else None
        if left_out:
            return {"failed": True, "msg": f"{left_out}. Nothing was changed."}
        if direction and verdict.refused:
            return {"failed": True, "msg": f"{verdict.refused}. Nothing was changed."}
        no_way_on = result["phase"] in NO_WAY_ON and not result["unfinished"]
        if direction == run_lock.FORWARD and (no_way_on or phase.restoring(facts)):
            reasons = [advice.sentences(block["text"], block["do"]) for block in result["blocks"]]
            why = ". ".join(reasons) or result["next"]["text"]
            return {"failed": True, "msg": f"The phase is {result['phase']}: {why}. Nothing was changed."}
        why = (
            rollback.refused(facts, detected, target)
            if direction == run_lock.BACK and not result["unfinished"]
            else None
        )
        if why:
            return {"failed": True, "msg": f"{why}. Nothing was changed."}
        return result

    def _idle(self, direction, facts, detected, target):
        """Say whether a run of this direction has nothing to change now."""
        if direction == run_lock.RESTORE:
            return not self.variable("quorumshift_restore_token")
        if direction == run_lock.BACK:
            return rollback.idle(facts, detected, target)
        waits = detected.phase == phase.DUAL_WRITE and not self.variable("quorumshift_finalize_token")
        return waits or detected.phase == phase.FINALIZED

    def _run_lock(self, nodes, session, direction, idle):
        """Judge the claim; a run that is to change something finds in the session what it has to claim."""
        cluster_id, force_unlock = session["cluster_id"] or "", self.variable("quorumshift_force_unlock") or ""
        alive = identity.alive((run_lock.newest_in(nodes, cluster_id) or {}).get("process"))
        # In plain ZooKeeper mode there is nothing left to turn round: a rollback that was killed then was at its end.
        node_restarts = direction if session["phase"] != phase.ZK else ""
        me = {"run": session["run"], "direction": node_restarts, "alive": alive}
        verdict = run_lock.detect(nodes, cluster_id, me, force_unlock)
        changes = direction and not self._task.check_mode and not idle
        if changes and "run_lock" not in session:
            target = self.variable("quorumshift_rollback_to") if direction == run_lock.BACK else None
            reported = {"number": verdict.number, "hosts": verdict.hosts}
            session["run_lock"] = {
                **reported,
                "direction": direction,
                "target": target,
                "excluded": sorted(self.excluded()),
            }
            if verdict.over:
                self.say(f"takes over the claim of run {verdict.over}")
        return verdict

    def command(self, following, token):
        """Return what the operator types next, as they typed this: the same inventory, from the same place."""
        if not following["playbook"]:
            return None
        given = ["-e", f"quorumshift_finalize_token={token or 'WORD'}"] if following["token"] else []
        if following["playbook"] == "rollback":
            given = ["-e", f"quorumshift_rollback_to={following['target']}"]
        if os.environ.get("JOB_ID") or os.environ.get("AWX_JOB_ID"):
            extra = f" with the extra variable {given[1]}" if given else ""
            return f"launch the job template of the playbook {following['playbook']}{extra}"
        typed = (context.CLIARGS.get("args") or ("",))[0]
        playbook = re.sub(r"[a-z_]+(\.ya?ml)?$", lambda match: following["playbook"] + (match.group(1) or ""), typed)
        repeated = [
            part
            for option, flag in REPEATED.items()
            for one in context.CLIARGS.get(option) or ()
            for part in (flag, shortest(one))
        ]
        files = [part for one in context.CLIARGS.get("extra_vars") or () if one.startswith("@") for part in ("-e", one)]
        return shlex.join(["ansible-playbook", *repeated, playbook, *files, *given])

    def _record(self, facts, phase, first, last, took):
        """Journal the phase, and the run's begin and end with what became of its plan; keep the facts as judged, for
        whoever looks into it."""
        artifacts = self.artifacts()
        if first:
            playbook = (context.CLIARGS.get("args") or ("",))[0]
            artifacts.note("event", "begun", user=getpass.getuser(), playbook=playbook, **{"from": os.uname().nodename})
        artifacts.note("phase", phase)
        number = sum(1 for name in os.listdir(artifacts.directory) if name.startswith("facts-"))
        artifacts.save(f"facts-{number:02d}-{phase}.json", json.dumps(facts, indent=1, sort_keys=True, default=str))
        for one in took:
            artifacts.note("event", "took", node_restart=one.name, planned_s=one.planned_s, took_s=round(one.took_s, 3))
        if last:
            artifacts.note("event", "ended", result="ok")


def shortest(path):
    """Return a path as it is shortest from here."""
    return min(path, os.path.relpath(path), key=len) if os.path.exists(path) else path


def passed_gates(events):
    """Return the names of the gates passed so far on this cluster, oldest first."""
    return [event["name"] for event in events if event["kind"] == "gate" and event.get("result") == "pass"]
