# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Archive a consistent snapshot of a controller's metadata log, and unpack it where it is read.

Standard library only. The archive is a tar.gz: one file with one digest to move, to check and to remove. It contains
nothing of the machine, so the same log gives the same bytes. It holds secrets in clear text (SCRAM keys, encrypted
configs, delegation tokens), so it has mode 0600 in a 0700 directory.

The log's files need no hard links while they are read: open_log holds all of them open, and an open file survives
Kafka's renaming and unlinking. A killed run leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from typing import Iterator, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.files import archives
from ansible_collections.quorumshift.kafka.plugins.module_utils.files.archives import SnapshotError
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import metadata_log
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.records.record_batch import LogError

DIRECTORY = "metadata_snapshot"
NAMES = re.compile(r"\d{20}(-\d{10}\.checkpoint|\.log)")
_PAUSE_S = 0.2


class Snapshot(NamedTuple):
    """An archive. `files` are (name, bytes unpacked); `checkpoint` is (offset, epoch), None without one.

    It holds the final state of the records below `checkpoint`'s offset, and every record from `start_offset` to
    `end_offset` (exclusive), the last of which has `last_epoch`. With records below the checkpoint, it also holds the
    older checkpoint that ends at `start_offset`.
    """

    path: str | None
    sha256: str | None
    bytes: int | None
    files: tuple[tuple[str, int], ...]
    checkpoint: tuple[int, int] | None
    start_offset: int
    end_offset: int
    last_epoch: int


def preview(directory: str, end_offset: int | None = None, timeout: float = 30.0, since: int | None = None) -> Snapshot:
    """Return what `take` would archive, with path, sha256 and bytes None. Errors as of `take`."""
    with _cut(directory, end_offset, timeout, since) as (log, cut):
        return _snapshot(log, cut)


def take(
    directory: str, target: str, end_offset: int | None = None, timeout: float = 30.0, since: int | None = None
) -> Snapshot:
    """Archive the log in `directory` below `end_offset` (None: all of it) as a file in the directory `target`.

    `since`: the archive also has the records from that offset on, or as many of them as Kafka kept, which a newer
    checkpoint sums up.

    `target` is emptied first and created with mode 0700; where it is removed meanwhile, nothing is archived. A batch
    that contains `end_offset` is left out (metadata_log.cut_log); the high watermark is never inside a batch. A log
    that is behind is read again until its end has not moved for `timeout` seconds. Raises SnapshotError, LogError,
    OSError.
    """
    with archives.place(target) as own, _cut(directory, end_offset, timeout, since) as (log, cut):
        name = f"{cut.end_offset:020d}-{cut.last_epoch:010d}.tar.gz"
        path, digest = archives.fill(cut.pieces, own, name)
        return _snapshot(log, cut)._replace(path=path, sha256=digest, bytes=os.path.getsize(path))


def unpack(archive: str, sha256: str, directory: str) -> None:
    """Check an archive's digest and unpack its log into `directory`, created with mode 0700, for metadata_log.open_log.

    Raises SnapshotError, OSError.
    """
    archives.unpack(archive, sha256, directory, NAMES)


@contextlib.contextmanager
def _cut(directory, end_offset, timeout, since) -> Iterator[tuple[metadata_log.OpenLog, metadata_log.Cut]]:
    """Yield the open log and its cut at `end_offset`, read again until the log reaches it; with the records `since`."""
    with contextlib.ExitStack() as stack:
        reached, until = -1, 0.0
        while True:
            log, cut = _open(directory, end_offset, stack)
            if not cut.is_short:
                break
            if cut.end_offset > reached:
                reached, until = cut.end_offset, time.monotonic() + timeout
            if time.monotonic() > until:
                raise SnapshotError(
                    f"{directory} ends at offset {cut.end_offset} (epoch {cut.last_epoch}), "
                    f"{end_offset - cut.end_offset} short of {end_offset}, and has not moved for {timeout:g} s: find "
                    "out why this controller lags (QS-VERIFY-006)"
                )
            stack.close()
            time.sleep(_PAUSE_S)
        if not cut.pieces:
            raise SnapshotError(
                f"{directory} holds no record below offset {end_offset}, and no checkpoint (QS-VERIFY-006)"
            )
        if since is not None and log.checkpoint and log.checkpoint.offset > since:
            newest = [piece for piece in cut.pieces if piece.file is log.checkpoint_file]
            older, of_older = _open(directory, cut.end_offset, stack, since)
            if older.start_offset < log.start_offset:
                cut = cut._replace(pieces=(*newest, *of_older.pieces))
                log = log._replace(start_offset=older.start_offset)
        yield log, cut


def _open(directory, end_offset, stack, since=None):
    try:
        log = stack.enter_context(metadata_log.open_log(directory, end_offset, since=since))
        return log, metadata_log.cut_log(log, end_offset)
    except metadata_log.LogGap as error:
        if end_offset is None:
            raise
        # The high watermark may be older than files that Kafka has dropped since.
        raise SnapshotError(
            f"{error}: if the end offset {end_offset} is old, read the high watermark again (QS-VERIFY-006)"
        ) from error


def _snapshot(log, cut) -> Snapshot:
    files = tuple((piece.name, piece.end - piece.start) for piece in cut.pieces)
    checkpoint = (log.checkpoint.offset, log.checkpoint.epoch) if log.checkpoint else None
    return Snapshot(None, None, None, files, checkpoint, log.start_offset, cut.end_offset, cut.last_epoch)


__all__ = ["DIRECTORY", "LogError", "Snapshot", "SnapshotError", "preview", "take", "unpack"]
