# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_features and kafka_features_info: alone they fill in nothing; in a run they show, and journal what changed."""

from __future__ import annotations

import pytest

MV = "metadata.version"
CHANGE = {"feature": MV, "before": 20, "before_name": "3.8-IV0", "after": 21, "after_name": "3.9-IV0"}
RESULT = {"changed": True, "results": [CHANGE], "notes": [], "one_way": [], "token": "", "epoch": 9, "lost": ""}
NODE = {"role": "broker", "id": 1, "address": "b1:9092", "supported": {MV: [1, 21]}, "finalized": {MV: 21}, "epoch": 9}
FOUND = {
    **{"changed": False, "cluster_id": "Qs", "mode": "kraft", "epoch": 9, "nodes": {"broker 1 at b1:9092": NODE}},
    **{"finalized": {MV: {"level": 21, "name": "3.9-IV0", "minimum": 21}}, "held_back": {}, "lagging": [], "notes": []},
    **{"quorum_error": None, "voters_unknown": [], "alive": []},
}


@pytest.fixture
def of_run(harness):
    harness.session = {**harness.session, "run_lock": {"number": 1}}
    return harness


def test_a_task_of_its_own_gets_what_it_gives_alone(harness):
    harness.session = {}
    given = {"bootstrap_servers": ["x:1"], "features": {MV: 21}}
    harness.run("kafka_features", given, RESULT)
    harness.run("kafka_features_info", {"bootstrap_servers": ["x:1"]}, FOUND)
    assert harness.asked == [given, {"bootstrap_servers": ["x:1"]}] and harness.events() == []


def test_a_run_fills_the_cluster_in_and_journals_what_changed(of_run):
    of_run.run("kafka_features", {"upgrade_to": "3.9", "token": ""}, RESULT)
    (asked,) = of_run.asked
    assert asked["run"] == of_run.session["run"] and asked["cluster_id"] == of_run.session["cluster_id"]
    assert asked["controllers"] and set(asked["expected"]) == {"broker", "controller"} and asked["token"] == ""
    (event,) = of_run.events()
    assert (event["name"], event["features"], event["epoch"]) == ("features changed", {MV: [20, 21]}, 9)


def test_only_the_part_that_was_made_is_journaled(of_run):
    refused = {**CHANGE, "feature": "group.version", "error": "INVALID_UPDATE_VERSION"}
    failed = {"failed": True, "changed": True, "msg": "a part (QS-ADMIN-013)", "results": [CHANGE, refused]}
    result = of_run.run("kafka_features", {"features": {}}, failed)
    assert result["failed"] and [event["features"] for event in of_run.events("features changed")] == [{MV: [20, 21]}]


def test_a_run_without_the_run_lock_changes_nothing(harness):
    harness.session.pop("run_lock", None)
    result = harness.run("kafka_features", {"features": {MV: 21}}, RESULT)
    assert result["failed"] and "does not hold the run lock" in result["msg"] and harness.asked == []


@pytest.mark.parametrize("applies", [False, True])
def test_the_change_is_shown_with_the_command_that_makes_it(harness, applies):
    harness.check_mode, harness.variables["features_apply"] = True, applies
    one_way = {"one_way": ["metadata.version rises"], "token": "Qs:123456", "notes": ["group.version goes down: x"]}
    harness.run("kafka_features", {"upgrade_to": "3.9", "show": True}, {**RESULT, **one_way})
    shown = [line.strip() for line in harness.printed]
    assert shown[:3] == [
        "raise metadata.version: 3.8-IV0 (20) -> 3.9-IV0 (21)",
        "group.version goes down: x",
        "nothing takes this back: metadata.version rises",
    ]
    command = "the controller accepts it. To make it, add -e features_apply=true -e features_confirm=Qs:123456"
    assert shown[3:] == ["the controller accepts it" if applies else command] and harness.events() == []
    assert "show" not in harness.asked[0]


def test_the_features_are_shown(of_run):
    of_run.run("kafka_features_info", {"show": True}, FOUND)
    assert any("3.9-IV0 (21)" in line for line in of_run.printed) and "served" not in of_run.asked[0]


@pytest.mark.parametrize(
    ("served", "node", "late"),
    [
        ({MV: 21}, NODE, None),
        ({MV: 20}, NODE, "broker 1 at b1:9092 serves metadata.version 21"),
        ({}, NODE, "broker 1 at b1:9092 serves metadata.version 21"),
        (
            {MV: 21},
            {"role": "broker", "id": 1, "address": "b1:9092", "error": "refused"},
            "broker 1 at b1:9092: refused",
        ),
        ({MV: 21, "group.version": 1}, NODE, "serves group.version 0"),
    ],
)
def test_a_change_is_verified_by_a_second_reading(of_run, served, node, late):
    found = {**FOUND, "nodes": {"broker 1 at b1:9092": node}}
    result = of_run.run("kafka_features_info", {"served": served}, found)
    assert bool(result.get("failed")) == (late is not None)
    assert late is None or late in result["msg"]
