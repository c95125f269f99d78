# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logins by PLAIN, GSSAPI and OAUTHBEARER at a real broker and controller, with a real KDC and a token endpoint."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import pathlib
import socket
import ssl
import threading
import time

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import topics
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zk_rights, zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import (
    Security,
    SecurityError,
    ZkSecurity,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import kafka_wire, oauth_token
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.integration import kdc, servers
from tests.integration.certificates import Authority
from tests.system.testbed import token_server

HOST = "127.0.0.1"
SECRET = "a secret & more"
_LOGIN = "org.apache.kafka.common.security"
PLAIN = f'{_LOGIN}.plain.PlainLoginModule required user_tool="{SECRET}" user_node="{SECRET}"'
VALIDATOR = f"{_LOGIN}.oauthbearer.OAuthBearerValidatorCallbackHandler"


class World:
    """Servers of one test run, and the options of this tool's logins."""

    def __init__(self, home: pathlib.Path) -> None:
        self.home = home
        self.authority = Authority(home / "tls")
        self.certificate = self.authority.issue("server", f"IP:{HOST}")
        self.tls = {"security_protocol": "SASL_SSL", "ssl_cafile": self.authority.cafile}

    def client(self, **options: object) -> Security:
        return Security.from_options({**self.tls, **options})

    def plain(self, password: str = SECRET) -> Security:
        return self.client(sasl_mechanism="PLAIN", sasl_username="tool", sasl_password=password)

    def kerberos(self, **options: object) -> Security:
        given = {"sasl_kerberos_keytab": self.keytab, "sasl_kerberos_principal": f"tool@{kdc.REALM}", **options}
        return self.client(sasl_mechanism="GSSAPI", **given)

    def oauth(self, **options: object) -> Security:
        given = {"token_endpoint_url": self.url, "client_id": "tool", "client_secret": SECRET}
        given = {**given, "cafile": self.authority.cafile, **options}
        return self.client(
            sasl_mechanism="OAUTHBEARER", **{f"sasl_oauthbearer_{key}": value for key, value in given.items()}
        )

    def token(self, **claims: object) -> str:
        made = token_server.claims_of("tool", self.tokens.config, time.time())
        return token_server.signed({**made, **claims}, self.tokens.config["key"])


@pytest.fixture(scope="module")
def world():
    """A controller and a broker, each with a listener for the three mechanisms."""
    earlier = os.environ.get("KRB5_CONFIG")
    with servers.workdir("sasl_logins") as home, kdc.running(home / "kdc") as running:
        made = World(home)
        os.environ["KRB5_CONFIG"] = str(running.config)
        made.kdc, made.keytab = running, running.keytab("tool")
        made.tokens = _token_server(made)
        made.url = f"https://{HOST}:{made.tokens.server_address[1]}/token"
        threading.Thread(target=made.tokens.serve_forever, daemon=True).start()
        try:
            with _servers(made):
                yield made
        finally:
            made.tokens.shutdown()
            if earlier is None:
                os.environ.pop("KRB5_CONFIG")
            else:
                os.environ["KRB5_CONFIG"] = earlier


def _token_server(made: World) -> token_server.Server:
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_numbers()
    public = private.public_numbers
    server = token_server.Server(
        {
            "address": HOST,
            "port": 0,
            "certfile": made.certificate.certfile,
            "keyfile": made.certificate.keyfile,
            "clients": {"tool": SECRET, "stranger": SECRET},
            "key": {"n": str(public.n), "e": str(public.e), "d": str(private.d)},
            "issuer": "https://login.example",
            "audience": "kafka",
            "lifetime_s": 300,
        }
    )
    (made.home / "jwks.json").write_text(token_server.key_set(server.config["key"]))
    return server


def _servers(made: World):
    principal = f"kafka/{HOST}"
    service = made.kdc.keytab(principal)
    krb5 = f'useKeyTab=true storeKey=true keyTab="{service}" principal="{principal}@{kdc.REALM}"'

    def listener(name: str) -> dict[str, str]:
        prefix = f"listener.name.{name}"
        return {
            f"{prefix}.sasl.enabled.mechanisms": "PLAIN,GSSAPI,OAUTHBEARER",
            f"{prefix}.plain.sasl.jaas.config": f'{PLAIN} username="node" password="{SECRET}";',
            f"{prefix}.gssapi.sasl.jaas.config": f"com.sun.security.auth.module.Krb5LoginModule required {krb5};",
            f"{prefix}.oauthbearer.sasl.jaas.config": f"{_LOGIN}.oauthbearer.OAuthBearerLoginModule required;",
            f"{prefix}.oauthbearer.sasl.server.callback.handler.class": VALIDATOR,
            f"{prefix}.sasl.oauthbearer.jwks.endpoint.url": (made.home / "jwks.json").as_uri(),
            f"{prefix}.sasl.oauthbearer.expected.audience": "kafka",
            f"{prefix}.sasl.oauthbearer.expected.issuer": "https://login.example",
        }

    both = {
        **made.authority.kafka_keys(made.certificate),
        **listener("controller"),
        "listener.security.protocol.map": "CONTROLLER:SASL_SSL,INSIDE:PLAINTEXT,LOGIN:SASL_SSL",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "sasl.kerberos.service.name": "kafka",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:node;User:tool",
    }
    jvm = (f"-Djava.security.krb5.conf={made.kdc.config}",)
    address = HostPort(HOST, servers.free_port())
    voters = f"101@{address}"
    names = {name: f"{HOST}:{servers.free_port()}" for name in ("INSIDE", "LOGIN")}

    @contextlib.contextmanager
    def run():
        with servers.kraft_controller(made.home, 101, address, voters, both, jvm) as made.controller:
            own = {**both, **listener("login"), "inter.broker.listener.name": "INSIDE"}
            with servers.kraft_broker(made.home, 1, voters, own, names, jvm) as made.broker:
                admin = AdminClient({"bootstrap.servers": names["INSIDE"]})
                servers.wait_for(lambda: servers.knows_controller(admin, 1), 60, "a broker that knows the controller")
                servers.create_topics(admin, [NewTopic("seen", 3, 1, config={"min.insync.replicas": "1"})])
                servers.wait_for(lambda: servers.in_sync(admin, "seen", 1), 30, "the topic")
                yield made

    return run()


LOGINS = {
    "PLAIN": lambda world: world.plain(),
    "GSSAPI": lambda world: world.kerberos(),
    "OAUTHBEARER": lambda world: world.oauth(),
}


@pytest.mark.parametrize("mechanism", LOGINS)
def test_the_quorum_is_read_from_a_controller_and_a_broker(world, mechanism):
    security = LOGINS[mechanism](world)
    for address in (world.controller.address, world.broker.listeners["LOGIN"]):
        assert kafka_wire.describe_quorum(address, security, 20).leader_id == 101


@pytest.mark.parametrize("mechanism", ["GSSAPI", "OAUTHBEARER"])
def test_topics_and_settings_are_read_as_without_a_login(world, mechanism):
    security, bootstrap = LOGINS[mechanism](world), [world.broker.listeners["LOGIN"]]
    inside, open_ = [world.broker.listeners["INSIDE"]], Security()
    read = topics.read(bootstrap, security, 20)
    wanted = topics.read(inside, open_, 20)
    assert read["partitions"] == wanted["partitions"] and len(read["partitions"]["seen"]) == 3
    assert read["cluster_id"] == wanted["cluster_id"] == topics.read_cluster_id(bootstrap, security, 20)
    assert read["brokers"] == {"1": str(bootstrap[0])}
    assert topics.read_min_isr(bootstrap, security, ["seen", "gone"], 20) == {"seen": 1}
    assert topics.read_rights(bootstrap, security, ["seen"], 20) == topics.read_rights(inside, open_, ["seen"], 20)
    assert topics.read_broker_configs(bootstrap, security, 1, 20) == topics.read_broker_configs(inside, open_, 1, 20)
    assert topics.read_from_broker(bootstrap[0], security, 20) == wanted["partitions"]


def test_the_default_credential_cache_and_what_is_wrong_with_a_ticket(world, monkeypatch):
    address = world.broker.listeners["LOGIN"]

    def refused(**options: object) -> str:
        with pytest.raises(kafka_wire.AuthenticationFailed) as caught:
            kafka_wire.describe_quorum(address, world.kerberos(**options), 20)
        return str(caught.value)

    assert "GSSAPI login at zoo/127.0.0.1 failed: Server zoo/127.0.0.1@" in refused(sasl_kerberos_service_name="zoo")
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{world.home}/nothing")
    without = {"sasl_kerberos_keytab": None, "sasl_kerberos_principal": None}
    assert "No Kerberos credentials available" in refused(**without)
    assert "GSSAPI login at kafka/127.0.0.1 failed" in refused(sasl_kerberos_principal="other")
    with pytest.raises(SecurityError, match=r"client\.sasl_kerberos_keytab: /absent: No such file"):
        kafka_wire.describe_quorum(address, world.kerberos(sasl_kerberos_keytab="/absent"), 20)


def test_a_kdc_that_does_not_answer_ends_in_time(world):
    world.kdc.stop()
    try:
        began = time.monotonic()
        with pytest.raises(kafka_wire.WireError) as caught:
            kafka_wire.describe_quorum(world.broker.listeners["LOGIN"], world.kerberos(), 3)
        assert time.monotonic() - began < 5, caught.value
        assert "QS-CONNECT" in str(caught.value)
        read = topics.read([world.broker.listeners["LOGIN"]], world.kerberos(), 3)
        assert (not read["reached"] and "GSSAPI" in read["error"]) or "KDC" in read["error"]
    finally:
        world.kdc.start()


def test_a_wrong_password_of_plain_is_not_shown(world):
    with pytest.raises(kafka_wire.AuthenticationFailed, match="'tool' failed") as caught:
        kafka_wire.describe_quorum(world.controller.address, world.plain("not it"), 20)
    assert "not it" not in str(caught.value)


def test_a_token_is_kept_until_it_must_be_renewed(world, monkeypatch):
    address = world.controller.address
    oauth_token._KEPT.clear()
    before = world.tokens.issued.get("tool", 0)
    for _login in range(3):
        kafka_wire.describe_quorum(address, world.oauth(), 20)
    assert world.tokens.issued["tool"] == before + 1
    later = time.time() + 0.81 * world.tokens.config["lifetime_s"]
    monkeypatch.setattr(oauth_token.time, "time", lambda: later)
    kafka_wire.describe_quorum(address, world.oauth(), 20)
    assert world.tokens.issued["tool"] == before + 2


def test_what_is_wrong_with_a_token_is_said_without_the_token(world):
    address = world.controller.address

    def refused(**options: object) -> str:
        with pytest.raises(kafka_wire.AuthenticationFailed) as caught:
            kafka_wire.describe_quorum(address, world.oauth(**options), 20)
        return str(caught.value)

    wrong = refused(client_secret="not the secret")
    assert "it answered 401 invalid_client: unknown client or wrong secret" in wrong and "not the secret" not in wrong
    assert "it answered 307" in refused(token_endpoint_url=world.url.replace("/token", "/elsewhere"))
    other = Authority(world.home / "other", "other")
    assert "its certificate is not valid" in refused(cafile=other.cafile)
    closed = f"https://{HOST}:{servers.free_port()}/token"
    assert "Connection refused" in refused(token_endpoint_url=closed)
    with pytest.raises(kafka_wire.KafkaError) as caught:
        kafka_wire.describe_quorum(address, world.oauth(client_id="stranger"), 20)
    assert caught.value.name == "CLUSTER_AUTHORIZATION_FAILED"


def test_a_token_endpoint_that_never_ends_its_answer_is_given_up(world):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(world.certificate.certfile, world.certificate.keyfile)
    ended = threading.Event()
    with context.wrap_socket(socket.create_server((HOST, 0)), server_side=True) as listening:

        def drip() -> None:
            with contextlib.suppress(OSError):
                connection = listening.accept()[0]
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                while not ended.wait(0.2):
                    connection.sendall(b" ")

        threading.Thread(target=drip, daemon=True).start()
        url = f"https://{HOST}:{listening.getsockname()[1]}/token"
        began = time.monotonic()
        with pytest.raises(kafka_wire.AuthenticationFailed, match="no whole answer within"):
            kafka_wire.describe_quorum(world.controller.address, world.oauth(token_endpoint_url=url), 3)
        assert time.monotonic() - began < 6
        ended.set()


def test_a_token_from_a_file_is_read_for_each_login(world):
    address, file = world.controller.address, world.home / "token"
    none = {"token_endpoint_url": None, "client_id": None, "client_secret": None, "cafile": None}
    security = world.oauth(**none, token_file=str(file))

    def refused() -> str:
        with pytest.raises((kafka_wire.AuthenticationFailed, SecurityError)) as caught:
            kafka_wire.describe_quorum(address, security, 20)
        return str(caught.value)

    assert "No such file" in refused()
    file.write_text(world.token() + "\n")
    assert kafka_wire.describe_quorum(address, security, 20).leader_id == 101
    assert topics.read([world.broker.listeners["LOGIN"]], security, 20)["reached"]
    file.write_text(world.token(exp=int(time.time()) - 5))
    assert "the token expired 5 s ago" in refused() or "the token expired 6 s ago" in refused()
    for claims in ({"aud": "elsewhere"}, {"iss": "https://other.example"}):
        file.write_text(world.token(**claims))
        assert "invalid_token" in refused()
    head, _claims, signature = world.token().split(".")
    forged = base64.urlsafe_b64encode(
        json.dumps({**token_server.claims_of("node", world.tokens.config, time.time())}).encode()
    )
    file.write_text(f"{head}.{forged.decode().rstrip('=')}.{signature}")
    assert "invalid_token" in refused()
    file.write_text("two words")
    assert "its content is no token" in refused()


def test_librdkafka_reports_a_token_that_is_refused(world):
    with pytest.raises(KafkaException):
        topics.read_min_isr([world.broker.listeners["LOGIN"]], world.oauth(client_secret="no"), ["seen"], 5)


def test_kazoo_logs_in_at_zookeeper_with_a_keytab(world):
    principal = f"zookeeper/{HOST}"
    keytab = world.kdc.keytab(principal)
    jaas = world.home / "zookeeper.jaas"
    jaas.write_text(
        "Server { com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
        f'keyTab="{keytab}" principal="{principal}@{kdc.REALM}"; }};\n'
    )
    settings = {"authProvider.sasl": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"}
    settings.update({"kerberos.removeHostFromPrincipal": "true", "kerberos.removeRealmFromPrincipal": "true"})
    jvm = (f"-Djava.security.krb5.conf={world.kdc.config}", f"-Djava.security.auth.login.config={jaas}")
    options = {"sasl_mechanism": "GSSAPI", "sasl_kerberos_principal": f"tool@{kdc.REALM}"}
    with servers.zookeeper(world.home, settings=settings, jvm=jvm) as server:
        security = ZkSecurity.from_options({**options, "sasl_kerberos_keytab": world.keytab})
        with zookeeper.connect(server.connect, 20, **security.kazoo()) as client:
            assert ["sasl", "tool"] in zk_rights.collect(client, security, [], 10)["identities"]
        other = ZkSecurity.from_options(
            {**options, "sasl_kerberos_keytab": world.keytab, "sasl_kerberos_service_name": "other"}
        )
        raised = pytest.raises(zookeeper.ZooKeeperError, match=r"GSSAPI login at other/127\.0\.0\.1 failed: Server ")
        with raised, zookeeper.connect(server.connect, 5, **other.kazoo()):
            pass
