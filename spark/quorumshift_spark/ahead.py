# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts Spark before there is a job, and waits for it: submit.py JOB --input DIR/job.json --wait SECONDS.

Until job.json is there, nothing of any cluster is known here, and nothing is read. Who needs the application no longer
removes DIR, which ends it.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from typing import Any, Callable

from pyspark.sql import SparkSession

from quorumshift_spark import session
from quorumshift_spark.views.source import error_line

WarmUp = Callable[[SparkSession, str], Any]
"""Runs a job on synthetic views, in this directory."""

_POLL_S = 0.05
_WARM_UPS = 2  # the third one is hardly faster


def start(name: str, job_file: str, wait_s: float, warm_up: WarmUp | None = None) -> SparkSession | None:
    """Start Spark and return its session once there is a job; None where it did not start: the job tries again, and
    says why. Raises NotNeeded."""
    until = time.monotonic() + wait_s
    spark = None
    try:
        spark = session.start(f"quorumshift {name}")
        for _number in range(_WARM_UPS if warm_up else 0):
            if _has_come(job_file):
                return spark
            with tempfile.TemporaryDirectory(prefix="warm-up-", dir=os.path.dirname(job_file)) as directory:
                warm_up(spark, directory)
    except Exception as error:
        print(f"{name}: ahead of the job: {error_line(error)}", file=sys.stderr, flush=True)
    try:
        while not _has_come(job_file):
            if time.monotonic() > until:
                raise NotNeeded
            time.sleep(_POLL_S)
    except NotNeeded:
        if spark:
            spark.stop()
        raise
    return spark


class NotNeeded(Exception):
    """No job came."""


def _has_come(job_file: str) -> bool:
    """Return whether there is a job. Raises NotNeeded if its directory was removed."""
    if os.path.exists(job_file):
        return True
    if os.path.isdir(os.path.dirname(job_file)):
        return False
    raise NotNeeded
