# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rows of all views: tasks read each source once, and what they read is written once, as Parquet to one directory.

A task writes its file itself where the directory is one of its host, also of a mount of NFS; elsewhere Spark does, by
Hadoop's file systems. A part is there as a whole or not at all, once, and with it how it ended. Nothing is read from a
source again, whatever executors are lost.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import os
from typing import Any, Collection, Dict, FrozenSet, Iterable, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import not_compared
from py4j.protocol import Py4JNetworkError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from quorumshift_spark import buckets
from quorumshift_spark.storage import Storage
from quorumshift_spark.views import NOT_COMPARED, View, ViewError, source
from quorumshift_spark.views.source import Summary

_WRITING = {
    "compression": "none",  # hashes, and what is encrypted
    "parquet.block.size": str(32 << 20),  # bounds what a task keeps in memory
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
_NAME = "quorumshift-parity-{}"
_DAY_S = 86_400.0
_ROWS_A_SLICE = 500_000  # that the driver holds
_FEW_ROWS = 500_000
"""Below this a plan costs more than its rows: they are kept in memory."""


class Reading(NamedTuple):
    """The outcome of reading a view. `read`: {kind: rows}; `state`: merged over its parts; `error`: why it could not be
    read, or None; `lost`: where the rows that arrived contradict the counts of its parts."""

    read: Dict[str, int]
    state: Dict[str, Any]
    problems: List[Tuple[str, str]]
    seconds: float
    error: str | None
    lost: List[str]


class Copy(NamedTuple):
    """What replaces a view: the rows of the view `of`. In the buckets `own` (see buckets) it has its own rows, and no
    others are kept."""

    of: str
    own: FrozenSet[int]


class Rows:
    """What was read. `compared`: a row for each entity, with the hashes; `parts`: {view: the summaries of its parts};
    `copies`: {view: what replaces it}."""

    def __init__(self, spark: SparkSession, place: str) -> None:
        """Nothing is read yet. `place`: a directory that driver and executors share, see storage."""
        self._spark, self._key = spark, os.urandom(32)
        self._storage, self._name = Storage(spark, place), _NAME.format(os.urandom(8).hex())
        self._written: List[str] = []
        self.parts: Dict[str, List[Summary]] = {}
        self.copies: Dict[str, Copy] = {}
        self._files: List[Tuple[str, str]] = []  # of this host: view and path

    def read(self, views: Iterable[View], alike: Mapping[str, Any], apart: bool = False) -> None:
        """Read all views.

        :arg alike: of each view that may be a copy of another: the same value for those with the same comparisons. Of
            the first of them all rows are kept; the others are read after it.
        :arg apart: whether executors do not share the driver's files.
        """
        self._storage.remove_old(_NAME.format("[0-9a-f]{16}"), _DAY_S)  # of a job that was killed
        given = source.parts(views, self._spark.sparkContext.defaultParallelism, apart)
        # Buckets of two views are compared as a whole
        alike = {part.name: alike[part.name] for part in given if part.of == 1 and part.name in alike}
        firsts = {like: name for name, like in reversed(alike.items())}
        of = {name: firsts[like] for name, like in alike.items() if firsts[like] != name}
        self._write([part for part in given if part.name not in of])
        digests = {name: self.parts[name][0].digests for name in firsts.values()}
        self._write([part._replace(like=digests[of[part.name]]) for part in given if part.name in of])
        self.copies = copies(self.parts, of)
        self.compared: DataFrame = self._at(*self._written).select(source.COMPARED).where("id IS NOT NULL")
        if self.are_few:
            self.compared = self.compared.persist()

    def _write(self, parts: Sequence[source.Part]) -> None:
        """Read these parts. Raises ViewError if what executors wrote is not here."""
        if not parts:
            return
        name = f"{self._name}/{len(self._written)}"
        self._written.append(f"{self._storage.uri}/{name}")
        if self._storage.path is not None:
            directory = os.path.join(self._storage.path, name)
            os.makedirs(directory)
            read = functools.partial(source.stored, key=self._key, directory=directory)
            written = source.on_tasks(self._spark, parts, read, source.WRITTEN)
        else:
            read = functools.partial(source.batches, key=self._key)
            rows = source.on_tasks(self._spark, parts, read, source.WRITTEN)
            rows.write.options(**_WRITING).parquet(self._written[-1])
            written = self._at(self._written[-1])
        ended = written.select("view", "ended").where("ended IS NOT NULL").collect()
        if len(ended) != len(parts):
            raise ViewError(
                f"{self._storage.uri} has {len(ended)} of {len(parts)} parts of what was read. Run the playbook again "
                "(QS-VERIFY-002)"
            )
        for row in ended:
            self.parts.setdefault(row.view, []).append(source.summary(self._key, row.view, row.ended))
        if self._storage.path is not None:
            self._files += self._find_files(parts, os.path.join(self._storage.path, name))

    def _find_files(self, parts: Sequence[source.Part], directory: str) -> List[Tuple[str, str]]:
        """Return view and path of what tasks wrote. A part that failed may have no file, and its summary says why.
        Raises ViewError if another one has none: executors wrote to a directory of their own."""
        failed = {(view, part.number) for view, ended in self.parts.items() for part in ended if part.error}
        files = [(part, os.path.join(directory, source.file_name(part))) for part in parts]
        lacking = [path for part, path in files if not os.path.exists(path) and (part.name, part.number) not in failed]
        if lacking:
            raise ViewError(
                f"{lacking[0]} was written by an executor and is not on this host. The Spark host and all executors "
                "must share the directory of what is read: set quorumshift_spark_uri to such a one (QS-VERIFY-002)"
            )
        return [(part.name, path) for part, path in files if os.path.exists(path)]

    def _at(self, *paths: str) -> DataFrame:
        return self._spark.read.schema(from_arrow_schema(source.WRITTEN)).parquet(*paths)

    def arrived(self) -> Dict[str, Dict[str, int]]:
        """Return {view: {kind: rows}} of what was written."""
        found: Dict[str, Dict[str, int]] = {}
        if self._storage.path is None:
            for row in self.compared.groupBy("view", "kind").count().collect():
                found.setdefault(row.view, {})[row.kind] = row["count"]
            return found
        for view, path in self._files:
            of_view = found.setdefault(view, {})
            for entry in pq.read_table(path, columns=["kind"])["kind"].value_counts().to_pylist():
                if entry["values"] not in (None, source.PARTITIONS, source.ENTITIES):
                    of_view[entry["values"]] = of_view.get(entry["values"], 0) + entry["counts"]
        return found

    @property
    def are_few(self) -> bool:
        """Whether these are so few rows that they are kept in memory."""
        return sum(sum(part.kept.values()) for parts in self.parts.values() for part in parts) < _FEW_ROWS

    def of_ids(self, ids: Sequence[int]) -> Iterator[Dict[str, Any]]:
        """Yield the rows (source.ROWS) with these ids."""
        wanted = pa.array(ids, pa.int64())
        for table in self._opened() if ids else ():
            yield from table.filter(pc.is_in(table["id"], wanted)).to_pylist()

    def of_kinds(self, kinds: Collection[str]) -> Iterator[Dict[str, Any]]:
        """Yield the rows of entities of these kinds, which are no partitions."""
        wanted = pa.array(kinds, pa.string())
        for table in self._opened(kind=source.ENTITIES):
            yield from table.filter(pc.is_in(table["kind"], wanted)).to_pylist()

    def tables(self, names: Collection[str]) -> Iterator[pa.Table]:
        """Yield the rows of these views, some at a time, as source.ROWS."""
        found: List[pa.Table] = []
        for table in self._opened(names):
            found.append(table)
            if sum(map(len, found)) >= _ROWS_A_SLICE:
                yield pa.concat_tables(found)
                found = []
        if found:
            yield pa.concat_tables(found)

    def _opened(self, names: Collection[str] | None = None, kind: str | None = None) -> Iterator[pa.Table]:
        """Yield the rows of all views or of these, whose values were sealed as of all kinds or of this one."""
        for row in self._sealed(["view", "kind", "sealed"]):
            if (names is None or row["view"] in names) and kind in (None, row["kind"]):
                yield source.unseal(self._key, row["view"], row["sealed"])

    def _sealed(self, columns: List[str]) -> Iterator[Mapping[str, Any]]:
        if self._storage.path is None:
            yield from self._at(*self._written).select(columns).where("sealed IS NOT NULL").toLocalIterator()
        for _view, path in self._files:
            with pq.ParquetFile(path) as file:
                for number in range(file.num_row_groups):
                    table = file.read_row_group(number, columns)
                    yield from table.filter(table["sealed"].is_valid()).to_pylist()

    def remove(self) -> None:
        """Remove what was written."""
        with contextlib.suppress(OSError, Py4JNetworkError):  # the JVM has ended: a later job removes it
            self._storage.remove(self._name)


def copies(parts: Mapping[str, Sequence[Summary]], of: Mapping[str, str]) -> Dict[str, Copy]:
    """Return what replaces each view that is the same as another, at least in some buckets.

    :arg of: the other view, of those whose parts are like it.
    """
    found = {}
    for name, of_view in parts.items():
        first = of_view[0]
        if "copy_of" in first.state:
            found[name] = Copy(first.state["copy_of"], frozenset())
        elif name in of:
            other = parts[of[name]][0]
            if first.digests is not None and other.digests is not None:
                found[name] = Copy(of[name], frozenset(buckets.unlike(first.digests, other.digests).tolist()))
    return found


def readings(
    names: Sequence[str],
    parts: Mapping[str, Sequence[Summary]],
    copies: Mapping[str, Copy],
    arrived: Mapping[str, Mapping[str, int]],
) -> Dict[str, Reading]:
    """Return the outcome for each view, with its arrived rows checked against the counts of its parts."""
    found = {name: _reading(arrived.get(name, {}), parts.get(name, ())) for name in names}
    for name, copy in copies.items():
        if not copy.own:  # nothing of it was read
            found[name] = found[name]._replace(read=found[copy.of].read, error=found[copy.of].error)
    return found


def _reading(arrived: Mapping[str, int], parts: Sequence[Summary]) -> Reading:
    seconds = max((part.seconds for part in parts), default=0.0)
    error = next((part.error for part in parts if part.error), None)
    of = parts[0].of if parts else 0
    if error is None and (not of or {part.number for part in parts} != {*range(of)} or len(parts) != of):
        error = f"{len(parts)} of {of or 'its'} parts were read to the end"
    if error is not None:
        return Reading(dict(arrived), {}, [], seconds, error, [])
    read, kept = _sums(part.counts for part in parts), _sums(part.kept for part in parts)
    lost = [
        f"{kept.get(kind, 0)} {kind} rows were read and {arrived.get(kind, 0)} arrived"
        for kind in sorted({*kept, *arrived})
        if kept.get(kind, 0) != arrived.get(kind, 0)
    ]
    problems = sorted({(where, reason) for part in parts for where, reason in part.problems})
    in_order = sorted(parts, key=lambda part: part.number)
    return Reading(read, _merged([part.state for part in in_order]), problems, seconds, None, lost)


def _sums(counts: Iterable[Mapping[str, int]]) -> Dict[str, int]:
    return dict(sum(map(collections.Counter, counts), collections.Counter()))


def _merged(states):
    """Return the state of a view that is read in parts: the position at which the first part began."""
    merged = dict(states[0])
    for state in states[1:]:
        merged.update({name: min(merged[name], state[name]) for name in ("zxid", "offset") if name in state})
        if "deletions" in state:
            merged["deletions"] = {**merged["deletions"], **state["deletions"]}
        if "controller" in state:
            merged["controller"] = state["controller"]
        if NOT_COMPARED in state:
            merged[NOT_COMPARED] = not_compared.merge([merged.get(NOT_COMPARED, {}), state[NOT_COMPARED]])
        if "pace" in state:
            pace = merged["pace"]
            merged["pace"] = {
                name: max(pace[name], value) if name == "slowest_ms" else round(pace[name] + value, 3)
                for name, value in state["pace"].items()
            }
    return merged
