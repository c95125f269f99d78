# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a node that did not start in its new mode may revert to the mode before.

Sources: KIP-866; Kafka 3.9's KRaftMigrationDriver, whose WAIT_FOR_BROKERS begins the initial copy once every
broker that is alive in ZooKeeper or has a replica is registered in the quorum; old registrations count.
"""

from __future__ import annotations

from typing import Iterable, Mapping


def check_under_kraft(zookeeper: Mapping) -> str | None:
    """Return why no broker may run in plain ZooKeeper mode; None when one may. `zookeeper`: own_zookeeper.collect."""
    migration, controller = zookeeper["migration"], zookeeper["controller"]
    if not migration:
        return "/migration does not exist, so it is unknown whether the initial copy has begun (QS-RESTART-014)"
    if migration["malformed"]:
        return f"/migration is malformed: {migration['malformed']} (QS-PHASE-009)"
    offset = migration["kraft_metadata_offset"]
    if offset != -1:
        return f"/migration has kraft_metadata_offset {offset}: the initial copy has begun (QS-RESTART-014)"
    if not controller:
        return "/controller does not exist, so it is unknown whether the initial copy has begun (QS-RESTART-014)"
    if not controller["ephemeral"]:
        return (
            f"/controller is owned by KRaft controller {controller['broker_id']}: the initial copy has "
            "begun (QS-RESTART-014)"
        )
    return None


def check_copy_at_hand(zookeeper: Mapping, node_id: int, registered: Iterable[str]) -> str | None:
    """Return why the initial copy may begin at any moment, so that this broker must not revert; None when it cannot.

    `registered`: the ids, as text, of brokers that are or may be registered in the quorum.
    """
    awaited = set(zookeeper["brokers"]) - set(registered) - {str(node_id)}
    if awaited or str(node_id) not in set(registered):
        return None
    return (
        f"broker {node_id} and all other live brokers are registered in the quorum, so the initial copy may begin at "
        "any moment (QS-RESTART-014)"
    )


def check_under_final(state: str | None) -> str | None:
    """Return why no broker may revert to migration mode, from the migration state in its own metadata log; None when it
    may. Only in MIGRATION do controllers write to ZooKeeper and accept brokers in migration mode."""
    return (
        None
        if state == "MIGRATION"
        else f"the migration state in this host's metadata log is {state}, not MIGRATION (QS-RESTART-014)"
    )
