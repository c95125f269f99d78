# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the rate of data_fingerprint with Kafka's ConsumerPerformance on the same topics of one broker, in one run.

Usage: ``PYTHONPATH=.build:.:spark .venv/bin/python tests/benchmarks/fingerprint.py [--records N] ...``

`many` has 1,000 partitions, `few` and `compacted` have 4. The two readers alternate, `--rounds` times, after one
unmeasured read each. Prints a line of JSON per measurement and, per topic, the ratio of the medians: the fingerprint's
rate by that of ConsumerPerformance (goal: 0.8), by the clock while records are read, and by CPU seconds. Both leave out
their start: Spark's, and the JVM's and the group's rebalance. CPU seconds are of the reader with all its processes, and
of the broker meanwhile: on a shared machine they say more than the clock. Spark has the role's default settings.
ConsumerPerformance cannot read `compacted` to a number of records: its rate in `few` is the measure.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time
from typing import Any, Dict, List

import yaml
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession
from quorumshift_spark import data_fingerprint

from tests.integration.servers import class_path, free_port, kraft_broker, kraft_controllers, wait_for, workdir

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Those of kafka-run-class.sh
TOOL_FLAGS = ("-Xmx512m", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35")
PARTITIONS = {"many": 1000, "few": 4, "compacted": 4}


def main() -> int:
    parser = argparse.ArgumentParser(description="Rates of data_fingerprint and of ConsumerPerformance.")
    parser.add_argument("--records", type=int, default=20_000_000, help="records in each topic")
    parser.add_argument("--size", type=int, default=100, help="bytes of a value")
    parser.add_argument("--partitions", type=int, default=PARTITIONS["many"], help="of the topic `many`")
    parser.add_argument("--compression", default="none")
    parser.add_argument("--cores", type=int, default=os.cpu_count(), help="cores of local Spark")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--topics", nargs="+", default=list(PARTITIONS), choices=list(PARTITIONS))
    options = parser.parse_args()
    address = HostPort("127.0.0.1", free_port())
    settings = {"log.cleaner.enable": "false", "log.index.size.max.bytes": "1000000"}
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(workdir("benchmark_fingerprint"))
        stack.enter_context(kraft_controllers(home, [address]))
        broker = stack.enter_context(kraft_broker(home, 1, f"101@{address}", settings, jvm=("-Xmx1g",)))
        admin = AdminClient({"bootstrap.servers": str(broker.address)})
        spark = session(options.cores)
        tool: Dict[str, float] = {}
        try:
            for topic in options.topics:
                fill(admin, broker, topic, options)
                tool = compare(admin, broker, home, topic, options, tool)
        finally:
            spark.stop()
    return 0


def compare(
    admin: AdminClient,
    broker: Any,
    home: pathlib.Path,
    topic: str,
    options: argparse.Namespace,
    of_few: Dict[str, float],
) -> Dict[str, float]:
    """Measure both readers on a topic and print the ratios; return the medians of ConsumerPerformance."""
    found: Dict[str, List[Dict[str, float]]] = {"fingerprint": [], "ConsumerPerformance": []}
    for number in range(options.rounds + 1):
        for what, measured in found.items():
            if what == "fingerprint":
                seconds = fingerprint(admin, broker, home / f"{topic}-{number}", topic)
            elif topic != "compacted":
                seconds = consumer_performance(broker, topic, options)
            else:
                continue
            rate = round(options.records / seconds["seconds reading"])
            line = {"what": what, "topic": topic, "records": options.records, **seconds, "records/s": rate}
            print(json.dumps({**line, "measured": number > 0}), flush=True)
            if number:
                measured.append(seconds)
    medians = {
        what: {name: statistics.median(figures[name] for figures in measured) for name in measured[0]}
        for what, measured in found.items()
        if measured
    }
    tool = medians.get("ConsumerPerformance", of_few)
    if tool:
        ratios = {name: round(tool[name] / medians["fingerprint"][name], 2) for name in tool}
        print(json.dumps({"topic": topic, "records": options.records, "ratio of rates, by": ratios}), flush=True)
    return tool


def fingerprint(admin: AdminClient, broker: Any, output: pathlib.Path, topic: str) -> Dict[str, float]:
    """Return the seconds of a run without a baseline, and of Spark's reading."""
    output.mkdir()
    job = {
        "nonce": output.name,
        "cluster_id": admin.describe_cluster().result(30).cluster_id,
        "output": str(output),
        "store": str(output / "store"),
        "views": {"cluster": {"bootstrap_servers": str(broker.address)}},
        "fingerprint": {"topics": [topic]},
    }
    before, broker_before = processes_cpu(os.getpid()), processes_cpu(broker.pid)
    path = output / "job.json"
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        json.dump(job, file)
    data_fingerprint.main(["--input", str(path)])  # in the active session
    result = json.loads((output / "result.json").read_text())
    if result["verdict"] != "pass":
        raise RuntimeError(f"{topic}: {result['verdict']}: {result['reasons']}")
    return {
        "seconds": result["timings"]["total"] - result["timings"]["spark_start"],
        "seconds reading": result["timings"]["read"],
        "CPU seconds": round(processes_cpu(os.getpid()) - before, 2),
        "CPU seconds of the broker": round(processes_cpu(broker.pid) - broker_before, 2),
    }


def processes_cpu(pid: int) -> float:
    """Return the CPU seconds of a process and its living descendants, waited-for children included.

    The broker of this benchmark is a child of it and is left out, unless it is the process itself.
    """
    children: Dict[int, List[int]] = {}
    ticks: Dict[int, int] = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(path.parent.name))
            ticks[int(path.parent.name)] = sum(map(int, fields[11:15]))
    left, total = [pid], 0
    while left:
        process = left.pop()
        total += ticks.get(process, 0)
        left += [child for child in children.get(process, ()) if not is_server(child)]
    return total / os.sysconf("SC_CLK_TCK")


def is_server(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return b"kafka.Kafka" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def consumer_performance(broker: Any, topic: str, options: argparse.Namespace) -> Dict[str, float]:
    """Return the seconds by the clock, with the JVM's start and the group's rebalance, and of fetching."""
    began, broker_before = time.monotonic(), processes_cpu(broker.pid)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    arguments = ["--bootstrap-server", str(broker.address), "--topic", topic, "--messages", str(options.records)]
    command = ["java", *TOOL_FLAGS, "-cp", class_path(), "org.apache.kafka.tools.ConsumerPerformance"]
    command += [*arguments, "--timeout", "60000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=True)
    seconds = time.monotonic() - began
    rows = [line.split(", ") for line in done.stdout.splitlines() if line.count(", ") > 5]
    row = dict(zip((name.strip() for name in rows[0]), rows[1]))
    if int(row["data.consumed.in.nMsg"]) < options.records:
        raise RuntimeError(f"ConsumerPerformance read {row['data.consumed.in.nMsg']} records: {done.stderr[-500:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "seconds": round(seconds, 3),
        "seconds reading": int(row["fetch.time.ms"]) / 1000,
        "CPU seconds": round(after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime, 2),
        "CPU seconds of the broker": round(processes_cpu(broker.pid) - broker_before, 2),
    }


def fill(admin: AdminClient, broker: Any, topic: str, options: argparse.Namespace) -> None:
    """Create the topic and produce its records; ten records share a key."""
    partitions = options.partitions if topic == "many" else PARTITIONS[topic]
    config = {"cleanup.policy": "compact"} if topic == "compacted" else {}
    admin.create_topics([NewTopic(topic, partitions, 1, config=config)])[topic].result(60)
    wait_for(lambda: _leaders(admin, topic) == partitions, 120, f"leaders of {topic}")
    settings = {"linger.ms": 200, "batch.size": 65536, "queue.buffering.max.kbytes": 512 * 1024}
    producer = Producer({"bootstrap.servers": str(broker.address), "compression.type": options.compression, **settings})
    body = os.urandom(options.size - 12)
    for number in range(options.records):
        key = b"%d" % (number * 7919 % max(1, options.records // 10))
        while True:
            try:
                # Runs of records, so that batches are as large as those of a busy topic
                producer.produce(topic, b"%012d" % number + body, key, partition=number // 500 % partitions)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(120):
        raise RuntimeError(f"{topic}: records not acknowledged within 120 s")


def _leaders(admin: AdminClient, topic: str) -> int:
    metadata = admin.list_topics(topic, timeout=30).topics[topic]
    return sum(1 for partition in metadata.partitions.values() if partition.leader >= 0)


def session(cores: int) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    defaults = yaml.safe_load((ROOT / "roles/quorumshift/defaults/main.yml").read_text())
    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.driver.host", "127.0.0.1")
    for name, value in {**defaults["quorumshift_spark_conf"], "spark.log.level": "ERROR"}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


if __name__ == "__main__":
    sys.exit(main())
