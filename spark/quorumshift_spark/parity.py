# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The comparison in Spark: one aggregation by key over all views finds the keys that are not plainly equal.

Those, as a rule a handful, go through `compare` on the driver; all others are equal by their values in every
comparison that concerns them. Rows are those of views.source.
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
    """What came of reading a view. `read`: {kind: rows that arrived}; `state` merged over its parts; `error`: why it
    could not be read; `lost`: contradictions between what its parts say they gave and what arrived."""

    read: Dict[str, int]
    state: Dict[str, Any]
    problems: List[Tuple[str, str]]
    seconds: float
    error: str | None
    lost: List[str]


class Group(NamedTuple):
    """Comparisons with the same left view, relation and kinds: one look at a key serves them all."""

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
    reported: Dict[str, Dict[int, Dict[str, Any]]] = {name: {} for name in names}
    for row in rows.filter("kind = ''").select("view", "key", "fields").collect():
        reported[row.view][int(row.key)] = source.reported(row.fields)
    return {name: _reading(arrived[name], reported[name], lost[name]) for name in names}


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
    """The comparisons, bundled for as few columns as possible."""
    found: Dict[Tuple[str, str, Tuple[str, ...]], List[Comparison]] = {}
    for comparison in comparisons:
        found.setdefault((comparison.left, comparison.relation, comparison.kinds), []).append(comparison)
    return [Group(*key, tuple(members)) for key, members in found.items()]


def unequal(rows: DataFrame, bundles: Sequence[Group], limit: int) -> Unequal:
    """The keys that are not plainly equal in some comparison, with all that the views say of them."""
    if not bundles:
        return Unequal({}, {}, {})
    keys = _by_key(rows, bundles).persist()
    try:
        differing = keys.filter("not whole")
        picked = {(row.kind, row.key): {} for row in differing.select("kind", "key").sort("kind", "key").take(limit)}
        if not picked:
            return Unequal({}, _counts(keys, bundles)[True], {})
        named = F.broadcast(rows.sparkSession.createDataFrame(list(picked), "kind string, key string"))
        others = keys.filter("whole") if len(picked) < limit else keys.join(named, ["kind", "key"], "left_anti")
        counts = _counts(others, bundles)
        found = rows.join(named, ["kind", "key"], "left_semi").select("view", "kind", "key", "fields", "at")
        for row in found.toLocalIterator():
            picked[(row.kind, row.key)][row.view] = Entity(row.kind, row.key, dict(row.fields), json.loads(row.at))
        return Unequal(picked, counts[True], counts[False])
    finally:
        keys.unpersist()


def _by_key(rows, bundles):
    """A row a key: `equal_N`, whether all views of bundle N agree, null where none of them has the key or the kind is
    not the bundle's; `whole`, whether all bundles agree."""
    messages, equal = [], []
    for number, bundle in enumerate(bundles):
        column = F.col(f"as_{bundle.relation}")
        of_kind, rights = F.col("kind").isin(*bundle.kinds), [member.right for member in bundle.members]
        ours, theirs = of_kind & (F.col("view") == bundle.left), of_kind & F.col("view").isin(*rights)
        messages += [
            F.max(ours | theirs).alias(f"there_{number}"),
            F.max(F.when(ours, column)).alias(f"ours_{number}"),
            F.count(F.when(theirs, column)).alias(f"told_{number}"),
            F.min(F.when(theirs, column)).alias(f"low_{number}"),
            F.max(F.when(theirs, column)).alias(f"high_{number}"),
        ]
        # A projection that is null tells nothing: such a row is in no count, and makes the key unequal
        same = f"told_{number} = {len(rights)} and low_{number} = ours_{number} and high_{number} = ours_{number}"
        equal.append(F.expr(f"if(there_{number}, coalesce({same}, false), null)").alias(f"equal_{number}"))
    by_key = rows.filter("kind != ''").groupBy("kind", "key").agg(*messages).select("kind", "key", *equal)
    whole = functools.reduce(operator.and_, (F.coalesce(f"equal_{n}", F.lit(True)) for n in range(len(bundles))))
    return by_key.withColumn("whole", whole)


def _counts(keys, bundles):
    """{equal: {(bundle number, kind): keys}}."""
    numbers = range(len(bundles))
    sums = [F.count_if(F.col(f"equal_{n}") == equal).alias(f"{n}_{equal}") for n in numbers for equal in (True, False)]
    found: Dict[bool, Dict[Tuple[int, str], int]] = {True: {}, False: {}}
    for row in keys.groupBy("kind").agg(*sums).collect():
        for equal, counts in found.items():
            counts.update({(n, row.kind): row[f"{n}_{equal}"] for n in numbers if row[f"{n}_{equal}"]})
    return found
