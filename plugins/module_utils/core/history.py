# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who did what, when, and how it ended, across runs: from the journals of all hosts. Pure.

A journal is told, never acted on: the phase and what a run does next come from the probes alone. Where a journal and
what the hosts show do not agree, that is said.
"""

from __future__ import annotations

import time
from typing import Iterable, Mapping, NamedTuple

SHOWN_CHARACTERS = 100


class NodeRestart(NamedTuple):
    """One node's turn as its host tells it; `at` (epoch seconds) is when it ended."""

    at: float
    host: str
    kind: str
    outcome: str
    message: str


class Run(NamedTuple):
    """One run that changed something, or was about to. `how`: `ok`, the task at which it failed, or None where no
    journal tells its end. What no journal tells is None."""

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


def runs(nodes: Mapping[str, Mapping], cluster_id: str) -> list[Run]:
    """Return the runs of which any host's journal tells, oldest first (nodes: see probes.node.facts, `journals`)."""
    events: dict[str, list[tuple[str, Mapping]]] = {}
    for host, node in sorted(nodes.items()):
        for event in _journal(node, cluster_id)["events"]:
            events.setdefault(event["run"], []).append((host, event))
    return sorted((_run(name, reported) for name, reported in events.items()), key=lambda run: (run.since, run.run))


def lines(messages: Iterable[Run]) -> list[str]:
    """Return the runs as lines of the screen, oldest first."""
    messages = list(messages)
    if not messages:
        return ["  history: no host's journal tells of a run"]
    took_over = {run.over: run.run for run in messages if run.over}
    shown = ["  history:"]
    for run in messages:
        who = f"{run.user or '?'} on {run.host or '?'}"
        end = _end(run, took_over, messages[-1])
        shown.append(f"    {_moment(run.since)}  run {run.run} ({run.direction or '?'}) of {who}, {end}")
        for one in sorted(run.node_restarts):
            why = f": {_first_line(one.message)}" if one.message else ""
            shown.append(f"      {_moment(one.at)}  {one.host}  {one.kind}  {one.outcome}{why}")
    return shown


def contradictions(nodes: Mapping[str, Mapping], cluster_id: str, evidence: Iterable[Mapping]) -> list[str]:
    """Return what in the journals is torn, missing, or not as the hosts show it, as texts that say what counts.

    `evidence`: the events of every run that left evidence on the control node.
    """
    messages = []
    lacking: dict[str, list[str]] = {}
    evidence = list(evidence)
    for host, node in sorted(nodes.items()):
        if not node.get("reached", True):
            continue
        journal = _journal(node, cluster_id)
        node_restarts = [event for event in journal["events"] if event["name"] == "node_restart"]
        if journal["torn"]:
            count = f"{journal['torn']} line{'s' if journal['torn'] > 1 else ''}"
            messages.append(f"{count} of {host}'s journal cannot be read")
        run = _lacking(host, node, cluster_id, journal, node_restarts, evidence)
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
                messages.append(
                    f"{host}'s journal says that its newest turn brought it into mode {mode}, its file starts it in "
                    f"mode {starts}: somebody changed the file, or put an older one back"
                )
    messages += [f"the journal of {', '.join(hosts)} lacks what run {run} did" for run, hosts in lacking.items()]
    return [f"{one}. What the hosts show counts" for one in messages]


def _lacking(
    host: str, node: Mapping, cluster_id: str, journal: Mapping, node_restarts: list[Mapping], evidence: list[Mapping]
) -> str | None:
    """Return the newest run that left something on the host, or evidence here, of which the host's journal should tell
    and does not. What is older than a journal is not missed: the host may be younger."""
    known = {event["id"] for event in node_restarts}
    newest, run_lock = node.get("node_restart") or {}, (node.get("run_locks") or {}).get(cluster_id) or {}
    lacking = set()
    if newest.get("outcome") and newest.get("id") and newest["id"] not in known:
        lacking.add(newest["id"].split("/")[0])
    since = journal["events"][0]["t"] if journal["events"] else 0
    lacking |= {
        event["node_restart"].split("/")[0]
        for event in evidence
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


def _journal(node: Mapping, cluster_id: str) -> Mapping:
    return (node.get("journals") or {}).get(cluster_id) or {"events": [], "torn": 0, "cut": False}


def _run(name: str, reported: list[tuple[str, Mapping]]) -> Run:
    locked = [event for _host, event in reported if event["name"] == "locked"]
    ended = [event for _host, event in reported if event["name"] == "ended"]
    run_lock: Mapping = locked[0] if locked else {}
    return Run(
        name,
        run_lock.get("number"),
        run_lock.get("direction"),
        run_lock.get("user"),
        run_lock.get("host"),
        min(event["t"] for _host, event in reported),
        max((event["t"] for event in ended), default=None),
        ended[-1].get("how") if ended else None,
        next((event["over"] for event in locked if event.get("over")), None),
        [
            NodeRestart(event["t"], host, event["kind"], event["outcome"], event.get("message") or "")
            for host, event in reported
            if event["name"] == "node_restart"
        ],
    )


def _end(run: Run, took_over: Mapping[str, str], newest: Run) -> str:
    if run.ended_at is not None:
        after = f"after {run.ended_at - run.since:.0f} s"
        return f"ended well {after}" if run.how == "ok" else f'ended at "{run.how}" {after}'
    if run.run in took_over:
        return f"taken over by run {took_over[run.run]}"
    return "at work, or cut off" if run is newest else "its end is in no journal"


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))


def _first_line(text: str) -> str:
    line = text.splitlines()[0]
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[: SHOWN_CHARACTERS - 1]}…"
