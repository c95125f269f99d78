# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of inputs: the action's module has each option, each variable has a spec, and none is missing."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import base, inputs, variable_specs

from tests.unit.action.harness import CLUSTER, GROUPS, RUN
from tests.unit.modules.documented import argument_spec
from tools.checkout import ROOT
from tools.yaml_files import parse_yaml

NAMES = sorted(path.stem for path in (ROOT / "plugins" / "action").glob("*.py"))


def documented(name: str) -> set[str]:
    """Return the options of a module, its doc fragments included."""
    tree = ast.parse((ROOT / "plugins" / "modules" / f"{name}.py").read_text(encoding="utf-8"))
    texts = {
        target.id: node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    documentation = parse_yaml(texts["DOCUMENTATION"])
    options = set(documentation.get("options") or {})
    for fragment in documentation.get("extends_documentation_fragment") or ():
        file, _dot, part = fragment.removeprefix("quorumshift.kafka.").partition(".")
        module = importlib.import_module(f"ansible_collections.quorumshift.kafka.plugins.doc_fragments.{file}")
        options |= set(parse_yaml(getattr(module.ModuleDocFragment, part.upper() or "DOCUMENTATION"))["options"])
    return options


def called_with_names(path: str) -> set[str]:
    """Return the names of variables that a file reads by name."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {
        call.args[0].value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in ("variable", "common", "listed", "settings")
        and call.args
        and isinstance(call.args[0], ast.Constant)
    }


def test_every_action_has_a_row_and_every_row_an_action():
    assert sorted(inputs.ACTIONS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_options_of_an_action_are_documented_in_its_module(name):
    row = inputs.find(name)
    assert {*row.fills, *row.takes} - documented(name) == set()
    assert set(row.fills) & set(row.takes) == set()


@pytest.mark.parametrize("name", NAMES)
def test_the_argument_spec_of_the_module_has_the_options_of_an_action(name):
    row = inputs.find(name)
    assert {*row.fills, *row.takes} - set(argument_spec(name)["argument_spec"]) == set()


@pytest.mark.parametrize("name", NAMES)
def test_every_source_is_a_variable_with_a_spec_or_known(name):
    row = inputs.find(name)
    for source in (*row.fills.values(), *filter(None, row.takes.values())):
        assert set(source) in ({inputs.OF_PLAY}, {inputs.OF_HOST}, {inputs.KNOWN}, {"controller"}, set(base.GROUPS))
        assert set(inputs.variables(source)) - set(variable_specs.specs()) == set()


def test_what_the_control_node_knows(harness):
    harness.variables["quorumshift_node_id"] = 7
    harness.run("digest_key", {}, {}, host="b1")
    sources = [source for row in inputs.ACTIONS.values() for source in row.fills.values()]
    names = {source[inputs.KNOWN] for source in sources if inputs.KNOWN in source}
    known = {name: harness.action._value({inputs.KNOWN: name}) for name in names}
    assert {host: node["role"] for host, node in known.pop("nodes").items()} == {
        **dict.fromkeys(GROUPS["kafka_broker"], "broker"),
        **dict.fromkeys(GROUPS["kafka_controller"], "controller"),
    }
    assert known == {
        **{"run": RUN, "cluster_id": CLUSTER, "run_key": "ab" * 32, "host": "b1", "role": "broker", "node_id": 7},
        **{"excluded": {}, "dead_destination_hosts": {}},
        "controllers": [f"{host}:9093" for host in GROUPS["kafka_controller"]],
        "expected": {"broker": [7] * len(GROUPS["kafka_broker"]), "controller": [7] * len(GROUPS["kafka_controller"])},
    }


@pytest.mark.parametrize("path", [*(f"plugins/action/{name}.py" for name in NAMES), *sorted(inputs.SHARED)])
def test_the_table_has_every_variable_that_is_read_by_name(path):
    listed = inputs.SHARED[path] if path in inputs.SHARED else inputs.find(Path(path).stem).reads
    assert sorted(called_with_names(path)) == list(listed)
    public = {name for name in listed if not name.startswith(("_", "ansible_"))}
    assert public - set(variable_specs.specs()) - variable_specs.internal() == set()


def test_no_other_file_of_the_control_node_reads_variables():
    files = {f"plugins/plugin_utils/{path.name}" for path in (ROOT / "plugins" / "plugin_utils").glob("*.py")}
    assert {path for path in files - set(inputs.SHARED) if called_with_names(path)} == set()


@pytest.mark.parametrize("name", NAMES)
def test_an_action_documents_itself(name):
    text = (ROOT / "plugins" / "action" / f"{name}.py").read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text)).startswith(f"{name}: ")
