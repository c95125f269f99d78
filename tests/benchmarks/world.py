# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The content of one large cluster in dual-write; generate_world.py writes it. It depends on its arguments only."""

from __future__ import annotations

import base64
import random
from typing import Any, Dict, List, NamedTuple, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import enums
from quorumshift_spark import normal_form as form

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
READ, WRITE, DESCRIBE = (enums.OPERATIONS.index(name) for name in ("READ", "WRITE", "DESCRIBE"))
TOPIC, GROUP = (enums.RESOURCE_TYPES.index(name) for name in ("TOPIC", "GROUP"))
LITERAL, PREFIXED = (enums.PATTERN_TYPES.index(name) for name in ("LITERAL", "PREFIXED"))
DENY, ALLOW = (enums.PERMISSIONS.index(name) for name in ("DENY", "ALLOW"))


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
            acls[(TOPIC, LITERAL, name, user, "*", READ, ALLOW)] = rng.randbytes(16)
            acls[(TOPIC, LITERAL, name, user, "*", WRITE, ALLOW)] = rng.randbytes(16)
        for number, user in enumerate(users):
            acls[(GROUP, PREFIXED, f"{user}.", f"User:{user}", "*", READ, ALLOW)] = rng.randbytes(16)
            if number % 10 == 0:
                acls[(TOPIC, PREFIXED, f"secret-{number}", "User:*", "*", DESCRIBE, DENY)] = rng.randbytes(16)
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
