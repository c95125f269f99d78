#!/usr/bin/python
# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gate
short_description: Open a gate before a step that is harder to undo, or say why it stays closed
version_added: 0.1.0
description:
  - A gate opens when the Spark jobs that it asks for have passed (O(verified)), and the cluster is healthy and in the
    expected phase, held for O(stable_s). What cannot be evaluated closes it.
  - The open gate leaves a pass that the turns on the hosts take (M(quorumshift.kafka.node_restart)).
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
    description: The run's id, which the pass carries.
    type: str
    required: true
  stable_s:
    description: For how many seconds on end all must be well.
    type: float
    default: 10
  timeout_s:
    description: After how many seconds the gate gives up and stays closed.
    type: float
    default: 300
  lag_s:
    description:
      - Within how many seconds ZooKeeper's C(/migration) must reach the high watermark read before it, and how long ago
        a controller or a broker may have caught up with the quorum's leader last.
    type: float
    default: 5
  verify:
    description: The Spark jobs whose pass the gate asks for.
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
      - For O(gate=before_revert) and O(gate=after_revert), words of what is not healthy and may stay so, as the closed
        gate tells them. Each stands for what it is now, and for nothing else.
    type: list
    elements: str
    default: []
  soak:
    description: For O(gate=before_finalize), how long ago the last restart must be, as V(24h), V(90m) or seconds.
    type: str
    default: 24h
  token:
    description: For O(gate=before_finalize), the word that the operator typed.
    type: str
    default: ""
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
- name: Open the gate before the KRaft roll
  quorumshift.kafka.gate:
    gate: before_kraft
    run: "{{ run }}"
    bootstrap_servers: b1:9094
    nodes: "{{ my_node_facts }}"
"""

RETURN = r"""
gate_token:
  description: The pass, {gate, cluster_id, phase, run, digest}.
  type: dict
  returned: when the gate is open
waited_s:
  description: How long the gate took, in seconds.
  type: float
  returned: when the gate is open
word:
  description: What an operator types to finalize this cluster as it runs now.
  type: str
  returned: success
zookeeper:
  description: What ZooKeeper holds of the migration, to be kept as evidence before it is left for good.
  type: dict
  returned: with O(gate=before_finalize), when the gate is open
phase:
  description: The phase seen.
  type: str
  returned: success
"""

from ansible_collections.quorumshift.kafka.plugins.module_utils.core import (
    gates,
    phase,
    restart,
    rollback,
    rollback_readiness,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.probe_module import ProbeModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import lag

MIRRORED = ("after_copy", "before_kraft", "after_kraft", "before_finalize", "before_revert")


def main():
    """Wait until the gate opens or its time is over."""
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
            "token": {"type": "str", "default": "", "no_log": False},
        }
    )
    wanted = module.params

    try:
        soak_s = gates.seconds(wanted["soak"])
    except ValueError as error:
        module.fail_json(msg=f"quorumshift_soak: {error}")

    # Who goes back may have to do so because something is red.
    accepted = wanted["accept"] if gates.GATES[wanted["gate"]].rollback else None
    refused = gates.unverified(wanted["gate"], wanted["run"], wanted["verify"], wanted["verified"])
    if refused and not module.check_mode:
        module.fail_json(msg=f"gate {wanted['gate']} stays closed: {refused}. Nothing was changed.")

    def work():
        def gather():
            facts = module.facts()
            detected = phase.detect(facts)
            found = facts["topics"]
            health = [found.get("error", "")]
            if found["reached"]:
                min_isr = module.min_isr(found["partitions"])
                excused = restart.unavoidable(found["partitions"], min_isr)
                health = restart.troubles(found, min_isr, phase.broker_ids(facts), excused, accepted=accepted)
            health += gates.trailing(facts["quorum"], phase.following(facts), wanted["lag_s"], accepted)
            if wanted["gate"] == "before_revert":
                health += restart.last_in_sync(found)
            troubles, do = gates.closed_by(wanted["gate"], detected, health), {}
            if wanted["gate"] == "after_revert":
                troubles += rollback.not_reverted(facts, detected)
            # Once some controller is final, nobody may write to ZooKeeper any more: there is no lag to ask for. Nor is
            # there before the copy, and when a rollback has stopped the controllers.
            if not troubles and wanted["gate"] in MIRRORED and detected.phase in (phase.HYBRID, phase.DUAL_WRITE):
                troubles = lag.behind(module.connections, phase.controllers(facts), wanted["lag_s"])
                do = {"do": rollback_readiness.to_be_written(facts)} if troubles else {}
            if wanted["gate"] == "before_finalize":
                refused = gates.finalize_troubles(facts, detected, wanted["token"], soak_s)
                if refused:  # none of it passes while a gate waits
                    module.fail_json(msg=f"finalizing is refused: {'; '.join(refused)}. Nothing was changed.")
            gate_token = gates.make_token(wanted["gate"], detected.phase, wanted["run"], facts)
            reported = {"phase": detected.phase, "gate_token": gate_token, "token": gates.finalize_token(facts), **do}
            if wanted["gate"] == "before_finalize":
                reported["zookeeper"] = facts["zookeeper"]
            return troubles, reported

        gate = gates.GATES[wanted["gate"]]
        result = module.wait(gather, wanted["stable_s"], wanted["timeout_s"], f"gate {wanted['gate']} ({gate.moment})")
        if not result["done"]:
            result.pop("gate_token", None)
        return result

    module.run(work)


if __name__ == "__main__":
    main()
