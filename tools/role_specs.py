# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the public variables that a role's entry uses into its argument spec: `python -m tools.role_specs [--check]`.

The entries `detect_phase` and `gather` of the role quorumshift document each variable. Every other entry that a
playbook or role calls repeats in short the variables that its tasks use, so that Ansible checks them there. The
variables are read from the entry's task files and from the action plugins that these call. With --check nothing is
written, and the exit code is 1 if a file would change.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent
from typing import Any

import yaml
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import base

ROOT = Path(__file__).resolve().parents[1]
ROLES = ROOT / "roles"
HOME = ROLES / "quorumshift" / "meta" / "argument_specs.yml"
HOME_ENTRIES = ("detect_phase", "gather")
WIDTH = 160
MARKER = "      # shared variables, written by tools/role_specs.py"
_MODULE = re.compile(r"^\s*quorumshift\.kafka\.(\w+):", re.MULTILINE)
_TASKS = re.compile(r"(?:include|import)_tasks: \"?([\w{} .]+?)\.yml\"?$", re.MULTILINE)
_NODE_OPTION = re.compile(r"\bnode_option\(\"(\w+)\"")
_VARIABLE = re.compile(r"\bquorumshift_\w+")
# action plugins read facts and variables of hosts through these
_UTILS = {
    "file_changes": ("plugin_utils/file_changes.py", "module_utils/core/migration/edits.py"),
    "spark_jobs": ("plugin_utils/spark_jobs.py",),
}
_OF_NODES = (
    "quorumshift_exclude_hosts",
    "quorumshift_node_id",
    "quorumshift_controller_host",
    "quorumshift_controller_port",
)


def home() -> dict[str, dict]:
    """Return every public variable with its spec, in the documented order."""
    specs = yaml.safe_load(HOME.read_text(encoding="utf-8"))["argument_specs"]
    return {name: spec for entry in HOME_ENTRIES for name, spec in specs[entry]["options"].items()}


def task_files(role: Path, entry: str) -> Iterator[Path]:
    """Yield the task files of an entry: its own, and those that it includes from the same role."""
    seen, left = set(), [entry]
    while left:
        name = left.pop()
        pattern = re.sub(r"\{\{.*?\}\}", "*", name)
        for path in sorted((role / "tasks").glob(f"{pattern}.yml")):
            if path not in seen:
                seen.add(path)
                yield path
                left += _TASKS.findall(path.read_text(encoding="utf-8"))


def used(role: Path, entry: str) -> set[str]:
    """Return the names of all variables that an entry uses."""
    names: set[str] = set()
    for path in task_files(role, entry):
        text = path.read_text(encoding="utf-8")
        names.update(_VARIABLE.findall(text))
        for module in _MODULE.findall(text):
            names.update(_of_action(module))
    own_vars = role / "vars" / "main.yml"
    if own_vars.exists():
        names.update(_VARIABLE.findall(own_vars.read_text(encoding="utf-8")))
    return names


def _of_action(name: str) -> set[str]:
    path = ROOT / "plugins" / "action" / f"{name}.py"
    if not path.exists():
        return set()
    source = path.read_text(encoding="utf-8")
    for util, read in _UTILS.items():
        if util in source:
            source += "".join((ROOT / "plugins" / file).read_text(encoding="utf-8") for file in read)
    names = set(_VARIABLE.findall(source))
    action = importlib.import_module(f"ansible_collections.quorumshift.kafka.plugins.action.{name}").ActionModule
    for option in (*action.FILLS, *_NODE_OPTION.findall(source)):
        variable = base.VARIABLES.get(option, ())
        names.update([variable] if isinstance(variable, str) else [part for part in variable if part])
    if "nodes" in action.FILLS or "self.nodes()" in source:
        names.update(_OF_NODES)
    return names


class _Indented(yaml.SafeDumper):
    """Indents the items of lists, as yamllint wants."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def short(name: str, spec: dict[str, Any]) -> str:
    """Return a variable with the first sentence of its description, without suboptions: one line if that fits."""
    given = spec["description"]
    sentence = re.split(r"(?<=[.:]) ", given if isinstance(given, str) else given[0])[0].rstrip(".")
    kept = {key: value for key, value in spec.items() if key not in ("description", "options")}
    for description in (sentence, "See the role quorumshift"):
        fields = {**kept, "description": description}
        flow = yaml.safe_dump(fields, sort_keys=False, default_flow_style=True, width=10**6).strip()
        line = f"      {name}: {flow}"
        if len(line) <= WIDTH:
            return line
    block = yaml.dump({name: fields}, Dumper=_Indented, sort_keys=False)
    return indent(block, " " * 6).rstrip()


def written(role: Path, text: str) -> str:
    """Return the text of an argument spec with the shared variables of each entry."""
    shared, lines = home(), text.splitlines()
    specs = yaml.safe_load(text)["argument_specs"]
    made: list[str] = []
    entry, skipping = "", False
    for line in lines:
        name = re.fullmatch(r"  (\w+):", line)
        if name or not line.startswith("      "):
            skipping = False
        if name:
            entry = name[1]
        if skipping:
            continue
        made.append(line)
        if line == MARKER:
            skipping = True
            uses = used(role, entry)
            made += [short(shared_name, spec) for shared_name, spec in shared.items() if shared_name in uses]
    assert set(specs) == set(yaml.safe_load("\n".join(made))["argument_specs"])
    return "\n".join(made).rstrip() + "\n"


def main(arguments: list[str]) -> int:
    stale = []
    for path in sorted(ROLES.glob("*/meta/argument_specs.yml")):
        text = path.read_text(encoding="utf-8")
        new = written(path.parents[1], text)
        if new != text:
            stale.append(path)
            if "--check" not in arguments:
                path.write_text(new, encoding="utf-8")
    for path in stale:
        print(f"{path.relative_to(ROOT)}: {'run python -m tools.role_specs' if '--check' in arguments else 'written'}")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
