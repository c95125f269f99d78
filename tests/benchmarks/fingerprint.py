# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rate of data_fingerprint against Kafka's own ConsumerPerformance, on the same topics of one broker in one run.

Usage: ``PYTHONPATH=.build:.:spark .venv/bin/python tests/benchmarks/fingerprint.py [--records N] ...``

Three topics of the same records: one that keeps all, one written in transactions (a marker, so a gap between offsets,
after every few records), one compacted (nearly nothing but gaps). Prints one line of JSON a measurement, with
records and megabytes a second: the job's whole time but Spark's start, cold and warm, and ConsumerPerformance by its
own account and by the clock.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time
from typing import Any, Dict, List

from ansible_collections.quorumshift.kafka.plugins.module_utils.addresses import HostPort
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession
from quorumshift_spark import data_fingerprint

from tests.integration.servers import BUILD, free_port, java, kraft_broker, kraft_controllers, wait_for, workdir


def main() -> int:
    parser = argparse.ArgumentParser(description="Rates of data_fingerprint and of ConsumerPerformance.")
    parser.add_argument("--records", type=int, default=1_000_000, help="in each topic")
    parser.add_argument("--size", type=int, default=200, help="bytes of a value")
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--transaction", type=int, default=100, help="records of a transaction, over all partitions")
    parser.add_argument("--cores", type=int, default=2, help="of local Spark")
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
                for number, what in enumerate(("fingerprint, first", "fingerprint, warm")):
                    measure(what, topic, options, fingerprint, admin, broker, spark, home / f"{topic}-{number}")
                if topic != "compacted":  # it waits for the records that compaction took
                    measure("ConsumerPerformance", topic, options, consumer_performance, broker, topic, options)
        finally:
            spark.stop()
    return 0


def measure(what: str, topic: str, options: argparse.Namespace, function: Any, *arguments: Any) -> None:
    seconds = function(*(arguments if function is consumer_performance else (*arguments, topic)))
    reported = {"what": what, "topic": topic, "records": options.records, **seconds}
    for name, took in seconds.items():
        if took:
            rate = options.records / took
            reported[name.replace("seconds", "records/s")] = round(rate)
            reported[name.replace("seconds", "MB/s")] = round(rate * options.size / 1e6, 1)
    print(json.dumps(reported), flush=True)


def fingerprint(
    admin: AdminClient, broker: Any, spark: SparkSession, output: pathlib.Path, topic: str
) -> Dict[str, float]:
    """Seconds of a run without baseline: by the clock, and of Spark's reading alone."""
    output.mkdir()
    job = {
        "nonce": output.name,
        "cluster_id": admin.describe_cluster().result(30).cluster_id,
        "output": str(output),
        "views": {"cluster": {"bootstrap_servers": str(broker.address)}},
        "fingerprint": {"topics": [topic]},
    }
    result = data_fingerprint.run(job, str(output.parent), spark)
    if result["verdict"] != "pass":
        raise RuntimeError(f"{topic}: {result['verdict']}: {result['reasons']}")
    return {"seconds": result["timings"]["total"], "seconds reading": result["timings"]["read"]}


def consumer_performance(broker: Any, topic: str, options: argparse.Namespace) -> Dict[str, float]:
    """Seconds by the clock, JVM and joining the group included, and of its fetching alone."""
    began = time.monotonic()
    arguments = ["--bootstrap-server", str(broker.address), "--topic", topic, "--messages", str(options.records)]
    command = [*java(), "org.apache.kafka.tools.ConsumerPerformance", *arguments, "--timeout", "60000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=True)
    seconds = time.monotonic() - began
    rows = [line.split(", ") for line in done.stdout.splitlines() if line.count(", ") > 5]
    reported = dict(zip((name.strip() for name in rows[0]), rows[1]))
    if int(reported["data.consumed.in.nMsg"]) < options.records:
        raise RuntimeError(
            f"ConsumerPerformance read {reported['data.consumed.in.nMsg']} records: {done.stderr[-500:]}"
        )
    return {"seconds": round(seconds, 3), "seconds reading": int(reported["fetch.time.ms"]) / 1000}


def fill(admin: AdminClient, broker: Any, options: argparse.Namespace) -> None:
    """Make the topics; each gets the same records, a key in ten new."""
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
            raise RuntimeError(f"{topic}: not everything could be produced")
        if topic == "compacted":
            wait_for(lambda: _cleaned(broker) == options.partitions, 120, "the compaction of every partition")


def _cleaned(broker: Any) -> int:
    """How many partitions the cleaner has been at."""
    path = broker.home / "data" / "cleaner-offset-checkpoint"
    return path.read_text().count("compacted ") if path.exists() else 0


def session(cores: int) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    directory = pathlib.Path(os.environ.get("QUORUMSHIFT_SPARK_JARS") or BUILD / "spark" / "jars")
    jars: List[str] = sorted(str(jar) for jar in directory.glob("*.jar"))
    return (
        SparkSession.builder.master(f"local[{cores}]")
        .config("spark.jars", ",".join(jars))
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", str(cores))
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


if __name__ == "__main__":
    sys.exit(main())
