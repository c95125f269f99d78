#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gate_views
short_description: List what is compared before a gate opens
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - It runs on the control node alone, and reads the run artifacts there.
options:
  gate:
    description: The name of the gate.
    type: str
    required: true
  phase:
    description:
      - The phase of the migration, as M(quorumshift.kafka.migration_state) returns it. Until the initial copy has
        ended, V(before_revert) does without the metadata log.
    type: str
    required: true
extends_documentation_fragment:
  - quorumshift.kafka.attributes
  - quorumshift.kafka.attributes.reads
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: List what is compared
  quorumshift.kafka.gate_views:
    gate: after_kraft
    phase: dual_write
"""

RETURN = r"""
views:
  description: The views of the metadata that are compared before this gate opens.
  type: list
  elements: str
  returned: success
  sample: [zookeeper, broker, metadata_log, baseline]
compares_records:
  description: Whether records are compared as well before this gate opens.
  type: bool
  returned: success
  sample: true
baseline:
  description: Where the last comparison that passed has read its views.
  type: dict
  returned: success
  sample: {offset: null, zxid: null, snapshots: {}}
  contains:
    offset:
      description: The end of the metadata log; null where no log was compared.
      type: int
    zxid:
      description: The zxid of ZooKeeper; null where ZooKeeper was not compared.
      type: int
    snapshots:
      description: For each ZooKeeper server the newest snapshot of before that, C({snapshot, zxid}).
      type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base import action_only


def main():
    """Fail: the action plugin of the same name does all the work."""
    module = AnsibleModule(
        argument_spec={"gate": {"type": "str", "required": True}, "phase": {"type": "str", "required": True}},
        supports_check_mode=True,
    )
    module.fail_json(msg=action_only.explain("gate_views"))


if __name__ == "__main__":
    main()
