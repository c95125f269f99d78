# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kafka's metadata from ZooKeeper's tree in one normal form, and the records that the initial copy makes of it.

Pure: from znodes of any source (live, a backup, a snapshot file) to JSON-able values. All keys of mappings are strings,
broker ids and partitions too, so that a value survives JSON unchanged.
"""

from __future__ import annotations

from typing import Any, Iterable, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znode_items, znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets import seal

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


def normalise(tree: Iterable[znodes.Znode]) -> dict:
    """Return Kafka's metadata in the znodes, a topic before the states of its partitions; other znodes are skipped.

    - ``cluster_id``; ``controller_epoch`` (int); ``broker_ids`` (sorted ints, registered in ZooKeeper);
    - ``topics``: ``{name: {"topic_id", "created_ms", "partitions": {"0": see znode_items}}}``;
    - ``delete_topics``: sorted names of topics whose deletion is pending (they are in ``topics`` as well);
    - ``configs``: ``{"topic"|"broker": {entity: {key: value}}}``; the default broker entity is ``""`` as in
      KRaft; a secret's value is None;
    - ``quotas``: list of ``{"entity": {"user"|"client-id"|"ip": name, None for default}, "quotas": {key: float}}``;
    - ``scram``: ``{user: {mechanism: {"iterations"}}}``;
    - ``acls``: list of ``{"resource_type", "resource_name", "pattern_type", "principal", "host", "operation",
      "permission"}``;
    - ``delegation_tokens``: ``{token id: ...}`` (:func:`znodes.delegation_token`); ``producer_ids``: None or
      :func:`znodes.producer_id_block`;
    - ``problems``: list of ``{"path", "reason"}``: znodes on which the initial copy fails, or that it loses.
    """
    reader = znode_items.Reader()
    items: dict[str, list[znode_items.Item]] = {}
    for node in tree:
        for item in reader.items(node):
            items.setdefault(item.kind, []).append(item)
    items.setdefault("partition", []).extend(reader.rest())

    def values(kind: str) -> dict[tuple, Any]:
        return {item.key: item.value for item in items.get(kind, ())}

    topics = {name: {**topic, "partitions": {}} for (name,), topic in values("topic").items()}
    for (name, number), partition in values("partition").items():
        topics[name]["partitions"][str(number)] = partition
    return {
        "cluster_id": values("cluster_id").get(()),
        "controller_epoch": values("controller_epoch").get(()),
        "broker_ids": sorted(broker for (broker,) in values("broker")),
        "topics": topics,
        "delete_topics": sorted(name for (name,) in values("delete_topic")),
        "configs": _configs(values("config")),
        "quotas": _quotas(values("quota")),
        "scram": _scram(values("scram")),
        "acls": [dict(zip(_ACL, key)) for key in sorted(values("acl"))],
        "delegation_tokens": {token_id: token for (token_id,), token in values("delegation_token").items()},
        "producer_ids": values("producer_ids").get(()),
        "problems": [problem._asdict() for problem in sorted(reader.problems)],
    }


_ACL = ("resource_type", "pattern_type", "resource_name", "principal", "host", "operation", "permission")


def _configs(values: Mapping[tuple, str]) -> dict[str, dict[str, dict[str, str | None]]]:
    configs: dict[str, dict] = {"topic": {}, "broker": {}}
    for (resource_type, entity, name), value in values.items():
        secret = seal.is_secret(name) or znodes.is_password_config(name)
        configs[resource_type].setdefault(entity or "", {})[name] = None if secret else value
    return configs


def _quotas(values: Mapping[tuple, float]) -> list[dict]:
    quotas: dict[tuple, dict] = {}
    for (entity, name), value in values.items():
        quotas.setdefault(entity, {})[name] = value
    # None sorts before any name
    order = sorted(quotas, key=lambda entity: [(kind, name is not None, name or "") for kind, name in entity])
    return [{"entity": dict(entity), "quotas": quotas[entity]} for entity in order]


def _scram(values: Mapping[tuple, Mapping]) -> dict[str, dict]:
    users: dict[str, dict] = {}
    for (user, mechanism), credential in values.items():
        users.setdefault(user, {})[mechanism] = {"iterations": credential["iterations"]}
    return users


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


def find_unregistered_replicas(metadata):
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
