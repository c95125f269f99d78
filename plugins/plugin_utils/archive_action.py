# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The base of actions whose module archives files on a host: the archive is made, fetched, and removed from the host.

An archive has secrets in clear text. Whatever a host answers, it is asked to remove its archive in the same task, and a
host that does not confirm the removal is named in the result.
"""

from __future__ import annotations

import os
import time
from typing import Any

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction

_POLL_S = 0.5
_UNANSWERED = 5  # times in a row that a job's host may not say how the job is


class ArchiveAction(QuorumshiftAction):
    """Runs the module of this name. With the option `fetch_to`, a directory of the control node, the result has besides
    what the module returns:

    - `archive`: where the archive is on the control node;
    - `left`: {host, path, why} of the directory on the host, if its removal was not confirmed.

    A failure is none with `needed: false`: the result has its `msg` alone, and no `archive`. An unreachable host is a
    failure as well: a play with any_errors_fatal takes it for a failure of no task, ends without a message, and with
    exit code 0.

    With `async` and `poll: 0` the task only begins, beside those of other hosts. Its result is `begun` of a later task.
    """

    def run(self, tmp=None, task_vars=None):
        self._supports_async = True
        return super().run(tmp, task_vars)

    def _after_failure(self) -> str | None:
        # What was begun before the failure has an archive that must go
        return None if self.own.get("begun") else super()._after_failure()

    def act(self, args: dict) -> dict:
        where, begun = self.own.get("fetch_to"), self.own.get("begun")
        args = self.fill(args)
        try:
            result = self._ended(begun) if begun else self._made(args)
            if where and result.get("path") and not result.get("failed"):
                result.update(self._fetched(result["path"], where))
        except AnsibleConnectionFailure as error:
            why = " ".join(str(error).split()) or "no answer"
            result = {"failed": True, "unreachable_host": True, "msg": why}
        except (AnsibleError, OSError) as error:
            result = {"failed": True, "msg": " ".join(str(error).split())}
        if where and not self._task.check_mode:
            if not result.get("archive") and not result.get("failed"):
                result.update(failed=True, msg=f"{self.host} gave no archive (QS-VERIFY-006)")
            result.update(self._removed(args), changed=False)
        if result.get("failed") and not self.own.get("needed", True):
            result = {**result, "failed": False}
            result.pop("exception", None)  # Ansible would show it as an error
        elif result.get("unreachable_host"):
            result["msg"] = self.explain_unreachable(result["msg"])
        return result

    def explain_unreachable(self, why: str) -> str:
        """Return what is said of a host that is needed and does not answer."""
        return f"{self.host} is unreachable: {why}. Check it with: ssh {self.host}. Then run again (QS-RUN-004)"

    def _made(self, args: dict) -> dict:
        if not self._task.async_val:
            return self.module(args)
        return self._execute_module(
            module_name=self._task.resolved_action or self._task.action,
            module_args=dict(args),
            task_vars=self._with_interpreter(),
            wrap_async=not self._connection.has_native_async,  # as Ansible's own action of modules has it
        )

    def _ended(self, begun: dict) -> dict:
        """Return the result of the module that an earlier task began, once it has ended. Its host ends it after the
        seconds of that task's `async`. Raises AnsibleConnectionFailure."""
        job = begun.get("ansible_job_id")
        if not job:
            return {"failed": True, "unreachable_host": bool(begun.get("unreachable_host")), "msg": begun.get("msg")}
        answer: dict[str, Any] = {}
        end, unanswered = time.monotonic() + float(self.variable("quorumshift_spark_timeout_s")), 0
        while not answer.get("finished") and unanswered < _UNANSWERED and time.monotonic() < end:
            answer = self.action("async_status", jid=job)
            unanswered = unanswered + 1 if answer.get("failed") and not answer.get("finished") else 0
            if not answer.get("finished"):
                time.sleep(_POLL_S)
        self.action("async_status", jid=job, mode="cleanup")
        if answer.get("finished"):
            return answer
        return {"failed": True, "msg": answer.get("msg") or "its archive was not made in time (QS-VERIFY-006)"}

    def _fetched(self, path: str, where: str) -> dict:
        here = os.path.join(where, os.path.basename(path))
        fetched = self.action("fetch", src=path, dest=here, flat=True)
        if fetched.get("failed"):
            why = fetched.get("msg") or "no reason is known"
            return {"failed": True, "msg": f"{path} on {self.host} was not fetched: {why}. Run again (QS-VERIFY-006)"}
        return {"archive": here}

    def _removed(self, args: dict) -> dict:
        """Remove the archive's directory from the host; return `left`, nothing if the host confirms the removal."""
        path = os.path.join(args["state_dir"], args["cluster_id"], self.module_name)
        try:
            answer = self._execute_module(
                module_name="ansible.builtin.file",
                module_args={"path": path, "state": "absent"},
                task_vars=self._with_interpreter(),
            )
        except AnsibleConnectionFailure as error:
            answer = {"msg": str(error)}
        # An answer about a path that still exists has another state
        if answer.get("state") == "absent" and not answer.get("failed"):
            return {}
        why = " ".join(str(answer.get("msg") or "no answer").split())
        return {"left": {"host": self.host, "path": path, "why": why}}
