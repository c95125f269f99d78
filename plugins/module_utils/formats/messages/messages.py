# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Encode and decode Kafka's messages by Kafka's own definitions of them (definitions.py). No I/O.

A message is a request, an answer, a header or a record of a log. Its fields are a dict with Kafka's names in JSON
(camelCase). The first use of a message in a version makes its reader and its writer: functions for each field, which
know the version. A run of numbers is one call of struct.

Sources: Kafka's generator (clients/src/main/resources/common/message/README.md, org.apache.kafka.message), KIP-482 for
flexible versions and tagged fields.
"""

from __future__ import annotations

import copy
import functools
import json
import struct
from base64 import urlsafe_b64decode
from binascii import b2a_base64
from typing import Any, Callable, Dict, Iterator, Mapping, NamedTuple, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.messages.definitions import DEFINITIONS

ZERO_UUID = "A" * 22

Reader = Callable[[bytes, int], Tuple[Any, int]]
"""Takes data and a position; returns the value there and the position after it. Raises MessageError, or IndexError,
ValueError, struct.error for a single field."""
UNFIT = (IndexError, ValueError, struct.error)
"""What a Reader raises if the data do not fit."""
_UNWRITABLE = (*UNFIT, TypeError, AttributeError)

_CODES = {"bool": "?", "int8": "b", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q"}
_CODES["float64"] = "d"
_LAYOUTS = {kind: struct.Struct(f">{code}") for kind, code in _CODES.items()}
_ARRAYS = {
    kind: [struct.Struct(f">{length}{code}") for length in range(8)] for kind, code in _CODES.items() if code != "?"
}
_SHORT, _INT = _LAYOUTS["int16"], _LAYOUTS["int32"]
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_LONGEST_STRING = 0x7FFF
_RUN = 3  # from so many numbers on, one call of struct is faster than one for each


class MessageError(ValueError):
    """Data or values do not fit a message. `field` is the path to the field, `position` its offset in the data."""

    def __init__(self, message: str, field: str, position: int | None, reason: object) -> None:
        super().__init__(message, field, position, reason)
        self.message, self.field, self.position, self.reason = message, field, position, reason

    def within(self, field: str) -> MessageError:
        """Return this error with the struct or the array's index that has the field."""
        self.field = f"{field}{'' if self.field.startswith('[') else '.'}{self.field}" if self.field else field
        return self

    @property
    def detail(self) -> str:
        """The field, its offset and the reason."""
        place = "" if self.position is None else f"at byte {self.position}"
        return f"{' '.join(filter(None, (self.field, place)))}: {self.reason}".lstrip(": ")

    def __str__(self) -> str:
        return f"{self.message}: {self.detail}"


class Field(NamedTuple):
    """A field as one version has it.

    `type`: a primitive type of Kafka's, `struct`, or `[]` before one of them for an array. `present`: whether the
    version has it. `tag`: its tag in this version, or None. `flexible`: whether its length is compact. `default`: its
    value where it is absent. `fields`: of a struct.
    """

    name: str
    type: str
    present: bool
    tag: int | None
    nullable: bool
    flexible: bool
    ignorable: bool
    default: Any
    fields: Tuple[Field, ...]


# --- definitions -----------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=None)
def definition(message: str) -> Dict[str, Any]:
    """Return Kafka's definition of a message."""
    return json.loads(DEFINITIONS[message])


def api_key(message: str) -> int:
    """Return the api key of a request, an answer or a metadata record."""
    return definition(message)["apiKey"]


def latest(message: str) -> int:
    """Return the latest version of a message."""
    return version_range(definition(message)["validVersions"])[1]


@functools.lru_cache(maxsize=None)
def fields_of(message: str, version: int, *path: str) -> Tuple[Field, ...]:
    """Return the fields of a message, or of the struct at this path in it. Those that this version does not have are
    among them."""
    if path:
        return next(field for field in fields_of(message, version, *path[:-1]) if field.name == path[-1]).fields
    return resolved(definition(message), version)


def resolved(defined: Mapping[str, Any], version: int) -> Tuple[Field, ...]:
    """Return the fields of a definition as one version has them."""
    structs = {each["name"]: each["fields"] for each in defined.get("commonStructs", ())}
    return tuple(_field(each, version, defined["flexibleVersions"], structs) for each in defined["fields"])


def is_flexible(message: str, version: int) -> bool:
    """Return whether a version of a message is flexible (KIP-482)."""
    return _has(definition(message)["flexibleVersions"], version)


def version_range(versions: str) -> Tuple[int, int]:
    """Return the first and last of a range such as 3, 1-4, 2+ or none."""
    if versions == "none":
        return 0, -1
    first, _dash, last = versions.rstrip("+").partition("-")
    return int(first), 0x7FFF if versions.endswith("+") else int(last or first)


def _has(versions: str, version: int) -> bool:
    first, last = version_range(versions)
    return first <= version <= last


def _field(defined: Mapping[str, Any], version: int, flexible: str, structs: Mapping[str, list]) -> Field:
    kind = defined["type"]
    array, element = kind[:2] if kind.startswith("[]") else "", kind.replace("[]", "")
    parts = defined.get("fields") or structs.get(element) or ()
    fields = tuple(_field(part, version, flexible, structs) for part in parts)
    tagged_versions = defined.get("taggedVersions", "none")
    tagged = _has(tagged_versions, version)
    return Field(
        defined["name"][0].lower() + defined["name"][1:],
        f"{array}struct" if fields else kind,
        _has(defined.get("versions", tagged_versions), version),
        int(defined["tag"]) if tagged else None,
        _has(defined.get("nullableVersions", "none"), version),
        _has(defined.get("flexibleVersions", flexible), version),
        defined.get("ignorable", False),
        _default(array, element, fields, defined.get("default")),
        fields,
    )


def _default(array: str, kind: str, fields: Tuple[Field, ...], given: Any) -> Any:
    if given == "null":
        return None
    if array:
        return []
    if fields:
        return {field.name: field.default for field in fields}
    if kind in ("string", "bytes", "records", "uuid"):
        return {"string": given or "", "uuid": ZERO_UUID}.get(kind, b"")
    if kind == "bool":
        return given in (True, "true")
    return float(given or 0) if kind == "float64" else int(str(given or 0), 0)


# --- one message -----------------------------------------------------------------------------------------


def decode(message: str, version: int, data: bytes) -> Dict[str, Any]:
    """Return the fields of a message that is all of `data`. Raises MessageError.

    Every field is there, those that this version does not have with Kafka's default. A uuid is Kafka's text of it, in
    base64. Unknown tagged fields are skipped. Fields of bytes are slices of `data`, which may be a memoryview.
    """
    return decode_part(message, version, data, 0, len(data))


UNKNOWN_TAGS = "unknown tags"
"""The key of a struct's unknown tags, see decode_part. Kafka's names of fields have no blank."""


def decode_part(
    message: str, version: int, data: bytes, start: int, end: int, notes_tags: bool = False
) -> Dict[str, Any]:
    """Return the fields of a message that is data[start:end], see `decode`.

    With `notes_tags`, a struct with tagged fields that it does not know has their tags as a list under UNKNOWN_TAGS.
    """
    read = _noting_reader(message, version) if notes_tags else reader(message, version)
    fields, position = read(data, start)
    if position != end:
        reason = f"{end - start} bytes, {position - start} of them read"
        raise MessageError(f"{message} v{version}", "", position, reason)
    return fields


def unknown_tags(fields: Any, path: str = "") -> Iterator[Tuple[str, int]]:
    """Yield (path of the struct, tag) of each unknown tagged field that decode_part noted; the path of a message is
    ""."""
    if isinstance(fields, dict):
        for tag in fields.get(UNKNOWN_TAGS, ()):
            yield path, tag
        for name, value in fields.items():
            if name != UNKNOWN_TAGS and isinstance(value, (dict, list)):
                yield from unknown_tags(value, f"{path}.{name}".lstrip("."))
    elif fields and isinstance(fields[0], dict):
        for value in fields:
            yield from unknown_tags(value, path)


def encode(message: str, version: int, values: Mapping[str, Any]) -> bytes:
    """Return a message with these values; an absent field has Kafka's default. Raises MessageError.

    A field that this version does not have is an error, unless it has its default or Kafka ignores it.
    """
    out = bytearray()
    _writer(message, version)(out, values)
    return bytes(out)


@functools.lru_cache(maxsize=None)
def reader(message: str, version: int, *path: str) -> Reader:
    """Return a reader of a message, or of the struct at this path in it; of an array, of one of its elements."""
    return _struct_reader(fields_of(message, version, *path), is_flexible(message, version), f"{message} v{version}")


@functools.lru_cache(maxsize=None)
def _noting_reader(message, version):
    given = fields_of(message, version), is_flexible(message, version), f"{message} v{version}"
    return _struct_reader(*given, notes_tags=True)


@functools.lru_cache(maxsize=None)
def head_reader(message: str, version: int, *path: str) -> Reader:
    """Return a reader of the fields before the one at this path, in its struct: to read an array's elements singly."""
    fields = fields_of(message, version, *path[:-1])
    before = fields[: [field.name for field in fields].index(path[-1])]
    return _struct_reader(before, is_flexible(message, version), f"{message} v{version}", ends=False)


@functools.lru_cache(maxsize=None)
def tail_reader(message: str, version: int, *path: str) -> Reader:
    """Return a reader of the fields after the one at this path, up to the end of its struct."""
    fields = fields_of(message, version, *path[:-1])
    after = fields[[field.name for field in fields].index(path[-1]) + 1 :]
    return _struct_reader(after, is_flexible(message, version), f"{message} v{version}")


@functools.lru_cache(maxsize=None)
def _writer(message, version):
    return _struct_writer(fields_of(message, version), is_flexible(message, version), f"{message} v{version}")


# --- readers ---------------------------------------------------------------------------------------------


def _struct_reader(
    fields: Tuple[Field, ...], flexible: bool, where: str, ends: bool = True, notes_tags: bool = False
) -> Reader:
    """`ends`: whether tagged fields may follow, as at the end of a flexible struct. `notes_tags`: see decode_part."""
    has_tags = flexible and ends
    plain = [field for field in fields if field.present and field.tag is None]
    steps = _steps(plain, flexible, where, notes_tags)
    tagged = {
        field.tag: (field.name, _field_reader(field, flexible, where, notes_tags))
        for field in fields
        if field.present and field.tag is not None
    }
    absent = [field for field in fields if field not in plain]
    defaults = {field.name: field.default for field in absent}
    changeable = [
        (field.name, list if field.default == [] else functools.partial(copy.deepcopy, field.default))
        for field in absent
        if isinstance(field.default, (list, dict))
    ]

    def read(data: bytes, position: int) -> Tuple[Dict[str, Any], int]:
        values = defaults.copy()
        for name, new in changeable:
            values[name] = new()
        name = ""
        try:
            for name, read_field, unpack, size in steps:
                if unpack is None:
                    values[name], position = read_field(data, position)
                else:
                    values.update(zip(name, unpack(data, position)))
                    position += size
            if has_tags:
                name = "tagged fields"
                if data[position]:
                    position = _read_tagged(data, position, tagged, values, notes_tags)
                else:
                    position += 1
        except UNFIT as error:
            if isinstance(name, tuple):
                name, position = _cut(name, read_field, data, position)
            raise _located(error, where, name, position) from None
        return values, position

    return read


def _steps(plain, flexible, where, notes_tags):
    """Return (name, reader, None, 0) of each field, and (names, types, unpacking, bytes) of each run of numbers."""
    steps, at = [], 0
    while at < len(plain):
        end = at
        while end < len(plain) and plain[end].type in _CODES:
            end += 1
        if end - at >= _RUN:
            kinds = [field.type for field in plain[at:end]]
            layout = struct.Struct(">" + "".join(map(_CODES.__getitem__, kinds)))
            steps.append((tuple(field.name for field in plain[at:end]), kinds, layout.unpack_from, layout.size))
            at = end
        else:
            steps.append((plain[at].name, _field_reader(plain[at], flexible, where, notes_tags), None, 0))
            at += 1
    return steps


def _cut(names, kinds, data, position):
    """Return the field of a run at which the data end, and its position."""
    for name, kind in zip(names, kinds):
        if position + _LAYOUTS[kind].size > len(data):
            return name, position
        position += _LAYOUTS[kind].size
    return names[-1], position


def _located(error: Exception, where: str, name: str, position: int | None) -> MessageError:
    if isinstance(error, MessageError):
        return error.within(name) if name else error
    is_short = isinstance(error, IndexError) or (position is not None and isinstance(error, struct.error))
    return MessageError(where, name, position, "the data end here" if is_short else error)


def _read_tagged(data, position, tagged, values, notes_tags):
    count, position = read_unsigned_varint(data, position)
    for _field in range(count):
        tag, position = read_unsigned_varint(data, position)
        size, position = read_unsigned_varint(data, position)
        if position + size > len(data):
            raise ValueError(f"tagged field {tag} of {size} bytes is longer than the data")
        if tag in tagged:
            name, read_field = tagged[tag]
            try:
                values[name], end = read_field(data, position)
            except UNFIT as error:
                raise _located(error, "", name, position) from None
            if end != position + size:
                raise ValueError(f"tagged field {name} declares {size} bytes and has {end - position}")
        elif notes_tags:
            values.setdefault(UNKNOWN_TAGS, []).append(tag)
        position += size
    return position


def _field_reader(field: Field, flexible: bool, where: str, notes_tags: bool = False) -> Reader:
    kind = field.type
    if kind.startswith("[]"):
        return _array_reader(field, flexible, where, notes_tags)
    if kind == "struct":
        read_struct = _struct_reader(field.fields, flexible, where, notes_tags=notes_tags)
        return _nullable_reader(read_struct) if field.nullable else read_struct
    if kind in _CODES:
        return _number_reader(_LAYOUTS[kind])
    return _read_uuid if kind == "uuid" else _bytes_reader(field)


def _number_reader(layout):
    unpack, size = layout.unpack_from, layout.size

    def read(data, position):
        return unpack(data, position)[0], position + size

    return read


def _nullable_reader(read_struct):
    def read(data, position):
        (mark,) = _LAYOUTS["int8"].unpack_from(data, position)
        return (None, position + 1) if mark < 0 else read_struct(data, position + 1)

    return read


def _read_uuid(data, position):
    end = position + 16
    if end > len(data):
        raise IndexError
    return str(b2a_base64(data[position:end], newline=False)[:22].translate(_URL_SAFE), "ascii"), end


def _bytes_reader(field: Field) -> Reader:
    is_text = field.type == "string"
    length_of = read_length if field.flexible else _read_int16 if is_text else _read_int32

    def read(data, position):
        length, start = length_of(data, position)
        if length < 0:
            return _null(field), start
        end = start + length
        if end > len(data):
            raise ValueError(f"{length} bytes are longer than the data")
        return (str(data[start:end], "utf-8") if is_text else data[start:end]), end

    return read


def _array_reader(field: Field, flexible: bool, where: str, notes_tags: bool) -> Reader:
    element = field._replace(type=field.type[2:], nullable=False)
    length_of = read_length if field.flexible else _read_int32
    layouts = _ARRAYS.get(element.type)
    read_element = _field_reader(element, flexible, where, notes_tags)

    def read_numbers(data, position):
        length, position = length_of(data, position)
        if length < 0:
            return _null(field), position
        layout = layouts[length] if length < 8 else struct.Struct(f">{length}{_CODES[element.type]}")
        return list(layout.unpack_from(data, position)), position + layout.size

    def read(data, position):
        length, position = length_of(data, position)
        if length < 0:
            return _null(field), position
        values: list = []
        try:
            for _element in range(length):
                value, position = read_element(data, position)
                values.append(value)
        except UNFIT as error:
            raise _located(error, where, f"[{len(values)}]", position) from None
        return values, position

    return read_numbers if layouts else read


def _null(field: Field) -> None:
    if not field.nullable:
        raise ValueError(f"{field.name} is null")


def read_unsigned_varint(data: bytes, position: int) -> Tuple[int, int]:
    """Return an unsigned varint (ByteUtils.readUnsignedVarint) and the position after it."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 28:
            raise ValueError("a varint has more than 5 bytes")


def read_length(data: bytes, position: int) -> Tuple[int, int]:
    """Return a compact length, which is stored plus one, and the position after it; -1 for null."""
    length = data[position]
    if length < 0x80:
        return length - 1, position + 1
    length, position = read_unsigned_varint(data, position)
    return length - 1, position


def _read_int16(data, position):
    return _SHORT.unpack_from(data, position)[0], position + 2


def _read_int32(data, position):
    return _INT.unpack_from(data, position)[0], position + 4


# --- writers ---------------------------------------------------------------------------------------------


def _struct_writer(fields: Tuple[Field, ...], flexible: bool, where: str) -> Callable[[bytearray, Mapping], None]:
    names = {field.name for field in fields}
    here = [field for field in fields if field.present]
    plain = [(field.name, field.default, _field_writer(field, flexible, where)) for field in here if field.tag is None]
    tagged = sorted(
        (field.tag, field.name, field.default, _field_writer(field, flexible, where))
        for field in here
        if field.tag is not None
    )
    refused = [(field.name, field.default) for field in fields if not (field.present or field.ignorable)]

    def write(out: bytearray, values: Mapping[str, Any]) -> None:
        name = ""
        try:
            if values.keys() - names:
                raise ValueError(f"there is no field {sorted(values.keys() - names)}")
            for name, default in refused:
                if values.get(name, default) != default:
                    raise ValueError("this version has no such field")
            for name, default, write_field in plain:
                write_field(out, values.get(name, default))
            if flexible:
                name = ""
                parts = [
                    (tag, name, write_field)
                    for tag, name, default, write_field in tagged
                    if values.get(name, default) != default
                ]
                write_unsigned_varint(out, len(parts))
                for tag, name, write_field in parts:
                    part = bytearray()
                    write_field(part, values[name])
                    write_unsigned_varint(out, tag)
                    write_unsigned_varint(out, len(part))
                    out += part
        except _UNWRITABLE as error:
            raise _located(error, where, name, None) from None

    return write


def _field_writer(field: Field, flexible: bool, where: str) -> Callable[[bytearray, Any], None]:
    kind = field.type
    if kind.startswith("[]"):
        return _array_writer(field, flexible, where)
    if kind == "struct":
        write_struct = _struct_writer(field.fields, flexible, where)
        return _nullable_writer(write_struct) if field.nullable else write_struct
    if kind in _CODES:
        return _number_writer(_LAYOUTS[kind].pack)
    return _write_uuid if kind == "uuid" else _bytes_writer(field)


def _number_writer(pack):
    def write(out, value):
        out += pack(value)

    return write


def _nullable_writer(write_struct):
    def write(out, value):
        out += b"\xff" if value is None else b"\x01"
        if value is not None:
            write_struct(out, value)

    return write


def _write_uuid(out, value):
    raw = urlsafe_b64decode(value + "==")
    if len(raw) != 16:
        raise ValueError(f"{value!r} is no uuid")
    out += raw


def _bytes_writer(field: Field) -> Callable[[bytearray, Any], None]:
    is_text = field.type == "string"
    write_length = _write_length if field.flexible else _write_int16 if is_text else _write_int32

    def write(out, value):
        if value is None:
            _null(field)
            write_length(out, -1)
            return
        raw = value.encode() if is_text else value
        if is_text and len(raw) > _LONGEST_STRING:
            raise ValueError(f"{len(raw)} bytes, a string has at most {_LONGEST_STRING}")
        write_length(out, len(raw))
        out += raw

    return write


def _array_writer(field: Field, flexible: bool, where: str) -> Callable[[bytearray, Any], None]:
    write_length = _write_length if field.flexible else _write_int32
    write_element = _field_writer(field._replace(type=field.type[2:], nullable=False), flexible, where)

    def write(out, values):
        if values is None:
            _null(field)
            write_length(out, -1)
            return
        write_length(out, len(values))
        written = 0
        try:
            for value in values:
                write_element(out, value)
                written += 1
        except _UNWRITABLE as error:
            raise _located(error, where, f"[{written}]", None) from None

    return write


def write_unsigned_varint(out: bytearray, value: int) -> None:
    """Append an unsigned varint (ByteUtils.writeUnsignedVarint)."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _write_length(out, length):
    write_unsigned_varint(out, length + 1)


def _write_int16(out, length):
    out += _SHORT.pack(length)


def _write_int32(out, length):
    out += _INT.pack(length)
