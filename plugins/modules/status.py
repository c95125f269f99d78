#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: status
short_description: Print the status of a migration on one screen
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Detects the phase as M(quorumshift.kafka.migration_state) does, with options that the action plugin takes from
    variables. It prints the phase, every node, what blocks the next step, and the command to type next. It keeps the
    same as C(status.json) among the run artifacts.
  - It fails where something blocks the next step and C(quorumshift_fail_on_blocks) is set.
options:
  history:
    description: List every run that the hosts' journals record. Handled by the action plugin.
    type: bool
    default: false
  reassignments:
    description:
      - The result of M(quorumshift.kafka.partition_reassignment_info), shown as a line. Handled by the action plugin.
    type: dict
  record:
    description: Journal the phase, and keep the facts as run artifacts. Handled by the action plugin.
    type: bool
    default: true
attributes:
  check_mode: {support: full, description: Journals nothing.}
  diff_mode: {support: none, description: Shows no difference.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
# On localhost, after the facts of every node were read
- name: Show the status
  quorumshift.kafka.status:
    record: false
  delegate_to: "{{ quorumshift_probe_host }}"
"""

RETURN = r"""
phase:
  description: The phase. The other results are those of M(quorumshift.kafka.migration_state).
  type: str
  returned: success
screen:
  description: The lines that were printed.
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
            "history": {"type": "bool", "default": False},
            "reassignments": {"type": "dict"},
            "record": {"type": "bool", "default": True},
        },
        supports_check_mode=True,
    )
    module.fail_json(msg=action_only.explain("status"))


if __name__ == "__main__":
    main()
