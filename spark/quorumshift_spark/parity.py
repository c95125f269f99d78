# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The comparison in Spark: one aggregation by key, over digests of 64 bits, finds the keys that are not equal.

These keys, usually few, go through `compare` on the driver. All others are equal in every comparison of their kind.
Rows are those of views.source.
"""

from __future__ import annotations

import collections
import functools
import itertools
import json
import operator
import os
import shutil
import zlib
from typing import Any, Callable, Dict, FrozenSet, Iterable, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import not_compared
from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from quorumshift_spark import buckets, rules
from quorumshift_spark.normal_form import Entity, readable_key
from quorumshift_spark.rules import Comparison
from quorumshift_spark.views import NOT_COMPARED, Key, View, family, partition, source


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


class Bundle(NamedTuple):
    """Comparisons with the same left view, relation and kinds, which share columns of the aggregation."""

    left: str
    relation: str
    kinds: Tuple[str, ...]
    members: Tuple[Comparison, ...]


class Read(NamedTuple):
    """What was read: the rows, and (view, path) of their files if executors store them; {view: {part: its last row
    (source.part_summary)}}, {view: what replaces it}, and {view: {kind: rows that arrived}}. `again` returns the views
    that Spark has read again since."""

    rows: DataFrame
    files: List[Tuple[str, str]]
    parts: Dict[str, Dict[int, Dict[str, Any]]]
    copies: Dict[str, Copy]
    arrived: Dict[str, Dict[str, int]]
    again: Callable[[], List[str]]

    def tables(self, names: Sequence[str], count: int) -> Iterator[pa.Table]:
        """Yield the `count` rows of these views, some at a time, as source.ROWS."""
        if not self.files:
            rows, slices = self.rows.filter(F.col("view").isin(*names)), count // _ROWS_A_SLICE + 1
            for number in range(slices):
                yield rows.filter(F.pmod("id", F.lit(slices)) == number).toArrow()
            return
        found: List[pa.Table] = []
        for table in (table for view, path in self.files if view in names for _ids, table in row_groups(path)):
            found.append(table())
            if sum(map(len, found)) >= _ROWS_A_SLICE:
                yield pa.concat_tables(found)
                found = []
        if found:
            yield pa.concat_tables(found)


def row_groups(path: str) -> Iterator[Tuple[pa.ChunkedArray, Callable[[], pa.Table]]]:
    """Yield of each row group of a file with rows its column `id`, and what reads the whole."""
    with pq.ParquetFile(path) as file:
        for number in range(file.num_row_groups):
            yield file.read_row_group(number, ["id"])["id"], functools.partial(file.read_row_group, number)


def read(
    spark: SparkSession, views: Iterable[View], directory: str | None, alike: Mapping[str, Any], ship: bool = False
) -> Read:
    """Read all views once.

    :arg directory: where rows are stored, if executors share it; else Spark keeps them, on two executors if it can.
    :arg alike: of each view that may be a copy of another: the same value for those with the same comparisons. Of the
        first of them all rows are kept; the others are read after it.
    :arg ship: whether executors do not share the driver's files.
    """
    context = spark.sparkContext
    at_once = context.defaultParallelism if context.master.startswith("local") else 0  # elsewhere they come and go
    given = source.parts(views, at_once)
    if directory is not None:
        shutil.rmtree(directory, ignore_errors=True)  # of a job that was killed
        os.makedirs(directory, 0o700)
    # Buckets of two views are compared as a whole
    alike = {part.name: alike[part.name] for part in given if part.of == 1 and part.name in alike}
    firsts = {like: name for name, like in reversed(alike.items())}
    of = {name: firsts[like] for name, like in alike.items() if firsts[like] != name}
    rows = _RowsRead(spark, directory, ship)
    rows.read([part for part in given if part.name not in of])
    digests = {name: rows.parts[name][0].get("digests") for name in firsts.values()}
    rows.read([part._replace(like=digests[of[part.name]]) for part in given if part.name in of])
    return Read(rows.all(), rows.files, rows.parts, _copies(rows.parts, of), rows.arrived(), rows.again)


class _RowsRead:
    """The rows of the parts that were read so far; see `read`."""

    def __init__(self, spark: SparkSession, directory: str | None, ship: bool) -> None:
        self._spark, self._directory, self._ship = spark, directory, ship
        self.parts: Dict[str, Dict[int, Dict[str, Any]]] = {}
        self._frames: List[DataFrame] = []
        self.files: List[Tuple[str, str]] = []

    def read(self, parts: Sequence[source.Part]) -> None:
        if not parts:
            return
        rows = source.rows(self._spark, parts, self._directory, self._ship)
        if self._directory is None:
            self._frames.append(rows.persist(StorageLevel.MEMORY_AND_DISK_2))
        else:
            self.files += [(part.name, os.path.join(self._directory, source.file_name(part))) for part in parts]
        for row in rows.filter("kind = ''").select("view", "key", "fields").collect():
            self.parts.setdefault(row.view, {})[int(row.key)] = source.part_summary(row.fields)

    def all(self) -> DataFrame:
        """Return the rows, without the last one of each part."""
        if self._directory is None:
            return functools.reduce(DataFrame.unionByName, self._frames).filter("kind != ''")
        return self._spark.read.schema(from_arrow_schema(source.ROWS)).parquet(*(path for _view, path in self.files))

    def again(self) -> List[str]:
        """Return the views of which a part was read again: Spark does so where it lost the rows with their executors.
        Rows of another time are then beside the state and the digests of the first reading."""
        found = set()
        for frame in self._frames:
            for row in frame.filter("kind = ''").select("view", "key", "fields").collect():
                if row.fields["reading"] != self.parts[row.view][int(row.key)]["reading"]:
                    found.add(row.view)
        return sorted(found)

    def arrived(self) -> Dict[str, Dict[str, int]]:
        """Return {view: {kind: rows}}."""
        found: Dict[str, Dict[str, int]] = {name: collections.Counter() for name in self.parts}
        if self._directory is None:
            for row in self.all().groupBy("view", "kind").count().collect():
                found[row.view][row.kind] = row["count"]
        for view, path in self.files:
            kinds = pq.read_table(path, columns=["kind"])["kind"].value_counts()
            found[view].update({entry["values"]: entry["counts"] for entry in kinds.to_pylist()})
        return found


def _copies(parts: Mapping[str, Mapping[int, Mapping[str, Any]]], of: Mapping[str, str]) -> Dict[str, Copy]:
    """Return what replaces each view that is the same as another, at least in some buckets.

    :arg of: the other view, of those whose parts are like it.
    """
    copies = {}
    for name, of_view in parts.items():
        first = of_view.get(0, {})
        if "copy_of" in first.get("state", ()):
            copies[name] = Copy(first["state"]["copy_of"], frozenset())
        elif name in of:
            digests = first.get("digests"), parts[of[name]].get(0, {}).get("digests")
            if all(found is not None for found in digests):
                copies[name] = Copy(of[name], frozenset(buckets.unlike(*digests).tolist()))
    return copies


def readings(read: Read, names: Sequence[str]) -> Dict[str, Reading]:
    """Return the outcome for each view, with its arrived rows checked against the counts of its parts."""
    found = {name: _reading(read.arrived.get(name, {}), read.parts.get(name, {})) for name in names}
    for name, copy in read.copies.items():
        if not copy.own:  # nothing of it was read
            found[name] = found[name]._replace(read=found[copy.of].read, error=found[copy.of].error)
    return found


_ROWS_A_SLICE = 500_000  # that the driver holds
_FEW_ROWS = 500_000
"""Below this a plan costs more than its rows: they are kept in memory."""


def are_few(found: Mapping[str, Reading]) -> bool:
    """Return whether the rows of these readings are kept in memory."""
    return sum(sum(reading.read.values()) for reading in found.values()) < _FEW_ROWS


def _reading(arrived, parts):
    lost: List[str] = []
    errors = [part["error"] for part in parts.values() if "error" in part]
    seconds = max((part["seconds"] for part in parts.values()), default=0.0)
    if errors:
        return Reading(arrived, {}, [], seconds, errors[0], lost)
    of = next((part["of"] for part in parts.values()), 0)
    if not of or len(parts) != of:
        return Reading(arrived, {}, [], seconds, f"{len(parts)} of {of or 'its'} parts were read to the end", lost)
    read, kept = (_sums(part[name] for part in parts.values()) for name in ("counts", "kept"))
    for kind in sorted({*kept, *arrived}):
        if kept.get(kind, 0) != arrived.get(kind, 0):
            lost.append(f"{kept.get(kind, 0)} {kind} rows were read and {arrived.get(kind, 0)} arrived")
    problems = sorted({tuple(problem) for part in parts.values() for problem in part["problems"]})
    return Reading(read, _merged([part["state"] for part in parts.values()]), problems, seconds, None, lost)


def _sums(counts):
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


class Registered(NamedTuple):
    """A broker in a store: `fields` as of an entity."""

    view: str
    id: int
    fields: Dict[str, str]


def of_nodes(rows: DataFrame, copies: Mapping[str, Copy]) -> Tuple[List[Registered], Dict[str, Dict[str, str]]]:
    """Return the brokers in each store, and the settings of each node: {view: {key: value}}."""
    stored = F.col("view").isin(rules.ZOOKEEPER, rules.LOG) & (F.col("kind") == "broker")
    found = (
        rows.filter(stored | (F.col("kind") == "setting")).select("view", "kind", "key", "fields", "bucket").collect()
    )
    brokers = [Registered(row.view, json.loads(row.key)[0], row.fields) for row in found if row.kind == "broker"]
    settings: Dict[str, Dict[str, str]] = {}
    for row in found:
        if row.kind == "setting":
            others = [name for name, copy in copies.items() if copy.of == row.view and row.bucket not in copy.own]
            for name in (row.view, *others):
                settings.setdefault(name, {})[row.key] = row.fields["value"]
    return brokers, settings


def bundled(comparisons: Sequence[Comparison]) -> List[Bundle]:
    """Return the comparisons in as few bundles as possible."""
    members: Dict[Tuple[str, str, Tuple[str, ...]], List[Comparison]] = {}
    for comparison in comparisons:
        members.setdefault((comparison.left, comparison.relation, comparison.kinds), []).append(comparison)
    return [Bundle(*shared, tuple(found)) for shared, found in members.items()]


class Unequal:
    """The keys that are unequal in a comparison of `bundles`.

    :ivar equal: {(bundle number, kind): number of keys} that are equal in all comparisons of the bundle
    :ivar ids: of the unequal keys, ordered
    :ivar bundles: as given
    """

    def __init__(
        self,
        rows: DataFrame,
        bundles: Sequence[Bundle],
        copies: Mapping[str, Copy] | None = None,
        files: Sequence[Tuple[str, str]] = (),
    ) -> None:
        self._copies, self._files = copies or {}, files
        self._rows = rows
        self.bundles = bundles
        self.equal: Dict[Tuple[int, str], int] = {}
        self.ids: List[int] = []
        if bundles:
            self._keys = _by_key(self._rows, bundles, self._copies)
            unequal = F.collect_list(F.when(~F.col("all_equal"), F.col("id"))).alias("ids")
            self.equal, found = self._counts(self._keys, F.col("all_equal"), True, unequal)
            self.ids = sorted(number for row in found for number in row.ids)

    def entities(self, ids: Sequence[int]) -> Tuple[Dict[Key, Dict[str, Entity]], List[str]]:
        """Return {key: {view: entity}} of these keys, and a sentence for each entity that arrived twice."""
        found: Dict[Key, Dict[str, Entity]] = {}
        buckets_of: Dict[Tuple[Key, str], int | None] = {}  # other views' rows have none
        twice = []
        for row in self._rows_of(ids) if ids else ():
            entity = entity_of(row)
            views = found.setdefault((entity.kind, entity.key), {})
            if row.view in views:
                twice.append(f"{row.view}: {entity.kind} {readable_key(entity.kind, entity.key)} arrived twice")
            views[row.view] = entity
            buckets_of[((entity.kind, entity.key), row.view)] = row.bucket
        for key, views in found.items():
            for name, copy in self._copies.items():
                if copy.of in views and buckets_of[(key, copy.of)] not in copy.own:
                    views[name] = views[copy.of]
        return found, twice

    def counts(self, ids: Sequence[int], equal: bool) -> Dict[Tuple[int, str], int]:
        """Return {(bundle number, kind): number of keys} of these keys that are equal, or unequal, in the bundle."""
        return self._counts(self._of(self._keys, ids), F.lit(True), equal)[0] if ids else {}

    def _rows_of(self, ids):
        """Return the rows of these keys. Where the driver has their files it finds the few rows by the column of ids:
        Spark would convert each row of the row groups."""
        if not self._files:
            return self._of(self._rows, ids).collect()
        wanted = pa.array(ids, pa.int64())
        found: List[Dict[str, Any]] = []
        for _view, path in self._files:
            for of_group, table in row_groups(path):
                is_wanted = pc.is_in(of_group, wanted)
                if pc.any(is_wanted).as_py():
                    found += table().filter(is_wanted).to_pylist()
        return [Row(**row) for row in found]

    def _of(self, rows, ids):
        named = rows.sparkSession.createDataFrame([(number,) for number in ids], "id bigint")
        return rows.join(F.broadcast(named), "id", "left_semi")

    def _counts(self, keys, counts, equal, *more):
        numbers = range(len(self.bundles))
        sums = [F.count_if(counts & (F.col(f"equal_{n}") == equal)).alias(f"n_{n}") for n in numbers]
        rows = keys.groupBy("of_kind").agg(*sums, *more).collect()
        kinds = _kinds(self.bundles)
        return {(n, kinds[row.of_kind]): row[f"n_{n}"] for row in rows for n in numbers if row[f"n_{n}"]}, rows


def _token(view: str, bundle: Bundle) -> int:
    """Return what a row of a view adds to its key in a bundle. A view that arrives twice must not stand for one that is
    missing, so each has a number of its own."""
    if view == bundle.left:
        return 1
    return zlib.crc32(view.encode()) if view in _rights(bundle) else 0


def _rights(bundle):
    return [member.right for member in bundle.members]


def _kinds(bundles):
    return sorted({kind for bundle in bundles for kind in bundle.kinds})


def _tokens(bundles: Sequence[Bundle], copies: Mapping[str, Copy]) -> Iterator[Tuple[str, str, List[int]]]:
    """Yield (view, kind, [what a row adds in each bundle]): the tokens of its view and of the view's copies."""
    names = {name for bundle in bundles for name in (bundle.left, *_rights(bundle))} | {
        copy.of for copy in copies.values()
    }
    stand_for = {name: [name, *(other for other, copy in copies.items() if copy.of == name)] for name in names}
    for view, kind in itertools.product(names, _kinds(bundles)):
        tokens = [
            sum(_token(name, bundle) for name in stand_for[view]) if kind in bundle.kinds else 0 for bundle in bundles
        ]
        if any(tokens):
            yield view, kind, tokens


def _with_tokens(rows: DataFrame, bundles: Sequence[Bundle], copies: Mapping[str, Copy]) -> DataFrame:
    """Return the rows that a bundle compares, with `of_kind`, the place of their kind in `_kinds`, and `views_N`, what
    a row adds in bundle N."""
    numbers, kinds = range(len(bundles)), _kinds(bundles)
    tokens = [(view, kind, kinds.index(kind), *of) for view, kind, of in _tokens(bundles, copies)]
    columns_of = ", ".join(f"views_{number} bigint" for number in numbers)
    table = rows.sparkSession.createDataFrame(tokens, f"view string, kind string, of_kind int, {columns_of}")
    rows = rows.join(F.broadcast(table), ["view", "kind"])
    less: Dict[Tuple[str, int], List[int]] = {}  # where copies have rows of their own
    for name, copy in copies.items():
        of_copy = [_token(name, bundle) for bundle in bundles]
        for bucket in copy.own:
            less[(copy.of, bucket)] = [*map(operator.add, less.get((copy.of, bucket), [0] * len(bundles)), of_copy)]
    if not less:
        return rows
    columns_of = ", ".join(f"less_{number} bigint" for number in numbers)
    listed = [(of, bucket, *of_copies) for (of, bucket), of_copies in less.items()]
    table = rows.sparkSession.createDataFrame(listed, f"view string, bucket short, {columns_of}")
    rows = rows.join(F.broadcast(table), ["view", "bucket"], "left")
    return rows.withColumns(
        {
            f"views_{number}": F.when(
                F.col(f"views_{number}") > 0, F.col(f"views_{number}") - F.coalesce(f"less_{number}", F.lit(0))
            ).otherwise(0)
            for number in numbers
        }
    )


def _by_key(rows, bundles, copies):
    """Return a row a key. `equal_N`: whether the views of bundle N agree, null where none has the key or the bundle
    does not compare its kind. `all_equal`: whether all bundles agree."""
    digests = sorted({bundle.relation for bundle in bundles})
    narrow = _with_tokens(rows.select("kind", "id", "check", "view", "bucket", *digests), bundles, copies)
    views_of = [f"views_{number}" for number in range(len(bundles))]
    aggregates, equal = [], []
    for number, bundle in enumerate(bundles):
        digest, views = F.col(bundle.relation), F.col(views_of[number])
        aggregates += [
            F.max(views > 0).alias(f"present_{number}"),
            F.sum(F.when(digest.isNotNull(), views)).alias(f"views_{number}"),
            F.min(F.when(views > 0, digest)).alias(f"low_{number}"),
            F.max(F.when(views > 0, digest)).alias(f"high_{number}"),
        ]
        expected = sum(_token(name, bundle) for name in (bundle.left, *_rights(bundle)))
        same = (
            F.col("is_one_key")
            & (F.col(f"views_{number}") == expected)
            & (F.col(f"low_{number}") == F.col(f"high_{number}"))
        )
        equal.append(F.when(F.col(f"present_{number}"), F.coalesce(same, F.lit(False))).alias(f"equal_{number}"))
    # A view has each key once, so an aggregation before the exchange would only make the rows wider
    shuffled = narrow.select("of_kind", "id", "check", *digests, *views_of).repartition("id", "of_kind")
    is_one_key = F.min("check") == F.max("check")
    by_key = shuffled.groupBy("id", "of_kind").agg(*aggregates, is_one_key.alias("is_one_key"))
    by_key = by_key.select("id", "of_kind", *equal)
    all_equal = functools.reduce(operator.and_, (F.coalesce(f"equal_{n}", F.lit(True)) for n in range(len(bundles))))
    return by_key.withColumn("all_equal", all_equal)


def entity_of(row: Row) -> Entity:
    """Return the entity of a row, see views.source."""
    if row.kind != "partition":
        return Entity(row.kind, row.key, dict(row.fields), json.loads(row.at))
    of = row.view.partition(":")[2] if family(row.view) == rules.BASELINE else row.view
    return partition(of, row, row.changed)
