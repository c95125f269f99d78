# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run as it begins: steps ahead, run lock, refusals, plan, artifacts. Its lock is closed however it went."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import lost_logs, phase
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import process_identity

from tests.unit.action.states import of_facts, state, with_backups
from tests.unit.core.lost_log import lost_log

PLAN = {"steps": [], "unavoidable": {}}
DECIDED = {"number": 4, "hosts": ["b1", "c1"], "direction": "forward", "target": None, "excluded": []}


@pytest.mark.parametrize("check_mode", [False, True])
def test_a_call_that_keeps_nothing_still_names_the_run(fresh, check_mode):
    fresh.check_mode = check_mode
    result = fresh.run("run", {"state": "begun", "record": check_mode}, state("zk"))
    assert result["ansible_facts"]["quorumshift_session"]["run"]
    kept = [path.name for path in Path(fresh.variables["quorumshift_artifacts_dir"]).glob("*/*/facts-*")]
    assert kept == []


def test_the_first_call_names_the_run_and_keeps_the_facts(fresh):
    result = fresh.run("run", {"state": "begun", "direction": "forward"}, state("zk"))
    session = result["ansible_facts"]["quorumshift_session"]
    assert session["phase"] == "zk" and session["run"] and session["run_lock"]["number"] == 1
    assert result["ahead"][0] == "backup" and result["idle"] is False
    assert (
        fresh.printed[0].startswith("    cluster ") and "phase zk; next: bring up the controllers" in fresh.printed[0]
    )


def test_the_plan_of_an_unknown_phase_fails_with_its_reasons(fresh):
    block = [{"id": "unknown", "text": "no node was reached", "do": "check SSH"}]
    asked = {"state": "begun", "plan": "alone"}
    result = fresh.run("run", asked, state("zk", phase="unknown", blocks=block, plan={}))
    assert result["failed"] and "The phase is unknown: no node was reached" in result["msg"]


def test_check_mode_locks_nothing_and_lists_what_is_due(fresh):
    fresh.check_mode = True
    result = fresh.run("run", {"state": "begun", "direction": "forward"}, state("zk"))
    assert "run_lock" not in result["ansible_facts"]["quorumshift_session"]
    assert result["ahead"] == ["backup", "before_controllers", "controller"] and fresh.events() == []


def test_a_run_without_a_direction_locks_nothing(fresh):
    assert "run_lock" not in fresh.run("run", {"state": "begun"}, state("zk"))["ansible_facts"]["quorumshift_session"]


def test_dual_write_without_the_token_is_idle(fresh):
    assert fresh.run("run", {"state": "begun", "direction": "forward"}, state("dual_write"))["idle"]
    fresh.variables["quorumshift_finalize_token"] = "x"
    assert not fresh.run("run", {"state": "begun", "direction": "forward"}, state("dual_write"))["idle"]


FORWARD = {"state": "begun", "direction": "forward"}


def test_a_controller_is_formatted_by_the_token_of_its_loss_alone(fresh):
    facts = lost_log()
    token = lost_logs.make_token(facts["nodes"], ["c2"], phase.cluster_id(facts))
    result = fresh.run("run", FORWARD, of_facts(facts))
    assert result["to_format"] == [] and "c2" not in result["unfinished"] and result["idle"]
    fresh.session = {}
    fresh.variables["quorumshift_format_token"] = token
    result = fresh.run("run", FORWARD, of_facts(lost_log()))
    assert result["to_format"] == ["c2"] and result["unfinished"] == ["c2"] and not result["idle"]
    fresh.session = {}
    fresh.variables["quorumshift_format_token"] = token[:-1] + "g"
    result = fresh.run("run", FORWARD, of_facts(lost_log()))
    assert result["failed"] and "the controllers that lost their log are c2" in result["msg"], result["msg"]
    assert "Nothing was changed" in result["msg"]


def test_the_accepted_token_holds_to_the_end_of_its_run_and_for_its_repetition(fresh):
    facts = lost_log()
    fresh.variables["quorumshift_format_token"] = lost_logs.make_token(facts["nodes"], ["c2"], phase.cluster_id(facts))
    begun = fresh.run("run", FORWARD, of_facts(facts))
    fresh.session = begun["ansible_facts"]["quorumshift_session"]
    locked = lost_log()  # the run's own lock, by which the token would be another one
    lock = {"number": 99, "run": fresh.session["run"], "closed": False, "direction": "forward"}
    locked["nodes"]["b1"]["run_locks"] = {phase.cluster_id(facts): lock}
    assert fresh.run("run", FORWARD, of_facts(locked))["to_format"] == ["c2"]
    up = fresh.run("run", FORWARD, state("dual_write"))
    assert up["to_format"] == [] and up["unfinished"] == []
    fresh.session = {}
    assert fresh.run("run", FORWARD, state("dual_write"))["to_format"] == []


def test_check_mode_asks_no_gate_while_a_node_is_still_to_be_started(fresh):
    fresh.check_mode = True
    facts = lost_log()
    fresh.variables["quorumshift_format_token"] = lost_logs.make_token(facts["nodes"], ["c2"], phase.cluster_id(facts))
    fresh.variables["quorumshift_finalize_token"] = "x"
    result = fresh.run("run", FORWARD, of_facts(facts))
    assert result["ahead"] == [] and any("first c2 is formatted and started" in line for line in fresh.printed)
    fresh.session = {}
    del fresh.variables["quorumshift_format_token"]
    result = fresh.run("run", FORWARD, state("dual_write_one_controller_down", unfinished=["c2"]))
    assert result["ahead"] == [] and any("check mode: first c2 is started" in line for line in fresh.printed)


def test_backups_are_removed_only_once_finalized(fresh):
    fresh.variables["quorumshift_remove_backups"] = True
    for name in ("zk", "hybrid", "dual_write"):
        result = fresh.run("run", {"state": "begun", "direction": "forward"}, with_backups(name)[1])
        assert result["failed"] and f"the phase is {name}" in result["msg"] and "Nothing was changed" in result["msg"]
        fresh.session = {}
    host, given = with_backups("finalized")
    result = fresh.run("run", {"state": "begun", "direction": "forward"}, given)
    assert "failed" not in result and not result["idle"] and list(result["backups"]) == [host]
    assert "run_lock" in result["ansible_facts"]["quorumshift_session"]


def test_a_run_without_backups_to_remove_is_idle(fresh):
    fresh.variables["quorumshift_remove_backups"] = True
    assert fresh.run("run", {"state": "begun", "direction": "forward"}, state("finalized"))["idle"]


def test_a_phase_from_which_no_migration_goes_on_fails_a_run_forward(fresh):
    unknown = state("zk", phase="unknown", blocks=[{"id": "unknown", "text": "it contradicts", "do": "read it"}])
    result = fresh.run("run", {"state": "begun", "direction": "forward"}, unknown)
    assert result["failed"] and result["msg"] == (
        "The phase is unknown: it contradicts. Read it. Nothing was changed. (QS-PHASE-001)"
    )
    assert "failed" not in fresh.run("run", {"state": "begun"}, unknown)


def test_an_unfinished_restart_is_finished_whatever_the_phase(fresh):
    unknown = state("zk", phase="unknown", unfinished=["b1"])
    result = fresh.run("run", {"state": "begun", "direction": "forward"}, unknown)
    assert "failed" not in result and result["idle"] is False


def test_another_runs_open_lock_fails_the_run(fresh):
    given = state("zk")
    lock = {"number": 1, "run": "r9", "closed": False, "direction": "forward", "user": "op", "host": "h", "since": 1.0}
    for node in given["facts"]["nodes"].values():
        node["run_locks"] = {given["cluster_id"]: lock}
    result = fresh.run("run", {"state": "begun", "direction": "forward"}, given)
    assert result["failed"] and "r9" in result["msg"] and "quorumshift_force_unlock=r9" in result["msg"]


@pytest.mark.parametrize("name", ["zk", "hybrid", "dual_write", "finalized", "kraft_native"])
def test_a_reassignment_begins_only_outside_of_a_migration(fresh, name):
    fresh.variables["reassign_apply"] = "true"
    result = fresh.run("run", {"state": "begun", "direction": "reassign"}, state(name))
    if name in ("hybrid", "dual_write"):
        assert result["failed"] and "A reassignment needs one of" in result["msg"]
    else:
        session = result["ansible_facts"]["quorumshift_session"]
        assert session["run_lock"]["direction"] == "reassign" and not result["idle"]
    fresh.variables.update(reassign_apply=False, reassign_cancel="yes")
    assert "failed" not in fresh.run("run", {"state": "begun", "direction": "reassign"}, state(name))


@pytest.mark.parametrize("name", ["zk", "hybrid", "dual_write", "finalized"])
def test_a_change_of_features_begins_only_outside_of_a_migration(fresh, name):
    fresh.variables["features_apply"] = "true"
    result = fresh.run("run", {"state": "begun", "direction": "features"}, state(name))
    if name in ("hybrid", "dual_write"):
        assert result["failed"] and "A change of features needs one of" in result["msg"]
    else:
        session = result["ansible_facts"]["quorumshift_session"]
        assert session["run_lock"]["direction"] == "features" and not result["idle"]
    unfinished = fresh.run("run", {"state": "begun", "direction": "features"}, state("finalized", unfinished=["b1"]))
    assert unfinished["failed"] and "a restart is unfinished" in unfinished["msg"]


@pytest.mark.parametrize("name", ["zk", "hybrid", "dual_write", "finalized"])
def test_features_are_shown_in_each_phase_and_lock_nothing(fresh, name):
    result = fresh.run("run", {"state": "begun", "direction": "features"}, state(name, unfinished=["b1"]))
    assert "failed" not in result, result
    assert result["idle"] and "run_lock" not in result["ansible_facts"]["quorumshift_session"]


def test_a_reassignment_that_only_plans_locks_nothing(fresh):
    result = fresh.run("run", {"state": "begun", "direction": "reassign"}, state("finalized"))
    assert "run_lock" not in result["ansible_facts"]["quorumshift_session"] and result["idle"]


def test_a_reassignment_does_not_begin_beside_an_unfinished_restart(fresh):
    fresh.variables["reassign_apply"] = True
    result = fresh.run("run", {"state": "begun", "direction": "reassign"}, state("finalized", unfinished=["b1"]))
    assert result["failed"] and "b1" in result["msg"] and "quorumshift.kafka.restart" in result["msg"]


def test_a_reassignment_says_how_to_leave_out_a_dead_host(fresh):
    fresh.variables["reassign_apply"] = True
    given = state("finalized")
    given["facts"]["nodes"]["b1"].update(reached=False, error="it is unreachable")
    result = fresh.run("run", {"state": "begun", "direction": "reassign"}, given)
    assert result["failed"] and "-e quorumshift_exclude_hosts=HOST" in result["msg"]


def test_a_rollback_needs_its_target(fresh):
    result = fresh.run("run", {"state": "begun", "direction": "back"}, state("dual_write"))
    assert result["failed"] and "quorumshift_rollback_to" in result["msg"]
    fresh.variables["quorumshift_rollback_to"] = "zk"
    result = fresh.run("run", {"state": "begun", "direction": "back"}, state("dual_write"))
    assert "failed" not in result and result["ahead"][:2] == ["before_revert", "hybrid"]
    assert result["ansible_facts"]["quorumshift_session"]["run_lock"]["target"] == "zk"


def test_a_run_goes_on_without_a_plan(fresh):
    result = fresh.run(
        "run", {"state": "begun", "direction": "forward", "plan": "run"}, state("zk", plan_error="no answer")
    )
    assert "failed" not in result and "    no plan: no answer" in fresh.printed
    assert fresh.asked[0]["plan_to"] == ""


def test_a_playbook_that_only_plans_fails_without_a_plan(fresh):
    result = fresh.run("run", {"state": "begun", "plan": "alone"}, state("zk", plan_error="no answer"))
    assert result["failed"] and result["msg"] == "no answer. Nothing was changed. (QS-HOST-001)"


def test_a_plan_is_printed_and_kept(fresh):
    result = fresh.run("run", {"state": "begun", "plan": "alone"}, state("zk", plan=PLAN))
    assert result["plan"] == PLAN and any(line.startswith("Plan for cluster") for line in fresh.printed)
    fresh.printed.clear()
    assert "plan" not in fresh.run("run", {"state": "begun"}, state("zk"))


@pytest.mark.parametrize("direction", ["forward", "back", "restore", "reassign"])
def test_a_run_with_another_clusters_zookeeper_is_refused_in_every_direction(fresh, direction):
    """Also in the phase of a rollback that goes on, whose controllers are masked."""
    given = state("reverting_controllers_down")
    given["facts"]["zookeeper"]["cluster_id"]["value"] = given["cluster_id"] = "another"
    fresh.variables["quorumshift_rollback_to"] = "zk"
    result = fresh.run("run", {"state": "begun", "direction": direction}, given)
    assert result["failed"] and "the cluster ids differ: another in /cluster/id in ZooKeeper at" in result["msg"]


def test_the_first_cluster_id_of_a_run_counts_to_its_end(fresh):
    first = state("hybrid")
    session = fresh.run("run", {"state": "begun"}, first)["ansible_facts"]["quorumshift_session"]
    fresh.session = session
    other = state("hybrid")
    other["facts"]["nodes"], other["cluster_id"] = {}, "another"
    other["facts"]["zookeeper"]["cluster_id"]["value"] = "another"
    result = fresh.run("run", {"state": "begun", "direction": "back"}, other)
    assert result["failed"] and f"this run is of {first['cluster_id']}" in result["msg"]


def test_a_text_that_is_no_cluster_id_ends_the_run_before_a_path_is_made_of_it(fresh):
    given = state("zk")
    given["cluster_id"] = "../../etc"
    given["facts"]["zookeeper"]["cluster_id"]["value"] = "../../etc"
    result = fresh.run("run", {"state": "begun"}, given)
    assert result["failed"] and "'../../etc', which is no cluster id of Kafka" in result["msg"]


@pytest.fixture
def locked(harness):
    harness.session["run_lock"] = DECIDED
    return harness


def test_the_arbiter_alone_compares_the_lock_that_was_read(locked):
    earlier = {"number": 3, "run": "r0"}
    for host in DECIDED["hosts"]:
        locked.facts(host, quorumshift_node={"run_locks": {"cluster-1": earlier}})
        locked.run("run", {"state": "locked"}, {"done": True}, host=host)
    arbiter, other = locked.asked
    assert arbiter["seen"] == earlier and "seen" not in other
    assert (arbiter["run_lock"]["number"], arbiter["run_lock"]["run"]) == (4, locked.session["run"])
    assert arbiter["run_lock"]["closed"] is False and arbiter["run_lock"]["process"]


def test_a_run_that_failed_asks_no_more_whether_it_holds_the_lock(locked):
    assert "failed" not in locked.run("run", {"state": "held"}, {"done": True}, delegate_to="b1")
    locked.artifacts.note("event", "failed", host="b2", task="Restart the broker", reason="no disk")
    assert locked.run("run", {"state": "held"}, {"done": True}, delegate_to="b1")["failed"]
    assert len(locked.asked) == 1


@pytest.mark.parametrize("host", DECIDED["hosts"])
def test_the_outcome_is_the_journals_on_every_host(locked, host):
    locked.artifacts.note("event", "failed", host="b2", task="Restart the broker", reason="no disk")
    assert "failed" not in locked.run("run", {"state": "closed"}, {"done": True}, delegate_to=host)
    assert locked.asked[0]["how"] == "Restart the broker" and locked.events("ended") == []


def test_a_step_without_an_end_is_the_outcome(locked):
    locked.artifacts.note("event", "step begun", step="Restart the brokers", hosts=["b1", "b2"])
    locked.run("run", {"state": "closed"}, {"done": True}, host="b1")
    assert locked.asked[0]["how"] == "Restart the brokers"


def test_a_run_whose_journal_is_gone_has_not_ended_well(locked):
    os.unlink(locked.artifacts.journal)
    locked.run("run", {"state": "closed"}, {"done": True}, host="b1")
    assert locked.asked[0]["how"] == "the journal" and locked.events("ended") == []


def test_a_rescue_closes_no_lock_as_if_the_run_had_ended_well(locked):
    """A full disk of the control node: neither the begin of the step nor its failure is in the journal."""
    locked.run("run", {"state": "closed", "how": "Begin the step"}, {"done": True}, host="b1")
    assert locked.asked[0]["how"] == "Begin the step" and locked.events("ended") == []


def test_a_run_that_ended_well_says_so_once(locked):
    for host in DECIDED["hosts"]:
        assert "failed" not in locked.run("run", {"state": "closed"}, {"done": True}, host=host)
    assert [asked["how"] for asked in locked.asked] == ["ok", "ok"]
    assert len(locked.events("ended")) == 1  # of the arbiter: the hosts close their locks at once


def test_a_lock_is_closed_also_where_a_part_of_a_run_is_rejected(locked):
    locked.cliargs({"subset": "b1"})
    locked.run("run", {"state": "closed"}, {"done": True})
    assert locked.asked[0]["state"] == "closed"


@pytest.mark.parametrize(
    ("playbook", "typed", "given"),
    [
        ("restart", {}, {}),  # not restart_since: a host's clock may be ahead of this one
        ("restart", {"restart_since": 5, "restart_roles": "broker"}, {"restart_since": "5", "restart_roles": "broker"}),
        ("upgrade", {"upgrade_to": "3.9.2", "quorumshift_verify": False}, {"upgrade_to": "3.9.2"}),
    ],
)
def test_the_lock_keeps_what_repeats_the_run(locked, monkeypatch, playbook, typed, given):
    monkeypatch.setattr(process_identity, "find_typed", lambda: typed)
    locked.cliargs({"args": (f"playbooks/{playbook}.yml",)})
    locked.run("run", {"state": "locked"}, {"done": True}, host="b1")
    lock = locked.asked[0]["run_lock"]
    assert (lock["playbook"], lock["given"]) == (playbook, given)


def test_a_restart_that_outlived_its_run_is_journalled_where_the_next_run_begins(fresh):
    """Nothing is restarted on that host any more, so no other task would journal it."""
    given = state("brokers_joining_1")
    (host, *_others) = sorted(given["facts"]["nodes"])
    times = {"steps": [{"name": "begun", "at": 1000.0}], "ended_at": 1006.0, "times": {"registered_at": 1005.5}}
    restart = {"id": f"r0/zk_migration/{host}", "kind": "zk_migration", "outcome": "done", **times}
    for node in given["facts"]["nodes"].values():
        node["node_restart"] = None
    given["facts"]["nodes"][host]["node_restart"] = restart
    root = Path(fresh.variables["quorumshift_artifacts_dir"], given["cluster_id"])

    def journalled():
        fresh.run("run", {"state": "begun", "direction": "forward"}, given)
        events = [json.loads(line) for path in root.glob("*/journal.jsonl") for line in path.read_text().splitlines()]
        return [event for event in events if event["kind"] == "restart"]

    assert journalled() == []  # a run of another control node
    (root / "r0").mkdir()
    restart["id"] = "r0/zk_migration/elsewhere"
    assert journalled() == []  # a record of another host
    restart["id"] = f"r0/zk_migration/{host}"
    journalled()
    (event,) = journalled()
    assert (event["host"], event["t"], event["end"], event["restart_s"]) == (host, 1000.0, 1005.5, 6.0)


def test_a_run_leaves_its_state_to_job_templates(fresh):
    result = fresh.run("run", {"state": "begun", "direction": "forward", "deferred": True}, state("zk"))
    job = result["ansible_stats"]["data"]["quorumshift_job"]
    assert job["phase"] == "zk" and job["run"] == result["ansible_facts"]["quorumshift_session"]["run"]
    assert job["next"]["playbook"] == "migrate" and "refused" not in result


def test_a_refused_run_leaves_its_state_and_fails_in_the_next_task(fresh):
    """Ansible keeps no stats of a task that fails."""
    failed = fresh.run("run", {"state": "begun", "direction": "forward"}, state("kraft_native"))
    assert failed["failed"] and "ansible_stats" not in failed
    fresh.session = {}
    refused = fresh.run("run", {"state": "begun", "direction": "forward", "deferred": True}, state("kraft_native"))
    assert not refused.get("failed") and refused["refused"] == failed["msg"]
    assert refused["ansible_stats"]["data"]["quorumshift_job"]["phase"] == "kraft_native"
    assert "ansible_facts" not in refused  # no run has begun


def test_the_task_after_a_deferred_refusal_fails_with_its_reason(fresh):
    result = fresh.run("run", {"state": "refused", "reason": "Phase zk. Nothing was changed. (QS-RUN-001)"})
    assert result["failed"] and result["msg"] == "Phase zk. Nothing was changed. (QS-RUN-001)"
