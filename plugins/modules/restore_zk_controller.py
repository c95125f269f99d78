#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: restore_zk_controller
short_description: Restore ZooKeeper's controller during a rollback
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Runs on the probe host. Fails unless every KRaft controller is stopped and masked.
  - Fails as well if the quorum has committed a change that its controllers have not written to ZooKeeper.
  - Raises the versions of partition states in ZooKeeper to the partition epochs that the brokers know from KRaft.
    Otherwise restarted replicas would stay out of sync.
  - Raises C(/controller_epoch) above the epochs of all partition states and of the quorum (KAFKA-20488). Deletes
    KRaft's C(/controller), waits until a broker is elected, then deletes C(/migration). It can be repeated.
options:
  cluster_id:
    description: The run's cluster id, which ZooKeeper must have in C(/cluster/id). The action plugin sets it.
    type: str
    required: true
  stopped_at:
    description: When the KRaft quorum lost its majority, in epoch seconds.
    type: float
  partition_epochs:
    description: The partition epochs that M(quorumshift.kafka.node_facts) returned.
    type: dict
    required: true
  timeout_s:
    description: How long the election may take, in seconds.
    type: float
    default: 60
extends_documentation_fragment:
  - quorumshift.kafka.connection
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.zookeeper.connect
  - quorumshift.kafka.nodes
attributes:
  check_mode: {support: full, description: Reads only and returns what would change.}
  diff_mode: {support: full, description: Shows the znodes before and after.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Restore ZooKeeper's controller
  quorumshift.kafka.restore_zk_controller:
    partition_epochs: "{{ read.partition_epochs }}"
"""

RETURN = r"""
controller_epoch:
  description: The controller epoch that was set before the election; null if it was high enough.
  type: int
  returned: success
raised:
  description: How many partition states got a higher version.
  type: int
  returned: success
elected:
  description: The id of the broker that is now the controller.
  type: int
  returned: success
without_s:
  description: How many seconds the cluster had no controller, counted from O(stopped_at); null without it.
  type: float
  returned: success
deleted:
  description: The znodes that were deleted.
  type: list
  elements: str
  returned: success
"""

import time

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import same_cluster, zk_controller
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rollback import rollback
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.probe_module import ProbeModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import cluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write import zk_controller_restore


def main():
    """Check the preconditions, then restore the controller."""
    module = ProbeModule(
        {
            "cluster_id": {"type": "str", "required": True},
            "stopped_at": {"type": "float"},
            "partition_epochs": {"type": "dict", "required": True},
            "timeout_s": {"type": "float", "default": 60},
        }
    )
    given = module.params

    def work():
        facts = module.facts(partitions=False, needed=(same_cluster.HOSTS,))
        undrained = rollback.check_drained(facts)
        troubles = [*rollback.check_at_rest(facts), *([undrained] if undrained else [])]
        if troubles:
            why = "; ".join(troubles)
            module.fail_json(
                msg=f"ZooKeeper's controller was not restored: {why}. {zk_controller.NO_CONTROLLER}. Nothing was "
                "changed. (QS-ROLLBACK-004)"
            )
        epochs = [(node.get("metadata_log") or {}).get("last_epoch") for node in facts["nodes"].values()]
        with cluster.connect_zookeeper(module.connections) as client:
            try:
                result = zk_controller_restore.restore_zk_controller(
                    client,
                    given["cluster_id"],
                    epochs,
                    given["partition_epochs"],
                    module.connections.timeout,
                    given["timeout_s"],
                    module.check_mode,
                )
            except zk_controller_restore.ZkControllerError as error:
                module.fail_json(msg=f"{error}.")
        elected = result["elected"] is not None
        without_s = round(time.time() - given["stopped_at"], 3) if elected and given["stopped_at"] else None
        return {**result, "without_s": without_s}

    module.run(work)


if __name__ == "__main__":
    main()
