# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Znodes below Kafka's chroot that Apache Kafka 3.9 does not have, and keys in the JSON of those that it has.

Kafka's decoders read the keys that they know and skip all others. A build of another vendor may write both. Source:
kafka.zk.ZkData of Kafka 3.9. Pure.
"""

from __future__ import annotations

import json
import re
from typing import Iterator, List

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes

_CONFIG = frozenset(("version", "config"))
_KEYS = {
    "topic": frozenset(("version", "topic_id", "partitions", "adding_replicas", "removing_replicas")),
    "partition_state": frozenset(
        ("controller_epoch", "leader", "version", "leader_epoch", "isr", "leader_recovery_state")
    ),
    **dict.fromkeys(("topic_config", "broker_config", "client_config", "user_config", "ip_config"), _CONFIG),
    "broker": frozenset(
        (
            *("version", "host", "port", "jmx_port", "endpoints", "rack", "timestamp", "features"),
            "listener_security_protocol_map",
        )
    ),
    "acl": frozenset(("version", "acls")),
    "delegation_token": frozenset(
        (
            *("version", "owner", "tokenRequester", "renewers", "issueTimestamp", "maxTimestamp", "expiryTimestamp"),
            "tokenId",
        )
    ),
    "producer_id_block": frozenset(("version", "broker", "block_start", "block_end")),
    "feature": frozenset(("version", "status", "features")),
}
_ACL_ENTRY = frozenset(("principal", "permissionType", "operation", "host"))
# Of the others the decoder checks the version
_VERSIONS = {"topic": (1, 2, 3), "partition_state": (1,), **{kind: (1,) for kind in _KEYS if kind.endswith("_config")}}
_ENTITIES = re.compile(
    f"^({re.escape(znodes.TOPICS)}/|{re.escape(znodes.BROKER_IDS)}/|{re.escape(znodes.DELETE_TOPICS)}/"
    f"|{re.escape(znodes.DELEGATION_TOKENS)}/|{re.escape(znodes.CONFIG)}/(?:{'|'.join(znodes.CONFIG_TYPES)})/)[^/]+"
)
_BELOW = re.compile("/(partitions|clients)/[^/]+")
_LEAVES = ("acl", "notification", "old_consumer")  # what is below a resource's name or an old consumer is its own


def is_unknown(path: str) -> bool:
    """Return whether Apache Kafka 3.9 has no znode at a path below the chroot."""
    if path.startswith("/kafka-acl-extended/"):
        prefixed = znodes.ACL_STORES["PREFIXED"]
        return path != prefixed and not path.startswith(f"{prefixed}/")
    return znodes.kind(path) == "other"


def has_known_children(path: str) -> bool:
    """Return whether the znodes below a path of Kafka's can be unknown: not below an ACL's resource, which may have
    slashes in its name."""
    return znodes.kind(path) not in _LEAVES and path not in (znodes.OLD_CONSUMERS, *znodes.ACL_STORES.values())


def pattern(path: str) -> str:
    """Return a path with * in place of the names of topics, partitions, brokers, entities with configs and tokens."""
    found = _ENTITIES.match(path)
    if not found:
        return path
    return found[1] + "*" + _BELOW.sub(r"/\1/*", path[found.end() :])


def unknown_keys(node: znodes.Znode) -> List[str]:
    """Return what the JSON of a znode of Kafka's has and Kafka 3.9 does not know: keys, and `version-N` for a version
    of an unknown form. Nothing for data that is no JSON object: its decoder reports it."""
    kind = znodes.kind(node.path)
    known = _KEYS.get(kind)
    if known is None or not node.data:
        return []
    try:
        value = json.loads(node.data.decode("utf-8"))
    except (ValueError, RecursionError):
        return []
    if not isinstance(value, dict):
        return []
    found = sorted(value.keys() - known)
    versions = _VERSIONS.get(kind)
    if versions and value.get("version", versions[0]) not in versions:
        found.append(f"version-{value['version']}")
    if kind == "acl":
        found += sorted({f"acls.{name}" for name in _keys_of_entries(value.get("acls"))})
    return found


def _keys_of_entries(entries: object) -> Iterator[str]:
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            yield from entry.keys() - _ACL_ENTRY
