# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the Python of a job on one host imports PySpark from, with the code of the archive alone."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pyspark
import pytest
from quorumshift_spark import package

pytestmark = pytest.mark.real
SCRIPT = """
import json, sys
from quorumshift_spark import session

def seen(_numbers=None):
    import pyspark
    archives = [one for one in (*sys.path, *sys.path_importer_cache) if "pyspark.zip" in one or ".jar" in one]
    parent = open(f"/proc/{__import__('os').getppid()}/cmdline").read().split(chr(0))
    return [[pyspark.__file__, archives, "quorumshift_spark.daemon" in parent]]

spark = session.start("test")
tasks = spark.sparkContext.parallelize(range(4), 4).mapPartitions(seen).collect()
print(json.dumps({"driver": seen()[0], "tasks": tasks}))
"""


def test_pyspark_is_imported_from_where_it_is_installed(tmp_path):
    package.build(str(tmp_path / "quorumshift_spark.zip"))
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [str(pathlib.Path(sys.executable).with_name("spark-submit")), "--master", "local[2]"]
    command += ["--conf", "spark.ui.enabled=false", "--py-files", str(tmp_path / "quorumshift_spark.zip")]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["PYSPARK_PYTHON"] = sys.executable
    done = subprocess.run(
        [*command, str(tmp_path / "script.py")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=environment,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["driver"] == [pyspark.__file__, [], False]
    assert found["tasks"] == [[pyspark.__file__, [], True]] * 4
