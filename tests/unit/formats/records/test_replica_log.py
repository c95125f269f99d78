# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a replica's log, from files that Kafka and crashes leave."""

from __future__ import annotations

import struct

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.records import replica_log

ID = "rEkb6zsIRuC1dqhNSBF0Nw"


def batch(first, count, epoch, size=100):
    """Return a record batch's header, and bytes for its records."""
    header = struct.pack(">qiibIhiqqqhii", first, size - 12, epoch, 2, 0, 0, count - 1, 0, 0, -1, -1, -1, count)
    return header + bytes(size - len(header))


@pytest.fixture
def replica(tmp_path):
    """A function that writes a directory: segments {base: bytes}, epochs [(epoch, start)], index [(offset, at)]."""

    def write(segments, epochs=(), index=None, trailing=0):
        lines = ["0", str(len(epochs)), *(f"{epoch} {start}" for epoch, start in epochs)]
        (tmp_path / "leader-epoch-checkpoint").write_text("\n".join(lines) + "\n")
        (tmp_path / "partition.metadata").write_text(f"version: 0\ntopic_id: {ID}\n")
        for base, data in segments.items():
            (tmp_path / f"{base:020}.log").write_bytes(data)
        if index is not None:
            entries = b"".join(struct.pack(">ii", *entry) for entry in index) + bytes(trailing)
            (tmp_path / f"{max(segments):020}.index").write_bytes(entries)
        return str(tmp_path)

    return write


def test_end_is_read_from_the_last_batch_of_the_newest_segment(replica):
    directory = replica({0: batch(0, 5, 1), 5: batch(5, 3, 1) + batch(8, 2, 4)}, [(1, 0), (4, 8), (6, 10)])
    assert replica_log.read(directory) == replica_log.ReplicaLog(ID, last_epoch=4, end_offset=10, newest_epoch=6)


def test_new_segment_without_records(replica):
    log = replica_log.read(replica({0: batch(0, 5, 1), 5: b""}, [(1, 0), (3, 5)]))
    assert (log.last_epoch, log.end_offset, log.newest_epoch) == (1, 5, 3)


def test_replica_without_records(replica):
    log = replica_log.read(replica({0: b""}))
    assert (log.last_epoch, log.end_offset, log.newest_epoch) == (-1, 0, -1)
    assert replica_log.read(replica({}))[1:] == (-1, 0, -1)


@pytest.mark.parametrize("cut", [1, 40, 60, 99])
def test_incomplete_last_batch_is_left_out(replica, cut):
    log = replica_log.read(replica({0: batch(0, 5, 1) + batch(5, 5, 2)[:cut]}, [(1, 0), (2, 5)]))
    assert (log.last_epoch, log.end_offset) == (1, 5)


def test_preallocated_bytes_end_the_log(replica):
    assert replica_log.read(replica({7: batch(7, 1, 1) + bytes(4096)})).end_offset == 8


@pytest.mark.parametrize("trailing", [0, 8, 8000])
def test_index_is_used_even_if_it_was_not_closed(replica, trailing):
    batches = [batch(10 + number, 1, 1) for number in range(50)]
    batches[:40] = [bytes(100)] * 40  # not read
    index = [(number, number * 100) for number in range(10, 45, 5)]
    assert replica_log.read(replica({10: b"".join(batches)}, index=index, trailing=trailing)).end_offset == 60


def test_messages_of_old_formats(replica):
    message = struct.pack(">qiib", 41, 30, 0x1234, 1) + bytes(25)
    log = replica_log.read(replica({40: message}))
    assert (log.end_offset, log.last_epoch) == (42, -1)


def test_invalid_files_are_rejected(replica):
    with pytest.raises(replica_log.ReplicaLogError, match="at byte 100: not a record batch"):
        replica_log.read(replica({0: batch(0, 1, 1) + b"\xff" * 100}))
    directory = replica({0: b""}, [("x", 0)])
    with pytest.raises(replica_log.ReplicaLogError, match="is not a leader epoch checkpoint"):
        replica_log.read(directory)


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        ("orders-0", ("orders", 0)),
        ("a.b_c-d-12", ("a.b_c-d", 12)),
        ("orders-0.b2f3-delete", None),
        ("orders-1.b2f3-future", None),
        ("orders-1.b2f3-stray", None),
        ("lost+found", None),
    ],
)
def test_partition_of_a_directory(name, partition):
    assert replica_log.partition_of(name) == partition
