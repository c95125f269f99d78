# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The run lock is written as migration_state decided, and closed however the run went."""

from __future__ import annotations

import pytest

DECIDED = {"number": 4, "hosts": ["b1", "c1"], "direction": "forward", "target": None, "excluded": []}


@pytest.fixture
def locked(harness):
    harness.session["run_lock"] = DECIDED
    return harness


def test_the_arbiter_alone_compares_the_lock_that_was_read(locked):
    earlier = {"number": 3, "run": "r0"}
    for host in DECIDED["hosts"]:
        locked.facts(host, quorumshift_node={"run_locks": {"cluster-1": earlier}})
        locked.run("run_lock", {"state": "taken"}, {"done": True}, host=host)
    arbiter, other = locked.asked
    assert arbiter["seen"] == earlier and "seen" not in other
    assert (arbiter["run_lock"]["number"], arbiter["run_lock"]["run"]) == (4, locked.session["run"])
    assert arbiter["run_lock"]["closed"] is False and arbiter["run_lock"]["process"]


def test_a_failed_run_closes_its_lock_and_fails(locked):
    args = {"state": "closed", "stopped_at": "Restart the broker", "reason": "no disk"}
    result = locked.run("run_lock", args, {"done": True})
    said = 'The run ended at "Restart the broker". The reason is above.'
    status = " Run quorumshift.kafka.status: it shows the phase and the command to type next."
    assert result["failed"] and result["msg"] == said + status
    assert locked.asked[0]["how"] == "Restart the broker"
    (event,) = locked.events("ended")
    assert (event["reason"], event["task"]) == ("no disk", "Restart the broker")


def test_status_is_named_for_a_migration_alone(locked):
    locked.session["run_lock"] = {**DECIDED, "direction": "restart"}
    result = locked.run(
        "run_lock", {"state": "closed", "stopped_at": "Restart the broker", "reason": "x"}, {"done": True}
    )
    assert result["msg"] == 'The run ended at "Restart the broker". The reason is above.'


def test_a_run_that_ended_well_says_so(locked):
    assert "failed" not in locked.run("run_lock", {"state": "closed"}, {"done": True})
    assert locked.asked[0]["how"] == "ok"


def test_a_run_without_a_lock_has_nothing_to_close(harness):
    harness.run("run_lock", {"state": "closed", "stopped_at": "Detect the phase", "reason": "x"}, {})
    assert harness.asked == []


def test_a_lock_is_closed_also_where_a_part_of_a_run_is_rejected(locked):
    locked.run("run_lock", {"state": "closed"}, {"done": True}, variables={"ansible_limit": "b1"})
    assert locked.asked[0]["state"] == "closed"
