# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which moments of a migration are killed at, and how many were down at once."""

from __future__ import annotations

from tools.crash_tests import points, ways

BROKERS, CONTROLLERS = ["b2", "b1"], ["c1"]


ROLLS = ("restart zk_migration ", "restart kraft ", "restart controller_final ")


def test_every_point_has_both_sides_and_stands_once():
    reported = points.expected(ways.FORWARD, BROKERS, [*CONTROLLERS, "c2"])
    assert len(reported) == len(set(reported))
    sides = {side: {one.partition(" ")[2] for one in reported if one.startswith(side)} for side in points.SIDES}
    once = sides["before"] ^ sides["after"]
    assert once == {one for events in sides.values() for one in events if one.startswith(ROLLS)}
    for roll in ROLLS:  # a restart in a roll is recorded once: one side of each node, both of each roll
        assert [len([one for one in events if one.startswith(roll)]) for events in sides.values()] == [1, 1]


def test_a_gate_that_admissions_open_is_not_among_them():
    assert not [one for one in points.expected(ways.FORWARD, BROKERS, CONTROLLERS) if one.endswith(" before_kraft")]


def test_the_way_back_is_not_among_them():
    reported = " ".join(points.expected(ways.FORWARD, BROKERS, CONTROLLERS))
    assert "revert" not in reported and "restart zk " not in reported
    assert (
        "gate after_finalize" in reported
        and "restart controller_final c1" in reported
        and "restart controller c1" in reported
    )


def test_the_points_are_what_the_journal_s_events_say():
    reported = points.expected(ways.FORWARD, BROKERS, CONTROLLERS)
    events = [
        ("event", "begun", {"user": "ops"}),
        ("phase", "dual_write", {}),
        ("gate", "after_copy", {"result": "pass"}),
        ("event", "admitted", {"mode": "kraft", "hosts": ["b2"]}),
        ("event", "admitted", {"mode": "controller_final", "hosts": ["c1"]}),
        ("restart", "zk_migration", {"host": "b1"}),
        ("restart", "controller", {"host": "c1"}),
        ("restart", "controller_final", {"host": "c1"}),
    ]
    for kind, name, fields in events:
        assert f"before {points.of_event(kind, name, fields)}" in reported


def test_the_way_back_has_points_of_its_own():
    reported = points.expected(ways.BACK, BROKERS, CONTROLLERS)
    assert len(reported) == len(set(reported)) and not [
        one for one in reported if "finalize" in one or "restart controller" in one
    ]
    events = [
        ("event", "handed back", {"elected": 1}),
        ("phase", "reverting", {}),
        ("gate", "after_revert", {"result": "pass"}),
        ("event", "admitted", {"mode": "zk", "hosts": ["b2"]}),
        ("restart", "hybrid", {"host": "b1"}),
        ("event", "masked", {"host": "c1", "service": "kafka-controller"}),
        ("event", "wiped", {"host": "c1", "emptied": []}),
    ]
    for kind, name, fields in events:
        assert f"before {points.of_event(kind, name, fields)}" in reported


def test_a_point_that_was_passed_and_not_hit_is_missed():
    journal = [{"kind": "gate", "name": "after_copy"}, {"kind": "restart", "name": "kraft", "host": "b2"}]
    wanted = ["before gate after_copy", "after restart kraft b2", "after restart kraft b1"]
    assert points.missed(wanted, wanted, journal, at_random=False) == []
    assert points.missed(wanted, wanted[:1], journal, at_random=False) == wanted[:0:-1]
    # a kill at random can take the record of a restart away, and only that
    assert points.missed(wanted, wanted[:1], journal, at_random=True) == [wanted[1]]
    assert points.missed(wanted, wanted[1:], journal, at_random=True) == [wanted[0]]


def test_how_many_were_down_at_once():
    def at(t, kind, host):
        return {"t": t, "kind": kind, "host": host}

    one_after_the_other = [at(1, "stopping", "b1"), at(3, "started", "b1"), at(4, "stopping", "b2")]
    assert points.most_down(one_after_the_other, BROKERS) == 1
    assert points.most_down([*one_after_the_other, at(5, "exited", "b1")], BROKERS) == 2
    assert points.most_down([*one_after_the_other, at(5, "exited", "c1")], BROKERS) == 1
    assert {host: len(times) for host, times in points.starts(one_after_the_other, BROKERS).items()} == {
        "b1": 1,
        "b2": 0,
    }
