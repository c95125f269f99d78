# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what a Spark job needs of its host: the command, Java, Python packages, memory, disk, and connections.

Runs on the Spark host: standard library only. The packages are imported as the job imports them, by a script that
spark-submit starts. No Spark session begins, and nothing is sent on a connection.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from typing import Any, Mapping, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.host import paths
from ansible_collections.quorumshift.kafka.plugins.module_utils.spark_host import spark_submission

RUN_S = 300.0  # for one start of Java that stands still; on a loaded host it takes a minute
_MARK = "quorumshift-imports:"
_SCRIPT = f"""
import importlib, json, os, sys
missing, hadoop = {{}}, None
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except BaseException as error:
        missing[name] = "%s: %s" % (type(error).__name__, error)
if "PYSPARK_GATEWAY_PORT" in os.environ and "pyspark" not in missing:
    try:
        from pyspark import SparkContext
        SparkContext._ensure_initialized()
        SparkContext._jvm.org.apache.hadoop.security.UserGroupInformation.getCurrentUser()
    except BaseException as error:
        hadoop = " ".join(str(getattr(error, "java_exception", error)).split())
version = "%d.%d.%d" % sys.version_info[:3]
found = {{"version": version, "missing": missing, "hadoop": hadoop}}
if sys.executable:  # spark.pyspark.driver.python outranks the one that was asked for
    found["path"] = sys.executable
print("{_MARK}" + json.dumps(found))
"""
_SPARK = re.compile(r"version (\d\S*)")
_JAVA_OF_SPARK = re.compile(r"Using Scala version [^,]+, .*, (\S+)")
_JAVA = re.compile(r'version "([^"]+)"')
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)")


def collect(
    submit: Sequence[str],
    options: Sequence[str],
    python: str,
    packages: Sequence[str],
    directories: Sequence[str],
    readable: Sequence[str],
    targets: Sequence[Mapping[str, str]],
    timeout: float,
    run_s: float = RUN_S,
) -> dict:
    """Return {command, java, python, memory_mib, directories, unreadable, tried, failed}.

    `submit`: spark-submit as the operator has it; `options`: its further options, as a job has them; `python`: that of
    the driver; `directories`: where the job writes; `readable`: directories that it reads; `targets`: as of
    paths.check_connectivity, with `timeout` for each.
    """
    environment = {**os.environ, **spark_submission.python_environment(python)}
    command = _command(submit, environment, run_s)
    java = {"path": None, "version": command["java"], "error": None}
    if command["found"] and not command["java"]:
        java = _java({**environment, **_assigned(submit)}, run_s)
    return {
        "command": command,
        "java": java,
        "python": _python(submit, options, python, packages, environment, command, run_s),
        "memory_mib": memory_mib(),
        "directories": [_directory(path) for path in _writes(directories, environment)],
        "unreadable": [path for path in readable if not os.access(path, os.R_OK | os.X_OK)],
        "tried": dict(Counter(target["kind"] for target in targets)),
        "failed": paths.check_connectivity(targets, timeout),
    }


def _command(submit: Sequence[str], environment: Mapping[str, str], run_s: float) -> dict:
    """Return {program, found, spark, java, error} of spark-submit."""
    program = _program(submit)
    names = dict.fromkeys([submit[0], program])
    missing = next((name for name in names if not shutil.which(name, path=environment.get("PATH"))), None)
    command: dict[str, Any] = {"program": missing or program, "found": not missing, "error": None}
    command.update(spark=None, java=None)
    if missing:
        return command
    code, output = _run([*submit, "--version"], environment, run_s)
    spark, java = _SPARK.search(output), _JAVA_OF_SPARK.search(output)
    if code == 0 and spark and java:
        return {**command, "spark": spark.group(1), "java": java.group(1)}
    return {**command, "error": _format_output(code, output, run_s)}


def _program(submit: Sequence[str]) -> str:
    """Return spark-submit in a command that may begin with another one, as in `env SPARK_HOME=/opt/spark …`."""
    return next((word for word in submit if os.path.basename(word).startswith("spark-submit")), submit[0])


def _assigned(submit: Sequence[str]) -> dict[str, str]:
    """Return the variables that the command sets with env."""
    return {match[1]: match[2] for match in map(_ASSIGNMENT.fullmatch, submit) if match}


def _java(environment: Mapping[str, str], run_s: float) -> dict:
    """Return {path, version, error} of the Java that Spark takes (bin/spark-class). Of no Java: all None."""
    home = environment.get("JAVA_HOME")
    path = os.path.join(home, "bin", "java") if home else shutil.which("java", path=environment.get("PATH"))
    if not path or not os.access(path, os.X_OK):
        return {"path": path, "version": None, "error": None}
    code, output = _run([path, "-version"], environment, run_s)
    version = _JAVA.search(output)
    if code == 0 and version:
        return {"path": path, "version": version.group(1), "error": None}
    return {"path": path, "version": None, "error": _format_output(code, output, run_s)}


def _python(
    submit: Sequence[str],
    options: Sequence[str],
    python: str,
    packages: Sequence[str],
    environment: Mapping[str, str],
    command: Mapping[str, Any],
    run_s: float,
) -> dict:
    """Return {path, version, missing, hadoop, error} of the driver's Python; `missing`: {package: why not};
    `hadoop`: why Hadoop cannot read the user's name, as a session does: Java 24 lacks what Hadoop 3.4 calls for it."""
    read = {"path": python, "version": None, "missing": {}, "hadoop": None, "error": None}
    starts = bool(command["spark"])
    if not starts and _brings_pyspark(submit):
        packages = [name for name in packages if name != "pyspark"]
    try:
        with tempfile.TemporaryDirectory(prefix="quorumshift-") as directory:
            script = os.path.join(directory, "imports.py")
            with open(script, "w", encoding="ascii") as stream:
                stream.write(_SCRIPT)
            begin = [*submit, "--master", "local[1]", *options] if starts else [python]
            code, output = _run([*begin, script, *packages], environment, run_s)
    except OSError as error:
        return {**read, "error": f"{error.filename or python}: {error.strerror}"}
    line = next((line for line in output.splitlines() if line.startswith(_MARK)), None)
    if line is None:
        return {**read, "error": _format_output(code, output, run_s)}
    return {**read, **json.loads(line[len(_MARK) :])}


def _brings_pyspark(submit: Sequence[str]) -> bool:
    """Return whether Spark is not installed by pip: its spark-submit adds its own pyspark."""
    found = shutil.which(_program(submit)) or ""
    homes = [_assigned(submit).get("SPARK_HOME"), os.path.dirname(os.path.dirname(os.path.realpath(found)))]
    return any(os.path.isdir(os.path.join(home, "python", "pyspark")) for home in homes if home)


def memory_mib() -> int | None:
    """Return the memory that a new process can use without swapping (MemAvailable), at most what the control group has
    left; None where /proc does not show it."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        with open("/proc/meminfo", encoding="ascii") as stream:
            found = re.search(r"^MemAvailable:\s+(\d+) kB$", stream.read(), re.M)
        return min([int(found.group(1)) // 1024, *_left_in_groups()])  # type: ignore[union-attr]
    return None


def _left_in_groups(root: str = "/sys/fs/cgroup", own: str = "/proc/self/cgroup") -> list[int]:
    """Return what each control group (version 2) of this process leaves, in MiB: a container may have less memory than
    its host. The page cache of its files counts as free."""
    left: list[int] = []
    try:
        with open(own, encoding="utf-8") as stream:
            path = next((line[4:].rstrip("\n") for line in stream if line.startswith("0::/")), "")
    except OSError:
        return left
    names = path.split("/")
    for depth in range(len(names) + 1):
        group = os.path.join(root, *names[:depth])
        with contextlib.suppress(OSError, ValueError, AttributeError):  # no limit, or none that is visible
            limit, current = (int(_text(group, name)) for name in ("memory.max", "memory.current"))
            cache = re.search(r"^inactive_file (\d+)$", _text(group, "memory.stat"), re.M)
            left.append((limit - current + int(cache.group(1))) >> 20)  # type: ignore[union-attr]
    return left


def _text(directory: str, name: str) -> str:
    with open(os.path.join(directory, name), encoding="ascii") as stream:
        return stream.read()


def _writes(directories: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Return the directories, with those of SPARK_LOCAL_DIRS, which Spark prefers to its own setting."""
    named = environment.get("SPARK_LOCAL_DIRS", "").split(",")
    return list(dict.fromkeys([*directories, *filter(None, named)]))


def _directory(path: str) -> dict:
    """Return {path, free_mib, error} of a directory, or of the nearest one above it that exists."""
    there = os.path.abspath(path)
    while not os.path.isdir(there) and there != "/":
        there = os.path.dirname(there)
    try:
        found = os.statvfs(there)
    except OSError as error:
        return {"path": path, "free_mib": None, "error": error.strerror}
    wrong = None
    if found.f_flag & os.ST_RDONLY:
        wrong = "is mounted read-only"
    elif not os.access(there, os.W_OK | os.X_OK):
        wrong = "is not writable for this user"
    return {"path": path, "free_mib": found.f_bavail * found.f_frsize >> 20, "error": wrong}


def _run(command: Sequence[str], environment: Mapping[str, str], run_s: float) -> tuple[int | None, str]:
    """Return exit code, None if it did not end in time, and output. The command's whole group is ended."""
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(environment),
                start_new_session=True,
            )
        except OSError as error:
            return 127, f"{command[0]}: {error.strerror}"
        try:
            code: int | None = process.wait(run_s)
        except subprocess.TimeoutExpired:
            code = None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        output.seek(0)
        return code, output.read().decode("utf-8", "replace")


def _format_output(code: int | None, output: str, run_s: float) -> str:
    how = f"it did not end within {run_s:.0f} s" if code is None else f"exit code {code}"
    return f"{how}{spark_submission.excerpt(output)}"
