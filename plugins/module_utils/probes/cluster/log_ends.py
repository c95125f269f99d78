# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the end offsets of single replicas, leaders or followers, from the brokers that hold them."""

from __future__ import annotations

import time
from typing import Iterable, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.restart.stuck_leaders import HeldOut
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import broker_requests
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests.apis import MalformedAnswer
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster.cluster import Connections
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security, SecurityError
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort, parse_host_port
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.kafka_wire import KafkaConnection
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import ProtocolError, WireError

REACHED_S = 2.0
"""Time in which a follower that fetches reaches its leader's earlier end: it fetches at least every 0.5 s
(replica.fetch.wait.max.ms)."""
_POLL_S = 0.2


def read(
    address: HostPort, client: Security, partitions: Iterable[tuple[str, int]], timeout: float
) -> dict[tuple[str, int], int]:
    """Return the end offset of each partition's log on this broker; partitions that it does not hold are left out.

    Raises socket_wire.WireError, SecurityError.
    """
    with KafkaConnection(address, client, timeout) as connection:
        answer = connection.request(broker_requests.ends_of_replicas(partitions), timeout)
    try:
        fields = answer.fields()
    except MalformedAnswer as error:
        raise ProtocolError(address, str(error)) from error
    return {
        (topic["name"], partition["partitionIndex"]): partition["offset"]
        for topic in fields["topics"]
        for partition in topic["partitions"]
        if not partition["errorCode"]
    }


def find_caught_up(
    held: Iterable[HeldOut], nodes: Mapping[str, Mapping], connections: Connections, bound_s: float = REACHED_S
) -> list[HeldOut]:
    """Return the partitions whose out-of-sync replicas all reach, within `bound_s`, their leader's earlier log end.

    Return [] if a broker does not answer.
    """
    addresses = {
        node["node_id"]: parse_host_port(node["address"]) for node in nodes.values() if node["role"] == "broker"
    }

    def ends(broker: int, partitions: Iterable[HeldOut]) -> dict[tuple[str, int], int]:
        keys = [(partition.topic, partition.number) for partition in partitions]
        return read(addresses[broker], connections.client, keys, connections.timeout)

    held, fences = list(held), {}
    try:
        for leader in {partition.leader for partition in held}:
            fences.update(ends(leader, [partition for partition in held if partition.leader == leader]))
        known = [partition for partition in held if (partition.topic, partition.number) in fences]
        waiting = {(replica, partition) for partition in known for replica in partition.out}
        deadline = time.monotonic() + bound_s
        while waiting:
            for broker in {replica for replica, _partition in waiting}:
                reached = ends(broker, [partition for replica, partition in waiting if replica == broker])
                waiting -= {
                    (broker, partition)
                    for partition in known
                    if reached.get((partition.topic, partition.number), -1) >= fences[partition.topic, partition.number]
                }
            if time.monotonic() >= deadline:
                break
            time.sleep(_POLL_S if waiting else 0)
    except (WireError, SecurityError):
        return []
    late = {partition for _replica, partition in waiting}
    return [partition for partition in known if partition not in late]
