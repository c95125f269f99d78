# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which mode a Kafka node runs in, judged from its answer to ApiVersions."""

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
    """The mode of a node whose listener offers `api_keys` and that shows tag 3 of ApiVersions or not.

    LeaderAndIsr is offered in ZooKeeper mode only, Produce by brokers only, Vote by controllers only (`listeners` of
    the requests in Kafka's message definitions). Tag 3, ZkMigrationReady, is what tells a broker in migration mode
    from a plain one, whose keys are the same, and a controller with the migration flag from one without, which is
    what CONTROLLER_FINAL means here. `api_keys` may be strings, as JSON makes them. UNKNOWN where the evidence
    contradicts itself. On a node that is both broker and controller the answer is that of the listener asked.
    """
    keys = {int(key) for key in api_keys}
    if _LEADER_AND_ISR in keys and _PRODUCE in keys:
        return ZK_MIGRATION if zk_migration_ready else ZK
    if _LEADER_AND_ISR in keys or (_PRODUCE in keys) == (_VOTE in keys):
        return UNKNOWN
    if _VOTE in keys:
        return CONTROLLER_MIGRATION if zk_migration_ready else CONTROLLER_FINAL
    return UNKNOWN if zk_migration_ready else KRAFT
