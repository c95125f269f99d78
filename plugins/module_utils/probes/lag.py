# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far ZooKeeper lags behind the metadata log while controllers write to both.

The active controller mirrors each published offset into `/migration` (KRaftMigrationDriver, ZkMigrationClient);
NoOpRecords move the log every half second, so the two are never equal for long: lag is 0 when `/migration` has
reached the high watermark that was read before it.
"""

from __future__ import annotations

import time
from typing import Mapping

from . import cluster, zookeeper


def behind(connections: cluster.Connections, controllers: Mapping[str, Mapping], bound_s: float) -> list[str]:
    """Return why ZooKeeper is behind, as sentences; nothing when it reached the high watermark within `bound_s`."""
    messages = cluster.quorum(controllers, connections)
    if not messages["reached"]:
        return [f"no controller answers as leader: {messages['error']}"]
    fence, deadline = messages["high_watermark"] - 1, time.monotonic() + bound_s
    with cluster.connect_zookeeper(connections) as client:
        while True:
            migration = zookeeper.migration_znodes(client, connections.timeout)["migration"]
            offset = migration["kraft_metadata_offset"]
            if offset is not None and offset >= fence:
                return []
            if time.monotonic() >= deadline:
                return [f"/migration stands at offset {offset}, {bound_s:g} s after the log committed {fence}"]
            time.sleep(0.1)
