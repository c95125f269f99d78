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
  - A throttle is recorded on this host, with who set it, before it is set. It is removed when the partitions are there
    and after a failure. If the run was interrupted, the next run from the same host removes it. Values that someone
    else has set since are left and named.
  - It refuses to start more while partitions are in flight, unless O(additional=true). It refuses to leave a partition
    fewer replicas than it has, unless O(shrink) has the token of this change, and to move under throttles that this
    host has not set, unless O(foreign_throttles) says what becomes of them.
  - While it waits, the action plugin shows the progress.
  - Runs on any host that reaches the brokers. Its principal needs Alter on the cluster, and with O(throttle_bytes_s)
    AlterConfigs on the cluster and topics.
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
        C(kafka-reassign-partitions), V({topic, partition, replicas}). V(cancelled) needs no replicas.
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
    description: How many bytes a second each broker may send, and receive, for moved replicas. By default unlimited.
    type: int
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
  description: The reassignment that leads back to the replicas before this one.
  type: dict
  returned: success, with O(state=present)
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

import contextlib
import json

from ansible_collections.quorumshift.kafka.plugins.module_utils.admin import reassigner
from ansible_collections.quorumshift.kafka.plugins.module_utils.admin.cluster_admin import UNKNOWN_TOPIC
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import reassignment
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin.reassignment import format_partition
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import format_names
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.admin_module import AdminModule, znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import WireError


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
        },
        changes=True,
        mutually_exclusive=[("partitions", "src", "document")],
        required_if=[("state", state, ("partitions", "src", "document"), True) for state in ("present", "awaited")],
    )
    if module.params["throttle_bytes_s"] is not None and module.params["throttle_bytes_s"] <= 0:
        module.fail_json(
            msg=f"throttle_bytes_s is {module.params['throttle_bytes_s']}. Give bytes a second, above 0 (QS-ADMIN-001)"
        )
    work = cancelled if module.params["state"] == "cancelled" else move
    errors = reassignment.ReassignmentError, reassigner.RecordError, reassigner.Stalled
    module.run(lambda admin, connections: work(module, admin, connections), errors)


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
            f"{format_names(unknown)} does not exist (of {len(unknown)} unknown partitions). Correct the reassignment. "
            "Nothing was changed (QS-ADMIN-001)"
        )
    return {partition: replicas for partition, replicas in wanted.items() if partition in admin.partitions}, unknown


def move(module, admin, connections):
    """Move the partitions, or only wait for them, and return the module's result."""
    given, carry = module.params, module.params["carry"]
    wanted, gone = find_existing(module, admin, parse_wanted(given))
    begins, throttles = given["state"] == "present", reassigner.Throttles(admin, given["state_dir"], given["run"])
    rate = given["throttle_bytes_s"] if begins else None
    in_flight = admin.in_flight()
    failed = {name: text for name, text in carry.get("failed", {}).items() if begins is False}
    actual = {partition: admin.partitions[partition]["replicas"] for partition in wanted}
    steps = reassignment.steps(wanted, actual, in_flight)
    moving = [
        step for step in steps if step.state != reassignment.DONE and format_partition(step.partition) not in failed
    ]
    begun = [step for step in moving if begins and step.state != reassignment.UNDER_WAY]
    others, refused = refusal(module, admin, connections, throttles, steps, in_flight) if begins else ([], None)
    results = [result_of(step) for step in steps]
    if refused:
        module.fail_json(msg=f"{refused}. Nothing was changed", results=results)
    left = list(carry.get("throttles_left", ()))
    answer = {"results": results, "done": False, "throttles_left": left, "waited_s": 0.0, "progress": {}, "gone": gone}
    if begins:
        answer["undo"] = reassignment.render({step.partition: step.has for step in steps})
    if module._diff:
        answer["diff"] = reassignment.diff(steps)
    leftover = throttles.left_over(in_flight)
    if module.check_mode:
        return {**answer, "changed": bool(begun) or leftover, "done": not moving}
    changed, since = bool(carry.get("changed")), carry.get("since_owner", throttles.owner.get("at"))
    if leftover:
        changed = remove_throttles(answer, throttles) or changed
    try:
        replaces = bool(others) and given["foreign_throttles"] == reassigner.REMOVED
        throttled = moving if rate is not None else (begun if replaces else [])
        goes_on = begins and moving and throttles.values
        with throttles.exclusive() if throttled or goes_on else contextlib.nullcontext():
            if throttled:
                changed = bool(throttles.throttle(throttled, rate, given["foreign_throttles"])) or changed
            elif goes_on:
                throttles.own(step.partition for step in moving)
            since = throttles.owner.get("at") if throttled or goes_on else since
            if begun:
                changed = True
                errors = admin.reassign({step.partition: step.wanted for step in begun})
                failed = {format_partition(partition): error for partition, error in errors.items() if error}
        for name in [name for name, error in failed.items() if begun and error.code == UNKNOWN_TOPIC]:
            if given["missing"] == "skipped":
                failed.pop(name)
                gone.append(name)
        failed = {name: str(error) for name, error in failed.items()}
        for result in results:
            result["error"] = failed.get(format_partition((result["topic"], result["partition"])))
        names = {*failed, *gone}
        targets = {step.partition: step.wanted for step in moving if format_partition(step.partition) not in names}
        waited = {"done": not targets}
        if targets:
            seconds = given["wait_s"] if given["wait"] else 0
            waited = reassigner.wait(admin, targets, seconds, given["stall_timeout_s"], carry)
            gone += [name for name in waited.pop("gone", ()) if name not in gone]
    except (WireError, reassigner.Stalled) as error:
        module.fail_json(
            msg=f"{error}. {remove_after_failure(throttles, wanted, since)}", changed=changed, results=results
        )
    if not waited["done"] and (given["wait"] or not failed):
        kept = {"failed": failed, "throttles_left": answer["throttles_left"], "since_owner": since}
        waited["carry"].update(changed=changed, **kept)
        return {**answer, "changed": changed, **waited}
    changed = finish(module, admin, connections, answer, throttles) or changed
    if failed:
        listed = format_names([f"{name}: {error}" for name, error in sorted(failed.items())])
        module.fail_json(
            msg=f"not every partition could be moved: {listed} (QS-ADMIN-006)", changed=changed, results=results
        )
    return {**answer, "changed": changed, **waited}


def refusal(module, admin, connections, throttles, steps, in_flight):
    """Return the foreign throttles that slow down what begins, and why it may not begin, None when it may."""
    given = module.params
    legacy = reassigner.describe_legacy(znodes(connections, reassigner.LEGACY)[reassigner.LEGACY])
    refused = reassignment.refusal(steps, in_flight, admin.brokers, given["additional"], legacy, given["shrink"])
    moving = [step for step in steps if step.state != reassignment.DONE]
    begun = [step for step in moving if step.state != reassignment.UNDER_WAY]
    if refused or not (begun or (moving and given["throttle_bytes_s"] is not None)):
        return [], refused
    others = throttles.foreign(moving if given["throttle_bytes_s"] is not None else begun)
    unknown = set(in_flight) - set(throttles.partitions)
    return others, reassigner.foreign_refusal(others, given["foreign_throttles"], unknown, bootstrap(connections))


def cancelled(module, admin, connections):
    """Cancel reassignments and return the module's result."""
    given, asked = module.params, parse_wanted(module.params)
    wanted, gone = (None, []) if asked is None else find_existing(module, admin, asked)
    throttles = reassigner.Throttles(admin, given["state_dir"], given["run"])
    in_flight = admin.in_flight()
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
    answer = {
        "results": results,
        "done": not ended,
        "throttles_left": [],
        "waited_s": 0.0,
        "progress": {},
        "gone": gone,
    }
    if module._diff:
        answer["diff"] = reassignment.diff_cancelled(ended)
    if module.check_mode:
        leftover = throttles.left_over(set(in_flight) - set(ended))
        return {**answer, "changed": bool(ended) or leftover}
    failed = {}
    try:
        if ended:
            errors = reassigner.cancel(admin, ended)
            failed = {partition: error for partition, error in errors.items() if error}
            waiting = dict.fromkeys(partition for partition in ended if partition not in failed)
            answer.update(reassigner.wait(admin, waiting, given["wait_s"], given["stall_timeout_s"], {}), gone=gone)
    except (WireError, reassigner.Stalled) as error:
        module.fail_json(
            msg=f"{error}. {remove_after_failure(throttles, ended, throttles.owner.get('at'))}",
            changed=True,
            results=results,
        )
    changed = bool(ended)
    if answer["done"]:
        changed = finish(module, admin, connections, answer, throttles) or changed
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
    in_flight = admin.in_flight()
    changed = throttles.left_over(in_flight) and remove_throttles(answer, throttles)
    for text in answer["throttles_left"]:
        module.warn(f"a throttle is left: {text}")
    if in_flight:
        return changed
    configs, unread = reassigner.read_throttled_configs(admin)
    every = reassignment.find_throttles(configs)
    if unread:
        module.warn(f"whether throttles are left could not be read: {format_names(unread)}")
    if every:
        listed = format_names(list(map(str, every)))
        module.warn(
            f"no partition is in flight, and {len(every)} throttles are set: {listed}. If nothing needs them, remove "
            f"them: {reassignment.removal_commands(every, bootstrap(connections))}"
        )
    return changed


def remove_throttles(answer, throttles):
    """Remove the throttles of this host's record; return whether they were removed."""
    left = throttles.finish()
    answer["throttles_left"] += left or []
    return left is not None


def bootstrap(connections):
    """Return the bootstrap servers as Kafka's tools take them."""
    return ",".join(map(str, connections.bootstrap))


def remove_after_failure(throttles, partitions, since):
    """Remove the throttles, unless another move needs them; return what became of them."""
    if not throttles.values:
        return "No throttle is set"
    try:
        left = throttles.give_up(partitions, since)
    except (WireError, reassigner.RecordError) as error:
        return f"The throttles could not be removed ({error}): run again, which removes them"
    if left is None:
        return "The throttles stay, since another move needs them: run it to its end"
    others = f", except: {'; '.join(left)}" if left else ""
    return f"The throttles were removed{others}. What is in flight goes on without them"


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
