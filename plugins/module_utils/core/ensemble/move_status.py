# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a move between ensembles is, what was done, and what to run next, by what was read. Pure."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import ensemble_cut, ensemble_move
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble.cut_rehearsal import REASON
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import format_names, sentences

MIGRATE, ROLLBACK = "zk_migrate", "zk_rollback"
DESTINATION, SOURCE, ABSENT = "destination", "source", "absent"
USES = {DESTINATION: "use the destination", SOURCE: "use the source", ABSENT: "are not registered"}
SHOWN = 5


class Seen(NamedTuple):
    """What was read of a move.

    `hosts`: what zk_cut located on each destination host, empty where it was not read; `unread`: why, by host;
    `source`, `destination`: zk_servers.collect of both; `brokers`: {host: DESTINATION, SOURCE or ABSENT}, by the server
    that made the session of its znode; `controller`: the same of /controller; `shown_id`: the cluster id on the source
    where it is marked, else ''; `dead`: hosts that are named dead.
    """

    hosts: Mapping[str, Mapping[str, Any]]
    unread: Mapping[str, str]
    source: Mapping[str, Mapping[str, Any]]
    destination: Mapping[str, Mapping[str, Any]]
    brokers: Mapping[str, str]
    controller: str
    shown_id: str = ""
    dead: Sequence[str] = ()


class Status(NamedTuple):
    """`stage`: where the move is, in a few words; `lines`: what was seen; `playbook`: what to run next, '' for nothing;
    `given`: its variables; `advice`: what to do instead or before."""

    stage: str
    lines: List[str]
    playbook: str
    given: Dict[str, str]
    advice: str


def describe(seen: Seen) -> Status:
    """Return the status of a move."""
    cuts = {host: read.get("cut") or {} for host, read in seen.hosts.items()}
    decision = ensemble_move.decide(cuts, ensemble_move.FORWARD, seen.dead)
    stage, playbook, given, advice = _next(seen, cuts, decision)
    return Status(stage, list(_lines(seen, cuts)), playbook, given, advice)


def _next(seen: Seen, cuts: Mapping[str, Mapping], decision: ensemble_move.Decision) -> tuple:
    """Return (stage, playbook, its variables, advice)."""
    dead = {"zk_migrate_dead_hosts": ",".join(seen.dead)} if seen.dead else {}
    if decision.findings:
        finding = decision.findings[0]
        unread = next((why for why in seen.unread.values() if why), "")
        text = sentences(finding.seen, finding.do) + (f". {unread}" if unread else "")
        playbook = ROLLBACK if finding.do.startswith(ensemble_move.ROLL_BACK) else ""
        stage = {
            ensemble_move.ROLLBACK: "a promotion must be taken back",
            ensemble_move.STRAY: "the destination serves without one of its hosts",
        }.get(decision.standing, "not known")
        return stage, playbook, dead if playbook else {}, text
    if decision.standing == ensemble_move.FINISH:
        return "the promotion is under way", MIGRATE, dead, "unless a run is at work, run it: it finishes the promotion"
    if decision.standing == ensemble_move.SERVED:
        if decision.verify:
            return "promoted, and not verified", MIGRATE, dead, ""
        if seen.shown_id:
            return "done", "", {}, ""
        marks = {**dead, "zk_migrate_source_data": "marked"}
        return "done, and the source has Kafka's old data", MIGRATE, marks, "it marks the old data on the source"
    under_way = sorted(host for host, cut in cuts.items() if cut["state"] in ensemble_cut.UNDONE_BY_ITSELF)
    if under_way:
        return "a cut is under way", "", {}, f"{format_names(under_way)} undoes it at its deadline. Wait for that"
    joined = [host for host, read in seen.hosts.items() if (read.get("server") or {}).get("mode") == "observer"]
    moved = [host for host, where in seen.brokers.items() if where == DESTINATION]
    if len(joined) < len(seen.hosts):
        stage = f"{len(joined)} of {len(seen.hosts)} destination servers are observers" if joined else "not begun"
        return stage, MIGRATE, {**dead, "zk_migrate_cut": "false"}, ""
    if len(moved) < len(seen.brokers):
        stage = f"{len(moved)} of {len(seen.brokers)} brokers use the destination's observers"
        return stage, MIGRATE, {**dead, "zk_migrate_cut": "false"}, ""
    if not any(_is_rehearsed(cut) for cut in cuts.values()):
        rehearses = {**dead, "zk_migrate_rehearse": "true"}
        return "ready for the cut, which was not rehearsed", MIGRATE, rehearses, "it makes the cut and heals it"
    return "ready for the cut, which was rehearsed", MIGRATE, dead, "it makes the cut, and promotes the destination"


def _is_rehearsed(cut: Mapping[str, Any]) -> bool:
    return bool(cut.get("rehearsed")) and cut.get("reason") == REASON


def _lines(seen: Seen, cuts: Mapping[str, Mapping]) -> Iterator[str]:
    yield f"source       {_servers(seen.source)}" + (f"; its /cluster/id is {seen.shown_id}" if seen.shown_id else "")
    leader = ensemble_cut.leader_zxid(seen.source)
    observers = any(answer["mode"] == "observer" for answer in seen.destination.values())
    yield f"destination  {_servers(seen.destination, leader if observers else 0)}"
    for host, why in sorted(seen.unread.items()):
        yield f"             {host} was not read: {why}"
    for where, what in (
        (DESTINATION, "use the destination"),
        (SOURCE, "use the source"),
        (ABSENT, "are not registered"),
    ):
        found = sorted(host for host, of in seen.brokers.items() if of == where)
        if found:
            yield f"brokers      {len(found)} of {len(seen.brokers)} {what}: {format_names(found, SHOWN)}"
    if seen.controller != ABSENT:
        yield f"controller   its session was made by the {seen.controller}"
    for host, cut in sorted(cuts.items()):
        text = _explain_cut(cut)
        if text:
            yield f"last cut     {host}: {text}"


def _servers(servers: Mapping[str, Mapping[str, Any]], leader: int = 0) -> str:
    """Return the servers by mode. `leader`: the zxid that observers are to have, 0 where none follows another one."""
    found = []
    for server, answer in sorted(servers.items()):
        text = f"{server} {answer['mode'] or 'gives no answer'}"
        if leader and answer["mode"] == "observer" and (answer["zxid"] or 0) < leader:
            text += f" at 0x{answer['zxid'] or 0:x}, its leader was at 0x{leader:x}"
        found.append(text)
    return ", ".join(found)


def _explain_cut(cut: Mapping[str, Any]) -> str:
    """Return what became of the last cut on a host, '' where there was none."""
    if not cut.get("id"):
        return ""
    if cut["state"] == ensemble_cut.PROMOTED:
        return "promoted" + (", verified" if cut.get("verified") else ", not verified")
    if _is_rehearsed(cut):
        return "rehearsed and healed"
    why = cut.get("reason") or cut.get("waits") or ""
    return f"{cut['state']}{f': {why}' if why else ''}" + (f", {cut['rules']} rules" if cut.get("rules") else "")


def locate_session(session: int | None, ids: Iterable[int]) -> str:
    """Return which ensemble made a session, ABSENT without one. `ids`: of the destination."""
    if session is None:
        return ABSENT
    return DESTINATION if (session >> 56) & 0xFF in set(ids) else SOURCE
