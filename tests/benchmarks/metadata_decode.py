# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records a second of our reader of the metadata log and of Kafka's own dump tool, on one log, in turns.

    PYTHONPATH=.build:. .venv/bin/python tests/benchmarks/metadata_decode.py [--records N] [--rounds N] [--log DIR]

Without --log, on a log of what the copy of a migration writes: topics of ten partitions with three replicas and one
config each, in batches of 200 records. Kafka's tool is a JVM of its own: its time for a log of one record is told and
taken off. It also prints every record as JSON, which is its only way to give them; so does the second of our rows. On a
busy machine only the CPU seconds (user and system, all threads) say something.
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

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import crc32c, metadata_log

from tests.integration import servers
from tests.unit.formats import metadata_batches as made

PARTITIONS, BATCH = 10, 200


def partition(number, topic):
    """The value of a PARTITION_RECORD version 0."""
    ids = b"\x04" + struct.pack(">3i", *((topic + number + shift) % 30 for shift in range(3)))
    tail = b"\x01\x01" + struct.pack(">iii", (topic + number) % 30, 7, 11) + b"\0"
    return b"\x01\x03\x00" + struct.pack(">i", number) + topic.to_bytes(16, "big") + ids + ids + tail


def topic_record(topic):
    """The value of a TOPIC_RECORD."""
    name = f"orders-{topic:06d}".encode()
    return b"\x01\x02\x00" + bytes([len(name) + 1]) + name + topic.to_bytes(16, "big") + b"\0"


def config(topic):
    """The value of a CONFIG_RECORD."""
    texts = (f"orders-{topic:06d}".encode(), b"retention.ms", b"604800000")
    return b"\x01\x04\x00\x02" + b"".join(bytes([len(text) + 1]) + text for text in texts) + b"\0"


def values(count):
    """`count` record values, topic by topic."""
    messages = 0
    for topic in range(1, count + 1):
        for value in (topic_record(topic), config(topic), *(partition(each, topic) for each in range(PARTITIONS))):
            yield value
            messages += 1
            if messages == count:
                return


def write_log(directory, count):
    """A metadata log of one segment; its path."""
    path = Path(directory, f"{0:020d}.log")
    pending, base = [], 0
    with open(path, "wb") as log:
        for value in values(count):
            pending.append(value)
            if len(pending) == BATCH:
                log.write(made.batch(base, pending))
                base, pending = base + len(pending), []
        if pending:
            log.write(made.batch(base, pending))
    return path


class Took(NamedTuple):
    """Seconds of the clock and of the processor."""

    wall: float
    cpu: float


@contextlib.contextmanager
def measured(times, who):
    """Adds what the block took to `times`; `who`: RUSAGE_SELF or RUSAGE_CHILDREN."""
    wall, used = time.perf_counter(), resource.getrusage(who)
    yield
    now = resource.getrusage(who)
    cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    times.append(Took(time.perf_counter() - wall, cpu))


def ours(paths, as_json=False):
    """How many records there are, read with checksums."""
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


def kafkas(paths):
    """How many records a dump printed."""
    command = [*servers.java(), "kafka.tools.DumpLogSegments", "--cluster-metadata-decoder", "--files"]
    count = 0
    command.append(",".join(map(str, paths)))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as dump:
        for line in dump.stdout:
            count += " payload: {" in line
    if dump.returncode:
        raise SystemExit(f"DumpLogSegments ended with {dump.returncode}")
    return count


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--log", help="a metadata log directory, instead of a made one")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        if given.log:
            files = metadata_log.list_files(given.log)
            paths = [file.path for file in (*files.checkpoints, *files.segments)]
        else:
            paths = [write_log(home, given.records)]
        os.mkdir(os.path.join(home, "one"))
        start, decoded, printed, dumped = [], [], [], []
        one = write_log(os.path.join(home, "one"), 1)
        for dummy in range(given.rounds):
            with measured(start, resource.RUSAGE_CHILDREN):
                kafkas([one])
            with measured(decoded, resource.RUSAGE_SELF):
                count = ours(paths)
            with measured(printed, resource.RUSAGE_SELF):
                ours(paths, as_json=True)
            with measured(dumped, resource.RUSAGE_CHILDREN):
                reported = kafkas(paths)
        size = sum(os.path.getsize(path) for path in paths)
    if reported > count or not reported:
        raise SystemExit(f"{count} records read here, {reported} payloads printed by Kafka: not the same log")
    crc = "native" if crc32c._native else "pure Python"
    print(f"{count} records, {size / 1e6:.1f} MB; Python {sys.version.split()[0]}, CRC-32C {crc}")
    begun = median(start)
    took_off = f"{begun.wall:.2f} s, {begun.cpu:.2f} s of CPU"
    print(f"median of {given.rounds} rounds, in turns; a JVM's start is taken off: {took_off}")
    dumped = [Took(took.wall - begun.wall, took.cpu - begun.cpu) for took in dumped]
    theirs = median(dumped)
    if theirs.wall <= 1e-9:
        raise SystemExit("a JVM's start took longer than all of Kafka's work: measure on a quiet machine")
    for name, times in (("ours, decoded", decoded), ("ours, as JSON", printed), ("DumpLogSegments", dumped)):
        took = median(times)
        rates = f"{count / took.wall / 1e3:6.0f} k records/s, {count / took.cpu / 1e3:6.0f} k a CPU second"
        print(f"{name:16} {rates}; {theirs.wall / took.wall:.2f} and {theirs.cpu / took.cpu:.2f} times Kafka's")


def median(times):
    """Of each kind of second by itself."""
    return Took(*(max(statistics.median(column), 1e-9) for column in zip(*times)))


if __name__ == "__main__":
    main()
