# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A registration removed from a real quorum in pre-migration, and what a broker's own host sees of ZooKeeper then."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import auto_revert
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import metadata_summary
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import kafka_wire, own_zookeeper

from tests.integration import servers

pytestmark = pytest.mark.real


def test_a_controller_in_pre_migration_takes_a_registration_away():
    with servers.workdir("unregister") as home, servers.zookeeper(home) as zookeeper:
        connect = f"{zookeeper.connect}/kafka"
        staying, going = servers.zk_broker(home, 1, connect), servers.zk_broker(home, 2, connect)
        with staying, going as joining, servers.migrating_controllers(home, connect) as quorum:
            scratch_dirs, controllers, to_migration = quorum
            leader = servers.wait_for(lambda: _leader(scratch_dirs), 30, "a leader")
            follower = next(place for place in scratch_dirs if place != leader)
            log = f"{_of(controllers, leader).properties['log.dirs']}/__cluster_metadata-0"
            joining.stop()
            joining.configure(to_migration)
            joining.start()
            servers.wait_for(lambda: metadata_summary.summarise(log)["brokers"], 30, "the registration")
            seen = own_zookeeper.gather({"zookeeper.connect": connect})
            assert seen["brokers"] == ["1", "2"] and auto_revert.under_kraft(seen) is None
            assert auto_revert.copy_at_hand(seen, 2, ["2"]) is None, "the copy waits for broker 1"
            joining.stop()

            with pytest.raises(kafka_wire.KafkaError, match="NOT_CONTROLLER"):
                kafka_wire.unregister_broker(follower, 2)
            assert kafka_wire.unregister_broker(leader, 2) is True
            assert kafka_wire.unregister_broker(leader, 2) is False, "read back"
            servers.wait_for(lambda: not metadata_summary.summarise(log)["brokers"], 10, "the log to say so")
            assert metadata_summary.summarise(log)["zk_migration_state"] == "PRE_MIGRATION"
            assert auto_revert.under_kraft(own_zookeeper.gather({"zookeeper.connect": connect})) is None


def _leader(scratch_dirs):
    return kafka_wire.describe_quorum_any(scratch_dirs, timeout=3).source


def _of(controllers, address):
    return next(one for one in controllers if one.address == address)
