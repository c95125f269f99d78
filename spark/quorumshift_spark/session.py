# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts Spark for a job, and checks what the executors of a cluster need before any source is read."""

from __future__ import annotations

import importlib
import os
import platform
import re
import socket
from typing import Dict, Iterator, List, Tuple

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

import quorumshift_spark

EXECUTOR_MODULES = ("pyarrow", "pandas", "kazoo", "confluent_kafka", "cryptography", "crc32c")
_DAEMON, _PATH = "spark.python.daemon.module", "spark.executorEnv.PYTHONPATH"
_SECRET = "spark.authenticate.secret"
_REDACTED = "spark.redaction.regex"
SECRETS = "(?i)secret|password|passphrase|token|access[.]?key|account[.]?key|private[.]?key|credential|jaas"
"""Settings of which Spark's event log, UI and logs show no value, by name or value: Spark's own default, and more."""
_WITHOUT = (
    "If master and workers have none, and you trust the network, add to quorumshift_spark_conf: "
    '{spark.authenticate: "false", spark.network.crypto.enabled: "false"}'
)
_STOPPED = re.compile("Spark context stopped|stopped SparkContext|SparkContext (was|has been) shut ?down")
_TASKS_A_CORE = 4  # so that, as a rule, each executor runs at least one


class SessionError(RuntimeError):
    """Spark cannot run the job; the text is for the operator."""


def start(name: str) -> SparkSession:
    """Return a new session whose executors can run the job. Raises SessionError, Spark's errors."""
    try:
        SparkContext._ensure_initialized()  # without the JVM, SparkConf is empty
        builder = SparkSession.builder.appName(name)
        for key, value in _settings(SparkConf()).items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        try:
            _check_executors(spark)
        except BaseException:
            spark.stop()
            raise
    except SessionError:
        raise
    except Exception as error:
        why = explained(str(error), SparkConf().get("spark.master", ""))
        if why is None:
            raise
        raise SessionError(why) from None
    return spark


def _settings(given: SparkConf) -> Dict[str, str]:
    """Return what this package sets, beside the settings that were given."""
    # For each expression, PySpark would record the line of code that made it
    settings = {"spark.python.sql.dataFrameDebugging.enabled": "false"}
    if not given.contains(_REDACTED):
        settings[_REDACTED] = SECRETS
    if _is_local(given.get("spark.master", "")) and not given.contains(_DAEMON):
        places = [os.path.dirname(quorumshift_spark.__path__[0]), given.get(_PATH, "")]
        settings.update({_DAEMON: "quorumshift_spark.daemon", _PATH: os.pathsep.join(filter(None, places))})
    return settings


def is_local(spark: SparkSession) -> bool:
    """Return whether all of Spark runs on this host, in one process."""
    return _is_local(spark.sparkContext.master)


def _is_local(master: str) -> bool:
    return master.startswith("local")


def _check_executors(spark: SparkSession) -> None:
    context = spark.sparkContext
    if _is_local(context.master):
        return
    tasks = _TASKS_A_CORE * context.defaultParallelism
    problem = unusable(context.parallelize(range(tasks), tasks).mapPartitions(_missing).collect())
    if problem:
        raise SessionError(problem)


def explained(text: str, master: str) -> str | None:
    """Return what to do about Spark's error at the start, None for other errors."""
    if "PYTHON_VERSION_MISMATCH" in text:
        host = re.search(r"\((\S+) executor ", text)
        return (
            f"executor {host[1] if host else ''}: Python has another version than the driver's, "
            f"{platform.python_version()}. Install that version on the executor's host and name it with "
            "spark.pyspark.python in quorumshift_spark_conf"
        )
    if _SECRET in text:
        return (
            f"Spark has no {_SECRET}. Set it in conf/spark-defaults.conf of the Spark host (mode 0600), with the value "
            f"of the master and the workers. {_WITHOUT}"
        )
    if _STOPPED.search(text):
        return (
            "Spark stopped before it had an executor. If spark.log says that masters are unresponsive, "
            f"{master} is down or has another {_SECRET} than the Spark host. Set the same value in "
            f"conf/spark-defaults.conf of both. {_WITHOUT}"
        )
    return None


def _missing(_numbers: Iterator[int]) -> List[Tuple[str, str]]:
    return [(socket.gethostname(), name) for name in EXECUTOR_MODULES if not _importable(name)]


def _importable(name: str) -> bool:
    try:
        importlib.import_module(name)
    except Exception:
        return False
    return True


def unusable(found: List[Tuple[str, str]]) -> str | None:
    """Return the text for the missing modules, [(host, module)], None if none is missing."""
    if not found:
        return None
    host = min(found)[0]
    names = sorted({name for where, name in found if where == host})
    packages = " ".join(name.replace("_", "-") for name in names)
    return (
        f"executor {host}: Python cannot import {', '.join(names)}. Run there, with the Python of "
        f"spark.pyspark.python: python -m pip install {packages}"
    )
