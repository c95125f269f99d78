# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads chunks from their leaders with Fetch, on Spark's executors: one connection a task, many partitions a request.

A broker has at most as many connections at once as there are cores of executors; its quotas apply to the principal.

Fetch v13 (KIP-516) names topics by id, so that a topic recreated under the same name is not read by mistake. Every
broker from 3.1 on offers it.
"""

from __future__ import annotations

import importlib.util
import itertools
import socket
import threading
import time
from typing import Callable, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

import pyarrow as pa
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import apis
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests.apis import Answer, Request
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.kafka_wire import ERROR_NAMES, KafkaConnection
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import ProtocolError, WireError
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from quorumshift_spark.fingerprint.batches import CorruptBatch, Reader
from quorumshift_spark.fingerprint.data import SCHEMA, Data, rows
from quorumshift_spark.fingerprint.plan import PartitionState, Range, TopicPartition, chunks_in, split

_PARTITIONS_AT_ONCE = 64
_ANSWER_BYTES, _PARTITION_BYTES, _WAIT_MS = 16 << 20, 4 << 20, 500
# One batch can be larger than the answer that was asked for
_LARGEST_ANSWER = 1 << 30
_PAUSE_S = 1.0
# What a killed job loses is what its tasks had read
_OFFSETS_OF_TASK = 4_000_000
_ERRORS = {
    **ERROR_NAMES,
    1: "OFFSET_OUT_OF_RANGE",
    2: "CORRUPT_MESSAGE",
    56: "KAFKA_STORAGE_ERROR",
    74: "FENCED_LEADER_EPOCH",
    75: "UNKNOWN_LEADER_EPOCH",
    100: "UNKNOWN_TOPIC_ID",
}

Partition = Tuple[str, int]
"""A topic id and a partition."""


class Leader(NamedTuple):
    """A partition's leader: its address, and the epoch, which a broker rejects that is not the leader of this epoch."""

    address: HostPort
    epoch: int


class Job(NamedTuple):
    """A range to read; the epoch of its partition's leader, and the log start when it was planned."""

    part: Range
    epoch: int
    log_start: int


class Task(NamedTuple):
    """Ranges that one connection reads from one broker."""

    address: HostPort
    jobs: List[Job]


class Stopped(Exception):
    """Reading was stopped before its end."""


def read(
    spark: SparkSession,
    data: Data,
    wanted: Sequence[Range],
    states: Mapping[TopicPartition, PartitionState],
    leaders: Callable[[], Mapping[TopicPartition, Leader]],
    log_starts: Callable[[Sequence[TopicPartition]], Mapping[TopicPartition, int]],
    security: Security,
    patience_s: float,
    stop: threading.Event,
) -> Dict[TopicPartition, str]:
    """Read the chunks that `data` lacks; return why partitions could not be read to their end. Raises Stopped.

    A Spark job reads all that is left, each task into a file. Partitions whose leader moved are left to the next one.

    :arg leaders: reads the leaders; those that move are asked for again.
    :arg log_starts: reads the log starts; retention may remove chunks before they are read: these are left out.
    :arg patience_s: how long the reading may stand still before it ends without the rest.
    :arg stop: ends the reading when set; the caller cancels Spark's jobs then.
    """
    left, progress = data.left(wanted), time.monotonic()
    # Parts of the same size for all cores, and some more: some brokers answer faster than others
    total = sum(part.end - part.begin for part in left)
    share = max(1, min(total // (spark.sparkContext.defaultParallelism * 3), _OFFSETS_OF_TASK))
    while left:
        found = leaders()
        without = {part.tp: "it has no leader" for part in left if part.tp not in found}
        whys = spark.sparkContext.accumulator(without, _Last())
        jobs = [
            (found[part.tp].address, Job(part, found[part.tp].epoch, states[part.tp].log_start))
            for whole in left
            if whole.tp in found
            for part in split(whole, share)
        ]
        if stop.is_set():
            raise Stopped
        if jobs:
            tasks = _tasks(jobs, share)
            work = _Work(tasks, security, patience_s, whys)
            data.append(spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(work.read, from_arrow_schema(SCHEMA)))
        before, left = chunks_in(left), data.left(left)
        if chunks_in(left) < before:
            progress = time.monotonic()
        if left and time.monotonic() - progress >= patience_s:
            return {part.tp: whys.value.get(part.tp, "its task did not end") for part in left}
        if left:
            time.sleep(_PAUSE_S)
            starts = log_starts(sorted({part.tp for part in left}))
            left = [rest for rest in (_from(part, starts.get(part.tp, 0)) for part in left) if rest]
    return {}


class _Last(AccumulatorParam):
    """Brings texts of tasks to the driver: the last one of each partition."""

    def zero(self, value: Dict[TopicPartition, str]) -> Dict[TopicPartition, str]:
        return {}

    def addInPlace(self, value1: Dict[TopicPartition, str], value2: Dict[TopicPartition, str]):
        value1.update(value2)
        return value1


def _from(part: Range, log_start: int) -> Range | None:
    """Return a range without the chunks that begin before the log start; None if it has no other."""
    bounds = tuple(bound for bound in part.bounds if bound >= log_start)
    # The batch that the new first bound cuts belongs to a chunk that was left out
    return part._replace(bounds=bounds, cut=part.cut and bounds[0] == part.begin) if len(bounds) > 1 else None


def _tasks(jobs: Sequence[Tuple[HostPort, Job]], share: int) -> List[Task]:
    """Return tasks of about `share` offsets; those of one broker are not next to each other.

    Each has only keyed ranges, or none: of keyed ones only committed records are requested.
    """
    tasks: List[Task] = []
    size, kind = share, None
    for address, job in sorted(jobs, key=lambda pair: (pair[0], pair[1].part.keyed)):
        if size >= share or kind != (address, job.part.keyed):
            tasks.append(Task(address, []))
            size, kind = 0, (address, job.part.keyed)
        tasks[-1].jobs.append(job)
        size += job.part.end - job.part.begin
    of_broker = [[*group] for _address, group in itertools.groupby(tasks, lambda task: task.address)]
    return [task for turn in itertools.zip_longest(*of_broker) for task in turn if task]


class _Work:
    """Reads tasks on an executor. The credentials travel in Spark's serialized function."""

    def __init__(self, tasks: Sequence[Task], security: Security, timeout: float, whys: Accumulator) -> None:
        self._tasks, self._security, self._timeout, self._whys = tasks, security, timeout, whys

    def read(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in itertools.chain.from_iterable(batch.column("id").to_pylist() for batch in numbers):
            yield from self._read(self._tasks[number])

    def _read(self, task: Task) -> Iterator[pa.RecordBatch]:
        waiting = [(Reader(job.part), job) for job in task.jobs]
        progress = time.monotonic()
        try:
            if importlib.util.find_spec("crc32c") is None:
                where = socket.gethostname()
                raise ProtocolError(
                    None, f"{where}: the Python package crc32c is missing: pip install crc32c (QS-VERIFY-002)"
                )
            with KafkaConnection(task.address, self._security, self._timeout) as connection:
                while waiting:
                    # of two parts of a partition only the first
                    first = {reader.partition: (reader, job) for reader, job in reversed(waiting[:_PARTITIONS_AT_ONCE])}
                    before = sum(reader.next for reader, _job in first.values())
                    errors = self._fetch(connection, first)
                    if sum(reader.next for reader, _job in first.values()) > before:
                        progress = time.monotonic()
                    elif time.monotonic() - progress > self._timeout:
                        raise ProtocolError(task.address, f"no records for {self._timeout:g} s (QS-VERIFY-003)")
                    for reader, job in first.values():
                        for chunk, newest in reader.take():
                            yield from rows(job.part, job.epoch, job.log_start, chunk, newest)
                        if reader.partition in errors:
                            self._whys.add({job.part.tp: errors[reader.partition]})
                    waiting = [pair for pair in waiting if not pair[0].done and pair[0].partition not in errors]
        except WireError as error:
            for _reader, job in waiting:
                self._whys.add({job.part.tp: str(error)})

    def _fetch(
        self, connection: KafkaConnection, asked: Mapping[Partition, Tuple[Reader, Job]]
    ) -> Dict[Partition, str]:
        """Add an answer's batches to the readers. Return why readers cannot go on. Raises WireError."""
        answer = connection.request(_request(asked), self._timeout, _LARGEST_ANSWER)
        errors: Dict[Partition, str] = {}
        try:
            for partition, code, end, aborted, data in _answers(answer):
                reader = asked[partition][0]
                if code:
                    errors[partition] = f"{connection.address} answered {_ERRORS.get(code, f'error {code}')}"
                    continue
                try:
                    reader.add(data, aborted)
                except CorruptBatch as error:
                    errors[partition] = f"{connection.address}: {error}"
                    continue
                if not reader.done and end <= reader.next:
                    errors[partition] = f"{connection.address} has it up to offset {end} only"
        except (ValueError, KeyError) as error:
            raise ProtocolError(
                connection.address, f"the answer to Fetch cannot be read: {error!r} (QS-CONNECT-004)"
            ) from error
        return errors


def _request(asked: Mapping[Partition, Tuple[Reader, Job]]) -> Request:
    committed = next(iter(asked.values()))[0].wanted.keyed
    topics: Dict[str, List[dict]] = {}
    for (topic_id, partition), (reader, job) in asked.items():
        place = {"partition": partition, "currentLeaderEpoch": job.epoch, "fetchOffset": reader.next}
        topics.setdefault(topic_id, []).append({**place, "partitionMaxBytes": _PARTITION_BYTES})
    return apis.FETCH.request(
        maxWaitMs=_WAIT_MS,
        minBytes=1,
        maxBytes=_ANSWER_BYTES,
        isolationLevel=int(committed),
        topics=[{"topicId": topic_id, "partitions": places} for topic_id, places in topics.items()],
    )


def _answers(answer: Answer) -> Iterator[Tuple[Partition, int, int, List[Tuple[int, int]], memoryview]]:
    """Yield ((topic id, partition), error code, end, aborted transactions, stored batches) of an answer's partitions.

    The end is the high watermark, or the last stable offset where committed records were requested. An aborted
    transaction is (producer id, first offset).
    """
    data = memoryview(answer.data)
    fields = answer._replace(data=data).fields()
    if fields["errorCode"]:
        raise ValueError(_ERRORS.get(fields["errorCode"], f"error {fields['errorCode']}"))
    for topic in fields["responses"]:
        for partition in topic["partitions"]:
            aborted = partition["abortedTransactions"]
            end = partition["highWatermark"] if aborted is None else partition["lastStableOffset"]
            listed = [(each["producerId"], each["firstOffset"]) for each in aborted or ()]
            batches = data[:0] if partition["records"] is None else partition["records"]
            yield (topic["topicId"], partition["partitionIndex"]), partition["errorCode"], end, listed, batches
