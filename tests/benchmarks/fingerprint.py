# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the rate of data_fingerprint with Kafka's ConsumerPerformance on the same topics of one broker.

Usage: ``PYTHONPATH=.build:.:spark .venv/bin/python tests/benchmarks/fingerprint.py [--records N] ...``

Three topics have the same records: one keeps all, one is written in transactions (with markers), one is compacted
(mostly gaps). Prints a line of JSON per measurement, with records and megabytes per second: of the job without Spark's
start, cold and warm, and of ConsumerPerformance, by its own report and by the clock. Spark has the JVM flags of the
role's defaults. CPU seconds are of the reader with all its processes, and of the broker meanwhile: on a shared machine
they say more than the clock.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import resource
import subprocess
import sys
import time
from typing import Any, Dict, List

from ansible_collections.quorumshift.kafka.plugins.module_utils.addresses import HostPort
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession
from quorumshift_spark import data_fingerprint

from tests.integration.servers import BUILD, class_path, free_port, kraft_broker, kraft_controllers, wait_for, workdir

# Those of kafka-run-class.sh
TOOL_FLAGS = ("-Xmx512m", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35")


def main() -> int:
    parser = argparse.ArgumentParser(description="Rates of data_fingerprint and of ConsumerPerformance.")
    parser.add_argument("--records", type=int, default=1_000_000, help="records in each topic")
    parser.add_argument("--size", type=int, default=200, help="bytes of a value")
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--transaction", type=int, default=100, help="records of a transaction, over all partitions")
    parser.add_argument("--cores", type=int, default=2, help="cores of local Spark")
    parser.add_argument("--topics", nargs="+", default=["plain", "transactional", "compacted"])
    options = parser.parse_args()
    address = HostPort("127.0.0.1", free_port())
    settings = {"log.cleaner.backoff.ms": "500"}
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(workdir("benchmark_fingerprint"))
        stack.enter_context(kraft_controllers(home, [address]))
        broker = stack.enter_context(kraft_broker(home, 1, f"101@{address}", settings))
        admin = AdminClient({"bootstrap.servers": str(broker.address)})
        fill(admin, broker, options)
        spark = session(options.cores)
        try:
            for topic in options.topics:
                for number, what in enumerate(("fingerprint, cold", "fingerprint, warm")):
                    measure(what, topic, options, fingerprint, admin, broker, spark, home / f"{topic}-{number}")
                if topic != "compacted":  # the tool would wait for the compacted records
                    measure("ConsumerPerformance", topic, options, consumer_performance, broker, topic, options)
        finally:
            spark.stop()
    return 0


def measure(what: str, topic: str, options: argparse.Namespace, function: Any, *arguments: Any) -> None:
    seconds = function(*(arguments if function is consumer_performance else (*arguments, topic)))
    result = {"what": what, "topic": topic, "records": options.records, **seconds}
    for name, took in seconds.items():
        if took and "CPU" not in name:
            rate = options.records / took
            result[name.replace("seconds", "records/s")] = round(rate)
            result[name.replace("seconds", "MB/s")] = round(rate * options.size / 1e6, 1)
    print(json.dumps(result), flush=True)


def fingerprint(
    admin: AdminClient, broker: Any, spark: SparkSession, output: pathlib.Path, topic: str
) -> Dict[str, float]:
    """Return the seconds of a run without a baseline, and of Spark's reading."""
    output.mkdir()
    job = {
        "nonce": output.name,
        "cluster_id": admin.describe_cluster().result(30).cluster_id,
        "output": str(output),
        "views": {"cluster": {"bootstrap_servers": str(broker.address)}},
        "fingerprint": {"topics": [topic]},
    }
    before, broker_before = processes_cpu(os.getpid()), processes_cpu(broker.pid)
    result = data_fingerprint.run(job, str(output.parent), spark)
    if result["verdict"] != "pass":
        raise RuntimeError(f"{topic}: {result['verdict']}: {result['reasons']}")
    return {
        "seconds": result["timings"]["total"],
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
        one = left.pop()
        total += ticks.get(one, 0)
        left += [child for child in children.get(one, ()) if not is_server(child)]
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


def fill(admin: AdminClient, broker: Any, options: argparse.Namespace) -> None:
    """Create the topics and produce the same records to each; ten records share a key."""
    compact = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.bytes": str(1 << 20)}
    body = os.urandom(options.size - 12)
    for topic in options.topics:
        config = compact if topic == "compacted" else {}
        admin.create_topics([NewTopic(topic, options.partitions, 1, config=config)])[topic].result(30)
        wait_for(lambda: topic in admin.list_topics(timeout=30).topics, 60, f"topic {topic}")  # noqa: B023
        settings: Dict[str, Any] = {"bootstrap.servers": str(broker.address), "linger.ms": 20}
        if topic == "transactional":
            settings["transactional.id"] = "benchmark"
        producer = Producer(settings)
        if topic == "transactional":
            producer.init_transactions(60)
        for number in range(options.records):
            if topic == "transactional" and number % options.transaction == 0:
                if number:
                    producer.commit_transaction(60)
                producer.begin_transaction()
            key = b"%d" % (number * 7919 % max(1, options.records // 10))
            while True:
                try:
                    producer.produce(topic, b"%012d" % number + body, key, partition=number % options.partitions)
                    break
                except BufferError:
                    producer.poll(0.1)
        if topic == "transactional":
            producer.commit_transaction(60)
        if producer.flush(120):
            raise RuntimeError(f"{topic}: records not acknowledged within 120 s")
        if topic == "compacted":
            wait_for(lambda: _cleaned(broker) == options.partitions, 120, "the compaction of every partition")


def _cleaned(broker: Any) -> int:
    """Return the number of partitions that the log cleaner has cleaned."""
    path = broker.home / "data" / "cleaner-offset-checkpoint"
    return path.read_text().count("compacted ") if path.exists() else 0


def session(cores: int) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    directory = pathlib.Path(os.environ.get("QUORUMSHIFT_SPARK_JARS") or BUILD / "spark" / "jars")
    jars: List[str] = sorted(str(jar) for jar in directory.glob("*.jar"))
    return (
        SparkSession.builder.master(f"local[{cores}]")
        .config("spark.jars", ",".join(jars))
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


if __name__ == "__main__":
    sys.exit(main())
