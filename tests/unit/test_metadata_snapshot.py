# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots of metadata logs that were laid out by hand; tests/integration has those of a log that Kafka is writing."""

from __future__ import annotations

import hashlib
import os
import stat
import tarfile
import threading
import time
from collections import namedtuple

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils import metadata_snapshot
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import metadata_log
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
    """taken(end offset): the snapshot and the records that are in it."""

    def take(end_offset=None, timeout=0.0):
        snapshot = metadata_snapshot.take(str(log), str(tmp_path / "snapshot"), end_offset, timeout)
        unpacked = tmp_path / f"unpacked-{time.monotonic_ns()}"
        metadata_snapshot.unpack(snapshot.path, snapshot.sha256, str(unpacked))
        return snapshot, list(metadata_log.read_records(str(unpacked)))

    return take


def test_records_are_those_of_the_log(taken, log):
    snapshot, records = taken()
    assert records == list(metadata_log.read_records(str(log)))
    assert snapshot._replace(path=None, sha256=None, bytes=None) == metadata_snapshot.Snapshot(
        path=None,
        sha256=None,
        bytes=None,
        # what the checkpoint holds is not taken a second time, but for the batch into which it falls
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
        (6, 5, 1, ["clear-text", "d"]),  # inside a batch: Kafka reads below a high watermark by whole batches
        (5, 5, 1, ["clear-text", "d"]),
        (4, 4, 1, ["clear-text"]),
        (3, 3, 1, ["clear-text"]),
        (2, 2, 1, ["a", "b"]),  # below the checkpoint there are still the segments
    ],
)
def test_cut_at_the_end_offset(taken, log, asked, end_offset, last_epoch, names):
    snapshot, records = taken(asked)
    assert (snapshot.end_offset, snapshot.last_epoch) == (end_offset, last_epoch)
    assert [record.fields["name"] for record in records if record.type == "TOPIC_RECORD"] == names
    assert metadata_snapshot.gather(str(log), asked) == snapshot._replace(path=None, sha256=None, bytes=None)


def test_archive_is_private_and_its_digest_is_that_of_its_bytes(taken):
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


def test_same_log_same_bytes_and_one_archive_at_a_time(taken):
    first, _records = taken(5)
    again, _records = taken(7)
    assert taken(7)[0] == again
    assert os.listdir(os.path.dirname(again.path)) == [os.path.basename(again.path)]
    assert first.path != again.path


def test_torn_tail_is_left_out(taken, log):
    with open(log / SECOND, "ab") as segment:
        segment.write(made.batch(7, [made.topic("torn", 7)])[:-1])
    snapshot, _records = taken()
    assert snapshot.end_offset == 7


def test_log_that_is_behind_says_how_far_it_reaches_and_leaves_nothing(taken, tmp_path):
    with pytest.raises(
        metadata_snapshot.SnapshotError, match=r"reaches offset 7 \(epoch 2\), 3 short of 10, .* 0\.3 s"
    ):
        taken(10, timeout=0.3)
    assert not (tmp_path / "snapshot").exists()


def test_log_that_is_behind_is_waited_for(taken, log):
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


def test_end_offset_that_kafka_has_dropped(taken, log):
    (log / FIRST).unlink()
    with pytest.raises(metadata_snapshot.SnapshotError, match="end offset 2 is old, take the high watermark again"):
        taken(2)


def test_empty_log_is_no_snapshot(tmp_path):
    with pytest.raises(metadata_snapshot.SnapshotError, match="holds no record"):
        metadata_snapshot.take(str(tmp_path), str(tmp_path / "snapshot"), None, 0)


def test_disk_that_may_become_full_is_not_written_to(taken, monkeypatch, tmp_path):
    monkeypatch.setattr(os, "statvfs", lambda _path: namedtuple("Space", "f_bavail f_frsize")(1, 100))
    with pytest.raises(metadata_snapshot.SnapshotError, match="100 bytes free where"):
        taken()


def test_file_that_shrinks_while_it_is_packed_leaves_nothing(log, tmp_path, monkeypatch):
    def shrink(target, _size):
        os.truncate(log / SECOND, 10)

    monkeypatch.setattr(metadata_snapshot, "_check_space", shrink)
    with pytest.raises(OSError, match="unexpected end of data"):
        metadata_snapshot.take(str(log), str(tmp_path / "snapshot"))
    assert not (tmp_path / "snapshot").exists()


def test_changed_archive_is_not_unpacked(taken, tmp_path):
    snapshot, _records = taken()
    with open(snapshot.path, "r+b") as file:
        file.seek(20)
        file.write(b"\xff")
    with pytest.raises(metadata_snapshot.SnapshotError, match=r"SHA-256 [0-9a-f]{64} where"):
        metadata_snapshot.unpack(snapshot.path, snapshot.sha256, str(tmp_path / "other"))
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("name", ["../" + FIRST, "/" + FIRST, "quorum-state"])
def test_archive_of_other_files_is_refused(tmp_path, name):
    path = tmp_path / "made.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.addfile(tarfile.TarInfo(name))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(metadata_snapshot.SnapshotError, match="no file of a metadata log"):
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


def test_module_makes_and_removes(given, tmp_path):
    reported = module.present(given)
    assert reported.pop("seconds") >= 0
    assert os.path.dirname(reported["path"]) == str(tmp_path / "state" / "cluster" / "metadata_snapshot")
    assert stat.S_IMODE(os.stat(tmp_path / "state" / "cluster").st_mode) == 0o700
    assert reported["checkpoint"] == {"offset": 3, "epoch": 1}
    assert reported["files"][0] == {"name": CHECKPOINT, "bytes": sum(map(len, STATE))}
    assert (reported["changed"], reported["cut_at"], reported["end_offset"]) == (True, "high_watermark", 7)
    assert SECRET not in str(reported)
    assert module.absent(given, check_mode=True) == {"changed": True}
    assert os.path.exists(reported["path"])
    assert module.absent(given) == {"changed": True}
    assert os.listdir(tmp_path / "state" / "cluster") == []
    assert module.absent(given) == {"changed": False}


def test_module_in_check_mode_tells_the_same_and_writes_nothing(given, tmp_path):
    reported = module.present(given, check_mode=True)
    assert not (tmp_path / "state").exists()
    made_then = module.present(given)
    for name in ("path", "sha256", "bytes", "seconds"):
        reported.pop(name, None)
        made_then.pop(name)
    assert reported == made_then


def test_module_without_an_end_offset_says_so(given):
    assert module.present({**given, "end_offset": None})["cut_at"] == "log_end"


def test_module_with_a_file_that_names_no_directory(given, tmp_path):
    (tmp_path / "controller.properties").write_text("node.id=1\n")
    with pytest.raises(metadata_snapshot.SnapshotError, match=r"names neither metadata\.log\.dir nor log\.dirs"):
        module.present(given)
