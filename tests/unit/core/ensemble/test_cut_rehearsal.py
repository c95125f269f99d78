# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rehearsed cut took, and what must be as before it."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import cut_host, cut_rehearsal

RECORD = {
    "reason": cut_rehearsal.REASON,
    "steps": [
        {"name": name, "at": at}
        for name, at in (
            ("fenced", 100.0),
            ("cut", 100.4),
            ("not serving", 100.45),
            ("read", 100.6),
            ("healed", 102.1),
            (cut_host.OBSERVES, 102.9),
        )
    ],
}
PLAN = {"estimate_s": 9.0, "start_s": 4.5, "deadline_s": 9.0}
SEEN = {"modes": {"s1:2181": "leader"}, "sessions": {"/brokers/ids/1": -5}, "leaders": {"a-0": 1}}
BROKERS = {"b1:9092": {"longest_s": 0.3, "answers": 9}, "b2:9092": {"longest_s": 60.0, "answers": 0}}
HOST = {"server": {"mode": "observer", "observes": True}, "cut": {"rules": 0}}


def test_gaps_count_the_ends_of_the_watch():
    assert cut_rehearsal.find_gap([1.0, 1.5, 4.0], 0.5, 4.25) == cut_rehearsal.Gap(2.5, 3)
    assert cut_rehearsal.find_gap([], 0.0, 3.0) == cut_rehearsal.Gap(3.0, 0)
    assert cut_rehearsal.find_gap([0.5], 0.0, 9.0).longest_s == 8.5


def test_sessions_that_come_back_and_one_that_does_not():
    away = cut_rehearsal.find_return(
        [(0.0, [1, 2, 3]), (1.0, [3]), (2.5, [1, 3]), (3.0, [1, 3])], {"/a": 1, "/b": 2, "/c": 3}
    )
    assert away == {"/a": 1.5, "/b": None, "/c": 0.0}
    # A session of a server with an id above 127 is negative as a number, and is not in `cons`
    assert cut_rehearsal.find_return([(0.0, [(1 << 64) - 5])], {"/a": -5}) == {"/a": 0.0}


def test_times_and_what_a_real_cut_takes():
    times = cut_rehearsal.measure({"z1": RECORD, "z2": {"steps": []}})
    assert times == {"z1": {"cut": 0.4, "not serving": 0.45, "read": 0.6, "healed": 2.1, cut_host.OBSERVES: 2.9}}
    of = cut_rehearsal.compare(PLAN, times)
    assert (of["tasks_s"], of["estimated_tasks_s"], of["expected_s"], of["budget_s"]) == (2.1, 4.5, 6.6, 12.0)
    watched = {"sessions": {"/a": 1.5, "/b": None}, "brokers": BROKERS, "producer": None}
    text = "\n".join(cut_rehearsal.lines(PLAN, times, watched))
    for said in (
        "1 of 2 sessions",
        "1 of 2 watched brokers",
        "0.30 s (b1:9092)",
        "a cut takes 6.6 s of the 12.0 s",
        "zk_migrate_rehearse_topic",
    ):
        assert said in text, text


def test_what_the_watch_did_not_see_is_no_success():
    assert cut_rehearsal.find_return([], {"/a": 1}) == {"/a": None}
    assert cut_rehearsal.find_return([(0.0, []), (1.0, [])], {"/a": 1}) == {"/a": None}
    producer = {"topic": "orders", "acknowledged": 0, "failed": 3, "first_error": "denied", "longest_s": 9.0}
    watched = {"sessions": {"/a": 0.0, "/b": None}, "brokers": BROKERS, "producer": producer}
    seen = [finding.seen for finding in cut_rehearsal.check_watched(watched)]
    assert len(seen) == 3 and "session of /b" in seen[0] and "b2:9092 gave no answer" in seen[1] and "denied" in seen[2]
    whole = {"sessions": {"/a": 0.0}, "brokers": {"b1:9092": BROKERS["b1:9092"]}, "producer": None}
    assert cut_rehearsal.check_watched(whole) == []


def test_a_host_that_its_deadline_healed_is_named():
    assert cut_rehearsal.check_ended({"z1": RECORD}) == []
    late = {**RECORD, "reason": "the deadline passed without an order"}
    assert "deadline passed" in cut_rehearsal.check_ended({"z1": late})[0].seen
    short = {**RECORD, "steps": RECORD["steps"][:-1]}
    assert "no time" in cut_rehearsal.check_ended({"z1": short})[0].seen


@pytest.mark.parametrize(
    ("after", "host", "said"),
    [
        ({}, {}, ""),
        ({"modes": {"s1:2181": "follower"}}, {}, "serves as follower"),
        ({"sessions": {}}, {}, "does not exist"),
        ({"sessions": {"/brokers/ids/1": 7}}, {}, "has session 0x7"),
        ({"leaders": {"a-0": 2}}, {}, "leaders of 1 partitions"),
        ({}, {"server": {"mode": "leader", "observes": False}}, "serves as leader"),
        ({}, {"cut": {"rules": 3}}, "has 3 rules"),
    ],
)
def test_what_is_not_as_before_is_named(after, host, said):
    found = cut_rehearsal.check_whole(SEEN, {**SEEN, **after}, {"z1": {**HOST, **host}})
    assert [said in finding.seen for finding in found] == ([True] if said else [])


def test_a_host_refuses_to_be_promoted_in_a_rehearsal():
    worker = cut_host.Worker({"id": "1", "host": "z1", "rehearsed": True})
    worker.record = {"last": 5, "steps": []}
    steps = worker.accept({"zxids": {"z1": 5}})
    assert next(steps) == ("state",)
    with pytest.raises(StopIteration) as refused:
        steps.send("cut")
    assert "rehearsal" in refused.value.value
