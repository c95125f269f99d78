# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What journals tell, and what is said where they do not agree with the hosts."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.judgements import history

CLUSTER = "c"
COUNTS = ". What the hosts show counts"
FIRST, SECOND = "20261101T100000-aaaa", "20261101T110000-bbbb"


def claimed(t, run, number, over=None):
    told = {"number": number, "direction": "forward", "user": "ann", "host": "ops1", "over": over}
    return {"t": t, "name": "claimed", "run": run, **told}


def ended(t, run, how="ok"):
    return {"t": t, "name": "ended", "run": run, "how": how}


def turn(t, run, host, outcome="done", mode="zk_migration", message=""):
    return {
        "t": t,
        "name": "turn",
        "run": run,
        "id": f"{run}/{mode}/{host}",
        "kind": mode,
        "mode": mode,
        "outcome": outcome,
        "message": message,
    }


def node(*events, starts="zk_migration", torn=0, cut=False):
    turns = [event for event in events if event["name"] == "turn"]
    claims = [event for event in events if event["name"] == "claimed"]
    return {
        "reached": True,
        "journals": {CLUSTER: {"events": list(events), "torn": torn, "cut": cut}},
        "claims": {CLUSTER: claims[-1] if claims else {}},
        "turn": {"id": turns[-1]["id"], "outcome": turns[-1]["outcome"]} if turns else None,
        "next": starts,
    }


@pytest.fixture
def nodes():
    """A run that failed on b2 and one that took over another, which still is at work."""
    failed = turn(130, FIRST, "b2", "failed", message="kafka did not come up\nCaused by: ...")
    return {
        "b1": node(claimed(100, FIRST, 1), ended(140, FIRST, "Take the turn"), claimed(200, SECOND, 2, FIRST)),
        "b2": node(claimed(101, FIRST, 1), failed, claimed(201, SECOND, 2, FIRST), turn(220, SECOND, "b2")),
    }


def test_runs_are_told_with_who_and_how_they_ended(nodes):
    first, second = history.runs(nodes, CLUSTER)
    assert (first.run, first.user, first.host, first.direction) == (FIRST, "ann", "ops1", "forward")
    assert (first.since, first.ended_at, first.how) == (100, 140, "Take the turn")
    assert [(one.host, one.outcome) for one in first.turns] == [("b2", "failed")]
    assert second.over == FIRST and second.how is None


def test_the_screen_of_the_past(nodes):
    shown = "\n".join(history.lines(history.runs(nodes, CLUSTER)))
    assert (
        f'1970-01-01 00:01:40 UTC  run {FIRST} (forward) of ann on ops1, ended at "Take the turn" after 40 s' in shown
    )
    assert "1970-01-01 00:02:10 UTC  b2  zk_migration  failed: kafka did not come up\n" in shown
    assert (
        shown.endswith("b2  zk_migration  done")
        and f"run {SECOND} (forward) of ann on ops1, at work, or cut off" in shown
    )


def test_a_run_without_an_end_was_taken_over_or_its_end_is_lost():
    third = "20261101T120000-cccc"
    events = [claimed(1, FIRST, 1), claimed(2, SECOND, 2, FIRST), claimed(3, third, 3)]
    shown = history.lines(history.runs({"b1": node(*events)}, CLUSTER))
    assert shown[1].endswith(f"taken over by run {SECOND}") and shown[2].endswith("its end is in no journal")


def test_turns_of_a_run_whose_claim_is_in_no_journal():
    (run,) = history.runs({"b1": node(turn(5, FIRST, "b1"))}, CLUSTER)
    assert (run.user, run.number, run.since) == (None, None, 5)
    assert "(?) of ? on ?" in history.lines([run])[1]


def test_no_journal_at_all():
    assert history.runs({"b1": {}}, CLUSTER) == []
    assert history.lines([]) == ["  history: no host's journal tells of a run"]


def test_journals_that_agree_with_the_hosts(nodes):
    evidence = [{"t": 220, "host": "b2", "turn": f"{SECOND}/zk_migration/b2", "outcome": "done"}]
    assert history.contradictions(nodes, CLUSTER, evidence) == []
    assert history.contradictions({"b1": {"reached": False, "journals": None}}, CLUSTER, []) == []


def test_what_does_not_agree_is_said(nodes):
    def doubts(change, evidence=()):
        changed = copy.deepcopy(nodes)
        change(changed["b2"])
        told = history.contradictions(changed, CLUSTER, evidence)
        assert all(one.endswith(COUNTS) for one in told)
        return [one[: -len(COUNTS)] for one in told]

    def journal(b2):
        return b2["journals"][CLUSTER]

    lacks = f"the journal of b2 lacks what run {SECOND} did"
    assert doubts(lambda b2: journal(b2).update(torn=1)) == ["1 line of b2's journal cannot be read"]
    assert doubts(lambda b2: journal(b2)["events"].pop()) == [lacks]
    assert doubts(lambda b2: b2.update(journals={})) == [lacks]
    assert (
        "brought it into mode zk_migration, its file starts it in mode zk:"
        in doubts(lambda b2: b2.update(next="zk"))[0]
    )
    lost = {"t": 300, "host": "b2", "turn": "r/kraft/b2", "outcome": "done"}
    assert doubts(lambda b2: None, [lost]) == ["the journal of b2 lacks what run r did"]
    assert doubts(lambda b2: None, [lost, {**lost, "host": "b1"}]) == ["the journal of b1, b2 lacks what run r did"]
    assert doubts(lambda b2: None, [{**lost, "outcome": "died"}]) == [], "a worker that died wrote nothing"
    assert doubts(lambda b2: None, [{**lost, "t": 50}]) == [], "older than the journal"
