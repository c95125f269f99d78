#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_features_info
short_description: Show which features a Kafka cluster supports and has finalized
version_added: 0.1.0
description:
  - Asks every live broker and controller for the range of each feature that it supports (KIP-584), the finalized
    levels, and their epoch. Levels of C(metadata.version) have their names too, V(21) is V(3.9-IV0).
  - In ZooKeeper mode it reads C(/feature) too, if O(zookeeper_connect) is given, and says what applies.
  - Where no broker answers, it asks the O(controllers) alone.
  - Runs on any host that reaches the brokers and controllers. It changes nothing. Servers answer C(ApiVersions) before
    authentication. Finding the controllers needs the operation Describe on the cluster; without it, name them in
    O(controllers).
options:
  served:
    description: Fail unless every node serves these levels and no others. Handled by the action plugin.
    type: dict
  show:
    description: Show the features as a table. Handled by the action plugin, in a run of this collection alone.
    type: bool
    default: false
extends_documentation_fragment:
  - quorumshift.kafka.attributes
  - quorumshift.kafka.attributes.reads
  - quorumshift.kafka.connection
  - quorumshift.kafka.connection.cluster
  - quorumshift.kafka.connection.controllers
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.zookeeper.connect
seealso:
  - module: quorumshift.kafka.kafka_features
  - name: Reassignments and features
    description: The modules' guide, with what they refuse and why.
    link: https://github.com/quorumshift/kafka/blob/main/docs/reassignments-and-features.md
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Show the features
  quorumshift.kafka.kafka_features_info:
    bootstrap_servers: b1:9092,b2:9092
  register: my_features

- name: Require that every node supports the metadata version of Kafka 3.9
  ansible.builtin.assert:
    that: my_features.highest_common['metadata.version'].level >= 21
    fail_msg: "{{ my_features.nodes | to_json }}"

- name: Show the features of a cluster whose brokers are older than 3.9 and do not name their controllers
  quorumshift.kafka.kafka_features_info:
    bootstrap_servers: b1:9092,b2:9092
    controllers:
      - c1:9093
      - c2:9093
      - c3:9093
    controller_client:
      security_protocol: SSL
      ssl_cafile: /etc/pki/kafka-ca.pem

- name: Show what applies in ZooKeeper mode
  quorumshift.kafka.kafka_features_info:
    bootstrap_servers: b1:9092,b2:9092
    zookeeper_connect: z1:2181,z2:2181,z3:2181/kafka
"""

RETURN = r"""
cluster_id:
  description: The id of the cluster, null where only controllers answer that cannot report it.
  type: str
  returned: success
  sample: Qs7KfZk2TIK1n0nQ5Qm3Tw
mode:
  description: V(zookeeper), V(migration), V(kraft) or V(unknown).
  type: str
  returned: success
  sample: kraft
static_voters:
  description: Whether the quorum has static voters; null in ZooKeeper mode.
  type: bool
  returned: success
  sample: true
finalized:
  description:
    - The finalized level of each feature as the node with the highest epoch serves it, with its name, and the finalized
      C(minimum) level. In KRaft mode, the minimum is the level.
  type: dict
  returned: success
  sample: {metadata.version: {level: 21, name: 3.9-IV0, minimum: 21}}
epoch:
  description: The epoch of the finalized features, -1 if they are unknown.
  type: int
  returned: success
  sample: 47
highest_common:
  description: The highest level of each feature that every node supports, with its name.
  type: dict
  returned: success
  sample: {kraft.version: {level: 1, name: "1"}, metadata.version: {level: 21, name: 3.9-IV0}}
nodes:
  description:
    - What each broker and controller answers, by its role, id and address. C(role), C(id) and C(address) repeat them.
      C(supported) has the lowest and highest level of each feature, C(finalized) the levels, C(finalized_minimum) the
      finalized minimum levels, C(epoch) their epoch. C(error) says why a node gave no answer.
  type: dict
  returned: success
  sample:
    broker 1 at 127.0.0.1:45461:
      role: broker
      id: 1
      address: 127.0.0.1:45461
      supported: {kraft.version: [0, 1], metadata.version: [1, 21]}
      finalized: {metadata.version: 21}
      finalized_minimum: {metadata.version: 21}
      epoch: 47
held_back:
  description:
    - The nodes that hold a feature back, because another node supports a higher level, each with its highest level. A
      node that does not know the feature has 0. Empty while a broker may run in ZooKeeper mode.
  type: dict
  returned: success
  sample: {}
lagging:
  description:
    - The nodes that answer and do not serve the finalized levels, and what they serve. Empty while a broker may run in
      ZooKeeper mode.
  type: list
  elements: str
  returned: success
  sample: []
quorum_error:
  description: Why no node could describe the quorum, which names the controllers; null where one could.
  type: str
  returned: success
  sample: null
alive:
  description: Ids of brokers that have just fetched the metadata log, though no broker answered.
  type: list
  elements: int
  returned: success
  sample: []
voters_unknown:
  description: Ids of voters that could not be asked, because their address is unknown. Name them in O(controllers).
  type: list
  elements: int
  returned: success
  sample: []
migrating:
  description: What shows that a migration to KRaft is not finalized, else null.
  type: str
  returned: success
  sample: null
zookeeper_feature:
  description:
    - What C(/feature) has in ZooKeeper mode, null if it is missing or was not read. C(epoch) is the znode's version.
  type: dict
  returned: success
  sample: null
notes:
  description: What applies to this cluster in its mode, in words.
  type: list
  elements: str
  returned: success
  sample: ["Static voters: kraft.version must stay as it is."]
"""

from ansible_collections.quorumshift.kafka.plugins.module_utils.admin import features
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import feature_changes
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import features as core_features
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes as formats
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base import admin_module
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.features_module import FeaturesModule


def main():
    """Gather the features and exit."""
    module = FeaturesModule(
        {
            "served": {"type": "dict"},
            "show": {"type": "bool", "default": False},
        }
    )

    def work(admin, connections):
        clients = connections.client, connections.controller_client
        found = module.collect(admin, connections)
        stored = read_feature(connections) if found["mode"] == "zookeeper" else None
        supported, of_kraft = features.supported_ranges(found), found["mode"] == "kraft"
        names = sorted({name for node in supported.values() for name in node})
        minimum = found.pop("finalized_minimum")
        notes = core_features.notes(found["mode"], found["static_voters"], stored)
        if found.pop("quorum_denied"):
            bootstrap = ",".join(map(str, connections.bootstrap))
            notes = (*notes, features.explain_denied("Describe", admin, *clients, bootstrap))
        return {
            **found,
            "cluster_id": admin.cluster_id or None,
            "finalized": {
                name: {**core_features.format_level(name, level), "minimum": minimum[name]}
                for name, level in found["finalized"].items()
            },
            "highest_common": {
                name: core_features.format_level(name, core_features.highest_common(name, supported)) for name in names
            },
            # In ZooKeeper mode a broker has no features, also while controllers have some
            "held_back": feature_changes.find_held_back(supported) if of_kraft else {},
            "lagging": list(core_features.find_lagging(found["nodes"], found["finalized"])) if of_kraft else [],
            "zookeeper_feature": stored,
            "notes": notes,
        }

    module.run(work, (formats.ZnodeError,))


def read_feature(connections):
    """Return what /feature has, with the version of the znode as its epoch (KIP-584); None where it is missing."""
    found = admin_module.znodes_with_stat(connections, formats.FEATURE)[formats.FEATURE]
    return {**formats.feature(found[0]), "epoch": found[1].version} if found else None


if __name__ == "__main__":
    main()
