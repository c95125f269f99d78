#!/usr/bin/python
# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: migration_plan
short_description: Tell what a run has ahead of it, from the phase in which the cluster is
version_added: 0.1.0
description:
  - The gates and steps in order, which nodes are restarted when and why in that order, and up to where there is a way
    back. The action plugin adds what changes in each properties file, and how long it takes, by this cluster's own
    journals; it prints the plan and keeps it as evidence.
  - Reads only.
options:
  target:
    description: How far back, V(hybrid) or V(zk); left out for the way forward.
    type: str
    choices: ["", hybrid, zk]
    default: ""
  canary:
    description: The broker to restart first, as with M(quorumshift.kafka.rolling_restart).
    type: str
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
- name: See what is ahead
  quorumshift.kafka.migration_plan:
    bootstrap_servers: b1:9094
    zookeeper_connect: z1:2181/kafka
    nodes: "{{ my_node_facts }}"
"""

RETURN = r"""
phase:
  description: The phase from which it is told.
  type: str
  returned: success
steps:
  description: Each step as {kind, name, text, batches, reasons, back}.
  type: list
  elements: dict
  returned: success
unavoidable:
  description: Partitions whose replication leaves no spare, each with why.
  type: dict
  returned: success
"""

from ansible_collections.quorumshift.kafka.plugins.module_utils.core import phase, planning, restart, rollback
from ansible_collections.quorumshift.kafka.plugins.module_utils.probe_module import ProbeModule


def main():
    """Collect, plan, exit."""
    module = ProbeModule(
        {
            "target": {"type": "str", "choices": ["", *reversed(rollback.TARGETS)], "default": ""},
            "canary": {"type": "str"},
        }
    )
    given = module.params

    def work():
        facts = module.facts()
        detected = phase.detect(facts)
        partitions = facts["topics"].get("partitions") or {}
        min_isr = module.min_isr(partitions)
        reported = planning.steps(facts, detected, min_isr, given["canary"], given["target"])
        return {
            "phase": detected.phase,
            "steps": [step._asdict() for step in reported],
            "unavoidable": restart.unavoidable(partitions, min_isr),
        }

    module.run(work)


if __name__ == "__main__":
    main()
