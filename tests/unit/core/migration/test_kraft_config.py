# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Properties of nodes in each mode. tests/integration runs Kafka with them."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config

from tests.unit.core import operators_files, recorded

FILES = operators_files.files()
FLAG = kraft_config.MIGRATION_FLAG


@pytest.mark.parametrize("name", FILES)
def test_each_derived_file_starts_its_mode(name):
    node_id, values = FILES[name]
    modes = operators_files.modes(node_id, values)
    assert {mode: kraft_config.mode_at_next_start(properties) for mode, properties in modes.items()} == {
        mode: mode for mode in modes
    }


@pytest.mark.parametrize("name", FILES)
def test_a_second_derivation_changes_nothing(name):
    node_id, values = FILES[name]
    modes = operators_files.modes(node_id, values)
    migration, kraft = modes["zk_migration"], modes["kraft"]
    again = kraft_config.to_migration_mode(migration, node_id, operators_files.VOTERS, "CONTROLLER", "PLAINTEXT", {})
    assert operators_files.edited(migration, again) == migration
    assert operators_files.edited(kraft, kraft_config.to_kraft_mode(kraft, node_id)) == kraft


@pytest.mark.parametrize("name", FILES)
def test_a_revert_restores_every_key_that_migration_mode_sets(name):
    node_id, values = FILES[name]
    extra = {"listener.name.controller.ssl.keystore.location": "/etc/kafka/own.jks"}
    there = kraft_config.to_migration_mode(values, node_id, operators_files.VOTERS, "CONTROLLER", "PLAINTEXT", extra)
    back = {key: values.get(key) for key in kraft_config.own_keys_of_migration_mode(extra)}
    assert operators_files.edited(operators_files.edited(values, there), back) == values


@pytest.mark.parametrize("name", FILES)
def test_other_keys_stay(name):
    node_id, values = FILES[name]
    modes = operators_files.modes(node_id, values)
    for mode in ("zk_migration", "kraft"):
        for key in ("log.dirs", "listeners", "advertised.listeners", "min.insync.replicas", "ssl.keystore.password"):
            assert modes[mode].get(key) == values.get(key), (mode, key)
    excluded = set(modes["zk_migration"]) - set(modes["kraft"])
    assert all(
        key.startswith("zookeeper.")
        or key.startswith(("broker.id", "reserved.broker", "inter.broker.protocol", "cont"))
        for key in excluded
    ), excluded


@pytest.mark.parametrize(
    ("properties", "mode"),
    [
        ({"zookeeper.connect": "z"}, "zk"),
        ({"zookeeper.connect": "z", FLAG: "false"}, "zk"),
        ({"zookeeper.connect": "z", FLAG: " TRUE "}, "zk_migration"),
        ({"process.roles": " broker "}, "kraft"),
        ({"process.roles": "broker", FLAG: "true", "zookeeper.connect": "z"}, "kraft"),
        ({"process.roles": "controller"}, "controller_final"),
        ({"process.roles": "controller", FLAG: "true"}, "controller_migration"),
        ({"process.roles": "broker,controller"}, "combined"),
        ({"process.roles": "observer"}, "invalid"),
        ({"process.roles": ""}, "invalid"),
        ({}, "invalid"),
    ],
)
def test_mode_at_the_next_start(properties, mode):
    assert kraft_config.mode_at_next_start(properties) == mode


# To migration mode ---------------------------------------------------------------------------------------------------


def migrating(name, **more):
    node_id, values = FILES[name]
    return kraft_config.to_migration_mode(values, node_id, "101@c:9093", "CONTROLLER", "PLAINTEXT", more)


def test_migration_mode_of_a_bare_file():
    assert migrating("defaults absent") == {
        "broker.id": "1",
        "controller.quorum.voters": "101@c:9093",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,"
        "SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT",
        FLAG: "true",
    }


def test_the_controller_listener_is_added_to_an_explicit_map():
    changed = migrating("explicit map")["listener.security.protocol.map"]
    assert changed == "INTERNAL:PLAINTEXT,CLIENTS:SASL_SSL,CONTROLLER:PLAINTEXT"


@pytest.mark.parametrize("name", ["generated id", "no id, generation by default"])
def test_a_generated_id_is_written_and_generation_disabled(name):
    changed = migrating(name)
    assert changed["broker.id"] == str(FILES[name][0]) and changed["broker.id.generation.enable"] == "false"


def test_extra_settings_do_not_override_the_keys_of_the_mode():
    changed = migrating("defaults absent", **{"sasl.mechanism.controller.protocol": "PLAIN", FLAG: "false"})
    assert changed["sasl.mechanism.controller.protocol"] == "PLAIN" and changed[FLAG] == "true"


# To KRaft mode -------------------------------------------------------------------------------------------------------


def test_kraft_mode_of_the_testbeds_broker():
    node_id, values = FILES["the testbed's"]
    changes = kraft_config.to_kraft_mode(operators_files.modes(node_id, values)["zk_migration"], node_id)
    assert changes == {
        "process.roles": "broker",
        "node.id": "1",
        "broker.id": None,
        "authorizer.class.name": kraft_config.STANDARD_AUTHORIZER,
        "inter.broker.protocol.version": None,
        "zookeeper.connect": None,
        "zookeeper.connection.timeout.ms": None,
        "zookeeper.session.timeout.ms": None,
        FLAG: None,
    }


def test_another_authorizer_is_kept():
    values = {"authorizer.class.name": "org.example.Ranger", "zookeeper.connect": "z"}
    assert "authorizer.class.name" not in kraft_config.to_kraft_mode(values, 1)


# Controllers ---------------------------------------------------------------------------------------------------------


def controller(broker, protocol="PLAINTEXT", principals=("User:ANONYMOUS",), listener="CONTROLLER", **extra):
    return kraft_config.controller_properties(
        broker, 102, "c2:9093", "101@c1:9093,102@c2:9093", "/meta", listener, protocol, principals, extra
    )


def test_a_controllers_file_begins_with_its_identity():
    properties = controller(FILES["the testbed's"][1])
    assert list(properties)[:9] == [
        "process.roles",
        "node.id",
        "controller.quorum.voters",
        "controller.listener.names",
        "listeners",
        "advertised.listeners",
        "listener.security.protocol.map",
        "log.dirs",
        FLAG,
    ]
    assert list(properties)[9:] == sorted(list(properties)[9:])
    assert properties["node.id"] == "102" and properties["log.dirs"] == "/meta"
    assert properties["listeners"] == properties["advertised.listeners"] == "CONTROLLER://c2:9093"


def test_a_controller_takes_every_key_that_it_evaluates():
    """A controller silently uses Kafka's default for a missing key."""
    broker = {key: f"value of {key}" for key in kraft_config.CONTROLLER_EVALUATES}
    properties = controller({**broker, "zookeeper.connect": "z:2181/kafka", "password.encoder.secret": "s"})
    assert {key: properties[key] for key in broker} == broker
    assert properties["zookeeper.connect"] == "z:2181/kafka" and properties["password.encoder.secret"] == "s"


def test_recorded_controllers_have_the_same_keys():
    """This function wrote the recorded files, with which a real cluster was finalized."""
    facts = recorded.facts("controllers_ready")
    made = controller(facts["nodes"]["b1"]["file"]["properties"])
    for host in ("c1", "c2", "c3"):
        assert set(facts["nodes"][host]["file"]["properties"]) == set(made)


def test_a_controller_connects_to_brokers_with_their_security_settings():
    properties = controller(FILES["SSL between brokers, no map"][1])
    assert properties["security.inter.broker.protocol"] == "SSL" and properties["ssl.keystore.password"] == "changeit"
    assert not any(key.startswith(("ssl.", "sasl.")) for key in controller(FILES["the testbed's"][1]))
    over_tls = controller({**FILES["the testbed's"][1]}, protocol="SSL")
    assert over_tls["ssl.keystore.location"] and over_tls["listener.security.protocol.map"].endswith("CONTROLLER:SSL")


def test_super_users_of_controllers():
    blanks = FILES["lower-case listeners, Kerberos, a control plane"][1]
    properties = controller(blanks, principals=["User:admin", "User:ANONYMOUS", "User:ANONYMOUS"])
    assert properties["super.users"] == "User:kafka;User:admin;User:CN=ops,OU=it,O=Example;User:ANONYMOUS"
    assert properties["authorizer.class.name"] == kraft_config.STANDARD_AUTHORIZER


def test_no_authorizer_on_controllers_without_one_on_brokers():
    properties = controller({"zookeeper.connect": "z"})
    assert "authorizer.class.name" not in properties and "super.users" not in properties


def test_controllers_take_another_authorizer():
    assert controller({"authorizer.class.name": "org.example.Ranger"})["authorizer.class.name"] == "org.example.Ranger"


def test_extra_settings_override_all_but_the_identity():
    properties = controller(
        {"num.partitions": "3"}, **{"num.partitions": 6, "node.id": "9", "metadata.log.dir": "/fast"}
    )
    assert (
        properties["num.partitions"] == "6"
        and properties["node.id"] == "102"
        and properties["metadata.log.dir"] == "/fast"
    )


def test_a_final_controller_has_no_zookeeper_keys():
    migration = controller(FILES["lower-case listeners, Kerberos, a control plane"][1])
    final = operators_files.edited(migration, kraft_config.to_final_controller(migration))
    excluded = set(migration) - set(final)
    assert excluded == {key for key in migration if key.startswith(("zookeeper.", "password.encoder."))}
    assert FLAG in excluded and len(excluded) == 9
    assert kraft_config.to_final_controller(final) == {}


# What brokers must agree on ------------------------------------------------------------------------------------------


def test_no_disagreement_between_recorded_brokers():
    nodes = recorded.facts("zk")["nodes"]
    brokers = {host: node["file"]["properties"] for host, node in nodes.items() if node["role"] == "broker"}
    assert len(brokers) == 3 and kraft_config.find_disagreements(brokers) == {}


@pytest.mark.parametrize("key", ["min.insync.replicas", "zookeeper.connect", "password.encoder.secret", "super.users"])
def test_a_common_key_that_differs_is_a_disagreement(key):
    assert kraft_config.find_disagreements({"b1": {key: "1"}, "b2": {key: "1"}, "b3": {key: "2"}}) == {
        key: {"b1": "1", "b2": "1", "b3": "2"}
    }
    assert kraft_config.find_disagreements({"b1": {key: "1"}, "b2": {}}) == {key: {"b1": "1", "b2": None}}


@pytest.mark.parametrize("key", ["broker.id", "listeners", "broker.rack", "log.dirs", "num.io.threads", FLAG])
def test_a_key_of_the_broker_alone_is_no_disagreement(key):
    assert kraft_config.find_disagreements({"b1": {key: "1"}, "b2": {key: "2"}}) == {}


# Listeners -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("properties", "protocol"),
    [
        ({}, "PLAINTEXT"),
        ({"security.inter.broker.protocol": "SSL"}, "SSL"),
        ({"inter.broker.listener.name": "SASL_SSL"}, "SASL_SSL"),
        (
            {"inter.broker.listener.name": "internal", "listener.security.protocol.map": "internal:SSL,x:PLAINTEXT"},
            "SSL",
        ),
    ],
)
def test_inter_broker_protocol(properties, protocol):
    assert kraft_config.inter_broker_protocol(properties) == protocol


def test_super_users_without_any():
    assert kraft_config.super_users({}) == kraft_config.super_users({"super.users": " ; "}) == []


@pytest.mark.parametrize(
    ("properties", "address"),
    [
        ({}, "10.0.0.1:9092"),
        ({"listeners": "PLAINTEXT://b1:9999"}, "b1:9999"),
        ({"listeners": "PLAINTEXT://:9092", "advertised.listeners": "PLAINTEXT://b1.example:9092"}, "b1.example:9092"),
        ({"listeners": "SSL://b1:9093,PLAINTEXT://b1:9092", "security.inter.broker.protocol": "SSL"}, "b1:9093"),
        (
            {
                "listeners": "OUT://b1:9094,in://[fd00::1]:9092",
                "listener.security.protocol.map": "IN:SASL_SSL,OUT:SASL_SSL",
                "inter.broker.listener.name": "in",
            },
            "[fd00::1]:9092",
        ),
        ({"listeners": "SSL://b1:9093"}, None),
        ({"listeners": "nonsense"}, None),
    ],
)
def test_inter_broker_address(properties, address):
    assert kraft_config.inter_broker_address(properties, "10.0.0.1") == address


def test_protocols_in_lower_case_are_read_as_kafka_reads_them():
    _node_id, values = FILES["lower-case protocols"]
    assert kraft_config.protocol_map(values) == {"INTERNAL": "SASL_SSL", "CLIENTS": "SSL"}
    assert kraft_config.inter_broker_protocol(values) == "SASL_SSL"
    settings, untried = kraft_config.inter_broker_client(values)
    assert (settings["security.protocol"], settings["sasl.mechanism"], untried) == ("SASL_SSL", "PLAIN", "")
