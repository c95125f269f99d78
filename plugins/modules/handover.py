#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: handover
short_description: Keep what configuration management has to write after a migration
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Writes C(handover.json) of the run artifacts and shows what is in it, the settings of brokers and controllers as the
    migration leaves them, and the keys that no file has any more. It runs on the control node alone, from what the run
    has read.
options: {}
attributes:
  check_mode: {support: full, description: Writes no file.}
  diff_mode: {support: none, description: Shows no difference.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Show what configuration management has to write
  quorumshift.kafka.handover:
"""

RETURN = r"""
handover:
  description:
    - By role and host, the C(file) and the keys that it has to set (C(set); null for a secret); by role, the keys that
      no file may have (C(absent); one with C(*) is the begin of keys); by host, those that its file still has
      (C(left)); the hosts whose file was not read (C(unread)).
  type: dict
  returned: success
  sample:
    version: 1
    cluster_id: phUKKf3TSny1o9Yap379dw
    brokers: {b1: {file: /etc/kafka/server.properties, set: {process.roles: broker, node.id: "1"}}}
    absent: {brokers: [broker.id, zookeeper.*], controllers: [zookeeper.*]}
    left: {}
    unread: []
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base import action_only


def main():
    """Fail: the action plugin of the same name does all the work."""
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    module.fail_json(msg=action_only.explain("handover"))


if __name__ == "__main__":
    main()
