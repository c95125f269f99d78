# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read brokers, partitions, in-sync replicas and configs from the brokers (Metadata, DescribeConfigs).

librdkafka asks them. For some logins `wire_topics` does, and its errors are KafkaExceptions too.
"""

from __future__ import annotations

import contextlib
from typing import Any, Iterable, Iterator, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import Partition, Topics
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import broker_requests
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests.apis import MalformedAnswer
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import wire_topics
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import oauth_token
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.kafka_wire import KafkaConnection
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import ProtocolError, WireError

try:
    from confluent_kafka import KafkaError, KafkaException, TopicCollection
    from confluent_kafka.admin import AdminClient, ConfigResource
except ImportError:  # probe_module reports it
    AdminClient = None  # type: ignore[misc, assignment]

MIN_ISR = "min.insync.replicas"
UNCLEAN = "unclean.leader.election.enable"
_BATCH = 500  # resources in one DescribeConfigs: keeps answers of large clusters small


def read(bootstrap: Iterable[HostPort], client: Security, timeout: float) -> Topics:
    """Return {reached, error, brokers: {id: "host:port"}, partitions: {topic: {partition: {leader, replicas, isr}}}}.

    Ids are ints in values and str as keys, as in JSON. A leader of -1 is an offline partition.
    """
    try:
        if _is_by_wire(client):
            return _read_by_wire(bootstrap, client, timeout)
        metadata = admin(bootstrap, client, timeout).list_topics(timeout=timeout)
    except KafkaException as error:
        return {"reached": False, "error": f"the brokers' metadata could not be read: {error.args[0].str()}"}
    return {
        "reached": True,
        "brokers": {str(broker.id): str(HostPort(broker.host, broker.port)) for broker in metadata.brokers.values()},
        "controller_id": metadata.controller_id,
        "cluster_id": metadata.cluster_id,
        "partitions": {
            name: {
                str(number): {"leader": partition.leader, "replicas": partition.replicas, "isr": partition.isrs}
                for number, partition in topic.partitions.items()
            }
            for name, topic in metadata.topics.items()
        },
    }


def _is_by_wire(client: Security) -> bool:
    """Return whether `wire_topics` asks: the wheels of confluent-kafka lack GSSAPI, and with tokens each of its clients
    waits for a second before it connects, longer than a short quorumshift_stable_s allows between two readings."""
    return bool(client.kerberos or client.oauth)


def _read_by_wire(bootstrap: Iterable[HostPort], client: Security, timeout: float) -> Topics:
    with _as_kafka_exceptions():
        head, served = wire_topics.Source(list(bootstrap), client, timeout).metadata()
    return {
        "reached": True,
        "brokers": {str(broker["nodeId"]): str(HostPort(broker["host"], broker["port"])) for broker in head["brokers"]},
        "controller_id": head["controllerId"],
        "cluster_id": head["clusterId"],
        "partitions": _partitions(served),
    }


def _partitions(served: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Partition]]:
    return {
        topic["name"]: {
            str(partition["partitionIndex"]): {
                "leader": partition["leaderId"],
                "replicas": partition["replicaNodes"],
                "isr": partition["isrNodes"],
            }
            for partition in topic["partitions"]
        }
        for topic in served
        if not topic["errorCode"]
    }


@contextlib.contextmanager
def _as_kafka_exceptions() -> Iterator[None]:
    """Raise the errors of `wire_topics` as librdkafka's, which callers handle."""
    try:
        yield
    except wire_topics.Refused as error:
        raise KafkaException(KafkaError(error.code, str(error))) from error
    except WireError as error:
        raise KafkaException(KafkaError(KafkaError._TRANSPORT, str(error))) from error


def read_cluster_id(bootstrap: Iterable[HostPort], client: Security, timeout: float) -> str | None:
    """Return the cluster id that the bootstrap servers report, None if none of them answers."""
    try:
        if _is_by_wire(client):
            with _as_kafka_exceptions():
                return wire_topics.Source(list(bootstrap), client, timeout).metadata([])[0]["clusterId"]
        admin_client = admin(bootstrap, client, timeout)  # referenced until the answer: else it cancels the request
        return admin_client.describe_cluster(request_timeout=timeout).result().cluster_id
    except KafkaException:
        return None


def read_from_broker(address: HostPort, client: Security, timeout: float) -> dict[str, dict[str, Partition]]:
    """Return the partitions as this broker serves them, in the form of `read` (librdkafka asks any broker).

    Raises socket_wire.WireError, SecurityError.
    """
    with KafkaConnection(address, client, timeout) as connection:
        answer = connection.request(broker_requests.metadata(None), timeout, broker_requests.LARGEST_METADATA)
    try:
        _head, served = broker_requests.read_metadata(answer)
        return _partitions(served)
    except MalformedAnswer as error:
        raise ProtocolError(address, str(error)) from error


def merge(found: Topics, views: Mapping[str, Mapping[str, Mapping[str, Mapping]]]) -> Topics:
    """Return `found` (of `read`) with the worst state of each partition in any of `views` ({host: partitions}), and
    `differ`: {hosts, partitions: those whose in-sync replicas differ between the views}.

    Brokers in migration mode receive changes in another way than those in KRaft mode, and may have missed some.
    """
    partitions, differ = {}, set()
    for topic, numbers in found["partitions"].items():
        if all(view.get(topic) == numbers for view in views.values()):
            partitions[topic] = numbers
            continue
        partitions[topic] = {}
        for number, partition in numbers.items():
            seen = [view[topic][number] for view in views.values() if number in view.get(topic, {})]
            isrs = [set(other["isr"]) for other in seen]
            if any(isr != isrs[0] for isr in isrs):
                differ.add(f"{topic}-{number}")
            everywhere = set(partition["isr"]).intersection(*isrs)
            lowest = min([partition["leader"], *(other["leader"] for other in seen)])
            partitions[topic][number] = {
                **partition,
                "leader": lowest if lowest < 0 else partition["leader"],
                "isr": [broker for broker in partition["isr"] if broker in everywhere],
            }
    return {**found, "partitions": partitions, "differ": {"hosts": sorted(views), "partitions": sorted(differ)}}


def read_min_isr(
    bootstrap: Iterable[HostPort], client: Security, names: Iterable[str], timeout: float
) -> dict[str, int]:
    """Return each topic's effective min.insync.replicas; see `read_settings`."""
    return {name: int(value) for name, value in read_settings(bootstrap, client, names, MIN_ISR, timeout).items()}


def read_settings(
    bootstrap: Iterable[HostPort], client: Security, names: Iterable[str], key: str, timeout: float
) -> dict[str, str]:
    """Return the effective value of a setting of each topic; a topic that was deleted meanwhile is left out.

    Raises KafkaException.
    """
    found: dict[str, str] = {}
    wanted = list(names)
    if _is_by_wire(client):
        source = wire_topics.Source(list(bootstrap), client, timeout)
        with _as_kafka_exceptions():
            for start in range(0, len(wanted), _BATCH):
                found.update(source.topic_settings(wanted[start : start + _BATCH], key))
        return found
    admin_client = admin(bootstrap, client, timeout)
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


def read_broker_configs(
    bootstrap: Iterable[HostPort], client: Security, broker_id: int, timeout: float
) -> dict[str, Any]:
    """Return a broker's running configuration, {key: value}; secrets are None. Raises KafkaException."""
    if _is_by_wire(client):
        with _as_kafka_exceptions():
            return wire_topics.Source(list(bootstrap), client, timeout).broker_settings(broker_id)
    resource = ConfigResource(ConfigResource.Type.BROKER, str(broker_id))
    admin_client = admin(bootstrap, client, timeout)  # referenced until the answer: its deletion cancels the request
    answers = admin_client.describe_configs([resource], request_timeout=timeout)
    return {key: entry.value for key, entry in answers[resource].result().items()}


def is_denied(error: Any) -> bool:
    """Return whether a KafkaException says that the principal lacks a right, not that no answer came in time."""
    return error.args[0].code() in (KafkaError.CLUSTER_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED)


def read_rights(bootstrap: Iterable[HostPort], client: Security, names: Iterable[str], timeout: float) -> dict:
    """Return the authorized operations of the client's principal (KIP-430): {cluster: [operation], topics: {name:
    [operation]}} with AclOperation's names, or {error}. A topic without DESCRIBE has none; a topic that was deleted
    meanwhile is left out."""
    wanted = list(names)
    options = {"include_authorized_operations": True, "request_timeout": timeout}
    try:
        if _is_by_wire(client):
            return _read_rights_by_wire(wire_topics.Source(list(bootstrap), client, timeout), wanted)
        admin_client = admin(bootstrap, client, timeout)
        cluster = _names(admin_client.describe_cluster(**options).result())
        allowed: dict[str, list[str]] = {}
        for start in range(0, len(wanted), _BATCH):
            batch = TopicCollection(wanted[start : start + _BATCH])
            for name, future in admin_client.describe_topics(batch, **options).items():
                try:
                    allowed[name] = _names(future.result())
                except KafkaException as error:
                    if error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                        allowed[name] = []
                    elif error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                        raise
    except KafkaException as error:
        return {"error": error.args[0].str()}
    return {"cluster": cluster, "topics": allowed}


def _read_rights_by_wire(source: wire_topics.Source, names: list[str]) -> dict:
    with _as_kafka_exceptions():
        cluster, allowed = source.cluster_rights(), {}
        for start in range(0, len(names), _BATCH):
            allowed.update(source.topic_rights(names[start : start + _BATCH]))
    return {"cluster": cluster, "topics": allowed}


def _names(described: Any) -> list[str]:
    return sorted(operation.name for operation in described.authorized_operations or ())


def admin(bootstrap: Iterable[HostPort], client: Security, timeout: float) -> Any:
    """Return a confluent-kafka AdminClient that prints none of librdkafka's log lines."""
    return AdminClient(
        {
            **oauth_token.librdkafka(client, timeout),
            "bootstrap.servers": ",".join(str(server) for server in bootstrap),
            "client.id": "quorumshift",
            "socket.timeout.ms": int(timeout * 1000),
            "log_level": 0,
        }
    )
