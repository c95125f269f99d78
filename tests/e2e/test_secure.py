# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The secured bed after its migration: who is let in on the controllers' listener, and who is not.

Run by the molecule scenario `secure`, with TESTBED_VARIANT=secure.
"""

from __future__ import annotations

import json
import subprocess

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.addresses import HostPort, parse_listeners
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import kafka_wire
from ansible_collections.quorumshift.kafka.plugins.module_utils.security import Security

from tools.e2e.testbed import STATE


@pytest.fixture(scope="module")
def controllers(testbed) -> list[HostPort]:
    """Where the controllers listen: on IPv6."""
    texts = [testbed.run(host, "cat /etc/kafka/controller.properties") for host in testbed.controllers]
    listeners = [one for text in texts for one in parse_listeners(properties.parse(text)["listeners"])]
    assert len(listeners) == len(texts) and all(":" in one.host for one in listeners), listeners
    return [HostPort(one.host, one.port) for one in listeners]


def presenting(name: str) -> Security:
    """How somebody with a certificate of the bed's authority connects, whose CN is `name`."""
    directory = STATE / "tls" / "tests"
    directory.mkdir(parents=True, exist_ok=True)
    key, request, certificate = (directory / f"{name}.{kind}" for kind in ("key", "csr", "pem"))
    signed_by = ("-CA", STATE / "ca.pem", "-CAkey", STATE / "ca.key", "-set_serial", "4711", "-days", "2")
    commands = (
        ("req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", f"/O=Bed/CN={name}", "-keyout", key, "-out", request),
        ("x509", "-req", "-in", request, *signed_by, "-out", certificate),
    )
    for command in commands:
        subprocess.run(["openssl", *map(str, command)], check=True, capture_output=True)
    options = {"ssl_cafile": STATE / "ca.pem", "ssl_certfile": certificate, "ssl_keyfile": key}
    return Security.from_options({"security_protocol": "SSL", **{key: str(path) for key, path in options.items()}})


def test_the_tool_is_let_in(testbed, controllers):
    found = kafka_wire.describe_quorum_any(controllers, testbed.connections().controller_client, 10)
    assert found.quorum is not None, found.explain()
    assert sorted(voter.id for voter in found.quorum.voters) == [101, 102, 103]
    assert sorted(broker.id for broker in found.quorum.observers) == [1, 2, 5]


def test_who_is_no_super_user_is_denied(controllers):
    """StandardAuthorizer: a certificate of the same authority is not enough."""
    stranger = presenting("stranger")
    for address in controllers:
        assert kafka_wire.api_versions(address, stranger, 10).api_keys, "ApiVersions needs no permission"
        with pytest.raises(kafka_wire.KafkaError) as caught:
            kafka_wire.describe_quorum(address, stranger, 10)
        assert caught.value.name == "CLUSTER_AUTHORIZATION_FAILED"


def test_an_application_is_denied(controllers):
    """A user who may much on brokers, by ACL, may nothing on controllers that his ACLs do not say."""
    for address in controllers:
        with pytest.raises(kafka_wire.KafkaError) as caught:
            kafka_wire.describe_quorum(address, presenting("app1"), 10)
        assert caught.value.name == "CLUSTER_AUTHORIZATION_FAILED"


def test_without_a_certificate_nobody_talks_to_controllers(controllers):
    nobody = Security.from_options({"security_protocol": "SSL", "ssl_cafile": str(STATE / "ca.pem")})
    for address in controllers:
        with pytest.raises(kafka_wire.TlsError):
            kafka_wire.api_versions(address, nobody, 10)


def test_turns_saw_controllers_come_up(testbed):
    """The turn's worker has no certificate for the only listener of a controller; it is done for what it saw else."""
    for host in testbed.controllers:
        node_restart = json.loads(testbed.run(host, "cat /var/lib/quorumshift/*/restart.json"))
        assert (node_restart["kind"], node_restart["mode"], node_restart["outcome"]) == (
            "controller_final",
            "controller_final",
            "done",
        )
        assert (
            node_restart["times"]["stopped_at"]
            < node_restart["times"]["answered_at"]
            < node_restart["times"]["registered_at"]
        )


def test_super_users_of_controllers(testbed):
    for host in testbed.controllers:
        values = properties.parse(testbed.run(host, "cat /etc/kafka/controller.properties"))
        users = values["super.users"].split(";")
        assert "User:ANONYMOUS" not in users
        assert {"User:controller", "User:quorumshift-tool", "User:broker-1"} <= set(users)
        assert values["listener.name.controller.ssl.client.auth"] == "required"
        assert r"(broker-\d+)" in values["ssl.principal.mapping.rules"]
        assert testbed.run(host, "stat -c '%U %a' /etc/kafka/controller.properties") == "kafka 640"


def test_controllers_kept_zookeepers_znodes_to_kafka(testbed):
    """What controllers wrote while they wrote to ZooKeeper carries the ACL that brokers with zookeeper.set.acl give."""
    with testbed.zookeeper() as client:
        for path in ("/controller", "/migration"):
            acls = client.get_acls(path)[0]
            assert [(acl.id.scheme, acl.id.id) for acl in acls if acl.perms & 2] == [("sasl", "kafka")], path
