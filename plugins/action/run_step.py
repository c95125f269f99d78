# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""run_step: journal the begin and the end of a step, and how the run failed. Runs on the control node alone."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import run_lock, run_outcome
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import job_stats
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction

_CONTINUES = "Fix the cause, then run the same playbook again: it goes on with what is left."
_OF_A_RESCUE = ("failed", "lost", "advised")
_STATUS = "Run quorumshift.kafka.status: it shows the phase and the command to type next."


class ActionModule(QuorumshiftAction):
    """Begins, ends or fails a step of a run."""

    def act(self, args):
        if not self._journals():
            return {"changed": False}
        work = {
            "begun": self._begin,
            "ended": self._end,
            "failed": self._fail,
            "lost": self._lost,
            "advised": self._advise,
            "over": self._require,
        }
        try:
            return work[args["state"]](args)
        except OSError as error:
            if args["state"] not in _OF_A_RESCUE:
                raise
            # What follows in the rescue is needed all the more. Without its end in the journal, the step has failed.
            self.say(f"the journal was not written: {error.filename}: {error.strerror} (QS-HOST-002)")
            return {"changed": False}

    def _begin(self, _args):
        # What a step changes from the probe host, which has no lock; a broker or controller reads its own lock
        over = self._taken_over() if self.batch == ["localhost"] else None
        if over:
            why = "This step was not begun. See which of the two runs is to go on"
            return {"failed": True, "msg": f"{run_lock.holder(over)} took over the run lock. {why} (QS-RUN-003)"}
        self._journal_step(run_outcome.STEP_BEGUN, self.batch)
        return {"changed": False}

    def _taken_over(self):
        """Return the run lock that replaced the one of this run, by the last reading of its hosts; None without."""
        own = self.session.get("run_lock") or {}
        nodes = {host: self.facts_of(host).get("quorumshift_node") or {} for host in own.get("hosts", ())}
        newest = run_lock.find_newest(nodes, self.session["cluster_id"])
        return newest if newest and newest["number"] >= own["number"] and newest["run"] != self.session["run"] else None

    def _end(self, _args):
        for begun in self._unended():
            lost = sorted(set(begun["hosts"]) - set(self.batch))
            if lost:
                return {
                    "failed": True,
                    "msg": f"{', '.join(lost)} was lost in this step: the cause is above (QS-RUN-004)",
                }
            self._journal_step(run_outcome.STEP_ENDED, begun["hosts"])
        return {"changed": False}

    def _journal_step(self, name, hosts):
        """Journal the begin or the end of the step. A run that holds the lock renews the report with what happens in
        its steps, and at its end: renewing it here would take time between two restarts."""
        artifacts = self._artifacts() if "run_lock" in self.session else self.artifacts()
        artifacts.note("event", name, step=self.step, hosts=hosts)

    def _fail(self, args):
        """Journal what failed on this host, where no task has journaled it."""
        if args.get("stopped_at") and self.host not in self._known():
            self.note_failure(args["stopped_at"], args.get("reason"))
        failure = run_outcome.outcome(self.journal())
        if failure is None:
            return {"changed": False}
        following = run_outcome.advice(self.journal()) or self._next()
        left = {"run": self.session.get("run"), "step": self.step, "reason": failure.sentence, "next": following}
        return {"changed": False, "ansible_stats": job_stats.stats(job_stats.FAILURE, left)}

    def _lost(self, args):
        """Journal which hosts of the step take no part in its rescue, where no task has journaled it.

        Not by the play's hosts that are left: in a rescue, Ansible counts only those whose own failure led there."""
        hosts = {host for begun in self._unended() for host in begun["hosts"]}
        for host in sorted(hosts - set(args["answered"]) - self._known()):
            self.note_failure(self.step, run_outcome.explain_lost(), host=host)
        return {"changed": False}

    def _advise(self, args):
        """Journal what the operator does next, where the step knows better than `_next`."""
        self.artifacts().note("event", run_outcome.ADVISED, do=args["next_step"])
        return {"changed": False}

    def _known(self):
        return {failure.host for failure in run_outcome.failures(self.journal())}

    def _require(self, _args):
        """Fail where the run failed, with where, why and what to do."""
        failure = run_outcome.outcome(self.journal())
        if failure:
            following = run_outcome.advice(self.journal()) or self._next()
            return {
                "failed": True,
                "msg": f"{failure.sentence}. {following} Report: {self._artifacts().page} (QS-RUN-004)",
            }
        return {"changed": False}

    def _unended(self):
        return [event for event in run_outcome.find_unended(self.journal()) if event["step"] == self.step]

    def _next(self):
        """Return what the operator does next."""
        direction = (self.session.get("run_lock") or {}).get("direction")
        return _CONTINUES if direction in run_lock.PLAIN else _STATUS
