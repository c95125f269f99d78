# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A KRaft quorum as it is: how nodes find its controllers, how far each is, who is registered and gone. Pure.

core.admin.quorum_change has when it may be changed.

A quorum is dynamic from kraft.version 1 on (KIP-853): the metadata log has its voters, by id and directory. A file with
controller.quorum.voters is one of a static quorum. Sources: KIP-853, KAFKA-21426.

`quorum` is what admin.quorum.read returns: {leader_id, leader_epoch, high_watermark, voters, observers}, each replica
{id, directory_id (None of a static voter), log_end_offset, fetched_ms, caught_up_ms (by the leader's clock, -1 if
unknown), endpoint (None if the leader names none)}. `nodes` are the facts of the inventory's hosts.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import registrations
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config, phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration.transitions import BROKER, CONTROLLER
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import kafka_releases as table
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases.features import (
    KRAFT_VERSION,
    METADATA_VERSION,
    name_of,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import NodeFacts
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import config_values

VOTERS, BOOTSTRAP = kraft_config.QUORUM_VOTERS, kraft_config.QUORUM_BOOTSTRAP
STATIC, DYNAMIC, UNKNOWN = "static", "dynamic", "unknown"
DESCRIBE, TO_DYNAMIC, ADD, REMOVE, UNREGISTER = "described", "dynamic", "added", "removed", "unregistered"
"""States of the module kafka_quorum."""
LAG_S = 5.0
"""A voter or observer has caught up if it was at the leader's end of log this many seconds ago, or later. Kafka itself
adds an observer that fetched in the last hour (LeaderState.isReplicaCaughtUp)."""
GONE_S = 60.0
"""An observer that has not fetched for so many seconds does not run: one that runs fetches twice a second."""
PLAYBOOK = "ansible-playbook -i INVENTORY quorumshift.kafka.quorum"

Replica = Mapping[str, Any]


class Ghost(NamedTuple):
    """A registered node, voter or observer that no host of the inventory is. `what`: voter, controller or broker; `do`:
    what removes it."""

    what: str
    node_id: int
    why: str
    do: str


# How nodes find the controllers ---------------------------------------------------------------------------------------


def configuration(node: NodeFacts) -> str:
    """Return how a node's file names the controllers: `static` with controller.quorum.voters, which Kafka requires of
    a static quorum, `dynamic` with the bootstrap servers alone, `unknown` where it was not read or names none."""
    values = properties_of(node)
    if config_values.get(values, VOTERS):
        return STATIC
    return DYNAMIC if config_values.get(values, BOOTSTRAP) else UNKNOWN


def properties_of(node: NodeFacts) -> Mapping[str, str]:
    """Return the properties of a node's file, as they stand in it."""
    return (node.get("file") or {}).get("properties") or {}


def hosts_configured(nodes: Mapping[str, NodeFacts], how: str) -> List[str]:
    """Return the hosts whose files name the controllers so (`configuration`)."""
    return [host for host, node in sorted(nodes.items()) if configuration(node) == how]


# What is seen ---------------------------------------------------------------------------------------------------------


def behind_s(replica: Replica, quorum: Mapping[str, Any]) -> float | None:
    """Return how many seconds ago a replica was at the end of the leader's log, by the leader's clock; None if that is
    unknown."""
    now = _now(quorum)
    if replica["id"] == quorum["leader_id"]:
        return 0.0
    return None if replica["caught_up_ms"] < 0 or now < 0 else max(0.0, (now - replica["caught_up_ms"]) / 1000)


def fetched_s(replica: Replica, quorum: Mapping[str, Any]) -> float | None:
    """Return how many seconds ago a replica fetched, as `behind_s`."""
    now = _now(quorum)
    if replica["id"] == quorum["leader_id"]:
        return 0.0
    return None if replica["fetched_ms"] < 0 or now < 0 else max(0.0, (now - replica["fetched_ms"]) / 1000)


def _now(quorum: Mapping[str, Any]) -> int:
    """Return the leader's clock in ms: DescribeQuorum has it as the leader's own caught-up time (KIP-836)."""
    return next((voter["caught_up_ms"] for voter in quorum["voters"] if voter["id"] == quorum["leader_id"]), -1)


def lag(replica: Replica, quorum: Mapping[str, Any]) -> int | None:
    """Return how many records a replica is behind the leader's log, None if its end is unknown."""
    leader = next((voter for voter in quorum["voters"] if voter["id"] == quorum["leader_id"]), None)
    if leader is None or replica["log_end_offset"] < 0:
        return None
    return max(0, leader["log_end_offset"] - replica["log_end_offset"])


def has_caught_up(replica: Replica, quorum: Mapping[str, Any]) -> bool:
    """Return whether a replica was at the end of the leader's log at most LAG_S ago."""
    seen = behind_s(replica, quorum)
    return seen is not None and seen <= LAG_S


def is_dynamic(quorum: Mapping[str, Any]) -> bool:
    """Return whether the log has the voters: the leader knows the directory of each."""
    return bool(quorum["voters"]) and all(voter["directory_id"] for voter in quorum["voters"])


def hosts_by_id(nodes: Mapping[str, NodeFacts], role: str) -> Dict[int, str]:
    """Return {node id: host} of the hosts of a role."""
    return {
        int(node["node_id"]): host
        for host, node in sorted(nodes.items())
        if node["role"] == role and isinstance(node.get("node_id"), int)
    }


def directory_of(node: NodeFacts) -> str:
    """Return the id of the directory with a node's metadata log, '' if it was not read."""
    path = config_values.metadata_log_dir(properties_of(node))
    metas = {str(found["path"]): found.get("meta") or {} for found in node.get("log_dirs") or []}
    return str(metas.get(path, {}).get("directory.id") or "")


def find_ghosts(quorum: Mapping[str, Any], nodes: Mapping[str, NodeFacts], finalized: Mapping[str, int]) -> List[Ghost]:
    """Return the voters and registered nodes that no host of the inventory is, and voters with another directory than
    their host has. Registrations are those of the longest metadata log (`are_registrations_unknown`)."""
    hosts = hosts_by_id(nodes, CONTROLLER)
    found = []
    for voter in quorum["voters"]:
        if voter["id"] not in hosts:
            seen = fetched_s(voter, quorum)
            when = "it never fetched from this leader" if seen is None else f"it fetched {seen:.0f} s ago"
            found.append(
                Ghost(
                    "voter",
                    voter["id"],
                    f"is a voter, and no host of the inventory has this id; {when}",
                    "add its host to the inventory, or remove it: "
                    + (
                        f"{PLAYBOOK} -e quorum_remove={voter['id']}"
                        if voter["directory_id"]
                        else "make the quorum dynamic first"
                    ),
                )
            )
        elif voter["directory_id"] and directory_of(nodes[hosts[voter["id"]]]) not in ("", voter["directory_id"]):
            host = hosts[voter["id"]]
            found.append(
                Ghost(
                    "voter",
                    voter["id"],
                    f"has directory {voter['directory_id']}, and {host} has {directory_of(nodes[host])}",
                    f"replace it: {PLAYBOOK} -e quorum_replace={host}",
                )
            )
    gone = registrations.find_gone(nodes) or ()
    fetching = {replica["id"] for replica in (*quorum["voters"], *quorum["observers"])}
    for node in gone:
        if node.role == CONTROLLER and node.node_id in {voter["id"] for voter in quorum["voters"]}:
            continue
        alive = " It fetches the metadata log all the same." if node.node_id in fetching else ""
        found.append(
            Ghost(
                node.role,
                node.node_id,
                f"is registered (record {node.offset} of the metadata log), and no host of the inventory has this id."
                f"{alive}",
                how_to_unregister(node, finalized),
            )
        )
    return found


def are_registrations_unknown(nodes: Mapping[str, NodeFacts]) -> bool:
    """Return whether no metadata log could be read."""
    return registrations.find_gone(nodes) is None


def how_to_unregister(node: registrations.Gone, finalized: Mapping[str, int]) -> str:
    """Return what removes the registration of a node that is gone: a controller's from metadata.version 4.4-IV2 on."""
    if node.role == BROKER:
        return f"unregister it: bin/kafka-cluster.sh unregister --bootstrap-server HOST:PORT --id {node.node_id}"
    if unregisters_controllers(finalized):
        return f"unregister it: {PLAYBOOK} -e quorum_unregister={node.node_id}"
    now, since = finalized.get(METADATA_VERSION, 0), table.UNREGISTERS_CONTROLLERS
    return (
        f"no release before 4.4 can unregister a controller. It needs metadata.version "
        f"{name_of(METADATA_VERSION, since)}, and it is {name_of(METADATA_VERSION, now)}. If the registration keeps a "
        f"level from rising, start a controller {node.node_id} of the new release until it is registered anew"
    )


def unregisters_controllers(finalized: Mapping[str, int]) -> bool:
    """Return whether the finalized metadata.version has UnregisterControllerRecord (KIP-1312)."""
    return finalized.get(METADATA_VERSION, 0) >= table.UNREGISTERS_CONTROLLERS


def needs_repair(nodes: Mapping[str, NodeFacts], finalized: Mapping[str, int]) -> List[str]:
    """Return the hosts whose file is one of a static quorum, where the quorum is dynamic (KAFKA-21426)."""
    return hosts_configured(nodes, STATIC) if finalized.get(KRAFT_VERSION, 0) else []


def registered_endpoints(nodes: Mapping[str, NodeFacts], node_id: int) -> Tuple[Tuple[str, str, int], ...]:
    """Return the endpoints (listener, host, port) that a controller registered, by the longest metadata log."""
    registered = (phase.longest_log(nodes).get("controllers") or {}).get(str(node_id))
    ends = registered["end_points"] if registered else []
    return tuple((end["name"], end["host"], int(end["port"])) for end in ends)


def describe_lag(replica: Replica, quorum: Mapping[str, Any]) -> str:
    """Return how far a replica is behind, as words."""
    records, seconds = lag(replica, quorum), behind_s(replica, quorum)
    return (
        f"it is {'an unknown number of' if records is None else records} records behind, and was at the end of the "
        f"leader's log {'at an unknown time' if seconds is None else f'{seconds:.0f} s ago'}"
    )
