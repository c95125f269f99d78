# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run work in a process that survives the module that starts it. Standard library only.

A transient unit of systemd also survives the end of the SSH session: with `KillUserProcesses=yes`, logind then kills
whatever is in the control group of that login, a process with its own session included.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from typing import Any, Callable, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state, service

JOB, CODE = host_state.JOB, host_state.CODE
LOGIND = "systemd-logind.service"
_MAIN = """
import importlib, sys
sys.path.insert(0, sys.argv[1])
importlib.import_module(sys.argv[2]).resume(sys.argv[3])
"""


def begin(work: Callable[[], None]) -> None:
    """Start a process of its own session that does the work, and return at once.

    The process must not import anything, because Ansible removes a module's files. It keeps the locks that are held
    when it begins (flock(2): the child shares the descriptor).
    """
    if os.fork():
        return
    try:
        os.setsid()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        null = os.open(os.devnull, os.O_RDWR)
        for handle in (0, 1, 2):
            os.dup2(null, handle)
        work()
    finally:
        os._exit(0)


def begin_unit(unit: str, module: str, job: Mapping[str, Any], directory: str) -> None:
    """Start `module.resume(path of the job's file)` as a transient unit, and return at once. Raises ServiceError.

    The job may have secrets: it is a file of `directory`, as is the code, because Ansible removes a module's files.
    The new process removes both (`take_job`).
    """
    path = os.path.join(directory, JOB)
    umask = os.umask(0o077)
    os.umask(umask)
    host_state.write_json(path, {**job, "environment": dict(os.environ), "umask": umask})
    try:
        code = _kept_code(directory)
        service.begin_transient(unit, [sys.executable, "-I", "-c", _MAIN, code, module, path])
    except service.ServiceError:
        remove_job(directory)
        raise


def command(directory: str, code: str, module: str, path: str) -> list[str]:
    """Return the argv that runs `module.resume(path)` with this collection's code, which is kept as the file `code` of
    a directory."""
    return [sys.executable, "-I", "-c", _MAIN, _kept_code(directory, code), module, path]


def take_job(path: str) -> dict:
    """Return the job of this process, in the environment of the module that started it; remove the job's files."""
    job = host_state.read_json(path)
    remove_job(os.path.dirname(path))
    os.environ.clear()
    os.environ.update(job["environment"])
    os.umask(job["umask"])
    return job


def remove_job(directory: str) -> None:
    """Remove the files of a job."""
    for name in (JOB, CODE):
        path = os.path.join(directory, name)
        if os.path.exists(path):
            os.unlink(path)


def _kept_code(directory: str, name: str = CODE) -> str:
    """Return a path for sys.path with this collection: Ansible's archive is copied, a directory stays where it is."""
    archive = getattr(globals().get("__loader__"), "archive", None)
    if not archive:
        path = os.path.abspath(__file__)
        for _level in ("host", "module_utils", "plugins", "kafka", "quorumshift", "ansible_collections", "root"):
            path = os.path.dirname(path)
        return path
    kept = os.path.join(directory, name)
    with open(archive, "rb") as source, open(os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as copy:
        shutil.copyfileobj(source, copy)
    return kept
