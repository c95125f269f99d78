# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands on a real broker's disks: topic ids as the preflight reads them, a log directory that failed, and what a
broker in migration mode makes of directories that ZooKeeper does not know."""

from __future__ import annotations

import contextlib
import pathlib
import shutil

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import zk_metadata
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import kafka_wire, node, replicas, zookeeper
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from tests.integration import servers

pytestmark = pytest.mark.real

TOPIC, OTHER_ID = "orders", "AAkb6zsIRuC1dqhNSBF0Nw"
FILE = "partition.metadata"


@contextlib.contextmanager
def broker(name):
    """Yields (home, ZooKeeper's connect string, a broker with two log directories and a topic of four partitions,
    these directories, an admin client)."""
    with servers.workdir(name) as home, servers.zookeeper(home) as ensemble:
        connect = f"{ensemble.connect}/kafka"
        directories = [home / "one", home / "two"]
        settings = {"log.dirs": ",".join(map(str, directories)), "inter.broker.protocol.version": "3.9"}
        with servers.zk_broker(home, 1, connect, settings) as one:
            admin = AdminClient({"bootstrap.servers": str(one.address)})
            servers.wait_for(lambda: servers.settled(admin, 1), 60, "the broker to know the controller")
            admin.create_topics([NewTopic(TOPIC, 4, 1)])[TOPIC].result(60)
            servers.wait_for(lambda: len(partitions(directories)) == 4, 60, "the partitions' directories")
            yield home, connect, one, directories, admin


def partitions(directories):
    """The directories of the topic's partitions, {partition: path}."""
    found = [path for directory in directories for path in directory.glob(f"{TOPIC}-?")]
    return {int(path.name[-1]): path for path in found}


def known(connect):
    """What ZooKeeper says of topics."""
    client = KazooClient(hosts=connect)
    client.start(timeout=10)
    try:
        return zk_metadata.normalise(zookeeper.read_tree(client))["topics"]
    finally:
        client.stop()
        client.close()


def gather(directories):
    return replicas.gather([str(directory) for directory in directories])


def in_use(one, directories):
    return [reported["in_use"] for reported in node._log_dirs(list(map(str, directories)), one.pid)]


def test_topic_ids_and_log_directories_of_a_running_broker():
    with broker("partition-metadata") as (home, connect, one, directories, admin):
        topic = known(connect)[TOPIC]
        assert gather(directories) == {"topics": {TOPIC: [topic["topic_id"], [0, 1, 2, 3]]}, "others": [], "twice": []}
        assert in_use(one, directories) == [True, True]

        # the cure that the preflight prints for a file that is gone
        excluded = partitions(directories)[2]
        (excluded / FILE).unlink()
        (reported,) = gather(directories)["others"]
        assert (reported["path"], reported["id"], reported["error"]) == (str(excluded), None, None)
        one.stop()
        one.start()
        servers.wait_for((excluded / FILE).exists, 30, f"{FILE} to be written again")
        assert gather(directories)["topics"][TOPIC] == [topic["topic_id"], [0, 1, 2, 3]]

        # a log directory in which no new partition can be made; root, as whom tests run, may write where nobody may
        aside = home / "aside"
        directories[1].rename(aside)
        directories[1].touch()
        servers.wait_for(lambda: servers.settled(admin, 1), 60, "the broker to know the controller")
        admin.create_topics([NewTopic("more", 8, 1)])
        servers.wait_for(lambda: one.printed("Stopping serving logs in dir"), 60, "the directory to be given up")
        directories[1].unlink()
        aside.rename(directories[1])
        servers.wait_for(lambda: in_use(one, directories) == [True, False], 30, "the directory's lock to be let go")


@contextlib.contextmanager
def in_migration_mode(name, change):
    """Yields the broker, running in migration mode, and its directories, once a controller that took over has told it
    all that it holds (MigrationPropagator.sendRPCsToBrokersFromMetadataImage); `change` is given the directories while
    the broker is down."""
    with contextlib.ExitStack() as stack:
        home, connect, one, directories, _admin = stack.enter_context(broker(name))
        scratch_dirs, controllers, to_migration = stack.enter_context(servers.migrating_controllers(home, connect))
        one.stop()
        change(directories)
        one.configure(to_migration)
        one.start()
        servers.wait_for(lambda: one.printed("LeaderAndIsr request correlationId 1 from controller 10"), 90, "the copy")
        leader = servers.wait_for(
            lambda: kafka_wire.describe_quorum_any(scratch_dirs, timeout=3).source, 30, "a leader"
        )
        (active,) = [controller for controller in controllers if controller.address == leader]
        active.stop()
        active.start()
        yield one, directories


def stray(directories):
    """The partitions that the broker has put aside."""
    return sorted(path.name.partition(".")[0] for one in directories for path in one.glob("*-stray"))


def test_what_is_of_another_id_is_put_aside_and_begun_anew():
    def change(directories):
        of_topic = partitions(directories)
        shutil.copytree(of_topic[0], of_topic[0].parent / "nobodys-0")
        (of_topic[1] / FILE).write_text(f"version: 0\ntopic_id: {OTHER_ID}\n")

    with in_migration_mode("partition-metadata-stray", change) as (_one, directories):
        servers.wait_for(lambda: stray(directories) == ["nobodys-0", f"{TOPIC}-1"], 90, "both to be put aside")
        anew = servers.wait_for(lambda: partitions(directories).get(1), 30, "the partition to be begun anew")
        assert isinstance(anew, pathlib.Path)


def test_over_a_directory_without_an_id_the_controllers_are_not_followed():
    def change(directories):
        of_topic = partitions(directories)
        shutil.copytree(of_topic[0], of_topic[0].parent / "nobodys-0")
        (of_topic[0].parent / "nobodys-0" / FILE).unlink()

    with in_migration_mode("partition-metadata-none", change) as (one, directories):
        refusal = "does not have a topic ID, which is not allowed when running in KRaft mode"
        servers.wait_for(lambda: one.printed(refusal), 90, "the broker to refuse what the controllers tell it")
        assert stray(directories) == []
