# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The points at which a run is killed, and how many brokers were down at the same time."""

from __future__ import annotations

from tests.system.crash import points, procedures

BROKERS, CONTROLLERS = ["b2", "b1"], ["c1"]


ROLLS = ("restart zk_migration ", "restart kraft ", "restart controller_final ")


def test_every_event_has_both_sides_once_except_restarts_in_a_roll():
    expected = points.expected(procedures.MIGRATION, BROKERS, [*CONTROLLERS, "c2"])
    assert len(expected) == len(set(expected))
    sides = {side: {point.partition(" ")[2] for point in expected if point.startswith(side)} for side in points.SIDES}
    once = sides["before"] ^ sides["after"]
    assert once == {event for events in sides.values() for event in events if event.startswith(ROLLS)}
    for roll in ROLLS:  # each node of a roll has one side, and each roll both
        assert [len([event for event in events if event.startswith(roll)]) for events in sides.values()] == [1, 1]


def test_gate_that_admissions_open_has_no_points():
    assert not [
        point
        for point in points.expected(procedures.MIGRATION, BROKERS, CONTROLLERS)
        if point.endswith(" before_kraft")
    ]


def test_migration_has_no_points_of_a_rollback():
    expected = " ".join(points.expected(procedures.MIGRATION, BROKERS, CONTROLLERS))
    assert "revert" not in expected and "restart zk " not in expected
    assert (
        "gate after_finalize" in expected
        and "restart controller_final c1" in expected
        and "restart controller c1" in expected
    )


def test_events_of_a_migration_s_journal_are_points():
    expected = points.expected(procedures.MIGRATION, BROKERS, CONTROLLERS)
    events = [
        ("event", "begun", {"user": "ops"}),
        ("phase", "dual_write", {}),
        ("gate", "after_copy", {"result": "pass"}),
        ("event", "admitted", {"restart_kind": "kraft", "hosts": ["b2"]}),
        ("event", "admitted", {"restart_kind": "controller_final", "hosts": ["c1"]}),
        ("restart", "zk_migration", {"host": "b1"}),
        ("restart", "controller", {"host": "c1"}),
        ("restart", "controller_final", {"host": "c1"}),
    ]
    for kind, name, fields in events:
        assert f"before {points.of_event(kind, name, fields)}" in expected


def test_events_of_a_rollback_s_journal_are_points():
    expected = points.expected(procedures.ROLLBACK, BROKERS, CONTROLLERS)
    assert len(expected) == len(set(expected)) and not [
        point for point in expected if "finalize" in point or "restart controller" in point
    ]
    events = [
        ("event", "ZooKeeper controller restored", {"elected": 1}),
        ("phase", "reverting", {}),
        ("gate", "after_revert", {"result": "pass"}),
        ("event", "admitted", {"restart_kind": "zk", "hosts": ["b2"]}),
        ("restart", "hybrid", {"host": "b1"}),
        ("event", "masked", {"host": "c1", "service": "kafka-controller"}),
        ("event", "wiped", {"host": "c1", "emptied": []}),
    ]
    for kind, name, fields in events:
        assert f"before {points.of_event(kind, name, fields)}" in expected


def test_expected_point_that_was_not_hit_is_missed():
    journal = [{"kind": "gate", "name": "after_copy"}, {"kind": "restart", "name": "kraft", "host": "b2"}]
    wanted = ["before gate after_copy", "after restart kraft b2", "after restart kraft b1"]
    assert points.missed(wanted, wanted, journal, at_random=False) == []
    assert points.missed(wanted, wanted[:1], journal, at_random=False) == wanted[:0:-1]
    # a crash at a random moment can suppress the record of a restart
    assert points.missed(wanted, wanted[:1], journal, at_random=True) == [wanted[1]]
    assert points.missed(wanted, wanted[1:], journal, at_random=True) == [wanted[0]]


def test_most_down_counts_brokers_that_are_down_at_the_same_time():
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
