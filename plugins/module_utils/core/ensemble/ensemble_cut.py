# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How observers are cut off from their source and become an ensemble of their own. Pure.

Each destination host goes through the states below. What keeps two ensembles from both serving Kafka:

- The client ports are fenced from before the cut until the host knows that all destination hosts were promoted.
- A host that was not promoted by its deadline undoes cut and fence by itself. A host that accepted its promotion never
  does, and no order or reboot opens its client port before that knowledge.
- That knowledge is: the run says that all hosts accepted; or the leader, this server or another one, says that all
  others follow it. An open client port proves nothing.
- A rollback heals or suspends every host before it moves data away, so that none is promoted any more.

So where only a part of the hosts was promoted, those stay fenced, and Kafka goes on with the source through the others.
What a host does is cut_host, what a run decides ensemble_move; tools/cut_simulation runs both under faults.
"""

from __future__ import annotations

import ipaddress
import re
import shlex
from typing import Collection, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import zk_observer, zk_sessions
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import systemd
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import Finding, format_names
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import parse_host_port

BEGUN, FENCED, CUT, HEALED, PROMOTING, PROMOTED = "begun", "fenced", "cut", "healed", "promoting", "promoted"
SUSPENDED = "suspended"  # a promotion that was accepted, and goes on only by order of a run
ACCEPTED = (PROMOTING, PROMOTED, SUSPENDED)
UNDONE_BY_ITSELF = (BEGUN, FENCED, CUT)
"""The states that a host leaves by itself at its deadline."""

UNIT = "quorumshift-zk-cut"  # the worker's
LOCK_S = 2  # the worker has the lock for a part of that
HEAL_TRIES = 600  # one a second
DIRECTORY = "zk_cut"  # of the worker's files, below quorumshift_state_dir
CUT_COMMENT, FENCE_COMMENT = "quorumshift-cut", "quorumshift-fence"
BLOCK_PREF = "81"  # of the policy rule that is the second fence
PROBE_ADDRESS = "127.81.83.1"  # from which this host asks its own server while all other clients are fenced
IPTABLES = ("iptables", "ip6tables")
_RESET = ("-j", "REJECT", "--reject-with", "tcp-reset")
_UNREACHABLE = {"iptables": "icmp-port-unreachable", "ip6tables": "icmp6-port-unreachable"}

# Seconds, measured: docs/zookeeper-to-zookeeper.md
START_S, START_ZNODE_S, STEP_S, STEPS = 4.0, 1.1e-5, 0.4, 2.5  # two modules, and two orders by shell
BUDGET = 2 / 3  # of the shortest session timeout: a client that was idle before has pinged a third of it ago
# After a cut is undone: an observer finds its leader, a client pauses up to 1 s before it connects. An estimate within
# the budget leaves this and LEAST_LEFT_S after the order to promote, since START_S is no less.
RECONNECT_S = 3.0
LEAST_LEFT_S = 1.0


class Rule(NamedTuple):
    """A rule of the filter table: the command `iptables` or `ip6tables`, and chain and matches."""

    command: str
    rule: List[str]


def fence(ports: Iterable[str]) -> List[Rule]:
    """Return the rules that reject all clients of these ports but `PROBE_ADDRESS`, those of the same host included.

    Connections that are open are reset. A new one is refused by ICMP, since the second fence (`ip_rule`) keeps a reset
    on this host too: a client would wait for its connection timeout at each fenced server, and its session would end
    before it reached the one that serves.
    """
    rules = []
    for port in ports:
        for command in IPTABLES:
            but = ["!", "-s", PROBE_ADDRESS] if command == "iptables" else []
            clients = ["INPUT", "-p", "tcp", *but, "--dport", port]
            rules.append(Rule(command, [*clients, *_comment_options(FENCE_COMMENT), *_RESET]))
            refused = ["-j", "REJECT", "--reject-with", _UNREACHABLE[command]]
            rules.append(Rule(command, [*clients, "--syn", *_comment_options(FENCE_COMMENT), *refused]))
    return rules


def cut(addresses: Iterable[str], ports: Iterable[str]) -> List[Rule]:
    """Return the rules that reset all connections to and from the quorum and election ports of these IP addresses.

    Only what leaves is rejected. With a rule for what arrives, the reset would be dropped too, and the observer would
    notice the cut only after syncLimit.
    """
    which = ["-m", "multiport", "--ports", ",".join(sorted(set(ports), key=int))]
    return [
        Rule(
            "ip6tables" if ":" in address else "iptables",
            ["OUTPUT", "-p", "tcp", "-d", address, *which, *_comment_options(CUT_COMMENT), *_RESET],
        )
        for address in addresses
    ]


def _comment_options(comment: str) -> List[str]:
    return ["-m", "comment", "--comment", comment]


def insert_command(rule: Rule) -> List[str]:
    """Return the argv that puts a rule before all others of its chain."""
    return [rule.command, "-w", "-I", *rule.rule]


def ip_rule(action: str, port: str, family: str) -> List[str]:
    """Return the argv that adds (`add`) or deletes (`del`) the policy rule which prohibits what leaves from a client
    port. `family`: -4 or -6.

    This rule is the second fence, while a promotion is under way. What loads the filter table anew leaves it alone.
    Clients of the same host are not kept away by it: their packets need no route.
    """
    return ["ip", family, "rule", action, "pref", BLOCK_PREF, "ipproto", "tcp", "sport", port, "prohibit"]


def parse_blocked_ports(shown_rules: str) -> List[str]:
    """Return the client ports in the answer to `ip rule show pref PREF`."""
    return re.findall(rf"^{BLOCK_PREF}:.* ipproto tcp sport (\d+) prohibit", shown_rules, re.MULTILINE)


_REMOVE = """removed() {{
  for table in iptables ip6tables; do
    command -v $table >/dev/null || continue
    rules=$($table -w -S) || return 1
    printf '%s\\n' "$rules" | grep -e {comments} | sed 's/^-A/-D/' | xargs -r -L1 $table -w || return 1
    rules=$($table -w -S) || return 1
    if printf '%s\\n' "$rules" | grep -q -e {comments}; then return 1; fi
  done
{unblock}}}
"""
_UNBLOCK = f"""  for family in -4 -6; do
    for port in $(ip $family rule show pref {BLOCK_PREF} 2>/dev/null |
      sed -n 's/^{BLOCK_PREF}:.* ipproto tcp sport \\([0-9]*\\) prohibit.*/\\1/p'); do
      ip $family rule del pref {BLOCK_PREF} ipproto tcp sport $port prohibit || return 1
    done
  done
"""


def remove_script(*comments: str) -> str:
    """Return the definition of a shell function `removed`, which removes the rules with these comments, and no others,
    in both families, and returns whether none is left. With the fence goes the policy rule."""
    unblock = _UNBLOCK if FENCE_COMMENT in comments else ""
    return _REMOVE.format(comments=" -e ".join(comments), unblock=unblock)


def drop_in(service: str) -> str:
    """Return the path of the file that has systemd run fence.sh before it starts a service."""
    return systemd.drop_in(service, "quorumshift-fence.conf")


def heal_script(directory: str, service: str) -> str:
    """Return the shell script that undoes cut and fence on a host that was not promoted. It is the dead man's switch,
    so it needs nothing but a shell. core.ensemble.cut_host.heal_script_steps is its model."""
    states = "|".join((*UNDONE_BY_ITSELF, HEALED))
    path = shlex.quote(drop_in(service))
    return f"""#!/bin/sh
# Quorumshift: undoes the cut between two ZooKeeper ensembles on this host, unless it was promoted.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
cd {shlex.quote(directory)} || exit 1
exec 9>lock
# a worker that hangs with the lock decides nothing any more
flock -w {LOCK_S} 9 || {{ systemctl kill --signal=KILL {UNIT}.service; flock -w {HEAL_TRIES} 9 || exit 1; }}
case "$(cat state)" in
  {states}) ;;
  *) exit 0 ;;
esac
{remove_script(CUT_COMMENT, FENCE_COMMENT)}left={HEAL_TRIES}
until removed; do
  left=$((left - 1))
  [ $left -gt 0 ] || exit 1
  sleep 1
done
if [ -e {path} ]; then
  rm -f {path}
  rmdir "$(dirname {path})" 2>/dev/null
  systemctl daemon-reload
fi
echo {HEALED} > state.new && mv state.new state
"""


def order_script(state_dir: str, order: str, wanted: Sequence[str], seconds: float) -> str:
    """Return the shell commands that give the worker an order, wait for a state, and print the state and the record.

    Whatever happens to a wait, the order stays: the worker decides by itself whether it is too late.
    """
    return f"""umask 077
cd {shlex.quote(state_dir)}/{DIRECTORY} || exit 1
printf %s {shlex.quote(order)} > order.new && mv order.new order.json || exit 1
left={int(seconds * 20)}
while [ $left -gt 0 ]; do
  case "$(cat state)" in {"|".join(wanted)}) break ;; esac
  left=$((left - 1))
  sleep 0.05
done
cat state cut.json
"""


def fence_script(directory: str, rules: Sequence[Rule], ports: Sequence[str]) -> str:
    """Return the shell script that fences again before the server starts, while its promotion is under way, and keeps a
    suspended server from starting. core.ensemble.cut_host.fence_script_steps is its model."""
    has = [shlex.join([rule.command, "-w", "-C", *rule.rule]) for rule in rules]
    puts = [shlex.join(insert_command(rule)) for rule in rules]
    checked = "".join(f"    {has_rule} 2>/dev/null || {other} || exit 1\n" for has_rule, other in zip(has, puts))
    for port in ports:
        for family in ("-4", "-6"):
            test = "[ ! -e /proc/net/if_inet6 ] || " if family == "-6" else ""
            there = f"ip {family} rule show pref {BLOCK_PREF} | grep -q ' sport {port} prohibit'"
            checked += f"    {test}{there} || {shlex.join(ip_rule('add', port, family))} || exit 1\n"
    return f"""#!/bin/sh
# Quorumshift: keeps clients away from this ZooKeeper server until its whole ensemble was promoted.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
case "$(cat {shlex.quote(directory)}/state)" in
  {PROMOTING})
{checked}    ;;
  {SUSPENDED})
    echo 'The promotion of this server was suspended. Run quorumshift.kafka.zk_migrate: it says what to do.' >&2
    exit 1
    ;;
esac
"""


def promotion_changes(values: Mapping[str, str], destination: Mapping[int, str]) -> Dict[str, str | None]:
    """Return the changes to zoo.cfg that make an observer a voter of the destination ensemble."""
    wanted: Dict[str, str | None] = {key: None for key in values if re.fullmatch(r"server\.\d+", key)}
    wanted.update({**dict.fromkeys(zk_observer.OF_OBSERVERS), "dynamicConfigFile": None, "reconfigEnabled": "false"})
    wanted.update({f"server.{number}": f"{address}:participant" for number, address in sorted(destination.items())})
    return wanted


def source_members(
    configured: Mapping[int, zk_observer.Member], destination: Iterable[int]
) -> List[zk_observer.Member]:
    """Return the source's servers in an observer's configuration."""
    return [member for number, member in configured.items() if number not in set(destination)]


def ports_of(members: Iterable[zk_observer.Member]) -> List[str]:
    """Return the quorum and election ports of servers."""
    found = set()
    for member in members:
        for address in member.address.split("|"):
            found.update(address.rsplit(":", 2)[1:])
    return sorted(found, key=int)


def hosts_of(members: Iterable[zk_observer.Member]) -> List[str]:
    """Return the host names or addresses of servers."""
    return sorted(
        {address.rsplit(":", 2)[0].strip("[]") for member in members for address in member.address.split("|")}
    )


# Of IPv6 addresses, Java 14 and later writes brackets; all write no `::`
_CLIENT = re.compile(r"^ /\[?(?P<address>[0-9a-fA-F.:]+)(?:%\w+)?\]?:\d+\[\d+\]\((?P<values>[^)]*)\)", re.MULTILINE)


def parse_clients(cons: str) -> List[dict]:
    """Return [{address, session, timeout_ms}] of the connections with a session in the answer to `cons`."""
    found = []
    for match in _CLIENT.finditer(cons):
        values = dict(pair.partition("=")[::2] for pair in match["values"].split(","))
        if values.get("sid", "0x0") != "0x0" and values.get("to", "").isdigit():
            found.append(
                {
                    "address": canonical_address(match["address"]),
                    "session": int(values["sid"], 16),
                    "timeout_ms": int(values["to"]),
                }
            )
    return found


def canonical_address(address: str) -> str:
    """Return an IP address in its shortest form; an IPv4 address that is mapped to IPv6 as IPv4."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)


class Plan(NamedTuple):
    """What a cut takes. Times in seconds; `timeout_ms`: the shortest timeout of a session on the destination;
    `start_s`: how long a server takes to start."""

    estimate_s: float
    budget_s: float
    timeout_ms: int
    start_s: float = START_S

    @property
    def deadline_s(self) -> float:
        """When a host that was not promoted undoes the cut."""
        return max(0.0, self.budget_s - RECONNECT_S)


def plan(timeouts: Sequence[int], znodes: int, answer_s: float) -> Plan:
    """Return the plan of a cut. `timeouts`: of all sessions on destination servers, in ms; `znodes`: of the whole tree;
    `answer_s`: how long one task on all hosts takes."""
    timeout = min(timeouts)
    start = START_S + START_ZNODE_S * znodes
    estimate = STEPS * max(answer_s, STEP_S) + start
    return Plan(round(estimate, 1), round(timeout / 1000 * BUDGET, 1), timeout, round(start, 1))


def check_restartable(timeouts: Sequence[int], znodes: int, others: Mapping[str, str | None]) -> Iterator[Finding]:
    """Yield why an observer with sessions must not be restarted now. Its clients find another server at once. Where
    none serves, their sessions must outlive the restart.

    `timeouts`: of its sessions, in ms; `others`: {other destination server: its mode, None if it does not serve}.
    """
    if not timeouts or "observer" in others.values():
        return
    planned = plan(timeouts, znodes, 0)
    if planned.start_s + RECONNECT_S > planned.budget_s:
        seen = (
            format_names([f"{server} is {mode or 'down'}" for server, mode in sorted(others.items())])
            or "none is known"
        )
        yield Finding(
            f"{len(timeouts)} sessions live on this server, and no other destination server serves as an observer: "
            f"{seen}. A restart takes about {planned.start_s + RECONNECT_S:.0f} s, and the shortest session timeout is "
            f"{planned.timeout_ms} ms (QS-ZKMOVE-001)",
            "start another destination server, and run again",
        )


def check_length(planned: Plan) -> Iterator[Finding]:
    """Yield why the cut would outlast the sessions."""
    if planned.estimate_s > planned.budget_s:
        needed = int(planned.estimate_s / BUDGET * 1000) + 1000
        yield Finding(
            f"the cut takes about {planned.estimate_s:.1f} s, and the shortest session timeout is "
            f"{planned.timeout_ms} ms: two thirds of it are {planned.budget_s:.1f} s (QS-ZKMOVE-011)",
            f"set zookeeper.session.timeout.ms={needed} on all brokers, restart them, and run again",
        )


class Check(NamedTuple):
    """The verdict of a check. `first`: the hosts that start first, a bare majority with the most advanced; `problems`:
    why no host is promoted; `notes`: what is no problem."""

    first: List[str]
    problems: List[str]
    notes: List[str]


def choose_first(by_progress: Sequence[str], last: Mapping[str, int], voters: int) -> List[str]:
    """Return which hosts start first. Where all are at the same zxid, all. Otherwise the most advanced ones that are
    just a majority of the ensemble's voters: none of their elections ends without the most advanced, which so wins
    it."""
    if len(set(last.values())) == 1:
        return list(by_progress)
    return list(by_progress[: voters // 2 + 1])


def check_promotable(hosts: Mapping[str, Mapping], expected: Sequence[str]) -> List[str]:
    """Return why no destination host may be promoted, by the state that each returned from its cut."""
    problems = []
    for host in expected:
        answer = hosts.get(host) or {}
        if answer.get("state") != CUT:
            problems.append(
                f"{host} is {answer.get('state') or 'unknown'}: {answer.get('reason') or 'it did not answer'}"
            )
    return problems


def find_unreachable_brokers(hosts: Mapping[str, Mapping]) -> Dict[str, List[str]]:
    """Return {broker's address: destination hosts that reached it before the cut, and not since}."""
    found: Dict[str, List[str]] = {}
    for host, answer in hosts.items():
        for address in answer.get("brokers_lost") or ():
            found.setdefault(address, []).append(host)
    return found


def find_unwatched_brokers(hosts: Mapping[str, Mapping], brokers: Iterable[str]) -> List[str]:
    """Return the brokers that no destination host reached before the cut."""
    watched = {address for answer in hosts.values() for address in answer.get("brokers_watched") or ()}
    return sorted(set(brokers) - watched)


def find_leftovers(host: str, state: str, rules: int, works: bool) -> Iterator[Finding]:
    """Yield what an earlier run left on a host. `rules`: how many rules of the cut it has; `works`: whether its worker
    runs."""
    if state in UNDONE_BY_ITSELF and works:
        yield Finding(
            f"a cut is under way on {host} (state {state}) (QS-ZKMOVE-011)", "wait until it ends, and run again"
        )
    elif rules and not works and state not in ACCEPTED:
        yield Finding(
            f"{host} has {rules} firewall rules of an earlier cut (QS-ZKMOVE-011)",
            "run quorumshift.kafka.zk_migrate again: it removes them",
        )


def count_followers(mntr: str) -> int:
    """Return how many voters follow this leader in sync, from the answer to `mntr`."""
    match = re.search(r"^zk_synced_followers\s+(\d+)", mntr, re.MULTILINE)
    return int(match[1]) if match else 0


def is_leader(mntr: str) -> bool:
    """Return whether a server leads an ensemble, from its answer to `mntr`."""
    return re.search(r"^zk_server_state\s+leader\s*$", mntr, re.MULTILINE) is not None


def count_znodes(mntr: str) -> int:
    """Return how many znodes a server has, from the answer to `mntr`."""
    match = re.search(r"^zk_znode_count\s+(\d+)", mntr, re.MULTILINE)
    return int(match[1]) if match else 0


def peers(destination: Mapping[int, str], myid: int, election: bool = False) -> List[tuple]:
    """Return (host, quorum port or election port) of the other destination servers."""
    found = []
    of = zk_observer.election_address if election else zk_observer.quorum_address
    for number, address in destination.items():
        if number != myid:
            where = parse_host_port(of(zk_observer.Member(address)))
            found.append((where.host, where.port))
    return found


def has_leader(source: Mapping[str, Mapping]) -> bool:
    """Return whether a source server leads. `source`: probes.zookeeper.zk_servers.collect of the source."""
    return any(server["mode"] == "leader" for server in source.values())


def leader_zxid(source: Mapping[str, Mapping]) -> int:
    """Return the zxid that every destination server must have processed. `source`: zookeeper.zk_servers.collect of the
    source. 0 without a leader, and of an ensemble of one that has no transaction since its election."""
    leader = next((server for server in source.values() if server["mode"] == "leader"), None)
    return zk_observer.required_zxid(leader["zxid"] or 0, source) if leader else 0


def check_ready(
    hosts: Mapping[str, Mapping], source: Mapping[str, Mapping], behind: Mapping[str, int | None]
) -> List[Finding]:
    """Return why the destination cannot be cut off now. `hosts`: what each destination host read; `source`:
    zookeeper.zk_servers.collect of the source; `behind`: {server: zxid} of destination servers that do not catch up."""
    found: List[Finding] = []
    if not has_leader(source):
        found.append(
            Finding(
                "none of the source's servers answers as its leader (QS-ZKMOVE-011)", "fix the source, and run again"
            )
        )
    for host, answer in sorted(hosts.items()):
        server = answer["server"]
        found += [Finding(seen, do) for seen, do in answer["problems"]]
        if not server["observes"] or server["mode"] != "observer":
            found.append(
                Finding(
                    f"{host} serves as {server['mode'] or 'nothing'}, not as an observer of the source (QS-ZKMOVE-011)",
                    "run quorumshift.kafka.zk_migrate again: it joins the source",
                )
            )
    for server_, zxid in sorted(behind.items()):
        found.append(
            Finding(
                f"destination server {server_} is at zxid 0x{zxid or 0:x}, and the source's leader was at "
                f"0x{leader_zxid(source):x} before (QS-ZKMOVE-011)",
                "wait until it has caught up, and run again",
            )
        )
    return found


def name_below(chroot: str, owners: Mapping[str, int]) -> Dict[str, int]:
    """Return {path as Kafka's clients name it: session} of {path from the root of the tree: session}, as a server's
    files have it."""
    return {path[len(chroot) :] or "/": int(session) for path, session in owners.items()}


def foreign_sessions(owners: Mapping[str, int], ids: Collection[int]) -> Iterator[Finding]:
    """Yield Kafka's ephemeral znodes whose session was not made by a destination server: of brokers, the controller,
    old consumers. `owners`: {path: session}; `ids`: the destination's myids."""
    for path, session in sorted(owners.items()):
        if zk_sessions.creator_id(session) not in ids:
            yield Finding(
                f"the session of {path} was made by the server with myid {zk_sessions.creator_id(session)}, which is "
                "none of the destination (QS-ZKMOVE-010)",
                "restart that broker or client with the destination's connect string; add a broker to the inventory "
                "if it is not there",
            )


def source_clients(cons: Mapping[str, str], brokers: Iterable[str]) -> Iterator[Finding]:
    """Yield the brokers that are still connected to a source server. `cons`: {server: answer}; `brokers`: their IP
    addresses."""
    for server, answer in sorted(cons.items()):
        found = sorted({client["address"] for client in parse_clients(answer)} & set(map(canonical_address, brokers)))
        if found:
            yield Finding(
                f"source server {server} has connections of broker hosts {format_names(found)} (QS-ZKMOVE-010)",
                "move tools, agents and brokers on these hosts to the destination's connect string",
            )


def other_clients(cons: Mapping[str, str]) -> Iterator[Finding]:
    """Yield source servers that have clients, where Kafka has no chroot: each of their writes is then one of Kafka's
    subtree, which has no bound. `cons`: {server: answer}."""
    for server, answer in sorted(cons.items()):
        found = sorted({client["address"] for client in parse_clients(answer)})
        if found:
            yield Finding(
                f"Kafka has no chroot, so a write of any client counts as Kafka's, and source server {server} has "
                f"clients at {format_names(found)} (QS-ZKMOVE-011)",
                "stop these clients for the cut, or move them to the destination's connect string",
            )
