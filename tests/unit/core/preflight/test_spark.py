# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""preflight: the Spark host."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import preflight, spark

from tests.unit.core.preflight_facts import collected, found, node, the_one

SUBMIT = "/opt/spark/bin/spark-submit"
TIMEOUT = {"reason": "timeout", "error": "a TCP connection did not come within 5 s"}
REFUSED = {"reason": "refused", "error": "connection refused: nothing listens there"}
FOUND = {
    "host": "spark-1",
    "master": "local[*]",
    "heap_mib": 1024,
    "command": {"program": SUBMIT, "found": True, "spark": "4.0.5", "java": "17.0.15", "error": None},
    "java": {"path": None, "version": "17.0.15", "error": None},
    "python": {"path": "/usr/bin/python3", "version": "3.11.7", "missing": {}, "hadoop": None, "error": None},
    "memory_mib": 8000,
    "directories": [{"path": "/tmp", "free_mib": 9000, "error": None}],
    "unreadable": [],
    "tried": {"broker": 3, "controller": 3, "zookeeper": 3},
    "failed": [],
}
FAILS = {"spark": None, "java": None, "error": "exit code 1. Its log says: JAVA_HOME is not set"}


def read(**changes):
    """Return facts with a Spark host; a change of a dictionary is merged into it."""
    merged = {
        key: {**FOUND[key], **value} if isinstance(FOUND.get(key), dict) else value for key, value in changes.items()
    }
    return collected(spark={**FOUND, **merged})


def target(kind, to, how=None):
    address = {"b1": "10.78.60.11:9094", "b2": "10.78.60.12:9094", "c1": "10.78.60.21:9093"}.get(to, to)
    return {"kind": kind, "to": to, "address": address, **(how or TIMEOUT)}


ALL = ("spark", "spark_room", "spark_paths", "spark_executors")


@pytest.mark.parametrize("facts", [read(), collected()], ids=["all is there", "no verification"])
def test_no_finding(facts):
    assert [finding for check in ALL for finding in found(facts, check)] == []


@pytest.mark.parametrize(
    ("facts", "ran"),
    [(read(), ALL), (collected(), ()), (collected(spark={"host": "s", "error": "x"}), ("spark", "spark_executors"))],
    ids=["read", "no verification", "not read"],
)
def test_what_was_not_read_is_not_shown_as_passed(facts, ran):
    of_spark = {preflight.ID[name] for name in ALL}
    assert of_spark.intersection(preflight.ids_with_facts(facts)) == {preflight.ID[name] for name in ran}


# What a job needs to start -------------------------------------------------------------------------------------------


def test_an_unreachable_host_is_named_with_its_variable():
    facts = collected(spark={"host": "spark-1", "master": "local[*]", "unreachable": "Permission denied (publickey)"})
    assert the_one(facts, "spark") == "the Spark host spark-1 is unreachable: Permission denied (publickey)"
    (finding,) = found(facts, "spark")
    assert finding["severity"] == "blocks" and "ssh spark-1" in finding["do"] and "key" in finding["do"]
    assert "quorumshift_spark_host" in finding["do"]
    assert [finding for check in ALL[1:] for finding in found(facts, check)] == []


def test_a_host_that_could_not_be_read_is_named_with_the_reason():
    facts = collected(spark={"host": "spark-1", "master": "local[*]", "error": "spark-1: Python 3.6 is too old"})
    assert the_one(facts, "spark") == "the Spark host spark-1 could not be read: spark-1: Python 3.6 is too old"


def test_a_missing_command_comes_with_the_command_that_installs_it():
    facts = read(command={"found": False, "spark": None, "java": None}, java={"version": None})
    assert the_one(facts, "spark") == f"{SUBMIT} is not on the Spark host spark-1"
    assert found(facts, "spark")[0]["do"].startswith(
        "install it there: /usr/bin/python3 -m pip install 'pyspark>=4,<5' numpy pandas pyarrow"
    )


@pytest.mark.parametrize(
    ("java", "seen"),
    [
        ({"path": None}, "spark-1 has no Java for Spark: JAVA_HOME is not set, and PATH has no java"),
        ({"path": "/opt/j/bin/java"}, "spark-1 has no Java for Spark: there is no /opt/j/bin/java"),
        (
            {"path": "/usr/bin/java", "version": "11.0.2"},
            "spark-1 has Java 11.0.2 at /usr/bin/java, Spark 4 needs 17 or newer",
        ),
        (
            {"path": "/usr/bin/java", "version": "1.8.0_402"},
            "spark-1 has Java 1.8.0_402 at /usr/bin/java, Spark 4 needs 17 or newer",
        ),
        (
            {"path": "/usr/bin/java", "error": "exit code 1"},
            "Java at /usr/bin/java of spark-1 does not run: exit code 1",
        ),
    ],
)
def test_no_java_or_an_old_one(java, seen):
    facts = read(command=FAILS, java={"version": None, **java})
    assert the_one(facts, "spark") == seen
    assert "openjdk-17" in found(facts, "spark")[0]["do"]


def test_java_that_hadoop_does_not_know():
    text = "java.lang.UnsupportedOperationException: getSubject is not supported"
    facts = read(command={"java": "25"}, java={"version": "25"}, python={"hadoop": text})
    assert the_one(facts, "spark") == f"Spark 4.0.5 on spark-1 cannot begin a session with Java 25: {text}"


def test_a_command_that_fails_for_another_reason():
    facts = read(command={**FAILS, "error": "it did not end within 120 s"})
    assert the_one(facts, "spark") == f"{SUBMIT} --version fails on spark-1: it did not end within 120 s"


def test_another_release_of_spark():
    facts = read(command={"spark": "3.5.1"})
    assert the_one(facts, "spark") == f"{SUBMIT} on spark-1 is Spark 3.5.1, the verification needs Spark 4"


def test_missing_packages_come_with_the_command_that_installs_them():
    missing = {"pandas": "ModuleNotFoundError: No module named 'pandas'", "confluent_kafka": "ImportError: x"}
    facts = read(python={"missing": missing})
    assert the_one(facts, "spark") == (
        "/usr/bin/python3 on spark-1 cannot import confluent_kafka, pandas: "
        "ModuleNotFoundError: No module named 'pandas'"
    )
    assert "/usr/bin/python3 -m pip install confluent-kafka pandas" in found(facts, "spark")[0]["do"]


def test_a_python_without_pyspark_is_the_cause_of_a_command_that_fails():
    facts = read(command=FAILS, python={"missing": {"pyspark": "ModuleNotFoundError: No module named 'pyspark'"}})
    assert the_one(facts, "spark").startswith("/usr/bin/python3 on spark-1 cannot import pyspark")


def test_a_python_that_does_not_run():
    facts = read(python={"error": "exit code 127"})
    assert the_one(facts, "spark").startswith(
        "the imports of the verification could not be tried with /usr/bin/python3"
    )


# Memory and disk -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("memory", "heap", "severity"),
    [(1919, 1024, "warns"), (1023, 1024, "blocks"), (1920, 1024, None), (8000, 8192, "blocks")],
)
def test_memory_is_compared_with_the_heap(memory, heap, severity):
    facts = read(memory_mib=memory, heap_mib=heap)
    assert [finding["severity"] for finding in found(facts, "spark_room")] == ([severity] if severity else [])


def test_memory_that_is_not_known_is_no_pass():
    assert the_one(read(memory_mib=None), "spark_room") == "the free memory of spark-1 is not known"


@pytest.mark.parametrize(("free", "severity"), [(0, "blocks"), (255, "blocks"), (256, "warns"), (2048, None)])
def test_free_space(free, severity):
    facts = read(directories=[{"path": "/tmp", "free_mib": free, "error": None}])
    assert [finding["severity"] for finding in found(facts, "spark_room")] == ([severity] if severity else [])


def test_a_directory_that_cannot_be_written():
    facts = read(directories=[{"path": "/scratch", "free_mib": 9000, "error": "is mounted read-only"}])
    assert the_one(facts, "spark_room") == (
        "/scratch on spark-1 cannot hold files of the verification: is mounted read-only"
    )
    assert found(facts, "spark_room")[0]["severity"] == "blocks"


def test_files_of_zookeeper_that_cannot_be_read():
    assert the_one(read(unreadable=["/zk/data"]), "spark_room").startswith("/zk/data on spark-1 is not a directory")


@pytest.mark.parametrize(
    ("arguments", "mib"),
    [
        ([], 1024),
        (["--driver-memory", "4g"], 4096),
        (["--driver-memory=512m"], 512),
        (["--conf", "spark.driver.memory=2G"], 2048),
        (["--conf", "spark.driver.memory=2g", "--conf", "spark.driver.memory=3gb"], 3072),
        (["--conf", "spark.driver.memory=many"], 1024),
        (["--conf", "spark.ui.enabled=false"], 1024),
    ],
)
def test_the_heap_of_the_driver(arguments, mib):
    assert spark.heap_mib(arguments) == mib


# Connections ---------------------------------------------------------------------------------------------------------


def test_a_broker_that_is_not_reached_blocks():
    facts = read(failed=[target("broker", "b1"), target("broker", "b2")])
    assert the_one(facts, "spark_paths") == (
        "the Spark host spark-1 cannot connect to the client listener of b1 (10.78.60.11:9094), "
        "b2 (10.78.60.12:9094): a TCP connection did not come within 5 s"
    )
    (finding,) = found(facts, "spark_paths")
    assert finding["severity"] == "blocks" and "nc -vz 10.78.60.11 9094" in finding["do"]


@pytest.mark.parametrize(("count", "severity"), [(1, "warns"), (3, "blocks")])
def test_one_server_of_zookeeper_is_enough(count, severity):
    facts = read(failed=[target("zookeeper", f"z{number}:2181", REFUSED) for number in range(count)])
    assert [finding["severity"] for finding in found(facts, "spark_paths")] == [severity]


def test_a_controller_that_does_not_run_yet_may_refuse():
    facts = read(failed=[target("controller", "c1", REFUSED)])
    assert found(facts, "spark_paths") == []
    node(facts, "c1")["service"]["active"] = True
    assert the_one(facts, "spark_paths").endswith("c1 (10.78.60.21:9093): connection refused: nothing listens there")
    facts = read(failed=[target("controller", "c1")])
    assert len(found(facts, "spark_paths")) == 1, "a firewall drops it"


def test_targets_are_all_servers_that_a_job_reads():
    seen = spark.targets({"b1": "b1:9094"}, {"c1": "c1:9093"}, "z1:2181,z2/kafka")
    assert [(destination["kind"], destination["address"]) for destination in seen] == [
        ("broker", "b1:9094"),
        ("controller", "c1:9093"),
        ("zookeeper", "z1:2181"),
        ("zookeeper", "z2:2181"),
    ]
    assert [destination["kind"] for destination in spark.targets({}, {}, None)] == []


# A Spark cluster -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("master", ["spark://s1:7077", "yarn", "k8s://https://k:6443"])
def test_what_is_not_checked_of_a_cluster_is_named(master):
    facts = read(master=master)
    assert the_one(facts, "spark_executors") == (
        f"quorumshift_spark_master is {master}: Java, Python packages, memory, disks and connections of its executors "
        "were not checked"
    )
    assert found(facts, "spark_executors")[0]["severity"] == "warns"
