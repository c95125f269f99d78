# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Spark host as it is read: a real Spark, and one with each thing missing. The preflight's checks name each."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from pathlib import Path

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import spark
from ansible_collections.quorumshift.kafka.plugins.module_utils.spark_host import spark_host

from tests.unit.core.preflight_facts import collected, found, the_one

SUBMIT = os.path.join(os.path.dirname(sys.executable), "spark-submit")
TOOLS = ("bash", "env", "dirname", "ls", "grep", "sed", "uname")
CHECKS = ("spark", "spark_room", "spark_paths", "spark_executors")


def read(submit=(SUBMIT,), options=(), python=sys.executable, **given):
    """Return the facts of the preflight with this host as Spark host."""
    asked = {"packages": [], "directories": [], "readable": [], "targets": [], "timeout": 5, **given}
    seen = spark_host.collect(list(submit), list(options), python, **asked)
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
    assert [finding for check in CHECKS for finding in found(facts, check)] == []
    seen = facts.spark
    assert seen["command"]["spark"].startswith("4.") and seen["command"]["java"] == seen["java"]["version"]
    assert seen["tried"] == {"broker": 1, "zookeeper": 1} and seen["memory_mib"] > 0
    assert seen["python"] == {
        **{"path": sys.executable, "version": ".".join(map(str, sys.version_info[:3]))},
        **{"missing": {}, "hadoop": None, "error": None},
    }


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
    seen = [finding["seen"] for finding in found(facts, "spark")]
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
