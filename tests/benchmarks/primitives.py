# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kafka's primitive types in requests and answers (org.apache.kafka.common.protocol.types, KIP-482)."""

from __future__ import annotations

import base64
import struct
from typing import Any, Callable, Dict, Iterable, List

NO_TAGS = b"\0"


def unsigned_varint(value: int) -> bytes:
    """Encode a length or count as ByteUtils.writeUnsignedVarint does."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def string(text: str) -> bytes:
    """Encode a string of a request that is not flexible."""
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def compact_string(text: str) -> bytes:
    """Encode a string of a flexible request (KIP-482)."""
    data = text.encode()
    return unsigned_varint(len(data) + 1) + data


def compact_array(items: Iterable[bytes]) -> bytes:
    """Encode an array of a flexible request (KIP-482)."""
    listed = list(items)
    return unsigned_varint(len(listed) + 1) + b"".join(listed)


class Reader:
    """A reader of Kafka's primitive types in one answer. Raises IndexError or struct.error if it is too short."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise IndexError(f"{size} bytes wanted at {self._at} of {len(self._data)}")
        piece = self._data[self._at : end]
        self._at = end
        return piece

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._at)

    def int8(self) -> int:
        return struct.unpack(">b", self.take(1))[0]

    def int16(self) -> int:
        return struct.unpack(">h", self.take(2))[0]

    def int32(self) -> int:
        return struct.unpack(">i", self.take(4))[0]

    def int64(self) -> int:
        return struct.unpack(">q", self.take(8))[0]

    def varint(self) -> int:
        value = shift = 0
        while shift < 35:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise ValueError(f"no varint ends at {self._at}")

    def uuid(self) -> str | None:
        value = self.take(16)
        return base64.urlsafe_b64encode(value).decode().rstrip("=") if any(value) else None

    def string(self) -> str | None:
        size = self.int16()
        return None if size < 0 else self.take(size).decode()

    def compact_string(self) -> Any:
        size = self.varint()
        return None if size == 0 else self.take(size - 1).decode()

    def array(self, item: Callable[[], Any]) -> List[Any]:
        return [item() for dummy in range(self.int32())]

    def compact_array(self, item: Callable[[], Any]) -> List[Any]:
        return [item() for dummy in range(self.varint() - 1)]

    def tags(self) -> Dict[int, Any]:
        return {self.varint(): self.take(self.varint()) for dummy in range(self.varint())}
