#!/usr/bin/python
# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: restore_zk_controller
short_description: Hand a cluster in migration back to a controller elected by ZooKeeper
version_added: 0.1.0
description:
  - Runs on the probe host, when every controller of KRaft is down and masked. It refuses before that.
  - Refuses as well when the quorum has committed a change that its controllers have not written to ZooKeeper.
  - Raises the versions of partitions' states in ZooKeeper to the partition epochs that brokers know from KRaft's
    controllers, without which these keep restarted replicas out of sync.
  - Raises C(/controller_epoch) above the epoch of every partition's state and of the quorum (KAFKA-20488), deletes a
    C(/controller) that is KRaft's, waits until a broker is elected, then deletes C(/migration). It can be repeated.
options:
  stopped_at:
    description: When the quorum of KRaft's controllers lost its majority, in epoch seconds.
    type: float
  partition_epochs:
    description: What M(quorumshift.kafka.partition_epochs) told of each partition.
    type: dict
    required: true
  timeout_s:
    description: How long the election may take, in seconds.
    type: float
    default: 60
extends_documentation_fragment:
  - quorumshift.kafka.connection
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.nodes
attributes:
  check_mode: {support: full, description: Reads only and tells what would change.}
  diff_mode: {support: full, description: Shows the znodes before and after.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Hand the cluster back to ZooKeeper's controller
  quorumshift.kafka.restore_zk_controller:
    partition_epochs: "{{ read.topics }}"
"""

RETURN = r"""
controller_epoch:
  description: The controller epoch that was set before the election; null where it was high enough.
  type: int
  returned: success
raised:
  description: Of how many partitions' states the version was raised.
  type: int
  returned: success
elected:
  description: The id of the broker that is the controller now.
  type: int
  returned: success
without_s:
  description: For how many seconds the cluster had no controller, counted from O(stopped_at); null without that.
  type: float
  returned: success
deleted:
  description: The znodes that were deleted.
  type: list
  elements: str
  returned: success
"""

import time

from ansible_collections.quorumshift.kafka.plugins.module_utils import zk_controller_restore
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import rollback
from ansible_collections.quorumshift.kafka.plugins.module_utils.probe_module import ProbeModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import cluster


def main():
    """Judge whether it may be, and do it."""
    module = ProbeModule(
        {
            "stopped_at": {"type": "float"},
            "partition_epochs": {"type": "dict", "required": True},
            "timeout_s": {"type": "float", "default": 60},
        }
    )
    given = module.params

    def work():
        facts = module.facts(partitions=False)
        undrained = rollback.undrained(facts)
        troubles = [*rollback.not_at_rest(facts), *([undrained] if undrained else [])]
        if troubles:
            module.fail_json(
                msg=f"ZooKeeper is not handed back: {'; '.join(troubles)}. {rollback.NO_CONTROLLER}. Nothing was "
                "changed."
            )
        epochs = [(node.get("metadata_log") or {}).get("last_epoch") for node in facts["nodes"].values()]
        with cluster.connect_zookeeper(module.connections) as client:
            try:
                reported = zk_controller_restore.restore_zk_controller(
                    client,
                    epochs,
                    given["partition_epochs"],
                    module.connections.timeout,
                    given["timeout_s"],
                    module.check_mode,
                )
            except zk_controller_restore.ZkControllerError as error:
                module.fail_json(msg=f"{error}.")
        without = reported["elected"] is not None and given["stopped_at"]
        diff = {"diff": reported.pop("diff")} if module._diff else {}
        return {**reported, **diff, "without_s": round(time.time() - given["stopped_at"], 3) if without else None}

    module.run(work)


if __name__ == "__main__":
    main()
