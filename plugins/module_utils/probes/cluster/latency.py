# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure how long each broker takes to answer a client: Metadata and ListOffsets of partitions that it leads.

Both pass the broker's request queue and its handler threads, as Produce and Fetch do; ListOffsets also takes the locks
of the partitions (KafkaApis, ReplicaManager.fetchOffset). Neither writes.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Dict, Iterable, List, Mapping, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates.client_latency import Latencies
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import NodeFacts, Topics
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import broker_requests
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests.apis import Request
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster.cluster import Connections
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import parse_host_port
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.kafka_wire import KafkaConnection
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import WireError

MOST = 32
"""How many brokers are asked before a stop: in a large cluster, all of them would take longer than a reading of it."""
SAMPLES, APART_S = 5, 0.04
"""Their mean counts. They are apart, because a broker with little time answers some requests at once and then none."""
_PARTITIONS = 20  # of a broker, in one request


def measure(
    nodes: Mapping[str, NodeFacts], found: Topics, connections: Connections, first: Iterable[str] = (), most: int = 0
) -> Latencies:
    """Return the mean seconds in which brokers that run answer both requests, on a connection that is open and
    authenticated. None where it does not answer within the timeout.

    `most`: how many brokers are asked, 0 for all: the hosts `first`, then those that lead most partitions.
    """
    asked_first = set(first)
    led, count = find_led(found)
    running = {host: node for host, node in nodes.items() if node["role"] == "broker" and node.get("running")}
    order = sorted(running, key=lambda host: (host not in asked_first, -count[running[host].get("node_id")], host))
    running = {host: running[host] for host in order[: most or None]}

    def measure_one(node: NodeFacts) -> float | None:
        node_id = node.get("node_id")
        return _measure_broker(node["address"], led.get(node_id, []) if node_id is not None else [], connections)

    with ThreadPoolExecutor(max_workers=min(32, len(running) or 1)) as pool:
        return dict(zip(running, pool.map(measure_one, running.values())))


def requests(partitions: List[Tuple[str, int]]) -> List[Request]:
    """Return the requests that measure a broker which leads these partitions."""
    asked = [broker_requests.metadata({topic for topic, _number in partitions})]
    if partitions:
        asked.append(broker_requests.ends_of_leaders(partitions))
    return asked


def find_led(found: Topics) -> Tuple[Dict[int, List[Tuple[str, int]]], Counter]:
    """Return some partitions that each broker leads, spread over its topics, and how many it leads."""
    led: Dict[int, List[Tuple[str, int]]] = {}
    count: Counter = Counter()
    for topic, partitions in (found.get("partitions") or {}).items():
        count.update(partition["leader"] for partition in partitions.values())
        leaders = {partition["leader"]: int(number) for number, partition in partitions.items()}
        for leader, number in leaders.items():
            chosen = led.setdefault(leader, [])
            if len(chosen) < _PARTITIONS:
                chosen.append((topic, number))
    return led, count


def _measure_broker(address: str, partitions: List[Tuple[str, int]], connections: Connections) -> float | None:
    asked = requests(partitions)
    try:
        with KafkaConnection(parse_host_port(address), connections.client, connections.timeout) as connection:
            connection.api_versions()
            connection.authenticate()
            took = []
            for sample in range(SAMPLES):
                time.sleep(APART_S if sample else 0)
                began = time.monotonic()
                for request in asked:
                    connection.request(request, connections.timeout)
                took.append(time.monotonic() - began)
    except WireError:
        return None
    return round(statistics.mean(took), 4)
