# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rollback that excludes hosts: when it is rejected, and how health counts then."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils import message_ids
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import cluster_health
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rollback import excluded, rollback

from tests.unit.core import recorded

NAMED = "quorumshift_exclude_hosts names "


def left(name="dual_write", hosts=("b3",), **running):
    """Return recorded facts without these hosts: no view of the cluster has their brokers."""
    facts = recorded.facts(name)
    nodes = {host: facts["nodes"].pop(host) for host in hosts if host in facts["nodes"]}
    without = {
        host: {"role": nodes.get(host, {}).get("role"), "node_id": nodes.get(host, {}).get("node_id")} for host in hosts
    }
    for host, mode in running.items():
        without[host]["running"] = mode
    ids = {node["node_id"] for node in nodes.values() if node["role"] == "broker"}
    topics = facts["topics"]
    topics["brokers"] = {broker: at for broker, at in topics["brokers"].items() if int(broker) not in ids}
    for numbers in topics["partitions"].values():
        for partition in numbers.values():
            partition["isr"] = [broker for broker in partition["isr"] if broker not in ids]
            partition["leader"] = partition["isr"][0] if partition["isr"] else -1
    return excluded.drop_excluded(facts, without)


def refused(facts, direction="back"):
    return excluded.refusal(facts, phase.detect(facts), direction)


def test_without_excluded_hosts_the_facts_are_unchanged():
    facts = recorded.facts("dual_write")
    assert refused(excluded.drop_excluded(facts, {})) is None
    assert excluded.drop_excluded(facts, {})["topics"] is facts["topics"]


def test_the_phase_is_that_of_the_other_hosts():
    facts = left()
    assert phase.detect(facts).phase == phase.DUAL_WRITE and refused(facts) is None
    assert "b3" not in phase.detect(facts).blocks


@pytest.mark.parametrize(
    ("hosts", "running", "direction", "reason"),
    [
        (
            ("b3",),
            {},
            "forward",
            "b3: only a rollback, a reassignment, a change of features or of the quorum may exclude hosts",
        ),
        (
            ("b3",),
            {},
            "restore",
            "b3: only a rollback, a reassignment, a change of features or of the quorum may exclude hosts",
        ),
        (("b3", "other"), {}, "back", "b3, other: other is in neither of the groups"),
        (("b3",), {"b3": "kraft"}, "back", "b3: b3 answers in mode kraft. Stop it, or do not exclude it"),
        (("b3",), {"b3": "kraft"}, "reassign", "b3: b3 answers in mode kraft. Stop it, or do not exclude it"),
        (("b1", "b2", "b3"), {}, "reassign", "b1, b2, b3: no broker is left"),
        (("b1", "b2", "b3"), {}, "back", "b1, b2, b3: no broker is left"),
        (("c1", "c2", "c3"), {}, "back", "c1, c2, c3: no controller is left, so it is unknown"),
    ],
)
def test_exclusion_is_rejected(hosts, running, direction, reason):
    assert refused(left(hosts=hosts, **running), direction).startswith(NAMED + reason)


def test_a_reassignment_excludes_the_host_of_a_dead_broker():
    assert refused(left(), "reassign") is None


def test_an_excluded_broker_must_not_be_registered():
    facts = left()
    facts["topics"]["brokers"]["3"] = "b3:9092"
    known = set(map(int, facts["topics"]["brokers"])) - set(phase.broker_ids(facts))
    numbers = ", ".join(map(str, sorted(known)))
    assert message_ids.move_to_end(refused(facts)) == (
        f"{NAMED}b3: broker {numbers} is still registered, and no other host has this id. Wait until its session ends "
        "(QS-ROLLBACK-002)"
    )


def test_replicas_on_excluded_hosts_do_not_count():
    facts = left()
    brokers = phase.broker_ids(facts)
    assert cluster_health.troubles(facts["topics"], {}, brokers) == []
    partitions = [partition for numbers in facts["topics"]["partitions"].values() for partition in numbers.values()]
    assert partitions and all(set(partition["replicas"]) <= set(brokers) for partition in partitions)


def test_a_partition_only_on_excluded_hosts_does_not_count():
    facts = recorded.facts("dual_write")
    node = facts["nodes"].pop("b3")
    alone = {"leader": -1, "isr": [node["node_id"]], "replicas": [node["node_id"]]}
    facts["topics"]["partitions"] = {"alone": {"0": alone}}
    assert excluded.drop_excluded(facts, {"b3": node})["topics"]["partitions"] == {}


def test_a_last_in_sync_replica_keeps_its_broker_up():
    facts = recorded.facts("dual_write")
    node = facts["nodes"].pop("b3")
    first, second = phase.broker_ids(facts)
    facts["topics"]["partitions"] = {
        "two": {"0": {"leader": first, "isr": [first], "replicas": [first, node["node_id"]]}},
        "one": {"0": {"leader": second, "isr": [second], "replicas": [second]}},
    }
    topics = excluded.drop_excluded(facts, {"b3": node})["topics"]
    reason = f"1 partition has its last in-sync replica on broker {first}: two-0 (QS-GATE-005)"
    assert (
        cluster_health.find_last_in_sync(topics) == [reason] and cluster_health.find_last_in_sync(topics, second) == []
    )
    assert reason in cluster_health.troubles(topics, {}, [first, second], stop=first)
    assert cluster_health.troubles(topics, {}, [first, second], ["one-0"], stop=second) == []


def test_an_excluded_controller_is_no_voter():
    facts = left(hosts=("c3",))
    ids = {node["node_id"] for node in phase.controllers(facts).values()}
    assert {voter["id"] for voter in facts["quorum"]["voters"]} == ids and len(ids) == 2


@pytest.mark.parametrize(("hosts", "drained"), [((), True), (("c3",), False)])
def test_an_excluded_controller_counts_as_having_voted_for_every_change(hosts, drained):
    """One remaining controller has a change that the other one lacks."""
    facts = left("dual_write", hosts=("c3",))
    facts["zookeeper"]["migration"]["kraft_metadata_offset"] = 100
    ends = iter((205, 101))
    for node in phase.controllers(facts).values():
        node["metadata_log"] = {"log_end_offset": next(ends), "last_change_offset": 204}
    if not hosts:  # the third controller lacks the change too
        facts["nodes"]["c3"] = {"role": "controller", "metadata_log": {"log_end_offset": 101}}
        facts["excluded"] = {}
    assert (rollback.check_drained(facts) is None) is drained


def test_returning_hosts_get_advice():
    host = {"b3": {"role": "broker", "config_file": "/srv/conf/broker.properties", "state": "/srv/state/x"}}
    controller = {"c3": {"role": "controller", "config_file": "/srv/conf/quorum.properties", "log_dir": "/srv/log"}}
    assert excluded.explain_return({**controller, **host}, "zk") == [
        "b3 was excluded: before it starts, replace /srv/conf/broker.properties by "
        "/srv/state/x/configs/broker.properties.before-zk_migration, if that file exists",
        "c3 was excluded: before it starts, empty /srv/log and remove /srv/conf/quorum.properties: it has the old "
        "quorum's log",
    ]
    assert excluded.explain_return(host, "hybrid") == [
        "b3 was excluded: start it in the mode of its file, and the next run includes it"
    ]
