# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of rolling restarts, and the health that the next stop requires."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import cluster_health

from tests.unit.core import recorded


def topics(name="zk", **min_isr):
    seen = recorded.facts(name)["topics"]
    return {**seen, "min_isr": min_isr}


# The order of controllers --------------------------------------------------------------------------------------------


def test_the_quorums_leader_goes_last():
    facts = recorded.facts("dual_write")
    plan = cluster_health.plan_controllers(facts["nodes"], "controller_final", 101)
    assert plan.batches == [["c2"], ["c3"], ["c1"]] and plan.reasons == {"c1": "leader: last"}
    assert plan.done == [] and plan.unavoidable == {}


def test_an_interrupted_restart_of_controllers_continues():
    facts = recorded.facts("finalizing_1")
    final = [host for host, node in facts["nodes"].items() if node["running"] == "controller_final"]
    plan = cluster_health.plan_controllers(facts["nodes"], "controller_final", facts["quorum"]["leader_id"])
    assert plan.done == final and len(plan.batches) == 2


def test_a_controller_that_is_down_goes_first_even_if_it_is_the_leader():
    facts = recorded.down(recorded.facts("dual_write"), "c3")
    plan = cluster_health.plan_controllers(facts["nodes"], "controller_final", 103)
    assert plan.batches == [["c3"], ["c1"], ["c2"]]
    assert plan.reasons["c3"] == "down: restarted first"


# Health of controllers -----------------------------------------------------------------------------------------------


def test_a_controller_may_be_stopped_in_a_healthy_quorum():
    facts = recorded.facts("dual_write")
    facts["quorum"]["high_watermark"] = min(voter["log_end_offset"] for voter in facts["quorum"]["voters"])
    assert cluster_health.controller_troubles(facts["nodes"], facts["quorum"], ["c1"]) == []


def test_no_controller_is_stopped_while_another_is_down():
    facts = recorded.down(recorded.facts("dual_write"), "c3")
    facts["quorum"]["high_watermark"] = 0
    (reason,) = cluster_health.controller_troubles(facts["nodes"], facts["quorum"], ["c1"])
    assert reason.startswith("c3 does not answer: connection refused")
    assert cluster_health.controller_troubles(facts["nodes"], facts["quorum"], ["c3"]) == []


def test_no_controller_is_stopped_while_a_voter_lags():
    facts = recorded.facts("dual_write")
    for voter in facts["quorum"]["voters"]:
        voter["log_end_offset"] = 100
    facts["quorum"]["high_watermark"] = 100
    facts["quorum"]["voters"][1]["log_end_offset"] = 93
    reasons = cluster_health.controller_troubles(facts["nodes"], facts["quorum"], ["c1"])
    assert reasons == ["voter 102 is 7 offsets behind the high watermark (QS-GATE-011)"]
    assert cluster_health.controller_troubles(facts["nodes"], facts["quorum"], ["c2"]) == []


def test_no_controller_is_stopped_without_a_leader():
    facts = recorded.facts("dual_write")
    reasons = cluster_health.controller_troubles(facts["nodes"], {"reached": False, "error": "c1: NOT_LEADER"}, ["c1"])
    assert reasons == ["the quorum has no leader: c1: NOT_LEADER (QS-GATE-008)"]


# Health of partitions ------------------------------------------------------------------------------------------------


def partition_state(replicas=(1, 2, 5), isr=None, leader=None):
    isr = list(replicas if isr is None else isr)
    return {"leader": (isr[0] if isr else -1) if leader is None else leader, "replicas": list(replicas), "isr": isr}


def read(**partitions):
    """Return topics of one partition each."""
    return {
        "reached": True,
        "brokers": {"1": "a:1", "2": "b:1", "5": "c:1"},
        "partitions": {name: {"0": partition} for name, partition in partitions.items()},
    }


BROKERS = [1, 2, 5]


def test_a_healthy_recorded_cluster_gives_no_reason():
    facts = recorded.facts("zk")
    min_isr = recorded.facts("zk_preflight")["min_isr"]
    assert len(facts["topics"]["partitions"]) >= 60
    excused = cluster_health.find_unavoidable(facts["topics"]["partitions"], min_isr)
    assert excused and cluster_health.troubles(facts["topics"], min_isr, BROKERS, excused) == []
    for stop in BROKERS:
        assert cluster_health.troubles(facts["topics"], min_isr, BROKERS, excused, stop) == []


def test_no_broker_may_be_stopped_while_another_is_down():
    facts = recorded.facts("zk_broker_down")
    reasons = cluster_health.troubles(facts["topics"], {}, BROKERS)
    assert reasons[0] == "broker 2 is not in the cluster's metadata (QS-GATE-005)"
    assert "partitions under-replicated" in " ".join(reasons)


def test_unreadable_metadata_is_a_reason():
    assert cluster_health.troubles({"reached": False, "error": "no broker answers"}, {}, BROKERS) == [
        "no broker answers"
    ]
    assert cluster_health.troubles({}, {}, BROKERS) == ["the brokers' metadata could not be read (QS-GATE-005)"]


@pytest.mark.parametrize(
    ("partitions", "min_isr", "reasons"),
    [
        ({"a": partition_state()}, {"a": 2}, []),
        (
            {"a": partition_state((1,), [], -1)},
            {},
            ["1 partition offline: a-0 (QS-GATE-005)", "1 partition under min ISR: a-0 (QS-GATE-005)"],
        ),
        ({"a": partition_state(isr=[1, 2])}, {"a": 2}, ["1 partition under-replicated: a-0 (QS-GATE-005)"]),
        (
            {"a": partition_state(isr=[1])},
            {"a": 2},
            ["1 partition under-replicated: a-0 (QS-GATE-005)", "1 partition under min ISR: a-0 (QS-GATE-005)"],
        ),
        (
            {"a": partition_state(isr=[1, 2]), "b": partition_state(isr=[1, 2])},
            {},
            ["2 partitions under-replicated: a-0, b-0 (QS-GATE-005)"],
        ),
        (
            {name: partition_state(isr=[1, 2]) for name in "abcdefg"},
            {},
            ["7 partitions under-replicated: a-0, b-0, c-0, d-0, e-0 and 2 more (QS-GATE-005)"],
        ),
    ],
)
def test_degraded_partitions_are_reasons(partitions, min_isr, reasons):
    assert cluster_health.troubles(read(**partitions), min_isr, BROKERS) == reasons


def test_a_stop_that_takes_a_partition_under_min_isr_is_a_reason():
    two = {"a": partition_state((1, 2))}
    assert cluster_health.troubles(read(**two), {"a": 2}, BROKERS, (), 1) == [
        "1 partition falls under min ISR if broker 1 stops: a-0 (QS-GATE-005)"
    ]
    assert cluster_health.troubles(read(**two), {"a": 2}, BROKERS, (), 5) == []
    assert cluster_health.troubles(read(**two), {"a": 2}, BROKERS, ["a-0"], 1) == []
    assert cluster_health.troubles(read(**two), {"a": 1}, BROKERS, (), 1) == []


def test_an_excused_partition_still_needs_all_replicas_in_sync():
    reasons = cluster_health.troubles(read(a=partition_state((1, 2), [1])), {"a": 2}, BROKERS, ["a-0"], 1)
    assert reasons == ["1 partition under-replicated: a-0 (QS-GATE-005)"]


def test_a_missing_broker_is_named():
    topics = read(a=partition_state())
    del topics["brokers"]["5"]
    assert cluster_health.troubles(topics, {}, BROKERS) == ["broker 5 is not in the cluster's metadata (QS-GATE-005)"]


def test_unavoidable_partitions():
    partitions = read(**{"a-b.c_d": partition_state((1,)), "two": partition_state((1, 2)), "three": partition_state()})[
        "partitions"
    ]
    assert cluster_health.find_unavoidable(partitions, {"a-b.c_d": 1, "two": 2, "three": 2}) == {
        "a-b.c_d-0": "replication factor 1: offline while its broker restarts",
        "two-0": "2 replicas, min.insync.replicas 2: rejects acks=all while a replica restarts",
    }
    assert cluster_health.find_unavoidable(partitions, {"two": 1}) == {
        "a-b.c_d-0": "replication factor 1: offline while its broker restarts"
    }


def test_leaderships_are_counted_by_broker():
    assert cluster_health.count_leaderships(
        read(a=partition_state(), b=partition_state((5, 1)), c=partition_state((2,), [], -1))["partitions"]
    ) == {
        1: 1,
        5: 1,
        -1: 1,
    }


def test_a_token_accepts_exactly_the_degraded_partitions_that_it_is_for():
    healthy, behind = partition_state((1, 2, 5), [1, 2, 5]), partition_state((1, 2, 5), [1, 2])
    degraded = read(a=behind, b=healthy)
    *reasons, hint = cluster_health.troubles(degraded, {}, BROKERS, accepted=())
    assert reasons == ["1 partition under-replicated: a-0 (QS-GATE-005)"]
    token = hint.rpartition("=")[2].split()[0]
    assert (
        hint == f"to accept this state, add -e quorumshift_accept_degraded={token} to the command (QS-GATE-005)"
        and len(token) == 6
    )
    assert cluster_health.troubles(degraded, {}, BROKERS, accepted=[token]) == []
    more = cluster_health.troubles(read(a=behind, b=behind), {}, BROKERS, accepted=[token])
    assert more[0] == "2 partitions under-replicated: a-0, b-0 (QS-GATE-005)" and token not in more[1]
    assert cluster_health.troubles(read(a=behind), {}, [*BROKERS, 9], accepted=[token]) == [
        "broker 9 is not in the cluster's metadata (QS-GATE-005)"
    ]


def test_a_stop_may_not_make_an_accepted_state_worse():
    topics = read(
        a=partition_state((1, 2, 5), [1]), b=partition_state((1, 2, 5), [1, 2]), c=partition_state((1, 2, 5), [1, 2, 5])
    )
    token = cluster_health.troubles(topics, {}, BROKERS, accepted=())[-1].rpartition("=")[2].split()[0]
    assert cluster_health.troubles(topics, {"b": 2, "c": 2}, BROKERS, (), 2, [token]) == []
    assert cluster_health.troubles(topics, {"c": 2}, BROKERS, (), 1, [token]) == [
        "1 partition has its last in-sync replica on broker 1: a-0 (QS-GATE-005)"
    ]
    assert cluster_health.troubles(topics, {"c": 3}, BROKERS, (), 2, [token]) == [
        "1 partition falls under min ISR if broker 2 stops: c-0 (QS-GATE-005)"
    ]


def test_without_a_list_of_tokens_no_token_is_offered():
    reasons = cluster_health.troubles(read(a=partition_state((1, 2, 5), [1])), {}, BROKERS)
    assert reasons == ["1 partition under-replicated: a-0 (QS-GATE-005)"]
