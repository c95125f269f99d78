# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decode values of metadata records and KRaft control records.

Framing (KIP-631; org.apache.kafka.server.common.serialization.AbstractApiMessageSerde): unsigned varints frame version
(1), api key and version, then the body in KIP-482's flexible encoding, with nothing after it.
"""

from __future__ import annotations

import struct
from typing import AbstractSet, Any

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.messages import messages
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_schemas import (
    CONTROL_RECORDS,
    LATER,
    RECORDS,
    Schema,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.records.record_batch import LogError

_FRAME_VERSION = 1
_CONTROL_KEY = struct.Struct(">hh")  # version, type
_CONTROL_VERSION = struct.Struct(">h")


class UnknownRecord(LogError):
    """A record has a frame version, type or version that Kafka 3.9 does not have."""


class MalformedRecord(LogError):
    """A record's bytes do not match its schema."""


def peek(
    data: bytes, start: int = 0, known: AbstractSet[int] | None = None, any_type: bool = False
) -> tuple[int, int, int]:
    """Return the frame of a record value: api key, version, and position of the body.

    `known`: the types that must be known (None: all), also as a later Kafka writes them. `any_type`: a type that does
    not exist in Kafka 3.9 is no error, an unknown version of one that does is. Raises UnknownRecord, MalformedRecord.
    """
    frame, api_key, version, body = data[start], data[start + 1], data[start + 2], start + 3
    if (frame | api_key | version) & 0x80:
        try:
            frame, body = messages.read_unsigned_varint(data, start)
            api_key, body = messages.read_unsigned_varint(data, body)
            version, body = messages.read_unsigned_varint(data, body)
        except (IndexError, ValueError) as error:
            raise MalformedRecord(f"the frame cannot be read: {error}") from None
    if frame != _FRAME_VERSION:
        raise UnknownRecord(f"frame version {frame}, Kafka 3.9 writes {_FRAME_VERSION}")
    if known is not None and api_key not in known:
        return api_key, version, body
    schema = RECORDS.get(api_key)
    if schema is None and any_type:
        return api_key, version, body
    if schema is None:
        raise UnknownRecord(f"record type {api_key} does not exist in Kafka 3.9")
    if version > schema.latest and (known is None or version > LATER.get(api_key, 0)):
        raise UnknownRecord(f"{schema.name} version {version}, Kafka 3.9 has 0 to {schema.latest}")
    return api_key, version, body


def decode_body(
    api_key: int, version: int, data: bytes, start: int, end: int, notes_tags: bool = False
) -> dict[str, Any]:
    """Return the body data[start:end] as a dict with all fields of the type (see decode). `notes_tags`: see
    messages.decode_part. Raises MalformedRecord."""
    return _decode(RECORDS[api_key], version, data, start, end, notes_tags)


def decode(value: bytes) -> tuple[str, int, dict[str, Any]]:
    """Return a record value as (type name, version, fields).

    Field names are Kafka's (camelCase). Every field of the type is present, absent ones with Kafka's default. uuids are
    Kafka's base64 strings, bytes stay bytes. Tagged fields that the schema does not have are skipped. Raises
    UnknownRecord, MalformedRecord.
    """
    try:
        api_key, version, body = peek(value)
    except IndexError:
        raise MalformedRecord("the value ends inside the frame") from None
    return RECORDS[api_key].name, version, decode_body(api_key, version, value, body, len(value))


def decode_control(key: bytes | None, value: bytes) -> tuple[str, int, dict[str, Any]]:
    """Return a control record as (ControlRecordType's name, version, fields). Raises UnknownRecord, MalformedRecord."""
    try:
        _key_version, kind = _CONTROL_KEY.unpack_from(key or b"")
        (version,) = _CONTROL_VERSION.unpack_from(value)
    except struct.error:
        raise MalformedRecord("the key or value of a control record is too short") from None
    schema = CONTROL_RECORDS.get(kind)
    if schema is None or not 0 <= version <= schema.latest:
        raise UnknownRecord(f"control record type {kind} version {version} does not exist in Kafka 3.9")
    return schema.name, version, _decode(schema, version, value, 0, len(value))


def _decode(
    schema: Schema, version: int, data: bytes, start: int, end: int, notes_tags: bool = False
) -> dict[str, Any]:
    try:
        return messages.decode_part(schema.message, version, data, start, end, notes_tags)
    except messages.MessageError as error:
        error.position -= start
        raise MalformedRecord(f"{schema.name} version {version}: {error.detail}") from error
