# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every role entry that a playbook or role calls has an argument spec, and Ansible runs it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools import role_specs
from tools.checkout import checkout_files

ROOT = role_specs.ROOT
COLLECTION = "quorumshift.kafka."
YAML_FILES = [name for name in checkout_files() if re.match(r"(playbooks|roles/\w+/tasks)/.*\.yml$", name)]
pytestmark = pytest.mark.xdist_group("argument_specs")  # one run of Ansible for all tests
# Wrong for its type; a value of str or path is never wrong, since Ansible makes text of everything.
WRONG = {"int": "seven", "float": "soon", "bool": "perhaps", "dict": "[1]", "list": {"a": 1}}


def nodes(value: Any) -> Iterator[dict]:
    """Yield every mapping in a YAML document."""
    if isinstance(value, dict):
        yield value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from nodes(child)


def calls() -> Iterator[tuple[str, str, str, dict]]:
    """Yield (file, role, entry, task) of each call of a role of this collection."""
    for name in YAML_FILES:
        for node in nodes(yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))):
            for action in ("ansible.builtin.include_role", "ansible.builtin.import_role"):
                given = node.get(action)
                if given and "{{" not in given["name"]:
                    yield name, given["name"].removeprefix(COLLECTION), given.get("tasks_from", "main"), given
            if "step_role" in node:
                yield name, node["step_role"], node.get("step_tasks", "main"), {}


def specs(role: str) -> dict[str, dict]:
    path = ROOT / "roles" / role / "meta" / "argument_specs.yml"
    return yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"]


ENTRIES = sorted({(role, entry) for _file, role, entry, _task in calls()})


@pytest.mark.parametrize(("role", "entry"), ENTRIES)
def test_a_called_entry_has_a_spec_and_a_task_file(role, entry):
    assert entry in specs(role)  # a name with its extension has none, and Ansible would check nothing
    assert (ROOT / "roles" / role / "tasks" / f"{entry}.yml").is_file()


def test_every_entry_is_called_and_none_goes_unchecked():
    documented = {
        (path.parents[1].name, entry)
        for path in ROOT.glob("roles/*/meta/argument_specs.yml")
        for entry in specs(path.parents[1].name)
    }
    assert documented == set(ENTRIES)
    assert [file for file, _role, _entry, task in calls() if "rolespec_validate" in task] == []


def wrong_value(options: dict[str, dict]) -> tuple[str, Any] | None:
    """Return an option with a value that its spec does not allow."""
    for name, spec in options.items():
        if spec.get("choices"):
            return name, "none of these"
    for name, spec in options.items():
        if spec["type"] in WRONG:
            return name, WRONG[spec["type"]]
    return next(((name, None) for name, spec in options.items() if spec.get("required")), None)


WITH_OPTIONS = [
    (role, entry)
    for role, entry in ENTRIES
    if entry in specs(role) and wrong_value(specs(role)[entry]["options"])  # text is no wrong value of a path
]


@pytest.fixture(scope="module")
def refusals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Call each entry once with one wrong value, in one run; return what Ansible says of each."""
    directory = tmp_path_factory.mktemp("specs")
    tasks = []
    for role, entry in WITH_OPTIONS:
        name, value = wrong_value(specs(role)[entry]["options"])
        tasks.append(
            {
                "block": [
                    {
                        "ansible.builtin.include_role": {"name": COLLECTION + role, "tasks_from": entry},
                        "vars": {
                            "quorumshift_bootstrap_servers": "b1:9092",
                            **({} if value is None else {name: value}),
                        },
                    }
                ],
                "rescue": [
                    {
                        "ansible.builtin.copy": {
                            "content": "{{ ansible_failed_result | to_json }}",
                            "dest": str(directory / f"{role}.{entry}.json"),
                            "mode": "0600",
                        },
                        "check_mode": False,
                    }
                ],
            }
        )
    play = [{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]
    (directory / "play.yml").write_text(json.dumps(play), encoding="utf-8")
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_HOME": str(directory / "home")}
    command = [str(Path(sys.executable).with_name("ansible-playbook")), "--check", "-i", "localhost,", "-c", "local"]
    done = subprocess.run(
        [*command, str(directory / "play.yml")],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    found = {}
    for path in directory.glob("*.json"):
        failed = json.loads(path.read_text(encoding="utf-8"))
        found[path.stem] = failed.get("argument_errors") or [failed.get("msg", "")]
    return found


@pytest.mark.parametrize(("role", "entry"), WITH_OPTIONS)
def test_a_wrong_value_is_rejected_by_its_name(role, entry, refusals):
    wrong = wrong_value(specs(role)[entry]["options"])
    assert wrong, f"no option of {role}/{entry} could ever be wrong"
    # Options that are required and not set are reported as well
    messages = [text for text in refusals[f"{role}.{entry}"] if wrong[0] in text]
    assert re.search("must be one (or more )?of|unable to convert|missing required", " ".join(messages)), refusals
