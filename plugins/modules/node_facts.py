#!/usr/bin/python
# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_facts
short_description: Read what one host can say of its Kafka broker or controller
version_added: 0.1.0
description:
  - Reads the service, the properties file (secrets sealed under a key of the run), each log directory's
    C(meta.properties) and space, the metadata log (migration state, registrations, transactions) and the record of the
    host's newest turn.
  - What is missing or broken is told in its place and is no error.
  - Needs nothing but Python's standard library on the host, and changes nothing there.
options:
  role:
    description: What the host runs.
    type: str
    required: true
    choices: [broker, controller]
  config_file:
    description: The properties file that the service starts with.
    type: path
    required: true
  service:
    description: The service's name.
    type: str
    required: true
  kafka_home:
    description: Where Kafka is installed; the version is read from the name of its jar in C(libs).
    type: path
    default: /opt/kafka
  log_dir:
    description: The log directory to look at while there is no properties file yet that names it.
    type: path
    default: ""
  journal_events:
    description: How many of the newest events of the host's journal are told.
    type: int
    default: 20
  run_key:
    description: The key under which secrets are sealed. The action plugin makes it.
    type: str
    required: true
extends_documentation_fragment:
  - quorumshift.kafka.host_record
attributes:
  check_mode: {support: full, description: Reads only.}
  diff_mode: {support: none, description: Changes nothing.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Read the broker
  quorumshift.kafka.node_facts:
    role: broker
    config_file: /etc/kafka/server.properties
    service: kafka
"""

RETURN = r"""
ansible_facts:
  description: The facts, as C(quorumshift_node).
  type: dict
  returned: success
  contains:
    quorumshift_node:
      description: Service, file, node id, log directories, metadata log, newest turn.
      type: dict
      returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils import host_state
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import node


def main():
    """Read and exit."""
    module = AnsibleModule(
        argument_spec={
            "role": {"type": "str", "required": True, "choices": ["broker", "controller"]},
            "config_file": {"type": "path", "required": True},
            "service": {"type": "str", "required": True},
            **host_state.OPTIONS,
            "kafka_home": {"type": "path", "default": "/opt/kafka"},
            "log_dir": {"type": "path", "default": ""},
            "journal_events": {"type": "int", "default": 20},
            "run_key": {"type": "str", "required": True, "no_log": True},
        },
        supports_check_mode=True,
    )
    given = module.params
    facts = node.facts(
        given["role"],
        given["config_file"],
        given["service"],
        given["run_key"],
        given["state_dir"],
        given["kafka_home"],
        given["log_dir"],
        given["journal_events"],
    )
    module.exit_json(changed=False, ansible_facts={"quorumshift_node": facts})


if __name__ == "__main__":
    main()
