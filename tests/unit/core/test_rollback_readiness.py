# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far back it could go from each recorded state, and what is told to be in the way."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import phase, rollback, rollback_readiness

from tests.unit.core import recorded

TYPED = "systemctl restart kafka-controller.service"


def detected(facts):
    return rollback_readiness.detect(facts, phase.detect(facts))


def hurts(facts):
    return "; ".join(detected(facts).hurts)


@pytest.mark.parametrize(
    ("name", "targets"),
    [
        ("zk", ()),
        ("controllers_starting_one", ("zk",)),
        ("controllers_ready", ("zk",)),
        ("brokers_joining_2", ("zk",)),
        ("hybrid", ("zk",)),
        ("hybrid_1_kraft", ("hybrid", "zk")),
        ("dual_write", ("hybrid", "zk")),
        ("finalizing_1", ("hybrid", "zk")),
        ("finalized", ()),
        ("kraft_native", ()),
        ("reverting_controllers_down", ("zk",)),
        ("migration_malformed", ()),
    ],
)
def test_how_far_back(name, targets):
    assert detected(recorded.facts(name)).targets == targets


@pytest.mark.parametrize("name", ["controllers_ready", "hybrid", "dual_write", "finalizing_1"])
def test_nothing_is_in_the_way_of_a_migration_that_is_well(name):
    assert hurts(recorded.facts(name)) == ""


def test_a_broker_that_was_formatted_during_the_migration():
    facts = recorded.facts("dual_write")
    facts["nodes"]["b2"]["log_dirs"][1]["meta"]["version"] = "1"
    path, number = facts["nodes"]["b2"]["log_dirs"][1]["path"], facts["nodes"]["b2"]["node_id"]
    reported = hurts(facts)
    assert f"meta.properties of b2 is of version 1 in {path}," in reported and f"broker.id={number}" in reported
    assert detected(facts).targets == ("hybrid", "zk")
    assert rollback.refused(facts, phase.detect(facts), rollback.ZK) == reported
    assert rollback.refused(facts, phase.detect(facts), rollback.HYBRID) is None


def test_zookeeper_that_cannot_be_read():
    assert "ZooKeeper could not be read: " in hurts(recorded.facts("reverting_no_zookeeper"))


def test_zookeeper_that_lacks_more_than_a_minute():
    facts = recorded.facts("dual_write")
    facts["zookeeper"]["migration"]["kraft_metadata_offset"] = (
        facts["quorum"]["high_watermark"] - 1 - rollback_readiness.LAG
    )
    assert hurts(facts) == ""
    facts["zookeeper"]["migration"]["kraft_metadata_offset"] -= 1
    assert f"ZooKeeper is {rollback_readiness.LAG + 1} offsets behind the quorum" in hurts(facts)


def test_what_to_do_about_it_names_the_active_controller():
    facts = recorded.facts("dual_write")
    leader = next(host for host, node in facts["nodes"].items() if node["node_id"] == facts["quorum"]["leader_id"])
    reported = rollback_readiness.to_be_written(facts)
    assert f"the active controller, {leader}, why" in reported
    assert reported.endswith("where it says BadVersion for /migration, restart that controller: " + TYPED)
    facts["zookeeper"]["migration"]["kraft_metadata_offset"] = 1
    assert reported[1:] in hurts(facts), "status and the gates tell the same"


@pytest.mark.parametrize("quorum", [{}, {"reached": False, "error": "no leader"}, {"reached": True, "leader_id": 7}])
def test_what_to_do_where_nobody_knows_the_active_controller(quorum):
    reported = rollback_readiness.to_be_written({**recorded.facts("dual_write"), "quorum": quorum})
    assert "the active controller why" in reported and reported.endswith("restart that controller")


def test_a_disk_without_room():
    facts = recorded.facts("dual_write")
    facts["nodes"]["b1"]["log_dirs"][0]["free_bytes"] = 5 * rollback_readiness.MIB
    facts["nodes"]["c1"]["log_dirs"][0]["free_bytes"] = 0
    assert f"b1: {facts['nodes']['b1']['log_dirs'][0]['path']} has 5 MiB free" in hurts(facts)
    assert "c1" not in hurts(facts)
