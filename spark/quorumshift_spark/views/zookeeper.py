# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ZooKeeper's live tree as a view: read in parts by separate tasks, pipelined and paced; it writes nothing.

`at` of an entity is the mzxid of the znode that it stands in (the later of two for a partition); an entity that is not
there has been absent at most since its nearest standing znode changed: that one's mzxid, or pzxid for a child.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Sequence, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import zookeeper as probe
from ansible_collections.quorumshift.kafka.plugins.module_utils.security import ZkSecurity

from quorumshift_spark import normal_form as form
from quorumshift_spark.normal_form import Digests, Entity
from quorumshift_spark.views import Absent, Key, Problem, Statement, View, ViewError
from quorumshift_spark.views.password_encoder import UndecodablePassword, decode

_QUOTA_ENTITIES = {"users": "user", "clients": "client-id", "ips": "ip"}
_STATE_FIELDS = {
    "leader": "leader",
    "leader_epoch": "leader_epoch",
    "isr": "isr",
    "leader_recovery_state": "recovery_state",
    "version": "partition_epoch",
}
TOPICS_A_PART = 2000


class Part(NamedTuple):
    """A piece of the tree: `topics` in the range [low, high) of names (None: no bound), `configs`, `acls`, `rest`.

    `of`: how many pieces there are, which share the rate.
    """

    what: str
    of: int
    low: str | None = None
    high: str | None = None


class ZooKeeperView(View):
    """The live tree under `connect` (host:port,.../chroot).

    :arg client: connection options (ZkSecurity.from_options).
    :arg secrets: password.encoder.secret, and the old one if there is one; what they decode is hashed at once.
    :arg max_rate: znodes a second that all parts together may ask for; None for as many as the servers give.
    :arg timeout: seconds for a session, and for one answer.
    :arg cluster_id: the cluster that must be there; None takes any.
    """

    name = "zookeeper"
    kinds = form.KINDS

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
    ) -> None:
        self.connect = connect
        self._cluster_id = cluster_id
        self._security = ZkSecurity.from_options(client)
        self._znodes = Znodes(digests, secrets)
        self._max_rate = max_rate
        self._window = window
        self._timeout = timeout

    def look(self) -> None:
        """Raises ViewError where another cluster lives under the connect string."""
        with self._session() as reader:
            found = [znodes.cluster_id(node.data) for node in reader.get_many([znodes.CLUSTER_ID])]
        if self._cluster_id and found != [self._cluster_id]:
            there = f"cluster {found[0]}" if found else "no Kafka cluster"
            raise ViewError(f"ZooKeeper at {self.connect} holds {there}, not {self._cluster_id}: is the chroot right?")

    def parts(self) -> List[Part]:
        """Topics in ranges of names, so that one made in the meantime falls into exactly one of them."""
        with self._session() as reader:
            names = [name for _path, found in reader.children_many([znodes.TOPICS]) for name in found or ()]
        bounds = [None, *names[TOPICS_A_PART::TOPICS_A_PART], None]
        count = len(bounds) - 1 + len(_PARTS) - 1
        topics = [Part("topics", count, low, high) for low, high in zip(bounds, bounds[1:])]
        return [*topics, *(Part(what, count) for what in _PARTS if what != "topics")]

    def read(self, part: Part) -> Iterator[Entity | Statement]:
        problems: List[Problem] = []
        with self._session(part.of) as reader:
            zxid = reader.zxid()
            for node in _PARTS[part.what](reader, part):
                yield from self._znodes.entities(node, problems)
            yield from self._znodes.rest(problems)
        yield Statement({"zxid": zxid}, problems)

    def reread(self, keys: Iterable[Key]) -> Tuple[Dict[Key, Entity | Absent], Statement]:
        """These keys, in one pipelined pass over the znodes they stand in, and those above for what is absent."""
        wanted = set(keys)
        problems: List[Problem] = []
        places = {key: _places(*key) for key in wanted}
        paths = sorted({path for chains in places.values() for chain in chains for path in chain})
        found: Dict[Key, Entity | Absent] = {}
        with self._session() as reader:
            zxid = reader.zxid()
            nodes = {node.path: node for node in reader.get_many(paths)}
        # Topics before their states: a partition's entity needs both
        for path in sorted(nodes, key=lambda path: (path.count("/"), path)):
            for entity in self._znodes.entities(nodes[path], problems):
                if (entity.kind, entity.key) in wanted:
                    found[(entity.kind, entity.key)] = entity
        for entity in self._znodes.rest(problems):
            if (entity.kind, entity.key) in wanted:
                found[(entity.kind, entity.key)] = entity
        for key in wanted.difference(found):
            found[key] = Absent({"zxid": max(_absent_since(chain, nodes) for chain in places[key])})
        return found, Statement({"zxid": zxid}, problems)

    def migration(self) -> Tuple[int, int]:
        """(kraft_metadata_offset, mzxid) of /migration: all records up to that offset are in the tree at that zxid."""
        with self._session() as reader:
            for node in reader.get_many([znodes.MIGRATION]):
                reported = znodes.migration(node.data)
                if reported["malformed"]:
                    raise probe.ZooKeeperError(f"{znodes.MIGRATION} {reported['malformed']}")
                return reported["kraft_metadata_offset"], node.stat.mzxid
        raise probe.ZooKeeperMissing(f"{znodes.MIGRATION} is not there: no migration is under way")

    @contextlib.contextmanager
    def _session(self, sharing=1):
        with probe.connect(self.connect, self._timeout, **self._security.kazoo()) as client:
            rate = self._max_rate / sharing if self._max_rate else None
            yield probe.Reader(client, self._window, rate, self._timeout)


# --- which znodes --------------------------------------------------------------------------------------


def _below(reader, parents):
    return [f"{parent}/{name}" for parent, names in reader.children_many(parents) for name in names or ()]


def _topics(reader, part):
    """Znodes of the topics of a range, each chunk followed by the states of its partitions."""
    names = [path.rpartition("/")[2] for path in _below(reader, [znodes.TOPICS])]
    names = [name for name in names if (part.low or "") <= name and (part.high is None or name < part.high)]
    for start in range(0, len(names), reader.window):
        states = []
        for node in reader.get_many(map(znodes.topic_path, names[start : start + reader.window])):
            yield node
            try:
                partitions = znodes.topic(node.data, node.path)["partitions"]
            except znodes.ZnodeError:
                continue  # Znodes names it
            name = node.path.rpartition("/")[2]
            states += [znodes.partition_state_path(name, partition) for partition in partitions]
        yield from reader.get_many(states)


def _configs(reader, part):
    entities = _below(reader, [f"{znodes.CONFIG}/{name}" for name in znodes.CONFIG_TYPES])
    users = [path for path in entities if path.startswith(f"{znodes.CONFIG}/users/")]
    yield from reader.get_many([*entities, *_below(reader, [f"{user}/clients" for user in users])])


def _acls(reader, part):
    # Resource names may hold slashes, so this part is walked
    for store in znodes.ACL_STORES.values():
        yield from (node for node in reader.tree(store) if znodes.kind(node.path) == "acl")


def _rest(reader, part):
    yield from reader.get_many([znodes.PRODUCER_ID_BLOCK, znodes.FEATURE])
    yield from reader.get_many(_below(reader, [znodes.BROKER_IDS, znodes.DELEGATION_TOKENS]))


_PARTS = {"topics": _topics, "configs": _configs, "acls": _acls, "rest": _rest}


def _places(kind: str, key: str) -> List[List[str]]:
    """The znodes that tell of a key: chains of paths, outermost first, each chain a possible home of the entity."""
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
        return _quota_places(dict(parts[0]))
    if kind == "acl":
        store = znodes.ACL_STORES.get(parts[1])
        type_name = parts[0].title().replace("_", "")
        return [_chain(f"{store}/{type_name}", parts[2])] if store else [["/"]]
    if kind == "delegation_token":
        return [_chain(znodes.DELEGATION_TOKENS, parts[0])]
    if kind == "broker":
        return [_chain(znodes.BROKER_IDS, str(parts[0]))]
    return [_chain("", {"producer_ids": znodes.PRODUCER_ID_BLOCK, "feature": znodes.FEATURE}[kind][1:])]


def _chain(parent: str, *names: str) -> List[str]:
    """The paths from the root's child down to `parent` and on by `names`, the root first."""
    paths = ["/"]
    for name in [*filter(None, parent.split("/")), *names]:
        paths.append(f"{paths[-1].rstrip('/')}/{name}")
    return paths


def _quota_places(entity):
    def names(kind):
        # Kafka writes an ip as it is; an IPv6 address would look different if sanitized
        name = entity[kind]
        if name is None:
            return [znodes.DEFAULT_ENTITY]
        return sorted({name, znodes.sanitize(name)}) if kind == "ip" else [znodes.sanitize(name)]

    if "user" in entity and "client-id" in entity:
        return [_chain(f"{znodes.CONFIG}/users", names("user")[0], "clients", names("client-id")[0])]
    kind = next(iter(entity))
    parent = f"{znodes.CONFIG}/" + next(znode for znode, name in _QUOTA_ENTITIES.items() if name == kind)
    return [_chain(parent, name) for name in names(kind)]


def _absent_since(chain, nodes):
    """The zxid at which the last znode of a chain that still stands was changed, or got or lost a child."""
    standing = [nodes[path] for path in chain if path in nodes]
    if not standing:
        return 0
    innermost = standing[-1]
    is_home = innermost.path == chain[-1]
    return innermost.stat.mzxid if is_home else max(innermost.stat.mzxid, innermost.stat.pzxid)


# --- what stands in them -------------------------------------------------------------------------------


class Znodes:
    """Znodes into entities. Pure but for the topics that it keeps until their partitions' states have come."""

    def __init__(self, digests: Digests, secrets: Sequence[str]) -> None:
        self._digests = digests
        self._secrets = tuple(secrets)
        self._waiting: Dict[Tuple[str, str], Tuple[Dict[str, Any], int]] = {}

    def entities(self, node: znodes.Znode, problems: List[Problem]) -> Iterator[Entity]:
        """The entities that a znode holds. A topic's partitions come with their states (or `rest`)."""
        reader = _READERS.get(znodes.kind(node.path))
        if reader is None:
            return
        try:
            yield from reader(self, node.path.split("/"), node, problems)
        except znodes.ZnodeError as error:
            problems.append(Problem(error.path, error.reason))

    def rest(self, problems: List[Problem]) -> Iterator[Entity]:
        """The partitions for which no state has come: their state is null."""
        for (topic, number), (assignment, mzxid) in self._waiting.items():
            fields = {**assignment, **dict.fromkeys(_STATE_FIELDS.values())}
            yield form.partition(topic, int(number), fields, {"zxid": mzxid})
        self._waiting.clear()

    def _topic(self, names, node, problems):
        topic = znodes.topic(node.data, node.path)
        at = node.stat.mzxid
        for number, assignment in topic["partitions"].items():
            self._waiting[(names[-1], number)] = (assignment, at)
        yield form.topic(names[-1], topic["topic_id"], {"zxid": at})

    def _partition_state(self, names, node, problems):
        waiting = self._waiting.get((names[3], names[5]))
        if waiting is None:
            return  # of a partition that the topic does not have
        state = znodes.partition_state(node.data, node.path)
        state["version"] = node.stat.version
        del self._waiting[(names[3], names[5])]
        assignment, mzxid = waiting
        fields = {**assignment, **{ours: state[theirs] for theirs, ours in _STATE_FIELDS.items()}}
        yield form.partition(names[3], int(names[5]), fields, {"zxid": max(mzxid, node.stat.mzxid)})

    def _topic_config(self, names, node, problems):
        yield from self._configs("topic", names[-1], node, problems)

    def _broker_config(self, names, node, problems):
        entity = None if names[-1] == znodes.DEFAULT_ENTITY else names[-1]
        yield from self._configs("broker", entity, node, problems)

    def _configs(self, resource_type, entity, node, problems):
        at = {"zxid": node.stat.mzxid}
        for name, value in znodes.config(node.data, node.path).items():
            if resource_type == "broker" and znodes.is_password_config(name):
                try:
                    value = decode(value, self._secrets)
                except UndecodablePassword as error:
                    problems.append(Problem(node.path, f"{name} cannot be read: {error}"))
                    yield form.unread_config(resource_type, entity, name, str(error), at)
                    continue
            yield form.config(resource_type, entity, name, value, self._digests, at)

    def _entity_config(self, names, node, problems):
        if len(names) == 5:  # /config/users/U/clients is a directory
            return
        at = {"zxid": node.stat.mzxid}
        configs = dict(znodes.config(node.data, node.path))
        entity = {_QUOTA_ENTITIES[names[2]]: _name(names[3])}
        if len(names) == 6:
            entity["client-id"] = _name(names[5])
        elif names[2] == "users":
            user = znodes.desanitize(names[3])
            for mechanism in znodes.SCRAM_MECHANISMS:
                if mechanism in configs:
                    yield self._scram(user, mechanism, configs.pop(mechanism), node)
        for key, text in configs.items():
            try:
                value = float(text)
            except ValueError:
                problems.append(Problem(node.path, f"quota {key!r} is not a number, on which the copy to KRaft aborts"))
                continue
            if not math.isfinite(value):
                problems.append(Problem(node.path, f"quota {key!r} is not finite"))
                continue
            yield form.quota(entity, key, value, at)

    def _scram(self, user, mechanism, text, node):
        credential = znodes.scram_credential(text, node.path, mechanism)
        keys = (credential["salt"], credential["stored_key"], credential["server_key"])
        try:
            digest = self._digests.scram(user, mechanism, *keys, credential["iterations"])
        except ValueError:
            raise znodes.ZnodeError(node.path, f"{mechanism} is not a SCRAM credential") from None
        return form.scram(user, mechanism, credential["iterations"], digest, {"zxid": node.stat.mzxid})

    def _acl(self, names, node, problems):
        stores = [(name, store) for name, store in znodes.ACL_STORES.items() if node.path.startswith(store + "/")]
        if not stores:
            return
        pattern_type, store = stores[0]
        type_name, name = node.path[len(store) + 1 :].split("/", 1)
        entries = znodes.acls(node.data, node.path)
        resource_type = znodes.acl_resource_type(type_name)
        if entries and resource_type == "UNKNOWN":
            problems.append(
                Problem(node.path, f"resource type {type_name!r} is unknown to Kafka, which passes it over")
            )
        elif entries and "/" in name:
            # AclAuthorizer.loadAllAcls lists one level below the type
            reason = "a resource name with a slash: Kafka loses its ACLs at the next start, and in the copy"
            problems.append(Problem(node.path, reason))
        else:
            for entry in entries:
                yield form.acl(resource_type, pattern_type, name, **entry, at={"zxid": node.stat.mzxid})

    def _delegation_token(self, names, node, problems):
        token = znodes.delegation_token(node.data, node.path)
        if token is not None:
            yield form.delegation_token(**token, at={"zxid": node.stat.mzxid})

    def _producer_ids(self, names, node, problems):
        block = znodes.producer_id_block(node.data, node.path)
        if block is not None:
            at = {"zxid": node.stat.mzxid}
            yield form.producer_ids(block["next_producer_id"], block["first_producer_id"], at)

    def _feature(self, names, node, problems):
        for name, level in znodes.feature(node.data, node.path)["features"].items():
            yield form.feature(name, level, {"zxid": node.stat.mzxid})

    def _broker(self, names, node, problems):
        if not names[-1].isdigit():
            raise znodes.ZnodeError(node.path, "is no broker id")
        yield form.broker(int(names[-1]), {"fenced": False, "epoch": node.stat.czxid}, {"zxid": node.stat.czxid})


def _name(znode_name):
    return None if znode_name == znodes.DEFAULT_ENTITY else znodes.desanitize(znode_name)


_READERS = {
    "topic": Znodes._topic,
    "partition_state": Znodes._partition_state,
    "topic_config": Znodes._topic_config,
    "broker_config": Znodes._broker_config,
    "client_config": Znodes._entity_config,
    "user_config": Znodes._entity_config,
    "ip_config": Znodes._entity_config,
    "acl": Znodes._acl,
    "delegation_token": Znodes._delegation_token,
    "producer_id_block": Znodes._producer_ids,
    "feature": Znodes._feature,
    "broker": Znodes._broker,
}
