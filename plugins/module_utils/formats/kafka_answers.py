# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decode the answers to the requests of probes.kafka_wire: ApiVersions, DescribeQuorum, UnregisterBroker, SASL.

Layouts are those of Kafka's message definitions (clients/src/main/resources/common/message/*.json, 3.9). Every decoder
takes the body after the header and its version. It raises ErrorCode for an error, and IndexError, ValueError or
struct.error for bytes that do not match. Requests of a broker's metadata are in broker_requests.
"""

from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.kafka_primitives import Reader

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
    read = Reader(answer)
    raise_for(read.int16())
    if version == 0:
        keys = read.array(lambda: (read.int16(), (read.int16(), read.int16())))
        return ApiVersions(dict(keys), {}, {}, -1, False)

    def range_of_key() -> Tuple[int, Tuple[int, int]]:
        item = read.int16(), (read.int16(), read.int16())
        read.tags()
        return item

    def supported_feature() -> Tuple[str, Tuple[int, int]]:
        item = read.compact_string(), (read.int16(), read.int16())
        read.tags()
        return item

    def finalized_feature() -> Tuple[str, Tuple[int, int]]:
        name, highest, lowest = read.compact_string(), read.int16(), read.int16()
        read.tags()
        return name, (lowest, highest)

    keys = read.compact_array(range_of_key)
    read.int32()  # throttle time
    tagged = read.tags()
    supported: List[Tuple[str, Tuple[int, int]]] = []
    finalized: List[Tuple[str, Tuple[int, int]]] = []
    epoch = -1
    ready = False
    for tag, value in tagged.items():
        read = Reader(value)
        if tag == 0:
            supported = read.compact_array(supported_feature)
        elif tag == 1:
            epoch = read.int64()
        elif tag == 2:
            finalized = read.compact_array(finalized_feature)
        elif tag == 3:
            ready = bool(read.int8())
    return ApiVersions(dict(keys), dict(supported), dict(finalized), epoch, ready)


def decode_newest_api_versions(answer: bytes, _version: int) -> int:
    """Return the newest version of ApiVersions that a server knows, by its answer to one that it does not: version 0
    with UNSUPPORTED_VERSION (KIP-511), without keys from servers before 2.4."""
    read = Reader(answer)
    read.int16()
    keys = read.array(lambda: (read.int16(), read.int16(), read.int16()))
    return max((highest for key, _lowest, highest in keys if key == _API_VERSIONS), default=0)


def decode_quorum(answer: bytes, version: int) -> Quorum:
    """Decode a DescribeQuorumResponse body of version 0, 1 or 2."""
    read = Reader(answer)

    def replica() -> Replica:
        identity = read.int32()
        directory = read.uuid() if version >= 2 else None
        end = read.int64()
        fetched, caught_up = (read.int64(), read.int64()) if version >= 1 else (-1, -1)
        read.tags()
        return Replica(identity, end, fetched, caught_up, directory)

    def partition() -> Quorum:
        read.int32()  # partition index: there is one
        code = read.int16()
        message = read.compact_string() if version >= 2 else None
        leader, epoch, high_watermark = read.int32(), read.int32(), read.int64()
        voters, observers = read.compact_array(replica), read.compact_array(replica)
        read.tags()
        raise_for(code, message)
        return Quorum(leader, epoch, high_watermark, tuple(voters), tuple(observers))

    def topic() -> List[Quorum]:
        read.compact_string()
        partitions = read.compact_array(partition)
        read.tags()
        return partitions

    def listener() -> Tuple[str, int]:
        read.compact_string()  # name
        found = read.compact_string(), read.int16() & 0xFFFF
        read.tags()
        return found

    def node() -> Tuple[int, List[Tuple[str, int]]]:
        found = read.int32(), read.compact_array(listener)
        read.tags()
        return found

    code = read.int16()
    raise_for(code, read.compact_string() if version >= 2 else None)
    partitions = [quorum for quorums in read.compact_array(topic) for quorum in quorums]
    nodes = read.compact_array(node) if version >= 2 else []
    read.tags()
    if len(partitions) != 1:
        raise ValueError(f"{len(partitions)} partitions instead of one")
    return partitions[0]._replace(endpoints={one: listeners[0] for one, listeners in nodes if listeners})


def decode_unregistered(answer: bytes, _version: int) -> None:
    """Decode an UnregisterBrokerResponse body of version 0."""
    read = Reader(answer)
    read.int32()  # throttle time
    raise_for(read.int16(), read.compact_string())


def decode_cluster(answer: bytes, _version: int) -> str | None:
    """Decode the cluster id of a DescribeClusterResponse body of version 1. What follows it is not read."""
    read = Reader(answer)
    read.int32()  # throttle time
    raise_for(read.int16(), read.compact_string())
    read.int8()  # endpoint type
    return read.compact_string()


def decode_handshake(answer: bytes, _version: int) -> Tuple[int, List[str]]:
    """Decode a SaslHandshakeResponse body of version 1: the error code and the offered mechanisms."""
    read = Reader(answer)
    return read.int16(), read.array(read.string)


def decode_authenticate(answer: bytes, _version: int) -> Tuple[int, str | None, bytes]:
    """Decode a SaslAuthenticateResponse body of version 1: error code, message, the mechanism's bytes."""
    read = Reader(answer)
    return read.int16(), read.string(), read.take(max(0, read.int32()))
