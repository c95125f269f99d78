# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""job.json and result.json: rejected input, and that a result is complete or missing."""

from __future__ import annotations

import csv
import json
import os
import tracemalloc
import zipfile

import jsonschema
import pyarrow.parquet as pq
import pytest
from quorumshift_spark import job as jobs
from quorumshift_spark import metadata_parity, package, result
from quorumshift_spark.compare import Difference
from quorumshift_spark.views import ViewError
from quorumshift_spark.views.source import error_line


@pytest.fixture
def given(tmp_path):
    (tmp_path / "key").write_bytes(b"k" * 32)
    return {
        "nonce": "n",
        "gate": "before_controllers",
        "cluster_id": "C",
        "digest_key_file": str(tmp_path / "key"),
        "output": str(tmp_path / "out"),
        "views": {"zookeeper": {"connect": "h:1"}},
    }


@pytest.fixture
def write(tmp_path):
    def to_file(value, mode=0o600):
        path = tmp_path / "job.json"
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        path.chmod(mode)
        return str(path)

    return to_file


def load(path):
    return jobs.checked(path, jobs.read(path), "metadata_parity")


def test_job_is_read(given, write):
    job = load(write({**given, "bounds": {"rounds": 2}, "fence": {"migration_zxid": 1}}))
    assert (job.gate, job.bounds.rounds, job.digest_key) == ("before_controllers", 2, b"k" * 32)
    assert [view.name for view in jobs.views(job)] == ["zookeeper"]
    assert "k" * 32 not in repr(job)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nonce": None}, "'nonce' is missing"),
        ({"views": {}}, "'views' is missing"),
        ({"gates": 1}, "unknown key 'gates'"),
        ({"views": {"zookeper": {}}}, "unknown key 'views.zookeper'; the keys are zookeeper, metadata_log"),
        ({"foreign": "ccs"}, "'foreign' is not array or null: a list of texts"),
        ({"bounds": {"rounds": -1}}, "'bounds.rounds' is -1, not valid: minimum is 0"),
        ({"gate": 5}, "'gate' is not string"),
        ({"cluster_id": {"password": "hidden"}}, "'cluster_id' is not string .QS-VERIFY-004"),
        ({"bounds": {"round": 1}}, "bounds.round"),
        ({"digest_key_file": "/nowhere/key"}, "digest_key_file /nowhere/key"),
        ({"digest_key_file": "/dev/null"}, "fewer than 16 bytes"),
    ],
)
def test_invalid_job_is_rejected(given, write, change, message):
    with pytest.raises(jobs.JobError, match=message):
        load(write({**given, **change}))


def test_job_that_other_users_can_read_is_rejected(given, write):
    with pytest.raises(jobs.JobError, match="chmod 600"):
        load(write(given, 0o640))


def test_message_for_invalid_json_does_not_quote_it(write):
    with pytest.raises(jobs.JobError, match="is not JSON") as error:
        load(write('{"password": hidden}'))
    assert "hidden" not in str(error.value)


@pytest.mark.parametrize(
    ("views", "message"),
    [
        ({"zookeeper": {}}, "'views.zookeeper' needs either 'connect', or"),
        ({"zookeeper": {"connect": "h:1", "client": {"tls": True}}}, "zookeeper_client.tls"),
        ({"metadata_log": {"directory": "/x"}}, "'views.metadata_log.end_offset' is missing"),
        ({"metadata_log": {"end_offset": 1}}, "'views.metadata_log' needs either 'directory', or 'archive'"),
        ({"metadata_log": {"end_offset": 1, "archive": "/x"}}, "'archive' with its 'sha256'"),
        ({"metadata_logs": [{"node": 1, "end_offset": 1}]}, "'views.metadata_logs.0' needs either 'directory'"),
        ({"copy_source": {"host": "z1"}}, "'views.copy_source.archive' is missing"),
        ({"brokers": [{"id": 1, "address": "nowhere"}]}, "views: "),
    ],
)
def test_invalid_views_are_rejected(given, write, views, message):
    with pytest.raises(jobs.JobError, match=message):
        jobs.views(load(write({**given, "views": views})))


def test_missing_job_exits_with_error_and_writes_nothing(tmp_path, capsys):
    assert metadata_parity.main(["--input", str(tmp_path / "job.json")]) == 2
    assert "job.json" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_stale_result_is_replaced(given, write, tmp_path):
    (tmp_path / "out").mkdir()
    stale = tmp_path / "out" / "result.json"
    stale.write_text('{"verdict": "pass", "nonce": "n"}')
    assert metadata_parity.main(["--input", write({**given, "gate": "before_lunch"})]) == 2
    found = json.loads(stale.read_text())
    jsonschema.validate(found, result.schema())
    assert (found["verdict"], found["nonce"]) == ("error", "n")
    assert "before_lunch" in found["reasons"][0]


def test_views_that_fail_their_probe_are_an_error_before_spark_starts(given, write, tmp_path):
    views = {"zookeeper": {"connect": "127.0.0.1:1"}, "brokers": [{"id": 7, "address": "127.0.0.1:1"}]}
    job = write({**given, "views": views, "bounds": {"request_timeout_s": 0.5}})
    assert metadata_parity.main(["--input", job]) == 2
    found = json.loads((tmp_path / "out" / "result.json").read_text())
    jsonschema.validate(found, result.schema())
    assert found["verdict"] == "error" and "spark_start" not in found["timings"]
    assert [reason.split(":")[0] for reason in found["reasons"]] == ["view broker", "view zookeeper could not be read"]
    assert set(found["views"]) == {"zookeeper", "broker:7"}


def test_result_that_cannot_be_written_is_an_error(given, write, tmp_path, capsys):
    (tmp_path / "out" / "result.json.part").mkdir(parents=True)
    assert metadata_parity.main(["--input", write({**given, "gate": "before_lunch"})]) == 2
    assert "cannot write the result" in capsys.readouterr().err
    assert not (tmp_path / "out" / "result.json").exists()


def test_result_is_validated_and_private(tmp_path):
    result.write(str(tmp_path), result.empty(result.PASS, []))
    assert os.stat(tmp_path / "result.json").st_mode & 0o077 == 0
    found = json.loads((tmp_path / "result.json").read_text())
    assert found["digest"] == result.digest(found)
    with pytest.raises(jsonschema.ValidationError):
        result.write(str(tmp_path), result.empty("fine", []))
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]
    assert json.loads((tmp_path / "result.json").read_text()) == found


def test_digest_covers_all_but_timings_and_versions():
    original = result.empty(result.PASS, [])
    view = {"read": {}, "state": {"zxid": 1}, "seconds": 1.0, "error": None, "problems": [], "moved": 0}
    original["views"] = {"zookeeper": view}
    same = {**original, "timings": {"total": 3.0}, "versions": {"spark": "4"}, "digest": "x"}
    same["views"] = {"zookeeper": {**view, "seconds": 9.0}}
    assert result.digest(original) == result.digest(same)
    for name, value in (("verdict", "differ"), ("nonce", "other"), ("cluster_id", "D")):
        assert result.digest({**original, name: value}) != result.digest(original)
    moved = {**original, "views": {"zookeeper": {**view, "state": {"zxid": 2}}}}
    assert result.digest(moved) != result.digest(original)


def test_foreign_errors_are_shown_by_class_only():
    assert error_line(ViewError("broker 1:\n no answer")) == "broker 1: no answer"
    try:
        json.loads("hidden")
    except ValueError as error:
        assert "hidden" not in error_line(error)
        assert "JSONDecodeError" in error_line(error)
    assert error_line(FileNotFoundError(2, "No such file", "/x")) == "No such file: /x"


def test_archive_is_reproducible_and_has_directory_entries(tmp_path):
    for name in ("a.zip", "b.zip"):
        package.build(str(tmp_path / name))
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    names = set(zipfile.ZipFile(tmp_path / "a.zip").namelist())
    utils = "ansible_collections/quorumshift/kafka/plugins/module_utils/"
    assert {"quorumshift_spark/result.schema.json", "ansible_collections/", utils, f"{utils}secrets/seal.py"} <= names
    assert not [name for name in names if "__pycache__" in name]


def difference(key, field="value", kind="config", **sides):
    sides = sides or {"zookeeper": '"1"', "metadata_log": '"2"'}
    return Difference(kind, json.dumps(key), field, sides, "zookeeper_log", "equal", "do")


def tables(directory):
    """Return the rows of both tables of differences."""
    with open(directory / result.DIFFERENCES_CSV, encoding="utf-8", newline="") as file:
        text = list(csv.DictReader(file))
    return pq.read_table(directory / result.DIFFERENCES).to_pylist(), text


def test_tables_of_differences_have_the_same_rows(tmp_path):
    found = [
        difference(["topic", "orders", "retention.ms"]),
        difference(["t"], None, "topic", zookeeper=None, metadata_log='{"id":"a, \\"b\\""}'),
        difference(["User:\u202e\n=é", 1], "leader", "partition", zookeeper="-1", metadata_log="1"),
    ]
    facts = result.write_differences(
        str(tmp_path), (result.row(one, "zookeeper", "metadata_log", "changed", "why") for one in found)
    )
    rows, text = tables(tmp_path)
    assert [{name: value or "" for name, value in row.items()} for row in rows] == text
    assert list(text[0]) == list(result.COLUMNS) and rows[1]["left_value"] is None
    assert text[2]["left_value"] == "-1"  # a number is no formula
    assert "\\u202e" in text[2]["key"]
    for name, fact in facts.items():
        assert os.stat(tmp_path / name).st_mode & 0o777 == 0o600
        assert fact == result.file_facts(str(tmp_path / name), 3)
    assert set(facts) == {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1+1", "@SUM(A1)", " =1", "\u00a0=1", "\uff1d1", "-1+cmd|' /C calc'!A0"]
)
def test_no_cell_of_the_csv_is_a_formula(tmp_path, text):
    row = dict.fromkeys(result.COLUMNS, text)
    result.write_differences(str(tmp_path), [row])
    rows, cells = tables(tmp_path)
    assert set(cells[0].values()) == {f"'{text}"}
    assert set(rows[0].values()) == {text}


@pytest.mark.parametrize("clear", ['"s3cret"', '{"value":"s3cret"}', '["s3cret"]', '{"digest":"a","value":"s3cret"}'])
def test_no_table_has_a_secret_in_clear_text(tmp_path, clear):
    """Views seal them; one that does not is masked."""
    sealed = '{"digest":"0a"}'
    found = difference(["broker", None, "ssl.key.password"], zookeeper=sealed, metadata_log=clear)
    result.write_differences(str(tmp_path), [result.row(found, "zookeeper", "metadata_log")])
    rows, text = tables(tmp_path)
    assert "s3cret" not in str(rows) + str(text) + str(result.listed(found))
    assert rows[0]["left_value"] == sealed and rows[0]["right_value"] == '"********"'


def test_differences_are_never_all_in_memory(tmp_path):
    def peak(number):
        rows = (
            result.row(difference(["topic", f"topic-{n}", "retention.ms"]), "zookeeper", "metadata_log")
            for n in range(number)
        )
        listed = (result.listed(difference(["topic", f"topic-{n}", "x"])) for n in range(number))
        tracemalloc.start()
        try:
            facts = result.write_differences(str(tmp_path), rows)
            assert len(result.some_of_each(listed, 200)) == 200
            return facts[result.DIFFERENCES_CSV]["rows"], tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    few, many = peak(10_000), peak(50_000)
    assert (few[0], many[0]) == (10_000, 50_000)
    assert many[1] < 1.5 * few[1]


def test_many_differences_of_one_sort_do_not_hide_another():
    def listed(kind, number):
        return {"kind": kind, "key": str(number), "field": "isr", "sides": {"zookeeper": "1", "metadata_log": "2"}}

    partitions = [listed("partition", number) for number in range(300)]
    found = [listed("acl", 0), *partitions, listed("topic", 1), listed("topic", 2)]
    assert [(item["kind"], item["key"]) for item in result.some_of_each(found, 6)] == [
        *(("acl", "0"), ("partition", "0"), ("topic", "1")),
        *(("partition", "1"), ("topic", "2"), ("partition", "2")),
    ]
    assert result.some_of_each(found, 1000) != found and len(result.some_of_each(found, 1000)) == len(found)
