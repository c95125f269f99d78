# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The job data_fingerprint: result, files, errors. A list of records replaces Kafka and Spark; tests/spark runs the job
against both."""

from __future__ import annotations

import contextlib
import json
import pathlib
import re
from typing import Any, Dict, List

import jsonschema
import pyarrow.parquet as pq
import pytest
from quorumshift_spark import data_fingerprint, report
from quorumshift_spark import result as results
from quorumshift_spark.compare import OUTCOMES
from quorumshift_spark.fingerprint.cluster import ClusterError, Metadata, Topic
from quorumshift_spark.fingerprint.coordinators import Group, Transaction
from quorumshift_spark.fingerprint.plan import Chunk, PartitionState

SECRET = "s3cr3t-word"


class Log:
    """A cluster with one partition, and the scan of it."""

    def __init__(self) -> None:
        self.hashes: List[int] = list(range(100, 125))
        self.committed = 20
        self.error: Exception | None = None
        self.asked = 0
        self.cut = False

    def metadata(self):
        if self.error is not None:
            raise self.error  # pylint: disable=raising-bad-type
        return Metadata("c1", {}, {"orders": Topic("id", {0: None}), "other": Topic("id-2", {0: None})})

    def hidden(self, _found):
        return []

    def groups(self):
        return {"readers": Group("STABLE", {("orders", 0): self.committed})}

    def transactions(self, _found):
        return {"t1": Transaction(5, 1)}

    def states(self, _found, chosen):
        state = PartitionState("orders", 0, "id", 1, 0, len(self.hashes), False, True, -1, -1, 1000)
        return [state] if "orders" in chosen else []

    def high_watermarks(self, tps):
        return {tp: len(self.hashes) for tp in tps}

    def log_starts(self, tps):
        return dict.fromkeys(tps, 0)

    def size(self, _tp, _leader):
        return 1000

    def retentions(self, _found):
        return {"offsets.retention.minutes": 10**9, "transactional.id.expiration.ms": 10**9}

    def read(self, _spark, wanted, _leaders, _log_starts, _security, _patience_s, finished, _stop):
        for part in wanted:
            chunks = []
            for begin, end in zip(part.bounds, part.bounds[1:]):
                number, content = end - begin, str(self.hashes[begin:end])
                chunks.append(
                    Chunk("orders", 0, begin, end, number, number, 99, number, begin, end - 1, 1, 2, 1, 1, content)
                )
            finished(part, 1, chunks, [])
            self.asked += len(chunks)
            if self.cut:
                raise RuntimeError("the job was cancelled")
        return {}


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    log = Log()
    monkeypatch.setattr(data_fingerprint, "Cluster", lambda *_arguments: log)
    monkeypatch.setattr(data_fingerprint.fetch, "read", log.read)
    monkeypatch.setattr(data_fingerprint.running, "spark", lambda *_arguments: contextlib.nullcontext(Session()))
    return log


class Session:
    """Replaces Spark's session, which the test does not use."""

    sparkContext = None


def run(tmp_path: pathlib.Path, name: str, baseline: str | None = None, **changes: Any) -> Dict[str, Any]:
    output = tmp_path / name
    output.mkdir()
    client = {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_username": "u", "sasl_password": SECRET}
    job = {
        "nonce": name,
        "gate": "after_finalize" if baseline else "before_controllers",
        "phase": "finalized",
        "cluster_id": "c1",
        "output": str(output),
        "views": {
            "cluster": {"bootstrap_servers": "h:1", "client": client},
            "baseline": {"path": str(tmp_path / baseline)} if baseline else None,
        },
        "fingerprint": {"topics": ["ord*"], "chunk_offsets": 10},
        "bounds": {"rounds": 2, "pause_s": 0},
        **changes,
    }
    path = tmp_path / "job.json"
    path.write_text(json.dumps(job))
    path.chmod(0o600)
    code = data_fingerprint.main(["--input", str(path)])
    path.unlink()
    result = json.loads((output / results.NAME).read_text())
    assert code == results.EXIT_CODES[result["verdict"]]
    jsonschema.Draft202012Validator(results.schema()).validate(result)
    for counted in result["counts"].values():
        assert counted["read"] == sum(counted[outcome] for outcome in OUTCOMES)
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes()
    assert report.render(result)
    return result


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
    assert pq.read_table(tmp_path / "again" / "chunks.parquet").column("end").to_pylist() == [10, 20, 25, 30, 35]

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


def test_failure_is_an_error_without_secrets(tmp_path: pathlib.Path, log: Log) -> None:
    log.error = ClusterError(f"h:1: the list of groups: broker said {SECRET}")
    result = run(tmp_path, "refused")
    assert result["verdict"] == "error"
    assert result["reasons"] == ["h:1: the list of groups: broker said ********"]
    assert result["views"]["cluster"]["error"] == result["reasons"][0]
    log.error = None
    assert "no such" in run(tmp_path, "lost", "nowhere")["reasons"][0].lower()
    run(tmp_path, "first")
    assert run(tmp_path, "last", gate="after_finalize")["verdict"] == "incomplete"
    other = run(tmp_path, "foreign", "first", cluster_id="c2")
    assert other["verdict"] == "error"
    assert "the baseline is of cluster c1" in other["reasons"][0]


@pytest.mark.parametrize(
    ("fingerprint", "message"),
    [
        ({"hours": 1}, "unknown key 'fingerprint.hours'; the keys are topics, exclude"),
        ({"chunk_offsets": 0}, "fingerprint.chunk_offsets 0 is not valid"),
        ({"samples": [{"last": 5}]}, "fingerprint.samples[0] (quorumshift_fingerprint_samples): it needs 'topics'"),
        ({"samples": [{"topics": ["*"]}]}, "besides 'topics' it takes either"),
        ({"samples": [{"topics": ["*"], "last": 5, "percent": 5}]}, "besides 'topics' it takes either"),
        ({"samples": [{"topics": ["*"], "last": 0}]}, "'last' must be"),
        ({"samples": [{"topics": ["*"], "percent": 101}]}, "'percent' must be"),
    ],
)
def test_invalid_settings_are_an_error(tmp_path: pathlib.Path, log: Log, fingerprint: Any, message: str) -> None:
    result = run(tmp_path, "invalid", fingerprint=fingerprint)
    assert result["verdict"] == "error" and message in result["reasons"][0] and log.asked == 0


def test_a_job_without_servers_is_an_error(tmp_path: pathlib.Path, log: Log) -> None:
    result = run(tmp_path, "nowhere", views={"cluster": {}})
    assert result["reasons"] == ["'views.cluster.bootstrap_servers' is missing (QS-VERIFY-004)"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "not a JSON object"),
        ('{"nonce": "n"}', "'cluster_id' is missing"),
        ('{"nonce": "n", "cluster_id": "c", "output": "o", "views": {"a": 1}}', "unknown key 'views.a'"),
    ],
)
def test_a_file_that_is_no_job_is_rejected(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture, text: str, message: str
) -> None:
    path = tmp_path / "job.json"
    path.write_text(text)
    path.chmod(0o600)
    assert data_fingerprint.main(["--input", str(path)]) == 2
    assert message in capsys.readouterr().err
    path.chmod(0o640)
    assert data_fingerprint.main(["--input", str(path)]) == 2
    assert "chmod 600" in capsys.readouterr().err
