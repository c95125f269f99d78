# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller's metadata log as a view: checkpoint and segments below an end offset, replayed as Kafka replays them.

Sources: org.apache.kafka.image.{MetadataDelta,TopicsDelta,ConfigurationsDelta,ClientQuotasDelta,ScramDelta,AclsDelta,
DelegationTokenDelta,ProducerIdsDelta,FeaturesDelta,ClusterDelta} and metadata.PartitionRegistration.merge of Kafka 3.9.
A record that Kafka would reject is an error. `at` of an entity is the offset of the last record that changed it; of an
absent one, of the record that removed it. For what a checkpoint holds or lacks, `at` is the checkpoint's last offset.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils import metadata_snapshot
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import enums, metadata_image
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata_image import InconsistentLog
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata_log import (
    LogMissing,
    Record,
    log_records,
    open_log,
    scan_log,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.record_batch import LogError

from quorumshift_spark import normal_form as form
from quorumshift_spark.normal_form import Digests, Entity
from quorumshift_spark.views import Absent, Key, Statement, View, ViewError

_TOPIC, _BROKER = 2, 4  # o.a.k.common.config.ConfigResource.Type
_UNCHANGED = -2  # PartitionChangeRecord.leader, LeaderConstants.NO_LEADER_CHANGE
_PARTITION_FIELDS = {
    "replicas": "replicas",
    "addingReplicas": "adding",
    "removingReplicas": "removing",
    "leader": "leader",
    "leaderEpoch": "leader_epoch",
    "isr": "isr",
    "leaderRecoveryState": "recovery_state",
    "partitionEpoch": "partition_epoch",
}


class LogSource(NamedTuple):
    """Where a log is: a node's `directory`, or an `archive` of the module metadata_snapshot with its `sha256`.

    `end_offset`: exclusive, the high watermark; a log that ends before it is an error. `content`: the archive's bytes,
    for executors that do not share the driver's files.
    """

    end_offset: int
    directory: str | None = None
    archive: str | None = None
    sha256: str | None = None
    content: bytes | None = None


class MetadataLogView(View):
    """The log of one controller. `name`: `metadata_log`, or `metadata_log:<controller id>` for a further one.

    :arg ship: whether tasks get the archive's bytes instead of its path.
    """

    kinds = form.KINDS

    def __init__(self, source: LogSource, digests: Digests, name: str = "metadata_log", ship: bool = False) -> None:
        self.name = name
        self.source = source
        self._digests = digests
        self._ship = ship

    def parts(self) -> List[LogSource]:
        """Return one part: records of a log depend on those before them."""
        if not (self._ship and self.source.archive):
            return [self.source]
        with open(self.source.archive, "rb") as file:
            return [self.source._replace(content=file.read())]

    def read(self, part: LogSource) -> Iterator[Entity | Statement]:
        image, statement = self._replay(part)
        yield from image.entities(self._digests)
        yield statement

    def reread(self, keys: Iterable[Key]) -> Tuple[Dict[Key, Entity | Absent], Statement]:
        """Return these keys at the end of `source`, a newer snapshot where the job got one since `read`."""
        wanted = set(keys)
        image, statement = self._replay(self.source)
        found: Dict[Key, Entity | Absent] = {
            (entity.kind, entity.key): entity
            for entity in image.entities(self._digests)
            if (entity.kind, entity.key) in wanted
        }
        for key in wanted.difference(found):
            found[key] = Absent(image.absent_since(key))
        return found, statement

    def _replay(self, source) -> Tuple[Image, Statement]:
        with _directory(source) as directory:
            try:
                with open_log(directory, source.end_offset) as log:
                    extent = scan_log(log, source.end_offset)
                    image = Image(log.checkpoint.offset - 1 if log.checkpoint else None)
                    for record in log_records(log, extent, TYPES):
                        image.apply(record)
            except LogMissing as error:
                raise ViewError(f"{self.name}: {error}") from None
            except LogError as error:
                raise ViewError(f"{self.name}: {error}. Take the snapshot of the log again") from error
        if extent.end_offset < source.end_offset:
            raise ViewError(
                f"{self.name}: the log ends at offset {extent.end_offset} (epoch {extent.last_epoch}), "
                f"{source.end_offset - extent.end_offset} short of the high watermark {source.end_offset}. The "
                "controller lags or the snapshot is incomplete. Take the snapshot again, on the quorum's leader"
            )
        return image, Statement({"offset": extent.end_offset, "epoch": extent.last_epoch}, [])


@contextlib.contextmanager
def _directory(source: LogSource) -> Iterator[str]:
    """Yield the log's directory. An archive, which holds secrets, is unpacked privately and removed afterwards."""
    if source.directory:
        yield source.directory
        return
    with tempfile.TemporaryDirectory(prefix="quorumshift-log-") as scratch:  # made 0700
        archive = source.archive
        try:
            if source.content is not None:
                archive = os.path.join(scratch, "log.tar.gz")
                with open(os.open(archive, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
                    file.write(source.content)
            directory = os.path.join(scratch, "log")
            metadata_snapshot.unpack(archive, source.sha256, directory)
        except (metadata_snapshot.SnapshotError, OSError, EOFError) as error:
            raise ViewError(f"metadata log: {error}") from error
        yield directory


class Image:
    """The metadata that records add up to. `checkpoint_offset`: of the checkpoint's last record, None without one."""

    def __init__(self, checkpoint_offset: int | None = None) -> None:
        self._checkpoint_offset = checkpoint_offset
        self._topics: Dict[str, Tuple[str, int]] = {}  # {id: (name, offset)}
        self._ids: Dict[str, str] = {}  # {name: id}
        self._partitions: Dict[str, Dict[int, list]] = {}  # {topic id: {partition: [values..., offset]}}
        self._configs: Dict[Tuple[int, str], Dict[str, Tuple[str, int]]] = {}
        self._quotas: Dict[Tuple[Any, str], Tuple[float, int]] = {}
        self._scram: Dict[Tuple[str, int], Tuple[Dict[str, Any], int]] = {}
        self._acls: Dict[str, Tuple[Dict[str, Any], int]] = {}
        self._tokens: Dict[str, Tuple[Dict[str, Any], int]] = {}
        self._producer_ids: Tuple[int, int] | None = None
        self._cluster = metadata_image.empty_state()
        self._changed_at: Dict[Tuple[str, Any], int] = {}  # {(kind, broker id or feature): offset}
        self._removed: Dict[Key, int] = {}

    def apply(self, record: Record) -> None:
        """Apply one record of TYPES. Raises InconsistentLog where Kafka would reject it."""
        _APPLY[record.type](self, record.fields, record)

    def absent_since(self, key: Key) -> Dict[str, int]:
        """Return {"offset": n} of the record that removed this key, else of the checkpoint's last record, else {}."""
        at = self._removed.get(key, self._checkpoint_offset)
        return {} if at is None else {"offset": at}

    def entities(self, digests: Digests) -> Iterator[Entity]:
        """Yield every entity in the normal form."""
        for topic_id, (name, at) in self._topics.items():
            yield form.topic(name, topic_id, {"offset": at})
        for topic_id, partitions in self._partitions.items():
            name = self._topics[topic_id][0]
            for number, values in partitions.items():
                yield form.partition(name, number, dict(zip(_FIELD_NAMES, values)), {"offset": values[-1]})
        for (code, resource), configs in self._configs.items():
            for name, (value, at) in configs.items():
                yield form.config(*_resource(code, resource), name, value, digests, {"offset": at})
        for (entity, key), (value, at) in self._quotas.items():
            yield form.quota(dict(entity), key, value, {"offset": at})
        for (user, code), (fields, at) in self._scram.items():
            mechanism = enums.of_code(enums.SCRAM_MECHANISMS, code)
            keys = (fields["salt"], fields["storedKey"], fields["serverKey"])
            digest = digests.scram(user, mechanism, *keys, fields["iterations"])
            yield form.scram(user, mechanism, fields["iterations"], digest, {"offset": at})
        yield from self._distinct_acls()
        for fields, at in self._tokens.values():
            yield form.delegation_token(
                fields["tokenId"],
                fields["owner"],
                fields["requester"],
                fields["renewers"],
                fields["issueTimestamp"],
                fields["expirationTimestamp"],
                fields["maxTimestamp"],
                {"offset": at},
            )
        if self._producer_ids is not None:
            yield form.producer_ids(self._producer_ids[0], at={"offset": self._producer_ids[1]})
        for name, level in self._cluster["features"].items():
            yield form.feature(name, level, {"offset": self._changed_at[("feature", name)]})
        for broker_id, broker in self._cluster["brokers"].items():
            fields = {"fenced": broker["fenced"], "epoch": broker["epoch"]}
            yield form.broker(int(broker_id), fields, {"offset": self._changed_at[("broker", int(broker_id))]})

    def _distinct_acls(self):
        """Return ACLs by content: to an authorizer, two ids with the same content are one ACL."""
        entities = {}
        for fields, at in self._acls.values():
            entity = _acl(fields, at)
            other = entities.get(entity.key)
            if other is None or other.at["offset"] < at:
                entities[entity.key] = entity
        return entities.values()

    # --- one method a record type ---

    def _topic(self, fields, record):
        name, topic_id = fields["name"], fields["topicId"]
        self._topics[topic_id] = (name, record.offset)
        self._ids[name] = topic_id
        self._partitions[topic_id] = {}

    def _remove_topic(self, fields, record):
        topic_id = fields["topicId"]
        if topic_id not in self._topics:
            raise _rejected(record, f"topic {topic_id}, which does not exist")
        name, _at = self._topics.pop(topic_id)
        numbers = self._partitions.pop(topic_id)
        self._remove("topic", [name], record)
        for number in numbers:
            self._remove("partition", [name, number], record)
        for config in self._configs.pop((_TOPIC, name), ()):
            self._remove("config", ["topic", name, config], record)
        if self._ids.get(name) == topic_id:
            del self._ids[name]

    def _partition(self, fields, record):
        self._partitions_of(fields, record)[fields["partitionId"]] = [
            *(fields[name] for name in _PARTITION_FIELDS),
            record.offset,
        ]

    def _partition_change(self, fields, record):
        partitions = self._partitions_of(fields, record)
        values = partitions.get(fields["partitionId"])
        if values is None:
            raise _rejected(
                record, f"partition {fields['partitionId']} of topic {fields['topicId']}, which does not exist"
            )
        for name in ("replicas", "isr", "addingReplicas", "removingReplicas"):
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
        partitions = self._partitions.get(fields["topicId"])
        if partitions is None:
            raise _rejected(record, f"a partition of topic {fields['topicId']}, which does not exist")
        return partitions

    def _config(self, fields, record):
        resource = (fields["resourceType"], fields["resourceName"])
        configs = self._configs.setdefault(resource, {})
        if fields["value"] is not None:
            configs[fields["name"]] = (fields["value"], record.offset)
        elif configs.pop(fields["name"], None) is not None:
            self._remove("config", [*_resource(*resource), fields["name"]], record)

    def _quota(self, fields, record):
        entity = tuple(sorted((part["entityType"], part["entityName"]) for part in fields["entity"]))
        if not fields["remove"]:
            self._quotas[(entity, fields["key"])] = (fields["value"], record.offset)
        elif self._quotas.pop((entity, fields["key"]), None) is not None:
            self._remove("quota", [[list(part) for part in entity], fields["key"]], record)

    def _credential(self, fields, record):
        self._scram[(fields["name"], fields["mechanism"])] = (fields, record.offset)

    def _remove_credential(self, fields, record):
        if self._scram.pop((fields["name"], fields["mechanism"]), None) is not None:
            self._remove("scram", [fields["name"], enums.of_code(enums.SCRAM_MECHANISMS, fields["mechanism"])], record)

    def _acl_entry(self, fields, record):
        self._acls[fields["id"]] = (fields, record.offset)

    def _remove_acl(self, fields, record):
        removed = self._acls.pop(fields["id"], None)
        if removed is None:
            raise _rejected(record, f"ACL {fields['id']}, which does not exist")
        self._removed[("acl", _acl(*removed).key)] = record.offset

    def _token(self, fields, record):
        self._tokens[fields["tokenId"]] = (fields, record.offset)

    def _remove_token(self, fields, record):
        if self._tokens.pop(fields["tokenId"], None) is not None:
            self._remove("delegation_token", [fields["tokenId"]], record)

    def _next_producer_id(self, fields, record):
        self._producer_ids = (fields["nextProducerId"], record.offset)

    def _feature_or_broker(self, fields, record):
        metadata_image.apply(self._cluster, record)
        if record.type == "FEATURE_LEVEL_RECORD":
            kind, name = "feature", fields["name"]
            removed = name not in self._cluster["features"]
        else:
            kind, name = "broker", fields.get("brokerId", fields.get("id"))
            removed = str(name) not in self._cluster["brokers"]
        self._changed_at[(kind, name)] = record.offset
        if removed:
            self._remove(kind, [name], record)

    def _remove(self, kind, key, record):
        self._removed[(kind, form.canonical(key))] = record.offset


_FIELD_NAMES = tuple(_PARTITION_FIELDS.values())
_INDEX = {name: index for index, name in enumerate(_PARTITION_FIELDS)}


def _resource(code, name):
    """Return type and entity of a config's key; KRaft's default broker entity is ""."""
    kind = form.CONFIG_RESOURCES.get(code, f"resource type {code}")
    return kind, None if code == _BROKER and name == "" else name


def _acl(fields, at):
    return form.acl_of_codes(fields, {"offset": at})


def _rejected(record, what):
    return InconsistentLog(f"offset {record.offset}: {record.type} for {what}")


_APPLY = {
    "TOPIC_RECORD": Image._topic,
    "REMOVE_TOPIC_RECORD": Image._remove_topic,
    "PARTITION_RECORD": Image._partition,
    "PARTITION_CHANGE_RECORD": Image._partition_change,
    "CONFIG_RECORD": Image._config,
    "CLIENT_QUOTA_RECORD": Image._quota,
    "USER_SCRAM_CREDENTIAL_RECORD": Image._credential,
    "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": Image._remove_credential,
    "ACCESS_CONTROL_ENTRY_RECORD": Image._acl_entry,
    "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": Image._remove_acl,
    "DELEGATION_TOKEN_RECORD": Image._token,
    "REMOVE_DELEGATION_TOKEN_RECORD": Image._remove_token,
    "PRODUCER_IDS_RECORD": Image._next_producer_id,
    **dict.fromkeys(
        (
            "FEATURE_LEVEL_RECORD",
            "REGISTER_BROKER_RECORD",
            "UNREGISTER_BROKER_RECORD",
            "FENCE_BROKER_RECORD",
            "UNFENCE_BROKER_RECORD",
            "BROKER_REGISTRATION_CHANGE_RECORD",
        ),
        Image._feature_or_broker,
    ),
}

TYPES = frozenset(_APPLY)
"""The record types that change an entity; others (NoOp, controllers, the migration's state) do not."""
