# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A restart is begun once and watched to its end; its steps are shown, its diff and times kept."""

from __future__ import annotations

import os

import pytest
from ansible_collections.quorumshift.kafka.plugins.action import node_restart
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates

NODE = {
    "node_id": 1,
    "file": {"mode": "zk_migration", "properties": {"broker.id": "1", "zookeeper.connect": "z1:2181"}},
}


def record(*names, **more):
    steps = [{"name": name, "at": 1000.0 + at} for at, name in enumerate(names)]
    return {"id": "r/kraft/b1", "kind": "kraft", "steps": steps, "outcome": None, "times": {}, **more}


@pytest.fixture
def broker(harness):
    harness.facts("b1", quorumshift_node=NODE)
    return harness


def test_each_step_is_shown_once_and_the_end_is_journalled(broker):
    times = {"stop_s": 2.0, "start_s": 4.0, "register_s": 4.5, "registered_at": 1010.0}
    diff = {"before": "a=1\n", "after": "a=2\n"}
    calls = [record("begun"), record("begun", "stop"), record("begun", "stop", "start")]
    end = record("begun", "stop", "start", outcome="done", times=times, diff=diff)
    result = broker.run("node_restart", {"kind": "kraft", "gate_token": {"gate": "g"}}, *calls, end, host="b1")
    assert broker.printed == [
        *("    b1 stops", "    b1 starts"),
        "    b1 is up (stop 2.0 s, start 4.0 s, registered after 4.5 s)",
    ]
    assert [call["action"] for call in broker.asked] == ["begin", "watch", "watch", "watch"]
    assert broker.asked[0]["changes"]["process.roles"] == "broker" and broker.asked[0]["gate_token"] == {"gate": "g"}
    (event,) = broker.events("kraft")
    assert (event["host"], event["outcome"], event["end"]) == ("b1", "done", 1010.0)
    assert "+a=2" in broker.artifacts.read("diffs/b1-kraft.diff") and result["outcome"] == "done"


def test_a_broker_that_reverted_ends_the_run(broker):
    end = record("begun", outcome="reverted", failed=True, msg="kafka did not start.\nport in use")
    result = broker.run("node_restart", {"kind": "kraft"}, end, host="b1")
    assert result["failed"] and broker.events("failed")[0]["host"] == "b1"
    assert "    port in use" in broker.printed and broker.events("kraft")[0]["reason"].startswith("kafka did not start")


def test_a_restart_that_fails_ends_the_run(broker):
    broker.run("node_restart", {"kind": "kraft"}, record("begun", outcome="failed", failed=True, msg="x"), host="b1")
    assert broker.events("failed")[0]["reason"] == "x (QS-HOST-001)"


def test_what_was_begun_is_awaited_after_the_run_failed(broker):
    broker.run("node_restart", {"kind": "kraft", "part": "begin"}, record("begun", changed=True), host="b1")
    broker.artifacts.note("event", "failed", host="b2", task="Begin to restart the node", reason="unreachable")
    await_it = {"part": "await"}
    result = broker.run("node_restart", await_it, record("begun", outcome="done", changed=True), host="b1")
    assert result["outcome"] == "done" and broker.asked[-1]["action"] == "watch"
    assert broker.asked[-1]["restart_id"] == broker.asked[0]["restart_id"]
    asked = len(broker.asked)
    for host in ("b1", "b2", "localhost"):  # awaited already, or never begun
        assert "failed" not in broker.run("node_restart", await_it, {}, host=host)
    assert len(broker.asked) == asked


def test_a_host_that_rejects_the_token_begins_nothing(broker):
    result = broker.run("node_restart", {"kind": "kraft"}, {"failed": True, "msg": "no token"}, host="b1")
    assert result["failed"] and broker.events("kraft") == []


def test_begin_returns_while_the_restart_goes_on(broker):
    result = broker.run("node_restart", {"kind": "kraft", "part": "begin"}, record("begun", changed=True), host="b1")
    assert result["changed"] is False and len(broker.asked) == 1
    assert [event["name"] for event in broker.events()] == ["restart begun"]


def test_await_begins_nothing(broker):
    broker.run("node_restart", {"kind": "kraft", "part": "await"}, record("begun", outcome="done"), host="b1")
    assert [call["action"] for call in broker.asked] == ["watch"]


def test_a_repair_gives_a_broker_in_migration_mode_the_operators_settings(broker):
    broker.variables["quorumshift_broker_config"] = {"num.io.threads": "16"}
    broker.variables.update(quorumshift_controller_listener="CONTROLLER", quorumshift_controller_protocol="PLAINTEXT")
    broker.hostvars["c1"]["quorumshift_node_id"] = 101
    end = record("begun", outcome="done", kind="repair")
    broker.run("node_restart", {"repair": True}, end, host="b1")
    asked = broker.asked[0]
    assert (
        asked["action"] == "finish"
        and asked["restart_id"].endswith("/repair/b1")
        and asked["changes"]["num.io.threads"] == "16"
    )


def test_a_restart_that_ended_after_its_run_was_killed_is_journalled_by_the_next_run(broker):
    os.makedirs(os.path.join(broker.artifacts.cluster, "r0"))
    earlier = {"kind": "kraft", "id": "r0/kraft/b1", "outcome": "done", "ended_at": 1009.0, "steps": [{"at": 1000.0}]}
    broker.facts("b1", quorumshift_node={**NODE, "node_restart": earlier})
    broker.run("node_restart", {"kind": "kraft"}, {"outcome": "unneeded"}, host="b1")
    (event,) = broker.events("kraft")
    assert (event["node_restart"], event["restart_s"]) == ("r0/kraft/b1", 9.0)
    broker.run("node_restart", {"kind": "kraft"}, {"outcome": "unneeded"}, host="b1")
    assert len(broker.events("kraft")) == 1


EXPIRED = {
    "failed": True,
    "exception": "(traceback unavailable)",
    "outcome": "expired",
    "msg": "the gate token is 70 s old. Nothing was changed on this host.",
}


def test_an_expired_token_is_asked_for_anew_five_times(broker):
    broker.facts("b2", quorumshift_node=NODE)
    asked = {"kind": "kraft", "renewable": True}
    for _renewal in range(gates.RENEWALS):
        result = broker.run("node_restart", asked, EXPIRED, host="b1")
        assert (result["failed"], result["outcome"]) == (False, "expired") and "exception" not in result
    assert broker.run("node_restart", asked, EXPIRED, host="b2")["failed"] is False  # each host has its own bound
    result = broker.run("node_restart", asked, EXPIRED, host="b1")
    assert result["failed"] and result["msg"].endswith("or something suspends them. Run again. (QS-HOST-001)")
    assert broker.events("failed") and "renewable" not in broker.asked[0]


def test_an_expired_token_fails_a_task_that_asks_for_no_new_one(broker):
    assert broker.run("node_restart", {"kind": "kraft"}, EXPIRED, host="b1")["failed"]


def test_directories_that_the_broker_renamed_are_shown_and_journalled(broker):
    node = {**NODE, "log_dirs": [{"path": "/data", "stray": ["orders-0.b2f3-stray"]}, {"path": "/more", "stray": []}]}
    end = record("begun", outcome="done", mode="kraft", ansible_facts={"quorumshift_node": node})
    broker.run("node_restart", {"kind": "kraft"}, end, host="b1")
    assert "    b1 has -stray directories: /data/orders-0.b2f3-stray" in broker.printed
    assert broker.events("stray directories")[0]["paths"] == ["/data/orders-0.b2f3-stray"]


def test_a_repair_is_begun_and_awaited_apart(broker):
    broker.facts("b1", quorumshift_node={**NODE, "file": {**NODE["file"], "mode": "kraft"}})
    begun = broker.run("node_restart", {"repair": True, "part": "begin"}, record("begun", changed=True), host="b1")
    assert begun["outcome"] is None and broker.events("repair") == []
    broker.run("node_restart", {"repair": True, "part": "await"}, record("begun", outcome="done"), host="b1")
    assert [call["action"] for call in broker.asked] == ["finish", "watch"]
    assert broker.printed[0] == "    b1 is down, or an earlier run left its restart half done"


def test_the_progress_of_a_slow_start_is_shown(broker, monkeypatch):
    monkeypatch.setattr(node_restart, "STILL_S", -1.0)
    loading = "recovering log directory /data: 120 of 4000 logs"
    starts = record("begun", "start")
    calls = [starts, {**starts, "progress": loading}, record("begun", "start", outcome="done")]
    broker.run("node_restart", {"kind": "kraft"}, *calls, host="b1")
    assert [line.partition(" (")[0] for line in broker.printed] == [
        *("    b1 starts", "    b1: step start goes on", f"    b1: {loading}", "    b1 is up"),
    ]


PAUSED = {"outcome": "paused", "paused": {"path": "/state/pause", "since": 1000.0, "why": "disk alert"}}


def test_a_pause_is_waited_for_and_journalled(broker):
    results = (PAUSED, PAUSED, record("begun"), record("begun", "stop", outcome="done"))
    result = broker.run("node_restart", {"kind": "kraft"}, *results, host="b1")
    assert result["outcome"] == "done"
    assert [call.get("pause_wait_s") for call in broker.asked] == [None, 10.0, 10.0, None]
    shown = "b1: restarts are paused by /state/pause on this host: disk alert"
    assert broker.printed[0] == f"    {shown}. To go on: run quorumshift.kafka.resume, or remove that file"
    names = [event["name"] for event in broker.events()]
    assert names == ["paused", "resumed", "restart begun", "kraft"]


def test_an_expired_token_after_a_pause_is_asked_for_anew(broker):
    result = broker.run("node_restart", {"kind": "kraft", "renewable": True}, PAUSED, EXPIRED, host="b1")
    assert (result["failed"], result["outcome"]) == (False, "expired")


def test_a_pause_beyond_its_bound_fails_and_begins_nothing(broker):
    broker.variables["restart_pause_timeout_s"] = -1
    result = broker.run("node_restart", {"kind": "kraft", "renewable": True}, PAUSED, host="b1")
    assert result["failed"] and result["msg"].endswith("then this command again (QS-RESTART-019)")
    assert [event["name"] for event in broker.events()] == ["paused", "failed"]
    assert len(broker.asked) == 1


def test_a_stop_whose_controlled_shutdown_failed_is_named(broker):
    end = record("begun", outcome="done", unclean_stop="Timed out waiting for the controller to approve")
    broker.run("node_restart", {"kind": "kraft"}, end, host="b1")
    (line,) = [text for text in broker.printed if "leaders" in text]
    assert line.strip().startswith("b1 stopped before its leaders had moved") and line.endswith("controller to approve")
    broker.printed.clear()
    broker.run("node_restart", {"kind": "kraft"}, record("begun", outcome="done"), host="b1")
    assert not any("leaders" in text for text in broker.printed)
