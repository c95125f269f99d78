# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the configs that the releases of Kafka treat differently: of topics, of brokers, and their request loggers.

It sends Metadata and DescribeConfigs alone. A broker answers for its own configs and loggers (ConfigHelper).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Iterable, Mapping, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import admin_requests, broker_requests
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests.apis import MalformedAnswer
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.kafka_wire import KafkaConnection, KafkaError
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import ProtocolError, WireError

LOGGER = "kafka.request.logger"
_BROKER_LOGGER = 8  # ConfigResource.Type
_DYNAMIC_TOPIC, _DYNAMIC_BROKER, _DYNAMIC_DEFAULT, _LOGGER_LEVEL = 1, 2, 3, 6  # DescribeConfigsResponse.ConfigSource
_UNKNOWN_TOPIC = 3  # Errors.UNKNOWN_TOPIC_OR_PARTITION
_TOPICS_AT_ONCE, _BROKERS_AT_ONCE = 500, 32


class Configs(NamedTuple):
    """`topics`: {topic: {setting: value}} of its own settings, None where `topics_error` says why; `brokers`: {id as
    text of each broker that was read, '' for all: {setting: value}}; `unread`: {id: why}; `loggers`: {id: level of
    kafka.request.logger}."""

    topics: Mapping[str, Mapping[str, str]] | None
    topics_error: str
    brokers: Mapping[str, Mapping[str, str]]
    unread: Mapping[str, str]
    loggers: Mapping[str, str]


def read(
    brokers: Mapping[int, HostPort],
    topics: Iterable[str],
    topic_keys: Iterable[str],
    broker_keys: Iterable[str],
    client: Security,
    timeout: float,
) -> Configs:
    """Return the configs of these brokers and topics, as far as they are read; nothing is raised. `topic_keys`,
    `broker_keys`: which settings."""
    listed, keys_of_brokers = sorted(brokers), sorted(broker_keys)
    with ThreadPoolExecutor(max_workers=max(1, min(_BROKERS_AT_ONCE, len(listed)))) as pool:
        answers = list(
            pool.map(lambda broker: _read_broker(broker, brokers[broker], keys_of_brokers, client, timeout), listed)
        )
    found: dict[str, Mapping[str, str]] = {}
    unread, loggers = {}, {}
    for broker, (own, default, level, why) in zip(listed, answers):
        if why:
            unread[str(broker)] = why
            continue
        found[str(broker)] = own
        found[""] = {**found.get("", {}), **default}
        if level:
            loggers[str(broker)] = level
    try:
        of_topics, error = _read_topics(list(brokers.values()), sorted(topics), sorted(topic_keys), client, timeout), ""
    except WireError as failed:
        of_topics, error = None, str(failed)
    return Configs(of_topics, error, found, unread, loggers)


def _read_broker(
    broker: int, address: HostPort, keys: list[str], client: Security, timeout: float
) -> tuple[dict[str, str], dict[str, str], str | None, str]:
    """Return (own configs, those of all brokers, level of the request logger, why nothing was read)."""
    own, default = (admin_requests.BROKER, str(broker)), (admin_requests.BROKER, "")
    logger = (_BROKER_LOGGER, str(broker))
    try:
        with KafkaConnection(address, client, timeout) as connection:
            read_configs = _results(connection, address, [own, default], keys, timeout)
            for result in read_configs.values():
                if result["errorCode"]:
                    raise KafkaError(address, result["errorCode"], "DescribeConfigs", result.get("errorMessage"))
            levels = _results(connection, address, [logger], [LOGGER], timeout)[logger]
    except WireError as error:
        # Without the address, so that brokers with the same reason are one finding
        return {}, {}, None, str(error).replace(f"{address}: ", "", 1)
    level = _set(levels, _LOGGER_LEVEL).get(LOGGER) if not levels["errorCode"] else None
    return (
        _set(read_configs[own], _DYNAMIC_BROKER),
        _set(read_configs[default], _DYNAMIC_DEFAULT),
        level,
        "",
    )


def _read_topics(
    addresses: list[HostPort], topics: list[str], keys: list[str], client: Security, timeout: float
) -> dict[str, dict[str, str]]:
    """Return the settings of topics, from the first broker that answers; a topic that was deleted is left out. Raises
    WireError."""
    last: WireError | None = None
    for address in addresses:
        found: dict[str, dict[str, str]] = {}
        try:
            with KafkaConnection(address, client, timeout) as connection:
                for start in range(0, len(topics), _TOPICS_AT_ONCE):
                    resources = [(admin_requests.TOPIC, name) for name in topics[start : start + _TOPICS_AT_ONCE]]
                    for (_kind, name), result in _results(connection, address, resources, keys, timeout).items():
                        if result["errorCode"] == _UNKNOWN_TOPIC:
                            continue
                        if result["errorCode"]:
                            raise KafkaError(address, result["errorCode"], "DescribeConfigs", result["errorMessage"])
                        found[name] = _set(result, _DYNAMIC_TOPIC)
            return {name: given for name, given in found.items() if given}
        except KafkaError:
            raise  # another broker would refuse as well
        except WireError as error:
            last = error
    raise last or ProtocolError(None, "no broker is known (QS-CONNECT-003)")


def _results(
    connection: KafkaConnection, address: HostPort, resources: list[tuple[int, str]], keys: list[str], timeout: float
) -> dict[tuple[int, str], Any]:
    answer = connection.request(broker_requests.configs(resources, synonyms=False, keys=keys), timeout)
    try:
        results = answer.fields()["results"]
    except MalformedAnswer as error:
        raise ProtocolError(address, str(error)) from error
    found = {(result["resourceType"], result["resourceName"]): result for result in results}
    missing = [resource for resource in resources if resource not in found]
    if missing:
        raise ProtocolError(address, f"its answer to DescribeConfigs lacks {missing[0]} (QS-CONNECT-003)")
    return found


def _set(result: Mapping[str, Any], source: int) -> dict[str, str]:
    return {
        config["name"]: config["value"]
        for config in result["configs"]
        if config["configSource"] == source and config["value"] is not None
    }
