# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A step journals its begin and its end; what ends the run is said once, with host, cause and the next command."""

from __future__ import annotations

import os

import pytest
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.run_artifacts import RunArtifacts

from tests.unit.action.test_base import full_disk

STEP = "Restart the brokers"


def step(harness, state, batch=("b1", "b2"), host="b1", **args):
    play = {"step_name": STEP, "ansible_play_batch": list(batch)}
    return harness.run("run_step", {"state": state, **args}, host=host, variables=play)


def test_a_step_ends_with_all_its_hosts(harness):
    step(harness, "begun")
    assert "failed" not in step(harness, "ended")
    assert "failed" not in step(harness, "over")


@pytest.mark.parametrize(("number", "run", "begins"), [(4, "own", True), (3, "r0", True), (5, "r1", False)])
def test_a_step_of_the_control_node_does_not_begin_once_another_run_took_the_lock(harness, number, run, begins):
    lock = {"number": number, "run": harness.session["run"] if run == "own" else run, "direction": "back"}
    lock.update(user="ops", host="control-2", since=1_790_000_000, closed=False)
    harness.session["run_lock"] = {"number": 4, "hosts": ["b1", "b2"]}
    harness.facts("b1", quorumshift_node={})
    harness.facts("b2", quorumshift_node={"run_locks": {harness.session["cluster_id"]: lock}})
    result = step(harness, "begun", ["localhost"], "localhost")
    assert (not result.get("failed"), bool(harness.events("step begun"))) == (begins, begins)
    assert begins or "run r1 (back) of ops on control-2" in result["msg"]


def test_a_step_that_lost_a_host_does_not_end(harness):
    step(harness, "begun")
    result = step(harness, "ended", ["b2"], "b2")
    assert result["failed"] and result["msg"].startswith("b1 was lost in this step")
    assert harness.events("step ended") == []


def test_a_rescue_journals_the_hosts_that_were_lost(harness):
    step(harness, "begun")
    step(harness, "failed", ["b2"], "b2")
    step(harness, "lost", ["b2"], "b2", answered=["b2"])
    result = step(harness, "over", ["b2"], "b2")
    assert result["msg"].startswith(f'The run ended at "{STEP}" on b1: the host became unreachable')


def test_a_host_that_another_host_took_to_the_rescue_is_not_lost(harness):
    """Ansible removes each host of a batch with any_errors_fatal from ansible_play_batch, but the one that failed."""
    step(harness, "begun")
    harness.artifacts.note("event", "failed", host="b1", task="Restart the broker", reason="no disk")
    step(harness, "failed", ["b1"], "b1", stopped_at="Restart the broker", reason="no disk")
    step(harness, "failed", ["b1"], "b2")
    step(harness, "lost", ["b1"], "b1", answered=["b1", "b2"])
    assert [event["host"] for event in harness.events("failed")] == ["b1"]


def test_a_rescue_journals_what_a_module_of_ansible_failed_at(harness):
    step(harness, "begun")
    step(harness, "failed", host="b1")  # the first host of the rescue has no failure of its own
    step(harness, "failed", host="b2", stopped_at="Copy the file", reason="no space")
    result = step(harness, "over")
    assert result["msg"].startswith('The run ended at "Copy the file" on b2: no space. ')


@pytest.mark.parametrize("state", ["failed", "lost", "advised"])
def test_a_rescue_goes_on_where_the_journal_cannot_be_written(harness, monkeypatch, state):
    """It awaits what was begun, closes the locks and removes credentials. The step has no end in the journal."""
    step(harness, "begun")
    with monkeypatch.context() as patch:
        patch.setattr(RunArtifacts, "note", full_disk)
        result = step(harness, state, answered=[], stopped_at="Copy the file", reason="no space", next_step="x")
    assert "failed" not in result and any(
        "was not written: journal.jsonl: No space" in line for line in harness.printed
    )
    assert step(harness, "over")["failed"]


@pytest.mark.parametrize("state", ["begun", "ended"])
def test_a_step_does_not_go_on_where_the_journal_cannot_be_written(harness, monkeypatch, state):
    step(harness, "begun")
    monkeypatch.setattr(RunArtifacts, "note", full_disk)
    assert step(harness, state)["failed"]


@pytest.mark.parametrize("left", ["", "step begun"])
def test_a_journal_that_is_gone_is_no_good_end(harness, left):
    os.unlink(harness.artifacts.journal)
    if left:
        step(harness, "begun", host="b2")
    assert "no begin of this run" in step(harness, "over")["msg"]


def test_a_failure_that_its_action_journaled_is_journaled_once(harness):
    step(harness, "begun")
    harness.artifacts.note("event", "failed", host="b1", task="Restart the broker", reason="no disk")
    step(harness, "failed", stopped_at="Restart the broker", reason="other words")
    assert len(harness.events("failed")) == 1


def test_a_refusal_after_a_step_without_an_end_is_no_news(harness):
    step(harness, "begun")
    play = {"step_name": "Check the brokers", "ansible_play_batch": ["b3"]}
    refused = harness.run("run_step", {"state": "begun"}, host="b3", variables=play)["msg"]
    failed = {"state": "failed", "stopped_at": "Begin the step", "reason": refused}
    harness.run("run_step", failed, host="b3", variables=play)
    result = harness.run("run_step", {"state": "over"}, host="b3", variables=play)
    assert result["msg"].startswith(
        f'The run ended at "{STEP}" on b1, b2: the step did not end on b1, b2. The cause is'
    )


@pytest.mark.parametrize(
    ("direction", "says"), [("forward", "quorumshift.kafka.status"), ("restart", "run the same playbook again")]
)
def test_the_next_command_leads_on(harness, direction, says):
    harness.session["run_lock"] = {"direction": direction}
    step(harness, "begun")
    assert says in step(harness, "over")["msg"]


def test_a_step_does_not_begin_after_one_that_did_not_end(harness):
    step(harness, "begun")
    play = {"step_name": "Check the brokers", "ansible_play_batch": ["localhost"]}
    result = harness.run("run_step", {"state": "begun"}, variables=play)
    assert result["failed"] and f'The run ended at "{STEP}" on b1, b2' in result["msg"]


def test_the_second_batch_does_not_begin_after_a_first_one_that_lost_a_host(harness):
    step(harness, "begun", ["b1"])
    result = step(harness, "begun", ["b2"], "b2")
    assert result["failed"] and f'The run ended at "{STEP}" on b1' in result["msg"]


def test_check_mode_journals_nothing(harness):
    harness.check_mode = True
    step(harness, "begun")
    step(harness, "over")
    assert harness.events() == []


def test_the_end_says_what_the_failed_step_told_to_do(harness):
    harness.session["run_lock"] = {"direction": "restart"}
    step(harness, "begun")
    step(harness, "advised", next_step="Run quorumshift.kafka.zk_rollback.")
    said = step(harness, "over")["msg"]
    assert "Run quorumshift.kafka.zk_rollback. Report:" in said and "same playbook" not in said
