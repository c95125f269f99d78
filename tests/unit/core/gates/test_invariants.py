# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The conditions of every gate and admission, on recorded clusters: healthy ones have them, each change breaks one."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import admission, gates, invariants
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase

from tests.unit.core import recorded
from tests.unit.core.gates.test_gates import CLEAN

MIN_ISR = recorded.facts("zk_preflight")["min_isr"]
FORWARD = [name for name in phase.FORWARD if name in CLEAN]


def reading(facts, node=None, **more):
    quorum = more.pop("quorum", gates.expected_voters("before_controllers", facts))
    restart = admission.restart_from_facts(facts, node) if node else None
    return invariants.Reading(facts, phase.detect(facts).phase, MIN_ISR, quorum, node=restart, **more)


@pytest.mark.parametrize("name", FORWARD)
def test_a_recorded_cluster_without_a_fault_breaks_no_condition(name):
    facts = recorded.facts(CLEAN[name])
    but = ("I4",) if name == "copying" else ()  # recorded while replicas caught up after the last restart
    assert invariants.find_broken(reading(facts), but) == [] and invariants.find_lasting(reading(facts)) == []


def only(reasons):
    (reason,) = reasons
    return reason


# I1: one controller --------------------------------------------------------------------------------------------------


def test_a_controller_that_cannot_write_is_none():
    facts = recorded.facts("zk")
    facts["zookeeper"]["controller_epoch"]["mzxid"] = facts["zookeeper"]["controller"]["czxid"] + 5
    assert "is the controller but can write nothing" in only(invariants.find_broken(reading(facts)))
    assert "zookeeper-shell.sh" in only(invariants.find_broken(reading(facts)))


def test_a_controller_whose_broker_is_not_alive_is_none():
    facts = recorded.facts("zk")
    facts["zookeeper"]["controller"]["broker_id"] = 9
    assert "broker 9 owns /controller" in only(invariants.find_broken(reading(facts)))


def test_a_quorum_without_a_leader():
    facts = recorded.facts("dual_write")
    facts["quorum"] = {"reached": False, "error": "c1: NOT_LEADER"}
    assert only(invariants.find_broken(reading(facts))) == "the quorum has no leader: c1: NOT_LEADER (QS-GATE-008)"
    assert invariants.find_broken(reading(facts, accepted=[])) == []  # it may be why there is a rollback


def test_a_leader_that_does_not_write_to_zookeeper():
    facts = recorded.facts("dual_write")
    facts["zookeeper"]["controller"]["broker_id"] = 103
    reason = only(invariants.find_broken(reading(facts)))
    assert reason.startswith("controller 102 leads the quorum, and /controller in ZooKeeper is of 103")


def test_a_leader_of_an_old_epoch():
    facts = recorded.facts("dual_write")
    facts["nodes"]["c3"]["metadata_log"]["last_epoch"] = 99
    assert "leads in epoch 8, a controller's metadata log has epoch 99" in only(invariants.find_broken(reading(facts)))


# I2: registrations ---------------------------------------------------------------------------------------------------


def test_a_broker_that_the_quorum_does_not_know():
    facts = recorded.facts("brokers_joining_2")
    for node in phase.controllers(facts).values():
        del node["metadata_log"]["brokers"]["5"]
    assert only(invariants.find_broken(reading(facts))).startswith("broker 5 runs in migration or KRaft mode")
    host = next(host for host, node in facts["nodes"].items() if node["node_id"] == 5)
    assert invariants.find_broken(reading(facts, host)) == []  # its own restart is the remedy


# I3: identity --------------------------------------------------------------------------------------------------------


def test_a_log_directory_of_another_cluster():
    facts = recorded.facts("zk")
    facts["nodes"]["b2"]["log_dirs"][0]["meta"]["cluster.id"] = "other"
    assert "other in b2: " in only(invariants.find_broken(reading(facts)))


def test_two_nodes_with_one_id():
    facts = recorded.facts("dual_write")
    facts["nodes"]["c2"]["node_id"] = facts["nodes"]["c1"]["node_id"]
    assert "c1, c2 have the same node id, 101 (QS-GATE-010)" in invariants.find_broken(reading(facts))


@pytest.mark.parametrize("accepted", [None, []])
def test_a_broker_outside_of_the_inventory(accepted):
    facts = recorded.facts("hybrid")
    facts["zookeeper"]["broker_ids"]["77"] = {}
    facts["topics"]["brokers"]["78"] = "x:1"
    reason = only(invariants.find_broken(reading(facts, accepted=accepted)))
    assert reason == "broker 77, 78 is in the cluster and not in the inventory. Add its host, or stop it (QS-GATE-010)"


def test_a_voter_outside_of_the_inventory():
    facts = recorded.facts("dual_write")
    facts["quorum"]["voters"].append({**facts["quorum"]["voters"][0], "id": 104})
    assert only(invariants.find_broken(reading(facts))).startswith(
        "voter 104 is in the cluster and not in the inventory"
    )


def test_an_excluded_host_and_a_dead_broker_in_old_metadata_are_not_foreign():
    facts = recorded.facts("hybrid")
    facts["excluded"] = {"b9": {"role": "broker", "node_id": 77}}
    facts["zookeeper"]["broker_ids"]["77"] = {}
    assert invariants.find_broken(reading(facts)) == []
    facts = recorded.facts("reverting_controllers_down")
    facts["topics"]["brokers"]["77"] = "x:1"
    assert invariants.one_cluster(reading(facts, accepted=[])) == []


def test_identity_is_required_even_for_the_start_of_a_node_that_is_down():
    facts = recorded.down(recorded.facts("hybrid"), "b1")
    facts["nodes"]["b1"]["service"].update(active_state="failed")
    facts["topics"] = {"reached": False, "error": "no broker answers"}
    assert invariants.find_broken(reading(facts, "b1")) == []
    facts["zookeeper"]["broker_ids"]["77"] = {}
    assert "broker 77 is in the cluster" in only(invariants.find_broken(reading(facts, "b1")))


# I4: no partition lost -----------------------------------------------------------------------------------------------


def with_stray(name):
    facts = recorded.facts(name)
    topic, numbers = next(iter(facts["topics"]["partitions"].items()))
    number, partition = next(iter(numbers.items()))
    host = next(host for host, node in facts["nodes"].items() if node["node_id"] == partition["replicas"][0])
    facts["nodes"][host]["log_dirs"][0]["stray"] = [f"{topic}-{number}.{'0a1b' * 8}-stray"]
    return facts


def test_a_stray_directory_of_an_assigned_partition_closes_at_once():
    facts = with_stray("hybrid_1_kraft")
    reason = only(invariants.find_lasting(reading(facts)))
    assert "did not find these directories assigned to it when it started" in reason and "-stray DIRECTORY" in reason
    assert invariants.find_broken(reading(facts)) == [reason]


def test_a_rollback_may_accept_stray_directories():
    facts = with_stray("hybrid_1_kraft")
    _reason, hint = invariants.find_lasting(reading(facts, accepted=[]))
    assert invariants.find_lasting(reading(facts, accepted=[hint.rpartition("=")[2].split()[0]])) == []


def test_an_offline_partition():
    facts = recorded.facts("dual_write")
    facts["topics"]["partitions"]["orders"] = {"0": {"leader": -1, "replicas": [1, 2, 5], "isr": []}}
    assert "1 partition offline: orders-0 (QS-GATE-005)" in invariants.find_broken(reading(facts))


# I5: caught up -------------------------------------------------------------------------------------------------------


def caught_up():
    """Return facts in which every voter and broker has caught up now."""
    facts = recorded.facts("dual_write")
    for replica in facts["quorum"]["voters"] + facts["quorum"]["observers"]:
        replica["caught_up_ms"] = 1_795_000_000_000
    return facts


def test_a_broker_that_trails_keeps_the_next_one_up_and_not_itself():
    facts = caught_up()
    observer = next(known for known in facts["quorum"]["observers"] if known["id"] == 5)
    observer["caught_up_ms"] -= 60_000
    assert only(invariants.find_broken(reading(facts, "b1"))).startswith("broker 5 has not caught up")
    host = next(host for host, node in facts["nodes"].items() if node["node_id"] == 5)
    assert invariants.find_broken(reading(facts, host)) == []


def test_the_leaders_clock_counts_when_the_leader_is_to_be_restarted():
    facts = caught_up()
    leader = next(host for host, node in facts["nodes"].items() if node["node_id"] == facts["quorum"]["leader_id"])
    facts["quorum"]["observers"][0]["caught_up_ms"] = -1
    assert "has not caught up with the quorum's leader since" in only(invariants.find_broken(reading(facts, leader)))


# I6: credentials -----------------------------------------------------------------------------------------------------


def with_losses(name, **losses):
    facts = recorded.facts(name)
    for node in phase.controllers(facts).values():
        node["metadata_log"]["scram_losses"] = {"restart": {}, "new": {}, **losses}
    return facts


def test_a_broker_that_would_load_a_removal_is_not_restarted_in_kraft_mode():
    facts = with_losses("hybrid", new={"SCRAM-SHA-256": ["alice"]})
    brokers = [host for host, node in facts["nodes"].items() if node["running"] == "zk_migration"]
    assert only(invariants.find_lasting(reading(facts))).startswith(
        f"{', '.join(sorted(brokers))} would lose all SCRAM"
    )
    reason = only(invariants.find_lasting(reading(facts, brokers[0])))
    assert reason.startswith(f"{brokers[0]} would lose all SCRAM-SHA-256 credentials") and "removed: alice." in reason
    controller = next(iter(phase.controllers(facts)))
    assert invariants.find_lasting(reading(facts, controller)) == []


def test_a_controller_loads_its_own_log():
    facts = with_losses("dual_write")
    first, other = list(phase.controllers(facts))[:2]
    facts["nodes"][first]["metadata_log"]["scram_losses"]["restart"] = {"SCRAM-SHA-512": ["bob"]}
    assert only(invariants.find_lasting(reading(facts, first))).startswith(f"{first} would lose all SCRAM-SHA-512")
    assert invariants.find_lasting(reading(facts, other)) == []


def test_a_rollback_is_not_kept_from_its_restarts_by_credentials():
    facts = with_losses("hybrid", new={"SCRAM-SHA-256": ["alice"]})
    assert invariants.find_lasting(reading(facts, accepted=[])) == []
