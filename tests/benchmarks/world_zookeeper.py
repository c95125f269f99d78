# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the content of a generated cluster as ZooKeeper's files: a snapshot, and a log that changes it."""

from __future__ import annotations

import base64
import functools
import json
import os
import pathlib
import struct
import zlib
from typing import Any, Dict, List, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import enums
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes

from tests.benchmarks.world import (
    CHECKPOINT_END,
    CHROOT,
    CLUSTER_ID,
    CONTROLLER,
    KRAFT_EPOCH,
    NEXT_PRODUCER_ID,
    SNAPSHOT_ZXID,
    TIME_MS,
    ZK_EPOCH,
    ZOOKEEPER,
    Partition,
    Topic,
    World,
)

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


def begin(files: ZooKeeperFiles, topics: int) -> None:
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


def end(files: ZooKeeperFiles, world: World, configured: Dict[str, Dict[str, str]], end_offset: int) -> None:
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
