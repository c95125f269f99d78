# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hashes of rows: equal exactly where keys and the values that a relation compares are."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pyarrow as pa
import pytest
from quorumshift_spark import columns, hashes, rules
from quorumshift_spark.compare import projection

from tests.unit.spark import realistic

IDS = (None, [], [1], [2], [1, 2], [2, 1], [0], [0, 0], [-1])
VALUES = {
    "topic_id": (None, "A", "B"),
    "replicas": IDS,
    "adding": IDS,
    "removing": IDS,
    "isr": IDS,
    "leader": (None, -1, 0, 1, -(1 << 31)),
    "leader_epoch": (None, 0, 1),
    "recovery_state": (None, 0, 1),
    "partition_epoch": (None, 0, 1),
    "elr": IDS,
    "last_known_elr": IDS,
    "directories": (None, [], ["A"], ["B"], ["A", "B"], ["AB"]),
}


def partitions(rows):
    return pa.RecordBatch.from_pylist(rows, schema=columns.PARTITIONS)


def same(hashed):
    """Return which rows have the same hash, as a partition of their numbers."""
    groups = {}
    for number, value in enumerate(hashed):
        groups.setdefault(value, []).append(number)
    return sorted(groups.values())


@pytest.mark.parametrize("seed", range(4))
def test_partitions_have_the_same_hash_exactly_where_their_values_are_the_same(seed):
    chance = random.Random(seed)
    names = chance.sample(sorted(VALUES), 3)
    rows = [
        {"topic": chance.choice("ab"), "partition": chance.randrange(3), "at": chance.randrange(9)}
        | {name: chance.choice(VALUES[name]) for name in names}
        for _row in range(600)
    ]
    found = hashes.of_partitions(partitions(rows), rules.RELATIONS)
    keys = [(row["topic"], row["partition"]) for row in rows]
    assert same(found.id.tolist()) == same(found.check.tolist()) == same(keys)
    assert not set(found.id.tolist()) & set(found.check.tolist())
    assert same(found.row.tolist()) == same([(*key, *(str(row[n]) for n in names)) for key, row in zip(keys, rows)])
    for relation in rules.RELATIONS:
        fields = [name for name, _how in rules.compared_fields("partition", relation)]
        assert same(found.of[relation].to_pylist()) == same([str([row.get(name) for name in fields]) for row in rows])


def test_no_two_fields_with_small_numbers_have_the_sum_of_two_others():
    names, small = ("leader", "leader_epoch", "recovery_state", "partition_epoch"), range(-2, 6)
    rows = [
        {"topic": "a", "partition": 0} | dict(zip(names, numbers)) for numbers in itertools.product(small, repeat=4)
    ]
    found = hashes.of_partitions(partitions(rows), rules.RELATIONS)
    assert len(np.unique(found.row)) == len(rows)
    for relation in rules.RELATIONS:
        fields = [name for name, _how in rules.compared_fields("partition", relation) if name in names]
        compared = {tuple(row[name] for name in fields) for row in rows}
        assert len(np.unique(found.of[relation])) == len(compared)


def test_lists_of_a_slice_are_hashed_as_those_of_a_whole():
    rows = [{"topic": "a", "partition": n, "replicas": [n], "isr": [n, 1], "directories": ["A"]} for n in range(9)]
    whole = hashes.of_partitions(partitions(rows), rules.RELATIONS)
    part = hashes.of_partitions(partitions(rows).slice(4), rules.RELATIONS)
    assert (part.row == whole.row[4:]).all() and (part.id == whole.id[4:]).all()
    assert all(part.of[name] == whole.of[name][4:] for name in rules.RELATIONS)


def test_entities_have_the_hashes_of_their_keys_and_of_what_a_relation_compares():
    entities = [entity for entity in realistic.entities() if entity.kind != "partition"]
    found = hashes.of_entities(entities, rules.RELATIONS)
    assert same(found.id.tolist()) == same(found.check.tolist()) == same([entity[:2] for entity in entities])
    assert len(np.unique(found.row)) == len({repr(entity[:3]) for entity in entities})
    undecided = set()
    for relation in rules.RELATIONS:
        texts = [projection(relation, entity.kind, entity.fields) for entity in entities]
        assert same(found.of[relation].to_pylist()) == same(texts)
        assert [value is None for value in found.of[relation].to_pylist()] == [text is None for text in texts]
        undecided |= {relation for text in texts if text is None}
    assert undecided


def test_a_view_has_the_hashes_of_the_relations_in_which_it_is_compared():
    kinds = dict.fromkeys(VIEWS, ("topic", "partition", "token_hmac"))
    for gate in rules.GATES:
        for in_zookeeper_mode in ([], ["broker:1"]):
            for comparison in rules.plan(gate, kinds, in_zookeeper_mode):
                for name in (comparison.left, comparison.right):
                    assert comparison.relation in rules.relations(name)


VIEWS = (
    "zookeeper",
    "metadata_log",
    "metadata_log:102",
    "broker:1",
    "broker:2",
    "controller:101",
    "baseline:zookeeper",
    "baseline:metadata_log",
)
