# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Kafka probe against real brokers and controllers: each node mode, each kind of listener, each error.

With QUORUMSHIFT_RECORD set, the responses in each mode are saved for the unit tests; without it they are compared.
"""

from __future__ import annotations

import json
import os
import pathlib
import time

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration.node_mode import node_mode
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import kafka_answers
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import topics
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security, SecurityError
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import kafka_wire, zk_wire
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.integration import servers
from tests.integration.certificates import Authority

pytestmark = pytest.mark.real

RECORDED = pathlib.Path(__file__).resolve().parents[1] / "unit" / "wire" / "wire_answers.json"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
TO_KRAFT = {
    "zookeeper.connect": None,
    "zookeeper.metadata.migration.enable": None,
    "inter.broker.protocol.version": None,
    "broker.id": None,
    "process.roles": "broker",
    "node.id": "1",
}


class Recorder:
    """Calls the probe's public functions and records the bytes of the responses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers: dict = {}
        self._last: dict = {}
        original = kafka_wire.KafkaConnection._ask

        def ask(connection, request, version):
            answer = original(connection, request, version)
            self._last[answer.api.name] = {"version": version, "answer": answer.data.hex()}
            return answer

        monkeypatch.setattr(kafka_wire.KafkaConnection, "_ask", ask)

    def mode(self, name: str, address: HostPort) -> str:
        answer = kafka_wire.api_versions(address)
        self.answers[name] = {"api_versions": self._last["ApiVersions"]}
        return node_mode(answer.api_keys, answer.zk_migration_ready)

    def quorum(self, name: str, address: HostPort) -> kafka_wire.Quorum:
        quorum = kafka_wire.describe_quorum(address)
        self.answers[name]["describe_quorum"] = self._last["DescribeQuorum"]
        return quorum

    def refused(self, name: str, address: HostPort, kind: type) -> kafka_wire.KafkaError:
        self._last.pop("DescribeQuorum", None)
        with pytest.raises(kind) as caught:
            kafka_wire.describe_quorum(address)
        if "DescribeQuorum" in self._last:
            self.answers[name]["describe_quorum"] = self._last["DescribeQuorum"]
        return caught.value


def test_each_mode_is_detected_during_a_migration(monkeypatch):
    recorder = Recorder(monkeypatch)
    with servers.workdir("kafka_wire_modes") as home, servers.zookeeper(home) as zookeeper:
        connect = f"{zookeeper.connect}/kafka/one"
        sasl = {"sasl.enabled.mechanisms": "PLAIN", "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{PLAIN};"}
        listeners = {name: f"127.0.0.1:{servers.free_port()}" for name in ("PLAINTEXT", "SASL_PLAINTEXT")}
        with servers.zk_broker(home, 1, connect, sasl, listeners) as broker:
            assert recorder.mode("zk", broker.address) == "zk"
            _assert_partitions_agree(broker.address)
            assert recorder.refused("zk", broker.address, kafka_wire.KafkaError).name == "UNSUPPORTED_VERSION"

            with servers.migrating_controllers(home, connect) as (addresses, controllers, to_migration):
                search = servers.wait_for(lambda: _caught_up(addresses, 2), 30, "a quorum of two")
                leader, follower = _leader_first(controllers, search)
                assert recorder.mode("controller_migration", leader.address) == "controller_migration"
                quorum = recorder.quorum("controller_migration", leader.address)
                assert quorum.leader_id == leader.node_id and quorum.leader_epoch > 0
                assert {voter.id for voter in quorum.voters} == {101, 102} and not quorum.observers
                assert all(voter.directory_id is None and voter.last_caught_up_timestamp > 0 for voter in quorum.voters)
                assert recorder.mode("controller_migration_follower", follower.address) == "controller_migration"
                refusal = recorder.refused("controller_migration_follower", follower.address, kafka_wire.NotLeader)
                assert refusal.code == 6

                broker.stop()
                broker.configure(to_migration)
                seen = []
                broker.start(lambda: _record_mode(broker, seen) and broker.is_started())
                assert seen and set(seen) == {"zk_migration"}, "the first response shows the mode"
                servers.wait_for(lambda: _copied(connect), 30, "the initial copy")
                assert recorder.mode("zk_migration", broker.address) == "zk_migration"
                without_login = kafka_wire.api_versions(broker.listeners["SASL_PLAINTEXT"])
                assert without_login.zk_migration_ready and 4 in without_login.api_keys
                assert recorder.refused("zk_migration", broker.address, kafka_wire.KafkaError).code == 35
                quorum = servers.wait_for(lambda: _with_observer(addresses), 10, "the broker as observer")
                assert quorum.observers[0].id == 1 and quorum.observers[0].directory_id
                assert 0 < quorum.observers[0].log_end_offset <= quorum.high_watermark + 5

                broker.stop()
                broker.configure(TO_KRAFT)
                broker.start()
                assert recorder.mode("kraft", broker.address) == "kraft"
                _assert_partitions_agree(broker.address)
                assert recorder.quorum("kraft", broker.address).leader_id == leader.node_id, "not forwarded"

                for controller in (follower, leader):
                    controller.stop()
                    controller.configure({"zookeeper.connect": None, "zookeeper.metadata.migration.enable": None})
                    controller.start()
                servers.wait_for(lambda: _caught_up(addresses, 2), 30, "a quorum of two")
                assert recorder.mode("controller_final", leader.address) == "controller_final"
                # a starting controller reports (1, 1) until it has read its log
                servers.wait_for(lambda: _metadata_version(leader.address) == (21, 21), 20, "metadata.version 3.9-IV0")

                follower.kill()
                search = kafka_wire.describe_quorum_any(addresses, timeout=3)
                assert isinstance(search.outcomes[follower.address], kafka_wire.Unreachable)
                assert str(follower.address) in search.explain()
    if os.environ.get("QUORUMSHIFT_RECORD"):
        RECORDED.write_text(json.dumps(recorder.answers, indent=1) + "\n")
    recorded = json.loads(RECORDED.read_text())
    assert set(recorded) == set(recorder.answers)
    for name, answers in recorder.answers.items():
        old, new = recorded[name]["api_versions"], answers["api_versions"]
        assert _shape(old) == _shape(new), f"{name}: the response differs from the recorded one"


def _shape(recorded: dict) -> tuple:
    answer = kafka_answers.decode_api_versions(bytes.fromhex(recorded["answer"]), recorded["version"])
    return answer.api_keys, answer.supported_features, answer.zk_migration_ready


def _metadata_version(address):
    return kafka_wire.api_versions(address).finalized_features["metadata.version"]


def _caught_up(addresses, voters):
    search = kafka_wire.describe_quorum_any(addresses, timeout=2)
    caught_up = [voter for voter in search.quorum.voters if voter.log_end_offset > 0] if search.quorum else []
    return search if len(caught_up) == voters else None


def _leader_first(controllers, search):
    return sorted(controllers, key=lambda controller: controller.node_id != search.quorum.leader_id)


def _record_mode(broker, seen):
    try:
        answer = kafka_wire.api_versions(broker.address, timeout=1)
    except kafka_wire.WireError:
        return False
    seen.append(node_mode(answer.api_keys, answer.zk_migration_ready))
    return True


def _copied(connect):
    data, _stat = zk_wire.read_znodes(connect, ["/migration"])["/migration"]
    return json.loads(data)["kraft_metadata_offset"] > 0


def _with_observer(addresses):
    search = kafka_wire.describe_quorum_any(addresses, timeout=2)
    return search.quorum if search.quorum and search.quorum.observers else None


@pytest.fixture(scope="module")
def secure():
    """A KRaft broker with TLS, mutual TLS and SASL listeners on IPv4 and IPv6, and an authorizer."""
    with servers.workdir("kafka_wire_secure") as home:
        authority = Authority(home / "tls")
        server = authority.issue("server", "IP:127.0.0.1,IP:::1")
        names = {"INSIDE": "127.0.0.1", "TLS": "127.0.0.1", "MUTUAL": "127.0.0.1", "SASLTLS": "127.0.0.1"}
        names.update(SASLPLAIN="127.0.0.1", SIX="[::1]")
        listeners = {name: f"{host}:{servers.free_port(host.strip('[]'))}" for name, host in names.items()}
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        authorizer = {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:alice;User:carol;User:CN=probe",
        }
        settings = {
            **authority.kafka_keys(server),
            **authorizer,
            "inter.broker.listener.name": "INSIDE",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,INSIDE:PLAINTEXT,TLS:SSL,MUTUAL:SSL,"
            "SASLTLS:SASL_SSL,SASLPLAIN:SASL_PLAINTEXT,SIX:SASL_SSL",
            "listener.name.mutual.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512,PLAIN",
            "listener.name.saslplain.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.saslplain.plain.sasl.jaas.config": f'{PLAIN} user_carol="carol secret";',
        }
        for name in ("sasltls", "six"):
            settings[f"listener.name.{name}.plain.sasl.jaas.config"] = f'{PLAIN} user_carol="carol secret";'
            settings[f"listener.name.{name}.scram-sha-256.sasl.jaas.config"] = scram
            settings[f"listener.name.{name}.scram-sha-512.sasl.jaas.config"] = scram
        address = HostPort("127.0.0.1", servers.free_port())
        controllers = servers.kraft_controllers(home, [address], authorizer)
        with controllers, servers.kraft_broker(home, 1, f"101@{address}", settings, listeners) as broker:
            _add_scram_users(str(broker.listeners["INSIDE"]))
            broker.authority = authority
            broker.other_authority = Authority(home / "other-tls", "other")
            yield broker


def _add_scram_users(bootstrap):
    admin = AdminClient({"bootstrap.servers": bootstrap})
    # a request may alter each user only once
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        credential = ScramCredentialInfo(mechanism, 4096)
        changes = [
            UserScramCredentialUpsertion(user, credential, f"{user} secret".encode()) for user in ("alice", "bob,=x")
        ]
        for future in admin.alter_user_scram_credentials(changes).values():
            future.result(20)


def _assert_partitions_agree(address):
    """Assert that the probe reads the same partitions from this broker as librdkafka."""
    admin = AdminClient({"bootstrap.servers": str(address)})
    servers.wait_for(lambda: servers.knows_controller(admin, 1), 60, "a broker that knows the controller")
    servers.create_topics(admin, [NewTopic("seen.by.both", 3, 1)])
    servers.wait_for(lambda: servers.in_sync(admin, "seen.by.both", 1), 30, "the topic")
    served = topics.read_from_broker(address, Security(), 10)
    assert served == topics.read([address], Security(), 10)["partitions"] and len(served["seen.by.both"]) == 3


def _client(secure, protocol, **options):
    if protocol.endswith("SSL"):
        options.setdefault("ssl_cafile", secure.authority.cafile)
    return Security.from_options({"security_protocol": protocol, **options})


def _login(mechanism, user, password=None):
    return {"sasl_mechanism": mechanism, "sasl_username": user, "sasl_password": password or f"{user} secret"}


@pytest.mark.parametrize("listener", ["SASLTLS", "SIX"])
@pytest.mark.parametrize(
    ("mechanism", "user"), [("SCRAM-SHA-256", "alice"), ("SCRAM-SHA-512", "alice"), ("PLAIN", "carol")]
)
def test_sasl_over_tls_authenticates(secure, listener, mechanism, user):
    security = _client(secure, "SASL_SSL", **_login(mechanism, user))
    address = secure.listeners[listener]
    servers.wait_for(lambda: _leader_or_none(address, security), 10, "the credential on the broker")
    assert kafka_wire.describe_quorum(address, security).leader_id == 101


def _leader_or_none(address, security):
    try:
        return kafka_wire.describe_quorum(address, security).leader_id
    except kafka_wire.AuthenticationFailed:
        return None


def test_sasl_without_tls_authenticates(secure):
    security = _client(secure, "SASL_PLAINTEXT", **_login("PLAIN", "carol"))
    assert kafka_wire.describe_quorum(secure.listeners["SASLPLAIN"], security).leader_id == 101


@pytest.mark.parametrize("listener", ["SASLTLS", "SASLPLAIN", "SIX", "TLS"])
def test_api_versions_needs_no_credentials(secure, listener):
    protocol = "PLAINTEXT" if listener == "SASLPLAIN" else "SSL"
    first = kafka_wire.api_versions(secure.listeners["INSIDE"])
    answer = kafka_wire.api_versions(secure.listeners[listener], _client(secure, protocol))
    assert node_mode(answer.api_keys, answer.zk_migration_ready) == "kraft"
    # the epoch is the offset up to which the broker knows the metadata log, which grows by itself (NoOpRecord)
    assert answer.finalized_features_epoch >= first.finalized_features_epoch
    assert answer == first._replace(finalized_features_epoch=answer.finalized_features_epoch)


def test_a_user_without_rights_is_denied(secure):
    security = _client(secure, "SASL_SSL", **_login("SCRAM-SHA-256", "bob,=x"))
    with pytest.raises(kafka_wire.KafkaError) as caught:
        kafka_wire.describe_quorum(secure.listeners["SASLTLS"], security)
    assert caught.value.name == "CLUSTER_AUTHORIZATION_FAILED"


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"])
def test_a_wrong_password_is_reported_and_not_shown(secure, mechanism):
    security = _client(secure, "SASL_SSL", **_login(mechanism, "alice", "not it"))
    with pytest.raises(kafka_wire.AuthenticationFailed, match="'alice' failed") as caught:
        kafka_wire.describe_quorum(secure.listeners["SASLTLS"], security)
    assert "not it" not in str(caught.value)


def test_a_mechanism_that_the_broker_lacks_is_reported(secure):
    security = _client(secure, "SASL_PLAINTEXT", **_login("SCRAM-SHA-512", "alice"))
    with pytest.raises(kafka_wire.AuthenticationFailed, match="does not offer SCRAM-SHA-512, but PLAIN"):
        kafka_wire.describe_quorum(secure.listeners["SASLPLAIN"], security)


@pytest.mark.parametrize("keypassword", ["", "pass phrase"])
def test_mutual_tls_authenticates(secure, keypassword):
    probe = secure.authority.issue("probe", keypassword=keypassword)
    files = {"ssl_certfile": probe.certfile, "ssl_keyfile": probe.keyfile}
    if keypassword:
        files["ssl_keypassword"] = keypassword
    security = _client(secure, "SSL", **files)
    assert kafka_wire.describe_quorum(secure.listeners["MUTUAL"], security).leader_id == 101


def test_an_unusable_key_is_reported(secure):
    locked = secure.authority.issue("locked", keypassword="pass phrase")
    other = secure.authority.issue("probe-other")
    for keyfile, password in ((locked.keyfile, None), (locked.keyfile, "wrong"), (other.keyfile, None)):
        security = _client(secure, "SSL", ssl_certfile=locked.certfile, ssl_keyfile=keyfile, ssl_keypassword=password)
        with pytest.raises(SecurityError, match=r"client\.ssl_certfile: .* do not match"):
            kafka_wire.api_versions(secure.listeners["MUTUAL"], security)


def test_a_missing_client_certificate_is_reported(secure):
    with pytest.raises(kafka_wire.TlsError, match=r"requires a client certificate|requires one and none was sent"):
        kafka_wire.api_versions(secure.listeners["MUTUAL"], _client(secure, "SSL"))


def test_a_client_certificate_of_another_ca_is_reported(secure):
    stranger = secure.other_authority.issue("probe")
    security = _client(secure, "SSL", ssl_certfile=stranger.certfile, ssl_keyfile=stranger.keyfile)
    with pytest.raises(kafka_wire.TlsError, match=r"did not accept the client certificate|does not trust the CA"):
        kafka_wire.api_versions(secure.listeners["MUTUAL"], security)


def test_a_server_certificate_of_another_ca_is_reported(secure):
    security = _client(secure, "SSL", ssl_cafile=secure.other_authority.cafile)
    with pytest.raises(kafka_wire.TlsError, match="the server's certificate is not valid"):
        kafka_wire.api_versions(secure.listeners["TLS"], security)
    unchecked = _client(secure, "SSL", ssl_cafile=secure.other_authority.cafile, ssl_verify=False)
    assert kafka_wire.api_versions(secure.listeners["TLS"], unchecked).api_keys


def test_a_server_certificate_for_another_host_is_reported(secure):
    _host, port = secure.listeners["TLS"]
    elsewhere = HostPort("localhost", port)
    with pytest.raises(kafka_wire.TlsError, match=r"not valid: .*'localhost'"):
        kafka_wire.api_versions(elsewhere, _client(secure, "SSL"))
    assert kafka_wire.api_versions(elsewhere, _client(secure, "SSL", ssl_check_hostname=False)).api_keys


@pytest.mark.parametrize(
    ("listener", "protocol", "error", "message"),
    [
        ("INSIDE", "SSL", kafka_wire.WireError, "TLS"),
        ("TLS", "PLAINTEXT", kafka_wire.ProtocolError, "the listener uses TLS"),
    ],
)
def test_a_wrong_protocol_is_reported_quickly(secure, listener, protocol, error, message):
    start = time.monotonic()
    with pytest.raises(error, match=message):
        kafka_wire.api_versions(secure.listeners[listener], _client(secure, protocol), timeout=3)
    assert time.monotonic() - start < 4


def test_the_broker_closes_a_connection_without_authentication(secure):
    security = _client(secure, "SSL")
    with pytest.raises(kafka_wire.Unreachable) as caught:
        kafka_wire.describe_quorum(secure.listeners["SASLTLS"], security)
    assert caught.value.reason == "closed" and "DescribeQuorum" in str(caught.value)
