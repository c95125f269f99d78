#!/usr/bin/python
# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: broker_unregister
short_description: Remove from the KRaft quorum what brokers left that went back to ZooKeeper mode
version_added: 0.1.0
description:
  - A broker that was started in migration mode and put back to plain ZooKeeper mode may have registered in the quorum.
    Kafka counts that registration when it decides to begin the copy, though the broker runs under ZooKeeper's
    controller.
  - Removes the registration of each such broker, and reads that back from the quorum's leader. Does so only in
    pre-migration, with C(/migration) at -1 and ZooKeeper's controller leading.
  - Runs on the probe host. On the controllers its principal needs the operation Alter on the cluster.
extends_documentation_fragment:
  - quorumshift.kafka.connection
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.nodes
attributes:
  check_mode: {support: full, description: Tells which registrations would be removed.}
  diff_mode: {support: none, description: Not applicable.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Remove registrations of brokers that run plain
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

from ansible_collections.quorumshift.kafka.plugins.module_utils.addresses import parse_host_port
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.probe_module import ProbeModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import kafka_wire


def main():
    """Remove and exit."""
    module = ProbeModule({})
    module.run(lambda: unregistered(module))


def unregistered(module):
    """Remove what is left, read it back, return the module's result."""
    facts = module.facts(partitions=False)
    left = phase.left_registered(facts)
    if left and not module.check_mode:
        leader = facts["quorum"].get("leader_id")
        address = next((node["address"] for node in phase.controllers(facts).values() if node["node_id"] == leader), "")
        shown = ", ".join(map(str, left))
        if not address:
            module.fail_json(msg=f"{lasts(shown)}: no controller answers as the quorum's leader")
        try:
            for broker_id in left:
                remove(module, parse_host_port(address), broker_id)
        except kafka_wire.WireError as error:
            module.fail_json(msg=f"{lasts(shown)}: {error}")
    return {"changed": bool(left), "unregistered": left}


def remove(module, address, broker_id):
    """Remove one registration, and ask again until the leader has none."""
    connections = module.connections
    for dummy in range(3):
        if not kafka_wire.unregister_broker(address, broker_id, connections.controller_client, connections.timeout):
            return
    module.fail_json(msg=f"{lasts(broker_id)}: broker {broker_id} registers again, so it does not run in plain mode")


def lasts(shown):
    """Return why this stops: a registration that stands, and could not be removed."""
    return (
        f"broker {shown} runs in ZooKeeper mode and is registered in the quorum, so the copy may begin without it; "
        "its registration could not be removed"
    )


if __name__ == "__main__":
    main()
