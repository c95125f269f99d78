# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The summary of a metadata log: of a recorded migration, and of small made logs."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
from pathlib import Path

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import (
    metadata_image,
    metadata_log,
    metadata_summary,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_log import list_files

from tests.unit.formats import metadata_batches as made

RECORDED = Path(__file__).parents[1] / "data" / "metadata_log.tar.xz"
STATE = ("zk_migration_state", "metadata_version", "features", "client_metrics")


@pytest.fixture
def recorded(tmp_path):
    with tarfile.open(RECORDED) as tar:
        tar.extractall(tmp_path)
    return tmp_path / "__cluster_metadata-0"


def summarise(directory, *values, **options):
    """The summary of a log of one batch of `values`."""
    (directory / "00000000000000000000.log").write_bytes(made.batch(0, list(values)))
    return metadata_summary.summarise(str(directory), **options)


def image(directory, end_offset=None):
    """The image of the log in a directory."""
    records = metadata_log.read_records(str(directory), end_offset, metadata_image.TYPES)
    return metadata_image.Image.from_records(records)


def contents(of):
    """What an image holds, without offsets."""
    return {
        "topics": {topic_id: name for topic_id, (name, _offset) in of.topics.items()},
        "partitions": {
            key: {n: values[:-1] for n, values in numbered.items()} for key, numbered in of.partitions.items()
        },
        "configs": {
            key: {name: value for name, (value, _o) in config.items()} for key, config in of.configs.items() if config
        },
        **{
            part: {key: value for key, (value, _offset) in getattr(of, part).items()}
            for part in ("quotas", "scram", "acls", "delegation_tokens", "features")
        },
        "producer_ids": of.producer_ids and of.producer_ids[0],
    }


def without_offsets(registrations):
    return {key: {**value, "registered_offset": None, "changed_offset": None} for key, value in registrations.items()}


def test_recorded_migration(recorded):
    found = metadata_summary.summarise(str(recorded), with_history=True)
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


def test_the_broker_was_migrating_when_the_copy_ended(recorded):
    (copy,) = metadata_summary.summarise(str(recorded), with_history=True)["zk_migration_transactions"]
    before = metadata_summary.summarise(str(recorded), copy["end_offset"])
    after = metadata_summary.summarise(str(recorded), copy["end_offset"] + 1)
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
        kafkas = metadata_summary.summarise(str(recorded), checkpoint.offset)
        ours = metadata_summary.summarise(str(bare), checkpoint.offset)
        stat = os.stat(checkpoint.path)
        assert kafkas["checkpoint"] == {
            **{"offset": checkpoint.offset, "epoch": checkpoint.epoch},
            **{"bytes": stat.st_size, "time": stat.st_mtime},
        }
        assert ours["checkpoint"] is None and ours["zk_migration_state_offset"] is not None
        assert {key: kafkas[key] for key in STATE} == {key: ours[key] for key in STATE}
        assert contents(image(recorded, checkpoint.offset)) == contents(image(bare, checkpoint.offset))
        for kind in ("brokers", "controllers"):
            assert without_offsets(kafkas[kind]) == without_offsets(ours[kind])
        assert kafkas["last_no_op_or_any_timestamp_ms"] == ours["last_no_op_or_any_timestamp_ms"]
        assert (kafkas["log_end_offset"], kafkas["last_epoch"]) == (ours["log_end_offset"], ours["last_epoch"])


def test_a_change_that_only_a_checkpoint_holds_counts_as_its_last_record(recorded, tmp_path):
    """An offset too high keeps a rollback waiting; one too low would lose what ZooKeeper lacks."""
    newest = list_files(str(recorded)).checkpoints[-1]
    for segment in list_files(str(recorded)).segments:
        shutil.copy(segment.path, tmp_path)
    true = metadata_summary.summarise(str(tmp_path), newest.offset)["last_change_offset"]
    assert true < newest.offset
    with_segments = metadata_summary.summarise(str(recorded), newest.offset, with_history=True)
    assert with_segments["checkpoint"]["offset"] == newest.offset and with_segments["last_change_offset"] == true
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(newest.path, alone)
    assert metadata_summary.summarise(str(alone), with_history=True)["last_change_offset"] == newest.offset - 1


def test_empty_log(tmp_path):
    found = metadata_summary.summarise(str(tmp_path))
    assert found["last_change_offset"] is None
    assert (found["zk_migration_state"], found["metadata_version"], found["checkpoint"]) == (None, None, None)
    assert (found["log_start_offset"], found["log_end_offset"], found["quorum_state"]) == (0, 0, None)


def test_client_metrics(tmp_path):
    def reported(*values, **options):
        return summarise(tmp_path, *values, **options)["client_metrics"]

    set_one, set_two = made.config(16, "all", "interval.ms", "1000"), made.config(16, "all", "metrics", "x")
    assert reported(set_one, set_two, made.config(2, "orders", "retention.ms", "1")) == {
        "all": ["interval.ms", "metrics"]
    }
    assert reported(set_one, set_two, made.config(16, "all", "metrics", None)) == {"all": ["interval.ms"]}
    assert reported(set_one, made.config(16, "all", "interval.ms", None)) == {}


@pytest.mark.parametrize(
    ("value", "name"), [(0, "NONE"), (1, "MIGRATION"), (2, "PRE_MIGRATION"), (3, "POST_MIGRATION")]
)
def test_migration_states(tmp_path, value, name):
    found = summarise(tmp_path, made.NO_OP, made.migration_state(value))
    assert (found["zk_migration_state"], found["zk_migration_state_offset"]) == (name, 1)


def test_migration_state_4_is_never_in_a_log(tmp_path):
    with pytest.raises(metadata_image.InconsistentLog, match="offset 0: ZooKeeper migration state 4"):
        summarise(tmp_path, made.migration_state(4))


def test_state_of_an_open_or_aborted_transaction_does_not_count(tmp_path):
    before = [made.migration_state(2), made.BEGIN, made.topic("a", 1), made.migration_state(1)]
    found = summarise(tmp_path, *before)
    assert (found["zk_migration_state"], found["open_transaction"]["offset"]) == ("PRE_MIGRATION", 1)
    found = summarise(tmp_path, *before, made.ABORT)
    assert (found["zk_migration_state"], found["open_transaction"]) == ("PRE_MIGRATION", None)
    assert image(tmp_path).topics == {}
    found = summarise(tmp_path, *before, made.END)
    assert found["zk_migration_state"] == "MIGRATION"
    assert [name for name, _offset in image(tmp_path).topics.values()] == ["a"]


def test_features(tmp_path):
    found = summarise(tmp_path, made.feature("metadata.version", 20), made.feature("x", 1), made.feature("y", 2))
    assert found["features"] == {"metadata.version": 20, "x": 1, "y": 2}
    found = summarise(tmp_path, made.feature("metadata.version", 20), made.feature("x", 1), made.feature("x", 0))
    assert (found["features"], found["metadata_version"]) == ({"metadata.version": 20}, 20)


def test_records_of_a_later_kafka_are_no_error_unless_the_summary_needs_them(tmp_path):
    """Kafka 4 writes ClearElrRecord, type 28, and no ZkMigrationStateRecord."""
    clear_elr = b"\x01\x1c\x00\x02a\x00"
    found = summarise(tmp_path, made.feature("metadata.version", 27), clear_elr, made.topic("a", 1), with_history=True)
    assert (found["metadata_version"], found["zk_migration_state"], found["log_end_offset"]) == (27, None, 3)
    # Kafka 4.3 registers brokers by version 4 and changes them by version 3, Kafka 4.4 unregisters controllers
    broker = {"brokerId": 3, "brokerEpoch": 7, "incarnationId": "A" * 22, "logDirs": ["A" * 21 + "Q"]}
    register = made.record("REGISTER_BROKER_RECORD", broker, 4)
    change = made.record("BROKER_REGISTRATION_CHANGE_RECORD", {"brokerId": 3, "brokerEpoch": 7, "fenced": -1}, 3)
    controller = made.record("REGISTER_CONTROLLER_RECORD", {"controllerId": 9, "incarnationId": "A" * 22})
    unregister = made.record("UNREGISTER_CONTROLLER_RECORD", {"controllerId": 9})
    found = summarise(tmp_path, register, change, controller)
    assert found["brokers"]["3"]["fenced"] is False and found["brokers"]["3"]["log_dirs"] == ["A" * 21 + "Q"]
    assert list(found["controllers"]) == ["9"]
    assert summarise(tmp_path, register, controller, unregister)["controllers"] == {}
    with pytest.raises(metadata_log.UnknownRecord, match="REGISTER_BROKER_RECORD version 5"):
        summarise(tmp_path, made.record("REGISTER_BROKER_RECORD", broker, 5))
    with pytest.raises(metadata_log.UnknownRecord, match="FEATURE_LEVEL_RECORD version 9"):
        summarise(tmp_path, b"\x01\x0c\x09\x02a\x00")
