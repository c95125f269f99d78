# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which health the restart of a node requires: it answers, it is down, or it runs and does not answer."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import admission, cluster_health
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import restart_token

from tests.unit.core import recorded

STOPPED = {"manager": "systemd", "name": "kafka.service", "active": False, "active_state": "failed"}
RUNS = {"manager": "systemd", "name": "kafka.service", "active": True, "active_state": "active"}
RESTARTING = {**RUNS, "active": False, "active_state": "activating", "sub_state": "auto-restart"}


def unresponsive(state, name="hybrid", host="b1"):
    facts = recorded.down(recorded.facts(name), host)
    facts["nodes"][host]["service"] = state
    return facts


@pytest.mark.parametrize(
    ("state", "only_start", "hung"),
    [(STOPPED, True, False), (RUNS, False, True), (RESTARTING, False, True), ({}, False, True), (None, False, True)],
)
def test_only_its_own_host_says_that_a_node_is_down(state, only_start, hung):
    restart = admission.restart_from_facts(unresponsive(state), "b1")
    assert (restart.only_start, restart.unresponsive, restart.answers) == (only_start, hung, False)


def test_a_host_that_was_not_reached_is_not_known_to_be_down():
    facts = unresponsive(STOPPED)
    facts["nodes"]["b1"]["reached"] = False
    assert admission.restart_from_facts(facts, "b1").unresponsive


def test_a_node_that_answers_is_stopped_as_any_other():
    facts = recorded.facts("hybrid")
    facts["nodes"]["b1"]["service"] = STOPPED
    restart = admission.restart_from_facts(facts, "b1")
    assert restart.answers and not restart.only_start and not restart.unresponsive


def test_a_batch_is_exactly_one_host():
    assert admission.check_single_host(["b1"]) is None
    assert admission.check_single_host(["b1", "b2"]) == "a batch is one host, this one is b1, b2 (QS-RESTART-001)"
    assert admission.check_single_host([]) == "a batch is one host, this one is empty (QS-RESTART-001)"


def test_another_silent_node_is_named_and_the_restarts_own_is_not():
    facts = recorded.down(unresponsive(RUNS), "b2")
    restart = admission.restart_from_facts(facts, "b1")
    (reason,) = admission.check_others_respond(facts["nodes"], restart)
    assert reason.startswith("b2 does not answer: connection refused")
    assert admission.check_others_respond(facts["nodes"], restart, ["b2"]) == []
    assert len(admission.check_others_respond(facts["nodes"], None)) == 2


def test_the_blocks_that_name_the_node_itself_do_not_close_its_restart():
    down, hung = (
        admission.restart_from_facts(unresponsive(STOPPED), "b1"),
        admission.restart_from_facts(unresponsive(RUNS), "b1"),
    )
    up = admission.restart_from_facts(recorded.facts("hybrid"), "b1")
    assert admission.find_excused_blocks(down, "broker") == ("no_controller",)
    assert admission.find_excused_blocks(hung, "broker") == () and admission.find_excused_blocks(up, "controller") == ()
    assert admission.find_excused_blocks(hung, "controller") == admission.find_excused_blocks(down, "controller")
    assert admission.find_excused_blocks(down, "controller") == ("controllers_down",)


def test_the_remedy_for_a_node_that_runs_and_does_not_answer():
    facts = unresponsive(RUNS)
    text = admission.remedy(admission.restart_from_facts(facts, "b1"), facts["nodes"]["b1"])
    assert text.startswith("b1 does not answer (connection refused") and "on b1, journalctl -u kafka.service" in text


# The cluster without a broker that does not answer --------------------------------------------------------------------

BROKERS = [1, 2, 5]


def read(**partitions):
    return {
        "reached": True,
        "brokers": {"2": "b:1", "5": "c:1"},
        "partitions": {name: {"0": partition} for name, partition in partitions.items()},
    }


def partition_state(replicas, isr, leader=None):
    leader = (isr[0] if isr else -1) if leader is None else leader
    return {"leader": leader, "replicas": replicas, "isr": isr}


def troubles(topics, **min_isr):
    """Return why broker 1, which does not answer, may not be stopped."""
    excused = cluster_health.find_unavoidable(topics["partitions"], min_isr)
    return cluster_health.troubles(admission.drop_broker_replicas(topics, 1), min_isr, [2, 5], excused, 1)


@pytest.mark.parametrize(
    ("partition", "min_isr", "reason"),
    [
        (partition_state([1, 2, 5], [2, 5]), 2, None),  # it is out of sync and missed by none
        (partition_state([1, 2, 5], [1, 2, 5]), 2, None),
        (partition_state([1, 2], [2]), 1, None),
        (partition_state([1], [1], -1), 1, None),  # of replication factor 1, offline with it
        (
            partition_state([1, 2, 5], [1]),
            1,
            "1 partition under-replicated: a-0 (QS-GATE-005)",
        ),  # the only replica in sync
        (partition_state([1, 2, 5], [1], -1), 1, "1 partition offline: a-0 (QS-GATE-005)"),
        (partition_state([1, 2, 5], [2]), 1, "1 partition under-replicated: a-0 (QS-GATE-005)"),
        (partition_state([1, 2, 5], [1, 2]), 1, "1 partition under-replicated: a-0 (QS-GATE-005)"),
        (partition_state([2, 5], [2]), 1, "1 partition under-replicated: a-0 (QS-GATE-005)"),
        (partition_state([1, 2, 5, 6], [1, 2, 5, 6]), 4, None),  # unavoidable
        (partition_state([1, 2], [1, 2]), 2, None),
    ],
)
def test_a_broker_that_does_not_answer_is_stopped_only_if_the_cluster_is_healthy_without_it(partition, min_isr, reason):
    reasons = troubles(read(a=partition), a=min_isr)
    assert (reasons == []) if reason is None else (reason in reasons)


def test_the_last_replica_in_sync_on_a_broker_that_does_not_answer_keeps_it_up():
    """One broker is down and the other replica of its partition, alone in sync, is on the broker without an answer."""
    topics = read(a=partition_state([1, 2], [1], -1))
    del topics["brokers"]["2"]
    reasons = troubles(topics, a=1)
    assert (
        "broker 2 is not in the cluster's metadata (QS-GATE-005)" in reasons
        and "1 partition offline: a-0 (QS-GATE-005)" in reasons
    )


def test_metadata_that_could_not_be_read_admits_no_stop():
    topics = {"reached": False, "error": "no broker answers"}
    assert cluster_health.troubles(admission.drop_broker_replicas(topics, 1), {}, [2], (), 1) == ["no broker answers"]


# On the host ---------------------------------------------------------------------------------------------------------


def test_a_token_that_only_permits_a_start_permits_no_stop():
    assert restart_token.check_stop({"service": "kafka"}) is None
    assert restart_token.check_stop({"service": "kafka", "only_start": False}) is None
    assert "kafka runs, and this restart may only start it" in restart_token.check_stop(
        {"service": "kafka", "only_start": True}
    )


def test_the_node_on_the_host_is_the_one_that_the_run_means():
    for found in ((None, None), ("broker", None), (None, 2), ("broker", 2)):
        assert restart_token.check_node("/etc/k", found, "broker", 2) is None
    for found, shown in ((("broker", 5), "broker-5"), (("controller", 2), "controller-2")):
        refused = restart_token.check_node("/etc/k", found, "broker", 2)
        assert refused.startswith(f"/etc/k on this host is of {shown}, the run means broker-2")
