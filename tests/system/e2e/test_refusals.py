# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults that stop a migration: the playbook reports what is wrong, where, and what to do, and changes nothing."""

from __future__ import annotations

import contextlib
import json
import time

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import kafka_wire

from tests.system.testbed import faults
from tests.system.testbed.layout import STATE
from tests.system.testbed.waiting import wait_for

METADATA = "/var/lib/kafka/metadata"


def assert_refused(testbed, *wanted, untouched=True, changed=(), playbook="migrate", **options):
    """Run the playbook; assert that it fails with all of `wanted` and changes no host but those in `changed`."""
    before = testbed.fingerprint(locked=True)
    ran = testbed.play(playbook, **options)
    after = testbed.fingerprint(locked=True)
    assert ran.code != 0, ran.text
    said = " ".join(ran.text.replace("\\n", "\n").replace('\\"', '"').split())  # the screen breaks lines
    for message in wanted:
        assert " ".join(message.split()) in said, ran.text
    if untouched:
        assert after == before, _difference(before, after)
    for host in set(testbed.addresses) - set(changed):
        assert ran.recap(host).get("changed", 0) == 0, ran.text
    return ran


def _difference(before, after):
    return {key: (before.get(key), after.get(key)) for key in {**before, **after} if before.get(key) != after.get(key)}


@contextlib.contextmanager
def formatted(testbed, host, cluster_id, node_id, served=False):
    """Format a controller's log directory with Kafka's tool for these ids; empty it at the end.

    `served`: also let a KRaft quorum of this one controller write a metadata log there.
    """
    file = "/tmp/other.properties"
    lines = (
        "process.roles=controller",
        f"node.id={node_id}",
        f"controller.quorum.voters={node_id}@{testbed.addresses[host]}:9093",
        f"listeners=CONTROLLER://{testbed.addresses[host]}:9093",
        "controller.listener.names=CONTROLLER",
        f"log.dirs={METADATA}",
    )
    testbed.run(host, f"printf '%s\\n' {' '.join(lines)} > {file}")
    try:
        storage = "/opt/kafka/bin/kafka-storage.sh"
        testbed.run(host, f"runuser -u kafka -- {storage} format --cluster-id={cluster_id} --config {file}")
        if served:
            testbed.run(
                host, f"systemd-run --collect --unit=other --uid=kafka /opt/kafka/bin/kafka-server-start.sh {file}"
            )
            testbed.wait_listening(host, 9093)
            wait_for(lambda: _leads(testbed, host), 60, f"a quorum of only {host}")
            testbed.run(host, "systemctl stop other")
        yield
    finally:
        testbed.run(host, f"rm -f {file}; systemctl stop other 2>/dev/null; find {METADATA} -mindepth 1 -delete")


def _leads(testbed, host):
    try:
        quorum = kafka_wire.describe_quorum(kafka_wire.HostPort(testbed.addresses[host], 9093), None, 2)
    except kafka_wire.WireError:
        return False
    return quorum.high_watermark > 1


@contextlib.contextmanager
def znode(testbed, path, data):
    """Create a znode; delete it at the end."""
    with testbed.zookeeper() as client:
        client.create(path, data, makepath=True)
    try:
        yield
    finally:
        with testbed.zookeeper() as client:
            client.delete(path)


# Groups, brokers, ids ------------------------------------------------------------------------------------------------


@pytest.mark.provokes("groups")
@pytest.mark.parametrize("group", ["kafka_broker", "kafka_controller"])
def test_a_missing_group_is_refused(fresh, inventory, group):
    messages = {
        "kafka_broker": "The inventory has no host in the group kafka_broker. Add the brokers' hosts to it",
        "kafka_controller": "The inventory has no host in the group kafka_controller. Add three hosts to it",
    }
    assert_refused(fresh, messages[group], inventory=inventory(lambda groups: groups.pop(group)))


@pytest.mark.provokes("groups")
def test_an_even_number_of_controllers_is_refused(fresh, inventory):
    path = inventory(lambda groups: groups["kafka_controller"]["hosts"].pop("c3"))
    assert_refused(fresh, "the group kafka_controller has 2 hosts", "Give it an odd number", inventory=path)


@pytest.mark.provokes("groups")
def test_a_host_in_both_groups_is_refused(fresh, inventory):
    def both(groups):
        groups["kafka_controller"]["hosts"]["b1"] = {
            **groups["kafka_broker"]["hosts"]["b1"],
            "quorumshift_node_id": 104,
        }
        groups["kafka_controller"]["hosts"].pop("c3")

    assert_refused(fresh, "b1: in both groups, kafka_broker and kafka_controller", inventory=inventory(both))


@pytest.mark.provokes("broker_ids")
def test_a_live_broker_outside_the_inventory_is_refused(fresh, inventory):
    path = inventory(lambda groups: groups["kafka_broker"]["hosts"].pop("b3"))
    assert_refused(fresh, "broker 5 is registered in ZooKeeper but is not in the group kafka_broker", inventory=path)


@pytest.mark.provokes("node_ids")
@pytest.mark.parametrize(
    ("number", "messages"),
    [
        (
            5,
            [
                "c2 has quorumshift_node_id 5, which is the id of b3",
                "Choose an id that no broker and no other controller has",
            ],
        ),
        (101, ["quorumshift_node_id: c1, c2 have the same id, 101. Give each an id of its own"]),
    ],
)
def test_colliding_node_ids_are_refused(fresh, inventory, number, messages):
    def collide(groups):
        groups["kafka_controller"]["hosts"]["c2"]["quorumshift_node_id"] = number

    assert_refused(fresh, *messages, inventory=inventory(collide))


@pytest.mark.provokes("cluster_ids")
def test_a_host_of_another_cluster_is_refused(fresh):
    path = "/var/lib/kafka/data2/meta.properties"
    fresh.run("b2", f"cp -a {path} {path}.test; sed -i 's/^cluster.id=.*/cluster.id=another/' {path}")
    try:
        assert_refused(fresh, "the cluster ids differ: ", "another in b2: /var/lib/kafka/data2/meta.properties")
        finding = "b2: /var/lib/kafka/data2/meta.properties has cluster id another, ZooKeeper has"
        assert_refused(fresh, finding, playbook="preflight")
    finally:
        fresh.run("b2", f"mv {path}.test {path}")


@pytest.mark.provokes("zookeeper")
def test_a_missing_chroot_is_refused(fresh):
    connect = fresh.variables["quorumshift_zookeeper_connect"].partition("/")[0] + "/staging"
    assert_refused(fresh, "/staging does not exist in ZooKeeper", extra={"quorumshift_zookeeper_connect": connect})


# Versions, partitions ------------------------------------------------------------------------------------------------


@pytest.mark.provokes("versions")
def test_an_inter_broker_protocol_version_of_another_release_is_refused(fresh):
    with faults.edited(fresh, "b2", "s/^inter.broker.protocol.version=.*/inter.broker.protocol.version=3.8/"):
        assert_refused(
            fresh, "b2 runs with inter.broker.protocol.version 3.8, its release is 3.9.2", "Set it to 3.9 on every"
        )


@pytest.mark.provokes("versions")
def test_mixed_releases_are_refused(fresh):
    with faults.other_release(fresh, "b2"):
        assert_refused(fresh, "versions are mixed: b1 3.9.2, b2 3.9.1, b3 3.9.2", "Finish the upgrade first")


@pytest.mark.provokes("broker_ids")
def test_a_broker_that_is_down_is_refused(fresh):
    fresh.run("b3", "systemctl stop kafka")
    try:
        wait_for(lambda: "5" not in _live(fresh), 30, "broker 5 to leave ZooKeeper")
        assert_refused(
            fresh,
            "Blocking findings: 1. Nothing was changed.",
            "broker 5 on b3 is not registered in ZooKeeper (kafka.service is inactive); ",
            "partitions under-replicated: ",
            "partitions offline: ",
            "Start kafka.service on b3",
        )
    finally:
        fresh.run("b3", "systemctl start kafka")
        fresh.wait_in_sync()


def _live(testbed):
    with testbed.zookeeper() as client:
        return client.get_children("/brokers/ids")


@pytest.mark.provokes("dead_replicas")
def test_a_replica_on_a_removed_broker_is_refused(fresh):
    """A topic with a replica on broker 9, as after the replacement of a broker."""
    state = {"controller_epoch": 1, "leader": 1, "version": 1, "leader_epoch": 0, "isr": [1]}
    topic = {
        "version": 3,
        "topic_id": "Fy0Rb1XjQ5WQ2mPcyRZbtA",
        "partitions": {"0": [1, 9]},
        "adding_replicas": {},
        "removing_replicas": {},
    }
    with fresh.zookeeper() as client:
        client.create("/brokers/topics/left-behind/partitions/0/state", json.dumps(state).encode(), makepath=True)
        client.set("/brokers/topics/left-behind", json.dumps(topic).encode())
    try:
        assert_refused(
            fresh, "broker 9 holds replicas but is not registered in ZooKeeper: left-behind-0", "reassign its replicas"
        )
    finally:
        with fresh.zookeeper() as client:
            client.delete("/brokers/topics/left-behind", recursive=True)
        fresh.reset()
        fresh.wait_in_sync()


@pytest.mark.provokes("reassignments")
def test_a_running_reassignment_is_refused(fresh):
    """It cannot end: the new replica's broker is stopped."""
    with fresh.zookeeper() as client:
        topics = {}
        for name in client.get_children("/brokers/topics"):
            topics[name] = json.loads(client.get(f"/brokers/topics/{name}")[0])["partitions"]
    name, replicas = next((name, parts["0"]) for name, parts in sorted(topics.items()) if len(parts["0"]) == 2)
    spare = next(broker_id for broker_id in (1, 2, 5) if broker_id not in replicas)
    plan = {"version": 1, "partitions": [{"topic": name, "partition": 0, "replicas": [replicas[0], spare]}]}
    host = {1: "b1", 2: "b2", 5: "b3"}[spare]
    fresh.run(host, "systemctl stop kafka")
    try:
        with reassigning(fresh, plan):
            assert_refused(fresh, f"{name}-0 is being reassigned", "kafka-reassign-partitions.sh --cancel")
    finally:
        fresh.run(host, "systemctl start kafka")
        fresh.reset()
        fresh.wait_in_sync()


@contextlib.contextmanager
def reassigning(testbed, plan):
    """Start a reassignment through ZooKeeper; delete its znode at the end."""
    with testbed.zookeeper() as client:
        client.create("/admin/reassign_partitions", json.dumps(plan).encode())
    time.sleep(3)
    yield
    with testbed.zookeeper() as client:
        if client.exists("/admin/reassign_partitions"):
            client.delete("/admin/reassign_partitions")


# Leftovers of an earlier attempt -------------------------------------------------------------------------------------


@pytest.mark.provokes("stale_migration")
def test_a_migration_znode_of_an_earlier_attempt_is_refused(fresh):
    with znode(fresh, "/migration", json.dumps(faults.COPIED_LONG_AGO).encode()):
        ran = assert_refused(fresh, "/migration says that the initial copy is done", "delete /migration")
    assert "The phase is unknown" in ran.text


@pytest.mark.provokes("stale_migration")
def test_a_malformed_migration_znode_is_refused(fresh):
    with znode(fresh, "/migration", b"{torn"):
        assert_refused(fresh, "/migration is malformed", "delete /migration")


@pytest.mark.provokes("encoder_secret")
def test_a_missing_encoder_secret_is_refused(fresh):
    path = "/etc/kafka/server.properties"
    fresh.run("b2", f"cp -a {path} {path}.test; sed -i /^password.encoder.secret/d {path}")
    try:
        assert_refused(
            fresh,
            "ZooKeeper holds encrypted configs (listener.name.external.ssl.keystore.password of broker 1), "
            "and b2 has no password.encoder.secret",
            "controllers would copy ciphertext",
        )
    finally:
        fresh.run("b2", f"mv {path}.test {path}")


WIPE = "If you do not need its content, stop the controller's service and empty the directory"


@pytest.mark.provokes("controller_directories")
def test_a_nonempty_controller_directory_is_refused(fresh):
    fresh.run("c2", f"touch {METADATA}/old")
    try:
        assert_refused(fresh, f"c2: {METADATA} is not empty and has no meta.properties", WIPE)
    finally:
        fresh.run("c2", f"rm {METADATA}/old")


@pytest.mark.provokes("controller_directories")
def test_a_controller_directory_of_another_cluster_is_refused(fresh):
    with formatted(fresh, "c2", "AAAAAAAAQsShqPpAhOVFDg", 102):
        assert_refused(fresh, f"AAAAAAAAQsShqPpAhOVFDg in c2: {METADATA}/meta.properties")
        assert_refused(
            fresh,
            f"c2: {METADATA}/meta.properties has cluster id AAAAAAAAQsShqPpAhOVFDg, ZooKeeper has",
            f"c2: {METADATA} is formatted for cluster AAAAAAAAQsShqPpAhOVFDg, node 102",
            WIPE,
            playbook="preflight",
        )


@pytest.mark.provokes("controller_directories")
def test_a_controller_directory_of_another_node_is_refused(fresh):
    with formatted(fresh, "c2", cluster_id(fresh), 103):
        assert_refused(fresh, f"c2: {METADATA} is formatted for cluster {cluster_id(fresh)}, node 103", WIPE)


@pytest.mark.provokes("controller_directories")
def test_a_controller_directory_of_another_attempt_is_refused(fresh):
    with formatted(fresh, "c2", cluster_id(fresh), 102, served=True):
        assert_refused(fresh, "c2: an earlier attempt left the metadata log in state NONE", WIPE)


def cluster_id(testbed):
    with testbed.zookeeper() as client:
        return json.loads(client.get("/cluster/id")[0])["id"]


# Partial runs of the playbook ----------------------------------------------------------------------------------------


def assert_unchanged_by(testbed, *options):
    """Run a part of the playbook; assert that nothing changes."""
    before = testbed.fingerprint()
    ran = testbed.play("migrate", *options, extra={"quorumshift_gate_timeout_s": 5})
    after = testbed.fingerprint()
    assert after == before, _difference(before, after)
    return ran


@pytest.mark.parametrize("limit", ["b1", "kafka_broker", "kafka_controller", "localhost,b1,b2,b3,c1", "!c3"])
def test_limit_is_refused(fresh, limit):
    ran = assert_unchanged_by(fresh, "--limit", limit)
    assert ran.code != 0 and f"--limit {limit} excludes hosts. " in ran.text, ran.text


@pytest.mark.parametrize("tag", ["always", "nothing"])
def test_tags_are_refused(fresh, tag):
    ran = assert_unchanged_by(fresh, "--tags", tag)
    assert ran.code != 0 and "exclude tasks. " in ran.text, ran.text


@pytest.mark.parametrize(
    "task",
    [
        "Begin starting the controller",
        "Wait until the batch may be stopped",
        "Begin to restart the node",
        "Wait until the node is up",
    ],
)
def test_start_at_task_changes_nothing(fresh, task):
    ran = assert_unchanged_by(fresh, "--start-at-task", f"*{task}")
    assert ran.code != 0 and "--start-at-task excludes tasks. " in ran.text, ran.text


def test_check_mode_shows_the_next_changes_and_changes_nothing(fresh):
    ran = assert_unchanged_by(fresh, "--check", "--diff")
    assert ran.code == 0, ran.text
    assert all(ran.recap(host)["changed"] == 1 for host in fresh.controllers), ran.text
    assert all(ran.recap(host)["changed"] == 0 for host in (*fresh.brokers, "localhost")), ran.text
    for number in (101, 102, 103):
        assert f"\n+node.id={number}\n" in ran.text, ran.text
    assert ran.text.count("\n+zookeeper.metadata.migration.enable=true\n") == len(fresh.controllers), ran.text
    secrets = json.loads((STATE / "secrets.json").read_text())
    assert not [name for name, value in secrets.items() if value in ran.text]
