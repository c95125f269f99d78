#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gate
short_description: Open a gate before a step that is harder to undo, or report why it stays closed
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - A gate opens when the required Spark jobs have passed (O(verified)), and the cluster has been healthy and in the
    expected phase for O(stable_s). A condition that cannot be evaluated keeps the gate closed.
  - An open gate returns a gate token. M(quorumshift.kafka.node_restart) requires it.
options:
  gate:
    description: The gate.
    type: str
    required: true
    choices:
      - before_controllers
      - before_trigger
      - after_copy
      - before_kraft
      - after_kraft
      - before_finalize
      - before_revert
      - after_revert
      - after_finalize
  run:
    description: The run's id, which the gate token carries.
    type: str
    required: true
  stable_s:
    description: For how many seconds without a break the conditions must hold.
    type: float
    default: 10
  timeout_s:
    description: After how many seconds the module fails with the gate closed.
    type: float
    default: 300
  lag_s:
    description:
      - Within how many seconds ZooKeeper's C(/migration) must reach the high watermark that was read before it.
      - Also how many seconds ago a controller or broker must have caught up with the quorum's leader.
    type: float
    default: 5
  verify:
    description: The Spark jobs that must have passed.
    type: list
    elements: str
    choices: [metadata_parity, data_fingerprint]
    default: [metadata_parity]
  verified:
    description: The results of M(quorumshift.kafka.spark_job) for this gate and this run.
    type: list
    elements: dict
    default: []
  accept:
    description:
      - For O(gate=before_revert) and O(gate=after_revert), confirmation tokens of what is degraded and may stay so. The
        closed gate prints them. A token accepts the present state only.
    type: list
    elements: str
    default: []
  soak:
    description: For O(gate=before_finalize), the minimum time since the last restart, as V(24h), V(90m) or seconds.
    type: str
    default: 24h
  soak_gap:
    description: For O(gate=before_finalize), how far two samples of the soak may be apart. Empty where none is needed.
    type: str
    default: ""
  token:
    description: For O(gate=before_finalize), the confirmation token that the operator gave.
    type: str
    default: ""
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
- name: Open the gate before the restart in KRaft mode
  quorumshift.kafka.gate:
    gate: before_kraft
    run: "{{ run }}"
    bootstrap_servers: b1:9094
    nodes: "{{ my_node_facts }}"
"""

RETURN = r"""
gate_token:
  description: The gate token, {gate, cluster_id, phase, run, digest, hosts, only_start}.
  type: dict
  returned: when the gate is open
waited_s:
  description: How long the gate took, in seconds.
  type: float
  returned: when the gate is open
token:
  description: The confirmation token that finalizes this cluster as it runs now.
  type: str
  returned: success
zookeeper:
  description: The migration's znodes, kept as a run artifact before the cluster leaves ZooKeeper.
  type: dict
  returned: with O(gate=before_finalize), when the gate is open
phase:
  description: The detected phase.
  type: str
  returned: success
"""

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import (
    cluster_health,
    gates,
    invariants,
    soak,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rollback import rollback, rollback_readiness
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.probe_module import ProbeModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import lag

MIRRORED = ("after_copy", "before_kraft", "after_kraft", "before_finalize", "before_revert")


def main():
    """Wait until the gate opens, or fail after timeout_s."""
    module = ProbeModule(
        {
            "gate": {"type": "str", "required": True, "choices": list(gates.GATES)},
            "run": {"type": "str", "required": True},
            "stable_s": {"type": "float", "default": 10},
            "timeout_s": {"type": "float", "default": 300},
            "lag_s": {"type": "float", "default": 5},
            "verify": {
                "type": "list",
                "elements": "str",
                "choices": list(gates.WHAT),
                "default": [gates.METADATA_PARITY],
            },
            "verified": {"type": "list", "elements": "dict", "default": []},
            "accept": {"type": "list", "elements": "str", "default": []},
            "soak": {"type": "str", "default": "24h"},
            "soak_gap": {"type": "str", "default": ""},
            "token": {"type": "str", "default": "", "no_log": False},
        }
    )
    given = module.params

    try:
        soak_s, gap_s = soak.parse_soak(given["soak"], given["soak_gap"])
    except ValueError as error:
        module.fail_json(msg=f"{error} (QS-CONNECT-008)")

    # A degraded cluster may be the very reason for a rollback.
    accepted = given["accept"] if gates.GATES[given["gate"]].rollback else None
    refused = gates.explain_unverified(given["gate"], given["run"], given["verify"], given["verified"])
    if refused and not module.check_mode:
        module.fail_json(msg=f"gate {given['gate']} stays closed: {refused}. Nothing was changed. (QS-VERIFY-002)")

    def work():
        def collect():
            facts = module.facts()
            detected = phase.detect(facts)
            topics = facts["topics"]
            min_isr = module.min_isr(topics.get("partitions") or {})
            voters = gates.expected_voters(given["gate"], facts)
            reading = invariants.Reading(facts, detected.phase, min_isr, voters, given["lag_s"], accepted)
            lasting = invariants.find_lasting(reading) + gates.find_lasting(detected)
            if lasting:  # waiting fixes none of these
                module.fail_json(
                    msg=f"gate {given['gate']} stays closed: {'; '.join(lasting)}. Nothing was changed. (QS-VERIFY-002)"
                )
            health = invariants.find_broken(reading)
            if given["gate"] == "before_revert":
                health += cluster_health.find_last_in_sync(topics)
            troubles, do = gates.explain_closed(given["gate"], detected, health), {}
            if given["gate"] == "after_revert":
                troubles += rollback.check_reverted(facts, detected)
            # There is no lag to measure in other phases: controllers write to ZooKeeper in these alone.
            if not troubles and given["gate"] in MIRRORED and detected.phase in (phase.HYBRID, phase.DUAL_WRITE):
                troubles = lag.explain_behind(module.connections, phase.controllers(facts), given["lag_s"])
                do = {"do": rollback_readiness.suggest_writes(facts)} if troubles else {}
            if given["gate"] == "before_finalize":
                refused = gates.finalize_troubles(facts, detected, given["token"], soak_s, gap_s)
                if refused:  # waiting fixes none of these
                    module.fail_json(
                        msg=f"finalizing is rejected: {'; '.join(refused)}. Nothing was changed. (QS-GATE-012)"
                    )
            admits = phase.controllers(facts) if given["gate"] == "before_controllers" else ()
            gate_token = gates.make_token(given["gate"], detected.phase, given["run"], facts, admits)
            result = {"phase": detected.phase, "gate_token": gate_token, "token": gates.finalize_token(facts), **do}
            if given["gate"] == "before_finalize":
                result["zookeeper"] = facts["zookeeper"]
            return troubles, result

        gate = gates.GATES[given["gate"]]
        result = module.wait(
            collect, given["stable_s"], given["timeout_s"], f"gate {given['gate']} ({gate.moment}) (QS-GATE-002)"
        )
        if not result["done"]:
            result.pop("gate_token", None)
        return result

    module.run(work)


if __name__ == "__main__":
    main()
