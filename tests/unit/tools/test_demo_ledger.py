# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must be there after the changes, and what is told when it is not."""

from __future__ import annotations

from tools.demo import ledger

KINDS = ("topic", "config")
PHASES = [(0.0, "zk"), (10.0, "brokers_joining"), (20.0, "copying"), (22.0, "hybrid"), (30.0, "dual_write")]


def line(
    t: float, kind: str, action: str, name: str, value: object = None, outcome: str = "done", tries: int = 1
) -> dict:
    heard = "refused" if outcome != "done" else None
    return {
        "t": t,
        "end": t + 0.5,
        "kind": kind,
        "action": action,
        "name": name,
        "value": value,
        "outcome": outcome,
        "tries": tries,
        "heard": heard,
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


def test_each_difference_is_told():
    wanted, unsure = ledger.expected(LINES, KINDS)
    same = {"topic": {"churn.2": 2}, "config": {"churn.2": "7"}}
    assert ledger.differences(wanted, unsure, same, "brokers") == []
    other = {"topic": {"churn.1": 1, "churn.2": 1}, "config": {}}
    assert ledger.differences(wanted, unsure, other, "ZooKeeper") == [
        "ZooKeeper: topic churn.1 is there as 1, though it was removed",
        "ZooKeeper: topic churn.2 is 1, written as 2",
        "ZooKeeper: config churn.2 is missing, written as 7",
    ]


def test_what_was_refused_for_good_is_not_compared_but_told():
    lines = [*LINES, line(31, "topic", "make", "churn.3", outcome="refused")]
    wanted, unsure = ledger.expected(lines, KINDS)
    assert unsure["topic"] == {"churn.3"}
    found = {"topic": {"churn.2": 2, "churn.3": 1}, "config": {"churn.2": "7"}}
    assert ledger.differences(wanted, unsure, found, "brokers") == []
    reported = ledger.summary(lines, KINDS, PHASES, [])
    assert "topic make churn.3 was refused: refused" in reported["problems"]


def test_phases_by_the_moment_of_effect():
    counts = ledger.by_phase(LINES, PHASES)
    assert counts["zk"]["topic"] == {"make": 1, "alter": 0, "remove": 0}
    assert counts["brokers_joining"]["topic"] == {"make": 1, "alter": 1, "remove": 0}
    assert counts["copying"] == {"config": {"make": 1, "alter": 0, "remove": 0}}
    assert counts["hybrid"]["topic"]["remove"] == 1


def test_phase_without_a_change_is_a_problem():
    reported = ledger.summary(LINES, KINDS, PHASES, [{"where": "brokers", "objects": 2, "differences": ["brokers: x"]}])
    assert reported["while_copying"] == 1
    assert "no topic saw remove in brokers_joining" in reported["problems"]
    assert "no config saw make, alter, remove in finalized" in reported["problems"]
    assert "brokers: x" in reported["problems"]
    assert reported["checked"] == [{"where": "brokers", "objects": 2, "differences": 1}]


def test_copy_that_nothing_changed_under_is_a_problem():
    reported = ledger.summary(LINES[:4], KINDS, PHASES, [])
    assert "no metadata change was under way while the copy ran" in reported["problems"]
