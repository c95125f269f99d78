# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A consistent copy of a controller's metadata log in one archive: made on its host, unpacked where it is read.

Standard library only. The archive is a tar.gz: a snapshot is then one file with one digest to move, to check and to
remove, and its reader has to take records in their order anyway, since transactions run across segments. Nothing of
the machine is in it, so that the same log gives the same bytes. It holds secrets in clear text (SCRAM keys, encrypted
configs, delegation tokens): 0600 in a 0700 directory.

No file of the log needs a second name while it is read: open_log holds all of them open, and an open file outlives
Kafka's renaming and unlinking as a hard link does, across devices too, and with nothing left behind by a killed run.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import re
import shutil
import tarfile
import time
from typing import Any, Callable, Iterator, NamedTuple

from .formats import metadata_log
from .formats.record_batch import LogError

DIRECTORY = "metadata_snapshot"
_NAME = re.compile(r"\d{20}(-\d{10}\.checkpoint|\.log)")
_CHUNK = 1 << 20
_PAUSE_S = 0.2
_LEVEL = 1  # on a log of 3.9.2, level 6 takes three times as long for an archive that is a sixth smaller


class SnapshotError(Exception):
    """A snapshot that cannot be made or read; says of which log or file, why and what to do."""


class Snapshot(NamedTuple):
    """An archive. `files` are (name, bytes unpacked); `checkpoint` is (offset, epoch), None without one.

    Its records are those below `checkpoint`'s offset, in their final state, and each from `start_offset` to
    `end_offset` (exclusive), whose last is of `last_epoch`.
    """

    path: str | None
    sha256: str | None
    bytes: int | None
    files: tuple[tuple[str, int], ...]
    checkpoint: tuple[int, int] | None
    start_offset: int
    end_offset: int
    last_epoch: int


def gather(directory: str, end_offset: int | None = None, timeout: float = 30.0) -> Snapshot:
    """What a snapshot would hold, without making it: path, sha256 and bytes are None. Errors as of `take`."""
    with _cut(directory, end_offset, timeout) as (log, cut):
        return _reported(log, cut)


def take(directory: str, target: str, end_offset: int | None = None, timeout: float = 30.0) -> Snapshot:
    """Archive the log in `directory` below `end_offset` (None: all of it) as a file of the directory `target`.

    `target` is made 0700 and emptied first. A batch that `end_offset` falls into is left out (metadata_log.cut_log);
    the high watermark never falls into one. A log that is behind, or whose files Kafka rolls and drops meanwhile, is
    looked at again for `timeout` seconds. Raises SnapshotError, LogError, OSError.
    """
    with _cut(directory, end_offset, timeout) as (log, cut):
        if os.path.lexists(target):
            shutil.rmtree(target)
        os.makedirs(target, mode=0o700)
        _check_space(target, sum(piece.end - piece.start for piece in cut.pieces))
        path = os.path.join(target, f"{cut.end_offset:020d}-{cut.last_epoch:010d}.tar.gz")
        try:
            digest = _pack(cut.pieces, path + ".part")
            os.replace(path + ".part", path)
        except BaseException:
            shutil.rmtree(target, ignore_errors=True)
            raise
        return _reported(log, cut)._replace(path=path, sha256=digest, bytes=os.path.getsize(path))


def unpack(archive: str, sha256: str, directory: str) -> None:
    """Lay out the log of an archive in `directory`, made 0700, for metadata_log.open_log; checks the digest first.

    Raises SnapshotError, OSError.
    """
    with open(archive, "rb") as file:
        found = _digest(file)
        if found != sha256:
            raise SnapshotError(f"{archive}: SHA-256 {found} where {sha256} was made: take the snapshot again")
        os.makedirs(directory, mode=0o700, exist_ok=True)
        file.seek(0)
        with tarfile.open(fileobj=file, mode="r|gz") as tar:
            for member in tar:
                if not (member.isreg() and _NAME.fullmatch(member.name)):
                    raise SnapshotError(f"{archive}: {member.name!r} is no file of a metadata log")
                with tar.extractfile(member) as content, _create(os.path.join(directory, member.name)) as out:
                    shutil.copyfileobj(content, out, _CHUNK)


@contextlib.contextmanager
def _cut(directory, end_offset, timeout) -> Iterator[tuple[metadata_log.OpenLog, metadata_log.Cut]]:
    """The log, open, and what of it is wanted; looked at again until it reaches `end_offset`."""
    with contextlib.ExitStack() as stack:
        until = time.monotonic() + timeout
        while True:
            log, cut = _opened(directory, end_offset, stack)
            if not cut.is_short:
                break
            if time.monotonic() > until:
                raise SnapshotError(
                    f"{directory} reaches offset {cut.end_offset} (epoch {cut.last_epoch}), "
                    f"{end_offset - cut.end_offset} short of {end_offset}, and did not get there within {timeout:g} s: "
                    "take the snapshot on the leading controller, or see why this one lags"
                )
            stack.close()
            time.sleep(_PAUSE_S)
        if not cut.pieces:
            raise SnapshotError(f"{directory} holds no record below offset {end_offset}, and no checkpoint")
        yield log, cut


def _opened(directory, end_offset, stack):
    try:
        log = stack.enter_context(metadata_log.open_log(directory, end_offset))
        return log, metadata_log.cut_log(log, end_offset)
    except metadata_log.LogGap as error:
        if end_offset is None:
            raise
        # A high watermark that is older than what Kafka has dropped since
        raise SnapshotError(f"{error}: if the end offset {end_offset} is old, take the high watermark again") from error


def _reported(log, cut) -> Snapshot:
    files = tuple((piece.name, piece.end - piece.start) for piece in cut.pieces)
    checkpoint = (log.checkpoint.offset, log.checkpoint.epoch) if log.checkpoint else None
    return Snapshot(None, None, None, files, checkpoint, log.start_offset, cut.end_offset, cut.last_epoch)


def _check_space(target, size):
    """A controller whose disk is full dies: never begin what might fill it."""
    space = os.statvfs(target)
    free = space.f_bavail * space.f_frsize
    if free < size:
        raise SnapshotError(f"{target}: {free} bytes free where {size} may be needed: make room, or set state_dir")


def _pack(pieces, path) -> str:
    """Write the archive and return its SHA-256."""
    with _create(path) as raw:
        hashed = _Hashing(raw.write)
        packed = gzip.GzipFile("", "wb", _LEVEL, hashed, mtime=0)
        with packed, tarfile.open(fileobj=packed, mode="w|", format=tarfile.USTAR_FORMAT) as tar:
            for piece in pieces:
                entry = tarfile.TarInfo(piece.name)
                entry.size, entry.mode = piece.end - piece.start, 0o600
                piece.file.seek(piece.start)
                tar.addfile(entry, piece.file)
    return hashed.hexdigest()


class _Hashing:
    """A file to write to that hashes what goes by."""

    def __init__(self, write: Callable[[bytes], Any]) -> None:
        self._write = write
        self._hash = hashlib.sha256()
        self.hexdigest = self._hash.hexdigest

    def write(self, data: bytes) -> int:
        self._hash.update(data)
        return self._write(data)

    def flush(self) -> None:
        """gzip asks for it; the file beneath is flushed when it is closed."""


def _create(path):
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb", _CHUNK)


def _digest(file) -> str:
    reported = hashlib.sha256()
    for chunk in iter(lambda: file.read(_CHUNK), b""):
        reported.update(chunk)
    return reported.hexdigest()


__all__ = ["DIRECTORY", "LogError", "Snapshot", "SnapshotError", "gather", "take", "unpack"]
