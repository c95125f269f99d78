# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run artifacts are their owner's alone and hold no secret."""

from __future__ import annotations

import json
import os
import pathlib

import pytest
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import report
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.run_artifacts import RunArtifacts


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def open_to_others(root: pathlib.Path) -> list[str]:
    return [str(path) for path in [root, *root.rglob("*")] if path.stat().st_mode & 0o077]


def test_artifacts_are_private_whatever_the_umask(tmp_path, umask):
    root = tmp_path / "artifacts"
    artifacts = RunArtifacts(str(root), "cluster", "run")
    artifacts.note("phase", "zk")
    artifacts.save("diffs/b1-kraft.diff", "x")
    artifacts.new_directory("verify/after_copy/metadata_parity")
    report.write(artifacts)
    assert (root / "cluster" / "run" / "index.html").exists()
    assert open_to_others(root) == []


def test_artifacts_of_an_earlier_version_become_private(tmp_path):
    run = tmp_path / "cluster" / "run"
    run.mkdir(parents=True, mode=0o755)
    RunArtifacts(str(tmp_path), "cluster", "run").note("phase", "zk")
    assert open_to_others(tmp_path / "cluster") == []


def test_secrets_in_the_journal_and_in_saved_facts_are_masked(tmp_path):
    artifacts = RunArtifacts(str(tmp_path), "cluster", "run")
    artifacts.note("event", "ended", reason="login failed: password=hunter2")
    path = artifacts.save("facts-1.json", json.dumps({"errors": ["password=hunter2"], "plugin.api.key": "hunter2"}))
    assert "hunter2" not in pathlib.Path(path).read_text()
    assert "hunter2" not in (tmp_path / "cluster" / "run" / "journal.jsonl").read_text()


def test_an_event_after_an_incomplete_line_is_read(tmp_path):
    """As a full disk leaves one."""
    artifacts = RunArtifacts(str(tmp_path), "cluster", "run")
    artifacts.note("event", "begun")
    with open(artifacts.journal, "a", encoding="utf-8") as stream:
        stream.write('{"t": 1, "kind": "ev')
    artifacts.note("event", "failed", host="b1")
    assert [event["name"] for event in artifacts.events()] == ["begun", "failed"]
