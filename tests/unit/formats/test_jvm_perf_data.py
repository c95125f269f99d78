# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Performance counters in HotSpot's layout (perfMemory.hpp, perfData.cpp)."""

from __future__ import annotations

import struct

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.jvm_perf_data import PerfDataError, parse


def entry(order, name, kind, data, items=0):
    text = name.encode() + b"\0"
    text += b"\0" * (-(20 + len(text)) % 8)
    length = 20 + len(text) + len(data)
    return struct.pack(f"{order}iiiBBBBi", length, 20, items, ord(kind), 0, 1, 1, 20 + len(text)) + text + data


def laid_out(order):
    entries = [
        entry(order, "sun.gc.generation.1.maxCapacity", "J", struct.pack(f"{order}q", 6 << 30)),
        entry(order, "sun.gc.collector.1.name", "B", b"G1 stop-the-world full collections\0\0\0\0\0\0", 40),
    ]
    header = bytes([0xCA, 0xFE, 0xC0, 0xC0, order == "<", 2, 0, 1])
    return header + struct.pack(f"{order}iiqii", 0, 0, 0, 32, len(entries)) + b"".join(entries)


@pytest.mark.parametrize("order", ["<", ">"])
def test_numbers_and_texts_are_parsed(order):
    assert parse(laid_out(order)) == {
        "sun.gc.generation.1.maxCapacity": 6 << 30,
        "sun.gc.collector.1.name": "G1 stop-the-world full collections",
    }


def test_incomplete_and_foreign_bytes_are_rejected():
    whole = laid_out("<")
    for end in (0, 3, 20, 40, len(whole) - 60):
        with pytest.raises(PerfDataError):
            parse(whole[:end])
    with pytest.raises(PerfDataError, match="begins with 504b"):
        parse(b"PK" + whole[2:])
    with pytest.raises(PerfDataError, match="length 0"):
        parse(whole[:32] + bytes(200))
