#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: broker_unregister
short_description: Remove quorum registrations of brokers that run in plain ZooKeeper mode
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - A broker that started in migration mode and was reverted to plain ZooKeeper mode may still be registered in the
    quorum. Kafka counts that registration when it decides whether to start the initial copy.
  - Removes the registration of each such broker, and checks at the quorum's leader that it is deleted. It does so only
    in pre-migration, while C(/migration) is at -1 and ZooKeeper's controller is active.
  - Runs on the probe host. Its principal needs the operation Alter on the cluster at the controllers.
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
  check_mode: {support: full, description: Returns the registrations that would be removed.}
  diff_mode: {support: none, description: Not applicable.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Remove registrations of brokers in plain ZooKeeper mode
  quorumshift.kafka.broker_unregister:
    bootstrap_servers: b1:9094
    zookeeper_connect: z1:2181,z2:2181/kafka
    nodes: "{{ my_node_facts }}"
"""

RETURN = r"""
unregistered:
  description: Ids of the brokers whose registration was removed.
  type: list
  elements: int
  returned: success
"""

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase, same_cluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.probe_module import ProbeModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import parse_host_port
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import kafka_wire


def main():
    """Remove the registrations and exit."""
    module = ProbeModule({"cluster_id": {"type": "str", "required": True}})
    module.run(lambda: unregister(module))


def unregister(module):
    """Remove each stale registration and return the module's result."""
    facts = module.facts(partitions=False, needed=(same_cluster.ZOOKEEPER, same_cluster.HOSTS))
    left = phase.find_left_registered(facts)
    if left and not module.check_mode:
        leader = facts["quorum"].get("leader_id")
        address = next((node["address"] for node in phase.controllers(facts).values() if node["node_id"] == leader), "")
        if not address:
            module.fail_json(
                msg=f"{explain_still_registered(left)}: no controller answers as the quorum's leader (QS-RESTART-015)"
            )
        try:
            for broker_id in left:
                remove(module, parse_host_port(address), broker_id)
        except kafka_wire.WireError as error:
            module.fail_json(msg=f"{explain_still_registered(left)}: {error}")
    return {"changed": bool(left), "unregistered": left}


def remove(module, address, broker_id):
    """Remove one registration; repeat until the leader has none. Fails the module after the third attempt."""
    connections = module.connections
    known = connections.controller_client, connections.timeout, module.params["cluster_id"]
    for dummy in range(3):
        if not kafka_wire.unregister_broker(address, broker_id, *known):
            return
    module.fail_json(
        msg=f"{explain_still_registered([broker_id])}: the broker registers again, so it runs in migration "
        "mode (QS-RESTART-015)"
    )


def explain_still_registered(broker_ids):
    """Return why the module fails, without the cause."""
    return (
        f"broker {', '.join(map(str, broker_ids))} runs in plain ZooKeeper mode but is registered in the quorum, so "
        "the initial copy may start without it. The registration could not be removed (QS-RESTART-015)"
    )


if __name__ == "__main__":
    main()
