# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The run lock of a node: which run may change it. Standard library only.

Each node has a run lock of its own, also where several are on one host. A run lock changes only under the node's lock,
which a restart of the node holds while it runs. So a restart that holds the lock and finds its own run's lock may act
until it releases the node's lock. A run lock for all nodes of a host would change only under the locks of all of them.
As it is, a run locks two nodes of one host as it locks two hosts: it takes, checks and closes each lock.
"""

from __future__ import annotations

import os
from typing import Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import run_lock
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import RunLock
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state


class RunLockError(RuntimeError):
    """This run may not take a run lock, or does not hold it; the text is for the operator."""


def read(path: str) -> RunLock | None:
    """Return the run lock in a node's directory, None if there is none, {"error": ...} if it cannot be read."""
    return host_state.read_json(os.path.join(path, host_state.RUN_LOCK))


def take(path: str, wanted: RunLock, seen: Mapping | None) -> RunLock:
    """Write the run lock `wanted` into a node's directory and return it.

    It replaces a lock with a lower number. With `seen` (on the arbiter: {number, run}, {} for none) it replaces only
    that lock. Raises RunLockError if another run was faster or the file cannot be read, host_state.Held while a restart
    runs.
    """
    with host_state.lock(path):
        current = read(path) or {}
        if current.get("error"):
            raise RunLockError(current["error"])
        number, run = current.get("number"), current.get("run")
        if (number, run) == (wanted["number"], wanted["run"]):
            if current.get("closed"):
                raise RunLockError(
                    f"run {run} has ended and its lock is closed. Begin each playbook that changes the cluster with a "
                    "command of its own (QS-RUN-003)"
                )
            return current
        moved = seen is not None and (number, run) != (seen.get("number"), seen.get("run"))
        if moved or (number or 0) >= wanted["number"]:
            raise RunLockError(f"{run_lock.holder(current)} was faster: this run has changed nothing (QS-RUN-003)")
        host_state.write_json(os.path.join(path, host_state.RUN_LOCK), wanted)
        event = {key: wanted.get(key) for key in ("number", "direction", "target", "excluded", "user", "host")}
        host_state.note(path, "locked", wanted["run"], **event, over=None if current.get("closed") else run)
    return wanted


def close(path: str, run: str, how: str, advice: str = "") -> bool:
    """Close this run's lock in a node's directory; `how` the run ended goes into the journal. Return if it was open.

    `advice`: the next step that the run gave the operator."""
    current = read(path) or {}
    if current.get("run") != run or current.get("closed"):
        return False
    with host_state.lock(path):
        closed = {**current, "closed": True, "how": how, "advice": advice}
        host_state.write_json(os.path.join(path, host_state.RUN_LOCK), closed)
        host_state.note(path, "ended", run, how=how)
    return True


def require(path: str, run: str) -> None:
    """Raise RunLockError unless this run holds the node's run lock, and it is open. Call this under the node's lock."""
    current = read(path) or {}
    if current.get("run") == run and not current.get("closed"):
        return
    if current.get("error"):
        raise RunLockError(current["error"])
    raise RunLockError(
        f"this host is locked by {run_lock.holder(current)} (QS-RUN-003)"
        if current
        else "this run does not hold the run lock of this host (QS-RUN-003)"
    )


def allow(given: Mapping) -> None:
    """Raise RunLockError unless a node may be changed: by the run that holds its open lock, or, without a run, while no
    run holds one of any node of the host. Without a cluster id nothing is known.

    `given`: as of host_state.node_directory, and {run: or None}. Errors as of host_state.node_directory.
    """
    if not given.get("cluster_id"):
        return
    if given.get("run"):
        require(host_state.node_directory(given), given["run"])
        return
    require_no_other_run(given["state_dir"], given["cluster_id"], None)


def require_no_other_run(state_dir: str, cluster_id: str, run: str | None) -> None:
    """Raise RunLockError where another run holds the newest lock of the nodes of this host, or this run has closed it.
    A host without a node of the cluster has no lock. Raises host_state.OldLayoutError.

    An older lock may be open: of a node that the runs since then excluded.
    """
    cluster = host_state.path_of(state_dir, cluster_id)
    host_state.require_no_old_layout(cluster)
    locks = {key: read(path) for key, path in host_state.find_nodes(cluster).items()}
    unreadable = [lock["error"] for lock in locks.values() if lock and lock.get("error")]
    if unreadable:
        raise RunLockError(unreadable[0])
    newest = run_lock.choose_newest({key: lock for key, lock in locks.items() if lock})
    if newest is None:
        return
    if newest["closed"] and newest["run"] == run:
        raise RunLockError(f"this host is locked by {run_lock.holder(newest)}, which has ended (QS-RUN-003)")
    if not newest["closed"] and newest["run"] != run:
        raise RunLockError(
            f"this host is locked by {run_lock.holder(newest)}. Wait until that run has ended (QS-RUN-005)"
        )
