# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The secured testbed after its migration: which principals the controllers' listener authorizes.

The molecule scenario `secure` runs these tests with TESTBED_VARIANT=secure.
"""

from __future__ import annotations

import json
import subprocess

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort, parse_listeners
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import kafka_wire

from tests.system.testbed.layout import STATE


@pytest.fixture(scope="module")
def controllers(testbed) -> list[HostPort]:
    """The controllers' IPv6 addresses."""
    texts = [testbed.run(host, "cat /etc/kafka/controller.properties") for host in testbed.controllers]
    listeners = [
        listener for text in texts for listener in parse_listeners(properties.parse(text.encode())["listeners"])
    ]
    assert len(listeners) == len(texts) and all(":" in listener.host for listener in listeners), listeners
    return [HostPort(listener.host, listener.port) for listener in listeners]


def with_certificate(name: str) -> Security:
    """Return the connection settings of a client whose certificate, of the testbed's authority, has the CN `name`."""
    directory = STATE / "tls" / "tests"
    directory.mkdir(parents=True, exist_ok=True)
    key, request, certificate = (directory / f"{name}.{kind}" for kind in ("key", "csr", "pem"))
    signed_by = ("-CA", STATE / "ca.pem", "-CAkey", STATE / "ca.key", "-set_serial", "4711", "-days", "2")
    output = ("-keyout", key, "-out", request)
    commands = (
        ("req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", f"/O=Testbed/CN={name}", *output),
        ("x509", "-req", "-in", request, *signed_by, "-out", certificate),
    )
    for command in commands:
        subprocess.run(["openssl", *map(str, command)], check=True, capture_output=True)
    options = {"ssl_cafile": STATE / "ca.pem", "ssl_certfile": certificate, "ssl_keyfile": key}
    return Security.from_options({"security_protocol": "SSL", **{key: str(path) for key, path in options.items()}})


def test_the_tool_is_authorized(testbed, controllers):
    found = kafka_wire.describe_quorum_any(controllers, testbed.connections().controller_client, 10)
    assert found.quorum is not None, found.explain()
    assert sorted(voter.id for voter in found.quorum.voters) == [101, 102, 103]
    assert sorted(broker.id for broker in found.quorum.observers) == [1, 2, 5]


def test_a_stranger_is_denied(controllers):
    """StandardAuthorizer: a certificate of the same authority gives no rights."""
    stranger = with_certificate("stranger")
    for address in controllers:
        assert kafka_wire.api_versions(address, stranger, 10).api_keys, "ApiVersions needs no authorization"
        with pytest.raises(kafka_wire.KafkaError) as caught:
            kafka_wire.describe_quorum(address, stranger, 10)
        assert caught.value.name == "CLUSTER_AUTHORIZATION_FAILED"


def test_an_application_is_denied(controllers):
    """The ACLs of a user on brokers give it no other rights on controllers."""
    for address in controllers:
        with pytest.raises(kafka_wire.KafkaError) as caught:
            kafka_wire.describe_quorum(address, with_certificate("app1"), 10)
        assert caught.value.name == "CLUSTER_AUTHORIZATION_FAILED"


def test_a_client_without_a_certificate_cannot_connect(controllers):
    anonymous = Security.from_options({"security_protocol": "SSL", "ssl_cafile": str(STATE / "ca.pem")})
    for address in controllers:
        with pytest.raises(kafka_wire.TlsError):
            kafka_wire.api_versions(address, anonymous, 10)


def test_restarts_of_controllers_succeeded_without_a_certificate(testbed):
    """The worker has no certificate for the controller's only listener; other signs show that the controller is up."""
    for host in testbed.controllers:
        restart = json.loads(testbed.run(host, "cat /var/lib/quorumshift/*/*/restart.json"))
        assert [restart[key] for key in ("kind", "mode", "outcome")] == ["controller_final", "controller_final", "done"]
        times = restart["times"]
        assert times["stopped_at"] < times["answered_at"] < times["registered_at"]


def test_controllers_have_the_configured_super_users(testbed):
    for host in testbed.controllers:
        values = properties.parse(testbed.run(host, "cat /etc/kafka/controller.properties").encode())
        users = values["super.users"].split(";")
        assert "User:ANONYMOUS" not in users
        assert {"User:controller", "User:quorumshift-tool", "User:broker-1"} <= set(users)
        assert values["listener.name.controller.ssl.client.auth"] == "required"
        assert r"(broker-\d+)" in values["ssl.principal.mapping.rules"]
        assert testbed.run(host, "stat -c '%U %a' /etc/kafka/controller.properties") == "kafka 640"


def test_controllers_restricted_their_znodes_to_kafka(testbed):
    """Controllers in dual-write set the same ACLs as brokers with zookeeper.set.acl."""
    with testbed.zookeeper() as client:
        for path in ("/controller", "/migration"):
            acls = client.get_acls(path)[0]
            assert [(acl.id.scheme, acl.id.id) for acl in acls if acl.perms & 2] == [("sasl", "kafka")], path
