# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""node_restart: start the restart on its host, show its steps as they are taken, keep its diff and times."""

from __future__ import annotations

import difflib
import time
from typing import Any

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase, strays
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import clock, run_outcome
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import format_names
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import file_changes, restart_journal
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction

STILL_S = 10.0  # a step that takes longer is reported again
PAUSE_LIMIT_S = 86400.0  # for how long restarts may be paused, where restart_pause_timeout_s is not set
_STEPS = {
    "stop": "stops",
    "stop again": "did not come up, and is stopped",
    "revert the file": "gets its old properties file back",
    "write the file": "gets its new properties file",
    "format": "formats its log directory",
    "hook before-stop": "runs its hook before the stop",
    "hook stopped": "runs its hook between stop and start",
    "hook up": "runs its hook, since it is up",
    "switch the release": "gets its new release",
    "switch the release back": "gets its earlier release back",
    "start": "starts",
    "start again": "ended because it was elected twice while its log was empty, and starts again",
    "register": "answers, waits for its registration",
}
_NOT_SHOWN = ("begun", "keep the old file")
_UNEXPECTED = ("stop again", "revert the file", "switch the release back", "start again")


class ActionModule(QuorumshiftAction):
    """Starts and watches one host's restart; the module's documentation lists what the options of this action do."""

    def act(self, args):
        part, repair = self.own.get("part", "all"), self.own.get("repair", False)
        if part == "await" and not repair and "kind" not in args:
            begun = run_outcome.find_unawaited(self.artifacts().events(), self.host) or {}
            if not begun:
                return {"changed": False, "outcome": None}
            repair = begun["restart_kind"] == "repair"
            args = {**args, **({} if repair else {"kind": begun["restart_kind"]})}
        kind = "repair" if repair else args["kind"]
        args = self.fill(args)
        args.update(
            registered=sorted(phase.registrations({"nodes": self.nodes()})),
            restart_id=f"{self.session.get('run')}/{kind}/{self.host}",
            **(self._options_of_repair() if repair else file_changes.restart_options(self, kind, self.host)),
        )
        if args.get("since"):  # without a reading of the host's clock, the node is restarted
            args["since"] = clock.by_host_clock(self.nodes()[self.host], float(args["since"])) or 0
        result = {} if part == "await" else self._begin({**args, "action": "finish" if repair else "begin"})
        if self._task.check_mode or (result.get("failed") and not result.get("id")):
            return self.renew(result, kind) if self.own.get("renewable") else result
        if repair and part != "await":
            why = "is down, or an earlier run left its restart half done"
            self.say(f"{self.host} {'lost its log, and is formatted' if self.own.get('format') else why}")
        if part != "await" and not result.get("outcome"):
            begun = {"restart_kind": kind, "node_restart": args["restart_id"]}
            self.artifacts().note("event", run_outcome.RESTART_BEGUN, host=self.host, **begun)
        if part == "begin" and not result.get("outcome"):
            return {**result, "changed": False}  # the task that awaits its end reports the change
        if result.get("unit") == "":
            self.say(f"{self.host}: no systemd-run, so the restart stays in the control group of this login")
        seen, shown = 0, time.time()
        while True:
            for step in (result.get("steps") or [])[seen:]:
                if step["name"] not in _NOT_SHOWN:
                    show = self.say if step["name"] in _UNEXPECTED else self.say_wait
                    show(f"{self.host} {_STEPS.get(step['name'], step['name'])}")
                    shown = time.time()
            seen = len(result.get("steps") or [])
            if result.get("failed") or result.get("outcome"):
                break
            if time.time() - shown > STILL_S:
                step = (result.get("steps") or [{"name": "begin"}])[-1]["name"]
                how = result.get("progress") or f"step {step} goes on"
                self.say_wait(f"{self.host}: {how} ({time.time() - self.began:.0f} s)")
                shown = time.time()
            result = self.module({**args, "action": "watch", "seen_steps": seen})
        self._keep(args, result, kind)
        return result

    def _begin(self, args: dict) -> dict:
        """Begin the restart, once it is not paused on its host."""
        result, noted, began = self.module(args), False, time.monotonic()
        while result.get("outcome") == "paused":
            paused, waited_s = result["paused"], time.monotonic() - began
            why = f": {paused['why']}" if paused["why"] else ""
            shown = f"{self.host}: restarts are paused by {paused['path']} on this host{why}"
            if not noted:
                self.say(f"{shown}. To go on: run quorumshift.kafka.resume, or remove that file")
                self.artifacts().note("event", "paused", host=self.host, **paused)
                noted = True
            else:
                self.say_wait(f"{shown} ({waited_s:.0f} s)")
            limit_s = float(self.variable("restart_pause_timeout_s") or PAUSE_LIMIT_S)
            if waited_s > limit_s:
                return {
                    "failed": True,
                    "changed": False,
                    "msg": f"{shown}, for longer than restart_pause_timeout_s, {limit_s:g} s. No further node is "
                    "stopped. To go on: run quorumshift.kafka.resume, then this command again (QS-RESTART-019)",
                }
            result = self.module({**args, "pause_wait_s": STILL_S})
        if noted:
            self.artifacts().note("event", "resumed", host=self.host, waited_s=round(time.monotonic() - began, 1))
        return result

    def _options_of_repair(self) -> dict:
        """Return {node_id} or {node_id, changes} for a node that is to run in the mode that its file says, or what
        formats a controller again.

        A broker that is down in migration mode gets the operator's own settings as they are now: they may be what
        kept it from starting.
        """
        if self.own.get("format"):
            return file_changes.format_options(self, self.host)
        file = (self.facts_of(self.host).get("quorumshift_node") or {}).get("file") or {}
        if file.get("mode") == "zk_migration":
            return file_changes.restart_options(self, "zk_migration", self.host)
        return {"node_id": int(self.nodes()[self.host]["node_id"])}

    def _keep(self, args: dict, result: dict, kind: str) -> None:
        if result.get("outcome") == "unneeded":
            restart_journal.note_missed(
                self.artifacts(), {self.host: self.facts_of(self.host).get("quorumshift_node") or {}}
            )
            return
        kind = result.get("kind") or kind
        node_restart = {"id": args["restart_id"], **result, "kind": kind, "message": result.get("msg")}
        restart_journal.note(self.artifacts(), self.host, node_restart, time.time() - self.began)
        diff = result.get("diff")
        if diff:
            names = (f"{self.host} before", f"{self.host} after")
            lines = difflib.unified_diff(diff["before"].splitlines(True), diff["after"].splitlines(True), *names)
            self.artifacts().save(f"diffs/{self.host}-{kind}.diff", "".join(lines))
        if result.get("outcome") == "reverted":
            for line in result["msg"].splitlines():
                self.say(line)
        if result.get("unclean_stop"):
            self.say(
                f"{self.host} stopped before its leaders had moved, so clients of these partitions waited longer. "
                f"Its log says: {result['unclean_stop']}"
            )
        self._note_strays(result)
        if result.get("outcome") == "done":
            times = result.get("times") or {}
            shown = ", ".join(
                f"{name} {times[key]:.1f} s"
                for key, name in (("stop_s", "stop"), ("start_s", "start"), ("register_s", "registered after"))
                if key in times
            )
            self.say(f"{self.host} is up ({shown})")

    def _note_strays(self, result: dict) -> None:
        """Show and journal the directories that the broker has renamed to -stray. The next admission, which reads the
        brokers' metadata, decides whether they close it."""
        node: Any = (result.get("ansible_facts") or {}).get("quorumshift_node") or {}
        found = strays.paths(node)
        if found:
            self.say(f"{self.host} has -stray directories: {format_names(found)}")
            self.artifacts().note("event", "stray directories", host=self.host, paths=found)
