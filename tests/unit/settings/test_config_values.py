# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Examples. tests/integration/test_files_against_java.py compares with Kafka and ZooKeeper over generated values."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import config_values


@pytest.mark.parametrize(
    ("key", "value", "other", "same"),
    [
        ("delete.topic.enable", "true ", "TRUE", True),
        ("delete.topic.enable", "true", "false", False),
        ("zookeeper.connect", "z1:2181,z2/kafka", " z2:2181, z1/kafka", True),
        ("zookeeper.connect", "z1:2181/kafka", "z1:2181", False),
        ("zookeeper.connect", "z1:2181/kafka", "z1:2181/Kafka", False),
        ("sasl.enabled.mechanisms", "PLAIN , GSSAPI", "PLAIN,GSSAPI", True),
        ("num.partitions", "08", "8", True),
        ("super.users", "User:a; User:b", "User:b;User:a;", True),
        ("super.users", "User:CN=a, OU=b", "User:CN=a,OU=b", False),  # two principals
        ("broker.rack", "01", "1", False),
        ("inter.broker.listener.name", "internal", "INTERNAL ", True),
        ("listener.name.x.plain.sasl.jaas.config", "a ", "a", True),
        ("ssl.client.auth", "required", "REQUIRED", False),  # Kafka rejects the second
        ("authorizer.class.name", "kafka.security.authorizer.AclAuthorizer ", kraft_config.ZOOKEEPER_AUTHORIZER, True),
        ("broker.rack", "r\x85", "r", False),  # a blank to Python alone
    ],
)
def test_values_that_are_the_same_to_kafka(key, value, other, same):
    assert (config_values.comparable_value(key, value) == config_values.comparable_value(key, other)) is same


def test_log_directories_of_a_file_that_names_none_are_kafkas_default():
    assert config_values.log_dirs({"broker.id": "1"}) == ["/tmp/kafka-logs"]
    assert config_values.log_dirs({"log.dir": "/a , /b"}) == ["/a", "/b"]
    assert config_values.log_dirs({"log.dirs": "/c", "log.dir": "/a"}) == ["/c"]
    assert config_values.log_dirs({"log.dirs": None, "log.dir": "/a"}) == ["/a"]  # as DescribeConfigs shows it
    assert config_values.log_dirs({}) == [] and config_values.metadata_log_dir({}) == ""
    assert config_values.metadata_log_dir({"metadata.log.dir": " /m "}) == "/m"


def test_a_value_with_blanks_has_the_meaning_that_it_has_to_kafka():
    values = {
        "zookeeper.connect": "z1:2181 ",
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer ",
        "inter.broker.listener.name": "INTERNAL ",
        "listeners": "INTERNAL://3333:10:9:101::204:9092",
        "listener.security.protocol.map": "INTERNAL:SSL",
        kraft_config.MIGRATION_FLAG: " TRUE",
    }
    assert kraft_config.mode_at_next_start(values) == "zk_migration"
    assert kraft_config.to_kraft_mode(values, 1)["authorizer.class.name"] == kraft_config.STANDARD_AUTHORIZER
    assert kraft_config.inter_broker_protocol(values) == "SSL"
    assert kraft_config.inter_broker_address(values, "b1") == "[3333:10:9:101::204]:9092"
    controller = kraft_config.controller_properties(values, 9, "c:1", "9@c:1", "/m", "C", "PLAINTEXT", [], {})
    assert controller["authorizer.class.name"] == kraft_config.STANDARD_AUTHORIZER


def test_brokers_agree_where_their_values_differ_in_form_alone():
    brokers = {
        "b1": {"zookeeper.connect": "z1:2181,z2:2181/k", "delete.topic.enable": "true", "zookeeper.set.acl": "false"},
        "b2": {"zookeeper.connect": "z2,z1/k ", "delete.topic.enable": "TRUE "},
    }
    assert kraft_config.find_disagreements(brokers) == {}
    brokers["b2"]["zookeeper.connect"] = "z2,z1/other"
    assert list(kraft_config.find_disagreements(brokers)) == ["zookeeper.connect"]


def test_a_controller_gets_the_providers_of_the_variables_that_it_takes():
    providers = {"config.providers": "file", "config.providers.file.class": "x.FileConfigProvider"}
    broker = {"zookeeper.connect": "z", "password.encoder.secret": "${file:/s:p}", **providers}
    controller = kraft_config.controller_properties(broker, 9, "c:1", "9@c:1", "/m", "C", "PLAINTEXT", [], {})
    assert providers.items() <= controller.items() and controller["password.encoder.secret"] == "${file:/s:p}"
    client, _untried = kraft_config.inter_broker_client({**broker, "security.inter.broker.protocol": "SSL"})
    assert providers.items() <= client.items()


def test_zookeepers_tls_in_the_options_of_a_jvm():
    options = ["java", "-Dzookeeper.client.secure=true", "-Dzookeeper.ssl.trustStore.location=/t.pem", "-Xmx1g"]
    assert kraft_config.zookeeper_tls([*options, "-Dzookeeper.ssl.hostnameVerification=false"]) == {
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.truststore.location": "/t.pem",
        "zookeeper.ssl.endpoint.identification.algorithm": "",
    }
    assert kraft_config.zookeeper_tls(["java", "-Xmx1g"]) == {}
