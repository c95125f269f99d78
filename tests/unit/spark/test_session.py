# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the operator reads about executors that cannot run the job."""

from __future__ import annotations

import pathlib

import pytest
from pyspark import SparkConf
from quorumshift_spark import session


def test_a_missing_module_names_the_host_and_the_command():
    text = session.unusable([("w2", "kazoo"), ("w1", "confluent_kafka"), ("w1", "kazoo"), ("w1", "kazoo")])
    assert text.startswith("executor w1: Python cannot import confluent_kafka, kazoo.")
    assert text.endswith("python -m pip install confluent-kafka kazoo")
    assert session.unusable([]) is None


def test_another_python_version_names_the_host():
    text = "Lost task 0.3 in stage 0.0 (TID 3) (10.0.0.7 executor 1): [PYTHON_VERSION_MISMATCH] Python in worker"
    assert session.explained(text, "").startswith("executor 10.0.0.7: Python has another version")
    assert session.explained("anything else", "") is None


@pytest.mark.parametrize(
    "text", ["Spark context stopped while waiting for backend", "Job 0 cancelled because SparkContext was shut down"]
)
def test_a_master_that_does_not_answer_is_named(text):
    said = session.explained(f"An error occurred: java.lang.IllegalStateException: {text}", "spark://m:7077")
    assert "spark://m:7077 is down or has another spark.authenticate.secret" in said


def test_the_workers_of_one_host_have_a_daemon_of_this_package():
    given = SparkConf(loadDefaults=False).set("spark.master", "local[2]").set("spark.executorEnv.PYTHONPATH", "/theirs")
    settings = session._settings(given)
    ours, theirs = settings["spark.executorEnv.PYTHONPATH"].split(":")
    assert settings["spark.python.daemon.module"] == "quorumshift_spark.daemon" and theirs == "/theirs"
    assert pathlib.Path(ours, "quorumshift_spark", "daemon.py").exists()


@pytest.mark.parametrize("given", [{"spark.master": "spark://m:7077"}, {"spark.python.daemon.module": "theirs"}])
def test_a_cluster_and_another_daemon_are_left_alone(given):
    conf = SparkConf(loadDefaults=False).set("spark.master", "local[*]").setAll(given.items())
    assert list(session._settings(conf)) == ["spark.python.sql.dataFrameDebugging.enabled", "spark.redaction.regex"]


def test_an_operators_redaction_is_left_alone():
    given = SparkConf(loadDefaults=False).set("spark.master", "spark://m:7077").set("spark.redaction.regex", "theirs")
    assert "spark.redaction.regex" not in session._settings(given)
