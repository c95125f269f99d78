# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Build record batches from record values, for logs that a small cluster does not produce."""

from __future__ import annotations

import struct

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.messages import messages
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_schemas import (
    API_KEYS,
    RECORDS,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.records.crc32c import crc32c

BEGIN = b"\x01\x17\x00\x01\x00\x0d\x0dZK Migration"
END = b"\x01\x18\x00\x00"
ABORT = b"\x01\x19\x00\x00"
NO_OP = b"\x01\x14\x00\x00"
LEADER_CHANGE = (b"\0\0\0\2", b"\0\0\0\0\0\1\1\1\0")
SNAPSHOT_HEADER = (b"\0\0\0\3", b"\0\0\0\0\0\0\0\0\0\x05\0")
SNAPSHOT_FOOTER = (b"\0\0\0\4", b"\0\0\0")


def topic(name, number):
    """Return the value of a TOPIC_RECORD."""
    return b"\x01\x02\x00" + bytes([len(name) + 1]) + name.encode() + bytes([number] * 16) + b"\0"


def config(kind, resource, name, value):
    """Return the value of a CONFIG_RECORD; a value of None removes the key."""
    texts = [b"\0" if text is None else bytes([len(text) + 1]) + text.encode() for text in (resource, name, value)]
    return b"\x01\x04\x00" + struct.pack(">b", kind) + b"".join(texts) + b"\0"


def feature(name, level):
    """Return the value of a FEATURE_LEVEL_RECORD."""
    return b"\x01\x0c\x00" + bytes([len(name) + 1]) + name.encode() + struct.pack(">h", level) + b"\0"


def migration_state(value):
    """Return the value of a ZK_MIGRATION_STATE_RECORD."""
    return b"\x01\x15\x00" + bytes([value]) + b"\0"


def record(record_type, given, version=None):
    """Return the value of a record of any type. Fields that are not in `given` have their default; those that the
    version does not have are left out."""
    api_key = API_KEYS[record_type]
    schema = RECORDS[api_key]
    version = schema.latest if version is None else version
    absent = {field.name for field in messages.fields_of(schema.message, version) if not field.present}
    values = {name: value for name, value in given.items() if name not in absent}
    return b"\x01" + _unsigned(api_key) + _unsigned(version) + messages.encode(schema.message, version, values)


def batch(base_offset, values, epoch=1, timestamp=1000, attributes=0, magic=2):
    """Return a batch of record values, or a control batch of (key, value) pairs."""
    is_control = isinstance(values[0], tuple)
    pairs = values if is_control else [(None, value) for value in values]
    body = b"".join(_record(delta, key, value) for delta, (key, value) in enumerate(pairs))
    attributes |= 0x20 if is_control else 0
    checked = struct.pack(">hiqqqhii", attributes, len(values) - 1, timestamp, timestamp, -1, -1, -1, len(values))
    crc = crc32c(checked + body)
    return struct.pack(">qiibI", base_offset, 9 + len(checked) + len(body), epoch, magic, crc) + checked + body


def _record(delta, key, value):
    key_part = _varint(-1) if key is None else _varint(len(key)) + key
    record = b"\0" + _varint(0) + _varint(delta) + key_part + _varint(len(value)) + value + _varint(0)
    return _varint(len(record)) + record


def _varint(value):
    return _unsigned(value << 1 if value >= 0 else -value * 2 - 1)


def _unsigned(raw):
    out = bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    return bytes((*out, raw))
