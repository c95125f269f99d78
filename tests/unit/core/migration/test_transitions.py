# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of restarts: each row holds for what its edit does to a file, and agrees with gates, modules and roles."""

from __future__ import annotations

import inspect

import pytest
from ansible_collections.quorumshift.kafka.plugins.filter import kind_of_restart
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import (
    edits,
    kraft_config,
    node_mode,
    phase,
    transitions,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import own_node
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker import restart_files, restart_worker
from ansible_collections.quorumshift.kafka.plugins.modules import node_restart, rolling_restart

from tools.checkout import ROOT
from tools.yaml_files import parse_yaml, read_yaml

TARGETS = ("", transitions.TO_HYBRID, transitions.TO_ZK)
KINDS = transitions.KINDS
MODES = {
    transitions.BROKER: (node_mode.ZK, node_mode.ZK_MIGRATION, node_mode.KRAFT),
    transitions.CONTROLLER: (node_mode.CONTROLLER_MIGRATION, node_mode.CONTROLLER_FINAL),
}
_BROKER = "broker.id=2\nlisteners=PLAINTEXT://:9092\nzookeeper.connect=z1:2181\ninter.broker.protocol.version=3.9\n"
_CONTROLLER = "process.roles=controller\nnode.id=101\npassword.encoder.secret=s\nzookeeper.connect=z1:2181\n"
_VOTERS = "controller.quorum.voters=101@c1:9093,102@c2:9093\n"
_FLAG = "zookeeper.metadata.migration.enable=true\n"
FILES = {
    node_mode.ZK: f"# the operator's\n{_BROKER}",
    node_mode.ZK_MIGRATION: f"# the operator's\n{_BROKER}{_FLAG}",
    node_mode.KRAFT: f"# the operator's\nprocess.roles=broker\nnode.id=2\nlisteners=PLAINTEXT://:9092\n{_VOTERS}",
    node_mode.CONTROLLER_MIGRATION: f"# the operator's\n{_CONTROLLER}{_FLAG}",
    node_mode.CONTROLLER_FINAL: f"# the operator's\nprocess.roles=controller\nnode.id=101\n{_VOTERS}",
}


class Host:
    """A host as an edit takes it."""

    cluster_id = "cluster"

    def __init__(self, values, role):
        self.values, self.node_id = values, 2 if role == transitions.BROKER else 101

    def variable(self, name):
        return {
            "quorumshift_node_id": self.node_id,
            "quorumshift_kafka_home": "/opt/kafka",
            "upgrade_home": "/opt/kafka-3.9.2",
            "quorumshift_broker_config": {"num.io.threads": "4"},
        }.get(name, f"<{name}>")

    def common(self, name):
        given = {"upgrade_to": "3.9.2", "quorumshift_controller_super_users": ["User:admin"]}
        return given.get(name, f"<{name}>")

    def settings(self, name):
        return self.variable(name) if name == "quorumshift_broker_config" else {}

    def voters(self):
        return "101@c1:9093"

    def address(self):
        return "c1:9093"

    def broker_properties(self):
        return properties.parse(FILES[node_mode.ZK].encode())

    def kept_protocol(self):
        return "3.8"


@pytest.fixture
def restarted(tmp_path):
    """Return a function that writes a node's file as the host's worker does, and returns it."""
    path = tmp_path / "node.properties"

    def write(kind, mode):
        old = path.read_bytes() if path.exists() else b""
        host = Host(properties.parse(old), kind.role)
        where = {"config_file": str(path), "state_dir": str(tmp_path), "cluster_id": "cluster", "run_key": "k"}
        where.update(role=kind.role, node_id=host.node_id)
        spec = {**where, "kind": kind.name, "mode": mode, **kind.edit(host)}
        new = restart_files.new_bytes(spec, old)
        restart_files.keep(spec, host_state.make_node_directory(spec), old)
        path.write_bytes(new)
        return new

    write.path = path
    return write


def mode_of(text):
    return kraft_config.mode_at_next_start(properties.parse(text))


# Each row -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_row_names_a_gate_phases_and_modes_that_exist(kind):
    assert kind.gate == gates.RESTART if kind.is_plain else gates.GATES[kind.gate].rollback == kind.is_rollback
    assert set(kind.settled) <= {*phase.FORWARD, phase.REVERTING} and bool(kind.settled) != kind.is_plain
    assert {*kind.before, kind.after} - {transitions.KEEP} <= set(MODES[kind.role])
    assert kind.is_plain or len(kind.before) == (kind.name != "controller")
    assert kind.back in TARGETS and not (kind.is_plain and kind.is_rollback)
    assert kind.is_plain or not (kind.may_change or kind.new_release)


@pytest.mark.parametrize(("kind", "mode"), [(kind, mode) for kind in KINDS.values() for mode in kind.before or ("",)])
def test_an_edit_leads_from_each_mode_of_its_row_to_the_rows_mode(kind, mode, restarted):
    """A rollback takes back what the forward kind did: the file is that of before, byte for byte."""
    if kind.is_rollback:
        restarted.path.write_text(FILES[kind.after])
        assert mode_of(restarted(transitions.find_forward_kind(mode), mode)) == mode
        assert restarted(kind, kind.after) == FILES[kind.after].encode()
        return
    if mode:
        restarted.path.write_text(FILES[mode])
    new = restarted(kind, kind.after or mode)
    assert mode_of(new) == (kind.after or mode)
    if mode:
        assert new.startswith(b"# the operator's\n")


@pytest.mark.parametrize("mode", [mode for modes in MODES.values() for mode in modes])
@pytest.mark.parametrize("kind", [kind for kind in KINDS.values() if kind.is_plain], ids=lambda kind: kind.name)
def test_a_plain_restart_changes_no_key_but_those_of_its_row_and_only_in_its_modes(kind, mode, tmp_path, monkeypatch):
    path = tmp_path / "node.properties"
    for text in (FILES[mode], FILES[mode].replace("inter.broker.protocol.version=3.9\n", "")):
        path.write_text(text)
        edited = kind.edit(Host(properties.parse(text.encode()), kind.role))
        assert set(edited.get("changes") or {}) <= set(kind.may_change)
        assert set(edited) <= {"changes"} | ({"release"} if kind.new_release else set())
        assert kind.changes_host or edited == {}
    monkeypatch.setattr(own_node, "read_running_mode", lambda *_given: mode)
    spec = {"kind": kind.name, "config_file": str(path), "service": "kafka"}
    if mode in kind.before:
        assert restart_worker.kept_mode(spec) == mode
    else:
        with pytest.raises(restart_worker.RestartError, match=f"has mode {mode}, a plain restart needs"):
            restart_worker.kept_mode(spec)


def test_each_key_of_a_row_is_one_that_its_edit_changes():
    for kind in KINDS.values():
        changed = set()
        for mode in kind.before:
            text = FILES[mode].replace("inter.broker.protocol.version=3.9\n", "")
            changed |= set(kind.edit(Host(properties.parse(text.encode()), kind.role)).get("changes") or {})
        assert kind.is_rollback or not kind.may_change or changed == set(kind.may_change), kind.name


def test_each_edit_belongs_to_a_row():
    functions = {
        function
        for _name, function in inspect.getmembers(edits, inspect.isfunction)
        if list(inspect.signature(function).parameters) in (["host"], ["_host"])
    }
    # Of a controller's whole file, and of a controller that lost its log: what finishes restarts formats it
    others = {edits.controller_properties, edits.format_command, edits.formatted_controller}
    assert functions - others == {kind.edit for kind in KINDS.values()}


# The rows together ----------------------------------------------------------------------------------------------------


def test_forward_kinds_of_a_role_follow_each_other():
    for role in (transitions.BROKER, transitions.CONTROLLER):
        forward = [kind for kind in KINDS.values() if kind.role == role and not (kind.is_plain or kind.is_rollback)]
        for before, after in zip(forward, forward[1:]):
            assert before.after == after.left and before in transitions.earlier_kinds(after.name)


def test_each_kind_of_a_rollback_undoes_a_forward_one():
    for kind in KINDS.values():
        if kind.is_rollback:
            forward = transitions.find_forward_kind(kind.left)
            assert (forward.left, forward.after, forward.role) == (kind.after, kind.left, kind.role)


def test_the_modules_take_the_kinds_of_the_table_in_its_order():
    documented = {plugin: parse_yaml(plugin.DOCUMENTATION)["options"] for plugin in (rolling_restart, node_restart)}
    assert documented[rolling_restart]["kind"]["choices"] == list(transitions.ROLLING)
    assert documented[node_restart]["kind"]["choices"] == list(KINDS)


@pytest.mark.parametrize(
    ("role", "entry", "fits"),
    [
        ("broker_roll", "main", lambda kind: kind.role == transitions.BROKER and not kind.is_plain),
        ("restart", "main", lambda kind: True),
        ("restart", "batch", lambda kind: True),
        ("restart", "settled", lambda kind: kind.is_plain),
    ],
)
def test_the_roles_take_the_kinds_that_they_are_for(role, entry, fits):
    path = ROOT / "roles" / role / "meta" / "argument_specs.yml"
    option = read_yaml(path)["argument_specs"][entry]["options"]["restart_kind"]
    assert sorted(option["choices"]) == sorted(name for name in transitions.ROLLING if fits(KINDS[name]))


def test_broker_roll_has_a_gate_before_each_forward_kind():
    tasks = ROOT / "roles" / "broker_roll" / "tasks"
    forward = {
        name
        for name in transitions.ROLLING
        if KINDS[name].role == transitions.BROKER and not (KINDS[name].is_plain or KINDS[name].is_rollback)
    }
    assert {path.stem for path in tasks.glob("before_*.yml")} == {f"before_{name}" for name in forward}


def test_roles_read_the_row_of_a_kind():
    row = kind_of_restart.FilterModule().filters()["kind_of_restart"]
    assert row("zk_migration")["joins"] and row("zk_connect")["changes_host"] and row("hybrid")["is_rollback"]
    with pytest.raises(KeyError, match="kratf"):
        row("kratf")


# The steps ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
def test_each_step_is_a_gate_or_a_kind_of_its_direction(target):
    for step in transitions.steps(target):
        if step.kind == transitions.GATE:
            assert gates.GATES[step.name].rollback == bool(target)
        elif step.kind in (transitions.ROLL, transitions.START):
            assert KINDS[step.name].is_rollback == bool(target)


def test_the_restarts_of_a_migration_come_in_the_order_of_the_table():
    rolls = [step.name for step in transitions.steps() if step.kind in (transitions.ROLL, transitions.START)]
    assert rolls == [name for name, kind in KINDS.items() if not (kind.is_plain or kind.is_rollback)]


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
    assert transitions.step_names_ahead(seen, due_alone=True) == due
    assert len(transitions.step_names_ahead(seen)) == ahead


def test_steps_of_a_rollback_by_phase():
    assert transitions.step_names_ahead("hybrid", transitions.TO_HYBRID) == ["before_revert", "hybrid"]
    assert "hybrid" in transitions.step_names_ahead("finalizing", transitions.TO_ZK)
    assert "hybrid" not in transitions.step_names_ahead("finalizing", transitions.TO_ZK, due_alone=True)
    assert transitions.step_names_ahead("zk", transitions.TO_ZK) == []
