#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: preferred_leader_election
short_description: Give partitions back to their preferred leaders
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Waits until the preferred leader, a partition's first replica, is in sync, elects it (KIP-460), and waits until all
    brokers' metadata name it. Partitions that it leads already are left alone.
  - Kafka does the same every few minutes where C(auto.leader.rebalance.enable) is on.
  - Its principal needs the operation Alter on the cluster.
options:
  brokers:
    description: Consider only partitions whose preferred leader is one of these brokers. By default all.
    type: list
    elements: int
    default: []
  wait_timeout_s:
    description: How long to wait, in seconds, until each of these partitions has its preferred leader.
    type: float
    default: 120
extends_documentation_fragment:
  - quorumshift.kafka.connection
  - quorumshift.kafka.connection.cluster
  - quorumshift.kafka.zookeeper
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
"""

RETURN = r"""
partitions:
  description: The partitions that had another leader, each as C(topic-number), at most 100 of them.
  type: list
  elements: str
  returned: success
elected:
  description: How many partitions had another leader.
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

SHOWN = 100
POLL_S = 0.5
NOT_NEEDED = 84  # Errors.ELECTION_NOT_NEEDED: someone else elected it


class NotElected(RuntimeError):
    """Partitions have no preferred leader after the wait."""


def main():
    """Elect and exit."""
    module = AdminModule(
        {
            "brokers": {"type": "list", "elements": "int", "default": []},
            "wait_timeout_s": {"type": "float", "default": 120},
        },
        changes=True,
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


def elect(module, admin):
    """Return the module's result. Raises NotElected, WireError."""
    brokers, end = module.params["brokers"], time.monotonic() + module.params["wait_timeout_s"]
    due = find_others(admin, brokers)
    result = {
        "changed": bool(due),
        "elected": len(due),
        "partitions": [format_partition(partition) for partition in sorted(due)[:SHOWN]],
        "cluster_id": admin.cluster_id,
    }
    if module._diff:
        result["diff"] = {
            "before": "".join(
                f"{format_partition(partition)}: {due[partition]['leader']}\n" for partition in sorted(due)
            ),
            "after": "".join(
                f"{format_partition(partition)}: {due[partition]['replicas'][0]}\n" for partition in sorted(due)
            ),
        }
    left, errors = (due if not module.check_mode else {}), {}
    while left:
        in_sync = [partition for partition, found in left.items() if found["replicas"][0] in found["isr"]]
        if in_sync:
            answers = admin.elect_preferred(in_sync)
            errors = {partition: error for partition, error in answers.items() if error and error.code != NOT_NEEDED}
        admin.refresh()
        left = {partition: found for partition, found in find_others(admin, brokers).items() if partition in due}
        if left and time.monotonic() >= end:
            first = min(left)
            leader, replicas, isr = (left[first][name] for name in ("leader", "replicas", "isr"))
            why = errors.get(first) or f"replicas {replicas}, in sync {isr}"
            raise NotElected(
                f"{len(left)} partitions have another leader than the preferred one for "
                f"{module.params['wait_timeout_s']:.0f} s, the first: {format_partition(first)} is led by {leader} "
                f"({why}). Wait "
                "until its replicas are in sync, and run again (QS-ADMIN-007)"
            )
        time.sleep(POLL_S if left else 0)
    return result


if __name__ == "__main__":
    main()
