# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""status: print the status screen and keep it as JSON."""

from __future__ import annotations

import json
import os
import time

from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.quorumshift.kafka.plugins.module_utils import message_ids
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import reassign_screen
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import invariants
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import inventory
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rollback import excluded
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import history, node_key, run_lock
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import (
    backups,
    pauses,
    planning,
    planning_screen,
    screen,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import advice
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import job_stats, phase_reading
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction, display

STATUS_VERSION = 1  # of status.schema.json


class ActionModule(QuorumshiftAction):
    """Prints the phase, every node, what blocks the next step, and the command to type next."""

    def act(self, args):
        result, reading = phase_reading.read(self, args)
        if reading is None:
            return result
        begins = not self.session
        session = phase_reading.name_run(self, result)
        plan = self.planned()
        took = planning.measure_took(plan, self.artifacts().events(), session["run"]) if plan else []
        if self._records:
            phase_reading.journal(self, reading.facts, result["phase"], begins)
            phase_reading.journal_end(self, took)
        events = self.artifacts().all_events()
        doubts = history.find_contradictions(reading.facts["nodes"], result["cluster_id"], events) if begins else []
        result["screen"] = self._show(result, reading, doubts, took, passed_gates(events))
        self._save_status(result)
        result["ansible_stats"] = job_stats.of_state(result, session["run"])
        if boolean(self.variable("quorumshift_fail_on_blocks") or False) and result["blocks"]:
            return {"failed": True, "msg": f"{result['reasons']}. Nothing was changed."}
        return result

    @property
    def _records(self):
        """Return whether the journal and the facts are kept."""
        return boolean(self.own.get("record", True)) and not self._task.check_mode

    def _reassignments(self):
        """Return the line about reassignments, None where none were asked for."""
        found = self.own.get("reassignments")
        if not found:
            return None
        if "reassignments" not in found:
            return f"reassignments: not read: {message_ids.drop_full_stop(found.get('msg') or 'no answer')}"
        return reassign_screen.status_line(len(found["reassignments"]), found["progress"], found["throttles"])

    def _show(self, result, reading, doubts, took, passed):
        """Print the screen of `status`, with what became of the run's plan before it; return its lines."""
        facts, newest = reading.facts, reading.newest
        target = self.variable("quorumshift_rollback_to") or ""
        other = run_lock.status_line(newest) if newest and newest["run"] != self.session["run"] else None
        before = planning_screen.took_lines(took, time.time() - self.artifacts().events()[0]["t"]) if took else []
        command = job_stats.command(result["next"], result["token"])
        metadata = screen.metadata_lines(facts, result["phase"])
        lines = before + screen.render(result, passed, command, other, doubts, self._reassignments(), metadata)
        lines += [
            f"  ! {text}." for text in excluded.explain_return(self._excluded_paths(result["cluster_id"]), target)
        ]
        lines += [f"  ! {text}." for text in self._missing(facts)]
        lines += [f"  ! {text}." for text in pauses.explain(facts["nodes"])]
        # Any restart, planned or not, would lock clients out
        lines += [f"  ! {text}." for text in invariants.find_lost_credentials(facts, result["phase"])]
        removes = boolean(self.variable("quorumshift_remove_backups") or False) and not self._task.check_mode
        if result["phase"] == phase.FINALIZED and not removes:
            reminders = backups.reminders(facts["nodes"], result["cluster_id"], facts["time"])
            lines += [f"  ! {text}." for text in reminders]
        if boolean(self.own.get("history", False)):
            lines += history.lines(history.runs(facts["nodes"], result["cluster_id"]))
        for line in lines:
            display.display(line)
        return lines

    @staticmethod
    def _missing(facts):
        """Return what hosts lack that were read: properties files, services, log directories; and the files of an
        earlier version, which stop each run."""
        read = {host: node for host, node in facts["nodes"].items() if node.get("reached")}
        found = list(inventory.old_layout(facts))
        found += [finding for host, node in read.items() for finding in inventory.missing(host, node)]
        for host, node in read.items():
            found += inventory.missing_directories(host, node) if node["role"] == "broker" else []
        return [advice.sentences(finding.seen, finding.do) for finding in found]

    def _save_status(self, result):
        """Keep what the screen shows as JSON (status.schema.json), for monitoring and job templates."""
        kept = {
            key: result[key]
            for key in ("cluster_id", "phase", "nodes", "quorum", "features", "blocks", "reasons", "next")
        }
        status = {"version": STATUS_VERSION, "at": round(time.time(), 3), "run": self.session["run"], **kept}
        status["next"] = {key: status["next"][key] for key in ("text", "playbook", "target")}
        status["rollback"] = result["rollback_readiness"]
        path = self._artifacts().save_status(json.dumps(status, default=str))
        display.display(f"  as JSON: {path}")
        if self._records:
            display.display(f"  report:  {self._artifacts().page}")

    def _excluded_paths(self, cluster_id):
        """Return where each excluded node has its files, by its own variables (excluded.explain_return)."""
        roles = {host: node["role"] for host, node in self.excluded().items() if node["role"]}
        return {
            host: {
                "role": role,
                "config_file": self.node_option("config_file", host, role),
                "log_dir": self.node_option("log_dir", host, role),
                "state": self._state_path(host, role, cluster_id),
            }
            for host, role in roles.items()
        }

    def _state_path(self, host, role, cluster_id):
        """Return the directory of an excluded node on its host, as a pattern of the shell where its id is unknown."""
        node_id = self.excluded()[host].get("node_id")
        key = node_key.node_key(role, node_id) if isinstance(node_id, int) else f"{role}-*"
        return os.path.join(self.node_option("state_dir", host, role), cluster_id or "", key)


def passed_gates(events):
    """Return the names of the gates passed so far on this cluster, oldest first."""
    return [event["name"] for event in events if event["kind"] == "gate" and event.get("result") == "pass"]
