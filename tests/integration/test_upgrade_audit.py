# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook `upgrade_audit` against real servers: what is planted is found, what is found stops Kafka 4.4 indeed,
and once it is corrected that starts."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import subprocess

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.admin.cluster_admin import ClusterAdmin
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import admin_requests
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import upgrade_facts
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from confluent_kafka.admin import NewTopic

from tests.integration import admin_bed, servers
from tests.integration.test_reassign_playbook import Runs

pytestmark = pytest.mark.real

NEWEST = "4.4.0"
URL = "https://idp.example/jwks"
AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
CLASSES = {
    "listener.name.login.oauthbearer.sasl.server.callback.handler.class": (
        "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler"
    ),
    "listener.name.login.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": URL,
}
MIN_ISR = "min.insync.replicas"


def jmx(port):
    """Return the options of Kafka's own scripts for JMX_PORT (kafka-run-class.sh)."""
    return (
        "-Dcom.sun.management.jmxremote",
        "-Dcom.sun.management.jmxremote.authenticate=false",
        "-Dcom.sun.management.jmxremote.ssl=false",
        f"-Dcom.sun.management.jmxremote.port={port}",
        f"-Dcom.sun.management.jmxremote.rmi.port={port}",
        "-Djava.rmi.server.hostname=127.0.0.1",
    )


def send(address, api_key, version, body, client_id=b"old-app"):
    """Send a request with a header of version 1, as clients before Kafka 2.4 do."""
    with socket.create_connection(address, timeout=10) as sock:
        message = struct.pack(">hhih", api_key, version, 7, len(client_id)) + client_id + body
        sock.sendall(struct.pack(">i", len(message)) + message)
        return sock.recv(1 << 16)


def fetch_of_an_old_client(address):
    assert send(address, 1, 0, struct.pack(">iiii", -1, 100, 1, 0))


def set_configs(broker, changes):
    """Set or delete configs, {(kind, name): {key: value or None}}; as an operator's kafka-configs does."""
    client = Security.from_options(None, "client")
    errors = ClusterAdmin([broker.address], client, 10, None).alter_configs(changes)
    assert errors == {}, errors


def log_requests(broker, level):
    """Set the level of the broker's request logger, as the audit's advice says."""
    tool = [
        *servers.java(),
        *("kafka.admin.ConfigCommand", "--bootstrap-server", str(broker.address), "--alter"),
        *("--entity-type", "broker-loggers", "--entity-name", "1", "--add-config", f"kafka.request.logger={level}"),
    ]
    subprocess.run(tool, check=True, capture_output=True, timeout=60)


def audited(runs, code, **more):
    """Run the playbook; return what it printed and {id: [finding]}."""
    ended, said = runs.run(**more)
    assert ended == code, said
    newest = max(runs.home.rglob("upgrade_audit.json"), key=lambda path: path.stat().st_mtime)
    kept = json.loads(newest.read_text())
    found = {}
    for finding in kept["findings"]:
        found.setdefault(finding["id"], []).append(finding)
    return said, found, kept


@contextlib.contextmanager
def cluster(name):
    """Yield (controller, broker, runs) of Kafka 3.9.2 in KRaft mode, whose broker has a JMX port."""
    with servers.workdir(name) as home, contextlib.ExitStack() as stack:
        address = HostPort("127.0.0.1", servers.free_port())
        voters = f"3000@{address}"
        controller = stack.enter_context(servers.kraft_controller(home, 3000, address, voters))
        broker = stack.enter_context(servers.kraft_broker(home, 1, voters, jvm=jmx(servers.free_port())))
        admin_bed.ready([broker])
        runs = Runs(home, controller, [broker], "upgrade_audit")
        runs.groups["all"]["vars"]["quorumshift_kafka_home"] = str(servers.kafka_libs().parent)
        runs.write()
        yield controller, broker, runs


def test_what_is_planted_is_found_and_once_it_is_corrected_the_newest_release_starts():
    with cluster("upgrade_audit") as (controller, broker, runs):
        admin = servers.admin_client(broker.address)
        servers.create_topics(admin, [NewTopic("small", 1, 1), NewTopic("old", 1, 1)])
        log_requests(broker, "WARN")  # as in Kafka's own log4j file
        fetch_of_an_old_client(broker.address)
        topic, brokers, everywhere = admin_requests.TOPIC, (admin_requests.BROKER, "1"), (admin_requests.BROKER, "")
        set_configs(
            broker,
            {
                (topic, "small"): {"segment.bytes": "1000"},
                (topic, "old"): {"message.timestamp.difference.max.ms": "1000", "message.format.version": "3.0"},
                brokers: {MIN_ISR: "1"},
                everywhere: {"log.message.timestamp.difference.max.ms": "1000"},
            },
        )
        planted = {"log.segment.bytes": "1000", MIN_ISR: "2", "password.encoder.secret": "t0psecret", **CLASSES}
        broker.configure(planted)

        said, found, kept = audited(runs, 2, upgrade_client_window_h=0)
        assert set(found) == {
            *("QS-AUDIT-003", "QS-AUDIT-004", "QS-AUDIT-006", "QS-AUDIT-007", "QS-AUDIT-009"),
            *("QS-AUDIT-013", "QS-AUDIT-014", "QS-AUDIT-015", "QS-AUDIT-016", "QS-AUDIT-019"),
        }, found
        assert kept["targets"] == ["4.0.2", "4.1.2", "4.2.2", "4.3.1", NEWEST]
        seen = {ident: [finding["seen"] for finding in findings] for ident, findings in found.items()}
        assert seen["QS-AUDIT-003"] == [
            "log.segment.bytes of b1 is 1000, and Kafka accepts 1048576 at least: the node does not start"
        ]
        assert {finding["since"] for finding in found["QS-AUDIT-003"]} == {"4.0"}
        assert {finding["since"] for finding in found["QS-AUDIT-007"]} == {"4.1"}, "so the classes of 4.0 say"
        assert "secured.OAuthBearerValidatorCallbackHandler" in seen["QS-AUDIT-004"][0]
        assert URL in seen["QS-AUDIT-006"][0]
        assert "small" in seen["QS-AUDIT-007"][0]
        assert "client id" not in seen["QS-AUDIT-009"][0] and "FETCH v0" in seen["QS-AUDIT-009"][0]
        assert any("password.encoder.secret" in text for text in seen["QS-AUDIT-013"])
        assert "t0psecret" not in said and "t0psecret" not in json.dumps(kept)
        assert len(seen["QS-AUDIT-014"]) == 2 and len(seen["QS-AUDIT-015"]) == 1
        assert any("is 2 in the files of b1" in text for text in seen["QS-AUDIT-019"])
        assert any("dynamic config of broker 1" in text for text in seen["QS-AUDIT-019"])
        assert [client["name"] for client in kept["clients"]["old"]] == ["unknown"]
        assert runs.locks() == {}, "it takes no lock"

        # The finding is true: with the topic alone, every broker of the newest release ends
        libs = servers.libs_of(NEWEST)
        controller.stop(), broker.stop()
        broker.configure({**dict.fromkeys(planted), MIN_ISR: "2"})
        for server in (controller, broker):
            server.use(libs)
        controller.start()
        with pytest.raises(RuntimeError):
            broker.start(seconds=30)
        assert broker.printed("Invalid value 1000 for configuration segment.bytes")
        broker.configure({"log.segment.bytes": "1000"})
        with pytest.raises(RuntimeError):
            broker.start(seconds=30)
        assert broker.printed("Invalid value 1000 for configuration log.segment.bytes")
        broker.configure({"log.segment.bytes": None})

        # Corrected as the findings say, it starts, and the audit has nothing left that blocks
        for server in (controller, broker):
            server.use(servers.kafka_libs())
        controller.start(), broker.start()
        admin_bed.ready([broker])
        set_configs(
            broker,
            {
                (topic, "small"): {"segment.bytes": "1048576"},
                (topic, "old"): {"message.timestamp.difference.max.ms": None, "message.format.version": None},
                brokers: {MIN_ISR: None},
                everywhere: {"log.message.timestamp.difference.max.ms": None, MIN_ISR: "2"},
            },
        )
        said, found, _kept = audited(runs, 0, upgrade_to=NEWEST, upgrade_client_window_h=0)
        assert set(found) == {"QS-AUDIT-016"}, found
        # Without a day of counting it is not known that no old client is left
        said, found, _kept = audited(runs, 2, upgrade_to=NEWEST)
        assert "QS-AUDIT-010" in found and "24 h are wanted" in found["QS-AUDIT-010"][0]["seen"]
        accept = {"QS-AUDIT-010": "the teams said so"}
        said, found, _kept = audited(runs, 0, upgrade_to=NEWEST, upgrade_accept=accept)
        assert "waived: the teams said so" in said
        controller.stop(), broker.stop()
        for server in (controller, broker):
            server.use(libs)
        controller.start(), broker.start()


@pytest.mark.parametrize(
    ("build", "standalone", "newer"),
    [("3.9.2", False, False), ("3.9.2", True, False), ("4.1.1", False, False), (NEWEST, False, True)],
)
def test_a_directory_that_a_newer_kafka_storage_formatted(build, standalone, newer):
    with servers.workdir("upgrade_audit_format") as home:
        file = home / "controller.properties"
        voters = servers.controller_keys("3000@127.0.0.1:1")
        if standalone:
            voters["controller.quorum.bootstrap.servers"] = "127.0.0.1:1"
            del voters["controller.quorum.voters"]
        keys = {**voters, "process.roles": "controller", "node.id": "3000"}
        keys |= {"listeners": "CONTROLLER://127.0.0.1:1", "log.dirs": str(home / "data")}
        file.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
        libs = servers.kafka_libs() if build == "3.9.2" else servers.libs_of(build)
        tool = ["java", "-cp", f"{libs}/*", "kafka.tools.StorageTool", "format"]
        subprocess.run(
            [*tool, f"--cluster-id={servers.CLUSTER_ID}", "-c", str(file), *(["--standalone"] if standalone else [])],
            check=True,
            capture_output=True,
            timeout=120,
        )
        assert upgrade_facts.is_formatted_by_newer(str(home / "data" / "__cluster_metadata-0")) is newer


def test_static_voters_of_a_dynamic_quorum_and_a_broker_that_is_gone(monkeypatch):
    monkeypatch.setenv("QUORUMSHIFT_KAFKA_LIBS", str(servers.libs_of("4.1.1")))
    with servers.workdir("upgrade_audit_quorum") as home, contextlib.ExitStack() as stack:
        address = HostPort("127.0.0.1", servers.free_port())
        voters = f"3000@{address}"
        controller = stack.enter_context(servers.kraft_controller(home, 3000, address, voters))
        broker = stack.enter_context(servers.kraft_broker(home, 1, voters))
        gone = stack.enter_context(servers.kraft_broker(home, 2, voters))
        admin_bed.ready([broker, gone])
        gone.stop()
        tool = ("org.apache.kafka.tools.FeatureCommand", "--bootstrap-server", str(broker.address), "upgrade")
        subprocess.run(
            [*servers.java(), *tool, "--feature", "kraft.version=1"], check=True, capture_output=True, timeout=120
        )
        runs = Runs(home, controller, [broker], "upgrade_audit")
        runs.groups["all"]["vars"]["quorumshift_kafka_home"] = str(servers.libs_of("4.1.1").parent)
        runs.write()
        _said, found, kept = audited(runs, 0)
        assert kept["targets"] == ["4.2.2", "4.3.1", NEWEST]
        assert set(found) == {"QS-AUDIT-016", "QS-AUDIT-020", "QS-AUDIT-021"}, found
        assert "in the files of b1, c1" in found["QS-AUDIT-020"][0]["seen"]
        assert "broker 2 is registered" in found["QS-AUDIT-021"][0]["seen"]


def test_an_upgrade_ends_at_the_audit_and_goes_on_once_nothing_stops_it():
    with cluster("upgrade_audit_first") as (_controller, broker, runs):
        runs.playbook = "upgrade"
        given = {"upgrade_to": NEWEST, "upgrade_home": str(servers.libs_of(NEWEST).parent)}
        code, said = runs.run(**given)
        assert code == 2 and 'ended at "Audit the upgrade to 4.4.0"' in said and "QS-AUDIT-010" in said, said
        given["upgrade_accept"] = {"QS-AUDIT-010": "a test has no old clients"}
        broker.configure({"log.segment.bytes": "1000"})
        code, said = runs.run(**given)
        assert code == 2 and 'ended at "Audit the upgrade to 4.4.0"' in said and "QS-AUDIT-003" in said, said
        broker.configure({"log.segment.bytes": None})
        # Here no service starts Kafka through a link, which the plan then says
        code, said = runs.run(**given)
        assert code == 2 and 'ended at "Plan the upgrade to 4.4.0"' in said, said


@contextlib.contextmanager
def mirror_maker(home, broker):
    """Run Kafka's MirrorMaker 1 from the broker to itself."""
    for name, more in (("consumer", "group.id=mirror\n"), ("producer", "")):
        (home / f"{name}.properties").write_text(f"bootstrap.servers={broker.address}\n{more}")
    options = ("--consumer.config", home / "consumer.properties", "--producer.config", home / "producer.properties")
    with open(home / "mirror.log", "wb") as log:
        process = subprocess.Popen(
            [*servers.java(), "kafka.tools.MirrorMaker", *map(str, options), "--whitelist", "no.topic"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_an_old_client_is_named_by_its_address_once_the_broker_logs_it():
    with cluster("upgrade_audit_log") as (_controller, broker, runs):
        log_requests(broker, "INFO")
        fetch_of_an_old_client(broker.address)
        assert send(broker.address, 2, 0, struct.pack(">ii", -1, 0), b"other-app")
        servers.wait_for(lambda: broker.printed("other-app"), 20, "the request log")
        _said, found, kept = audited(runs, 2, upgrade_to=NEWEST, upgrade_client_window_h=0)
        old = kept["clients"]["old"]
        assert [(client["address"], client["client_ids"], client["requests"]) for client in old] == [
            ("127.0.0.1", ["old-app", "other-app"], {"FETCH": [0], "LIST_OFFSETS": [0]})
        ]
        text = found["QS-AUDIT-009"][0]["seen"]
        assert "at 127.0.0.1" in text and "old-app" in text and "User:ANONYMOUS" in text


def test_a_cluster_in_zookeeper_mode_with_old_messages_and_mirror_maker_1():
    settings = {
        "inter.broker.protocol.version": "2.8",
        "log.message.format.version": "0.10.2",
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:ANONYMOUS",
        "allow.everyone.if.no.acl.found": "true",
    }
    with servers.workdir("upgrade_audit_zk") as home, contextlib.ExitStack() as stack:
        zookeeper = stack.enter_context(servers.zookeeper(home))
        broker = stack.enter_context(servers.zk_broker(home, 1, zookeeper.connect, settings, jvm=()))
        admin = servers.admin_client(broker.address)
        servers.create_topics(admin, [NewTopic("ancient", 1, 1)])
        producer = stack.enter_context(contextlib.closing(_Producer(broker.address)))
        producer.send("ancient")
        stack.enter_context(mirror_maker(home, broker))
        absent = servers.JavaServer(home, "absent", HostPort("127.0.0.1", servers.free_port()), [])
        absent.node_id = 101
        runs = Runs(home, absent, [broker], "upgrade_audit")
        runs.groups["all"]["vars"]["quorumshift_zookeeper_connect"] = zookeeper.connect
        runs.groups["all"]["vars"]["quorumshift_kafka_home"] = str(servers.kafka_libs().parent)
        runs.write()
        _said, found, kept = audited(runs, 2)
        assert {
            *("QS-AUDIT-002", "QS-AUDIT-004", "QS-AUDIT-010"),
            *("QS-AUDIT-013", "QS-AUDIT-017", "QS-AUDIT-018"),
        } <= set(found), found
        assert "QS-AUDIT-011" not in found, "in ZooKeeper mode no controller need run"
        assert AUTHORIZER in found["QS-AUDIT-004"][0]["seen"]
        assert "with v1" in found["QS-AUDIT-017"][0]["seen"] and "ancient-0" in found["QS-AUDIT-017"][0]["seen"]
        assert "consumer.properties" in found["QS-AUDIT-018"][0]["seen"]
        assert "no JMX port" in found["QS-AUDIT-010"][0]["seen"]
        assert kept["targets"][-1] == NEWEST


class _Producer:
    """Sends one message."""

    def __init__(self, address):
        from confluent_kafka import Producer

        self._client = Producer({"bootstrap.servers": str(address)})

    def send(self, topic):
        self._client.produce(topic, b"value")
        assert self._client.flush(30) == 0

    def close(self):
        self._client.flush(10)
