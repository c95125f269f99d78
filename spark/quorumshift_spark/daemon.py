# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process from which Spark forks its Python workers (spark.python.daemon.module), of a job on one host.

PySpark's own, but for two things: what tasks need is imported once, not in each worker, and what is imported is no work
for the garbage collector, which runs after each task (pyspark.daemon.manager).
"""

from __future__ import annotations

import gc
import importlib

import pyspark.daemon

USED = ("pandas", "pyarrow.parquet", "pyspark.sql.pandas.serializers", "quorumshift_spark.job")

if __name__ == "__main__":
    for name in USED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    pyspark.daemon.manager()
