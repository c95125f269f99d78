# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What changes the cluster from the probe host, which has no run lock, first asks a host that has it.

A broker or controller reads its own lock before each change. From the probe host another run would go unseen that took
over the lock within a step.
"""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import run_outcome

from tools.checkout import ROOT
from tools.yaml_files import read_yaml

HELD = {"state": "held"}
STOP = "decommission/tasks/stop.yml"
PROBE_HOST = "{{ quorumshift_probe_host }}"
ALONE = ("kafka_features", "preferred_leader_election")  # they work without a run too, so no table of runs has them


def changes():
    """Yield (task file, its tasks, place of a task there) of each change from the probe host that is no clean-up."""
    for path in sorted((ROOT / "roles").glob("*/tasks/*.yml")):
        listed = read_yaml(path)
        for at, task in enumerate(listed):
            for module, options in task.items():
                name = module.rpartition(".")[2]
                if not module.startswith("quorumshift.kafka.") or task.get("delegate_to") != PROBE_HOST:
                    continue
                given = options or {}
                if run_outcome.is_clean_up(name, given) or task.get("check_mode"):
                    continue
                if name in ALONE or run_outcome.needs_lock(name, given):
                    yield "/".join(path.parts[-3:]), listed, at


def test_each_change_from_the_probe_host_asks_for_the_lock_first():
    found = list(changes())
    assert len(found) == 11, [place for place, *_rest in found]
    for place, listed, at in found:
        before = listed[at - 1] if at else {}
        assert before.get("quorumshift.kafka.run") == HELD, place
        assert before["delegate_to"] == "{{ _quorumshift_arbiter }}", place
        assert before.get("when") == listed[at].get("when"), place
        assert before.get("run_once") == listed[at].get("run_once"), place


def test_a_stop_on_a_zookeeper_host_asks_for_the_lock_right_before_it():
    """These hosts have no run lock either, and what is read before the stop takes a while."""
    *_others, before, stop = read_yaml(ROOT / "roles" / STOP)
    assert stop["quorumshift.kafka.zk_decommission"]["state"] == "stopped"
    assert before["quorumshift.kafka.run"] == HELD and before["delegate_to"] == "{{ _quorumshift_arbiter }}"


def test_a_step_on_hosts_without_a_run_lock_asks_for_it_first():
    """A run that is suspended before a cut, and goes on after another run took the lock over, makes no cut."""
    (play,) = read_yaml(ROOT / "playbooks/parts/step.yml")
    _begin, require, work, _end = play["tasks"][0]["block"]
    assert require["ansible.builtin.include_role"]["tasks_from"] == "run_held" and "step_role" in str(work)
    assert "difference(step_locked + ['localhost'])" in require["when"]
    (held,) = read_yaml(ROOT / "roles/quorumshift/tasks/run_held.yml")
    assert held["quorumshift.kafka.run"] == HELD and held["run_once"]
