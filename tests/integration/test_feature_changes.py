# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of features on real servers: to a release and back, several in one request, a part that is refused, an
answer that is lost, no broker alive."""

from __future__ import annotations

import contextlib
import re
import shlex
import subprocess

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.admin import (
    cluster_admin,
    controllers_admin,
    feature_update,
    features,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases.features import Update
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import admin_requests
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort

from tests.integration import admin_bed, servers
from tests.integration.certificates import Authority
from tests.integration.kafka_proxy import FORWARD, LOSE_ANSWER, LOSE_REQUEST, proxy

pytestmark = pytest.mark.real

MV, GROUP, TRANSACTION, ELR = (
    "metadata.version",
    "group.version",
    "transaction.version",
    "eligible.leader.replicas.version",
)


@contextlib.contextmanager
def proxied(name, settings=None, release=""):
    """Yield (proxy in front of the only broker, controller, broker): the broker names the proxy as its address."""
    with servers.workdir(name) as home, contextlib.ExitStack() as stack:
        address = HostPort("127.0.0.1", servers.free_port())
        voters = f"3000@{address}"
        controller = stack.enter_context(
            servers.kraft_controller(home, 3000, address, voters, settings, release=release)
        )
        listener = HostPort("127.0.0.1", servers.free_port())
        between = stack.enter_context(proxy(listener))
        keys = {"advertised.listeners": f"PLAINTEXT://{between.address}", **(settings or {})}
        broker = stack.enter_context(servers.kraft_broker(home, 1, voters, keys, {"PLAINTEXT": str(listener)}))
        admin_bed.ready([broker])
        yield between, controller, broker


def levels(at):
    """Return the finalized levels as the newest node serves them, with those of every node checked against them."""
    found = admin_bed.run("kafka_features_info", **at)
    assert found["lagging"] == [], found
    return {name: level["level"] for name, level in found["finalized"].items()}


def test_to_a_release_and_back(monkeypatch):
    monkeypatch.setenv("QUORUMSHIFT_KAFKA_LIBS", str(servers.libs_of("4.1.1")))
    with servers.workdir("features-release") as home, contextlib.ExitStack() as stack:
        address = HostPort("127.0.0.1", servers.free_port())
        voters = f"3000@{address}"
        stack.enter_context(servers.kraft_controller(home, 3000, address, voters, release="3.9"))
        brokers = [stack.enter_context(servers.kraft_broker(home, number, voters)) for number in (1, 2)]
        admin_bed.ready(brokers)
        at = {"bootstrap_servers": [str(broker.address) for broker in brokers]}
        before = levels(at)
        assert before == {MV: 21}

        to = {**at, "upgrade_to": "4.1"}
        checked = admin_bed.run("kafka_features", check=True, **to)
        assert [result["feature"] for result in checked["results"]] == [MV, ELR, GROUP, TRANSACTION]
        assert "4.0-IV1 (23)" in checked["one_way"][0] and len(checked["one_way"]) == 1
        assert checked["token"].startswith(f"{servers.CLUSTER_ID}:")
        refused = admin_bed.run("kafka_features", **to, token="")
        assert refused["failed"] and checked["token"] in refused["msg"] and "QS-ADMIN-011" in refused["msg"]
        refused = admin_bed.run("kafka_features", **to, token=f"{servers.CLUSTER_ID}:000000")
        assert refused["failed"] and "The token given is" in refused["msg"]
        # Nodes of the cluster that do not answer
        refused = admin_bed.run("kafka_features", **to, expected={"broker": [1, 2, 7], "controller": [3000]})
        assert refused["failed"] and "broker 7" in refused["msg"]
        assert levels(at) == before

        raised = admin_bed.run(
            "kafka_features", **to, token=checked["token"], expected={"broker": [1, 2], "controller": [3000]}
        )
        assert raised["changed"] and not raised["lost"], raised
        full = {MV: 27, ELR: 1, GROUP: 1, TRANSACTION: 2}
        assert levels(at) == full == raised["finalized"]
        again = admin_bed.run("kafka_features", **to, token="")
        assert again["changed"] is False and again["token"] == ""

        # One request that raises and lowers: first down, then up
        mixed = {"features": {GROUP: 0, "share.version": 1}}
        assert "downgrade: safe" in admin_bed.run("kafka_features", **at, **mixed)["msg"]
        both = admin_bed.run("kafka_features", **at, **mixed, downgrade="safe")
        assert [(result["feature"], result["after"]) for result in both["results"]] == [
            (GROUP, 0),
            ("share.version", 1),
        ]
        assert "group.protocol=classic" in both["notes"][0] and len(both["notes"]) == 1
        assert levels(at) == {MV: 27, ELR: 1, TRANSACTION: 2, "share.version": 1}

        # To 4.0: what it supports stays, what it does not know is deleted; its metadata.version is as far as Kafka goes
        down = admin_bed.run("kafka_features", **at, downgrade_to="4.0")
        assert down["changed"], down
        assert levels(at) == {MV: 25, ELR: 1, TRANSACTION: 2}
        stuck = admin_bed.run("kafka_features", **at, downgrade_to="3.9")
        assert stuck["failed"] and "4.0-IV1 (23)" in stuck["msg"] and "QS-ADMIN-010" in stuck["msg"], stuck
        assert "releases 3.3 to" in admin_bed.run("kafka_features", **at, downgrade_to="2.8")["msg"]
        exclusive = admin_bed.run("kafka_features", **at, upgrade_to="4.1", downgrade_to="4.0")
        assert exclusive["failed"] and "mutually exclusive" in exclusive["msg"]


def updater(broker):
    """Return what the module updates with, without its own refusals and the controller's validation."""
    plain = Security()
    admin = cluster_admin.ClusterAdmin([broker.address], plain, 15, None)
    return feature_update.Updater(admin, lambda: features.collect(admin, plain, plain, [], 15), 60)


def test_a_part_of_a_request_is_made():
    # In Kafka 3.9, a race between two clients ends so: the controller had accepted both features before
    with proxied("features-part", release="3.8") as (_between, _controller, broker):
        at = {"bootstrap_servers": [str(broker.address)]}
        changes = (Update(MV, 20, 21), Update("nothing", 0, 1))
        with pytest.raises(feature_update.NotUpdated) as failed:
            updater(broker).update(changes, "no", 0)
        said = str(failed.value)
        assert "Made: metadata.version 3.9-IV0. Refused: nothing:" in said and "QS-ADMIN-013" in said, said
        assert "Every node serves metadata.version 3.9-IV0, nothing 0 at epoch" in said
        assert failed.value.changed and failed.value.errors == {MV: None, "nothing": "INVALID_UPDATE_VERSION"}
        assert levels(at) == {MV: 21}


def test_kafka_4_makes_all_of_a_request_or_nothing(monkeypatch):
    monkeypatch.setenv("QUORUMSHIFT_KAFKA_LIBS", str(servers.libs_of("4.1.1")))
    with proxied("features-whole", release="4.0") as (_between, _controller, broker):
        at = {"bootstrap_servers": [str(broker.address)]}
        before = levels(at)
        with pytest.raises(feature_update.NotUpdated) as failed:
            updater(broker).update((Update(MV, before[MV], 27), Update("nothing", 0, 1)), "no", 0)
        said = str(failed.value)
        assert "Nothing was changed" in said and not failed.value.changed, said
        assert levels(at) == before


def test_the_answer_to_a_change_is_lost():
    with proxied("features-lost", release="3.8") as (between, _controller, broker):
        at = {"bootstrap_servers": [str(broker.address)]}
        assert levels(at)[MV] == 20
        wanted = {**at, "features": {MV: "3.9"}, "wait_timeout_s": 3}

        # Lost before it was sent to Kafka: the nodes are read until the wait ends
        between.on_update = lambda validates: FORWARD if validates else LOSE_REQUEST
        failed = admin_bed.run("kafka_features", **wanted)
        assert failed["failed"] and failed["changed"] is False, failed
        assert "may have been raised" in failed["msg"] and "QS-ADMIN-014" in failed["msg"]
        assert "the nodes serve metadata.version 3.8-IV0 at epoch" in failed["msg"]

        # The validation is no change: nothing may have been raised
        between.on_update = lambda _validates: LOSE_ANSWER
        failed = admin_bed.run("kafka_features", **wanted)
        assert failed["failed"] and "may have been" not in failed["msg"] and "Nothing was changed" in failed["msg"]
        assert levels(at)[MV] == 20

        # Made, and the answer is lost: what the nodes serve decides
        between.on_update = lambda validates: FORWARD if validates else LOSE_ANSWER
        made = admin_bed.run("kafka_features", **wanted)
        assert made["changed"] and made["lost"] and made["finalized"][MV] == 21, made
        assert "The answer to the change was lost" in str(made["warnings"])
        assert levels(at)[MV] == 21
        assert between.seen.count(LOSE_ANSWER) == 2


def test_through_a_controller_where_no_broker_lives():
    with servers.workdir("features-controllers") as home, contextlib.ExitStack() as stack:
        addresses = [HostPort("127.0.0.1", servers.free_port()) for dummy in range(3)]
        voters = ",".join(f"{101 + place}@{address}" for place, address in enumerate(addresses))
        controllers = stack.enter_context(servers.kraft_controllers(home, addresses))
        broker = stack.enter_context(servers.kraft_broker(home, 1, voters))
        admin_bed.ready([broker])
        at = {"bootstrap_servers": [str(broker.address)], "controllers": [str(address) for address in addresses]}
        assert levels(at)[MV] == 21
        down = {**at, "downgrade_to": "3.8"}

        # The broker lives, and the task asks another address for it
        unreached = {**down, "bootstrap_servers": [f"127.0.0.1:{servers.free_port()}"]}
        refused = admin_bed.run("kafka_features", **unreached)
        assert refused["failed"] and "have just fetched: 1" in refused["msg"], refused

        broker.kill()
        alone = admin_bed.run("kafka_features", bootstrap_servers=at["bootstrap_servers"], downgrade_to="3.8")
        assert alone["failed"] and "connection refused" in alone["msg"]
        servers.wait_for(
            lambda: admin_bed.run("kafka_features_info", **at)["alive"] == [], 60, "the broker to have stopped fetching"
        )
        found = admin_bed.run("kafka_features_info", **at)
        assert found["mode"] == "kraft" and found["cluster_id"] == servers.CLUSTER_ID
        assert {node["id"] for node in found["nodes"].values()} == {101, 102, 103}
        other = admin_bed.run("kafka_features", **down, cluster_id="AAAAAAAAAAAAAAAAAAAAAA")
        assert other["failed"] and "is of cluster" in other["msg"]
        # No level rises while the cluster's brokers are down
        assert admin_bed.run("kafka_features", **down)["finalized"][MV] == 20
        raises = {**at, "upgrade_to": "3.9", "expected": {"broker": [1], "controller": [101, 102, 103]}}
        refused = admin_bed.run("kafka_features", **raises)
        assert refused["failed"] and "broker 1" in refused["msg"] and "down" in refused["msg"]
        assert levels(at)[MV] == 20
        # Every controller is asked, and the leader alone makes the change, whichever is named first
        controllers[0].kill()
        refused = admin_bed.run("kafka_features", **at, downgrade_to="3.7")
        assert refused["failed"] and str(addresses[0]) in refused["msg"], refused


def test_a_controller_that_is_elected_anew():
    with servers.workdir("features-election") as home, contextlib.ExitStack() as stack:
        addresses = [HostPort("127.0.0.1", servers.free_port()) for dummy in range(3)]
        voters = ",".join(f"{101 + place}@{address}" for place, address in enumerate(addresses))
        controllers = stack.enter_context(servers.kraft_controllers(home, addresses, release="3.8"))
        broker = stack.enter_context(servers.kraft_broker(home, 1, voters))
        admin_bed.ready([broker])
        at = {"bootstrap_servers": [str(broker.address)], "controllers": [str(address) for address in addresses]}
        assert levels(at)[MV] == 20
        plain, change = Security(), {MV: (21, admin_requests.UPGRADE)}
        of_broker = cluster_admin.ClusterAdmin([broker.address], plain, 15, None)
        of_controllers = controllers_admin.ControllersAdmin(addresses, plain, 15, servers.CLUSTER_ID)
        leader = of_controllers.search_quorum().quorum.leader_id
        (leading,) = (server for server in controllers if server.node_id == leader)
        leading.kill()
        # Both ask a quorum without a leader, until there is one
        assert of_controllers.update_features(change, True) == (None, {MV: None})
        assert of_broker.update_features(change, False) == (None, {MV: None})
        assert of_controllers.update_features(change, False) == (None, {MV: None}), "the same again"
        left = [str(server.address) for server in controllers if server is not leading]
        assert levels({**at, "controllers": left})[MV] == 21


PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
MAP = "CONTROLLER:SSL,INSIDE:PLAINTEXT,CLIENTS:SASL_SSL"


@contextlib.contextmanager
def secured():
    """Yield (home, authority, controller, broker) with an authorizer: mutual TLS to the controller, SASL over TLS to
    the broker. User alice is a super user and bob is not; of the certificates, CN=node is."""
    with servers.workdir("features-secured") as home, contextlib.ExitStack() as stack:
        authority = Authority(home / "tls")
        node = authority.issue("node", "IP:127.0.0.1")
        address = HostPort("127.0.0.1", servers.free_port())
        voters = f"3000@{address}"
        keys = {
            **authority.kafka_keys(node),
            "listener.security.protocol.map": MAP,
            "listener.name.controller.ssl.client.auth": "required",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:alice;User:CN=node",
        }
        controller = stack.enter_context(servers.kraft_controller(home, 3000, address, voters, keys, release="3.8"))
        listeners = {name: f"127.0.0.1:{servers.free_port()}" for name in ("INSIDE", "CLIENTS")}
        own = {
            **keys,
            "inter.broker.listener.name": "INSIDE",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.clients.plain.sasl.jaas.config": f'{PLAIN} user_alice="alice-1" user_bob="bob-1";',
        }
        broker = stack.enter_context(servers.kraft_broker(home, 1, voters, own, listeners))
        admin_bed.ready([broker])  # at the listener without security
        yield home, authority, controller, broker


def test_on_secured_listeners_and_without_the_right_to_do_it():
    with secured() as (home, authority, controller, broker):
        probe, node = authority.issue("probe"), authority.issue("node")

        def user(name, secret=None):
            plain = {"sasl_mechanism": "PLAIN", "sasl_username": name, "sasl_password": secret or f"{name}-1"}
            return {"security_protocol": "SASL_SSL", "ssl_cafile": authority.cafile, **plain}

        def certified(certificate):
            own = {"ssl_certfile": certificate.certfile, "ssl_keyfile": certificate.keyfile}
            return {"security_protocol": "SSL", "ssl_cafile": authority.cafile, **own}

        at = {
            "bootstrap_servers": [str(broker.listeners["CLIENTS"])],
            "client": user("bob"),
            "controllers": [str(controller.address)],
            "controller_client": certified(probe),
        }
        found = admin_bed.run("kafka_features_info", **at)
        assert found["finalized"][MV]["level"] == 20 and len(found["nodes"]) == 2, found
        assert "CLUSTER_AUTHORIZATION_FAILED" in found["quorum_error"], "bob may not describe the quorum either"
        assert "User:bob --operation Describe --cluster" in found["notes"][-1], found["notes"]
        wrong = admin_bed.run("kafka_features_info", **{**at, "client": user("bob", "wrong")})
        assert wrong["failed"] and "AuthenticationFailed" not in wrong["msg"] and "wrong" not in wrong["msg"], wrong

        raised = {**at, "features": {MV: "3.9"}}
        refused = admin_bed.run("kafka_features", **raised)
        assert refused["failed"] and "CLUSTER_AUTHORIZATION_FAILED" in refused["msg"], refused
        command = re.search(r"kafka-acls\.sh (.*) \(QS", refused["msg"])[1]
        assert "--operation Alter" in command and "User:bob" in command, refused["msg"]
        assert levels(at)[MV] == 20

        # The command as it is printed, with the properties of alice
        properties = home / "alice.properties"
        properties.write_text(
            f"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nssl.truststore.type=PEM\n"
            f"ssl.truststore.location={authority.cafile}\n"
            f'sasl.jaas.config={PLAIN} username="alice" password="alice-1";\n'
        )
        words = [str(properties) if word == "ADMIN.properties" else word for word in shlex.split(command)]
        done = subprocess.run(
            [*servers.java(), "kafka.admin.AclCommand", *words],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        servers.wait_for(
            lambda: not admin_bed.run("kafka_features", check=True, **raised).get("failed"), 30, "bob may do it"
        )
        made = admin_bed.run("kafka_features", **raised)
        assert made["changed"] and levels(at)[MV] == 21, made

        # The broker is down: the principal of the controllers' listener needs the right
        broker.kill()
        servers.wait_for(
            lambda: admin_bed.run("kafka_features_info", **{**at, "controller_client": certified(node)})["alive"] == [],
            60,
            "the broker to have stopped fetching",
        )
        lowered = {**at, "downgrade_to": "3.8"}
        refused = admin_bed.run("kafka_features", **lowered)
        assert refused["failed"] and "CLUSTER_AUTHORIZATION_FAILED" in refused["msg"], refused
        assert "No broker lives, so no ACL can be changed" in refused["msg"]
        assert (
            admin_bed.run("kafka_features", **{**lowered, "controller_client": certified(node)})["finalized"][MV] == 20
        )
