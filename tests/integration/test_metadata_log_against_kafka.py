# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metadata log reader against real Kafka: a migration from ZooKeeper, rolling files, Kafka's own dump.

The tests use one cluster, in their order. QUORUMSHIFT_RECORD_FIXTURES=1 saves the stopped log and Kafka's dump of it as
the unit tests' fixture.
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
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import initial_copy, phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import screen
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import sizes
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import (
    metadata_image,
    metadata_log,
    metadata_summary,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
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
    "metadata.max.retention.bytes": "-1",
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


def cluster_id_of(address):
    client = servers.admin_client(address)  # a reference: its futures fail once it is garbage-collected
    return client.describe_cluster(request_timeout=SECONDS).result(SECONDS).cluster_id


def wait_all(futures):
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
    servers.create_topics(client, topics)


def topics_of(client):
    response = servers.metadata(client)
    return response.topics if response else {}


def fill(address):
    """Create the metadata for the initial copy."""
    client = servers.admin_client(address)
    create(client, "before", 5)
    wait_all(client.create_acls([acl("before"), acl("x", kafka.AclPermissionType.DENY)]))
    wait_all(client.alter_user_scram_credentials([scram("alice", kafka.ScramMechanism.SCRAM_SHA_256)]))
    wait_all(client.alter_user_scram_credentials([scram("bob", kafka.ScramMechanism.SCRAM_SHA_512)]))
    set_quota(address, "producer_byte_rate=1000,consumer_byte_rate=2000", "--entity-type", "users", "--entity-default")


def set_quota(address, config, *entity):
    arguments = ["--bootstrap-server", str(address), "--alter", "--add-config", config, *entity]
    run([*servers.java(), "kafka.admin.ConfigCommand", *arguments])


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def summary(cluster, **options):
    return metadata_summary.summarise(cluster.directory, **options)


def image_of(cluster):
    return metadata_image.Image.from_records(metadata_log.read_records(cluster.directory, types=metadata_image.TYPES))


def count(of):
    """How many of each kind an image holds; for configs, of all resources together."""
    counts = {kind: len(getattr(of, kind)) for kind in ("topics", "acls", "scram", "quotas")}
    parts = {kind: sum(map(len, getattr(of, kind).values())) for kind in ("partitions", "configs")}
    return {**counts, **parts, "producer_ids": of.producer_ids}


def migrated(cluster):
    now = summary(cluster)
    return now if now["zk_migration_state"] == "MIGRATION" else None


def test_the_fixture_of_record_types_is_current():
    """These jars write the unit tests' fixture of all record types and versions."""
    program = DATA / "RecordMetadata.java"
    printed = run(["java", *servers.JVM_FLAGS, "-cp", servers.class_path(), str(program)])
    assert printed.encode() == gzip.decompress((DATA / "metadata_records.jsonl.gz").read_bytes())


def test_the_log_before_the_initial_copy(cluster):
    before = cluster.before
    assert before["zk_migration_state"] == "PRE_MIGRATION"
    assert (before["metadata_version"], before["brokers"], before["open_transaction"]) == (21, {}, None)
    assert before["quorum_state"]["leaderId"] == 101


def test_the_initial_copy_has_the_records_that_kafka_logs(cluster):
    now = servers.wait_for(lambda: migrated(cluster), SECONDS, "state MIGRATION in the metadata log")
    manifest = servers.wait_for(
        lambda: re.search(r"The record types were \{(.*?)\}", cluster.controller.log.read_text()), SECONDS, "manifest"
    )
    kafkas = {name: int(count) for name, count in (pair.split("=") for pair in manifest.group(1).split(", "))}
    (copy,) = summary(cluster, with_history=True)["zk_migration_transactions"]
    assert copy["outcome"] == "committed"
    assert copy["begin_offset"] < copy["end_offset"]
    took = re.search(r"records were generated in (\d+) ms", cluster.controller.log.read_text())
    assert 0 <= copy["end_ms"] - copy["begin_ms"] <= int(took[1]) + 100, took
    assert {name: copy["records"][name] for name in kafkas} == kafkas
    assert now["brokers"]["1"]["is_migrating_zk_broker"] is True
    assert now["brokers"]["1"]["rack"] == "r1"
    assert now["controllers"]["101"]["zk_migration_ready"] is True
    counts = count(image_of(cluster))
    assert counts["topics"] == 5
    assert counts["partitions"] == 15
    assert (counts["acls"], counts["scram"], counts["quotas"]) == (2, 2, 2)


def test_registrations_of_a_broker_that_changes_to_kraft_mode(cluster):
    # a broker that knows no KRaft controller yet does no controlled shutdown
    servers.wait_for(lambda: cluster.controller.printed("to DUAL_WRITE state"), SECONDS, "DUAL_WRITE")
    client = servers.admin_client(cluster.broker.address)
    create(client, "hybrid", 1)
    servers.wait_for(lambda: "hybrid.0" in topics_of(client), SECONDS, "a topic of the KRaft controller at the broker")
    before = summary(cluster)["brokers"]["1"]
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
    assert broker["epoch"] > before["epoch"] and broker["registered_offset"] >= broker["epoch"]
    assert (broker["is_migrating_zk_broker"], broker["fenced"], broker["in_controlled_shutdown"]) == (False,) * 3
    assert len(broker["log_dirs"]) == 1


def test_a_rolling_log_is_read_without_errors(cluster):
    client, ends, failures, stop = servers.admin_client(cluster.broker.address), [], [], threading.Event()

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
        for number in range(8):
            create(client, f"roll{number}", 20)
            if number % 3 == 2:
                wait_all(client.delete_topics([f"roll{number}.{n}" for n in range(20)]))
    finally:
        stop.set()
        reader.join()
    assert failures == []
    assert ends == sorted(ends) and len(ends) > 3
    assert len({checkpoint for _end, checkpoint in ends}) > 2


def test_status_counts_registered_brokers_and_shows_the_newest_snapshot(cluster):
    def read():
        now, snapshots = summary(cluster), Path(cluster.directory).glob("*.checkpoint")
        name, stat = max((path.name, path.stat()) for path in snapshots)
        return (now, stat) if name.startswith(f"{now['checkpoint']['offset']:020}-") else None

    now, stat = servers.wait_for(read, SECONDS, "a reading during which Kafka writes no snapshot")
    nodes = {
        "b1": {"role": "broker", "node_id": cluster.broker.node_id},
        "b9": {"role": "broker", "node_id": 9},
        "c1": {"role": "controller", "time": stat.st_mtime + 61, "metadata_log": now},
    }
    assert screen.metadata_lines({"nodes": nodes}, phase.HYBRID) == [
        "registered in the quorum: 1 of 2 brokers, not b9",
        f"snapshots of the metadata log: c1 1 min 1 s old, {sizes.format_bytes(stat.st_size)}",
    ]


def test_counts_agree_with_clients_metadata(cluster):
    client = servers.admin_client(cluster.broker.address)
    wait_all(client.create_partitions([kafka.NewPartitions("before.0", 7)]))
    wait_all(client.create_acls([acl("later")]))
    wait_all(client.delete_acls([kafka.AclBindingFilter(
        kafka.ResourceType.TOPIC, "x", kafka.ResourcePatternType.PREFIXED, None, None,
        kafka.AclOperation.ANY, kafka.AclPermissionType.ANY,
    )]))  # fmt: skip
    deletion = kafka.UserScramCredentialDeletion("bob", kafka.ScramMechanism.SCRAM_SHA_512)
    wait_all(client.alter_user_scram_credentials([deletion]))
    set_quota(cluster.broker.address, "request_percentage=12.25", "--entity-type", "clients", "--entity-name", "ä b")
    removed = removals_after_the_copy(cluster)
    wait_all(client.delete_topics(["before.4"]))
    assert removals_after_the_copy(cluster) == removed + 1
    counts = count(image_of(cluster))
    topics = servers.wait_for(lambda: caught_up_topics(client, counts), SECONDS, f"{counts['topics']} topics")
    servers.wait_for(  # the broker publishes topics before ACLs
        lambda: len(acls_of(client)) == counts["acls"], SECONDS, f"{counts['acls']} ACLs at the broker, as in the log"
    )
    assert counts["partitions"] == sum(len(topic.partitions) for topic in topics.values())
    assert counts["configs"] == len(topics)  # one retention.ms each
    assert (counts["acls"], counts["scram"], counts["quotas"]) == (2, 1, 3)


def acls_of(client):
    anything = (kafka.AclOperation.ANY, kafka.AclPermissionType.ANY)
    every = kafka.AclBindingFilter(kafka.ResourceType.ANY, None, kafka.ResourcePatternType.ANY, None, None, *anything)
    return client.describe_acls(every).result(SECONDS)


def removals_after_the_copy(cluster):
    """Return how many topics the log removes after the initial copy."""
    (copy,) = summary(cluster, with_history=True)["zk_migration_transactions"]
    return copy["later"].get("REMOVE_TOPIC_RECORD", 0)


def caught_up_topics(client, counts):
    """Return the broker's topics once it has caught up with the log, else None."""
    topics = topics_of(client)
    return topics if len(topics) == counts["topics"] else None


def test_a_log_whose_beginning_was_removed_proves_no_skipped_copy(cluster):
    """Retention removes the copy's transaction; the state is still MIGRATION, so nothing is concluded."""
    counted = {"records": {"TOPIC_RECORD": 3}, "topics": ["a", "b", "c"], "acls": [], "configs": []}

    def removed():
        log = summary(cluster, with_history=True)
        return log if log["log_start_offset"] > 0 and not log["zk_migration_transactions"] else None

    # only now: the log grows with time, and the tests before need the copy in it
    cluster.controller.stop()
    cluster.controller.configure({"metadata.max.retention.bytes": "40000"})
    cluster.controller.start()
    log = servers.wait_for(removed, 2 * SECONDS, "the removal of the copy's transaction from the log")
    assert log["zk_migration_state"] == "MIGRATION"
    for later in (counted, {**counted, "topics": ["a"]}):
        found = initial_copy.detect(counted, later, {"c1": {"role": "controller", "metadata_log": log}})
        assert found.damage == found.differences == []
        assert f"It begins at offset {log['log_start_offset']}, and its state is MIGRATION" in found.unseen


def test_every_record_agrees_with_kafkas_dump(cluster):
    cluster.broker.kill()
    cluster.controller.stop()
    files = metadata_log.list_files(cluster.directory)
    paths = [file.path for file in (*files.checkpoints, *files.segments)]
    text = dump(paths)
    dumped = dumped_records(text)
    assert set(dumped) == {os.path.basename(path) for path in paths}
    assert files.checkpoints and files.segments  # how many segments retention has left depends on the time
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
                tar.add(file, f"__cluster_metadata-0/{file.name}", filter=anonymous)


def anonymous(entry):
    """Remove the recording machine's owner, times and modes from a tar entry."""
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o644
    return entry


def test_a_new_leader_aborts_an_open_transaction(cluster):
    """The test writes half of an initial copy in Kafka's format, then starts Kafka."""
    before, counts = summary(cluster), count(image_of(cluster))
    end = before["log_end_offset"]
    # NO_OP first: Kafka 3.9.2 crashes on a begin record at a checkpoint's end (OffsetControlManager.endLoadSnapshot)
    open_transaction = [batches.NO_OP, batches.BEGIN, batches.topic("half-copied", 7), batches.migration_state(3)]
    with open(metadata_log.list_files(cluster.directory).segments[-1].path, "ab") as log:
        log.write(batches.batch(end, open_transaction, before["last_epoch"]))
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
