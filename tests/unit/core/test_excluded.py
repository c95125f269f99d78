# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A way back without hosts that are gone: when it is refused, and what health is then."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import excluded, phase, restart, rollback

from tests.unit.core import recorded

NAMED = "quorumshift_exclude_hosts names "


def left(name="dual_write", hosts=("b3",), **running):
    """Recorded facts as they are when these hosts are gone: their brokers out of every view of the cluster."""
    facts = recorded.facts(name)
    nodes = {host: facts["nodes"].pop(host) for host in hosts if host in facts["nodes"]}
    reported = {
        host: {"role": nodes.get(host, {}).get("role"), "node_id": nodes.get(host, {}).get("node_id")} for host in hosts
    }
    for host, mode in running.items():
        reported[host]["running"] = mode
    ids = {node["node_id"] for node in nodes.values() if node["role"] == "broker"}
    topics = facts["topics"]
    topics["brokers"] = {one: at for one, at in topics["brokers"].items() if int(one) not in ids}
    for numbers in topics["partitions"].values():
        for one in numbers.values():
            one["isr"] = [broker for broker in one["isr"] if broker not in ids]
            one["leader"] = one["isr"][0] if one["isr"] else -1
    return excluded.without(facts, reported)


def refused(facts, direction="back"):
    return excluded.refused(facts, phase.detect(facts), direction)


def test_nobody_is_gone():
    facts = recorded.facts("dual_write")
    assert refused(excluded.without(facts, {})) is None
    assert excluded.without(facts, {})["topics"] is facts["topics"]


def test_the_phase_is_that_of_the_others():
    facts = left()
    assert phase.detect(facts).phase == phase.DUAL_WRITE and refused(facts) is None
    assert "b3" not in phase.detect(facts).blocks


@pytest.mark.parametrize(
    ("hosts", "running", "direction", "reported"),
    [
        (("b3",), {}, "forward", "b3: a migration is taken back without hosts that are gone"),
        (("b3",), {}, "restore", "b3: a migration is taken back without hosts that are gone"),
        (("b3", "nobody"), {}, "back", "b3, nobody: nobody is in neither of the groups"),
        (("b3",), {"b3": "kraft"}, "back", "b3: b3 answers as kraft. Leave it in, or stop it first"),
        (("b1", "b2", "b3"), {}, "back", "b1, b2, b3: no broker is left"),
        (("c1", "c2", "c3"), {}, "back", "c1, c2, c3: no controller is left, and without one nobody knows"),
    ],
)
def test_why_it_is_refused(hosts, running, direction, reported):
    assert refused(left(hosts=hosts, **running), direction).startswith(NAMED + reported)


def test_a_broker_that_the_cluster_has_not_missed_yet():
    facts = left()
    facts["topics"]["brokers"]["3"] = "b3:9092"
    known = set(map(int, facts["topics"]["brokers"])) - set(phase.broker_ids(facts))
    reported = ", ".join(map(str, sorted(known)))
    assert refused(facts) == (
        f"{NAMED}b3: broker {reported}, of no other host, is alive to the cluster. Wait until it has noticed"
    )


def test_replicas_on_hosts_that_are_gone_do_not_count():
    facts = left()
    brokers = phase.broker_ids(facts)
    assert restart.troubles(facts["topics"], {}, brokers) == []
    partitions = [one for numbers in facts["topics"]["partitions"].values() for one in numbers.values()]
    assert partitions and all(set(one["replicas"]) <= set(brokers) for one in partitions)


def test_what_lived_there_alone_does_not_count():
    facts = recorded.facts("dual_write")
    node = facts["nodes"].pop("b3")
    alone = {"leader": -1, "isr": [node["node_id"]], "replicas": [node["node_id"]]}
    facts["topics"]["partitions"] = {"alone": {"0": alone}}
    assert excluded.without(facts, {"b3": node})["topics"]["partitions"] == {}


def test_a_last_in_sync_replica_keeps_its_broker_up():
    facts = recorded.facts("dual_write")
    node = facts["nodes"].pop("b3")
    first, second = phase.broker_ids(facts)
    facts["topics"]["partitions"] = {
        "two": {"0": {"leader": first, "isr": [first], "replicas": [first, node["node_id"]]}},
        "one": {"0": {"leader": second, "isr": [second], "replicas": [second]}},
    }
    topics = excluded.without(facts, {"b3": node})["topics"]
    reported = f"1 partition has its last in-sync replica on broker {first}: two-0"
    assert restart.last_in_sync(topics) == [reported] and restart.last_in_sync(topics, second) == []
    assert reported in restart.troubles(topics, {}, [first, second], stop=first)
    assert restart.troubles(topics, {}, [first, second], ["one-0"], stop=second) == []


def test_a_voter_that_is_gone_is_no_voter():
    facts = left(hosts=("c3",))
    ids = {node["node_id"] for node in phase.controllers(facts).values()}
    assert {voter["id"] for voter in facts["quorum"]["voters"]} == ids and len(ids) == 2


@pytest.mark.parametrize(("hosts", "drained"), [((), True), (("c3",), False)])
def test_what_a_controller_that_is_gone_may_have_voted_for_counts(hosts, drained):
    """One of the controllers that are left has a change that the other one lacks."""
    facts = left("dual_write", hosts=("c3",))
    facts["zookeeper"]["migration"]["kraft_metadata_offset"] = 100
    ends = iter((205, 101))
    for node in phase.controllers(facts).values():
        node["metadata_log"] = {"log_end_offset": next(ends), "last_change_offset": 204}
    if not hosts:  # it is there, and lacks it too
        facts["nodes"]["c3"] = {"role": "controller", "metadata_log": {"log_end_offset": 101}}
        facts["excluded"] = {}
    assert (rollback.undrained(facts) is None) is drained


def test_what_is_done_before_they_return():
    host, controller = ("b3", "broker"), ("c3", "controller")
    (broker, wiped) = excluded.returning([host, controller], "zk", "/var/lib/quorumshift/x")
    assert "/var/lib/quorumshift/x/configs/server.properties.before-zk_migration" in broker
    assert wiped.startswith("c3 was left out: empty its log directory")
    assert excluded.returning([host], "hybrid", "/x") == [
        "b3 was left out: it may start as its file says, and the next run takes it along"
    ]
