#!/usr/bin/python
# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rolling_restart
short_description: Plan a roll of Kafka brokers, admit the next batch, settle the last
version_added: 0.1.0
description:
  - Runs on the probe host and changes nothing. The restart itself is a host's turn (M(quorumshift.kafka.node_restart)).
  - O(state=planned) orders the brokers that have to be restarted, the canary first and the controller last, and lists
    the partitions whose replication leaves no spare.
  - O(state=admitted) waits until the batch may be stopped. The phase is as expected, every broker is alive, no
    partition is offline, under-replicated or would fall under min.insync.replicas, all held for O(stable_s).
  - A leader that takes no replica back in sync any more keeps that from ever being so. With O(mode=zk) it is told as
    RV(first) once that is proved and all else is well, to be restarted before O(batch).
  - O(state=settled) waits for the same after the last batch.
options:
  state:
    description: What is asked for.
    type: str
    required: true
    choices: [planned, admitted, settled]
  mode:
    description:
      - The mode into which nodes are restarted. V(controller_migration) takes controllers back to migration mode before
        the migration has ended, V(hybrid) brokers from KRaft mode back to migration mode, V(zk) from there to plain
        ZooKeeper mode.
    type: str
    required: true
    choices: [zk_migration, kraft, controller_final, controller_migration, hybrid, zk]
  canary:
    description: The host to restart first; by default the broker that leads the fewest partitions.
    type: str
  planned:
    description:
      - With O(state=planned), the brokers in the order in which the run's own plan has them. It holds where none is
        down and the controller has not moved.
    type: list
    elements: str
    default: []
  batch:
    description: The hosts to be stopped, with O(state=admitted).
    type: list
    elements: str
    default: []
  plan:
    description: What O(state=planned) returned.
    type: dict
    default: {}
  run:
    description: The run's id, which the gate pass carries.
    type: str
    required: true
  accept:
    description:
      - In a roll back, words of what is not healthy and may stay so, as M(quorumshift.kafka.gate) takes them.
    type: list
    elements: str
    default: []
  stable_s:
    description: For how many seconds on end all must be well.
    type: float
    default: 10
  timeout_s:
    description: After how many seconds waiting ends with what was seen last.
    type: float
    default: 600
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
- name: Plan the roll to KRaft mode
  quorumshift.kafka.rolling_restart:
    state: planned
    mode: kraft
    run: "{{ run }}"
    bootstrap_servers: b1:9094
    nodes: "{{ my_node_facts }}"
"""

RETURN = r"""
plan:
  description: Batches of hosts in order, hosts that need nothing, reasons, and what no order can keep available.
  type: dict
  returned: with O(state=planned)
gate_token:
  description: The pass that the batch's turns take; of a settled roll to plain ZooKeeper mode, that the controllers'
    wiping takes.
  type: dict
  returned: with O(state=admitted), when admitted; with O(state=settled) and O(mode=zk)
first:
  description: The leader to be restarted first, whose restart mends it; its host, the partitions, what it takes.
  type: dict
  returned: with O(state=admitted) and O(mode=zk), where there is one
waited_s:
  description: How long the batch waited for its admission, in seconds.
  type: float
  returned: with O(state=admitted) and O(state=settled)
"""

from ansible_collections.quorumshift.kafka.plugins.module_utils.core import (
    gates,
    phase,
    restart,
    rollback,
    stuck_leaders,
    zk_controller,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.probe_module import ProbeModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import log_ends, topics

CONTROLLER_FINAL = "controller_final"
OF_CONTROLLERS = (CONTROLLER_FINAL, "controller_migration")
SETTLED_PHASES = {
    "zk_migration": (phase.COPYING, phase.HYBRID, phase.DUAL_WRITE),
    "kraft": (phase.DUAL_WRITE, phase.FINALIZING),
    CONTROLLER_FINAL: (phase.FINALIZED,),
    "controller_migration": (phase.DUAL_WRITE, phase.HYBRID),
    "hybrid": (phase.HYBRID,),
    "zk": (phase.REVERTING,),
}


def main():
    """Plan, admit or settle."""
    module = ProbeModule(
        {
            "state": {"type": "str", "required": True, "choices": ["planned", "admitted", "settled"]},
            "mode": {"type": "str", "required": True, "choices": list(SETTLED_PHASES)},
            "canary": {"type": "str"},
            "planned": {"type": "list", "elements": "str", "default": []},
            "batch": {"type": "list", "elements": "str", "default": []},
            "plan": {"type": "dict", "default": {}},
            "run": {"type": "str", "required": True},
            "accept": {"type": "list", "elements": "str", "default": []},
            "stable_s": {"type": "float", "default": 10},
            "timeout_s": {"type": "float", "default": 600},
        }
    )
    module.run((lambda: planned(module)) if module.params["state"] == "planned" else (lambda: awaited(module)))


def planned(module):
    """Return the plan of the roll."""
    facts, given = module.facts(), module.params
    mode = gates.MODE_OF_RESTART.get(given["mode"], given["mode"])
    if given["mode"] in OF_CONTROLLERS:
        plan = restart.plan_controllers(facts["nodes"], mode, facts["quorum"].get("leader_id"))
        return {"plan": {**plan._asdict(), "min_isr": {}, "mode": given["mode"]}}
    found = facts["topics"]
    if not found["reached"]:
        module.fail_json(msg=found["error"])
    if given["canary"] and given["canary"] not in module.nodes:
        module.fail_json(msg=f"quorumshift_canary is {given['canary']}, which is not in the group kafka_broker")
    min_isr = module.min_isr(found["partitions"])
    controller = (facts["zookeeper"].get("controller") or {}).get("broker_id")
    health = {**found, "min_isr": min_isr}
    plan = restart.plan(facts["nodes"], mode, given["canary"], controller, health, given["planned"])
    return {"plan": {**plan._asdict(), "min_isr": min_isr, "mode": given["mode"]}}


def awaited(module):
    """Wait until the batch may be stopped, or until the roll has settled."""
    given, plan = module.params, module.params["plan"]
    batch, admitting = given["batch"], given["state"] == "admitted"
    gate = gates.GATE_OF_RESTART[given["mode"]] if admitting else gates.BROKERS_PLAIN
    module.known_min_isr.update(plan.get("min_isr") or {})

    def gather():
        facts, first = module.facts(), None
        detected = phase.detect(facts)
        troubles = gates.closed_by(gate, detected, []) if admitting else settled(given["mode"], detected)
        if given["mode"] in rollback.RESTARTS:
            target = rollback.ZK if given["mode"] == "zk" else rollback.HYBRID
            refused = rollback.refused(facts, detected, target)
            troubles += [refused] if refused else []
        if given["mode"] in OF_CONTROLLERS:
            troubles += restart.controller_troubles(facts["nodes"], facts["quorum"], batch)
            return troubles, {
                "phase": detected.phase,
                "gate_token": gates.make_token(gate, detected.phase, given["run"], facts),
            }
        if given["mode"] == "zk":
            steps = phase.RevertStep
            troubles += rollback.to_do(detected, steps.MIGRATION_GONE if admitting else steps.BROKERS_PLAIN)
            fenced = zk_controller.fenced_sentence(facts["zookeeper"])
            troubles += [fenced] if fenced else []
        if given["mode"] == "hybrid" and not admitting:
            troubles += [f"{host} runs or will start in KRaft mode" for host in rollback.in_mode(facts, "kraft")]
        down = [
            host
            for host, node in facts["nodes"].items()
            if not node.get("running") and not (given["mode"] == "zk" and node["role"] == "controller")
        ]
        if not (batch and set(down) & set(batch)):
            stop = facts["nodes"][batch[0]]["node_id"] if batch else None
            troubles += [f"{host} does not answer: {facts['nodes'][host].get('running_error')}" for host in down]
            found = facts["topics"]
            min_isr = module.min_isr(found.get("partitions") or {})
            excused = restart.unavoidable(found.get("partitions") or {}, min_isr)
            accepted = given["accept"] if given["mode"] in rollback.RESTARTS else None

            def health(topics, stop):
                return restart.troubles(topics, min_isr, phase.broker_ids(facts), excused, stop, accepted)

            ill = health(found, stop)
            if ill and not troubles and given["mode"] == "zk" and admitting:
                ill, first = leader_first(module, facts, min_isr, health, ill)
            troubles += ill
        # A broker of the batch that is down already is finished first: waiting for its health would wait for ever.
        gate_token = gates.make_token(gate, detected.phase, given["run"], facts)
        return troubles, {"phase": detected.phase, "gate_token": gate_token, **({"first": first} if first else {})}

    what = f"{', '.join(batch)} may be stopped" if admitting else f"the roll to {given['mode']} to settle"
    result = module.wait(gather, given["stable_s"], given["timeout_s"], what)
    if not (result["done"] and (admitting or given["mode"] == "zk")):
        result.pop("gate_token", None)
    return result


def leader_first(module, facts, min_isr, health, ill):
    """Return why no broker may be stopped now, and the leader that has to be restarted first, as a dict, or None.

    `health(topics, stop)`: restart.troubles; `ill`: what it tells of all topics.
    """
    nodes, found, connections = facts["nodes"], facts["topics"], module.connections
    held = stuck_leaders.held_out(nodes, found) if found.get("reached") else []
    if held and not health(stuck_leaders.without(found, held), None):  # else there is more to wait for first
        held = log_ends.caught_up(held, nodes, connections)
    else:
        held = []
    lasted_s = module.seen_for(stuck_leaders.token(held))
    leaders = stuck_leaders.leaders(held, nodes, min_isr)
    if not leaders:
        return ill, None
    first = leaders[0]
    others = health(stuck_leaders.without(found, held), first.broker)
    if others or lasted_s < stuck_leaders.PROVED_S:
        return [*(others or ill), *stuck_leaders.not_proved(leaders)], None
    topics_alone = {one.topic for one in held if one.name in first.alone}
    unclean = topics.settings(
        connections.bootstrap, connections.client, topics_alone, topics.UNCLEAN, connections.timeout
    )
    refused = stuck_leaders.unclean(first, [name for name, value in unclean.items() if value != "false"])
    return refused, None if refused else first._asdict()


def settled(mode, detected):
    """Return why the roll has not settled in a phase that it leads to."""
    if detected.phase in SETTLED_PHASES[mode]:
        return []
    return [f"the phase is {detected.phase}", *(block.text for block in detected.blocks)]


if __name__ == "__main__":
    main()
