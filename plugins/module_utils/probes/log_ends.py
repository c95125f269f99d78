# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far the logs of single replicas reach, leaders or followers, as each broker tells of its own."""

from __future__ import annotations

import time
from typing import Iterable, Mapping

from ..addresses import HostPort, parse_host_port
from ..core.stuck_leaders import HeldOut
from ..formats import broker_requests
from ..security import Security, SecurityError
from .cluster import Connections
from .kafka_wire import KafkaConnection
from .socket_wire import ProtocolError, WireError

REACHED_S = 2.0
"""Within which a follower that fetches has what its leader had: it asks again every 0.5 s at the latest
(replica.fetch.wait.max.ms)."""
_POLL_S = 0.2


def read(
    address: HostPort, client: Security, partitions: Iterable[tuple[str, int]], timeout: float
) -> dict[tuple[str, int], int]:
    """Return the end offset of each partition's log on this very broker; of those that it cannot tell of, none.

    Raises socket_wire.WireError, SecurityError.
    """
    request = broker_requests.LIST_OFFSETS
    with KafkaConnection(address, client, timeout) as connection:
        body = broker_requests.ends_of_replicas(partitions)
        answer = connection.request(request.api_key, request.version, body, request.name, timeout)
    try:
        reported = broker_requests.read(request, answer)
    except broker_requests.MalformedAnswer as error:
        raise ProtocolError(address, str(error)) from error
    return {
        (topic["name"], one["partitionIndex"]): one["offset"]
        for topic in reported["topics"]
        for one in topic["partitions"]
        if not one["errorCode"]
    }


def caught_up(
    held: Iterable[HeldOut], nodes: Mapping[str, Mapping], connections: Connections, bound_s: float = REACHED_S
) -> list[HeldOut]:
    """Return the partitions whose replicas that are out of sync reach, within `bound_s`, the end that the log of their
    leader had before. A broker that does not answer proves nothing: then there are none."""
    addresses = {
        node["node_id"]: parse_host_port(node["address"]) for node in nodes.values() if node["role"] == "broker"
    }

    def ends(broker: int, of: Iterable[HeldOut]) -> dict[tuple[str, int], int]:
        asked = [(one.topic, one.number) for one in of]
        return read(addresses[broker], connections.client, asked, connections.timeout)

    held, fences = list(held), {}
    try:
        for leader in {one.leader for one in held}:
            fences.update(ends(leader, [one for one in held if one.leader == leader]))
        messages = [one for one in held if (one.topic, one.number) in fences]
        waiting = {(replica, one) for one in messages for replica in one.out}
        deadline = time.monotonic() + bound_s
        while waiting:
            for broker in {replica for replica, _one in waiting}:
                reached = ends(broker, [one for replica, one in waiting if replica == broker])
                waiting -= {
                    (broker, one)
                    for one in messages
                    if reached.get((one.topic, one.number), -1) >= fences[one.topic, one.number]
                }
            if time.monotonic() >= deadline:
                break
            time.sleep(_POLL_S if waiting else 0)
    except (WireError, SecurityError):
        return []
    late = {one for _replica, one in waiting}
    return [one for one in messages if one not in late]
