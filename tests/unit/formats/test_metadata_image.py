# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Summaries of the metadata log of a recorded migration, and of small hand-made logs."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import metadata_counts, metadata_image
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata_log import Record, list_files

from tests.unit.formats import metadata_batches as made

RECORDED = Path(__file__).parent / "data" / "metadata_log.tar.xz"
STATE = ("zk_migration_state", "metadata_version", "features", "image_counts")


@pytest.fixture
def recorded(tmp_path):
    with tarfile.open(RECORDED) as tar:
        tar.extractall(tmp_path)
    return tmp_path / "__cluster_metadata-0"


def summarise(directory, *values, **options):
    """Return the summary of a log with one batch of `values`."""
    (directory / "00000000000000000000.log").write_bytes(made.batch(0, list(values)))
    return metadata_image.summarise(str(directory), **options)


def without_offsets(registrations):
    return {key: {**value, "registered_offset": None} for key, value in registrations.items()}


def test_summary_of_the_recorded_migration(recorded):
    found = metadata_image.summarise(str(recorded), with_counts=True, with_history=True)
    assert json.loads(json.dumps(found)) == found
    assert found["zk_migration_state"] == "MIGRATION"
    assert found["metadata_version"] == 21 and found["features"] == {"metadata.version": 21}
    assert found["quorum_state"]["leaderId"] == 101
    assert found["checkpoint"]["offset"] < found["log_end_offset"]
    assert found["brokers"]["1"]["rack"] == "r1" and not found["brokers"]["1"]["is_migrating_zk_broker"]
    assert found["controllers"]["101"]["zk_migration_ready"] is True
    (copy,) = found["zk_migration_transactions"]
    assert copy["outcome"] == "committed" and copy["records"]["TOPIC_RECORD"] == 5
    assert found["open_transaction"] is None


def test_broker_was_migrating_when_the_initial_copy_ended(recorded):
    (copy,) = metadata_image.summarise(str(recorded), with_history=True)["zk_migration_transactions"]
    before = metadata_image.summarise(str(recorded), copy["end_offset"])
    after = metadata_image.summarise(str(recorded), copy["end_offset"] + 1)
    assert (before["zk_migration_state"], after["zk_migration_state"]) == ("PRE_MIGRATION", "MIGRATION")
    assert before["open_transaction"] == {"name": "ZK Migration", "offset": copy["begin_offset"]}
    assert before["zk_migration_transactions"][0]["outcome"] == "open"
    assert after["brokers"]["1"]["is_migrating_zk_broker"] is True


def test_kafkas_checkpoints_agree_with_the_log_before_them(recorded, tmp_path):
    """Each checkpoint is Kafka's own sum of the records below its offset."""
    bare = tmp_path / "bare"
    bare.mkdir()
    for segment in list_files(str(recorded)).segments:
        shutil.copy(segment.path, bare)
    checkpoints = list_files(str(recorded)).checkpoints
    assert len(checkpoints) > 3
    for checkpoint in checkpoints:
        kafkas = metadata_image.summarise(str(recorded), checkpoint.offset, with_counts=True)
        ours = metadata_image.summarise(str(bare), checkpoint.offset, with_counts=True)
        assert kafkas["checkpoint"] == {"offset": checkpoint.offset, "epoch": checkpoint.epoch}
        assert ours["checkpoint"] is None and ours["zk_migration_state_offset"] is not None
        assert {key: kafkas[key] for key in STATE} == {key: ours[key] for key in STATE}
        for kind in ("brokers", "controllers"):
            assert without_offsets(kafkas[kind]) == without_offsets(ours[kind])
        assert kafkas["last_no_op_or_any_timestamp_ms"] == ours["last_no_op_or_any_timestamp_ms"]
        assert (kafkas["log_end_offset"], kafkas["last_epoch"]) == (ours["log_end_offset"], ours["last_epoch"])


def test_change_that_only_a_checkpoint_contains_has_its_last_offset(recorded, tmp_path):
    """A too high offset only delays a rollback; no offset would lose changes that ZooKeeper lacks."""
    newest = list_files(str(recorded)).checkpoints[-1]
    for segment in list_files(str(recorded)).segments:
        shutil.copy(segment.path, tmp_path)
    true = metadata_image.summarise(str(tmp_path), newest.offset)["last_change_offset"]
    assert true < newest.offset
    with_segments = metadata_image.summarise(str(recorded), newest.offset, with_history=True)
    assert with_segments["checkpoint"]["offset"] == newest.offset and with_segments["last_change_offset"] == true
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(newest.path, alone)
    assert metadata_image.summarise(str(alone), with_history=True)["last_change_offset"] == newest.offset - 1


def test_empty_log(tmp_path):
    found = metadata_image.summarise(str(tmp_path))
    assert found["last_change_offset"] is None
    assert (found["zk_migration_state"], found["metadata_version"], found["checkpoint"]) == (None, None, None)
    assert (found["log_start_offset"], found["log_end_offset"], found["quorum_state"]) == (0, 0, None)
    assert found["image_counts"] is None


def test_client_metrics(tmp_path):
    def client_metrics(*values, **options):
        return summarise(tmp_path, *values, **options)["client_metrics"]

    set_one, set_two = made.config(16, "all", "interval.ms", "1000"), made.config(16, "all", "metrics", "x")
    assert client_metrics(set_one, set_two, made.config(2, "orders", "retention.ms", "1")) == {
        "all": ["interval.ms", "metrics"]
    }
    assert client_metrics(set_one, set_two, made.config(16, "all", "metrics", None)) == {"all": ["interval.ms"]}
    assert client_metrics(set_one, made.config(16, "all", "interval.ms", None)) == {}
    counted = summarise(tmp_path, set_one, made.config(2, "orders", "retention.ms", "1"), with_counts=True)
    assert counted["image_counts"]["configs"] == 2 and counted["client_metrics"] == {"all": ["interval.ms"]}


@pytest.mark.parametrize(
    ("value", "name"), [(0, "NONE"), (1, "MIGRATION"), (2, "PRE_MIGRATION"), (3, "POST_MIGRATION")]
)
def test_migration_states(tmp_path, value, name):
    found = summarise(tmp_path, made.NO_OP, made.migration_state(value))
    assert (found["zk_migration_state"], found["zk_migration_state_offset"]) == (name, 1)


def test_unknown_migration_state_is_rejected(tmp_path):
    with pytest.raises(metadata_image.InconsistentLog, match="offset 0: ZooKeeper migration state 4"):
        summarise(tmp_path, made.migration_state(4))


def test_records_of_an_open_or_aborted_transaction_do_not_count(tmp_path):
    before = [made.migration_state(2), made.BEGIN, made.topic("a", 1), made.migration_state(1)]
    found = summarise(tmp_path, *before, with_counts=True)
    assert (found["zk_migration_state"], found["open_transaction"]["offset"]) == ("PRE_MIGRATION", 1)
    found = summarise(tmp_path, *before, made.ABORT, with_counts=True)
    assert (found["zk_migration_state"], found["open_transaction"]) == ("PRE_MIGRATION", None)
    assert found["image_counts"]["topics"] == 0
    found = summarise(tmp_path, *before, made.END, with_counts=True)
    assert (found["zk_migration_state"], found["image_counts"]["topics"]) == ("MIGRATION", 1)


def test_features(tmp_path):
    found = summarise(tmp_path, made.feature("metadata.version", 20), made.feature("x", 1), made.feature("y", 2))
    assert found["features"] == {"metadata.version": 20, "x": 1, "y": 2}
    found = summarise(tmp_path, made.feature("metadata.version", 20), made.feature("x", 1), made.feature("x", 0))
    assert (found["features"], found["metadata_version"]) == ({"metadata.version": 20}, 20)


def apply(*records):
    """Return the brokers after (type, fields) pairs at offsets 0, 1, ..."""
    state = metadata_image.empty_state()
    for offset, (kind, fields) in enumerate(records):
        metadata_image.apply(state, Record(offset, 1, 0, kind, 0, fields, False))
    return state["brokers"]


REGISTER = (
    "REGISTER_BROKER_RECORD",
    {
        "brokerId": 3,
        "brokerEpoch": 7,
        "incarnationId": "i",
        "isMigratingZkBroker": True,
        "fenced": True,
        "inControlledShutdown": False,
        "rack": None,
        "logDirs": ["d1"],
    },
)


def change(fenced=0, shutdown=0, log_dirs=(), epoch=7):
    fields = {"brokerId": 3, "brokerEpoch": epoch, "fenced": fenced, "inControlledShutdown": shutdown}
    return "BROKER_REGISTRATION_CHANGE_RECORD", {**fields, "logDirs": list(log_dirs)}


def test_broker_registration_changes():
    assert apply(REGISTER)["3"]["fenced"] is True
    assert apply(REGISTER, change(fenced=-1))["3"]["fenced"] is False
    assert apply(REGISTER, change(fenced=-1), change(fenced=1))["3"]["fenced"] is True
    assert apply(REGISTER, ("UNFENCE_BROKER_RECORD", {"id": 3, "epoch": 7}))["3"]["fenced"] is False
    assert apply(REGISTER, change(fenced=-1), ("FENCE_BROKER_RECORD", {"id": 3, "epoch": 7}))["3"]["fenced"] is True
    stopping = apply(REGISTER, change(fenced=-1), change(shutdown=1), change(log_dirs=["d2"]))["3"]
    assert (stopping["fenced"], stopping["in_controlled_shutdown"], stopping["log_dirs"]) == (False, True, ["d2"])
    assert apply(REGISTER, change(shutdown=1), REGISTER)["3"]["in_controlled_shutdown"] is False
    assert apply(REGISTER, ("UNREGISTER_BROKER_RECORD", {"brokerId": 3, "brokerEpoch": 7})) == {}


@pytest.mark.parametrize("records", [[change()], [REGISTER, change(epoch=6)]])
def test_change_of_a_missing_registration_is_rejected(records):
    with pytest.raises(metadata_image.InconsistentLog, match="BROKER_REGISTRATION_CHANGE_RECORD for broker 3"):
        apply(*records)


def counts(*records):
    image = metadata_counts.empty_image()
    for kind, fields in records:
        metadata_counts.count_record(image, kind, fields)
    return metadata_counts.counts(image)


def test_removing_a_topic_removes_its_partitions_and_configs():
    topic = ("TOPIC_RECORD", {"name": "t", "topicId": "T"})
    partitions = [("PARTITION_RECORD", {"topicId": "T", "partitionId": n}) for n in (0, 1, 1)]
    config = ("CONFIG_RECORD", {"resourceType": 2, "resourceName": "t", "name": "k", "value": "v"})
    broker = ("CONFIG_RECORD", {"resourceType": 4, "resourceName": "t", "name": "k", "value": "v"})
    found = counts(topic, *partitions, config, broker)
    assert (found["topics"], found["partitions"], found["configs"]) == (1, 2, 2)
    found = counts(topic, *partitions, config, broker, ("REMOVE_TOPIC_RECORD", {"topicId": "T"}))
    assert (found["topics"], found["partitions"], found["configs"]) == (0, 0, 1)


def test_removed_metadata_does_not_count():
    def quota(remove):
        entity = [{"entityType": "user", "entityName": None}]
        return "CLIENT_QUOTA_RECORD", {"entity": entity, "key": "k", "remove": remove}

    def config(value):
        return "CONFIG_RECORD", {"resourceType": 4, "resourceName": "", "name": "k", "value": value}

    pairs = {
        "quotas": (quota(False), quota(True)),
        "configs": (config(""), config(None)),
        "scram_credentials": (
            ("USER_SCRAM_CREDENTIAL_RECORD", {"name": "u", "mechanism": 1}),
            ("REMOVE_USER_SCRAM_CREDENTIAL_RECORD", {"name": "u", "mechanism": 1}),
        ),
        "acls": (("ACCESS_CONTROL_ENTRY_RECORD", {"id": "a"}), ("REMOVE_ACCESS_CONTROL_ENTRY_RECORD", {"id": "a"})),
        "delegation_tokens": (
            ("DELEGATION_TOKEN_RECORD", {"tokenId": "a"}),
            ("REMOVE_DELEGATION_TOKEN_RECORD", {"tokenId": "a"}),
        ),
    }
    for kind, (add, remove) in pairs.items():
        assert counts(add, add)[kind] == 1
        assert counts(add, remove)[kind] == 0
    assert counts(("PRODUCER_IDS_RECORD", {"nextProducerId": 2000}))["next_producer_id"] == 2000
