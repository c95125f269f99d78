# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Convert decoded metadata records to the JSON of Kafka's generated *JsonConverter classes, and parse Kafka's dumps."""

from __future__ import annotations

import base64
import json
import re

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.messages import messages
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_schemas import (
    CONTROL_RECORDS,
    RECORDS,
)

SCHEMAS = {schema.name: schema for schema in (*RECORDS.values(), *CONTROL_RECORDS.values())}


def kafka_json(schema, version, values):
    """Return a record's `values` as Kafka prints them, see `as_kafka_prints`."""
    return as_kafka_prints(messages.fields_of(schema.message, version), values)


def as_kafka_prints(fields, values):
    """Return `values` as Kafka prints them: only fields of the version, tagged ones if not default, bytes in base64."""
    out = {}
    for field in fields:
        value = values[field.name]
        if not field.present or (field.tag is not None and value == field.default):
            continue
        if field.fields and value is not None:
            of_field = [as_kafka_prints(field.fields, each) for each in (value if field.type[0] == "[" else [value])]
            value = of_field if field.type[0] == "[" else of_field[0]
        elif field.type in ("bytes", "records") and value is not None:
            value = base64.b64encode(value).decode()
        out[field.name] = value
    return out


_CONTROL_NAMES = {
    "SnapshotHeader": "SNAPSHOT_HEADER",
    "SnapshotFooter": "SNAPSHOT_FOOTER",
    "KRaftVersion": "KRAFT_VERSION",
    "KRaftVoters": "KRAFT_VOTERS",
}


def dumped_records(text):
    """Return the output of `kafka.tools.DumpLogSegments --cluster-metadata-decoder` as {file name: [(offset, epoch,
    time, type, version, JSON)]}; version and JSON are None if it prints only a control record's type."""
    files, epoch = {}, None
    for line in text.splitlines():
        if line.startswith("Dumping "):
            records = files.setdefault(line.split("/")[-1], [])
        elif line.startswith("baseOffset: "):
            epoch = int(re.search(r" partitionLeaderEpoch: (-?\d+) ", line).group(1))
            assert " isvalid: true" in line, line
        elif line.startswith("| "):
            offset, timestamp = map(int, re.match(r"\| offset: (\d+) CreateTime: (\d+) ", line).groups())
            records.append((offset, epoch, timestamp, *_dumped(line.split(" headerKeys: [] ")[1])))
        else:
            assert line.startswith(("Log starting offset: ", "Snapshot end offset: ")), line
    return files


def _dumped(text):
    label, rest = text.split(" ", 1)
    if label == "controlType:":
        return rest.split("(")[0], None, None
    if label == "payload:":
        payload = json.loads(rest)
        return payload["type"], payload["version"], payload["data"]
    fields = json.loads(rest)
    return _CONTROL_NAMES[label], fields["version"], fields


def comparable(record):
    """Return a metadata_log.FileRecord in the form of `dumped_records`."""
    if record.type == "LEADER_CHANGE":
        return record.offset, record.epoch, record.timestamp, record.type, None, None
    fields = kafka_json(SCHEMAS[record.type], record.version, record.fields)
    return record.offset, record.epoch, record.timestamp, record.type, record.version, fields
