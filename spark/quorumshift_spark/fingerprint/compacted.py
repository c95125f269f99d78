# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the keys of compacted partitions on Spark's executors. The driver gets sums, and no list of keys.

The newest records of the keys are in files on the driver's host, one of the baseline and one of now. Spark sends them
to executors elsewhere.
"""

from __future__ import annotations

import json
import os
from typing import Callable, Collection, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import SparkFiles
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from quorumshift_spark.fingerprint import keys, records
from quorumshift_spark.fingerprint.keys import Tally
from quorumshift_spark.fingerprint.plan import Chunk, PartitionState, TopicPartition

_KEYS_IN_A_GROUP = 500_000
_ROWS = pa.schema([("number", pa.int32()), ("bucket", pa.int32()), ("current", pa.bool_()), *records.SCHEMA])
_TALLIES = pa.schema([("number", pa.int32()), ("class", pa.string()), ("tally", pa.string())])
_PLACES = "number int, buckets int, current boolean, at bigint, size bigint"


class Side(NamedTuple):
    """The keys of one run: the chunks of compacted partitions, and the file that their places refer to."""

    chunks: Sequence[Chunk]
    path: str


class Keys:
    """The keys of the baseline, if there is one, and of the cluster."""

    def __init__(self, spark: SparkSession, was: Side | None, now: Side) -> None:
        self._spark = spark
        self._sides = {current: side for current, side in ((False, was), (True, now)) if side}
        self._files: Dict[bool, Tuple[str, bool]] = {}

    def tallies(
        self, was: Mapping[TopicPartition, PartitionState], now: Mapping[TopicPartition, PartitionState]
    ) -> Dict[TopicPartition, Dict[str, Tally]]:
        """Return the tallies of each partition's keys (keys.tally).

        :arg was: states of the baseline's partitions to compare; `now`: of the cluster's.
        """
        tps, rows = self._rows({*was, *now})
        if rows is None:
            return {}
        states = {number: (was.get(tp), now.get(tp)) for number, tp in enumerate(tps)}
        tallied = rows.groupBy("number", "bucket").applyInArrow(_tallier(states), from_arrow_schema(_TALLIES))
        parts: Dict[TopicPartition, Dict[str, List[Tally]]] = {}
        for row in tallied.collect():
            parts.setdefault(tps[row.number], {}).setdefault(row["class"], []).append(Tally(*json.loads(row.tally)))
        return {tp: {name: keys.added(tallies) for name, tallies in of.items()} for tp, of in parts.items()}

    def newest(self, wanted: Mapping[bytes, TopicPartition]) -> Dict[bytes, List[Tuple[bool, int, int, bool]]]:
        """Return the newest records of a few keys: {key: [(current, offset, timestamp, whether it is a tombstone)]}."""
        tps, rows = self._rows(set(wanted.values()))
        if rows is None:
            return {}
        numbers = {tp: number for number, tp in enumerate(tps)}
        by_hash = {(numbers[tp], records.key_hash(key)): key for key, tp in wanted.items() if tp in numbers}
        named = self._spark.createDataFrame(list(by_hash), "number int, key_hash bigint")
        found = rows.join(F.broadcast(named), ["number", "key_hash"], "left_semi")
        latest = F.max(F.struct("offset", "timestamp", "tombstone")).alias("newest")
        by_key: Dict[bytes, List[Tuple[bool, int, int, bool]]] = {}
        for row in found.groupBy("number", "key_hash", "current").agg(latest).collect():
            by_key.setdefault(by_hash[row.number, row.key_hash], []).append((row.current, *row.newest))
        return by_key

    def _rows(self, wanted: Collection[TopicPartition]) -> Tuple[List[TopicPartition], DataFrame | None]:
        """Return the partitions of these that have keys, and their records with the partition's number in this list."""
        sizes: Dict[TopicPartition, int] = {}
        chosen = [
            (current, chunk)
            for current, side in self._sides.items()
            for chunk in side.chunks
            if chunk.keys and chunk[:2] in wanted
        ]
        for _current, chunk in chosen:
            sizes[chunk[:2]] = sizes.get(chunk[:2], 0) + (chunk.keys or 0)
        tps = sorted(sizes)
        if not tps:
            return [], None
        numbers = {tp: number for number, tp in enumerate(tps)}
        places = [
            (numbers[chunk[:2]], 1 + sizes[chunk[:2]] // _KEYS_IN_A_GROUP, current, chunk.at, chunk.size)
            for current, chunk in chosen
        ]
        context = self._spark.sparkContext
        if not self._files:
            local = context.master.startswith("local")
            self._files = {current: (side.path, local) for current, side in self._sides.items()}
            for path, _local in () if local else self._files.values():
                context.addFile(path)
        slices = max(1, min(len(places), 4 * context.defaultParallelism))
        table = self._spark.createDataFrame(context.parallelize(places, slices), _PLACES)
        return tps, table.mapInArrow(_reader(self._files), from_arrow_schema(_ROWS))


def _reader(files: Mapping[bool, Tuple[str, bool]]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for executors that reads the records of keys from their places.

    :arg files: {current: (path, whether the executor sees the driver's files)}.
    """

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for place in batch.to_pylist():
                path, local = files[place["current"]]
                with open(path if local else SparkFiles.get(os.path.basename(path)), "rb") as file:
                    file.seek(place["at"])
                    table = records.decode(file.read(place["size"]))
                names = table.column("key_hash").to_numpy()
                more = {
                    "number": np.full(len(names), place["number"], "i4"),
                    "bucket": (names % place["buckets"]).astype("i4"),
                    "current": np.full(len(names), place["current"], "?"),
                }
                for name, column in more.items():
                    table = table.append_column(_ROWS.field(name), pa.array(column))
                yield from table.select(_ROWS.names).to_batches()

    return read


def _tallier(
    states: Mapping[int, Tuple[PartitionState | None, PartitionState | None]],
) -> Callable[[pa.Table], pa.Table]:
    """Return a function for executors that tallies a part of a partition's keys."""

    def tally(group: pa.Table) -> pa.Table:
        number, current = group.column("number")[0].as_py(), group.column("current")
        found = keys.tally(*states[number], group.filter(pc.invert(current)), group.filter(current))
        rows = [(number, name, json.dumps(of_class)) for name, of_class in found.items()]
        return pa.Table.from_pylist([dict(zip(_TALLIES.names, row)) for row in rows], _TALLIES)

    return tally
