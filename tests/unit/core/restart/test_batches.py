# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rule that stops a node, over all kinds of restart, recorded facts and batches: what an admission implies."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import cluster_health, gates, invariants
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase, transitions
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.restart import batches

from tests.unit.core import recorded

STOPPED = {"manager": "systemd", "name": "kafka.service", "active": False, "active_state": "failed"}
RUNS = {"manager": "systemd", "name": "kafka.service", "active": True, "active_state": "active"}
NO_CLUSTER = ("copy", "zk_hosts", "zk_preflight")  # these record something else
NAMES = [name for name in recorded.NAMES if name not in NO_CLUSTER]

LED = [name for name in NAMES if recorded.facts(name)["quorum"].get("reached")]


def of_role(facts, role):
    return sorted(host for host, node in facts["nodes"].items() if node["role"] == role)


def with_state(name, host, state):
    """Facts in which one partition is on every broker and all are in sync, except that a host is in a state."""
    facts = recorded.facts(name)
    numbers = phase.ids(facts["nodes"][broker] for broker in of_role(facts, "broker"))
    isr = list(numbers)
    if host:
        node = facts["nodes"][host]
        node.setdefault("service", {})
        recorded.down(facts, host)["nodes"][host]["service"] = dict(state)
        facts["topics"].get("brokers", {}).pop(str(node.get("node_id")), None)
        isr = [number for number in isr if number != node.get("node_id")]
    facts["topics"]["partitions"] = {"t": {"0": {"leader": [*isr, -1][0], "replicas": numbers, "isr": isr}}}
    voters = facts["quorum"].get("voters") or []
    for replica in (*voters, *(facts["quorum"].get("observers") or [])):
        replica["caught_up_ms"] = 1_795_000_000_000
    if voters:
        facts["quorum"]["high_watermark"] = min(voter["log_end_offset"] for voter in voters)
    return facts


def verdict(facts, detected, kind, batch, least):
    reading = invariants.Reading(facts, detected.phase, {"t": least}, facts["quorum"])
    return batches.evaluate(reading, detected, kind, batch, [])


def all_batches(facts, kind):
    hosts = of_role(facts, kind.role)
    found = [[host] for host in hosts] + [list(pair) for pair in itertools.combinations(hosts, 2)]
    return [batch for batch in found if not batches.refusal(kind, batch)]


@pytest.mark.parametrize(("host", "state"), [("", RUNS), ("b1", STOPPED), ("b1", RUNS), ("c1", STOPPED)])
def test_what_an_admission_implies(host, state):
    """In the facts where all is well, each kind is admitted somewhere: otherwise this would show nothing of it."""
    stops = set()
    for name in NAMES:
        facts = with_state(name, host, state)
        detected = phase.detect(facts)
        for row, least in itertools.product(transitions.ROLLING, (1, 2)):
            kind = transitions.KINDS[row]
            for batch in all_batches(facts, kind):
                found = verdict(facts, detected, kind, batch, least)
                if found.troubles or found.lasting:
                    continue
                stops |= set() if found.only_start else {row}
                require(facts, detected, kind, batch, least, found.only_start, f"{name}: {row} of {batch}")
    assert host or stops == set(transitions.ROLLING), set(transitions.ROLLING) - stops


def require(facts, detected, kind, batch, least, only_start, what):
    """Assert what holds wherever a batch may be stopped, or started."""
    nodes = facts["nodes"]
    phases = gates.PLAIN_PHASES if kind.is_plain else gates.GATES[kind.gate].phases
    assert detected.phase in phases, what
    assert not kind.is_plain or {nodes[host].get("next") for host in batch} <= set(kind.before), what
    down = {host for host, node in nodes.items() if not node.get("running")}
    if only_start:
        assert set(batch) <= down and not any(nodes[host]["service"]["active"] for host in batch), what
        return
    uncounted = set(of_role(facts, "controller")) if kind.without_quorum or detected.phase == phase.ZK else set()
    if kind.role == transitions.CONTROLLER and not kind.is_plain:  # a broker counts by the brokers' metadata
        uncounted = set(of_role(facts, "broker"))
    assert down <= {*batch, *uncounted}, what
    if kind.role == transitions.BROKER:
        stopping = {nodes[host]["node_id"] for host in batch}
        in_sync = set(facts["topics"]["partitions"]["t"]["0"]["isr"])
        assert not in_sync & stopping or len(in_sync - stopping) >= least, what


def with_older_logs(facts):
    """Return the facts with what the hosts of the voters that follow said a while ago: shorter logs, in an earlier
    state."""
    for node in phase.controllers(facts).values():
        log = node.get("metadata_log")
        if log and not cluster_health.leads(node, facts["quorum"]["leader_id"]):
            log.update(log_end_offset=1, last_epoch=1, zk_migration_state="NONE", brokers={}, scram_losses={})
    return facts


@pytest.mark.parametrize("name", LED)
def test_the_leaders_reading_decides_whatever_the_other_voters_hosts_said_before(name):
    """For each recorded cluster with a leader, each kind of restart and each of its nodes."""
    facts = recorded.facts(name)
    assert len(batches.find_controllers_to_read(facts, phase.detect(facts))) == 1
    older = with_older_logs(recorded.facts(name))
    assert phase.detect(older)._replace(evidence=[]) == phase.detect(facts)._replace(evidence=[])
    facts, older = with_state(name, "", RUNS), with_older_logs(with_state(name, "", RUNS))
    for kind in transitions.KINDS.values():
        for batch in all_batches(facts, kind):
            found = [verdict(given, phase.detect(given), kind, batch, 2) for given in (facts, older)]
            assert found[0] == found[1]


def test_all_controllers_are_read_where_no_leader_is_known():
    facts = recorded.facts("brokers_joining_controllers_down")
    assert batches.find_controllers_to_read(facts, phase.detect(facts)) == ["c1", "c2", "c3"]
