# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The comparison in Spark: a full outer join of the views' projections finds the keys that are not plainly equal.

Those, as a rule a handful, go through `compare` on the driver; all others are equal by their values in every
comparison that concerns them. Rows are those of views.source.
"""

from __future__ import annotations

import functools
import json
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from quorumshift_spark.normal_form import Entity
from quorumshift_spark.rules import Comparison
from quorumshift_spark.views import Key, source


class Reading(NamedTuple):
    """What came of reading a view. `read`: {kind: rows that arrived}; `state` merged over its parts; `error`: why it
    could not be read; `lost`: contradictions between what its parts say they gave and what arrived."""

    read: Dict[str, int]
    state: Dict[str, Any]
    problems: List[Tuple[str, str]]
    seconds: float
    error: str | None
    lost: List[str]


class Group(NamedTuple):
    """Comparisons with the same left view, relation and kinds: one join serves them all."""

    left: str
    relation: str
    kinds: Tuple[str, ...]
    members: Tuple[Comparison, ...]


class Unequal(NamedTuple):
    """`keys`: {key: {view: entity}} of the keys that are not plainly equal, as many as the limit lets through; `equal`
    and `beyond`: {(group number, kind): n} keys that are equal, and that are unequal beyond the limit."""

    keys: Dict[Key, Dict[str, Entity]]
    equal: Dict[Tuple[int, str], int]
    beyond: Dict[Tuple[int, str], int]


def read(spark: SparkSession, job_file: str) -> DataFrame:
    """Rows of all views, read once and kept until they are unpersisted."""
    spark.dataSource.register(source.ViewsSource)
    return spark.read.format(source.NAME).option("input", job_file).load().persist()


def readings(rows: DataFrame, names: Sequence[str]) -> Dict[str, Reading]:
    """How each view was read: the rows that arrived are counted and held against what its parts say they gave."""
    by_key = rows.filter("kind != ''").groupBy("view", "kind", "key").count()
    arrived: Dict[str, Dict[str, int]] = {name: {} for name in names}
    lost: Dict[str, List[str]] = {name: [] for name in names}
    for row in by_key.groupBy("view", "kind").agg(F.sum("count").alias("n"), F.count("*").alias("keys")).collect():
        arrived[row.view][row.kind] = row.n
        if row.n != row["keys"]:
            lost[row.view].append(f"{row.n - row['keys']} of {row.n} {row.kind} rows came twice")
    told: Dict[str, Dict[int, Dict[str, Any]]] = {name: {} for name in names}
    for row in rows.filter("kind = ''").select("view", "key", "fields").collect():
        told[row.view][int(row.key)] = source.told(row.fields)
    return {name: _reading(arrived[name], told[name], lost[name]) for name in names}


def _reading(arrived, parts, lost):
    errors = [part["error"] for part in parts.values() if "error" in part]
    seconds = max((part["seconds"] for part in parts.values()), default=0.0)
    if errors:
        return Reading(arrived, {}, [], seconds, errors[0], lost)
    of = next((part["of"] for part in parts.values()), 0)
    if not of or len(parts) != of:
        return Reading(arrived, {}, [], seconds, f"{len(parts)} of {of or 'its'} parts were read to the end", lost)
    given: Dict[str, int] = {}
    for part in parts.values():
        for kind, count in part["counts"].items():
            given[kind] = given.get(kind, 0) + count
    for kind in sorted({*given, *arrived}):
        if given.get(kind, 0) != arrived.get(kind, 0):
            lost.append(f"{given.get(kind, 0)} {kind} were read and {arrived.get(kind, 0)} arrived")
    problems = sorted({tuple(problem) for part in parts.values() for problem in part["problems"]})
    return Reading(arrived, _merged([part["state"] for part in parts.values()]), problems, seconds, None, lost)


def _merged(states):
    """The parts of a view are read one after another: it stood no later than where the first of them began."""
    merged = dict(states[0])
    for state in states[1:]:
        merged.update({name: min(merged[name], state[name]) for name in ("zxid", "offset") if name in state})
    return merged


def groups(comparisons: Sequence[Comparison]) -> List[Group]:
    """The comparisons, bundled for as few joins as possible."""
    found: Dict[Tuple[str, str, Tuple[str, ...]], List[Comparison]] = {}
    for comparison in comparisons:
        found.setdefault((comparison.left, comparison.relation, comparison.kinds), []).append(comparison)
    return [Group(*key, tuple(members)) for key, members in found.items()]


def unequal(rows: DataFrame, bundles: Sequence[Group], limit: int) -> Unequal:
    """The keys that are not plainly equal in some comparison, with all that the views say of them."""
    if not bundles:
        return Unequal({}, {}, {})
    joined = functools.reduce(DataFrame.unionByName, (_join(rows, n, group) for n, group in enumerate(bundles)))
    counts = _counts(joined)
    if all(equal for _bundle, _kind, equal in counts):
        return Unequal({}, {(bundle, kind): count for (bundle, kind, _equal), count in counts.items()}, {})
    differing = joined.filter("not equal").select("kind", "key").distinct().orderBy("kind", "key").limit(limit)
    keys: Dict[Key, Dict[str, Entity]] = {(row.kind, row.key): {} for row in differing.collect()}
    picked = F.broadcast(rows.sparkSession.createDataFrame(list(keys), "kind string, key string"))
    counts = _counts(joined.join(picked, ["kind", "key"], "left_anti"))
    found = rows.join(picked, ["kind", "key"], "left_semi").select("view", "kind", "key", "fields", "at")
    for row in found.toLocalIterator():
        entity = Entity(row.kind, row.key, dict(row.fields), json.loads(row.at))
        keys[(row.kind, row.key)][row.view] = entity
    equal, beyond = (
        {(bundle, kind): count for (bundle, kind, equal), count in counts.items() if equal is wanted}
        for wanted in (True, False)
    )
    return Unequal(keys, equal, beyond)


def _counts(joined):
    counted = joined.groupBy("bundle", "kind", "equal").count().collect()
    return {(row.bundle, row.kind, row.equal): row["count"] for row in counted}


def _join(rows, number, group):
    column = F.col(f"as_{group.relation}")
    of_kinds = rows.filter(F.col("kind").isin(*group.kinds))
    left = of_kinds.filter(F.col("view") == group.left).select("kind", "key", column.alias("ours"))
    right = (
        of_kinds.filter(F.col("view").isin(*[member.right for member in group.members]))
        .groupBy("kind", "key")
        .agg(F.count(column).alias("told"), F.min(column).alias("low"), F.max(column).alias("high"))
    )
    # A projection that is null tells nothing: such a row is in no count, and makes the key unequal
    equal = (F.col("told") == len(group.members)) & (F.col("low") == F.col("ours")) & (F.col("high") == F.col("ours"))
    joined = left.join(right, ["kind", "key"], "full")
    return joined.select(F.lit(number).alias("bundle"), "kind", "key", F.coalesce(equal, F.lit(False)).alias("equal"))
