# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""spark_facts: what is asked of the Spark host, and that a host that cannot be read is a fact."""

from __future__ import annotations

import os
import sys

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import spark

READ = {"spark": {"memory_mib": 8000, "failed": []}}


@pytest.fixture
def spark_host(harness):
    harness.variables.update(
        quorumshift_zookeeper_connect="z1:2181,z2:2181/kafka",
        quorumshift_spark_conf={"spark.ui.enabled": "false"},
        quorumshift_spark_options=["--driver-memory", "4g"],
        quorumshift_controller_host="",
        quorumshift_controller_port=9093,
        _quorumshift_temporary="/tmp",
    )
    for number, host in ((1, "b1"), (2, "b2")):
        properties = {"advertised.listeners": f"PLAINTEXT://{host}.example:9094"}
        harness.facts(host, quorumshift_node={"node_id": number, "file": {"properties": properties}})
    return harness


def test_a_job_of_this_cluster_is_asked_for(spark_host):
    result = spark_host.run("spark_facts", {}, READ, delegate_to="spark-1")
    assert result["spark"] == {"host": "spark-1", "master": "local[*]", "heap_mib": 4096, **READ["spark"]}
    (asked,) = spark_host.asked
    assert asked["submit"] == [os.path.join(os.path.dirname(sys.executable), "spark-submit")]
    assert "spark.ui.enabled=false" in asked["options"] and asked["options"][-2:] == ["--driver-memory", "4g"]
    assert asked["packages"] == list(spark.PACKAGES) and asked["directories"] == ["/tmp", "/tmp"]
    assert [(target["kind"], target["address"]) for target in asked["targets"]] == [
        ("broker", "b1.example:9094"),
        ("broker", "b2.example:9094"),
        ("controller", "c1:9093"),
        ("zookeeper", "z1:2181"),
        ("zookeeper", "z2:2181"),
    ]
    assert not {"bootstrap_servers", "client", "zookeeper_connect"} & set(asked), "credentials stay here"


def test_the_control_node_has_the_run_artifacts_too(spark_host):
    spark_host.run("spark_facts", {}, READ)
    assert spark_host.asked[0]["directories"][-1] == spark_host.artifacts.directory


def test_files_of_zookeeper_are_read_in_place_of_its_servers(spark_host):
    spark_host.variables["quorumshift_zookeeper_data_dir"] = "/zk/data"
    spark_host.run("spark_facts", {}, READ)
    assert spark_host.asked[0]["readable"] == ["/zk/data"]
    assert "zookeeper" not in {target["kind"] for target in spark_host.asked[0]["targets"]}


def test_directories_of_spark_are_those_of_its_setting(spark_host):
    spark_host.variables["quorumshift_spark_options"] = ["--conf", "spark.local.dir=/a,/b"]
    spark_host.run("spark_facts", {}, READ, delegate_to="spark-1")
    assert spark_host.asked[0]["directories"] == ["/tmp", "/a", "/b"]


def test_a_command_in_text_is_one_command(spark_host):
    spark_host.variables["quorumshift_spark_submit"] = "/opt/spark/bin/spark-submit"
    spark_host.run("spark_facts", {}, READ)
    assert spark_host.asked[0]["submit"] == ["/opt/spark/bin/spark-submit"]


@pytest.mark.parametrize(
    ("result", "fact"),
    [
        ({"failed": True, "msg": "spark-1: Python 3.6 is too old."}, {"error": "Python 3.6 is too old"}),
        ({"unreachable": True, "msg": "no\nroute"}, {"unreachable": "no route"}),
        ({}, {"error": "the module returned nothing"}),
    ],
)
def test_a_host_that_cannot_be_read_is_a_fact(spark_host, result, fact):
    read = spark_host.run("spark_facts", {}, result, delegate_to="spark-1")
    assert read["spark"] == {"host": "spark-1", "master": "local[*]", **fact} and not read.get("failed")


def test_a_host_without_a_login_is_a_fact(spark_host):
    def unreachable(_args):
        sent = 'Data could not be sent to remote host "spark-1". Make sure this host can be reached over ssh: '
        raise AnsibleConnectionFailure(f"{sent}Permission denied (publickey).")

    spark_host._module = unreachable
    read = spark_host.run("spark_facts", {}, delegate_to="spark-1")
    assert read["spark"]["unreachable"] == "Permission denied (publickey)" and not read.get("failed")


def test_a_secret_in_the_settings_is_named_weeks_before(spark_host):
    spark_host.variables["quorumshift_spark_conf"] = {"spark.ssl.keyPassword": "hunter2"}
    read = spark_host.run("spark_facts", {}, READ)
    assert "holds a secret" in read["spark"]["error"] and "hunter2" not in str(read) and spark_host.asked == []


def test_the_preflight_gets_the_facts(harness):
    harness.run("kraft_preflight", {"spark": READ["spark"]}, {"findings": [], "checks": ["spark"]})
    assert harness.asked[0]["spark"] == READ["spark"]
