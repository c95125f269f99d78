# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Archives on hosts: made, fetched and removed in one task; each one that may be left is named."""

from __future__ import annotations

import os

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import archive_action

from tests.unit.action.harness import CLUSTER

TAKEN = {"path": "/state/7.tar.gz", "sha256": "ab", "end_offset": 7}
REMOVED = {"state": "absent", "changed": True}
JOB = {"ansible_job_id": "j1", "started": 1, "finished": 0}


@pytest.fixture
def archiving(harness, monkeypatch):
    """Run the action with answers of Ansible's own actions and modules; they are popped, the last one stays."""
    harness.variables.update(quorumshift_state_dir="/state", quorumshift_spark_timeout_s=60, quorumshift_gate="g")
    harness.called = []

    def answer(name, answers):
        found = answers[name].pop(0) if len(answers[name]) > 1 else answers[name][0]
        if isinstance(found, Exception):
            raise found
        return dict(found)

    def run(args, taken=TAKEN, **answers):
        answers = {"fetch": [{"checksum": "ab"}], "file": [REMOVED], **answers}
        monkeypatch.setattr(archive_action, "_POLL_S", 0.0)

        def action(self, name, **given):
            harness.called.append((name, given))
            return answer(name, answers)

        def module(self, module_name, module_args, task_vars):
            harness.called.append((module_name, module_args))
            return answer("file", answers)

        monkeypatch.setattr(archive_action.ArchiveAction, "action", action)
        monkeypatch.setattr(archive_action.ArchiveAction, "_execute_module", module)
        if isinstance(taken, Exception):
            monkeypatch.setattr(
                archive_action.ArchiveAction, "_made", lambda self, _args: answer("it", {"it": [taken]})
            )
        else:
            monkeypatch.setattr(archive_action.ArchiveAction, "_made", lambda self, _args: dict(taken))
        monkeypatch.setattr(archive_action.ArchiveAction, "_with_interpreter", lambda self: {})
        return harness.run("metadata_snapshot", args, host="b1")

    return run


def test_an_archive_is_fetched_and_removed(harness, archiving, tmp_path):
    done = archiving({"fetch_to": str(tmp_path)})
    assert done["archive"] == os.path.join(tmp_path, "7.tar.gz") and done["end_offset"] == 7
    assert "left" not in done and not done["changed"] and not done.get("failed")
    removal = {"path": f"/state/{CLUSTER}/metadata_snapshot", "state": "absent"}
    assert harness.called[-1] == ("ansible.builtin.file", removal)


@pytest.mark.parametrize(
    "answer, why",
    [
        ({"failed": True, "msg": "read-only\nfile system", "state": "directory"}, "read-only file system"),
        ({"state": "directory"}, "no answer"),
        (AnsibleConnectionFailure("no route"), "no route"),
    ],
)
def test_a_removal_that_is_not_confirmed_is_named(archiving, tmp_path, answer, why):
    done = archiving({"fetch_to": str(tmp_path)}, file=[answer])
    assert done["left"] == {"host": "b1", "path": f"/state/{CLUSTER}/metadata_snapshot", "why": why}
    assert done["archive"]


@pytest.mark.parametrize(
    "taken, answers",
    [
        ({"failed": True, "msg": "no log"}, {}),
        ({"changed": True}, {}),
        (AnsibleConnectionFailure("no route"), {}),
        (TAKEN, {"fetch": [{"failed": True, "msg": "no space"}]}),
        (TAKEN, {"fetch": [AnsibleConnectionFailure("no route")]}),
        (TAKEN, {"fetch": [OSError(28, "No space left on device")]}),
    ],
)
def test_whatever_fails_the_host_is_asked_for_the_removal(harness, archiving, tmp_path, taken, answers):
    tolerated = archiving({"fetch_to": str(tmp_path), "needed": False}, taken, **answers)
    assert not tolerated["failed"] and tolerated["msg"] and "archive" not in tolerated
    assert not harness.events("failed"), "what is not needed fails no run"
    done = archiving({"fetch_to": str(tmp_path)}, taken, **answers)
    assert done["failed"] and "archive" not in done and done["msg"]
    assert [name for name, _args in harness.called].count("ansible.builtin.file") == 2


def test_after_the_leaders_failure_the_others_archives_are_removed(harness, archiving, tmp_path):
    archiving({"fetch_to": str(tmp_path)}, AnsibleConnectionFailure("no route"))
    assert archiving({"fetch_to": str(tmp_path)})["failed"], "nothing is archived after a failure"
    given = {"fetch_to": str(tmp_path), "begun": JOB, "needed": False}
    done = archiving(given, async_status=[{**TAKEN, "finished": 1}])
    assert not done.get("failed") and harness.called[-1][0] == "ansible.builtin.file"


def test_the_leader_that_is_lost_closes_the_gate(archiving, tmp_path):
    done = archiving({"fetch_to": str(tmp_path)}, AnsibleConnectionFailure("no route"))
    assert "gate g stays closed" in done["msg"] and "no route" in done["msg"] and "ssh b1" in done["msg"]


def test_what_another_task_began_is_waited_for(harness, archiving, tmp_path):
    running, ended = {"finished": 0}, {**TAKEN, "finished": 1}
    lost = {"failed": True, "finished": 0, "msg": "could not find job"}
    done = archiving({"fetch_to": str(tmp_path), "begun": JOB}, async_status=[running, lost, running, ended, {}])
    assert done["archive"] and done["end_offset"] == 7
    assert harness.called[4] == ("async_status", {"jid": "j1", "mode": "cleanup"})


def test_a_job_that_its_host_does_not_know_is_not_waited_for(archiving, tmp_path):
    given = {"fetch_to": str(tmp_path), "begun": JOB, "needed": False}
    done = archiving(given, async_status=[{"failed": True, "finished": 0, "msg": "could not find job"}])
    assert done["msg"] == "could not find job" and "archive" not in done


def test_a_host_that_began_nothing(harness, archiving, tmp_path):
    begun = {"unreachable_host": True, "msg": "no route"}
    done = archiving({"fetch_to": str(tmp_path), "begun": begun, "needed": False})
    assert (done["unreachable_host"], done["msg"]) == (True, "no route")
    assert [name for name, _args in harness.called] == ["ansible.builtin.file"]


def test_an_archive_that_its_host_has_lost_is_named_with_its_path(archiving, tmp_path):
    done = archiving({"fetch_to": str(tmp_path)}, TAKEN, fetch=[{"failed": True, "msg": "the file does not exist"}])
    assert (
        f"{TAKEN['path']} on " in done["msg"] and "was not fetched: the file does not exist. Run again" in done["msg"]
    )
