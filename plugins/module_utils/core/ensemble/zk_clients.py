# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who uses a ZooKeeper ensemble, and whether nothing does any more. Pure.

Sources: the four letter words `cons` (ServerCnxn.dumpConnectionInfo), `dump` (SessionTrackerImpl.dumpSessions,
DataTree.dumpEphemerals) and `srvr` (ServerStats), and the AdminServer's commands `connections` and `dump`
(org.apache.zookeeper.server.admin.Commands).

Three facts about them count here. `cons` lists the connections of one port alone, so a server with a secureClientPort
has more: `srvr` counts those of both. Only the leader knows each session of the ensemble, also one whose client has no
connection now. The creation and the end of a session are transactions: between two readings with the same zxid no
client came or went. What is not known is a finding, as a client is.
"""

from __future__ import annotations

import re
from typing import Any, Collection, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble.ensemble_cut import canonical_address
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble.leftovers import find_leftover
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import confirmation
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import Finding, format_names

BROKER, CONTROLLER, ZOOKEEPER, TOOL, UNKNOWN = "broker", "controller", "zookeeper", "tool", "unknown"
KINDS = (BROKER, CONTROLLER, ZOOKEEPER, TOOL, UNKNOWN)
CONS, ADMIN_SERVER = "cons", "AdminServer"

KAFKA_NAMES = frozenset(
    (
        *("admin", "brokers", "cluster", "config", "consumers", "controller", "controller_epoch", "feature"),
        *("isr_change_notification", "latest_producer_id_block", "log_dir_event_notification", "migration"),
        *("delegation_token", "kafka-acl", "kafka-acl-changes", "kafka-acl-extended", "kafka-acl-extended-changes"),
    )
)
"""The znodes that Kafka creates at its chroot (kafka.zk.ZkData)."""


class Connection(NamedTuple):
    """A connection to a server's client port. `session`: 0 without one, as of a four letter word; `established`: when,
    in epoch seconds, None where the source does not say."""

    address: str
    port: int
    session: int = 0
    timeout_ms: int = 0
    last_operation: str = ""
    received: int = 0
    sent: int = 0
    established: float | None = None


class Server(NamedTuple):
    """What a server says of its connections. `source`: CONS, ADMIN_SERVER, "" for none; `connections`: None where it
    says nothing; `unlisted`: how many connections it has that its list lacks; `unreadable`: how many entries of the
    list could not be read; `addresses`: its own, in their shortest form; `is_stopped`: its host proves that it is down;
    `serves`: False where it answers that it has no quorum; `error`: why something is not known."""

    mode: str | None = None
    zxid: int | None = None
    source: str = ""
    connections: Sequence[Connection] | None = None
    unlisted: int = 0
    unreadable: int = 0
    addresses: Sequence[str] = ()
    is_stopped: bool = False
    serves: bool = True
    error: str = ""


class Sessions(NamedTuple):
    """All sessions of the ensemble, as its leader has them: {session: its ephemeral znodes}. `number`: how many
    there are, where the leader only counts them, else None; `error`: why they are not known."""

    owned: Mapping[int, Sequence[str]]
    error: str = ""
    number: int | None = None


class Reading(NamedTuple):
    """One reading of the ensemble: {"host:port": Server}, and the sessions; `time`: when it began, epoch seconds."""

    servers: Mapping[str, Server]
    sessions: Sessions
    time: float = 0.0


class Known(NamedTuple):
    """Whose addresses are known, {address: names}, and the sessions of this tool."""

    brokers: Mapping[str, Sequence[str]]
    controllers: Mapping[str, Sequence[str]]
    own: Collection[int] = ()


class Client(NamedTuple):
    """A client of the ensemble. `name`: of its host, or of the broker whose znode it owns; `address`: "" for a session
    without a connection; `paths`: the ephemeral znodes of its session."""

    kind: str
    name: str
    address: str
    port: int
    server: str
    session: int
    timeout_ms: int
    last_operation: str
    received: int
    sent: int
    established: float | None
    paths: Sequence[str]

    def facts(self) -> dict:
        """Return the client as a module returns it."""
        return {**self._asdict(), "session": format_session(self.session), "paths": list(self.paths)}


class Subtree(NamedTuple):
    """A part of the tree that is not of this cluster. `changed`: when a znode in it changed last, epoch seconds."""

    path: str
    znodes: int
    bytes: int = 0
    changed: float = 0.0


_ENTRY = re.compile(r"^ [^/\s]*/\[?(?P<address>[0-9a-fA-F.:]+)(?:%\w+)?\]?:(?P<port>\d+)\[\w+\]\((?P<values>.*)\)$")
_COUNT = re.compile(r"^Connections: (\d+)", re.MULTILINE)
_GLOBAL_SESSIONS = re.compile(r"^zk_global_sessions\t(\d+)$", re.MULTILINE)
_SESSION = re.compile(r"^\t?0x([0-9a-f]+):?$")


def parse_cons(answer: str) -> Tuple[List[Connection], int]:
    """Return the connections in the answer to `cons`, and how many of its lines could not be read."""
    found, unreadable = [], 0
    for line in answer.splitlines():
        if not line.strip():
            continue
        match = _ENTRY.match(line)
        if match is None:
            unreadable += 1
            continue
        values = dict(pair.partition("=")[::2] for pair in match["values"].split(","))
        try:
            found.append(
                Connection(
                    canonical_address(match["address"]),
                    int(match["port"]),
                    int(values.get("sid", "0x0"), 16),
                    int(values.get("to", 0)),
                    values.get("lop", ""),
                    int(values.get("recved", 0)),
                    int(values.get("sent", 0)),
                    int(values["est"]) / 1000 if "est" in values else None,
                )
            )
        except ValueError:
            unreadable += 1
    return found, unreadable


def parse_connections(answer: Mapping[str, Any]) -> Tuple[List[Connection], int]:
    """Return the connections in the AdminServer's answer to `connections`, of both ports, and how many of them could
    not be read. Raises KeyError where it is no such answer."""
    found, unreadable = [], 0
    for entry in [*answer["connections"], *(answer.get("secure_connections") or [])]:
        try:
            host, port = str(entry["remote_socket_address"]).rpartition("/")[2].rsplit(":", 1)
            established = entry.get("established")
            found.append(
                Connection(
                    canonical_address(host.strip("[]")),
                    int(port),
                    int(entry.get("session_id") or 0) & _UNSIGNED,
                    int(entry.get("session_timeout") or 0) if entry.get("session_id") else 0,
                    entry.get("last_operation") or "",
                    int(entry.get("packets_received") or 0),
                    int(entry.get("packets_sent") or 0),
                    established / 1000 if isinstance(established, (int, float)) else None,
                )
            )
        except (KeyError, TypeError, ValueError):
            unreadable += 1
    return found, unreadable


_UNSIGNED = (1 << 64) - 1


def parse_count(srvr: str) -> int | None:
    """Return how many connections a server has at its client ports, from its answer to `srvr`; None without it. That of
    the question is one of them."""
    match = _COUNT.search(srvr)
    return int(match[1]) if match else None


def parse_sessions(mntr: str) -> int | None:
    """Return how many sessions the ensemble has, from its leader's answer to `mntr` (3.6 and later), or None."""
    match = _GLOBAL_SESSIONS.search(mntr)
    return int(match[1]) if match else None


def parse_dump(answer: str) -> Dict[int, List[str]] | None:
    """Return {session: its ephemeral znodes} in the answer to `dump`, None where it lists no sessions: a follower's
    does not."""
    if "SessionTracker dump:" not in answer or "Session Sets" not in answer:
        return None
    tracked, _ephemerals, rest = answer.partition("ephemeral nodes dump:")
    sessions: Dict[int, List[str]] = {}
    for line in tracked.splitlines():
        match = _SESSION.match(line)
        if match:
            sessions[int(match[1], 16)] = []
    owner = None
    for line in rest.partition("Connections dump:")[0].splitlines():
        match = _SESSION.match(line)
        if match and line.endswith(":"):
            owner = int(match[1], 16)
            sessions.setdefault(owner, [])
        elif owner is not None and line.startswith("\t"):
            sessions[owner].append(line[1:])
    return sessions


def parse_admin_dump(answer: Mapping[str, Any]) -> Dict[int, List[str]]:
    """Return the same from the AdminServer's answer to `dump`. Raises KeyError, TypeError, ValueError where it is no
    such answer."""
    sessions: Dict[int, List[str]] = {}
    for ids in answer["expiry_time_to_session_ids"].values():
        sessions.update({int(session) & _UNSIGNED: [] for session in ids})
    for session, paths in answer["session_id_to_ephemeral_paths"].items():
        sessions[int(session) & _UNSIGNED] = sorted(paths)
    return sessions


def drop_own(connections: Sequence[Connection], port: int) -> List[Connection]:
    """Return the connections in a server's answer to `cons` without that of the question itself, which came from this
    local port. Behind a translation of addresses it has another one, and is a connection with one request and no
    session."""
    own = next((at for at, found in enumerate(connections) if found.port == port and not found.session), None)
    if own is None:
        own = next(
            (
                at
                for at, found in enumerate(connections)
                if not found.session and (found.received, found.sent) == (1, 0)
            ),
            None,
        )
    return [found for at, found in enumerate(connections) if at != own]


def find_clients(reading: Reading, known: Known, chroot: str) -> List[Client]:
    """Return the clients of a reading: one for each connection, and for each session without one."""
    found, connected = [], set()
    for name, server in sorted(reading.servers.items()):
        for connection in server.connections or ():
            connected.add(connection.session)
            paths = reading.sessions.owned.get(connection.session, ())
            kind, whose = _classify(connection, paths, name, server, known, chroot)
            found.append(
                Client(
                    kind,
                    whose,
                    connection.address,
                    connection.port,
                    name,
                    connection.session,
                    connection.timeout_ms,
                    connection.last_operation,
                    connection.received,
                    connection.sent,
                    connection.established,
                    paths,
                )
            )
    for session, paths in sorted(reading.sessions.owned.items()):
        if session not in connected:
            kind, whose = (TOOL, "") if session in known.own else _owner(paths, chroot) or (UNKNOWN, "")
            found.append(Client(kind, whose, "", 0, "", session, 0, "", 0, 0, None, paths))
    return sorted(found, key=lambda client: (KINDS.index(client.kind), client.name, client.address, client.port))


def _classify(
    connection: Connection, paths: Sequence[str], name: str, server: Server, known: Known, chroot: str
) -> Tuple[str, str]:
    """Return (kind, name of the host or broker). What a session owns says more than its address does."""
    if connection.session and connection.session in known.own:
        return TOOL, ""
    owner = _owner(paths, chroot)
    if owner:
        return owner
    for kind, names in ((BROKER, known.brokers), (CONTROLLER, known.controllers)):
        if connection.address in names:
            return kind, format_names(names[connection.address])
    if connection.address in server.addresses or connection.address in ("127.0.0.1", "::1"):
        return ZOOKEEPER, f"host of {name}"
    return UNKNOWN, ""


def name_servers(servers: Mapping[str, Server], clients: Iterable[Client]) -> List[Client]:
    """Return the clients, those that come from another server's host with its name."""
    hosts = {address: name for name, server in sorted(servers.items()) for address in server.addresses}
    return [
        client._replace(kind=ZOOKEEPER, name=f"host of {hosts[client.address]}")
        if client.kind == UNKNOWN and client.address in hosts
        else client
        for client in clients
    ]


def _owner(paths: Sequence[str], chroot: str) -> Tuple[str, str] | None:
    for path in paths:
        match = re.fullmatch(rf"{re.escape(chroot)}/brokers/ids/(-?\d+)", path)
        if match:
            return BROKER, f"broker {match[1]}"
    return None


def find_others(paths: Iterable[str], chroot: str) -> List[str]:
    """Return the topmost paths that are neither Kafka's nor ZooKeeper's own: beside the chroot, on the way to it, and
    below it, where another application has a chroot of its own."""
    found = set()
    for path in paths:
        top = find_leftover(path, chroot) if chroot else None
        if top is None and path.startswith(f"{chroot}/"):
            name = path[len(chroot) + 1 :].split("/")[0]
            is_own = name in KAFKA_NAMES or (not chroot and name == "zookeeper")
            top = None if is_own or not name else f"{chroot}/{name}"
        if top:
            found.add(top)
    return sorted(found)


def check_known(
    reading: Reading, members: Collection[int], creators: Mapping[str, int | None], lost_quorum: bool = False
) -> Iterator[Finding]:
    """Yield what is not known of the ensemble's clients. `members`: the ids in the ensemble's configuration, empty
    where it names none, as that of a standalone server; `creators`: {"host:port": the server's id, None if unknown};
    `lost_quorum`: has_lost_quorum."""
    for name, server in sorted(reading.servers.items()):
        if server.is_stopped:
            continue
        if not server.serves:
            if not lost_quorum:
                yield Finding(
                    f"{name} does not serve, so its clients are not known (QS-ZKSTOP-002)",
                    "start the servers of the ensemble, and run again",
                )
        elif server.connections is None:
            yield Finding(
                f"the clients of {name} are not known: {server.error} (QS-ZKSTOP-002)",
                "start the server, allow cons in its 4lw.commands.whitelist, or start its AdminServer, and run again",
            )
        elif server.unlisted or server.unreadable:
            yield Finding(
                f"{name} has {server.unlisted + server.unreadable} connections that it does not list "
                f"({server.error or 'they could not be read'}) (QS-ZKSTOP-002)",
                "start its AdminServer, which lists those of both client ports, and run again",
            )
    serving = [server for server in reading.servers.values() if server.serves and server.connections is not None]
    if serving and all(server.zxid is None for server in serving):
        yield Finding(
            "no server says its last zxid, so a client that came and went between two readings is not seen "
            "(QS-ZKSTOP-002)",
            "allow srvr in the servers' 4lw.commands.whitelist, and run again",
        )
    missing = sorted(set(members) - {number for number in creators.values() if number is not None})
    unknown = sorted(
        name for name, number in creators.items() if number is None and not reading.servers[name].is_stopped
    )
    if missing and not lost_quorum:
        seen = f"server {format_names([str(number) for number in missing])} of the ensemble was not asked"
        yield Finding(
            f"{seen}: its id is that of no server in the connect string"
            + (f", and the id of {format_names(unknown)} is unknown" if unknown else "")
            + " (QS-ZKSTOP-002)",
            "name each server of the ensemble, observers too, in quorumshift_zookeeper_connect",
        )
    if reading.sessions.error and not lost_quorum:
        yield Finding(
            f"the sessions of the ensemble are not known: {reading.sessions.error} (QS-ZKSTOP-002)",
            "allow dump or mntr in the 4lw.commands.whitelist of the leader, or start its AdminServer, and run again",
        )
    connected = {found.session for server in reading.servers.values() for found in server.connections or ()} - {0}
    unseen = (reading.sessions.number or 0) - len(connected)
    if unseen > 0:
        yield Finding(
            f"{unseen} sessions of the ensemble have no connection that a server lists (QS-ZKSTOP-003)",
            "allow dump in the 4lw.commands.whitelist of the leader to see them, or wait until they end, and run again",
        )


def has_lost_quorum(stopped: Mapping[str, int], voters: Collection[int], servers: int) -> bool:
    """Return whether so many voters are proved to be stopped that the others cannot serve any more. `stopped`:
    {"host:port": its id}; `voters`: their ids, empty where they are unknown: then each of the `servers` is one."""
    down = len(set(voters) & set(stopped.values())) if voters else len(stopped)
    number = len(voters) or servers
    return down > 0 and 2 * (number - down) <= number


def check_unused(
    readings: Sequence[Sequence[Client]],
    zxids: Sequence[int | None],
    others: Iterable[Subtree],
    accepted: Iterable[str],
) -> Iterator[Finding]:
    """Yield what still uses the ensemble: each client of one of the readings, what happened between them, and parts of
    the tree that are not accepted. `zxids`: the last one of the ensemble in each reading, None where none serves."""
    seen: Dict[Tuple[str, str, str], List[Client]] = {}
    for clients in readings:
        for client in clients:
            if client.kind != TOOL:
                seen.setdefault((client.kind, client.name, client.address), []).append(client)
    for (_kind, _name, _address), clients in sorted(seen.items()):
        yield Finding(f"{describe(clients)} (QS-ZKSTOP-003)", _ADVICE[clients[0].kind])
    known = [zxid for zxid in zxids if zxid is not None]
    if len(set(known)) > 1:
        yield Finding(
            f"the ensemble's zxid went from 0x{known[0]:x} to 0x{known[-1]:x} between the readings: a session began or "
            "ended, a client wrote, or the servers elected a leader (QS-ZKSTOP-003)",
            "find the client: its host is in the log of a server, as `Session establishment request`. Then run again",
        )
    wanted = {"/" + path.strip("/") for path in accepted}
    for other in others:
        if other.path not in wanted:
            yield Finding(
                f"{other.path} is not of this cluster: {other.znodes} znodes, {other.bytes} bytes (QS-ZKSTOP-004)",
                f"move the application that has it to another ensemble. If nothing needs it, accept that with "
                f"-e decommission_accept_paths={other.path}",
            )


_ADVICE = {
    BROKER: "find the process on the broker's host with `ss -tnp`. A broker in KRaft mode does not use ZooKeeper: "
    "remove zookeeper.connect from its configuration, and stop tools that use it",
    CONTROLLER: "find the process on the controller's host with `ss -tnp`. After the finalization a controller does "
    "not use ZooKeeper: restart it if it still does",
    ZOOKEEPER: "find the process on that host with `ss -tnp`: a shell, or a monitoring agent",
    UNKNOWN: "find the process on its host with `ss -tnp`, and give it the brokers' address in place of ZooKeeper's: "
    "an old consumer, a tool with --zookeeper, Kafka Connect, monitoring, or another product",
}


def describe(clients: Sequence[Client]) -> str:
    """Return who the clients of one address are, without a full stop."""
    first = clients[0]
    sessions = sorted({format_session(client.session) for client in clients if client.session})
    servers = sorted({client.server for client in clients if client.server})
    paths = sorted({path for client in clients for path in client.paths})
    operations = sorted({client.last_operation for client in clients if client.last_operation not in ("", "NA")})
    where = f" from {first.address}" if first.address else " without a connection now"
    whose = f" ({first.kind}{f', {first.name}' if first.name else ''})"
    shown = [
        f"{'session' if len(sessions) == 1 else 'sessions'} {format_names(sessions)}" if sessions else "no session",
        f"at {format_names(servers)}" if servers else "",
        f"last operation {format_names(operations)}" if operations else "",
        f"owns {format_names(paths)}" if paths else "",
    ]
    return f"a client{where}{whose}: {', '.join(part for part in shown if part)}"


def table(clients: Sequence[Client]) -> List[str]:
    """Return a line for each address that uses the ensemble, for the operator."""
    groups: Dict[Tuple[str, str, str], List[Client]] = {}
    for client in clients:
        if client.kind != TOOL:
            groups.setdefault((client.kind, client.name, client.address), []).append(client)
    order = sorted(groups.items(), key=lambda item: (KINDS.index(item[0][0]), *item[0]))
    return [describe(group) for _key, group in order]


def format_session(session: int) -> str:
    """Return a session id as ZooKeeper's logs show it, "" for none."""
    return f"0x{session & _UNSIGNED:x}" if session else ""


def token(cluster_id: str, archives: Mapping[str, str], accepted: Iterable[str]) -> str:
    """Return the confirmation token of the decommission: of the cluster, of the archive of each server (its SHA-256),
    and of what is accepted. Data that changed since give another archive, so another token."""
    paths = sorted({"/" + path.strip("/") for path in accepted})
    return confirmation.make_token(cluster_id, sorted(archives.items()), paths)
