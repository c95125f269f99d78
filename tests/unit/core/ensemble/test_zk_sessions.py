# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A broker uses one ensemble's servers alone: each tie to another one is named."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import zk_sessions
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import parse_zookeeper_connect

WANTED = parse_zookeeper_connect("z4:2181,z5:2181,z6:2181/kafka")
SOURCE = parse_zookeeper_connect("z1:2181,z2:2181/kafka")
IDS = [44, 45, 46]


def broker(**changes):
    values = {
        "node_id": 1,
        "connect": WANTED,
        "owner": 45 << 56 | 7,
        "cluster_id": "one",
        "cluster_id_there": "one",
        "own": [],
        "others": [],
        "config_file": "/etc/kafka/server.properties",
        "service": "kafka",
    }
    return zk_sessions.Broker(**{**values, **changes})


def test_a_broker_on_these_servers_alone_has_moved():
    assert list(zk_sessions.check_moved(broker(), WANTED, IDS)) == []
    assert list(zk_sessions.check_restart(broker(connect=SOURCE), WANTED)) == []
    # a part of the servers, in another order, are these servers alone
    some = parse_zookeeper_connect("z6:2181,z4:2181/kafka")
    assert list(zk_sessions.check_moved(broker(connect=some), WANTED, IDS)) == []


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"connect": SOURCE}, "zookeeper.connect in /etc/kafka/server.properties is z1:2181,z2:2181/kafka"),
        ({"connect": parse_zookeeper_connect("z4:2181,z1:2181/kafka")}, "expected z4:2181"),
        ({"connect": parse_zookeeper_connect("z4:2181")}, "expected z4:2181"),
        ({"owner": 2 << 56 | 7}, "was made by the ZooKeeper server with myid 2, not by one of 44, 45, 46"),
        ({"owner": None}, "/brokers/ids/1 does not exist"),
        ({"own": ["z1:2181"]}, "broker 1 is connected to z1:2181"),
    ],
)
def test_each_tie_to_other_servers_is_named(changes, text):
    (found,) = zk_sessions.check_moved(broker(**changes), WANTED, IDS)
    assert text in found.seen and found.do


@pytest.mark.parametrize(
    ("there", "connect", "text"),
    [
        (None, WANTED, "a broker would make a new cluster there"),
        ("two", WANTED, "/cluster/id is two through"),
        ("one", parse_zookeeper_connect("z1:2181/other"), "the chroot is /kafka, and /other in"),
    ],
)
def test_a_broker_is_not_restarted_where_it_would_find_another_cluster(there, connect, text):
    (found,) = zk_sessions.check_restart(broker(cluster_id_there=there, connect=connect), WANTED)
    assert text in found.seen


def test_the_creator_of_a_session_with_a_large_id_is_found():
    assert zk_sessions.creator_id(0xB00000F0B2A0000) == 0xB
    assert zk_sessions.creator_id(-(2 << 56)) == 254  # kazoo reads a session as a signed number
