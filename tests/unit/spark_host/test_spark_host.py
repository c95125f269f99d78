# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Spark host as it is read, without a Spark. tests/integration/test_spark_host.py reads a real one."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import spark
from ansible_collections.quorumshift.kafka.plugins.module_utils.spark_host import spark_host

from tests.unit.core.preflight_facts import collected, found, the_one


def read(submit=("/opt/none",), **given):
    """Return the facts of the preflight with this host as Spark host."""
    asked = {"packages": [], "directories": [], "readable": [], "targets": [], "timeout": 5, **given}
    seen = spark_host.collect(list(submit), [], sys.executable, **asked)
    return collected(spark={"host": "spark-1", "master": "local[*]", "heap_mib": 1024, **seen})


@pytest.fixture
def closed():
    """The address of a port at which nothing listens, and that no other process gets meanwhile."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


def test_no_command():
    facts = read(submit=["/opt/none/bin/spark-submit"])
    assert the_one(facts, "spark") == "/opt/none/bin/spark-submit is not on the Spark host spark-1"
    facts = read(submit=["env", "A=b", "/opt/none/bin/spark-submit"])
    assert the_one(facts, "spark") == "/opt/none/bin/spark-submit is not on the Spark host spark-1"


def test_packages_are_tried_without_a_command_too():
    facts = read(packages=["json", "quorumshift_none"])
    assert facts.spark["python"]["missing"] == {
        "quorumshift_none": "ModuleNotFoundError: No module named 'quorumshift_none'"
    }
    assert len(found(facts, "spark")) == 2


def test_a_command_that_does_not_end_is_ended(tmp_path):
    submit = tmp_path / "spark-submit"
    submit.write_text(f"#!/bin/bash\nsleep 600 &\necho $! > {tmp_path}/child\nwait\n")
    submit.chmod(0o755)
    seen = spark_host.collect([str(submit)], [], sys.executable, [], [], [], [], 1, run_s=5.0)
    assert seen["command"]["error"].startswith("it did not end within 5 s") and seen["command"]["spark"] is None
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 30
    while _runs(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _runs(child)


def _runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
def test_a_small_and_a_read_only_file_system(tmp_path):
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(tmp_path)], check=False).returncode:
        pytest.skip("this container may not mount a file system")
    try:
        facts = read(directories=[str(tmp_path)])
        assert the_one(facts, "spark_room").startswith(f"{tmp_path} on spark-1 has 8 MiB free")
        (tmp_path / "all").write_bytes(b"x" * (8 << 20))
        facts = read(directories=[str(tmp_path)])
        assert the_one(facts, "spark_room").startswith(f"{tmp_path} on spark-1 has 0 MiB free")
        subprocess.run(["mount", "-o", "remount,ro", str(tmp_path)], check=True)
        facts = read(directories=[str(tmp_path)])
        assert the_one(facts, "spark_room").endswith("cannot hold files of the verification: is mounted read-only")
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_directories_of_the_environment_are_read(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/a,{tmp_path}/b")
    facts = read(directories=["/tmp"])
    assert [directory["path"] for directory in facts.spark["directories"]] == ["/tmp", f"{tmp_path}/a", f"{tmp_path}/b"]


def test_files_of_zookeeper_that_are_not_there(tmp_path):
    facts = read(readable=[f"{tmp_path}/none"])
    assert the_one(facts, "spark_room") == f"{tmp_path}/none on spark-1 is not a directory that this user may read"


def test_a_port_at_which_nothing_listens(closed):
    facts = read(targets=spark.targets({"b1": closed}, {}, None))
    assert the_one(facts, "spark_paths") == (
        f"the Spark host spark-1 cannot connect to the client listener of b1 ({closed}): "
        "connection refused: nothing listens there"
    )


@pytest.mark.parametrize(
    ("limit", "current", "cache", "left"),
    [("max", 100 << 20, 0, []), (str(512 << 20), 300 << 20, 100 << 20, [312])],
)
def test_a_container_has_what_its_control_group_leaves(tmp_path, limit, current, cache, left):
    group = tmp_path / "a" / "b"
    group.mkdir(parents=True)
    (group / "memory.max").write_text(limit)
    (group / "memory.current").write_text(str(current))
    (group / "memory.stat").write_text(f"anon 1\ninactive_file {cache}\n")
    (tmp_path / "cgroup").write_text("0::/a/b\n")
    assert spark_host._left_in_groups(str(tmp_path), str(tmp_path / "cgroup")) == left
