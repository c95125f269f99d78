# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stuck leaders, from facts recorded in the restarts to plain mode: b1 is restarted, b2 and b3 are not."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import cluster_health
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.restart import stuck_leaders

from tests.unit.core import recorded

B1, B2, B3 = 1, 2, 5


def held_by(leader, **partitions):
    """Return recorded facts with two more partitions a topic, {topic: (replicas, isr)}, led by `leader`."""
    facts = recorded.facts("reverting_1_plain")
    for topic, (replicas, isr) in partitions.items():
        state = {"leader": leader, "replicas": replicas, "isr": isr}
        facts["topics"]["partitions"][topic] = {"0": state, "1": dict(state)}
    return facts


def detected(facts, **min_isr):
    held = stuck_leaders.find_held_out(facts["nodes"], facts["topics"])
    return stuck_leaders.find_leaders(held, facts["nodes"], min_isr)


def test_a_healthy_cluster_has_no_stuck_leader():
    facts = recorded.facts("reverting_1_plain")
    assert stuck_leaders.find_held_out(facts["nodes"], facts["topics"]) == [] and detected(facts) == []
    assert stuck_leaders.token([]) is None


def test_a_stuck_leader_and_the_effects_of_its_restart():
    facts = held_by(B2, orders=([B1, B2, B3], [B2, B3]), pair=([B2, B1], [B2]))
    (leader,) = detected(facts, orders=2, pair=1)
    assert (leader.host, leader.broker, leader.out) == ("b2", B2, ["b1"])
    assert leader.partitions == ["orders-0", "orders-1", "pair-0", "pair-1"]
    assert leader.alone == ["pair-0", "pair-1"], "their last in-sync replica is the leader itself"
    assert leader.under == ["orders-0", "orders-1"], "one in sync is left, and min.insync.replicas is 2"
    assert detected(facts, orders=1)[0].under == []


def test_the_rest_of_the_cluster_must_be_healthy():
    facts = held_by(B2, orders=([B1, B2, B3], [B2, B3]))
    assert "2 partitions under-replicated: orders-0, orders-1 (QS-GATE-005)" in cluster_health.troubles(
        facts["topics"], {}, [B1, B2, B3]
    )
    held = stuck_leaders.find_held_out(facts["nodes"], facts["topics"])
    rest = stuck_leaders.drop_partitions(facts["topics"], held)
    excused = cluster_health.find_unavoidable(facts["topics"]["partitions"], {})
    assert cluster_health.troubles(rest, {}, [B1, B2, B3], excused, stop=B2) == []
    facts["topics"]["partitions"]["orders"]["1"]["isr"] = [B2]  # b3, in migration mode, is out of sync as well
    rest = stuck_leaders.drop_partitions(facts["topics"], stuck_leaders.find_held_out(facts["nodes"], facts["topics"]))
    assert cluster_health.troubles(rest, {}, [B1, B2, B3]) == ["1 partition under-replicated: orders-1 (QS-GATE-005)"]
    assert len(facts["topics"]["partitions"]["orders"]) == 2, "the facts are unchanged"


@pytest.mark.parametrize(
    ("why", "change"),
    [
        ("the leader was restarted", lambda facts: facts["nodes"]["b2"].update(running="zk")),
        ("the leader is down", lambda facts: facts["nodes"]["b2"].update(running=None)),
        ("the follower was not restarted", lambda facts: facts["nodes"]["b1"].update(running="zk_migration")),
        ("the follower is not in the cluster", lambda facts: facts["topics"]["brokers"].pop("1")),
        ("there is no leader", lambda facts: facts["topics"]["partitions"]["orders"]["0"].update(leader=-1)),
    ],
)
def test_no_leader_is_stuck(why, change):
    facts = held_by(B2, orders=([B1, B2, B3], [B2, B3]))
    del facts["topics"]["partitions"]["orders"]["1"]
    assert detected(facts)
    change(facts)
    assert detected(facts) == [], why


def test_the_leader_with_the_least_effect_goes_first():
    facts = held_by(B2, pair=([B2, B1], [B2]))
    facts["topics"]["partitions"]["other"] = {"0": {"leader": B3, "replicas": [B3, B2, B1], "isr": [B3, B2]}}
    first, second = detected(facts, other=2)
    assert (first.host, first.alone, first.under) == ("b3", [], ["other-0"])
    assert (second.host, second.alone) == ("b2", ["pair-0", "pair-1"])
    assert second.under == ["other-0"], "b2 follows b3 as well"


def test_the_token_is_of_exactly_these_partitions():
    facts = held_by(B2, orders=([B1, B2, B3], [B2, B3]))
    held = stuck_leaders.find_held_out(facts["nodes"], facts["topics"])
    assert stuck_leaders.token(held) == stuck_leaders.token(held[::-1]) != stuck_leaders.token(held[:1])
    assert stuck_leaders.token([held[0]._replace(leader=B3)]) != stuck_leaders.token(held[:1])


def test_announcement_of_the_restart():
    facts = held_by(B2, orders=([B1, B2, B3], [B2, B3]), pair=([B2, B1], [B2]))
    (leader,) = detected(facts, orders=2)
    assert stuck_leaders.announcement(leader, 14.2) == [
        "b2 keeps the replicas of b1 out of sync, though they have all its records, in 4 partitions: orders-0, "
        "orders-1, pair-0, pair-1. The run restarts it next",
        "without a leader while it restarts (about 14 s), since no other replica is in sync: pair-0, pair-1",
        "rejecting acks=all while it restarts (about 14 s): orders-0, orders-1",
    ]
    (leader,) = detected(facts)
    assert (
        len(stuck_leaders.announcement(leader, None)) == 2
        and "while it restarts, since" in stuck_leaders.announcement(leader, None)[1]
    )


def test_why_a_stuck_leader_is_not_restarted():
    (leader,) = detected(held_by(B2, pair=([B2, B1], [B2])))
    (line,) = stuck_leaders.explain_not_proved([leader])
    assert line.startswith("b2 keeps the replicas of b1 out of sync, though") and "lasts 30 s" in line
    assert stuck_leaders.explain_unclean(leader, []) == []
    (line,) = stuck_leaders.explain_unclean(leader, ["pair"])
    assert "b2" in line and "unclean.leader.election.enable=false for pair" in line
