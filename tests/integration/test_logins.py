# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller's logins to brokers, tried by Kafka's own client against real brokers behind mutual TLS."""

from __future__ import annotations

import getpass
import pathlib
import shlex
import subprocess

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import kraft_config
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import logins

from tests.integration import servers
from tests.integration.certificates import Authority

LISTENER = {
    "inter.broker.listener.name": "INTERNAL",
    "listener.name.internal.ssl.client.auth": "required",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INTERNAL:SSL",
}
TIMEOUT_S = 60
PASSWORD = "not-to-be-shown"


class Cluster:
    """Brokers with a listener that wants to know who comes, and a Kafka home whose tool is the real one."""

    def __init__(
        self,
        home: pathlib.Path,
        brokers: list[servers.KafkaServer],
        listener: dict[str, str],
        ours: Authority | None = None,
    ) -> None:
        self.brokers, self.ours, self.listener = brokers, ours, listener
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
        settings, untried = kraft_config.inter_broker_client({**self.listener, **keys})
        assert not untried
        given = {
            "kafka_home": str(self.kafka_home),
            "user": getpass.getuser(),
            "settings": settings,
            "brokers": [str(broker.address) for broker in self.brokers],
            "timeout": TIMEOUT_S,
        }
        return logins.attempt(**{**given, **changes})


@pytest.fixture(scope="module")
def cluster():
    with servers.workdir("logins") as home, servers.zookeeper(home) as zk:
        ours = Authority(home / "tls")
        keys = ours.kafka_keys(ours.issue("broker", "DNS:localhost,IP:127.0.0.1"))

        def broker(node_id: int):
            listeners = {"INTERNAL": f"127.0.0.1:{servers.free_port()}"}
            return servers.zk_broker(home, node_id, zk.connect, {**LISTENER, **keys}, listeners)

        with broker(1) as one, broker(2) as two:
            yield Cluster(home, [one, two], LISTENER, ours)


@pytest.fixture(scope="module")
def with_login():
    """A broker whose listener wants a password."""
    listener = {
        "inter.broker.listener.name": "INTERNAL",
        "listener.security.protocol.map": "INTERNAL:SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN",
    }
    with servers.workdir("logins_sasl") as home, servers.zookeeper(home) as zk:
        known = login(PASSWORD, f'user_broker="{PASSWORD}"')
        listeners = {"INTERNAL": f"127.0.0.1:{servers.free_port()}"}
        with servers.zk_broker(home, 1, zk.connect, {**listener, **known}, listeners) as broker:
            yield Cluster(home, [broker], listener)


def login(password: str, *options: str) -> dict[str, str]:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    reported = " ".join(("required", 'username="broker"', f'password="{password}"', *options))
    return {"listener.name.internal.plain.sasl.jaas.config": f"{module} {reported};"}


@pytest.fixture
def opened(cluster, tmp_path):
    """The settings of a controller whom brokers trust: a store of the kind that most have, and its password."""
    issued, store = cluster.ours.issue("controller"), tmp_path / "keystore.p12"
    exported = ("-in", issued.certfile, "-inkey", issued.keyfile, "-out", str(store), "-passout", f"pass:{PASSWORD}")
    subprocess.run(["openssl", "pkcs12", "-export", *exported], check=True, capture_output=True)
    return {
        **cluster.ours.kafka_keys(issued),
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": PASSWORD,
        "ssl.key.password": PASSWORD,
    }


@pytest.fixture
def others(cluster, tmp_path):
    return Authority(tmp_path, "other")


def test_let_in_by_all(cluster, opened):
    assert cluster.attempt(opened) == {"answered": [1, 2], "errors": []}


def test_found_by_one_of_them(cluster, opened):
    assert cluster.attempt(opened, brokers=[str(cluster.brokers[0].address)])["answered"] == [1, 2]


def test_a_certificate_that_brokers_do_not_trust(cluster, others):
    stranger = others.kafka_keys(others.issue("controller"))
    reported = cluster.attempt({**stranger, "ssl.truststore.location": cluster.ours.cafile})
    assert reported["answered"] == []
    assert any("certificate" in error for error in reported["errors"]), reported
    assert any(str(broker.address.port) in error for broker in cluster.brokers for error in reported["errors"]), (
        reported
    )


def test_no_certificate(cluster, opened):
    without = {key: value for key, value in opened.items() if "key" not in key}
    reported = cluster.attempt(without)
    assert reported["answered"] == [] and any("certificate" in error for error in reported["errors"]), reported


def test_brokers_whom_the_controller_does_not_trust(cluster, opened, others):
    reported = cluster.attempt({**opened, "ssl.truststore.location": others.cafile})
    assert reported["answered"] == []
    assert any("unable to find valid certification path" in error for error in reported["errors"]), reported


def test_a_store_that_is_not_there(cluster, opened):
    reported = cluster.attempt({**opened, "ssl.keystore.location": "/nowhere/keystore.pem"})
    assert "/nowhere/keystore.pem" in " ".join(reported["errors"]), reported


def test_a_wrong_password_is_told_and_not_shown(cluster, opened):
    reported = cluster.attempt({**opened, "ssl.keystore.password": "a-wrong-password"})
    assert reported["answered"] == [] and "Failed to load SSL keystore" in " ".join(reported["errors"]), reported
    assert "a-wrong-password" not in str(reported)


def test_nobody_there(cluster, opened):
    reported = cluster.attempt(opened, brokers=[f"127.0.0.1:{servers.free_port()}"])
    assert reported["answered"] == [] and "METADATA failed" in " ".join(reported["errors"]), reported


def test_a_bound(cluster, opened):
    assert cluster.attempt(opened, timeout=0.2) == {"answered": [], "errors": ["no answer in 0.2 s"]}


def test_no_kafka_and_no_user(cluster, opened, tmp_path):
    (error,) = cluster.attempt(opened, kafka_home=str(tmp_path))["errors"]
    assert (
        error == f"{tmp_path}/bin/kafka-broker-api-versions.sh (see quorumshift_kafka_home): No such file or directory"
    )
    (error,) = cluster.attempt(opened, user="nobody-of-that-name")["errors"]
    assert error == "there is no user nobody-of-that-name on this host"


def test_a_login_by_password(with_login):
    assert with_login.attempt(login(PASSWORD)) == {"answered": [1], "errors": []}


def test_a_password_that_is_refused(with_login):
    reported = with_login.attempt(login("a-wrong-password"))
    assert reported["answered"] == [] and "Authentication failed" in " ".join(reported["errors"]), reported
    assert "a-wrong-password" not in str(reported)
