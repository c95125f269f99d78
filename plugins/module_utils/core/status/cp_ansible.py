# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which variables of cp-ansible write the files of a finalized cluster as they are. Pure.

Its branch 7.9.x, roles `variables`, `kafka_broker` and `kafka_controller`: a group kafka_controller with a host means
KRaft mode. It counts ids of controllers from 9991 in the order of that group, and writes every key of a properties file
from its own defaults and from `kafka_broker_custom_properties` and `kafka_controller_custom_properties`.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config

MANAGED = "confluent.ansible.managed"
"""The setting that cp-ansible writes into each properties file. It is none of Kafka's, so its value travels sealed."""
GROUP, FIRST_ID = "kafka_controller", 9991
BROKERS, CONTROLLERS = "kafka_broker_custom_properties", "kafka_controller_custom_properties"
LOG_DIR = "/var/lib/controller/data"
_ID, _VOTERS, _LISTENERS = "node.id", "controller.quorum.voters", "listeners"
_PORT = "9093"
_OF_BROKERS = frozenset({"process.roles", _ID, _VOTERS, "controller.listener.names", "listener.security.protocol.map"})
"""What it writes into a broker's file by itself, once there is the group. It writes broker.id, which Kafka takes for
node.id."""
_OF_CONTROLLERS = frozenset(
    {
        *_OF_BROKERS,
        *(_LISTENERS, "inter.broker.listener.name", "group.initial.rebalance.delay.ms", MANAGED, "kafka.rest.enable"),
        *("log.retention.check.interval.ms", "log.retention.hours", "log.segment.bytes", "num.io.threads"),
        *("num.network.threads", "num.partitions", "num.recovery.threads.per.data.dir"),
        *("offsets.topic.replication.factor", "socket.receive.buffer.bytes", "socket.request.max.bytes"),
        *("socket.send.buffer.bytes", "transaction.state.log.min.isr", "transaction.state.log.replication.factor"),
        *("confluent.license.topic", "confluent.license.topic.replication.factor"),
        *("confluent.metadata.topic.replication.factor", "confluent.balancer.topic.replication.factor"),
        *("confluent.security.event.logger.exporter.kafka.topic.replicas", "confluent.support.metrics.enable"),
        *("confluent.support.customer.id",),
    }
)
"""What it writes into a controller's file by itself, whatever the inventory says."""


def is_managed(nodes: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether cp-ansible wrote the file of a broker."""
    files = ((node.get("file") or {}).get("properties") or {} for node in nodes if node.get("role") == "broker")
    return any(MANAGED in values for values in files)


def variables(found: Mapping[str, Any], ids: Mapping[str, Any], own: Mapping[str, Mapping[str, Any]]) -> Dict[str, Any]:
    """Return what its inventory needs: the hosts of the group with their variables, variables of the group `all`, and
    by the names BROKERS and CONTROLLERS the settings to add; `remove` has those to take out of them.

    `found`: of handover.describe; `ids`: of every controller, also of one whose file was not read: a group without it
    would be another quorum; `own`: by these names, what the inventory sets already. A secret is null: the file has it.
    """
    order = sorted(ids, key=lambda host: (ids[host] or 0, host))
    counted = {host: FIRST_ID + place for place, host in enumerate(order)}
    default_voters = ",".join(f"{counted[host]}@{host}:{_PORT}" for host in order)
    voters = {node["set"].get(_VOTERS) for node in found["controllers"].values()}
    everywhere = {"kafka_controller_quorum_voters": voters.pop()} if len(voters) == 1 else {}
    if default_voters in everywhere.values():
        everywhere = {}
    ports = {(node["set"].get(_LISTENERS) or "").rpartition(":")[2] for node in found["controllers"].values()}
    if len(ports) == 1 and ports.isdisjoint(("", _PORT)):
        everywhere["kafka_controller_port"] = ports.pop()
    return {
        "group": {host: {} if ids[host] == counted[host] else {"node_id": ids[host]} for host in order},
        "all": everywhere,
        BROKERS: _missing(found["brokers"].values(), _OF_BROKERS, own.get(BROKERS) or {}),
        CONTROLLERS: _missing(found["controllers"].values(), _OF_CONTROLLERS, own.get(CONTROLLERS) or {}),
        "remove": {
            name: [key for key in sorted(own.get(name) or {}) if kraft_config.is_one_of(key, found["absent"][role])]
            for name, role in ((BROKERS, "brokers"), (CONTROLLERS, "controllers"))
        },
    }


def lines(given: Mapping[str, Any]) -> List[str]:
    """Return the same for people, as YAML of an inventory."""
    shown = ["for cp-ansible's inventory, so that its next run writes the files as they are:"]
    if given["all"]:
        shown += ["    all:", "      vars:", *(f"        {key}: {_text(value)}" for key, value in given["all"].items())]
    for group, name in (("kafka_broker", BROKERS), (GROUP, CONTROLLERS)):
        hosts = group == GROUP
        if not hosts and not given[name]:
            continue
        shown.append(f"    {group}:")
        if hosts:
            shown.append("      hosts:  # in this order")
            shown += [
                f"        {host}:" + (f" {{node_id: {own['node_id']}}}" if own else "")
                for host, own in given["group"].items()
            ]
        shown += _settings(name, given[name])
    shown.append("    - the group zookeeper, and kraft_migration if it is set")
    shown += [f"    - {', '.join(keys)} of {name}" for name, keys in given["remove"].items() if keys]
    return shown


def _missing(nodes: Iterable[Mapping[str, Any]], written: frozenset, own: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the settings that all nodes have, and that cp-ansible would not write as they are."""
    files = [node["set"] for node in nodes]
    keys = sorted({key for values in files for key in values} - written) if files else []
    return {
        key: files[0].get(key)
        for key in keys
        if all(key in values and values[key] == files[0][key] for values in files)
        and not (key == "log.dirs" and files[0][key] == LOG_DIR)
        and (key not in own or (files[0][key] is not None and str(own[key]) != files[0][key]))
    }


def _settings(name: str, settings: Mapping[str, Any]) -> List[str]:
    """Return a variable with settings as YAML; secrets are named in a comment."""
    plain = {key: value for key, value in settings.items() if value is not None}
    hidden = [key for key in settings if key not in plain]
    shown = ["      vars:", f"        {name}:", *(f"          {key}: {_text(value)}" for key, value in plain.items())]
    secrets = f"      # secrets of {name}, as the file has them: {', '.join(hidden)}"
    return [*(shown if plain else []), *([secrets] if hidden else [])]


def _text(value: Any) -> str:
    """Return a value as YAML text."""
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
