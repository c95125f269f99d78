# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""job.json in, result.json out: what is refused, and that a result is whole or not there."""

from __future__ import annotations

import json
import os
import zipfile

import jsonschema
import pytest
from quorumshift_spark import job as jobs
from quorumshift_spark import metadata_parity, package, result
from quorumshift_spark.views import ViewError
from quorumshift_spark.views.source import said


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


def test_job_is_read(given, write):
    job = jobs.load(write({**given, "bounds": {"rounds": 2}, "fence": {"migration_zxid": 1}}))
    assert (job.gate, job.bounds.rounds, job.digest_key) == ("before_controllers", 2, b"k" * 32)
    assert [view.name for view in jobs.views(job)] == ["zookeeper"]
    assert "k" * 32 not in repr(job)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"nonce": None}, "'nonce' is missing"),
        ({"views": {}}, "'views' is missing"),
        ({"gates": 1}, "'gates' is not known"),
        ({"views": {"zookeper": {}}}, "views.zookeper"),
        ({"bounds": {"round": 1}}, "bounds.round"),
        ({"digest_key_file": "/nowhere/key"}, "digest_key_file /nowhere/key"),
        ({"digest_key_file": "/dev/null"}, "fewer than 16 bytes"),
    ],
)
def test_job_that_cannot_be_used_is_refused(given, write, change, said):
    with pytest.raises(jobs.JobError, match=said):
        jobs.load(write({**given, **change}))


def test_job_that_others_can_read_is_refused(given, write):
    with pytest.raises(jobs.JobError, match="make it 0600"):
        jobs.load(write(given, 0o640))


def test_text_that_is_not_json_is_not_shown(write):
    with pytest.raises(jobs.JobError, match="is not JSON") as error:
        jobs.load(write('{"password": hidden}'))
    assert "hidden" not in str(error.value)


@pytest.mark.parametrize(
    ("views", "said"),
    [
        ({"zookeeper": {}}, "'connect' is missing"),
        ({"zookeeper": {"connect": "h:1", "client": {"tls": True}}}, "zookeeper_client.tls"),
        ({"metadata_log": {"directory": "/x"}}, "end_offset is missing"),
        ({"metadata_log": {"end_offset": 1}}, "either 'directory', or 'archive'"),
        ({"metadata_log": {"end_offset": 1, "archive": "/x"}}, "'archive' with its 'sha256'"),
        ({"brokers": [{"id": 1, "address": "nowhere"}]}, "views: "),
    ],
)
def test_views_that_cannot_be_made_are_refused(given, write, views, said):
    job = jobs.load(write({**given, "views": views}))
    with pytest.raises(jobs.JobError, match=said):
        jobs.views(job)


def test_without_a_job_the_exit_code_is_error_and_nothing_is_written(tmp_path, capsys):
    assert metadata_parity.main(["--input", str(tmp_path / "job.json")]) == 2
    assert "job.json" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_stale_result_is_gone_before_anything_is_read(given, write, tmp_path):
    (tmp_path / "out").mkdir()
    stale = tmp_path / "out" / "result.json"
    stale.write_text('{"verdict": "pass", "nonce": "n"}')
    assert metadata_parity.main(["--input", write({**given, "gate": "before_lunch"})]) == 2
    found = json.loads(stale.read_text())
    jsonschema.validate(found, result.schema())
    assert (found["verdict"], found["nonce"]) == ("error", "n")
    assert "before_lunch" in found["reasons"][0]


def test_views_that_cannot_be_looked_at_are_an_error_before_spark_starts(given, write, tmp_path):
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
    assert "no result could be written" in capsys.readouterr().err
    assert not (tmp_path / "out" / "result.json").exists()


def test_result_is_checked_and_private(tmp_path):
    made = result.empty(result.PASS, [])
    result.write(str(tmp_path), made)
    assert os.stat(tmp_path / "result.json").st_mode & 0o077 == 0
    found = json.loads((tmp_path / "result.json").read_text())
    assert found["digest"] == result.digest(found)
    with pytest.raises(jsonschema.ValidationError):
        result.write(str(tmp_path), result.empty("fine", []))
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]
    assert json.loads((tmp_path / "result.json").read_text()) == found


def test_digest_is_of_all_but_speed_and_machine():
    one = result.empty(result.PASS, [])
    view = {"read": {}, "state": {"zxid": 1}, "seconds": 1.0, "error": None, "problems": [], "moved": 0}
    one["views"] = {"zookeeper": view}
    same = {**one, "timings": {"total": 3.0}, "versions": {"spark": "4"}, "digest": "x"}
    same["views"] = {"zookeeper": {**view, "seconds": 9.0}}
    assert result.digest(one) == result.digest(same)
    for name, value in (("verdict", "differ"), ("nonce", "other"), ("cluster_id", "D")):
        assert result.digest({**one, name: value}) != result.digest(one)
    moved = {**one, "views": {"zookeeper": {**view, "state": {"zxid": 2}}}}
    assert result.digest(moved) != result.digest(one)


def test_errors_of_others_are_told_by_class_alone():
    assert said(ViewError("broker 1:\n no answer")) == "broker 1: no answer"
    try:
        json.loads("hidden")
    except ValueError as error:
        assert "hidden" not in said(error)
        assert "JSONDecodeError" in said(error)
    assert said(FileNotFoundError(2, "No such file", "/x")) == "No such file: /x"


def test_archive_is_the_same_each_time_and_has_its_directories(tmp_path):
    for name in ("a.zip", "b.zip"):
        package.build(str(tmp_path / name))
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    names = set(zipfile.ZipFile(tmp_path / "a.zip").namelist())
    utils = "ansible_collections/quorumshift/kafka/plugins/module_utils/"
    assert {"quorumshift_spark/result.schema.json", "ansible_collections/", utils, f"{utils}seal.py"} <= names
    assert not [name for name in names if "__pycache__" in name]


def test_many_differences_of_one_sort_do_not_hide_another():
    def one(kind, number, field="isr"):
        return {"kind": kind, "key": str(number), "field": field, "sides": {"zookeeper": "1", "metadata_log": "2"}}

    found = [one("acl", 0), *(one("partition", number) for number in range(300)), one("topic", 1), one("topic", 2)]
    shown = result.some_of_each(found, 6)
    assert [(reported["kind"], reported["key"]) for reported in shown] == [
        *(("acl", "0"), ("partition", "0"), ("topic", "1")),
        *(("partition", "1"), ("topic", "2"), ("partition", "2")),
    ]
    assert result.some_of_each(found, 1000) != found and len(result.some_of_each(found, 1000)) == len(found)
