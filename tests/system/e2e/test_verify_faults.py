# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A failed comparison closes the gate with the cause; it never passes, and no input of the job is left behind."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess

import pytest

from tests.system.e2e.comparing import METADATA, assert_nothing_left, killed, verify


@pytest.fixture(scope="module")
def zk(fresh):
    """A cluster with a baseline, from one comparison."""
    first = verify(fresh)
    assert first.ran.code == 0 and first.result["verdict"] == "pass", first.ran.text
    return fresh


def assert_closed(testbed, compared, *patterns):
    """Assert that the run failed with a verdict that is no answer, and a message with `patterns`, and left no input of
    the job."""
    assert compared.ran.code != 0, compared.ran.text
    message = re.search(r"gate before_controllers stays closed: (.*)", compared.ran.text)
    assert message and message.group(1).startswith(("error: ", "incomplete: ")), compared.ran.text
    for pattern in patterns:
        assert re.search(pattern, message.group(1)), message.group(0)
    assert compared.result.get("verdict") in (None, "error"), compared.result
    assert "Traceback" not in compared.ran.text, compared.ran.text
    assert_nothing_left(testbed)


@pytest.mark.parametrize(
    ("part", "pattern"),
    [
        ("driver", "the Spark job wrote no result: spark-submit was killed by signal 9 after"),
        ("supervisor", "its supervisor process ended without a result"),
        ("worker", "Run the playbook again"),
    ],
)
def test_a_killed_process_of_the_job_closes_the_gate(zk, part, pattern):
    with killed(zk, part):
        compared = verify(zk, quorumshift_spark_wait_s=0)  # a worker that has only warmed up is idle, and not missed
    assert_closed(zk, compared, pattern)


@pytest.mark.parametrize("part", ["driver", "supervisor"])
def test_spark_that_is_killed_before_its_job_is_started_anew(zk, part):
    with killed(zk, part, waiting=True):
        compared = verify(zk)
    assert compared.ran.code == 0 and compared.result["verdict"] == "pass", compared.ran.text
    assert_nothing_left(zk)


def test_a_result_of_another_submission_is_rejected(zk):
    root = pathlib.Path(zk.variables["quorumshift_artifacts_dir"])

    def plant():
        newest = max(root.glob(f"*/*/verify/*/{METADATA}"), key=lambda path: path.stat().st_mtime)
        result = {"schema": 1, "verdict": "pass", "nonce": "0" * 32, "reasons": []}
        (newest / "result.json").write_text(json.dumps(result))

    with killed(zk, "driver", first=plant):
        ran = verify(zk).ran
    assert ran.code != 0 and "stays closed: error: the result is of another submission" in ran.text, ran.text
    assert_nothing_left(zk)


def test_an_unreachable_broker_closes_the_gate(zk):
    host = zk.brokers[1]
    control_node = zk.run(host, "echo $SSH_CONNECTION").split()[0]
    port = zk.variables["quorumshift_bootstrap_servers"].split(",")[1].rpartition(":")[2]
    rule = f"INPUT -p tcp -s {control_node} --dport {port} --syn -j REJECT"
    zk.run(host, f"iptables -I {rule}")
    try:
        compared = verify(zk)
    finally:
        zk.run(host, f"iptables -D {rule}")
    assert_closed(zk, compared, r"view broker:\d+ could not be read: .*run the playbook again")


def test_a_broker_that_is_down_closes_the_gate(zk):
    host = zk.brokers[2]
    zk.run(host, "systemctl stop kafka")
    try:
        compared = verify(zk)
    finally:
        zk.run(host, "systemctl start kafka")
    zk.wait_in_sync()
    assert_closed(zk, compared, r"view broker:\d+ could not be read")


def test_a_torn_baseline_closes_the_gate(zk):
    root = pathlib.Path(zk.variables["quorumshift_artifacts_dir"])
    baseline = next(root.glob("*/baseline/entities.parquet"))
    content = baseline.read_bytes()
    baseline.write_bytes(content[: len(content) // 2])
    try:
        compared = verify(zk)
    finally:
        baseline.write_bytes(content)
    assert_closed(zk, compared, "baseline entities.parquet cannot be read", "remove the directory baseline")


@pytest.mark.parametrize("left_kib", [24, 150, 200])
def test_a_full_disk_of_artifacts_is_reported(zk, tmp_path, left_kib):
    small = tmp_path / "artifacts"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={left_kib}k", "tmpfs", str(small)], check=True)
    try:
        ran = zk.play("verify", extra={"quorumshift_artifacts_dir": str(small)})
    finally:
        subprocess.run(["umount", str(small)], check=True)
    assert ran.code != 0 and re.search(f"{small}/.*No space left on device", ran.text), ran.text
    assert "Traceback" not in ran.text, ran.text
    assert_nothing_left(zk)


def test_a_full_disk_of_the_jobs_input_is_reported(zk, tmp_path):
    small = tmp_path / "input"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", str(small)], check=True)
    try:
        ran = zk.play("verify", extra={"_quorumshift_temporary": str(small)})
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", str(small)], check=True)
    assert ran.code != 0 and "No space left on device" in ran.text, ran.text
    assert "Traceback" not in ran.text, ran.text


def test_a_timeout_closes_the_gate(zk):
    compared = verify(zk, quorumshift_spark_timeout_s=1)
    assert_closed(zk, compared, r"it was stopped after 1 s \(quorumshift_spark_timeout_s\)")


def test_the_next_comparison_passes(zk):
    compared = verify(zk)
    assert compared.ran.code == 0 and compared.result["verdict"] == "pass", compared.ran.text
