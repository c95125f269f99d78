# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which run may change a cluster: the run lock that each node keeps on its host. No lease, no clock, no majority.

A run lock is {number, run, direction, target, excluded, user, host, process, job, since, playbook, given, closed, how}.
`number` rises by one with each run that changes something; `target`, `excluded`: of a rollback; `playbook`, `given`:
what repeats it; `how`: how a closed run ended, `ok` or the task that failed. `process` {boot_id, pid_namespace, pid,
started} identifies a process under one kernel and in one pid namespace; from elsewhere it cannot be seen whether it is
alive. The arbiter, one host, decides between two runs: there a run lock replaces only the one that its run has read
(compare and set), and the loser has changed nothing.
"""

from __future__ import annotations

import shlex
import time
from typing import Mapping, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import node_key, run_outcome
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import advice
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import format_names
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import NodeFacts, RestartRecord, RunLock

FORWARD, BACK, RESTORE, RESTART, REASSIGN = "forward", "back", "restore", "restart", "reassign"
FEATURES, QUORUM = "features", "quorum"
PLAIN = (RESTART, REASSIGN, FEATURES, QUORUM)
"""Directions outside of a migration: the same playbook goes on after a failure."""
_PROCESS = ("boot_id", "pid_namespace")


class Verdict(NamedTuple):
    """`refused`: why this run may not change anything, None when it may. `number`: of its run lock. `over`: the run
    whose open lock it takes over, None without one. `hosts`: all hosts to lock, the arbiter first. `newest`: the newest
    run lock now, None without any."""

    refused: str | None
    number: int
    over: str | None
    hosts: list[str]
    newest: RunLock | None


def detect(nodes: Mapping[str, NodeFacts], cluster_id: str, me: Mapping, force_unlock: str) -> Verdict:
    """Return whether a run may lock the cluster.

    `nodes`: the facts of each host; `me`: {run, direction, alive: whether the process of the newest lock is alive, None
    if unknown}; `force_unlock`: the run id that the operator named, or ''. It is also required to reverse the direction
    of an interrupted run.
    """
    hosts = order(nodes)
    locks = _locks(nodes, cluster_id)
    newest = choose_newest(locks)
    number = (newest or {}).get("number", 0) + 1

    def verdict(refused: str | None, over: str | None = None) -> Verdict:
        return Verdict(refused, number, over, hosts, newest)

    unreached = {host: nodes[host].get("error") for host in hosts if not nodes[host].get("reached", True)}
    if unreached:
        return verdict(_explain_unreached(unreached))
    old_layout = node_key.find_old_layout(nodes, cluster_id)
    if old_layout:
        return verdict(_explain_old_layout(old_layout))
    unreadable = {host: run_lock["error"] for host, run_lock in locks.items() if run_lock and run_lock.get("error")}
    if unreadable:
        return verdict(_explain_unreadable(unreadable))
    if newest is None or newest["closed"] or newest["run"] == me["run"]:
        return verdict(None)
    reverses = {me.get("direction"), newest.get("direction")} == {FORWARD, BACK}
    if force_unlock == newest["run"] or (me["alive"] is False and not reverses):
        return verdict(None, newest["run"])
    return verdict(_explain_held(newest, nodes, force_unlock, me["alive"]))


def order(nodes: Mapping[str, NodeFacts]) -> list[str]:
    """Return the hosts in the order in which their nodes are locked: by node id and role, which are the same in every
    inventory."""

    def key(host: str) -> tuple:
        node_id = nodes[host].get("node_id")
        return node_id is None, node_id, nodes[host].get("role") or "", host

    return sorted(nodes, key=key)


def find_newest(nodes: Mapping[str, NodeFacts], cluster_id: str | None) -> RunLock | None:
    """Return a cluster's newest run lock on these hosts, None without any."""
    return choose_newest(_locks(nodes, cluster_id))


def _locks(nodes: Mapping[str, NodeFacts], cluster_id: str | None) -> dict[str, RunLock | None]:
    return {host: (node.get("run_locks") or {}).get(cluster_id or "") for host, node in nodes.items()}


def choose_newest(locks: Mapping[str, RunLock | None]) -> RunLock | None:
    """Return the run lock with the highest number among {host: run lock}. It is closed if it is closed on any host, and
    its run failed if that is so on any host."""
    readable = [run_lock for run_lock in locks.values() if run_lock and not run_lock.get("error")]
    if not readable:
        return None
    newest = max(readable, key=lambda run_lock: (run_lock["number"], run_lock["closed"]))
    same = [
        run_lock for run_lock in readable if (run_lock["number"], run_lock["run"]) == (newest["number"], newest["run"])
    ]
    closed = sorted((run_lock for run_lock in same if run_lock["closed"]), key=has_ended_well)
    return next(iter(closed), newest)


def are_comparable(lock: Mapping | None, other: Mapping | None) -> bool:
    """Return whether one process can see another: same boot of the same kernel, same pid namespace."""
    if not lock or not other:
        return False
    return all(lock.get(key) and lock.get(key) == other.get(key) for key in _PROCESS)


def status_line(run_lock: RunLock) -> str:
    """Return the line of the status screen about the newest run lock."""
    if not run_lock["closed"]:
        return f"locked by {holder(run_lock)}"
    return f"last run: {holder(run_lock)}, " + (
        "ended well" if has_ended_well(run_lock) else f'ended at "{run_lock["how"]}"'
    )


def has_ended_well(run_lock: RunLock) -> bool:
    """Return whether the run that held a lock ended without a failure."""
    return bool(run_lock["closed"]) and run_lock.get("how") == run_outcome.OK


def is_interrupted(run_lock: RunLock | None, alive: bool | None) -> bool:
    """Return whether the run that took a lock failed or was killed. `alive`: whether its process is at work, None if
    unknown."""
    return run_lock is not None and not has_ended_well(run_lock) and (bool(run_lock["closed"]) or alive is False)


def holder(run_lock: RunLock) -> str:
    """Return a run lock's run, direction, user and host, and since when, as text."""
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(run_lock["since"]))
    job = f", job {run_lock['job']}" if run_lock.get("job") else ""
    direction = run_lock["direction"] + (f" to {run_lock['target']}" if run_lock.get("target") else "")
    direction += f" without {', '.join(run_lock['excluded'])}" if run_lock.get("excluded") else ""
    return f"run {run_lock['run']} ({direction}) of {run_lock['user']} on {run_lock['host']}{job}, since {since}"


def newest_restart(nodes: Mapping[str, NodeFacts], run: str) -> str:
    """Return a run's newest restart of a node, as the end of a sentence; '' when no host has one."""
    node_restarts: list[tuple[float, str, RestartRecord]] = []
    for host, node in nodes.items():
        record = node.get("node_restart") or {}
        if record.get("run") == run and record.get("steps"):
            node_restarts.append((record["steps"][-1]["at"], host, record))
    if not node_restarts:
        return ""
    _at, host, newest = max(node_restarts, key=lambda node_restart: node_restart[0])
    state = newest.get("outcome") or newest["steps"][-1]["name"]
    return f"; its newest restart: {host}, {newest['kind']}: {state}"


def _explain_held(newest: RunLock, nodes: Mapping[str, NodeFacts], force_unlock: str, alive: bool | None) -> str:
    """Return why an open run lock of another run is not taken over."""
    by = holder(newest) + newest_restart(nodes, newest["run"])
    if alive:
        return f"This cluster is locked by {by}. That run is at work: wait until it ends (QS-RUN-001)"
    if force_unlock and force_unlock != newest["run"]:
        return (
            f"This cluster is locked by {by}. quorumshift_force_unlock names another run, {force_unlock} (QS-RUN-001)"
        )
    if alive is False:
        return (
            f"This cluster is locked by {by}. That run is dead, and this run would reverse its direction. To do so, "
            f"add -e quorumshift_force_unlock={shlex.quote(newest['run'])} (QS-RUN-002)"
        )
    return (
        f"This cluster is locked by {by}. This host cannot see whether that run is at work. If you are sure that it is "
        f"not, add -e quorumshift_force_unlock={shlex.quote(newest['run'])} (QS-RUN-001)"
    )


def _explain_old_layout(found: Mapping[str, tuple[str, str]]) -> str:
    """Return why files of an earlier version stop a run: a line for each host, with its command."""
    lines = [f"{host}: {advice.sentences(seen, do)}" for host, (seen, do) in sorted(found.items())]
    return "\n".join(["Files of an earlier version may record an unfinished restart (QS-RUN-015)", *lines])


def _explain_unreached(errors: Mapping[str, str | None]) -> str:
    """Return why hosts that were not reached stop a run: each reason once, with its hosts."""
    by_reason: dict[str | None, list[str]] = {}
    for host, error in sorted(errors.items()):
        by_reason.setdefault(error, []).append(host)
    listed = "; ".join(f"{format_names(hosts)}: {error}" for error, hosts in by_reason.items())
    return f"A run must lock every broker and controller, and {len(errors)} cannot be locked: {listed} (QS-RUN-007)"


def _explain_unreadable(errors: Mapping[str, str]) -> str:
    """Return why run locks that cannot be read stop a run."""
    listed = "; ".join(f"{host}: {error}" for host, error in sorted(errors.items()))
    return f"A run lock cannot be read ({listed}). If no other run is at work, delete that file (QS-RUN-008)"
