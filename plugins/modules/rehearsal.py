#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rehearsal
short_description: Plan a rehearsal, run its migrations, and report
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - It runs on the control node alone. The playbooks of a rehearsal run as processes of their own, with an inventory
    that has no host of the cluster.
options:
  state:
    description:
      - V(planned) refuses hosts that are of the cluster by their names, and returns the options of each host.
      - V(run) runs the playbooks one after the other, and ends at the first that fails.
      - V(reported) shows and keeps findings, sizes and estimates.
      - V(compared) shows the newest estimates beside what the cluster's own runs took since.
    type: str
    choices: [planned, run, reported, compared]
    required: true
  source:
    description: What M(quorumshift.kafka.rehearsal_znodes) read.
    type: dict
    default: {}
  plan:
    description: The result of O(state=planned).
    type: dict
    default: {}
  runs:
    description: The result of O(state=run).
    type: list
    elements: dict
    default: []
  built:
    description: What building the rehearsal took and made.
    type: dict
    default: {}
  sizes:
    description: Sizes of files by host.
    type: dict
    default: {}
attributes:
  check_mode: {support: full, description: Runs no playbook.}
  diff_mode: {support: none, description: Shows no difference.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Plan the rehearsal
  quorumshift.kafka.rehearsal:
    state: planned
    source: "{{ rehearse_read }}"
"""

RETURN = r"""
hosts:
  description: The options of M(quorumshift.kafka.rehearsal_host) for each host.
  type: dict
  returned: O(state=planned)
servers:
  description: The rehearsal's ZooKeeper servers.
  type: str
  returned: O(state=planned)
bootstrap:
  description: The rehearsal's brokers.
  type: list
  elements: str
  returned: O(state=planned)
runs:
  description: What each playbook took, with what its gates said.
  type: list
  elements: dict
  returned: O(state=run)
compared:
  description: Each run of the cluster with its name, its estimate, its seconds, and how far the estimate is off.
  type: list
  elements: dict
  returned: O(state=compared)
report:
  description: Path of the report.
  type: str
  returned: O(state=reported)
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base import action_only


def main():
    """Fail: the action plugin of the same name does all the work."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "required": True, "choices": ["planned", "run", "reported", "compared"]},
            "source": {"type": "dict", "default": {}},
            "plan": {"type": "dict", "default": {}},
            "runs": {"type": "list", "elements": "dict", "default": []},
            "built": {"type": "dict", "default": {}},
            "sizes": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    module.fail_json(msg=action_only.explain("rehearsal"))


if __name__ == "__main__":
    main()
