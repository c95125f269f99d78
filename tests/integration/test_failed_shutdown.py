# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real broker that stops while no other replica may lead: its controlled shutdown fails, and its log shows that."""

from __future__ import annotations

import contextlib

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import own_log
from confluent_kafka.admin import AdminClient, NewTopic

from tests.integration import admin_bed, servers

pytestmark = pytest.mark.real

QUICK = {"controlled.shutdown.retry.backoff.ms": "200"}


def test_a_stop_whose_leaders_could_not_move_differs_from_a_clean_one():
    with servers.workdir("failed-shutdown") as home, servers.zookeeper(
        home
    ) as ensemble, contextlib.ExitStack() as stack:
        connect = f"{ensemble.connect}/kafka"
        brokers = [stack.enter_context(servers.zk_broker(home, number, connect, QUICK)) for number in (1, 2)]
        admin_bed.ready(brokers)
        admin = AdminClient({"bootstrap.servers": str(brokers[0].address)})
        servers.create_topics(admin, [NewTopic("orders", 1, replica_assignment=[[1, 2]])])
        servers.wait_for(lambda: servers.in_sync(admin, "orders", 2), 60, "both replicas in sync")

        def stop(broker):
            """Return what the log says of a stop, as a restart reads it."""
            begin = broker.log.stat().st_size
            broker.stop()
            return own_log.find_failed_shutdown(str(broker.log), begin)

        # The other replica takes over
        assert stop(brokers[0]) is None, brokers[0].tail()
        brokers[0].start()
        admin_bed.ready(brokers)
        servers.wait_for(lambda: servers.in_sync(admin, "orders", 2), 60, "both replicas in sync again")
        # There is none
        brokers[1].kill()
        servers.wait_for(lambda: servers.in_sync(admin, "orders", 1), 60, "one replica in sync")
        said = stop(brokers[0])
        assert said and "controlled shutdown attempts failed" in said, brokers[0].tail()
