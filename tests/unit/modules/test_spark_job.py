# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module starts Spark itself where none waits. A script replaces spark-submit."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests import modules

RESULT = json.dumps({"schema": 1, "nonce": "5f1e", "verdict": "pass"})
# The module on a host that is slow between the start of Spark and the job
SLOW = """
import runpy, sys, time
from ansible_collections.quorumshift.kafka.plugins.module_utils.spark_host import spark_submission
take = spark_submission.take
spark_submission.take = lambda directory: (time.sleep(1), take(directory))[1]
runpy.run_path(sys.argv.pop(1), run_name="__main__")  # a module takes an argument for its input
"""


@pytest.mark.parametrize("wait_s", [0, 1800])
def test_a_job_that_starts_spark_itself_has_it(tmp_path, wait_s):
    """However short Spark would wait for another job."""
    directory, output = tmp_path / "application", tmp_path / "output"
    (directory / "input").mkdir(parents=True)
    directory.chmod(0o700)
    script = f"until [ -e $1/job.json ]; do sleep 0.05; done; printf '%s' '{RESULT}' > $2/result.json"
    options = {
        "submit": ["sh", "-c", script, "sh", str(directory / "input"), str(output)],
        "job": {"views": {}},
        "nonce": "5f1e",
        "directory": str(directory),
        "output_dir": str(output),
        "run_key": "ab" * 32,
        "bootstrap_servers": ["b1:9092"],
        "wait_s": wait_s,
    }
    done = subprocess.run(
        [sys.executable, "-c", SLOW, str(modules.ROOT / "plugins" / "modules" / "spark_job.py")],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": options}),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": str(modules.ROOT / ".build")},
    )
    found = json.loads(done.stdout)
    assert found.get("result", {}).get("verdict") == "pass", found
    assert not (directory / "input").exists()
