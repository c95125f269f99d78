#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: partition_reassignment_info
short_description: Show reassignments in flight, throttles, and plans to drain or fill brokers
version_added: 0.1.0
description:
  - Lists the reassignments in flight (KIP-455) with their replicas, what is left to copy, and every throttle on the
    brokers and on the topics in flight.
  - Generates a plan to drain brokers, to give a broker its share, or to change the number of replicas. A plan copies as
    few bytes as its aim needs. It keeps each partition on as many racks as it is on, where brokers allow it, and
    balances replicas and bytes among the brokers that have room.
  - In ZooKeeper mode it shows C(/admin/reassign_partitions) too, if O(zookeeper_connect) is given.
  - Runs on any host that reaches the brokers, and changes nothing. Its principal needs Describe on the cluster and the
    topics, and DescribeConfigs on both for the throttles.
options:
  drain:
    description: Generate a plan after which these brokers have no replica.
    type: list
    elements: int
    default: []
  drain_racks:
    description: Generate a plan after which no live broker of these racks has a replica.
    type: list
    elements: str
    default: []
  add:
    description:
      - Generate a plan that gives this broker its share of replicas. V(least_loaded) chooses the broker with the fewest
        replicas in the least-loaded rack.
    type: str
  replication_factor:
    description:
      - Generate a plan that gives each partition of O(topics) this many replicas. Fewer replicas leave out those that
        are dead, out of sync or cordoned first, then those that share a rack.
    type: int
  cordon:
    description: Ids of brokers on which a plan puts no replica.
    type: list
    elements: int
    default: []
  topics:
    description:
      - Topics that a plan considers, and whose reassignments are listed. C(*) and C(?) may stand for characters. By
        default all.
    type: list
    elements: str
    default: []
  show:
    description:
      - Show what is in flight, or what the plan copies. Handled by the action plugin, in a run of this collection
        alone.
    type: bool
    default: false
extends_documentation_fragment:
  - quorumshift.kafka.attributes
  - quorumshift.kafka.attributes.reads
  - quorumshift.kafka.connection
  - quorumshift.kafka.connection.cluster
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.zookeeper.connect
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

- name: Plan to drain a rack and a broker of another rack, and to put nothing on broker 7
  quorumshift.kafka.partition_reassignment_info:
    bootstrap_servers: b1:9092,b2:9092
    drain: [3]
    drain_racks: [r2]
    cordon: [7]

- name: Plan to give two topics three replicas
  quorumshift.kafka.partition_reassignment_info:
    bootstrap_servers: b1:9092,b2:9092
    replication_factor: 3
    topics: [orders, "payments.*"]

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
  description: Who set the newest of RV(recorded_throttles), as {run, user, host, at, rate}; empty without any.
  type: dict
  returned: success
  sample: {run: null, user: root, host: control-1, at: 1795807836.9298265}
legacy:
  description: What C(/admin/reassign_partitions) asks for, null if it does not exist or was not read.
  type: str
  returned: success
  sample: null
plan:
  description: The plan, as a reassignment file of C(kafka-reassign-partitions). Null where none was asked for.
  type: dict
  returned: success
  sample:
    version: 1
    partitions: [{topic: big, partition: 0, replicas: [2, 1]}]
rollback:
  description: The reassignment that leads back to the replicas before the plan. Null without a plan.
  type: dict
  returned: success
  sample:
    version: 1
    partitions: [{topic: big, partition: 0, replicas: [2, 3]}]
copies:
  description:
    - What the plan copies, and to which brokers, with their free space as far as they say it. Bytes are null where
      sizes are not known. Null without a plan.
    - C(warnings) name brokers with little space, and drained brokers that do not say which replicas they have or that
      have directories of partitions that do not exist.
  type: dict
  returned: success
  sample:
    partitions: 1
    replicas: 1
    warnings: []
unmeasured:
  description: Why the sizes of replicas could not be read, of each broker that did not answer.
  type: list
  elements: str
  returned: success
  sample: []
broker:
  description: The broker that gets its share. Null without O(add).
  type: int
  returned: success
  sample: 3
leaving:
  description: The brokers that are drained.
  type: list
  elements: int
  returned: success
  sample: []
throttles_remove:
  description: The commands that remove RV(throttles), empty without any.
  type: str
  returned: success
  sample: ""
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
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import reassign_plan, reassignment
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.admin_module import AdminModule, znodes


def main():
    """Gather and exit."""
    module = AdminModule(
        {
            "drain": {"type": "list", "elements": "int", "default": []},
            "drain_racks": {"type": "list", "elements": "str", "default": []},
            "add": {"type": "str"},
            "replication_factor": {"type": "int"},
            "cordon": {"type": "list", "elements": "int", "default": []},
            "topics": {"type": "list", "elements": "str", "default": []},
            "show": {"type": "bool", "default": False},
            **host_state.OPTIONS,
        },
    )
    given = module.params
    kinds = {
        "drain or drain_racks": given["drain"] or given["drain_racks"],
        "add": given["add"] is not None,
        "replication_factor": given["replication_factor"] is not None,
    }
    asked = [name for name, is_asked in kinds.items() if is_asked]
    if len(asked) > 1:
        module.fail_json(msg=f"{' and '.join(asked)} are given. Make one plan at a time (QS-ADMIN-005)")
    if given["replication_factor"] is not None and not given["topics"]:
        module.fail_json(
            msg="replication_factor is given without topics. Name them, or give '*' for every topic (QS-ADMIN-005)"
        )

    def run(admin, connections):
        with reassigner.explained(reassigner.bootstrap(connections)):
            return collect(given, admin, connections, bool(asked))

    module.run(run, (reassignment.ReassignmentError, reassigner.RecordError))


def make_plan(given, cluster, selected):
    """Return (the plan, the broker that gets its share, the brokers that are drained). Raises ReassignmentError."""
    if given["drain"] or given["drain_racks"]:
        leaving = reassign_plan.find_leaving(given["drain"], given["drain_racks"], cluster)
        return reassign_plan.drain(leaving, cluster, selected), None, sorted(leaving)
    if given["add"] is not None:
        wanted = None if given["add"] == "least_loaded" else reassign_plan.parse_broker_id(given["add"])
        broker, planned = reassign_plan.add(wanted, cluster, selected)
        return planned, broker, []
    return reassign_plan.change_replicas(given["replication_factor"], cluster, selected), None, []


def collect(given, admin, connections, plans):
    """Return the module's result."""
    in_flight = admin.in_flight()
    throttles = reassigner.Throttles(admin, given["state_dir"])
    measured = reassigner.measure(admin) if plans else reassigner.Measured({}, {}, {}, {})
    denied, strays = reassigner.find_unseen(admin, measured.held)  # it may read the metadata anew
    assignments = {partition: found["replicas"] for partition, found in admin.partitions.items()}
    selected = reassign_plan.select_topics(given["topics"], assignments)
    racks = {broker: rack for broker, (_address, rack) in admin.brokers.items()}
    planned, broker, leaving, copies = None, None, [], None
    if plans:
        in_sync = {partition: found["isr"] for partition, found in admin.partitions.items()}
        cluster = reassign_plan.Cluster(
            assignments, racks, frozenset(given["cordon"]), measured.sizes, measured.space, in_sync
        )
        unread = {broker: f"broker {broker} is not alive" for broker in given["drain"] if broker not in racks}
        unread.update(measured.unread)
        if given["add"] is None:
            drained = reassign_plan.name_leaving(given["drain"], given["drain_racks"], racks)
            # A partition of a broker that does not say which it has may be on any other one too
            of = drained if drained and drained.isdisjoint(unread) else None
            grant = reassignment.grant_describe(connections.client.principal, reassigner.bootstrap(connections))
            reassign_plan.require_seen(denied, of, given["topics"], grant)
        planned, broker, leaving = make_plan(given, cluster, selected)
        copies = reassign_plan.summarize(planned, cluster)
        copies["warnings"] += reassign_plan.warn_of_leaving(leaving, strays, unread)
    if planned and in_flight:
        raise reassignment.ReassignmentError(
            f"{len(in_flight)} partitions are in flight, and a plan needs settled replicas. Wait for them, or cancel "
            "them with state: cancelled (QS-ADMIN-001)"
        )
    set_now, unread = reassigner.read_throttled_configs(admin)
    every = reassignment.find_throttles(set_now)
    shown = {
        partition: moving for partition, moving in in_flight.items() if partition in selected or not given["topics"]
    }
    back = (
        None if planned is None else reassignment.render({partition: assignments[partition] for partition in planned})
    )
    return {
        "reassignments": [
            {"topic": topic, "partition": number, **shown[topic, number]} for topic, number in sorted(shown)
        ],
        "progress": reassigner.progress(admin, shown),
        "throttles": reassigner.list_throttles(every),
        "throttles_unread": unread,
        "throttles_remove": reassignment.removal_commands(every, reassigner.bootstrap(connections)),
        "recorded_throttles": throttles.values,
        "throttles_set_by": throttles.owner if throttles.values else {},
        "legacy": reassigner.describe_legacy(znodes(connections, reassigner.LEGACY)[reassigner.LEGACY]),
        "plan": None if planned is None else reassignment.render(planned),
        "rollback": back,
        "copies": copies,
        "unmeasured": list(measured.unread.values()),
        "broker": broker,
        "leaving": leaving,
        "rack_load": reassign_plan.rack_load(selected, racks),
        "cluster_id": admin.cluster_id,
    }


if __name__ == "__main__":
    main()
