# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads chunks from their leaders with Fetch, on Spark's executors: one connection a task, many partitions a request.

Fetch v13 (KIP-516) names topics by id, so that a topic recreated under the same name is not read by mistake. Every
broker from 3.1 on offers it.
"""

from __future__ import annotations

import importlib.util
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.messages import messages
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.kafka_wire import ERROR_NAMES, KafkaConnection
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import ProtocolError, WireError
from pyspark import SparkContext

from quorumshift_spark.fingerprint.batches import CorruptBatch, Reader
from quorumshift_spark.fingerprint.plan import Chunk, Range, TopicPartition, split

_FETCH, _VERSION = 1, 13
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


class Task(NamedTuple):
    """Ranges that one connection reads from one broker, and the leader epochs of their partitions."""

    address: HostPort
    ranges: List[Range]
    epochs: List[int]


class Outcome(NamedTuple):
    """What a task read of one range: its complete chunks and their keys, if keyed; the rest, and why it ended before
    the rest (or None)."""

    part: Range
    epoch: int
    chunks: List[Chunk]
    keys: List[bytes]
    rest: Range | None
    why: str | None


class Stopped(Exception):
    """Reading was stopped before its end."""


def read(
    spark: SparkContext,
    wanted: Iterable[Range],
    leaders: Callable[[], Mapping[TopicPartition, Leader]],
    log_starts: Callable[[Sequence[TopicPartition]], Mapping[TopicPartition, int]],
    security: Security,
    patience_s: float,
    finished: Callable[[Range, int, Sequence[Chunk], Sequence[bytes]], None],
    stop: threading.Event,
) -> Dict[TopicPartition, str]:
    """Read the chunks of the ranges; return why partitions could not be read to their end. Raises Stopped.

    :arg leaders: reads the leaders; those that move are asked for again.
    :arg log_starts: reads the log starts; retention may remove chunks before they are read: these are left out.
    :arg patience_s: how long the reading may stand still before it ends without the rest.
    :arg finished: is called with (range, leader epoch, chunks, keys) when a task ends, in the caller's thread.
    :arg stop: ends the reading when set; the caller cancels Spark's jobs then.
    """
    left = list(wanted)
    total = sum(part.end - part.begin for part in left)
    # Parts of the same size for all cores, and some more: some brokers answer faster than others
    share = max(1, min(total // (spark.defaultParallelism * 3), _OFFSETS_OF_TASK))
    left = [part for whole in left for part in split(whole, share)]
    work, progress, failed = _Work(security, patience_s), time.monotonic(), threading.Event()

    def run(task: Task) -> List[Outcome]:
        if stop.is_set() or failed.is_set():
            raise Stopped()
        return spark.parallelize([task], 1).flatMap(work).collect()

    while left:
        found = leaders()
        tasks = _tasks([part for part in left if (part.topic, part.partition) in found], found, share)
        reasons = {(part.topic, part.partition): "it has no leader" for part in left}
        rest = [part for part in left if (part.topic, part.partition) not in found]
        # A Spark job a task, so that what is read is kept as soon as it is read
        with ThreadPoolExecutor(spark.defaultParallelism + 1) as pool:
            try:
                for future in as_completed([pool.submit(run, task) for task in tasks]):
                    for outcome in future.result():
                        if outcome.chunks:
                            finished(outcome.part, outcome.epoch, outcome.chunks, outcome.keys)
                            progress = time.monotonic()
                        if outcome.rest:
                            rest.append(outcome.rest)
                            reasons[outcome.rest.topic, outcome.rest.partition] = str(outcome.why)
            except BaseException:
                failed.set()
                spark.cancelAllJobs()
                pool.shutdown(cancel_futures=True)
                raise
        if rest and time.monotonic() - progress >= patience_s:
            return {(part.topic, part.partition): reasons[part.topic, part.partition] for part in rest}
        if rest:
            time.sleep(_PAUSE_S)
            starts = log_starts(sorted({(part.topic, part.partition) for part in rest}))
            rest = [_from(part, starts.get((part.topic, part.partition), 0)) for part in rest]
        left = [part for part in rest if part]
    return {}


def _from(part: Range, log_start: int) -> Range | None:
    """Return a range without the chunks that begin before the log start; None if it has no other."""
    bounds = tuple(bound for bound in part.bounds if bound >= log_start)
    # The batch that the new first bound cuts belongs to a chunk that was left out
    return part._replace(bounds=bounds, cut=part.cut and bounds[0] == part.begin) if len(bounds) > 1 else None


def _tasks(wanted: Sequence[Range], leaders: Mapping[TopicPartition, Leader], share: int) -> List[Task]:
    """Return tasks of about `share` offsets. Each has only keyed ranges, or none."""
    tasks: List[Task] = []
    size = share
    for part, leader in sorted(
        ((part, leaders[part.topic, part.partition]) for part in wanted),
        key=lambda pair: (pair[1].address, pair[0].keyed),
    ):
        if size >= share or tasks[-1].address != leader.address or tasks[-1].ranges[0].keyed != part.keyed:
            tasks.append(Task(leader.address, [], []))
            size = 0
        tasks[-1].ranges.append(part)
        tasks[-1].epochs.append(leader.epoch)
        size += part.end - part.begin
    return tasks


class _Work:
    """Reads a task on an executor. The credentials travel in Spark's serialized task."""

    def __init__(self, security: Security, timeout: float) -> None:
        self._security, self._timeout = security, timeout

    def __call__(self, task: Task) -> Iterator[Outcome]:
        waiting = [(Reader(wanted), epoch) for wanted, epoch in zip(task.ranges, task.epochs)]
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
                    first = {
                        reader.partition: (reader, epoch) for reader, epoch in reversed(waiting[:_PARTITIONS_AT_ONCE])
                    }
                    before = sum(reader.next for reader, _epoch in first.values())
                    errors = self._fetch(connection, first)
                    if sum(reader.next for reader, _epoch in first.values()) > before:
                        progress = time.monotonic()
                    elif time.monotonic() - progress > self._timeout:
                        raise ProtocolError(task.address, f"no records for {self._timeout:g} s (QS-VERIFY-003)")
                    for reader, why in [(reader, errors.get(reader.partition)) for reader, _epoch in first.values()]:
                        if reader.done or why:
                            yield _outcome(reader, first[reader.partition][1], why)
                    waiting = [pair for pair in waiting if not pair[0].done and pair[0].partition not in errors]
        except WireError as error:
            for reader, epoch in waiting:
                yield _outcome(reader, epoch, str(error))

    def _fetch(
        self, connection: KafkaConnection, asked: Mapping[Partition, Tuple[Reader, int]]
    ) -> Dict[Partition, str]:
        """Add an answer's batches to the readers. Return why readers cannot go on. Raises WireError."""
        answer = connection.request(_FETCH, _VERSION, _request(asked), "Fetch", self._timeout, _LARGEST_ANSWER)
        errors: Dict[Partition, str] = {}
        try:
            for partition, code, end, aborted, data in _answers(memoryview(answer)):
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


def _outcome(reader: Reader, epoch: int, why: str | None) -> Outcome:
    rest = None if reader.done else reader.rest
    return Outcome(reader.wanted, epoch, reader.chunks, reader.keys, rest, why)


def _request(asked: Mapping[Partition, Tuple[Reader, int]]) -> bytes:
    committed = next(iter(asked.values()))[0].wanted.keyed
    topics: Dict[str, List[dict]] = {}
    for (topic_id, partition), (reader, epoch) in asked.items():
        place = {"partition": partition, "currentLeaderEpoch": epoch, "fetchOffset": reader.next}
        topics.setdefault(topic_id, []).append({**place, "partitionMaxBytes": _PARTITION_BYTES})
    return messages.encode(
        "FetchRequest",
        _VERSION,
        {
            "maxWaitMs": _WAIT_MS,
            "minBytes": 1,
            "maxBytes": _ANSWER_BYTES,
            "isolationLevel": int(committed),
            "topics": [{"topicId": topic_id, "partitions": places} for topic_id, places in topics.items()],
        },
    )


def _answers(answer: memoryview) -> Iterator[Tuple[Partition, int, int, List[Tuple[int, int]], memoryview]]:
    """Yield ((topic id, partition), error code, end, aborted transactions, stored batches) of an answer's partitions.

    The end is the high watermark, or the last stable offset where committed records were requested. An aborted
    transaction is (producer id, first offset).
    """
    fields = messages.decode("FetchResponse", _VERSION, answer)
    if fields["errorCode"]:
        raise ValueError(_ERRORS.get(fields["errorCode"], f"error {fields['errorCode']}"))
    for topic in fields["responses"]:
        for partition in topic["partitions"]:
            aborted = partition["abortedTransactions"]
            end = partition["highWatermark"] if aborted is None else partition["lastStableOffset"]
            listed = [(each["producerId"], each["firstOffset"]) for each in aborted or ()]
            batches = answer[:0] if partition["records"] is None else partition["records"]
            yield (topic["topicId"], partition["partitionIndex"]), partition["errorCode"], end, listed, batches
