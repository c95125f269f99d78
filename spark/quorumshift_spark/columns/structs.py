# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read one struct of Kafka's flexible encoding (KIP-482) at many positions at once, as Arrow columns.

This is the reader of messages by columns: it takes the same fields, and each step reads one field of all rows. It
assumes the common form: lengths of one byte, no null array, tagged fields in ascending order, no unknown tag. Every
byte that it takes for granted is checked. A row that is not in this form is marked as `odd`: its columns mean nothing,
and the caller reads it with the generic decoder.
"""

from __future__ import annotations

import base64
from typing import Any, Dict, NamedTuple, Sequence

import numpy as np
import pyarrow as pa
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.messages.messages import Field

PADDING = bytes(1 << 16)
"""What must follow the data: no odd row reads further past its start than this."""

ARROW_TYPES = {
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "uuid": pa.string(),
    "[]int32": pa.list_(pa.int32()),
    "[]uuid": pa.list_(pa.string()),
}
"""The types of fields that can be read. A uuid is Kafka's base64 text, as the generic decoder returns it."""

_NUMBERS = {"int8": ">i1", "int16": ">i2", "int32": ">i4"}
_UUID = "V16"
_MORE = 0x80  # a varint goes on in the next byte


class Cursor:
    """A position in `data` for each row (`at`), and which rows are not in the common form (`odd`)."""

    def __init__(self, data: bytes, at: np.ndarray) -> None:
        self.data = data
        self.at = np.array(at, np.int64)
        self.odd = np.zeros(len(self.at), bool)

    def values(self, kind: str, at: np.ndarray) -> np.ndarray:
        """Return the values of a numpy type at these positions. The view has a value at every byte."""
        size = np.dtype(kind).itemsize
        return np.ndarray((len(self.data) - size + 1,), kind, self.data, strides=(1,))[at]

    def byte(self) -> np.ndarray:
        """Read an unsigned byte."""
        return self.number("u1").astype(np.int64)

    def number(self, kind: str) -> np.ndarray:
        """Read a value of a numpy type."""
        values = self.values(kind, self.at)
        self.at += values.itemsize
        return values

    def varint(self) -> np.ndarray:
        """Read an unsigned varint of one to three bytes; a longer one is odd."""
        value = self.byte()
        for shift in (7, 14):
            more = value >> (shift - 7) >= _MORE
            if not more.any():
                return value
            following = self.values("u1", self.at).astype(np.int64)
            value = np.where(more, (value - (_MORE << (shift - 7))) | following << shift, value)
            self.at += more
        self.odd |= value >= _MORE << 14
        return value

    def zigzag(self) -> np.ndarray:
        """Read a signed varint that is not negative; a negative one is odd."""
        raw = self.varint()
        self.odd |= raw & 1 == 1
        return raw >> 1

    def field(self, kind: str) -> pa.Array:
        """Read a field of a type in ARROW_TYPES."""
        if kind.startswith("[]"):
            return self._lists(kind[2:])
        return _arrow(self.number(_NUMBERS.get(kind, _UUID)))

    def _lists(self, kind: str) -> pa.Array:
        length = self.byte() - 1
        self.odd |= (length < 0) | (length >= _MORE - 1)
        length[self.odd] = 0
        ends = np.cumsum(length)
        number_type = _NUMBERS.get(kind, _UUID)
        size = np.dtype(number_type).itemsize
        starts = self.at - (ends - length) * size
        elements = np.repeat(starts, length) + np.arange(ends[-1] if len(ends) else 0) * size
        self.at += length * size
        offsets = np.concatenate(([0], ends)).astype(np.int32)
        return pa.ListArray.from_arrays(offsets, _arrow(self.values(number_type, elements)))


def _arrow(values: np.ndarray) -> pa.Array:
    if values.dtype != _UUID:
        return pa.array(values.astype(values.dtype.newbyteorder("=")))
    # Rows of 18 bytes become 24 characters without padding: the first 22 are the uuid's
    rows = np.zeros((len(values), 18), np.uint8)
    rows[:, :16] = values.view(np.uint8).reshape(-1, 16)
    text = np.frombuffer(base64.urlsafe_b64encode(rows), np.uint8).reshape(-1, 24)[:, :22]
    offsets = np.arange(len(values) + 1, dtype=np.int32) * 22
    return pa.StringArray.from_buffers(len(values), pa.py_buffer(offsets), pa.py_buffer(text.tobytes()))


class Structs(NamedTuple):
    """The structs that were read. `columns`: by the field's name, absent fields with Kafka's default; `end`: the
    position after each; `odd`: the rows to read with the generic decoder."""

    columns: Dict[str, pa.Array]
    end: np.ndarray
    odd: np.ndarray


def read_structs(data: bytes, at: np.ndarray, fields: Sequence[Field]) -> Structs:
    """Return the structs that start at these positions of `data`, which ends with PADDING."""
    cursor = Cursor(data, at)
    present = [field for field in fields if field.present]
    columns = {field.name: cursor.field(field.type) for field in present if field.tag is None}
    tags_left = cursor.byte()
    for field in sorted((field for field in present if field.tag is not None), key=lambda field: field.tag):
        columns[field.name] = _tagged(cursor, field, tags_left)
    cursor.odd |= tags_left != 0
    for field in fields:
        if not field.present:
            columns[field.name] = _constant(field.default, field, len(cursor.at))
    return Structs(columns, cursor.at, cursor.odd)


def _tagged(cursor: Cursor, field: Field, tags_left: np.ndarray) -> pa.Array:
    """Read a tagged field of the rows whose next tag it is, and count their `tags_left` down."""
    rows = np.flatnonzero(tags_left)
    rows = rows[cursor.values("u1", cursor.at[rows]) == field.tag]
    if not len(rows):
        return _constant(field.default, field, len(cursor.at))
    part = Cursor(cursor.data, cursor.at[rows] + 1)
    size = part.byte()
    start = part.at.copy()
    values = part.field(field.type)
    cursor.odd[rows] |= part.odd | (size >= _MORE) | (part.at != start + size)
    cursor.at[rows] = part.at
    tags_left[rows] -= 1
    choice = np.full(len(cursor.at), len(rows))
    choice[rows] = np.arange(len(rows))
    return pa.concat_arrays([values, _constant(field.default, field, 1)]).take(pa.array(choice))


def _constant(value: Any, field: Field, length: int) -> pa.Array:
    if value is None:
        return pa.nulls(length, ARROW_TYPES[field.type])
    return pa.array([value], ARROW_TYPES[field.type]).take(pa.array(np.zeros(length, np.int8)))
