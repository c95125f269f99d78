# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Archives of a server's files, which move from its host to where they are read. Standard library only.

An archive is a tar.gz: one file with one digest to move, to check and to remove. It contains nothing of the machine, so
the same files give the same bytes. It may hold secrets in clear text, so it has mode 0600 in a 0700 directory.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import re
import shutil
import tarfile
import tempfile
from typing import Any, BinaryIO, Callable, Iterator, NamedTuple, Sequence

ACTION_OPTIONS = {
    "fetch_to": {"type": "path"},
    "begun": {"type": "dict"},
    "needed": {"type": "bool", "default": True},
}
"""Options of a module that archives, which its action plugin handles."""
_CHUNK = 1 << 20
_LEVEL = 1  # on a metadata log of 3.9.2, level 6 takes three times as long and saves a sixth of the size


class SnapshotError(Exception):
    """A snapshot cannot be made or read; the text names the file, the reason and what to do."""


class Piece(NamedTuple):
    """Bytes [start, end) of an open file, and their file name in the archive."""

    name: str
    file: BinaryIO
    start: int
    end: int


@contextlib.contextmanager
def place(target: str) -> Iterator[str]:
    """Yield a directory to make an archive in, inside of the directory `target`, which is emptied first.

    A run that gives up on the archive removes `target`. The host may be at work for longer, and makes none any more,
    since no task would remove it. Raises OSError.
    """
    if os.path.lexists(target):
        shutil.rmtree(target)
    os.makedirs(target, mode=0o700)
    own = tempfile.mkdtemp(dir=target)  # made 0700; another module may have emptied and made `target` anew
    try:
        yield own
    except BaseException:
        shutil.rmtree(own, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.rmdir(target)
        raise


def create(pieces: Sequence[Any], target: str, name: str) -> tuple[str, str]:
    """Archive these pieces (Piece) as a file in the directory `target`, which is emptied first; return its path and
    SHA-256. Raises SnapshotError, OSError."""
    with place(target) as own:
        return fill(pieces, own, name)


def fill(pieces: Sequence[Any], own: str, name: str) -> tuple[str, str]:
    """Archive these pieces (Piece) as a file in the target of a `place`; return its path and SHA-256.

    `own`: as `place` yielded it. Raises SnapshotError, OSError."""
    target = os.path.dirname(own)
    path, made = os.path.join(target, name), os.path.join(own, name)
    try:
        _check_space(target, sum(piece.end - piece.start for piece in pieces))
        digest = _pack(pieces, made)
        os.replace(made, path)  # fails where `own` was removed
        os.rmdir(own)
    except FileNotFoundError as error:
        raise SnapshotError(
            f"{target} was removed before the archive was complete: nothing waits for it any more. Run again "
            "(QS-VERIFY-006)"
        ) from error
    return path, digest


def unpack(archive: str, sha256: str, directory: str, names: re.Pattern[str]) -> None:
    """Check an archive's digest and unpack it into `directory`, created with mode 0700. `names`: of its files. Raises
    SnapshotError, OSError."""
    with open(archive, "rb") as file:
        digest = _digest(file)
        if digest != sha256:
            raise SnapshotError(
                f"{archive} has SHA-256 {digest}, expected {sha256}: take the snapshot again (QS-VERIFY-007)"
            )
        os.makedirs(directory, mode=0o700, exist_ok=True)
        file.seek(0)
        with tarfile.open(fileobj=file, mode="r|gz") as tar:
            for member in tar:
                if not (member.isreg() and names.fullmatch(member.name)):
                    raise SnapshotError(
                        f"{archive}: {member.name!r} is not one of the files that it may hold (QS-VERIFY-007)"
                    )
                with tar.extractfile(member) as content, _create(os.path.join(directory, member.name)) as out:
                    shutil.copyfileobj(content, out, _CHUNK)


@contextlib.contextmanager
def unpack_privately(archive: str, sha256: str, names: re.Pattern[str], content: bytes | None = None) -> Iterator[str]:
    """Yield a private directory with the files of an archive, which is removed afterwards. `content`: the archive's
    bytes, where there is no file. Raises as `unpack` does."""
    with tempfile.TemporaryDirectory(prefix="quorumshift-log-") as scratch:  # made 0700
        if content is not None:
            archive = os.path.join(scratch, "archive.tar.gz")
            with _create(archive) as file:
                file.write(content)
        unpack(archive, sha256, os.path.join(scratch, "files"), names)
        yield os.path.join(scratch, "files")


def _check_space(target, size):
    """Raise SnapshotError if the archive might fill the disk: a server with a full disk dies."""
    space = os.statvfs(target)
    free = space.f_bavail * space.f_frsize
    if free < size:
        raise SnapshotError(
            f"{target} has {free} bytes free and may need {size}: free space, or set state_dir (QS-VERIFY-006)"
        )


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
    """A writable file that hashes what is written."""

    def __init__(self, write: Callable[[bytes], Any]) -> None:
        self._write = write
        self._hash = hashlib.sha256()
        self.hexdigest = self._hash.hexdigest

    def write(self, data: bytes) -> int:
        self._hash.update(data)
        return self._write(data)

    def flush(self) -> None:
        """Do nothing: gzip calls it, and closing the file flushes it."""


def _create(path):
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb", _CHUNK)


def _digest(file) -> str:
    digest = hashlib.sha256()
    for chunk in iter(lambda: file.read(_CHUNK), b""):
        digest.update(chunk)
    return digest.hexdigest()
