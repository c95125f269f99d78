# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The comparison in Spark: one aggregation by key, over digests of 64 bits, finds the keys that are not equal.

These keys, usually few, go through `compare` on the driver. All others are equal in every comparison of their kind.
Rows are those of views.source.
"""

from __future__ import annotations

import functools
import json
import operator
import os
import shutil
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Tuple

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from quorumshift_spark import columns, replay, rules
from quorumshift_spark import normal_form as form
from quorumshift_spark.normal_form import Entity, readable_key
from quorumshift_spark.rules import Comparison
from quorumshift_spark.views import Key, family, source


class Reading(NamedTuple):
    """The outcome of reading a view. `read`: {kind: rows that arrived}; `state`: merged over its parts; `error`: why it
    could not be read, or None; `lost`: where the rows that arrived contradict the counts of its parts."""

    read: Dict[str, int]
    state: Dict[str, Any]
    problems: List[Tuple[str, str]]
    seconds: float
    error: str | None
    lost: List[str]


class Bundle(NamedTuple):
    """Comparisons with the same left view, relation and kinds, which share columns of the aggregation."""

    left: str
    relation: str
    kinds: Tuple[str, ...]
    members: Tuple[Comparison, ...]


def read(spark: SparkSession, job_file: str, directory: str | None) -> Tuple[DataFrame, List[Row]]:
    """Return the raw rows of all views, each read once, and the last row of each part.

    :arg directory: where they are stored, if executors share it; else Spark keeps them, on two executors if it can.
    """
    spark.dataSource.register(source.ViewsSource)
    views = spark.read.format(source.NAME).option("input", job_file)
    if spark.sparkContext.master.startswith("local"):  # elsewhere executors may come and go
        views = views.option("at_once", spark.sparkContext.defaultParallelism)
    if directory is None:
        rows = views.load().persist(StorageLevel.MEMORY_AND_DISK_2)
        return rows.filter("kind != ''"), rows.filter("kind = ''").select("view", "key", "fields").collect()
    shutil.rmtree(directory, ignore_errors=True)  # of a job that was killed
    os.makedirs(directory, 0o700)
    last = views.option("directory", directory).load().select("view", "key", "fields").collect()
    return spark.read.schema(from_arrow_schema(source.ROWS)).parquet(directory), last


def readings(raw: DataFrame, last: Sequence[Row], names: Sequence[str]) -> Dict[str, Reading]:
    """Return the outcome for each view, with its arrived rows checked against the counts of its parts."""
    arrived: Dict[str, Dict[str, int]] = {name: {} for name in names}
    for row in raw.groupBy("view", "kind").count().collect():
        arrived[row.view][row.kind] = row["count"]
    parts: Dict[str, Dict[int, Dict[str, Any]]] = {name: {} for name in names}
    for row in last:
        parts[row.view][int(row.key)] = source.part_summary(row.fields)
    return {name: _reading(arrived[name], parts[name]) for name in names}


def replayed(raw: DataFrame, found: Mapping[str, Reading]) -> Tuple[DataFrame, Dict[str, Reading]]:
    """Return the rows with the partitions of metadata logs in place of their records, and the readings of them."""
    result = replay.replay(raw)
    rows = raw.filter(~F.col("kind").isin(*replay.RAW)).unionByName(result.partitions)
    readings = {}
    for name, reading in found.items():
        read = {kind: count for kind, count in reading.read.items() if kind not in replay.RAW}
        if name in result.counts:
            read["partition"] = result.counts[name]
        readings[name] = reading._replace(read=read, error=result.rejected.get(name))
    return rows, readings


def _reading(arrived, parts):
    lost: List[str] = []
    errors = [part["error"] for part in parts.values() if "error" in part]
    seconds = max((part["seconds"] for part in parts.values()), default=0.0)
    if errors:
        return Reading(arrived, {}, [], seconds, errors[0], lost)
    of = next((part["of"] for part in parts.values()), 0)
    if not of or len(parts) != of:
        return Reading(arrived, {}, [], seconds, f"{len(parts)} of {of or 'its'} parts were read to the end", lost)
    yielded: Dict[str, int] = {}
    for part in parts.values():
        for kind, count in part["counts"].items():
            yielded[kind] = yielded.get(kind, 0) + count
    for kind in sorted({*yielded, *arrived}):
        if yielded.get(kind, 0) != arrived.get(kind, 0):
            lost.append(f"{yielded.get(kind, 0)} {kind} rows were read and {arrived.get(kind, 0)} arrived")
    problems = sorted({tuple(problem) for part in parts.values() for problem in part["problems"]})
    return Reading(arrived, _merged([part["state"] for part in parts.values()]), problems, seconds, None, lost)


def _merged(states):
    """Return the state of a view that is read in parts: the position at which the first part began."""
    merged = dict(states[0])
    for state in states[1:]:
        merged.update({name: min(merged[name], state[name]) for name in ("zxid", "offset") if name in state})
        if "deletions" in state:
            merged["deletions"] = {**merged["deletions"], **state["deletions"]}
        if "pace" in state:
            pace = merged["pace"]
            merged["pace"] = {
                name: max(pace[name], value) if name == "slowest_ms" else round(pace[name] + value, 3)
                for name, value in state["pace"].items()
            }
    return merged


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

    def __init__(self, rows: DataFrame, bundles: Sequence[Bundle]) -> None:
        self._rows = rows.withColumn("id", _id())
        self.bundles = bundles
        self.equal: Dict[Tuple[int, str], int] = {}
        self.ids: List[int] = []
        if bundles:
            self._keys = _by_key(self._rows, bundles)
            unequal = F.collect_list(F.when(~F.col("all_equal"), F.col("id"))).alias("ids")
            self.equal, found = self._counts(self._keys, F.col("all_equal"), True, unequal)
            self.ids = sorted(one for row in found for one in row.ids)

    def entities(self, ids: Sequence[int]) -> Tuple[Dict[Key, Dict[str, Entity]], List[str]]:
        """Return {key: {view: entity}} of these keys, and a sentence for each entity that arrived twice."""
        found: Dict[Key, Dict[str, Entity]] = {}
        twice = []
        for row in self._of(self._rows, ids).collect() if ids else ():
            entity = entity_of(row)
            views = found.setdefault((entity.kind, entity.key), {})
            if row.view in views:
                twice.append(f"{row.view}: {entity.kind} {readable_key(entity.kind, entity.key)} arrived twice")
            views[row.view] = entity
        return found, twice

    def counts(self, ids: Sequence[int], equal: bool) -> Dict[Tuple[int, str], int]:
        """Return {(bundle number, kind): number of keys} of these keys that are equal, or unequal, in the bundle."""
        return self._counts(self._of(self._keys, ids), F.lit(True), equal)[0] if ids else {}

    def _of(self, rows, ids):
        named = rows.sparkSession.createDataFrame([(one,) for one in ids], "id bigint")
        return rows.join(F.broadcast(named), "id", "left_semi")

    def _counts(self, keys, counts, equal, *more):
        numbers = range(len(self.bundles))
        sums = [F.count_if(counts & (F.col(f"equal_{n}") == equal)).alias(f"n_{n}") for n in numbers]
        rows = keys.groupBy("kind").agg(*sums, *more).collect()
        return {(n, row.kind): row[f"n_{n}"] for row in rows for n in numbers if row[f"n_{n}"]}, rows


_NO_VALUE = -(1 << 31)
_LISTS = {field.name for field in columns.PARTITIONS if pa.types.is_list(field.type)}


def _id():
    """Return 64 bits of a key. Two keys with the same id are unequal, since their views' tokens add up to more, and
    `compare` sees each by itself."""
    return F.xxhash64("kind", F.coalesce("key", "topic"), F.coalesce("partition", F.lit(-1)))


def _digest(relation: str):
    """Return 64 bits of the values that a relation compares, null where they do not decide (compare.projection)."""
    parts = []
    for name, _how in rules.compared_fields("partition", relation):
        none = F.lit(_NO_VALUE)  # xxhash64 skips nulls
        if name in _LISTS:
            # ... and hashes lists as their elements: without the size, [1], [2] would equal [1, 2], []
            parts += [F.size(name), F.coalesce(F.col(name), F.array(none))]
        else:
            parts.append(F.coalesce(F.col(name), none))
    text = F.col(f"as_{relation}")
    typed, generic = F.xxhash64(*parts), F.when(text.isNotNull(), F.xxhash64(text))
    return F.when(F.col("kind") == "partition", typed).otherwise(generic)


def _by_key(rows, bundles):
    """Return a row a key. `equal_N`: whether the views of bundle N agree, null where none has the key or the bundle
    does not compare its kind. `all_equal`: whether all bundles agree."""
    digests = {bundle.relation: _digest(bundle.relation).alias(bundle.relation) for bundle in bundles}
    narrow = rows.select("kind", "id", "view", *digests.values())
    aggregates, equal = [], []
    for number, bundle in enumerate(bundles):
        digest = F.col(bundle.relation)
        of_kind, rights = F.col("kind").isin(*bundle.kinds), [member.right for member in bundle.members]
        ours, theirs = of_kind & (F.col("view") == bundle.left), of_kind & F.col("view").isin(*rights)
        aggregates += [
            F.max(ours | theirs).alias(f"present_{number}"),
            # A view that arrives twice must not stand for one that is missing: each adds a number of its own
            F.sum(F.when(digest.isNotNull(), F.when(ours, 1).when(theirs, _token("view")))).alias(f"views_{number}"),
            F.min(F.when(ours | theirs, digest)).alias(f"low_{number}"),
            F.max(F.when(ours | theirs, digest)).alias(f"high_{number}"),
        ]
        expected = F.lit(1) + functools.reduce(operator.add, (_token(F.lit(name)) for name in rights))
        same = (F.col(f"views_{number}") == expected) & (F.col(f"low_{number}") == F.col(f"high_{number}"))
        equal.append(F.when(F.col(f"present_{number}"), F.coalesce(same, F.lit(False))).alias(f"equal_{number}"))
    by_key = narrow.groupBy("kind", "id").agg(*aggregates).select("kind", "id", *equal)
    all_equal = functools.reduce(operator.and_, (F.coalesce(f"equal_{n}", F.lit(True)) for n in range(len(bundles))))
    return by_key.withColumn("all_equal", all_equal)


def _token(view):
    # 40 bits, so that the sum of thousands does not overflow
    return F.shiftrightunsigned(F.xxhash64(view), 24)


def entity_of(row: Row) -> Entity:
    """Return the entity of a row, see views.source."""
    if row.kind != "partition":
        return Entity(row.kind, row.key, dict(row.fields), json.loads(row.at))
    of = row.view.partition(":")[2] if family(row.view) == rules.BASELINE else row.view
    values = {name: row[name] for name in form.FIELDS["partition"]}
    if family(of) == rules.BROKER:  # it leaves out what it does not show
        return form.partition(row.topic, row.partition, {name: one for name, one in values.items() if one is not None})
    if of == rules.ZOOKEEPER:
        values = {name: one for name, one in values.items() if name not in _OF_KRAFT}
    at = {} if row.changed is None else {"zxid" if of == rules.ZOOKEEPER else "offset": row.changed}
    return form.partition(row.topic, row.partition, values, at)


_OF_KRAFT = ("elr", "last_known_elr")
