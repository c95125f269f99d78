# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The job data_fingerprint: what ends it before Spark starts. test_fingerprint_rows.py has the rest of the job."""

from __future__ import annotations

import json
import pathlib
from typing import Any, Dict, List

import jsonschema
import pytest
from quorumshift_spark import data_fingerprint, report
from quorumshift_spark import result as results
from quorumshift_spark.compare import OUTCOMES
from quorumshift_spark.fingerprint.cluster import ClusterError, Metadata, Topic
from quorumshift_spark.fingerprint.coordinators import Group, Transaction
from quorumshift_spark.fingerprint.plan import PartitionState

SECRET = "s3cr3t-word"


class Log:
    """A cluster with one partition."""

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


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    log = Log()
    monkeypatch.setattr(data_fingerprint, "Cluster", lambda *_arguments: log)
    return log


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


def test_failure_is_an_error_without_secrets(tmp_path: pathlib.Path, log: Log) -> None:
    log.error = ClusterError(f"h:1: the list of groups: broker said {SECRET}")
    result = run(tmp_path, "refused")
    assert result["verdict"] == "error"
    assert result["reasons"] == ["h:1: the list of groups: broker said ********"]
    assert result["views"]["cluster"]["error"] == result["reasons"][0]
    log.error = None
    assert "no such" in run(tmp_path, "lost", "nowhere")["reasons"][0].lower()


@pytest.mark.parametrize(
    ("fingerprint", "message"),
    [
        ({"hours": 1}, "unknown key 'fingerprint.hours'; the keys are topics, exclude"),
        ({"chunk_offsets": 0}, "'fingerprint.chunk_offsets' is 0, not valid: minimum is 1"),
        ({"samples": [{"last": 5}]}, "'fingerprint.samples.0.topics' is missing"),
        ({"samples": [{"topics": ["*"]}]}, "either 'last' or 'percent' (quorumshift_fingerprint_samples)"),
        ({"samples": [{"topics": ["*"], "last": 5, "percent": 5}]}, "'fingerprint.samples.0' needs besides 'topics'"),
        ({"samples": [{"topics": ["*"], "last": 0}]}, "'fingerprint.samples.0.last' is 0, not valid: minimum is 1"),
        ({"samples": [{"topics": ["*"], "percent": 101}]}, "is 101, not valid: maximum is 100: of the chunks"),
        ({"samples": [{"topics": "*", "last": 5}]}, "'fingerprint.samples.0.topics' is not array"),
    ],
)
def test_invalid_settings_are_an_error(tmp_path: pathlib.Path, log: Log, fingerprint: Any, message: str) -> None:
    result = run(tmp_path, "invalid", fingerprint=fingerprint)
    assert result["verdict"] == "error" and message in result["reasons"][0] and log.asked == 0


@pytest.mark.parametrize(("servers", "wrong"), [(None, "missing"), ("", "missing"), (["h:1"], "not string")])
def test_a_job_without_servers_as_text_is_an_error(tmp_path: pathlib.Path, log: Log, servers: Any, wrong: str) -> None:
    result = run(tmp_path, "nowhere", views={"cluster": {"bootstrap_servers": servers}})
    said = f"'views.cluster.bootstrap_servers' is {wrong} (QS-VERIFY-004)"
    assert result["reasons"] == [said] and log.asked == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "'job.json' is not object"),
        ('{"nonce": "n"}', "'output' is missing"),
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


def test_a_job_that_says_where_its_result_goes_gets_one_that_names_the_mistake(
    tmp_path: pathlib.Path, log: Log
) -> None:
    result = run(tmp_path, "wrong", views={"cluster": {"bootstrap_servers": "h:1"}, "a": 1})
    assert result["reasons"] == ["unknown key 'views.a'; the keys are cluster, baseline (QS-VERIFY-004)"]
    assert log.asked == 0


def test_a_cluster_without_leaders_is_asked_again_for_so_long(monkeypatch):
    monkeypatch.setattr(data_fingerprint, "_PAUSE_S", 0.01)
    answers = iter([ClusterError("no leaders"), ClusterError("no leaders"), 7])

    def ask():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert data_fingerprint._patient(ask, 30) == 7
    answers = iter([ClusterError("no leaders")] * 2)
    with pytest.raises(ClusterError):
        data_fingerprint._patient(ask, 0)
    assert len([*answers]) == 1
