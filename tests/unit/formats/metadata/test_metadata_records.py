# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every record type and version, as serialized by Kafka 3.9.2 itself (data/RecordMetadata.java)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.messages import messages
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import metadata_records as records
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_schemas import (
    CONTROL_RECORDS,
    RECORDS,
)

from tests.unit.formats import metadata_batches as batches
from tests.unit.formats.metadata_json import kafka_json

DATA = Path(__file__).parents[1] / "data" / "metadata_records.jsonl.gz"
CASES = [json.loads(line) for line in gzip.decompress(DATA.read_bytes()).splitlines()]
METADATA = [case for case in CASES if case["family"] == "metadata"]
CONTROL = [case for case in CASES if case["family"] == "control"]


def name(case):
    return "{type}-{version}-{filling}".format(**case)


def test_schemas_have_kafkas_types_and_versions():
    kafka = {}
    for case in METADATA:
        kafka[case["id"]] = (case["type"], max(case["version"], kafka.get(case["id"], ("", 0))[1]))
    later = {29: ("UNREGISTER_CONTROLLER_RECORD", 0)}
    assert {key: (schema.name, schema.latest) for key, schema in RECORDS.items()} == {**kafka, **later}
    assert set(CONTROL_RECORDS) == {case["id"] for case in CONTROL}


@pytest.mark.parametrize("case", METADATA, ids=name)
def test_record(case):
    decoded_name, version, fields = records.decode(bytes.fromhex(case["bytes"]))
    assert (decoded_name, version) == (case["type"], case["version"])
    assert kafka_json(RECORDS[case["id"]], version, fields) == case["json"]
    assert set(fields) == {field.name for field in messages.fields_of(RECORDS[case["id"]].message, version)}


@pytest.mark.parametrize("case", [case for case in METADATA if case["filling"] != "UNKNOWN_TAGS"], ids=name)
def test_a_record_that_tests_write_has_kafkas_bytes(case):
    written, version, fields = records.decode(bytes.fromhex(case["bytes"]))
    assert batches.record(written, fields, version).hex() == case["bytes"]


@pytest.mark.parametrize("case", [case for case in METADATA if "defaults" in case], ids=name)
def test_defaults(case):
    schema = RECORDS[case["id"]]
    kafka = dict(case["defaults"])
    for field in messages.fields_of(schema.message, case["version"]):
        if field.type == "bytes":
            assert kafka.pop(field.name) == "" and field.default == b""
        else:
            assert kafka.pop(field.name) == field.default, field.name
    assert not kafka
    assert kafka_json(schema, case["version"], records.decode(bytes.fromhex(case["bytes"]))[2]) == case["json"]


@pytest.mark.parametrize("case", CONTROL, ids=name)
def test_control_record(case):
    key = b"\0\0" + case["id"].to_bytes(2, "big")
    schema = CONTROL_RECORDS[case["id"]]
    decoded_name, version, fields = records.decode_control(key, bytes.fromhex(case["bytes"]))
    assert (decoded_name, version) == (schema.name, case["version"])
    assert kafka_json(schema, version, fields) == case["json"]


def test_peek_returns_the_position_of_the_body():
    assert records.peek(b"\x01\x15\x00\x01\x00") == (21, 0, 3)
    assert records.peek(b"..\x01\x15\x00\x01\x00", 2) == (21, 0, 5)
    assert records.peek(b"\x81\x00\x95\x00\x80\x00\x01\x00") == (21, 0, 6)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"\x01\x15\x01\x01\x00", "ZK_MIGRATION_STATE_RECORD version 1, Kafka 3.9 has 0 to 0"),
        (b"\x01\x1c\x00\x00", "record type 28"),
        (b"\x01\x06\x00\x00", "record type 6"),
        (b"\x01\xac\x02\x00\x00", "record type 300"),
        (b"\x00\x15\x00\x01\x00", "frame version 0"),
        (b"\x02\x15\x00\x01\x00", "frame version 2"),
    ],
)
def test_unknown_record(value, message):
    with pytest.raises(records.UnknownRecord, match=message):
        records.decode(value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"", "ends inside the frame"),
        (b"\x01\x15", "ends inside the frame"),
        (b"\x01\x15\x00", "ZK_MIGRATION_STATE_RECORD version 0"),
        (b"\x01\x15\x00\x01", "ZK_MIGRATION_STATE_RECORD version 0"),
        (b"\x01\x15\x00\x01\x00\x00", "version 0: at byte 2: 3 bytes, 2 of them read"),
        (b"\x01\x0c\x00\x00\x00\x01\x00", "name is null"),
        (b"\x01\x0c\x00\x7fab\x00\x01\x00", "FEATURE_LEVEL_RECORD"),
        (b"\x01\x0c\x00\x02\xff\x00\x01\x00", "FEATURE_LEVEL_RECORD version 0: name at byte 0: 'utf-8'"),
        (b"\x01\x17\x00\x01\x00\x05\x03ab", "tagged fields at byte 0: tagged field 0 of 5 bytes is longer"),
        (b"\x01\x17\x00\x01\x00\x05\x03abcd", "tagged field name declares 5 bytes and has 3"),
        (b"\x81\x80\x80\x80\x80\x01\x15\x00\x01\x00", "the frame cannot be read"),
    ],
)
def test_malformed_record(value, message):
    with pytest.raises(records.MalformedRecord, match=message):
        records.decode(value)


@pytest.mark.parametrize("case", [case for case in METADATA if case["filling"] == "SHORT"], ids=name)
def test_shorter_and_longer_values_are_rejected(case):
    value = bytes.fromhex(case["bytes"])
    for length in range(len(value)):
        with pytest.raises(records.LogError):
            records.decode(value[:length])
    with pytest.raises(records.MalformedRecord):
        records.decode(value + b"\0")


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        (None, b"\0\0\0", records.MalformedRecord),
        (b"\0\0\0\4", b"", records.MalformedRecord),
        (b"\0\0\0\4", b"\0\1\0", records.UnknownRecord),
        (b"\0\0\0\7", b"\0\0\0", records.UnknownRecord),
        (b"\0\0\0\4", b"\0\0\0\0\0", records.MalformedRecord),
    ],
)
def test_invalid_control_record(key, value, error):
    with pytest.raises(error):
        records.decode_control(key, value)
