# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kafka's metadata from ZooKeeper's tree in one normal form, and the records that the initial copy makes of it.

Pure: from znodes of any source (live, a backup, a snapshot file) to JSON-able values. All keys of mappings are strings,
broker ids and partitions too, so that a value survives JSON unchanged.
"""

from __future__ import annotations

import hashlib
import hmac
import math

from ansible_collections.quorumshift.kafka.plugins.module_utils import seal
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import znodes

RECORD_TYPES = (
    "TOPIC_RECORD",
    "PARTITION_RECORD",
    "CONFIG_RECORD",
    "CLIENT_QUOTA_RECORD",
    "USER_SCRAM_CREDENTIAL_RECORD",
    "ACCESS_CONTROL_ENTRY_RECORD",
    "DELEGATION_TOKEN_RECORD",
    "PRODUCER_IDS_RECORD",
)

_QUOTA_ENTITY = {"users": "user", "clients": "client-id", "ips": "ip"}


def normalise(tree, digest_key=None):
    """Return Kafka's metadata in normal form.

    :arg tree: iterable of objects with ``path``, ``data`` and ``stat`` (:class:`znodes.Znode`) in any order;
        paths without metadata are skipped.
    :arg digest_key: bytes. Secrets (SCRAM credentials, password configs) appear as an HMAC-SHA256 under this key,
        so that two views with the same key can be compared; without a key as None.
    :returns: dict of

        - ``cluster_id``; ``controller_epoch`` (int); ``broker_ids`` (sorted ints, registered in ZooKeeper);
        - ``topics``: ``{name: {"topic_id", "created_ms" (of the znode, by its server's clock), "partitions": {"0":
          {"replicas", "adding", "removing", "leader", "leader_epoch", "controller_epoch", "isr",
          "leader_recovery_state", "version"}}}}``; ``version`` is the data version of the state znode, KRaft's
          partition epoch; all of the state is None where it is missing;
        - ``delete_topics``: sorted names of topics whose deletion is pending (they are in ``topics`` as well);
        - ``configs``: ``{"topic"|"broker": {entity: {key: value}}}``; the default broker entity is ``""`` as in
          KRaft; a secret's value is ``{"digest": hex or None}``;
        - ``quotas``: list of ``{"entity": {"user"|"client-id"|"ip": name, None for default}, "quotas": {key: float}}``;
        - ``scram``: ``{user: {mechanism: {"iterations", "digest"}}}``;
        - ``acls``: list of ``{"resource_type", "resource_name", "pattern_type", "principal", "host", "operation",
          "permission"}``;
        - ``delegation_tokens``: ``{token id: ...}`` (:func:`znodes.delegation_token`); ``producer_ids``: None or
          :func:`znodes.producer_id_block`;
        - ``problems``: list of ``{"path", "reason"}``: znodes on which the initial copy fails, or that it loses.
    """
    return _Builder(digest_key).build(tree)


class _Builder:
    def __init__(self, digest_key):
        self.digest_key = digest_key
        self.states = {}
        self.result = {
            "cluster_id": None,
            "controller_epoch": None,
            "broker_ids": [],
            "topics": {},
            "delete_topics": [],
            "configs": {"topic": {}, "broker": {}},
            "quotas": [],
            "scram": {},
            "acls": [],
            "delegation_tokens": {},
            "producer_ids": None,
            "problems": [],
        }
        self.readers = {
            "cluster_id": self.cluster_id,
            "controller_epoch": self.controller_epoch,
            "broker": self.broker,
            "topic": self.topic,
            "partition_state": self.partition_state,
            "delete_topic": self.delete_topic,
            "topic_config": self.topic_config,
            "broker_config": self.broker_config,
            "client_config": self.entity_config,
            "user_config": self.entity_config,
            "ip_config": self.entity_config,
            "acl": self.acl,
            "delegation_token": self.delegation_token,
            "producer_id_block": self.producer_id_block,
        }

    def build(self, tree):
        for node in tree:
            reader = self.readers.get(znodes.kind(node.path))
            if reader is None:
                continue
            try:
                reader(node.path, node.path.split("/"), node)
            except znodes.ZnodeError as error:
                self.problem(error.path, error.reason)
        self.join_states()
        result = self.result
        result["broker_ids"].sort()
        result["delete_topics"].sort()
        result["quotas"].sort(key=lambda quota: sorted((k, v is not None, v or "") for k, v in quota["entity"].items()))
        result["acls"].sort(key=lambda acl: tuple(acl.values()))
        result["problems"].sort(key=lambda problem: problem["path"])
        return result

    def problem(self, path, reason):
        self.result["problems"].append({"path": path, "reason": reason})

    def digest(self, *parts):
        if self.digest_key is None:
            return None
        # Length-prefixed, so that two different lists of parts never have the same digest
        text = b"".join(b"%d:%s" % (len(part), part) for part in (part.encode("utf-8") for part in parts))
        return hmac.new(self.digest_key, text, hashlib.sha256).hexdigest()

    def cluster_id(self, path, names, node):
        self.result["cluster_id"] = znodes.cluster_id(node.data, path)

    def controller_epoch(self, path, names, node):
        self.result["controller_epoch"] = znodes.controller_epoch(node.data, path)

    def broker(self, path, names, node):
        if not names[-1].isdigit():
            raise znodes.ZnodeError(path, "is not a broker id")
        self.result["broker_ids"].append(int(names[-1]))

    def topic(self, path, names, node):
        topic = znodes.topic(node.data, path)
        if topic["topic_id"] is None:
            # ZkTopicMigrationClient.iterateTopics takes topicIdOpt.get
            self.problem(path, "has no topic_id: the initial copy aborts")
        self.result["topics"][names[-1]] = {**topic, "created_ms": node.stat.ctime}

    def partition_state(self, path, names, node):
        state = znodes.partition_state(node.data, path)
        state["version"] = node.stat.version
        self.states[(names[3], names[5])] = state

    def delete_topic(self, path, names, node):
        self.result["delete_topics"].append(names[-1])

    def shown(self, configs):
        return {
            key: {"digest": self.digest(value)} if seal.is_secret(key) or znodes.is_password_config(key) else value
            for key, value in configs.items()
        }

    def topic_config(self, path, names, node):
        configs = znodes.config(node.data, path)
        if configs:
            self.result["configs"]["topic"][names[-1]] = self.shown(configs)

    def broker_config(self, path, names, node):
        configs = znodes.config(node.data, path)
        if configs:
            entity = "" if names[-1] == znodes.DEFAULT_ENTITY else names[-1]
            self.result["configs"]["broker"][entity] = self.shown(configs)

    def entity_config(self, path, names, node):
        if len(names) == 5:  # /config/users/U/clients is a directory
            return
        configs = dict(znodes.config(node.data, path))
        entity = {_QUOTA_ENTITY[names[2]]: _entity_name(names[3])}
        if len(names) == 6:
            entity["client-id"] = _entity_name(names[5])
        else:
            # ZkConfigMigrationClient reads SCRAM in every single-name entity, not in user+client pairs
            for mechanism in znodes.SCRAM_MECHANISMS:
                if mechanism in configs:
                    self.scram(path, znodes.desanitize(names[3]), mechanism, configs.pop(mechanism))
        quotas = {}
        for key, value in configs.items():
            try:
                quotas[key] = float(value)
            except ValueError:
                self.problem(path, f"quota {key!r} is not a number: the initial copy aborts")
                continue
            if not math.isfinite(quotas[key]):
                self.problem(path, f"quota {key!r} is not finite")
        if quotas:
            self.result["quotas"].append({"entity": entity, "quotas": quotas})

    def scram(self, path, user, mechanism, text):
        credential = znodes.scram_credential(text, path, mechanism)
        self.result["scram"].setdefault(user, {})[mechanism] = {
            "iterations": credential["iterations"],
            "digest": self.digest(
                user,
                mechanism,
                credential["salt"],
                credential["stored_key"],
                credential["server_key"],
                str(credential["iterations"]),
            ),
        }

    def acl(self, path, names, node):
        pattern_type, store = next(
            ((name, store) for name, store in znodes.ACL_STORES.items() if path.startswith(store + "/")), (None, None)
        )
        if store is None:
            return
        type_name, name = path[len(store) + 1 :].split("/", 1)
        entries = znodes.acls(node.data, path)
        if not entries:
            return
        resource_type = znodes.acl_resource_type(type_name)
        if resource_type == "UNKNOWN":
            self.problem(path, f"resource type {type_name!r} is unknown to Kafka, which skips these ACLs")
        elif "/" in name:
            # AclAuthorizer.loadAllAcls lists one level below the type
            self.problem(path, "the resource name has a slash: Kafka loses its ACLs at the next start")
        else:
            for entry in entries:
                self.result["acls"].append(
                    dict(resource_type=resource_type, resource_name=name, pattern_type=pattern_type, **entry)
                )

    def delegation_token(self, path, names, node):
        token = znodes.delegation_token(node.data, path)
        if token is not None:
            self.result["delegation_tokens"][token["token_id"]] = token

    def producer_id_block(self, path, names, node):
        self.result["producer_ids"] = znodes.producer_id_block(node.data, path)

    def join_states(self):
        fields = ("leader", "leader_epoch", "controller_epoch", "isr", "leader_recovery_state", "version")
        absent = dict.fromkeys(fields)
        for name, topic in self.result["topics"].items():
            for partition, assignment in topic["partitions"].items():
                assignment.update(self.states.get((name, partition), absent))
        self.states.clear()


def _entity_name(name):
    return None if name == znodes.DEFAULT_ENTITY else znodes.desanitize(name)


def expected_records(metadata):
    """Return how many records of each type the initial copy makes of this metadata: ``{record type: count}``.

    The content of the 'ZK Migration' transaction of ``ZkMigrationClient.readAllMetadata`` (3.9), without its begin, end
    and ZkMigrationState records: topics, their configs and partitions, unless the deletion is pending; broker configs
    and quotas by key; SCRAM credentials by mechanism; distinct ACLs; tokens; one record of producer ids if a block was
    allocated.
    """
    topics = _copied_topics(metadata)
    configs = metadata["configs"]
    counts = {
        "TOPIC_RECORD": len(topics),
        "PARTITION_RECORD": sum(len(topic["partitions"]) for topic in topics.values()),
        "CONFIG_RECORD": sum(len(configs["topic"].get(name, ())) for name in topics)
        + sum(len(entity) for entity in configs["broker"].values()),
        "CLIENT_QUOTA_RECORD": sum(len(quota["quotas"]) for quota in metadata["quotas"]),
        "USER_SCRAM_CREDENTIAL_RECORD": sum(len(user) for user in metadata["scram"].values()),
        "ACCESS_CONTROL_ENTRY_RECORD": len(metadata["acls"]),
        "DELEGATION_TOKEN_RECORD": len(metadata["delegation_tokens"]),
        "PRODUCER_IDS_RECORD": 0 if metadata["producer_ids"] is None else 1,
    }
    return {name: counts[name] for name in RECORD_TYPES}


def topics_with_replica_on(metadata, broker_ids):
    """Return ``{topic: [partitions]}`` with a replica on one of these brokers (ints)."""
    wanted = set(broker_ids)
    by_topic = {}
    for name, partition, assignment in _partitions(metadata["topics"]):
        if wanted.intersection(assignment["replicas"]):
            by_topic.setdefault(name, []).append(int(partition))
    return {name: sorted(partitions) for name, partitions in sorted(by_topic.items())}


def unregistered_replicas(metadata):
    """Return ``{broker id: ["topic-partition"]}`` of brokers that hold replicas but are not registered in ZooKeeper.

    The initial copy waits for them forever (``KRaftMigrationDriver`` WAIT_FOR_BROKERS). Topics whose deletion
    is pending do not count.
    """
    registered = set(metadata["broker_ids"])
    by_broker = {}
    for name, partition, assignment in _partitions(_copied_topics(metadata)):
        for broker_id in set(assignment["replicas"]) - registered:
            by_broker.setdefault(str(broker_id), []).append(f"{name}-{partition}")
    return {broker_id: sorted(by_broker[broker_id]) for broker_id in sorted(by_broker, key=int)}


def under_replicated(metadata):
    """Return the sorted ``["topic-partition"]`` with a replica outside the ISR that is not being added."""
    return sorted(
        f"{name}-{partition}"
        for name, partition, assignment in _partitions(_copied_topics(metadata))
        if set(assignment["replicas"]) - set(assignment["adding"]) - set(assignment["isr"] or ())
    )


def without_leader(metadata):
    """Return the sorted ``["topic-partition"]`` without a leader or without a state."""
    return sorted(
        f"{name}-{partition}"
        for name, partition, assignment in _partitions(_copied_topics(metadata))
        if assignment["leader"] in (None, -1)
    )


def reassignments(metadata):
    """Return ``{"topic-partition": {"adding", "removing"}}`` of the reassignments in flight (KIP-455)."""
    return {
        f"{name}-{partition}": {"adding": assignment["adding"], "removing": assignment["removing"]}
        for name, partition, assignment in sorted(_partitions(_copied_topics(metadata)), key=lambda item: item[:2])
        if assignment["adding"] or assignment["removing"]
    }


def max_controller_epoch(metadata):
    """Return the highest controller epoch of all partition states, or None.

    ZooKeeper's controller elects leaders only if /controller_epoch is above it (KAFKA-20488).
    """
    return max(
        (
            assignment["controller_epoch"]
            for unused, unused, assignment in _partitions(metadata["topics"])
            if assignment["controller_epoch"] is not None
        ),
        default=None,
    )


def _copied_topics(metadata):
    pending = set(metadata["delete_topics"])
    return {name: topic for name, topic in metadata["topics"].items() if name not in pending}


def _partitions(topics):
    for name, topic in topics.items():
        for partition, assignment in topic["partitions"].items():
            yield name, partition, assignment
