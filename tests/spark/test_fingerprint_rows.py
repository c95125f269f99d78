# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""data_fingerprint on local Spark, with the rows of a made-up cluster: what it stores, resumes, removes and rejects."""

from __future__ import annotations

import pathlib
import re
import stat
from typing import Any, Iterator, List

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from quorumshift_spark import data_fingerprint
from quorumshift_spark.fingerprint import data, store
from quorumshift_spark.fingerprint.plan import Chunk, PartitionState, Range

from tests.spark import parity
from tests.unit.spark import test_data_fingerprint as made_up
from tests.unit.spark.test_data_fingerprint import run

pytestmark = pytest.mark.real


class Log(made_up.Log):
    """A cluster with one partition, whose batches hold one record each."""

    def read(self, spark, there, wanted, states, _leaders, _log_starts, _security, _patience_s, _stop):
        for part in there.left(wanted):
            for begin, end in zip(part.bounds, part.bounds[1:]):
                number, content = end - begin, str(self.hashes[begin:end])
                facts = (number, number, 99, number, begin, end - 1, 1, 2, 1, 1, content)
                rows = data.rows(part, 1, states[part.tp].log_start, Chunk("orders", 0, begin, end, *facts), None)
                there.append(written(spark, rows))
                self.asked += 1
        if self.cut:
            raise RuntimeError("the job was cancelled")
        return {}


def written(spark: SparkSession, rows: Iterator[pa.RecordBatch]) -> Any:
    """Return rows as tasks write them."""
    table = pa.Table.from_batches(list(rows), data.SCHEMA)
    return spark.createDataFrame(table, from_arrow_schema(data.SCHEMA)).coalesce(1)


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with parity.local_spark("fingerprint rows") as session:
        yield session


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> Log:
    log = Log()
    monkeypatch.setattr(data_fingerprint, "Cluster", lambda *_arguments: log)
    monkeypatch.setattr(data_fingerprint.fetch, "read", log.read)
    return log


def test_run_is_the_baseline_of_the_next_and_a_fault_is_found(tmp_path: pathlib.Path, log: Log) -> None:
    first = run(tmp_path, "first")
    assert (first["verdict"], first["reasons"]) == ("pass", [])
    assert first["views"]["cluster"]["read"] == {
        **{"log": 1, "chunk": 3, "key": 0},
        **{"group_offset": 1, "transaction": 1},
    }
    log.hashes += [7] * 10
    log.committed = 30
    again = run(tmp_path, "again", "first")
    assert again["verdict"] == "pass"
    assert again["counts"]["chunk"]["match"] - again["counts"]["chunk"]["explained"] == 3
    # the baseline's chunks end at 10, 20 and 25
    assert [place.end for place in store.read(str(tmp_path / "again")).chunks["orders", 0]] == [10, 20, 25, 30, 35]

    log.hashes[31] += 1
    log.committed = 29
    found = run(tmp_path, "found", "again")
    assert found["verdict"] == "differ"
    assert [difference["kind"] for difference in found["differences"]] == ["chunk", "group_offset"]
    assert found["reasons"][0].startswith("2 differences, the first: chunk")
    assert found["files"]["differences.parquet"]["rows"] == 2
    assert pq.read_table(tmp_path / "found" / "differences.parquet").column("left").to_pylist() == ["baseline"] * 2


def test_log_that_ends_early_is_read_again(tmp_path: pathlib.Path, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, "first")
    read_states, calls = log.states, []

    def late(found, chosen):
        calls.append(chosen)
        states = read_states(found, chosen)
        return [state._replace(end=20) for state in states] if len(calls) < 3 else states

    monkeypatch.setattr(log, "states", late)
    resolved = run(tmp_path, "resolved", "first")
    assert resolved["verdict"] == "pass"
    assert [entry["resolved"] for entry in resolved["rounds"]] == [0, 1]
    del log.hashes[20:]
    log.committed = 20
    found = run(tmp_path, "short", "first")
    assert found["verdict"] == "differ"
    assert [entry["proven"] for entry in found["rounds"]] == [0, 1]
    assert [(difference["kind"], difference["field"]) for difference in found["differences"]] == [("log", "end")]


def test_a_job_that_did_not_end_is_continued(tmp_path: pathlib.Path, log: Log) -> None:
    log.cut = True
    assert run(tmp_path, "cut")["verdict"] == "error"
    log.cut, log.asked = False, 0
    again = run(tmp_path, "again")
    assert again["verdict"] == "pass" and log.asked == 0
    assert again["views"]["cluster"]["state"]["chunks_of_an_earlier_job"] == 3
    # what has passed is not kept, and what was read for another gate is not used
    assert "chunks_of_an_earlier_job" not in run(tmp_path, "third")["views"]["cluster"]["state"]
    log.cut = True
    run(tmp_path, "cut again")
    log.cut = False
    assert "chunks_of_an_earlier_job" not in run(tmp_path, "last", "again")["views"]["cluster"]["state"]


def test_a_sampled_topic_is_never_counted_as_a_whole(tmp_path: pathlib.Path, log: Log) -> None:
    samples = {"topics": ["ord*"], "chunk_offsets": 10, "samples": [{"topics": ["orders"], "percent": 1}]}
    first = run(tmp_path, "first", fingerprint=samples)
    (text,) = first["views"]["cluster"]["state"]["samples"].values()
    # one of the chunks of 10, 10 and 5 records
    assert re.fullmatch(r"(40|20)\.00% of the offsets read: 1 % of the chunks, seed 0", text)
    again = run(tmp_path, "again", "first", fingerprint=samples)
    assert again["verdict"] == "pass"
    assert again["counts"]["log_of_a_sample"]["match"] == 1 and "log" not in again["counts"]
    assert "1 topics by samples: orders" in again["comparisons"][0]["note"]


def test_a_baseline_of_another_cluster_or_without_its_files_is_an_error(tmp_path: pathlib.Path, log: Log) -> None:
    run(tmp_path, "first")
    assert run(tmp_path, "last", gate="after_finalize")["verdict"] == "incomplete"
    other = run(tmp_path, "foreign", "first", cluster_id="c2")
    assert other["verdict"] == "error"
    assert "the baseline is of cluster c1" in other["reasons"][0]
    place = store.read(str(tmp_path / "first")).data
    file = tmp_path / "store" / place.directory / min(place.files)
    file.write_bytes(file.read_bytes() + b"x")
    damaged = run(tmp_path, "damaged", "first")
    assert damaged["verdict"] == "error" and f"{file.name}, a file of the baseline's records" in damaged["reasons"][0]
    assert "(QS-VERIFY-005)" in damaged["reasons"][0]
    file.unlink()
    assert run(tmp_path, "gone", "first")["reasons"] == damaged["reasons"]


@pytest.mark.parametrize("has_crc", [True, False])
def test_a_page_of_the_baseline_that_was_changed_is_no_pass(tmp_path: pathlib.Path, log: Log, has_crc: bool) -> None:
    run(tmp_path, "first")
    for file in (tmp_path / "store").glob("*/part-*.parquet"):
        content, group = bytearray(file.read_bytes()), pq.read_metadata(file).row_group(0)
        (column,) = [
            group.column(number) for number in range(group.num_columns) if group.column(number).path_in_schema == "hash"
        ]
        content[column.data_page_offset + column.total_compressed_size - 1] ^= 1  # the size is the same
        file.write_bytes(content)
        if not has_crc:
            file.with_name(f".{file.name}.crc").unlink()  # Hadoop's, of local files
    changed = run(tmp_path, "changed", "first")
    assert changed["verdict"] == "error", changed["differences"]
    assert "is damaged: its checksum is another one" in changed["reasons"][0], changed["reasons"]


def test_the_store_has_the_baseline_and_nothing_else(tmp_path: pathlib.Path, log: Log) -> None:
    def directories() -> List[str]:
        return sorted(path.name for path in (tmp_path / "store").iterdir() if path.is_dir())

    run(tmp_path, "first")
    (first,) = directories()
    (tmp_path / "store" / "of another").mkdir()
    run(tmp_path, "again", "first")
    assert len(directories()) == 3 and first in directories()  # whether it is kept is the role's to say
    run(tmp_path, "third", "again")
    assert first not in directories() and "of another" in directories()
    assert stat.S_IMODE((tmp_path / "store").stat().st_mode) == 0o700
    log.hashes[3] += 1
    before = directories()
    assert run(tmp_path, "differs", "third")["verdict"] == "differ"
    assert set(directories()) < set(before)  # what differs is read again
    (tmp_path / "store").chmod(0o755)
    assert "with mode 0700" in run(tmp_path, "open", "third")["reasons"][0]


OF = {"cluster_id": "c", "gate": "after_finalize", "phase": "finalized", "baseline": "ab"}
STATE = PartitionState("orders", 0, "id", 4, 0, 30, False, True, -1, -1, 1000)
WANTED = Range("orders", 0, "id", (0, 10, 20, 30))


def chunk(begin: int, **more: Any) -> Chunk:
    facts = (1, 10, 70, 10, begin, begin + 9, 5, 7, 4, 4, "ab" * 16)
    return Chunk("orders", 0, begin, begin + 10, *facts)._replace(**more)


def opened(spark: SparkSession, store: pathlib.Path, **of: Any) -> data.Data:
    return data.Data(spark, str(store), {**OF, **of}, None)


def resumed(
    spark: SparkSession, store: pathlib.Path, state: PartitionState = STATE, wanted: Range = WANTED, **of: Any
) -> List[Range]:
    """Return what a job has to read."""
    there = opened(spark, store, **of)
    there.resume({state.tp: state})
    return there.left([wanted])


@pytest.fixture
def begun(spark: SparkSession, tmp_path: pathlib.Path) -> pathlib.Path:
    """The store of a job that had read two of three chunks, each in a task."""
    there = opened(spark, tmp_path / "store")
    assert there.left([WANTED]) == [WANTED]
    for begin in (0, 10):
        there.append(written(spark, data.rows(WANTED, STATE.leader_epoch, STATE.log_start, chunk(begin), None)))
    return tmp_path / "store"


REST = [Range("orders", 0, "id", (20, 30), cut=False)]


def test_a_job_continues_with_the_chunks_that_are_missing(spark: SparkSession, begun: pathlib.Path) -> None:
    assert resumed(spark, begun) == REST
    (directory,) = [path for path in begun.iterdir() if path.is_dir()]
    unfinished = directory / "_temporary" / "0" / "_temporary" / "attempt_1"
    unfinished.mkdir(parents=True)
    (unfinished / "part-00000.zstd.parquet").write_bytes(b"PAR1")  # a kill cut this file
    assert resumed(spark, begun) == REST
    file = next(directory.glob("part-*.parquet"))
    file.write_bytes(file.read_bytes()[:100])  # what no task leaves, but a host that loses power may
    file.with_name(f".{file.name}.crc").unlink()
    assert resumed(spark, begun) == [WANTED]
    assert resumed(spark, begun) == [WANTED]


@pytest.mark.parametrize(
    "changed",
    [{"topic_id": "id-2"}, {"leader_epoch": 5}, {"leader_epoch": 3}, {"log_start": 1}],
    ids=["topic id", "leader epoch", "older leader epoch", "log start"],
)
def test_a_chunk_of_another_log_is_read_again(spark: SparkSession, begun: pathlib.Path, changed: Any) -> None:
    state = STATE._replace(**changed)
    wanted = WANTED._replace(topic_id=state.topic_id)
    assert resumed(spark, begun, state, wanted) == [wanted]


@pytest.mark.parametrize("of", [{"gate": "before_controllers"}, {"phase": "dual_write"}, {"baseline": "cd"}])
def test_what_another_comparison_read_is_removed(spark: SparkSession, begun: pathlib.Path, of: Any) -> None:
    assert resumed(spark, begun, **of) == [WANTED]
    assert resumed(spark, begun) == [WANTED]  # for good


@pytest.mark.parametrize(
    "wanted",
    [{"bounds": (0, 20, 30)}, {"bounds": (5, 10), "cut": True}, {"keyed": True}, {"bounds": (10, 20), "cut": True}],
)
def test_only_the_same_chunk_is_trusted(spark: SparkSession, begun: pathlib.Path, wanted: Any) -> None:
    """A chunk that begins the range has the batch that its bound cuts, unlike the same chunk after another one."""
    other = WANTED._replace(**wanted)
    assert resumed(spark, begun, wanted=other) == [other]


def test_another_job_does_not_use_the_store(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "store")
    for _turn in range(2):
        with data.locked(path), pytest.raises(data.DataError, match="another data_fingerprint of this cluster runs"):
            data.locked(path).__enter__()
