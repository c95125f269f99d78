# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Batches of a rolling restart, against the rule written out for small clusters."""

from __future__ import annotations

import random

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.restart import restart_plan
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.restart.restart_plan import Cluster
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.core import recorded

NODES = range(1, 8)


def partition(*replicas, isr=None, leader=None):
    in_sync = list(replicas if isr is None else isr)
    return {"leader": in_sync[0] if leader is None and in_sync else -1, "replicas": list(replicas), "isr": in_sync}


def cluster(*partitions, least=2, alive=NODES, **more):
    numbered = {str(number): assigned for number, assigned in enumerate(partitions)}
    return Cluster({"t": numbered}, {"t": least}, frozenset(alive), **more)


def batches(found, nodes=(1, 2, 3, 4, 5, 6), concurrency=6, **more):
    return restart_plan.plan(found, nodes, concurrency=concurrency, **more).batches


# Examples ------------------------------------------------------------------------------------------------------------

RACKS = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}
SPREAD = (partition(1, 3, 5), partition(2, 4, 6), partition(1, 4, 6))


def test_brokers_of_a_rack_restart_together():
    assert batches(cluster(*SPREAD, racks=RACKS)) == [[1, 2], [3, 4], [5, 6]]


def test_one_at_a_time_is_the_default():
    assert restart_plan.plan(cluster(*SPREAD), range(1, 7)).batches == [[1], [2], [3], [4], [5], [6]]


def test_a_batch_has_at_most_as_many_nodes_as_asked():
    assert batches(cluster(), concurrency=4) == [[1, 2, 3, 4], [5, 6]]


def test_nodes_that_share_a_partition_restart_apart_and_the_reason_names_it():
    found = restart_plan.plan(cluster(partition(1, 2, 3)), (1, 2, 3), concurrency=3)
    assert found.batches == [[1], [2], [3]]
    why = "t-0 is also on broker {}, and may lose 1 of 3 in-sync replicas (min.insync.replicas 2) (QS-RESTART-002)"
    assert found.reasons == {1: f"alone: {why.format(2)}", 2: f"alone: {why.format(3)}", 3: f"alone: {why.format(2)}"}


def test_a_partition_that_may_lose_two_lets_two_restart_together():
    assert batches(cluster(partition(1, 2, 3), least=1), (1, 2, 3)) == [[1, 2], [3]]


def test_the_whole_batch_counts_at_once():
    """Each pair is safe here; all four are not."""
    assert batches(cluster(partition(1, 2, 3, 4), least=2), (1, 2, 3, 4)) == [[1, 2], [3, 4]]


def test_a_catching_up_replica_is_lost_already():
    found = restart_plan.plan(cluster(partition(1, 2, 3, isr=[1, 2])), (1, 2, 3, 4, 5), concurrency=5)
    assert found.batches == [[1], [2], [3, 4, 5]]
    assert found.reasons[1] == "alone: t-0 has no in-sync replica to spare now (QS-RESTART-002)"


def test_a_replica_on_a_dead_broker_is_lost_even_if_the_metadata_calls_it_in_sync():
    found = cluster(partition(1, 2, 3), least=1, alive=(1, 2, 4))
    assert batches(found, (1, 2, 4)) == [[1, 4], [2]]


def test_a_replica_that_a_reassignment_removes_does_not_count():
    found = cluster(partition(1, 2, 3), least=1, removing={"t-0": [3]})
    assert batches(found, (1, 2)) == [[1], [2]]


def test_what_is_down_starts_first_then_the_canary_and_the_controller_last():
    found = restart_plan.plan(cluster(alive=(1, 3, 4, 5, 6), controller=1), range(1, 7), canary=4, concurrency=6)
    assert found.batches == [[2], [4], [3, 5, 6], [1]]
    assert found.reasons == {
        2: "down: started first",
        4: "canary: first and alone",
        1: "controller: last, so that it moves once",
    }


def test_a_node_that_was_restarted_is_left_out():
    found = restart_plan.plan(cluster(*SPREAD, racks=RACKS), range(1, 7), done=(1, 2), canary=1, concurrency=6)
    assert found.batches == [[3, 4], [5, 6]] and found.done == [1, 2]


def test_partitions_without_a_spare_replica_are_listed_and_their_replicas_restart_apart():
    found = restart_plan.plan(cluster(partition(1), partition(2, 3)), (1, 2, 3), concurrency=3)
    assert found.batches == [[1, 2], [3]]
    assert found.unavoidable == {
        "t-0": "replication factor 1: offline while its broker restarts",
        "t-1": "2 replicas, min.insync.replicas 2: rejects acks=all while a replica restarts",
    }


def test_a_wrong_canary_or_concurrency_is_an_error():
    with pytest.raises(ValueError, match="the canary 9 is none of the nodes to restart"):
        restart_plan.plan(cluster(), (1, 2), canary=9)
    with pytest.raises(ValueError, match="the concurrency is 0"):
        restart_plan.plan(cluster(), (1, 2), concurrency=0)


# Controllers ---------------------------------------------------------------------------------------------------------


def quorum(*ends, leader=1):
    voters = [{"id": number, "log_end_offset": end} for number, end in enumerate(ends, 1)]
    return {"reached": True, "leader_id": leader, "high_watermark": 100, "voters": voters, "observers": []}


def test_controllers_restart_one_at_a_time_and_the_leader_last():
    found = restart_plan.plan(restart_plan.cluster_from_quorum(quorum(100, 100, 100)), (1, 2, 3), concurrency=3)
    assert found.batches == [[2], [3], [1]] and found.unavoidable == {}


def test_the_stop_of_a_caught_up_voter_loses_the_majority_while_another_lags():
    found = restart_plan.cluster_from_quorum(quorum(100, 100, 90))
    assert list(restart_plan.find_unsafe(found, [2])) == ["__cluster_metadata-0"]
    assert restart_plan.find_unsafe(found, [3]) == {}
    assert restart_plan.find_unsafe(restart_plan.cluster_from_quorum(quorum(100, 100, 90), lag_records=10), [2]) == {}


def test_five_voters_could_lose_two_but_restart_one_at_a_time():
    found = restart_plan.cluster_from_quorum(quorum(100, 100, 100, 100, 100))
    assert restart_plan.plan(found, range(1, 6)).batches == [[2], [3], [4], [5], [1]]


def test_a_quorum_without_a_leader_cannot_be_planned():
    with pytest.raises(ValueError, match="no leader: timed out"):
        restart_plan.cluster_from_quorum({"reached": False, "error": "timed out"})


# Properties ----------------------------------------------------------------------------------------------------------


@st.composite
def clusters(draw):
    """Return a small cluster, and arguments of a plan for it. Most nodes are alive and to be restarted, and most
    partitions have a replica to spare: otherwise each node is alone, and no batch is put to the test."""
    nodes = list(NODES)[: draw(st.integers(4, 7))]
    topics, least, removing = {}, {}, {}
    for topic in ("t0", "t1", "t2"):
        count = draw(st.integers(1, 4))
        least[topic] = draw(st.integers(1, max(1, count - 1))) if draw(st.integers(0, 5)) else count
        topics[topic] = {}
        for place in range(draw(st.integers(0, 2))):
            replicas = draw(st.permutations(nodes))[:count]
            behind = draw(st.sets(st.sampled_from(replicas))) if draw(st.integers(0, 3)) == 0 else ()
            topics[topic][str(place)] = partition(
                *replicas, isr=[replica for replica in replicas if replica not in behind]
            )
            if draw(st.integers(0, 4)) == 0:
                removing[f"{topic}-{place}"] = draw(st.lists(st.sampled_from(replicas), max_size=2, unique=True))
    few = st.sets(st.sampled_from(nodes), max_size=2)
    dead, done = draw(few), draw(few)
    racks = {node: "abc"[node % draw(st.integers(1, 3))] for node in nodes} if draw(st.booleans()) else {}
    some = st.one_of(st.none(), st.sampled_from(nodes))
    found = Cluster(topics, least, frozenset(nodes) - dead, racks, draw(some), removing)
    how = {"done": sorted(done), "canary": draw(some), "concurrency": draw(st.sampled_from((7, 4, 2, 1)))}
    return found, nodes, how


def in_sync(found, name, state):
    return set(state["isr"]) & found.alive - set(found.removing.get(name, ()))


def broken(found, batch):
    """The oracle: return the partitions that the stop of the whole batch takes below min ISR, by the rule's words."""
    names = set()
    for topic, numbers in found.partitions.items():
        for number, state in numbers.items():
            before = in_sync(found, f"{topic}-{number}", state)
            after = before - set(batch)
            if after != before and len(after) < found.min_isr[topic]:
                names.add(f"{topic}-{number}")
    return names


def hopeless(found):
    """Return the partitions that even one restart in full health takes below min ISR."""
    return {
        f"{topic}-{number}"
        for topic, numbers in found.partitions.items()
        for number, state in numbers.items()
        if len(set(state["replicas"]) - set(found.removing.get(f"{topic}-{number}", ()))) - 1 < found.min_isr[topic]
    }


def may_join(found, batch):
    """Return whether the oracle lets these nodes restart together."""
    excused = hopeless(found)
    twice = [
        1
        for topic, numbers in found.partitions.items()
        for number, state in numbers.items()
        if f"{topic}-{number}" in excused and len(in_sync(found, f"{topic}-{number}", state) & set(batch)) > 1
    ]
    return not (broken(found, batch) - excused) and not twice


@settings(max_examples=150, deadline=None, derandomize=True)
@given(clusters())
def test_every_batch_is_safe_by_the_oracle(drawn):
    found, nodes, how = drawn
    plan = restart_plan.plan(found, nodes, **how)
    for batch in plan.batches:
        up = found.alive.intersection(batch)
        assert len(batch) <= how["concurrency"]
        assert not up or len(up) == len(batch)
        assert len(up) < 2 or may_join(found, batch)
        assert len(up) < 2 or len({found.racks.get(node) for node in batch}) == 1
    assert plan.unavoidable.keys() == hopeless(found)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(clusters())
def test_each_node_restarts_once_and_in_its_place(drawn):
    found, nodes, how = drawn
    plan = restart_plan.plan(found, nodes, **how)
    order = [node for batch in plan.batches for node in batch]
    assert sorted(order) == sorted(set(nodes) - set(how["done"]))
    up = [node for node in order if node in found.alive]
    assert order[len(order) - len(up) :] == up  # the others came first
    if how["canary"] in up:
        assert up[0] == how["canary"] and [up[0]] in plan.batches
    if found.controller in up and found.controller != how["canary"]:
        assert up[-1] == found.controller and plan.batches[-1] == [up[-1]]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(clusters())
def test_no_node_could_join_an_earlier_batch_of_its_rack(drawn):
    found, nodes, how = drawn
    plan = restart_plan.plan(found, nodes, **how)
    special = {how["canary"], found.controller} | set(nodes) - found.alive
    rest = [batch for batch in plan.batches if not special.intersection(batch)]
    for place, batch in enumerate(rest):
        for node in (later_node for later in rest[place + 1 :] for later_node in later):
            if len(batch) < how["concurrency"] and found.racks.get(node) == found.racks.get(batch[0]):
                assert not may_join(found, [*batch, node])


@settings(max_examples=150, deadline=None, derandomize=True)
@given(clusters(), st.randoms(use_true_random=False))
def test_the_same_cluster_gives_the_same_plan_and_every_single_node_a_reason(drawn, shuffling: random.Random):
    found, nodes, how = drawn
    plan = restart_plan.plan(found, nodes, **how)
    topics = list(found.partitions.items())
    shuffling.shuffle(topics)
    other = restart_plan.plan(found._replace(partitions=dict(topics)), nodes[::-1], **how)
    assert other == plan
    if how["concurrency"] > 1:
        assert {batch[0] for batch in plan.batches if len(batch) == 1} <= plan.reasons.keys()


@settings(max_examples=150, deadline=None, derandomize=True)
@given(clusters(), st.sets(st.sampled_from(NODES)))
def test_unsafe_is_the_oracle(drawn, batch):
    found, _nodes, _how = drawn
    assert restart_plan.find_unsafe(found, batch).keys() == broken(found, batch)


# The brokers of a migration ------------------------------------------------------------------------------------------


def led(facts, host, count):
    """Add `count` partitions that the host's broker leads, and return the facts."""
    number = facts["nodes"][host]["node_id"]
    state = {"leader": number, "replicas": [1, 2, 5], "isr": [1, 2, 5]}
    facts["topics"]["partitions"][f"led-by-{host}"] = {str(index): dict(state) for index in range(count)}
    return facts


def with_leaders(name="controllers_ready"):
    facts = recorded.facts(name)
    facts["topics"]["partitions"] = {}
    for host, count in (("b1", 3), ("b2", 1), ("b3", 2)):
        led(facts, host, count)
    return facts


def planned(facts, kind="zk_migration", **more):
    return restart_plan.plan_migration(facts, kind, {}, **more)


def test_the_broker_that_leads_the_fewest_partitions_goes_first():
    plan = planned(with_leaders())
    assert plan.batches == [["b2"], ["b1"], ["b3"]]
    assert plan.done == [] and plan.reasons == {"b2": "canary: leads fewest partitions (1)"}


def test_the_controller_goes_last_and_is_no_canary_unless_it_is_chosen():
    plan = planned(with_leaders(), controller=2)
    assert plan.batches == [["b3"], ["b1"], ["b2"]]
    assert plan.reasons == {"b3": "canary: leads fewest partitions (2)", "b2": restart_plan.CONTROLLER_LAST}
    chosen = planned(with_leaders(), chosen="b1", controller=1)
    assert chosen.batches == [["b1"], ["b2"], ["b3"]] and chosen.reasons == {"b1": "canary: chosen"}


def test_the_canary_of_the_runs_plan_stays_the_canary():
    facts, order = with_leaders(), ["b3", "b1", "b2"]
    assert planned(facts, planned=order).reasons == {"b3": "canary: as planned"}
    assert planned(facts, planned=order).batches == [["b3"], ["b1"], ["b2"]]
    assert planned(facts, planned=order, chosen="b1").batches[0] == ["b1"]
    assert planned(facts, planned=order, controller=5).batches == [["b2"], ["b1"], ["b3"]]
    recorded.down(facts, "b2")
    assert planned(facts, planned=order).batches == [["b2"], ["b1"], ["b3"]]


def test_a_broker_whose_running_mode_and_file_match_is_done():
    facts = recorded.facts("brokers_joining_1")
    joined = [host for host, node in facts["nodes"].items() if node["running"] == "zk_migration"]
    plan = planned(facts)
    assert plan.done == joined and len(plan.batches) == 2 and plan.reasons == {}
    facts["nodes"][joined[0]]["next"] = "zk"
    assert planned(facts).done == []


@pytest.mark.parametrize("name", ["brokers_joining_broker_down", "hybrid_1_kraft_broker_down"])
def test_a_broker_that_is_down_goes_first(name):
    """No other may be stopped while it is down, so any broker before it would wait forever."""
    facts = recorded.facts(name)
    down = next(host for host, node in facts["nodes"].items() if node["role"] == "broker" and not node["running"])
    others = [host for host, node in facts["nodes"].items() if node["role"] == "broker" and host != down]
    plan = planned(facts, "kraft", chosen=others[-1], controller=facts["nodes"][down]["node_id"])
    assert plan.batches[0] == [down] and plan.reasons[down] == "down: started first"


def test_a_host_that_could_not_be_read_is_planned_as_down():
    facts = recorded.down(with_leaders(), "b3")
    facts["nodes"]["b3"]["node_id"] = None
    assert planned(facts).batches == [["b3"], ["b1"], ["b2"]]


def test_a_plan_without_work_is_empty():
    plan = planned(recorded.facts("dual_write"), "kraft", controller=102)
    assert plan.batches == [] and plan.reasons == {} and plan.done == ["b1", "b2", "b3"]


def apart(facts):
    """Let no two brokers share a partition, nor a rack."""
    facts["topics"]["partitions"] = {}
    for node in facts["nodes"].values():
        for broker in ((node.get("metadata_log") or {}).get("brokers") or {}).values():
            broker["rack"] = None
    for broker in (facts["zookeeper"].get("broker_ids") or {}).values():
        broker["rack"] = None
    return facts


def test_brokers_of_a_migration_restart_in_batches():
    assert planned(apart(recorded.facts("hybrid")), "kraft", concurrency=3).batches == [["b1"], ["b2", "b3"]]
    assert planned(apart(recorded.facts("dual_write")), "hybrid", chosen="b3", concurrency=2).batches == [
        ["b3"],
        ["b1", "b2"],
    ]


def test_the_last_broker_in_migration_mode_is_alone():
    facts = apart(recorded.facts("controllers_ready"))
    plan = planned(facts, concurrency=3)
    assert plan.batches == [["b1"], ["b2"], ["b3"]]
    assert plan.reasons["b3"] == "alone: the last restart in migration mode starts the initial copy"
    assert planned(facts, concurrency=3, controller=5).batches == [["b1"], ["b2"], ["b3"]]


def test_hosts_that_are_ready_are_left_out_of_the_plan():
    facts = recorded.facts("finalized")
    cluster = restart_plan.cluster_from_facts(facts, {})
    plan = restart_plan.plan_hosts(facts, "broker", cluster, None, 1, 0, ["b1"])
    assert plan.done == ["b1"] and {host for batch in plan.batches for host in batch} == {"b2", "b3"}
