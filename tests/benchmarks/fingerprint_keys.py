# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure how time and memory of comparing the keys of compacted topics grow with their number.

Usage: ``PYTHONPATH=.build:.:spark .venv/bin/python tests/benchmarks/fingerprint_keys.py [--keys N ...]``

Spark generates the rows that reading such a topic would have written, those of a baseline and those of now, in which
each hundredth key has a newer record. data_fingerprint's own code compares them, in a process of its own for each
number, on two executors with a core each (`local-cluster`). Prints a line of JSON per number: seconds, CPU seconds, and
the peak of resident memory in MiB of the driver's JVM and Python, and of an executor's JVM and a Python worker.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any, Dict, List

CHUNK = 50_000
KINDS = {"driver JVM": "SparkSubmit", "executor JVM": "CoarseGrainedExecutorBackend", "worker": "pyspark"}


def main() -> int:
    parser = argparse.ArgumentParser(description="Time and memory of comparing keys of compacted topics.")
    parser.add_argument("--keys", type=int, nargs="+", default=[1_000_000, 3_000_000, 10_000_000])
    parser.add_argument("--executor-mib", type=int, default=1024)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(options.one, options.executor_mib)), flush=True)
        return 0
    for number in options.keys:
        command = [sys.executable, __file__, "--one", str(number), "--executor-mib", str(options.executor_mib)]
        subprocess.run(command, check=True, timeout=3600)
    return 0


def measured(number: int, executor_mib: int) -> Dict[str, Any]:
    """Return the figures of one comparison of so many keys."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as directory:
        spark = session(executor_mib, directory)
        try:
            there, places, both = generated(spark, pathlib.Path(directory) / "store", number)
            before, started, stop = cpu(), time.monotonic(), threading.Event()
            peaks: Dict[str, float] = {}
            sampler = threading.Thread(target=watch, args=(peaks, stop))
            sampler.start()
            contents = there.contents(places, both)
            reading = time.monotonic()
            rows = sum(content.keys + content.old_keys for content in contents.values())
            tallies = there.tallies(places, both, rows)
            seconds = time.monotonic() - started
            stop.set()
            sampler.join()
            (of_topic,) = tallies.values()
            found = {name: tally.number for name, tally in of_topic.items()}
            assert found == {"equal": number - number // 100, "superseded": number // 100}, found
            figures = {"keys": number, "seconds": round(seconds, 1), "seconds of chunks": round(reading - started, 1)}
            return {**figures, "CPU seconds": round(cpu() - before, 1), "peak MiB": peaks}
        finally:
            spark.stop()


def session(executor_mib: int, directory: str) -> Any:
    """Return a session whose executors are processes of their own."""
    from pyspark.sql import SparkSession

    os.environ.update(PYSPARK_PYTHON=sys.executable, PYTHONPATH=os.pathsep.join(sys.path))
    settings = {
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.executor.memory": f"{executor_mib}m",
        "spark.local.dir": directory,
        "spark.sql.shuffle.partitions": "4",
    }
    builder = SparkSession.builder.master(f"local-cluster[2,1,{executor_mib}]").appName("fingerprint_keys")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def generated(spark: Any, store: pathlib.Path, number: int) -> Any:
    """Write the rows of both sides; return the data of the comparison, the chunks of now, and the partition."""
    from pyspark.sql import functions as F
    from quorumshift_spark.fingerprint import compare
    from quorumshift_spark.fingerprint.coordinators import Coordinators
    from quorumshift_spark.fingerprint.data import Data
    from quorumshift_spark.fingerprint.plan import PartitionState, Place

    tp = ("compacted", 0)
    was = PartitionState(*tp, "id", 1, 0, number, True, False, -1, -1, 86_400_000)
    now = was._replace(end=number + number // 100)

    def written(data: Data, side: int, many: int, offset: Any) -> List[Place]:
        ids = spark.range(0, many, 1, max(2, many // 4_000_000))
        key = F.xxhash64("id").alias("key_hash")
        content = F.xxhash64("id", offset).alias("content")
        of_keys = ids.select(
            (F.floor(F.col("id") / CHUNK) * 2 + side).cast("bigint").alias("number"),
            key,
            offset.alias("offset"),
            content,
        )
        of_keys = of_keys.select("*", F.lit(False).alias("tombstone"), F.lit(1_790_000_000_000).alias("timestamp"))
        numbers = spark.range(-(-many // CHUNK))
        size = F.least(F.lit(CHUNK), F.lit(many) - F.col("id") * CHUNK)
        facts = dict.fromkeys(("records", "covered", "keys"), size) | {"batches": F.lit(1), "bytes": size * 100}
        of_chunks = numbers.select(
            (F.col("id") * 2 + side).alias("number"),
            *(F.lit(value).alias(name) for name, value in (("topic_id", "id"), ("hash", ""))),
            F.lit(0).alias("partition"),
            *(F.lit(value).alias(name) for name, value in (("cut", False), ("keyed", True))),
            (F.col("id") * CHUNK).alias("begin"),
            ((F.col("id") + 1) * CHUNK).alias("end"),
            *(value.cast("bigint").alias(name) for name, value in facts.items()),
            F.array(F.array(F.lit(1), F.lit(1))).cast("array<array<bigint>>").alias("times"),
        )
        schema = data._read(data.directory).schema
        for rows in (of_keys, of_chunks):
            missing = (
                F.lit(None).cast(field.dataType).alias(field.name) for field in schema if field.name not in rows.columns
            )
            data.append(rows.select("*", *missing).select(*schema.names))
        return [Place(at * CHUNK, (at + 1) * CHUNK, True, at * 2 + side) for at in range(-(-many // CHUNK))]

    older = Data(spark, str(store), {"side": "baseline"}, None)
    then = written(older, 0, number, F.col("id"))
    nothing = Coordinators({}, {}, {})
    baseline = compare.Fingerprint("c", 0, {}, {tp: was}, {tp: then}, older.decide(True), nothing)
    newer = Data(spark, str(store), {"side": "now"}, baseline)
    # a hundredth of the keys has another record above the baseline's end
    here = written(newer, 1, number, F.when(F.col("id") % 100 == 0, F.col("id") + number).otherwise(F.col("id")))
    current = compare.Fingerprint("c", 1, {}, {tp: now}, {tp: here}, compare.Data(newer.directory, {}), nothing)
    return newer, {tp: here}, compare.both(baseline, current, compare.Context(), {})


def watch(peaks: Dict[str, float], stop: threading.Event) -> None:
    """Keep the highest resident memory (MiB) of each kind of process until stopped: of the largest of its kind."""
    while not stop.wait(0.2):
        for pid, command in descendants(os.getpid()).items():
            kind = next((kind for kind, word in KINDS.items() if word in command), None)
            kind = "driver Python" if pid == os.getpid() else kind
            with contextlib.suppress(OSError, IndexError):
                pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
                if kind:
                    peaks[kind] = max(peaks.get(kind, 0), round(pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)))


def descendants(pid: int) -> Dict[int, str]:
    """Return the command lines of a process and of its living descendants."""
    children: Dict[int, List[int]] = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            children.setdefault(int(path.read_text().rpartition(")")[2].split()[1]), []).append(int(path.parent.name))
    found, left = {}, [pid]
    while left:
        process = left.pop()
        with contextlib.suppress(OSError):
            found[process] = pathlib.Path(f"/proc/{process}/cmdline").read_bytes().decode("utf-8", "replace")
        left += children.get(process, ())
    return found


def cpu() -> float:
    """Return the CPU seconds of this process and its living descendants, waited-for children included."""
    total = 0
    for pid in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            total += sum(map(int, pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
    return total / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
