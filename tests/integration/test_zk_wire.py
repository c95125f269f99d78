# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ZooKeeper client against real servers: chroot, digest, TLS, IPv6, a member without quorum, a lost server."""

from __future__ import annotations

import json
import time

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import own_zk_server, own_zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import SecurityError, ZkSecurity
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import zk_wire
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl

from tests.integration import servers
from tests.integration.certificates import Authority
from tests.integration.java_stores import PASSWORD, Stores

pytestmark = pytest.mark.real

CHROOT = "/kafka/prod"


@pytest.fixture(scope="module")
def zookeeper():
    """A ZooKeeper server with a plain port, a port for mutual TLS and znodes under CHROOT; and one on [::1]."""
    with servers.workdir("zk_wire") as home:
        authority = Authority(home / "tls")
        tls = {
            **authority.zookeeper_keys(authority.issue("server", "IP:127.0.0.1"), servers.free_port()),
            "4lw.commands.whitelist": "srvr,mntr",
        }
        six = servers.zookeeper(home, "zookeeper-six", host="::1")
        with servers.zookeeper(home, settings=tls) as server, six as server_six:
            server.authority = authority
            server.six = server_six
            _seed(server.connect)
            yield server


def _seed(connect):
    client = KazooClient(connect, auth_data=[("digest", "kafka:secret")])
    client.start(10)
    try:
        controller = json.dumps({"version": 2, "brokerid": 3}).encode()
        client.create(f"{CHROOT}/controller", controller, makepath=True)
        client.create(f"{CHROOT}/empty", None)
        client.create(f"{CHROOT}/large", b"x" * 900_000)
        client.create(f"{CHROOT}/secret", b"hidden", acl=[make_digest_acl("kafka", "secret", all=True)])
        for number in range(2000):
            client.create(f"{CHROOT}/many/ids-{number:05}", b"", makepath=True)
        client.set(f"{CHROOT}/controller", controller)
    finally:
        client.stop()
        client.close()


def test_reads_below_the_chroot_agree_with_kazoo(zookeeper):
    client = KazooClient(zookeeper.connect + CHROOT)
    client.start(10)
    try:
        with zk_wire.ZkConnection(zookeeper.connect + CHROOT) as connection:
            for path in ("/controller", "/empty", "/large", "/many"):
                data, stat = client.get(path)
                assert connection.get(path) == (data or b"", tuple(stat))
                assert connection.exists(path) == tuple(stat)
            assert connection.children("/many") == sorted(client.get_children("/many"))
            assert connection.children("/") == ["controller", "empty", "large", "many", "secret"]
            assert connection.children("/empty") == []
            assert connection.exists("/absent") is None
            for read in (connection.get, connection.children):
                with pytest.raises(zk_wire.NoNode, match=f"{CHROOT}/absent: NONODE"):
                    read("/absent")
    finally:
        client.stop()
        client.close()


def test_a_missing_chroot_is_reported_as_no_node(zookeeper):
    connect = zookeeper.connect + "/elsewhere"
    with zk_wire.ZkConnection(connect) as connection, pytest.raises(zk_wire.NoNode, match="/elsewhere: NONODE"):
        connection.children("/")


def test_read_znodes_reads_the_latest_write(zookeeper):
    znodes = zk_wire.read_znodes(zookeeper.connect + CHROOT, ["/controller", "/absent"])
    assert znodes["/absent"] is None
    data, stat = znodes["/controller"]
    assert json.loads(data)["brokerid"] == 3 and stat.version == 1 and stat.ephemeral_owner == 0


def test_digest_authenticates(zookeeper):
    connect = zookeeper.connect + CHROOT
    with zk_wire.ZkConnection(connect) as connection, pytest.raises(zk_wire.NoAuth, match=f"{CHROOT}/secret: NOAUTH"):
        connection.get("/secret")
    wrong = ZkSecurity.from_options({"auth": "kafka:other"})
    with zk_wire.ZkConnection(connect, wrong) as connection, pytest.raises(zk_wire.NoAuth):
        connection.get("/secret")
    right = ZkSecurity.from_options({"auth": "kafka:secret"})
    with zk_wire.ZkConnection(connect, right) as connection:
        assert connection.get("/secret")[0] == b"hidden"


def test_sasl_is_rejected_before_connecting(zookeeper):
    with pytest.raises(
        SecurityError, match=r"zookeeper_client\.sasl_mechanism: the reader on the brokers does not support GSSAPI"
    ):
        zk_wire.ZkConnection(zookeeper.connect, ZkSecurity.from_options({"sasl_mechanism": "GSSAPI"}))


def test_mutual_tls_authenticates(zookeeper):
    probe = zookeeper.authority.issue("probe")
    ca = {"use_tls": True, "cafile": zookeeper.authority.cafile}
    security = ZkSecurity.from_options({**ca, "certfile": probe.certfile, "keyfile": probe.keyfile})
    connect = f"{zookeeper.tls_address}{CHROOT}"
    with zk_wire.ZkConnection(connect, security) as connection:
        assert connection.get("/large")[0] == b"x" * 900_000
    assert "Mode: standalone" in zk_wire.four_letter(zookeeper.tls_address, "srvr", context=security.ssl_context())
    client = KazooClient(connect, **security.kazoo())
    client.start(10)
    try:
        assert client.exists("/controller")
    finally:
        client.stop()
        client.close()
    with pytest.raises(zk_wire.ConnectionLoss, match="client certificate"):
        zk_wire.ZkConnection(connect, ZkSecurity.from_options(ca))


def test_a_brokers_host_reads_zookeeper_with_stores_of_java(zookeeper, tmp_path):
    """The key store is JKS or PKCS12, as Kafka's properties name it; the standard library alone reads it."""
    stores = Stores(tmp_path)
    stores.authority, stores.own = zookeeper.authority, zookeeper.authority.issue("broker")
    trust = {"JKS": stores.trust_store("trust.jks", "JKS"), "PKCS12": stores.trust_store("trust.p12", "PKCS12")}
    own = {"JKS": stores.converted("own.jks", "JKS"), "PKCS12": stores.converted("own.p12", "PKCS12")}
    for kind in ("JKS", "PKCS12"):
        values = {
            "zookeeper.connect": f"{zookeeper.tls_address}{CHROOT}",
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.ssl.keystore.location": own[kind],
            "zookeeper.ssl.keystore.password": PASSWORD,
            "zookeeper.ssl.truststore.location": trust[kind],
            "zookeeper.ssl.truststore.password": PASSWORD,
        }
        with zk_wire.ZkConnection(*own_zookeeper.connection(values)) as connection:
            assert json.loads(connection.get("/controller")[0])["brokerid"] == 3
        options = {"cafile": trust[kind], "capassword": PASSWORD, "certfile": own[kind], "keypassword": PASSWORD}
        security = ZkSecurity.from_options({"use_tls": True, **options})
        client = KazooClient(str(zookeeper.tls_address), **security.kazoo())
        client.start(10)
        try:
            assert client.exists(f"{CHROOT}/controller")
        finally:
            client.stop()
            client.close()
        with pytest.raises(SecurityError, match=r"zookeeper\.ssl\.keystore\.location: .*password") as caught:
            zk_wire.ZkConnection(*own_zookeeper.connection({**values, "zookeeper.ssl.keystore.password": "other"}))
        assert "zookeeper.ssl.keystore.password" in str(caught.value) and PASSWORD not in str(caught.value)


def test_a_server_with_a_port_for_tls_alone_is_asked_on_its_host(zookeeper):
    values = own_zk_server.read_values(str(zookeeper.home / "zoo.cfg"))
    of_tls = {key: value for key, value in values.items() if not key.startswith("clientPort")}
    assert "Mode: standalone" in own_zk_server.ask(of_tls, "srvr", 10)
    assert own_zk_server.read_mode(of_tls) == own_zk_server.read_mode(values) == "standalone"
    with pytest.raises(OSError, match=r"ssl\.keyStore\.location: /absent: No such file"):
        own_zk_server.ask({**of_tls, "ssl.keyStore.location": "/absent"}, "srvr", 10)
    with pytest.raises(KeyError, match="clientPort"):
        own_zk_server.ask({}, "srvr", 10)


def test_a_wrong_protocol_is_reported(zookeeper):
    with pytest.raises(zk_wire.ConnectionLoss, match=f"{zookeeper.tls_address}: .* the port expects TLS"):
        zk_wire.ZkConnection(str(zookeeper.tls_address), timeout=3)
    with pytest.raises(zk_wire.ConnectionLoss, match=f"{zookeeper.address}: .* it may not use TLS"):
        zk_wire.ZkConnection(zookeeper.connect, ZkSecurity.from_options({"use_tls": True}), timeout=3)


def test_ipv6_addresses_work(zookeeper):
    assert zookeeper.six.connect.startswith("[::1]:")
    with zk_wire.ZkConnection(zookeeper.six.connect) as connection:
        assert connection.children("/") == ["zookeeper"]
    assert "Mode: standalone" in zk_wire.four_letter(zookeeper.six.address, "srvr")


def test_four_letter_words_are_read_to_their_end(zookeeper):
    response = zk_wire.four_letter(zookeeper.address, "mntr")
    assert "zk_server_state\tstandalone" in response and response.endswith("\n")
    with pytest.raises(zk_wire.ProtocolError, match=r"cons is not in the server's 4lw\.commands\.whitelist"):
        zk_wire.four_letter(zookeeper.address, "cons")


def test_sessions_are_closed(zookeeper):
    def sessions():
        response = zk_wire.four_letter(zookeeper.address, "mntr")
        return dict(line.split("\t", 1) for line in response.splitlines() if "\t" in line)["zk_global_sessions"]

    before = sessions()
    with zk_wire.ZkConnection(zookeeper.connect) as connection:
        connection.sync()
        assert int(sessions()) == int(before) + 1
    assert sessions() == before


def test_servers_are_tried_in_order_until_one_serves(zookeeper):
    dead = HostPort("127.0.0.1", servers.free_port())
    with zk_wire.ZkConnection(f"{dead},nowhere.invalid,{zookeeper.connect}{CHROOT}") as connection:
        assert connection.address == zookeeper.address and connection.exists("/controller")
    with pytest.raises(zk_wire.ConnectionLoss) as caught:
        zk_wire.ZkConnection(f"{dead},nowhere.invalid{CHROOT}")
    assert [failure.reason for failure in caught.value.failures] == ["refused", "dns"]
    assert str(dead) in str(caught.value) and "nowhere.invalid:2181" in str(caught.value)


def test_a_member_without_quorum_and_a_lost_quorum_are_reported():
    with servers.workdir("zk_wire_quorum") as home:
        ports = [(servers.free_port(), servers.free_port()) for dummy in range(3)]
        lines = {f"server.{n}": f"127.0.0.1:{quorum}:{vote}" for n, (quorum, vote) in enumerate(ports, 1)}
        first = servers.zookeeper(home, "one", {**lines, "myid": "1"}, ready=lambda: True)
        second = servers.zookeeper(home, "two", {**lines, "myid": "2"}, ready=lambda: True)
        with first as server:
            servers.wait_for(lambda: _not_serving(server.address), 20, "a server without quorum")
            assert isinstance(_not_serving(server.address), zk_wire.NotServing)
            start = time.monotonic()
            with pytest.raises(zk_wire.ConnectionLoss, match="it has no quorum") as caught:
                zk_wire.ZkConnection(server.connect, timeout=3)
            assert time.monotonic() - start < 3
            assert isinstance(caught.value.failures[0], zk_wire.NotServing)
            with second as two:
                connection = servers.wait_for(lambda: _session_or_none(server.connect), 30, "a quorum")
                connection.sync()
                two.kill()
                servers.wait_for(lambda: _not_serving(server.address), 20, "the loss of the quorum")
                with pytest.raises(zk_wire.ConnectionLoss, match="the session was lost"):
                    connection.get("/zookeeper")
                connection.close()


def _session_or_none(connect):
    try:
        return zk_wire.ZkConnection(connect)
    except zk_wire.ConnectionLoss:
        return None


def _not_serving(address):
    """Return NotServing if the server runs without quorum, None if it is down or serves."""
    try:
        zk_wire.four_letter(address, "srvr")
    except zk_wire.NotServing as error:
        return error
    except zk_wire.Unreachable:
        return None
    return None
