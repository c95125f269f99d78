# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read and replace files as root in directories that another user owns, such as Kafka's. Standard library only.

That user may put a link in the place of a file at any moment. So each file is opened once, and everything else is done
on its descriptor.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shlex
import stat
from typing import Iterator

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LINKS = 8


def open_regular(path: str, links: int = _LINKS) -> int:
    """Return a descriptor of a regular file, opened for reading. Raises OSError.

    A link is followed if root owns it, or if its owner owns the file as well: the owner then gains nothing. Links in
    the directories above the file are followed.
    """
    try:
        handle = os.open(path, _READ)
    except OSError as error:
        if error.errno != errno.ELOOP or not links:
            raise
        return _open_linked(path, links)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "is no regular file (QS-PHASE-005)", path)
    return handle


def _open_linked(path: str, links: int) -> int:
    link = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        owner = os.fstat(link).st_uid
        if not stat.S_ISLNK(os.fstat(link).st_mode):
            raise OSError(errno.EAGAIN, "was replaced while it was opened (QS-PHASE-005)", path)
        target = os.path.join(os.path.dirname(path), os.readlink("", dir_fd=link))
    finally:
        os.close(link)
    handle = open_regular(target, links - 1)
    if owner not in (0, os.fstat(handle).st_uid):
        os.close(handle)
        trust = f"chown -h root {shlex.quote(path)}"
        raise OSError(
            errno.EPERM,
            f"a link of uid {owner} to another user's file is not followed. To trust it: {trust} (QS-PHASE-005)",
        )
    return handle


def read(path: str) -> bytes:
    """Return a regular file's content (`open_regular`). Raises OSError."""
    with os.fdopen(open_regular(path), "rb") as stream:
        return stream.read()


def replace(path: str, data: bytes, mode: int, owner: tuple[int, int] | None = None) -> None:
    """Replace a file by rename and flush it to disk; `owner`: (uid, gid). A link at `path` is replaced, not followed.

    The temporary file has a random name and is created, never opened. Raises OSError.
    """
    directory = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    name, temporary = os.path.basename(path), f".{os.path.basename(path)}.{secrets.token_hex(8)}"
    try:
        handle = os.open(temporary, _CREATE, 0o600, dir_fd=directory)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
                stream.flush()
                if owner:
                    os.fchown(stream.fileno(), *owner)
                os.fchmod(stream.fileno(), mode)
                os.fsync(stream.fileno())
            os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=directory)
            raise
        os.fsync(directory)
    finally:
        os.close(directory)


@contextlib.contextmanager
def pin(directory: str) -> Iterator[str]:
    """Yield a path that stays this directory, whatever takes its place meanwhile."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{handle}"
    finally:
        os.close(handle)
