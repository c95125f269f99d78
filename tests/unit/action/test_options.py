# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every option that an action fills in or takes for itself is documented in the module of its name."""

from __future__ import annotations

import ast
import importlib

import pytest
import yaml

from tools.checkout import ROOT

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
    documentation = yaml.safe_load(texts["DOCUMENTATION"])
    options = set(documentation.get("options") or {})
    for fragment in documentation.get("extends_documentation_fragment") or ():
        file, _dot, part = fragment.removeprefix("quorumshift.kafka.").partition(".")
        module = importlib.import_module(f"ansible_collections.quorumshift.kafka.plugins.doc_fragments.{file}")
        options |= set(yaml.safe_load(getattr(module.ModuleDocFragment, part.upper() or "DOCUMENTATION"))["options"])
    return options


def action(name: str):
    return importlib.import_module(f"ansible_collections.quorumshift.kafka.plugins.action.{name}").ActionModule


@pytest.mark.parametrize("name", NAMES)
def test_options_of_an_action_are_documented_in_its_module(name):
    assert {*action(name).FILLS, *action(name).OWN} - documented(name) == set()


@pytest.mark.parametrize("name", NAMES)
def test_an_action_documents_itself(name):
    text = (ROOT / "plugins" / "action" / f"{name}.py").read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text)).startswith(f"{name}: ")
