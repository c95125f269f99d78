# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rows of a fingerprint: Parquet files that executors write, and compare with those of the baseline.

The store is a directory that driver and executors share: a path, or a URI of a file system that Hadoop knows. Each
comparison has a directory of its own there. A task writes one file, which its commit renames at once (version 2 of
Hadoop's FileOutputCommitter): a file that is listed is complete, also if driver or executor is killed. What was read is
known from a listing: a job that is started again continues with the chunks that are missing. After a pass the directory
is the baseline's; the next job removes those that are not.

A row is a chunk, or the newest record of a key in a chunk. They share `number`, which is new with each reading.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import pickle
import re
import secrets
import stat
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Sequence, Tuple

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from quorumshift_spark.fingerprint import compare, keys, plan, records
from quorumshift_spark.fingerprint.compare import Both, Content, Fingerprint
from quorumshift_spark.fingerprint.keys import Tally
from quorumshift_spark.fingerprint.plan import Chunk, PartitionState, Place, Range, TopicPartition
from quorumshift_spark.storage import Storage

_PLACE = ("topic_id", "partition", "begin", "end", "cut", "keyed")
_FACTS = Chunk._fields[4:]
_TYPES = {
    **dict.fromkeys(("topic_id", "hash"), pa.string()),
    **dict.fromkeys(("cut", "keyed"), pa.bool_()),
    **{"partition": pa.int32(), "times": pa.list_(pa.list_(pa.int64()))},
}
_OF_CHUNK = ("number", *_PLACE, "epoch", "log_start", *_FACTS)
SCHEMA = pa.schema([*((name, _TYPES.get(name, pa.int64())) for name in _OF_CHUNK), *records.SCHEMA])
"""`topic_id` to `log_start`: the chunk, the leader's epoch when it was read, and the log start when its partition was
planned; then the chunk's facts; or the record of a key (records.SCHEMA). What a row lacks is null."""

_WRITING = {
    "compression": "zstd",
    "parquet.block.size": str(32 << 20),  # bounds what a task keeps in memory
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
_READING = {"parquet.page.verify-checksum.enabled": "true"}
_DECIDED = "_decided"
_KEYS_IN_A_TASK = 500_000
_Places = Mapping[TopicPartition, Sequence[Place]]
_Key = Tuple[str, int, int, int, bool, bool]  # the values of _PLACE


class DataError(Exception):
    """The store or a baseline's rows cannot be used. The message says why and what to do."""


class Data:
    """The rows of one comparison, and those of its baseline."""

    def __init__(self, spark: SparkSession, store: str, of: Mapping[str, Any], was: Fingerprint | None) -> None:
        """Open the directory of a job of the same comparison that did not end, or create one. Remove what no job needs.

        Raises DataError; Spark's errors.

        :arg store: see `locked`.
        :arg of: what says which comparison this is; `was`: the baseline, whose files must be there.
        """
        self._spark, self._was = spark, was
        self._storage = Storage(spark, store)
        self._found: Dict[_Key, int] = {}
        self._stale: set = set()
        if was:
            there = self._storage.list(was.data.directory)
            wrong = [name for name, size in was.data.files.items() if there.get(name) != size]
            if wrong:
                raise DataError(
                    f"{self._storage.uri}/{was.data.directory}/{wrong[0]}, a file of the baseline's records, is "
                    f"missing or has another size. {_RESTORE} (QS-VERIFY-005)"
                )
        mine, begun = hashlib.sha256(json.dumps(dict(of), sort_keys=True).encode()).hexdigest()[:16], None
        baseline = was.data.directory if was else None
        for name in sorted(self._storage.list("")):
            if not re.fullmatch("[0-9a-f]{16}-[0-9a-f]{16}", name) or name == baseline:
                continue
            is_decided = _DECIDED in self._storage.list(name)
            if name.startswith(mine) and not is_decided and not begun:
                begun = name
            elif was or not is_decided:
                self._storage.remove(name)
        self.directory = begun or f"{mine}-{secrets.token_hex(8)}"
        try:
            # An earlier job's files: each page is read, with its checksum
            self.is_continued = begun is not None and bool(self._read(begun).agg(F.max(F.xxhash64("*"))).collect())
        except (PySparkException, Py4JError):
            self._storage.remove(self.directory)
            self.is_continued = False
        self._storage.make(self.directory)

    # What was read -------------------------------------------------------------------------------------------------

    def resume(self, states: Mapping[TopicPartition, PartitionState]) -> None:
        """Find the chunks of an earlier job that count: their topic id, leader epoch and log start are those of now."""
        if not self.is_continued:
            return
        known = {(state.topic_id, state.partition): state for state in states.values()}
        for row in self._chunks():
            state = known.get((row.topic_id, row.partition))
            if state is None or (row.epoch, row.log_start) != (state.leader_epoch, state.log_start):
                self._stale.add(row.number)
        self.refresh()

    def append(self, rows: DataFrame) -> None:
        """Write rows of SCHEMA, a file for each task."""
        rows.write.mode("append").options(**_WRITING).parquet(f"{self._storage.uri}/{self.directory}")
        self.refresh()

    def refresh(self) -> None:
        """List what executors have written."""
        for row in self._chunks():
            if row.number not in self._stale:
                self._found.setdefault(tuple(row[name] for name in _PLACE), row.number)

    def left(self, wanted: Iterable[Range]) -> List[Range]:
        """Return what is still to be read of these ranges."""
        return [
            part
            for whole in wanted
            for part in plan.without(whole, [key[2:4] for key in _keys(whole) if key in self._found])
        ]

    def places(self, wanted: Iterable[Range]) -> Dict[TopicPartition, List[Place]]:
        """Return the chunks of these ranges that were read."""
        found: Dict[TopicPartition, List[Place]] = {}
        for whole in wanted:
            for key in _keys(whole):
                if key in self._found:
                    found.setdefault(whole.tp, []).append(Place(key[2], key[3], whole.keyed, self._found[key]))
        return found

    def decide(self, is_kept: bool) -> compare.Data:
        """End the comparison: what was read becomes the baseline's, or is removed. Return where it is."""
        files = {name: size for name, size in self._storage.list(self.directory).items() if name.startswith("part-")}
        if is_kept:
            self._storage.mark(f"{self.directory}/{_DECIDED}")
        else:
            self._storage.remove(self.directory)
        return compare.Data(self.directory, files)

    @contextlib.contextmanager
    def intact(self) -> Iterator[None]:
        """Raise DataError if a file that the block reads has another checksum: another run would not help."""
        try:
            yield
        except (PySparkException, Py4JError) as error:
            if not _DAMAGED.search(str(error)):
                raise
            raise DataError(
                f"a file in {self._storage.uri} is damaged: its checksum is another one. spark.log beside the report "
                f"names it. {_RESTORE} (QS-VERIFY-005)"
            ) from error

    # Comparisons ---------------------------------------------------------------------------------------------------

    def contents(self, now: _Places, both: Mapping[TopicPartition, Both]) -> Dict[TopicPartition, Content]:
        """Return what the chunks of each partition add up to. Raises DataError if a chunk is missing."""
        tps, was = sorted(both), self._was.chunks if self._was else {}
        states = [(at, len(was.get(tp, ())), len(now.get(tp, ())), pickle.dumps(both[tp])) for at, tp in enumerate(tps)]
        of_tps = self._spark.createDataFrame(states, "tp int, then int, here int, both binary").groupBy("tp")
        chunks = self._rows(tps, now, "topic_id", ["begin", "end", *_FACTS]).groupBy("tp")
        summed = chunks.cogroup(of_tps).applyInArrow(_summed, "tp int, content binary")
        found = {tps[row.tp]: pickle.loads(row.content) for row in summed.collect() if row.content}
        if len(found) != len(tps):
            raise DataError(_LOST.format(self._storage.uri, f"{len(tps) - len(found)} partitions"))
        return found

    def tallies(
        self, now: _Places, both: Mapping[TopicPartition, Both], number: int
    ) -> Dict[TopicPartition, Dict[str, Tally]]:
        """Return the tallies of each partition's keys, by class (keys.WHICH). Raises DataError if a key is missing.

        :arg number: of the rows of keys on both sides, as their chunks say.
        """
        if not number:
            return {}
        tps = sorted(tp for tp, of in both.items() if (of.was and of.was.compacted) or (of.now and of.now.compacted))
        classes = self._classes(
            [both[tp] for tp in tps], self._rows(tps, now, "key_hash", records.SCHEMA.names), number
        )
        summed = classes.groupBy("tp", "class").agg(
            F.count("*").alias("number"),
            F.count("offset").alias("now"),
            F.coalesce(F.max("was_timestamp"), F.lit(-1)).alias("newest_ms"),
            F.sum("rows").alias("rows"),
        )
        found: Dict[TopicPartition, Dict[str, Tally]] = {}
        for row in summed.collect():
            found.setdefault(tps[row.tp], {})[row["class"]] = Tally(row.number, row.now, row.newest_ms)
            number -= row.rows
        if number:
            raise DataError(_LOST.format(self._storage.uri, f"{abs(number)} keys"))
        if any(name in keys.LISTED for of in found.values() for name in of):
            first = Window.partitionBy("tp", "class").orderBy("key_hash")
            listed = classes.where(F.col("class").isin(*keys.LISTED)).withColumn("place", F.row_number().over(first))
            for row in listed.where(F.col("place") <= keys.SHOWN).orderBy("tp", "class", "place").collect():
                of_class = found[tps[row.tp]][row["class"]]
                then, here = (-1 if offset is None else offset for offset in (row.was_offset, row.offset))
                example = (row.key_hash, then, row.was_content or 0, here, row.content or 0)
                found[tps[row.tp]][row["class"]] = of_class._replace(examples=[*of_class.examples, example])
        return found

    def newest(
        self, now: _Places, wanted: Mapping[bytes, TopicPartition]
    ) -> Dict[bytes, List[Tuple[bool, int, int, bool]]]:
        """Return the newest records of a few keys: {key: [(current, offset, timestamp, whether it is a tombstone)]}."""
        if not wanted:
            return {}
        tps = sorted(set(wanted.values()))
        by_hash = {(tps.index(tp), records.key_hash(key)): key for key, tp in wanted.items()}
        named = self._spark.createDataFrame(list(by_hash), "tp int, key_hash bigint")
        rows = self._rows(tps, now, "key_hash", records.SCHEMA.names).join(F.broadcast(named), ["tp", "key_hash"])
        latest = F.max(F.struct("offset", "timestamp", "tombstone")).alias("newest")
        by_key: Dict[bytes, List[Tuple[bool, int, int, bool]]] = {}
        for row in rows.groupBy("tp", "key_hash", "current").agg(latest).collect():
            by_key.setdefault(by_hash[row.tp, row.key_hash], []).append((row.current, *row.newest))
        return by_key

    def _classes(self, both: Sequence[Both], rows: DataFrame, number: int) -> DataFrame:
        """Return the keys with their newest record then and now, and their class.

        One exchange brings all records of a key to one task, which has about _KEYS_IN_A_TASK of them.
        """
        newest = [F.count("*").alias("rows")]
        for prefix, side in (("was_", ~F.col("current")), ("", F.col("current"))):
            at = F.when(side, F.col("offset"))
            newest.append(F.max(at).alias(f"{prefix}offset"))
            newest += [
                F.max_by(F.when(side, F.col(name)), at).alias(f"{prefix}{name}")
                for name in ("content", "tombstone", "timestamp")
            ]
        limits = [
            (
                *(tp, of.was.log_start if of.was else 0, of.was.end if of.was else 0),
                *((of.now.log_start, of.now.deletes) if of.now else (None, None)),
            )
            for tp, of in enumerate(both)
        ]
        of_tp = "tp int, was_start bigint, was_end bigint, log_start bigint, deletes boolean"
        by_key = (
            rows.repartition(1 + number // _KEYS_IN_A_TASK, "tp", "key_hash").groupBy("tp", "key_hash").agg(*newest)
        )
        by_key = by_key.join(F.broadcast(self._spark.createDataFrame(limits, of_tp)), "tp")
        return by_key.withColumn("class", F.expr(keys.WHICH))

    def _rows(self, tps: Sequence[TopicPartition], now: _Places, of: str, columns: Sequence[str]) -> DataFrame:
        """Return the rows of both sides that have the column `of`, with tp, the place in `tps`, and current."""
        chosen = [
            (place.number, tp, side is now)
            for side in (now, self._was.chunks if self._was else {})
            for tp, name in enumerate(tps)
            for place in side.get(name, ())
        ]
        paths = [self.directory, *([self._was.data.directory] if self._was else ())]
        rows = self._read(*paths).where(F.col(of).isNotNull()).select("number", *columns)
        index = self._spark.createDataFrame(chosen, "number bigint, tp int, current boolean")
        return rows.join(F.broadcast(index), "number").drop("number")

    # Files ---------------------------------------------------------------------------------------------------------

    def _read(self, *names: str) -> DataFrame:
        paths = [f"{self._storage.uri}/{name}" for name in names]
        return self._spark.read.schema(from_arrow_schema(SCHEMA)).options(**_READING).parquet(*paths)

    def _chunks(self) -> List[Any]:
        rows = self._read(self.directory).where("topic_id IS NOT NULL")
        return rows.select("number", *_PLACE, "epoch", "log_start").collect()


_RESTORE = (
    "Restore the directory of the baseline's records. Or start a new baseline: delete fingerprint.json of the baseline"
)
# Hadoop's checksum of a local file, Parquet's of a page, and a file that was cut at its end
_DAMAGED = re.compile("ChecksumException|ParquetDecodingException|could not verify page|is not a Parquet file")
_LOST = "{}: not all rows of {} are there: the files were changed during the job. Run the playbook again"


def rows(
    part: Range, epoch: int, log_start: int, chunk: Chunk, newest: pa.RecordBatch | None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of SCHEMA of a chunk: its own, and those of its keys."""
    number = int.from_bytes(os.urandom(8), "big", signed=True)
    place = dict(zip(_PLACE, _key(part, chunk.begin, chunk.end)))
    row = {**chunk._asdict(), **place, "number": number, "epoch": epoch, "log_start": log_start}
    yield pa.RecordBatch.from_pylist([row], SCHEMA)
    if newest is not None and newest.num_rows:
        size = newest.num_rows
        columns = {"number": pa.repeat(pa.scalar(number, pa.int64()), size), **dict(zip(newest.schema.names, newest))}
        nulls = (columns.get(field.name) for field in SCHEMA)
        yield pa.record_batch(
            [pa.nulls(size, field.type) if column is None else column for field, column in zip(SCHEMA, nulls)],
            schema=SCHEMA,
        )


def _key(part: Range, begin: int, end: int) -> _Key:
    return part.topic_id, part.partition, begin, end, part.cut and begin == part.begin, part.keyed


def _keys(whole: Range) -> Iterator[_Key]:
    return (_key(whole, begin, end) for begin, end in zip(whole.bounds, whole.bounds[1:]))


def _summed(chunks: pa.Table, states: pa.Table) -> pa.Table:
    """Return what the chunks of a partition add up to; no content if chunks are missing. On executors."""
    (state,) = states.to_pylist()
    both: Both = pickle.loads(state["both"])
    sides: Tuple[List[Chunk], List[Chunk]] = ([], [])
    tp = (both.was or both.now).tp  # type: ignore[union-attr]
    for row in chunks.sort_by("begin").to_pylist():
        times = tuple((offset, time) for offset, time in row["times"])
        facts = {name: row[name] for name in ("begin", "end", *_FACTS)}
        sides[row["current"]].append(Chunk(*tp, **{**facts, "times": times}))
    is_whole = (len(sides[0]), len(sides[1])) == (state["then"], state["here"])
    content = pickle.dumps(both.content(*sides)) if is_whole else None
    return pa.table({"tp": pa.array([state["tp"]], pa.int32()), "content": pa.array([content], pa.binary())})


@contextlib.contextmanager
def locked(store: str) -> Iterator[None]:
    """Create a store on this host, 0700, and keep other jobs out during the block. Raises DataError, OSError.

    A URI has no lock: the run lock of the cluster keeps others out.
    """
    if "://" in store:
        yield
        return
    os.makedirs(store, mode=0o700, exist_ok=True)
    owner = os.lstat(store)
    if owner.st_uid != os.geteuid() or stat.S_IMODE(owner.st_mode) & 0o077 or not stat.S_ISDIR(owner.st_mode):
        raise DataError(f"{store} must be a directory of this user with mode 0700. Run: rm -r {store} (QS-VERIFY-004)")
    path = os.path.join(store, "lock")
    with open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise DataError(
                f"another data_fingerprint of this cluster runs: it uses {store}. Wait until it has ended "
                "(QS-VERIFY-004)"
            ) from None
        yield
