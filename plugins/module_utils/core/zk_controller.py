# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a controller that ZooKeeper's brokers elected can write. Pure, over probes.zookeeper.witness.

An election writes `/controller` and `/controller_epoch` in one transaction, and every write of that controller asks for
the version of `/controller_epoch` that it left there (KafkaZkClient.registerControllerAndIncrementControllerEpoch,
retryRequestsUntilConnected). Where the epoch was written since, the controller stays in office and changes nothing any
more; nobody else is elected, for `/controller` is there.
"""

from __future__ import annotations

from typing import Mapping


def elected(controller: Mapping) -> bool:
    """Say whether `/controller` is a ZooKeeper-mode broker's: ephemeral, without a KRaft epoch."""
    ours = controller.get("exists") and controller.get("ephemeral")
    return bool(ours) and (controller.get("kraft_controller_epoch") or -1) < 0


def fenced(zookeeper: Mapping) -> bool:
    """Say whether the elected controller's writes are refused, since `/controller_epoch` was written after it."""
    controller, epoch = zookeeper.get("controller") or {}, zookeeper.get("controller_epoch") or {}
    if not elected(controller) or not epoch.get("exists"):
        return False
    written, made = epoch.get("mzxid"), controller.get("czxid")
    return written is not None and made is not None and written != made


def fenced_sentence(zookeeper: Mapping) -> str | None:
    """Return why the controller that was elected does nothing more, without the full stop; None where it does."""
    if not fenced(zookeeper):
        return None
    broker = zookeeper["controller"].get("broker_id")
    return (
        f"broker {broker} is the controller and can write nothing more: /controller_epoch was written after its "
        "election"
    )
