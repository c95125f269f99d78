#!/usr/bin/python
# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: spark_job
short_description: Submit a verification job to Spark and read its verdict
version_added: 0.1.0
description:
  - Runs on the Spark host. Submits a job of the package C(spark/) by C(spark-submit) and returns its C(result.json).
  - The job goes on when the control process or SSH dies, ends at O(timeout_s), and its input is removed however it
    ended. A result counts only with the nonce of its submission; without one the verdict is V(error), and the reason
    quotes Spark's own log.
options:
  name:
    description: The name of the job. Handled by the action plugin, which makes the other options from it.
    type: str
    choices: [metadata_parity, data_fingerprint]
  gate:
    description: The gate that the job is for. Handled by the action plugin.
    type: str
  seen:
    description:
      - What M(quorumshift.kafka.migration_state) returned right before the metadata log was copied. Handled by the
        action plugin.
    type: dict
  log:
    description: What M(quorumshift.kafka.metadata_snapshot) returned. Handled by the action plugin.
    type: dict
  archive:
    description: Where that snapshot is on the control node. Handled by the action plugin.
    type: path
  going_on:
    description:
      - For a job that asked for another snapshot, the RV(going_on) of the task that submitted it. Handled by the action
        plugin.
    type: dict
  master:
    description: Spark's master, as C(--master) takes it. Handled by the action plugin.
    type: str
  conf:
    description: Settings of Spark by key. Handled by the action plugin.
    type: dict
  options:
    description: Further options of C(spark-submit). Handled by the action plugin.
    type: list
    elements: str
  jars:
    description: The jars of Spark's Kafka source, on the Spark host. Handled by the action plugin.
    type: list
    elements: str
  packages:
    description: Spark's Kafka source by its Maven coordinates, where no jars are named. Handled by the action plugin.
    type: str
  submit:
    description:
      - The command C(spark-submit) with its options, ending with the script of the job. A task gives the command alone,
        and the action plugin adds the rest.
    type: list
    elements: str
    required: true
  job:
    description: The job, without what O(client), O(zookeeper_client) and O(encoder_secrets) say.
    type: dict
    required: true
  nonce:
    description: What tells this submission from every other one.
    type: str
    required: true
  input_dir:
    description:
      - A directory of mode 0700 that holds what the job reads, for instance the metadata log. The job's C(job.json),
        with credentials, is written there. It is removed when the job has ended.
    type: path
    required: true
  output_dir:
    description: Where the job leaves its result, report and tables.
    type: path
    required: true
  remove:
    description: What is removed when the job has ended; by default O(input_dir).
    type: path
  answer:
    description:
      - For a job that goes on and wants the metadata log cut again (RV(wanted)), where the new one lies,
        {round, archive, sha256, end_offset}, or {round, error}.
    type: dict
    default: {}
  python:
    description: The Python with pyspark, of the driver and the executors; by default the one that runs the module.
    type: path
  digest_key:
    description: The key under which the job hashes secrets before it compares them, sealed.
    type: str
  encoder_secrets:
    description: C(password.encoder.secret) of the brokers, sealed, and the old one where there is one.
    type: list
    elements: str
    default: []
  run_key:
    description: The key that opens sealed secrets. The action plugin fills it in.
    type: str
    required: true
  timeout_s:
    description: After how many seconds the job is ended.
    type: float
    default: 900
  carry:
    description: What an earlier, unfinished call returned. The action plugin hands it back; leave it out.
    type: dict
    default: {}
extends_documentation_fragment:
  - quorumshift.kafka.connection
  - quorumshift.kafka.zookeeper
attributes:
  check_mode: {support: full, description: Submits all the same. A job only reads.}
  diff_mode: {support: none, description: Changes nothing.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Compare ZooKeeper with the metadata log
  quorumshift.kafka.spark_job:
    submit: [spark-submit, --master, "local[*]", metadata_parity.py]
    job: "{{ job }}"
    nonce: "{{ nonce }}"
    input_dir: /run/quorumshift-input
    output_dir: /var/tmp/quorumshift-output
    digest_key: "{{ key }}"
    bootstrap_servers: b1:9094
"""

RETURN = r"""
result:
  description: What the job found, as in C(spark/quorumshift_spark/result.schema.json).
  type: dict
  returned: when the job has ended
going_on:
  description: What the next task for the same job takes, where it asked for another snapshot.
  type: dict
  returned: with RV(wanted)
wanted:
  description:
    - What the job waits for before it can go on, {round, above}; the metadata log, cut at a high watermark above that
      offset. Null when the job has ended.
  type: dict
  returned: success
submission:
  description: How it ran, {exit_code, reason, seconds, peak_mib}.
  type: dict
  returned: when the job has ended
"""

import os
import sys
import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils import argument_specs, seal, spark_submission

SLICE_S = 10.0
# Options that the action plugin takes for itself
OF_ACTION = {
    "name": {"type": "str", "choices": ["metadata_parity", "data_fingerprint"]},
    "gate": {"type": "str"},
    "seen": {"type": "dict"},
    "log": {"type": "dict"},
    "archive": {"type": "path"},
    "going_on": {"type": "dict"},
    "master": {"type": "str"},
    "conf": {"type": "dict"},
    "options": {"type": "list", "elements": "str"},
    "jars": {"type": "list", "elements": "str"},
    "packages": {"type": "str"},
}
LEFT_TO_END_S = 60.0  # what the supervisor may take to end a job at its bound


def main():
    """Submit at the first call, wait a few seconds at each."""
    module = AnsibleModule(
        argument_spec={
            **argument_specs.CONNECTION,
            "submit": {"type": "list", "elements": "str", "required": True},
            "job": {"type": "dict", "required": True},
            "nonce": {"type": "str", "required": True},
            "input_dir": {"type": "path", "required": True},
            "output_dir": {"type": "path", "required": True},
            "remove": {"type": "path"},
            "answer": {"type": "dict", "default": {}},
            "python": {"type": "path"},
            "digest_key": {"type": "str", "no_log": False},
            "encoder_secrets": {"type": "list", "elements": "str", "default": [], "no_log": False},
            "run_key": {"type": "str", "required": True, "no_log": True},
            "timeout_s": {"type": "float", "default": 900},
            "carry": {"type": "dict", "default": {}},
            **OF_ACTION,
        },
        supports_check_mode=True,
    )
    given, carry = module.params, dict(module.params["carry"])
    try:
        if not carry:
            carry = {"began": time.time(), "answered": 0}
            begin(given)
        if given["answer"].get("round", 0) > carry["answered"]:
            carry["answered"] = spark_submission.answer(given["input_dir"], given["nonce"], given["answer"])
    except (spark_submission.SubmissionError, seal.SealError, OSError) as error:
        module.fail_json(msg=f"the Spark job could not be submitted: {error}")
    waited = time.time() - carry["began"]
    end, asked = spark_submission.watch(given["input_dir"], given["output_dir"], carry["answered"], SLICE_S)
    if asked:
        module.exit_json(changed=False, done=True, wanted=asked, carry=carry)
    if end is None and waited < given["timeout_s"] + LEFT_TO_END_S:
        module.exit_json(changed=False, done=False, carry=carry, progress=f"Spark is at work ({waited:.0f} s)")
    end = end or {"exit_code": None, "reason": f"it was not ended {waited:.0f} s after it began"}
    spark_submission.clean(given["remove"] or given["input_dir"])
    found = spark_submission.result(given["output_dir"], given["nonce"], end)
    module.exit_json(changed=False, done=True, wanted=None, result=found, submission=end)


def begin(given):
    """Submit the job. Raises SubmissionError, SealError, OSError."""
    python = given["python"] or sys.executable
    spark_submission.begin(
        given["submit"],
        whole(given),
        given["input_dir"],
        given["output_dir"],
        given["remove"] or given["input_dir"],
        given["timeout_s"],
        {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python},
    )


def whole(given):
    """Return the job with what must not be shown: how to connect, and the secrets under which values were encoded."""
    job, views = dict(given["job"]), dict(given["job"].get("views") or {})
    if "zookeeper" in views:
        secrets = [seal.unseal(given["run_key"], one) for one in given["encoder_secrets"]]
        views["zookeeper"] = {
            **views["zookeeper"],
            "connect": given["zookeeper_connect"],
            "client": given["zookeeper_client"],
            "password_encoder_secrets": secrets,
        }
    if "brokers" in views:
        views["brokers"] = [{**broker, "client": given["client"]} for broker in views["brokers"]]
    if "cluster" in views:
        views["cluster"] = {**views["cluster"], "client": given["client"]}
    job.update(nonce=given["nonce"], views=views, output=given["output_dir"])
    if given["digest_key"]:
        job["digest_key_file"] = key_file(given)
    return job


def key_file(given):
    """Write the key under which secrets are hashed beside the job, 0600, and return its path."""
    path = os.path.join(given["input_dir"], "digest.key")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as stream:
        stream.write(seal.unseal(given["run_key"], given["digest_key"]))
    return path


if __name__ == "__main__":
    main()
