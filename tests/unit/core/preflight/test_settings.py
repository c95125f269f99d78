# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""preflight: settings and permissions."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config

from tests.unit.core.preflight_facts import OVER_TLS, collected, found, node, the_one, with_controller_principal

# Secrets and settings ------------------------------------------------------------------------------------------------


def test_finding_for_encrypted_configs_without_the_secret():
    facts = collected()
    del node(facts, "b3")["file"]["properties"]["password.encoder.secret"]
    assert the_one(facts, "encoder_secret") == (
        "ZooKeeper holds encrypted configs (listener.name.external.ssl.keystore.password of broker 1), "
        "and b3 has no password.encoder.secret"
    )


def test_no_finding_without_encrypted_configs():
    facts = collected()
    facts.metadata["configs"]["broker"] = {"1": {"num.io.threads": "9"}}
    for host in facts.brokers:
        del node(facts, host)["file"]["properties"]["password.encoder.secret"]
    assert found(facts, "encoder_secret") == []


def test_finding_for_brokers_that_disagree():
    facts = collected()
    node(facts, "b2")["file"]["properties"]["min.insync.replicas"] = "1"
    assert the_one(facts, "agreement") == (
        "brokers disagree on min.insync.replicas, which controllers take from them: b1 2, b2 1, b3 2"
    )
    assert found(facts._replace(controller_config={"min.insync.replicas": "2"}), "agreement") == []


def test_secrets_that_differ_are_not_shown():
    facts = collected()
    node(facts, "b2")["file"]["properties"]["password.encoder.secret"] = "sealed:other"
    seen = the_one(facts, "agreement")
    assert seen.endswith("which controllers take from them: their values differ") and "sealed" not in seen


@pytest.mark.parametrize(
    ("key", "own", "severity", "expected"),
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
        (
            "zookeeper.connect",
            "z:2181",
            "blocks",
            "zookeeper.connect of quorumshift_controller_config is z:2181, this tool reads ZooKeeper at",
        ),
        (
            "password.encoder.secret",
            "sealed:x",
            "blocks",
            "password.encoder.secret of quorumshift_controller_config differs",
        ),
        ("zookeeper.ssl.keystore.location", "/etc/kafka/controller.p12", None, None),
        (
            "zookeeper.ssl.endpoint.identification.algorithm",
            "HTTPS",
            "blocks",
            "zookeeper.ssl.endpoint.identification.algorithm of quorumshift_controller_config is HTTPS, the brokers",
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
def test_finding_for_a_controller_setting_that_differs_from_the_brokers(key, own, severity, expected):
    facts = collected(controller_config={key: own})
    for host in facts.brokers:
        of_zookeeper = {"keystore.location": "/etc/kafka/broker.jks", "endpoint.identification.algorithm": "no"}
        node(facts, host)["file"]["properties"].update(
            {f"zookeeper.ssl.{name}": value for name, value in of_zookeeper.items()}
        )
    if expected is None:
        assert found(facts, "overrides") == []
    else:
        assert the_one(facts, "overrides").startswith(expected)
        assert found(facts, "overrides")[0]["severity"] == severity
        assert "sealed" not in str(found(facts, "overrides"))


def test_policies_are_keys_that_controllers_take():
    assert all(kraft_config.is_taken_from_brokers(key) for key in kraft_config.POLICIES)


ALL = ["ALTER", "CREATE", "DESCRIBE", "DESCRIBE_CONFIGS"]


@pytest.mark.parametrize(
    ("cluster", "topic", "expected"),
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
def test_finding_for_a_missing_permission_of_the_tool(cluster, topic, expected):
    facts = collected(rights={"cluster": cluster, "topics": {"a": ALL, "b": topic}}, client_principal="User:tool")
    if expected is None:
        assert found(facts, "tool_acls") == []
    else:
        assert the_one(facts, "tool_acls").startswith(expected)
        assert found(facts, "tool_acls")[0]["do"].startswith(
            "grant it: kafka-acls.sh --add --allow-principal User:tool --operation De"
        )


def test_denied_describe_configs_is_one_finding():
    facts = collected(rights={"cluster": [], "topics": {}})
    facts.running.update({host: {"error": "Cluster authorization failed.", "denied": True} for host in facts.brokers})
    assert found(facts, "versions") == [] and len(found(facts, "tool_acls")) == 1


def test_finding_for_unreadable_permissions():
    facts = collected(rights={"error": "Local: Timed out"})
    assert the_one(facts, "tool_acls") == "the permissions of this tool could not be read: Local: Timed out"


@pytest.mark.parametrize(
    ("principal", "given", "expected"),
    [
        ("User:tool", ["User:CN=c"], ["User:tool, this tool's principal, is not a super user on controllers"]),
        ("User:tool", ["User:CN=c", "User:tool"], []),
        ("User:CN=c", ["User:CN=c"], []),
        (None, ["User:CN=c"], []),
    ],
)
def test_finding_if_the_tool_is_not_a_super_user_on_controllers(principal, given, expected):
    facts = collected(
        controller_protocol="SASL_SSL",
        controller_principal="User:CN=c",
        controller_super_users=given,
        tool_principal=principal,
    )
    assert [finding["seen"] for finding in found(facts, "controller_super_users")] == expected


def test_super_users_of_quorumshift_controller_config_override_the_others():
    facts = collected(
        controller_protocol="SSL",
        controller_principal="User:CN=c",
        controller_super_users=["User:CN=c"],
        controller_config={"super.users": "User:quorumshift;User:ANONYMOUS"},
    )
    assert the_one(facts, "controller_super_users").startswith(
        "User:CN=c, the controllers' principal, is not a super user"
    )


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
def test_finding_for_scram_on_the_controller_listener(protocol, mechanism, fits):
    enabled = {"sasl.enabled.mechanisms": "PLAIN, GSSAPI"}
    config = {"sasl.mechanism.controller.protocol": mechanism, **enabled} if mechanism else {}
    facts = collected(controller_protocol=protocol, controller_config=config)
    if fits:
        assert found(facts, "controller_listener") == []
    else:
        assert the_one(facts, "controller_listener").startswith(f"the controller listener is {protocol} with ")


def test_finding_for_a_mechanism_that_the_controller_listener_does_not_enable():
    config = {"sasl.mechanism.controller.protocol": "PLAIN"}
    facts = collected(controller_protocol="SASL_SSL", controller_config=config)
    assert the_one(facts, "controller_listener") == (
        "the controller listener does not enable PLAIN, the sasl.mechanism.controller.protocol: "
        "listener.name.controller.sasl.enabled.mechanisms is SCRAM-SHA-256, SCRAM-SHA-512"
    )


def tool_logins(client=("PLAINTEXT", None), controller=("PLAINTEXT", None), protocol="PLAINTEXT", enabled=""):
    logins = {"quorumshift_client": client, "quorumshift_controller_client": controller}
    config = {"listener.name.controller.sasl.enabled.mechanisms": enabled} if enabled else {}
    return collected(logins=logins, controller_protocol=protocol, controller_config=config)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER"])
def test_every_login_to_brokers_works(mechanism):
    assert found(tool_logins(client=("SASL_SSL", mechanism)), "tool_logins") == []


@pytest.mark.parametrize(
    ("mechanism", "enabled", "reason", "do"),
    [
        ("GSSAPI", "GSSAPI", None, ""),
        ("OAUTHBEARER", "PLAIN,OAUTHBEARER", None, ""),
        ("OAUTHBEARER", "PLAIN", "is OAUTHBEARER, which the listener does not enable", "oauthbearer"),
        (
            "SCRAM-SHA-512",
            "SCRAM-SHA-512,GSSAPI",
            "is SCRAM-SHA-512, whose credentials are in the metadata behind it",
            "plain",
        ),
        ("PLAIN", "GSSAPI", "is PLAIN, which the listener does not enable", "plain"),
        ("PLAIN", "GSSAPI, PLAIN", None, ""),
    ],
)
def test_a_login_to_controllers_that_does_not_work_blocks(mechanism, enabled, reason, do):
    facts = tool_logins(controller=("SASL_SSL", mechanism), protocol="SASL_SSL", enabled=enabled)
    if reason is None:
        assert found(facts, "tool_logins") == []
        return
    assert the_one(facts, "tool_logins").endswith(f"for the listener CONTROLLER (SASL_SSL) {reason}")
    assert found(facts, "tool_logins")[0]["severity"] == "blocks"
    wanted = ",".join(dict.fromkeys([*enabled.split(","), do.upper()]))
    text = f"listener.name.controller.sasl.enabled.mechanisms to {wanted} and listener.name.controller.{do}.sasl"
    assert text in found(facts, "tool_logins")[0]["do"]


def test_another_protocol_than_the_controllers_blocks():
    facts = tool_logins(controller=("SSL", None), protocol="SASL_SSL", enabled="PLAIN")
    assert the_one(facts, "tool_logins").startswith("quorumshift_controller_client.security_protocol is SSL, ")
    assert found(tool_logins(controller=("SSL", None), protocol="SSL"), "tool_logins") == []


def test_finding_for_a_principal_on_a_plaintext_listener():
    facts = with_controller_principal("User:controller")
    assert "controllers are User:ANONYMOUS on the PLAINTEXT listener of b1" in found(facts, "controller_acl")[0]["seen"]
    assert len(found(facts, "controller_acl")) == 3


def test_finding_for_no_principal_on_a_secured_listener():
    facts = with_controller_principal("User:ANONYMOUS", **OVER_TLS)
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
def test_finding_for_controllers_without_cluster_action(acl, fits):
    facts = with_controller_principal("User:controller", **OVER_TLS)
    allow = {
        "resource_type": "CLUSTER",
        "resource_name": "kafka-cluster",
        "pattern_type": "LITERAL",
        "principal": "User:controller",
        "host": "*",
        "operation": "CLUSTER_ACTION",
        "permission": "ALLOW",
    }
    assert set(allow) == set(facts.metadata["acls"][0]), "not the shape of the recorded ACLs"
    facts.metadata["acls"] = [] if acl is None else [{**allow, **acl}]
    assert [finding["seen"] for finding in found(facts, "controller_acl")] == (
        []
        if fits
        else [f"User:controller, the controllers' principal, has no ClusterAction on {host}" for host in facts.brokers]
    )


def test_a_deny_acl_overrides_an_allow_acl():
    facts = with_controller_principal("User:controller", **OVER_TLS)
    acl = {"resource_type": "CLUSTER", "principal": "User:controller", "host": "*", "operation": "ALL"}
    facts.metadata["acls"] = [{**acl, "permission": "ALLOW"}, {**acl, "host": "10.0.0.1", "permission": "DENY"}]
    assert len(found(facts, "controller_acl")) == 3


def test_super_users_need_no_cluster_action():
    assert found(with_controller_principal("User:quorumshift", **OVER_TLS), "controller_acl") == []
    facts = with_controller_principal("User:controller", **OVER_TLS)
    for host in facts.brokers:
        del node(facts, host)["file"]["properties"]["authorizer.class.name"]
    assert found(facts, "controller_acl") == []


@pytest.mark.parametrize(
    ("protocol", "principal", "given", "expected"),
    [
        ("PLAINTEXT", "User:ANONYMOUS", ["User:ANONYMOUS"], None),
        ("PLAINTEXT", "User:ANONYMOUS", [], None),  # a super user of the testbed's brokers
        ("SSL", "User:CN=c", ["User:CN=c", "User:CN=b"], None),
        ("SSL", "User:quorumshift", [], None),
        ("SSL", "User:CN=c", ["User:CN=c", "User:ANONYMOUS"], "User:ANONYMOUS would be a super user on controllers"),
        ("SSL", "User:CN=c", ["User:CN=b"], "User:CN=c, the controllers' principal, is not a super user"),
    ],
)
def test_finding_for_missing_super_users_of_controllers(protocol, principal, given, expected):
    facts = collected(controller_protocol=protocol, controller_principal=principal, controller_super_users=given)
    if expected:
        assert the_one(facts, "controller_super_users").startswith(expected)
    else:
        assert found(facts, "controller_super_users") == []


def test_no_super_users_without_an_authorizer():
    facts = collected(controller_protocol="SSL", controller_principal="User:CN=c", controller_super_users=[])
    for host in facts.brokers:
        del node(facts, host)["file"]["properties"]["authorizer.class.name"]
    assert found(facts, "controller_super_users") == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"exists": False}, "b1: log directory /var/lib/kafka/data1 does not exist"),
        ({"error": "Input/output error"}, "b1: log directory /var/lib/kafka/data1 cannot be read: Input/output error"),
        ({"meta": {"version": "1"}}, "b1: /var/lib/kafka/data1/meta.properties has version 1, the format of KRaft"),
    ],
)
def test_finding_for_a_broken_log_directory(change, expected):
    facts = collected()
    node(facts, "b1")["log_dirs"][0].update(change)
    assert the_one(facts, "log_directories") == expected


def test_warning_for_another_authorizer():
    facts = collected()
    node(facts, "b1")["file"]["properties"]["authorizer.class.name"] = "org.example.Ranger"
    assert the_one(facts, "authorizer") == "b1 uses the authorizer org.example.Ranger"
    assert found(facts, "authorizer")[0]["severity"] == "warns"


# Changes of the rolling restart ---------------------------------------------------------------------------------------


def test_warning_for_a_file_that_differs_from_the_running_config():
    facts = collected()
    facts.running["b1"].update({"num.network.threads": "5", "sasl.enabled.mechanisms": "SCRAM-SHA-256, SCRAM-SHA-512"})
    assert the_one(facts, "running_config") == (
        "the properties file of b1 differs from the running config: num.network.threads (file 3, running 5)"
    )
    facts.metadata["configs"]["broker"]["1"]["num.network.threads"] = "5"
    assert found(facts, "running_config") == []


def test_warning_for_a_topic_policy():
    facts = collected()
    for host in ("b1", "b3"):
        node(facts, host)["file"]["properties"]["create.topic.policy.class.name"] = "org.example.Policy"
    assert the_one(facts, "topic_policies") == "create.topic.policy.class.name of b1, b3 is org.example.Policy"


def test_warning_for_a_control_plane_listener():
    facts = collected()
    node(facts, "b2")["file"]["properties"]["control.plane.listener.name"] = "CONTROL"
    assert the_one(facts, "control_plane") == "b2 has control.plane.listener.name=CONTROL"


def test_warning_for_cruise_control():
    facts = collected()
    reporter = "com.linkedin.kafka.cruisecontrol.metricsreporter.CruiseControlMetricsReporter"
    node(facts, "b2")["file"]["properties"]["metric.reporters"] = f"org.example.Reporter,{reporter}"
    assert the_one(facts, "self_healer") == "b2 reports to Cruise Control"


# Listeners -----------------------------------------------------------------------------------------------------------


def test_finding_for_a_broker_listener_with_the_controllers_name():
    facts = collected()
    assert found(facts, "listeners") == []
    assert [finding["seen"] for finding in found(facts._replace(controller_listener="internal"), "listeners")] == [
        f"{host} has a listener INTERNAL, the name of the controller listener" for host in ("b1", "b2", "b3")
    ]


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("listeners", "INTERNAL:9092", "the listeners of b2 cannot be read: 'INTERNAL:9092' is not a listener: "),
        ("inter.broker.listener.name", "MISSING", "b2 advertises no inter-broker listener"),
        ("advertised.listeners", "CLIENTS://b2:9094", "b2 advertises no inter-broker listener"),
    ],
)
def test_finding_for_listeners_with_which_a_broker_does_not_start(key, value, expected):
    facts = collected()
    node(facts, "b2")["file"]["properties"][key] = value
    assert the_one(facts, "listeners").startswith(expected)


# Variables of config providers -------------------------------------------------------------------------------------


def variable(key, why="", foreign="", text="${file:/s:p}"):
    return {"key": key, "variable": text, "why": why, "foreign": foreign}


def test_variables_that_are_resolved_are_no_finding():
    facts = collected()
    node(facts, "b1")["file"]["variables"] = [variable("ssl.key.password")]
    assert found(facts, "config_providers") == []


def test_a_key_that_the_tool_reads_must_be_no_variable():
    facts = collected()
    for host in ("b1", "b2"):
        node(facts, host)["file"]["variables"] = [variable("listeners")]
    seen = the_one(facts, "config_providers")
    assert seen == "${file:/s:p} of listeners on b1, b2 is a variable, and this tool reads this key as text"


def test_a_variable_that_a_host_cannot_resolve_blocks():
    facts = collected()
    node(facts, "b1")["file"]["variables"] = [variable("ssl.key.password", "/s: Permission denied")]
    assert the_one(facts, "config_providers") == (
        "${file:/s:p} of ssl.key.password cannot be resolved on b1: /s: Permission denied"
    )
    facts = collected()
    node(facts, "c1")["paths"] = {"variables": [variable("ssl.key.password", "/s: No such file or directory")]}
    assert the_one(facts, "config_providers") == (
        "controllers take ${file:/s:p} of ssl.key.password from the brokers, and it cannot be resolved on c1: /s: No "
        "such file or directory"
    )
    assert found(facts, "config_providers")[0]["severity"] == "blocks"


def test_a_provider_of_its_own_is_a_warning():
    facts = collected()
    node(facts, "b1")["file"]["variables"] = [variable("ssl.key.password", "only Kafka", "com.example.Vault")]
    (finding,) = found(facts, "config_providers")
    assert finding["severity"] == "warns" and "needs the config provider com.example.Vault" in finding["seen"]
