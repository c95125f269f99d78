# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A broker on ZooKeeper with every kind of metadata that the initial copy covers, and the controller that copies it."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import pathlib
import subprocess
from typing import Iterable, Iterator, Mapping, NamedTuple, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC
from cryptography.hazmat.primitives.padding import PKCS7

from tests.integration import servers

TOOLS = pathlib.Path(__file__).with_name("KafkaTools.java")
CHROOT = "/prod/kafka"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_MAP = "listener.security.protocol.map"
SETTINGS = {
    _MAP: "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl.plain.sasl.jaas.config": f'{_PLAIN} username="admin" password="x" user_admin="x";',
    "delegation.token.secret.key": "tokensecret",
    "password.encoder.secret": "encodersecret",
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS;User:admin",
    "allow.everyone.if.no.acl.found": "false",
    "broker.rack": "rack-1",
    "zookeeper.session.timeout.ms": "4000",
}


def seed(home: pathlib.Path, broker: servers.KafkaServer) -> None:
    """Create every kind of metadata with Kafka's tools."""
    at = ("--bootstrap-server", str(broker.listeners["PLAINTEXT"]))
    client = home / "client.properties"
    client.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={_PLAIN} username="admin" password="x";\n'
    )
    as_admin = ("--bootstrap-server", str(broker.listeners["SASL"]), "--command-config", str(client))

    def topic(name, *more):
        return ("org.apache.kafka.tools.TopicCommand", *at, "--create", "--topic", name, *more)

    def alter(kind, name, *configs):
        entity = ["--entity-default"] if name is None else ["--entity-name", name]
        return ("kafka.admin.ConfigCommand", *at, "--alter", "--entity-type", kind, *entity, "--add-config", *configs)

    def acl(*arguments):
        return ("kafka.admin.AclCommand", *at, "--add", *arguments)

    jobs = [
        topic("orders", "--partitions", "4", "--config", "retention.ms=9000", "--config", "cleanup.policy=compact"),
        topic("a.b_c", "--partitions", "1"),
        topic("plain", "--partitions", "2", "--config", "min.insync.replicas=1"),
        alter("brokers", "1", "log.cleaner.threads=2,listener.name.external.ssl.key.password=topsecret"),
        alter("brokers", None, "message.max.bytes=2000000"),
        alter("users", "al ice@x*~", "producer_byte_rate=1024,consumer_byte_rate=2048"),
        alter("users", "bob", "SCRAM-SHA-256=[iterations=4096,password=b],SCRAM-SHA-512=[iterations=8192,password=b]"),
        alter("users", None, "request_percentage=50.5"),
        alter("clients", "app/1", "producer_byte_rate=10"),
        alter("clients", None, "consumer_byte_rate=11"),
        alter("ips", "127.0.0.9", "connection_creation_rate=5"),
        alter("ips", None, "connection_creation_rate=6"),
        (
            *("kafka.admin.ConfigCommand", *at, "--alter", "--entity-type", "users", "--entity-name", "al ice@x*~"),
            *("--entity-type", "clients", "--entity-default", "--add-config", "producer_byte_rate=7"),
        ),
        acl("--allow-principal", "User:bob", "--operation", "Read", "--operation", "Write", "--topic", "orders"),
        acl(
            *("--deny-principal", "User:CN=eve,O=x", "--operation", "All", "--deny-host", "10.0.0.1"),
            *("--group", "g-", "--resource-pattern-type", "prefixed"),
        ),
        acl("--allow-principal", "User:bob", "--operation", "DescribeConfigs", "--cluster"),
        acl("--allow-principal", "User:bob", "--operation", "Write", "--transactional-id", "*"),
        (
            "org.apache.kafka.tools.DelegationTokenCommand",
            *(*as_admin, "--create", "--max-life-time-period", "86400000", "--renewer-principal", "User:bob x"),
        ),
    ]
    # an idempotent producer allocates a block of producer ids
    jobs.append(("org.apache.kafka.tools.ProducerPerformance", *producer(broker)))
    tools(jobs)


def tools(commands: Iterable[Sequence[str]]) -> None:
    """Run Kafka's command line tools, in one JVM."""
    done = subprocess.run(
        [*servers.java(), str(TOOLS)],
        input="".join("\t".join(command) + "\n" for command in commands),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"


def encoded(password: str, secret: str = SETTINGS["password.encoder.secret"]) -> str:
    """Return a password as a broker encodes it (EncryptingPasswordEncoder with its defaults)."""
    salt, vector = os.urandom(32), os.urandom(16)
    key = PBKDF2HMAC(hashes.SHA512(), 16, salt, 4096).derive(secret.encode())
    padder, cipher = PKCS7(128).padder(), Cipher(algorithms.AES(key), modes.CBC(vector)).encryptor()
    encrypted = cipher.update(padder.update(password.encode()) + padder.finalize()) + cipher.finalize()
    fields = {
        "keyFactoryAlgorithm": "PBKDF2WithHmacSHA512",
        "cipherAlgorithm": "AES/CBC/PKCS5Padding",
        "keyLength": 128,
        "iterations": 4096,
        "passwordLength": len(password),
        **{
            name: base64.b64encode(raw).decode()
            for name, raw in (("salt", salt), ("initializationVector", vector), ("encryptedPassword", encrypted))
        },
    }
    return ",".join(f"{name}:{value}" for name, value in fields.items())


def producer(broker: servers.KafkaServer) -> tuple:
    """Return the arguments of ProducerPerformance with which an idempotent producer allocates a block of ids."""
    properties = (f"bootstrap.servers={broker.listeners['PLAINTEXT']}", "enable.idempotence=true", "acks=all")
    return (
        *("--topic", "orders", "--num-records", "10", "--record-size", "10", "--throughput", "-1"),
        *("--producer-props", *properties),
    )


@contextlib.contextmanager
def broker(home: pathlib.Path, zk, settings: Mapping[str, str]) -> Iterator[servers.KafkaServer]:
    """Run broker 1 on ZooKeeper below CHROOT, with the listeners of its map, and seed it. `settings`: SETTINGS or a
    variation, whose map has PLAINTEXT and SASL."""
    # the controller is formatted with the same cluster id
    with zookeeper.connect(zk.connect) as root:
        identity = json.dumps({"version": "1", "id": servers.CLUSTER_ID}).encode()
        root.create(CHROOT + znodes.CLUSTER_ID, identity, makepath=True)
    names = [pair.partition(":")[0] for pair in settings[_MAP].split(",")]
    listeners = {name: f"127.0.0.1:{servers.free_port()}" for name in names if name != "CONTROLLER"}
    with servers.zk_broker(home, 1, zk.connect + CHROOT, settings, listeners) as server:
        seed(home, server)
        yield server


class Migrating(NamedTuple):
    """The controller of a migration, and its stopped broker."""

    controller: servers.KafkaServer
    broker: servers.KafkaServer
    voters: str

    def join(self) -> None:
        """Start the broker in migration mode: the initial copy begins."""
        self.broker.configure(
            {
                **servers.controller_keys(self.voters),
                _MAP: self.broker.properties[_MAP],
                "zookeeper.metadata.migration.enable": "true",
            }
        )
        self.broker.start()


@contextlib.contextmanager
def migration(home: pathlib.Path, zk, stopped: servers.KafkaServer) -> Iterator[Migrating]:
    """Run the controller, with the settings that it shares with the broker."""
    address = HostPort("127.0.0.1", servers.free_port())
    voters = f"3000@{address}"
    same = ("password.encoder.secret", _MAP, "super.users", "delegation.token.secret.key")
    settings = {
        **servers.migration_keys(zk.connect + CHROOT),
        **{key: SETTINGS[key] for key in same},
        "inter.broker.listener.name": "PLAINTEXT",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    }
    with servers.kraft_controller(home, 3000, address, voters, settings) as controller:
        yield Migrating(controller, stopped, voters)
