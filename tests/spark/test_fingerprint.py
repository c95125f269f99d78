# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""data_fingerprint with a real broker and Spark: no false alarm, and every injected fault is found."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import time
from typing import Any, Callable, Dict, Iterator, List, Set

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.records.crc32c import crc32c
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)
from pyspark.sql import SparkSession
from quorumshift_spark import data_fingerprint, package, submit
from quorumshift_spark import result as results
from quorumshift_spark.compare import OUTCOMES
from quorumshift_spark.fingerprint.findings import RULES

from tests.integration.servers import (
    KafkaServer,
    create_topics,
    free_port,
    kraft_broker,
    kraft_controllers,
    metadata,
    wait_for,
    workdir,
)
from tests.spark.parity import PYTHONPATH
from tests.spark.planted import table

pytestmark = pytest.mark.real

CHUNK = 100
SECRET = "s3cr3t-of-the-auditor"
AUDITOR = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_username": "auditor",
    "sasl_password": SECRET,
}
SMALL_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = PYTHONPATH
    session = (
        SparkSession.builder.master("local[1]")
        .appName("test_spark_fingerprint")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "512m")
        .config("spark.driver.extraJavaOptions", SMALL_JVM)
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(scope="module")
def home() -> Iterator[pathlib.Path]:
    with workdir("spark_fingerprint") as directory:
        yield directory


@pytest.fixture(scope="module")
def broker(home: pathlib.Path) -> Iterator[KafkaServer]:
    address = HostPort("127.0.0.1", free_port())
    settings = {"log.cleaner.backoff.ms": "200", "log.retention.check.interval.ms": "500"}
    settings["sasl.enabled.mechanisms"] = "PLAIN"
    settings["listener.name.sasl_plaintext.plain.sasl.jaas.config"] = (
        f'org.apache.kafka.common.security.plain.PlainLoginModule required user_auditor="{SECRET}";'
    )
    authorizer = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "allow.everyone.if.no.acl.found": "true",
    }
    settings.update(authorizer)
    listeners = {name: f"127.0.0.1:{free_port()}" for name in ("PLAINTEXT", "SASL_PLAINTEXT")}
    voters = f"101@{address}"
    with kraft_controllers(home, [address], authorizer), kraft_broker(home, 1, voters, settings, listeners) as server:
        yield server


@pytest.fixture
def admin(broker: KafkaServer) -> AdminClient:
    return AdminClient({"bootstrap.servers": str(broker.address)})


@pytest.fixture
def check(
    broker: KafkaServer, admin: AdminClient, spark: SparkSession, tmp_path: pathlib.Path
) -> Callable[..., Dict[str, Any]]:
    """Return a function that runs the job on topics; as in production, a run that passed is the next one's baseline."""
    runs: List[pathlib.Path] = []

    def run(
        *topics: str, gate: str = "before_controllers", timeout: float = 60, auditor: bool = False, **settings: Any
    ) -> Dict[str, Any]:
        listener, client = (broker.listeners["SASL_PLAINTEXT"], AUDITOR) if auditor else (broker.address, {})
        nonce = f"n{len(list(tmp_path.glob('run-*')))}"
        output = tmp_path / f"run-{nonce}"
        output.mkdir()
        job = {
            "nonce": nonce,
            "gate": gate,
            "phase": "zk",
            "cluster_id": admin.describe_cluster().result(30).cluster_id,
            "output": str(output),
            "views": {
                "cluster": {"bootstrap_servers": str(listener), "client": client},
                "baseline": {"path": str(runs[-1])} if runs else None,
            },
            "fingerprint": {"topics": list(topics), "chunk_offsets": CHUNK, **settings},
            "bounds": {"rounds": 1, "pause_s": 0.5, "request_timeout_s": timeout},
        }
        result = done(job, tmp_path)
        assert result["nonce"] == nonce
        assert not list(tmp_path.glob("client-*"))
        for counted in result["counts"].values():
            assert counted["read"] == sum(counted[outcome] for outcome in OUTCOMES)
        if result["verdict"] == "pass":
            runs.append(output)
        return result

    run.baselines = runs
    return run


def done(job: Dict[str, Any], directory: pathlib.Path) -> Dict[str, Any]:
    """Run a job in the active session; return its result."""
    path = directory / "job.json"
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(job, file)
    code = data_fingerprint.main(["--input", str(path)])
    path.unlink()
    result = json.loads((pathlib.Path(job["output"]) / "result.json").read_text())
    assert code == results.EXIT_CODES[result["verdict"]]
    return result


def create(admin: AdminClient, topic: str, partitions: int = 2, **config: str) -> None:
    settings = {name.replace("_", "."): value for name, value in config.items()}
    create_topics(admin, [NewTopic(topic, partitions, 1, config=settings)])
    wait_for(lambda: served(admin, topic) == partitions, 60, f"leaders of {topic}")


def served(admin: AdminClient, topic: str) -> int:
    """Return how many partitions of a topic have a leader in the broker's metadata."""
    found = metadata(admin, topic)
    partitions = found.topics[topic].partitions.values() if found else ()
    return sum(1 for partition in partitions if partition.leader >= 0)


def fill(
    broker: KafkaServer,
    topic: str,
    count: int = 350,
    partitions: int = 2,
    prefix: str = "",
    compression: str = "none",
) -> None:
    settings = {"bootstrap.servers": str(broker.address), "linger.ms": 5, "batch.num.messages": 20, "log_level": 0}
    settings["compression.type"] = compression
    producer, delivered = Producer(settings), []
    started = int(time.time() * 1000) - 60_000  # recent: Kafka deletes records older than retention.ms
    for number in range(count):
        producer.produce(
            topic,
            f"{prefix}value-{number:06}".encode(),
            f"key-{number % 50}".encode(),
            partition=number % partitions,
            headers=[("trace", b"%06d" % number), ("empty", None)],
            timestamp=started + number,
            on_delivery=lambda error, _message: delivered.append(error),
        )
    assert producer.flush(60) == 0
    assert delivered == [None] * count


def log_start(admin: AdminClient, topic: str) -> int:
    offsets = admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.earliest()})
    return next(iter(offsets.values())).result(30).offset


def delete_records(admin: AdminClient, topic: str, before: int) -> None:
    admin.delete_records([TopicPartition(topic, 0, before)])[TopicPartition(topic, 0)].result(30)


def commit(admin: AdminClient, group: str, topic: str, offset: int) -> None:
    """Commit an offset of partition 0 for a group without members. Its coordinator may be loading the group."""

    def committed() -> bool:
        wanted = [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, offset)])]
        (done,) = admin.alter_consumer_group_offsets(wanted)[group].result(30).topic_partitions
        return done.error is None

    wait_for(committed, 60, f"the offset of {group}")


def delete_group(admin: AdminClient, name: str) -> None:
    """Delete a group. A request that a slow broker made the client repeat finds it deleted."""
    try:
        admin.delete_consumer_groups([name])[name].result(30)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
            raise


def rules(result: Dict[str, Any]) -> List[str]:
    return sorted(map(rule_of, result["differences"]))


def rule_of(difference: Dict[str, Any]) -> str:
    return next(name for name, rule in RULES.items() if rule.says == difference["rule"])


def logs(broker: KafkaServer, topic: str, partition: int) -> List[pathlib.Path]:
    return sorted((broker.home / "data" / f"{topic}-{partition}").glob("*.log"))


def edit(log: pathlib.Path, old: bytes, new: bytes, batch: int | None = None) -> None:
    """Replace bytes in the only batch that holds them, or in that of this number, and correct its checksum."""
    assert len(old) == len(new)
    data = bytearray(log.read_bytes())
    position, changed, number = 0, 0, 0
    while position < len(data):
        size = struct.unpack_from(">i", data, position + 8)[0] + 12
        stored = data[position : position + size]
        if old in stored and batch in (None, number):
            stored = stored.replace(old, new)
            struct.pack_into(">I", stored, 17, crc32c(bytes(stored[21:])))
            data[position : position + size] = stored
            changed += 1
        position, number = position + size, number + 1
    assert changed == 1
    log.write_bytes(data)


def drop_last_batches(log: pathlib.Path, keep_bytes: int) -> None:
    """Truncate a log after the last complete batch below `keep_bytes`, and delete its indexes."""
    data, position = log.read_bytes(), 0
    while position < len(data):
        size = struct.unpack_from(">i", data, position + 8)[0] + 12
        if position + size > keep_bytes:
            break
        position += size
    assert 0 < position < len(data)
    log.write_bytes(data[:position])
    for name in (".index", ".timeindex"):
        log.with_suffix(name).unlink()


def test_unchanged_records_pass_and_injected_faults_are_found(broker, admin, check) -> None:
    create(admin, "orders")
    create(admin, "payments")
    fill(broker, "orders")
    fill(broker, "payments")
    first = check("orders", "payments")
    assert first["verdict"] == "pass", first["reasons"]
    assert first["views"]["cluster"]["state"]["records"] == 700
    assert first["counts"]["chunk"]["explained"] == 8

    fill(broker, "orders", 130, prefix="later-")
    again = check("orders", "payments")
    assert again["verdict"] == "pass", again["reasons"]
    assert again["counts"]["chunk"]["match"] - again["counts"]["chunk"]["explained"] == 8
    assert again["counts"]["log"]["match"] == 4

    broker.stop()
    edit(logs(broker, "orders", 0)[0], b"\x18value-000100", b"\x18valu3-000100")
    truncated = logs(broker, "payments", 1)[0]
    drop_last_batches(truncated, truncated.stat().st_size // 2)
    broker.start()
    found = check("orders", "payments")
    assert found["verdict"] == "differ"
    assert rules(found) == ["records_changed", "truncated"]
    by_rule = {rule_of(difference): difference for difference in found["differences"]}
    assert by_rule["records_changed"]["key"] == '["orders",0,0,100]'
    sides = {side: json.loads(text) for side, text in by_rule["records_changed"]["sides"].items()}
    assert sides["baseline"]["hash"] != sides["cluster"]["hash"]
    assert sides["baseline"]["records"] == sides["cluster"]["records"] == 100
    assert by_rule["truncated"]["key"] == '["payments",1]'
    assert by_rule["truncated"]["sides"]["baseline"] == "175"
    assert found["files"]["differences.parquet"]["rows"] == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [(b"\x0atrace\x0c000100", b"\x0atrace\x0c000900"), (b"key-0\x18value-000100", b"key-9\x18value-000100")],
    ids=["header", "key"],
)
def test_every_part_of_a_record_is_compared(broker, admin, check, request, old, new) -> None:
    topic = f"parts-{request.node.callspec.id}"
    create(admin, topic)
    fill(broker, topic)
    assert check(topic)["verdict"] == "pass"
    broker.stop()
    log = logs(broker, topic, 0)[0]
    edit(log, old, new)
    broker.start()
    assert rules(check(topic)) == ["records_changed"]


def test_transactions_are_read_with_their_markers(broker, admin, check) -> None:
    create(admin, "ledger", 1)
    producer = Producer({"bootstrap.servers": str(broker.address), "transactional.id": "t1", "log_level": 0})
    producer.init_transactions(60)
    for number in range(12):
        producer.begin_transaction()
        for record in range(20):
            producer.produce("ledger", b"%d-%d" % (number, record))
        producer.flush(30)
        producer.abort_transaction(30) if number % 3 == 0 else producer.commit_transaction(30)
    result = check("ledger")
    assert result["verdict"] == "pass", result["reasons"]
    assert result["views"]["cluster"]["state"]["records"] == 252  # aborted ones and 12 markers included
    assert result["counts"]["transaction"]["explained"] == 1
    producer.begin_transaction()
    producer.produce("ledger", b"undecided")
    producer.flush(30)
    assert check("ledger")["verdict"] == "pass"
    producer.commit_transaction(30)
    again = check("ledger")
    assert again["verdict"] == "pass"
    assert again["counts"]["transaction"]["match"] == 1
    # the first transaction was aborted: its marker now says that it was committed
    broker.stop()
    edit(logs(broker, "ledger", 0)[0], b"\x08\x00\x00\x00\x00\x0c", b"\x08\x00\x00\x00\x01\x0c", batch=1)
    broker.start()
    found = check("ledger")
    assert rules(found) == ["records_changed"]
    assert found["differences"][0]["key"] == '["ledger",0,0,100]'


def test_compressed_batches_are_compared_as_stored(broker, admin, check) -> None:
    create(admin, "packed", 1)
    for codec in ("gzip", "snappy", "lz4", "zstd", "none"):
        fill(broker, "packed", 60, 1, compression=codec)
    first = check("packed")
    assert first["views"]["cluster"]["state"]["records"] == 300
    assert check("packed")["verdict"] == "pass"
    broker.stop()
    log = logs(broker, "packed", 0)[0]
    data = bytearray(log.read_bytes())
    struct.pack_into(">i", data, 12, 1 << 20)  # the leader epoch, which no checksum covers
    log.write_bytes(data)
    broker.start()
    assert rules(check("packed")) == ["records_changed"]


def test_batch_that_the_log_start_cuts_and_a_damaged_batch(broker, admin, check) -> None:
    create(admin, "cut", 1)
    fill(broker, "cut", 350, 1)
    delete_records(admin, "cut", 107)  # within a batch
    assert check("cut")["verdict"] == "pass"
    again = check("cut")
    assert again["verdict"] == "pass", again["differences"]
    assert again["counts"]["chunk"]["match"] == 3
    broker.stop()
    log = logs(broker, "cut", 0)[0]
    log.write_bytes(log.read_bytes().replace(b"value-000250", b"value-000999"))  # its checksum is wrong now
    broker.start()
    result = check("cut", timeout=6)
    assert result["verdict"] == "incomplete"
    assert "cut-0 could not be read to its end" in result["reasons"][0]
    assert "wrong checksum" in result["reasons"][0]
    counts = result["counts"]["chunk"]
    assert counts["skipped"] >= 1
    assert counts["match"] + counts["skipped"] == counts["read"] == 3


def test_only_the_retention_of_the_baseline_explains_missing_records(broker, admin, check) -> None:
    create(admin, "timed", 1, retention_ms="90000")  # Kafka deletes its records in half a minute at the earliest
    create(admin, "sized", 1, segment_bytes="2000", retention_ms="-1", retention_bytes="1")
    create(admin, "lowered", 1, segment_bytes="2000", retention_ms="-1")
    create(admin, "kept", 1, retention_ms="-1")
    for topic in ("timed", "lowered", "kept"):
        fill(broker, topic, partitions=1)
    assert check("timed", "sized", "kept")["verdict"] == "pass"
    fill(broker, "sized", partitions=1)
    wait_for(lambda: log_start(admin, "sized") > 100, 60, "retention of sized")
    delete_records(admin, "timed", 150)
    result = check("timed", "sized", "kept")
    assert result["verdict"] == "pass", result["differences"]
    assert "retention.ms 90000" in result["comparisons"][0]["note"]
    # a log start that retention does not explain
    delete_records(admin, "kept", 150)
    result = check("timed", "sized", "kept")
    assert rules(result) == ["log_start_moved"]
    assert check("timed", "sized", "kept", purged_topics=["kept"])["verdict"] == "pass"
    # a retention that was lowered after the baseline
    check.baselines.clear()
    assert check("lowered")["verdict"] == "pass"
    set_config(admin, "lowered", "retention.ms", "1000")
    wait_for(lambda: log_start(admin, "lowered") > 100, 60, "retention of lowered")
    result = check("lowered")
    assert result["verdict"] == "incomplete"
    assert "retention.ms was -1 and is 1000" in result["reasons"][0]
    assert "quorumshift_fingerprint_exclude" in result["reasons"][0]


def test_one_expired_record_does_not_explain_those_beside_it(broker, admin, check) -> None:
    """Kafka deletes a segment when its newest record has expired."""
    create(admin, "beside", 1, retention_ms="600000")
    producer = Producer({"bootstrap.servers": str(broker.address), "log_level": 0})
    producer.produce("beside", b"old", b"key", partition=0, timestamp=int(time.time() * 1000) - 86_400_000)
    assert producer.flush(60) == 0
    fill(broker, "beside", 250, 1)
    assert check("beside")["verdict"] == "pass"
    delete_records(admin, "beside", 90)
    result = check("beside")
    wrong = table.evaluate("records", "before_controllers", [EXPIRED], result, strict=False)
    assert not wrong, result["reasons"]


EXPIRED = table.Row(
    "90 records vanish, of which only the first is older than retention.ms",
    table.said("differ|incomplete", "beside"),
)


def test_compaction_passes_and_a_lost_key_is_found(broker, admin, check) -> None:
    config = {
        "cleanup_policy": "compact",
        "segment_bytes": "1500",
        "min_cleanable_dirty_ratio": "0.01",
        "delete_retention_ms": "3600000",
    }
    create(admin, "profiles", 1, **config)
    fill(broker, "profiles", 300, 1)
    first = check("profiles")
    assert first["verdict"] == "pass", first["reasons"]
    assert first["counts"]["key"]["explained"] == 50
    fill(broker, "profiles", 20, 1, prefix="newer-")
    cleaned = broker.home / "data" / "cleaner-offset-checkpoint"
    wait_for(lambda: cleaned.exists() and "profiles 0 300" in cleaned.read_text(), 60, "compaction")
    again = check("profiles")
    assert again["verdict"] == "pass", again["differences"]
    assert "20 key: superseded by a later record" in again["comparisons"][0]["note"]
    # a key disappears without a later record or a tombstone: its record gets another key
    broker.stop()
    found = [log for log in logs(broker, "profiles", 0) if b"key-45" in log.read_bytes()]
    edit(found[-1], b"key-45", b"key-46")
    broker.start()
    assert "key_vanished" in rules(check("profiles"))


def test_decreased_group_offset_is_found(broker, admin, check) -> None:
    create(admin, "read", 1)
    fill(broker, "read", 100, 1)
    consumer = Consumer({"bootstrap.servers": str(broker.address), "group.id": "readers", "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition("read", 0, 80)], asynchronous=False)
    consumer.close()
    assert check("read")["verdict"] == "pass"
    commit(admin, "readers", "read", 40)
    reset = check("read")
    assert reset["verdict"] == "pass", reset["differences"]
    assert "offset 80, now 40: committed since the baseline, by the newest record of its key" in json.dumps(reset)
    # the record of a commit is lost
    sizes = {log: log.stat().st_size for number in range(3) for log in logs(broker, "__consumer_offsets", number)}
    commit(admin, "readers", "read", 60)
    assert check("read")["verdict"] == "pass"
    broker.stop()
    for log, size in sizes.items():
        os.truncate(log, size)
    broker.start()
    result = check("read")
    assert "group_regressed" in rules(result), "beside the end of the internal topic's log"
    assert {"baseline": "60", "cluster": "40"} in [difference["sides"] for difference in result["differences"]]


def test_group_that_a_client_deleted_is_excused_by_its_tombstones(broker, admin, check) -> None:
    create(admin, "left", 1)
    fill(broker, "left", 100, 1)
    commit(admin, "leavers", "left", 80)
    assert check("left")["verdict"] == "pass"
    delete_group(admin, "leavers")
    result = check("left")
    assert result["verdict"] == "pass", result["reasons"]
    (entry,) = [entry for entry in result["changed"] if "leavers" in entry["key"]]
    assert re.match(r"offset 80, now none: .* its tombstone is at offset \d+ of __consumer_offsets-\d", entry["why"])


def test_what_is_not_covered_is_no_pass(broker, admin, check) -> None:
    create(admin, "covered", 1)
    create(admin, "added", 1)
    fill(broker, "covered", 50, 1)
    fill(broker, "added", 50, 1)
    late = check("covered", gate="after_finalize")
    assert late["verdict"] == "incomplete"
    assert "no baseline" in late["reasons"][0]
    assert "quorumshift_fingerprint_topics" in late["reasons"][0]
    check.baselines.clear()
    nothing = check("covered", "no-such-*")
    assert nothing["verdict"] == "incomplete"
    assert "'no-such-*'" in nothing["reasons"][0]
    check.baselines.clear()
    assert check("covered")["verdict"] == "pass"
    more = check("covered", "added", gate="after_finalize")
    assert more["verdict"] == "incomplete"
    assert "topic added existed at the baseline and was not read then" in more["reasons"][0]


def test_what_the_principal_may_not_read_is_named(broker, admin, check) -> None:
    for topic in ("shown", "hidden"):
        create(admin, topic, 1)
        fill(broker, topic, 50, 1)
    commit(admin, "shown", "shown", 10)
    assert check("shown", "hidden", auditor=True)["verdict"] == "pass"
    # The auditor may do everything with a resource that has no ACL
    with acl(admin, ResourceType.TOPIC, "hidden", "User:other", AclOperation.READ):
        result = check("*", auditor=True, exclude=["[!sh]*"])
        assert result["verdict"] == "incomplete", result["reasons"]
        (entry,) = [entry for entry in result["undecided"] if entry["key"] == '["hidden"]']
        assert "no DESCRIBE" in entry["why"]
        assert not result["differences"]  # it is not taken for deleted
        result = check("shown", auditor=True, exclude=["hidden"])
        assert result["verdict"] == "pass", result["reasons"]
    with acl(admin, ResourceType.TOPIC, "__consumer_offsets", "User:auditor", AclOperation.DESCRIBE):
        result = check("shown", auditor=True)
        assert result["verdict"] == "error"
        assert "--operation Read --topic __consumer_offsets" in result["reasons"][0]
    with acl(admin, ResourceType.BROKER, "kafka-cluster", "User:other", AclOperation.CREATE):
        result = check("shown", auditor=True)
        assert result["verdict"] == "error"
        assert "--operation Describe --cluster" in result["reasons"][0]


def test_deleted_and_recreated_topics_and_an_unreachable_cluster(broker, admin, check, spark, tmp_path) -> None:
    for topic in ("deleted", "recreated"):
        create(admin, topic, 1)
        fill(broker, topic, 50, 1)
    assert check("deleted", "recreated")["verdict"] == "pass"
    for future in admin.delete_topics(["deleted", "recreated"]).values():
        future.result(30)
    wait_for(lambda: (found := metadata(admin)) and "recreated" not in found.topics, 30, "deletion")
    create(admin, "recreated", 1)
    fill(broker, "recreated", 50, 1)
    assert rules(check("deleted", "recreated")) == ["topic_missing", "topic_recreated"]

    output = tmp_path / "unreachable"
    output.mkdir()
    views = {"cluster": {"bootstrap_servers": f"127.0.0.1:{free_port()}"}}
    job = {"nonce": "x", "cluster_id": "c", "output": str(output), "views": views, "bounds": {"request_timeout_s": 3}}
    result = done(job, tmp_path)
    assert result["verdict"] == "error"
    assert "127.0.0.1" in result["reasons"][0]
    assert result["views"]["cluster"]["error"] == result["reasons"][0]


def test_spark_submit_leaves_no_secret(broker, admin, tmp_path) -> None:
    create(admin, "submitted")
    create(admin, "submitted-compacted", cleanup_policy="compact")
    fill(broker, "submitted")
    fill(broker, "submitted-compacted")
    output, events, archive = tmp_path / "out", tmp_path / "events", tmp_path / "quorumshift_spark.zip"
    output.mkdir()
    events.mkdir()
    package.build(str(archive))
    job = {
        "nonce": "n",
        "cluster_id": admin.describe_cluster().result(30).cluster_id,
        "output": str(output),
        "views": {
            "cluster": {
                "bootstrap_servers": str(broker.listeners["SASL_PLAINTEXT"]),
                "client": AUDITOR,
            }
        },
        "fingerprint": {"topics": ["submitted*"]},
    }
    path = tmp_path / "job.json"
    path.write_text(json.dumps(job))
    path.chmod(0o600)
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.log.level": "INFO",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": SMALL_JVM,
    }
    command = [str(pathlib.Path(sys.executable).with_name("spark-submit")), "--master", "local[1]"]
    command += ["--driver-memory", "512m", "--py-files", str(archive)]
    command += [text for name, value in conf.items() for text in ("--conf", f"{name}={value}")]
    command += [submit.__file__, "data_fingerprint", "--input", str(path)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with open(tmp_path / "spark.log", "wb") as log:
        running = subprocess.Popen(
            command, stdout=log, stderr=log, env={**environment, "PYSPARK_PYTHON": sys.executable}, cwd=tmp_path
        )
        try:
            shown, end = set(), time.monotonic() + 300
            while running.poll() is None and time.monotonic() < end:
                shown.update(command_lines())
                time.sleep(0.2)
            assert running.wait(1) == 0, (tmp_path / "spark.log").read_text()[-3000:]
        finally:
            running.kill()
    assert json.loads((output / "result.json").read_text())["verdict"] == "pass"
    path.unlink()
    left = {str(file): file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    assert any(b"SparkListenerTaskEnd" in text for name, text in left.items() if "events" in name)
    assert [name for name, text in left.items() if SECRET.encode() in text] == []
    assert any(b"SparkSubmit" in line for line in shown)
    assert not any(SECRET.encode() in line for line in shown)

    path.write_text(json.dumps(job))
    path.chmod(0o644)
    assert data_fingerprint.main(["--input", str(path)]) == 2


def command_lines() -> Set[bytes]:
    """Return the command line of every process."""
    lines = set()
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            lines.add(path.read_bytes())
    return lines


@contextlib.contextmanager
def acl(admin: AdminClient, kind: ResourceType, name: str, principal: str, operation: AclOperation) -> Iterator[None]:
    """Allow an operation on a resource for a time; the broker knows it."""
    place = (kind, name, ResourcePatternType.LITERAL, principal, "*", operation, AclPermissionType.ALLOW)
    binding, only = AclBinding(*place), AclBindingFilter(*place)
    admin.create_acls([binding])[binding].result(30)
    wait_for(lambda: admin.describe_acls(only).result(30), 30, "the ACL")
    try:
        yield
    finally:
        admin.delete_acls([only])[only].result(30)
    wait_for(lambda: not admin.describe_acls(only).result(30), 30, "deletion of the ACL")


def set_config(admin: AdminClient, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(30)
