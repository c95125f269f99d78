# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The comparison by digests against `compare`: a key is equal in Spark if and only if it matches there."""

from __future__ import annotations

import itertools
import json
import os
import pathlib
import random
import shutil
import tarfile

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.snapshots import metadata_snapshot
from quorumshift_spark import buckets, columns, parity, rules
from quorumshift_spark import normal_form as form
from quorumshift_spark.compare import MATCH, compare
from quorumshift_spark.rows import Copy, Rows, copies, readings
from quorumshift_spark.views import source
from quorumshift_spark.views.metadata_log import LogSource, MetadataLogView

from tests.spark import parity as parity_run
from tests.spark.parity import local_spark

pytestmark = pytest.mark.real
LEFT, RIGHT, BROKER, OTHER = "zookeeper", "metadata_log", "broker:1", "broker:2"
LOG_OF_OTHER, LOG_OF_THIRD = "metadata_log:102", "metadata_log:103"
VALUES = {
    "replicas": ([1, 2, 3], [3, 2, 1], [1, 2]),
    "adding": ([], [3], [2, 3]),
    "removing": ([], [3], [1, 3]),
    "isr": ([1, 2, 3], [1, 2], []),
    "leader": (1, -1, None),
    "leader_epoch": (0, 1, None),
    "recovery_state": (0, 1),
    "partition_epoch": (4, 5),
    "elr": ([], [1], [1, 2]),
    "last_known_elr": ([], [1], [2]),
    "directories": ([], ["A", "B"], ["A"]),
}


@pytest.fixture(scope="module")
def mount(tmp_path_factory):
    return tmp_path_factory.mktemp("mount")


@pytest.fixture(scope="module")
def spark(mount):
    with local_spark(**{"spark.hadoop.fs.viewfs.mounttable.tests.link./shared": mount.as_uri()}) as session:
        yield session


def rows(view, partitions, relations=rules.RELATIONS):
    """Return a batch of rows of a view from {partition: {column: value}}."""
    listed = [{"topic": "t", "partition": number, "at": 1, **values} for number, values in partitions.items()]
    return named(view, source._rows([pa.RecordBatch.from_pylist(listed, schema=columns.PARTITIONS)], relations, False))


def named(view, made):
    """Return rows as those of a view."""
    (batch,) = made.batches
    return batch.set_column(0, "view", pa.array([view] * len(batch))).cast(source.ROWS)


def compared(spark, batches, bundles, copies):
    table = pa.Table.from_batches(batches).combine_chunks()

    def of_ids(ids):
        return table.filter(pc.is_in(table["id"], pa.array(ids, pa.int64()))).to_pylist()

    return parity.Unequal(spark.createDataFrame(table), bundles, copies, of_ids)


def unequal(spark, batches, comparisons):
    found = compared(spark, batches, parity.bundled(comparisons), {})
    entities, twice = found.entities(found.ids)
    return entities, twice, found.equal


@pytest.mark.parametrize("relation", rules.RELATIONS)
def test_partitions_are_equal_exactly_where_they_match(spark, relation):
    """Among them are pairs that differ only in which list holds an id."""
    chance = random.Random(relation)
    sides = {LEFT: {}, RIGHT: {}}
    for number in range(3000):
        values = {name: chance.choice(given) for name, given in VALUES.items()}
        sides[LEFT][number] = values
        changed = chance.sample(sorted(VALUES), chance.choice((0, 1, 1, 2)))
        sides[RIGHT][number] = {**values, **{name: chance.choice(VALUES[name]) for name in changed}}
    comparison = rules.Comparison(LEFT, RIGHT, relation, ("partition",))
    found, _twice, equal = unequal(spark, [rows(view, of) for view, of in sides.items()], [comparison])
    fields = [name for name, _how in rules.compared_fields("partition", relation)]
    expected = {
        number for number in sides[LEFT] if any(sides[LEFT][number][n] != sides[RIGHT][number][n] for n in fields)
    }
    assert {form.key_of(key)[1] for _kind, key in found} == expected
    assert 500 < len(expected) < 2500 and equal == {(0, "partition"): 3000 - len(expected)}
    if relation == rules.LOGS:  # both sides of a log have every field, so that `compare` sees what the digests see
        for (kind, key), views in found.items():
            assert compare(comparison, kind, key, views[LEFT], views[RIGHT]).outcome != MATCH


def archived(tmp_path):
    """Return the source of a log of a real Kafka."""
    with tarfile.open(pathlib.Path(__file__).parents[1] / "unit/formats/data/metadata_log.tar.xz") as tar:
        tar.extractall(tmp_path)
    taken = metadata_snapshot.take(str(tmp_path / "__cluster_metadata-0"), str(tmp_path / "cut"))
    return LogSource(taken.end_offset, archive=taken.path, sha256=taken.sha256)


@pytest.mark.parametrize("apart", [False, True])
def test_the_logs_of_voters_are_read_once_where_they_are_the_same(spark, tmp_path, apart):
    given = archived(tmp_path)
    copied = given._replace(archive=shutil.copy(given.archive, str(tmp_path / "of-102.tar.gz")))
    digests = form.Digests(parity_run.DIGEST_KEY)
    leader = MetadataLogView(given, digests)
    views = {seen.name: seen for seen in (leader, MetadataLogView(copied, digests, LOG_OF_OTHER, leader))}
    read = Rows(spark, str(tmp_path))
    read.read(views.values(), {}, apart)
    found = readings(list(views), read.parts, read.copies, read.arrived())
    assert not [reading for reading in found.values() if reading.error or reading.lost]
    assert read.copies == {LOG_OF_OTHER: Copy(RIGHT, frozenset())}
    assert found[LOG_OF_OTHER].read == found[RIGHT].read and found[RIGHT].read["partition"] > 0
    comparisons = rules.plan("after_finalize", {name: view.kinds for name, view in views.items()} | {BROKER: ()})
    unequal = parity.Unequal(read.compared, parity.bundled(comparisons), read.copies, read.of_ids)
    assert not unequal.ids
    assert {kind: n for (_bundle, kind), n in unequal.equal.items()} == found[RIGHT].read
    for view in views.values():
        view.close()


@pytest.mark.parametrize("uri", [None, "viewfs://tests/shared"])
def test_what_is_written_is_read_back_and_shows_no_value(spark, tmp_path, mount, uri):
    """By tasks, or by Spark on another of Hadoop's file systems. The source has gone then."""
    given, place = archived(tmp_path), mount if uri else tmp_path / "shared"
    old, another = place / f"quorumshift-parity-{'0' * 16}", place / "quorumshift-parity-of-someone"
    for path in (old, another):
        path.mkdir(parents=True)
        os.utime(path, (1, 1))
    view = MetadataLogView(given, form.Digests(parity_run.DIGEST_KEY))
    read = Rows(spark, uri or str(place))
    read.read([view], {})
    view.close()
    os.unlink(given.archive)
    assert not old.exists()  # of a job that was killed
    assert read.arrived() == {RIGHT: dict(read.parts[RIGHT][0].counts)}
    rows = [row for table in read.tables([RIGHT]) for row in table.to_pylist()]
    topics = sorted(row["key"] for row in rows if row["kind"] == "topic")
    assert topics and len(rows) == sum(read.parts[RIGHT][0].counts.values())
    ids = [row["id"] for row in rows if row["kind"] == "topic"]
    assert sorted(row["key"] for row in read.of_ids(ids)) == topics
    assert {row["kind"] for row in read.of_kinds(["topic"])} == {"topic"}
    written = b"".join(path.read_bytes() for path in place.rglob("*.parquet"))
    assert written and not [key for key in topics if json.loads(key)[0].encode() in written]
    read.remove()
    assert [*place.iterdir()] == [another]


def test_a_view_that_arrives_twice_does_not_stand_for_one_that_is_missing(spark):
    partition = {0: {"replicas": [1], "isr": [1], "leader": 1, "leader_epoch": 0}}
    comparisons = [rules.Comparison(RIGHT, view, rules.SERVED, ("partition",)) for view in (BROKER, OTHER)]
    all_there = [rows(view, partition) for view in (RIGHT, BROKER, OTHER)]
    assert unequal(spark, all_there, comparisons)[0] == {}
    for batches in (
        [rows(RIGHT, partition), rows(BROKER, partition), rows(BROKER, partition)],
        [*all_there, rows(BROKER, partition)],
        [*all_there, rows(RIGHT, partition)],
    ):
        found, twice, _equal = unequal(spark, batches, comparisons)
        assert len(found) == len(twice) == 1 and "arrived twice" in twice[0]


def test_two_keys_with_one_id_are_two_keys(spark):
    """Of each, one view lacks it, and their values are the same."""
    values = {"replicas": [1], "isr": [1], "leader": 1, "leader_epoch": 0}
    comparison = rules.Comparison(LEFT, RIGHT, rules.ZOOKEEPER_LOG, ("partition",))
    batches = [_same(rows(view, {n: values}), "id") for n, view in enumerate((LEFT, RIGHT))]
    found, twice, _equal = unequal(spark, batches, [comparison])
    assert sorted((form.key_of(key)[1], list(views)) for (_kind, key), views in found.items()) == [
        (0, [LEFT]),
        (1, [RIGHT]),
    ]
    assert not twice
    batches = [_same(batch, "check") for batch in batches]
    assert unequal(spark, batches, [comparison])[0] == {}, "without the second hash they look like one"


def _same(batch, column):
    """Return rows of which each has the same hash of its key."""
    return batch.set_column(batch.schema.get_field_index(column), column, pa.array([7] * len(batch)))


def _brokers(partitions, brokers=12):
    """Return {view: partitions} of a log and brokers that agree."""
    values = {"replicas": [1, 2], "isr": [1, 2], "leader": 1, "leader_epoch": 5}
    return {
        view: {n: dict(values) for n in range(partitions)} for view in (RIGHT, *map("broker:{}".format, range(brokers)))
    }


def test_what_differs_on_one_of_many_brokers_is_found_alone(spark):
    """Also rows that are missing, extra or exchanged."""
    views = _brokers(partitions=500)
    views["broker:3"][17]["leader_epoch"] = 4
    views["broker:4"][18]["isr"] = [1]
    del views["broker:5"][19]
    views["broker:6"][900] = dict(views["broker:6"][0])
    views["broker:7"][20]["replicas"], views["broker:7"][21]["replicas"] = [2, 1], [1]
    del views[RIGHT][22]
    comparisons = [rules.Comparison(RIGHT, view, rules.SERVED, ("partition",)) for view in views if view != RIGHT]
    found = compared(spark, [rows(view, of) for view, of in views.items()], parity.bundled(comparisons), {})
    entities, twice = found.entities(found.ids)
    assert {form.key_of(key)[1] for _kind, key in entities} == {17, 18, 19, 900, 20, 21, 22} and not twice
    assert found.equal == {(0, "partition"): 494}
    assert found.counts(found.ids, False) == {(0, "partition"): 7} and found.counts(found.ids, True) == {}


@pytest.mark.parametrize("seed", range(3))
def test_brokers_that_stand_for_others_give_what_all_rows_give(spark, seed):
    """Of random brokers and voters' logs: some are the same, some differ in a few buckets, one has another leader."""
    chance = random.Random(seed)
    names = [f"broker:{number}" for number in range(12)]
    topics = [f"topic-{number}" for number in range(40)]
    base = {
        (topic, n): {"replicas": [1, 2], "isr": [1, 2], "leader": 1, "leader_epoch": 5}
        for topic in topics
        for n in (0, 1)
    }
    of = {
        view: {key: dict(value) for key, value in base.items()} for view in (RIGHT, LOG_OF_OTHER, LOG_OF_THIRD, *names)
    }
    for _change in range(12):
        view, key = chance.choice([RIGHT, LOG_OF_THIRD, *names[:8]]), chance.choice(list(base))
        if chance.random() < 0.3:
            of[view].pop(key, None)
        else:
            of[view][(key[0], chance.choice((key[1], 9)))] = {**base[key], "leader": chance.choice((1, 2))}
    of[LOG_OF_OTHER] = of[RIGHT]
    batches, parts = [], {}
    for view, partitions in of.items():
        listed = [{"topic": topic, "partition": n, **value} for (topic, n), value in partitions.items()]
        batch = pa.RecordBatch.from_pylist(listed, schema=columns.PARTITIONS)
        has_buckets = view != LOG_OF_OTHER
        made = source._rows([batch], rules.relations(view), has_buckets)
        of_view = {"digests": made.digests} if has_buckets else {"state": {"copy_of": RIGHT}}
        parts[view] = [source.Summary(0, 1, 0.0, **of_view)]
        batches.append(named(view, made))
    logs = (LOG_OF_OTHER, LOG_OF_THIRD)
    comparisons = [rules.Comparison(RIGHT, log, rules.LOGS, ("partition",)) for log in logs]
    comparisons += [rules.Comparison(RIGHT, name, rules.SERVED, ("partition",)) for name in names]
    comparisons += [rules.Comparison(names[0], name, rules.SERVED, ("partition",)) for name in names[1:]]
    bundles = parity.bundled(comparisons)
    instead = copies(parts, {**dict.fromkeys(names[1:], names[0]), LOG_OF_THIRD: RIGHT})
    assert len(instead) == 13 and any(copy.own - {buckets.OWN} for copy in instead.values())
    batches.reverse()  # the rows of stores last
    without = [batch.filter(pa.array(_is_kept(batch, instead))) for batch in batches]
    full, short = compared(spark, batches, bundles, {}), compared(spark, without, bundles, instead)
    assert full.ids and (short.ids, short.equal) == (full.ids, full.equal)
    assert short.entities(short.ids) == full.entities(full.ids)


def _is_kept(batch, copies):
    copy = copies.get(batch["view"][0].as_py())
    return [copy is None or row["bucket"] in copy.own for row in batch.to_pylist()]


def test_digests_find_what_a_comparison_of_every_key_finds(spark):
    """Random differences between stores, brokers and a baseline; of each bundle the equal keys are counted once."""
    chance = random.Random(7)
    base = {n: {name: chance.choice(given) for name, given in VALUES.items()} for n in range(400)}
    names = [LEFT, RIGHT, "baseline:metadata_log", *map("broker:{}".format, range(6))]
    views = {name: {n: dict(values) for n, values in base.items()} for name in names}
    for _change in range(60):
        view, key = views[chance.choice(names)], chance.randrange(430)
        if chance.random() < 0.3:
            view.pop(key, None)
        else:
            field = chance.choice(sorted(VALUES))
            view[key] = {**view.get(key, base[key % 400]), field: chance.choice(VALUES[field])}
    comparisons = [rules.Comparison(RIGHT, name, rules.SERVED, ("partition",)) for name in names[3:]]
    comparisons.append(rules.Comparison(LEFT, RIGHT, rules.ZOOKEEPER_LOG, ("partition",)))
    comparisons.append(rules.Comparison(names[2], RIGHT, rules.SINCE, ("partition",)))

    def differs(comparison, key):
        sides = [views[name].get(key) for name in (comparison.left, comparison.right)]
        fields = [field for field, _how in rules.compared_fields("partition", comparison.relation)]
        left, right = ([side.get(field) for field in fields] if side else None for side in sides)
        return left != right

    expected = {key for key in range(430) if any(differs(comparison, key) for comparison in comparisons)}
    batches = [rows(view, of) for view, of in views.items()]
    found, twice, equal = unequal(spark, batches, comparisons)
    assert {form.key_of(key)[1] for _kind, key in found} == expected and not twice
    bundles = parity.bundled(comparisons)
    assert len(bundles) == 3 and 20 < len(expected) < 60
    assert equal == {(n, "partition"): len(set(views[bundle.left]) - expected) for n, bundle in enumerate(bundles)}


def test_each_missing_side_is_unequal(spark):
    partition = {0: {"replicas": [1], "isr": [1], "leader": 1, "leader_epoch": 0}}
    comparison = rules.Comparison(LEFT, RIGHT, rules.ZOOKEEPER_LOG, ("partition",))
    for view in (LEFT, RIGHT):
        found = unequal(spark, [rows(view, partition)], [comparison])[0]
        assert [list(views) for views in found.values()] == [[view]]


def test_the_fields_of_a_partition_are_columns():
    names = {name for relation in rules.RELATIONS for name, _how in rules.compared_fields("partition", relation)}
    assert names <= set(itertools.chain(columns.PARTITIONS.names)) and names == set(VALUES)
