# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `topics` reads through librdkafka, read through the collection's own client instead.

For logins that the wheels of confluent-kafka lack: they are built without GSSAPI. Raises WireError, SecurityError.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils import message_ids
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import enums
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import apis, broker_requests
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests.apis import (
    Answer,
    MalformedAnswer,
    Request,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.kafka_wire import KafkaConnection, KafkaError
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import ProtocolError, WireError

_TOPIC, _BROKER = 2, 4  # ConfigResource.Type
_UNKNOWN_TOPIC, _TOPIC_DENIED = 3, 29
DENIED = (_TOPIC_DENIED, 31)
_UNSUPPORTED_VERSION = 35


class Refused(WireError):
    """A broker's answer has an error code for one resource: `code`."""

    def __init__(self, address: HostPort, code: int, what: str) -> None:
        super().__init__(address, message_ids.move_to_end(f"{what}: error {code} (QS-CONNECT-004)"))
        self.code = code


class Source(NamedTuple):
    """Brokers of which any may answer, how to log in, and the seconds of one answer."""

    bootstrap: List[HostPort]
    client: Security
    timeout: float

    def metadata(self, names: Iterable[str] | None = None, rights: bool = False) -> tuple[Dict[str, Any], List[Dict]]:
        """Return Metadata's answer without its topics, and the topics: all, or those of these names."""
        listed = None if names is None else [{"name": name} for name in names]
        wanted = {"topics": listed, "allowAutoTopicCreation": False, "includeTopicAuthorizedOperations": rights}
        address, answer = self._ask(apis.METADATA.request(**wanted))
        try:
            head, topics = broker_requests.read_metadata(answer)
            return head, list(topics)
        except MalformedAnswer as error:
            raise ProtocolError(address, str(error)) from error

    def cluster_rights(self) -> List[str]:
        """Return the operations that this principal may do on the cluster."""
        wanted = {"includeClusterAuthorizedOperations": True}
        try:
            address, answer = self._ask(apis.DESCRIBE_CLUSTER.request(**wanted))
        except KafkaError as error:
            if error.code != _UNSUPPORTED_VERSION:
                raise
            # Before Kafka 2.8, Metadata says it (KIP-430)
            address, answer = self._ask(apis.METADATA.request(topics=[], allowAutoTopicCreation=False, **wanted))
        found = self._read(address, answer)
        if found.get("errorCode"):
            raise Refused(address, found["errorCode"], answer.api.name)
        return operations(found["clusterAuthorizedOperations"])

    def topic_settings(self, names: Iterable[str], key: str) -> Dict[str, str]:
        """Return a setting of each topic; a topic that was deleted meanwhile is left out."""
        request = broker_requests.configs([(_TOPIC, name) for name in names], synonyms=False, keys=[key])
        address, answer = self._ask(request)
        found = {}
        for result in self._read(address, answer)["results"]:
            if result["errorCode"] == _UNKNOWN_TOPIC:
                continue
            if result["errorCode"]:
                raise Refused(
                    address, result["errorCode"], f"settings of topic {result['resourceName']} (QS-CONNECT-004)"
                )
            found[result["resourceName"]] = next(config["value"] for config in result["configs"])
        return found

    def broker_settings(self, broker_id: int) -> Dict[str, Any]:
        """Return the running configuration of a broker, which it alone answers; secrets are None."""
        brokers = {
            broker["nodeId"]: HostPort(broker["host"], broker["port"]) for broker in self.metadata([])[0]["brokers"]
        }
        if broker_id not in brokers:
            raise ProtocolError(
                self.bootstrap[0], f"no broker {broker_id} is in the cluster's metadata (QS-CONNECT-004)"
            )
        own = self._replace(bootstrap=[brokers[broker_id]])
        address, answer = own._ask(broker_requests.configs([(_BROKER, str(broker_id))], synonyms=False))
        (result,) = self._read(address, answer)["results"]
        if result["errorCode"]:
            raise Refused(
                address, result["errorCode"], f"the running configuration of broker {broker_id} (QS-CONNECT-004)"
            )
        return {config["name"]: config["value"] for config in result["configs"]}

    def topic_rights(self, names: List[str]) -> Dict[str, List[str]]:
        """Return the operations that this principal may do on each topic; a topic without Describe has none."""
        found: Dict[str, List[str]] = {}
        for topic in self.metadata(names, rights=True)[1]:
            if topic["errorCode"] == _TOPIC_DENIED:
                found[topic["name"]] = []
            elif topic["errorCode"] != _UNKNOWN_TOPIC:
                found[topic["name"]] = operations(topic["topicAuthorizedOperations"])
        return found

    def _ask(self, request: Request) -> tuple[HostPort, Answer]:
        """Return the first broker that answers, and its answer. Raise the last error if none does."""
        failure: WireError | None = None
        for address in self.bootstrap:
            try:
                with KafkaConnection(address, self.client, self.timeout) as connection:
                    return address, connection.request(request, self.timeout, broker_requests.LARGEST_METADATA)
            except WireError as error:
                failure = error
        raise failure or WireError(None, "no bootstrap server is given (QS-CONNECT-004)")

    @staticmethod
    def _read(address: HostPort, answer: Answer) -> Mapping[str, Any]:
        try:
            return answer.fields()
        except MalformedAnswer as error:
            raise ProtocolError(address, str(error)) from error


def operations(bits: int) -> List[str]:
    """Return the names of AclOperation in the bits of an answer, sorted."""
    allowed = [name for code, name in enumerate(enums.OPERATIONS) if bits > 0 and bits >> code & 1]
    return sorted(name for name in allowed if name not in ("UNKNOWN", "ANY", "ALL"))
