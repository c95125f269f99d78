# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Count topics, partitions, configs and other metadata in a metadata log (org.apache.kafka.image.*Delta)."""

from __future__ import annotations

from typing import Any

_TOPIC_RESOURCE = 2  # org.apache.kafka.common.config.ConfigResource.Type.TOPIC


def empty_image() -> dict[str, Any]:
    """Return an empty image for `count_record` and `counts`."""
    return {
        "topics": {},
        "partitions": {},
        "configs": {},
        "quotas": set(),
        "scram_credentials": set(),
        "acls": set(),
        "delegation_tokens": set(),
        "next_producer_id": None,
    }


def count_record(image: dict[str, Any], type_name: str, fields: dict[str, Any]) -> None:
    """Apply one record to `image`. Raises KeyError for a type that is not in COUNTED."""
    COUNTED[type_name](image, fields)


def counts(image: dict[str, Any]) -> dict[str, Any]:
    """Return the counts by kind: a config is one (resource, key) pair, a quota one (entity, key), a credential one
    (user, mechanism); `next_producer_id` is the value itself, None before the first block is allocated."""
    return {
        "topics": len(image["topics"]),
        "partitions": sum(map(len, image["partitions"].values())),
        "configs": sum(map(len, image["configs"].values())),
        "quotas": len(image["quotas"]),
        "scram_credentials": len(image["scram_credentials"]),
        "acls": len(image["acls"]),
        "delegation_tokens": len(image["delegation_tokens"]),
        "next_producer_id": image["next_producer_id"],
    }


def _topic(image, fields):
    image["topics"][fields["topicId"]] = fields["name"]


def _partition(image, fields):
    image["partitions"].setdefault(fields["topicId"], set()).add(fields["partitionId"])


def _remove_topic(image, fields):
    name = image["topics"].pop(fields["topicId"], None)
    image["partitions"].pop(fields["topicId"], None)
    image["configs"].pop((_TOPIC_RESOURCE, name), None)


def _config(image, fields):
    resource = image["configs"].setdefault((fields["resourceType"], fields["resourceName"]), set())
    if fields["value"] is None:
        resource.discard(fields["name"])
    else:
        resource.add(fields["name"])


def _quota(image, fields):
    entity = frozenset((part["entityType"], part["entityName"]) for part in fields["entity"])
    if fields["remove"]:
        image["quotas"].discard((entity, fields["key"]))
    else:
        image["quotas"].add((entity, fields["key"]))


def _producer_ids(image, fields):
    image["next_producer_id"] = fields["nextProducerId"]


COUNTED = {
    "TOPIC_RECORD": _topic,
    "PARTITION_RECORD": _partition,
    "REMOVE_TOPIC_RECORD": _remove_topic,
    "CONFIG_RECORD": _config,
    "CLIENT_QUOTA_RECORD": _quota,
    "USER_SCRAM_CREDENTIAL_RECORD": lambda image, f: image["scram_credentials"].add((f["name"], f["mechanism"])),
    "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": lambda image, f: image["scram_credentials"].discard(
        (f["name"], f["mechanism"])
    ),
    "ACCESS_CONTROL_ENTRY_RECORD": lambda image, f: image["acls"].add(f["id"]),
    "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": lambda image, f: image["acls"].discard(f["id"]),
    "DELEGATION_TOKEN_RECORD": lambda image, f: image["delegation_tokens"].add(f["tokenId"]),
    "REMOVE_DELEGATION_TOKEN_RECORD": lambda image, f: image["delegation_tokens"].discard(f["tokenId"]),
    "PRODUCER_IDS_RECORD": _producer_ids,
}
"""Record types that change a count, each with its function."""
