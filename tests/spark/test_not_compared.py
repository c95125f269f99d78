# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metadata of another vendor's build, planted into a real ZooKeeper and into copies of a real metadata log.

Apache Kafka 3.9 does not have it, so no comparison sees it: it is listed, and keeps the gate closed without its token.
The tests use one cluster, in their order.
"""

from __future__ import annotations

import contextlib
import json
import pathlib

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import not_compared
from quorumshift_spark import report

from tests.integration import servers
from tests.integration.seeded import CHROOT
from tests.spark import parity
from tests.spark.planted import logs
from tests.spark.planted.world import World
from tests.unit.formats import metadata_batches as batches

pytestmark = pytest.mark.real
BUILD = "build=7.9.0-ce"
FOREIGN = ["7.9.0-ce"]
OTHER = "AAAAAAAAAAAAAAAAAAAAAA"  # a cluster id
TYPE = 15023


@pytest.fixture(scope="module")
def spark():
    with parity.local_spark() as session:
        yield session


@pytest.fixture(scope="module")
def world(spark):
    with contextlib.ExitStack() as stack:
        yield World(stack, stack.enter_context(servers.workdir("not_compared")))


def tokens(names, cluster_id=servers.CLUSTER_ID):
    return [not_compared.token(cluster_id, name) for name in names]


def listed(run):
    """Return {name: whether it is accepted} of a result."""
    assert run.result is not None, run.story()
    return {entry["name"]: entry["accepted"] for entry in run.result["not_compared"]}


def before(world, names=(), foreign=FOREIGN, **views):
    given = {"foreign": foreign, "accept_not_compared": tokens(names)}
    return world.run("before_controllers", views or None, **given)


# --- ZooKeeper ------------------------------------------------------------------------------------------


def test_a_build_of_another_vendor_closes_the_gate_without_its_token(world):
    run = before(world)
    assert run.verdict == "incomplete" and listed(run) == {BUILD: False}, run.story()
    assert not_compared.option(servers.CLUSTER_ID, [BUILD]) in " ".join(run.result["reasons"])
    foreign = {"foreign": FOREIGN, "accept_not_compared": tokens([BUILD], OTHER)}
    assert world.run("before_controllers", **foreign).verdict == "incomplete"  # another cluster's token
    foreign["accept_not_compared"] = tokens(["build=7.9.1-ce"])
    assert world.run("before_controllers", **foreign).verdict == "incomplete"  # another build's
    run = before(world, [BUILD])
    assert run.verdict == "pass" and listed(run) == {BUILD: True}, run.story()
    page = report.render(run.result)
    assert BUILD in page and "Not compared" in page


PLANTED = {
    "znode=/confluent",
    "znode=/config/cluster-links",
    "znode=/brokers/topics/*/mirror",
    "znode=/brokers/topics/*/partitions/*/state/x",
    "znode=/brokers/topics/*/partitions/*/observers",
    "znode=/kafka-acl-extended/other",
    "key=/brokers/topics/*:observers",
    "key=/config/topics/*:policy",
    "key=/brokers/topics/*/partitions/*/state:unclean",
}


@pytest.fixture(scope="module")
def planted(world):
    """Unknown znodes and keys, until the end of the module."""
    client = world.client
    for path in (
        "/confluent/metadata/deeper",
        "/config/cluster-links/dr",
        "/brokers/topics/orders/mirror",
        "/brokers/topics/orders/partitions/0/state/x",
        "/brokers/topics/orders/partitions/0/observers",
        "/kafka-acl-extended/other/Topic",
    ):
        client.create(path, b"{}", makepath=True)
    for path, key in (
        ("/brokers/topics/orders", "observers"),
        ("/config/topics/orders", "policy"),
        ("/brokers/topics/orders/partitions/0/state", "unclean"),
    ):
        data, _stat = client.get(path)
        client.set(path, json.dumps({**json.loads(data), key: {"0": [2]}}).encode())
    return client


def test_unknown_znodes_and_keys_are_listed_and_close_the_gate(world, planted):
    run = before(world, [BUILD])
    assert run.verdict == "incomplete", run.story()
    assert listed(run) == {BUILD: True, **dict.fromkeys(PLANTED, False)}
    first = {entry["name"]: entry["first"] for entry in run.result["not_compared"]}
    assert first["key=/brokers/topics/*:observers"] == "/brokers/topics/orders"
    assert not run.result["differences"] and not any("orders" in str(entry) for entry in run.result["undecided"])


def test_tokens_accept_what_they_name_and_nothing_that_comes_later(world, planted):
    run = before(world, [BUILD, *PLANTED])
    assert run.verdict == "pass", run.story()
    assert listed(run) == {BUILD: True, **dict.fromkeys(PLANTED, True)}
    planted.create("/confluent2")
    data, _stat = planted.get("/brokers/topics/orders")
    planted.set("/brokers/topics/orders", json.dumps({**json.loads(data), "version": 9}).encode())
    run = before(world, [BUILD, *PLANTED])
    assert run.verdict == "incomplete", run.story()
    later = {"znode=/confluent2": False, "key=/brokers/topics/*:version-9": False}
    assert {name: accepted for name, accepted in listed(run).items() if not accepted} == later
    planted.delete("/confluent2")
    planted.set("/brokers/topics/orders", data)


def test_the_files_of_a_server_show_the_same(world, planted):
    files = {"data_dir": str(world.zk.home / "data"), "data_log_dir": "", "chroot": CHROOT}
    files["password_encoder_secrets"] = world.views["zookeeper"]["password_encoder_secrets"]
    run = before(world, [BUILD], zookeeper=files)
    assert run.verdict == "incomplete", run.story()
    assert listed(run) == {BUILD: True, **dict.fromkeys(PLANTED, False)}


def test_under_apache_kafka_they_are_of_other_software(world, planted):
    run = before(world, foreign=[])
    assert run.verdict == "pass" and listed(run) == {}, run.story()


# --- the metadata log -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def migrated(world):
    world.client.delete("/confluent", recursive=True)
    world.client.delete("/config/cluster-links", recursive=True)
    for path in ("mirror", "partitions/0/state/x", "partitions/0/observers"):
        world.client.delete(f"/brokers/topics/orders/{path}", recursive=True)
    world.client.delete("/kafka-acl-extended/other", recursive=True)
    world.migrate()
    return world


def after(world, records, names=(), others=None):
    """Run the gate after the copy on a log with these planted records."""
    fence = world.fence_now()
    log = world.planted_log(records, 6)
    views = {"metadata_log": log, **({"metadata_logs": others(log)} if others else {})}
    more = {"foreign": FOREIGN, "accept_not_compared": tokens([BUILD, *names])}
    return world.run("after_copy", views, fence=fence, **more)


def in_log(run):
    """Return {name: (how many, first offset, views, accepted)} of what is not in ZooKeeper."""
    return {
        entry["name"]: (entry["count"], entry["first"], entry["views"], entry["accepted"])
        for entry in run.result["not_compared"]
        if entry["name"].startswith(("record=", "field="))
    }


def rest(run):
    """Return the other names, which the first tests left in ZooKeeper."""
    return [name for name in listed(run) if not name.startswith(("record=", "field=", "build="))]


def test_unknown_types_of_records_are_listed_and_close_the_gate(migrated):
    records = [logs.of_type(TYPE, 0, b"changes orders"), logs.of_type(TYPE, 0), logs.of_type(99, 0)]
    run = after(migrated, records)
    assert run.verdict == "incomplete", run.story()
    found = in_log(run)
    assert {name: entry[0] for name, entry in found.items()} == {f"record={TYPE}v0": 2, "record=99v0": 1}
    assert found[f"record={TYPE}v0"][1].startswith("offset ") and found[f"record={TYPE}v0"][2] == ["metadata_log"]
    names = [*found, *rest(run)]
    run = after(migrated, records, names)
    assert run.verdict == "pass", run.story()
    assert all(accepted for *_, accepted in in_log(run).values())
    assert not run.result["views"]["metadata_log"]["state"].keys() - {"offset", "epoch"}
    # A later version of an accepted type is another name
    run = after(migrated, [*records, logs.of_type(TYPE, 1)], names)
    assert run.verdict == "incomplete", run.story()
    assert [name for name, accepted in listed(run).items() if not accepted] == [f"record={TYPE}v1"]


def test_an_unknown_field_of_an_equal_record_is_named(migrated):
    """The partition and the config are equal in all that Kafka 3.9 knows."""
    image = logs.image_of(migrated.log)
    partition = batches.record(*logs.partition(image, "orders", 0))
    name, (value, _at) = next(iter(image.configs[(2, "orders")].items()))
    config = batches.record(*logs.config(2, "orders", name, value))
    run = after(migrated, [logs.tagged(partition, 10001), logs.tagged(config, 10002)])
    assert run.verdict == "incomplete", run.story()
    assert not run.result["differences"], run.story()
    named = {"field=PARTITION_RECORD:10001", "field=CONFIG_RECORD:10002"}
    assert set(in_log(run)) == named
    run = after(migrated, [logs.tagged(partition, 10001), logs.tagged(config, 10002)], [*named, *rest(run)])
    assert run.verdict == "pass", run.story()


def test_no_token_accepts_an_unknown_version_of_a_known_record(migrated):
    topic = batches.record("TOPIC_RECORD", {"name": "x", "topicId": logs.other_id(1)})
    newer = topic[:2] + b"\x09" + topic[3:]
    names = ["record=2v9", "field=TOPIC_RECORD:9"]
    run = after(migrated, [newer], names)
    assert run.verdict == "error", run.story()
    reason = run.result["reasons"][0]
    assert "TOPIC_RECORD version 9" in reason and "nothing accepts it" in reason and "QS-VERIFY-009" in reason


def test_another_voters_log_is_searched_as_well(migrated):
    def others(log):
        other = migrated.copied(log)
        logs.rewrite(pathlib.Path(other), [logs.of_type(TYPE, 3)], migrated.mark)
        return [{"node": 3001, "directory": str(other), "end_offset": log["end_offset"]}]

    run = after(migrated, [], others=others)
    assert run.verdict == "incomplete", run.story()
    assert in_log(run)[f"record={TYPE}v3"][2] == ["metadata_log:3001"]


def test_a_checkpoint_is_searched_as_well(migrated):
    log = migrated.unpacked()
    directory, end = pathlib.Path(log["directory"]), log["end_offset"]
    records = [*logs.records(directory, end)]
    values = [batches.record(*record) for record in records] + [logs.of_type(TYPE, 0)]
    epoch = logs.last_epoch(directory)
    parts = [batches.batch(0, [batches.SNAPSHOT_HEADER], epoch), batches.batch(1, values, epoch)]
    parts.append(batches.batch(1 + len(values), [batches.SNAPSHOT_FOOTER], epoch))
    (directory / f"{end:020d}-{epoch:010d}.checkpoint").write_bytes(b"".join(parts))
    more = {"foreign": FOREIGN, "accept_not_compared": tokens([BUILD])}
    run = migrated.run("after_copy", {"metadata_log": log}, fence=migrated.fence_now(), **more)
    assert run.verdict in ("incomplete", "differ"), run.story()
    assert in_log(run)[f"record={TYPE}v0"] == (1, f"offset {end - 1}", ["metadata_log"], False)
