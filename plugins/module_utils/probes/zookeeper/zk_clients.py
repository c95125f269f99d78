# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read from each server of a ZooKeeper ensemble who is connected to it, and from its leader all sessions. Read-only.

The four letter words open no session, so that they do not change what they read. Where a server does not allow `cons`
or `dump`, or has a second client port, its AdminServer is asked (org.apache.zookeeper.server.admin.Commands). The
AdminServer is plain HTTP without a login by default.
"""

from __future__ import annotations

import http.client
import json
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, Collection, Dict, Iterable, List, Mapping, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import zk_clients, zk_observer
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble.ensemble_cut import canonical_address
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble.zk_clients import (
    Reading,
    Server,
    Sessions,
    Subtree,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.host import tcp_connections
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zk_servers, zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import zk_wire
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import ProtocolError, WireError

CONFIG = "/zookeeper/config"
ADMIN_PORT = 8080  # admin.serverPort
_ATTEMPTS = 3  # a client that comes or goes between two questions is counted and not listed, or the other way round
_LARGEST_ANSWER = 64 << 20
_MOST_ZNODES = 10000
_WINDOW, _READ_RATE = 50, 2000.0  # the ensemble may serve others


class AdminServerError(Exception):
    """An AdminServer gives no answer that can be used; the text says why."""


class Asked:
    """How the servers are asked. `context`: an SSLContext, None for plain ports; `timeout` in seconds for each
    question; `admin_port`: of the AdminServers, 0 for none."""

    def __init__(self, context: Any = None, timeout: float = 5.0, admin_port: int = ADMIN_PORT) -> None:
        self.context, self.timeout, self.admin_port = context, timeout, admin_port

    def word(self, server: HostPort, word: str) -> Tuple[str, Tuple[str, int]]:
        """Return the answer to a four letter word, and the local address of the question. Raises WireError."""
        return zk_wire.four_letter_from(server, word, self.timeout, self.context)

    def command(self, server: HostPort, command: str) -> Dict[str, Any]:
        """Return an AdminServer's answer to a command. Raises AdminServerError."""
        if not self.admin_port:
            raise AdminServerError("no AdminServer was asked (QS-ZKSTOP-002)")
        where = f"the AdminServer at {HostPort(server.host, self.admin_port)}"
        connection = http.client.HTTPConnection(server.host, self.admin_port, timeout=self.timeout)
        try:
            connection.request("GET", f"/commands/{command}")
            answer = connection.getresponse()
            body = self._read_body(answer)
            if answer.status != http.client.OK:
                raise AdminServerError(f"{where} answers {command} with status {answer.status} (QS-ZKSTOP-002)")
            found = json.loads(body)
        except (OSError, http.client.HTTPException, ValueError) as error:
            why = str(error) or type(error).__name__
            raise AdminServerError(f"{where} gives no answer to {command}: {why} (QS-ZKSTOP-002)") from None
        finally:
            connection.close()
        if not isinstance(found, dict) or found.get("command") != command:
            raise AdminServerError(
                f"what answers at {HostPort(server.host, self.admin_port)} is no AdminServer (QS-ZKSTOP-002)"
            )
        if found.get("error"):
            raise AdminServerError(f"{where} answers {command} with: {found['error']} (QS-ZKSTOP-002)")
        return found

    def _read_body(self, answer: http.client.HTTPResponse) -> bytes:
        """Return the body of an answer. A server that sends it drop by drop is one that does not answer."""
        end, size = time.monotonic() + 4 * self.timeout, 0
        parts: List[bytes] = []
        while True:
            part = answer.read1(1 << 16)
            if not part:
                return b"".join(parts)
            parts.append(part)
            size += len(part)
            if size > _LARGEST_ANSWER or time.monotonic() > end:
                raise TimeoutError("the answer has no end (QS-ZKSTOP-002)")

    def own_command(self, server: HostPort, command: str) -> Dict[str, Any]:
        """Return the same, once the AdminServer has proved to be of the server with this client port: another server of
        the host may have the port. Raises AdminServerError."""
        settings = self.command(server, "configuration")
        ports = [settings.get(name) for name in ("client_port", "secure_client_port")]
        if server.port not in ports:
            raise AdminServerError(
                f"the AdminServer at {HostPort(server.host, self.admin_port)} is of the server with client port "
                f"{ports[0]}, not of {server} (QS-ZKSTOP-002)"
            )
        return self.command(server, command)


def read(servers: Iterable[HostPort], asked: Asked, stopped: Collection[str] = ()) -> Reading:
    """Return one reading of the ensemble; all servers are asked in parallel. `stopped`: those whose hosts prove that
    they are stopped, as "host:port", which are not asked."""
    targets = list(servers)
    began = time.time()
    with ThreadPoolExecutor(max_workers=min(16, len(targets) or 1)) as pool:
        answers = pool.map(lambda server: _read_server(server, asked, str(server) in stopped), targets)
        found = dict(zip(map(str, targets), answers))
    return Reading(found, _read_sessions(targets, found, asked), began)


def _read_server(server: HostPort, asked: Asked, is_stopped: bool) -> Server:
    known = Server(addresses=_resolve(server), is_stopped=is_stopped)
    if is_stopped:
        return known
    error = ""
    try:
        known = _read_by_words(server, asked, known)
        if not known.unlisted and not known.unreadable:
            return known
        error = "it may have a second client port, whose connections cons does not list"
    except zk_wire.NotServing:
        return known._replace(serves=False)
    except ProtocolError as forbidden:
        error = str(forbidden)
    except WireError as unreachable:
        return known._replace(error=str(unreachable))
    try:
        return _read_by_admin_server(server, asked, known)
    except AdminServerError as no_answer:
        return known._replace(error=f"{error}; {no_answer}")


def _read_by_words(server: HostPort, asked: Asked, known: Server) -> Server:
    """Return the server with its connections by `cons`, and how many more `srvr` counts. Raises WireError."""
    best = _ask_words(server, asked, known)
    for _attempt in range(_ATTEMPTS - 1):
        if not best.unlisted and not best.unreadable:
            break
        found = _ask_words(server, asked, known)
        best = min(best, found, key=lambda each: each.unlisted + each.unreadable)
    return best


def _ask_words(server: HostPort, asked: Asked, known: Server) -> Server:
    status, _local = asked.word(server, "srvr")
    answer, local = asked.word(server, "cons")
    listed, unreadable = zk_clients.parse_cons(answer)
    counted = zk_clients.parse_count(status)
    if counted is None:
        raise ProtocolError(server, "srvr does not count connections (QS-CONNECT-005)")
    mode, zxid = zk_servers.parse_mode(status)
    return known._replace(
        mode=mode,
        zxid=zxid,
        source=zk_clients.CONS,
        connections=zk_clients.drop_own(listed, local[1]),
        # Both have the connection of their own question
        unlisted=max(0, counted - len(listed) - unreadable),
        unreadable=unreadable,
    )


def _read_by_admin_server(server: HostPort, asked: Asked, known: Server) -> Server:
    """Return the server with its connections by its AdminServer. Raises AdminServerError."""
    try:
        connections, unreadable = zk_clients.parse_connections(asked.own_command(server, "connections"))
        stats = asked.command(server, "stats").get("server_stats") or {}
        zxid = stats.get("last_processed_zxid")
    except (AttributeError, KeyError, TypeError) as error:
        why = f"{type(error).__name__} {error}"
        raise AdminServerError(f"its answer cannot be read: {why} (QS-ZKSTOP-002)") from None
    return known._replace(
        mode=known.mode or stats.get("server_state"),
        zxid=known.zxid if known.zxid is not None else zxid,
        source=zk_clients.ADMIN_SERVER,
        connections=connections,
        unlisted=0,
        unreadable=unreadable,
    )


def _read_sessions(servers: Iterable[HostPort], found: Mapping[str, Server], asked: Asked) -> Sessions:
    leaders = [server for server in servers if found[str(server)].mode in ("leader", "standalone")]
    if len(leaders) != 1:
        many = f"{len(leaders)} servers say that they lead" if leaders else "no server says that it leads"
        return Sessions({}, many)
    leader, errors = leaders[0], []
    try:
        owned = zk_clients.parse_dump(asked.word(leader, "dump")[0])
        if owned is not None:
            return Sessions(owned)
        errors.append(f"the answer of {leader} to dump lists none")
    except WireError as error:
        errors.append(str(error))
    try:
        return Sessions(zk_clients.parse_admin_dump(asked.own_command(leader, "dump")))
    except AdminServerError as error:
        errors.append(str(error))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        errors.append(f"its AdminServer's answer to dump cannot be read: {type(error).__name__}")
    try:
        number = zk_clients.parse_sessions(asked.word(leader, "mntr")[0])
    except WireError as error:
        errors.append(str(error))
    else:
        if number is not None:
            return Sessions({}, number=number)
        errors.append(f"the answer of {leader} to mntr counts none")
    return Sessions({}, "; ".join(errors))


def _resolve(server: HostPort) -> List[str]:
    try:
        return sorted({canonical_address(address) for address, _port in tcp_connections.resolve(*server)})
    except (OSError, UnicodeError):
        return []


def resolve_hosts(hosts: Mapping[str, str]) -> Dict[str, List[str]]:
    """Return {IP address: names} of {name: address or host name}; a name that cannot be resolved is left out, so its
    clients stay unknown."""
    found: Dict[str, List[str]] = {}
    for name, host in sorted(hosts.items()):
        for address in _resolve(HostPort(host, 0)):
            found.setdefault(address, []).append(name)
    return found


def read_members(client: Any, timeout: float) -> List[int]:
    """Return the ids of the servers in /zookeeper/config, [] where it names none, as that of a standalone server.
    `client`: of kazoo, at the root. Raises ZooKeeperError."""
    data = next(iter(node for node in zookeeper.Reader(client, timeout=timeout).get_many([CONFIG])), None)
    text = (data.data if data is not None else b"") or b""
    return sorted(zk_observer.parse_ensemble(properties.parse(text)).members)


def read_others(client: Any, chroot: str, timeout: float) -> List[Subtree]:
    """Return the parts of the tree that are not Kafka's. `client`: of kazoo, at the root. Raises ZooKeeperError."""
    reader = zookeeper.Reader(client, _WINDOW, _READ_RATE, timeout)
    reader.zxid()  # a follower may be behind
    names = chroot.strip("/").split("/") if chroot else []
    above = ["/", *("/" + "/".join(names[:depth]) for depth in range(1, len(names) + 1))]
    paths = zookeeper.child_paths(reader, above)
    tops = zk_clients.find_others([path.replace("//", "/") for path in paths], chroot)
    return [_measure(reader, top) for top in tops]


def _measure(reader: Any, top: str) -> Subtree:
    try:
        nodes = list(islice(reader.tree(top), _MOST_ZNODES))
    except zookeeper.ZooKeeperDenied:
        return Subtree(top, 0)
    changed = max((node.stat.mtime for node in nodes), default=0) / 1000
    return Subtree(top, len(nodes), sum(len(node.data or b"") for node in nodes), changed)
