# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook support_bundle on a simulated cluster after a rolling restart, with secrets in all that it reads.

One host cannot be reached over ssh, and one has no log. What is planted where: simulated_support.py.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets import redaction

from tests.unit.roles.simulated_support import FORMS, KEY, NO_VALUE, PLANTED, PRINCIPAL, TOPIC
from tools.checkout import ROOT


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """Return what each case printed, how it ended, and which files it made."""
    home = tmp_path_factory.mktemp("support")
    environment = {name: value for name, value in os.environ.items() if name not in ("CI", "JOB_ID")}
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.roles.simulated_support", str(home)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def unpacked(case):
    (path,) = case["made"]
    with tarfile.open(path) as archive:
        files = {member.name.partition("/")[2]: archive.extractfile(member).read() for member in archive}
    return Path(path), files


def test_the_bundle_has_what_an_engineer_asks_for(cases):
    assert cases["restart"]["code"] == cases["all"]["code"] == 0, cases["all"]["output"]
    path, files = unpacked(cases["all"])
    assert path.stat().st_mode & 0o777 == 0o600 and str(path) in cases["all"]["output"]
    runs = {name.split("/")[1] for name in files if name.startswith("runs/")}
    assert "20200101T000000-abcd" in runs and len(runs) == 2
    wanted = {"status.txt", "status.json", "versions.json", "inventory.json", "README.txt"}
    wanted |= {f"hosts/b1/{name}" for name in ("facts.json", "node.properties", "node.log")}
    assert wanted <= set(files)
    assert b"phase" in files["status.json"] and b"phUKKf3TSny1o9Yap379dw: zk" in files["status.txt"]
    assert json.loads(files["versions.json"])["hosts"]["b1"]["kafka"] == "3.9.1"
    newest = max(runs)
    assert {
        f"runs/{newest}/{name}" for name in ("journal.jsonl", "plan-restart_broker.json", "diffs/b1-x.diff")
    } <= set(files)
    assert f"runs/{newest}/verify/gate/metadata_parity/result.json" in files
    assert not any(name.endswith((".parquet", ".html", "link.json", "pipe.json")) for name in files)
    assert PRINCIPAL.encode() in files["hosts/b1/node.log"] and TOPIC.encode() in files["hosts/b1/node.log"]


@pytest.mark.parametrize("case", ["all", "hidden", "no_status", "left_out"])
def test_no_secret_is_in_a_bundle_in_any_form(cases, case):
    _path, files = unpacked(cases[case])
    # b2's properties file cannot be read, and each other one has other secrets
    known = redaction.Secrets([*PLANTED.values(), NO_VALUE, "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"])
    for name, data in files.items():
        text = data.decode()
        assert not known.find_survivor(text), name
        for secret, value in PLANTED.items():
            assert not [form for form, write in FORMS.items() if write(value) in text], (name, secret)
        assert KEY not in text and "sealed:" not in text, name


@pytest.mark.parametrize("case", ["all", "hidden", "no_status", "survives", "left_out"])
def test_no_secret_is_printed(cases, case):
    assert not redaction.Secrets([*PLANTED.values(), NO_VALUE]).find_survivor(cases[case]["output"])


@pytest.mark.parametrize("case", ["all", "hidden", "no_status", "left_out"])
def test_the_manifest_agrees_with_the_archive(cases, case):
    _path, files = unpacked(cases[case])
    rows = json.loads(files["MANIFEST.json"])["files"]
    assert {row["path"] for row in rows} == set(files) - {"MANIFEST.json", "README.txt", "SHA256SUMS"}
    for row in rows:
        data = files[row["path"]]
        assert (row["bytes"], row["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
    replaced = {row["path"]: row["replaced"] for row in rows}
    assert all(count >= len(FORMS) * len(PLANTED) for path, count in replaced.items() if path.endswith("node.log"))


def test_what_could_not_be_read_is_listed_and_printed_last(cases):
    _path, files = unpacked(cases["all"])
    left_out = {item["what"]: item for item in json.loads(files["MANIFEST.json"])["left_out"]}
    assert "Connection refused" in left_out["hosts/b2/facts.json"]["why"]
    assert "so no file was searched for them" in left_out["the secrets of b2"]["why"]
    assert "No such file" in left_out["hosts/c1/node.log"]["why"]
    printed = cases["all"]["output"].rpartition("support bundle: ")[2]
    for what in ("hosts/b2/facts.json", "the secrets of b2", "hosts/c1/node.log"):
        assert f"  ! missing: {what}: " in printed
    assert not any("parquet" in line for line in printed.splitlines() if "missing" in line)


def test_a_probe_host_that_does_not_answer_leaves_the_status_out(cases):
    case = cases["no_status"]
    _path, files = unpacked(case)
    assert case["code"] == 0 and "status.txt" not in files and "hosts/b1/node.log" in files
    assert any(name.startswith("runs/") for name in files)
    assert re.search(r"! missing: status: .*Connection refused", case["output"])
    assert "! missing: cluster id: it could not be read; the only artifacts here are of phUKK" in case["output"]


def test_a_secret_that_survives_leaves_no_bundle(cases):
    case = cases["survives"]
    assert case["code"] == 2 and case["made"] == []
    assert "still in hosts/b1/node.log, hosts/b3/node.log" in case["output"] and "(QS-HOST-003)" in case["output"]
    assert "SECRET1" not in case["output"] and "*x" not in case["output"]
    case = cases["left_out"]
    assert case["code"] == 0 and not any(name.endswith("node.log") for name in unpacked(case)[1])


def test_hidden_hosts_are_in_no_file(cases):
    _path, files = unpacked(cases["hidden"])
    names = re.compile(r"(?<![A-Za-z0-9])(b[1-4]|c[1-3]|p1|10\.2\.3\.4)(?![A-Za-z0-9])")
    assert not [name for name, data in files.items() if names.search(data.decode()) or names.search(name)]
    log = next(data for name, data in files.items() if re.fullmatch(r"hosts/host-\d+/node.log", name))
    assert b"at address-" in log
    assert len({name.split("/")[1] for name in files if name.startswith("runs/")}) == 1


def test_nothing_changed_on_the_cluster(cases):
    """No run lock, no journal of a host, no artifacts of a run."""
    for name in ("all", "hidden", "no_status", "left_out"):
        assert re.search(r"localhost +: ok=\d+ +changed=0 ", cases[name]["output"]) and len(cases[name]["made"]) == 1
    assert "changed=1" not in cases["all"]["output"]


def test_the_archive_is_read_by_gnu_tar(cases, tmp_path):
    path, files = unpacked(cases["all"])
    subprocess.run(["tar", "xzf", str(path), "-C", str(tmp_path)], check=True)
    (root,) = tmp_path.iterdir()
    done = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.count(": OK") == len(files) - 1
    assert io.BytesIO(files["README.txt"]).readline().startswith(b"Support bundle")
