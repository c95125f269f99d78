# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read and prepare the host of a controller: user, directories, unit. core/admin/controller_host.py decides."""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
from typing import Any, Dict, List

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin.controller_host import (
    DIRECTORY,
    FILE,
    MARK,
    MISSING,
    OTHER,
    UNIT_DIR,
    Plan,
    Wanted,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import as_user, service

_TEST_S = 10
_NO_SHELL = ("/usr/sbin/nologin", "/sbin/nologin", "/bin/false")
_DIRECTORY_MODE = 0o750


class PreparationError(RuntimeError):
    """A command of the system failed; the text quotes it."""


def read(wanted: Wanted) -> Dict[str, Any]:
    """Return what is on this host: {no_systemd, has_start, gid, user, paths, unit}.

    `no_systemd`: why systemd cannot be used, "" if it can; `gid`: of the wanted group, None if there is none; `user`:
    {uid, gid, group}, None if there is none; `paths`: {path: {kind, owner, may}} with `may`: whether the user has the
    right that it needs; `unit`: {exists, active, enabled, starts_with, user, text} with `text`: of the file that this
    module wrote, None where the unit is another's.
    """
    rights = {**wanted.directories, **dict.fromkeys(wanted.files, "r")}
    user = _user(wanted.user)
    return {
        "no_systemd": service.explain_no_systemd(),
        "has_start": os.path.isfile(wanted.start) and os.access(wanted.start, os.X_OK),
        "gid": _gid(wanted.group),
        "user": user,
        "paths": {path: _path(path, right, wanted.user if user else "") for path, right in rights.items()},
        "unit": _unit(wanted.unit),
    }


def prepare(wanted: Wanted, planned: Plan) -> None:
    """Create what the plan says. Raises PreparationError, OSError. What was created stays if a later step fails."""
    if planned.group:
        _call("groupadd", "--system", wanted.group)
    if planned.user:
        shell = next((path for path in _NO_SHELL if os.path.exists(path)), _NO_SHELL[-1])
        home = ("--home-dir", os.path.dirname(wanted.log_dir), "--no-create-home")
        _call("useradd", "--system", "--gid", wanted.group, *home, "--shell", shell, wanted.user)
    for path in planned.directories:
        _create(path, pwd.getpwnam(wanted.user))
    if planned.unit is not None:
        _write(os.path.join(UNIT_DIR, wanted.unit), planned.unit)
        _call("systemctl", "daemon-reload")
    if planned.enable:
        _call("systemctl", "enable", wanted.unit)


def _user(name: str) -> Dict[str, Any] | None:
    try:
        account = pwd.getpwnam(name)
    except KeyError:
        return None
    with contextlib.suppress(KeyError):
        return {"uid": account.pw_uid, "gid": account.pw_gid, "group": grp.getgrgid(account.pw_gid).gr_name}
    return {"uid": account.pw_uid, "gid": account.pw_gid, "group": str(account.pw_gid)}


def _gid(group: str) -> int | None:
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError:
        return None


def _path(path: str, right: str, user: str) -> Dict[str, Any]:
    """Return what a path is. `right`: as of test(1); `user`: who needs it, "" for one that does not exist yet, who has
    what every user has."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return {"kind": OTHER if os.path.islink(path) else MISSING, "owner": "", "may": False}
    except NotADirectoryError:
        return {"kind": OTHER, "owner": "", "may": False}
    kind = DIRECTORY if stat.S_ISDIR(found.st_mode) else FILE if stat.S_ISREG(found.st_mode) else OTHER
    try:
        owner = pwd.getpwuid(found.st_uid).pw_name
    except KeyError:
        owner = str(found.st_uid)
    if user:
        passes = ["-a", "-x", path] if kind == DIRECTORY else []
        may = as_user.run(user, ["test", f"-{right}", path, *passes], _TEST_S).code == 0
    else:
        needed = {"r": stat.S_IROTH, "w": stat.S_IWOTH}[right] | (stat.S_IXOTH if kind == DIRECTORY else 0)
        may = found.st_mode & needed == needed
    return {"kind": kind, "owner": owner, "may": may}


def _unit(name: str) -> Dict[str, Any]:
    if service.explain_no_systemd():
        return {"exists": False, "active": False, "enabled": False, "starts_with": None, "user": "", "text": None}
    state = service.read_state(name)
    text = None
    with contextlib.suppress(FileNotFoundError), open(os.path.join(UNIT_DIR, name), encoding="utf-8") as stream:
        text = stream.read()
    shown = subprocess.run(
        ["systemctl", "show", name, "--property", "User"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return {
        # a file that systemd has not read yet is there as well
        "exists": bool(state.get("exists")) or text is not None,
        "active": state["active"],
        "enabled": state.get("unit_file_state") not in ("disabled", "", None),
        "starts_with": state.get("starts_with"),
        "user": shown.stdout.strip().partition("=")[2],
        "text": text if (text or "").startswith(MARK) else None,
    }


def _create(path: str, account: pwd.struct_passwd) -> None:
    """Create a directory and those above it that are missing, for the user alone and its group."""
    missing: List[str] = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for directory in reversed(missing):
        os.mkdir(directory, 0o700)
        os.chown(directory, account.pw_uid, account.pw_gid)
        os.chmod(directory, _DIRECTORY_MODE)


def _write(path: str, text: str) -> None:
    """Replace a file as a whole."""
    descriptor, fresh = tempfile.mkstemp(prefix=".quorumshift-", dir=os.path.dirname(path))
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.chmod(fresh, 0o644)
        os.replace(fresh, path)
    except BaseException:
        os.unlink(fresh)
        raise


def _call(*command: str) -> None:
    program = shutil.which(command[0], path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") or command[0]
    try:
        done = subprocess.run(
            [program, *command[1:]], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
        )
    except OSError as error:
        raise PreparationError(f"{' '.join(command)}: {error.strerror}") from None
    if done.returncode:
        raise PreparationError(f"{' '.join(command)} failed: {(done.stderr or done.stdout).strip()}")
