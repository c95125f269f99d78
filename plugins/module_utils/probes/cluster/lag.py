# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check whether ZooKeeper keeps up with the metadata log during dual-write.

The active controller mirrors each published offset into `/migration` (KRaftMigrationDriver, ZkMigrationClient).
NoOpRecords move the log every half second, so the two are never equal for long. The lag is 0 if `/migration` has
reached the high watermark that was read before it.
"""

from __future__ import annotations

import time
from typing import Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import NodeFacts
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import cluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper


def explain_behind(connections: cluster.Connections, controllers: Mapping[str, NodeFacts], bound_s: float) -> list[str]:
    """Return why ZooKeeper is behind, as sentences; [] if it reaches the high watermark within `bound_s`."""
    quorum = cluster.read_quorum(controllers, connections)
    if not quorum["reached"]:
        return [f"no controller answers as leader: {quorum['error']} (QS-GATE-007)"]
    fence, deadline = quorum["high_watermark"] - 1, time.monotonic() + bound_s
    with cluster.connect_zookeeper(connections) as client:
        while True:
            migration = zookeeper.read_migration_znodes(client, connections.timeout)["migration"]
            offset = migration["kraft_metadata_offset"]
            if offset is not None and offset >= fence:
                return []
            if time.monotonic() >= deadline:
                return [
                    f"/migration is at offset {offset}, {bound_s:g} s after the log committed {fence} (QS-GATE-007)"
                ]
            time.sleep(0.1)
