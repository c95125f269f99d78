# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Spark standalone cluster, a master and two workers on hosts of the bed, finds what `local[*]` finds; and so does a
job that runs on a host of its own."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pyspark
import pytest

from tests.e2e.comparing import nothing_left, verify
from tools.e2e.testbed import wait_for

HOME = "/opt/quorumshift-spark"
PORT = 7077
# The same path on each host and here, where Spark plans with it what executors read
PYTHON = "/opt/quorumshift-spark-python"
# What the executors' Python needs; the collection's own code travels with the job.
PACKAGES = ("pyspark", "pyarrow*", "pandas*", "numpy*", "kazoo", "confluent_kafka*", "cryptography*", "cffi*", "_cffi*")
PACKAGES += ("pycparser", "jinja2", "markupsafe", "py4j", "pytz", "dateutil", "six.py", "tzdata")
# What a driver needs besides
PACKAGES += ("jsonschema*", "referencing", "rpds", "attr", "attrs", "typing_extensions.py")
SAME = ("verdict", "counts", "differences", "undecided", "comparisons")


def environment(testbed, hosts):
    """Spark and what its Python workers import, on each host."""
    packages = pathlib.Path(pyspark.__file__).parents[1]
    names = sorted(path.name for pattern in PACKAGES for path in packages.glob(pattern))
    archive = subprocess.Popen(["tar", "-C", str(packages), "-cf", "-", *names], stdout=subprocess.PIPE)
    reported = archive.communicate()[0]
    script = f"""#!/bin/sh\nPYTHONPATH={HOME}:$PYTHONPATH exec /usr/bin/python3 "$@"\n"""
    for host in hosts:
        unpack = f"mkdir -p {HOME} && tar -C {HOME} -xf -"
        subprocess.run(testbed.ssh(host, unpack), input=reported, check=True, timeout=300)
        subprocess.run(testbed.ssh(host, f"install -m 755 /dev/stdin {PYTHON}"), input=script.encode(), check=True)


def with_the_ca(testbed, hosts):
    """It stands at the same path on each host."""
    cafile = pathlib.Path(testbed.variables["quorumshift_client"]["ssl_cafile"])
    for host in hosts:
        testbed.run(host, f"mkdir -p {cafile.parent}")
        testbed.send(host, [cafile], str(cafile.parent))


@pytest.fixture(scope="module")
def master(testbed, fresh):
    """URL of a master whose two workers are there."""
    first, second = fresh.controllers[:2]
    python = fresh.run(first, "python3 -c 'import sys; print(*sys.version_info[:2])'")
    assert python == "{} {}".format(*sys.version_info[:2]), "executors and driver must have the same Python"
    environment(fresh, [first, second])
    url = f"spark://{fresh.addresses[first]}:{PORT}"
    start = f"systemd-run --unit={{}} --setenv=SPARK_HOME={HOME}/pyspark --setenv=SPARK_NO_DAEMONIZE=1 "
    start += f"{HOME}/pyspark/bin/spark-class org.apache.spark.deploy.{{}} --host {{}} "
    address = fresh.addresses[first]
    fresh.run(first, start.format("spark-master", "master.Master", address) + f"--port {PORT} --webui-port 8081")
    for host in (first, second):
        worker = start.format("spark-worker", "worker.Worker", fresh.addresses[host])
        fresh.run(host, f"{worker} --cores 1 --memory 1g {url}")
    with_the_ca(fresh, (first, second))

    def joined():
        return fresh.run(first, "journalctl -u spark-master -o cat | grep -c 'Registering worker'", check=False) == "2"

    wait_for(joined, 60, "both workers to join the master")
    here = pathlib.Path(PYTHON)
    here.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    here.chmod(0o755)
    try:
        yield url
    finally:
        here.unlink()
    for host in (first, second):
        fresh.run(host, "systemctl stop spark-worker spark-master 2>/dev/null; true")


def test_the_same_as_in_one_process(fresh, master):
    here = verify(fresh).result
    gateway = fresh.run(fresh.controllers[0], "echo $SSH_CONNECTION").split()[0]
    conf = {
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.driver.host": gateway,
        "spark.executor.memory": "512m",
        "spark.pyspark.python": PYTHON,
        "spark.pyspark.driver.python": sys.executable,
    }
    ran, there = verify(fresh, quorumshift_spark_master=master, quorumshift_spark_conf=conf)
    assert ran.code == 0 and there["verdict"] == "pass", (ran.text, there.get("reasons"))
    # The first run's baseline was not there before it
    again = verify(fresh).result
    assert {name: again[name] for name in SAME} == {name: there[name] for name in SAME}
    assert here["verdict"] == "pass" and set(here["views"]) <= set(there["views"])
    tasks = fresh.run(fresh.controllers[1], f"ls {HOME}/pyspark/work/*/*/stderr | wc -l")
    assert int(tasks) >= 1, "the second worker ran no executor"
    nothing_left(fresh)


def test_the_same_from_another_host(fresh):
    host = fresh.controllers[2]
    environment(fresh, [host])
    with_the_ca(fresh, [host])
    elsewhere = {
        "quorumshift_spark_host": host,
        "quorumshift_spark_submit": ["env", f"SPARK_HOME={HOME}/pyspark", f"{HOME}/pyspark/bin/spark-submit"],
        "quorumshift_spark_python": PYTHON,
    }
    # The first run's baseline was not there before it
    verify(fresh)
    ran, there = verify(fresh, **elsewhere)
    assert ran.code == 0 and there["verdict"] == "pass", (ran.text, there.get("reasons"))
    here = verify(fresh).result
    assert {name: here[name] for name in SAME} == {name: there[name] for name in SAME}
    nothing_left(fresh)
    assert fresh.run(host, "find /tmp /var/tmp -name 'quorumshift-*'") == ""
