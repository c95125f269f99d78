# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rehearsal's znodes from a cluster's: the same topics, configs, ACLs, quotas and users, on other brokers. Pure.

Brokers that take over the znodes start with empty log directories. Kafka keeps the state of a partition in ZooKeeper,
so its controller makes each of them leader or follower of an empty replica, with the topic's id, and all of them are in
sync. What names an address, a file or a class of the cluster's hosts is left out, and so is every secret: a rehearsal's
broker must not reach the cluster, and its log must not show a password.
"""

from __future__ import annotations

import base64
import itertools
import json
import re
from collections import Counter
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Sequence, Set, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import rehearsal_id
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import unknown_znodes, znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import harmless_configs

MOST_BROKERS = 3
OPEN_ACL = [{"perms": 31, "scheme": "world", "id": "anyone"}]
NEW = znodes.Stat(**dict.fromkeys(znodes.Stat._fields, 0))
_MIN_ISR = "min.insync.replicas"
_NUMBERS = ("BOOLEAN", "SHORT", "INT", "LONG", "DOUBLE")
_TEXTS = frozenset(  # of the settings that are text, those that name nothing of a host
    ("cleanup.policy", "compression.type", "log.cleanup.policy", "log.message.timestamp.type", "message.timestamp.type")
)
_OF_TIERS = re.compile(r"^(remote\.|local\.retention|log\.local\.retention)")
_THROTTLE = re.compile(r"\.replication\.throttled\.(rate|replicas)$")
_OF_A_HOST = re.compile(  # numbers that are of the hosts and not of the cluster
    r"^(broker\.id|node\.id|reserved\.broker|zookeeper\.|controller\.quorum\.|ssl\.|sasl\.|password\.|delegation\.token\."
    r"|auto\.include|alter\.config\.policy|server\.max\.startup|unstable\.)"
)
_KEYS_LENGTH = {"SCRAM-SHA-256": 32, "SCRAM-SHA-512": 64}
_KEPT = frozenset(
    ("directory", "partition", "acl", "feature", "controller_epoch", "broker_sequence_id", "delegation_token")
)
_WITHOUT_TRACE = frozenset(("controller", "broker", "notification", "preferred_replica_election"))


class Source(NamedTuple):
    """What a rehearsal has to know of a cluster before it is built.

    `brokers`: ids that registered or have replicas; `registered`: those that registered; `endpoints`: hosts that they
    registered with; `replication`: {topic: the least number of replicas of its partitions}; `counts`: {kind: znodes};
    `replicas`: of all partitions.
    """

    cluster_id: str
    brokers: List[int]
    registered: List[int]
    endpoints: List[str]
    topics: int
    partitions: int
    replicas: int
    replication: Mapping[str, int]
    counts: Mapping[str, int]
    data_bytes: int


class Plan(NamedTuple):
    """Which brokers and controllers a rehearsal has. `replicas`: of all partitions on them."""

    brokers: List[int]
    controllers: List[int]


def survey(nodes: Iterable[znodes.Znode]) -> Source:
    """Return what the znodes say of their cluster. Raises znodes.ZnodeError where one is not as Kafka writes it."""
    cluster_id = ""
    registered: Set[int] = set()
    assigned: Set[int] = set()
    endpoints: Set[str] = set()
    replication: Dict[str, int] = {}
    counts: Counter = Counter()
    partitions = replicas = data_bytes = 0
    for node in nodes:
        kind = znodes.kind(node.path)
        counts[kind] += 1
        data_bytes += len(node.data or b"")
        if kind == "cluster_id":
            cluster_id = znodes.cluster_id(node.data, node.path)
        elif kind == "broker":
            registered.add(int(node.path.rpartition("/")[2]))
            found = znodes.broker(node.data, node.path)["endpoints"]
            endpoints.update(endpoint["host"] for endpoint in found.values() if endpoint["host"])
        elif kind == "topic":
            topic = znodes.topic(node.data, node.path)["partitions"]
            targets = [_target(entry) for entry in topic.values()]
            partitions += len(targets)
            replicas += sum(map(len, targets))
            assigned.update(broker for target in targets for broker in target)
            if targets:
                replication[node.path[len(znodes.TOPICS) + 1 :]] = min(map(len, targets))
    return Source(
        cluster_id,
        sorted(registered | assigned),
        sorted(registered),
        sorted(endpoints),
        counts["topic"],
        partitions,
        replicas,
        replication,
        dict(sorted(counts.items())),
        data_bytes,
    )


def plan(source: Source, hosts: int) -> Plan:
    """Return the nodes of a rehearsal on a number of hosts: at most MOST_BROKERS brokers, with ids of the cluster's,
    and a controller a host, with ids that no broker has."""
    alive = source.registered or source.brokers
    brokers = alive[: min(hosts, MOST_BROKERS)]
    taken = set(source.brokers)
    free = (number for number in itertools.count(900) if number not in taken)
    return Plan(brokers, list(itertools.islice(free, hosts)))


def _target(entry: Mapping[str, Any]) -> List[int]:
    """Return the replicas of a partition, those of the end of a reassignment that is in flight."""
    return [broker for broker in entry["replicas"] if broker not in entry["removing"]] or list(entry["replicas"])


class Brokers:
    """The rehearsal's brokers in place of the cluster's: one that both have stays, the others are dealt out."""

    def __init__(self, source: Sequence[int], brokers: Sequence[int]) -> None:
        self.ids = list(brokers)
        others = [broker for broker in source if broker not in self.ids]
        self._first = {broker: place for place, broker in enumerate(self.ids)}
        self._first.update({broker: place % len(self.ids) for place, broker in enumerate(others)})

    def one(self, broker: int) -> int:
        """Return the broker in place of one; any for one that the cluster no longer has."""
        return self.ids[self._first.get(broker, 0)]

    def replicas(self, replicas: Sequence[int]) -> Dict[int, int]:
        """Return {broker: the one in its place} of a partition: each at most once, in the order of the replicas. With
        more replicas than brokers, the last ones have none."""
        found: Dict[int, int] = {}
        for broker in replicas:
            free = [
                candidate
                for step in range(len(self.ids))
                for candidate in [self.ids[(self._first.get(broker, 0) + step) % len(self.ids)]]
                if candidate not in found.values()
            ]
            if not free:
                break
            found[broker] = free[0]
        return found


class Rehearsal:
    """Makes the znodes of a rehearsal. A topic's znode must come before the states of its partitions.

    :ivar left: {what was left out or replaced: how many}, without values
    :ivar blocks: {what would block the cluster's own migration and is not rehearsed: how many}
    :ivar replicas: {broker: replicas that it has}
    """

    def __init__(self, source: Source, brokers: Sequence[int], cluster_id: str, fresh: rehearsal_id.Fresh) -> None:
        """`fresh`: returns that many random bytes."""
        self.source = source
        self.brokers = Brokers(source.brokers, brokers)
        self.cluster_id = cluster_id
        self.left: Counter = Counter()
        self.blocks: Counter = Counter()
        self.replicas: Counter = Counter()
        self._fresh = fresh
        self._assigned: Dict[Tuple[str, str], Dict[int, int]] = {}
        self._made: Dict[str, Callable[[znodes.Znode], bytes | None]] = {
            "cluster_id": self._cluster_id,
            "topic": self._topic,
            "partition_state": self._state,
            "topic_config": self._topic_config,
            "broker_config": self._broker_config,
            "client_config": self._quotas,
            "ip_config": self._quotas,
            "user_config": self._user,
            "producer_id_block": self._producer_ids,
        }

    def nodes(self, source: Iterable[znodes.Znode]) -> Iterator[znodes.Znode]:
        """Yield the znodes of the rehearsal, each with an ACL that everyone may change. Raises znodes.ZnodeError."""
        for node in source:
            kind = znodes.kind(node.path)
            if node.stat.ephemeralOwner or kind in _WITHOUT_TRACE:
                if kind == "preferred_replica_election":
                    self.blocks["preferred leader election that is pending"] += 1
                continue
            if kind in self._made:
                data = self._made[kind](node)
                if data is _DROPPED:
                    continue
            elif kind in _KEPT:
                data = node.data
                if kind == "acl" and _has_slash(node.path):
                    self.blocks["ACL whose resource has a slash in its name"] += 1
                    continue
            else:
                self._leave(kind, node)
                continue
            yield znodes.Znode(node.path, data, OPEN_ACL, NEW)

    def _leave(self, kind: str, node: znodes.Znode) -> None:
        if kind == "reassign_partitions":
            self.blocks["reassignment by /admin/reassign_partitions"] += 1
        elif kind == "delete_topic":
            self.blocks["topic whose deletion is pending"] += 1
        elif kind == "migration":
            if (znodes.migration(node.data)["kraft_metadata_offset"] or -1) > 0:
                self.blocks["/migration of an earlier attempt"] += 1
        elif kind == "old_consumer":
            self.left["znode of an old consumer"] += 1
        else:
            self.left[f"znode that Apache Kafka does not have ({unknown_znodes.pattern(node.path)})"] += 1

    def _cluster_id(self, _node: znodes.Znode) -> bytes:
        return _json({"version": "1", "id": self.cluster_id})

    def _topic(self, node: znodes.Znode) -> bytes:
        name = node.path[len(znodes.TOPICS) + 1 :]
        topic = znodes.topic(node.data, node.path)
        made = {}
        for number, entry in topic["partitions"].items():
            if entry["adding"] or entry["removing"]:
                self.blocks["partition whose reassignment is in flight"] += 1
            target = _target(entry)
            placed = self._assigned[name, number] = self.brokers.replicas(target)
            made[number] = list(placed.values())
            self.replicas.update(made[number])
            if len(placed) < len(target):
                self.left["partition with more replicas than the rehearsal has brokers"] += 1
        value = json.loads(node.data.decode())
        value = {key: value[key] for key in ("version", "topic_id") if key in value}
        if value.get("version", 1) >= 2:
            value.update(adding_replicas={}, removing_replicas={})
        return _json({**value, "partitions": made})

    def _state(self, node: znodes.Znode) -> Any:
        _root, _brokers, _topics, name, _partitions, number, _state = node.path.split("/")
        placed = self._assigned.pop((name, number), None)
        if placed is None:
            return _DROPPED  # the topic no longer has this partition
        state = znodes.partition_state(node.data, node.path)
        replicas = list(placed.values())
        if set(placed) - set(state["isr"]) or state["leader"] < 0:
            self.blocks["partition that lacks replicas in sync"] += 1
        return _json(
            {
                "controller_epoch": state["controller_epoch"],
                "leader": placed.get(state["leader"], replicas[0] if replicas else -1),
                "version": 1,
                "leader_epoch": state["leader_epoch"],
                "isr": replicas,
            }
        )

    def _topic_config(self, node: znodes.Znode) -> bytes:
        name, kept = node.path.rpartition("/")[2], {}
        for key, value in znodes.config(node.data, node.path).items():
            if _THROTTLE.search(key):
                self.blocks["topic with a replication throttle"] += 1
            elif key not in harmless_configs.HARMLESS or _OF_TIERS.match(key):
                self.left[f"config {_shown(key)} of topics"] += 1
            else:
                kept[key] = value
        if _MIN_ISR in kept:
            kept[_MIN_ISR] = self._min_isr(name, kept[_MIN_ISR])
        return _config(kept)

    def _min_isr(self, topic: str, text: str) -> str:
        """Return the least number of replicas in sync that leaves as many replicas to miss as the topic has."""
        had = self.source.replication.get(topic, 0)
        fewer = had - min(had, len(self.brokers.ids))
        if not fewer or not text.strip().isdigit():
            return text
        self.left[f"config {_MIN_ISR} of topics, lowered with the number of replicas"] += 1
        return str(max(1, int(text) - fewer))

    def _broker_config(self, node: znodes.Znode) -> Any:
        entity = node.path.rpartition("/")[2]
        configs = znodes.config(node.data, node.path)
        if entity != znodes.DEFAULT_ENTITY and entity not in map(str, self.brokers.ids):
            self.left["configs of a broker that the rehearsal does not have"] += 1
            return _DROPPED
        kept = {}
        for key, value in configs.items():
            if _THROTTLE.search(key):
                self.blocks["broker with a replication throttle"] += 1
            elif znodes.is_password_config(key):
                self.left[f"password {_shown(key)} of brokers"] += 1
            elif is_comparable(key):
                kept[key] = value
            else:
                self.left[f"config {_shown(key)} of brokers"] += 1
        return _config(kept)

    def _quotas(self, node: znodes.Znode) -> bytes:
        kept = {}
        for key, value in znodes.config(node.data, node.path).items():
            if key in harmless_configs.HARMLESS:
                kept[key] = value
            else:
                self.left[f"config {_shown(key)} of users, clients or addresses"] += 1
        return _config(kept)

    def _user(self, node: znodes.Znode) -> bytes | None:
        if node.data is None or node.path.endswith("/clients"):
            return node.data
        configs = znodes.config(node.data, node.path)
        kept = {}
        for mechanism in znodes.SCRAM_MECHANISMS:
            if mechanism in configs:
                kept[mechanism] = self._credential(configs[mechanism], node.path, mechanism)
                self.left[f"{mechanism} credential, replaced by a random one with as many iterations"] += 1
        for key, value in configs.items():
            if key in harmless_configs.HARMLESS:
                kept[key] = value
            elif key not in znodes.SCRAM_MECHANISMS:
                self.left[f"config {_shown(key)} of users, clients or addresses"] += 1
        return _config(kept)

    def _credential(self, text: str, path: str, mechanism: str) -> str:
        iterations = znodes.scram_credential(text, path, mechanism)["iterations"]
        size = _KEYS_LENGTH[mechanism]
        salt, stored, server = (base64.b64encode(self._fresh(length)).decode() for length in (24, size, size))
        return f"salt={salt},stored_key={stored},server_key={server},iterations={iterations}"

    def _producer_ids(self, node: znodes.Znode) -> bytes | None:
        if znodes.producer_id_block(node.data, node.path) is None:
            return node.data
        value = json.loads(node.data.decode())
        return _json({**value, "broker": self.brokers.one(int(value["broker"]))})


_DROPPED: Any = object()


def is_comparable(name: str) -> bool:
    """Return whether a broker's setting is a number or a text that means the same on another host: no address, no path,
    no class, no secret, and no identity."""
    if _OF_A_HOST.match(name) or _OF_TIERS.match(name) or _THROTTLE.search(name):
        return False
    return harmless_configs.TYPES.get(name) in _NUMBERS or name in _TEXTS


def comparable(settings: Mapping[str, Any]) -> Dict[str, str]:
    """Return the settings of a broker that the rehearsal's brokers take over."""
    return {key: str(value) for key, value in sorted(settings.items()) if value is not None and is_comparable(key)}


def _has_slash(path: str) -> bool:
    """Return whether the resource of an ACL's znode has a slash in its name (znode_items.Reader)."""
    store = next((store for store in znodes.ACL_STORES.values() if path.startswith(f"{store}/")), "")
    return path[len(store) + 1 :].count("/") > 1


def _config(configs: Mapping[str, str]) -> bytes:
    return _json({"version": 1, "config": configs})


def _shown(key: str) -> str:
    """Return the name of a config: one that Kafka does not know may be anything."""
    return key if re.fullmatch(r"[\w.-]{1,100}", key) else "with an unusual name"


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
