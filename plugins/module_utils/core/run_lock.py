# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may act on a cluster: the claim that each managed host keeps. No lease, no clock, no majority.

A claim is {number, run, direction, target, gone, user, host, process, job, since, closed, how}. `number` rises by one
with each run that changes something; `target` is how far back a rollback goes, `gone` the hosts that it leaves out;
`how` a closed one's run ended: `ok`, or the task that failed. `process` {boot_id, pid_namespace, pid, started} tells a
process apart from every other one, as long as both are looked for under the same kernel and in the same pid namespace;
elsewhere nobody can say whether it lives. Two runs are kept apart by one host alone, the arbiter: there a claim is
written only over the very one that its run has read (compare and set), and the loser stops before it has touched
anything.
"""

from __future__ import annotations

import time
from typing import Mapping, NamedTuple

FORWARD, BACK, RESTORE = "forward", "back", "restore"
_PROCESS = ("boot_id", "pid_namespace")


class Verdict(NamedTuple):
    """`refused`: why this run may not act, None when it may. `number`: of its claim. `over`: the run whose open claim
    it takes over, None when there is none. `hosts`: all that are to be claimed, the arbiter first. `newest`: the claim
    that stands now, None without any."""

    refused: str | None
    number: int
    over: str | None
    hosts: list[str]
    newest: Mapping | None


def detect(nodes: Mapping[str, Mapping], cluster_id: str, me: Mapping, force_unlock: str) -> Verdict:
    """Judge whether a run may claim the cluster.

    `nodes`: what node_facts told of each host; `me`: {run, direction, alive: whether the process of the newest claim
    runs, None where that cannot be told from here}; `takeover`: the run id that the operator named, or ''. Turning
    round what a run left in its midst takes the operator's word as well.
    """
    hosts = order(nodes)
    reported = _reported(nodes, cluster_id)
    newest = newest_of(reported)
    number = (newest or {}).get("number", 0) + 1

    def verdict(refused: str | None, over: str | None = None) -> Verdict:
        return Verdict(refused, number, over, hosts, newest)

    away = {host: nodes[host].get("error") for host in hosts if not nodes[host].get("reached", True)}
    if away:
        return verdict(_away(away))
    torn = {host: run_lock["error"] for host, run_lock in reported.items() if run_lock and run_lock.get("error")}
    if torn:
        return verdict(_torn(torn))
    if newest is None or newest["closed"] or newest["run"] == me["run"]:
        return verdict(None)
    turns_round = {me.get("direction"), newest.get("direction")} == {FORWARD, BACK}
    if force_unlock == newest["run"] or (me["alive"] is False and not turns_round):
        return verdict(None, newest["run"])
    return verdict(_held(newest, nodes, force_unlock, me["alive"]))


def order(nodes: Mapping[str, Mapping]) -> list[str]:
    """Return the hosts in the order in which they are claimed: by node id, which is the same in every inventory."""
    return sorted(nodes, key=lambda host: (nodes[host].get("node_id") is None, nodes[host].get("node_id"), host))


def newest_in(nodes: Mapping[str, Mapping], cluster_id: str | None) -> dict | None:
    """Return the newest claim of a cluster on the hosts that node_facts told of."""
    return newest_of(_reported(nodes, cluster_id))


def _reported(nodes: Mapping[str, Mapping], cluster_id: str | None) -> dict:
    return {host: (node.get("run_locks") or {}).get(cluster_id or "") for host, node in nodes.items()}


def newest_of(reported: Mapping[str, Mapping | None]) -> dict | None:
    """Return the claim with the highest number among {host: claim}; it is closed when any host says so."""
    whole = [run_lock for run_lock in reported.values() if run_lock and not run_lock.get("error")]
    if not whole:
        return None
    newest = max(whole, key=lambda run_lock: (run_lock["number"], run_lock["closed"]))
    same = [
        run_lock for run_lock in whole if (run_lock["number"], run_lock["run"]) == (newest["number"], newest["run"])
    ]
    return next((run_lock for run_lock in same if run_lock["closed"]), newest)


def comparable(one: Mapping | None, other: Mapping | None) -> bool:
    """Say whether a process can be looked for from another: same kernel since its boot, same pid namespace."""
    return bool(one and other) and all(one.get(key) and one.get(key) == other.get(key) for key in _PROCESS)


def story(run_lock: Mapping) -> str:
    """Return the line of the status screen about the newest claim."""
    if not run_lock["closed"]:
        return f"claimed by {who(run_lock)}"
    return f"last run: {who(run_lock)}, " + ("ended well" if ended_well(run_lock) else f'ended at "{run_lock["how"]}"')


def ended_well(run_lock: Mapping) -> bool:
    """Say whether a claim's run came to its end and nothing failed."""
    return bool(run_lock["closed"]) and run_lock.get("how") in (None, "ok")


def who(run_lock: Mapping) -> str:
    """Return a claim's holder and since when, for people."""
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(run_lock["since"]))
    job = f", job {run_lock['job']}" if run_lock.get("job") else ""
    way = run_lock["direction"] + (f" to {run_lock['target']}" if run_lock.get("target") else "")
    way += f" without {', '.join(run_lock['excluded'])}" if run_lock.get("excluded") else ""
    return f"run {run_lock['run']} ({way}) of {run_lock['user']} on {run_lock['host']}{job}, since {since}"


def newest_restart(nodes: Mapping[str, Mapping], run: str) -> str:
    """Return what a run was seen doing on the hosts last, as the end of a sentence; '' when no host tells."""
    node_restarts = [
        (node["node_restart"]["steps"][-1]["at"], host, node["node_restart"])
        for host, node in nodes.items()
        if (node.get("node_restart") or {}).get("run") == run and node["node_restart"].get("steps")
    ]
    if not node_restarts:
        return ""
    _at, host, newest = max(node_restarts, key=lambda one: one[0])
    state = newest.get("outcome") or newest["steps"][-1]["name"]
    return f"; its newest restart: {host}, {newest['kind']}: {state}"


def _held(newest: Mapping, nodes: Mapping[str, Mapping], force_unlock: str, alive: bool | None) -> str:
    """Return why an open claim of another run is not taken over."""
    holder = who(newest) + newest_restart(nodes, newest["run"])
    if alive:
        return f"This cluster is claimed by {holder}. It is at work: wait for its end"
    if force_unlock and force_unlock != newest["run"]:
        return (
            f"This cluster is claimed by {holder}. quorumshift_force_unlock names {force_unlock}, which is another run"
        )
    if alive is False:
        return (
            f"This cluster is claimed by {holder}. It is gone, and this run would turn round what it has begun. To do "
            f"so, take over with -e quorumshift_force_unlock={newest['run']}"
        )
    return (
        f"This cluster is claimed by {holder}. Whether it is still at work cannot be told from here. When it is "
        f"certain that it is not, take over with -e quorumshift_force_unlock={newest['run']}"
    )


def _away(away: Mapping[str, str | None]) -> str:
    """Return why hosts that were not reached stop a run."""
    listed = "; ".join(f"{host}: {error}" for host, error in sorted(away.items()))
    return f"Every broker and controller has to be claimed, and {len(away)} cannot be: {listed}"


def _torn(torn: Mapping[str, str]) -> str:
    """Return why claims that cannot be read stop a run."""
    listed = "; ".join(f"{host}: {error}" for host, error in sorted(torn.items()))
    return f"A claim cannot be read ({listed}). When no other run is at work, delete that file"
