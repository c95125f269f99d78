# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""partition_reassignment: slices begin nothing twice, and what a run moves is journaled."""

from __future__ import annotations

import pytest

PARTITIONS = [{"topic": "t", "partition": 0, "replicas": [1, 2]}]
RESULT = {"results": [{"topic": "t", "partition": 0}], "gone": [], "throttles_left": []}
SLICES = [
    {**RESULT, "changed": True, "done": False, "text": "1 partitions left", "carry": {"began": 1}, "undo": {"of": 1}},
    {**RESULT, "changed": True, "done": False, "text": "still 1 left", "carry": {"began": 1, "left": 1}},
    {**RESULT, "results": [], "changed": True, "done": True, "waited_s": 9.5},
]


@pytest.fixture(params=[True, False], ids=["in a run", "alone"])
def of_run(harness, request):
    harness.session = {**harness.session, "run_lock": {"number": 1}} if request.param else {}
    return request.param


def test_only_the_first_slice_begins_and_the_others_carry_on(harness, of_run):
    result = harness.run("partition_reassignment", {"partitions": PARTITIONS, "throttle_bytes_s": 7}, *SLICES)
    assert [call.get("state", "present") for call in harness.asked] == ["present", "awaited", "awaited"]
    assert [call.get("carry") for call in harness.asked] == [None, {"began": 1}, {"began": 1, "left": 1}]
    assert all(call["wait_s"] > 0 for call in harness.asked)
    assert result["changed"] and result["results"] == RESULT["results"] and result["undo"] == {"of": 1}
    assert "still 1 left" in harness.printed[-1]
    assert [event["name"] for event in harness.events()] == (["reassigning", "reassigned"] if of_run else [])


def test_slices_send_until_nothing_is_queued_and_then_only_wait(harness):
    parts = [{**SLICES[0], "carry": {"queued": 3}}, {**SLICES[1], "carry": {"queued": 1}}, *SLICES[1:]]
    given = {"partitions": PARTITIONS, "throttle_bytes_s": 7, "max_in_flight": 2}
    harness.session["run_lock"] = {"number": 1}
    result = harness.run("partition_reassignment", given, *parts)
    assert [call.get("state", "present") for call in harness.asked] == ["present", "present", "present", "awaited"]
    assert [(call.get("carry") or {}).get("queued") for call in harness.asked] == [None, 3, 1, None]
    assert result["undo"] == {"of": 1} and [event["name"] for event in harness.events()] == [
        "reassigning",
        "reassigned",
    ]


def test_what_is_in_flight_is_shown_in_a_run(harness):
    found = {"cluster_id": "c", "reassignments": [], "progress": {}, "throttles": [], "throttles_unread": []}
    found.update(throttles_set_by={}, legacy=None, plan=None, copies=None, unmeasured=[])
    harness.run("partition_reassignment_info", {"show": True}, found)
    assert harness.printed[-2:] == ["Reassignments of cluster c: none in flight", "  throttles: none"]
    assert "show" not in harness.asked[0] and harness.asked[0]["cluster_id"]


def test_what_failed_is_not_journaled_as_moved(harness, of_run):
    failed = {"failed": True, "msg": "it was cancelled elsewhere (QS-ADMIN-006)", "results": []}
    result = harness.run("partition_reassignment", {"partitions": PARTITIONS}, SLICES[0], failed)
    assert result["failed"] and harness.events("reassigned") == []
    assert [event["reason"] for event in harness.events("failed")] == ([failed["msg"]] if of_run else [])


@pytest.mark.parametrize("args", [{"state": "cancelled"}, {"wait": False, "partitions": PARTITIONS}])
def test_a_cancellation_and_a_move_without_a_wait_are_one_call(harness, args):
    harness.session["run_lock"] = {"number": 1}
    harness.run("partition_reassignment", args, {**SLICES[0], "done": "state" in args})
    assert len(harness.asked) == 1 and "wait_s" not in harness.asked[0]
    name = "reassignments_cancelled" if "state" in args else "reassigning"
    assert [event["name"] for event in harness.events()] == [name]


def test_a_run_without_the_run_lock_moves_nothing(harness):
    harness.session.pop("run_lock", None)
    result = harness.run("partition_reassignment", {"partitions": PARTITIONS}, SLICES[-1])
    assert result["failed"] and "does not hold the run lock" in result["msg"] and harness.asked == []


def test_check_mode_is_one_call_and_journals_nothing(harness):
    harness.check_mode = True
    harness.run("partition_reassignment", {"partitions": PARTITIONS}, SLICES[0])
    assert len(harness.asked) == 1 and harness.events() == []


def test_a_playbook_of_its_own_may_be_cut_down_by_tags(harness, of_run):
    harness.cliargs({"tags": ["mine"]})
    result = harness.run("partition_reassignment", {"partitions": PARTITIONS}, SLICES[-1])
    assert bool(result.get("failed")) == of_run
