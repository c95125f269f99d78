# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process from which Spark forks its Python workers (spark.python.daemon.module), of a job on one host.

PySpark's own, but for two things: what tasks need is imported once, not in each worker, and what is imported is no work
for the garbage collector, which runs after each task (pyspark.daemon.manager).
"""

from __future__ import annotations

import gc

import pandas  # noqa: F401
import pyarrow.parquet  # noqa: F401
import pyspark.daemon
import pyspark.sql.pandas.serializers

import quorumshift_spark.job  # noqa: F401

if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    pyspark.daemon.manager()
