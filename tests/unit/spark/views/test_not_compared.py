# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of what no comparison sees (rules.NOT_COMPARED) is complete: each field of each record is changed."""

from __future__ import annotations

import copy

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.messages import messages
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_image import (
    TYPES,
    Image,
    InconsistentLog,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_log import Record
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_schemas import RECORDS
from quorumshift_spark import normal_form as form
from quorumshift_spark import rules
from quorumshift_spark.views import metadata_log, partition

from tests.unit.spark.realistic import DIGESTS

IDS = ["A" * 21 + "Q", "B" * 21 + "Q"]  # of topics, directories, ACLs
END_POINT = {"name": "P", "host": "h", "port": 1, "securityProtocol": 0}
FEATURE = {"name": "f", "minSupportedVersion": 1, "maxSupportedVersion": 2}
ENTITY = {"entityType": "user", "entityName": "u"}
GIVEN = {
    "REGISTER_BROKER_RECORD": {"brokerId": 1, "brokerEpoch": 5, "endPoints": [END_POINT], "features": [FEATURE]},
    "REGISTER_CONTROLLER_RECORD": {"controllerId": 9, "endPoints": [END_POINT], "features": [FEATURE]},
    "TOPIC_RECORD": {"name": "t", "topicId": IDS[0]},
    "PARTITION_RECORD": {"topicId": IDS[0], "partitionId": 0, "replicas": [1, 2], "isr": [1, 2], "directories": IDS},
    "CONFIG_RECORD": {"resourceType": 2, "resourceName": "t", "name": "retention.ms", "value": "1"},
    "CLIENT_QUOTA_RECORD": {"entity": [ENTITY], "key": "producer_byte_rate", "value": 1.0},
    "USER_SCRAM_CREDENTIAL_RECORD": {"name": "u", "mechanism": 1, "salt": b"s", "storedKey": b"k", "serverKey": b"v"},
    "ACCESS_CONTROL_ENTRY_RECORD": {
        **{"id": IDS[0], "resourceType": 2, "resourceName": "t", "patternType": 3, "principal": "User:u"},
        **{"host": "*", "operation": 3, "permissionType": 3},
    },
    "DELEGATION_TOKEN_RECORD": {"owner": "User:u", "requester": "User:u", "tokenId": "token"},
    "PRODUCER_IDS_RECORD": {"nextProducerId": 1000},
    "FEATURE_LEVEL_RECORD": {"name": "metadata.version", "featureLevel": 21},
    "ZK_MIGRATION_STATE_RECORD": {"zkMigrationState": 1},
    "FENCE_BROKER_RECORD": {"id": 1, "epoch": 5},
    "UNFENCE_BROKER_RECORD": {"id": 1, "epoch": 5},
    "BROKER_REGISTRATION_CHANGE_RECORD": {"brokerId": 1, "brokerEpoch": 5},
    "UNREGISTER_BROKER_RECORD": {"brokerId": 1, "brokerEpoch": 5},
    "UNREGISTER_CONTROLLER_RECORD": {"controllerId": 9},
    "REMOVE_TOPIC_RECORD": {"topicId": IDS[0]},
    "PARTITION_CHANGE_RECORD": {"topicId": IDS[0], "partitionId": 0},
    "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": {"id": IDS[0]},
    "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": {"name": "u", "mechanism": 1},
    "REMOVE_DELEGATION_TOKEN_RECORD": {"tokenId": "token"},
}
"""What is not the default, in records that a log may have."""
NOT_SEEN = {
    "RegisterBrokerRecord": {"incarnationId", "isMigratingZkBroker", "features", "inControlledShutdown"},
    "BrokerRegistrationChangeRecord": {"inControlledShutdown"},
    "UnregisterBrokerRecord": {"brokerEpoch"},
    "RegisterControllerRecord": {"controllerId", "incarnationId", "zkMigrationReady", "endPoints", "features"},
    "UnregisterControllerRecord": {"controllerId"},
    "AccessControlEntryRecord": {"id"},
    "ProducerIdsRecord": {"brokerId", "brokerEpoch"},
}
"""The fields of records of which a change changes nothing that two logs are compared by."""


def others(field, value):
    """Return other values of a field."""
    if field.type.startswith("[]"):
        if field.type == "[]struct":
            return [
                [],
                *(
                    [{**element, name: other} for element in value]
                    for name, other in (("name", "g"), ("port", 2), ("host", "i"))
                    if value and name in value[0]
                ),
            ]
        return [{"[]int32": [1], "[]uuid": IDS[:1], "[]string": ["User:r"]}[field.type]]
    if field.type == "bool":
        return [not value]
    if field.type == "uuid":
        return [topic_id for topic_id in IDS if topic_id != value]
    if field.type == "string":
        return [f"{value}x"]
    if field.type == "bytes":
        return [b"x"]
    return [value + 1, value - 1]


def seen(records):
    """Return what a log is compared by, or that Kafka rejects it."""
    placed = [Record(number, 0, 0, name, 0, fields, False) for number, (name, fields) in enumerate(records)]
    try:
        image = Image.from_records(placed)
    except (InconsistentLog, KeyError):
        return "rejected"
    rows = [partition(rules.LOG, row, 0) for row in metadata_log._partitions(image)]
    found = set()
    for entity in [*metadata_log.entities(image, DIGESTS), *rows]:
        compared = [name for name, _how in rules.compared_fields(entity.kind, rules.LOGS)]
        found.add((entity.kind, entity.key, *(entity.fields.get(name) for name in compared)))
    return found


def test_each_field_of_each_record_is_compared_or_listed():
    schemas = {schema.name: schema for schema in RECORDS.values() if schema.name in TYPES}
    assert GIVEN.keys() == TYPES == schemas.keys()
    filled = {
        name: {**{field.name: field.default for field in messages.fields_of(schema.message, 0)}, **GIVEN[name]}
        for name, schema in schemas.items()
    }
    removing = [name for name in filled if name.startswith(("REMOVE", "UNREGISTER"))]
    changing = [name for name in filled if "CHANGE" in name or "FENCE" in name]
    setting = [name for name in GIVEN if name not in (*removing, *changing)]
    not_seen = {}
    for name, schema in schemas.items():
        order = [(record_name, filled[record_name] if record_name != name else None) for record_name in setting]
        if name not in setting:
            order.append((name, None))

        def log(fields, order=order):
            return [(record_type, copy.deepcopy(fields if of is None else of)) for record_type, of in order]

        plain = seen(log(filled[name]))
        assert plain != "rejected", name
        for field in messages.fields_of(schema.message, schema.latest):
            if all(
                seen(log({**filled[name], field.name: other})) == plain
                for other in others(field, filled[name][field.name])
            ):
                not_seen.setdefault(camel(name), set()).add(field.name)
    assert not_seen == NOT_SEEN
    listed = " ".join(what for what, _why in rules.NOT_COMPARED)
    assert [field for field in not_seen if field not in listed] == []


def camel(name):
    return "".join(part.capitalize() for part in name.split("_"))


def test_records_that_change_no_image_are_listed():
    listed = " ".join(what for what, _why in rules.NOT_COMPARED)
    others_ = {schema.name for schema in RECORDS.values()} - TYPES
    assert others_ == {"NO_OP_RECORD", *(f"{kind}_TRANSACTION_RECORD" for kind in ("BEGIN", "END", "ABORT"))}
    assert "NoOpRecord and the markers of transactions" in listed


def test_fields_that_are_compared_in_no_relation_are_named_with_the_reason():
    unseen = {(row.kind, row.field): row.why for row in rules.TABLE if all(how == rules.NOT for how in row.hows)}
    assert unseen.keys() == {("partition", "topic_id"), ("partition", "controller_epoch")}
    assert all(unseen.values())
    assert set(form.KINDS) == {row.kind for row in rules.TABLE}
