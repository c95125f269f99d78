# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CRC-32C (Castagnoli), the checksum of Kafka's record batches (KIP-98; org.apache.kafka.common.utils.Crc32C)."""

from __future__ import annotations

import functools
import struct

try:
    from crc32c import crc32c as _native
except ImportError:
    _native = None

_POLYNOMIAL = 0x82F63B78
_EIGHT_BYTES = struct.Struct("<I4B")


@functools.lru_cache(maxsize=None)
def _tables():
    """Return eight tables for slicing by eight: table k advances a byte's remainder over k more zero bytes."""
    first = []
    for value in range(256):
        for _bit in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        first.append(value)
    tables = [first]
    for _step in range(7):
        tables.append([(crc >> 8) ^ first[crc & 0xFF] for crc in tables[-1]])
    return tables


def crc32c_pure(data, crc=0):
    """Return the CRC-32C of `data`, continuing from `crc`, computed in pure Python."""
    t0, t1, t2, t3, t4, t5, t6, t7 = _tables()
    crc ^= 0xFFFFFFFF
    whole = len(data) & ~7
    for low, b4, b5, b6, b7 in _EIGHT_BYTES.iter_unpack(memoryview(data)[:whole]):
        crc ^= low
        crc = (
            t7[crc & 0xFF] ^ t6[crc >> 8 & 0xFF] ^ t5[crc >> 16 & 0xFF] ^ t4[crc >> 24]
            ^ t3[b4] ^ t2[b5] ^ t1[b6] ^ t0[b7]
        )  # fmt: skip
    for byte in data[whole:]:
        crc = (crc >> 8) ^ t0[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def crc32c(data, crc=0):
    """Return the CRC-32C of a bytes-like object, continuing from `crc`; use the native module `crc32c` if installed."""
    return _native(data, crc) if _native else crc32c_pure(data, crc)
