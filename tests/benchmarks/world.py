# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generate the metadata of one large cluster in dual-write, the same in ZooKeeper, three voters and three brokers.

    PYTHONPATH=.build:.:spark .venv/bin/python tests/benchmarks/world.py DIRECTORY --partitions 1000000 [--plant K]

Content depends on the arguments only. DIRECTORY gets:

- `zookeeper/version-2/snapshot.*` and `log.*`: a data directory of ZooKeeper. Kafka is below CHROOT, beside another
  tenant. The log changes the snapshot, so that it must be replayed.
- `metadata_log/__cluster_metadata-0`: a checkpoint, and a segment that changes, adds and removes; one transaction is
  committed, one aborted. `metadata_log-1002` has the same files, `metadata_log-1003` ends at the same offset.
- `brokers/<id>`: answers of three brokers in KRaft mode, `controllers/<id>`: of the voters, for world_brokers.py.
- `planted.json`: the differences that `--plant` adds, as the job names them: see Plant.
- `world.json`: the facts that job.json needs, and the counts of each kind.
"""

from __future__ import annotations

import argparse
import base64
import functools
import json
import os
import pathlib
import random
import resource
import shutil
import struct
import time
import zlib
from typing import Any, Dict, List, NamedTuple, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core import kraft_config
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import enums, znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.kafka_primitives import (
    NO_TAGS,
    compact_array,
    compact_string,
    unsigned_varint,
)
from quorumshift_spark import normal_form as form

from tests.unit.formats import metadata_batches

CHROOT = "/kafka"
CLUSTER_ID = "Qs7KfZk2TIK1n0nQ5Qm3Tw"
BROKERS = range(1, 31)
SERVED = (1, 2, 3)
CONTROLLER, KRAFT_EPOCH, ZK_EPOCH = 1001, 7, 5
METADATA_VERSION = 21  # 3.9-IV0, the highest of Kafka 3.9
NEXT_PRODUCER_ID = 7_000_000
CHECKPOINT_END = 50_000_000
SNAPSHOT_ZXID = 0x3_1000_0000
TIME_MS = 1_750_000_000_000
VOTERS = (CONTROLLER, 1002, 1003)
# 1002 has the leader's bytes, 1003 differences of its own
ZOOKEEPER, LOG, OTHER_LOG = "zookeeper", "metadata_log", "metadata_log:1003"
STORES = (ZOOKEEPER, LOG, OTHER_LOG, *(f"broker:{number}" for number in SERVED))
NODES = ("broker:2", "broker:3", "controller:1002", "controller:1003")
SETTINGS = dict.fromkeys(sorted(kraft_config.APPLIED_BY_CONTROLLERS), "1")
_BATCH = 500


class Partition(NamedTuple):
    """A partition. `before`: what the checkpoint and the snapshot hold, None where that is the same."""

    replicas: Tuple[int, ...]
    isr: Tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    before: Partition | None = None


class Topic(NamedTuple):
    """A topic. `is_late`: created after the checkpoint."""

    name: str
    id: bytes
    configs: Dict[str, str]
    partitions: List[Partition]
    is_late: bool


class Plant(NamedTuple):
    """A planted difference: the store that has another value, and the difference as the job lists it: `kind`, `key`
    (canonical JSON text) and `field` (None: the entity is missing in the store)."""

    store: str
    kind: str
    key: str
    field: str | None
    what: str


class Tables(NamedTuple):
    """What does not grow with partitions. `configs`: {(broker or None, name): value}; `quotas`: {(entity, key): value};
    `scram`: {(user, mechanism's code): (salt, stored key, server key, iterations)}; `acls`: {content: id};
    `tokens`: {token id: (owner, requester, renewer)}; `settings`: {name: value} of a node's file."""

    configs: Dict[Tuple[int | None, str], str]
    quotas: Dict[Tuple[tuple, str], float]
    scram: Dict[Tuple[str, int], Tuple[bytes, bytes, bytes, int]]
    acls: Dict[tuple, bytes]
    tokens: Dict[str, Tuple[str, str, str]]
    settings: Dict[Any, str]


_TRIPLES = [
    [tuple((first + step * distance) % 30 + 1 for step in range(3)) for distance in (1, 2, 3, 4, 7, 11, 13, 14)]
    for first in range(30)
]
_TOPIC_CONFIGS = {
    "retention.ms": ("3600000", "86400000", "604800000", "1209600000"),
    "cleanup.policy": ("compact", "delete", "compact,delete"),
    "min.insync.replicas": ("2",),
    "segment.bytes": ("268435456", "536870912"),
    "max.message.bytes": ("2097152", "10485760"),
    "compression.type": ("lz4", "zstd", "producer"),
    "unclean.leader.election.enable": ("false",),
}
_QUOTA_KEYS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")
_READ, _WRITE, _DESCRIBE = (enums.OPERATIONS.index(name) for name in ("READ", "WRITE", "DESCRIBE"))
_TOPIC, _GROUP = (enums.RESOURCE_TYPES.index(name) for name in ("TOPIC", "GROUP"))
_LITERAL, _PREFIXED = (enums.PATTERN_TYPES.index(name) for name in ("LITERAL", "PREFIXED"))
_DENY, _ALLOW = (enums.PERMISSIONS.index(name) for name in ("DENY", "ALLOW"))


class World:
    """The metadata of a cluster of `topics` topics of `size` partitions, with `planted` differences."""

    def __init__(self, topics: int, size: int, seed: int = 1, planted: int = 0) -> None:
        self.topics, self.size, self.seed = topics, size, seed
        self._tables = self._make_tables()
        self.plants: List[Plant] = []
        self._changes: Dict[Tuple[str, Any], Tuple[str, Any]] = {}
        self._plant(planted)

    def topic(self, number: int) -> Topic:
        """Return a topic without planted differences."""
        rng = random.Random(self.seed << 32 | number)
        is_late = number % 50 == 49
        partitions = []
        draw = rng.getrandbits
        for index in range(self.size):
            bits = draw(32)
            replicas = _TRIPLES[(number * 7 + index) % 30][bits & 7]
            leader = replicas[bits >> 3 & 31 == 0]
            isr = replicas if bits >> 8 & 31 else replicas[:2]
            epoch = 2 + (bits >> 13 & 63)
            after = Partition(replicas, isr, leader, epoch, epoch + (bits >> 19 & 15))
            if not is_late and not bits >> 23 & 63:
                # The leader changed, and the in-sync replicas with it
                was = Partition(replicas, (replicas[0],), replicas[0], epoch - 1, after.partition_epoch - 1)
                after = after._replace(before=was)
            partitions.append(after)
        configs = {}
        if number % 3 == 1:
            for key in rng.sample(sorted(_TOPIC_CONFIGS), rng.randint(1, 4)):
                configs[key] = rng.choice(_TOPIC_CONFIGS[key])
        return Topic(_name(number), rng.randbytes(16), configs, partitions, is_late)

    def in_store(self, topic: Topic, number: int, store: str) -> Topic:
        """Return a topic as a store has it."""
        change = self._changes.get((store, number))
        return _changed_topic(topic, *change) if change else topic

    def tables(self, store: str) -> Tables:
        """Return the tables as a store has them."""
        changed = Tables(*(dict(table) for table in self._tables))
        for (of, key), (name, value) in self._changes.items():
            if of != store or not isinstance(key, tuple):
                continue
            if value is None:
                del getattr(changed, name)[key]
            else:
                getattr(changed, name)[key] = value
        return changed

    def _make_tables(self) -> Tables:
        rng = random.Random(self.seed)
        users = [f"user-{number:04d}" for number in range(max(4, self.topics // 20))]
        configs: Dict[Tuple[int | None, str], str] = {(None, "message.max.bytes"): "2097152"}
        configs[(None, "log.cleaner.threads")] = "2"
        for broker in BROKERS:
            configs[(broker, "num.replica.fetchers")] = str(1 + broker % 4)
        quotas: Dict[Tuple[tuple, str], float] = {((("user", None),), "producer_byte_rate"): 1048576.0}
        quotas[((("client-id", None),), "request_percentage")] = 150.5
        scram = {}
        for number, user in enumerate(users):
            for code in (1, 2) if number % 4 == 0 else (2,):
                scram[(user, code)] = (rng.randbytes(26), rng.randbytes(32 * code), rng.randbytes(32 * code), 8192)
            quotas[((("user", user),), rng.choice(_QUOTA_KEYS))] = float(rng.randrange(1 << 20, 1 << 30))
            if number % 3 == 0:
                quotas[((("client-id", f"app {number}"),), "consumer_byte_rate")] = float(rng.randrange(1 << 30))
                entity = (("client-id", f"app {number}"), ("user", user))
                quotas[(entity, "request_percentage")] = rng.randrange(1, 200) / 4
            if number % 10 == 0:
                address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
                quotas[((("ip", address),), "connection_creation_rate")] = float(rng.randrange(1, 100))
        acls: Dict[tuple, bytes] = {}
        for number in range(0, self.topics, 2):
            user = f"User:{users[number // 2 % len(users)]}"
            name = _name(number)
            acls[(_TOPIC, _LITERAL, name, user, "*", _READ, _ALLOW)] = rng.randbytes(16)
            acls[(_TOPIC, _LITERAL, name, user, "*", _WRITE, _ALLOW)] = rng.randbytes(16)
        for number, user in enumerate(users):
            acls[(_GROUP, _PREFIXED, f"{user}.", f"User:{user}", "*", _READ, _ALLOW)] = rng.randbytes(16)
            if number % 10 == 0:
                acls[(_TOPIC, _PREFIXED, f"secret-{number}", "User:*", "*", _DESCRIBE, _DENY)] = rng.randbytes(16)
        tokens = {}
        for user in users[: max(2, len(users) // 5)]:
            text = base64.urlsafe_b64encode(rng.randbytes(16)).decode().rstrip("=")
            tokens[text] = (f"User:{user}", "User:admin", f"User:{users[0]}")
        return Tables(configs, quotas, scram, acls, tokens, {(name,): value for name, value in SETTINGS.items()})

    # --- planted differences ---

    def _plant(self, count: int) -> None:
        rng = random.Random(self.seed + 1)
        used = set()
        combinations = [(kind, store) for store in STORES for kind in _PLANTED]
        combinations += [("setting", node) for node in NODES]
        rng.shuffle(combinations)
        for number in range(count):
            kind, store = combinations[number % len(combinations)]
            while True:
                plant, key, change = getattr(self, f"_plant_{kind}")(rng, store)
                # Another store's difference of the same entity would make them indistinguishable
                if (plant.kind, key) not in used and ("topic", key) not in used:
                    break
            used.add((plant.kind, key))
            if isinstance(key, int):
                used.add(("topic", key))
            self.plants.append(plant)
            self._changes[(store, key)] = change

    def _plant_partition(self, rng, store, field, what):
        number = rng.randrange(self.topics)
        topic = self.topic(number)
        index = len(topic.partitions) - 1 if field is None else rng.randrange(len(topic.partitions))
        key = form.canonical([topic.name, index])
        return Plant(store, "partition", key, field, what), number, (field or "missing", index)

    def _plant_leader_epoch(self, rng, store):
        return self._plant_partition(rng, store, "leader_epoch", "a leader epoch is one higher")

    def _plant_isr(self, rng, store):
        return self._plant_partition(rng, store, "isr", "the last replica is missing in the ISR, or added to it")

    def _plant_leader(self, rng, store):
        return self._plant_partition(rng, store, "leader", "no leader")

    def _plant_missing_partition(self, rng, store):
        return self._plant_partition(rng, store, None, "a topic's last partition is missing")

    def _plant_topic_id(self, rng, store):
        number = rng.randrange(self.topics)
        key = form.canonical([self.topic(number).name])
        return Plant(store, "topic", key, "id", "another topic id"), number, ("id", None)

    def _plant_config(self, rng, store):
        number = rng.randrange(self.topics // 3) * 3 + 1
        topic = self.topic(number)
        name = sorted(topic.configs)[0]
        key = form.canonical(["topic", topic.name, name])
        return Plant(store, "config", key, "value", "another value of a topic's config"), number, ("config", name)

    def _plant_missing_acl(self, rng, store):
        content = rng.choice(list(self._tables.acls))
        key = form.acl_of_codes(dict(zip(_ACL_FIELDS, content))).key
        return Plant(store, "acl", key, None, "an ACL is missing"), content, ("acls", None)

    def _plant_scram(self, rng, store):
        user, code = rng.choice(list(self._tables.scram))
        salt, stored_key, server_key, iterations = self._tables.scram[(user, code)]
        if store.startswith("broker:"):
            field, value = "iterations", (salt, stored_key, server_key, iterations + 1)
        else:
            field, value = "digest", (salt, stored_key[::-1], server_key, iterations)
        key = form.canonical([user, enums.SCRAM_MECHANISMS[code]])
        return Plant(store, "scram", key, field, "another SCRAM credential"), (user, code), ("scram", value)

    def _plant_quota(self, rng, store):
        entity, name = rng.choice(list(self._tables.quotas))
        value = self._tables.quotas[(entity, name)] + 1
        key = form.quota(dict(entity), name, value).key
        return Plant(store, "quota", key, "value", "another quota"), (entity, name), ("quotas", value)

    def _plant_setting(self, rng, store):
        name = rng.choice(sorted(SETTINGS))
        what = "another value in a node's file"
        return Plant(store, "setting", form.canonical([name]), "value", what), (name,), ("settings", "2")


def _name(number: int) -> str:
    """Return the name of a topic."""
    domain = ("payments", "orders", "search", "logistics", "fraud", "ml.features", "billing-eu")[number % 7]
    return f"{domain}.entity-{number:06d}" if number else "__consumer_offsets"


_ACL_FIELDS = ("resourceType", "patternType", "resourceName", "principal", "host", "operation", "permissionType")
_PLANTED = ("leader_epoch", "isr", "leader", "missing_partition", "topic_id", "config", "missing_acl", "scram", "quota")


def _changed_topic(topic: Topic, what: str, where: Any) -> Topic:
    partitions = list(topic.partitions)
    if what == "id":
        return topic._replace(id=bytes(reversed(topic.id)))
    if what == "config":
        other = next(value for value in ("1048577", "1048578") if value != topic.configs[where])
        return topic._replace(configs={**topic.configs, where: other})
    if what == "missing":
        return topic._replace(partitions=partitions[:-1])
    changed = partitions[where]
    if what == "leader_epoch":
        before = changed.before and changed.before._replace(leader_epoch=changed.leader_epoch)
        changed = changed._replace(leader_epoch=changed.leader_epoch + 1, before=before)
    elif what == "leader":
        changed = changed._replace(leader=-1)
    else:
        changed = changed._replace(isr=changed.replicas if len(changed.isr) == 2 else changed.replicas[:2])
    partitions[where] = changed
    return topic._replace(partitions=partitions)


# --- ZooKeeper -----------------------------------------------------------------------------------------

_NODE_TAIL = struct.Struct(">qqqqqiiiqq")
_ACLS = {  # as Kafka sets them with and without zookeeper.set.acl
    1: [(31, "world", "anyone")],
    2: [(31, "sasl", "kafka"), (1, "world", "anyone")],
}
_SESSION = 0x1_0000_1234_0001
_SESSION_MS = 86_400_000


def _jute(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


class ZooKeeperFiles:
    """Writes a snapshot, parents before children, and the transaction log after it."""

    def __init__(self, directory: pathlib.Path) -> None:
        home = directory / "version-2"
        home.mkdir(parents=True)
        self._snapshot = open(home / f"snapshot.{SNAPSHOT_ZXID:x}", "wb", 1 << 20)  # noqa: SIM115
        self._log = open(home / f"log.{SNAPSHOT_ZXID + 1:x}", "wb", 1 << 20)  # noqa: SIM115
        self._sum = 1
        self.zxid = SNAPSHOT_ZXID
        self.znodes = 0
        self._created = 0x3_0000_0000
        self._log.write(struct.pack(">4siq", b"ZKLG", 2, 0))
        acls = b"".join(
            struct.pack(">qi", index, len(entries))
            + b"".join(struct.pack(">i", perms) + _jute(s.encode()) + _jute(i.encode()) for perms, s, i in entries)
            for index, entries in _ACLS.items()
        )
        sessions = struct.pack(">iqi", 1, _SESSION, _SESSION_MS)
        self._write(struct.pack(">4siq", b"ZKSN", 2, 0) + sessions + struct.pack(">i", len(_ACLS)) + acls)

    def node(self, path: str, data: bytes | None, children: int = 0, version: int = 0, **more: int) -> None:
        """Write a znode with `children` children; `acl`, `owner`: its ACL's index and its session."""
        self._created += 1
        self._write(self._node(path, data, children, version, **more))

    def topic(self, topic: Topic) -> None:
        """Write a topic with its partitions; changed states as they were, and their changes to the log."""
        path = f"{CHROOT}{znodes.TOPICS}/{topic.name}"
        assignment = ",".join(f'"{n}":{_listed(p.replicas)}' for n, p in enumerate(topic.partitions))
        value = (
            f'{{"partitions":{{{assignment}}},"topic_id":"{_uuid(topic.id)}","adding_replicas":{{}},'
            '"removing_replicas":{},"version":3}'
        )
        self._created += 1
        made = self._created
        tail = _NODE_TAIL.pack(2, made, made, TIME_MS, TIME_MS, 0, 1, 0, 0, made)
        pieces = [
            _jute(path.encode()),
            _jute(value.encode()),
            _NODE_TAIL.pack(2, made, made, TIME_MS, TIME_MS, 0, 1, 0, 0, made),
        ]
        pieces += [_jute(f"{path}/partitions".encode()), _jute(None)]
        pieces.append(_NODE_TAIL.pack(2, made, made, TIME_MS, TIME_MS, 0, len(topic.partitions), 0, 0, made))
        pack = struct.Struct(">i").pack
        for number, after in enumerate(topic.partitions):
            state = after.before or after
            parent = f"{path}/partitions/{number}".encode()
            data = _state(state, ZK_EPOCH)
            pieces += (
                pack(len(parent)),
                parent,
                b"\xff\xff\xff\xff",
                tail,
                pack(len(parent) + 6),
                parent,
                b"/state",
                pack(len(data)),
                data,
                _NODE_TAIL.pack(2, made, made + 1, TIME_MS, TIME_MS + 1, state.partition_epoch, 0, 0, 0, made),
            )
            if after.before:
                self.set_data(f"{path}/partitions/{number}/state", _state(after, KRAFT_EPOCH), after.partition_epoch)
        self._created += 1
        self.znodes += 2 * len(topic.partitions) + 2
        self._write(b"".join(pieces))

    def set_data(self, path: str, data: bytes, version: int) -> None:
        """Log a setData."""
        self.zxid += 1
        body = struct.pack(">qiqqi", _SESSION, self.zxid & 0x7FFFFFFF, self.zxid, TIME_MS + 60_000, 5)
        body += _jute(path.encode()) + _jute(data) + struct.pack(">i", version)
        self._log.write(struct.pack(">qi", zlib.adler32(body), len(body)) + body + b"B")

    def close(self) -> None:
        """End both files; the log is padded with zeros, as ZooKeeper preallocates it."""
        self._write(_jute(b"/"))
        self._snapshot.write(struct.pack(">q", self._sum) + _jute(b"/"))
        self._snapshot.close()
        self._log.truncate((self._log.seek(0, os.SEEK_CUR) >> 16) + 1 << 16)
        self._log.close()

    def _node(self, path, data, children, version, acl=1, owner=0):
        self.znodes += 1
        made = self._created
        stat = (made, made, TIME_MS, TIME_MS, version, children, 0, owner, made)
        return _jute(path.encode()) + _jute(data) + _NODE_TAIL.pack(acl, *stat)

    def _write(self, piece):
        self._sum = zlib.adler32(piece, self._sum)
        self._snapshot.write(piece)


def _state(partition: Partition, controller_epoch: int) -> bytes:
    return (
        f'{{"controller_epoch":{controller_epoch},"leader":{partition.leader},"version":1,"leader_epoch":'
        f'{partition.leader_epoch},"isr":{_listed(partition.isr)}}}'
    ).encode()


@functools.lru_cache(maxsize=None)
def _listed(numbers: Tuple[int, ...]) -> str:
    return json.dumps(numbers, separators=(",", ":"))


def _uuid(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _json(**value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _begin_zookeeper(files: ZooKeeperFiles, topics: int) -> None:
    """Write what comes before the topics."""
    files.node("", b"", 3)
    files.node("/zookeeper", b"", 2)
    files.node("/zookeeper/config", b"")
    files.node("/zookeeper/quota", b"")
    files.node("/kafka-other", None, 1)
    files.node("/kafka-other/brokers", None, 1000)
    for number in range(1000):
        files.node(f"/kafka-other/brokers/{number}", b"of another tenant")
    files.node(CHROOT, None, 13)
    files.node(f"{CHROOT}/brokers", None, 3)
    files.node(f"{CHROOT}{znodes.BROKER_IDS}", None)
    files.node(f"{CHROOT}{znodes.BROKER_SEQUENCE_ID}", None)
    files.node(f"{CHROOT}{znodes.TOPICS}", None, topics)


def _end_zookeeper(files: ZooKeeperFiles, world: World, configured: Dict[str, Dict[str, str]], end_offset: int) -> None:
    """Write what comes after the topics. `configured`: {topic: configs}."""
    tables = world.tables(ZOOKEEPER)

    def node(path, data=None, children=0, **more):
        files.node(CHROOT + path, data, children, **more)

    def directory(path, values, **more):
        node(path, None, len(values), **more)
        for name, value in values.items():
            node(f"{path}/{name}", value, **more)

    node("/admin", None, 1)
    node(znodes.DELETE_TOPICS)
    node("/cluster", None, 1)
    node(znodes.CLUSTER_ID, _json(version="1", id=CLUSTER_ID))
    now = str(TIME_MS)
    controller = {"version": 2, "brokerid": CONTROLLER, "timestamp": now, "kraftControllerEpoch": KRAFT_EPOCH}
    node(znodes.CONTROLLER, _json(**controller), owner=_SESSION)
    node(znodes.CONTROLLER_EPOCH, str(KRAFT_EPOCH).encode(), version=KRAFT_EPOCH)
    node(znodes.FEATURE, _json(features={}, version=2, status=1))
    node(znodes.ISR_CHANGES)
    node(znodes.LOG_DIR_EVENTS)
    block = {"version": 1, "broker": -1, "block_start": str(NEXT_PRODUCER_ID), "block_end": str(NEXT_PRODUCER_ID + 999)}
    node(znodes.PRODUCER_ID_BLOCK, _json(**block), version=9)
    node(znodes.CONFIG, None, len(znodes.CONFIG_TYPES) + 1)
    node(znodes.CONFIG_CHANGES)

    def entity(configs):
        return _json(version=1, config=configs)

    directory(f"{znodes.CONFIG}/topics", {name: entity(configs) for name, configs in configured.items()})
    brokers: Dict[str, Dict[str, str]] = {}
    for (broker, name), value in tables.configs.items():
        brokers.setdefault(znodes.DEFAULT_ENTITY if broker is None else str(broker), {})[name] = value
    directory(f"{znodes.CONFIG}/brokers", {name: entity(configs) for name, configs in brokers.items()}, acl=2)
    users: Dict[str, Dict[str, str]] = {}
    clients: Dict[str, Dict[str, str]] = {}
    ips: Dict[str, Dict[str, str]] = {}
    pairs: Dict[str, Dict[str, Dict[str, str]]] = {}
    for (of, name), value in tables.quotas.items():
        names = {kind: znodes.DEFAULT_ENTITY if text is None else znodes.sanitize(text) for kind, text in of}
        if len(names) == 2:
            target = pairs.setdefault(names["user"], {}).setdefault(names["client-id"], {})
        else:
            group = {"user": users, "client-id": clients, "ip": ips}[next(iter(names))]
            target = group.setdefault(next(iter(names.values())), {})
        target[name] = repr(value)
    for (user, code), credential in tables.scram.items():
        salt, stored_key, server_key = (base64.b64encode(raw).decode() for raw in credential[:3])
        text = f"salt={salt},stored_key={stored_key},server_key={server_key},iterations={credential[3]}"
        users.setdefault(znodes.sanitize(user), {})[enums.SCRAM_MECHANISMS[code]] = text
    directory(f"{znodes.CONFIG}/clients", {name: entity(configs) for name, configs in clients.items()}, acl=2)
    directory(f"{znodes.CONFIG}/ips", {name: entity(configs) for name, configs in ips.items()}, acl=2)
    names_of_users = sorted({*users, *pairs})
    node(f"{znodes.CONFIG}/users", None, len(names_of_users), acl=2)
    for name in names_of_users:
        path = f"{znodes.CONFIG}/users/{name}"
        node(path, entity(users.get(name, {})), 1 if name in pairs else 0, acl=2)
        if name in pairs:
            directory(f"{path}/clients", {pair: entity(configs) for pair, configs in pairs[name].items()}, acl=2)
    _acl_znodes(node, directory, tables.acls)
    tokens = {}
    for token_id, (owner, requester, renewer) in tables.tokens.items():
        principals = {"owner": znodes.sanitize(owner), "tokenRequester": znodes.sanitize(requester)}
        times = {"issueTimestamp": now, "maxTimestamp": str(TIME_MS + 2), "expiryTimestamp": str(TIME_MS + 1)}
        renewers = [znodes.sanitize(renewer)]
        tokens[token_id] = _json(version=3, tokenId=token_id, renewers=renewers, **principals, **times)
    node("/delegation_token", None, 2, acl=2)
    directory(znodes.DELEGATION_TOKENS, tokens, acl=2)
    node(znodes.DELEGATION_TOKEN_CHANGES)

    def migration(offset):
        return _json(
            version=0,
            kraft_controller_id=CONTROLLER,
            kraft_metadata_offset=offset,
            kraft_controller_epoch=KRAFT_EPOCH,
            kraft_metadata_epoch=KRAFT_EPOCH,
        )

    node(znodes.MIGRATION, migration(CHECKPOINT_END - 1), version=77)
    files.set_data(CHROOT + znodes.MIGRATION, migration(end_offset - 1), 78)
    files.close()


def _acl_znodes(node, directory, acls):
    stores: Dict[str, Dict[str, Dict[str, List[Dict[str, str]]]]] = {"LITERAL": {}, "PREFIXED": {}}
    for resource_type, pattern, name, principal, host, operation, permission in acls:
        of_type = stores[enums.PATTERN_TYPES[pattern]].setdefault(_pascal(enums.RESOURCE_TYPES[resource_type]), {})
        entry = {"principal": principal, "host": host}
        entry["permissionType"] = _pascal(enums.PERMISSIONS[permission])
        entry["operation"] = _pascal(enums.OPERATIONS[operation])
        of_type.setdefault(name, []).append(entry)
    node("/kafka-acl-extended", None, 1, acl=2)
    for pattern, store in znodes.ACL_STORES.items():
        node(store, None, len(stores[pattern]), acl=2)
        for type_name, resources in stores[pattern].items():
            values = {name: _json(version=1, acls=entries) for name, entries in resources.items()}
            directory(f"{store}/{type_name}", values, acl=2)
    for changes in znodes.ACL_CHANGES:
        node(changes, None, 0, acl=2)


def _pascal(name: str) -> str:
    return name.title().replace("_", "")


# --- the metadata log ----------------------------------------------------------------------------------


def _record(api_key: int, version: int, body: bytes, tags: bytes = NO_TAGS) -> bytes:
    return bytes((1, api_key, version)) + body + tags


@functools.lru_cache(maxsize=None)
def _ids(numbers: Tuple[int, ...]) -> bytes:
    return bytes([len(numbers) + 1]) + struct.pack(f">{len(numbers)}i", *numbers)


@functools.lru_cache(maxsize=None)
def _directory_of(broker: int) -> bytes:
    return random.Random(broker).randbytes(16)


@functools.lru_cache(maxsize=None)
def _directories(replicas: Tuple[int, ...]) -> bytes:
    return compact_array(map(_directory_of, replicas))


def _bytes(data: bytes) -> bytes:
    return unsigned_varint(len(data) + 1) + data


def _nullable(text: str | None) -> bytes:
    return b"\0" if text is None else compact_string(text)


def partition_record(topic_id: bytes, number: int, partition: Partition) -> bytes:
    """Return a PARTITION_RECORD of version 1."""
    epochs = struct.pack(">iii", partition.leader, partition.leader_epoch, partition.partition_epoch)
    return b"".join(
        (
            b"\x01\x03\x01",
            struct.pack(">i", number),
            topic_id,
            _ids(partition.replicas),
            _ids(partition.isr),
            b"\x01\x01",
            epochs,
            _directories(partition.replicas),
            NO_TAGS,
        )
    )


def partition_change(topic_id: bytes, number: int, isr: Tuple[int, ...], leader: int) -> bytes:
    """Return a PARTITION_CHANGE_RECORD of version 1 with an ISR and a leader."""
    listed = _ids(isr)
    tags = b"\x02\x00" + bytes([len(listed)]) + listed + b"\x01\x04" + struct.pack(">i", leader)
    return _record(5, 1, struct.pack(">i", number) + topic_id, tags)


def topic_record(name: str, topic_id: bytes) -> bytes:
    """Return a TOPIC_RECORD."""
    return _record(2, 0, compact_string(name) + topic_id)


def config_record(code: int, resource: str, name: str, value: str | None) -> bytes:
    """Return a CONFIG_RECORD; a value of None removes the key."""
    return _record(4, 0, bytes([code]) + compact_string(resource) + compact_string(name) + _nullable(value))


def _quota_record(entity: tuple, key: str, value: float, remove: bool = False) -> bytes:
    listed = compact_array(compact_string(kind) + _nullable(name) + NO_TAGS for kind, name in entity)
    return _record(14, 0, listed + compact_string(key) + struct.pack(">d?", value, remove))


def _scram_record(user: str, code: int, credential: Tuple[bytes, bytes, bytes, int]) -> bytes:
    keys = b"".join(map(_bytes, credential[:3]))
    return _record(11, 0, compact_string(user) + bytes([code]) + keys + struct.pack(">i", credential[3]))


def _acl_record(content: tuple, acl_id: bytes) -> bytes:
    resource_type, pattern, name, principal, host, operation, permission = content
    body = acl_id + bytes([resource_type]) + compact_string(name) + bytes([pattern])
    return _record(18, 0, body + compact_string(principal) + compact_string(host) + bytes((operation, permission)))


def _token_record(token_id: str, owner: str, requester: str, renewer: str) -> bytes:
    who = compact_string(owner) + compact_string(requester) + compact_array([compact_string(renewer)])
    times = struct.pack(">qqq", TIME_MS, TIME_MS + 2, TIME_MS + 1)
    return _record(10, 0, who + times + compact_string(token_id))


def _broker_record(broker: int, fenced: bool) -> bytes:
    listener = compact_string("PLAINTEXT") + compact_string("127.0.0.1") + struct.pack(">Hh", 9092, 0) + NO_TAGS
    feature = compact_string("metadata.version") + struct.pack(">hh", 1, METADATA_VERSION) + NO_TAGS
    body = struct.pack(">i?", broker, False) + random.Random(-broker).randbytes(16) + struct.pack(">q", 1000 + broker)
    body += compact_array([listener]) + compact_array([feature]) + compact_string(f"rack-{broker % 3}")
    directories = compact_array([_directory_of(broker)])
    tags = b"\x01\x00" + unsigned_varint(len(directories)) + directories
    return _record(0, 3, body + struct.pack(">??", fenced, False), tags)


def _feature_record(name: str, level: int) -> bytes:
    return _record(12, 0, compact_string(name) + struct.pack(">h", level))


class MetadataLog:
    """Writes a checkpoint and, beside it, the segment after it."""

    def __init__(self, directory: pathlib.Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True)
        checkpoint, segment = f"{CHECKPOINT_END:020d}-{KRAFT_EPOCH:010d}.checkpoint", f"{CHECKPOINT_END:020d}.log"
        self._checkpoint = _Batches(directory / checkpoint, 0)
        self._segment = _Batches(directory / segment, CHECKPOINT_END)
        header = (b"\0\0\0\3", b"\0\0" + struct.pack(">q", TIME_MS) + NO_TAGS)
        self._checkpoint.control([header])
        self._segment.control([metadata_batches.LEADER_CHANGE])

    def topic(self, topic: Topic) -> None:
        """Write a topic: to the segment if it is late, else to the checkpoint, and its changes to the segment."""
        add = self._segment.add if topic.is_late else self._checkpoint.add
        add(topic_record(topic.name, topic.id))
        for number, partition in enumerate(topic.partitions):
            add(partition_record(topic.id, number, partition.before or partition))
            if partition.before:
                self._segment.add(partition_change(topic.id, number, partition.isr, partition.leader))
        for index, (name, value) in enumerate(topic.configs.items()):
            if index == 0 and topic.name.endswith("1"):  # was another value at the checkpoint
                add(config_record(2, topic.name, name, "1"))
                self._segment.add(config_record(2, topic.name, name, value))
            else:
                add(config_record(2, topic.name, name, value))

    def rest(self, tables: Tables, topics: int, topic: Topic) -> int:
        """Write everything else and return the end offset. `topic`: one that an aborted transaction changes."""
        old, new = self._checkpoint, self._segment
        old.add(_feature_record("metadata.version", METADATA_VERSION))
        old.add(metadata_batches.migration_state(1))  # MIGRATION, also in dual-write
        for broker in BROKERS:
            old.add(_broker_record(broker, broker % 5 == 0))
        for broker in BROKERS:
            if broker % 5 == 0:
                new.add(_record(17, 2, struct.pack(">iq", broker, 1000 + broker), b"\x01\x00\x01\xff"))
        old.add(_record(15, 0, struct.pack(">iqq", 1, 1001, NEXT_PRODUCER_ID - 1000)))
        new.add(_record(15, 0, struct.pack(">iqq", 2, 1002, NEXT_PRODUCER_ID)))
        for (broker, name), value in tables.configs.items():
            old.add(config_record(4, "" if broker is None else str(broker), name, value))
        self._rewritten(tables.quotas.items(), lambda item: _quota_record(*item[0], item[1]))
        self._rewritten(tables.scram.items(), lambda item: _scram_record(*item[0], item[1]))
        self._rewritten(tables.acls.items(), lambda item: _acl_record(*item))
        self._rewritten(tables.tokens.items(), lambda item: _token_record(item[0], *item[1]))
        self._removed(max(1, topics // 100))
        self._aborted(topic, max(1, topics // 200))
        old.control([metadata_batches.SNAPSHOT_FOOTER])
        old.close()
        new.flush()
        return new.offset

    def close(self, end_offset: int) -> int:
        """End the segment at an offset with NoOps; return the number of records."""
        for dummy in range(end_offset - self._segment.offset):
            self._segment.add(_record(20, 0, b""))
        self._segment.close()
        return self._checkpoint.records + self._segment.records

    def _rewritten(self, items, encode):
        """Write nine of ten to the checkpoint and the others to the segment."""
        for number, item in enumerate(items):
            (self._segment if number % 10 == 9 else self._checkpoint).add(encode(item))

    def _removed(self, topics):
        """Write metadata to the checkpoint that the segment removes again, a part of it in a committed transaction."""
        old, new = self._checkpoint, self._segment
        rng = random.Random(-7)
        ids = [rng.randbytes(16) for dummy in range(topics)]
        for number, topic_id in enumerate(ids):
            name = f"removed-{number:05d}"
            old.add(topic_record(name, topic_id))
            old.add(config_record(2, name, "retention.ms", "1"))
            for index in range(5):
                old.add(partition_record(topic_id, index, Partition((1, 2, 3), (1, 2), 1, 4, 5)))
        acl_id = rng.randbytes(16)
        old.add(_acl_record((_TOPIC, _LITERAL, "removed-00000", "User:gone", "*", _READ, _ALLOW), acl_id))
        old.add(_scram_record("gone", 1, (b"salt", b"k" * 32, b"s" * 32, 4096)))
        old.add(_quota_record((("user", "gone"),), "producer_byte_rate", 1.0))
        old.add(config_record(4, "7", "log.cleaner.threads", "9"))
        old.add(_token_record("gone", "User:gone", "User:gone", "User:gone"))
        new.add(_record(20, 0, b""))
        new.add(metadata_batches.BEGIN)
        new.add(_record(19, 0, acl_id))
        new.add(_record(22, 0, compact_string("gone") + b"\x01"))
        new.add(_quota_record((("user", "gone"),), "producer_byte_rate", 0.0, True))
        new.add(config_record(4, "7", "log.cleaner.threads", None))
        new.add(_record(26, 0, compact_string("gone")))
        for topic_id in ids[::2]:
            new.add(_record(9, 0, topic_id))
        new.add(metadata_batches.END)
        for topic_id in ids[1::2]:
            new.add(_record(9, 0, topic_id))

    def _aborted(self, topic, topics):
        new = self._segment
        rng = random.Random(-8)
        new.add(metadata_batches.BEGIN)
        for number in range(topics):
            topic_id = rng.randbytes(16)
            new.add(topic_record(f"aborted-{number:05d}", topic_id))
            for index in range(5):
                new.add(partition_record(topic_id, index, Partition((1, 2, 3), (1, 2), 1, 4, 5)))
        new.add(partition_change(topic.id, 0, topic.partitions[0].replicas[:1], topic.partitions[0].replicas[0]))
        new.add(config_record(2, topic.name, "retention.ms", "12"))
        new.add(config_record(4, "", "message.max.bytes", None))
        new.add(_record(9, 0, topic.id))
        new.add(metadata_batches.ABORT)
        # A record after it in one commit would keep the aborted ones in a broker's image (MetadataBatchLoader.replay)
        new.flush()


class _Batches:
    """Appends record values to a file, in batches."""

    def __init__(self, path: pathlib.Path, offset: int) -> None:
        self._file = open(path, "wb", 1 << 20)  # noqa: SIM115
        self.offset = offset
        self._pending: List[bytes] = []
        self.records = 0

    def add(self, value: bytes) -> None:
        self._pending.append(value)
        if len(self._pending) == _BATCH:
            self.flush()

    def control(self, records: List[Tuple[bytes, bytes]]) -> None:
        self.flush()
        self._pending = records  # type: ignore[assignment]
        self.flush()

    def close(self) -> None:
        self.flush()
        self._file.close()

    def flush(self) -> None:
        """End the batch."""
        if self._pending:
            self._file.write(metadata_batches.batch(self.offset, self._pending, KRAFT_EPOCH, TIME_MS))
            self.offset += len(self._pending)
            self.records += len(self._pending)
            self._pending = []


# --- the whole -----------------------------------------------------------------------------------------


_LOG_DIR = "__cluster_metadata-0"


def generate(directory: pathlib.Path, topics: int, size: int, seed: int = 1, planted: int = 0) -> Dict[str, Any]:
    """Write the world to `directory`, which must not exist, and return the content of world.json."""
    from tests.benchmarks.world_brokers import BrokerFiles

    started = time.time()
    part = directory.with_name(f"{directory.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    world = World(topics, size, seed, planted)
    zookeeper = ZooKeeperFiles(part / "zookeeper")
    logs = {LOG: part / "metadata_log" / _LOG_DIR, OTHER_LOG: part / "metadata_log-1003" / _LOG_DIR}
    written = {name: MetadataLog(path) for name, path in logs.items()}
    brokers = {f"broker:{number}": BrokerFiles(part / "brokers" / str(number), number) for number in SERVED}
    _begin_zookeeper(zookeeper, topics)
    configured: Dict[str, Dict[str, str]] = {}
    for number in range(topics):
        topic = world.topic(number)
        in_zookeeper = world.in_store(topic, number, ZOOKEEPER)
        zookeeper.topic(in_zookeeper)
        if in_zookeeper.configs:
            configured[topic.name] = in_zookeeper.configs
        for name, log in written.items():
            log.topic(world.in_store(topic, number, name))
        for name, files in brokers.items():
            files.topic(world.in_store(topic, number, name))
    ends = [
        log.rest(world.tables(name), topics, world.in_store(world.topic(0), 0, name)) for name, log in written.items()
    ]
    end_offset = max(ends) + 1
    records = [log.close(end_offset) for log in written.values()]
    shutil.copytree(logs[LOG].parent, part / "metadata_log-1002", copy_function=os.link)
    _end_zookeeper(zookeeper, world, configured, end_offset)
    for name, files in brokers.items():
        files.close(world.tables(name), end_offset)
    for number in VOTERS:
        controller = BrokerFiles(part / "controllers" / str(number), number)
        controller.close(world.tables(f"controller:{number}"), end_offset)
    facts = {
        "topics": topics,
        "partitions": topics * size,
        "seed": seed,
        "cluster_id": CLUSTER_ID,
        "chroot": CHROOT,
        "end_offset": end_offset,
        "migration_offset": end_offset - 1,
        "zxid": zookeeper.zxid,
        "znodes": zookeeper.znodes,
        "records": records[0],
        **{name: len(table) for name, table in world.tables("")._asdict().items()},
        "seconds": round(time.time() - started, 1),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
    }
    (part / "planted.json").write_text(json.dumps([plant._asdict() for plant in world.plants], indent=1))
    (part / "world.json").write_text(json.dumps(facts, indent=1))
    part.rename(directory)
    return facts


def main() -> None:
    """Generate a world and print its facts."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--size", type=int, default=50, help="partitions of a topic")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plant", type=int, default=0, metavar="K", help="number of planted differences")
    given = parser.parse_args()
    print(json.dumps(generate(given.directory, given.partitions // given.size, given.size, given.seed, given.plant)))


if __name__ == "__main__":
    main()
