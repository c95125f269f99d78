# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""preferred_leader_election against real servers in both modes."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.admin import cluster_admin
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from confluent_kafka.admin import AdminClient, NewTopic

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
