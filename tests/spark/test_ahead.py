# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Spark is started ahead of its job: it warms up, waits, and ends where no job comes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from quorumshift_spark import metadata_parity, warm_up

from tests.spark import parity


def test_a_warm_up_finds_its_difference_and_no_other(tmp_path):
    with parity.local_spark() as spark:
        result = metadata_parity.compare_synthetic_views(spark, str(tmp_path))
    assert result["verdict"] == "differ", result["reasons"]
    found = [(entry["kind"], json.loads(entry["key"]), set(entry["sides"])) for entry in result["differences"]]
    key = ["topic", warm_up.UNEQUAL, "retention.ms"]
    assert found == [("config", key, {"metadata_log", warm_up.OTHER_LOG})]
    counts = result["counts"]
    topics = len(warm_up.TOPICS)
    comparisons = 2 + 3  # of ZooKeeper, the other log and the brokers with the log
    assert counts["topic"]["match"] == topics * comparisons
    assert counts["config"]["match"] == topics * comparisons - 1 and counts["config"]["differ"] == 1
    assert counts["partition"]["match"] == 3 * topics * comparisons
    assert set(result["timings"]) == {"read", "compare", "recheck", "write"}


@pytest.fixture
def ahead(tmp_path):
    """Start Spark ahead of a job in tmp_path/input; yield its process."""
    (tmp_path / "input").mkdir(mode=0o700)
    conf = [text for name, value in parity.CONF.items() for text in ("--conf", f"{name}={value}")]
    script = parity.ROOT / "spark" / "quorumshift_spark" / "submit.py"
    with open(tmp_path / "spark.log", "wb") as log:
        process = subprocess.Popen(
            [
                *(str(Path(sys.executable).with_name("spark-submit")), *conf, str(script), "metadata_parity"),
                *("--input", str(tmp_path / "input" / "job.json"), "--wait", "300"),
            ],
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONPATH": parity.PYTHONPATH, "PYSPARK_PYTHON": sys.executable},
        )
    yield process
    process.kill()
    process.wait()


def warming_up(tmp_path, process):
    """Wait until the warm-up has its directory."""
    deadline = time.monotonic() + 300
    while not any(path.name.startswith("warm-up-") for path in (tmp_path / "input").iterdir()):
        assert process.poll() is None and time.monotonic() < deadline, (tmp_path / "spark.log").read_text()
        time.sleep(0.1)


def test_a_job_that_comes_during_the_warm_up_is_run(tmp_path, ahead):
    """The job cannot be used, which it says: it was read."""
    warming_up(tmp_path, ahead)
    job = tmp_path / "input" / "job.json"
    with open(os.open(job, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as stream:
        stream.write("{}")
    assert ahead.wait(300) == 2
    assert "'nonce' is missing" in (tmp_path / "spark.log").read_text()


def test_spark_ends_when_its_directory_is_removed(tmp_path, ahead):
    warming_up(tmp_path, ahead)
    os.rename(tmp_path / "input", tmp_path / "removed")
    assert ahead.wait(300) == 4, (tmp_path / "spark.log").read_text()
