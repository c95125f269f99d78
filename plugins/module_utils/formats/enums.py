# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kafka's enums, in the order of their codes in requests and metadata records.

Source: org.apache.kafka.common.resource.ResourceType and PatternType, common.acl.AclOperation and AclPermissionType,
clients.admin.ScramMechanism.
"""

from __future__ import annotations

UNKNOWN = "UNKNOWN"
RESOURCE_TYPES = (UNKNOWN, "ANY", "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER")
PATTERN_TYPES = (UNKNOWN, "ANY", "MATCH", "LITERAL", "PREFIXED")
OPERATIONS = (
    UNKNOWN,
    "ANY",
    "ALL",
    "READ",
    "WRITE",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE",
    "CREATE_TOKENS",
    "DESCRIBE_TOKENS",
)
PERMISSIONS = (UNKNOWN, "ANY", "DENY", "ALLOW")
SCRAM_MECHANISMS = (UNKNOWN, "SCRAM-SHA-256", "SCRAM-SHA-512")


# org.apache.kafka.common.security.auth.SecurityProtocol
SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def name_from_code(names, code):
    """Return the name of an enum's code, UNKNOWN if Kafka 3.9 does not have it."""
    return names[code] if 0 <= code < len(names) else UNKNOWN


def name_from_znode(names, spelling):
    """Return the name for ZooKeeper's spelling (``TransactionalId``, ``Read``; any case, as in
    SecurityUtils.toPascalCase and its inverse), UNKNOWN if Kafka does not have it."""
    folded = spelling.upper()
    return next((name for name in names if name.replace("_", "") == folded), UNKNOWN)
