# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one broker serves, asked over a connection to that broker alone.

A client library finds its way to another broker or to the controller; here it must be this one that answers, so that a
broker with stale metadata is seen (one that a finalization left in migration mode answers every health check and does
not know the topics made since). Which request is a witness of what: see broker_requests. That it is this broker is
proven by its own configs, which no other broker gives.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import time
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Set, Tuple, Union

from ansible_collections.quorumshift.kafka.plugins.module_utils.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import node_mode
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import broker_requests as requests
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import enums
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.kafka_wire import (
    ERROR_NAMES,
    ApiVersions,
    KafkaConnection,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.socket_wire import WireError
from ansible_collections.quorumshift.kafka.plugins.module_utils.security import Security

from quorumshift_spark import normal_form as form
from quorumshift_spark.normal_form import Entity
from quorumshift_spark.views import Absent, Key, Problem, Statement, View, ViewError

_KINDS = ("topic", "partition", "config", "quota", "scram", "acl", "delegation_token", "feature", "broker")
_LARGEST_ANSWER = 1 << 28
_NAMES_A_REQUEST = 500

# o.a.k.common.config.ConfigResource.Type, and DescribeConfigsResponse.ConfigSource
_TOPIC_RESOURCE, _BROKER_RESOURCE = 2, 4
_TOPIC_CONFIG, _DYNAMIC_BROKER_CONFIG, _DYNAMIC_DEFAULT_BROKER_CONFIG = 1, 2, 3

_UNKNOWN_TOPIC, _INVALID_REQUEST, _LISTENER_NOT_FOUND = 3, 42, 72
_NO_AUTHORIZER, _NO_TOKENS = (54,), (61, 64)

_KRAFT_VERSION = "kraft.version"  # the quorum's own, kept in control records and not in metadata (KRaftVersion)


class Served(NamedTuple):
    """What a broker is and can tell. `mode` of judgements.node_mode; `not_served`: {kind: why} of what it cannot tell.

    `offset`: the first one of the metadata log that its image did not hold yet; None in ZooKeeper mode.
    """

    mode: str
    offset: int | None
    not_served: Dict[str, str]


class BrokerView(View):
    """The metadata of one broker.

    :arg broker_id: the id that must answer at `address`.
    :arg address: one listener of that broker. Leaders are told of brokers that have a listener of its name: use the
        one that clients or brokers use.
    :arg cluster_id: the cluster that must answer; None takes any.
    :arg timeout: seconds for each single answer.
    :arg topics_a_request: how many topics are asked for their configs at once (about 2 kB each in the answer; a broker
        in ZooKeeper mode reads a znode for each).
    """

    def __init__(
        self,
        broker_id: int,
        address: HostPort,
        digests: form.Digests,
        security: Security | None = None,
        cluster_id: str | None = None,
        timeout: float = 30.0,
        topics_a_request: int = 100,
    ) -> None:
        self.name = f"broker:{broker_id}"
        self.kinds = _KINDS
        self._id = broker_id
        self._address = HostPort(*address)
        self._digests = digests
        self._security = security
        self._cluster_id = cluster_id
        self._timeout = timeout
        self._page = topics_a_request

    def look(self) -> Served:
        """What the broker is and can tell; sets `kinds` to that. For the driver, before views are compared.

        A broker without an authorizer has no ACLs to tell, one without delegation tokens, or asked on a listener
        where they may not be asked for, no tokens. Raises ViewError.
        """
        with self._talk() as talk:
            served = talk.served()
            for dummy in itertools.chain(talk.acls(), talk.delegation_tokens()):
                pass
        served.not_served.update(talk.not_served)
        self.kinds = tuple(kind for kind in _KINDS if kind not in talk.not_served)
        return served

    def read(self, part: Any) -> Iterator[Union[Entity, Statement]]:
        """See View.read. `state`: {time_ms, mode, offset (see Served; not in ZooKeeper mode), offline_replicas: how
        many it takes for offline, not_served: {kind: why}}. Raises ViewError."""
        yield from self._read(None)

    def reread(self, keys: Iterable[Key]) -> Tuple[Dict[Key, Union[Entity, Absent]], Statement]:
        """See View.reread; of topics, only those that the keys name are asked for."""
        wanted = set(keys)
        found: Dict[Key, Union[Entity, Absent]] = {key: Absent({}) for key in wanted}
        statement = Statement({}, [])
        for item in self._read(wanted):
            if isinstance(item, Statement):
                statement = item
            elif (item.kind, item.key) in wanted:
                found[(item.kind, item.key)] = item
        return found, statement

    def _read(self, wanted: Set[Key] | None) -> Iterator[Union[Entity, Statement]]:
        started = time.time()
        kinds = {kind for kind, _key in wanted} if wanted is not None else set(_KINDS)
        names = None if wanted is None else sorted(_topics_of(wanted))
        with self._talk() as talk:
            served = talk.served()
            yield from talk.broker_configs()  # always, for it proves that the broker is the one that is meant
            if names is None or names or "broker" in kinds:
                yield from talk.topics(names)
            if "config" in kinds:
                yield from talk.topic_configs(self._page)
            if "quota" in kinds:
                yield from talk.quotas()
            if "scram" in kinds:
                yield from talk.scram()
            if "acl" in kinds:
                yield from talk.acls()
            if "delegation_token" in kinds:
                yield from talk.delegation_tokens()
            if "feature" in kinds:
                yield from talk.features()
        state = {
            "time_ms": int(started * 1000),
            "mode": served.mode,
            "offline_replicas": talk.offline_replicas,
            "not_served": talk.not_served,
        }
        if served.offset is not None:
            state["offset"] = served.offset
        yield Statement(state, talk.problems())

    @contextlib.contextmanager
    def _talk(self) -> Iterator[_Talk]:
        try:
            with KafkaConnection(self._address, self._security, self._timeout) as connection:
                yield _Talk(self._id, connection, self._digests, self._cluster_id, self._timeout)
        except WireError as error:
            raise ViewError(f"broker {self._id}: {error}") from error
        except requests.MalformedAnswer as error:
            raise ViewError(f"broker {self._id} at {self._address}: {error}") from error


def _topics_of(keys: Iterable[Key]) -> Set[str]:
    names = set()
    for kind, key in keys:
        parts = form.key_of(key)
        if kind in ("topic", "partition"):
            names.add(parts[0])
        elif kind == "config" and parts[0] == "topic":
            names.add(parts[1])
    return names


class _Talk:
    """One connection to one broker, and what was found out over it."""

    def __init__(
        self,
        broker_id: int,
        connection: KafkaConnection,
        digests: form.Digests,
        cluster_id: str | None,
        timeout: float,
    ) -> None:
        self._id = broker_id
        self._connection = connection
        self._digests = digests
        self._cluster_id = cluster_id
        self._timeout = timeout
        self._topics: List[str] = []
        self._hidden_leaders: List[str] = []
        self.offline_replicas = 0
        self.not_served: Dict[str, str] = {}

    def served(self) -> Served:
        reported = self._versions()
        mode = node_mode.node_mode(reported.api_keys, reported.zk_migration_ready)
        if mode not in (node_mode.ZK, node_mode.ZK_MIGRATION, node_mode.KRAFT):
            raise self._error(f"is no broker: its listener shows {mode}")
        # In KRaft mode the epoch of the features is the offset of the image (KRaftMetadataCache.features)
        offset = reported.finalized_features_epoch + 1 if mode == node_mode.KRAFT else None
        return Served(mode, offset, {})

    def features(self) -> Iterator[Entity]:
        for name, (_lowest, level) in sorted(self._versions().finalized_features.items()):
            if level and name != _KRAFT_VERSION:
                yield form.feature(name, level)

    def topics(self, names: List[str] | None) -> Iterator[Entity]:
        """Topics, partitions and the brokers that are up; all of them, or topics of these names."""
        pages = [None] if names is None else _pages(names, _NAMES_A_REQUEST) or [[]]
        for number, page in enumerate(pages):
            answer = self._ask_raw(requests.METADATA, requests.metadata(page), requests.LARGEST_METADATA)
            head, topics = requests.read_metadata(answer)
            if self._cluster_id and head["clusterId"] != self._cluster_id:
                raise self._error(f"is of cluster {head['clusterId']}, not of {self._cluster_id}")
            if not number:
                for broker in head["brokers"]:
                    yield form.broker(broker["nodeId"], {"fenced": False})
            for topic in topics:
                yield from self._topic(topic)

    def _topic(self, topic: Dict[str, Any]) -> Iterator[Entity]:
        name = topic["name"]
        if topic["errorCode"] == _UNKNOWN_TOPIC:
            return
        self._check(requests.METADATA, topic, f"topic {name}")
        self._topics.append(name)
        yield form.topic(name, topic["topicId"])
        for partition in topic["partitions"]:
            self.offline_replicas += len(partition["offlineReplicas"])
            fields = {
                "replicas": partition["replicaNodes"],
                "isr": partition["isrNodes"],
                "leader_epoch": partition["leaderEpoch"],
            }
            if partition["errorCode"] == _LISTENER_NOT_FOUND:
                self._hidden_leaders.append(f"{name}-{partition['partitionIndex']}")
            else:  # no leader, or one that is not up, is -1 to clients as well
                fields["leader"] = partition["leaderId"]
            yield form.partition(name, partition["partitionIndex"], fields)

    def topic_configs(self, page: int) -> Iterator[Entity]:
        """Configs that somebody set on the topics that `topics` gave; of one that is gone since, none."""
        for names in _pages(self._topics, page):
            resources = [(_TOPIC_RESOURCE, name) for name in names]
            for result in self._configs(resources, synonyms=False):
                if result["errorCode"] == _UNKNOWN_TOPIC:
                    continue
                self._check(requests.DESCRIBE_CONFIGS, result, f"topic {result['resourceName']}")
                for config in result["configs"]:
                    if config["configSource"] == _TOPIC_CONFIG:
                        yield self._config("topic", result["resourceName"], config, config["value"])

    def broker_configs(self) -> Iterator[Entity]:
        """Dynamic configs of this broker and of the default of all brokers.

        A value is the one that was set, from the synonyms: the config's own may come from elsewhere.
        """
        resources = [(_BROKER_RESOURCE, str(self._id)), (_BROKER_RESOURCE, "")]
        sources = {str(self._id): _DYNAMIC_BROKER_CONFIG, "": _DYNAMIC_DEFAULT_BROKER_CONFIG}
        for result in self._configs(resources, synonyms=True):
            entity = result["resourceName"]
            if result["errorCode"] == _INVALID_REQUEST:
                raise self._error(f"another broker answers at this address: {result['errorMessage']}")
            self._check(requests.DESCRIBE_CONFIGS, result, f"broker {entity or 'default'}")
            for config in result["configs"]:
                for synonym in config["synonyms"]:
                    if synonym["name"] == config["name"] and synonym["source"] == sources[entity]:
                        yield self._config("broker", entity or None, config, synonym["value"])

    def _config(self, resource: str, entity: str | None, config: Dict[str, Any], value: str | None) -> Entity:
        return form.config(resource, entity, config["name"], value, self._digests, withheld=config["isSensitive"])

    def _configs(self, resources: List[Tuple[int, str]], synonyms: bool) -> List[Dict[str, Any]]:
        results = self._ask(requests.DESCRIBE_CONFIGS, requests.configs(resources, synonyms))["results"]
        answered = {(result["resourceType"], result["resourceName"]) for result in results}
        missing = [name for kind, name in resources if (kind, name) not in answered]
        if missing:
            raise self._error(f"DescribeConfigs left out {len(missing)} of {len(resources)}, {missing[0]!r} among them")
        return results

    def quotas(self) -> Iterator[Entity]:
        answer = self._ask(requests.DESCRIBE_CLIENT_QUOTAS, requests.client_quotas())
        self._check(requests.DESCRIBE_CLIENT_QUOTAS, answer)
        for entry in answer["entries"] or ():
            entity = {part["entityType"]: part["entityName"] for part in entry["entity"]}
            for value in entry["values"]:
                yield form.quota(entity, value["key"], value["value"])

    def scram(self) -> Iterator[Entity]:
        answer = self._ask(requests.DESCRIBE_SCRAM, requests.scram())
        self._check(requests.DESCRIBE_SCRAM, answer)
        for result in answer["results"]:
            self._check(requests.DESCRIBE_SCRAM, result, f"user {result['user']}")
            for credential in result["credentialInfos"]:
                mechanism = enums.of_code(enums.SCRAM_MECHANISMS, credential["mechanism"])
                yield form.scram(result["user"], mechanism, credential["iterations"], None, withheld=True)

    def acls(self) -> Iterator[Entity]:
        answer = self._ask(requests.DESCRIBE_ACLS, requests.acls())
        if self._is_off("acl", requests.DESCRIBE_ACLS, answer, _NO_AUTHORIZER):
            return
        for resource in answer["resources"]:
            for acl in resource["acls"]:
                yield form.acl_of_codes({**resource, **acl})

    def delegation_tokens(self) -> Iterator[Entity]:
        answer = self._ask(requests.DESCRIBE_TOKENS, requests.delegation_tokens())
        if self._is_off("delegation_token", requests.DESCRIBE_TOKENS, answer, _NO_TOKENS):
            return
        for token in answer["tokens"]:
            yield form.delegation_token(
                token["tokenId"],
                _principal(token),
                f"{token['tokenRequesterPrincipalType']}:{token['tokenRequesterPrincipalName']}",
                map(_principal, token["renewers"]),
                token["issueTimestamp"],
                token["expiryTimestamp"],
                token["maxTimestamp"],
            )

    def problems(self) -> List[Problem]:
        if not self._hidden_leaders:
            return []
        some = ", ".join(self._hidden_leaders[:3])
        reason = (
            f"the leaders of {len(self._hidden_leaders)} partitions ({some}) have no listener of the name of "
            f"{self._connection.address}'s: give the address of a listener that all brokers have"
        )
        return [Problem(f"broker {self._id}: Metadata", reason)]

    def _versions(self) -> ApiVersions:
        return self._connection.api_versions()

    def _ask(self, request: requests.Request, body: bytes) -> Dict[str, Any]:
        return requests.read(request, self._ask_raw(request, body))

    def _ask_raw(self, request: requests.Request, body: bytes, largest: int = _LARGEST_ANSWER) -> bytes:
        arguments = request.api_key, request.version, body, request.name
        return self._connection.request(*arguments, timeout=self._timeout, largest=largest)

    def _check(self, request: requests.Request, answer: Dict[str, Any], what: str = "") -> None:
        if answer["errorCode"]:
            raise self._error(f"{request.name}{f' of {what}' if what else ''} answered {_error_text(answer)}")

    def _is_off(self, kind: str, request: requests.Request, answer: Dict[str, Any], codes: Tuple[int, ...]) -> bool:
        if answer["errorCode"] not in codes:
            self._check(request, answer)
            return False
        self.not_served[kind] = f"{request.name}: {_error_text(answer)}"
        return True

    def _error(self, text: str) -> ViewError:
        return ViewError(f"broker {self._id} at {self._connection.address}: {text}")


def _error_text(answer: Dict[str, Any]) -> str:
    code = answer["errorCode"]
    name = ERROR_NAMES.get(code, f"error {code}")
    return f"{name}: {answer['errorMessage']}" if answer.get("errorMessage") else name


def _principal(fields: Dict[str, Any]) -> str:
    return f"{fields['principalType']}:{fields['principalName']}"


def _pages(items: List[Any], size: int) -> List[List[Any]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


_INTEGER = re.compile(r"[+-]?\d+")


def parsed(value: str) -> str:
    """A config's value such that what somebody set and what a broker serves of it have the same text.

    Of topics, brokers serve the value as they parsed it (ConfigHelper, ConfigDef.convertToString): ` 0100` becomes
    `100`, `0.50` `0.5`, `TRUE` `true`, `compact, delete` `compact,delete`. Nothing that Kafka tells apart becomes
    equal, but for strings that look like numbers or truth values.
    """
    return ",".join(_parsed(item.strip()) for item in value.split(","))


def _parsed(item: str) -> str:
    if item.lower() in ("true", "false"):
        return item.lower()
    if _INTEGER.fullmatch(item):
        return str(int(item))
    try:
        number = float(item.replace("_", "?"))  # Java knows no underscores in numbers that it parses
    except ValueError:
        return item
    return str(int(number)) if number.is_integer() else repr(number)
