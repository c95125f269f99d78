# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that is lost in a step of a run never lets the run end with exit code 0.

In a play with any_errors_fatal Ansible takes an unreachable host that a task ignores for a failure of no task: the
rescue runs, and nothing names a reason.
"""

from __future__ import annotations

import re

import pytest
from ansible.release import __version__ as ansible_version

from tests.playbook import play
from tools.checkout import ROOT, checkout_files
from tools.yaml_files import read_yaml

TASKS = [name for name in checkout_files() if name.startswith("roles/") and "/tasks/" in name]
# A step that reads a host again ends with it: what an earlier task read of it is old. The first reading is in no step
ENDS_A_STEP = "roles/quorumshift/tasks/gather.yml"
PLAY = """
- hosts: localhost
  gather_facts: false
  any_errors_fatal: true
  tasks:
    - block:
        - ansible.builtin.ping:
          delegate_to: gone
          ignore_unreachable: true
          {switch}
          register: lost
        - ansible.builtin.debug:
            msg: "{{{{ 'named' if lost is unreachable else 'not' }}}}"
      rescue:
        - ansible.builtin.debug:
            msg: rescued
"""


def tasks(listed):
    for task in listed:
        yield task
        for part in ("block", "rescue", "always"):
            yield from tasks(task.get(part, ()))


@pytest.mark.parametrize("name", [name for name in TASKS if name != ENDS_A_STEP])
def test_a_task_that_ignores_a_lost_host_switches_any_errors_fatal_off(name):
    """With ignore_errors Ansible asks nothing of any_errors_fatal."""
    for task in tasks(read_yaml(ROOT / name)):
        if task.get("ignore_unreachable") and not task.get("ignore_errors"):
            assert task.get("any_errors_fatal") is False, task["name"]


@pytest.mark.parametrize("name", [name for name in checkout_files() if re.fullmatch(r"playbooks/.+\.yml", name)])
def test_no_play_takes_any_errors_fatal_of_the_operators_configuration(name):
    """With ANSIBLE_ANY_ERRORS_FATAL a host that is lost in the first reading would end status before it shows
    anything, and a pause before it reaches any host."""
    plays = [play for play in read_yaml(ROOT / name) if "hosts" in play]
    assert all(play.get("any_errors_fatal") is (name == "playbooks/parts/step.yml") for play in plays)


def test_the_rescue_of_a_step_always_fails():
    """A condition of the block would be asked again for the rescue, after the step may have changed it."""
    (play,) = read_yaml(ROOT / "playbooks/parts/step.yml")
    (block,) = play["tasks"]
    last = block["rescue"][-1]
    assert "ansible.builtin.fail" in last and "when" not in last and "when" not in block


def test_the_condition_of_a_step_is_asked_once():
    (play,) = read_yaml(ROOT / "playbooks/parts/step.yml")
    begin, *others = play["tasks"][0]["block"]
    assert "step_when" in begin["when"] and begin["register"] == "step_begun"
    assert all(task["when"].startswith("step_begun is not skipped") for task in others)


def test_no_block_with_a_rescue_has_a_condition():
    paths = [*ROOT.glob("roles/*/tasks/*.yml"), *ROOT.glob("playbooks/**/*.yml")]
    found = [task for path in paths for task in tasks(read_yaml(path))]
    listed = [inner for task in found for inner in (task, *tasks(task.get("tasks", ())))]
    assert len(listed) > 400 and not [task for task in listed if "rescue" in task and "when" in task]


@pytest.mark.parametrize(("switch", "said"), [("any_errors_fatal: false", "named"), ("check_mode: false", "rescued")])
def test_ansible_goes_on_after_a_lost_host_only_without_any_errors_fatal(tmp_path, switch, said):
    """If the second case ever says `named`, the switch is not needed any more. ansible-core 2.16 says nothing and
    runs no rescue: a step has a strategy of the collection for it (test_ansible_releases)."""
    (tmp_path / "play.yml").write_text(PLAY.format(switch=switch))
    (tmp_path / "hosts").write_text(
        "localhost ansible_connection=local\ngone ansible_host=127.0.0.1 ansible_port=1 ansible_connection=ssh\n"
    )
    done = play(tmp_path, tmp_path / "play.yml")
    if switch == "check_mode: false" and ansible_version.startswith("2.16."):
        assert '"msg": ' not in done.stdout.replace('"msg": "Data could not be sent', "") and done.returncode, (
            done.stdout
        )
    else:
        assert f'"msg": "{said}"' in done.stdout, done.stdout


def test_a_rehearsal_names_the_scratch_directory_that_a_lost_probe_host_keeps():
    """It may have a backup with secrets. Ansible runs no `always` for a host that a task of its own loses."""
    (build,) = [task for task in read_yaml(ROOT / "roles/rehearse/tasks/rehearse.yml") if "block" in task]
    for task in [*build["block"], *build["always"]]:
        own = any(name.startswith("quorumshift.kafka.") for name in task)
        assert own or "ansible.builtin.fail" in task or task.get("ignore_unreachable"), task["name"]
    removal, named = build["always"]
    assert "rm -r {{ rehearse_scratch.path | quote }}" in named["ansible.builtin.fail"]["msg"]
    assert removal["register"] in named["when"] and "absent" in named["when"]
