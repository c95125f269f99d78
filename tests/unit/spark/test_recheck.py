# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settling: what moves settles, what stays is proven, what cannot be decided says why. Time stands still here."""

from __future__ import annotations

import pytest
from quorumshift_spark import normal_form as form
from quorumshift_spark.compare import DIFFER, LEFT_ONLY, MATCH
from quorumshift_spark.recheck import STABLE, Fence, settle
from quorumshift_spark.rules import LOGS, SERVED, SINCE, ZOOKEEPER_LOG
from quorumshift_spark.views import Absent, Problem, Statement

from tests.unit.spark.realistic import BASELINE, BROKER, LOG, ZOOKEEPER, comparisons

F = 500
KEY = ("topic", '["t"]')


def zk(topic_id, zxid=F):
    return form.topic("t", topic_id, {"zxid": zxid})


def log(topic_id, offset=10):
    return form.topic("t", topic_id, {"offset": offset})


def served(topic_id):
    return form.topic("t", topic_id)


class Views:
    """Views that give one answer a round, the last one for ever."""

    def __init__(self, **answers):
        self.answers = {name.replace("_1", ":1"): list(found) for name, found in answers.items()}
        self.asked = []

    def reread(self):
        def of(name):
            def read(keys):
                assert set(keys) == {KEY}
                self.asked.append(name)
                found = self.answers[name]
                side = found.pop(0) if len(found) > 1 else found[0]
                return {KEY: side}, Statement({}, [Problem("x", "y")] if side == "problem" else [])

            return read

        return {name: of(name) for name in self.answers}


def run(views, first, relation, fences, rounds=6, baselines=None, **kinds_of):
    chosen = [c for c in comparisons() if c.relation in relation]
    remaining = list(fences)
    slept = []
    settled = settle(
        {KEY: first},
        chosen,
        views.reread(),
        baselines or {},
        lambda: remaining.pop(0) if len(remaining) > 1 else remaining[0],
        rounds,
        3.0,
        slept.append,
    )
    assert slept == [3.0] * (len(settled.rounds) - 1)
    outcomes = {c.relation: outcome for c, outcome in settled.outcomes[KEY].items()}
    return settled, outcomes


STILL = [Fence(F, False)]


def test_zookeeper_that_was_not_changed_after_the_fence_is_proven_at_once():
    views = Views(zookeeper=[zk("A", F)], metadata_log=[log("B")])
    settled, outcomes = run(views, {ZOOKEEPER: zk("A"), LOG: log("B")}, [ZOOKEEPER_LOG], STILL)
    assert outcomes[ZOOKEEPER_LOG].outcome == DIFFER
    assert not settled.unsettled
    assert [(r.keys, r.settled, r.proven) for r in settled.rounds] == [(1, 0, 1)]


def test_zookeeper_that_was_changed_after_the_fence_is_not_settled_by_the_same_cut():
    views = Views(zookeeper=[zk("A", F + 1)], metadata_log=[log("B")])
    settled, outcomes = run(views, {ZOOKEEPER: zk("A", F + 1), LOG: log("B")}, [ZOOKEEPER_LOG], STILL)
    ((place, why),) = settled.unsettled.items()
    assert place[0] == KEY and "after the log was cut" in why
    assert len(settled.rounds) == 6
    assert outcomes[ZOOKEEPER_LOG].outcome == DIFFER


def test_no_fence_proves_nothing_and_says_why():
    views = Views(zookeeper=[zk("A", 1)], metadata_log=[log("B")])
    fences = [Fence(None, False, "/migration stands still")]
    settled, dummy = run(views, {ZOOKEEPER: zk("A", 1), LOG: log("B")}, [ZOOKEEPER_LOG], fences)
    assert "/migration stands still" in next(iter(settled.unsettled.values()))


def test_another_cut_settles_what_had_only_moved():
    views = Views(zookeeper=[zk("A", F + 1)], metadata_log=[log("A", 12)])
    fences = [Fence(F + 5, True)]
    settled, outcomes = run(views, {ZOOKEEPER: zk("A", F + 1), LOG: log("B")}, [ZOOKEEPER_LOG], fences)
    assert outcomes[ZOOKEEPER_LOG].outcome == MATCH
    assert [(r.settled, r.proven) for r in settled.rounds] == [(1, 0)]


def test_a_log_that_stays_the_same_over_cuts_proves_zookeeper_wrong_though_it_moves():
    """A parent's pzxid moves with every other topic, so that an absence is never before the fence."""
    views = Views(zookeeper=[Absent({"zxid": F + n}) for n in range(1, 9)], metadata_log=[log("B")])
    settled, outcomes = run(views, {ZOOKEEPER: Absent({}), LOG: log("B")}, [ZOOKEEPER_LOG], [Fence(F, True)])
    assert outcomes[ZOOKEEPER_LOG].differences
    assert not settled.unsettled
    assert len(settled.rounds) == STABLE


def test_vanished_on_both_sides_is_settled():
    views = Views(zookeeper=[Absent({"zxid": F})], metadata_log=[Absent({"offset": 9})])
    settled, outcomes = run(views, {ZOOKEEPER: zk("A"), LOG: log("B")}, [ZOOKEEPER_LOG], [Fence(F, True)])
    assert outcomes[ZOOKEEPER_LOG].outcome is None
    assert settled.sides[KEY][ZOOKEEPER] == Absent({"zxid": F})


def zookeeper_and_broker():
    return [c for c in comparisons() if c.relation == SERVED]


def test_broker_that_catches_up_is_no_difference(monkeypatch):
    views = Views(metadata_log=[log("A")], broker_1=[served("B"), served("A")])
    settled, outcomes = run(views, {LOG: log("A"), BROKER: served("B")}, [SERVED], [Fence(None, True)])
    assert outcomes[SERVED].outcome == MATCH
    assert len(settled.rounds) == 2


def test_stale_broker_is_proven_by_stable_readings_over_fresh_cuts():
    views = Views(metadata_log=[log("A")], broker_1=[served("B")])
    settled, outcomes = run(views, {LOG: log("A"), BROKER: served("B")}, [SERVED], [Fence(None, True)])
    assert outcomes[SERVED].outcome == DIFFER
    assert len(settled.rounds) == STABLE and not settled.unsettled


def test_stale_broker_is_proven_by_zookeeper_agreeing_with_an_old_cut():
    views = Views(zookeeper=[zk("A", F)], metadata_log=[log("A")], broker_1=[served("B")])
    first = {ZOOKEEPER: zk("A"), LOG: log("A"), BROKER: served("B")}
    settled, outcomes = run(views, first, [SERVED, ZOOKEEPER_LOG], STILL)
    assert outcomes[SERVED].outcome == DIFFER and outcomes[ZOOKEEPER_LOG].outcome == MATCH
    assert not settled.unsettled


def test_broker_against_an_old_cut_alone_is_not_decided():
    views = Views(metadata_log=[log("A")], broker_1=[served("B")])
    settled, dummy = run(views, {LOG: log("A"), BROKER: served("B")}, [SERVED], [Fence(None, False)])
    assert "after the log was cut" in next(iter(settled.unsettled.values()))


def test_broker_that_moves_all_the_time_is_not_decided():
    views = Views(metadata_log=[log("A")], broker_1=[served(str(n)) for n in range(9)])
    settled, dummy = run(views, {LOG: log("A"), BROKER: served("B")}, [SERVED], [Fence(None, True)])
    assert "readings in a row" in next(iter(settled.unsettled.values()))
    assert len(settled.rounds) == 6


def test_baseline_is_explained_by_an_absence_that_was_read_again():
    baselines = {BASELINE: {"zxid": F}}
    for since, expected in ((F + 1, MATCH), (F, LEFT_ONLY)):
        views = Views(zookeeper=[Absent({"zxid": since})])
        first = {BASELINE: zk("A"), ZOOKEEPER: Absent({})}
        settled, outcomes = run(views, first, [SINCE], STILL, baselines=baselines)
        assert outcomes[SINCE].outcome == expected
        assert len(settled.rounds) == 1 and not settled.unsettled


def test_logs_keep_their_first_reading():
    views = Views(metadata_log=[log("A", 20)])
    first = {LOG: log("A"), f"{LOG}:102": log("B")}
    settled, outcomes = run(views, first, [LOGS], [Fence(None, True)])
    assert outcomes[LOGS].outcome == DIFFER
    assert outcomes[LOGS].differences[0].sides == {LOG: '"A"', f"{LOG}:102": '"B"'}
    assert len(settled.rounds) == 1


def test_errors_of_reading_again_come_through():
    def fails(keys):
        raise RuntimeError("gone")

    with pytest.raises(RuntimeError, match="gone"):
        chosen = [c for c in comparisons() if c.relation == ZOOKEEPER_LOG]
        settle({KEY: {}}, chosen, {ZOOKEEPER: fails}, {}, lambda: Fence(F, False), 2, 0.0)


def test_nothing_to_settle_takes_no_round():
    assert settle({}, comparisons(), {}, {}, lambda: pytest.fail("no fence is needed"), 3, 0.0).rounds == []
