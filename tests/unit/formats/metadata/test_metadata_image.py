# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The replay of metadata records."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import metadata_image
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_log import Record

PARTITION = {
    "replicas": [1, 2],
    "addingReplicas": [],
    "removingReplicas": [],
    "leader": 1,
    "leaderEpoch": 3,
    "isr": [1, 2],
    "eligibleLeaderReplicas": None,
    "lastKnownElr": None,
    "directories": [],
    "leaderRecoveryState": 0,
}


def image(*records):
    """The image after (type, fields) pairs at offsets 0, 1, ..."""
    return metadata_image.Image.from_records(
        Record(offset, 1, 0, kind, 0, fields, False) for offset, (kind, fields) in enumerate(records)
    )


def topic(topic_id, name="orders"):
    return "TOPIC_RECORD", {"topicId": topic_id, "name": name}


def partition(topic_id, number, epoch=0):
    return "PARTITION_RECORD", {"topicId": topic_id, "partitionId": number, **PARTITION, "partitionEpoch": epoch}


def changed(topic_id, number, **fields):
    lists = ("isr", "replicas", "removingReplicas", "addingReplicas", "eligibleLeaderReplicas", "lastKnownElr")
    unset = dict.fromkeys((*lists, "directories"))
    values = {"topicId": topic_id, "partitionId": number, **unset, "leader": -2, "leaderRecoveryState": -1, **fields}
    return "PARTITION_CHANGE_RECORD", values


def test_every_change_of_a_partition_adds_one_to_its_epoch():
    found = image(
        topic("a"), partition("a", 0, 7), partition("a", 1), changed("a", 0, isr=[1]), changed("a", 0, leader=2)
    )
    assert found.partition_epochs() == {"orders": {"topic_id": "a", "epochs": {"0": 9, "1": 0}}}


def test_a_recreated_topic_has_its_own_epochs():
    found = image(
        topic("a"), partition("a", 0, 7), ("REMOVE_TOPIC_RECORD", {"topicId": "a"}), topic("b"), partition("b", 0)
    )
    assert found.partition_epochs() == {"orders": {"topic_id": "b", "epochs": {"0": 0}}}


REGISTER = (
    "REGISTER_BROKER_RECORD",
    {
        "brokerId": 3,
        "brokerEpoch": 7,
        "incarnationId": "i",
        "isMigratingZkBroker": True,
        "fenced": True,
        "inControlledShutdown": False,
        "endPoints": [],
        "features": [{"name": "metadata.version", "minSupportedVersion": 1, "maxSupportedVersion": 21}],
        "rack": None,
        "logDirs": ["d1"],
    },
)


def brokers(*records):
    return image(*records).brokers


def change(fenced=0, shutdown=0, log_dirs=(), epoch=7):
    fields = {"brokerId": 3, "brokerEpoch": epoch, "fenced": fenced, "inControlledShutdown": shutdown}
    return "BROKER_REGISTRATION_CHANGE_RECORD", {**fields, "logDirs": list(log_dirs)}


def test_life_of_a_broker():
    assert brokers(REGISTER)[3]["fenced"] is True and brokers(REGISTER)[3]["features"] == {"metadata.version": [1, 21]}
    assert brokers(REGISTER, change(fenced=-1))[3]["fenced"] is False
    assert brokers(REGISTER, change(fenced=-1), change(fenced=1))[3]["fenced"] is True
    assert brokers(REGISTER, ("UNFENCE_BROKER_RECORD", {"id": 3, "epoch": 7}))[3]["fenced"] is False
    assert brokers(REGISTER, change(fenced=-1), ("FENCE_BROKER_RECORD", {"id": 3, "epoch": 7}))[3]["fenced"] is True
    stopping = brokers(REGISTER, change(fenced=-1), change(shutdown=1), change(log_dirs=["d2"]))[3]
    assert (stopping["fenced"], stopping["in_controlled_shutdown"], stopping["log_dirs"]) == (False, True, ["d2"])
    assert brokers(REGISTER, change(shutdown=1), REGISTER)[3]["in_controlled_shutdown"] is False
    assert brokers(REGISTER, ("UNREGISTER_BROKER_RECORD", {"brokerId": 3, "brokerEpoch": 7})) == {}


def test_a_controller_is_registered_until_it_is_unregistered():
    levels = {"name": "metadata.version", "minSupportedVersion": 7, "maxSupportedVersion": 33}
    fields = {"controllerId": 9, "incarnationId": "i", "zkMigrationReady": False, "endPoints": [], "features": [levels]}
    register, unregister = ("REGISTER_CONTROLLER_RECORD", fields), ("UNREGISTER_CONTROLLER_RECORD", {"controllerId": 9})
    assert image(register).controllers[9]["features"] == {"metadata.version": [7, 33]}
    assert image(register, unregister).controllers == {} and image(unregister).controllers == {}
    assert list(image(register, unregister, register).controllers) == [9]


@pytest.mark.parametrize("records", [[change()], [REGISTER, change(epoch=6)]])
def test_change_of_a_registration_that_is_not_there(records):
    with pytest.raises(metadata_image.InconsistentLog, match="BROKER_REGISTRATION_CHANGE_RECORD for broker 3"):
        brokers(*records)


def test_a_removed_topic_removes_its_partitions_and_configs():
    config = ("CONFIG_RECORD", {"resourceType": 2, "resourceName": "orders", "name": "k", "value": "v"})
    broker = ("CONFIG_RECORD", {"resourceType": 4, "resourceName": "orders", "name": "k", "value": "v"})
    before = [topic("T"), partition("T", 0), partition("T", 1), config, broker]
    assert len(image(*before).partitions["T"]) == 2
    after = image(*before, ("REMOVE_TOPIC_RECORD", {"topicId": "T"}))
    assert after.topics == after.partitions == {} and list(after.configs) == [(4, "orders")]
    assert set(after.removed.values()) == {5} and len(after.removed) == 4


def quota(remove):
    entity = [{"entityType": "user", "entityName": None}]
    return "CLIENT_QUOTA_RECORD", {"entity": entity, "key": "k", "value": 1.0, "remove": remove}


CREDENTIAL = {"name": "u", "mechanism": 1}
GRANT = dict.fromkeys(("resourceType", "patternType", "operation", "permissionType"), 2)
GRANT = {**GRANT, "id": "a", "resourceName": "t", "principal": "User:u", "host": "*"}


@pytest.mark.parametrize(
    ("part", "add", "remove"),
    [
        ("quotas", quota(False), quota(True)),
        (
            "scram",
            ("USER_SCRAM_CREDENTIAL_RECORD", CREDENTIAL),
            ("REMOVE_USER_SCRAM_CREDENTIAL_RECORD", CREDENTIAL),
        ),
        ("acls", ("ACCESS_CONTROL_ENTRY_RECORD", GRANT), ("REMOVE_ACCESS_CONTROL_ENTRY_RECORD", {"id": "a"})),
        (
            "delegation_tokens",
            ("DELEGATION_TOKEN_RECORD", {"tokenId": "a"}),
            ("REMOVE_DELEGATION_TOKEN_RECORD", {"tokenId": "a"}),
        ),
        (
            "features",
            ("FEATURE_LEVEL_RECORD", {"name": "f", "featureLevel": 1}),
            ("FEATURE_LEVEL_RECORD", {"name": "f", "featureLevel": 0}),
        ),
    ],
)
def test_a_remove_record_removes_what_was_added(part, add, remove):
    assert len(getattr(image(add, add), part)) == 1
    after = image(add, remove)
    assert getattr(after, part) == {} and list(after.removed.values()) == [1]
    assert getattr(image(add, remove, add), part)


def test_a_config_without_value_is_removed():
    def config(value):
        return "CONFIG_RECORD", {"resourceType": 4, "resourceName": "", "name": "k", "value": value}

    assert image(config("")).configs[(4, "")] == {"k": ("", 0)}
    assert image(config(""), config(None)).configs[(4, "")] == {}
    assert image(config(None)).removed == {}


def test_producer_ids():
    assert image().producer_ids is None
    assert image(("PRODUCER_IDS_RECORD", {"nextProducerId": 2000})).producer_ids == (2000, 0)


def test_a_replica_keeps_its_directory_until_a_record_names_another():
    def directories(*changes):
        records = [topic("A"), partition("A", 0), *(changed("A", 0, **fields) for fields in changes)]
        return dict(zip(metadata_image.PARTITION_FIELDS, image(*records).partitions["A"][0]))["directories"]

    unassigned, migrating = metadata_image.UNASSIGNED, metadata_image.MIGRATING
    assert directories() == [migrating, migrating]
    assert directories({"isr": [1]}, {"directories": []}) == [migrating, migrating]
    named = {"directories": ["one", "two"]}
    assert directories(named, {"replicas": [3, 2]}) == [unassigned, "two"]
    assert directories(named, {"replicas": [2, 3], "directories": ["b", "c"]}) == ["b", "c"]
