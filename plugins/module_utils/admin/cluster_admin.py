# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask a cluster's brokers and its controller to read and change assignments, configs and features.

Standard library only. Nothing is changed unless the broker that gets the request reports the wanted cluster id. In
ZooKeeper mode only the controller answers these requests; brokers in KRaft mode forward them (KafkaApis.handle, 3.9).
Metadata names a broker that serves in both modes.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Set, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.admin import feature_request, own_cluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin.reassign_plan import Directory
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import oldest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.messages import messages
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import (
    admin_requests,
    apis,
    broker_requests,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests.admin_requests import Partition
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests.apis import (
    Answer,
    Api,
    MalformedAnswer,
    Request,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.kafka_wire import (
    KafkaConnection,
    KafkaError,
    QuorumSearch,
    describe_quorum_any,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import (
    ProtocolError,
    Unreachable,
    WireError,
)

_NOT_CONTROLLER = feature_request.NOT_CONTROLLER
_RETRIED_S = 30.0  # a controller that is elected anew
_CHANGE_S = 60.0  # a controller's answer to a change
_CHANGES = (apis.ALTER_REASSIGNMENTS, apis.INCREMENTAL_ALTER_CONFIGS, apis.ELECT_LEADERS)
_MOST_RESOURCES = 1000  # of one request: a KRaft controller makes at most 10,000 records for one, here 4 a resource
UNKNOWN_TOPIC, _TOPIC_DENIED = 3, 29  # Errors.UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED
_DYNAMIC_TOPIC, _DYNAMIC_BROKER, _DYNAMIC_DEFAULT_BROKER = 1, 2, 3  # DescribeConfigsResponse.ConfigSource


class OtherCluster(ValueError):
    """The brokers are of another cluster than the one that the task names."""


class LogDirs(NamedTuple):
    """Bytes of a broker's replicas, its directories that are online, none where it does not say their space, and the
    paths of those that are offline."""

    sizes: Dict[Partition, int]
    directories: List[Directory]
    offline: List[str]


class ClusterAdmin:
    """A cluster's brokers, found at its bootstrap servers. Methods raise WireError and SecurityError.

    :ivar cluster_id: as the brokers report it
    :ivar brokers: {id: (address, rack or None)} of the brokers that are alive
    :ivar before_change: called before each change is sent; what it raises keeps the change from being sent
    :ivar partitions: {(topic, number): {"leader", "replicas", "isr"}}, as of the last `refresh`
    """

    def __init__(self, bootstrap: Sequence[HostPort], client: Security, timeout: float, cluster_id: str | None) -> None:
        self._bootstrap = tuple(bootstrap)
        self._client = client
        self._timeout = timeout
        self._wanted = cluster_id
        self.cluster_id = ""
        self.brokers: Dict[int, tuple] = {}
        self.partitions: Dict[Partition, Dict[str, Any]] = {}
        self._controller = -1
        self.before_change: Callable[[], None] = lambda: None
        self.refresh()

    def refresh(self) -> None:
        """Read brokers and partitions anew. Raises OtherCluster, where no change was made yet."""
        known = [address for address, _rack in self.brokers.values()]
        last: WireError | None = None
        for address in dict.fromkeys([*known, *self._bootstrap]):
            try:
                head, partitions = self._metadata(address)
                break
            except WireError as error:
                last = error
        else:
            raise last or ProtocolError(self._bootstrap[0], "no bootstrap server is given")
        self.cluster_id = head["clusterId"]
        self.brokers = {
            broker["nodeId"]: (HostPort(broker["host"], broker["port"]), broker["rack"] or None)
            for broker in head["brokers"]
        }
        self._controller = head["controllerId"]
        self.partitions = partitions

    def _metadata(self, address: HostPort) -> Tuple[Dict[str, Any], Dict[Partition, Dict[str, Any]]]:
        """Return the head of a broker's Metadata, and the partitions. Raises OtherCluster at the first reading; later
        ProtocolError, so that a broker of the cluster is asked next."""
        answer = self._send(address, broker_requests.metadata(None), broker_requests.LARGEST_METADATA)
        try:
            head, topics = broker_requests.read_metadata(answer)
            partitions = {
                (topic["name"], partition["partitionIndex"]): {
                    "leader": partition["leaderId"],
                    "replicas": partition["replicaNodes"],
                    "isr": partition["isrNodes"],
                }
                for topic in topics
                if not topic["errorCode"]
                for partition in topic["partitions"]
            }
        except MalformedAnswer as error:
            raise ProtocolError(address, str(error)) from error
        if self.cluster_id:
            own_cluster.require(address, "broker", head["clusterId"], self.cluster_id)
        elif self._wanted and head["clusterId"] != self._wanted:
            raise OtherCluster(
                f"{address} is of cluster {head['clusterId']}, and this task is for cluster {self._wanted}. Correct "
                "bootstrap_servers or cluster_id. Nothing was changed (QS-ADMIN-001)"
            )
        return head, partitions

    def in_flight(self, again_s: float = 0.0) -> Dict[Partition, Dict[str, list]]:
        """Return {partition: {"replicas", "adding", "removing"}} of the reassignments in flight.

        `again_s`: for how many seconds it is asked again where no server answers, as while a controller is elected.
        """
        end = time.monotonic() + again_s
        while True:
            try:
                answer = self._to_controller(admin_requests.list_reassignments(int(_CHANGE_S * 1000)))
                break
            except Unreachable:
                if time.monotonic() >= end:
                    raise
            time.sleep(0.5)
            with contextlib.suppress(WireError):
                self.refresh()
        return {
            (topic["name"], partition["partitionIndex"]): {
                "replicas": partition["replicas"],
                "adding": partition["addingReplicas"],
                "removing": partition["removingReplicas"],
            }
            for topic in answer["topics"]
            for partition in topic["partitions"]
        }

    def reassign(self, targets: Mapping[Partition, Sequence[int] | None]) -> Dict[Partition, KafkaError | None]:
        """Move each partition to its replicas, or cancel its reassignment (None); return each one's error."""
        answer = self._to_controller(admin_requests.alter_reassignments(targets, int(_CHANGE_S * 1000)))
        return {
            (topic["name"], partition["partitionIndex"]): self._error(apis.ALTER_REASSIGNMENTS, partition)
            for topic in answer["responses"]
            for partition in topic["partitions"]
        }

    def elect_preferred(self, partitions: Iterable[Partition]) -> Dict[Partition, KafkaError | None]:
        """Elect the preferred leader of each partition; return each one's error."""
        answer = self._to_controller(admin_requests.elect_preferred(partitions, int(_CHANGE_S * 1000)))
        return {
            (topic["topic"], partition["partitionId"]): self._error(apis.ELECT_LEADERS, partition)
            for topic in answer["replicaElectionResults"]
            for partition in topic["partitionResult"]
        }

    def search_quorum(self) -> QuorumSearch:
        """Return the quorum as its leader describes it to the brokers."""
        return describe_quorum_any([address for address, _rack in self.brokers.values()], self._client, self._timeout)

    def update_features(self, updates: Mapping[str, tuple], validate_only: bool) -> feature_request.Answer:
        """Set features to their (level, upgrade type); return the error of the request, and that of each feature.

        Raises Unanswered where the change may have been made.
        """
        end = time.monotonic() + _RETRIED_S
        while True:
            error, errors = feature_request.send(
                self._any(), self._client, self._timeout, updates, validate_only, self._require_own
            )
            if error is None or error.code != _NOT_CONTROLLER:
                feature_request.require_decided(error, validate_only)
                return error, errors
            if time.monotonic() >= end:
                feature_request.require_decided(error, validate_only)
                raise error
            time.sleep(0.5)
            self.refresh()

    def configs(self, resources: Iterable[tuple], keys: Iterable[str] | None = None) -> Dict[tuple, Dict[str, str]]:
        """Return the values of all or of these keys that are set at each (resource type, name) itself. Defaults, and
        topics that do not exist, are left out. The name '' is the brokers' default."""
        found: Dict[tuple, Dict[str, str]] = {}
        wanted = None if keys is None else list(keys)
        for address, listed in self._by_broker(resources).items():
            answer = self._read(address, broker_requests.configs(listed, synonyms=False, keys=wanted))
            for result in answer["results"]:
                error = self._error(apis.DESCRIBE_CONFIGS, result, address)
                resource = result["resourceType"], result["resourceName"]
                if error and error.code == UNKNOWN_TOPIC and resource[0] == admin_requests.TOPIC:
                    continue
                if error:
                    raise error
                found[resource] = {
                    config["name"]: config["value"]
                    for config in result["configs"]
                    if config["configSource"] == _own_source(*resource) and config["value"] is not None
                }
        return found

    def alter_configs(self, changes: Mapping[tuple, Mapping[str, str | None]]) -> Dict[tuple, KafkaError | WireError]:
        """Set or delete keys of resources; return the errors by resource."""
        errors: Dict[tuple, KafkaError | WireError] = {}
        parts = [
            (address, listed[first : first + _MOST_RESOURCES])
            for address, listed in self._by_broker(changes).items()
            for first in range(0, len(listed), _MOST_RESOURCES)
        ]
        for address, listed in parts:
            try:
                answer = self._read(
                    address, admin_requests.alter_configs({resource: changes[resource] for resource in listed})
                )
            except messages.MessageError as error:  # such as a value that is too long for Kafka's encoding
                errors.update(dict.fromkeys(listed, ProtocolError(address, f"not sent: {error}")))
                continue
            except WireError as error:
                errors.update(dict.fromkeys(listed, error))
                continue
            for response in answer["responses"]:
                error_of_one = self._error(apis.INCREMENTAL_ALTER_CONFIGS, response, address)
                if error_of_one:
                    errors[response["resourceType"], response["resourceName"]] = error_of_one
        return errors

    def log_dirs(self, broker_id: int, partitions: Iterable[Partition] | None = None) -> LogDirs:
        """Return the bytes of a broker's own replicas of these partitions, as far as it has them, None for all that it
        has; and of its directories."""
        address = self.brokers[broker_id][0]
        answer = self._read(address, admin_requests.log_dirs(partitions), broker_requests.read_log_dirs)
        error = self._error(apis.DESCRIBE_LOG_DIRS, answer, address)
        if error:
            raise error
        sizes = {
            (topic["name"], partition["partitionIndex"]): partition["partitionSize"]
            for directory in answer["results"]
            for topic in directory["topics"]
            for partition in topic["partitions"]
            if not partition["isFutureKey"]
        }
        directories = [
            Directory(
                directory["usableBytes"],
                directory["totalBytes"],
                sum(partition["partitionSize"] for topic in directory["topics"] for partition in topic["partitions"]),
            )
            for directory in answer["results"]
            if not directory["errorCode"]
        ]
        says = all(directory.free >= 0 and directory.total >= 0 for directory in directories)
        offline = [directory["logDir"] for directory in answer["results"] if directory["errorCode"]]
        return LogDirs(sizes, directories if says else [], offline)

    def denied(self, topics: Iterable[str]) -> Set[str]:
        """Return those of these topics that the principal may not describe. Metadata of all topics leaves them out, and
        that of a named one says it (KafkaApis.handleTopicMetadataRequest)."""
        address = self._any()
        answer = self._send(address, broker_requests.metadata(sorted(topics)), broker_requests.LARGEST_METADATA)
        try:
            _head, found = broker_requests.read_metadata(answer)
            return {topic["name"] for topic in found if topic["errorCode"] == _TOPIC_DENIED}
        except MalformedAnswer as error:
            raise ProtocolError(address, str(error)) from error

    def _by_broker(self, resources: Iterable[tuple]) -> Dict[HostPort, list]:
        """A broker answers for its own configs alone; any broker answers for topics."""
        found: Dict[HostPort, list] = {}
        anyone = self._any()
        for kind, name in sorted(resources):
            own = self.brokers.get(int(name)) if kind == admin_requests.BROKER and name else None
            found.setdefault(own[0] if own else anyone, []).append((kind, name))
        return found

    def _any(self) -> HostPort:
        controller = self.brokers.get(self._controller)
        return controller[0] if controller else next(address for address, _rack in self.brokers.values())

    def _to_controller(self, request: Request) -> Dict[str, Any]:
        end = time.monotonic() + _RETRIED_S
        while True:
            address = self._any()
            answer = self._read(address, request)
            error = self._error(request.api, answer, address)
            if error and error.code == _NOT_CONTROLLER and time.monotonic() < end:
                time.sleep(0.5)
                self.refresh()
                continue
            if error:
                raise error
            return answer

    def _error(self, api: Api, answer: Mapping[str, Any], address: HostPort | None = None) -> KafkaError | None:
        code = answer["errorCode"]
        return KafkaError(address or self._any(), code, api.name, answer.get("errorMessage")) if code else None

    def _read(
        self, address: HostPort, request: Request, read: Callable[[Answer], Dict[str, Any]] = Answer.fields
    ) -> Dict[str, Any]:
        try:
            return read(self._send(address, request))
        except MalformedAnswer as error:
            raise ProtocolError(address, str(error)) from error

    def _send(self, address: HostPort, request: Request, largest: int = 16 << 20) -> Answer:
        with KafkaConnection(address, self._client, self._timeout) as connection:
            offered = connection.api_versions().api_keys
            refused = oldest.refusal_of_broker(offered) if request.api.api_key in offered else None
            if refused:
                raise ProtocolError(address, refused)
            if request.api in _CHANGES:
                self._require_own(connection)
            return connection.request(request, max(self._timeout, _CHANGE_S), largest)

    def _require_own(self, connection: KafkaConnection) -> None:
        own_cluster.require_broker(connection, self.cluster_id, max(self._timeout, _CHANGE_S))
        self.before_change()


def _own_source(kind: int, name: str) -> int:
    """Return the ConfigSource of a value that is set at a resource itself."""
    if kind == admin_requests.TOPIC:
        return _DYNAMIC_TOPIC
    return _DYNAMIC_BROKER if name else _DYNAMIC_DEFAULT_BROKER
