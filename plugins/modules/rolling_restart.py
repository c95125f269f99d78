#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rolling_restart
short_description: Plan a rolling restart of Kafka nodes, and wait until each batch may be stopped
version_added: 0.1.0
description:
  - Orders the restarts and guards them, from the probe host. M(quorumshift.kafka.node_restart) restarts a node.
  - O(state=planned) orders the nodes that have to be restarted, and lists the partitions whose replication leaves no
    spare. Among brokers the canary comes first and the controller last, among controllers the quorum's leader last.
  - O(state=admitted) waits until the batch may be stopped, and returns a gate token for its hosts. The phase is as
    expected, every broker is alive, and no partition is offline, under-replicated or would fall under
    min.insync.replicas. One controller leads, every broker is registered, no node is foreign, every follower has
    caught up, and no broker renamed directories to C(-stray). All of it held for O(stable_s).
  - If the batch's node does not answer and its own host says that it is down, no health is required, and the token
    only permits its start. If it does not answer though its host says that it runs, the cluster must be healthy
    without it.
  - A stuck leader, which lets no replica back in sync, prevents the cluster from becoming healthy. With O(kind=zk) the
    module proves that a leader is stuck, and returns it as RV(first). Restart that leader before O(batch).
  - The quorum's leader is asked for again with each reading. While the batch's controller leads and others are still to
    be restarted, one of these is returned as RV(first). A controller that was restarted so needs no restart in its own
    batch.
  - O(state=settled) waits for the same after the last batch.
  - O(state=batches) shows which nodes could restart together without any change of their mode. It reads only, and
    admits nothing. No partition loses more in-sync replicas than min.insync.replicas allows, counting the whole batch
    at once. A batch is within one rack, if brokers have racks. Controllers restart one at a time.
  - O(state=planned) fails where a replication throttle would slow down the replicas of a broker that starts again. Of
    half a throttle, and in a rollback, it only warns.
  - A batch of brokers may have several hosts. Before it the whole cluster is healthy, no reassignment is in flight, and
    no partition falls under C(min.insync.replicas) by the stop of the whole batch. The last broker in migration mode
    restarts alone, since that starts the initial copy.
  - In plain restarts, partitions that no order keeps at C(min.insync.replicas) need a token of O(accept).
options:
  state:
    description:
      - What to do. V(watched) admits nothing. It reads the cluster once after O(batch) was restarted, and begins the
        time O(stable_s) that V(admitted) or V(settled) continues. What Ansible does between two batches is within it.
    type: str
    required: true
    choices: [planned, watched, admitted, settled, batches]
  kind:
    description:
      - The kind of restart. V(zk_migration), V(kraft) and V(controller_final) lead forward. V(controller_migration)
        takes controllers back to migration mode before the migration has ended, V(hybrid) brokers from KRaft mode
        back to migration mode, V(zk) from there to plain ZooKeeper mode.
      - V(restart_broker) and V(restart_controller) restart nodes in the mode in which they run, outside of a migration.
        V(upgrade_broker), V(upgrade_controller) and V(protocol_broker) are plain restarts too, in an upgrade.
        V(zk_connect) restarts brokers in plain ZooKeeper mode with another C(zookeeper.connect).
        V(dynamic_controller) and V(dynamic_broker) restart nodes in KRaft mode with
        C(controller.quorum.bootstrap.servers) in place of C(controller.quorum.voters).
      - Required unless O(state=batches).
    type: str
    choices:
      - zk_migration
      - kraft
      - controller_final
      - controller_migration
      - hybrid
      - zk
      - restart_broker
      - restart_controller
      - upgrade_broker
      - upgrade_controller
      - protocol_broker
      - zk_connect
      - dynamic_controller
      - dynamic_broker
  canary:
    description:
      - The host to restart first; by default the broker that leads the fewest partitions. With O(state=batches), by
        default none. In plain restarts it is never by default the controller, and there is none once nodes are done.
    type: str
  concurrency:
    description: How many brokers may be in a batch. Controllers restart one at a time.
    type: int
    default: 1
  since:
    description:
      - With O(state=batches) and in plain restarts, the time of the change that the restarts are for, in seconds since
        1970 by the control node's clock. Nodes that answer and started later need no restart. V(0) restarts all.
    type: float
    default: 0
  ready:
    description: In plain restarts, hosts that need no restart. In an upgrade, those that run the new release.
    type: list
    elements: str
    default: []
  planned:
    description:
      - With O(state=planned), the brokers in the order of the run's own plan. The first one stays the canary if no
        broker is down and it has not become the controller.
    type: list
    elements: str
    default: []
  batch:
    description:
      - The hosts to be restarted at once, with O(state=admitted), or that were, with O(state=watched). Of controllers,
        one.
    type: list
    elements: str
    default: []
  controllers_read:
    description:
      - With O(state=admitted), the controllers whose hosts were read anew, beside O(batch). If another one leads the
        quorum, nothing is admitted, and RV(unread) names it. By default, all were.
    type: list
    elements: str
  plan:
    description: The RV(plan) of O(state=planned).
    type: dict
    default: {}
  run:
    description: The run's id, which the gate token carries.
    type: str
    required: true
  accept:
    description:
      - In a rollback and in plain restarts, tokens of what is degraded and may stay so, as M(quorumshift.kafka.gate)
        takes them. In plain restarts, also that of partitions that cannot keep C(min.insync.replicas).
    type: list
    elements: str
    default: []
  lag_s:
    description: For how many seconds a voter or broker may not have caught up with the quorum's leader.
    type: float
    default: 5
  latency_factor:
    description:
      - Before a broker is stopped, and at the end, brokers answer a client within this many times what they took when
        the restarts were planned, or within 0.1 s. It is asked once the cluster was healthy for O(stable_s). Of a large
        cluster, the 32 brokers are asked that restarted last and lead most. V(0) asks none; a rollback asks none.
    type: float
    default: 2
  stable_s:
    description: For how many seconds without a break the cluster must be healthy.
    type: float
    default: 10
  timeout_s:
    description: After how many seconds the wait fails with the last state seen.
    type: float
    default: 600
extends_documentation_fragment:
  - quorumshift.kafka.attributes
  - quorumshift.kafka.attributes.reads
  - quorumshift.kafka.connection
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.zookeeper.connect
  - quorumshift.kafka.nodes
seealso:
  - module: quorumshift.kafka.node_restart
  - module: quorumshift.kafka.migration_state
  - name: Operator's guide
    description: Phases, gates, variables, and the inventory.
    link: https://github.com/quorumshift/kafka/blob/main/docs/operators-guide.md
  - name: How it works
    description: What each condition of a restart protects.
    link: https://github.com/quorumshift/kafka/blob/main/docs/how-it-works.md
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
# In a play on all brokers and controllers: every probe of the cluster begins with the facts of its hosts
- name: Read the node
  ansible.builtin.import_role:
    name: quorumshift.kafka.quorumshift
    tasks_from: gather

# In a play on localhost, after it
- name: Show which nodes could restart together, in batches of up to four brokers
  quorumshift.kafka.rolling_restart:
    state: batches
    bootstrap_servers: b1:9094,b2:9094
    concurrency: 4
    run: show-batches
  register: together

- name: Leave out the nodes that started since a change of their files
  quorumshift.kafka.rolling_restart:
    state: batches
    bootstrap_servers: b1:9094,b2:9094
    since: 1795276228
    run: show-batches

- name: Plan the restarts of brokers in the mode in which they run
  quorumshift.kafka.rolling_restart:
    state: planned
    kind: restart_broker
    canary: b3
    bootstrap_servers: b1:9094,b2:9094
    run: night-1
  register: planned

- name: Plan the rolling restart to KRaft mode
  quorumshift.kafka.rolling_restart:
    state: planned
    kind: kraft
    bootstrap_servers: b1:9094,b2:9094
    zookeeper_connect: z1:2181,z2:2181,z3:2181/kafka
    run: night-1

# In a play with serial: 1 over the hosts of the plan
- name: Wait until this broker may be stopped
  quorumshift.kafka.rolling_restart:
    state: admitted
    kind: restart_broker
    batch: "{{ ansible_play_batch }}"
    plan: "{{ hostvars['localhost'].planned.plan }}"
    bootstrap_servers: b1:9094,b2:9094
    run: night-1
    stable_s: 10
    timeout_s: 600
  delegate_to: localhost
  register: admitted
"""

RETURN = r"""
phase:
  description: The phase that the last reading has detected.
  type: str
  returned: with O(state=admitted) and O(state=settled)
  sample: hybrid
since:
  description: The O(since) with which a later run leaves out what this one restarts.
  type: float
  returned: with O(state=planned) of plain restarts, unless the control node's clock is wrong
  sample: 1795276229
node_s:
  description: >-
    By host, how many seconds a restart may take, with O(stable_s), by its log of its last stop and start. Without hosts
    of which the log does not say it.
  type: dict
  returned: with O(state=planned)
  sample: {b1: 34.5, b2: 31.0}
plan:
  description:
    - C(batches) of hosts, hosts that need no restart (C(done)), C(reasons) by host, the C(kind), and C(unavoidable),
      the partitions that cannot stay available.
  type: dict
  returned: with O(state=planned)
  sample:
    kind: kraft
    batches: [[b2], [b1], [b3]]
    done: []
    reasons: {b2: "canary: leads fewest partitions (1)"}
    unavoidable: {scratch_rf1_0-0: "replication factor 1: offline while its broker restarts"}
brokers:
  description: The same of the brokers, without a kind.
  type: dict
  returned: with O(state=batches)
  sample:
    batches: [[b1], [b2], [b3]]
    done: []
    reasons: {}
    unavoidable: {scratch_rf1_0-0: "replication factor 1: offline while its broker restarts"}
controllers:
  description: The same of the quorum's controllers; none without a group C(kafka_controller), or in phase C(zk).
  type: dict
  returned: with O(state=batches)
  sample:
    batches: [[c1], [c3], [c2]]
    done: []
    reasons: {c2: "controller: last, so that it moves once"}
    unavoidable: {}
gate_token:
  description: The gate token for the restart of the batch, or of RV(first) alone; or for wiping controllers once every
    broker is in plain ZooKeeper mode. It names its hosts, each with its node.
  type: dict
  returned: with O(state=admitted), when admitted; with O(state=settled) and O(kind=zk)
  sample:
    gate: before_kraft
    cluster_id: phUKKf3TSny1o9Yap379dw
    phase: hybrid
    run: night-1
    digest: 7345f0ef79822c586f963d8f64d5e86a70081dee9f38aff34f990f7772c6f56d
    hosts: {b2: broker-2}
    only_start: false
    clocks: {}
controllers_to_read:
  description: The controllers whose hosts are to be read before each batch, the quorum's leader, or all if none leads.
  type: list
  elements: str
  returned: with O(state=planned)
  sample: [c1]
carry:
  description: The O(carry) with which O(state=admitted) or O(state=settled) goes on.
  type: dict
  returned: with O(state=watched)
  sample: {since: 1795276229.6, seen: 1795276229.6, same: {}, trouble: null}
unread:
  description: The controllers that are to be read before the batch can be admitted, since another one leads by now.
  type: list
  elements: str
  returned: with O(state=admitted), where O(controllers_read) lacks them
  sample: [c2]
needed:
  description: Whether the batch's controller still needs its restart.
  type: bool
  returned: with O(state=admitted)
  sample: true
only_start:
  description: Whether the batch's node is down and is only started.
  type: bool
  returned: with O(state=admitted)
  sample: false
unresponsive:
  description: With RV(only_start), which other nodes do not answer.
  type: list
  elements: str
  returned: with O(state=admitted), when RV(only_start)
  sample: []
first:
  description: The stuck leader to restart first, with its host and partitions; of controllers, the C(host) to restart
    while the batch's, C(waits), leads the quorum.
  type: dict
  returned: with O(state=admitted), where there is one
  sample: {host: c1, waits: c2}
waited_s:
  description: How long the wait took, in seconds.
  type: float
  returned: with O(state=admitted) and O(state=settled)
  sample: 10.012
"""

from ansible_collections.quorumshift.kafka.plugins.module_utils.admin import reassigner
from ansible_collections.quorumshift.kafka.plugins.module_utils.admin.cluster_admin import ClusterAdmin, OtherCluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import reassignment
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import (
    client_latency,
    cluster_health,
    gates,
    invariants,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase, transitions
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.restart import (
    batches,
    plain_restart,
    restart_plan,
    stuck_leaders,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import clock
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import format_names, sentences
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.probe_module import ProbeModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import latency, log_ends, topics
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import SecurityError
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import WireError


def main():
    """Plan, admit, settle or show batches, as `state` says."""
    module = ProbeModule(
        {
            "state": {
                "type": "str",
                "required": True,
                "choices": ["planned", "watched", "admitted", "settled", "batches"],
            },
            "kind": {"type": "str", "choices": [*transitions.ROLLING]},
            "canary": {"type": "str"},
            "concurrency": {"type": "int", "default": 1},
            "since": {"type": "float", "default": 0},
            "ready": {"type": "list", "elements": "str", "default": []},
            "planned": {"type": "list", "elements": "str", "default": []},
            "batch": {"type": "list", "elements": "str", "default": []},
            "controllers_read": {"type": "list", "elements": "str"},
            "plan": {"type": "dict", "default": {}},
            "run": {"type": "str", "required": True},
            "accept": {"type": "list", "elements": "str", "default": []},
            "lag_s": {"type": "float", "default": 5},
            "latency_factor": {"type": "float", "default": client_latency.FACTOR},
            "stable_s": {"type": "float", "default": 10},
            "timeout_s": {"type": "float", "default": 600},
        }
    )
    state = module.params["state"]
    if state != "batches" and not module.params["kind"]:
        module.fail_json(msg=f"kind is required with state {state} (QS-RESTART-002)")
    work = {"planned": planned, "watched": watch, "batches": find_together}.get(state, await_batch)
    module.run(lambda: work(module))


def find_together(module):
    """Return which brokers and controllers could restart together."""
    facts, given = module.facts(), module.params
    try:
        min_isr = module.min_isr(facts["topics"].get("partitions") or {}) if facts["topics"]["reached"] else {}
        cluster = restart_plan.cluster_from_facts(facts, min_isr)
        how = (given["canary"], given["concurrency"], given["since"])
        found = {"brokers": restart_plan.plan_hosts(facts, transitions.BROKER, cluster, *how)._asdict()}
        if phase.controllers(facts) and phase.detect(facts).phase != phase.ZK:  # there they need not run yet
            quorum = restart_plan.cluster_from_quorum(facts["quorum"])
            one_by_one = (None, 1, given["since"])
            controllers = restart_plan.plan_hosts(facts, transitions.CONTROLLER, quorum, *one_by_one)
            found["controllers"] = controllers._asdict()
    except ValueError as error:
        module.fail_json(msg=f"{error}. Nothing was changed.")
    return found


def planned(module):
    """Return the plan of the rolling restart."""
    facts, given = module.facts(), module.params
    kind, detected, topics_found = transitions.KINDS[given["kind"]], phase.detect(facts), facts["topics"]
    refused = plain_restart.refusal(facts, detected) if kind.is_plain else None
    if refused:
        module.fail_json(msg=f"{refused}. Nothing was changed.")
    since = (given["since"] or clock.last_reading(facts["nodes"])) if kind.is_plain else None
    times = {"since": since} if since else {}
    plan, min_isr, partitions = cluster_health.Plan([], [], {}, {}), {}, topics_found.get("partitions") or {}
    of_brokers = kind.role == transitions.BROKER
    if of_brokers and not kind.is_plain:
        if not topics_found["reached"]:
            module.fail_json(msg=topics_found["error"])
        if given["canary"] and given["canary"] not in module.nodes:
            module.fail_json(
                msg=f"quorumshift_canary is {given['canary']}, which is not in the group kafka_broker (QS-RESTART-018)"
            )
    if of_brokers and topics_found["reached"]:
        min_isr = module.min_isr(partitions)
    # Without a migration there is no quorum yet: nothing of controllers is restarted
    if of_brokers or not kind.is_plain or detected.phase != phase.ZK:
        wish = restart_plan.Wish(*(given[name] for name in restart_plan.Wish._fields))
        try:
            plan = restart_plan.plan_kind(facts, kind, min_isr, wish)
        except ValueError as error:
            module.fail_json(msg=f"{error}. Nothing was changed.")
    if of_brokers and plan.batches:
        require_no_throttles(module)
        require_topics_seen(module)
    if of_brokers and kind.is_plain:
        ids = phase.ids(facts["nodes"][host] for batch in plan.batches for host in batch)
        times["unaccepted"] = plain_restart.check_accepted(partitions, min_isr, ids, given["accept"])
    read = batches.find_controllers_to_read(facts, detected)
    asks = of_brokers and plan.batches and not kind.is_rollback and given["latency_factor"]
    before = latency.measure(facts["nodes"], topics_found, module.connections) if asks else {}
    return {
        "plan": {**plan._asdict(), "kind": kind.name, "latency_s": before},
        "controllers_to_read": read,
        **times,
    }


def watch(module):
    """Begin to wait until the batch after `batch` may be stopped, or the cluster has settled after the last one, with
    the facts that are there. The answer admits nothing: the admission that continues the wait requires all conditions,
    with the hosts read meanwhile, for the rest of `stable_s`."""
    given, kind = module.params, transitions.KINDS[module.params["kind"]]
    following = batches.find_next(given["plan"].get("batches") or [], given["batch"])

    def collect():
        facts = module.facts()
        detected = phase.detect(facts)
        batch = batches.find_hosts_to_restart(facts, kind, following)
        reading = read(module, facts, detected.phase, kind, batches.is_only_start(facts, batch))
        verdict = batches.evaluate(reading, detected, kind, batch, given["accept"])
        return [*verdict.troubles, *verdict.lasting], {}

    return {"carry": module.begin_wait(collect, given["stable_s"])}


class _Unread(Exception):
    """The quorum is led by a controller whose host was not read."""

    def __init__(self, hosts, phase_seen):
        super().__init__(", ".join(hosts))
        self.hosts, self.phase = hosts, phase_seen


def await_batch(module):
    """Wait until the batch may be stopped, or until the rolling restart has settled. restart.batches has the rule; here
    are the answers that it needs from the cluster: about a stuck leader, and about reassignments."""
    given, kind = module.params, transitions.KINDS[module.params["kind"]]
    admitting = given["state"] == "admitted"
    planned_batch = list(given["batch"]) if admitting else []
    refused = batches.refusal(kind, planned_batch) if admitting else None
    if refused:
        module.fail_json(msg=f"{refused}. Nothing was changed.")

    def collect():
        facts = module.facts()
        detected = phase.detect(facts)
        if admitting and given["controllers_read"] is not None:
            was_read = {*given["controllers_read"], *planned_batch}
            to_read = batches.find_controllers_to_read(facts, detected)
            if set(to_read) - was_read:
                raise _Unread(to_read, detected.phase)
            batches.forget_unread_logs(facts, was_read)
            detected = phase.detect(facts)
        batch = batches.find_hosts_to_restart(facts, kind, planned_batch)
        if planned_batch and not batch:
            return [], {"phase": detected.phase, "needed": False}
        reading = read(module, facts, detected.phase, kind, batches.is_only_start(facts, batch))
        verdict = batches.evaluate(reading, detected, kind, batch, given["accept"])
        if verdict.lasting:
            module.fail_json(
                msg=f"no node is stopped: {'; '.join(verdict.lasting)}. Nothing was changed. (QS-PHASE-023)"
            )
        troubles, more = verdict.troubles, {}
        if batch != planned_batch:
            more["first"] = {"host": batch[0], "waits": planned_batch[0]}
        if verdict.may_be_stuck:
            troubles, first = choose_stuck_leader(module, facts, reading.min_isr, health_of_topics(reading), troubles)
            if first and len(batch) > 1 and first["host"] in batch:
                module.fail_json(
                    msg=f"no node is stopped: {first['host']} takes no replica back in sync, and restarts alone. Run "
                    "again with -e restart_concurrency=1. Nothing was changed. (QS-RESTART-002)"
                )
            more.update({"first": first} if first else {})
        if batches.is_together(kind, batch) and batch and not (troubles or verdict.only_start or more):
            troubles = check_reassignments(module)
        if verdict.do and troubles:
            more = {"do": verdict.do}
        if verdict.only_start:
            more["unresponsive"] = list(verdict.unresponsive)
        hosts = [more["first"]["host"]] if "first" in more else batch
        gate = kind.gate
        if not admitting:
            hosts, gate = list(phase.controllers(facts)), gates.BROKERS_PLAIN
        token = gates.make_token(gate, detected.phase, given["run"], facts, hosts, verdict.only_start)
        result = {"phase": detected.phase, "gate_token": token, "only_start": verdict.only_start}
        last.update(facts=None if verdict.only_start else facts)
        return troubles, {**result, **more}

    last = {}
    what = describe_wait(kind, planned_batch)
    try:
        result = module.wait(
            collect,
            given["stable_s"],
            given["timeout_s"],
            what,
            lambda: explain_slow(module, last.get("facts"), planned_batch),
        )
    except _Unread as unread:
        return {"done": True, "phase": unread.phase, "unread": unread.hosts, "needed": False, "waited_s": 0.0}
    result.setdefault("needed", True)
    if not (result["done"] and (admitting or kind.without_quorum)):
        result.pop("gate_token", None)
    return result


def explain_slow(module, facts, batch):
    """Return which brokers still answer clients later than before the restarts. `facts`: the last reading, None where
    nothing is stopped."""
    plan = module.params["plan"]
    before = plan.get("latency_s") or {}
    if not (before and facts and module.params["latency_factor"]):
        return []
    restarted = batches.find_previous(plan["batches"], batch)
    now = latency.measure(facts["nodes"], facts["topics"], module.connections, restarted, latency.MOST)
    return client_latency.explain_slow(before, now, module.params["latency_factor"])


def describe_wait(kind, batch):
    """Return what the module waits for, as words."""
    if batch:
        return f"the moment when {', '.join(batch)} may be stopped (QS-RESTART-007)"
    return (
        "the cluster to be healthy after the restarts (QS-RESTART-007)"
        if kind.is_plain
        else f"the restart to {kind.name} to settle (QS-RESTART-007)"
    )


def check_reassignments(module):
    """Return why no node is stopped while replicas are moved."""
    connections = module.connections
    try:
        found = ClusterAdmin(
            connections.bootstrap, connections.client, connections.timeout, module.params["cluster_id"]
        ).in_flight()
    except (WireError, SecurityError, OtherCluster) as error:
        return [f"whether reassignments are in flight could not be read: {error} (QS-RESTART-003)"]
    names = sorted(f"{topic}-{number}" for topic, number in found)
    if not names:
        return []
    return [
        f"{len(names)} partitions are being reassigned: {format_names(names)}. Wait for their end, or cancel them: "
        "kafka-reassign-partitions.sh --cancel (QS-RESTART-003)"
    ]


def require_no_throttles(module):
    """Fail where a replication throttle would slow down the replicas of a broker that starts again, warn of half of
    one, and in a rollback. Once a roll is enough: a throttle that is set later comes with a reassignment."""
    configs = ask_brokers(module, reassigner.read_throttled_configs, {}, "whether replication is throttled")
    found = reassignment.report_left_throttles(configs, ",".join(map(str, module.connections.bootstrap)))
    if found:
        seen, do, slow = found
        keep_running(module, f"replication is throttled: {sentences(seen, do)}", slow)


def require_topics_seen(module):
    """Fail where brokers have replicas of topics that the principal may not describe, and warn in a rollback: metadata
    leaves them out, so no condition before a stop would look at them."""
    what = "whether the tool's principal may describe the topics of every broker"
    denied = ask_brokers(module, reassigner.read_denied, [], what)
    if denied:
        connections = module.connections
        grant = reassignment.grant_describe(connections.client.principal, ",".join(map(str, connections.bootstrap)))
        keep_running(
            module,
            f"the tool's principal may not describe topics of which brokers have replicas: {format_names(denied)}. "
            f"Whether these are in sync is not known. {grant}",
        )


def ask_brokers(module, read, nothing, what):
    """Return what `read` finds with a ClusterAdmin, beside why some brokers did not say it; `nothing` where none did.
    A warning names those: a roll may be what repairs a broker that hangs. Fail the module on another cluster."""
    connections = module.connections
    try:
        admin = ClusterAdmin(
            connections.bootstrap, connections.client, connections.timeout, module.params["cluster_id"]
        )
        found, unread = read(admin)
    except OtherCluster as error:
        module.fail_json(msg=f"{error}.")
    except (WireError, SecurityError) as error:  # also of a mechanism that only librdkafka speaks
        found, unread = nothing, [str(error)]
    if unread:
        module.warn(f"{what} could not be read: {format_names(unread)}")
    return found


def keep_running(module, why, stops=True):
    """Fail, so that no node is stopped; warn in a rollback, and where it `stops` none."""
    if stops and not transitions.KINDS[module.params["kind"]].is_rollback:
        module.fail_json(msg=f"no node is stopped: {why}. Nothing was changed. (QS-RESTART-003)")
    module.warn(f"{why}.")


def read(module, facts, phase_seen, kind, only_start):
    """Return the reading of the conditions that hold before each stop, without a node. `only_start`:
    batches.is_only_start; nodes that are down keep no other one from its start."""
    given = module.params
    min_isr = {} if only_start else module.min_isr(facts["topics"].get("partitions") or {})
    accepted = given["accept"] if kind.is_rollback else None
    return invariants.Reading(facts, phase_seen, min_isr, facts["quorum"], given["lag_s"], accepted)


def health_of_topics(reading):
    """Return the function that returns the health with other topics, and with the stop of a broker."""
    return lambda found, stop: invariants.health(reading, found, stop)


def choose_stuck_leader(module, facts, min_isr, health, unhealthy):
    """Return why no broker may be stopped now, and the stuck leader to restart first, as a dict, or None.

    `health(topics, stop)`: restart.troubles; `unhealthy`: its result for all topics.
    """
    nodes, found, connections = facts["nodes"], facts["topics"], module.connections
    held = stuck_leaders.find_held_out(nodes, found) if found.get("reached") else []
    if held and not health(
        stuck_leaders.drop_partitions(found, held), None
    ):  # otherwise other partitions need time as well
        held = log_ends.find_caught_up(held, nodes, connections)
    else:
        held = []
    lasted_s = module.seen_for(stuck_leaders.token(held))
    leaders = stuck_leaders.find_leaders(held, nodes, min_isr)
    if not leaders:
        return unhealthy, None
    first = leaders[0]
    others = health(stuck_leaders.drop_partitions(found, held), first.broker)
    if others or lasted_s < stuck_leaders.PROVED_S:
        return [*(others or unhealthy), *stuck_leaders.explain_not_proved(leaders)], None
    topics_alone = {partition.topic for partition in held if partition.name in first.alone}
    unclean = topics.read_settings(
        connections.bootstrap, connections.client, topics_alone, topics.UNCLEAN, connections.timeout
    )
    refused = stuck_leaders.explain_unclean(first, [name for name, value in unclean.items() if value != "false"])
    return refused, None if refused else first._asdict()


if __name__ == "__main__":
    main()
