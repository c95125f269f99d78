#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: migration_state
short_description: Detect the phase of a Kafka cluster's migration from ZooKeeper to KRaft
version_added: 0.1.0
description:
  - Detects the phase from the live cluster at each call. It reads ZooKeeper's C(/controller),
    C(/controller_epoch), C(/migration) and C(/brokers/ids), ApiVersions of every broker and controller, DescribeQuorum,
    and the facts of each host (M(quorumshift.kafka.node_facts)).
  - An unreachable host is an input, not an error. Contradicting evidence is the phase V(unknown).
  - Reads only. It prints nothing, keeps nothing and sets no fact.
options:
  soak:
    description: How long a cluster stays in dual-write before it may be finalized, as V(24h), V(90m) or seconds.
    type: str
    default: 24h
  soak_gap:
    description: How far two samples of the soak may be apart, as V(15m). Empty where that is not asked.
    type: str
    default: ""
  canary:
    description: The broker to restart first, as with M(quorumshift.kafka.rolling_restart).
    type: str
  concurrency:
    description: How many brokers may be in a batch, as with M(quorumshift.kafka.rolling_restart).
    type: int
    default: 1
  plan_to:
    description:
      - Plan the remaining steps of the migration (V("")) or of a rollback (V(hybrid) or V(zk)). Omit it for no plan.
    type: str
    choices: ["", hybrid, zk]
extends_documentation_fragment:
  - quorumshift.kafka.attributes
  - quorumshift.kafka.attributes.reads
  - quorumshift.kafka.connection
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.zookeeper.connect
  - quorumshift.kafka.nodes
seealso:
  - module: quorumshift.kafka.kraft_preflight
  - module: quorumshift.kafka.rolling_restart
  - name: Operator's guide
    description: Phases, gates, variables, and the inventory.
    link: https://github.com/quorumshift/kafka/blob/main/docs/operators-guide.md
  - name: ZooKeeper to KRaft migration
    description: Kafka's own description of the migration and of its reversal.
    link: https://kafka.apache.org/39/documentation.html#kraft_zk_migration
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
# In a play on all brokers and controllers: every probe of the cluster begins with the facts of its hosts
- name: Read the node
  ansible.builtin.import_role:
    name: quorumshift.kafka.quorumshift
    tasks_from: gather

# In a play on localhost, after it
- name: Detect the phase
  quorumshift.kafka.migration_state:
    bootstrap_servers: b1:9094,b2:9094
    zookeeper_connect: z1:2181,z2:2181,z3:2181/kafka
  register: state

- name: Require a cluster that is not in a migration
  ansible.builtin.assert:
    that: state.phase in ['zk', 'finalized', 'kraft_native']
    fail_msg: "{{ state.reasons }}"

- name: Plan the remaining steps of the migration, with batches of up to four brokers
  quorumshift.kafka.migration_state:
    bootstrap_servers: b1:9094,b2:9094
    zookeeper_connect: z1:2181,z2:2181,z3:2181/kafka
    plan_to: ""
    concurrency: 4
  register: planned

# Without zookeeper_connect, once ZooKeeper is removed
- name: Detect the phase of a finalized cluster over TLS and SASL
  quorumshift.kafka.migration_state:
    bootstrap_servers: b1:9094,b2:9094
    client:
      security_protocol: SASL_SSL
      sasl_mechanism: SCRAM-SHA-512
      sasl_username: quorumshift
      sasl_password: "{{ vault_quorumshift_password }}"
      ssl_cafile: /etc/pki/kafka-ca.pem
"""

RETURN = r"""
phase:
  description: The phase; the operator's guide lists them.
  type: str
  returned: success
  sample: dual_write
cluster_id:
  description: The cluster id, from ZooKeeper, or from the controllers' log directories once ZooKeeper is removed.
  type: str
  returned: when known
  sample: phUKKf3TSny1o9Yap379dw
reasons:
  description: What blocks the next step in sentences, after the phase. The action plugin adds it.
  type: str
  returned: success
  sample: >-
    The phase is dual_write: broker b2 does not answer: 10.78.60.12:9094: connection refused: nothing listens there
    (QS-PHASE-012). Start it, in the mode that its file has (QS-PHASE-001)
blocks:
  description: What blocks the next step, each with what to do.
  type: list
  elements: dict
  returned: success
  sample:
    - id: broker_down
      text: "broker b2 does not answer: 10.78.60.12:9094: connection refused: nothing listens there (QS-PHASE-012)"
      do: start it, in the mode that its file has
evidence:
  description: Each observation that led to the phase, with its source.
  type: list
  elements: dict
  returned: success
  sample:
    - {what: owner of /controller, value: kraft, source: ZooKeeper /controller}
    - {what: mode of b1 at its next start, value: kraft, source: /etc/kafka/server.properties}
mirrored_offset:
  description: The offset of the metadata log up to which controllers have written to ZooKeeper; null where they do not.
  type: int
  returned: success
  sample: 13670
mirrored_zxid:
  description: ZooKeeper's transaction that wrote RV(mirrored_offset); null where controllers do not write.
  type: int
  returned: success
  sample: 12884921273
next:
  description:
    - The next step, as {text, playbook, token (whether it takes the confirmation token), watch, target (of a
      rollback), given}. The target is null unless the step is a rollback. C(given) has the variables of the command
      line of an interrupted run that the step repeats, without what was accepted there. The action plugin adds it.
  type: dict
  returned: success
  sample:
    playbook: migrate
    token: true
    watch:
      - "the lag of every node and of ZooKeeper stays near 0: a rollback needs ZooKeeper up to date"
    target: null
rollback_readiness:
  description:
    - Where a rollback can lead from here, as {targets (of V(hybrid), V(zk)), obstacles (what would prevent it, as
      sentences)}.
  type: dict
  returned: success
  sample: {targets: [hybrid, zk], obstacles: []}
nodes:
  description: For each host its role, id, mode, mode at the next start, version, state and lag.
  type: dict
  returned: success
  sample:
    b1: {role: broker, id: 1, mode: kraft, next: kraft, state: online, version: 3.9.2, lag: 0}
    b2: {role: broker, id: 2, mode: "-", next: kraft, state: offline, version: 3.9.2, lag: 17}
features:
  description:
    - The finalized levels of features as the node with the highest epoch serves them; hosts that serve other levels;
      for each feature the highest level that every node supports; and the hosts that support less than another one,
      each with its highest level. Empty where no node names a finalized feature, as in ZooKeeper mode.
  type: dict
  returned: success
  sample:
    finalized: {metadata.version: 21}
    epoch: 13671
    lagging: []
    highest_common: {kraft.version: 1, metadata.version: 21}
    held_back: {}
steps:
  description: In phase V(reverting), the steps of the rollback that are done and those that remain.
  type: list
  elements: dict
  returned: success
  sample:
    - {step: controllers down, done: true}
    - {step: brokers plain, done: false}
quorum:
  description: What the quorum's leader returned to DescribeQuorum.
  type: dict
  returned: success
  sample:
    reached: true
    leader_id: 102
    leader_epoch: 8
    high_watermark: 13671
    voters: [{id: 101, log_end_offset: 13671}]
    observers: [{id: 2, log_end_offset: 13654}]
unfinished:
  description:
    - Hosts on which an earlier run left a restart unfinished, or whose controller is down. The run starts what is down
      on them before any gate.
  type: list
  elements: str
  returned: success
  sample: []
left_registered:
  description: Ids of brokers that run in plain ZooKeeper mode but are registered in the quorum.
  type: list
  elements: int
  returned: success
  sample: []
backups:
  description: The backups of ZooKeeper that hosts have of this cluster, as C({path, time}) by host.
  type: dict
  returned: success
  sample:
    b1:
      - path: /var/lib/quorumshift/phUKKf3TSny1o9Yap379dw/backup/zookeeper-20261121T145016-3f2a.jsonl.gz
        time: 1795276228
ahead:
  description:
    - Names of the remaining steps of the migration, or of the rollback to O(plan_to), as RV(plan) names them.
  type: list
  elements: str
  returned: success
  sample: [soak, before_finalize, controller_final, after_finalize]
plan:
  description:
    - C(steps), each as {kind, name, text, batches, reasons, back}, and C(unavoidable), the partitions that no order
      of restarts keeps available.
  type: dict
  returned: with O(plan_to)
  sample:
    steps:
      - kind: roll
        name: zk_migration
        text: restart brokers in migration mode
        batches: [[b1], [b3], [b2]]
        reasons: {b1: "canary: leads fewest partitions (216)", b2: "controller: last, so that it moves once"}
        back: zk
    unavoidable: {scratch_rf1_0-0: "replication factor 1: offline while its broker restarts"}
plan_error:
  description: Why there is no plan.
  type: str
  returned: with O(plan_to), where the brokers do not answer
  sample: "the brokers gave no answer: Failed to get metadata: Local: Broker transport failure"
token:
  description:
    - In V(dual_write) and V(finalizing), the confirmation token that finalizes this cluster as it runs now. Null in
      other phases.
  type: str
  returned: success
  sample: phUKKf3TSny1o9Yap379dw:58066d
gate:
  description: The gate that opens in this phase; null where none does.
  type: str
  returned: success
  sample: after_kraft
zookeeper_zxid:
  description: The last transaction that ZooKeeper had processed; null where it did not answer.
  type: int
  returned: success
  sample: 12884921274
"""

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import cluster_health, gates, soak
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rollback import rollback_readiness
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import feature_screen, planning, screen
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.probe_module import ProbeModule, error_text
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import topics


def main():
    """Collect, detect, exit."""
    module = ProbeModule(
        {
            "soak": {"type": "str", "default": "24h"},
            "soak_gap": {"type": "str", "default": ""},
            "canary": {"type": "str"},
            "concurrency": {"type": "int", "default": 1},
            "plan_to": {"type": "str", "choices": ["", "hybrid", "zk"]},
        }
    )
    given = module.params
    try:
        soak_s, gap_s = soak.parse_soak(given["soak"], given["soak_gap"])
    except ValueError as error:
        module.fail_json(msg=f"{error} (QS-CONNECT-008)")

    def work():
        facts = module.facts(strict=False)
        for host, mode in module.modes_of_excluded().items():
            facts["excluded"][host]["running"] = mode
        detected = phase.detect(facts)
        migration = facts["zookeeper"].get("migration") or {}
        return {
            "phase": detected.phase,
            "cluster_id": phase.cluster_id(facts),
            "blocks": [block._asdict() for block in detected.blocks],
            "evidence": [item._asdict() for item in detected.evidence],
            "steps": detected.steps,
            "next": screen.next_step(facts, detected, soak_s, gap_s)._asdict(),
            "rollback_readiness": rollback_readiness.detect(facts, detected)._asdict(),
            "mirrored_offset": migration.get("kraft_metadata_offset"),
            "mirrored_zxid": migration.get("mzxid"),
            "nodes": screen.node_lines(facts),
            "token": gates.finalize_token(facts) if detected.phase in gates.GATES["before_finalize"].phases else None,
            "unfinished": sorted({*phase.find_unfinished(facts), *phase.find_startable(facts, detected.phase)}),
            "left_registered": phase.find_left_registered(facts),
            "quorum": facts["quorum"],
            "features": feature_screen.summary(facts),
            "facts": facts,
            **(plan(module, facts, detected) if given["plan_to"] is not None else {}),
        }

    module.run(work)


def plan(module, facts, detected):
    """Return {plan: {steps, unavoidable}}, or {plan_error} where the brokers do not answer."""
    partitions = facts["topics"].get("partitions") or {}
    try:
        min_isr = module.min_isr(partitions)
    except topics.KafkaException as error:
        return {"plan_error": error_text(error)}
    given = module.params
    try:
        steps = planning.steps(facts, detected, min_isr, given["canary"], given["plan_to"], given["concurrency"])
    except ValueError as error:
        return {"plan_error": str(error)}
    unavoidable = cluster_health.find_unavoidable(partitions, min_isr)
    return {"plan": {"steps": [step._asdict() for step in steps], "unavoidable": unavoidable}}


if __name__ == "__main__":
    main()
