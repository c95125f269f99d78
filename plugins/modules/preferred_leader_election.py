#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: preferred_leader_election
short_description: Give partitions back to their preferred leaders, or a leader to those without one
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Waits until the preferred leader, a partition's first replica, is in sync, elects it (KIP-460), and waits until all
    brokers' metadata name it. Partitions that it leads already are left alone.
  - Kafka does the same every few minutes where C(auto.leader.rebalance.enable) is on.
  - With O(without_leader) it considers only partitions without a leader. KRaft's controllers elect when a broker is
    unfenced (C(ReplicationControlManager)). So a partition whose broker came back just before ZooKeeper's metadata was
    copied may get no leader. A preferred election takes the first replica that is alive and in sync.
  - Its principal needs the operation Alter on the cluster.
options:
  brokers:
    description: Consider only partitions whose preferred leader is one of these brokers. By default all.
    type: list
    elements: int
    default: []
  without_leader:
    description:
      - Consider only partitions without a leader that have an in-sync replica on a living broker. Any leader ends the
        wait.
    type: bool
    default: false
  wait_timeout_s:
    description: How long to wait, in seconds, until each of these partitions has such a leader.
    type: float
    default: 120
extends_documentation_fragment:
  - quorumshift.kafka.connection
  - quorumshift.kafka.connection.cluster
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.zookeeper.connect
  - quorumshift.kafka.host_record
  - quorumshift.kafka.host_record.locked
attributes:
  check_mode: {support: full, description: Lists the partitions and elects no leader.}
  diff_mode: {support: full, description: Shows the leader of each partition before and after.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Give broker 3 its partitions back
  quorumshift.kafka.preferred_leader_election:
    bootstrap_servers: b1:9092,b2:9092
    brokers: [3]

- name: Elect leaders that the initial copy left out
  quorumshift.kafka.preferred_leader_election:
    bootstrap_servers: b1:9092,b2:9092
    without_leader: true
"""

RETURN = r"""
partitions:
  description: The partitions that had another leader or none, each as C(topic-number), at most 100 of them.
  type: list
  elements: str
  returned: success
elected:
  description: How many partitions had another leader or none.
  type: int
  returned: success
cluster_id:
  description: The cluster's id.
  type: str
  returned: success
"""

import time

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin.reassignment import format_partition
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.admin_module import AdminModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import Unreachable

SHOWN = 100
POLL_S = 0.5
NO_LEADER = -1
NOT_NEEDED = 84  # Errors.ELECTION_NOT_NEEDED: someone else elected it


class NotElected(RuntimeError):
    """Partitions still have another leader, or none, after the wait."""


def main():
    """Elect and exit."""
    module = AdminModule(
        {
            "brokers": {"type": "list", "elements": "int", "default": []},
            "without_leader": {"type": "bool", "default": False},
            "wait_timeout_s": {"type": "float", "default": 120},
        },
        changes=True,
        mutually_exclusive=[("brokers", "without_leader")],
    )
    module.run(lambda admin, connections: elect(module, admin), (NotElected,))


def find_others(admin, brokers):
    """Return the partitions that another replica leads than the preferred one, of these brokers if any are given."""
    return {
        partition: found
        for partition, found in admin.partitions.items()
        if found["replicas"] and found["leader"] != found["replicas"][0]
        if not brokers or found["replicas"][0] in brokers
    }


def find_leaderless(admin):
    """Return the partitions without a leader that have an in-sync replica on a living broker."""
    return {
        partition: found
        for partition, found in admin.partitions.items()
        if found["leader"] == NO_LEADER and not admin.brokers.keys().isdisjoint(found["isr"])
    }


def elect(module, admin):
    """Return the module's result. Raises NotElected, WireError."""
    without_leader, end = module.params["without_leader"], time.monotonic() + module.params["wait_timeout_s"]

    def find():
        return find_leaderless(admin) if without_leader else find_others(admin, module.params["brokers"])

    due = find()
    result = {
        "changed": bool(due),
        "elected": len(due),
        "partitions": [format_partition(partition) for partition in sorted(due)[:SHOWN]],
        "cluster_id": admin.cluster_id,
    }
    left, errors = (due if not module.check_mode else {}), {}
    while left:
        electable = [
            partition for partition, found in left.items() if without_leader or found["replicas"][0] in found["isr"]
        ]
        if electable:
            errors = _elect_preferred(admin, electable)
        admin.refresh()
        left = {partition: found for partition, found in find().items() if partition in due}
        if left and time.monotonic() >= end:
            raise NotElected(_explain(left, errors, module.params["wait_timeout_s"]))
        time.sleep(POLL_S if left else 0)
    if module._diff:
        result["diff"] = {
            "before": "".join(f"{format_partition(each)}: {due[each]['leader']}\n" for each in sorted(due)),
            "after": "".join(
                f"{format_partition(each)}: {_leader_after(module, admin, due[each], each)}\n" for each in sorted(due)
            ),
        }
    return result


def _elect_preferred(admin, partitions):
    """Return the error of each partition that has one. In KRaft mode any broker is named as the controller, perhaps one
    that has just stopped: then it is asked again."""
    try:
        answers = admin.elect_preferred(partitions)
    except Unreachable as error:
        return dict.fromkeys(partitions, error)
    return {partition: error for partition, error in answers.items() if error and error.code != NOT_NEEDED}


def _leader_after(module, admin, before, partition):
    """Return who leads the partition now, or in check mode who would: the first in-sync replica that is alive."""
    if not module.check_mode:
        return admin.partitions.get(partition, before)["leader"]
    if not module.params["without_leader"]:
        return before["replicas"][0]
    return next(each for each in before["replicas"] if each in before["isr"] and each in admin.brokers)


def _explain(left, errors, wait_s):
    """Return the message of partitions that still have another leader than the preferred one, or none."""
    first = min(left)
    leader, replicas, isr = (left[first][name] for name in ("leader", "replicas", "isr"))
    why = errors.get(first) or f"replicas {replicas}, in sync {isr}"
    if leader == NO_LEADER:
        return (
            f"{len(left)} partitions have no leader for {wait_s:.0f} s, though in-sync replicas are alive, the first: "
            f"{format_partition(first)} ({why}). Correct the reason, and run again (QS-ADMIN-007)"
        )
    return (
        f"{len(left)} partitions have another leader than the preferred one for {wait_s:.0f} s, the first: "
        f"{format_partition(first)} is led by {leader} ({why}). Wait until its replicas are in sync, and run again "
        "(QS-ADMIN-007)"
    )


if __name__ == "__main__":
    main()
