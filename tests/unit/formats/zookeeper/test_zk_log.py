# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last transactions of a log are those that a reader from its start finds, whatever the log contains."""

from __future__ import annotations

import os
import random
import struct
import zlib

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import zk_files
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import zk_log as log

FIRST = (1 << 32) + 1
HEADER = struct.pack(">4siq", b"ZKLG", 2, 0)


def entry(body, checksum=None):
    """Return an entry of a log."""
    return struct.pack(">qi", zlib.adler32(body) if checksum is None else checksum, len(body)) + body + b"B"


def body(zxid, data, digest=True):
    """Return a transaction that sets the data of /a."""
    header = struct.pack(">qiqqi", 0x2C00000000000001, 1, zxid, 1_700_000_000_000, 5)
    number = struct.pack(">i", 0)
    tail = struct.pack(">iq", 2, zxid * 0x9E3779B97F4A7C15 & ((1 << 62) - 1)) if digest else b""
    return header + struct.pack(">i", 2) + b"/a" + struct.pack(">i", len(data)) + data + number + tail


def a_log(directory, payloads, digest=True, first=FIRST, tail=b"", hole=1 << 20):
    """Write a log with a transaction for each payload; return its path."""
    path = directory / f"log.{first:x}"
    content = (
        HEADER + b"".join(entry(body(first + number, data, digest)) for number, data in enumerate(payloads)) + tail
    )
    path.write_bytes(content)
    os.truncate(path, len(content) + hole)
    return path


def noise(rng, size):
    """Return random bytes; Random.randbytes exists since Python 3.9."""
    return rng.getrandbits(8 * size).to_bytes(size, "big") if size else b""


def payloads(rng, count):
    """Yield data of all sizes, some with zeros and ends of entries."""
    for _number in range(count):
        size = rng.choice((0, 10, 200, 200, 200, 5000, 70_000 if rng.random() < 0.05 else 1))
        yield rng.choice((bytes(size), noise(rng, size), b"B\0\0\0\0" * (size // 5), b"B" * size))


def zxids(directory, after, **options):
    return [transaction.zxid for transaction in log.transactions(str(directory), after, **options)]


def forged(data_zxid, number=bytes(4)):
    """Return data that, with what ZooKeeper appends to it, ends with a complete entry."""
    inner = body(data_zxid, b"forged", digest=False)[:-4]
    return struct.pack(">qi", zlib.adler32(inner + number), len(inner + number)) + inner


@pytest.mark.parametrize("digest", [True, False], ids=["3.6", "3.5"])
@pytest.mark.parametrize("seed", range(3))
def test_any_tail_is_read_from_any_zxid(tmp_path, seed, digest):
    rng = random.Random(seed)
    a_log(tmp_path, payloads(rng, 1200), digest)
    last = FIRST + 1199
    assert log.last_transaction(str(tmp_path)).zxid == last
    for after in (FIRST - 1, FIRST, FIRST + 600, last - 300, last - 1, last, last + 5):
        assert zxids(tmp_path, after) == list(range(after + 1, last + 1))


@pytest.mark.parametrize("tail", [b"", b"torn"])
def test_an_entry_in_the_data_of_another_is_not_one(tmp_path, tail):
    """Its checksum is right, the forged entry ends where that around it ends, and its zxid would fit."""
    around = b"B" + forged(FIRST + 900)
    torn = entry(body(FIRST + 1000, b"x" * 500))[:300] if tail else b""
    data = [b"x" * 100] * 999 + [around]
    path = a_log(tmp_path, data, digest=False, tail=torn)
    content = path.read_bytes()
    assert entry(body(FIRST + 900, b"forged", digest=False)) in content
    assert log.last_transaction(str(tmp_path)).zxid == FIRST + 999
    assert zxids(tmp_path, FIRST + 997) == [FIRST + 998, FIRST + 999]


@pytest.mark.parametrize("size", [80_000, 500_000, 3_000_000])
def test_a_forged_entry_deep_in_long_data_is_not_a_start(tmp_path, size):
    """The search begins within the long transaction, where its data is full of entries."""
    inside = b"".join(b"B" + forged(FIRST + number, b"") for number in range(5))
    whole = b"".join(entry(body(7, b"y" * 50, digest=False)) for _number in range(size // 100))
    a_log(tmp_path, [b"x" * 100] * 500 + [inside + whole], digest=False)
    assert log.last_transaction(str(tmp_path)).zxid == FIRST + 500
    assert zxids(tmp_path, FIRST + 498) == [FIRST + 499, FIRST + 500]


def test_data_full_of_heads_only_costs_time(tmp_path):
    """Any of them may be the head of a transaction that was written in part, so no later start is proven."""
    heads = b"B\0\0\0\0abcd\0\x20\0\0" * 20
    a_log(tmp_path, [heads] * 2000)
    assert log.last_transaction(str(tmp_path)).zxid == FIRST + 1999
    assert zxids(tmp_path, FIRST + 1990) == list(range(FIRST + 1991, FIRST + 2000))


def test_an_allocated_tail_without_holes_is_no_data(tmp_path):
    path = a_log(tmp_path, [b"x"] * 10, hole=0)
    with open(path, "ab") as file:
        file.write(bytes(3 << 20))
    assert log.last_transaction(str(tmp_path)).zxid == FIRST + 9


def test_logs_roll_over(tmp_path):
    a_log(tmp_path, [b"x"] * 2000)
    a_log(tmp_path, [b"x"] * 10, first=FIRST + 2000, tail=entry(body(FIRST + 2010, b"torn"))[:40])
    a_log(tmp_path, [b"x"] * 3, first=FIRST + 2010)
    assert zxids(tmp_path, FIRST + 1995) == list(range(FIRST + 1996, FIRST + 2013))
    (tmp_path / f"log.{FIRST + 2013:x}").write_bytes(HEADER)
    (tmp_path / f"log.{FIRST + 2014:x}").write_bytes(b"")
    assert log.last_transaction(str(tmp_path)).zxid == FIRST + 2012
    (tmp_path / f"log.{FIRST + 2000:x}").unlink()
    with pytest.raises(log.ZooKeeperFileError, match=f"log.{FIRST + 2010:x} at byte 16: .* are missing"):
        zxids(tmp_path, FIRST + 1995)


def test_what_a_server_received_as_a_snapshot_is_missing_in_its_log(tmp_path):
    """The counter begins anew in an epoch, so the log alone does not show it."""
    next_epoch = (2 << 32) + 1
    a_log(tmp_path, [b"x"] * 5)
    a_log(tmp_path, [b"x"] * 5, first=next_epoch)
    assert zxids(tmp_path, FIRST + 3, snapshots=str(tmp_path)) == [FIRST + 4, *range(next_epoch, next_epoch + 5)]
    taken = tmp_path / f"snapshot.{FIRST + 20:x}"
    taken.write_bytes(b"")
    with pytest.raises(log.ZooKeeperFileError, match=f"between 0x{FIRST + 4:x} and 0x{FIRST + 20:x} are missing"):
        zxids(tmp_path, FIRST + 3, snapshots=str(tmp_path))
    assert zxids(tmp_path, FIRST + 20, snapshots=str(tmp_path)) == list(range(next_epoch, next_epoch + 5))
    taken.rename(tmp_path / f"snapshot.{next_epoch + 9:x}")
    with pytest.raises(log.ZooKeeperFileError, match="received them as a snapshot"):
        zxids(tmp_path, FIRST + 3, snapshots=str(tmp_path))


def test_last_zxid_counts_a_complete_snapshot_only(tmp_path):
    directory = str(tmp_path)
    assert zk_files.last_zxid(directory, directory) == 0
    a_log(tmp_path, [b"x"] * 5)
    newer = tmp_path / f"snapshot.{FIRST + 30:x}"
    newer.write_bytes(b"ZKSN torn while it was written")
    assert zk_files.last_zxid(directory, directory) == FIRST + 4
    newer.write_bytes(bytes(40) + b"\0\0\0\1/")
    assert zk_files.last_zxid(directory, directory) == FIRST + 30
    newer.rename(f"{newer}.gz")
    with pytest.raises(log.ZooKeeperFileError, match="compressed"):
        zk_files.last_zxid(directory, directory)


def test_no_damage_gives_another_zxid(tmp_path):
    """Any changed byte of what is read is an error that names file and offset; any cut ends at a transaction."""
    rng = random.Random(5)
    path = a_log(tmp_path, list(payloads(rng, 600)), hole=0)
    content = path.read_bytes()
    last = FIRST + 599
    for case in range(300):
        at = rng.randrange(16 if case % 2 else len(content) - 3000, len(content))
        changed = bytearray(content)
        changed[at] ^= 1 << rng.randrange(8)
        path.write_bytes(bytes(changed) + bytes(case % 3 * 5000))
        try:
            assert log.last_transaction(str(tmp_path)).zxid == last
        except log.ZooKeeperFileError as error:
            assert error.path == str(path) and 0 < error.position <= at
        with pytest.raises(log.ZooKeeperFileError):
            zxids(tmp_path, FIRST - 1)
    ends, at = [], 16
    while at < len(content):
        at += 13 + struct.unpack_from(">i", content, at + 8)[0]
        ends.append(at)
    for _case in range(100):
        cut = rng.randrange(ends[-100], len(content))
        path.write_bytes(content[:cut])
        assert log.last_transaction(str(tmp_path)).zxid == FIRST + sum(end <= cut for end in ends) - 1


@pytest.mark.parametrize("content", [b"ZKLG", HEADER[:7] + bytes(20), b"ZKSN" + HEADER[4:] + bytes(9), bytes(5000)])
def test_what_is_no_log_is_an_error(tmp_path, content):
    path = tmp_path / "log.1"
    path.write_bytes(content)
    if len(content) < len(HEADER):
        assert log.last_transaction(str(tmp_path)) is None
    else:
        with pytest.raises(log.ZooKeeperFileError, match=r"log\.1 at byte 0: magic"):
            log.last_transaction(str(tmp_path))


def test_a_transaction_that_cannot_be_read_names_its_place(tmp_path):
    """Its checksum is right, but its fields are not what ZooKeeper writes."""
    rng = random.Random(6)
    for _case in range(300):
        content = struct.pack(">qiqqi", 1, 1, FIRST, 0, rng.choice((1, 2, 5, 7, 14, 15, -11))) + noise(rng, 40)
        (tmp_path / f"log.{FIRST:x}").write_bytes(HEADER + entry(content))
        (transaction,) = log.transactions(str(tmp_path), FIRST - 1)
        try:
            transaction.collect({}, {})
        except log.ZooKeeperFileError as error:
            assert error.position == 16
