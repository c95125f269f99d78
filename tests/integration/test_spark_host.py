# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Spark host as it is read: a real Spark, and one with each thing missing. The preflight's checks name each."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.checks import spark
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import spark_host

from tests.unit.core.preflight_facts import collected, found, the_one

SUBMIT = os.path.join(os.path.dirname(sys.executable), "spark-submit")
TOOLS = ("bash", "env", "dirname", "ls", "grep", "sed", "uname")
CHECKS = ("spark", "spark_room", "spark_paths", "spark_executors")


def read(submit=(SUBMIT,), options=(), python=sys.executable, **given):
    """Return the facts of the preflight with this host as Spark host."""
    asked = {"packages": [], "directories": [], "readable": [], "targets": [], "timeout": 5, **given}
    seen = spark_host.gather(list(submit), list(options), python, **asked)
    common = {"host": "spark-1", "master": "local[*]", "heap_mib": spark.heap_mib(options)}
    return collected(spark={**common, **seen})


@pytest.fixture
def tools(tmp_path):
    """A directory with what spark-submit itself calls, and without Java."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for name in TOOLS:
        (directory / name).symlink_to(os.path.realpath(shutil.which(name)))
    return directory


@pytest.fixture
def closed():
    """The address of a port at which nothing listens, and that no other process gets meanwhile."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


def test_a_host_that_has_everything_has_no_finding(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        targets = spark.targets({"b1": address}, {}, f"{address}/kafka")
        facts = read(
            options=["--conf", "spark.ui.enabled=false"],
            packages=list(spark.PACKAGES),
            directories=[str(tmp_path / "to" / "make")],
            readable=[str(tmp_path)],
            targets=targets,
        )
    assert [one for check in CHECKS for one in found(facts, check)] == []
    seen = facts.spark
    assert seen["command"]["spark"].startswith("4.") and seen["command"]["java"] == seen["java"]["version"]
    assert seen["tried"] == {"broker": 1, "zookeeper": 1} and seen["memory_mib"] > 0
    assert seen["python"] == {
        **{"path": sys.executable, "version": ".".join(map(str, sys.version_info[:3]))},
        **{"missing": {}, "hadoop": None, "error": None},
    }


def test_no_command():
    facts = read(submit=["/opt/none/bin/spark-submit"])
    assert the_one(facts, "spark") == "/opt/none/bin/spark-submit is not on the Spark host spark-1"
    facts = read(submit=["env", "A=b", "/opt/none/bin/spark-submit"])
    assert the_one(facts, "spark") == "/opt/none/bin/spark-submit is not on the Spark host spark-1"


def test_no_java(tools, monkeypatch):
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    facts = read()
    assert the_one(facts, "spark") == "spark-1 has no Java for Spark: JAVA_HOME is not set, and PATH has no java"


def test_java_home_without_java(tmp_path):
    facts = read(submit=["env", f"JAVA_HOME={tmp_path}", SUBMIT])
    assert the_one(facts, "spark") == f"spark-1 has no Java for Spark: there is no {tmp_path}/bin/java"


def test_java_that_is_too_old(tmp_path, tools, monkeypatch):
    """Spark's classes end an old Java with exit code 1; the script says the version as Java 11 does."""
    java = tools / "java"
    version = "echo 'openjdk version \"11.0.2\" 2019-01-15' >&2; exit 0"
    java.write_text(f'#!/bin/bash\n[ "$1" != -version ] || {{ {version}; }}\nexit 1\n')
    java.chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert the_one(read(), "spark") == f"spark-1 has Java 11.0.2 at {java}, Spark 4 needs 17 or newer"


NEWER = sorted(Path("/usr/lib/jvm").glob("*-2[4-9]-*/bin/java"))


@pytest.mark.skipif(not NEWER, reason="no Java 24 or newer on this host")
def test_java_that_spark_starts_with_and_has_no_session_with():
    facts = read(submit=["env", f"JAVA_HOME={NEWER[0].parents[1]}", SUBMIT], packages=["pyspark"])
    assert "cannot begin a session with Java 2" in the_one(facts, "spark")
    assert the_one(facts, "spark").endswith("getSubject is not supported")


def test_a_python_without_pyspark(tmp_path):
    python = tmp_path / "python"
    python.symlink_to(os.path.realpath(sys.executable))  # beside no pyvenv.cfg: it has the standard library only
    facts = read(python=str(python), packages=list(spark.PACKAGES))
    seen = [one["seen"] for one in found(facts, "spark")]
    assert len(seen) == 1 and seen[0].startswith(f"{python} on spark-1 cannot import ") and "pyspark" in seen[0]
    assert f"{python} -m pip install" in found(facts, "spark")[0]["do"]


def test_a_package_that_is_missing():
    facts = read(packages=["pyspark", "quorumshift_none"])
    assert facts.spark["python"]["missing"] == {
        "quorumshift_none": "ModuleNotFoundError: No module named 'quorumshift_none'"
    }


def test_options_that_spark_submit_rejects():
    facts = read(options=["--no-such-option"])
    assert "Unrecognized option: --no-such-option" in the_one(facts, "spark")


def test_a_command_that_does_not_end_is_ended(tmp_path):
    submit = tmp_path / "spark-submit"
    submit.write_text(f"#!/bin/bash\nsleep 600 &\necho $! > {tmp_path}/child\nwait\n")
    submit.chmod(0o755)
    seen = spark_host.gather([str(submit)], [], sys.executable, [], [], [], [], 1, run_s=2.0)
    assert seen["command"]["error"].startswith("it did not end within 2 s") and seen["command"]["spark"] is None
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
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(tmp_path)], check=True)
    try:
        facts = read(submit=["/opt/none"], directories=[str(tmp_path)])
        assert the_one(facts, "spark_room").startswith(f"{tmp_path} on spark-1 has 8 MiB free")
        (tmp_path / "all").write_bytes(b"x" * (8 << 20))
        facts = read(submit=["/opt/none"], directories=[str(tmp_path)])
        assert the_one(facts, "spark_room").startswith(f"{tmp_path} on spark-1 has 0 MiB free")
        subprocess.run(["mount", "-o", "remount,ro", str(tmp_path)], check=True)
        facts = read(submit=["/opt/none"], directories=[str(tmp_path)])
        assert the_one(facts, "spark_room").endswith("cannot hold files of the verification: is mounted read-only")
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_directories_of_the_environment_are_read(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/a,{tmp_path}/b")
    facts = read(submit=["/opt/none"], directories=["/tmp"])
    assert [one["path"] for one in facts.spark["directories"]] == ["/tmp", f"{tmp_path}/a", f"{tmp_path}/b"]


def test_files_of_zookeeper_that_are_not_there(tmp_path):
    facts = read(submit=["/opt/none"], readable=[f"{tmp_path}/none"])
    assert the_one(facts, "spark_room") == f"{tmp_path}/none on spark-1 is not a directory that this user may read"


def test_a_port_at_which_nothing_listens(closed):
    facts = read(submit=["/opt/none"], targets=spark.targets({"b1": closed}, {}, None))
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
