#!/usr/bin/python
# Copyright: (c) 2026, Quorumshift contributors
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
  - A throttle is recorded on this host before it is set. It is removed when the partitions are there and after a
    failure. If the run was interrupted, the next run from the same host removes it. Values that someone else has set
    before are restored, and values that someone else has set since are left.
  - It refuses to start more while partitions are in flight, unless O(additional=true).
  - Runs on any host that reaches the brokers. Its principal needs Alter on the cluster, and with O(throttle_bytes_s)
    AlterConfigs on the cluster and topics.
options:
  state:
    description:
      - V(present) moves partitions. V(cancelled) cancels the reassignments in flight of the given partitions, or all
        without O(partitions) and O(src).
      - V(awaited) begins nothing and waits for partitions that are in flight. It fails where one ended elsewhere, as
        after a cancellation.
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
  additional:
    description:
      - Start more while partitions are in flight, and change where partitions in flight lead to.
    type: bool
    default: false
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
      - After how many seconds to return with C(done=false) to be called again, so that a loop shows the progress. By
        default it returns when all is done.
    type: float
  stall_timeout_s:
    description: Fail after this many seconds in which no partition ended and no bytes were copied.
    type: float
    default: 900
extends_documentation_fragment:
  - quorumshift.kafka.connection
  - quorumshift.kafka.connection.cluster
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.host_record
attributes:
  check_mode: {support: full, description: Reads only and returns what would be moved or cancelled.}
  diff_mode: {support: full, description: "Shows R, the adding and the removing replicas of each partition."}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Move a partition
  quorumshift.kafka.partition_reassignment:
    bootstrap_servers: b1:9092,b2:9092
    partitions:
      - {topic: orders, partition: 0, replicas: [1, 2, 4]}
    throttle_bytes_s: 50000000

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
  returned: always
done:
  description: Whether no reassignment of these partitions is in flight.
  type: bool
  returned: success
progress:
  description: Partitions and bytes left, bytes a second, and the seconds that this takes.
  type: dict
  returned: success
text:
  description: The progress in words.
  type: str
  returned: when not done
throttles_left:
  description: Throttles that were not removed, because someone else has changed them.
  type: list
  elements: str
  returned: success
waited_s:
  description: How long the module waited, in seconds.
  type: float
  returned: success
"""

import json

from ansible_collections.quorumshift.kafka.plugins.module_utils import host_state, reassigning
from ansible_collections.quorumshift.kafka.plugins.module_utils.admin_module import AdminModule, znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import reassignment
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.socket_wire import WireError


def main():
    """Move or cancel, and exit."""
    module = AdminModule(
        {
            "state": {"type": "str", "choices": ["present", "awaited", "cancelled"], "default": "present"},
            "partitions": {"type": "list", "elements": "dict"},
            "src": {"type": "path"},
            "additional": {"type": "bool", "default": False},
            "throttle_bytes_s": {"type": "int"},
            "wait": {"type": "bool", "default": True},
            "wait_s": {"type": "float"},
            "stall_timeout_s": {"type": "float", "default": 900},
            **host_state.OPTIONS,
        },
        mutually_exclusive=[("partitions", "src")],
        required_if=[("state", one, ("partitions", "src"), True) for one in ("present", "awaited")],
    )
    work = cancelled if module.params["state"] == "cancelled" else moved
    errors = reassignment.ReassignmentError, reassigning.RecordError, reassigning.Stalled
    module.run(lambda admin, connections: work(module, admin, connections), errors)


def wanted_of(given):
    """Return the wanted assignments, None without any."""
    if given["src"]:
        with open(given["src"], encoding="utf-8") as stream:
            try:
                return reassignment.parsed(json.load(stream))
            except ValueError as error:
                raise reassignment.ReassignmentError(f"{given['src']} is no reassignment file: {error}") from error
    return None if given["partitions"] is None else reassignment.parsed({"partitions": given["partitions"]})


def moved(module, admin, connections):
    """Move the partitions, or only wait for them, and return the module's result."""
    given, wanted = module.params, wanted_of(module.params)
    unknown = sorted(one for one in wanted if one not in admin.partitions)
    if unknown:
        raise reassignment.ReassignmentError(
            f"{reassignment.named(unknown[0])} does not exist (of {len(unknown)} unknown partitions). Correct the "
            "reassignment. Nothing was changed"
        )
    begins, throttles = given["state"] == "present", reassigning.Throttles(admin, given["state_dir"])
    in_flight = admin.in_flight()
    actual = {one: admin.partitions[one]["replicas"] for one in wanted}
    steps = reassignment.steps(wanted, actual, in_flight)
    legacy = reassigning.legacy(znodes(connections, reassigning.LEGACY)[reassigning.LEGACY])
    refused = reassignment.refusal(steps, in_flight, admin.brokers, given["additional"], legacy) if begins else None
    results = [shown(one) for one in steps]
    if refused:
        module.fail_json(msg=f"{refused}. Nothing was changed", results=results)
    begun = [one for one in steps if begins and one.state in (reassignment.START, reassignment.OTHER_WAY)]
    answer = {"results": results, "done": False, "throttles_left": [], "waited_s": 0.0, "progress": {}}
    if module._diff:
        answer["diff"] = reassignment.shown(steps)
    leftover = throttles.left_over(in_flight)
    if module.check_mode:
        return {
            **answer,
            "changed": bool(begun) or leftover,
            "done": all(one.state == reassignment.DONE for one in steps),
        }
    if leftover:
        answer["throttles_left"] = throttles.remove()
    changed, failed = bool(begun) or leftover, {}
    moving = [one for one in steps if one.state != reassignment.DONE]
    try:
        if begins and given["throttle_bytes_s"] is not None and moving:
            changed = bool(throttles.set(steps, given["throttle_bytes_s"])) or changed
        if begun:
            errors = admin.reassign({one.partition: one.wanted for one in begun})
            failed = {one: str(error) for one, error in errors.items() if error}
            for one in results:
                one["error"] = failed.get((one["topic"], one["partition"]))
        left = {one.partition: one.wanted for one in moving if one.partition not in failed}
        waited = {"done": not left}
        if left:
            seconds = given["wait_s"] if given["wait"] else 0
            waited = reassigning.wait(admin, left, seconds, given["stall_timeout_s"])
    except (WireError, reassigning.Stalled) as error:
        module.fail_json(msg=f"{error}. {after_failure(throttles)}", changed=changed, results=results)
    if waited["done"] and throttles.left_over(admin.in_flight()):
        changed = True
        answer["throttles_left"] += throttles.remove()
    if failed:
        listed = "; ".join(f"{reassignment.named(one)}: {error}" for one, error in sorted(failed.items()))
        module.fail_json(msg=f"not every partition could be moved: {listed}", changed=changed, results=results)
    return {**answer, "changed": changed, **waited}


def cancelled(module, admin, connections):
    """Cancel reassignments and return the module's result."""
    given, wanted = module.params, wanted_of(module.params)
    throttles = reassigning.Throttles(admin, given["state_dir"])
    in_flight = admin.in_flight()
    ended = {one: moving for one, moving in in_flight.items() if wanted is None or one in wanted}
    results = [
        {
            **{"topic": topic, "partition": number, "state": "in flight", "error": None},
            "before": moving["replicas"],
            "wanted": [one for one in moving["replicas"] if one not in moving["adding"]],
            **{"adding": moving["adding"], "removing": moving["removing"]},
        }
        for (topic, number), moving in sorted(ended.items())
    ]
    answer = {"results": results, "done": not ended, "throttles_left": [], "waited_s": 0.0, "progress": {}}
    if module._diff:
        answer["diff"] = reassignment.shown_cancelled(ended)
    leftover = throttles.left_over(set(in_flight) - set(ended))
    if module.check_mode:
        return {**answer, "changed": bool(ended) or leftover}
    failed = {}
    try:
        if ended:
            errors = reassigning.cancel(admin, ended)
            failed = {one: error for one, error in errors.items() if error}
            waiting = dict.fromkeys(one for one in ended if one not in failed)
            answer.update(reassigning.wait(admin, waiting, given["wait_s"], given["stall_timeout_s"]))
    except (WireError, reassigning.Stalled) as error:
        module.fail_json(msg=f"{error}. {after_failure(throttles)}", changed=True, results=results)
    if leftover and answer["done"] and not failed:
        answer["throttles_left"] = throttles.remove()
    if failed:
        listed = "; ".join(f"{reassignment.named(one)}: {error}" for one, error in sorted(failed.items()))
        module.fail_json(msg=f"not every reassignment could be cancelled: {listed}", changed=True, results=results)
    return {**answer, "changed": bool(ended) or leftover}


def after_failure(throttles):
    """Remove the throttles; return what became of them."""
    if not throttles.values:
        return "No throttle is set"
    try:
        left = throttles.remove()
    except WireError as error:
        return f"The throttles could not be removed ({error}): run again, which removes them"
    others = f", except those that someone else set: {'; '.join(left)}" if left else ""
    return f"The throttles were removed{others}. What is in flight goes on without them"


def shown(step):
    """Return a step as the module returns it."""
    topic, number = step.partition
    return {
        **{"topic": topic, "partition": number, "state": step.state, "error": None},
        **{"before": list(step.replicas), "wanted": list(step.wanted)},
        **{"adding": list(step.adding), "removing": list(step.removing)},
    }


if __name__ == "__main__":
    main()
