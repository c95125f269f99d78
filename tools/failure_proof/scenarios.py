# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runs that are made to fail: which playbook, with which variables, on which cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core import gates, restoring, upgrade

from tools.failure_proof.world import BROKERS, CLUSTER, IDS, NEW_KAFKA, OLD_KAFKA, World

UNVERIFIED = {"quorumshift_verify": False}


def finalize_token(world: World) -> str:
    """Return the confirmation token of the finalization, as `status` prints it."""
    nodes = {
        name: {"role": "broker" if name in BROKERS else "controller", "metadata_log": world.metadata_log(name)}
        for name in IDS
    }
    return gates.finalize_token({"nodes": nodes, "zookeeper": world.zookeeper()})


BACKUP = hashlib.sha256(b"backup").hexdigest()  # of what the stub of zk_backup writes
UPGRADE = {"upgrade_to": NEW_KAFKA, "upgrade_confirm": upgrade.token(CLUSTER, NEW_KAFKA), "restart_concurrency": 2}


class Scenario(NamedTuple):
    """`after`: the scenario whose run comes before on the same cluster, without a failure, '' for none; `cluster`: how
    the cluster is made (World.create), or what is changed in its state after that run."""

    name: str
    playbook: str
    variables: Mapping[str, Any]
    after: str = ""
    cluster: Mapping[str, Any] = {}

    def given(self, world: World) -> dict[str, Any]:
        """Return the extra variables on this world."""
        return {key: value(world) if callable(value) else value for key, value in self.variables.items()}


_TOGETHER = {"restart_concurrency": 2}
_BACK = {**_TOGETHER, **UNVERIFIED}
SCENARIOS = {
    one.name: one
    for one in (
        Scenario("restart", "restart", _TOGETHER),
        Scenario("reassign", "reassign", {"reassign_drain": 1, "reassign_apply": True}),
        Scenario("upgrade", "upgrade", UPGRADE, "", {"version": OLD_KAFKA, "protocol": "3.8"}),
        Scenario("zk_migrate", "zk_migrate", _BACK),
        Scenario("zk_observers", "zk_migrate", {"zk_migrate_cut": False, **_BACK}),
        Scenario("zk_rollback", "zk_rollback", _BACK, "zk_observers"),
        Scenario("migrate", "migrate", _BACK),
        Scenario("rollback", "rollback", {"quorumshift_rollback_to": "zk", **_BACK}, "migrate"),
        Scenario("hybrid", "rollback", {"quorumshift_rollback_to": "hybrid", **_BACK}, "migrate"),
        Scenario(
            "restore_zookeeper",
            "restore_zookeeper",
            {"quorumshift_restore_token": restoring.token(CLUSTER, BACKUP, []), **UNVERIFIED},
            "hybrid",
        ),
        Scenario("finalize", "migrate", {"quorumshift_finalize_token": finalize_token, **UNVERIFIED}, "migrate"),
        Scenario("restart_kraft", "restart", _TOGETHER, "finalize"),
        Scenario("upgrade_kraft", "upgrade", UPGRADE, "finalize", {"metadata_version": 20}),
    )
}
"""In an order in which each comes after the one that it needs."""


class PreparationFailed(RuntimeError):
    """A run without a failure did not end with exit code 0."""
