# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the records per second of our metadata log reader and of Kafka's dump tool, on one log, alternating.

    PYTHONPATH=.build:. .venv/bin/python tests/benchmarks/metadata_decode.py [--records N] [--rounds N] [--log DIR]

Without --log the log is like an initial copy: topics of ten partitions with three replicas and one config each, in
batches of 200 records. The JVM's start, measured on a log of one record, is printed and subtracted. Kafka's tool prints
every record as JSON; so does the second row of our reader. On a busy machine only the CPU seconds (user and system, all
threads) are meaningful.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import metadata_log
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.records import crc32c

from tests.integration import servers
from tests.unit.formats import metadata_batches

PARTITIONS, BATCH = 10, 200


def partition(number, topic):
    """Return the value of a PARTITION_RECORD version 0."""
    ids = b"\x04" + struct.pack(">3i", *((topic + number + shift) % 30 for shift in range(3)))
    tail = b"\x01\x01" + struct.pack(">iii", (topic + number) % 30, 7, 11) + b"\0"
    return b"\x01\x03\x00" + struct.pack(">i", number) + topic.to_bytes(16, "big") + ids + ids + tail


def topic_record(topic):
    """Return the value of a TOPIC_RECORD."""
    name = f"orders-{topic:06d}".encode()
    return b"\x01\x02\x00" + bytes([len(name) + 1]) + name + topic.to_bytes(16, "big") + b"\0"


def config(topic):
    """Return the value of a CONFIG_RECORD."""
    texts = (f"orders-{topic:06d}".encode(), b"retention.ms", b"604800000")
    return b"\x01\x04\x00\x02" + b"".join(bytes([len(text) + 1]) + text for text in texts) + b"\0"


def values(count):
    """Yield `count` record values, topic by topic."""
    yielded = 0
    for topic in range(1, count + 1):
        for value in (topic_record(topic), config(topic), *(partition(number, topic) for number in range(PARTITIONS))):
            yield value
            yielded += 1
            if yielded == count:
                return


def write_log(directory, count):
    """Write a metadata log of one segment; return its path."""
    path = Path(directory, f"{0:020d}.log")
    pending, base = [], 0
    with open(path, "wb") as log:
        for value in values(count):
            pending.append(value)
            if len(pending) == BATCH:
                log.write(metadata_batches.batch(base, pending))
                base, pending = base + len(pending), []
        if pending:
            log.write(metadata_batches.batch(base, pending))
    return path


class Took(NamedTuple):
    """Seconds by the clock and of CPU."""

    wall: float
    cpu: float


@contextlib.contextmanager
def measured(times, who):
    """Append the block's seconds to `times`; `who`: RUSAGE_SELF or RUSAGE_CHILDREN."""
    wall, used = time.perf_counter(), resource.getrusage(who)
    yield
    now = resource.getrusage(who)
    cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    times.append(Took(time.perf_counter() - wall, cpu))


def read_log(paths, as_json=False):
    """Read all records with our reader, checksums included; return their number."""
    count = 0
    with contextlib.ExitStack() as stack:
        out = stack.enter_context(open(os.devnull, "w"))
        for path in paths:
            for record in metadata_log.read_file(str(path)):
                count += 1
                if as_json:
                    fields = {name: _shown(value) for name, value in record.fields.items()}
                    out.write(json.dumps({"type": record.type, "version": record.version, "data": fields}) + "\n")
    return count


def _shown(value):
    return value.hex() if isinstance(value, bytes) else value


def dump_log(paths):
    """Dump the log with Kafka's tool; return the number of printed records."""
    command = [*servers.java(), "kafka.tools.DumpLogSegments", "--cluster-metadata-decoder", "--files"]
    count = 0
    command.append(",".join(map(str, paths)))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as dump:
        for line in dump.stdout:
            count += " payload: {" in line
    if dump.returncode:
        raise SystemExit(f"DumpLogSegments failed with {dump.returncode}")
    return count


def main():
    """Measure, and print the rates."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--log", help="a metadata log directory instead of a generated log")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        if given.log:
            files = metadata_log.list_files(given.log)
            paths = [file.path for file in (*files.checkpoints, *files.segments)]
        else:
            paths = [write_log(home, given.records)]
        os.mkdir(os.path.join(home, "small"))
        start, decoded, printed, dumped = [], [], [], []
        small = write_log(os.path.join(home, "small"), 1)
        for dummy in range(given.rounds):
            with measured(start, resource.RUSAGE_CHILDREN):
                dump_log([small])
            with measured(decoded, resource.RUSAGE_SELF):
                count = read_log(paths)
            with measured(printed, resource.RUSAGE_SELF):
                read_log(paths, as_json=True)
            with measured(dumped, resource.RUSAGE_CHILDREN):
                dumped_count = dump_log(paths)
        size = sum(os.path.getsize(path) for path in paths)
    if dumped_count > count or not dumped_count:
        raise SystemExit(f"our reader found {count} records, Kafka printed {dumped_count}: the logs differ")
    crc = "native" if crc32c._native else "pure Python"
    print(f"{count} records, {size / 1e6:.1f} MB; Python {sys.version.split()[0]}, CRC-32C {crc}")
    jvm = median(start)
    print(f"median of {given.rounds} rounds; the JVM's start is subtracted: {jvm.wall:.2f} s, {jvm.cpu:.2f} s of CPU")
    dumped = [Took(took.wall - jvm.wall, took.cpu - jvm.cpu) for took in dumped]
    theirs = median(dumped)
    if theirs.wall <= 1e-9:
        raise SystemExit("the JVM's start took longer than the dump: measure on an idle machine")
    for name, times in (("ours, decoded", decoded), ("ours, as JSON", printed), ("DumpLogSegments", dumped)):
        took = median(times)
        rates = f"{count / took.wall / 1e3:6.0f} k records/s, {count / took.cpu / 1e3:6.0f} k a CPU second"
        print(f"{name:16} {rates}; {theirs.wall / took.wall:.2f} and {theirs.cpu / took.cpu:.2f} times Kafka's")


def median(times):
    """Return the median of each kind of seconds."""
    return Took(*(max(statistics.median(column), 1e-9) for column in zip(*times)))


if __name__ == "__main__":
    main()
