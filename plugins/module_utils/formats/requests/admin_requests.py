# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the requests that move partitions, update features and change the quorum. No I/O.

KIP-455 for reassignments, KIP-460 for elections, KIP-584 with KIP-778 for features, KIP-339 for configs, KIP-827 for
log directories, KIP-853 for voters, KIP-1312 for registrations of controllers.
"""

from __future__ import annotations

from typing import Iterable, Mapping, Sequence, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import apis
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests.apis import Request
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests.broker_requests import group_by_topic

Partition = Tuple[str, int]
"""A topic and the number of its partition."""

_PREFERRED = 0  # o.a.k.common.ElectionType
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
"""FeatureUpdate.UpgradeType."""
TOPIC, BROKER = 2, 4
"""ConfigResource.Type."""
_SET, _DELETE = 0, 1


def alter_reassignments(targets: Mapping[Partition, Sequence[int] | None], timeout_ms: int) -> Request:
    """Return a request that moves each partition to its replicas, or cancels its reassignment (None)."""
    topics = group_by_topic(
        (topic, {"partitionIndex": number, "replicas": targets[topic, number]}) for topic, number in sorted(targets)
    )
    return apis.ALTER_REASSIGNMENTS.request(timeoutMs=timeout_ms, topics=topics)


def list_reassignments(timeout_ms: int) -> Request:
    """Return a request for all reassignments in flight."""
    return apis.LIST_REASSIGNMENTS.request(timeoutMs=timeout_ms, topics=None)


def elect_preferred(partitions: Iterable[Partition], timeout_ms: int) -> Request:
    """Return a request that elects the preferred leader of each partition."""
    topics = group_by_topic(sorted(partitions), name="topic")
    return apis.ELECT_LEADERS.request(electionType=_PREFERRED, topicPartitions=topics, timeoutMs=timeout_ms)


def update_features(updates: Mapping[str, Tuple[int, int]], validate_only: bool, timeout_ms: int) -> Request:
    """Return a request that sets each feature to its (level, upgrade type); level 0 deletes it."""
    listed = [
        {"feature": name, "maxVersionLevel": level, "upgradeType": kind}
        for name, (level, kind) in sorted(updates.items())
    ]
    return apis.UPDATE_FEATURES.request(timeoutMs=timeout_ms, featureUpdates=listed, validateOnly=validate_only)


def alter_configs(changes: Mapping[Tuple[int, str], Mapping[str, str | None]]) -> Request:
    """Return a request that sets keys of each (resource type, name), or deletes a key (None)."""
    resources = [
        {
            "resourceType": kind,
            "resourceName": name,
            "configs": [
                {"name": key, "configOperation": _DELETE if value is None else _SET, "value": value}
                for key, value in sorted(values.items())
            ],
        }
        for (kind, name), values in sorted(changes.items())
    ]
    return apis.INCREMENTAL_ALTER_CONFIGS.request(resources=resources)


def log_dirs(partitions: Iterable[Partition] | None) -> Request:
    """Return a request for the broker's own replicas of these partitions, None for all that it has."""
    topics = None if partitions is None else group_by_topic(sorted(partitions), name="topic")
    return apis.DESCRIBE_LOG_DIRS.request(topics=topics)


def add_voter(
    cluster_id: str, voter_id: int, directory_id: str, endpoints: Iterable[Tuple[str, str, int]], timeout_ms: int
) -> Request:
    """Return a request that makes an observer a voter. `endpoints`: (listener, host, port) of the controller; the
    leader requires its own controller listener among them (AddVoterHandler)."""
    listed = [{"name": name, "host": host, "port": port} for name, host, port in endpoints]
    return apis.ADD_VOTER.request(
        clusterId=cluster_id,
        timeoutMs=timeout_ms,
        voterId=voter_id,
        voterDirectoryId=directory_id,
        listeners=listed,
    )


def remove_voter(cluster_id: str, voter_id: int, directory_id: str) -> Request:
    """Return a request that removes a voter with this directory."""
    return apis.REMOVE_VOTER.request(clusterId=cluster_id, voterId=voter_id, voterDirectoryId=directory_id)


def unregister_controller(controller_id: int) -> Request:
    """Return a request that removes the registration of a controller."""
    return apis.UNREGISTER_CONTROLLER.request(controllerId=controller_id)
