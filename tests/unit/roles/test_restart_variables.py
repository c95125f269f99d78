# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables of a rolling restart: a wrong value stops the run before it begins, and the time of a run is checked after
whatever waits."""

from __future__ import annotations

import pytest

from tests.playbook import play
from tools.checkout import ROOT
from tools.yaml_files import read_yaml

TASKS = ROOT / "roles" / "restart" / "tasks"
TIME = """
- hosts: localhost
  gather_facts: false
  vars: {began: 100, quorumshift_bootstrap_servers: 'b1:9092', restart_total_s: "{{ total }}"}
  tasks:
    - ansible.builtin.set_fact: {restart_began: "{{ now().timestamp() - began }}"}
    - ansible.builtin.include_role: {name: quorumshift.kafka.restart, tasks_from: time_left}
    - ansible.builtin.debug: {msg: a batch may begin}
"""


def test_a_wrong_value_stops_the_run_before_it_begins(tmp_path):
    """tests/integration/mistakes.py has a wrong choice, a wrong type and a wrong name in this playbook."""
    done = play(tmp_path, ROOT / "playbooks" / "restart.yml", "-e", '{"restart_roles": []}')
    output = " ".join(done.stdout.split())
    said = "restart_roles is empty. Use broker or controller, or leave it out."
    assert done.returncode != 0 and said in output and "Read every node" not in output, output


@pytest.mark.parametrize(("total", "begins"), [("50", False), ("3600", True)])
def test_no_batch_begins_once_the_time_is_over(tmp_path, total, begins):
    (tmp_path / "play.yml").write_text(TIME)
    done = play(tmp_path, tmp_path / "play.yml", "-e", f"total={total}")
    output = " ".join(done.stdout.split())
    assert (done.returncode == 0) == begins and ("a batch may begin" in output) == begins, output
    assert begins or f"and restart_total_s is {total}. No further node is stopped" in output


LEADERS = """
- hosts: localhost
  gather_facts: false
  vars:
    quorumshift_stable_s: 10
    restart_again: true
    restart_pass: {batch: [localhost], first: [], stable_s: 10, leaders: "{{ leaders | int }}"}
    restart_admitted: {unread: [c3], needed: false}
  tasks:
    - ansible.builtin.set_fact: {restart_planned: {controllers_to_read: [c1]}}
    - ansible.builtin.include_role: {name: quorumshift.kafka.restart, tasks_from: again}
"""


@pytest.mark.parametrize(("leaders", "goes_on"), [(4, True), (5, False)])
def test_a_batch_does_not_wait_without_end_for_a_quorum_that_keeps_no_leader(tmp_path, leaders, goes_on):
    (tmp_path / "play.yml").write_text(LEADERS)
    done = play(tmp_path, tmp_path / "play.yml", "-e", f"leaders={leaders}")
    output = " ".join(done.stdout.split())
    read = "Read the nodes of the batch" in output  # which fails here
    assert done.returncode != 0 and read == goes_on, output
    said = "The quorum's leader changed 6 times before localhost could be stopped, at last to c3. No further node is"
    assert (said in output) != goes_on, output


def waits(task):
    """Return whether a task may wait before the next one."""
    restart = task.get("quorumshift.kafka.rolling_restart") or {}
    return restart.get("state") == "admitted" or "ansible.builtin.wait_for" in task


def test_the_time_is_checked_between_the_last_wait_and_a_restart():
    listed = read_yaml(TASKS / "restart.yml")
    (at,) = (at for at, task in enumerate(listed) if "gate_token" in (task.get("quorumshift.kafka.node_restart") or {}))
    checked = max(place for place in range(at) if listed[place].get("ansible.builtin.import_tasks") == "time_left.yml")
    assert not any(waits(task) for task in listed[checked:at]) and any(waits(task) for task in listed[:checked])


def test_the_rule_that_stops_a_node_exists_once():
    tasks = [
        ("/".join(path.parts[-3::2]), task)
        for path in sorted((ROOT / "roles").glob("*/tasks/*.yml"))
        for task in read_yaml(path)
    ]
    admits = [name for name, task in tasks if waits(task) and "quorumshift.kafka.rolling_restart" in task]
    restarts = {
        name
        for name, task in tasks
        if "gate_token" in (task.get("quorumshift.kafka.node_restart") or {})
        and task["quorumshift.kafka.node_restart"]["kind"] == "{{ restart_kind }}"
    }
    assert admits == ["restart/restart.yml"] and restarts == {"restart/restart.yml"}


def test_a_run_ends_well_only_in_a_healthy_cluster_though_no_batch_was_left():
    plays = read_yaml(ROOT / "playbooks" / "parts" / "restart_nodes.yml")
    (settles,) = [
        settling_play["vars"] for settling_play in plays if settling_play["vars"].get("step_tasks") == "settled"
    ]
    assert settles["step_when"] == "{{ restart_when | bool and not ansible_check_mode }}"
