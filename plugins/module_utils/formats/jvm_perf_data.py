# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse the performance counters that a HotSpot JVM publishes in a file (perfMemory.hpp, version 2)."""

from __future__ import annotations

import struct

_MAGIC = 0xCAFEC0C0
_LONG, _BYTE = ord("J"), ord("B")


class PerfDataError(ValueError):
    """The bytes are not the performance counters of a JVM."""


def parse(raw: bytes) -> dict[str, int | str]:
    """Return {counter name: number or text}. Raises PerfDataError."""
    try:
        (magic,), little, major = struct.unpack_from(">I", raw), raw[4] == 1, raw[5]
        if magic != _MAGIC or major != 2:
            raise PerfDataError(f"begins with {raw[:6].hex()}")
        order = "<" if little else ">"
        at, count = struct.unpack_from(f"{order}ii", raw, 24)
        counters: dict[str, int | str] = {}
        for _entry in range(count):
            length, name_at, items = struct.unpack_from(f"{order}iii", raw, at)
            kind, (data_at,) = raw[at + 12], struct.unpack_from(f"{order}i", raw, at + 16)
            if length <= 0 or at + length > len(raw):
                raise PerfDataError(f"has an entry of length {length} at byte {at}")
            name = _text(raw[at + name_at : at + length])
            if kind == _LONG and not items:
                (counters[name],) = struct.unpack_from(f"{order}q", raw, at + data_at)
            elif kind == _BYTE:
                counters[name] = _text(raw[at + data_at : at + data_at + items])
            at += length
    except (struct.error, IndexError) as error:
        raise PerfDataError(f"ends too early: {error}") from None
    return counters


def _text(raw: bytes) -> str:
    return raw.partition(b"\0")[0].decode("utf-8", "replace")
