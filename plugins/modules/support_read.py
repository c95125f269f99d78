#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: support_read
short_description: Read what a support bundle has of a node
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Reads the node's properties file, the end of its log and of its unit's journal, and the versions of Python and Java.
    What cannot be read is returned with the reason.
  - The texts are returned sealed under O(run_key). M(quorumshift.kafka.support_bundle) opens and redacts them on the
    control node.
options:
  config_file:
    description: The properties file that the service starts with.
    type: path
    required: true
  service:
    description: The service's name.
    type: str
    required: true
  log_file:
    description: The node's own log. Where it was rolled lately, the files that it was rolled to are read as well.
    type: path
    required: true
  lines:
    description: How many lines to read of the log and of the unit's journal, from their ends.
    type: int
    default: 2000
  run_key:
    description: The key under which the texts are sealed. The action plugin makes it.
    type: str
    required: true
attributes:
  check_mode: {support: full, description: Reads only.}
  diff_mode: {support: none, description: Reads only.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Read the node's files
  quorumshift.kafka.support_read:
    config_file: /etc/kafka/server.properties
    service: kafka
    log_file: /var/log/kafka/server.log
  register: support_texts
"""

RETURN = r"""
texts:
  description: Of each text its C(kind), its C(source), and either its content as C(sealed) or C(why) it was not read.
  type: list
  elements: dict
  returned: success
secrets:
  description: The values that no text may show, sealed.
  type: str
  returned: success
unresolved:
  description: The variables of config providers whose values could not be read, each with the reason.
  type: list
  elements: str
  returned: success
versions:
  description: C(python), of this module, and C(java), of the node's process; null if that does not run.
  type: dict
  returned: success
unread:
  description: Why nothing could be read.
  type: str
  returned: instead of a failure
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import support_texts


def main():
    """Read the texts and exit."""
    module = AnsibleModule(
        argument_spec={
            "config_file": {"type": "path", "required": True},
            "service": {"type": "str", "required": True},
            "log_file": {"type": "path", "required": True},
            "lines": {"type": "int", "default": 2000},
            "run_key": {"type": "str", "required": True, "no_log": True},
        },
        supports_check_mode=True,
    )
    given = module.params
    read = support_texts.collect(
        given["config_file"], given["service"], given["log_file"], max(0, given["lines"]), given["run_key"]
    )
    module.exit_json(changed=False, **read)


if __name__ == "__main__":
    main()
