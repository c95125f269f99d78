# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read ZooKeeper from the probe host with kazoo, pipelined.

Every request has a timeout; nothing here writes. Paths are relative to the chroot of the connect string.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import socket
import time
import warnings
from collections import deque

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import zk_metadata
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zk_kerberos
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import addresses

try:
    from kazoo import exceptions as kazoo_exceptions
    from kazoo.client import KazooClient
    from kazoo.handlers.threading import KazooTimeoutError

    KAZOO_IMPORT_ERROR = None
except ImportError as import_error:  # pragma: no cover
    KAZOO_IMPORT_ERROR = import_error


class ZooKeeperError(Exception):
    """ZooKeeper cannot be read; the message names the servers or the path, and the reason."""


class ZooKeeperUnreachable(ZooKeeperError):
    """No session was established within the timeout."""


class ZooKeeperDenied(ZooKeeperError):
    """The client's identity may not read a path."""


class ZooKeeperMissing(ZooKeeperError):
    """The chroot does not exist."""


class _LastWarnings(logging.Handler):
    """Keep kazoo's last warnings about a failed connection, for the error's text."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.last = deque(maxlen=3)

    def emit(self, record):
        self.last.append(record.getMessage())


@contextlib.contextmanager
def connect(servers, timeout=15.0, **kazoo_options):
    """Yield a started kazoo client and stop it at the end.

    :arg servers: connect string, ``host:port,host:port/chroot``.
    :arg timeout: seconds until the session must be established; also the requested session timeout.
    :arg kazoo_options: further options of KazooClient (``ZkSecurity.kazoo()``).
    :raises ZooKeeperUnreachable: no session in time; names for each server whether it refuses, hangs, or serves.
    :raises ZooKeeperMissing: the chroot does not exist.
    :raises ZooKeeperDenied: the root may not be read.
    """
    if KAZOO_IMPORT_ERROR is not None:
        raise ZooKeeperError(f"the Python package kazoo is missing on this host: {KAZOO_IMPORT_ERROR} (QS-CONNECT-009)")
    sasl = kazoo_options.get("sasl_options")
    failures = _prepare_sasl(sasl)
    warned = _LastWarnings()
    # A separate logger keeps kazoo's warnings out of the module's stderr.
    logger = logging.Logger("quorumshift.kazoo", logging.WARNING)
    logger.addHandler(warned)
    client = KazooClient(
        hosts=str(servers),
        timeout=timeout,
        logger=logger,
        connection_retry={"max_tries": -1, "delay": 0.1, "max_delay": 1.0},
        **kazoo_options,
    )
    try:
        try:
            with warnings.catch_warnings():
                # kazoo only warns of a missing chroot, which is checked below.
                warnings.simplefilter("ignore")
                client.start(timeout=timeout)
        except KazooTimeoutError:
            raise ZooKeeperUnreachable(
                _unreachable(str(servers), timeout, warned.last, kazoo_options.get("use_ssl"))
            ) from None
        except kazoo_exceptions.KazooException as error:
            raise ZooKeeperUnreachable(f"no ZooKeeper session at {servers}: {_text(error)} (QS-CONNECT-005)") from error
        # A session is there before its login, which alone a request shows.
        if (client.chroot or sasl) and _root(client, timeout, failures) is None:
            raise ZooKeeperMissing(
                f"{client.chroot} does not exist in ZooKeeper at {servers}: check the chroot (QS-CONNECT-005)"
            )
        yield client
    finally:
        client.stop()
        client.close()


def servers_of(client):
    """Return the connect string of a client, with its chroot."""
    return ",".join(f"{host}:{port}" for host, port in client.hosts) + client.chroot


def _root(client, timeout, failures):
    try:
        return Reader(client, timeout=timeout).stat("/")
    except ZooKeeperError as error:
        if not failures:
            raise
        raise ZooKeeperUnreachable(
            f"no login at ZooKeeper {servers_of(client)}: {failures[-1]} (QS-CONNECT-005)"
        ) from error


def _prepare_sasl(options):
    """Return a list that gets why logins fail. Raise ZooKeeperError if a package is missing: kazoo imports it in a
    thread, so the client would only time out."""
    if options is None:
        return []
    if importlib.util.find_spec("puresasl") is None:
        raise ZooKeeperError(
            "the Python package pure-sasl is missing on this host: kazoo needs it for SASL (QS-CONNECT-009)"
        )
    return zk_kerberos.register() if options["mechanism"] == "GSSAPI" else []


def _unreachable(servers, timeout, warnings_seen, use_ssl):
    probed = [f"{server} {_probed(server, use_ssl)}" for server in addresses.parse_zookeeper_connect(servers).servers]
    last = f" (last warning of kazoo: {warnings_seen[-1]}) (QS-CONNECT-005)" if warnings_seen else ""
    return f"no ZooKeeper session within {timeout:g} s: {'; '.join(probed)}{last} (QS-CONNECT-005)"


def _probed(server, use_ssl):
    """Return how one server answers a plain TCP connection, as a clause."""
    try:
        with socket.create_connection((server.host, server.port), timeout=2.0) as connection:
            if use_ssl:
                return "accepts TCP connections: check the TLS and SASL options (QS-CONNECT-005)"
            connection.settimeout(2.0)
            connection.sendall(b"srvr")
            answer = connection.recv(4096).decode("ascii", "replace")
    except socket.timeout:
        return "does not answer (QS-CONNECT-005)"
    except OSError as error:
        return f"cannot be reached ({error.strerror or error}) (QS-CONNECT-005)"
    if "not currently serving" in answer:
        return "runs but does not serve: its ensemble has no quorum (QS-CONNECT-005)"
    if "Mode:" in answer:
        return "serves: check the SASL options and maxClientCnxns (QS-CONNECT-005)"
    return "accepts connections but does not answer as a plain ZooKeeper client port (QS-CONNECT-005)"


def _text(error):
    return f"{type(error).__name__} {error}".strip()


class Reader:
    """Pipelined reads over one kazoo client.

    :arg window: maximum number of requests in flight.
    :arg max_rate: maximum number of znodes a second, None for no limit.
    :arg timeout: timeout of one answer in seconds.
    :arg max_latency: seconds for one answer above which fewer requests are sent, None for no such bound.

    ``vanished`` counts znodes that were deleted before they were read; ``pace`` is a :class:`Pace`. Errors:
    :class:`ZooKeeperError`, :class:`ZooKeeperDenied`.
    """

    def __init__(self, client, window=500, max_rate=None, timeout=30.0, max_latency=None):
        self.client = client
        self.window = window
        self.timeout = timeout
        self.vanished = 0
        self.pace = Pace(window, max_rate, max_latency)

    def stat(self, path):
        """Return the Stat of a path, None if it does not exist."""
        return self._answer(path, self.client.exists_async(path))

    def zxid(self):
        """Return the last transaction id that the server has processed, after it caught up with the leader (sync)."""
        self._answer("/", self.client.sync_async("/"))
        self._answer("/", self.client.exists_async("/"))
        return self.client.last_zxid

    def get_many(self, paths):
        """Yield a Znode without ACL for each path that exists, in order."""
        for path, answer in self._pipeline(paths, self.client.get_async):
            if answer is None:
                self.vanished += 1
            else:
                yield znodes.Znode(path, answer[0], None, answer[1])

    def stat_many(self, paths):
        """Yield (path, Stat or None) for each path, in order."""
        return self._pipeline(paths, self.client.exists_async)

    def acls_many(self, paths):
        """Yield (path, ACL as in a Znode, or None if the path does not exist), in order."""
        for path, answer in self._pipeline(paths, self.client.get_acls_async):
            yield path, None if answer is None else [_acl(entry) for entry in answer[0]]

    def children_many(self, paths):
        """Yield (path, sorted child names, or None if the path does not exist), in order."""
        for path, names in self._pipeline(paths, self.client.get_children_async):
            yield path, None if names is None else sorted(names)

    def read_many(self, paths):
        """Yield (path, Znode with ACL or None) for each path, in order. Data and ACL are of the same state."""
        pending = deque()
        for path in paths:
            self.pace.wait()
            pending.append(self._visit(path))
            while len(pending) >= self.pace.window:
                visit = pending.popleft()
                yield visit.path, self._node(visit)
        for visit in pending:
            yield visit.path, self._node(visit)

    def tree(self, root="/"):
        """Yield every Znode from ``root`` down with its ACL, parents before children.

        Two requests a leaf, three an inner znode. Data and ACL of one znode are of the same state; different znodes may
        be of different times.
        """
        todo = [root]
        pending = deque()
        while todo or pending:
            while todo and len(pending) < self.pace.window:
                self.pace.wait()
                pending.append(self._visit(todo.pop()))
            visit = pending.popleft()
            names = ()
            if visit.children is None:
                visit.node = self._node(visit)
                if visit.node is not None and visit.node.stat.numChildren:
                    # Queued again, so that its children are listed while other znodes are read.
                    visit.children = self.client.get_children_async(visit.path)
                    pending.append(visit)
                    continue
            else:
                names = self._answer(visit.path, visit.children)
            if visit.node is None or names is None:
                self.vanished += 1
                continue
            yield visit.node
            prefix = "" if visit.path == "/" else visit.path
            todo.extend(f"{prefix}/{name}" for name in sorted(names, reverse=True))

    def _visit(self, path):
        return _Visit(path, self.client.get_async(path), self.client.get_acls_async(path))

    def _node(self, visit):
        for _attempt in range(_TORN_READS):
            data = self._paced(visit.path, visit.data, visit.sent)
            acl = self._answer(visit.path, visit.acl)
            if data is None or acl is None:
                return None
            if acl[1].aversion == data[1].aversion and acl[1].czxid == data[1].czxid:
                return znodes.Znode(visit.path, data[0], [_acl(entry) for entry in acl[0]], data[1])
            visit = self._visit(visit.path)
        raise ZooKeeperError(f"the ACL of {self._shown(visit.path)} changes too fast to be read (QS-CONNECT-005)")

    def _pipeline(self, paths, send):
        pending = deque()
        for path in paths:
            self.pace.wait()
            pending.append((path, send(path), time.monotonic()))
            while len(pending) >= self.pace.window:
                sent = pending.popleft()
                yield sent[0], self._paced(*sent)
        for sent in pending:
            yield sent[0], self._paced(*sent)

    def _paced(self, path, request, sent):
        """Return the answer to a request that was sent at this time (monotonic), and adapt the pace to its latency."""
        is_here = request.ready()  # it may have been here for long: its latency is not known
        answer = self._answer(path, request)
        self.pace.answered(0.0 if is_here else time.monotonic() - sent)
        return answer

    def _answer(self, path, request):
        try:
            return request.get(timeout=self.timeout)
        except kazoo_exceptions.NoNodeError:
            return None
        except kazoo_exceptions.NoAuthError:
            raise ZooKeeperDenied(
                f"ZooKeeper denies this user to read {self._shown(path)}: use the brokers' ZooKeeper "
                "credentials (QS-CONNECT-005)"
            ) from None
        except KazooTimeoutError:
            raise ZooKeeperError(
                f"ZooKeeper did not answer within {self.timeout:g} s for {self._shown(path)} (QS-CONNECT-005)"
            ) from None
        except kazoo_exceptions.KazooException as error:
            raise ZooKeeperError(
                f"the ZooKeeper connection failed while reading {self._shown(path)}: {_text(error)} (QS-CONNECT-005)"
            ) from error

    def _shown(self, path):
        return (self.client.chroot or "") + ("" if path == "/" and self.client.chroot else path)


# A client would have to set one znode's ACL this many times within as many round trips.
_TORN_READS = 5


class _Visit:
    def __init__(self, path, data, acl):
        self.path = path
        self.data = data
        self.acl = acl
        self.sent = time.monotonic()
        self.children = None
        self.node = None


class Pace:
    """How fast a Reader sends: at most a rate, and as many requests in flight as their latency allows.

    The latency of the own requests is what the server needs for its queue, so that it rises with any client's load. As
    in TCP's congestion control, one that is too high halves the window, others let it grow. With one request in flight
    that is still too slow, the reader pauses as long as the answer took, and at most PAUSE_S: it always goes on.

    ``window``: how many requests may be in flight. ``facts``: what it did, JSON-able: ``znodes`` (requested),
    ``slowest_ms`` (the highest latency seen), ``slowed`` (how often it lowered its pace), ``paused_s``.
    """

    FIRST, PAUSE_S = 16, 1.0

    def __init__(self, window, max_rate=None, max_latency=None, now=time.monotonic, sleep=time.sleep):
        self._step = 1.0 / max_rate if max_rate else 0.0
        self._largest, self._bound = window, max_latency
        self._now, self._sleep = now, sleep
        self._due = now()
        self._lowered = 0.0
        self._threshold = window
        self.window = float(window if max_latency is None else min(window, self.FIRST))
        self.facts = {"znodes": 0, "slowest_ms": 0.0, "slowed": 0, "paused_s": 0.0}

    def wait(self):
        """Wait until the next znode may be requested."""
        self.facts["znodes"] += 1
        if not self._step:
            return
        now = self._now()
        if self._due > now:
            self._sleep(self._due - now)
        # Idle time must not be followed by a burst.
        self._due = max(self._due, now - 0.1) + self._step

    def answered(self, seconds):
        """Adapt to an answer that took this long; 0 for one that was here before it was awaited."""
        self.facts["slowest_ms"] = max(self.facts["slowest_ms"], round(seconds * 1000, 1))
        if self._bound is None:
            return
        if seconds <= self._bound:
            grown = self.window + (1.0 if self.window < self._threshold else 1.0 / self.window)
            self.window = min(self._largest, grown)
            return
        now = self._now()
        if now - seconds < self._lowered:
            return  # sent before the pace was lowered
        self.facts["slowed"] += 1
        if self.window < 2:
            pause = min(seconds, self.PAUSE_S)
            self._sleep(pause)
            self.facts["paused_s"] = round(self.facts["paused_s"] + pause, 3)
        self._threshold = self.window = max(1.0, self.window / 2)
        self._lowered = self._now()


def _acl(entry):
    return {"perms": entry.perms, "scheme": entry.id.scheme, "id": entry.id.id}


def read_tree(client, root="/", window=500, max_rate=None, timeout=30.0):
    """Yield every Znode from ``root`` down (:meth:`Reader.tree`)."""
    return Reader(client, window, max_rate, timeout).tree(root)


def read_migration_znodes(client, timeout=10.0):
    """Return the znodes that show the migration's phase, read in two round trips. JSON-able:

    - ``controller``: ``{"exists", "broker_id", "kraft_controller_epoch", "ephemeral", "czxid", "malformed"}``;
    - ``controller_epoch``: ``{"exists", "value", "version", "mzxid", "malformed"}``;
    - ``migration``: ``{"exists", "kraft_metadata_offset", "kraft_metadata_epoch", "kraft_controller_id",
      "kraft_controller_epoch", "version", "mzxid", "malformed"}``;
    - ``broker_ids``: ``{"1": {"endpoints", "rack", "ephemeral_owner" (hex), "czxid", "malformed"}}``;
    - ``cluster_id``: ``{"exists", "value", "malformed"}``;
    - ``delete_topics``: sorted names; ``reassign_partitions`` and ``preferred_replica_election``:
      ``{"exists", "partitions", "malformed"}``;
    - ``zxid``: the last transaction that the answering server had processed.

    ``malformed`` is None or the reason; a missing znode has ``exists`` false and all other values None.
    """
    reader = Reader(client, timeout=timeout)
    single = (
        znodes.CONTROLLER,
        znodes.CONTROLLER_EPOCH,
        znodes.MIGRATION,
        znodes.CLUSTER_ID,
        znodes.REASSIGN_PARTITIONS,
        znodes.PREFERRED_REPLICA_ELECTION,
    )
    # All requests are sent before the first answer is awaited.
    gets = {path: client.get_async(path) for path in single}
    lists = {path: client.get_children_async(path) for path in (znodes.BROKER_IDS, znodes.DELETE_TOPICS)}
    found = {path: reader._answer(path, request) for path, request in gets.items()}
    names = {path: reader._answer(path, request) or [] for path, request in lists.items()}
    brokers = [f"{znodes.BROKER_IDS}/{name}" for name in sorted(names[znodes.BROKER_IDS], key=lambda n: (len(n), n))]
    facts = {
        "controller": _fact(found, znodes.CONTROLLER, znodes.controller, _CONTROLLER_FIELDS, _ephemeral),
        "controller_epoch": _fact(
            found,
            znodes.CONTROLLER_EPOCH,
            lambda data: {"value": znodes.controller_epoch(data)},
            ("value",),
            _version_mzxid,
        ),
        "migration": _fact(found, znodes.MIGRATION, znodes.migration, _MIGRATION_FIELDS, _version_mzxid),
        "broker_ids": {node.path.rpartition("/")[2]: _broker(node) for node in reader.get_many(brokers)},
        "cluster_id": _fact(
            found, znodes.CLUSTER_ID, lambda data: {"value": znodes.cluster_id(data)}, ("value",), lambda stat: {}
        ),
        "delete_topics": sorted(names[znodes.DELETE_TOPICS]),
        "zxid": client.last_zxid,
    }
    for path in (znodes.REASSIGN_PARTITIONS, znodes.PREFERRED_REPLICA_ELECTION):
        facts[path.rpartition("/")[2]] = _fact(
            found,
            path,
            lambda data, path=path: {"partitions": znodes.topic_partitions(data, path)},
            ("partitions",),
            lambda stat: {},
        )
    return facts


_CONTROLLER_FIELDS = ("broker_id", "kraft_controller_epoch")
_MIGRATION_FIELDS = (
    "kraft_metadata_offset",
    "kraft_metadata_epoch",
    "kraft_controller_id",
    "kraft_controller_epoch",
)


def _fact(found, path, decode, fields, of_stat):
    answer = found[path]
    fact = {"exists": answer is not None, "malformed": None}
    fact.update(dict.fromkeys(fields))
    if answer is None:
        fact.update(dict.fromkeys(of_stat(_NO_STAT)))
        return fact
    data, stat = answer
    fact.update(of_stat(stat))
    try:
        value = decode(data)
    except znodes.ZnodeError as error:
        fact["malformed"] = error.reason
    else:
        fact.update((field, value[field]) for field in fields)
        fact["malformed"] = value.get("malformed")
    return fact


_NO_STAT = znodes.Stat(*([0] * len(znodes.Stat._fields)))


def _ephemeral(stat):
    return {"ephemeral": stat.ephemeralOwner != 0, "czxid": stat.czxid}


def _version_mzxid(stat):
    return {"version": stat.version, "mzxid": stat.mzxid}


def _broker(node):
    fact = {
        "endpoints": None,
        "rack": None,
        "ephemeral_owner": f"0x{node.stat.ephemeralOwner & (1 << 64) - 1:x}",
        "czxid": node.stat.czxid,
        "malformed": None,
    }
    try:
        registration = znodes.broker(node.data, node.path)
    except znodes.ZnodeError as error:
        fact["malformed"] = error.reason
    else:
        fact["endpoints"] = registration["endpoints"]
        fact["rack"] = registration["rack"]
    return fact


def count_notifications(client, timeout=10.0):
    """Return ``{directory: how many change notifications it has}``. Raises ZooKeeperError."""
    stats = Reader(client, timeout=timeout).stat_many(znodes.NOTIFICATIONS)
    return {path: stat.numChildren for path, stat in stats if stat is not None}


def read_metadata(client, window=500, max_rate=None, timeout=30.0):
    """Return Kafka's metadata in the form of :func:`zk_metadata.normalise`; about one request a topic and partition."""
    reader = Reader(client, window, max_rate, timeout)
    return zk_metadata.normalise(_metadata_znodes(reader))


def _metadata_znodes(reader):
    """Yield the Znodes that hold metadata, without the directories between them."""
    yield from reader.get_many((znodes.CLUSTER_ID, znodes.CONTROLLER_EPOCH, znodes.PRODUCER_ID_BLOCK))
    yield from reader.get_many(child_paths(reader, [znodes.BROKER_IDS, znodes.DELETE_TOPICS, znodes.DELEGATION_TOKENS]))
    yield from read_partition_znodes(reader)
    entities = child_paths(reader, [f"{znodes.CONFIG}/{name}" for name in znodes.CONFIG_TYPES])
    users = [path for path in entities if path.startswith(f"{znodes.CONFIG}/users/")]
    entities += child_paths(reader, [f"{user}/clients" for user in users])
    yield from reader.get_many(entities)
    for store in znodes.ACL_STORES.values():
        # Resource names may contain slashes, so this subtree is walked.
        for node in reader.tree(store):
            if znodes.kind(node.path) == "acl":
                yield node


def read_partition_znodes(reader):
    """Yield the Znodes of topics, and those of their partitions' states."""
    states = deque()
    for node in reader.get_many(child_paths(reader, [znodes.TOPICS])):
        yield node
        try:
            partitions = znodes.topic(node.data, node.path)["partitions"]
        except znodes.ZnodeError:
            continue  # zk_metadata.normalise reports it
        name = node.path.rpartition("/")[2]
        states.extend(znodes.partition_state_path(name, partition) for partition in partitions)
        if len(states) >= reader.window:
            yield from reader.get_many(states)
            states.clear()
    yield from reader.get_many(states)


def child_paths(reader, parents):
    """Return the paths of the children of each of `parents` that exists."""
    return [
        f"{parent}/{name}" for parent, names in reader.children_many(parents) if names is not None for name in names
    ]
