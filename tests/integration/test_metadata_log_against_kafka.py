# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The metadata log reader against real Kafka: a real migration from ZooKeeper, rolling files, Kafka's own dump.

One cluster, taken through its life in the order of the tests. QUORUMSHIFT_RECORD_FIXTURES=1 records the stopped log
and Kafka's dump of it as the unit tests' fixture.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import subprocess
import tarfile
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import (
    metadata_image,
    metadata_log,
    metadata_summary,
)
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import admin as kafka

from tests.integration import servers
from tests.unit.formats import metadata_batches as batches
from tests.unit.formats.metadata_json import comparable, dumped_records

pytestmark = pytest.mark.real
DATA = Path(__file__).parents[1] / "unit" / "formats" / "data"
SECONDS = 60
SMALL_FILES = {
    "metadata.log.segment.bytes": "16384",
    "metadata.log.segment.min.bytes": "16384",
    "metadata.log.max.record.bytes.between.snapshots": "12000",
    "metadata.max.retention.bytes": "40000",
    "metadata.max.retention.ms": "-1",
    "metadata.max.idle.interval.ms": "50",
}
AUTHORIZER = {"super.users": "User:ANONYMOUS", "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@pytest.fixture(scope="module")
def cluster():
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(servers.workdir("metadata_log"))
        zookeeper = stack.enter_context(servers.zookeeper(home))
        broker = stack.enter_context(servers.zk_broker(home, 1, zookeeper.connect, {"broker.rack": "r1", **AUTHORIZER}))
        fill(broker.address)
        address = HostPort("127.0.0.1", servers.free_port())
        voters = f"101@{address}"
        settings = {
            **servers.migration_keys(zookeeper.connect),
            **SMALL_FILES,
            **AUTHORIZER,
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "inter.broker.listener.name": "PLAINTEXT",
        }
        cluster_id = cluster_id_of(broker.address)
        controller = stack.enter_context(
            servers.kraft_controller(home, 101, address, voters, settings, cluster_id=cluster_id)
        )
        directory = str(controller.home / "data" / "__cluster_metadata-0")
        before = metadata_summary.summarise(directory)
        broker.stop()
        broker.configure({**servers.controller_keys(voters), **servers.migration_keys(zookeeper.connect)})
        broker.start()
        yield SimpleNamespace(broker=broker, controller=controller, directory=directory, before=before)


def admin(address):
    """A client of a broker that names a controller: one that has just started does not, and librdkafka waits for it no
    longer than for an answer."""
    client = kafka.AdminClient({"bootstrap.servers": str(address)})
    servers.wait_for(
        lambda: client.list_topics(timeout=SECONDS).controller_id >= 0, SECONDS, "a controller to be named"
    )
    return client


def cluster_id_of(address):
    client = admin(address)  # its futures fail when it is collected
    return client.describe_cluster(request_timeout=SECONDS).result(SECONDS).cluster_id


def done(futures):
    for future in futures.values():
        future.result(SECONDS)


def acl(name, permission=kafka.AclPermissionType.ALLOW):
    return kafka.AclBinding(
        kafka.ResourceType.TOPIC,
        name,
        kafka.ResourcePatternType.PREFIXED,
        "User:alice",
        "*",
        kafka.AclOperation.READ,
        permission,
    )


def scram(user, mechanism):
    info = kafka.ScramCredentialInfo(mechanism, 4096)
    return kafka.UserScramCredentialUpsertion(user, info, b"secret", b"salt-salt")


def create(client, prefix, count, partitions=3):
    topics = [
        kafka.NewTopic(f"{prefix}.{n}", partitions, 1, config={"retention.ms": str(1000 + n)}) for n in range(count)
    ]
    done(client.create_topics(topics))


def metadata(client):
    """What the broker answers, None while it knows no broker yet."""
    try:
        return client.list_topics(timeout=SECONDS)
    except KafkaException as error:
        if error.args[0].code() != KafkaError._PARTIAL:
            raise
        return None


def topics_of(client):
    found = metadata(client)
    return found.topics if found else {}


def has_controller(address):
    """Whether a new client finds the controller; one that has asked too early waits long before it asks again."""
    found = metadata(admin(address))
    return found and found.controller_id in found.brokers


def fill(address):
    """What the copy will find in ZooKeeper."""
    servers.wait_for(lambda: has_controller(address), SECONDS, "a controller in the broker's metadata")
    client = admin(address)
    create(client, "before", 5)
    done(client.create_acls([acl("before"), acl("x", kafka.AclPermissionType.DENY)]))
    done(client.alter_user_scram_credentials([scram("alice", kafka.ScramMechanism.SCRAM_SHA_256)]))
    done(client.alter_user_scram_credentials([scram("bob", kafka.ScramMechanism.SCRAM_SHA_512)]))
    set_quota(address, "producer_byte_rate=1000,consumer_byte_rate=2000", "--entity-type", "users", "--entity-default")


def set_quota(address, config, *entity):
    arguments = ["--bootstrap-server", str(address), "--alter", "--add-config", config, *entity]
    run([*servers.java(), "kafka.admin.ConfigCommand", *arguments])


def run(command):
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def summary(cluster, **options):
    return metadata_summary.summarise(cluster.directory, **options)


def image_of(cluster):
    return metadata_image.Image.of(metadata_log.read_records(cluster.directory, types=metadata_image.TYPES))


def count(of):
    """How many of each kind an image holds; for configs, of all resources together."""
    counts = {kind: len(getattr(of, kind)) for kind in ("topics", "acls", "scram", "quotas")}
    parts = {kind: sum(map(len, getattr(of, kind).values())) for kind in ("partitions", "configs")}
    return {**counts, **parts, "producer_ids": of.producer_ids}


def migrated(cluster):
    now = summary(cluster)
    return now if now["zk_migration_state"] == "MIGRATION" else None


def test_recorded_serializations_are_this_kafkas():
    """The unit tests' fixture of all record types and versions is what these jars write."""
    program = DATA / "RecordMetadata.java"
    printed = run(["java", *servers.JVM_FLAGS, "-cp", servers.class_path(), str(program)])
    assert printed.encode() == gzip.decompress((DATA / "metadata_records.jsonl.gz").read_bytes())


def test_controller_before_the_copy(cluster):
    before = cluster.before
    assert before["zk_migration_state"] == "PRE_MIGRATION"
    assert (before["metadata_version"], before["brokers"], before["open_transaction"]) == (21, {}, None)
    assert before["quorum_state"]["leaderId"] == 101


def test_copy_is_the_one_that_kafka_logs(cluster):
    now = servers.wait_for(lambda: migrated(cluster), SECONDS, "state MIGRATION in the metadata log")
    manifest = servers.wait_for(
        lambda: re.search(r"The record types were \{(.*?)\}", cluster.controller.log.read_text()), SECONDS, "manifest"
    )
    kafkas = {name: int(count) for name, count in (pair.split("=") for pair in manifest.group(1).split(", "))}
    (copy,) = summary(cluster, with_history=True)["zk_migration_transactions"]
    assert copy["outcome"] == "committed"
    assert copy["begin_offset"] < copy["end_offset"]
    assert {name: copy["records"][name] for name in kafkas} == kafkas
    assert now["brokers"]["1"]["is_migrating_zk_broker"] is True
    assert now["brokers"]["1"]["rack"] == "r1"
    assert now["controllers"]["101"]["zk_migration_ready"] is True
    counts = count(image_of(cluster))
    assert counts["topics"] == 5
    assert counts["partitions"] == 15
    assert (counts["acls"], counts["scram"], counts["quotas"]) == (2, 2, 2)


def test_broker_in_kraft_mode(cluster):
    # A broker that has not heard the KRaft controller yet would not stop in a controlled way.
    servers.wait_for(lambda: cluster.controller.printed("to DUAL_WRITE state"), SECONDS, "DUAL_WRITE")
    client = admin(cluster.broker.address)
    create(client, "hybrid", 1)
    servers.wait_for(lambda: "hybrid.0" in topics_of(client), SECONDS, "a topic of the KRaft controller at the broker")
    first = summary(cluster)["brokers"]["1"]
    cluster.broker.stop()
    stopped = summary(cluster)["brokers"]["1"]
    assert (stopped["fenced"], stopped["in_controlled_shutdown"]) == (True, True)
    cluster.broker.configure(
        {
            "broker.id": None,
            "zookeeper.connect": None,
            "zookeeper.metadata.migration.enable": None,
            "inter.broker.protocol.version": None,
            "process.roles": "broker",
            "node.id": "1",
            "authorizer.class.name": STANDARD_AUTHORIZER,
        }
    )
    cluster.broker.start()
    broker = summary(cluster)["brokers"]["1"]
    assert broker["epoch"] > first["epoch"] and broker["registered_offset"] >= broker["epoch"]
    assert (broker["is_migrating_zk_broker"], broker["fenced"], broker["in_controlled_shutdown"]) == (False,) * 3
    assert len(broker["log_dirs"]) == 1


def test_reads_a_log_that_rolls_meanwhile(cluster):
    client, ends, failures, stop = admin(cluster.broker.address), [], [], threading.Event()

    def read():
        while not stop.is_set():
            try:
                now = summary(cluster, with_history=True)
                ends.append((now["log_end_offset"], (now["checkpoint"] or {"offset": 0})["offset"]))
            except Exception as error:
                failures.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for node_restart in range(8):
            create(client, f"roll{node_restart}", 20)
            if node_restart % 3 == 2:
                done(client.delete_topics([f"roll{node_restart}.{n}" for n in range(20)]))
    finally:
        stop.set()
        reader.join()
    assert failures == []
    assert ends == sorted(ends) and len(ends) > 3
    assert len({checkpoint for _end, checkpoint in ends}) > 2


def test_counts_are_what_clients_see(cluster):
    client = admin(cluster.broker.address)
    done(client.create_partitions([kafka.NewPartitions("before.0", 7)]))
    done(client.create_acls([acl("later")]))
    done(client.delete_acls([kafka.AclBindingFilter(
        kafka.ResourceType.TOPIC, "x", kafka.ResourcePatternType.PREFIXED, None, None,
        kafka.AclOperation.ANY, kafka.AclPermissionType.ANY,
    )]))  # fmt: skip
    deletion = kafka.UserScramCredentialDeletion("bob", kafka.ScramMechanism.SCRAM_SHA_512)
    done(client.alter_user_scram_credentials([deletion]))
    set_quota(cluster.broker.address, "request_percentage=12.25", "--entity-type", "clients", "--entity-name", "ä b")
    done(client.delete_topics(["before.4"]))
    counts = count(image_of(cluster))
    topics = servers.wait_for(lambda: as_many_topics(client, counts), SECONDS, f"{counts['topics']} topics in metadata")
    acls = client.describe_acls(kafka.AclBindingFilter(
        kafka.ResourceType.ANY, None, kafka.ResourcePatternType.ANY, None, None,
        kafka.AclOperation.ANY, kafka.AclPermissionType.ANY,
    )).result(SECONDS)  # fmt: skip
    assert counts["partitions"] == sum(len(topic.partitions) for topic in topics.values())
    assert counts["configs"] == len(topics)  # one retention.ms each
    assert (counts["acls"], counts["scram"], counts["quotas"]) == (len(acls), 1, 3)
    assert len(acls) == 2


def as_many_topics(client, counts):
    """A broker's metadata once it has caught up with the log."""
    topics = topics_of(client)
    return topics if len(topics) == counts["topics"] else None


def test_every_record_is_what_kafka_dumps(cluster):
    cluster.broker.kill()
    cluster.controller.stop()
    files = metadata_log.list_files(cluster.directory)
    paths = [file.path for file in (*files.checkpoints, *files.segments)]
    text = dump(paths)
    dumped = dumped_records(text)
    assert set(dumped) == {os.path.basename(path) for path in paths}
    assert files.checkpoints and len(files.segments) > 1
    seen = set()
    for path in paths:
        read = [comparable(record) for record in metadata_log.read_file(path)]
        assert read == dumped[os.path.basename(path)]
        seen.update(record[3] for record in read)
    assert {"REGISTER_BROKER_RECORD", "PARTITION_RECORD", "CLIENT_QUOTA_RECORD", "SNAPSHOT_FOOTER"} <= seen
    if os.environ.get("QUORUMSHIFT_RECORD_FIXTURES"):
        record_fixture(cluster.directory, text)


def dump(paths):
    arguments = ["--cluster-metadata-decoder", "--files", ",".join(paths)]
    return run([*servers.java(), "kafka.tools.DumpLogSegments", *arguments])


def record_fixture(directory, text):
    dumped = Path(directory) / "dump.txt"
    dumped.write_text(re.sub(r"Dumping .*/", "Dumping /", text))
    with tarfile.open(DATA / "metadata_log.tar.xz", "w:xz") as tar:
        for file in sorted(Path(directory).iterdir()):
            if file.suffix in (".log", ".checkpoint", ".txt") or file.name == "quorum-state":
                tar.add(file, f"__cluster_metadata-0/{file.name}", filter=without_machine)


def without_machine(entry):
    """Neither owner nor time of the machine that recorded."""
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o644
    return entry


def test_a_new_leader_aborts_the_transaction_left_open(cluster):
    """A copy that dies midway: its records are written as Kafka frames them, then Kafka itself takes over."""
    before, counts = summary(cluster), count(image_of(cluster))
    end = before["log_end_offset"]
    # The NoOp: Kafka 3.9.2 dies of a begin record right at a checkpoint's end (OffsetControlManager.endLoadSnapshot).
    left_open = [batches.NO_OP, batches.BEGIN, batches.topic("half-copied", 7), batches.migration_state(3)]
    with open(metadata_log.list_files(cluster.directory).segments[-1].path, "ab") as log:
        log.write(batches.batch(end, left_open, before["last_epoch"]))
    unfinished = summary(cluster)
    assert unfinished["open_transaction"] == {"name": "ZK Migration", "offset": end + 1}
    assert unfinished["log_end_offset"] == end + 4 and count(image_of(cluster)) == counts

    cluster.controller.start()
    servers.wait_for(lambda: summary(cluster)["open_transaction"] is None, SECONDS, "abort record of the new leader")
    after = summary(cluster, with_history=True)
    aborted = after["zk_migration_transactions"][-1]
    assert (aborted["begin_offset"], aborted["outcome"]) == (end + 1, "aborted")
    assert aborted["records"] == {"TOPIC_RECORD": 1, "ZK_MIGRATION_STATE_RECORD": 1}
    for now in (unfinished, after):
        assert now["zk_migration_state"] == "MIGRATION"
    assert count(image_of(cluster)) == counts
    assert after["last_epoch"] > before["last_epoch"]
    cluster.controller.stop()
