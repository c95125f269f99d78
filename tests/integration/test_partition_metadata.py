# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real broker's log directories: topic ids as the preflight reads them, a failed directory, and directories that
ZooKeeper does not know, in migration mode."""

from __future__ import annotations

import contextlib
import pathlib
import shutil

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import zk_metadata
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import node, replicas
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import kafka_wire
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from tests.integration import servers

pytestmark = pytest.mark.real

TOPIC, OTHER_ID = "orders", "AAkb6zsIRuC1dqhNSBF0Nw"
FILE = "partition.metadata"


@contextlib.contextmanager
def broker(name):
    """Run a broker with two log directories and a topic of four partitions.

    Yield (home, ZooKeeper's connect string, broker, its log directories, admin client).
    """
    with servers.workdir(name) as home, servers.zookeeper(home) as ensemble:
        connect = f"{ensemble.connect}/kafka"
        directories = [home / "one", home / "two"]
        settings = {"log.dirs": ",".join(map(str, directories)), "inter.broker.protocol.version": "3.9"}
        with servers.zk_broker(home, 1, connect, settings) as server:
            admin = AdminClient({"bootstrap.servers": str(server.address)})
            servers.wait_for(lambda: servers.knows_controller(admin, 1), 60, "the broker to know the controller")
            servers.create_topics(admin, [NewTopic(TOPIC, 4, 1)])
            servers.wait_for(lambda: len(partitions(directories)) == 4, 60, "the partitions' directories")
            yield home, connect, server, directories, admin


def partitions(directories):
    """Return {partition: directory} of the topic."""
    paths = [path for directory in directories for path in directory.glob(f"{TOPIC}-?")]
    return {int(path.name[-1]): path for path in paths}


def zk_topics(connect):
    """Return the topics in ZooKeeper."""
    client = KazooClient(hosts=connect)
    client.start(timeout=10)
    try:
        return zk_metadata.normalise(zookeeper.read_tree(client))["topics"]
    finally:
        client.stop()
        client.close()


def gather(directories):
    return replicas.collect([str(directory) for directory in directories])


def in_use(server, directories):
    return [log_dir["in_use"] for log_dir in node._log_dirs(list(map(str, directories)), server.pid)]


def test_missing_topic_ids_and_a_failed_log_directory_are_found():
    with broker("partition-metadata") as (home, connect, server, directories, admin):
        topic = zk_topics(connect)[TOPIC]
        assert gather(directories) == {"topics": {TOPIC: [topic["topic_id"], [0, 1, 2, 3]]}, "others": [], "twice": []}
        assert in_use(server, directories) == [True, True]

        # the fix that the preflight prints for a missing file
        directory = partitions(directories)[2]
        (directory / FILE).unlink()
        (other,) = gather(directories)["others"]
        assert (other["path"], other["id"], other["error"]) == (str(directory), None, None)
        server.stop()
        server.start()
        servers.wait_for((directory / FILE).exists, 30, f"{FILE} to be written again")
        assert gather(directories)["topics"][TOPIC] == [topic["topic_id"], [0, 1, 2, 3]]

        # a file instead of the directory, since tests run as root, which may write to any directory
        aside = home / "aside"
        directories[1].rename(aside)
        directories[1].touch()
        servers.wait_for(lambda: servers.knows_controller(admin, 1), 60, "the broker to know the controller")
        admin.create_topics([NewTopic("more", 8, 1)])
        servers.wait_for(lambda: server.printed("Stopping serving logs in dir"), 60, "the failure of the directory")
        directories[1].unlink()
        aside.rename(directories[1])
        servers.wait_for(lambda: in_use(server, directories) == [True, False], 30, "the directory's lock released")


@contextlib.contextmanager
def in_migration_mode(name, change):
    """Yield a broker in migration mode and its log directories after `change(directories)`, made while it was down.

    By then a new active controller has sent it the complete metadata
    (MigrationPropagator.sendRPCsToBrokersFromMetadataImage).
    """
    with contextlib.ExitStack() as stack:
        home, connect, server, directories, _admin = stack.enter_context(broker(name))
        addresses, controllers, to_migration = stack.enter_context(servers.migrating_controllers(home, connect))
        server.stop()
        change(directories)
        server.configure(to_migration)
        server.start()
        first_request = "LeaderAndIsr request correlationId 1 from controller 10"
        servers.wait_for(lambda: server.printed(first_request), 90, "the initial copy")
        leader = servers.wait_for(lambda: kafka_wire.describe_quorum_any(addresses, timeout=3).source, 30, "a leader")
        (active,) = [controller for controller in controllers if controller.address == leader]
        active.stop()
        active.start()
        yield server, directories


def stray(directories):
    """Return the partitions that the broker has renamed as stray."""
    return sorted(path.name.partition(".")[0] for directory in directories for path in directory.glob("*-stray"))


def test_partitions_with_another_topic_id_become_stray_and_start_empty():
    def change(directories):
        of_topic = partitions(directories)
        shutil.copytree(of_topic[0], of_topic[0].parent / "unknown-0")
        (of_topic[1] / FILE).write_text(f"version: 0\ntopic_id: {OTHER_ID}\n")

    with in_migration_mode("partition-metadata-stray", change) as (_server, directories):
        servers.wait_for(lambda: stray(directories) == sorted(["unknown-0", f"{TOPIC}-1"]), 90, "both to become stray")
        fresh = servers.wait_for(lambda: partitions(directories).get(1), 30, "a new directory of the partition")
        assert isinstance(fresh, pathlib.Path)


def test_a_broker_rejects_the_controllers_over_a_directory_without_topic_id():
    def change(directories):
        of_topic = partitions(directories)
        shutil.copytree(of_topic[0], of_topic[0].parent / "unknown-0")
        (of_topic[0].parent / "unknown-0" / FILE).unlink()

    with in_migration_mode("partition-metadata-none", change) as (server, directories):
        refusal = "does not have a topic ID, which is not allowed when running in KRaft mode"
        servers.wait_for(lambda: server.printed(refusal), 90, "the broker to reject the controller's request")
        assert stray(directories) == []
