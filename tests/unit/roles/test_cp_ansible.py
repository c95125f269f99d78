# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The second inventory file of docs/cp-ansible.md beside an inventory of cp-ansible, before a host is reached."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.checkout import ROOT

BIN = Path(sys.executable).parent
SECOND = (ROOT / "docs" / "cp-ansible-inventory.yml").read_text(encoding="utf-8")
# Groups and variables as in its sample inventories (branch 7.9.x, docs/hosts_example.yml without kafka_controller):
# components share hosts, and what is set for all hosts is for managed ones
OF_CP_ANSIBLE = """
all:
  vars:
    ansible_connection: ssh
    ansible_user: ec2-user
    ansible_become: true
    ansible_python_interpreter: /usr/libexec/platform-python
    confluent_server_enabled: false
    ssl_enabled: true
    zookeeper_chroot: /kafka
zookeeper: {hosts: {n1.example.org: {}, n2.example.org: {}, n3.example.org: {}}}
kafka_broker: {hosts: {n1.example.org: {}, n2.example.org: {}, n3.example.org: {}}}
schema_registry: {hosts: {n1.example.org: {}}}
control_center: {hosts: {n2.example.org: {}}}
"""
PLAY = """
- import_playbook: CHECK
  vars: {quorumshift_direction: forward}
- hosts: kafka_broker:kafka_controller
  gather_facts: false
  tasks:
    - ansible.builtin.debug:
        msg: "{{ inventory_hostname }} {{ groups['kafka_controller'] }} {{ quorumshift_controller_host | default('') }}"
"""


@pytest.fixture
def files(tmp_path):
    """Return the two inventory files."""
    (tmp_path / "hosts.yml").write_text(OF_CP_ANSIBLE)
    (tmp_path / "quorumshift.yml").write_text(SECOND)
    return [tmp_path / "hosts.yml", tmp_path / "quorumshift.yml"]


def run(program, files, *more):
    """Run one of Ansible's programs with inventory files, and with the setting that cp-ansible requires."""
    sources = [word for file in files for word in ("-i", str(file))]
    settings = {"ANSIBLE_HASH_BEHAVIOUR": "merge", "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".build")}
    settings["ANSIBLE_DEPRECATION_WARNINGS"] = "false"
    command = [str(BIN / program), *sources, *more]
    return subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, check=False)


def inventory(files):
    return json.loads(run("ansible-inventory", files, "--list").stdout)


def play(files):
    """Check the inventory, then show the groups of the playbooks."""
    playbook = files[0].with_name("play.yml")
    playbook.write_text(PLAY.replace("CHECK", str(ROOT / "playbooks" / "parts" / "check_inventory.yml")))
    return run("ansible-playbook", files, str(playbook))


def test_the_page_shows_the_file():
    page = (ROOT / "docs" / "cp-ansible.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert SECOND.endswith("\n" + shown)


def test_neither_file_has_a_group_that_means_kraft_to_cp_ansible(files):
    """A host in kafka_controller is all that it asks for. Its own groups are as they were."""
    alone, both = inventory(files[:1]), inventory(files)
    assert "kafka_controller" not in alone and "kafka_controller" not in both
    assert both["quorumshift_controllers"]["hosts"] == ["c1", "c2", "c3"]
    assert both["kafka_broker"] == alone["kafka_broker"] and both["zookeeper"] == alone["zookeeper"]
    of_hosts = both["_meta"]["hostvars"]
    assert of_hosts["n1.example.org"]["ansible_become"] is True and of_hosts["localhost"]["ansible_become"] is False


def test_the_playbooks_have_the_controllers_in_their_group(files):
    done = play(files)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cp-ansible" not in done.stdout + done.stderr  # no warning of its group
    assert "\"n1.example.org ['c1', 'c2', 'c3'] \"" in done.stdout and "\"c3 ['c1', 'c2', 'c3'] c3\"" in done.stdout


def test_the_check_stops_without_the_second_file(files):
    refused = play(files[:1])
    assert refused.returncode == 2 and "QS-RUN-009" in refused.stdout, refused.stdout


def test_the_check_warns_of_the_name_that_cp_ansible_knows(files):
    text = SECOND.replace("    quorumshift_controller_group: quorumshift_controllers\n", "")
    files[1].write_text(text.replace("quorumshift_controllers:", "kafka_controller:"))
    done = play(files)
    assert done.returncode == 0, done.stdout + done.stderr
    said = " ".join((done.stdout + done.stderr).split())
    assert "The group kafka_controller is beside variables of cp-ansible (confluent_server_enabled)" in said, said


def test_a_host_of_cp_ansibles_own_group_stops_the_check(files):
    """As in its sample inventory, which is of a cluster in KRaft mode."""
    files[0].write_text(f"{OF_CP_ANSIBLE}kafka_controller: {{hosts: {{n1.example.org: {{}}}}}}\n")
    refused = play(files)
    assert refused.returncode == 2
    assert "n1.example.org: in the group kafka_controller, and quorumshift_controller_group names" in refused.stdout


def test_addresses_are_of_its_groups(files):
    done = run(
        "ansible",
        files,
        *("localhost", "-m", "ansible.builtin.debug", "-a"),
        "msg={{ quorumshift_bootstrap_servers | join(',') }}_{{ quorumshift_zookeeper_connect }}",
    )
    hosts = [f"n{number}.example.org" for number in (1, 2, 3)]
    brokers, servers = (",".join(f"{host}:{port}" for host in hosts) for port in (9092, 2181))
    assert f'"msg": "{brokers}_{servers}/kafka"' in done.stdout, done.stdout + done.stderr


def test_controllers_have_the_ids_and_names_that_cp_ansible_gives_them(files):
    both = inventory(files)
    hosts, of_hosts = both["quorumshift_controllers"]["hosts"], both["_meta"]["hostvars"]
    assert [of_hosts[host]["quorumshift_node_id"] for host in hosts] == [9991 + place for place in range(len(hosts))]
    assert {of_hosts[host]["quorumshift_controller_host"] for host in hosts} == {"{{ inventory_hostname }}"}
