# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask every live broker and controller for its features: supported ranges, finalized levels, their epoch (KIP-584)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, Iterable, List, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.admin import feature_request
from ansible_collections.quorumshift.kafka.plugins.module_utils.admin.cluster_admin import ClusterAdmin
from ansible_collections.quorumshift.kafka.plugins.module_utils.admin.controllers_admin import ControllersAdmin
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration.node_mode import KRAFT, ZK, node_mode
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration.transitions import BROKER, CONTROLLER
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import features as core_features
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases.features import Range
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.kafka_wire import (
    ApiVersions,
    KafkaError,
    Quorum,
    Unreachable,
    WireError,
    api_versions,
)

_ALIVE_MS = 10_000  # a broker fetches the metadata log at least twice a second


def connect(
    bootstrap: Iterable[HostPort],
    client: Security,
    controllers: Sequence[HostPort],
    controller_client: Security,
    timeout: float,
    cluster_id: str | None,
) -> ClusterAdmin | ControllersAdmin:
    """Return the cluster's brokers, or its controllers where no broker answers and `controllers` names them.

    Raises WireError where neither answers; OtherCluster, SecurityError.
    """
    try:
        return ClusterAdmin(tuple(bootstrap), client, timeout, cluster_id)
    except Unreachable as error:  # of another error the brokers live
        if not controllers:
            raise
        brokers = error
    try:
        return ControllersAdmin(controllers, controller_client, timeout, cluster_id)
    except WireError as error:
        why = f"no broker answers: {brokers}; and no controller: {error} (QS-CONNECT-003)"
        if _is_denied(error):
            why += f". {core_features.explain_denied('Alter', _principal(controller_client), '', False)}"
        raise WireError(None, why) from error


def collect(
    admin: ClusterAdmin | ControllersAdmin,
    client: Security,
    controller_client: Security,
    more: Iterable[HostPort],
    timeout: float,
):
    """Return what features the cluster has.

    {mode: zookeeper, migration, kraft or unknown, static_voters: bool or None, quorum_error: why no node described the
    quorum or None, quorum_denied: whether the principal may not ask it, migrating: None or what shows it, finalized:
    {feature: level}, finalized_minimum: {feature: level}, epoch, nodes: {"broker 1 at host:port": {"role", "id" (None
    if no broker names it), "address", "supported": {feature: [lowest, highest]}, "finalized", "finalized_minimum",
    "epoch"} or {"role", "id", "address", "error"}}, voters_unknown: ids of voters that no answer covers, alive: ids of
    brokers that live, though none answered}.
    `more`: addresses of controllers, for brokers that do not name them (before 3.9), and where no broker answers.
    """
    listed = [(BROKER, broker_id, found[0], client) for broker_id, found in sorted(admin.brokers.items())]
    search = admin.search_quorum()
    quorum = search.quorum
    endpoints = {HostPort(*address): voter_id for voter_id, address in quorum.endpoints.items()} if quorum else {}
    for address in dict.fromkeys([*endpoints, *more]):
        listed.append((CONTROLLER, endpoints.get(address), address, controller_client))
    with ThreadPoolExecutor(max_workers=min(32, len(listed))) as pool:
        answers = list(pool.map(lambda listed_node: versions(listed_node[2], listed_node[3], timeout), listed))
    nodes: Dict[str, Dict[str, Any]] = {}
    modes, migrating = set(), None
    for (role, node_id, address, _security), answer in zip(listed, answers):
        name = f"{role} at {address}" if node_id is None else f"{role} {node_id} at {address}"
        nodes[name] = {"role": role, "id": node_id, "address": str(address)}
        if isinstance(answer, WireError):
            nodes[name]["error"] = str(answer)
            continue
        if answer.zk_migration_ready:
            migrating = f"{name} runs with zookeeper.metadata.migration.enable=true"
        if role == BROKER or not admin.brokers:
            modes.add(node_mode(answer.api_keys, answer.zk_migration_ready) if role == BROKER else KRAFT)
        finalized = sorted(answer.finalized_features.items())
        nodes[name].update(
            supported={feature: list(levels) for feature, levels in sorted(answer.supported_features.items())},
            finalized={feature: levels[1] for feature, levels in finalized},
            finalized_minimum={feature: levels[0] for feature, levels in finalized},
            epoch=answer.finalized_features_epoch,
        )
    newest = max((node for node in nodes.values() if "epoch" in node), key=lambda node: node["epoch"], default={})
    return {
        "mode": _mode(modes, migrating),
        "static_voters": all(voter.directory_id is None for voter in quorum.voters) if quorum else None,
        "quorum_error": None if quorum else search.explain(),
        "quorum_denied": quorum is None and any(_is_denied(outcome) for outcome in search.outcomes.values()),
        "migrating": migrating,
        "finalized": newest.get("finalized", {}),
        "finalized_minimum": newest.get("finalized_minimum", {}),
        "epoch": newest.get("epoch", -1),
        "nodes": nodes,
        "voters_unknown": _find_unknown_voters(quorum, len(listed) - len(admin.brokers)),
        "alive": [] if admin.brokers else _find_alive(quorum),
    }


def versions(address: HostPort, security: Security, timeout: float) -> ApiVersions | WireError:
    """Return the ApiVersions of one server, or why it gave none."""
    try:
        return api_versions(address, security, timeout)
    except WireError as error:
        return error


def _is_denied(outcome: Quorum | WireError) -> bool:
    return isinstance(outcome, KafkaError) and outcome.code == feature_request.CLUSTER_AUTHORIZATION_FAILED


def _find_alive(quorum: Quorum | None) -> List[int]:
    """Return the ids of observers that fetched the metadata log a moment ago by the clock of the quorum's leader.

    One whose time is not known counts as well.
    """
    if quorum is None:
        return []
    now = max((replica.last_fetch_timestamp for replica in quorum.voters), default=-1)
    return sorted(
        observer.id
        for observer in quorum.observers
        if observer.last_fetch_timestamp < 0 or now - observer.last_fetch_timestamp < _ALIVE_MS
    )


def _mode(modes, migrating):
    """Return the mode of the cluster by those of its brokers that answered."""
    if migrating or len(modes) > 1:
        return "migration"
    return {(ZK,): "zookeeper", (KRAFT,): "kraft"}.get(tuple(modes), "unknown")


def _find_unknown_voters(quorum, asked):
    """Return the ids of voters of which no address is known; addresses that the task names make up for them."""
    if quorum is None or asked >= len(quorum.voters):
        return []
    return sorted({voter.id for voter in quorum.voters} - set(quorum.endpoints))


def explain_denied(
    operation: str,
    admin: ClusterAdmin | ControllersAdmin,
    client: Security,
    controller_client: Security,
    bootstrap: str,
) -> str:
    """Return which ACL the principal of a refused request needs, as a command. `bootstrap`: addresses of brokers."""
    principal = _principal(client if admin.brokers else controller_client)
    return core_features.explain_denied(operation, principal, bootstrap, bool(admin.brokers))


def _principal(client: Security) -> str:
    """Return the principal as which a client is known, '' where its certificate decides."""
    return f"User:{client.username}" if client.sasl else "" if client.tls else "User:ANONYMOUS"


def supported_ranges(found: Dict[str, Any]) -> Dict[str, Dict[str, Range]]:
    """Return {node: {feature: Range}} of the nodes that answered."""
    return {
        name: {feature: Range(*levels) for feature, levels in node["supported"].items()}
        for name, node in found["nodes"].items()
        if "supported" in node
    }
