# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kafka's znode paths in ZooKeeper, and the decoders of their values.

Paths are relative to the chroot. All functions are pure: bytes in, JSON-able values out. Source:
``kafka.zk.ZkData`` of Kafka 3.9 unless a function names another class.

A decoder raises :class:`ZnodeError` where Kafka itself would fail or lose the value. Its message names
the path and the fault and never quotes the value, because values hold SCRAM keys and passwords.
"""

from __future__ import annotations

import base64
import json
import re
from collections import namedtuple
from urllib.parse import quote, unquote_plus

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import enums

CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
MIGRATION = "/migration"
FEATURE = "/feature"
CLUSTER_ID = "/cluster/id"
BROKER_IDS = "/brokers/ids"
BROKER_SEQUENCE_ID = "/brokers/seqid"
TOPICS = "/brokers/topics"
CONFIG = "/config"
CONFIG_CHANGES = "/config/changes"
DELETE_TOPICS = "/admin/delete_topics"
REASSIGN_PARTITIONS = "/admin/reassign_partitions"
PREFERRED_REPLICA_ELECTION = "/admin/preferred_replica_election"
PRODUCER_ID_BLOCK = "/latest_producer_id_block"
ISR_CHANGES = "/isr_change_notification"
LOG_DIR_EVENTS = "/log_dir_event_notification"
DELEGATION_TOKENS = "/delegation_token/tokens"
# Below these are credentials: with zookeeper.set.acl only the brokers may read them (ZkData.SensitiveRootPaths)
SECRETS = (f"{CONFIG}/users", f"{CONFIG}/brokers", DELEGATION_TOKENS)
DELEGATION_TOKEN_CHANGES = "/delegation_token/token_changes"
ACL_STORES = {"LITERAL": "/kafka-acl", "PREFIXED": "/kafka-acl-extended/prefixed"}
ACL_CHANGES = ("/kafka-acl-changes", "/kafka-acl-extended-changes")
OLD_CONSUMERS = "/consumers"

CONFIG_TYPES = ("topics", "brokers", "clients", "users", "ips")
DEFAULT_ENTITY = "<default>"
SCRAM_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")

# DynamicBrokerConfig.DynamicPasswordConfigs: Kafka encodes these, with or without a listener prefix,
# under password.encoder.secret and decodes them in the initial copy to KRaft.
PASSWORD_CONFIGS = (
    "sasl.jaas.config",
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.password",
    "ssl.truststore.certificates",
    "ssl.truststore.password",
)

Znode = namedtuple("Znode", "path data acl stat")
"""A znode as read: absolute path below the chroot, data (bytes, or None for null data), ACL (a list of
``{"perms": int, "scheme": str, "id": str}``, or None if it was not read) and :class:`Stat`."""

Stat = namedtuple(
    "Stat",
    "czxid mzxid ctime mtime version cversion aversion ephemeralOwner dataLength numChildren pzxid",
)
"""ZooKeeper's Stat with kazoo's field names and order, so that kazoo's own Stat can replace it."""


class ZnodeError(ValueError):
    """A znode's value is not what Kafka writes; see ``path`` and ``reason``."""

    def __init__(self, path, reason):
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


# --- paths -------------------------------------------------------------------------------------------


def topic_path(topic):
    return f"{TOPICS}/{topic}"


def partition_state_path(topic, partition):
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def config_path(config_type, entity):
    """Return ``/config/<type>/<entity>``; ``entity`` is the znode's name (sanitized for users and clients)."""
    return f"{CONFIG}/{config_type}/{entity}"


def user_client_config_path(user, client):
    return f"{CONFIG}/users/{user}/clients/{client}"


def sanitize(name):
    """Return Kafka's znode name of a user or client id (``o.a.k.common.utils.Sanitizer``)."""
    return quote(name, safe="-_.").replace("~", "%7E")


def desanitize(name):
    """Return the user or client id of a znode name; '+' is a space, as in Java's URLDecoder."""
    return unquote_plus(name)


_NAME = "[^/]+"
_KINDS = [
    (re.compile(f"^{pattern}$"), kind)
    for pattern, kind in (
        # Of which there are many: the patterns are tried in this order
        (f"{TOPICS}/{_NAME}/partitions/{_NAME}/state", "partition_state"),
        (f"{TOPICS}/{_NAME}/partitions(/{_NAME})?", "partition"),
        (f"{TOPICS}/{_NAME}", "topic"),
        (CONTROLLER, "controller"),
        (CONTROLLER_EPOCH, "controller_epoch"),
        (MIGRATION, "migration"),
        (FEATURE, "feature"),
        (CLUSTER_ID, "cluster_id"),
        (PRODUCER_ID_BLOCK, "producer_id_block"),
        (BROKER_SEQUENCE_ID, "broker_sequence_id"),
        (REASSIGN_PARTITIONS, "reassign_partitions"),
        (PREFERRED_REPLICA_ELECTION, "preferred_replica_election"),
        (f"{BROKER_IDS}/{_NAME}", "broker"),
        (f"{DELETE_TOPICS}/{_NAME}", "delete_topic"),
        (f"{CONFIG_CHANGES}/{_NAME}", "notification"),
        (f"{CONFIG}/topics/{_NAME}", "topic_config"),
        (f"{CONFIG}/brokers/{_NAME}", "broker_config"),
        (f"{CONFIG}/clients/{_NAME}", "client_config"),
        (f"{CONFIG}/users/{_NAME}(/clients(/{_NAME})?)?", "user_config"),
        (f"{CONFIG}/ips/{_NAME}", "ip_config"),
        # A resource name may contain slashes, as group ids do: everything below the type belongs to it.
        ("{}/{}/.+".format(ACL_STORES["LITERAL"], _NAME), "acl"),
        (f"/kafka-acl-extended/{_NAME}/{_NAME}/.+", "acl"),
        ("({})/{}".format("|".join(ACL_CHANGES), _NAME), "notification"),
        (f"{DELEGATION_TOKENS}/{_NAME}", "delegation_token"),
        (f"{DELEGATION_TOKEN_CHANGES}/{_NAME}", "notification"),
        (f"({ISR_CHANGES}|{LOG_DIR_EVENTS})/{_NAME}", "notification"),
        (f"{OLD_CONSUMERS}/.+", "old_consumer"),
    )
]
_DIRECTORIES = frozenset(
    [
        "/",
        "/admin",
        "/brokers",
        "/cluster",
        "/delegation_token",
        "/kafka-acl-extended",
        BROKER_IDS,
        TOPICS,
        CONFIG,
        CONFIG_CHANGES,
        DELETE_TOPICS,
        ISR_CHANGES,
        LOG_DIR_EVENTS,
        DELEGATION_TOKENS,
        DELEGATION_TOKEN_CHANGES,
        OLD_CONSUMERS,
    ]
    + [f"{CONFIG}/{name}" for name in CONFIG_TYPES]
    + list(ACL_STORES.values())
    + list(ACL_CHANGES)
)
_ACL_TYPE_DIRECTORY = re.compile(f"^(/kafka-acl|/kafka-acl-extended/{_NAME})/{_NAME}$")

NOTIFICATIONS = (CONFIG_CHANGES, *ACL_CHANGES, DELEGATION_TOKEN_CHANGES)
"""Directories of notifications that every broker reads (kafka.common.ZkNodeChangeNotificationListener)."""

VOLATILE_KINDS = frozenset(
    ["controller", "controller_epoch", "migration", "broker", "broker_sequence_id", "producer_id_block", "notification"]
)
"""Kinds that change in a healthy cluster without a change of metadata."""


def kind(path):
    """Return the kind of znode at ``path``: ``directory`` for fixed parents, ``other`` if it is not Kafka's."""
    if path in _DIRECTORIES:
        return "directory"
    for pattern, name in _KINDS:
        if pattern.match(path):
            return name
    return "directory" if _ACL_TYPE_DIRECTORY.match(path) else "other"


# --- values ------------------------------------------------------------------------------------------


def controller(data, path=CONTROLLER):
    """Return ``{"broker_id", "kraft_controller_epoch", "timestamp_ms"}``; the KRaft epoch is -1 under a ZooKeeper
    controller, and None in the format before Kafka 3.4."""
    value = _object(path, data)
    return {
        "broker_id": _int(path, value, "brokerid"),
        "kraft_controller_epoch": _int(path, value, "kraftControllerEpoch", None),
        "timestamp_ms": _int(path, value, "timestamp", None),
    }


def controller_epoch(data, path=CONTROLLER_EPOCH):
    """Return the ZooKeeper controller epoch, an int."""
    try:
        return int((data or b"").decode("utf-8"))
    except ValueError:
        raise ZnodeError(path, "is not a whole number") from None


def migration(data, path=MIGRATION):
    """Return the migration's leadership state; never raise, because callers evaluate ``malformed``.

    ``{"kraft_controller_id", "kraft_controller_epoch", "kraft_metadata_offset", "kraft_metadata_epoch",
    "malformed"}``; the numbers are -1 before the initial copy, and None if ``malformed`` has a reason
    (null data makes Kafka before 3.9.2 hang: KAFKA-19480).
    """
    fields = ("kraft_controller_id", "kraft_controller_epoch", "kraft_metadata_offset", "kraft_metadata_epoch")
    try:
        if data is None:
            raise ZnodeError(path, "has null data (KAFKA-19480)")
        value = _object(path, data)
        if value.get("version") != 0:
            raise ZnodeError(path, "has version {!r}, expected 0".format(value.get("version")))
        result = {field: _int(path, value, field) for field in fields}
        result["malformed"] = None
    except ZnodeError as error:
        result = dict.fromkeys(fields)
        result["malformed"] = error.reason
    return result


def feature(data, path=FEATURE):
    """Return ``{"version", "enabled", "features": {name: max level}}`` (``FeatureZNode``)."""
    value = _object(path, data)
    version = _int(path, value, "version")
    if version not in (1, 2):
        raise ZnodeError(path, f"has version {version}, expected 1 or 2")
    features = _object_field(path, value, "features")
    return {
        "version": version,
        "enabled": _int(path, value, "status") == 1,
        "features": {name: _int(path, level, "max_version_level") for name, level in features.items()},
    }


def cluster_id(data, path=CLUSTER_ID):
    """Return the cluster id, a string."""
    return _string(path, _object(path, data), "id")


def broker(data, path):
    """Return a broker's registration.

    ``{"endpoints": {listener: {"host", "port", "security_protocol"}}, "rack", "timestamp_ms", "version",
    "features"}`` (``BrokerIdZNode``, versions 1 to 5; without a map in the znode the listener's name is
    its protocol).
    """
    value = _object(path, data)
    version = _int(path, value, "version")
    if version == 1:
        endpoints = ["PLAINTEXT://{}:{}".format(_string(path, value, "host"), _int(path, value, "port"))]
    else:
        endpoints = _strings(path, value, "endpoints")
    protocols = _object_field(path, value, "listener_security_protocol_map", {})
    return {
        "endpoints": dict(_endpoint(path, endpoint, protocols) for endpoint in endpoints),
        "rack": value.get("rack"),
        "timestamp_ms": _int(path, value, "timestamp", None),
        "version": version,
        "features": value.get("features") or {},
    }


def topic(data, path):
    """Return a topic's assignment: ``{"topic_id", "partitions": {"0": {"replicas", "adding", "removing"}}}``.

    ``replicas`` includes the adding and removing ones. ``topic_id`` is None if the topic was created before
    Kafka 2.8 and has got none since: the initial copy to KRaft fails on it.
    """
    value = _object(path, data)
    adding = _object_field(path, value, "adding_replicas", {})
    removing = _object_field(path, value, "removing_replicas", {})
    partitions = {}
    for partition in _object_field(path, value, "partitions", {}):
        if not (partition.isascii() and partition.isdigit()):
            raise ZnodeError(path, f"partition {partition!r} is not a number")
        partitions[partition] = {
            "replicas": _ints(path, value["partitions"], partition),
            "adding": _ints(path, adding, partition, []),
            "removing": _ints(path, removing, partition, []),
        }
    return {"topic_id": _string(path, value, "topic_id", None), "partitions": partitions}


def topic_value(partitions, topic_id):
    """Return the value of a topic (bytes) for ``{"0": [broker ids]}``; see :func:`topic`."""
    value = {
        "version": 3,
        "topic_id": topic_id,
        "partitions": partitions,
        "adding_replicas": {},
        "removing_replicas": {},
    }
    return json.dumps(value, separators=(",", ":")).encode()


def partition_state(data, path):
    """Return ``{"leader", "leader_epoch", "controller_epoch", "isr", "leader_recovery_state"}``; leader -1 is
    none, recovery state 0 is recovered. KRaft's partition epoch is the znode's data version."""
    value = _object(path, data)
    return {
        "leader": _number(path, value, "leader"),
        "leader_epoch": _number(path, value, "leader_epoch"),
        "controller_epoch": _number(path, value, "controller_epoch"),
        "isr": _ints(path, value, "isr"),
        "leader_recovery_state": _number(path, value, "leader_recovery_state", 0),
    }


def config(data, path):
    """Return an entity's dynamic configs ``{key: value}`` as stored (passwords encoded, SCRAM keys in clear).

    Null data means no configs. ``ConfigEntityZNode`` treats data that is not JSON and a missing ``config``
    the same; here they raise :class:`ZnodeError`, because silently dropped configs are a loss.
    """
    if data is None:
        return {}
    value = _object_field(path, _object(path, data), "config")
    for key in value:
        _string(path, value, key)
    return value


def scram_credential(text, path, mechanism):
    """Return ``{"salt", "stored_key", "server_key"}`` in base64 and ``iterations`` as int
    (``ScramCredentialUtils``). The result is secret: hash it at once."""
    fields = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not name or not equals:
            raise ZnodeError(path, f"{mechanism} is not a SCRAM credential")
        fields[name] = value
    if set(fields) != {"salt", "stored_key", "server_key", "iterations"} or not fields["iterations"].isdigit():
        raise ZnodeError(path, f"{mechanism} is not a SCRAM credential")
    try:
        for name in ("salt", "stored_key", "server_key"):
            base64.b64decode(fields[name], validate=True)
    except ValueError:
        raise ZnodeError(path, f"{mechanism} is not a SCRAM credential") from None
    fields["iterations"] = int(fields["iterations"])
    return fields


def is_password_config(name):
    """Return whether Kafka stores this broker config encoded (``DynamicBrokerConfig.isPasswordConfig``)."""
    return name.endswith(PASSWORD_CONFIGS)


def acls(data, path):
    """Return a resource's entries, sorted and distinct: ``{"principal", "host", "operation", "permission"}``.

    Operations and permissions have the names of Kafka's enums (``READ``, ``ALLOW``), ``UNKNOWN`` for others
    (``AclEntry.fromBytes``, ``SecurityUtils``). No data means no entry.
    """
    if not data:
        return []
    value = _object(path, data)
    if value.get("version") != 1:
        raise ZnodeError(path, "has version {!r}, expected 1".format(value.get("version")))
    if not isinstance(value.get("acls"), list):
        raise ZnodeError(path, "has no list 'acls'")
    entries = set()
    for entry in value["acls"]:
        if not isinstance(entry, dict):
            raise ZnodeError(path, "has an entry in 'acls' that is not an object")
        principal = _string(path, entry, "principal")
        if ":" not in principal:
            raise ZnodeError(path, "has a principal that is not type:name")
        entries.add(
            (
                principal,
                _string(path, entry, "host"),
                enums.name_from_znode(enums.OPERATIONS, _string(path, entry, "operation")),
                enums.name_from_znode(enums.PERMISSIONS, _string(path, entry, "permissionType")),
            )
        )
    return [dict(zip(("principal", "host", "operation", "permission"), entry)) for entry in sorted(entries)]


def acl_resource_type(name):
    """Return ``TRANSACTIONAL_ID`` for the znode name ``TransactionalId``; ``UNKNOWN`` for names that Kafka ignores."""
    return enums.name_from_znode(enums.RESOURCE_TYPES, name)


def delegation_token(data, path):
    """Return a token without its HMAC, which is not stored: ``{"token_id", "owner", "requester", "renewers",
    "issue_ms", "max_ms", "expiry_ms"}`` (``DelegationTokenManagerZk``); None for no data."""
    if not data:
        return None
    value = _object(path, data)
    version = _int(path, value, "version")
    if not 1 <= version <= 3:
        raise ZnodeError(path, f"has version {version}, expected 1 to 3")
    owner = desanitize(_string(path, value, "owner"))
    return {
        "token_id": _string(path, value, "tokenId"),
        "owner": owner,
        "requester": desanitize(_string(path, value, "tokenRequester")) if version >= 3 else owner,
        "renewers": [desanitize(renewer) for renewer in _strings(path, value, "renewers")],
        "issue_ms": _int(path, value, "issueTimestamp"),
        "max_ms": _int(path, value, "maxTimestamp"),
        "expiry_ms": _int(path, value, "expiryTimestamp"),
    }


def producer_id_block(data, path=PRODUCER_ID_BLOCK):
    """Return ``{"broker_id", "first_producer_id", "next_producer_id"}``; None for null data, which a broker
    writes before the first producer asks."""
    if data is None:
        return None
    value = _object(path, data)
    return {
        "broker_id": _int(path, value, "broker"),
        "first_producer_id": _int(path, value, "block_start"),
        "next_producer_id": _int(path, value, "block_end") + 1,
    }


def topic_partitions(data, path):
    """Return ``[{"topic", "partition", "replicas"?}]`` of /admin/reassign_partitions,
    /admin/preferred_replica_election or an ISR change notification."""
    value = _object(path, data)
    if not isinstance(value.get("partitions"), list):
        raise ZnodeError(path, "has no list 'partitions'")
    result = []
    for item in value["partitions"]:
        if not isinstance(item, dict):
            raise ZnodeError(path, "has an entry in 'partitions' that is not an object")
        entry = {"topic": _string(path, item, "topic"), "partition": _int(path, item, "partition")}
        if "replicas" in item:
            entry["replicas"] = _ints(path, item, "replicas")
        result.append(entry)
    return result


def log_dir_event(data, path):
    """Return ``{"broker_id"}`` of the broker that lost a log directory."""
    return {"broker_id": _int(path, _object(path, data), "broker")}


def config_change(data, path):
    """Return the entity path (``topics/x``, ``users/u/clients/c``) of a /config/changes notification."""
    return _string(path, _object(path, data), "entity_path")


# --- typed access, with the path in every error ------------------------------------------------------

_REQUIRED = object()


def _object(path, data):
    if not data:
        raise ZnodeError(path, "has no data")
    try:
        value = json.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ZnodeError(path, f"is not UTF-8 (byte {error.start} of {len(data)})") from None
    except ValueError as error:
        # JSONDecodeError's text is safe, but its .doc holds the value: hence 'from None'.
        raise ZnodeError(path, f"is not JSON: {error}") from None
    except RecursionError:
        raise ZnodeError(path, "is nested too deeply") from None
    if not isinstance(value, dict):
        raise ZnodeError(path, "is not a JSON object")
    return value


def _field(path, value, name, default):
    if not isinstance(value, dict):
        raise ZnodeError(path, f"{name!r} is missing: its parent is not an object")
    found = value.get(name)
    if found is None:
        if default is _REQUIRED:
            raise ZnodeError(path, f"{name!r} is missing")
        return default
    return found


def _int(path, value, name, default=_REQUIRED):
    # Kafka writes timestamps and producer ids as strings
    found = _field(path, value, name, default)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, (int, str)) or not re.match(r"^-?\d+$", str(found)):
        raise ZnodeError(path, f"{name!r} is not a whole number")
    return int(found)


def _number(path, value, name, default=_REQUIRED):
    # TopicPartitionStateZNode.decode rejects a number in quotes
    if isinstance(value, dict) and isinstance(value.get(name), str):
        raise ZnodeError(path, f"{name!r} is not a whole number")
    return _int(path, value, name, default)


def _string(path, value, name, default=_REQUIRED):
    found = _field(path, value, name, default)
    if found is not None and not isinstance(found, str):
        raise ZnodeError(path, f"{name!r} is not a string")
    return found


def _strings(path, value, name):
    found = _field(path, value, name, _REQUIRED)
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise ZnodeError(path, f"{name!r} is not a list of strings")
    return found


def _ints(path, value, name, default=_REQUIRED):
    found = _field(path, value, name, default)
    if not isinstance(found, list) or not all(isinstance(item, int) and not isinstance(item, bool) for item in found):
        raise ZnodeError(path, f"{name!r} is not a list of numbers")
    return found


def _object_field(path, value, name, default=_REQUIRED):
    found = _field(path, value, name, default)
    if not isinstance(found, dict):
        raise ZnodeError(path, f"{name!r} is not an object")
    return found


def _endpoint(path, text, protocols):
    match = re.match(r"^([^:/]+)://(?:\[(.*)\]|([^\[\]]*)):(\d+)$", text)
    if not match:
        raise ZnodeError(path, f"endpoint {text!r} is not listener://host:port")
    listener = match.group(1)
    return listener, {
        "host": match.group(2) or match.group(3) or "",
        "port": int(match.group(4)),
        "security_protocol": protocols.get(listener, listener),
    }
