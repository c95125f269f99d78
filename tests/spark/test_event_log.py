# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An event log that an operator switches on has no credential: not of Spark's settings, and not of a task's function.

test_parity.py, test_fingerprint.py and test_standalone.py search the event logs of whole jobs.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

from tests.spark import parity

SECRET = "s3cr3t-of-the-test"
SETTINGS = {
    "spark.authenticate.secret": SECRET,
    "spark.ssl.keyPassword": SECRET,
    "spark.hadoop.fs.s3a.access.key": SECRET,
    "spark.hadoop.fs.s3a.secret.key": SECRET,
    "spark.hadoop.fs.azure.account.key.example.dfs.core.windows.net": SECRET,
    "spark.hadoop.ssl.private.key": SECRET,
    "spark.executorEnv.KEY_PASSPHRASE": SECRET,
    "spark.hadoop.sasl.jaas.config": f"example.LoginModule required user=x key={SECRET};",
    "spark.executor.extraJavaOptions": f"-Djavax.net.ssl.trustStorePassword={SECRET}",
}
SHOWN = {"spark.hadoop.example.of.the.test": "shown-by-the-event-log"}
CODE = """
import pyarrow as pa
from quorumshift_spark import running, session
spark = session.start("test")
class Client:
    password = "{secret}"
def work(batches, client=Client()):
    for batch in batches:
        assert client.password
        yield batch
with running.timed({{"job": "test", "timings": {{}}}}, "closure"):
    assert spark.range(3).mapInArrow(work, "id bigint").count() == 3
spark.stop()
"""


def events_of(tmp_path, settings, code):
    """Run a program with these settings in Spark's file of defaults. Return the text of its event log."""
    events = tmp_path / "events"
    events.mkdir()
    given = {**parity.CONF, **settings, "spark.eventLog.enabled": "true", "spark.eventLog.dir": events.as_uri()}
    given["spark.eventLog.compress"] = "false"
    (tmp_path / "conf").mkdir()
    lines = [f"{name} {value}" for name, value in given.items()]
    (tmp_path / "conf" / "spark-defaults.conf").write_text("\n".join(lines))
    (tmp_path / "program.py").write_text(code)
    environment = {**os.environ, "SPARK_CONF_DIR": str(tmp_path / "conf"), "PYSPARK_PYTHON": sys.executable}
    environment["PYTHONPATH"] = parity.PYTHONPATH
    submit = pathlib.Path(sys.executable).with_name("spark-submit")
    done = subprocess.run(
        [submit, tmp_path / "program.py"], capture_output=True, text=True, timeout=600, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert SECRET not in done.stdout + done.stderr
    return "".join(path.read_text() for path in events.rglob("*") if path.is_file())


def test_an_event_log_has_no_credential(tmp_path):
    text = events_of(tmp_path, {**SETTINGS, **SHOWN}, CODE.format(secret=SECRET))
    assert '"Event":"SparkListenerTaskEnd"' in text and "test: closure" in text
    assert "shown-by-the-event-log" in text and "spark.hadoop.fs.s3a.secret.key" in text
    assert SECRET not in text
