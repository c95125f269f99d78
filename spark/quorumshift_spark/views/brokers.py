# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metadata that one broker serves, read over a connection to that broker only.

A client library may ask another broker or the controller, which hides a broker with stale metadata. For instance, a
broker that finalization left in migration mode passes every health check, but does not know topics created since.
broker_requests lists what each request shows. The broker's own configs, which no other broker serves, prove its id.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import re
import threading
import time
from typing import AbstractSet, Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Set, Tuple, Union

import pyarrow.compute as pc
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import node_mode
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import enums
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import apis
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import broker_requests as requests
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests.apis import (
    Answer,
    Api,
    MalformedAnswer,
    Request,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.kafka_wire import (
    ERROR_NAMES,
    ApiVersions,
    KafkaConnection,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import WireError

from quorumshift_spark import columns
from quorumshift_spark import normal_form as form
from quorumshift_spark.columns import metadata
from quorumshift_spark.normal_form import Entity
from quorumshift_spark.views import Absent, Key, LiveView, Problem, Shared, Statement, ViewError

_KINDS = ("topic", "partition", "config", "quota", "scram", "acl", "delegation_token", "feature", "broker")
_KINDS += form.OF_NODES
_LARGEST_RESPONSE = 1 << 28
_NAMES_A_REQUEST = 500

# o.a.k.common.config.ConfigResource.Type, and DescribeConfigsResponse.ConfigSource
_TOPIC_RESOURCE, _BROKER_RESOURCE = 2, 4
_TOPIC_CONFIG, _DYNAMIC_BROKER_CONFIG, _DYNAMIC_DEFAULT_BROKER_CONFIG = 1, 2, 3
# Kinds of configs that are requested by the names in the log, and those of client metrics also by the broker's list
_NAMED = {name: code for code, name in form.CONFIG_RESOURCES.items() if name in ("client_metrics", "group")}
_NAMED_CONFIG = (7, 8)  # DYNAMIC_CLIENT_METRICS_CONFIG, GROUP_CONFIG
_OF_FILE = (4, 5)  # STATIC_BROKER_CONFIG, DEFAULT_CONFIG

_UNKNOWN_TOPIC, _INVALID_REQUEST = 3, 42
# Not authorized for the cluster or the group; a release of Kafka that has no configs of this kind
_NOT_DESCRIBED = (29, 30, _INVALID_REQUEST)
_NOT_SERVED = {"acl": (54,), "delegation_token": (61, 64)}  # no authorizer; no tokens, or not at this listener
# What a client gets where an authorizer does not implement the list of ACLs: UnsupportedOperationException is -1
_NOT_LISTED = (-1, 0, 35, _INVALID_REQUEST, 54)
_SMALL = 1000  # bytes of an answer that is not kept

_KRAFT_VERSION = "kraft.version"  # the quorum's own, kept in control records and not in metadata (KRaftVersion)


class _Answers:
    """What was made of the last answers, by a hash of request and answer: most brokers answer with the same bytes."""

    _LARGEST = 100 << 20  # bytes of the answers

    def __init__(self) -> None:
        self._kept: Dict[tuple, Tuple[Any, int]] = {}
        self._size = 0
        self._lock = threading.Lock()

    def get(self, key: tuple, answer: bytes | memoryview, make: Callable[[], Any]) -> Any:
        """Return what was made of an answer, or make it. `key`: whatever else it depends on."""
        key, size = (*key, hashlib.sha256(answer).digest()), len(answer)
        with self._lock:
            if key in self._kept:
                self._kept[key] = kept = self._kept.pop(key)  # the last that is removed
                return kept[0]
        made = make()
        with self._lock:
            if key not in self._kept and size <= self._LARGEST:
                self._kept[key] = made, size
                self._size += size
            while self._size > self._LARGEST:
                self._size -= self._kept.pop(next(iter(self._kept)))[1]
        return made


_ANSWERS = _Answers()


class Served(NamedTuple):
    """A broker's mode and what it serves. `mode`: of migration.node_mode; `not_served`: {kind: why it cannot be read}.

    `offset`: the end (exclusive) of the metadata log in its image; None in ZooKeeper mode.
    """

    mode: str
    offset: int | None
    not_served: Dict[str, str]


class _Topics(NamedTuple):
    """Topics with their partitions; their names, and of the partitions: those with a hidden leader, and the number of
    replicas that the broker considers offline."""

    shared: Shared
    names: List[str]
    hidden_leaders: List[str]
    offline_replicas: int


class BrokerView(LiveView):
    """The metadata of one broker.

    :arg broker_id: the id of the broker at `address`.
    :arg address: a listener of that broker. Leaders are shown only where the leader has a listener of the same name:
        use the listener of clients or of brokers.
    :arg cluster_id: the expected cluster; None accepts any.
    :arg timeout: seconds for each response.
    :arg settings: names of the configs of which the value in the broker's file is compared with that of other nodes.
    :arg topics_a_request: topics in one request for configs (about 2 kB each in the response; a broker in ZooKeeper
        mode reads a znode for each).
    """

    def __init__(
        self,
        broker_id: int,
        address: HostPort,
        digests: form.Digests,
        security: Security | None = None,
        cluster_id: str | None = None,
        timeout: float = 30.0,
        settings: Iterable[str] = (),
        topics_a_request: int = 100,
    ) -> None:
        self.name = f"broker:{broker_id}"
        self.kinds = _KINDS
        self.has_buckets = True
        self._not_served: Dict[str, str] = {}
        self._settings = frozenset(settings)
        self._id = broker_id
        self._address = HostPort(*address)
        self._digests = digests
        self._security = security
        self._cluster_id = cluster_id
        self._timeout = timeout
        self._page = topics_a_request

    def probe(self) -> Served:
        """Return the broker's mode and set `kinds` to those that it serves. Raises ViewError.

        A broker without an authorizer serves no ACLs. A broker without delegation tokens, or a listener that does not
        allow the request, serves no tokens.
        """
        with self._connect() as requester:
            served = requester.served()
            requester.check_served()
        served.not_served.update(requester.not_served)
        self._not_served = requester.not_served
        off = {*requester.not_served, *(["token_hmac"] if "delegation_token" in requester.not_served else [])}
        self.kinds = tuple(kind for kind in _KINDS if kind not in off)
        return served

    def read(self, part: Any) -> Iterator[Union[Entity, Shared, Statement]]:
        """See View.read. `state`: {time_ms, mode, offset (see Served; not in ZooKeeper mode), offline_replicas: number
        of replicas that the broker considers offline, not_served: {kind: why}}. Raises ViewError."""
        yield from self._read(None)

    def reread(self, keys: Iterable[Key]) -> Tuple[Dict[Key, Union[Entity, Absent]], Statement]:
        """See View.reread; requests only the topics of these keys."""
        wanted = set(keys)
        found: Dict[Key, Union[Entity, Absent]] = {key: Absent({}) for key in wanted}
        statement = Statement({}, [])
        for item in self._read(wanted):
            if isinstance(item, Statement):
                statement = item
                continue
            shared = item if isinstance(item, Shared) else Shared([item])
            found.update((key, shared.by_key[key]) for key in wanted if key in shared.by_key)
        return found, statement

    def _read(self, wanted: Set[Key] | None) -> Iterator[Union[Entity, Shared, Statement]]:
        started = time.time()
        kinds = {kind for kind, _key in wanted} if wanted is not None else set(_KINDS)
        names = None if wanted is None else sorted(_topics_of(wanted))
        with self._connect() as requester:
            served = requester.served()
            yield from requester.broker_configs(self._settings)  # always: it proves the broker's id
            if names is None or names or "broker" in kinds:
                yield from requester.topics(names)
            if "config" in kinds:
                yield from requester.topic_configs(self._page)
                yield from requester.named_configs(requester.client_metrics() if wanted is None else wanted)
            for kind, (of_kind, *_how) in _AT_ONCE.items():
                if kinds & of_kind and (kind != "acl" or kind in self.kinds):
                    yield requester.at_once(kind)
            if "feature" in kinds:
                yield from requester.features()
        state = {
            "time_ms": int(started * 1000),
            "mode": served.mode,
            "offline_replicas": requester.offline_replicas,
            "not_served": {**self._not_served, **requester.not_served},
        }
        if served.offset is not None:
            state["offset"] = served.offset
        yield Statement(state, requester.problems())

    @contextlib.contextmanager
    def _connect(self) -> Iterator[_Requester]:
        with _connected(f"broker {self._id}", self._address, self._security, self._timeout) as connection:
            yield _Requester(self._id, connection, self._digests, self._cluster_id, self._timeout)


@contextlib.contextmanager
def _connected(node: str, address: HostPort, security: Security | None, timeout: float) -> Iterator[KafkaConnection]:
    try:
        with KafkaConnection(address, security, timeout) as connection:
            yield connection
    except WireError as error:
        raise ViewError(f"{node}: {error}") from error
    except MalformedAnswer as error:
        raise ViewError(f"{node} at {address}: {error}") from error


def _topics_of(keys: Iterable[Key]) -> Set[str]:
    names = set()
    for kind, key in keys:
        parts = form.key_of(key)
        if kind in ("topic", "partition"):
            names.add(parts[0])
        elif kind == "config" and parts[0] == "topic":
            names.add(parts[1])
    return names


class _Requester:
    """Requests over one connection to one broker, and the state that they share."""

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
        self._problems: List[Problem] = []
        self._described = requests.ConfigsReader()
        self.offline_replicas = 0
        self.not_served: Dict[str, str] = {}

    def served(self) -> Served:
        versions = self._versions()
        mode = node_mode.node_mode(versions.api_keys, versions.zk_migration_ready)
        if mode not in (node_mode.ZK, node_mode.ZK_MIGRATION, node_mode.KRAFT):
            raise self._error(f"is not a broker: its mode is {mode}")
        # In KRaft mode the epoch of the features is the offset of the image (KRaftMetadataCache.features)
        offset = versions.finalized_features_epoch + 1 if mode == node_mode.KRAFT else None
        return Served(mode, offset, {})

    def features(self) -> Iterator[Entity]:
        for name, (_lowest, level) in sorted(self._versions().finalized_features.items()):
            if level and name != _KRAFT_VERSION:
                yield form.feature(name, level)

    def topics(self, names: List[str] | None) -> Iterator[Union[Entity, Shared]]:
        """Yield the brokers that are up, and topics with their partitions: all topics, or those of these names."""
        pages = [None] if names is None else _pages(names, _NAMES_A_REQUEST) or [[]]
        for number, page in enumerate(pages):
            response = self._request_raw(requests.metadata(page), requests.LARGEST_METADATA)
            metadata_answer = requests.MetadataAnswer(response)
            head = metadata_answer.head
            if self._cluster_id and head["clusterId"] != self._cluster_id:
                raise self._error(f"is of cluster {head['clusterId']}, not of {self._cluster_id}")
            if not number:
                for broker in head["brokers"]:
                    at = [["", broker["host"], broker["port"], ""]]
                    fields = {"fenced": False, "rack": broker["rack"], "endpoints": at}
                    yield form.broker(broker["nodeId"], fields)
            topics = memoryview(response.data)[metadata_answer.position :]
            make = functools.partial(self._topics_of, metadata.read_topics(metadata_answer))
            key = self._digests, response.version, None if page is None else (*page,)
            found = _ANSWERS.get(key, topics, make)
            self._topics += found.names
            self.offline_replicas += found.offline_replicas
            self._hidden_leaders += found.hidden_leaders
            yield found.shared

    def _topics_of(self, served):
        found = _Topics(Shared([]), [], [], 0)
        for topics, partitions in served:
            for topic in topics.to_pylist():
                if topic["error_code"] == _UNKNOWN_TOPIC:
                    continue
                self._check(apis.METADATA, {"errorCode": topic["error_code"]}, f"topic {topic['topic']}")
                found.names.append(topic["topic"])
                found.shared.items.append(form.topic(topic["topic"], topic["topic_id"]))
            hidden = partitions.filter(pc.equal(partitions["error_code"], metadata.LISTENER_NOT_FOUND))
            found.hidden_leaders.extend(f"{row['topic']}-{row['partition']}" for row in hidden.to_pylist())
            offline = pc.sum(pc.list_value_length(partitions["offline"])).as_py() or 0
            found = found._replace(offline_replicas=found.offline_replicas + offline)
            found.shared.items.append(partitions.select(columns.PARTITIONS.names))
        return found

    def topic_configs(self, page: int) -> Iterator[Shared]:
        """Yield the configs set on the topics that `topics` yielded, unless deleted since."""
        for names in _pages(self._topics, page):
            resources = [(_TOPIC_RESOURCE, name) for name in names]
            answer = self._request_raw(requests.configs(resources, False))

            def entities(resources=resources, answer=answer):
                for result in self._results(resources, answer):
                    if result["errorCode"] == _UNKNOWN_TOPIC:
                        continue
                    self._check(apis.DESCRIBE_CONFIGS, result, f"topic {result['resourceName']}")
                    for config in result["configs"]:
                        if config["configSource"] == _TOPIC_CONFIG:
                            yield self._config("topic", result["resourceName"], config, config["value"])

            yield _ANSWERS.get(
                (self._digests, answer.version, *names), answer.data, lambda made=entities: Shared([*made()])
            )

    def client_metrics(self) -> List[Key]:
        """Return a key of each subscription of client metrics that the broker has."""
        api = apis.LIST_CLIENT_METRICS
        if api.version(self._versions().api_keys) is None:
            return []
        response = self._request(requests.client_metrics())
        self._check(api, response)
        names = [resource["name"] for resource in response["clientMetricsResources"]]
        return [("config", form.canonical(["client_metrics", name, ""])) for name in names]

    def named_configs(self, wanted: Iterable[Key]) -> Iterator[Entity]:
        """Yield the configs of these groups and subscriptions of client metrics."""
        parts = [form.key_of(key)[:2] for kind, key in wanted if kind == "config"]
        resources = sorted({(_NAMED[kind], name) for kind, name in parts if kind in _NAMED})
        for result in self._configs(resources, synonyms=False) if resources else ():
            kind, name = form.CONFIG_RESOURCES[result["resourceType"]], result["resourceName"]
            if result["errorCode"] in _NOT_DESCRIBED:
                what = f"{apis.DESCRIBE_CONFIGS.name} of {kind} {name}"
                reason = f"{_error_text(result)}. Permit DESCRIBE_CONFIGS to the principal of quorumshift_client"
                self._problems.append(Problem(f"broker {self._id}: {what}", reason))
                continue
            self._check(apis.DESCRIBE_CONFIGS, result, f"{kind} {name}")
            for config in result["configs"]:
                if config["configSource"] in _NAMED_CONFIG:
                    yield self._config(kind, name, config, config["value"])

    def broker_configs(self, settings: AbstractSet[str]) -> Iterator[Entity]:
        """Yield the dynamic configs of this broker and the cluster-wide defaults, and what its file says of settings.

        The synonyms hold the value that was set; the config's own value may come from another source.
        """
        resources = [(_BROKER_RESOURCE, str(self._id)), (_BROKER_RESOURCE, "")]
        sources = {str(self._id): _DYNAMIC_BROKER_CONFIG, "": _DYNAMIC_DEFAULT_BROKER_CONFIG}
        for result in self._configs(resources, synonyms=True):
            entity = result["resourceName"]
            if result["errorCode"] == _INVALID_REQUEST:
                raise self._error(f"another broker has this address: {result['errorMessage']}")
            self._check(apis.DESCRIBE_CONFIGS, result, f"broker {entity or 'default'}")
            if entity:
                yield from _settings(result, settings)
            for config in result["configs"]:
                for synonym in config["synonyms"]:
                    if synonym["name"] == config["name"] and synonym["source"] == sources[entity]:
                        yield self._config("broker", entity or None, config, synonym["value"])

    def _config(self, resource: str, entity: str | None, config: Dict[str, Any], value: str | None) -> Entity:
        return form.config(resource, entity, config["name"], value, self._digests, withheld=config["isSensitive"])

    def _configs(self, resources: List[Tuple[int, str]], synonyms: bool) -> List[Dict[str, Any]]:
        return self._results(resources, self._request_raw(requests.configs(resources, synonyms)))

    def _results(self, resources: List[Tuple[int, str]], answer: Answer) -> List[Dict[str, Any]]:
        results = self._described.read(answer)
        described = {(result["resourceType"], result["resourceName"]) for result in results}
        missing = [name for kind, name in resources if (kind, name) not in described]
        if missing:
            raise self._error(
                f"DescribeConfigs left out {len(missing)} of {len(resources)} resources, first {missing[0]!r}"
            )
        return results

    def at_once(self, kind: str) -> Shared:
        """Return all entities of a kind of _AT_ONCE."""

        def made():
            response = answer.fields()
            return Shared([] if self._is_off(kind, answer.api, response) else [*entities(self, response)])

        _kinds, request, entities = _AT_ONCE[kind]
        answer = self._request_raw(request())
        if len(answer.data) < _SMALL:  # such as an error
            return made()
        return _ANSWERS.get((self._digests, answer.api, answer.version), answer.data, made)

    def _quotas(self, response: Dict[str, Any]) -> Iterator[Entity]:
        for entry in response["entries"] or ():
            entity = {part["entityType"]: part["entityName"] for part in entry["entity"]}
            for value in entry["values"]:
                yield form.quota(entity, value["key"], value["value"])

    def _scram(self, response: Dict[str, Any]) -> Iterator[Entity]:
        for result in response["results"]:
            self._check(apis.DESCRIBE_SCRAM, result, f"user {result['user']}")
            for credential in result["credentialInfos"]:
                mechanism = enums.name_from_code(enums.SCRAM_MECHANISMS, credential["mechanism"])
                yield form.scram(result["user"], mechanism, credential["iterations"], None, withheld=True)

    def check_served(self) -> None:
        """Find out which kinds the broker does not serve."""
        authorizer = self._authorizer()
        if authorizer and authorizer not in form.OWN_AUTHORIZERS:
            self._check_foreign(authorizer)
        else:
            self._is_off("acl", apis.DESCRIBE_ACLS, self._request(requests.cluster_acls()))
        self._is_off("delegation_token", apis.DESCRIBE_TOKENS, self._request(requests.no_delegation_tokens()))

    def _authorizer(self) -> str | None:
        """Return the class of the broker's authorizer, None without one."""
        for result in self._configs([(_BROKER_RESOURCE, str(self._id))], synonyms=False):
            for config in result["configs"]:
                if config["name"] == form.AUTHORIZER:
                    return config["value"] or None
        return None

    def _check_foreign(self, authorizer: str) -> None:
        """Find out whether an authorizer that is not Kafka's lists ACLs.

        It need not (Authorizer.acls): it fails, or it lists none, and its rules are elsewhere. Then ACLs that Kafka's
        own authorizer left in the store count for none. That the client may not ask shows nothing.
        """
        response = self._request(requests.acls())
        if response["errorCode"] not in _NOT_LISTED:
            self._check(apis.DESCRIBE_ACLS, response)
        if response["errorCode"] or not response["resources"]:
            found = _error_text(response) if response["errorCode"] else "none is listed"
            self.not_served["acl"] = f"its authorizer {authorizer} does not list ACLs ({found})"

    def _acls(self, response: Dict[str, Any]) -> Iterator[Entity]:
        for resource in response["resources"]:
            for acl in resource["acls"]:
                yield form.acl_of_codes({**resource, **acl})

    def _delegation_tokens(self, response: Dict[str, Any]) -> Iterator[Entity]:
        for token in response["tokens"]:
            yield form.delegation_token(
                token["tokenId"],
                _principal(token),
                f"{token['tokenRequesterPrincipalType']}:{token['tokenRequesterPrincipalName']}",
                map(_principal, token["renewers"]),
                token["issueTimestamp"],
                token["expiryTimestamp"],
                token["maxTimestamp"],
            )
            yield form.token_hmac(token["tokenId"], self._digests.token(token["tokenId"], token["hmac"]))

    def problems(self) -> List[Problem]:
        if not self._hidden_leaders:
            return self._problems
        some = ", ".join(self._hidden_leaders[:3])
        reason = (
            f"the leaders of {len(self._hidden_leaders)} partitions ({some}) have no listener with the name of the one "
            f"at {self._connection.address}. Give the address of a listener that all brokers have"
        )
        return [*self._problems, Problem(f"broker {self._id}: Metadata", reason)]

    def _versions(self) -> ApiVersions:
        return self._connection.api_versions()

    def _request(self, request: Request) -> Dict[str, Any]:
        return self._request_raw(request).fields()

    def _request_raw(self, request: Request, largest: int = _LARGEST_RESPONSE) -> Answer:
        return self._connection.request(request, self._timeout, largest)

    def _check(self, api: Api, response: Dict[str, Any], what: str = "") -> None:
        if response["errorCode"]:
            raise self._error(f"{api.name}{f' of {what}' if what else ''} returned {_error_text(response)}")

    def _is_off(self, kind: str, api: Api, response: Dict[str, Any]) -> bool:
        if response["errorCode"] not in _NOT_SERVED.get(kind, ()):
            self._check(api, response)
            return False
        self.not_served[kind] = f"{api.name}: {_error_text(response)}"
        return True

    def _error(self, text: str) -> ViewError:
        return ViewError(f"broker {self._id} at {self._connection.address}: {text} (QS-VERIFY-003)")


_AT_ONCE: Dict[str, Tuple[Set[str], Callable[[], Request], Callable[[_Requester, Any], Any]]] = {
    "quota": ({"quota"}, requests.client_quotas, _Requester._quotas),
    "scram": ({"scram"}, requests.scram, _Requester._scram),
    "acl": ({"acl"}, requests.acls, _Requester._acls),
    "delegation_token": (
        {"delegation_token", "token_hmac"},
        requests.delegation_tokens,
        _Requester._delegation_tokens,
    ),
}
"""By kind: the kinds that one answer has, the request, and what makes entities of the answer."""


class ControllerView(LiveView):
    """The settings of one controller, at its own listener (KIP-919).

    :arg settings: see BrokerView.
    """

    kinds = ("setting",)

    def __init__(
        self, node_id: int, address: HostPort, security: Security | None, timeout: float, settings: Iterable[str]
    ) -> None:
        self.name = f"controller:{node_id}"
        self._id = node_id
        self._address = HostPort(*address)
        self._security = security
        self._timeout = timeout
        self._settings = frozenset(settings)

    def read(self, part: Any) -> Iterator[Entity | Statement]:
        """See View.read. Raises ViewError."""
        started = time.time()
        what = f"controller {self._id}"
        request = requests.configs([(_BROKER_RESOURCE, str(self._id))], synonyms=True)
        with _connected(what, self._address, self._security, self._timeout) as connection:
            for result in connection.request(request, self._timeout, _LARGEST_RESPONSE).fields()["results"]:
                if result["errorCode"]:
                    raise ViewError(
                        f"{what} at {self._address}: {request.api.name} returned {_error_text(result)} (QS-VERIFY-003)"
                    )
                yield from _settings(result, self._settings)
        yield Statement({"time_ms": int(started * 1000)}, [])

    def reread(self, keys: Iterable[Key]) -> Tuple[Dict[Key, Entity | Absent], Statement]:
        """See View.reread."""
        *found, statement = self.read(None)
        by_key = {(entity.kind, entity.key): entity for entity in found}
        return {key: by_key.get(key, Absent({})) for key in keys}, statement


def _settings(result: Dict[str, Any], names: AbstractSet[str]) -> Iterator[Entity]:
    """Yield what a node's file says of these configs, or else Kafka's default. Dynamic configs are entities of their
    own."""
    for config in result["configs"]:
        if config["name"] in names and not config["isSensitive"]:
            of_file = (synonym["value"] for synonym in config["synonyms"] if synonym["source"] in _OF_FILE)
            yield form.setting(config["name"], next(of_file, None))


def _error_text(response: Dict[str, Any]) -> str:
    code = response["errorCode"]
    name = ERROR_NAMES.get(code, f"error {code}")
    return f"{name}: {response['errorMessage']}" if response.get("errorMessage") else name


def _principal(fields: Dict[str, Any]) -> str:
    return f"{fields['principalType']}:{fields['principalName']}"


def _pages(items: List[Any], size: int) -> List[List[Any]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


_INTEGER = re.compile(r"[+-]?\d+")


def parsed(value: str) -> str:
    """Return a text of a config's value that is equal for the value that was set and the value that a broker serves.

    Brokers serve topic configs as parsed (ConfigHelper, ConfigDef.convertToString): ` 0100` becomes `100`, `0.50`
    `0.5`, `TRUE` `true`, `compact, delete` `compact,delete`. Values that Kafka distinguishes stay different, except
    strings that look like numbers or booleans.
    """
    return ",".join(_parsed(item.strip()) for item in value.split(","))


def _parsed(item: str) -> str:
    if item.lower() in ("true", "false"):
        return item.lower()
    if _INTEGER.fullmatch(item):
        return str(int(item))
    try:
        number = float(item.replace("_", "?"))  # Java does not parse underscores in numbers
    except ValueError:
        return item
    return str(int(number)) if number.is_integer() else repr(number)
