#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: partition_reassignment_info
short_description: Show reassignments in flight, throttles, and plans to drain or fill a broker
version_added: 0.1.0
description:
  - Lists the reassignments in flight (KIP-455) with their replicas, what is left to copy, and every throttle on the
    brokers and on the topics in flight.
  - Generates a plan to drain a broker or to give a broker its share. Plans keep each partition on as many racks as it
    is on, where brokers allow it, and move one replica of a partition at most.
  - In ZooKeeper mode it shows C(/admin/reassign_partitions) too, if O(zookeeper_connect) is given.
  - Runs on any host that reaches the brokers, and changes nothing.
options:
  drain:
    description: Generate a plan after which this broker has no replica.
    type: int
  add:
    description:
      - Generate a plan that gives this broker its share of replicas. V(least_loaded) chooses the broker with the fewest
        replicas in the least-loaded rack.
    type: str
  topics:
    description: Topics that a plan considers. By default all.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - quorumshift.kafka.attributes
  - quorumshift.kafka.attributes.reads
  - quorumshift.kafka.connection
  - quorumshift.kafka.connection.cluster
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.host_record
seealso:
  - module: quorumshift.kafka.partition_reassignment
  - name: Reassignments and features
    description: The modules' guide, with what they refuse and why.
    link: https://github.com/quorumshift/kafka/blob/main/docs/reassignments-and-features.md
  - name: KIP-455
    description: Kafka's proposal of reassignments by request.
    link: https://cwiki.apache.org/confluence/display/KAFKA/KIP-455%3A+Create+an+Administrative+API+for+Replica+Reassignment
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Show what is in flight and which throttles are set
  quorumshift.kafka.partition_reassignment_info:
    bootstrap_servers: b1:9092,b2:9092
  register: my_reassignments

- name: Plan to drain broker 3
  quorumshift.kafka.partition_reassignment_info:
    bootstrap_servers: b1:9092,b2:9092
    drain: 3
  register: my_plan

- name: Drain broker 3 as planned
  quorumshift.kafka.partition_reassignment:
    bootstrap_servers: b1:9092,b2:9092
    document: "{{ my_plan.plan }}"
    throttle_bytes_s: 50000000

- name: Plan to give the emptiest broker its share of two topics
  quorumshift.kafka.partition_reassignment_info:
    bootstrap_servers: b1:9092,b2:9092
    add: least_loaded
    topics: [orders, payments]
"""

RETURN = r"""
reassignments:
  description: Each partition in flight with its C(replicas), C(adding) and C(removing) ones.
  type: list
  elements: dict
  returned: success
  sample:
    - {topic: big, partition: 0, replicas: [3, 2, 1], adding: [3], removing: [1]}
progress:
  description:
    - How many partitions and bytes are left of all reassignments in flight, and how many bytes are copied. Bytes are
      null if they could not be read, and without any reassignment.
  type: dict
  returned: success
  sample: {partitions_left: 1, bytes_left: 11102014, bytes_copied: 900160}
throttles:
  description: Every replication throttle that is set, with its C(resource), C(key) and C(value).
  type: list
  elements: dict
  returned: success
  sample:
    - {resource: broker 1, key: leader.replication.throttled.rate, value: "100000"}
throttles_unread:
  description: Why throttles could not be read, of each broker that did not answer.
  type: list
  elements: str
  returned: success
  sample: []
recorded_throttles:
  description:
    - Throttles that M(quorumshift.kafka.partition_reassignment) set from this host and has not removed yet. Running it
      again once the partitions have moved removes them. C(ours) are the values that it set, C(former) is the one
      before. C(type) is 2 for a topic, 4 for a broker.
  type: list
  elements: dict
  returned: success
  sample:
    - {type: 4, name: "1", key: leader.replication.throttled.rate, ours: ["100000"], former: "7777777"}
throttles_set_by:
  description: Who set the newest of RV(recorded_throttles), as {run, user, host, at}; empty without any.
  type: dict
  returned: success
  sample: {run: null, user: root, host: control-1, at: 1795807836.9298265}
legacy:
  description: What C(/admin/reassign_partitions) asks for, null if it does not exist or was not read.
  type: str
  returned: success
  sample: null
plan:
  description: The plan, as a reassignment file of C(kafka-reassign-partitions). Null without O(drain) and O(add).
  type: dict
  returned: success
  sample:
    version: 1
    partitions: [{topic: big, partition: 0, replicas: [2, 1]}]
rollback:
  description: The reassignment that leads back to the replicas before the plan. Null without O(drain) and O(add).
  type: dict
  returned: success
  sample:
    version: 1
    partitions: [{topic: big, partition: 0, replicas: [2, 3]}]
broker:
  description: The broker that the plan is about. Null without O(drain) and O(add).
  type: int
  returned: success
  sample: 3
rack_load:
  description: Replicas a broker, on average, of each rack.
  type: dict
  returned: success
  sample: {r1: 3.0, r2: 1.5}
cluster_id:
  description: The cluster's id.
  type: str
  returned: success
  sample: Qs7KfZk2TIK1n0nQ5Qm3Tw
"""

from ansible_collections.quorumshift.kafka.plugins.module_utils.admin import reassigner
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import reassignment
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.admin_module import AdminModule, znodes


def main():
    """Gather and exit."""
    module = AdminModule(
        {
            "drain": {"type": "int"},
            "add": {"type": "str"},
            "topics": {"type": "list", "elements": "str", "default": []},
            **host_state.OPTIONS,
        },
        mutually_exclusive=[("drain", "add")],
    )
    errors = reassignment.ReassignmentError, reassigner.RecordError
    module.run(lambda admin, connections: collect(module.params, admin, connections), errors)


def collect(given, admin, connections):
    """Return the module's result."""
    in_flight = admin.in_flight()
    throttles = reassigner.Throttles(admin, given["state_dir"])
    assignments = {
        partition: found["replicas"]
        for partition, found in admin.partitions.items()
        if not given["topics"] or partition[0] in given["topics"]
    }
    racks = {broker: rack for broker, (_address, rack) in admin.brokers.items()}
    planned, broker = None, given["drain"]
    if given["drain"] is not None:
        planned = reassignment.drain(given["drain"], assignments, racks)
    elif given["add"] is not None:
        wanted = None if given["add"] == "least_loaded" else reassignment.parse_broker_id(given["add"])
        broker, planned = reassignment.add(wanted, assignments, racks)
    if planned and in_flight:
        raise reassignment.ReassignmentError(
            f"{len(in_flight)} partitions are in flight, and a plan needs settled replicas. Wait for them, or cancel "
            "them with state: cancelled (QS-ADMIN-001)"
        )
    set_now, unread = reassigner.read_throttled_configs(admin)
    back = (
        None if planned is None else reassignment.render({partition: assignments[partition] for partition in planned})
    )
    return {
        "reassignments": [
            {"topic": topic, "partition": number, **in_flight[topic, number]} for topic, number in sorted(in_flight)
        ],
        "progress": reassigner.progress(admin, in_flight),
        "throttles": [
            {"resource": str(throttle).partition(":")[0], "key": throttle.key, "value": throttle.value}
            for throttle in reassignment.find_throttles(set_now)
        ],
        "throttles_unread": unread,
        "recorded_throttles": throttles.values,
        "throttles_set_by": throttles.owner,
        "legacy": reassigner.describe_legacy(znodes(connections, reassigner.LEGACY)[reassigner.LEGACY]),
        "plan": None if planned is None else reassignment.render(planned),
        "rollback": back,
        "broker": broker,
        "rack_load": reassignment.rack_load(assignments, racks),
        "cluster_id": admin.cluster_id,
    }


if __name__ == "__main__":
    main()
