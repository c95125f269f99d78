# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""preflight: groups, hosts, ids and versions of the inventory."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import inventory, preflight

from tests.unit.core import recorded
from tests.unit.core.preflight_facts import collected, found, node, the_one

# Groups and hosts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("role", "group"), [("broker", "kafka_broker"), ("controller", "kafka_controller")])
def test_finding_for_a_group_without_hosts(role, group):
    facts = collected()
    facts.cluster["nodes"] = {
        host: node_facts for host, node_facts in facts.cluster["nodes"].items() if node_facts["role"] != role
    }
    assert the_one(facts, "groups") == f"the inventory has no host in the group {group}"


def test_finding_for_a_host_in_both_groups():
    facts = collected()
    node(facts, "c2")["twice"] = True
    assert the_one(facts, "groups") == "c2 is in both groups, kafka_broker and kafka_controller"


@pytest.mark.parametrize(("left", "fits"), [(1, True), (2, False), (3, True)])
def test_an_even_number_of_controllers_blocks(left, fits):
    facts = collected()
    for host in ("c1", "c2", "c3")[left:]:
        del facts.cluster["nodes"][host]
    if fits:
        assert found(facts, "groups") == []
    else:
        assert the_one(facts, "groups") == "the group kafka_controller has 2 hosts"


def test_finding_for_a_host_that_was_not_reached():
    facts = collected("zk_no_ssh")
    assert the_one(facts, "reached").startswith("b2 was not reached: it was unreachable")


def test_findings_for_missing_files_and_services():
    facts = collected()
    node(facts, "b1")["file"].update(error="/etc/kafka/server.properties: malformed \\uxxxx escape")
    node(facts, "b2")["file"].update(exists=False, path="/opt/x.properties")
    node(facts, "b3")["service"].update(exists=False, name="kafka.service")
    node(facts, "c1")["service"].update(exists=False, name="kafka-controller.service")
    node(facts, "c2")["file"]["exists"] = False  # no finding: the migration creates a controller's file
    assert [finding["seen"] for finding in found(facts, "reached")] == [
        "b1: /etc/kafka/server.properties: malformed \\uxxxx escape",
        "b2 has no file /opt/x.properties",
        "b3 has no service kafka.service",
        "c1 has no service kafka-controller.service",
    ]


def with_hosts(facts, **of_one):
    """Set the identity of every host; those named in `of_one` have that machine id, boot id and host name."""
    for name, node_facts in facts.cluster["nodes"].items():
        machine, boot, hostname = of_one.get(name, (f"machine-{name}", f"boot-{name}", name))
        node_facts["hostname"] = hostname
        node_facts["host"] = {"machine_id": machine, "first_process": "systemd", "system": "Linux", "systemd": ""}
        node_facts["clock"] = {"boot_id": boot, "uptime_s": 1.0}
    return facts


def test_two_names_of_one_host_block():
    identity = ("m", "b", "kafka-1")
    facts = with_hosts(collected(), b1=identity, b3=identity)
    assert the_one(facts, "same_hosts") == "b1, b3 are one host, kafka-1, with the machine id m"


def test_a_broker_and_a_controller_on_one_host_warn_and_two_of_a_role_block():
    first, second = ("m", "b", "kafka-1"), ("m2", "b2", "kafka-2")
    (finding,) = inventory.same_hosts(with_hosts(collected(), b1=first, c1=first, b2=second, c2=second))
    assert finding.warns and finding.seen == (
        "a broker and a controller share a host: b1, c1; b2, c2. A failure of the host takes both"
    )
    blocking, warning = inventory.same_hosts(with_hosts(collected(), b1=first, c1=first, c2=first))
    assert not blocking.warns and blocking.seen == "c1, c2 are one host, kafka-1, with the machine id m"
    assert warning.warns


@pytest.mark.parametrize(
    "other", [("m", "b2", "kafka-1"), ("m2", "b", "kafka-1"), ("m", "b", "kafka-2"), (None, "b", "kafka-1")]
)
def test_clones_and_containers_are_several_hosts(other):
    assert found(with_hosts(collected(), b1=("m", "b", "kafka-1"), b3=other), "same_hosts") == []


def test_the_hosts_of_a_rehearsal_have_both_without_a_warning():
    facts = with_hosts(collected(), **dict.fromkeys(("b1", "c1"), ("m", "b", "kafka-1")))
    facts.cluster["zookeeper"]["cluster_id"] = {"value": "rehearsal-AAAAAAAAAAAA"}
    assert found(facts, "same_hosts") == []


def test_two_names_with_one_address_block():
    facts = with_hosts(collected())
    node(facts, "c2")["address"] = node(facts, "c1")["address"]
    assert the_one(facts, "same_hosts") == f"c1, c2 have one address, {node(facts, 'c1')['address']}"


# Identities ----------------------------------------------------------------------------------------------------------


def test_finding_for_a_registered_broker_outside_the_inventory():
    facts = collected()
    del facts.cluster["nodes"]["b3"]
    assert the_one(facts, "broker_ids") == "broker 5 is registered in ZooKeeper but is not in the group kafka_broker"


def dead(facts, host="b3"):
    """Return the facts as ZooKeeper and the brokers report them while a broker is down."""
    recorded.down(facts.cluster, host)["nodes"][host]["service"]["active_state"] = "inactive"
    number = node(facts, host)["node_id"]
    del facts.zookeeper["broker_ids"][str(number)]
    facts.metadata["broker_ids"].remove(number)
    del facts.cluster["topics"]["brokers"][str(number)]
    for topic in facts.cluster["topics"]["partitions"].values():
        for partition in topic.values():
            partition["isr"] = [replica for replica in partition["isr"] if replica != number] or partition["isr"]
            if partition["leader"] == number:
                partition["leader"] = -1 if partition["isr"] == [number] else partition["isr"][0]
    return facts


def test_a_dead_broker_is_one_finding():
    (only,) = preflight.run(dead(collected()))
    assert only["id"] == preflight.ID["broker_ids"]
    assert only["seen"].startswith("broker 5 on b3 is not registered in ZooKeeper (kafka.service is inactive); ")
    assert " partitions offline: " in only["seen"] and " partitions under-replicated: " in only["seen"]
    assert only["do"].startswith("start kafka.service on b3. If the broker is lost, reassign its replicas")


def test_a_dead_broker_is_quoted():
    facts = dead(collected())
    node(facts, "b3")["last_error"] = "ERROR Exiting Kafka: broker.id must not be greater than reserved.broker.max.id"
    assert the_one(facts, "broker_ids").endswith("; the last error in its log: " + node(facts, "b3")["last_error"])


def test_other_partition_problems_beside_a_dead_broker_are_a_separate_finding():
    facts = dead(collected())
    partitions = facts.cluster["topics"]["partitions"]
    name, partition = next(
        (name, numbers["0"]) for name, numbers in partitions.items() if numbers["0"]["isr"] == [1, 2]
    )
    partition["isr"] = [1]
    assert the_one(facts, "partitions") == f"1 partition under-replicated: {name}-0"


def test_finding_for_a_running_broker_without_a_zookeeper_session():
    facts = collected()
    del facts.zookeeper["broker_ids"]["5"]
    assert the_one(facts, "broker_ids") == ("broker 5 on b3 is not registered in ZooKeeper (kafka.service is active)")
    assert found(facts, "broker_ids")[0]["do"].startswith("find in its log why it has no ZooKeeper session")


def test_a_broker_registered_in_the_quorum_is_alive():
    facts = collected("brokers_joining_1")
    joined = next(broker for broker in facts.brokers.values() if broker["running"] == "zk_migration")
    facts.zookeeper["broker_ids"].pop(str(joined["node_id"]), None)
    assert found(facts, "broker_ids") == []


def test_finding_for_an_unreadable_broker_id():
    facts = collected()
    node(facts, "b2")["node_id"] = None
    assert the_one(facts, "broker_ids") == "the broker id of b2 could not be read"
    facts.zookeeper["broker_ids"]["77"] = {}
    assert [finding["seen"] for finding in found(facts, "broker_ids")] == [
        "broker 2 is registered in ZooKeeper but is not in the group kafka_broker",
        "broker 77 is registered in ZooKeeper but is not in the group kafka_broker",
        "the broker id of b2 could not be read",
    ]


def test_finding_for_two_brokers_with_one_id():
    facts = collected()
    node(facts, "b2")["node_id"] = 1
    same_id = [finding for finding in found(facts, "broker_ids") if "same broker id" in finding["seen"]]
    assert [finding["seen"] for finding in same_id] == ["b1, b2 have the same broker id, 1"]
    assert same_id[0]["do"].startswith("keep one name in the inventory if they are one host")


def test_unreadable_properties_are_one_finding():
    facts = collected()
    node(facts, "b2")["file"].update(error="/etc/kafka/server.properties: malformed", properties={}, mode=None)
    node(facts, "b2").update(node_id=None, log_dirs=[], next=None)
    facts.running.pop("b2")
    assert [finding["seen"] for finding in preflight.run(facts)] == ["b2: /etc/kafka/server.properties: malformed"]


@pytest.mark.parametrize("hosts", [["b2"], ["b1", "b2", "b3"], ["c1"]])
def test_each_unreached_host_is_one_finding(hosts):
    facts = collected()
    for host in hosts:
        recorded.unreached(facts.cluster, host, answers=True)
        if host.startswith("b"):
            node(facts, host)["node_id"] = None  # as plugin_utils.base.nodes does
            facts.running.pop(host)
    assert [finding["seen"] for finding in preflight.run(facts)] == [
        f"{host} was not reached: it was unreachable" for host in hosts
    ]


def test_an_unreachable_zookeeper_is_one_finding():
    (only,) = preflight.run(collected("zk_no_zookeeper", metadata=None))
    assert only["id"] == preflight.ID["zookeeper"]
    assert only["seen"].startswith("ZooKeeper could not be read: no ZooKeeper session within 5 s")


def test_finding_for_unreadable_zookeeper_metadata():
    facts = collected(metadata=None, metadata_error="ZooKeeper does not let this identity read /config")
    assert the_one(facts, "zookeeper") == (
        "ZooKeeper's metadata could not be read: ZooKeeper does not let this identity read /config"
    )


def test_finding_for_a_chroot_that_differs_from_the_brokers():
    facts = collected()
    facts.zookeeper["connect"] = "10.78.60.11:2181/staging"
    facts.zookeeper.update(reached=False, error="/staging does not exist in ZooKeeper at z1")
    assert the_one(facts, "zookeeper") == (
        "quorumshift_zookeeper_connect has the chroot /staging, zookeeper.connect of b1 has /prod/kafka-eu"
    )
    facts.zookeeper.update(connect="z:2181/prod/kafka-eu/", reached=True)
    assert found(facts, "zookeeper") == []


def test_a_chroot_after_each_host_is_one_with_a_comma():
    """As in ZooKeeper's ConnectStringParser."""
    facts = collected()
    facts.cluster["nodes"]["b1"]["file"]["properties"]["zookeeper.connect"] = "z1/k,z2:2181/k"
    assert the_one(facts, "zookeeper").startswith("zookeeper.connect of b1 is z1/k,z2:2181/k: ZooKeeper takes all")


def test_finding_for_another_cluster_id():
    facts = collected()
    mine = facts.zookeeper["cluster_id"]["value"]
    node(facts, "b2")["log_dirs"][1]["meta"]["cluster.id"] = "another"
    assert the_one(facts, "cluster_ids") == (
        f"b2: /var/lib/kafka/data2/meta.properties has cluster id another, ZooKeeper has {mine}"
    )


def test_finding_for_a_missing_cluster_id_in_zookeeper():
    facts = collected()
    facts.zookeeper["cluster_id"] = {"exists": False, "value": None}
    assert the_one(facts, "cluster_ids") == "/cluster/id does not exist in ZooKeeper"


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (None, "c2 has no quorumshift_node_id"),
        (5, "c2 has quorumshift_node_id 5, which is the id of b3"),
        (101, "c2 has quorumshift_node_id 101, which is the id of c1"),
    ],
)
def test_finding_for_a_missing_or_duplicate_node_id(number, expected):
    facts = collected()
    node(facts, "c2")["node_id"] = number
    assert the_one(facts, "node_ids") == expected


def test_finding_for_the_id_of_a_broker_outside_the_inventory():
    facts = collected()
    facts.zookeeper["broker_ids"]["103"] = {}
    assert the_one(facts, "node_ids") == "c3 has quorumshift_node_id 103, which is the id of broker 103"


@pytest.mark.parametrize("number", [-1, 2**31, "x101"])
def test_finding_for_an_invalid_node_id(number):
    facts = collected()
    node(facts, "c2")["node_id"] = number
    assert the_one(facts, "node_ids") == f"c2 has quorumshift_node_id {number}, which is no valid id"


def test_finding_for_a_node_id_with_configs_of_a_former_broker():
    facts = collected()
    facts.metadata["configs"]["broker"]["102"] = {"log.cleaner.threads": "2"}
    assert the_one(facts, "node_ids").startswith(
        "c2 has quorumshift_node_id 102, and ZooKeeper has configs of a former"
    )


# Versions ------------------------------------------------------------------------------------------------------------


def test_finding_for_mixed_releases():
    facts = collected()
    node(facts, "c1")["version"] = "3.9.1"
    assert the_one(facts, "versions").startswith("versions are mixed: b1 3.9.2, b2 3.9.2, b3 3.9.2, c1 3.9.1")


def with_version(version, protocol="3.9"):
    """Return facts with this version on all nodes and this protocol version on all brokers."""
    facts = collected()
    for node_facts in facts.cluster["nodes"].values():
        node_facts["version"] = version
    for values in facts.running.values():
        values["inter.broker.protocol.version"] = protocol
    return facts


@pytest.mark.parametrize(
    ("version", "protocol", "seen"),
    [
        ("3.7.2", "3.7", "Kafka 3.7.2 is installed"),
        ("3.8.1", "3.8", "Kafka 3.8.1 is installed"),
        ("4.0.0", "3.9", "Kafka 4.0.0 is installed: it has no ZooKeeper"),
        ("7.7.1-ccs", "3.7", "Kafka 7.7.1-ccs (Kafka 3.7) is installed"),
        ("7.8.0-ccs", "3.8", "Kafka 7.8.0-ccs (Kafka 3.8) is installed"),
        ("8.0.0-ccs", "3.9", "Kafka 8.0.0-ccs (Kafka 4.0) is installed: it has no ZooKeeper"),
        ("7.9.0-ce", "3.9", "Kafka 7.9.0-ce is installed, Confluent Server"),
        ("3.9.1.redhat-00001", "3.9", "Kafka 3.9.1.redhat-00001 is installed, a build of Red Hat"),
        ("3.9.0-amzn-1", "3.9", "Kafka 3.9.0-amzn-1 is installed, a build of Amazon"),
        ("3.9.2-SNAPSHOT", "3.9", "Kafka 3.9.2-SNAPSHOT is installed, an unreleased build"),
        ("3.9.1.7.3.1.0-197", "3.9", "Kafka 3.9.1.7.3.1.0-197 is installed, a build that the tool does not know"),
    ],
)
def test_an_unsupported_release_is_the_only_finding(version, protocol, seen):
    """Nothing says to set inter.broker.protocol.version to another release's, or to Confluent's number."""
    facts = with_version(version, protocol)
    assert the_one(facts, "versions") == seen
    assert "Apache Kafka 3.9.x, or Confluent's community build of it, 7.9.x-ccs" in found(facts, "versions")[0]["do"]


CLUSTER = "C1"


def with_tokens(version, *names, protocol="3.9", cluster_id=CLUSTER):
    facts = with_version(version, protocol)
    facts.zookeeper["cluster_id"] = {"value": CLUSTER}
    return facts._replace(accept_not_compared=[f"{cluster_id}:{name}" for name in names])


def test_the_token_of_a_build_of_confluent_server_makes_it_a_warning():
    (blocked,) = found(with_tokens("7.9.0-ce"), "versions")
    assert blocked["severity"] == "blocks"
    assert f"-e quorumshift_accept_not_compared={CLUSTER}:build=7.9.0-ce" in blocked["do"]
    (warned,) = found(with_tokens("7.9.0-ce", "build=7.9.0-ce"), "versions")
    assert warned["severity"] == "warns" and "7.9.0-ce" in warned["seen"]
    for other in (with_tokens("7.9.0-ce", "build=7.9.1-ce"), with_tokens("7.9.0-ce", "build=7.9.0-ce", cluster_id="X")):
        assert [finding["severity"] for finding in found(other, "versions")] == ["blocks"]
    old = found(with_tokens("7.9.0-ce", "build=7.9.0-ce", protocol="3.8"), "versions")
    assert [finding["severity"] for finding in old if "set it to 3.9" in finding["do"]]


@pytest.mark.parametrize(
    ("version", "seen"),
    [
        ("7.8.0-ce", "Kafka 7.8.0-ce is installed"),
        ("8.0.0-ce", "Kafka 8.0.0-ce is installed: it has no ZooKeeper"),
        ("3.9.0-amzn-1", "Kafka 3.9.0-amzn-1 is installed, a build of Amazon"),
    ],
)
def test_no_token_accepts_another_release_or_build(version, seen):
    (finding,) = found(with_tokens(version, f"build={version}"), "versions")
    assert (finding["seen"], finding["severity"]) == (seen, "blocks")


@pytest.mark.parametrize("version", ["3.9.0", "3.9.2", "7.9.0-ccs", "7.9.5-ccs"])
def test_supported_releases_have_protocol_version_3_9(version):
    assert found(with_version(version), "versions") == []
    old = with_version(version, "3.8")
    assert {finding["do"].split(" on ")[0] for finding in found(old, "versions")} == {"set it to 3.9"}


def test_finding_for_a_controller_without_the_tool_that_formats():
    facts = collected()
    node(facts, "c1")["storage_tool"] = ""
    assert the_one(facts, "reached").startswith("c1 has no kafka-storage.sh and no kafka-storage")


def test_finding_for_an_unreadable_release():
    facts = collected()
    node(facts, "b3")["version"] = None
    assert the_one(facts, "versions") == "the Kafka version of b3 could not be read"


@pytest.mark.parametrize("value", ["3.8", "3.8-IV0", "3.4-IV0"])
def test_finding_for_an_old_protocol_version(value):
    facts = collected()
    facts.running["b2"]["inter.broker.protocol.version"] = value
    assert the_one(facts, "versions") == f"b2 runs with inter.broker.protocol.version {value}, its release is 3.9.2"
    assert "set it to 3.9 on every broker" in found(facts, "versions")[0]["do"]


@pytest.mark.parametrize("value", ["3.9", "3.9-IV0"])
def test_no_finding_for_the_protocol_version_of_the_release(value):
    facts = collected()
    for values in facts.running.values():
        values["inter.broker.protocol.version"] = value
    assert found(facts, "versions") == []


@pytest.mark.parametrize(
    ("error", "denied", "do"),
    [("Local: Timed out", False, "run it again"), ("Broker: Cluster authorization failed", True, "grant")],
)
def test_a_running_config_that_did_not_arrive_is_no_missing_right(error, denied, do):
    facts = collected()
    facts.running["b1"] = {"error": error, "denied": denied}
    assert the_one(facts, "versions") == f"the running config of b1 could not be read: {error}"
    assert found(facts, "versions")[0]["do"].startswith(do)


# Generated ids -------------------------------------------------------------------------------------------------------


def test_warning_for_generated_broker_ids():
    facts = collected()
    assert found(facts, "id_generation") == []
    node(facts, "b2")["file"]["properties"].pop("broker.id", None)
    node(facts, "b3")["file"]["properties"].update({"broker.id": "-1", "reserved.broker.max.id": "2000"})
    assert the_one(facts, "id_generation") == "b2, b3 let ZooKeeper generate their broker ids"
    assert found(facts, "id_generation")[0]["severity"] == "warns"
    node(facts, "c2")["node_id"] = 1001
    assert [(finding["severity"], finding["seen"]) for finding in found(facts, "id_generation")][1:] == [
        ("blocks", "node ids of c2 are above 1000, in the range of broker ids that ZooKeeper generates")
    ]


def test_an_id_under_its_other_name_is_not_generated():
    facts = collected()
    properties = node(facts, "b2")["file"]["properties"]
    properties["node.id"] = properties.pop("broker.id")
    assert found(facts, "id_generation") == []


@pytest.mark.parametrize(
    ("changes", "starts"),
    [
        ({"broker.id": "1001"}, False),
        ({"broker.id": "1001", "broker.id.generation.enable": "true"}, False),
        ({"broker.id": "1001", "broker.id.generation.enable": "false"}, True),
        ({"broker.id": "1001", "reserved.broker.max.id": "1001"}, True),
        ({"broker.id": "1000"}, True),
    ],
)
def test_an_id_that_kafka_does_not_start_with_blocks(changes, starts):
    facts = collected()
    node(facts, "b2")["file"]["properties"].update(changes)
    seen = [finding["seen"] for finding in found(facts, "id_generation")]
    assert bool(seen) != starts
    if seen:
        assert seen[0].startswith("/etc/kafka/server.properties of b2 has broker.id 1001, above reserved.broker.max.id")
        assert found(facts, "id_generation")[0]["severity"] == "blocks"
