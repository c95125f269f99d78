# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The columns of topics and partitions in ZooKeeper against znode_items: the same items and problems."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znode_items, znodes
from quorumshift_spark.columns import PARTITIONS
from quorumshift_spark.columns import states as columns

from tests.unit.spark.columns import encoding

RECORDED = Path(__file__).parents[2] / "fixtures" / "kafka_3.9.2_znodes.jsonl.gz"


def node(path, data, mzxid=5, version=0):
    data = data.encode() if isinstance(data, str) else data
    return znodes.Znode(path, data, None, znodes.Stat(1, mzxid, 3, 4, version, 0, 0, 0, 0, 0, 1))


def compact(value):
    return json.dumps(value, separators=(",", ":"))


def topic(name, partitions, adding=None, removing=None, topic_id="cEDIUSPPQcuoexmykHjA-A", **options):
    """Return a topic's znode as Kafka writes it."""
    value = {"partitions": partitions, "topic_id": topic_id}
    value.update({"adding_replicas": adding or {}, "removing_replicas": removing or {}, "version": 3})
    return node(znodes.topic_path(name), compact(value), **options)


def state(name, number, isr=(1, 2), recovering=False, **options):
    """Return a state's znode as Kafka 3.9.2 writes it (TopicPartitionStateZNode.encode)."""
    value = {"controller_epoch": 9, "leader": 2, "version": 1}
    if recovering:
        value["leader_recovery_state"] = 1
    value.update({"leader_epoch": 7, "isr": list(isr)})
    return node(znodes.partition_state_path(name, number), compact(value), **options)


def generic(topics, states):
    """Return topics, partitions and problems of znode_items."""
    reader = znode_items.Reader()
    items = [item for each in (*topics, *states) for item in reader.items(each)] + list(reader.rest())
    found_topics = [
        {"topic": item.key[0], "topic_id": item.value["topic_id"], "created_ms": item.value["created_ms"]}
        | {"at": item.zxid}
        for item in items
        if item.kind == "topic"
    ]
    partitions = [
        {
            **dict.fromkeys(PARTITIONS.names),
            "topic": item.key[0],
            "topic_id": item.value["topic_id"],
            "partition": item.key[1],
            "replicas": item.value["replicas"],
            "adding": sorted(item.value["adding"]),
            "removing": sorted(item.value["removing"]),
            "isr": None if item.value["isr"] is None else sorted(item.value["isr"]),
            "leader": item.value["leader"],
            "leader_epoch": item.value["leader_epoch"],
            "recovery_state": item.value["leader_recovery_state"],
            "partition_epoch": item.value["version"],
            "at": item.zxid,
            "controller_epoch": item.value["controller_epoch"],
        }
        for item in items
        if item.kind == "partition"
    ]
    return found_topics, partitions, reader.problems


def by_columns(topics, states):
    found = columns.read_partitions(topics, states)
    assert (found.topics.schema, found.partitions.schema) == (columns.TOPICS, columns.ZOOKEEPER_PARTITIONS)
    for batch in (found.topics, found.partitions):
        batch.validate(full=True)
    return found.topics.to_pylist(), found.partitions.to_pylist(), found.problems


def assert_same(topics, states):
    found, expected = by_columns(topics, states), generic(topics, states)
    for ours, theirs in zip(found, expected):
        assert sorted(map(repr, ours)) == sorted(map(repr, theirs))


def test_recorded_znodes():
    found = [json.loads(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines()]
    read = [
        znodes.Znode(item["path"], item["data"]["text"].encode(), None, znodes.Stat(**item["stat"]))
        for item in found
        if znodes.kind(item.get("path", "")) in ("topic", "partition_state")
    ]
    topics = [each for each in read if znodes.kind(each.path) == "topic"]
    states = [each for each in read if znodes.kind(each.path) == "partition_state"]
    assert len(topics) > 2 and len(states) > 4
    assert_same(topics, states)


STATES = [
    lambda name, number, rng: state(name, number, encoding.ids(rng)[:9], mzxid=rng.randint(1, 9), version=3),
    lambda name, number, rng: state(name, number, recovering=True),
    lambda name, number, rng: node(
        znodes.partition_state_path(name, number),
        json.dumps({"version": 1, "leader": -1, "leader_epoch": "4", "controller_epoch": 7, "isr": [2]}),
    ),
]


def generated(rng):
    """Return topics and states, mostly as Kafka writes them."""
    topics, states = [], []
    for number in range(rng.randint(0, 8)):
        name = f"topic.{number}"
        partitions = {str(index): encoding.ids(rng)[:9] for index in range(rng.choice((0, 1, 3, 12)))}
        reassigned = {index: [5, 4] for index in partitions if rng.random() < 0.1}
        topic_id = None if rng.random() < 0.1 else encoding.uuid(rng)
        topics.append(topic(name, partitions, reassigned, {}, topic_id, mzxid=rng.randint(1, 9)))
        for index in [*partitions, "99"]:
            if rng.random() < 0.9:
                (made,) = rng.choices(STATES, [8, 1, 1])
                states.append(made(name, index, rng))
    rng.shuffle(states)
    return topics, states


@pytest.mark.parametrize("seed", range(60))
def test_generated_znodes(seed):
    assert_same(*generated(random.Random(seed)))


@pytest.mark.parametrize("seed", range(400))
def test_changed_bytes(seed):
    rng = random.Random(seed)
    topics, states = [topic("t", {"0": [1, 2], "1": [2, 3]})], [state("t", "0"), state("t", "1", recovering=True)]
    changed = topics if seed % 2 else states
    data = bytearray(changed[0].data)
    for _change in range(rng.choice((1, 1, 2))):
        at = rng.randrange(len(data))
        data[at : at + rng.randint(0, 1)] = rng.choice((b"", b"0", b"-", b" ", b'"', b",", b"}", b"\xff", b"\n", b"9"))
    changed[0] = changed[0]._replace(data=bytes(data))
    assert_same(topics, states)


@pytest.mark.parametrize(
    "data",
    [
        None,
        "",
        "{}",
        "null",
        "[" * 100000,
        '{"partitions":{"0":[1],"0":[2]},"topic_id":"a","adding_replicas":{},"removing_replicas":{},"version":3}',
        '{"partitions":{"0":[1]},"topic_id":"a","adding_replicas":[],"removing_replicas":{},"version":3}',
        '{"partitions":{"0":[true]},"topic_id":"a","adding_replicas":{},"removing_replicas":{},"version":3}',
        '{"partitions":{"00":[1],"0":[2]},"topic_id":"a","adding_replicas":{},"removing_replicas":{},"version":3}',
        '{"partitions":{"²":[1]},"topic_id":"a","adding_replicas":{},"removing_replicas":{},"version":3}',
        '{"version":1,"partitions":{"0":[1]}}',
    ],
)
def test_other_assignments(data):
    """Old, empty and malformed ones; the topics beside them are read all the same."""
    topics = [topic("a", {"0": [3]}), node(znodes.topic_path("t"), data), topic("z", {"0": [3], "1": [4]})]
    assert_same(topics, [state("t", "0"), state("t", "00"), state("z", "1")])


@pytest.mark.parametrize(
    "data",
    [
        None,
        "",
        "[]",
        '{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[]}',
        '{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[01]}',
        '{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}\n',
        '{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1.0]}',
        '{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":-0,"isr":[-0]}',
        '{"controller_epoch":1,"leader":null,"version":1,"leader_epoch":0,"isr":[1]}',
        '{"controller_epoch":1,"leader":2147483647,"version":1,"leader_epoch":0,"isr":[-2147483648]}',
    ],
)
def test_other_states(data):
    topics = [topic("t", {"0": [1], "1": [1]})]
    assert_same(topics, [node(znodes.partition_state_path("t", 0), data), state("t", 1)])


def test_numbers_that_do_not_fit_are_problems():
    """Kafka fails on them; znode_items returns them as they are."""
    topics = [topic("t", {"0": [1], "1": [1]}), topic("u", {"0": [1 << 31]})]
    large = state("t", 1, isr=[1 << 31])
    wrong = node(
        znodes.partition_state_path("t", 0), large.data.replace(b'"version":1', b'"leader_recovery_state":128')
    )
    found = columns.read_partitions(topics, [large, wrong])
    assert found.topics["topic"].to_pylist() == ["t"]
    assert found.partitions["leader"].to_pylist() == [None, None]
    reasons = {problem.path: problem.reason for problem in found.problems}
    assert reasons == {
        znodes.topic_path("u"): "has a number that does not fit 32 bits",
        large.path: "has a number that does not fit 32 bits",
        wrong.path: "has a number that does not fit 32 bits",
    }


def test_what_kafka_writes_needs_no_decoder(monkeypatch):
    def refused(*_arguments):
        raise AssertionError("decoded slowly")

    monkeypatch.setattr(znodes, "topic", refused)
    monkeypatch.setattr(znodes, "partition_state", refused)
    topics = [topic(f"t{number}", {"0": [1, 2], "1": [3]}) for number in range(3)]
    states = [state(f"t{number}", 1, recovering=number == 1) for number in range(3)]
    rows = columns.read_partitions(topics, states).partitions.to_pylist()
    assert [row["recovery_state"] for row in rows if row["partition"] == 1] == [0, 1, 0]
