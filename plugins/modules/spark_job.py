#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: spark_job
short_description: Submit a verification job to Spark and return its verdict
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Runs on the Spark host. Submits a job of the package C(spark/) with C(spark-submit) and returns its C(result.json).
  - With O(state=started) it starts Spark ahead of a job, which then takes seconds. Nothing of the cluster is read
    before the job. Without a job, Spark ends after O(wait_s), or when O(directory) is removed.
  - The job continues if the control process or SSH dies. It ends at O(timeout_s) at the latest. Its input is removed in
    any case.
  - A result counts only with the nonce of its submission. Without a result the verdict is V(error), and the reason
    quotes Spark's log.
options:
  state:
    description:
      - V(started) starts Spark and returns at once; V(ended) submits a job and waits until it has ended.
    type: str
    choices: [started, ended]
    default: ended
  application:
    description:
      - The RV(application) of a task with O(state=started), which runs the job if it still waits for one. Handled by
        the action plugin.
    type: dict
  name:
    description: The name of the job. Handled by the action plugin, which derives the other options from it.
    type: str
    choices: [metadata_parity, data_fingerprint, ensemble_parity]
  gate:
    description: The gate that the job is for. Handled by the action plugin.
    type: str
  seen:
    description:
      - The result of M(quorumshift.kafka.migration_state) from just before the snapshot of the metadata log. Handled by
        the action plugin.
    type: dict
  log:
    description:
      - The result of M(quorumshift.kafka.metadata_snapshot), with its C(archive). Handled by the action plugin.
    type: dict
  others:
    description:
      - For each host of another voter the result of M(quorumshift.kafka.metadata_snapshot), with its C(archive), or
        with C(msg) why there is none. Handled by the action plugin.
    type: dict
  ensembles:
    description:
      - "For O(name=ensemble_parity): C(archives), what M(quorumshift.kafka.zk_tree_snapshot) returned in a loop over
        hosts. C(source): which of these hosts are of the source. C(zxid), C(cut) and C(without_source): see the job.
        Handled by the action plugin."
    type: dict
  copy_source:
    description:
      - The files of a ZooKeeper server that show it as the initial copy found it, C({host, archive, sha256, snapshot,
        before}), or C({error}). C(before) is a zxid of before the copy, when the snapshot was complete. Handled by the
        action plugin.
    type: dict
  snapshots:
    description:
      - For each ZooKeeper server its newest snapshot of before the job, C({snapshot, zxid}). They are kept with the
        baseline. Handled by the action plugin.
    type: dict
  going_on:
    description:
      - For a job that waits for another snapshot, the RV(going_on) of the task that submitted it. Handled by the action
        plugin.
    type: dict
  master:
    description: Spark's master, as C(--master) takes it. Handled by the action plugin.
    type: str
  conf:
    description: Spark settings by key. Handled by the action plugin.
    type: dict
  options:
    description: Further options of C(spark-submit). Handled by the action plugin.
    type: list
    elements: str
  submit:
    description:
      - The command C(spark-submit) with its options and the job's script. A task gives the command only; the action
        plugin adds the rest.
    type: list
    elements: str
    required: true
  job:
    description: The job, without the content of O(client), O(zookeeper_client) and O(encoder_secrets).
    type: dict
  nonce:
    description: A random string that identifies this submission.
    type: str
  directory:
    description:
      - The application's directory, of mode 0700. Its directory C(input) has the job's input, for instance the metadata
        log. The module writes C(job.json) there, which holds credentials. C(input) is removed when the job has ended.
    type: path
    required: true
  is_started:
    description: Whether O(submit) was run in O(directory) ahead of the job.
    type: bool
    default: false
  output_dir:
    description: Where the job writes its result, report and tables.
    type: path
  answer:
    description:
      - For a job that waits for another snapshot (RV(wanted)), where that is, {round, archive, sha256, end_offset}, or
        {round, error}.
    type: dict
    default: {}
  python:
    description: The Python with pyspark for the driver and the executors; by default the module's own Python.
    type: path
  digest_key:
    description: The sealed key with which the job hashes secrets for comparison.
    type: str
  encoder_secrets:
    description: C(password.encoder.secret) of the brokers, and the old one if set; sealed.
    type: list
    elements: str
    default: []
  run_key:
    description: The key that unseals secrets. The action plugin fills it in.
    type: str
    required: true
  timeout_s:
    description: After how many seconds the job is stopped.
    type: float
    default: 900
  wait_s:
    description: How many seconds Spark waits for a job. Then it ends, and the job starts it anew.
    type: float
    default: 1800
  carry:
    description: What an earlier, unfinished call returned. The action plugin passes it on; leave it out.
    type: dict
    default: {}
extends_documentation_fragment:
  - quorumshift.kafka.connection
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.zookeeper.connect
attributes:
  check_mode: {support: full, description: Submits the job as usual. A job only reads.}
  diff_mode: {support: none, description: Changes nothing.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Compare ZooKeeper with the metadata log
  quorumshift.kafka.spark_job:
    submit: [spark-submit, --master, "local[*]", submit.py, metadata_parity]
    job: "{{ job }}"
    nonce: "{{ nonce }}"
    directory: /run/quorumshift-job
    output_dir: /var/tmp/quorumshift-output
    digest_key: "{{ key }}"
    bootstrap_servers: b1:9094
"""

RETURN = r"""
application:
  description:
    - Where Spark waits for a job, and with which command it was started. Input of the task with that job, which returns
      it as well, so that no other task takes it.
  type: dict
  returned: success
waited:
  description: False where Spark ended before the job came, so that the job was not begun.
  type: bool
  returned: with O(is_started=true)
result:
  description: The job's result, as in C(spark/quorumshift_spark/result.schema.json).
  type: dict
  returned: when the job has ended
going_on:
  description: Input of the next task for the same job, if that waits for another snapshot.
  type: dict
  returned: with RV(wanted)
wanted:
  description:
    - The snapshot that the job waits for, {round, above}; its high watermark must be above that offset. Null when the
      job has ended.
  type: dict
  returned: success
submission:
  description: How the job ran, {exit_code, reason, seconds, peak_mib}.
  type: dict
  returned: when the job has ended
"""

import os
import sys
import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base import argument_specs
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets import seal
from ansible_collections.quorumshift.kafka.plugins.module_utils.spark_host import spark_submission

SLICE_S = 10.0
# Options that the action plugin takes for itself
OF_ACTION = {
    "application": {"type": "dict"},
    "name": {"type": "str", "choices": ["metadata_parity", "data_fingerprint", "ensemble_parity"]},
    "gate": {"type": "str"},
    "seen": {"type": "dict"},
    "log": {"type": "dict"},
    "others": {"type": "dict"},
    "copy_source": {"type": "dict"},
    "snapshots": {"type": "dict"},
    "ensembles": {"type": "dict"},
    "going_on": {"type": "dict"},
    "master": {"type": "str"},
    "conf": {"type": "dict"},
    "options": {"type": "list", "elements": "str"},
}
TAKEN_WITHIN_S = 60.0  # a job that starts Spark itself comes at once
LEFT_TO_END_S = 60.0  # the supervisor's time to stop a job after timeout_s


def main():
    """Submit the job at the first call; wait a few seconds at each call."""
    module = AnsibleModule(
        argument_spec={
            **argument_specs.CONNECTION,
            "state": {"type": "str", "choices": ["started", "ended"], "default": "ended"},
            "submit": {"type": "list", "elements": "str", "required": True},
            "job": {"type": "dict"},
            "nonce": {"type": "str"},
            "directory": {"type": "path", "required": True},
            "is_started": {"type": "bool", "default": False},
            "output_dir": {"type": "path"},
            "answer": {"type": "dict", "default": {}},
            "python": {"type": "path"},
            "digest_key": {"type": "str", "no_log": False},
            "encoder_secrets": {"type": "list", "elements": "str", "default": [], "no_log": False},
            "run_key": {"type": "str", "required": True, "no_log": True},
            "timeout_s": {"type": "float", "default": 900},
            "wait_s": {"type": "float", "default": 1800},
            "carry": {"type": "dict", "default": {}},
            **OF_ACTION,
        },
        required_if=[("state", "ended", ("job", "nonce", "output_dir"))],
        supports_check_mode=True,
    )
    given, carry = module.params, dict(module.params["carry"])
    directory = given["directory"]
    try:
        if given["state"] == "started":
            start(given, given["wait_s"])
            module.exit_json(changed=False, done=True)
        if not carry:
            carry = {"began": time.time(), "answered": 0}
            if not given["is_started"]:
                start(given, TAKEN_WITHIN_S)
            if not spark_submission.take(directory):
                module.exit_json(changed=False, done=True, waited=False)
            spark_submission.hand_over(directory, complete_job(given), given["output_dir"])
        if given["answer"].get("round", 0) > carry["answered"]:
            carry["answered"] = spark_submission.answer(directory, given["nonce"], given["answer"])
    except (spark_submission.SubmissionError, seal.SealError, OSError) as error:
        module.fail_json(msg=f"the Spark job could not be submitted: {error} (QS-VERIFY-002)")
    waited = time.time() - carry["began"]
    end, wanted = spark_submission.watch(directory, carry["answered"], SLICE_S)
    if wanted:
        module.exit_json(changed=False, done=True, wanted=wanted, carry=carry)
    if end is None and waited < given["timeout_s"] + LEFT_TO_END_S:
        module.exit_json(changed=False, done=False, carry=carry, progress=f"the Spark job is running ({waited:.0f} s)")
    end = end or {"exit_code": None, "reason": f"it is still running {waited:.0f} s after its start"}
    spark_submission.clean(directory)
    spark_submission.keep_log(directory, given["output_dir"])
    result = spark_submission.read_result(given["output_dir"], given["nonce"], end)
    module.exit_json(changed=False, done=True, wanted=None, result=result, submission=end)


def start(given, wait_s):
    """Start Spark in the directory, where it waits for a job so long. Raises SubmissionError, OSError."""
    python = spark_submission.python_environment(given["python"] or sys.executable)
    spark_submission.start(given["submit"], given["directory"], wait_s, given["timeout_s"], python)


def complete_job(given):
    """Return the job with connections and secrets added."""
    job, views = dict(given["job"]), dict(given["job"].get("views") or {})
    if "zookeeper" in views:
        secrets = [seal.unseal(given["run_key"], secret) for secret in given["encoder_secrets"]]
        views["zookeeper"] = {
            **views["zookeeper"],
            "connect": given["zookeeper_connect"],
            "client": given["zookeeper_client"],
            "password_encoder_secrets": secrets,
        }
    if "brokers" in views:
        views["brokers"] = [{**broker, "client": given["client"]} for broker in views["brokers"]]
    if "controllers" in views:
        client = given["controller_client"]
        views["controllers"] = [{**controller, "client": client} for controller in views["controllers"]]
    if "cluster" in views:
        views["cluster"] = {**views["cluster"], "client": given["client"]}
    job.update(nonce=given["nonce"], views=views, output=given["output_dir"])
    if given["digest_key"]:
        job["digest_key_file"] = key_file(given)
    return job


def key_file(given):
    """Write the key that hashes secrets into the input directory, with mode 0600, and return its path."""
    path = os.path.join(given["directory"], spark_submission.INPUT, "digest.key")
    with open(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w", encoding="ascii"
    ) as stream:
        stream.write(seal.unseal(given["run_key"], given["digest_key"]))
    return path


if __name__ == "__main__":
    main()
