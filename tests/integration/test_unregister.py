# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removal of a broker's registration from a real quorum in pre-migration, and the worker's checks of ZooKeeper."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.restart import revert_conditions
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import metadata_summary
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import own_zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import kafka_wire

from tests.integration import servers

pytestmark = pytest.mark.real


def test_a_controller_in_pre_migration_removes_a_registration():
    with servers.workdir("unregister") as home, servers.zookeeper(home) as zookeeper:
        connect = f"{zookeeper.connect}/kafka"
        staying, leaving = servers.zk_broker(home, 1, connect), servers.zk_broker(home, 2, connect)
        with staying, leaving as broker, servers.migrating_controllers(home, connect) as quorum:
            addresses, controllers, to_migration = quorum
            leader = servers.wait_for(lambda: _leader(addresses), 30, "a leader")
            follower = next(address for address in addresses if address != leader)
            log = f"{_of(controllers, leader).properties['log.dirs']}/__cluster_metadata-0"
            broker.stop()
            broker.configure(to_migration)
            broker.start()
            servers.wait_for(lambda: metadata_summary.summarise(log)["brokers"], 30, "the registration")
            gathered = own_zookeeper.collect({"zookeeper.connect": connect})
            assert gathered["brokers"] == ["1", "2"] and revert_conditions.check_under_kraft(gathered) is None
            assert revert_conditions.check_copy_at_hand(gathered, 2, ["2"]) is None, (
                "the initial copy waits for broker 1"
            )
            broker.stop()

            with pytest.raises(kafka_wire.KafkaError, match="NOT_CONTROLLER"):
                kafka_wire.unregister_broker(follower, 2)
            assert kafka_wire.unregister_broker(leader, 2) is True
            assert kafka_wire.unregister_broker(leader, 2) is False
            servers.wait_for(lambda: not metadata_summary.summarise(log)["brokers"], 10, "the removal in the log")
            assert metadata_summary.summarise(log)["zk_migration_state"] == "PRE_MIGRATION"
            assert revert_conditions.check_under_kraft(own_zookeeper.collect({"zookeeper.connect": connect})) is None


def _leader(addresses):
    return kafka_wire.describe_quorum_any(addresses, timeout=3).source


def _of(controllers, address):
    return next(controller for controller in controllers if controller.address == address)
