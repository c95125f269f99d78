# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The comparison in Spark: one aggregation by key, over digests of 64 bits, finds the keys that are not equal.

These keys, usually few, go through `compare` on the driver. All others are equal in every comparison of their kind.
Rows are those of views.source.
"""

from __future__ import annotations

import functools
import itertools
import json
import operator
import zlib
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from quorumshift_spark import rules
from quorumshift_spark.normal_form import Entity, readable_key
from quorumshift_spark.rows import Copy, Rows
from quorumshift_spark.rules import Comparison
from quorumshift_spark.views import Key, family, partition


class Bundle(NamedTuple):
    """Comparisons with the same left view, relation and kinds, which share columns of the aggregation."""

    left: str
    relation: str
    kinds: Tuple[str, ...]
    members: Tuple[Comparison, ...]


class Registered(NamedTuple):
    """A broker in a store: `fields` as of an entity."""

    view: str
    id: int
    fields: Dict[str, str]


def of_nodes(rows: Rows) -> Tuple[List[Registered], Dict[str, Dict[str, str]]]:
    """Return the brokers in each store, and the settings of each node: {view: {key: value}}."""
    brokers: List[Registered] = []
    settings: Dict[str, Dict[str, str]] = {}
    for row in rows.of_kinds(("broker", "setting")):
        view, fields = row["view"], dict(row["fields"])
        if row["kind"] == "setting":
            copies = rows.copies.items()
            others = [name for name, copy in copies if copy.of == view and row["bucket"] not in copy.own]
            for name in (view, *others):
                settings.setdefault(name, {})[row["key"]] = fields["value"]
        elif view in (rules.ZOOKEEPER, rules.LOG):
            brokers.append(Registered(view, json.loads(row["key"])[0], fields))
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
        copies: Mapping[str, Copy],
        of_ids: Callable[[Sequence[int]], Iterable[Mapping[str, Any]]],
    ) -> None:
        """Compare.

        :arg rows: with the columns that are compared; `of_ids`: returns whole rows, both of rows.Rows.
        """
        self._copies, self._of_ids = copies, of_ids
        self.bundles = bundles
        self.equal: Dict[Tuple[int, str], int] = {}
        self.ids: List[int] = []
        if bundles:
            self._keys = _by_key(rows, bundles, copies)
            unequal = F.collect_list(F.when(~F.col("all_equal"), F.col("id"))).alias("ids")
            self.equal, found = self._counts(self._keys, F.col("all_equal"), True, unequal)
            self.ids = sorted(number for row in found for number in row.ids)

    def entities(self, ids: Sequence[int]) -> Tuple[Dict[Key, Dict[str, Entity]], List[str]]:
        """Return {key: {view: entity}} of these keys, and a sentence for each entity that arrived twice."""
        found: Dict[Key, Dict[str, Entity]] = {}
        buckets_of: Dict[Tuple[Key, str], int | None] = {}  # other views' rows have none
        twice = []
        for row in self._of_ids(ids):
            entity, view = entity_of(row), row["view"]
            views = found.setdefault((entity.kind, entity.key), {})
            if view in views:
                twice.append(f"{view}: {entity.kind} {readable_key(entity.kind, entity.key)} arrived twice")
            views[view] = entity
            buckets_of[((entity.kind, entity.key), view)] = row["bucket"]
        for key, views in found.items():
            for name, copy in self._copies.items():
                if copy.of in views and buckets_of[(key, copy.of)] not in copy.own:
                    views[name] = views[copy.of]
        return found, twice

    def counts(self, ids: Sequence[int], equal: bool) -> Dict[Tuple[int, str], int]:
        """Return {(bundle number, kind): number of keys} of these keys that are equal, or unequal, in the bundle."""
        if not ids:
            return {}
        named = self._keys.sparkSession.createDataFrame([(number,) for number in ids], "id bigint")
        return self._counts(self._keys.join(F.broadcast(named), "id", "left_semi"), F.lit(True), equal)[0]

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


def entity_of(row: Mapping[str, Any]) -> Entity:
    """Return the entity of a row, see views.source."""
    if row["kind"] != "partition":
        return Entity(row["kind"], row["key"], dict(row["fields"]), json.loads(row["at"]))
    of = row["view"].partition(":")[2] if family(row["view"]) == rules.BASELINE else row["view"]
    return partition(of, row, row["changed"])
