# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Record batches: checksum, complete and incomplete files, flipped bits."""

from __future__ import annotations

import io
import random

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.records import crc32c, record_batch

from tests.unit.formats import metadata_batches as made

FIRST = made.batch(0, [made.NO_OP, made.topic("a", 1)])
SECOND = made.batch(2, [made.topic("b" * 100, 2)] * 3, epoch=4, timestamp=2000)
LOG = FIRST + SECOND


def read(data, **options):
    return list(record_batch.read_batches(io.BytesIO(data), "some.log", **options))


@pytest.mark.parametrize("data", [b"", b"123456789", bytes(32), b"\xff" * 32, bytes(range(256)) * 5 + b"xyz"])
def test_crc32c_in_python_equals_the_native_one(data):
    native = pytest.importorskip("crc32c").crc32c
    assert crc32c.crc32c_pure(data) == native(data)
    assert crc32c.crc32c_pure(data[7:], crc32c.crc32c_pure(data[:7])) == native(data)


def test_crc32c_of_the_check_vectors():
    """RFC 3720 B.4, and the check value of the Castagnoli polynomial."""
    assert crc32c.crc32c_pure(b"123456789") == 0xE3069283
    assert crc32c.crc32c_pure(bytes(32)) == 0x8A9136AA
    assert crc32c.crc32c_pure(b"\xff" * 32) == 0x62A8AB43


def test_batches_and_records():
    first, second = read(LOG)
    assert (first.base_offset, first.last_offset, first.position, first.size) == (0, 1, 0, len(FIRST))
    assert (second.base_offset, second.last_offset, second.epoch, second.position) == (2, 4, 4, len(FIRST))
    records = list(record_batch.records_of(second, "some.log"))
    assert [(offset, timestamp, key) for offset, timestamp, key, _start, _end in records] == [
        (2, 2000, None),
        (3, 2000, None),
        (4, 2000, None),
    ]
    assert {second.records[start:end] for *_rest, start, end in records} == {made.topic("b" * 100, 2)}


def test_many_records_in_a_batch():
    values = [made.topic("t", 1), made.NO_OP] * 5000
    (batch,) = read(made.batch(10**12, values))
    records = list(record_batch.records_of(batch, "some.log"))
    assert [record[0] for record in records] == list(range(10**12, 10**12 + 10000))
    assert [batch.records[start:end] for *_rest, start, end in records] == values


def test_batches_that_end_before_the_start_offset_are_left_out():
    assert [batch.base_offset for batch in read(LOG, start_offset=2)] == [2]
    assert [batch.base_offset for batch in read(LOG, start_offset=1)] == [0, 2]
    assert read(LOG, start_offset=5) == []


@pytest.mark.parametrize("length", range(len(LOG)))
def test_incomplete_last_batch_ends_the_log(length):
    assert len(read(LOG[:length])) == (1 if length >= len(FIRST) else 0)


@pytest.mark.parametrize("seed", range(40))
def test_flipped_bit_is_reported_with_its_batch(seed):
    """All bits except baseOffset and epoch, which the checksum does not cover: metadata_log checks their order."""
    rng = random.Random(seed)
    at = rng.choice([*range(8, 12), *range(16, len(FIRST))])
    broken = bytearray(LOG)
    broken[at] ^= 1 << rng.randrange(8)
    with pytest.raises(record_batch.LogError) as error:
        read(bytes(broken))
    assert (error.value.path, error.value.position) == ("some.log", 0)
    assert str(error.value).startswith("some.log at byte 0: ")


def test_every_flipped_bit_of_the_last_batchs_length_is_reported():
    """A length that exceeds the file must not be taken for a batch that is not yet written."""
    for bit in range(32):
        broken = bytearray(LOG)
        broken[len(FIRST) + 8 + 3 - bit // 8] ^= 1 << bit % 8
        with pytest.raises(record_batch.CorruptBatch) as error:
            read(bytes(broken))
        assert error.value.position == len(FIRST)


def test_checksum_is_checked_unless_disabled():
    broken = bytearray(LOG)
    broken[-1] ^= 1
    with pytest.raises(
        record_batch.CorruptBatch, match=f"at byte {len(FIRST)}: the batch at offset 2 has a wrong checksum"
    ):
        read(bytes(broken))
    assert len(read(bytes(broken), check_crc=False)) == 2


def test_compressed_batch_is_rejected_with_its_codec():
    with pytest.raises(record_batch.CompressedBatch, match="compressed with zstd"):
        read(made.batch(0, [made.NO_OP], attributes=4))


def test_old_magic_is_rejected():
    with pytest.raises(record_batch.CorruptBatch, match="magic 1"):
        read(made.batch(0, [made.NO_OP], magic=1))


def test_zeros_are_not_a_batch():
    with pytest.raises(record_batch.CorruptBatch, match="batch of 12 bytes"):
        read(LOG + bytes(100))


@pytest.mark.parametrize("count", [1, 3])
def test_wrong_record_count_is_rejected(count):
    (batch,) = read(FIRST)
    with pytest.raises(record_batch.CorruptBatch):
        list(record_batch.records_of(batch._replace(count=count), "some.log"))
