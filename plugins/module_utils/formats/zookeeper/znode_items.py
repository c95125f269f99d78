# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metadata in znodes, item by item, as ZkMigrationClient.readAllMetadata of Kafka 3.9 reads it.

=================  ====================================================  ============================================
kind               key                                                   value
=================  ====================================================  ============================================
cluster_id         ()                                                    text
controller_epoch   ()                                                    int
broker             (id,)                                                 its epoch: the czxid of its znode
topic              (name,)                                               {topic_id, created_ms (by its server's clock)}
partition          (topic, partition)                                    {topic_id, replicas, adding, removing,
                                                                         leader, leader_epoch, controller_epoch,
                                                                         isr, leader_recovery_state, version}
delete_topic       (name,)                                               None
config             ("topic" or "broker", entity or None, name)           text; encrypted for a broker's password
quota              (((entity type, entity or None), ...), name)          float
scram              (user, mechanism)                                     see znodes.scram_credential
acl                (resource type, pattern type, resource name,          None
                   principal, host, operation, permission)
delegation_token   (token id,)                                           see znodes.delegation_token
producer_ids       ()                                                    see znodes.producer_id_block
feature            (name,)                                               level
=================  ====================================================  ============================================

`version` is the data version of the state's znode, which is ZooKeeper's partition epoch. All fields of a missing state
are None. An entity of None is the default.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes

NO_TOPIC_ID = "has no topic_id: the initial copy aborts"
QUOTA_ENTITIES = {"users": "user", "clients": "client-id", "ips": "ip"}
_STATE = ("leader", "leader_epoch", "controller_epoch", "isr", "leader_recovery_state")


class Item(NamedTuple):
    """One item. `zxid`: of its last change, for a partition the later of its topic's and its state's, for a topic of
    its creation; `path`: of its znode."""

    kind: str
    key: Tuple[Any, ...]
    value: Any
    zxid: int
    path: str


class Problem(NamedTuple):
    """A znode on which the initial copy fails, or that it loses."""

    path: str
    reason: str


class Reader:
    """Decodes znodes. A topic's znode must come before the states of its partitions.

    :ivar problems: what was found in the znodes so far, without their values
    """

    def __init__(self) -> None:
        self.problems: List[Problem] = []
        self._assignments: Dict[Tuple[str, str], Tuple[Dict[str, Any], znodes.Znode]] = {}

    def items(self, node: znodes.Znode) -> Iterator[Item]:
        """Yield the items of a znode: a partition with its state, a partition without one from `rest`."""
        decode = _DECODERS.get(znodes.kind(node.path))
        if decode is None:
            return
        try:
            yield from decode(self, node.path.split("/"), node)
        except znodes.ZnodeError as error:
            self._problem(error.path, error.reason)

    def rest(self) -> Iterator[Item]:
        """Yield the partitions whose state did not come."""
        missing = dict.fromkeys((*_STATE, "version"))
        for (topic, number), (assignment, node) in self._assignments.items():
            yield Item("partition", (topic, int(number)), {**assignment, **missing}, node.stat.mzxid, node.path)
        self._assignments.clear()

    def _problem(self, path, reason):
        self.problems.append(Problem(path, reason))

    def _cluster_id(self, names, node):
        yield _item(node, "cluster_id", (), znodes.cluster_id(node.data, node.path))

    def _controller_epoch(self, names, node):
        yield _item(node, "controller_epoch", (), znodes.controller_epoch(node.data, node.path))

    def _broker(self, names, node):
        if not names[-1].isdigit():
            raise znodes.ZnodeError(node.path, "is not a broker id")
        yield Item("broker", (int(names[-1]),), node.stat.czxid, node.stat.czxid, node.path)

    def _topic(self, names, node):
        topic = znodes.topic(node.data, node.path)
        if topic["topic_id"] is None:
            # ZkTopicMigrationClient.iterateTopics takes topicIdOpt.get
            self._problem(node.path, NO_TOPIC_ID)
        for number, assignment in topic["partitions"].items():
            self._assignments[(names[-1], number)] = ({"topic_id": topic["topic_id"], **assignment}, node)
        value = {"topic_id": topic["topic_id"], "created_ms": node.stat.ctime}
        yield Item("topic", (names[-1],), value, node.stat.czxid, node.path)

    def _partition_state(self, names, node):
        partition = names[3], names[5]
        if partition not in self._assignments:
            return  # the topic does not have it
        state = znodes.partition_state(node.data, node.path)
        assignment, topic = self._assignments.pop(partition)
        value = {**assignment, **{name: state[name] for name in _STATE}, "version": node.stat.version}
        zxid = max(topic.stat.mzxid, node.stat.mzxid)
        yield Item("partition", (names[3], int(names[5])), value, zxid, node.path)

    def _delete_topic(self, names, node):
        yield _item(node, "delete_topic", (names[-1],), None)

    def _topic_config(self, names, node):
        yield from _configs("topic", names[-1], node)

    def _broker_config(self, names, node):
        yield from _configs("broker", None if names[-1] == znodes.DEFAULT_ENTITY else names[-1], node)

    def _entity_config(self, names, node):
        if len(names) == 5:  # /config/users/U/clients is a directory
            return
        configs = dict(znodes.config(node.data, node.path))
        entity = {QUOTA_ENTITIES[names[2]]: _name(names[3])}
        if len(names) == 6:
            entity["client-id"] = _name(names[5])
        else:
            # ZkConfigMigrationClient reads SCRAM in every single-name entity, not in user+client pairs
            for mechanism in znodes.SCRAM_MECHANISMS:
                if mechanism in configs:
                    credential = znodes.scram_credential(configs.pop(mechanism), node.path, mechanism)
                    yield _item(node, "scram", (znodes.desanitize(names[3]), mechanism), credential)
        for name, text in configs.items():
            try:
                value = _double(text)
            except ValueError:
                self._problem(node.path, f"quota {name!r} is not a number: the initial copy aborts")
                continue
            yield _item(node, "quota", (tuple(sorted(entity.items())), name), value)

    def _acl(self, names, node):
        stores = [(name, store) for name, store in znodes.ACL_STORES.items() if node.path.startswith(store + "/")]
        if not stores:
            return
        pattern_type, store = stores[0]
        type_name, name = node.path[len(store) + 1 :].split("/", 1)
        entries = znodes.acls(node.data, node.path)
        resource_type = znodes.acl_resource_type(type_name)
        if entries and resource_type == "UNKNOWN":
            self._problem(node.path, f"resource type {type_name!r} is unknown to Kafka, which skips these ACLs")
        elif entries and "/" in name:
            # AclAuthorizer.loadAllAcls lists one level below the type
            reason = "the resource name has a slash: Kafka loses its ACLs at the next start and in the initial copy"
            self._problem(node.path, reason)
        else:
            for entry in entries:
                granted = (entry["principal"], entry["host"], entry["operation"], entry["permission"])
                yield _item(node, "acl", (resource_type, pattern_type, name, *granted), None)

    def _delegation_token(self, names, node):
        token = znodes.delegation_token(node.data, node.path)
        if token is not None:
            yield _item(node, "delegation_token", (token["token_id"],), token)

    def _producer_ids(self, names, node):
        block = znodes.producer_id_block(node.data, node.path)
        if block is not None:
            yield _item(node, "producer_ids", (), block)

    def _feature(self, names, node):
        for name, level in znodes.feature(node.data, node.path)["features"].items():
            yield _item(node, "feature", (name,), level)


def _configs(resource_type, entity, node):
    for name, value in znodes.config(node.data, node.path).items():
        yield _item(node, "config", (resource_type, entity, name), value)


def _item(node, kind, key, value):
    return Item(kind, key, value, node.stat.mzxid, node.path)


def _double(text: str) -> float:
    """Return a number as Java reads it (Double.parseDouble): without "_", and NaN and Infinity in this case alone."""
    value = float(text.replace("_", "?"))
    is_word = not any(character.isdigit() for character in text)
    if is_word and text.strip().lstrip("+-") not in ("NaN", "Infinity"):
        raise ValueError(text)
    return value


def _name(znode_name):
    return None if znode_name == znodes.DEFAULT_ENTITY else znodes.desanitize(znode_name)


_DECODERS = {
    "cluster_id": Reader._cluster_id,
    "controller_epoch": Reader._controller_epoch,
    "broker": Reader._broker,
    "topic": Reader._topic,
    "partition_state": Reader._partition_state,
    "delete_topic": Reader._delete_topic,
    "topic_config": Reader._topic_config,
    "broker_config": Reader._broker_config,
    "client_config": Reader._entity_config,
    "user_config": Reader._entity_config,
    "ip_config": Reader._entity_config,
    "acl": Reader._acl,
    "delegation_token": Reader._delegation_token,
    "producer_id_block": Reader._producer_ids,
    "feature": Reader._feature,
}
