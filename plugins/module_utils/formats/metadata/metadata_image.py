# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The metadata that the records of a metadata log add up to, as Kafka replays them.

Sources: org.apache.kafka.image.{MetadataDelta,TopicsDelta,ConfigurationsDelta,ClientQuotasDelta,ScramDelta,AclsDelta,
DelegationTokenDelta,ProducerIdsDelta,FeaturesDelta,ClusterDelta}, metadata.PartitionRegistration.merge and
metadata.migration.ZkMigrationState (KIP-866) of Kafka 3.9.
"""

from __future__ import annotations

from typing import Any, Dict, Hashable, Iterable, List, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import BrokerRegistration, ControllerRegistration
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_log import Record
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.records.record_batch import LogError

METADATA_VERSION = "metadata.version"
TOPIC_RESOURCE, BROKER_RESOURCE, CLIENT_METRICS_RESOURCE = 2, 4, 16  # o.a.k.common.config.ConfigResource.Type
_ZK_MIGRATION_STATES = {0: "NONE", 1: "MIGRATION", 2: "PRE_MIGRATION", 3: "POST_MIGRATION"}
_FENCED = {-1: False, 1: True}
_UNCHANGED = -2  # PartitionChangeRecord.leader, LeaderConstants.NO_LEADER_CHANGE

PARTITION_FIELDS = (
    "replicas",
    "addingReplicas",
    "removingReplicas",
    "leader",
    "leaderEpoch",
    "isr",
    "leaderRecoveryState",
    "partitionEpoch",
    "eligibleLeaderReplicas",
    "lastKnownElr",
    "directories",
)
"""What an image has of a partition, in this order; the offset of its last change follows."""

UNASSIGNED, MIGRATING = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAA"
"""Ids in place of a replica's directory (o.a.k.common.DirectoryId): not known yet, or there before KIP-858."""

_INDEX = {name: index for index, name in enumerate(PARTITION_FIELDS)}
_ELR = ("eligibleLeaderReplicas", "lastKnownElr")
_REPLACED = ("replicas", "isr", "addingReplicas", "removingReplicas", *_ELR)


class InconsistentLog(LogError):
    """A record that Kafka would reject at this offset."""


class Image:
    """The metadata of records that were applied in their order.

    An offset is that of the record that last changed a piece of metadata. Of what a checkpoint holds it is the offset
    of the checkpoint's last record, an upper bound. Records of types that the caller leaves out leave their part empty.

    :ivar topics: {topic id: (name, offset)}
    :ivar partitions: {topic id: {partition: [one value for each of PARTITION_FIELDS, offset]}}
    :ivar configs: {(resource type's code, resource): {name: (value, offset)}}
    :ivar quotas: {(((entity type, entity or None), ...), key): (value, offset)}
    :ivar scram: {(user, mechanism's code): (fields of the record, offset)}
    :ivar acls: {id: (fields, offset)}
    :ivar delegation_tokens: {token id: (fields, offset)}
    :ivar producer_ids: (next producer id, offset), None before the first block was assigned
    :ivar features: {name: (level, offset)}
    :ivar brokers: {id: registration}
    :ivar controllers: {id: registration}
    :ivar removed_topics: {topic id: offset of the record that removed it}
    :ivar zk_migration_state: (name of the state, offset), None without such a record
    :ivar removed: {(attribute, key there): offset of the record that removed it last}; a partition's key is
        (topic's name, partition), a topic's its name, a config's (type, resource, name); an ACL is not in it by id
        but by its content, see `acl_content`
    """

    def __init__(self) -> None:
        self.topics: Dict[str, Tuple[str, int]] = {}
        self.partitions: Dict[str, Dict[int, list]] = {}
        self.configs: Dict[Tuple[int, str], Dict[str, Tuple[str, int]]] = {}
        self.quotas: Dict[Tuple[tuple, str], Tuple[float, int]] = {}
        self.scram: Dict[Tuple[str, int], Tuple[Dict[str, Any], int]] = {}
        self.acls: Dict[str, Tuple[Dict[str, Any], int]] = {}
        self.delegation_tokens: Dict[str, Tuple[Dict[str, Any], int]] = {}
        self.producer_ids: Tuple[int, int] | None = None
        self.features: Dict[str, Tuple[int, int]] = {}
        self.brokers: Dict[int, BrokerRegistration] = {}
        self.controllers: Dict[int, ControllerRegistration] = {}
        self.zk_migration_state: Tuple[str, int] | None = None
        self.removed: Dict[Tuple[str, Hashable], int] = {}
        self.removed_topics: Dict[str, int] = {}

    @classmethod
    def from_records(cls, records: Iterable[Record]) -> Image:
        """Return the image of these records. Raises InconsistentLog."""
        image = cls()
        for record in records:
            image.apply(record)
        return image

    def apply(self, record: Record) -> None:
        """Apply a record of TYPES. Raises InconsistentLog where Kafka would reject it, KeyError for another type."""
        _APPLY[record.type](self, record.fields, record)

    def client_metrics(self) -> Dict[str, list]:
        """Return {name: [key]} of the client metrics' configs (KIP-714)."""
        return {
            name: sorted(values)
            for (code, name), values in self.configs.items()
            if code == CLIENT_METRICS_RESOURCE and values
        }

    def partition_epochs(self) -> Dict[str, Dict[str, Any]]:
        """Return {topic: {topic_id, epochs: {partition, as text: partition epoch}}}.

        Each change of a partition adds one to its epoch, whatever it changes (PartitionRegistration.merge).
        """
        return {
            name: {
                "topic_id": topic_id,
                "epochs": {
                    str(number): values[_INDEX["partitionEpoch"]]
                    for number, values in self.partitions[topic_id].items()
                },
            }
            for topic_id, (name, _offset) in self.topics.items()
        }

    # --- one method a record type ---

    def _topic(self, fields, record):
        self.topics[fields["topicId"]] = (fields["name"], record.offset)
        self.partitions[fields["topicId"]] = {}

    def _remove_topic(self, fields, record):
        topic_id = fields["topicId"]
        if topic_id not in self.topics:
            raise _rejected(record, f"topic {topic_id}, which does not exist")
        name, _offset = self.topics.pop(topic_id)
        self.removed_topics[topic_id] = record.offset
        self._remove("topics", name, record)
        for number in self.partitions.pop(topic_id):
            self._remove("partitions", (name, number), record)
        for config in self.configs.pop((TOPIC_RESOURCE, name), ()):
            self._remove("configs", (TOPIC_RESOURCE, name, config), record)

    def _partition(self, fields, record):
        values = [fields[name] or [] if name in _ELR else fields[name] for name in PARTITION_FIELDS]
        values[_INDEX["directories"]] = fields["directories"] or [MIGRATING] * len(fields["replicas"])
        self._partitions_of(fields, record)[fields["partitionId"]] = [*values, record.offset]

    def _partition_change(self, fields, record):
        values = self._partitions_of(fields, record).get(fields["partitionId"])
        if values is None:
            partition = f"partition {fields['partitionId']} of topic {fields['topicId']}"
            raise _rejected(record, f"{partition}, which does not exist")
        values[_INDEX["directories"]] = _directories(values, fields)
        for name in _REPLACED:
            if fields[name] is not None:
                values[_INDEX[name]] = fields[name]
        if fields["leader"] != _UNCHANGED:
            values[_INDEX["leader"]] = fields["leader"]
            values[_INDEX["leaderEpoch"]] += 1
        if fields["leaderRecoveryState"] != -1:
            values[_INDEX["leaderRecoveryState"]] = fields["leaderRecoveryState"]
        values[_INDEX["partitionEpoch"]] += 1
        values[-1] = record.offset

    def _partitions_of(self, fields, record):
        partitions = self.partitions.get(fields["topicId"])
        if partitions is None:
            raise _rejected(record, f"a partition of topic {fields['topicId']}, which does not exist")
        return partitions

    def _config(self, fields, record):
        code, resource, name = fields["resourceType"], fields["resourceName"], fields["name"]
        if fields["value"] is not None:
            self.configs.setdefault((code, resource), {})[name] = (fields["value"], record.offset)
        elif self.configs.get((code, resource), {}).pop(name, None) is not None:
            self._remove("configs", (code, resource, name), record)

    def _quota(self, fields, record):
        entity = tuple(sorted((part["entityType"], part["entityName"]) for part in fields["entity"]))
        self._set("quotas", (entity, fields["key"]), None if fields["remove"] else fields["value"], record)

    def _scram(self, fields, record):
        self._set("scram", (fields["name"], fields["mechanism"]), fields, record)

    def _remove_scram(self, fields, record):
        self._set("scram", (fields["name"], fields["mechanism"]), None, record)

    def _acl(self, fields, record):
        self.acls[fields["id"]] = (fields, record.offset)

    def _remove_acl(self, fields, record):
        removed = self.acls.pop(fields["id"], None)
        if removed is None:
            raise _rejected(record, f"ACL {fields['id']}, which does not exist")
        self._remove("acls", acl_content(removed[0]), record)

    def _token(self, fields, record):
        self._set("delegation_tokens", fields["tokenId"], fields, record)

    def _remove_token(self, fields, record):
        self._set("delegation_tokens", fields["tokenId"], None, record)

    def _producer_ids(self, fields, record):
        self.producer_ids = (fields["nextProducerId"], record.offset)

    def _feature_level(self, fields, record):
        name, level = fields["name"], fields["featureLevel"]
        self._set("features", name, level if level or name == METADATA_VERSION else None, record)

    def _register_broker(self, fields, record):
        self.brokers[fields["brokerId"]] = {
            "epoch": fields["brokerEpoch"],
            "incarnation_id": fields["incarnationId"],
            "is_migrating_zk_broker": fields["isMigratingZkBroker"],
            "fenced": fields["fenced"],
            "in_controlled_shutdown": fields["inControlledShutdown"],
            "end_points": fields["endPoints"],
            "rack": fields["rack"],
            "log_dirs": fields["logDirs"],
            "features": _features(fields),
            "registered_offset": record.offset,
            "changed_offset": record.offset,
        }

    def _unregister_broker(self, fields, record):
        if self.brokers.pop(fields["brokerId"], None) is not None:
            self._remove("brokers", fields["brokerId"], record)

    def _fence_broker(self, fields, record):
        self._broker(fields["id"], fields["epoch"], record)["fenced"] = True

    def _unfence_broker(self, fields, record):
        self._broker(fields["id"], fields["epoch"], record)["fenced"] = False

    def _change_broker(self, fields, record):
        broker = self._broker(fields["brokerId"], fields["brokerEpoch"], record)
        broker["fenced"] = _FENCED.get(fields["fenced"], broker["fenced"])
        # Only a new registration leaves the controlled shutdown (BrokerRegistrationInControlledShutdownChange).
        broker["in_controlled_shutdown"] = fields["inControlledShutdown"] == 1 or broker["in_controlled_shutdown"]
        broker["log_dirs"] = fields["logDirs"] or broker["log_dirs"]

    def _broker(self, broker_id, epoch, record):
        broker = self.brokers.get(broker_id)
        if broker is None or broker["epoch"] != epoch:
            found = "not registered" if broker is None else f"registered with epoch {broker['epoch']}"
            raise _rejected(record, f"broker {broker_id} epoch {epoch}, which is {found}")
        broker["changed_offset"] = record.offset
        return broker

    def _register_controller(self, fields, record):
        self.controllers[fields["controllerId"]] = {
            "incarnation_id": fields["incarnationId"],
            "zk_migration_ready": fields["zkMigrationReady"],
            "end_points": fields["endPoints"],
            "features": _features(fields),
            "registered_offset": record.offset,
        }

    def _unregister_controller(self, fields, record):
        if self.controllers.pop(fields["controllerId"], None) is not None:
            self._remove("controllers", fields["controllerId"], record)

    def _zk_migration_state(self, fields, record):
        value = fields["zkMigrationState"]
        if value not in _ZK_MIGRATION_STATES:
            raise InconsistentLog(f"offset {record.offset}: ZooKeeper migration state {value} is none of KIP-866's")
        self.zk_migration_state = (_ZK_MIGRATION_STATES[value], record.offset)

    def _set(self, attribute, key, value, record):
        """Set a value with the record's offset; None removes it."""
        values = getattr(self, attribute)
        if value is not None:
            values[key] = (value, record.offset)
        elif values.pop(key, None) is not None:
            self._remove(attribute, key, record)

    def _remove(self, attribute, key, record):
        self.removed[(attribute, key)] = record.offset


def acl_content(fields: Dict[str, Any]) -> tuple:
    """Return what an AccessControlEntryRecord grants or denies: two ids with the same content are one ACL."""
    return tuple(fields[name] for name in ACL_FIELDS)


ACL_FIELDS = ("resourceType", "patternType", "resourceName", "principal", "host", "operation", "permissionType")


def _features(fields: Dict[str, Any]) -> Dict[str, List[int]]:
    """Return the levels that a registration supports, {feature: [lowest, highest]}."""
    return {
        feature["name"]: [feature["minSupportedVersion"], feature["maxSupportedVersion"]]
        for feature in fields["features"]
    }


def _directories(values: list, change: Dict[str, Any]) -> List[str]:
    """Return a partition's directories after a change (PartitionRegistration.merge)."""
    before = values[_INDEX["directories"]]
    if change["directories"] or change["replicas"] is None:
        return change["directories"] or before
    known = dict(zip(values[_INDEX["replicas"]], before))
    return [known.get(replica, UNASSIGNED) for replica in change["replicas"]]


def _rejected(record, what):
    return InconsistentLog(f"offset {record.offset}: {record.type} for {what}")


_TOPICS = {
    "TOPIC_RECORD": Image._topic,
    "REMOVE_TOPIC_RECORD": Image._remove_topic,
    "PARTITION_RECORD": Image._partition,
    "PARTITION_CHANGE_RECORD": Image._partition_change,
}
_CONFIGS = {"CONFIG_RECORD": Image._config}
_CLUSTER = {
    "FEATURE_LEVEL_RECORD": Image._feature_level,
    "REGISTER_BROKER_RECORD": Image._register_broker,
    "UNREGISTER_BROKER_RECORD": Image._unregister_broker,
    "FENCE_BROKER_RECORD": Image._fence_broker,
    "UNFENCE_BROKER_RECORD": Image._unfence_broker,
    "BROKER_REGISTRATION_CHANGE_RECORD": Image._change_broker,
    "REGISTER_CONTROLLER_RECORD": Image._register_controller,
    "UNREGISTER_CONTROLLER_RECORD": Image._unregister_controller,
    "ZK_MIGRATION_STATE_RECORD": Image._zk_migration_state,
}
_APPLY = {
    **_TOPICS,
    **_CONFIGS,
    **_CLUSTER,
    "CLIENT_QUOTA_RECORD": Image._quota,
    "USER_SCRAM_CREDENTIAL_RECORD": Image._scram,
    "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": Image._remove_scram,
    "ACCESS_CONTROL_ENTRY_RECORD": Image._acl,
    "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": Image._remove_acl,
    "DELEGATION_TOKEN_RECORD": Image._token,
    "REMOVE_DELEGATION_TOKEN_RECORD": Image._remove_token,
    "PRODUCER_IDS_RECORD": Image._producer_ids,
}

TYPES = frozenset(_APPLY)
"""The record types that change an image; a NoOp and the markers of transactions do not."""

TOPIC_TYPES = frozenset(_TOPICS)
"""Those of topics and partitions alone."""

PARTITION_TYPES = frozenset(("PARTITION_RECORD", "PARTITION_CHANGE_RECORD"))
"""Those of partitions: nearly all records of a large log."""

CLUSTER_TYPES = frozenset(_CLUSTER) | frozenset(_CONFIGS)
"""Those of brokers, controllers, features, configs and the migration's state: a few records of a large log."""
