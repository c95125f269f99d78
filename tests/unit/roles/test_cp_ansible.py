# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The second inventory file of docs/cp-ansible.md, as the page shows it, beside an inventory of cp-ansible."""

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
# Groups and variables as in its sample inventories (branch 7.9.x, docs/sample_inventories)
OF_CP_ANSIBLE = """
all:
  vars:
    ansible_connection: ssh
    ansible_user: ec2-user
    ansible_become: true
    ansible_python_interpreter: /usr/libexec/platform-python
    confluent_server_enabled: false
    ssl_enabled: true
zookeeper: {hosts: {z1: {}, z2: {}, z3: {}}}
kafka_broker: {hosts: {b1: {}, b2: {}, b3: {}}}
schema_registry: {hosts: {s1: {}}}
"""


@pytest.fixture
def files(tmp_path):
    """Return the two inventory files."""
    page = (ROOT / "docs" / "cp-ansible.md").read_text(encoding="utf-8")
    (second,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "hosts.yml").write_text(OF_CP_ANSIBLE)
    (tmp_path / "quorumshift.yml").write_text(second)
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


def test_cp_ansible_sees_no_controllers_and_this_collection_does(files):
    alone, both = inventory(files[:1]), inventory(files)
    assert "kafka_controller" not in alone
    assert both["kafka_controller"]["hosts"] == ["c1", "c2", "c3"]
    assert both["kafka_broker"] == alone["kafka_broker"] and both["zookeeper"] == alone["zookeeper"]
    of_hosts = both["_meta"]["hostvars"]
    assert of_hosts["b1"]["ansible_become"] is True and of_hosts["localhost"]["ansible_become"] is False


def test_the_check_of_the_inventory_passes_with_both_files_and_stops_without_the_second(files):
    check = str(ROOT / "playbooks" / "parts" / "check_inventory.yml")
    done = run("ansible-playbook", files, check)
    assert done.returncode == 0, done.stdout + done.stderr
    refused = run("ansible-playbook", files[:1], check)
    assert refused.returncode == 2 and "QS-RUN-009" in refused.stdout, refused.stdout


def test_controllers_have_the_ids_and_names_that_cp_ansible_gives_them(files):
    both = inventory(files)
    hosts, of_hosts = both["kafka_controller"]["hosts"], both["_meta"]["hostvars"]
    found = [(of_hosts[host]["quorumshift_node_id"], of_hosts[host]["quorumshift_controller_host"]) for host in hosts]
    assert found == [(9991 + place, host) for place, host in enumerate(hosts)]
