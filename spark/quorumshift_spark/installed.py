# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lets Python import PySpark from where it is installed, not from the archives that Spark puts first.

Spark gives its Python processes SPARK_HOME/python/lib/*.zip and the jar of spark-core as the first places to import
from (PythonUtils.sparkPythonPath). Python compiles modules of an archive at each start, and PySpark reads the archives'
tables of contents again before each task (importlib.invalidate_caches in worker_util.setup_spark_files).
"""

from __future__ import annotations

import importlib.machinery
import os
import sys

_ARCHIVE = os.path.join("python", "lib", "pyspark.zip")


def prefer_installed() -> None:
    """Drop Spark's archives from the places to import from, where PySpark of the same SPARK_HOME is installed."""
    homes = [os.path.realpath(entry[: -len(_ARCHIVE)]) for entry in sys.path if entry.endswith(os.sep + _ARCHIVE)]
    if not homes:
        return
    others = [entry for entry in sys.path if not os.path.realpath(entry).startswith(homes[0] + os.sep)]
    found = importlib.machinery.PathFinder.find_spec("pyspark", others)
    is_same = found is not None and os.path.realpath(found.origin or "") == os.path.join(homes[0], "__init__.py")
    if is_same and importlib.machinery.PathFinder.find_spec("py4j", others):
        dropped = {*sys.path} - {*others}
        sys.path[:] = others
        for entry in [*sys.path_importer_cache]:
            if any(entry == directory or entry.startswith(os.path.join(directory, "")) for directory in dropped):
                del sys.path_importer_cache[entry]
