# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure the CPU time that the batches of a rolling restart take to plan, and how many there are.

    PYTHONPATH=.build:. .venv/bin/python tests/benchmarks/restart_plan.py [--brokers N] [--partitions N] [--limit S]

Replicas are spread over racks at random with a fixed seed, as a cluster looks after years of reassignments. The time
to read the metadata is not included. Exit code 1 if a plan takes longer than the limit or a batch is not safe.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.restart import restart_plan

PER_TOPIC, REPLICAS, LEAST = 10, 3, 2


def grown(brokers: int, partitions: int, racks: int) -> restart_plan.Cluster:
    """Return a healthy cluster. With racks, each replica of a partition is in another one; with none, anywhere."""
    chosen, ids = random.Random(1), range(1, brokers + 1)
    of_rack = {rack: [node for node in ids if node % racks == rack] for rack in range(racks)}
    topics: dict[str, dict] = {}
    for number in range(partitions // PER_TOPIC):
        numbers = topics[f"orders.of.the.{number}th.kind"] = {}
        for place in range(PER_TOPIC):
            if racks >= REPLICAS:
                replicas = [chosen.choice(of_rack[rack]) for rack in chosen.sample(range(racks), REPLICAS)]
            else:
                replicas = chosen.sample(ids, REPLICAS)
            numbers[str(place)] = {"leader": replicas[0], "replicas": replicas, "isr": list(replicas)}
    named = {node: f"rack-{node % racks}" for node in ids} if racks else {}
    return restart_plan.Cluster(topics, dict.fromkeys(topics, LEAST), frozenset(ids), named, controller=1)


def main() -> int:
    """Plan for the whole cluster and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, default=300)
    parser.add_argument("--partitions", type=int, default=1_000_000)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of CPU that one plan may take")
    given = parser.parse_args()
    failed = False
    for racks in (3, 10, 0):
        cluster = grown(given.brokers, given.partitions, racks)
        started = time.process_time()
        found = restart_plan.plan(cluster, cluster.alive, canary=2, concurrency=given.brokers)
        took = time.process_time() - started
        started = time.process_time()
        bad = restart_plan.find_unsafe(cluster, max(found.batches, key=len))
        evaluated = time.process_time() - started
        failed = failed or bool(bad) or took > given.limit
        print(
            f"{given.brokers} brokers, {given.partitions} partitions, {racks or 'no'} racks: {len(found.batches)} "
            f"batches planned in {took:.1f} s of CPU; one evaluated in {evaluated:.1f} s; unsafe: {len(bad)}"
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
