# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The codec's errors name the message, its version, the field and the offset; its definitions are those in the tree.

Against Kafka's own classes: tests/integration/test_messages_against_kafka.py.
"""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.messages import messages
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.messages.definitions import DEFINITIONS

from tools import kafka_messages as sources

METADATA = "MetadataResponse"
TOPICS = [{"name": "t", "partitions": [{"partitionIndex": 0, "isrNodes": [1, 2]}, {"partitionIndex": 1}]}]
ANSWER = messages.encode(METADATA, 12, {"clusterId": "c", "topics": TOPICS})
PLACES = {field: ANSWER.index(found) for field, found in (("clusterId", b"\2c"), ("isrNodes", b"\3\0\0\0\1\0\0\0\2"))}


def test_the_module_is_made_of_the_definitions_in_the_tree():
    assert sources.TARGET.read_text(encoding="utf-8") == sources.module(), "run python -m tools.kafka_messages"
    assert [path.stem for path in sources.sources() if path.stem == "ZkMigrationRecord"], "Kafka's name of the file"
    names = [sources.parsed(path.read_text(encoding="utf-8"))["name"] for path in sources.sources()]
    assert sorted(names) == sorted(DEFINITIONS) and len(set(names)) == len(names)


def test_every_attribute_of_a_definition_is_known():
    """An attribute that a later Kafka adds may change the encoding."""
    known = {*sources.ENCODING, "about", "entityType", "mapKey", "listeners", "latestVersionUnstable"}
    known |= {"deprecatedVersions", "zeroCopy"}

    def attributes(defined):
        if isinstance(defined, list):
            return {name for each in defined for name in attributes(each)}
        if isinstance(defined, dict):
            return {*defined, *(name for value in defined.values() for name in attributes(value))}
        return set()

    for path in sources.sources():
        assert attributes(sources.parsed(path.read_text(encoding="utf-8"))) <= known, path.name


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (ANSWER[:2], "MetadataResponse v12: throttleTimeMs at byte 0: the data end here"),
        (
            ANSWER[: PLACES["clusterId"] + 1],
            "MetadataResponse v12: clusterId at byte 5: 1 bytes are longer than the data",
        ),
        (
            ANSWER[: PLACES["isrNodes"] + 5],
            rf"MetadataResponse v12: topics\[0\]\.partitions\[0\]\.isrNodes at byte {PLACES['isrNodes']}: the data end",
        ),
        (ANSWER[:-1], rf"MetadataResponse v12: tagged fields at byte {len(ANSWER) - 1}: the data end here"),
        (
            ANSWER + b"\0",
            rf"MetadataResponse v12: at byte {len(ANSWER)}: {len(ANSWER) + 1} bytes, {len(ANSWER)} of them",
        ),
        (ANSWER[:4] + b"\0" + ANSWER[5:], "MetadataResponse v12: brokers at byte 4: brokers is null"),
        (ANSWER.replace(b"\2c", b"\2\xff"), "MetadataResponse v12: clusterId at byte 5: 'utf-8' codec"),
        (
            b"\0\0\0\0\xff\xff\xff\xff\xff\x01",
            "MetadataResponse v12: brokers at byte 4: a varint has more than 5 bytes",
        ),
    ],
)
def test_data_that_do_not_fit(data, message):
    with pytest.raises(messages.MessageError, match=f"^{message}"):
        messages.decode(METADATA, 12, data)


@pytest.mark.parametrize(
    ("version", "values", "message"),
    [
        (12, {"topic": []}, r"MetadataResponse v12: there is no field \['topic'\]"),
        (
            12,
            {"topics": [{"partitions": [{"leaderId": 1 << 31}]}]},
            r"MetadataResponse v12: topics\[0\]\.partitions\[0\]\.",
        ),
        (12, {"topics": [{"topicId": "A"}]}, r"MetadataResponse v12: topics\[0\]\.topicId: "),
        (12, {"topics": None}, "MetadataResponse v12: topics: topics is null"),
        (12, {"topics": 3}, "MetadataResponse v12: topics: "),
        (12, {"clusterId": "c" * 32768}, "MetadataResponse v12: clusterId: 32768 bytes, a string has at most 32767"),
        (12, {"clusterAuthorizedOperations": 1}, "v12: clusterAuthorizedOperations: this version has no such field"),
        (11, {"topics": [{"name": None}]}, r"MetadataResponse v11: topics\[0\]\.name: name is null"),
    ],
)
def test_values_that_do_not_fit(version, values, message):
    with pytest.raises(messages.MessageError, match=message):
        messages.encode(METADATA, version, values)


def test_decoded_defaults_are_not_shared():
    request = messages.encode("FetchResponse", 13, {"responses": [{"partitions": [{}, {}]}]})
    first, second = messages.decode("FetchResponse", 13, request)["responses"][0]["partitions"]
    first["divergingEpoch"]["epoch"] = 5
    assert second["divergingEpoch"] == {"epoch": -1, "endOffset": -1}
    records = messages.encode("RegisterBrokerRecord", 0, {})
    messages.decode("RegisterBrokerRecord", 0, records)["logDirs"].append("x")
    assert messages.decode("RegisterBrokerRecord", 0, records)["logDirs"] == []


def test_a_field_that_kafka_ignores_is_left_out_of_an_older_version():
    assert messages.encode(METADATA, 0, {"throttleTimeMs": 7}) == messages.encode(METADATA, 0, {})


def test_elements_can_be_read_singly():
    head, at = messages.head_reader(METADATA, 12, "topics")(ANSWER, 0)
    count, at = messages.read_length(ANSWER, at)
    topic, end = messages.reader(METADATA, 12, "topics")(ANSWER, at)
    whole = messages.decode(METADATA, 12, ANSWER)
    assert count == 1 and ANSWER[end:] == b"\0" and [topic] == whole["topics"]
    assert head["clusterId"] == "c" and "topics" not in head
