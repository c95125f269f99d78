# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""spark_job: brings the job and its input to the Spark host, shows it at work, brings the result back as evidence.

Task options of this action: `name` of the job; `gate` that it is for; `seen`, what migration_state returned right
before the log was cut; `log`, what metadata_snapshot returned, and `archive`, where that lies on the control node; for
a job that asked for another cut of the log, `going_on`: what the task returned that began it.
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
from ansible_collections.quorumshift.kafka.plugins.module_utils.judgements import gates
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import Connections, client_address
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction

PACKAGE, LOG_FILE, BASELINE_FILE = "quorumshift_spark.zip", "metadata_log.{}.tar.gz", "baseline.parquet"
OUTPUTS = ("result.json", "report.html", "differences.parquet", "entities.parquet", "spark.log")
OWN = ("name", "gate", "seen", "log", "archive", "going_on", "master", "submit", "options", "conf")
SHOWN = 5
JOBS = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", "spark", "quorumshift_spark"))


class ActionModule(QuorumshiftAction):
    """Submits a job and tells its verdict; it fails where the verdict is not `pass`."""

    def act(self, args: dict) -> dict:
        own = {key: args.pop(key, None) for key in OWN}
        args = self.connection(args)
        args["run_key"] = self.run_key()
        begun = own["going_on"]
        if begun:
            args.update(begun["args"], carry=begun["carry"], answer=self._answer(own, begun))
        else:
            begun = {"gate": own["gate"], "where": self.evidence().place(f"verify/{own['gate']}")}
            args.update(self._submission(own, args, begun))
        result = self.in_slices(args)
        if result.get("wanted"):
            kept = ("input_dir", "output_dir", "nonce", "job", "submit")
            going_on = {**begun, "args": {key: args[key] for key in kept}, "carry": result["carry"]}
            return {**result, "going_on": {**going_on, "round": result["wanted"]["round"]}}
        place = os.path.dirname(args["input_dir"])
        if not result.get("failed") and not self._local:
            self._bring_back(args["output_dir"], begun["where"])
        if result.get("failed") or not self._local:
            self._run("ansible.builtin.file", path=place, state="absent")
        return self._judged(result, begun["where"], begun["gate"])

    # The job -------------------------------------------------------------------------------------------------------

    def _submission(self, own: dict, args: dict, begun: dict) -> dict:
        """Bring all that the job reads to the Spark host, and return the module's options for it."""
        gate, seen = gates.GATES[own["gate"]], own["seen"]
        if gates.METADATA_LOG in gate.needs and not own["log"]:
            raise AnsibleActionFail("the metadata log was not read: no controller answers as the quorum's leader")
        place = self._place()
        input_dir, output_dir = f"{place}/input", begun["where"] if self._local else f"{place}/output"
        self._bring_package(own["name"], place)
        job = {"gate": own["gate"], "phase": seen["phase"], "cluster_id": self.session["cluster_id"], "views": {}}
        job["bounds"] = {"log_refresh_s": 60.0, "request_timeout_s": 30.0}
        views = job["views"]
        if gates.ZOOKEEPER in gate.needs:
            views["zookeeper"] = {}
        if own["log"]:
            views["metadata_log"] = self._log(own, input_dir, 0)
            if gates.ZOOKEEPER in gate.needs:
                job["fence"] = {"migration_offset": seen["mirrored_offset"], "migration_zxid": seen["mirrored_zxid"]}
        views["brokers"] = self._brokers(args)
        if os.path.exists(self._baseline):
            views["baseline"] = {"path": f"{input_dir}/{BASELINE_FILE}"}
            self._copy(self._baseline, views["baseline"]["path"])
        return {
            **{"job": job, "nonce": secrets.token_hex(16), "input_dir": input_dir, "output_dir": output_dir},
            **{"encoder_secrets": self._encoder_secrets(), "submit": self._command(own, place, input_dir)},
            **({"remove": place} if self._local else {}),
        }

    def _answer(self, own: dict, begun: dict) -> dict:
        """Bring another cut of the log, and return what the job is told of it."""
        return {"round": begun["round"], **self._log(own, begun["args"]["input_dir"], begun["round"])}

    def _log(self, own: dict, input_dir: str, number: int) -> dict:
        path = f"{input_dir}/{LOG_FILE.format(number)}"
        self._copy(own["archive"], path)
        return {"archive": path, "sha256": own["log"]["sha256"], "end_offset": own["log"]["end_offset"]}

    def _brokers(self, args: dict) -> list[dict]:
        connections = Connections.from_options(args)
        return [
            {"id": node["node_id"], "address": client_address(node, node["host_address"], connections)}
            for node in self.nodes().values()
            if node["role"] == "broker"
        ]

    def _encoder_secrets(self) -> list[str]:
        """Return the secrets under which brokers encode passwords in ZooKeeper, sealed."""
        files = [(node.get("file") or {}).get("properties") or {} for node in self.nodes().values()]
        keys = ("password.encoder.secret", "password.encoder.old.secret")
        return sorted({values[key] for values in files for key in keys if values.get(key)})

    @property
    def _baseline(self) -> str:
        """What the last comparison that passed has found, on whichever run."""
        return os.path.join(self.evidence().cluster, BASELINE_FILE)

    # The Spark host ------------------------------------------------------------------------------------------------

    @property
    def _local(self) -> bool:
        return (self._task.delegate_to or "localhost") in constants.LOCALHOST

    def _place(self) -> str:
        """Return a directory of mode 0700 on the Spark host, with `input` of the same mode in it."""
        made = self._run("ansible.builtin.tempfile", state="directory", prefix="quorumshift-")
        self._run("ansible.builtin.file", path=f"{made['path']}/input", state="directory", mode="0700")
        return made["path"]

    def _bring_package(self, job: str, place: str) -> None:
        with tempfile.TemporaryDirectory(prefix="quorumshift-") as here:
            package = os.path.join(here, PACKAGE)
            _builder().build(package)
            self._copy(package, f"{place}/{PACKAGE}")
        self._copy(os.path.join(JOBS, f"{job}.py"), f"{place}/{job}.py")

    def _bring_back(self, output: str, where: str) -> None:
        """Bring what the job left into the evidence, as far as it left it."""
        for name in OUTPUTS:
            self._action("fetch", src=f"{output}/{name}", dest=os.path.join(where, name), flat=True)

    def _copy(self, here: str, there: str) -> None:
        told = self._action("copy", src=here, dest=there, mode="0600")
        if told.get("failed"):
            raise AnsibleActionFail(f"{os.path.basename(here)} could not be brought to the Spark host: {told['msg']}")

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
        told = self._execute_module(module_name=module, module_args=args, task_vars=self._with_interpreter())
        if told.get("failed"):
            raise AnsibleActionFail(f"the Spark host: {told.get('msg')}")
        return told

    def _command(self, own: dict, place: str, input_dir: str) -> list[str]:
        """Return spark-submit with its options and the job."""
        submit = own["submit"] or [os.path.join(os.path.dirname(sys.executable), "spark-submit")]
        conf = [part for key, value in (own["conf"] or {}).items() for part in ("--conf", f"{key}={value}")]
        return [
            *submit,
            *("--master", own["master"] or "local[*]", "--name", f"quorumshift {own['name']}"),
            *("--py-files", f"{place}/{PACKAGE}"),
            *conf,
            *(own["options"] or []),
            f"{place}/{own['name']}.py",
            *("--input", f"{input_dir}/{spark_submission.JOB}"),
        ]

    # The verdict ---------------------------------------------------------------------------------------------------

    def _judged(self, result: dict, where: str, gate: str) -> dict:
        """Tell the verdict in a line or a few, and fail where it is not `pass`."""
        if result.get("failed"):
            return result
        found, ran = result["result"], result["submission"]
        found["run"] = self.session["run"]
        if found["verdict"] == "pass":
            agree = sum(one["match"] for one in found["counts"].values())
            views = len([name for name in found["views"] if not name.startswith("baseline")])
            self.say(f"{agree} comparisons of {views} views agree ({ran['seconds']:.0f} s)")
            shutil.copyfile(os.path.join(where, "entities.parquet"), f"{self._baseline}.new")
            os.replace(f"{self._baseline}.new", self._baseline)
            return result
        for one in (found.get("differences") or [])[:SHOWN]:
            self.say(one["text"])
        why = "; ".join(found.get("reasons") or ["no reason was given"])
        self.evidence().note("gate", gate, result=found["verdict"], reason=why, seconds=ran.get("seconds"))
        report = os.path.relpath(os.path.join(where, "report.html"))
        return {
            **result,
            "failed": True,
            "msg": f"gate {gate} stays closed: {found['verdict']}: {why}. The report: {report}",
        }


def _builder():
    """Return the module that builds the package; it stands outside of what Ansible imports of a collection."""
    spec = importlib.util.spec_from_file_location("spark_package", os.path.join(JOBS, "package.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
