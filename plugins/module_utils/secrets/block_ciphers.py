# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decrypt what key stores encrypt: AES (FIPS 197) and RC2 (RFC 2268), in CBC mode.

For certificates in a local store, which are public: an attacker who measures time learns nothing.
"""

from __future__ import annotations

import struct
from typing import Callable, List, Sequence, Tuple


class BadPadding(ValueError):
    """The decrypted text does not end as PKCS7 has it: another key was used, or the data is damaged."""


def aes_cbc(key: bytes, vector: bytes, data: bytes) -> bytes:
    """Return the plain text. Raises BadPadding."""
    keys = _expand_aes(key)
    return _cbc(lambda block: _decrypt_aes(keys, block), 16, vector, data)


def rc2_cbc(key: bytes, vector: bytes, data: bytes) -> bytes:
    """Return the plain text; the key's length is its effective one. Raises BadPadding."""
    keys = _expand_rc2(key)
    return _cbc(lambda block: _decrypt_rc2(keys, block), 8, vector, data)


def _cbc(decrypt: Callable[[bytes], bytes], size: int, vector: bytes, data: bytes) -> bytes:
    if not data or len(data) % size or len(vector) != size:
        raise BadPadding("the length is not a multiple of the block's (QS-CONNECT-007)")
    found, before = bytearray(), vector
    for at in range(0, len(data), size):
        block = data[at : at + size]
        found += bytes(left ^ right for left, right in zip(decrypt(block), before))
        before = block
    padding = found[-1]
    if not 1 <= padding <= size or found[-padding:] != bytes([padding]) * padding:
        raise BadPadding("the padding is wrong (QS-CONNECT-007)")
    return bytes(found[:-padding])


# AES ----------------------------------------------------------------------------------------------------------------


def _double(value: int) -> int:
    return (value << 1) ^ (0x11B if value & 0x80 else 0)


def _times(value: int, factor: int) -> int:
    product = 0
    while factor:
        product ^= value if factor & 1 else 0
        value, factor = _double(value), factor >> 1
    return product


def _substitutions() -> Tuple[List[int], List[int]]:
    """Return the S-box and its inverse, from the inverses of the field."""
    forward, backward = [0] * 256, [0] * 256
    power = inverse = 1
    while True:
        power ^= _double(power)  # times 3, a generator
        inverse ^= inverse << 1  # divided by 3
        inverse ^= inverse << 2
        inverse ^= inverse << 4
        inverse &= 0xFF
        inverse ^= 0x09 if inverse & 0x80 else 0
        value = inverse
        for shift in (1, 2, 3, 4):
            value ^= ((inverse << shift) | (inverse >> (8 - shift))) & 0xFF
        forward[power] = value ^ 0x63
        if power == 1:
            break
    forward[0] = 0x63
    for plain, substituted in enumerate(forward):
        backward[substituted] = plain
    return forward, backward


_SBOX, _INVERSE = _substitutions()
_BY = {factor: [_times(value, factor) for value in range(256)] for factor in (9, 11, 13, 14)}
_UNSHIFTED = [0, 13, 10, 7, 4, 1, 14, 11, 8, 5, 2, 15, 12, 9, 6, 3]


def _expand_aes(key: bytes) -> List[bytes]:
    words, length, constant = [list(key[at : at + 4]) for at in range(0, len(key), 4)], len(key) // 4, 1
    for number in range(length, 4 * (length + 7)):
        word = list(words[-1])
        if number % length == 0:
            word = [_SBOX[value] for value in word[1:] + word[:1]]
            word[0] ^= constant
            constant = _double(constant)
        elif length > 6 and number % length == 4:
            word = [_SBOX[value] for value in word]
        words.append([left ^ right for left, right in zip(words[-length], word)])
    flat = bytes(value for word in words for value in word)
    return [flat[at : at + 16] for at in range(0, len(flat), 16)]


def _decrypt_aes(keys: Sequence[bytes], block: bytes) -> bytes:
    by9, by11, by13, by14 = _BY[9], _BY[11], _BY[13], _BY[14]
    state = [left ^ right for left, right in zip(block, keys[-1])]
    for number in range(len(keys) - 2, -1, -1):
        state = [_INVERSE[state[at]] ^ added for at, added in zip(_UNSHIFTED, keys[number])]
        if number == 0:
            break
        mixed: List[int] = []
        for at in (0, 4, 8, 12):
            a, b, c, d = state[at : at + 4]
            mixed += (
                by14[a] ^ by11[b] ^ by13[c] ^ by9[d],
                by9[a] ^ by14[b] ^ by11[c] ^ by13[d],
                by13[a] ^ by9[b] ^ by14[c] ^ by11[d],
                by11[a] ^ by13[b] ^ by9[c] ^ by14[d],
            )
        state = mixed
    return bytes(state)


# RC2 ----------------------------------------------------------------------------------------------------------------

_PI_TABLE = bytes.fromhex(
    "d978f9c419ddb5ed28e9fd794aa0d89dc67e37832b76538e624c6488448bfba2"
    "179a59f587b34f1361456d8d09817d32bd8f40eb86b77b0bf09521225c6b4e82"
    "54d66593ce60b21c7356c014a78cf1dc1275ca1f3bbee4d1423dd430a33cb626"
    "6fbf0eda4669075727f21d9bbc944303f811c7f690ef3ee706c3d52fc8661ed7"
    "08e8eade8052eef784aa72ac354d6a2a961ad2715a1549744b9fd05e0418a4ec"
    "c2e0416e0f51cbcc2491af50a1f47039997c3a8523b8b47afc02365b25559731"
    "2d5dfa98e38a92ae05df2910676cbac9d300e6cfe19ea82c6316013f58e289a9"
    "0d38341bab33ffb0bb480c5fb9b1cd2ec5f3db47e5a59c770aa62068fe7fc1ad"
)
_RC2_ROTATIONS = (1, 2, 3, 5)


def _expand_rc2(key: bytes) -> Tuple[int, ...]:
    buffer, size = bytearray(key), len(key)
    while len(buffer) < 128:
        buffer.append(_PI_TABLE[(buffer[-1] + buffer[-size]) & 0xFF])
    buffer[128 - size] = _PI_TABLE[buffer[128 - size]]
    for at in range(127 - size, -1, -1):
        buffer[at] = _PI_TABLE[buffer[at + 1] ^ buffer[at + size]]
    return struct.unpack("<64H", buffer)


def _decrypt_rc2(keys: Sequence[int], block: bytes) -> bytes:
    words, number = list(struct.unpack("<4H", block)), 63
    for rounds in (5, 6, 5):
        for _round in range(rounds):
            for at in (3, 2, 1, 0):
                turned = _RC2_ROTATIONS[at]
                value = ((words[at] >> turned) | (words[at] << (16 - turned))) & 0xFFFF
                before, second, third = words[at - 1], words[at - 2], words[at - 3]
                words[at] = (value - keys[number] - (before & second) - (~before & third)) & 0xFFFF
                number -= 1
        if number >= 0:
            for at in (3, 2, 1, 0):
                words[at] = (words[at] - keys[words[at - 1] & 63]) & 0xFFFF
    return struct.pack("<4H", *words)
