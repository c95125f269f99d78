# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run of the move between ensembles decides, by what it read on each destination host. Pure."""

from __future__ import annotations

from typing import Any, Collection, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble.ensemble_cut import (
    ACCEPTED,
    PROMOTED,
    PROMOTING,
    SUSPENDED,
    UNDONE_BY_ITSELF,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import Finding
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import ZkConnect, parse_host_port

JOIN, FINISH, SERVED, ROLLBACK, STRAY = "join", "finish", "served", "rollback", "stray"
FORWARD, BACK, NONE = "forward", "back", "none"
UNKNOWN = "unknown"  # how a text begins that says why nothing is known
MIGRATE_AGAIN = "run quorumshift.kafka.zk_migrate again"
ROLL_BACK = "run quorumshift.kafka.zk_rollback"


def locate_move(states: Mapping[str, str], unknown: bool = False) -> str:
    """Return where the move is, by the state of each destination host. `unknown`: whether there is a host whose state
    is not known, because it is dead, and that may have accepted a promotion.

    JOIN: no host accepted a promotion. FINISH: all accepted it, so that it can go on. ROLLBACK: it must be undone.
    SERVED: it ended. STRAY: the destination serves, and a host is no part of it.
    """
    accepted = [state for state in states.values() if state in ACCEPTED]
    if not accepted:
        return JOIN
    if PROMOTED in accepted:  # a host opens only once all accepted, so the unknown host accepted as well
        if len(accepted) < len(states):
            return STRAY
        return SERVED if set(accepted) == {PROMOTED} else FINISH
    return FINISH if accepted == [PROMOTING] * len(states) and not unknown else ROLLBACK


class Decision(NamedTuple):
    """What a run does next. `standing`: see `locate_move`.

    Lists of hosts: `resume` goes on with its promotion, `suspend` keeps it from going on, `take_back` undoes it, `heal`
    undoes a cut, `clean` loses what it has of an earlier promotion, `add` then joins the ensemble that serves;
    `going_on`: hosts that may still be promoted. `one_promoted`: whether a host was promoted; `verify`: whether the
    destination serves and no run has verified it; `promotion`: {id, last}, its cut and the zxid to which the files of
    the most advanced host led, '' and 0 where no host was promoted; `findings`: what ends the run, with nothing
    changed; `notes`: what the operator must know.
    """

    standing: str
    resume: List[str]
    suspend: List[str]
    take_back: List[str]
    heal: List[str]
    clean: List[str]
    add: List[str]
    going_on: List[str]
    one_promoted: bool
    verify: bool
    promotion: Dict[str, Any]
    findings: List[Finding]
    notes: List[str]


def decide(
    hosts: Mapping[str, Mapping[str, Any]], direction: str, dead: Collection[str] = (), cleaned: Collection[str] = ()
) -> Decision:
    """Return what a run does next. `hosts`: the part `cut` of what module zk_cut read on each destination host, empty
    where it was not read; `direction`: FORWARD, or BACK to the source; `dead`: hosts that the operator named dead,
    which are not in `hosts`; `cleaned`: hosts whose old files the operator gave up."""
    read = {host: cut for host, cut in hosts.items() if cut}
    returned = _find_returned(read)
    members = {host: cut for host, cut in read.items() if host not in returned}
    states = {host: cut["state"] for host, cut in members.items()}
    accepted = sorted(host for host, state in states.items() if state in ACCEPTED)
    promoted = sorted(host for host, state in states.items() if state == PROMOTED)
    without = {name for host in accepted for name in members[host].get("dead") or ()}
    unknown = sorted(set(dead) - without)
    where = locate_move(states, bool(unknown))
    shown_by = _find_proof_of_acceptance(members) if where == ROLLBACK and unknown else ""
    if shown_by:
        where = FINISH
    findings = _findings(read, members, where, direction, hosts, unknown, len(dead))
    empty = [host for host in returned if read[host].get("clean")]
    clean = [host for host in returned if host in cleaned and host not in empty and where in (JOIN, SERVED)]
    add = [host for host in returned if where == SERVED and host in (*empty, *clean)]
    if not findings:
        old = {host: read[host] for host in returned if host not in empty}
        findings = list(_check_returned(old, where)) if set(old) - set(clean) else []
    gone_before = sorted({name for cut in read.values() for name in cut.get("taken_back_without") or ()} & set(dead))
    if gone_before and where == JOIN and direction == FORWARD:
        findings.append(
            Finding(
                f"{', '.join(gone_before)} was dead when a promotion was taken back that it may have accepted. Its "
                "files may be of an ensemble that is no more, and newer than those of the other hosts (QS-ZKMOVE-007)",
                f"start {gone_before[0]} with empty directories, and run without naming it in zk_migrate_dead_hosts",
            )
        )
    return Decision(
        where,
        sorted(host for host in accepted if states[host] != PROMOTED or members[host]["rules"])
        if where != ROLLBACK
        else [],
        sorted(host for host in accepted if states[host] == PROMOTING),
        sorted(host for host in accepted if states[host] == SUSPENDED),
        sorted(
            host for host, cut in read.items() if cut["state"] not in ACCEPTED and cut["rules"] and not cut["works"]
        ),
        clean,
        add,
        sorted(host for host, state in states.items() if state in (PROMOTING, *UNDONE_BY_ITSELF)),
        bool(promoted or shown_by),
        where == SERVED and not all(cut.get("verified") for cut in members.values()),
        {
            "id": next((members[host].get("id") or "" for host in promoted), ""),
            "last": max((int(members[host].get("last") or 0) for host in promoted), default=0),
        },
        findings,
        list(_notes(dead, where, shown_by)),
    )


def _find_returned(read: Mapping[str, Mapping[str, Any]]) -> List[str]:
    """Return the hosts that were left out of a promotion as dead, or whose promotion was taken back on all others, and
    that are there again with what they had then."""
    found = []
    for host, cut in read.items():
        others = [other for name, other in read.items() if name != host]
        ids = {other.get("id") for other in others if other["state"] in ACCEPTED and host in (other.get("dead") or ())}
        outlived = cut["state"] in ACCEPTED and any(host in (other.get("taken_back_without") or ()) for other in others)
        if (ids and cut.get("id") not in ids) or outlived:
            found.append(host)
    return sorted(found)


def _find_proof_of_acceptance(members: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the host that shows that all hosts accepted their promotion, those that are dead now included; '' if none
    does. The order to open is given only then, and a write of Kafka is there only after it.

    A host that was suspended before its server was started has no files that count. It gets them from another one that
    serves, so a promoted one is required then.
    """
    if not all(
        cut["state"] == PROMOTING or (cut["state"] == SUSPENDED and cut.get("started")) for cut in members.values()
    ):
        return ""
    for host, cut in sorted(members.items()):
        written = cut.get("written") or ""
        if cut.get("opens") or (written and not written.startswith(UNKNOWN)):
            return host
    return ""


def _findings(
    read: Mapping[str, Mapping[str, Any]],
    members: Mapping[str, Mapping[str, Any]],
    where: str,
    direction: str,
    hosts: Mapping[str, Any],
    unknown: Sequence[str],
    dead: int,
) -> List[Finding]:
    """Return what ends a run. `dead`: how many hosts are named dead."""
    states = {host: cut["state"] for host, cut in members.items()}
    promoted = sorted(host for host, state in states.items() if state == PROMOTED)
    accepted = sorted(host for host, state in states.items() if state in ACCEPTED)
    unread = sorted(set(hosts) - set(read))
    if unread:
        return [
            Finding(
                f"destination hosts could not be read: {', '.join(unread)} (QS-ZKMOVE-006)",
                "fix that, and run again. If they are dead for good, and the others are a majority: "
                f"-e zk_migrate_dead_hosts={','.join(unread)}",
            )
        ]
    if direction == BACK and promoted:
        return [
            Finding(
                f"{', '.join(promoted)} served Kafka as an ensemble of its own, so the source lacks what Kafka wrote "
                "there. There is no rollback without loss (QS-ZKMOVE-018)",
                f"go forward: {MIGRATE_AGAIN}",
            )
        ]
    if where == STRAY:
        others = sorted(set(members) - set(accepted))
        return [
            Finding(
                f"{', '.join(promoted)} serves as an ensemble of its own, and {', '.join(others)} is no part "
                "of it (QS-ZKMOVE-016)",
                f"if no other run is under way, stop the ZooKeeper server of {', '.join(others)} at once, since it "
                "belongs to the source",
            )
        ]
    if accepted and unknown and where != ROLLBACK and 2 * len(members) <= len(hosts) + dead:
        return [
            Finding(
                f"{', '.join(unknown)} is dead, and of the hosts that were promoted only {', '.join(accepted)} is "
                "there, which is no majority (QS-ZKMOVE-007)",
                f"start {', '.join(unknown)}, and run again without naming it in zk_migrate_dead_hosts",
            )
        ]
    if direction == BACK and where == FINISH and unknown:
        return [
            Finding(
                f"{', '.join(unknown)} is dead, and accepted its promotion as {', '.join(accepted)} did. It may have "
                "served Kafka (QS-ZKMOVE-007)",
                f"go forward: {MIGRATE_AGAIN}",
            )
        ]
    unsure = sorted(host for host, cut in members.items() if cut.get("written") and cut["state"] == SUSPENDED)
    if where == ROLLBACK and unknown and unsure:
        return [
            Finding(
                f"{', '.join(unknown)} is dead and may have served Kafka, since the log of {unsure[0]} shows: "
                f"{members[unsure[0]]['written']} (QS-ZKMOVE-007)",
                f"start {', '.join(unknown)}, and run again without naming it in zk_migrate_dead_hosts",
            )
        ]
    if where == ROLLBACK and direction == FORWARD:
        named = f" with -e zk_migrate_dead_hosts={','.join(unknown)}" if unknown else ""
        return [
            Finding(
                f"{_explain_partial(states, unknown)} (QS-ZKMOVE-007)",
                f"{ROLL_BACK}{named}: it takes these promotions back",
            ),
        ]
    return []


def _check_returned(returned: Mapping[str, Mapping[str, Any]], where: str) -> Iterator[Finding]:
    """Yield the hosts that were left out as dead, and are there again with their old files. A promotion that is under
    way ends or is taken back first."""
    if where in (FINISH, ROLLBACK):
        return
    if returned:
        states = ", ".join(f"{host} (state {cut['state']})" for host, cut in sorted(returned.items()))
        yield Finding(
            f"named dead in this move, and there again with old files: {states} (QS-ZKMOVE-007)",
            f"{MIGRATE_AGAIN} with -e zk_migrate_clean_hosts={','.join(sorted(returned))}: it stops these servers, "
            "moves their data away, and has them join anew",
        )


def _notes(dead: Collection[str], where: str, shown_by: str) -> Iterator[str]:
    if not dead:
        return
    names = ", ".join(sorted(dead))
    yield f"named dead: {names}. The run goes on without. It must not return with its files: see zk_migrate_clean_hosts"
    if shown_by:
        yield f"all hosts accepted their promotion, {names} included, as {shown_by} shows"
    if where == SERVED:
        yield f"the destination serves without {names}: another host that fails takes Kafka's ZooKeeper away"


def _explain_partial(states: Mapping[str, str], unknown: Collection[str] = ()) -> str:
    """Say what a promotion that not all hosts accepted means for Kafka. `unknown`: hosts that gave no answer."""
    accepted = sorted(host for host, state in states.items() if state in ACCEPTED)
    others = set(states) - set(accepted) - set(unknown)
    if len(accepted) == len(states) and not unknown:
        return f"The promotion of {', '.join(accepted)} was suspended. Kafka reaches no destination server"
    seen = f"{', '.join(accepted)} accepted their promotion and stay fenced"
    if unknown:
        seen += f", and whether {', '.join(sorted(unknown))} did is unknown"
    return f"{seen}. Kafka uses {'the other servers' if others else 'no destination server that answers'}"


def next_step(states: Mapping[str, str]) -> str:
    """Return how the operator goes on after a cut that failed. `states`: of the hosts that took part in it, UNKNOWN for
    one that gave no answer."""
    unknown = sorted(host for host, state in states.items() if state == UNKNOWN)
    where = locate_move(states)
    dead = f"-e zk_migrate_dead_hosts={','.join(unknown)}" if unknown and 2 * len(unknown) < len(states) else ""
    if where == JOIN:
        return "Fix the cause and run again." + (f" If {', '.join(unknown)} is dead: {dead}." if dead else "")
    if where == ROLLBACK:
        more = f" If {', '.join(unknown)} is dead: with {dead}." if dead else ""
        return (
            f"{_explain_partial(states, unknown)}. Run quorumshift.kafka.zk_rollback: it takes these promotions "
            f"back.{more}"
        )
    return "Run quorumshift.kafka.zk_migrate again: the run finishes the promotion."


def check_inventory(
    hosts: Mapping[str, Mapping[str, Any]],
    servers: Mapping[int, str],
    connect: ZkConnect,
    dead: Mapping[str, int] | None = None,
    direction: str = FORWARD,
) -> Iterator[Finding]:
    """Yield where the inventory's destination hosts, `zk_migrate_destination_servers` and the connect string are not
    one set. A server of the connect string that is neither fenced nor promoted would let Kafka write to the source.

    `hosts`: of each destination host, {myid, ids: of `servers`, whose addresses are of that host; entries: of the
    connect string, that lead to its server; answering: addresses of dead hosts that accept a connection from there};
    `dead`: the id of each host that the operator named dead. It is one of the servers, and none of the connect string
    that brokers get.
    """
    dead = dead or {}
    by_id: Dict[int, List[str]] = {}
    for host, found in sorted(hosts.items()):
        by_id.setdefault(found["myid"], []).append(host)
        if found["myid"] in servers and found["myid"] not in found["ids"]:
            yield Finding(
                f"zk_migrate_destination_servers has server {found['myid']} at {servers[found['myid']]}, which is no "
                f"address of {host}, whose zk_migrate_myid that is (QS-ZKMOVE-008)",
                "correct zk_migrate_destination_servers or zk_migrate_myid",
            )
        if not found["entries"]:
            yield Finding(
                f"no server of zk_migrate_destination_connect is the one on {host} (QS-ZKMOVE-008)",
                f"add {host} with its clientPort to zk_migrate_destination_connect",
            )
    for host, number in sorted(dead.items()):
        by_id.setdefault(number, []).append(host)
    for number, owners in sorted(by_id.items()):
        if len(owners) > 1:
            yield Finding(
                f"zk_migrate_myid is {number} on {', '.join(owners)} (QS-ZKMOVE-008)", "give each host an id of its own"
            )
    yield from _check_ids(set(servers), set(by_id))
    known = {entry for found in hosts.values() for entry in found["entries"]}
    of_dead = {name for number in dead.values() for name in _host_names(servers.get(number, ""))}
    foreign = sorted(
        str(server) for server in connect.servers if str(server) not in known and server.host not in of_dead
    )
    if foreign:
        yield Finding(
            f"{', '.join(foreign)} of zk_migrate_destination_connect is no server of a host in the group "
            "zookeeper_destination (QS-ZKMOVE-008)",
            "add its host to the group, or remove it from the connect string, and restart the brokers",
        )
    silent = sorted(str(server) for server in connect.servers if str(server) not in known and server.host in of_dead)
    if silent and direction == FORWARD:
        living = ",".join(str(server) for server in connect.servers if str(server) in known)
        yield Finding(
            f"zk_migrate_destination_connect has {', '.join(silent)} of a host that is named dead. Brokers must not "
            "know it: it could come back as an observer of the source (QS-ZKMOVE-007)",
            f"set zk_migrate_destination_connect={living}{connect.chroot}, and run again",
        )
    if dead and 2 * len(dead) >= len(servers):
        yield Finding(
            f"{len(dead)} of {len(servers)} destination servers are named dead, and the others are no "
            "majority (QS-ZKMOVE-007)",
            "start hosts, or replace them with the same address and id, from empty directories",
        )
    yield from check_dead_hosts(dead, servers, {host: found.get("answering") or () for host, found in hosts.items()})


def check_dead_hosts(
    dead: Mapping[str, int], servers: Mapping[int, str], seen: Mapping[str, Iterable[str]]
) -> Iterator[Finding]:
    """Yield the hosts that were named dead and are not. `seen`: {from where: addresses that answer}."""
    for host, number in sorted(dead.items()):
        names = _host_names(servers.get(number, ""))
        found = [
            f"{address} from {where}"
            for where, addresses in sorted(seen.items())
            for address in addresses
            if parse_host_port(address).host in names
        ]
        if found:
            yield Finding(
                f"{host} is named in zk_migrate_dead_hosts, and answers: {', '.join(found)} (QS-ZKMOVE-007)",
                f"leave {host} out of zk_migrate_dead_hosts, or stop its ZooKeeper server and keep it from starting",
            )


def addresses_of(dead: Mapping[str, int], servers: Mapping[int, str], client_ports: Collection[str]) -> List[str]:
    """Return all addresses at which a server of these hosts would answer: its quorum, election and client ports."""
    found = []
    for number in dead.values():
        for part in filter(None, servers.get(number, "").partition(";")[0].split("|")):
            host, quorum, election = part.rsplit(":", 2)
            ports = (quorum, election, *client_ports)
            found += [str(parse_host_port(f"{host}:{port}")) for port in ports]
    return list(dict.fromkeys(found))


def _host_names(address: str) -> List[str]:
    """Return the host names or addresses in the address of a server."""
    parts = filter(None, address.partition(";")[0].split("|"))
    return [parse_host_port(part.rpartition(":")[0]).host for part in parts]


def _check_ids(servers: Collection[int], hosts: Collection[int]) -> Iterator[Finding]:
    for number in sorted(set(servers) - set(hosts)):
        yield Finding(
            f"zk_migrate_destination_servers has server {number}, and no host of the group zookeeper_destination has "
            "that zk_migrate_myid (QS-ZKMOVE-008)",
            "add its host to the group, or remove the server",
        )
    for number in sorted(set(hosts) - set(servers)):
        yield Finding(
            f"zk_migrate_destination_servers has no server {number}, which is the zk_migrate_myid of a host in the "
            "group zookeeper_destination (QS-ZKMOVE-008)",
            "add it, or remove the host from the group",
        )


def foreign_servers(creators: Mapping[str, int | None], ids: Collection[int]) -> Iterator[Finding]:
    """Yield servers of the destination's connect string that are none of the destination. `creators`: {server: id that
    it gives to sessions, None if it gave none}; `ids`: the destination's."""
    for server, number in sorted(creators.items()):
        if number is None:
            yield Finding(
                f"{server} of zk_migrate_destination_connect gives no session (QS-ZKMOVE-008)",
                "start it, and run again",
            )
        elif number not in ids:
            yield Finding(
                f"{server} of zk_migrate_destination_connect has the id {number}, which is none of the "
                "destination (QS-ZKMOVE-008)",
                "correct zk_migrate_destination_connect, and restart the brokers",
            )
    lacking = sorted(set(ids) - set(creators.values()))
    if lacking:
        yield Finding(
            f"no server of zk_migrate_destination_connect has the id {lacking[0]} of the destination (QS-ZKMOVE-008)",
            "add its server to the connect string, and restart the brokers",
        )
