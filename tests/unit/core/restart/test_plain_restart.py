# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which batches may restart in the mode in which they run, over recorded facts."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils import message_ids
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import cluster_health, invariants
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase, transitions
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.restart import batches, plain_restart

from tests.unit.core import recorded

ALL = [1, 2, 5]  # the recorded brokers b1, b2, b3
STOPPED = {"manager": "systemd", "name": "kafka.service", "active": False, "active_state": "failed"}


def cluster(name="finalized", *partitions):
    """Return recorded facts with these (replicas, isr) as the partitions of the topic t."""
    facts = recorded.facts(name)
    for replica in (facts["quorum"].get("voters") or []) + (facts["quorum"].get("observers") or []):
        replica["caught_up_ms"] = 1_795_000_000_000
    facts["topics"]["partitions"] = {
        "t": {
            str(number): {"leader": isr[0] if isr else -1, "replicas": replicas, "isr": isr}
            for number, (replicas, isr) in enumerate(partitions or [(ALL, ALL)])
        }
    }
    return facts


def evaluate(facts, *batch, least=1, accept=(), kind="restart_broker"):
    detected = phase.detect(facts)
    reading = invariants.Reading(facts, detected.phase, {"t": least}, facts["quorum"])
    return batches.evaluate(reading, detected, transitions.KINDS[kind], batch, accept)


def stopped(facts, host):
    recorded.down(facts, host)["nodes"][host]["service"] = STOPPED
    facts["topics"]["brokers"].pop(str(facts["nodes"][host]["node_id"]), None)
    return facts


@pytest.mark.parametrize("name", ["zk", "finalized"])
def test_a_batch_of_a_healthy_cluster_may_be_stopped(name):
    assert evaluate(cluster(name), "b1", "b2") == batches.Verdict([], [], False)


def test_a_node_of_a_cluster_that_never_was_in_zookeeper_mode_may_be_stopped():
    facts = cluster("kraft_native", ([1], [1]))  # recorded with one broker
    assert evaluate(facts, "b1", accept=[plain_restart.token(["t-0"])]) == batches.Verdict([], [], False)


def test_the_whole_batch_counts_against_min_isr():
    facts = cluster()
    assert evaluate(facts, "b1", least=2).troubles == []
    (trouble,) = evaluate(facts, "b1", "b2", least=2).troubles
    assert trouble == (
        "the batch cannot stop at once: t-0 (1 of 3 replicas in sync left, min.insync.replicas 2) (QS-RESTART-003)"
    )


@pytest.mark.parametrize(
    "name", ["hybrid", "hybrid_1_kraft", "dual_write", "finalizing_1", "brokers_joining_1", "controllers_ready"]
)
def test_no_plain_restart_while_a_migration_is_under_way(name):
    facts = recorded.facts(name)
    assert "a migration is under way" in plain_restart.refusal(facts, phase.detect(facts))
    assert evaluate(cluster(name), "b1").troubles[0].startswith("the phase is ")


def test_no_plain_restart_in_an_unknown_phase():
    facts = recorded.facts("migration_stale")
    assert plain_restart.refusal(facts, phase.detect(facts)).startswith("The phase is unknown: ")


def test_a_node_whose_file_would_change_its_mode_is_not_stopped():
    facts = cluster("zk")
    facts["nodes"]["b1"]["next"] = "zk_migration"
    assert any(
        text.startswith("b1 runs in mode zk, its file has mode zk_migration") for text in evaluate(facts, "b1").troubles
    )
    assert evaluate(facts, "b2").troubles == []


def test_no_batch_is_stopped_while_a_broker_outside_of_it_is_down():
    troubles = evaluate(stopped(cluster("finalized", (ALL, [1, 2])), "b3"), "b1").troubles
    assert any(text.startswith("b3 does not answer") for text in troubles)
    assert "1 partition under-replicated: t-0 (QS-GATE-005)" in troubles


def test_no_batch_is_stopped_while_one_of_its_own_replicas_is_out_of_sync():
    assert (
        "1 partition under-replicated: t-0 (QS-GATE-005)"
        in evaluate(cluster("finalized", (ALL, [2, 5])), "b1").troubles
    )


def test_a_batch_that_is_down_is_only_started():
    facts = stopped(stopped(cluster("finalized", (ALL, [5])), "b1"), "b2")
    assert evaluate(facts, "b1", "b2").only_start
    assert evaluate(facts, "b1", "b2").troubles == []


def test_a_batch_of_which_one_host_went_down_is_not_stopped():
    verdict = evaluate(stopped(cluster("finalized", (ALL, [2, 5])), "b1"), "b1", "b2")
    assert not verdict.only_start and any(
        "b1 does not answer, and the other hosts" in trouble for trouble in verdict.troubles
    )


def test_controllers_that_do_not_run_yet_are_not_awaited_in_zookeeper_mode():
    facts = cluster("zk")
    assert all(node["running"] is None for node in phase.controllers(facts).values())
    assert evaluate(facts, "b1").troubles == []


def test_no_batch_is_stopped_while_a_reassignment_waits_in_zookeeper():
    facts = cluster("zk")
    facts["zookeeper"]["reassign_partitions"] = {"exists": True}
    assert evaluate(facts, "b1").troubles[0].startswith("/admin/reassign_partitions exists")


def test_partitions_that_cannot_keep_min_isr_need_their_token():
    facts = cluster("finalized", ([1], [1]), (ALL, ALL))
    (needed,) = evaluate(facts, "b1").troubles
    word = plain_restart.token(cluster_health.find_unavoidable(facts["topics"]["partitions"], {"t": 1}))
    assert "t-0" in needed and message_ids.strip_ids(needed).endswith(
        f"add -e quorumshift_accept_degraded={word} to the command"
    )
    assert evaluate(facts, "b1", accept=[word]).troubles == []
    assert evaluate(facts, "b2").troubles == []  # has no such partition


def test_the_token_of_such_partitions_does_not_let_two_of_their_replicas_stop_at_once():
    facts = cluster("finalized", ([1, 2], [1, 2]))
    word = plain_restart.token(["t-0"])
    assert evaluate(facts, "b1", least=2, accept=[word]).troubles == []
    (trouble,) = evaluate(facts, "b1", "b2", least=2, accept=[word]).troubles
    assert "0 of 2 replicas in sync left" in trouble


def test_the_last_replica_in_sync_is_never_stopped_whatever_is_accepted():
    facts = cluster("finalized", ([1, 2], [1]))
    degraded = cluster_health.token({"offline": [], "behind": ["t-0"], "under_min_isr": []})
    accept = [degraded, plain_restart.token(["t-0"])]
    (trouble,) = evaluate(facts, "b1", least=2, accept=accept).troubles
    assert "0 of 2 replicas in sync left" in trouble
    assert evaluate(facts, "b2", least=2, accept=accept).troubles == []


def test_a_controller_waits_for_the_other_voters():
    facts = cluster()
    assert evaluate(facts, "c1", kind="restart_controller").troubles == []
    facts["quorum"]["voters"][1]["log_end_offset"] -= 7
    assert evaluate(facts, "c1", kind="restart_controller").troubles == [
        "voter 102 is 7 offsets behind the high watermark (QS-GATE-011)"
    ]
    assert evaluate(facts, "c2", kind="restart_controller").troubles == []
    assert any(
        text.startswith("c3 does not answer")
        for text in evaluate(recorded.down(cluster(), "c3"), "c1", kind="restart_controller").troubles
    )
