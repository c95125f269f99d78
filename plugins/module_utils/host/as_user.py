# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run Kafka's own tools on a managed host, as the user that runs Kafka."""

from __future__ import annotations

import contextlib
import errno
import os
import pwd
import subprocess
import tempfile
import time
from typing import IO, Mapping, NamedTuple, Sequence

_PAUSE_S = 0.05
_TRACE_S = 0.3  # time for output that follows `stop_text`


class Ended(NamedTuple):
    """`code`: the exit code, None if the command was killed."""

    code: int | None
    output: str
    errors: str


def run(
    user: str,
    command: Sequence[str],
    timeout: float,
    data: bytes = b"",
    env: Mapping[str, str] | None = None,
    stop_text: str = "",
) -> Ended:
    """Run a command and return its exit code and output. Kill it after `timeout` seconds, or once its standard error
    contains `stop_text`.

    `data`: its standard input, which it may also open as /dev/stdin, so that a secret needs no file; `env`: added to
    this process's environment. Raises KeyError if the user does not exist, OSError if the command cannot be started as
    that user.
    """
    account = pwd.getpwnam(user)
    if os.geteuid() not in (0, account.pw_uid):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors, _given(data, account) as given:
        process = subprocess.Popen(
            command,
            stdin=given,
            stdout=output,
            stderr=errors,
            env={**os.environ, **(env or {})},
            preexec_fn=lambda: _become(account),
        )
        ends = time.monotonic() + timeout
        code = process.poll()
        while code is None and time.monotonic() < ends and not (stop_text and stop_text in _text(errors)):
            time.sleep(_PAUSE_S)
            code = process.poll()
        if code is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_TRACE_S)
            process.kill()
            process.wait()
        return Ended(code, _text(output), _text(errors))


def _given(data: bytes, account: pwd.struct_passwd) -> IO[bytes]:
    """Return a pipe that holds `data`, which the account may open by name. Raises OSError if it does not fit."""
    reading, writing = os.pipe()
    try:
        os.set_blocking(writing, False)
        if os.geteuid() == 0:
            os.fchown(reading, account.pw_uid, account.pw_gid)
        if os.write(writing, data) < len(data):
            raise OSError(errno.EMSGSIZE, os.strerror(errno.EMSGSIZE))
    except OSError:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    return os.fdopen(reading, "rb")


def _text(stream: IO[bytes]) -> str:
    # pread keeps the offset, at which the command writes.
    return os.pread(stream.fileno(), os.fstat(stream.fileno()).st_size, 0).decode(errors="replace")


def _become(account: pwd.struct_passwd) -> None:
    if os.geteuid() == 0:
        os.setgid(account.pw_gid)
        os.initgroups(account.pw_name, account.pw_gid)  # as systemd's User= does: a group may grant access to a store
        os.setuid(account.pw_uid)
