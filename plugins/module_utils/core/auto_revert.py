# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a node that did not come up in its new mode may go back to the one before.

Sources: KIP-866; Kafka 3.9's KRaftMigrationDriver, whose WAIT_FOR_BROKERS begins the copy once every broker alive in
ZooKeeper, and every one that holds a replica, is registered in the quorum, old registrations among them.
"""

from __future__ import annotations

from typing import Iterable, Mapping


def under_kraft(zookeeper: Mapping) -> str | None:
    """Return why no broker may run in plain ZooKeeper mode, from what probes.own_zookeeper.look read; None when one
    may."""
    migration, controller = zookeeper["migration"], zookeeper["controller"]
    if not migration:
        return "/migration does not exist: whether the copy has begun cannot be told"
    if migration["malformed"]:
        return f"/migration is malformed: {migration['malformed']}"
    offset = migration["kraft_metadata_offset"]
    if offset != -1:
        return f"/migration holds kraft_metadata_offset {offset}: the copy has begun"
    if not controller:
        return "/controller does not exist: whether the copy has begun cannot be told"
    if not controller["ephemeral"]:
        return f"/controller is KRaft's, of controller {controller['broker_id']}: the copy has begun"
    return None


def copy_at_hand(zookeeper: Mapping, node_id: int, registered: Iterable[str]) -> str | None:
    """Return why the copy may begin at any moment, so that this broker must not go back; None when it cannot.

    `registered`: the ids, as text, of brokers whose registration stands or may stand in the quorum.
    """
    awaited = set(zookeeper["brokers"]) - set(registered) - {str(node_id)}
    if awaited or str(node_id) not in set(registered):
        return None
    return (
        f"broker {node_id} is registered in the quorum and no other broker is still to register, so the copy may "
        "begin at any moment"
    )


def under_final(state: str | None) -> str | None:
    """Return why no broker may go back to migration mode, from the migration state in its own metadata log; None when
    it may. Only in MIGRATION do controllers write to ZooKeeper and take brokers in migration mode."""
    return None if state == "MIGRATION" else f"this host's metadata log says {state}, not MIGRATION"
