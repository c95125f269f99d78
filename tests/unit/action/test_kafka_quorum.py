# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_quorum: it gets the nodes of the run, shows the quorum and the command of a change, journals what changed."""

from __future__ import annotations

import pytest

VOTER = {"id": 101, "directory_id": "d", "endpoint": "c1:9093", "host": "c1", "lag": 0, "caught_up_s": 0.0}
FOUND = {
    **{"changed": False, "cluster_id": "Qs", "mode": "kraft", "dynamic": True, "leader_id": 101, "leader_epoch": 2},
    **{"kraft_version": {"finalized": 1, "lowest": 0, "highest": 1}, "high_watermark": 9, "observers": []},
    **{"voters": [{**VOTER, "fetched_s": None}], "configuration": {"c1": "static"}, "registrations_unknown": True},
    **{"ghosts": [{"what": "controller", "id": 104, "why": "is registered", "do": "unregister it"}]},
    **{"silent": ["broker 2: refused"], "repair": ["c1"], "change": [], "token": "", "files": []},
}


@pytest.fixture
def of_run(harness):
    harness.session = {**harness.session, "run_lock": {"number": 1}}
    return harness


def test_it_gets_the_nodes_and_shows_what_stands_out(harness):
    harness.run("kafka_quorum", {"show": True}, FOUND)
    (asked,) = harness.asked
    assert asked["nodes"] and asked["controllers"] and set(asked["expected"]) == {"broker", "controller"}
    shown = "\n".join(harness.printed)
    for text in ("dynamic, kraft.version 1", "voter (leader)  101  c1", "controller 104 is registered", "KAFKA-21426"):
        assert text in shown, shown
    assert "no metadata log could be read" in shown and "broker 2: refused" in shown and harness.events() == []


@pytest.mark.parametrize("applies", [False, True])
def test_a_change_is_shown_with_the_command_that_makes_it(harness, applies):
    harness.check_mode = True
    harness.variables.update(quorum_apply=applies, quorum_remove="103")
    decided = {**FOUND, "changed": True, "change": ["controller 103 is removed"], "token": "Qs:123456"}
    harness.run("kafka_quorum", {"state": "removed", "controller": "103", "show": True}, decided)
    shown = " ".join(harness.printed)
    assert "controller 103 is removed" in shown and harness.events() == []
    assert ("-e quorum_remove=103 -e quorum_apply=true -e quorum_confirm=Qs:123456" in shown) != applies


def test_what_changed_is_journaled_also_where_the_rest_failed(of_run):
    of_run.run("kafka_quorum", {"state": "removed", "controller": "103"}, {**FOUND, "changed": True})
    failed = {"failed": True, "changed": True, "msg": "not known (QS-QUORUM-010)"}
    assert of_run.run("kafka_quorum", {"state": "replaced", "controller": "c3"}, failed)["failed"]
    events = of_run.events("quorum changed")
    assert [(event["change"], event["voters"]) for event in events] == [("removed", [[101, "d"]]), ("replaced", [])]


def test_a_run_without_the_run_lock_changes_nothing(harness):
    harness.session.pop("run_lock", None)
    result = harness.run("kafka_quorum", {"state": "removed", "controller": "103"}, FOUND)
    assert result["failed"] and "does not hold the run lock" in result["msg"] and harness.asked == []
