# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure the CPU time that plans of reassignments take, and that a limit in flight sends them in parts.

    PYTHONPATH=.build:. .venv/bin/python tests/benchmarks/reassign_plan.py [--brokers N] [--partitions N]

Replicas and their sizes are random with a fixed seed. The time to read metadata and sizes is not included.
"""

from __future__ import annotations

import argparse
import random
import time

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import reassign_plan, reassignment
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin.reassign_queue import Queue

PER_TOPIC, REPLICAS, LIMIT = 50, 3, 50


def grown(brokers: int, partitions: int, racks: int) -> reassign_plan.Cluster:
    """Return a cluster in which each replica of a partition is in another rack."""
    chosen = random.Random(1)
    named = {broker: f"rack-{broker % racks}" for broker in range(1, brokers + 1)}
    of_rack = {rack: [broker for broker, own in named.items() if own == rack] for rack in sorted(set(named.values()))}
    assignments = {}
    for number in range(partitions):
        listed = [chosen.choice(of_rack[rack]) for rack in chosen.sample(sorted(of_rack), REPLICAS)]
        assignments[f"topic-{number // PER_TOPIC}", number % PER_TOPIC] = listed
    sizes = {partition: chosen.randint(0, 10**9) for partition in assignments}
    space = {broker: reassign_plan.Space(10**16, 2 * 10**16) for broker in named}
    return reassign_plan.Cluster(assignments, named, frozenset([7]), sizes, space, assignments)


def sent_in_parts(moves: reassign_plan.Moves, cluster: reassign_plan.Cluster) -> int:
    """Send a plan as if each part ended at once; return the number of requests."""
    steps = reassignment.steps(moves, {partition: cluster.assignments[partition] for partition in moves}, {})
    queue, requests = Queue(steps, LIMIT, 0, {}), 0
    while queue.take(0.0, 0, cluster.racks):
        requests += 1
    return requests


def main() -> None:
    """Make each kind of plan and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, default=300)
    parser.add_argument("--partitions", type=int, default=100_000)
    given = parser.parse_args()
    for racks in (3, 6):
        cluster = grown(given.brokers, given.partitions, racks)
        every = cluster.assignments
        kinds = {
            "drain of a broker": lambda cluster=cluster, every=every: reassign_plan.drain([3], cluster, every),
            "drain of ten": lambda cluster=cluster, every=every: reassign_plan.drain(range(10, 20), cluster, every),
            "drain of a rack": lambda cluster=cluster, every=every: reassign_plan.drain(
                reassign_plan.find_leaving([], ["rack-1"], cluster), cluster, every
            ),
            "share of a broker": lambda cluster=cluster, every=every: reassign_plan.add(None, cluster, every)[1],
            "two replicas": lambda cluster=cluster, every=every: reassign_plan.change_replicas(2, cluster, every),
            "four replicas": lambda cluster=cluster, every=every: reassign_plan.change_replicas(4, cluster, every),
        }
        for name, plan in kinds.items():
            started = time.process_time()
            moves = plan()
            took = time.process_time() - started
            started = time.process_time()
            requests = sent_in_parts(moves, cluster)
            queued = time.process_time() - started
            print(
                f"{given.brokers} brokers, {given.partitions} partitions, {racks} racks: {name} moves {len(moves)} in "
                f"{took:.2f} s of CPU; {requests} requests of {LIMIT} at most in {queued:.2f} s"
            )


if __name__ == "__main__":
    main()
