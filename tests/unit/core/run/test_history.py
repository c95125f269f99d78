# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runs in the journals, and contradictions between journals and hosts."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import history

CLUSTER = "c"
RELY = ". Runs rely on what the hosts show, not on journals"
FIRST, SECOND = "20261101T100000-aaaa", "20261101T110000-bbbb"


def locked(t, run, number, over=None):
    lock = {"number": number, "direction": "forward", "user": "ann", "host": "ops1", "over": over}
    return {"t": t, "name": "locked", "run": run, **lock}


def ended(t, run, how="ok"):
    return {"t": t, "name": "ended", "run": run, "how": how}


def node_restart(t, run, host, outcome="done", mode="zk_migration", message=""):
    return {
        "t": t,
        "name": "node_restart",
        "run": run,
        "id": f"{run}/{mode}/{host}",
        "kind": mode,
        "mode": mode,
        "outcome": outcome,
        "message": message,
    }


def node(*events, starts="zk_migration", torn=0, cut=False):
    node_restarts = [event for event in events if event["name"] == "node_restart"]
    run_locks = [event for event in events if event["name"] == "locked"]
    return {
        "reached": True,
        "journals": {CLUSTER: {"events": list(events), "torn": torn, "cut": cut}},
        "run_locks": {CLUSTER: run_locks[-1] if run_locks else {}},
        "node_restart": {"id": node_restarts[-1]["id"], "outcome": node_restarts[-1]["outcome"]}
        if node_restarts
        else None,
        "next": starts,
    }


@pytest.fixture
def nodes():
    """Return nodes with a run that failed on b2, and a run at work that took over from it."""
    failed = node_restart(130, FIRST, "b2", "failed", message="kafka did not come up\nCaused by: ...")
    return {
        "b1": node(locked(100, FIRST, 1), ended(140, FIRST, "Restart the broker"), locked(200, SECOND, 2, FIRST)),
        "b2": node(locked(101, FIRST, 1), failed, locked(201, SECOND, 2, FIRST), node_restart(220, SECOND, "b2")),
    }


def test_runs_have_their_user_host_and_end(nodes):
    first, second = history.runs(nodes, CLUSTER)
    assert (first.run, first.user, first.host, first.direction) == (FIRST, "ann", "ops1", "forward")
    assert (first.since, first.ended_at, first.how) == (100, 140, "Restart the broker")
    assert [(restart.host, restart.outcome) for restart in first.node_restarts] == [("b2", "failed")]
    assert second.over == FIRST and second.how is None


def test_lines_of_the_history(nodes):
    shown = "\n".join(history.lines(history.runs(nodes, CLUSTER)))
    assert (
        f'1970-01-01 00:01:40 UTC  run {FIRST} (forward) of ann on ops1, ended at "Restart the broker" after 40 s'
        in shown
    )
    assert "1970-01-01 00:02:10 UTC  b2  zk_migration  failed: kafka did not come up\n" in shown
    assert (
        shown.endswith("b2  zk_migration  done")
        and f"run {SECOND} (forward) of ann on ops1, at work or interrupted" in shown
    )


def test_a_run_without_an_end_was_taken_over_or_no_journal_has_its_end():
    third = "20261101T120000-cccc"
    events = [locked(1, FIRST, 1), locked(2, SECOND, 2, FIRST), locked(3, third, 3)]
    shown = history.lines(history.runs({"b1": node(*events)}, CLUSTER))
    assert shown[1].endswith(f"taken over by run {SECOND}") and shown[2].endswith("no journal has its end")


def test_restarts_of_a_run_whose_lock_is_in_no_journal():
    (run,) = history.runs({"b1": node(node_restart(5, FIRST, "b1"))}, CLUSTER)
    assert (run.user, run.number, run.since) == (None, None, 5)
    assert "(?) of ? on ?" in history.lines([run])[1]


def test_no_journal_gives_no_run():
    assert history.runs({"b1": {}}, CLUSTER) == []
    assert history.lines([]) == ["  history: no journal has a run"]


def test_journals_that_agree_with_the_hosts_give_no_doubt(nodes):
    events = [{"t": 220, "host": "b2", "node_restart": f"{SECOND}/zk_migration/b2", "outcome": "done"}]
    assert history.find_contradictions(nodes, CLUSTER, events) == []
    assert history.find_contradictions({"b1": {"reached": False, "journals": None}}, CLUSTER, []) == []


def test_contradictions_between_journals_and_hosts(nodes):
    def doubts(change, events=()):
        changed = copy.deepcopy(nodes)
        change(changed["b2"])
        texts = history.find_contradictions(changed, CLUSTER, events)
        assert all(text.endswith(RELY) for text in texts)
        return [text[: -len(RELY)] for text in texts]

    def journal(b2):
        return b2["journals"][CLUSTER]

    lacks = f"the journal of b2 lacks run {SECOND}"
    assert doubts(lambda b2: journal(b2).update(torn=1)) == ["1 line of b2's journal cannot be read"]
    assert doubts(lambda b2: journal(b2)["events"].pop()) == [lacks]
    assert doubts(lambda b2: b2.update(journals={})) == [lacks]
    assert (
        "ended in mode zk_migration, but its file starts it in mode zk:" in doubts(lambda b2: b2.update(next="zk"))[0]
    )
    lost = {"t": 300, "host": "b2", "node_restart": "r/kraft/b2", "outcome": "done"}
    assert doubts(lambda b2: None, [lost]) == ["the journal of b2 lacks run r"]
    assert doubts(lambda b2: None, [lost, {**lost, "host": "b1"}]) == ["the journal of b1, b2 lacks run r"]
    assert doubts(lambda b2: None, [{**lost, "outcome": "died"}]) == [], "a worker that died wrote nothing"
    assert doubts(lambda b2: None, [{**lost, "t": 50}]) == [], "older than the journal"
