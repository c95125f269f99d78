# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Digests by bucket: whatever differs between two brokers changes the digest of its bucket, the order does not."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from quorumshift_spark import buckets, columns, hashes
from quorumshift_spark.views import Shared, source

from tests.unit.spark import realistic

BASE = {
    "topic_id": "4LpVqrIhR8CPQPMTHVv-eQ",
    "replicas": [1, 2, 3],
    "isr": [1, 2],
    "leader": 1,
    "leader_epoch": 7,
}


def partitions(rows):
    return pa.RecordBatch.from_pylist(rows, schema=columns.PARTITIONS)


def rows(count=40):
    return [{"topic": f"t{n % 7}", "partition": n, **BASE, "leader": n % 3} for n in range(count)]


def different(left, other):
    """Return the buckets that differ."""
    return set(buckets.unlike(digests(left), digests(other)).tolist()) - {buckets.OWN}


def digests(batch):
    return buckets.digests(buckets.of_partitions(batch), hashes.of_partitions(batch, ()).row)


def digests_of(entities):
    return buckets.digests(buckets.of_entities(entities), hashes.of_entities(entities, ()).row)


@pytest.mark.parametrize(
    "change",
    [
        {"leader": 9},
        {"leader": None},
        {"leader_epoch": 8},
        {"isr": [1, 3]},
        {"isr": []},
        {"isr": None},
        {"replicas": [1, 3, 2]},
        {"replicas": [1, 2], "isr": [3, 1, 2]},
        {"topic_id": None},
        {"elr": []},
        {"partition": 900},
    ],
)
def test_a_changed_partition_changes_its_bucket_alone(change):
    changed = rows()
    changed[9] = {**changed[9], **change}
    bucket = int(buckets.of_partitions(partitions(rows()))[9])
    assert different(partitions(rows()), partitions(changed)) == {bucket}


def test_rows_that_exchange_values_or_are_missing_or_doubled_change_their_bucket():
    given = rows()
    swapped = [dict(row) for row in given]
    swapped[2]["leader"], swapped[9]["leader"] = given[9]["leader"], given[2]["leader"]  # of one topic
    assert given[2]["leader"] != given[9]["leader"]
    for other in (swapped, given[1:], [*given, given[0]]):
        assert len(different(partitions(given), partitions(other))) == 1
    shuffled = random.Random(1).sample(given, len(given))
    assert not different(partitions(given), partitions(shuffled))
    assert not different(partitions(given), partitions(given[:0])) - set(buckets.of_partitions(partitions(given)))


def test_only_dynamic_configs_of_one_broker_are_its_own():
    entities = [entity for entity in realistic.entities() if entity.kind != "partition"]
    found = buckets.of_entities(entities).tolist()
    own = [entity.key for entity, bucket in zip(entities, found) if bucket == buckets.OWN]
    assert own and all(key.startswith('["broker","') for key in own)
    for number in range(len(entities)):
        others = digests_of(entities[:number] + entities[number + 1 :])
        assert set(buckets.unlike(others, digests_of(entities))) == {found[number], buckets.OWN}


KEY = bytes(32)


class OneView:
    has_buckets = True

    def __init__(self, name, *items):
        self.name, self._items = name, items

    def read(self, part):
        yield from (*self._items, source.Statement({}, []))


def read(view, like=None):
    """Return the rows of a view, and its summary."""
    written = pa.Table.from_batches(source.batches(source.Part(view, 0, 1, None, like=like), KEY)).to_pylist()
    last = written.pop()
    sealed = [source.unseal(KEY, view.name, row["sealed"]).to_pylist() for row in written if row["sealed"]]
    found = [row for batch in sealed for row in batch]
    in_clear = [row for row in written if not row["sealed"]]
    assert [{name: row[name] for name in source.COMPARED} for row in found] == [
        {name: row[name] for name in source.COMPARED} for row in in_clear
    ]
    return found, source.summary(KEY, view.name, last["ended"])


def test_the_rows_of_shared_items_are_made_once_and_have_the_name_of_each_view():
    shared = Shared([*(entity for entity in realistic.entities() if entity.kind == "topic"), partitions(rows())])
    of = {name: read(OneView(name, shared)) for name in ("broker:1", "broker:2")}
    for name, (found, last) in of.items():
        assert {row["view"] for row in found} == {name} and len(found) == 42
        assert last.counts == last.kept == {"partition": 40, "topic": 2}
    assert (of["broker:1"][1].digests == of["broker:2"][1].digests).all()


def test_of_a_view_like_another_only_its_own_rows_and_those_of_unlike_buckets_are_kept():
    of_both = [entity for entity in realistic.entities() if entity.kind != "partition"]
    changed = rows()
    changed[9] = {**changed[9], "leader": 9}
    found, last = read(OneView("broker:1", *of_both, partitions(rows())))
    others, of_other = read(OneView("broker:2", *of_both, partitions(changed)), last.digests)
    unlike = set(buckets.unlike(last.digests, of_other.digests).tolist())
    assert len(unlike) == 2 and buckets.OWN in unlike
    assert of_other.counts == last.counts == last.kept
    assert sum(of_other.kept.values()) == len(others) == sum(row["bucket"] in unlike for row in found)
    assert [row["leader"] for row in others if row["partition"] == 9] == [9]
    own = [row["key"] for row in others if row["bucket"] == buckets.OWN]
    assert own == [row["key"] for row in found if row["bucket"] == buckets.OWN] and own
    everything, _last = read(OneView("broker:2", *of_both, partitions(changed)), buckets.none())
    assert len(everything) == len(found)
