# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every action does: rejects partial runs, fills in options, shows progress, journals the end of a run."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import base


@pytest.mark.parametrize(
    ("variables", "cliargs", "why"),
    [
        ({"ansible_limit": "b1"}, {}, "--limit b1 excludes hosts"),
        ({"ansible_run_tags": ["some"]}, {}, "--tags or --skip-tags some exclude tasks"),
        ({"ansible_skip_tags": ["always"]}, {}, "--tags or --skip-tags always exclude tasks"),
        ({}, {"start_at_task": "Plan"}, "--start-at-task excludes tasks"),
    ],
)
def test_a_part_of_a_run_is_rejected(harness, variables, cliargs, why):
    harness.cliargs(cliargs)
    result = harness.run("digest_key", {}, {"changed": True}, variables=variables)
    assert result["failed"] and why in result["msg"] and "Nothing was changed" in result["msg"]
    assert harness.asked == []


def test_other_tags_to_skip_exclude_no_task(harness):
    assert "failed" not in harness.run("digest_key", {}, {}, variables={"ansible_skip_tags": ["molecule-notest"]})


def test_a_run_that_failed_does_nothing_more(harness):
    harness.artifacts.note("event", "ended", result="failed", reason="disk full.", task="Restart the broker")
    result = harness.run("digest_key", {}, {})
    assert result["msg"] == 'This run ended at "Restart the broker": disk full. Nothing more was done'


def test_the_first_failure_is_the_end_of_the_run(harness):
    harness.run("digest_key", {}, {"failed": True, "msg": "no space"})
    (event,) = harness.events("ended")
    assert (event["result"], event["reason"], event["task"]) == ("failed", "no space", "task digest_key")


def test_a_failure_that_the_task_ignores_ends_no_run(harness):
    harness.ignore_errors = True
    assert harness.run("digest_key", {}, {"failed": True, "msg": "no space"})["failed"]
    assert harness.events("ended") == []


def test_check_mode_ends_no_run(harness):
    harness.check_mode = True
    harness.run("digest_key", {}, {"failed": True, "msg": "no space"})
    assert harness.events() == []


def test_run_cluster_and_key_are_filled_in(harness):
    harness.run("digest_key", {"key": "k"}, {})
    (asked,) = harness.asked
    assert (asked["run"], asked["cluster_id"], asked["run_key"], asked["key"]) == (
        harness.session["run"],
        harness.session["cluster_id"],
        "ab" * 32,
        "k",
    )


@pytest.mark.parametrize(("host", "service"), [("b1", "kafka"), ("c1", "kafka-controller")])
def test_a_nodes_options_follow_its_role(harness, host, service):
    harness.run("service_stop", {"state": "masked"}, {"changed": False, "stopped": False}, host=host)
    assert harness.asked[0]["service"] == service


def test_a_task_wins_over_variables(harness):
    harness.run("service_stop", {"state": "masked", "service": "own"}, {"changed": False, "stopped": False}, host="b1")
    assert harness.asked[0]["service"] == "own"


def test_a_delegated_task_gets_the_variables_of_its_host(harness):
    harness.hostvars["c1"]["quorumshift_controller_service"] = "kraft"
    harness.run("service_stop", {"state": "masked"}, {"changed": False, "stopped": False}, delegate_to="c1")
    assert harness.asked[0]["service"] == "kraft"


def test_bootstrap_servers_are_required(harness):
    harness.variables["quorumshift_bootstrap_servers"] = []
    with pytest.raises(Exception, match="quorumshift_bootstrap_servers is not set"):
        harness.run("broker_unregister", {}, {})


def test_a_wait_shows_what_is_new(harness):
    waits = [{"done": False, "progress": f"b1 is down ({at} s)", "carry": {"began": 1}} for at in (3, 6)]
    waits.append({"done": False, "progress": "b2 is down (9 s)", "carry": {"began": 1}})
    harness.run("digest_key", {}, *waits, {"done": True})
    assert harness.printed == ["    b1 is down (3 s)", "    b2 is down (9 s)"]
    assert [one.get("carry") for one in harness.asked] == [None, {"began": 1}, {"began": 1}, {"began": 1}]


def test_hosts_that_are_excluded_are_no_nodes(harness):
    harness.variables["quorumshift_exclude_hosts"] = "b2,elsewhere"
    harness.facts("b1", quorumshift_node={"node_id": 1})
    harness.run("broker_unregister", {}, {"unregistered": []})
    asked = harness.asked[0]
    assert set(asked["nodes"]) == {"b1", "c1"} and asked["excluded"]["elsewhere"] == {"role": None}
    assert asked["excluded"]["b2"]["role"] == "broker"


@pytest.mark.parametrize(
    ("given", "known"), [("101", 101), (101, 101), ("0", 0), ("-1", -1), ("x1", "x1"), (None, None)]
)
def test_a_node_id_in_quotes_is_a_number(given, known):
    """As text it would equal no broker's id, and the check for equal ids would pass."""
    assert base.number(given) == known
