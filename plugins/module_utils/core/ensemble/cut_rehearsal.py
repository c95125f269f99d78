# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rehearsed cut took, against the estimate of the plan. Pure.

Times of one host are compared with each other alone: those of a worker's record by its host's clock, those of the watch
by the probe host's.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble.cut_host import OBSERVES
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble.ensemble_cut import RECONNECT_S
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import Finding, format_names

STEPS = ("cut", "not serving", "read", "healed", OBSERVES)
"""The steps of a rehearsed cut after the fence, as the workers note them."""
MEANS = {
    "cut": "cut off from the source",
    "not serving": "the server noticed it",
    "read": "last zxid read",
    "healed": "checked and healed",
    OBSERVES: "observer of the source again",
}
REASON = "the rehearsal ends"
_SESSION = (1 << 64) - 1


class Gap(NamedTuple):
    """The longest time between two answers. `answers`: how many there were."""

    longest_s: float
    answers: int


def find_gap(times: Sequence[float], began: float, ended: float) -> Gap:
    """Return the longest time without an answer from `began` to `ended`. `times`: of all answers, in order."""
    marks = [began, *times, ended]
    return Gap(round(max(after - before for before, after in zip(marks, marks[1:])), 3), len(times))


def find_return(samples: Iterable[Tuple[float, Iterable[int]]], sessions: Mapping[str, int]) -> Dict[str, float | None]:
    """Return for each session how long it had no connection, None where it is not back or no sample was taken.

    `samples`: (time, sessions that are connected) of all servers at that time, in order; `sessions`: {path: session}.
    """
    wanted = {path: session & _SESSION for path, session in sessions.items()}
    away: Dict[str, float] = {}
    total: Dict[str, float | None] = dict.fromkeys(wanted)
    for at, connected in samples:
        there = {session & _SESSION for session in connected}
        for path, session in wanted.items():
            if session not in there:
                away.setdefault(path, at)
                total[path] = None
            else:
                total[path] = round(max(at - away.pop(path, at), total[path] or 0.0), 2)
    return total


def measure(records: Mapping[str, Mapping[str, Any]]) -> Dict[str, Dict[str, float]]:
    """Return {host: {step: seconds since the fence}} of the workers' records."""
    found = {}
    for host, record in records.items():
        at = {step["name"]: step["at"] for step in record.get("steps") or ()}
        if "fenced" in at:
            found[host] = {name: round(at[name] - at["fenced"], 2) for name in STEPS if name in at}
    return found


def check_ended(records: Mapping[str, Mapping[str, Any]]) -> List[Finding]:
    """Return what was not as a rehearsal is: a host that its deadline healed, or that has no step of it."""
    found = []
    for host, record in sorted(records.items()):
        reason = record.get("reason") or ""
        if reason != REASON:
            found.append(
                Finding(
                    f"{host} did not heal its cut by order of the rehearsal: {reason or 'no reason is known'} "
                    "(QS-ZKMOVE-019)",
                    "find what made the run slow, and rehearse again",
                )
            )
        elif not measure({host: record}).get(host, {}).get(OBSERVES):
            found.append(
                Finding(
                    f"{host} noted no time at which it was an observer again (QS-ZKMOVE-019)",
                    "see journalctl -u quorumshift-zk-cut on it, and rehearse again",
                )
            )
    return found


def check_whole(
    before: Mapping[str, Any], after: Mapping[str, Any], hosts: Mapping[str, Mapping[str, Any]]
) -> List[Finding]:
    """Return what is not as it was before the rehearsal.

    `before`, `after`: {modes: {source server: mode}, sessions: {path: session of Kafka's ephemeral znodes}, leaders:
    {partition: id of its leader}}; `hosts`: what zk_cut located on each destination host.
    """
    again = "see the log of that server or broker. Nothing was promoted: Kafka uses the source, as before"
    found = []
    for server, mode in sorted(before["modes"].items()):
        if after["modes"].get(server) != mode:
            seen = after["modes"].get(server) or "nothing"
            text = f"source server {server} serves as {seen} after the rehearsal, as {mode} before it"
            found.append(Finding(f"{text} (QS-ZKMOVE-019)", again))
    for path, session in sorted(before["sessions"].items()):
        if after["sessions"].get(path, 0) & _SESSION != session & _SESSION:
            now = after["sessions"].get(path)
            seen = f"has session 0x{now & _SESSION:x}" if now else "does not exist"
            text = f"{path} {seen} after the rehearsal, session 0x{session & _SESSION:x} before it"
            found.append(Finding(f"{text} (QS-ZKMOVE-019)", again))
    moved = sorted(name for name, leader in before["leaders"].items() if after["leaders"].get(name) != leader)
    if moved:
        text = f"the leaders of {len(moved)} partitions are others after the rehearsal: {format_names(moved)}"
        found.append(Finding(f"{text} (QS-ZKMOVE-019)", again))
    for host, read in sorted(hosts.items()):
        server, cut = read.get("server") or {}, read.get("cut") or {}
        if server.get("mode") != "observer" or not server.get("observes") or cut.get("rules"):
            text = f"{host} serves as {server.get('mode') or 'nothing'} and has {cut.get('rules', 'unknown')} rules"
            found.append(Finding(f"{text} after the rehearsal (QS-ZKMOVE-019)", "run quorumshift.kafka.zk_migrate"))
    return found


def check_watched(watched: Mapping[str, Any]) -> List[Finding]:
    """Return what the watch did not see: a session that is not back, or answers that were never given."""
    found = [
        Finding(
            f"the session of {path} has no connection to a destination server after the rehearsal (QS-ZKMOVE-019)",
            "see the log of its broker",
        )
        for path, seconds in sorted(watched["sessions"].items())
        if seconds is None
    ]
    found += [
        Finding(
            f"broker {address} gave no answer during the rehearsal (QS-ZKMOVE-019)", "see its log, and rehearse again"
        )
        for address, seen in sorted(watched["brokers"].items())
        if not seen["answers"]
    ]
    producer = watched.get("producer")
    if producer and not producer["acknowledged"]:
        why = producer["first_error"] or "no broker answered"
        found.append(
            Finding(
                f"no message to {producer['topic']} was acknowledged: {why} (QS-ZKMOVE-019)",
                "correct that, and rehearse again",
            )
        )
    return found


def compare(plan: Mapping[str, Any], times: Mapping[str, Mapping[str, float]]) -> Dict[str, float]:
    """Return {tasks_s, estimated_tasks_s, start_s, expected_s, estimate_s, budget_s}.

    A rehearsal does what a cut does up to the promotion, whose order it replaces by that to heal. `expected_s` is what
    it took and the estimated start of the servers, which nothing but a promotion does.
    """
    tasks = max((steps.get("healed", 0.0) for steps in times.values()), default=0.0)
    return {
        "tasks_s": round(tasks, 1),
        "estimated_tasks_s": round(plan["estimate_s"] - plan["start_s"], 1),
        "start_s": plan["start_s"],
        "expected_s": round(tasks + plan["start_s"], 1),
        "estimate_s": plan["estimate_s"],
        "budget_s": round(plan["deadline_s"] + RECONNECT_S, 1),
    }


def lines(
    plan: Mapping[str, Any], times: Mapping[str, Mapping[str, float]], watched: Mapping[str, Any]
) -> Iterable[str]:
    """Yield the report. `watched`: what the watch returned, {sessions: {path: seconds or None}, brokers: {address:
    {longest_s, answers}}, producer: {topic, acknowledged, failed, longest_s} or None}."""
    of = compare(plan, times)
    yield "the rehearsed cut, in seconds since the fence:"
    for step in STEPS:
        took = [f"{host} {steps[step]:.2f}" for host, steps in sorted(times.items()) if step in steps]
        yield f"  {MEANS[step]:<30} {', '.join(took)}"
    yield (
        f"up to the promotion: {of['tasks_s']:.1f} s, estimated {of['estimated_tasks_s']:.1f} s. With the estimated "
        f"start of the servers, {of['start_s']:.1f} s, a cut takes {of['expected_s']:.1f} s of the "
        f"{of['budget_s']:.1f} s that sessions allow"
    )
    back = {path: seconds for path, seconds in watched["sessions"].items() if seconds is not None}
    slowest = max(back.items(), key=lambda item: item[1], default=("none", 0.0))
    yield (
        f"{len(back)} of {len(watched['sessions'])} sessions with ephemeral znodes of Kafka came back, the slowest "
        f"after {slowest[1]:.1f} s ({slowest[0]})"
    )
    brokers = {address: seen for address, seen in watched["brokers"].items() if seen["answers"]}
    slow = max(brokers.items(), key=lambda item: item[1]["longest_s"], default=("none", {"longest_s": 0.0}))
    yield (
        f"{len(brokers)} of {len(watched['brokers'])} watched brokers answered clients; the longest pause was "
        f"{slow[1]['longest_s']:.2f} s ({slow[0]})"
    )
    producer = watched.get("producer")
    if producer:
        yield (
            f"a producer wrote to {producer['topic']}: {producer['acknowledged']} messages acknowledged, "
            f"{producer['failed']} failed, the longest pause {producer['longest_s']:.2f} s"
        )
    else:
        yield "no producer was measured: -e zk_migrate_rehearse_topic=TOPIC names a topic that it may write to"
