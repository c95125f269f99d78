# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The properties of each node in each mode: KIP-866 and Kafka 3.9's KafkaConfig.validateValues.

Pure functions over properties as dicts of str to str. "Changes" are dicts of key to new value, or None to remove the
key, as `settings.properties.edit` takes them.
"""

from __future__ import annotations

import re
from typing import Iterable, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import config_values
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import (
    AddressError,
    HostPort,
    Listener,
    parse_host_port,
    parse_listeners,
)

MIGRATION_FLAG = "zookeeper.metadata.migration.enable"
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ZOOKEEPER_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
AUTHORIZER = "authorizer.class.name"
ENCODER_SECRET = "password.encoder.secret"
PROTOCOL = "inter.broker.protocol.version"
ANONYMOUS = "User:ANONYMOUS"
QUORUM_VOTERS, QUORUM_BOOTSTRAP = "controller.quorum.voters", "controller.quorum.bootstrap.servers"

# Keys of a ZooKeeper-mode broker that a KRaft broker rejects, ignores or does not need; with * the begin of keys
ZOOKEEPER_ONLY = (
    "zookeeper.*",
    PROTOCOL,
    "control.plane.listener.name",
    "broker.id.generation.enable",
    "reserved.broker.max.id",
)

# Keys that operators set on brokers and KRaft evaluates on controllers, with their reader in Kafka 3.9. A controller
# without such a key silently uses Kafka's default.
CONTROLLER_EVALUATES = {
    "num.partitions": "ReplicationControlManager, a topic created without a partition count",
    "default.replication.factor": "ReplicationControlManager, a topic created without a replication factor",
    "min.insync.replicas": "ConfigurationControlManager's static configs, a topic without its own",
    "unclean.leader.election.enable": "ReplicationControlManager's elections",
    "auto.leader.rebalance.enable": "QuorumController's periodic preferred-leader election",
    "leader.imbalance.check.interval.seconds": "QuorumController, pace of that election",
    "leader.imbalance.per.broker.percentage": "QuorumController, its threshold",
    "delete.topic.enable": "ControllerApis.deleteTopics",
    "create.topic.policy.class.name": "ReplicationControlManager",
    "alter.config.policy.class.name": "ConfigurationControlManager",
    "alter.config.policy.kraft.compatibility.enable": "ConfigurationControlManager, KIP-1252",
    "delegation.token.secret.key": "DelegationTokenControlManager",
    "delegation.token.master.key": "DelegationTokenControlManager, the older name",
    "delegation.token.max.lifetime.ms": "DelegationTokenControlManager",
    "delegation.token.expiry.time.ms": "DelegationTokenControlManager",
    "delegation.token.expiry.check.interval.ms": "QuorumController's token expiry",
    "broker.session.timeout.ms": "ClusterControlManager, when a broker counts as dead",
    "controller.quota.window.num": "QuotaFactory of the controller, KIP-599",
    "controller.quota.window.size.seconds": "QuotaFactory of the controller, KIP-599",
    "client.quota.callback.class": "QuotaFactory of the controller",
    "max.connections.per.ip": "SocketServer of the controller listener",
    "allow.everyone.if.no.acl.found": "StandardAuthorizer",
    "super.users": "StandardAuthorizer",
    "principal.builder.class": "the principal that a forwarded request carries",
    "ssl.principal.mapping.rules": "DefaultKafkaPrincipalBuilder",
    "sasl.kerberos.principal.to.local.rules": "DefaultKafkaPrincipalBuilder",
    "inter.broker.listener.name": "ControllerChannelManager, connections to ZooKeeper-mode brokers",
    "security.inter.broker.protocol": "ControllerChannelManager, if no listener name is set",
}
# Keys of these that are policies: with another value the cluster works, but behaves differently. A difference in any
# other key breaks identities, permissions or decryption.
POLICIES = frozenset(
    {
        "num.partitions",
        "default.replication.factor",
        "min.insync.replicas",
        "unclean.leader.election.enable",
        "auto.leader.rebalance.enable",
        "leader.imbalance.check.interval.seconds",
        "leader.imbalance.per.broker.percentage",
        "delete.topic.enable",
        "create.topic.policy.class.name",
        "alter.config.policy.class.name",
        "alter.config.policy.kraft.compatibility.enable",
        "delegation.token.max.lifetime.ms",
        "delegation.token.expiry.time.ms",
        "delegation.token.expiry.check.interval.ms",
        "broker.session.timeout.ms",
        "controller.quota.window.num",
        "controller.quota.window.size.seconds",
        "max.connections.per.ip",
        "zookeeper.connection.timeout.ms",
        "zookeeper.session.timeout.ms",
        "zookeeper.max.in.flight.requests",
    }
)
APPLIED_BY_CONTROLLERS = frozenset(POLICIES & CONTROLLER_EVALUATES.keys())
"""Policies that brokers apply in ZooKeeper mode and controllers in KRaft mode: with the same values nothing changes."""
OF_AUTHORIZER = ("allow.everyone.if.no.acl.found", "super.users")
"""Settings of Kafka's authorizers, no configs of Kafka: it withholds their values, so they are read from files."""
SECURITY = ("authorizer.class.name", "principal.builder.class", "ssl.principal.mapping.rules")
"""What else decides who may do what: a migration that changes it opens the cluster, or closes it, silently."""
_CONNECTS_TO_BROKERS = re.compile(r"(listener\.name\..+\.)?(ssl|sasl)\..+")
# What a host has for itself: its id and addresses, paths, keystores with their passwords or PEM texts, the login of its
# own principal (Kerberos names the host), thread counts.
OF_A_HOST = re.compile(
    r"node\.id|(advertised\.)?listeners|log\.dirs?|metadata\.log\.dir|(.+\.)?ssl\.(keystore|key)\..+"
    r"|(.+\.)?ssl\.truststore\.(location|password|type)|(.+\.)?sasl\.jaas\.config"
    r"|(.+\.)?num\.[a-z.]*threads[a-z.]*|background\.threads"
)
OWN_STORE = re.compile(r"zookeeper\.ssl\.(keystore|truststore)\.(location|password|type)")
"""With which a host connects to ZooKeeper: a controller may have other stores than the brokers."""
READS_ZOOKEEPER = ("zookeeper.*", "password.encoder.*")
"""Keys with which a controller in migration mode reads ZooKeeper; a name with * is the begin of names."""
# With the providers of the variables in values (KIP-421)
_TAKEN = (*READS_ZOOKEEPER, "config.providers", "config.providers.*")
READ_AS_TEXT = frozenset(
    {
        *("process.roles", "broker.id", "node.id", "broker.id.generation.enable", "reserved.broker.max.id"),
        *("listeners", "advertised.listeners", "listener.security.protocol.map", "inter.broker.listener.name"),
        *("security.inter.broker.protocol", "sasl.mechanism.inter.broker.protocol", "sasl.enabled.mechanisms"),
        *("control.plane.listener.name", "log.dirs", "log.dir", "metadata.log.dir", "super.users"),
        *("zookeeper.connect", "zookeeper.ssl.client.enable", MIGRATION_FLAG, AUTHORIZER),
    }
)
"""Keys that this tool evaluates itself: a variable of a config provider in their values would be taken for text."""
# ZkConfigs.ZK_SSL_CONFIG_TO_SYSTEM_PROPERTY_MAP: a broker takes these from its JVM where its file has no value.
ZOOKEEPER_TLS = {
    "zookeeper.ssl.client.enable": "zookeeper.client.secure",
    "zookeeper.clientCnxnSocket": "zookeeper.clientCnxnSocket",
    "zookeeper.ssl.keystore.location": "zookeeper.ssl.keyStore.location",
    "zookeeper.ssl.keystore.password": "zookeeper.ssl.keyStore.password",
    "zookeeper.ssl.keystore.type": "zookeeper.ssl.keyStore.type",
    "zookeeper.ssl.truststore.location": "zookeeper.ssl.trustStore.location",
    "zookeeper.ssl.truststore.password": "zookeeper.ssl.trustStore.password",
    "zookeeper.ssl.truststore.type": "zookeeper.ssl.trustStore.type",
    "zookeeper.ssl.protocol": "zookeeper.ssl.protocol",
    "zookeeper.ssl.enabled.protocols": "zookeeper.ssl.enabledProtocols",
    "zookeeper.ssl.cipher.suites": "zookeeper.ssl.ciphersuites",
    "zookeeper.ssl.endpoint.identification.algorithm": "zookeeper.ssl.hostnameVerification",
    "zookeeper.ssl.crl.enable": "zookeeper.ssl.crl",
    "zookeeper.ssl.ocsp.enable": "zookeeper.ssl.ocsp",
}


def zookeeper_tls(arguments: Iterable[str]) -> dict[str, str]:
    """Return the settings of ZooKeeper's TLS that a JVM's options give, by the names of a properties file."""
    options = dict(argument[2:].partition("=")[::2] for argument in arguments if argument.startswith("-D"))
    found = {key: options[option] for key, option in ZOOKEEPER_TLS.items() if option in options}
    verified = found.get("zookeeper.ssl.endpoint.identification.algorithm")
    if verified is not None:
        found["zookeeper.ssl.endpoint.identification.algorithm"] = "HTTPS" if verified.lower() == "true" else ""
    return found


def mode_at_next_start(properties: Mapping[str, str]) -> str:
    """Return the mode that these properties start: `zk`, `zk_migration`, `kraft`, `controller_migration`,
    `controller_final`, `combined` (broker and controller in one process, not part of KIP-866) or `invalid`."""
    roles = set(config_values.list_items(properties, "process.roles"))
    flag = config_values.is_true(properties, MIGRATION_FLAG)
    if roles == {"broker"}:
        return "kraft"
    if roles == {"controller"}:
        return "controller_migration" if flag else "controller_final"
    if roles == {"broker", "controller"}:
        return "combined"
    if roles or "zookeeper.connect" not in properties:
        return "invalid"
    return "zk_migration" if flag else "zk"


def role_at_next_start(properties: Mapping[str, str]) -> str | None:
    """Return the role of the node that these properties start, None where they start none or one with both roles."""
    mode = mode_at_next_start(properties)
    if mode in ("invalid", "combined"):
        return None
    return "controller" if mode.startswith("controller") else "broker"


def own_id(properties: Mapping[str, str]) -> str | None:
    """Return the id in a broker's properties, `broker.id` or its synonym `node.id` (KafkaConfig.populateSynonyms);
    None where ZooKeeper generates it."""
    key = "broker.id" if "broker.id" in properties else "node.id"
    value = config_values.get(properties, key)
    return None if value == "-1" else value


def reserved_ids(properties: Mapping[str, str]) -> int:
    """Return the highest id that a broker's properties may have while ids are generated; generated ids are above it."""
    return config_values.number(properties, "reserved.broker.max.id")


def rejects_own_id(properties: Mapping[str, str]) -> bool:
    """Return whether Kafka does not start in ZooKeeper mode since the id in the file is in the range of generated ids
    (KafkaConfig.validateValues)."""
    value, generates = own_id(properties), config_values.is_true(properties, "broker.id.generation.enable")
    return value is not None and value.isdigit() and generates and int(value) > reserved_ids(properties)


def to_migration_mode(
    properties: Mapping[str, str],
    node_id: int,
    voters: str,
    controller_listener: str,
    controller_protocol: str,
    extra: Mapping[str, str],
) -> dict[str, str | None]:
    """Return the changes from plain ZooKeeper mode to migration mode of a broker.

    `voters`: the value of `controller.quorum.voters`, `id@host:port,...`; `extra`: the operator's own keys, such as
    credentials for the controller listener.
    """
    # With generation enabled, Kafka rejects a broker.id above reserved.broker.max.id: every generated id is above it.
    generation = {"broker.id.generation.enable": "false"} if own_id(properties) is None else {}
    return {
        **{key: str(value) for key, value in extra.items()},
        "broker.id": str(node_id),
        **generation,
        "controller.quorum.voters": voters,
        "controller.listener.names": controller_listener,
        "listener.security.protocol.map": _format_protocol_map(properties, controller_listener, controller_protocol),
        MIGRATION_FLAG: "true",
    }


def own_keys_of_migration_mode(extra: Iterable[str]) -> list[str]:
    """Return the keys that `to_migration_mode` sets: a revert restores them."""
    return [
        *extra,
        "broker.id",
        "broker.id.generation.enable",
        "controller.quorum.voters",
        "controller.listener.names",
        "listener.security.protocol.map",
        MIGRATION_FLAG,
    ]


def to_kraft_mode(properties: Mapping[str, str], node_id: int) -> dict[str, str | None]:
    """Return the changes from migration mode to KRaft mode of a broker."""
    changes: dict[str, str | None] = {key: None for key in properties if is_one_of(key, ZOOKEEPER_ONLY)}
    changes.update({"broker.id": None, "process.roles": "broker", "node.id": str(node_id)})
    if config_values.get(properties, AUTHORIZER) == ZOOKEEPER_AUTHORIZER:
        changes[AUTHORIZER] = STANDARD_AUTHORIZER
    return changes


def is_one_of(key: str, names: Iterable[str]) -> bool:
    """Return whether a key is one of these, of which those with * are the begin of keys."""
    return any(key.startswith(name[:-1]) if name.endswith("*") else key == name for name in names)


def to_final_controller(properties: Mapping[str, str]) -> dict[str, str | None]:
    """Return the changes that end a controller's migration mode for good."""
    return {key: None for key in properties if is_one_of(key, READS_ZOOKEEPER)}


def static_voters(properties: Mapping[str, str]) -> list[tuple[int, str]]:
    """Return (id, host:port) of each voter in controller.quorum.voters (QuorumConfig.parseVoterConnections).

    Raises AddressError.
    """
    found = []
    for item in config_values.list_items(properties, QUORUM_VOTERS):
        number, at, address = item.partition("@")
        if not at or not number.strip().isdigit():
            raise AddressError(f"{QUORUM_VOTERS} has {item!r}, which is no voter: write ID@HOST:PORT (QS-CONNECT-006)")
        found.append((int(number), str(parse_host_port(address))))
    return found


def to_dynamic_quorum(properties: Mapping[str, str]) -> dict[str, str | None]:
    """Return the changes that make a node's file one of a dynamic quorum (KIP-853), none where it is one.

    The bootstrap servers are the addresses of the voters that the file names, which the node reaches. Those that it has
    already stay. Raises AddressError.
    """
    if not config_values.get(properties, QUORUM_VOTERS):
        return {}
    changes: dict[str, str | None] = {QUORUM_VOTERS: None}
    if not config_values.get(properties, QUORUM_BOOTSTRAP):
        changes[QUORUM_BOOTSTRAP] = ",".join(address for _voter_id, address in static_voters(properties))
    return changes


def controller_properties(
    broker: Mapping[str, str],
    node_id: int | str,
    address: str,
    voters: str,
    log_dir: str,
    listener: str,
    protocol: str,
    principals: Iterable[str],
    extra: Mapping[str, str],
) -> dict[str, str]:
    """Return a complete controller.properties in migration mode, identity first.

    `broker`: the properties on which all brokers agree (see `find_disagreements`); `address`: the controller's
    `host:port`; `principals`: the clients of the controller listener, super users there; `extra`:
    quorumshift_controller_config, which overrides all keys but the identity.
    """
    derived = {key: broker[key] for key in CONTROLLER_EVALUATES if key in broker}
    derived.update({key: value for key, value in broker.items() if is_one_of(key, _TAKEN)})
    if inter_broker_protocol(broker) != "PLAINTEXT" or protocol != "PLAINTEXT":
        derived.update({key: value for key, value in broker.items() if _CONNECTS_TO_BROKERS.fullmatch(key)})
    authorizer = config_values.get(broker, AUTHORIZER)
    if authorizer:
        derived[AUTHORIZER] = STANDARD_AUTHORIZER if authorizer == ZOOKEEPER_AUTHORIZER else authorizer
        derived["super.users"] = ";".join(dict.fromkeys([*super_users(broker), *principals]))
    identity = {
        "process.roles": "controller",
        "node.id": str(node_id),
        "controller.quorum.voters": voters,
        "controller.listener.names": listener,
        "listeners": f"{listener}://{address}",
        "advertised.listeners": f"{listener}://{address}",
        "listener.security.protocol.map": _format_protocol_map(broker, listener, protocol),
        "log.dirs": log_dir,
        MIGRATION_FLAG: "true",
    }
    rest = {**dict(sorted(derived.items())), **{key: str(value) for key, value in sorted(extra.items())}}
    return {**identity, **{key: value for key, value in rest.items() if key not in identity}}


def find_disagreements(brokers: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str | None]]:
    """Return the keys that controllers take from the brokers and that differ between them: {key: {host: value}}.

    Secrets may be sealed: within a run the same secret seals to the same text.
    """
    keys = {key for properties in brokers.values() for key in properties if is_taken_from_brokers(key)}
    values = {key: {host: properties.get(key) for host, properties in brokers.items()} for key in sorted(keys)}
    return {key: by_host for key, by_host in values.items() if len(_find_different(key, by_host.values())) > 1}


def _find_different(key: str, values: Iterable[str | None]) -> set[str | None]:
    """Return the values that differ to Kafka. A value that is the default is none."""
    default = config_values.DEFAULTS.get(key)
    known = {None if value is None else config_values.comparable_value(key, value) for value in values}
    return {None if value == default else value for value in known}


def is_taken_from_brokers(key: str) -> bool:
    """Return whether a controller takes its value of this key from the brokers."""
    if key == MIGRATION_FLAG:
        return False
    return key in CONTROLLER_EVALUATES or key == AUTHORIZER or is_one_of(key, _TAKEN)


def inter_broker_protocol(properties: Mapping[str, str]) -> str:
    """Return the security protocol of the inter-broker listener, which controllers use too."""
    name = config_values.get(properties, "inter.broker.listener.name").upper()
    if not name:
        return config_values.get(properties, "security.inter.broker.protocol")
    return protocol_map(properties).get(name, name)


def inter_broker_client(properties: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """Return (client settings of a controller with these properties for connections to brokers, why there are none or
    ''): ControllerChannelManager, ChannelBuilders.clientChannelBuilder, KafkaConfig.

    Settings with the listener's prefix override the plain ones (AbstractConfig.valuesWithPrefixOverride).
    """
    protocol = inter_broker_protocol(properties)
    own = f"listener.name.{(config_values.get(properties, 'inter.broker.listener.name') or protocol).lower()}."
    of_clients = ("ssl.", "sasl.", "config.providers")
    settings = {key: value for key, value in properties.items() if key.startswith(of_clients)}
    settings.update({key[len(own) :]: value for key, value in properties.items() if key.startswith(own)})
    settings["security.protocol"] = protocol
    if not protocol.startswith("SASL"):
        return settings, ""
    mechanism = config_values.get(settings, "sasl.mechanism.inter.broker.protocol")
    prefix = f"{mechanism.lower()}."
    settings.update({key[len(prefix) :]: value for key, value in settings.items() if key.startswith(prefix)})
    settings["sasl.mechanism"] = mechanism
    jaas = f"{own}{prefix}sasl.jaas.config"
    if not properties.get(jaas):  # the service logs in with a file of its own (java.security.auth.login.config)
        return {}, f"the login for {mechanism} is not in {jaas}, and the tool cannot read another login of the service"
    return settings, ""


def inter_broker_address(properties: Mapping[str, str], host_address: str) -> str | None:
    """Return the `host:port` of this broker's inter-broker listener; None without one.

    The address of a listener without a host is `host_address`.
    """
    name = config_values.get(properties, "inter.broker.listener.name").upper()
    protocols = protocol_map(properties)
    try:
        listeners = advertised_listeners(properties)
    except AddressError:
        return None
    for listener in listeners:
        if listener.name == name if name else protocols.get(listener.name) == inter_broker_protocol(properties):
            return str(HostPort(listener.host or host_address, listener.port))
    return None


def super_users(properties: Mapping[str, str]) -> list[str]:
    """Return the principals of `super.users`."""
    return config_values.principals(properties.get("super.users", ""))


def listeners(properties: Mapping[str, str]) -> tuple[Listener, ...]:
    """Return the listeners of a node. Raises AddressError."""
    return parse_listeners(config_values.get(properties, "listeners"))


def advertised_listeners(properties: Mapping[str, str]) -> tuple[Listener, ...]:
    """Return the advertised listeners of a node, by default its listeners. Raises AddressError."""
    text = config_values.get(properties, "advertised.listeners")
    return parse_listeners(text) if text else listeners(properties)


def protocol_map(properties: Mapping[str, str]) -> dict[str, str]:
    """Return {listener name: security protocol}, both in upper case as Kafka reads them (ListenerName.normalised,
    SecurityProtocol.forName); Kafka's default map if none is set."""
    pairs = (entry.rpartition(":") for entry in config_values.list_items(properties, "listener.security.protocol.map"))
    return {config_values.trim(name).upper(): config_values.trim(protocol).upper() for name, _colon, protocol in pairs}


def _format_protocol_map(properties: Mapping[str, str], listener: str, protocol: str) -> str:
    mapping = {**protocol_map(properties), listener.upper(): protocol}
    return ",".join(f"{name}:{value}" for name, value in mapping.items())
