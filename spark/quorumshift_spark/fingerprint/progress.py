# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps what was read, so that a job which is killed or whose time is over continues with the chunks that are missing.

Two files, only appended to: `progress.jsonl`, a line a chunk, after a line that says which comparison they are of; and
`progress.arrow`, the keys of compacted partitions' chunks, to which the lines refer. A line that a kill cut ends them.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import zlib
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

from quorumshift_spark.fingerprint import plan
from quorumshift_spark.fingerprint.plan import Chunk, PartitionState, Range, TopicPartition

CHUNKS, KEYS = "progress.jsonl", "progress.arrow"

_Place = Tuple[str, int, int, int, bool, bool]  # topic id, partition, begin, end, cut, keyed


class ProgressError(Exception):
    """The directory cannot be used. The message says why and what to do."""


class Found(NamedTuple):
    """A finished chunk, the leader's epoch when it was read, and the log start when its partition was planned."""

    chunk: Chunk
    epoch: int
    log_start: int


class Progress:
    """The finished chunks of one comparison. `keys`: the path of the keys' file."""

    def __init__(self, directory: str, of: Mapping[str, Any]) -> None:
        """Open or create the files. Chunks of another comparison than `of` are dropped. Raises ProgressError, OSError.

        :arg directory: is created, 0700.
        """
        os.makedirs(directory, mode=0o700, exist_ok=True)
        owner = os.lstat(directory)
        if owner.st_uid != os.geteuid() or stat.S_IMODE(owner.st_mode) & 0o077 or not stat.S_ISDIR(owner.st_mode):
            raise ProgressError(
                f"{directory} must be a directory of this user with mode 0700. Run: rm -r {directory} (QS-VERIFY-004)"
            )
        self.keys = os.path.join(directory, KEYS)
        self._path = os.path.join(directory, CHUNKS)
        self._chunks, self._keys = _opened(self._path), _opened(self.keys)
        try:
            fcntl.flock(self._chunks, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            raise ProgressError(
                f"another data_fingerprint of this cluster runs: it uses {self._path}. Wait until it has "
                "ended (QS-VERIFY-004)"
            ) from None
        self._starts: Dict[TopicPartition, int] = {}
        self._found: Dict[_Place, Found] = {}
        self._load(json.dumps(dict(of), sort_keys=True))

    def _load(self, of: str) -> None:
        end, size = 0, os.fstat(self._keys.fileno()).st_size
        for number, line in enumerate(self._chunks):
            if not line.endswith(b"\n") or (number == 0 and line.decode("utf-8", "replace").rstrip("\n") != of):
                break
            if number:
                try:
                    self._take(json.loads(line), size)
                except (ValueError, KeyError, TypeError):
                    break
            end += len(line)
        self._chunks.seek(end)
        self._chunks.truncate()
        if not end:
            self._keys.truncate(0)
            self._chunks.write(of.encode() + b"\n")
            self._chunks.flush()

    def _take(self, line: Mapping[str, Any], size: int) -> None:
        """Add a line of the file. Raises ValueError if its keys are not what was written."""
        chunk = Chunk(*line["chunk"])
        chunk = chunk._replace(times=tuple((offset, time) for offset, time in chunk.times))
        if chunk.size:
            self._keys.seek(chunk.at)
            if chunk.at + chunk.size > size or zlib.crc32(self._keys.read(chunk.size)) != line["crc"]:
                raise ValueError(chunk)
        place = (line["id"], chunk.partition, chunk.begin, chunk.end, line["cut"], chunk.keys is not None)
        self._found[place] = Found(chunk, line["epoch"], line["log_start"])

    def finished(
        self, wanted: Iterable[Range], states: Mapping[TopicPartition, PartitionState]
    ) -> Tuple[List[Range], List[Chunk]]:
        """Return what is still to be read of these ranges, and the chunks that are finished.

        A chunk counts if its topic id, its partition's leader epoch and its log start are those of now.
        """
        left, chunks = [], []
        for whole in wanted:
            state = states[whole.topic, whole.partition]
            self._starts[state.tp] = state.log_start
            done = []
            for begin, end in zip(whole.bounds, whole.bounds[1:]):
                found = self._found.get(_place(whole, begin, end))
                if found and (found.epoch, found.log_start) == (state.leader_epoch, state.log_start):
                    done.append((begin, end))
                    chunks.append(found.chunk._replace(topic=whole.topic))
            left += plan.without(whole, done)
        return left, chunks

    def add(self, part: Range, epoch: int, chunks: Sequence[Chunk], keys: Sequence[bytes]) -> List[Chunk]:
        """Keep chunks of a range that the leader of an epoch had; return them with the places of their keys.

        :arg keys: of each chunk, for a keyed range.
        """
        if keys:
            places = []
            for chunk, data in zip(chunks, keys):
                places.append(chunk._replace(at=self._keys.seek(0, os.SEEK_END)))
                self._keys.write(data)
            self._keys.flush()
            chunks = places
        for number, chunk in enumerate(chunks):
            line = {
                "chunk": list(chunk),
                "id": part.topic_id,
                "cut": _place(part, chunk.begin, chunk.end)[4],
                "epoch": epoch,
                "log_start": self._starts[part.topic, part.partition],
                "crc": zlib.crc32(keys[number]) if keys else 0,
            }
            self._chunks.write(json.dumps(line).encode() + b"\n")
        self._chunks.flush()
        return list(chunks)

    def drop(self) -> None:
        """Remove the files: their comparison is decided."""
        for path in (self._path, self.keys):
            os.unlink(path)

    def close(self) -> None:
        self._chunks.close()
        self._keys.close()


def _place(part: Range, begin: int, end: int) -> _Place:
    return part.topic_id, part.partition, begin, end, part.cut and begin == part.begin, part.keyed


def _opened(path: str):
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+b")
