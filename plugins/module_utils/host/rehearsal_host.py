# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write a rehearsal's files to a host, start its services, and remove all of it. core/rehearsal/host.py has the files.

Runs on managed hosts: standard library only.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import time
from typing import List, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rehearsal import host as core
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import service

_POLL_S = 0.2


class RehearsalError(RuntimeError):
    """A host could not be built, started or cleaned; the text says what was seen."""


def build(wanted: core.Wanted) -> List[str]:
    """Create the directory, the files and the units; return what was created. Raises RehearsalError, OSError."""
    account = pwd.getpwnam(wanted.user)
    os.makedirs(os.path.dirname(wanted.directory), exist_ok=True)
    os.mkdir(wanted.directory, 0o755)
    os.chmod(wanted.directory, 0o755)
    # First, so that whatever follows can be removed
    _write(os.path.join(wanted.directory, core.MARK_FILE), core.mark(wanted), None)
    for path in core.directories(wanted):
        os.mkdir(path, 0o750)
        os.chown(path, account.pw_uid, account.pw_gid)
    for path, text in core.files(wanted).items():
        _write(path, text, account)
    for path, text in core.units(wanted).items():
        _write(path, text, None)
    _systemctl("daemon-reload")
    return [wanted.directory, *core.units(wanted)]


def start(role: str, wait_s: float) -> float:
    """Start a role's service, and return after how many seconds systemd shows it active. Raises RehearsalError."""
    began = time.monotonic()
    try:
        service.begin("start", core.unit(role))
    except service.ServiceError as error:
        raise RehearsalError(str(error)) from None
    while True:
        state = service.read_state(core.unit(role))
        if state["active"] and state["main_pid"]:
            return time.monotonic() - began
        if state.get("active_state") == "failed" or time.monotonic() - began > wait_s:
            lines = service.read_journal(core.unit(role), 5)
            seen = f"; its journal ends with: {lines[-1]}" if lines else ""
            raise RehearsalError(f"{core.unit(role)} is {state.get('active_state') or 'unknown'}{seen}")
        time.sleep(_POLL_S)


def remove(directory: str, wait_s: float) -> List[str]:
    """Stop the services, remove their units and the directory; return what was removed.

    A unit is this rehearsal's if its file begins with MARK and names the directory, and a directory is one if its mark
    file says so: what another wrote stays. The caller has seen the mark, or that there is no
    directory. Raises RehearsalError, OSError.
    """
    removed = []
    own = [role for role in core.ROLES if _is_own_unit(role, directory)]
    for role in own:
        _stop(role, wait_s)
    for role in own:
        path = os.path.join(core.UNIT_DIR, core.unit(role))
        # A rollback masks the controllers' service by a drop-in
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(f"{path}.d", service.MASK_DROP_IN))
            os.rmdir(f"{path}.d")
        os.unlink(path)
        removed.append(path)
    if own:
        _systemctl("daemon-reload")
        for role in own:
            _systemctl("reset-failed", core.unit(role), check=False)
    if os.path.isdir(directory) and not os.path.islink(directory):
        removed.append(directory)
        for name in sorted(os.listdir(directory)):
            path = os.path.join(directory, name)
            if name == core.MARK_FILE:
                continue  # last: what an interrupted removal leaves can be removed again
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)
        os.unlink(os.path.join(directory, core.MARK_FILE))
        os.rmdir(directory)
    return removed


def sizes(directory: str, paths: Sequence[str]) -> dict:
    """Return {path: bytes} of files and directories below the rehearsal's directory, of those that exist."""
    found = {}
    for name in paths:
        path = os.path.join(directory, name)
        if os.path.isdir(path):
            found[name] = 0
            for above, _directories, files in os.walk(path):
                for file in files:
                    with contextlib.suppress(FileNotFoundError):  # Kafka deletes segments and checkpoints meanwhile
                        found[name] += os.lstat(os.path.join(above, file)).st_size
        elif os.path.exists(path):
            found[name] = os.stat(path).st_size
    return found


def _is_own_unit(role: str, directory: str) -> bool:
    """Return whether a unit is that of the rehearsal in this directory."""
    try:
        with open(os.path.join(core.UNIT_DIR, core.unit(role)), encoding="utf-8") as stream:
            text = stream.read()
        return text.startswith(core.MARK) and f"={directory}/logs" in text
    except (OSError, UnicodeDecodeError):
        return False


def _stop(role: str, wait_s: float) -> None:
    """Stop a service: with SIGKILL where it does not stop in time, since a broker without its controller takes long."""
    name = core.unit(role)
    if not service.is_running(name):
        return
    with contextlib.suppress(service.ServiceError):
        service.begin("stop", name)
        service.kill(name)  # nothing of a rehearsal is worth an orderly stop
    end = time.monotonic() + wait_s
    while service.is_running(name):
        if time.monotonic() > end:
            raise RehearsalError(f"{name} still runs {wait_s:.0f} s after its stop (QS-REHEARSE-002)")
        time.sleep(_POLL_S)


def _write(path: str, text: str, account: pwd.struct_passwd | None) -> None:
    """Write a new file: of root and readable by all, or of Kafka's user alone."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(text)
    if account is None:
        os.chmod(path, 0o644)
    else:
        os.chown(path, account.pw_uid, account.pw_gid)
        os.chmod(path, 0o640)


def _systemctl(*arguments: str, check: bool = True) -> None:
    done = subprocess.run(
        ["systemctl", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if check and done.returncode:
        said = (done.stderr or done.stdout).strip()
        raise RehearsalError(f"systemctl {' '.join(arguments)} failed: {said} (QS-REHEARSE-002)")
