# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""spark_job: brings the job and its input to the Spark host, shows it at work, brings the result back as evidence.

Task options of this action: `name` of the job; `gate` that it is for; `seen`, what migration_state returned right
before the log was cut; `log`, what metadata_snapshot returned, and `archive`, where that lies on the control node;
for a job that asked for another cut of the log, `going_on`: what the task returned that began it. How Spark is run is
taken from the role's variables.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import sys
import tempfile

from ansible import constants
from ansible.errors import AnsibleActionFail
from ansible_collections.quorumshift.kafka.plugins.module_utils import spark_submission
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import spark_jobs
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import CONNECTION, QuorumshiftAction

PACKAGE = "quorumshift_spark.zip"
REPORT = "report.html"
OUTPUTS = ("result.json", REPORT, "differences.parquet", "spark.log")
# Options of this action, or of the module, and the variables from which they are taken when a task does not give them.
SPARK = {
    "submit": "quorumshift_spark_submit",
    "master": "quorumshift_spark_master",
    "conf": "quorumshift_spark_conf",
    "options": "quorumshift_spark_options",
    "jars": "quorumshift_spark_jars",
    "packages": "quorumshift_spark_packages",
    "python": "quorumshift_spark_python",
    "timeout_s": "quorumshift_spark_timeout_s",
}
OF_MODULE = ("python", "timeout_s")
SHOWN = 5
SCRIPTS = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", "spark", "quorumshift_spark"))


class ActionModule(QuorumshiftAction):
    """Submits a job and shows its verdict; it fails where the verdict is not `pass`."""

    FILLS = (*CONNECTION, "run_key")
    OWN = ("name", "gate", "seen", "log", "archive", "going_on")

    def act(self, args: dict) -> dict:
        own = {option: self.own.get(option) for option in self.OWN}
        own.update({option: args.pop(option, None) or self.variable(name) for option, name in SPARK.items()})
        args.update({option: own[option] for option in OF_MODULE if own[option]})
        args = self.filled(args)
        begun = own["going_on"]
        if begun:
            args.update(begun["args"], carry=begun["carry"], answer=self._answer(own, begun))
        else:
            where = self.artifacts().place(f"verify/{own['gate']}/{own['name']}")
            begun = {"job": own["name"], "gate": own["gate"], "where": where}
            args.update(self._submission(own, args, begun))
        result = self.in_slices(args)
        if result.get("wanted"):
            kept = ("input_dir", "output_dir", "nonce", "job", "submit")
            going_on = {**begun, "args": {key: args[key] for key in kept}, "carry": result["carry"]}
            return {**result, "going_on": {**going_on, "round": result["wanted"]["round"]}}
        if not self._local and not result.get("failed"):
            self._bring_back(begun["job"], args["output_dir"], begun["where"])
        if not self._local or result.get("failed"):  # a job that has ended here has left nothing
            self._leave(os.path.dirname(args["input_dir"]))
        return self._detected(result, begun)

    # The job -------------------------------------------------------------------------------------------------------

    def _submission(self, own: dict, args: dict, begun: dict) -> dict:
        """Bring all that the job reads to the Spark host, and return the module's options for it."""
        kind = spark_jobs.JOBS[own["name"]](self, own)
        kind.refuse()
        place = self._place()
        input_dir, output_dir = f"{place}/input", begun["where"] if self._local else f"{place}/output"
        job = {"gate": own["gate"], "phase": own["seen"]["phase"], "cluster_id": self.session["cluster_id"]}
        try:
            self._bring_package(own["name"], place)
            job.update(kind.bring(input_dir, args))
        except Exception:
            self._leave(place)
            raise
        return {
            **{"job": job, "nonce": secrets.token_hex(16), "input_dir": input_dir, "output_dir": output_dir},
            **{"encoder_secrets": kind.encoder_secrets(), "submit": self._command(own, place, input_dir)},
            **({"remove": place} if self._local else {}),
        }

    def _answer(self, own: dict, begun: dict) -> dict:
        """Bring another cut of the log, and return what the job is told of it."""
        job = spark_jobs.JOBS[begun["job"]](self, own)
        return {"round": begun["round"], **job.log(begun["args"]["input_dir"], begun["round"])}

    # The Spark host ------------------------------------------------------------------------------------------------

    @property
    def _local(self) -> bool:
        return (self._task.delegate_to or "localhost") in constants.LOCALHOST

    @property
    def _private(self) -> dict[str, str]:
        """Where private directories stand and how their names begin, by which role quorumshift sweeps those left."""
        return {"path": self.variable("_quorumshift_temporary"), "prefix": self.variable("_quorumshift_private")}

    def _place(self) -> str:
        """Return a directory of mode 0700 on the Spark host, with `input` of the same mode in it."""
        if self._local:  # here no module is needed, each of which takes half a second
            made = tempfile.mkdtemp(prefix=self._private["prefix"], dir=self._private["path"])
            os.mkdir(f"{made}/input", 0o700)
            return made
        made = self._run("ansible.builtin.tempfile", state="directory", **self._private)
        self._run("ansible.builtin.file", path=f"{made['path']}/input", state="directory", mode="0700")
        return made["path"]

    def _leave(self, place: str) -> None:
        """Remove what was brought: it holds secrets."""
        if self._local:
            shutil.rmtree(place, ignore_errors=True)
        else:
            self._run("ansible.builtin.file", path=place, state="absent")

    def _bring_package(self, job: str, place: str) -> None:
        with tempfile.TemporaryDirectory(prefix="quorumshift-") as here:
            package = os.path.join(here, PACKAGE)
            _builder().build(package)
            self.bring(package, f"{place}/{PACKAGE}")
        self.bring(os.path.join(SCRIPTS, f"{job}.py"), f"{place}/{job}.py")

    def _bring_back(self, job: str, output: str, where: str) -> None:
        """Bring what the job left into the evidence, as far as it left it."""
        for name in (*OUTPUTS, *spark_jobs.JOBS[job].BASELINE):
            self._action("fetch", src=f"{output}/{name}", dest=os.path.join(where, name), flat=True)

    def bring(self, here: str, there: str) -> None:
        """Copy a file to the Spark host, 0600."""
        why = self._copied(here, there)
        if why:
            raise AnsibleActionFail(f"{os.path.basename(here)} could not be brought to the Spark host: {why}")

    def _copied(self, here: str, there: str) -> str | None:
        """Copy a file to the Spark host, 0600; returns why it could not be, None when it is there."""
        if not self._local:
            reported = self._action("copy", src=here, dest=there, mode="0600")
            return reported["msg"] if reported.get("failed") else None
        try:
            with open(there, "xb", opener=_private) as out, open(here, "rb") as source:
                shutil.copyfileobj(source, out)
        except OSError as error:
            return f"{error.filename or there}: {error.strerror}"
        return None

    def _action(self, name: str, **args) -> dict:
        """Run another action on this task's host, as the action `template` runs `copy`."""
        task = self._task.copy()
        task.args = args
        action = self._shared_loader_obj.action_loader.get(
            f"ansible.legacy.{name}",
            task=task,
            connection=self._connection,
            play_context=self._play_context,
            loader=self._loader,
            templar=self._templar,
            shared_loader_obj=self._shared_loader_obj,
        )
        return action.run(task_vars=self._with_interpreter())

    def _run(self, module: str, **args) -> dict:
        reported = self._execute_module(module_name=module, module_args=args, task_vars=self._with_interpreter())
        if reported.get("failed"):
            raise AnsibleActionFail(f"the Spark host: {reported.get('msg')}")
        return reported

    def _command(self, own: dict, place: str, input_dir: str) -> list[str]:
        """Return spark-submit with its options and the job."""
        submit = own["submit"] or [os.path.join(os.path.dirname(sys.executable), "spark-submit")]
        conf = [part for key, value in (own["conf"] or {}).items() for part in ("--conf", f"{key}={value}")]
        jars = ["--jars", ",".join(own["jars"])] if own["jars"] else ["--packages", own["packages"]]
        return [
            *submit,
            *("--master", own["master"] or spark_jobs.LOCAL, "--name", f"quorumshift {own['name']}"),
            *("--py-files", f"{place}/{PACKAGE}"),
            *(jars if spark_jobs.JOBS[own["name"]].READS_KAFKA else []),
            *conf,
            *(own["options"] or []),
            f"{place}/{own['name']}.py",
            *("--input", f"{input_dir}/{spark_submission.JOB}"),
        ]

    # The verdict ---------------------------------------------------------------------------------------------------

    def _detected(self, result: dict, begun: dict) -> dict:
        """Tell the verdict in a line or a few, and fail where it is not `pass`."""
        if result.get("failed"):
            return result
        found, ran, where = result["result"], result["submission"], begun["where"]
        found["run"] = self.session["run"]
        shown = REPORT if os.path.exists(os.path.join(where, REPORT)) else spark_submission.LOG
        found["report"] = os.path.relpath(os.path.join(where, shown), self.artifacts().directory)
        if found["verdict"] == "pass":
            job = spark_jobs.JOBS[begun["job"]](self, {})
            self.say(f"{job.reported(found)} ({ran['seconds']:.0f} s)")
            job.keep(where)
            return result
        for one in (found.get("differences") or [])[:SHOWN]:
            self.say(one["text"])
        why = "; ".join(found.get("reasons") or ["no reason was given"])
        reported = {"result": found["verdict"], "reason": why, "seconds": ran.get("seconds")}
        self.artifacts().note("gate", begun["gate"], reports={begun["job"]: found["report"]}, **reported)
        what = f"{'The report' if shown == REPORT else 'Spark said'}: {os.path.relpath(os.path.join(where, shown))}"
        # What was found is in the evidence: Ansible prints all that a failed task returns
        return {"failed": True, "msg": f"gate {begun['gate']} stays closed: {found['verdict']}: {why}. {what}"}


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _builder():
    """Return the module that builds the package; it stands outside of what Ansible imports of a collection."""
    spec = importlib.util.spec_from_file_location("spark_package", os.path.join(SCRIPTS, "package.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
