# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""metadata_parity on local Spark with real servers: ZooKeeper, a broker and a controller, along a migration."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
from unittest.mock import ANY

import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import metadata_summary
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.snapshots import metadata_snapshot
from confluent_kafka import admin
from quorumshift_spark import package
from quorumshift_spark.normal_form import canonical
from quorumshift_spark.views.baseline import SCHEMA, BaselineWriter, about

from tests.integration import seeded, servers
from tests.integration.seeded import CHROOT
from tests.spark import parity
from tests.spark.parity import Run

pytestmark = pytest.mark.real
# On a small machine Spark takes the processor for seconds
SETTINGS = {**seeded.SETTINGS, "zookeeper.session.timeout.ms": "10000"}
SECRETS = ("topsecret", "encodersecret", "tokensecret", "password=b")
LOGIN = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_username": "admin",
    "sasl_password": "x",
}
OTHER = "AAAAAAAAAAAAAAAAAAAAAA"  # a cluster id
ENCODER = [SETTINGS["password.encoder.secret"]]


@pytest.fixture(scope="module")
def home():
    with servers.workdir("spark_parity") as path:
        yield path


@pytest.fixture(scope="module")
def zk(home):
    with servers.zookeeper(home) as server:
        yield server


@pytest.fixture(scope="module")
def broker(home, zk):
    with seeded.broker(home, zk, SETTINGS) as server:
        yield server


@pytest.fixture(scope="module")
def spark():
    with parity.local_spark() as session:
        yield session


@pytest.fixture(scope="module")
def views(zk, broker, spark):
    return {
        "zookeeper": {"connect": zk.connect + CHROOT, "password_encoder_secrets": ENCODER},
        "brokers": [{"id": 1, "address": str(broker.listeners["SASL"]), "client": LOGIN}],
    }


@pytest.fixture
def client(zk, broker):
    with zookeeper.connect(zk.connect + CHROOT) as connected:
        yield connected


@pytest.fixture(scope="module")
def first(home, views):
    return Run(home, "before_controllers", views, cluster_id=servers.CLUSTER_ID).go()


def change(client, path, **fields):
    """Change members of a znode's JSON. Return the value before, to restore it."""
    before, stat = client.get(path)
    value = json.loads(before)
    value.update(fields)
    client.set(path, json.dumps(value).encode(), stat.version)
    return before


def test_first_gate_passes_and_creates_a_baseline(first):
    assert first.verdict == "pass", first.story()
    counts = first.result["counts"]
    assert set(counts) == {"topic", "partition", "acl", "delegation_token", "broker"}
    assert first.result["comparisons"][0]["same_source"] == ["config", "quota", "scram"]
    for kind, found in counts.items():
        assert found["read"] == found["match"] > 0, kind
        assert found["skipped"] == found["explained"] == 0
    rows = pandas.read_parquet(first.baseline["path"])
    assert len(rows) == sum(first.result["views"]["zookeeper"]["read"].values())
    assert list(rows.columns) == SCHEMA.names
    config = rows[rows.key == '["broker","1","listener.name.external.ssl.key.password"]'].iloc[0]
    assert list(json.loads(config.fields)["value"]) == ["digest"]
    assert json.loads(config["at"])["zxid"] > 0
    assert first.result["files"]["entities.parquet"]["rows"] == len(rows)


def test_zookeepers_files_hold_what_the_server_answers(home, zk, views, first):
    files = {"data_dir": str(zk.home / "data"), "chroot": CHROOT, "password_encoder_secrets": ENCODER}
    given = {**views, "zookeeper": files, "baseline": first.baseline}
    run = Run(home, "before_trigger", given, cluster_id=servers.CLUSTER_ID).go()
    assert run.verdict == "pass", run.story()
    assert run.result["views"]["zookeeper"]["read"] == first.result["views"]["zookeeper"]["read"]


def test_gate_with_a_baseline_passes_and_lists_changes(home, views, first, client):
    client.ensure_path("/config/topics")
    before = change(client, "/config/topics/orders", config={"cleanup.policy": "compact", "retention.ms": "8000"})
    try:
        views = {**views, "baseline": first.baseline}
        run = Run(home, "before_trigger", views, cluster_id=servers.CLUSTER_ID).go()
    finally:
        client.set("/config/topics/orders", before)
    assert run.verdict == "pass", run.story()
    (changed,) = run.result["changed"]
    assert (changed["left"], changed["key"]) == ("baseline:zookeeper", '["topic","orders","retention.ms"]')
    assert run.result["counts"]["config"]["explained"] == 1
    assert list(changed["differences"][0]["sides"].values()) == ['"9000"', '"8000"']


@contextlib.contextmanager
def topic(broker, client, name, partitions):
    """Create a topic, and delete it after the block, each until ZooKeeper and the broker show it."""
    admins = admin.AdminClient({"bootstrap.servers": str(broker.listeners["PLAINTEXT"])})

    def exists(wanted):
        found = servers.metadata(admins)
        return found and (name in client.get_children(znodes.TOPICS)) is (name in found.topics) is wanted

    servers.create_topics(admins, [admin.NewTopic(name, partitions, 1)])
    servers.wait_for(lambda: exists(True), 30, f"topic {name}")
    try:
        yield
    finally:
        admins.delete_topics([name])[name].result(30)
        servers.wait_for(lambda: exists(False), 30, f"the removal of topic {name}")


def test_no_change_excuses_a_topic_that_vanished_or_a_value_that_fell(home, views, first, broker, client):
    """The baseline has a topic that nothing removed, an epoch and producer ids above those of now, and is old."""
    made = first.baseline["path"]
    rows = pq.read_table(made).to_pylist()
    zookeeper_rows = {(row["kind"], row["key"]): row for row in rows if row["view"] == "zookeeper"}
    orders = next(row for row in rows if (row["view"], row["topic"], row["partition"]) == ("zookeeper", "orders", 0))
    orders["leader_epoch"] = 50
    rows.append({**zookeeper_rows[("topic", '["orders"]')], "key": '["vanished"]'})
    states = about(made)["states"]
    path = home / "vanished.parquet"
    with BaselineWriter(
        str(path), {**about(made), "states": {"zookeeper": {**states["zookeeper"], "zxid": 0}}}, parity.DIGEST_KEY
    ) as writer:
        writer.write(pa.Table.from_pylist(rows, pq.read_schema(made)))
    with topic(broker, client, "created", 1):
        given = {**views, "baseline": {"path": str(path)}}
        run = Run(home, "before_trigger", given, cluster_id=servers.CLUSTER_ID).go()
    assert run.verdict == "differ", run.story()
    found = {
        (difference["kind"], difference["key"], difference["field"])
        for difference in run.result["differences"]
        if difference["relation"] == "since"
    }
    assert found == {("partition", '["orders",0]', "leader_epoch"), ("topic", '["vanished"]', None)}


def test_a_topic_that_is_deleted_is_listed_with_what_shows_it(home, views, broker, client):
    with topic(broker, client, "doomed", 2):
        baseline = Run(home, "before_controllers", views, cluster_id=servers.CLUSTER_ID).go()
        assert baseline.verdict == "pass", baseline.story()
    run = Run(home, "before_trigger", {**views, "baseline": baseline.baseline}, cluster_id=servers.CLUSTER_ID).go()
    assert run.verdict == "pass", run.story()
    changed = {
        (changed_entity["kind"], changed_entity["key"]): changed_entity["why"]
        for changed_entity in run.result["changed"]
    }
    assert set(changed) == {("topic", '["doomed"]'), ("partition", '["doomed",0]'), ("partition", '["doomed",1]')}
    assert set(changed.values()) == {"removed since the baseline (znodes deleted below /brokers/topics: 1)"}


def test_a_registered_broker_that_is_not_in_the_inventory_is_incomplete(home, views, client):
    registration = client.get("/brokers/ids/1")[0]
    client.create("/brokers/ids/7", registration, ephemeral=True)
    try:
        run = Run(home, "before_controllers", views, cluster_id=servers.CLUSTER_ID).go()
    finally:
        client.delete("/brokers/ids/7")
    assert run.verdict in ("incomplete", "differ"), run.story()
    assert any("nothing compared what registered brokers serve: 7." in reason for reason in run.result["reasons"])


def test_differences_between_zookeeper_and_a_broker_are_found(home, views, first, client):
    state = znodes.partition_state_path("orders", 2)
    topic = znodes.topic_path("plain")
    before = {
        state: change(client, state, leader_epoch=7, isr=[1, 9]),
        topic: change(client, topic, topic_id="AAAAAAAAAAAAAAAAAAAAAQ"),
    }
    try:
        run = Run(home, "before_controllers", views, cluster_id=servers.CLUSTER_ID).go()
    finally:
        for path, data in before.items():
            client.set(path, data)
    assert run.verdict == "differ", run.story()
    assert len(run.result["differences"]) == 3, run.story()
    assert run.found("partition", ["orders", 2], "leader_epoch")["sides"] == {"zookeeper": "7", "broker:1": "0"}
    assert run.found("partition", ["orders", 2], "isr")["sides"] == {"zookeeper": "[1,9]", "broker:1": "[1]"}
    assert run.found("topic", ["plain"], "id")["sides"]["zookeeper"] == '"AAAAAAAAAAAAAAAAAAAAAQ"'
    assert [entry["proven"] for entry in run.result["rounds"]] == [0, 2]
    rows = pandas.read_parquet(run.output / "differences.parquet")
    assert sorted(rows["field"]) == ["id", "isr", "leader_epoch"]
    assert not pathlib.Path(run.baseline["path"]).exists() and "entities.parquet" not in run.result["files"]


def test_many_rows_become_the_baseline_only_once_they_pass(home, views, first, client, monkeypatch):
    """They are not kept in memory, and written after the comparison."""
    monkeypatch.setattr("quorumshift_spark.rows._FEW_ROWS", 0)
    passed = Run(home, "before_controllers", views, cluster_id=servers.CLUSTER_ID).go()
    assert passed.verdict == "pass", passed.story()
    written, kept = (
        pq.read_table(run_result.baseline["path"]).drop_columns(["at", "changed", "partition_epoch"]).to_pylist()
        for run_result in (passed, first)
    )
    assert sorted(map(str, written)) == sorted(map(str, kept))
    state = znodes.partition_state_path("orders", 2)
    before = change(client, state, leader_epoch=7)
    try:
        failed = Run(home, "before_controllers", views, cluster_id=servers.CLUSTER_ID).go()
    finally:
        client.set(state, before)
    assert failed.verdict == "differ", failed.story()
    assert not pathlib.Path(failed.baseline["path"]).exists()


def test_encrypted_config_without_its_secret_is_incomplete(home, views):
    plain = {name: value for name, value in views["zookeeper"].items() if name != "password_encoder_secrets"}
    run = Run(home, "before_controllers", {**views, "zookeeper": plain}, cluster_id=servers.CLUSTER_ID).go()
    assert run.verdict == "incomplete", run.story()
    assert any("password.encoder.secret" in reason for reason in run.result["reasons"])
    assert [pair["counts"]["config"]["skipped"] for pair in run.result["comparisons"]] == [1]


@pytest.mark.parametrize(
    ("views_changed", "named"),
    [
        ({"zookeeper": {"connect": "127.0.0.1:1"}}, "view zookeeper could not be read: no ZooKeeper session"),
        ({"brokers": [{"id": 1, "address": "127.0.0.1:1"}]}, "view broker:1 could not be read: broker 1"),
        ({"baseline": {"path": "/nowhere/entities.parquet"}}, "/nowhere/entities.parquet"),
    ],
)
def test_view_that_cannot_be_read_is_an_error_that_names_it(home, views, views_changed, named):
    bounds = {"request_timeout_s": 2}
    run = Run(home, "before_controllers", {**views, **views_changed}, cluster_id=servers.CLUSTER_ID, bounds=bounds).go()
    assert run.verdict == "error"
    assert named in run.result["reasons"][0]


def test_zookeeper_of_another_cluster_is_rejected(home, views):
    run = Run(home, "before_controllers", views, cluster_id=OTHER).go()
    assert run.verdict == "error"
    assert f"holds cluster {servers.CLUSTER_ID}, not {OTHER}" in run.result["reasons"][0]


@pytest.mark.parametrize(
    ("field", "other", "reason"), [("cluster_id", OTHER, OTHER), ("key_id", "0" * 16, "digest key")]
)
def test_baseline_of_another_cluster_or_key_is_rejected(home, views, first, field, other, reason):
    made = first.baseline["path"]
    path = home / f"{field}.parquet"
    with BaselineWriter(str(path), {**about(made), field: other}, parity.DIGEST_KEY) as writer:
        writer.write(pq.read_table(made))
    given = {**views, "baseline": {"path": str(path)}}
    run = Run(home, "before_trigger", given, cluster_id=servers.CLUSTER_ID).go()
    assert run.verdict == "error"
    assert any("view baseline:zookeeper" in text and reason in text for text in run.result["reasons"]), run.story()


# --- the cluster migrates -------------------------------------------------------------------


@pytest.fixture(scope="module")
def migrated(home, zk, broker, first):
    """Start a controller that copies the metadata; the broker runs in migration mode."""
    broker.stop()
    with seeded.migration(home, zk, broker) as migrating:
        migrating.join()
        log = str(migrating.controller.home / "data" / "__cluster_metadata-0")
        snapshots = parity.Snapshots(home, log, zk.connect + CHROOT)
        servers.wait_for(lambda: snapshots.fence()["migration_offset"] > 0, 60, "the copy")
        servers.wait_for(
            lambda: not metadata_summary.summarise(log)["brokers"]["1"]["fenced"],
            60,
            "the broker to be unfenced in the log",
        )
        yield snapshots


def test_copy_equals_zookeeper(home, views, first, migrated):
    fence = migrated.fence()
    views = {**views, "metadata_log": migrated.cut(), "baseline": first.baseline}
    run = Run(home, "after_copy", views, cluster_id=servers.CLUSTER_ID, fence=fence).go()
    assert run.verdict == "pass", run.story()
    assert run.result["counts"]["producer_ids"]["match"] > 0
    assert any("do not show what KRaft holds" in comparison["note"] for comparison in run.result["comparisons"])
    assert {c["relation"] for c in run.result["comparisons"]} == {"zookeeper_log", "served", "since"}


def config_of(client, path):
    return dict(json.loads(client.get(path)[0])["config"])


def plant(client):
    """Change every kind in ZooKeeper. Return {(kind, key, field): ZooKeeper's side} and a function that reverts it."""
    token = "/".join((znodes.DELEGATION_TOKENS, client.get_children(znodes.DELEGATION_TOKENS)[0]))
    alice, bob = "/config/users/" + znodes.sanitize("al ice@x*~"), "/config/users/bob"
    broker, default = "/config/brokers/1", "/config/brokers/<default>"
    acls, prefixed = "/kafka-acl/Topic/orders", "/kafka-acl-extended/prefixed/Group/g-"
    scram = config_of(client, bob)
    scram["SCRAM-SHA-256"] = re.sub("stored_key=....", "stored_key=AAAA", scram["SCRAM-SHA-256"])
    orders = json.loads(client.get(znodes.topic_path("orders"))[0])["partitions"]
    entries = json.loads(client.get(acls)[0])["acls"]
    reader = next(entry for entry in entries if entry["operation"] == "Read")
    others = [entry for entry in entries if entry is not reader]
    denied = json.loads(client.get(prefixed)[0])["acls"]
    changes = {
        znodes.topic_path("orders"): {"partitions": {**orders, "3": [1, 9]}},
        znodes.partition_state_path("orders", 0): {"leader_epoch": 5},
        znodes.partition_state_path("orders", 1): {"isr": [1, 9]},
        znodes.topic_path("a.b_c"): {"topic_id": "AAAAAAAAAAAAAAAAAAAAAQ"},
        "/config/topics/orders": {"config": {"cleanup.policy": "compact", "retention.ms": "9001"}},
        default: {"config": {}},
        broker: {"config": {**config_of(client, broker), PASSWORD: seeded.encoded("an other secret")}},
        alice: {"config": {**config_of(client, alice), "producer_byte_rate": "1025"}},
        bob: {"config": scram},
        acls: {"acls": others},
        prefixed: {"acls": [*denied, {**denied[0], "principal": "User:mallory", "permissionType": "Allow"}]},
        token: {"expiryTimestamp": "1"},
        znodes.PRODUCER_ID_BLOCK: {"block_start": "700000", "block_end": "700999"},
    }
    before = {path: change(client, path, **fields) for path, fields in changes.items()}
    deleted = {node.path: node.data for node in zookeeper.read_tree(client, znodes.topic_path("plain"))}
    client.delete(znodes.topic_path("plain"), recursive=True)
    client.create(znodes.topic_path("ghost"), znodes.topic_value({"0": [1]}, "AAAAAAAAAAAAAAAAAAAAAg"))

    def revert():
        client.delete(znodes.topic_path("ghost"))
        for path, data in deleted.items():
            client.create(path, data)
        for path, data in before.items():
            client.set(path, data)

    alice_quota = (("user", "al ice@x*~"),), "producer_byte_rate"
    planted = {
        ("partition", ("orders", 3), "replicas"): "[1,9]",
        ("partition", ("orders", 0), "leader_epoch"): "5",
        ("partition", ("orders", 1), "isr"): "[1,9]",
        ("topic", ("a.b_c",), "id"): '"AAAAAAAAAAAAAAAAAAAAAQ"',
        ("config", ("topic", "orders", "retention.ms"), "value"): '"9001"',
        ("config", ("broker", None, "message.max.bytes"), None): None,
        ("config", ("broker", "1", PASSWORD), "value"): ANY,
        ("quota", alice_quota, "value"): "1025.0",
        ("scram", ("bob", "SCRAM-SHA-256"), "digest"): ANY,
        ("acl", ("TOPIC", "LITERAL", "orders", "User:bob", "*", "READ", "ALLOW"), None): None,
        ("acl", ("GROUP", "PREFIXED", "g-", "User:mallory", "10.0.0.1", "ALL", "ALLOW"), None): "{}",
        ("delegation_token", (token.rpartition("/")[2],), "expiry"): "1",
        ("producer_ids", (), "next"): "701000",
        ("topic", ("plain",), None): None,
        ("partition", ("plain", 0), None): None,
        ("partition", ("plain", 1), None): None,
        ("topic", ("ghost",), None): ANY,
        ("partition", ("ghost", 0), None): ANY,
    }
    return {(kind, canonical(list(key)), field): side for (kind, key, field), side in planted.items()}, revert


PASSWORD = "listener.name.external.ssl.key.password"


def last_zxid(client):
    client.set("/config", client.get("/config")[0])
    return client.get("/config")[1].mzxid


def test_every_change_in_zookeeper_is_found_with_both_sides(home, views, first, migrated, client):
    planted, revert = plant(client)
    try:
        fence = migrated.fence_after(last_zxid(client))
        views = {**views, "metadata_log": migrated.cut(), "baseline": first.baseline}
        run = Run(home, "after_copy", views, cluster_id=servers.CLUSTER_ID, fence=fence).go()
    finally:
        revert()
    assert run.verdict == "differ", run.story()
    of_log = [d for d in run.result["differences"] if d["relation"] == "zookeeper_log"]
    assert {(d["kind"], d["key"], d["field"]): d["sides"]["zookeeper"] for d in of_log} == planted, run.story()
    for difference in of_log:
        assert difference["sides"]["zookeeper"] != difference["sides"]["metadata_log"]
        assert difference["do"] and difference["rule"]
    # a change without a record in the log, and no server's files: the copy may have lost it
    assert {entry["left"] for entry in run.result["undecided"]} == {"baseline:zookeeper"}
    assert {(undecided["kind"], undecided["key"]) for undecided in run.result["undecided"]} <= {
        (kind, key) for kind, key, _field in planted
    }
    text = (run.output / "result.json").read_text()
    assert not [secret for secret in (*SECRETS, "an other secret") if secret in text]


def test_change_after_the_snapshot_is_incomplete_not_different(home, views, first, migrated, client):
    fence, cut = migrated.fence(), migrated.cut()
    before = change(client, znodes.partition_state_path("orders", 0), leader_epoch=5)
    views = {**views, "metadata_log": cut, "baseline": first.baseline}
    more = {"cluster_id": servers.CLUSTER_ID, "fence": fence}
    try:
        run = Run(home, "after_copy", views, bounds={"rounds": 2}, **more).go()
        assert run.verdict == "incomplete", run.story()
        (undecided,) = [entry for entry in run.result["undecided"] if entry["right"] == "metadata_log"]
        assert "after the snapshot of the log" in undecided["why"]
        assert undecided["differences"][0]["sides"] == {"zookeeper": "5", "metadata_log": "0"}
        again = Run(home, "after_copy", views, bounds={"log_refresh_s": 30}, **more)
        with migrated.answering(again):
            again.go()
    finally:
        client.set(znodes.partition_state_path("orders", 0), before)
    assert again.verdict == "differ", again.story()
    assert again.found("partition", ["orders", 0], "leader_epoch")


def test_no_false_alarm_while_metadata_changes(home, views, first, migrated, broker):
    stop, errors = threading.Event(), []

    def admin_loop():
        client = admin.AdminClient({"bootstrap.servers": str(broker.listeners["PLAINTEXT"])})
        for number in itertools.count():
            if stop.is_set():
                return
            try:
                topic = admin.NewTopic(f"loop.{number}", 2, 1, config={"retention.ms": str(1000 + number)})
                servers.create_topics(client, [topic])
                if number > 3:
                    client.delete_topics([f"loop.{number - 3}"])[f"loop.{number - 3}"].result(30)
            except Exception as error:  # shown below
                errors.append(error)
                return

    thread = threading.Thread(target=admin_loop, daemon=True)
    thread.start()
    try:
        for dummy in range(3):
            fence = migrated.fence()
            now = {**views, "metadata_log": migrated.cut(), "baseline": first.baseline}
            more = {"cluster_id": servers.CLUSTER_ID, "fence": fence, "bounds": {"log_refresh_s": 30, "rounds": 10}}
            run = Run(home, "after_copy", now, **more)
            with migrated.answering(run):
                run.go()
            assert run.verdict == "pass", run.story()
    finally:
        stop.set()
        thread.join(60)
    assert not errors


def test_damaged_log_or_archive_is_an_error(home, views, first, migrated):
    cut = migrated.cut()
    log = home / "damaged"
    metadata_snapshot.unpack(cut["archive"], cut["sha256"], str(log))
    segment = max(log.glob("*.log"))
    complete = segment.read_bytes()

    def verdict(log_view):
        views_now = {**views, "metadata_log": log_view, "baseline": first.baseline}
        return Run(home, "after_copy", views_now, cluster_id=servers.CLUSTER_ID, fence=migrated.fence()).go()

    segment.write_bytes(complete[:-5])
    short = verdict({"directory": str(log), "end_offset": cut["end_offset"]})
    assert short.verdict == "error"
    assert "short of" in short.result["reasons"][0] and "metadata_log" in short.result["reasons"][0]
    segment.write_bytes(complete[:-5] + b"!" + complete[-4:])
    damaged = verdict({"directory": str(log), "end_offset": cut["end_offset"]})
    assert damaged.verdict == "error"
    assert segment.name in damaged.result["reasons"][0]
    other = verdict({**cut, "sha256": "0" * 64})
    assert other.verdict == "error"
    assert "SHA-256" in other.result["reasons"][0]


def test_spark_submit_with_the_archive_passes_and_leaves_no_secret(home, views, first, migrated):
    """As the role runs it: another process, code only from the zip."""
    fence = migrated.fence()
    views = {**views, "metadata_log": migrated.cut(), "baseline": first.baseline}
    run = Run(home, "after_copy", views, cluster_id=servers.CLUSTER_ID, fence=fence)
    job_file = run.write()
    events = home / "events"
    events.mkdir()
    package.build(str(home / "quorumshift_spark.zip"))
    conf = {**parity.CONF, "spark.eventLog.enabled": "true", "spark.eventLog.dir": events.as_uri()}
    conf["spark.eventLog.compress"] = "false"
    command = [str(pathlib.Path(sys.executable).with_name("spark-submit"))]
    command += [text for name, value in conf.items() for text in ("--conf", f"{name}={value}")]
    script = parity.ROOT / "spark" / "quorumshift_spark" / "submit.py"
    command += ["--py-files", str(home / "quorumshift_spark.zip"), str(script), "metadata_parity", "--input", job_file]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["PYSPARK_PYTHON"] = sys.executable
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=400, check=False, env=environment, cwd=str(home)
    )
    run.read()
    run.code = done.returncode
    assert run.verdict == "pass", run.story() + done.stderr[-3000:]
    left = [done.stdout, done.stderr, *(path.read_text() for path in events.rglob("*") if path.is_file())]
    left += [pandas.read_parquet(path).to_csv() for path in run.output.glob("*.parquet")]
    left.append((run.output / "result.json").read_text())
    assert len(left) > 4
    for secret in (*SECRETS, parity.DIGEST_KEY.decode(), '"sasl_password'):
        assert not [text for text in left if secret in text], secret


# --- the broker runs in KRaft mode ------------------------------------------------------------------------


def test_all_views_agree_once_the_broker_is_in_kraft_mode(home, views, first, migrated, broker):
    broker.stop()
    broker.configure(
        {
            **dict.fromkeys(
                (
                    "broker.id",
                    "zookeeper.connect",
                    "zookeeper.metadata.migration.enable",
                    "zookeeper.session.timeout.ms",
                    "inter.broker.protocol.version",
                    "password.encoder.secret",
                )
            ),
            "process.roles": "broker",
            "node.id": "1",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        }
    )
    broker.start()
    fence = migrated.fence()
    now = {**views, "metadata_log": migrated.cut(), "baseline": first.baseline}
    run = Run(home, "after_kraft", now, cluster_id=servers.CLUSTER_ID, fence=fence, bounds={"log_refresh_s": 30})
    with migrated.answering(run):
        run.go()
    assert run.verdict == "pass", run.story()
    assert "feature" in run.result["counts"]
    assert not any(comparison["note"] for comparison in run.result["comparisons"])
    last = Run(
        home,
        "after_finalize",
        {"metadata_log": migrated.cut(), "brokers": views["brokers"], "baseline": run.baseline},
        cluster_id=servers.CLUSTER_ID,
        bounds={"log_refresh_s": 30},
    )
    with migrated.answering(last):
        last.go()
    assert last.verdict == "pass", last.story()
    assert {c["left"] for c in last.result["comparisons"]} == {"metadata_log", "baseline:metadata_log"}
