# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must exist after the changes, and the differences that are summary."""

from __future__ import annotations

from tests.system.demo import ledger

KINDS = ("topic", "config")
PHASES = [(0.0, "zk"), (10.0, "brokers_joining"), (20.0, "copying"), (22.0, "hybrid"), (30.0, "dual_write")]


def line(
    t: float, kind: str, action: str, name: str, value: object = None, outcome: str = "done", tries: int = 1
) -> dict:
    return {
        "t": t,
        "end": t + 0.5,
        "kind": kind,
        "action": action,
        "name": name,
        "value": value,
        "outcome": outcome,
        "tries": tries,
        "error": None if outcome == "done" else "INVALID_REQUEST: no",
    }


LINES = [
    line(1, "topic", "make", "churn.1", 1),
    line(2, "config", "make", "churn.1", "5"),
    line(11, "topic", "make", "churn.2", 1),
    line(12, "topic", "alter", "churn.2", 2),
    line(21, "config", "make", "churn.2", "7"),
    line(23, "topic", "remove", "churn.1"),
]


def test_last_write_counts_and_a_config_goes_with_its_topic():
    wanted, unsure = ledger.expected(LINES, KINDS)
    assert wanted == {"topic": {"churn.2": 2}, "config": {"churn.2": "7"}}
    assert unsure == {"topic": set(), "config": set()}


def test_each_difference_is_summary():
    wanted, unsure = ledger.expected(LINES, KINDS)
    same = {"topic": {"churn.2": 2}, "config": {"churn.2": "7"}}
    assert ledger.differences(wanted, unsure, same, "brokers") == []
    other = {"topic": {"churn.1": 1, "churn.2": 1}, "config": {}}
    assert ledger.differences(wanted, unsure, other, "ZooKeeper") == [
        "ZooKeeper: topic churn.1 exists as 1, although it was removed",
        "ZooKeeper: topic churn.2 is 1, written as 2",
        "ZooKeeper: config churn.2 is missing, written as 7",
    ]


def test_refused_change_is_a_problem_and_its_object_is_not_compared():
    lines = [*LINES, line(31, "topic", "make", "churn.3", outcome="refused")]
    wanted, unsure = ledger.expected(lines, KINDS)
    assert unsure["topic"] == {"churn.3"}
    found = {"topic": {"churn.2": 2, "churn.3": 1}, "config": {"churn.2": "7"}}
    assert ledger.differences(wanted, unsure, found, "brokers") == []
    summary = ledger.summary(lines, KINDS, PHASES, [])
    assert "topic make churn.3 was refused: INVALID_REQUEST: no" in summary["problems"]


def test_change_counts_in_the_phase_in_which_it_took_effect():
    counts = ledger.by_phase(LINES, PHASES)
    assert counts["zk"]["topic"] == {"make": 1, "alter": 0, "remove": 0}
    assert counts["brokers_joining"]["topic"] == {"make": 1, "alter": 1, "remove": 0}
    assert counts["copying"] == {"config": {"make": 1, "alter": 0, "remove": 0}}
    assert counts["hybrid"]["topic"]["remove"] == 1


def test_phase_without_a_change_is_a_problem():
    check = {"where": "brokers", "objects": 2, "differences": ["brokers: x"], "executed_late": [LINES[0]]}
    summary = ledger.summary(LINES, KINDS, PHASES, [check])
    assert summary["while_copying"] == 1
    assert "brokers_joining: no topic had the actions remove" in summary["problems"]
    assert "finalized: no config had the actions make, alter, remove" in summary["problems"]
    assert "brokers: x" in summary["problems"]
    assert summary["checked"] == [{"where": "brokers", "objects": 2, "differences": 1, "executed_late": 1}]


def test_initial_copy_without_a_change_is_a_problem():
    summary = ledger.summary(LINES[:4], KINDS, PHASES, [])
    assert "no metadata change was in progress during the initial copy" in summary["problems"]


def test_a_request_without_an_answer_may_be_executed_after_a_later_change():
    unanswered = {**line(1, "config", "make", "churn.1", "5", tries=2), "error": "RequestTimedOutError: timed out"}
    lines = [unanswered, line(13, "config", "alter", "churn.1", "9")]
    found = {"topic": {}, "config": {"churn.1": "5"}}
    assert ledger.executed_late(lines, found) == [unanswered]
    for others in (
        [line(1, "config", "make", "churn.1", "5"), lines[1]],  # answered
        [{**unanswered, "error": "NotControllerError"}, lines[1]],
        [unanswered, {**lines[1], "t": 1 + ledger.LATE_S + 1}],  # too long after it
        [unanswered, {**lines[1], "value": "5"}],
        [{**unanswered, "outcome": "refused"}],
    ):
        assert ledger.executed_late(others, found) == []
    for value in ("4", "9"):
        assert ledger.executed_late(lines, {"topic": {}, "config": {"churn.1": value}}) == []
