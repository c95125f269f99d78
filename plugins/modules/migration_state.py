#!/usr/bin/python
# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: migration_state
short_description: Tell the phase of a Kafka cluster's migration from ZooKeeper to KRaft
version_added: 0.1.0
description:
  - Judges the phase from the live cluster each time, never from memory. ZooKeeper's C(/controller),
    C(/controller_epoch), C(/migration) and C(/brokers/ids), ApiVersions of every broker and controller, DescribeQuorum,
    and what M(quorumshift.kafka.node_facts) found on each host.
  - A host that was not reached is an input, not an error. Evidence that contradicts itself is the phase V(unknown).
  - Reads only.
options:
  soak:
    description: How long a cluster stays in dual-write before it may be finalized, as V(24h), V(90m) or seconds.
    type: str
    default: 24h
extends_documentation_fragment:
  - quorumshift.kafka.connection
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.nodes
attributes:
  check_mode: {support: full, description: Reads only.}
  diff_mode: {support: none, description: Changes nothing.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: See the phase
  quorumshift.kafka.migration_state:
    bootstrap_servers: b1:9094
    zookeeper_connect: z1:2181,z2:2181/kafka
    nodes: "{{ my_node_facts }}"
  register: state
"""

RETURN = r"""
phase:
  description: The phase, as the vocabulary in the documentation names them.
  type: str
  returned: success
  sample: dual_write
cluster_id:
  description: The cluster id, from ZooKeeper, or from the controllers' log directories once ZooKeeper is gone.
  type: str
  returned: when it was seen
blocks:
  description: What stands in the way of the next step, each with what to do.
  type: list
  elements: dict
  returned: success
  sample: [{"id": "broker_down", "text": "broker b2 does not answer", "do": "start it"}]
evidence:
  description: Each thing seen, with its source.
  type: list
  elements: dict
  returned: success
mirrored_offset:
  description: Up to which offset of the metadata log controllers have written to ZooKeeper; empty where they do not.
  type: int
  returned: success
next:
  description:
    - The next step, as {text, playbook, word (whether it takes the finalize word), watch, target (of a rollback)}.
  type: dict
  returned: success
way_back:
  description:
    - How far a rollback could go from here, as {targets (of V(hybrid), V(zk)), hurts (what would keep it from getting
      there, as sentences)}.
  type: dict
  returned: success
nodes:
  description: For each host its mode, its mode at the next start, version, state and lag.
  type: dict
  returned: success
steps:
  description: In phase V(reverting), what a rollback has done and has still to do.
  type: list
  elements: dict
  returned: success
quorum:
  description: What the quorum's leader says of it.
  type: dict
  returned: success
idle:
  description: Whether a run of the direction asked for has nothing to change now.
  type: bool
  returned: success
to_prove:
  description:
    - Whether a rollback has nothing to take back and its last gate is still to be passed, since the run before it was
      cut off short of that.
  type: bool
  returned: success
unfinished:
  description: Hosts on which an earlier run left a turn half done.
  type: list
  elements: str
  returned: success
left_registered:
  description: Ids of brokers that run in plain ZooKeeper mode and are registered in the quorum.
  type: list
  elements: int
  returned: success
word:
  description: In V(dual_write) and V(finalizing), what an operator types to finalize this cluster as it runs now.
  type: str
  returned: success
gate:
  description: The gate that was asked for, or else the one that opens in this phase; null where none does.
  type: str
  returned: success
  sample: before_trigger
views:
  description: The views of the metadata that are compared before this gate opens.
  type: list
  elements: str
  returned: success
  sample: [zookeeper, brokers, metadata_log]
compares_records:
  description: Whether records are compared as well before this gate opens.
  type: bool
  returned: success
facts:
  description: All collected facts, as they were judged.
  type: dict
  returned: success
"""

from ansible_collections.quorumshift.kafka.plugins.module_utils.core import gates, phase, rollback_readiness, screen
from ansible_collections.quorumshift.kafka.plugins.module_utils.probe_module import ProbeModule


def main():
    """Collect, judge, exit."""
    module = ProbeModule({"soak": {"type": "str", "default": "24h"}})
    try:
        soak_s = gates.seconds(module.params["soak"])
    except ValueError as error:
        module.fail_json(msg=f"quorumshift_soak: {error}")

    def work():
        facts = module.facts()
        for host, mode in module.modes_of_excluded().items():
            facts["excluded"][host]["running"] = mode
        detected = phase.detect(facts)
        return {
            "phase": detected.phase,
            "cluster_id": phase.cluster_id(facts),
            "blocks": [block._asdict() for block in detected.blocks],
            "evidence": [one._asdict() for one in detected.evidence],
            "steps": detected.steps,
            "next": screen.next_step(facts, detected, soak_s)._asdict(),
            "rollback_readiness": rollback_readiness.detect(facts, detected)._asdict(),
            "mirrored_offset": (facts["zookeeper"].get("migration") or {}).get("kraft_metadata_offset"),
            "mirrored_zxid": (facts["zookeeper"].get("migration") or {}).get("mzxid"),
            "nodes": screen.node_lines(facts),
            "token": gates.finalize_token(facts) if detected.phase in gates.GATES["before_finalize"].phases else None,
            "unfinished": phase.unfinished(facts),
            "left_registered": phase.left_registered(facts),
            "quorum": facts["quorum"],
            "facts": facts,
        }

    module.run(work)


if __name__ == "__main__":
    main()
