# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every hazard, found in facts of a real cluster with that one thing wrong, and nothing found in it as it was."""

from __future__ import annotations

import pathlib

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.judgements import kraft_config, preflight
from ansible_collections.quorumshift.kafka.plugins.module_utils.judgements.hazards import requests

from tests.unit.judgements import recorded
from tests.unit.judgements.preflight_facts import collected, found, node, the_one


@pytest.mark.parametrize("name", ["zk", "controllers_ready", "reverted"])
def test_nothing_is_found_in_a_healthy_cluster(name):
    facts = collected(name)
    facts.cluster["topics"] = recorded.facts("zk")["topics"]
    facts.cluster["zookeeper"]["cluster_id"] = collected().cluster["zookeeper"]["cluster_id"]
    for one in facts.cluster["nodes"].values():
        for directory in one["log_dirs"]:
            if directory["meta"]:
                directory["meta"]["cluster.id"] = facts.zookeeper["cluster_id"]["value"]
    assert preflight.run(facts) == []


def test_every_finding_carries_its_check():
    facts = collected("zk_no_zookeeper")
    for one in preflight.run(facts):
        assert set(one) == {"id", "title", "severity", "source", "seen", "do", "waived"}
        assert one["severity"] in ("blocks", "warns")
    assert len({check.id for check in preflight.CHECKS}) == len(preflight.CHECKS)


def test_no_command_begins_what_is_to_be_done():
    """Shown as a sentence, it begins with a capital."""
    facts = dialling("User:controller", **OVER_TLS)._replace(rights={"cluster": [], "topics": {}})
    node(facts, "b1")["service"]["unit_file_state"] = "disabled"
    facts.metadata["acls"] = []
    told = [one["do"].split()[0] for one in preflight.run(facts)]
    assert told and not [word for word in told if word.startswith(("kafka-", "systemctl", "zookeeper-"))]


def test_every_check_is_provoked_here():
    files = pathlib.Path(__file__).parent.glob("test_preflight*.py")
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    for check in preflight.CHECKS:
        assert f'the_one(facts, "{check.id}")' in text or f'found(facts, "{check.id}")' in text, check.id


def test_after_the_copy_only_what_concerns_hosts_is_checked():
    facts = collected("zk_no_zookeeper", metadata=None)
    assert preflight.run(facts, before_copy=False) == []


# Groups and hosts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("role", "group"), [("broker", "kafka_broker"), ("controller", "kafka_controller")])
def test_a_group_without_hosts(role, group):
    facts = collected()
    facts.cluster["nodes"] = {host: one for host, one in facts.cluster["nodes"].items() if one["role"] != role}
    assert the_one(facts, "groups") == f"the inventory has no host in the group {group}"


def test_a_host_in_both_groups():
    facts = collected()
    node(facts, "c2")["twice"] = True
    assert the_one(facts, "groups") == "c2 is in both groups, kafka_broker and kafka_controller"


@pytest.mark.parametrize(("left", "fits"), [(1, True), (2, False), (3, True)])
def test_the_number_of_controllers(left, fits):
    facts = collected()
    for host in ("c1", "c2", "c3")[left:]:
        del facts.cluster["nodes"][host]
    if fits:
        assert found(facts, "groups") == []
    else:
        assert the_one(facts, "groups") == "the group kafka_controller has 2 hosts"


def test_a_host_that_was_not_reached():
    facts = collected("zk_no_ssh")
    assert the_one(facts, "reached").startswith("b2 was not reached: it was unreachable")


def test_files_and_services_that_are_not_there():
    facts = collected()
    node(facts, "b1")["file"].update(error="/etc/kafka/server.properties: malformed \\uxxxx escape")
    node(facts, "b2")["file"].update(exists=False, path="/opt/x.properties")
    node(facts, "b3")["service"].update(exists=False, name="kafka.service")
    node(facts, "c1")["service"].update(exists=False, name="kafka-controller.service")
    node(facts, "c2")["file"]["exists"] = False  # a controller's file is made by the migration
    assert [one["seen"] for one in found(facts, "reached")] == [
        "b1: /etc/kafka/server.properties: malformed \\uxxxx escape",
        "b2 has no file /opt/x.properties",
        "b3 has no service kafka.service",
        "c1 has no service kafka-controller.service",
    ]


# Identities ----------------------------------------------------------------------------------------------------------


def test_a_live_broker_that_is_not_in_the_inventory():
    facts = collected()
    del facts.cluster["nodes"]["b3"]
    assert the_one(facts, "broker_ids") == "broker 5 is alive in ZooKeeper and is not in the group kafka_broker"


def dead(facts, host="b3"):
    """As ZooKeeper and the brokers tell of a broker that is down."""
    recorded.down(facts.cluster, host)["nodes"][host]["service"]["active_state"] = "inactive"
    number = node(facts, host)["node_id"]
    del facts.zookeeper["broker_ids"][str(number)]
    facts.metadata["broker_ids"].remove(number)
    del facts.cluster["topics"]["brokers"][str(number)]
    for topic in facts.cluster["topics"]["partitions"].values():
        for one in topic.values():
            one["isr"] = [replica for replica in one["isr"] if replica != number] or one["isr"]
            if one["leader"] == number:
                one["leader"] = -1 if one["isr"] == [number] else one["isr"][0]
    return facts


def test_a_dead_broker_is_one_finding():
    (only,) = preflight.run(dead(collected()))
    assert only["id"] == "broker_ids"
    assert only["seen"].startswith("b3 has broker id 5, which is not alive in ZooKeeper (kafka.service is inactive); ")
    assert " partitions offline: " in only["seen"] and " partitions under-replicated: " in only["seen"]
    assert only["do"].startswith("start kafka.service on b3. If it is gone for good, reassign its replicas")


def test_what_ails_beside_a_dead_broker_is_a_finding_of_its_own():
    facts = dead(collected())
    partitions = facts.cluster["topics"]["partitions"]
    name, one = next((name, told["0"]) for name, told in partitions.items() if told["0"]["isr"] == [1, 2])
    one["isr"] = [1]
    assert the_one(facts, "partitions") == f"1 partition under-replicated: {name}-0"


def test_a_broker_that_runs_without_a_session_in_zookeeper():
    facts = collected()
    del facts.zookeeper["broker_ids"]["5"]
    assert the_one(facts, "broker_ids") == (
        "b3 has broker id 5, which is not alive in ZooKeeper (kafka.service is active)"
    )
    assert found(facts, "broker_ids")[0]["do"].startswith("see in its log why it has no session in ZooKeeper")


def test_a_broker_that_joined_the_quorum_is_alive_there():
    facts = collected("brokers_joining_1")
    joined = next(one for one in facts.brokers.values() if one["running"] == "zk_migration")
    facts.zookeeper["broker_ids"].pop(str(joined["node_id"]), None)
    assert found(facts, "broker_ids") == []


def test_a_broker_id_that_could_not_be_read():
    facts = collected()
    node(facts, "b2")["node_id"] = None
    assert the_one(facts, "broker_ids") == "the broker id of b2 could not be read"
    facts.zookeeper["broker_ids"]["77"] = {}
    assert [one["seen"] for one in found(facts, "broker_ids")] == [
        "broker 2 is alive in ZooKeeper and is not in the group kafka_broker",
        "broker 77 is alive in ZooKeeper and is not in the group kafka_broker",
        "the broker id of b2 could not be read",
    ]


def test_two_brokers_of_one_id():
    facts = collected()
    node(facts, "b2")["node_id"] = 1
    assert "two hosts of the group kafka_broker have the same broker id" in [
        one["seen"] for one in found(facts, "broker_ids")
    ]


def test_properties_that_could_not_be_read_are_one_finding():
    facts = collected()
    node(facts, "b2")["file"].update(error="/etc/kafka/server.properties: malformed", properties={}, mode=None)
    node(facts, "b2").update(node_id=None, log_dirs=[], next=None)
    facts.running.pop("b2")
    assert [one["seen"] for one in preflight.run(facts)] == ["b2: /etc/kafka/server.properties: malformed"]


@pytest.mark.parametrize("hosts", [["b2"], ["b1", "b2", "b3"], ["c1"]])
def test_hosts_that_were_not_reached_are_a_finding_each(hosts):
    facts = collected()
    for host in hosts:
        recorded.unreached(facts.cluster, host, answers=True)
        if host.startswith("b"):
            node(facts, host)["node_id"] = None  # as plugin_utils.base.nodes tells of it
            facts.running.pop(host)
    assert [one["seen"] for one in preflight.run(facts)] == [
        f"{host} was not reached: it was unreachable" for host in hosts
    ]


def test_zookeeper_that_does_not_answer_is_one_finding():
    (only,) = preflight.run(collected("zk_no_zookeeper", metadata=None))
    assert only["id"] == "zookeeper"
    assert only["seen"].startswith("ZooKeeper could not be read: no ZooKeeper session within 5 s")


def test_metadata_that_may_not_be_read():
    facts = collected(metadata=None, metadata_error="ZooKeeper does not let this identity read /config")
    assert the_one(facts, "zookeeper") == (
        "ZooKeeper's metadata could not be read: ZooKeeper does not let this identity read /config"
    )


def test_a_chroot_that_is_not_the_brokers():
    facts = collected()
    facts.zookeeper["connect"] = "10.78.60.11:2181/staging"
    facts.zookeeper.update(reached=False, error="/staging does not exist in ZooKeeper at z1")
    assert the_one(facts, "zookeeper") == (
        "quorumshift_zookeeper_connect has the chroot /staging, zookeeper.connect of b1 has /prod/kafka-eu"
    )
    facts.zookeeper.update(connect="z:2181/prod/kafka-eu/", reached=True)
    assert found(facts, "zookeeper") == []


def test_cluster_ids_that_differ():
    facts = collected()
    mine = facts.zookeeper["cluster_id"]["value"]
    node(facts, "b2")["log_dirs"][1]["meta"]["cluster.id"] = "another"
    assert the_one(facts, "cluster_ids") == (
        f"b2: /var/lib/kafka/data2/meta.properties says cluster id another, ZooKeeper says {mine}"
    )


def test_no_cluster_id_in_zookeeper():
    facts = collected()
    facts.zookeeper["cluster_id"] = {"exists": False, "value": None}
    assert the_one(facts, "cluster_ids") == "/cluster/id does not exist in ZooKeeper"


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (None, "c2 has no quorumshift_node_id"),
        (5, "c2 has quorumshift_node_id 5, which is the id of b3"),
        (101, "c2 has quorumshift_node_id 101, which is the id of c1"),
    ],
)
def test_node_ids_of_controllers(number, told):
    facts = collected()
    node(facts, "c2")["node_id"] = number
    assert the_one(facts, "node_ids") == told


def test_the_node_id_of_a_broker_outside_the_inventory():
    facts = collected()
    facts.zookeeper["broker_ids"]["103"] = {}
    assert the_one(facts, "node_ids") == "c3 has quorumshift_node_id 103, which is the id of broker 103"


# Versions ------------------------------------------------------------------------------------------------------------


def test_mixed_releases():
    facts = collected()
    node(facts, "c1")["version"] = "3.9.1"
    assert the_one(facts, "versions").startswith("versions are mixed: b1 3.9.2, b2 3.9.2, b3 3.9.2, c1 3.9.1")


def test_a_release_from_which_nothing_migrates():
    facts = collected()
    for one in facts.cluster["nodes"].values():
        one["version"] = "3.7.2"
    for values in facts.running.values():
        values["inter.broker.protocol.version"] = "3.7"
    assert the_one(facts, "versions") == "Kafka 3.7.2 is installed"


def test_a_release_that_could_not_be_read():
    facts = collected()
    node(facts, "b3")["version"] = None
    assert the_one(facts, "versions") == "the Kafka version of b3 could not be read"


@pytest.mark.parametrize("value", ["3.8", "3.8-IV0", "3.4-IV0"])
def test_a_protocol_version_that_is_not_the_releases(value):
    facts = collected()
    facts.running["b2"]["inter.broker.protocol.version"] = value
    assert the_one(facts, "versions") == f"b2 runs with inter.broker.protocol.version {value}, its release is 3.9.2"
    assert "set it to 3.9 on every broker" in found(facts, "versions")[0]["do"]


@pytest.mark.parametrize("value", ["3.9", "3.9-IV0"])
def test_the_protocol_version_of_the_release(value):
    facts = collected()
    for values in facts.running.values():
        values["inter.broker.protocol.version"] = value
    assert found(facts, "versions") == []


def test_a_broker_that_could_not_be_asked():
    facts = collected()
    facts.running["b1"] = {"error": "Local: Timed out"}
    assert the_one(facts, "versions") == "the running configuration of b1 could not be asked: Local: Timed out"


# Partitions ----------------------------------------------------------------------------------------------------------


def first_of(facts, replicas=3):
    partitions = facts.cluster["topics"]["partitions"]
    name = next(name for name, told in partitions.items() if len(told["0"]["replicas"]) == replicas)
    return name, partitions[name]["0"]


def test_a_partition_under_replicated():
    facts = collected()
    name, one = first_of(facts)
    one["isr"] = one["isr"][:-1]
    assert the_one(facts, "partitions") == f"1 partition under-replicated: {name}-0"


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_a_partition_offline(replicas):
    facts = collected()
    name, one = first_of(facts, replicas)
    one.update(leader=-1, isr=one["isr"][:1])
    assert f"1 partition offline: {name}-0" in [told["seen"] for told in found(facts, "partitions")]


def test_metadata_that_no_broker_gives():
    facts = collected()
    facts.cluster["topics"] = {"reached": False, "error": "the brokers' metadata could not be read: timed out"}
    assert the_one(facts, "partitions") == "the brokers' metadata could not be read: timed out"
    assert found(facts, "partitions")[0]["do"].startswith("mend quorumshift_bootstrap_servers")


def moved(facts):
    name = sorted(facts.metadata["topics"])[0]
    return name, facts.metadata["topics"][name]["partitions"]["0"]


@pytest.mark.parametrize("change", [{"adding": [5]}, {"removing": [1]}])
def test_a_reassignment_in_flight(change):
    facts = collected()
    name, one = moved(facts)
    one.update(change)
    assert the_one(facts, "reassignments") == f"{name}-0 is being reassigned"


def test_a_reassignment_that_nobody_took_up():
    facts = collected()
    facts.zookeeper["reassign_partitions"] = {"exists": True}
    assert the_one(facts, "reassignments").startswith("/admin/reassign_partitions exists")


def test_a_replica_on_a_broker_that_is_not_there():
    facts = collected()
    name, one = moved(facts)
    one["replicas"] = [*one["replicas"], 99]
    assert the_one(facts, "dead_replicas") == f"broker 99 holds replicas and is not there: {name}-0"


def test_a_broker_that_died_with_many_replicas():
    facts = collected()
    facts.metadata["broker_ids"].remove(5)
    assert "broker 5 holds replicas and is not there: " in the_one(facts, "dead_replicas")
    assert " more" in the_one(facts, "dead_replicas")


# What an earlier attempt left ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["migration_stale", "migration_malformed"])
def test_a_migration_znode_of_an_earlier_attempt(name):
    facts = collected(name)
    told = {"migration_stale": "a copy was done up to offset", "migration_malformed": "/migration is malformed"}
    assert told[name] in the_one(facts, "stale_migration")


def test_a_migration_znode_at_the_start():
    facts = collected()
    facts.zookeeper["migration"] = {"exists": True, "kraft_metadata_offset": -1, "malformed": None}
    assert found(facts, "stale_migration") == []


def formatted(facts, **meta):
    directory = node(facts, "c1")["log_dirs"] = [
        {"path": "/meta", "exists": True, "empty": False, "error": None, "meta": None}
    ]
    if meta:
        directory[0]["meta"] = {"cluster.id": facts.zookeeper["cluster_id"]["value"], "node.id": "101", **meta}
    return facts


def test_a_controllers_directory_of_this_attempt():
    assert found(formatted(collected(), version="1"), "controller_directories") == []


@pytest.mark.parametrize(
    ("meta", "told"),
    [
        ({}, "c1: /meta is not empty and has no meta.properties"),
        ({"cluster.id": "other"}, "c1: /meta was formatted for cluster other, node 101"),
        ({"node.id": "9"}, "c1: /meta was formatted for cluster CLUSTER, node 9"),
    ],
)
def test_a_controllers_directory_of_another(meta, told):
    facts = formatted(collected(), **meta)
    assert the_one(facts, "controller_directories") == told.replace("CLUSTER", facts.zookeeper["cluster_id"]["value"])
    assert found(facts, "controller_directories")[0]["do"].startswith("if it is of no use to anybody, stop the service")


def test_no_wipe_is_advised_under_brokers_in_migration_mode():
    facts = formatted(collected(), **{"cluster.id": "other"})
    node(facts, "b2").update(running=None, next="zk_migration")
    do = found(facts, "controller_directories")[0]["do"]
    assert do.startswith("bring every broker back to plain ZooKeeper mode first") and "empty" not in do


@pytest.mark.parametrize("state", ["NONE", "MIGRATION", "POST_MIGRATION"])
def test_a_metadata_log_of_an_earlier_attempt(state):
    facts = collected("controllers_ready")
    node(facts, "c2")["metadata_log"]["zk_migration_state"] = state
    assert the_one(facts, "controller_directories") == (
        f"c2: its metadata log is in state {state}, an earlier attempt's"
    )


def test_brokers_that_an_earlier_attempt_registered():
    facts = collected("controllers_ready")
    node(facts, "c1")["metadata_log"]["brokers"] = {"2": {}}
    told = [one["seen"] for one in found(facts, "controller_directories")]
    assert told == [
        "broker 2 is registered in the controllers' log and runs in mode zk: the copy would not wait for it"
    ]
    facts.zookeeper["migration"]["kraft_metadata_offset"] = None
    told = [one["seen"] for one in found(facts, "controller_directories")]
    assert told[0] == "brokers are registered in the controllers' log, and /migration stands at None"


def test_metadata_that_the_copy_would_fail_on():
    facts = collected()
    facts.metadata["problems"] = [{"path": "/brokers/topics/x", "reason": "has no topic_id"}]
    assert the_one(facts, "unreadable") == "ZooKeeper /brokers/topics/x: has no topic_id"


# Secrets and settings ------------------------------------------------------------------------------------------------


def test_encrypted_configs_without_the_secret():
    facts = collected()
    del node(facts, "b3")["file"]["properties"]["password.encoder.secret"]
    assert the_one(facts, "encoder_secret") == (
        "ZooKeeper holds encrypted configs (listener.name.external.ssl.keystore.password of broker 1), "
        "and b3 has no password.encoder.secret"
    )


def test_no_secret_is_needed_where_nothing_is_encrypted():
    facts = collected()
    facts.metadata["configs"]["broker"] = {"1": {"num.io.threads": "9"}}
    for host in facts.brokers:
        del node(facts, host)["file"]["properties"]["password.encoder.secret"]
    assert found(facts, "encoder_secret") == []


def test_brokers_that_disagree():
    facts = collected()
    node(facts, "b2")["file"]["properties"]["min.insync.replicas"] = "1"
    assert the_one(facts, "agreement") == (
        "brokers disagree on min.insync.replicas, which controllers take from them: b1 2, b2 1, b3 2"
    )
    said = facts._replace(controller_config={"min.insync.replicas": "2"})
    assert found(said, "agreement") == []


def test_secrets_that_differ_are_not_shown():
    facts = collected()
    node(facts, "b2")["file"]["properties"]["password.encoder.secret"] = "sealed:other"
    told = the_one(facts, "agreement")
    assert told.endswith("which controllers take from them: their values differ") and "sealed" not in told


@pytest.mark.parametrize(
    ("key", "own", "severity", "told"),
    [
        ("min.insync.replicas", "2", None, None),
        ("num.io.threads", "1", None, None),
        ("delete.topic.enable", "True", None, None),
        ("queued.max.requests", "1", None, None),
        ("broker.session.timeout.ms", "9000", None, None),  # the brokers have none
        (
            "min.insync.replicas",
            "1",
            "warns",
            "min.insync.replicas of quorumshift_controller_config is 1, the brokers have 2",
        ),
        ("delete.topic.enable", "false", "warns", "delete.topic.enable of quorumshift_controller_config is false, the"),
        (
            "inter.broker.listener.name",
            "X",
            "blocks",
            "inter.broker.listener.name of quorumshift_controller_config is X",
        ),
        ("zookeeper.connect", "z:2181", "blocks", "zookeeper.connect of quorumshift_controller_config is z:2181, the"),
        (
            "password.encoder.secret",
            "sealed:x",
            "blocks",
            "password.encoder.secret of quorumshift_controller_config differs",
        ),
        ("super.users", "User:quorumshift;User:ANONYMOUS;User:me", None, None),
        (
            "super.users",
            "User:ANONYMOUS;User:me",
            "blocks",
            "super.users of quorumshift_controller_config lacks User:quor",
        ),
    ],
)
def test_settings_of_controllers_that_are_not_the_brokers(key, own, severity, told):
    facts = collected(controller_config={key: own})
    if told is None:
        assert found(facts, "overrides") == []
    else:
        assert the_one(facts, "overrides").startswith(told)
        assert found(facts, "overrides")[0]["severity"] == severity
        assert "sealed" not in str(found(facts, "overrides"))


def test_policies_are_settings_that_controllers_take():
    assert all(kraft_config.taken_from_brokers(key) for key in kraft_config.POLICIES)


ALL = ["ALTER", "CREATE", "DESCRIBE", "DESCRIBE_CONFIGS"]


@pytest.mark.parametrize(
    ("cluster", "topic", "told"),
    [
        (ALL, ALL, None),
        (["DESCRIBE_CONFIGS"], ["DESCRIBE", "DESCRIBE_CONFIGS"], None),
        (
            ["DESCRIBE"],
            ALL,
            "the tool's principal has no DescribeConfigs on the cluster, which it needs for the brokers'",
        ),
        (
            ALL,
            ["DESCRIBE_CONFIGS"],
            "the tool's principal has no Describe on 1 of 2 topics, which it needs for whether",
        ),
        (
            ALL,
            ["DESCRIBE"],
            "the tool's principal has no DescribeConfigs on 1 of 2 topics, which it needs for min.insync",
        ),
    ],
)
def test_what_the_tool_may_read(cluster, topic, told):
    facts = collected(rights={"cluster": cluster, "topics": {"a": ALL, "b": topic}}, client_principal="User:tool")
    if told is None:
        assert found(facts, "tool_acls") == []
    else:
        assert the_one(facts, "tool_acls").startswith(told)
        assert found(facts, "tool_acls")[0]["do"].startswith(
            "grant it: kafka-acls.sh --add --allow-principal User:tool --operation De"
        )


def test_a_denied_read_of_brokers_configurations_is_one_finding():
    facts = collected(rights={"cluster": [], "topics": {}})
    facts.running.update({host: {"error": "Cluster authorization failed."} for host in facts.brokers})
    assert found(facts, "versions") == [] and len(found(facts, "tool_acls")) == 1


def test_rights_that_could_not_be_asked():
    facts = collected(rights={"error": "Local: Timed out"})
    assert the_one(facts, "tool_acls") == "what this tool may read could not be asked: Local: Timed out"


@pytest.mark.parametrize(
    ("principal", "given", "told"),
    [
        ("User:tool", ["User:CN=c"], ["User:tool, as whom this tool dials them, is no super user on controllers"]),
        ("User:tool", ["User:CN=c", "User:tool"], []),
        ("User:CN=c", ["User:CN=c"], []),
        (None, ["User:CN=c"], []),
    ],
)
def test_this_tool_at_the_controllers(principal, given, told):
    facts = collected(
        controller_protocol="SASL_SSL",
        controller_principal="User:CN=c",
        controller_super_users=given,
        tool_principal=principal,
    )
    assert [one["seen"] for one in found(facts, "controller_super_users")] == told


def test_super_users_that_the_operator_sets_whole():
    facts = collected(
        controller_protocol="SSL",
        controller_principal="User:CN=c",
        controller_super_users=["User:CN=c"],
        controller_config={"super.users": "User:quorumshift;User:ANONYMOUS"},
    )
    assert the_one(facts, "controller_super_users").startswith("User:CN=c, as whom controllers dial each other")


@pytest.mark.parametrize(
    ("protocol", "mechanism", "fits"),
    [
        ("PLAINTEXT", None, True),
        ("SSL", None, True),
        ("SASL_SSL", "PLAIN", True),
        ("SASL_PLAINTEXT", "GSSAPI", True),
        ("SASL_SSL", None, False),
        ("SASL_SSL", "SCRAM-SHA-512", False),
    ],
)
def test_the_controller_listener(protocol, mechanism, fits):
    config = {"sasl.mechanism.controller.protocol": mechanism} if mechanism else {}
    facts = collected(controller_protocol=protocol, controller_config=config)
    if fits:
        assert found(facts, "controller_listener") == []
    else:
        assert the_one(facts, "controller_listener").startswith(f"the controller listener is {protocol} with ")


def dialling(principal, **properties):
    facts = collected(controller_principal=principal)
    for host in facts.brokers:
        node(facts, host)["file"]["properties"].update(properties)
    return facts


OVER_TLS = {"listener.security.protocol.map": "INTERNAL:SSL,CLIENTS:SASL_SSL"}


def test_controllers_on_a_plain_listener_are_anonymous():
    facts = dialling("User:controller")
    assert "a controller is User:ANONYMOUS" in found(facts, "controller_acl")[0]["seen"]
    assert len(found(facts, "controller_acl")) == 3


def test_controllers_on_a_secured_listener_have_a_name():
    facts = dialling("User:ANONYMOUS", **OVER_TLS)
    assert (
        "quorumshift_controller_principal is not set, and brokers and controllers log in at b1"
        in found(facts, "controller_acl")[0]["seen"]
    )


@pytest.mark.parametrize(
    ("acl", "fits"),
    [
        (None, False),
        ({}, True),
        ({"operation": "ALL"}, True),
        ({"principal": "User:*"}, True),
        ({"operation": "DESCRIBE"}, False),
        ({"host": "10.0.0.1"}, False),
        ({"resource_type": "TOPIC"}, False),
        ({"permission": "DENY"}, False),
    ],
)
def test_cluster_action_of_controllers(acl, fits):
    facts = dialling("User:controller", **OVER_TLS)
    whole = {
        "resource_type": "CLUSTER",
        "resource_name": "kafka-cluster",
        "pattern_type": "LITERAL",
        "principal": "User:controller",
        "host": "*",
        "operation": "CLUSTER_ACTION",
        "permission": "ALLOW",
    }
    assert set(whole) == set(facts.metadata["acls"][0]), "not the shape of the recorded ACLs"
    facts.metadata["acls"] = [] if acl is None else [{**whole, **acl}]
    told = [one["seen"] for one in found(facts, "controller_acl")]
    assert told == (
        []
        if fits
        else [f"User:controller, as whom controllers dial {host}, has no ClusterAction there" for host in facts.brokers]
    )


def test_a_denied_cluster_action_wins():
    facts = dialling("User:controller", **OVER_TLS)
    acl = {"resource_type": "CLUSTER", "principal": "User:controller", "host": "*", "operation": "ALL"}
    facts.metadata["acls"] = [{**acl, "permission": "ALLOW"}, {**acl, "host": "10.0.0.1", "permission": "DENY"}]
    assert len(found(facts, "controller_acl")) == 3


def test_controllers_that_are_super_users_or_meet_no_authorizer():
    assert found(dialling("User:quorumshift", **OVER_TLS), "controller_acl") == []
    facts = dialling("User:controller", **OVER_TLS)
    for host in facts.brokers:
        del node(facts, host)["file"]["properties"]["authorizer.class.name"]
    assert found(facts, "controller_acl") == []


@pytest.mark.parametrize(
    ("protocol", "principal", "given", "told"),
    [
        ("PLAINTEXT", "User:ANONYMOUS", ["User:ANONYMOUS"], None),
        ("PLAINTEXT", "User:ANONYMOUS", [], None),  # the bed's brokers have it as their super user
        ("SSL", "User:CN=c", ["User:CN=c", "User:CN=b"], None),
        ("SSL", "User:quorumshift", [], None),
        ("SSL", "User:CN=c", ["User:CN=c", "User:ANONYMOUS"], "User:ANONYMOUS would be a super user on controllers"),
        ("SSL", "User:CN=c", ["User:CN=b"], "User:CN=c, as whom controllers dial each other, is no super user"),
    ],
)
def test_super_users_of_controllers(protocol, principal, given, told):
    facts = collected(controller_protocol=protocol, controller_principal=principal, controller_super_users=given)
    if told:
        assert the_one(facts, "controller_super_users").startswith(told)
    else:
        assert found(facts, "controller_super_users") == []


def test_without_authorizer_nobody_needs_to_be_a_super_user():
    facts = collected(controller_protocol="SSL", controller_principal="User:CN=c", controller_super_users=[])
    for host in facts.brokers:
        del node(facts, host)["file"]["properties"]["authorizer.class.name"]
    assert found(facts, "controller_super_users") == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"exists": False}, "b1: log directory /var/lib/kafka/data1 is not there"),
        ({"error": "Input/output error"}, "b1: log directory /var/lib/kafka/data1 Input/output error"),
        ({"meta": {"version": "1"}}, "b1: /var/lib/kafka/data1/meta.properties is of version 1"),
    ],
)
def test_log_directories(change, told):
    facts = collected()
    node(facts, "b1")["log_dirs"][0].update(change)
    assert the_one(facts, "log_directories") == told


def test_an_authorizer_of_somebody_elses_is_a_warning():
    facts = collected()
    node(facts, "b1")["file"]["properties"]["authorizer.class.name"] = "org.example.Ranger"
    assert the_one(facts, "authorizer") == "b1 uses the authorizer org.example.Ranger"
    assert found(facts, "authorizer")[0]["severity"] == "warns"


# What the controller is asked to do ----------------------------------------------------------------------------------


def lasting(facts, *looks):
    """The facts with what all looks have shown: this one and, before it, `looks`."""
    told = None
    for look in (*looks, facts):
        told = requests.lasting(look, told)
    return facts._replace(lasting=told)


def test_a_deletion_that_does_not_end():
    facts = collected()
    name = sorted(facts.metadata["topics"])[0]
    facts.metadata["delete_topics"] = [name]
    facts = lasting(facts)
    assert the_one(facts, "deletions") == f"the deletion of {name} does not end"
    facts.metadata["delete_topics"] = []
    assert found(lasting(facts), "deletions") == []


def test_what_clients_ask_for_all_the_time_is_no_finding():
    first, then = collected(), collected()
    first.metadata["delete_topics"], then.metadata["delete_topics"] = ["one"], ["another"]
    assert found(lasting(then, first), "deletions") == []
    then.metadata["delete_topics"] = ["another", "one"]
    assert "of one does" in the_one(lasting(then, first), "deletions")


def test_an_election_that_nobody_takes_up():
    facts = collected()
    facts.zookeeper["preferred_replica_election"] = {
        "exists": True,
        "malformed": None,
        "partitions": [{"topic": "orders", "partition": 3}],
    }
    facts = lasting(facts)
    assert "elections of orders-3, and no controller" in the_one(facts, "elections")


def test_a_partition_without_a_state():
    facts = collected()
    name = sorted(facts.metadata["topics"])[0]
    facts.metadata["topics"][name]["partitions"]["0"]["leader"] = None
    facts = lasting(facts)
    assert the_one(facts, "partition_states") == (f"ZooKeeper has no state of {name}-0: no leader was ever elected")
    facts.metadata["delete_topics"] = [name]
    assert found(lasting(facts), "partition_states") == []


@pytest.mark.parametrize(
    ("epoch", "seen"),
    [
        ({"exists": False, "malformed": None, "value": None}, "/controller_epoch does not exist"),
        ({"exists": True, "malformed": "is no number", "value": None}, "/controller_epoch is malformed: is no number"),
        (
            {"exists": True, "malformed": None, "value": 0},
            "/controller_epoch is 0, a partition's state has 2: no leader is elected there",
        ),
    ],
)
def test_a_controller_epoch_that_elects_nobody(epoch, seen):
    facts = collected()
    facts.zookeeper["controller_epoch"] = epoch
    assert the_one(facts, "controller_epoch") == seen
    assert "3 with zookeeper-shell.sh" in found(facts, "controller_epoch")[0]["do"] or not epoch["exists"]


def test_servers_of_zookeeper():
    serving = {"version": [3, 8, 4], "mode": "follower", "error": None}
    facts = collected()._replace(ensemble={"z1:2181": serving, "z2:2181": dict(serving), "z3:2181": dict(serving)})
    assert found(facts, "ensemble") == []
    facts.ensemble["z2:2181"]["error"] = "connection refused"
    assert the_one(facts, "ensemble") == "1 of 3 servers of ZooKeeper do not serve (z2:2181: connection refused)"
    assert found(facts, "ensemble")[0]["severity"] == "warns"
    facts.ensemble["z2:2181"] = {"version": [3, 4, 14], "mode": "leader", "error": None}
    assert the_one(facts, "ensemble") == "z2:2181 is ZooKeeper 3.4.14"


# What else changes with the roll -------------------------------------------------------------------------------------


def test_a_file_that_was_changed_since_the_broker_started():
    facts = collected()
    facts.running["b1"].update({"num.network.threads": "5", "sasl.enabled.mechanisms": "SCRAM-SHA-256, SCRAM-SHA-512"})
    assert the_one(facts, "running_config") == (
        "the file of b1 says otherwise than the broker runs: num.network.threads (3, runs with 5)"
    )
    facts.metadata["configs"]["broker"]["1"]["num.network.threads"] = "5"
    assert found(facts, "running_config") == []


def test_policies_need_their_class_on_controllers():
    facts = collected()
    for host in ("b1", "b3"):
        node(facts, host)["file"]["properties"]["create.topic.policy.class.name"] = "org.example.Policy"
    assert the_one(facts, "topic_policies") == "create.topic.policy.class.name of b1, b3 is org.example.Policy"


def test_a_control_plane_listener():
    facts = collected()
    node(facts, "b2")["file"]["properties"]["control.plane.listener.name"] = "CONTROL"
    assert the_one(facts, "control_plane") == "b2 has control.plane.listener.name=CONTROL"


def test_cruise_control_runs():
    facts = collected()
    reporter = "com.linkedin.kafka.cruisecontrol.metricsreporter.CruiseControlMetricsReporter"
    node(facts, "b2")["file"]["properties"]["metric.reporters"] = f"org.example.Reporter,{reporter}"
    assert the_one(facts, "self_healer") == "b2 reports to Cruise Control"


# How it is told ------------------------------------------------------------------------------------------------------


def test_a_warning_is_waived_and_what_blocks_is_not():
    facts = collected()
    node(facts, "c1")["service"]["unit_file_state"] = "disabled"
    facts.zookeeper["controller_epoch"] = {"exists": False, "malformed": None, "value": None}
    waived = {"enabled": "started by hand", "controller_epoch": "never mind"}
    told = {one["id"]: (one["severity"], one["waived"]) for one in preflight.run(facts, waived=waived)}
    assert told == {"enabled": ("warns", "started by hand"), "controller_epoch": ("blocks", None)}


def test_a_waiver_names_a_check_and_a_reason():
    assert preflight.unfit({"enabled": "started by hand"}) == []
    assert preflight.unfit({"enabled": " ", "enable": "why"}) == ["enable is no check", "enabled has no reason"]


def test_a_check_that_stumbles_hides_no_other_and_closes_its_way():
    facts = collected()
    facts.metadata["topics"]["odd"] = {}
    facts.zookeeper["controller_epoch"] = {"exists": False, "malformed": None, "value": None}
    told = {one["id"]: one for one in preflight.run(facts)}
    assert told["dead_replicas"]["seen"].startswith("this could not be judged: KeyError 'partitions' (")
    assert told["dead_replicas"]["severity"] == "blocks"
    assert told["reassignments"]["severity"] == "blocks" and len(told) > 2


def test_the_table_has_the_gravest_first():
    facts = collected()
    for host in ("c1", "b1"):
        node(facts, host)["service"]["unit_file_state"] = "disabled"
    facts.running["b1"]["num.network.threads"] = "9"
    facts.zookeeper["controller_epoch"] = {"exists": False, "malformed": None, "value": None}
    findings = preflight.run(facts, waived={"enabled": "started by hand"})
    lines = preflight.table(findings, [check.id for check in preflight.CHECKS])
    quiet = len(preflight.CHECKS) - 3
    assert lines[0] == f"{len(preflight.CHECKS)} checks: 1 in the way, 1 to look at, 2 waived; {quiet} found nothing"
    order = [line.split()[0] for line in lines if line.startswith(("  blocks", "  warns", "  waived"))]
    assert order == ["blocks", "warns", "waived", "waived"]
    assert "                            waived: started by hand" in lines
    assert max(map(len, lines)) <= preflight.WIDTH and "\n".join(lines).count("found nothing: groups") == 1


def test_the_table_of_a_healthy_cluster():
    lines = preflight.table([], [check.id for check in preflight.CHECKS])
    assert lines[0].startswith(f"{len(preflight.CHECKS)} checks: 0 in the way, 0 to look at; ")
