# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What differs between releases of ansible-core makes no difference here. `make cores` runs these tests on each."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import yaml

from tests.playbook import play
from tools.checkout import ROOT
from tools.pythons import find_python
from tools.yaml_files import read_yaml

(STEP,) = read_yaml(ROOT / "playbooks/parts/step.yml")
FAILS = [{"ansible.builtin.fail": {"msg": "own"}, "when": "inventory_hostname == 'a'"}]
LOST = [{"ansible.builtin.ping": None}]
IGNORED = [{"ansible.builtin.ping": None, "ignore_unreachable": True}]
INCLUDES = [
    {"ansible.builtin.include_tasks": {"file": "{{ (inventory_hostname == 'a') | ternary('absent', 'goes_on') }}.yml"}}
]
HOSTS = "a ansible_connection={a} ansible_host=127.0.0.1 ansible_port=1\nb ansible_connection=local\n"


def say(text):
    return {"ansible.builtin.debug": {"msg": f"{text} {{{{ inventory_hostname }}}}"}}


@pytest.mark.parametrize(
    ("first", "a", "rescued"),
    [(FAILS, "local", "ab"), (LOST, "ssh", "b"), (IGNORED, "ssh", "ab"), (INCLUDES, "local", "ab")],
    ids=["fails", "lost", "ignored", "includes"],
)
def test_where_one_host_of_a_step_fails_no_other_goes_on(tmp_path, first, a, rescued):
    block = {"block": [*first, say("went on"), say("went on")], "rescue": [say("rescued"), FAIL]}
    kept = {name: STEP[name] for name in ("strategy", "any_errors_fatal", "gather_facts")}
    plays = [{**kept, "hosts": "a:b", "tasks": [block]}, {**kept, "hosts": "b", "tasks": [say("next play")]}]
    (tmp_path / "play.yml").write_text(yaml.safe_dump(plays))
    (tmp_path / "goes_on.yml").write_text(yaml.safe_dump([say("went on")]))
    (tmp_path / "hosts").write_text(HOSTS.format(a=a))
    done = play(tmp_path, tmp_path / "play.yml")
    said = [json.loads("{" + line + "}")["msg"] for line in done.stdout.splitlines() if line.startswith('    "msg":')]
    assert done.returncode != 0 and sorted(said) == [f"rescued {host}" for host in rescued], done.stdout


FAIL = {"ansible.builtin.fail": {"msg": "named"}}


def test_a_step_has_the_strategy_in_which_that_is_so():
    """Without it this very play goes on, on ansible-core 2.16."""
    assert "'quorumshift.kafka.linear', 'ansible.builtin.linear'" in STEP["strategy"] and STEP["any_errors_fatal"]


def tasks(listed):
    for task in listed or ():
        yield task
        for part in ("block", "rescue", "always", "tasks"):
            yield from tasks(task.get(part))


def test_ansibles_modules_have_the_options_that_tasks_give_them():
    used: dict[str, set[str]] = {}
    for path in (*ROOT.glob("roles/*/tasks/*.yml"), *ROOT.glob("playbooks/**/*.yml")):
        for task in tasks(read_yaml(path)):
            for name, given in task.items():
                if name.startswith("ansible.builtin.") and isinstance(given, dict) and "clude" not in name:
                    used.setdefault(name, set()).update(given)
    for free in ("ansible.builtin.set_fact", "ansible.builtin.import_playbook", "ansible.builtin.import_role"):
        used.pop(free, None)
    used.pop("ansible.builtin.import_tasks", None)
    program = os.path.join(os.path.dirname(sys.executable), "ansible-doc")
    done = subprocess.run([program, "--json", *used], capture_output=True, text=True, check=True)
    documented = json.loads(done.stdout)
    assert len(used) > 8 and set(documented) == set(used)
    for name, given in used.items():
        options = documented[name]["doc"]["options"]
        known = set(options) | {alias for option in options.values() for alias in option.get("aliases") or ()}
        # of the action plugin
        known |= {"groups", "name"} if name.endswith("add_host") else set()
        assert given <= known, name


READS = """
- hosts: all
  gather_facts: false
  tasks:
    - quorumshift.kafka.node_facts: {gather_subset: [clock]}
"""


@pytest.mark.parametrize(("python", "starts"), [("3.6", False), ("3.7", False), ("3.8", None), ("3.9", True)])
def test_a_host_with_an_old_python_is_named_with_what_to_install(tmp_path, python, starts):
    """3.8: up to ansible-core 2.19."""
    interpreter = find_python(python)
    if interpreter is None:
        pytest.skip(f"this host has no Python {python}")
    (tmp_path / "play.yml").write_text(READS)
    (tmp_path / "hosts").write_text("h1 ansible_connection=local quorumshift_bootstrap_servers=b1:9092\n")
    done = play(tmp_path, tmp_path / "play.yml", "-e", f"ansible_python_interpreter={interpreter}")
    refused = f"h1: Python {python} is too old: {interpreter}. Install Python 3."
    output = " ".join(done.stdout.split())
    assert (done.returncode == 0) is not (refused in output), output
    if starts is not None:
        assert (done.returncode == 0) is starts, output
