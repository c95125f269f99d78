# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brokers, partitions and their in-sync replicas as the brokers serve them (Metadata, DescribeConfigs)."""

from __future__ import annotations

from typing import Any, Iterable, Mapping

from ..addresses import HostPort
from ..formats import broker_requests
from ..security import Security
from .kafka_wire import KafkaConnection
from .socket_wire import ProtocolError

try:
    from confluent_kafka import KafkaError, KafkaException, TopicCollection
    from confluent_kafka.admin import AdminClient, ConfigResource
except ImportError:  # reported by the module that needs it, with the way to install it
    AdminClient = None

MIN_ISR = "min.insync.replicas"
UNCLEAN = "unclean.leader.election.enable"
_BATCH = 500  # resources in one DescribeConfigs: keeps answers of large clusters small


def read(bootstrap: Iterable[HostPort], client: Security, timeout: float) -> dict:
    """Return {reached, error, brokers: {id: "host:port"}, partitions: {topic: {partition: {leader, replicas, isr}}}}.

    Ids are ints in values and str as keys, as in JSON. A leader of -1 is an offline partition.
    """
    try:
        metadata = admin(bootstrap, client, timeout).list_topics(timeout=timeout)
    except KafkaException as error:
        return {"reached": False, "error": f"the brokers' metadata could not be read: {error.args[0].str()}"}
    return {
        "reached": True,
        "brokers": {str(one.id): str(HostPort(one.host, one.port)) for one in metadata.brokers.values()},
        "controller_id": metadata.controller_id,
        "partitions": {
            name: {
                str(number): {"leader": one.leader, "replicas": one.replicas, "isr": one.isrs}
                for number, one in topic.partitions.items()
            }
            for name, topic in metadata.topics.items()
        },
    }


def served_by(address: HostPort, client: Security, timeout: float) -> dict[str, dict[str, dict]]:
    """Return the partitions as `read` has them, as this very broker serves them: librdkafka asks any.

    Raises socket_wire.WireError, SecurityError.
    """
    with KafkaConnection(address, client, timeout) as connection:
        request = broker_requests.METADATA
        body = broker_requests.metadata(None)
        largest = broker_requests.LARGEST_METADATA
        answer = connection.request(request.api_key, request.version, body, request.name, timeout, largest)
    try:
        _head, served = broker_requests.read_metadata(answer)
        return {
            topic["name"]: {
                str(one["partitionIndex"]): {
                    "leader": one["leaderId"],
                    "replicas": one["replicaNodes"],
                    "isr": one["isrNodes"],
                }
                for one in topic["partitions"]
            }
            for topic in served
            if not topic["errorCode"]
        }
    except broker_requests.MalformedAnswer as error:
        raise ProtocolError(address, str(error)) from error


def united(reported: dict, views: Mapping[str, Mapping[str, Mapping[str, Mapping]]]) -> dict:
    """Return what `read` has told with the worst that any of `views` ({host: partitions}) tells of each partition, and
    `differ`: {hosts, partitions: those of which they tell different in-sync replicas}.

    Brokers in migration mode hear of changes by other ways than those in KRaft mode do, and may have missed some.
    """
    partitions, differ = {}, set()
    for topic, numbers in reported["partitions"].items():
        if all(view.get(topic) == numbers for view in views.values()):
            partitions[topic] = numbers
            continue
        partitions[topic] = {}
        for number, one in numbers.items():
            seen = [view[topic][number] for view in views.values() if number in view.get(topic, {})]
            isrs = [set(other["isr"]) for other in seen]
            if any(isr != isrs[0] for isr in isrs):
                differ.add(f"{topic}-{number}")
            everywhere = set(one["isr"]).intersection(*isrs)
            leaders = [one["leader"], *(other["leader"] for other in seen)]
            worst = {"leader": min(leaders) if min(leaders) < 0 else one["leader"]}
            partitions[topic][number] = {
                **one,
                **worst,
                "isr": [broker for broker in one["isr"] if broker in everywhere],
            }
    return {**reported, "partitions": partitions, "differ": {"hosts": sorted(views), "partitions": sorted(differ)}}


def min_isr(bootstrap: Iterable[HostPort], client: Security, names: Iterable[str], timeout: float) -> dict[str, int]:
    """Return each topic's effective min.insync.replicas, as `settings`."""
    return {name: int(value) for name, value in settings(bootstrap, client, names, MIN_ISR, timeout).items()}


def settings(
    bootstrap: Iterable[HostPort], client: Security, names: Iterable[str], key: str, timeout: float
) -> dict[str, str]:
    """Return a setting of each topic as it is in effect; a topic that was deleted meanwhile is left out.

    Raises KafkaException.
    """
    admin_client, found, wanted = admin(bootstrap, client, timeout), {}, list(names)
    for start in range(0, len(wanted), _BATCH):
        resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in wanted[start : start + _BATCH]]
        answers = admin_client.describe_configs(resources, request_timeout=timeout)
        for resource, future in answers.items():
            try:
                found[resource.name] = future.result()[key].value
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise
    return found


def broker_configs(bootstrap: Iterable[HostPort], client: Security, broker_id: int, timeout: float) -> dict[str, Any]:
    """Return a broker's running configuration, {key: value}; secrets come as None. Raises KafkaException."""
    resource = ConfigResource(ConfigResource.Type.BROKER, str(broker_id))
    admin_client = admin(bootstrap, client, timeout)  # kept until the answer is there: its end would cancel the request
    answers = admin_client.describe_configs([resource], request_timeout=timeout)
    return {key: entry.value for key, entry in answers[resource].result().items()}


def rights(bootstrap: Iterable[HostPort], client: Security, names: Iterable[str], timeout: float) -> dict:
    """Return what the tool's own principal may do, as the brokers' authorizer says (KIP-430): {cluster: [operation],
    topics: {name: [operation]}} with operations as AclOperation names them, or {error}. A topic that may not even be
    described has none; one that was deleted meanwhile is left out."""
    admin_client, wanted = admin(bootstrap, client, timeout), list(names)
    options = {"include_authorized_operations": True, "request_timeout": timeout}
    try:
        reported: dict = {"cluster": _names(admin_client.describe_cluster(**options).result()), "topics": {}}
        for start in range(0, len(wanted), _BATCH):
            asked = TopicCollection(wanted[start : start + _BATCH])
            for name, future in admin_client.describe_topics(asked, **options).items():
                try:
                    reported["topics"][name] = _names(future.result())
                except KafkaException as error:
                    if error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                        reported["topics"][name] = []
                    elif error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                        raise
    except KafkaException as error:
        return {"error": error.args[0].str()}
    return reported


def _names(described: Any) -> list[str]:
    return sorted(operation.name for operation in described.authorized_operations or ())


def admin(bootstrap: Iterable[HostPort], client: Security, timeout: float) -> Any:
    """Return a confluent-kafka AdminClient that keeps librdkafka's log lines to itself."""
    return AdminClient(
        {
            **client.librdkafka(),
            "bootstrap.servers": ",".join(str(server) for server in bootstrap),
            "client.id": "quorumshift",
            "socket.timeout.ms": int(timeout * 1000),
            "log_level": 0,
        }
    )
