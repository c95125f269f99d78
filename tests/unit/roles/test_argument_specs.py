# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every role entry that a playbook or role calls has an argument spec, and Ansible runs it. No playbook
and no entry goes on with a wrong value of a shared variable."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import variables
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import variable_specs

from tests import playbook
from tools import reference
from tools.checkout import ROOT, checkout_files
from tools.yaml_files import read_yaml

COLLECTION = "quorumshift.kafka."
YAML_FILES = [name for name in checkout_files() if re.match(r"(playbooks|roles/\w+/tasks)/.*\.yml$", name)]
HOME = "quorumshift"
# Wrong for its type; a value of str or path is never wrong, since Ansible makes text of everything.
WRONG = {
    "int": ("seven", "1.5", [1]),
    "float": ("soon", [1], {"a": 1}),
    "bool": ("perhaps", [True], "2"),
    "dict": ("[1]", 7, ["a"]),
    "list": ({"a": 1},),
}
# Homes, the entry that goes on with some wrong values, and the one whose hosts a mistaken name would change
READS = ("detect_phase", "gather", "status", "scratch")


def nodes(value: Any) -> Iterator[dict]:
    """Yield every mapping in a YAML document."""
    if isinstance(value, dict):
        yield value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from nodes(child)


def calls() -> Iterator[tuple[str, str, str, dict]]:
    """Yield (file, role, entry, task) of each call of a role of this collection."""
    for name in YAML_FILES:
        for node in nodes(read_yaml(ROOT / name)):
            for action in ("ansible.builtin.include_role", "ansible.builtin.import_role"):
                given = node.get(action)
                if given and "{{" not in given["name"]:
                    yield name, given["name"].removeprefix(COLLECTION), given.get("tasks_from", "main"), given
            if "step_role" in node:
                yield name, node["step_role"], node.get("step_tasks", "main"), {}


@functools.lru_cache(maxsize=None)
def specs(role: str) -> dict[str, dict]:
    path = ROOT / "roles" / role / "meta" / "argument_specs.yml"
    return read_yaml(path)["argument_specs"]


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


def wrong_values(spec: dict[str, Any]) -> list[Any]:
    """Return values that a spec does not allow."""
    return ["none of these"] if spec.get("choices") else [*WRONG.get(spec["type"], ())]


SHARED = reference.shared_variables()
PAIRS = [(name, value) for name, spec in SHARED.items() for value in wrong_values(spec)]
# Of a number in place of a dictionary with options, Ansible raises without the name
NAMED = [(name, value) for name, value in PAIRS if not (SHARED[name].get("options") and isinstance(value, int))]
PLAYBOOKS = sorted(path.name for path in (ROOT / "playbooks").glob("*.yml"))


def test_every_other_role_depends_on_the_home_of_the_variables():
    for path in (ROOT / "roles").glob("*/meta/main.yml"):
        needed = [] if path.parents[1].name == HOME else [COLLECTION + HOME]
        assert [dependency["role"] for dependency in read_yaml(path)["dependencies"]] == needed


def test_an_entry_has_no_shared_variable_besides_the_brokers():
    """The playbooks have checked them. Each check takes time on each host, and no value may keep a run lock open."""
    shared = {*SHARED} - {"quorumshift_bootstrap_servers"}
    for role, entry in ENTRIES:
        assert (role == HOME and entry in READS) or not {*specs(role)[entry]["options"]} & shared, (role, entry)


@pytest.mark.parametrize("playbook", PLAYBOOKS)
def test_a_playbook_refuses_a_wrong_value_of_each_shared_variable_before_it_reaches_a_host(playbook):
    first = read_yaml(ROOT / "playbooks" / playbook)[0]
    assert first["ansible.builtin.import_playbook"] == "parts/check_inventory.yml"
    ends = ("stops",) if first.get("vars", {}).get("quorumshift_show") else ("stops", "fails")
    tolerated = set()
    for name, value in PAIRS:
        for where in ("localhost", "b1", "c1", "z1"):
            hosts = {host: {"quorumshift_bootstrap_servers": ["b1:9092"]} for host in ("localhost", "b1", "c1", "z1")}
            hosts[where] = {**hosts[where], name: value}
            groups = {"kafka_broker": ["b1"], "kafka_controller": ["c1"], "zookeeper": ["z1"]}
            found = variables.find_problems(
                variables.Given(hosts, groups),
                variable_specs.specs(),
                variable_specs.cluster_wide(),
                variable_specs.known(),
                variable_specs.internal(),
                variable_specs.convert,
                forward=False,
            )
            wrong = [
                problem for problem in found if problem.text.startswith(name) and "another value" not in problem.text
            ]
            assert wrong, (name, value, where)
            if not any(problem.severity in ends for problem in wrong):
                tolerated.add(name)
    # `status` warns of what each node reads for itself, and shows the rest
    per_node = variable_specs.PER_NODE | {*specs(HOME)["gather"]["options"]}
    assert tolerated <= (per_node if playbook in ("status.yml", "support_bundle.yml") else set())


def wrong_value(role: str, entry: str) -> tuple[str, Any] | None:
    """Return an option with a value that its spec does not allow: another one for each entry with shared variables."""
    options = specs(role)[entry]["options"]
    known = [pair for pair in NAMED if pair[0] in options]
    if len(known) > 1:
        return known[(5 * ENTRIES.index((role, entry))) % len(known)]
    for name, spec in options.items():
        if wrong_values(spec):
            return name, wrong_values(spec)[0]
    return None


WITH_OPTIONS = [
    (role, entry)
    for role, entry in ENTRIES
    if entry in specs(role) and wrong_value(role, entry)  # text is no wrong value of a path
]


@pytest.fixture(scope="module")
def refusals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Call each entry once with one wrong value, in one run; return what Ansible says of each."""
    directory = tmp_path_factory.mktemp("specs")
    tasks = []
    for role, entry in WITH_OPTIONS:
        name, value = wrong_value(role, entry)
        tasks.append(
            {
                "block": [
                    {
                        "ansible.builtin.include_role": {"name": COLLECTION + role, "tasks_from": entry},
                        "vars": {
                            "quorumshift_bootstrap_servers": "b1:9092",
                            name: value,
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
    done = playbook.play(directory, directory / "play.yml", "--check")
    assert done.returncode == 0, done.stdout[-3000:]
    found = {}
    for path in directory.glob("*.json"):
        failed = json.loads(path.read_text(encoding="utf-8"))
        found[path.stem] = failed.get("argument_errors") or [failed.get("msg", "")]
    return found


@pytest.mark.parametrize(("role", "entry"), WITH_OPTIONS)
def test_a_wrong_value_is_rejected_by_its_name(role, entry, refusals):
    wrong = wrong_value(role, entry)
    assert wrong, f"no option of {role}/{entry} could ever be wrong"
    # Options that are required and not set are reported as well
    messages = [text for text in refusals[f"{role}.{entry}"] if wrong[0] in text]
    assert re.search("must be one (or more )?of|unable to convert", " ".join(messages)), refusals
