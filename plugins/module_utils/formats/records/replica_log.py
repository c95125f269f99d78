# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the end offset and epochs of a stopped broker's replica from its files. Standard library only.

Sources: kafka.log.UnifiedLog and LogSegment (the newest segment), OffsetIndex (pairs of int32: offset relative to the
segment's base, position), DefaultRecordBatch (magic 2) and LegacyRecord (magic 0 and 1),
LeaderEpochCheckpointFile, PartitionMetadataFile.
"""

from __future__ import annotations

import os
import re
import struct
from typing import NamedTuple

_DIRECTORY = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>\d+)")
_SEGMENT = re.compile(r"(\d{20})\.log")
_PREFIX = struct.Struct(">qiib")  # baseOffset, length of what follows, leader epoch (magic 2), magic
_LENGTH_FROM = 12
_LAST_DELTA_AT, _LAST_DELTA = 23, struct.Struct(">i")
_ENTRY = struct.Struct(">ii")
_TOPIC_ID = re.compile(r"version:\s+\d+\ntopic_id:\s+([A-Za-z0-9_-]{22})\n?")
_SMALLEST = 14  # of a message of magic 0, after offset and size


class ReplicaLogError(ValueError):
    """The files are not a replica's log as Kafka writes it; the text names the file."""


class ReplicaLog(NamedTuple):
    """`end_offset`: the offset of the next record. `last_epoch`: the leader epoch of the last record, -1 without one.
    `newest_epoch`: the highest leader epoch that the replica knows, -1 without any. `topic_id`: as Kafka writes it
    (base64), None if the file is missing."""

    topic_id: str | None
    last_epoch: int
    end_offset: int
    newest_epoch: int


def partition_of(name: str) -> tuple[str, int] | None:
    """Return (topic, partition) of a partition's directory; None for any other, which includes UnifiedLog's -delete,
    -future and -stray directories."""
    match = _DIRECTORY.fullmatch(name)
    return (match["topic"], int(match["partition"])) if match else None


def read(directory: str) -> ReplicaLog:
    """Return the log of one partition's directory of a stopped broker. Raises ReplicaLogError, OSError."""
    try:
        id_of_topic = topic_id(directory)
    except ReplicaLogError:  # the records can still be read
        id_of_topic = None
    epochs = _epochs(os.path.join(directory, "leader-epoch-checkpoint"))
    segments = sorted(name for name in os.listdir(directory) if _SEGMENT.fullmatch(name))
    if not segments:
        return ReplicaLog(id_of_topic, -1, 0, max((epoch for epoch, _start in epochs), default=-1))
    path = os.path.join(directory, segments[-1])
    end, epoch = _end(path, int(segments[-1][:20]))
    if epoch is None:  # a new segment, or records older than leader epochs
        epoch = max((each for each, start in epochs if start < end), default=-1)
    newest = max([epoch, *(each for each, _start in epochs)])
    return ReplicaLog(id_of_topic, epoch, end, newest)


def _end(path: str, base: int) -> tuple[int, int | None]:
    """Return (end offset, epoch of the last complete batch or None) of a segment. An incomplete last batch, left by a
    crash, is left out: the broker's recovery truncates it (LogSegment.recover)."""
    end, epoch = base, None
    with open(path, "rb", buffering=1 << 16) as log:
        size = os.fstat(log.fileno()).st_size
        position = _indexed(path, size)
        while position + _PREFIX.size <= size:
            log.seek(position)
            first, length, batch_epoch, magic = _PREFIX.unpack(log.read(_PREFIX.size))
            after = position + _LENGTH_FROM + length
            if length == 0 and first == 0:
                break  # preallocated, not written
            if length < _SMALLEST or first < base or magic not in (0, 1, 2):
                raise ReplicaLogError(f"{path} at byte {position}: not a record batch")
            if after > size:
                break
            if magic == 2:
                log.seek(position + _LAST_DELTA_AT)
                end = first + _LAST_DELTA.unpack(log.read(_LAST_DELTA.size))[0] + 1
                epoch = batch_epoch
            else:
                end, epoch = first + 1, None
            position = after
    return end, epoch


def _indexed(path: str, size: int) -> int:
    """Return the position of a batch near the end of a segment, from its offset index; 0 without one."""
    try:
        with open(path[: -len(".log")] + ".index", "rb") as index:
            entries = index.read()
    except FileNotFoundError:
        return 0
    low, high = 0, len(entries) // _ENTRY.size  # an index that is still open ends in zeros
    while low < high:
        middle = (low + high) // 2
        if _ENTRY.unpack_from(entries, middle * _ENTRY.size) == (0, 0):
            high = middle
        else:
            low = middle + 1
    position = _ENTRY.unpack_from(entries, (low - 1) * _ENTRY.size)[1] if low else 0
    return position if position < size else 0


def _epochs(path: str) -> list[tuple[int, int]]:
    """Return [(epoch, offset at which it starts)] of a leader-epoch-checkpoint: version, count, then the pairs."""
    try:
        with open(path, encoding="ascii") as stream:
            lines = stream.read().split("\n")
        return [(int(epoch), int(start)) for epoch, start in (line.split() for line in lines[2:] if line.strip())]
    except FileNotFoundError:
        return []
    except ValueError:
        raise ReplicaLogError(f"{path} is not a leader epoch checkpoint") from None


def topic_id(directory: str) -> str | None:
    """Return the topic id in a partition's directory, None if it has none. Raises ReplicaLogError if Kafka would fail
    the log directory for it (PartitionMetadataFile), OSError."""
    path = os.path.join(directory, "partition.metadata")
    try:
        with open(path, encoding="latin-1") as stream:
            match = _TOPIC_ID.fullmatch(stream.read(100))
    except FileNotFoundError:
        return None
    if not match:
        raise ReplicaLogError(f"{path} does not contain a topic id in Kafka's format")
    return match[1]
