# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`rehearse_remove` removes the scratch directories of this cluster's rehearsals, and leaves those of another's."""

from __future__ import annotations

from tests.playbook import play
from tools.checkout import ROOT
from tools.yaml_files import read_yaml

PLAY = """
- hosts: localhost
  gather_facts: false
  vars_files: [ROOT/roles/rehearse/vars/main.yml]
  vars: {quorumshift_probe_host: localhost}
  tasks:
    - CREATE
      vars: {quorumshift_bootstrap_servers: "x1:9092"}
    - CREATE
      vars: {quorumshift_bootstrap_servers: [" b2:9092", "b1:9092"]}
    - ansible.builtin.include_role: {name: quorumshift.kafka.rehearse, tasks_from: purge}
      vars: {quorumshift_bootstrap_servers: "b1:9092,b2:9092"}
"""
CREATE = 'ansible.builtin.tempfile: {path: PLACE, state: directory, prefix: "{{ _rehearse_private }}"}'


def test_scratch_directories_of_another_cluster_stay_and_are_named(tmp_path):
    created = read_yaml(ROOT / "roles/rehearse/tasks/rehearse.yml")[0]["ansible.builtin.tempfile"]
    assert created["prefix"] == "{{ _rehearse_private }}"
    place = tmp_path / "tmp"
    place.mkdir()
    text = PLAY.replace("CREATE", CREATE).replace("PLACE", str(place)).replace("ROOT", str(ROOT))
    (tmp_path / "play.yml").write_text(text)
    command = (tmp_path, tmp_path / "play.yml", "-e", f"_quorumshift_temporary={place}")
    checked = play(*command, "--check")
    assert checked.returncode == 0 and not [*place.iterdir()], checked.stdout
    done = play(*command)
    assert done.returncode == 0, done.stdout
    (left,) = place.iterdir()
    said = [line for line in done.stdout.splitlines() if '"msg"' in line]
    assert len(said) == 1 and f"{left} is of a rehearsal with another value" in said[0], done.stdout
    again = play(*command, "-e", "quorumshift_bootstrap_servers=x1:9092")
    assert again.returncode == 0 and not [*place.iterdir()], again.stdout
