#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: support_bundle
short_description: Make a support bundle on the control node
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Writes one C(.tar.gz) among the run artifacts, readable by its owner alone. It has the newest runs' artifacts, the
    status, what M(quorumshift.kafka.support_read) and M(quorumshift.kafka.node_facts) read of each node, and the
    inventory's variables of this collection.
  - Secrets are replaced by their names, by syntax and by value. The bundle is then decoded and searched again. If one
    is left, there is no bundle and the task fails.
  - What could not be read is listed with the reason, and is no failure.
options:
  runs:
    description: How many of the newest runs' artifacts to include.
    type: int
    default: 3
  hide_hosts:
    description: Whether to replace host names and IP addresses by pseudonyms.
    type: bool
    default: false
  leave_out:
    description: Shell patterns of files in the bundle that are not to be in it, such as V(hosts/*/node.log).
    type: list
    elements: str
    default: []
attributes:
  check_mode: {support: full, description: Writes no file.}
  diff_mode: {support: none, description: Shows no difference.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
# On localhost, after every node was read
- name: Make the support bundle
  quorumshift.kafka.support_bundle:
    runs: 1
"""

RETURN = r"""
path:
  description: The bundle; null in check mode.
  type: str
  returned: success
missing:
  description: What could not be read, each as C(what) and C(why).
  type: list
  elements: dict
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base import action_only


def main():
    """Fail: the action plugin of the same name does all the work."""
    module = AnsibleModule(
        argument_spec={
            "runs": {"type": "int", "default": 3},
            "hide_hosts": {"type": "bool", "default": False},
            "leave_out": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    module.fail_json(msg=action_only.explain("support_bundle"))


if __name__ == "__main__":
    main()
