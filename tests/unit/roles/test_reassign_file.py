# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`reassign_src`: a path from the operator's directory, and no other content than that of the plan that goes on."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.playbook import play
from tools.checkout import ROOT
from tools.yaml_files import read_yaml

CHECKS = ("Refuse a file that is not there", "Refuse a file that has changed since that plan was made of it")
PLAN = {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2]}]}
OTHER = {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [3]}]}


@pytest.mark.parametrize(
    ("content", "saved", "said"),
    [
        (None, None, "is no file of the control node"),
        (PLAN, None, ""),
        (PLAN, PLAN, ""),
        (OTHER, PLAN, "has changed since"),
        (None, PLAN, ""),  # the plan has all of it
    ],
)
def test_the_file_of_a_plan(tmp_path, monkeypatch, content, saved, said):
    tasks = [task for task in read_yaml(ROOT / "roles/reassign/tasks/plan.yml") if task["name"] in CHECKS]
    assert len(tasks) == len(CHECKS)
    given = {
        "reassign_src": "plan.json",
        "reassign_saved": {"stat": {"exists": saved is not None}},
        "reassign_planned": {"plan": saved},
        "quorumshift_artifacts_dir": "/artifacts",
        "_quorumshift_session": {"cluster_id": "c", "run": "r"},
    }
    files = [str(ROOT / f"roles/reassign/{part}/main.yml") for part in ("defaults", "vars")]
    one = {"hosts": "localhost", "gather_facts": False, "tasks": tasks, "vars_files": files}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([one]))
    (tmp_path / "given.json").write_text(json.dumps(given))
    where = tmp_path / "of the operator"
    where.mkdir()
    if content is not None:
        (where / "plan.json").write_text(json.dumps(content, indent=1))
    monkeypatch.setattr("tests.playbook.ROOT", where)  # where the playbook is started
    monkeypatch.setenv("ANSIBLE_COLLECTIONS_PATH", str(ROOT / ".build"))
    done = play(tmp_path, tmp_path / "play.yml", "-e", f"@{tmp_path}/given.json")
    printed = " ".join(done.stdout.split())
    assert (done.returncode != 0) == bool(said) and said in printed, done.stdout
    assert not said or str(where / "plan.json") in printed
