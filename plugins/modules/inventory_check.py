#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: inventory_check
short_description: Check the groups and variables of the inventory before any host is reached
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Internal; the playbooks of this collection call it first. It runs on the control node alone and reaches no host.
  - Names each mistyped variable, each value of a wrong type, each address that cannot be parsed, missing and equal ids,
    and each variable that is set for nodes but not for the control node. Each problem says where, and what to set.
  - A value that YAML or Ansible would change is a problem as well, such as text without quotes that is a boolean, and
    one without a value whose default has one.
  - Hosts of the group C(zookeeper) are checked too. The verification reads their files.
  - A variable of the inventory whose name begins with C(restart_), C(upgrade_), C(reassign_), C(features_),
    C(zk_migrate_), C(decommission_), C(support_) or C(controller_hosts_) may be of other
    software. It is a problem if a variable of this collection has almost the same name, or if it was given with C(-e).
  - A variable that the playbooks set themselves is a problem, whatever its name, if it was given with C(-e).
options:
  direction:
    description:
      - The run's direction, as in M(quorumshift.kafka.run). With V(forward), controllers are needed.
    type: str
    default: ""
  fails:
    description:
      - Whether problems fail the task. Otherwise they are shown as warnings, and only those fail the task with which
        the cluster cannot be read.
    type: bool
    default: true
  groups:
    description: Groups of the inventory that must have hosts.
    type: list
    elements: str
    default: []
  variables:
    description: Variables that must be set, beside those of the whole cluster.
    type: list
    elements: str
    default: []
  exactly_one_of:
    description: Variables of which exactly one must be set. A boolean that is false is not set.
    type: list
    elements: str
    default: []
  taken:
    description: Internal variables that may be given with C(-e) to this playbook.
    type: list
    elements: str
    default: []
attributes:
  check_mode: {support: full, description: Reads only.}
  diff_mode: {support: none, description: Changes nothing.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Check the inventory
  quorumshift.kafka.inventory_check:
    direction: forward
"""

RETURN = r"""
problems:
  description: The problems, each a few sentences.
  type: list
  elements: str
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base import action_only


def main():
    """Fail: the action plugin of the same name does all the work."""
    module = AnsibleModule(
        argument_spec={
            "direction": {"type": "str", "default": ""},
            "fails": {"type": "bool", "default": True},
            "groups": {"type": "list", "elements": "str", "default": []},
            "variables": {"type": "list", "elements": "str", "default": []},
            "exactly_one_of": {"type": "list", "elements": "str", "default": []},
            "taken": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    module.fail_json(msg=action_only.explain("inventory_check"))


if __name__ == "__main__":
    main()
