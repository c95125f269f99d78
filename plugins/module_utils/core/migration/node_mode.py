# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mode of a Kafka node, detected from its answer to ApiVersions."""

from __future__ import annotations

from typing import Iterable

ZK = "zk"
ZK_MIGRATION = "zk_migration"
KRAFT = "kraft"
CONTROLLER_MIGRATION = "controller_migration"
CONTROLLER_FINAL = "controller_final"
UNKNOWN = "unknown"

_PRODUCE, _LEADER_AND_ISR, _VOTE = 0, 4, 52


def node_mode(api_keys: Iterable[int], zk_migration_ready: bool) -> str:
    """Return the mode of a node whose listener offers `api_keys`; UNKNOWN where the answer contradicts itself.

    LeaderAndIsr is offered in ZooKeeper mode only, Produce by brokers only, Vote by controllers only (`listeners` of
    the requests in Kafka's message definitions). Tag 3, ZkMigrationReady (`zk_migration_ready`), distinguishes a broker
    in migration mode from a plain one, and a controller with the migration flag from one without (CONTROLLER_FINAL).
    `api_keys` may be strings, as in JSON. A node that is both broker and controller answers for the listener asked.
    """
    keys = {int(key) for key in api_keys}
    if _LEADER_AND_ISR in keys and _PRODUCE in keys:
        return ZK_MIGRATION if zk_migration_ready else ZK
    if _LEADER_AND_ISR in keys or (_PRODUCE in keys) == (_VOTE in keys):
        return UNKNOWN
    if _VOTE in keys:
        return CONTROLLER_MIGRATION if zk_migration_ready else CONTROLLER_FINAL
    return UNKNOWN if zk_migration_ready else KRAFT
