#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: soak_sample
short_description: Take a sample of a cluster in dual-write
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Says what would keep the gate C(before_finalize) closed now, apart from verification, confirmation token and time.
    It also says what would stop a rollback. Reads only.
  - In other phases it says what blocks the next step. Nothing is kept of that.
  - C(metrics) is the same in Prometheus' text format, in every phase.
options:
  soak:
    description: The minimum length of the soak, as V(24h) or V(90m).
    type: str
    default: 24h
  soak_gap:
    description: How far two samples may be apart, as V(15m). Empty where that is not asked.
    type: str
    default: ""
  lag_s:
    description: How many seconds ZooKeeper may take to have what the quorum has committed.
    type: float
    default: 5
extends_documentation_fragment:
  - quorumshift.kafka.connection
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.zookeeper.connect
  - quorumshift.kafka.nodes
attributes:
  check_mode: {support: full, description: Reads only.}
  diff_mode: {support: none, description: Changes nothing.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Take a sample
  quorumshift.kafka.soak_sample:
    bootstrap_servers: b1:9094,b2:9094
    zookeeper_connect: z1:2181,z2:2181,z3:2181/kafka
    nodes: "{{ my_node_facts }}"
"""

RETURN = r"""
sample:
  description: C(at), by the probe host's clock in seconds since 1970; the C(phase); C(problems), as sentences.
  type: dict
  returned: success
  sample: {at: 1795959913.4, phase: dual_write, problems: []}
keep:
  description: Whether the sample belongs to the history of a soak.
  type: bool
  returned: success
soaked_s:
  description: How many seconds the soak has lasted without a restart, a bad sample or a gap. Null in other phases.
  type: float
  returned: success
left_s:
  description: How many seconds are left; negative once the soak is over. Null in other phases.
  type: float
  returned: success
news:
  description:
    - What the sample says that the one before did not say, each as an C(event) and a C(text). The events are
      C(sample_bad), C(sample_good) after a bad one, and C(soak_over).
  type: list
  elements: dict
  returned: success
  sample: [{event: soak_over, text: "the soak is over: finalize or roll back (quorumshift.kafka.status)"}]
metrics:
  description: The sample in Prometheus' text format.
  type: str
  returned: success
"""

import time

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates, invariants, soak
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rollback import rollback_readiness
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import metrics
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import advice
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.probe_module import ProbeModule, error_text
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import lag, topics
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper.zookeeper import ZooKeeperError

GATE = "before_finalize"
RECORDED = (phase.HYBRID, phase.DUAL_WRITE, phase.UNKNOWN)
"""Phases whose samples are kept: those of a soak, and those that show its interruption."""


def main():
    """Read, evaluate, exit."""
    module = ProbeModule(
        {
            "soak": {"type": "str", "default": "24h"},
            "soak_gap": {"type": "str", "default": ""},
            "lag_s": {"type": "float", "default": 5},
        }
    )
    given = module.params
    try:
        soak_s, gap_s = soak.parse_soak(given["soak"], given["soak_gap"])
    except ValueError as error:
        module.fail_json(msg=f"{error} (QS-CONNECT-008)")

    def work():
        try:
            facts = module.facts()
        except (ZooKeeperError, topics.KafkaException) as error:  # no answer is a bad sample, and kept as one
            sample = soak.Sample(time.time(), phase.UNKNOWN, [f"{error_text(error)} (QS-CONNECT-001)"])
            result = {"sample": sample._asdict(), "keep": True, "soaked_s": None, "left_s": None, "metrics": ""}
            return {
                **result,
                "news": soak.news(soak.find_histories(module.nodes, module.params["cluster_id"]), sample, None),
            }
        detected = phase.detect(facts)
        problems = find_problems(module, facts, detected)
        sample = soak.Sample(facts["time"], detected.phase, problems)
        soaked_s = None
        if detected.phase == phase.DUAL_WRITE:
            soaked_s = min(gates.soaked_s(facts), facts["time"] - gates.measure_soak(facts, gap_s, sample).since)
        left_s = None if soaked_s is None else soak_s - soaked_s
        return {
            "sample": sample._asdict(),
            "keep": detected.phase in RECORDED,
            "soaked_s": soaked_s,
            "left_s": left_s,
            "news": soak.news(soak.find_histories(facts["nodes"], phase.cluster_id(facts)), sample, left_s),
            "metrics": metrics.render(facts, detected, sample, left_s),
        }

    module.run(work)


def find_problems(module, facts, detected):
    """Return what would keep the gate closed, or outside of dual-write what blocks the next step, as sentences."""
    if detected.phase != phase.DUAL_WRITE:
        return [advice.sentences(block.text, block.do) for block in detected.blocks]
    given = module.params
    try:
        min_isr = module.min_isr(facts["topics"].get("partitions") or {})
        voters = gates.expected_voters(GATE, facts)
        reading = invariants.Reading(facts, detected.phase, min_isr, voters, given["lag_s"])
        health = [*invariants.find_lasting(reading), *invariants.find_broken(reading)]
        problems = gates.explain_closed(GATE, detected, list(dict.fromkeys(health)))
        problems += lag.explain_behind(module.connections, phase.controllers(facts), given["lag_s"])
    except (ZooKeeperError, topics.KafkaException) as error:
        problems = [error_text(error)]
    obstacles = rollback_readiness.detect(facts, detected).obstacles
    return list(dict.fromkeys([*problems, *(f"a rollback would stop: {text}" for text in obstacles)]))


if __name__ == "__main__":
    main()
