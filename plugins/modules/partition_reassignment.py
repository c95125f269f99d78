#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: partition_reassignment
short_description: Move partitions to the wanted replicas, or cancel that
version_added: 0.1.0
description:
  - Moves partitions to wanted replicas (KIP-455) and waits until they are there. It does nothing for a partition that
    is there, and waits for one that is on its way.
  - A throttle is recorded on this host, with who set it, before it is set. It is removed when the partitions are there.
    It stays while anything of the move is in flight, also when the task fails, and when it is not known whether
    anything is. The next run from the same host goes on at the same rate and removes it. Values that someone else has
    set since are left and named.
  - With O(max_in_flight) a large move is sent in parts, in the order of topic and partition. A partition whose new
    broker is not alive is held back until it is.
  - It refuses to start more while partitions are in flight, unless O(additional=true). It refuses to leave a partition
    fewer replicas than it has, unless O(shrink) has the token of this change, and to move under throttles that this
    host has not set, unless O(foreign_throttles) says what becomes of them.
  - While it waits, the action plugin shows the progress.
  - Runs on any host that reaches the brokers. Its principal needs Describe and Alter on the cluster and Describe on the
    topics, and for throttles DescribeConfigs and AlterConfigs on the cluster and the topics.
options:
  state:
    description:
      - V(present) moves partitions. V(cancelled) cancels the reassignments in flight of the given partitions, or all
        without O(partitions), O(src) and O(document).
      - V(awaited) begins nothing and waits for partitions that are in flight. It fails once they have ended where one
        ended elsewhere, as after a cancellation.
    type: str
    choices: [present, awaited, cancelled]
    default: present
  partitions:
    description:
      - The wanted replicas, the preferred leader first, each entry as in a reassignment file of
        C(kafka-reassign-partitions), V({topic, partition, replicas}). V(cancelled) needs no replicas. With replicas
        that are null, the reassignment of this partition is cancelled, as in C(AlterPartitionReassignments).
    type: list
    elements: dict
  src:
    description: A reassignment file of C(kafka-reassign-partitions), on the host where the module runs.
    type: path
  document:
    description: A whole reassignment, as a file of O(src) has it.
    type: raw
  additional:
    description:
      - Start more while partitions are in flight, and change where partitions in flight lead to.
    type: bool
    default: false
  missing:
    description:
      - What to do with partitions that do not exist. V(refused) fails and names one. V(skipped) leaves them out, for a
        plan that was made while topics may have been deleted.
    type: str
    choices: [refused, skipped]
    default: refused
  shrink:
    description:
      - The token that accepts fewer replicas for some partitions. The refusal shows it. It counts for this change only.
    type: str
  foreign_throttles:
    description:
      - What to do with replication throttles that this host has not set, at the brokers and topics of the move.
      - V(refused) begins nothing. V(removed) takes them over, so that none is left at the end. V(restored) moves under
        them, or sets them again after O(throttle_bytes_s); it refuses while another move is in flight, whose they are.
    type: str
    choices: [refused, removed, restored]
    default: refused
  throttle_bytes_s:
    description:
      - How many bytes a second each broker may send, and receive, for moved replicas.
      - By default the rate of the interrupted move with which this one goes on, and without one unlimited. Another
        number changes the rate of what is in flight.
    type: int
  preserve_throttles:
    description:
      - Whether throttles stay at the end, as with C(--preserve-throttles) of Kafka's tool. A warning has the command
        that removes them later. This host forgets them.
    type: bool
    default: false
  max_in_flight:
    description:
      - How many partitions of this move may be in flight. The next ones are sent when it is fewer. By default all are
        sent at once. Needs O(wait).
    type: int
  pace_s:
    description: How many seconds pass between two requests at least. It must be below O(stall_timeout_s).
    type: float
    default: 0
  cordon:
    description: Ids of brokers to which no partition may move.
    type: list
    elements: int
    default: []
  wait:
    description:
      - Whether to wait until the partitions are there. Without it, a throttle stays until a later run finds them there.
    type: bool
    default: true
  wait_s:
    description:
      - After how many seconds one call of the module returns with C(done=false) and RV(carry). The action plugin sets
        it and calls again until all is done.
    type: float
  carry:
    description: What an earlier, unfinished call of the same wait returned. The action plugin passes it on.
    type: dict
    default: {}
  stall_timeout_s:
    description: Fail after this many seconds in which no partition ended and no bytes were copied.
    type: float
    default: 900
extends_documentation_fragment:
  - quorumshift.kafka.attributes
  - quorumshift.kafka.connection
  - quorumshift.kafka.connection.cluster
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.zookeeper.connect
  - quorumshift.kafka.host_record
  - quorumshift.kafka.host_record.locked
attributes:
  check_mode:
    support: full
    details:
      - Reads only and returns what would be moved or cancelled.
  diff_mode:
    support: full
    details:
      - Shows the replicas R, and the adding and removing ones of each partition.
seealso:
  - module: quorumshift.kafka.partition_reassignment_info
  - name: Reassignments and features
    description: The modules' guide, with what they refuse and why.
    link: https://github.com/quorumshift/kafka/blob/main/docs/reassignments-and-features.md
  - name: KIP-455
    description: Kafka's proposal of reassignments by request.
    link: https://cwiki.apache.org/confluence/display/KAFKA/KIP-455%3A+Create+an+Administrative+API+for+Replica+Reassignment
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Move a partition
  quorumshift.kafka.partition_reassignment:
    bootstrap_servers: b1:9092,b2:9092
    partitions:
      - {topic: orders, partition: 0, replicas: [1, 2, 4]}
    throttle_bytes_s: 50000000

- name: Show what a file of kafka-reassign-partitions would move
  quorumshift.kafka.partition_reassignment:
    bootstrap_servers: b1:9092,b2:9092
    src: /root/reassignment.json
  check_mode: true
  diff: true

- name: Move many partitions, 50 at a time
  quorumshift.kafka.partition_reassignment:
    bootstrap_servers: b1:9092,b2:9092
    src: /root/reassignment.json
    throttle_bytes_s: 50000000
    max_in_flight: 50

- name: Begin to move partitions and do not wait for them
  quorumshift.kafka.partition_reassignment:
    bootstrap_servers: b1:9092,b2:9092
    document: "{{ my_plan.plan }}"
    throttle_bytes_s: 50000000
    wait: false
  register: my_move

- name: Wait for these partitions in another job
  quorumshift.kafka.partition_reassignment:
    bootstrap_servers: b1:9092,b2:9092
    state: awaited
    document: "{{ my_plan.plan }}"

- name: Move the partitions back
  quorumshift.kafka.partition_reassignment:
    bootstrap_servers: b1:9092,b2:9092
    document: "{{ my_move.undo }}"

- name: Cancel every reassignment
  quorumshift.kafka.partition_reassignment:
    bootstrap_servers: b1:9092,b2:9092
    state: cancelled
"""

RETURN = r"""
results:
  description:
    - Each partition with its replicas C(before), C(wanted), C(adding) and C(removing) ones, its C(state) before the
      run, and its C(error) with Kafka's name, null without one.
  type: list
  elements: dict
  returned: success, and if the move is refused or fails
  sample:
    - topic: orders
      partition: 0
      state: start
      before: [1, 2]
      wanted: [3, 1]
      adding: [3]
      removing: [2]
      error: null
done:
  description: Whether no reassignment of these partitions is in flight.
  type: bool
  returned: success
  sample: true
undo:
  description:
    - The reassignment that leads back to the replicas before this one. Of a cancellation, the one that begins again.
  type: dict
  returned: success, with O(state=present) and O(state=cancelled)
  sample:
    version: 1
    partitions: [{topic: orders, partition: 0, replicas: [1, 2]}]
progress:
  description:
    - Partitions and bytes left, bytes copied, bytes a second, and the seconds that this takes (C(eta_s)). Values that
      are unknown are null. Empty where nothing was in flight.
  type: dict
  returned: success
  sample: {partitions_left: 1, bytes_left: 12002174, bytes_copied: 0, bytes_per_s: 0, eta_s: null}
text:
  description: The progress in words.
  type: str
  returned: when not done
  sample: 1 partitions left, 12002174 bytes left at 0 bytes/s (big-0 adds [3])
idle:
  description:
    - Partitions that should be cancelled and were not in flight, each as C(topic-number). A warning names them.
  type: list
  elements: str
  returned: success, with O(state=cancelled)
  sample: []
came:
  description:
    - Partitions whose reassignment began during the cancellation, each as C(topic-number). A warning names them.
  type: list
  elements: str
  returned: success, with O(state=cancelled), not in check mode
  sample: []
throttle_bytes_s:
  description: The rate under which the partitions move, null without one and where nothing moves.
  type: int
  returned: success, with O(state=present) and O(state=awaited)
  sample: 100000
gone:
  description: Partitions of the reassignment that do not exist, each as C(topic-number).
  type: list
  elements: str
  returned: success
  sample: []
carry:
  description: What the next call of the same wait needs.
  type: dict
  returned: when not done
  sample:
    began: 1795807837.6923552
    changed: true
    copied: 0
    left: 1
throttles_left:
  description:
    - Throttles that were not removed, because someone else has changed them or their broker is not alive. Each is a
      warning too.
  type: list
  elements: str
  returned: success
  sample: []
waited_s:
  description: How long the module waited, in seconds.
  type: float
  returned: success
  sample: 2.404
"""

import json

from ansible_collections.quorumshift.kafka.plugins.module_utils.admin import reassigner
from ansible_collections.quorumshift.kafka.plugins.module_utils.admin.reassign_sender import MayHaveBegun, Sender, send
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import reassign_plan, reassignment
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin.reassign_queue import Queue
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin.reassignment import format_partition
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import format_names
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.admin_module import AdminModule, znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import WireError

ELECTION_S = 60.0  # for a controller that is elected anew, also ZooKeeper's after a session of 18 s


def main():
    """Move or cancel, and exit."""
    module = AdminModule(
        {
            "state": {"type": "str", "choices": ["present", "awaited", "cancelled"], "default": "present"},
            "partitions": {"type": "list", "elements": "dict"},
            "src": {"type": "path"},
            "document": {"type": "raw"},
            "additional": {"type": "bool", "default": False},
            "missing": {"type": "str", "choices": ["refused", "skipped"], "default": "refused"},
            "shrink": {"type": "str"},
            "foreign_throttles": {"type": "str", "choices": ["refused", "removed", "restored"], "default": "refused"},
            "throttle_bytes_s": {"type": "int"},
            "wait": {"type": "bool", "default": True},
            "wait_s": {"type": "float"},
            "carry": {"type": "dict", "default": {}},
            "stall_timeout_s": {"type": "float", "default": 900},
            "max_in_flight": {"type": "int"},
            "pace_s": {"type": "float", "default": 0},
            "cordon": {"type": "list", "elements": "int", "default": []},
            "preserve_throttles": {"type": "bool", "default": False},
        },
        changes=True,
        mutually_exclusive=[("partitions", "src", "document")],
        required_if=[("state", state, ("partitions", "src", "document"), True) for state in ("present", "awaited")],
    )
    if module.params["throttle_bytes_s"] is not None and module.params["throttle_bytes_s"] <= 0:
        module.fail_json(
            msg=f"throttle_bytes_s is {module.params['throttle_bytes_s']}. Give bytes a second, above 0 (QS-ADMIN-001)"
        )
    require_pace(module)
    work = cancelled if module.params["state"] == "cancelled" else move
    errors = reassignment.ReassignmentError, reassigner.RecordError, reassigner.Stalled

    def run(admin, connections):
        with reassigner.explained(reassigner.bootstrap(connections)):
            return work(module, admin, connections)

    module.run(run, errors)


def require_pace(module):
    """Fail where a move in parts would send nothing, or not all of it."""
    limit, pace, stall = (module.params[name] for name in ("max_in_flight", "pace_s", "stall_timeout_s"))
    if limit is not None and limit <= 0:
        module.fail_json(msg=f"max_in_flight is {limit}. Give a number of partitions, above 0 (QS-ADMIN-001)")
    if not 0 <= pace < max(stall, 1):
        module.fail_json(
            msg=f"pace_s is {pace:g}. Give seconds from 0 to below stall_timeout_s, {stall:g} (QS-ADMIN-001)"
        )
    if (limit is not None or pace) and not module.params["wait"]:
        module.fail_json(
            msg="max_in_flight and pace_s send a reassignment in parts, and wait is false: what is not sent at once "
            "would never be. Leave out wait, or both others (QS-ADMIN-001)"
        )


def parse_wanted(given):
    """Return the wanted assignments, None without any."""
    if given["src"]:
        with open(given["src"], encoding="utf-8") as stream:
            try:
                return reassignment.parse(json.load(stream))
            except ValueError as error:
                raise reassignment.ReassignmentError(
                    f"{given['src']} is no reassignment file: {error} (QS-ADMIN-004)"
                ) from error
    if given["document"] is not None:
        return reassignment.parse(given["document"])
    if given["partitions"] is None:
        return None
    return reassignment.parse({"partitions": given["partitions"]}, texts=True)


def find_existing(module, admin, wanted):
    """Return the wanted partitions that exist, and the names of the others. Raises ReassignmentError unless these may
    be skipped, as those deleted during a move may."""
    unknown = list(
        map(format_partition, sorted(partition for partition in wanted if partition not in admin.partitions))
    )
    if unknown and module.params["missing"] == "refused" and not module.params["carry"]:
        raise reassignment.ReassignmentError(
            f"{format_names(unknown)} does not exist, or the principal may not describe it (of {len(unknown)} unknown "
            "partitions). Correct the reassignment. Nothing was changed (QS-ADMIN-001)"
        )
    return {partition: replicas for partition, replicas in wanted.items() if partition in admin.partitions}, unknown


def move(module, admin, connections):
    """Move the partitions, or only wait for them, and return the module's result."""
    given, carry = module.params, module.params["carry"]
    wanted = parse_wanted(given)
    in_flight = admin.in_flight(ELECTION_S)  # a principal without this right sees no topics either
    wanted, gone = find_existing(module, admin, wanted)
    begins, throttles = given["state"] == "present", reassigner.Throttles(admin, given["state_dir"], given["run"])
    failed = dict(carry.get("failed", {}))
    actual = {partition: admin.partitions[partition]["replicas"] for partition in wanted}
    steps = reassignment.steps(wanted, actual, in_flight)
    moving = [
        step for step in steps if step.state != reassignment.DONE and format_partition(step.partition) not in failed
    ]
    to_begin = [step for step in moving if begins and step.state != reassignment.UNDER_WAY]
    queue = Queue(to_begin, given["max_in_flight"], given["pace_s"], carry.get("queue") or {})
    begun = queue.waiting()
    others, refused = (
        refusal(module, admin, connections, throttles, steps, in_flight) if begins and not carry else ([], None)
    )
    results = [result_of(step) for step in steps]
    if refused:
        module.fail_json(msg=f"{refused}. Nothing was changed", results=results)
    left = list(carry.get("throttles_left", ()))
    answer = {"results": results, "done": False, "throttles_left": left, "waited_s": 0.0, "progress": {}, "gone": gone}
    leftover = throttles.left_over({*in_flight, *(step.partition for step in moving)})
    # A run that goes on with a throttled move keeps its rate: what is sent next must not move at full speed
    goes_on = not set(throttles.partitions).isdisjoint(step.partition for step in moving)
    rate = given["throttle_bytes_s"] or (throttles.rate() if goes_on else None)
    answer["throttle_bytes_s"] = rate if begins and moving else None
    if begins:
        answer["undo"] = reassignment.render({step.partition: step.undo for step in steps})
    if module._diff:
        answer["diff"] = reassignment.diff(steps)
    if module.check_mode:
        return {**answer, "changed": bool(begun) or (leftover and bool(throttles.values)), "done": not moving}
    changed, since = bool(carry.get("changed")), carry.get("since_owner", throttles.owner.get("at"))
    if leftover and not (carry and given["preserve_throttles"]):
        changed = remove_throttles(answer, throttles) or changed
    sender = None
    try:
        if begins and moving and not carry:
            replaces = bool(others) and given["foreign_throttles"] == reassigner.REMOVED
            throttled = moving if rate is not None else (begun if replaces else [])
            if throttled:
                with throttles.exclusive():
                    changed = bool(throttles.throttle(throttled, rate, given["foreign_throttles"])) or changed
                    since = throttles.owner.get("at")
            else:
                since = own(module, throttles, moving)
        sender = Sender(admin, throttles, queue, moving, since, given["missing"] == "skipped")
        seconds = given["wait_s"] if given["wait"] else 0
        waited = (
            reassigner.wait(admin, sender.sent, seconds, given["stall_timeout_s"], carry) if moving else {"done": True}
        )
    except (WireError, reassigner.Stalled, reassigner.Superseded) as error:
        changed = changed or bool(sender and sender.changed)
        kept = keep_throttles(connections, throttles, since, error)
        module.fail_json(
            msg=f"{reassigner.explain(error, reassigner.bootstrap(connections))}. {kept}",
            changed=changed,
            results=results,
        )
    changed = changed or sender.changed
    failed.update(sender.failed)
    gone += [name for name in (*sender.gone, *waited.pop("gone", ())) if name not in gone]
    for result in results:
        result["error"] = failed.get(format_partition((result["topic"], result["partition"])))
    if not waited["done"] and (given["wait"] or not failed):
        kept = {"failed": failed, "throttles_left": answer["throttles_left"], "since_owner": since}
        waited["carry"].update(changed=changed, queue=queue.carry(), queued=len(queue), **kept)
        return {**answer, "changed": changed, **waited}
    changed = finish(module, admin, connections, answer, throttles) or changed
    if failed:
        listed = format_names([f"{name}: {error}" for name, error in sorted(failed.items())])
        module.fail_json(
            msg=f"not every partition could be moved: {listed} (QS-ADMIN-006)", changed=changed, results=results
        )
    return {**answer, "changed": changed, **waited}


def own(module, throttles, moving):
    """Record that this task moves, where another one may move with the record or this one sends in parts: a task that
    moved before sends no more. Return since when; None where nothing is recorded, also since it cannot be."""
    given = module.params
    if not (throttles.owner or given["max_in_flight"] is not None or given["pace_s"] > 0):
        return None
    try:
        with throttles.exclusive():
            throttles.own(step.partition for step in moving)
    except reassigner.RecordError as error:
        if throttles.values or not isinstance(error.__cause__, OSError):
            raise
        module.warn(f"{error}. Nothing is throttled, so the partitions are moved without it")
        return None
    return throttles.owner.get("at")


def refusal(module, admin, connections, throttles, steps, in_flight):
    """Return the foreign throttles that slow down what begins, and why it may not begin, None when it may."""
    given = module.params
    legacy = reassigner.describe_legacy(znodes(connections, reassigner.LEGACY)[reassigner.LEGACY])
    cordoned = {int(broker) for broker in given["cordon"]}
    refused = reassignment.refusal(
        steps, in_flight, admin.brokers, given["additional"], legacy, given["shrink"], cordoned
    )
    moving = [step for step in steps if step.state != reassignment.DONE]
    begun = [step for step in moving if step.state != reassignment.UNDER_WAY]
    if refused or not (begun or (moving and given["throttle_bytes_s"] is not None)):
        return [], refused
    require_space(admin, begun)
    others = throttles.foreign(moving if given["throttle_bytes_s"] is not None else begun)
    unknown = set(in_flight) - set(throttles.partitions)
    return others, reassigner.foreign_refusal(
        others, given["foreign_throttles"], unknown, reassigner.bootstrap(connections)
    )


def require_space(admin, begun):
    """Raise ReassignmentError where a broker says that it has no room for what it gets."""
    gets = {broker for step in begun for broker in step.adding}
    has = {admin.partitions[step.partition]["leader"] for step in begun if step.adding}
    measured = reassigner.measure(admin, gets | has)
    assignments = {step.partition: step.has for step in begun}
    racks = {broker: rack for broker, (_address, rack) in admin.brokers.items()}
    cluster = reassign_plan.Cluster(assignments, racks, sizes=measured.sizes, space=measured.space)
    reassign_plan.require_space({step.partition: step.wanted for step in begun}, cluster)


def cancelled(module, admin, connections):
    """Cancel reassignments and return the module's result."""
    given, asked = module.params, parse_wanted(module.params)
    in_flight = admin.in_flight(ELECTION_S)
    wanted, gone = (None, []) if asked is None else find_existing(module, admin, asked)
    throttles = reassigner.Throttles(admin, given["state_dir"], given["run"])
    ended = {partition: moving for partition, moving in in_flight.items() if wanted is None or partition in wanted}
    results = [
        {
            **{"topic": topic, "partition": number, "state": "in flight", "error": None},
            "before": moving["replicas"],
            "wanted": [replica for replica in moving["replicas"] if replica not in moving["adding"]],
            **{"adding": moving["adding"], "removing": moving["removing"]},
        }
        for (topic, number), moving in sorted(ended.items())
    ]
    idle = sorted(partition for partition in wanted or () if partition not in ended)
    if idle:
        module.warn(
            "these partitions are not in flight, so nothing was cancelled: "
            f"{format_names(list(map(format_partition, idle)))}"
        )
    leads_to = {
        partition: [replica for replica in moving["replicas"] if replica not in moving["removing"]]
        for partition, moving in ended.items()
    }
    answer = {
        "results": results,
        "done": not ended,
        "throttles_left": [],
        "waited_s": 0.0,
        "progress": {},
        "gone": gone,
        "idle": list(map(format_partition, idle)),
        "undo": reassignment.render(leads_to),
    }
    if module._diff:
        answer["diff"] = reassignment.diff_cancelled(ended)
    if module.check_mode:
        leftover = bool(throttles.values) and throttles.left_over(set(in_flight) - set(ended))
        return {**answer, "changed": bool(ended) or leftover}
    failed, since = {}, throttles.owner.get("at")
    try:
        if since is not None:
            with throttles.exclusive():
                throttles.own([])  # a run that sends in parts, or what is left of it, sends no more
                since = throttles.owner.get("at")
        if ended:
            errors = send(admin, dict.fromkeys(ended))
            failed = {partition: error for partition, error in errors.items() if error}
            waiting = reassigner.Sent(dict.fromkeys(partition for partition in ended if partition not in failed))
            waited = reassigner.wait(admin, lambda _flying: waiting, given["wait_s"], given["stall_timeout_s"], {})
            answer.update(waited, gone=gone)
    except (WireError, reassigner.Stalled) as error:
        kept = keep_throttles(connections, throttles, since, error)
        module.fail_json(
            msg=f"{reassigner.explain(error, reassigner.bootstrap(connections))}. {kept}", changed=True, results=results
        )
    changed = bool(ended)
    if answer["done"]:
        changed = finish(module, admin, connections, answer, throttles) or changed
    came = sorted(partition for partition in admin.in_flight(ELECTION_S) if partition not in in_flight)
    answer["came"] = list(map(format_partition, came))
    if came:
        module.warn(
            f"{len(came)} reassignments began during the cancellation and are in flight: "
            f"{format_names(answer['came'])}. Cancel again to end them too"
        )
    if failed:
        listed = format_names(
            [f"{format_partition(partition)}: {error}" for partition, error in sorted(failed.items())]
        )
        module.fail_json(
            msg=f"not every reassignment could be cancelled: {listed} (QS-ADMIN-006)", changed=True, results=results
        )
    return {**answer, "changed": changed}


def finish(module, admin, connections, answer, throttles):
    """Remove throttles that no partition needs any more, warn of those that are left; return whether any was removed.

    Raises WireError where the throttles of this host's record could not be removed.
    """
    in_flight = admin.in_flight(ELECTION_S)
    preserved = set()
    if module.params["preserve_throttles"] and throttles.values and throttles.left_over(in_flight):
        kept, changed = throttles.forget(), False
        preserved = {throttle[:3] for throttle in kept}
        module.warn(
            f"{len(kept)} throttles are preserved. To remove them later: "
            f"{reassignment.removal_commands(kept, reassigner.bootstrap(connections))}"
        )
    else:
        changed = throttles.left_over(in_flight) and remove_throttles(answer, throttles)
    for text in answer["throttles_left"]:
        module.warn(f"a throttle is left: {text}")
    if in_flight:
        return changed
    configs, unread = reassigner.read_throttled_configs(admin)
    every = [throttle for throttle in reassignment.find_throttles(configs) if throttle[:3] not in preserved]
    if unread:
        module.warn(f"whether throttles are left could not be read: {format_names(unread)}")
    if every:
        listed = format_names(list(map(str, every)))
        module.warn(
            f"no partition is in flight, and {len(every)} throttles are set: {listed}. If nothing needs them, remove "
            f"them: {reassignment.removal_commands(every, reassigner.bootstrap(connections))}"
        )
    return changed


def remove_throttles(answer, throttles):
    """Remove the throttles of this host's record; return whether any was removed."""
    throttled, left = bool(throttles.values), throttles.finish()
    answer["throttles_left"] += left or []
    return throttled and left is not None


def keep_throttles(connections, throttles, since, error):
    """Remove the throttles after this failure where nothing moves under them; return what became of them.

    No answer of the cluster keeps them: what moves must not move at full speed."""
    if not throttles.values:
        return "No throttle is set"
    commands = reassignment.removal_commands(throttles.ours(), reassigner.bootstrap(connections))
    later = f"Run again, which removes them at the end. To remove them by hand: {commands}"
    if isinstance(error, MayHaveBegun):
        return f"The throttles are preserved, since partitions may move under them. {later}"
    try:
        left = throttles.give_up(since)
    except (WireError, reassigner.RecordError) as failed:
        return f"The throttles are preserved, since it is not known what is in flight ({failed}). {later}"
    if left is None:
        return f"The throttles are preserved, since partitions move under them. {later}"
    others = f", except: {'; '.join(left)}" if left else ""
    return f"Nothing moves under the throttles, and they were removed{others}"


def result_of(step):
    """Return a step as the module returns it."""
    topic, number = step.partition
    return {
        **{"topic": topic, "partition": number, "state": step.state, "error": None},
        **{"before": list(step.replicas), "wanted": list(step.wanted)},
        **{"adding": list(step.adding), "removing": list(step.removing)},
    }


if __name__ == "__main__":
    main()
