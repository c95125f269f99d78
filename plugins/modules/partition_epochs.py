#!/usr/bin/python
# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: partition_epochs
short_description: Read from a controller's metadata log how often each partition has changed
version_added: 0.1.0
description:
  - Reads the metadata log of a controller that is down and returns the partition epoch of every partition.
  - M(quorumshift.kafka.restore_zk_controller) brings the versions of the states in ZooKeeper up to them. Reads only.
options:
  config_file:
    description: The controller's properties file, which names the directory of its metadata log.
    type: path
    required: true
attributes:
  check_mode: {support: full, description: Reads only.}
  diff_mode: {support: none, description: Changes nothing.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Read how often partitions have changed
  quorumshift.kafka.partition_epochs:
    config_file: /etc/kafka/controller.properties
"""

RETURN = r"""
topics:
  description: By topic its C(topic_id), and its C(epochs) by partition.
  type: dict
  returned: success
  sample: {"orders": {"topic_id": "rEkb6zsIRuC1dqhNSBF0Nw", "epochs": {"0": 4}}}
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import rollback
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import (
    metadata_epochs,
    metadata_log,
    properties,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import node


def main():
    """Read and exit."""
    module = AnsibleModule(argument_spec={"config_file": {"type": "path", "required": True}}, supports_check_mode=True)
    topics = {}
    config_file = module.params["config_file"]
    try:
        directory = node.metadata_dir(node.read_properties(config_file)) if os.path.exists(config_file) else ""
        if os.path.isdir(directory):  # of a controller that never began there is none
            with metadata_log.open_log(directory) as log:
                extent = metadata_log.scan_log(log)
                topics = metadata_epochs.partition_epochs(metadata_log.log_records(log, extent, metadata_epochs.TYPES))
    except (OSError, ValueError, properties.PropertiesError) as error:
        module.fail_json(
            msg=f"how often partitions have changed could not be read: {error}. Run again. {rollback.NO_CONTROLLER}"
        )
    module.exit_json(changed=False, topics=topics)


if __name__ == "__main__":
    main()
