# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small cluster on its way from ZooKeeper to KRaft: ZooKeeper's tree, the metadata log, and brokers.

It writes as Kafka does: ZooKeeper's controller the znodes; KRaft's the records, and for each the znodes of its entity
(KRaftMigrationZkWriter.handleDelta). After the initial copy and each failover it writes and deletes in ZooKeeper
whatever differs from its image (handleSnapshot). Faults are what a cluster must not do.
"""

from __future__ import annotations

import base64
import copy
import json
from typing import Any, Dict, Iterator, List, NamedTuple, Set, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_log import Record
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes

Part = Tuple[Any, ...]
"""A piece of metadata: its kind, then what names it."""
State = Dict[Part, Any]
TOPICS, USERS, TOKENS = ("a", "b"), ("u", "v"), (f"{'t' * 21}A", f"{'t' * 21}Q")
NAMES = ("retention.ms", "cleanup.policy")
PRINCIPALS = ("User:x", "User:y")
ZK, KRAFT = "zk", "kraft"


def text(number: int) -> str:
    """Return base64 of 16 bytes, as Kafka writes ids."""
    return base64.urlsafe_b64encode(number.to_bytes(16, "big")).decode().rstrip("=")


# --- what clients and controllers do --------------------------------------------------------------------

CHANGES = (
    ("create", TOPICS),
    ("delete", TOPICS),
    ("grow", TOPICS),
    ("elect", TOPICS),
    ("reassign", TOPICS),
    ("config", TOPICS, NAMES),
    ("no_config", TOPICS, NAMES),
    ("default", (1, 2, 3)),
    ("no_default", (0,)),
    ("quota", USERS),
    ("no_quota", USERS),
    ("scram", USERS),
    ("no_scram", USERS),
    ("acl", TOPICS, PRINCIPALS),
    ("no_acl", TOPICS, PRINCIPALS),
    ("token", TOKENS),
    ("no_token", TOKENS),
    ("block", (0,)),
)
"""Changes of metadata: a name, and the values of each argument."""


def changed(state: State, change: Tuple[Any, ...], fresh: int) -> State:
    """Return the metadata after a change, the same where it cannot be made. `fresh`: a number that was not used yet."""
    name, arguments = change[0], change[1:]
    found = dict(state)
    first = arguments[0]
    if name == "create" and ("topic", first) not in state:
        found["topic", first] = text(fresh)
        found["partition", first, 0] = _partition([1, 2])
    elif name == "delete":
        found = {part: value for part, value in state.items() if part[1:2] != (first,) or part[0] not in _OF_TOPIC}
        if ("topic", first) in state:
            found = {part: value for part, value in found.items() if part[:3] != ("config", "topic", first)}
    elif name == "grow" and ("topic", first) in state:
        number = sum(part[:2] == ("partition", first) for part in state)
        if number < 3:
            found["partition", first, number] = _partition([2, 1])
    elif name in ("elect", "reassign"):
        for part in [key for key in state if key == ("partition", first, 0)]:
            was = state[part]
            now = {**was, "partition_epoch": was["partition_epoch"] + 1}
            if name == "elect":
                now.update(leader=3 - was["leader"], leader_epoch=was["leader_epoch"] + 1)
            else:
                now.update(adding=[] if was["adding"] else [3], replicas=[1, 2] if was["adding"] else [1, 2, 3])
            found[part] = now
    elif name == "config" and ("topic", first) in state:
        found["config", "topic", first, arguments[1]] = f"{fresh}"
    elif name == "no_config":
        found.pop(("config", "topic", first, arguments[1]), None)
    elif name == "default":
        found["config", "broker", None, "log.cleaner.threads"] = f"{first}"
    elif name == "no_default":
        found.pop(("config", "broker", None, "log.cleaner.threads"), None)
    elif name == "quota":
        found["quota", first] = float(fresh)
    elif name == "scram":
        found["scram", first] = fresh
    elif name == "acl":
        found["acl", first, arguments[1]] = True
    elif name == "token":
        found["token", first] = fresh
    elif name == "block":
        found["producer_ids",] = found.get(("producer_ids",), 0) + 1000
    elif name.startswith("no_"):
        found.pop((name[3:], *arguments), None)
    return found


_OF_TOPIC = ("topic", "partition")


def _numbers(state: State, topic: str) -> Set[int]:
    return {part[2] for part in state if part[:2] == ("partition", topic)}


def _partition(replicas: List[int]) -> Dict[str, Any]:
    epochs = {"leader_epoch": 0, "partition_epoch": 0}
    return {"replicas": replicas, "adding": [], "leader": 1, "isr": [1, 2], **epochs}


# --- the log --------------------------------------------------------------------------------------------


def records(was: State, now: State) -> Iterator[Tuple[str, Dict[str, Any]]]:
    """Yield the records of a change: types and fields."""
    gone = {part for part, topic_id in was.items() if part[0] == "topic" and now.get(part) != topic_id}
    for part in sorted(gone):
        yield "REMOVE_TOPIC_RECORD", {"topicId": was[part]}
    names = {part[1] for part in gone}
    was = {
        part: value
        for part, value in was.items()
        if not (part[0] in _OF_TOPIC and part[1] in names)
        and not (part[:2] == ("config", "topic") and part[2] in names)
    }
    for part in sorted({*was, *now}, key=lambda part: (_ORDER.index(part[0]), str(part))):
        if was.get(part) != now.get(part):
            yield _record(part, was.get(part), now.get(part), now)


_ORDER = ("topic", "partition", "config", "quota", "scram", "acl", "token", "producer_ids")


def _record(part: Part, was: Any, value: Any, now: State) -> Tuple[str, Dict[str, Any]]:
    kind, first = part[0], part[1] if part[1:] else None
    if kind == "topic":
        return "TOPIC_RECORD", {"topicId": value, "name": first}
    if kind == "partition":
        fields: Dict[str, Any] = {"partitionId": part[2], "topicId": now["topic", first], "directories": []}
        fields.update(replicas=value["replicas"], addingReplicas=value["adding"], removingReplicas=[])
        fields.update(isr=value["isr"], leader=value["leader"], leaderRecoveryState=0)
        fields.update(leaderEpoch=value["leader_epoch"], partitionEpoch=value["partition_epoch"])
        return "PARTITION_RECORD", {**fields, "eligibleLeaderReplicas": None, "lastKnownElr": None}
    if kind == "config":
        resource = (2, part[2]) if part[1] == "topic" else (4, "")
        fields = {"resourceType": resource[0], "resourceName": resource[1], "name": part[3], "value": value}
        return "CONFIG_RECORD", fields
    if kind == "quota":
        entity = [{"entityType": "user", "entityName": first}]
        fields = {"entity": entity, "key": "producer_byte_rate", "value": value or 0.0, "remove": value is None}
        return "CLIENT_QUOTA_RECORD", fields
    if kind == "scram":
        name = {"name": first, "mechanism": 1}
        if value is None:
            return "REMOVE_USER_SCRAM_CREDENTIAL_RECORD", name
        return "USER_SCRAM_CREDENTIAL_RECORD", {**name, **_scram(value)}
    if kind == "acl":
        acl_id = "/".join(part[1:])
        if value is None:
            return "REMOVE_ACCESS_CONTROL_ENTRY_RECORD", {"id": acl_id}
        fields = {"id": acl_id, "resourceType": 2, "resourceName": first, "patternType": 3, "principal": part[2]}
        return "ACCESS_CONTROL_ENTRY_RECORD", {**fields, "host": "*", "operation": 3, "permissionType": 3}
    if kind == "token":
        if value is None:
            return "REMOVE_DELEGATION_TOKEN_RECORD", {"tokenId": first}
        who = {"owner": "User:o", "requester": "User:o", "renewers": [], "tokenId": first}
        times = {"issueTimestamp": 1, "maxTimestamp": 10**9, "expirationTimestamp": value}
        return "DELEGATION_TOKEN_RECORD", {**who, **times}
    return "PRODUCER_IDS_RECORD", {"nextProducerId": value, "brokerId": -1, "brokerEpoch": -1}


def _scram(number: int) -> Dict[str, Any]:
    return {"salt": b"salt", "storedKey": b"%d" % number, "serverKey": b"server", "iterations": 4096}


# --- ZooKeeper ------------------------------------------------------------------------------------------


def content(state: State, block_of: int = 1) -> Dict[str, bytes]:
    """Return the znodes of metadata: {path: data}. `block_of`: the broker of the block of producer ids."""
    found: Dict[str, Any] = {}
    for part, value in state.items():
        kind = part[0]
        if kind == "topic":
            partitions = {key[2]: each for key, each in state.items() if key[:2] == ("partition", part[1])}
            found[znodes.topic_path(part[1])] = {
                "version": 3,
                "topic_id": value,
                "partitions": {f"{number}": partition["replicas"] for number, partition in partitions.items()},
                "adding_replicas": {
                    f"{number}": partition["adding"] for number, partition in partitions.items() if partition["adding"]
                },
                "removing_replicas": {},
            }
        elif kind == "partition":
            path = znodes.partition_state_path(part[1], part[2])
            found[path] = {"controller_epoch": 1, **{name: value[name] for name in ("leader", "leader_epoch", "isr")}}
        elif kind == "config":
            entity = f"topics/{part[2]}" if part[1] == "topic" else f"brokers/{znodes.DEFAULT_ENTITY}"
            _config(found, f"{znodes.CONFIG}/{entity}", part[3], value)
        elif kind == "quota":
            _config(found, f"{znodes.CONFIG}/users/{part[1]}", "producer_byte_rate", f"{value}")
        elif kind == "scram":
            fields = _scram(value)
            keys = {"salt": "salt", "stored_key": "storedKey", "server_key": "serverKey"}
            texts = [f"{ours}={base64.b64encode(fields[theirs]).decode()}" for ours, theirs in keys.items()]
            _config(found, f"{znodes.CONFIG}/users/{part[1]}", "SCRAM-SHA-256", ",".join([*texts, "iterations=4096"]))
        elif kind == "acl":
            entry = {"principal": part[2], "permissionType": "Allow", "operation": "Read", "host": "*"}
            found.setdefault(f"/kafka-acl/Topic/{part[1]}", {"version": 1, "acls": []})["acls"].append(entry)
        elif kind == "token":
            who = {"version": 3, "owner": "User:o", "tokenRequester": "User:o", "renewers": [], "tokenId": part[1]}
            times = {"issueTimestamp": 1, "maxTimestamp": 10**9, "expiryTimestamp": value}
            found[f"{znodes.DELEGATION_TOKENS}/{part[1]}"] = {**who, **times}
        else:
            # A broker's block ends right before the next id; that of dual-write begins there
            start = value if block_of < 0 else value - 1000
            found[znodes.PRODUCER_ID_BLOCK] = {"version": 1, "broker": block_of, "block_start": f"{start}"}
            found[znodes.PRODUCER_ID_BLOCK]["block_end"] = f"{start + 999}"
    for value in found.values():
        if "acls" in value:
            value["acls"].sort(key=lambda entry: entry["principal"])
    return {path: json.dumps(value, sort_keys=True).encode() for path, value in found.items()}


def _config(found: Dict[str, Any], path: str, name: str, value: str) -> None:
    found.setdefault(path, {"version": 1, "config": {}})["config"][name] = value


NO_CONFIG = json.dumps({"config": {}, "version": 1}, sort_keys=True).encode()


class Node:
    """A znode with the Stat that ZooKeeper keeps."""

    __slots__ = ("children", "cversion", "czxid", "data", "mzxid", "pzxid", "version")

    def __init__(self, data: bytes | None, zxid: int) -> None:
        self.data, self.czxid, self.mzxid, self.pzxid = data, zxid, zxid, zxid
        self.version = self.cversion = self.children = 0


class Tree:
    """ZooKeeper's tree: each write is a transaction (org.apache.zookeeper.server.DataTree)."""

    def __init__(self) -> None:
        self.zxid = 0
        self.nodes: Dict[str, Node] = {"/": Node(None, 0)}

    def write(self, path: str, data: bytes | None) -> None:
        """Set a znode, or create it with those above it."""
        node = self.nodes.get(path)
        if node is None:
            parent = path.rpartition("/")[0] or "/"
            if parent not in self.nodes:
                self.write(parent, None)
            self.zxid += 1
            self.nodes[path] = Node(data, self.zxid)
            self._child(parent, 1)
            return
        self.zxid += 1
        node.data, node.mzxid, node.version = data, self.zxid, node.version + 1

    def delete(self, path: str) -> None:
        """Delete a znode and all below it."""
        for below in sorted((child for child in self.nodes if child.startswith(f"{path}/")), reverse=True):
            self._delete(below)
        self._delete(path)

    def _delete(self, path: str) -> None:
        if self.nodes.pop(path, None):
            self.zxid += 1
            self._child(path.rpartition("/")[0] or "/", -1)

    def _child(self, parent: str, more: int) -> None:
        node = self.nodes[parent]
        node.children, node.cversion, node.pzxid = node.children + more, node.cversion + 1, self.zxid

    def znode(self, path: str) -> znodes.Znode:
        """Return a znode as a client reads it."""
        node = self.nodes[path]
        stat = znodes.Stat(
            node.czxid, node.mzxid, 0, 0, node.version, node.cversion, 0, 0, 0, node.children, node.pzxid
        )
        return znodes.Znode(path, node.data, None, stat)

    def copied(self) -> Tree:
        """Return a copy."""
        tree = Tree()
        tree.zxid = self.zxid
        for path, node in self.nodes.items():
            tree.nodes[path] = found = Node(node.data, node.czxid)
            for name in Node.__slots__:
                setattr(found, name, getattr(node, name))
        return tree

    def leaves(self) -> Dict[str, bytes]:
        """Return the data of the znodes that hold metadata; one with no config is none."""
        return {
            path: node.data
            for path, node in self.nodes.items()
            if node.data is not None
            and node.data != NO_CONFIG
            and path not in (znodes.CONTROLLER, znodes.MIGRATION, znodes.CLUSTER_ID)
        }


# --- the cluster ----------------------------------------------------------------------------------------


class Entry(NamedTuple):
    """A batch of the log: its records, the metadata after it, and whether it is a copy's."""

    records: List[Record]
    after: State
    epoch: int


class Fault(NamedTuple):
    """What a cluster must not do, and when it had its effect (Cluster.clock)."""

    what: str
    at: int


class Cluster:
    """The cluster. `truth`: the metadata that clients were promised.

    :ivar clock: counts what happens, to place faults between readings
    :ivar faults: that had an effect and were not repaired
    :ivar lost: the lowest offset at which acknowledged records were lost from the log, or None
    :ivar is_logging: whether a ZooKeeper server's files reach back to before the copy; `found`: the tree as the copy
        found it, which they show
    :ivar scarred: whether someone deleted znodes of a topic, so that their versions began anew
    """

    def __init__(self) -> None:
        self.clock = self.fresh = 0
        self.tree = Tree()
        self.mode, self.epoch = ZK, 0
        self.truth: State = {}
        self.log: List[Entry] = []
        self.next_offset = 1
        self.mirrored = 0  # how many entries ZooKeeper has
        self.block_of = 1
        self.checkpoint = 0  # offset; what is below has its last record there
        self.begin = 0  # of the oldest segment
        self.rejecting: Set[str] = set()
        self.brokers: Dict[int, Dict[str, Any]] = {
            number: {"mode": ZK, "state": {}, "stuck": False} for number in (1, 2)
        }
        self.faults: List[Fault] = []
        self.lost: int | None = None
        self.scarred = False
        self.is_logging = False
        self.found: Tree | None = None
        self.sick: Dict[str, Any] = {}  # of the copy: what it loses or alters
        for path in (znodes.TOPICS, *(f"{znodes.CONFIG}/{name}" for name in znodes.CONFIG_TYPES)):
            self.tree.write(path, None)
        for path in (znodes.DELEGATION_TOKENS, "/kafka-acl/Topic", znodes.BROKER_IDS):
            self.tree.write(path, None)
        self._own(-1)

    def _own(self, epoch: int) -> None:
        self.tree.delete(znodes.CONTROLLER)
        value = {"version": 2, "brokerid": 1, "timestamp": "1", "kraftControllerEpoch": epoch}
        self.tree.write(znodes.CONTROLLER, json.dumps(value).encode())

    @property
    def end(self) -> int:
        """The high watermark."""
        return self.next_offset

    @property
    def of_log(self) -> State:
        """The metadata of the newest record."""
        return self.log[-1].after if self.log else {}

    def change(self, change: Tuple[Any, ...]) -> None:
        """Make a change, as the active controller does."""
        self.clock += 1
        self.fresh += 1
        before = self.truth
        self.truth = changed(self.truth, change, self.fresh + 1000)
        if self.mode == ZK:
            self._write(content(before, self.block_of), content(self.truth, self.block_of), KeepEmpty)
        elif self.log:
            # A log that lost something may not have what is changed
            if change[0] == "grow" and _numbers(self.of_log, change[1]) != _numbers(before, change[1]):
                self.truth = before
                return  # Kafka adds partitions above those that there are, not below
            after = changed(self.of_log, change, self.fresh + 1000)
            self._append(list(records(self.of_log, after)), after)

    def _append(self, made: List[Tuple[str, Dict[str, Any]]], after: State) -> None:
        if not made:
            made = [("NO_OP_RECORD", {})]
        placed = [
            Record(self.next_offset + number, self.epoch, 0, kind, 0, fields, False)
            for number, (kind, fields) in enumerate(made)
        ]
        self.next_offset += len(placed)
        self.log.append(Entry([record for record in placed if record.type != "NO_OP_RECORD"], after, self.epoch))

    def _write(self, was: Dict[str, bytes], now: Dict[str, bytes], empty: type) -> None:
        """Write what changed between two contents; what is rejected is lost."""
        for path in sorted({*was, *now}, key=lambda path: (path.count("/"), path)):
            if was.get(path) == now.get(path):
                continue
            if path in self.rejecting:
                node = self.tree.nodes.get(path)
                if (node.data if node else None) == now.get(path):
                    continue  # it went with the znode above it
                self.faults.append(Fault(f"ZooKeeper rejects {path}", self.clock))
            elif path in now:
                self.tree.write(path, now[path])
            elif empty is KeepEmpty and path.startswith(znodes.CONFIG) and not self._of_removed_topic(path, now):
                self.tree.write(path, NO_CONFIG)
            else:
                self.tree.delete(path)

    @staticmethod
    def _of_removed_topic(path: str, now: Dict[str, bytes]) -> bool:
        name = path.rpartition("/")[2]
        return path.startswith(f"{znodes.CONFIG}/topics/") and znodes.topic_path(name) not in now

    def mirror(self, entries: int) -> None:
        """Write this many entries of the log to ZooKeeper (dual-write), and their offset to /migration."""
        if self.mode == ZK:
            return
        for dummy in range(entries):
            if self.mirrored >= len(self.log):
                break
            was = self.log[self.mirrored - 1].after if self.mirrored else {}
            now = self.log[self.mirrored].after
            if was.get(("producer_ids",)) != now.get(("producer_ids",)):
                self.block_of = -1
            self._write(content(was, self.block_of), content(now, self.block_of), Remove)
            self.mirrored += 1
        self._set_migration()

    def _set_migration(self) -> None:
        offset = self.offset_of(self.mirrored)
        value = {"version": 0, "kraft_controller_id": 3000, "kraft_controller_epoch": self.epoch}
        value.update(kraft_metadata_offset=offset, kraft_metadata_epoch=self.epoch)
        self.tree.write(znodes.MIGRATION, json.dumps(value).encode())

    def offset_of(self, entries: int) -> int:
        """Return the last offset of this many entries."""
        return self.bounds[entries] - 1

    @property
    def bounds(self) -> List[int]:
        bounds, at = [1], 1
        for entry in self.log:
            at = max([at + 1, *(record.offset + 1 for record in entry.records)])
            bounds.append(at)
        return bounds

    def keep_files(self) -> None:
        """Keep the files of a ZooKeeper server."""
        self.is_logging = True

    def copy(self) -> None:
        """Make the initial copy: KRaft takes over /controller, reads ZooKeeper, and writes to it what it lacks."""
        if self.mode == KRAFT:
            return
        self.clock += 1
        self.mode, self.epoch = KRAFT, self.epoch + 1
        self._own(self.epoch)
        self.found = self.tree.copied() if self.is_logging else None
        copied = {
            part: {**value, "partition_epoch": self.tree.nodes[znodes.partition_state_path(*part[1:])].version}
            if part[0] == "partition"
            else value
            for part, value in self.truth.items()
        }
        self.truth = copied
        parts = sorted(copied, key=str)
        lost = self.sick.get("loses")
        after = dict(copied)
        if lost is not None and parts:
            part = parts[lost % len(parts)]
            self.faults.append(Fault(f"the copy loses {part}", self.clock))
            after.pop(part)
            if part[0] == "topic":
                after = changed({**after, part: copied[part]}, ("delete", part[1]), 0)
        altered = self.sick.get("alters")
        if altered is not None and parts:
            part = parts[altered % len(parts)]
            if part in after and part[0] in ("config", "quota", "scram", "token"):
                self.faults.append(Fault(f"the copy alters {part}", self.clock))
                after[part] = {"config": "0", "quota": 0.5}.get(part[0], 1)
        # A topic's partitions without the topic cannot be in a log
        end = [("ZK_MIGRATION_STATE_RECORD", {"zkMigrationState": 1})]
        self._append([*records({}, after), *end], after)
        self.synchronise()

    def synchronise(self) -> None:
        """Write and delete in ZooKeeper whatever differs from the image, after an election."""
        self.clock += 1
        wanted, found = content(self.of_log, self.block_of), self.tree.leaves()
        self.rejecting.clear()
        self._write(found, wanted, Remove)
        self.mirrored = len(self.log)
        self._set_migration()
        self.faults = [fault for fault in self.faults if not fault.what.startswith("ZooKeeper")]

    def fail_over(self) -> None:
        """Elect another controller."""
        if self.mode == KRAFT:
            self.epoch += 1
            self._own(self.epoch)
            self._append([], self.of_log)
            self.synchronise()

    def follow(self, entries: int) -> None:
        """Let brokers apply this many entries of the log; in ZooKeeper mode what ZooKeeper has."""
        for broker in self.brokers.values():
            if broker["stuck"]:
                continue
            if broker["mode"] == ZK:
                broker["state"] = self.truth if self.mode == ZK else self.of_log
                broker["at"] = len(self.log)
            else:
                broker["at"] = min(broker.get("at", 0) + entries, len(self.log))
                broker["state"] = self.log[broker["at"] - 1].after if broker["at"] else {}

    def catch_up(self, number: int) -> None:
        """Let a broker in KRaft mode apply the log."""
        broker = self.brokers[number]
        if broker["mode"] == KRAFT and not broker["stuck"] and self.log:
            broker.update(at=len(self.log), state=self.of_log)

    def to_kraft(self) -> None:
        """Restart all brokers in KRaft mode."""
        if self.mode == KRAFT:
            for broker in self.brokers.values():
                broker.update(mode=KRAFT, stuck=False, at=len(self.log), state=self.of_log)
            self.faults = [fault for fault in self.faults if not fault.what.startswith("broker")]

    def take_checkpoint(self, removes: bool) -> None:
        """Write a checkpoint at the end of the log; `removes`: and delete the older segments."""
        if self.log:
            self.checkpoint = self.next_offset
            if removes:
                self.begin = self.next_offset

    # --- faults ---

    def sicken(self, what: str, number: int) -> None:
        """Let the copy lose or alter a piece of metadata."""
        self.sick[what] = number

    def truncate(self, entries: int) -> None:
        """Lose the newest entries of the log, and elect a controller, which writes its image to ZooKeeper."""
        if (
            self.mode == KRAFT
            and len(self.log) > entries + 1
            and self.bounds[len(self.log) - entries] >= max(self.checkpoint, 1)
        ):
            self.clock += 1
            self.next_offset = self.bounds[len(self.log) - entries]
            del self.log[len(self.log) - entries :]
            self.lost = min(self.next_offset, self.next_offset if self.lost is None else self.lost)
            for broker in self.brokers.values():
                broker["at"] = min(broker.get("at", 0), len(self.log))
            self.mirrored = min(self.mirrored, len(self.log))
            self.fail_over()

    def write_to_zookeeper(self, number: int, removes: bool) -> None:
        """Let someone else than the controller change a znode."""
        paths = sorted(self.tree.leaves())
        if self.mode != KRAFT or not paths:
            return
        self.clock += 1
        path = paths[number % len(paths)]
        if removes:
            self.tree.delete(path)
            self.scarred = self.scarred or path.startswith(znodes.TOPICS)
        else:
            self.tree.write(path, _other(path, self.tree.nodes[path].data or b"{}"))
        self.faults.append(Fault(f"ZooKeeper was changed at {path}", self.clock))

    def reject(self, number: int) -> None:
        """Let ZooKeeper reject the writes of a znode from now on."""
        paths = sorted(content(self.of_log))
        if self.mode == KRAFT and paths:
            self.rejecting.add(paths[number % len(paths)])

    def stick(self, broker: int) -> None:
        """Let a broker in KRaft mode follow the log no more."""
        if self.brokers[broker]["mode"] == KRAFT:
            self.brokers[broker]["stuck"] = True

    # --- truth ---

    def accept(self) -> None:
        """Take what the log has for the truth."""
        self.truth, self.lost = self.of_log, None
        self.faults = [fault for fault in self.faults if not fault.what.startswith("the copy")]

    def with_all_written(self) -> Cluster:
        """Return the cluster once ZooKeeper has all that is due."""
        later = copy.copy(self)
        later.tree, later.faults = self.tree.copied(), []
        later.mirror(len(self.log))
        return later

    def diverged(self) -> List[str]:
        """Return what differs from the truth once all that is due was written."""
        later, found = self.with_all_written(), []
        if self.mode == KRAFT and _compared(self.of_log) != _compared(self.truth):
            found.append("the log")
        # What was not changed has the form that it had
        wanted = content(self.of_log if self.mode == KRAFT else self.truth, later.block_of)
        ours, theirs = _plain(later.tree.leaves()), _plain(wanted)
        found += [f"ZooKeeper: {path}" for path in sorted({*ours, *theirs}) if ours.get(path) != theirs.get(path)]
        for number, broker in self.brokers.items():
            if broker["stuck"] and broker["at"] < len(self.log):
                found.append(f"broker {number}")
        return found


class KeepEmpty:
    """ZooKeeper's controller keeps the znode of an entity that has no config any more."""


class Remove:
    """KRaft's controller deletes it (ZkConfigMigrationClient.deleteConfigs)."""


def _compared(state: State) -> State:
    return {
        part: {name: state for name, state in value.items() if name != "partition_epoch"}
        if part[0] == "partition"
        else value
        for part, value in state.items()
    }


def _plain(leaves: Dict[str, bytes]) -> Dict[str, Any]:
    found = {path: json.loads(data) for path, data in leaves.items()}
    return {path: value for path, value in found.items() if value != {"version": 1, "config": {}}}


def _other(path: str, data: bytes) -> bytes:
    """Return other data for a znode."""
    value = json.loads(data)
    if "config" in value:
        for name, was in value["config"].items():
            if not name.startswith("SCRAM"):
                value["config"][name] = f"{float(was) + 1:g}" if "rate" in name else f"{was}7"
                break
        else:
            value["config"]["consumer_byte_rate" if "/users/" in path else "segment.ms"] = "77"
    elif "acls" in value:
        value["acls"][0]["principal"] = "User:foreign"
    elif "partitions" in value:
        value["topic_id"] = text(7)
    elif "leader" in value:
        value["leader"] = 9
    elif "tokenId" in value:
        value["expiryTimestamp"] += 1
    else:
        value["block_start"], value["block_end"] = "900000", "900999"
    return json.dumps(value, sort_keys=True).encode()
