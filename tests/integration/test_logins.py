# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller's logins to brokers, tried with Kafka's client against real brokers with mutual TLS."""

from __future__ import annotations

import getpass
import pathlib
import shlex
import subprocess

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import logins, node

from tests.integration import servers
from tests.integration.certificates import Authority

LISTENER = {
    "inter.broker.listener.name": "INTERNAL",
    "listener.name.internal.ssl.client.auth": "required",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INTERNAL:SSL",
}
TIMEOUT_S = 60
PASSWORD = "not-to-be-shown"
UMLAUT = "grün-not-to-be-shown"


class Cluster:
    """Brokers with an authenticating listener, and a Kafka home with the real tool."""

    def __init__(
        self,
        home: pathlib.Path,
        brokers: list[servers.KafkaServer],
        listener: dict[str, str],
        authority: Authority | None = None,
    ) -> None:
        self.brokers, self.authority, self.listener = brokers, authority, listener
        self.kafka_home = home / "kafka"
        tool = self.kafka_home / "bin" / "kafka-broker-api-versions.sh"
        tool.parent.mkdir(parents=True)
        log4j = home / "tools-log4j.properties"
        log4j.write_text(
            "log4j.rootLogger=WARN, stderr\nlog4j.appender.stderr=org.apache.log4j.ConsoleAppender\n"
            "log4j.appender.stderr.Target=System.err\nlog4j.appender.stderr.layout=org.apache.log4j.PatternLayout\n"
            "log4j.appender.stderr.layout.ConversionPattern=[%d] %p %m (%c)%n\n"
        )
        command = [*servers.java([f"-Dlog4j.configuration=file:{log4j}"]), "kafka.admin.BrokerApiVersionsCommand"]
        tool.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        tool.chmod(0o755)

    def attempt(self, keys: dict, **changes) -> dict:
        settings, unsupported = kraft_config.inter_broker_client({**self.listener, **keys})
        assert not unsupported
        arguments = {
            "kafka_home": str(self.kafka_home),
            "user": getpass.getuser(),
            "settings": settings,
            "brokers": [str(broker.address) for broker in self.brokers],
            "timeout": TIMEOUT_S,
        }
        return logins.attempt(**{**arguments, **changes})


@pytest.fixture(scope="module")
def cluster():
    with servers.workdir("logins") as home, servers.zookeeper(home) as zk:
        authority = Authority(home / "tls")
        keys = authority.kafka_keys(authority.issue("broker", "DNS:localhost,IP:127.0.0.1"))

        def broker(node_id: int):
            listeners = {"INTERNAL": f"127.0.0.1:{servers.free_port()}"}
            return servers.zk_broker(home, node_id, zk.connect, {**LISTENER, **keys}, listeners)

        with broker(1) as first, broker(2) as second:
            yield Cluster(home, [first, second], LISTENER, authority)


@pytest.fixture(scope="module")
def sasl_cluster():
    """A broker whose listener requires a password."""
    listener = {
        "inter.broker.listener.name": "INTERNAL",
        "listener.security.protocol.map": "INTERNAL:SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN",
    }
    with servers.workdir("logins_sasl") as home, servers.zookeeper(home) as zk:
        users = login(UMLAUT, f'user_broker="{UMLAUT}"')  # written in UTF-8, which Kafka reads as Latin-1
        listeners = {"INTERNAL": f"127.0.0.1:{servers.free_port()}"}
        with servers.zk_broker(home, 1, zk.connect, {**listener, **users}, listeners) as broker:
            yield Cluster(home, [broker], listener)


def login(password: str, *options: str) -> dict[str, str]:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    jaas = " ".join((module, "required", 'username="broker"', f'password="{password}"', *options))
    return {"listener.name.internal.plain.sasl.jaas.config": f"{jaas};"}


@pytest.fixture
def trusted(cluster, tmp_path):
    """The settings of a controller that brokers trust: a PKCS12 keystore and its password."""
    issued, store = cluster.authority.issue("controller"), tmp_path / "keystore.p12"
    exported = ("-in", issued.certfile, "-inkey", issued.keyfile, "-out", str(store), "-passout", f"pass:{PASSWORD}")
    subprocess.run(["openssl", "pkcs12", "-export", *exported], check=True, capture_output=True)
    return {
        **cluster.authority.kafka_keys(issued),
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": PASSWORD,
        "ssl.key.password": PASSWORD,
    }


@pytest.fixture
def other_authority(cluster, tmp_path):
    return Authority(tmp_path, "other")


def test_all_brokers_accept_the_login(cluster, trusted):
    assert cluster.attempt(trusted) == {"answered": [1, 2], "errors": []}


def test_one_broker_names_the_others(cluster, trusted):
    assert cluster.attempt(trusted, brokers=[str(cluster.brokers[0].address)])["answered"] == [1, 2]


def test_an_untrusted_certificate_is_reported(cluster, other_authority):
    stranger = other_authority.kafka_keys(other_authority.issue("controller"))
    result = cluster.attempt({**stranger, "ssl.truststore.location": cluster.authority.cafile})
    assert result["answered"] == []
    assert any("certificate" in error for error in result["errors"]), result
    assert any(str(broker.address.port) in error for broker in cluster.brokers for error in result["errors"]), result


def test_a_missing_certificate_is_reported(cluster, trusted):
    without = {key: value for key, value in trusted.items() if "key" not in key}
    result = cluster.attempt(without)
    assert result["answered"] == [] and any("certificate" in error for error in result["errors"]), result


def test_untrusted_brokers_are_reported(cluster, trusted, other_authority):
    result = cluster.attempt({**trusted, "ssl.truststore.location": other_authority.cafile})
    assert result["answered"] == []
    assert any("unable to find valid certification path" in error for error in result["errors"]), result


def test_a_missing_keystore_is_reported(cluster, trusted):
    result = cluster.attempt({**trusted, "ssl.keystore.location": "/nowhere/keystore.pem"})
    assert "/nowhere/keystore.pem" in " ".join(result["errors"]), result


def test_a_wrong_keystore_password_is_reported_and_not_shown(cluster, trusted):
    result = cluster.attempt({**trusted, "ssl.keystore.password": "a-wrong-password"})
    assert result["answered"] == [] and "Failed to load SSL keystore" in " ".join(result["errors"]), result
    assert "a-wrong-password" not in str(result)


def test_an_unreachable_broker_is_reported(cluster, trusted):
    result = cluster.attempt(trusted, brokers=[f"127.0.0.1:{servers.free_port()}"])
    assert result["answered"] == [] and "METADATA failed" in " ".join(result["errors"]), result


def test_a_timeout_is_reported(cluster, trusted):
    assert cluster.attempt(trusted, timeout=0.2) == {"answered": [], "errors": ["no answer in 0.2 s"]}


def test_a_missing_tool_and_a_missing_user_are_reported(cluster, trusted, tmp_path):
    (error,) = cluster.attempt(trusted, kafka_home=str(tmp_path))["errors"]
    assert (
        error == f"{tmp_path}/bin/kafka-broker-api-versions.sh (see quorumshift_kafka_home): No such file or directory"
    )
    (error,) = cluster.attempt(trusted, user="no-such-user")["errors"]
    assert error == "there is no user no-such-user on this host"


def test_a_login_by_a_password_of_the_brokers_file_is_accepted(sasl_cluster):
    file = sasl_cluster.brokers[0].home / "server.properties"
    assert UMLAUT.encode() in file.read_bytes()
    key = "listener.name.internal.plain.sasl.jaas.config"
    assert sasl_cluster.attempt({key: node.read_properties(str(file))[key]}) == {"answered": [1], "errors": []}


def test_a_login_by_a_password_in_a_variable_is_accepted(sasl_cluster):
    keys = {
        "config.providers": "env",
        "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        **login("${env:BROKER_PASSWORD}"),
    }
    environment = {"BROKER_PASSWORD": UMLAUT.encode().decode("latin-1"), "LC_ALL": "C.UTF-8"}
    assert sasl_cluster.attempt(keys, environment=environment) == {"answered": [1], "errors": []}


def test_a_rejected_password_is_reported_and_not_shown(sasl_cluster):
    result = sasl_cluster.attempt(login("a-wrong-password"))
    assert result["answered"] == [] and "Authentication failed" in " ".join(result["errors"]), result
    assert "a-wrong-password" not in str(result)
