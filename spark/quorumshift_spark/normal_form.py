# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The normal form of metadata, in which views are compared.

A piece of metadata is an :class:`Entity`. The same metadata has the same text in every view: keys and values are
canonical JSON, lists without a meaningful order are sorted, names are unsanitized, enums are Kafka's names, secrets are
hashed under the job's key. Build an entity with the function of its kind.

==================  =========================================================  =======================================
kind                key                                                        fields
==================  =========================================================  =======================================
topic               [name]                                                     id
partition           [topic, partition]                                         topic_id, replicas, adding, removing,
                                                                               leader, leader_epoch, isr,
                                                                               recovery_state, partition_epoch; elr,
                                                                               last_known_elr, directories (metadata
                                                                               log only)
config              ["topic"|"broker"|..., entity or null, name]               value
quota               [[[entity type, entity or null], ...], quota key]          value
scram               [user, mechanism]                                          iterations, digest
acl                 [resource type, pattern type, resource name, principal,    none
                    host, operation, permission]
delegation_token    [token id]                                                 owner, requester, renewers, issue,
                                                                               expiry, max
producer_ids        []                                                         next; broker, start (ZooKeeper only)
feature             [name]                                                     level
migration           []                                                         state (metadata log only)
broker              [id]                                                       fenced, epoch, rack, endpoints;
                                                                               log_dirs (metadata log only)
setting             [name]                                                     value
token_hmac          [token id]                                                 digest
==================  =========================================================  =======================================

The last two are in no store: each node has them of its own file. A view omits fields that it does not have; null is a
value (a partition without state in ZooKeeper).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import math
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import enums
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets import seal

FIELDS: Dict[str, Tuple[str, ...]] = {
    "topic": ("id",),
    "partition": (
        "topic_id",
        "replicas",
        "adding",
        "removing",
        "leader",
        "leader_epoch",
        "isr",
        "recovery_state",
        "partition_epoch",
        "elr",
        "last_known_elr",
        "directories",
    ),
    "config": ("value",),
    "quota": ("value",),
    "scram": ("iterations", "digest"),
    "acl": (),
    "delegation_token": ("owner", "requester", "renewers", "issue", "expiry", "max"),
    "producer_ids": ("broker", "start", "next"),
    "feature": ("level",),
    "migration": ("state",),
    "broker": ("fenced", "epoch", "endpoints", "rack", "log_dirs"),
    "setting": ("value",),
    "token_hmac": ("digest",),
}
"""Names of the fields of each kind."""

KINDS = tuple(FIELDS)
OF_NODES = ("setting", "token_hmac")
"""Kinds that no store has."""
STORED = tuple(kind for kind in KINDS if kind not in OF_NODES)
_FIELD_SETS = {kind: frozenset(fields) for kind, fields in FIELDS.items()}

CONFIG_RESOURCES = {2: "topic", 4: "broker", 16: "client_metrics", 32: "group"}
"""Types of config resources (o.a.k.common.config.ConfigResource.Type) by their code."""


class Entity(NamedTuple):
    """One piece of metadata in one view.

    `kind`: one of KINDS. `key`: canonical JSON array text, unique within its kind. `fields`: {name: canonical JSON
    text}. `at`: the position of its last change: {"zxid": n}, {"offset": n} or {}. Of a topic in ZooKeeper it is the
    creation of its znode: Kafka never changes a topic's id in place.
    """

    kind: str
    key: str
    fields: Dict[str, str]
    at: Dict[str, int]


def canonical(value: Any) -> str:
    """Return JSON text that is equal for equal values: no spaces, sorted names, no escaped characters."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return _encode(value)


# Created once: json.dumps with options creates an encoder for each call, which is slower than encoding
_encode = json.JSONEncoder(separators=(",", ":"), sort_keys=True, ensure_ascii=False, allow_nan=False).encode


class Digests:
    """Keyed hashes of secrets: a secret has the same digest in every view.

    :arg key: bytes, from the job's `digest_key_file`.
    A digest covers the secret's name (HMAC-SHA256 over length-prefixed parts), so that two credentials with the same
    password have different digests.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Digests) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def config(self, resource_type: str, entity: str | None, name: str, clear_text: str) -> str:
        """Return the hex digest of a password config. `clear_text`: decrypted, for a value from ZooKeeper."""
        return self._hash("config", resource_type, "" if entity is None else f"={entity}", name, clear_text)

    def scram(
        self,
        user: str,
        mechanism: str,
        salt: bytes | str,
        stored_key: bytes | str,
        server_key: bytes | str,
        rounds: int,
    ) -> str:
        """Return the hex digest of a SCRAM credential; salt and keys as bytes or, as in ZooKeeper, in base64."""
        return self._hash("scram", user, mechanism, *map(_raw, (salt, stored_key, server_key)), str(rounds))

    def znode(self, path: str, data: bytes) -> str:
        """Return the hex digest of a znode's data."""
        return self._hash("znode", path, data)

    def token(self, token_id: str, hmac_of_token: bytes) -> str:
        """Return the hex digest of a delegation token's HMAC."""
        return self._hash("token", token_id, hmac_of_token)

    def _hash(self, *parts: bytes | str) -> str:
        raw = [part.encode("utf-8") if isinstance(part, str) else part for part in parts]
        return hmac.new(self._key, b"".join(b"%d:%s" % (len(part), part) for part in raw), hashlib.sha256).hexdigest()


def _raw(value: bytes | str) -> bytes:
    return base64.b64decode(value, validate=True) if isinstance(value, str) else bytes(value)


def is_secret(name: str) -> bool:
    """Return whether the value of a config of this name must not be shown."""
    return seal.is_secret(name) or znodes.is_password_config(name)


# --- entities: one function a kind ---------------------------------------------------------------------


def topic(name: str, topic_id: str | None, at: Mapping[str, int] | None = None) -> Entity:
    """Return a topic. `topic_id`: in Kafka's base64 form; None where ZooKeeper has none."""
    return _entity("topic", [name], {"id": topic_id}, at)


def partition(name: str, number: int, fields: Mapping[str, Any], at: Mapping[str, int] | None = None) -> Entity:
    """Return a partition. `fields`: those of FIELDS["partition"] that the view has: lists of ints, ints, text or None.

    The order of replicas is kept (the first is the preferred leader); other lists are sorted.
    """
    values = dict(fields)
    for field in ("adding", "removing", "isr", "elr", "last_known_elr"):
        if values.get(field) is not None:
            values[field] = sorted(values[field])
    return _entity("partition", [name, int(number)], values, at)


def config(
    resource_type: str,
    entity: str | None,
    name: str,
    value: str | None,
    digests: Digests,
    at: Mapping[str, int] | None = None,
    withheld: bool = False,
) -> Entity:
    """Return a dynamic config that is set; defaults and static values are not entities.

    `resource_type`: a value of CONFIG_RESOURCES. `entity`: None for the cluster-wide default of brokers. A secret's
    value is `{"digest": hex}`; with `withheld` (a broker does not show sensitive values) `{"digest": null}`.
    """
    if withheld:
        comparable: Any = {"digest": None}
    elif is_secret(name):
        comparable = {"digest": digests.config(resource_type, entity, name, value or "")}
    else:
        comparable = value
    return _entity("config", [resource_type, entity, name], {"value": comparable}, at)


def unread_config(
    resource_type: str, entity: str | None, name: str, reason: str, at: Mapping[str, int] | None = None
) -> Entity:
    """Return a config whose value cannot be read (a password that no given secret decodes)."""
    return _entity("config", [resource_type, entity, name], {"value": {"unread": reason}}, at)


def quota(entity: Mapping[str, str | None], key: str, value: float, at: Mapping[str, int] | None = None) -> Entity:
    """Return a quota. `entity`: {"user"|"client-id"|"ip": name, None for the default}. A value that is no number of
    JSON (NaN, Infinity), which Kafka takes, is compared as text."""
    number: Any = float(value)
    comparable = number if math.isfinite(number) else str(number)
    return _entity("quota", [sorted([kind, name] for kind, name in entity.items()), key], {"value": comparable}, at)


def scram(
    user: str,
    mechanism: str,
    iterations: int,
    digest: str | None,
    at: Mapping[str, int] | None = None,
    withheld: bool = False,
) -> Entity:
    """Return a SCRAM credential. `digest`: of Digests.scram; `withheld`: brokers show mechanism and iterations only."""
    fields = {"iterations": int(iterations)} if withheld else {"iterations": int(iterations), "digest": digest}
    return _entity("scram", [user, mechanism], fields, at)


def acl(
    resource_type: str,
    pattern_type: str,
    resource_name: str,
    principal: str,
    host: str,
    operation: str,
    permission: str,
    at: Mapping[str, int] | None = None,
) -> Entity:
    """Return an ACL, by its content: KRaft's ids are random."""
    key = [resource_type, pattern_type, resource_name, principal, host, operation, permission]
    return _entity("acl", key, {}, at)


def acl_of_codes(fields: Mapping[str, Any], at: Mapping[str, int] | None = None) -> Entity:
    """Return an ACL with enums as codes. `fields`: of AccessControlEntryRecord, or DescribeAcls' resource and ACL."""
    return acl(
        enums.name_from_code(enums.RESOURCE_TYPES, fields["resourceType"]),
        enums.name_from_code(enums.PATTERN_TYPES, fields["patternType"]),
        fields["resourceName"],
        fields["principal"],
        fields["host"],
        enums.name_from_code(enums.OPERATIONS, fields["operation"]),
        enums.name_from_code(enums.PERMISSIONS, fields["permissionType"]),
        at,
    )


def delegation_token(
    token_id: str,
    owner: str,
    requester: str,
    renewers: Iterable[str],
    issue_ms: int,
    expiry_ms: int,
    max_ms: int,
    at: Mapping[str, int] | None = None,
) -> Entity:
    """Return a delegation token: principals as `User:name`, times in ms. No store has its HMAC: see token_hmac."""
    fields = {
        "owner": owner,
        "requester": requester,
        "renewers": sorted(renewers),
        "issue": issue_ms,
        "expiry": expiry_ms,
        "max": max_ms,
    }
    return _entity("delegation_token", [token_id], fields, at)


def producer_ids(
    next_id: int, start: int | None = None, broker_id: int | None = None, at: Mapping[str, int] | None = None
) -> Entity:
    """Return the producer ids. `next_id`: the first unassigned id: KRaft's next id, or the end of ZooKeeper's block
    plus one. `start`: the first of ZooKeeper's block; `broker_id`: to which broker that block was assigned."""
    block = {} if start is None else {"start": start, "broker": broker_id}
    return _entity("producer_ids", [], {"next": next_id, **block}, at)


def feature(name: str, level: int, at: Mapping[str, int] | None = None) -> Entity:
    """Return a finalized feature (KIP-584); level 0 is not an entity."""
    return _entity("feature", [name], {"level": level}, at)


def migration(state: str, at: Mapping[str, int] | None = None) -> Entity:
    """Return the state of the migration that the log records, by its name (KIP-866)."""
    return _entity("migration", [], {"state": state}, at)


def broker(broker_id: int, fields: Mapping[str, Any], at: Mapping[str, int] | None = None) -> Entity:
    """Return a broker. `fields`: those of FIELDS["broker"] that the view has.

    `endpoints`: [[listener, host, port, protocol], ...]; "" for a listener or protocol that the view does not show, and
    for a host that the broker finds out itself. `log_dirs`: ids of its directories.
    """
    values = dict(fields)
    for field in ("endpoints", "log_dirs"):
        if values.get(field) is not None:
            values[field] = sorted(values[field])
    return _entity("broker", [int(broker_id)], values, at)


AUTHORIZER = "authorizer.class.name"
OWN_AUTHORIZERS = frozenset(
    (
        "kafka.security.auth.SimpleAclAuthorizer",
        "kafka.security.authorizer.AclAuthorizer",
        "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    )
)
"""Kafka's own authorizers: the first two keep ACLs in ZooKeeper, the last one in KRaft; they decide alike."""


def setting(name: str, value: str | None) -> Entity:
    """Return what a node's file says of a config, or else Kafka's default; None for none. Values of which the node
    makes the same are equal."""
    return _entity("setting", [name], {"value": _EFFECTIVE.get(name, _as_is)(value)})


def _as_is(value: str | None) -> str | None:
    return value


def _users(value: str | None) -> str:
    return ";".join(sorted({user.strip() for user in (value or "").split(";") if user.strip()}))


_EFFECTIVE: Dict[str, Callable[[str | None], str | None]] = {
    AUTHORIZER: lambda value: "Kafka's own authorizer" if value in OWN_AUTHORIZERS else value or None,
    "super.users": _users,
    "allow.everyone.if.no.acl.found": lambda value: (value or "false").strip().lower(),
}


def token_hmac(token_id: str, digest: str) -> Entity:
    """Return the HMAC of a delegation token, as a node computes it with its delegation.token.secret.key. `digest`: of
    Digests.token."""
    return _entity("token_hmac", [token_id], {"digest": digest})


def _entity(kind, key, fields, at=None):
    if not fields.keys() <= _FIELD_SETS[kind]:
        unknown = set(fields) - _FIELD_SETS[kind]
        raise ValueError(f"{kind} has no field {sorted(unknown)}, only {', '.join(FIELDS[kind]) or 'none'}")
    return Entity(kind, canonical(key), {name: canonical(value) for name, value in fields.items()}, dict(at or {}))


def key_of(entity_key: str) -> List[Any]:
    """Return the parts of a key."""
    return json.loads(entity_key)


def readable_key(kind: str, entity_key: str) -> str:
    """Return a key for an operator: `orders-3`, `topic orders retention.ms`, `user bob, client-id <default>: ...`."""
    parts = json.loads(entity_key)
    if kind == "partition":
        return f"{parts[0]}-{parts[1]}"
    if kind == "quota":
        names = ", ".join(f"{entity_type} {_name(name)}" for entity_type, name in parts[0])
        return f"{names}: {parts[1]}"
    if kind == "producer_ids":
        return "producer ids"
    if kind == "migration":
        return "from ZooKeeper to KRaft"
    return " ".join(_name(part) for part in parts)


def _name(part: Any) -> str:
    return "<default>" if part is None else str(part)
