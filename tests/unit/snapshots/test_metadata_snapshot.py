# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots of hand-made metadata logs; tests/integration has snapshots of a log that Kafka writes."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tarfile
import threading
import time
from collections import namedtuple

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.files import archives
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import metadata_log
from ansible_collections.quorumshift.kafka.plugins.module_utils.snapshots import metadata_snapshot
from ansible_collections.quorumshift.kafka.plugins.modules import metadata_snapshot as module

from tests.unit.formats import metadata_batches as made

FIRST, SECOND, CHECKPOINT = f"{0:020d}.log", f"{4:020d}.log", f"{3:020d}-{1:010d}.checkpoint"
SECRET = "clear-text"
STATE = [
    made.batch(0, [made.SNAPSHOT_HEADER]),
    made.batch(1, [made.topic(SECRET, 1)]),
    made.batch(2, [made.SNAPSHOT_FOOTER]),
]
BATCHES = [
    made.batch(0, [made.topic("a", 1), made.topic("b", 2)]),
    made.batch(2, [made.topic("c", 3), made.NO_OP]),
    made.batch(4, [made.topic("d", 4)]),
    made.batch(5, [made.topic("e", 5), made.topic("f", 6)], epoch=2),
]


@pytest.fixture
def log(tmp_path):
    """A log of two segments with a checkpoint inside the first one's second batch."""
    directory = tmp_path / "data" / "__cluster_metadata-0"
    directory.mkdir(parents=True)
    (directory / FIRST).write_bytes(BATCHES[0] + BATCHES[1])
    (directory / SECOND).write_bytes(BATCHES[2] + BATCHES[3])
    (directory / CHECKPOINT).write_bytes(b"".join(STATE))
    return directory


@pytest.fixture
def taken(log, tmp_path):
    """taken(end offset): the snapshot and its records."""

    def take(end_offset=None, timeout=0.0, since=None, unpacked=None):
        snapshot = metadata_snapshot.take(str(log), str(tmp_path / "snapshot"), end_offset, timeout, since)
        unpacked = unpacked or tmp_path / f"unpacked-{time.monotonic_ns()}"
        metadata_snapshot.unpack(snapshot.path, snapshot.sha256, str(unpacked))
        return snapshot, list(metadata_log.read_records(str(unpacked)))

    return take


def test_snapshot_has_the_records_of_the_log(taken, log):
    snapshot, records = taken()
    assert records == list(metadata_log.read_records(str(log)))
    assert snapshot._replace(path=None, sha256=None, bytes=None) == metadata_snapshot.Snapshot(
        path=None,
        sha256=None,
        bytes=None,
        # batches below the checkpoint are left out, except the one that contains its offset
        files=(
            (CHECKPOINT, sum(map(len, STATE))),
            (f"{2:020d}.log", len(BATCHES[1])),
            (SECOND, len(BATCHES[2]) + len(BATCHES[3])),
        ),
        checkpoint=(3, 1),
        start_offset=3,
        end_offset=7,
        last_epoch=2,
    )


@pytest.mark.parametrize(
    ("asked", "end_offset", "last_epoch", "names"),
    [
        (7, 7, 2, ["clear-text", "d", "e", "f"]),
        (6, 5, 1, ["clear-text", "d"]),  # inside a batch: Kafka reads complete batches below a high watermark
        (5, 5, 1, ["clear-text", "d"]),
        (4, 4, 1, ["clear-text"]),
        (3, 3, 1, ["clear-text"]),
        (2, 2, 1, ["a", "b"]),  # below the checkpoint, from the segments
    ],
)
def test_snapshot_is_cut_at_the_end_offset(taken, log, asked, end_offset, last_epoch, names):
    snapshot, records = taken(asked)
    assert (snapshot.end_offset, snapshot.last_epoch) == (end_offset, last_epoch)
    assert [record.fields["name"] for record in records if record.type == "TOPIC_RECORD"] == names
    assert metadata_snapshot.preview(str(log), asked) == snapshot._replace(path=None, sha256=None, bytes=None)


@pytest.mark.parametrize(("since", "begin"), [(0, 0), (2, 2), (3, 3), (6, 3)])
def test_records_that_a_newer_checkpoint_sums_up_are_kept_since_an_offset(taken, log, tmp_path, since, begin):
    """Where a checkpoint is that old; otherwise from the oldest state there is."""
    (log / CHECKPOINT.replace("3", "2", 1)).write_bytes(b"".join(STATE))
    unpacked = tmp_path / "unpacked"
    snapshot, records = taken(since=since, unpacked=unpacked)
    assert (snapshot.checkpoint, snapshot.start_offset, snapshot.end_offset) == ((3, 1), begin, 7)
    assert records == list(metadata_log.read_records(str(log)))
    with metadata_log.open_log(str(unpacked), since=since) as history:
        assert history.start_offset == begin
        offsets = [record.offset for record in metadata_log.log_records(history, metadata_log.scan_log(history))]
    assert [offset for offset in offsets if offset >= begin] == list(range(begin, 7))


def test_without_records_since_an_offset_the_oldest_checkpoint_is_kept(taken, log, tmp_path):
    (log / FIRST).write_bytes(BATCHES[1])
    (log / FIRST).rename(log / f"{2:020d}.log")
    snapshot, _records = taken(since=1, unpacked=tmp_path / "unpacked")
    assert snapshot.start_offset == 3
    with metadata_log.open_log(str(tmp_path / "unpacked"), since=1) as history:
        assert history.start_offset == 3


def test_archive_is_private_and_has_the_returned_digest(taken):
    old = os.umask(0)
    try:
        snapshot, _records = taken()
    finally:
        os.umask(old)
    with open(snapshot.path, "rb") as file:
        content = file.read()
    assert (hashlib.sha256(content).hexdigest(), len(content)) == (snapshot.sha256, snapshot.bytes)
    assert stat.S_IMODE(os.stat(snapshot.path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(snapshot.path)).st_mode) == 0o700
    with tarfile.open(snapshot.path) as tar:
        assert {(entry.uid, entry.uname, entry.mtime, entry.mode) for entry in tar} == {(0, "", 0, 0o600)}


def test_same_log_gives_the_same_bytes_and_one_archive_is_kept(taken):
    first, _records = taken(5)
    again, _records = taken(7)
    assert taken(7)[0] == again
    assert os.listdir(os.path.dirname(again.path)) == [os.path.basename(again.path)]
    assert first.path != again.path


def test_incomplete_last_batch_is_left_out(taken, log):
    with open(log / SECOND, "ab") as segment:
        segment.write(made.batch(7, [made.topic("torn", 7)])[:-1])
    snapshot, _records = taken()
    assert snapshot.end_offset == 7


def test_log_that_stays_behind_is_an_error_and_leaves_no_file(taken, tmp_path):
    with pytest.raises(
        metadata_snapshot.SnapshotError,
        match=r"ends at offset 7 \(epoch 2\), 3 short of 10, and has not moved for 0\.3 s",
    ):
        taken(10, timeout=0.3)
    assert not (tmp_path / "snapshot").exists()


def test_log_that_is_behind_is_read_again(taken, log):
    def write():
        time.sleep(0.3)
        with open(log / SECOND, "ab") as segment:
            segment.write(made.batch(7, [made.topic("late", 7)], epoch=2))

    writer = threading.Thread(target=write)
    writer.start()
    snapshot, records = taken(8, timeout=20.0)
    writer.join()
    assert snapshot.end_offset == 8
    assert records[-1].fields["name"] == "late"


def test_an_archive_that_nobody_waits_for_any_more_is_not_made(taken, log, tmp_path):
    """The run gave up on the host, and removed the directory while the log was still behind."""
    target = tmp_path / "snapshot"

    def remove():
        while not target.exists():
            time.sleep(0.01)
        shutil.rmtree(target)
        with open(log / SECOND, "ab") as segment:
            segment.write(made.batch(7, [made.topic("late", 7)], epoch=2))

    giving_up = threading.Thread(target=remove)
    giving_up.start()
    with pytest.raises(metadata_snapshot.SnapshotError, match="snapshot was removed before the archive was complete"):
        taken(8, timeout=20.0)
    giving_up.join()
    assert not target.exists()


@pytest.mark.parametrize("again", [True, False])
def test_an_archive_is_not_put_into_the_directory_of_a_later_one(log, tmp_path, monkeypatch, again):
    def replaced(target, _size):
        shutil.rmtree(target)
        if again:
            os.mkdir(target)

    monkeypatch.setattr(archives, "_check_space", replaced)
    with pytest.raises(metadata_snapshot.SnapshotError, match="nothing waits for it any more"):
        metadata_snapshot.take(str(log), str(tmp_path / "snapshot"))
    assert not (tmp_path / "snapshot").exists()


def test_end_offset_below_the_oldest_segment_is_an_error(taken, log):
    (log / FIRST).unlink()
    with pytest.raises(metadata_snapshot.SnapshotError, match="end offset 2 is old, read the high watermark again"):
        taken(2)


def test_empty_log_is_an_error(tmp_path):
    with pytest.raises(metadata_snapshot.SnapshotError, match="holds no record"):
        metadata_snapshot.take(str(tmp_path), str(tmp_path / "snapshot"), None, 0)


def test_snapshot_is_not_begun_if_it_might_fill_the_disk(taken, monkeypatch, tmp_path):
    monkeypatch.setattr(os, "statvfs", lambda _path: namedtuple("Space", "f_bavail f_frsize")(1, 100))
    with pytest.raises(metadata_snapshot.SnapshotError, match="has 100 bytes free and may need"):
        taken()


def test_file_that_shrinks_while_it_is_packed_leaves_no_archive(log, tmp_path, monkeypatch):
    def shrink(target, _size):
        os.truncate(log / SECOND, 10)

    monkeypatch.setattr(archives, "_check_space", shrink)
    with pytest.raises(OSError, match="unexpected end of data"):
        metadata_snapshot.take(str(log), str(tmp_path / "snapshot"))
    assert not (tmp_path / "snapshot").exists()


def test_changed_archive_is_not_unpacked(taken, tmp_path):
    snapshot, _records = taken()
    with open(snapshot.path, "r+b") as file:
        file.seek(20)
        file.write(b"\xff")
    with pytest.raises(metadata_snapshot.SnapshotError, match=r"has SHA-256 [0-9a-f]{64}, expected"):
        metadata_snapshot.unpack(snapshot.path, snapshot.sha256, str(tmp_path / "other"))
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("name", ["../" + FIRST, "/" + FIRST, "quorum-state"])
def test_archive_with_other_files_is_rejected(tmp_path, name):
    path = tmp_path / "made.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.addfile(tarfile.TarInfo(name))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(metadata_snapshot.SnapshotError, match="is not one of the files that it may hold"):
        metadata_snapshot.unpack(str(path), digest, str(tmp_path / "other"))


@pytest.fixture
def given(log, tmp_path):
    config = tmp_path / "controller.properties"
    config.write_text(f"process.roles=controller\nlog.dirs={log.parent},/elsewhere\n")
    return {
        "config_file": str(config),
        "cluster_id": "cluster",
        "state_dir": str(tmp_path / "state"),
        "end_offset": 7,
        "timeout_s": 0.0,
    }


def test_module_takes_a_snapshot(given, tmp_path):
    result = module.take(given)
    assert result.pop("seconds") >= 0
    assert os.path.dirname(result["path"]) == str(tmp_path / "state" / "cluster" / "metadata_snapshot")
    assert stat.S_IMODE(os.stat(tmp_path / "state" / "cluster").st_mode) == 0o700
    assert result["checkpoint"] == {"offset": 3, "epoch": 1}
    assert result["files"][0] == {"name": CHECKPOINT, "bytes": sum(map(len, STATE))}
    assert (result["changed"], result["cut_at"], result["end_offset"]) == (True, "high_watermark", 7)
    assert SECRET not in str(result)


def test_module_in_check_mode_returns_the_same_and_writes_nothing(given, tmp_path):
    predicted = module.take(given, check_mode=True)
    assert not (tmp_path / "state").exists()
    result = module.take(given)
    for name in ("path", "sha256", "bytes", "seconds"):
        predicted.pop(name, None)
        result.pop(name)
    assert predicted == result


def test_module_without_an_end_offset_cuts_at_the_log_end(given):
    assert module.take({**given, "end_offset": None})["cut_at"] == "log_end"


def test_module_needs_a_log_directory_in_the_properties(given, tmp_path):
    (tmp_path / "controller.properties").write_text("# node.id=1\n")
    with pytest.raises(metadata_snapshot.SnapshotError, match=r"names neither metadata\.log\.dir nor log\.dirs"):
        module.take(given)
