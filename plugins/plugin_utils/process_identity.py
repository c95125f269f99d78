# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The identity of this run's process, and whether the process of another run is still alive.

Read from Linux' /proc (proc(5)). The kernel's boot id, the pid namespace and the start time identify a process, also in
containers, where machine ids and pids repeat. Without /proc the answer is unknown.
"""

from __future__ import annotations

import getpass
import os
from typing import Mapping

from ansible import context
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import run_lock


def process(pid: int) -> dict | None:
    """Return {boot_id, pid_namespace, pid, started (clock ticks after boot)} of a local process, None without /proc."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
            boot_id = stream.read().strip()
        return {
            "boot_id": boot_id,
            "pid_namespace": os.readlink("/proc/self/ns/pid"),
            "pid": pid,
            "started": _started(pid),
        }
    except (OSError, ValueError):
        return None


def is_alive(other: Mapping | None) -> bool | None:
    """Return whether a process is alive; None when this host cannot know."""
    mine = process(os.getpid())
    if not run_lock.are_comparable(other, mine):
        return None
    try:
        return _started(other["pid"]) == other["started"]
    except (FileNotFoundError, ProcessLookupError):
        return False
    except (OSError, ValueError):
        return None


def own_identity() -> dict:
    """Return the holder that the run lock names. Called in an action plugin, whose parent is ansible-playbook."""
    job = next((os.environ[name] for name in ("AWX_JOB_ID", "JOB_ID", "TOWER_JOB_ID") if os.environ.get(name)), None)
    return {"user": getpass.getuser(), "host": os.uname().nodename, "job": job, "process": process(os.getppid())}


def playbook_name() -> str:
    """Return the name of the playbook that was started, without its directory, collection and ending; '' if there is
    none."""
    typed = os.path.basename((context.CLIARGS.get("args") or ("",))[0])
    name = next((typed[: -len(ending)] for ending in (".yml", ".yaml") if typed.endswith(ending)), typed)
    return name.rpartition(".")[2]


def _started(pid: int) -> int:
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
        # The command, in parentheses, may contain anything: count to field 22 (the start time) from its end
        return int(stream.read().rpartition(")")[2].split()[19])
