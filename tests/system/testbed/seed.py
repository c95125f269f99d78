# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster's content before the migration: every kind of metadata that must arrive in KRaft."""

from __future__ import annotations

import time
from typing import Any, Callable, Iterable

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kafka import TopicPartition as Partition
from kafka.admin import KafkaAdminClient

from tests.system.testbed import clients, hosts, security
from tests.system.testbed.layout import BROKERS, LAYOUT, TESTBED, Network, TestbedError

Secrets = dict[str, str]
Say = Callable[[str], None]

# Replica assignments name three of the brokers.
_FIRST, _SECOND, _THIRD = (host.node_id for host in BROKERS[:3])
_TURNS = ([_FIRST, _SECOND], [_SECOND, _FIRST], [_FIRST, _SECOND])
_RESPONSE_S = 180  # hundreds of topics on a loaded machine

_REGIONS = ("eu", "us", "apac", "latam")
_SUBJECTS = (
    "orders",
    "payments",
    "shipments",
    "clicks",
    "sessions",
    "prices",
    "returns",
    "carts",
    "invoices",
    "audits",
)
_STATES = ("customer", "stock", "price_list", "device")
_COMPACT = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.2"}


def _topics() -> list[NewTopic]:
    """Return 66 topics with 643 partitions; two of them change later."""
    # the brokers' defaults: replication factor 3, min.insync.replicas 2
    topics = [NewTopic(f"{region}.{subject}", 12, 3) for region in _REGIONS for subject in _SUBJECTS]
    topics += [NewTopic(f"{name}_state", 12, 3, config=_COMPACT) for name in _STATES]
    topics += [
        NewTopic("ledger.v1", 12, 3, config={**_COMPACT, "min.insync.replicas": "2", "segment.ms": "3600000"}),
        NewTopic("sessions_compact.delete", 6, 3, config={"cleanup.policy": "compact,delete", "retention.ms": "-1"}),
        NewTopic("media.thumbnails", 6, 3, config={"max.message.bytes": "5242880", "compression.type": "lz4"}),
        NewTopic("telemetry_raw", 12, 3, config={"retention.bytes": "1073741824", "segment.bytes": "67108864"}),
        NewTopic("events.appendtime", 6, 3, config={"message.timestamp.type": "LogAppendTime"}),
        NewTopic("forever", 3, 3, config={"retention.ms": "-1", "flush.messages": "100000"}),
        NewTopic("UPPER.Case_Mixed-1", 3, 3),
        NewTopic("a" * 200, 1, 3),
        NewTopic("grown", 3, 3),
        NewTopic("moved", 6, 3),
        # the third broker is the preferred leader of every partition
        NewTopic("pinned", 3, replica_assignment=[[_THIRD, *others] for others in _TURNS]),
    ]
    topics += [NewTopic(f"lab.{n}", 6, 3) for n in range(6)]
    topics += [NewTopic(f"scratch.rf2-{n}", 4, 2, config={"min.insync.replicas": "1"}) for n in range(3)]
    topics += [NewTopic(f"scratch_rf1_{n}", 3, 1, config={"min.insync.replicas": "1"}) for n in range(2)]
    return topics


def plant(network: Network, secrets: Secrets, say: Say) -> None:
    """Fill the fresh cluster. Raise the clients' exceptions."""
    admin = clients.admin_client(network, secrets, _RESPONSE_S)
    _all(admin.alter_user_scram_credentials(_scram_users(secrets)).values())
    topics = _topics()
    _all(admin.create_topics([*topics, NewTopic("dropped", 3, 3)], request_timeout=_RESPONSE_S).values())
    if LAYOUT.protected:
        _all(admin.create_acls(_acls(), request_timeout=_RESPONSE_S).values())
    say(f"{len(topics)} topics, {sum(t.num_partitions for t in topics)} partitions; SCRAM users; ACLs")
    _all(admin.create_partitions([NewPartitions("grown", 9)], request_timeout=_RESPONSE_S).values())
    _all(admin.delete_topics(["dropped"], request_timeout=_RESPONSE_S).values())
    hosts.execute(BROKERS[0], "sh", text=_shell_script(network, secrets), timeout=5 * _RESPONSE_S)
    say("quotas, dynamic broker configuration, delegation tokens")
    _produce(network, secrets, [topic.topic for topic in topics])
    _produce_in_transactions(network, secrets)
    _consume(network, secrets)
    say("data, committed offsets")
    _reassign(network, secrets)
    say("a completed reassignment")


def _all(futures: Iterable[Any]) -> None:
    for future in futures:
        future.result(timeout=2 * _RESPONSE_S)


def _scram_users(secrets: Secrets) -> list[UserScramCredentialUpsertion]:
    credentials = [(user, ScramMechanism.SCRAM_SHA_512, 4096) for user in ("canary", "app1", "app2")]
    credentials += [("app1", ScramMechanism.SCRAM_SHA_256, 8192), ("app2", ScramMechanism.SCRAM_SHA_256, 4096)]
    return [
        UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, iterations), secrets[user].encode())
        for user, mechanism, iterations in credentials
    ]


def _acls() -> list[AclBinding]:
    literal, prefixed = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
    topic, group = ResourceType.TOPIC, ResourceType.GROUP
    transactional_id, cluster = ResourceType.TRANSACTIONAL_ID, ResourceType.BROKER
    op = AclOperation
    allowed = [
        ("canary", topic, "canary", prefixed, [op.ALL]),
        ("canary", group, "canary", prefixed, [op.ALL]),
        ("canary", transactional_id, "canary", prefixed, [op.ALL]),
        ("canary", cluster, "kafka-cluster", literal, [op.IDEMPOTENT_WRITE, op.DESCRIBE]),
        ("app1", topic, "eu.", prefixed, [op.READ, op.WRITE, op.DESCRIBE, op.DESCRIBE_CONFIGS]),
        ("app1", topic, "customer_state", literal, [op.READ, op.WRITE]),
        ("app1", group, "app1-", prefixed, [op.READ, op.DELETE]),
        ("app1", transactional_id, "app1-tx", literal, [op.WRITE, op.DESCRIBE]),
        ("app1", cluster, "kafka-cluster", literal, [op.IDEMPOTENT_WRITE]),
        ("app2", topic, "*", literal, [op.READ]),
        ("app2", group, "*", literal, [op.READ]),
        ("app2", topic, "us.", prefixed, [op.ALL]),
        ("app2", cluster, "kafka-cluster", literal, [op.CREATE, op.ALTER_CONFIGS]),
        ("CN=legacy loader,O=ops", topic, "telemetry_raw", literal, [op.WRITE]),
    ]
    denied = [
        ("app2", topic, "eu.payments", literal, [op.READ, op.DESCRIBE]),
        ("app2", topic, "ledger", prefixed, [op.ALL]),
        ("*", cluster, "kafka-cluster", literal, [op.ALTER]),
        ("app1", group, "app1-retired", literal, [op.READ]),
    ]
    bindings = []
    for permission, rows in ((AclPermissionType.ALLOW, allowed), (AclPermissionType.DENY, denied)):
        for user, kind, name, pattern, operations in rows:
            bindings += [AclBinding(kind, name, pattern, f"User:{user}", "*", o, permission) for o in operations]
    bindings.append(AclBinding(topic, "lab.0", literal, "User:app1", "192.0.2.10", op.READ, AclPermissionType.ALLOW))
    return bindings


def _shell_script(network: Network, secrets: Secrets) -> str:
    address = network.address(BROKERS[0])
    settings = {
        "clients": f"{address}:{LAYOUT.clients_port}",
        "truststore": f"{LAYOUT.ssl_dir}/truststore.p12",
        "first_broker": str(_FIRST),
        "second_broker": str(_SECOND),
        "protected": "yes" if LAYOUT.protected else "",
        "keystore_password": secrets["keystore"],
        "external_keystore_password": secrets["external_keystore"],
        "quorumshift_password": secrets["quorumshift"],
        "app1_password": secrets["app1"],
        "app2_password": secrets["app2"],
    }
    return "".join(f"{name}='{value}'\n" for name, value in settings.items()) + (TESTBED / "seed.sh").read_text()


def _produce(network: Network, secrets: Secrets, topics: list[str]) -> None:
    producer = Producer({**clients.settings(network, secrets), "enable.idempotence": True, "linger.ms": 20})
    for number in range(60):
        for topic in topics:
            key, value = f"key-{number % 20}", f"{topic} {number} " + "x" * 80
            producer.produce(topic, value, key, headers={"seed": str(number)})
        producer.poll(0)
    unacknowledged = producer.flush(60)
    if unacknowledged:
        raise TestbedError(f"{unacknowledged} records not acknowledged within 60 s: read the brokers' server.log")


def _produce_in_transactions(network: Network, secrets: Secrets) -> None:
    settings = {**clients.settings(network, secrets, "app1"), "transactional.id": "app1-tx"}
    producer = Producer(settings)
    producer.init_transactions(60)
    for number in range(6):
        producer.begin_transaction()
        for item in range(10):
            producer.produce("eu.payments", f"payment {number}.{item}", f"customer-{item}")
        producer.flush(30)  # aborted records, too, must reach the log and the coordinator
        if number % 3 == 2:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)


def _consume(network: Network, secrets: Secrets) -> None:
    """Commit offsets of several groups: at the end, half-way, over many topics."""
    groups = {
        "app1-orders": ("app1", ["eu.orders"], 1.0),
        "app1-payments": ("app1", ["eu.payments"], 0.5),
        "reporting": ("app2", [f"us.{subject}" for subject in _SUBJECTS], 1.0),
        "reporting.slow": ("app2", ["us.orders", "us.clicks"], 0.25),
    }
    for group, (user, topics, share) in groups.items():
        consumer = Consumer({**clients.settings(network, secrets, user), "group.id": group})
        offsets = []
        for topic in topics:
            for partition in consumer.list_topics(topic, timeout=10).topics[topic].partitions:
                low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)
                offsets.append(TopicPartition(topic, partition, low + int((high - low) * share)))
        consumer.commit(offsets=offsets, asynchronous=False)
        consumer.close()


def _reassign(network: Network, secrets: Secrets) -> None:
    """Move replicas and wait until the reassignment (KIP-455) ends."""
    client = KafkaAdminClient(**clients.kafka_python_settings(network, secrets))
    try:
        replicas = {Partition("scratch.rf2-0", 0): [_THIRD, _FIRST], Partition("scratch.rf2-0", 1): [_SECOND, _THIRD]}
        replicas.update({Partition("moved", number): [_SECOND, _THIRD, _FIRST] for number in range(6)})
        errors = {tp: error for tp, error in client.alter_partition_reassignments(replicas).items() if error}
        if errors:
            raise TestbedError(f"the controller rejected the seed's reassignment: {errors}")
        deadline = time.monotonic() + 60
        moving = client.list_partition_reassignments()
        while moving:
            if time.monotonic() > deadline:
                raise TestbedError(f"the seed's reassignment did not end within 60 s; still moving: {sorted(moving)}")
            time.sleep(0.2)
            moving = client.list_partition_reassignments()
    finally:
        client.close()


def scram_command(network: Network, user: str) -> list[str]:
    """Return the command that creates a SCRAM user in ZooKeeper, before any broker runs.

    Its standard input is `scram_credential`.
    """
    tls = ("--zk-tls-config-file", security.ZOOKEEPER_CLIENT) if security.SCHEME.zookeeper_tls else ()
    return [
        *("env", f"KAFKA_OPTS={security.KAFKA_OPTS if security.SECURED else ''}"),
        "/opt/kafka/bin/kafka-configs.sh",
        *("--zookeeper", network.zookeeper_connect, *tls, "--alter", "--entity-type", "users"),
        *("--entity-name", user, "--add-config-file", "/dev/stdin"),
    ]


def scram_credential(password: str) -> str:
    """Return a SCRAM credential in the syntax of `--add-config-file`, which has no brackets."""
    return f"SCRAM-SHA-512=iterations=4096,password={password}\n"
