# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""preferred_leader_election against real servers in both modes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import threading

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.admin import cluster_admin
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from tests.integration import admin_bed, servers

pytestmark = pytest.mark.real
TOPICS = {"orders": [[2, 1], [1, 2], [2, 1]], "plain": [[2, 1]]}


def assert_elects_again(brokers):
    """Restart the preferred leader of most partitions, and give them back in two steps."""

    def elect(check=False, **options):
        addresses = [str(broker.address) for broker in brokers]
        return admin_bed.run("preferred_leader_election", check, bootstrap_servers=addresses, **options)

    def leaders():
        address = brokers[0].address
        admin = cluster_admin.ClusterAdmin([HostPort(address.host, address.port)], Security(), 10, None)
        return {
            partition: found["leader"]
            for partition, found in sorted(admin.partitions.items())
            if partition[0] in TOPICS
        }

    admin = AdminClient({"bootstrap.servers": str(brokers[0].address)})
    for name, replicas in TOPICS.items():
        servers.create_topics(admin, [NewTopic(name, len(replicas), replica_assignment=replicas)])
    servers.wait_for(lambda: all(servers.in_sync(admin, name, 2) for name in TOPICS), 60, "the topics in sync")
    assert not elect()["changed"]
    brokers[1].kill()
    servers.wait_for(lambda: set(leaders().values()) == {1}, 60, "broker 1 to lead all partitions")
    # its preferred leader is down: the wait ends, and names what it saw last
    failed = elect(wait_timeout_s=1)
    assert failed["failed"] and "3 partitions have another leader than the preferred one for 1 s" in failed["msg"], (
        failed
    )
    assert "orders-0 is led by 1" in failed["msg"]
    brokers[1].start()
    checked = elect(check=True)
    assert checked["changed"] and checked["partitions"] == ["orders-0", "orders-2", "plain-0"]
    assert "orders-0: 1\n" in checked["diff"]["before"] and "orders-0: 2\n" in checked["diff"]["after"]
    assert set(leaders().values()) == {1}
    assert not elect(brokers=[1])["changed"]
    with admin_bed.locked_by("20260101T000000-aaaa", elect(check=True)["cluster_id"]) as state_dir:
        assert "is locked by run 20260101T000000-aaaa" in elect(state_dir=state_dir)["msg"]
        assert not elect(brokers=[1], state_dir=state_dir, run="20260101T000000-aaaa").get("failed")
    assert "is of cluster" in elect(cluster_id="AAAAAAAAAAAAAAAAAAAAAA")["msg"]
    done = elect(brokers=[2])
    assert done["changed"] and done["elected"] == 3, done
    assert leaders() == {("orders", 0): 2, ("orders", 1): 1, ("orders", 2): 2, ("plain", 0): 2}
    assert not elect()["changed"]


def test_in_kraft_mode():
    settings = {"leader.imbalance.check.interval.seconds": "3600"}
    with admin_bed.kraft("elect", 2, settings) as (_home, _controller, brokers):
        assert_elects_again(brokers)


def test_in_zookeeper_mode():
    with admin_bed.zookeeper("elect_zk", 2) as (_home, _zookeeper, brokers):
        assert_elects_again(brokers)


class Relay:
    """Carries bytes between clients and a server while `is_open` is set."""

    def __init__(self, target):
        self.is_open = threading.Event()
        self.is_open.set()
        self._target = target
        self._listener = socket.create_server((target.host, 0))
        self.address = HostPort(target.host, self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, server = self._listener.accept()[0], socket.create_connection(self._target)
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=self._carry, args=pair, daemon=True).start()

    def _carry(self, source, destination):
        with contextlib.suppress(OSError), source, destination:
            while found := source.recv(1 << 16):
                self.is_open.wait()
                destination.sendall(found)


def test_partitions_that_the_initial_copy_left_without_a_leader():
    """Broker 2 is the last to register, and it serves before the controllers have read ZooKeeper."""
    with servers.workdir("leaderless") as home, contextlib.ExitStack() as stack:
        ensemble = stack.enter_context(servers.zookeeper(home, settings={"maxSessionTimeout": "300000"}))
        relay = stack.enter_context(contextlib.closing(Relay(ensemble.address)))
        chroot = f"{ensemble.connect}/kafka"
        brokers = [stack.enter_context(servers.zk_broker(home, number, chroot)) for number in (1, 2)]
        admin_bed.ready(brokers)
        first, last = brokers
        admin = AdminClient({"bootstrap.servers": str(last.address)})
        servers.create_topics(admin, [NewTopic("single", 2, replica_assignment=[[2], [1]])])
        client = KazooClient(hosts=chroot)
        client.start(timeout=10)
        stack.callback(client.close)
        stack.callback(client.stop)

        def read(path):
            return json.loads(client.get(path)[0])

        # nothing ends while broker 1 stands still: neither its session, nor its registration in the quorum
        patient = {"zookeeper.session.timeout.ms": "300000", "broker.session.timeout.ms": "300000"}
        through_relay = f"{relay.address}/kafka"
        quorum = stack.enter_context(servers.migrating_controllers(home, through_relay, patient))
        to_migration = {**quorum.to_migration, **patient, "zookeeper.connect": chroot}
        first.stop()
        first.configure(to_migration)
        first.start()
        state = znodes.partition_state_path("single", 0)
        servers.wait_for(lambda: read(state)["leader"] == 2, 60, "broker 2 to lead")
        last.stop()  # broker 1 is ZooKeeper's controller now, at the latest
        servers.wait_for(lambda: read(state)["leader"] == -1, 120, "no leader of single-0")
        servers.suspend(first.pid)
        relay.is_open.clear()
        last.configure(to_migration)
        last.start()
        servers.wait_for(lambda: last.printed("The broker has been unfenced"), 120, "broker 2 to be unfenced")
        relay.is_open.set()
        servers.wait_for(lambda: read(znodes.MIGRATION)["kraft_metadata_offset"] > 0, 120, "the initial copy")
        os.kill(first.pid, signal.SIGCONT)
        admin_bed.ready(brokers)

        def elect(check=False):
            addresses = [str(broker.address) for broker in brokers]
            done = admin_bed.run("preferred_leader_election", check, bootstrap_servers=addresses, without_leader=True)
            assert not done.get("failed"), done
            return done

        checked = elect(check=True)
        assert checked["changed"] and checked["partitions"] == ["single-0"], checked
        assert checked["diff"] == {"before": "single-0: -1\n", "after": "single-0: 2\n"}
        done = elect()
        assert done["elected"] == 1 and done["diff"] == checked["diff"], done
        assert not elect()["changed"]
