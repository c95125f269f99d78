#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: run_step
short_description: Journal the begin and the end of a step of a run
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Internal; the playbooks of this collection call it around each of their steps. It runs on the control node alone.
  - A step that began and did not end on all of its hosts ends the run. Every later task of this collection fails then,
    but for a few clean-ups. Ansible itself would start the next play after a host became unreachable.
options:
  state:
    description:
      - V(begun) journals the step with the hosts of its batch, and fails where the run failed before.
      - V(ended) fails where a host of the batch was lost on the way.
      - V(failed) journals what failed on this host, in a step's rescue.
      - V(lost) journals which hosts of the step take no part in its rescue.
      - V(advised) journals what the operator does next, where the step knows more than how to run the playbook again.
      - V(over) fails where the run failed, and says where, why and what to do.
    type: str
    required: true
    choices: [begun, ended, failed, lost, advised, over]
  next_step:
    description: With O(state=advised), what the operator does next, in sentences.
    type: str
    default: ""
  stopped_at:
    description: With O(state=failed), the name of the task that failed.
    type: str
  reason:
    description: With O(state=failed), why it failed.
    type: str
    default: ""
  answered:
    description: With O(state=lost), the hosts that take part in the rescue.
    type: list
    elements: str
    default: []
attributes:
  check_mode: {support: full, description: Journals nothing.}
  diff_mode: {support: none, description: Shows no difference.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Begin the step
  quorumshift.kafka.run_step:
    state: begun
  run_once: true
"""

RETURN = r"""
msg:
  description: Where the run failed, why, and what to do.
  type: str
  returned: failure
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base import action_only


def main():
    """Fail: the action plugin of the same name does all the work."""
    module = AnsibleModule(
        argument_spec={
            "state": {
                "type": "str",
                "required": True,
                "choices": ["begun", "ended", "failed", "lost", "advised", "over"],
            },
            "next_step": {"type": "str", "default": ""},
            "stopped_at": {"type": "str"},
            "reason": {"type": "str", "default": ""},
            "answered": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    module.fail_json(msg=action_only.explain("run_step"))


if __name__ == "__main__":
    main()
