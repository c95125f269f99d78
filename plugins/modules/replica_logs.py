#!/usr/bin/python
# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: replica_logs
short_description: Read how far each replica on a stopped broker's disks reaches
version_added: 0.1.0
description:
  - Reads of every partition in the broker's log directories the topic id, the leader epoch and end offset of its last
    record, and the newest leader epoch of which it knows.
  - Fails while the broker runs, since its files move then, and on a log that cannot be read. Reads only.
options:
  service:
    description: The service's name.
    type: str
    required: true
  config_file:
    description: The broker's properties file, which names its log directories.
    type: path
    required: true
attributes:
  check_mode: {support: full, description: Reads only.}
  diff_mode: {support: none, description: Changes nothing.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Read the replicas
  quorumshift.kafka.replica_logs:
    service: kafka
    config_file: /etc/kafka/server.properties
  register: replicas
"""

RETURN = r"""
replicas:
  description: By C(topic-partition) a list of topic id, last epoch, end offset and newest epoch.
  type: dict
  returned: success
  sample: {"orders-0": ["rEkb6zsIRuC1dqhNSBF0Nw", 4, 1200, 5]}
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils import restart_steps
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import properties, replica_log
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import node, service


def main():
    """Read and exit."""
    module = AnsibleModule(
        argument_spec={
            "service": {"type": "str", "required": True},
            "config_file": {"type": "path", "required": True},
        },
        supports_check_mode=True,
    )
    given = module.params
    if not restart_steps.is_stopped(service.state(given["service"])):
        module.fail_json(msg=f"{given['service']} runs: its replicas are read when it is stopped")
    try:
        module.exit_json(changed=False, replicas=read(node.log_dir_paths(node.read_properties(given["config_file"]))))
    except (OSError, properties.PropertiesError, replica_log.ReplicaLogError) as error:
        module.fail_json(msg=f"{error}. Nothing was changed.")


def read(log_dirs):
    """Return {topic-partition: [topic id, last epoch, end offset, newest epoch]}."""
    found = {}
    for log_dir in log_dirs:
        for name in sorted(os.listdir(log_dir)):
            if replica_log.partition_of(name) and name != node.METADATA_LOG:
                found[name] = list(replica_log.read(os.path.join(log_dir, name)))
    return found


if __name__ == "__main__":
    main()
