# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure the preflight's checks and the size of its hosts' facts on a large cluster, from multiplied recorded facts.

    PYTHONPATH=.build:. .venv/bin/python tests/benchmarks/preflight.py [--brokers N] [--partitions N] [--rounds N]

The time to read hosts, brokers and ZooKeeper is not included. Exit code 1 if a check has a finding, since the recorded
cluster has none.
"""

from __future__ import annotations

import argparse
import base64
import copy
import json
import statistics
import sys
import time

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import preflight

from tests.unit.core.preflight_facts import collected

PER_TOPIC, REPLICAS = 10, 3
FIRST_ID = 10_000  # of brokers; differs from the recorded controllers' ids


def grown(brokers: int, partitions: int) -> preflight.Facts:
    """Return facts of a cluster in ZooKeeper mode with this many brokers and partitions of three replicas."""
    facts = collected()
    nodes = facts.cluster["nodes"]
    model, registered = nodes["b1"], facts.zookeeper["broker_ids"]["1"]
    running = facts.running["b1"]
    for host in list(facts.brokers):
        del nodes[host]
    ids = range(FIRST_ID, FIRST_ID + brokers)
    facts.running.clear()
    for number in ids:
        host = f"kafka-{number}.example.org"
        nodes[host] = broker(model, host, number)
        facts.running[host] = dict(running)
    facts.zookeeper["broker_ids"] = {str(number): copy.deepcopy(registered) for number in ids}
    facts.metadata["broker_ids"] = list(ids)
    facts.metadata["configs"]["broker"] = {"": {}}
    served, in_zookeeper = {}, {}
    for number in range(partitions // PER_TOPIC):
        name = f"orders.of.the.{number}th.kind"
        first = number * PER_TOPIC
        assignment = [[ids[(first + p + shift) % brokers] for shift in range(REPLICAS)] for p in range(PER_TOPIC)]
        topic_id = base64.urlsafe_b64encode(number.to_bytes(16, "big")).decode().rstrip("=")
        served[name] = {
            str(partition): {"leader": replicas[0], "replicas": replicas, "isr": replicas}
            for partition, replicas in enumerate(assignment)
        }
        in_zookeeper[name] = {
            "topic_id": topic_id,
            "created_ms": 0,
            "partitions": {str(partition): state(replicas) for partition, replicas in enumerate(assignment)},
        }
        for partition, replicas in enumerate(assignment):
            for broker_id in replicas:
                topics = nodes[f"kafka-{broker_id}.example.org"]["paths"]["replicas"]["topics"]
                topics.setdefault(name, [topic_id, []])[1].append(partition)
    facts.metadata["topics"] = in_zookeeper
    facts.cluster["topics"].update(
        partitions=served, brokers={str(number): f"kafka-{number}.example.org:9094" for number in ids}
    )
    facts.rights["topics"] = dict.fromkeys(served, next(iter(facts.rights["topics"].values())))
    return facts._replace(min_isr=dict.fromkeys(served, 2))


def broker(model: dict, host: str, number: int) -> dict:
    """Return a node like the recorded one, with another id and other addresses."""
    node = json.loads(json.dumps(model).replace("10.78.60.11", host))
    node.update(node_id=number, hostname=host, host_address=host)
    connect = model["file"]["properties"]["zookeeper.connect"]  # the line above replaced an address in it
    generated = "broker.id.generation.enable"
    node["file"]["properties"].update({"broker.id": str(number), generated: "false", "zookeeper.connect": connect})
    for directory in node["log_dirs"]:
        directory["meta"]["broker.id"] = str(number)
    replicas = {"topics": {}, "others": [], "twice": []}
    node["paths"] = {"tried": {"zookeeper": 3, "controller": 3}, "failed": [], "listen": None, "replicas": replicas}
    return node


def state(replicas: list[int]) -> dict:
    """Return a partition's state in ZooKeeper with all replicas in sync."""
    return {
        "replicas": replicas,
        "adding": [],
        "removing": [],
        "leader": replicas[0],
        "leader_epoch": 3,
        "controller_epoch": 1,
        "isr": replicas,
        "leader_recovery_state": 0,
        "version": 4,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--brokers", type=int, default=300)
    parser.add_argument("--partitions", type=int, default=30_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    facts = grown(given.brokers, given.partitions)
    size = len(json.dumps(facts.cluster["nodes"]))
    replicas_size = sum(len(json.dumps(node["paths"]["replicas"])) for node in facts.brokers.values())
    took = []
    for _round in range(given.rounds):
        began = time.process_time()
        findings = preflight.run(facts)
        took.append(time.process_time() - began)
    print(f"{given.brokers} brokers, {given.partitions} partitions, {given.partitions * REPLICAS} replicas")
    print(f"hosts' facts: {size:,} bytes; {replicas_size:,} of them about replicas")
    print(
        f"{len(preflight.CHECKS)} checks in {statistics.median(took):.2f} s of CPU ({min(took):.2f} to {max(took):.2f})"
    )
    for finding in findings:
        print(f"{finding['severity']}: {finding['id']}: {finding['seen']}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
