# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""spark_job: copy the job and its input to the Spark host, print its progress, fetch its result as run artifacts.

The module's documentation lists this action's options. Those of Spark itself come from the role's variables.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import tempfile
from typing import Any

from ansible import constants
from ansible.errors import AnsibleActionFail
from ansible_collections.quorumshift.kafka.plugins.module_utils import message_ids
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import printable
from ansible_collections.quorumshift.kafka.plugins.module_utils.spark_host import spark_submission
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import spark_jobs
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction

PACKAGE, SCRIPT = "quorumshift_spark.zip", "submit.py"
REPORT = "report.html"
OUTPUTS = ("result.json", REPORT, "differences.parquet", "differences.csv", "spark.log")
SHOWN = 5
LATER_S = 120  # than its supervisor an application gives up the wait for a job: only where the supervisor was killed
SCRIPTS = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", "spark", "quorumshift_spark"))


class ActionModule(QuorumshiftAction):
    """Submits a job and prints its verdict. Fails unless the verdict is `pass`."""

    _uploaded = 0  # bytes

    def act(self, args: dict) -> dict:
        own = {option: self.taken(option) for option in self.row.takes}
        args = self.fill(args)
        if args.get("state") == "started":
            return self._start(own, args)
        begun = own["going_on"]
        if begun:
            args.update(begun["args"], carry=begun["carry"], answer=self._answer(own, begun))
            result = self.run_in_slices(args)
        else:
            where = self.artifacts().new_directory(f"verify/{own['gate']}/{own['name']}")
            begun = {"job": own["name"], "gate": own["gate"], "where": where, "snapshots": own["snapshots"]}
            begun["application"] = own["application"] or {}
            result = self._submit(own, args, begun)
        if result.get("wanted"):
            kept = ("directory", "output_dir", "nonce", "job", "submit")
            going_on = {**begun, "args": {key: args[key] for key in kept}, "carry": result["carry"]}
            result["going_on"] = {**going_on, "round": result["wanted"]["round"]}
            return {**result, "application": begun["application"]}
        if not self.local and not result.get("failed"):
            self._fetch(begun["job"], args["output_dir"], begun["where"])
        self._remove(args["directory"])
        return self._verdict(result, begun)

    # The job -------------------------------------------------------------------------------------------------------

    def _start(self, own: dict, args: dict) -> dict:
        """Start Spark ahead of a job of this name; return where it waits."""
        directory = self._new_directory()
        try:
            submit = self._command(own, directory, args)
        except AnsibleActionFail:
            self._remove(directory)
            raise
        result = self.module({**args, "directory": directory, "submit": submit})
        if result.get("failed"):
            self._remove(directory)
            return result
        return {**result, "application": {"directory": directory, "submit": submit}}

    def _submit(self, own: dict, args: dict, begun: dict) -> dict:
        """Submit the job, and wait until it has ended or wants something. It goes to the application that was started
        ahead; to a new one if that has ended meanwhile, or was started otherwise than this job needs it. `args` becomes
        the module's options."""
        kind = spark_jobs.JOBS[own["name"]](self, own)
        kind.refuse()
        if begun["application"]:
            result = self._run_job(kind, own, args, begun, begun["application"])
            if result:
                return result
        result = self._run_job(kind, own, args, begun, {})
        if not result:
            raise AnsibleActionFail(
                "Spark ended before it had its job: it was killed, or its directory was removed. Run the playbook "
                "again (QS-VERIFY-002)"
            )
        return result

    def _run_job(self, kind: spark_jobs.Job, own: dict, args: dict, begun: dict, application: dict) -> dict | None:
        """Run the job in an application, in a new one where none is given. Return the module's result, None if the
        application does not wait any more, or was started with another command."""
        directory = application.get("directory") or self._new_directory()
        output = begun["where"] if self.local else f"{directory}/output"
        job = {"gate": own["gate"], "phase": own["seen"]["phase"], "cluster_id": self.session["cluster_id"]}
        try:
            job.update(kind.upload(f"{directory}/{spark_submission.INPUT}", args))
            submit = self._command(own, directory, args)
        except Exception as error:
            self._remove(directory)
            if application and isinstance(error, AnsibleActionFail):
                return None
            raise
        if application.get("submit", submit) == submit:
            args.update(job=job, nonce=secrets.token_hex(16), submit=submit, encoder_secrets=kind.encoder_secrets())
            args.update(directory=directory, output_dir=output, is_started=bool(application))
            args.pop("carry", None)
            result = self.run_in_slices(args)
            if result.get("waited", True):
                return result
        self._remove(directory)
        return None

    def _answer(self, own: dict, begun: dict) -> dict:
        """Copy another snapshot of the log to the Spark host; return the module's option `answer`."""
        job: Any = spark_jobs.JOBS[begun["job"]](self, own)
        input_dir = f"{begun['args']['directory']}/{spark_submission.INPUT}"
        return {"round": begun["round"], **job.log(input_dir, begun["round"])}

    # The Spark host ------------------------------------------------------------------------------------------------

    @property
    def local(self) -> bool:
        """Return whether the Spark host is this host."""
        return (self._task.delegate_to or "localhost") in constants.LOCALHOST

    @property
    def _private(self) -> dict[str, str]:
        """Return where scratch directories are and how their names begin, by which the role quorumshift purges them."""
        return {"path": self.variable("_quorumshift_temporary"), "prefix": self.variable("_quorumshift_private")}

    def _new_directory(self) -> str:
        """Create an application's directory of mode 0700 on the Spark host, with the package; return its path."""
        if self.local:  # without modules, each of which takes half a second
            path = tempfile.mkdtemp(prefix=self._private["prefix"], dir=self._private["path"])
            os.mkdir(f"{path}/{spark_submission.INPUT}", 0o700)
        else:
            path = self._run("ansible.builtin.tempfile", state="directory", **self._private)["path"]
            self._run("ansible.builtin.file", path=f"{path}/{spark_submission.INPUT}", state="directory", mode="0700")
        self._uploaded = 0
        try:
            self._upload_package(path)
        except Exception:
            self._remove(path)
            raise
        return path

    def _remove(self, directory: str) -> None:
        """Remove an application's directory, which may hold secrets and ends the application."""
        if self.local:
            shutil.rmtree(directory, ignore_errors=True)
        else:
            self._run("ansible.builtin.file", path=directory, state="absent")

    def _upload_package(self, directory: str) -> None:
        with tempfile.TemporaryDirectory(prefix="quorumshift-") as here:
            package = os.path.join(here, PACKAGE)
            _builder().build(package)
            self.upload(package, f"{directory}/{PACKAGE}")
        self.upload(os.path.join(SCRIPTS, SCRIPT), f"{directory}/{SCRIPT}")

    def _fetch(self, job: str, output: str, where: str) -> None:
        """Fetch the job's output files into the run artifacts; a missing file is skipped."""
        for name in (*OUTPUTS, *spark_jobs.JOBS[job].BASELINE):
            here = os.path.join(where, name)
            self.action("fetch", src=f"{output}/{name}", dest=here, flat=True)
            if os.path.exists(here):
                os.chmod(here, 0o600)

    def upload(self, here: str, there: str) -> None:
        """Copy a file to the Spark host, with mode 0600."""
        why = self._copied(here, there)
        if why:
            raise AnsibleActionFail(
                message_ids.move_to_end(
                    f"{os.path.basename(here)} could not be copied to the Spark host: {why} (QS-VERIFY-002)"
                )
            )
        self._uploaded += os.path.getsize(here)

    def _copied(self, here: str, there: str) -> str | None:
        """Copy a file to the Spark host; return the error, None on success."""
        if not self.local:
            result = self.action("copy", src=here, dest=there, mode="0600")
            return result["msg"] if result.get("failed") else None
        try:
            with open(there, "xb", opener=_private) as out, open(here, "rb") as source:
                shutil.copyfileobj(source, out)
        except OSError as error:
            return f"{error.filename or there}: {error.strerror}"
        return None

    def _run(self, module: str, **args) -> dict:
        result = self._execute_module(module_name=module, module_args=args, task_vars=self._with_interpreter())
        if result.get("failed"):
            raise AnsibleActionFail(message_ids.move_to_end(f"the Spark host: {result.get('msg')} (QS-VERIFY-002)"))
        return result

    def _command(self, own: dict, directory: str, args: dict) -> list[str]:
        """Return the command: spark-submit, its options and the job."""
        options = spark_jobs.submit_options(own["master"], own["conf"] or {}, own["options"] or [], self._uploaded)
        return [
            *spark_jobs.submit_command(own["submit"]),
            *("--master", own["master"] or spark_jobs.LOCAL, "--name", f"quorumshift {own['name']}"),
            *("--py-files", f"{directory}/{PACKAGE}"),
            *options,
            *(f"{directory}/{SCRIPT}", own["name"]),
            *("--input", f"{directory}/{spark_submission.INPUT}/{spark_submission.JOB}"),
            *("--wait", str(int(float(args.get("wait_s") or 0)) + LATER_S)),
        ]

    # The verdict ---------------------------------------------------------------------------------------------------

    def _verdict(self, result: dict, begun: dict) -> dict:
        """Print and keep the verdict; return the task's result, a failure unless the verdict is `pass`."""
        if result.get("failed"):
            return result
        found, ran, where = result["result"], result["submission"], begun["where"]
        found["run"] = self.session["run"]
        shown = REPORT if os.path.exists(os.path.join(where, REPORT)) else spark_submission.LOG
        found["report"] = os.path.relpath(os.path.join(where, shown), self.artifacts().directory)
        if found["verdict"] == "pass":
            job = spark_jobs.JOBS[begun["job"]](self, {"snapshots": begun.get("snapshots")})
            self.say(f"{job.summary(found)} ({ran['seconds']:.0f} s)")
            job.keep(where)
            return {**result, "application": begun["application"]}
        for difference in (found.get("differences") or [])[:SHOWN]:
            self.say(difference["text"])
        why = printable.escape_invisible("; ".join(found.get("reasons") or ["the job gave no reason"]))
        outcome = {"result": found["verdict"], "reason": why, "seconds": ran.get("seconds")}
        self.artifacts().note("gate", begun["gate"], reports={begun["job"]: found["report"]}, **outcome)
        what = f"{'Report' if shown == REPORT else 'Spark log'}: {os.path.relpath(os.path.join(where, shown))}"
        # Without the result, which is a run artifact: Ansible prints all that a failed task returns
        return {
            "failed": True,
            "msg": f"gate {begun['gate']} stays closed: {found['verdict']}: {why}. {what} (QS-VERIFY-001)",
        }


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _builder():
    """Return the module that builds the package; Ansible does not import it as a part of the collection."""
    spec = importlib.util.spec_from_file_location("spark_package", os.path.join(SCRIPTS, "package.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
