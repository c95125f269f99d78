# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a job is submitted, and what its verdict does to the gate."""

from __future__ import annotations

import os

import pytest
from ansible.errors import AnsibleActionFail

SEEN = {"phase": "zk", "mirrored_offset": None, "mirrored_zxid": None}
ARGS = {"name": "metadata_parity", "gate": "before_trigger", "seen": SEEN, "log": {}, "archive": ""}


def result(verdict, **more):
    found = {
        "job": "metadata_parity",
        "verdict": verdict,
        "counts": {"topic": {"match": 5}},
        "views": ["zookeeper"],
        **more,
    }
    return {"result": found, "submission": {"seconds": 9.0}, "wanted": None}


@pytest.fixture
def spark(harness, tmp_path):
    harness.variables["_quorumshift_temporary"] = str(tmp_path)
    harness.variables["_quorumshift_private"] = "quorumshift-cluster-1-"
    harness.variables["quorumshift_spark_conf"] = {"spark.ui.enabled": "false"}
    node = {"node_id": 1, "log_dirs": [], "file": {"properties": {"listeners": "PLAINTEXT://b1:9094"}}}
    harness.facts("b1", quorumshift_node=node)
    harness.facts("b2", quorumshift_node={**node, "node_id": 2})
    return harness


def test_a_pass_is_shown_in_a_line_and_kept_as_the_next_baseline(spark):
    where = os.path.join(spark.artifacts.directory, "verify/before_trigger/metadata_parity")

    def module(args):
        with open(os.path.join(args["output_dir"], "entities.parquet"), "w", encoding="ascii") as stream:
            stream.write("rows")
        return result("pass")

    spark._module = module
    done = spark.run("spark_job", ARGS)
    assert "failed" not in done and done["result"]["run"] == spark.session["run"]
    assert spark.printed == ["    5 comparisons of 1 views agree (9 s)"]
    assert os.path.exists(os.path.join(spark.artifacts.cluster, "baseline", "entities.parquet")) and os.path.isdir(
        where
    )


def test_the_command_has_master_settings_and_job(spark):
    spark.run("spark_job", ARGS, result("differ"))
    submit = spark.asked[0]["submit"]
    assert submit[1:3] == ["--master", "local[*]"] and "spark.ui.enabled=false" in submit
    assert "spark.authenticate=true" not in submit
    assert submit[-3].endswith("/metadata_parity.py") and submit[-2] == "--input"
    views = spark.asked[0]["job"]["views"]
    assert [one["id"] for one in views["brokers"]] == [1, 2] and "zookeeper" in views and "metadata_log" not in views


def test_spark_authenticates_and_encrypts_where_the_job_leaves_the_host(spark):
    given = {**ARGS, "master": "spark://s1:7077", "conf": {"spark.io.encryption.enabled": "false"}}
    spark.run("spark_job", given, result("differ"))
    away = spark.asked[0]["submit"]
    assert "spark.authenticate=true" in away and "spark.network.crypto.enabled=true" in away
    assert "spark.io.encryption.enabled=false" in away, "the operator's setting counts"


@pytest.mark.parametrize("key", ["spark.hadoop.fs.s3a.secret.key", "spark.ssl.keyPassword", "spark.x.account.key"])
def test_a_secret_does_not_reach_a_command_line(spark, key):
    given = {**ARGS, "conf": {key: "hunter2", "spark.security.credentials.hive.enabled": "false"}}
    with pytest.raises(AnsibleActionFail, match=f"(?s){key}.*--properties-file") as refused:
        spark.run("spark_job", given, result("pass"))
    assert "hunter2" not in str(refused.value) and spark.asked == []


@pytest.mark.parametrize("verdict", ["differ", "error", "incomplete"])
def test_anything_but_a_pass_keeps_the_gate_closed(spark, verdict):
    found = result(verdict, differences=[{"text": "topic t is missing"}], reasons=["1 key differs"])
    done = spark.run("spark_job", ARGS, found)
    assert done["failed"] and f"gate before_trigger stays closed: {verdict}: 1 key differs" in done["msg"]
    assert "    topic t is missing" in spark.printed and spark.events("before_trigger")[0]["result"] == verdict


def test_a_gate_that_needs_the_metadata_log_does_not_do_without(spark):
    with pytest.raises(Exception, match="the metadata log was not read"):
        spark.run("spark_job", {**ARGS, "gate": "before_kraft"}, result("pass"))


def test_a_job_that_wants_a_newer_log_can_be_continued(spark):
    asks = {**result("pass"), "wanted": {"round": 1, "above": 7}, "carry": {"began": 1}}
    begun = spark.run("spark_job", ARGS, asks)
    assert begun["going_on"]["round"] == 1 and begun["going_on"]["carry"] == {"began": 1}
    assert {"input_dir", "output_dir", "nonce", "job", "submit"} == set(begun["going_on"]["args"])
