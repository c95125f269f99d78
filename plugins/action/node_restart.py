# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""node_turn: begins the turn on the host, shows its steps as they are taken, keeps its diff and times as evidence.

Task option of this action: `repair` ends the turn that an earlier run left unfinished on the host.
"""

from __future__ import annotations

import difflib
import time

from ansible_collections.quorumshift.kafka.plugins.module_utils.core import phase
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import file_changes
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction

_STEPS = {
    "begun": "begins",
    "keep the old file": "keeps the old properties file",
    "stop": "stops",
    "stop again": "did not come up, and is stopped",
    "revert the file": "gets its old properties file back",
    "write the file": "gets its new properties file",
    "format": "formats its log directory",
    "start": "starts",
    "register": "answers, waits for its registration",
}


class ActionModule(QuorumshiftAction):
    """Begins and watches one host's turn. Task option of this action: `part`, by default all of it; `begin` returns
    while the turn goes on, `see` watches one that was begun: for nodes that need each other to come up."""

    def act(self, args: dict) -> dict:
        # A host's turn may be taken in the batch of another one, which waits for it.
        host, part = self._task.delegate_to or self.vars["inventory_hostname"], args.pop("part", "all")
        repair = args.pop("repair", False)
        args.update(
            run=self.session.get("run"),
            cluster_id=self.session.get("cluster_id"),
            run_key=self.run_key(),
            registered=sorted(phase.registrations({"nodes": self.nodes()})),
            restart_id=f"{self.session.get('run')}/{'repair' if repair else args.get('kind')}/{host}",
            **(self._left_file_changes(host) if repair else file_changes.of_restart(self, args["kind"], host)),
        )
        result = {} if part == "see" else self.module({**args, "action": "finish" if repair else "begin"})
        if self._task.check_mode or (result.get("failed") and not result.get("id")):
            return result
        if part == "begin" and not result.get("outcome"):
            return {**result, "changed": False}  # what it changes is told where its end is seen
        if repair:
            self.say(f"{host}: a turn was left unfinished")
        seen, shown = 0, time.time()
        while True:
            for step in (result.get("steps") or [])[seen:]:
                if step["name"] not in ("begun", "keep the old file"):
                    self.say(f"{host} {_STEPS.get(step['name'], step['name'])}")
                    shown = time.time()
            seen = len(result.get("steps") or [])
            if result.get("failed") or result.get("outcome"):
                break
            if time.time() - shown > 10:
                self.say(f"{host} is still at it ({time.time() - self.began:.0f} s)")
                shown = time.time()
            result = self.module({**args, "action": "watch", "seen_steps": seen})
        self._keep(host, args, result)
        return result

    def ends_run(self, result):
        """A broker that was put back leaves something in the quorum, which its role takes away before it ends."""
        return result.get("outcome") != "reverted"

    def _left_file_changes(self, host: str) -> dict:
        """Return {node_id} or {node_id, changes} for a node that is to run in the mode that its file says.

        A broker that is down in migration mode gets the operator's own settings as they are now: they may be what it
        did not start with.
        """
        node = self.facts_of(host).get("quorumshift_node") or {}
        if (node.get("file") or {}).get("mode") == "zk_migration":
            return file_changes.of_restart(self, "zk_migration", host)
        return {"node_id": int(self.nodes()[host]["node_id"])}

    def _keep(self, host: str, args: dict, result: dict) -> None:
        if result.get("outcome") == "unneeded":
            self._make_up(host, args["kind"])
            return
        kind = result.get("kind") or args["kind"]
        node_restart = {"id": args["restart_id"], **result, "kind": kind, "message": result.get("msg")}
        self._note(host, node_restart, time.time() - self.began)
        diff = result.get("diff")
        if diff:
            lines = difflib.unified_diff(
                diff["before"].splitlines(True), diff["after"].splitlines(True), f"{host} before", f"{host} after"
            )
            self.artifacts().save(f"diffs/{host}-{kind}.diff", "".join(lines))
        if result.get("outcome") == "reverted":
            for line in result["msg"].splitlines():
                self.say(line)
        if result.get("outcome") == "done":
            times = result.get("times") or {}
            shown = ", ".join(
                f"{name} {times[key]:.1f} s"
                for key, name in (("stop_s", "stop"), ("start_s", "start"), ("register_s", "registered after"))
                if key in times
            )
            self.say(f"{host} is up ({shown})")

    def _make_up(self, host: str, kind: str) -> None:
        """Journal a turn that went on to its end after the run that began it was killed: its host remembers it."""
        node_restart = (self.facts_of(host).get("quorumshift_node") or {}).get("node_restart") or {}
        journalled = {event.get("node_restart") for event in self.artifacts().all_events()}
        if node_restart.get("kind") == kind and node_restart.get("outcome") and node_restart["id"] not in journalled:
            self._note(host, node_restart, node_restart["ended_at"] - node_restart["steps"][0]["at"])

    def _note(self, host: str, node_restart: dict, took_s: float) -> None:
        times = node_restart.get("times") or {}
        self.artifacts().note(
            "restart",
            node_restart["kind"],
            t=node_restart["steps"][0]["at"] if node_restart.get("steps") else None,
            end=times.get("registered_at") or times.get("answered_at") or time.time(),
            host=host,
            node_restart=node_restart["id"],
            outcome=node_restart.get("outcome"),
            reason=node_restart.get("message"),
            times=times,
            restart_s=round(took_s, 3),
        )
