#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: zk_partition_states
short_description: Create partition states that ZooKeeper lacks after the initial copy
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Runs on the probe host, while KRaft's controllers write to ZooKeeper.
  - A topic that is created just when the KRaft controller takes over has no partition states in ZooKeeper. Kafka 3.9
    then drops every change that includes such a partition, for instance a broker's restart. Neither ZooKeeper nor the
    brokers in migration mode get the change (C(KRaftMigrationDriver)). Once the state exists, the controllers update
    it.
  - A state counts as missing if it is still missing after a few more writes of the controllers.
options:
  cluster_id:
    description: The run's cluster id, which ZooKeeper must have in C(/cluster/id). The action plugin sets it.
    type: str
    required: true
extends_documentation_fragment:
  - quorumshift.kafka.connection
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.zookeeper.connect
  - quorumshift.kafka.nodes
attributes:
  check_mode: {support: full, description: Reads only and returns what would be created.}
  diff_mode: {support: none, description: Shows no difference.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Create the partition states that ZooKeeper lacks
  quorumshift.kafka.zk_partition_states:
"""

RETURN = r"""
created:
  description: The partitions whose states were created.
  type: list
  elements: str
  returned: success
  sample: [orders-0, orders-1]
"""

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.probe_module import ProbeModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import cluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write import partition_states
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write.zk_writing import WriteError


def main():
    """Create the missing partition states."""
    module = ProbeModule({"cluster_id": {"type": "str", "required": True}})

    def work():
        with cluster.connect_zookeeper(module.connections) as client:
            try:
                created = partition_states.complete(
                    client, module.params["cluster_id"], module.connections.timeout, module.check_mode
                )
            except (WriteError, znodes.ZnodeError) as error:
                module.fail_json(msg=f"{error}.")
        return {"changed": bool(created), "created": created}

    module.run(work)


if __name__ == "__main__":
    main()
