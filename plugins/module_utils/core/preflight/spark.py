# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the Spark host, on which the verification before each gate runs."""

from __future__ import annotations

import re
import shlex
from typing import Iterable, Mapping, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight.check_facts import Facts, group_by_value
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import Finding, format_names
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import (
    AddressError,
    parse_zookeeper_connect,
)

# {what a job imports: what pip installs}
PACKAGES = {
    "pyspark": "pyspark>=4,<5",
    "numpy": "numpy",
    "pandas": "pandas",
    "pyarrow": "pyarrow",
    "jinja2": "jinja2",
    "jsonschema": "jsonschema",
    "crc32c": "crc32c",
    "kazoo": "kazoo",
    "confluent_kafka": "confluent-kafka",
    "cryptography": "cryptography",
}
SPARK_RELEASE, OLDEST_JAVA = 4, 17
DEFAULT_HEAP_MIB = 1024  # spark.driver.memory
# What the JVM takes beside its heap (the least spark.driver.memoryOverhead) and Python's driver and workers
BESIDE_HEAP_MIB, PYTHON_MIB = 384, 512
# A job's input and its shuffles: a small cluster's, and that of 1,000,000 partitions
LEAST_FREE_MIB, ADVISED_FREE_MIB = 256, 2048
_WHAT = {
    "broker": "the client listener of",
    "controller": "the controllers' port of",
    "zookeeper": "ZooKeeper at",
}
_INSTALL_JAVA = "apt install openjdk-17-jre-headless, or: dnf install java-17-openjdk-headless"
_SIZE = re.compile(r"(\d+)([kmgt]?)b?", re.I)
_MIB = {"k": 1 / 1024, "": 1, "m": 1, "g": 1024, "t": 1024 * 1024}


def targets(brokers: Mapping[str, str], controllers: Mapping[str, str], connect: str | None) -> list[dict]:
    """Return what the Spark host must reach, as paths.targets does. `brokers`, `controllers`: {host: address};
    `connect`: the connect string, None where the job reads ZooKeeper's files."""
    try:
        servers = [str(server) for server in parse_zookeeper_connect(connect).servers] if connect else []
    except AddressError:
        servers = []  # the check of the inventory reports it
    return [
        *({"kind": "broker", "to": host, "address": address} for host, address in sorted(brokers.items())),
        *({"kind": "controller", "to": host, "address": address} for host, address in sorted(controllers.items())),
        *({"kind": "zookeeper", "to": server, "address": server} for server in servers),
    ]


def setting(arguments: Sequence[str], name: str, option: str = "") -> str | None:
    """Return the last value of a setting among spark-submit's arguments, None where they do not set it."""
    value = None
    for before, word in zip(["", *arguments], arguments):
        key, equals, given = word.partition("=")
        if option and (before == option or (key == option and equals)):
            value = word if before == option else given
        elif key == name and equals and before in ("--conf", "-c"):
            value = given
        elif word.startswith(f"--conf={name}="):
            value = word.split("=", 2)[2]
    return value


def heap_mib(arguments: Sequence[str]) -> int:
    """Return the heap of the driver, in MiB."""
    given = _SIZE.fullmatch((setting(arguments, "spark.driver.memory", "--driver-memory") or "").strip())
    return int(int(given.group(1)) * _MIB[given.group(2).lower()]) if given else DEFAULT_HEAP_MIB


def host(facts: Facts) -> Iterable[Finding]:
    """Yield what keeps a job from starting: no login, no spark-submit, no Java, missing packages."""
    seen = facts.spark
    name = seen.get("host")
    if seen.get("unreachable"):
        yield Finding(
            f"the Spark host {name} is unreachable: {seen['unreachable']}",
            f"check the login with `ssh {name}`: the control node's user needs a key there. Or set "
            "quorumshift_spark_host to another host",
        )
    elif seen.get("error"):
        yield Finding(
            f"the Spark host {name} could not be read: {seen['error']}",
            "correct that, or set quorumshift_spark_host to another host",
        )
    elif seen:
        command = seen["command"]
        yield from _java(seen) if command["found"] else _no_command(seen)
        if command["spark"] and int(command["spark"].partition(".")[0]) != SPARK_RELEASE:
            yield Finding(
                f"{command['program']} on {name} is Spark {command['spark']}, the verification needs Spark "
                f"{SPARK_RELEASE}",
                f"install it there: {_pip(seen, ['pyspark'])}. Or set quorumshift_spark_submit",
            )
        yield from _python(seen)


def _no_command(seen: Mapping) -> Iterable[Finding]:
    yield Finding(
        f"{seen['command']['program']} is not on the Spark host {seen['host']}",
        f"install it there: {_pip(seen, PACKAGES)}. Or set quorumshift_spark_submit to the path of spark-submit",
    )


def _java(seen: Mapping) -> Iterable[Finding]:
    command, java, name = seen["command"], seen["java"], seen["host"]
    where = f" at {java['path']}" if java["path"] else ""
    if java["error"]:
        yield Finding(f"Java{where} of {name} does not run: {java['error']}", f"run there: {_INSTALL_JAVA}")
    elif not java["version"]:
        reason = f"there is no {java['path']}" if java["path"] else "JAVA_HOME is not set, and PATH has no java"
        yield Finding(
            f"{name} has no Java for Spark: {reason}",
            f"run there: {_INSTALL_JAVA}. Or name another one: "
            f"quorumshift_spark_submit: [env, JAVA_HOME=DIR, {command['program']}]",
        )
    elif _parse_major(java["version"]) < OLDEST_JAVA:
        yield Finding(
            f"{name} has Java {java['version']}{where}, Spark {SPARK_RELEASE} needs {OLDEST_JAVA} or newer",
            f"run there: {_INSTALL_JAVA}. Then set JAVA_HOME: "
            f"quorumshift_spark_submit: [env, JAVA_HOME=DIR, {command['program']}]",
        )
    elif command["error"] and not seen["python"]["missing"].get("pyspark"):
        yield Finding(
            f"{command['program']} --version fails on {name}: {command['error']}",
            f"correct quorumshift_spark_submit. Run there: {command['program']} --version",
        )
    elif seen["python"].get("hadoop"):
        yield Finding(
            f"Spark {command['spark']} on {name} cannot begin a session with Java {java['version']}: "
            f"{seen['python']['hadoop']}",
            f"use Java {OLDEST_JAVA}: quorumshift_spark_submit: [env, JAVA_HOME=DIR, {command['program']}]. If the "
            "user has no name, add the user to /etc/passwd there",
        )


def _parse_major(version: str) -> int:
    """Return 8 of `1.8.0_402`, 17 of `17.0.15` and 25 of `25-ea`."""
    found = re.match(r"(?:1\.)?(\d+)", version)
    return int(found.group(1)) if found else 0


def _python(seen: Mapping) -> Iterable[Finding]:
    python, name = seen["python"], seen["host"]
    if python["error"]:
        yield Finding(
            f"the imports of the verification could not be tried with {python['path']} on {name}: {python['error']}",
            "correct quorumshift_spark_python, quorumshift_spark_conf and quorumshift_spark_options",
        )
    elif python["missing"]:
        missing = python["missing"]
        (first, *_others) = missing.values()
        yield Finding(
            f"{python['path']} on {name} cannot import {format_names(sorted(missing))}: {first}",
            f"run there: {_pip(seen, sorted(missing))}. Or set quorumshift_spark_python to another Python",
        )


def _pip(seen: Mapping, missing: Iterable[str]) -> str:
    packages = [PACKAGES.get(name, name) for name in missing]
    return shlex.join([seen["python"]["path"], "-m", "pip", "install", *packages])


def room(facts: Facts) -> Iterable[Finding]:
    """Yield too little memory, and directories without space or permission."""
    seen = facts.spark
    if "directories" not in seen:
        return
    name, heap, free = seen["host"], seen["heap_mib"], seen["memory_mib"]
    needs = heap + BESIDE_HEAP_MIB + PYTHON_MIB
    if free is None:
        yield Finding(f"the free memory of {name} is not known", "mount /proc there", warns=True)
    elif free < needs:
        yield Finding(
            f"{name} has {free} MiB of memory available, the verification needs {needs} MiB with a heap of {heap} MiB",
            "stop other processes there (`free -m` shows the memory), set quorumshift_spark_host to a larger host, or "
            "lower the heap: quorumshift_spark_options: [--driver-memory, 512m]",
            warns=free >= heap,
        )
    for directory in seen["directories"]:
        where = f"{directory['path']} on {name}"
        if directory["error"]:
            yield Finding(
                f"{where} cannot hold files of the verification: {directory['error']}",
                f"correct that: `ls -ld {directory['path']}` shows its state. Spark's own files can be in another "
                "directory: quorumshift_spark_options: [--conf, spark.local.dir=DIR]",
            )
        elif directory["free_mib"] < ADVISED_FREE_MIB:
            yield Finding(
                f"{where} has {directory['free_mib']} MiB free, a verification needs {LEAST_FREE_MIB} MiB, of a large "
                f"cluster {ADVISED_FREE_MIB} MiB",
                f"make room there: `df -h {directory['path']}` shows the file system",
                warns=directory["free_mib"] >= LEAST_FREE_MIB,
            )
    for path in seen["unreadable"]:
        yield Finding(
            f"{path} on {name} is not a directory that this user may read",
            "correct quorumshift_zookeeper_data_dir or the permissions, or set it to '' to read ZooKeeper's servers",
        )


def connections(facts: Facts) -> Iterable[Finding]:
    """Yield the servers that the Spark host does not reach. A job reads each broker from there.

    Of ZooKeeper's servers, one is enough. A controller that does not run yet refuses the connection.
    """
    seen = facts.spark
    dead = set(facts.dead.values())  # reported by the check `broker_ids`
    for kind, what in _WHAT.items():
        failed = [
            target
            for target in seen.get("failed") or ()
            if target["kind"] == kind and target["to"] not in dead and not _is_down(facts, target)
        ]
        some = kind == "zookeeper" and len(failed) < seen["tried"].get(kind, 0) if failed else False
        for names, error in group_by_value({_name_target(target): target["error"] for target in failed}).items():
            first, *_others = (target for target in failed if _name_target(target) == names[0])
            port = (
                f"open the port for {seen['host']}, or set quorumshift_spark_host to a host that reaches it. Test it "
            )
            port += f"there: nc -vz {' '.join(first['address'].rsplit(':', 1))}"
            yield Finding(
                f"the Spark host {seen['host']} cannot connect to {what} {format_names(list(names))}: {error}",
                f"start the server there or read its log. If it runs, {port}" if first["reason"] == "refused" else port,
                warns=some,
            )


def _is_down(facts: Facts, target: Mapping) -> bool:
    node = facts.cluster["nodes"].get(target["to"]) or {}
    return (
        target["kind"] == "controller"
        and target["reason"] == "refused"
        and not (node.get("service") or {}).get("active")
    )


def _name_target(target: Mapping) -> str:
    return target["to"] if target["to"] == target["address"] else f"{target['to']} ({target['address']})"


def executors(facts: Facts) -> Iterable[Finding]:
    """Yield that hosts of a Spark cluster are not checked."""
    master = facts.spark.get("master") or "local"
    if not master.startswith("local"):
        yield Finding(
            f"quorumshift_spark_master is {master}: Java, Python packages, memory, disks and connections of its "
            "executors were not checked",
            "run a comparison, which opens no gate: ansible-playbook quorumshift.kafka.verify -i INVENTORY",
            warns=True,
        )
