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
import re
from typing import Any, Mapping

from ansible import context
from ansible.parsing.dataloader import DataLoader
from ansible.utils.vars import load_extra_vars
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import variables
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import run_lock
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.masking import mask
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import variable_specs

_ONCE = (
    *("quorumshift_accept_unverified_copy", "quorumshift_verify", "zk_migrate_without_source"),
    *("quorumshift_finalize_token", "quorumshift_force_unlock", "quorumshift_format_token"),
    *("quorumshift_rollback_to", "features_confirm"),
)
"""Variables that a repeated run does not take over: what the operator accepts without a token counts for one run; the
next step has its own token and target."""


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


def find_typed() -> dict[str, Any]:
    """Return all variables of the command line, those of `-e @file` included. Ansible has loaded them, and keeps them
    for the whole process."""
    return dict(load_extra_vars(DataLoader()))


def find_given() -> dict[str, str]:
    """Return the public variables of the command line as text, for the command that repeats this run.

    Without dictionaries, which may hold passwords, and without what masking would hide.
    """
    texts = {
        name: ",".join(map(str, value)) if isinstance(value, list) else str(value)
        for name, value in find_typed().items()
        if not isinstance(value, dict)
    }
    return select_repeatable(texts)


def select_repeatable(given: Any) -> dict[str, str]:
    """Return what a command may repeat of variables as a run lock has them. A host keeps the lock, so what it says is
    checked again: another name, or a template, which Ansible would run on the control node, is left out."""
    return {
        name: text
        for name, text in (given.items() if isinstance(given, dict) else ())
        if name in variable_specs.specs() and name not in _ONCE
        if not variables.may_be_secret(variable_specs.specs()[name])
        if isinstance(text, str) and mask(text) == text and not re.search(r"\{[{%#]", text)
    }


def _started(pid: int) -> int:
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
        # The command, in parentheses, may contain anything: count to field 22 (the start time) from its end
        return int(stream.read().rpartition(")")[2].split()[19])
