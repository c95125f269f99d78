# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of transitions is consistent in itself and with the gates."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import gates, phase, transitions

TARGETS = ("", transitions.TO_HYBRID, transitions.TO_ZK)


@pytest.mark.parametrize("name", transitions.TRANSITIONS)
def test_a_transition_names_a_gate_and_phases_that_exist(name):
    one = transitions.TRANSITIONS[name]
    assert one.gate in gates.GATES and set(one.settled) <= {*phase.FORWARD, phase.REVERTING}
    assert gates.GATES[one.gate].rollback == one.rollback


def test_forward_transitions_of_a_role_follow_each_other():
    for role in (transitions.BROKER, transitions.CONTROLLER):
        names = [name for name, one in transitions.TRANSITIONS.items() if one.role == role and not one.rollback]
        for before, after in zip(names, names[1:]):
            assert transitions.TRANSITIONS[before].after == transitions.TRANSITIONS[after].before
            assert before in [one.name for one in transitions.earlier(after)]


def test_each_rollback_transition_undoes_a_forward_one():
    forward = {(one.before, one.after) for one in transitions.TRANSITIONS.values() if not one.rollback}
    back = {(one.after, one.before) for one in transitions.TRANSITIONS.values() if one.rollback}
    assert back <= forward


@pytest.mark.parametrize("target", TARGETS)
def test_each_step_is_a_gate_or_a_transition_of_its_direction(target):
    for step in transitions.steps(target):
        if step.kind == transitions.GATE:
            assert gates.GATES[step.name].rollback == bool(target)
        elif step.kind in (transitions.ROLL, transitions.START):
            assert transitions.TRANSITIONS[step.name].rollback == bool(target)


def test_the_restarts_of_a_migration_come_in_the_order_of_the_table():
    rolls = [step.name for step in transitions.steps() if step.kind in (transitions.ROLL, transitions.START)]
    assert rolls == [name for name, one in transitions.TRANSITIONS.items() if not one.rollback]


@pytest.mark.parametrize(
    ("seen", "due", "ahead"),
    [
        ("zk", ["backup", "before_controllers", "controller"], 13),
        ("controllers_ready", ["backup", "before_trigger", "zk_migration"], 11),
        ("copying", ["copy", "after_copy", "kraft"], 8),
        ("hybrid", ["after_copy", "kraft", "after_kraft"], 7),
        ("dual_write", ["soak", "before_finalize", "controller_final", "after_finalize"], 4),
        ("finalizing", ["kraft", "before_finalize", "controller_final", "after_finalize"], 4),
        ("finalized", [], 0),
        ("unknown", [], 0),
    ],
)
def test_steps_of_a_migration_by_phase(seen, due, ahead):
    assert transitions.names_ahead(seen, due_alone=True) == due
    assert len(transitions.names_ahead(seen)) == ahead


def test_steps_of_a_rollback_by_phase():
    assert transitions.names_ahead("hybrid", transitions.TO_HYBRID) == ["before_revert", "hybrid"]
    assert "hybrid" in transitions.names_ahead("finalizing", transitions.TO_ZK)
    assert "hybrid" not in transitions.names_ahead("finalizing", transitions.TO_ZK, due_alone=True)
    assert transitions.names_ahead("zk", transitions.TO_ZK) == []
