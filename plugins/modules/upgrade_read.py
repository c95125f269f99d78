#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: upgrade_read
short_description: Read what decides on a host whether a later release of Kafka starts there
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Reads the node's process and its log4j file. Of a broker it reads also the message formats on disk, who is
    connected, its request log, and its counters by JMX, with Kafka's own C(JmxTool).
  - What cannot be read is returned with the reason. It changes nothing.
options:
  role:
    description: The node's role.
    type: str
    choices: [broker, controller]
    required: true
  config_file:
    description: The properties file that the service starts with.
    type: path
    required: true
  service:
    description: The service's name.
    type: str
    required: true
  log_file:
    description: The node's own log.
    type: path
    required: true
  kafka_home:
    description: Kafka's directory.
    type: path
    required: true
attributes:
  check_mode: {support: full, description: Reads only.}
  diff_mode: {support: none, description: Reads only.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Read what decides on the upgrade
  quorumshift.kafka.upgrade_read:
    role: broker
    config_file: /etc/kafka/server.properties
    service: kafka
    log_file: /var/log/kafka/server.log
    kafka_home: /opt/kafka
  register: upgrade_facts
"""

RETURN = r"""
facts:
  description: The facts, for M(quorumshift.kafka.upgrade_audit).
  type: dict
  returned: success
unread:
  description: Why nothing could be read.
  type: str
  returned: instead of a failure
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import upgrade_facts


def main():
    """Read the facts and exit."""
    module = AnsibleModule(
        argument_spec={
            "role": {"type": "str", "choices": ["broker", "controller"], "required": True},
            "config_file": {"type": "path", "required": True},
            "service": {"type": "str", "required": True},
            "log_file": {"type": "path", "required": True},
            "kafka_home": {"type": "path", "required": True},
        },
        supports_check_mode=True,
    )
    names = ("role", "config_file", "service", "log_file", "kafka_home")
    module.exit_json(changed=False, facts=upgrade_facts.collect(*(module.params[name] for name in names)))


if __name__ == "__main__":
    main()
