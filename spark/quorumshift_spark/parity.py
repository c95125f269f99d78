# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The comparison in Spark: one aggregation by key over all views finds the keys whose values are not equal.

These keys, usually few, go through `compare` on the driver. All others are equal in every comparison of their kind.
Rows are those of views.source.
"""

from __future__ import annotations

import functools
import json
import operator
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from quorumshift_spark.normal_form import Entity
from quorumshift_spark.rules import Comparison
from quorumshift_spark.views import Key, source


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


class Unequal(NamedTuple):
    """`keys`: {key: {view: entity}} of unequal keys, up to the limit; `equal`: {(bundle number, kind): number of equal
    keys}; `beyond`: the same for unequal keys beyond the limit."""

    keys: Dict[Key, Dict[str, Entity]]
    equal: Dict[Tuple[int, str], int]
    beyond: Dict[Tuple[int, str], int]


def read(spark: SparkSession, job_file: str) -> DataFrame:
    """Return the rows of all views, persisted."""
    spark.dataSource.register(source.ViewsSource)
    return spark.read.format(source.NAME).option("input", job_file).load().persist()


def readings(rows: DataFrame, names: Sequence[str]) -> Dict[str, Reading]:
    """Return the outcome for each view, with its arrived rows checked against the counts of its parts."""
    by_key = rows.filter("kind != ''").groupBy("view", "kind", "key").count()
    arrived: Dict[str, Dict[str, int]] = {name: {} for name in names}
    lost: Dict[str, List[str]] = {name: [] for name in names}
    for row in by_key.groupBy("view", "kind").agg(F.sum("count").alias("n"), F.count("*").alias("keys")).collect():
        arrived[row.view][row.kind] = row.n
        if row.n != row["keys"]:
            lost[row.view].append(f"{row.n - row['keys']} of {row.n} {row.kind} rows arrived twice")
    parts: Dict[str, Dict[int, Dict[str, Any]]] = {name: {} for name in names}
    for row in rows.filter("kind = ''").select("view", "key", "fields").collect():
        parts[row.view][int(row.key)] = source.part_summary(row.fields)
    return {name: _reading(arrived[name], parts[name], lost[name]) for name in names}


def _reading(arrived, parts, lost):
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
    return merged


def bundled(comparisons: Sequence[Comparison]) -> List[Bundle]:
    """Return the comparisons in as few bundles as possible."""
    members: Dict[Tuple[str, str, Tuple[str, ...]], List[Comparison]] = {}
    for comparison in comparisons:
        members.setdefault((comparison.left, comparison.relation, comparison.kinds), []).append(comparison)
    return [Bundle(*shared, tuple(found)) for shared, found in members.items()]


def unequal(rows: DataFrame, bundles: Sequence[Bundle], limit: int) -> Unequal:
    """Return the keys that are unequal in a comparison, with the entity of each view."""
    if not bundles:
        return Unequal({}, {}, {})
    keys = _by_key(rows, bundles).persist()
    try:
        differing = keys.filter("not all_equal")
        picked = {(row.kind, row.key): {} for row in differing.select("kind", "key").sort("kind", "key").take(limit)}
        if not picked:
            return Unequal({}, _counts(keys, bundles)[True], {})
        named = F.broadcast(rows.sparkSession.createDataFrame(list(picked), "kind string, key string"))
        others = keys.filter("all_equal") if len(picked) < limit else keys.join(named, ["kind", "key"], "left_anti")
        counts = _counts(others, bundles)
        found = rows.join(named, ["kind", "key"], "left_semi").select("view", "kind", "key", "fields", "at")
        for row in found.toLocalIterator():
            picked[(row.kind, row.key)][row.view] = Entity(row.kind, row.key, dict(row.fields), json.loads(row.at))
        return Unequal(picked, counts[True], counts[False])
    finally:
        keys.unpersist()


def _by_key(rows, bundles):
    """Return a row a key. `equal_N`: whether the views of bundle N agree, null where none has the key or the bundle
    does not compare its kind. `all_equal`: whether all bundles agree."""
    aggregates, equal = [], []
    for number, bundle in enumerate(bundles):
        column = F.col(f"as_{bundle.relation}")
        of_kind, rights = F.col("kind").isin(*bundle.kinds), [member.right for member in bundle.members]
        ours, theirs = of_kind & (F.col("view") == bundle.left), of_kind & F.col("view").isin(*rights)
        aggregates += [
            F.max(ours | theirs).alias(f"present_{number}"),
            F.max(F.when(ours, column)).alias(f"ours_{number}"),
            F.count(F.when(theirs, column)).alias(f"count_{number}"),
            F.min(F.when(theirs, column)).alias(f"low_{number}"),
            F.max(F.when(theirs, column)).alias(f"high_{number}"),
        ]
        # A null projection is not counted, which makes the key unequal
        same = f"count_{number} = {len(rights)} and low_{number} = ours_{number} and high_{number} = ours_{number}"
        equal.append(F.expr(f"if(present_{number}, coalesce({same}, false), null)").alias(f"equal_{number}"))
    by_key = rows.filter("kind != ''").groupBy("kind", "key").agg(*aggregates).select("kind", "key", *equal)
    all_equal = functools.reduce(operator.and_, (F.coalesce(f"equal_{n}", F.lit(True)) for n in range(len(bundles))))
    return by_key.withColumn("all_equal", all_equal)


def _counts(keys, bundles):
    """Return {equal or not: {(bundle number, kind): number of keys}}."""
    numbers = range(len(bundles))
    sums = [F.count_if(F.col(f"equal_{n}") == equal).alias(f"{n}_{equal}") for n in numbers for equal in (True, False)]
    found: Dict[bool, Dict[Tuple[int, str], int]] = {True: {}, False: {}}
    for row in keys.groupBy("kind").agg(*sums).collect():
        for equal, counts in found.items():
            counts.update({(n, row.kind): row[f"{n}_{equal}"] for n in numbers if row[f"{n}_{equal}"]})
    return found
