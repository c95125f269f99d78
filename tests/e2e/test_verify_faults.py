# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps the comparison from being made closes the gate, and is named: never a pass, and nothing is left behind."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess

import pytest

from tests.e2e.comparing import METADATA, killed, nothing_left, verify


@pytest.fixture(scope="module")
def zk(fresh):
    """A cluster that was compared once: the baseline of what follows."""
    first = verify(fresh)
    assert first.ran.code == 0 and first.result["verdict"] == "pass", first.ran.text
    return fresh


def closed(testbed, compared, *reported):
    """The run failed over verdict `error`, and its message tells all of this; what the job read is gone."""
    assert compared.ran.code != 0, compared.ran.text
    said = re.search(r"gate before_controllers stays closed: (.*)", compared.ran.text)
    assert said and said.group(1).startswith("error: "), compared.ran.text
    for text in reported:
        assert re.search(text, said.group(1)), said.group(0)
    assert compared.result.get("verdict") in (None, "error"), compared.result
    assert "Traceback" not in compared.ran.text, compared.ran.text
    nothing_left(testbed)


@pytest.mark.parametrize(
    ("part", "reported"),
    [
        ("driver", "the Spark job wrote no result: spark-submit was killed by signal 9 after"),
        ("supervisor", "its supervisor process ended without a result"),
        ("worker", "run again|run the gate again"),
    ],
)
def test_a_part_of_the_job_that_is_killed(zk, part, reported):
    with killed(zk, part):
        compared = verify(zk)
    closed(zk, compared, reported)


def test_a_result_of_another_submission_counts_for_nothing(zk):
    root = pathlib.Path(zk.variables["quorumshift_artifacts_dir"])

    def plant():
        newest = max(root.glob(f"*/*/verify/*/{METADATA}"), key=lambda path: path.stat().st_mtime)
        reported = {"schema": 1, "verdict": "pass", "nonce": "0" * 32, "reasons": []}
        (newest / "result.json").write_text(json.dumps(reported))

    with killed(zk, "driver", first=plant):
        ran = verify(zk).ran
    assert ran.code != 0 and "stays closed: error: the result is of another submission" in ran.text, ran.text
    nothing_left(zk)


def test_a_broker_that_the_spark_host_cannot_reach(zk):
    host = zk.brokers[1]
    reported = zk.run(host, "echo $SSH_CONNECTION").split()[0]
    port = zk.variables["quorumshift_bootstrap_servers"].split(",")[1].rpartition(":")[2]
    rule = f"INPUT -p tcp -s {reported} --dport {port} --syn -j REJECT"
    zk.run(host, f"iptables -I {rule}")
    try:
        compared = verify(zk)
    finally:
        zk.run(host, f"iptables -D {rule}")
    closed(zk, compared, r"view broker:\d+ could not be read: .*run the gate again")


def test_a_broker_that_is_down(zk):
    host = zk.brokers[2]
    zk.run(host, "systemctl stop kafka")
    try:
        compared = verify(zk)
    finally:
        zk.run(host, "systemctl start kafka")
    zk.wait_in_sync()
    closed(zk, compared, r"view broker:\d+ could not be read")


def test_a_torn_baseline(zk):
    root = pathlib.Path(zk.variables["quorumshift_artifacts_dir"])
    kept = next(root.glob("*/baseline/entities.parquet"))
    whole = kept.read_bytes()
    kept.write_bytes(whole[: len(whole) // 2])
    try:
        compared = verify(zk)
    finally:
        kept.write_bytes(whole)
    closed(zk, compared, "baseline entities.parquet cannot be read", "remove the directory baseline")


@pytest.mark.parametrize("left_kib", [24, 150, 200])
def test_a_full_disk_under_the_evidence(zk, tmp_path, left_kib):
    small = tmp_path / "evidence"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={left_kib}k", "tmpfs", str(small)], check=True)
    try:
        ran = zk.play("verify", extra={"quorumshift_artifacts_dir": str(small)})
    finally:
        subprocess.run(["umount", str(small)], check=True)
    assert ran.code != 0 and re.search(f"{small}/.*No space left on device", ran.text), ran.text
    assert "Traceback" not in ran.text, ran.text
    nothing_left(zk)


def test_a_full_disk_under_what_the_job_reads(zk, tmp_path):
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


def test_a_bound_that_is_over(zk):
    compared = verify(zk, quorumshift_spark_timeout_s=5)
    closed(zk, compared, r"it was stopped after 5 s \(quorumshift_spark_timeout_s\)")


def test_the_next_one_passes(zk):
    compared = verify(zk)
    assert compared.ran.code == 0 and compared.result["verdict"] == "pass", compared.ran.text
