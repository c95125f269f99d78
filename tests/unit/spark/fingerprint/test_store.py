# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Storing a fingerprint, and the progress of a job that did not end."""

from __future__ import annotations

import json
import pathlib
import stat
from typing import Any, List, Tuple

import pandas
import pytest
from quorumshift_spark.fingerprint import progress as progress_file
from quorumshift_spark.fingerprint import records, store
from quorumshift_spark.fingerprint.compare import Fingerprint
from quorumshift_spark.fingerprint.coordinators import Coordinators, Group, Transaction
from quorumshift_spark.fingerprint.plan import Chunk, PartitionState, Range, Sample
from quorumshift_spark.fingerprint.progress import Progress, ProgressError

STATE = PartitionState("orders", 0, "id", 4, 0, 10, False, True, -1, -1, 1000)
CHUNKS = [
    Chunk("orders", 0, 0, 10, 2, 3, 400, 9, 1, 9, 5, 7, 3, 4, "ab" * 16),
    Chunk("orders", 0, 10, 20, 0, 0, 0, 0, None, None, None, None, None, None, "cd" * 16),
]
KEYS = records.encode({b"k": (3, 9, 1 << 63, True)})
KEYED = Chunk("t", 1, 0, 10, 1, 1, 70, 10, 0, 9, 9, 9, 3, 3, "", 1, 5, len(KEYS))


def fingerprint(path: pathlib.Path) -> Fingerprint:
    """Return a fingerprint whose file of keys has other bytes before them."""
    source = path / "source"
    source.write_bytes(b"other" + KEYS)
    return Fingerprint(
        "cluster",
        123,
        {"orders": "id", "other": "id-2"},
        {STATE.tp: STATE},
        [*CHUNKS, KEYED],
        str(source),
        Coordinators({"readers": Group("STABLE", {("orders", 0): 7})}, {"t": Transaction(5, 2)}, {"a": 1}),
        {"orders": Sample(percent=5.0, seed=3)},
    )


def test_written_fingerprint_is_read_back(tmp_path: pathlib.Path) -> None:
    written, there = fingerprint(tmp_path), tmp_path / "there"
    there.mkdir()
    assert store.write(str(there), written) == {"chunks.parquet": 3, "keys.arrow": 1, "groups.parquet": 1}
    read = store.read(str(there))
    assert read == written._replace(chunks=[*CHUNKS, KEYED._replace(at=0)], keys=str(there / "keys.arrow"))
    (row,) = records.decode((there / "keys.arrow").read_bytes()).to_pylist()
    assert row == {
        "key_hash": records.key_hash(b"k"),
        "offset": 3,
        "hash": -(1 << 63),
        "tombstone": True,
        "timestamp": 9,
    }
    for path in there.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(pandas.read_parquet(there / "chunks.parquet")["records"]) == [3, 0, 1]
    assert list(pandas.read_parquet(there / "groups.parquet")["offset"]) == [7]


def test_damaged_baseline_is_rejected(tmp_path: pathlib.Path) -> None:
    with pytest.raises(store.StoreError, match=r"fingerprint\.json is not a baseline"):
        store.read(str(tmp_path))
    store.write(str(tmp_path), fingerprint(tmp_path))
    with open(tmp_path / "chunks.parquet", "ab") as file:
        file.write(b"x")
    with pytest.raises(store.StoreError, match=r"chunks\.parquet does not match its SHA-256"):
        store.read(str(tmp_path))
    store.write(str(tmp_path), fingerprint(tmp_path))
    summary = json.loads((tmp_path / store.NAME).read_text())
    (tmp_path / store.NAME).write_text(json.dumps({**summary, "version": 1}))
    with pytest.raises(store.StoreError, match=r"version 1, this release reads version 4\. Use the release"):
        store.read(str(tmp_path))


OF = {"cluster_id": "c", "gate": "after_finalize", "phase": "finalized", "baseline": "ab"}
WANTED = Range("orders", 0, "id", (0, 10, 20, 30))


def chunk(begin: int, **more: Any) -> Chunk:
    return Chunk("orders", 0, begin, begin + 10, 1, 10, 70, 10, begin, begin + 9, 5, 7, 4, 4, "ab" * 16)._replace(
        **more
    )


def resumed(
    path: pathlib.Path, state: PartitionState = STATE, wanted: Range = WANTED, **of: Any
) -> Tuple[List[Range], List[int]]:
    """Return what a job has to read, and where the chunks begin that it need not read."""
    progress = Progress(str(path), {**OF, **of})
    left, chunks = progress.finished([wanted], {state.tp: state})
    progress.close()
    return left, [chunk.begin for chunk in chunks]


@pytest.fixture
def begun(tmp_path: pathlib.Path) -> pathlib.Path:
    """The progress of a job that had read two of three chunks."""
    directory = tmp_path / "progress"
    progress = Progress(str(directory), OF)
    assert progress.finished([WANTED], {STATE.tp: STATE}) == ([WANTED], [])
    progress.add(WANTED, STATE.leader_epoch, [chunk(0), chunk(10)], [])
    progress.close()
    return directory


def test_a_job_continues_with_the_chunks_that_are_missing(begun: pathlib.Path) -> None:
    assert resumed(begun) == ([Range("orders", 0, "id", (20, 30), cut=False)], [0, 10])
    assert stat.S_IMODE(begun.stat().st_mode) == 0o700
    with open(begun / progress_file.CHUNKS, "ab") as file:
        file.write(b'{"chunk": ["orders", 0, 20')  # a kill cut this line
    assert resumed(begun)[1] == [0, 10]
    assert resumed(begun)[1] == [0, 10]  # and the next job goes on from there
    (begun / progress_file.CHUNKS).write_bytes(b"\xff not text\n")
    assert resumed(begun)[1] == []


@pytest.mark.parametrize(
    "changed",
    [{"topic_id": "id-2"}, {"leader_epoch": 5}, {"leader_epoch": 3}, {"log_start": 1}],
    ids=["topic id", "leader epoch", "older leader epoch", "log start"],
)
def test_a_chunk_of_another_log_is_read_again(begun: pathlib.Path, changed: Any) -> None:
    state = STATE._replace(**changed)
    assert resumed(begun, state, WANTED._replace(topic_id=state.topic_id))[1] == []


@pytest.mark.parametrize("of", [{"gate": "before_controllers"}, {"phase": "dual_write"}, {"baseline": "cd"}])
def test_the_progress_of_another_comparison_is_dropped(begun: pathlib.Path, of: Any) -> None:
    assert resumed(begun, **of) == ([WANTED], [])
    assert resumed(begun) == ([WANTED], [])  # for good


@pytest.mark.parametrize(
    "wanted",
    [{"bounds": (0, 20, 30)}, {"bounds": (5, 10), "cut": True}, {"keyed": True}, {"bounds": (10, 20), "cut": True}],
)
def test_only_the_same_chunk_is_trusted(begun: pathlib.Path, wanted: Any) -> None:
    """A chunk that begins the range has the batch that its bound cuts, unlike the same chunk after another one."""
    assert resumed(begun, wanted=WANTED._replace(**wanted))[1] == []


def test_keys_are_kept_at_their_places(tmp_path: pathlib.Path) -> None:
    directory, wanted = tmp_path / "progress", WANTED._replace(keyed=True, bounds=(0, 10, 20))
    progress = Progress(str(directory), OF)
    progress.finished([wanted], {STATE.tp: STATE})
    read = [chunk(begin, hash="", keys=1, size=len(KEYS)) for begin in (0, 10)]
    kept = progress.add(wanted, STATE.leader_epoch, read, [KEYS, KEYS])
    assert [chunk.at for chunk in kept] == [0, len(KEYS)]
    progress.close()
    progress = Progress(str(directory), OF)
    assert progress.finished([wanted], {STATE.tp: STATE}) == ([], kept)
    with pytest.raises(ProgressError, match="another data_fingerprint of this cluster runs"):
        Progress(str(directory), OF)
    progress.close()
    data = bytearray((directory / progress_file.KEYS).read_bytes())
    data[-1] ^= 1  # of the second chunk
    (directory / progress_file.KEYS).write_bytes(bytes(data))
    assert resumed(directory, wanted=wanted)[1] == [0]


def test_a_directory_that_others_can_write_is_not_used(tmp_path: pathlib.Path) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    with pytest.raises(ProgressError, match="with mode 0700"):
        Progress(str(tmp_path / "open"), OF)
