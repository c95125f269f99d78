# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The columns of a broker's Metadata against the generic decoder: the same topics, partitions and errors."""

from __future__ import annotations

import random

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.messages import messages
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import apis
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import broker_requests as requests
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests.apis import Answer, MalformedAnswer
from quorumshift_spark.columns import PARTITIONS
from quorumshift_spark.columns import metadata as columns

from tests.unit.spark.columns import encoding


def topic(rng, partitions=None):
    """Return a topic of an answer."""
    count = rng.choice((0, 1, 3, 30)) if partitions is None else partitions
    return {
        "errorCode": rng.choice((0, 0, 0, 3, 29)),
        "name": None if rng.random() < 0.02 else "tøpic-" * rng.randint(1, 40),
        "topicId": encoding.uuid(rng),
        "isInternal": rng.random() < 0.1,
        "partitions": [partition(rng, number) for number in range(count)],
        "topicAuthorizedOperations": -(1 << 31),
    }


def partition(rng, number):
    return {
        "errorCode": rng.choice((0, 0, 0, 0, 5, 9, columns.LISTENER_NOT_FOUND)),
        "partitionIndex": number,
        "leaderId": rng.randint(-1, 40),
        "leaderEpoch": rng.randint(-1, 1 << 30),
        "replicaNodes": encoding.ids(rng),
        "isrNodes": encoding.ids(rng),
        "offlineReplicas": encoding.ids(rng, 1),
    }


def answer(topics, version=apis.METADATA.newest, **head):
    """Return an answer with these topics."""
    brokers = [{"nodeId": 1, "host": "h", "port": 9092, "rack": None}]
    head = {"brokers": brokers, "clusterId": "c", "controllerId": 1, **head}
    return messages.encode("MetadataResponse", version, {**head, "topics": topics})


def generic(data, version=apis.METADATA.newest):
    """Return head, topics, partitions and the error of the generic decoder."""
    head, topics, partitions = None, [], []
    try:
        head, found = requests.read_metadata(Answer(apis.METADATA, version, data))
        for item in found:
            topics.append({"topic": item["name"], "topic_id": item["topicId"], "error_code": item["errorCode"]})
            partitions += [
                {
                    **dict.fromkeys(PARTITIONS.names),
                    "topic": item["name"],
                    "partition": each["partitionIndex"],
                    "replicas": each["replicaNodes"],
                    "isr": sorted(each["isrNodes"]),
                    "leader": None if each["errorCode"] == columns.LISTENER_NOT_FOUND else each["leaderId"],
                    "leader_epoch": each["leaderEpoch"],
                    "error_code": each["errorCode"],
                    "offline": each["offlineReplicas"],
                }
                for each in item["partitions"]
            ]
    except MalformedAnswer as error:
        return head, topics, partitions, str(error)
    return head, topics, partitions, None


def by_columns(data, version=apis.METADATA.newest):
    """Return the same by the columns."""
    head, topics, partitions = None, [], []
    try:
        answer = requests.MetadataAnswer(Answer(apis.METADATA, version, data))
        head, found = answer.head, columns.read_topics(answer)
        for served in found:
            for batch, schema, rows in (
                (served.topics, columns.TOPICS, topics),
                (served.partitions, columns.SERVED_PARTITIONS, partitions),
            ):
                assert batch.schema == schema
                batch.validate(full=True)
                rows += batch.to_pylist()
    except MalformedAnswer as error:
        return head, topics, partitions, str(error)
    return head, topics, partitions, None


@pytest.mark.parametrize("seed", range(20))
def test_generated_answers(seed, monkeypatch):
    rng = random.Random(seed)
    monkeypatch.setattr(columns, "_CHUNK", rng.choice((1, 50, 50_000)))
    data = answer([topic(rng) for _topic in range(rng.choice((0, 1, 60)))])
    assert by_columns(data) == generic(data)
    assert generic(data)[3] is None


@pytest.mark.parametrize("version", range(apis.METADATA.oldest, apis.METADATA.newest))
def test_older_versions(version):
    """A topic has an id from 10 on, and a name in each."""
    rng = random.Random(version)
    topics = [{**topic(rng), "name": f"t{number}"} for number in range(20)]
    data = answer(topics, version, clusterAuthorizedOperations=8 if version < 11 else -(1 << 31))
    found = by_columns(data, version)
    assert found == generic(data, version) and found[3] is None
    ids = [item["topicId"] if version >= 10 else messages.ZERO_UUID for item in topics]
    assert [item["topic_id"] for item in found[1]] == ids
    for cut in (data[:-1], data + b"\0"):
        assert by_columns(cut, version) == generic(cut, version)
        assert "cannot be read" in generic(cut, version)[3]


@pytest.mark.parametrize("seed", range(300))
def test_changed_and_truncated_answers(seed, monkeypatch):
    rng = random.Random(seed)
    monkeypatch.setattr(columns, "_CHUNK", rng.choice((1, 5, 50_000)))
    data = bytearray(answer([topic(rng, rng.randint(0, 3)) for _topic in range(6)]))
    at = rng.randrange(len(data))
    changed = data[:at] if seed % 3 == 0 else data
    if changed is data:
        changed[at] = rng.choice((0, 1, 2, 0x7F, 0x80, 0xFF, data[at] ^ (1 << rng.randrange(8))))
    assert by_columns(bytes(changed)) == generic(bytes(changed))


def test_one_topic_out_of_the_common_form_is_read_alone(monkeypatch):
    """The topics before and after it are decoded by columns."""
    slow = []
    read_slowly = columns._read_slowly
    monkeypatch.setattr(columns, "_read_slowly", lambda item: slow.append(item["name"]) or read_slowly(item))
    rng = random.Random(2)
    monkeypatch.setattr(encoding, "ids", lambda rng, longest=4: [3, 1][:longest])
    topics = [{**topic(rng, 3), "name": f"t{number}"} for number in range(9)]
    topics[4]["partitions"][1]["replicaNodes"] = list(range(200))
    data = answer(topics)
    assert by_columns(data) == generic(data)
    assert slow == ["t4"]


@pytest.mark.parametrize("data", [b"", b"\0\0\0\0\0", answer([]), answer([]) + b"\0", answer([])[:-1] + b"\1\0\0"])
def test_answers_without_topics(data):
    assert by_columns(data) == generic(data)
