# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rate at which executors ask a real ZooKeeper server, as the server counts it: that of all of them together."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time

import pyspark
import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper

from tests.integration import servers
from tests.spark import parity

pytestmark = pytest.mark.real
TOPICS, RATE = 6000, 1500
_POLL_S = 0.1
# On executors that are processes of their own, as many as the driver knows when it makes the parts
SCRIPT = """
import json, sys, time
from pyspark.sql import SparkSession
from quorumshift_spark.normal_form import Digests
from quorumshift_spark.views import source
from quorumshift_spark.views.zookeeper import ZooKeeperView

connect, workers, rate, at_once = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
spark = SparkSession.builder.master(f"local-cluster[{workers},1,700]").config("spark.ui.enabled", "false")
spark = spark.config("spark.executor.memory", "500m").getOrCreate()
known = spark.sparkContext._jsc.sc().statusTracker()
while len(known.getExecutorInfos()) < workers + 1:
    time.sleep(0.1)
view = ZooKeeperView(connect, None, Digests(b"0123456789abcdef"), max_rate=rate, max_latency_ms=100)
parts = source.parts([view], at_once or spark.sparkContext.defaultParallelism, True)
rows = source.on_tasks(spark, parts, source.functools.partial(source.batches, key=b"0" * 32), source.WRITTEN)
ended = [source.summary(b"0" * 32, row.view, row.ended) for row in rows.where("ended IS NOT NULL").collect()]
errors = [summary.error for summary in ended if summary.error]
partitions = sum(summary.counts["partition"] for summary in ended)
print(json.dumps({"parts": len(parts), "errors": errors, "partitions": partitions}))
"""


@pytest.fixture(scope="module")
def server():
    """A server with topics of one partition: two znodes each."""
    with servers.workdir("zookeeper_rate") as home, servers.zookeeper(home) as running:
        with zookeeper.connect(running.connect, 60) as client:
            state = json.dumps({"controller_epoch": 1, "leader": 1, "version": 1, "leader_epoch": 0, "isr": [1]})
            topic = {"version": 3, "topic_id": "Qs7KfZk2TIK1n0nQ5Qm3Tw", "partitions": {"0": [1]}}
            client.ensure_path("/brokers/topics")
            made = []
            for number in range(TOPICS):
                path = f"/brokers/topics/t{number}"
                made.append(client.create_async(path, json.dumps(topic).encode()))
                made.append(client.create_async(f"{path}/partitions"))
                made.append(client.create_async(f"{path}/partitions/0"))
                made.append(client.create_async(f"{path}/partitions/0/state", state.encode()))
            for answer in made:
                answer.get(60)
        yield running


def received(server):
    """Return how many packets the server has received from all clients."""
    with socket.create_connection((server.address.host, server.address.port), 5) as connection:
        connection.sendall(b"srvr")
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b"")).decode()
    return int(re.search(r"^Received: (\d+)$", answer, re.MULTILINE)[1])


@contextlib.contextmanager
def counting(server):
    """Yield the samples (time, packets received so far) that a thread takes until the block ends."""
    stop, samples = threading.Event(), []

    def count():
        while not stop.wait(_POLL_S):
            samples.append((time.monotonic(), received(server)))

    thread = threading.Thread(target=count)
    thread.start()
    try:
        yield samples
    finally:
        stop.set()
        thread.join()


def rates(samples, seconds=2.0):
    """Return the packets a second of each window of at least so many seconds, without those of the samples."""
    found = []
    for at, (begin, before) in enumerate(samples):
        for number, (end, after) in enumerate(samples[at + 1 :], 1):
            if end - begin >= seconds:
                found.append((after - before - number) / (end - begin))
                break
    return found


@pytest.mark.parametrize(("workers", "at_once"), [(1, 0), (2, 0), (4, 0), (4, 2), (1, 4)])
def test_executors_together_keep_to_the_rate(server, workers, at_once):
    """Also on more executors than the driver knew when it made the parts, and on fewer."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (parity.ROOT / ".build", parity.ROOT / "spark"))),
    }
    environment.update(PYSPARK_PYTHON=sys.executable, SPARK_HOME=os.path.dirname(pyspark.__file__))
    environment.update(SPARK_LOCAL_IP="127.0.0.1")
    command = [sys.executable, "-c", SCRIPT, server.connect, str(workers), str(RATE), str(at_once)]
    with counting(server) as samples:
        done = subprocess.run(command, capture_output=True, text=True, timeout=280, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert not found["errors"] and found["partitions"] == TOPICS, found
    assert found["parts"] == (at_once or max(workers, 2)), found
    highest = max(rates(samples))
    print(f"{workers} workers, {found['parts']} tasks: at most {highest:,.0f} requests a second of {RATE:,}")
    # A task that was late may catch up with 0.1 s (Pace.wait), and the server counts pings and sessions too
    assert highest <= RATE * 1.15, "the rate is that of all tasks"
    at_once = min(workers, found["parts"])
    assert highest >= RATE * at_once / found["parts"] * 0.3, (
        "and tasks use their share of it, on a busy machine as well"
    )
