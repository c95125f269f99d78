# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runs of a cluster, what they did and how they ended, from the journals of all hosts. Pure.

Journals are shown, never acted on: the phase and the next step come from the probes alone. Contradictions between a
journal and its host are shown as well.
"""

from __future__ import annotations

import time
from typing import Iterable, Mapping, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import NodeFacts

SHOWN_CHARACTERS = 100


class NodeRestart(NamedTuple):
    """One restart of a node, from its host's journal; `at`: when it ended, in epoch seconds."""

    at: float
    host: str
    kind: str
    outcome: str
    message: str


class Run(NamedTuple):
    """One run that locked the cluster. `how`: `ok`, the task that failed, or None where no journal has its end. A
    value that no journal has is None."""

    run: str
    number: int | None
    direction: str | None
    user: str | None
    host: str | None
    since: float
    ended_at: float | None
    how: str | None
    over: str | None
    node_restarts: list[NodeRestart]


def runs(nodes: Mapping[str, NodeFacts], cluster_id: str) -> list[Run]:
    """Return the runs in the journals of all hosts, oldest first (nodes: see probes.node.node.collect, `journals`)."""
    events: dict[str, list[tuple[str, Mapping]]] = {}
    for host, node in sorted(nodes.items()):
        for event in _journal(node, cluster_id)["events"]:
            events.setdefault(event["run"], []).append((host, event))
    return sorted((_run(name, of_run) for name, of_run in events.items()), key=lambda run: (run.since, run.run))


def lines(known: Iterable[Run]) -> list[str]:
    """Return the runs as lines of the screen, oldest first."""
    known = list(known)
    if not known:
        return ["  history: no journal has a run"]
    took_over = {run.over: run.run for run in known if run.over}
    shown = ["  history:"]
    for run in known:
        holder = f"{run.user or '?'} on {run.host or '?'}"
        end = _end(run, took_over, known[-1])
        shown.append(f"    {_moment(run.since)}  run {run.run} ({run.direction or '?'}) of {holder}, {end}")
        for node_restart in sorted(run.node_restarts):
            why = f": {_first_line(node_restart.message)}" if node_restart.message else ""
            shown.append(
                f"      {_moment(node_restart.at)}  {node_restart.host}  {node_restart.kind}  "
                f"{node_restart.outcome}{why}"
            )
    return shown


def find_contradictions(nodes: Mapping[str, NodeFacts], cluster_id: str, recorded: Iterable[Mapping]) -> list[str]:
    """Return what in the journals is unreadable, missing, or contradicts the hosts, as sentences.

    `recorded`: the events of every run with artifacts on the control node.
    """
    doubts = []
    lacking: dict[str, list[str]] = {}
    recorded = list(recorded)
    for host, node in sorted(nodes.items()):
        if not node.get("reached", True):
            continue
        journal = _journal(node, cluster_id)
        node_restarts = [event for event in journal["events"] if event["name"] == "node_restart"]
        if journal["torn"]:
            count = f"{journal['torn']} line{'s' if journal['torn'] > 1 else ''}"
            doubts.append(f"{count} of {host}'s journal cannot be read")
        run = _find_lacking(host, node, cluster_id, journal, node_restarts, recorded)
        if run:
            lacking.setdefault(run, []).append(host)
        newest = node.get("node_restart") or {}
        if (
            node_restarts
            and node_restarts[-1]["outcome"] == "done"
            and node_restarts[-1]["id"] == newest.get("id", node_restarts[-1]["id"])
        ):
            mode, starts = node_restarts[-1]["mode"], node.get("next")
            if starts and starts != mode:
                doubts.append(
                    f"{host}'s journal says that its newest restart ended in mode {mode}, but its file starts it in "
                    f"mode {starts}: the file was changed since"
                )
    doubts += [f"the journal of {', '.join(hosts)} lacks run {run}" for run, hosts in lacking.items()]
    return [f"{doubt}. Runs rely on what the hosts show, not on journals" for doubt in doubts]


def _find_lacking(
    host: str, node: NodeFacts, cluster_id: str, journal: Mapping, node_restarts: list[Mapping], recorded: list[Mapping]
) -> str | None:
    """Return the newest run that the host's journal should have and lacks, by the host's own files and the run
    artifacts. Runs before the journal's first event do not count: the host may have been added since."""
    known = {event["id"] for event in node_restarts}
    newest, run_lock = node.get("node_restart") or {}, (node.get("run_locks") or {}).get(cluster_id) or {}
    lacking = set()
    if newest.get("outcome") and newest.get("id") and newest["id"] not in known:
        lacking.add(newest["id"].split("/")[0])
    since = journal["events"][0]["t"] if journal["events"] else 0
    lacking |= {
        event["node_restart"].split("/")[0]
        for event in recorded
        if event.get("node_restart")
        and event.get("host") == host
        and event.get("outcome") in ("done", "failed", "reverted")
        and event["t"] > since
        and event["node_restart"] not in known
    }
    locked = {event["run"] for event in journal["events"] if event["name"] == "locked"}
    if run_lock.get("run") and run_lock["run"] not in locked and not journal["cut"]:
        lacking.add(run_lock["run"])
    return max(lacking, default=None)


def _journal(node: NodeFacts, cluster_id: str) -> Mapping:
    return (node.get("journals") or {}).get(cluster_id) or {"events": [], "torn": 0, "cut": False}


def _run(name: str, events: list[tuple[str, Mapping]]) -> Run:
    locked = [event for _host, event in events if event["name"] == "locked"]
    ended = [event for _host, event in events if event["name"] == "ended"]
    run_lock: Mapping = locked[0] if locked else {}
    return Run(
        name,
        run_lock.get("number"),
        run_lock.get("direction"),
        run_lock.get("user"),
        run_lock.get("host"),
        min(event["t"] for _host, event in events),
        max((event["t"] for event in ended), default=None),
        ended[-1].get("how") if ended else None,
        next((event["over"] for event in locked if event.get("over")), None),
        [
            NodeRestart(event["t"], host, event["kind"], event["outcome"], event.get("message") or "")
            for host, event in events
            if event["name"] == "node_restart"
        ],
    )


def _end(run: Run, took_over: Mapping[str, str], newest: Run) -> str:
    if run.ended_at is not None:
        after = f"after {run.ended_at - run.since:.0f} s"
        return f"ended well {after}" if run.how == "ok" else f'ended at "{run.how}" {after}'
    if run.run in took_over:
        return f"taken over by run {took_over[run.run]}"
    return "at work or interrupted" if run is newest else "no journal has its end"


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))


def _first_line(text: str) -> str:
    line = text.splitlines()[0]
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[: SHOWN_CHARACTERS - 1]}…"
