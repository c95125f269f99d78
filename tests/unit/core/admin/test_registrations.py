# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Registered nodes that no host of the inventory is, and what removes them."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import registrations
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin.registrations import Gone
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases.features import Range

MV = "metadata.version"


def log(end, brokers, controllers):
    def registered(ids, offset):
        return {
            str(node_id): {"registered_offset": offset + node_id, "features": {MV: levels}}
            for node_id, levels in ids.items()
        }

    return {"log_end_offset": end, "brokers": registered(brokers, 100), "controllers": registered(controllers, 200)}


def nodes(**logs):
    return {
        "b1": {"role": "broker", "node_id": 1, "metadata_log": logs.get("b1")},
        "c1": {"role": "controller", "node_id": 11, "metadata_log": logs.get("c1")},
        "c2": {"role": "controller", "node_id": 12, "metadata_log": logs.get("c2")},
    }


OLD, NEW = [1, 21], [7, 27]


def test_registered_nodes_that_no_host_is():
    found = nodes(c1=log(50, {1: NEW, 7: OLD, 11: OLD}, {11: NEW, 12: NEW, 13: OLD, 1: NEW}))
    assert registrations.find_gone(found) == (
        Gone("broker", 7, 107, Range(1, 21)),
        Gone("broker", 11, 111, Range(1, 21)),
        Gone("controller", 1, 201, Range(7, 27)),
        Gone("controller", 13, 213, Range(1, 21)),
    )


def test_the_longest_log_decides_and_one_that_cannot_be_read_does_not():
    short, long = log(50, {1: NEW}, {11: NEW, 12: NEW, 13: OLD}), log(60, {1: NEW}, {11: NEW, 12: NEW})
    assert registrations.find_gone(nodes(c1=short, c2=long)) == ()
    assert registrations.find_gone(nodes(c1=long, b1=short)) == ()
    found = registrations.find_gone(nodes(c1={"error": "CorruptBatch"}, c2=short))
    assert found == (Gone("controller", 13, 213, Range(1, 21)),)
    assert registrations.find_gone(nodes(c1={"error": "CorruptBatch"})) is None


def capped(role, supported, now, wanted=27):
    return registrations.explain_cap((Gone(role, 13, 213, Range(*supported)),), "4.1.1", now, wanted, "b1:9092")


@pytest.mark.parametrize(
    ("role", "supported", "now", "texts"),
    [
        (
            "controller",
            OLD,
            21,
            (
                "controller 13 is registered (record 213 of the metadata log), and no host of the inventory has this",
                "It supports metadata.version 3.9-IV0 at most, so Kafka does not raise it to 4.1-IV1",
                "from metadata.version 4.4-IV2 on, and it is 3.9-IV0. Start a controller 13 with Kafka 4.1.1 until it",
            ),
        ),
        ("controller", OLD, 33, ("kafka-cluster.sh unregister-controller --bootstrap-server b1:9092 --id 13",)),
        ("controller", (0, 0), 21, ("It names no metadata.version, so Kafka does not raise it",)),
        ("broker", OLD, 21, ("kafka-cluster.sh unregister --bootstrap-server b1:9092 --id 13",)),
    ],
)
def test_what_is_said_of_a_node_that_is_gone(role, supported, now, texts):
    (said,) = capped(role, supported, now)
    assert all(text in said for text in texts), said


def test_only_a_level_that_the_registration_does_not_support_is_capped():
    for wanted in range(1, 34):
        assert bool(capped("controller", (7, 27), 7, wanted)) == (not 7 <= wanted <= 27)


def test_logs_that_cannot_be_read_are_no_evidence():
    (said,) = registrations.explain_cap(None, "4.1.1", 21, 27, "b1:9092")
    assert "no node's metadata log could be read" in said
