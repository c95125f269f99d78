# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The metadata log of a migration that the integration test recorded from Kafka 3.9.2, and broken hand-made logs."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import metadata_log
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_records import (
    MalformedRecord,
    UnknownRecord,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.records.record_batch import (
    CorruptBatch,
    LogError,
)

from tests.unit.formats import metadata_batches as made
from tests.unit.formats.metadata_json import comparable, dumped_records

RECORDED = Path(__file__).parents[1] / "data" / "metadata_log.tar.xz"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    home = tmp_path_factory.mktemp("recorded")
    with tarfile.open(RECORDED) as tar:
        tar.extractall(home)
    return home / "__cluster_metadata-0"


@pytest.fixture
def write(tmp_path):
    """write({file name: [batch, ...]}) creates a metadata log directory and returns its path."""

    def lay_out(files):
        for name, batches in files.items():
            (tmp_path / name).write_bytes(b"".join(batches))
        return str(tmp_path)

    return lay_out


def segment(base_offset):
    return f"{base_offset:020d}.log"


def checkpoint(offset, epoch=1):
    return f"{offset:020d}-{epoch:010d}.checkpoint"


def snapshot(*values):
    """Return the batches of a checkpoint."""
    return [
        made.batch(0, [made.SNAPSHOT_HEADER]),
        made.batch(1, list(values)),
        made.batch(1 + len(values), [made.SNAPSHOT_FOOTER]),
    ]


def scan(directory, end_offset=None):
    with metadata_log.open_log(directory, end_offset) as log:
        return metadata_log.scan_log(log, end_offset)


def open_and_close(directory, tries=2):
    with metadata_log.open_log(directory, tries=tries, pause=0):
        pass


def offsets(directory, end_offset=None, types=None):
    return [record.offset for record in metadata_log.read_records(directory, end_offset, types)]


def test_every_record_equals_kafkas_dump(recorded):
    dumped = dumped_records((recorded / "dump.txt").read_text())
    files = metadata_log.list_files(str(recorded))
    paths = [file.path for file in (*files.checkpoints, *files.segments)]
    assert {os.path.basename(path) for path in paths} == set(dumped)
    for path in paths:
        assert [comparable(record) for record in metadata_log.read_file(path)] == dumped[os.path.basename(path)]


def test_records_of_segments_follow_those_of_the_checkpoint(recorded):
    records = list(metadata_log.read_records(str(recorded)))
    newest = metadata_log.list_files(str(recorded)).checkpoints[-1]
    from_checkpoint = [record for record in records if record.from_checkpoint]
    assert {(record.offset, record.epoch) for record in from_checkpoint} == {(newest.offset - 1, newest.epoch)}
    after = [record.offset for record in records if not record.from_checkpoint]
    assert after[0] == newest.offset and after == sorted(after)
    kept = list(metadata_log.read_records(str(recorded), types=["TOPIC_RECORD"]))
    assert kept == [record for record in records if record.type == "TOPIC_RECORD"]


def test_transaction_of_the_recorded_initial_copy(recorded):
    with metadata_log.open_log(str(recorded), all_segments=True) as log:
        extent = metadata_log.scan_log(log)
    copy = next(transaction for transaction in extent.transactions if transaction.name == "ZK Migration")
    assert copy.outcome == metadata_log.COMMITTED
    assert copy.records["TOPIC_RECORD"] == 5 and copy.records["PARTITION_RECORD"] == 15
    assert copy.records["ZK_MIGRATION_STATE_RECORD"] == 1


def test_end_offset_is_exclusive_and_selects_the_checkpoint(write):
    directory = write(
        {
            segment(0): [made.batch(0, [made.topic("a", 1), made.topic("b", 2), made.topic("c", 3)])],
            checkpoint(2): snapshot(made.topic("a", 1), made.topic("b", 2)),
        }
    )
    assert offsets(directory) == [1, 1, 2]
    assert offsets(directory, 3) == [1, 1, 2]
    assert offsets(directory, 2) == [1, 1]
    assert offsets(directory, 1) == [0]
    assert scan(directory, 1).end_offset == 1
    assert scan(directory, 99).end_offset == 3


def test_last_change_is_no_noop_and_is_below_the_end_offset(write):
    directory = write({segment(0): [made.batch(0, [made.NO_OP, made.topic("a", 1), made.topic("b", 2), made.NO_OP])]})
    assert [scan(directory, end).last_change for end in (None, 3, 2, 1)] == [2, 2, 1, None]


def test_epoch_and_time_come_from_the_checkpoint_without_segments(write):
    directory = write({checkpoint(7, 3): snapshot(made.topic("a", 1))})
    extent = scan(directory)
    assert (extent.end_offset, extent.last_epoch, extent.last_timestamp) == (7, 3, 5)


def test_incomplete_partial_and_deleted_files_are_left_out(write):
    directory = write(
        {
            segment(0): [made.batch(0, [made.topic("a", 1)] * 9)],
            checkpoint(3): snapshot(made.topic("a", 1)),
            checkpoint(5): snapshot(made.topic("a", 1))[:2],
            checkpoint(6) + ".deleted": snapshot(made.topic("a", 1)),
            checkpoint(7) + "-123.checkpoint.part": snapshot(made.topic("a", 1)),
            segment(1) + ".deleted": [b"junk"],
            "leader-epoch-checkpoint": [b"0\n0\n"],
        }
    )
    with metadata_log.open_log(directory) as log:
        assert log.checkpoint.offset == 3
        assert [each.base_offset for each, _file in log.segments] == [0]


def test_empty_directory_is_an_empty_log(tmp_path):
    extent = scan(str(tmp_path))
    assert (extent.end_offset, extent.last_epoch, extent.last_timestamp, extent.transactions) == (0, 0, None, [])
    assert metadata_log.read_quorum_state(str(tmp_path)) is None


def test_missing_directory_is_an_error(tmp_path):
    with pytest.raises(metadata_log.LogMissing, match=r"nowhere: no such directory"):
        metadata_log.list_files(str(tmp_path / "nowhere"))


def test_broken_quorum_state_is_an_error(tmp_path):
    (tmp_path / "quorum-state").write_text('{"leaderId":')
    with pytest.raises(LogError, match="quorum-state: not JSON"):
        metadata_log.read_quorum_state(str(tmp_path))


def test_incomplete_last_batch_ends_the_log(write):
    last = made.batch(2, [made.topic("b", 2)])
    directory = write({segment(0): [made.batch(0, [made.NO_OP] * 2), last[:-1]]})
    assert scan(directory).end_offset == 2


def test_incomplete_batch_before_the_last_segment_is_a_gap(write):
    torn = made.batch(2, [made.topic("b", 2)])[:-1]
    directory = write({segment(0): [made.batch(0, [made.NO_OP] * 2), torn], segment(3): [made.batch(3, [made.NO_OP])]})
    with pytest.raises(metadata_log.LogGap, match=r"3\.log at byte 0: offset 3, expected 2"):
        scan(directory)


def test_flipped_bit_is_an_error_only_below_the_end_offset(write):
    bad = bytearray(made.batch(2, [made.topic("b", 2)]))
    bad[-3] ^= 4
    first = made.batch(0, [made.NO_OP] * 2)
    directory = write({segment(0): [first, bytes(bad), made.batch(3, [made.NO_OP])]})
    with pytest.raises(CorruptBatch) as error:
        offsets(directory)
    assert error.value.path.endswith(segment(0)) and error.value.position == len(first)
    assert scan(directory, 2).end_offset == 2


def test_missing_offsets_between_batches_are_a_gap(write):
    directory = write({segment(0): [made.batch(0, [made.NO_OP]), made.batch(5, [made.NO_OP])]})
    with pytest.raises(metadata_log.LogGap, match="offset 5, expected 1"):
        scan(directory)


def test_decreasing_epoch_is_corrupt(write):
    directory = write({segment(0): [made.batch(0, [made.NO_OP], epoch=3), made.batch(1, [made.NO_OP], epoch=2)]})
    with pytest.raises(CorruptBatch, match="epoch 2 follows epoch 3"):
        scan(directory)


def test_missing_offsets_after_the_checkpoint_are_a_gap(write):
    directory = write({segment(9): [made.batch(9, [made.NO_OP])], checkpoint(5): snapshot(made.topic("a", 1))})
    with pytest.raises(metadata_log.LogGap, match="the oldest segment begins after offset 5"):
        open_and_close(directory)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (b"\x01\x1c\x00\x00", UnknownRecord, "offset 1: record type 28"),
        (b"\x01\x02\x01\x00", UnknownRecord, "offset 1: TOPIC_RECORD version 1"),
        (b"\x01\x02\x00\x02a\x00", MalformedRecord, "offset 1: TOPIC_RECORD version 0"),
    ],
)
def test_unknown_and_malformed_records_are_reported_with_file_and_offset(write, value, error, message):
    directory = write({segment(0): [made.batch(0, [made.NO_OP, value])]})
    with pytest.raises(error, match=message) as raised:
        offsets(directory)
    assert raised.value.path.endswith(segment(0)) and raised.value.position == 0


def test_bodies_of_other_types_are_not_decoded(write):
    malformed = b"\x01\x02\x00\x02a\x00"
    directory = write({segment(0): [made.batch(0, [malformed, made.migration_state(1)])]})
    assert offsets(directory, types=["ZK_MIGRATION_STATE_RECORD"]) == [1]


def test_committed_transaction(write):
    values = [made.topic("a", 1), made.BEGIN, made.topic("b", 2), made.topic("c", 3), made.END, made.topic("d", 4)]
    directory = write({segment(0): [made.batch(0, values)]})
    assert offsets(directory) == [0, 2, 3, 5]
    assert scan(directory).transactions == [
        metadata_log.Transaction(
            "ZK Migration", 1, 4, "committed", {"TOPIC_RECORD": 2}, {"TOPIC_RECORD": 1}, 1000, 1000
        )
    ]


def test_a_scan_without_counts_finds_the_same_transactions(write, recorded):
    aborted = [made.BEGIN, made.topic("b", 2), made.ABORT]
    quiet = made.batch(3, [made.topic("c", 3), made.NO_OP])
    opened = made.batch(5, [made.BEGIN, made.topic("d", 4)])
    made_log = write({segment(0): [made.batch(0, aborted), quiet, opened]})
    for directory in (made_log, str(recorded)):
        with metadata_log.open_log(directory) as log:
            extent, fast = metadata_log.scan_log(log), metadata_log.scan_log(log, counts=False)
        transactions = [transaction._replace(records={}, later={}) for transaction in extent.transactions]
        assert fast == extent._replace(last_change=None, transactions=transactions)


def test_records_of_other_types_are_skipped_but_not_unknown_ones(write):
    values = [made.topic("a", 1), made.config(2, "a", "k", "v"), made.BEGIN, made.feature("f", 1), made.END]
    directory = write({segment(0): [made.batch(0, values)]})
    assert offsets(directory, types=["CONFIG_RECORD", "FEATURE_LEVEL_RECORD"]) == [1, 3]
    unknown = write({segment(0): [made.batch(0, [*values, b"\x01\x02\x01\x00"])]})
    with metadata_log.open_log(unknown) as log, pytest.raises(UnknownRecord, match="offset 5: TOPIC_RECORD version 1"):
        list(metadata_log.log_records(log, metadata_log.scan_log(log, counts=False), ["CONFIG_RECORD"]))


def test_a_value_that_ends_inside_its_frame_is_malformed(write):
    directory = write({segment(0): [made.batch(0, [made.NO_OP, b"\x01\x14"])]})
    with pytest.raises(MalformedRecord, match="offset 1: the value ends inside the frame"):
        offsets(directory)


def test_records_between_two_transactions_follow_the_first_one(write):
    values = [made.topic("a", 1), made.BEGIN, made.END, made.topic("b", 2), made.BEGIN, made.topic("c", 3), made.END]
    first, second = scan(write({segment(0): [made.batch(0, values)]})).transactions
    assert (first.records, first.later) == ({}, {"TOPIC_RECORD": 1})
    assert (second.records, second.later) == ({"TOPIC_RECORD": 1}, {})


def test_records_of_an_aborted_transaction_are_dropped(write):
    begun = made.batch(0, [made.topic("a", 1), made.BEGIN, made.topic("b", 2)])
    elected = made.batch(3, [made.LEADER_CHANGE], epoch=2)
    aborted = made.batch(4, [made.topic("c", 3), made.ABORT, made.topic("d", 4)], epoch=2)
    directory = write({segment(0): [begun, elected, aborted]})
    assert offsets(directory) == [0, 6]
    assert scan(directory).transactions == [
        metadata_log.Transaction("ZK Migration", 1, 5, "aborted", {"TOPIC_RECORD": 2}, {"TOPIC_RECORD": 1}, 1000, 1000)
    ]


def test_records_of_an_open_transaction_are_dropped_and_an_election_does_not_close_it(write):
    begun = made.batch(0, [made.topic("a", 1), made.BEGIN, made.topic("b", 2)])
    elected = made.batch(3, [made.LEADER_CHANGE], epoch=2)
    directory = write({segment(0): [begun, elected, made.batch(4, [made.topic("c", 3)], epoch=2)]})
    extent = scan(directory)
    assert offsets(directory) == [0]
    assert extent.transactions == [
        metadata_log.Transaction("ZK Migration", 1, None, "open", {"TOPIC_RECORD": 2}, {}, 1000)
    ]
    assert (extent.end_offset, extent.last_epoch) == (5, 2)


def test_end_offset_inside_a_transaction_leaves_it_open(write):
    directory = write({segment(0): [made.batch(0, [made.BEGIN, made.topic("b", 2), made.END])]})
    assert offsets(directory) == [1]
    assert offsets(directory, 2) == []
    assert scan(directory, 2).transactions[0].outcome == "open"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([made.BEGIN, made.BEGIN], "begin at offset 1 inside the transaction of offset 0"),
        ([made.END], "END_TRANSACTION_RECORD at offset 0 without a begin"),
        ([made.BEGIN, made.END, made.ABORT], "ABORT_TRANSACTION_RECORD at offset 2 without a begin"),
    ],
)
def test_markers_in_a_wrong_order_are_rejected(write, values, message):
    directory = write({segment(0): [made.batch(0, values)]})
    with pytest.raises(metadata_log.BrokenTransaction, match=message):
        scan(directory)


def test_marker_in_a_checkpoint_is_rejected(write):
    directory = write({checkpoint(5): snapshot(made.BEGIN)})
    with pytest.raises(metadata_log.BrokenTransaction, match="in a checkpoint"):
        offsets(directory)


def test_all_segments_may_begin_inside_a_transaction(write):
    directory = write({segment(4): [made.batch(4, [made.topic("b", 2), made.END, made.BEGIN])]})
    with metadata_log.open_log(directory, all_segments=True) as log:
        assert [transaction.outcome for transaction in metadata_log.scan_log(log).transactions] == ["open"]


def test_directory_is_listed_again_if_a_file_is_removed(write, monkeypatch):
    directory = write({segment(0): [made.batch(0, [made.NO_OP] * 3)], segment(3): [made.batch(3, [made.NO_OP])]})
    opened = metadata_log._open
    removing = [segment(3), segment(0)]

    def remove_first(path):
        if removing and path.endswith(removing[-1]):
            removing.pop()
            os.rename(path, path + ".deleted")
            (Path(directory) / checkpoint(3)).write_bytes(b"".join(snapshot(made.topic("a", 1))))
            if not removing:
                (Path(directory) / segment(3)).write_bytes(made.batch(3, [made.NO_OP] * 4))
        return opened(path)

    monkeypatch.setattr(metadata_log, "_open", remove_first)
    with metadata_log.open_log(directory, pause=0) as log:
        assert log.checkpoint.offset == 3
        assert metadata_log.scan_log(log).end_offset == 7
    assert not removing


def test_files_that_are_always_removed_are_an_error(write, monkeypatch):
    directory = write({segment(0): [made.batch(0, [made.NO_OP])]})
    tries = []

    def removed(path):
        tries.append(path)
        raise FileNotFoundError(2, "No such file", path)

    monkeypatch.setattr(metadata_log, "_open", removed)
    with pytest.raises(
        metadata_log.LogMoving, match="removed between listing and opening, 3 times"
    ), metadata_log.open_log(directory, tries=3, pause=0):
        pass
    assert len(tries) == 3


def test_open_log_is_readable_after_its_files_are_deleted(write):
    directory = write({segment(0): [made.batch(0, [made.topic("a", 1)])], checkpoint(1): snapshot(made.topic("a", 1))})
    with metadata_log.open_log(directory) as log:
        for name in os.listdir(directory):
            os.unlink(os.path.join(directory, name))
        records = list(metadata_log.log_records(log, metadata_log.scan_log(log)))
    assert [record.fields["name"] for record in records] == ["a"]


def test_unread_notes_unknown_types_and_fields_and_drops_those_of_aborted_transactions(write):
    def tagged(value, tag):
        assert value[-1] == 0
        return value[:-1] + bytes([1, 0x80 | tag & 0x7F, tag >> 7, 1, 0])

    other = b"\x01\xaf\x75\x02\x00"  # type 15023 version 2
    values = [made.topic("a", 1), other, tagged(made.config(2, "a", "k", "v"), 10001), other]
    aborted = [made.BEGIN, b"\x01\x63\x00\x00", tagged(made.config(2, "a", "k", "w"), 9999), made.ABORT]
    directory = write({segment(0): [made.batch(0, values), made.batch(4, aborted)]})
    with metadata_log.open_log(directory) as log:
        extent, unread = metadata_log.scan_log(log, counts=False, later=True), metadata_log.Unread()
        records = list(metadata_log.log_records(log, extent, unread=unread))
        assert [record.type for record in records] == ["TOPIC_RECORD", "CONFIG_RECORD"]
        assert records[1].fields["value"] == "v"
        assert unread.found == {("record", 15023, 2): [2, 1], ("field", "CONFIG_RECORD", "", 10001): [1, 2]}
        with pytest.raises(UnknownRecord, match="record type 15023"):
            list(metadata_log.log_records(log, extent))


def test_unread_notes_the_fields_of_structs(write):
    registered = made.record("REGISTER_BROKER_RECORD", {"brokerId": 1, "endPoints": [{"name": "P", "host": "h"}]})
    # An end point ends with its number of tagged fields, before the empty list of features
    at = registered.index(b"\x02h") + 2 + 4
    assert registered[at] == 0
    planted = registered[:at] + bytes([1, 7, 1, 0]) + registered[at + 1 :]
    directory = write({segment(0): [made.batch(0, [planted])]})
    with metadata_log.open_log(directory) as log:
        unread = metadata_log.Unread()
        list(metadata_log.log_records(log, metadata_log.scan_log(log), unread=unread))
    assert unread.found == {("field", "REGISTER_BROKER_RECORD", "endPoints", 7): [1, 0]}


def test_unread_does_not_excuse_an_unknown_version(write):
    directory = write({segment(0): [made.batch(0, [made.NO_OP, b"\x01\x02\x01\x00"])]})
    with metadata_log.open_log(directory) as log, pytest.raises(UnknownRecord, match="TOPIC_RECORD version 1"):
        extent = metadata_log.scan_log(log, counts=False, later=True)
        list(metadata_log.log_records(log, extent, ["CONFIG_RECORD"], unread=metadata_log.Unread()))


def test_unread_notes_unknown_control_records(write):
    control = made.batch(1, [(b"\0\0\0\x09", b"\0\2\0")], attributes=0x20)
    directory = write({segment(0): [made.batch(0, [made.NO_OP]), control, made.batch(2, [made.NO_OP])]})
    with metadata_log.open_log(directory) as log:
        unread = metadata_log.Unread()
        list(metadata_log.log_records(log, metadata_log.scan_log(log), unread=unread))
    assert unread.found == {("control", 9, 2): [1, 1]}
