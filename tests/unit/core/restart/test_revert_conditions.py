# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node reverts only where that is safe; unfinished restarts and left registrations."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase, transitions
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.restart import revert_conditions
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes

from tests.unit.core import recorded

BEFORE_COPY = (
    b'{"version":0,"kraft_controller_id":-1,"kraft_controller_epoch":-1,"kraft_metadata_offset":-1,'
    b'"kraft_metadata_epoch":-1}'
)


def zookeeper(offset=-1, ephemeral=True, brokers=("1", "2", "5")):
    migration = znodes.migration(BEFORE_COPY.replace(b'offset":-1', b'offset":%d' % offset))
    return {
        "migration": migration,
        "controller": {"broker_id": 5 if ephemeral else 101, "ephemeral": ephemeral},
        "brokers": list(brokers),
    }


def test_a_broker_may_run_plain_before_the_copy():
    assert revert_conditions.check_under_kraft(zookeeper()) is None


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (zookeeper(offset=71), "has kraft_metadata_offset 71"),
        (zookeeper(offset=0), "has kraft_metadata_offset 0"),
        (zookeeper(ephemeral=False), "/controller is owned by KRaft controller 101"),
        ({**zookeeper(), "controller": None}, "/controller does not exist"),
        ({**zookeeper(), "migration": None}, "/migration does not exist"),
        ({**zookeeper(), "migration": znodes.migration(None)}, "/migration is malformed: has null data"),
    ],
)
def test_no_broker_may_run_plain_under_kraft(seen, why):
    assert why in revert_conditions.check_under_kraft(seen)


@pytest.mark.parametrize(
    ("registered", "alive", "safe"),
    [
        ([], ["1", "2", "5"], True),  # the first broker, not registered
        (["2"], ["1", "2", "5"], True),  # registered, and the copy waits for two others
        (["1", "2"], ["1", "2", "5"], True),  # the copy waits for broker 5
        (["1", "5"], ["1", "5"], True),  # the last broker, not registered
        (["1", "2", "5"], ["1", "5"], False),  # all live brokers are registered, this one too
        (["2"], ["2"], False),
    ],
)
def test_the_copy_may_begin_once_every_live_broker_is_registered(registered, alive, safe):
    assert (revert_conditions.check_copy_at_hand(zookeeper(brokers=alive), 2, registered) is None) == safe


@pytest.mark.parametrize("state", ["PRE_MIGRATION", "POST_MIGRATION", "NONE", None])
def test_a_broker_reverts_to_migration_mode_only_in_state_migration(state):
    assert revert_conditions.check_under_final("MIGRATION") is None
    assert str(state) in revert_conditions.check_under_final(state)


def test_kinds_of_restart_that_revert_automatically():
    kinds = transitions.KINDS.values()
    revert = {kind.name: kind.left for kind in kinds if not (kind.is_plain or kind.stays)}
    assert revert == {
        "zk_migration": "zk",
        "kraft": "zk_migration",
        "hybrid": "kraft",
    }


# Unfinished restarts of an earlier run -------------------------------------------------------------------------------


def with_restart(facts, host, **node_restart):
    facts["nodes"][host]["node_restart"] = {
        "id": "r/zk_migration/x",
        "kind": "zk_migration",
        "outcome": None,
        **node_restart,
    }
    return facts


def test_a_restart_without_outcome_is_unfinished():
    facts = recorded.facts("brokers_joining_1")
    assert phase.find_unfinished(facts) == []
    assert phase.find_unfinished(with_restart(facts, "b1")) == ["b1"]
    assert phase.find_unfinished(with_restart(facts, "b1", outcome="done")) == []


def test_a_failed_restart_is_unfinished_while_its_broker_is_down():
    facts = with_restart(recorded.facts("brokers_joining_1"), "b1", outcome="failed")
    assert phase.find_unfinished(facts) == []
    assert phase.find_unfinished(recorded.down(facts, "b1")) == ["b1"]


def test_a_masked_or_starting_controller_is_not_unfinished():
    facts = with_restart(recorded.facts("controllers_ready"), "c1", kind="controller")
    assert phase.find_unfinished(facts) == []
    facts = with_restart(facts, "c1", kind="controller_final")
    assert phase.find_unfinished(facts) == ["c1"]
    facts["nodes"]["c1"]["service"]["masked"] = True
    assert phase.find_unfinished(facts) == []


def registered_plain(name):
    """Return facts with brokers that reverted to plain mode and are registered, and their ids."""
    facts = recorded.facts(name)
    joined = [host for host, node in facts["nodes"].items() if node.get("running") == "zk_migration"]
    for host in joined:
        facts["nodes"][host].update(running="zk", next="zk")
    return facts, sorted(facts["nodes"][host]["node_id"] for host in joined)


@pytest.mark.parametrize("name", ["brokers_joining_1", "brokers_joining_2"])
def test_brokers_that_reverted_are_left_registered(name):
    assert phase.find_left_registered(recorded.facts(name)) == []
    facts, ids = registered_plain(name)
    assert ids and phase.find_left_registered(facts) == ids
    facts["zookeeper"]["migration"]["kraft_metadata_offset"] = 7
    assert phase.find_left_registered(facts) == []


def test_a_broker_whose_file_has_migration_mode_keeps_its_registration():
    facts, ids = registered_plain("brokers_joining_1")
    host = next(host for host, node in facts["nodes"].items() if node["node_id"] == ids[0])
    facts["nodes"][host]["next"] = "zk_migration"
    assert phase.find_left_registered(facts) == []
