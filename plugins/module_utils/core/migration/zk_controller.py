# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether ZooKeeper's elected controller can write. Pure, over probes.zookeeper.zookeeper.read_migration_znodes.

An election writes `/controller` and `/controller_epoch` in one transaction. Every later write of that controller checks
the version of `/controller_epoch` (KafkaZkClient.registerControllerAndIncrementControllerEpoch,
retryRequestsUntilConnected). If another client writes the epoch, the controller stays elected and can write nothing.
"""

from __future__ import annotations

from typing import Mapping

NO_CONTROLLER = "Until then the brokers serve clients without a controller"


def is_elected(controller: Mapping) -> bool:
    """Return whether `/controller` is a ZooKeeper-mode broker's: ephemeral, without a KRaft epoch."""
    ephemeral = controller.get("exists") and controller.get("ephemeral")
    return bool(ephemeral) and (controller.get("kraft_controller_epoch") or -1) < 0


def is_fenced(zookeeper: Mapping) -> bool:
    """Return whether `/controller_epoch` was written after the election, so that the controller's writes fail."""
    controller, epoch = zookeeper.get("controller") or {}, zookeeper.get("controller_epoch") or {}
    if not is_elected(controller) or not epoch.get("exists"):
        return False
    written, elected_at = epoch.get("mzxid"), controller.get("czxid")
    return written is not None and elected_at is not None and written != elected_at


def explain_fenced(zookeeper: Mapping) -> str | None:
    """Return why the elected controller can write nothing, without the full stop; None if it can."""
    if not is_fenced(zookeeper):
        return None
    broker = zookeeper["controller"].get("broker_id")
    return (
        f"broker {broker} is the controller but can write nothing: /controller_epoch was written after its "
        "election (QS-GATE-004)"
    )
