# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""preflight: connections between hosts and the controllers' ports."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import paths

from tests.unit.core import recorded
from tests.unit.core.preflight_facts import collected, found, node, the_one

TRIED = {"zookeeper": 3, "controller": 3, "broker": 3}
TIMEOUT = {"reason": "timeout", "error": "a TCP connection did not come within 5 s"}
REFUSED = {"reason": "refused", "error": "connection refused: nothing listens there"}


def nodes():
    return recorded.facts("zk")["nodes"]


def connected(**failed):
    """Return facts in which each host reaches all targets but those in `failed`, {host: [target]}."""
    facts = collected()
    for host, node_facts in facts.cluster["nodes"].items():
        node_facts["paths"] = {"tried": TRIED, "failed": failed.get(host, []), "listen": None}
    return facts


def target(kind, to, how=None):
    address = {"c1": "10.78.60.21:9093", "c2": "10.78.60.22:9093", "b1": "10.78.60.11:9092"}.get(to, to)
    return {"kind": kind, "to": to, "address": address, **(how or TIMEOUT)}


# Targets -------------------------------------------------------------------------------------------------------------


def test_targets_of_a_broker():
    assert [(destination["kind"], destination["address"]) for destination in paths.targets("b1", nodes())] == [
        *(("zookeeper", f"10.78.60.{number}:2181") for number in (11, 12, 13)),
        *(("controller", f"10.78.60.{number}:9093") for number in (21, 22, 23)),
    ]


def test_targets_of_a_controller():
    assert [
        (destination["kind"], destination["to"], destination["address"]) for destination in paths.targets("c2", nodes())
    ][3:] == [
        ("controller", "c1", "10.78.60.21:9093"),
        ("controller", "c3", "10.78.60.23:9093"),
        *(("broker", f"b{number}", f"10.78.60.1{number}:9092") for number in (1, 2, 3)),
    ]


def test_an_unreached_host_is_not_a_target():
    expected = paths.targets("c1", recorded.unreached(recorded.facts("zk"), "b1", answers=True)["nodes"])
    assert [destination["to"] for destination in expected if destination["kind"] == "broker"] == ["b2", "b3"]


def test_not_begun_ends_with_the_first_broker_in_another_mode():
    assert paths.is_not_begun(nodes())
    assert paths.is_not_begun(recorded.unreached(recorded.facts("zk"), "b1", answers=True)["nodes"])
    assert not paths.is_not_begun(recorded.facts("brokers_joining_1")["nodes"])
    assert not paths.is_not_begun(recorded.facts("dual_write")["nodes"])


# Reachability --------------------------------------------------------------------------------------------------------


def test_no_finding_when_all_connections_succeed():
    assert found(connected(), "reachability") == []


def test_a_refusal_blocks_only_if_the_controller_runs():
    facts = connected(b1=[target("controller", "c1", REFUSED)])
    assert found(facts, "reachability") == []
    node(facts, "c1")["service"]["active"] = True
    assert the_one(facts, "reachability") == (
        "b1 cannot connect to the controllers' port of c1 (10.78.60.21:9093): connection refused: nothing listens there"
    )
    (refused,) = found(facts, "reachability")
    assert refused["do"].startswith("start the server there or read its log. If it runs, open the controllers' port")


def test_a_firewall_before_the_controllers_is_one_finding():
    closed = [target("controller", "c1"), target("controller", "c2")]
    facts = connected(b1=closed, b2=closed, b3=closed, c3=closed)
    assert the_one(facts, "reachability") == (
        "b1, b2, b3, c3 cannot connect to the controllers' port of c1 (10.78.60.21:9093), c2 (10.78.60.22:9093): "
        "a TCP connection did not come within 5 s"
    )
    assert found(facts, "reachability")[0]["severity"] == "blocks"


def test_finding_for_a_firewall_before_a_broker():
    facts = connected(c1=[target("broker", "b1")])
    assert the_one(facts, "reachability").startswith(
        "c1 cannot connect to the inter-broker listener of b1 (10.78.60.11"
    )


@pytest.mark.parametrize(("how_many", "severity"), [(1, "warns"), (2, "warns"), (3, "blocks")])
def test_only_an_unreachable_ensemble_blocks(how_many, severity):
    servers = [target("zookeeper", f"10.78.60.1{number}:2181") for number in range(1, how_many + 1)]
    facts = connected(c1=servers)
    assert the_one(facts, "reachability").startswith("c1 cannot connect to ZooKeeper at 10.78.60.11:2181")
    assert found(facts, "reachability")[0]["severity"] == severity


def test_no_finding_for_a_dead_broker():
    facts = connected(c1=[target("broker", "b1", REFUSED)])
    del facts.zookeeper["broker_ids"]["1"]
    node(facts, "b1").update(running=None, running_error="refused", running_reason="refused")
    assert found(facts, "reachability") == []


@pytest.mark.parametrize(
    ("host", "reason", "expected"),
    [
        ("c2", "refused", None),
        ("c2", "timeout", "the probe host cannot query c2: it is said why"),
        ("b2", "refused", "the probe host cannot query b2: it is said why"),
        ("b2", "answer", "the probe host cannot query b2: it is said why"),
    ],
)
def test_finding_for_a_host_that_the_probe_host_cannot_query(host, reason, expected):
    facts = connected()
    node(facts, host).update(running=None, running_error="it is said why", running_reason=reason)
    assert [finding["seen"] for finding in found(facts, "reachability")] == ([expected] if expected else [])


def test_a_controller_port_in_use_is_one_finding():
    facts = connected()
    node(facts, "c1").update(running=None, running_error="not Kafka's", running_reason="answer")
    node(facts, "c1")["paths"]["listen"] = {"address": "c1:9093", "error": "taken", "holder": None}
    assert found(facts, "reachability") == [] and len(found(facts, "controller_ports")) == 1


# Ports ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, None),
        ({"error": "taken", "holder": "nginx (pid 80)"}, "c1.example:9093 on c1 is in use by nginx (pid 80)"),
        ({"error": "taken"}, "c1.example:9093 on c1 is in use by a process that the tool cannot see"),
        ({"error": "foreign"}, "c1.example:9093 on c1 resolves to 10.0.0.1, which is not an address of that host"),
        (
            {"error": "Name or service not known"},
            "c1.example:9093 on c1 cannot be bound: Name or service not known",
        ),
        (
            {"resolved": "127.0.1.1", "loopback": True},
            "c1.example:9093 on c1 resolves to the loopback address 127.0.1.1, which other hosts cannot reach",
        ),
    ],
)
def test_finding_for_a_controller_address_that_cannot_be_bound(change, expected):
    facts = connected()
    listen = {"address": "c1.example:9093", "resolved": "10.0.0.1", "loopback": False, "error": None, "holder": None}
    node(facts, "c1")["paths"]["listen"] = {**listen, **change}
    if expected:
        assert the_one(facts, "controller_ports") == expected
    else:
        assert found(facts, "controller_ports") == []


STORE = "zookeeper.ssl.keystore.location: zk.jks: the password of the JKS store is wrong (QS-CONNECT-007)"


@pytest.mark.parametrize(
    ("error", "do"), [(STORE, "correct the store or its password"), ("NOAUTH", "correct zookeeper.connect")]
)
def test_a_host_on_which_a_restart_cannot_read_zookeeper_blocks(error, do):
    facts = collected()
    for host in ("b1", "b2"):
        node(facts, host)["paths"] = {"tried": {"zookeeper": 3}, "failed": [], "own_zookeeper": error}
    node(facts, "b3")["paths"] = {"tried": {"zookeeper": 3}, "failed": [], "own_zookeeper": None}
    assert the_one(facts, "own_zookeeper") == (
        f"a restart on b1, b2 cannot read ZooKeeper with the broker's settings: {error.partition(' (QS-')[0]}"
    )
    assert found(facts, "own_zookeeper")[0]["do"].startswith(do)
