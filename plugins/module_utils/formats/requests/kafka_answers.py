# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decode the answers to the requests of wire.kafka_wire: ApiVersions, DescribeQuorum, UnregisterBroker, SASL.

Every decoder takes the body after the header and its version. It raises ErrorCode for an error, and ValueError
(messages.MessageError) for bytes that do not match. Requests of a broker's metadata are in broker_requests.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.messages import messages

_API_VERSIONS = 18


class ApiVersions(NamedTuple):
    """A server's ApiVersions, which need no authentication (ApiVersionsResponse, KIP-35, KIP-584, KIP-866).

    `api_keys` maps an api key to its (min, max) version; `supported_features` and `finalized_features` map a name to
    (min, max) level; `finalized_features_epoch` is -1 if unknown. `zk_migration_ready` is tagged field 3, which servers
    omit if it is false. Controllers and ZooKeeper-mode brokers with `zookeeper.metadata.migration.enable=true` set it,
    brokers from their first answer on, before they register.
    """

    api_keys: Dict[int, Tuple[int, int]]
    supported_features: Dict[str, Tuple[int, int]]
    finalized_features: Dict[str, Tuple[int, int]]
    finalized_features_epoch: int
    zk_migration_ready: bool


class Replica(NamedTuple):
    """A voter or observer of the metadata quorum. Timestamps are ms on the leader's clock, -1 if unknown.

    `directory_id` is None in a quorum of static voters (`controller.quorum.voters`).
    """

    id: int
    log_end_offset: int
    last_fetch_timestamp: int = -1
    last_caught_up_timestamp: int = -1
    directory_id: str | None = None


class Quorum(NamedTuple):
    """The metadata quorum as its leader describes it (DescribeQuorumResponse, KIP-595, KIP-836, KIP-853).

    Brokers that follow the metadata log are observers, including brokers in migration mode. `endpoints` maps a voter to
    its (host, port), from version 2 on.
    """

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: Tuple[Replica, ...]
    observers: Tuple[Replica, ...]
    endpoints: Mapping[int, Tuple[str, int]] = {}


class ErrorCode(Exception):
    """An answer has an error: its `code` and the server's message."""

    def __init__(self, code: int, server_message: str | None) -> None:
        super().__init__(code)
        self.code = code
        self.server_message = server_message


def raise_for(code: int, server_message: str | None = None) -> None:
    """Raise ErrorCode for a code other than 0."""
    if code:
        raise ErrorCode(code, server_message)


def decode_api_versions(answer: bytes, version: int) -> ApiVersions:
    """Decode an ApiVersionsResponse body of version 0, 3 or 4.

    Versions 3 and 4 have one layout; 3 leaves out supported features whose lowest level is 0 (KAFKA-17011).
    """
    # an error comes in version 0, whatever the version of the request (KIP-511)
    read = messages.decode("ApiVersionsResponse", version, answer)
    raise_for(read["errorCode"])
    return ApiVersions(
        {key["apiKey"]: (key["minVersion"], key["maxVersion"]) for key in read["apiKeys"]},
        {each["name"]: (each["minVersion"], each["maxVersion"]) for each in read["supportedFeatures"]},
        {each["name"]: (each["minVersionLevel"], each["maxVersionLevel"]) for each in read["finalizedFeatures"]},
        read["finalizedFeaturesEpoch"],
        read["zkMigrationReady"],
    )


def decode_newest_api_versions(answer: bytes, _version: int) -> int:
    """Return the newest version of ApiVersions that a server knows, by its answer to one that it does not: version 0
    with UNSUPPORTED_VERSION (KIP-511), without keys from servers before 2.4."""
    keys = messages.decode("ApiVersionsResponse", 0, answer)["apiKeys"]
    return max((key["maxVersion"] for key in keys if key["apiKey"] == _API_VERSIONS), default=0)


def decode_quorum(answer: bytes, version: int) -> Quorum:
    """Decode a DescribeQuorumResponse body of version 0, 1 or 2."""
    read = messages.decode("DescribeQuorumResponse", version, answer)
    raise_for(read["errorCode"], read["errorMessage"] or None)
    partitions = [partition for topic in read["topics"] for partition in topic["partitions"]]
    if len(partitions) != 1:
        raise ValueError(f"{len(partitions)} partitions instead of one")
    (partition,) = partitions
    raise_for(partition["errorCode"], partition["errorMessage"] or None)
    listeners = {node["nodeId"]: node["listeners"] for node in read["nodes"]}
    return Quorum(
        partition["leaderId"],
        partition["leaderEpoch"],
        partition["highWatermark"],
        tuple(map(_replica, partition["currentVoters"])),
        tuple(map(_replica, partition["observers"])),
        {node: (each[0]["host"], each[0]["port"]) for node, each in listeners.items() if each},
    )


def _replica(read: Mapping[str, Any]) -> Replica:
    directory = read["replicaDirectoryId"]
    return Replica(
        read["replicaId"],
        read["logEndOffset"],
        read["lastFetchTimestamp"],
        read["lastCaughtUpTimestamp"],
        None if directory == messages.ZERO_UUID else directory,
    )


def decode_unregistered(answer: bytes, version: int) -> None:
    """Decode an UnregisterBrokerResponse body of version 0."""
    read = messages.decode("UnregisterBrokerResponse", version, answer)
    raise_for(read["errorCode"], read["errorMessage"])


def decode_cluster(answer: bytes, version: int) -> str | None:
    """Decode the cluster id of a DescribeClusterResponse body of version 1."""
    read = messages.decode("DescribeClusterResponse", version, answer)
    raise_for(read["errorCode"], read["errorMessage"])
    return read["clusterId"]


def decode_handshake(answer: bytes, version: int) -> Tuple[int, List[str]]:
    """Decode a SaslHandshakeResponse body of version 1: the error code and the offered mechanisms."""
    read = messages.decode("SaslHandshakeResponse", version, answer)
    return read["errorCode"], read["mechanisms"]


def decode_authenticate(answer: bytes, version: int) -> Tuple[int, str | None, bytes]:
    """Decode a SaslAuthenticateResponse body of version 1: error code, message, the mechanism's bytes."""
    read = messages.decode("SaslAuthenticateResponse", version, answer)
    return read["errorCode"], read["errorMessage"], read["authBytes"]
