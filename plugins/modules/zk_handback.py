#!/usr/bin/python
# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: zk_handback
short_description: Hand a cluster in migration back to a controller elected by ZooKeeper
version_added: 0.1.0
description:
  - Runs on the probe host, when every controller of KRaft is down and masked. It refuses before that.
  - Refuses as well when the quorum has committed a change that its controllers have not written to ZooKeeper.
  - Raises C(/controller_epoch) above the epoch of every partition's state and of the quorum (KAFKA-20488), deletes a
    C(/controller) that is KRaft's, waits until a broker is elected, then deletes C(/migration). It can be repeated.
options:
  stopped_at:
    description: When the last controller of KRaft was stopped, in epoch seconds.
    type: float
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
  diff_mode: {support: none, description: Shows no difference.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Hand the cluster back to ZooKeeper's controller
  quorumshift.kafka.zk_handback:
"""

RETURN = r"""
controller_epoch:
  description: The controller epoch that was set before the election; null where it was high enough.
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

import contextlib
import time

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.judgements import reverting
from ansible_collections.quorumshift.kafka.plugins.module_utils.probe_module import ProbeModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import cluster, zookeeper

try:
    from kazoo import exceptions as kazoo_exceptions
except ImportError:
    kazoo_exceptions = None  # cluster.connect_zookeeper says so

POLL_S = 0.05


def main():
    """Judge what is to be done, and do it in an order that can be broken off anywhere."""
    module = ProbeModule({"stopped_at": {"type": "float"}, "timeout_s": {"type": "float", "default": 60}})

    def work():
        facts = module.facts(partitions=False)
        troubles = reverting.not_at_rest(facts)
        undrained = reverting.undrained(facts)
        if troubles or undrained:
            told = "; ".join([*troubles, *([undrained] if undrained else [])])
            module.fail_json(msg=f"ZooKeeper is not handed back: {told}. Nothing was changed.")
        with cluster.connect_zookeeper(module.connections) as client:
            return handed_back(module, client, facts)

    module.run(work)


def handed_back(module, client, facts):
    """Return the result. Each step is taken over the very znode that was judged."""
    timeout = module.connections.timeout
    seen = zookeeper.witness(client, timeout, max_controller_epoch=True)
    epochs = [(node.get("metadata_log") or {}).get("last_epoch") for node in facts["nodes"].values()]
    wanted = reverting.hand_back(seen, epochs)
    told = {"controller_epoch": wanted.controller_epoch, "deleted": [], "elected": None, "without_s": None}
    if module.check_mode:
        return {**told, "changed": any(wanted)}
    if wanted.controller_epoch is not None:
        data = str(wanted.controller_epoch).encode()
        client.set(znodes.CONTROLLER_EPOCH, data, version=seen["controller_epoch"]["version"])
    if wanted.controller:
        delete(client, znodes.CONTROLLER, told)
    told["elected"] = await_election(module, client)["broker_id"]
    if module.params["stopped_at"]:
        told["without_s"] = round(time.time() - module.params["stopped_at"], 3)
    if wanted.migration:
        delete(client, znodes.MIGRATION, told)
    return {**told, "changed": any(wanted)}


def delete(client, path, told):
    """Delete a znode that may be gone already."""
    with contextlib.suppress(kazoo_exceptions.NoNodeError):
        client.delete(path)
        told["deleted"].append(path)


def await_election(module, client):
    """Return /controller when it is a broker's of ZooKeeper mode."""
    bound, began = module.params["timeout_s"], time.monotonic()
    while True:
        seen = zookeeper.witness(client, module.connections.timeout)
        if reverting.elected(seen["controller"]):
            return seen["controller"]
        if time.monotonic() - began > bound:
            owner = seen["controller"]["broker_id"] if seen["controller"]["exists"] else "nobody"
            alive = ", ".join(sorted(seen["broker_ids"])) or "nobody"
            module.fail_json(
                msg=f"waited {bound:.0f} s for a broker to become controller. Seen last: /controller holds {owner}, "
                f"/brokers/ids holds {alive}. Run again; if it stays, restart one broker as it is"
            )
        time.sleep(POLL_S)


if __name__ == "__main__":
    main()
