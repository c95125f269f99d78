# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hazards of settings and of rights."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import kraft_config

from tests.unit.core.preflight_facts import OVER_TLS, collected, dialling, found, node, the_one

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
    reported = the_one(facts, "agreement")
    assert reported.endswith("which controllers take from them: their values differ") and "sealed" not in reported


@pytest.mark.parametrize(
    ("key", "own", "severity", "reported"),
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
def test_settings_of_controllers_that_are_not_the_brokers(key, own, severity, reported):
    facts = collected(controller_config={key: own})
    if reported is None:
        assert found(facts, "overrides") == []
    else:
        assert the_one(facts, "overrides").startswith(reported)
        assert found(facts, "overrides")[0]["severity"] == severity
        assert "sealed" not in str(found(facts, "overrides"))


def test_policies_are_settings_that_controllers_take():
    assert all(kraft_config.taken_from_brokers(key) for key in kraft_config.POLICIES)


ALL = ["ALTER", "CREATE", "DESCRIBE", "DESCRIBE_CONFIGS"]


@pytest.mark.parametrize(
    ("cluster", "topic", "reported"),
    [
        (ALL, ALL, None),
        (["DESCRIBE_CONFIGS"], ["DESCRIBE", "DESCRIBE_CONFIGS"], None),
        (
            ["DESCRIBE"],
            ALL,
            "the tool's principal has no DescribeConfigs on the cluster, which it needs to read the",
        ),
        (
            ALL,
            ["DESCRIBE_CONFIGS"],
            "the tool's principal has no Describe on 1 of 2 topics, which it needs to check",
        ),
        (
            ALL,
            ["DESCRIBE"],
            "the tool's principal has no DescribeConfigs on 1 of 2 topics, which it needs to read min.insync",
        ),
    ],
)
def test_what_the_tool_may_read(cluster, topic, reported):
    facts = collected(rights={"cluster": cluster, "topics": {"a": ALL, "b": topic}}, client_principal="User:tool")
    if reported is None:
        assert found(facts, "tool_acls") == []
    else:
        assert the_one(facts, "tool_acls").startswith(reported)
        assert found(facts, "tool_acls")[0]["do"].startswith(
            "grant it: kafka-acls.sh --add --allow-principal User:tool --operation De"
        )


def test_a_denied_read_of_brokers_configurations_is_one_finding():
    facts = collected(rights={"cluster": [], "topics": {}})
    facts.running.update({host: {"error": "Cluster authorization failed."} for host in facts.brokers})
    assert found(facts, "versions") == [] and len(found(facts, "tool_acls")) == 1


def test_rights_that_could_not_be_asked():
    facts = collected(rights={"error": "Local: Timed out"})
    assert the_one(facts, "tool_acls") == "the permissions of this tool could not be read: Local: Timed out"


@pytest.mark.parametrize(
    ("principal", "given", "reported"),
    [
        ("User:tool", ["User:CN=c"], ["User:tool, this tool's principal, is not a super user on controllers"]),
        ("User:tool", ["User:CN=c", "User:tool"], []),
        ("User:CN=c", ["User:CN=c"], []),
        (None, ["User:CN=c"], []),
    ],
)
def test_this_tool_at_the_controllers(principal, given, reported):
    facts = collected(
        controller_protocol="SASL_SSL",
        controller_principal="User:CN=c",
        controller_super_users=given,
        tool_principal=principal,
    )
    assert [one["seen"] for one in found(facts, "controller_super_users")] == reported


def test_super_users_that_the_operator_sets_whole():
    facts = collected(
        controller_protocol="SSL",
        controller_principal="User:CN=c",
        controller_super_users=["User:CN=c"],
        controller_config={"super.users": "User:quorumshift;User:ANONYMOUS"},
    )
    assert the_one(facts, "controller_super_users").startswith("User:CN=c, the controllers' principal, is not a super user")


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


def test_controllers_on_a_plain_listener_are_anonymous():
    facts = dialling("User:controller")
    assert "controllers are User:ANONYMOUS on the PLAINTEXT listener of b1" in found(facts, "controller_acl")[0]["seen"]
    assert len(found(facts, "controller_acl")) == 3


def test_controllers_on_a_secured_listener_have_a_name():
    facts = dialling("User:ANONYMOUS", **OVER_TLS)
    assert (
        "quorumshift_controller_principal is not set, but the inter-broker listener of b1 uses SSL"
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
    messages = [one["seen"] for one in found(facts, "controller_acl")]
    assert messages == (
        []
        if fits
        else [f"User:controller, the controllers' principal, has no ClusterAction on {host}" for host in facts.brokers]
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
    ("protocol", "principal", "given", "reported"),
    [
        ("PLAINTEXT", "User:ANONYMOUS", ["User:ANONYMOUS"], None),
        ("PLAINTEXT", "User:ANONYMOUS", [], None),  # the bed's brokers have it as their super user
        ("SSL", "User:CN=c", ["User:CN=c", "User:CN=b"], None),
        ("SSL", "User:quorumshift", [], None),
        ("SSL", "User:CN=c", ["User:CN=c", "User:ANONYMOUS"], "User:ANONYMOUS would be a super user on controllers"),
        ("SSL", "User:CN=c", ["User:CN=b"], "User:CN=c, the controllers' principal, is not a super user"),
    ],
)
def test_super_users_of_controllers(protocol, principal, given, reported):
    facts = collected(controller_protocol=protocol, controller_principal=principal, controller_super_users=given)
    if reported:
        assert the_one(facts, "controller_super_users").startswith(reported)
    else:
        assert found(facts, "controller_super_users") == []


def test_without_authorizer_nobody_needs_to_be_a_super_user():
    facts = collected(controller_protocol="SSL", controller_principal="User:CN=c", controller_super_users=[])
    for host in facts.brokers:
        del node(facts, host)["file"]["properties"]["authorizer.class.name"]
    assert found(facts, "controller_super_users") == []


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        ({"exists": False}, "b1: log directory /var/lib/kafka/data1 does not exist"),
        ({"error": "Input/output error"}, "b1: log directory /var/lib/kafka/data1 cannot be read: Input/output error"),
        ({"meta": {"version": "1"}}, "b1: /var/lib/kafka/data1/meta.properties has version 1, the format of KRaft"),
    ],
)
def test_log_directories(change, reported):
    facts = collected()
    node(facts, "b1")["log_dirs"][0].update(change)
    assert the_one(facts, "log_directories") == reported


def test_an_authorizer_of_somebody_elses_is_a_warning():
    facts = collected()
    node(facts, "b1")["file"]["properties"]["authorizer.class.name"] = "org.example.Ranger"
    assert the_one(facts, "authorizer") == "b1 uses the authorizer org.example.Ranger"
    assert found(facts, "authorizer")[0]["severity"] == "warns"


# What else changes with the roll -------------------------------------------------------------------------------------


def test_a_file_that_was_changed_since_the_broker_started():
    facts = collected()
    facts.running["b1"].update({"num.network.threads": "5", "sasl.enabled.mechanisms": "SCRAM-SHA-256, SCRAM-SHA-512"})
    assert the_one(facts, "running_config") == (
        "the properties file of b1 differs from the running config: num.network.threads (file 3, running 5)"
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


# Listeners -----------------------------------------------------------------------------------------------------------


def test_a_broker_that_has_a_listener_of_the_controllers_name():
    facts = collected()
    assert found(facts, "listeners") == []
    assert [one["seen"] for one in found(facts._replace(controller_listener="internal"), "listeners")] == [
        f"{host} has a listener INTERNAL, the name of the controller listener" for host in ("b1", "b2", "b3")
    ]


@pytest.mark.parametrize(
    ("key", "value", "reported"),
    [
        ("listeners", "INTERNAL:9092", "the listeners of b2 cannot be read: 'INTERNAL:9092' is not a listener: "),
        ("inter.broker.listener.name", "GONE", "b2 advertises no inter-broker listener"),
        ("advertised.listeners", "CLIENTS://b2:9094", "b2 advertises no inter-broker listener"),
    ],
)
def test_listeners_with_which_a_broker_does_not_start_again(key, value, reported):
    facts = collected()
    node(facts, "b2")["file"]["properties"][key] = value
    assert the_one(facts, "listeners").startswith(reported)
