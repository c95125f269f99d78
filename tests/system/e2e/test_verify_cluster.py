# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Spark standalone cluster on hosts of the testbed, and a separate Spark host, give the same result as `local[*]`."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pyspark
import pytest
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.spark_jobs import ON_NETWORK

from tests.system.e2e.comparing import assert_nothing_left, verify
from tests.system.testbed.hosts import SHARED
from tests.system.testbed.waiting import wait_for

HOME = "/opt/quorumshift-spark"
PORT = 7077
# The same path on each host and on the control node, since the driver runs it too
PYTHON = "/opt/quorumshift-spark-python"
# The executors' Python packages; the job carries the collection's code.
PACKAGES = ("pyspark", "pyarrow*", "pandas*", "numpy*", "kazoo", "confluent_kafka*", "cryptography*", "cffi*", "_cffi*")
PACKAGES += ("crc32c*", "pycparser", "jinja2", "markupsafe", "py4j", "pytz", "dateutil", "six.py", "tzdata")
# The driver's additional packages
PACKAGES += ("jsonschema*", "referencing", "rpds", "attr", "attrs", "typing_extensions.py")
SETTINGS = {**ON_NETWORK, "spark.authenticate.secret": "a secret of all daemons and jobs"}
PROPERTIES = "".join(f"{name} {value}\n" for name, value in SETTINGS.items())
SAME = ("verdict", "counts", "differences", "undecided", "comparisons")


def install_spark(testbed, hosts):
    """Install Spark and its Python packages on each host."""
    packages = pathlib.Path(pyspark.__file__).parents[1]
    names = sorted(path.name for pattern in PACKAGES for path in packages.glob(pattern))
    archive = subprocess.Popen(["tar", "-C", str(packages), "-cf", "-", *names], stdout=subprocess.PIPE)
    packed = archive.communicate()[0]
    script = f"""#!/bin/sh\nPYTHONPATH={HOME}:$PYTHONPATH exec /usr/bin/python3 "$@"\n"""
    for host in hosts:
        unpack = f"mkdir -p {HOME} && tar -C {HOME} -xf -"
        subprocess.run(testbed.ssh(host, unpack), input=packed, check=True, timeout=300)
        subprocess.run(testbed.ssh(host, f"install -m 755 /dev/stdin {PYTHON}"), input=script.encode(), check=True)
        settings = testbed.ssh(host, f"install -m 600 /dev/stdin {HOME}/daemon.conf")
        subprocess.run(settings, input=PROPERTIES.encode(), check=True)


def copy_ca_certificate(testbed, hosts):
    """Copy the CA certificate to the same path on each host."""
    cafile = pathlib.Path(testbed.variables["quorumshift_client"]["ssl_cafile"])
    for host in hosts:
        testbed.run(host, f"mkdir -p {cafile.parent}")
        testbed.send(host, [cafile], str(cafile.parent))


@pytest.fixture(scope="module")
def master(testbed, fresh):
    """The URL of a Spark master with two workers."""
    first, second = fresh.controllers[:2]
    python = fresh.run(first, "python3 -c 'import sys; print(*sys.version_info[:2])'")
    assert python == "{} {}".format(*sys.version_info[:2]), "executors and driver must have the same Python"
    install_spark(fresh, [first, second])
    url = f"spark://{fresh.addresses[first]}:{PORT}"
    start = f"systemd-run --unit={{}} --setenv=SPARK_HOME={HOME}/pyspark --setenv=SPARK_NO_DAEMONIZE=1 "
    start += f"{HOME}/pyspark/bin/spark-class org.apache.spark.deploy.{{}} --host {{}} "
    start += f"--properties-file {HOME}/daemon.conf "
    address = fresh.addresses[first]
    fresh.run(first, start.format("spark-master", "master.Master", address) + f"--port {PORT} --webui-port 8081")
    for host in (first, second):
        worker = start.format("spark-worker", "worker.Worker", fresh.addresses[host])
        fresh.run(host, f"{worker} --cores 1 --memory 1g {url}")

    def joined():
        return fresh.run(first, "journalctl -u spark-master -o cat | grep -c 'Registering worker'", check=False) == "2"

    wait_for(joined, 60, "both workers to join the master")
    python_here = pathlib.Path(PYTHON)
    python_here.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python_here.chmod(0o755)
    try:
        yield url
    finally:
        python_here.unlink()
    for host in (first, second):
        fresh.run(host, "systemctl stop spark-worker spark-master 2>/dev/null; true")


def test_a_standalone_cluster_gives_the_same_result(fresh, master, tmp_path):
    here = verify(fresh).result
    gateway = fresh.run(fresh.controllers[0], "echo $SSH_CONNECTION").split()[0]
    conf = {
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.driver.host": gateway,
        "spark.executor.memory": "512m",
        "spark.cores.max": "2",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # so that both workers run an executor
        "spark.pyspark.python": PYTHON,
        "spark.pyspark.driver.python": sys.executable,
    }
    settings = tmp_path / "spark.conf"
    settings.write_text(PROPERTIES)
    settings.chmod(0o600)
    cluster = {"quorumshift_spark_master": master, "quorumshift_spark_conf": conf, "quorumshift_spark_uri": str(SHARED)}
    ran, there = verify(fresh, **cluster, quorumshift_spark_options=["--properties-file", str(settings)])
    assert ran.code == 0 and there["verdict"] == "pass", (ran.text, there.get("reasons"))
    # not compared with the first run, which had no baseline
    again = verify(fresh).result
    assert {name: again[name] for name in SAME} == {name: there[name] for name in SAME}
    assert here["verdict"] == "pass" and set(here["views"]) <= set(there["views"])
    tasks = fresh.run(fresh.controllers[1], f"ls {HOME}/pyspark/work/*/*/stderr | wc -l")
    assert int(tasks) >= 1, "the second worker ran no executor"
    assert_nothing_left(fresh)


def test_a_separate_spark_host_gives_the_same_result(fresh):
    host = fresh.controllers[2]
    install_spark(fresh, [host])
    copy_ca_certificate(fresh, [host])
    elsewhere = {
        "quorumshift_spark_host": host,
        "quorumshift_spark_submit": ["env", f"SPARK_HOME={HOME}/pyspark", f"{HOME}/pyspark/bin/spark-submit"],
        "quorumshift_spark_python": PYTHON,
    }
    verify(fresh)  # creates the baseline of the next two runs
    ran, there = verify(fresh, **elsewhere)
    assert ran.code == 0 and there["verdict"] == "pass", (ran.text, there.get("reasons"))
    here = verify(fresh).result
    assert {name: here[name] for name in SAME} == {name: there[name] for name in SAME}
    assert_nothing_left(fresh)
    assert fresh.run(host, "find /tmp /var/tmp -name 'quorumshift-*'") == ""
