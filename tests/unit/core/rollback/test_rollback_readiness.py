# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Possible targets of a rollback from each recorded state, and its obstacles."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rollback import rollback, rollback_readiness

from tests.unit.core import recorded

COMMAND = "systemctl restart kafka-controller.service"


def detected(facts):
    return rollback_readiness.detect(facts, phase.detect(facts))


def obstacles(facts):
    return "; ".join(detected(facts).obstacles)


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
def test_targets_of_a_rollback(name, targets):
    assert detected(recorded.facts(name)).targets == targets


@pytest.mark.parametrize("name", ["controllers_ready", "hybrid", "dual_write", "finalizing_1"])
def test_a_healthy_migration_has_no_obstacle(name):
    assert obstacles(recorded.facts(name)) == ""


def test_a_broker_formatted_during_the_migration_blocks_a_rollback_to_zookeeper():
    facts = recorded.facts("dual_write")
    facts["nodes"]["b2"]["log_dirs"][1]["meta"]["version"] = "1"
    path, number = facts["nodes"]["b2"]["log_dirs"][1]["path"], facts["nodes"]["b2"]["node_id"]
    reason = obstacles(facts)
    assert f"meta.properties of b2 has version=1 in {path}," in reason and f"broker.id={number}" in reason
    assert detected(facts).targets == ("hybrid", "zk")
    assert rollback.refusal(facts, phase.detect(facts), rollback.ZK) == reason
    assert rollback.refusal(facts, phase.detect(facts), rollback.HYBRID) is None


def test_unreadable_zookeeper_is_an_obstacle():
    assert "ZooKeeper could not be read: " in obstacles(recorded.facts("reverting_no_zookeeper"))


def test_zookeeper_more_than_a_minute_behind_is_an_obstacle():
    facts = recorded.facts("dual_write")
    facts["zookeeper"]["migration"]["kraft_metadata_offset"] = (
        facts["quorum"]["high_watermark"] - 1 - rollback_readiness.LAG
    )
    assert obstacles(facts) == ""
    facts["zookeeper"]["migration"]["kraft_metadata_offset"] -= 1
    assert f"ZooKeeper is {rollback_readiness.LAG + 1} offsets behind the quorum" in obstacles(facts)


def test_to_be_written_names_the_active_controller():
    facts = recorded.facts("dual_write")
    leader = next(host for host, node in facts["nodes"].items() if node["node_id"] == facts["quorum"]["leader_id"])
    advice = rollback_readiness.suggest_writes(facts)
    assert f"the active controller, {leader}, why" in advice
    assert advice.endswith("If it reports BadVersion for /migration, restart that controller: " + COMMAND)
    facts["zookeeper"]["migration"]["kraft_metadata_offset"] = 1
    assert advice[1:] in obstacles(facts), "status and the gates give the same advice"


@pytest.mark.parametrize("quorum", [{}, {"reached": False, "error": "no leader"}, {"reached": True, "leader_id": 7}])
def test_to_be_written_while_the_active_controller_is_unknown(quorum):
    advice = rollback_readiness.suggest_writes({**recorded.facts("dual_write"), "quorum": quorum})
    assert "the active controller why" in advice and advice.endswith("restart that controller")


def test_a_full_disk_of_a_broker_is_an_obstacle():
    facts = recorded.facts("dual_write")
    facts["nodes"]["b1"]["log_dirs"][0]["free_bytes"] = 5 * rollback_readiness.MIB
    facts["nodes"]["c1"]["log_dirs"][0]["free_bytes"] = 0
    assert f"b1: {facts['nodes']['b1']['log_dirs'][0]['path']} has 5 MiB free" in obstacles(facts)
    assert "c1" not in obstacles(facts)
