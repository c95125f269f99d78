# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decode values of metadata records and KRaft control records, with the tables of metadata_schemas.

Framing (KIP-631; org.apache.kafka.server.common.serialization.AbstractApiMessageSerde): unsigned varints frame version
(1), api key and version, then the body in KIP-482's flexible encoding, with nothing after it.
"""

from __future__ import annotations

import functools
import struct
from base64 import urlsafe_b64encode
from typing import AbstractSet, Any

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata_schemas import (
    CONTROL_RECORDS,
    LATER,
    RECORDS,
    default_of,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.record_batch import LogError

_FRAME_VERSION = 1
_CONTROL_KEY = struct.Struct(">hh")  # version, type
_CONTROL_VERSION = struct.Struct(">h")
_NUMBERS = {
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "uint16": struct.Struct(">H"),
    "int32": struct.Struct(">i"),
    "int64": struct.Struct(">q"),
    "float64": struct.Struct(">d"),
}

_INT32_ARRAYS = [struct.Struct(f">{length}i") for length in range(8)]  # replica lists are short


class UnknownRecord(LogError):
    """A record has a frame version, type or version that Kafka 3.9 does not have."""


class MalformedRecord(LogError):
    """A record's bytes do not match its schema."""


def read_unsigned_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return an unsigned varint (ByteUtils.readUnsignedVarint) and the position after it."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def peek(data: bytes, start: int = 0, known: AbstractSet[int] | None = None) -> tuple[int, int, int]:
    """Return the frame of a record value: api key, version, and position of the body.

    `known`: the types that must be known (None: all), also as a later Kafka writes them. Raises UnknownRecord.
    """
    frame, api_key, version, body = data[start], data[start + 1], data[start + 2], start + 3
    if (frame | api_key | version) & 0x80:
        frame, body = read_unsigned_varint(data, start)
        api_key, body = read_unsigned_varint(data, body)
        version, body = read_unsigned_varint(data, body)
    if frame != _FRAME_VERSION:
        raise UnknownRecord(f"frame version {frame}, Kafka 3.9 writes {_FRAME_VERSION}")
    if known is not None and api_key not in known:
        return api_key, version, body
    schema = RECORDS.get(api_key)
    if schema is None:
        raise UnknownRecord(f"record type {api_key} does not exist in Kafka 3.9")
    if version > schema.latest and (known is None or version > LATER.get(api_key, 0)):
        raise UnknownRecord(f"{schema.name} version {version}, Kafka 3.9 has 0 to {schema.latest}")
    return api_key, version, body


def decode_body(api_key: int, version: int, data: bytes, start: int, end: int) -> dict[str, Any]:
    """Return the body data[start:end] as a dict with all fields of the type (see decode). Raises MalformedRecord."""
    return _decode(_body_reader(api_key, version), RECORDS[api_key].name, version, data, start, end)


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
    return schema.name, version, _decode(_control_reader(kind, version), schema.name, version, value, 0, len(value))


def _decode(read, name, version, data, start, end):
    try:
        fields, position = read(data, start)
    except (IndexError, ValueError, struct.error) as error:
        raise MalformedRecord(f"{name} version {version}: {error}") from error
    if position != end:
        raise MalformedRecord(f"{name} version {version}: body of {end - start} bytes, {position - start} decoded")
    return fields


@functools.lru_cache(maxsize=None)
def _body_reader(api_key, version):
    return struct_reader(RECORDS[api_key].fields, version)


@functools.lru_cache(maxsize=None)
def _control_reader(kind, version):
    return struct_reader(CONTROL_RECORDS[kind].fields, version)


# A reader takes (data, position) and returns (value, position after it). It raises IndexError, ValueError or
# struct.error if the bytes do not match. The same readers decode answers of flexible versions (broker_requests).


def struct_reader(fields, version):
    """Return a reader of a struct with its tagged fields, as a dict."""
    present = [field for field in fields if field.since <= version]
    plain = [(field.name, field_reader(field, version)) for field in present if field.tag is None]
    tagged = {field.tag: (field.name, field_reader(field, version)) for field in present if field.tag is not None}
    absent = [field for field in fields if field.since > version or field.tag is not None]
    defaults = {field.name: default_of(field) for field in absent}
    empty_lists = [name for name, default in defaults.items() if default == []]

    def read(data, position):
        values = dict(defaults)
        for name in empty_lists:
            values[name] = []
        for name, read_field in plain:
            values[name], position = read_field(data, position)
        if data[position]:
            return values, _read_tagged(data, position, tagged, values)
        return values, position + 1

    return read


def _read_tagged(data, position, tagged, values):
    count, position = read_unsigned_varint(data, position)
    for _field in range(count):
        tag, position = read_unsigned_varint(data, position)
        size, position = read_unsigned_varint(data, position)
        if tag in tagged:
            name, read_field = tagged[tag]
            values[name], end = read_field(data, position)
            if end != position + size:
                raise ValueError(f"tagged field {name} declares {size} bytes and has {end - position}")
        position += size
    return position


def field_reader(field, version):
    """Return a reader of one field."""
    kind = field.type
    if kind.startswith("[]"):
        return _array_reader(field, version)
    if kind == "struct":
        return struct_reader(field.fields, version)
    if kind in _NUMBERS:
        return _number_reader(_NUMBERS[kind])
    if kind in ("string", "bytes"):
        return _text_reader(field, kind == "string")
    return {"bool": _read_bool, "uuid": _read_uuid}[kind]


def _number_reader(layout):
    unpack, size = layout.unpack_from, layout.size

    def read(data, position):
        return unpack(data, position)[0], position + size

    return read


def _read_bool(data, position):
    return data[position] != 0, position + 1


def _read_uuid(data, position):
    end = position + 16
    return urlsafe_b64encode(data[position:end])[:22].decode(), end


def read_length(data, position):
    """Return a compact length, which is stored plus one, and the position after it; -1 for null."""
    length = data[position]
    if length < 0x80:
        return length - 1, position + 1
    length, position = read_unsigned_varint(data, position)
    return length - 1, position


def _text_reader(field, is_text):
    def read(data, position):
        length, position = read_length(data, position)
        if length < 0:
            return _null(field), position
        end = position + length
        return (data[position:end].decode() if is_text else data[position:end]), end

    return read


def _array_reader(field, version):
    element = field._replace(type=field.type[2:], nullable=False)
    read_element = field_reader(element, version)
    of_int32 = element.type == "int32"

    def read(data, position):
        length, position = read_length(data, position)
        if length < 0:
            return _null(field), position
        if of_int32:
            layout = _INT32_ARRAYS[length] if length < len(_INT32_ARRAYS) else struct.Struct(f">{length}i")
            return list(layout.unpack_from(data, position)), position + layout.size
        values = []
        for _element in range(length):
            value, position = read_element(data, position)
            values.append(value)
        return values, position

    return read


def _null(field):
    if not field.nullable:
        raise ValueError(f"{field.name} is null")
    return None
