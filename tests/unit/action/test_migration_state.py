# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""migration_state returns what the cluster is, and leaves no trace of that; gate_views lists what a gate compares."""

from __future__ import annotations

import os

import pytest

from tests.unit.action.states import state


@pytest.mark.parametrize("name", ["zk", "hybrid", "dual_write", "finalized", "reverting_1_plain"])
def test_the_phase_is_read_without_a_trace(fresh, name):
    before = sorted(os.walk(fresh.variables["quorumshift_artifacts_dir"]))
    given = state(name)
    result = fresh.run("migration_state", {}, given)
    assert (result["phase"], result["cluster_id"]) == (given["phase"], given["cluster_id"])
    assert f"The phase is {given['phase']}: " in result["reasons"] and "facts" not in result
    assert "ansible_facts" not in result and fresh.printed == []
    assert sorted(os.walk(fresh.variables["quorumshift_artifacts_dir"])) == before


def test_a_failure_without_a_run_is_journaled_nowhere(fresh):
    before = sorted(os.walk(fresh.variables["quorumshift_artifacts_dir"]))
    assert fresh.run("migration_state", {}, {"failed": True, "msg": "no answer"})["failed"]
    assert sorted(os.walk(fresh.variables["quorumshift_artifacts_dir"])) == before


def test_the_steps_ahead_are_those_of_the_plan(fresh):
    assert fresh.run("migration_state", {}, state("zk"))["ahead"][0] == "backup"
    planned = fresh.run("migration_state", {"plan_to": "zk"}, state("dual_write", plan={"steps": []}))
    assert planned["ahead"][:2] == ["before_revert", "hybrid"] and planned["plan"] == {"steps": []}
    assert fresh.asked[1]["plan_to"] == "zk"


def test_a_text_that_is_no_cluster_id_is_refused(fresh):
    given = state("zk")
    given["cluster_id"] = "../../etc"
    given["facts"]["zookeeper"]["cluster_id"]["value"] = "../../etc"
    result = fresh.run("migration_state", {}, given)
    assert result["failed"] and "'../../etc', which is no cluster id of Kafka" in result["msg"]


def test_views_are_those_of_the_gate_that_is_asked_for(harness):
    result = harness.run("gate_views", {"gate": "before_kraft", "phase": "hybrid"})
    assert "metadata_log" in result["views"] and not result["compares_records"]
    assert result["baseline"] == {"offset": None, "zxid": None, "snapshots": {}}


def test_the_gate_of_a_phase_is_the_one_that_opens_there(fresh):
    assert fresh.run("migration_state", {}, state("zk"))["gate"] == "before_controllers"
