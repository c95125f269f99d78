# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU seconds of the columns of a million partitions from each source, beside the generic decoders and Kafka's dump.

    PYTHONPATH=.build:.:spark .venv/bin/python tests/benchmarks/columns.py [--partitions N] [--of-topic N] [--rounds N]

Topics have --of-topic partitions of three replicas. The log is that of metadata_decode: one topic and one config record
for each ten partitions, so its numbers of records a second are of all records. Seconds are user and system time of all
threads, the least of the rounds; the JVM's start is subtracted. Reading znodes from a server is not included.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import struct
import tempfile
from typing import Callable, List, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import metadata_log
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.records import crc32c
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import apis, broker_requests
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znode_items, znodes
from quorumshift_spark.columns import log, metadata, states

from tests.benchmarks import metadata_decode as decoding
from tests.benchmarks.primitives import compact_array

PARTITION_TYPES = frozenset({"PARTITION_RECORD", "PARTITION_CHANGE_RECORD"})
OTHER_TYPES = frozenset({"TOPIC_RECORD", "CONFIG_RECORD"})
WINDOW = 500  # topics that are read from ZooKeeper at a time


class Row(NamedTuple):
    """A measured reader: its CPU seconds, and the number of records or partitions it read."""

    name: str
    seconds: float
    count: int  # type: ignore[assignment]


def measure(name: str, rounds: int, read: Callable[[], int], who: int = resource.RUSAGE_SELF) -> Row:
    """Return the least CPU seconds of some rounds."""
    times: List[decoding.Took] = []
    # Input that a job would not keep in memory must not be searched for garbage
    gc.collect()
    gc.freeze()
    for _round in range(rounds):
        with decoding.measured(times, who):
            count = read()
    return Row(name, min(took.cpu for took in times), count)


def show(title: str, rows: List[Row], size: int) -> None:
    """Print rows, each compared with the first one."""
    print(f"\n{title}, {size / 1e6:.0f} MB")
    for row in rows:
        ratio = row.seconds / rows[0].seconds
        rate = row.count / row.seconds / 1e3
        print(f"  {row.name:36} {row.seconds:7.2f} s {rate:7.0f} k/s" + ("" if row is rows[0] else f"  {ratio:5.1f} x"))


# --- the metadata log ------------------------------------------------------------------------------------


def log_rows(partitions: int, rounds: int, home: str) -> None:
    """Measure the readers of a metadata log."""
    records = partitions * (decoding.PARTITIONS + 2) // decoding.PARTITIONS
    path = decoding.write_log(home, records)

    def columns():
        with metadata_log.open_log(home) as opened:
            parts = log.parts(opened, metadata_log.scan_log(opened, counts=False))
        found = [item for part in parts for item in log.read_part(part)]
        assert sum(map(len, found)) == partitions
        return records

    def generic(types):
        return sum(1 for _record in metadata_log.read_records(home, types=types)) and records

    with tempfile.TemporaryDirectory() as small:
        log_file = decoding.write_log(small, 1)
        start = measure("", rounds, lambda: decoding.dump_log([log_file]), resource.RUSAGE_CHILDREN).seconds
    dump = measure("kafka-dump-log", rounds, lambda: decoding.dump_log([path]), resource.RUSAGE_CHILDREN)
    rows = [
        measure("columns of partitions", rounds, columns),
        measure("generic decoder, partitions", 1, lambda: generic(PARTITION_TYPES)),
        dump._replace(seconds=dump.seconds - start),
        measure("generic decoder, all records", 1, lambda: generic(None)),
        measure("generic decoder, other records only", 1, lambda: generic(OTHER_TYPES)),
    ]
    show(f"Metadata log: {records} records, {partitions} of them partitions", rows, path.stat().st_size)


# --- Metadata --------------------------------------------------------------------------------------------


def answer(topics: int, of_topic: int) -> bytes:
    """Return a broker's answer to Metadata."""

    def ids(*numbers):
        return bytes((len(numbers) + 1,)) + struct.pack(f">{len(numbers)}i", *numbers)

    def partition(topic, number):
        replicas = ids(*((topic + number + shift) % 30 for shift in range(3)))
        return struct.pack(">hiii", 0, number, (topic + number) % 30, 7) + replicas + replicas + ids() + b"\0"

    def described(topic):
        name = f"orders-{topic:06d}".encode()
        partitions = compact_array(partition(topic, number) for number in range(of_topic))
        head = b"\0\0" + bytes((len(name) + 1,)) + name + topic.to_bytes(16, "big") + b"\0"
        return head + partitions + struct.pack(">i", -(1 << 31)) + b"\0"

    return struct.pack(">i", 0) + b"\1\2c" + struct.pack(">i", 1) + compact_array(map(described, range(topics))) + b"\0"


def metadata_rows(partitions: int, of_topic: int, rounds: int) -> None:
    """Measure the readers of a Metadata answer."""
    data = answer(partitions // of_topic, of_topic)
    served = apis.Answer(apis.METADATA, apis.METADATA.newest, data)

    def columns():
        return sum(len(part.partitions) for part in metadata.read_topics(broker_requests.MetadataAnswer(served)))

    def generic():
        return sum(len(topic["partitions"]) for topic in broker_requests.read_metadata(served)[1])

    rows = [measure("columns", rounds, columns), measure("generic decoder", 1, generic)]
    show(f"Metadata of a broker: {partitions} partitions, {of_topic} a topic", rows, len(data))


# --- ZooKeeper -------------------------------------------------------------------------------------------


def tree(topics: int, of_topic: int) -> List[tuple]:
    """Return [(topics, states)] as they are read, window by window."""
    stat = znodes.Stat(1, 5, 3, 4, 7, 0, 0, 0, 0, 0, 1)
    windows: List[tuple] = []
    for topic in range(topics):
        if topic % WINDOW == 0:
            windows.append(([], []))
        name = f"orders-{topic:06d}"
        replicas = {str(number): [(topic + number + shift) % 30 for shift in range(3)] for number in range(of_topic)}
        value = {"partitions": replicas, "topic_id": "cEDIUSPPQcuoexmykHjA-A"}
        value.update({"adding_replicas": {}, "removing_replicas": {}, "version": 3})
        windows[-1][0].append(znodes.Znode(znodes.topic_path(name), compact(value), None, stat))
        for number, ids in replicas.items():
            value = {"controller_epoch": 9, "leader": ids[0], "version": 1, "leader_epoch": topic % 500, "isr": ids}
            windows[-1][1].append(znodes.Znode(znodes.partition_state_path(name, number), compact(value), None, stat))
    return windows


def compact(value: dict) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def states_rows(partitions: int, of_topic: int, rounds: int) -> None:
    """Measure the readers of znodes."""
    windows = tree(partitions // of_topic, of_topic)

    def columns():
        return sum(len(states.read_partitions(*window).partitions) for window in windows)

    def generic():
        reader, count = znode_items.Reader(), 0
        for window in windows:
            count += sum(item.kind == "partition" for nodes in window for node in nodes for item in reader.items(node))
        return count

    rows = [measure("columns", rounds, columns), measure("generic decoder", 1, generic)]
    size = sum(len(node.data) for window in windows for nodes in window for node in nodes)
    show(f"Znodes: {partitions} partitions, {of_topic} a topic", rows, size)


def main():
    """Measure and print all sources."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--partitions", type=int, default=1_000_000)
    parser.add_argument("--of-topic", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    partitions = given.partitions // 100 * 100
    print(f"CPU seconds; CRC-32C {'native' if crc32c._native else 'in pure Python'}")
    with tempfile.TemporaryDirectory() as home:
        log_rows(partitions, given.rounds, home)
    metadata_rows(partitions, given.of_topic, given.rounds)
    states_rows(partitions, given.of_topic, given.rounds)


if __name__ == "__main__":
    main()
