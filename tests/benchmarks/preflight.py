# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long the preflight judges a large cluster, and how much its hosts tell: recorded facts, grown.

    PYTHONPATH=.build:. .venv/bin/python tests/benchmarks/preflight.py [--brokers N] [--partitions N] [--rounds N]

What it costs to ask hosts, brokers and ZooKeeper is not in it. It ends with 1 where a check finds anything: the grown
cluster is as sound as the recorded one.
"""

from __future__ import annotations

import argparse
import base64
import copy
import json
import statistics
import sys
import time

from ansible_collections.quorumshift.kafka.plugins.module_utils.core import preflight

from tests.unit.core.preflight_facts import collected

PER_TOPIC, REPLICAS = 10, 3
FIRST_ID = 10_000  # of brokers: none of the recorded controllers has it


def grown(brokers: int, partitions: int) -> preflight.Facts:
    """The recorded facts of a cluster in ZooKeeper mode with this many brokers, and partitions of three replicas."""
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
    served, known = {}, {}
    for number in range(partitions // PER_TOPIC):
        name = f"orders.of.the.{number}th.kind"
        replicas = [
            [ids[(number * PER_TOPIC + one + shift) % brokers] for shift in range(REPLICAS)] for one in range(PER_TOPIC)
        ]
        topic_id = base64.urlsafe_b64encode(number.to_bytes(16, "big")).decode().rstrip("=")
        served[name] = {
            str(one): {"leader": reported[0], "replicas": reported, "isr": reported}
            for one, reported in enumerate(replicas)
        }
        known[name] = {
            "topic_id": topic_id,
            "created_ms": 0,
            "partitions": {str(one): state(reported) for one, reported in enumerate(replicas)},
        }
        for one, reported in enumerate(replicas):
            for replica in reported:
                of_broker = nodes[f"kafka-{replica}.example.org"]["paths"]["replicas"]["topics"]
                of_broker.setdefault(name, [topic_id, []])[1].append(one)
    facts.metadata["topics"] = known
    facts.cluster["topics"].update(
        partitions=served, brokers={str(number): f"kafka-{number}.example.org:9094" for number in ids}
    )
    facts.rights["topics"] = dict.fromkeys(served, next(iter(facts.rights["topics"].values())))
    return facts._replace(min_isr=dict.fromkeys(served, 2))


def broker(model: dict, host: str, number: int) -> dict:
    """A node like the recorded one, with an id and addresses of its own."""
    node = json.loads(json.dumps(model).replace("10.78.60.11", host))
    node.update(node_id=number, hostname=host, host_address=host)
    same = {"zookeeper.connect": model["file"]["properties"]["zookeeper.connect"]}  # the model's address stands in it
    node["file"]["properties"].update({"broker.id": str(number), **same})
    for directory in node["log_dirs"]:
        directory["meta"]["broker.id"] = str(number)
    dialled = {"zookeeper": 3, "controller": 3}
    replicas = {"topics": {}, "others": [], "twice": []}
    node["paths"] = {"dialled": dialled, "failed": [], "listen": None, "replicas": replicas}
    return node


def state(replicas: list[int]) -> dict:
    """A partition as ZooKeeper has it, all replicas in sync."""
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
    handed = len(json.dumps(facts.cluster["nodes"]))
    on_disk = sum(len(json.dumps(node["paths"]["replicas"])) for node in facts.brokers.values())
    took = []
    for _round in range(given.rounds):
        began = time.process_time()
        findings = preflight.run(facts)
        took.append(time.process_time() - began)
    print(f"{given.brokers} brokers, {given.partitions} partitions, {given.partitions * REPLICAS} replicas")
    print(f"hosts tell {handed:,} bytes, of which whose replicas they hold {on_disk:,}")
    print(
        f"{len(preflight.CHECKS)} checks in {statistics.median(took):.2f} s of CPU ({min(took):.2f} to {max(took):.2f})"
    )
    for one in findings:
        print(f"{one['severity']}: {one['id']}: {one['seen']}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
