# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run of the move between ensembles decides, by what it read on each destination host. Pure."""

from __future__ import annotations

from typing import Any, Collection, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Sequence

from ..addresses import HostPort
from .checks.facts import Finding
from .ensemble_cut import ACCEPTED, PROMOTED, PROMOTING, SUSPENDED, UNDONE_BY_ITSELF

JOIN, FINISH, SERVED, ROLLBACK, STRAY = "join", "finish", "served", "rollback", "stray"
FORWARD, BACK = "forward", "back"
MIGRATE_AGAIN = "run quorumshift.kafka.zk_migrate again"
ROLL_BACK = "run quorumshift.kafka.zk_rollback"


def standing(states: Mapping[str, str]) -> str:
    """Return where the move is, by the state of each destination host.

    JOIN: no host accepted a promotion. FINISH: all accepted it, so that it can go on. ROLLBACK: it must be undone.
    SERVED: it ended. STRAY: the destination serves, and a host is no part of it.
    """
    accepted = [state for state in states.values() if state in ACCEPTED]
    if not accepted:
        return JOIN
    if PROMOTED in accepted:
        if len(accepted) < len(states):
            return STRAY
        return SERVED if set(accepted) == {PROMOTED} else FINISH
    return FINISH if accepted == [PROMOTING] * len(states) else ROLLBACK


class Decision(NamedTuple):
    """What a run does next. `standing`: see there; lists of hosts: `resume` goes on with its promotion, `suspend` keeps
    it from going on, `take_back` undoes it, `heal` undoes a cut; `going_on`: hosts that may still be promoted;
    `one_promoted`: whether a host was promoted; `verify`: whether the destination serves and no run has verified it;
    `findings`: what ends the run, with nothing changed."""

    standing: str
    resume: List[str]
    suspend: List[str]
    take_back: List[str]
    heal: List[str]
    going_on: List[str]
    one_promoted: bool
    verify: bool
    findings: List[Finding]


def decide(hosts: Mapping[str, Mapping[str, Any]], direction: str) -> Decision:
    """Return what a run does next. `hosts`: the part `cut` of what module zk_cut read on each destination host, empty
    where it was not read; `direction`: FORWARD, or BACK to the source."""
    states = {host: one["state"] for host, one in hosts.items() if one}
    where = standing(states)
    promoted = sorted(host for host, state in states.items() if state == PROMOTED)
    accepted = sorted(host for host, state in states.items() if state in ACCEPTED)
    findings: List[Finding] = []
    unread = sorted(set(hosts) - set(states))
    if unread:
        findings.append(Finding(f"destination hosts could not be read: {', '.join(unread)}", "fix that, and run again"))
    elif direction == BACK and promoted:
        findings.append(
            Finding(
                f"{', '.join(promoted)} served Kafka as an ensemble of its own, so the source lacks what Kafka wrote "
                "there. There is no rollback without loss",
                f"go forward: {MIGRATE_AGAIN}",
            )
        )
    elif where == STRAY:
        others = sorted(set(hosts) - set(accepted))
        findings.append(
            Finding(
                f"{', '.join(promoted)} serves as an ensemble of its own, and {', '.join(others)} is no part of it",
                f"if no other run is under way, stop the ZooKeeper server of {', '.join(others)} at once, since it "
                "belongs to the source",
            )
        )
    elif where == ROLLBACK and direction == FORWARD:
        findings.append(Finding(_partly(accepted, len(states)), f"{ROLL_BACK}: it takes these promotions back"))
    return Decision(
        where,
        sorted(host for host in accepted if states[host] != PROMOTED or hosts[host]["rules"])
        if where != ROLLBACK
        else [],
        sorted(host for host in accepted if states[host] == PROMOTING),
        sorted(host for host in accepted if states[host] == SUSPENDED),
        sorted(
            host for host, one in hosts.items() if one and host not in accepted and one["rules"] and not one["works"]
        ),
        sorted(host for host, state in states.items() if state in (PROMOTING, *UNDONE_BY_ITSELF)),
        bool(promoted),
        where == SERVED and not all(one.get("verified") for one in hosts.values()),
        findings,
    )


def _partly(accepted: Sequence[str], hosts: int) -> str:
    if len(accepted) == hosts:
        return f"The promotion of {', '.join(accepted)} was suspended. Kafka reaches no destination server"
    return f"{', '.join(accepted)} accepted their promotion and stay fenced. Kafka uses the other servers"


def next_step(states: Mapping[str, str]) -> str:
    """Return how the operator goes on after a cut that failed."""
    where = standing(states)
    if where == JOIN:
        return "Fix the cause and run again."
    if where == ROLLBACK:
        accepted = sorted(host for host, state in states.items() if state in ACCEPTED)
        return f"{_partly(accepted, len(states))}. Run quorumshift.kafka.zk_rollback: it takes these promotions back."
    return "Run quorumshift.kafka.zk_migrate again: the run finishes the promotion."


def unlike(
    hosts: Mapping[str, Mapping[str, Any]], servers: Mapping[int, str], connect: Iterable[HostPort]
) -> Iterator[Finding]:
    """Yield where the inventory's destination hosts, `zk_migrate_destination_servers` and the connect string are not
    one set. A server of the connect string that is neither fenced nor promoted would let Kafka write to the source.

    `hosts`: of each destination host, {myid, ids: of `servers`, whose addresses are of that host; entries: of the
    connect string, that lead to its server}.
    """
    by_id: Dict[int, List[str]] = {}
    for host, one in sorted(hosts.items()):
        by_id.setdefault(one["myid"], []).append(host)
        if one["myid"] in servers and one["myid"] not in one["ids"]:
            yield Finding(
                f"zk_migrate_destination_servers has server {one['myid']} at {servers[one['myid']]}, which is no "
                f"address of {host}, whose zk_migrate_myid that is",
                "correct zk_migrate_destination_servers or zk_migrate_myid",
            )
        if not one["entries"]:
            yield Finding(
                f"no server of zk_migrate_destination_connect is the one on {host}",
                f"add {host} with its clientPort to zk_migrate_destination_connect",
            )
    for number, owners in sorted(by_id.items()):
        if len(owners) > 1:
            yield Finding(f"zk_migrate_myid is {number} on {', '.join(owners)}", "give each host an id of its own")
    yield from _unlike_ids(set(servers), set(by_id))
    known = {entry for one in hosts.values() for entry in one["entries"]}
    foreign = sorted(str(one) for one in connect if str(one) not in known)
    if foreign:
        yield Finding(
            f"{', '.join(foreign)} of zk_migrate_destination_connect is no server of a host in the group "
            "zookeeper_destination",
            "add its host to the group, or remove it from the connect string, and restart the brokers",
        )


def _unlike_ids(servers: Collection[int], hosts: Collection[int]) -> Iterator[Finding]:
    for number in sorted(set(servers) - set(hosts)):
        yield Finding(
            f"zk_migrate_destination_servers has server {number}, and no host of the group zookeeper_destination has "
            "that zk_migrate_myid",
            "add its host to the group, or remove the server",
        )
    for number in sorted(set(hosts) - set(servers)):
        yield Finding(
            f"zk_migrate_destination_servers has no server {number}, which is the zk_migrate_myid of a host in the "
            "group zookeeper_destination",
            "add it, or remove the host from the group",
        )


def foreign_servers(creators: Mapping[str, int | None], ids: Collection[int]) -> Iterator[Finding]:
    """Yield servers of the destination's connect string that are none of the destination. `creators`: {server: id that
    it gives to sessions, None if it gave none}; `ids`: the destination's."""
    for server, number in sorted(creators.items()):
        if number is None:
            yield Finding(f"{server} of zk_migrate_destination_connect gives no session", "start it, and run again")
        elif number not in ids:
            yield Finding(
                f"{server} of zk_migrate_destination_connect has the id {number}, which is none of the destination",
                "correct zk_migrate_destination_connect, and restart the brokers",
            )
    lacking = sorted(set(ids) - set(creators.values()))
    if lacking:
        yield Finding(
            f"no server of zk_migrate_destination_connect has the id {lacking[0]} of the destination",
            "add its server to the connect string, and restart the brokers",
        )
