# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ZooKeeper's live tree as a view: separate tasks read parts of it, pipelined and paced. Nothing is written.

It is read from followers where there are any. The session's first request is a sync, so that a follower is not behind.

`at` of an entity is the mzxid of its znode (the later of two for a partition; of a topic the czxid). An absent entity
was removed at the latest when its nearest existing znode changed: that znode's mzxid, or its pzxid for a child. Whether
children of a znode were deleted since the baseline shows in its Stat: ZooKeeper counts them (`deletions`).
"""

from __future__ import annotations

import collections
import contextlib
import os
import random
import zlib
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

import pyarrow as pa
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import not_compared
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import (
    unknown_znodes,
    zk_files,
    znode_items,
    znodes,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zk_servers
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper as probe
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import ZkSecurity
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import addresses

from quorumshift_spark import columns
from quorumshift_spark import normal_form as form
from quorumshift_spark.columns import states
from quorumshift_spark.normal_form import Digests, Entity
from quorumshift_spark.views import NOT_COMPARED, Absent, Key, LiveView, Problem, Statement, ViewError, entities
from quorumshift_spark.views.password_encoder import UndecodablePassword, decode

TOPICS_A_PART = 2000
_SRVR_S = 2.0


class Part(NamedTuple):
    """What a task reads: the topics with names in [low, high) (None: no bound), and the `others`, of _READERS or
    _UNKNOWN.

    `of`: how many tasks there are, which share the rate: on however many executors, no more of them read at once.
    `deletions`: {path: see the function}, `controller`: see the function, both before any part is read.
    """

    of: int
    others: Tuple[str, ...] = ()
    low: str | None = None
    high: str | None = None
    deletions: Mapping[str, int] = {}
    controller: Mapping[str, Any] = {}


class ZooKeeperView(LiveView):
    """The live tree under `connect` (host:port,.../chroot).

    :arg client: connection options (ZkSecurity.from_options).
    :arg secrets: password.encoder.secret, and the old one if set; decoded values are hashed at once.
    :arg max_rate: znodes a second that all parts together may read; None for no limit.
    :arg timeout: seconds for a session, and for one response.
    :arg cluster_id: the expected cluster; None accepts any.
    :arg max_latency_ms: for one answer, above which reading slows down (probe.Pace); None for no bound.
    :arg foreign: whether another vendor's build may have written znodes and keys of its own. They are noted as not
        compared. Under Apache Kafka they are of other software, and no metadata.
    """

    name = "zookeeper"
    kinds = tuple(kind for kind in form.STORED if kind != "migration")
    _foreign = False

    def __init__(
        self,
        connect: str,
        client: Dict[str, Any] | None,
        digests: Digests,
        secrets: Sequence[str] = (),
        max_rate: float | None = None,
        window: int = 500,
        timeout: float = 30.0,
        cluster_id: str | None = None,
        max_latency_ms: float | None = None,
        foreign: bool = False,
    ) -> None:
        self.connect = connect
        self._foreign = foreign
        self.not_compared: List[not_compared.Found] = []
        """What the readings of keys again found, and no comparison sees."""
        self._modes: Dict[str, str | None] | None = None
        self._max_latency = max_latency_ms / 1000 if max_latency_ms else None
        self._cluster_id = cluster_id
        self._security = ZkSecurity.from_options(client)
        self._znodes = Znodes(digests, secrets)
        self._max_rate = max_rate
        self._window = window
        self._timeout = timeout

    def probe(self) -> None:
        """Check the cluster id. Raises ViewError for another cluster at the connect string."""
        _zxid, nodes = self._nodes([znodes.CLUSTER_ID])
        ids = [znodes.cluster_id(node.data) for node in nodes.values()]
        if self._cluster_id and ids != [self._cluster_id]:
            actual = f"cluster {ids[0]}" if ids else "no Kafka cluster"
            raise ViewError(
                f"ZooKeeper at {self.connect} holds {actual}, not {self._cluster_id}. Check the chroot (QS-VERIFY-003)"
            )

    def parts(self, at_once: int = 0) -> List[Part]:
        """Return the parts, one for each task that Spark runs at once. Topics are split by ranges of names: a topic
        created later is in exactly one of them."""
        with self._session() as reader:
            parents = {path: deletions(stat) for path, stat in reader.stat_many(_parents(reader)) if stat}
            owner = controller(reader.get_many([znodes.CONTROLLER, znodes.MIGRATION]))
            names = [name for _path, children in reader.children_many([znodes.TOPICS]) for name in children or ()]
        count = min(len(names) // TOPICS_A_PART + 1, at_once or len(names) + 1)
        bounds = [None, *(names[len(names) * number // count] for number in range(1, count)), None]
        others = (*_READERS, *([_UNKNOWN] if self._foreign else []))
        of_tasks = [Part(count, others[number::count], *bounds[number : number + 2]) for number in range(count)]
        return [of_tasks[0]._replace(deletions=parents, controller=owner), *of_tasks[1:]]

    def read(self, part: Part) -> Iterator[Entity | pa.RecordBatch | Statement]:
        problems: List[Problem] = []
        parents = dict(part.deletions)
        notes = Notes() if self._foreign else None
        with self._session(part.of) as reader:
            zxid = reader.zxid()
            for nodes in _topics(reader, part):
                yield from self._znodes.read(nodes, problems, notes)
            for what in part.others:
                if what == _UNKNOWN:
                    _note_unknown(reader, notes)
                for nodes in _READERS[what](reader) if what in _READERS else ():
                    if what == _ACLS:  # each read before its children, see `Part`
                        parents.update({node.path: deletions(node.stat) for node in nodes if node.stat.numChildren})
                    yield from self._znodes.read(nodes, problems, notes)
        state = {"zxid": zxid, "deletions": parents, "pace": reader.pace.facts, **_noted(notes, problems)}
        yield Statement({**state, "controller": part.controller} if part.controller else state, problems)

    def reread(self, keys: Iterable[Key]) -> Tuple[Dict[Key, Entity | Absent], Statement]:
        """Return these keys, with one pipelined read of their znodes and, for absent keys, of the parents."""
        wanted = set(keys)
        problems: List[Problem] = []
        chains_of = {key: _chains(*key) for key in wanted}
        # Parents last: their counts include the deletion of every child that was not there
        every = {path for chains in chains_of.values() for chain in chains for path in chain}
        paths = sorted(every, key=lambda path: (-path.count("/"), path))
        zxid, nodes = self._nodes(paths)
        notes = Notes() if self._foreign else None
        items = self._znodes.read(nodes.values(), problems, notes)
        read = (entity for item in items for entity in entities(self.name, item))
        found: Dict[Key, Entity | Absent] = {
            (entity.kind, entity.key): entity for entity in read if (entity.kind, entity.key) in wanted
        }
        for key in wanted.difference(found):
            found[key] = Absent(_absence(key[0], chains_of[key], nodes))
        if notes is not None:
            self.not_compared += _noted(notes, problems).values()
        return found, Statement({"zxid": zxid}, problems)

    def migration(self) -> Tuple[int, int]:
        """Return (kraft_metadata_offset, mzxid) of /migration: at that zxid ZooKeeper has all records up to it."""
        _zxid, nodes = self._nodes([znodes.MIGRATION])
        for node in nodes.values():
            migration = znodes.migration(node.data)
            if migration["malformed"]:
                raise probe.ZooKeeperError(f"{znodes.MIGRATION} {migration['malformed']}")
            return migration["kraft_metadata_offset"], node.stat.mzxid
        raise probe.ZooKeeperMissing(f"{znodes.MIGRATION} does not exist: no migration is in progress (QS-VERIFY-003)")

    def _nodes(self, paths: Iterable[str]) -> Tuple[int, Dict[str, znodes.Znode]]:
        """Return the zxid before reading, and the znodes that exist, read in this order."""
        with self._session() as reader:
            return reader.zxid(), {node.path: node for node in reader.get_many(paths)}

    @contextlib.contextmanager
    def _session(self, sharing=1):
        servers = self._followers_first()
        with contextlib.ExitStack() as stack:
            security = stack.enter_context(self._security.files())
            client = probe.connect(servers, self._timeout, randomize_hosts=False, **security.kazoo())
            client = stack.enter_context(client)
            rate = self._max_rate / sharing if self._max_rate else None
            yield probe.Reader(client, self._window, rate, self._timeout, self._max_latency)

    def _followers_first(self) -> str:
        """Return the connect string in the order in which servers are tried: the leader, and those that do not answer,
        last. The order of the others is random, which distributes the parts."""
        given = addresses.parse_zookeeper_connect(self.connect)
        if self._modes is None:  # asked once, on the driver: `parts` and `probe` run there
            answers = (
                zk_servers.collect(given.servers, self._security.ssl_context(), _SRVR_S) if given.servers[1:] else {}
            )
            self._modes = {
                name: "unreachable" if answer["error"] else answer["mode"] for name, answer in answers.items()
            }
        servers = random.sample(given.servers, len(given.servers))
        servers.sort(key=lambda server: ("leader", "unreachable").count(self._modes.get(str(server)) or ""))
        return f"{','.join(map(str, servers))}{given.chroot}"


class FilesPart(NamedTuple):
    """The topics that a task takes: those with this `number` of `of`. Number 0 takes everything else as well."""

    number: int
    of: int


class ZooKeeperFilesView(ZooKeeperView):
    """The tree under `chroot` in a data directory, as its newest snapshot and the log after it have it.

    :arg directory: the one that holds `version-2` (dataDir): a copy, or one of a server that need not run.
    :arg log_directory: the same for the transaction log where it is separate (dataLogDir).
    :arg at_least: a zxid that the ensemble had before: files that end before it are not those of this ensemble, or old.
    """

    def __init__(
        self,
        directory: str,
        chroot: str,
        digests: Digests,
        secrets: Sequence[str] = (),
        cluster_id: str | None = None,
        tasks: int = 2,
        log_directory: str | None = None,
        at_least: int = 0,
        foreign: bool = False,
    ) -> None:
        super().__init__(f"{directory}{chroot}", None, digests, secrets, cluster_id=cluster_id, foreign=foreign)
        self._directory = f"{directory}/version-2"
        self._log_directory = f"{log_directory or directory}/version-2"
        self._at_least = at_least
        self._chroot = chroot
        self._tasks = tasks
        self._read: Tuple[Any, set, Tuple[int, Dict[str, znodes.Znode]]] | None = None

    def parts(self, at_once: int = 0) -> List[FilesPart]:  # type: ignore[override]
        """Return the parts; each reads the files to their end."""
        return [FilesPart(number, self._tasks) for number in range(self._tasks)]

    def read(self, part: FilesPart) -> Iterator[Entity | pa.RecordBatch | Statement]:  # type: ignore[override]
        problems: List[Problem] = []
        below = f"{znodes.TOPICS}/"
        before = f"{self._chroot}{below}".encode()
        topics: Dict[str, List[znodes.Znode]] = {}
        others: Dict[str, zk_files.Node] = {}
        notes = Notes() if self._foreign else None

        def is_own(name: bytes) -> bool:
            return zlib.crc32(name) % part.of == part.number

        def below_chroot(path: bytes) -> str:
            return path[len(self._chroot) :].decode(errors="replace")

        own = b"\0"  # the topic below which the files are now: its znodes follow it

        def wanted(path: bytes) -> bool | None:
            nonlocal own
            if not path.startswith(own):
                if not path.startswith(before):
                    return True
                name, _slash, rest = path[len(before) :].partition(b"/")
                if not rest:
                    return True
                if not is_own(name):
                    return None
                own = before + name + b"/"
            return path.endswith(b"/state") or (notes is not None and unknown_znodes.is_unknown(below_chroot(path)))

        zxid, nodes = self._tree(wanted)
        for path, node in nodes:
            if notes is not None and unknown_znodes.is_unknown(path):
                is_own_path = not part.number or path.startswith(below)
                if is_own_path and not (path == _OF_ZOOKEEPER or path.startswith(f"{_OF_ZOOKEEPER}/")):
                    notes.note_path(path)
                continue
            name, _slash, rest = path[len(below) :].partition("/") if path.startswith(below) else ("", "", "")
            if not rest:
                others[path] = node  # a topic counts as a child
            if rest or (name and is_own(name.encode())):
                of_topic = znodes.Znode(path, node.data, None, zk_files.stat_of(node, 0))
                topics.setdefault(name, []).append(of_topic)
        names = list(topics)
        for start in range(0, len(names), self._window):
            of_names = [node for name in names[start : start + self._window] for node in topics.pop(name)]
            yield from self._znodes.read(of_names, problems, notes)
        state: Dict[str, Any] = {"zxid": zxid, "deletions": {}}
        if not part.number:
            found = _with_children(others)
            state["controller"] = controller(found)
            state["deletions"] = {node.path: deletions(node.stat) for node in found if node.stat.numChildren}
            rest_of = [node for node in found if not node.path.startswith(below)]
            yield from self._znodes.read(rest_of, problems, notes)
        yield Statement({**state, **_noted(notes, problems)}, problems)

    def _nodes(self, paths: Iterable[str]) -> Tuple[int, Dict[str, znodes.Znode]]:
        wanted, version = set(paths), self._version()
        if self._read is None or self._read[0] != version or not wanted <= self._read[1]:
            read = wanted | {znodes.MIGRATION}  # for which each round of re-checks asks
            self._read = (version, read, self._find(read))
        zxid, found = self._read[2]
        return zxid, {path: node for path, node in found.items() if path in wanted}

    def _version(self):
        """Return what changes when the server writes."""
        entries = [entry for path in (self._directory, self._log_directory) for entry in os.scandir(path)]
        return sorted((entry.path, entry.stat().st_size, entry.stat().st_mtime_ns) for entry in entries)

    def _find(self, wanted):
        of_children = {f"{self._chroot}{path}".rstrip("/").encode() for path in wanted}
        above = {parent for path in of_children for parent in _ancestors(path)}

        def wants(path: bytes) -> bool | None:
            """Whether this znode, its parent or one below it is wanted."""
            if path in of_children or path.rpartition(b"/")[0] in of_children:
                return True
            return False if path in above else None

        zxid, nodes = self._tree(wants)
        found, children = {}, collections.Counter()
        for path, node in nodes:
            parent = path.rpartition("/")[0] or "/"
            if parent in wanted and path != "/":
                children[parent] += 1
            if path in wanted:
                found[path] = node
        stats = {path: zk_files.stat_of(node, children[path]) for path, node in found.items()}
        return zxid, {path: znodes.Znode(path, node.data, None, stats[path]) for path, node in found.items()}

    def _tree(self, wanted=None):
        try:
            zxid, nodes = zk_files.read_tree(self._directory, self._log_directory, self._chroot, wanted)
        except (zk_files.ZooKeeperFileError, OSError) as error:
            raise ViewError(f"ZooKeeper's files: {error} (QS-VERIFY-003)") from error
        if zxid < self._at_least:
            raise ViewError(
                f"ZooKeeper's files in {self._log_directory} end at zxid {zxid:#x}, the ensemble was at "
                f"{self._at_least:#x} before this comparison. Give the dataDir and dataLogDir of a running server, or "
                "copy them anew (QS-VERIFY-003)"
            )
        return zxid, nodes


def _ancestors(path: bytes) -> Iterator[bytes]:
    while path:
        path = path.rpartition(b"/")[0]
        yield path


def _with_children(nodes: Mapping[str, zk_files.Node]) -> List[znodes.Znode]:
    children = collections.Counter(path.rpartition("/")[0] or "/" for path in nodes if path != "/")
    return [znodes.Znode(path, node.data, None, zk_files.stat_of(node, children[path])) for path, node in nodes.items()]


# --- reading znodes --------------------------------------------------------------------------------------


def _below(reader, parents):
    return [f"{parent}/{name}" for parent, names in reader.children_many(parents) for name in names or ()]


def _topics(reader, part):
    """Yield the znodes of the topics in a range, with the states of their partitions."""
    names = [path.rpartition("/")[2] for path in _below(reader, [znodes.TOPICS])]
    names = [name for name in names if (part.low or "") <= name and (part.high is None or name < part.high)]
    for start in range(0, len(names), reader.window):
        topics = list(reader.get_many(map(znodes.topic_path, names[start : start + reader.window])))
        states: List[str] = []
        for node in topics:
            try:
                partitions = znodes.topic(node.data, node.path)["partitions"]
            except znodes.ZnodeError:
                continue  # Znodes reports it
            name = node.path.rpartition("/")[2]
            states += [znodes.partition_state_path(name, partition) for partition in partitions]
        yield [*topics, *reader.get_many(states)]


def _configs(reader):
    entities = _below(reader, [f"{znodes.CONFIG}/{name}" for name in znodes.CONFIG_TYPES])
    users = [path for path in entities if path.startswith(f"{znodes.CONFIG}/users/")]
    yield reader.get_many([*entities, *_below(reader, [f"{user}/clients" for user in users])])


def _acls(reader):
    # Resource names may hold slashes: read the complete subtree
    for store in znodes.ACL_STORES.values():
        yield list(reader.tree(store))


def _rest(reader):
    yield reader.get_many([znodes.PRODUCER_ID_BLOCK, znodes.FEATURE])
    yield reader.get_many(_below(reader, [znodes.BROKER_IDS, znodes.DELEGATION_TOKENS]))


_ACLS, _UNKNOWN = "acls", "unknown"  # the latter: the paths of all znodes
_READERS = {"configs": _configs, _ACLS: _acls, "rest": _rest}


def _note_unknown(reader, notes):
    """Note the topmost paths that Apache Kafka does not have, from the root down."""
    todo = ["/"]
    while todo:
        parents = [todo.pop() for _number in range(min(len(todo), reader.window))]
        for path in _below(reader, parents):
            path = path.replace("//", "/", 1)  # below the root
            if unknown_znodes.is_unknown(path):
                if path != _OF_ZOOKEEPER:
                    notes.note_path(path)
            elif unknown_znodes.has_known_children(path):
                todo.append(path)


_OF_ZOOKEEPER = "/zookeeper"  # there without a chroot: the ensemble's own


class Notes:
    """What znodes have that Apache Kafka does not: see core.gates.not_compared.

    :ivar found: by name; `lost`: how many more names there are than can be kept
    """

    def __init__(self) -> None:
        self.found: not_compared.Found = {}
        self.lost = 0

    def note_path(self, path: str) -> None:
        """Note an unknown znode, unless it is below one."""
        parent = path.rpartition("/")[0]
        if not (parent and unknown_znodes.is_unknown(parent)):
            self._note(not_compared.znode(unknown_znodes.pattern(path)), path)

    def note_keys(self, node: znodes.Znode) -> None:
        """Note the unknown keys of a znode."""
        for name in unknown_znodes.unknown_keys(node):
            self._note(not_compared.key(unknown_znodes.pattern(node.path), name), node.path)

    def _note(self, name, place):
        if name in self.found:
            self.found[name]["count"] += 1
        elif len(self.found) < not_compared.MOST:
            self.found[name] = {"count": 1, "first": place}
        else:
            self.lost += 1


def _noted(notes: Notes | None, problems: List[Problem]) -> Dict[str, not_compared.Found]:
    """Return the part of a state with what was noted. Names that are not kept are a problem."""
    if notes is not None and notes.lost:
        problems.append(
            Problem("/", f"more than {not_compared.MOST} kinds of znodes and keys are unknown: no token accepts them")
        )
    return {NOT_COMPARED: notes.found} if notes is not None and notes.found else {}


def _chains(kind: str, key: str) -> List[List[str]]:
    """Return for each znode that can hold the entity the chain of paths down to it, outermost first."""
    parts = form.key_of(key)
    if kind == "topic":
        return [[znodes.TOPICS, znodes.topic_path(parts[0])]]
    if kind == "partition":
        return [[znodes.TOPICS, znodes.topic_path(parts[0])], [znodes.partition_state_path(*parts)]]
    if kind == "config":
        entity = znodes.DEFAULT_ENTITY if parts[1] is None else parts[1]
        return [_chain(f"{znodes.CONFIG}/{parts[0]}s", entity)]
    if kind == "scram":
        return [_chain(f"{znodes.CONFIG}/users", znodes.sanitize(parts[0]))]
    if kind == "quota":
        return _quota_chains(dict(parts[0]))
    if kind == "acl":
        store = znodes.ACL_STORES.get(parts[1])
        type_name = parts[0].title().replace("_", "")
        return [_chain(f"{store}/{type_name}", *parts[2].split("/"))] if store else [["/"]]
    if kind == "delegation_token":
        return [_chain(znodes.DELEGATION_TOKENS, parts[0])]
    if kind == "broker":
        return [_chain(znodes.BROKER_IDS, str(parts[0]))]
    return [_chain("", {"producer_ids": znodes.PRODUCER_ID_BLOCK, "feature": znodes.FEATURE}[kind][1:])]


def _chain(parent: str, *names: str) -> List[str]:
    """Return the paths from the root down to `parent` and on by `names`, the root first."""
    paths = ["/"]
    for name in [*filter(None, parent.split("/")), *names]:
        paths.append(f"{paths[-1].rstrip('/')}/{name}")
    return paths


def _quota_chains(entity):
    def names(kind):
        # Kafka does not sanitize ips, which changes the colons of an IPv6 address
        name = entity[kind]
        if name is None:
            return [znodes.DEFAULT_ENTITY]
        return sorted({name, znodes.sanitize(name)}) if kind == "ip" else [znodes.sanitize(name)]

    if "user" in entity and "client-id" in entity:
        return [_chain(f"{znodes.CONFIG}/users", names("user")[0], "clients", names("client-id")[0])]
    kind = next(iter(entity))
    parent = f"{znodes.CONFIG}/" + next(znode for znode, name in znode_items.QUOTA_ENTITIES.items() if name == kind)
    return [_chain(parent, name) for name in names(kind)]


def _absence(kind, chains, nodes):
    """Return the `at` of an absent entity, see Absent: the last change of the innermost existing znodes."""
    at: Dict[str, Any] = {"zxid": 0}
    for chain in chains:
        existing = [nodes[path] for path in chain if path in nodes]
        if not existing:
            continue
        innermost = existing[-1]
        is_parent = innermost.path != chain[-1]
        at["zxid"] = max(at["zxid"], innermost.stat.mzxid, innermost.stat.pzxid if is_parent else 0)
        if is_parent:
            child = chain[chain.index(innermost.path) + 1]
            at.update(under=innermost.path, child=child, deletions=deletions(innermost.stat))
        elif kind == "partition" and innermost.path == chains[0][-1]:
            at["created"] = innermost.stat.czxid
    return at


def deletions(stat: znodes.Stat) -> int:
    """Return how many children of a znode were ever deleted: cversion counts creations and deletions
    (org.apache.zookeeper.server.DataNode.copyStat)."""
    return (stat.cversion - stat.numChildren) // 2


def controller(nodes: Iterable[znodes.Znode]) -> Dict[str, Any]:
    """Return who owns /controller, and how far the log is mirrored: `controller` of excuses.Evidence."""
    found: Dict[str, Any] = {"epoch": None, "zxid": None, "mirrored": None}
    for node in nodes:
        if node.path == znodes.CONTROLLER:
            found.update(epoch=znodes.controller(node.data)["kraft_controller_epoch"], zxid=node.stat.czxid)
        elif node.path == znodes.MIGRATION:
            found["mirrored"] = znodes.migration(node.data)["kraft_metadata_offset"]
    return found


def _parents(reader):
    """Return the znodes whose children are topics, entities with configs, and delegation tokens."""
    kinds = [f"{znodes.CONFIG}/{name}" for name in znodes.CONFIG_TYPES]
    clients = [f"{user}/clients" for user in _below(reader, [f"{znodes.CONFIG}/users"])]
    return [znodes.TOPICS, *kinds, *clients, znodes.DELEGATION_TOKENS]


# --- items in the normal form ----------------------------------------------------------------------


class Znodes:
    """Decodes znodes into entities, and batches of partitions."""

    def __init__(self, digests: Digests, secrets: Sequence[str]) -> None:
        self._digests = digests
        self._secrets = tuple(secrets)

    def read(
        self, nodes: Iterable[znodes.Znode], problems: List[Problem], notes: Notes | None = None
    ) -> Iterator[Entity | pa.RecordBatch]:
        """Yield what is in these znodes, among which are the states of the partitions of its topics. A partition whose
        state is missing has null for its fields. `notes`: of unknown keys."""
        reader = znode_items.Reader()
        of_topics: Dict[str, List[znodes.Znode]] = {"topic": [], "partition_state": []}
        for node in nodes:
            if notes is not None:
                notes.note_keys(node)
            kind = znodes.kind(node.path)
            if kind in of_topics:
                of_topics[kind].append(node)
                continue
            for item in reader.items(node):
                yield from self._broker(item, node, problems) if kind == "broker" else self._entities(item, problems)
        problems += [Problem(*problem) for problem in reader.problems]
        if of_topics["topic"]:
            found = states.read_partitions(of_topics["topic"], of_topics["partition_state"])
            for topic in found.topics.to_pylist():
                yield form.topic(topic["topic"], topic["topic_id"], {"zxid": topic["at"]})
            yield found.partitions.select(columns.PARTITIONS.names)
            problems += [Problem(*problem) for problem in found.problems]

    def _entities(self, item, problems):
        if item.kind == "config":
            yield self._config(item, problems)
        elif item.kind == "scram":
            user, mechanism = item.key
            keys = (item.value["salt"], item.value["stored_key"], item.value["server_key"])
            digest = self._digests.scram(user, mechanism, *keys, item.value["iterations"])
            yield form.scram(user, mechanism, item.value["iterations"], digest, {"zxid": item.zxid})
        elif item.kind in _ENTITIES:
            yield _ENTITIES[item.kind](item.key, item.value, {"zxid": item.zxid})

    def _broker(self, item, node, problems):
        try:
            registered = znodes.broker(node.data, node.path)
        except znodes.ZnodeError as error:
            problems.append(Problem(error.path, error.reason))
            registered = None
        fields = {"fenced": False, "epoch": item.value}
        if registered:
            fields["rack"] = registered["rack"]
            fields["endpoints"] = [
                [name, at["host"], at["port"], at["security_protocol"]] for name, at in registered["endpoints"].items()
            ]
        yield form.broker(*item.key, fields, {"zxid": node.stat.mzxid})

    def _config(self, item, problems):
        at = {"zxid": item.zxid}
        value = item.value
        if item.key[0] == "broker" and znodes.is_password_config(item.key[2]):
            try:
                value = decode(value, self._secrets)
            except UndecodablePassword as error:
                problems.append(Problem(item.path, f"{item.key[2]} cannot be read: {error}"))
                return form.unread_config(*item.key, str(error), at)
        return form.config(*item.key, value, self._digests, at)


_ENTITIES: Dict[str, Callable[[tuple, Any, Dict[str, int]], Entity]] = {
    "quota": lambda key, value, at: form.quota(dict(key[0]), key[1], value, at),
    "acl": lambda key, value, at: form.acl(*key, at=at),
    "delegation_token": lambda key, value, at: form.delegation_token(**value, at=at),
    "producer_ids": lambda key, value, at: form.producer_ids(
        value["next_producer_id"], value["first_producer_id"], value["broker_id"], at
    ),
    "feature": lambda key, value, at: form.feature(*key, value, at),
}
