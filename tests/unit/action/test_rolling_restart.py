# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A batch is compared with the plan before the probe host is asked; plans and admissions are journalled."""

from __future__ import annotations

import json

import pytest

PLAN = {
    "batches": [["b1"], ["b2"]],
    "done": ["b3"],
    "reasons": {"b1": "canary: chosen"},
    "unavoidable": {},
    "kind": "kraft",
}
ADMIT = {"state": "admitted", "kind": "kraft", "plan": PLAN}
ADMITTED = {"phase": "hybrid", "waited_s": 4.0, "gate_token": {}}


def test_a_batch_that_is_not_the_plans_is_rejected(harness):
    result = harness.run("rolling_restart", {**ADMIT, "batch": ["b3"]}, ADMITTED)
    assert result["failed"] and "this batch is b3, the plan is b1 | b2" in result["msg"] and harness.asked == []


def test_a_batch_of_two_controllers_is_rejected(harness):
    plan = {**PLAN, "batches": [["c1"], ["c2"]]}
    args = {"state": "admitted", "kind": "controller_final", "plan": plan, "batch": ["c1", "c2"]}
    result = harness.run("rolling_restart", args, ADMITTED)
    assert result["failed"] and "a batch is one host, this one is c1, c2" in result["msg"] and harness.asked == []


def test_a_node_that_is_only_started_is_shown_with_the_others_that_do_not_answer(harness):
    started = {**ADMITTED, "only_start": True, "unresponsive": ["b2 does not answer: refused"]}
    harness.run("rolling_restart", {**ADMIT, "batch": ["b1"]}, started)
    assert harness.printed == [
        "    b1 is down, as its host says: it is started, and nothing is stopped",
        "    b2 does not answer: refused",
    ]


def test_no_node_is_stopped_after_a_host_became_unreachable(harness):
    hosts = {"play_hosts_all": ["b1", "b2"], "play_hosts": ["b2"]}
    result = harness.run("rolling_restart", {**ADMIT, "batch": ["b2"]}, ADMITTED, host="b2", **hosts)
    assert result["failed"] and result["msg"].startswith("b1 failed or became unreachable") and harness.asked == []


def test_an_admission_is_journalled(harness):
    harness.run("rolling_restart", {**ADMIT, "batch": ["b1"]}, ADMITTED)
    (event,) = harness.events("admitted")
    assert (event["restart_kind"], event["hosts"], event["waited_s"]) == ("kraft", ["b1"], 4.0)


def test_a_batch_that_waits_for_another_leader_is_not_admitted_yet(harness):
    first = {"host": "b2", "broker": 2, "out": ["b1"], "partitions": ["t-0"], "alone": [], "under": []}
    harness.run("rolling_restart", {**ADMIT, "batch": ["b1"]}, {**ADMITTED, "first": first})
    assert harness.events("admitted") == [] and harness.events("restarted first")[0]["host"] == "b2"


def test_a_plan_is_shown_and_kept(harness):
    harness.run("rolling_restart", {"state": "planned", "kind": "kraft"}, {"plan": PLAN})
    assert harness.printed == ["    kraft: b1 (canary: chosen), then b2", "    kraft already: b3"]
    assert json.loads(harness.artifacts.read("plan-kraft.json")) == PLAN


def test_a_roll_that_differs_from_the_runs_plan_says_why(harness):
    step = {"kind": "roll", "name": "kraft", "text": "", "batches": [["b2"], ["b1"]], "reasons": {}, "back": "zk"}
    harness.artifacts.save("plan.json", json.dumps({"steps": [step]}))
    harness.run("rolling_restart", {"state": "planned", "kind": "kraft"}, {"plan": PLAN})
    assert harness.asked[0]["planned"] == ["b2", "b1"]
    assert any(line.startswith("    differs from the plan (b2, then b1): ") for line in harness.printed)
    assert harness.events("otherwise than planned")[0]["planned"] == ["b2", "b1"]


def test_a_controller_that_is_restarted_in_the_leaders_batch_is_shown_and_journalled(harness):
    plan = {**PLAN, "batches": [["c1"], ["c2"]], "kind": "controller_final"}
    args = {"state": "admitted", "kind": "controller_final", "plan": plan, "batch": ["c1"]}
    harness.run("rolling_restart", args, {**ADMITTED, "needed": True, "first": {"host": "c2", "waits": "c1"}})
    assert harness.printed == [
        "    c1 leads the quorum now and is restarted after the others: c2 is restarted before it"
    ]
    assert harness.events("admitted")[0]["hosts"] == ["c2"]


def test_a_controller_that_needs_no_restart_is_not_journalled(harness):
    plan = {**PLAN, "batches": [["c1"], ["c2"]], "kind": "controller_final"}
    args = {"state": "admitted", "kind": "controller_final", "plan": plan, "batch": ["c2"]}
    assert not harness.run("rolling_restart", args, {"phase": "finalized", "needed": False}).get("failed")
    assert harness.events() == []


def test_batches_are_shown_with_reasons_and_the_place_of_what_is_not_listed(harness):
    lost = {f"t-{number}": "replication factor 1" for number in range(7)}
    brokers = {"batches": [["b1", "b2"], ["b3"]], "done": [], "reasons": {"b3": "alone: why"}, "unavoidable": lost}
    controllers = {"batches": [["c2"], ["c1"]], "done": [], "reasons": {}, "unavoidable": {}}
    harness.run("rolling_restart", {"state": "batches"}, {"brokers": brokers, "controllers": controllers})
    assert harness.printed[0] == "    restart of brokers: b1 + b2, then b3 (alone: why)"
    assert harness.printed[-2:] == [
        "    and 2 more, all in brokers.unavoidable of the result",
        "    restart of controllers: c2, then c1",
    ]


TOGETHER = {**PLAN, "batches": [["b1"], ["b2", "b3"]], "done": [], "kind": "restart_broker"}
PLAIN = {"state": "admitted", "kind": "restart_broker", "plan": TOGETHER}


@pytest.mark.parametrize("kind", ["restart_broker", "kraft"])
def test_a_batch_of_brokers_may_have_several_hosts(harness, kind):
    harness.run("rolling_restart", {**PLAIN, "kind": kind, "batch": ["b2", "b3"]}, ADMITTED)
    assert harness.events("admitted")[0]["hosts"] == ["b2", "b3"]


def test_hosts_whose_token_expired_are_admitted_again_without_the_rest_of_their_batch(harness):
    harness.run("rolling_restart", {**PLAIN, "batch": ["b3"]}, ADMITTED)
    assert harness.events("admitted")[0]["hosts"] == ["b3"]


def test_hosts_of_two_batches_are_rejected(harness):
    result = harness.run("rolling_restart", {**PLAIN, "batch": ["b1", "b2"]}, ADMITTED)
    assert result["failed"] and "this batch is b1, b2, the plan is b1 | b2, b3" in result["msg"] and harness.asked == []


def test_partitions_that_cannot_stay_available_need_a_token_before_the_first_restart(harness):
    answer = {"plan": TOGETHER, "unaccepted": "no order of restarts keeps 1 partitions (QS-RESTART-003)", "since": 1}
    result = harness.run("rolling_restart", {"state": "planned", "kind": "restart_broker"}, answer)
    assert result["failed"] and result["msg"].endswith("Nothing was changed. (QS-RESTART-003)")


def test_check_mode_journals_nothing(harness):
    """A run that changes nothing would be among the cluster's runs, without a begin."""
    harness.check_mode = True
    harness.run("rolling_restart", {**ADMIT, "batch": ["b1"]}, ADMITTED)
    assert harness.events() == []
