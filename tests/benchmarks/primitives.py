# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parts of Kafka's flexible encoding (KIP-482), for answers and logs of a million partitions that are made quickly."""

from __future__ import annotations

from typing import Iterable

NO_TAGS = b"\0"


def unsigned_varint(value: int) -> bytes:
    """Encode a length or count as ByteUtils.writeUnsignedVarint does."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def compact_string(text: str) -> bytes:
    """Encode a string of a flexible request (KIP-482)."""
    data = text.encode()
    return unsigned_varint(len(data) + 1) + data


def compact_array(items: Iterable[bytes]) -> bytes:
    """Encode an array of a flexible request (KIP-482)."""
    listed = list(items)
    return unsigned_varint(len(listed) + 1) + b"".join(listed)
